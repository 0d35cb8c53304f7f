r"""What a law of tokens looks like: energy, moments, entropy, clusters, distance to a subspace.

Every diagnostic can be called as `f(measure, problem)`, the form of an observer of `solve`; those that need the measure alone let
`problem` be left out. A measure on a mesh is read as the attention reads it, its cell masses as Diracs at the cell centres; only
`entropy` needs the density.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from mfpde.attention import AttentionOperator, plan
from mfpde.errors import InputError
from mfpde.geometry import Geometry
from mfpde.measure import Measure
from mfpde.mesh import Mesh
from mfpde.model import Attention, Problem


def log_energy(measure: Measure, problem: Problem) -> float:
    r"""`log(2 beta E) - beta |A|`, at most 0, with the interaction energy

        E(mu) = (1 / 2 beta) iint e^{beta <Ax, y>} mu(dx) mu(dy) = (1 / 2 beta) int Z dmu

    and `|A|` the largest singular value, so that `e^{beta |A|} / 2 beta` is the most E can be. Never overflows or underflows.

    Raises
    ------
    InputError
        At `beta = inf`, where E has no finite value.

    Notes
    -----
    At `beta = 0` the value is 0 for every law. Relative error of E: 1e-10, the tolerance of the attention sums; their cost, too:
    O(N log N) on most meshes, O(n^2) for n atoms. E rises along the flow if `A` is symmetric and `V = A` (see `dissipation`); any A has an energy,
    but then it need not rise. Source: Geshkovski, Letrouit, Polyanskiy and Rigollet, arXiv 2312.10794; docs/theory.

    Examples
    --------
    >>> import mfpde as mf
    >>> circle = mf.Circle()
    >>> problem = mf.Problem(mf.Attention.identity(2, beta=1e4), circle, mf.initial.uniform(circle), t_end=1)
    >>> one = mf.Measure(circle.points([0.0]), [1.0])
    >>> mf.diagnostics.log_energy(one, problem)
    0.0
    >>> two = mf.Measure(circle.points([0.0, 2.0]), [0.5, 0.5])
    >>> round(mf.diagnostics.log_energy(two, problem), 12)  # log(1/2): two clusters do not see each other
    -0.69314718056
    """
    log_z, _ = _attention_of(measure, problem).evaluate(measure.weights)
    return _log_average(measure.weights, log_z) - problem.attention.sharpness


def energy(measure: Measure, problem: Problem) -> float:
    r"""The interaction energy relative to its largest value, `E / (e^{beta |A|} / 2 beta)`, in [0, 1]: the exponential of `log_energy`, which see.

    It is 1 for a Dirac at a top singular vector of `A` (any Dirac if `A = I`), `e^{-beta} I_0(beta)` for the uniform law with `A = I`, and 1 for all laws
    at `beta = 0`. It underflows to 0 where all scores stay more than 745 below `beta |A|`; `log_energy` does not.

    Examples
    --------
    >>> import mfpde as mf
    >>> problem, _ = mf.cases.two_clusters(beta=4.0, t_end=1.0)
    >>> pair = mf.Measure(mf.Circle().points([0.0, 2.0]), [0.5, 0.5])
    >>> round(mf.diagnostics.energy(pair, problem), 6)  # (1 + e^{4 (cos 2 - 1)}) / 2
    0.501733
    """
    return float(np.exp(log_energy(measure, problem)))


def dissipation(measure: Measure, problem: Problem) -> float:
    r"""The rate `dE/dt` of `energy` along the equation, in the same units: for symmetric A

        dE/dt = int Z <v, A m> dmu,        times 2 beta e^{-beta |A|},

    which for `V = A` is `int Z |v|^2 dmu >= 0`: the energy rises. For other V it may have either sign.

    Raises
    ------
    InputError
        If `A` is not symmetric, for then the rate involves the transposed attention too, and at `beta = inf`.

    Notes
    -----
    Tolerance and cost of `log_energy`. Source: docs/theory (energy identities); for A = V = I also arXiv 2312.10794.

    Examples
    --------
    >>> import mfpde as mf
    >>> problem, _ = mf.cases.two_clusters(beta=4.0, t_end=1.0)
    >>> pair = mf.Measure(mf.Circle().points([0.0, 2.0]), [0.5, 0.5])
    >>> D = -2 * np.sin(2.0) / (1 + np.exp(4 * (1 - np.cos(2.0))))                # the distance of two equal tokens falls at this rate
    >>> rate = -4 / 2 * np.sin(2.0) * np.exp(4 * (np.cos(2.0) - 1)) * D           # of (1 + e^{4 (cos D - 1)}) / 2
    >>> bool(np.isclose(mf.diagnostics.dissipation(pair, problem), rate, rtol=1e-9))
    True
    """
    attention = problem.attention
    if not np.allclose(attention.A, attention.A.T, rtol=0, atol=1e-14 * float(np.linalg.norm(attention.A, 2))):
        raise InputError(f"The rate of the energy needs a symmetric A = K^T Q.\n  A = {attention.A.tolist()}\n  Difference the energy in time.")
    operator = _attention_of(measure, problem)
    log_z, mean = operator.evaluate(measure.weights)
    velocity = problem.geometry.project(operator.targets, mean @ attention.V.T)
    power = np.sum(velocity * (mean @ attention.A.T), axis=1)
    return float(2 * attention.beta * (measure.weights * np.exp(log_z - attention.sharpness)) @ power)


def _attention_of(measure: Measure, problem: Problem) -> AttentionOperator:
    """The attention of a measure on itself; a mesh is planned once."""
    if problem.attention.beta == np.inf:
        raise InputError("The interaction energy has no value at beta = inf.\n  Leave it out of the observers of a zero-temperature problem.")
    if measure.mesh is not None:
        return _planned(problem.attention, problem.geometry, measure.mesh)
    return plan(problem.attention, problem.geometry, measure.points)


@lru_cache(maxsize=4)
def _planned(attention: Attention, geometry: Geometry, mesh: Mesh) -> AttentionOperator:
    return plan(attention, geometry, mesh)


def _log_average(weights: np.ndarray, logarithms: np.ndarray) -> float:
    """`log sum_i w_i e^{l_i}` without overflow."""
    carried = weights > 0
    top = logarithms[carried].max()
    return float(top + np.log(weights[carried] @ np.exp(logarithms[carried] - top)))


def fourier_moments(measure: Measure, k: Any) -> Any:
    r"""`z_k = int e^{i k theta} dmu` on the circle, for one whole number `k` or an array of them; complex, same shape as `k`.

    Cell masses count as Diracs at the cell centres. If they are the exact masses of a smooth density, its own moment is
    `z_k / sinc(k h / 2)` with `sinc x = sin x / x`, up to aliasing; growth rates are not touched by that factor.

    Raises
    ------
    InputError
        If the measure does not live on the circle or `k` is not whole.

    Examples
    --------
    >>> import mfpde as mf
    >>> pair = mf.Measure(mf.Circle().points([0.0, np.pi]), [0.5, 0.5])
    >>> mf.diagnostics.fourier_moments(pair, [0, 1, 2]).round(12).real
    array([1., 0., 1.])
    """
    modes = np.asarray(k)
    if not (np.issubdtype(modes.dtype, np.number) and np.isrealobj(modes) and np.array_equal(modes, np.round(modes))):
        raise InputError(f"Fourier modes on the circle are whole numbers.\n  k = {k!r}")
    theta, flat = measure.angles(), modes.ravel()
    moments = np.array([measure.weights @ np.exp(1j * mode * theta) for mode in flat]).reshape(modes.shape)
    return complex(moments) if modes.ndim == 0 else moments


def order_parameter(measure: Measure, problem: Problem | None = None) -> float:
    r"""The resultant `|int x dmu|`: 1 for a Dirac, 0 for a balanced law; any dimension.

    Examples
    --------
    >>> import mfpde as mf
    >>> mf.diagnostics.order_parameter(mf.Measure([[1, 0], [0, 1], [-1, 0], [0, -1]], [0.25] * 4))
    0.0
    """
    return float(np.linalg.norm(measure.mean))


def entropy(measure: Measure, problem: Problem | None = None) -> float:
    r"""`int rho log rho`, rho per arc length or area and constant on cells, with 0 log 0 = 0; `-log |S|` for the uniform law, which is the least.

    Raises
    ------
    InputError
        For atoms, which have no density.

    Examples
    --------
    >>> import mfpde as mf
    >>> mesh = mf.Circle().mesh(8)
    >>> uniform = mf.Measure(mesh.centres, mesh.volumes / (2 * np.pi), mesh)
    >>> round(mf.diagnostics.entropy(uniform) + float(np.log(2 * np.pi)), 12)
    0.0
    """
    density = measure.density()
    carried = density > 0
    return float(measure.weights[carried] @ np.log(density[carried]))


class Cluster(NamedTuple):
    """One cluster on the circle: `centre` (mean angle, radians in [0, 2 pi)), `mass`, `width` (standard deviation of the angle, radians)."""

    centre: float
    mass: float
    width: float


def clusters(measure: Measure, problem: Problem | None = None, *, resolution: float = 0.05, contrast: float = 2.0, min_mass: float = 1e-3) -> list[Cluster]:
    r"""The clusters of a law on the circle, in the order of their centres; a density and its particles are read alike.

    The law is smoothed by a bump of standard deviation `resolution`. A cluster is an arc between two valleys of the smoothed density
    whose peak is at least `contrast` times the higher of the two; flatter peaks join their neighbour across that valley, flattest first.
    Arcs that hold less than `min_mass` are dust: they are left out, so the masses sum to 1 less the dust.
    Centre, mass and width are those of the original points in the arc, not of the smoothed density.

    Parameters
    ----------
    resolution : float
        Radians, in (0, 0.5]. Equal clusters closer than about 3.5 of it count as one. For n random atoms keep it well above `2 pi / n`:
        the peaks of sampling noise are peaks.
    contrast : float
        At least 1.
    min_mass : float
        At least 0.

    Returns
    -------
    list of Cluster
        Empty if no peak stands out: the uniform law has no cluster. Its length varies in time, so observe `cluster_count` in `solve`
        and call this on `trajectory.measures`.

    Raises
    ------
    InputError
        If the measure does not live on the circle, or for parameters out of range.

    Notes
    -----
    Cost O(n + k^2 + 1/resolution) with k peaks of the smoothed density. Source: none, the definition is ours.

    Examples
    --------
    >>> import mfpde as mf
    >>> pair = mf.Measure(mf.Circle().points([6.24, 0.06, 3.0]), [0.25, 0.25, 0.5])
    >>> for cluster in mf.diagnostics.clusters(pair):  # the first one lies across the seam
    ...     print("centre {:.4f}, mass {:.2f}, width {:.4f}".format(*cluster))
    centre 0.0084, mass 0.50, width 0.0516
    centre 3.0000, mass 0.50, width 0.0000
    """
    if not 0 < resolution <= 0.5:
        raise InputError(f"resolution is an angle in radians, in (0, 0.5].\n  resolution = {resolution!r}")
    if not (contrast >= 1 and min_mass >= 0):
        raise InputError(f"A contrast is at least 1, a mass at least 0.\n  contrast = {contrast!r}, min_mass = {min_mass!r}")
    theta = measure.angles()
    smooth = _smoothed(measure, theta, resolution)
    _, valleys = _standing_peaks(smooth, contrast)
    if not valleys:
        return []
    bounds = np.sort((np.array(valleys) + 0.5) * (2 * np.pi / len(smooth)) % (2 * np.pi))
    arc = np.searchsorted(bounds, theta, side="right") % len(bounds)
    found = []
    for number in range(len(bounds)):
        member = arc == number
        weights, mass = measure.weights[member], float(measure.weights[member].sum())
        if not mass > 0 or mass < min_mass:
            continue
        start = bounds[number - 1]
        lifted = (theta[member] - start) % (2 * np.pi)
        centre = weights @ lifted / mass
        found.append(Cluster(float((start + centre) % (2 * np.pi)), mass, float(np.sqrt(weights @ (lifted - centre) ** 2 / mass))))
    return sorted(found)


def cluster_count(measure: Measure, problem: Problem | None = None) -> int:
    """The number of `clusters`, with their default parameters."""
    return len(clusters(measure))


def _smoothed(measure: Measure, theta: np.ndarray, resolution: float) -> np.ndarray:
    """Masses on a grid of spacing at most `resolution / sqrt(20)`, averaged three times over 9 neighbours: standard deviation sqrt(20) spacings.

    A sum of non-negative terms, so that an empty arc stays exactly empty.
    """
    size = int(np.ceil(2 * np.pi * np.sqrt(20) / resolution))
    if measure.mesh is None:
        masses = np.bincount(np.minimum((theta * (size / (2 * np.pi))).astype(int), size - 1), measure.weights, size)
    else:
        faces = np.concatenate([[0.0], np.cumsum(measure.mesh.volumes)])
        cumulative = np.concatenate([[0.0], np.cumsum(measure.weights)])
        masses = np.diff(np.interp(np.arange(size + 1) * (faces[-1] / size), faces, cumulative))
    box = np.full(9, 1 / 9)
    bump = np.convolve(np.convolve(box, box), box)
    reach = len(bump) // 2
    return np.convolve(np.concatenate([masses[-reach:], masses, masses[:reach]]), bump, mode="valid")


def _standing_peaks(height: np.ndarray, contrast: float) -> tuple[list[float], list[float]]:
    """Peaks of a periodic sequence that stand out, and their valleys: valley i lies between the peaks i and i + 1, in the middle of its bottom.

    The flattest peak goes first, together with the higher valley beside it. Differences of 1e-13 of the maximum are round-off, not relief.
    """
    size = len(height)
    rise = np.roll(height, -1) - height
    slopes = np.flatnonzero(np.abs(rise) > 1e-13 * height.max())
    if len(slopes) == 0:
        return [], []
    upwards = rise[slopes] > 0
    turns = upwards != np.roll(upwards, -1)
    middle = (slopes + 1 + np.append(slopes[1:], slopes[0] + size)) / 2  # of the level stretch that follows the slope
    peaks, valleys = middle[turns & upwards], middle[turns & ~upwards]
    peaks, valleys = list(peaks), list(valleys if peaks[0] < valleys[0] else np.roll(valleys, -1))
    top, bottom = ([height[int(place) % size] for place in places] for places in (peaks, valleys))
    while peaks:
        saddle = np.maximum(bottom, np.roll(bottom, 1))
        flattest = int(np.argmin(np.divide(top, saddle, out=np.full(len(top), np.inf), where=saddle > 0)))
        if top[flattest] >= contrast * saddle[flattest]:
            break
        between = flattest if bottom[flattest] >= bottom[flattest - 1] else (flattest - 1) % len(bottom)
        del peaks[flattest], top[flattest], valleys[between], bottom[between]
    return peaks, valleys


def distance_to_subspace(measure: Measure, basis: Any) -> float:
    r"""Root-mean-square sine of the angle between the tokens and a linear subspace S, `(int |x - P_S x|^2 dmu)^{1/2}`; any dimension.

    Parameters
    ----------
    basis : array_like, shape (d, k) or (d,)
        Columns that span S, independent but not necessarily orthonormal.

    Raises
    ------
    InputError
        If the basis has another height than the points, or dependent columns.

    Examples
    --------
    >>> import mfpde as mf
    >>> cross = mf.Measure([[1, 0], [0, 1]], [0.75, 0.25])
    >>> mf.diagnostics.distance_to_subspace(cross, [1, 0])
    0.5
    """
    columns = np.asarray(basis, dtype=np.float64)
    columns = columns[:, None] if columns.ndim == 1 else columns
    d = measure.points.shape[1]
    if columns.ndim != 2 or columns.shape[0] != d or not 1 <= columns.shape[1] <= d or not np.isfinite(columns).all():
        raise InputError(f"A basis holds vectors of R^{d} as columns.\n  basis has shape {np.shape(basis)}.\n  Give finite numbers, shape ({d}, k).")
    left, singular_values, _ = np.linalg.svd(columns)
    if not singular_values[-1] > 1e-12 * singular_values[0]:
        raise InputError(f"The columns of a basis are independent.\n  singular values = {singular_values.tolist()}\n  Leave out the dependent ones.")
    sines = measure.points @ left[:, columns.shape[1] :]  # components along the orthogonal complement: no cancellation near S
    return float(np.sqrt(measure.weights @ np.sum(sines**2, axis=1)))


def distance_to_dominant_space(measure: Measure, problem: Problem) -> float:
    r"""`distance_to_subspace` for E, the dominant space of the drift `M = V A`, onto which tokens fall at low temperature (`limits.spectrum`).

    Zero if E is the whole space.

    Examples
    --------
    >>> import mfpde as mf
    >>> attention = mf.Attention(Q=[[4, 0], [0, 1]], K=[[1, 0], [0, 1]], V=[[1, 0], [0, 2]], beta=100)
    >>> problem = mf.Problem(attention, mf.Circle(), mf.initial.uniform(mf.Circle()), t_end=1)
    >>> token = mf.Measure([[1, 0]], [1])                                             # top of VA = diag(4, 2), not of V
    >>> mf.diagnostics.distance_to_dominant_space(token, problem), mf.diagnostics.distance_to_value_space(token, problem)
    (0.0, 1.0)
    """
    return distance_to_subspace(measure, _dominant_basis(problem.attention))


def distance_to_value_space(measure: Measure, problem: Problem) -> float:
    """`distance_to_subspace` for the dominant space of `V` alone, which rules the terminal phase, once clusters are narrower than `beta^{-1/2}`."""
    eye = np.eye(problem.attention.dim)
    return distance_to_subspace(measure, _dominant_basis(Attention(eye, eye, problem.attention.V, problem.attention.beta)))


def _dominant_basis(attention: Attention) -> np.ndarray:
    from mfpde.limits import spectrum

    return spectrum(attention).dominant_basis
