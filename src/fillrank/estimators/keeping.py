"""Models as files: what is kept of a fitted model, and how it comes back."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from reprlib import repr as in_short
from typing import Any, ClassVar, Literal, NamedTuple, Self

import narwhals as nw
import numpy as np
from sklearn.utils.validation import check_is_fitted

from fillrank.errors import FillrankError, InputError, NotSupportedError, ReadError
from fillrank.estimators.fitted import Fitted
from fillrank.posterior.validation import check_summary
from fillrank.storage.array_file import Content, read, write
from fillrank.storage.serialization import Labels, pack, unpack_all
from fillrank.table.entries import compact_floats
from fillrank.table.frames import Origin
from fillrank.table.labels import check_unique
from fillrank.table.observations import Observations
from fillrank.validation import check_integer
from fillrank.version import __version__

_KIND = "model"
METHODS = (
    "BPMF",
    "GASR",
    "HASI",
    "IPM3F",
    "M3F",
    "RelaxedSpectral",
    "SoftImpute",
    "SoftImputeALS",
)
# Of the machine on which a model was fitted, and not of the model: a file must not choose a folder.
_STAYS_BEHIND = {"checkpoint"}
# A file must not ask for more threads than any machine has.
_MOST_THREADS = 1024
_Field = str | int | float | bool | None


class _Entries(NamedTuple):
    """The entries that a model was fitted on."""

    row_index: np.ndarray
    column_index: np.ndarray
    values: np.ndarray


class _Table(NamedTuple):
    """The table that a model was fitted on: its names and kind; its entries only if asked for."""

    row_labels: Labels
    column_labels: Labels
    layout: Literal["long", "wide", "matrix", "sparse", "triplets"]
    backend: Literal["pandas", "polars", "pyarrow", "modin", "cudf"] | None
    row_field: _Field
    column_field: _Field
    value_field: _Field
    rows_in_index: bool
    entries: _Entries | None


class Keeping(Fitted):
    """A method whose fitted models can be kept in files."""

    # Fitted attributes that a file holds, if the model has them, with their types.
    _kept: ClassVar[dict[str, Any]] = {
        "n_features_in_": int,
        "feature_names_in_": Labels,
        "folded_in_": list[Literal["rows", "columns"]],
    }
    # Those without which a model is none.
    _needed: ClassVar[set[str]] = {
        "history_",
        "n_features_in_",
        "posterior_",
        "rank_",
        "stop_reason_",
    }

    def save(self, path: str | os.PathLike[str], *, with_data: bool = False) -> None:
        """Keep the fitted model in a file: numbers and names, nothing that could be run.

        The file is in the safetensors format. A model that is loaded from it predicts the same bits.

        Parameters
        ----------
        path : path
            An existing file is replaced once the new one is whole.
        with_data : bool
            Whether the entries that the model was fitted on go into the file. Without them, it cannot
            tell which cells were observed: `predict_missing` and `sample_completions` need that, and
            `recommend` to leave out what was seen. The names of rows and columns are always there.
        """
        check_is_fitted(self)
        method = type(self).__name__
        if method not in METHODS:
            raise NotSupportedError(
                f"models of {', '.join(METHODS)} can be kept in files; got one of {method}, which no "
                "one else could load. Use pickle for methods of your own."
            )
        if with_data:
            self._check_entries("Save it without, or fit it again.")
        settings = {
            name: _plain(value)
            for name, value in self.get_params(deep=False).items()
            if name not in _STAYS_BEHIND
        }
        fitted = {name: getattr(self, name) for name in self._kept if hasattr(self, name)}
        parts = fitted | {
            "settings": settings,
            "table": _table_of(self.observations_, with_data),
        }
        hint = _hint_of(type(self), parts.keys())
        tree, arrays = pack(hint, hint(**parts))
        about = {
            "method": method,
            "made_by": f"fillrank {__version__}",
            "parts": tree,
        }
        write(path, Content(_KIND, about, arrays))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The model that `save` has kept in a file.

        Parameters
        ----------
        path : path
            Nothing in the file is run, and what does not fit together is refused; so a file may come
            from anyone, though what it predicts is as good as who made it.

        Raises
        ------
        ReadError
            The file is not there, not a model, damaged, made by a newer version, or of another method
            than the one asked for. `fillrank.load` takes all methods.
        """
        content = read(path, _KIND)
        try:
            return _unpacked(cls, content)
        except FillrankError as error:
            raise ReadError(f"{Path(path)} cannot be loaded: {error}") from error

    def _check_loaded(self) -> None:
        """Raise ReadError if parts are not there, or do not fit together."""
        if missing := self._needed - vars(self).keys():
            raise ReadError(f"it lacks {', '.join(sorted(missing))}.")
        if self.n_features_in_ != self.observations_.shape[1]:
            raise ReadError("its number of columns is not that of its table.")
        named = vars(self).get("feature_names_in_", self.observations_.column_labels)
        if named.size != self.n_features_in_:
            raise ReadError("its features are not the columns of its table.")
        check_summary(vars(self))


