"""The options that several commands share."""

import inspect
from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_type_hints

import typer

from fillrank.table.layout import Layout as LayoutName
from fillrank.table.triplets import Duplicates as DuplicatesName

MethodName = Literal[
    "GASR", "BPMF", "SoftImpute", "SoftImputeALS", "HASI", "RelaxedSpectral", "M3F", "IPM3F"
]
FormatName = Literal[
    "csv", "tsv", "parquet", "xlsx", "xls", "ods", "json", "jsonl", "mtx", "npy", "npz"
]
UnitsName = Literal["auto", "table", "columns"]
NoiseName = Literal["auto", "one", "rows", "columns", "both"]
METHODS: tuple[MethodName, ...] = get_args(MethodName)
FILE_KINDS = (
    ".csv .tsv .txt .dat .data .parquet .xlsx .xls .ods .json .jsonl .mtx .mm .npy .npz, text also as "
    ".gz, each also alone in a .zip"
)


def whole_or_auto(text: str) -> Any:
    """Parse a whole number above 0, or "auto"."""
    if text == "auto":
        return text
    if text.isascii() and text.isdigit() and int(text) > 0:
        return int(text)
    raise typer.BadParameter(f"{text!r} is neither 'auto' nor a whole number above 0.")


def method_name(text: str) -> Any:
    """Parse the name of a method, in upper or lower case."""
    for name in METHODS:
        if text.strip().lower() == name.lower():
            return name
    raise typer.BadParameter(f"unknown method {text!r}. Methods: {', '.join(METHODS)}.")


def _share(low: float, high: float) -> Callable[[float | None], float | None]:
    """Check a share: typer's check of ranges has a short message, and accepts NaN."""

    def check(value: float | None) -> float | None:
        if value is None or low <= value <= high:
            return value
        raise typer.BadParameter(f"{value:g} is not a share from {low:g} to {high:g}.")

    return check


