"""Features of rows and columns: tables of them, the pattern of missing values, times and graphs."""

# Not fetched when first used: whoever imports the module `times` would find it in place of the function.
from fillrank.features.graph import graph
from fillrank.features.times import times

__all__ = ["graph", "times"]
