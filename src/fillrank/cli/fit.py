"""``fillrank fit``: fit a table, and keep the model in a file."""

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from fillrank.cli import estimate, methods, output, source, summary
from fillrank.cli import options as given
from fillrank.cli.exits import INTERRUPTED
from fillrank.cli.messages import escape, say, show_files, show_results
from fillrank.cli.methods import Settings
from fillrank.cli.source import STANDARD, Source
from fillrank.errors import ClusterError, ConvergenceWarning, InputError, NotSupportedError

ENDING = ".fillrank"


def fit(
    table: given.Table,
    model: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="MODEL", help="File for the model.",
            show_default=f"TABLE{ENDING}",
        ),
    ] = None,
    method: given.Method = "GASR",
    with_data: Annotated[
        bool,
        typer.Option(
            "--with-data/--without-data",
            help="Whether the table's entries go into the file. Without them the model cannot tell "
            "what is missing, or leave out what was seen; names are always there. On a cluster the "
            "entries stay where they are.",
        ),
    ] = True,
    row: given.Row = None,
    column: given.Column = None,
    value: given.Value = None,
    layout: given.Layout = "auto",
    duplicates: given.Duplicates = "error",
    format: given.Format = None,
    skip: given.Skip = 0,
    encoding: given.Encoding = None,
    seed: given.Seed = 0,
    max_rank: given.MaxRank = "auto",
    sweeps: given.Sweeps = "auto",
    chains: given.Chains = 2,
    threads: given.Threads = None,
    checkpoint: given.Checkpoint = None,
    dask: given.Dask = None,
    quiet: given.Quiet = False,
    force: given.Force = False,
) -> None:  # fmt: skip
    """Fit a table and keep the model in a file, for `predict`, `recommend`, `report` and `explore`.

    The file holds numbers and names, nothing that could be run; fr.load(MODEL) opens it in Python.

    Examples:

    - fillrank fit ratings.csv
    - fillrank fit ratings.csv -o small.fillrank --method BPMF --without-data
    - fillrank fit huge.csv --checkpoint huge-run
    - fillrank fit --dask tcp://host:8786 "ratings/*.parquet" -o ratings.fillrank
    """
    origin = Source(table, row, column, value, layout, duplicates, format, skip, encoding)
    settings = Settings(method, max_rank, sweeps, chains, threads, seed, checkpoint)
    methods.check(settings)
    place = Path(f"{_stem(origin)}{ENDING}") if model is None else model
    _check_place(place, force, origin.table)
    with _interruptible(settings):
        if dask is None:
            fitted = _fit_here(settings, origin, quiet)
        else:
            fitted = _fit_on_cluster(settings, origin, quiet, dask)
    fitted.save(place, with_data=with_data and dask is None)
    if not quiet:
        show_results(summary.in_words(fitted, None))
    show_files([place])


def _check_place(place: Path, force: bool, table: Path) -> None:
    if place == STANDARD:
        raise InputError("a model is kept in a file, not on standard output. Name it by --output.")
    if source.is_table(place):
        raise InputError(
            f"{place} would look like a table. Give the model another ending, such as {ENDING}."
        )
    output.check_file(place, force, [table])


def _stem(origin: Source) -> str:
    """What to name the model after: of a pattern, the folder."""
    return origin.table.parent.name or "model" if "*" in origin.stem else origin.stem


@contextmanager
def _interruptible(settings: Settings) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt as error:
        if settings.checkpoint is None:
            raise
        place, n_saved = escape(str(settings.checkpoint)), getattr(error, "n_saved", None)
        if n_saved is None:
            say(f"Interrupted. Nothing new was saved in {place}.")
        else:
            say(
                f"Interrupted. The run is saved in {place}, after {n_saved} sweeps: the same command "
                "resumes it."
            )
        raise typer.Exit(INTERRUPTED) from error


def _fit_here(settings: Settings, origin: Source, quiet: bool) -> Any:
    data = source.read(origin, quiet, to_fill=False)
    if not quiet:
        estimate.tell(settings, data)
    return methods.fit(settings, data, progress=not quiet)


def _address(table: Path) -> str:
    """A path as it is; an address, such as s3://bucket/ratings, with the slash that a path loses."""
    return re.sub(r"^([a-z][a-z0-9+.-]+):/(?!/)", r"\1://", str(table))


def _fit_on_cluster(settings: Settings, origin: Source, quiet: bool, address: str) -> Any:
    from fillrank.cluster.lines import open_lines

    _check_for_cluster(settings, origin)
    model = methods.make(settings, progress=not quiet)
    with _client(address) as client:
        place = _address(origin.table)
        lines = open_lines(place, origin.row, origin.column, origin.value, origin.layout)
        if not quiet:
            n_workers, n_threads = len(client.nthreads()), sum(client.nthreads().values())
            say(
                f"Fitting {escape(origin.name)} on {n_workers} workers with {n_threads} threads; the "
                f"dashboard is at {escape(client.dashboard_link)}"
            )
        with methods.stoppable(model), warnings.catch_warnings():
            # How the run ended is among the results.
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(lines, client=client)
    return model


def _check_for_cluster(settings: Settings, origin: Source) -> None:
    """Refuse what a cluster does not do."""
    if settings.method != "GASR":
        raise InputError(f"--dask is for GASR; got it with --method {settings.method}.")
    if not origin.is_plain or origin.duplicates != "error":
        raise InputError(
            "--dask reads Parquet files as they are: without --format, --skip, --encoding and "
            "--duplicates, and not from standard input."
        )


@contextmanager
def _client(address: str) -> Iterator[Any]:
    try:
        from distributed import Client
    except ImportError as error:
        raise NotSupportedError(
            '--dask needs Dask, which is not installed. Do: pip install "fillrank[dask]"'
        ) from error
    try:
        client = Client(address)
    except (OSError, ValueError) as error:
        raise ClusterError(
            f"there is no Dask scheduler at {address}: {error}. Start one by `dask scheduler`, which "
            "prints its address, and workers by `dask worker ADDRESS`."
        ) from error
    with client:
        yield client
