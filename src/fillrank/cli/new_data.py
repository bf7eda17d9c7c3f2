"""New rows and new entries for a model: how they are read, and how results are written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fillrank.cli import output, source
from fillrank.cli.completed_table import Written, is_written_wide, write_missing, write_wide
from fillrank.cli.messages import show_files
from fillrank.cli.output import check_file
from fillrank.cli.source import STANDARD, Source
from fillrank.errors import InputError
from fillrank.io.read import JSON_ENDINGS, TEXT_ENDINGS
from fillrank.io.text_layout import ReadTable
from fillrank.storage.atomic_write import write_atomically

if TYPE_CHECKING:
    from fillrank.completion import Completion

_ENDINGS = (*TEXT_ENDINGS, *JSON_ENDINGS, ".parquet")


def check_targets(filled: Path, model: Path | None, force: bool, inputs: list[Path]) -> None:
    """Check the files of results before anything is read."""
    if filled != STANDARD:
        if filled.suffix.lower() not in _ENDINGS:
            raise InputError(
                f"{filled}: completed tables end in {' '.join(_ENDINGS)}; got {filled.suffix!r}."
            )
        check_file(filled, force, inputs)
    if model is not None:
        if source.is_table(model):
            raise InputError(
                f"{model} has the ending of a table",
                advice="Use another ending, such as .fillrank.",
            )
        check_file(model, force, inputs)


def filled_name(origin: Source) -> Path:
    """The name of the file of completed rows, of the kind of the table if that is written."""
    ending = origin.ending if origin.ending in _ENDINGS else ".csv"
    return Path(f"{origin.stem}-filled{ending}")


def write_results(
    model: Completion, table: ReadTable, origin: Source, filled: Path, saved: Path | None
) -> None:
    """Write the completed rows, and the model to a file if one is named."""
    written = _written(model, table, origin, filled)
    with output.writing(filled.parent):
        if filled == STANDARD:
            _write(filled, model, written)
        else:
            with write_atomically(filled) as temporary:
                _write(temporary, model, written)
    if saved is not None:
        model.save(saved, with_data=True)
    show_files([path for path in (filled, saved) if path is not None and path != STANDARD])


def _write(path: Path, model: Completion, written: Written) -> None:
    if is_written_wide(model.observations_):
        write_wide(path, model, written)
    else:
        write_missing(path, model, written=written)


def _written(model: Completion, table: ReadTable, origin: Source, filled: Path) -> Written:
    """As the table of new rows is written, if it has the rows and columns of the result."""
    written = Written.like(table, origin.encoding)
    if filled != STANDARD:
        written = written._replace(ending=filled.suffix.lower())
    data, new = model.observations_, table.data
    same = [
        own.tolist() == given.tolist()
        for own, given in (
            (data.row_labels, new.row_labels),
            (data.column_labels, new.column_labels),
        )
    ]
    if all(same) and data.origin == new.origin:
        return written
    plain = written.dialect._replace(quoted=(), quoted_header=())
    return written._replace(text=None, dialect=plain)
