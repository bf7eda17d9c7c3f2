"""``fillrank datasets``: published data sets."""

from pathlib import Path
from typing import Annotated

import numpy as np
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

FIELDS = ("user", "movie", "rating")
TITLE_FIELDS = ("movie", "title")
_ENDINGS = (".csv", ".parquet")


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
    titles: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also write the titles of the movies here: .csv .parquet. `recommend` and others show "
            "them by --column-titles FILE.",
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
    - fillrank datasets ml-1m --titles movies.csv
    """
    if name == "list":
        _list(as_json)
        return
    if name not in DATASETS:
        raise InputError(f"unknown data set {name!r}; there are {', '.join(DATASETS)}.")
    if as_json:
        raise InputError("--json is for the list; a data set is written as .csv or .parquet.")
    target = Path(f"{name}.csv") if file is None else file
    targets = [] if target == STANDARD else [target]
    targets += [] if titles is None else [titles]
    if len({path.absolute() for path in targets}) < len(targets):
        raise InputError(f"--output and --titles must be different files; got {target} for both.")
    for path in targets:
        if path.suffix.lower() not in _ENDINGS:
            raise InputError(f"{path}: data sets are written as {' or '.join(_ENDINGS)}.")
        output.check_file(path, force, _input_files(name, published))
    if not quiet:
        report(f"{DATASETS[name].title}. {DATASETS[name].licence}")
    ratings = fr.datasets.load(name, published)
    found = {} if titles is None else fr.datasets.load_titles(name, published)
    _write(dict(zip(FIELDS, (ratings.rows, ratings.columns, ratings.values), strict=True)), target)
    if titles is not None:
        _write(_title_columns(found), titles)
    show_files(targets)


def _input_files(name: str, published: Path | None) -> list[Path]:
    """The files that are read: a zip, or those in a folder."""
    if published is None:
        return []
    files = (DATASETS[name].ratings, DATASETS[name].titles)
    return [
        published,
        *(folder / file for folder in (published, published / name) for file in files),
    ]


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


def _title_columns(titles: dict[int, str]) -> dict[str, np.ndarray]:
    columns = (np.array([*titles]), np.array([*titles.values()], dtype=object))
    return dict(zip(TITLE_FIELDS, columns, strict=True))


def _write(columns: dict[str, np.ndarray], target: Path) -> None:
    if target.suffix.lower() == ".parquet":
        import narwhals as nw

        fr.write_parquet(target, nw.from_dict(columns, backend="pyarrow").to_native())
        return
    lines = zip(*(column.tolist() for column in columns.values()), strict=True)
    with open_target(target) as stream:
        write_csv(stream, list(columns), ([format_number(cell) for cell in line] for line in lines))
