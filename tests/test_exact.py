"""Closed forms against computations that share nothing with them: mpmath, particle ODEs, direct sums, quadrature."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp

import mfpde as mf
from mfpde import exact
from mfpde.exact import two_clusters

CIRCLE = mf.Circle()
J = np.array([[0.0, -1.0], [1.0, 0.0]])


def rotation(angle: float) -> np.ndarray:
    return np.cos(angle) * np.eye(2) + np.sin(angle) * J


# ---- the Poisson kernel


@pytest.mark.parametrize(("r0", "t"), [(0.3, 3.0), (1e-6, 20.0), (0.9, 0.5), (0.3, -2.0), (0.0, 4.0)])
def test_poisson_radius_solves_its_equation(r0, t):
    flow = solve_ivp(lambda _, r: r * (1 - r**2) / 2, (0, t), [r0], method="DOP853", rtol=1e-13, atol=1e-18)
    assert exact.poisson_radius(r0, t) == pytest.approx(flow.y[0, -1], rel=1e-11)  # the integrator's own error


def test_poisson_radius_of_an_array_and_its_golden_number():
    radius = exact.poisson_radius(0.3, np.array([0.0, 3.0]))
    assert radius.shape == (2,)
    assert radius == pytest.approx([0.3, 0.8155720884], abs=5e-11)  # ten digits are known (docs/theory)


def test_poisson_law_keeps_its_angle():
    law = exact.poisson_law(0.3, 2.0, angle=1.2)
    z = CIRCLE.mesh(4096).centres.T @ law.cell_masses(CIRCLE.mesh(4096))
    assert np.arctan2(z[1], z[0]) == pytest.approx(1.2, abs=1e-12)


def test_a_poisson_law_that_has_become_a_dirac_is_refused():
    with pytest.raises(mf.NumericalError, match="earlier time"):
        exact.poisson_law(0.3, 60.0)
    with pytest.raises(mf.InputError, match="r0"):
        exact.poisson_radius(1.0, 1.0)


# ---- any law at beta = 0

LAWS = {
    "fourier": mf.initial.fourier([0.175, 0.1j, -0.075]),
    "two narrow bumps": mf.initial.von_mises_mixture([0.2, 2.9], kappa=[400.0, 30.0], weights=[1, 2]),
    "jump": mf.initial.CircleLaw("jump", lambda theta: np.where((theta > 0.3) & (theta < 2.5), 3.0, 1.0), breaks=[0.3, 2.5]),
}


def kuramoto(angles: np.ndarray, weights: np.ndarray, t: float) -> np.ndarray:
    """The particle equation itself: theta' = Im(z e^{-i theta})."""

    def speed(_, theta):
        z = weights @ np.exp(1j * theta)
        return (z * np.exp(-1j * theta)).imag

    return solve_ivp(speed, (0, t), angles, method="DOP853", rtol=1e-13, atol=1e-13).y[:, -1]


@pytest.mark.parametrize("name", LAWS)
def test_watanabe_strogatz_moves_points_like_particles(name):
    law, t = LAWS[name], 1.5
    # Gauss-Legendre panels of the density as weighted particles: exact to round-off, and a different rule from the one of the function
    x, w = np.polynomial.legendre.leggauss(12)
    edges = law.cumulative.edges
    half = np.diff(edges)[:, None] / 2
    angles = (edges[:-1, None] + half * (1 + x)).ravel()
    weights = (half * w).ravel() * law.density(CIRCLE.points(angles))
    moved = exact.watanabe_strogatz(law, t)(CIRCLE.points(angles))
    there = CIRCLE.points(kuramoto(angles, weights, t))
    assert CIRCLE.distance(moved, there).max() < 1e-11  # 1e-13 a step, some hundred steps


