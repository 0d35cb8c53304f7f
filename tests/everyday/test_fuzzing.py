"""Bad input of every kind: a named error and exit code 2, never a traceback, never a folder made or damaged."""

from __future__ import annotations

import os
import shutil
import warnings
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import mfpde.runs.experiment
from mfpde.cli import app
from mfpde.runs.config import resolve
from mfpde.runs.runfile import to_toml

MORE = int(os.environ.get("MFPDE_FUZZ", "1"))  # times as many examples, for a long search
QUIET = settings(deadline=None, suppress_health_check=list(HealthCheck))


def run(*words: str):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # overflow in absurd matrices
        return CliRunner().invoke(app, list(words))


def assert_named(result, *codes: int) -> None:
    """An expected exit code, and no exception but the exit itself."""
    assert result.exception is None or isinstance(result.exception, SystemExit), repr(result.exception)
    assert result.exit_code in codes, result.output
    assert "Traceback" not in result.output
    if result.exit_code == 2:
        assert result.output.strip()


@pytest.fixture
def dry(tmp_path, monkeypatch):
    """A working folder in which a run ends where the solving would begin."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(mfpde.runs.experiment, "run", lambda plan, folder, report: (None, "would run"))
    monkeypatch.setattr(mfpde.cli, "_conclude", lambda *words: None)
    return tmp_path


numbers = st.one_of(st.integers(-3, 40), st.floats(), st.sampled_from([10**400, -(10**400), 0.5, 1e-300, 1e300]))
texts = st.one_of(st.text(max_size=6), st.sampled_from(["uniform", "circle", "sphere", "FiniteVolume", "energy", "pde", "x.npz", "/", ""]))
leaves = st.one_of(numbers, texts, st.booleans())
values = st.recursive(leaves, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=2)), max_leaves=6)
KEYS = [
    "t_end", "geometry", "case", "keywords", "only", "attention", "attention.beta", "attention.Q", "attention.V", "attention.W_Q", "attention.weights",
    "initial", "initial.law", "initial.angles", "initial.kappa", "initial.weights", "initial.points", "initial.r", "initial.coefficients",
    "methods", "methods.a", "methods.a.method", "methods.a.cells", "methods.a.order", "methods.a.tol", "methods.b.method", "methods.b.n", "methods.b.seed",
    "methods.b.placement", "output", "output.times", "output.observe", "output.checkpoint_every", "nonsense", "attention.nonsense",
]  # fmt: skip
GOOD = {
    "t_end": 0.5,
    "attention": {"beta": 2.0, "V": [[1.0, 0.2], [0.0, 0.6]]},
    "initial": {"law": "von_mises_mixture", "angles": [0.5, 2.5], "kappa": 4.0},
    "methods": {"a": {"method": "FiniteVolume", "cells": 16}, "b": {"method": "Particles", "n": 10}},
}


def put(tables: dict, key: str, value) -> dict:
    """A copy of nested tables with one value changed."""
    first, _, rest = key.partition(".")
    inner = tables.get(first)
    return {**tables, first: put(inner if isinstance(inner, dict) else {}, rest, value) if rest else value}


def write(path: Path, tables: dict) -> None:
    path.write_text("\n".join(f"{to_toml(key)} = {to_toml(value)}" for key, value in tables.items()), encoding="utf-8", errors="surrogatepass")


@given(changes=st.lists(st.tuples(st.sampled_from(KEYS), values), min_size=1, max_size=3))
@settings(QUIET, max_examples=100 * MORE)
def test_changed_run_files(dry, changes):
    tables = GOOD
    for key, value in changes:
        tables = put(tables, key, value)
    write(dry / "p.toml", tables)
    assert_named(run("run", "p.toml", "-q"), 0, 2, 3)  # 3: a law too rough to integrate is a numerical failure
    assert [path.name for path in dry.iterdir()] == ["p.toml"]


@given(content=st.one_of(st.binary(max_size=60), st.text(max_size=60).map(lambda text: text.encode("utf-8", "surrogatepass"))))
@settings(QUIET, max_examples=60 * MORE)
def test_files_that_are_no_run_files(dry, content):
    (dry / "p.toml").write_bytes(content)
    assert_named(run("run", "p.toml", "-q"), 2)
    assert [path.name for path in dry.iterdir()] == ["p.toml"]


overrides = st.builds("{}={}".format, st.sampled_from([*KEYS, "beta", "cells", "r"]), st.one_of(values.map(repr), st.text(max_size=8)))


@given(words=st.lists(st.one_of(st.text(max_size=12), overrides), min_size=1, max_size=3))
@settings(QUIET, max_examples=100 * MORE)
def test_random_overrides(dry, words):
    assert_named(run("run", "poisson", "cells=16", "-q", "--", *words), 0, 2, 3)
    assert not list(dry.iterdir())


@given(word=st.text(max_size=10))
@settings(QUIET, max_examples=15 * MORE)
def test_random_names(dry, word):
    for command in ("run", "resume", "info", "compare", "report", "animate", "export"):
        assert_named(run(command, "--", word), 2, 0 if command == "info" else 2)
    assert not list(dry.iterdir())


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A finished run, and one that stopped in its first method."""
    home = tmp_path_factory.mktemp("folders")
    small = ["concentration", "beta=5", "cells=16", "t_end=0.3", "methods.particles.n=10", "methods.flow.nodes=16"]
    small += ["output.times=4", "output.checkpoint_every=0"]
    assert CliRunner().invoke(app, ["run", *small, "-o", str(home / "done"), "-q"]).exit_code == 0
    plan = mfpde.runs.experiment.prepare(resolve(small[0], small[1:]))
    steps = 0

    def stops(share, stage):
        nonlocal steps
        steps += 1
        if steps == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mfpde.runs.experiment.run(plan, home / "stopped", report=stops)
    return home


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != "lock"}


