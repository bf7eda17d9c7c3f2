"""The errors and warnings of the package.

An error says what is wrong in a message, and carries fields that a program can use: ``place``,
``value``, ``allowed``, ``advice`` and ``kind``. ``str(error)`` composes them for users of Python.
Another front end calls `describe` with its own way to write a setting: ``duplicates="mean"`` in Python
is ``--duplicates mean`` on the command line.

The classes also derive from the built-in error that a caller would expect, so ``except ValueError``
works.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self

_LONGEST_VALUE = 200  # characters of a value in a message
_PLAIN = (str, bytes, int, float, complex, bool, type(None), os.PathLike)


@dataclass(frozen=True)
class Setting:
    """A setting of the library that a message refers to.

    Parameters
    ----------
    name : str
        The argument of the library.
    value : object, optional
        The value to set; ``...`` if the user has to choose it.

    Examples
    --------
    >>> str(Setting("n_sweeps")), str(Setting("duplicates", "mean")), str(Setting("checkpoint", ...))
    ('n_sweeps', 'duplicates="mean"', 'checkpoint=...')
    """

    name: str
    value: Any = None

    def __str__(self) -> str:
        if self.value is None:
            return self.name
        if self.value is ...:
            return f"{self.name}=..."
        value = f'"{self.value}"' if isinstance(self.value, str) else repr(self.value)
        return f"{self.name}={value}"


@dataclass(frozen=True)
class FileLocation:
    """A location in a file: the line, counted from 1, and the label of the column, if known.

    Examples
    --------
    >>> str(FileLocation("ratings.csv", 3, "rating"))
    "ratings.csv, line 3, column 'rating'"
    """

    file: str
    line: int | None = None
    column: Any = None

    def __str__(self) -> str:
        text = self.file
        if self.line is not None:
            text += f", line {self.line}"
        return text if self.column is None else f"{text}, column {self.column!r}"


Piece = str | Setting | FileLocation
Text = Piece | tuple[Piece, ...]  # the pieces of a tuple are joined
SettingFormat = Callable[[Setting], str | None]


class _Repr(str):
    """The representation of a value that is not stored itself."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class _Fields(Exception):  # noqa: N818 (warnings derive from it too)
    """The fields that errors and warnings share.

    Parameters
    ----------
    message : Text
        What is wrong. It may be left out if ``place`` and ``allowed`` are given.
    place : Text, optional
        Where: a file, a `FileLocation`, an argument (a `Setting`) or a label.
    value : object, optional
        What came.
    allowed : Text, optional
        What would be right.
    advice : Text or list of Text
        What to do: a sentence, or several.
    kind : str
        A short name of the problem, if front ends have more advice about it.

    Examples
    --------
    >>> print(InputError(place=Setting("n_sweeps"), allowed="a whole number of at least 1", value=0))
    n_sweeps must be a whole number of at least 1, got 0 instead.
    >>> print(ReadError("not a number", place=FileLocation("a.csv", 3), value="x", advice="Clear it."))
    a.csv, line 3: not a number; got 'x'. Clear it.
    """

    def __init__(
        self,
        message: Text = "",
        *,
        place: Text | os.PathLike[str] | None = None,
        value: Any = ...,
        allowed: Text | None = None,
        advice: Text | list[Text] = (),
        kind: str = "",
    ):
        # With the message as the only argument and the fields in __dict__, copy and pickle work as
        # they do for any exception.
        super().__init__(message)
        self.message = message
        self.place: Text | None = str(place) if isinstance(place, os.PathLike) else place
        self.value = value if value is ... or isinstance(value, _PLAIN) else _Repr(_shown(value))
        self.allowed = allowed
        self.advice: tuple[Text, ...] = tuple(_sentences(advice))
        self.kind = kind

    def __str__(self) -> str:
        return describe(self)

    @property
    def settings(self) -> set[str]:
        """The names of the settings that the advice refers to."""
        return {setting.name for text in self.advice for setting in _settings(text)}

    def at(self, place: Text | os.PathLike[str]) -> Self:
        """Return the same error, located at ``place``; a more specific place is appended to it."""
        outer = str(place) if isinstance(place, os.PathLike) else place
        inner = () if self.place is None else (": ", *_pieces(self.place))
        return self._replace(place=(*_pieces(outer), *inner) if inner else outer)

    def moved(self, place: Text) -> Self:
        """Return the same error at another place."""
        return self._replace(place=place)

    def with_advice(self, *sentences: Text) -> Self:
        """Return the same error with further advice."""
        return self._replace(advice=(*self.advice, *sentences))

    def _replace(self, **fields: Any) -> Self:
        # Not copy.copy: libraries that pickle tracebacks let copies of exceptions share their fields.
        changed = type(self)(self.message)
        vars(changed).update(vars(self) | fields)
        return changed


