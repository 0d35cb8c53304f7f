"""Particles against exact maps, and against the density."""

from __future__ import annotations

import numpy as np
import pytest

import mfpde as mf
from mfpde import exact

CIRCLE = mf.Circle()


def test_nodes_follow_the_moebius_map_to_ten_digits():
    """beta = 0, any smooth law (oracle O1b): every token sits where three ordinary differential equations say."""
    law = mf.initial.fourier([0.3, 0.1j, 0.05])
    problem = mf.Problem(mf.Attention.identity(2, 0.0), CIRCLE, law, 3.0)
    run = mf.solve(problem, mf.Particles(n=256, placement="nodes", tol=1e-12))
    solution = exact.watanabe_strogatz(law, 3.0)
    start = law.nodes(256).points
    assert np.abs(run.final.points - solution(start)).max() < 1e-10  # observed 4e-14 at tol 1e-13


def test_one_token_follows_the_value_matrix_alone():
    """One atom: m = x, so x' = P_x V x for every beta, Q, K: x_t = e^{tV} x_0 / |.|."""
    from scipy.linalg import expm

    V = np.array([[1.0, 0.7], [-0.2, 0.4]])
    problem = mf.Problem(mf.Attention([[2, 1], [0, 1]], np.eye(2), V, 50.0), CIRCLE, mf.initial.atoms([[0.6, 0.8]], [1.0]), 2.0)
    x = expm(2.0 * V) @ [0.6, 0.8]
    assert np.abs(mf.solve(problem, mf.Particles(placement="nodes")).final.points[0] - x / np.linalg.norm(x)).max() < 1e-9


def test_two_atoms_close_at_the_known_speed():
    """Equal masses, V = A = I: the closed form for their distance (oracle O7)."""
    problem = mf.Problem(mf.Attention.identity(2, 3.0), CIRCLE, mf.initial.atoms(CIRCLE.points([0.0, np.arccos(-0.3)]), [0.5, 0.5]), 2.5)
    final = mf.solve(problem, mf.Particles(placement="nodes", tol=1e-12)).final
    gap = CIRCLE.distance(*final.points)
    assert 1 - np.cos(gap) == pytest.approx(1.191470247, abs=1e-9)  # golden number: s0 = 1.3, t = 2.5


@pytest.mark.parametrize("p", [2])
def test_random_particles_approach_the_density_like_the_square_root(p):
    """W2 between n random tokens and the density falls like n^{-1/2}, here averaged over seeds, down to the floor of the mesh."""
    problem = mf.Problem(mf.Attention.identity(2, 2.0), CIRCLE, mf.initial.von_mises_mixture([0.5], 2.0), 0.5)
    density = mf.solve(problem, mf.FiniteVolume(cells=1024)).final
    sizes = [100, 400, 1600]
    distances = []
    for n in sizes:
        runs = [mf.solve(problem, mf.Particles(n=n, seed=seed, tol=1e-6)).final for seed in range(8)]
        distances.append(np.mean([mf.wasserstein(run, density, CIRCLE, p=p) for run in runs]))
    slope = -np.polyfit(np.log(sizes), np.log(distances), 1)[0]
    assert slope == pytest.approx(0.5, abs=0.15)  # 8 seeds: the mean is known to about 10 %


def test_layers_converge_to_the_flow_at_order_one():
    """L layers of a transformer: explicit Euler and normalisation."""
    problem = mf.Problem(mf.Attention([[1.1, 0.3], [-0.2, 0.9]], np.eye(2), [[1.0, 0.2], [0.0, 0.6]], 5.0), CIRCLE, mf.initial.poisson(0.4), 1.0)
    flow = mf.solve(problem, mf.Particles(n=64, placement="nodes")).final.points
    depths = [8, 16, 32, 64]
    errors = []
    for depth in depths:
        run = mf.solve(problem, mf.Particles(n=64, placement="nodes", steps=depth))
        assert run.stats["steps"] == depth
        errors.append(np.abs(run.final.points - flow).max())
    assert -np.polyfit(np.log(depths), np.log(errors), 1)[0] == pytest.approx(1, abs=0.1)


def test_golden_moments():
    """Spectral reference values for V = A = I, beta = 1, T = 1 (two resolutions agree to 1e-13)."""
    law = mf.initial.fourier([0.175, 0.1j, -0.075])
    final = mf.solve(mf.Problem(mf.Attention.identity(2, 1.0), CIRCLE, law, 1.0), mf.Particles(n=300, placement="nodes", tol=1e-12)).final
    theta = final.angles()
    moments = [final.weights @ np.exp(1j * k * theta) for k in (1, 2, 3)]
    expected = [0.269114676415 - 0.011331181685j, 0.046644563574 + 0.145408506531j, -0.074959974238 + 0.045004370308j]
    assert np.abs(np.array(moments) - expected).max() < 2e-11
