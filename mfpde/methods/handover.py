r"""A whole life in one run: a density until it has gathered in clusters, and from then on the clusters alone.

The first method runs until all mass but a tail lies in arcs narrower than `width`. Then two velocities of these clusters are compared: that of atoms
with all the mass, and that of the law as it is, tails included. When they agree to `influence` the atoms take over. Influence decides, not
mass: what is left between two clusters is nearer to both than they are to each other, and counts e^{beta ...} times its mass.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from mfpde.errors import InputError
from mfpde.geometry import Circle, signed_angle
from mfpde.measure import Measure
from mfpde.methods.base import Method, State
from mfpde.methods.clusters import Clusters, ClustersScheme
from mfpde.methods.lagrangian import Lagrangian
from mfpde.methods.pull import pull
from mfpde.model import Problem

TWO_PI = 2 * np.pi


@dataclass(frozen=True)
class Handover:
    """First a density, then its clusters as atoms, in one trajectory.

    Parameters
    ----------
    first : Method
        `Lagrangian`, or `FiniteVolume` with a `width` of several of its cells.
    then : Clusters
    width : float
        Every cluster must fit into an arc of this many radians, and be at least a kernel width, `(beta |A|)^{-1/2}`, away from the next.
    influence : float
        Largest change of a cluster's velocity that gathering the mass may cause: relative where velocities are exponentially small (`pull.common_turn`),
        else relative to |V|.
    smallest_mass : float
        What gathers less than this is a tail: its mass joins the nearest cluster, barycentre kept.

    Notes
    -----
    `stats` holds the estimate of the error: "hand-over at t", "hand-over moved mass x distance" (its W_1 cost), "hand-over change of velocity" and
    "hand-over mass of tails". The merge time changes by about the second times beta and by the third, relatively. If no hand-over happens by `t_end`
    there are no such entries. Where the top directions of V and V A differ (departures, docs/theory) clusters live on tails: hand over after the departure.

    Examples
    --------
    >>> import mfpde as mf
    >>> problem, _ = mf.cases.two_clusters(beta=6.0, t_end=1e5)
    >>> run = mf.solve(problem, mf.Handover(mf.Lagrangian(cells=64, tol=1e-7)), save_at=[10.0, 1e5])
    >>> len(run.final), bool(run.stats["hand-over moved mass x distance"] < 1e-5)
    (1, True)
    """

    first: Method = field(default_factory=Lagrangian)
    then: Clusters = field(default_factory=Clusters)
    width: float = 1e-5
    influence: float = 1e-6
    smallest_mass: float = 1e-3

    def __post_init__(self) -> None:
        if not isinstance(self.then, Clusters):
            raise InputError(f"Handover ends in Clusters.\n  then = {self.then!r}")
        for name, most in (("width", 1.0), ("influence", 1.0), ("smallest_mass", 0.1)):
            if not 0 < getattr(self, name) <= most:
                raise InputError(f"{name} lies in (0, {most:g}].\n  {name} = {getattr(self, name)!r}")

    def prepare(self, problem: Problem) -> HandoverScheme:
        """Prepare both methods."""
        if not isinstance(problem.geometry, Circle):
            raise InputError(f"Clusters live on the circle.\n  geometry = {problem.geometry!r}\n  Use the first method alone.")
        return HandoverScheme(self, problem)


class Gathered(NamedTuple):
    """Atoms that stand for a law, and what that costs."""

    angles: np.ndarray  # (k,)
    masses: np.ndarray  # (k,)
    moved: float  # sum of mass times distance: a bound of W_1
    change: float  # of a cluster's velocity; see `Handover.influence`
    tail: float  # mass outside the arcs


class HandoverScheme:
    """`Handover` prepared for a problem. A state of the second phase is one that holds `handed_over`."""

    REPORT = ("hand-over at t", "hand-over moved mass x distance", "hand-over change of velocity", "hand-over mass of tails")

    def __init__(self, method: Handover, problem: Problem) -> None:
        self.method, self.problem = method, problem
        self.first = method.first.prepare(problem)
        self.then = ClustersScheme(method.then, problem)
        self.kernel_width = min(0.5, 1 / np.sqrt(max(problem.attention.sharpness, 1e-300)))
        self.report: dict[str, float] = {}

    def initial(self) -> State:
        return self.first.initial()

    def advance(self, state: State) -> State:
        state = self.handed_over(state)
        if "handed_over" not in state.arrays:
            return self.first.advance(state)
        report = state.arrays["handed_over"]
        self.report = dict(zip(self.REPORT, report.tolist(), strict=True))
        after = self.then.advance(self._atoms(state))
        return after._replace(arrays={**after.arrays, "handed_over": report})

    def measure(self, before: State, after: State, time: float) -> Measure:
        if "handed_over" not in after.arrays:
            return self.first.measure(before, after, time)
        return self.then.measure(self._atoms(self.handed_over(before)), self._atoms(after), time)

    @staticmethod
    def _atoms(state: State) -> State:
        return state._replace(arrays={name: array for name, array in state.arrays.items() if name != "handed_over"})

    def handed_over(self, state: State) -> State:
        """The same moment as atoms, if it is time for that; a function of the state alone, so that a run can be continued from anywhere."""
        if "handed_over" in state.arrays:
            return state
        gathered = self.gather(self.first.measure(state, state, state.time))
        if gathered is None or gathered.change > self.method.influence:
            return state
        atoms = self.then.state_of(state.time, gathered.angles, gathered.masses)
        report = np.array([state.time, gathered.moved, gathered.change, gathered.tail])
        return atoms._replace(arrays={**atoms.arrays, "handed_over": report})

    def gather(self, law: Measure) -> Gathered | None:
        """Clusters of a law as atoms, or None if a hundredth of the mass lies outside arcs of the given width, or arcs lie within a kernel width."""
        angles = law.angles()
        order = np.argsort(angles, kind="stable")
        order = order[law.weights[order] > 0]
        angles, weights = angles[order], law.weights[order]
        arcs = self._arcs(angles, weights)
        inside = np.zeros(len(angles), dtype=bool)
        for arc in arcs:
            inside[arc] = True
        tail = float(weights[~inside].sum())
        if not arcs or tail > 0.01:
            return None

        def offset(to: float) -> np.ndarray:
            return signed_angle(angles - to)

        masses = np.array([weights[arc].sum() for arc in arcs])
        seeds = np.array([angles[arc[0]] for arc in arcs])
        seeds = np.array([seed + weights[arc] @ offset(seed)[arc] / mass for seed, arc, mass in zip(seeds, arcs, masses, strict=True)])
        apart = np.diff(np.sort(seeds), append=seeds.min() + TWO_PI)
        if len(arcs) > 1 and apart.min() < max(3 * self.method.width, self.kernel_width):  # one cluster in several arcs, or one that is still forming
            return None
        change = self._change(seeds, masses, angles[~inside], weights[~inside])
        distances = np.array([offset(seed) for seed in seeds])  # (k, n)
        nearest = np.argmin(np.abs(distances), axis=0)
        joined = np.bincount(nearest, weights, len(arcs))
        reach = distances[nearest, np.arange(len(angles))]
        places = seeds + np.bincount(nearest, weights * reach, len(arcs)) / joined
        return Gathered(places % TWO_PI, joined, float(weights @ np.abs(reach)), change, tail)

    def _arcs(self, angles: np.ndarray, weights: np.ndarray) -> list[np.ndarray]:
        """Points of the heaviest arcs of the given width, one after the other, down to the smallest mass."""
        n = len(angles)
        doubled = np.concatenate([angles, angles + TWO_PI])
        end = np.searchsorted(doubled, angles + self.method.width, side="right")
        end = np.minimum(end, np.arange(n) + n)
        left = weights.copy()
        arcs: list[np.ndarray] = []
        while len(arcs) < 1000:
            before = np.concatenate([[0.0], np.cumsum(np.concatenate([left, left]))])
            heaviest = before[end] - before[:n]
            start = int(np.argmax(heaviest))
            if heaviest[start] < self.method.smallest_mass:
                break
            members = np.arange(start, end[start]) % n
            members = members[left[members] > 0]
            arcs.append(members)
            left[members] = 0.0
        return arcs

    def _change(self, angles: np.ndarray, masses: np.ndarray, others: np.ndarray, other_masses: np.ndarray) -> float:
        """Largest change of a cluster's velocity when the tails are there, relative to the velocity itself on the path clock, else to |V|."""
        if not len(others):
            return 0.0
        alone = pull(self.problem.attention, angles, masses)
        together = pull(self.problem.attention, angles, masses, others, other_masses)
        if not self.then.path_clock:
            return float(np.abs(together.velocity - alone.velocity).max() / np.linalg.norm(self.problem.attention.V, 2))
        moving = np.isfinite(together.log_size)
        if not moving.any():
            return 0.0
        with np.errstate(invalid="ignore"):
            grown = np.exp(np.clip(together.log_size[moving] - alone.log_size[moving], -700, 700))
        return float(np.abs(together.sign[moving] * grown - alone.sign[moving]).max())

    def statistics(self) -> dict[str, Any]:
        first = self.first.statistics()
        return first if not self.report else {**{f"first: {name}": value for name, value in first.items()}, **self.report, **self.then.statistics()}
