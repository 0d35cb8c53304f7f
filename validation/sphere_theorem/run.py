"""The theorem on the sphere: phases, distances to the push-forward, plateau, exact densities and terminal states, each by two methods at least."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import mfpde as mf
from mfpde import claims, diagnostics
from mfpde.cases.sphere import tilted, turned
from mfpde.claims import fits
from mfpde.methods.zero_temperature import density, flow

sys.path.insert(0, str(Path(__file__).resolve().parent))
import rings

SPHERE = mf.Sphere()
I = np.eye(3)
TURN = turned(2)  # no axis of a problem is one of the mesh
GAP = 0.8


def about_axis(V: np.ndarray) -> np.ndarray:
    """V in the frame of the problem, whose first axis is that of the symmetric laws."""
    return TURN @ V @ TURN.T


AXIS = TURN[:, 0]
LATITUDE = {  # densities in u = cos(polar angle), of mass one
    "smooth": lambda u: np.exp(1.5 * u) / (2 * np.sinh(1.5)) + np.exp(-0.8 * u) * (0.4 / np.sinh(0.8)) / 3,
    "jump at the repeller": lambda u: np.where(u > 0, 0.75, 0.25),
}
NORM = {name: np.polynomial.legendre.leggauss(64) for name in LATITUDE}


def latitude(name: str, u: np.ndarray) -> np.ndarray:
    """The density in u, divided by its mass (Gauss on either hemisphere)."""
    x, w = NORM[name]
    mass = sum(0.5 * float(w @ LATITUDE[name](side * (x + 1) / 2)) for side in (-1, 1))
    return LATITUDE[name](u) / mass


def symmetric_law(name: str) -> mf.initial.InitialLaw:
    """The same law for the general solvers, which do not know of the symmetry."""
    return mf.initial.from_density(lambda x: latitude(name, x @ AXIS) / (2 * np.pi), SPHERE)


def solve(problem: mf.Problem, method: Any, times: np.ndarray) -> mf.Trajectory:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the cells of a mesh are wider than a cluster; the mesh's error is part of the claim
        return mf.solve(problem, method, save_at=times)


def to_limit(run: mf.Trajectory, limit: mf.Measure, p: int) -> np.ndarray:
    return np.array([mf.wasserstein(law, limit, SPHERE, p=p) for law in run.measures])


# ---- F2 and F3: the distance to the push-forward, and where it stops ---------------------------------------------------------------------

EXPONENT = {("smooth", 1): -1.0, ("smooth", 2): -0.5, ("jump at the repeller", 1): -0.5, ("jump at the repeller", 2): -0.25}


def by_rings(name: str, beta: float, times: np.ndarray, n: int) -> dict[int, np.ndarray]:
    """W_1 and W_2 to the push-forward, two atoms at the poles."""
    finest = 1e-5 if beta == np.inf else 0.1 / beta if name == "smooth" else 0.3 / np.sqrt(beta)
    theta, masses = rings.placed(lambda u: latitude(name, u), n, finest)
    first = masses[theta < np.pi / 2].sum()
    path = rings.followed(theta, masses, times, beta=beta, l1=1.0, l2=1.0 - GAP)
    return {p: np.array([rings.to_poles(angles, masses, first, p) for angles in path]) for p in (1, 2)}


def approach_and_plateau(found: claims.Findings, quick: bool) -> None:
    """F2, F3: V = diag(1, .2, .2), A = I; rings at all temperatures, tokens and mesh where they resolve the kernel, the exact flow beside."""
    betas = np.array([10.0, 30.0, 100.0]) if quick else 10 ** np.array([1.0, 1.5, 2.0, 2.5, 3.0])
    n, cells = (600, 642) if quick else (4000, 2562)
    spacing = SPHERE.mesh(cells).spacing
    figure = Figure(figsize=(12, 6), layout="constrained")
    panels = figure.subplots(1, 3)
    rows: list[list] = [["law", "beta", "W1", "W2", "W1 by tokens", "W2 by tokens", "W1 by mesh", "W2 by mesh"]]
    fitted: list[list] = [["law", "p", "slope of log W against log beta", "95 % interval", "residual", "predicted"]]
    for name in LATITUDE:
        plateau: dict[int, list[float]] = {1: [], 2: []}
        for beta in betas:
            times = np.linspace(0, (np.log(beta) + 6) / GAP, 31)
            curve = by_rings(name, float(beta), times, 140 if quick else 360)
            row: list = [name, float(beta), curve[1].min(), curve[2].min()]
            for p in (1, 2):
                plateau[p].append(float(curve[p].min()))
                panels[p - 1].semilogy(times, curve[p], "-" if name == "smooth" else "--", lw=1, label=rf"{name}, $\beta = {beta:.0f}$, rings")
            if beta <= (10 if quick else 35):  # the kernel holds a few cells
                problem = mf.Problem(mf.Attention(I, I, about_axis(np.diag([1.0, 1 - GAP, 1 - GAP])), float(beta)), SPHERE, symmetric_law(name), times[-1])
                limit = mf.limits.push_forward(problem)
                for label, method, mark in (("tokens", mf.Particles(n=n, placement="nodes", tol=1e-6), "x"), ("mesh", mf.FiniteVolume(cells=cells), "+")):
                    run = solve(problem, method, times)
                    for p in (1, 2):
                        W = to_limit(run, limit, p)
                        # a mass one token or one cell wide along the repeller may go to the other pole: pi times it, to the power 1/p
                        strip = np.sqrt(4 * np.pi / n) if label == "tokens" else spacing
                        along = 2 * np.pi / strip
                        edge = np.sqrt(along) / n if label == "tokens" else along * strip**2 / (4 * np.pi) / 4
                        slack = np.pi * edge if p == 1 else np.sqrt(curve[2] ** 2 + np.pi**2 * edge) - curve[2]
                        share = float((np.abs(W - curve[p]) / (slack + 0.25 * strip)).max())
                        found.numbers[f"F2 {name}, beta = {beta:.0f}, p = {p}: {label} against rings, over the error claimed"] = share
                        panels[p - 1].semilogy(times, W, mark, ms=4, label=rf"{name}, $\beta = {beta:.0f}$, {label}")
                        row.append(W.min())
            rows.append(row + [""] * (8 - len(row)))
        for p in (1, 2):
            fit = fits.power(betas, np.array(plateau[p]))
            found.numbers[f"F3 {name}, p = {p}: slope of the plateau in beta, less the predicted one"] = fit.slope - EXPONENT[name, p]
            fitted.append([name, p, fit.slope, fit.interval, fit.residual, EXPONENT[name, p]])
            panels[2].loglog(betas, plateau[p], "o-", ms=3, label=f"{name}, $W_{p}$: {fit.slope:.3f}")
            if p == 1:
                found.numbers[f"F3 {name}, p = 1: theorem's curve over the plateau, least"] = float(np.min(np.sqrt(np.log(betas + 1) / betas) / plateau[1]))
    cold_times = np.linspace(0, 12.0 if quick else 16.0, 33)
    cold = by_rings("smooth", np.inf, cold_times, 2000)
    head = mf.Attention(I, I, np.diag([1.0, 1 - GAP, 1 - GAP]), np.inf)
    for p in (1, 2):
        window = fits.between(cold[p], 1e-1, 1e-3)
        fit = fits.decay(cold_times[window], cold[p][window], p=p, factor="linear" if p == 1 else "none")
        rate = mf.limits.rate(head, p)
        found.numbers[f"F2 zero temperature, p = {p}: miss of the rate over interval + 3 %"] = abs(fit.slope - rate) / (fit.interval + 0.03 * rate)
        fitted.append(["smooth, zero temperature: rate in t", p, fit.slope, fit.interval, fit.residual, rate])
        panels[p - 1].semilogy(cold_times, cold[p], "k:", lw=1, label=f"zero temperature, rate {rate:g}")
        panels[p - 1].set(xlabel="t", ylabel=f"$W_{p}$ to the push-forward", ylim=(1e-4, 4))
    panels[2].loglog(betas, np.sqrt(np.log(betas + 1) / betas), "k:", label=r"$\sqrt{\log(\beta+1)/\beta}$")
    panels[2].set(xlabel=r"$\beta$", ylabel="plateau")
    panels[2].legend(fontsize=6)
    figure.legend(*panels[0].get_legend_handles_labels(), fontsize=6, loc="outside lower center", ncols=5)
    found.tables["Plateaus on the sphere by rings, tokens and mesh"] = rows
    found.tables["Fits on the sphere: plateau over all beta; rate in the window W from 1e-1 to 1e-3, with the factor t + t0 for p = 1"] = fitted
    found.figures["F2, F3 on the sphere: distance to the push-forward against time, plateau against beta"] = figure


# ---- F7: exact densities -----------------------------------------------------------------------------------------------------------------


def densities(found: claims.Findings, quick: bool) -> None:
    """F7: from the uniform law under diag(1, .2, .2): (e^{2at} u^2 + e^{-at}(1 - u^2))^{-3/2} backwards, in closed form; mesh, tokens and exact flow."""
    sizes, n = ((642, 2562), 2000) if quick else ((10242, 40962), 20_000)  # the peak is 0.3 rad wide
    cells, t = sizes[-1], 1.5
    problem = mf.Problem(mf.Attention(I, I, about_axis(np.diag([1.0, 1 - GAP, 1 - GAP])), np.inf), SPHERE, mf.initial.uniform(SPHERE), t)
    mesh = SPHERE.mesh(cells)
    u = mesh.centres @ AXIS

    def closed(u: np.ndarray) -> np.ndarray:
        return (np.exp(-4 * GAP * t / 3) * u**2 + np.exp(2 * GAP * t / 3) * (1 - u**2)) ** -1.5 / (4 * np.pi)

    by_flow = density(problem, t, mesh.centres)
    coarse, by_mesh = (solve(problem, mf.FiniteVolume(cells=size), np.array([0.0, t])).final for size in sizes)
    start = problem.initial.nodes(n)
    by_tokens = flow(problem.attention, start.points, t) @ AXIS
    # int u^2 dmu in closed form by Gauss quadrature of the density
    x, w = np.polynomial.legendre.leggauss(200)
    moment = 2 * np.pi * float(w @ (closed(x) * x**2))
    found.numbers["F7 exact flow against the closed form, largest relative error"] = float(np.abs(by_flow / closed(u) - 1).max())
    errors = [np.abs(law.weights - closed(law.points @ AXIS) * law.mesh.volumes).sum() for law in (coarse, by_mesh)]
    found.numbers["F7 mesh against the closed form, order of the L1 error"] = float(np.log2(errors[0] / errors[1]))
    found.numbers["F7 second moment of the mesh, error over spacing squared"] = abs(float(by_mesh.weights @ u**2) - moment) / mesh.spacing**2
    found.numbers["F7 second moment of tokens, error times n"] = abs(float(start.weights @ by_tokens**2) - moment) * n
    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.subplots()
    order = np.argsort(u)
    axes.semilogy(np.degrees(np.arccos(u[order])), closed(u[order]), "k-", lw=3, alpha=0.3, label="closed form")
    axes.semilogy(np.degrees(np.arccos(u[order])), by_mesh.density()[order], ",", color="tab:blue", label=f"finite volumes, {cells} cells")
    bins = np.linspace(-1, 1, 41)
    counted, _ = np.histogram(by_tokens, bins, weights=start.weights)
    axes.step(
        np.degrees(np.arccos((bins[1:] + bins[:-1]) / 2)), counted / (2 * np.pi * np.diff(bins)), where="mid", lw=0.8, color="tab:orange", label=f"{n} tokens"
    )
    axes.set(xlabel="angle to the axis (degrees)", ylabel="density", title=f"sphere, zero temperature, t = {t:g}")
    axes.legend()
    found.figures["F7 on the sphere: density from the uniform law at zero temperature"] = figure


# ---- F1 and F8: snapshots and terminal states ----------------------------------------------------------------------------------------------

LAW = mf.initial.from_density(tilted().density, SPHERE)  # nodes without the symmetry of the components
HAND_OVER = (np.diag([4.0, 1.0, 1.0]), np.diag([1.0, 2.0, 0.5]))  # VA = diag(4, 2, .5): the top of VA is e1, that of V is e2
HEADS = {  # A, V in the frame of the problem, beta, end of the run
    "(a) V = A = I": (I, I, 20.0, 12.0),
    "(b) pair of points": (I, np.diag([1.0, 0.2, 0.1]), 20.0, 10.0),
    "(b) great circle": (I, np.diag([1.0, 1.0, 0.2]), 20.0, 6.0),
    "(b') VA and V differ": (HAND_OVER[0], HAND_OVER[1], 2.0, 10.0),  # the mesh must resolve (beta |Av|)^{-1/2}
    "(c) negative top": (I, -np.diag([0.2, 1.0, 1.0]), 20.0, 40.0),
    "(d) rotation": (I, np.array([[1.0, -1.5, 0.0], [1.5, 1.0, 0.0], [0.0, 0.0, 0.2]]), 20.0, 6.0),
}


def gallery(found: claims.Findings, quick: bool) -> None:
    """F1, F8: every case by tokens and by a mesh, their distance over the mesh's own error, and the end state that the spectra name."""
    cells, n = (642, 700) if quick else (2562, 2000)
    spacing = SPHERE.mesh(cells).spacing
    chosen = {name: HEADS[name] for name in list(HEADS)[1:2]} if quick else HEADS
    figure = Figure(figsize=(2.6 * len(chosen), 7.5), layout="constrained")
    spaces = Figure(figsize=(11, 3.6), layout="constrained")
    to_E_axes, to_top_axes, turning = spaces.subplots(1, 3)
    rows: list[list] = [["case", "end state named by the spectra", "quantity", "tokens", "mesh"]]
    for column, (name, (A, V, beta, t_end)) in enumerate(chosen.items()):
        problem = mf.Problem(mf.Attention(about_axis(A), I, about_axis(V), beta), SPHERE, LAW, t_end)
        times = np.linspace(0, t_end, 25)
        runs = {
            "tokens": solve(problem, mf.Particles(n=n, placement="nodes", tol=1e-6), times),
            "mesh": solve(problem, mf.FiniteVolume(cells=cells), times),
        }
        snapshots(figure, column, len(chosen), name, problem, runs)
        found.numbers[f"F1 {name}: W1 between tokens and mesh before the clusters are a cell wide, in cells"] = (
            mf.wasserstein(runs["tokens"].measures[4], runs["mesh"].measures[4], SPHERE, p=1) / spacing
        )
        END[name](found, rows, runs, spacing)
        if name[:3] != "(a)":
            to_E = {key: np.array([diagnostics.distance_to_dominant_space(law, problem) for law in run.measures]) for key, run in runs.items()}
            for key, style in (("tokens", "-"), ("mesh", ":")):
                to_E_axes.semilogy(times, to_E[key], style, lw=1, label=f"{name}, {key}", color=f"C{column}")
        if name[:4] == "(b')":
            for key, style in (("tokens", "-"), ("mesh", ":")):
                to_top_axes.semilogy(times, to_E[key], style, color="C0", label=f"to E, top of VA, {key}")
                to_top_axes.semilogy(
                    times, [diagnostics.distance_to_value_space(law, problem) for law in runs[key].measures], style, color="C1", label=f"to the top of V, {key}"
                )
            to_top_axes.set(xlabel="t", ylabel="root-mean-square sine", title=name)
            to_top_axes.legend(fontsize=6)
        if name[:3] == "(d)":
            turning.plot(times, [turning_rate(law, problem) for law in runs["tokens"].measures], "-", label="tokens")
            turning.plot(times, [turning_rate(law, problem) for law in runs["mesh"].measures], ":", label="mesh")
            turning.axhline(1.5, color="k", lw=0.6)
            turning.set(xlabel="t", ylabel="mean rate of turning", title=name)
            turning.legend(fontsize=6)
    to_E_axes.set(xlabel="t", ylabel="root-mean-square sine of the angle to E")
    to_E_axes.legend(fontsize=5)
    found.tables["F8 on the sphere: end states"] = rows
    found.figures["F1, F8 on the sphere: tokens at the start, in the metastable phase and at the end, and the mesh at the end; E in red"] = figure
    found.figures["F5 on the sphere: distance to E; hand-over from E to the top space of V; rate of turning"] = spaces


