"""Plots as functions: each takes a fitted model and, if wanted, matplotlib axes; each returns axes."""
