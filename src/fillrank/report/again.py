"""How to run a fit again: its settings as Python, the versions, and a fingerprint of its data."""

from __future__ import annotations

import platform
from datetime import datetime
from importlib.metadata import version
from typing import Any

import numpy as np

from fillrank.table.observations import Observations, fingerprint
from fillrank.version import __version__

_PACKAGES = ("numpy", "scipy", "numba", "scikit-learn")
# A folder of the machine, which does not change the result.
_LEFT_OUT = {"checkpoint"}


def versions() -> str:
    """The versions of all that has a say in the numbers."""
    packages = [f"{name} {version(name)}" for name in _PACKAGES]
    return ", ".join([f"fillrank {__version__}", *packages, f"Python {platform.python_version()}"])


def code(model: Any) -> str:
    """Python that fits the model again, given its data."""
    settings = {
        name: value for name, value in model.get_params(deep=False).items() if name not in _LEFT_OUT
    }
    lines = [f"    {name}={_as_python(value)}," for name, value in settings.items()]
    n_rows, n_columns = model.observations_.shape
    lines = [
        "import fillrank as fr",
        "",
        f"# {versions()}",
        f"# report made on {datetime.now().astimezone():%Y-%m-%d %H:%M %z}",
        f"# data: {n_rows} rows x {n_columns} columns{_entries_in_words(model.observations_)}",
        'data = fr.read("table.csv")  # put your own table here',
        f"model = fr.{type(model).__name__}(",
        *lines,
        ")",
        "model.fit(data)",
    ]
    return "\n".join(lines)


def caveats(model: Any) -> list[str]:
    """What keeps the code from giving the same numbers again, in sentences."""
    found = []
    if not isinstance(model.random_state, int | np.integer):
        found.append(
            "The fit had no fixed seed, so another run gives slightly other numbers. With "
            "random_state=0, or any other whole number, it would give the same ones."
        )
    if getattr(model, "folded_in_", None):
        found.append(
            f"The {' and '.join(model.folded_in_)} came after the fit, by fold_in; the code shows the "
            "settings of the fit."
        )
    return found


def _entries_in_words(data: Observations) -> str:
    if len(data) == 0:
        return " (the model was saved without its entries)"
    return f", {len(data)} entries\n# sha256 of the entries: {fingerprint(data)}"


def _as_python(value: Any) -> str:
    if isinstance(value, np.random.Generator | np.random.RandomState):
        return "None"
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    # One line: what is in it cannot begin another statement.
    return " ".join(repr(value).split("\n"))
