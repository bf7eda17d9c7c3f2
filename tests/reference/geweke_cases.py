"""The settings in which the samplers face Geweke's test, for the right code and for planted bugs."""

from fillrank.samplers import gasr, gasr_published
from reference.geweke import geweke_scores
from reference.planted import set_constants
from reference.prior_draws import Model
from reference.small_tables import EFFECTS, MASK, PLAIN, FullTable, Table

# Lomax(5, 2) has four moments; at this noise the data say much about the signal.
PLAIN_MODEL = Model(a=5.0, b=2.0, noise_variance=0.01, effect_prior=None)
PACKAGE_PRIOR = (gasr._EFFECT_SHAPE, gasr._EFFECT_RATE)
# The effects' own prior has no moments and lets the variance hardly move: this one does.
PROPER_PRIOR = (3.0, 0.2)
_RANK = 2
_HOLES, _FULL = Table(MASK), FullTable(MASK.shape)


def use_proper_effect_prior(monkeypatch):
    """Give the effects' variance the prior InverseGamma(3, 0.2), in the sampler's own code."""
    shape, rate = PROPER_PRIOR
    constants = {"_EFFECT_SHAPE": shape, "_EFFECT_RATE": rate}
    set_constants(monkeypatch, gasr, constants, users=["_draw_effect"])


def mixture(n_chains, length, seed=0, full=False):
    """The mixture sampler without effects, on a table with or without holes."""
    return geweke_scores(
        gasr.sweep, _FULL if full else _HOLES, _RANK, PLAIN_MODEL, PLAIN,
        n_chains=n_chains, length=length, seed=seed,
    )  # fmt: skip


def mixture_with_effects(n_chains, length, prior=PROPER_PRIOR, seed=0, full=False):
    """The mixture sampler with row and column effects, on a table with or without holes."""
    return geweke_scores(
        gasr.sweep, _FULL if full else _HOLES, _RANK, PLAIN_MODEL._replace(effect_prior=prior), EFFECTS,
        n_chains=n_chains, length=length, seed=seed,
    )  # fmt: skip


def published(n_chains, length, seed=0):
    """The published sampler."""
    return geweke_scores(
        gasr_published.sweep, _HOLES, _RANK, PLAIN_MODEL, PLAIN,
        n_chains=n_chains, length=length, seed=seed,
    )  # fmt: skip
