"""What a run returns: the law at the output times, observables, statistics; and how to keep it on disk."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mfpde.errors import InputError
from mfpde.measure import Measure
from mfpde.storage.archive import DAMAGE, as_numbers, pack_laws, read_arrays, unpack_laws, write_arrays, write_whole

if TYPE_CHECKING:
    from mfpde.methods.base import Method
    from mfpde.model import Problem

FORMAT = 1

__all__ = ["FORMAT", "Trajectory", "load", "write_whole"]


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
        "done", "done-with-unresolved-clusters" or "failed", and a sentence.

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
    _described: dict[str, str] | None = field(default=None, repr=False)

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
                f"Nothing was saved at t = {t!r}.\n  The nearest output time is {self.times[nearest]!r}.\n  Ask for it: solve(..., save_at=[..., {t!r}, ...])."
            )
        return self.measures[nearest]

    def _finish(self, times: np.ndarray, status: str, message: str, statistics: dict[str, Any]) -> Trajectory:
        self.times, self.status, self.message = times, status, message
        self.observed = {name: np.asarray(values) for name, values in self.observed.items()}
        masses = [measure.mass for measure in self.measures]
        self.stats = {
            **statistics,
            "mass drift": float(np.ptp(masses)) if masses else 0.0,
            "minimum weight": min((float(measure.weights.min()) for measure in self.measures), default=np.nan),
        }
        return self

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write to `path` (suffix .npz); the file appears whole or not at all, also under SIGKILL."""
        target = Path(path).with_suffix(".npz")
        laws, about = pack_laws(self.measures)
        arrays = {"times": self.times, **laws, **{f"observed_{name}": as_numbers(name, values) for name, values in self.observed.items()}}
        method, problem = self.described["method"], self.described["problem"]
        write_arrays(
            target,
            arrays,
            {"format": FORMAT, "status": self.status, "message": self.message, "stats": self.stats, "method": method, "problem": problem, **about},
        )
        return target

    def to_xarray(self) -> Any:
        """The trajectory as an `xarray.Dataset`, with its metadata (needs the extra "io"); see `mfpde.export`."""
        from mfpde.export import to_xarray

        return to_xarray(self)

    @property
    def described(self) -> dict[str, str]:
        """Problem and method as text, also when they are known as text only, because the trajectory was loaded from a file."""
        return self._described or {"problem": repr(self.problem), "method": repr(self.method)}

    def __repr__(self) -> str:
        lines = [f"Trajectory of {self.described['method']}: {self.status}, {self.message}"]
        if len(self.times):
            lines.append(f"  {len(self.times)} measures at t = {np.array2string(self.times, threshold=6, precision=4)}; final: {self.final!r}")
        if self.observed:
            lines.append(f"  observed: {', '.join(self.observed)}")
        if self.stats:
            lines.append("  " + ", ".join(f"{name} {value:.3g}" for name, value in self.stats.items()))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from html import escape

        rows = [("problem", self.described["problem"]), ("status", f"{self.status}, {self.message}")]
        if len(self.times):
            rows += [("times", np.array2string(self.times, threshold=6, precision=4)), ("final", repr(self.final))]
        rows += [(f"observed {name}", np.array2string(np.asarray(values), threshold=6, precision=4)) for name, values in self.observed.items()]
        rows += [(name, f"{value:.4g}" if isinstance(value, float) else str(value)) for name, value in self.stats.items()]
        body = "".join(f"<tr><th style='text-align:left'>{escape(name)}</th><td style='text-align:left'>{escape(text)}</td></tr>" for name, text in rows)
        return f"<table><caption>Trajectory of {escape(self.described['method'])}</caption><tbody>{body}</tbody></table>"


def load(path: str | os.PathLike[str]) -> Trajectory:
    """Read what `Trajectory.save` wrote: numbers bit for bit, the problem and the method as text in `described`.

    Raises `InputError` when the file is missing, damaged or of another format.
    """
    source = Path(path).with_suffix(".npz")
    arrays, meta = read_arrays(source, "run")
    try:
        if meta["format"] != FORMAT:
            raise InputError(f"{source} has format {meta['format']}, this version reads {FORMAT}.")
        measures = unpack_laws(arrays, meta)
        observed = {name.removeprefix("observed_"): values for name, values in arrays.items() if name.startswith("observed_")}
        if len(measures) != len(arrays["times"]):
            raise InputError(f"{source} is damaged: {len(arrays['times'])} times, {len(measures)} laws.")
        trajectory = Trajectory(None, None, arrays["times"], measures, observed, {**meta["stats"]}, meta["status"], meta["message"])
        trajectory._described = {"problem": meta["problem"], "method": meta["method"]}
    except DAMAGE as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{source} is no trajectory of this package, or it is damaged.\n  {type(error).__name__}: {error}") from None
    return trajectory
