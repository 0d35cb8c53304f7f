"""Accuracy on the sphere against exact solutions: orders, growth in three directions, zero temperature, rates to the limit, rotation, conservation."""

from __future__ import annotations

import sys

import numpy as np

import mfpde as mf
from mfpde import claims
from mfpde.cases.sphere import direction, tilted, turned
from mfpde.exact import sphere as exact_sphere
from mfpde.initial.quadrature import cell_triangles, integral
from mfpde.methods.zero_temperature import density
from mfpde.transport.sphere import axial_distance

SPHERE = mf.Sphere()
I = np.eye(3)
AXES = {
    "generic": direction(0.7, -1.0),
    "mesh edge": np.array([0.0, 0.0, 1.0]),
    "pentagon": np.array([0.0, 1.0, (1 + 5**0.5) / 2]) / np.hypot(1, (1 + 5**0.5) / 2),
}


def fitted_order(sizes, errors) -> float:
    """Order in the cell width, which falls like N^{-1/2}."""
    return float(-2 * np.polyfit(np.log(sizes), np.log(errors), 1)[0])


def note(found: dict[str, float], name: str, value: float) -> None:
    found[name] = float(value)
    print(f"{name}: {value:.4g}", flush=True)


def moebius(quick: bool, found: dict[str, float]) -> None:
    """beta = 0: W1 along the axis and L1 of cell masses at t = 1, where the density rises from 0.009 to 0.42."""
    sizes = [642, 2562] if quick else [642, 2562, 10242, 40962]
    axis = AXES["generic"]
    for order in (1, 2):
        W1, L1 = [], []
        for cells in sizes:
            problem, method = mf.cases.sphere_mobius(cells=cells, order=order)
            run = mf.solve(problem, method)
            law = exact_sphere.axisymmetric_law(problem.initial, axis, problem.t_end)
            masses = law.cell_masses(run.final.mesh)
            W1.append(axial_distance(run.final, mf.Measure(run.final.points, masses, run.final.mesh), axis, 1))
            L1.append(np.abs(run.final.weights - masses).sum())
            print(f"  moebius order {order}, N={cells}: W1 {W1[-1]:.3e}, L1 {L1[-1]:.3e}, {run.stats['seconds']:.1f} s", flush=True)
            mean = run.final.mean
            note(found, f"moebius order {order}, N={cells}: mean off the axis", np.linalg.norm(mean - (mean @ axis) * axis))
            note(found, f"moebius order {order}, N={cells}: mass drift", run.stats["mass drift"])
            note(found, f"moebius order {order}, N={cells}: smallest mass", run.stats["minimum weight"])
        note(found, f"moebius order {order}: fitted order of W1", fitted_order(sizes, W1))
        note(found, f"moebius order {order}: fitted order of L1", fitted_order(sizes, L1))


def amplitude(measure: mf.Measure, degree: int, axis: np.ndarray) -> float:
    """`int P_l dmu` of a density that is constant on cells."""
    wave = np.polynomial.legendre.Legendre.basis(degree)
    cell, corners = cell_triangles(measure.mesh)
    mean = np.bincount(cell, integral(lambda x: wave(x @ axis), corners), len(measure)) / measure.mesh.volumes
    return float(measure.weights @ mean)


def growth(quick: bool, found: dict[str, float]) -> None:
    """beta = 3: rates of l = 1, 2, 4 about three axes; the difference of runs with amplitudes of both signs."""
    cells = 642 if quick else 10242
    for degree in (2,) if quick else (1, 2, 4):
        rates = {}
        for name, axis in AXES.items():
            polar, azimuth = float(np.arccos(axis[2])), float(np.arctan2(axis[1], axis[0]))
            values = []
            for sign in (1, -1):
                problem, method = mf.cases.sphere_growth(degree=degree, amplitude=sign * 1e-3, polar=polar, azimuth=azimuth, cells=cells, t_end=1.0)
                values.append([amplitude(measure, degree, axis) for measure in mf.solve(problem, method).measures])
            first, last = np.array(values[0]) - np.array(values[1])
            rates[name] = np.log(last / first)
            exact = exact_sphere.growth_rate(problem.attention, degree)
            note(found, f"growth l={degree}, {name} axis: relative error of the rate", rates[name] / exact - 1)
        note(found, f"growth l={degree}: spread between axes", np.ptp(list(rates.values())) / exact)


NON_NORMAL = mf.Attention(
    [[1.3, 0.2, 0.0], [-0.1, 0.8, 0.1], [0.0, 0.3, 0.5]], I, turned(2) @ np.array([[1.0, -0.4, 0.3], [0.4, 0.5, 0.0], [0.0, 0.1, 0.2]]) @ turned(2).T, np.inf
)
SYMMETRIC = mf.Attention(I, I, turned(2) @ np.diag([1.0, 0.5, 0.2]) @ turned(2).T, np.inf)


def cell_masses(f, mesh: mf.Mesh) -> np.ndarray:
    """By the three-point rule on the triangles of each cell, whose error is far below that of the schemes; `f` is dear here."""
    cell, corners = cell_triangles(mesh)
    masses = np.zeros(len(cell))
    for near in np.full((3, 3), 1 / 6) + np.eye(3) / 2:
        p = near @ corners
        length = np.linalg.norm(p, axis=1)
        masses += f(p / length[:, None]) / length**3 * np.linalg.det(corners) / 6
    return np.bincount(cell, masses, len(mesh))


