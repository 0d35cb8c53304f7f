"""
2. Concentration and the limit
==============================

At low temperature a token attends only to the best match of its query. Then the velocity no longer depends on the law
of the others, everything becomes linear algebra, and one can say where all tokens end, and how fast. At a large but
finite ``beta`` the law follows that limit for a while, gets as close as the temperature allows, and no closer. This
page shows the three parts of that sentence: the limit, the rate, the plateau.

The theory is in :doc:`/theory`, sections 2 to 4; what the package measured against it in :doc:`/validation`.
"""

import numpy as np
from matplotlib.figure import Figure

import mfpde as mf

# %%
# The limit is known before anything is solved
# --------------------------------------------
#
# ``concentration`` is a ready case: general matrices Q, K, V, none of them symmetric. All that matters at zero
# temperature is the drift matrix ``M = VA`` with ``A = K^T Q``, and printing its spectrum says what the tokens will do.

problem, _ = mf.cases.concentration(beta=100.0, t_end=20.0)
spectrum = mf.limits.spectrum(problem.attention)
print(spectrum)
limit = mf.limits.push_forward(problem)
print("\nlimit law:", *(f"mass {w:.6f} at angle {a:.4f}" for a, w in zip(limit.angles(), limit.weights, strict=True)), sep="\n    ")

# %%
# The circle is cut by the *left* eigenvector of M, each half goes to one sign of the *right* eigenvector, and the
# masses are those the initial law gives to the halves. Which is what a run shows: dashed lines mark the dominant space,
# triangles the atoms of the limit.

early = [0.0, 1.0, 2.0, 4.0]
run = mf.solve(problem, mf.FiniteVolume(cells=512), save_at=early)
figure = mf.figures.snapshots(run, early)

# %%
# The rate
# --------
#
# How fast does the law approach its limit? That depends on the distance one asks: two things happen at once. Tokens
# near the repeller, the cut, leave it late; all others close in on their atom. The slower of the two decides, and
# ``limits.rate`` is the sharp exponent for each order p of the Wasserstein distance.

for p in (1, 2):
    print(f"W{p} falls like exp(-{mf.limits.rate(problem.attention, p):.4g} t)")

# %%
# At zero temperature the flow is exact, and so are its distances to the limit, far below anything a mesh could resolve.
# Beside it we put the same problem at three finite temperatures, solved with moving cells, which stay accurate when
# clusters become narrow.

times = np.linspace(0, 20, 41)


def distances(method, beta, p):
    """W_p to the limit law at `times`."""
    at_beta, _ = mf.cases.concentration(beta=beta, t_end=times[-1])
    trajectory = mf.solve(at_beta, method, save_at=times)
    return [mf.wasserstein(measure, limit, mf.Circle(), p) for measure in trajectory.measures]


exact = mf.ZeroTemperature(nodes=1024)
rates = mf.figures.decay(
    {"W1": (times, distances(exact, np.inf, 1)), "W2": (times, distances(exact, np.inf, 2))},
    rates={"W1": mf.limits.rate(problem.attention, 1), "W2": mf.limits.rate(problem.attention, 2)},
    title="Zero temperature: distance to the limit, and the predicted slopes",
)

# %%
# The measured curves run parallel to the predicted slopes, and the two slopes differ: a fitted rate means nothing until
# one says in which distance.
#
# The plateau
# -----------
#
# At a finite temperature the velocity is wrong by something of order ``1/beta``. The law decays along the same curve
# until that error shows, and then it stays: the plateau. Ten times the ``beta``, a tenth of the height, and it takes
# longer to get there by a constant.

betas = [30.0, 100.0, 300.0]
W1 = {beta: distances(mf.Lagrangian(cells=192, tol=1e-7), beta, 1) for beta in betas}
series = {f"beta = {beta:g}": (times, W1[beta]) for beta in betas}
plateaus = mf.figures.decay(series, p=1, title="Finite temperature: decay, then a plateau")

# %%
# How high is the plateau? Take the last value of each curve.

heights = np.array([W1[beta][-1] for beta in betas])
slope = np.polyfit(np.log(betas), np.log(heights), 1)[0]
for beta, height in zip(betas, heights, strict=True):
    print(f"beta = {beta:5g}: W1 = {height:.3e}, times beta {beta * height:.3f}")
print(f"fitted exponent of beta: {slope:.3f} (expected: -1)")

scaling = Figure(figsize=(6, 3.6), layout="constrained")
axes = scaling.add_subplot(xlabel=r"$\beta$", ylabel=r"$W_1$ on the plateau", title="Plateau against temperature")
axes.loglog(betas, heights, "o", label="measured")
axes.loglog(betas, heights[0] * betas[0] / np.array(betas), "--", color="grey", label=r"slope $-1$")
axes.set_xticks(betas, labels=[f"{beta:g}" for beta in betas])
axes.minorticks_off()
axes.legend()

# %%
# The exponent is -1 because the initial law is smooth. For a law that jumps at the repeller it is a half of that
# (:doc:`/theory`, section 3), and on a mesh of N cells no plateau lower than half a cell could be seen at all: that is
# why this page used moving cells. :doc:`/which_method` says what each method can resolve.
#
# And after the plateau? Once all tokens sit in narrow clusters, ``A`` no longer matters and the law is ruled by ``V``
# alone: :doc:`3_clusters`.
