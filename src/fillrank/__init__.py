"""Fill in the missing values of a table, with an interval or probabilities for each."""

# Nothing is imported here: the command sets up its handling of signals after this module.
TYPE_CHECKING = False  # as type checkers know it from typing, which takes long to import

if TYPE_CHECKING:
    from typing import Any

    from fillrank import features
    from fillrank.completion import Completion, load
    from fillrank.errors import (
        CacheWarning,
        CheckpointWarning,
        ConvergenceWarning,
        FillrankError,
        SmallTableWarning,
        UnitsWarning,
    )
    from fillrank.estimators.bpmf import BPMF
    from fillrank.estimators.gasr import GASR
    from fillrank.estimators.hasi import HASI
    from fillrank.estimators.ipm3f import IPM3F
    from fillrank.estimators.m3f import M3F
    from fillrank.estimators.relaxed_spectral import RelaxedSpectral
    from fillrank.estimators.score import score
    from fillrank.estimators.score_groups import score_by_column, score_by_level
    from fillrank.estimators.score_ranking import score_ranking
    from fillrank.estimators.soft_impute import SoftImpute
    from fillrank.estimators.soft_impute_als import SoftImputeALS
    from fillrank.estimators.splits import EntryKFold
    from fillrank.features.refold import refold
    from fillrank.io import datasets
    from fillrank.io.parquet import write_parquet
    from fillrank.io.read import read
    from fillrank.io.titles import read_titles
    from fillrank.pooling import pool, pool_fits
    from fillrank.report import plot
    from fillrank.report.html import write_report
    from fillrank.table.observations import Observations
    from fillrank.table.synthetic import synthetic
    from fillrank.version import __version__

__all__ = [
    "BPMF",
    "GASR",
    "HASI",
    "IPM3F",
    "M3F",
    "CacheWarning",
    "CheckpointWarning",
    "Completion",
    "ConvergenceWarning",
    "EntryKFold",
    "FillrankError",
    "Observations",
    "RelaxedSpectral",
    "SmallTableWarning",
    "SoftImpute",
    "SoftImputeALS",
    "UnitsWarning",
    "__version__",
    "datasets",
    "features",
    "load",
    "plot",
    "pool",
    "pool_fits",
    "read",
    "read_titles",
    "refold",
    "score",
    "score_by_column",
    "score_by_level",
    "score_ranking",
    "synthetic",
    "write_parquet",
    "write_report",
]

# Names are fetched from their modules when they are first used: numba and scikit-learn take a second
# to import, and a reader of tables need not wait for them.
_MODULES = {
    "datasets": "fillrank.io.datasets",
    "features": "fillrank.features",
    "plot": "fillrank.report.plot",
}
_HOMES = {
    "BPMF": "fillrank.estimators.bpmf",
    "CacheWarning": "fillrank.errors",
    "CheckpointWarning": "fillrank.errors",
    "Completion": "fillrank.completion",
    "ConvergenceWarning": "fillrank.errors",
    "EntryKFold": "fillrank.estimators.splits",
    "FillrankError": "fillrank.errors",
    "GASR": "fillrank.estimators.gasr",
    "HASI": "fillrank.estimators.hasi",
    "IPM3F": "fillrank.estimators.ipm3f",
    "M3F": "fillrank.estimators.m3f",
    "Observations": "fillrank.table.observations",
    "RelaxedSpectral": "fillrank.estimators.relaxed_spectral",
    "SmallTableWarning": "fillrank.errors",
    "SoftImpute": "fillrank.estimators.soft_impute",
    "SoftImputeALS": "fillrank.estimators.soft_impute_als",
    "UnitsWarning": "fillrank.errors",
    "load": "fillrank.completion",
    "pool": "fillrank.pooling",
    "pool_fits": "fillrank.pooling",
    "read": "fillrank.io.read",
    "read_titles": "fillrank.io.titles",
    "refold": "fillrank.features.refold",
    "score": "fillrank.estimators.score",
    "score_by_column": "fillrank.estimators.score_groups",
    "score_by_level": "fillrank.estimators.score_groups",
    "score_ranking": "fillrank.estimators.score_ranking",
    "synthetic": "fillrank.table.synthetic",
    "write_parquet": "fillrank.io.parquet",
    "write_report": "fillrank.report.html",
    "__version__": "fillrank.version",
}


def __getattr__(name: str) -> "Any":
    from importlib import import_module

    if name in _MODULES:
        value = import_module(_MODULES[name])
    elif name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
