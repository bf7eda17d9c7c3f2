"""``fillrank demo``: `complete` on a generated table, for which the true values are known."""

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np
import typer

from fillrank.cli import output
from fillrank.cli.complete import Job, run
from fillrank.cli.messages import Results, report
from fillrank.cli.source import Source
from fillrank.errors import OutputError
from fillrank.io.csv_writer import write_csv

if TYPE_CHECKING:
    from fillrank.estimators.gasr import GASR

TABLE = "table.csv"
STATIONS, DAYS, PATTERNS = 300, 120, 3
MISSING, NOISE, LEVEL = 0.6, 0.5, 0.9
HEADER = ["station", *(f"day {day:03d}" for day in range(1, DAYS + 1))]


class Weather(NamedTuple):
    """Temperatures of stations (rows) on days (columns): true ones, and readings with NaN."""

    truth: np.ndarray
    readings: np.ndarray


def generate_weather() -> Weather:
    """Generate temperatures: a level per station and day, three patterns, noise, missing values."""
    rng = np.random.default_rng(2024)
    season = 12.0 + 6.0 * np.sin(np.linspace(0.0, np.pi, DAYS)) + rng.normal(0.0, 1.0, DAYS)
    height = rng.normal(0.0, 2.5, (STATIONS, 1))
    strength = rng.normal(0.0, 1.0, (STATIONS, PATTERNS))
    pattern = rng.normal(0.0, 1.0, (PATTERNS, DAYS))
    truth = season + height + strength @ pattern
    readings = np.round(truth + rng.normal(0.0, NOISE, truth.shape), 1) + 0.0  # no -0
    readings[rng.random(truth.shape) < MISSING] = np.nan
    return Weather(truth, readings)


def demo(
    folder: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="DIR", help="Folder for the table and the results."),
    ] = Path("demo-output"),
) -> None:
    """Run `complete` on a generated table, and compare the results with the true values.

    The table has the temperatures of 300 weather stations on 120 days, read with an error of half a
    degree; 60% of the readings are missing. The true values are known, so the results of `complete` can
    be checked. It takes some seconds, and longer the first time.

    Example:

    fillrank demo --output demo-output
    """
    _check_files(folder)
    weather = generate_weather()
    with output.staged(folder, [TABLE], force=True) as stage, output.writing(folder):
        _write_table(stage / TABLE, weather.readings)
    report(
        f"{STATIONS} weather stations, {DAYS} days: temperatures composed of levels of stations and "
        f"days and of\n{PATTERNS} weather patterns, read with an error of {NOISE} degrees; "
        f"{100 * MISSING:.0f}% of the readings are missing."
    )
    job = Job(Source(folder / TABLE), folder, level=LEVEL, force=True)
    run(job, more=lambda model: _compare_with_truth(model, weather))


def _check_files(folder: Path) -> None:
    """Do not replace files that are not from an earlier run of the demo."""
    names = (TABLE, *output.result_names(Path(TABLE).stem))
    existing = [name for name in names if (folder / name).exists()]
    if existing and not _has_demo_table(folder / TABLE):
        raise OutputError(
            f"{folder} has files that are not from the demo: {', '.join(existing)}",
            advice="Choose another folder with --output.",
        )


def _has_demo_table(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        return next(csv.reader(file), None) == HEADER


def _write_table(path: Path, readings: np.ndarray) -> None:
    lines = (
        [f"station {number:03d}", *("" if np.isnan(value) else f"{value:.1f}" for value in row)]
        for number, row in enumerate(readings, start=1)
    )
    with path.open("w", encoding="utf-8", newline="") as file:
        write_csv(file, HEADER, lines)


def _compare_with_truth(model: "GASR", weather: Weather) -> Results:
    """The error of the missing values, and the coverage of their intervals."""
    from fillrank.posterior.metrics import coverage, rmse

    data = model.observations_
    i, j = data.missing_positions(0, data.shape[0])
    rows, columns = data.row_labels[i], data.column_labels[j]
    truth = weather.truth[i, j]
    error = rmse(truth, model.predict(rows, columns))
    covered = coverage(truth, *model.predict_interval(rows, columns, LEVEL, kind="signal"))
    return [
        (
            "True error",
            f"RMSE {error:.3f} degrees over all {len(truth):,} missing readings, whose standard "
            f"deviation is {truth.std():.2f}",
        ),
        (
            "True coverage",
            f"{100 * covered:.1f}% of the true temperatures are within their {100 * LEVEL:g}% intervals",
        ),
    ]
