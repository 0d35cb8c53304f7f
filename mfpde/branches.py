r"""The clusters of a run followed over logarithmic time: branches, and what happens to them.

Definitions, the same for every method:

    cluster      an arc between two valleys of the smoothed law (`diagnostics.clusters`) that holds at least 1e-3 of the mass and whose angle has a standard
                 deviation below twice the `resolution`; atoms of `Clusters` are clusters as they are
    branch       a cluster from one output time to the next, until it merges or dissolves
    merger       several branches that go on as one; ln t to the spacing of the output times, exactly where the method records it (`Clusters`, `Handover`)
    departure    a branch is .3 radians away from where it began, and does not merge while the time doubles: the approach to a merger is no departure

Everything is in ln t, since a metastable state lasts for times like e^{2 beta}, and `life` knows ln t only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mfpde.diagnostics import clusters
from mfpde.errors import InputError
from mfpde.geometry import signed_angle
from mfpde.measure import Measure
from mfpde.methods.cell_measure import has_density
from mfpde.methods.clusters import Life
from mfpde.methods.pull import common_turn
from mfpde.trajectory import Trajectory

TWO_PI = 2 * np.pi
LIGHT = 1e-3  # of the mass: what is less is no cluster
GONE = 0.3  # radians
DOUBLING = float(np.log(2.0))


class Event(NamedTuple):
    """What happened at `log_time`: a "merger" at the angle of the united cluster, with the masses of those it is made of; or a "departure" of one."""

    kind: str
    log_time: float
    angle: float
    masses: tuple[float, ...]


class Branch(NamedTuple):
    """A cluster while it lasts: `log_times` (k,), `angles` (k,) without jumps, `masses` (k,). A merger ends its branches and begins one."""

    log_times: np.ndarray
    angles: np.ndarray
    masses: np.ndarray


class Tree(NamedTuple):
    """All branches and events, in the order of their beginning; `handed_over` is ln t of a hand-over to atoms, where there is one.

    All angles are those in a frame that turns at the rate `turn`, which is not 0 where resting clusters turn alike (V = a I + b J).
    """

    branches: list[Branch]
    events: list[Event]
    handed_over: float | None
    turn: float


class Moment(NamedTuple):
    """The clusters at one time: angles (k,) that increase, masses (k,)."""

    log_time: float
    angles: np.ndarray
    masses: np.ndarray


def follow(run: Trajectory | Life, *, resolution: float | None = None) -> Tree:
    r"""The branches of a run on the circle, and their mergers and departures.

    Parameters
    ----------
    run : Trajectory or Life
        Output times at 0 are left out: they have no logarithm.
    resolution : float, optional
        Radians, see `diagnostics.clusters`. A quarter of the kernel width `(beta |A|)^{-1/2}` and at most .05 when not given; .05 where a trajectory was loaded
        from a file and does not know its problem. For n tokens at least `6 pi / n`, so that sampling noise is no cluster.

    Raises
    ------
    InputError
        If the law does not live on the circle, or has no cluster at any positive output time.

    Notes
    -----
    Clusters are linked to the nearest one at the next output time; where one would receive more mass than it has, by the optimal transport of their masses,
    which keeps their order. Cost of `diagnostics.clusters` at each time. Source: none, the definitions are ours.

    Examples
    --------
    >>> import mfpde as mf
    >>> run = mf.solve(*mf.cases.merge_time(beta=10.0, t_end=1e9), save_at=[1.0, 1e6, 1e9])
    >>> tree = follow(run)
    >>> len(tree.branches), [(event.kind, round(event.log_time, 4), event.masses) for event in tree.events]
    (3, [('merger', 15.6822, (0.6, 0.4))])
    """
    moments = moments_of(run, resolution)
    if not any(len(moment.angles) for moment in moments):
        times = "" if isinstance(run, Life) else f" at any of the {int(np.sum(run.times > 0))} output times after 0"
        raise InputError(f"There are no clusters{times}.\n  run: {run!r}\n  Run it until clusters have formed, save more times, or draw figures.density.")
    recorded = _recorded(run)
    lines: list[_Line] = []
    living: list[_Line] = []
    events: list[Event] = []
    for before, after in zip([Moment(-np.inf, np.empty(0), np.empty(0)), *moments[:-1]], moments, strict=True):
        target = _link(before, after)
        following = []
        for j, (angle, mass) in enumerate(zip(after.angles, after.masses, strict=True)):
            parents = [living[i] for i in np.flatnonzero(target == j)]
            if len(parents) == 1:
                line = parents[0]
            else:
                line = _Line()
                lines.append(line)
            if len(parents) > 1:
                found = _mergers(parents, angle, before.log_time, after.log_time, recorded)
                for parent in parents:
                    parent.add(found[-1].log_time, angle, parent.masses[-1])
                    parent.merges = True
                line.add(found[-1].log_time, angle, mass)
                events += found
            line.add(after.log_time, angle, mass)
            following.append(line)
        living = following
    events += [event for line in lines if (event := line.departure()) is not None]
    return Tree([line.branch() for line in lines], sorted(events, key=lambda event: event.log_time), _handed_over(run), _turn_of(run))


class _Line:
    """A branch that grows."""

    def __init__(self) -> None:
        self.log_times: list[float] = []
        self.angles: list[float] = []
        self.masses: list[float] = []
        self.merges = False

    def add(self, log_time: float, angle: float, mass: float) -> None:
        if self.angles:
            angle = self.angles[-1] + float(signed_angle(angle - self.angles[-1]))
        self.log_times.append(float(log_time))
        self.angles.append(float(angle))
        self.masses.append(float(mass))

    def branch(self) -> Branch:
        return Branch(np.array(self.log_times), np.array(self.angles), np.array(self.masses))

    def departure(self) -> Event | None:
        """The first time at which the branch is away from where it began, unless it merges soon after."""
        gone = np.flatnonzero(np.abs(np.array(self.angles) - self.angles[0]) > GONE)
        if not len(gone):
            return None
        at = int(gone[0])
        soon = self.merges and self.log_times[-1] < self.log_times[at] + DOUBLING
        return None if soon else Event("departure", self.log_times[at], self.angles[at] % TWO_PI, (self.masses[at],))


# ---- the clusters at each time ----------------------------------------------------------------------------------------------------------------------


def moments_of(run: Trajectory | Life, resolution: float | None = None) -> list[Moment]:
    """The clusters of a run at its positive times; see `follow`."""
    if isinstance(run, Life):
        return _path_of(run)
    if run.final.points.shape[1] != 2:
        raise InputError(f"Clusters are followed on the circle.\n  The points of this trajectory live in R^{run.final.points.shape[1]}.")
    atoms_from, turn = _atoms_from(run), _turn_of(run)
    if resolution is None:
        resolution = 0.05
        if run.problem is not None:
            scale = run.problem.attention.sharpness
            resolution = min(0.05, 0.25 / np.sqrt(scale)) if 0 < scale < np.inf else 0.05
    moments = []
    for time, law in zip(run.times, run.measures, strict=True):
        if time > 0:
            angles, masses = _atoms(law) if time >= atoms_from else _arcs(law, resolution)
            angles = (angles - turn * time) % TWO_PI
            order = np.argsort(angles, kind="stable")
            moments.append(Moment(float(np.log(time)), angles[order], masses[order]))
    return moments


def _path_of(story: Life) -> list[Moment]:
    """A life step by step, from a tenth of its length before the first step on: until then all atoms rest.

    A step that multiplies the time by more than e spends that time at its beginning, where pulls are weakest: the atoms are held there until its end.
    """
    end = float(story.path[-1].log_time)
    first = float(story.path[min(1, len(story.path) - 1)].log_time)
    if not np.isfinite(end):  # a single atom, or a balance: nothing ever happens
        return [Moment(0.0, story.path[0].angles, story.path[0].masses)]
    moments = [Moment(first - max(0.1 * (end - first), 1.0), story.path[0].angles, story.path[0].masses)]
    for atoms in story.path[1:]:
        log_time = float(atoms.log_time)
        if log_time > moments[-1].log_time + 1:
            moments.append(moments[-1]._replace(log_time=log_time))
        moments.append(Moment(log_time, atoms.angles, atoms.masses))
    return moments


def _turn_of(run: Trajectory | Life) -> float:
    """The rate at which resting clusters turn; 0 where they do not, or where the trajectory does not know its problem."""
    problem = run.problem
    return 0.0 if problem is None else common_turn(problem.attention) or 0.0


def _atoms_from(run: Trajectory) -> float:
    """From which time on the points of the law are its clusters."""
    method = run.described["method"]
    if method.startswith("Clusters("):
        return 0.0
    return float(run.stats.get("hand-over at t", np.inf)) if method.startswith("Handover(") else np.inf


def _handed_over(run: Trajectory | Life) -> float | None:
    time = None if isinstance(run, Life) else run.stats.get("hand-over at t")
    return float(np.log(time)) if time else None


def _atoms(law: Measure) -> tuple[np.ndarray, np.ndarray]:
    carried = law.weights > 0
    return law.angles()[carried], law.weights[carried]


def _arcs(law: Measure, resolution: float) -> tuple[np.ndarray, np.ndarray]:
    if not has_density(law):
        resolution = max(resolution, 3 * TWO_PI / len(law))
    found = [each for each in clusters(law, resolution=min(resolution, 0.5), min_mass=LIGHT) if each.width < 2 * resolution]
    return np.array([each.centre for each in found]), np.array([each.mass for each in found])


# ---- from one time to the next ----------------------------------------------------------------------------------------------------------------------


def _link(before: Moment, after: Moment) -> np.ndarray:
    """For each cluster before, the index of the one after that it belongs to, or -1; shape (k,)."""
    if not len(before.angles) or not len(after.angles):
        return np.full(len(before.angles), -1)
    distance = np.abs(signed_angle(after.angles[None, :] - before.angles[:, None]))
    nearest = distance.argmin(axis=1)
    received = np.bincount(nearest, before.masses, len(after.angles))
    if (received <= 1.1 * after.masses + LIGHT).all():
        return nearest
    return _transported(before, after)


def _transported(before: Moment, after: Moment) -> np.ndarray:
    """Where most of each cluster goes in the optimal plan between the two laws, each of mass one; the plan keeps the order, so one shift gives it."""
    a, b = before.masses / before.masses.sum(), after.masses / after.masses.sum()
    ends, levels = np.cumsum(a), np.cumsum(b)
    best, cheapest = np.zeros(len(a), dtype=int), np.inf
    for shift in np.unique(np.round((levels[:, None] - ends[None, :]) % 1.0, 12)):
        marks = np.unique(np.concatenate([[0.0, 1.0], ends[:-1], (levels - shift) % 1.0]))
        middle, share = 0.5 * (marks[1:] + marks[:-1]), np.diff(marks)
        i = np.minimum(np.searchsorted(ends, middle), len(a) - 1)
        j = np.minimum(np.searchsorted(levels, (middle + shift) % 1.0), len(b) - 1)
        cost = float(share @ np.abs(signed_angle(after.angles[j] - before.angles[i])))
        if cost < cheapest:
            plan = np.zeros((len(a), len(b)))
            np.add.at(plan, (i, j), share)
            best, cheapest = plan.argmax(axis=1), cost
    return best


def _recorded(run: Trajectory | Life) -> list[tuple[float, float]]:
    """`(ln t, angle)` of the mergers that the method has recorded."""
    if isinstance(run, Life):
        return list(zip(run.log_times.tolist(), run.angles.tolist(), strict=True))
    turn, entries = _turn_of(run), []
    for k in range(1, int(run.stats.get("mergers", 0)) + 1):
        log_time, angle = run.stats[f"ln t of merger {k}"], run.stats[f"angle of merger {k}"]
        entries.append((log_time, (angle - turn * np.exp(log_time)) % TWO_PI if turn else angle))
    return entries


def _mergers(parents: Sequence[_Line], angle: float, earliest: float, latest: float, recorded: list[tuple[float, float]]) -> list[Event]:
    """The mergers that make one cluster of `parents` between two output times, the last one last: as recorded, else one at the later time."""
    masses = [parent.masses[-1] for parent in parents]
    within = [entry for entry in recorded if earliest <= entry[0] <= latest]
    within = sorted(within, key=lambda entry: abs(float(signed_angle(entry[1] - angle))))[: len(parents) - 1]
    if not within:
        return [Event("merger", latest, float(angle), tuple(masses))]
    if len(parents) == 2:
        return [Event("merger", within[0][0], within[0][1], tuple(masses))]
    events, places = [], [parent.angles[-1] for parent in parents]
    for log_time, place in sorted(within):  # several in one interval: the two nearest to each recorded place, one after the other
        near = np.argsort(np.abs(signed_angle(np.array(places) - place)), kind="stable")[:2]
        pair = tuple(masses[i] for i in near)
        events.append(Event("merger", log_time, place, pair))
        masses = [mass for i, mass in enumerate(masses) if i not in near] + [sum(pair)]
        places = [spot for i, spot in enumerate(places) if i not in near] + [place]
    return events
