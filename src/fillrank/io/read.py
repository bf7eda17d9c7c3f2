"""Reading tables from files and from memory."""

from __future__ import annotations

import difflib
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import IO, Any, NamedTuple

from fillrank.errors import FileLocation, FillrankError, InputError, ReadError, Setting, Text
from fillrank.io.files import (
    DecodedText,
    decode_with_mark,
    is_open_file,
    read_bytes,
    read_content,
    read_only_member,
)
from fillrank.io.json_tables import at_record, read_json
from fillrank.io.matrix_market import read_matrix_market
from fillrank.io.numpy_files import read_npy, read_npz
from fillrank.io.parquet import ParquetFile, read_parquet_table
from fillrank.io.spreadsheets import read_sheet
from fillrank.io.text_header import KnownText
from fillrank.io.text_layout import ReadTable, read_text
from fillrank.io.typed_cells import JsonLayout, TypedCells, cell_text
from fillrank.table.frames import is_data_frame
from fillrank.table.layout import Layout, LongFields, given_fields, given_names
from fillrank.table.missing_values import given_missing_values
from fillrank.table.number_text import given_style
from fillrank.table.observations import Observations
from fillrank.table.triplets import Duplicates
from fillrank.table.weights import WeightField, given_weight, refuse_for_wide
from fillrank.table.wide_frames import WideOptions

TEXT_ENDINGS = (".csv", ".tsv", ".txt", ".dat", ".data")
MATRIX_MARKET_ENDINGS = (".mtx", ".mm")
MATRIX_ENDINGS = (*MATRIX_MARKET_ENDINGS, ".npy", ".npz")
JSON_ENDINGS = (".json", ".jsonl", ".ndjson")
XLSX_ENDINGS = (".xlsx", ".xlsm")
SHEET_ENDINGS = (*XLSX_ENDINGS, ".xls", ".ods")
TABLE_ENDINGS = (*TEXT_ENDINGS, ".parquet", *SHEET_ENDINGS, *JSON_ENDINGS, *MATRIX_ENDINGS)
ENDINGS = (*TABLE_ENDINGS, ".zip")
_LAST_SKIPPED_LINE = 5  # an error in one of the first lines may be about a title
_SKIP_ADVICE: Text = (
    "If the first lines are not part of the table, skip them with ",
    Setting("skip", ...),
    ".",
)


class SourceFile(NamedTuple):
    """A file to read: its path or the open file, its name in messages, and its kind."""

    source: Path | IO[Any]
    name: str
    ending: str
    is_gzip: bool

    def text(self) -> str:
        return self.marked_text().text.removeprefix("\ufeff")

    def marked_text(self) -> DecodedText:
        """The text, with its byte order mark if it has one, and its encoding."""
        content = read_content(self.source, self.name, is_gzip=self.is_gzip)
        return decode_with_mark(content, self.name)

    def seekable(self) -> Path | io.BytesIO:
        """The path, or the content of the open file."""
        if isinstance(self.source, Path):
            return self.source
        return io.BytesIO(read_bytes(self.source, self.name))