def filled_in(
    *, first: tuple[str, ...] = (), without: tuple[str, ...] = (), **makers: Callable[..., Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorate a command whose arguments of these names are made from options that commands share.

    In place of such an argument, the command has the options of the class or function that makes it,
    but for those ``without`` which it is made. An option that the command lists itself, too, has its
    place and help there, and both get its value. Those of ``first`` come before all others, because
    help shows a section where its first option is.
    """
    shared = {
        name: [each for each in _parameters(make) if each.name not in without]
        for name, make in makers.items()
    }

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = {each.name: each for each in _parameters(command)}
        listed = [
            option
            for name, each in own.items()
            for option in shared.get(name, [each])
            if option is own.get(option.name, option)
        ]
        listed.sort(key=lambda each: each.name not in first)

        @wraps(command)
        def run(**given: Any) -> None:
            values = given | {
                name: make(**{each.name: given[each.name] for each in shared[name]})
                for name, make in makers.items()
            }
            command(**{name: values[name] for name in own})

        # typer reads both.
        run.__signature__ = inspect.Signature(listed)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in listed}
        return run

    return decorate


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters of a function or of a class, each to be given by its name."""
    types = get_type_hints(function, include_extras=True)
    return [
        each.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=types[each.name])
        for each in inspect.signature(function).parameters.values()
    ]


# Help shows these in sections of their own.
_reading = partial(typer.Option, rich_help_panel="Reading the table")
_features = partial(typer.Option, rich_help_panel="Features")
_fitting = partial(typer.Option, rich_help_panel="Fitting")

# The table.
Table = Annotated[
    Path,
    typer.Argument(
        metavar="TABLE",
        help="A wide table (a cell for each entry) or a long one (a line for each entry): "
        f"{FILE_KINDS}. `-` reads standard input.",
    ),
]
Row = Annotated[
    str | None,
    _reading(metavar="NAME", help="Of a long table: the column with the row labels."),
]
Column = Annotated[
    str | None, _reading(metavar="NAME", help="... the column with the column labels.")
]
Value = Annotated[str | None, _reading(metavar="NAME", help="... the column with the values.")]
Weight = Annotated[
    str | None,
    _reading(
        metavar="NAME",
        help="... the column with the weights (GASR, BPMF): the variance of the noise of an entry is "
        "divided by its weight.",
    ),
]
StandardError = Annotated[
    str | None,
    _reading(
        metavar="NAME",
        help="... the column with standard errors (GASR, BPMF), from which weights are computed.",
    ),
]
Layout = Annotated[LayoutName, _reading(help="The layout of the table.")]
Duplicates = Annotated[
    DuplicatesName, _reading(help="What to do with several values for one cell.")
]
Format = Annotated[
    FormatName | None,
    _reading(
        "--format",
        help="The kind of file, if its name does not have the usual ending.",
        show_default="by its name; csv for standard input",
    ),
]

Skip = Annotated[
    int | None,
    _reading(
        metavar="N",
        min=0,
        help="Number of lines to skip at the top of a text file; 0: none, not even a title or units.",
        show_default="those of a title",
    ),
]
Encoding = Annotated[
    str | None,
    _reading(
        metavar="NAME",
        help="The encoding of a text file, such as latin-1 or utf-16.",
        show_default="utf-8",
    ),
]

MissingValues = Annotated[
    str | None,
    _reading(
        "--na",
        metavar="A,B,...",
        help="Values that stand for missing ones, such as --na 99,-999,unknown.",
    ),
]
Label = Annotated[
    str | None,
    _reading(metavar="NAME", help="Of a wide table: the column with the row labels."),
]
Ignore = Annotated[
    str | None,
    _reading(
        metavar="NAME,...",
        help="... columns that are not fitted; the completed table has them as they are.",
    ),
]
Columns = Annotated[
    str | None,
    _reading(
        metavar="NAME,...",
        help="... the only columns that are fitted; the completed table has the others as they are.",
    ),
]
Decimal = Annotated[
    str | None,
    _reading(
        metavar="MARK",
        help="The decimal mark of numbers: `.` or `,`.",
        show_default="as most numbers of a column are written",
    ),
]
Thousands = Annotated[
    str | None,
    _reading(
        metavar="MARK",
        help="The mark between thousands: `,`, `.`, `'`, `space` or `none`.",
        show_default="as most numbers of a column are written",
    ),
]
Sheet = Annotated[
    str | None,
    _reading(
        metavar="NAME",
        help="The sheet of a spreadsheet.",
        show_default="the first that is not empty",
    ),
]

# Features of rows and columns.
RowFeatures = Annotated[
    Path | None,
    _features(
        metavar="FILE",
        help="What is known about the rows beside their values, such as age and region (GASR, BPMF): "
        "a .csv, .tsv or .parquet file with a header, a line for each row, and a column with the row "
        "labels.",
    ),
]
ColumnFeatures = Annotated[
    Path | None,
    _features(metavar="FILE", help="The same for the columns, with a line for each column."),
]

NewRowFeatures = Annotated[
    Path | None,
    typer.Option(
        "--row-features",
        metavar="FILE",
        help="The features of rows that the model does not know: a file with the fields of the one that "
        "`fit --row-features` read.",
    ),
]
NewColumnFeatures = Annotated[
    Path | None,
    typer.Option("--column-features", metavar="FILE", help="The same for columns."),
]

# Titles of rows and columns.
RowTitles = Annotated[
    Path | None,
    typer.Option(
        "--row-titles",
        metavar="FILE",
        help="Titles to show beside the row labels: a .csv, .tsv or .parquet file with a header, a "
        "column with the labels, and one with their titles, which is named title or name, or else the "
        "first of text.",
    ),
]
ColumnTitles = Annotated[
    Path | None,
    typer.Option(
        "--column-titles",
        metavar="FILE",
        help="The same for the columns. movies.dat and u.item of MovieLens are read as they are.",
    ),
]

# The fit.
Method = Annotated[
    MethodName,
    _fitting(
        parser=method_name,
        metavar="NAME",
        help="The method: GASR or BPMF, which give intervals; SoftImpute, SoftImputeALS, HASI, "
        "RelaxedSpectral; M3F or IPM3F, for ratings only.",
    ),
]
Seed = Annotated[
    int,
    _fitting(metavar="N", min=0, max=2**32 - 1, help="The same seed gives the same results."),
]
MaxRank = Annotated[
    Any, _fitting(parser=whole_or_auto, metavar="N|auto", help="The largest number of factors.")
]
Sweeps = Annotated[
    Any,
    _fitting(
        parser=whole_or_auto,
        metavar="N|auto",
        help="Sweeps of the sampler (GASR, BPMF); auto: until the Monte Carlo error is small.",
    ),
]
Chains = Annotated[
    int, _fitting(metavar="N", min=1, help="Independent chains of the sampler (GASR, BPMF).")
]
Units = Annotated[
    UnitsName,
    _fitting(
        help="Whether all columns have one unit, or each its own (GASR, BPMF); auto: by their means and "
        "standard deviations."
    ),
]
Noise = Annotated[
    NoiseName,
    _fitting(help="How the noise level differs (GASR, BPMF); auto: as the units suggest."),
]
Robust = Annotated[
    bool,
    _fitting(
        "--robust", help="Let single outlying values count less: Student-t noise (GASR, BPMF)."
    ),
]
KeepEmpty = Annotated[
    bool,
    _fitting(
        "--keep-empty",
        help="Fill columns without any value, too, if columns have their own units (GASR, BPMF).",
    ),
]
Kinds = Annotated[
    list[str],
    _fitting(
        "--kind", metavar="COLUMN=KIND",
        help="The kind of the values of a column: number, positive, ordered, yes_no, count or category "
        "(GASR, BPMF). Repeat it for several columns; the others are chosen by their values.",
    ),
]  # fmt: skip
LikelihoodName = Literal["auto", "gaussian", "ordered", "laplace", "logistic", "hinge"]
Likelihood = Annotated[
    LikelihoodName,
    _fitting(
        "--likelihood",
        help="The kind of all values: gaussian for numbers, ordered for ratings whose levels have "
        "learned distances, laplace for numbers with outliers, logistic or hinge for two values (GASR, "
        "BPMF; SoftImpute without hinge). auto: by column, or numbers.",
    ),
]
ThresholdsName = Literal["auto", "table", "rows"]
Thresholds = Annotated[
    ThresholdsName,
    _fitting(
        "--thresholds",
        help="With --likelihood ordered: whether the thresholds between levels are those of the table "
        "or differ by row (GASR, BPMF). auto: by row.",
    ),
]
Bounds = Annotated[
    list[str],
    _fitting(
        "--bounds", metavar="COLUMN=LOW:HIGH",
        help="Predictions of a column are at least LOW and at most HIGH (GASR, BPMF). Either can be "
        "left out. Repeat it for several columns.",
    ),
]  # fmt: skip
Round = Annotated[
    bool,
    _fitting(
        " /--no-round",
        help="Do not round predictions to whole numbers, or to the decimals, that all values of their "
        "column have (GASR, BPMF).",
        show_default=False,
    ),
]
Missingness = Annotated[
    bool,
    _features(
        " /--no-missingness",
        help="Do not use the pattern of missing values as features (GASR, BPMF). It is used by default: "
        "what people rate, or do not rate, says something about their ratings.",
        show_default=False,
    ),
]
Threads = Annotated[
    int | None, _fitting(metavar="N", min=1, help="Number of threads.", show_default="all")
]
Checkpoint = Annotated[
    str | None,  # an address such as s3://bucket/run is no path
    _fitting(
        metavar="DIR",
        help="Save the run in this folder, or at an address that fsspec can reach (GASR, BPMF): after "
        "an interruption, the same command resumes it.",
    ),
]
Dask = Annotated[
    str | None,
    _fitting(
        metavar="ADDRESS",
        help="Fit on a Dask cluster (GASR, BPMF): the address of its scheduler, such as "
        "tcp://host:8786. TABLE is then Parquet that all workers can read: a file, a folder, or a "
        'pattern in quotes such as "ratings/*.parquet".',
    ),
]

# Held-out entries and intervals.
HoldOut = Annotated[
    float,
    typer.Option(
        metavar="SHARE",
        callback=_share(0.0, 0.9),
        help="Share of entries to hold out in a second fit, to measure the error; 0: none.",
    ),
]
OptionalHoldOut = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE",
        callback=_share(0.001, 0.9),
        help="Hold out this share of the entries, once.",
        show_default=False,
    ),
]
Hidden = Annotated[
    float,
    typer.Option(
        metavar="SHARE", callback=_share(0.001, 0.9), help="Share of entries to hold out."
    ),
]
_LEVEL: dict[str, Any] = {"metavar": "SHARE", "callback": _share(0.01, 0.999)}
Level = Annotated[float, typer.Option(**_LEVEL, help="Probability of the intervals.")]
OptionalLevel = Annotated[
    float | None,
    typer.Option(
        **_LEVEL,
        help="Add intervals that contain a new observation with this probability.",
        show_default="no intervals",
    ),
]

# A saved model.
Model = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model that `fillrank fit` has saved.")
]

# Results.
ResultsFile = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write to this file: .csv .tsv .json .parquet.",
        show_default="standard output",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors and results only.")]
Force = Annotated[bool, typer.Option("--force", help="Replace earlier results.")]
