"""Planted bugs: a function of the package, with one line of its source changed."""

import inspect

from numba import njit
from numba.core.caching import FunctionCache
from numba.core.dispatcher import Dispatcher


def _source(function):
    """The source of a function without its decorators; also of one that was made here."""
    python = getattr(function, "py_func", function)
    if hasattr(python, "planted_source"):
        return python.planted_source
    source = inspect.getsource(python)
    return source[source.index("def ") :]


def _rebuilt(module, function, source):
    """A function from its source, at home in ``module``; compiled if ``function`` is."""
    made = {}
    exec(source, vars(module), made)
    (again,) = made.values()
    again.planted_source = source
    # Of the same name, a right function that is loaded from numba's cache may be linked to this one.
    again.__qualname__ = f"planted_{again.__qualname__}"
    return njit(again) if isinstance(function, Dispatcher) else again


def _disable_cache(monkeypatch):
    """What is compiled with a planted bug stays off the disk, where later processes would find it."""
    monkeypatch.setattr(FunctionCache, "save_overload", lambda *_: None)


def _rebuild_users(monkeypatch, module, users):
    for name in users:
        user = getattr(module, name)
        monkeypatch.setattr(module, name, _rebuilt(module, user, _source(user)))


def plant(monkeypatch, module, name, old, new, users=(), into=()):
    """Replace ``old`` by ``new`` in the source of ``module.name``, until the test ends.

    ``users`` are the compiled functions of the module that call it: they hold the right version and
    are compiled again. ``into`` are the modules that have imported the function, or one of its users.
    A bug that does not fit the source any more is an error.
    """
    _disable_cache(monkeypatch)
    right = getattr(module, name)
    source = _source(right)
    assert source.count(old) == 1, f"{old!r} occurs {source.count(old)} times in {name}"
    wrong = _rebuilt(module, right, source.replace(old, new))
    monkeypatch.setattr(module, name, wrong)
    _rebuild_users(monkeypatch, module, users)
    for place in into:
        for each in {name, *users} & vars(place).keys():
            monkeypatch.setattr(place, each, getattr(module, each))


def set_constants(monkeypatch, module, constants, users):
    """Change constants of a module, and compile again the functions that have frozen them."""
    _disable_cache(monkeypatch)
    for name, value in constants.items():
        monkeypatch.setattr(module, name, value)
    _rebuild_users(monkeypatch, module, users)