def snapshots(figure: Figure, column: int, columns: int, name: str, problem: mf.Problem, runs: dict[str, mf.Trajectory]) -> None:
    """Three times by tokens, the last by the mesh, seen from the side of the first axis; E as points or as a great circle."""
    tokens, mesh = runs["tokens"], runs["mesh"]
    seen = TURN @ np.linalg.qr(np.array([[0.8, -0.5, -0.3], [0.45, 0.85, 0.0], [0.4, 0.1, 0.95]]).T)[0]
    frames = [(tokens.measures[k], f"t = {tokens.times[k]:.2g}") for k in (0, 8, 24)] + [(mesh.final, "mesh, end")]
    E = mf.limits.spectrum(problem.attention).dominant_basis
    angle = np.linspace(0, 2 * np.pi, 200)
    for row, (law, title) in enumerate(frames):
        axes = figure.add_subplot(4, columns, row * columns + column + 1)
        axes.plot(np.cos(angle), np.sin(angle), color="0.8", lw=0.6)
        x, w = law.points @ seen, law.weights / law.weights.max()
        strong = w > 1e-3
        for side, shade in ((-1, 0.25), (1, 1.0)):  # the far side is faint
            there = strong & (side * x[:, 2] > 0)
            axes.scatter(x[there, 0], x[there, 1], s=4 + 12 * np.sqrt(w[there]) if row == 3 else 2, alpha=0.6 * shade, color="C0", lw=0)
        if E.shape[1] == 1:
            ends = np.stack([E[:, 0], -E[:, 0]]) @ seen
            axes.plot(ends[:, 0], ends[:, 1], "r+", ms=9)
        elif E.shape[1] == 2:
            circle = np.stack([np.cos(angle), np.sin(angle)], axis=1) @ E.T @ seen
            axes.plot(circle[:, 0], circle[:, 1], "r-", lw=0.5)
        axes.set_title(f"{name}\n{title}" if row == 0 else title, fontsize=7)
        axes.set_aspect("equal")
        axes.axis("off")


