"""The pruned sums against the sum over all pairs and against 40 digits, on the states the equation visits."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mfpde as mf
from mfpde.attention.direct import EPS, Direct
from mfpde.attention.exp2 import ERROR, exp2
from mfpde.attention.tree import Tree, cap_tree
from mfpde.compiled import compiled

SPHERE = mf.Sphere()
MESH = SPHERE.mesh(2562)
X = MESH.centres
CENTRES = SPHERE.retract(np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.2], [-0.5, 0.8, -0.3]]))
MATRICES = {
    "identity": np.eye(3),
    "general": np.array([[1.3, 0.2, 0.0], [-0.1, 0.8, 0.1], [0.0, 0.3, 0.5]]),
    "singular": np.diag([3.0, 0.2, 0.0]),
    "reflection": np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]]),
}


def head(A, beta):
    d = len(A)
    return mf.Attention(A, np.eye(d), np.eye(d), beta)


def state(name, x=X):
    """Weights on the points x: what the equation starts from, passes through and ends in."""
    rng = np.random.default_rng(7)
    if name == "uniform":
        w = np.ones(len(x))
    elif name == "clusters":
        w = sum(kappa * np.exp(kappa * (x @ c - 1)) for c, kappa in zip(CENTRES, (60.0, 300.0, 900.0), strict=True))
    elif name == "atoms":
        w = np.zeros(len(x))
        for c in CENTRES:
            w[np.argsort(x @ c)[-3:]] = 1.0
    elif name == "one":
        w = np.where(x @ CENTRES[0] > 0.9, np.exp(60 * (x @ CENTRES[0] - 1)), 0.0)
    elif name == "antipodal":
        w = np.zeros(len(x))
        w[[np.argmax(x @ CENTRES[1]), np.argmin(x @ CENTRES[1])]] = 1.0
    elif name == "ridge":
        w = np.exp(-700 * (x @ SPHERE.retract(np.array([0.3, -0.5, 0.8]))) ** 2)
    elif name == "wild":
        w = np.exp(rng.uniform(-300, 0, len(x)))
    else:
        w = np.eye(len(x))[17]
    return w / w.sum()


STATES = ["uniform", "clusters", "atoms", "one", "antipodal", "ridge", "wild", "single"]


def check(attention, sources, targets, weights, tol=1e-10):
    """The promise, at every target, and the honesty of the bound that is returned."""
    rows = np.arange(len(targets))
    log_z, mean, error = Tree(attention, sources, targets, tol).evaluate(weights, rows)
    exact_z, exact_mean, reach = Direct(attention, sources, targets).evaluate(weights, rows)
    assert (error <= tol).all()
    conditioning = 8 * EPS * np.maximum(np.abs(exact_z), 1.0)
    assert (np.abs(log_z - exact_z) <= error + reach + conditioning).all()
    assert (np.abs(mean - exact_mean) <= (error + reach)[:, None]).all()


@pytest.mark.parametrize("matrix", MATRICES)
@pytest.mark.parametrize("beta", [0.0, 1e-3, 1.0, 10.0, 100.0, 1e3, 1e4, 1e6])
def test_tree_is_the_sum_over_all_pairs(beta, matrix):
    attention = head(MATRICES[matrix], beta)
    for name in STATES:
        check(attention, X, X[::7], state(name))


@pytest.mark.parametrize("matrix", ["identity", "general"])
@pytest.mark.parametrize("beta", [100.0, 1e4, 1e6])
@pytest.mark.parametrize("name", ["clusters", "atoms", "wild", "antipodal"])
def test_tree_against_forty_digits(beta, matrix, name):
    weights = state(name)
    attention = head(MATRICES[matrix], beta)
    # the midpoint of two clusters, where their scores tie: the hardest target; a point inside a cluster; anywhere
    targets = SPHERE.retract(np.stack([CENTRES[0] + CENTRES[1], CENTRES[1] + CENTRES[2], CENTRES[1], np.array([0.3, 0.9, -0.4])]))
    log_z, mean, error = Tree(attention, X, targets, 1e-10).evaluate(weights, np.arange(len(targets)))
    carried = np.flatnonzero(weights)
    with mpmath.workdps(40):
        A = mpmath.matrix(attention.A.tolist())
        for i, x in enumerate(targets):
            z = mpmath.mpf(beta) * (A * mpmath.matrix(x.tolist()))
            plain = weights[carried].astype(object)  # only terms that can count, judged in double precision
            scores = np.log(weights[carried]) + beta * (X[carried] @ attention.A @ x if matrix == "identity" else X[carried] @ (attention.A @ x))
            near = scores > scores.max() - 80
            terms = [
                (mpmath.mpf(w) * mpmath.exp(sum(z[k] * mpmath.mpf(y[k]) for k in range(3))), y) for w, y in zip(plain[near], X[carried][near], strict=True)
            ]
            Z = mpmath.fsum(t for t, _ in terms)
            exact = [mpmath.fsum(t * mpmath.mpf(y[k]) for t, y in terms) / Z for k in range(3)]
            assert abs(mpmath.mpf(log_z[i]) - mpmath.log(Z)) <= error[i] + 8 * EPS * abs(mpmath.log(Z))
            assert max(abs(mpmath.mpf(mean[i, k]) - exact[k]) for k in range(3)) <= error[i] <= 1e-10


@pytest.mark.parametrize("beta", [1e4, 1e5, 1e6])
def test_far_ties_do_not_lose_the_mean(beta):
    """Two far clusters whose scores agree to a few units of round-off: an error beta * eps in a score would move m by as much."""
    rng = np.random.default_rng(3)
    y = SPHERE.retract(rng.normal(size=(200, 3)))
    targets = SPHERE.retract(y[:100] + y[100:])  # |<x, y> - <x, y'>| is a few eps
    weights = rng.uniform(0.5, 1.0, 200)
    for k in range(0, 100, 10):
        pair = np.zeros(200)
        pair[[k, k + 100]] = weights[[k, k + 100]]
        check(head(np.eye(3), beta), y, targets[k : k + 1], pair)


CLUSTERS = st.lists(st.tuples(st.integers(0, 641), st.floats(0, 1e4), st.floats(-200, 0)), min_size=1, max_size=4)


@settings(deadline=None, max_examples=25)
@given(CLUSTERS, st.floats(0, 1e6), st.sampled_from(sorted(MATRICES)), st.sampled_from([1e-2, 1e-6, 1e-10, 1e-12, 1e-13]))
def test_any_clusters_any_beta_any_tolerance(bumps, beta, matrix, tol):
    x = SPHERE.mesh(642).centres
    weights = sum(np.exp(log_mass + kappa * (x @ x[centre] - 1)) for centre, kappa, log_mass in bumps)
    check(head(MATRICES[matrix], beta), x, x[::3], weights, tol)


@pytest.mark.parametrize("beta", [1.0, 100.0, 1e4, 1e6])
def test_scattered_and_coincident_sources(beta):
    rng = np.random.default_rng(11)
    widths = np.array([0.5, 0.1, 1e-3, 1e-6, 0.0])
    y = SPHERE.retract(np.concatenate([SPHERE.retract(rng.normal(size=3)) + width * rng.normal(size=(600, 3)) for width in widths]))
    weights = np.exp(rng.uniform(-300, 0, len(y)))
    weights[::7] = 0.0
    check(head(MATRICES["general"], beta), y, y[::11], weights)


@pytest.mark.parametrize("beta", [1.0, 100.0, 1e4, 1e6])
def test_on_the_circle(beta):
    circle = mf.Circle()
    x = circle.mesh(1000).centres
    weights = np.exp(50 * (x[:, 0] - 1)) + 0.3 * np.exp(400 * (x @ circle.points(2.0) - 1))
    check(head(np.array([[1.0, 0.3], [-0.2, 0.7]]), beta), x, x[::3], weights)


@pytest.mark.parametrize("size", [1, 2, 3, 63, 64, 65, 129])
def test_any_number_of_points(size):
    rng = np.random.default_rng(size)
    x, y = (SPHERE.retract(rng.normal(size=(n, 3))) for n in (size, 130 - size))
    check(head(MATRICES["general"], 30.0), y, x, rng.uniform(size=len(y)))


def test_the_truncation_bound_is_kept_and_nearly_sharp():
    """At small beta, where leaves are small beside the kernel, what is lost is a sizable part of the bound: a factor forgotten in it would show."""
    x = SPHERE.mesh(10242).centres
    attention, weights, rows = head(np.eye(3), 3.0), state("clusters", x), np.arange(0, len(x), 10)
    exact_z, exact_mean, _ = Direct(attention, x, x[rows]).evaluate(weights, np.arange(len(rows)))
    for tol in (1e-2, 1e-4, 1e-6, 1e-8):
        log_z, mean, error = Tree(attention, x, x, tol).evaluate(weights, rows)
        lost = np.maximum(np.abs(np.expm1(log_z - exact_z)), np.abs(mean - exact_mean).max(axis=1))
        assert (lost <= error).all()
        assert error.max() <= tol
        assert (lost / error).max() > 0.05  # measured .2


def test_pruning_leaves_what_the_kernel_sees():
    x = SPHERE.mesh(10242).centres
    tree = Tree(head(np.eye(3), 1e3), x, x, 1e-10)
    tree.evaluate(state("uniform", x), np.arange(len(x)))
    # a disc of radius sqrt(2 (25 + 5)/beta) holds 1.5 % of the sphere; leaves of 40 points on both sides, radius .07, widen it to 13 %
    assert tree.pairs < 0.16 * len(x) ** 2


def test_rows_are_independent_of_each_other():
    attention, weights = head(MATRICES["general"], 300.0), state("clusters")
    tree = Tree(attention, X, X, 1e-10)
    log_z, mean, error = tree.evaluate(weights, np.arange(len(X)))
    rows = np.random.default_rng(2).choice(len(X), 57, replace=False)
    some_z, some_mean, some_error = tree.evaluate(weights, rows)
    np.testing.assert_array_equal(some_z, log_z[rows])
    np.testing.assert_array_equal(some_mean, mean[rows])
    np.testing.assert_array_equal(some_error, error[rows])


def test_repeatable_and_scale_invariant():
    attention, weights, rows = head(np.eye(3), 50.0), state("clusters"), np.arange(len(X))
    tree = Tree(attention, X, X, 1e-10)
    first, second, scaled = (tree.evaluate(w, rows) for w in (weights, weights, 1e-200 * weights))
    np.testing.assert_array_equal(first[1], second[1])
    np.testing.assert_allclose(scaled[1], first[1], atol=1e-10)
    np.testing.assert_allclose(scaled[0], first[0] + np.log(1e-200), atol=1e-10)


def test_four_dimensions_are_refused():
    x = np.eye(4)
    with pytest.raises(mf.InputError, match="three dimensions"):
        Tree(mf.Attention.identity(4, 1.0), x, x, 1e-10)


@pytest.mark.parametrize("size", [1, 5, 64, 1000])
def test_caps_hold_their_points(size):
    rng = np.random.default_rng(size)
    x = SPHERE.retract(rng.normal(size=(size, 3)) * [1.0, 0.1, 0.01])
    tree = cap_tree(x, leaf=8)
    np.testing.assert_array_equal(np.sort(tree.order), np.arange(size))
    np.testing.assert_array_equal(tree.points.T, x[tree.order])
    assert (np.diff(tree.first[tree.leaves]) <= 8).all()
    for q in range(len(tree.first)):
        y = tree.points[:, tree.first[q] : tree.last[q]].T
        assert (y @ tree.centre[q] >= tree.cosine[q] - 4 * EPS).all()
        assert (np.linalg.norm(y - tree.centre[q], axis=1) <= tree.radius[q]).all()
        for z in rng.normal(size=(5, 3)) * 100:  # the bound of the module's text
            t = z @ tree.centre[q] / np.linalg.norm(z)
            theta, alpha = np.arccos(t), np.arctan2(tree.sine[q], tree.cosine[q])
            assert (y @ z).max() <= np.linalg.norm(z) * np.cos(max(theta - alpha, 0)) + 1e-6  # arccos loses 1e-8 near 1


def test_power_of_two():
    @compiled(fastmath={"contract", "reassoc", "nsz", "arcp"})
    def table(e, out):
        for i in range(e.size):
            out[i] = exp2(e[i])

    e = np.concatenate([np.linspace(-3, 3, 10001), np.linspace(-999.9, 999.9, 2001), np.arange(-999.0, 1000.0)])
    out = np.empty_like(e)
    table(e, out)
    assert np.abs(out / np.exp2(e) - 1).max() <= ERROR
    low = np.array([-1000.0, -1001.5, -1e10, -1e300])
    table(low, out[:4])
    assert (out[:4] <= 2.0**-999).all()
    assert (out[:4] > 0).all()
