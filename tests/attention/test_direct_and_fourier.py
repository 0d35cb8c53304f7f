"""The attention sums against 40 digits, and the fast ways against the slow one, on the states the equation visits."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import mfpde as mf
from mfpde.attention.fourier import Circulant, Spectral, conformal_parts, grid_offset, is_conformal

CIRCLE = mf.Circle()
EPS = np.finfo(float).eps
GENERAL = np.array([[1.1, 0.4], [-0.3, 0.8]])
MATRICES = {
    "identity": np.eye(2),
    "rotation": 1.3 * np.array([[np.cos(1), -np.sin(1)], [np.sin(1), np.cos(1)]]),
    "reflection": 0.7 * np.array([[np.cos(1), np.sin(1)], [np.sin(1), -np.cos(1)]]),
    "general": GENERAL,
    "singular": np.array([[1.0, 2.0], [0.5, 1.0]]),
    "zero": np.zeros((2, 2)),
}


def states(cells: int) -> dict[str, np.ndarray]:
    """Cell masses: uniform, three bumps, near-Diracs with empty arcs, an antipodal pair, one cell, nearly uniform, tiny masses."""
    mesh = CIRCLE.mesh(cells)
    pair = np.zeros(cells)
    pair[[3, 3 + cells // 2]] = 0.5
    one = np.zeros(cells)
    one[cells // 3] = 1.0
    dirac = np.zeros(cells)
    for centre, width, mass in ((0.1, 3, 0.5), (0.4, 1, 0.3), (0.7, 5, 0.2)):
        i = int(centre * cells)
        dirac[i : i + width] = mass / width
    uniform = mf.initial.uniform(CIRCLE).cell_masses(mesh)
    return {
        "uniform": uniform,
        "clusters": mf.initial.von_mises_mixture([0.5, 2.2, 4.4], [200, 80, 500], [5, 3, 2]).cell_masses(mesh),
        "near-Dirac": dirac,
        "antipodal pair": pair,
        "one cell": one,
        "nearly uniform": uniform * (1 + 1e-9 * np.cos(3 * np.arange(cells))),
        "tiny masses": dirac + 1e-300,
    }


def exact(attention, sources, target, weights):
    """log Z and m in 60 digits: scores reach 1e6 and their differences must keep 20 digits."""
    with mpmath.workdps(60):
        x = [mpmath.mpf(float(c)) for c in target]
        query = [mpmath.mpf(attention.beta) * sum(mpmath.mpf(float(attention.A[r, k])) * x[k] for k in range(2)) for r in range(2)]
        Z, M = mpmath.mpf(0), [mpmath.mpf(0)] * 2
        for y, w in zip(sources[weights > 0], weights[weights > 0], strict=True):
            term = mpmath.mpf(float(w)) * mpmath.exp(query[0] * mpmath.mpf(float(y[0])) + query[1] * mpmath.mpf(float(y[1])))
            Z, M = Z + term, [M[k] + term * mpmath.mpf(float(y[k])) for k in range(2)]
        return mpmath.log(Z), [M[k] / Z for k in range(2)]


@pytest.mark.parametrize("beta", [0.0, 1.0, 20.0, 50.0, 1e2, 1e4, 1e6])
@pytest.mark.parametrize("matrix", ["identity", "general"])
def test_promise_against_forty_digits(beta, matrix):
    tol, mesh = 1e-10, CIRCLE.mesh(128)
    attention = mf.Attention(MATRICES[matrix], np.eye(2), np.eye(2), beta)
    operator = mf.attention.plan(attention, CIRCLE, mesh, tol=tol)
    for weights in states(128).values():
        log_z, mean = operator.evaluate(weights)
        assert np.isfinite(log_z).all()
        assert np.linalg.norm(mean, axis=1).max() <= 1 + 1e-14
        for i in (0, 17, 67, 100):
            log_exact, m_exact = exact(attention, mesh.centres, mesh.centres[i], weights)
            assert abs(float(mpmath.expm1(mpmath.mpf(log_z[i]) - log_exact))) <= max(tol, 8 * EPS * abs(log_z[i]))
            assert max(abs(float(mean[i, k] - m_exact[k])) for k in range(2)) <= tol


@pytest.mark.parametrize("beta", [1e4, 1e6])
def test_ties_of_far_clusters_do_not_suffer_from_large_scores(beta):
    """A target between two antipodal atoms: the scores are about +-1e-7, sums of terms of size beta; m must still be right to 1e-14."""
    sources = CIRCLE.points([0.3, 0.3 + np.pi])
    weights = np.array([0.4, 0.6])
    targets = CIRCLE.points(0.3 + np.pi / 2 + np.array([0.0, 1e-7, -3e-7, 1e-6, 2e-5]))
    attention = mf.Attention.identity(2, beta)
    _, mean = mf.attention.plan(attention, CIRCLE, sources, targets, method="direct").evaluate(weights)
    for target, m in zip(targets, mean, strict=True):
        _, m_exact = exact(attention, sources, target, weights)
        assert max(abs(float(m[k] - m_exact[k])) for k in range(2)) < 1e-14


@pytest.mark.parametrize("cells", [63, 64, 257, 1000])
@pytest.mark.parametrize("matrix", list(MATRICES))
@pytest.mark.parametrize("beta", [0.0, 1.0, 30.0, 1e3])
def test_transforms_keep_their_certificate(cells, matrix, beta):
    """Where the bound is finite it is never below the error; and auto keeps its promise everywhere, cell to cell, face and point."""
    tol, mesh = 1e-10, CIRCLE.mesh(cells)
    attention = mf.Attention(MATRICES[matrix], np.eye(2), np.eye(2), beta)
    points = CIRCLE.points(np.random.default_rng(cells).uniform(0, 2 * np.pi, 50))
    for targets in (mesh.centres, mesh.face_centres, points):
        slow = mf.attention.plan(attention, CIRCLE, mesh, targets, method="direct")
        best = mf.attention.plan(attention, CIRCLE, mesh, targets, tol=tol)
        fast = mf.attention.plan(attention, CIRCLE, mesh, targets, method="fft").ladder[0]
        for weights in states(cells).values():
            log_z, mean = slow.evaluate(weights)
            rows = np.arange(len(targets))
            z, m, error = fast.evaluate(weights, rows)
            sure = error < 1e-3
            if sure.any():
                relative = np.abs(np.expm1(z[sure] - log_z[sure])) - 8 * EPS * np.abs(log_z[sure])
                assert (relative <= error[sure]).all()
                assert (np.abs(m[sure] - mean[sure]).max(axis=1) <= error[sure]).all()
            z, m = best.evaluate(weights)
            assert (np.abs(np.expm1(z - log_z)) <= np.maximum(tol, 8 * EPS * np.abs(log_z))).all()
            assert np.abs(m - mean).max() <= tol
            assert sum(best.tiers.values()) == len(targets)


def test_a_plain_transform_is_refused_where_it_is_wrong():
    """Three sharp clusters at beta = 100: the FFT sum is not even positive in the voids, and the certificate says so."""
    mesh = CIRCLE.mesh(1024)
    weights = states(1024)["clusters"]
    operator = mf.attention.plan(mf.Attention.identity(2, 100.0), CIRCLE, mesh, method="fft")
    with pytest.raises(mf.ToleranceError, match="miss their tolerance"):
        operator.evaluate(weights)
    _, _, error = operator.ladder[0].evaluate(weights, np.arange(1024))
    _, right = mf.attention.plan(operator.attention, CIRCLE, mesh, method="direct").evaluate(weights)
    _, wrong, _ = operator.ladder[0].evaluate(weights, np.arange(1024))
    assert np.mean(~(np.abs(wrong - right).max(axis=1) < 1e-6)) == pytest.approx(0.18, abs=0.02)
    assert np.mean(error > 1e-6) > 0.18


def test_the_certificate_can_fail(monkeypatch):
    """With a bound that promises too much, wrong values pass: the test above would see it."""
    mesh = CIRCLE.mesh(1024)
    weights = states(1024)["clusters"]
    attention = mf.Attention.identity(2, 100.0)
    monkeypatch.setattr("mfpde.attention.fourier.transform_error", lambda size: 1e-30)
    _, mean, error = mf.attention.plan(attention, CIRCLE, mesh, method="fft").ladder[0].evaluate(weights, np.arange(1024))
    _, right = mf.attention.plan(attention, CIRCLE, mesh, method="direct").evaluate(weights)
    trusted = error < 1e-10
    assert np.abs(mean - right)[trusted].max() > 1e-3


@pytest.mark.parametrize("matrix", list(MATRICES))
def test_conformal_split_rebuilds_the_matrix(matrix):
    A = MATRICES[matrix]
    p, alpha, q, gamma = conformal_parts(A)
    R = np.array([[np.cos(alpha), -np.sin(alpha)], [np.sin(alpha), np.cos(alpha)]])
    S = np.array([[np.cos(gamma), -np.sin(gamma)], [-np.sin(gamma), -np.cos(gamma)]])
    assert np.abs(p * R + q * S - A).max() < 1e-15
    assert is_conformal(A) == (matrix not in ("general", "singular"))


def test_grids_are_recognised_and_the_cheapest_transform_is_taken():
    mesh = CIRCLE.mesh(300)
    assert grid_offset(mesh.centres) == pytest.approx(np.pi / 300)
    assert grid_offset(mesh.centres[::-1]) is None
    assert grid_offset(CIRCLE.points(np.random.default_rng(0).random(300))) is None
    plan = lambda A, targets: mf.attention.plan(mf.Attention(A, np.eye(2), np.eye(2), 5.0), CIRCLE, mesh, targets, method="fft").ladder[0]
    assert isinstance(plan(np.eye(2), mesh.face_centres), Circulant)
    assert isinstance(plan(GENERAL, None), Spectral)
    assert isinstance(plan(np.eye(2), CIRCLE.points([0.0, 1.0])), Spectral)


def test_closed_form_of_von_mises_laws():
    """m(x) = A_2(R) w / R with w = beta A x + c e (oracle O11), through a periodic trapezoid rule."""
    from scipy.special import ive

    beta, c, angle = 6.0, 3.0, 0.7
    law = mf.initial.von_mises_mixture([angle], c)
    mesh, targets = CIRCLE.mesh(200), CIRCLE.points(np.linspace(0, 6, 40))
    attention = mf.Attention(GENERAL, np.eye(2), np.eye(2), beta)
    log_z, mean = mf.attention.plan(attention, CIRCLE, mesh, targets).evaluate(law.density(mesh.centres) * mesh.volumes)
    w = beta * targets @ GENERAL.T + c * CIRCLE.points(angle)
    R = np.linalg.norm(w, axis=1)
    assert np.abs(mean - (ive(1, R) / ive(0, R) / R)[:, None] * w).max() < 1e-11
    assert np.abs(log_z - (np.log(ive(0, R)) + R - np.log(ive(0, c)) - c)).max() < 1e-11


def test_covariance_is_the_derivative_of_the_mean():
    rng = np.random.default_rng(4)
    sources, weights, beta, step = CIRCLE.points(rng.uniform(0, 6, 100)), rng.random(100), 40.0, 1e-5
    attention = mf.Attention(GENERAL, np.eye(2), np.eye(2), beta)
    theta = np.linspace(0, 6, 20)
    mean = lambda angle: mf.attention.plan(attention, CIRCLE, sources, CIRCLE.points(angle)).evaluate(weights)[1]
    _, _, covariance = mf.attention.plan(attention, CIRCLE, sources, CIRCLE.points(theta)).moments(weights)
    tangent = CIRCLE.points(theta + np.pi / 2)
    slope = beta * np.einsum("nij,jk,nk->ni", covariance, GENERAL, tangent)
    difference = (mean(theta + step) - mean(theta - step)) / (2 * step)
    assert np.abs(slope - difference).max() < 1e-6  # step^2 beta^2


@pytest.mark.parametrize("weights", [np.full(64, np.nan), np.r_[-1.0, np.ones(63)], np.zeros(64), np.ones(63), np.r_[np.inf, np.ones(63)]])
def test_bad_weights_are_named(weights):
    operator = mf.attention.plan(mf.Attention.identity(2, 1.0), CIRCLE, CIRCLE.mesh(64))
    with pytest.raises(mf.InputError):
        operator.evaluate(weights)


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        ({"tol": 1e-15}, "out of reach"),
        ({"tol": np.nan}, "out of reach"),
        ({"method": "ftt"}, "Did you mean 'fft'"),
        ({"targets": [[2.0, 0.0]]}, "does not lie on"),
    ],
)
def test_bad_plans_are_named(change, fact):
    with pytest.raises(mf.InputError, match=fact):
        mf.attention.plan(mf.Attention.identity(2, 1.0), CIRCLE, CIRCLE.mesh(64), **change)
