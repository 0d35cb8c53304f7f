r"""Points of the circle in increasing angle, cut into short arcs, with coordinates local to each arc.

A point of the arc with centre `c` is `x = c + along * tau + across * c`, where `tau = (-c_2, c_1)`: exact, `c` need not be a unit vector.
On the circle `along = sin(delta)` and `across = cos(delta) - 1` for the angle `delta` from the centre.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mfpde.attention.direct import two_product, two_sum
from mfpde.compiled import compiled


class Arcs(NamedTuple):
    """b arcs that hold n sorted points.

    Attributes
    ----------
    start : (b + 1,) int, arc i holds the points `start[i]:start[i+1]`.
    centre : (b, 2), `middle` (b,) its angle, `radius` (b,) the largest angle from it to a point of the arc.
    nodes : (b,) int, Chebyshev nodes that represent the arc; arcs with no more points than that are kept as they are.
    along, along_low : (n,), tangential coordinate as an unevaluated sum of two doubles.
    across : (n,), normal coordinate.
    position : (n,), angle from the centre over the radius, in [-1, 1].
    """

    start: np.ndarray
    centre: np.ndarray
    middle: np.ndarray
    radius: np.ndarray
    nodes: np.ndarray
    along: np.ndarray
    along_low: np.ndarray
    across: np.ndarray
    position: np.ndarray


def cut(points: np.ndarray, angles: np.ndarray, width: float) -> Arcs:
    """Cut sorted `points` (n, 2), `angles` (n,) into arcs no wider than `width`; `nodes` is left at zero."""
    start = greedy_cuts(angles, width)
    middle = 0.5 * (angles[start[:-1]] + angles[start[1:] - 1])
    centre = np.stack([np.cos(middle), np.sin(middle)], axis=1)
    n = len(points)
    arcs = Arcs(start, centre, middle, np.zeros(len(middle)), np.zeros(len(middle), np.int64), *(np.empty(n) for _ in range(4)))
    local_coordinates(arcs, points)
    return arcs


@compiled
def greedy_cuts(angles, width):
    """A new arc wherever the present one would grow wider than `width`: gaps cost nothing."""
    start = [0]
    for i in range(1, angles.size):
        if angles[i] - angles[start[-1]] > width:
            start.append(i)
    start.append(angles.size)
    return np.array(start)


@compiled
def local_coordinates(arcs, points):
    """Fill `along`, `across`, `position` and `radius`; the coordinates in double-double arithmetic."""
    for b in range(arcs.middle.size):
        cx, cy = arcs.centre[b]
        s, low = dot(cx, cy, cx, cy)
        excess = (s - 1.0) + low  # |c|^2 - 1, a few eps
        radius = 0.0
        for i in range(arcs.start[b], arcs.start[b + 1]):
            dx, lx = two_sum(points[i, 0], -cx)
            dy, ly = two_sum(points[i, 1], -cy)
            s, low = dot(cx, cy, dy, -dx)
            low += cx * ly - cy * lx - s * excess
            arcs.along[i], arcs.along_low[i] = two_sum(s, low)
            s, low = dot(cx, cy, dx, dy)
            arcs.across[i] = s + (low + cx * lx + cy * ly - s * excess)
            arcs.position[i] = np.arcsin(arcs.along[i])
            radius = max(radius, abs(arcs.position[i]))
        arcs.radius[b] = radius
        if radius > 0.0:
            for i in range(arcs.start[b], arcs.start[b + 1]):
                arcs.position[i] /= radius


@compiled(inline="always")
def dot(a, b, x, y):
    """a x + b y as an unevaluated sum of two doubles."""
    p, e = two_product(a, x)
    r, f = two_product(b, y)
    s, g = two_sum(p, r)
    return s, e + f + g