def describe(error: BaseException, setting: SettingFormat = str) -> str:
    """Compose the text of an error or a warning from its fields.

    Parameters
    ----------
    error : Exception or Warning
        Errors that are not of this package are described by their own text.
    setting : callable
        Takes a `Setting` and returns how users of this front end write it, or None if they have no
        such setting. Advice that needs a setting which users do not have is left out.

    Examples
    --------
    >>> error = InputError("two values", advice=("Choose one with ", Setting("duplicates", "last"), "."))
    >>> describe(error)
    'two values. Choose one with duplicates="last".'
    >>> describe(error, lambda setting: f"--{setting.name} {setting.value}")
    'two values. Choose one with --duplicates last.'
    >>> describe(error, lambda setting: None)
    'two values.'
    """
    if not isinstance(error, _Fields):
        return _describe_foreign(error)

    def text_of(text: Text) -> str:
        return "".join(
            (setting(piece) if isinstance(piece, Setting) else None) or str(piece)
            for piece in _pieces(text)
        )

    def is_available(sentence: Text) -> bool:
        return all(setting(needed) is not None for needed in _settings(sentence))

    statement = _statement(error, text_of)
    advice = [text_of(sentence) for sentence in error.advice if is_available(sentence)]
    # A list of examples ends with a line of its own, and so does not run into the advice.
    gap = "\n" if "\n" in statement else " "
    return gap.join([statement, " ".join(advice)]) if advice else statement


def _statement(error: _Fields, text_of: Callable[[Text], str]) -> str:
    """What is wrong, where, and what was allowed, as one sentence."""
    place = "" if error.place is None else text_of(error.place)
    if not error.message and error.allowed is not None:
        text = f"{place or 'the value'} must be {text_of(error.allowed)}"
        return (
            f"{text}, got {_shown(error.value)} instead." if error.value is not ... else f"{text}."
        )
    text = text_of(error.message) or type(error).__name__
    if place:
        text = f"{place}: {text}"
    extra = [] if error.allowed is None else [f"expected {text_of(error.allowed)}"]
    if error.value is not ...:
        extra.append(f"got {_shown(error.value)}")
    if extra:
        return f"{text}; {', '.join(extra)}."
    needs_end = bool(error.place or error.advice) and not text.endswith((".", "?", "!", "\n"))
    is_list = "\n" in text
    return f"{text}." if needs_end and not is_list else text


def _describe_foreign(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return str(error) or type(error).__name__


def _sentences(advice: Text | list[Text]) -> Iterable[Text]:
    if isinstance(advice, list):
        return advice
    return [advice] if advice != () else []


def _pieces(text: Text) -> Iterator[Piece]:
    return iter(text if isinstance(text, tuple) else (text,))


def _settings(text: Text) -> Iterator[Setting]:
    return (piece for piece in _pieces(text) if isinstance(piece, Setting))


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."


class FillrankError(_Fields):
    """The base of all errors that fillrank raises on purpose."""


class InputError(FillrankError, ValueError):
    """An argument, a value or a table is not what it must be."""


class UnknownNameError(FillrankError, KeyError):
    """There is no row, column or field with the requested label."""


class ReadError(FillrankError, ValueError):
    """A file cannot be read as the table that its name or content suggests."""


class OutputError(FillrankError, OSError):
    """A result cannot be written to the requested path."""


class NotSupportedError(FillrankError, NotImplementedError):
    """The method does not support the request, for example intervals without a posterior."""


class ClusterError(FillrankError, RuntimeError):
    """A cluster failed: its scheduler or a worker does not respond, or no worker is left."""


class NumericalError(FillrankError, ArithmeticError):
    """A computation left the range of floating-point numbers."""


class FillrankWarning(_Fields, UserWarning):
    """The base of all warnings that fillrank issues."""


class UnitsWarning(FillrankWarning):
    """The columns of a table differ so much in scale that one noise level cannot fit them all."""


class SmallTableWarning(FillrankWarning):
    """A table has too few entries for calibrated intervals."""


class CheckpointWarning(FillrankWarning):
    """A run cannot be saved, or resumes from an older checkpoint than the newest."""


class ConvergenceWarning(FillrankWarning):
    """A run ended before it converged."""


class CacheWarning(FillrankWarning):
    """Compiled code cannot be cached for later processes."""
