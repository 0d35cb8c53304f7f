r"""Velocities of atoms in the log domain, with the pull of an atom on itself written apart.

    v_i = <e_i, V x_i> + sum_{j != i} w_ij <e_i, V (y_j - x_i)>,      w_ij = m_j e^{beta <A x_i, y_j>} / Z_i,      e = (-sin, cos)

In a metastable state the first term is zero or the same for all atoms, and the sum is of size e^{-beta s}: written as `<e_i, V m(x_i)>` it would drown in
the round-off of the first term. Here each term of the sum is a sign and a logarithm, and `y_j - x_i` comes from the difference of the angles: nothing cancels
but pulls to the left against pulls to the right.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mfpde.model import Attention

BALANCE = 1e-14  # pulls that cancel to this share of their absolute sum are balanced: the rest is round-off


class Pull(NamedTuple):
    """`v = drift + sign * exp(log_size)`, each of shape (k,)."""

    drift: np.ndarray
    log_size: np.ndarray
    sign: np.ndarray

    @property
    def velocity(self) -> np.ndarray:
        """Angular velocity in radians per unit time; the pull underflows to 0 below e^-745."""
        return self.drift + self.sign * np.exp(self.log_size)


def pull(head: Attention, angles: np.ndarray, masses: np.ndarray, others: np.ndarray | None = None, other_masses: np.ndarray | None = None) -> Pull:
    """The pull on k atoms of each other, and of `others`, any further angles with masses.

    Balanced pulls (`BALANCE`) count as none. Cost O(k (k + number of others)).

    >>> import numpy as np
    >>> import mfpde as mf
    >>> pair = pull(mf.Attention.identity(2, beta=1e4), np.array([0.0, 2.0]), np.array([0.5, 0.5]))
    >>> pair.log_size.round(4), pair.sign                                # log sin 2 - beta (1 - cos 2)
    (array([-14161.5634, -14161.5634]), array([ 1., -1.]))
    """
    y = angles if others is None else np.concatenate([angles, others])
    w = masses if other_masses is None else np.concatenate([masses, other_masses])
    c, s = np.cos(angles), np.sin(angles)
    query = head.beta * np.stack([c, s], axis=1) @ head.A.T
    gap = y[None, :] - angles[:, None]
    radial, tangential = -2 * np.sin(gap / 2) ** 2, np.sin(gap)  # y - x = radial x + tangential e
    along_x, along_e = np.sum(query * np.stack([c, s], axis=1), axis=1), np.sum(query * np.stack([-s, c], axis=1), axis=1)
    score = np.log(w) + along_x[:, None] * radial + along_e[:, None] * tangential  # less the score of the atom with itself
    log_z = np.logaddexp.reduce(score, axis=1)
    V = head.V
    e = np.stack([-s, c], axis=1)
    drift = np.sum(e * (np.stack([c, s], axis=1) @ V.T), axis=1)
    arm = drift[:, None] * radial + np.sum(e * (e @ V.T), axis=1)[:, None] * tangential
    arm[np.arange(len(angles)), np.arange(len(angles))] = 0.0
    with np.errstate(divide="ignore"):
        term = score + np.log(np.abs(arm))
    top = term.max(axis=1)
    shifted = np.exp(term - np.where(np.isfinite(top), top, 0.0)[:, None])
    total, absolute = np.sum(np.sign(arm) * shifted, axis=1), shifted.sum(axis=1)
    total = np.where(np.abs(total) <= BALANCE * absolute, 0.0, total)
    with np.errstate(divide="ignore"):
        return Pull(drift, top + np.log(np.abs(total)) - log_z, np.sign(total))


def common_turn(head: Attention) -> float | None:
    """The rate b at which all self terms turn alike, so that in a frame turning with it only the pulls are left; None if there is no such frame.

    That is so for `V = a I` (b = 0) with any A, and for `V = a I + b J` with A commuting with rotations.

    >>> import mfpde as mf
    >>> common_turn(mf.Attention.identity(2, beta=4))
    0.0
    """
    V, A = head.V, head.A
    size, size_A = np.linalg.norm(V, 2), np.linalg.norm(A, 2)
    if np.hypot(V[0, 0] - V[1, 1], V[0, 1] + V[1, 0]) > 1e-14 * size:
        return None
    b = 0.5 * float(V[1, 0] - V[0, 1])
    turns_with_it = np.hypot(A[0, 0] - A[1, 1], A[0, 1] + A[1, 0]) <= 1e-14 * size_A
    return b if b == 0 or turns_with_it else None
