"""Laws of moving cells on disk: their distribution function of fourth order comes back, not the quadrature alone."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

import mfpde as mf
from mfpde.cli import app
from mfpde.methods.cell_measure import CellMeasure
from mfpde.runs.experiment import read

CIRCLE = mf.Circle()
SMOOTH = mf.Problem(mf.Attention.identity(2, 6.0), CIRCLE, mf.initial.von_mises_mixture([0.0, 2.0], 40.0), 60.0)
ANGLES = np.linspace(0, 2 * np.pi, 1001)


def assert_same_law(law, other):
    assert type(law) is type(other)
    assert np.array_equal(law.weights, other.weights)
    if isinstance(law, CellMeasure):
        assert isinstance(other, CellMeasure)
        assert np.array_equal(law.cumulative(ANGLES), other.cumulative(ANGLES))
        assert np.array_equal(law.density_at(CIRCLE.points(ANGLES)), other.density_at(CIRCLE.points(ANGLES)))
    assert mf.wasserstein(law, other, CIRCLE, p=1) < 1e-15  # the same pieces, so 0 up to their sum


@pytest.fixture(scope="module")
def life():
    """Cells, cells with atoms among them, and atoms after a hand-over: all in one trajectory."""
    method = mf.Handover(mf.Lagrangian(cells=32, tol=1e-7), width=1e-2, influence=1e-3)
    run = mf.solve(SMOOTH, method, save_at=[0.0, 0.5, 2.0, 60.0])
    kinds = [type(law) for law in run.measures]
    assert kinds[:2] == [CellMeasure] * 2
    assert kinds[-1] is mf.Measure
    return run


def test_a_saved_trajectory_keeps_its_cells(life, tmp_path):
    loaded = mf.load(life.save(tmp_path / "life"))
    for law, other in zip(life.measures, loaded.measures, strict=True):
        assert_same_law(law, other)


def test_atoms_and_holes_among_cells_are_kept(tmp_path):
    law = mf.initial.von_mises_mixture([1.0], 500.0)
    run = mf.solve(mf.Problem(mf.Attention(np.eye(2), np.eye(2), np.diag([1.0, 0.5]), 10.0), CIRCLE, law, 16.0), mf.Lagrangian(cells=32, tol=1e-6))
    assert len(run.final.cells.atoms)  # all but the tails has become an atom at -0
    assert_same_law(run.final, mf.load(run.save(tmp_path / "run")).final)


def test_a_checkpoint_keeps_the_cells_of_what_was_saved(tmp_path):
    problem = mf.Problem(SMOOTH.attention, CIRCLE, SMOOTH.initial, 1.0)
    method, times = mf.Lagrangian(cells=32, tol=1e-6), [0.0, 0.3, 1.0]
    where = mf.Checkpoints(tmp_path, every=0)
    run = mf.solve(problem, method, save_at=times, checkpoints=where)
    kept = where.keeper(problem, method, np.array(times)).restore()
    for law, other in zip(run.measures, kept.measures, strict=True):
        assert_same_law(law, other)


def test_a_run_folder_keeps_them_and_draws_a_long_life_over_ln_t(tmp_path):
    folder = tmp_path / "life"
    words = ["staircase", "beta=5", "cells=32", "log_t_end=12", "methods.pde.width=0.01", "methods.pde.influence=0.01", "output.times=12"]
    result = CliRunner().invoke(app, ["run", *words, "methods.pde.first.tol=1e-6", "-o", str(folder), "-q"])
    assert result.exit_code == 0, result.output
    _, config, trajectories = read(folder)
    assert list(trajectories) == ["pde"]  # tokens would take a step of order one until t = e^6
    steps = np.diff(np.log(trajectories["pde"].times[1:]))
    assert np.ptp(steps) < 1e-9 * steps[0]
    assert trajectories["pde"].times[[0, -1]].tolist() == [0.0, config.problem().t_end]
    again = mf.solve(config.problem(), config.methods()["pde"], save_at=config.times())
    for law, other in zip(again.measures, trajectories["pde"].measures, strict=True):
        assert_same_law(law, other)
    assert {path.stem for path in folder.glob("*.png")} == {"cluster_tree", "energy_staircase", "snapshots"}  # no density over linear time
