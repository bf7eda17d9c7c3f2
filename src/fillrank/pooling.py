"""Rubin's rules: estimates from several completed tables, pooled.

References
----------
.. [1] D. B. Rubin (1987). Multiple Imputation for Nonresponse in Surveys. Wiley, section 3.3.
.. [2] J. Barnard and D. B. Rubin (1999). Small-sample degrees of freedom with multiple imputation.
   Biometrika 86(4), 948-955.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from scipy.special import stdtr, stdtrit

from fillrank.errors import InputError, Setting
from fillrank.table.frames import new_frame
from fillrank.table.html import html_table
from fillrank.table.labels import as_text, format_label, format_labels
from fillrank.validation import as_real, check_real

_FEWEST = 2
# Of the intervals in the representation.
_LEVEL = 0.95
_COLUMNS = ("estimate", "standard_error", "statistic", "df", "p_value", "lower", "upper")
_LONGEST_LABEL = 30


@dataclass(frozen=True, eq=False, repr=False)
class Pooled:
    """Estimates that were pooled by Rubin's rules; `print` shows them as a table.

    The attributes are numbers if one number was pooled, and otherwise arrays with one for each.

    Attributes
    ----------
    estimate : float or ndarray
        The mean of the estimates.
    variance : float or ndarray
        The total variance: ``within + (1 + 1 / n_tables) * between``.
    within, between : float or ndarray
        The mean of the variances of the estimates, and the variance of the estimates over the tables.
    df : float or ndarray
        The degrees of freedom of Barnard and Rubin (1999), for t intervals and tests.
    relative_increase : float or ndarray
        The relative increase in variance due to missing values.
    missing_information : float or ndarray
        The fraction of missing information.
    n_tables : int
        The number of completed tables.
    terms : list or None
        The labels of the estimates, if they have any.
    """

    estimate: Any
    variance: Any
    within: Any
    between: Any
    df: Any
    relative_increase: Any
    missing_information: Any
    n_tables: int
    terms: list[Any] | None = None

    @property
    def standard_error(self) -> Any:
        """The square root of the total variance."""
        return np.sqrt(self.variance)

    @property
    def statistic(self) -> Any:
        """The estimate divided by its standard error."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.divide(self.estimate, self.standard_error)

    @property
    def p_value(self) -> Any:
        """Of the two-sided test that the quantity is 0."""
        return 2.0 * stdtr(self.df, -np.abs(self.statistic))

    def interval(self, level: float = _LEVEL) -> tuple[Any, Any]:
        """Confidence intervals (low, high).

        Parameters
        ----------
        level : float
            Above 0 and below 1.

        Returns
        -------
        low, high : float or ndarray
        """
        check_real("level", level, "above 0 and below 1", lambda v: 0 < v < 1)
        width = stdtrit(self.df, 0.5 + 0.5 * level) * self.standard_error
        return self.estimate - width, self.estimate + width

    def table(self, level: float = _LEVEL) -> Any:
        """The results with a line for each estimate.

        Parameters
        ----------
        level : float
            Of the confidence intervals.

        Returns
        -------
        table
            A data frame of pandas, polars or pyarrow, whichever is installed, with the columns of
            ``summary(pool(fits), conf.int = TRUE)`` in R's package mice: ``term`` (unless there is one
            estimate without a label), ``estimate``, ``standard_error``, ``statistic``, ``df``,
            ``p_value``, ``lower`` and ``upper``; and ``relative_increase`` and
            ``missing_information``.
        """
        fields: dict[str, Any] = {}
        if self.terms is not None:
            fields["term"] = np.array(self.terms, dtype=object)
        elif np.ndim(self.estimate):
            fields["term"] = np.arange(len(self.estimate))
        low, high = self.interval(level)
        numbers = {
            "estimate": self.estimate,
            "standard_error": self.standard_error,
            "statistic": self.statistic,
            "df": self.df,
            "p_value": self.p_value,
            "lower": low,
            "upper": high,
            "relative_increase": self.relative_increase,
            "missing_information": self.missing_information,
        }
        return new_frame(
            fields | {name: np.atleast_1d(np.asarray(each)) for name, each in numbers.items()}
        )

    def __repr__(self) -> str:
        names, lines = self._cells()
        width = max(map(len, names))
        header = " " * width + "".join(f"{name:>16}" for name in _COLUMNS)
        body = (
            f"{name:<{width}}{''.join(f'{cell:>16}' for cell in cells)}"
            for name, cells in zip(names, lines, strict=True)
        )
        return "\n".join([self._title(), header, *body])

    def _repr_html_(self) -> str:
        lines = [(name, *cells) for name, cells in zip(*self._cells(), strict=True)]
        return html_table(lines, ("", *_COLUMNS), self._title(), numbers=True)

    def _title(self) -> str:
        return f"estimates from {self.n_tables} completed tables, with {_LEVEL:.0%} intervals"

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        """The names of the terms, and their numbers as text."""
        low, high = self.interval()
        numbers = np.column_stack(
            np.atleast_1d(
                self.estimate,
                self.standard_error,
                self.statistic,
                self.df,
                self.p_value,
                low,
                high,
            )
        )
        terms = self.terms if self.terms is not None else range(len(numbers))
        names = [as_text(term)[:_LONGEST_LABEL] for term in terms]
        if np.ndim(self.estimate) == 0 and self.terms is None:
            names = [""]
        return names, [
            [_format(*cell) for cell in zip(_COLUMNS, line, strict=True)]
            for line in numbers.tolist()
        ]


