"""The best columns against a brute force that makes the whole matrix and sorts it."""

import numpy as np
import pytest
from scipy import stats

from fillrank.kernels import predictions as kernels
from fillrank.kernels.ordinal import Scorer
from fillrank.posterior import levels, low_rank, recommend
from fillrank.posterior.levels import FitRowsByMargin, LevelPosterior
from fillrank.posterior.low_rank import LowRankPosterior
from fillrank.posterior.mean import mean_draw
from fillrank.posterior.recommend import LeftOut, TopQuery, seen
from fillrank.runtime.threads import Workers
from fillrank.samplers.model import Draw, Noise
from fillrank.table.entries import Entries
from fillrank.table.units import Units
from reference.p_values import ALARM
from reference.planted import plant

M, N_COLUMNS, N_DRAWS = 13, 29, 11
# In any order, and twice.
ROWS = np.array([4, 0, 12, 7, 4, 1, 10, 11, 2, 3, 0])
EVERYTHING_SEEN, NOTHING_SEEN = 7, 11


def posterior(kind, seed=0, n_draws=N_DRAWS):
    """Draws of random factors: of any numbers, or of -1, 0, 1, so that many cells tie exactly."""
    rng = np.random.default_rng(seed)

    def side(n):
        if kind == "ties":
            return rng.integers(-1, 2, (n, 3)).astype(np.float32)
        return rng.standard_normal((n, 3)).astype(np.float32)

    draws = [
        Draw(side(M), side(N_COLUMNS), Noise.equal(1.0, (M, N_COLUMNS))) for _ in range(n_draws)
    ]
    mean = draws[0] if kind == "ties" else mean_draw(draws)
    return LowRankPosterior(draws, Units.equal(3.0, 2.0, N_COLUMNS, (1.0, 5.0)), mean)


def by_mean(post, rows, out, n, workers):
    return post.top(TopQuery(rows, out, n), workers)


def by_quantile(post, rows, out, n, quantile, workers):
    return post.top(TopQuery(rows, out, n, "cautious", quantile), workers)


def by_draw(post, rows, out, n, rng, workers):
    return post.top(TopQuery(rows, out, n, "curious", rng=rng), workers)


by_level = by_mean


def left_out(seed=0, rows=ROWS):
    """Columns left out of each row asked, in no order; of one row all, of one none."""
    rng = np.random.default_rng(seed)
    share = np.full(M, 0.4)
    share[EVERYTHING_SEEN], share[NOTHING_SEEN] = 1.0, 0.0
    each = [rng.permutation(np.flatnonzero(rng.random(N_COLUMNS) < share[i])) for i in rows]
    return LeftOut(np.append(0, np.cumsum([e.size for e in each])), np.concatenate(each))


def brute_force(scores, out, n, ranked_by=None):
    """(columns, scores) of the n best, from all scores of the rows asked."""
    ranked_by = scores if ranked_by is None else ranked_by
    columns = np.full((len(scores), n), -1)
    best = np.full((len(scores), n), np.nan)
    for p in range(len(scores)):
        gone = set(out.indices[out.pointers[p] : out.pointers[p + 1]])
        allowed = [j for j in range(N_COLUMNS) if j not in gone]
        order = sorted(allowed, key=lambda j: (-ranked_by[p, j], j))[:n]
        columns[p, : len(order)], best[p, : len(order)] = order, scores[p, order]
    return columns, best


def signals(draw, rows=ROWS):
    return draw.left[rows].astype(float) @ draw.right.T.astype(float)


def check(top, scores, out, n):
    """The answer is that of the scores in standard units, before the clip to the scale."""
    columns, best = brute_force(scores, out, n)
    assert top.columns.dtype == np.int64
    assert top.scores.dtype == np.float64
    np.testing.assert_array_equal(top.columns, columns)
    np.testing.assert_allclose(top.scores, np.clip(3.0 + 2.0 * best, 1.0, 5.0), rtol=1e-5)


def check_mean(kind, n, seed=0, n_threads=1):
    post, out = posterior(kind, seed), left_out(seed)
    with Workers(n_threads) as workers:
        check(by_mean(post, ROWS, out, n, workers), signals(post.mean), out, n)


