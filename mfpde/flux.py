r"""Numerical fluxes on any mesh: what passes through each face in unit time. Pure kernels, arrays in, arrays out.

Two fluxes, each right where the other is wrong (docs/numerics tells the story with numbers):

* `donor_flux` takes the velocity at cell *centres*, where a cluster exerts no pull on itself, and lets each cell give its mass away.
  It moves centres of mass exactly, so clusters narrower than a cell are not pinned to the mesh. But a cell in which the velocity
  changes sign receives and never gives: a spike in the density that no refinement removes.
* `upwind_flux` takes the velocity at *faces* and the density from a limited linear profile. It is accurate wherever the density is
  resolved. But a cluster inside one cell sees its own pull at both faces, inward, and never moves again.

`blended_flux` uses the second where the density is resolved and the first where it is not. Where the flow expands nothing can be
pinned, and the second is used whatever the density does.
"""

from __future__ import annotations

import numpy as np

from mfpde.compiled import compiled

# the density counts as resolved when it varies by less than a factor 1/HIGH over a cell and its neighbours, as unresolved from 1/LOW on
LOW, HIGH = 0.4, 0.7
SMALLEST_DENSITY = 1e-300  # a cell with less gives nothing away: denormal quotients are noise, and would make the step depend on round-off


@compiled(inline="always")
def monotonized_central(a, b):
    """Limited slope of the differences `a` (upwind) and `b` (downwind): van Leer, J. Comput. Phys. 23 (1977) 276."""
    if a * b <= 0.0:
        return 0.0
    slope = min(2 * abs(a), 2 * abs(b), 0.5 * abs(a + b))
    return slope if a > 0 else -slope


@compiled
def giving_density(masses, s):
    """Mass per volume of the cells that have any to give, shape (N,)."""
    density = masses / s.volumes
    for i in range(len(density)):
        if density[i] < SMALLEST_DENSITY:
            density[i] = 0.0
    return density


@compiled
def face_speeds(velocity, s):
    """Speed through each face along its normal, from cell velocities (N, d) by the mesh's stencil; shape (F,)."""
    speed = np.zeros(len(s.face_cells))
    for f in range(len(speed)):
        for k in range(s.speed_cells.shape[1]):
            for r in range(velocity.shape[1]):
                speed[f] += s.speed_weights[f, k, r] * velocity[s.speed_cells[f, k], r]
    return speed


@compiled
def resolution(density, s):
    """theta in [0, 1] for each cell: 1 where the density is resolved, 0 where it is not."""
    lowest, highest = density.copy(), density.copy()
    for f in range(len(s.face_cells)):
        i, j = s.face_cells[f]
        lowest[i] = min(lowest[i], density[j])
        lowest[j] = min(lowest[j], density[i])
        highest[i] = max(highest[i], density[j])
        highest[j] = max(highest[j], density[i])
    theta = np.ones(len(density))
    for i in range(len(density)):
        if highest[i] > 0:
            theta[i] = min(max((lowest[i] / highest[i] - LOW) / (HIGH - LOW), 0.0), 1.0)
    return theta


@compiled
def blend(density, velocity, s):
    """Share of the upwind flux at each face: the smaller theta of its two cells, 1 where the flow along the edge expands."""
    theta = resolution(density, s)
    share = np.empty(len(s.face_cells))
    for f in range(len(share)):
        i, j = s.face_cells[f]
        expansion = 0.0
        for r in range(velocity.shape[1]):
            expansion += s.directions[f, 1, r] * velocity[j, r] - s.directions[f, 0, r] * velocity[i, r]
        share[f] = 1.0 if expansion >= 0 else min(theta[i], theta[j])
    return share


@compiled
def donor_flux(density, velocity, s):
    """Each cell gives its mass to the neighbours that span the cone of its velocity: `v = sum_q alpha_q l_q`, rate alpha_q."""
    flux = np.zeros(len(s.face_cells))
    cone_size, dim = s.cone_duals.shape[1:]
    for i in range(len(density)):
        inside, depth = s.cone_start[i], -np.inf
        for c in range(s.cone_start[i], s.cone_start[i + 1]):
            least = np.inf
            for q in range(cone_size):
                alpha = 0.0
                for r in range(dim):
                    alpha += s.cone_duals[c, q, r] * velocity[i, r]
                least = min(least, alpha)
            if least > depth:
                inside, depth = c, least
        for q in range(cone_size):
            alpha = 0.0
            for r in range(dim):
                alpha += s.cone_duals[inside, q, r] * velocity[i, r]
            f = s.cone_faces[inside, q]
            given = max(alpha, 0.0) * density[i] * s.volumes[i]
            flux[f] += given if s.face_cells[f, 0] == i else -given
    return flux


@compiled
def upwind_flux(density, speed, s, slope):
    """Density at the face from the upwind cell, times speed and area; `slope` 0 is constant in the cell, 1/2 reaches the face (MUSCL)."""
    flux = np.empty(len(speed))
    for f in range(len(speed)):
        side = 0 if speed[f] >= 0 else 1
        here, there = s.face_cells[f, side], s.face_cells[f, 1 - side]
        behind = 0.0
        for k in range(s.upwind_cells.shape[2]):
            behind += s.upwind_weights[f, side, k] * (density[here] - density[s.upwind_cells[f, side, k]])
        at_face = density[here] + slope * monotonized_central(behind, density[there] - density[here])
        flux[f] = speed[f] * s.face_areas[f] * at_face
    return flux


@compiled
def blended_flux(density, velocity, s, slope):
    """The flux of the package: upwind where the density is resolved or the flow expands, donor elsewhere; shape (F,), mass per time."""
    share = blend(density, velocity, s)
    upwind = upwind_flux(density, face_speeds(velocity, s), s, slope)
    donor = donor_flux(density, velocity, s)
    return share * upwind + (1 - share) * donor


@compiled
def mass_change(flux, s):
    """What each cell gains in unit time, shape (N,); the sum over all cells is zero but for round-off."""
    change = np.zeros(len(s.volumes))
    for f in range(len(flux)):
        change[s.face_cells[f, 0]] -= flux[f]
        change[s.face_cells[f, 1]] += flux[f]
    return change


@compiled
def outflow_rate(masses, flux, s):
    """`max_i (what leaves cell i in unit time) / m_i`: an Euler step of dt keeps every mass non-negative iff dt * rate <= 1."""
    leaves = np.zeros(len(masses))
    for f in range(len(flux)):
        leaves[s.face_cells[f, 0 if flux[f] >= 0 else 1]] += abs(flux[f])
    rate = 0.0
    for i in range(len(masses)):
        if leaves[i] > 0:
            rate = max(rate, leaves[i] / masses[i])
    return rate


@compiled
def speed_and_change(masses, before, after):
    """`(int |v| dmu, int |w - v| dmu)` for two velocity fields v, w (N, d) under the cell masses (N,)."""
    speed, change = 0.0, 0.0
    for i in range(len(masses)):
        v, w = 0.0, 0.0
        for r in range(before.shape[1]):
            v += before[i, r] ** 2
            w += (after[i, r] - before[i, r]) ** 2
        speed += masses[i] * np.sqrt(v)
        change += masses[i] * np.sqrt(w)
    return speed, change
