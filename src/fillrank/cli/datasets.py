"""``fillrank datasets``: published tables to try it on."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

import fillrank as fr
from fillrank.cli import answers, output
from fillrank.cli import options as given
from fillrank.cli.messages import out, say, show_files
from fillrank.cli.source import STANDARD
from fillrank.cli.tables import opened
from fillrank.errors import InputError
from fillrank.io.csv_writer import format_number, write_csv
from fillrank.io.datasets import DATASETS
from fillrank.storage.atomic_write import write_atomically
from fillrank.table.observations import Observations

FIELDS = ("user", "movie", "rating")


def datasets(
    name: Annotated[
        str, typer.Argument(metavar="[list|NAME]", help="The data set; `list` shows those there are.")
    ] = "list",
    file: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write it here: .csv .parquet; `-`: standard output.",
            show_default="NAME.csv",
        ),
    ] = None,
    place: Annotated[
        Path | None,
        typer.Option(
            "--from", metavar="PATH", help="A folder or zip with the published files: no download.",
        ),
    ] = None,
    as_json: given.Json = False,
    quiet: given.Quiet = False,
    force: given.Force = False,
) -> None:  # fmt: skip
    """List published data sets, or fetch one from its publisher and write it as a table.

    Examples:

    - fillrank datasets
    - fillrank datasets ml-100k -o ratings.csv
    """
    if name == "list":
        _list(as_json)
        return
    if name not in DATASETS:
        raise InputError(f"{name!r} is not known; there are {', '.join(DATASETS)}.")
    if as_json:
        raise InputError("--json is for the list; a data set is written as .csv or .parquet.")
    target = Path(f"{name}.csv") if file is None else file
    if target != STANDARD:
        if target.suffix.lower() not in (".csv", ".parquet"):
            raise InputError(f"{target}: data sets are written as .csv or .parquet.")
        output.check_file(target, force, _files(name, place))
    if not quiet:
        say(f"{DATASETS[name].title}. {DATASETS[name].licence}")
    _write(fr.datasets.load(name, place), target)
    if target != STANDARD:
        show_files([target])


def _files(name: str, place: Path | None) -> list[Path]:
    """The published files that are read: a zip, or one in a folder."""
    ratings = DATASETS[name].ratings
    return [] if place is None else [place, place / ratings, place / name / ratings]


def _list(as_json: bool) -> None:
    if as_json:
        listed = {
            name: {
                "title": each.title,
                "rows": each.shape[0],
                "columns": each.shape[1],
                "entries": each.n_entries,
                "licence": each.licence,
                "url": each.url,
            }
            for name, each in DATASETS.items()
        }
        answers.show_json(listed)
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("Name", "Rows", "Columns", "Entries", "What"):
        table.add_column(title, justify="left" if title in ("Name", "What") else "right")
    for name, each in DATASETS.items():
        n_rows, n_columns = each.shape
        table.add_row(name, f"{n_rows:,}", f"{n_columns:,}", f"{each.n_entries:,}", each.title)
    out().print(table)
    for licence in dict.fromkeys(each.licence for each in DATASETS.values()):
        out().print(licence)


def _write(data: Observations, target: Path) -> None:
    if target.suffix.lower() == ".parquet":
        import narwhals as nw

        columns = dict(zip(FIELDS, (data.rows, data.columns, data.values), strict=True))
        frame = nw.from_dict(columns, backend="pyarrow").to_native()
        fr.write_parquet(target, frame)
    elif target == STANDARD:
        _write_csv(data, target)
    else:
        with write_atomically(target) as temporary:
            _write_csv(data, temporary)


def _write_csv(data: Observations, path: Path) -> None:
    lines = zip(
        data.rows.tolist(),
        data.columns.tolist(),
        map(format_number, data.values.tolist()),
        strict=True,
    )
    with opened(path) as stream:
        write_csv(stream, FIELDS, lines)
