r"""Attention sums: from a measure to `(log Z, m)` at every target.

    operator = plan(attention, geometry, sources, targets)      once
    log_z, mean = operator.evaluate(weights)                    often

An operator is a short list of *tiers*, fast ones first. Each returns its values with a computed error bound for every target;
the targets whose bound exceeds `tol` go on to the next tier. What the last tier cannot promise raises `ToleranceError`.
`tol` bounds the relative error of Z (down to its conditioning, 8 eps |log Z|: the exponential of a number known to eps)
and the absolute error of every component of m.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from mfpde.errors import InputError, ToleranceError, unknown_name
from mfpde.geometry import Geometry
from mfpde.measure import check_weights
from mfpde.mesh import Mesh
from mfpde.model import Attention

TOLERANCES = (1e-14, 1e-1)


class Tier(Protocol):
    """One way to evaluate the sums.

    `evaluate(weights, rows)` returns `(log_z (r,), mean (r, d), error (r,))` at the targets `rows`, where `error` bounds both the
    relative error of Z beyond its conditioning and the absolute error of m; `inf` where the tier has nothing to say. A tier may also
    have `moments(weights, rows)`, which returns the attention covariance (r, d, d) before the error, and `worth(carried, targets)`, false
    where so few sources carry mass, or so few targets are left, that the next tier is faster.
    """

    name: str

    def evaluate(self, weights: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...


class AttentionOperator:
    """Attention of any measure on fixed sources, seen from fixed targets. Made by `plan`.

    Attributes
    ----------
    tiers : dict
        How many targets each tier served in the last evaluation, e.g. `{"fft": 900, "direct": 124}`.
    """

    def __init__(self, attention: Attention, geometry: Geometry, targets: np.ndarray, size: int, tol: float, ladder: list[Tier]) -> None:
        self.attention, self.geometry, self.tol = attention, geometry, tol
        self.targets, self.size = targets, size
        self.ladder = ladder
        self.tiers: dict[str, int] = {tier.name: 0 for tier in ladder}

    def evaluate(self, weights: Any) -> tuple[np.ndarray, np.ndarray]:
        """`(log Z (m,), mean (m, d))` for non-negative `weights` (n,) of any positive total.

        Raises `InputError` for NaN, negative or all-zero weights and `ToleranceError` if no tier reaches `tol`.
        """
        return self._climb("evaluate", weights)

    def moments(self, weights: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """`(log Z (m,), mean (m, d), covariance (m, d, d))`: also the attention covariance E[(y - m)(y - m)^T] at each target.

        `beta V Cov A` is the derivative of the mean, hence of the velocity, along the geometry (oracle: finite differences).
        """
        return self._climb("moments", weights)

    def _climb(self, question: str, weights: Any) -> Any:
        """Ask the tiers in turn, each for the targets that those before it could not certify."""
        w = check_weights(weights, self.size)
        count = len(self.targets)
        rows = np.arange(count)
        answer: list[np.ndarray] = []
        self.tiers = dict.fromkeys(self.tiers, 0)
        carried = int(np.count_nonzero(w))
        for tier in self.ladder:
            if not hasattr(tier, question):  # a transform certifies no covariance
                continue
            if tier is not self.ladder[-1] and hasattr(tier, "worth") and not tier.worth(carried, len(rows)):
                continue
            *values, error = getattr(tier, question)(w, rows)
            good = error <= self.tol
            self.tiers[tier.name] += int(good.sum())
            if len(rows) == count:
                answer = values
            else:
                for whole, part in zip(answer, values, strict=True):
                    whole[rows[good]] = part[good]
            if good.all():
                return tuple(answer)
            rows, left = rows[~good], error[~good]
        raise ToleranceError(
            f"The attention sums miss their tolerance at {len(rows)} of {count} targets.\n"
            f"  tol = {self.tol:g}, smallest bound there {left.min():.3g}, largest {left.max():.3g}; served so far: {self.tiers}.\n"
            "  Raise tol, or use method='auto' or 'direct'."
        )

    def velocity(self, weights: Any) -> np.ndarray:
        """`v(x) = P_x V m(x)` at the targets, shape (m, d)."""
        _, mean = self.evaluate(weights)
        return self.geometry.project(self.targets, np.einsum("ij,nj->ni", self.attention.V, mean))  # a BLAS product this thin only wakes threads

    def __repr__(self) -> str:
        path = " -> ".join(tier.name for tier in self.ladder)
        return f"AttentionOperator({self.size} sources, {len(self.targets)} targets, {path}, tol={self.tol:g})"


def plan(
    attention: Attention,
    geometry: Geometry,
    sources: Mesh | np.ndarray,
    targets: Mesh | np.ndarray | None = None,
    *,
    tol: float = 1e-10,
    method: str = "auto",
) -> AttentionOperator:
    """Prepare the attention of measures on `sources`, seen from `targets`.

    Parameters
    ----------
    sources, targets : Mesh or array_like (n, d)
        A mesh stands for its cell centres. Without `targets` the sources look at themselves.
    tol : float
        The promise at every target: relative error of Z (down to its conditioning, 8 eps |log Z|), absolute error of m.
        From 1e-14 to 0.1.
    method : str
        "auto", "direct", and on the circle "fft", "blocks", on the sphere "harmonics", "tree". `auto` ends in a tier that always
        succeeds; the others use that tier alone and raise `ToleranceError` where it fails.
        At `beta = inf` there is one way only, the maximum over the support, and a mesh cell supports its whole arc.

    Returns
    -------
    AttentionOperator

    Examples
    --------
    >>> import mfpde as mf
    >>> circle = mf.Circle()
    >>> mesh = circle.mesh(64)
    >>> operator = mf.attention.plan(mf.Attention.identity(2, beta=3), circle, mesh)
    >>> log_z, mean = operator.evaluate(mf.initial.uniform(circle).cell_masses(mesh))
    >>> bool(abs(log_z - 1.585307) .max() < 1e-6)  # log I_0(3)
    True
    """
    if attention.dim != geometry.dim:
        raise InputError(f"Attention acts on R^{attention.dim}, but {geometry!r} lives in R^{geometry.dim}.\n  Give matrices of size {geometry.dim}.")
    if not TOLERANCES[0] <= tol <= TOLERANCES[1]:
        raise InputError(f"tol is out of reach.\n  tol = {tol}\n  Double precision keeps promises from {TOLERANCES[0]:g} to {TOLERANCES[1]:g}.")
    known = METHODS[type(geometry).__name__]
    if method not in known:
        raise unknown_name(f"attention method on {geometry!r}", method, known)
    y = sources.centres if isinstance(sources, Mesh) else geometry.check_points(sources)
    if targets is None:
        x = y
    else:
        x = targets.centres if isinstance(targets, Mesh) else geometry.check_points(targets)
    return AttentionOperator(attention, geometry, x, len(y), tol, _ladder(attention, geometry, sources, y, x, tol, method))


METHODS = {"Circle": ("auto", "direct", "fft", "blocks"), "Sphere": ("auto", "direct", "harmonics", "tree")}
DIRECT_PAIRS = 1 << 17  # up to this many pairs the plain sum is the fastest on the sphere (validation/sphere_attention_speed)
GRID_PAIRS = 1 << 12  # a convolution between grids pays earlier


def _ladder(attention: Attention, geometry: Geometry, sources: Any, y: np.ndarray, x: np.ndarray, tol: float, method: str) -> list[Tier]:
    """The tiers of a plan, fast ones first. `auto` ends with the direct sum, which always succeeds."""
    if attention.beta == np.inf:
        from mfpde.attention.zero_temperature import Argmax

        return [Argmax(attention, geometry, sources if isinstance(sources, Mesh) else y, x)]
    from mfpde.attention.direct import Direct

    if method == "direct":
        return [Direct(attention, y, x)]
    ladder = _on_circle(attention, y, x, tol, method) if geometry.dim == 2 else _on_sphere(attention, y, x, tol, method)
    return [*ladder, Direct(attention, y, x)] if method == "auto" else ladder


def _on_circle(attention: Attention, y: np.ndarray, x: np.ndarray, tol: float, method: str) -> list[Tier]:
    """A transform where it is cheap, for the targets it can certify; tilted blocks for the rest."""
    from mfpde.attention.blocks import Blocks

    ladder: list[Tier] = []
    if method == "fft" or (method == "auto" and len(x) * len(y) > GRID_PAIRS):
        ladder += _fourier(attention, y, x, required=method == "fft")
    if method == "blocks" or (method == "auto" and Blocks.pays(attention, len(y), len(x), tol)):
        ladder.append(Blocks(attention, y, x, tol))
    return ladder


def _on_sphere(attention: Attention, y: np.ndarray, x: np.ndarray, tol: float, method: str) -> list[Tier]:
    """Harmonic transforms where they pay, for the targets they can certify; the tree-pruned sum for the rest."""
    from mfpde.attention.harmonics import Harmonics
    from mfpde.attention.tree import Tree

    large = len(x) * len(y) > DIRECT_PAIRS
    ladder: list[Tier] = []
    if method == "harmonics" or (method == "auto" and large and Harmonics.pays(attention, len(y), len(x))):
        ladder.append(Harmonics(attention, y, x, tol))
    if method == "tree" or (method == "auto" and large):
        ladder.append(Tree(attention, y, x, tol))
    return ladder


def _fourier(attention: Attention, y: np.ndarray, x: np.ndarray, *, required: bool) -> list[Tier]:
    """The transform that fits, if any does: a convolution between grids, else non-uniform transforms."""
    from mfpde.attention.fourier import Circulant, Spectral, grid_offset, is_conformal

    if len(x) == len(y) and is_conformal(attention.A):
        offsets = grid_offset(y), grid_offset(x)
        if offsets[0] is not None and offsets[1] is not None:
            return [Circulant(attention, x, offsets[0], offsets[1])]
    modes = Spectral.bandwidth(attention.sharpness)
    if required or modes * modes < len(x) + len(y):
        return [Spectral(attention, y, x)]
    return []
