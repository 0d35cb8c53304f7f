r"""Several methods on one problem, measured against each other and against the zero-temperature limit.

A comparison solves the problem by each method, and tabulates over time the distances W_1 and W_2

    method - limit      to the push-forward T_inf # mu_0, where every token ends at zero temperature
    method - flow       to the zero-temperature flow at the same time
    method - method

Its fit of the exponential decay states its window, which is chosen by a rule: from the first time the distance has lost a tenth of its initial
value until it first comes within a factor three of its minimum.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from mfpde import limits
from mfpde.measure import Measure
from mfpde.methods.base import Method
from mfpde.methods.clusters import Clusters
from mfpde.methods.handover import Handover
from mfpde.methods.particles import Particles
from mfpde.methods.zero_temperature import ZeroTemperature
from mfpde.model import Problem
from mfpde.progress import Report
from mfpde.solver import solve
from mfpde.trajectory import Trajectory
from mfpde.transport import table_wasserstein

FLOW = "flow"


@dataclass(frozen=True)
class Decay:
    """`W ~ e^{-rate t}` fitted by least squares to log W on the times `window`; `error` is the standard error of the rate."""

    rate: float
    error: float
    window: tuple[float, float]

    def __str__(self) -> str:
        return f"{self.rate:.3f} +- {self.error:.3f} on t in [{self.window[0]:.2f}, {self.window[1]:.2f}]"


def fit_decay(times: np.ndarray, distances: np.ndarray) -> Decay | None:
    """The exponent of the first decay of `distances` (k,) at `times` (k,), or None if fewer than four times lie in the window.

    >>> import numpy as np
    >>> t = np.linspace(0, 8, 81)
    >>> fit_decay(t, np.exp(-0.5 * t) + 1e-9).rate.round(3)
    np.float64(0.5)
    """
    if not (distances > 0).all():
        times, distances = times[distances > 0], distances[distances > 0]
    if len(times) < 4:
        return None
    begin = int(np.argmax(distances < 0.9 * distances[0]))
    end = int(np.argmax(distances < 3 * distances.min())) or len(times)
    if end - begin < 4:
        return None
    t, y = times[begin:end], np.log(distances[begin:end])
    (slope, _), covariance = np.polyfit(t, y, 1, cov=True)
    return Decay(-slope, float(np.sqrt(covariance[0, 0])), (float(t[0]), float(t[-1])))


@dataclass(frozen=True)
class Plateau:
    """The smallest distance, when it is reached, and when the law has left again (the distance doubles), if it does."""

    distance: float
    time: float
    departure: float | None

    def __str__(self) -> str:
        left = f"left at t = {self.departure:.2f}" if self.departure is not None else "not left"
        return f"{self.distance:.2e} at t = {self.time:.2f}, {left}"


def find_plateau(times: np.ndarray, distances: np.ndarray) -> Plateau:
    """The plateau of `distances` (k,) over `times` (k,)."""
    best = int(np.argmin(distances))
    leaves = np.flatnonzero(distances[best:] > 2 * distances[best])
    return Plateau(float(distances[best]), float(times[best]), float(times[best + leaves[0]]) if len(leaves) else None)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Distances over time between methods, flow and limit.

    Attributes
    ----------
    trajectories : dict
        One `Trajectory` a method.
    distances : dict
        `distances[a, b][p]` are arrays (k,) over `times`.
    """

    problem: Problem
    times: np.ndarray
    trajectories: dict[str, Trajectory]
    limit: Measure | None
    distances: dict[tuple[str, str], dict[int, np.ndarray]]

    def rows(self, p: int) -> tuple[list[str], np.ndarray]:
        """Column names and the table (k, 1 + pairs) of times and distances W_p."""
        return ["t", *(f"{a}-{b}" for a, b in self.distances)], np.column_stack([self.times, *(d[p] for d in self.distances.values())])

    def __repr__(self) -> str:
        names = ", ".join(self.trajectories)
        lines = [f"Comparison of {names} at {len(self.times)} times{'' if self.limit is None else ', and with the limit'}; distances in radians, at the end:"]
        lines += [f"  {a}-{b}: W1 = {d[1][-1]:.3e}, W2 = {d[2][-1]:.3e}" for (a, b), d in self.distances.items()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from html import escape

        shown = np.unique(np.linspace(0, len(self.times) - 1, 7).astype(int))
        head = "".join(f"<th>t = {self.times[k]:.4g}</th>" for k in shown)
        rows = [(f"W{p} {a}-{b}", d[p][shown]) for (a, b), d in self.distances.items() for p in (1, 2)]
        body = "".join(f"<tr><th style='text-align:left'>{escape(name)}</th>{''.join(f'<td>{v:.2e}</td>' for v in values)}</tr>" for name, values in rows)
        return f"<table><caption>{escape(repr(self.problem))}</caption><thead><tr><th>radians</th>{head}</tr></thead><tbody>{body}</tbody></table>"


def lives_long(method: Method | None) -> bool:
    """Whether a method is made for exponentially long times, which are told in ln t."""
    return isinstance(method, (Clusters, Handover))


def siblings(problem: Problem, method: Method, *, n: int = 2000, seed: int = 0) -> dict[str, Method]:
    """The methods to compare: the given one, random particles, and the exact zero-temperature flow where the spectrum of VA gives a limit.

    Methods for exponentially long times have no sibling among particles, whose steps stay of order one.
    """
    methods: dict[str, Method] = {"pde": method}
    if not lives_long(method):
        methods["particles"] = Particles(n=n, seed=seed)
    if has_limit(problem):
        methods[FLOW] = ZeroTemperature()
    return methods


def has_limit(problem: Problem) -> bool:
    """Whether the zero-temperature limit T_inf # mu_0 exists and differs from mu_0."""
    spectrum = limits.spectrum(problem.attention)
    return spectrum.kind == "real" and not spectrum.singular


def compare(problem: Problem, methods: Mapping[str, Method], times: np.ndarray, *, report: Report | None = None) -> Comparison:
    """Solve `problem` by all `methods` and measure W_1 and W_2 of all pairs, and to the limit, at `times` (k,).

    Cost: the runs, plus 2 k distances a pair. `report(share, name)` is called as the work proceeds.
    """
    trajectories = {}
    for i, (name, method) in enumerate(methods.items()):
        progress = (lambda t, state, i=i, name=name: report((i + t / problem.t_end) / (len(methods) + 1), name)) if report else False
        trajectories[name] = solve(problem, method, save_at=times, progress=progress)
    part = (lambda share, name: report((len(methods) + share) / (len(methods) + 1), name)) if report else None
    return measure_distances(problem, times, trajectories, find_limit(problem), report=part)


def find_limit(problem: Problem) -> Measure | None:
    """The zero-temperature limit T_inf # mu_0, where there is one."""
    return limits.push_forward(problem) if has_limit(problem) else None


def measure_distances(
    problem: Problem, times: np.ndarray, trajectories: Mapping[str, Trajectory], limit: Measure | None, *, report: Report | None = None
) -> Comparison:
    """W_1 and W_2 of all pairs of `trajectories`, which hold the same `times` (k,), and to the `limit`. `report(share, name)` is called after each time."""
    measures = {name: trajectory.measures for name, trajectory in trajectories.items()}
    if limit is not None:
        measures["limit"] = [limit] * len(times)
    distances: dict[tuple[str, str], dict[int, np.ndarray]] = {}
    pairs = list(combinations(measures, 2))
    for i, (a, b) in enumerate(pairs):
        rows = []
        for j, (x, y) in enumerate(zip(measures[a], measures[b], strict=True)):
            rows.append([table_wasserstein(x, y, problem.geometry, p) for p in (1, 2)])
            if report:
                report((i + (j + 1) / len(times)) / len(pairs), f"distance {a}-{b}")
        distances[a, b] = dict(zip((1, 2), np.array(rows).T, strict=True))
    return Comparison(problem, times, dict(trajectories), limit, distances)
