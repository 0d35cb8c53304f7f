r"""Particles: a weighted empirical measure, which solves the equation exactly.

    x_i' = P_{x_i} V m(x_i),     m of the measure sum_j w_j delta_{x_j}

Each token sees all tokens, itself included. The only errors are those of the initial placement and of the time integration.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mfpde import attention
from mfpde.errors import InputError, NumericalError, unknown_name
from mfpde.initial import Atoms, CircleLaw
from mfpde.measure import Measure
from mfpde.methods.base import State
from mfpde.methods.graded import graded_nodes
from mfpde.model import Problem
from mfpde.stages import Stages
from mfpde.stepping import dormand_prince, next_step

PLACEMENTS = ("random", "nodes", "graded")
REPLAY_TOL = 1e-7  # a replay only looks where tokens part


class FiniteSampleWarning(UserWarning):
    """There are too few tokens for this temperature: the particles do not follow the mean field."""


@dataclass(frozen=True)
class Particles:
    """Tokens as weighted points.

    Parameters
    ----------
    n : int
        Number of tokens (an atomic initial law brings its own, placement "nodes").
    seed : int
        Seed of the random placement; it is part of the method, so a run repeats bit for bit.
    placement : {"random", "nodes", "graded"}
        "random": independent samples, equal weights, error n^{-1/2}. "nodes": deterministic nodes of the law, spectrally accurate
        for smooth densities. "graded" (densities on the circle): equal shares of the mass, finer where neighbours part during the run, found by
        replaying it (`mfpde.methods.graded`); for departures, which hang on tails.
    tail : float
        With placement "graded", the share of the mass, at least 1e-13, to which tokens beside a parting are refined.
    tol : float
        Local error of a step in radians, and tolerance of the attention sums (at least 1e-13).
    steps : int, optional
        Instead of the error-controlled integrator, `steps` explicit Euler steps of size t_end / steps, each followed by
        x -> x/|x|: a transformer of that depth with layer normalisation.

    Notes
    -----
    Dormand-Prince 5(4) with x -> x/|x| after each step; the field does not depend on |x|, so this changes nothing beyond the
    error of the step. Cost a step: six attention sums. Memory O(n). At low temperature a token needs neighbours within the width
    of the kernel, n^{2/(d-1)} >> beta |A|; below that a `FiniteSampleWarning` is issued (docs/theory).

    Examples
    --------
    >>> import mfpde as mf
    >>> problem, _ = mf.cases.two_clusters(t_end=1.0)
    >>> cloud = mf.solve(problem, mf.Particles(n=200, placement="nodes")).final
    >>> bool(abs(np.linalg.norm(cloud.points, axis=1) - 1).max() < 1e-15)
    True
    """

    n: int = 2000
    seed: int = 0
    placement: str = "random"
    tol: float = 1e-10
    steps: int | None = None
    tail: float = 1e-9

    def __post_init__(self) -> None:
        if self.placement not in PLACEMENTS:
            raise unknown_name("placement", self.placement, PLACEMENTS)
        if not 0 < self.tail < 1:
            raise InputError(f"tail is a share of the mass.\n  tail = {self.tail!r}\n  Give a number between 1e-13 and 1.")
        for name in ("n", "steps"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, (int, np.integer)) and value >= 1):
                raise InputError(f"{name} is a whole number >= 1.\n  {name} = {value!r}")
        if not 1e-13 <= self.tol <= 1e-1:
            raise InputError(f"tol lies between 1e-13 and 0.1.\n  tol = {self.tol!r}")

    def prepare(self, problem: Problem) -> ParticlesScheme:
        """Place the tokens."""
        return ParticlesScheme(self, problem)


def graded_start(method: Particles, problem: Problem) -> Measure:
    """Tokens refined where they part, by runs of the scheme itself with a looser tolerance."""
    law = problem.initial
    if not isinstance(law, CircleLaw):
        raise InputError(f'Graded tokens stand for a density on the circle.\n  initial law: {law!r}\n  Take placement="nodes".')
    loose = replace(method, placement="nodes", tol=max(method.tol, REPLAY_TOL))

    def widest_gaps(start: Measure) -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FiniteSampleWarning)  # said once, of the final placement
            scheme = ParticlesScheme(loose, problem)
        scheme.start = start
        state, widest = scheme.initial(), np.zeros(len(start))
        while state.time < problem.t_end:
            state = scheme.advance(state)
            points = state.arrays["points"]
            widest = np.maximum(widest, problem.geometry.distance(points, np.roll(points, -1, axis=0)))
        return widest

    return graded_nodes(law, method.n, method.tail, widest_gaps)


class ParticlesScheme:
    """`Particles` prepared for a problem."""

    def __init__(self, method: Particles, problem: Problem) -> None:
        self.method, self.problem = method, problem
        if method.placement == "graded":
            self.start = graded_start(method, problem)
        elif method.placement == "random":
            points = problem.initial.sample(method.n, np.random.default_rng(method.seed))
            self.start = Measure(points, np.full(method.n, 1 / method.n))
        else:
            self.start = problem.initial.nodes(method.n)
        self.longest_step = max(problem.t_end, 1e-300)
        self.stages = Stages()
        self.steps = self.rejected = 0
        self.served: dict[str, int] = {}
        self._warn_if_too_few()

    def _warn_if_too_few(self) -> None:
        """n^{2/(d-1)} against beta |A|: the mean distance of tokens against the width of the attention kernel. Atoms are exact as they are."""
        if isinstance(self.problem.initial, Atoms):
            return
        sharpness = self.problem.attention.sharpness
        reach = len(self.start) ** (2 / (self.problem.geometry.dim - 1)) / 20
        if np.isfinite(sharpness) and sharpness > reach:
            warnings.warn(
                f"{len(self.start)} tokens follow the mean field up to beta |A| of about {reach:.3g}, here it is {sharpness:.3g}: "
                "the particles will show finite-n effects. Take more particles, or a method with a density.",
                FiniteSampleWarning,
                stacklevel=4,
            )

    def initial(self) -> State:
        points = self.start.points
        first_step = min(0.1 / max(float(np.linalg.norm(self.problem.attention.V, 2)), 1e-300), self.longest_step)
        return State(0.0, first_step, {"points": points, "velocity": self.velocity(points)})

    def velocity(self, points: np.ndarray) -> np.ndarray:
        """The field at `points` (n, d), which need not be normalised: it is evaluated at x/|x|."""
        with self.stages("attention"):
            x = self.problem.geometry.retract(points)
            operator = attention.plan(self.problem.attention, self.problem.geometry, x, tol=self.method.tol)
            velocity = operator.velocity(self.start.weights)
        for tier, count in operator.tiers.items():
            self.served[tier] = self.served.get(tier, 0) + count
        return velocity

    def advance(self, state: State) -> State:
        self.steps += 1
        if self.method.steps is not None:
            return self.layer(state)
        points, velocity = state.arrays["points"], state.arrays["velocity"]
        step = state.step
        while True:
            with self.stages("step"):
                moved, velocity_after, error = dormand_prince(self.velocity, points, velocity, step)
            size = float(np.abs(error).max()) / self.method.tol
            if size <= 1:
                break
            self.rejected += 1
            step = next_step(step, size)
            if step < 1e-14 * max(state.time, self.problem.t_end):
                raise NumericalError(
                    f"The time step collapsed at t = {state.time:.6g}.\n"
                    f"  step = {step:.3g}, local error {size:.3g} tol.\n"
                    f"  Raise tol (now {self.method.tol:g})."
                )
        grown = min(next_step(step, size), self.longest_step)
        return State(state.time + step, grown, {"points": self.problem.geometry.retract(moved), "velocity": velocity_after})

    def layer(self, state: State) -> State:
        """x -> (x + dt v) / |x + dt v|."""
        assert self.method.steps is not None
        step = self.problem.t_end / self.method.steps
        points = self.problem.geometry.retract(state.arrays["points"] + step * state.arrays["velocity"])
        # the layer's number, not a running sum, so that the last layer ends exactly at t_end
        layer = round(state.time / step) + 1
        return State(self.problem.t_end * layer / self.method.steps, step, {"points": points, "velocity": self.velocity(points)})

    def measure(self, before: State, after: State, time: float) -> Measure:
        """A shorter step of the same kind from `before`, as accurate as the step itself."""
        points = after.arrays["points"]
        if time < after.time:
            start, velocity, step = before.arrays["points"], before.arrays["velocity"], time - before.time
            if self.method.steps is not None:
                points = self.problem.geometry.retract(start + step * velocity)
            else:
                points = self.problem.geometry.retract(dormand_prince(self.velocity, start, velocity, step)[0])
        return Measure(points, self.start.weights)

    def statistics(self) -> dict[str, Any]:
        return {
            "steps": self.steps,
            "rejected steps": self.rejected,
            **{f"targets by {tier}": count for tier, count in self.served.items()},
            **{f"seconds in {stage}": seconds for stage, seconds in self.stages.seconds.items()},
        }
