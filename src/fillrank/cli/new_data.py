"""New rows and new entries for a model: how they are read, and how results are written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from fillrank.cli import output, source
from fillrank.cli.completed_table import Written, is_written_wide, write_missing, write_wide
from fillrank.cli.messages import show_files
from fillrank.cli.output import WIDE_ENDINGS, check_file, completed_ending
from fillrank.cli.source import STANDARD, Source
from fillrank.errors import InputError
from fillrank.io.read import TEXT_ENDINGS
from fillrank.io.text_layout import ReadTable
from fillrank.storage.atomic_write import write_atomically

if TYPE_CHECKING:
    from fillrank.completion import Completion

# The options of a table that new rows and entries do not have.
NOT_READ = (
    "weight", "standard_error", "duplicates", "ignore", "columns", "row_features", "column_features",
)  # fmt: skip


class Targets(NamedTuple):
    """The files of the completed rows, and of the model if it is saved."""

    filled: Path
    saved: Path | None


def check_targets(
    model: Completion, origin: Source, targets: tuple[Path | None, Path | None], force: bool,
    inputs: list[Path],
) -> Targets:  # fmt: skip
    """Check the files of results before the table is read; the completed one has a usual name."""
    filled, saved = targets
    is_wide = is_written_wide(model.observations_)
    if filled is None:
        filled = Path(f"{origin.stem}-filled{completed_ending(origin.ending, is_wide)}")
    if filled != STANDARD:
        allowed = WIDE_ENDINGS if is_wide else TEXT_ENDINGS
        if filled.suffix.lower() not in allowed:
            which = "completed tables" if is_wide else "the missing cells of a long table"
            raise InputError(
                f"{filled}: names of {which} end in {' '.join(allowed)}; got {filled.suffix!r}."
            )
        check_file(filled, force, inputs)
    if saved is not None:
        if source.is_table(saved):
            raise InputError(
                f"{saved} has the ending of a table",
                advice="Use another ending, such as .fillrank.",
            )
        check_file(saved, force, inputs)
    return Targets(filled, saved)


def write_results(model: Completion, table: ReadTable, targets: Targets) -> None:
    """Write the completed rows, and the model to a file if one is named."""
    filled, saved = targets
    shown, written = _written(model, table, filled)
    with output.writing(filled.parent):
        if filled == STANDARD:
            _write(filled, shown, written)
        else:
            with write_atomically(filled) as temporary:
                _write(temporary, shown, written)
    if saved is not None:
        model.save(saved, with_data=True)
    if filled != STANDARD:  # which has the completed rows, and nothing else
        show_files([path for path in targets if path is not None])


def _write(path: Path, model: Completion, written: Written) -> None:
    if is_written_wide(model.observations_):
        write_wide(path, model, written)
    else:
        write_missing(path, model, written=written)


def _written(model: Completion, table: ReadTable, filled: Path) -> tuple[Completion, Written]:
    """How the result is written: as the table of new rows, if it has the same cells.

    The columns that were not fitted are those of this table: a model file has none.
    """
    ending = table.ending if filled == STANDARD else filled.suffix.lower()
    written = Written.like(table, ending)
    data, new = model.observations_, table.data
    is_same = (
        data.origin.layout == new.origin.layout
        and data.n_entries == new.n_entries  # the model may know cells that this table leaves empty
        and data.row_labels.tolist() == new.row_labels.tolist()
        and data.column_labels.tolist() == new.column_labels.tolist()
    )
    if not is_same:
        return model, written.plain()
    return replace(model, observations=replace(data, origin=new.origin)), written
