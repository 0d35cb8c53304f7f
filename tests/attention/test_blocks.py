"""Tilted blocks against the sum itself, on the states the equation visits."""

from __future__ import annotations

import numpy as np
import pytest

import mfpde as mf
from mfpde.attention.blocks import Blocks
from mfpde.attention.direct import Direct


@pytest.mark.parametrize("beta", [0.0, 1.0, 1e3, 1e6])
def test_mean_agrees_with_the_direct_sum(beta):
    rng = np.random.default_rng(1)
    circle = mf.Circle()
    y, x = circle.points(rng.uniform(0, 7, 2000)), circle.points(rng.uniform(0, 7, 500))
    attention = mf.Attention([[2.0, 0.3], [-1.0, 0.1]], np.eye(2), np.eye(2), beta)
    weights = rng.uniform(size=2000)
    log_z, mean, error = Blocks(attention, y, x, 1e-12).evaluate(weights)
    expected_z, expected, _ = Direct(attention, y, x).evaluate(weights, np.arange(500))
    assert (error <= 1e-12).all()
    assert (np.abs(mean - expected).max(axis=1) <= error).all()
    # both log Z are rounded at their own size
    assert (np.abs(log_z - expected_z) <= error + 16 * 2.0**-53 * (np.abs(expected_z) + beta)).all()
