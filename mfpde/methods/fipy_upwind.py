"""The same equation through FiPy terms: an independent second opinion on the first-order fluxes.

The blended flux of order 1 is three explicit upwind terms with face velocities

    theta v_face,     (1 - theta) max(v_left, 0),     (1 - theta) min(v_right, 0)

the first for the upwind part, the other two for the donor cell. FiPy assembles and solves; attention, the blending
share theta and Heun's method are those of `FiniteVolume`. Two orders of magnitude slower a step (validation/step_cost): a check, not a tool.
"""

from __future__ import annotations

import os
import sys
import warnings
from dataclasses import dataclass
from types import ModuleType

import numpy as np

from mfpde.errors import InputError
from mfpde.geometry import Circle
from mfpde.methods.finite_volume import FiniteVolume, FiniteVolumeScheme
from mfpde.model import Problem


def load_fipy() -> ModuleType:
    """Import FiPy without letting it read our command line: at import it parses sys.argv and exits on flags it does not know."""
    argv, solvers = sys.argv, os.environ.get("FIPY_SOLVERS")
    sys.argv = argv[:1]
    os.environ["FIPY_SOLVERS"] = "scipy"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # fipy 4 imports numpy.core
            import fipy
    finally:
        sys.argv = argv
        if solvers is None:
            del os.environ["FIPY_SOLVERS"]
        else:
            os.environ["FIPY_SOLVERS"] = solvers
    return fipy


@dataclass(frozen=True)
class FiPyUpwind:
    """First-order finite volumes assembled by FiPy, on the circle.

    Parameters
    ----------
    cells : int
        Number of cells of the periodic grid.
    tol : float
        Tolerance of the attention sums.

    Examples
    --------
    >>> import mfpde as mf
    >>> problem, _ = mf.cases.poisson(t_end=0.1)
    >>> ours = mf.solve(problem, mf.FiniteVolume(cells=64, order=1)).final
    >>> theirs = mf.solve(problem, mf.FiPyUpwind(cells=64)).final
    >>> bool(abs(ours.weights - theirs.weights).max() < 1e-13)
    True
    """

    cells: int = 512
    tol: float = 1e-10

    def prepare(self, problem: Problem) -> FiPyUpwindScheme:
        """Build the FiPy mesh, variables and equation."""
        if not isinstance(problem.geometry, Circle):
            raise InputError(
                "FiPyUpwind lives on the circle: FiPy has no meshes of curved surfaces.\n"
                f"  The problem lives on {problem.geometry!r}.\n"
                "  Use FiniteVolume."
            )
        return FiPyUpwindScheme(self, problem)


class FiPyUpwindScheme(FiniteVolumeScheme):
    """`FiniteVolume(order=1)` with its fluxes assembled and applied by FiPy."""

    def __init__(self, method: FiPyUpwind, problem: Problem) -> None:
        super().__init__(FiniteVolume(cells=method.cells, order=1, tol=method.tol), problem)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fipy = load_fipy()
            if fipy.parallelComm.Nproc > 1:
                raise InputError(f"FiPyUpwind runs in one process.\n  FiPy sees {fipy.parallelComm.Nproc} of them.\n  Start it without mpirun.")
            grid = fipy.PeriodicGrid1D(nx=method.cells, dx=self.mesh.spacing)
            self.density = fipy.CellVariable(mesh=grid)
            self.face_velocities = [fipy.FaceVariable(mesh=grid, rank=1) for _ in range(3)]
            self.equation = fipy.TransientTerm() + sum(fipy.ExplicitUpwindConvectionTerm(coeff=v) for v in self.face_velocities) == 0
            self.solver = fipy.LinearLUSolver()

    def tendency(self, masses: np.ndarray, velocity: np.ndarray) -> tuple[np.ndarray, float]:
        from mfpde.flux import blend, blended_flux, face_speeds, giving_density, outflow_rate

        stencils = self.mesh.stencils
        density = giving_density(masses, stencils)
        share, speed = blend(density, velocity, stencils), face_speeds(velocity, stencils)
        along = np.einsum("fsd,fsd->fs", stencils.directions, velocity[stencils.face_cells])
        terms = (share * speed, (1 - share) * np.maximum(along[:, 0], 0), (1 - share) * np.minimum(along[:, 1], 0))
        with self.stages("flux"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for variable, value in zip(self.face_velocities, terms, strict=True):
                variable.value = np.r_[value[-1], value[:-1], 0.0][None]  # FiPy counts faces from the seam and keeps one unused
            self.density.value = density
            self.equation.solve(var=self.density, dt=1.0, solver=self.solver)  # explicit: one unit step adds the rate of change
            change = (np.asarray(self.density.value) - density) * self.mesh.volumes
        rate = outflow_rate(masses, blended_flux(density, velocity, stencils, 0.0), stencils)
        return change, rate
