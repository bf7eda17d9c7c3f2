"""Conversion from and to data frames of any library that narwhals supports.

No data frame library is imported here, only used if the user has imported it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import narwhals as nw
import numpy as np

from fillrank.errors import InputError, Setting, UnknownNameError
from fillrank.table.labels import as_labels, check_unique, format_labels, replace_surrogates
from fillrank.table.layout import LONG_HINT, LongFields

if TYPE_CHECKING:
    from fillrank.table.observations import Observations

PANDAS_STORED_INDEX = "__index_level_0__"  # pandas' name for an unnamed index in Parquet


class Origin(NamedTuple):
    """The kind of data that entries came from, so that results are returned in the same kind.

    Attributes
    ----------
    layout : {"long", "wide", "matrix", "sparse", "triplets"}
    backend : narwhals.Implementation or None
        The library of the data frame; None for other data.
    row_field, column_field, value_field : name or None
        The columns of a long table. For a wide table, ``row_field`` is the column of row labels or
        the name of the index, and ``column_field`` the name of the columns in pandas.
    rows_in_index : bool
        Whether the row labels of a wide table are a pandas index.
    """

    layout: Literal["long", "wide", "matrix", "sparse", "triplets"]
    backend: Any = None
    row_field: Any = None
    column_field: Any = None
    value_field: Any = None
    rows_in_index: bool = False


class WideTable(NamedTuple):
    """A wide table as an array with NaN, with its labels."""

    matrix: np.ndarray
    row_labels: np.ndarray
    column_labels: np.ndarray
    origin: Origin


def is_data_frame(data: Any) -> bool:
    """Whether ``data`` is a data frame, which may be lazy."""
    try:
        frame = nw.from_native(data, pass_through=True)
    except nw.exceptions.DuplicateError:
        return True
    return isinstance(frame, (nw.DataFrame, nw.LazyFrame))


def as_frame(table: Any) -> nw.DataFrame[Any]:
    """Wrap a data frame in narwhals; raise InputError if it is lazy or not a data frame."""
    try:
        frame: Any = nw.from_native(table, pass_through=True)
    except nw.exceptions.DuplicateError as error:
        raise InputError(
            f"every column of a table needs its own name ({error})", advice="Rename them first."
        ) from error
    if isinstance(frame, nw.LazyFrame):
        raise InputError("the table must be in memory; got a lazy frame. Call .collect() first.")
    if not isinstance(frame, nw.DataFrame):
        raise InputError(
            "a table must be a pandas, polars or pyarrow data frame (or another that narwhals "
            f"supports); got {type(table).__name__}. Use from_matrix for arrays."
        )
    return frame


def long_columns(
    frame: nw.DataFrame[Any], fields: LongFields
) -> tuple[np.ndarray, np.ndarray, np.ndarray, Origin]:
    """Row labels, column labels and values of a long table, and its origin."""
    check_fields(frame.columns, fields)
    rows, columns, values = (frame.get_column(field) for field in fields)
    origin = Origin("long", frame.implementation, *fields)
    return as_labels(rows.to_numpy()), as_labels(columns.to_numpy()), real_column(values), origin


def check_fields(columns: Sequence[str], fields: Iterable[Any]) -> None:
    """Raise UnknownNameError if a table does not have one of the fields."""
    for field in fields:
        if field not in columns:
            raise UnknownNameError(
                f"there is no column {field!r}; the columns are {', '.join(map(repr, columns))}."
            )


def wide_table(frame: nw.DataFrame[Any]) -> WideTable:
    """The cells and labels of a wide table.

    Row labels are the index of a pandas table, unless it is a default RangeIndex; otherwise the only
    column of text or dates; otherwise 0, 1, 2, ...
    """
    native = frame.to_native()
    pandas_like = frame.implementation.is_pandas_like()
    column_labels = as_labels(native.columns if pandas_like else frame.columns)
    columns = list(frame.iter_columns())
    label_column = None
    if not (pandas_like and has_labels(native.index)):
        label_column = _find_label_column(columns)
    cells = [column for j, column in enumerate(columns) if j != label_column]
    matrix = np.empty((len(frame), len(cells)))
    for j, column in enumerate(cells):
        matrix[:, j] = real_column(column)

    if label_column is not None:
        row_labels = as_labels(columns[label_column].to_numpy())
        row_field = columns[label_column].name
        column_labels = np.delete(column_labels, label_column)
    elif pandas_like:
        row_labels, row_field = as_labels(native.index), native.index.name
    else:
        row_labels, row_field = np.arange(len(frame)), None
    check_unique(row_labels, "row")
    check_unique(column_labels, "column")
    return WideTable(
        matrix,
        row_labels,
        column_labels,
        Origin(
            "wide",
            frame.implementation,
            row_field=row_field,
            column_field=native.columns.name if pandas_like else None,
            rows_in_index=pandas_like and label_column is None,
        ),
    )


def wide_weights(weights: Any, table: WideTable) -> Any:
    """The weights of the cells of a wide table, given as a data frame or an array."""
    if not is_data_frame(weights):
        return weights
    matrix, row_labels, column_labels, _ = wide_table(as_frame(weights))
    for axis, given, own in (
        ("row", row_labels, table.row_labels),
        ("column", column_labels, table.column_labels),
    ):
        if given.tolist() != own.tolist():
            raise InputError(
                place=Setting("weights"),
                allowed=f"an array, or a table with the {axis} labels of X, {format_labels(own)}",
                value=given.tolist(),
            )
    return matrix


def has_labels(index: Any) -> bool:
    """Whether a pandas index is more than the default count of rows."""
    return not (type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1)


def _find_label_column(columns: list[nw.Series[Any]]) -> int | None:
    """The position of the only column that can contain labels, but not values."""
    found = [j for j, column in enumerate(columns) if _has_label_type(column)]
    return found[0] if len(found) == 1 else None


def _has_label_type(column: nw.Series[Any]) -> bool:
    if column.null_count() == len(column):
        return False  # the type of a column without values is arbitrary
    is_text = column.dtype in (nw.String, nw.Categorical) or isinstance(column.dtype, nw.Enum)
    is_date = isinstance(column.dtype, (nw.Date, nw.Datetime))
    return is_text or is_date or column.name == PANDAS_STORED_INDEX


def real_column(column: nw.Series[Any]) -> np.ndarray:
    """Convert a column to float64, with NaN for null; raise InputError if it is not numeric."""
    if column.null_count() == len(column):
        return np.full(len(column), np.nan)
    if not (column.dtype.is_numeric() or column.dtype == nw.Boolean):
        raise InputError(
            f"column {column.name!r} must contain real numbers; got {column.dtype}",
            advice=["Convert or remove it.", LONG_HINT],
        )
    return column.cast(nw.Float64).to_numpy()


def to_wide(observations: Observations, matrix: np.ndarray) -> Any:
    """Convert a completed matrix to the kind of data that the entries came from.

    Parameters
    ----------
    observations : Observations
    matrix : ndarray of shape ``observations.shape``

    Returns
    -------
    ndarray or data frame
        A data frame of the same library if the entries came from one, long or wide; otherwise
        ``matrix``.

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
        index=library.Index(_frame_labels(observations.row_labels), name=origin.row_field),
        columns=library.Index(_frame_labels(observations.column_labels), name=origin.column_field),
    )


