"""The table `output` of a run file: when laws are kept, what is observed beside them, how often a checkpoint is written."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from mfpde.comparison import lives_long
from mfpde.errors import InputError, unknown_name
from mfpde.methods.base import Method
from mfpde.model import Problem
from mfpde.runs.runfile import number, only_known
from mfpde.solver import output_times

OBSERVABLES = ("order_parameter", "energy", "log_energy", "entropy", "cluster_count", "dissipation", "distance_to_dominant_space", "distance_to_value_space")
OUTPUT: dict[str, Any] = {"times": 61, "spacing": "linear", "observe": ["order_parameter", "energy", "cluster_count"], "checkpoint_every": 30.0}


def resolve_output(table: Any, problem: Problem, methods: Iterable[Method]) -> dict[str, Any]:
    """The whole table: what is given, checked, and defaults that suit the problem and the methods."""
    only_known("output", table, OUTPUT)
    output = {**OUTPUT, **table}
    if "observe" not in table:
        output["observe"] = [name for name in OUTPUT["observe"] if _observable(name, problem)]
    times, observe = output["times"], output["observe"]
    if isinstance(times, bool) or not isinstance(times, (int, list)) or (isinstance(times, int) and not 2 <= times <= 1_000_000):
        raise InputError(f"output.times is a number of times, at least 2, or a list of times.\n  output.times = {times!r}")
    if isinstance(times, list):
        if "spacing" in table:
            raise InputError(f"A list of times has its own spacing.\n  output.spacing = {table['spacing']!r}\n  Leave it out, or give a number of times.")
        del output["spacing"]
        output["times"] = output_times([number("an output time", t) for t in times], problem.t_end).tolist()
    elif "spacing" not in table:
        output["spacing"] = "log" if any(lives_long(method) for method in methods) else "linear"
    elif table["spacing"] not in ("linear", "log"):
        raise unknown_name("spacing", str(table["spacing"]), ["linear", "log"])
    observe = observe.split(",") if isinstance(observe, str) else observe
    if not isinstance(observe, list):
        raise InputError(f"output.observe is a list of names.\n  output.observe = {observe!r}")
    for name in observe:
        if name not in OBSERVABLES:
            raise unknown_name("observable", str(name), OBSERVABLES)
    output["observe"] = observe
    output["checkpoint_every"] = number("output.checkpoint_every", output["checkpoint_every"])
    if not output["checkpoint_every"] >= 0:
        raise InputError(f"output.checkpoint_every is a number of seconds, at least 0.\n  output.checkpoint_every = {output['checkpoint_every']!r}")
    return output


def instants(output: dict[str, Any], t_end: float) -> np.ndarray:
    """The output times (k,) of a whole table: as listed, or equal steps of t, or 0 and equal steps of ln t."""
    times = output["times"]
    if isinstance(times, list):
        return np.array(times, dtype=float)
    if t_end == 0:
        return np.array([0.0])
    if output["spacing"] == "linear":
        return np.linspace(0, t_end, times)
    return np.concatenate([[0.0], np.geomspace(t_end, min(0.1, 1e-3 * t_end), times - 1)[::-1]])


def _observable(name: str, problem: Problem) -> bool:
    """Whether a default observable makes sense for the problem."""
    if name == "energy":
        return math.isfinite(problem.attention.beta)
    return name != "cluster_count" or problem.geometry.dim == 2
