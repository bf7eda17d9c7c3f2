"""Plots as functions: each takes a fitted model and, if wanted, matplotlib axes; each returns axes.

Without axes, a figure is made that belongs to no window and needs no display: save it by
``ax.figure.savefig("spectrum.png")``.
"""

from fillrank.report.held_out_plots import calibration, predicted
from fillrank.report.run_plots import path, rank, spectrum, trace
from fillrank.report.table_plots import certainty, map, matrix

__all__ = [
    "calibration",
    "certainty",
    "map",
    "matrix",
    "path",
    "predicted",
    "rank",
    "spectrum",
    "trace",
]
