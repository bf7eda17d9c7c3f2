"""Features of times: a smooth kernel over the span of the labels, and periodic kernels.

The smooth kernel is a mean of Matern kernels with smoothness 3/2. Its features are cosines over an
interval around the times, each weighted by the spectral density of the kernel at its frequency
(A. Solin, S. Särkkä: Hilbert space methods for reduced-rank Gaussian process regression, 2020). The
features of a period are its harmonics. So the computing time is linear in the number of times, and new
times have features too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fillrank.errors import InputError, Setting
from fillrank.features.blocks import TimeBasis, TimeCode
from fillrank.features.kernel_features import KernelFeatures
from fillrank.runtime.memory import check_memory
from fillrank.table.labels import as_labels
from fillrank.table.times import as_period, as_positions, as_times

# 365.25 days, because a year of 365 days is off by a month after 120 years.
_PERIODS_OF_DATES = ("1D", "7D", "365.25D")
# Length scales of the smooth kernel as fractions of the span, and the fewest steps that one may have.
_SCALES, _FEWEST_STEPS = (1 / 4, 1 / 16, 1 / 64), 3
# The cosines are over an interval this many times as long as the span. Near its ends the kernel is not
# exact.
_MARGIN = 1.5
# Chosen on validation days of a table of daily passengers. More cosines did not help: these have 95% of
# the variance of the kernel.
_MOST_COSINES, _MOST_HARMONICS = 60, 10


@dataclass(frozen=True, eq=False, repr=False)
class TimeFeatures(KernelFeatures):
    """Features of times, from `times`.

    Attributes
    ----------
    values : ndarray (m, p)
        The features. Their scales are part of the kernel: do not standardise them.
    labels : ndarray (m,)
        The times as they were given.
    basis : TimeBasis
        The terms, with which new times get their features.
    """

    labels: np.ndarray
    basis: TimeBasis
    block_name = "times"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the terms, such as "trend 3" and "7D cos 1"."""
        return self.basis.names

    def at(self, labels: Any) -> TimeFeatures:
        """The features of other times, with the same terms.

        The trend continues for a quarter of the span of the fitted times, and is constant from there on.

        Parameters
        ----------
        labels : array of dates, text or numbers
            Numbers if the fitted times were numbers; otherwise dates or text.

        Returns
        -------
        TimeFeatures

        Examples
        --------
        >>> times([1, 2, 3, 4]).at([5]).values.shape
        (1, 3)
        """
        labels = as_labels(labels)
        return TimeFeatures(terms_at(labels, self.basis), labels, self.basis)

    def code(self, means: np.ndarray, directions: np.ndarray) -> TimeCode:
        """How new rows get their values: by their times."""
        return TimeCode(self.basis, means, directions)

    def __repr__(self) -> str:
        m, p = self.values.shape
        return f"<TimeFeatures: {m:,} times x {p:,} terms>"


def times(labels: Any, periods: Any = None) -> TimeFeatures:
    """Features of rows or columns whose labels are times.

    Rows with near times get similar factors, and so do rows in the same phase of a period. So a row
    without entries is predicted from its neighbours, its weekday and its season.

    Parameters
    ----------
    labels : array of dates, text or numbers
        Dates (of numpy, Python, pandas or polars), ISO text such as "2024-05-01" or "2024-05-01 13:00",
        or numbers. Times may be repeated. A time with a zone is its local time.
    periods : list of periods, optional
        Text such as "1D", "12h" or "30min", or timedeltas; numbers if the labels are numbers. By default
        ("1D", "7D", "365.25D") for dates, and none for numbers. A period below two steps or longer than
        the span of the times is left out. A step is the median distance of neighbouring times.

    Returns
    -------
    TimeFeatures
        ``values`` has at most 60 terms of the trend, and at most 20 for each period.

    Examples
    --------
    >>> import numpy as np
    >>> days = np.arange("2024-03-01", "2024-03-29", dtype="datetime64[D]")
    >>> features = times(days)
    >>> features
    <TimeFeatures: 28 times x 33 terms>
    >>> features.names[-2:]
    ('7D cos 3', '7D sin 3')
    """
    labels = as_labels(labels)
    found = as_times(labels)
    of_dates = found.dtype.kind == "M"
    positions = as_positions(found)
    distinct = np.unique(positions)
    if len(distinct) < 2:
        raise InputError(
            f"time features need at least 2 different times; got {len(distinct)}",
            advice="Leave them out for this table.",
        )
    basis = _basis(distinct, _named_periods(periods, of_dates), of_dates)
    return TimeFeatures(_terms(positions, basis), labels, basis)


