"""A table as samplers and solvers take it: its entries in one unit, by row and by column."""

from fillrank.samplers.model import Data
from fillrank.table.units import shared_units, standardise


def standard_data(observations, dtype):
    """The entries of a table, centred and divided by their standard deviation."""
    return Data(*standardise(observations, shared_units(observations, True, None), dtype))
