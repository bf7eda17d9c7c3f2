"""No command replaces its input, by any name or link, even with --force."""

import os
import subprocess
import sys

import numpy as np
import pytest

import fillrank as fr
from helpers.refusals import assert_refused


@pytest.fixture
def files(tmp_path, matrix, write_wide):
    """A table under the names of results, a model, and pairs; all of them also by links."""
    table = write_wide()
    (tmp_path / "results").mkdir()
    os.link(table, tmp_path / "results" / "filled.csv")
    (tmp_path / "results" / "table-report.html").symlink_to(table)
    fr.SoftImpute(penalty=1.0, progress=False).fit(np.nan_to_num(matrix)).save(
        tmp_path / "model", with_data=True
    )
    (tmp_path / "pairs.csv").write_text("1,2\n")
    folder = tmp_path / "published"
    folder.mkdir()
    (folder / "u.data").write_text("1\t2\t3\t4\n")
    links = {"m.csv": "model", "t.csv": "table.csv", "u.csv": "published/u.data"}
    for name, target in {**links, "t.fillrank": "table.csv", "m.html": "model"}.items():
        (tmp_path / name).symlink_to(target)
    names = ("table.csv", "model", "pairs.csv", "published/u.data")
    return {name: (tmp_path / name).read_bytes() for name in names}


@pytest.mark.parametrize(
    "arguments",
    [
        ("report", "model", "-o", "model"),
        ("report", "model", "-o", "m.html"),
        ("report", "m.html", "-o", "model"),
        ("report", "table.csv", "-o", "table.csv"),
        ("report", "table.csv", "-o", "results/filled.csv"),
        ("complete", "table.csv", "-o", "results"),
        ("complete", "results/filled.csv", "-o", "results"),
        ("fit", "table.csv", "-o", "t.fillrank"),
        ("fit", "model", "--format", "csv", "-o", "../{folder}/model"),
        ("compare", "table.csv", "-o", "table.csv"),
        ("compare", "table.csv", "-o", "t.csv"),
        ("predict", "model", "pairs.csv", "-o", "pairs.csv"),
        ("predict", "model", "pairs.csv", "-o", "m.csv"),
        ("predict", "model", "--missing", "-o", "m.csv"),
        ("recommend", "model", "--all", "-o", "m.csv"),
        ("datasets", "ml-100k", "--from", "published", "-o", "u.csv"),
    ],
)
def test_what_is_read_is_not_replaced(fillrank, files, tmp_path, arguments):
    words = [word.format(folder=tmp_path.name) for word in arguments]
    for more in ((), ("--force",)):
        ran = fillrank(*words, *more)
        assert_refused(ran, "would replace the input", "--output")
        assert "Read" not in ran.err
        assert "Loaded" not in ran.err
    assert {name: (tmp_path / name).read_bytes() for name in files} == files


def test_a_file_that_comes_through_standard_input(files, tmp_path):
    command = [sys.executable, "-m", "fillrank", "complete", "-", "-o", "results", "--force"]
    with (tmp_path / "table.csv").open("rb") as table:
        ran = subprocess.run(
            command, stdin=table, cwd=tmp_path, capture_output=True, check=False, timeout=120
        )
    assert ran.returncode == 2
    assert b"would replace the input, standard input" in ran.stderr
    assert (tmp_path / "table.csv").read_bytes() == files["table.csv"]