def note(found: claims.Findings, rows: list[list], case: str, state: str, what: str, by_tokens: float, by_mesh: float) -> None:
    """A quantity of the end state by both methods."""
    found.numbers[f"F8 {case}: {what}, tokens"], found.numbers[f"F8 {case}: {what}, mesh"] = by_tokens, by_mesh
    rows.append([case, state, what, by_tokens, by_mesh])


def both(runs: dict[str, mf.Trajectory], quantity: Any) -> tuple[float, float]:
    return quantity(runs["tokens"]), quantity(runs["mesh"])


def share_near(law: mf.Measure, axis: np.ndarray, reach: float) -> float:
    """Mass within `reach` radians of +-axis."""
    return float(law.weights[np.abs(law.points @ axis) > np.cos(reach)].sum())


def end_clusters(found: claims.Findings, rows: list[list], runs: dict[str, mf.Trajectory], spacing: float) -> None:
    """(a) No motion at zero temperature: the energy rises, the law does not fall onto a subspace, the mean order of all tokens stays far from one."""

    def spread(run: mf.Trajectory) -> float:
        second = (run.final.points * run.final.weights[:, None]).T @ run.final.points
        return float(np.linalg.eigvalsh(second)[0])

    def rise(run: mf.Trajectory) -> float:
        return diagnostics.energy(run.final, run.problem) / diagnostics.energy(run.measures[0], run.problem)

    note(found, rows, "(a)", "clusters in all directions", "least second moment", *both(runs, spread))
    note(found, rows, "(a)", "clusters in all directions", "rise of the energy", *both(runs, rise))


