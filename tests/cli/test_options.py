"""`filled_in`: commands with the options of the arguments that they take."""

from typing import Annotated, NamedTuple

import typer
from typer.testing import CliRunner

from fillrank.cli.options import filled_in


class Paint(NamedTuple):
    colour: Annotated[str, typer.Option()] = "red"
    coats: Annotated[int, typer.Option(help="Coats of paint.")] = 2
    gloss: Annotated[bool, typer.Option("--gloss")] = False


def test_an_argument_is_made_from_its_options():
    got = []

    @filled_in(first=("gloss",), without=("colour",), paint=Paint)
    def command(
        *, wall: str, coats: Annotated[int, typer.Option(help="Own help.")] = 1, paint: Paint
    ):
        got.append((wall, paint, coats))

    def run(*arguments):
        app = typer.Typer()
        app.command()(command)
        ran = CliRunner().invoke(app, arguments)
        assert ran.exit_code == 0, ran.output
        return ran.output

    run("north", "--gloss")
    run("south", "--coats", "3")
    assert got == [("north", Paint("red", 1, True), 1), ("south", Paint("red", 3), 3)]
    shown = run("--help")
    assert "Own help" in shown
    assert "Coats of paint" not in shown
    assert "--colour" not in shown
    assert shown.index("--gloss") < shown.index("--coats")
