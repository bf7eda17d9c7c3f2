"""Where results go: judged before the long work, and written at once when all is there."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from fillrank.cli.source import STANDARD
from fillrank.errors import OutputError
from fillrank.runtime.memory import format_bytes

FILLED, INTERVALS, REPORT, SPECTRUM, TRACE, SUMMARY = RESULTS = (
    "filled.csv",
    "intervals.csv",
    "report.html",
    "spectrum.png",
    "trace.png",
    "summary.json",
)


@contextmanager
def staged(folder: Path, names: Sequence[str], force: bool) -> Iterator[Path]:
    """Give a temporary folder inside ``folder`` to write to; its files move out at the end.

    Nothing stands under a final name before everything is written. If anything fails, the folder is
    left as it was, or gone if it was not there.

    Parameters
    ----------
    folder : Path
    names : sequence of str
        All names that results can have. With ``force``, those from an earlier run that are not
        written again are removed, for they would contradict the new ones.
    force : bool
        Whether existing files of these names may be replaced.

    Raises
    ------
    OutputError
        Before anything is done: the folder cannot be written, or has such files already.
    """
    _check_names(folder, names, force)
    new = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            stage = Path(tempfile.mkdtemp(prefix=".fillrank-", dir=folder))
        try:
            with writing(folder):
                _try_to_write(stage)
            yield stage
            with writing(folder):
                _move_out(stage, folder, names)
        finally:
            shutil.rmtree(stage, ignore_errors=True)
    except BaseException:
        for place in new:
            with suppress(OSError):  # not empty, or never made
                place.rmdir()
        raise


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Say of errors of the system that it was the results that could not be written."""
    try:
        yield
    except OutputError:
        raise
    except OSError as error:
        raise OutputError(
            f"results cannot be written to {folder}: {error.strerror or error}. "
            "Name another folder by --output."
        ) from error


def check_apart(targets: Iterable[Path], inputs: Iterable[Path]) -> None:
    """Refuse results that would replace what they are made from, whatever links lead there."""
    read = {path: status for path in inputs if (status := _status(path)) is not None}
    for target in targets:
        found = _status(target)
        for path, status in read.items():
            if found is not None and os.path.samestat(found, status):
                name = "standard input" if path == STANDARD else path
                raise OutputError(
                    f"{target} would replace {name} itself, which is read. Name another place by "
                    "--output."
                )


def _status(path: Path) -> os.stat_result | None:
    """What the system knows of a file, or of the one that standard input comes from."""
    try:
        return os.fstat(sys.stdin.fileno()) if path == STANDARD else path.stat()
    except (OSError, ValueError):
        return None


def _check_names(folder: Path, names: Sequence[str], force: bool) -> None:
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"{folder} is a file, not a folder. Name another folder by --output.")
    existing = [name for name in names if os.path.lexists(folder / name)]
    if existing and not force:
        raise OutputError(
            f"{folder} already has {', '.join(existing)}. Name another folder by --output, or "
            "replace these files by --force."
        )
    for name in existing:
        if (folder / name).is_dir():
            raise OutputError(f"{folder / name} is a folder where a file has to go. Move it away.")


def _try_to_write(stage: Path) -> None:
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
    """Refuse, before the long work, a file that could not be written or must not be replaced."""
    check_apart([path], inputs)
    if path.is_dir():
        raise OutputError(f"{path} is a folder. Name a file in it by --output.")
    if os.path.lexists(path) and not force:
        raise OutputError(
            f"{path} is there already. Name another file by --output, or replace it by --force."
        )
    if not path.parent.is_dir():
        raise OutputError(
            f"{path.parent} is no folder. Make it first, or name another by --output."
        )
    if not os.access(path.parent, os.W_OK):
        raise OutputError(f"{path.parent} cannot be written. Name a file elsewhere by --output.")


def check_room(folder: Path, n_bytes: int) -> None:
    """Refuse results for which the disk has no room."""
    free = shutil.disk_usage(folder).free
    if n_bytes > free:
        raise OutputError(
            f"the results need about {format_bytes(n_bytes)}, but {folder} has room for "
            f"{format_bytes(free)}. Name a folder on another disk by --output."
        )
