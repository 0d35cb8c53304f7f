"""Spectrum, limit law and sharp rates: against eigenvectors, long flows and the exact decay of the distance to the limit."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy.linalg import eig
from scipy.special import logsumexp

import mfpde as mf
from mfpde import limits
from mfpde.methods.zero_temperature import flow

CIRCLE = mf.Circle()


def head(V, A=None):
    V = np.asarray(V, dtype=float)
    A = np.eye(len(V)) if A is None else A
    return mf.Attention(Q=A, K=np.eye(len(V)), V=V, beta=100.0)


def with_spectrum(J, seed):
    """A non-normal matrix similar to J, condition number below 30."""
    rng = np.random.default_rng(seed)
    while True:
        S = rng.normal(size=np.shape(J))
        if np.linalg.cond(S) < 30:
            return S @ J @ np.linalg.inv(S)


def rotated(J, seed):
    Q, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=np.shape(J)))
    return Q @ J @ Q.T


def jordan(size, value=1.0):
    return value * np.eye(size) + np.diag(np.ones(size - 1), 1)


# --- the spectral projector ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [2, 3, 5, 8])
@pytest.mark.parametrize("seed", range(5))
def test_the_projector_is_the_sum_of_right_times_left_eigenvectors(dim, seed):
    M = np.random.default_rng(seed).normal(size=(dim, dim))
    s = limits.spectrum(head(M))
    values, left, right = eig(M, left=True)
    top = np.isclose(values.real, values.real.max(), atol=1e-9)
    expected = sum(np.outer(right[:, i], left[:, i].conj()) / (left[:, i].conj() @ right[:, i]) for i in np.flatnonzero(top)).real
    assert s.k == top.sum()
    # 1e-12: round-off times the condition of the projector and of the eigenvectors, both below 100 for these seeds
    assert np.abs(s.projector - expected).max() < 1e-12
    assert np.abs(s.projector @ s.projector - s.projector).max() < 1e-12
    assert np.abs(M @ s.projector - s.projector @ M).max() < 1e-12
    assert np.trace(s.projector) == pytest.approx(s.k, abs=1e-12)
    assert np.abs(s.left_basis @ s.dominant_basis - np.eye(s.k)).max() < 1e-13
    assert np.abs(s.dominant_basis.T @ s.dominant_basis - np.eye(s.k)).max() < 1e-14
    assert s.condition == pytest.approx(np.linalg.norm(s.projector, 2), rel=1e-12)
    assert s.kind == ("real" if s.k == 1 else "complex")
    if s.k < dim:
        assert s.gap == pytest.approx(values.real.max() - np.sort(values.real)[-s.k - 1], rel=1e-11)


def test_the_projector_is_orthogonal_only_for_normal_matrices():
    assert limits.spectrum(head(rotated(np.diag([2.0, 1.0, 0.0]), 0))).condition == pytest.approx(1, abs=1e-14)
    assert limits.spectrum(head([[1.0, 3.0], [0.0, 0.5]])).projector == pytest.approx(np.array([[1, 6], [0, 0]]), abs=1e-14)


def test_the_projector_is_the_limit_of_the_matrix_exponential():
    """40 digits: e^{s (M - l)} -> Pi_E, the rest is e^{-s gap} = 1e-26 at s = 120."""
    M = with_spectrum(np.diag([1.0, 1.0, 0.5, -1.0]), 4)
    s = limits.spectrum(head(M))
    with mpmath.workdps(60):
        E = mpmath.expm(mpmath.matrix(M.tolist()) * 120)
        E = np.array((E / mpmath.exp(120)).tolist(), dtype=float)
    assert s.kind == "real"
    assert s.k == 2
    assert np.abs(s.projector - E).max() < 1e-11  # the eigenvalue 1 itself is off by a few eps |M| cond, times s = 120


# --- kinds --------------------------------------------------------------------------------------------------------------

BLOCK = np.array([[0.3, 0.4], [-0.4, 0.3]])
KINDS = [
    (np.diag([2.0, 1.0]), "real", 1),
    (np.diag([-1.0, -2.0, -2.0]), "real", 1),
    (np.diag([1.0, 1.0, 0.2]), "real", 2),
    (with_spectrum(np.diag([1.0, 1.0, 1.0, 0.9]), 1), "real", 3),
    (np.diag([1.0, 1.0 + 1e-12]), "full", 2),
    (np.eye(3), "full", 3),
    (np.zeros((2, 2)), "full", 2),
    (-2 * np.eye(2), "full", 2),
    (np.array([[1.0, -1.0], [1.0, 1.0]]), "complex", 2),
    (np.array([[0.0, -1.0], [1.0, 0.0]]), "complex", 2),
    (np.block([[BLOCK, np.zeros((2, 2))], [np.zeros((2, 2)), np.diag([0.1, 0.0])]]), "complex", 2),
    (np.block([[BLOCK, np.eye(2)], [np.zeros((2, 2)), BLOCK]]), "complex", 4),
    (jordan(2), "defective", 2),
    (rotated(jordan(2), 0), "defective", 2),
    (rotated(jordan(3), 1), "defective", 3),  # its eigenvalues come out 1e-5 apart
    (rotated(jordan(4), 2), "defective", 4),  # 2e-4 apart
    (jordan(2, 0.0), "defective", 2),
    (with_spectrum(np.block([[jordan(2), np.zeros((2, 2))], [np.zeros((2, 2)), np.diag([0.5, 0.3])]]), 3), "defective", 2),
]


@pytest.mark.parametrize(("M", "kind", "k"), KINDS)
def test_kinds_are_named(M, kind, k):
    s = limits.spectrum(head(M))
    assert (s.kind, s.k) == (kind, k)
    assert (s.gap == np.inf) == (k == len(M))
    words = {"real": "converge", "full": "no token moves", "complex": "for ever", "defective": "Jordan"}
    assert words[kind] in s.explain
    assert kind in repr(s)
    if kind in ("complex", "defective"):
        for ask in (lambda a: limits.T_inf(a, np.eye(len(M))), lambda a: limits.rate(a, 1), limits.rates):
            with pytest.raises(mf.InputError, match=r"complex|Jordan"):
                ask(head(M))


def test_the_grouping_tolerance_is_a_keyword():
    close = head(np.diag([1.0, 1.0 - 1e-5]))
    assert limits.spectrum(close).kind == "real"
    assert limits.spectrum(close).gap == pytest.approx(1e-5, rel=1e-9)
    assert limits.spectrum(close, tol=1e-4).kind == "full"


def test_a_singular_score_is_named():
    s = limits.spectrum(head(np.eye(2), A=np.diag([1.0, 0.0])))
    assert s.singular
    assert "A is singular" in s.explain
    assert not limits.spectrum(head(np.diag([1.0, 0.0]))).singular  # V is singular, A is not: no harm


# --- T_inf and the limit law ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dim", "spaces"), [(2, 1), (3, 1), (3, 2), (4, 1), (4, 2)])
def test_every_token_converges_to_T_inf(dim, spaces):
    rng = np.random.default_rng(dim)
    M = with_spectrum(np.diag([1.0] * spaces + [0.3, 0.1, -0.5][: dim - spaces]), dim)
    A = rotated(np.diag(np.linspace(1, 2, dim)), 1)
    x = rng.normal(size=(200, dim))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    attention = head(M @ np.linalg.inv(A), A)
    # e^{-g t / |Av|} <= e^{-.7 * 120 / 2} = 6e-19 (times the start's distance from the repeller)
    assert np.abs(flow(attention, x, 120.0) - limits.T_inf(attention, x)).max() < 1e-12


def test_points_of_the_repeller_have_no_limit():
    attention = head([[1.0, 0.4], [0.0, 0.5]])
    repeller = np.array([-0.8, 1.0]) / np.hypot(0.8, 1.0)  # kernel of the left eigenvector (1, .8)
    with pytest.raises(mf.InputError, match="point 1"):
        limits.T_inf(attention, [[1.0, 0.0], repeller])
    assert limits.T_inf(attention, repeller + np.array([1e-12, 0])) == pytest.approx(np.array([[1.0, 0.0]]))
    assert limits.T_inf(attention, repeller - np.array([1e-12, 0])) == pytest.approx(np.array([[-1.0, 0.0]]))
    with pytest.raises(mf.InputError, match="shape"):
        limits.T_inf(attention, np.eye(3))


@pytest.mark.parametrize("seed", range(6))
def test_the_limit_law_is_cut_by_the_left_eigenvector(seed):
    """rho = (1 + .4 cos)/2 pi: the half-plane <w, x> > 0 holds 1/2 + (.4/pi) w_1/|w|."""
    rng = np.random.default_rng(seed)
    attention = head(with_spectrum(np.diag([1.0, 0.2]), seed), A=np.eye(2))
    s = limits.spectrum(attention)
    w = s.left_basis[0] / np.linalg.norm(s.left_basis[0])
    problem = mf.Problem(attention, CIRCLE, mf.initial.fourier([0.2]), t_end=1.0)
    limit = limits.push_forward(problem)
    assert np.abs(s.drift @ limit.points.T - s.top * limit.points.T).max() < 1e-13  # atoms at +-v
    assert limit.weights == pytest.approx([0.5 + 0.4 / np.pi * w[0], 0.5 - 0.4 / np.pi * w[0]], abs=1e-12)
    # independently: count where the tokens of a long flow end up
    theta = rng.uniform(0, 2 * np.pi, 4000)
    ends = flow(attention, CIRCLE.points(theta), 60.0) @ limit.points[0]
    density = 1 + 0.4 * np.cos(theta)
    assert density @ (ends > 0) / density.sum() == pytest.approx(limit.weights[0], abs=0.03)  # 4000 samples: three sigma is .024


def test_other_limit_laws():
    uniform = mf.initial.uniform(CIRCLE)
    frozen = limits.push_forward(mf.Problem(head(3 * np.eye(2)), CIRCLE, uniform, t_end=1.0), nodes=500)
    assert np.array_equal(frozen.points, uniform.nodes(500).points)
    atoms = mf.initial.atoms([[0.6, 0.8], [-0.8, 0.6], [0.0, 1.0]], [0.5, 0.3, 0.2])  # the last one lies on the cut: half to each side
    split = limits.push_forward(mf.Problem(head(np.diag([2.0, 1.0])), CIRCLE, atoms, t_end=1.0))
    assert split.weights == pytest.approx([0.6, 0.4])
    for V in ([[1.0, -1.0], [1.0, 1.0]], jordan(2)):
        with pytest.raises(mf.InputError, match="no limit map"):
            limits.push_forward(mf.Problem(head(V), CIRCLE, uniform, t_end=1.0))


def test_the_limit_law_on_a_plane_of_the_sphere():
    sphere = mf.Sphere()
    x = np.random.default_rng(0).normal(size=(50, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    law = mf.initial.atoms(x, np.full(50, 0.02))
    limit = limits.push_forward(mf.Problem(head(np.diag([1.0, 1.0, 0.3])), sphere, law, t_end=1.0))
    flat = x * [1, 1, 0]
    assert limit.points == pytest.approx(flat / np.linalg.norm(flat, axis=1, keepdims=True), abs=1e-15)


# --- rates ----------------------------------------------------------------------------------------------------------------


def diagonal(first, second, second_value=0.2):
    """Eigenvalues 1 and `second_value`, |A e1| = first, |A e2| = second."""
    A = np.diag([first, second])
    return head(np.diag([1.0, second_value]) @ np.linalg.inv(A), A)


def test_the_rates_by_hand():
    for (first, second), (c1, c2) in {(1, 1): (0.8, 0.4), (1, 2): (0.4, 0.2), (2, 1): (0.4, 0.4), (1, 0.4): (0.8, 0.8)}.items():
        assert limits.rate(diagonal(first, second), 1) == pytest.approx(c1, rel=1e-13)
        assert limits.rate(diagonal(first, second), 2) == pytest.approx(c2, rel=1e-13)
    assert limits.rate(diagonal(1, 1), np.inf) == 0  # the stragglers never all leave
    assert limits.rates(head(np.eye(2))) == limits.Rates(np.inf, np.inf, 2)
    assert limits.rates(head(np.diag([1.0, 1.0, 0.2]))).exponent(1) == pytest.approx(0.8)
    assert limits.rates(head(np.diag([1.0, 1.0, 0.2]))).exponent(4) == pytest.approx(0.4)  # k = 2: two thin directions
    with pytest.raises(mf.InputError, match="order"):
        limits.rate(diagonal(1, 1), 0.5)


def distance_to_the_limit(attention, times, p):
    """W_p to the limit from uniform data, M and A diagonal: by symmetry each token goes to its nearest atom, and one quarter tells all.

    In w = log tan(theta_0) the tails on both sides are exponential and the trapezoid rule is exact to round-off.
    """
    w = np.linspace(-60, 60, 6001)
    start = np.stack([1 / np.sqrt(1 + np.exp(2 * w)), 1 / np.sqrt(1 + np.exp(-2 * w))], axis=1)
    weights = start[:, 0] * start[:, 1] * (w[1] - w[0]) / (np.pi / 2)  # d theta_0 = sin cos dw
    out = []
    for t in times:
        x = flow(attention, start, t)
        out.append((weights @ np.arctan2(x[:, 1], x[:, 0]) ** p) ** (1 / p))
    return np.array(out)


@pytest.mark.parametrize(("first", "second"), [(1, 2), (1, 0.4), (2, 1), (1, 1), (2, 3)])
@pytest.mark.parametrize("p", [1, 2, 3])
def test_the_distance_to_the_limit_falls_at_the_sharp_rate(first, second, p):
    attention = diagonal(first, second)
    rates = limits.rates(attention)
    t = np.array([15.0, 25.0])
    W = distance_to_the_limit(attention, t, p)
    slope = -np.diff(np.log(W))[0] / 10
    if rates.escape / p == rates.approach:
        slope += np.log(25 / 15) / 10 / p  # the factor t^{1/p}
        assert slope == pytest.approx(rates.exponent(p), rel=0.03)  # (t + const)^{1/p}: const of order 1 against t = 15..25
    else:
        # the other exponential is at least e^{-.13 * 15} smaller at t = 15, unless p is large: 3 %
        assert slope == pytest.approx(rates.exponent(p), rel=0.03)


def test_closed_form_of_W1_and_W2_for_uniform_data():
    """Chordal distance, M symmetric, A = I: W2^2 = (4/pi) e^{-gs}, W1 = e^{-gs} ((2/pi) gs + .5851) to leading order."""
    g, s = 0.8, 20.0
    w = np.linspace(-60, 60, 6001)
    theta = np.arctan(np.exp(w))
    weights = np.sin(theta) * np.cos(theta) * (w[1] - w[0]) / (np.pi / 2)
    start = np.stack([1 / np.sqrt(1 + np.exp(2 * w)), 1 / np.sqrt(1 + np.exp(-2 * w))], axis=1)
    x = flow(diagonal(1, 1), start, s)
    chord = 2 * np.sin(np.arctan2(x[:, 1], x[:, 0]) / 2)
    assert weights @ chord**2 == pytest.approx(4 / np.pi * np.exp(-g * s), rel=1e-3)
    assert weights @ chord == pytest.approx(np.exp(-g * s) * (2 / np.pi * g * s + 0.5851), rel=1e-4)


@pytest.mark.parametrize("seed", range(5))
def test_approach_and_escape_of_a_non_normal_drift(seed):
    """Follow one token at +-v for e-foldings of b, one token at w_2 for e-foldings of a, on the flow's own clock."""
    rng = np.random.default_rng(seed)
    M, A = with_spectrum(np.diag([1.0, 0.2]), seed), rng.normal(size=(2, 2)) + 2 * np.eye(2)
    attention = head(M @ np.linalg.inv(A), A)
    rates = limits.rates(attention)
    v = limits.spectrum(attention).dominant_basis[:, 0]
    w2 = np.linalg.eig(M)[1].T[np.argmin(np.linalg.eig(M)[0])]

    def turned(x, angle):
        return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]) @ x

    def angle(x, y):
        return x[0] * y[1] - x[1] * y[0]

    # linear regime: the relative error is a few times the largest angle, 1.5e-6
    t = 5 / rates.approach
    assert angle(v, flow(attention, turned(v, 1e-6), t)[0]) == pytest.approx(1e-6 * np.exp(-5), rel=1e-4)
    t = 5 / rates.escape
    assert angle(w2, flow(attention, turned(w2, 1e-8), t)[0]) == pytest.approx(1e-8 * np.exp(5), rel=1e-4)


