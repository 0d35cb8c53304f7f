r"""The sum itself: blocked log-sum-exp over all pairs, the oracle of every faster operator.

    log Z(x_i) = log sum_j w_j e^{s_ij},   m(x_i) = sum_j w_j e^{s_ij} y_j / Z(x_i),   s_ij = beta <A x_i, y_j>

Two passes a target: the largest term first, then everything relative to it. At large beta two far clusters can tie, and an error
beta * eps in the difference of their scores would move m by as much. So the differences `s_ij - s_ik` of near ties are formed with
error-free products and sums (Dekker; Ogita, Rump and Oishi, SIAM J. Sci. Comput. 26 (2005), algorithm 5.3), with `beta A x` as a double-double.
"""

from __future__ import annotations

import math

import numpy as np

from mfpde.compiled import as_float_array, compiled, parallel_range

EPS = 2.0**-53
SERIAL_PAIRS = 200_000  # below this a parallel region costs more than it saves
PLAIN_SCORES = 4.0  # up to this |beta A x| a plain dot product errs by at most 2 * 4 * 4 EPS
REACH = 8e-15  # relative error of Z beyond its conditioning, absolute error of m: 32 EPS for scores, 16 for exp, 16 for the quotient;
# the logarithm of a weight w adds EPS |log w/w_max|, and log Z is what remains of score and log w_max


@compiled(inline="always")
def two_sum(a, b):
    """a + b = s + e exactly (Knuth)."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


@compiled(inline="always")
def two_product(a, b):
    """a * b = p + e exactly (Veltkamp and Dekker)."""
    p = a * b
    t = 134217729.0 * a
    ah = t - (t - a)
    al = a - ah
    t = 134217729.0 * b
    bh = t - (t - b)
    bl = b - bh
    return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl


@compiled
def scaled_queries(beta, A, x):
    """`q_i = beta A x_i` as an unevaluated sum of two doubles, shapes (n, d) and (n, d)."""
    n, d = x.shape
    high, low = np.empty((n, d)), np.empty((n, d))
    for i in range(n):
        for r in range(d):
            s, c = 0.0, 0.0
            for k in range(d):
                p, e = two_product(A[r, k], x[i, k])
                s, f = two_sum(s, p)
                c += e + f
            p, e = two_product(beta, s)
            high[i, r], low[i, r] = two_sum(p, e + beta * c)
    return high, low


@compiled(inline="always")
def score_gap(high, low, y, reference):
    """`<q, y - reference>` to a relative error of a few eps of |q| eps |y - reference|."""
    s, c = 0.0, 0.0
    for k in range(y.shape[0]):
        d, delta = two_sum(y[k], -reference[k])
        p, e = two_product(high[k], d)
        s, f = two_sum(s, p)
        c += e + f + high[k] * delta + low[k] * d
    return s + c


def _attend(high, low, y, log_w, log_z, mean):
    """Fill `log_z` (n,) and `mean` (n, d) for the queries high + low (n, d), keys y (m, d) and log weights (m,)."""
    n, d = high.shape
    origin = np.zeros(d)
    for i in parallel_range(n):
        q = high[i]
        norm = 0.0
        for k in range(d):
            norm += abs(q[k])
        top, largest = 0, -np.inf
        for j in range(y.shape[0]):
            s = log_w[j]
            for k in range(d):
                s += q[k] * y[j, k]
            if s > largest:
                top, largest = j, s
        reference = y[top]
        total, total_low = 0.0, 0.0
        shift, shift_low = np.zeros(d), np.zeros(d)
        for j in range(y.shape[0]):
            s = log_w[j] - log_w[top]
            for k in range(d):
                s += q[k] * (y[j, k] - reference[k])
            if s < -60.0 or not s < np.inf:  # e^-60 times 1e9 sources stays below 1e-17; -inf: no mass
                continue
            if norm > PLAIN_SCORES:
                s = score_gap(q, low[i], y[j], reference) + (log_w[j] - log_w[top])
            g = math.exp(s)
            total, rest = two_sum(total, g)  # compensated: the error does not grow with the number of sources
            total_low += rest
            for k in range(d):
                shift[k], rest = two_sum(shift[k], g * (y[j, k] - reference[k]))
                shift_low[k] += rest
        total += total_low
        for k in range(d):
            mean[i, k] = reference[k] + (shift[k] + shift_low[k]) / total
        log_z[i] = score_gap(q, low[i], reference, origin) + (log_w[top] + math.log(total))


_attend_serial = compiled(_attend)
_attend_parallel = compiled(parallel=True)(_attend)


def _spread(high, low, y, log_w, log_z, mean, covariance):
    """Fill `covariance` (n, d, d) with the attention covariance about `mean`: a third pass, free of cancellation."""
    n, d = high.shape
    for i in parallel_range(n):
        q = high[i]
        covariance[i] = 0.0
        for j in range(y.shape[0]):
            s = log_w[j] - log_z[i]
            for k in range(d):
                s += q[k] * y[j, k] + low[i, k] * y[j, k]
            if s < -60.0 or not s < np.inf:
                continue
            g = math.exp(s)
            for k in range(d):
                for l in range(d):
                    covariance[i, k, l] += g * (y[j, k] - mean[i, k]) * (y[j, l] - mean[i, l])


_spread_serial = compiled(_spread)
_spread_parallel = compiled(parallel=True)(_spread)


class Direct:
    """All pairs, exact to round-off for every beta up to 1e6.

    Cost: about 6 ns a pair on one core (the exponential); memory O(n + m).
    """

    name = "direct"

    def __init__(self, attention, sources: np.ndarray, targets: np.ndarray) -> None:
        self.sources = as_float_array(sources)
        self.queries = scaled_queries(attention.beta, as_float_array(attention.A), as_float_array(targets))

    def _carried(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Sources with mass, the logarithms of their weights relative to the largest, and the logarithm of that."""
        carried = weights > 0
        w = weights[carried]
        largest = w.max()
        with np.errstate(under="ignore"):
            ratio = w / largest  # equal weights have the logarithm 0, without a rounding error
        log_w = np.where(ratio > 1e-290, np.log(np.maximum(ratio, 1e-290)), np.log(w) - np.log(largest))
        return self.sources[carried], log_w, float(np.log(largest))

    def evaluate(self, weights: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """`(log Z (r,), m (r, d), error (r,))` at the targets `rows`; the error is round-off, of the logarithms of the weights too."""
        high, low = (as_float_array(q[rows]) for q in self.queries)
        y, log_w, scale = self._carried(weights)
        log_z, mean = np.empty(len(high)), np.empty_like(high)
        kernel = _attend_serial if len(high) * len(y) < SERIAL_PAIRS else _attend_parallel
        kernel(high, low, y, log_w, log_z, mean)
        return log_z + scale, mean, np.full(len(high), REACH + EPS * (abs(scale) - log_w.min()))

    def moments(self, weights: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """`(log Z (r,), m (r, d), covariance (r, d, d), error (r,))`: also the attention covariance E[(y - m)(y - m)^T].

        The covariance carries the conditioning of log Z, 8 eps |log Z|, as a relative error of each entry's size.
        """
        log_z, mean, error = self.evaluate(weights, rows)
        high, low = (as_float_array(q[rows]) for q in self.queries)
        y, log_w, scale = self._carried(weights)
        covariance = np.empty((len(high), high.shape[1], high.shape[1]))
        kernel = _spread_serial if len(high) * len(y) < SERIAL_PAIRS else _spread_parallel
        kernel(high, low, y, log_w, log_z - scale, mean, covariance)
        return log_z, mean, covariance, error