def _format(column: str, number: float) -> str:
    return f"{number:.1f}" if column == "df" else f"{number:.4g}"


def pool(estimates: Any, variances: Any, df_complete: Any = None) -> Pooled:
    """Pool estimates from several completed tables by Rubin's rules.

    Parameters
    ----------
    estimates : sequence of numbers, arrays or Series; or data frame
        One for each completed table: a number, several numbers, or a Series of pandas, whose labels are
        those of the result. A data frame has a line for each table and a column for each quantity.
    variances : the same
        The squared standard errors of the estimates.
    df_complete : float or array of float, optional
        The degrees of freedom that the estimates would have if no value were missing, such as the
        number of rows less the number of coefficients. Without it, that number is taken as infinite,
        which makes intervals of small tables too narrow.

    Returns
    -------
    Pooled

    Notes
    -----
    For m tables, with the mean W of the variances and the variance B of the estimates, the total
    variance is T = W + (1 + 1/m) B (Rubin 1987). Intervals and tests use a t distribution, with the
    degrees of freedom of Barnard and Rubin (1999).

    References
    ----------
    D. B. Rubin (1987). Multiple Imputation for Nonresponse in Surveys. Wiley.

    J. Barnard and D. B. Rubin (1999). Small-sample degrees of freedom with multiple imputation.
    Biometrika 86(4), 948-955.

    See Also
    --------
    pool_fits : for fitted models of statsmodels.

    Examples
    --------
    >>> import fillrank as fr
    >>> slopes, errors = [0.62, 0.71, 0.64, 0.69], [0.10, 0.09, 0.11, 0.10]
    >>> pooled = fr.pool(slopes, [error**2 for error in errors], df_complete=98)
    >>> print(round(pooled.estimate, 3), round(pooled.standard_error, 3), round(pooled.df, 1))
    0.665 0.111 42.5
    >>> low, high = pooled.interval(0.95)
    >>> print(round(low, 2), round(high, 2))
    0.44 0.89
    """
    values, spread = _numbers(estimates, "estimates"), _numbers(variances, "variances")
    if spread.numbers.shape != values.numbers.shape:
        raise InputError(
            "estimates and variances must have the same shape; got "
            f"{values.numbers.shape} and {spread.numbers.shape}."
        )
    if values.terms is not None and spread.terms is not None:
        _check_terms(values.terms, spread.terms, "the variances")
        order = [spread.terms.index(term) for term in values.terms]
        spread = spread._replace(numbers=spread.numbers[:, order])
    if not (np.isfinite(spread.numbers).all() and (spread.numbers >= 0).all()):
        raise InputError(
            "variances must be finite and at least 0; they are the squares of standard errors."
        )
    return _pool(values, spread.numbers, _check_df(df_complete, values.numbers.shape[1:]))