damages = st.one_of(
    st.just("remove"),
    st.floats(0, 1).map(lambda share: ("cut", share)),
    st.binary(max_size=40).map(lambda data: ("replace", data)),
    st.tuples(st.floats(0, 1), st.integers(1, 255)).map(lambda change: ("flip", *change)),
)


def damage(path: Path, how) -> None:
    data = path.read_bytes()
    if how == "remove":
        path.unlink()
    elif how[0] == "cut":
        path.write_bytes(data[: int(how[1] * len(data))])
    elif how[0] == "replace":
        path.write_bytes(how[1])
    elif data:
        place = min(int(how[1] * len(data)), len(data) - 1)
        path.write_bytes(data[:place] + bytes([data[place] ^ how[2]]) + data[place + 1 :])


@given(which=st.sampled_from(["done", "stopped"]), number=st.integers(0, 30), how=damages)
@settings(QUIET, max_examples=60 * MORE)
def test_damaged_folders(folders, tmp_path_factory, monkeypatch, which, number, how):
    folder = tmp_path_factory.mktemp("damaged") / "run"
    shutil.copytree(folders / which, folder)
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "lock")
    damage(files[number % len(files)], how)
    before = contents(folder)
    monkeypatch.setattr(mfpde.runs.experiment, "draw", lambda comparison: {})  # pictures take most of the time
    result = run("resume", str(folder), "-q")
    assert_named(result, 0, 2)
    after = contents(folder)
    if result.exit_code == 2:  # nothing that was there is lost; only the record may say that the attempt failed
        assert {name: data for name, data in before.items() if name != "run.json"}.items() <= after.items()
    elif which == "stopped":
        whole = contents(folders / "done")
        assert after["distances.csv"] == whole["distances.csv"]
        assert after["observables.csv"] == whole["observables.csv"]


@given(number=st.integers(0, 30), how=damages)
@settings(QUIET, max_examples=20 * MORE)
def test_looking_at_damaged_folders(folders, tmp_path_factory, number, how):
    folder = tmp_path_factory.mktemp("damaged") / "run"
    shutil.copytree(folders / "done", folder)
    files = sorted(path for path in folder.rglob("*") if path.suffix in (".json", ".toml", ".npz"))
    damage(files[number % len(files)], how)
    before = contents(folder)
    assert_named(run("export", str(folder), "--format", "csv", "-o", str(folder.parent / "out.csv")), 0, 2)
    assert contents(folder) == before
