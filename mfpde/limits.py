r"""Where the zero-temperature equation ends up, and how fast: the spectrum of the drift matrix M = VA.

At zero temperature a token moves along `x(s) = e^{sM} x_0 / |e^{sM} x_0|`, on a clock of its own. So everything is linear algebra:

    E        the invariant space of the eigenvalues with the largest real part ("dominant")
    Pi_E     the spectral projector on E, along the other invariant space: orthogonal only if M is normal
    T_inf    x -> Pi_E x / |Pi_E x|, the limit of every token, when M acts on E as a multiple of the identity
    rates    how fast the law gets there in each Wasserstein distance

Derivations in docs/theory, sections 2 to 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from scipy.linalg import schur, solve_sylvester

from mfpde.errors import InputError, NumericalError
from mfpde.measure import Measure
from mfpde.model import Attention, Problem

EPS = float(np.finfo(float).eps)
Kind = Literal["real", "complex", "defective", "full"]


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The dominant invariant space of the drift matrix, made by `spectrum`.

    Attributes
    ----------
    drift : (d, d)
        `M = VA`.
    eigenvalues : (d,) complex
        Sorted by falling real part.
    kind : str
        "real": M is a multiple of the identity on E and tokens converge to `T_inf`; "full": on the whole space, nothing moves;
        "complex": tokens rotate for ever; "defective": a Jordan block, tokens converge like 1/s only.
    gap : float
        Distance in real part between the dominant eigenvalues and the others; `inf` when there are no others (k = d).
    dominant_basis : (d, k)
        Orthonormal columns that span E.
    left_basis : (k, d)
        The dual rows: `left_basis @ dominant_basis = I`; they vanish on the complementary invariant space.
    projector : (d, d)
        `Pi_E = dominant_basis @ left_basis`.
    condition : float
        `|Pi_E|` in the spectral norm: 1 for normal M; input errors grow by this factor.
    singular : bool
        Whether `A` has a kernel. There the score of a token is flat and the zero-temperature velocity is not `P_x M x / |Ax|`.
    """

    drift: np.ndarray
    eigenvalues: np.ndarray
    kind: Kind
    gap: float
    dominant_basis: np.ndarray
    left_basis: np.ndarray
    projector: np.ndarray
    condition: float
    singular: bool

    @property
    def k(self) -> int:
        """Dimension of E."""
        return self.dominant_basis.shape[1]

    @property
    def top(self) -> float:
        """Mean real part of the dominant eigenvalues."""
        return float(self.eigenvalues[: self.k].real.mean())

    @property
    def explain(self) -> str:
        """One sentence on what the tokens do."""
        d, k, top = len(self.drift), self.k, self.top
        frequency = float(np.abs(self.eigenvalues[:k].imag).max())
        if self.kind == "full":
            sentence = f"M = VA is {top:.6g} times the identity: no token moves at zero temperature."
        elif self.kind == "complex":
            where = "rotate for ever" if k == d else f"fall onto a {k}-dimensional space and rotate there for ever"
            sentence = f"The dominant eigenvalues {top:.6g} +- {frequency:.6g}i are complex: tokens {where}, no limit."
        elif self.kind == "defective":
            sentence = f"The dominant eigenvalue {top:.6g} has a Jordan block: tokens approach its eigenvector like 1/s, at no exponential rate."
        elif k == 1:
            v = np.array2string(self.dominant_basis[:, 0] + 0.0, precision=4, suppress_small=True)
            sentence = f"The dominant eigenvalue {top:.6g} is real and simple: tokens converge to +-v, v = {v}, split by the left eigenvector."
        else:
            sentence = f"The dominant eigenvalue {top:.6g} is real with {k} eigenvectors in R^{d}: tokens converge to the unit sphere of E."
        if self.singular:
            sentence += " A is singular: tokens in its kernel score all others alike and follow the mean instead."
        return sentence

    def __repr__(self) -> str:
        values = ", ".join(f"{z.real:.6g}" if z.imag == 0 else f"{z:.6g}" for z in self.eigenvalues)
        return f"Spectrum of VA ({self.kind}): eigenvalues {values}; dim E = {self.k}, gap {self.gap:.6g}, |Pi_E| = {self.condition:.4g}. {self.explain}"


