"""Entries in standard units, as samplers get them if all columns have one unit."""

import numpy as np

from fillrank.samplers.model import Data
from fillrank.table.units import shared_units, standardise


def standardised(observations, dtype="float32", centre=True):
    """The entries by row and by column."""
    units = shared_units(observations, centre, value_range=None)
    return Data(*standardise(observations, units, np.dtype(dtype)))