def check_quantile(kind, n, quantile, seed=0, n_draws=N_DRAWS):
    post, out = posterior(kind, seed, n_draws), left_out(seed)
    each = [signals(draw) for draw in post.draws]
    scores = np.quantile(each, quantile, axis=0, method="weibull")
    with Workers(1) as workers:
        check(by_quantile(post, ROWS, out, n, quantile, workers), scores, out, n)


def check_draw(kind, n, seed=0):
    post, out = posterior(kind, seed), left_out(seed)
    choice = np.random.default_rng(seed).integers(N_DRAWS, size=ROWS.size)
    scores = np.array([signals(post.draws[t])[p] for p, t in enumerate(choice)])
    with Workers(1) as workers:
        top = by_draw(post, ROWS, out, n, np.random.default_rng(seed), workers)
    check(top, scores, out, n)


def ordinal_posterior(seed=0):
    """Scorers of different widths, in single precision, with small whole numbers that tie."""
    rng = np.random.default_rng(seed)

    def scorer(width):
        left, right = (rng.integers(-2, 3, (k, width)).astype("f4") for k in (M, N_COLUMNS))
        return Scorer(left, right, np.sort(rng.normal(0, 2, (M, 3)), axis=1))

    scorers = [scorer(width) for width in (0, 2, 1, 3)]
    return LevelPosterior(scorers, np.array([1.0, 2, 4, 7]), FitRowsByMargin(1.0))


def check_level(n, seed=0):
    post, out = ordinal_posterior(seed), left_out(seed)
    levels = post.block(ROWS, np.arange(N_COLUMNS))
    margin = sum(scorer.left[ROWS] @ scorer.right.T for scorer in post.scorers)
    columns, scores = brute_force(levels, out, n, ranked_by=100.0 * levels + margin)
    with Workers(1) as workers:
        top = by_level(post, ROWS, out, n, workers)
    np.testing.assert_array_equal(top.columns, columns)
    np.testing.assert_array_equal(top.scores, scores)


SIZES = (1, 4, N_COLUMNS, 60)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("kind", ["any", "ties"])
def test_by_mean(kind, n):
    for seed in range(10):
        check_mean(kind, n, seed)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("quantile", [0.01, 0.1, 0.25, 0.5, 0.93, 0.999])
def test_by_quantile(quantile, n):
    for seed in range(10):
        check_quantile("any", n, quantile, seed)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("quantile", [0.01, 0.125, 0.25, 0.5, 0.99])
def test_by_quantile_with_ties(quantile, n):
    """Places among 11 draws that are halves: both ways to interpolate are exact."""
    for seed in range(10):
        check_quantile("ties", n, quantile, seed)


@pytest.mark.parametrize("n_draws", [1, 2, 3, 128])
def test_by_quantile_of_few_and_many_draws(n_draws):
    for seed in range(3):
        check_quantile("any", 5, 0.1, seed, n_draws)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("kind", ["any", "ties"])
def test_by_draw(kind, n):
    for seed in range(10):
        check_draw(kind, n, seed)


@pytest.mark.parametrize("n", SIZES)
def test_by_level(n):
    for seed in range(10):
        check_level(n, seed)


def test_the_test_cases_cover_ties_and_clipping():
    """Scores beyond the scale at both ends, ties among the best, levels of all kinds, a full row."""
    values = 3.0 + 2.0 * signals(posterior("ties").mean)
    assert values.max() > 5.0
    assert values.min() < 1.0
    assert max(np.sum(row == row.max()) for row in values) > 2
    assert len(np.unique(ordinal_posterior().block(ROWS, np.arange(N_COLUMNS)))) == 4
    sizes = np.diff(left_out().pointers)
    assert sizes.max() == N_COLUMNS
    assert sizes.min() == 0


def answers(workers, rows, out):
    post, ordinal = posterior("any"), ordinal_posterior()
    return [
        by_mean(post, rows, out, 4, workers),
        by_quantile(post, rows, out, 4, 0.2, workers),
        by_draw(post, rows, out, 4, np.random.default_rng(0), workers),
        by_level(ordinal, rows, out, 4, workers),
    ]


def assert_same(some, others):
    for a, b in zip(some, others, strict=True):
        np.testing.assert_array_equal(a.columns, b.columns)
        np.testing.assert_array_equal(a.scores, b.scores)


