"""The interface whose users read a report: Python, or a command line."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from fillrank.errors import SettingFormat


class Interface(NamedTuple):
    """How the users of an interface write settings, what it has told them, and what they can run.

    Parameters
    ----------
    setting : callable
        Writes a setting, as `fillrank.errors.describe` takes it.
    note : callable
        Writes a note of the library with the settings of this interface.
    command : str
        The command that makes the report; empty in Python.
    to_hold_out : str
        The command that holds out entries to measure the error; empty if there is none.
    notes : tuple of str
        What the interface has said about the table that it has read.
    """

    setting: SettingFormat = str
    note: Callable[[str], str] = str
    command: str = ""
    to_hold_out: str = ""
    notes: tuple[str, ...] = ()


PYTHON = Interface()