@pytest.mark.parametrize(("name", "t"), [("fourier", 0.0), ("fourier", 8.0), ("two narrow bumps", 1.0), ("two narrow bumps", 8.0), ("jump", 3.0)])
def test_moebius_law_is_consistent_with_itself(name, t):
    """Density, masses, nodes and inverse describe one measure; masses by adaptive quadrature of the density."""
    law = exact.watanabe_strogatz(LAWS[name], t)
    mesh = CIRCLE.mesh(16)
    masses = law.cell_masses(mesh)
    assert masses.sum() == pytest.approx(1, abs=1e-14)
    # Gauss-Legendre quadrature of the density between the faces, on panels that know where it is rough: the moved panels of the start, graded towards the pull
    rough = CIRCLE.angles(law(CIRCLE.points(law.start.cumulative.edges[:-1])))
    graded = law.alpha + np.outer([1, -1], law.squeeze * 2.0 ** np.arange(-1, 20)).ravel()
    edges = np.unique(np.concatenate([rough, graded % (2 * np.pi), np.linspace(0, 2 * np.pi, 17)]))
    x, w = np.polynomial.legendre.leggauss(12)
    half = np.diff(edges)[:, None] / 2
    theta = edges[:-1, None] + half * (1 + x)
    parts = (half * w * law.density(CIRCLE.points(theta.ravel())).reshape(theta.shape)).sum(axis=1)
    cell = ((edges[:-1] + half[:, 0]) * (16 / (2 * np.pi))).astype(int)
    assert masses == pytest.approx(np.bincount(cell, parts, 16), abs=1e-11)  # the moved panels have edges rounded to 1e-16 of a density that may be 1e4 high
    points = CIRCLE.points(np.linspace(0.05, 6.2, 40))
    # both stretch by up to 1/squeeze what round-off has moved: the map at its repeller, the inverse at the attractor
    assert CIRCLE.distance(law(law.inverse(points)), points).max() < 1e-14 / law.squeeze
    assert CIRCLE.distance(law.inverse(law(points)), points).max() < 1e-14 / law.squeeze
    w = np.array([0.6, 0.8])
    nodes = law.nodes(2000)
    # each boundary point may cut a node's cell in two, of mass at most 2/2000
    assert law.mass_of_halfspace(w) == pytest.approx(nodes.weights[nodes.points @ w > 0].sum(), abs=2e-3)


@pytest.mark.parametrize("t", [0.5, 5.0, 20.0, 30.0])
def test_watanabe_strogatz_is_the_poisson_law_on_poisson_data(t):
    """Relative error of the density everywhere, also when 1 - r is 1e-12: the Moebius parameters keep their digits."""
    law, there = exact.watanabe_strogatz(mf.initial.poisson(0.3, 0.7), t), CIRCLE.points([0.7, 0.7 + 1e-3, 1.0, 3.0, 0.7 + np.pi])
    # 1 - r by the closed form without cancellation: 1 - r^2 = fade / (r0^2 + fade)
    fade = (1 - 0.3**2) * np.exp(-t)
    room = fade / (0.3**2 + fade) / (1 + np.sqrt(0.3**2 / (0.3**2 + fade)))
    theta = np.array([0.0, 1e-3, 0.3, 2.3, np.pi])
    r = 1 - room
    density = room * (1 + r) / (2 * np.pi * (room**2 + 4 * r * np.sin(theta / 2) ** 2))
    # at the peak the angle's own round-off, some 1e-15, counts in units of 1 - r
    assert law.density(there) == pytest.approx(density, rel=3e-11 + (5e-15 / room) ** 2)


def test_atoms_move_exactly():
    angles, weights = np.array([0.1, 1.0, 2.5, 4.0]), np.array([0.4, 0.3, 0.2, 0.1])
    law = mf.initial.atoms(CIRCLE.points(angles), weights)
    moved = exact.watanabe_strogatz(law, 3.0)
    assert CIRCLE.distance(moved.nodes(1).points, CIRCLE.points(kuramoto(angles, weights, 3.0))).max() < 1e-11
    assert moved.cell_masses(CIRCLE.mesh(8)).sum() == pytest.approx(1)
    with pytest.raises(mf.InputError, match="no density"):
        moved.density(CIRCLE.points([0.0]))


