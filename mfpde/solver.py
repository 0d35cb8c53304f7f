"""The only time loop of the package."""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mfpde.errors import InputError, NumericalError
from mfpde.interruption import Interrupted, asked
from mfpde.measure import Measure
from mfpde.methods.base import Method, Scheme, State
from mfpde.model import Problem
from mfpde.storage.checkpoint import Checkpoints, Moment, total_statistics
from mfpde.trajectory import Trajectory

Observer = Callable[[Measure, Problem], Any]


def solve(
    problem: Problem,
    method: Method,
    *,
    save_at: Sequence[float] | np.ndarray | None = None,
    observe: Mapping[str, Observer] | Sequence[Observer] = (),
    progress: bool | Callable[[float, State], None] = False,
    checkpoints: Checkpoints | None = None,
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
    checkpoints : mfpde.storage.checkpoint.Checkpoints, optional
        A folder from which an interrupted run goes on, bit for bit, when the same call is made again.

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
    times = output_times(save_at, problem.t_end)
    observers = named(observe)
    from mfpde.progress import reporter

    with reporter(progress, problem.t_end) as report:
        return march(Run(problem, method, method.prepare(problem), times, observers), report=report, checkpoints=checkpoints)


class Run(NamedTuple):
    """What a march needs to know: a method prepared for a problem, output times (k,), observers by name, and its state at time 0 if that is known."""

    problem: Problem
    method: Method
    scheme: Scheme
    times: np.ndarray
    observers: Mapping[str, Observer]
    start: State | None = None


def march(run: Run, *, report: Callable[[float, State], None], checkpoints: Checkpoints | None = None) -> Trajectory:
    """Step after step from the start, or from the last checkpoint, to the last output time.

    With checkpoints, a step that ends after a signal (`mfpde.interruption`) is the last one: the run is kept and `Interrupted` raised.
    """
    problem, scheme, times, observers = run.problem, run.scheme, run.times, run.observers
    started = clock.perf_counter()
    keeper = checkpoints.keeper(problem, run.method, times) if checkpoints else None
    kept = keeper.restore() if keeper else None
    measures = kept.measures if kept else []
    observed = kept.observed if kept else {name: [] for name in observers}

    def record(before: State, after: State) -> None:
        """Save the output times that this step has reached; when there are many, a checkpoint in between repeats the step."""
        first = len(measures)
        while len(measures) < len(times) and times[len(measures)] <= after.time:
            time = times[len(measures)]
            measure = scheme.measure(before, after, time)
            for name, observer in observers.items():
                observed[name].append(observer(measure, problem))
            measures.append(measure)
            if first + 1 < len(measures) < len(times):
                report(time, after)
                keep_if_due(before, statistics_before)

    def keep_if_due(state: State, so_far: dict[str, Any]) -> None:
        if keeper and (keeper.due() or asked()):
            keeper.keep(Moment(state, measures, observed, statistics(so_far)))
            if asked() and len(measures) < len(times):
                raise Interrupted(f"stopped at t = {state.time:.6g} of {problem.t_end:g}")

    def statistics(of_scheme: dict[str, Any]) -> dict[str, Any]:
        so_far = {"seconds": clock.perf_counter() - started, **of_scheme}
        return total_statistics(kept.statistics, so_far) if kept else so_far

    def finish(status: str, message: str) -> Trajectory:
        trajectory = Trajectory(problem=problem, method=run.method, measures=measures, observed=observed)
        return trajectory._finish(times[: len(measures)], status, message, statistics(scheme.statistics()))

    statistics_before = scheme.statistics()  # at the beginning of the step
    try:
        if kept:
            state = kept.state
        else:
            state = run.start or scheme.initial()
            record(state, state)
        while len(measures) < len(times):
            statistics_before = scheme.statistics()
            after = scheme.advance(state)
            if not after.time > state.time:
                raise NumericalError(f"Time stands still at t = {state.time!r}: the step {after.time - state.time:.3g} is below its round-off.")
            record(state, after)
            state = after
            report(min(state.time, problem.t_end), state)
            keep_if_due(state, scheme.statistics())
    except NumericalError as error:
        error.trajectory = finish("failed", str(error))
        raise
    verdict = getattr(scheme, "verdict", None)  # a scheme may know what the result is not
    status, remark = verdict(state) if verdict else ("done", "")
    return finish(status, f"reached t = {times[-1]:g}" + (f"; {remark}" if remark else ""))


def output_times(save_at: Any, t_end: float) -> np.ndarray:
    """`save_at` as an increasing array in [0, t_end], or an `InputError`."""
    if save_at is None:
        return np.array([0.0, t_end]) if t_end > 0 else np.array([0.0])
    times = np.array(save_at, dtype=float, ndmin=1)
    if times.ndim != 1 or not len(times):
        raise InputError(f"save_at is a list of times.\n  It has shape {times.shape}.")
    if not (np.isfinite(times).all() and (times >= 0).all() and (times <= t_end).all() and (np.diff(times) > 0).all()):
        raise InputError(f"Output times increase strictly and lie in [0, t_end].\n  save_at = {np.array2string(times, threshold=8)}, t_end = {t_end:g}")
    return times


def named(observe: Mapping[str, Observer] | Sequence[Observer]) -> dict[str, Observer]:
    """Observers by name, or an `InputError`."""
    pairs = list(observe.items()) if isinstance(observe, Mapping) else [(getattr(f, "__name__", repr(f)), f) for f in observe]
    for name, f in pairs:
        if not callable(f):
            raise InputError(f"An observer is a function of (measure, problem).\n  {name} = {f!r}\n  For example mf.diagnostics.energy.")
    if len(dict(pairs)) < len(pairs):
        raise InputError(f"Two observers share a name.\n  Names: {[name for name, _ in pairs]}\n  Give a mapping from names to functions.")
    return dict(pairs)