def test_escape_from_a_plane_of_rotation_runs_on_its_mean_clock():
    """d = 3, eigenvalues 1 and .2 +- 2i: on the repelling plane |Ay| oscillates, and its average counts."""
    S = np.array([[1.0, 0.3, 0.0], [0.2, 1.0, -0.5], [0.0, 0.4, 1.0]])
    M = S @ np.array([[1.0, 0, 0], [0, 0.2, 2.0], [0, -2.0, 0.2]]) @ np.linalg.inv(S)
    A = np.diag([1.0, 3.0, 0.5])
    attention = head(M @ np.linalg.inv(A), A)
    rates = limits.rates(attention)
    w = limits.spectrum(attention).left_basis[0]

    def height(x):
        flat = x - S[:, 0] * (w @ x) / (w @ S[:, 0])
        return (w @ x) / np.linalg.norm(np.linalg.inv(S) @ flat)  # grows exactly like e^{.8 s}

    x = S[:, 1] / np.linalg.norm(S[:, 1]) + 1e-13 * S[:, 0]
    x = x / np.linalg.norm(x)
    early, late = (height(flow(attention, x, t)[0]) for t in (4.0, 44.0))
    # 40 time units are about 15 half turns; the unfinished one and the last 1e-13 of the start leave 3 %
    assert np.log(late / early) / 40 == pytest.approx(rates.escape, rel=0.03)


