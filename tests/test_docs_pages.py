"""The pages for people: their examples run, at the terminal as in Python, and nothing is left out."""

import doctest
import re
import shlex
import textwrap
import warnings
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import fillrank as fr
from fillrank.cli.main import app

DOCS = Path(__file__).parents[1] / "docs"
EXAMPLES = (
    "start",
    "gallery",
    "ratings",
    "sensors",
    "surveys",
    "kinds",
    "features",
    "coming_from",
    "which_method",
    "other_methods",
    "reading_results",
    "limits",
    "file_format",
)
# A number with a decimal point, or a percentage.
MEASURED = re.compile(r"(?<![\w.])-?\d+\.\d*(?![\w.])|(?<![\w.])\d+(?=%)")


class Nearly(doctest.OutputChecker):
    """Takes measured numbers that are near: a random walk differs between kinds of processors.

    Near is a tenth, or one and a half units of the last digit; of a percentage, five points. All other
    text, whole numbers included, has to be the same.
    """

    def check_output(self, want, got, optionflags):
        wanted, found = MEASURED.findall(want), MEASURED.findall(got)
        same_text = MEASURED.sub("#", want).split() == MEASURED.sub("#", got).split()
        return same_text and all(map(_near, wanted, found))


def _near(want, got):
    if "." not in want:
        return abs(float(want) - float(got)) <= 5
    unit = 10.0 ** -len(want.partition(".")[2])
    return abs(float(want) - float(got)) <= max(0.1 * abs(float(want)), 1.5 * unit)


@pytest.mark.parametrize(
    ("want", "got", "passes"),
    [
        ("0.82 1.9", "0.83  1.8", True),
        ("0.82", "0.92", False),
        ("hold 90%", "hold 94%", True),
        ("hold 90%", "hold 84%", False),
        ("rank 2", "rank 3", False),
        ("[1.0, 2.0]", "[1.0]", False),
        ("a 1.0", "b 1.0", False),
        ("-0.0 to 0.7", "0.0 to 0.7", True),
    ],
)
def test_approximate_comparison_of_output(want, got, passes):
    assert Nearly().check_output(want, got, 0) == passes


@pytest.mark.usual_trial
@pytest.mark.parametrize("page", EXAMPLES)
def test_the_examples_of_a_page(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # Tests of the command and of the report look at these.
    monkeypatch.setattr("fillrank.cli.complete._save_plot", lambda ax, path: path.touch())
    text = (DOCS / f"{page}.md").read_text("utf-8")
    test = doctest.DocTestParser().get_doctest(text, {}, page, page, 0)
    said = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = doctest.DocTestRunner(Nearly(), verbose=False).run(test, out=said.append)
        assert not results.failed, "".join(said)
        assert results.attempted > 5
        for command in _commands(text):
            printed = _run(command)
            assert _without_numbers(_shown(text, command)) in _without_numbers(printed), command


def test_the_method_of_the_page_for_developers():
    """The class that extending.md shows can be fitted."""
    text = (DOCS / "extending.md").read_text("utf-8")
    names = {}
    exec(textwrap.dedent(re.search(r"^ *```python\n(.*?)```", text, re.S | re.M)[1]), names)
    table = np.array([[1.0, 2.0, np.nan], [3.0, np.nan, 5.0]])
    filled = names["RowMeans"](progress=False).fit_transform(table)
    np.testing.assert_allclose(filled, [[1.0, 2.0, 1.5], [3.0, 4.0, 5.0]])


def test_the_imports_of_all_pages():
    """Also those of examples that need a cluster."""
    text = "\n".join(page.read_text("utf-8") for page in DOCS.glob("*.md"))
    lines = set(re.findall(r"^ *(from fillrank[\w.]* import .+)$", text, re.M))
    assert len(lines) > 5
    for line in lines:
        exec(line, {})


def _commands(text):
    """The lines of the blocks marked as those of a shell."""
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.S | re.M)
    return [line for block in blocks for line in block.splitlines()]


def _run(command):
    echo, _, piped = command.rpartition(" | ")
    verb = shlex.split(piped)
    given = shlex.split(echo)[1] if echo else None
    result = CliRunner().invoke(app, verb[1:], input=given)
    assert verb[0] == "fillrank"
    assert result.exit_code == 0, f"{command}: {result.output}"
    return result.stdout


def _shown(text, command):
    """What a page shows as the output of a command: the indented lines after "prints"."""
    found = re.search(
        rf"^{re.escape(command)}\n```\n\nprints [^\n]*\n\n((?:    [^\n]*\n)+)", text, re.M
    )
    return found[1] if found else ""


def _without_numbers(printed):
    """Numbers may differ between kinds of processors, and lines are broken to the terminal's width."""
    return " ".join(re.sub(r"\d+(\.\d+)?", "#", printed).split())


def test_the_output_of_a_command_is_found():
    assert "Converged" in _shown(
        (DOCS / "start.md").read_text("utf-8"), "fillrank complete temperatures.csv"
    )


def test_all_public_names_are_in_the_reference():
    pages = [DOCS / "reference.md", *(DOCS / "reference").glob("*.md")]
    text = "\n".join(page.read_text("utf-8") for page in pages)
    assert not {name for name in fr.__all__ if not re.search(rf"\b(fillrank|fr)\.{name}\b", text)}


def test_all_methods_of_fitted_estimators_are_in_the_reference():
    """The page of `Completion` lists them one by one, without those that only fillrank itself calls."""
    page = (DOCS / "reference" / "Completion.md").read_text("utf-8")
    listed = set(re.findall(r"automethod:: fillrank\.Completion\.(\w+)", page))
    shared = set(dir(fr.Completion)) & (set(dir(fr.GASR)) | set(dir(fr.IPM3F)))
    assert {name for name in shared if not name.startswith("_")} == listed


def test_all_commands_are_in_the_table_of_the_start_page():
    text = (DOCS / "start.md").read_text("utf-8")
    verbs = {command.name or command.callback.__name__ for command in app.registered_commands}
    verbs = {verb.replace("_", "-") for verb in verbs}  # as typer names them
    assert verbs == set(re.findall(r"^\|.*?\| `fillrank ([\w-]+)", text, re.M))


def test_all_pages_are_in_the_contents():
    listed = re.findall(r"^\w+$", (DOCS / "index.md").read_text("utf-8"), re.M)
    assert set(listed) == {page.stem for page in DOCS.glob("*.md")} - {"index"}
