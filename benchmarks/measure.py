"""All measurements of docs/, each by one command, and the record of when and where they were made.

    python benchmarks/measure.py --data FOLDER              all of them, in some hours
    python benchmarks/measure.py --data FOLDER limits ...   these
    python benchmarks/measure.py --list

FOLDER contains ml-1m, ml-100k, eachmovie-sample, dream7 and tables, as far as you have them. What a
command prints goes to build/measured/NAME.txt. After it has ended well, its line in docs/measured.csv
says when, in how many minutes, on what machine and by which version; docs/measured.md shows that file.
Pages are edited by hand from what was printed, except for the marked parts that a command writes itself.
"""

import argparse
import csv
import datetime
import fcntl
import os
import platform
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import fillrank as fr

HERE = Path(__file__).parent
RECORD = HERE.parent / "docs" / "measured.csv"
OUTPUT = HERE.parent / "build" / "measured"
LIMIT, SHORT_LIMIT = 12 * 3600, 60  # seconds for a measurement, and for git
FIELDS = ("figures", "command", "page", "date", "minutes", "version", "machine")


class Measurement(NamedTuple):
    """A command, relative to the project; FOLDER stands for the data. The page has its results."""

    name: str
    command: str
    page: str


def _script(name, arguments, page):
    return Measurement(name, f"python benchmarks/{arguments}", page)


def _reproduce(name, data=""):
    return Measurement(name, f"fillrank reproduce {name}{data}", "paper")


_ML_1M, _ML_100K = "--data FOLDER/ml-1m", "--data FOLDER/ml-100k"
# One thread, so that other load does not slow the methods unequally.
_TABLES = "tables/run.py --data FOLDER/tables --threads 1"
# Fewer masks, and not the slowest methods.
_OTHER_SHARES = (
    f"{_TABLES} --shares 0.1,0.5,real --masks 2 "
    "--methods 'column mean,GASR,IterativeImputer,KNN 5,mice'"
)
MEASUREMENTS = (
    _reproduce("table1"),
    _reproduce("table2", " --data FOLDER"),
    _reproduce("figure1"),
    _reproduce("figure2", " --data FOLDER"),
    _script("ratings-1m", f"ratings.py ml-1m {_ML_1M}", "figures"),
    _script("ratings-100k", f"ratings.py ml-100k {_ML_100K}", "figures"),
    _script("ratings-published", f"ratings.py ml-1m {_ML_1M} --published", "figures"),
    _script("errors", "synthetic.py errors", "figures"),
    _script("ranks", "synthetic.py ranks", "figures"),
    _script("coverage", "synthetic.py coverage", "figures"),
    _script("small", "synthetic.py small --seeds 8", "figures"),
    _script("weak", "synthetic.py weak --seeds 24", "figures"),
    _script("tiny", "synthetic.py tiny --seeds 40", "figures"),
    _script("spectral-synthetic", "spectral.py synthetic", "figures"),
    _script("spectral-ratings", f"spectral.py ratings {_ML_1M}", "figures"),
    _script("spectral-als", "spectral.py als", "figures"),
    _script("spectral-search", f"spectral.py search {_ML_100K}", "other_methods"),
    _script("first-use", "first_use.py", "figures"),
    _script("model-files", f"model_files.py {_ML_1M}", "figures"),
    _script("ranking", "ranking.py ml-100k --data FOLDER", "figures"),
    _script("bpmf-synthetic", "bpmf.py synthetic", "figures"),
    _script("bpmf-ratings", f"bpmf.py ratings {_ML_1M}", "figures"),
    _script("bpmf-mixing", f"bpmf.py mixing {_ML_1M}", "figures"),
    _script("ordinal-1m", f"ordinal.py ml-1m {_ML_1M}", "figures"),
    _script("ordinal-100k", f"ordinal.py ml-100k {_ML_100K}", "figures"),
    _script("peers", f"peers/run.py {_ML_1M}", "benchmarks"),
    _script("speed", f"speed.py {_ML_1M}", "benchmarks"),
    _script("scale-ranks", "scale.py --ranks 10 30 50 100 200 --sweeps 20", "benchmarks"),
    _script("scale", "scale.py --sweeps 5", "benchmarks"),
    _script("dense", "dense.py", "benchmarks"),
    _script("predict", "predict.py", "benchmarks"),
    _script("cluster", "cluster.py --entries 2e7", "scale"),
    _script("defaults", f"defaults.py {_ML_100K}", "defaults"),
    _script("mixing", "mixing.py --data FOLDER", "defaults"),
    _script("start", f"start.py {_ML_1M}", "defaults"),
    _script("tables", f"{_TABLES} --shares 0.3 --masks 5", "tables"),
    _script("tables-other-shares", _OTHER_SHARES, "tables"),
    _script("tables-report", "tables/run.py --report", "tables"),
    _script("kinds", "tables/kinds.py --data FOLDER/tables", "kinds"),
    _script("censored", "censored.py", "kinds"),
    *(
        _script(f"ordered-{name}", f"ordered.py {name} --data FOLDER", page)
        for name, page in (
            ("ml-100k", "kinds"),
            ("ml-100k-folds", "features"),
            ("ml-1m", "kinds"),
            ("ml-1m-90", "features"),
        )
    ),
    *(
        _script(f"features-{name}", f"features.py {name} --data FOLDER", "features")
        for name in ("ml-100k", "ml-100k-folds", "ml-1m", "ml-1m-90", "eachmovie", "boys", "dream7")
    ),
    _script("features-fifths", "features.py ml-100k --data FOLDER --fifths", "features"),
    _script("macau", "macau.py --data FOLDER/dream7", "features"),
    _script("days", "days.py --data FOLDER/tables", "sensors"),
    _script("limits", "limits.py --picture docs/images/limits.png", "limits"),
    _script("calibration", "calibration.py", "calibration"),
    _script("calibration-features", "calibration.py --features", "calibration"),
    _script("calibration-kinds", "calibration.py --kinds", "calibration"),
    _script("new-rows", "new_rows.py", "calibration"),
    _script("fold-in", "fold_in.py synthetic", "life_of_a_model"),
    _script("fold-in-ratings", f"fold_in.py ratings --seeds 2 {_ML_100K}", "life_of_a_model"),
    _script("imputation", "imputation.py --tables 400 --bpmf", "life_of_a_model"),
    _script("update", "update.py synthetic", "life_of_a_model"),
    _script("recommend", f"recommend.py {_ML_1M}", "life_of_a_model"),
    _script("theorem", "theorem.py", "theorem"),
)


