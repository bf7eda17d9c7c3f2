"""The figures of docs/theorem.md: what the relaxation to unit balls leaves as it was.

    python benchmarks/theorem.py

Small random tables, so that every optimum comes with a certificate; about a minute.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from fillrank.kernels.products import product
from fillrank.runtime.threads import Workers
from fillrank.samplers.model import Data
from fillrank.solvers.certificates import largest_penalty
from fillrank.solvers.fit import Factors, Limits, no_factors
from fillrank.solvers.hasi import Lomax, hasi
from fillrank.solvers.losses import Logistic, Ordered
from fillrank.solvers.relaxed_spectral import Components, Fixed, Problem, components_of, descend
from fillrank.solvers.soft_impute import soft_impute
from fillrank.solvers.soft_impute_losses import LossData, largest_loss_penalty, soft_impute_loss
from fillrank.table.entries import compress

EXACT = 1e-11


class Case(NamedTuple):
    """A random table: rank 3 and noise 1, a share of the entries, a share of the largest penalty."""

    m: int
    n: int
    observed: float
    penalty_share: float
    seed: int


CASES = (
    Case(20, 15, 0.5, 0.2, 0),
    Case(30, 20, 0.4, 0.1, 1),
    Case(60, 50, 0.5, 0.3, 2),
    Case(60, 50, 0.2, 0.3, 3),
    Case(200, 150, 0.3, 0.2, 4),
)


def table(case):
    """(X, mask) of a case."""
    rng = np.random.default_rng(case.seed)
    X = rng.standard_normal((case.m, 3)) @ rng.standard_normal((3, case.n))
    X += rng.standard_normal(X.shape)
    return X, rng.random(X.shape) < case.observed


def data_of(X, mask):
    """The entries under the mask, from both sides."""
    i, j = np.nonzero(mask)
    m, n = X.shape
    return Data(compress(m, i, j, X[i, j]), compress(n, j, i, X[i, j]))


def largest_cosine(alpha):
    """The largest |cosine| between two rows; 0 for orthogonal ones."""
    unit = alpha / np.linalg.norm(alpha, axis=1)[:, np.newaxis]
    return np.abs(unit @ unit.T - np.eye(len(unit))).max(initial=0.0)


def random_components(rng, m, n, r):
    """d exponential, alpha and beta uniform in unit balls."""

    def ball(dimension):
        g = rng.standard_normal((r, dimension))
        radius = rng.random((r, 1)) ** (1 / dimension)
        return radius * g / np.linalg.norm(g, axis=1)[:, np.newaxis]

    return Components(rng.exponential(size=r), ball(m), ball(n))


def nudged(parts, rng):
    """The components moved by 1e-6 to 0.1 at random, and back into their balls."""
    size = 10.0 ** rng.uniform(-6, -1)
    d, alpha, beta = (part + size * rng.standard_normal(part.shape) for part in parts)
    alpha, beta = (x / np.maximum(1, np.linalg.norm(x, axis=1))[:, None] for x in (alpha, beta))
    return Components(np.maximum(d, 0), alpha, beta)


def matrix_of(parts):
    """Z."""
    return (parts.alpha.T * parts.d) @ parts.beta


# Theorem 1


def relaxed_optimum(data, penalty, workers, limits):
    """P2's components and fit."""
    r = min(data.shape)
    problem = Problem(data, Fixed(np.full(r, penalty)), penalty, False, workers)
    return descend(problem, components_of(no_factors(data), r), limits)


def theorem_1(workers):
    """P1 by SoftImpute and P2 by block descent, on the same tables."""
    print(
        "| m x n, observed, penalty | P1 (gap) | P2 / P1 - 1 (gap) | sum d / nuclear norm - 1 ",
        end="",
    )
    print("| rank | largest d, singular value | largest cosine of two alphas |")
    print("|---|---|---|---|---|---|---|")
    for case in CASES:
        data = data_of(*table(case))
        penalty = case.penalty_share * largest_penalty(data, workers)
        limits = Limits(min(data.shape), 5000, EXACT)
        P1 = soft_impute(data, penalty, limits, workers)
        parts, P2 = relaxed_optimum(data, penalty, workers, limits)
        full = parts.d > 0
        print(
            f"| {case.m} x {case.n}, {case.observed:.0%}, {case.penalty_share} of the largest "
            f"| {P1.objectives[-1]:.8g} ({P1.violation:.0e}) "
            f"| {P2.objectives[-1] / P1.objectives[-1] - 1:.0e} ({P2.violation:.0e}) "
            f"| {parts.d.sum() / P2.factors.s.sum() - 1:.0e} | {P2.factors.s.size} "
            f"| {parts.d.max():.2f}, {P2.factors.s[0]:.2f} | {largest_cosine(parts.alpha[full]):.2f} |",
            flush=True,
        )


