"""What the README and the docs promise is there, and the README's examples run."""

import doctest
import operator
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fillrank as fr

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document):
    text = document.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (document.parent / target).exists(), target
    assert not re.search(r"@\w+@", text), "a figure is missing"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_scripts_that_are_named_exist(document):
    text = document.read_text(encoding="utf-8")
    for script in re.findall(r"python ((?:benchmarks|docs)(?:/\w+)+\.py)", text):
        assert (ROOT / script).exists(), script


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_public_names_that_are_mentioned_exist(document):
    for name in set(re.findall(r"\bfr\.(\w+(?:\.\w+)?)", document.read_text(encoding="utf-8"))):
        assert operator.attrgetter(name)(fr) is not None, name


def test_times_of_sweeps_are_those_of_the_benchmarks():
    page = (ROOT / "docs" / "benchmarks.md").read_text("utf-8")
    measured = re.findall(r"^\| ([\w ,]+) \| [\w.]+ \| (\d+) ms \|", page, re.M)
    times = {method: int(time) for method, time in measured}
    gasr, bpmf, smurff = times["GASR"], times["BPMF"], times["SMURFF, sampled noise"]
    readme = " ".join((ROOT / "README.md").read_text("utf-8").split())
    assert f"takes {gasr} ms on two cores, where SMURFF's takes {smurff} ms" in readme
    ratio = f"{bpmf / smurff:.2f}"
    assert f"A sweep takes {ratio} of the time of SMURFF's ({bpmf} ms in the same run)" in readme
    assert f"| at most 1.0x | {ratio}x |" in (ROOT / "docs" / "figures.md").read_text("utf-8")


@pytest.mark.usual_trial
def test_the_examples_of_the_readme(tmp_path, monkeypatch):
    """All of them, one after the other, as a reader would run them."""
    rng = np.random.default_rng(0)
    drinks = ["tea", "coffee", "milk", "cocoa"]

    def rated(people):
        return [f"{p},{d},{rng.integers(1, 6)}" for p in people for d in drinks]

    lines = ["who,drink,rating", *rated(["Ana", *(f"guest {i}" for i in range(30))])]
    del lines[3]  # Ana has not tried milk
    (tmp_path / "ratings.csv").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "new.csv").write_text("\n".join([lines[0], *rated(["Zoe"])[1:]]), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.S)
    assert len(examples) > 1
    table = rng.standard_normal((20, 5))
    table[3, 2] = np.nan
    guests = ["Ana", *(f"guest {i}" for i in range(30))]
    people = pd.DataFrame({"age": rng.integers(20, 80, 31), "town": ["A", "B", *"C" * 29]}, guests)
    names = {
        "table": table,
        "new_rows": fr.read("new.csv"),
        "people": people,
        "newcomers": people[:1].set_axis(["Yann"]),
        "patients": people.assign(lead=["<0.5", *rng.exponential(size=30)]),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for example in examples:
            exec(example, names)
    assert names["filled"].shape == (20, 5)
    assert np.isfinite(names["filled"]).all()
    assert (names["completed"]["lead"] > 0).all()


@pytest.mark.usual_trial
def test_the_examples_of_the_life_of_a_model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = str(ROOT / "docs" / "life_of_a_model.md")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = doctest.testfile(page, module_relative=False, encoding="utf-8")
    assert results.failed == 0
    assert results.attempted > 20
