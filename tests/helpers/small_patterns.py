"""Small tables whose pattern of missing values is used as features, as that of large ones."""

import pytest

from fillrank.features import pattern


def use_small_patterns(monkeypatch):
    """A direction of the pattern for every four rows and columns, in tables of any size."""
    monkeypatch.setattr(pattern, "_ENTRIES_EACH", 1)
    monkeypatch.setattr(pattern, "_FEWEST", 1)


@pytest.fixture(scope="module", autouse=True)
def small_patterns():
    """In all tests of a module that imports it."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        use_small_patterns(monkeypatch)
        yield
