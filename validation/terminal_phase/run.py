"""The end of the story at finite beta, named by the spectra of V and VA alone, and reached: cases (a), (b), (b'), (b''), (c), (d)."""

from __future__ import annotations

import sys
import warnings
from textwrap import fill

import numpy as np
from matplotlib.figure import Figure
from scipy.special import ive

import mfpde as mf
from mfpde import claims
from mfpde.cases import rotation
from mfpde.claims import fits

CIRCLE = mf.Circle()
I = np.eye(2)
LAW = mf.initial.fourier([0.15 * np.exp(1j), 0.125j, 0.1 * np.exp(-0.4j)])
TURN = rotation(np.deg2rad(20))
HEADS = {  # A, V, beta, end of the run
    "a": (I, I, 40.0, 28.0),
    "b": (I, np.diag([1.0, 0.5]), 20.0, 25.0),
    "b'": (np.diag([4.0, 1.0]), np.diag([1.0, 2.0]), 20.0, 14.0),
    "b''": (TURN, np.diag([1.0, 0.5]) @ TURN.T, 50.0, 18.0),
    "c": (I, -np.diag([0.2, 1.0]), 50.0, 80.0),
    "d": (I, I + rotation(np.pi / 2), 40.0, 28.0),
}
MEANING = {
    "a": "many clusters, frozen for times e^{beta ...}",
    "b": "an antipodal pair of points at +-v that stays",
    "b'": "first +-v, the top of VA, then +-u, the top of V",
    "b''": "first +-v, then the axis leaves, since Av is not parallel to v",
    "c": "two blobs of standard deviation sqrt(|l1| / (beta (|l2| - |l1|))), no collapse",
    "d": "clusters that turn together for ever, at the rate Im l once they are narrow",
}


def predicted_end(attention: mf.Attention) -> str:
    """The case, from the eigenvalues and eigenvectors of V and VA, and beta for the stability of a pair. No law, no run."""
    values, vectors = np.linalg.eig(attention.V)
    spread = np.ptp(values.real)
    M = mf.limits.spectrum(attention)
    if M.kind == "full" and spread < 1e-12:
        return "a"
    if np.abs(values.imag).max() > 1e-12 and spread < 1e-12 and M.kind == "complex":
        return "d"
    order = np.argsort(-values.real)
    l1, l2 = values.real[order]
    if l1 < 0:
        return "c"
    v = M.dominant_basis[:, 0]
    if abs(np.linalg.det(np.stack([attention.A @ v, v]))) > 1e-9 * np.linalg.norm(attention.A, 2):
        return "b''"
    top = vectors[:, order[0]].real
    if abs(np.linalg.det(np.stack([top, v]))) > 1e-9:
        return "b'"
    return "b" if l2 / l1 < np.tanh(attention.beta * np.linalg.norm(attention.A @ v)) else "a"


