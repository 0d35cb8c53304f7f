"""The how-to pages do what they say: their files are written, their commands and scripts run in order, in an empty folder."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

import mfpde.runs.experiment
from mfpde.cli import app

# the sockets of dask close when the garbage collector finds them
pytestmark = [pytest.mark.filterwarnings("ignore::ResourceWarning"), pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")]
PAGES = sorted((Path(__file__).parents[2] / "docs" / "howto").glob("*.md"))
BLOCK = re.compile(r"(?:<!-- file: (?P<file>\S+) -->\n)?```(?P<language>\w+)\n(?P<text>.*?)```", re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_the_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if page.stem != "look":
        monkeypatch.setattr(mfpde.runs.experiment, "draw", lambda comparison: {})  # pictures take longest, and that page is about them
    if page.stem == "sweep":
        pytest.importorskip("distributed", reason='the extra "sweep" is not installed')
    for block in BLOCK.finditer(page.read_text()):
        text = block["text"]
        if block["file"]:
            Path(block["file"]).write_text(text)
        elif block["language"] == "bash":
            for line in text.splitlines():
                name, *words = shlex.split(line)
                assert name == "mfpde"
                result = CliRunner().invoke(app, words)
                assert result.exit_code == 0, f"{line}\n{result.output}"
        elif block["language"] == "python":
            exec(compile(text, str(page), "exec"), {})


def test_there_are_pages():
    assert len(PAGES) >= 5
