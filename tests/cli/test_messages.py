"""What is said: safe to show, in options' words, and each help text with an example."""

import re

import pytest

from fillrank.cli import messages
from fillrank.cli.main import app
from fillrank.errors import InputError, Setting

VERBS = [command.callback.__name__.replace("_", "-") for command in app.registered_commands]


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_every_command_has_an_example(fillrank, verb):
    ran = fillrank(verb, "--help")
    assert ran.code == 0
    assert re.search(r"Examples?:", ran.out)
    assert f"fillrank {verb} " in ran.out


def test_help_has_all_verbs_and_the_exit_codes(fillrank):
    ran = fillrank("--help")
    wanted = (
        "complete fit predict recommend fold-in update explore report evaluate compare demo datasets "
        "reproduce"
    )
    assert wanted.split() == VERBS
    for code in ("0:", "1:", "2:", "130:", "141:", "143:"):
        assert code in ran.out


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2Jgone", r"\x1b[2Jgone"),
        ("a\x9b31mb", r"a\x9b31mb"),
        ("right\u202eleft", r"right\u202eleft"),
        ("back\bspace\r", r"back\x08space\r"),
        ("[red]x[/red]", "[red]x[/red]"),
        ("été ☃ 名\u00ad", "été ☃ 名\\xad"),
    ],
)
def test_text_of_users_is_not_interpreted_as_markup(capsys, text, shown):
    messages.report(messages.escape(text))
    messages.show_results([(text, text)])
    messages.report_error(InputError(text))
    said = capsys.readouterr()
    assert said.err.splitlines() == [shown, f"Error: {shown}"]
    assert said.out.split() == [*shown.split(), *shown.split()]


def test_lines_stay_lines_but_not_in_tables():
    assert messages.escape("a\nb") == "a\nb"
    assert messages.escape_line("a\nb") == "a\\nb"


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        (Setting("duplicates", "mean"), "Set --duplicates mean."),
        (Setting("n_sweeps"), "Set --sweeps."),
        (Setting("n_chains", 2), "Set --chains 2."),
        (Setting("checkpoint", ...), "Set --checkpoint DIR."),
        (Setting("tolerance", 0.1), ""),  # not an option
    ],
)
def test_settings_of_the_library_are_options_here(setting, text):
    error = InputError("wrong", advice=("Set ", setting, "."))
    assert messages.describe_error(error) == f"wrong. {text}".rstrip()


def test_labels_that_look_like_settings_stay():
    message = "no column 'max_rank'; it has 'n_sweeps'"
    assert messages.describe_error(InputError(message)) == message


def test_arguments_that_are_refused_are_options_here():
    error = InputError(place=Setting("n_sweeps"), allowed="at least 1", value=0)
    assert messages.describe_error(error) == "--sweeps must be at least 1, got 0 instead."
