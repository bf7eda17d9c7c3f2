"""Planted bugs in methods of classes; for functions see planted.py."""

import inspect
import sys
import textwrap


def plant_in_method(monkeypatch, owner, name, *changes):
    """Replace ``old`` by ``new`` in the source of a method, for every pair of them, until the test ends.

    A bug that does not fit the source any more is an error.
    """
    source = textwrap.dedent(inspect.getsource(getattr(owner, name)))
    for old, new in changes:
        assert source.count(old) == 1, f"{old!r} occurs {source.count(old)} times in {name}"
        source = source.replace(old, new)
    made = {}
    exec(source, vars(sys.modules[owner.__module__]), made)
    monkeypatch.setattr(owner, name, made[name])