def _with_label_column(observations: Observations, matrix: np.ndarray) -> Any:
    """A frame with the row labels, if it had any, in its first column."""
    origin = observations.origin
    labels = observations.column_labels
    in_pandas = origin.backend.is_pandas_like()
    names = _frame_labels(labels).tolist()
    if not in_pandas:
        names = [replace_surrogates(str(label)) for label in labels]
    if len(set(names)) < len(names):
        raise InputError(
            "column names of this kind of table are text, but two of the column labels are the same "
            f"as text: {format_labels(labels)}. Rename them before fitting."
        )
    cells: dict[Any, Any] = {name: matrix[:, j] for j, name in enumerate(names)}
    if origin.row_field is not None:
        field = unused_name(origin.row_field, cells)
        cells = {field: _typed_labels(observations.row_labels)} | cells
    return nw.from_dict(cells, backend=origin.backend).to_native()


def to_long(
    observations: Observations, rows: Any, columns: Any, fields: Mapping[str, np.ndarray]
) -> Any:
    """Make a long table of results for single cells, in the library that the entries came from.

    Parameters
    ----------
    observations : Observations
    rows, columns : array
        The labels of the row and the column of each cell.
    fields : mapping of field name to array
        The results for each cell. The field "value" is renamed to the value column of the original
        long table.

    Returns
    -------
    data frame or dict of arrays
        If the entries did not come from a data frame: of pandas, polars or pyarrow, whichever is
        installed; a dict if none is.

    Examples
    --------
    >>> from fillrank import Observations
    >>> observations = Observations.from_triplets(["Ana", "Ben"], ["tea", "milk"], [5, 2])
    >>> to_long(observations, ["Ana"], ["milk"], {"value": [3.5]}).to_dict("list")
    {'row': ['Ana'], 'column': ['milk'], 'value': [3.5]}
    """
    row_field, column_field, value_field = _long_fields(observations.origin)
    table = {
        row_field: _typed_labels(as_labels(rows)),
        column_field: _typed_labels(as_labels(columns)),
    }
    for name, values in fields.items():
        table[unused_name(value_field if name == "value" else name, table)] = np.asarray(values)
    return to_frame(observations, table)


