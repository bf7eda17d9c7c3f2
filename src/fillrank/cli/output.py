"""Output files: checked before the work starts, and moved to their names when all are complete."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from fillrank.cli.source import STANDARD
from fillrank.errors import OutputError
from fillrank.io.read import JSON_ENDINGS, TEXT_ENDINGS, XLSX_ENDINGS
from fillrank.io.xlsx_writer import check_xlsx_writer
from fillrank.runtime.memory import format_bytes

_MARK = b'<meta name="generator" content="fillrank">'
# Of completed tables: long ones are text, with a line for each missing cell.
WIDE_ENDINGS = (*TEXT_ENDINGS, *JSON_ENDINGS, ".parquet", ".xlsx")


class ResultNames(NamedTuple):
    """The names of the files that `complete` writes."""

    filled: str
    intervals: str
    report: str
    imputations: str = "imputations.csv"
    spectrum: str = "spectrum.png"
    trace: str = "trace.png"
    summary: str = "summary.json"


def result_names(stem: str, ending: str = ".csv", is_wide: bool = True) -> ResultNames:
    """The names of the results of a table: the completed table is of the same kind, if that is written.

    Examples
    --------
    >>> result_names("ratings", ".tsv")[:3]
    ('filled.tsv', 'intervals.tsv', 'ratings-report.html')
    >>> result_names("ratings", ".xlsx")[:2], result_names("ratings", ".ods")[:2]
    (('filled.xlsx', 'intervals.csv'), ('filled.csv', 'intervals.csv'))
    """
    filled, intervals = completed_ending(ending, is_wide), completed_ending(ending, False)
    return ResultNames(f"filled{filled}", f"intervals{intervals}", report_name(stem))


def completed_ending(ending: str, is_wide: bool) -> str:
    """The ending of a completed table, by that of the table that was read."""
    if is_wide and ending in XLSX_ENDINGS:
        return ".xlsx"
    return ending if ending in (WIDE_ENDINGS if is_wide else TEXT_ENDINGS) else ".csv"


def report_name(stem: str) -> str:
    """The name of the report about a table or a model."""
    return f"{stem}-report.html"


def is_report(path: Path) -> bool:
    """Whether a file is a report of fillrank, which a new one replaces."""
    try:
        with path.open("rb") as file:
            return _MARK in file.read(4096)
    except OSError:
        return False


@contextmanager
def staged(folder: Path, names: Sequence[str], force: bool) -> Iterator[Path]:
    """Create a temporary folder inside ``folder`` to write to; its files move out at the end.

    No file gets its final name before everything is written. If anything fails, the folder is left as
    it was, or removed if it was not there.

    Parameters
    ----------
    folder : Path
    names : sequence of str
        All names that results can have. With ``force``, files of an earlier run that are not
        written again are removed, because they would contradict the new ones.
    force : bool
        Whether existing files of these names may be replaced.

    Raises
    ------
    OutputError
        Before anything is done: the folder is not writable, or has such files already, other than
        a report.
    """
    _check_folder(folder, names, force)
    new = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            stage = Path(tempfile.mkdtemp(prefix=".fillrank-", dir=folder))
        try:
            with writing(folder):
                _check_writable(stage)
            yield stage
            with writing(folder):
                _move_out(stage, folder, names)
        finally:
            shutil.rmtree(stage, ignore_errors=True)
    except BaseException:
        for each in new:
            with suppress(OSError):  # not empty, or never created
                each.rmdir()
        raise


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Convert errors of the system into errors about the results."""
    try:
        yield
    except OutputError:
        raise
    except OSError as error:
        raise OutputError(
            f"results cannot be written to {folder}: {error.strerror or error}",
            advice="Choose another folder with --output.",
        ) from error


def check_apart(targets: Iterable[Path], inputs: Iterable[Path]) -> None:
    """Reject results that would replace an input file, also through links."""
    read = {path: status for path in inputs if (status := _status(path)) is not None}
    for target in targets:
        found = _status(target)
        for path, status in read.items():
            if found is not None and os.path.samestat(found, status):
                name = "standard input" if path == STANDARD else path
                raise OutputError(
                    f"{target} would replace the input, {name}",
                    advice="Choose another path with --output.",
                )


def _status(path: Path) -> os.stat_result | None:
    """The status of a file, or of the file that standard input comes from."""
    try:
        return os.fstat(sys.stdin.fileno()) if path == STANDARD else path.stat()
    except (OSError, ValueError):
        return None


def _check_folder(folder: Path, names: Sequence[str], force: bool) -> None:
    if folder.exists() and not folder.is_dir():
        raise OutputError(
            f"{folder} is a file, not a folder", advice="Choose another folder with --output."
        )
    existing = [name for name in names if os.path.lexists(folder / name)]
    in_the_way = [name for name in existing if not is_report(folder / name)]
    if in_the_way and not force:
        raise OutputError(
            f"{folder} already has {', '.join(in_the_way)}",
            advice="Choose another folder with --output, or replace these files with --force.",
        )
    for name in existing:
        if (folder / name).is_dir():
            raise OutputError(
                f"{folder / name} is a folder, but a result has this name", advice="Move it away."
            )


def _check_writable(stage: Path) -> None:
    probe = stage / "probe"
    probe.write_bytes(b"\0")
    probe.unlink()


def _move_out(stage: Path, folder: Path, names: Sequence[str]) -> None:
    written = [name for name in names if (stage / name).exists()]
    for name in written:
        os.replace(stage / name, folder / name)
    for name in set(names).difference(written):
        (folder / name).unlink(missing_ok=True)


def check_file(path: Path, force: bool, inputs: Iterable[Path] = ()) -> None:
    """Refuse, before the work starts, a file that cannot be written or must not be replaced."""
    check_apart([path], inputs)
    if path.suffix.lower() == ".xlsx":
        check_xlsx_writer(path)
    if path.is_dir():
        raise OutputError(f"{path} is a folder", advice="Choose a file in it with --output.")
    if os.path.lexists(path) and not force:
        raise OutputError(
            f"{path} already exists",
            advice="Choose another file with --output, or replace it with --force.",
        )
    if not path.parent.is_dir():
        raise OutputError(
            f"{path.parent} is not a folder",
            advice="Create it first, or choose another with --output.",
        )
    if not os.access(path.parent, os.W_OK):
        raise OutputError(
            f"{path.parent} is not writable", advice="Choose a file elsewhere with --output."
        )


def check_disk_space(folder: Path, n_bytes: int) -> None:
    """Reject results that do not fit on the disk."""
    free = shutil.disk_usage(folder).free
    if n_bytes > free:
        raise OutputError(
            f"the results need about {format_bytes(n_bytes)}, but only {format_bytes(free)} are free "
            f"in {folder}",
            advice="Choose a folder on another disk with --output.",
        )