def read(
    source: Any,
    *,
    row: Any = None,
    column: Any = None,
    value: Any = None,
    layout: Layout = "auto",
    duplicates: Duplicates = "error",
    weight: Any = None,
    standard_error: Any = None,
    label: Any = None,
    ignore: Any = (),
    columns: Any = (),
    missing_values: Any = None,
    decimal: str | None = None,
    thousands: str | None = None,
    sheet: str | None = None,
    skip: int | None = None,
    format: str | None = None,
    name: str | None = None,
) -> Observations:
    """Read the observed entries of a matrix from a file, or from a table in memory.

    Parameters
    ----------
    source : str, Path, open file, data frame, array, masked array or sparse matrix
        A data frame is read as by `Observations.from_table`, and arrays and sparse matrices as by
        `Observations.from_matrix`. The kind of a file is given by its ending:

        - ``.csv .tsv .txt .dat .data``, each also with ``.gz``: text in UTF-8, or in UTF-16 with a
          byte order mark. The delimiter is one of ``, ; | ::``, tab or white space; with ``;`` numbers
          may have a decimal comma.
          Missing values are empty cells, NA, N/A, n.a., #N/A, <NA>, NaN, null, None, missing, ?, a dash
          or a point, in upper or lower case. Labels are integers if all of them are written as integers,
          otherwise text.
        - ``.parquet``: read by pyarrow, or by polars if pyarrow is not installed, and interpreted as
          by `Observations.from_table`. A long table may be in several files: ``ratings/*.parquet``
          reads them in the order of their names.
        - ``.xlsx``, ``.xls``, ``.ods``: a sheet of a spreadsheet, read by python-calamine
          (``pip install "fillrank[excel]"``). Rows above the table with a single cell are a title.
        - ``.json``: a list of objects, an object of columns, an object with columns, index and data, or
          a list of lists; ``.jsonl``, ``.ndjson``: an object, or a list, on each line.
        - ``.zip``: the only table in it.
        - ``.mtx``, ``.mm``, each also with ``.gz``: Matrix Market. Entries that are not stored are
          missing.
        - ``.npy``: an array, in which NaN is missing. ``.npz``: one array; or ``rows``, ``columns`` and
          ``values``; or a sparse matrix saved by `scipy.sparse.save_npz`.

        An open file, binary or text, is read from its position to its end into memory; for a large
        Parquet file pass its path.
    row, column, value : name of a column
        The columns of a long table with the row labels, the column labels and the values. The columns
        of a text file without a header are named 0, 1, 2, ...
    layout : {"auto", "long", "wide"}
        A long table has a line per entry, a wide table a cell. With "auto", a text file is long if
        its columns have the names of one (user, item, rating; row, column, value; ...); or if it has 3
        or 4 columns, the first two contain labels and the third numbers, and the second is either
        text, or there is no header and more than 1.5 times as many lines as distinct labels in each of
        the first two columns, nearly all pairs of which differ. A fourth column is ignored. All other
        tables are wide; the first column contains the row labels if its name is empty or a word like id,
        name or row. Otherwise the first column of text whose values all differ does. Otherwise rows are
        labelled 0, 1, 2, ...
    duplicates : {"error", "mean", "last", "first"}
        What to do if a (row, column) pair occurs more than once.
    weight, standard_error : name of a column
        The column of a long table with the weights of the entries, or with their standard errors, as in
        `Observations.from_table`.
    label : name of a column
        The column of a wide table that contains the row labels.
    ignore : name of a column, or list of str
        Columns of a wide table that are not fitted; completed files have them as they are.
    columns : name of a column, or list of str
        The only columns of a wide table that are fitted; completed files have the others as they are.
    missing_values : list of numbers and text
        Further values that stand for missing ones, such as ``[99, -999, "unknown"]``.
    decimal : {".", ","}, optional
        The decimal mark of numbers that are text. By default it is found out, column by column.
    thousands : {",", ".", "'", "space", "none"}, optional
        The mark between thousands of numbers that are text. By default it is found out.
    sheet : str, optional
        The sheet of a spreadsheet; by default the first that is not empty.
    skip : int, optional
        The number of lines to skip at the top of a text file. By default lines that are certainly a
        title are skipped, and so is a line of units below the header; notes say which. With 0 no line
        is skipped.
    format : str, optional
        The kind of a file whose name does not have one of the endings above, such as "csv".
    name : str, optional
        The name of a file in messages. That of an open file also gives its kind, unless there is a
        ``format``; by default it is the file's own name.

    Returns
    -------
    Observations

    Raises
    ------
    ReadError
        The file cannot be read, or is not of its kind; the message has the location.
    UnknownNameError
        The file has no column of that name.
    InputError
        The file can be read, but an argument or its entries cannot be used.

    Examples
    --------
    >>> import io, tempfile
    >>> text = "user,item,rating\\nAna,tea,5\\nBen,tea,3\\nBen,milk,1\\n"
    >>> path = Path(tempfile.mkdtemp()) / "ratings.csv"
    >>> _ = path.write_text(text)
    >>> read(path)
    <Observations: 2 rows x 2 columns, 3 entries (75% observed), values 1 to 5>
    >>> read(io.StringIO(text), format="csv")
    <Observations: 2 rows x 2 columns, 3 entries (75% observed), values 1 to 5>
    >>> read([[5.0, float("nan")], [3.0, 1.0]])
    <Observations: 2 rows x 2 columns, 3 entries (75% observed), values 1 to 5>
    >>> text = "who,lead,smoker\\nAna,0.7,yes\\nBen,<0.5,no\\nCid,1.1,no\\n"
    >>> read(io.StringIO(text), format="csv").notes
    ("1 value of column 'lead' is a limit such as <0.5.", "Column 'smoker' holds yes and no.")
    """
    options = make_options(
        row=row,
        column=column,
        value=value,
        layout=layout,
        duplicates=duplicates,
        weight=weight,
        standard_error=standard_error,
        label=label,
        ignore=ignore,
        columns=columns,
        missing_values=missing_values,
        decimal=decimal,
        thousands=thousands,
        sheet=sheet,
        skip=skip,
    )
    return read_source(source, options, format, name).data


