"""Convergence tables and the command line on the sphere."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

import mfpde as mf
from mfpde.cli import app
from mfpde.convergence import _on_coarser_sphere, l1_error

SPHERE = mf.Sphere()


def test_orders_are_in_the_cell_width():
    """L1 against the exact law; second order although the number of cells grows by four."""
    problem, method = mf.cases.sphere_mobius(slope=0.5, t_end=0.5)
    table = mf.converge(problem, method, [600, 2600], reference=mf.cases.exact_law("sphere_mobius", problem), error=l1_error)
    assert table.levels.tolist() == [642, 2562]
    assert 1.4 < table.fitted_order < 2.5
    W1 = mf.converge(problem, method, [162, 642], reference=mf.cases.exact_law("sphere_mobius", problem))
    assert 1.6 < W1.fitted_order < 2.6


def test_masses_move_to_coarser_meshes():
    """Mass and first moment stay; the masses of a smooth law are those of the coarse cells to second order."""
    law = mf.initial.fisher_mixture([[0.6, 0, 0.8]], 3.0)
    errors = []
    for cells in (162, 642):
        coarse, fine, finest = (SPHERE.mesh(n) for n in (cells, 4 * cells - 6, 16 * cells - 30))
        masses = _on_coarser_sphere(law.cell_masses(finest), coarse)
        assert masses.sum() == pytest.approx(1, abs=1e-13)
        once = _on_coarser_sphere(law.cell_masses(fine), coarse)
        np.testing.assert_allclose(once @ coarse.centres, law.cell_masses(fine) @ fine.centres, atol=0.05)
        errors.append(np.abs(masses - law.cell_masses(coarse)).sum())
    assert errors[0] / errors[1] > 3  # observed 3.2


def test_a_table_against_itself():
    problem, method = mf.cases.sphere_growth(t_end=0.2, amplitude=0.5)
    table = mf.converge(problem, method, [42, 162, 642])
    assert len(table.errors) == 2
    assert table.fitted_order > 1


def test_levels_with_one_mesh_are_refused():
    problem, method = mf.cases.sphere_mobius()
    with pytest.raises(mf.InputError, match="same mesh"):
        mf.converge(problem, method, [128, 256, 512])


def test_command_line():
    runner = CliRunner()
    listed = runner.invoke(app, ["cases"])
    assert listed.exit_code == 0
    assert "sphere_concentration" in listed.output
    table = runner.invoke(app, ["converge", "sphere_mobius", "t_end=0.2", "--levels", "42,162"])
    assert table.exit_code == 0, table.output
    assert "fitted order" in table.output


def test_a_run_folder_holds_pictures_and_distances(tmp_path):
    folder = tmp_path / "run"
    result = CliRunner().invoke(app, ["run", "sphere_concentration", "beta=5", "cells=42", "t_end=0.3", "output.times=3", "-o", str(folder), "--quiet"])
    assert result.exit_code == 0, result.output
    names = {path.name for path in folder.iterdir()}
    assert {"density.png", "snapshots.png", "distances.csv", "summary.txt", "run.json"} <= names