def pool_fits(fits: Iterable[Any], df_complete: Any = None) -> Pooled:
    """Pool models that were fitted to several completed tables, such as those of statsmodels.

    Parameters
    ----------
    fits : iterable of fitted models
        One for each completed table. Each has ``params``; ``bse``, their standard errors, or the method
        ``cov_params()``; and ``df_resid``, the residual degrees of freedom. A model of several outcomes,
        such as ``MNLogit``, has a column of parameters for each; its terms are named ``0: age``.
    df_complete : float or array of float, optional
        As in `pool`; by default the smallest ``df_resid``.

    Returns
    -------
    Pooled
        Its ``table()`` has the columns of R's ``summary(pool(fits))``.

    See Also
    --------
    pool : for numbers.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> import fillrank as fr, pandas as pd
    >>> def fit(slope):
    ...     names = ["Intercept", "age"]
    ...     return SimpleNamespace(
    ...         params=pd.Series([1.0, slope], names), bse=pd.Series([0.2, 0.1], names), df_resid=98
    ...     )
    >>> fr.pool_fits([fit(0.62), fit(0.71), fit(0.64)]).table()[["term", "estimate", "df"]].round(2)
            term  estimate     df
    0  Intercept      1.00  96.06
    1        age      0.66  25.10
    """
    if not isinstance(fits, Iterable):
        raise InputError(
            place=Setting("fits"),
            allowed="a list of fitted models, one for each completed table",
            value=type(fits).__name__,
        )
    fits = list(fits)
    _check_enough(fits, "fits")
    estimates = [_in_one_line(_attribute(fit, "params")) for fit in fits]
    variances = [_in_one_line(_variances_of(fit)) for fit in fits]
    if df_complete is None:
        df_complete = min(float(_attribute(fit, "df_resid")) for fit in fits)
    return pool(estimates, variances, df_complete)


class _Numbers(NamedTuple):
    """Numbers (tables,) or (tables, quantities), and the labels of the quantities."""

    numbers: np.ndarray
    terms: list[Any] | None


def _pool(estimates: _Numbers, variances: np.ndarray, df_complete: np.ndarray) -> Pooled:
    """Rubin's rules; the formulas of the R package mice, but without its lower bound of lambda."""
    m = len(variances)
    mean, within = estimates.numbers.mean(axis=0), variances.mean(axis=0)
    between = estimates.numbers.var(axis=0, ddof=1)
    of_missing = (1.0 + 1.0 / m) * between
    total = within + of_missing
    with np.errstate(divide="ignore", invalid="ignore"):
        # The share of the variance that is due to missing values: 0 without any variance.
        share = np.where(total > 0, of_missing / total, 0.0)
        increase = np.where(of_missing > 0, of_missing / within, 0.0)
        df = _degrees_of_freedom(share, m, df_complete)
        # (increase + 2 / (df + 3)) / (increase + 1), also if the increase is infinite.
        missing_information = share + (1.0 - share) * np.where(
            of_missing > 0, 2.0 / (df + 3.0), 0.0
        )
    return Pooled(
        estimate=mean[()],
        variance=total[()],
        within=within[()],
        between=between[()],
        df=df[()],
        relative_increase=increase[()],
        missing_information=missing_information[()],
        n_tables=m,
        terms=estimates.terms,
    )


def _degrees_of_freedom(share: np.ndarray, m: int, df_complete: np.ndarray) -> np.ndarray:
    """Barnard and Rubin's: at most those of Rubin, and at most those of the complete table."""
    large = (m - 1.0) / share**2
    observed = np.where(
        np.isinf(df_complete), np.inf, (1.0 - 2.0 / (df_complete + 3.0)) * df_complete
    )
    observed = np.where(share < 1.0, observed * (1.0 - share), 0.0)
    return np.asarray(1.0 / (1.0 / large + 1.0 / observed))


