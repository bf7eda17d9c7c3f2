"""Data frames in and out, of any library that narwhals knows.

None of those libraries is imported here: a user who has one brings it along.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import narwhals as nw
import numpy as np

from fillrank.errors import InputError, UnknownNameError
from fillrank.table.formatting import as_unicode
from fillrank.table.labels import as_names, check_unique, listed
from fillrank.table.layout import LONG_HINT, LongFields

if TYPE_CHECKING:
    from fillrank.table.observations import Observations

PANDAS_STORED_INDEX = "__index_level_0__"  # what pandas calls an unnamed index in Parquet


class Origin(NamedTuple):
    """What the entries came from, so that results can go out in the same kind.

    Attributes
    ----------
    layout : {"long", "wide", "matrix", "sparse", "triplets"}
    backend : narwhals.Implementation or None
        The library of the data frame; None if there was none.
    row_field, column_field, value_field : name or None
        The columns of a long table. In a wide one ``row_field`` is the column of row names, or
        the name of the index, and ``column_field`` the name that pandas gives to the columns.
    rows_in_index : bool
        Whether a wide table had its row names in a pandas index.
    """

    layout: Literal["long", "wide", "matrix", "sparse", "triplets"]
    backend: Any = None
    row_field: Any = None
    column_field: Any = None
    value_field: Any = None
    rows_in_index: bool = False


class WideTable(NamedTuple):
    """A wide table as an array with NaN and its names."""

    matrix: np.ndarray
    row_labels: np.ndarray
    column_labels: np.ndarray
    origin: Origin


def is_table(data: Any) -> bool:
    """Say whether ``data`` is a data frame, be it lazy."""
    try:
        frame = nw.from_native(data, pass_through=True)
    except nw.exceptions.DuplicateError:
        return True
    return isinstance(frame, (nw.DataFrame, nw.LazyFrame))


def as_frame(table: Any) -> nw.DataFrame[Any]:
    """Wrap a data frame that is in memory."""
    try:
        frame: Any = nw.from_native(table, pass_through=True)
    except nw.exceptions.DuplicateError as error:
        raise InputError(
            f"every column of a table needs its own name. {error}\nRename them first."
        ) from error
    if isinstance(frame, nw.LazyFrame):
        raise InputError("the table must be in memory; got a lazy one. Call .collect() first.")
    if not isinstance(frame, nw.DataFrame):
        raise InputError(
            "a table must be a pandas, polars or pyarrow data frame (or another that narwhals "
            f"knows); got {type(table).__name__}. Use from_matrix for arrays."
        )
    return frame


def long_columns(
    frame: nw.DataFrame[Any], fields: LongFields
) -> tuple[np.ndarray, np.ndarray, np.ndarray, Origin]:
    """Give row names, column names and values of a long table, and its origin."""
    check_fields(frame.columns, fields)
    rows, names, values = (frame.get_column(field) for field in fields)
    origin = Origin("long", frame.implementation, *fields)
    return as_names(rows.to_numpy()), as_names(names.to_numpy()), real_column(values), origin


def check_fields(columns: Sequence[str], fields: LongFields) -> None:
    """Refuse fields that a table does not have."""
    for field in fields:
        if field not in columns:
            raise UnknownNameError(
                f"the table has no column {field!r}; it has {', '.join(map(repr, columns))}."
            )


def wide_table(frame: nw.DataFrame[Any]) -> WideTable:
    """Give the cells and names of a wide table.

    Row names are the index of a pandas table, if it is more than a count of rows; otherwise the
    only column of text or dates; otherwise 0, 1, 2, ...
    """
    native = frame.to_native()
    pandas_like = frame.implementation.is_pandas_like()
    names = as_names(native.columns if pandas_like else frame.columns)
    columns = list(frame.iter_columns())
    label_column = None
    if not (pandas_like and _is_meant(native.index)):
        label_column = _label_column(columns)
    cells = [column for j, column in enumerate(columns) if j != label_column]
    matrix = np.empty((len(frame), len(cells)))
    for j, column in enumerate(cells):
        matrix[:, j] = real_column(column)

    if label_column is not None:
        row_labels = as_names(columns[label_column].to_numpy())
        row_field = columns[label_column].name
        names = np.delete(names, label_column)
    elif pandas_like:
        row_labels, row_field = as_names(native.index), native.index.name
    else:
        row_labels, row_field = np.arange(len(frame)), None
    check_unique(row_labels, "row")
    check_unique(names, "column")
    return WideTable(
        matrix,
        row_labels,
        names,
        Origin(
            "wide",
            frame.implementation,
            row_field=row_field,
            column_field=native.columns.name if pandas_like else None,
            rows_in_index=pandas_like and label_column is None,
        ),
    )


def _is_meant(index: Any) -> bool:
    """Say whether a pandas index names the rows, rather than counting them by default."""
    return not (type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1)


def _label_column(columns: list[nw.Series[Any]]) -> int | None:
    """Find the only column that can name the rows and cannot hold values."""
    found = [j for j, column in enumerate(columns) if _can_name_rows(column)]
    return found[0] if len(found) == 1 else None


def _can_name_rows(column: nw.Series[Any]) -> bool:
    if column.null_count() == len(column):
        return False  # without any value, it has no type of its own
    is_text = column.dtype in (nw.String, nw.Categorical) or isinstance(column.dtype, nw.Enum)
    is_date = isinstance(column.dtype, (nw.Date, nw.Datetime))
    return is_text or is_date or column.name == PANDAS_STORED_INDEX


def real_column(column: nw.Series[Any]) -> np.ndarray:
    """Give a column as float64, with NaN for what is null; refuse what holds no real numbers."""
    if column.null_count() == len(column):
        return np.full(len(column), np.nan)
    if not (column.dtype.is_numeric() or column.dtype == nw.Boolean):
        raise InputError(
            f"column {column.name!r} must hold real numbers; got {column.dtype}. Convert it, or "
            f"leave it out. {LONG_HINT}"
        )
    return column.cast(nw.Float64).to_numpy()


def to_wide(observations: Observations, matrix: np.ndarray) -> Any:
    """Give a completed matrix as the kind of thing that the entries came from.

    Parameters
    ----------
    observations : Observations
    matrix : ndarray of shape ``observations.shape``

    Returns
    -------
    ndarray or data frame
        A data frame of the same library if the entries came from one, long or wide; else
        ``matrix`` itself.

    Examples
    --------
    >>> import numpy as np
    >>> from fillrank import Observations
    >>> observations = Observations.from_matrix([[1.0, np.nan], [3.0, 4.0]])
    >>> to_wide(observations, np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[1., 2.],
           [3., 4.]])
    """
    if matrix.shape != observations.shape:
        raise InputError(f"the matrix must be {observations.shape}; got {matrix.shape}.")
    origin = observations.origin
    if origin.backend is None:
        return matrix
    in_column = (
        origin.layout == "wide" and not origin.rows_in_index and origin.row_field is not None
    )
    if origin.backend.is_pandas_like() and not in_column:
        return _with_index(observations, matrix)
    return _with_label_column(observations, matrix)


def _with_index(observations: Observations, matrix: np.ndarray) -> Any:
    origin = observations.origin
    library = origin.backend.to_native_namespace()
    return library.DataFrame(
        matrix,
        index=library.Index(_writable(observations.row_labels), name=origin.row_field),
        columns=library.Index(_writable(observations.column_labels), name=origin.column_field),
    )


def _with_label_column(observations: Observations, matrix: np.ndarray) -> Any:
    """Make a frame whose row names, if it had any, are its first column."""
    origin = observations.origin
    labels = observations.column_labels
    in_pandas = origin.backend.is_pandas_like()
    names = _writable(labels).tolist() if in_pandas else [as_unicode(str(name)) for name in labels]
    if len(set(names)) < len(names):
        raise InputError(
            "columns of this kind of table are named by text, but two of the names are the same "
            f"as text: {listed(labels)}. Rename them before fitting."
        )
    cells: dict[Any, Any] = {name: matrix[:, j] for j, name in enumerate(names)}
    if origin.row_field is not None:
        field = free_name(origin.row_field, cells)
        cells = {field: _plain(observations.row_labels)} | cells
    return nw.from_dict(cells, backend=origin.backend).to_native()


def to_long(
    observations: Observations, rows: Any, columns: Any, fields: Mapping[str, np.ndarray]
) -> Any:
    """Give answers about single cells as a long table, of the library the entries came from.

    Parameters
    ----------
    observations : Observations
    rows, columns : array
        The names of the row and the column of each cell.
    fields : mapping of field name to array
        What there is to say of each cell. The field "value" takes the name that values had in
        the table that came in.

    Returns
    -------
    data frame or dict of arrays
        If the entries came from no data frame: pandas, polars or pyarrow, whichever is
        installed; a dict if none is.

    Examples
    --------
    >>> from fillrank import Observations
    >>> observations = Observations.from_triplets(["Ana", "Ben"], ["tea", "milk"], [5, 2])
    >>> to_long(observations, ["Ana"], ["milk"], {"value": [3.5]}).to_dict("list")
    {'row': ['Ana'], 'column': ['milk'], 'value': [3.5]}
    """
    origin = observations.origin
    is_long = origin.layout == "long"
    row_field, column_field, value_field = (
        given if is_long and given is not None else default
        for given, default in zip(origin[2:5], ("row", "column", "value"), strict=True)
    )
    table = {row_field: _plain(as_names(rows)), column_field: _plain(as_names(columns))}
    for name, values in fields.items():
        table[free_name(value_field if name == "value" else name, table)] = np.asarray(values)
    backend = origin.backend or _installed()
    return table if backend is None else nw.from_dict(table, backend=backend).to_native()


def free_name(name: Any, taken: Iterable[Any]) -> Any:
    """Give ``name``, with as many underscores behind it as it takes to be a new one."""
    while name in taken:
        name = f"{name}_"
    return name


def _installed() -> Literal["pandas", "polars", "pyarrow"] | None:
    libraries: tuple[Literal["pandas", "polars", "pyarrow"], ...] = ("pandas", "polars", "pyarrow")
    return next((library for library in libraries if find_spec(library)), None)


def _plain(labels: np.ndarray) -> np.ndarray:
    """Make text of names of mixed types, which a typed column cannot hold."""
    if labels.dtype.kind == "O" and len({type(name) for name in labels}) > 1:
        labels = np.array([str(name) for name in labels], dtype=object)
    return _writable(labels)


def _writable(labels: np.ndarray) -> np.ndarray:
    """Names that a data frame can hold: no part of any is less than a character."""
    if labels.dtype.kind != "O":
        return labels
    written = np.empty(len(labels), dtype=object)
    written[:] = [as_unicode(name) if isinstance(name, str) else name for name in labels]
    return written
