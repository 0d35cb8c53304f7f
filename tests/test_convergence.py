"""Orders that are known, tables that can be read, and questions that are refused."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import mfpde as mf
from mfpde import exact
from mfpde.convergence import ConvergenceTable, converge, l1_error, max_error

CIRCLE = mf.Circle()


@dataclasses.dataclass(frozen=True)
class Blurred:
    """A method whose error is known: the exact Poisson law with the radius off by `size * cells^-order`."""

    cells: int = 64
    order: float = 2.0
    size: float = 0.5

    def prepare(self, problem):
        return BlurredScheme(self, problem)


class BlurredScheme:
    def __init__(self, method, problem):
        self.method, self.problem = method, problem

    def initial(self):
        from mfpde.methods.base import State

        return State(0.0, np.inf, {})

    def advance(self, state):
        return state._replace(time=self.problem.t_end)

    def measure(self, before, after, time):
        radius = exact.poisson_radius(0.3, time) - self.method.size * float(self.method.cells) ** -self.method.order
        mesh = CIRCLE.mesh(4096)  # the same for all levels: the only error is that of the radius
        return mf.Measure(mesh.centres, mf.initial.poisson(radius).cell_masses(mesh), mesh)

    def statistics(self):
        return {}


PROBLEM = mf.Problem(mf.Attention.identity(2, 0.0), CIRCLE, mf.initial.poisson(0.3), 1.0)
LAW = exact.poisson_law(0.3, 1.0)


@pytest.mark.parametrize(("order", "error"), [(1.0, None), (2.0, None), (1.0, l1_error), (3.0, l1_error), (2.0, max_error)])
def test_a_known_order_is_found(order, error):
    table = converge(PROBLEM, Blurred(order=order), [32, 64, 128], reference=LAW, error=error)
    # the law's derivative in the radius is not constant: relative 2 * .5/32 at the coarsest level of order 1. W1 adds the difference of two meshes, 1e-8
    assert table.orders == pytest.approx([order, order], abs=0.05)
    assert table.fitted_order == pytest.approx(order, abs=0.05)
    assert table.fitted_order_error < 0.03


def test_l1_is_the_integral_it_says():
    """Two Poisson laws cross twice: the L1 distance is a difference of their distribution functions."""
    radius = exact.poisson_radius(0.3, 1.0) - 0.5 / 32
    table = converge(PROBLEM, Blurred(order=1.0), [32, 64], reference=LAW, error=l1_error)

    def F(r, theta):  # mass of [-theta, theta]
        return 2 / np.pi * np.arctan((1 + r) / (1 - r) * np.tan(theta / 2))

    theta = np.linspace(0.01, 3, 100_000)
    crossing = np.max(np.abs(F(radius, theta) - F(exact.poisson_radius(0.3, 1.0), theta)))
    assert table.errors[0] == pytest.approx(2 * crossing, rel=1e-6)  # 4096 cells and 1e5 angles near a maximum


def test_self_comparison_sees_the_order_without_a_reference():
    table = converge(PROBLEM, Blurred(order=2.0), [16, 32, 64, 128])
    assert len(table.errors) == len(table.levels) == 3
    assert table.fitted_order == pytest.approx(2.0, abs=0.05)
    assert "the next level" in repr(table)


def test_finite_volume_on_the_poisson_law_reaches_its_orders():
    for order, expected in ((1, 1.0), (2, 2.0)):
        table = converge(PROBLEM, mf.FiniteVolume(order=order), [64, 128, 256], reference=LAW)
        assert table.size == "cells"
        assert table.fitted_order == pytest.approx(expected, abs=0.15)


def test_particles_on_random_places_have_order_one_half():
    table = converge(PROBLEM, mf.Particles(seed=3, tol=1e-6), [50, 200, 800, 3200], reference=LAW, p=2)
    assert table.size == "n"
    assert table.fitted_order == pytest.approx(0.5, abs=0.25)  # a random number: scatter about .1
    assert 0 < table.fitted_order_error < 0.3


def test_several_times_and_a_function_of_time():
    law_at = lambda t: exact.poisson_law(0.3, t)
    table = converge(PROBLEM, Blurred(order=1.0), [32, 64], reference=law_at, times=[0.0, 0.5, 1.0], error=max_error)
    single = converge(PROBLEM, Blurred(order=1.0), [32, 64], reference=LAW, error=max_error)
    assert (table.errors >= single.errors).all()
    assert "3 times up to t = 1" in repr(table)
    run = mf.solve(PROBLEM, Blurred(size=0.0), save_at=[0.5, 1.0])
    by_trajectory = converge(PROBLEM, Blurred(order=1.0), [32, 64], reference=run, times=[0.5, 1.0], error=max_error)
    by_function = converge(PROBLEM, Blurred(order=1.0), [32, 64], reference=law_at, times=[0.5, 1.0], error=max_error)
    assert by_trajectory.errors == pytest.approx(by_function.errors, rel=1e-9)


def test_references_of_every_kind():
    atoms = mf.initial.atoms([[1.0, 0.0]], [1.0])
    as_law = converge(PROBLEM, Blurred(), [64], reference=atoms)
    as_measure = converge(PROBLEM, Blurred(), [64], reference=mf.Measure([[1.0, 0.0]], [1.0]))
    assert as_law.errors[0] == as_measure.errors[0] > 0.3
    coarse = CIRCLE.mesh(1000)  # no common faces with 4096 cells
    other = mf.Measure(coarse.centres, LAW.cell_masses(coarse), coarse)
    table = converge(PROBLEM, Blurred(size=0.0), [64], reference=other, error=l1_error)
    # constant on 1000 cells against the law on 4096: |rho'| h^2 / 4 a cell at most, total variation 2 (max - min) = .9
    assert 0 < table.errors[0] < 0.9 * (2 * np.pi / 1000) / 2


def table_of(errors, levels=(32, 64, 128, 256)) -> ConvergenceTable:
    return ConvergenceTable("Method(cells=...)", "cells", "W1 to the truth at t = 1", np.array(levels), np.array(errors), np.full(len(errors), 0.25))


def test_fit_is_least_squares_with_its_standard_error():
    rng = np.random.default_rng(1)
    noise = 0.1 * rng.standard_normal(4)
    table = table_of(np.exp(noise) * np.array([32.0, 64, 128, 256]) ** -1.5)
    coefficients, covariance = np.polyfit(np.log(table.levels), np.log(table.errors), 1, cov="unscaled")
    residual = np.log(table.errors) - np.polyval(coefficients, np.log(table.levels))
    assert table.fitted_order == pytest.approx(-coefficients[0], rel=1e-12)
    assert table.fitted_order_error == pytest.approx(np.sqrt(covariance[0, 0] * residual @ residual / 2), rel=1e-12)


def test_tables_with_zero_errors_and_single_levels():
    table = table_of([1e-2, 0.0, 1e-4, 1e-5])
    assert np.isnan(table.orders[:2]).all()
    assert np.isfinite(table.orders[2])
    assert np.isfinite(table.fitted_order)
    lonely = table_of([1e-2], levels=(32,))
    assert lonely.orders.shape == (0,)
    assert np.isnan(lonely.fitted_order)
    assert np.isnan(lonely.fitted_order_error)
    assert "fitted order: none" in repr(lonely)
    two = table_of([1e-2, 1e-3], levels=(32, 64))
    assert np.isfinite(two.fitted_order)
    assert np.isnan(two.fitted_order_error)
    for each in (table, lonely, two):
        repr(each)
        each._repr_html_()


def test_a_table_prints_itself():
    assert repr(table_of([1e-2, 2.5e-3, 6.25e-4, 1.5625e-4])).splitlines() == [
        "Method(cells=...)",
        "W1 to the truth at t = 1",
        "cells       error  order  seconds",
        "   32  1.0000e-02            0.25",
        "   64  2.5000e-03  2.000     0.25",
        "  128  6.2500e-04  2.000     0.25",
        "  256  1.5625e-04  2.000     0.25",
        "fitted order: 2.000 +- 0.000",
    ]
    html = table_of([1e-2, 2.5e-3, 6.25e-4, 1.5625e-4])._repr_html_()
    assert html.count("<tr>") == 5
    assert "2.000" in html


@pytest.mark.parametrize("levels", [[], [64, 32], [64, 64], [64.5, 128], [0, 64], 64, [[32, 64]]])
def test_bad_levels_are_refused(levels):
    with pytest.raises(mf.InputError, match="increasing whole"):
        converge(PROBLEM, Blurred(), levels, reference=LAW)


@pytest.mark.parametrize("levels", [[64], [32, 64, 512]])
def test_a_self_comparison_needs_a_geometric_progression(levels):
    with pytest.raises(mf.InputError, match="geometric"):
        converge(PROBLEM, Blurred(), levels)


def test_other_bad_questions():
    with pytest.raises(mf.InputError, match="none of them"):
        converge(PROBLEM, object(), [32, 64])
    with pytest.raises(mf.InputError, match="final time only"):
        converge(PROBLEM, Blurred(), [32, 64], reference=LAW, times=[0.5, 1.0])
    with pytest.raises(mf.InputError, match="A reference is"):
        converge(PROBLEM, Blurred(), [32, 64], reference="exact")
    with pytest.raises(mf.InputError, match="no mesh"):
        converge(PROBLEM, mf.Particles(), [20], reference=LAW, error=l1_error)
    with pytest.raises(mf.InputError, match="no mesh"):
        converge(PROBLEM, Blurred(), [20], reference=mf.Measure([[1.0, 0.0]], [1.0]), error=max_error)