def end_pair(found: claims.Findings, rows: list[list], runs: dict[str, mf.Trajectory], spacing: float) -> None:
    """(b) dim E = 1."""
    limit = mf.limits.push_forward(runs["tokens"].problem)
    note(found, rows, "(b) pair", "two points +-v, for ever", "mass within two cells of +-v", *both(runs, lambda run: share_near(run.final, AXIS, 2 * spacing)))
    masses = (limit.weights[limit.points @ AXIS > 0].sum(), limit.weights[limit.points @ AXIS < 0].sum())
    note(found, rows, "(b) pair", "two points +-v, for ever", "mass at +v less that of the push-forward",
         *both(runs, lambda run: float(run.final.weights[run.final.points @ AXIS > 0].sum() - masses[0])))  # fmt: skip


def end_circle(found: claims.Findings, rows: list[list], runs: dict[str, mf.Trajectory], spacing: float) -> None:
    """(b) dim E = 2."""

    def off(run: mf.Trajectory) -> float:
        return float(np.sqrt(run.final.weights @ (run.final.points @ TURN[:, 2]) ** 2))

    note(found, rows, "(b) circle", "the great circle E", "root-mean-square distance to E", *both(runs, off))


def departure(run: mf.Trajectory) -> float:
    """When <x_2^2> passes 1/2."""
    second = np.array([law.weights @ (law.points @ TURN[:, 1]) ** 2 for law in run.measures])
    after = int(np.argmax(second > 0.5))
    return float(np.interp(0.5, second[after - 1 : after + 1], run.times[after - 1 : after + 1])) if after else np.inf


