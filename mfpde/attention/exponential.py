"""The exponential as a few multiplications, so that a loop over it runs in vector registers.

`exp` of the C library is a call per element. Here `x = k ln 2 + r` with an integer `k` and `|r| <= ln(2)/2`, `e^r` is its Taylor
polynomial of degree 13 (remainder below 5e-18) and `2^k` is written straight into the exponent bits. Within 2 units in the last place.
"""

from __future__ import annotations

import numpy as np

from mfpde.compiled import compiled

LOG2_E = 1.4426950408889634
LN2_HIGH = 0.693147180369123816490  # its last bits are zero: k * LN2_HIGH is exact
LN2_LOW = 1.90821492927058770002e-10
SHIFTER = 1.5 * 2.0**52  # adding it rounds to an integer, which then sits in the lowest bits
LOWEST = -700.0  # below it e^x counts as e^-700 = 1e-304


@compiled(fastmath={"contract"}, forceinline=True)  # keeps its own rules inside a caller that may reorder sums
def exponential(x):
    """e^x for x <= 700, without a branch; e^-700 for all x below -700 (-inf included)."""
    x = x if x > LOWEST else LOWEST
    shifted = x * LOG2_E + SHIFTER
    k = shifted - SHIFTER
    r = (x - k * LN2_HIGH) - k * LN2_LOW
    power = np.int64((np.float64(shifted).view(np.int64) + 1023) << 52).view(np.float64)
    p = 1.6059043836821613e-10
    p = p * r + 2.08767569878681e-09
    p = p * r + 2.505210838544172e-08
    p = p * r + 2.755731922398589e-07
    p = p * r + 2.7557319223985893e-06
    p = p * r + 2.48015873015873e-05
    p = p * r + 0.0001984126984126984
    p = p * r + 0.001388888888888889
    p = p * r + 0.008333333333333333
    p = p * r + 0.041666666666666664
    p = p * r + 0.16666666666666666
    p = p * r + 0.5
    p = (p * r) * r + r
    return power + power * p
