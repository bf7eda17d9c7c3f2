"""Plots of a fitted model. Each function takes the model and optional matplotlib axes, and returns axes.

Without axes, a new figure is made that needs no display. A notebook shows it. Save it with
``ax.figure.savefig("spectrum.png")``.
"""

from fillrank.report.cells import certainty, matrix
from fillrank.report.column_intervals import intervals
from fillrank.report.features import feature_effects, variance_shares
from fillrank.report.held_out import calibration, predicted
from fillrank.report.maps import map
from fillrank.report.predictive import predictive_check
from fillrank.report.run_plots import path, rank, spectrum, trace

__all__ = [
    "calibration",
    "certainty",
    "feature_effects",
    "intervals",
    "map",
    "matrix",
    "path",
    "predicted",
    "predictive_check",
    "rank",
    "spectrum",
    "trace",
    "variance_shares",
]
