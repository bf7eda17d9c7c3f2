"""Plots of fitted models, and the HTML report."""