def measure(measurement, data):
    """Run the command, keep what it prints, and record it; whether it ended well."""
    OUTPUT.mkdir(parents=True, exist_ok=True)
    path = OUTPUT / f"{measurement.name}.txt"
    command = measurement.command.replace("FOLDER", shlex.quote(str(data)))
    program, *arguments = shlex.split(command)
    start = [sys.executable, "-m", "fillrank"] if program == "fillrank" else [sys.executable]
    print(f"{measurement.name}: {measurement.command}", flush=True)
    begin = time.monotonic()
    with path.open("w") as output:
        code = subprocess.run(
            [*start, *arguments],
            cwd=HERE.parent,
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=LIMIT,
        ).returncode
    minutes = (time.monotonic() - begin) / 60
    print(f"  {minutes:.1f} minutes, exit {code}: {path.relative_to(HERE.parent)}", flush=True)
    if code == 0:
        record(measurement, minutes)
    return code == 0


def record(measurement, minutes):
    """Replace the line of this measurement; others may be writing theirs."""
    line = {
        "figures": measurement.name,
        "command": f"`{measurement.command}`",
        "page": f"[]({measurement.page}.md)",
        "date": datetime.date.today().isoformat(),
        "minutes": f"{minutes:.0f}" if minutes >= 1 else "under 1",
        "version": f"{fr.__version__}, {_commit()}",
        "machine": machine(),
    }
    with (HERE / "measure.py").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lines = {each["figures"]: each for each in _read_record()} | {measurement.name: line}
        known = [each.name for each in MEASUREMENTS if each.name in lines]
        with RECORD.open("w", newline="") as file:
            writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(lines[name] for name in known)


def _read_record():
    if not RECORD.exists():
        return []
    with RECORD.open(newline="") as file:
        return list(csv.DictReader(file))


def _commit():
    command = ["git", "describe", "--always", "--exclude", "*", "--abbrev=7"]
    return subprocess.run(
        command, cwd=HERE, capture_output=True, text=True, timeout=SHORT_LIMIT
    ).stdout.strip()


def machine():
    """The processor and the Python, without names of hosts."""
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    processor = models[0] if models else platform.machine()
    return f"{os.cpu_count()} cores of {processor}, Python {platform.python_version()}"


def main():
    """Measure what was asked for; the exit code says whether all commands ended well."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="all of them by default")
    parser.add_argument("--data", type=Path, default=Path("data"), help="folder with the data")
    parser.add_argument("--list", action="store_true", help="print names and commands")
    given = parser.parse_args()
    if unknown := set(given.names) - {each.name for each in MEASUREMENTS}:
        parser.error(f"unknown {', '.join(sorted(unknown))}; --list prints those that there are")
    asked = [each for each in MEASUREMENTS if not given.names or each.name in given.names]
    if given.list:
        print("\n".join(f"{each.name:22} {each.command}" for each in asked))
        return
    failed = [each.name for each in asked if not measure(each, given.data.resolve())]
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
