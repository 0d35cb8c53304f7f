"""Checkpoints: two rotating files from which a run goes on bit for bit, after SIGKILL at any moment.

    a.npz, b.npz      the state of the method at the end of a step: time, next step, arrays; what has been saved; statistics. The older one is replaced.
    laws-000012.npz   the laws and observables saved between two checkpoints, from output number 12 on

A checkpoint names the files of laws it counts on, and these are on disk before it. So its cost is that of the state and of what is new.
A method with random numbers keeps its generator in its state as an array: `generator_to_array`, `generator_from_array`.
"""

from __future__ import annotations

import json
import time as clock
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mfpde.errors import InputError
from mfpde.measure import Measure
from mfpde.methods.base import Method, State
from mfpde.model import Problem
from mfpde.storage.archive import DAMAGE, Arrays, as_numbers, pack_laws, read_arrays, unpack_laws, write_arrays

FORMAT = 1
SLOTS = ("a", "b")


class Moment(NamedTuple):
    """A run at the end of a step: its state, the laws and observables of the outputs it has passed, and statistics until then."""

    state: State
    measures: list[Measure]
    observed: dict[str, list[Any]]
    statistics: dict[str, Any]


@dataclass(frozen=True)
class Checkpoints:
    """Where and how often a run is kept.

    Parameters
    ----------
    folder : path
        One folder a run; made when the first checkpoint is due.
    every : float
        Seconds of wall-clock time between checkpoints, at least 0 (then after every step).

    Examples
    --------
    >>> import tempfile
    >>> import mfpde as mf
    >>> problem, method = mf.cases.poisson(t_end=1.0, cells=64)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = mf.solve(problem, method, checkpoints=Checkpoints(Path(folder), every=0))
    ...     again = mf.solve(problem, method, checkpoints=Checkpoints(Path(folder)))  # goes on from the last step, which was the end
    >>> bool((run.final.weights == again.final.weights).all()), run.stats["steps"] == again.stats["steps"]
    (True, True)
    """

    folder: Path
    every: float = 60.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "folder", Path(self.folder))
        if not self.every >= 0:
            raise InputError(f"Checkpoints are taken every so many seconds, at least 0.\n  every = {self.every!r}")

    def keeper(self, problem: Problem, method: Method, times: np.ndarray) -> Keeper:
        """The checkpoints of this run; `InputError` if the folder holds those of another one."""
        return Keeper(self, problem, method, times)


