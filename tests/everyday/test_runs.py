"""Run files, run folders and the commands around them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import mfpde as mf
from mfpde.cli import app
from mfpde.runs.config import resolve

SMALL = ["poisson", "cells=32", "t_end=0.3", "methods.particles.n=20", "output.times=4"]
FILE = """
t_end = 0.5
[attention]
beta = 3.0
V = [[1.0, 0.2], [0.0, 0.6]]
[initial]
law = "von_mises_mixture"
angles = [0.5, 2.5]
kappa = [6.0, 2.0]
[methods.fine]
method = "FiniteVolume"
cells = 48
[methods.cells]
method = "Lagrangian"
cells = 32
[output]
times = [0.0, 0.1, 0.5]
"""


def run(*words: str):
    return CliRunner().invoke(app, list(words))


def arrays(path: Path) -> dict[str, bytes]:
    with np.load(path) as data:
        return {name: data[name].tobytes() for name in data.files if name != "meta"}  # meta holds the seconds it took


def test_a_folder_repeats_itself_bit_for_bit_wherever_it_is_run(tmp_path, monkeypatch):
    (tmp_path / "p.toml").write_text(FILE)
    assert run("run", str(tmp_path / "p.toml"), "-o", str(tmp_path / "one"), "-q").exit_code == 0
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    (tmp_path / "p.toml").unlink()  # the folder is enough
    result = run("run", str(tmp_path / "one" / "run.toml"), "-o", "two", "-q")
    assert result.exit_code == 0, result.output
    assert result.output == ""
    for name in ("fine.npz", "cells.npz"):
        assert arrays(tmp_path / "one" / name) == arrays(elsewhere / "two" / name)
    for name in ("run.toml", "distances.csv", "observables.csv"):
        assert (tmp_path / "one" / name).read_bytes() == (elsewhere / "two" / name).read_bytes()
    records = [json.loads((folder / "run.json").read_text()) for folder in (tmp_path / "one", elsewhere / "two")]
    assert records[0]["hash"] == records[1]["hash"]


def test_the_record_says_where_everything_comes_from(tmp_path):
    folder = tmp_path / "run"
    assert run("run", *SMALL, "-o", str(folder), "-q").exit_code == 0
    record = json.loads((folder / "run.json").read_text())
    assert record["state"] == "done"
    assert record["seeds"] == {"particles": 0}
    assert record["configuration"] == resolve(SMALL[0], SMALL[1:]).values
    assert record["hash"] == resolve(SMALL[0], SMALL[1:]).hash
    assert record["versions"]["numpy"] == np.__version__
    assert {"preparation", "pde", "particles", "distances", "pictures"} <= set(record["timings"])
    assert set(record["threads"]) <= {"numba", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"}
    text = (folder / "run.json").read_text()
    assert not any(os.environ[name] in text for name in ("HOME", "PATH") if len(os.environ.get(name, "")) > 8)  # no environment
    table = np.genfromtxt(folder / "observables.csv", delimiter=",", names=True, deletechars="")
    assert "pde_order_parameter" in table.dtype.names
    assert len(table) == 4


def test_origins_are_shown(tmp_path):
    (tmp_path / "p.toml").write_text(FILE)
    shown = run("info", "--show-config", str(tmp_path / "p.toml"), "attention.beta=4").stdout.splitlines()

    def origin(key: str) -> str:
        return next(line.split("  # ")[1] for line in shown if line.startswith(f"{key} = "))

    assert origin("attention.beta") == "command line"
    assert origin("attention.V").endswith("p.toml")
    assert origin("attention.Q") == "default"
    assert origin("methods.fine.tol") == "default"
    shown = run("info", "concentration", "beta=50").stdout
    assert "keywords.cells = 1024" in shown
    assert "case concentration" in shown
    assert "FiniteVolume(cells=1024" in shown


def test_methods_inside_methods():
    words = ["methods.pde.method=Handover", "methods.pde.first.cells=64", "methods.pde.width=1e-4"]
    config = resolve("two_clusters", words)
    assert config.methods()["pde"] == mf.Handover(mf.Lagrangian(cells=64), width=1e-4)
    assert config.origins["methods.pde.first.cells"] == "command line"
    first = resolve("two_clusters", [*words[:1], "methods.pde.first.method=FiniteVolume", "methods.pde.first.cells=32"]).methods()["pde"].first
    assert first == mf.FiniteVolume(cells=32)
    for word in ("methods.pde.first.cels=3", "methods.pde.first=3", "methods.pde.then.method=Particles"):
        with pytest.raises(mf.InputError):
            resolve("two_clusters", [words[0], word])


@pytest.mark.parametrize(
    "values", [["two_clusters", "methods.pde.method=Handover"], SMALL, ["zero_temperature"], ["gallery", "spectrum=repelling", "output.times=[0.0, 1e-3, 0.1]"]]
)
def test_a_resolved_file_resolves_to_itself(values, tmp_path):
    config = resolve(values[0], values[1:])
    (tmp_path / "again.toml").write_text(config.toml())
    again = resolve(str(tmp_path / "again.toml"))
    assert again.values == config.values
    assert again.hash == config.hash
    assert again.toml() == config.toml()


def test_weights_of_a_model_are_read_and_kept(tmp_path):
    rng = np.random.default_rng(1)
    W_Q, W_K = rng.standard_normal((2, 2, 5)).astype(np.float32)
    W_V = rng.standard_normal((2, 2)).astype(np.float32)
    np.savez(tmp_path / "head.npz", W_Q=W_Q, W_K=W_K, W_V=W_V, other=np.zeros(3))
    text = 't_end = 0.1\n[attention]\nbeta = 2\nweights = "head.npz"\n[initial]\nlaw = "uniform"\n'
    (tmp_path / "p.toml").write_text(text)
    config = resolve(str(tmp_path / "p.toml"))  # the file lies beside the run file, wherever one stands
    expected = mf.Attention.from_weights(W_Q, W_K, W_V, 2.0)
    head = config.problem().attention
    assert np.array_equal(head.A, expected.A)
    assert np.array_equal(head.V, expected.V)
    assert "head.npz" in config.origins["attention.W_Q"]
    (tmp_path / "head.npz").unlink()
    (tmp_path / "q.toml").write_text(config.toml())
    assert np.array_equal(resolve(str(tmp_path / "q.toml")).problem().attention.A, expected.A)
    stacked = rng.standard_normal((3, 2, 2))
    np.save(tmp_path / "stack.npy", stacked)
    head = resolve(str(tmp_path / "p.toml"), ["attention.weights=stack.npy"]).problem().attention
    assert np.array_equal(head.Q, stacked[0].T)
    assert np.array_equal(head.V, stacked[2].T)
    np.save(tmp_path / "v.npy", stacked[2])
    (tmp_path / "r.toml").write_text(
        't_end = 0.1\n[attention]\nbeta = 2\nW_Q = [[1, 0], [0, 1]]\nW_K = [[1, 0], [0, 1]]\nW_V = "v.npy"\n[initial]\nlaw = "uniform"\n'
    )
    assert np.array_equal(resolve(str(tmp_path / "r.toml")).problem().attention.V, stacked[2].T)


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["output.tmes=3"], "times"),
        (["methods.fine.cels=3"], "cells"),
        (["methods.fine.method=FiniteVolum"], "FiniteVolume"),
        (["attention.bta=3"], "beta"),
        (["initial.kapa=3"], "kappa"),
        (["initial.law=von_mises_mixtur"], "von_mises_mixture"),
        (["tend=3"], "t_end"),
        (["geometry=cirle"], "circle"),
        (["output.observe=enrgy"], "energy"),
        (["only=fin"], "fine"),
        (["methods.cells.cells=2.5"], "type int"),
        (["attention.V=[[1,2],[3]]"], "list of rows"),
        (["attention.V=[[1,2,3],[3,4,5],[6,7,8]]"], "common size"),
        (["attention.W_Q=[[1,0],[0,1]]"], "not both"),
        (["output.times=[0.5, 0.1]"], "increase"),
        (["output.checkpoint_every=-1"], "at least 0"),
        (["t_end=inf"], "t_end"),
        (["initial.weights=[-1, 2]"], "non-negative"),
        (["t_end=1" + "0" * 400], "too large"),
        (["methods.fine=3"], "table"),
        (["geometry=sphere"], "common size"),
    ],
)
def test_wrong_values_are_named_and_nothing_is_written(words, hint, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.toml").write_text(FILE)
    result = run("run", "p.toml", *words, "-o", "out")
    assert result.exit_code == 2, result.output
    assert hint in result.output
    assert [path.name for path in tmp_path.iterdir()] == ["p.toml"]


def test_a_method_that_cannot_treat_the_problem_is_named_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("run", "zero_temperature", "methods.pde.method=Lagrangian")  # needs a finite beta
    assert result.exit_code == 2
    assert "ZeroTemperature" in result.output
    assert not list(tmp_path.iterdir())


def test_a_numerical_failure_keeps_a_readable_folder(tmp_path, monkeypatch):
    from mfpde.methods.finite_volume import FiniteVolumeScheme

    def fails(self, state):
        raise mf.NumericalError("the step collapsed")

    monkeypatch.setattr(FiniteVolumeScheme, "advance", fails)
    folder = tmp_path / "out"
    result = run("run", *SMALL, "-o", str(folder), "-q")
    assert result.exit_code == 3
    assert "the step collapsed" in result.output
    record = json.loads((folder / "run.json").read_text())
    assert record["state"] == "failed"
    assert mf.load(folder / "pde-failed").status == "failed"
    result = run("resume", str(folder))
    assert result.exit_code == 2
    assert "would fail again" in result.output


def test_resuming_a_finished_run_changes_nothing(tmp_path):
    folder = tmp_path / "out"
    assert run("run", *SMALL, "-o", str(folder), "-q").exit_code == 0
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert "finished" in run("resume", str(folder)).output
    assert before == {path.name: path.read_bytes() for path in folder.iterdir()}


def test_two_processes_do_not_share_a_folder(tmp_path):
    from mfpde.runs import experiment

    folder = experiment.RunFolder.create(tmp_path / "out", experiment.prepare(resolve(SMALL[0], SMALL[1:])))
    with folder.locked(), pytest.raises(mf.InputError, match="Another process"), folder.locked():
        pass


def test_results_do_not_depend_on_threads_or_a_read_only_install(tmp_path):
    """Three processes: one thread, two threads, and a package folder that cannot be written."""
    code = (
        "import sys; sys.dont_write_bytecode = True\n"
        "import mfpde as mf, numpy as np, hashlib\n"
        "problem, method = mf.cases.two_clusters(t_end=0.5, cells=300, beta=30.0)\n"
        "runs = [mf.solve(problem, m).final for m in (method, mf.Particles(n=300))]\n"
        "print(hashlib.sha256(b''.join(r.weights.tobytes() + r.points.tobytes() for r in runs)).hexdigest())"
    )
    package = Path(mf.__file__).parent
    copy = tmp_path / "site" / "mfpde"
    import shutil

    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for path in [copy, *copy.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    hashes = set()
    for threads, home in (("1", package.parent), ("2", package.parent), ("2", copy.parent)):
        setting = {name: threads for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")}
        env = {**os.environ, "PYTHONPATH": str(home), "NUMBA_CACHE_DIR": os.environ.get("NUMBA_CACHE_DIR", ""), **setting}
        if not env["NUMBA_CACHE_DIR"]:
            del env["NUMBA_CACHE_DIR"]
        result = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, env=env, cwd=tmp_path)
        assert result.returncode == 0, result.stderr
        hashes.add(result.stdout.strip())
    for path in [copy, *copy.rglob("*")]:
        path.chmod(0o755)
    assert len(hashes) == 1


def test_progress_for_machines_is_one_object_a_line(monkeypatch, capsys):
    import mfpde.progress as progress

    monkeypatch.setattr(progress, "FIRST", 0.0)
    monkeypatch.setattr(progress, "AGAIN", {"lines": 0.0, "json": 0.0})
    with progress.reporter("json", 2.0, "it") as report:
        for time in (0.5, 1.0, 2.0):
            report(time, "pde")
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["done"] for line in lines if line["done"]] == sorted(line["done"] for line in lines if line["done"])
    assert {"event", "label", "stage", "done", "of", "seconds", "left"} <= set(lines[-1])


def test_a_silent_second_is_broken_by_the_watcher(capsys):
    """A first step that takes more than a second must not look like a hang."""
    import time

    from mfpde.progress import reporter

    with reporter(True, 1.0, "slow"):
        time.sleep(1.3)
    assert "slow = 0 of 1, preparing" in capsys.readouterr().err


def test_quick_commands_start_quickly():
    """`mfpde --help` loads nothing heavy."""
    code = (
        "import sys; from mfpde.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
        "print([m for m in ('numpy', 'scipy', 'numba', 'matplotlib') if m in sys.modules])"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(mf.__file__).parent.parent)}
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env).stdout.splitlines()[-1] == "[]"


def test_what_to_cite():
    assert "@software{mfpde" in run("info", "--cite").stdout
    text = run("info", "--cite", "concentration").stdout
    for key in ("2605.10931", "shu1988efficient", "dormand1980family", "delon2010fast"):
        assert key in text
    citation = mf.citation(*mf.cases.poisson())
    assert "watanabe1994constants" in repr(citation)
    assert "<table>" in citation._repr_html_()
    from mfpde.citations import BY_METHOD, ENTRIES
    from mfpde.runs.config import METHODS

    assert set(BY_METHOD) == set(METHODS)
    assert {key for keys in BY_METHOD.values() for key in keys} <= set(ENTRIES)


def test_the_cost_is_estimated_before_a_long_run(tmp_path, monkeypatch):
    from mfpde import cli
    from mfpde.runs import experiment

    plan = experiment.prepare(resolve("two_clusters", ["cells=128", "t_end=20.0", "only=pde", "output.times=3"]))
    promised = experiment.estimate(plan, patience=0.05)["pde"]
    run = mf.solve(plan.problem, plan.methods["pde"], save_at=plan.times)
    assert run.stats["steps"] / 10 < promised.steps < 10 * run.stats["steps"]  # at the pace of the first steps: an order of magnitude, no more
    monkeypatch.setattr(cli, "LONG_RUN", 0.0)
    result = CliRunner().invoke(app, ["run", *SMALL, "-o", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    assert "cost at the pace of the first steps: pde about" in result.stderr
    result = CliRunner().invoke(app, ["run", *SMALL, "-o", str(tmp_path / "machine"), "--progress", "json"])
    lines = [json.loads(line) for line in result.stderr.splitlines()]
    assert [line["event"] for line in lines if line["event"] != "progress"] == ["cost at the pace of the first steps", "done"]


def test_a_full_disk_is_named(tmp_path, monkeypatch):
    import mfpde.storage.archive as archive

    def full(number):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(archive.os, "fsync", full)
    result = run("run", *SMALL, "-o", str(tmp_path / "out"), "-q")
    assert result.exit_code == 2
    assert "No space left" in result.output
    assert not list(tmp_path.iterdir())


def test_a_run_whose_damage_is_mended_goes_on(tmp_path):
    """Two damaged checkpoints: the message says which folder to remove, and then the run goes on from the beginning of that method."""
    from mfpde.runs import experiment

    plan = experiment.prepare(resolve(SMALL[0], ["cells=64", *SMALL[3:], "t_end=3.0", "output.checkpoint_every=0"]))
    steps = 0

    def stops(share, stage):
        nonlocal steps
        steps += 1
        if steps == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        experiment.run(plan, tmp_path / "out", report=stops)
    for path in (tmp_path / "out" / "checkpoints" / "pde").glob("?.npz"):
        path.write_bytes(b"damaged")
    result = run("resume", str(tmp_path / "out"), "-q")
    assert result.exit_code == 2
    assert "Remove that folder" in result.output
    import shutil

    shutil.rmtree(tmp_path / "out" / "checkpoints" / "pde")
    assert run("resume", str(tmp_path / "out"), "-q").exit_code == 0
    assert json.loads((tmp_path / "out" / "run.json").read_text())["state"] == "done"
