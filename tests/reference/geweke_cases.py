"""The settings in which the samplers face Geweke's test, for the right code and for planted bugs."""

from fillrank.samplers import gasr, gasr_published
from reference.geweke import geweke_scores
from reference.prior_draws import Model
from reference.small_tables import EFFECTS, MASK, PLAIN, FullTable, Table

# Lomax(5, 2) has four moments; at this noise the data say much about the signal.
PLAIN_MODEL = Model(
    a=5.0, b=2.0, noise_variance=0.01, has_effects=False, prior_scale=gasr._PRIOR_SCALE
)
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
