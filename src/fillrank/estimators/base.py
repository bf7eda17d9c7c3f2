"""The face that all methods share: tables in, answers by the users' own names."""

from fillrank.estimators.keeping import Keeping
from fillrank.estimators.recommending import Recommending


class MatrixCompleter(Recommending, Keeping):
    """What a fitted method can be asked."""
