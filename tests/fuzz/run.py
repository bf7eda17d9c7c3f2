"""Fuzz the readers: ``python -m fuzz.run [TARGET ...] --inputs 5000 --seed 0``.

The report has a line for each target. The exit code is 1 if an input killed its process, took more than
5 s, or raised an error that is not documented. Such inputs are saved; ``--replay`` reads one again.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from fuzz.campaign import DEFECTS, RESULTS, Reader, Report, load_target, run

_SHOWN = 5  # findings of a target


def main(arguments: list[str] | None = None) -> int:
    given = _parsed(arguments)
    if given.replay is not None:
        return _replay(given.replay, given.targets)
    folder = Path(tempfile.mkdtemp(prefix="fillrank-findings-"))
    print(f"{'target':<20}{'inputs':>9}" + "".join(f"{result:>14}" for result in RESULTS))
    reports = []
    for name in given.targets or all_targets():
        reports.append(run(name, given.inputs, given.seed, folder))
        _show(reports[-1])
    if not any(report.findings for report in reports):
        folder.rmdir()
        return 0
    print(f"\nThe inputs are in {folder}; read one again with --replay FILE.")
    return 1


def _parsed(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m fuzz.run", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="default: all")
    parser.add_argument("--inputs", type=int, default=5000, help="for each target")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--replay", type=Path, metavar="FILE", help="read one input again")
    return parser.parse_args(arguments)


def all_targets() -> list[str]:
    """Return the names of all targets."""
    folder = Path(__file__).parent / "targets"
    return sorted(path.stem for path in folder.glob("*.py") if path.stem != "__init__")


def _show(report: Report) -> None:
    counts = "".join(f"{report.counts[result]:>14,}" for result in RESULTS)
    print(f"{report.target:<20}{report.counts.total():>9,}{counts}", flush=True)
    for path, outcome in report.findings[:_SHOWN]:
        last = outcome.message.strip().splitlines()[-1:] or [""]
        print(f"    {outcome.result}: {path.name}: {last[0][:150]}", flush=True)


def _replay(path: Path, targets: list[str]) -> int:
    """Read one input again. The default target is the first part of the file name."""
    name = targets[0] if targets else path.name.partition("-")[0]
    with Reader(load_target(name).__name__) as reader:
        outcome = reader.attempt(path.resolve())
    print(f"{outcome.result}\n{outcome.message}")
    return int(outcome.result in DEFECTS)


if __name__ == "__main__":
    sys.exit(main())