def test_balanced_data_stand_still():
    law = exact.watanabe_strogatz(mf.initial.fourier([0.0, 0.3]), 10.0)
    assert abs(law.a) < 1e-14 * np.exp(5)  # round-off grows at rate 1/2


def test_watanabe_strogatz_refuses_what_it_cannot_do():
    with pytest.raises(mf.InputError, match="time >= 0"):
        exact.watanabe_strogatz(LAWS["fourier"], -1.0)
    with pytest.raises(mf.InputError, match="circle"):
        exact.watanabe_strogatz(mf.initial.atoms([[0.0, 0.0, 1.0]], [1.0]), 1.0)


# ---- growth about the uniform law


def rate_by_linearisation(attention: mf.Attention, k: int) -> complex:
    """Perturb the uniform law by Re(e^{ik theta}) and by Re(i e^{ik theta}), evaluate -div(rho v) to first order by dense sums in mpmath-free numpy.

    With weights rho = 1 + eps f on M equal nodes (spectral for this kernel) the first-order part is a central difference in eps.
    """
    M = 512
    theta = 2 * np.pi * np.arange(M) / M
    x, tangent = CIRCLE.points(theta), CIRCLE.points(theta) @ J.T

    def flux(rho: np.ndarray) -> np.ndarray:
        G = np.exp(attention.beta * (x @ attention.A.T @ x.T - np.linalg.norm(attention.A, 2)))
        mean = (G * rho) @ x / (G @ rho)[:, None]
        return rho * np.sum(tangent * (mean @ attention.V.T), axis=1)

    eps = 1e-4
    wave = np.exp(1j * k * theta)
    # rho' = -d/dtheta flux; the coefficient of e^{ik theta} in the response to Re(c e^{ik theta}) is lambda c / 2
    response = [(flux(1 + eps * part) - flux(1 - eps * part)) / (2 * eps) for part in (wave.real, wave.imag)]
    coefficient = [-1j * k * np.mean(r * np.conj(wave)) for r in response]
    assert coefficient[1] == pytest.approx(-1j * coefficient[0], abs=1e-7)  # no coupling to e^{-ik theta}
    return 2 * coefficient[0]


@pytest.mark.parametrize("beta", [0.0, 1e-3, 1.0, 9.0, 100.0])
@pytest.mark.parametrize("k", [1, 2, 5, 14])
@pytest.mark.parametrize(("V", "A"), [(np.eye(2), np.eye(2)), (-np.eye(2), np.eye(2)), (np.eye(2) + 0.7 * J, rotation(0.4)), (0.3 * J, 1.7 * rotation(-2.0))])
def test_growth_rate_is_the_linearisation(beta, k, V, A):
    attention = mf.Attention(A, np.eye(2), V, beta)
    # difference quotient: O(eps^2) times the second derivative, which grows like the kernel's curvature
    assert exact.growth_rate(attention, k) == pytest.approx(rate_by_linearisation(attention, k), abs=1e-6 * (1 + k))


@pytest.mark.parametrize("beta", [0.1, 1.0, 50.0, 1e4, 1e7])
def test_growth_rate_against_mpmath(beta):
    with mpmath.workdps(40):
        scale = mpmath.besseli(0, beta)
        for k in (1, 3, 40):
            rate = k**2 * mpmath.besseli(k, beta) / (beta * scale)
            # relative, and eps in the complex sum
            assert exact.growth_rate(mf.Attention.identity(2, beta), k).real == pytest.approx(float(rate), rel=1e-12, abs=1e-15)


