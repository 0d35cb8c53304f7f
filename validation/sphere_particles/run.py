"""Particles against the density on the sphere: 100,000 random tokens and 40,962 cells are one law, within the sum of what each is known to."""

from __future__ import annotations

import sys
import warnings

import numpy as np

import mfpde as mf
from mfpde import claims
from mfpde.cases.sphere import tilted
from mfpde.methods.particles import FiniteSampleWarning
from mfpde.transport.sphere import distance_with_error

SPHERE = mf.Sphere()
ATTENTION = mf.Attention([[1.1, 0.3, 0.0], [-0.2, 0.9, 0.1], [0.0, 0.2, 0.8]], np.eye(3), [[1.0, 0.2, 0.0], [0.0, 0.6, 0.1], [0.1, 0.0, 0.3]], 10.0)
SEED = 1


def two_methods(quick: bool) -> dict[str, float]:
    """W2 at t = 1, beta = 10, over the sum of three errors.

    Density: the distance to the solution on four times fewer cells. Particles: sqrt(log(n)/n), which n independent tokens of the uniform law are from it
    (Ajtai, Komlos and Tusnady 1984 for the rate, constant 1 with area 4 pi). Distance: its own estimate, from coarsening.
    """
    n, cells, coarse, atoms = (4000, 2562, 642, 642) if quick else (100_000, 40962, 10242, 2562)
    problem = mf.Problem(ATTENTION, SPHERE, tilted(), 1.0)
    density, rough = (mf.solve(problem, mf.FiniteVolume(cells=size)) for size in (cells, coarse))
    cloud = mf.solve(problem, mf.Particles(n=n, seed=SEED, tol=1e-6))
    for run in (density, cloud):
        print(f"  {run.method}: {run.stats['seconds']:.1f} s", flush=True)
    between = distance_with_error(density.final, cloud.final, 2, atoms=atoms)
    grid = distance_with_error(density.final, rough.final, 2, atoms=atoms, estimate=False).value
    sample = np.sqrt(np.log(n) / n)
    print(f"  W2 {between.value:.3e}; errors: density {grid:.3e}, particles {sample:.3e}, distance {between.error:.3e}", flush=True)
    mean = np.abs(density.final.mean - cloud.final.mean).max() * np.sqrt(n)
    return {
        "W2 between density and particles": between.value,
        "W2 over the sum of the stated errors": between.value / (grid + sample + between.error),
        "difference of the means, times sqrt(n)": float(mean),
    }


def warnings_issued() -> dict[str, float]:
    """The finite-n warning of `Particles` appears from beta |A| = n/20 on, the n^{2/(d-1)} of the theory page: 1 if it does exactly there."""
    right = 0
    cases = [
        (400, 10.0, False),
        (400, 19.0, False),
        (400, 21.0, True),
        (2000, 99.0, False),
        (2000, 101.0, True),
        (100_000, 4900.0, False),
        (100_000, 1e4, True),
    ]
    for n, beta, expected in cases:
        problem = mf.Problem(mf.Attention.identity(3, beta), SPHERE, tilted(), 0.1)
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            mf.Particles(n=n, seed=SEED).prepare(problem)
        right += any(issubclass(warning.category, FiniteSampleWarning) for warning in heard) == expected
    return {"finite-n warnings that appear where they should": right / len(cases)}


def measure(quick: bool) -> claims.Findings:
    return claims.Findings(numbers={**warnings_issued(), **two_methods(quick)}, seeds=[SEED])


if __name__ == "__main__":
    sys.exit(claims.run(__file__, measure, __doc__ or ""))