def to_column_table(
    observations: Observations, columns: Any, fields: Mapping[str, np.ndarray]
) -> Any:
    """Make a table of results for columns, with their labels first; see `to_long`.

    Examples
    --------
    >>> from fillrank import Observations
    >>> observations = Observations.from_triplets(["Ana", "Ben"], ["tea", "milk"], [5, 2])
    >>> to_column_table(observations, ["milk"], {"rmse": [0.5]}).to_dict("list")
    {'column': ['milk'], 'rmse': [0.5]}
    """
    table = {_long_fields(observations.origin)[1]: _typed_labels(as_labels(columns))}
    for name, values in fields.items():
        table[unused_name(name, table)] = np.asarray(values)
    return to_frame(observations, table)


def to_frame(observations: Observations, fields: Mapping[Any, np.ndarray]) -> Any:
    """Make a data frame in the library that the entries came from, or as `to_long` does without one."""
    backend = observations.origin.backend or _installed()
    return fields if backend is None else nw.from_dict(fields, backend=backend).to_native()


def _long_fields(origin: Origin) -> tuple[Any, Any, Any]:
    """The names of the row, column and value fields of a long table of results."""
    is_long = origin.layout == "long"
    row, column, value = (
        given if is_long and given is not None else default
        for given, default in zip(origin[2:5], ("row", "column", "value"), strict=True)
    )
    return row, column, value


def unused_name(name: Any, taken: Iterable[Any]) -> Any:
    """``name``, followed by underscores until it is not among the names ``taken``."""
    while name in taken:
        name = f"{name}_"
    return name


def _installed() -> Literal["pandas", "polars", "pyarrow"] | None:
    libraries: tuple[Literal["pandas", "polars", "pyarrow"], ...] = ("pandas", "polars", "pyarrow")
    return next((library for library in libraries if find_spec(library)), None)


def _typed_labels(labels: np.ndarray) -> np.ndarray:
    """Convert labels of mixed types to text, because the columns of data frames are typed."""
    if labels.dtype.kind == "O" and len({type(label) for label in labels}) > 1:
        labels = np.array([str(label) for label in labels], dtype=object)
    return _frame_labels(labels)


def _frame_labels(labels: np.ndarray) -> np.ndarray:
    """Labels that a data frame can store: text without lone surrogates."""
    if labels.dtype.kind != "O":
        return labels
    valid = np.empty(len(labels), dtype=object)
    valid[:] = [replace_surrogates(label) if isinstance(label, str) else label for label in labels]
    return valid


def fill_in(observations: Observations, matrix: np.ndarray) -> Any:
    """The matrix with the observed values put in, as the type of table that was given."""
    matrix[observations.row_index, observations.column_index] = observations.values
    return to_wide(observations, matrix)
