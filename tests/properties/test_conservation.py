"""Mass, positivity and energy, over long runs."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

import mfpde as mf
from mfpde.errors import NumericalError

CIRCLE = mf.Circle()
GENERAL = mf.Attention([[1.1, 0.4], [-0.3, 0.8]], np.eye(2), [[0.9, -0.5], [0.3, 0.6]], 20.0)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("attention", [mf.Attention.identity(2, 4.0), GENERAL], ids=["identity", "general"])
def test_mass_after_ten_thousand_steps(attention, order):
    """Clusters, a Dirac, empty arcs: mass to 1e-13 and never a negative cell."""
    mesh = CIRCLE.mesh(64)
    masses = mf.initial.von_mises_mixture([1.0, 3.0], [50, 3000]).cell_masses(mesh) * 0.7
    masses[40] += 0.3
    masses[50:60] = 0.0
    masses /= masses.sum()
    scheme = mf.FiniteVolume(cells=64, order=order).prepare(mf.Problem(attention, CIRCLE, mf.initial.uniform(CIRCLE), 1e6))
    state = scheme.initial()._replace(arrays={"masses": masses})
    for _ in range(10_000):
        state = scheme.advance(state)
    assert abs(state.arrays["masses"].sum() - masses.sum()) <= 1e-13
    assert scheme.statistics()["smallest mass"] >= 0
    assert np.isfinite(state.arrays["masses"]).all()


@pytest.mark.parametrize("beta", [4.0, 10.0, 30.0])
def test_energy_rises_while_clusters_are_wider_than_four_cells(beta):
    """V = A = I: at every step. Afterwards falls stay below 1e-7 relative."""
    law = mf.initial.fourier([0.1 + 0.05j, 0.12j, 0.05])
    problem = mf.Problem(mf.Attention.identity(2, beta), CIRCLE, law, 8.0)
    scheme = mf.FiniteVolume(cells=256).prepare(problem)
    state = scheme.initial()
    energies, widths = [], []
    while state.time < problem.t_end:
        measure = scheme.measure(state, state, state.time)
        energies.append(mf.diagnostics.energy(measure, problem))
        found = mf.diagnostics.clusters(measure)
        widths.append(min((cluster.width for cluster in found), default=np.inf) / measure.mesh.spacing)
        state = scheme.advance(state)
    rise, wide = np.diff(energies), np.array(widths[1:]) > 4
    assert wide.sum() > 50
    assert (rise[wide] > 0).all()
    assert (rise > -1e-7 * np.abs(energies[1:])).all()


def test_energy_identity():
    """dE/dt = int Z |v|^2 dmu (oracle O8), by central differences along a fine run; error falls with the mesh."""
    law = mf.initial.fourier([0.1 + 0.05j, 0.12j, 0.05])
    problem = mf.Problem(mf.Attention.identity(2, 6.0), CIRCLE, law, 1.0)
    errors = []
    for cells in (64, 128, 256):
        times = np.array([0.5 - 1e-3, 0.5, 0.5 + 1e-3])
        run = mf.solve(problem, mf.FiniteVolume(cells=cells), save_at=times, observe=[mf.diagnostics.energy, mf.diagnostics.dissipation])
        energy, dissipation = run.observed["energy"], run.observed["dissipation"]
        errors.append(abs((energy[2] - energy[0]) / 2e-3 / dissipation[1] - 1))
    assert errors[-1] < 1e-3
    assert np.log2(errors[0] / errors[-1]) / 2 > 1.6  # order of the scheme: 2


def test_a_rough_flow_is_refused_or_right_never_silently_clipped():
    """Alternating full and empty cells at beta = 1e4: mass and sign hold, or a NumericalError says so."""
    masses = np.tile([2.0, 0.0], 64) / 128
    scheme = mf.FiniteVolume(cells=128).prepare(mf.Problem(mf.Attention.identity(2, 1e4), CIRCLE, mf.initial.uniform(CIRCLE), 1.0))
    state = scheme.initial()._replace(arrays={"masses": masses})
    with contextlib.suppress(NumericalError):
        while state.time < 1:
            state = scheme.advance(state)
    assert state.arrays["masses"].min() >= 0
    assert state.arrays["masses"].sum() == pytest.approx(1, abs=1e-13)
