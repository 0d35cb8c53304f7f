"""Tilted blocks against the sum in 40 digits, on the states the equation visits: the promise is kept and the bound is never below the error."""

from __future__ import annotations

import mpmath
import numba
import numpy as np
import pytest

import mfpde as mf
from mfpde.attention.block_bounds import ellipse_reach, interpolation_error, lebesgue
from mfpde.attention.blocks import Blocks
from mfpde.attention.direct import EPS, Direct

CIRCLE = mf.Circle()
EYE = np.eye(2)


def rotation(angle):
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def random_matrix(rng):
    """General with singular values in [0.1, 10], rotation, reflection, singular, -I, I or zero."""
    turn, again = rotation(rng.uniform(0, 7)), rotation(rng.uniform(0, 7))
    general = turn @ np.diag(10 ** rng.uniform(-1, 1, 2)) @ again
    kinds = [general, general, general, turn, turn @ np.diag([1, -1]), turn @ np.diag([10 ** rng.uniform(-1, 1), 0]) @ again, -EYE, EYE, 0 * EYE]
    return kinds[rng.integers(len(kinds))]


def uniform(rng, n):
    return rng.uniform(0, 7, n), rng.uniform(size=n)


def clusters(rng, n):
    widths = 10 ** rng.uniform(-9, 0, 3)
    return rng.choice(rng.uniform(0, 7, 3), n) + rng.choice(widths, n) * rng.normal(size=n), np.ones(n)


def mixture_on_a_mesh(rng, n):
    theta = 2 * np.pi * (np.arange(n) + 0.5) / n
    return theta, sum(np.exp(-np.minimum(10 ** rng.uniform(0, 5) * (1 - np.cos(theta - rng.uniform(0, 7))), 690)) for _ in range(2))


def antipodal_pairs(rng, n):
    return rng.choice([0.3, 0.3 + np.pi], n) + rng.choice([0, 1e-8, 1e-3], n) * rng.normal(size=n), np.ones(n)


def tiny_masses(rng, n):
    return rng.uniform(0, 7, n), 10.0 ** rng.uniform(-300, 0, n)


def steep_everywhere(rng, n):
    steps = rng.normal(size=n) * 10 ** rng.uniform(-1, 2)
    return np.sort(rng.uniform(0, 2 * np.pi, n)), np.exp(-np.minimum(np.abs(np.cumsum(steps)), 690))


def empty_arcs(rng, n):
    theta = 2 * np.pi * np.arange(n) / n
    w = np.where((theta > 1) & (theta < 1.5) | (theta > 3) & (theta < 3.2), 1.0, 0.0)
    w[0] = 1e-300
    return theta, w


def one_atom(rng, n):
    w = np.zeros(n)
    w[rng.integers(n)] = rng.choice([1.0, 1e-300])
    return 2 * np.pi * np.arange(n) / n, w


