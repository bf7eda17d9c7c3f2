"""Tables in: the observed entries of a matrix, from wherever they are kept."""

from fillrank.data.datasets import load as load_dataset
from fillrank.data.entries import Entries
from fillrank.data.observations import Observations
from fillrank.data.readers import read
from fillrank.data.synthetic import synthetic
from fillrank.data.tables import Origin, to_long, to_wide

__all__ = [
    "Entries",
    "Observations",
    "Origin",
    "load_dataset",
    "read",
    "synthetic",
    "to_long",
    "to_wide",
]
