"""Accuracy on the circle against exact solutions: orders, merging, growth, zero temperature, particles, conservation."""

from __future__ import annotations

import sys

import numpy as np

import mfpde as mf
from mfpde import claims, exact
from mfpde.methods.zero_temperature import density

CIRCLE = mf.Circle()


def fitted_order(sizes, errors) -> float:
    return float(-np.polyfit(np.log(sizes), np.log(errors), 1)[0])


def poisson(quick: bool) -> dict[str, float]:
    """beta = 0, r0 = 0.3: W1 at t = 2 and its order, density at the repeller at t = 6."""
    found = {}
    sizes = [128, 256, 512] if quick else [128, 256, 512, 1024]
    for order in (1, 2):
        errors = []
        for cells in sizes:
            run = mf.solve(*mf.cases.poisson(t_end=6.0 if cells == 1024 else 2.0, cells=cells, order=order), save_at=[2.0, 6.0] if cells == 1024 else [2.0])
            fine = CIRCLE.mesh(16 * cells)
            target = mf.Measure(fine.centres, exact.poisson_law(0.3, 2.0).cell_masses(fine), fine)
            errors.append(mf.wasserstein(run.at(2.0), target, CIRCLE, p=1))
        found[f"poisson order {order}: fitted order of W1"] = fitted_order(sizes, errors)
        if not quick:
            found[f"poisson order {order}: W1 at t=2, N=1024"] = errors[-1]
            ratio = run.final.weights / exact.poisson_law(0.3, 6.0).cell_masses(run.final.mesh)
            found[f"poisson order {order}: density at the repeller, t=6, N=1024"] = float(np.abs(ratio[510:514] - 1).max())
    return found


def passing_time(method, beta, distance, t_end, threshold=0.9) -> float:
    problem, _ = mf.cases.two_clusters(beta=beta, distance=distance, t_end=t_end)
    times = np.linspace(0.6, 1, 401) * t_end
    run = mf.solve(problem, method, save_at=times, observe=[mf.diagnostics.order_parameter])
    resultant = run.observed["order_parameter"]
    after = int(np.argmax(resultant > threshold))
    return float(np.interp(threshold, resultant[after - 1 : after + 1], times[after - 1 : after + 1])) if resultant[after] > threshold else np.inf


def merging(quick: bool) -> dict[str, float]:
    """Two equal clusters: time at which the resultant passes 0.9, relative to deterministic particles."""
    found = {}
    for beta, distance, t_end in [(3.5, 1.8, 16.0)] if quick else [(3.5, 1.8, 16.0), (4.0, 2.0, 55.0)]:
        reference = passing_time(mf.Particles(n=200, placement="nodes", tol=1e-8), beta, distance, t_end)
        for order in (1, 2):
            for cells in (128,) if quick else (128, 512):
                measured = passing_time(mf.FiniteVolume(cells=cells, order=order), beta, distance, t_end)
                found[f"merging beta={beta:g}, order {order}, N={cells}: relative error"] = measured / reference - 1
    return found


def growth(quick: bool) -> dict[str, float]:
    """Relative error of the complex growth rate about the uniform law; both signs of V, and a rotated score."""
    found = {}
    cases = [(1.0, 1, 512), (4.0, 2, 512), (9.0, 4, 512)] if quick else [(1.0, 1, 512), (4.0, 2, 512), (9.0, 4, 512), (100.0, 14, 2048)]
    for value, turn in ((1.0, 0.0), (-1.0, 0.0), (1.0, 0.7)):
        for beta, k, cells in cases:
            problem, _ = mf.cases.growth(beta=beta, mode=k, value=value, turn=turn, t_end=1.0)
            run = mf.solve(problem, mf.FiniteVolume(cells=cells))
            first, last = (m.weights @ np.exp(-1j * k * m.angles()) for m in run.measures)
            rate = exact.growth_rate(problem.attention, k)
            mismatch = np.log(last / first * np.exp(-rate))  # of a wave that may turn several times in unit time
            found[f"growth V={value:+g}I, A turned by {turn:g}, beta={beta:g}, k={k}, N={cells}: relative error"] = abs(mismatch) / abs(rate)
    return found


