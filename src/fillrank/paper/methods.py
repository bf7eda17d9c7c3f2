"""The methods of the comparison, under the names that tables and figures show.

GASR comes twice, as published and with the settings of this library; so does BPMF, with the noise
precision that its authors fixed and with one that is sampled; and twice more in ways that make it fail
on sparse matrices, as it does in the paper: with a precision that is far too high, and with a prior so
vague that from a random start the factors do not get off the ground.
"""

import warnings
from collections.abc import Callable
from time import perf_counter
from typing import Any

import fillrank as fr

GASR_PUBLISHED = "GASR, as published"
GASR = "GASR, fillrank"
BPMF_PUBLISHED = "BPMF, as published"
BPMF = "BPMF, fillrank"
BPMF_TOO_SURE = "BPMF, noise precision 100"
BPMF_VAGUE = "BPMF, W0 = 100 I, noise sampled"
SOFT_IMPUTE, SOFT_IMPUTE_ALS, HASI = "SoftImpute", "SoftImpute-ALS", "HASI"
M3F, IPM3F = "M3F", "iPM3F"

# Names are looked up when a method is made: importing fillrank stays quick.
_MAKERS: dict[str, Callable[..., Any]] = {
    M3F: lambda **settings: fr.M3F(**settings),
    IPM3F: lambda **settings: fr.IPM3F(inference="variational", **settings),
    SOFT_IMPUTE: lambda **settings: fr.SoftImpute(**settings),
    SOFT_IMPUTE_ALS: lambda **settings: fr.SoftImputeALS(**settings),
    HASI: lambda **settings: fr.HASI(**settings),
    BPMF_PUBLISHED: lambda **settings: fr.BPMF.as_published(**settings),
    BPMF: lambda **settings: fr.BPMF(**settings),
    BPMF_TOO_SURE: lambda **settings: fr.BPMF.as_published(
        noise_precision=100.0, row_draws="entries", **settings
    ),
    BPMF_VAGUE: lambda **settings: fr.BPMF(
        start="random", inverse_scale=0.01, n_sweeps=100, burn_in=0, **settings
    ),
    GASR_PUBLISHED: lambda **settings: fr.GASR.as_published(**settings),
    GASR: lambda **settings: fr.GASR(**settings),
}

SAMPLERS = (BPMF_PUBLISHED, BPMF, GASR_PUBLISHED, GASR)
AS_PUBLISHED = (BPMF_PUBLISHED, BPMF_TOO_SURE, BPMF_VAGUE, GASR_PUBLISHED)
SPECTRAL = (SOFT_IMPUTE, SOFT_IMPUTE_ALS, HASI)


def make(name: str, **settings: Any) -> Any:
    """The method of a name, silent: the experiment tells how far it is."""
    return _MAKERS[name](progress=False, **settings)


def fit(model: Any, data: Any) -> float:
    """Fit, and say how many seconds it took.

    There are no warnings: how far a method gets in its 100 iterations is what is compared.
    """
    started = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fr.ConvergenceWarning)
        model.fit(data)
    if getattr(model, "interrupted_", False):
        # The library keeps what it has; half a fit is no result of an experiment.
        raise KeyboardInterrupt
    return perf_counter() - started