def _numbers(given: Any, name: str) -> _Numbers:
    """The numbers of all tables; those of later Series are in the order of the first."""
    frame: Any = nw.from_native(given, pass_through=True)
    numbers: Any
    terms: list[Any] | None
    if isinstance(frame, nw.DataFrame):
        numbers, terms = frame.to_numpy(), list(frame.columns)
    else:
        numbers = list(given) if isinstance(given, Iterable) else given
        _check_enough(numbers, name)
        terms = _labels(numbers[0])
        if terms is not None:
            for item in numbers:
                _check_terms(terms, _labels(item), f"one of the {name}")
            numbers = [[item[term] for term in terms] for item in numbers]
    array = as_real(numbers, name)
    if array.ndim not in (1, 2) or array.size == 0 or len(array) < _FEWEST:
        raise InputError(
            f"{name} must be a number, or several, for each of two or more completed tables; got an "
            f"array of shape {array.shape}."
        )
    if not np.isfinite(array).all():
        at = tuple(np.argwhere(~np.isfinite(array))[0].tolist())
        term = "" if terms is None else f" of {format_label(terms[at[1]])}"
        raise InputError(f"{name} must be finite; got {array[at]}{term} in table {at[0] + 1}.")
    return _Numbers(array, terms)


def _labels(item: Any) -> list[Any] | None:
    """The labels of a Series of pandas; None for all others."""
    series: Any = nw.from_native(item, pass_through=True, allow_series=True)
    if not isinstance(series, nw.Series):
        return None
    index = nw.maybe_get_index(series)
    return None if index is None else list(index)


def _check_terms(terms: list[Any], others: list[Any] | None, where: str) -> None:
    if len(set(terms)) < len(terms):
        raise InputError(f"labels must be different; got {format_labels(np.array(terms, object))}.")
    if others is None or len(others) != len(terms) or set(others) != set(terms):
        shown = "none" if others is None else format_labels(np.array(others, dtype=object))
        raise InputError(
            f"all estimates need the same labels, {format_labels(np.array(terms, dtype=object))}; "
            f"{where} has {shown}."
        )


def _check_enough(items: Any, name: str) -> None:
    if not isinstance(items, Sequence) or len(items) < _FEWEST:
        got = len(items) if isinstance(items, Sequence) else 1
        raise InputError(
            f"Rubin's rules need {name} from {_FEWEST} completed tables or more; got {got}",
            advice="Draw more by sample_completions(n).",
        )


def _check_df(df_complete: Any, shape: tuple[int, ...]) -> np.ndarray:
    if df_complete is None:
        return np.asarray(np.inf)
    df = as_real(df_complete, "df_complete")
    if df.shape not in ((), shape) or not (df > 0).all():
        raise InputError(
            place=Setting("df_complete"),
            allowed="a number above 0, or one for each estimate",
            value=df_complete,
        )
    return df


def _attribute(fit: Any, name: str) -> Any:
    try:
        return getattr(fit, name)
    except AttributeError as error:
        raise InputError(
            "a fit needs params, bse or cov_params(), and df_resid, as the results of statsmodels "
            f"have; this {type(fit).__name__} has no {name}",
            advice="Use fr.pool with its estimates and their squared standard errors.",
        ) from error


def _in_one_line(numbers: Any) -> Any:
    """Parameters, or their variances, one after the other if there is a column for each outcome."""
    if np.ndim(numbers) != 2:
        return numbers
    frame: Any = nw.from_native(numbers, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return np.ravel(numbers, order="F")
    stacked = numbers.T.stack()
    return stacked.set_axis([f"{outcome}: {term}" for outcome, term in stacked.index])


def _variances_of(fit: Any) -> Any:
    errors = getattr(fit, "bse", None)
    if errors is not None:
        return errors**2
    covariance, params = _attribute(fit, "cov_params")(), _attribute(fit, "params")
    diagonal = np.diag(np.asarray(covariance))
    terms = _labels(params)
    # A Series like that of the parameters, so that both have the same labels.
    return diagonal if terms is None else type(params)(diagonal, index=params.index)