def zero_temperature(quick: bool) -> dict[str, float]:
    """beta = inf: L1 error of the density and its order; W1 and W2 of the exact flow to the limit at their sharp rates."""
    found = {}
    sizes = [512, 1024] if quick else [512, 1024, 2048]
    general = mf.Attention([[1.3, 0.2], [-0.1, 0.7]], np.eye(2), [[1.0, 0.4], [0.1, 0.5]], np.inf)
    problems = {
        "symmetric": mf.cases.zero_temperature(t_end=1.5)[0],
        "general A, non-normal": mf.Problem(general, CIRCLE, mf.initial.fourier([0.1, 0.1j]), 1.5),
    }
    for name, problem in problems.items():
        errors = []
        for cells in sizes:
            final = mf.solve(problem, mf.FiniteVolume(cells=cells)).final
            errors.append(np.abs(final.density() - density(problem, 1.5, final.points)) @ final.mesh.volumes)
        found[f"zero temperature, {name}: order of the L1 error"] = fitted_order(sizes, errors)
    # theory, section 4: V = diag(1, 0.2)-like drifts with |Av|, |Aw2| = (1,1), (1,2), (2,1), (1,.4)
    for av, aw in ((1.0, 1.0), (1.0, 2.0), (2.0, 1.0), (1.0, 0.4)):
        attention = mf.Attention(np.diag([av, aw]), np.eye(2), np.diag([1.0 / av, 0.2 / aw]), np.inf)
        rates = mf.limits.rates(attention)
        for p in (1, 2):
            predicted = mf.limits.rate(attention, p)
            times = np.linspace(8, 12, 9) / predicted  # e^{-ct} from 3e-4 to 6e-6: the next exponential has gone, round-off has not come
            problem = mf.Problem(attention, CIRCLE, mf.initial.uniform(CIRCLE), times[-1])
            run = mf.solve(problem, mf.ZeroTemperature(nodes=20_000), save_at=times)
            distances = np.array([mf.wasserstein(m, mf.limits.push_forward(problem), CIRCLE, p=p) for m in run.measures])
            if abs(rates.k * rates.escape / p - rates.approach) < 1e-9:  # at equality there is a factor t^{1/p}
                distances = distances / times ** (1 / p)
            fitted = -np.polyfit(times, np.log(distances), 1)[0]
            found[f"sharp rate |Av|={av:g}, |Aw|={aw:g}, p={p}: fitted/predicted"] = fitted / predicted
    return found


def particles(quick: bool) -> dict[str, float]:
    """Random particles approach the density like n^{-1/2}; deterministic nodes follow the exact Moebius map."""
    problem = mf.Problem(mf.Attention.identity(2, 2.0), CIRCLE, mf.initial.von_mises_mixture([0.5], 2.0), 0.5)
    reference = mf.solve(problem, mf.FiniteVolume(cells=2048)).final
    sizes, seeds = ([100, 400, 1600], 8) if quick else ([100, 400, 1600, 6400], 24)
    mean = lambda n: np.mean([mf.wasserstein(mf.solve(problem, mf.Particles(n=n, seed=s, tol=1e-6)).final, reference, CIRCLE, p=2) for s in range(seeds)])
    law = mf.initial.fourier([0.3, 0.1j, 0.05])
    run = mf.solve(mf.Problem(mf.Attention.identity(2, 0.0), CIRCLE, law, 3.0), mf.Particles(n=256, placement="nodes", tol=1e-12))
    start = law.nodes(256).points
    return {
        "random particles: exponent of W2 in n": fitted_order(sizes, [mean(n) for n in sizes]),
        "nodes, beta=0, t=3: largest distance to the exact map": float(np.abs(run.final.points - exact.watanabe_strogatz(law, 3.0)(start)).max()),
    }


def conservation(quick: bool) -> dict[str, float]:
    """Mass after many steps with clusters, a Dirac and empty arcs; the smallest mass ever seen."""
    masses = 0.7 * mf.initial.von_mises_mixture([1.0, 3.0], [50, 3000]).cell_masses(CIRCLE.mesh(64))
    masses[40] += 0.3
    masses[50:60] = 0.0
    attention = mf.Attention([[1.1, 0.4], [-0.3, 0.8]], np.eye(2), [[0.9, -0.5], [0.3, 0.6]], 20.0)
    scheme = mf.FiniteVolume(cells=64).prepare(mf.Problem(attention, CIRCLE, mf.initial.uniform(CIRCLE), 1e6))
    state = scheme.initial()._replace(arrays={"masses": masses / masses.sum()})
    for _ in range(1000 if quick else 10_000):
        state = scheme.advance(state)
    return {"mass drift": abs(state.arrays["masses"].sum() - 1), "smallest mass": scheme.statistics()["smallest mass"]}


def energy(quick: bool) -> dict[str, float]:
    """V = A = I: smallest relative rise of the energy in a step while clusters are wider than four cells, and largest relative fall afterwards."""
    least, worst = np.inf, 0.0
    spreading = mf.initial.fourier([0.1 + 0.05j, 0.12j, 0.05])
    pair = mf.initial.von_mises_mixture([-1.0, 1.0], kappa=1 / 0.15**2)
    for beta, law, t_end in [(10.0, spreading, 8.0)] if quick else [(4.0, spreading, 8.0), (10.0, spreading, 8.0), (30.0, spreading, 8.0), (4.0, pair, 50.0)]:
        problem = mf.Problem(mf.Attention.identity(2, beta), CIRCLE, law, t_end)
        scheme = mf.FiniteVolume(cells=256).prepare(problem)
        state = scheme.initial()
        before, wide = None, True
        while state.time < t_end:
            measure = scheme.measure(state, state, state.time)
            now = mf.diagnostics.energy(measure, problem)
            found = mf.diagnostics.clusters(measure)
            wide = wide and min((cluster.width for cluster in found), default=np.inf) > 4 * measure.mesh.spacing
            if before is not None:
                least = min(least, now / before - 1) if wide else least
                worst = max(worst, 1 - now / before)
            before, state = now, scheme.advance(state)
    return {"energy: least relative rise in a step, clusters wider than 4 cells": least, "energy: largest relative fall in a step, ever": worst}


def measure(quick: bool) -> dict[str, float]:
    found = {}
    for study in (poisson, merging, growth, zero_temperature, particles, conservation, energy):
        found |= study(quick)
    return found


if __name__ == "__main__":
    sys.exit(claims.run(__file__, measure, __doc__))
