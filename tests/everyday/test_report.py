"""The HTML page, read by a real browser; films; both from a circle run and a sphere run."""

from __future__ import annotations

import base64
import importlib.util
import json
import os
import re
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import mfpde as mf
from mfpde.cli import app

needs_plotly = pytest.mark.skipif(importlib.util.find_spec("plotly") is None, reason='the extra "report" (plotly) is not installed')
needs_browser = pytest.mark.skipif(shutil.which("chromium") is None or shutil.which("chromedriver") is None, reason="Chromium and its driver are not installed")
ARTIFACTS = Path(os.environ.get("MFPDE_ARTIFACTS", "build/artifacts"))  # screenshots, to be looked at
FLAGS = [
    "--headless", "--no-sandbox", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--window-size=1100,2600", "--enable-unsafe-swiftshader", "--use-angle=swiftshader",
]  # fmt: skip
CIRCLE_WORDS = ["two_clusters", "cells=64", "t_end=3.0", "methods.particles.n=40", "output.times=7"]
SPHERE_WORDS = ["sphere_concentration", "beta=10", "cells=162", "t_end=2.0", "only=pde,particles", "methods.particles.n=40", "output.times=5"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A circle run and a sphere run; pictures and films are drawn from them without solving again."""
    home = tmp_path_factory.mktemp("report")
    for name, words in (("circle", CIRCLE_WORDS), ("sphere", SPHERE_WORDS)):
        result = CliRunner().invoke(app, ["run", *words, "-o", str(home / name), "-q"])
        assert result.exit_code == 0, result.output
    return home


class Browser:
    """Chromium through its driver's HTTP interface."""

    def __init__(self, profile: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.driver = subprocess.Popen(["chromedriver", f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.address = f"http://127.0.0.1:{port}"
        deadline = time.monotonic() + 60
        while True:
            try:
                if self.call("GET", "/status")["ready"]:
                    break
            except (urllib.error.URLError, OSError):
                assert time.monotonic() < deadline
                time.sleep(0.1)
        options = {"binary": shutil.which("chromium"), "args": [*FLAGS, f"--user-data-dir={profile}"]}
        wanted = {"alwaysMatch": {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}}
        self.address += "/session/" + self.call("POST", "/session", {"capabilities": wanted})["sessionId"]

    def call(self, method: str, path: str, body: Any = None) -> Any:
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(self.address + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(error.read().decode()[:400]) from None

    def run(self, script: str) -> Any:
        return self.call("POST", "/execute/sync", {"script": script, "args": []})

    def wait(self, script: str) -> Any:
        deadline = time.monotonic() + 60
        while not (value := self.run(script)):
            assert time.monotonic() < deadline, script
            time.sleep(0.1)
        return value

    def drag(self, selector: str, by: tuple[int, int]) -> None:
        """Press in the middle of an element, move, release."""
        box = f"document.querySelector('{selector}').getBoundingClientRect()"
        x, y = self.run(f"const box = {box}; return [box.x + box.width / 2, box.y + box.height / 2]")
        press, release = {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}
        moves = [{"type": "pointerMove", "duration": 50, "x": round(x + by[0] * k / 8), "y": round(y + by[1] * k / 8)} for k in range(9)]
        pointer = {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": [moves[0], press, *moves[1:], release]}
        self.call("POST", "/actions", {"actions": [pointer]})

    def screenshot(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(self.call("GET", "/screenshot")))

    def complaints(self) -> list[str]:
        """Errors on the console; slow software rendering is none."""
        return [entry["message"] for entry in self.call("POST", "/se/log", {"type": "browser"}) if entry["level"] == "SEVERE"]

    def close(self) -> None:
        try:
            self.call("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait(timeout=20)


@pytest.fixture
def browser(tmp_path):
    opened = Browser(tmp_path / "profile")
    yield opened
    opened.close()


@needs_plotly
@needs_browser
@pytest.mark.parametrize("which", ["circle", "sphere"])
def test_the_page_lives_in_a_browser(which, folders, browser):
    result = CliRunner().invoke(app, ["report", str(folders / which)])
    assert result.exit_code == 0, result.output
    page = folders / which / "report.html"
    assert not re.search(r"<(script|link|img)[^>]+(src|href)=[\"']http", page.read_text())  # nothing is fetched
    browser.call("POST", "/url", {"url": page.as_uri()})
    browser.wait(
        "return window.Plotly && document.querySelectorAll('.js-plotly-plot .main-svg').length > 0 && document.querySelector('.slider-grip-rect') != null"
    )
    field = "y" if which == "circle" else "intensity"
    values = f"JSON.stringify(document.getElementById('law').data[0].{field})"
    label = "document.querySelector('.slider-label').textContent"
    before, title = browser.run(f"return {values}"), browser.run(f"return {label}")
    browser.screenshot(ARTIFACTS / f"report-{which}-start.png")
    browser.drag(".slider-grip-rect", (420, 0))
    browser.wait(f"return {label} != {json.dumps(title)}")
    browser.wait(f"return {values} != {json.dumps(before)}")
    if which == "sphere":
        camera = "JSON.stringify(document.getElementById('law')._fullLayout.scene._scene.getCamera().eye)"
        eye = browser.run(f"return {camera}")
        browser.drag("#law .gl-container", (150, 60))
        browser.wait(f"return {camera} != {json.dumps(eye)}")
    assert browser.run("return document.querySelectorAll('#numbers tbody tr').length") > 5
    assert "hash" in browser.run("return document.getElementById('provenance').textContent")
    time.sleep(0.5)  # the last transition
    browser.screenshot(ARTIFACTS / f"report-{which}-moved.png")
    assert not browser.complaints()


@needs_plotly
def test_texts_cannot_break_the_page(folders):
    """What stands in run.json is text, not markup."""
    from mfpde.runs.experiment import read
    from mfpde.runs.report import page

    run, _, trajectories = read(folders / "circle")
    evil = "</script><script>alert(1)</script>"
    text = page({**run.record, "name": evil, "message": evil, "command": [evil]}, trajectories, {})
    assert evil not in text
    assert "NaN" not in re.findall(r"Plotly\.newPlot\(.*", text)[-1]


def test_pages_without_the_extra_name_it(folders, monkeypatch):
    import builtins

    real = builtins.__import__

    def missing(name, *words, **keywords):
        if name.split(".")[0] == "plotly":
            raise ImportError(name)
        return real(name, *words, **keywords)

    monkeypatch.setattr(builtins, "__import__", missing)
    result = CliRunner().invoke(app, ["report", str(folders / "circle"), "-o", str(folders / "no.html")])
    assert result.exit_code == 2
    assert "mfpde[report]" in result.output
    assert not (folders / "no.html").exists()


@pytest.mark.parametrize("which", ["circle", "sphere"])
@pytest.mark.parametrize("method", ["pde", "particles"])
def test_films_show_every_output_time(which, method, folders):
    from PIL import Image

    target = folders / f"{which}-{method}.gif"
    result = CliRunner().invoke(app, ["animate", str(folders / which), "--method", method, "-o", str(target), "--seconds", "1"])
    assert result.exit_code == 0, result.output
    with Image.open(target) as film:
        assert film.n_frames == (7 if which == "circle" else 5)
        pictures = []
        for k in (0, film.n_frames - 1):
            film.seek(k)
            pictures.append(np.asarray(film.convert("L"), dtype=float))
    assert np.abs(pictures[0] - pictures[1]).mean() > 0.1
    assert not list(folders.glob(".*"))  # no half-written file stays


@pytest.mark.skipif(shutil.which("ffmpeg") is None or shutil.which("ffprobe") is None, reason="ffmpeg is not installed")
@pytest.mark.parametrize("which", ["circle", "sphere"])
def test_mp4_films_play(which, folders):
    target = folders / f"{which}.mp4"
    result = CliRunner().invoke(app, ["animate", str(folders / which), "-o", str(target), "--seconds", "1"])
    assert result.exit_code == 0, result.output
    wanted = "stream=codec_name,pix_fmt,nb_read_frames:format=duration"
    words = ["ffprobe", "-v", "error", "-count_frames", "-show_entries", wanted, "-of", "json", str(target)]
    film = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    assert film["streams"] == [{"codec_name": "h264", "pix_fmt": "yuv420p", "nb_read_frames": "7" if which == "circle" else "5"}]  # what every player knows
    assert float(film["format"]["duration"]) == pytest.approx(1.0, abs=0.05)
    assert not list(folders.glob(".*"))


def test_wrong_films_are_named(folders):
    for words, hint in ((["-o", "film.avi"], "gif or mp4"), (["--method", "pdf"], "'pde'"), (["--seconds", "0"], "600 seconds")):
        result = CliRunner().invoke(app, ["animate", str(folders / "circle"), *words])
        assert result.exit_code == 2
        assert hint in result.output
    if shutil.which("ffmpeg") is None:
        assert "ffmpeg" in CliRunner().invoke(app, ["animate", str(folders / "circle"), "-o", "film.mp4"]).output


needs_xarray = pytest.mark.skipif(
    any(importlib.util.find_spec(package) is None for package in ("xarray", "h5netcdf", "h5py")),
    reason='the extra "io" (xarray, h5netcdf, h5py) is not installed',
)


@needs_xarray
@pytest.mark.parametrize("which", ["circle", "sphere"])
def test_netcdf_is_read_back_with_everything(which, folders, tmp_path):
    import xarray

    from mfpde.export import read_metadata

    assert CliRunner().invoke(app, ["export", str(folders / which), "-o", str(tmp_path)]).exit_code == 0
    record = json.loads((folders / which / "run.json").read_text())
    for method in ("pde", "particles"):
        run = mf.load(folders / which / method)
        with xarray.open_dataset(tmp_path / f"{method}.nc", engine="h5netcdf") as data:
            assert np.array_equal(data.time, run.times)
            assert np.array_equal(data.weights[-1], run.final.weights)
            assert np.array_equal(data.order_parameter, run.observed["order_parameter"])
            if method == "pde":
                assert np.array_equal(data.density[-1], run.final.density())
            else:
                assert np.array_equal(data.points[-1], run.final.points)
            metadata = read_metadata(data)
            assert metadata["method"] == run.described["method"]
            assert metadata["run"]["configuration"] == record["configuration"]


@needs_xarray
def test_laws_of_varying_size_are_padded():
    circle = mf.Circle()
    problem = mf.Problem(mf.Attention.identity(2, 4.0), circle, mf.initial.atoms(circle.points([0.0, 0.3, 2.0]), [0.5, 0.25, 0.25]), 30.0)
    run = mf.solve(problem, mf.Clusters(), save_at=[0.0, 30.0])
    sizes = [len(measure) for measure in run.measures]
    assert sizes[1] < sizes[0]
    data = run.to_xarray()
    assert np.isnan(data.points[1, sizes[1] :]).all()
    assert np.array_equal(data.weights.sum("point"), [measure.weights.sum() for measure in run.measures])
