"""
1. First steps
==============

In a deep transformer the tokens of a prompt move from layer to layer. Normalise them, let the layers become infinitely
thin and the tokens infinitely many, and what is left is a law on a sphere that is carried along by its own velocity.
This page solves that equation twice, once with a density and once with tokens, and asks how far the two answers are
apart.

Every figure and every printed number below was made when this page was built.
"""

import numpy as np

import mfpde as mf

# %%
# What is solved
# --------------
#
# A ``Problem`` is mathematics: an attention head, the space the tokens live in, their law at time zero, and a final
# time. Here queries, keys and values are the identity, so a token at x looks at a token at y with the score ``<x, y>``:
# it attends to its neighbours, and moves towards them. The inverse temperature ``beta`` says how exclusively.

problem = mf.Problem(
    attention=mf.Attention.identity(dim=2, beta=4.0),
    geometry=mf.Circle(),
    initial=mf.initial.von_mises_mixture(angles=[0.0, 2.0], kappa=4.0),
    t_end=4.0,
)
print(problem)

# %%
# How it is solved
# ----------------
#
# A method is numerics. ``FiniteVolume`` keeps the mass in each of its cells; ``solve`` returns a trajectory, which
# holds the law at the times you ask for. Output times never change the steps, so ask for as many as the picture needs.

times = np.linspace(0, problem.t_end, 41)
pde = mf.solve(problem, mf.FiniteVolume(cells=512), save_at=times)
print(pde)

# %%
# Each of the two bumps gathers itself into a narrow cluster. The clusters attract each other, too, but at this
# temperature so faintly that one hardly sees them move: what becomes of them is the subject of :doc:`3_clusters`. The
# colours are logarithmic when the density spans more than a decade or so.

figure = mf.figures.density(pde)

# %%
# The same with tokens
# --------------------
#
# Finitely many tokens solve the same equation exactly, with a sum in place of the integral. What makes them differ from
# the density is only where they start: here 500 of them are drawn at random. The seed is part of the method, so the run
# can be repeated bit for bit.

cloud = mf.solve(problem, mf.Particles(n=500, seed=0), save_at=times)
tokens = mf.figures.density(cloud)

# %%
# A density and a cloud can be compared because both are measures. On the circle the Wasserstein distance between them
# is exact up to round-off, in radians.

W = [mf.wasserstein(a, b, problem.geometry, p=2) for a, b in zip(pde.measures, cloud.measures, strict=True)]
print("W2 between density and tokens:", *(f"t = {t:.0f}: {w:.3f}" for t, w in zip(times[::10], W[::10], strict=True)), sep="\n    ")

# %%
# Is the difference the tokens' fault or the mesh's?
# --------------------------------------------------
#
# More tokens tell. Random tokens approach their law like one over the square root of their number: four times as many,
# half the distance.

numbers = [100, 400, 1600, 6400]
repeats = range(6)
short = mf.Problem(problem.attention, problem.geometry, problem.initial, t_end=1.0)
density = mf.solve(short, mf.FiniteVolume(cells=512)).final


def distance(tokens):
    """W2 between the density and the final law of these tokens."""
    return mf.wasserstein(density, mf.solve(short, tokens).final, short.geometry)


distances = [np.mean([distance(mf.Particles(n=n, seed=seed, tol=1e-6)) for seed in repeats]) for n in numbers]
for n, mean in zip(numbers, distances, strict=True):
    print(f"{n:5d} random tokens: W2 = {mean:.4f} (mean of {len(repeats)} seeds)")

# %%
# So it was the tokens. Tokens need not be random: ``placement="nodes"`` puts them where a good quadrature rule would,
# with weights, and the same number does far better.

print(f"  400 placed tokens: W2 = {distance(mf.Particles(n=400, placement='nodes')):.4f}")

# %%
# Is the mesh right?
# ------------------
#
# The same question to the density: refine, and look at the order. ``converge`` makes the cells half as wide, again and
# again, and compares with a finer run of another method, moving cells, which share no mesh and no flux with it.

reference = mf.solve(short, mf.Lagrangian(cells=128, tol=1e-8)).final
table = mf.converge(short, mf.FiniteVolume(), [64, 128, 256, 512], reference=reference)
print(table)
orders = mf.figures.order_plot(table)

# %%
# Where to go next: :doc:`2_concentration` is what happens at low temperature, and why that is interesting. To do the
# same from the command line, with a folder that keeps everything, see :doc:`/howto/configure`.
