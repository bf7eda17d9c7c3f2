"""Conversion from and to data frames of any library that narwhals supports.

No data frame library is imported here, only used if the user has imported it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import narwhals as nw
import numpy as np

from fillrank.errors import InputError, UnknownNameError
from fillrank.table.frame_columns import number_column
from fillrank.table.labels import as_labels, format_labels, replace_surrogates
from fillrank.table.layout import LongFields
from fillrank.table.missing_values import NO_MISSING_VALUES, MissingValues
from fillrank.table.number_text import NO_STYLE, StyleOptions
from fillrank.table.restore import restore_column

if TYPE_CHECKING:
    from fillrank.table.observations import Observations


class PassiveColumn(NamedTuple):
    """A column that is not fitted, and returned as it is.

    ``position`` is that in the table, with all of its columns; ``values`` are a column of its library,
    or a list of text.
    """

    position: int
    label: Any
    values: Any


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
    label_position : int
        The position of the column of row labels in a wide table.
    passive : tuple of PassiveColumn
        The columns of a wide table that are not fitted.
    index : pandas.Index or None
        The index of a wide table, if it does not have the row labels, or has several levels.
    column_levels : tuple of names or None
        The names of the levels of the columns in pandas, if there are several.
    """

    layout: Literal["long", "wide", "matrix", "sparse", "triplets"]
    backend: Any = None
    row_field: Any = None
    column_field: Any = None
    value_field: Any = None
    rows_in_index: bool = False
    label_position: int = 0
    passive: tuple[PassiveColumn, ...] = ()
    index: Any = None
    column_levels: tuple[Any, ...] | None = None


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
    frame: nw.DataFrame[Any],
    fields: LongFields,
    missing: MissingValues = NO_MISSING_VALUES,
    style: StyleOptions = NO_STYLE,
) -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray | None], Origin]:
    """Row labels, column labels and values of a long table, and its origin.

    If some values are limits, the values are their lower and upper ends; the upper ones are None if all
    are exact.
    """
    check_fields(frame.columns, fields)
    rows, columns, values = (frame.get_column(field) for field in fields)
    origin = Origin("long", frame.implementation, *fields)
    ends = number_column(values, missing, style)
    return as_labels(rows.to_numpy()), as_labels(columns.to_numpy()), ends, origin


def check_fields(columns: Sequence[str], fields: Iterable[Any]) -> None:
    """Raise UnknownNameError if a table does not have one of the fields."""
    for field in fields:
        if field not in columns:
            raise UnknownNameError(
                f"there is no column {field!r}; the columns are {', '.join(map(repr, columns))}."
            )


def has_labels(index: Any) -> bool:
    """Whether a pandas index is more than the default count of rows."""
    return not (type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1)


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
    in_pandas = origin.backend.is_pandas_like()
    if in_pandas and not in_column and _is_plain(observations):
        return _with_index(observations, matrix)
    columns = restore_columns(observations, matrix, origin.backend)
    cells = name_cells(observations, columns, origin.backend)
    others = [*origin.passive]
    if (in_column or not in_pandas) and origin.row_field is not None:
        field = unused_name(origin.row_field, cells)
        row_labels = typed_labels(observations.row_labels)
        others.append(PassiveColumn(origin.label_position, field, row_labels))
    for column in sorted(others, key=lambda column: column.position):
        cells = insert_column(cells, *column)
    if in_pandas:
        return _pandas_frame(observations, cells, in_column)
    return nw.from_dict(cells, backend=origin.backend).to_native()


def _is_plain(observations: Observations) -> bool:
    """Whether all columns are plain numbers, and there are no others."""
    origin = observations.origin
    return observations.column_types is None and not origin.passive and origin.index is None


def _with_index(observations: Observations, matrix: np.ndarray) -> Any:
    library = observations.origin.backend.to_native_namespace()
    names = _frame_labels(observations.column_labels)
    return library.DataFrame(
        matrix,
        index=_index(observations),
        columns=_columns(observations.origin, names),
    )


def _columns(origin: Origin, names: Any) -> Any:
    """The columns of a table of pandas, with the levels that they had."""
    library = origin.backend.to_native_namespace()
    if origin.column_levels is not None and all(isinstance(name, tuple) for name in names):
        return library.MultiIndex.from_tuples(names, names=origin.column_levels)
    return library.Index(names, name=origin.column_field)


def _index(observations: Observations) -> Any:
    """The index of a table of pandas whose row labels are in the index."""
    origin = observations.origin
    if origin.index is not None:
        return origin.index
    library = origin.backend.to_native_namespace()
    return library.Index(_frame_labels(observations.row_labels), name=origin.row_field)