def departures(found: claims.Findings) -> None:
    """(b'): the time of departure against log beta by tokens, (log(beta)/2) (|Av|/g + 1/(l_top(V) - l_v(V))) + O(1)."""
    A, V = HAND_OVER
    betas, times = np.array([5.0, 10.0, 20.0, 40.0]), np.linspace(0, 14.0, 57)
    left = []
    for beta in betas:
        problem = mf.Problem(mf.Attention(about_axis(A), I, about_axis(V), float(beta)), SPHERE, LAW, times[-1])
        left.append(departure(solve(problem, mf.Particles(n=2000, placement="nodes", tol=1e-6), times)))
    fit = fits.line(np.log(betas), np.array(left))
    found.numbers["(b') slope of the departure time in log beta, over the predicted 1.5"] = fit.slope / (0.5 * (4 / 2 + 1 / (2 - 1)))
    found.tables["(b') on the sphere: when <x2^2> passes 1/2, by tokens"] = [["beta", "time"], *zip(betas.tolist(), left, strict=True), ["slope", str(fit)]]


def end_handover(found: claims.Findings, rows: list[list], runs: dict[str, mf.Trajectory], spacing: float) -> None:
    """(b') First the top of VA, then the top of V; when <x_2^2> passes 1/2."""

    def most(run: mf.Trajectory) -> float:
        return max(share_near(law, AXIS, 0.5) for law in run.measures)

    state = "first +-e1 (VA), then +-e2 (V)"
    note(found, rows, "(b')", state, "most mass within 0.5 of E", *both(runs, most))
    note(found, rows, "(b')", state, "mass within 0.3 of the top of V at the end", *both(runs, lambda run: share_near(run.final, TURN[:, 1], 0.3)))
    by_tokens, by_mesh = both(runs, departure)
    found.numbers["F8 (b'): departure by the mesh over departure by tokens"] = by_mesh / by_tokens
    rows.append(["(b')", state, "time at which <x2^2> passes 1/2", by_tokens, by_mesh])


