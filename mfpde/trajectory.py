"""What a run returns: the law at the output times, observables, statistics; and how to keep it on disk."""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mfpde.errors import InputError
from mfpde.geometry import Geometry
from mfpde.measure import Measure

if TYPE_CHECKING:
    from mfpde.methods.base import Method
    from mfpde.model import Problem

FORMAT = 1


@dataclass(eq=False)
class Trajectory:
    """A solution: one `Measure` at each output time.

    Attributes
    ----------
    times : (k,) array
        The output times, exactly as asked for.
    measures : list of Measure
        The law at these times.
    observed : dict of arrays
        Values of the observers, first axis time.
    stats : dict
        Steps, seconds by stage, targets by attention tier, mass drift, smallest weight.
    status, message : str
        "done" or "failed", and a sentence.

    Examples
    --------
    >>> import mfpde as mf
    >>> run = mf.solve(*mf.cases.poisson(t_end=0.5))
    >>> run.final is run.at(0.5)
    True
    """

    problem: Problem | None = field(default=None, repr=False)
    method: Method | None = None
    times: np.ndarray = field(default_factory=lambda: np.empty(0))
    measures: list[Measure] = field(default_factory=list, repr=False)
    observed: dict[str, Any] = field(default_factory=dict, repr=False)
    stats: dict[str, Any] = field(default_factory=dict, repr=False)
    status: str = "running"
    message: str = ""

    @property
    def final(self) -> Measure:
        """The law at the last output time."""
        if not self.measures:
            raise InputError("The trajectory is empty: the run failed before its first output.")
        return self.measures[-1]

    def at(self, t: float) -> Measure:
        """The law saved at time `t`; an `InputError` names the nearest saved time when there is none."""
        nearest = int(np.argmin(np.abs(self.times - t)))
        if abs(self.times[nearest] - t) > 1e-12 * max(1.0, abs(t)):
            raise InputError(
                f"Nothing was saved at t = {t!r}.\n"
                f"  The nearest output time is {self.times[nearest]!r}.\n"
                f"  Ask for it: solve(..., save_at=[..., {t!r}, ...])."
            )
        return self.measures[nearest]

    def _finish(self, times: np.ndarray, status: str, message: str, statistics: dict[str, Any], seconds: float) -> Trajectory:
        self.times, self.status, self.message = times, status, message
        self.observed = {name: np.asarray(values) for name, values in self.observed.items()}
        masses = [measure.mass for measure in self.measures]
        self.stats = {
            "seconds": seconds,
            **statistics,
            "mass drift": float(np.ptp(masses)) if masses else 0.0,
            "minimum weight": min((float(measure.weights.min()) for measure in self.measures), default=np.nan),
        }
        return self

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write to `path` (suffix .npz); the file appears whole or not at all, also under SIGKILL."""
        target = Path(path).with_suffix(".npz")
        arrays: dict[str, Any] = {"times": self.times}
        meta: dict[str, Any] = {"format": FORMAT, "status": self.status, "message": self.message, "stats": self.stats, "method": repr(self.method), "problem": repr(self.problem)}
        meshes = {id(measure.mesh): measure.mesh for measure in self.measures}
        mesh = next(iter(meshes.values()), None)
        if len(meshes) == 1 and mesh is not None:
            meta["mesh"] = {"geometry": type(mesh.geometry).__name__, "cells": len(mesh)}
            arrays["weights"] = np.array([measure.weights for measure in self.measures])
        else:
            for i, measure in enumerate(self.measures):
                arrays[f"points_{i}"], arrays[f"weights_{i}"] = measure.points, measure.weights
        for name, values in self.observed.items():
            if np.asarray(values).dtype == object:
                raise InputError(
                    f"The observable {name!r} is no array of numbers and cannot be saved.\n"
                    "  Let the observer return numbers or arrays of one shape."
                )
            arrays[f"observed_{name}"] = values
        arrays["meta"] = np.array(json.dumps(meta, default=float))
        write_whole(target, lambda file: np.savez_compressed(file, **arrays))
        return target

    def __repr__(self) -> str:
        lines = [f"Trajectory of {self.method!r}: {self.status}, {self.message}"]
        if len(self.times):
            lines.append(f"  {len(self.times)} measures at t = {np.array2string(self.times, threshold=6, precision=4)}; final: {self.final!r}")
        if self.observed:
            lines.append(f"  observed: {', '.join(self.observed)}")
        if self.stats:
            lines.append("  " + ", ".join(f"{name} {value:.3g}" for name, value in self.stats.items()))
        return "\n".join(lines)


def write_whole(target: Path, write: Any) -> None:
    """Let `write(file)` fill a temporary file beside `target`, then move it into place in one step."""
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise


def load(path: str | os.PathLike[str]) -> Trajectory:
    """Read what `Trajectory.save` wrote. The problem and the method come back as text inside `stats`; the numbers bit for bit.

    Raises `InputError` when the file is missing, damaged or of another format.
    """
    source = Path(path).with_suffix(".npz")
    try:
        with open(source, "rb") as file, np.load(file, allow_pickle=False) as data:
            arrays = {name: data[name] for name in data.files}
        meta = json.loads(str(arrays["meta"]))
    except FileNotFoundError:
        raise InputError(f"There is no run at {source}.") from None
    except (zipfile.BadZipFile, KeyError, ValueError, OSError, EOFError) as error:
        raise InputError(f"{source} is no trajectory of this package, or it is damaged.\n  {type(error).__name__}: {error}") from None
    if meta["format"] != FORMAT:
        raise InputError(f"{source} has format {meta['format']}, this version reads {FORMAT}.")
    if "mesh" in meta:
        geometries = {geometry.__name__: geometry for geometry in Geometry.__subclasses__()}
        mesh = geometries[meta["mesh"]["geometry"]]().mesh(meta["mesh"]["cells"])
        measures = [Measure(mesh.centres, weights, mesh) for weights in arrays["weights"]]
    else:
        measures = [Measure(arrays[f"points_{i}"], arrays[f"weights_{i}"]) for i in range(len(arrays["times"]))]
    observed = {name.removeprefix("observed_"): values for name, values in arrays.items() if name.startswith("observed_")}
    stats = {**meta["stats"]}
    trajectory = Trajectory(None, None, arrays["times"], measures, observed, stats, meta["status"], meta["message"])
    trajectory.described = {"problem": meta["problem"], "method": meta["method"]}  # type: ignore[attr-defined]
    return trajectory
