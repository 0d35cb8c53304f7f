"""FiPy assembles the same first-order scheme: an independent opinion on every flux and on the seam."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import mfpde as mf

CIRCLE = mf.Circle()
LAWS = {"smooth": mf.initial.fourier([0.3, 0.1j]), "clustered": mf.initial.von_mises_mixture([-0.02, 2.0], [1e4, 30.0])}


@pytest.mark.parametrize("law", list(LAWS))
def test_a_hundred_steps_agree(law):
    """Largest difference of cell masses 1e-11 at most; observed 3e-15."""
    attention = mf.Attention([[1.0, 0.3], [-0.2, 0.8]], np.eye(2), [[1.0, 0.1], [0.4, 0.7]], 10.0)
    problem = mf.Problem(attention, CIRCLE, LAWS[law], 5.0)
    ours, theirs = mf.FiniteVolume(cells=128, order=1).prepare(problem), mf.FiPyUpwind(cells=128).prepare(problem)
    a, b = ours.initial(), theirs.initial()
    for _ in range(100):
        a, b = ours.advance(a), theirs.advance(b)
        assert b.time == pytest.approx(a.time, rel=1e-12)
    assert np.abs(a.arrays["masses"] - b.arrays["masses"]).max() <= 1e-11


def test_loading_fipy_ignores_our_command_line():
    """FiPy reads sys.argv at import and exits on flags it does not know."""
    code = "import sys; sys.argv = ['x', '--cache-clear', '--petsc', '--no-cache-foo']; kept = list(sys.argv)\n"
    code += "from mfpde.methods.fipy_upwind import load_fipy; load_fipy(); assert sys.argv == kept; print('loaded')"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "loaded", done.stderr


def test_only_circles():
    with pytest.raises(mf.InputError, match="circle"):
        mf.FiPyUpwind().prepare(mf.Problem(mf.Attention.identity(3, 1.0), mf.Sphere(), mf.initial.atoms([[0, 0, 1.0]], [1.0]), 1.0))
