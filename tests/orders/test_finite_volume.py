"""Orders of the finite-volume schemes against exact laws, and the density where schemes like to spike."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ive

import mfpde as mf
from mfpde import exact

CIRCLE = mf.Circle()
R0 = 0.3


def poisson_run(cells: int, order: int, times) -> mf.Trajectory:
    problem = mf.Problem(mf.Attention.identity(2, 0.0), CIRCLE, mf.initial.poisson(R0), max(times))
    return mf.solve(problem, mf.FiniteVolume(cells=cells, order=order), save_at=times)


def w1_to_poisson(measure: mf.Measure, t: float) -> float:
    """W1 to the exact law, whose cell masses on a mesh 16 times finer leave an error of 1/256 of ours."""
    fine = CIRCLE.mesh(16 * len(measure))
    law = exact.poisson_law(R0, t)
    return mf.wasserstein(measure, mf.Measure(fine.centres, law.cell_masses(fine), fine), CIRCLE, p=1)


@pytest.mark.parametrize(("order", "bound", "least", "most"), [(1, 2.5e-3, 0.9, 1.1), (2, 1e-5, 1.8, 2.2)])
def test_poisson_law_is_reached_at_the_order_of_the_scheme(order, bound, least, most):
    cells = [256, 512, 1024]
    errors = [w1_to_poisson(poisson_run(n, order, [2.0]).final, 2.0) for n in cells]
    slope = -np.polyfit(np.log(cells), np.log(errors), 1)[0]
    assert errors[-1] <= bound  # observed 1.5e-3 and 7.7e-6
    assert least <= slope <= most  # observed 1.00 and 2.00


@pytest.mark.parametrize(("order", "bound"), [(1, 1e-2), (2, 1e-3)])
def test_density_at_the_repeller_has_no_spike(order, bound):
    """At the repelling point a cell of a plain donor scheme receives and never gives: its density is wrong by 8 times itself."""
    final = poisson_run(1024, order, [6.0]).final
    ratio = final.weights / exact.poisson_law(R0, 6.0).cell_masses(final.mesh)
    assert np.abs(ratio[510:514] - 1).max() <= bound  # observed 4.0e-3 and 5.7e-5


GROWTH = [(1.0, 1, 512), (4.0, 2, 512), (9.0, 4, 512), (100.0, 14, 2048)]


def growth(beta: float, k: int, cells: int, order: int, value: float = 1.0, turn: float = 0.0, t_end: float = 1.0) -> complex:
    """Complex rate of mode k on the uniform law: log of the ratio of its amplitudes, phase included."""
    problem, _ = mf.cases.growth(beta=beta, mode=k, value=value, turn=turn, t_end=t_end)
    run = mf.solve(problem, mf.FiniteVolume(cells=cells, order=order))
    first, last = (measure.weights @ np.exp(-1j * k * measure.angles()) for measure in run.measures)
    return np.log(last / first) / t_end


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("value", [1.0, -1.0])
@pytest.mark.parametrize(("beta", "k", "cells"), GROWTH)
def test_modes_grow_about_the_uniform_law_at_the_known_rate(beta, k, cells, value, order):
    """lambda_k = +-(k^2 / beta) I_k / I_0; observed relative errors 1.6e-5 to 1.3e-4."""
    rate = value * k**2 / beta * ive(k, beta) / ive(0, beta)
    assert growth(beta, k, cells, order, value) == pytest.approx(rate, rel=1e-3)


@pytest.mark.parametrize("beta", [4.0, 9.0])
def test_the_error_of_the_growth_rate_falls_like_h_squared(beta):
    k = {4.0: 2, 9.0: 4}[beta]
    rate = k**2 / beta * ive(k, beta) / ive(0, beta)
    errors = [abs(growth(beta, k, cells, 2) - rate) for cells in (128, 256, 512)]
    slope = -np.polyfit(np.log([128, 256, 512]), np.log(errors), 1)[0]
    assert slope == pytest.approx(2, abs=0.25)


@pytest.mark.parametrize(("beta", "k", "turn"), [(4.0, 2, 0.7), (9.0, 4, -0.4), (9.0, 3, 2.0)])
def test_a_rotated_score_makes_waves_travel(beta, k, turn):
    """Complex rates: growth and phase speed, for A a rotation."""
    problem, _ = mf.cases.growth(beta=beta, mode=k, turn=turn)
    rate = exact.growth_rate(problem.attention, k)
    assert abs(growth(beta, k, 512, 2, turn=turn) - rate) <= 1e-3 * abs(rate)


@pytest.mark.parametrize("order", [1, 2])
def test_zero_temperature_density_is_reached_at_the_order_of_the_scheme(order):
    """beta = inf from the uniform law, M symmetric: the closed form (1/2 pi) / (cosh gs - sinh gs cos 2 theta); L1 error of cell masses."""
    problem, _ = mf.cases.zero_temperature(gap=1.0, angle=0.4, t_end=1.5)
    cells = [512, 1024, 2048]  # below, the limiter's clipping of the two peaks still shows: orders 1.6, 1.8
    law = mf.initial.from_density(lambda x: 1 / (np.cosh(1.5) - np.sinh(1.5) * np.cos(2 * (CIRCLE.angles(x) - 0.4))), CIRCLE)
    errors = []
    for n in cells:
        final = mf.solve(problem, mf.FiniteVolume(cells=n, order=order)).final
        errors.append(np.abs(final.weights - law.cell_masses(final.mesh)).sum())
    slope = -np.polyfit(np.log(cells), np.log(errors), 1)[0]
    assert slope == pytest.approx(order, abs=0.15)


def test_zero_temperature_with_a_clock_of_its_own_for_every_token():
    """General A, non-normal drift: against the exact density by back-tracing, order 2."""
    from mfpde.methods.zero_temperature import density

    attention = mf.Attention([[1.3, 0.2], [-0.1, 0.7]], np.eye(2), [[1.0, 0.4], [0.1, 0.5]], np.inf)
    problem = mf.Problem(attention, CIRCLE, mf.initial.fourier([0.1, 0.1j]), 1.5)
    errors = []
    for n in (128, 256, 512):
        final = mf.solve(problem, mf.FiniteVolume(cells=n)).final
        errors.append(np.abs(final.density() - density(problem, 1.5, final.points)) @ final.mesh.volumes)
    assert -np.polyfit(np.log([128, 256, 512]), np.log(errors), 1)[0] == pytest.approx(2, abs=0.2)