# Majorisation


def smallest_slack(parts):
    """min over j of (sum of the j smallest d) - (sum of the j smallest singular values)."""
    r = parts.d.size
    s = np.zeros(r)
    found = np.linalg.svd(matrix_of(parts), compute_uv=False)[:r]
    s[: found.size] = found
    return float(np.min(np.cumsum(np.sort(parts.d)) - np.cumsum(np.sort(s))))


def majorisation(n_decompositions=20_000):
    """The inequality on random decompositions; half of them nearly orthonormal, where it is tight."""
    rng = np.random.default_rng(0)
    slacks = []
    for trial in range(n_decompositions):
        m, n, r = rng.integers(2, 9, size=3)
        parts = random_components(rng, m, n, r)
        if trial % 2:
            q = min(m, n, r)
            U, V = (np.linalg.qr(rng.standard_normal((k, q))).Q.T for k in (m, n))
            parts = Components(parts.d[:q], U, V)
        slacks.append(smallest_slack(parts) / parts.d.sum())
    print(
        f"\n{n_decompositions} random decompositions, m, n, r from 2 to 8, half of them orthonormal:"
    )
    print(
        f"smallest slack {min(slacks):.0e} of sum d; {np.mean(np.array(slacks) < 1e-12):.0%} tight"
    )


# P3 and the form with gamma integrated out


def weighted_threshold(y, gamma):
    """The minimum of 1/2 ||Y - Z||^2 + sum_k gamma_(k) s_k(Z), gamma ascending."""
    gamma = np.sort(gamma)
    s = np.maximum(y - gamma, 0)
    return 0.5 * float(np.sum((y - s) ** 2)) + float(gamma @ s)


def adaptive_weights(workers, starts=10):
    """P3 on a full table from random starts: sweeps alone, and with orthonormal vectors after each."""
    rng = np.random.default_rng(5)
    X, mask = rng.standard_normal((20, 15)) + 2, np.ones((20, 15), dtype=bool)
    data, gamma = data_of(X, mask), rng.uniform(0.5, 6, size=15)
    best = weighted_threshold(np.linalg.svd(X, compute_uv=False), gamma)
    above = {False: [], True: []}
    for _ in range(starts):
        parts = random_components(rng, 20, 15, 15)
        for orthonormalise, found in above.items():
            problem = Problem(data, Fixed(gamma), None, orthonormalise, workers)
            copy = Components(*(part.copy() for part in parts))
            fit = descend(problem, copy, Limits(15, 1000, 1e-8))[1]
            found.append(fit.objectives[-1] / best - 1)
    print(f"\nP3, full 20 x 15, above the closed form, worst of {starts} random starts: ", end="")
    print(f"sweeps alone {max(above[False]):.1e}, with orthonormal vectors {max(above[True]):.1e};")
    print(f"never below it by more than {max(0, -min(above[False] + above[True])):.0e}")


def marginal(workers):
    """HASI, and the relaxed problem with gamma integrated out, from the same start."""
    print("\n| m x n, observed | beta | HASI (violation) | relaxed / HASI - 1 (violation) ", end="")
    print("| each from the other's end: HASI, relaxed | max abs(d - s) / s_1 | largest cosine |")
    print("|---|---|---|---|---|---|---|")
    for case in CASES:
        data = data_of(*table(case))
        penalty = case.penalty_share * largest_penalty(data, workers)
        r = min(data.shape)
        start = soft_impute(data, penalty, Limits(r, 50, 1e-6), workers).factors
        for beta in (100.0, 10.0, 1.0):
            limits = Limits(r, 3000, 1e-7)
            one = hasi(data, penalty, beta, limits, workers, start)
            problem = Problem(data, Lomax(penalty * beta, beta), None, True, workers)
            parts, two = descend(problem, components_of(start, r), limits)
            # A few sweeps that may leave orthonormality: they do not.
            free = problem._replace(orthonormalise=False)
            parts, three = descend(free, parts, Limits(r, 30, 0.0))
            full, s = np.sort(parts.d[parts.d > 0])[::-1], three.factors.s
            one_from_two = hasi(data, penalty, beta, limits, workers, two.factors)
            _, two_from_one = descend(problem, components_of(one.factors, r), limits)
            print(
                f"| {case.m} x {case.n}, {case.observed:.0%} | {beta:g} "
                f"| {one.objectives[-1]:.8g} ({one.violation:.0e}) "
                f"| {three.objectives[-1] / one.objectives[-1] - 1:.0e} ({two.violation:.0e}) "
                f"| {one_from_two.objectives[-1] / two.objectives[-1] - 1:.0e}, "
                f"{two_from_one.objectives[-1] / one.objectives[-1] - 1:.0e} "
                f"| {np.abs(full - s).max() / s[0]:.0e} "
                f"| {largest_cosine(parts.alpha[parts.d > 0]):.0e} |",
                flush=True,
            )


