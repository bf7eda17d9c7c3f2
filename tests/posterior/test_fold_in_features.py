"""New rows with features: against dense Gaussians, and against rows without what features explain.

Seeds are fixed. A statistical check has the false-alarm rate of `reference.p_values.ALARM`.
"""

import math

import numpy as np
import pytest

import fillrank.posterior.fold_in as module
from fillrank.features.blocks import Block, Blocks, PatternCode, TableCode
from fillrank.kernels import new_rows
from fillrank.kernels.gaussian_rows import NO_LIMITS
from fillrank.posterior.fold_in import RowFeatures, fold_in_rows
from fillrank.posterior.low_rank import LowRankPosterior
from fillrank.posterior.mean import mean_draw
from fillrank.runtime.threads import Workers
from fillrank.samplers.model import Draw, Noise
from fillrank.table.entries import Entries
from fillrank.table.units import Units
from reference.p_values import limit_of
from reference.planted import plant

ROWS = [([0, 4, 7], [1.0, -2.0, 0.5]), ([], []), ([1, 2], [3.0, 0.1])]
M, N, R, P = 12, 8, 3, 4


def entries_of(rows):
    pointers = np.cumsum([0] + [len(columns) for columns, _ in rows])
    indices, values = (np.concatenate([row[part] for row in rows]) for part in (0, 1))
    return Entries(pointers, indices.astype(np.int32), values)


def centred(m, p, seed):
    F = np.random.default_rng(seed).standard_normal((m, p))
    return F - F.mean(axis=0)


def draw(seed, uneven=False, degrees=math.inf):
    """Rows with an effect of the features, and a constant beside the column effects."""
    rng = np.random.default_rng(seed)
    weights = np.column_stack([rng.standard_normal((P, R)), np.zeros(P)])
    left = np.column_stack([rng.normal(0.5, 0.7, (M, R)), np.ones(M)])
    noise = Noise.equal(0.2 + 0.3 * seed, (M, N))._replace(degrees=degrees)
    if uneven:
        noise = noise._replace(rows=rng.gamma(2, 0.5, M), columns=rng.gamma(2, 0.5, N))
    right = rng.standard_normal((N, R + 1))
    return Draw(left + centred(M, P, 9) @ weights, right, noise, weights)


BLOCKS = (slice(0, 2), slice(2, 4))


def features(known=None, size=1.0):
    """Two blocks of two features each."""
    new = size * np.random.default_rng(7).standard_normal((len(ROWS), P))
    known = np.ones((len(ROWS), 2), dtype=bool) if known is None else np.array(known)
    new = np.where(np.repeat(known, 2, axis=1), new, 0.0)
    return in_blocks(centred(M, P, 9), new, known)


def in_blocks(fitted, new, known):
    return RowFeatures([fitted[:, b] for b in BLOCKS], [new[:, b] for b in BLOCKS], known)


# Of the second row only the first block is known, of the third none.
SOME = [[True, True], [True, False], [False, False]]


def fold(draws, given, n_threads=1, rows=ROWS):
    with Workers(n_threads) as workers:
        return fold_in_rows(draws, mean_draw(draws), entries_of(rows), workers, 0, given)


def signal(drawn):
    return drawn.left @ drawn.right.T