class Keeper:
    """Writes and reads the checkpoints of one run."""

    def __init__(self, where: Checkpoints, problem: Problem, method: Method, times: np.ndarray) -> None:
        self.folder, self.every = where.folder, where.every
        self.identity = {"format": FORMAT, "problem": repr(problem), "method": repr(method)}
        self.fixed = fixed_arrays(problem, times)
        self.number = 0  # of the next checkpoint
        self.slot = SLOTS[0]  # where it goes
        self.files: list[tuple[int, int]] = []  # [begin, end) of outputs that are on disk
        self.due_at = clock.monotonic() + self.every

    def restore(self) -> Moment | None:
        """The run at its last good checkpoint, None if there is none yet. `InputError` if all there are are damaged, or of another run."""
        found, damaged = [], []
        for slot in SLOTS:
            path = self.folder / f"{slot}.npz"
            if not path.exists():
                continue
            try:
                found.append((slot, *read_arrays(path, "checkpoint")))
            except InputError as error:
                damaged.append(error)
        found.sort(key=lambda entry: entry[2].get("number", -1), reverse=True)
        for slot, arrays, meta in found:
            self._check_identity(slot, arrays, meta)
            try:
                moment = self._moment(arrays, meta)
            except (InputError, *DAMAGE) as error:
                damaged.append(InputError(f"{self.folder / slot}.npz: {error}"))
                continue
            self.number = meta["number"] + 1
            self.slot = SLOTS[1 - SLOTS.index(slot)]
            self.files = [(begin, end) for begin, end in meta["files"]]
            return moment
        if damaged:
            raise InputError(f"No checkpoint in {self.folder} can be read.\n  {damaged[0]}\n  Remove that folder to begin this method anew.")
        return None

    def _moment(self, arrays: Arrays, meta: dict[str, Any]) -> Moment:
        state = State(
            float(meta["time"]), float(meta["step"]), {name.removeprefix("state_"): array for name, array in arrays.items() if name.startswith("state_")}
        )
        measures: list[Measure] = []
        observed: dict[str, list[Any]] = {name: [] for name in meta["observers"]}
        for begin, end in meta["files"]:
            laws, about = read_arrays(self._laws(begin), "file of laws")
            if (about["begin"], about["end"]) != (begin, end) or begin != len(measures):
                raise InputError(f"{self._laws(begin)} holds other outputs than the checkpoint counts on.")
            measures += unpack_laws(laws, about)
            for name in observed:
                observed[name] += list(laws[f"observed_{name}"])
        if len(measures) != meta["saved"]:
            raise InputError(f"The checkpoint counts {meta['saved']} outputs, {len(measures)} are there.")
        return Moment(state, measures, observed, dict(meta["statistics"]))

    def _check_identity(self, slot: str, arrays: Arrays, meta: dict[str, Any]) -> None:
        for key, value in self.identity.items():
            if meta.get(key) != value:
                raise InputError(
                    f"{self.folder} holds checkpoints of another run.\n  There: {key} = {meta.get(key)}\n  Here: {key} = {value}\n  Choose another folder."
                )
        for name, array in self.fixed.items():
            kept = arrays.get(f"fixed_{name}")
            if kept is None or kept.shape != array.shape or not np.allclose(kept, array, rtol=1e-9, atol=1e-12):
                raise InputError(f"{self.folder} holds checkpoints of another run: its {name} differs.\n  Checkpoint {slot}.npz\n  Choose another folder.")

    def due(self) -> bool:
        """Whether so much wall-clock time has passed since the last checkpoint."""
        return clock.monotonic() >= self.due_at

    def keep(self, moment: Moment) -> None:
        """Write what is new since the last checkpoint, then the checkpoint."""
        begin = self.files[-1][1] if self.files else 0
        end = len(moment.measures)
        if end > begin:
            arrays, about = pack_laws(moment.measures[begin:end])
            arrays |= {f"observed_{name}": as_numbers(name, values[begin:end]) for name, values in moment.observed.items()}
            write_arrays(self._laws(begin), arrays, {**about, "begin": begin, "end": end}, compress=False)
            self.files = [*self.files, (begin, end)]
        meta = {
            **self.identity,
            "number": self.number,
            "time": moment.state.time,
            "step": moment.state.step,
            "saved": end,
            "files": self.files,
            "observers": list(moment.observed),
            "statistics": moment.statistics,
        }
        arrays = {f"fixed_{name}": array for name, array in self.fixed.items()} | {f"state_{name}": array for name, array in moment.state.arrays.items()}
        write_arrays(self.folder / f"{self.slot}.npz", arrays, meta, compress=False)
        self.number += 1
        self.slot = SLOTS[1 - SLOTS.index(self.slot)]
        self.due_at = clock.monotonic() + self.every

    def _laws(self, begin: int) -> Path:
        return self.folder / f"laws-{begin:06d}.npz"


def fixed_arrays(problem: Problem, times: np.ndarray) -> Arrays:
    """What tells two runs apart beyond their printed form: matrices, output times, and a few nodes of the initial law."""
    nodes = problem.initial.nodes(32)
    head = problem.attention
    return {
        "matrices": np.stack([head.Q, head.K, head.V]),
        "beta and end": np.array([head.beta, problem.t_end]),
        "times": times,
        "initial points": nodes.points,
        "initial weights": nodes.weights,
    }


def total_statistics(before: Mapping[str, Any], since: Mapping[str, Any]) -> dict[str, Any]:
    """The statistics of a run in two parts. Names tell how they add up: steps, rejected steps, seconds ..., targets by ..., mass moved ... are sums,
    smallest ... a minimum, most ... a maximum; anything else holds for the later part alone.

    >>> total_statistics({"steps": 3, "smallest mass": 0.1, "importance cut": -32.0}, {"steps": 2, "smallest mass": 0.2, "importance cut": -32.0})
    {'steps': 5, 'smallest mass': 0.1, 'importance cut': -32.0}
    """
    total = dict(since)
    for name, value in before.items():
        kind = name.rpartition(": ")[2]  # "first: steps" are steps
        if name not in since:
            total[name] = value
        elif kind in ("steps", "rejected steps") or kind.startswith(("seconds", "targets by ", "mass moved ")):
            total[name] = value + since[name]
        elif kind.startswith("smallest "):
            total[name] = min(value, since[name])
        elif kind.startswith("most "):
            total[name] = max(value, since[name])
    return total


def generator_to_array(generator: np.random.Generator) -> np.ndarray:
    """The state of a random generator as bytes, for the arrays of a `State`.

    >>> rng = np.random.default_rng(1)
    >>> kept = generator_to_array(rng)
    >>> bool(rng.random() == generator_from_array(kept).random())
    True
    """
    return np.frombuffer(json.dumps(generator.bit_generator.state, default=lambda array: array.tolist()).encode(), dtype=np.uint8)


def generator_from_array(kept: np.ndarray) -> np.random.Generator:
    """The generator that `generator_to_array` kept."""
    state = json.loads(kept.tobytes().decode())
    bits = getattr(np.random, state["bit_generator"])()
    bits.state = state
    return np.random.Generator(bits)
