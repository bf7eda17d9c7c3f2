"""What is said: safe to show, in options' words, and each help text with an example."""

import re

import pytest

from fillrank.cli import messages
from fillrank.cli.main import app
from fillrank.errors import InputError

VERBS = [command.callback.__name__ for command in app.registered_commands]


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself_with_an_example(fillrank, verb):
    ran = fillrank(verb, "--help")
    assert ran.code == 0
    assert re.search(r"Examples?:", ran.out)
    assert f"fillrank {verb} " in ran.out


def test_help_has_all_verbs_and_the_exit_codes(fillrank):
    ran = fillrank("--help")
    wanted = (
        "complete fit predict recommend explore report evaluate compare demo datasets reproduce"
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
def test_text_of_users_is_shown_and_not_obeyed(capsys, text, shown):
    messages.say(messages.escape(text))
    messages.show_results([(text, text)])
    messages.complain(InputError(text))
    said = capsys.readouterr()
    assert said.err.splitlines() == [shown, f"Error: {shown}"]
    assert said.out.split() == [*shown.split(), *shown.split()]


def test_lines_stay_lines_but_not_in_tables():
    assert messages.escape("a\nb") == "a\nb"
    assert messages.on_one_line("a\nb") == "a\\nb"


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ('use duplicates="mean".', "use --duplicates mean."),
        ("Set n_sweeps above 5. With n_chains=2, it", "Set --sweeps above 5. With --chains 2, it"),
        ("Lower max_rank, or", "Lower --max-rank, or"),
        ("no column 'max_rank'; it has 'n_sweeps'", "no column 'max_rank'; it has 'n_sweeps'"),
    ],
)
def test_arguments_of_the_library_are_options_here_and_names_stay(message, words):
    assert messages.in_words(InputError(message)) == words
