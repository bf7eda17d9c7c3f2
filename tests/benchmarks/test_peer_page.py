"""The page on peers, from made-up results."""

import re

import page
import plots
import pytest
from methods import ADAPTIVE, METHODS, MYFM, MYFM_PATTERN, OURS, PLAIN, SAMPLED
from PIL import Image
from results import iteration_ratios, wait_for, wait_ratios

SETTING = page.Setting("800 entries", 30, 2)


def result(sweep, errors, start=1.0, memory=50.0):
    """As a runner leaves it: points after the sweeps 1, 2, ..."""
    return {
        "version": "1.2",
        "curve": [
            {"iteration": n, "seconds": start + n * sweep, "test_rmse": error}
            for n, error in enumerate(errors, 1)
        ],
        "seconds_per_iteration": {"median": sweep, "low": sweep, "high": sweep},
        "start_seconds": start,
        "finish_seconds": 0.5,
        "first_use_seconds": 3.0,
        "memory_mb": memory,
    }


@pytest.fixture
def rounds():
    return [
        {
            OURS: result(0.02 * slow, [0.86, 0.845, 0.84]),
            PLAIN: result(0.01 * slow, [0.86, 0.845, 0.842]),
            SAMPLED: result(0.2, [0.87, 0.86, 0.85]),
            ADAPTIVE: result(0.25, [0.86, 0.85, 0.846]),
            MYFM: result(1.0, [0.88, 0.85, 0.845], memory=None),
            MYFM_PATTERN: result(2.0, [0.88, 0.85, 0.845]),
        }
        for slow in (1.0, 2.0, 1.25)
    ]


MISSING = {"cmfrec": "could not be installed", "softImpute (R)": "R is not present"}


def test_the_wait_has_the_end_of_the_fit_in_it():
    assert wait_for(result(0.1, [0.9, 0.846, 0.8])) == (pytest.approx(1.7), True)
    assert wait_for(result(0.1, [0.9, 0.8461])) == (pytest.approx(1.7), False)


def test_ratios_are_those_of_each_round(rounds):
    assert iteration_ratios(rounds, SAMPLED).values == pytest.approx([10.0, 5.0, 8.0])
    waits = wait_ratios(rounds, ADAPTIVE)
    assert not waits.at_least
    assert waits.values == pytest.approx([2.25 / 1.54, 2.25 / 1.58, 2.25 / 1.55])


def test_what_is_not_reached_is_a_lower_bound(rounds):
    assert wait_ratios(rounds, SAMPLED).at_least
    assert page.spread_text(wait_ratios(rounds, SAMPLED)).startswith("more than 1.4x")
    rounds[1][OURS]["curve"] = rounds[1][OURS]["curve"][:1]
    assert page.spread_text(wait_ratios(rounds, SAMPLED)) == "GASR did not reach it"


def test_the_table_has_a_line_for_every_method(rounds):
    lines = page.measured(rounds, MISSING, SETTING).splitlines()
    by_name = {line.split(" | ")[0][2:]: line for line in lines if line.startswith("| ")}
    table = [name for name in METHODS if name in by_name]
    assert table == [name for name in METHODS if name in rounds[0] or name in MISSING]
    assert by_name["cmfrec"].startswith("| cmfrec | could not be installed |")
    assert by_name[OURS] == "| GASR | 1.2 | 25 ms | 1 | 1.6 s | 1 | 0.8400 | 3 | 50 MB |"
    assert by_name[SAMPLED] == (
        "| SMURFF, sampled noise | 1.2 | 200 ms | 8.0x (5.0 to 10.0) | not reached | "
        "more than 1.4x (1.3 to 1.4) | 0.8500 | 3 | 50 MB |"
    )
    assert by_name[MYFM].endswith("| 0.8450 | 3 |  |")
    columns = {line.count("|") for line in by_name.values() if line.count("|") > 4}
    assert columns == {10}


def test_targets_and_measured_ratios(rounds):
    text = page.measured(rounds, MISSING, SETTING)
    of_myfm = "| myFM: one sweep, over that of GASR, ratings alone | at least 40x |"
    assert f"{of_myfm} 80.0x (50.0 to 100.0) |" in text
    assert "| myFM with the pattern: one sweep, over that of GASR | at least 40x | 80.0x" in text
    kept = (OURS, PLAIN, SAMPLED, ADAPTIVE, MYFM_PATTERN)
    rounds = [{name: each[name] for name in kept} for each in rounds]
    text = page.measured(rounds, {MYFM: "did not run to its end"}, SETTING)
    assert f"{of_myfm} did not run to its end |" in text


def test_one_round_has_no_spread(rounds):
    text = page.measured(rounds[:1], MISSING, SETTING)
    assert "| 10.0x |" in text
    assert "all methods once." in text


def test_replacing_the_measured_part_keeps_other_text():
    old = f"# Title\n\n{page.BEGIN}\nold\n{page.END}\n\n## By hand\n"
    new = page.replace_measured(old, "new")
    assert new == f"# Title\n\n{page.BEGIN}\n\nnew\n\n{page.END}\n\n## By hand\n"
    assert page.replace_measured(new, "new") == new


@pytest.mark.parametrize("mark", [page.BEGIN, page.END])
def test_a_missing_marker_is_an_error(mark):
    text = f"{page.BEGIN}{page.END}".replace(mark, "")
    with pytest.raises(ValueError, match="put them back"):
        page.replace_measured(text, "new")


def test_the_pictures_that_the_page_shows(rounds, tmp_path):
    plots.save_curves(rounds, tmp_path / "benchmarks-curves.png")
    plots.save_bars(rounds, tmp_path / "benchmarks-iterations.png")
    shown = re.findall(r"\(images/([\w-]+\.png)\)", page.measured(rounds, MISSING, SETTING))
    assert sorted(shown) == sorted(path.name for path in tmp_path.iterdir())
    for name in shown:
        with Image.open(tmp_path / name) as picture:
            assert picture.size[0] > 1000
            assert picture.getextrema() != ((255, 255),) * 4
