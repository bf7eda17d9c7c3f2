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
    """Entries to learn from and entries to predict, under the same names."""

    train: Observations
    test: Observations


class Source:
    """A set of ratings that is read when it is first asked for.

    ``n_splits`` is how many ways there are to part it; a set that came in two parts has one.
    """

    def __init__(self, read: Callable[[], Observations | Split], n_splits: int):
        self._read = read
        self.n_splits = n_splits

    @cached_property
    def _ratings(self) -> Observations | Split:
        return self._read()

    def split(self, number: int) -> Split:
        """Part the ratings, 80 to 20, at random or as they came."""
        if isinstance(self._ratings, Split):
            return self._ratings
        return Split(*self._ratings.split(_TEST_FRACTION, random_state=number))

    def fingerprint(self) -> list[int]:
        """Rows, columns and entries: results of other data are told apart by them."""
        parts = self._ratings if isinstance(self._ratings, Split) else (self._ratings,)
        return [*parts[0].shape, sum(len(part) for part in parts)]


def sources(folder: Path | None, quick: bool, n_splits: int) -> dict[str, Source]:
    """The sets that there are: generated ones for the quick version, else those in the folder.

    Without a folder, MovieLens 1M is fetched from its publisher.
    """
    if quick:
        if folder is not None:
            raise InputError(
                "the quick version runs on generated ratings: leave out either --quick or --data."
            )
        return {GENERATED: Source(generated, n_splits)}
    if folder is not None and not folder.is_dir():
        what = "is a file" if folder.exists() else "does not exist"
        raise InputError(
            f"--data must be a folder that has ml-1m (and eachmovie-sample, if you have it) in it; "
            f"{folder} {what}."
        )
    found = {MOVIELENS: Source(lambda: _movielens(folder), n_splits)}
    if folder is not None and (place := _eachmovie_folder(folder)) is not None:
        found[EACHMOVIE] = Source(lambda: _eachmovie(place), 1)
    return found


def _movielens(folder: Path | None) -> Observations:
    try:
        return fr.datasets.load("ml-1m", path=folder)
    except ReadError as error:
        raise ReadError(
            f"{error} Give a folder that has ml-1m/ratings.dat in it by --data, or try the generated "
            "ratings of --quick."
        ) from error


def _eachmovie_folder(folder: Path) -> Path | None:
    for place in (folder / "eachmovie-sample", folder):
        if all((place / name).is_file() for name in ("train.csv", "test.csv")):
            return place
    return None


def _eachmovie(folder: Path) -> Split:
    """The two files as they are, under the names of both."""
    parts = [fr.read(folder / name, layout="long") for name in ("train.csv", "test.csv")]
    rows, columns, values = (
        np.concatenate([getattr(part, what) for part in parts])
        for what in ("rows", "columns", "values")
    )
    whole = Observations.from_triplets(rows, columns, values)

    def renamed(part: Observations) -> Observations:
        places = whole.row_positions(part.rows), whole.column_positions(part.columns)
        return Observations.from_positions(
            Triplets(*places, part.values), whole.row_labels, whole.column_labels, part.origin
        )

    return Split(*map(renamed, parts))


def generated(n_rows: int = 200, n_columns: int = 120, per_row: int = 30) -> Observations:
    """Ratings from 1 to 5: effects of both sides, three factors, noise; some columns are popular."""
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
