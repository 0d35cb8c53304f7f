"""Imports go one way, the public names are all there, and nothing heavy loads before it is needed."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import mfpde as mf

PACKAGE = Path(mf.__file__).parent

# what may import what: a module imports only from lower layers, or from siblings of its own layer without a cycle
LAYERS = {
    "errors": 0, "compiled": 0, "stages": 0, "interruption": 0,
    "mesh": 1, "model": 1,
    "geometry": 2,
    "measure": 3,
    "initial": 4, "attention": 4,
    "limits": 5, "flux": 5, "stepping": 5,
    "methods": 6,
    "storage": 7, "trajectory": 7, "progress": 7,
    "solver": 8, "export": 8, "citations": 8,
    "transport": 9, "exact": 9,
    "diagnostics": 10, "branches": 10,
    "comparison": 11, "convergence": 11, "figures": 11, "cases": 11,
    "claims": 12, "runs": 12,
    "cli": 13, "__main__": 14,
}  # fmt: skip


def layer_of(module: str) -> int:
    return LAYERS[module.split(".")[1]]


def imports(path: Path) -> set[str]:
    """Modules of the package that a file imports when it is loaded; imports inside functions and for type checkers do not count."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("mfpde"):
            found |= {f"mfpde.{alias.name}" for alias in node.names} if node.module == "mfpde" else {node.module}
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.startswith("mfpde.")}
    return found


FILES = [path for path in sorted(PACKAGE.rglob("*.py")) if path.name != "__init__.py" or path.parent != PACKAGE]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_one_way(path):
    own = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    for module in imports(path):
        if module == "mfpde" or module.split(".")[1] == own or module == "mfpde.__version__":
            continue
        assert layer_of(module) <= LAYERS[own], f"{own} imports {module}, which lies above it"


def test_every_public_name_loads():
    for name in mf.__all__:
        assert getattr(mf, name) is not None


def test_importing_the_package_is_light():
    code = "import sys, mfpde; print([m for m in ('numpy', 'scipy', 'numba', 'fipy', 'matplotlib', 'ot', 'ducc0') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_modules_stay_one_idea():
    for path in FILES:
        assert len(path.read_text().splitlines()) <= 450, f"{path.name} is long; is it still one idea?"


def test_every_folder_is_a_package():
    """A folder without __init__.py imports from a checkout and is missing from an installation."""
    assert {path.parent for path in FILES} <= {path.parent for path in PACKAGE.rglob("__init__.py")}