def end_blobs(found: claims.Findings, rows: list[list], runs: dict[str, mf.Trajectory], spacing: float) -> None:
    """(c) Two blobs whose variance in each of the two directions is |l1| / (beta (|l2| - |l1|)); a mesh adds its own width."""
    predicted = np.sqrt(0.2 / (20 * 0.8))

    def width(run: mf.Trajectory) -> float:
        angle = np.arccos(np.minimum(np.abs(run.final.points @ AXIS), 1.0))
        return float(np.sqrt(run.final.weights @ angle**2 / 2)) / predicted

    note(found, rows, "(c)", "two blobs, no collapse", "width over the predicted one", *both(runs, width))


def turning_rate(law: mf.Measure, problem: mf.Problem) -> float:
    """Mean rate of turning in the plane of the complex pair."""
    x = law.points @ TURN
    v = mf.attention.plan(problem.attention, SPHERE, law.points, tol=1e-8).velocity(law.weights) @ TURN
    return float(law.weights @ ((x[:, 0] * v[:, 1] - x[:, 1] * v[:, 0]) / np.maximum(x[:, 0] ** 2 + x[:, 1] ** 2, 1e-12)))


def end_rotation(found: claims.Findings, rows: list[list], runs: dict[str, mf.Trajectory], spacing: float) -> None:
    """(d) On the plane tokens turn at 1.5 <x, m>, and lag behind the rotating map of zero temperature."""
    problem, tokens = runs["tokens"].problem, runs["tokens"]
    note(
        found,
        rows,
        "(d)",
        "rotation on the plane E",
        "mean rate of turning at the end, over Im l",
        *both(runs, lambda run: turning_rate(run.final, problem) / 1.5),
    )
    cold = flow(problem.attention, tokens.measures[0].points, problem.t_end) @ TURN
    warm = tokens.final.points @ TURN
    ahead = np.arctan2(cold[:, 1], cold[:, 0]) - np.arctan2(warm[:, 1], warm[:, 0])
    found.numbers["F8 (d): mean lag of tokens behind the rotating map, times beta over Im l t"] = (
        float(np.angle(tokens.final.weights @ np.exp(1j * ahead))) * problem.attention.beta / (1.5 * problem.t_end)
    )


END = dict(zip(HEADS, (end_clusters, end_pair, end_circle, end_handover, end_blobs, end_rotation), strict=True))


def measure(quick: bool) -> claims.Findings:
    found = claims.Findings()
    approach_and_plateau(found, quick)
    densities(found, quick)
    gallery(found, quick)
    if not quick:
        departures(found)
    return found


if __name__ == "__main__":
    sys.exit(claims.run(__file__, measure, __doc__ or ""))
