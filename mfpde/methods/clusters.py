r"""A few weighted atoms, to the end of their life, be it e^{1000000} away.

    x_i' = v_i,      the velocities of `mfpde.methods.pull`

Two clocks. Where all self terms turn alike (`common_turn`) and V attracts, atoms rest but for exponentially small pulls: the clock is the length
of their common path, `d eta = |pull| dt` in the turning frame, and the time comes from

    t = int d eta / |pull|      by Gauss-Legendre sums of logarithms, as ln t

which never overflows. Otherwise velocities are of order one until the atoms rest, and the clock is the time itself. Atoms that come closer than
`merge_distance` are united in their barycentre.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mfpde.errors import InputError, NumericalError
from mfpde.geometry import Circle
from mfpde.initial import Atoms
from mfpde.measure import Measure
from mfpde.methods.base import State
from mfpde.methods.pull import common_turn, pull
from mfpde.model import Attention, Problem
from mfpde.stages import Stages
from mfpde.stepping import dormand_prince, next_step

TWO_PI = 2 * np.pi
GAUSS_NODES, GAUSS_WEIGHTS = np.polynomial.legendre.leggauss(12)
LARGEST_TIME = float(np.finfo(float).max)


@dataclass(frozen=True)
class Clusters:
    """Finitely many atoms on the circle, with mergers, over exponentially long times.

    Parameters
    ----------
    tol : float
        Local error of a step in radians.
    merge_distance : float
        Atoms closer than this and closing in become one at their barycentre. The time of a merger is the time at which they reach this distance.

    Notes
    -----
    `solve` runs to `t_end` up to about 1e300. Beyond that, and for the list of mergers alone, use `life(problem, method)`, which knows ln t only.
    In a turning frame (`V = a I + b J`) the angle b t of the whole picture is lost to round-off once t passes 1e16; distances stay right.
    Cost a step: about a hundred k x k tables for k atoms. Mergers are in `stats`: their number, the ln t and the angle of each.
    Exactly balanced atoms (a regular polygon, an antipodal pair) rest, stable or not.

    Examples
    --------
    >>> import mfpde as mf
    >>> two = mf.initial.atoms(mf.Circle().points([0.0, 2.5]), [0.5, 0.5])
    >>> problem = mf.Problem(mf.Attention.identity(2, beta=100), mf.Circle(), two, t_end=1e80)
    >>> run = mf.solve(problem, mf.Clusters(), save_at=[1e70, 1e77, 1e80])
    >>> [len(law) for law in run.measures], round(run.stats["ln t of merger 1"], 6)
    ([2, 1, 1], 175.801191)
    """

    tol: float = 1e-11
    merge_distance: float = 1e-6

    def __post_init__(self) -> None:
        if not 1e-14 <= self.tol <= 1e-3:
            raise InputError(f"tol lies between 1e-14 and 0.001 radians.\n  tol = {self.tol!r}")
        if not 1e-13 <= self.merge_distance <= 0.1:
            raise InputError(f"merge_distance lies between 1e-13 and 0.1 radians.\n  merge_distance = {self.merge_distance!r}")

    def prepare(self, problem: Problem) -> ClustersScheme:
        """Check that the initial law consists of atoms on the circle."""
        if not isinstance(problem.geometry, Circle):
            raise InputError(f"Clusters live on the circle.\n  geometry = {problem.geometry!r}\n  Use Particles.")
        if not isinstance(problem.initial, Atoms):
            raise InputError(f"Clusters start from atoms.\n  initial law: {problem.initial!r}\n  Use Lagrangian, or Handover from Lagrangian to Clusters.")
        scheme = ClustersScheme(self, problem)
        scheme.start = problem.initial.measure
        return scheme


class Atomic(NamedTuple):
    """k atoms and what happened to them."""

    angles: np.ndarray  # (k,) increasing, within one turn; in the turning frame where there is one
    masses: np.ndarray  # (k,)
    log_time: np.ndarray  # () ln t
    mergers: np.ndarray  # (number, 4): ln t, angle, masses of the two


class ClustersScheme:
    """`Clusters` prepared for a problem."""

    start: Measure

    def __init__(self, method: Clusters, problem: Problem) -> None:
        if problem.attention.beta == np.inf:
            raise InputError("At beta = inf atoms see nothing but the maximiser of their score.\n  Use Particles or ZeroTemperature.")
        self.method, self.problem = method, problem
        self.head: Attention = problem.attention
        turn = common_turn(problem.attention)
        self.path_clock = turn is not None and self.head.V.trace() > 0
        self.turn = turn if self.path_clock and turn is not None else 0.0
        self.stages = Stages()
        self.steps = self.rejected = 0
        self.mergers = np.empty((0, 4))

    def initial(self) -> State:
        carried = self.start.weights > 0
        return self.state_of(0.0, self.start.angles()[carried], self.start.weights[carried])

    def state_of(self, time: float, angles: np.ndarray, masses: np.ndarray) -> State:
        """The state of atoms at `angles` with `masses` at `time`."""
        angles = (angles - self.turn * time) % TWO_PI
        order = np.argsort(angles, kind="stable")
        with np.errstate(divide="ignore"):
            atoms = Atomic(angles[order], masses[order], np.log(np.asarray(time, dtype=float)), np.empty((0, 4)))
        first_step = 0.1 if self.path_clock else 0.1 / max(float(np.linalg.norm(self.head.V, 2)), 1e-300)
        return State(time, first_step, self._merged(atoms)._asdict())

    # --- the field on either clock ---------------------------------------------------------------

    def field(self, masses: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """Change of the angles by unit of the clock, as a function of the angles."""

        def along_path(angles: np.ndarray) -> np.ndarray:
            force = pull(self.head, angles, masses)
            norm = log_norm(force.log_size)
            return force.sign * np.exp(force.log_size - norm) if norm > -np.inf else np.zeros(len(angles))

        def in_time(angles: np.ndarray) -> np.ndarray:
            return pull(self.head, angles, masses).velocity

        return along_path if self.path_clock else in_time

    def log_speed(self, angles: np.ndarray, masses: np.ndarray) -> float:
        """Logarithm of the length of path by unit of time."""
        return log_norm(pull(self.head, angles, masses).log_size)

    # --- one step ----------------------------------------------------------------------------------

    def step(self, atoms: Atomic, size: float) -> tuple[Atomic, float, float]:
        """`(atoms after, size used, next size)`: one step, cut short where the first pair reaches the distance at which it merges."""
        x, m = atoms.angles, atoms.masses
        field = self.field(m)
        slope = field(x)
        closing, gap = -_gaps(slope, 0.0), _gaps(x, TWO_PI)
        merge = self.method.merge_distance
        with np.errstate(divide="ignore", invalid="ignore"):
            contact = np.where(closing > 0, (gap - 0.5 * merge) / closing, np.inf)  # no pair may pass through itself
        limit = float(contact.min(initial=np.inf)) if len(x) > 1 else np.inf
        size = min(size, limit)
        while True:
            moved, _, error = dormand_prince(field, x, slope, size)
            excess = float(np.abs(error).max()) / self.method.tol
            if excess <= 1 and (len(x) < 2 or _gaps(moved, TWO_PI).min() > 0):
                break
            self.rejected += 1
            size = next_step(size, max(excess, 2.0))
            if size < 1e-15 * (1.0 if self.path_clock else max(float(np.exp(atoms.log_time)), 1e-300)):
                raise NumericalError(
                    f"The step of the clusters collapsed at ln t = {float(atoms.log_time):.6g}.\n"
                    f"  step = {size:.3g}, local error {excess:.3g} tol.\n  Raise tol."
                )
        self.steps += 1
        following = next_step(size, excess)
        close = closing > 0
        if len(x) > 1 and (_gaps(moved, TWO_PI)[close] < merge).any():
            size = self._until_contact(field, x, slope, size, close)
            moved = dormand_prince(field, x, slope, size)[0]
        if self.path_clock:
            log_time = self.log_time_after(atoms, slope, size)
        else:
            log_time = float(np.log(np.exp(atoms.log_time) + size))
        return self._merged(atoms._replace(angles=moved, log_time=np.asarray(log_time))), size, following

    def _until_contact(self, field: Callable[[np.ndarray], np.ndarray], x: np.ndarray, slope: np.ndarray, size: float, close: np.ndarray) -> float:
        """The part of a step after which the nearest closing pair is exactly `merge_distance` apart."""
        from scipy.optimize import brentq

        def excess(part: float) -> float:
            moved = x if part == 0 else dormand_prince(field, x, slope, part)[0]
            return float(_gaps(moved, TWO_PI)[close].min() / self.method.merge_distance - 1)

        return size if excess(0.0) <= 0 else float(brentq(excess, 0.0, size, xtol=1e-13 * size, rtol=4 * np.finfo(float).eps))

    def _merged(self, atoms: Atomic) -> Atomic:
        """Closing pairs at the distance of a merger united in their barycentre; barycentre and mass are kept."""
        x, m, mergers = atoms.angles.copy(), atoms.masses.copy(), atoms.mergers
        touching = self.method.merge_distance * (1 + 1e-9)
        while len(x) > 1:
            gap, closing = _gaps(x, TWO_PI), -_gaps(self.field(m)(x), 0.0)
            pairs = np.flatnonzero((gap <= touching) & ((closing >= 0) | (gap == 0)))
            if not len(pairs):
                break
            i = int(pairs[0])
            j = (i + 1) % len(x)
            total = m[i] + m[j]
            place = x[i] + gap[i] * m[j] / total
            mergers = np.vstack([mergers, [float(atoms.log_time), place % TWO_PI, m[i], m[j]]])
            x[i], m[i] = place, total
            x, m = np.delete(x, j), np.delete(m, j)
            order = np.argsort(x, kind="stable")
            x, m = x[order], m[order]
        return atoms._replace(angles=x, masses=m, mergers=mergers)

    # --- the time on the path clock --------------------------------------------------------------------

    def log_time_after(self, atoms: Atomic, slope: np.ndarray, size: float) -> float:
        """ln t after a path of length `size`: the logarithm of `t + int d eta / |pull|`.

        Intervals on which the speed changes by more than e^2 are halved; those that cannot add e^-42 of the sum are left with what they have.
        """
        field, m = self.field(atoms.masses), atoms.masses

        def log_speed(part: float) -> float:
            moved = atoms.angles if part == 0 else dormand_prince(field, atoms.angles, slope, part)[0]
            return self.log_speed(moved, m)

        log_time = float(atoms.log_time)
        todo = [(0.0, size, log_speed(0.0), log_speed(size))]
        while todo:
            left, right, speed_left, speed_right = todo.pop()
            middle, half = 0.5 * (left + right), 0.5 * (right - left)
            speed_middle = log_speed(middle)
            speeds = (speed_left, speed_middle, speed_right)
            if max(speeds) - min(speeds) > 2 and half > 1e-13 * size and np.log(2 * half) - min(speeds) > log_time - 42:
                halves = [(left, middle, speed_left, speed_middle), (middle, right, speed_middle, speed_right)]
                todo += halves if speed_left > speed_right else halves[::-1]  # the slower half first: it settles what the faster may omit
                continue
            terms = [np.log(half * w) - log_speed(middle + half * g) for g, w in zip(GAUSS_NODES, GAUSS_WEIGHTS, strict=True)]
            log_time = float(np.logaddexp.reduce([log_time, *terms]))
        return log_time

    # --- the contract -----------------------------------------------------------------------------------

    def at_rest(self, atoms: Atomic) -> bool:
        """Whether nothing will move any more on the path clock."""
        return self.path_clock and (len(atoms.angles) < 2 or not np.isfinite(self.log_speed(atoms.angles, atoms.masses)))

    def advance(self, state: State) -> State:
        """Steps until the time has grown in double precision: near a merger late in life many steps together take less than its round-off."""
        atoms, size = Atomic(**state.arrays), state.step
        while True:
            if self.at_rest(atoms):
                return State(2 * max(self.problem.t_end, state.time, 1e-300), size, atoms._asdict())
            with self.stages("step"):
                atoms, used, size = self.step(atoms, size if self.path_clock else min(size, max(self.problem.t_end, 1e-300)))
            self.mergers = atoms.mergers
            time = _exp(float(atoms.log_time)) if self.path_clock else state.time + used
            if time > state.time:
                return State(time, size, atoms._asdict())
            if time == LARGEST_TIME:
                raise NumericalError("Double precision ends here: t = 1.8e308.\n  Use mfpde.methods.clusters.life(problem), which counts in ln t.")

    def measure(self, before: State, after: State, time: float) -> Measure:
        """The atoms at a time within the last step, on the same path."""
        if time >= after.time or before.time == after.time:
            return self._measure_of(Atomic(**after.arrays), time)
        atoms, size = Atomic(**before.arrays), before.step
        if time <= before.time or self.at_rest(atoms):
            return self._measure_of(atoms, time)
        if not self.path_clock:
            field = self.field(atoms.masses)
            moved = dormand_prince(field, atoms.angles, field(atoms.angles), time - before.time)[0]
            return self._measure_of(atoms._replace(angles=moved), time)
        steps, rejected = self.steps, self.rejected
        while True:
            following, used, next_size = self.step(atoms, size)
            if _exp(float(following.log_time)) >= time:
                break
            atoms, size = following, next_size
            if self.at_rest(atoms):
                break
        self.steps, self.rejected = steps, rejected  # a replay is no step
        return self._measure_of(atoms if self.at_rest(atoms) else self._within(atoms, used, time), time)

    def _within(self, atoms: Atomic, size: float, time: float) -> Atomic:
        """The atoms at `time` within a step of length `size` on the path."""
        from scipy.optimize import brentq

        field = self.field(atoms.masses)
        slope = field(atoms.angles)

        def late(part: float) -> float:
            log_time = float(atoms.log_time) if part == 0 else self.log_time_after(atoms, slope, part)
            return max(log_time - np.log(time), -1e3)

        if late(size) <= 0:
            part = size
        else:
            part = float(brentq(late, 0.0, size, xtol=1e-14 * size, rtol=4 * np.finfo(float).eps, maxiter=200))
        moved = atoms.angles if part == 0 else dormand_prince(field, atoms.angles, slope, part)[0]
        return atoms._replace(angles=moved)

    def _measure_of(self, atoms: Atomic, time: float) -> Measure:
        return Measure(Circle().points(atoms.angles + self.turn * time), atoms.masses)

    def statistics(self) -> dict[str, Any]:
        return {
            "steps": self.steps,
            "rejected steps": self.rejected,
            "mergers": len(self.mergers),
            **{f"ln t of merger {k + 1}": float(merger[0]) for k, merger in enumerate(self.mergers)},
            **{f"angle of merger {k + 1}": float((merger[1] + self.turn * min(_exp(merger[0]), 1e300)) % TWO_PI) for k, merger in enumerate(self.mergers)},
            **{f"seconds in {stage}": seconds for stage, seconds in self.stages.seconds.items()},
        }


class Life(NamedTuple):
    """The mergers of a law of atoms, in their order, and the path in between; `mfpde.figures.cluster_tree` draws it.

    `log_times` (r,), `angles` (r,) of the united atoms (in the turning frame), `masses` (r, 2) of the two; `left` atoms remain and rest, or turn together.
    `path` holds the atoms after each step of the life of `problem`.
    """

    log_times: np.ndarray
    angles: np.ndarray
    masses: np.ndarray
    left: int
    path: list[Atomic]
    problem: Problem


def life(problem: Problem, method: Clusters | None = None, *, most_steps: int = 100_000) -> Life:
    """All mergers of the atoms of `problem`, whatever their time: `ln t` may be 1e6 and more. `problem.t_end` plays no role.

    Raises
    ------
    InputError
        If atoms do not rest in a common frame (V is not `a I + b J` with a > 0): then there is no exponentially long time, use `solve`.
    NumericalError
        If `most_steps` steps do not finish it.

    Examples
    --------
    >>> import mfpde as mf
    >>> four = mf.initial.atoms(mf.Circle().points([0.1, 1.3, 2.9, 4.6]), [0.3, 0.3, 0.25, 0.15])
    >>> story = life(mf.Problem(mf.Attention.identity(2, beta=1e6), mf.Circle(), four, t_end=1))
    >>> story.log_times.round(-1), story.left
    (array([ 637630., 1128830., 1881650.]), 1)
    """
    scheme = (method or Clusters()).prepare(problem)
    if not scheme.path_clock:
        raise InputError(f"These atoms move at rates of order one.\n  V = {problem.attention.V.tolist()}\n  Use solve(problem, Clusters()).")
    state = scheme.initial()
    atoms, size = Atomic(**state.arrays), state.step
    path = [atoms]
    for _ in range(most_steps):
        if scheme.at_rest(atoms):
            return Life(atoms.mergers[:, 0], atoms.mergers[:, 1], atoms.mergers[:, 2:], len(atoms.angles), path, problem)
        atoms, _, size = scheme.step(atoms, size)
        path.append(atoms)
    raise NumericalError(
        f"{most_steps} steps do not finish this life.\n  {len(atoms.angles)} atoms are left at ln t = {float(atoms.log_time):.6g}.\n  Raise most_steps."
    )


def log_norm(log_sizes: np.ndarray) -> float:
    """`log |p|` of a vector p given by the logarithms of its absolute entries."""
    return 0.5 * float(np.logaddexp.reduce(2 * log_sizes))


def _gaps(values: np.ndarray, turn: float) -> np.ndarray:
    """Differences of neighbours, the last one back to the first after `turn`."""
    return np.diff(values, append=values[:1] + turn)


def _exp(log_time: float) -> float:
    return float(np.exp(log_time)) if log_time < np.log(LARGEST_TIME) else LARGEST_TIME