class TableOptions(NamedTuple):
    """How to read a table; the arguments of `read`, checked."""

    fields: LongFields | None
    layout: Layout
    duplicates: Duplicates
    weight: WeightField | None
    wide: WideOptions
    sheet: str | None = None
    skip: int | None = None

    def like(self, data: Observations) -> TableOptions:
        """The options for new rows or entries of a table that was fitted."""
        layout, fields = self.layout, self.fields
        if layout == "auto" and fields is None and data.origin.layout == "wide":
            layout = "wide"
        return self._replace(layout=layout, wide=self.wide._replace(known=data.types_by_label()))

    @property
    def are_for_tables(self) -> bool:
        """Whether some are for tables with columns, which a matrix does not have."""
        has_columns = self.wide.label is not None or self.wide.ignore or self.wide.only
        return bool(self.fields or self.layout != "auto" or has_columns)


def make_options(
    *,
    row: Any,
    column: Any,
    value: Any,
    layout: Layout,
    duplicates: Duplicates,
    weight: Any,
    standard_error: Any,
    label: Any,
    ignore: Any,
    columns: Any,
    missing_values: Any,
    decimal: str | None,
    thousands: str | None,
    sheet: str | None,
    skip: int | None,
) -> TableOptions:
    """Check the arguments of `read`."""
    return TableOptions(
        given_fields(row, column, value, layout),
        layout,
        duplicates,
        given_weight(weight, standard_error),
        WideOptions(
            label,
            given_names(ignore),
            given_missing_values(missing_values),
            only=given_names(columns),
            style=given_style(decimal, thousands),
        ),
        sheet,
        _given_skip(skip),
    )


def _given_skip(skip: Any) -> int | None:
    """Check the number of lines to skip."""
    if skip is None:
        return None
    if isinstance(skip, bool) or not isinstance(skip, Integral) or skip < 0:
        raise InputError(place=Setting("skip"), allowed="a whole number of at least 0", value=skip)
    return int(skip)


def read_source(
    source: Any, options: TableOptions, format: str | None = None, name: str | None = None
) -> ReadTable:
    """Read a table, and its text if it is a wide text table; `read` explains the arguments."""
    if isinstance(source, (str, PathLike)):
        files = find_files(Path(source), format, name)
    elif is_open_file(source):
        files = [_describe_file(source, format, name or _own_name(source))]
    else:
        if format is not None or name is not None or options.skip is not None:
            raise InputError(f"format, name and skip are for files; got {type(source).__name__}.")
        return ReadTable(_from_memory(source, options))
    # Errors of readers have a place in the file; those of tables do not name the file yet.
    with located_errors(name or (files[0].name if len(files) == 1 else str(source)), files[0].name):
        return _read_files(files, options)


@contextmanager
def located_errors(label: str, first: str) -> Iterator[None]:
    """Add the name of the file to errors about its content, and convert those of the system.

    ``first`` is the first file, if ``label`` stands for several.
    """
    try:
        yield
    except InputError as error:
        raise (error if _has_place(error, label) else error.at(label)) from error
    except OSError as error:
        raise ReadError(
            f"the file cannot be read ({error.strerror or error})", place=first
        ) from error
    except MemoryError as error:
        raise ReadError(
            "the file takes more memory than is available",
            place=first,
            advice="Read a part of it.",
        ) from error