def _named_periods(periods: Any, of_dates: bool) -> dict[str, float]:
    """The periods by their names, in the unit of the positions."""
    if periods is None:
        periods = _PERIODS_OF_DATES if of_dates else ()
    if not isinstance(periods, list | tuple):
        raise InputError(
            place=Setting("periods"), allowed='a list such as ["1D", "7D"]', value=periods
        )
    return {str(period): as_period(period, of_dates, "periods") for period in periods}


def _basis(distinct: np.ndarray, periods: dict[str, float], of_dates: bool) -> TimeBasis:
    """The terms for different times in ascending order."""
    span = float(distinct[-1] - distinct[0])
    step = float(np.median(np.diff(distinct)))
    trend = _trend(span, step, len(distinct) - 1)
    parts = [trend]
    for name, period in periods.items():
        if 2 * step <= period <= span:
            parts.append(_harmonics(name, period, step))
    return TimeBasis(
        of_dates,
        origin=float(distinct[0] + span / 2),
        reach=_MARGIN * span / 2,
        n_trend=len(trend.names),
        frequencies=np.concatenate([part.frequencies for part in parts]),
        phases=np.concatenate([part.phases for part in parts]),
        weights=np.concatenate([part.weights for part in parts]),
        names=tuple(name for part in parts for name in part.names),
    )


class _Part(NamedTuple):
    """The terms of one kernel."""

    frequencies: np.ndarray
    phases: np.ndarray
    weights: np.ndarray
    names: list[str]


def _trend(span: float, step: float, most: int) -> _Part:
    """The terms of the smooth kernel, whose variance is 1.

    The cosines have no slope at the ends of their interval, so the trend can be continued as a constant.
    The constant one is left out: features are centred.
    """
    reach = _MARGIN * span / 2
    order = np.arange(1, min(most, _MOST_COSINES) + 1)
    frequencies = order * np.pi / (2 * reach)
    scales = [span * scale for scale in _SCALES if span * scale >= _FEWEST_STEPS * step]
    if not scales:
        scales = [span * _SCALES[0]]
    density = np.mean([_matern_density(frequencies, scale) for scale in scales], axis=0)
    names = [f"trend {j}" for j in order]
    return _Part(frequencies, frequencies * reach, np.sqrt(density / reach), names)


def _matern_density(frequencies: np.ndarray, scale: float) -> np.ndarray:
    """The spectral density of the Matern kernel with smoothness 3/2 and variance 1."""
    rate = np.sqrt(3) / scale
    return 4 * rate**3 / (rate**2 + frequencies**2) ** 2


def _harmonics(name: str, period: float, step: float) -> _Part:
    """The terms of a periodic kernel of variance 1; that of harmonic h is proportional to 1 / h.

    Times at even steps do not tell higher harmonics than period / (2 steps) from lower ones.
    """
    highest = min(int(period / (2 * step) + 1e-9), _MOST_HARMONICS)
    order = np.arange(1, highest + 1)
    weights = np.sqrt(1 / order / np.sum(1 / order))
    return _Part(
        np.repeat(2 * np.pi * order / period, 2),
        np.tile([0, -np.pi / 2], highest),
        np.repeat(weights, 2),
        [f"{name} {wave} {h}" for h in order for wave in ("cos", "sin")],
    )


def terms_at(labels: np.ndarray, basis: TimeBasis) -> np.ndarray:
    """The values (n, p) of the terms at other times; dates if those of the fit were, else numbers."""
    found = as_times(labels)
    if (found.dtype.kind == "M") != basis.of_dates:
        raise InputError(
            place="labels",
            allowed=f"{'dates' if basis.of_dates else 'numbers'}, as at the fit",
            value=labels[0],
        )
    return _terms(as_positions(found), basis)


def _terms(positions: np.ndarray, basis: TimeBasis) -> np.ndarray:
    """The values of the terms, made column by column to save memory."""
    m, p = len(positions), len(basis.names)
    check_memory(8 * m * p, f"{p} features of {m:,} times", "Give fewer periods.")
    x = positions - basis.origin
    clamped = np.clip(x, -basis.reach, basis.reach)
    values = np.empty((m, p), order="F")
    for k in range(p):
        position = clamped if k < basis.n_trend else x
        column = np.cos(basis.frequencies[k] * position + basis.phases[k], out=values[:, k])
        column *= basis.weights[k]
    return values
