import re

import numpy as np
import pytest

from fillrank.cli import demo
from helpers.result_files import read_csv, read_json


@pytest.fixture(scope="module")
def weather():
    return demo.generate_weather()


@pytest.mark.usual_trial
def test_the_demo_recovers_the_known_truth(fillrank, tmp_path, weather):
    ran = fillrank("demo")
    assert ran.code == 0, ran.err
    folder = tmp_path / "demo-output"
    assert "Rank 3 " in ran.out
    assert read_json(folder / "summary.json")["results"]["rank"] == demo.PATTERNS

    noise = float(re.search(r"Noise level ([\d.]+)", ran.out)[1])
    assert 0.45 < noise < 0.55
    error = float(re.search(r"True error RMSE ([\d.]+)", ran.out)[1])
    assert error < demo.NOISE / 2
    held = float(re.search(r"True coverage ([\d.]+)%", ran.out)[1])
    assert 80 < held < 100

    for plot in ("spectrum.png", "trace.png"):
        assert (folder / plot).read_bytes().startswith(b"\x89PNG")
    filled = np.array([line[1:] for line in read_csv(folder / "filled.csv")[1:]], dtype=float)
    lost = np.isnan(weather.readings)
    np.testing.assert_array_equal(filled[~lost], weather.readings[~lost])
    # Filled cells have the one decimal of the readings, which adds the error of rounding.
    rounded = np.hypot(error, 0.1 / np.sqrt(12))
    assert np.sqrt(np.mean((filled - weather.truth)[lost] ** 2)) == pytest.approx(rounded, abs=1e-3)


def test_the_demo_replaces_only_its_own_files(fillrank, tmp_path, monkeypatch):
    jobs = []
    monkeypatch.setattr(demo, "run", lambda job, more: jobs.append(job))
    for _ in range(2):
        assert fillrank("demo", "--output", "out").code == 0
    assert len(jobs) == 2
    header, first, *_ = read_csv(tmp_path / "out" / "table.csv")
    assert header[:2] == ["station", "day 001"]
    assert first[0] == "station 001"

    (tmp_path / "out" / "table.csv").write_text("mine,x\n1,2\n")
    ran = fillrank("demo", "--output", "out")
    assert ran.code == 2
    assert "not from the demo: table.csv" in ran.err
    assert "--output" in ran.err
    assert (tmp_path / "out" / "table.csv").read_text() == "mine,x\n1,2\n"


def test_the_generated_table_matches_its_description(weather):
    assert weather.truth.shape == (demo.STATIONS, demo.DAYS)
    centred = weather.truth - weather.truth.mean(axis=0)
    centred -= centred.mean(axis=1, keepdims=True)
    assert np.linalg.matrix_rank(centred) == demo.PATTERNS
    assert np.isnan(weather.readings).mean() == pytest.approx(demo.MISSING, abs=0.02)
    assert np.nanstd(weather.readings - weather.truth) == pytest.approx(demo.NOISE, abs=0.02)
