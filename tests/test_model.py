"""The model refuses what no solver can use, and keeps the convention A = K^T Q."""

from __future__ import annotations

import numpy as np
import pytest

import mfpde as mf


def test_score_and_drift_follow_the_column_convention():
    rng = np.random.default_rng(0)
    Q, K, V = rng.normal(size=(3, 2, 2))
    attention = mf.Attention(Q, K, V, 2.0)
    x, y = rng.normal(size=(2, 2))
    assert (Q @ x) @ (K @ y) == pytest.approx((attention.A @ x) @ y)
    assert np.allclose(attention.drift, V @ K.T @ Q)


def test_weights_on_rows_give_the_same_score():
    rng = np.random.default_rng(1)
    W_Q, W_K, W_V = rng.normal(size=(3, 2, 2))
    x, y = rng.normal(size=(2, 2))
    attention = mf.Attention.from_weights(W_Q, W_K, W_V, 1.0)
    assert (x @ W_Q) @ (y @ W_K) == pytest.approx((attention.A @ x) @ y)
    assert np.allclose(y @ W_V, attention.V @ y)


def test_a_head_smaller_than_the_space_keeps_its_score():
    rng = np.random.default_rng(2)
    W_Q, W_K, W_V = rng.normal(size=(3, 1)), rng.normal(size=(3, 1)), rng.normal(size=(3, 3))
    x, y = rng.normal(size=(2, 3))
    attention = mf.Attention.from_weights(W_Q, W_K, W_V, 1.0)
    assert float((x @ W_Q) @ (y @ W_K)) == pytest.approx((attention.A @ x) @ y)


def test_matrices_are_copied_and_frozen():
    Q = np.eye(2)
    attention = mf.Attention(Q, np.eye(2), np.eye(2), 1.0)
    Q[0, 0] = 5
    assert attention.A[0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        attention.Q[0, 0] = 2


@pytest.mark.parametrize(
    ("arguments", "fact"),
    [
        ((np.eye(2), np.eye(3), np.eye(2), 1.0), "one common size"),
        ((np.ones((2, 3)), np.eye(2), np.eye(2), 1.0), "square"),
        ((np.full((2, 2), np.nan), np.eye(2), np.eye(2), 1.0), "NaN"),
        ((np.eye(2), np.eye(2), np.eye(2), -1.0), r"\[0, inf\]"),
        ((np.eye(2), np.eye(2), np.eye(2), float("nan")), r"\[0, inf\]"),
        ((np.eye(2), np.eye(2), np.eye(2), "hot"), "number"),
    ],
)
def test_bad_attention_is_named(arguments, fact):
    with pytest.raises(mf.InputError, match=fact):
        mf.Attention(*arguments)


def test_dimension_and_time_of_a_problem_are_checked():
    circle = mf.Circle()
    law = mf.initial.uniform(circle)
    with pytest.raises(mf.InputError, match="R\\^3"):
        mf.Problem(mf.Attention.identity(3, 1.0), circle, law, 1.0)
    for t_end in (-1.0, np.inf, np.nan):
        with pytest.raises(mf.InputError, match="t_end"):
            mf.Problem(mf.Attention.identity(2, 1.0), circle, law, t_end)
