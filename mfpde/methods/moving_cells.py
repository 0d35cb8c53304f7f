r"""Cells that carry their mass and move with the flow: what a law on the circle looks like to `Lagrangian`, and how its cells are divided.

A node has a position `X_i` and a log-density `L_i`; the cell between two nodes has a mass `m_i` that never changes except by division and union.
Cumulative masses are never formed: a tail of mass e^{-100} beside a cluster keeps all its digits.

* Quadrature: Simpson's rule in the angle with the mass built in, `h rho_i / 6` and `h rho_{i+1} / 6` at the ends and the rest of `m_i` in the middle:
  exact mass, fourth order, positive where the cell is resolved.
* Distribution function: in each cell the cubic with the mass of the cell and the densities of its ends, fourth order.
* Division: the polynomial of degree 7 through the masses of three cells and the densities of four nodes, where it agrees with cubic interpolation of L;
  else the latter, with the mass of the cell.
* Atoms: cells that a contracting flow has squeezed below a width become a Dirac in their barycentre.

Derived in docs/moving_cells.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

TWO_PI = 2 * np.pi
GAUSS_NODES, GAUSS_WEIGHTS = np.polynomial.legendre.leggauss(6)
FAINTEST = 1e-290  # a cell lighter than this is a hole: its mass has no digits left


class Cells(NamedTuple):
    """A law on the circle; n nodes and as many cells, k atoms."""

    nodes: np.ndarray  # (n,) increasing angles in radians, the last below the first plus 2 pi
    log_density: np.ndarray  # (n,) per radian, at the nodes
    masses: np.ndarray  # (n,) of the cell that begins at node i; 0 is a hole
    atoms: np.ndarray  # (k,) increasing angles in [0, 2 pi)
    atom_masses: np.ndarray  # (k,)

    @property
    def widths(self) -> np.ndarray:
        """Lengths of the cells in radians, shape (n,)."""
        return np.diff(self.nodes, append=self.nodes[:1] + TWO_PI)


def node_density(cells: Cells) -> np.ndarray:
    """Density at the nodes, at most e^690: in voids that nobody resolves L may run away, and there the mass of the cell limits its use."""
    return np.exp(np.minimum(cells.log_density, 690.0))


def end_masses(cells: Cells) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`(a, b, limited)`: Simpson weights `h rho / 6` of the two ends of every cell, and where they were scaled down to nine tenths of its mass."""
    density = node_density(cells)
    a = cells.widths * density / 6
    b = cells.widths * np.roll(density, -1) / 6
    limit = 0.9 * cells.masses
    limited = a + b > limit
    scale = np.where(limited, limit / np.maximum(a + b, 1e-300), 1.0)
    return a * scale, b * scale, limited & (cells.masses > 0)


def quadrature(cells: Cells) -> tuple[np.ndarray, np.ndarray]:
    """Angles and weights of the law, sorted, zero weights left out: exact masses, fourth order for smooth integrands.

    >>> import numpy as np
    >>> nodes = 2 * np.pi * np.arange(8) / 8
    >>> uniform = Cells(nodes, np.full(8, -np.log(2 * np.pi)), np.full(8, 1 / 8), np.empty(0), np.empty(0))
    >>> angles, weights = quadrature(uniform)
    >>> len(angles), round(float(weights.sum()), 15)
    (16, 1.0)
    """
    a, b, _ = end_masses(cells)
    angles = np.concatenate([cells.nodes, cells.nodes + 0.5 * cells.widths, cells.atoms])
    weights = np.concatenate([a + np.roll(b, 1), np.maximum(cells.masses - a - b, 0.0), cells.atom_masses])
    order = np.argsort(angles, kind="stable")
    angles, weights = angles[order], weights[order]
    return angles[weights > 0], weights[weights > 0]


