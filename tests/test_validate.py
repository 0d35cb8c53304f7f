"""The validation suite: claims are found, run, judged and reported; and a wrong model makes the matching claim fail."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import mfpde as mf
from mfpde import claims
from mfpde.attention import AttentionOperator
from mfpde.claims import fits, suite
from mfpde.cli import app
from mfpde.errors import InputError

ROOT = Path(__file__).resolve().parent.parent
CLAIMS = ROOT / "validation"

TOY = '''
import sys
from mfpde import claims

def measure(quick):
    from matplotlib.figure import Figure
    figure = Figure(figsize=(1, 1))
    figure.subplots().plot([0, 1])
    return claims.Findings(numbers={"half": 0.5, "bound 1": 2.0 if quick else 9.0}, tables={"a table": [["x", "y"], ["a", 1.5]]}, figures={"a line": figure})

if __name__ == "__main__":
    sys.exit(claims.run(__file__, measure, "toy"))
'''
EXPECTED = {"half": {"low": 0.4, "high": 0.6, "reason": "it is half"}, "bound *": {"high": 3, "reason": "a pattern"}}


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A tree with one claim that holds in its quick version and fails in full, and one script that only has an exit code."""
    for name, script in (("toy", TOY), ("plain", "import sys; print('said'); sys.exit(2 * ('-o' in sys.argv))")):
        folder = tmp_path / "validation" / name
        folder.mkdir(parents=True)
        (folder / "run.py").write_text(script)
    (tmp_path / "validation" / "toy" / "expected.json").write_text(json.dumps(EXPECTED))
    (tmp_path / "validation" / "toy" / "README.md").write_text("# A toy\n\n**Claim.** One half is `0.5`.\n\n* item\n\n    code\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str):
    return CliRunner().invoke(app, ["validate", *words])


def test_a_claim_that_holds(toy):
    result = run("toy", "--quick", "--keep", "kept")
    assert result.exit_code == 0, result.output
    for text in ("claim", "expected", "measured", "verdict", "toy: half", "holds", "[ 1/1]"):
        assert text in result.output
    page = (toy / "report.html").read_text()
    for text in ("A toy", "data:image/png;base64,", "a table", "it is half", "numpy", "<b>Claim.</b>", "<pre>"):
        assert text in page
    assert "src='http" not in page  # self-contained
    assert {path.name for path in (toy / "kept").iterdir()} == {"toy.json", "toy-1.png"}
    record = json.loads((toy / "kept" / "toy.json").read_text())
    assert record["quick"]
    assert record["versions"]["mfpde"] == mf.__version__


def test_a_claim_that_fails_gives_exit_code_1(toy):
    result = run("toy")
    assert result.exit_code == 1
    assert "FAILS" in result.output
    assert "FAILS" in (toy / "report.html").read_text()


def test_scripts_without_a_record_are_judged_by_their_exit_code(toy):
    outcomes = suite.validate(toy / "validation", ["plain"], quick=True)
    assert not outcomes[0].holds  # exit code 2
    assert "said" in outcomes[0].output
    (toy / "validation" / "plain" / "run.py").write_text("import argparse; p = argparse.ArgumentParser(); p.add_argument('--quick'); p.parse_args()")
    assert suite.validate(toy / "validation", ["plain"], jobs=2)[0].holds  # does not take -o
    (toy / "validation" / "plain" / "run.py").write_text("raise ValueError('broken script')")
    result = run("plain")
    assert result.exit_code == 1
    assert "broken script" in result.output


def test_claims_about_seconds_run_alone(toy):
    """Three scripts note when they begin and end: two side by side, then the one that says so by itself."""
    script = "import sys, time; a = time.time(); time.sleep(1); open('when', 'a').write(f'{sys.argv[0]} {a} {time.time()}\\n')"
    for name in ("plain", "busy", "clock"):
        (toy / "validation" / name).mkdir(exist_ok=True)
        (toy / "validation" / name / "run.py").write_text(script)
    (toy / "validation" / "clock" / "expected.json").write_text(json.dumps({"run alone": "it is a clock"}))
    outcomes = suite.validate(toy / "validation", ["clock", "busy", "plain"], jobs=2)
    assert [outcome.name for outcome in outcomes] == ["clock", "busy", "plain"]
    lines = [line.split() for line in (toy / "when").read_text().splitlines()]
    begin, end = ({Path(words[0]).parent.name: float(words[k]) for words in lines} for k in (1, 2))
    assert begin["busy"] < end["plain"]
    assert begin["plain"] < end["busy"]
    assert begin["clock"] > max(end["busy"], end["plain"])


def test_wrong_usage(toy):
    assert run("tyo").exit_code == 2
    assert "toy" in run("tyo").output
    with pytest.raises(InputError, match="jobs"):
        suite.validate(toy / "validation", [], jobs=0)


def test_nothing_unexpected_passes():
    with pytest.raises(KeyError):
        claims.judge({"unheard of": 1.0}, EXPECTED)
    assert not claims.judge({"half": float("nan")}, EXPECTED)[0].holds


def test_fits_recover_slopes_with_their_interval():
    rng = np.random.default_rng(7)
    x = np.linspace(0, 1, 40)
    hits = [abs((fit := fits.line(x, 3 * x + 0.1 * rng.standard_normal(40))).slope - 3) <= fit.interval for _ in range(400)]
    assert np.mean(hits) == pytest.approx(0.95, abs=0.035)  # three standard deviations of a share of 400
    with pytest.raises(InputError, match="three points"):
        fits.line(x[:2], x[:2])
    t = np.linspace(4, 12, 30)
    assert fits.decay(t, np.sqrt(t + 1) * np.exp(-0.4 * t), p=2, factor="linear").slope == pytest.approx(0.4, abs=1e-6)
    assert fits.between(np.array([1.0, 0.3, 0.2, 0.5]), 0.4, 0.1) == slice(1, 4)


@pytest.mark.parametrize("name", suite.names_in(CLAIMS))
def test_every_claim_says_what_would_refute_it(name):
    folder = CLAIMS / name
    if "claims.run" not in (folder / "run.py").read_text():
        pytest.skip("judged by its exit code")
    assert "refute" in (folder / "README.md").read_text()
    expected = json.loads((folder / "expected.json").read_text())
    assert len(expected.pop("run alone", "its numbers are seconds")) > 10
    for quantity, entry in expected.items():
        assert entry["reason"].strip(), quantity
        assert {"low", "high"} & set(entry), quantity


# ---- a wrong model is refuted --------------------------------------------------------------------------------------------------------


def verdicts_of(name: str, part: str) -> list[bool]:
    """Whether the numbers of one part of a claim hold."""
    script = runpy.run_path(str(CLAIMS / name / "run.py"), run_name="claim")
    found = claims.Findings()
    script[part](found, True)
    return [v.holds for v in claims.judge(found.numbers, json.loads((CLAIMS / name / "expected.json").read_text()))]


def test_the_right_model_holds():
    assert all(verdicts_of("exact_densities", "masses"))
    assert all(verdicts_of("sharp_rates", "on_a_mesh"))
    assert all(verdicts_of("terminal_phase", "pair_rates"))


def test_the_wrong_sign_is_refuted(monkeypatch):
    right = AttentionOperator.velocity
    monkeypatch.setattr(AttentionOperator, "velocity", lambda self, weights: -right(self, weights))
    assert not all(verdicts_of("terminal_phase", "pair_rates"))
    assert not all(verdicts_of("sharp_rates", "on_a_mesh"))


def test_V_in_place_of_VA_is_refuted(monkeypatch):
    right = mf.Attention.__post_init__

    def wrong(self):
        right(self)
        object.__setattr__(self, "drift", self.V)

    monkeypatch.setattr(mf.Attention, "__post_init__", wrong)
    assert not all(verdicts_of("sharp_rates", "on_a_mesh"))


def test_an_orthogonal_projector_in_place_of_the_spectral_one_is_refuted(monkeypatch):
    right = mf.limits.invariant_space

    def wrong(M, above):
        basis, _, block = right(M, above)
        return basis, basis.T, block

    monkeypatch.setattr(mf.limits, "invariant_space", wrong)
    assert not all(verdicts_of("exact_densities", "masses"))
