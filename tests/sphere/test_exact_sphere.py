"""Closed forms on the sphere against independent computations: particles, finite differences of the particle field."""

from __future__ import annotations

import numpy as np
import pytest

import mfpde as mf
from mfpde.cases.sphere import direction, turned
from mfpde.exact.sphere import axisymmetric_law, growth_rate, rapidity

SPHERE = mf.Sphere()
AXIS = direction(0.7, -1.0)


def test_axisymmetric_law_against_particles():
    """beta = 0 from nodes that integrate the law to round-off: moments of the exact density and of the particles agree."""
    problem, _ = mf.cases.sphere_mobius(t_end=1.0)
    cloud = mf.solve(problem, mf.Particles(n=400, placement="nodes", tol=1e-10)).final
    law = axisymmetric_law(problem.initial, AXIS, 1.0)
    fine = law.nodes(5000)
    np.testing.assert_allclose(cloud.mean, fine.mean, atol=1e-10)
    np.testing.assert_allclose((cloud.points * cloud.weights[:, None]).T @ cloud.points, (fine.points * fine.weights[:, None]).T @ fine.points, atol=1e-10)
    assert law.total == pytest.approx(1, rel=1e-10)


def test_rapidity_is_additive_in_time():
    law = mf.initial.fisher_mixture([AXIS], 2.0)
    later = axisymmetric_law(law, AXIS, 0.5)
    assert rapidity(law, AXIS, 0.5) + rapidity(later, AXIS, 0.7) == pytest.approx(rapidity(law, AXIS, 1.2), rel=1e-10)


def test_laws_without_the_axis_are_refused():
    with pytest.raises(mf.InputError, match="not symmetric about the axis"):
        rapidity(mf.initial.fisher_mixture([AXIS], 2.0), [0, 0, 1], 1.0)
    with pytest.raises(mf.InputError, match="belong to laws on the sphere"):
        rapidity(mf.initial.poisson(0.3), [1, 0], 1.0)


@pytest.mark.parametrize(("beta", "factor"), [(0.0, 1.0), (3.0, 1.0), (3.0, -0.7), (40.0, 0.5)])
@pytest.mark.parametrize("degree", [1, 2, 4])
def test_growth_rates_against_the_divergence_of_the_velocity(beta, factor, degree):
    """d/dt of the amplitude at time 0 is `int P_l (-div(rho v)) = int rho <grad P_l, v>`; rho by nodes, the field by the direct sum."""
    wave, slope = np.polynomial.legendre.Legendre.basis(degree), np.polynomial.legendre.Legendre.basis(degree).deriv()
    attention = mf.Attention(factor * np.eye(3), np.eye(3), 1.5 * np.eye(3), beta)
    nodes = mf.initial.uniform(SPHERE).nodes(1500)
    u = nodes.points @ AXIS
    rates = []
    for amplitude in (1e-4, -1e-4):
        weights = nodes.weights * (1 + amplitude * wave(u))
        v = mf.attention.plan(attention, SPHERE, nodes.points, tol=1e-13, method="direct").velocity(weights)
        rates.append(weights @ (slope(u) * (v @ AXIS)) / (nodes.weights @ wave(u) ** 2))
    assert (rates[0] - rates[1]) / 2e-4 == pytest.approx(growth_rate(attention, degree), rel=1e-6, abs=1e-9)


def test_growth_rates_of_the_literature():
    """A = V = I, beta = 3: two golden numbers; the fastest degree changes from 1 to 2 at beta = 1.8162."""
    np.testing.assert_allclose(growth_rate(mf.Attention.identity(3, 3.0), [1, 2]), [0.44775765999, 0.65672702004], rtol=1e-10)
    at = growth_rate(mf.Attention.identity(3, 1.8162), [1, 2])
    assert at[0] == pytest.approx(at[1], rel=1e-4)
    for wrong in (mf.Attention(np.diag([1, 2, 3]), np.eye(3), np.eye(3), 1.0), mf.Attention.identity(2, 1.0)):
        with pytest.raises(mf.InputError, match="multiple of the identity of R"):
            growth_rate(wrong, 1)
    with pytest.raises(mf.InputError, match="whole numbers"):
        growth_rate(mf.Attention.identity(3, 1.0), 1.5)


def test_rotations_are_rotations():
    for seed in range(5):
        Q = turned(seed)
        np.testing.assert_allclose(Q @ Q.T, np.eye(3), atol=1e-14)
        assert np.linalg.det(Q) == pytest.approx(1)
