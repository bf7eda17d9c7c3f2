"""Effects of features and shares of variance, against dense matrices."""

import numpy as np
import pytest

from fillrank.features.blocks import Block, Blocks, Field, PatternCode, TableCode
from fillrank.posterior.feature_effects import feature_effects, variance_shares
from fillrank.posterior.low_rank import LowRankPosterior
from fillrank.posterior.mean import mean_draw
from fillrank.posterior.predictive import quantiles
from fillrank.samplers.model import Draw, Noise
from fillrank.table.units import Units

M, N, K = 40, 9, 3
FIELDS = (
    Field("age", "number", 40.0, 10.0, (), True),
    Field("sex", "category", 0.0, 1.0, ("F", "M"), True),
)
TERMS = ("age", "age is missing", "sex = F", "sex = M", "sex is missing")
MEANS = np.array([0.0, 0.2, 0.7, 0.3, 0.1])
# The terms of a row, and what it is compared with: one more sd, a missing value, or a level.
CHANGES = {
    "age": [1.0, 0, 0, 0, 0],
    "age is missing": [0, 0.8, 0, 0, 0],
    "sex = F": [0, 0, 0.3, -0.3, -0.1],
    "sex = M": [0, 0, -0.7, 0.7, -0.1],
    "sex is missing": [0, 0, 0, 0, 0.9],
}


@pytest.fixture
def posterior():
    rng = np.random.default_rng(0)
    F = rng.standard_normal((M, 6))
    F -= F.mean(axis=0)
    code = TableCode(FIELDS, MEANS, rng.standard_normal((5, 4)))
    pattern = PatternCode(np.zeros(N), np.zeros((N, 2)))
    blocks = (Block("missingness", F[:, :2], pattern, ()), Block("features", F[:, 2:], code, TERMS))
    draws = []
    for _ in range(20):
        weights = rng.standard_normal((6, K))
        left = 1.0 + F @ weights + 0.5 * rng.standard_normal((M, K))
        right = rng.standard_normal((N, K))
        draws.append(Draw(left, right, Noise.equal(0.1, (M, N)), weights))
    return LowRankPosterior(
        draws, Units.equal(5.0, 2.0, N, None), mean_draw(draws), blocks=Blocks(blocks, ())
    )


def transposed(posterior):
    draws = [draw.transpose() for draw in posterior.draws]
    blocks = Blocks((), posterior.blocks.rows)
    return LowRankPosterior(draws, Units.equal(5.0, 2.0, M, None), mean_draw(draws), blocks=blocks)


def test_effects_are_changes_of_the_signal(posterior):
    found = feature_effects(posterior, "rows", 0.8)
    assert sorted(found.name) == sorted(TERMS)
    assert (np.diff(found.strength) <= 0).all()
    directions = posterior.blocks.rows[1].code.directions
    for t, name in enumerate(found.name):
        change = np.array(CHANGES[name]) @ directions
        by_column = np.array(
            [2.0 * change @ draw.row_weights[2:] @ draw.right.T for draw in posterior.draws]
        )
        effects = by_column.mean(axis=1)
        assert found.effect[t] == pytest.approx(effects.mean())
        np.testing.assert_allclose([found.lower[t], found.upper[t]], quantiles(effects, (0.1, 0.9)))
        strength = np.sqrt((by_column**2).mean(axis=1)).mean()
        assert found.strength[t] == pytest.approx(strength)


def test_effects_of_columns_are_those_of_the_transpose(posterior):
    rows = feature_effects(posterior, "rows", 0.9)
    columns = feature_effects(transposed(posterior), "columns", 0.9)
    for one, other in zip(rows[1:], columns[1:], strict=True):
        np.testing.assert_allclose(one, other)


def test_own_units_give_effects_in_standard_units(posterior):
    units = Units(np.zeros(N), np.linspace(1, 50, N), None)
    standard = feature_effects(
        LowRankPosterior(posterior.draws, units, posterior.mean, blocks=posterior.blocks),
        "rows",
        0.9,
    )
    shared = feature_effects(posterior, "rows", 0.9)
    np.testing.assert_allclose(2.0 * standard.effect, shared.effect)


def test_shares_are_those_of_dense_parts(posterior):
    expected = []
    values = np.hstack([block.values for block in posterior.blocks.rows])
    for draw in posterior.draws:
        parts = [
            values[:, part] @ draw.row_weights[part] @ draw.right.T
            for part in (slice(2), slice(2, 6))
        ]
        parts.append(draw.left @ draw.right.T - sum(parts))
        variances = np.array([part.var(axis=0).sum() for part in parts])
        expected.append(variances / variances.sum())
    found = variance_shares(posterior)
    assert list(found) == ["rows"]
    assert list(found["rows"]) == ["missingness", "features", "rest"]
    np.testing.assert_allclose([*found["rows"].values()], np.mean(expected, axis=0))
    np.testing.assert_allclose(
        [*variance_shares(transposed(posterior))["columns"].values()], [*found["rows"].values()]
    )


def test_a_signal_that_does_not_vary_is_all_rest(posterior):
    flat = [
        draw._replace(left=np.ones_like(draw.left), row_weights=np.zeros_like(draw.row_weights))
        for draw in posterior.draws
    ]
    flat_posterior = LowRankPosterior(
        flat, posterior.units, posterior.mean, blocks=posterior.blocks
    )
    assert variance_shares(flat_posterior)["rows"] == {
        "missingness": 0.0, "features": 0.0, "rest": 1.0
    }  # fmt: skip