def test_the_same_bits_on_any_number_of_threads(monkeypatch):
    monkeypatch.setattr("fillrank.runtime.threads._SMALLEST_SHARE", 1)
    rows = np.tile(ROWS, 30)
    found = []
    for n_threads in (1, 2, 4):
        with Workers(n_threads) as workers:
            found.append(answers(workers, rows, left_out(rows=rows)))
    assert_same(found[0], found[1])
    assert_same(found[0], found[2])


@pytest.mark.parametrize("at_once", [1, 100, 250])
def test_the_same_bits_in_blocks(monkeypatch, at_once):
    with Workers(1) as workers:
        whole = answers(workers, ROWS, left_out())
        monkeypatch.setattr(recommend, "_AT_ONCE", at_once)
        assert_same(answers(workers, ROWS, left_out()), whole)


def test_a_row_alone_gets_the_same_bits():
    post, out = posterior("any"), left_out()
    with Workers(1) as workers:
        together = by_quantile(post, ROWS, out, 4, 0.2, workers)
        for p, row in enumerate(ROWS):
            own = seen(out, np.array([p]))
            alone = by_quantile(post, np.array([row]), own, 4, 0.2, workers)
            assert_same([alone], [recommend.Top(*(side[p : p + 1] for side in together))])


def test_columns_with_the_same_factors_tie():
    """To the last bit, also where products are rounded."""
    post, out = posterior("any"), left_out()
    for draw in post.draws:
        draw.right[[8, 21]] = draw.right[3]
    each = np.array([signals(draw) for draw in post.draws])
    scores = np.quantile(each, 0.2, axis=0, method="weibull")
    with Workers(1) as workers:
        top = by_quantile(post, ROWS, out, N_COLUMNS, 0.2, workers)
    check(top, scores, out, N_COLUMNS)


def test_no_rows():
    out = LeftOut(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32))
    with Workers(2) as workers:
        for top in answers(workers, np.zeros(0, dtype=np.int64), out):
            assert top.columns.shape == top.scores.shape == (0, 4)


def test_seen_takes_rows_in_any_order_and_twice():
    entries = Entries(np.array([0, 2, 2, 5]), np.array([1, 6, 0, 3, 4]), np.ones(5))
    pointers, indices = seen(entries, np.array([2, 0, 1, 2]))
    np.testing.assert_array_equal(pointers, [0, 3, 5, 5, 8])
    np.testing.assert_array_equal(indices, [0, 3, 4, 1, 6, 0, 3, 4])


def check_choice_of_draws():
    """Each draw has a best column of its own, so that answers tell which draw was taken.

    Over 5,500 rows asked, chi^2 of how often each of 11 draws is, and of how often each pair of draws
    is taken by two rows in turn. False alarms: ALARM, shared by the two.
    """
    noise = Noise.equal(1.0, (1, N_DRAWS))
    draws = [
        Draw(np.ones((1, 1), "f4"), np.eye(N_DRAWS, dtype="f4")[:, t : t + 1], noise)
        for t in range(N_DRAWS)
    ]
    post = LowRankPosterior(draws, Units.equal(0.0, 1.0, N_DRAWS, None), draws[0])
    rows = np.zeros(5500, dtype=np.int64)
    out = LeftOut(np.zeros(rows.size + 1, dtype=np.int64), np.zeros(0, dtype=np.int32))
    with Workers(1) as workers:
        taken = by_draw(post, rows, out, 1, np.random.default_rng(5), workers).columns[:, 0]
    alone = np.bincount(taken, minlength=N_DRAWS)
    pairs = np.bincount(N_DRAWS * taken[::2] + taken[1::2], minlength=N_DRAWS**2)
    for counts in (alone, pairs):
        assert stats.chisquare(counts).pvalue > ALARM / 2


def test_every_draw_is_chosen():
    check_choice_of_draws()


@pytest.fixture
def interpreted(monkeypatch):
    """The kernels as plain Python, so that planted bugs need not be compiled."""
    for name in ("_beats", "_replace_worst", "_signal", "_has_chance", "_quantile", "_mark"):
        monkeypatch.setattr(kernels, name, getattr(kernels, name).py_func)
    monkeypatch.setattr(kernels, "update_best", kernels.update_best.py_func)
    monkeypatch.setattr(recommend, "update_best", kernels.update_best)


def in_blocks(monkeypatch):
    """By the mean, with several blocks of rows and columns."""
    monkeypatch.setattr(recommend, "_AT_ONCE", 30)
    check_mean("any", 4)


