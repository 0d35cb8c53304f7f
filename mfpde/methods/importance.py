r"""Which parts of a density matter: the attention they receive from parts that matter.

Between basins the density falls exponentially, at a rate that rises like beta. The softmax of a token in such a void attends the void itself, so
that refinement wherever the velocity varies would resolve voids for their own sake. Importance asks the transposed question:

    u(y) = mass(y) + sum_x u(x) e^{s(x, y)} mass(y) / Z(x)          two sweeps

A part is refined where the logarithm of its importance exceeds a cut. The sum over x is replaced by its largest term, which is right to the logarithm
of the number of nodes in a cluster, far finer than any cut, and needs no exponentials, so that 300 and more decades cost nothing.
"""

from __future__ import annotations

import numpy as np

from mfpde.compiled import as_float_array, compiled


@compiled
def _loudest(queries, log_u, keys, received):
    """`received_j = max_i (log_u_i + <q_i, y_j>)`; shapes (n, 2), (n,), (m, 2), (m,)."""
    for j in range(keys.shape[0]):
        x, y = keys[j, 0], keys[j, 1]
        best = -np.inf
        for i in range(queries.shape[0]):
            best = max(best, log_u[i] + queries[i, 0] * x + queries[i, 1] * y)
        received[j] = best


def log_attention_received(points: np.ndarray, log_masses: np.ndarray, log_z: np.ndarray, scaled_A: np.ndarray, sweeps: int = 2) -> np.ndarray:
    """The logarithm of the factor by which a unit of mass at each of `points` (n, 2) matters more than its mass; at least 0, shape (n,).

    `log_z` are the partition functions at the points and `scaled_A = beta A`. Cost: `sweeps` times n^2 comparisons, about 1 ns each.
    """
    queries, keys = as_float_array(points @ scaled_A.T), as_float_array(points)
    log_u, received = log_masses, np.zeros(len(points))
    for _ in range(sweeps):
        _loudest(queries, as_float_array(log_u - log_z), keys, received)
        log_u = np.logaddexp(log_masses, log_masses + received)
    return np.maximum(received, 0.0)