# Absolute loss


def absolute_loss_optimum(X, mask, penalty, iterations=20_000):
    """(Z, W): ADMM for sum |x - z| + penalty ||Z||_*, and a feasible point of its dual.

    The dual is to maximise <W, X> over W on Omega with |W_ij| <= 1 and ||W||_2 <= penalty.
    """
    rho = 2.0
    Z = U = np.zeros_like(X)
    for _ in range(iterations):
        V = Z - U
        e = X - V
        Y = np.where(mask, X - np.sign(e) * np.maximum(np.abs(e) - 1 / rho, 0), V)
        P, s, Qt = np.linalg.svd(Y + U, full_matrices=False)
        Z = (P * np.maximum(s - penalty / rho, 0)) @ Qt
        U = U + Y - Z
        if np.abs(Y - Z).max() < 1e-13:
            break
    W = np.where(mask, np.clip(rho * U, -1, 1), 0)
    return Z, W * min(1.0, penalty / np.linalg.norm(W, 2))


def absolute_loss_relaxed(X, mask, parts, penalty):
    """P2's objective with the absolute loss."""
    return float(np.abs(X - matrix_of(parts))[mask].sum() + penalty * parts.d.sum())


def absolute_loss_descent(X, mask, penalty, rng):
    """Components by descent from a random point, the loss rounded off ever less."""
    m, n = X.shape
    r = min(m, n)

    def rounded(x, epsilon):
        A, B = x[: r * m].reshape(r, m), x[r * m :].reshape(r, n)
        e = np.where(mask, X - A.T @ B, 0)
        size = np.sqrt(e**2 + epsilon**2)
        slope = -e / size
        value = size[mask].sum() + 0.5 * penalty * (x @ x)
        return value, np.append(B @ slope.T, A @ slope) + penalty * x

    x = rng.standard_normal(r * (m + n))
    for epsilon in 10.0 ** -np.arange(1, 8):
        x = minimize(rounded, x, (epsilon,), jac=True, options={"maxiter": 500}).x
    A, B = x[: r * m].reshape(r, m), x[r * m :].reshape(r, n)
    a, b = np.linalg.norm(A, axis=1), np.linalg.norm(B, axis=1)
    return Components(a * b, A / a[:, np.newaxis], B / b[:, np.newaxis])


def lowest(X, mask, penalty, points):
    """The smallest objective of P2 among the points."""
    return min(absolute_loss_relaxed(X, mask, point, penalty) for point in points)


def absolute_loss(n_points=20_000, n_descents=3):
    """P1 = P2 for the absolute loss: one dual bound holds for both."""
    print("\n| 8 x 6, seed | P1 (gap) | P2 at its SVD / P1 - 1 | P2 by descent / P1 - 1 ", end="")
    print(f"| lowest of {n_points} points nearby less the bound | of {n_points} anywhere |")
    print("|---|---|---|---|---|---|")
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((8, 2)) @ rng.standard_normal((2, 6))
        X += rng.standard_t(2, X.shape)
        mask = rng.random(X.shape) < 0.7
        penalty = 1.0
        Z, W = absolute_loss_optimum(X, mask, penalty)
        P, s, Qt = np.linalg.svd(Z)
        best = float(np.abs(X - Z)[mask].sum() + penalty * s.sum())
        bound = float((W * X)[mask].sum())
        svd = components_of(Factors(P[:, :6], s, Qt.T), 6)
        at_svd = absolute_loss_relaxed(X, mask, svd, penalty)
        found = [
            absolute_loss_relaxed(X, mask, absolute_loss_descent(X, mask, penalty, rng), penalty)
            for _ in range(n_descents)
        ]
        near = lowest(X, mask, penalty, (nudged(svd, rng) for _ in range(n_points)))
        random = (random_components(rng, 8, 6, 6) for _ in range(n_points))
        anywhere = lowest(X, mask, penalty, random)
        print(
            f"| {seed} | {best:.8g} ({(best - bound) / best:.0e}) | {at_svd / best - 1:.0e} "
            f"| {min(found) / best - 1:.0e} to {max(found) / best - 1:.0e} "
            f"| {near - bound:.0e} | {anywhere - bound:.1f} |",
            flush=True,
        )


