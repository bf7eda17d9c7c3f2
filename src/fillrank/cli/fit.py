"""``fillrank fit``: fit a table, and save the model in a file."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from fillrank.cli import features, models, options, output, source, summary
from fillrank.cli.fit_cost import report_cost
from fillrank.cli.messages import escape, report, show_files, show_results
from fillrank.cli.models import Settings
from fillrank.cli.signals import INTERRUPTED
from fillrank.cli.source import STANDARD, Source
from fillrank.errors import ClusterError, InputError, NotSupportedError

ENDING = ".fillrank"


@options.filled_in(first=("method",), origin=Source, settings=Settings)
def fit(
    *,
    model: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="MODEL", help="File for the model.",
            show_default=f"TABLE{ENDING}",
        ),
    ] = None,
    with_data: Annotated[
        bool,
        typer.Option(
            "--with-data/--without-data",
            help="Whether to save the entries of the table in the file. Without them, `predict "
            "--missing` and `recommend` do not know which values are missing; labels are always saved. "
            "On a cluster the entries are not saved.",
        ),
    ] = True,
    origin: Source,
    settings: Settings,
    dask: options.Dask = None,
    quiet: options.Quiet = False,
    force: options.Force = False,
) -> None:  # fmt: skip
    """Fit a table and save the model in a file, for `predict`, `recommend`, `report` and `explore`.

    The file contains numbers and labels, and no code; fr.load(MODEL) loads it in Python.

    Examples:

    - fillrank fit ratings.csv
    - fillrank fit ratings.csv -o small.fillrank --method BPMF --without-data
    - fillrank fit huge.csv --checkpoint huge-run
    - fillrank fit --dask tcp://host:8786 "ratings/*.parquet" -o ratings.fillrank
    """
    models.check(settings, origin)
    file = Path(f"{_stem(origin)}{ENDING}") if model is None else model
    _check_file(file, force, origin.inputs)
    with _report_interruption(settings):
        if dask is None:
            fitted = _fit_locally(settings, origin, quiet)
        else:
            fitted = _fit_on_cluster(settings, origin, quiet, dask)
    fitted.save(file, with_data=with_data and dask is None)
    if not quiet:
        show_results(summary.describe_model(fitted, None))
    show_files([file])


def _check_file(file: Path, force: bool, inputs: list[Path]) -> None:
    if file == STANDARD:
        raise InputError(
            "a model cannot be written to standard output", advice="Choose a file with --output."
        )
    if source.is_table(file):
        raise InputError(
            f"{file} has the ending of a table", advice=f"Use another ending, such as {ENDING}."
        )
    output.check_file(file, force, inputs)


def _stem(origin: Source) -> str:
    """The first part of the name of the model file: for a pattern, the name of the folder."""
    return origin.table.parent.name or "model" if "*" in origin.stem else origin.stem


@contextmanager
def _report_interruption(settings: Settings) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt as error:
        if settings.checkpoint is None:
            raise
        folder, n_saved = escape(str(settings.checkpoint)), getattr(error, "n_saved", None)
        if n_saved is None:
            report(f"Interrupted. Nothing new was saved in {folder}.")
        else:
            report(
                f"Interrupted. The run is saved in {folder}, after {n_saved} sweeps: the same command "
                "resumes it."
            )
        raise typer.Exit(INTERRUPTED) from error


def _fit_locally(settings: Settings, origin: Source, quiet: bool) -> Any:
    data = source.read(origin, quiet)
    given = features.read(origin, data)
    if not quiet:
        report_cost(settings, data)
    return models.fit(settings, data, progress=not quiet, features=given)


def _address(table: Path) -> str:
    """The path or address of the table; Path drops a slash of an address such as s3://bucket/a."""
    return re.sub(r"^([a-z][a-z0-9+.-]+):/(?!/)", r"\1://", str(table))


def _fit_on_cluster(settings: Settings, origin: Source, quiet: bool, address: str) -> Any:
    from fillrank.cluster.long_tables import open_long_table

    _check_for_cluster(settings, origin)
    model = models.make(settings, progress=not quiet)
    given = features.read_unchecked(origin)
    with _client(address) as client:
        table = open_long_table(
            _address(origin.table), origin.row, origin.column, origin.value, origin.layout
        )
        if not quiet:
            n_workers, n_threads = len(client.nthreads()), sum(client.nthreads().values())
            report(
                f"Fitting {escape(origin.name)} on {n_workers} workers with {n_threads} threads; the "
                f"dashboard is at {escape(client.dashboard_link)}"
            )
        with models.interruptible(model):
            model.fit(table, client=client, **given.arguments())
    return model


def _check_for_cluster(settings: Settings, origin: Source) -> None:
    """Reject options that a cluster does not support."""
    if origin.weight or origin.standard_error:
        raise NotSupportedError(
            "a cluster cannot use the weights of entries",
            advice="Leave out --dask, or --weight and --standard-error.",
        )
    if origin.label or origin.ignore or origin.missing_values:
        raise NotSupportedError(
            "a cluster reads long tables as they are",
            advice="Leave out --dask, or --label, --ignore and --na.",
        )
    if settings.kinds or settings.bounds:
        raise NotSupportedError(
            "on a cluster all values are numbers of one unit, or with --likelihood ordered levels of "
            "one scale",
            advice="Leave out --dask, or --kind and --bounds.",
        )
    if settings.method not in models.SAMPLERS:
        raise InputError(
            f"--dask is an option of GASR and BPMF; got it with --method {settings.method}."
        )
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
            '--dask needs Dask, which is not installed. Run: pip install "fillrank[dask]"'
        ) from error
    try:
        client = Client(address)
    except (OSError, ValueError) as error:
        raise ClusterError(
            f"there is no Dask scheduler at {address}: {error}",
            advice="Start one with `dask scheduler`, which prints its address, and workers with `dask "
            "worker ADDRESS`.",
        ) from error
    with client:
        yield client
