"""``fillrank datasets``: published data sets."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

import fillrank as fr
from fillrank.cli import options, output
from fillrank.cli.messages import report, show_files, stdout
from fillrank.cli.results import open_target, show_json
from fillrank.cli.source import STANDARD
from fillrank.errors import InputError
from fillrank.io.csv_writer import format_number, write_csv
from fillrank.io.datasets import DATASETS
from fillrank.table.observations import Observations

FIELDS = ("user", "movie", "rating")


def datasets(
    name: Annotated[
        str, typer.Argument(metavar="[list|NAME]", help="The data set; `list` shows all.")
    ] = "list",
    file: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write it here: .csv .parquet; `-`: standard output.",
            show_default="NAME.csv",
        ),
    ] = None,
    published: Annotated[
        Path | None,
        typer.Option(
            "--from", metavar="PATH",
            help="A folder or zip with the published files, instead of a download.",
        ),
    ] = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    force: options.Force = False,
) -> None:  # fmt: skip
    """List published data sets, or download one and write it as a table.

    Examples:

    - fillrank datasets
    - fillrank datasets ml-100k -o ratings.csv
    """
    if name == "list":
        _list(as_json)
        return
    if name not in DATASETS:
        raise InputError(f"unknown data set {name!r}; there are {', '.join(DATASETS)}.")
    if as_json:
        raise InputError("--json is for the list; a data set is written as .csv or .parquet.")
    target = Path(f"{name}.csv") if file is None else file
    if target != STANDARD:
        if target.suffix.lower() not in (".csv", ".parquet"):
            raise InputError(f"{target}: data sets are written as .csv or .parquet.")
        output.check_file(target, force, _input_files(name, published))
    if not quiet:
        report(f"{DATASETS[name].title}. {DATASETS[name].licence}")
    _write(fr.datasets.load(name, published), target)
    if target != STANDARD:
        show_files([target])


def _input_files(name: str, published: Path | None) -> list[Path]:
    """The files that are read: a zip, or one in a folder."""
    ratings = DATASETS[name].ratings
    if published is None:
        return []
    return [published, published / ratings, published / name / ratings]


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
        show_json(listed)
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("Name", "Rows", "Columns", "Entries", "Title"):
        table.add_column(title, justify="left" if title in ("Name", "Title") else "right")
    for name, each in DATASETS.items():
        n_rows, n_columns = each.shape
        table.add_row(name, f"{n_rows:,}", f"{n_columns:,}", f"{each.n_entries:,}", each.title)
    stdout().print(table)
    for licence in dict.fromkeys(each.licence for each in DATASETS.values()):
        stdout().print(licence)


def _write(data: Observations, target: Path) -> None:
    if target.suffix.lower() == ".parquet":
        import narwhals as nw

        columns = dict(zip(FIELDS, (data.rows, data.columns, data.values), strict=True))
        frame = nw.from_dict(columns, backend="pyarrow").to_native()
        fr.write_parquet(target, frame)
    else:
        lines = zip(data.rows.tolist(), data.columns.tolist(), data.values.tolist(), strict=True)
        with open_target(target) as stream:
            write_csv(stream, FIELDS, ((row, column, format_number(v)) for row, column, v in lines))