def test_growth_rate_limits_and_arrays():
    rates = exact.growth_rate(mf.Attention.identity(2, 1e4), np.arange(1, 500))
    assert rates.shape == (499,)
    assert rates.real.max() == pytest.approx(2 / np.e, rel=1e-4)  # k = sqrt(2 beta), up to O(1/beta)
    assert abs(np.argmax(rates.real) + 1 - np.sqrt(2e4)) < 1
    # beta = inf: the uniform law is carried round at the speed <Jx, VAx>/|Ax|
    attention = mf.Attention(rotation(0.4), np.eye(2), 0.6 * np.eye(2) + 0.8 * J, np.inf)
    assert exact.growth_rate(attention, 3) == pytest.approx(-3j * (0.6 * np.sin(0.4) + 0.8 * np.cos(0.4)), abs=1e-15)
    assert exact.growth_rate(mf.Attention(np.zeros((2, 2)), np.eye(2), np.eye(2), np.inf), 1) == pytest.approx(0.5)  # no score: as beta = 0
    # real data: modes k and -k are conjugate
    attention = mf.Attention(rotation(0.4), np.eye(2), np.eye(2) + J, 5.0)
    assert exact.growth_rate(attention, -4) == pytest.approx(np.conj(exact.growth_rate(attention, 4)), abs=1e-14)


def test_growth_rate_refuses_other_matrices():
    with pytest.raises(mf.InputError, match="V must be"):
        exact.growth_rate(mf.Attention(np.eye(2), np.eye(2), [[1, 0], [0, 2]], 1.0), 1)
    with pytest.raises(mf.InputError, match="A = K"):
        exact.growth_rate(mf.Attention([[1, 0], [0, -1]], np.eye(2), np.eye(2), 1.0), 1)
    with pytest.raises(mf.InputError, match="V must be"):
        exact.growth_rate(mf.Attention.identity(3, 1.0), 1)
    with pytest.raises(mf.InputError, match="whole"):
        exact.growth_rate(mf.Attention.identity(2, 1.0), 1.5)
    with pytest.raises(mf.InputError, match="up to"):
        exact.growth_rate(mf.Attention.identity(2, 1e10), 1)


# ---- two clusters


def speed_of_two(beta: float, gap: float, masses) -> float:
    """Rate of the distance from the attention sums themselves."""
    measure = mf.Measure(CIRCLE.points([0.0, gap]), masses)
    velocity = mf.attention.plan(mf.Attention.identity(2, beta), CIRCLE, measure.points).velocity(measure.weights)
    return float(velocity[1] @ [-np.sin(gap), np.cos(gap)] - velocity[0] @ [0.0, 1.0])


@pytest.mark.parametrize("masses", [(0.5, 0.5), (0.2, 0.8), (0.9, 0.1)])
@pytest.mark.parametrize("beta", [0.0, 1.0, 4.0])
def test_merge_time_is_the_integral_of_the_speed(beta, masses):
    time, _ = quad(lambda gap: -1 / speed_of_two(beta, gap, masses), 0.4, 2.6, epsabs=0, epsrel=1e-12, limit=200)
    assert exact.merge_time(beta, 2.6, until=0.4, masses=masses) == pytest.approx(time, rel=1e-9)  # attention sums carry 1e-10


PAIRS = [(1e-6, 2.0, 0.1), (3.0, 3.1, 1e-4), (20.0, 1.0, 0.99999), (100.0, 2.0, 0.01), (1e3, 0.5, 0.1), (1e5, 1.0, 0.01), (1e5, 1e-4, 1e-6), (7.0, 3.14159, 3)]


