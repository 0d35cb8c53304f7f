r"""Moving cells on the circle: the density followed along the flow, clusters as sharp as they get.

    X' = v(X),     (log rho)' = -dv/dtheta,     cell masses fixed,     v = <e, V m>,   e = (-sin, cos)

    dv/dtheta = -<x, V m> + beta <e, V Cov A e>,     Cov the attention covariance at x

No step limit from the mesh: the error of a Dormand-Prince step and the contraction of the flow (rate at most |V| towards a cluster) rule it.
Cells are halved where they stretch or where the density varies by too much across them, united where they are squeezed and light,
and condensed into atoms where they get narrower than `atom_width` (`mfpde.methods.moving_cells`). Derived and measured in docs/moving_cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mfpde import attention
from mfpde.errors import InputError, NumericalError
from mfpde.geometry import Circle
from mfpde.initial import CircleLaw
from mfpde.methods.base import State
from mfpde.methods.cell_measure import CellMeasure
from mfpde.methods.importance import log_attention_received
from mfpde.methods.moving_cells import FAINTEST, TWO_PI, Cells, condensed, density, divided, end_masses, mass_before, node_density, quadrature, without
from mfpde.model import Attention, Problem
from mfpde.stages import Stages
from mfpde.stepping import dormand_prince, next_step


@dataclass(frozen=True)
class Lagrangian:
    """Cells that carry their mass and move with the flow (circle only).

    Parameters
    ----------
    cells : int
        Cells at the start; later there are a few times as many, where clusters and their tails need them. Order 4 is clean once
        `beta |A| (2 pi / cells)^2 <= 0.05`; the time of a departure takes 0.7 (docs/moving_cells).
    tol : float
        Local error of a step in radians at nodes that matter, and tolerance of the attention sums.
    importance_cut : float, optional
        Parts of the density whose logarithm of importance (their mass, times the attention they receive if that is more than one) lies below this are
        emptied: they become holes, and their mass joins the heaviest cell. When not given, `importance_cut_for`: -32, less where clusters attend what lies
        off themselves.
    atom_width : float
        Cells squeezed into this many radians become an atom; W_1 changes by less than half of it.

    Notes
    -----
    Fourth order in W_1 while smooth and after (docs/moving_cells). Cost a step: seven attention sums with covariance over a few times `cells` nodes.
    Memory O(cells). The result is a `CellMeasure`: a quadrature that also knows its density and distribution function everywhere.
    `stats["unresolved cells"]` counts, at the last step, important cells whose end densities promise more than nine tenths of their mass, and
    `stats["crossed nodes"]` those that met to round-off inside a cluster and were dropped;
    `stats["mass moved out of voids"]` is the mass of all holes, at most half a turn away from where it was.

    Examples
    --------
    >>> import mfpde as mf
    >>> problem, _ = mf.cases.poisson(r=0.3, t_end=2.0)
    >>> run = mf.solve(problem, mf.Lagrangian(cells=64))
    >>> r = np.sqrt(0.09 * np.exp(2) / (0.91 + 0.09 * np.exp(2)))
    >>> peak = run.final.density_at(np.array([[1.0, 0.0]]))[0]
    >>> bool(abs(peak / ((1 + r) / (1 - r) / (2 * np.pi)) - 1) < 1e-5)
    True
    """

    cells: int = 256
    tol: float = 1e-10
    importance_cut: float | None = None
    atom_width: float = 1e-6

    def __post_init__(self) -> None:
        if not (isinstance(self.cells, (int, np.integer)) and self.cells >= 8):
            raise InputError(f"Lagrangian needs a whole number of at least 8 cells.\n  cells = {self.cells!r}")
        if not 1e-13 <= self.tol <= 1e-2:
            raise InputError(f"tol lies between 1e-13 and 0.01.\n  tol = {self.tol!r}")
        if self.importance_cut is not None and not self.importance_cut < 0:
            raise InputError(
                f"importance_cut is the logarithm of a small mass.\n  importance_cut = {self.importance_cut!r}\n  Give a negative number, e.g. -32."
            )
        if not 1e-11 <= self.atom_width <= 1e-2:
            raise InputError(f"atom_width lies between 1e-11 and 0.01 radians.\n  atom_width = {self.atom_width!r}")

    def prepare(self, problem: Problem) -> LagrangianScheme:
        """Check that the problem lives on the circle, at positive temperature, with a density."""
        if not isinstance(problem.geometry, Circle):
            raise InputError(f"Moving cells live on the circle.\n  geometry = {problem.geometry!r}\n  Use FiniteVolume or Particles.")
        if problem.attention.beta == np.inf:
            raise InputError("At beta = inf the velocity has no attention covariance.\n  Use ZeroTemperature, which is exact there.")
        if not isinstance(problem.initial, CircleLaw):
            raise InputError(f"Moving cells start from a density.\n  initial law: {problem.initial!r}\n  Use Clusters or Particles for atoms.")
        return LagrangianScheme(self, problem)


def importance_cut_for(head: Attention) -> float:
    """`-32 - beta depth`, at least -600: the faintest mass that still counts today, and how much fainter it may be while it still holds a cluster back.

    A cluster at u, where tokens gather, attends the direction A u. Mass e^{-m} that lies there outweighs the cluster as long as
    `m < beta depth`, `depth = |A u| - <A u, u>` (docs/theory, departures). Where tokens gather at no fixed place the largest depth on the circle counts.
    """
    values, vectors = np.linalg.eig(head.drift)
    top = int(np.argmax(values.real))
    if abs(values[top].imag) > 1e-12 * abs(values[top]):
        angles = np.linspace(0, TWO_PI, 720, endpoint=False)
        x = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    else:
        x = vectors[:, top].real[None] / np.linalg.norm(vectors[:, top].real)
    attended = x @ head.A.T
    depth = float((np.linalg.norm(attended, axis=1) - np.sum(attended * x, axis=1)).max())
    return max(-32.0 - head.beta * max(depth, 0.0), -600.0)


def arc_masses(law: CircleLaw, edges: np.ndarray) -> np.ndarray:
    """Mass between neighbouring angles of an increasing list that spans less than 2 pi, the last arc back to the first; shape (n,).

    Gauss-Legendre per arc keeps the relative accuracy of faint tails, which differences of the distribution function lose; these serve at jumps.
    """
    x, w = np.polynomial.legendre.leggauss(12)
    ends = np.append(edges, edges[0] + TWO_PI)
    half = 0.5 * np.diff(ends)
    places = ends[:-1, None] + half[:, None] * (1 + x)
    by_rule = half * (law.density(Circle().points(places.ravel())).reshape(places.shape) @ w)
    lifted = law.cumulative(ends % TWO_PI) + np.floor(ends / TWO_PI)
    by_difference = np.maximum(np.diff(lifted), 0.0)
    return np.where(np.abs(by_rule - by_difference) <= 1e-13, by_rule, by_difference)


class Field:
    """The velocity field of a law, and its derivative, at given angles."""

    def __init__(self, head: Attention, tol: float) -> None:
        self.head, self.tol = head, tol
        self.geometry = Circle()
        self.served: dict[str, int] = {}

    def __call__(self, targets: np.ndarray, angles: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """`(v, dv/dtheta, log Z)` at the angles `targets` (m,), of the law `weights` at `angles`."""
        operator = attention.plan(self.head, self.geometry, self.geometry.points(angles), self.geometry.points(targets), tol=self.tol)
        log_z, mean, covariance = operator.moments(weights)
        for tier, count in operator.tiers.items():
            self.served[tier] = self.served.get(tier, 0) + count
        x = operator.targets
        e = np.stack([-x[:, 1], x[:, 0]], axis=1)
        value = mean @ self.head.V.T
        spread = self.head.beta * np.einsum("ni,nij,nj->n", e @ self.head.V, covariance, e @ self.head.A.T)
        return np.sum(e * value, axis=1), spread - np.sum(x * value, axis=1), log_z


class LagrangianScheme:
    """`Lagrangian` prepared for a problem."""

    LARGEST_STRETCH = 0.4  # no cell that matters may change its width by more than this many e-folds in a step
    SMALLEST_STEP = 1e-12
    FIDELITY = 1e-4  # how well a united cell gives back its two masses: relative, times steepest^3

    def __init__(self, method: Lagrangian, problem: Problem) -> None:
        self.method, self.problem = method, problem
        self.cut = method.importance_cut if method.importance_cut is not None else importance_cut_for(problem.attention)
        self.width = TWO_PI / method.cells  # of a cell at the start
        self.widest = 1.6 * self.width
        self.steepest = 60 / method.cells  # the largest change of log-density across a cell: coarser cores misplace their cluster
        self.scaled_A = problem.attention.beta * problem.attention.A
        self.field = Field(problem.attention, method.tol)
        self.longest_step = max(problem.t_end, 1e-300)
        self.unit = 1 / max(float(np.linalg.norm(problem.attention.V, 2)), 1e-300)  # of time: no rate of contraction or growth is much larger than |V|
        self.stages = Stages()
        self.steps = self.rejected = self.crossed = self.unresolved = 0
        self.emptied = 0.0
        self.most_nodes = 0

    def initial(self) -> State:
        """Equal cells, halved by the exact law until the density varies little across each."""
        law = self.problem.initial
        assert isinstance(law, CircleLaw)
        edges = self.width * np.arange(self.method.cells)
        while True:
            L = self._initial_log_density(edges)
            widths = np.diff(edges, append=edges[0] + TWO_PI)
            visible = np.maximum(L, self.cut)  # a density below e^cut is not refined
            cells = Cells(edges, L, arc_masses(law, edges), np.empty(0), np.empty(0))
            steep = np.abs(np.roll(visible, -1) - visible) > self.steepest
            middles = edges + 0.5 * widths
            left_halves = arc_masses(law, np.sort(np.concatenate([edges, middles])))[::2]
            promised = mass_before(cells, np.arange(len(edges)), np.full(len(edges), 0.5))
            hides = np.abs(promised - left_halves) > 10 / 384 * self.steepest**3 * np.maximum(cells.masses, np.exp(self.cut))  # a jump or a bump
            wanted = (steep | hides) & (widths > self.method.atom_width / 8)
            if not wanted.any():
                break
            edges = np.sort(np.concatenate([edges, middles[wanted]]))
        return self._state(0.0, 0.1 * self.unit, cells)

    def _initial_log_density(self, angles: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.maximum(np.log(self.problem.initial.density(Circle().points(angles))), -700.0)

    @staticmethod
    def _state(time: float, step: float, cells: Cells) -> State:
        return State(time, step, cells._asdict())

    @staticmethod
    def cells(state: State) -> Cells:
        """The cells a state holds."""
        return Cells(**state.arrays)

    def tendency(self, cells: Cells) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """`(X', L', atoms', log Z at nodes and atoms)`."""
        targets = np.concatenate([cells.nodes, cells.atoms])
        angles, weights = quadrature(cells)
        with self.stages("attention"):
            v, slope, log_z = self.field(targets, angles, weights)
        n = len(cells.nodes)
        return v[:n], -slope[:n], v[n:], log_z

    def _pack(self, cells: Cells) -> np.ndarray:
        return np.concatenate([cells.nodes, cells.log_density, cells.atoms])

    def _unpack(self, cells: Cells, x: np.ndarray) -> Cells:
        n = len(cells.nodes)
        return cells._replace(nodes=x[:n], log_density=x[n : 2 * n], atoms=x[2 * n :])

    def step(self, cells: Cells, slope: np.ndarray, size: float) -> tuple[Cells, np.ndarray]:
        """`(cells after, error estimate)` of one Dormand-Prince step, before any division."""

        def right_hand_side(x: np.ndarray) -> np.ndarray:
            return np.concatenate(self.tendency(self._unpack(cells, x))[:3])

        after, _, error = dormand_prince(right_hand_side, self._pack(cells), slope, size)
        return self._unpack(cells, after), error

    def importance(self, cells: Cells, log_z: np.ndarray) -> np.ndarray:
        """At the nodes, log of the factor by which their mass matters, at least 0, shape (n,)."""
        n = len(cells.nodes)
        if not n:
            return np.empty(0)
        near = 0.5 * (cells.masses + np.roll(cells.masses, 1))
        with self.stages("importance"):
            log_masses = np.log(np.maximum(np.concatenate([near, cells.atom_masses]), 1e-300))
            points = Circle().points(np.concatenate([cells.nodes, cells.atoms]))
            return log_attention_received(points, log_masses, log_z, self.scaled_A)[:n]

    def advance(self, state: State) -> State:
        cells = self.cells(state)
        n = len(cells.nodes)
        v, dL, v_atoms, log_z = self.tendency(cells)
        factor = self.importance(cells, log_z)
        log_importance = cells.log_density + np.log(self.width) + factor
        # what weighs less than tol does not limit the stretch; what is faint needs its place to 100 tol, for a tail that is misplaced may be attended later
        heavy = log_importance > np.log(self.method.tol)
        rate = max(float(np.abs(dL[heavy]).max(initial=0.0)), 1e-3 / self.unit)
        size = min(state.step, self.LARGEST_STRETCH / rate, self.longest_step)
        slope = np.concatenate([v, dL, v_atoms])
        care = np.where(log_importance > self.cut, np.maximum(np.exp(np.minimum(0.5 * log_importance, 0.0)), 1e-2), 0.0)
        # an error of L shifts mass inside a cell only: it counts with the width of a cell
        scale = np.concatenate([care, self.width * care, np.ones(len(v_atoms))]) / self.method.tol
        while True:
            with self.stages("step"):
                after, error = self.step(cells, slope, size)
            excess = float((np.abs(error) * scale).max(initial=0.0))
            gaps = after.widths
            overlap = n > 0 and float(gaps.min()) < -1e-12
            if excess <= 1 and not overlap:
                break
            self.rejected += 1
            size = 0.5 * size if overlap and excess <= 1 else next_step(size, excess)
            if size < self.SMALLEST_STEP * self.unit:
                raise NumericalError(
                    f"The time step of the moving cells collapsed at t = {state.time:.6g}.\n"
                    f"  step = {size:.3g}, local error {excess:.3g} tol, narrowest cell {gaps.min():.3g}.\n  Take more cells, or raise tol."
                )
        self.steps += 1
        with self.stages("division and union"):
            after = self.regrid(after, factor)
        self.most_nodes = max(self.most_nodes, len(after.nodes))
        return self._state(state.time + size, min(next_step(size, excess), self.longest_step), after)

    def regrid(self, cells: Cells, factor: np.ndarray) -> Cells:
        """Divide, unite and condense cells; `factor` (n,) is the importance of mass at the nodes."""
        cells, factor = self._uncrossed(cells, factor)
        start, known = cells.nodes, factor
        for _ in range(8):
            wanted = self._to_divide(cells, factor)
            if not wanted.any():
                break
            cells = divided(cells, np.flatnonzero(wanted))
            factor = np.interp(cells.nodes, start, known)
        for _ in range(2):
            drop = self._to_unite(cells, factor)
            if not drop.any():
                break
            cells, factor = without(cells, drop), factor[~drop]
        cells = self._emptied(cells, factor)
        _, _, limited = end_masses(cells) if len(cells.nodes) else (0, 0, np.empty(0, dtype=bool))
        if len(limited):
            relevant = np.log(np.maximum(cells.masses, 1e-300)) > self.cut
            self.unresolved = int((limited & relevant).sum())
        return condensed(cells, self.method.atom_width)

    def _emptied(self, cells: Cells, factor: np.ndarray) -> Cells:
        """Cells below the cut become holes and their mass joins the heaviest cell: what is not refined is not resolved, and must not be attended later.

        A cell of the void keeps its mass but loses the place of it. As long as nobody attends it that is harmless; a cluster that leaves its place looks back
        into its void, and would be held by mass that is not there (docs/moving_cells).
        """
        if not len(cells.nodes):
            return cells
        loudest = np.maximum(factor, np.roll(factor, -1)) + np.log(np.maximum(cells.masses, 1e-300))
        ends = cells.log_density + factor + np.log(self.width)
        void = (cells.masses < FAINTEST) | ((loudest < self.cut) & (np.maximum(ends, np.roll(ends, -1)) < self.cut))
        void &= np.arange(len(void)) != int(np.argmax(cells.masses))
        moved = float(cells.masses[void].sum())
        if moved > 0:
            masses = np.where(void, 0.0, cells.masses)
            masses[int(np.argmax(masses))] += moved
            self.emptied += moved
            cells = cells._replace(masses=masses)
        idle = void & np.roll(void, 1)  # a node between two holes carries nothing
        return without(cells, idle) if idle.any() else cells

    def _uncrossed(self, cells: Cells, factor: np.ndarray) -> tuple[Cells, np.ndarray]:
        """Without the nodes that met their right neighbour to round-off, which happens inside clusters only."""
        if len(cells.nodes) < 2:
            return cells, factor
        met = cells.widths <= 0
        if not met.any():
            return cells, factor
        self.crossed += int(met.sum())
        met = np.roll(met, 1)  # the right one of each pair goes
        met[0] = False
        return without(cells, met)._replace(nodes=np.maximum.accumulate(cells.nodes[~met])), factor[~met]

    def _to_divide(self, cells: Cells, factor: np.ndarray) -> np.ndarray:
        """Cells that are too wide, across which a density that matters varies too much, or that hide a dip."""
        if not len(cells.nodes):
            return np.zeros(0, dtype=bool)
        h, L = cells.widths, cells.log_density
        visible = np.maximum(L, self.cut - factor - np.log(self.width))
        steep = np.abs(np.roll(visible, -1) - visible) > self.steepest
        log_importance = L + factor + np.log(self.width)
        matters = np.maximum(log_importance, np.roll(log_importance, -1)) > self.cut
        density = node_density(cells)
        right = np.roll(density, -1)
        promised = h / 6 * (density + right + 4 * np.sqrt(density * right))
        dip = matters & (promised > 1.35 * cells.masses)
        divisible = h > max(self.method.atom_width / 8, 1e-13)
        return (cells.masses > 0) & ((h > self.widest) | ((steep | dip) & divisible))

    def _to_unite(self, cells: Cells, factor: np.ndarray) -> np.ndarray:
        """Nodes whose two cells are narrow, alike and nearly log-linear; never two neighbours at once."""
        n = len(cells.nodes)
        drop = np.zeros(n, dtype=bool)
        if n < 16:
            return drop
        h = cells.widths
        before = np.roll(h, 1)
        L = np.maximum(cells.log_density, self.cut - factor - np.log(self.width))
        right, left = np.roll(L, -1), np.roll(L, 1)
        bend = np.abs(L - (left * h + right * before) / (h + before))
        fit = (cells.masses > 0) & (np.roll(cells.masses, 1) > 0) & (h + before < 0.5 * self.widest) & (h < 2.5 * before) & (before < 2.5 * h)
        fit &= (np.abs(right - L) + np.abs(L - left) < 0.45 * self.steepest) & (bend < 0.07 * self.steepest)
        # the cubic of the united cell must give back the masses of the two: otherwise unions, not divisions, set the error
        rho, left_mass = node_density(cells), np.roll(cells.masses, 1)
        H, M, u = h + before, cells.masses + left_mass, before / (h + before)
        recovered = M * (3 - 2 * u) * u * u + H * (np.roll(rho, 1) * u * (1 - u) ** 2 - np.roll(rho, -1) * u * u * (1 - u))
        faithful = np.abs(recovered - left_mass) <= self.FIDELITY * self.steepest**3 * M
        loudest = np.maximum(cells.log_density, np.maximum(np.roll(cells.log_density, 1), np.roll(cells.log_density, -1)))
        fit &= faithful | (loudest + factor + np.log(self.width) < self.cut)
        fit[0] = False
        last = -2
        for j in np.flatnonzero(fit):
            if j > last + 1:
                drop[j] = True
                last = int(j)
        return drop

    def measure(self, before: State, after: State, time: float) -> CellMeasure:
        """A shorter step of the same kind from `before`, as accurate as the step itself."""
        if time >= after.time:
            return CellMeasure.of(self.cells(after))
        cells = self.cells(before)
        if time > before.time:
            cells, _ = self.step(cells, np.concatenate(self.tendency(cells)[:3]), time - before.time)
            cells = cells._replace(nodes=np.maximum.accumulate(cells.nodes))
        return CellMeasure.of(cells)

    def density(self, state: State, points: np.ndarray) -> np.ndarray:
        """Density per radian at `points` (m, 2), anywhere on the circle, atoms left out."""
        return density(self.cells(state), Circle().angles(np.asarray(points, dtype=float)))

    def statistics(self) -> dict[str, Any]:
        return {
            "steps": self.steps,
            "rejected steps": self.rejected,
            "most nodes": self.most_nodes,
            "unresolved cells": self.unresolved,
            "crossed nodes": self.crossed,
            "importance cut": self.cut,
            "mass moved out of voids": self.emptied,
            **{f"targets by {tier}": count for tier, count in self.field.served.items()},
            **{f"seconds in {stage}": seconds for stage, seconds in self.stages.seconds.items()},
        }