def strengths(W, rest):
    """lambda of each feature, in blocks of two: K p / sum_k ||W_k||^2 / v_k over what varies."""
    v = rest.var(axis=0)
    standard = W[:, v > 1e-20] / np.sqrt(v[v > 1e-20])
    return np.repeat([each.size / np.sum(each**2) for each in np.split(standard, len(W) // 2)], 2)


def prior_law(kept, i, given):
    """(mean, covariance) of a new row before its entries, from the joint Gaussian of all rows.

    With the weights integrated out, the covariance of all rows is (I + F D^-1 F^T) kron Lambda^-1.
    """
    used = np.repeat(given.known[i], 2)
    W, F = kept.row_weights[used], np.hstack(given.fitted)[:, used]
    rest = kept.left - F @ W
    m, k = rest.shape
    mean = rest.mean(axis=0)
    covariance = np.cov(rest.T, bias=True) * np.where(np.eye(k), 1.0, m / (m + k))
    covariance *= (m + 1) / (m - 3)
    if not used.any():
        return mean, covariance
    both = np.vstack([F, np.hstack(given.new)[i, used]])
    between = np.eye(m + 1) + both / strengths(W, rest) @ both.T
    # Components that are constant are no part of the joint Gaussian.
    free = np.flatnonzero(np.diag(covariance) > 1e-20)
    r = free.size
    joint = np.kron(between, covariance[np.ix_(free, free)])
    old, new = slice(0, m * r), slice(m * r, None)
    gain = np.linalg.solve(joint[old, old], joint[old, new]).T
    mean[free] += gain @ (kept.left[:, free] - mean[free]).ravel()
    covariance[np.ix_(free, free)] = joint[new, new] - gain @ joint[old, new]
    return mean, covariance


def row_law(kept, i, given):
    """(mean, covariance) of a row's coefficients by the joint Gaussian of (coefficients, values)."""
    mean, covariance = prior_law(kept, i, given)
    columns, values = np.array(ROWS[i][0], dtype=int), np.array(ROWS[i][1])
    F = kept.right[columns]
    cross = covariance @ F.T
    total = F @ cross + np.diag(kept.noise.at(np.zeros(columns.size, int), columns))
    gain = np.linalg.solve(total, cross.T).T
    return mean + gain @ (values - F @ mean), covariance - gain @ cross.T


def error_of_means(known=SOME):
    draws, given = [draw(0), draw(1)], features(known)
    expected = [
        np.mean([row_law(kept, i, given)[0] @ kept.right.T for kept in draws], axis=0)
        for i in range(len(ROWS))
    ]
    return np.abs(signal(fold(draws, given)[1]) - expected).max()


def score_of_draws(n=600):
    """The largest |z| of means and covariances of whitened draws, over what it may be."""
    kept, given = draw(0), features(SOME, size=3.0)
    new = np.array([w.left[:, :R] for w in fold([kept] * n, given)[0]])
    white = []
    for i in range(len(ROWS)):
        mean, covariance = row_law(kept, i, given)
        root = np.linalg.cholesky(covariance[:R, :R])
        white.append(np.linalg.solve(root, (new[:, i] - mean[:R]).T).T)
    white = np.hstack(white)
    a, b = np.triu_indices(white.shape[1])
    second = (white[:, a] * white[:, b] - (a == b)) / np.where(a == b, math.sqrt(2.0), 1.0)
    scores = np.abs(np.hstack([white, second]).sum(axis=0)) / math.sqrt(n)
    return scores.max() / limit_of(scores.size)


@pytest.mark.parametrize("known", [None, SOME])
def test_expected_rows_are_regressions_about_their_features(known):
    assert error_of_means(known) < 1e-12


def test_draws_have_the_joint_gaussian_distribution():
    assert score_of_draws() < 1.0


@pytest.mark.parametrize("uneven", [False, True])
@pytest.mark.parametrize("degrees", [math.inf, 4.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_features_are_taken_off_and_added_back(uneven, degrees, weighted):
    """The same draws as of rows without what features explain, in a table that varies more."""
    draws, given = [draw(s, uneven, degrees) for s in range(3)], features()
    entries = entries_of(ROWS)
    if weighted:
        entries = entries._replace(weights=np.linspace(0.5, 2, entries.n_entries))
    row_of = np.repeat(np.arange(3), np.diff(entries.pointers))
    for kept in draws:
        rest = kept.left - np.hstack(given.fitted) @ kept.row_weights
        mean = rest.mean(axis=0)
        (new, _), expected = fold_in_rows([kept] * 2, kept, entries, Workers(1), 0, given)
        laws = [prior_law(kept, i, given) for i in range(3)]
        shifts = np.array([law[0] for law in laws]) - mean
        explained = np.sum(shifts[row_of] * kept.right[entries.indices], axis=1)
        without = entries._replace(values=entries.values - explained)
        for i, (_, covariance) in enumerate(laws):
            wider = np.sqrt(covariance[0, 0] / (rest[:, 0].var() * (M + 1) / (M - 3)))
            plain = kept._replace(left=mean + wider * (rest - mean))
            (old, _), centre = fold_in_rows([plain] * 2, plain, without, Workers(1), 0)
            np.testing.assert_allclose(new.left[i], old.left[i] + shifts[i], atol=1e-10)
            np.testing.assert_array_equal(new.noise.rows[i], old.noise.rows[i])
            moved = signal(centre)[i] + kept.right @ shifts[i]
            np.testing.assert_allclose(signal(expected)[i], moved, atol=1e-10)


def test_weights_that_explain_all_or_nothing():
    """Their strength is bounded: new rows are about where the weights of the draw would put them."""
    kept, given = draw(0), features()
    explained = np.hstack(given.fitted) @ kept.row_weights
    for left, weights, atol in [
        (explained + np.eye(R + 1)[R], kept.row_weights, 1e-5),
        (kept.left - explained, np.zeros((P, R + 1)), 1e-6),
    ]:
        special = kept._replace(left=left, row_weights=weights)
        group = module._groups(given, left.dtype, Workers(1))[0]
        basis = np.linalg.qr(kept.right).Q
        regression = module._regression(special, basis, group, NO_LIMITS, "gaussian")
        expected = np.hstack(given.new) @ weights
        np.testing.assert_allclose(regression.shifts, expected, atol=atol)
        assert np.isfinite(regression.scales).all()
        assert (regression.scales >= 1.0).all()
        np.testing.assert_array_equal(regression.shifts[:, R], 0.0)


def test_rows_of_which_no_feature_is_known_have_the_same_bits_as_without_features():
    draws = [draw(s, uneven=True) for s in range(3)]
    nothing = features(np.zeros((3, 2), bool))
    with_features, mean = fold(draws, nothing)
    without, plain = fold(draws, None)
    np.testing.assert_array_equal(mean.left, plain.left)
    for w, v in zip(with_features, without, strict=True):
        np.testing.assert_array_equal(w.left, v.left)


def test_a_row_does_not_depend_on_what_is_known_of_others():
    draws = [draw(s) for s in range(3)]
    some, everything = fold(draws, features(SOME)), fold(draws, features())
    np.testing.assert_array_equal(some[0][2].left[0], everything[0][2].left[0])
    np.testing.assert_array_equal(some[1].left[0], everything[1].left[0])


def test_the_order_of_features_and_of_rows_does_not_matter():
    draws, turn, order = [draw(s) for s in range(3)], [1, 0, 3, 2], [1, 2, 0]
    fitted, new, known = (np.hstack(features().fitted), np.hstack(features().new), features().known)
    expected = signal(fold(draws, features())[1])
    turned = [w._replace(row_weights=w.row_weights[turn]) for w in draws]
    again = in_blocks(fitted[:, turn], new[:, turn], known)
    np.testing.assert_allclose(signal(fold(turned, again)[1]), expected, atol=1e-12)
    moved, rows = in_blocks(fitted, new[order], known[order]), [ROWS[i] for i in order]
    by_rows = signal(fold(draws, moved, rows=rows)[1])
    np.testing.assert_allclose(by_rows, expected[order], atol=1e-12)


def test_threads_do_not_matter():
    rng = np.random.default_rng(0)
    rows = [(np.arange(N), rng.standard_normal(N)) for _ in range(2000)]
    new = rng.standard_normal((2000, P))
    given = in_blocks(centred(M, P, 9), new, rng.random((2000, 2)) < 0.5)
    draws = [draw(s, uneven=True) for s in range(2)]
    one, two = (fold(draws, given, n, rows) for n in (1, 2))
    np.testing.assert_array_equal(one[1].left, two[1].left)
    np.testing.assert_array_equal(one[0][1].left, two[0][1].left)


BUGS = {
    "features added, not taken off": ("_take_off_explained", "tile[k, t] -= ", "tile[k, t] += "),
    "noise forgotten": ("_take_off_explained", " / regression.noise_sd[j]", ""),
    "features not added back": (
        "regress_rows", "regression.mean + regression.shifts[i]", "regression.mean"
    ),
    "first row's features": ("regress_rows", "regression.shifts[i]", "regression.shifts[0]"),
    "law of all that rows are": ("_unexplained", "- group.fitted @", "- 0.0 * group.fitted @"),
    "weights known for certain": ("_law_of_features", "1.0 + _leverages", "1.0 + 0.0 * _leverages"),
    "weights of the draw": ("_law_of_features", "group.new @ expected", "group.new @ B"),
    "values not widened": ("regress_rows", "_widen(tile, n, k, scale)", "pass"),
    "first row's scale": ("regress_rows", "regression.scales[i]", "regression.scales[0]"),
    "one strength": ("_strengths", "*STRENGTHS)[blocks]", "*STRENGTHS)[0 * blocks]"),
    "unknown features are zeros": ("_groups", "features.known, axis=0", "features.known | True, axis=0"),
}  # fmt: skip


@pytest.fixture
def uncompiled(monkeypatch):
    """The kernel in Python: a bug in what it calls is compiled in no time."""
    kernel = new_rows.regress_rows.py_func
    for place in (new_rows, module):
        monkeypatch.setattr(place, "regress_rows", kernel)
    return monkeypatch


@pytest.mark.parametrize("bug", BUGS)
def test_planted_bugs_are_detected(bug, uncompiled):
    place = new_rows if hasattr(new_rows, BUGS[bug][0]) else module
    plant(uncompiled, place, *BUGS[bug], into=(module,))
    uncompiled.setitem(globals(), "fold_in_rows", module.fold_in_rows)
    assert max(error_of_means(), error_of_means(None)) > 1e-3


def test_draws_that_are_not_wider_are_detected(uncompiled):
    plant(uncompiled, new_rows, "regress_rows", "noise[b] *= scale", "pass", into=(module,))
    uncompiled.setitem(globals(), "fold_in_rows", module.fold_in_rows)
    assert score_of_draws() > 1.0


# Posteriors with blocks


def posterior(columns=False):
    """Draws with a given block and a pattern block of rows, and a pattern block of columns."""
    rng = np.random.default_rng(3)
    F = centred(M, P, 9)
    pattern = PatternCode(rng.random(N) / N, rng.standard_normal((N, 2)))
    rows = (
        Block("features", F[:, :2], TableCode((), np.zeros(0), np.zeros((0, 2))), ()),
        Block("missingness", F[:, 2:], pattern, ()),
    )
    G = centred(N, 2, 4)
    code = PatternCode(rng.random(M) / M, rng.standard_normal((M, 2)))
    blocks = Blocks(rows, (Block("missingness", G, code, ()),))
    draws = []
    for seed in range(3):
        kept, weights = draw(seed), rng.standard_normal((2, R + 1))
        draws.append(kept._replace(right=kept.right + G @ weights, column_weights=weights))
    units = Units.equal(1.0, 2.0, N, None)
    return LowRankPosterior(draws, units, mean_draw(draws), blocks=blocks)


GIVEN = np.array([[0.5, -1.0], [0.0, 0.0], [1.5, 0.2]])


def folded(given, axis="rows", start=None, rows=ROWS):
    with Workers(1) as workers:
        return (start or posterior()).fold_in(entries_of(rows), axis, workers, given)


def test_blocks_of_new_rows_have_their_values():
    known = posterior()
    new = folded(GIVEN, start=known)
    given, pattern = new.blocks.rows
    np.testing.assert_array_equal(given.values, GIVEN)
    code = known.blocks.rows[1].code
    observed = np.zeros(N)
    observed[[0, 4, 7]] = 1 / math.sqrt(3)
    np.testing.assert_allclose(pattern.values[0], (observed - code.means) @ code.directions)
    np.testing.assert_array_equal(pattern.values[1], 0.0)  # no entries
    assert new.blocks.columns[0].values is known.blocks.columns[0].values
    for w, v in zip(new.draws, known.draws, strict=True):
        assert w.row_weights is v.row_weights
        assert w.column_weights is v.column_weights


def test_the_posterior_uses_its_features():
    known = posterior()
    values = [GIVEN, folded(GIVEN).blocks.rows[1].values]
    is_known = np.array([[True, True], [False, False], [True, True]])
    given = in_blocks(centred(M, P, 9), np.hstack(values), is_known)
    standard = entries_of(ROWS)._replace(values=(entries_of(ROWS).values - 1.0) / 2.0)
    draws, mean = fold_in_rows(known.draws, known.mean, standard, Workers(1), 0, given)
    np.testing.assert_array_equal(folded(GIVEN).mean.left, mean.left)
    np.testing.assert_array_equal(folded(GIVEN).draws[2].left, draws[2].left)
    assert np.abs(folded(None).mean.left - mean.left)[[0, 2]].max() > 0.01


def test_new_columns_have_the_pattern_of_their_entries():
    known = posterior()
    new = folded(None, "columns")
    code, observed = known.blocks.columns[0].code, np.zeros(M)
    observed[[1, 2]] = 1 / math.sqrt(2)
    expected = (observed - code.means) @ code.directions
    np.testing.assert_allclose(new.blocks.columns[0].values[2], expected)
    assert new.shape == (M, 3)
    assert len(new.blocks.rows[1].code.directions) == 3


def test_new_columns_of_new_rows_have_no_known_pattern():
    rows = [([0, 2], [1.0, 2.0])]
    both = folded(None, "columns", folded(GIVEN), rows)
    assert both.shape == (3, 1)
    np.testing.assert_array_equal(both.blocks.columns[0].values, 0.0)
    plain = LowRankPosterior(
        folded(GIVEN).draws, folded(GIVEN).units, folded(GIVEN).mean
    )  # without blocks: the law of all that columns are
    np.testing.assert_array_equal(folded(None, "columns", plain, rows).mean.right, both.mean.right)


def test_a_single_draw_with_features_keeps_its_weights():
    known = posterior()
    one = LowRankPosterior(known.draws[:1], known.units, known.draws[0], blocks=known.blocks)
    new = folded(GIVEN, start=one)
    assert new.draws[0].row_weights.shape == (P, R + 1)
    assert new.draws[0].left.shape == (3, R + 1)
    folded(None, "columns", new, [([0], [1.0])])
