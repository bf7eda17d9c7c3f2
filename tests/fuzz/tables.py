"""Small valid tables for the seeds of several targets."""

import numpy as np

FOODS = ("tea", "milk", "coffee", "beans", "bread")


def ratings(n_rows: int = 12) -> np.ndarray:
    """Return integers from 1 to 5, with NaN in a third of the cells."""
    rng = np.random.default_rng(0)
    cells = rng.integers(1, 6, size=(n_rows, len(FOODS))).astype(float)
    cells[rng.random(cells.shape) < 1 / 3] = np.nan
    return cells


def triplets(n_rows: int = 12) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows, columns and values of the observed cells of `ratings`."""
    cells = ratings(n_rows)
    rows, columns = np.nonzero(~np.isnan(cells))
    return rows, columns, cells[rows, columns]


def wide_text(delimiter: str = ",", missing: str = "", header: bool = True) -> bytes:
    """Return a wide table as text: a line for each row, starting with its label."""
    lines = [["person", *FOODS]] if header else []
    for number, row in enumerate(ratings()):
        cells = (missing if np.isnan(value) else f"{value:g}" for value in row)
        lines.append([f"p{number}", *cells])
    return "".join(f"{delimiter.join(line)}\n" for line in lines).encode()


def long_text(delimiter: str = ",", header: str = "user,item,rating", names: bool = False) -> bytes:
    """Return a line for each observed cell; without ``names``, labels are integers."""
    lines = [header.split(",")] if header else []
    for row, column, value in zip(*triplets(), strict=True):
        item = FOODS[column] if names else str(column + 1)
        lines.append([f"p{row}" if names else str(row + 1), item, f"{value:g}"])
    return "".join(f"{delimiter.join(line)}\n" for line in lines).encode()
