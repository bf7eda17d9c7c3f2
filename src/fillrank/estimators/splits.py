"""Cross-validation over entries, for scikit-learn's model selection."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.model_selection import BaseCrossValidator

from fillrank.errors import InputError, Setting
from fillrank.estimators.checks import seed_from
from fillrank.table.observations import ENTRY_POSITIONS, Observations
from fillrank.validation import check_integer


class EntryKFold(BaseCrossValidator):
    """Split the entries of a matrix at random into sets, each of which is held out once.

    Use it as ``cv`` of `cross_val_score`, `cross_validate` or `GridSearchCV` of scikit-learn, whose own
    splitters split rows. Here every training set has all labels, and some of the entries.

    Parameters
    ----------
    n_splits : int
        The number of sets, at least 2. They differ in size by one entry at most.
    random_state : int, RandomState, Generator or None
        With an int, every call returns the same sets.

    Examples
    --------
    >>> import fillrank as fr
    >>> from sklearn.model_selection import GridSearchCV
    >>> data, _ = fr.synthetic(40, 30, rank=2, noise=0.5, missing=0.3, random_state=0)
    >>> search = GridSearchCV(
    ...     fr.SoftImpute(progress=False),
    ...     {"penalty": [1.0, 10.0, 100.0]},
    ...     cv=fr.EntryKFold(3, random_state=0),
    ... )
    >>> search.fit(data).best_params_
    {'penalty': 1.0}
    """

    def __init__(self, n_splits: int = 5, *, random_state: Any = None):
        self.n_splits = check_integer("n_splits", n_splits, 2)
        self.random_state = random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """The number of sets; the arguments are not used, present for scikit-learn."""
        return self.n_splits

    def split(
        self, X: Any, y: Any = None, groups: Any = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Split the entries.

        Parameters
        ----------
        X : Observations
        y, groups : None
            Not used; present for scikit-learn.

        Yields
        ------
        train, test : ndarray
            Positions, ascending: ``X[train]`` has the training entries.
        """
        if not isinstance(X, Observations):
            raise InputError(
                "EntryKFold splits entries, so X must be Observations, "
                f"got {type(X).__name__} instead; use fr.Observations.of(X)."
            )
        if X.n_entries < self.n_splits:
            raise InputError(
                place=Setting("n_splits"),
                allowed=f"at most the number of entries, {X.n_entries}",
                value=self.n_splits,
            )
        sets = _sets(X.n_entries, self.n_splits, seed_from(self.random_state))
        return (
            (_positions(sets != number), _positions(sets == number))
            for number in range(self.n_splits)
        )


def _sets(n_entries: int, n_splits: int, seed: int) -> np.ndarray:
    """The number of the set that each entry is in."""
    return np.random.default_rng(seed).permutation(np.arange(n_entries) % n_splits)


def _positions(chosen: np.ndarray) -> np.ndarray:
    return np.flatnonzero(chosen).astype(ENTRY_POSITIONS)
