"""The ratings of Table 2 and Figure 2: MovieLens 1M, a sample of EachMovie, or generated ones."""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

import fillrank as fr
from fillrank.errors import InputError, ReadError
from fillrank.table.observations import Observations
from fillrank.table.triplets import Triplets

MOVIELENS, EACHMOVIE, GENERATED = "MovieLens 1M", "EachMovie sample", "generated ratings"
_TEST_FRACTION = 0.2


class Split(NamedTuple):
    """Training entries and test entries, with the same row and column labels."""

    train: Observations
    test: Observations


class Source:
    """A set of ratings that is read on first use.

    ``n_splits`` is the number of splits; a set that is published as two files has one.
    """

    def __init__(self, read: Callable[[], Observations | Split], n_splits: int):
        self._read = read
        self.n_splits = n_splits

    @cached_property
    def _ratings(self) -> Observations | Split:
        return self._read()

    def split(self, number: int) -> Split:
        """Split the ratings 80 to 20 at random, or as they were published."""
        if isinstance(self._ratings, Split):
            return self._ratings
        return Split(*self._ratings.split(_TEST_FRACTION, random_state=number))

    def fingerprint(self) -> list[int]:
        """Return the numbers of rows, columns and entries, to recognise results of other data."""
        parts = self._ratings if isinstance(self._ratings, Split) else (self._ratings,)
        return [*parts[0].shape, sum(len(part) for part in parts)]


def sources(folder: Path | None, quick: bool, n_splits: int) -> dict[str, Source]:
    """Return the available sets: generated ratings if ``quick``, else those in the folder.

    Without a folder, MovieLens 1M is downloaded from its publisher.
    """
    if quick:
        if folder is not None:
            raise InputError(
                "the quick version runs on generated ratings: omit either --quick or --data."
            )
        return {GENERATED: Source(generated, n_splits)}
    if folder is not None and not folder.is_dir():
        what = "is a file" if folder.exists() else "does not exist"
        raise InputError(
            f"--data must be a folder that contains ml-1m (and eachmovie-sample, if you have it); "
            f"{folder} {what}."
        )
    found = {MOVIELENS: Source(lambda: _movielens(folder), n_splits)}
    if folder is not None and (eachmovie := _eachmovie_folder(folder)) is not None:
        found[EACHMOVIE] = Source(lambda: _eachmovie(eachmovie), 1)
    return found


def _movielens(folder: Path | None) -> Observations:
    try:
        return fr.datasets.load("ml-1m", path=folder)
    except ReadError as error:
        raise ReadError(
            f"{error} Use --data with a folder that contains ml-1m/ratings.dat, or --quick for "
            "generated ratings."
        ) from error


def _eachmovie_folder(folder: Path) -> Path | None:
    for candidate in (folder / "eachmovie-sample", folder):
        if all((candidate / name).is_file() for name in ("train.csv", "test.csv")):
            return candidate
    return None


def _eachmovie(folder: Path) -> Split:
    """Read the two files, and give both the row and column labels of their union."""
    parts = [fr.read(folder / name, layout="long") for name in ("train.csv", "test.csv")]
    rows, columns, values = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("rows", "columns", "values")
    )
    union = Observations.from_triplets(rows, columns, values)

    def relabel(part: Observations) -> Observations:
        positions = union.row_positions(part.rows), union.column_positions(part.columns)
        return Observations.from_positions(
            Triplets(*positions, part.values), union.row_labels, union.column_labels, part.origin
        )

    return Split(*map(relabel, parts))


def generated(n_rows: int = 200, n_columns: int = 120, per_row: int = 30) -> Observations:
    """Generate ratings from 1 to 5: row and column effects, three factors, noise, popular columns."""
    rng = np.random.default_rng(5)
    taste = rng.standard_normal((n_rows, 3)) @ rng.standard_normal((3, n_columns))
    score = 3.5 + 0.4 * rng.standard_normal((n_rows, 1)) + 0.5 * rng.standard_normal(n_columns)
    score = score + 0.45 * taste + 0.7 * rng.standard_normal((n_rows, n_columns))
    popularity = 1.0 / np.arange(3, n_columns + 3)
    popularity /= popularity.sum()
    columns = np.concatenate(
        [rng.choice(n_columns, per_row, replace=False, p=popularity) for _ in range(n_rows)]
    )
    rows = np.repeat(np.arange(n_rows), per_row)
    values = np.clip(np.rint(score[rows, columns]), 1, 5)
    return Observations.from_triplets(rows, columns, values)