def levels_of(case, kind):
    """(data, loss) of a case whose values are cut into two or four levels."""
    X, mask = table(case)
    cuts = [0.0] if kind == "logistic" else [-2.0, 0.0, 1.0]
    data = LossData.of(data_of(np.digitize(X, cuts).astype(float), mask), np.zeros(mask.sum()))
    return data, Logistic() if kind == "logistic" else Ordered(np.array(cuts))


def loss_descent(data, loss, penalty, rng, one_thread):
    """The components of P2 for a loss, by descent from a random point.

    Over the balls, lambda d_k is the smallest lambda / 2 (||a_k||^2 + ||b_k||^2) with
    a_k b_k^T = d_k alpha_k beta_k^T.
    """
    m, n = data.data.shape
    r = min(m, n)

    def objective(x):
        A, B = x[: r * m].reshape(r, m), x[r * m :].reshape(r, n)
        z = data.signals(Factors(A.T, np.ones(r), B.T), one_thread)
        values, slopes = loss.evaluate(data.x, z, one_thread)
        G = data.sparse(slopes)
        gradient = (
            product(G.rows, B.T.copy(), one_thread),
            product(G.columns, A.T.copy(), one_thread),
        )
        value = values.sum() + loss.constant + 0.5 * penalty * (x @ x)
        return value, np.concatenate([each.T.ravel() for each in gradient]) + penalty * x

    options = {"maxiter": 5000, "maxfun": 20_000, "ftol": 1e-16, "gtol": 1e-8}
    x = rng.standard_normal(r * (m + n))
    x = minimize(objective, x, jac=True, method="L-BFGS-B", options=options).x
    A, B = x[: r * m].reshape(r, m), x[r * m :].reshape(r, n)
    a, b = np.linalg.norm(A, axis=1), np.linalg.norm(B, axis=1)
    floor = np.finfo(float).tiny
    return Components(a * b, A / np.maximum(a, floor)[:, None], B / np.maximum(b, floor)[:, None])


def loss_relaxed(data, loss, parts, penalty, one_thread):
    """P2's objective with a loss."""
    z = data.signals(Factors(parts.alpha.T, parts.d, parts.beta.T), one_thread)
    losses = loss.evaluate(data.x, z, one_thread).values
    return float(losses.sum() + loss.constant + penalty * parts.d.sum())


def losses_of_levels(one_thread, cases=CASES[:3]):
    """P1 = P2 for the logistic loss, and for that of ordered levels with the thresholds of P1."""
    print(
        "\n| loss | m x n, observed | P1 (gap) | iterations | rank | P2 by descent / P1 - 1 ",
        end="",
    )
    print("| sum d / nuclear norm - 1 |")
    print("|---|---|---|---|---|---|---|")
    for kind in ("logistic", "ordered"):
        for case in cases:
            data, loss = levels_of(case, kind)
            penalty = case.penalty_share * largest_loss_penalty(data, loss, one_thread)
            limits = Limits(min(case.m, case.n), 100_000, 1e-9)
            fit, loss = soft_impute_loss(data, loss, penalty, limits, one_thread)
            rng = np.random.default_rng(case.seed)
            parts = loss_descent(data, loss, penalty, rng, one_thread)
            P1, P2 = fit.objectives[-1], loss_relaxed(data, loss, parts, penalty, one_thread)
            print(
                f"| {kind} | {case.m} x {case.n}, {case.observed:.0%} | {P1:.8g} ({fit.violation:.0e}) "
                f"| {len(fit.objectives)} | {fit.factors.s.size} | {P2 / P1 - 1:.0e} "
                f"| {parts.d.sum() / fit.factors.s.sum() - 1:.0e} |",
                flush=True,
            )


if __name__ == "__main__":
    with Workers(1) as one_thread, threadpool_limits(1, user_api="blas"):
        theorem_1(one_thread)
        majorisation()
        adaptive_weights(one_thread)
        marginal(one_thread)
        absolute_loss()
        losses_of_levels(one_thread)