def coincident(rng, n):
    return np.where(np.arange(n) < n // 2, 1.234, 4.0), rng.uniform(0.1, 1, n)


def nearly_uniform(rng, n):
    theta = 2 * np.pi * np.arange(n) / n
    return theta, 1 + 1e-3 * np.cos(3 * theta)


STATES = [uniform, clusters, mixture_on_a_mesh, antipodal_pairs, tiny_masses, steep_everywhere, empty_arcs, one_atom, coincident, nearly_uniform]


def exact(attention, y, w, x):
    """log Z, m and the covariance in 40 digits."""
    with mpmath.workdps(40):
        q = [mpmath.mpf(attention.beta) * mpmath.fsum(mpmath.mpf(attention.A[r, k]) * mpmath.mpf(x[k]) for k in range(2)) for r in range(2)]
        rough = np.log(np.maximum(w, 1e-320)) + y @ np.array([float(v) for v in q])
        near = np.flatnonzero((w > 0) & (rough > rough[w > 0].max() - 90))
        score = [mpmath.log(mpmath.mpf(w[j])) + q[0] * mpmath.mpf(y[j, 0]) + q[1] * mpmath.mpf(y[j, 1]) for j in near]
        top = max(score)
        g = [mpmath.exp(s - top) for s in score]
        total = mpmath.fsum(g)
        mean = [mpmath.fsum(a * mpmath.mpf(y[j, k]) for a, j in zip(g, near, strict=True)) / total for k in range(2)]
        gap = [[mpmath.mpf(y[j, k]) - mean[k] for k in range(2)] for j in near]
        covariance = [[mpmath.fsum(a * d[k] * d[l] for a, d in zip(g, gap, strict=True)) / total for l in range(2)] for k in range(2)]
        return top + mpmath.log(total), mean, np.array(covariance, dtype=float)


@pytest.mark.parametrize("tol", [1e-6, 1e-10, 1e-12])
@pytest.mark.parametrize("state", STATES)
def test_the_promise_is_kept_and_the_bound_is_above_the_error(state, tol):
    rng = np.random.default_rng([STATES.index(state), int(-np.log10(tol))])
    for _ in range(7):
        n = int(rng.choice([1, 2, 20, 150, 600]))
        theta, w = state(rng, n)
        w = np.where(w.sum() > 0, w, 1.0)
        beta = 0.0 if rng.uniform() < 0.05 else 10 ** rng.uniform(-2, 6)
        attention = mf.Attention(random_matrix(rng), EYE, EYE, beta)
        # 0.3 +- pi/2 sees the antipodal pair at an exact tie
        y, x = CIRCLE.points(theta), CIRCLE.points(np.concatenate([rng.uniform(0, 7, int(rng.choice([1, 40, 400]))), [0.3 + np.pi / 2, 0.3 - np.pi / 2]]))
        log_z, mean, error = Blocks(attention, y, x, tol).evaluate(w)
        assert (error <= tol).all()
        for i in (0, len(x) - 2, len(x) - 1):
            exact_z, exact_mean, _ = exact(attention, y, w, x[i])
            # 8 eps |log Z| is the conditioning of a number given by its rounded logarithm
            assert abs(log_z[i] - exact_z) <= error[i] + 8 * EPS * abs(exact_z)
            assert max(abs(mean[i, k] - exact_mean[k]) for k in range(2)) <= error[i]


@pytest.mark.parametrize("beta", [0.0, 1.0, 30.0, 1e3, 1e6])
def test_many_points_in_any_order(beta):
    """Arcs with enough points for proxies on both sides; the direct sum is accurate in m at every beta."""
    rng = np.random.default_rng(1)
    y, x = CIRCLE.points(rng.uniform(0, 7, 6000)), CIRCLE.points(rng.uniform(0, 7, 3000))
    w = rng.uniform(size=6000)
    attention = mf.Attention([[2.0, 0.3], [-1.0, 0.1]], EYE, EYE, beta)
    rows = np.arange(0, 3000, 30)
    expected = Direct(attention, y, x).evaluate(w, rows)[1]
    for tol in (1e-6, 1e-12):
        _, mean, error = Blocks(attention, y, x, tol).evaluate(w)
        assert (error <= tol).all()
        assert (np.abs(mean[rows] - expected).max(axis=1) <= error[rows] + 1e-14).all()  # 1e-14: round-off of the direct sum


def test_few_rows_agree_with_all():
    rng = np.random.default_rng(2)
    x = CIRCLE.points(rng.uniform(0, 7, 2000))
    w = rng.uniform(size=2000)
    blocks = Blocks(mf.Attention.identity(2, 50.0), x, x, 1e-10)
    log_z, mean, _ = blocks.evaluate(w)
    rows = rng.permutation(2000)[:100]
    few_z, few_mean, error = blocks.evaluate(w, rows)
    assert (error <= 1e-10).all()
    # each is within tol, by other stations
    np.testing.assert_allclose(few_z, log_z[rows], rtol=0, atol=2e-10)
    np.testing.assert_allclose(few_mean, mean[rows], rtol=0, atol=2e-10)


def test_the_order_of_the_points_and_duplicates_do_not_matter():
    rng = np.random.default_rng(3)
    theta, w = rng.uniform(0, 7, 500), rng.uniform(size=500)
    attention, x = mf.Attention.identity(2, 300.0), CIRCLE.points(np.linspace(0, 6, 50))
    plain = Blocks(attention, CIRCLE.points(theta), x, 1e-12).evaluate(w)[1]
    order = rng.permutation(500)
    shuffled = Blocks(attention, CIRCLE.points(theta[order]), x, 1e-12).evaluate(w[order])[1]
    doubled = Blocks(attention, CIRCLE.points(np.repeat(theta, 2)), x, 1e-12).evaluate(np.repeat(w / 2, 2))[1]
    np.testing.assert_allclose(shuffled, plain, rtol=0, atol=2e-12)
    np.testing.assert_allclose(doubled, plain, rtol=0, atol=2e-12)


@pytest.mark.parametrize("state", STATES)
def test_covariance(state):
    """beta |A| |error| <= tol (1 + beta |A| trace): what the derivative of the velocity needs, also where the covariance is tiny."""
    rng = np.random.default_rng([5, STATES.index(state)])
    for tol in (1e-6, 1e-10, 1e-12):
        theta, w = state(rng, 300)
        attention = mf.Attention(random_matrix(rng), EYE, EYE, 10 ** rng.uniform(0, 6))
        y, x = CIRCLE.points(theta), CIRCLE.points(np.append(rng.uniform(0, 7, 30), 0.3 + np.pi / 2))
        strength = attention.beta * np.linalg.norm(attention.A, 2)
        log_z, mean, covariance, error = Blocks(attention, y, x, tol).moments(w)
        assert (error <= tol).all()
        for i in (0, 30):
            exact_z, exact_mean, exact_covariance = exact(attention, y, w, x[i])
            assert abs(log_z[i] - exact_z) <= error[i] + 8 * EPS * abs(exact_z)
            assert max(abs(mean[i, k] - exact_mean[k]) for k in range(2)) <= error[i]
            assert strength * np.abs(covariance[i] - exact_covariance).max() <= tol * (1 + strength * np.trace(exact_covariance))


def test_sources_lighter_than_the_rounding_of_the_mean_are_not_dropped():
    """A bump so sharp that it is balanced against the kernel: in its tail the winning source of an arc has e^-80 of the arc's mass."""
    theta = 2 * np.pi * np.arange(300) / 300
    x = CIRCLE.points(theta)
    for sharpness in np.linspace(2e4, 6e4, 9):
        w = np.exp(-np.minimum(sharpness * (1 - np.cos(theta - 4.05)), 700))
        attention = mf.Attention.identity(2, 6350.0)
        _, mean, error = Blocks(attention, x, x, 1e-10).evaluate(w)
        expected = Direct(attention, x, x).evaluate(w, np.arange(300))[1]
        assert (np.abs(mean - expected).max(axis=1) <= error + 1e-14).all()


def test_the_tilt_is_not_limited_by_the_rounding_of_coordinates():
    """Two neighbours at the end of an arc, seen sideways at beta |A| = 1e7: log Z is near 0, so its conditioning hides nothing."""
    rng = np.random.default_rng(8)
    attention = mf.Attention(10 * EYE, EYE, EYE, 1e6)
    w = np.array([1e-200, 1.0, 1.0])
    for _ in range(10):
        start = rng.uniform(0.2, 1.2)
        y, x = CIRCLE.points(start + np.array([-3.5e-4, 0.0, 1e-10])), CIRCLE.points([start + np.pi / 2 + 1e-7 * rng.normal()])
        log_z, _, error = Blocks(attention, y, x, 1e-12).evaluate(w)
        exact_z, _, _ = exact(attention, y, w, x[0])
        assert error[0] < 1e-13
        assert abs(log_z[0] - exact_z) <= error[0] + 8 * EPS * abs(exact_z)


def test_results_do_not_depend_on_threads_or_repetition():
    rng = np.random.default_rng(4)
    y = CIRCLE.points(rng.uniform(0, 7, 110_000))
    w = rng.uniform(size=len(y))
    blocks = Blocks(mf.Attention.identity(2, 1e3), y, y, 1e-8)
    threads = numba.get_num_threads()
    try:
        results = []
        for count in (1, min(2, threads), 1):
            numba.set_num_threads(count)
            results.append(blocks.evaluate(w))
    finally:
        numba.set_num_threads(threads)
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_out_of_reach_the_bound_says_so():
    y = CIRCLE.points(np.linspace(0, 6, 4000))
    error = Blocks(mf.Attention.identity(2, 1e3), y, y, 1e-14).evaluate(np.ones(4000))[2]
    assert (error > 1e-14).all()
    assert (error < 1e-11).all()


def test_points_off_the_circle_are_accounted_for():
    """Particles may leave the circle by 1e-9; the proxies lie on it, and the bound must know."""
    rng = np.random.default_rng(6)
    y = CIRCLE.points(rng.uniform(0, 7, 3000)) * (1 + rng.uniform(-1e-9, 1e-9, (3000, 1)))
    attention = mf.Attention.identity(2, 100.0)
    rows = np.arange(40)
    _, mean, error = Blocks(attention, y, y, 1e-6).evaluate(np.ones(3000), rows)
    expected = Direct(attention, y, y).evaluate(np.ones(3000), rows)[1]
    assert (np.abs(mean - expected).max(axis=1) <= error).all()
    assert (error <= 1e-6).all()
    assert Blocks(attention, y, y, 1e-12).evaluate(np.ones(3000))[2].min() > 1e-10


def test_a_bound_of_the_interpolation_error():
    """Against the worst error found on a fine grid, for tilts along both axes."""
    for tilt, radius, p in [(5.0, 0.2, 10), (40.0, 0.05, 16), (2.0, 0.25, 8), (0.0, 0.25, 8), (1400.0, 0.0014, 14)]:
        nodes = radius * np.cos(np.pi * (np.arange(p) + 0.5) / p)
        fine = radius * np.linspace(-1, 1, 401)
        weights = (-1.0) ** np.arange(p) * np.sin(np.pi * (np.arange(p) + 0.5) / p)
        basis = weights / (fine[:, None] - nodes + 1e-300)
        basis /= basis.sum(axis=1, keepdims=True)
        worst = 0.0
        for angle in np.linspace(0, 2 * np.pi, 13):
            h = tilt * np.array([np.cos(angle), np.sin(angle)])

            def tame(delta, h=h):
                w = np.stack([np.sin(delta), np.cos(delta) - 1])
                return np.concatenate([[np.ones_like(delta)], w]) * np.exp(h @ w)

            worst = max(worst, np.abs(tame(nodes) @ basis.T - tame(fine)).max())
        bound = float(interpolation_error(p, tilt, radius))
        assert worst <= bound <= 1000 * worst  # what the ellipse loses costs two nodes
        assert np.abs(basis).sum(axis=1).max() <= lebesgue(p)


def test_the_reach_of_an_ellipse():
    rho = 3.0
    circle = np.exp(1j * np.linspace(0, 2 * np.pi, 2001))
    delta = 0.25 * 0.5 * (rho * circle + 1 / (rho * circle))
    w = np.sqrt(np.abs(np.sin(delta)) ** 2 + np.abs(np.cos(delta) - 1) ** 2)
    assert w.max() <= ellipse_reach(rho, 0.25) <= 1.2 * w.max()
