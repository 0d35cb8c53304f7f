"""Zonal sums by transforms: against 40 digits, against the sum over all pairs, against von Mises-Fisher laws, and what happens where they fail."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import mfpde as mf
from mfpde.attention.direct import EPS, Direct
from mfpde.attention.harmonics import Harmonics, bandwidth, scaled_bessel
from mfpde.attention.tree import Tree

SPHERE = mf.Sphere()
X = SPHERE.mesh(2562).centres
CENTRES = SPHERE.retract(np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.2], [-0.5, 0.8, -0.3]]))
ROTATION = np.linalg.qr(np.random.default_rng(4).normal(size=(3, 3)))[0]
MATRICES = {
    "identity": np.eye(3),
    "rotation": 0.7 * ROTATION,
    "reflection": np.diag([1.0, 1.0, -1.0]),
    "general": np.array([[1.3, 0.2, 0.0], [-0.1, 0.8, 0.1], [0.0, 0.3, 0.5]]),
    "singular": np.diag([1.0, 0.2, 0.0]),
}


def head(A, beta):
    return mf.Attention(A, np.eye(3), np.eye(3), beta)


def smooth(x):
    return 1 + 0.4 * x[:, 0] - 0.3 * x[:, 1] * x[:, 2]


def clusters(x):
    return sum(kappa * np.exp(kappa * (x @ c - 1)) for c, kappa in zip(CENTRES, (60.0, 300.0, 900.0), strict=True))


def atoms(x):
    w = np.zeros(len(x))
    w[np.argmax(x @ CENTRES.T, axis=0)] = [0.2, 0.5, 0.3]
    return w


@pytest.mark.parametrize("t", [0.0, 1e-300, 1e-8, 0.3, 3.0, 20.0, 100.0, 1000.0])
def test_bessel_functions_to_forty_digits(t):
    degree = bandwidth(t)
    values = scaled_bessel(np.array([t]), degree)[:, 0]
    assert (2 * np.arange(degree + 1) + 1) @ values == pytest.approx(1, abs=1e-15 * degree)  # e^{t (cos - 1)} at cos = 1: nothing of weight is cut off
    with mpmath.workdps(40):
        for l in range(0, degree + 1, max(1, degree // 12)):
            z = mpmath.mpf(t)
            exact = mpmath.sqrt(mpmath.pi / (2 * z)) * mpmath.besseli(l + mpmath.mpf(0.5), z) * mpmath.exp(-z) if t > 0 else mpmath.mpf(l == 0)
            if exact > 1e-290:
                assert abs(values[l] / exact - 1) < 4e-15  # a product of l ratios; measured 1e-15
            else:
                assert values[l] < 2e-290


@pytest.mark.parametrize("density", [smooth, clusters, atoms])
@pytest.mark.parametrize("beta", [0.0, 1e-3, 1.0, 10.0, 60.0])
@pytest.mark.parametrize("matrix", MATRICES)
def test_bounds_are_kept_at_every_target(matrix, beta, density):
    attention = head(MATRICES[matrix], beta)
    weights, rows = density(X), np.arange(len(X))
    log_z, mean, error = Harmonics(attention, X, X, tol=1e-2).evaluate(weights, rows)  # so loose that the transforms are done, where they say little too
    exact_z, exact_mean, exact_error = Tree(attention, X, X, 1e-13).evaluate(weights, rows)
    served = np.isfinite(error)
    allowed = error + exact_error
    assert (np.abs(np.expm1(log_z - exact_z))[served] <= allowed[served]).all()
    assert (np.abs(mean - exact_mean).max(axis=1)[served] <= allowed[served]).all()
    if density is smooth or beta <= 1:
        assert error.max() <= 1e-10  # all targets are done
    if density is not smooth and beta == 60.0 and matrix in ("identity", "reflection"):
        assert 0 < np.mean(error <= 1e-10) < 1  # near the clusters only; a bound that lets everything pass would be none


def test_far_from_the_mass_nothing_is_promised():
    """One atom, beta = 60: at the antipode Z is e^-120 of the largest sum, and a transform returns noise there."""
    weights = np.eye(len(X))[5]
    attention = head(np.eye(3), 60.0)
    far = np.array([np.argmin(X @ X[5])])
    tier = Harmonics(attention, X, X, 1e-10)
    assert np.isinf(tier.evaluate(weights, far)[2]).all()
    assert np.isinf(tier.errors(tier.sums(weights, far)[:, 0], far)).all()  # also from the transform's own, wrong, Z


def test_transforms_are_not_done_for_a_few_targets(monkeypatch):
    """Three clusters, beta = 300: one target in twenty would pass, so the tier steps aside before it has cost anything."""
    tier = Harmonics(head(np.eye(3), 300.0), X, X, 1e-10)
    monkeypatch.setattr(tier, "sums", lambda w, rows: pytest.fail("no transform was called for"))
    assert np.isinf(tier.evaluate(clusters(X), np.arange(len(X)))[2]).all()


def product_nodes(polar, azimuthal):
    """Gauss-Legendre x trapezoid nodes on the sphere."""
    u, w = np.polynomial.legendre.leggauss(polar)
    phi = 2 * np.pi * np.arange(azimuthal) / azimuthal
    s = np.sqrt(1 - u**2)
    x = np.stack([np.outer(s, np.cos(phi)), np.outer(s, np.sin(phi)), np.outer(u, np.ones(azimuthal))], axis=-1).reshape(-1, 3)
    return x, np.repeat(w, azimuthal) * 2 * np.pi / azimuthal


@pytest.mark.parametrize("tier", ["harmonics", "tree"])
@pytest.mark.parametrize("matrix", ["identity", "general", "singular"])
def test_von_mises_fisher_laws(matrix, tier):
    """rho ~ e^{c <x, e>}: with w = beta A x + c e and R = |w|, Z = (sinh R/R) / (sinh c/c) and m = (coth R - 1/R) w/R."""
    beta, c = 8.0, 5.0
    attention = head(MATRICES[matrix], beta)
    x, quadrature = product_nodes(40, 80)  # exact to degree 79; the integrand's harmonics are below 1e-17 beyond 45
    density = np.exp(c * (x @ CENTRES[1] - 1)) * c / (2 * np.pi * -np.expm1(-2 * c))
    targets = SPHERE.retract(np.random.default_rng(1).normal(size=(200, 3)))
    made = Harmonics(attention, x, targets, 1e-10) if tier == "harmonics" else Tree(attention, x, targets, 1e-12)
    log_z, mean, error = made.evaluate(density * quadrature, np.arange(200))
    w = beta * targets @ attention.A.T + c * CENTRES[1]
    R = np.linalg.norm(w, axis=1)
    good = error < 1e-10
    assert good.mean() > (0.5 if tier == "harmonics" else 0.99)  # Z spans ten orders of magnitude
    exact_z = np.log(np.sinh(R) / R) - np.log(np.sinh(c) / c)
    exact_mean = ((1 / np.tanh(R) - 1 / R) / R)[:, None] * w
    assert (np.abs(np.expm1(log_z - exact_z)) <= error + 1e-13)[good].all()  # 1e-13: the quadrature's own round-off
    assert (np.abs(mean - exact_mean).max(axis=1) <= error + 1e-13)[good].all()


def test_poles_and_kernels_of_A():
    """Targets and sources at the poles of the coordinates, and a target with A x = 0, where the direction of A x means nothing."""
    poles = np.concatenate([np.eye(3), -np.eye(3)])
    x = np.concatenate([poles, X[::20]])
    for A in (np.eye(3), np.diag([1.0, 0.5, 0.0]), np.diag([0.0, 0.5, 1.0])):
        attention = head(A, 5.0)
        log_z, mean, error = Harmonics(attention, x, poles, 1e-10).evaluate(smooth(x), np.arange(6))
        exact_z, exact_mean, _ = Direct(attention, x, poles).evaluate(smooth(x), np.arange(6))
        assert error.max() < 1e-10
        assert (np.abs(log_z - exact_z) <= error).all()
        assert (np.abs(mean - exact_mean) <= error[:, None]).all()


def test_subsets_and_scales():
    tier, rows = Harmonics(head(MATRICES["general"], 4.0), X, X, 1e-10), np.random.default_rng(0).choice(len(X), 100, replace=False)
    log_z, mean, error = tier.evaluate(smooth(X), np.arange(len(X)))
    some_z, some_mean, some_error = tier.evaluate(1e-150 * smooth(X), rows)
    np.testing.assert_allclose(some_z, log_z[rows] + np.log(1e-150), atol=2 * error.max() + 1e3 * EPS)
    np.testing.assert_allclose(some_mean, mean[rows], atol=2 * error.max())
    np.testing.assert_allclose(some_error, error[rows], rtol=1e-6)


def test_a_transform_that_errs_is_caught(monkeypatch):
    """The bound is an estimate; a few targets are summed directly, and one contradiction withdraws every promise."""
    tier = Harmonics(head(np.eye(3), 4.0), X, X, 1e-10)
    clean = tier.sums
    monkeypatch.setattr(tier, "sums", lambda w, rows: clean(w, rows) + 1e-11)
    _, _, error = tier.evaluate(smooth(X), np.arange(len(X)))
    assert np.isinf(error).all()


def test_cost_model_prefers_transforms_where_the_kernel_is_wide():
    assert Harmonics.pays(head(np.eye(3), 10.0), 40962, 40962)
    assert Harmonics.pays(head(MATRICES["general"], 10.0), 163842, 163842)
    assert not Harmonics.pays(head(np.eye(3), 1e4), 40962, 40962)
    assert not Harmonics.pays(head(MATRICES["general"], 300.0), 40962, 40962)
    assert not Harmonics.pays(head(np.eye(3), 1.0), 642, 642)