@dataclass(frozen=True)
class Rates:
    """Exponents of the approach to the limit law, made by `rates`; per unit of time t.

    Attributes
    ----------
    escape : float
        a: the mass that has not left the complement of E by time t falls like `e^{-k a t}`.
    approach : float
        b: the distance of every other token to E falls like `e^{-b t}`.
    k : int
        Dimension of E, the codimension of the repeller.
    """

    escape: float
    approach: float
    k: int

    def exponent(self, p: float) -> float:
        """`c(W_p) = min(k a / p, b)`."""
        return min(self.k * self.escape / p, self.approach)


def invariant_space(M: np.ndarray, above: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`(basis, dual, block)` for the eigenvalues with real part > `above`: basis (d,k) orthonormal, dual (k,d), M basis = basis block.

    Ordered real Schur form, then a Sylvester equation for the dual (Golub and Van Loan, Matrix Computations, section 7.6).
    """
    T, Z, k = schur(M, output="real", sort=lambda re, im=0.0: np.real(re) > above)
    block, coupling, rest = T[:k, :k], T[:k, k:], T[k:, k:]
    R = solve_sylvester(block, -rest, coupling) if k < len(M) else np.zeros((k, 0))
    return Z[:, :k], Z[:, :k].T + R @ Z[:, k:].T, block


def _groups(real_parts: np.ndarray, tolerance: float) -> list[slice]:
    """Runs of sorted `real_parts` whose neighbours are at most `tolerance` apart."""
    cuts = np.flatnonzero(-np.diff(real_parts) > tolerance) + 1
    edges = [0, *cuts.tolist(), len(real_parts)]
    return [slice(a, b) for a, b in pairwise(edges)]


def spectrum(attention: Attention, *, tol: float = 1e-7) -> Spectrum:
    """Eigen-analysis of the drift matrix `M = VA`; any dimension, any real matrix.

    Parameters
    ----------
    attention : Attention
        Any temperature: `beta` plays no role.
    tol : float
        Eigenvalues whose real parts differ by at most `tol |M|` (spectral norm) count as equal, and an imaginary part below that as zero.
        Groups that round-off cannot separate, `gap <= 100 eps |M| |Pi_E|`, are merged too: a Jordan block of size j spreads by eps^(1/j).

    Returns
    -------
    Spectrum
        Printing it says what the tokens do. Cost O(d^3).

    Examples
    --------
    A non-normal drift: the circle is cut by the left eigenvector (1, 0.8), not by v = (1, 0).

    >>> import mfpde as mf
    >>> s = mf.limits.spectrum(mf.Attention(Q=[[1, 0], [0, 1]], K=[[1, 0], [0, 1]], V=[[1, 0.4], [0, 0.5]], beta=100))
    >>> s.kind, s.k, round(s.gap, 12)
    ('real', 1, 0.5)
    >>> s.projector.round(12)
    array([[1. , 0.8],
           [0. , 0. ]])
    """
    M = attention.drift
    d = len(M)
    scale = float(np.linalg.norm(M, 2))
    values = np.linalg.eigvals(M).astype(complex)
    values = values[np.lexsort((-values.imag, -values.real))]
    cuts = [group.stop for group in _groups(values.real, tol * scale)]
    for k in cuts:  # the last candidate, k = d, always passes
        gap = float(values[k - 1].real - values[k].real) if k < d else np.inf
        above = (values[k - 1].real + values[k].real) / 2 if k < d else -np.inf
        basis, dual, block = invariant_space(M, above)
        condition = float(np.linalg.norm(dual, 2))
        if basis.shape[1] == k and gap > 100 * EPS * scale * condition:
            break
    group = values[:k]
    top = group.real.mean()
    spread = float(np.ptp(group.real))
    kind: Kind
    if np.abs(group.imag).max() > max(tol * scale, 2 * spread):  # round-off spreads a real Jordan block evenly around its eigenvalue
        kind = "complex"
    elif np.linalg.norm(block - top * np.eye(k), 2) > d * tol * scale:
        kind = "defective"
    else:
        kind = "full" if k == d else "real"
    if k == 1:  # one orientation for all runs: the largest component of v is positive
        sign = np.sign(basis[np.argmax(np.abs(basis[:, 0])), 0])
        basis, dual = sign * basis, sign * dual
    singular_values = np.linalg.svd(attention.A, compute_uv=False)
    return Spectrum(
        drift=M,
        eigenvalues=values,
        kind=kind,
        gap=gap,
        dominant_basis=basis,
        left_basis=dual,
        projector=basis @ dual,
        condition=condition,
        singular=bool(singular_values[-1] <= 4 * d * EPS * singular_values[0]),
    )


def _settling(attention: Attention) -> Spectrum:
    """The spectrum, or an `InputError` where tokens have no limit of the form `T_inf`."""
    s = spectrum(attention)
    if s.kind in ("complex", "defective"):
        remedy = {
            "complex": "Compare with the rotating map itself: methods.zero_temperature.flow.",
            "defective": "Follow the exact flow instead (methods.zero_temperature.flow), or perturb V to split the eigenvalue.",
        }[s.kind]
        raise InputError(f"The zero-temperature flow has no limit map T_inf.\n  {s.explain}\n  {remedy}")
    return s


def T_inf(attention: Attention, points: np.ndarray) -> np.ndarray:
    r"""The limit of every token at zero temperature, `T_inf(x) = Pi_E x / |Pi_E x|`.

    Parameters
    ----------
    attention : Attention
        Its dominant eigenvalue must be real and semisimple.
    points : array_like, shape (n, d)
        Unit vectors.

    Returns
    -------
    ndarray, shape (n, d)
        Unit vectors in E. Derived in docs/theory, section 2.

    Raises
    ------
    InputError
        For a complex or defective dominant eigenvalue, and for points in the kernel of `Pi_E`: they never leave the repeller.

    Examples
    --------
    >>> import mfpde as mf
    >>> attention = mf.Attention(Q=[[1, 0], [0, 1]], K=[[1, 0], [0, 1]], V=[[1, 0.4], [0, 0.5]], beta=100)
    >>> mf.limits.T_inf(attention, [[0, 1], [-0.6, 0.8]]) + 0.0
    array([[1., 0.],
           [1., 0.]])
    """
    s = _settling(attention)
    x = np.atleast_2d(np.asarray(points, dtype=np.float64))
    if x.ndim != 2 or x.shape[1] != attention.dim:
        raise InputError(f"points must have shape (n, {attention.dim}).\n  points has shape {np.shape(points)}.")
    image = x @ s.projector.T
    length = np.linalg.norm(image, axis=1, keepdims=True)
    stuck = ~(length[:, 0] > 4 * EPS * s.condition * np.linalg.norm(x, axis=1))
    if stuck.any():
        first = int(np.argmax(stuck))
        raise InputError(
            f"{stuck.sum()} points lie in the kernel of Pi_E, the repeller, and have no limit in E.\n"
            f"  The first is point {first}: {x[first].tolist()}, |Pi_E x| = {length[first, 0]:.3g}.\n  Leave them out, or move them by more than round-off."
        )
    return image / length


def push_forward(problem: Problem, *, nodes: int = 4096) -> Measure:
    r"""The limit law `T_inf # mu_0` of the zero-temperature equation.

    `dim E = 1`: two atoms `+-v` with the exact masses `mu_0(+-<w,x> > 0)`, w the left eigenvector (an atom of `mu_0` on the cut gives half to each).
    Otherwise the `nodes` deterministic nodes of `mu_0`, pushed through `T_inf`; when M is a multiple of the identity nothing moves and they are `mu_0` itself.
    The uniform law on a great circle becomes an angular central Gaussian law there: `nodes` equal masses, at its exact quantiles.

    Raises `InputError` for a complex or defective dominant eigenvalue. Derived in docs/theory, section 2.

    Examples
    --------
    >>> import mfpde as mf
    >>> attention = mf.Attention(Q=[[1, 0], [0, 1]], K=[[1, 0], [0, 1]], V=[[1, 0], [0, 0.5]], beta=100)
    >>> limit = mf.limits.push_forward(mf.Problem(attention, mf.Circle(), mf.initial.fourier([0.2]), t_end=1))
    >>> limit.points, limit.weights.round(6)
    (array([[ 1.,  0.],
           [-1., -0.]]), array([0.627324, 0.372676]))
    """
    s = _settling(problem.attention)
    if s.kind == "full":
        return problem.initial.nodes(nodes)
    if s.k == 2 and getattr(problem.initial, "is_uniform", False):
        return angular_central_gaussian(s, nodes)
    if s.k > 1:
        start = problem.initial.nodes(nodes)
        return Measure(T_inf(problem.attention, start.points), start.weights)
    v, w = s.dominant_basis[:, 0], s.left_basis[0]
    forward = problem.initial.mass_of_halfspace(w / np.linalg.norm(w))
    return Measure(np.stack([v, -v]), np.array([forward, 1 - forward]))


def angular_central_gaussian(spectrum: Spectrum, nodes: int) -> Measure:
    r"""The image of the uniform law of a sphere under `x -> Pi_E x / |Pi_E x|`, for a plane E: `nodes` equal masses at its quantiles.

    In the coordinates `c = left_basis x` the image of a Gaussian has the covariance `S = left_basis left_basis^T`, so its direction is that of
    `S^{1/2} z` with z uniform on the circle, and its density `|S|^{-1/2} / (2 pi <c, S^{-1} c>)` per radian (Tyler, Biometrika 74 (1987) 579).

    >>> import mfpde as mf
    >>> attention = mf.Attention(np.eye(3), np.eye(3), np.diag([1, 1, 0.2]), 100)
    >>> angular_central_gaussian(mf.limits.spectrum(attention), 8).weights
    array([0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125])
    """
    values, vectors = np.linalg.eigh(spectrum.left_basis @ spectrum.left_basis.T)
    turn = (np.arange(nodes) + 0.5) * (2 * np.pi / nodes)
    z = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    x = (z * np.sqrt(values)) @ vectors.T @ spectrum.dominant_basis.T
    return Measure(x / np.linalg.norm(x, axis=1, keepdims=True), np.full(nodes, 1 / nodes))


def rates(attention: Attention) -> Rates:
    r"""The two exponents behind every rate: escape from the repeller and approach to E.

    With eigenvalue groups of real parts `l_1 > l_2 > ...`, multiplicities `k_i` and eigenspaces `E_i`, and `c_i = max |Ay|` over unit y in `E_i`
    (time runs `|Ay|` times as fast as the flow parameter s; the slowest token decides):

        approach   b = (l_1 - l_2) / c_1
        escape     k a = min over j >= 2 of  sum_{i<j} k_i (l_i - l_j) / c_j

    The sum is the volume growth transverse to `E_j`; on the circle there is one j and `a = g/|A w_2|`.
    Both hold for non-normal M, with right eigenvectors. For a complex pair `c_j` is the average of `|Ay|` over its rotation.
    `|Ax|` constant: a = b = g for `d = 2`. When nothing moves both are `inf`.
    Derived in docs/theory, section 4, for an initial law with a positive continuous density.

    Raises
    ------
    InputError
        For a complex or defective dominant eigenvalue, or two complex pairs of one real part below it (not derived).

    Examples
    --------
    >>> import mfpde as mf
    >>> mf.limits.rates(mf.Attention(Q=[[1, 0], [0, 2]], K=[[1, 0], [0, 1]], V=[[1, 0], [0, 0.1]], beta=100))
    Rates(escape=0.4, approach=0.8, k=1)
    """
    s = _settling(attention)
    if s.kind == "full":
        return Rates(np.inf, np.inf, s.k)
    scale = float(np.linalg.norm(s.drift, 2))
    real = s.eigenvalues.real
    below = [slice(s.k + g.start, s.k + g.stop) for g in _groups(real[s.k :], 1e-7 * scale)]
    stragglers = []
    for group in below:
        level = real[group].mean()
        growth = float((real[: group.start] - level).sum())
        stragglers.append(_divide(growth, _clock(attention, s.eigenvalues[group], scale)))
    clock = float(np.linalg.norm(attention.A @ s.dominant_basis, 2))
    gap = s.top - float(real[below[0]].mean())
    return Rates(escape=min(stragglers) / s.k, approach=_divide(gap, clock), k=s.k)


def rate(attention: Attention, p: float) -> float:
    r"""The sharp exponent of `W_p(mu_t, T_inf # mu_0) ~ e^{-c t}` at zero temperature: `c(W_p) = min(k a / p, b)`.

    a, b, k are those of `rates`. At equality a factor `t^{1/p}` multiplies the exponential; where `|Ax|` varies over E, a power of t.

    Parameters
    ----------
    attention : Attention
        Its dominant eigenvalue must be real and semisimple, else `InputError`.
    p : float
        Order of the Wasserstein distance, in [1, inf].

    Examples
    --------
    >>> import mfpde as mf
    >>> attention = mf.Attention(Q=[[1, 0], [0, 1]], K=[[1, 0], [0, 1]], V=[[1, 0], [0, 0.2]], beta=100)
    >>> mf.limits.rate(attention, 1), mf.limits.rate(attention, 2)
    (0.8, 0.4)
    """
    if not p >= 1:
        raise InputError(f"The order of a Wasserstein distance lies in [1, inf].\n  p = {p!r}")
    return rates(attention).exponent(p)


def _divide(growth: float, clock: float) -> float:
    """growth / clock; a clock of zero means that the move takes no time."""
    return growth / clock if clock > 0 else np.inf


def _clock(attention: Attention, values: np.ndarray, scale: float) -> float:
    """c_j: the largest long-time average of |Ay| that a trajectory in the invariant space of one group of eigenvalues can have."""
    M, A = attention.drift, attention.A
    level = values.real.mean()
    if np.abs(values.imag).max() <= max(1e-7 * scale, 2 * float(np.ptp(values.real))):
        # M - level has the eigenspace as its kernel; a Jordan block costs powers of t only, so its eigenvectors decide
        _, singular, rows = np.linalg.svd(M - level * np.eye(len(M)))
        tolerance = max(1e-7 * scale, 2 * float(np.abs(values - level).max()))
        kernel = rows[singular <= tolerance] if (singular <= tolerance).any() else rows[-1:]
        clock = float(np.linalg.norm(A @ kernel.T, 2))
    elif len(values) == 2:
        eigenvalues, vectors = np.linalg.eig(M)
        z = vectors[:, np.argmin(np.abs(eigenvalues - values[0]))]
        clock = average_over_rotation(A, z.real, z.imag)
    else:
        raise InputError(
            f"The escape rate is not derived for several complex pairs with one real part.\n  eigenvalues {values.tolist()}\n"
            "  Measure it with methods.zero_temperature.flow."
        )
    return clock if clock > 4 * len(M) * EPS * float(np.linalg.norm(A, 2)) else 0.0


def average_over_rotation(A: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
    """Mean of `|Ay|/|y|` over `y = a cos u - b sin u`, u in [0, pi]: the real orbit of an eigenvector a + ib, which turns at constant du/ds."""
    previous, n = np.inf, 64
    while n <= 2**20:
        u = np.pi * np.arange(n) / n  # periodic and smooth: the trapezoid rule converges geometrically
        y = np.outer(np.cos(u), a) - np.outer(np.sin(u), b)
        mean = float(np.mean(np.linalg.norm(y @ A.T, axis=1) / np.linalg.norm(y, axis=1)))
        if abs(mean - previous) <= 4 * EPS * mean:
            return mean
        previous, n = mean, 2 * n
    raise NumericalError(
        f"The mean of |Ay| over one rotation does not settle with {n // 2} points.\n  Last values {previous!r}, {mean!r}.\n"
        "  The eigenvalues are nearly defective, or A nearly singular: perturb them, or ask for less time."
    )
