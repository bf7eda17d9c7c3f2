"""The measured part of docs/benchmarks.md: tables and pictures between two marks."""

from typing import NamedTuple

from contract import TARGET
from methods import ADAPTIVE, METHODS, MYFM, MYFM_PATTERN, OURS, PLAIN, SAMPLED
from results import (
    iteration_ratios,
    last_rmse,
    middle,
    over_rounds,
    per_iteration,
    wait_for,
    wait_ratios,
)

BEGIN = "<!-- measured by benchmarks/peers/run.py: begin -->"
END = "<!-- measured by benchmarks/peers/run.py: end -->"
# The targets: the least ratio over GASR's, by the same model: from ratings alone, or with the pattern.
ASKED = (
    ("one sweep", SAMPLED, PLAIN, iteration_ratios, 9),
    ("one sweep", MYFM, PLAIN, iteration_ratios, 40),
    ("one sweep", MYFM_PATTERN, OURS, iteration_ratios, 40),
    (f"time to test RMSE {TARGET}", SAMPLED, PLAIN, wait_ratios, 5),
    (f"time to test RMSE {TARGET}", ADAPTIVE, PLAIN, wait_ratios, 5),
)


class Setting(NamedTuple):
    """On what, and with what, was measured."""

    entries: str
    rank: int
    threads: int


def measured(rounds, missing, setting):
    """The text between the marks; ``missing`` says why a method was not run, by its name."""
    parts = [
        _setting(rounds, setting),
        _asked(rounds, missing),
        "![Test RMSE over the seconds of the fit, a line for each method](images/benchmarks-curves.png)",
        _table(rounds, missing),
        "![Time of an iteration, a bar for each method](images/benchmarks-iterations.png)",
        _first_use(rounds),
    ]
    return "\n\n".join(parts)


def replace_measured(text, new):
    """The page with a new measured part; what is written by hand stays.

    Raises
    ------
    ValueError
        If the page has lost a mark.
    """
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page must have the lines {BEGIN!r} and {END!r}; put them back.")
    return f"{before}{BEGIN}\n\n{new}\n\n{END}{after}"


def _setting(rounds, setting):
    times = f"{len(rounds)} times, in turns" if len(rounds) > 1 else "once"
    return (
        f"{setting.entries}; rank {setting.rank}, {setting.threads} threads, all methods {times}."
    )


def _asked(rounds, missing):
    lines = ["| figure | target | measured |", "|---|---|---|"]
    for what, name, base, ratios, least in ASKED:
        reached = missing[name] if name in missing else spread_text(ratios(rounds, name, base))
        lines.append(f"| {name}: {what}, over that of {base} | at least {least}x | {reached} |")
    return "\n".join(lines)


def spread_text(times):
    """A ratio with its spread over the rounds."""
    if times is None:
        return "GASR did not reach it"
    over = "more than " if times.at_least else ""
    if len(times.values) == 1:
        return f"{over}{times.values[0]:.1f}x"
    low, high = min(times.values), max(times.values)
    return f"{over}{middle(times):.1f}x ({low:.1f} to {high:.1f})"


def _table(rounds, missing):
    lines = [
        f"| method | version | an iteration | over GASR's | time to {TARGET} | over GASR's | RMSE at "
        "the end | iterations | memory |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name in METHODS:
        if name in rounds[0]:
            lines.append("| " + " | ".join(_cells(rounds, name)) + " |")
        elif name in missing:
            lines.append(f"| {name} | {missing[name]} | | | | | | | |")
    return "\n".join(lines)


def _cells(rounds, name):
    first = rounds[0][name]
    waits = [wait_for(r[name]) for r in rounds]
    reached = all(wait.reached for wait in waits)
    seconds = sorted(wait.seconds for wait in waits)[len(waits) // 2]
    is_ours = name == OURS
    memories = [r[name]["memory_mb"] for r in rounds]
    return (
        name,
        first["version"],
        f"{1e3 * middle(over_rounds(rounds, name, per_iteration)):.0f} ms",
        "1" if is_ours else spread_text(iteration_ratios(rounds, name)),
        f"{seconds:.1f} s" if reached else "not reached",
        "1" if is_ours else spread_text(wait_ratios(rounds, name)),
        f"{middle(over_rounds(rounds, name, last_rmse)):.4f}",
        str(first["curve"][-1]["iteration"]),
        "" if None in memories else f"{sorted(memories)[len(memories) // 2]:.0f} MB",
    )


def _first_use(rounds):
    seconds = max(r[OURS]["first_use_seconds"] for r in rounds)
    start = middle(over_rounds(rounds, OURS, lambda result: result["start_seconds"]))
    finish = middle(over_rounds(rounds, OURS, lambda result: result["finish_seconds"]))
    return (
        f"Of GASR's time, {start:.1f} s are its start and {finish:.1f} s come after the last sweep, to "
        f"prepare the model; both are in its time to {TARGET}. Its first fit in a process, of a tiny "
        f"table, took at most {seconds:.1f} s and is not counted."
    )