def run_of(case: str, quick: bool) -> mf.Trajectory:
    A, V, beta, t_end = HEADS[case]
    problem = mf.Problem(mf.Attention(A, I, V, beta), CIRCLE, LAW, t_end)
    method = mf.FiniteVolume(cells=384) if case == "c" else mf.Lagrangian(cells=128 if quick else 256, tol=1e-8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return mf.solve(problem, method, save_at=np.linspace(0, t_end, 49))


def by_tokens(run: mf.Trajectory) -> mf.Trajectory:
    """The same problem and times by tokens on nodes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return mf.solve(run.problem, mf.Particles(n=800, placement="nodes", tol=1e-7), save_at=run.times)


def share_near(law: mf.Measure, axis: np.ndarray, reach: float) -> float:
    """Mass within `reach` radians of +-axis."""
    return float(law.weights[np.abs(law.points @ axis) > np.cos(reach)].sum())


def blob_width(law: mf.Measure, axis: np.ndarray) -> float:
    """Standard deviation of the angle to the line of `axis`."""
    along, across = law.points @ axis, law.points @ [-axis[1], axis[0]]
    angle = np.arctan(across / np.where(along == 0, 1e-300, along))
    return float(np.sqrt(law.weights @ angle**2))


def pair_rates(found: claims.Findings, quick: bool) -> None:
    """(b): both perturbations of an equal antipodal pair, against l2 - l1 tanh beta and (l2 - l1) tanh beta."""
    rows: list[list] = [["l2 / l1", "beta", "perturbation", "measured rate", "predicted"]]
    for l2, beta in ((0.8, 0.5), (0.8, 2.0), (1.0, 1.0)):
        head = mf.Attention(I, I, np.diag([1.0, l2]), beta)
        for name, signs, predicted in (("both to one side", (1, -1), l2 - np.tanh(beta)), ("both turned", (1, 1), (l2 - 1) * np.tanh(beta))):
            start = CIRCLE.points(np.array([0.0, np.pi]) + 1e-5 * np.array(signs))
            problem = mf.Problem(head, CIRCLE, mf.initial.atoms(start, [0.5, 0.5]), 2.0)
            times = np.linspace(0, 2, 9)
            run = mf.solve(problem, mf.Particles(placement="nodes", tol=1e-12), save_at=times)
            deviation = np.array([abs(law.points[0, 1]) for law in run.measures])
            rate = fits.line(times, np.log(deviation)).slope
            found.numbers[f"(b) pair, l2/l1 = {l2:g}, beta = {beta:g}, {name}: error of the rate"] = rate - predicted
            rows.append([l2, beta, name, rate, predicted])
    found.tables["Antipodal pair: rates of its two perturbations; it is stable iff both are negative, l2/l1 < tanh beta"] = rows


def measure(quick: bool) -> claims.Findings:
    found = claims.Findings()
    runs = {case: run_of(case, quick) for case in HEADS}
    for case, run in runs.items():
        found.numbers[f"({case}) is what the spectrum says"] = float(predicted_end(run.problem.attention) == case)
    e1 = I[0]
    final = {case: run.final for case, run in runs.items()}
    # (a) clusters, as many as grow from noise: the number is of the order of sqrt(2 beta), and no longer changes
    counts = [mf.diagnostics.cluster_count(law) for law in runs["a"].measures]
    found.numbers["(a) clusters at the end"] = counts[-1]
    found.numbers["(a) change of their number in the last third of the run"] = abs(counts[-1] - counts[2 * len(counts) // 3])
    found.numbers["(b) mass within 0.01 of +-v at the end"] = share_near(final["b"], e1, 0.01)
    limit = mf.limits.push_forward(runs["b"].problem)
    found.numbers["(b) W1 to the push-forward at the end, times beta"] = 20 * mf.wasserstein(final["b"], limit, CIRCLE, p=1)
    pair_rates(found, quick)
    to_E, to_top = (np.array([f(law, runs["b'"].problem) for law in runs["b'"].measures]) for f in OBSERVED)
    found.numbers["(b') least distance to E, the top of VA"] = to_E.min()
    found.numbers["(b') distance to the top of V at the end"] = to_top[-1]
    found.numbers["(b') order: E is nearest before the top of V is"] = float(runs["b'"].times[to_E.argmin()] < runs["b'"].times[to_top.argmin()])
    near = np.array([share_near(law, e1, 0.3) for law in runs["b''"].measures])
    found.numbers["(b'') most mass within 0.3 of +-v"] = near.max()
    found.numbers["(b'') mass within 0.3 of +-v at the end"] = near[-1]
    found.numbers["(c) width of the blobs over the predicted one"] = blob_width(final["c"], e1) / np.sqrt(0.2 / (50 * 0.8))
    found.numbers["(c) change of the width in the last third of the run, relative"] = abs(
        blob_width(runs["c"].measures[32], e1) / blob_width(final["c"], e1) - 1
    )
    # (d) v = e.m + x.m: narrow clusters turn at x.m = 1; until they are narrow x.m < 1, I_1/I_0(beta) in the uniform law
    _, _, beta, t_end = HEADS["d"]
    late = np.flatnonzero(runs["d"].times >= 0.85 * t_end)
    centres = np.unwrap([max(mf.diagnostics.clusters(runs["d"].measures[k]), key=lambda cluster: cluster.mass).centre for k in late])
    found.numbers["(d) rate of turning at the end"] = fits.line(runs["d"].times[late], centres).slope
    start = mf.Problem(runs["d"].problem.attention, CIRCLE, mf.initial.uniform(CIRCLE), 1.0).initial.nodes(400)
    speed = mf.attention.plan(runs["d"].problem.attention, CIRCLE, start.points).velocity(start.weights)
    found.numbers["(d) rate of turning of the uniform law, over I_1/I_0"] = float(np.linalg.norm(speed, axis=1).mean() / (ive(1, beta) / ive(0, beta)))
    found.numbers["(d) clusters at the end"] = mf.diagnostics.cluster_count(final["d"])
    # a second method for each end state: tokens
    clouds = {case: by_tokens(run) for case, run in runs.items()}
    for case in ("b", "b'", "d"):
        found.numbers[f"({case}) W1 between moving cells and tokens at the end"] = mf.wasserstein(final[case], clouds[case].final, CIRCLE, p=1)
    found.numbers["(a) clusters at the end, tokens"] = mf.diagnostics.cluster_count(clouds["a"].final)
    found.numbers["(b'') mass within 0.3 of +-v at the end, tokens"] = share_near(clouds["b''"].final, e1, 0.3)
    found.numbers["(c) width of the blobs over the predicted one, tokens"] = blob_width(clouds["c"].final, e1) / np.sqrt(0.2 / (50 * 0.8))
    gallery(found, runs, clouds)
    two_spaces(found, runs["b'"].times, to_E, to_top, clouds["b'"])
    return found


OBSERVED = (mf.diagnostics.distance_to_dominant_space, mf.diagnostics.distance_to_value_space)


def gallery(found: claims.Findings, runs: dict[str, mf.Trajectory], clouds: dict[str, mf.Trajectory]) -> None:
    """F1 and F8: distribution functions at three times for each case."""
    figure = Figure(figsize=(11, 5.5), layout="constrained")
    for axes, (case, run) in zip(figure.subplots(2, 3).flat, runs.items(), strict=True):
        for k in (0, len(run.times) // 3, len(run.times) - 1):
            for law, style in ((run.measures[k], "-"), (clouds[case].measures[k], ":")):
                theta = (law.angles() + np.pi) % (2 * np.pi) - np.pi
                order = np.argsort(theta)
                label = f"t = {run.times[k]:.3g}" if style == "-" else None
                axes.plot(np.degrees(theta[order]), np.cumsum(law.weights[order]), style, drawstyle="steps-post", lw=1, color=f"C{k % 10}", label=label)
        axes.set_title(fill(f"({case}) {MEANING[case]}", 48), fontsize=7)
        axes.set(xlabel="angle (degrees)", ylabel="mass to the left")
        axes.legend(fontsize=6)
    found.figures["Gallery of terminal phases: distribution functions at the start, in the metastable phase and at the end (dotted: tokens)"] = figure


def two_spaces(found: claims.Findings, times: np.ndarray, to_E: np.ndarray, to_top: np.ndarray, cloud: mf.Trajectory) -> None:
    """F5."""
    figure = Figure(figsize=(6, 3.5), layout="constrained")
    axes = figure.subplots()
    axes.semilogy(times, to_E, label="to E, the top of VA")
    axes.semilogy(times, to_top, label="to the top of V")
    for colour, distance in zip(("C0", "C1"), OBSERVED, strict=True):
        axes.semilogy(times, [distance(law, cloud.problem) for law in cloud.measures], ":", color=colour, label="the same by tokens")
    seen = np.array([OBSERVED[0](law, cloud.problem) for law in cloud.measures])
    found.numbers["(b') distance to E, tokens against moving cells, largest difference"] = float(np.abs(seen - to_E).max())
    axes.set(xlabel="t", ylabel="root-mean-square sine")
    axes.legend()
    found.figures["(b') hand-over from the dominant space of VA to that of V"] = figure


if __name__ == "__main__":
    sys.exit(claims.run(__file__, measure, __doc__ or ""))