def restore_columns(observations: Observations, matrix: np.ndarray, backend: Any) -> list[Any]:
    """The columns of a completed matrix, in their own types, for a library of data frames."""
    types = observations.column_types
    if types is None:
        return [matrix[:, j] for j in range(matrix.shape[1])]
    is_whole = np.ones(len(types), dtype=bool)
    fractions = observations.column_index[observations.stored_values % 1 != 0]
    is_whole[fractions] = False
    return [
        restore_column(matrix[:, j], kind, backend, bool(is_whole[j]))
        for j, kind in enumerate(types)
    ]


def name_cells(observations: Observations, columns: list[Any], backend: Any) -> dict[Any, Any]:
    """Columns by their names, which are text in all libraries but pandas."""
    labels = observations.column_labels
    names = _frame_labels(labels).tolist()
    if not backend.is_pandas_like():
        names = [replace_surrogates(str(label)) for label in labels]
    if len(set(names)) < len(names):
        raise InputError(
            "column names of this kind of table are text, but two of the column labels are the same "
            f"as text: {format_labels(labels)}. Rename them before fitting."
        )
    return dict(zip(names, columns, strict=True))


def insert_column(cells: dict[Any, Any], position: int, name: Any, values: Any) -> dict[Any, Any]:
    """Columns with one more at a position."""
    items = list(cells.items())
    return dict([*items[:position], (name, values), *items[position:]])


def _pandas_frame(observations: Observations, cells: dict[Any, Any], in_column: bool) -> Any:
    """A table of pandas, with the index and the name of the columns that it had."""
    origin = observations.origin
    library = origin.backend.to_native_namespace()
    aligned = {
        name: values.reset_index(drop=True) if isinstance(values, library.Series) else values
        for name, values in cells.items()
    }
    table = library.DataFrame(aligned)
    if not in_column or origin.index is not None:
        table.index = _index(observations)
    table.columns = _columns(origin, list(cells))
    return table


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
        row_field: typed_labels(as_labels(rows)),
        column_field: typed_labels(as_labels(columns)),
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
    return to_label_table(observations, "columns", columns, fields)


def to_label_table(
    observations: Observations,
    side: Literal["rows", "columns"],
    labels: Any,
    fields: Mapping[str, np.ndarray],
) -> Any:
    """Make a table of results for rows, or for columns, with their labels first; see `to_long`."""
    name_of_labels = _long_fields(observations.origin)[0 if side == "rows" else 1]
    table = {name_of_labels: typed_labels(as_labels(labels))}
    for name, values in fields.items():
        table[unused_name(name, table)] = np.asarray(values)
    return to_frame(observations, table)


def to_frame(observations: Observations, fields: Mapping[Any, np.ndarray]) -> Any:
    """Make a data frame in the library that the entries came from, or as `to_long` does without one."""
    return new_frame(fields, observations.origin.backend)


def new_frame(fields: Mapping[Any, np.ndarray], backend: Any = None) -> Any:
    """Make a data frame in a library, or in one that is installed; a dict of arrays if none is."""
    backend = backend or installed_backend()
    return fields if backend is None else nw.from_dict(fields, backend=backend).to_native()


def with_row_labels(table: Any, labels: np.ndarray) -> Any:
    """The table with these labels as its index, if its library has one."""
    frame = nw.from_native(table, pass_through=True)
    if isinstance(frame, nw.DataFrame) and frame.implementation.is_pandas_like():
        return table.set_axis(_frame_labels(labels), axis=0)
    return table


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


def installed_backend() -> Literal["pandas", "polars", "pyarrow"] | None:
    """A library of data frames that is installed."""
    libraries: tuple[Literal["pandas", "polars", "pyarrow"], ...] = ("pandas", "polars", "pyarrow")
    return next((library for library in libraries if find_spec(library)), None)


def typed_labels(labels: np.ndarray) -> np.ndarray:
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
    return to_wide(observations, put_observed(observations, matrix))


def put_observed(observations: Observations, matrix: np.ndarray) -> np.ndarray:
    """Put the observed values into the matrix, in place.

    A value that is known to be in an interval is the predicted one, or the end that is closest to it.
    """
    rows, columns, values = observations.row_index, observations.column_index, observations.values
    if observations.cells is not None and observations.intervals is not None:
        is_interval = observations.cells >= 0
        low, high = observations.intervals[observations.cells].T
        predicted = matrix[rows, columns]
        within = np.where(np.isnan(predicted), values, np.clip(predicted, low, high))
        values = np.where(is_interval, within, values)
    matrix[rows, columns] = values
    return matrix