def _inside(cells: Cells, angles: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`(cell, share, turns)`: the cell of each angle, the place in it from 0 to 1, and whole turns from the first node."""
    ahead = angles - cells.nodes[0]
    turns = np.floor(ahead / TWO_PI)
    place = cells.nodes[0] + (ahead - turns * TWO_PI)
    cell = np.clip(np.searchsorted(cells.nodes, place, side="right") - 1, 0, len(cells.nodes) - 1)
    width = cells.widths[cell]
    share = np.clip((place - cells.nodes[cell]) / np.where(width > 0, width, 1.0), 0.0, 1.0)
    return cell, share, turns


def mass_before(cells: Cells, cell: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Mass of a cell between its first node and the place `share` in it, by the cubic of its distribution function; a line where that is not monotone."""
    density, width, mass = node_density(cells), cells.widths, cells.masses[cell]
    a, b = density[cell] * width[cell], np.roll(density, -1)[cell] * width[cell]
    u = share
    cubic = mass * (3 - 2 * u) * u * u + a * u * (1 - u) ** 2 - b * u * u * (1 - u)
    straight = a + b > 2.9 * mass  # the cubic with end slopes a, b >= 0 is monotone if both are at most 3 m (Fritsch and Carlson 1980)
    return np.where(straight, mass * u, cubic)


def cumulative(cells: Cells, angles: np.ndarray) -> np.ndarray:
    """Mass in [0, theta] for angles in [0, 2 pi], atoms included; shape of `angles`. Fourth order, error O(h^4) of the smooth part."""
    theta = np.asarray(angles, dtype=float)
    total = cells.masses.sum()
    if len(cells.nodes):
        whole = np.concatenate([[0.0], np.cumsum(cells.masses)])

        def smooth(x: np.ndarray) -> np.ndarray:
            cell, share, turns = _inside(cells, x)
            return whole[cell] + mass_before(cells, cell, share) + turns * total

        below = smooth(theta) - smooth(np.zeros(1))
    else:
        below = np.zeros(theta.shape)
    for place, mass in zip(cells.atoms, cells.atom_masses, strict=True):
        below = below + mass * (place % TWO_PI <= theta)
    return below


def density(cells: Cells, angles: np.ndarray) -> np.ndarray:
    """Density per radian of the part without atoms, anywhere: cubic interpolation of its logarithm, 0 in holes; shape of `angles`."""
    theta = np.asarray(angles, dtype=float)
    if not len(cells.nodes):
        return np.zeros(theta.shape)
    cell, share, _ = _inside(cells, theta.ravel())
    stencil = Stencil.around(cells, cell)
    place = cells.nodes[cell] + share * cells.widths[cell]
    value = np.where(cells.masses[cell] > 0, np.exp(np.minimum(stencil.log_density_at(place), 690.0)), 0.0)
    return value.reshape(theta.shape)


class Stencil(NamedTuple):
    """Four nodes about each of c cells: itself between the second and the third."""

    x: list[np.ndarray]  # four arrays (c,) of lifted angles
    L: list[np.ndarray]
    lonely: np.ndarray  # a neighbouring cell is a hole: only the two inner nodes count

    @classmethod
    def around(cls, cells: Cells, cell: np.ndarray) -> Stencil:
        n = len(cells.nodes)
        far = [cell + k for k in (-1, 0, 1, 2)]
        x = [cells.nodes[j % n] + TWO_PI * np.floor_divide(j, n) for j in far]
        L = [cells.log_density[j % n] for j in far]
        hole = cells.masses <= 0
        return cls(x, L, hole[(cell - 1) % n] | hole[(cell + 1) % n] | (n < 4))

    def log_density_at(self, place: np.ndarray) -> np.ndarray:
        """Cubic interpolation of L between the inner nodes, kept within half their difference and 0.2 of them; a line beside a hole."""
        x, L = self.x, self.L
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.zeros(place.shape)
            for a in range(4):
                basis = np.ones(place.shape)
                for b in range(4):
                    if a != b:
                        basis = basis * (place - x[b]) / (x[a] - x[b])
                value = value + basis * L[a]
            line = L[1] + (L[2] - L[1]) * (place - x[1]) / (x[2] - x[1])
        value = np.where(self.lonely, line, value)
        low, high = np.minimum(L[1], L[2]), np.maximum(L[1], L[2])
        pad = 0.5 * (high - low) + 0.2
        return np.clip(value, low - pad, high + pad)


def divided(cells: Cells, cell: np.ndarray) -> Cells:
    """Each of the cells numbered `cell` halved at its midpoint."""
    n = len(cells.nodes)
    stencil = Stencil.around(cells, cell)
    x, L = stencil.x, stencil.L
    middle = 0.5 * (x[1] + x[2])
    mass = cells.masses[cell]
    top = np.maximum(L[1], L[2])
    # by interpolation of L: the shares of the halves and the mass that L promises
    halves = []
    for left, right in ((x[1], middle), (middle, x[2])):
        half = 0.5 * (right - left)
        places = [left + half * (1 + g) for g in GAUSS_NODES]
        halves.append(half * sum(w * np.exp(stencil.log_density_at(place) - top) for w, place in zip(GAUSS_WEIGHTS, places, strict=True)))
    promised = halves[0] + halves[1]
    silent = promised <= 0  # the interpolated density underflows everywhere in the cell: beside a void whose L has run away it says nothing about the shares
    share, log_density = np.where(silent, 0.5, halves[0] / np.where(silent, 1.0, promised)), stencil.log_density_at(middle)
    # by the polynomial of degree 7 of the distribution function, counted from node 1 and in units of e^top
    F = [-cells.masses[(cell - 1) % n], np.zeros(len(cell)), mass, mass + cells.masses[(cell + 1) % n]]
    value, slope = np.zeros(len(cell)), np.zeros(len(cell))
    with np.errstate(all="ignore"):
        scale = np.exp(-top)
        for a in range(4):
            basis, at_node, at_middle = np.ones(len(cell)), np.zeros(len(cell)), np.zeros(len(cell))
            for b in range(4):
                if a != b:
                    basis = basis * (middle - x[b]) / (x[a] - x[b])
                    at_node = at_node + 1 / (x[a] - x[b])  # l_a'(x_a)
                    at_middle = at_middle + 1 / (middle - x[b])  # l_a'(middle) / l_a(middle)
            u, height, density_there = middle - x[a], F[a] * scale, np.exp(L[a] - top)
            factor = (1 - 2 * at_node * u) * height + u * density_there
            value += basis * basis * factor
            slope += basis * basis * (2 * at_middle * factor - 2 * at_node * height + density_there)
        share_7, log_density_7 = value / (mass * scale), np.log(slope) + top
        agree = ~stencil.lonely & (np.abs(share_7 - share) < 0.05 * np.minimum(share, 1 - share)) & (np.abs(log_density_7 - log_density) < 0.2)
    share, log_density = np.where(agree, share_7, share), np.where(agree, log_density_7, log_density)
    # a cell with much less mass than its ends promise hides a dip: there the mean density bounds the new one. (To correct L by the mismatch
    # itself, both ways, makes neighbours zigzag and the divisions cascade.)
    with np.errstate(divide="ignore"):
        dip = np.log(mass / promised) - top < -0.3
        log_density = np.where(dip, np.minimum(log_density, np.log(mass / (x[2] - x[1]))), log_density)
    left_mass = mass * share
    masses = cells.masses.copy()
    masses[cell] = left_mass
    return cells._replace(
        nodes=np.insert(cells.nodes, cell + 1, middle),
        log_density=np.insert(cells.log_density, cell + 1, log_density),
        masses=np.insert(masses, cell + 1, mass - left_mass),
    )


def without(cells: Cells, drop: np.ndarray) -> Cells:
    """The nodes where `drop` (n,) is set removed; the cell right of such a node joins its left neighbour."""
    keep = ~drop
    count = int(keep.sum())
    if not count:
        return cells._replace(nodes=np.empty(0), log_density=np.empty(0), masses=np.empty(0))
    owner = (np.cumsum(keep) - 1) % count  # cells before the first node that stays belong to the last one
    return cells._replace(nodes=cells.nodes[keep], log_density=cells.log_density[keep], masses=np.bincount(owner, cells.masses, count))


def rolled(cells: Cells, first: int) -> Cells:
    """The same law with node `first` in front."""
    nodes = np.concatenate([cells.nodes[first:], cells.nodes[:first] + TWO_PI])
    return cells._replace(nodes=nodes, log_density=np.roll(cells.log_density, -first), masses=np.roll(cells.masses, -first))


def condensed(cells: Cells, width: float, smallest_mass: float = 1e-6) -> Cells:
    """Runs of cells within `width / 2` of a density peak, or of an atom, become that atom: mass and barycentre are kept, W1 changes by less than `width / 2`.

    The end nodes of the run stay and are the rims of a hole.
    """
    L = cells.log_density
    peaks = np.flatnonzero((np.roll(L, 1) < L) & (np.roll(L, -1) <= L) & (np.log(1e-2 / width) < L)) if len(L) else np.empty(0, dtype=int)
    centres = [(place, True) for place in cells.atoms] + [(cells.nodes[j], False) for j in peaks]
    for centre, is_atom in centres:
        cells = _absorbed(cells, centre, is_atom, width, smallest_mass)
    return _met(cells, width)


def _absorbed(cells: Cells, centre: float, is_atom: bool, width: float, smallest_mass: float) -> Cells:
    """The cells within `width / 2` of `centre` gathered in one atom."""

    def near(cells: Cells) -> tuple[np.ndarray, np.ndarray]:
        offset = cells.nodes - centre
        offset -= TWO_PI * np.round(offset / TWO_PI)
        return offset, np.flatnonzero(np.abs(offset) < width / 2)

    offset, close = near(cells)
    n = len(cells.nodes)
    if len(close) < 2:
        return cells
    if close[0] == 0 and close[-1] == n - 1:  # the run crosses the seam: let another node be the first
        gaps = np.flatnonzero(np.diff(close) > 1)
        if not len(gaps):
            return cells
        cells = rolled(cells, int(close[gaps[-1] + 1]))
        offset, close = near(cells)
    first, last = int(close[0]), int(close[-1])
    run = np.arange(first, last)
    mass = float(cells.masses[run].sum())
    if not is_atom and mass < smallest_mass:
        return cells
    a, b, _ = end_masses(cells)
    middle = offset[run] + 0.5 * cells.widths[run]
    moment = float(np.sum(a[run] * offset[run] + b[run] * offset[run + 1] + (cells.masses[run] - a[run] - b[run]) * middle))
    atoms, atom_masses = cells.atoms.copy(), cells.atom_masses.copy()
    if is_atom:
        k = int(np.argmin(np.abs(np.sin((atoms - centre) / 2))))
        atom_masses[k] += mass
        atoms[k] = atoms[k] + moment / atom_masses[k]
    elif mass > 0:
        atoms, atom_masses = np.append(atoms, (centre + moment / mass) % TWO_PI), np.append(atom_masses, mass)
    masses = cells.masses.copy()
    masses[run] = 0.0
    inner = np.zeros(n, dtype=bool)
    inner[first + 1 : last] = True
    return without(cells._replace(masses=masses, atoms=atoms, atom_masses=atom_masses), inner)


def _met(cells: Cells, width: float) -> Cells:
    """Atoms in the order of their angles; those closer than `width` united in their barycentre."""
    atoms, masses = cells.atoms % TWO_PI, cells.atom_masses
    order = np.argsort(atoms, kind="stable")
    atoms, masses = atoms[order], masses[order]
    k = 0
    while len(atoms) > 1 and k < len(atoms):
        other = (k + 1) % len(atoms)
        gap = (atoms[other] - atoms[k]) % TWO_PI
        if gap < width:
            total = masses[k] + masses[other]
            atoms[k] = (atoms[k] + gap * masses[other] / total) % TWO_PI
            masses[k] = total
            atoms, masses = np.delete(atoms, other), np.delete(masses, other)
            order = np.argsort(atoms, kind="stable")
            atoms, masses, k = atoms[order], masses[order], 0
        else:
            k += 1
    return cells._replace(atoms=atoms, atom_masses=masses)


def pieces(cells: Cells, parts: int = 32) -> tuple[np.ndarray, np.ndarray]:
    """The law in pieces of constant density, `(edges (p + 1,), masses (p,))`: edges increase from 0 to 2 pi, an atom is a piece of no length.

    Every cell is cut in `parts` pieces by the cubic of `cumulative`; within a piece the distribution functions differ by at most `h^2 |rho'| / (8 parts^2)`.
    """
    n = len(cells.nodes)
    if n:
        cell, number = np.repeat(np.arange(n), parts), np.tile(np.arange(parts), n)
        below, above = mass_before(cells, cell, number / parts), mass_before(cells, cell, (number + 1) / parts)
        left = cells.nodes[cell] + number / parts * cells.widths[cell]
        masses = np.maximum(above - below, 0.0)
        seam = TWO_PI * np.ceil(left[0] / TWO_PI)
        last = int(np.searchsorted(left, seam, side="right")) - 1  # the piece that the seam cuts in two
        ends = np.append(left, left[0] + TWO_PI)
        share = (seam - ends[last]) / max(ends[last + 1] - ends[last], 1e-300)
        edges = np.concatenate([[0.0], ends[last + 1 : -1] - seam, ends[: last + 1] - seam + TWO_PI, [TWO_PI]])
        masses = np.concatenate([[(1 - share) * masses[last]], masses[last + 1 :], masses[:last], [share * masses[last]]])
        edges = np.maximum.accumulate(np.clip(edges, 0.0, TWO_PI))
    else:
        edges, masses = np.array([0.0, TWO_PI]), np.zeros(1)
    for place, mass in zip(cells.atoms % TWO_PI, cells.atom_masses, strict=True):
        k = min(int(np.searchsorted(edges, place, side="right")) - 1, len(masses) - 1)
        length = edges[k + 1] - edges[k]
        share = (place - edges[k]) / length if length > 0 else 1.0
        masses = np.concatenate([masses[:k], [share * masses[k], mass, (1 - share) * masses[k]], masses[k + 1 :]])
        edges = np.concatenate([edges[: k + 1], [place, place], edges[k + 1 :]])
    return edges, masses
