"""Refine a method and measure how fast its error falls: orders of convergence are observed, never assumed."""

from __future__ import annotations

import dataclasses
import time as clock
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, cast

import numpy as np

from mfpde.errors import InputError
from mfpde.geometry import Geometry, Sphere
from mfpde.initial import Atoms, InitialLaw
from mfpde.measure import Measure
from mfpde.mesh import Mesh
from mfpde.methods.base import Method
from mfpde.model import Problem
from mfpde.solver import solve
from mfpde.trajectory import Trajectory
from mfpde.transport import wasserstein

Law = Measure | InitialLaw
ErrorNorm = Callable[[Measure, Law, Geometry], float]
SIZES = ("cells", "n", "nodes")  # the field of a method that counts its degrees of freedom
FINEST_REFERENCE = 16384  # cells of the mesh on which a law is represented for a transport distance, at least


@dataclass(frozen=True, eq=False)
class ConvergenceTable:
    """Errors of one method at several levels, made by `converge`. Printing it shows the table.

    Attributes
    ----------
    method : str
        The refined method.
    size : str
        The field that was refined: "cells", "n" or "nodes".
    error : str
        What was measured, and against what.
    levels : (l,) array of int
    errors : (l,) array
        In a self-comparison the error of a level is its distance to the next one, so there is one error less than solutions.
    seconds : (l,) array
        Wall-clock time of each solution.
    dimension : int
        Orders are powers of `level^{-1/dimension}`: of the cell width, for cells of this dimension.
    """

    method: str
    size: str
    error: str
    levels: np.ndarray
    errors: np.ndarray
    seconds: np.ndarray
    dimension: int = 1

    @property
    def orders(self) -> np.ndarray:
        """Observed order between neighbouring levels, `dimension log(e_i / e_{i+1}) / log(n_{i+1} / n_i)`; NaN where an error is zero; shape (l - 1,)."""
        logs = self._log_errors
        return -self.dimension * np.diff(logs) / np.diff(np.log(self.levels))

    @property
    def fitted_order(self) -> float:
        """Minus the slope of log error against log level by least squares; levels with error zero are left out. NaN with fewer than two."""
        return self._fit[0]

    @property
    def fitted_order_error(self) -> float:
        """Standard error of `fitted_order` from the scatter about the line; NaN with fewer than three errors."""
        return self._fit[1]

    @property
    def _log_errors(self) -> np.ndarray:
        return np.log(self.errors, out=np.full(len(self.errors), np.nan), where=self.errors > 0)

    @property
    def _fit(self) -> tuple[float, float]:
        good = self.errors > 0
        x, y = np.log(self.levels[good]) / self.dimension, self._log_errors[good]
        if len(x) < 2:
            return np.nan, np.nan
        x, y = x - x.mean(), y - y.mean()
        slope = float(x @ y / (x @ x))
        scatter = np.nan if len(x) < 3 else float(np.sqrt(np.sum((y - slope * x) ** 2) / (len(x) - 2) / (x @ x)))
        return -slope, scatter

    @property
    def _cells(self) -> list[tuple[str, str, str, str]]:
        """The text of the table, head first."""
        orders = ["", *(f"{order:.3f}" if np.isfinite(order) else "" for order in self.orders)]
        rows = zip(self.levels, self.errors, orders, self.seconds, strict=True)
        return [(self.size, "error", "order", "seconds"), *((f"{n}", f"{e:.4e}", order, f"{s:.3g}") for n, e, order, s in rows)]

    @property
    def _summary(self) -> str:
        if np.isnan(self.fitted_order):
            return "fitted order: none, fewer than two errors differ from zero"
        scatter = "" if np.isnan(self.fitted_order_error) else f" +- {self.fitted_order_error:.3f}"
        return f"fitted order: {self.fitted_order:.3f}{scatter}"

    def __repr__(self) -> str:
        widths = [max(len(row[i]) for row in self._cells) for i in range(4)]
        lines = ["  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in self._cells]
        return "\n".join([self.method, self.error, *lines, self._summary])

    def _repr_html_(self) -> str:
        from html import escape

        head, *body = (
            "<tr>" + "".join(f"<{tag} style='text-align:right'>{escape(text)}</{tag}>" for text in row) + "</tr>"
            for tag, row in zip(["th", *["td"] * len(self.levels)], self._cells, strict=True)
        )
        caption = f"<caption>{escape(self.method)}<br>{escape(self.error)}; {escape(self._summary)}</caption>"
        return f"<table>{caption}<thead>{head}</thead><tbody>{''.join(body)}</tbody></table>"


def converge(
    problem: Problem,
    method: Method,
    levels: Sequence[int],
    *,
    reference: Law | Trajectory | Callable[[float], Law] | str = "self",
    p: int = 1,
    error: ErrorNorm | None = None,
    times: Sequence[float] | None = None,
) -> ConvergenceTable:
    r"""Solve `problem` with `method` at several sizes and tabulate the errors.

    Parameters
    ----------
    method : Method
        A template: its `cells` (or `n`, or `nodes`) is replaced by each level, everything else stays.
    levels : sequence of int
        Increasing, at least one (two for a self-comparison).
    reference : optional
        What the solution at the final time is compared with: a `Measure`, an `InitialLaw` (the exact law at that time), a function
        of time or a `Trajectory` that gives one at each of `times`, or "self": each level with the next. A self-comparison needs levels
        in geometric progression, for otherwise the differences of neighbours do not fall like a power.
    p : 1 or 2
        Order of the Wasserstein distance, the error that is measured unless `error` is given.
    error : function (measure, reference, geometry) -> float, optional
        For example `l1_error` or `max_error` of this module.
    times : sequence of float, optional
        The error is the largest over these times; the final time when not given.

    Returns
    -------
    ConvergenceTable

    Raises
    ------
    InputError
        For levels, times or references that make no sense, or a method without a size. Whatever `solve` raises is passed on.

    Notes
    -----
    For a transport distance a law becomes its cell masses on a mesh of at least 16384 cells and eight times the finest level,
    which moves it by much less than any of the levels; on the sphere its masses in the cells of the solution. Cost: one solution a level, and the distances.

    Examples
    --------
    >>> import mfpde as mf
    >>> from mfpde import exact
    >>> problem, method = mf.cases.poisson(t_end=0.5)
    >>> table = mf.converge(problem, method, [32, 64, 128], reference=exact.poisson_law(0.3, 0.5))
    >>> bool(table.fitted_order > 1.7)
    True
    """
    size = _size_field(method)
    sizes = np.asarray(levels)
    if sizes.ndim != 1 or not len(sizes) or not np.issubdtype(sizes.dtype, np.integer) or not (sizes > 0).all() or not (np.diff(sizes) > 0).all():
        raise InputError(f"Levels are increasing whole numbers.\n  levels = {levels!r}\n  For example [64, 128, 256].")
    if size == "cells" and isinstance(problem.geometry, Sphere):
        sizes = np.array([len(problem.geometry.mesh(int(level))) for level in sizes])  # what the mesh can do
        if not (np.diff(sizes) > 0).all():
            raise InputError(f"Two levels have the same mesh.\n  levels = {levels!r} are {sizes.tolist()} cells\n  Multiply by four: [162, 642, 2562].")
    save_at = np.array([problem.t_end] if times is None else times, dtype=float, ndmin=1)
    law_at = _reference_at(reference, save_at, problem)
    norm = partial(_transport_error, p=p, cells=max(FINEST_REFERENCE, 8 * int(sizes[-1]))) if error is None else error
    if law_at is None and (len(sizes) < 2 or np.ptp(np.log(sizes[1:] / sizes[:-1])) > 0.1):
        raise InputError(f"A self-comparison needs at least two levels in geometric progression.\n  levels = {sizes.tolist()}\n  For example [64, 128, 256].")
    runs, seconds = [], []
    for level in sizes:
        started = clock.perf_counter()
        refined = cast(Method, dataclasses.replace(cast(Any, method), **{size: int(level)}))
        runs.append(solve(problem, refined, save_at=save_at).measures)
        seconds.append(clock.perf_counter() - started)
    if law_at is None:
        errors = [max(norm(a, b, problem.geometry) for a, b in zip(coarse, fine, strict=True)) for coarse, fine in pairwise(runs)]
    else:
        laws = [law_at(t) for t in save_at.tolist()]
        errors = [max(norm(measure, law, problem.geometry) for measure, law in zip(run, laws, strict=True)) for run in runs]
    count = len(errors)
    return ConvergenceTable(
        method=repr(dataclasses.replace(cast(Any, method), **{size: int(sizes[0])})).replace(f"{size}={sizes[0]}", f"{size}=..."),
        size=size,
        error=f"{_name_of(norm)} to {_name_of_reference(reference)} at {_name_of_times(save_at)}",
        levels=sizes[:count],
        errors=np.array(errors, dtype=float),
        seconds=np.array(seconds[:count]),
        dimension=problem.geometry.dim - 1 if size == "cells" else 1,
    )


def l1_error(measure: Measure, reference: Law, geometry: Geometry) -> float:
    """`sum_i |m_i - m_i^ref|` over the cells of `measure`: the L1 distance of the cell averages, twice the total variation."""
    return float(np.abs(measure.weights - _masses_on_cells(measure, reference)).sum())


def max_error(measure: Measure, reference: Law, geometry: Geometry) -> float:
    """`max_i |m_i - m_i^ref| / |C_i|` over the cells of `measure`: the largest error of a cell average of the density."""
    return float(np.abs(measure.density() - _masses_on_cells(measure, reference) / _mesh_of(measure, "solution").volumes).max())


def _masses_on_cells(measure: Measure, reference: Law) -> np.ndarray:
    """What the reference puts into each cell of `measure`."""
    mesh = _mesh_of(measure, "solution")
    if isinstance(reference, InitialLaw):
        return reference.cell_masses(mesh)
    fine = _mesh_of(reference, "reference")
    if len(fine) == len(mesh):
        return reference.weights
    if isinstance(mesh.geometry, Sphere):
        return _on_coarser_sphere(reference.weights, mesh)
    cumulative = np.concatenate([[0.0], np.cumsum(reference.weights)])
    return np.diff(np.interp(np.arange(len(mesh) + 1) / len(mesh), np.arange(len(fine) + 1) / len(fine), cumulative))


def _on_coarser_sphere(masses: np.ndarray, mesh: Mesh) -> np.ndarray:
    """Masses of a finer bisection brought down to `mesh`: a point in the middle of two gives each of them a half. Keeps the mass and the first moment."""
    if len(masses) < len(mesh):
        raise InputError(f"The reference has fewer cells than the solution.\n  {len(masses)} and {len(mesh)} cells.\n  Give the law itself, or a finer run.")
    if len(masses) > 4 * len(mesh) - 6:
        masses = _on_coarser_sphere(masses, mesh.geometry.mesh(4 * len(mesh) - 6))
    coarse, half = masses[: len(mesh)].copy(), masses[len(mesh) :] / 2  # the middles follow the points, in the order of the faces
    for side in (0, 1):
        coarse += np.bincount(mesh.face_cells[:, side], half, len(mesh))
    return coarse


def _mesh_of(measure: Measure, role: str) -> Mesh:
    if measure.mesh is None:
        raise InputError(f"Errors of a density need two meshes.\n  The {role} has {len(measure)} atoms and no mesh.\n  Measure a Wasserstein distance.")
    return measure.mesh


def _transport_error(measure: Measure, reference: Law, geometry: Geometry, *, p: int, cells: int) -> float:
    if isinstance(geometry, Sphere) and measure.mesh is not None and not (isinstance(reference, Measure) and reference.mesh is None):
        # cells are atoms there, and atoms on two meshes are half a cell apart: compare masses of the same cells
        return wasserstein(measure, Measure(measure.points, _masses_on_cells(measure, reference), measure.mesh), geometry, p=p)
    return wasserstein(measure, _as_measure(reference, geometry, cells), geometry, p=p)


def _as_measure(law: Law, geometry: Geometry, cells: int) -> Measure:
    """Atoms as they are, a density as its masses on `cells` cells."""
    if isinstance(law, Measure):
        return law
    if isinstance(law, Atoms):
        return law.measure
    mesh = geometry.mesh(cells)
    return Measure(mesh.centres, law.cell_masses(mesh), mesh)


def _size_field(method: Any) -> str:
    fields = {field.name for field in dataclasses.fields(method)} if dataclasses.is_dataclass(method) and not isinstance(method, type) else set()
    for name in SIZES:
        if name in fields:
            return name
    raise InputError(f"A method is refined in one of its fields {', '.join(SIZES)}, and this one has none of them.\n  method = {method!r}")


def _reference_at(reference: Any, times: np.ndarray, problem: Problem) -> Callable[[float], Law] | None:
    """The reference as a function of time, None for a self-comparison."""
    if isinstance(reference, str) and reference == "self":
        return None
    if isinstance(reference, Trajectory):
        return reference.at
    if isinstance(reference, Measure | InitialLaw):
        if len(times) > 1 or times[0] != problem.t_end:
            raise InputError(f"One law is a reference at the final time only.\n  times = {times.tolist()}, t_end = {problem.t_end:g}\n  Give a function.")
        return lambda t: reference
    if callable(reference):
        return reference
    raise InputError(f"A reference is a Measure, an InitialLaw, a Trajectory, a function of time, or \"self\".\n  reference = {reference!r}")


def _name_of(norm: Any) -> str:
    if isinstance(norm, partial):
        return f"W{norm.keywords['p']}"
    return str(getattr(norm, "__name__", repr(norm)))


def _name_of_reference(reference: Any) -> str:
    if isinstance(reference, str):
        return "the next level"
    if isinstance(reference, Trajectory):
        return repr(reference.method)
    if isinstance(reference, Measure):
        return f"a given measure ({len(reference)} {'atoms' if reference.mesh is None else 'cells'})"
    return repr(reference) if isinstance(reference, InitialLaw) else str(getattr(reference, "__name__", "a given law"))


def _name_of_times(times: np.ndarray) -> str:
    return f"t = {times[0]:g}" if len(times) == 1 else f"{len(times)} times up to t = {times[-1]:g}, the largest"