def load(path: str | os.PathLike[str]) -> Any:
    """A fitted model from the file in which its `save` has kept it.

    Parameters
    ----------
    path : path
        Nothing in the file is run, and what does not fit together is refused.

    Returns
    -------
    model
        Of the method that it was.

    Examples
    --------
    >>> import fillrank as fr, os, tempfile
    >>> data, truth = fr.synthetic(60, 40, rank=2, noise=0.1, missing=0.5, random_state=0)
    >>> model = fr.SoftImpute(penalty=1.0).fit(data)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(os.path.join(folder, "model.fillrank"))
    ...     again = fr.load(os.path.join(folder, "model.fillrank"))
    >>> bool(again.predict(0, 5) == model.predict(0, 5))
    True
    """
    return Keeping.load(path)


def _hint_of(method: type[Keeping], names: Iterable[str]) -> Any:
    """The type of what a file of a method holds, if it has the parts of these names."""
    hints = {"settings": dict[str, Any], "table": _Table} | method._kept
    if unknown := set(names) - hints.keys():
        raise ReadError(f"{method.__name__} has no such parts: {in_short(sorted(unknown))}.")
    return NamedTuple("Parts", [(name, hints[name]) for name in names])


def _plain(value: Any) -> Any:
    """A setting as JSON can hold it; a source of random numbers stays behind."""
    if isinstance(value, np.random.Generator | np.random.RandomState):
        return None
    if np.ndim(value) > 0:
        return np.asarray(value).tolist()
    return value.item() if isinstance(value, np.generic) else value


def _table_of(observations: Observations, with_data: bool) -> _Table:
    origin = observations.origin
    entries = None
    if with_data:
        entries = _Entries(observations.row_index, observations.column_index, observations.values)
    return _Table(
        observations.row_labels,
        observations.column_labels,
        origin.layout,
        None if origin.backend is None else origin.backend.value,
        origin.row_field,
        origin.column_field,
        origin.value_field,
        origin.rows_in_index,
        entries,
    )


def _unpacked(cls: type, content: Content) -> Any:
    about = content.about
    method, parts = about.get("method"), about.get("parts")
    if not isinstance(method, str) or method not in METHODS or not isinstance(parts, dict):
        raise ReadError(f"its method must be one of {', '.join(METHODS)}, got {method!r} instead.")
    # The package knows where its methods live; this module must not, for they derive from it.
    found: Any = getattr(importlib.import_module("fillrank"), method)
    if not issubclass(found, cls):
        raise ReadError(f"it is a model of {method}, not of {cls.__name__}. Use fillrank.load.")
    values = unpack_all(_hint_of(found, parts), parts, content.arrays)._asdict()
    model = _with_settings(found, values.pop("settings", {}))
    model.observations_ = _observations_of(values.pop("table", None))
    for name, value in values.items():
        setattr(model, name, value)
    model._check_loaded()
    return model


def _with_settings(found: Any, settings: dict[str, Any]) -> Any:
    if unknown := settings.keys() - set(found._get_param_names()) | settings.keys() & _STAYS_BEHIND:
        raise ReadError(f"it has settings that are not known: {in_short(sorted(unknown))}.")
    if (n_threads := settings.get("n_threads")) is not None:
        check_integer("n_threads", n_threads, 1, _MOST_THREADS)
    return found(**settings)


def _observations_of(table: _Table | None) -> Observations:
    if table is None:
        raise ReadError("it does not say which table it was fitted on.")
    try:
        check_unique(table.row_labels, "row")
        check_unique(table.column_labels, "column")
    except InputError as error:
        raise ReadError(f"its names are not names: {error}") from error
    shape = len(table.row_labels), len(table.column_labels)
    if 0 in shape:
        raise ReadError("its table has no rows, or no columns.")
    none = np.zeros(0, dtype=np.int32)
    entries = table.entries or _Entries(none, none, np.zeros(0))
    if table.entries is not None:
        _check_entries(entries, shape)
    backend = None
    if table.backend is not None and find_spec(table.backend) is not None:
        backend = nw.Implementation.from_string(table.backend)
    origin = Origin(
        table.layout,
        backend,
        table.row_field,
        table.column_field,
        table.value_field,
        table.rows_in_index,
    )
    pointers = np.searchsorted(entries.row_index, np.arange(shape[0] + 1))
    return Observations(
        pointers,
        entries.column_index,
        compact_floats(entries.values),
        table.row_labels,
        table.column_labels,
        origin,
    )


def _check_entries(entries: _Entries, shape: tuple[int, int]) -> None:
    """Entries as Observations hold them: within the table, in order, each cell once."""
    i, j, values = entries
    sound = (
        i.dtype == j.dtype == np.int32
        and values.dtype == np.float64
        and i.ndim == 1
        and i.shape == j.shape == values.shape
        and i.size > 0
        and np.isfinite(values).all()
        and all((k >= 0).all() and (k < n).all() for k, n in zip((i, j), shape, strict=True))
        and (np.diff(i.astype(np.int64) * shape[1] + j) > 0).all()
    )
    if not sound:
        raise ReadError("its entries are not those of a table of its size.")
