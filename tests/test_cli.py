"""The command line: what it prints, what it writes, how it fails."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import mfpde as mf
from mfpde.cli import app


def run(*words: str):
    return CliRunner().invoke(app, list(words))


def test_cases_are_listed_with_their_keywords():
    result = run("cases")
    assert result.exit_code == 0
    for name in ("concentration", "poisson", "growth", "two_clusters", "zero_temperature", "handover", "gallery"):
        assert name in result.stdout
    assert "beta=100.0" in result.stdout


def test_info_names_versions():
    result = run("info")
    assert result.exit_code == 0
    assert mf.__version__ in result.stdout
    assert "numpy" in result.stdout


def test_a_run_fills_its_folder(tmp_path):
    folder = tmp_path / "out"
    result = run("run", "concentration", "cells=64", "t_end=2.0", "beta=20", "-o", str(folder))
    assert result.exit_code == 0, result.output
    names = {path.name for path in folder.iterdir()}
    assert {"run.json", "distances.csv", "summary.txt", "pde.npz", "particles.npz", "flow.npz", "density.png", "decay_W1.png", "decay_W2.png"} <= names
    meta = json.loads((folder / "run.json").read_text())
    assert meta["keywords"] == {"cells": 64, "t_end": 2.0, "beta": 20}
    assert meta["status"]["pde"] == "done"
    table = np.genfromtxt(folder / "distances.csv", delimiter=",", names=True, deletechars="")
    assert len(table) == 61
    assert mf.load(folder / "pde").final.mass == pytest.approx(1)
    for text in ("W1 in radians", "predicted", "Plateau", "mass drift"):
        assert text in result.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["out"]  # nothing half-written stays beside it


def test_an_occupied_folder_is_refused(tmp_path):
    (tmp_path / "kept").write_text("mine")
    result = run("run", "poisson", "-o", str(tmp_path))
    assert result.exit_code == 2
    assert "already holds" in result.output
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["run", "poissn"], "poisson"),
        (["run", "poisson", "cell=10"], "cells"),
        (["run", "poisson", "cells=ten"], "type int"),
        (["run", "poisson", "r"], "key=value"),
        (["run", "poisson", "r=0.1", "r=0.2"], "twice"),
        (["run", "poisson", "r=2.0"], "0 <= r < 1"),
        (["run", "growth", "beta=-1.0"], "beta"),
        (["run", "growth", "beta=nan"], "beta"),
        (["run", "poisson", "cells=2"], "4 cells"),
        (["run", "gallery", "spectrum=complx"], "complex"),
        (["converge", "poisson", "--levels", "a,b"], "levels"),
    ],
)
def test_bad_input_is_named_with_exit_code_2(words, hint, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run(*words)
    assert result.exit_code == 2
    assert hint in result.output
    assert "Traceback" not in result.output
    assert not list(tmp_path.iterdir())


def test_unknown_commands_are_usage_errors():
    assert run("frobnicate").exit_code == 2


def test_converge_prints_orders():
    result = run("converge", "poisson", "t_end=1.0", "--levels", "64,128,256")
    assert result.exit_code == 0, result.output
    assert "256" in result.stdout