def _has_place(error: InputError, name: str) -> bool:
    return error.place is not None and str(error.place).startswith(name)


def _read_files(files: list[SourceFile], options: TableOptions) -> ReadTable:
    file = _unpack(files[0])
    if options.sheet is not None and file.ending not in SHEET_ENDINGS:
        raise InputError(
            "only spreadsheets have sheets", place=Setting("sheet"), value=options.sheet
        )
    if options.skip is not None and file.ending not in TEXT_ENDINGS:
        raise InputError(
            f"lines can be skipped for text files, not for {file.ending}",
            place=Setting("skip"),
            value=options.skip,
        )
    if file.ending in TEXT_ENDINGS:
        found = _read_text(file, options)
    elif file.ending == ".parquet":
        parquet = [ParquetFile(each.seekable(), each.name) for each in (file, *files[1:])]
        found = ReadTable(read_parquet_table(parquet, *options[:5]))
    elif file.ending in SHEET_ENDINGS:
        found = _read_sheet(file, options)
    elif file.ending in JSON_ENDINGS:
        found = _read_json(file, options)
    else:
        found = ReadTable(_read_only_matrix(file, options))
    return found._replace(ending=file.ending)


def _read_text(file: SourceFile, options: TableOptions) -> ReadTable:
    text, encoding = file.marked_text()
    try:
        found = read_text(text, file.name, *options[:5], skip=options.skip)
    except FillrankError as error:
        line = error.place.line if isinstance(error.place, FileLocation) else None
        is_at_top = line is not None and line <= _LAST_SKIPPED_LINE
        may_be_title = (is_at_top and error.kind != "markdown") or error.kind == "delimiter"
        if may_be_title and not options.skip:
            raise error.with_advice(_SKIP_ADVICE) from error
        raise
    return found._replace(encoding=encoding)


def _unpack(file: SourceFile) -> SourceFile:
    """The only table in a zip file; other files as they are."""
    if file.ending != ".zip":
        return file
    content = read_bytes(file.source, file.name)
    member, content = read_only_member(content, file.name, TABLE_ENDINGS)
    ending = Path(member).suffix.lower()
    return SourceFile(io.BytesIO(content), f"{file.name} ({member})", ending, False)


def _read_sheet(file: SourceFile, options: TableOptions) -> ReadTable:
    content = read_bytes(file.source, file.name)
    found = read_sheet(content, file.name, options.sheet, options.wide.missing)
    table = read_text(found.text, found.source, *options[:5], KnownText(","))
    data = replace(table.data, notes=(*found.notes, *table.data.notes))
    return _with_cells(table._replace(data=data), found.rows, found.sheet)


def _with_cells(
    table: ReadTable,
    rows: Sequence[Sequence[Any]],
    sheet: str | None = None,
    layout: JsonLayout = JsonLayout(),  # noqa: B008
) -> ReadTable:
    """A wide table with its cells as they are in the file; ``rows`` are all of its lines."""
    if table.text is None:
        return table
    below = rows[table.text.table.has_header :]
    if not table.text.table.has_empty_rows:
        below = [row for row in below if any(cell_text(cell).strip() for cell in row)]
    return table._replace(cells=TypedCells(below, sheet, layout))


def _read_json(file: SourceFile, options: TableOptions) -> ReadTable:
    text, has_header, rows, layout = read_json(file.text(), file.name)
    try:
        table = read_text(text, file.name, *options[:5], KnownText(",", has_header))
        return _with_cells(table, rows, layout=layout)
    except FillrankError as error:
        if isinstance(error.place, FileLocation) and error.place.line is not None:
            raise error.moved(at_record(error.place, has_header)) from error
        raise


