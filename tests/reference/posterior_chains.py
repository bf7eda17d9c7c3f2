"""Statistics of the posterior of a small table, from one long chain."""

import numpy as np

from fillrank.samplers.feature_steps import WITHOUT_FEATURES, first_weights
from reference.p_values import batch_means
from reference.small_tables import PLAIN, context_of, make_state

_BURN_IN = 300


def _records(sweep, data, r, n, seed, model, features):
    """(U, V, d, gamma) over n sweeps."""
    m, k = data.shape
    rng = np.random.default_rng(seed)
    U, V = rng.standard_normal((m, r)), rng.standard_normal((k, r))
    U *= 0.5 / np.linalg.norm(U, axis=0)
    V *= 0.5 / np.linalg.norm(V, axis=0)
    weights = [first_weights(side, r + 2) for side in features]
    state = make_state(U, V, np.ones(r), np.ones(r), weights=weights, **model)
    context, kept = context_of(PLAIN, seed, features=features), []
    for t in range(_BURN_IN + n):
        state, _ = sweep(state, data, context)
        if t >= _BURN_IN:
            kept.append((state.left[:, :r], state.right[:, :r], state.d, state.gamma))
    return tuple(np.stack(part) for part in zip(*kept, strict=True))


def posterior_statistics(
    sweep, table, x, *, r, n, seed, model, sign=1.0, transposed=False, features=WITHOUT_FEATURES,
    n_rows=None,
):  # fmt: skip
    """{statistic: (mean, standard error)} of the posterior given x, by n sweeps.

    They are of the first ``n_rows`` rows; None for all.
    With ``sign`` -1 or ``transposed`` the chain sees the table turned round, and what is returned
    is turned back: the answer must not change.
    """
    if transposed:
        other, order = table.transposed()
        V, U, d, gamma = _records(sweep, other.data(sign * x[order]), r, n, seed, model, features)
    else:
        U, V, d, gamma = _records(sweep, table.data(sign * x), r, n, seed, model, features)
    U = U[:, :n_rows]
    Z = sign * np.einsum("tik,tk,tjk->tij", U, d, V)
    residual = x - Z[:, table.i, table.j]
    ordered = np.sort(d, axis=1)
    values = {f"z{i}{j}": Z[:, i, j] for i, j in [(0, 0), (0, 2), (2, 1), (1, 1), (3, 0), (4, 2)]}
    values |= {
        "z00 z21": Z[:, 0, 0] * Z[:, 2, 1],
        "z00 squared": Z[:, 0, 0] ** 2,
        "z11 squared": Z[:, 1, 1] ** 2,
        "residual square": np.sum(residual**2, axis=1),
        "log of the smallest d": np.log(ordered[:, 0]),
        "log of the largest d": np.log(ordered[:, -1]),
        "gamma": gamma.mean(axis=1),
        "largest norm of u": np.linalg.norm(U, axis=1).max(axis=1),
        "norm of u": np.linalg.norm(U, axis=1).mean(axis=1),
        "norm of v": np.linalg.norm(V, axis=1).mean(axis=1),
        "nuclear norm": np.linalg.svd(Z, compute_uv=False).sum(axis=1),
    }
    mean, error = batch_means(np.column_stack(list(values.values())))
    return dict(zip(values, zip(mean, error, strict=True), strict=True))


def difference_scores(one, other):
    """{statistic: z-score} of the difference of two answers."""
    scores = {}
    for name, (mean, error) in one.items():
        mean2, error2 = other[name]
        scores[name] = (mean - mean2) / np.hypot(error, error2)
    return scores
