"""What a runner of benchmarks/peers leaves behind, on a tiny table."""

import json

import numpy as np
import pytest
import run_fillrank
from contract import (
    Clock,
    Curve,
    Entries,
    Memory,
    Problem,
    fit_again_and_again,
    read_problem,
    write_entries,
)

import fillrank as fr

SHAPE = (81, 50)  # more than the table of the first use has


@pytest.fixture(scope="module")
def parts():
    """Entries to fit and to test, on a scale of 1 to 5, the last row without any."""
    rng = np.random.default_rng(0)
    truth = 3 + rng.standard_normal((80, 2)) @ rng.standard_normal((2, 50))
    rows, columns = np.nonzero(rng.random(truth.shape) < 0.6)
    values = np.clip(np.round(truth[rows, columns]), 1, 5)
    in_test = rng.random(len(values)) < 0.2
    return [Entries(rows[s], columns[s], values[s]) for s in (~in_test, in_test)]


def arguments(folder, parts, variant, iterations):
    write_entries(folder / "problem.npz", *parts, SHAPE)
    numbers = {"rank": 3, "threads": 2, "iterations": iterations, "seed": 4}
    words = [word for key, value in numbers.items() for word in (f"--{key}", str(value))]
    return [
        str(folder / "problem.npz"),
        str(folder / "result.json"),
        *words,
        "--variant",
        variant,
    ]


def test_problems_are_read_as_written(tmp_path, parts):
    problem = read_problem(arguments(tmp_path, parts, "GASR", 15))
    for got, want in zip((problem.train, problem.test), parts, strict=True):
        np.testing.assert_array_equal(got, want)
    assert problem[2:] == (SHAPE, 3, 2, 15, 4, "GASR", tmp_path / "result.json")


@pytest.mark.parametrize("method", ["GASR", "BPMF"])
def test_fillrank_runner_records_a_curve(method, tmp_path, parts):
    run_fillrank.main(arguments(tmp_path, parts, method, 25))
    result = json.loads((tmp_path / "result.json").read_text("utf-8"))
    curve = result["curve"]
    assert [point["iteration"] for point in curve] == list(range(11, 26))
    seconds = [point["seconds"] for point in curve]
    assert 0 < result["start_seconds"] < seconds[0]
    assert (np.diff(seconds) > 0).all()
    each = result["seconds_per_iteration"]
    assert 0 < each["low"] <= each["median"] <= each["high"]
    assert result["finish_seconds"] > 0
    assert result["first_use_seconds"] > 0
    assert result["version"] == fr.__version__


@pytest.mark.parametrize("method", ["GASR", "BPMF"])
def test_fillrank_curve_equals_that_of_the_public_fit(method, tmp_path, parts):
    iterations = 14
    run_fillrank.main(arguments(tmp_path, parts, method, iterations))
    curve = json.loads((tmp_path / "result.json").read_text("utf-8"))["curve"]
    train, test = parts
    model = getattr(fr, method)(
        max_rank=3, burn_in=10, n_sweeps=iterations, n_chains=1, random_state=4, progress=False
    )
    with pytest.warns(fr.ConvergenceWarning):
        model.fit(run_fillrank.observations_of(train, SHAPE))
    units = model.posterior_.units
    draws = [draw.at(test.rows, test.columns) for draw in model.recorded_draws()]
    for n, point in enumerate(curve, 1):
        means = units.location[0] + units.scale[0] * np.mean(draws[:n], axis=0)
        error = np.clip(means, 1, 5) - test.values
        assert point["test_rmse"] == pytest.approx(np.sqrt(np.mean(error**2)), rel=1e-9)


def test_curves_average_draws_and_clip_to_the_scale():
    curve = Curve(Entries(np.arange(2), np.arange(2), np.array([5.0, 2.0])))
    curve.average(1, 0.5, np.array([9.0, 2.0]))
    curve.average(2, 0.7, np.array([-3.0, 2.0]))
    # 9 is cut to 5; the average of 9 and -3 is 3, for it is taken before the cut
    assert [point["test_rmse"] for point in curve.points] == pytest.approx([0.0, np.sqrt(2.0)])


def test_curves_of_programs_without_intermediate_results(parts):
    problem = Problem(*parts, SHAPE, 3, 1, 12, 0, "", None)
    asked = []
    curve, work = fit_again_and_again(
        problem, lambda n: asked.append(n) or n, lambda n: np.full(len(parts[1].values), float(n))
    )
    assert asked == [1, 2, 5, 10] == [point["iteration"] for point in curve.points]
    seconds = [point["seconds"] for point in curve.points]
    assert work.iterations == pytest.approx(np.diff(seconds) / [1, 3, 5])


def test_a_paused_clock_stands_still(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("contract.time.perf_counter", lambda: now[0])
    clock = Clock()
    now[0] = 2.0
    with clock.paused():
        now[0] = 7.0
    assert clock.seconds == 2.0
    now[0] = 8.0
    assert clock.seconds == 3.0


def test_memory_is_the_increase_at_the_peak():
    memory = Memory()
    if memory.added() is None:
        pytest.skip("needs /proc")
    big = np.ones(2**23)  # 64 MB
    del big
    assert 60 < memory.added() < 100