@pytest.mark.parametrize("share", [0.5, 0.01, 1e-9])
@pytest.mark.parametrize(("beta", "distance", "until"), PAIRS)
def test_log_merge_time_against_mpmath(beta, distance, until, share):
    """30 digits, in the variable s, split where the integrand changes its scale."""
    with mpmath.workdps(30):
        m1, m2, b = mpmath.mpf(share), 1 - mpmath.mpf(share), mpmath.mpf(beta)
        s0, s1 = 1 - mpmath.cos(mpmath.mpf(distance)), 1 - mpmath.cos(mpmath.mpf(until))

        def slowness(y):
            s = 2 / (1 + mpmath.exp(-y))
            g = mpmath.exp(b * s)
            return 1 / (2 * (m2 / (m2 + m1 * g) + m1 / (m1 + m2 * g)))

        def y(s):
            return mpmath.log(s / (2 - s))

        steps = [s0 - j * (s0 - s1) / 8 for j in range(9)] + [s0 - mpmath.mpf(3) ** j / b for j in range(-1, 5)] + [mpmath.mpf(4) ** -j for j in range(20)]
        ends = sorted({y(s) for s in steps if s1 < s < s0} | {y(s0), y(s1)})
        time = mpmath.quad(slowness, ends, method="gauss-legendre")
        expected = float(mpmath.log(time))
    value = exact.log_merge_time(beta, distance, until=until, masses=(share, 1 - share))
    # beta s is known to eps beta s only; near s = 2 and for until close to distance the inputs' own round-off is magnified by their conditioning
    conditioning = 4e-16 * (2 * beta + distance / (distance - until) + 1 / (np.pi - distance))
    assert value == pytest.approx(expected, abs=2e-12 + conditioning)


@pytest.mark.parametrize("beta", [0.5, 4.0, 50.0, 300.0])
def test_closed_form_equals_quadrature(beta):
    start, end = two_clusters._log_tangent(2.2), two_clusters._log_tangent(0.3)
    assert exact.log_merge_time(beta, 2.2, until=0.3) == pytest.approx(two_clusters._log_duration(beta, start, start - end, 0.5), abs=1e-12)


@pytest.mark.parametrize("masses", [(0.5, 0.5), (0.3, 0.7)])
@pytest.mark.parametrize(("beta", "t"), [(0.0, 2.0), (3.0, 2.5), (3.0, 30.0), (3.0, 500.0), (8.0, 1e3)])
def test_two_atom_gap_is_the_particle_solution(beta, t, masses):
    a, b = masses

    def rate(_, gap):
        g = np.exp(beta * (1 - np.cos(gap)))
        return -np.sin(gap) * (b / (b + a * g) + a / (a + b * g))

    distance = 1.9
    flow = solve_ivp(rate, (0, t), [distance], method="LSODA", rtol=1e-12, atol=1e-300)
    gap = exact.two_atom_gap(beta, distance, t, masses=masses)
    assert gap == pytest.approx(flow.y[0, -1], rel=1e-7, abs=1e-250)  # LSODA at 1e-12 over thousands of e-foldings
    assert 0 < gap <= distance


@pytest.mark.parametrize("beta", [0.0, 2.0, 12.0])
def test_gap_and_merge_time_are_inverse(beta):
    for until in (1.99, 1.0, 1e-3):
        time = exact.merge_time(beta, 2.0, until=until, masses=(0.4, 0.6))
        assert exact.two_atom_gap(beta, 2.0, time, masses=(0.4, 0.6)) == pytest.approx(until, rel=1e-10)


def test_pair_extremes():
    assert exact.merge_time(1e4, 2.0) == np.inf
    assert exact.two_atom_gap(1e4, 2.0, 1e6) == 2.0  # nothing happens before e^{14000}
    assert exact.two_atom_gap(5.0, 2.0, 0.0) == 2.0
    assert exact.merge_time(5.0, 2.0, until=2.0) == 0.0
    assert exact.two_atom_gap(1.0, 1e-8, 10.0) == pytest.approx(1e-8 * np.exp(-10.0), rel=1e-12)


@pytest.mark.parametrize("call", [
    lambda: exact.merge_time(-1.0, 1.0),
    lambda: exact.merge_time(np.inf, 1.0),
    lambda: exact.merge_time(1.0, np.pi),
    lambda: exact.merge_time(1.0, 1.0, until=0.0),
    lambda: exact.merge_time(1.0, 1.0, until=2.0),
    lambda: exact.merge_time(1.0, 1.0, masses=(0.5, 0.6)),
    lambda: exact.merge_time(1.0, 1.0, masses=(0.0, 1.0)),
    lambda: exact.two_atom_gap(1.0, 1.0, -1.0),
    lambda: exact.two_atom_gap(1.0, 1.0, np.nan),
])
def test_pairs_out_of_range_are_refused(call):
    with pytest.raises(mf.InputError):
        call()


