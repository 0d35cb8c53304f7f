"""Two clusters of one cell each on the sphere: do they merge on time, whatever their direction relative to the mesh, and do clusters at rest stay?"""

from __future__ import annotations

import sys

import numpy as np

import mfpde as mf
from mfpde import claims, exact
from mfpde.cases.sphere import turned

SPHERE = mf.Sphere()
BETA, DISTANCE = 4.0, 2.0


def orientations(mesh: mf.Mesh) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Where the first cluster is, and a tangent direction towards the second; cell 0 is a pentagon."""
    pentagon = mesh.centres[0]
    faces = mesh.face_cells[(mesh.face_cells == 0).any(axis=1)]
    spokes = mesh.centres[faces.sum(axis=1)]  # the five neighbours, since their other cell is 0
    nearest = spokes[np.argsort(spokes @ spokes[0])[::-1][:2]]
    return {
        "from a pentagon along an icosahedron edge": (pentagon, spokes[0] - pentagon),
        "from a pentagon between two edges": (pentagon, nearest.sum(axis=0) - 2 * pentagon),
        **{f"random {seed}": (turned(seed)[:, 0], turned(seed)[:, 1]) for seed in (1, 2, 3)},
    }


def merging(mesh: mf.Mesh, order: int, start: np.ndarray, towards: np.ndarray) -> tuple[float, float]:
    """Relative error of the time at which |int x| passes 1 - h^2/2, and the distance of the merged cluster from the middle in cells."""
    along = SPHERE.project(start[None], towards[None])[0]
    end = np.cos(DISTANCE) * start + np.sin(DISTANCE) * along / np.linalg.norm(along)
    pair = mesh.centres[[np.argmax(mesh.centres @ start), np.argmax(mesh.centres @ end)]]
    gap, level = float(SPHERE.distance(*pair)), 0.998 if mesh.spacing < 0.05 else 0.99
    expected = exact.merge_time(BETA, gap, until=2 * np.arccos(level))
    problem = mf.Problem(mf.Attention.identity(3, BETA), SPHERE, mf.initial.atoms(pair, [0.5, 0.5]), 1.1 * expected)
    run = mf.solve(
        problem, mf.FiniteVolume(cells=len(mesh), order=order), save_at=np.linspace(0.9, 1.1, 81) * expected, observe=[mf.diagnostics.order_parameter]
    )
    resultant = run.observed["order_parameter"]
    after = int(np.argmax(resultant > level))
    assert abs(run.final.mass - 1) < 1e-13
    assert run.final.weights.min() >= 0
    if after == 0:
        return np.inf, np.inf
    passed = np.interp(level, resultant[after - 1 : after + 1], run.times[after - 1 : after + 1])
    middle, mean = pair.sum(axis=0), run.final.mean
    off = SPHERE.distance(middle / np.linalg.norm(middle), mean / np.linalg.norm(mean)) / mesh.spacing
    return float(passed / expected - 1), float(off)


def resting(mesh: mf.Mesh, order: int, seed: int) -> float:
    """How far a cluster of width 0.15, alone, with V = I, drifts in t = 20; in cells."""
    centre = turned(seed)[:, 2] if seed else mesh.centres[0]
    law = mf.initial.fisher_mixture([centre], 1 / 0.15**2)
    run = mf.solve(mf.Problem(mf.Attention.identity(3, BETA), SPHERE, law, 20.0), mf.FiniteVolume(cells=len(mesh), order=order))
    first, last = (measure.mean / np.linalg.norm(measure.mean) for measure in run.measures)
    return float(SPHERE.distance(first, last)) / mesh.spacing


def passing_time(method, level: float = 0.98) -> float:
    """When |int x| of two clusters of width 0.15, 2.0 apart, passes `level`."""
    problem, _ = mf.cases.sphere_pair(beta=BETA, distance=DISTANCE, width=0.15, t_end=46.0)
    times = np.linspace(30, 46, 161)
    resultant = mf.solve(problem, method, save_at=times, observe=[mf.diagnostics.order_parameter]).observed["order_parameter"]
    after = int(np.argmax(resultant > level))
    return float(np.interp(level, resultant[after - 1 : after + 1], times[after - 1 : after + 1])) if after else np.inf


def measure(quick: bool) -> dict[str, float]:
    found: dict[str, float] = {}
    mesh = SPHERE.mesh(642 if quick else 10242)
    for name, (start, towards) in list(orientations(mesh).items())[: 2 if quick else 5]:
        for order in (2,) if quick else (2, 1) if "edge" in name else (2,):
            error, off = merging(mesh, order, start, towards)
            found[f"pair {name}, order {order}, N={len(mesh)}: relative error of the merge time"] = error
            found[f"pair {name}, order {order}, N={len(mesh)}: merged off the middle, cells"] = off
            print(name, order, error, off, flush=True)
    if not quick:
        # 800 nodes: 1600 move the time by 3e-5
        reference = passing_time(mf.Particles(n=800, placement="nodes", tol=1e-7))
        for order in (1, 2):
            name = f"clusters of width 0.15, order {order}: relative error of the merge time"
            found[name] = passing_time(mf.FiniteVolume(cells=len(mesh), order=order)) / reference - 1
            print(name, found[name], flush=True)
    for seed in (0,) if quick else (0, 1, 2):
        for order in (2,) if quick else (1, 2):
            found[f"cluster at rest {seed}, order {order}: drift in t = 20, cells"] = resting(mesh, order, seed)
            print(seed, order, found[f"cluster at rest {seed}, order {order}: drift in t = 20, cells"], flush=True)
    return found


if __name__ == "__main__":
    sys.exit(claims.run(__file__, measure, __doc__ or ""))