def zero_temperature(quick: bool, found: dict[str, float]) -> None:
    """beta = inf, t = 1: L1 error of the cell masses against the exact density, and its order."""
    sizes = [642, 2562] if quick else [2562, 10242, 40962]
    for name, attention in (("symmetric", SYMMETRIC), ("non-normal with rotation", NON_NORMAL)):
        problem = mf.Problem(attention, SPHERE, tilted(), 1.0)
        exact = {cells: cell_masses(lambda x, problem=problem: density(problem, 1.0, x), SPHERE.mesh(cells)) for cells in sizes}
        for order in (1, 2):
            L1, moment = [], []
            for cells in sizes:
                run = mf.solve(problem, mf.FiniteVolume(cells=cells, order=order))
                error = run.final.weights - exact[cells]
                L1.append(np.abs(error).sum())
                moment.append(np.linalg.norm(error @ run.final.points))
                worst = np.abs(error / run.final.mesh.volumes).max() / (exact[cells] / run.final.mesh.volumes).max()
                print(
                    f"  zero {name} order {order}, N={cells}: L1 {L1[-1]:.3e}, moment {moment[-1]:.2e}, worst {worst:.1e}, {run.stats['seconds']:.1f} s",
                    flush=True,
                )
            note(found, f"zero temperature, {name}, order {order}: fitted order of L1", fitted_order(sizes, L1))
            note(found, f"zero temperature, {name}, order {order}: fitted order of the mean", fitted_order(sizes, moment))
            note(found, f"zero temperature, {name}, order {order}: worst cell, of the largest density", worst)


def limits(quick: bool, found: dict[str, float]) -> None:
    """Zero temperature, exact flow: slope of log W_p to the limit against the sharp exponent, whose factor t^{1/p} at equality is taken out."""
    nodes = 20_000 if quick else 60_000
    for name, M in {
        "two atoms, symmetric": np.diag([1.0, 0.4, 0.1]),
        "two atoms, non-normal": np.array([[1.0, 0.5, 0.2], [0.0, 0.4, 0.3], [0.0, 0.0, 0.1]]),
    }.items():
        attention = mf.Attention(I, I, turned(4) @ M @ turned(4).T, np.inf)
        problem = mf.Problem(attention, SPHERE, tilted(), 14.0)
        limit = mf.limits.push_forward(problem)
        run = mf.solve(problem, mf.ZeroTemperature(nodes=nodes), save_at=[10.0, 14.0])
        for p in (1, 2):
            first, last = (mf.wasserstein(measure, limit, SPHERE, p=p) for measure in run.measures)
            equal = np.isclose(mf.limits.rates(attention).escape / p, mf.limits.rates(attention).approach)
            slope = np.log(first / last) / 4 + (np.log(14 / 10) / 4 / p if equal else 0)
            note(found, f"limit, {name}: W{p} exponent over the predicted one", slope / mf.limits.rate(attention, p))
    problem, _ = mf.cases.sphere_great_circle(beta=np.inf, t_end=8.0)
    s = mf.limits.spectrum(problem.attention)
    run = mf.solve(problem, mf.ZeroTemperature(nodes=nodes), save_at=[5.0, 8.0])
    rates, normal = mf.limits.rates(problem.attention), np.cross(*s.dominant_basis.T)
    for p in (1, 2):
        # every token goes to its own image, which is at most a factor |Pi_E| further than the nearest point of the circle: same exponent
        first, last = (measure.weights @ np.arcsin(np.minimum(np.abs(measure.points @ normal), 1.0)) ** p for measure in run.measures)
        slope = np.log(first / last) / 3 / p + (np.log(8 / 5) / 3 / p if np.isclose(2 * rates.escape / p, rates.approach) else 0)
        note(found, f"limit, great circle: W{p} exponent over the predicted one", slope / mf.limits.rate(problem.attention, p))


def rotation(quick: bool, found: dict[str, float]) -> None:
    """The whole problem turned at random: energy, resultant and second moments of the solution in the frame of the problem, beside the error of the mesh."""
    cells = 642 if quick else 10242
    V, A = np.diag([1.0, 0.6, 0.2]), np.array([[1.1, 0.2, 0.0], [0.0, 0.9, 0.2], [0.1, 0.0, 1.0]])
    centres = np.stack([direction(0.7, 0.4), direction(1.9, 2.6)])
    seen = []
    for seed in (0, 1, 2, 3):
        Q = turned(seed)
        attention = mf.Attention(Q @ A @ Q.T, I, Q @ V @ Q.T, 6.0)
        problem = mf.Problem(attention, SPHERE, mf.initial.fisher_mixture(SPHERE.retract(centres @ Q.T), [3.0, 5.0], [1, 2]), 1.5)
        final = mf.solve(problem, mf.FiniteVolume(cells=cells)).final
        x = final.points @ Q
        seen.append([*(final.weights @ x), *((x * final.weights[:, None]).T @ x).ravel(), mf.diagnostics.energy(final, problem)])
    reference_problem = mf.Problem(mf.Attention(A, I, V, 6.0), SPHERE, mf.initial.fisher_mixture(centres, [3.0, 5.0], [1, 2]), 1.5)
    cloud = mf.solve(reference_problem, mf.Particles(n=4000, placement="nodes", tol=1e-8)).final
    x = cloud.points
    exact = np.array([*(cloud.weights @ x), *((x * cloud.weights[:, None]).T @ x).ravel(), mf.diagnostics.energy(cloud, reference_problem)])
    error = np.abs(np.array(seen) - exact).max()
    note(found, "rotated problem: error of the observables", error)
    note(found, "rotated problem: spread of the observables over their error", np.ptp(seen, axis=0).max() / error)


def measure(quick: bool) -> dict[str, float]:
    found: dict[str, float] = {}
    for claim in (moebius, growth, limits, rotation, zero_temperature):
        claim(quick, found)
    return found


if __name__ == "__main__":
    sys.exit(claims.run(__file__, measure, __doc__ or ""))
