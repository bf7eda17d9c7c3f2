"""Errors and warnings: their texts, their fields, and copies of them."""

import copy
import inspect
import multiprocessing
import pickle
import warnings
from pathlib import Path

import pytest

from fillrank import errors
from fillrank.errors import (
    CheckpointWarning,
    FileLocation,
    FillrankError,
    FillrankWarning,
    InputError,
    OutputError,
    ReadError,
    Setting,
    UnknownNameError,
    describe,
)

CLASSES = [
    cls
    for _, cls in inspect.getmembers(errors, inspect.isclass)
    if issubclass(cls, FillrankError | FillrankWarning)
]
BUILT_IN = {
    "InputError": ValueError,
    "UnknownNameError": KeyError,
    "ReadError": ValueError,
    "OutputError": OSError,
    "NotSupportedError": NotImplementedError,
    "ClusterError": RuntimeError,
    "NumericalError": ArithmeticError,
}


def make(cls):
    return cls(
        ("two values with ", Setting("layout", "long")),
        place=FileLocation("ratings.csv", 3, "rating"),
        value="x",
        allowed="a number",
        advice=["Clear the cell.", ("Or set ", Setting("duplicates", "mean"), ".")],
        kind="number",
    )


def fields(error):
    return error.message, error.place, error.value, error.allowed, error.advice, error.kind


def as_option(setting):
    return {"duplicates": f"--duplicates {setting.value}"}.get(setting.name)


def test_there_are_classes_to_check():
    assert len(CLASSES) == 14


@pytest.mark.parametrize("cls", CLASSES)
def test_text_has_all_fields(cls):
    assert str(make(cls)) == (
        "ratings.csv, line 3, column 'rating': two values with layout=\"long\"; expected a number, "
        "got 'x'. Clear the cell. Or set duplicates=\"mean\"."
    )


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))])
def test_copies_have_the_same_fields_and_text(cls, how):
    error = make(cls)
    again = how(error)
    assert type(again) is cls
    assert fields(again) == fields(error)
    assert str(again) == str(error)


@pytest.mark.parametrize(("name", "base"), BUILT_IN.items())
def test_classes_are_those_that_callers_expect(name, base):
    cls = getattr(errors, name)
    assert issubclass(cls, FillrankError)
    assert issubclass(cls, base)
    assert isinstance(cls("x", place="y"), base)


@pytest.mark.parametrize("cls", CLASSES)
def test_a_message_alone_is_the_text(cls):
    assert str(cls("one line.\nAnother, with a 'quote'")) == "one line.\nAnother, with a 'quote'"
    assert cls("text").args == ("text",)


def _raise(value):
    raise UnknownNameError("no such row", place="row", value=value)


def test_errors_of_other_processes_arrive_with_their_fields():
    refused = pytest.raises(UnknownNameError, match="row: no such row; got 'Zoe'")
    with multiprocessing.get_context("spawn").Pool(1) as pool, refused as caught:
        pool.apply(_raise, ("Zoe",))
    assert caught.value.value == "Zoe"


def test_an_argument_needs_no_message():
    error = InputError(place=Setting("n_sweeps"), allowed="at least 1", value=0)
    assert str(error) == "n_sweeps must be at least 1, got 0 instead."
    assert describe(error, lambda setting: "--sweeps").startswith("--sweeps must be at least 1")
    assert str(InputError(place="x", allowed="a number")) == "x must be a number."
    assert str(InputError(allowed="a number", value=None)) == (
        "the value must be a number, got None instead."
    )


def test_values_that_cannot_be_pickled_are_stored_as_text():
    error = InputError(place="x", allowed="a number", value=lambda: None)
    again = pickle.loads(pickle.dumps(error))
    assert "<lambda>" in str(again)
    assert str(again) == str(error)


def test_long_values_are_cut():
    text = str(InputError(place="x", allowed="short", value="y" * 10_000))
    assert len(text) < 300
    assert text.endswith("y... instead.")


def test_front_ends_leave_out_advice_that_their_users_cannot_follow():
    error = InputError(
        "two values",
        advice=[
            "Delete one.",
            ("Or set ", Setting("duplicates", "mean"), "."),
            ("Or set ", Setting("layout", "long"), "."),
        ],
    )
    assert describe(error, as_option) == "two values. Delete one. Or set --duplicates mean."
    assert describe(error, lambda setting: None) == "two values. Delete one."
    assert error.settings == {"duplicates", "layout"}


def test_a_setting_in_a_statement_is_written_in_any_case():
    error = InputError(("not with ", Setting("layout", "wide")))
    assert describe(error, lambda setting: None) == 'not with layout="wide"'
    assert describe(error, lambda setting: "--layout wide") == "not with --layout wide"


def test_examples_and_advice_are_on_lines_of_their_own():
    error = InputError("two values:\n  row 1: 2, 3", advice="Delete one.")
    assert str(error) == "two values:\n  row 1: 2, 3\nDelete one."


def test_text_of_a_user_is_never_a_format():
    text = '{0} %s {place} duplicates="mean" n_sweeps'
    assert describe(InputError(text, place=text), as_option) == f"{text}: {text}."


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        (Setting("n_sweeps"), "n_sweeps"),
        (Setting("n_sweeps", 5), "n_sweeps=5"),
        (Setting("by", "mean"), 'by="mean"'),
        (Setting("path", ...), "path=..."),
    ],
)
def test_settings_are_written_as_python(setting, text):
    assert str(setting) == text


def test_at_adds_a_place():
    error = ReadError("not a number", place=FileLocation("a.csv", 2), advice="Clear it.", kind="n")
    located = error.at(Path("folder"))
    assert str(located) == "folder: a.csv, line 2: not a number. Clear it."
    assert (located.advice, located.kind, type(located)) == (error.advice, "n", ReadError)
    assert str(error) == "a.csv, line 2: not a number. Clear it."
    assert str(ReadError("empty").at(Path("a.csv"))) == "a.csv: empty."


def test_copies_that_share_their_fields_change_no_error(monkeypatch):
    """As with tblib, which distributed installs."""
    monkeypatch.setattr("copy.copy", lambda error: error)
    error = ReadError("empty", advice="Clear it.")
    assert error.at("a.csv") is not error
    assert error.with_advice("Or delete it.") is not error
    assert (error.place, error.advice) == (None, ("Clear it.",))


def test_with_advice_adds_sentences():
    error = UnknownNameError("no row 'Zoe'.").with_advice(
        ("Set ", Setting("unknown", "prior"), ".")
    )
    assert str(error) == "no row 'Zoe'. Set unknown=\"prior\"."
    assert error.settings == {"unknown"}


def test_errors_of_python_are_described_too():
    assert describe(OSError(2, "No such file", "a.csv")) == "No such file: a.csv"
    assert describe(OSError(28, "No space left")) == "No space left"
    assert describe(KeyboardInterrupt()) == "KeyboardInterrupt"
    assert describe(OutputError("a.csv exists", advice="Name another.")) == (
        "a.csv exists. Name another."
    )


def test_warnings_can_be_issued_and_filtered():
    with pytest.warns(CheckpointWarning, match="not saved; got 'x'") as caught:
        warnings.warn(CheckpointWarning("not saved", value="x"), stacklevel=1)
    assert caught[0].message.value == "x"
    with warnings.catch_warnings():
        warnings.simplefilter("error", FillrankWarning)
        with pytest.raises(CheckpointWarning):
            warnings.warn("plain text", CheckpointWarning, stacklevel=1)
