"""The only time loop of the package."""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mfpde.errors import InputError, NumericalError
from mfpde.measure import Measure
from mfpde.methods.base import Method, State
from mfpde.model import Problem
from mfpde.trajectory import Trajectory

Observer = Callable[[Measure, Problem], Any]


def solve(
    problem: Problem,
    method: Method,
    *,
    save_at: Sequence[float] | np.ndarray | None = None,
    observe: Mapping[str, Observer] | Sequence[Observer] = (),
    progress: bool | Callable[[float, State], None] = False,
) -> Trajectory:
    """Solve `problem` with `method`.

    Parameters
    ----------
    save_at : array_like, optional
        Increasing output times in [0, t_end]; start and end when not given. They never change the steps.
    observe : sequence of functions, or mapping from names to functions
        Each is called as `f(measure, problem)` at every output time; its values are `trajectory.observed[name]`.
        The functions of `mf.diagnostics` have this form.
    progress : bool or callable
        True draws a bar with the remaining time on a terminal; a callable gets `(time, state)` after each step.

    Returns
    -------
    Trajectory

    Raises
    ------
    InputError
        For output times or observers that make no sense, or a method that cannot treat the problem.
    NumericalError
        When a promise cannot be kept; its attribute `trajectory` holds what was computed until then, with status "failed".

    Examples
    --------
    >>> import mfpde as mf
    >>> problem, method = mf.cases.two_clusters(t_end=1.0)
    >>> run = mf.solve(problem, method, save_at=[0, 0.5, 1], observe=[mf.diagnostics.order_parameter])
    >>> run.status, run.times
    ('done', array([0. , 0.5, 1. ]))
    >>> run.observed["order_parameter"].shape
    (3,)
    """
    if not isinstance(method, Method):
        raise InputError(f"The method has no prepare(problem).\n  method = {method!r}\n  Give an instance, e.g. mf.FiniteVolume(cells=512).")
    times = _output_times(save_at, problem.t_end)
    observers = _named(observe)
    started = clock.perf_counter()
    scheme = method.prepare(problem)
    trajectory = Trajectory(problem=problem, method=method)
    trajectory.observed = {name: [] for name in observers}

    def record(before: State, after: State, upto: int) -> int:
        """Save the output times that this step has reached, beginning with number `upto`; return how many are saved now."""
        while upto < len(times) and times[upto] <= after.time:
            measure = scheme.measure(before, after, times[upto])
            trajectory.measures.append(measure)
            for name, observer in observers.items():
                trajectory.observed[name].append(observer(measure, problem))
            upto += 1
        return upto

    from mfpde.progress import reporter

    with reporter(progress, problem.t_end) as report:
        state = scheme.initial()
        saved = record(state, state, 0)
        try:
            while saved < len(times):
                after = scheme.advance(state)
                if not after.time > state.time:
                    raise NumericalError(f"Time stands still at t = {state.time!r}: the step {after.time - state.time:.3g} is below its round-off.")
                saved = record(state, after, saved)
                state = after
                report(min(state.time, problem.t_end), state)
        except NumericalError as error:
            error.trajectory = trajectory._finish(times[:saved], "failed", str(error), scheme.statistics(), clock.perf_counter() - started)
            raise
    return trajectory._finish(times, "done", f"reached t = {times[-1]:g}", scheme.statistics(), clock.perf_counter() - started)


def _output_times(save_at: Any, t_end: float) -> np.ndarray:
    if save_at is None:
        return np.array([0.0, t_end]) if t_end > 0 else np.array([0.0])
    times = np.array(save_at, dtype=float, ndmin=1)
    if times.ndim != 1 or not len(times):
        raise InputError(f"save_at is a list of times.\n  It has shape {times.shape}.")
    if not (np.isfinite(times).all() and (times >= 0).all() and (times <= t_end).all() and (np.diff(times) > 0).all()):
        raise InputError(f"Output times increase strictly and lie in [0, t_end].\n  save_at = {np.array2string(times, threshold=8)}, t_end = {t_end:g}")
    return times


def _named(observe: Mapping[str, Observer] | Sequence[Observer]) -> dict[str, Observer]:
    pairs = list(observe.items()) if isinstance(observe, Mapping) else [(getattr(f, "__name__", repr(f)), f) for f in observe]
    for name, f in pairs:
        if not callable(f):
            raise InputError(f"An observer is a function of (measure, problem).\n  {name} = {f!r}\n  For example mf.diagnostics.energy.")
    if len(dict(pairs)) < len(pairs):
        raise InputError(f"Two observers share a name.\n  Names: {[name for name, _ in pairs]}\n  Give a mapping from names to functions.")
    return dict(pairs)