CHECKS = {
    "mean": lambda _: check_mean("any", 4),
    "all by mean": lambda _: check_mean("any", N_COLUMNS),
    "ties": lambda _: check_mean("ties", 4),
    "quantile": lambda _: check_quantile("any", 4, 0.3),
    "ties of quantiles": lambda _: check_quantile("ties", 4, 0.25),
    "smallest": lambda _: check_quantile("any", 4, 0.01),
    "largest": lambda _: check_quantile("any", 4, 0.999),
    "draw": lambda _: check_draw("any", 4),
    "level": lambda _: check_level(4),
    "blocks": in_blocks,
}


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("name", CHECKS)
def test_the_checks_pass_without_a_bug(monkeypatch, name):
    CHECKS[name](monkeypatch)


BUGS = {
    "clip before ranking": (
        "mean", kernels, "update_best", "_quantile(values, position)",
        "min(1.0, _quantile(values, position))",
    ),
    "seen not left out": ("mean", kernels, "_mark", "marks[c] = True", "pass"),
    "left out in the wrong block": ("blocks", kernels, "_mark", " - first", ""),
    "marks of the row before": ("mean", kernels, "_mark", "marks[:] = False", "pass"),
    "left out by position, not number": (
        "quantile", recommend, "_best", "number[query.left_out.indices]", "query.left_out.indices"
    ),
    "the wrong tail": ("quantile", kernels, "quantile_position", "quantile *", "(1 - quantile) *"),
    "the usual place of a quantile": (
        "quantile", kernels, "quantile_position", "quantile * (n_draws + 1)",
        "quantile * (n_draws - 1) + 1",
    ),
    "the largest draw below the smallest": (
        "smallest", kernels, "_quantile", "max(position.upper - 2, 0)", "position.upper - 2"
    ),
    "no largest draw": ("largest", kernels, "quantile_position", "float(n_draws))", "2.0 * n_draws)"),
    "no interpolation": ("quantile", kernels, "_quantile", "position.short *", "0.0 *"),
    "bound too tight": ("quantile", kernels, "_has_chance", "lost < upper", "lost < upper - 1"),
    "out too soon": ("quantile", kernels, "_has_chance", "lost == upper", "lost >= upper - 1"),
    "ties always lose": (
        "ties of quantiles", kernels, "update_best", "j > heaps.columns[i, 0]", "True"
    ),
    "the larger column of ties": (
        "ties", kernels, "_beats", "column < other_column", "column > other_column"
    ),
    "a heap that loses its order": (
        "all by mean", kernels, "_replace_worst", "child = right", "pass"
    ),
    "not sorted": ("mean", recommend, "_sorted", "-heaps.scores)", "heaps.scores)"),
    "another row's draw": (
        "draw", recommend, "best_by_draw", "query.part(mine)", "query.part(mine[::-1])"
    ),
    "levels without scores": (
        "level", recommend, "best_by_score", "side([scorer.left for", "side([0 * scorer.left for"
    ),
    "the first block of rows alone": (
        "blocks", recommend, "_best", "query.rows[block]", "query.rows[: query.rows[block].size]"
    ),
}  # fmt: skip


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("bug", BUGS)
def test_planted_bugs_are_caught(monkeypatch, bug):
    name, module, function, old, new = BUGS[bug]
    into = (recommend,) if module is kernels and hasattr(recommend, function) else ()
    plant(monkeypatch, module, function, old, new, into=into)
    for user in (low_rank, levels):
        if hasattr(user, function):
            monkeypatch.setattr(user, function, getattr(module, function))
    with pytest.raises((AssertionError, IndexError)):
        CHECKS[name](monkeypatch)


def test_scores_in_place_of_levels_are_caught(monkeypatch):
    score = levels.best_by_score
    monkeypatch.setattr(
        LevelPosterior, "top", lambda self, query, workers: score(self.scorers, query, workers)
    )
    with pytest.raises(AssertionError):
        CHECKS["level"](monkeypatch)


def test_the_same_draw_for_all_rows_is_caught(monkeypatch):
    same = "rng.integers(len(draws), size=1).repeat(n_rows)"
    old = "rng.integers(len(draws), size=n_rows)"
    plant(monkeypatch, recommend, "best_by_draw", old, same)
    monkeypatch.setattr(low_rank, "best_by_draw", recommend.best_by_draw)
    with pytest.raises(AssertionError):
        check_choice_of_draws()