# ---- von Mises laws

GENERAL = ([[1.0, 0.3], [-0.2, 0.7]], [[0.9, 0.0], [0.4, 1.1]], [[0.5, 1.0], [0.0, -0.4]])


@pytest.mark.parametrize("beta", [0.0, 1.0, 30.0])
@pytest.mark.parametrize("kappa", [0.0, 2.0, 200.0])
def test_von_mises_attention_is_the_direct_sum(beta, kappa):
    """Equal nodes are spectrally accurate for these integrands: 4000 of them are the integral to round-off."""
    attention = mf.Attention(*GENERAL, beta)
    law = mf.initial.von_mises_mixture([0.7, 3.0], kappa=[kappa, 5.0], weights=[0.3, 0.7])
    nodes = CIRCLE.points(2 * np.pi * np.arange(4000) / 4000)
    weights = law.density(nodes) * (2 * np.pi / 4000)
    x = CIRCLE.points(np.linspace(0, 6.2, 50))
    logits = beta * x @ attention.A.T @ nodes.T
    top = logits.max(axis=1, keepdims=True)
    G = np.exp(logits - top) * weights
    log_z, mean = exact.von_mises_attention(attention, [kappa, 5.0], [0.7, 3.0], x, weights=[3, 7])
    assert log_z == pytest.approx(top[:, 0] + np.log(G.sum(axis=1)), abs=1e-12)
    assert mean == pytest.approx(G @ nodes / G.sum(axis=1, keepdims=True), abs=1e-12)


@pytest.mark.parametrize(("beta", "kappa"), [(1e-9, 1e-12), (1e4, 3.0), (5.0, 1e6), (1e6, 1e6), (1e9, 1e3), (1e-3, 1e9)])
def test_von_mises_attention_against_mpmath(beta, kappa):
    attention = mf.Attention(*GENERAL, beta)
    x = CIRCLE.points([0.4, 2.0, 0.7 + np.pi])
    log_z, mean = exact.von_mises_attention(attention, kappa, 0.7, x)
    with mpmath.workdps(40):
        for i in range(3):
            centre = (mpmath.cos(0.7), mpmath.sin(0.7))
            w = [beta * mpmath.fdot(zip(row, x[i], strict=True)) + kappa * e for row, e in zip(attention.A.tolist(), centre, strict=True)]
            R = mpmath.sqrt(w[0] ** 2 + w[1] ** 2)
            i0, i1, k0 = mpmath.besseli(0, R), mpmath.besseli(1, R), mpmath.besseli(0, kappa)
            # conditioning: log Z to eps of itself and of the tilt that x's own round-off causes
            assert log_z[i] == pytest.approx(float(mpmath.log(i0 / k0)), rel=1e-14, abs=1e-15)
            assert mean[i] == pytest.approx([float(i1 / i0 * c / R) for c in w], abs=1e-14)


def test_von_mises_attention_golden_number_and_refusals():
    attention, x = mf.Attention.identity(2, 3.0), CIRCLE.points([0.9])
    _, mean = exact.von_mises_attention(attention, 2.0, 0.0, x)
    assert mean[0] @ J @ x[0] == pytest.approx(-0.3051461042369, abs=1e-13)
    for bad in (
        lambda: exact.von_mises_attention(attention, -1.0, 0.0, x),
        lambda: exact.von_mises_attention(attention, 1.0, np.nan, x),
        lambda: exact.von_mises_attention(mf.Attention.identity(2, np.inf), 1.0, 0.0, x),
        lambda: exact.von_mises_attention(mf.Attention.identity(3, 1.0), 1.0, 0.0, x),
        lambda: exact.von_mises_attention(attention, 1.0, 0.0, [[2.0, 0.0]]),
    ):
        with pytest.raises(mf.InputError):
            bad()