def _read_only_matrix(file: SourceFile, options: TableOptions) -> Observations:
    refuse_for_wide(options.weight)
    if options.are_for_tables:
        raise InputError(
            "row, column, value, layout, label, ignore and columns are for tables, not for "
            f"{file.ending}."
        )
    return _read_matrix(file, options.duplicates).without_values(options.wide.missing)


def _read_matrix(file: SourceFile, duplicates: Duplicates) -> Observations:
    if file.ending in MATRIX_MARKET_ENDINGS:
        return read_matrix_market(file.text(), file.name, duplicates)
    read_arrays = read_npy if file.ending == ".npy" else read_npz
    source = file.seekable()
    with source.open("rb") if isinstance(source, Path) else source as opened:
        return read_arrays(opened, file.name, duplicates)


def _from_memory(source: Any, options: TableOptions) -> Observations:
    if is_data_frame(source):
        return Observations.from_frame(source, *options[:5])
    refuse_for_wide(options.weight)
    missing = options.wide.missing
    if isinstance(source, Observations):
        return source.without_values(missing)
    if options.are_for_tables:
        raise InputError(
            "row, column, value, layout, label, ignore and columns are for tables with columns; got "
            f"{type(source).__name__}."
        )
    return Observations.from_matrix(source, duplicates=options.duplicates).without_values(missing)


def _own_name(file: IO[Any]) -> str:
    """The name of an open file; it has none, or a number, if it is not from a path."""
    name = getattr(file, "name", None)
    return name if isinstance(name, str) and name else "the open file"


def _describe_file(
    source: Path | IO[Any], format: str | None, name: str, path: Path | None = None
) -> SourceFile:
    """Determine the kind of a file from its name or its format."""
    named = Path(name) if path is None else path
    # The format of an open file is that of its content, whatever its name is.
    is_gzip = named.suffix.lower() == ".gz" and (path is not None or format is None)
    if format is not None:
        ending = f".{format}"
        if ending not in ENDINGS:
            kinds = ", ".join(repr(known[1:]) for known in ENDINGS)
            raise InputError(place=Setting("format"), allowed=f"one of {kinds}", value=format)
    else:
        ending = (Path(named.stem) if is_gzip else named).suffix.lower()
    has_gzip = ending in TEXT_ENDINGS or ending in MATRIX_MARKET_ENDINGS
    if ending not in ENDINGS or (is_gzip and format is None and not has_gzip):
        raise ReadError(
            "the kind of the file is unknown; names of files end in "
            f"{' '.join(ENDINGS)}; those of text, .mtx and .mm files also in .gz",
            place=name,
            advice=("Or name its kind, as in ", Setting("format", "csv"), "."),
            kind="format",
        )
    return SourceFile(source, name, ending, is_gzip and has_gzip)


def find_files(path: Path, format: str | None = None, name: str | None = None) -> list[SourceFile]:
    """The file at a path, or for Parquet all files that match a pattern."""
    refuse_folder(path)
    file = _describe_file(path, format, name or str(path), path)
    if file.ending == ".parquet" and "*" in path.name and not path.exists():
        if found := sorted(path.parent.glob(path.name), key=_numeric_order):
            return [file._replace(source=each, name=str(each)) for each in found]
        raise ReadError("no file matches the pattern", place=path)
    check_exists(path)
    return [file]


def refuse_folder(path: Path) -> None:
    """Raise ReadError if a path is that of a folder."""
    if path.is_dir():
        raise ReadError("the path is a folder", place=path, advice="Pass a file in it.")


def _numeric_order(path: Path) -> list[tuple[int, str]]:
    """A key that sorts part.2 before part.10, as Dask does."""
    pieces = re.split(r"(\d+)", path.name)
    return [(int(piece), "") if piece.isdigit() else (0, piece) for piece in pieces]


def check_exists(path: Path) -> None:
    """Raise ReadError if there is no file at a path; the message has a similar name beside it."""
    if path.exists():
        return
    siblings = [other.name for other in path.parent.glob("*")] if path.parent.is_dir() else []
    near = difflib.get_close_matches(path.name, siblings, n=1)
    advice = f"Did you mean {near[0]}?" if near else ()
    raise ReadError("the file does not exist", place=path, advice=advice)
