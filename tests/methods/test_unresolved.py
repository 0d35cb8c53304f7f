"""A fixed mesh says what it cannot resolve."""

from __future__ import annotations

import numpy as np
import pytest

import mfpde as mf
from mfpde.methods.unresolved import unresolved_clusters

CIRCLE = mf.Circle()


@pytest.mark.parametrize(("cells", "width", "count"), [(64, 0.05, 2), (64, 0.3, 0), (1024, 0.05, 0), (1024, 0.004, 2)])
def test_clusters_are_counted_when_narrower_than_three_cells(cells, width, count):
    mesh = CIRCLE.mesh(cells)  # a standard deviation of .05 is half a cell, or 8
    law = mf.initial.von_mises_mixture([0.01, 2.0], kappa=1 / width**2)
    found = unresolved_clusters(law.cell_masses(mesh), mesh)
    assert found.clusters == count
    assert found.mass == pytest.approx(count / 2, abs=1e-3)
    assert found.floor == pytest.approx(np.pi / cells * count / 2, rel=1e-2)


def test_a_smooth_law_has_none():
    mesh = CIRCLE.mesh(16)
    assert unresolved_clusters(np.full(16, 1 / 16), mesh).clusters == 0


def test_one_cell_of_a_sphere():
    mesh = mf.Sphere().mesh(642)
    masses = np.full(len(mesh), 0.5 / len(mesh))
    masses[100] += 0.5
    found = unresolved_clusters(masses, mesh)
    assert (found.clusters, found.mass > 0.5) == (1, True)


def test_the_result_says_so_and_names_the_way_out():
    problem, _ = mf.cases.two_clusters(beta=4.0, t_end=8.0)
    run = mf.solve(problem, mf.FiniteVolume(cells=64))
    assert run.status == "done-with-unresolved-clusters"
    assert "2 clusters" in run.message
    assert "Lagrangian" in run.message
    assert run.stats["unresolved clusters"] == 2
    assert run.stats["W1 floor"] == pytest.approx(np.pi / 64, rel=1e-2)
    early = mf.solve(mf.cases.two_clusters(beta=4.0, t_end=0.5)[0], mf.FiniteVolume(cells=512))
    assert (early.status, early.stats["unresolved clusters"]) == ("done", 0)