def test_the_slowest_route_of_escape_may_pass_the_lowest_eigenspace():
    """d = 3, M = diag(1, .5, 0), |Ay| = 1, 1, c: tokens that first wait at e_3 take (1 + .5)/c, the others .5.

    Volume of the stragglers in logarithmic coordinates x = (e^{-z1}, e^{-z2}, 1): the time of escape is a quadrature.
    """
    values = np.array([1.0, 0.5, 0.0])
    z1, z2 = np.meshgrid(np.arange(0, 60, 0.5), np.arange(0, 30, 0.5), indexing="ij")
    for c, expected in ((1.0, 0.5), (2.0, 0.5), (6.0, 0.25)):
        A = np.diag([1.0, 1.0, c])
        assert limits.rates(head(np.diag(values) @ np.linalg.inv(A), A)).escape == pytest.approx(expected, rel=1e-12)
        s = np.linspace(0, 120, 961)
        logs = np.stack([-z1[..., None] + s, -z2[..., None] + 0.5 * s, np.zeros(z1.shape + s.shape)])
        squares = np.exp(2 * (logs - logs.max(axis=0)))
        speed = np.sqrt((squares[0] + squares[1] + c**2 * squares[2]) / squares.sum(axis=0))
        inside = logs[0] <= np.logaddexp(logs[1], logs[2])  # not yet nearer to e_1 than to the rest
        escape_time = np.sum(speed * inside, axis=-1) * (s[1] - s[0])
        mass = [logsumexp(-(z1 + z2)[escape_time > t]) for t in (20.0, 40.0)]
        # the grid of 0.5 in z rounds each log mass by up to 0.5, over 20 units of time
        assert (mass[0] - mass[1]) / 20 == pytest.approx(expected, abs=0.025)
