"""Command lines in the README, the docs and the help can be copied: they run as they stand."""

import re
import shlex
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from fillrank.cli.main import app

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
VERBS = typer.main.get_command(app).commands
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
COMMANDS = ("fillrank", "make", "python", "pip", ".", "echo", "cat", "dask")
PROSE = {
    "make bnech": "no target",
    "make test the tests": "no target",
    "fillrank fit table.csv --sweep 3": "--sweep",
    "fillrank fit table.csv fit once, keep the model": "extra argument",
    "fillrank fill table.csv": "no verb",
    "fillrank explore": "issing",
    "fillrank demo    shows it": "white space",
    "python benchmarks/none.py": "no script",
    "python benchmarks/defaults.py --date FOLDER": "no option",
    "python benchmarks/defaults.py --data FOLDER    FOLDER holds": "white space",
}


def check(line):
    """Raise ValueError if a line cannot be given to a shell as it stands."""
    words = shlex.split(re.sub(r"\s>\s*\S+$", "", line.rpartition(" | ")[2]), comments=True)
    name, *arguments = words
    if re.search(r"\S\s{2,}[^\s#]", line):
        raise ValueError("white space, as before an explanation")
    if Path(name).name == "fillrank":
        _parse(arguments)
    elif name == "make":
        if not {word for word in arguments if "=" not in word} <= TARGETS:
            raise ValueError("no target of that name")
    elif name == "python":
        _check_script(*arguments)


def _parse(arguments):
    if arguments[0] not in VERBS:
        raise ValueError(f"no verb {arguments[0]!r}")
    try:
        VERBS[arguments[0]].make_context(arguments[0], arguments[1:])
    except Exception as error:  # the parser's own, from a package that differs between versions
        raise ValueError(str(error)) from error


def _check_script(script, *arguments):
    if not (ROOT / script).exists():
        raise ValueError("no script of that name")
    text = (ROOT / script).read_text("utf-8")
    if not all(f'"{word}"' in text for word in arguments if word.startswith("--")):
        raise ValueError("no option of that name")


def blocks(text):
    """The lines of blocks of code, indented or fenced, that begin as commands do."""
    plain = re.sub(r"^```(?!sh$|$).*?^```", "", text, flags=re.M | re.S)
    fenced = "".join(re.findall(r"^```(?:sh)?\n(.*?)^```", plain, re.M | re.S)).splitlines()
    indented = re.findall(r"^ {4}(\S.*)$", plain, re.M)
    return [
        line for line in (*fenced, *indented) if Path((line.split() or [""])[0]).name in COMMANDS
    ]


def inline(text):
    """Whole command lines within sentences and tables."""
    found = re.findall(r"`((?:fillrank \w+|python \w+(?:/\w+)+\.py|make) [^`]+)`", text)
    return [line for line in found if not re.search(r"--help|VERB|TABLE$", line)]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_commands_of_a_document_can_be_copied(document):
    text = document.read_text("utf-8")
    for line in (*blocks(text), *inline(text)):
        try:
            check(line)
        except ValueError as error:
            pytest.fail(f"{line}\n{error}")


def test_commands_are_found():
    text = (ROOT / "README.md").read_text("utf-8")
    assert {"make demo", "fillrank complete table.csv"} <= set(blocks(text))
    assert "fillrank predict table.fillrank --missing" in inline(
        (ROOT / "docs" / "start.md").read_text("utf-8")
    )
    assert sum(len(blocks(path.read_text("utf-8"))) for path in DOCUMENTS) > 15


@pytest.mark.parametrize(("line", "reason"), PROSE.items())
def test_what_cannot_be_copied_is_noticed(line, reason):
    with pytest.raises(ValueError, match=re.escape(reason)):
        check(line)


def _examples(verb):
    """The examples in a verb's documentation."""
    after = VERBS[verb].help.partition("Example")[2]
    return [line.strip("- ") for line in after.splitlines() if "fillrank " in line]


@pytest.mark.parametrize("verb", VERBS)
def test_examples_of_the_help_can_be_copied(verb):
    """They parse, and a terminal of the usual width does not break them."""
    shown = CliRunner().invoke(app, [verb, "--help"], env={"COLUMNS": "80"}).stdout
    examples = _examples(verb)
    assert examples
    for line in examples:
        check(line)
        assert line in shown
