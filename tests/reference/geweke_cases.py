"""The settings in which the samplers face Geweke's test, for the right code and for planted bugs."""

import numpy as np
import pytest

from fillrank.samplers import gasr, gasr_published
from fillrank.samplers.gasr import Options
from fillrank.samplers.noise_steps import NoiseModel
from reference.feature_cases import make_sides
from reference.geweke import geweke_scores
from reference.prior_draws import Model
from reference.small_tables import EFFECTS, MASK, PLAIN, FullTable, Table

# Lomax(5, 2) has four moments; at this noise the data say much about the signal.
PLAIN_MODEL = Model(a=5.0, b=2.0, noise_variance=0.01, has_effects=False)
# At this noise the priors of the effects matter as well.
EFFECTS_MODEL = PLAIN_MODEL._replace(has_effects=True, noise_variance=0.3)
_RANK = 2
_HOLES, _FULL = Table(MASK), FullTable(MASK.shape)


def mixture(n_chains, length, seed=0, full=False):
    """The mixture sampler without effects, on a table with or without missing values."""
    return geweke_scores(
        gasr.sweep, _FULL if full else _HOLES, _RANK, PLAIN_MODEL, PLAIN,
        n_chains=n_chains, length=length, seed=seed,
    )  # fmt: skip


def mixture_with_effects(n_chains, length, seed=0, full=False):
    """The mixture sampler with row and column effects, on a table with or without missing values."""
    return geweke_scores(
        gasr.sweep, _FULL if full else _HOLES, _RANK, EFFECTS_MODEL, EFFECTS,
        n_chains=n_chains, length=length, seed=seed,
    )  # fmt: skip


def mixture_with_sampled_noise(n_chains, length, seed=0):
    """The mixture sampler with effects, the noise variance sampled as well."""
    model = EFFECTS_MODEL._replace(noise_variance=None)
    return geweke_scores(
        gasr.sweep, _HOLES, _RANK, model, EFFECTS, n_chains=n_chains, length=length, seed=seed
    )


def published(n_chains, length, seed=0):
    """The published sampler."""
    return geweke_scores(
        gasr_published.sweep, _HOLES, _RANK, PLAIN_MODEL, PLAIN,
        n_chains=n_chains, length=length, seed=seed,
    )  # fmt: skip


# With weights of entries, and the noise sampled.
_WEIGHTED = Table(MASK, weights=np.random.default_rng(9).uniform(0.3, 3.0, int(MASK.sum())))
# With log a ~ N(0, 1.5^2) some d would be larger than 1e15, and their data without digits.
_LOG_A_SD = 0.3


def mixture_with_everything(n_chains, length, seed=0, robust=True, full=False):
    """Centres, effects, noise by row and column (and Student-t), sampled sigma, a and b, weights."""
    noise = NoiseModel(rows=True, columns=True, robust=robust)
    model = Model(None, None, None, has_effects=True, has_centres=True, noise=noise)
    options = Options(row_effects=True, column_effects=True, centres=True, noise=noise)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gasr, "_LOG_A_SD", _LOG_A_SD)
        return geweke_scores(
            gasr.sweep, _FULL if full else _WEIGHTED, _RANK, model, options,
            n_chains=n_chains, length=length, seed=seed,
        )  # fmt: skip


def mixture_with_centres(n_chains, length, seed=0):
    """Centres, at a noise at which the data say much about them; a, b and sigma fixed."""
    model = PLAIN_MODEL._replace(has_centres=True)
    options = PLAIN._replace(centres=True)
    return geweke_scores(
        gasr.sweep, _HOLES, _RANK, model, options, n_chains=n_chains, length=length, seed=seed
    )


# As many features on both sides, so that code that mixes up the sides runs through.
_FEATURES = make_sides(MASK.shape, (2, 1), (2, 1), seed=3)
_ROW_FEATURES = make_sides(MASK.shape, (2,), (), seed=4)


def mixture_with_features(n_chains, length, seed=0, full=False, rows_only=False):
    """Features of both sides in two blocks each (or of rows), effects, centres, sampled noise."""
    features = _ROW_FEATURES if rows_only else _FEATURES
    model = EFFECTS_MODEL._replace(noise_variance=None, has_centres=True, features=features)
    options = EFFECTS._replace(centres=True)
    return geweke_scores(
        gasr.sweep, _FULL if full else _HOLES, _RANK, model, options,
        n_chains=n_chains, length=length, seed=seed,
    )  # fmt: skip


def factors_with_features(n_chains, length, seed=0, full=False):
    """Features without effects and centres, at a noise at which the data say much about factors."""
    model = PLAIN_MODEL._replace(features=_FEATURES)
    return geweke_scores(
        gasr.sweep, _FULL if full else _HOLES, _RANK, model, PLAIN,
        n_chains=n_chains, length=length, seed=seed,
    )  # fmt: skip
