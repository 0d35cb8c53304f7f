"""The pages of the site: their code runs, the example method keeps the contract, every public name has its place, prose states no number that nothing computes.

Building the site itself, which runs tutorials and gallery, is a job of its own (.ci/run).
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import re
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import mfpde as mf

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
EXAMPLE = re.compile(r"<!-- example: (?P<name>[\w, ]+) -->\n```python\n(?P<code>.*?)```", re.DOTALL)
SCRIPTS = sorted([*(DOCS / "tutorials").glob("*.py"), *(DOCS / "gallery").glob("*.py")])


def load(path: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


CONTRACT = load(Path(__file__).parent / "contract" / "test_methods.py", "contract_of_methods")
CHECKS = [name for name in vars(CONTRACT) if name.startswith("test_")]


@pytest.fixture(scope="module")
def examples():
    """The names that the code of docs/extend.md defines, block after block, and what the blocks print."""
    module = ModuleType("examples_of_the_page")  # dataclasses look their module up
    sys.modules[module.__name__] = module
    blocks = EXAMPLE.findall((DOCS / "extend.md").read_text())
    assert [name for name, _ in blocks] == ["method", "method, used", "model", "model, used"]
    for name, code in blocks:
        exec(compile(code, f"extend.md: {name}", "exec"), vars(module))
    yield module
    del sys.modules[module.__name__]


@pytest.mark.parametrize("check", CHECKS)
def test_the_example_method_keeps_the_contract(examples, check, tmp_path):
    function = getattr(CONTRACT, check)
    function(examples.DonorCell(cells=64), **({"tmp_path": tmp_path} if "tmp_path" in inspect.signature(function).parameters else {}))


def test_the_example_method_solves_the_equation(examples):
    problem, _ = mf.cases.poisson(t_end=1.0)
    table = mf.converge(problem, examples.DonorCell(), [64, 128, 256], reference=mf.exact.poisson_law(0.3, 1.0))
    assert table.fitted_order == pytest.approx(1, abs=0.1)  # donor cells and Euler steps: order one, measured .98


def test_the_example_model_is_the_same_equation_for_both_methods(examples):
    """Two atoms under unnormalised attention close in at D' = -sin D e^{-beta (1 - cos D)}; the density agrees with tokens."""
    beta, t_end = 2.0, 2.0
    pair = mf.initial.atoms(mf.Circle().points([0.0, 1.5]), [0.5, 0.5])
    problem = mf.Problem(mf.Attention.identity(2, beta), mf.Circle(), pair, t_end)
    tokens = mf.solve(problem, examples.UnnormalisedParticles(placement="nodes")).final
    gap = solve_ivp(lambda t, D: -np.sin(D) * np.exp(-beta * (1 - np.cos(D))), (0, t_end), [1.5], rtol=1e-10, atol=1e-12).y[0, -1]
    assert np.ptp(tokens.angles()) == pytest.approx(gap, abs=1e-8)  # both integrators are asked for 1e-10
    assert mf.wasserstein(examples.density, examples.tokens, mf.Circle()) < 5e-3  # the spacing of 400 nodes alone is .0157/sqrt(12)
    softmax = mf.solve(examples.problem, mf.FiniteVolume(cells=256)).final
    assert mf.wasserstein(examples.density, softmax, mf.Circle()) > 0.05  # and it is another model


PAGES_OF_NAMES = "\n".join(page.read_text() for page in sorted((DOCS / "api").glob("*.rst")))
DOCUMENTED = set(re.findall(r"^\.\. auto\w+:: mfpde\.([\w.]+)$", PAGES_OF_NAMES, re.MULTILINE))


@pytest.mark.parametrize("name", mf.__all__)
def test_every_public_name_is_on_an_api_page(name):
    assert name in DOCUMENTED


def test_all_methods_are_weighed_up():
    page = (DOCS / "which_method.md").read_text()
    from mfpde.runs.config import METHODS

    assert not [name for name in METHODS if f"`{name}`" not in page]


def test_the_code_of_which_method_runs(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", (DOCS / "which_method.md").read_text(), re.DOTALL)
    names: dict = {}
    exec(compile(code, "which_method.md", "exec"), names)
    assert "done-with-unresolved-clusters" in capsys.readouterr().out
    distance = mf.wasserstein(names["mesh"].final, names["moving"].final, names["problem"].geometry, p=1)
    assert distance <= names["mesh"].stats["W1 floor"]  # as the page prints


def test_measured_limits_are_those_of_the_records():
    """A row "| what | number | `validation/NAME`: entry |" repeats the entry of docs/results/NAME.json, to a third: some are ratios of times."""
    rows = re.findall(r"^\|[^|]+\| (\S+) \| `validation/(\w+)`: ([^|]+) \|$", (DOCS / "which_method.md").read_text(), re.MULTILINE)
    assert len(rows) > 10
    for number, name, entry in rows:
        record = json.loads((DOCS / "results" / f"{name}.json").read_text())
        measured = {verdict["quantity"]: verdict["measured"] for verdict in record["verdicts"]}
        assert float(number) == pytest.approx(measured[entry], rel=0.35), entry


def cells_of(row: str) -> int:
    return len(re.findall(r"(?<!\\)\|", row.rstrip())) - 1


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda path: str(path.relative_to(DOCS)))
def test_rows_of_tables_have_as_many_cells_as_their_heads(page):
    r"""A bar within a cell, as in |A|, ends the cell on the site: it is written \|A\|."""
    for table in re.findall(r"(?:^\|.*\n?)+", page.read_text(), re.MULTILINE):
        head, *rows = table.splitlines()
        assert not [row for row in rows if cells_of(row) != cells_of(head)]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_prose_of_a_script_states_no_number_that_its_code_does_not_hold(script):
    """What is measured is printed by the code, anew at each build; the text may repeat parameters only."""
    docstring, code = re.match(r'"""(.*?)"""(.*)', script.read_text(), re.DOTALL).groups()
    prose = [docstring, *(line for line in code.splitlines() if line.startswith("#"))]
    statements = "\n".join(line for line in code.splitlines() if not line.startswith("#"))
    decimals = set(re.findall(r"(?<![\w.])\d+\.\d+(?!\w)|\d(?:\.\d+)?e-?\d+", "\n".join(prose)))
    assert not {number for number in decimals if number not in statements}


def test_docstrings_become_markup():
    rst = load(DOCS / "extensions" / "plain_docstrings.py", "plain_docstrings")
    given = ["weights : array_like, shape (n,)", "    *Not* 2*x, nor x_."]
    assert rst.as_rst(given) == ["weights : array_like, shape ``(n,)``", r"    *Not* 2\*x, nor x\_."]
    lines = ["The mass |x| of `m_i`, docs/theory:", "", "* 2*x", "", "    m_i = 2 * 3", "", ">>> 2 ** 3 | 1", "9"]
    assert rst.as_rst(lines) == [
        r"The mass \|x\| of ``m_i``, :doc:`docs/theory </theory>`:", "", r"* 2\*x", "",
        ".. code-block:: text", "", "    m_i = 2 * 3", "", ">>> 2 ** 3 | 1", "9",
    ]  # fmt: skip
