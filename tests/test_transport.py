"""W_1 and W_2 on the circle against closed forms, a linear program, another library and the axioms of a distance."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from mfpde import Circle, InputError, Measure
from mfpde.transport import flow_cost, graph, levels, minimum, quarter_turns, shift_cost, wasserstein, wasserstein_reference

CIRCLE = Circle()
TURN = 2 * np.pi
ROUND = 1e-14  # a few dozen roundings of numbers up to 2 pi
SLOPPY = 1e-7  # the square root of a round-off in the weights: W_2 moves like the root of a misplaced mass


def atoms(angles, weights=None):
    theta = np.atleast_1d(np.asarray(angles, dtype=float))
    w = np.ones(len(theta)) if weights is None else np.asarray(weights, dtype=float)
    return Measure(CIRCLE.points(theta), w / w.sum())


def cells(count, density=np.ones_like):
    mesh = CIRCLE.mesh(count)
    w = density((np.arange(count) + 0.5) * TURN / count)
    return Measure(mesh.centres, w / w.sum(), mesh)


def von_mises(kappa, centre=0.0):
    return lambda theta: np.exp(kappa * (np.cos(theta - centre) - 1))


def rotated(measure, angle):
    """Atoms by any angle; a mesh by the nearest whole number of cells."""
    if measure.mesh is None:
        return Measure(CIRCLE.points(measure.angles() + angle), measure.weights)
    return Measure(measure.points, np.roll(measure.weights, round(angle / TURN * len(measure))), measure.mesh)


def reflected(measure):
    if measure.mesh is None:
        return Measure(measure.points * [1, -1], measure.weights)
    return Measure(measure.points, measure.weights[::-1], measure.mesh)


def linear_program(a, b, p):
    import ot

    cost = CIRCLE.distance(a.points[:, None], b.points[None]) ** p
    return ot.emd2(a.weights, b.weights, cost) ** (1 / p)


both = pytest.mark.parametrize("p", [1, 2])

# The states the equation visits: Diracs, clusters, antipodal pairs, empty arcs, nearly uniform laws.
angles = st.one_of(st.floats(0, TURN), st.sampled_from([0.0, np.pi / 2, np.pi, 3 * np.pi / 2, np.pi / 4, TURN - 1e-12]))
weights = st.one_of(st.floats(1e-3, 1), st.sampled_from([0.0, 1e-300, 1e-12, 0.5]))


@st.composite
def clouds(draw):
    w = np.array(draw(st.lists(weights, min_size=1, max_size=8)))
    assume(w.sum() > 1e-3)
    return atoms(draw(st.lists(angles, min_size=len(w), max_size=len(w))), w)


@st.composite
def densities(draw, count=None):
    count = count or draw(st.sampled_from([4, 12, 63, 64]))
    kind = draw(st.sampled_from(["uniform", "nearly", "cluster", "one cell", "empty arc", "pair"]))
    k, kappa = draw(st.integers(0, count - 1)), draw(st.sampled_from([1.0, 30.0, 1e4]))
    centre = (k + 0.5) * TURN / count
    law = {
        "uniform": np.ones_like,
        "nearly": lambda t: 1 + 1e-9 * np.cos(t - centre),
        "cluster": von_mises(kappa, centre),
        "one cell": lambda t: (np.arange(count) == k) + 0.0 * t,
        "empty arc": lambda t: np.where(np.cos(t - centre) > -0.5, 1.0 + np.sin(t), 0.0) + 0.0,
        "pair": lambda t: von_mises(kappa, centre)(t) + von_mises(kappa, centre + np.pi)(t),
    }[kind]
    return cells(count, law)


measures = st.one_of(clouds(), densities())


# ------------------------------------------------------------------ known values


@pytest.mark.parametrize("count", [4, 5, 64, 999])
@pytest.mark.parametrize("angle", [0.0, 1.3, np.pi, TURN - 1e-9])
def test_uniform_against_one_point(count, angle):
    """Mean distance pi/2 and root mean square pi/sqrt(3), wherever the point lies in its cell."""
    assert wasserstein(cells(count), atoms(angle), CIRCLE, p=1) == pytest.approx(np.pi / 2, rel=ROUND)
    assert wasserstein(cells(count), atoms(angle), CIRCLE, p=2) == pytest.approx(np.pi / np.sqrt(3), rel=ROUND)


@both
@pytest.mark.parametrize(("a", "b", "d"), [(1.0, 2.5, 1.5), (6.2, 0.1, 0.1 + TURN - 6.2), (0.0, np.pi, np.pi), (0.5, 0.5, 0.0), (3.0, 0.0, 3.0)])
def test_two_points_are_as_far_apart_as_the_circle_says(p, a, b, d):
    assert wasserstein(atoms(a), atoms(b), CIRCLE, p=p) == pytest.approx(d, abs=ROUND)


@both
def test_antipodal_pair_against_its_quarter_turn(p):
    """Every coupling pays pi/2: the minimum is not unique, its value is."""
    assert wasserstein(atoms([0, np.pi]), atoms([np.pi / 2, 3 * np.pi / 2]), CIRCLE, p=p) == pytest.approx(np.pi / 2, rel=ROUND)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize("count", [64, 77])
def test_uniform_against_a_regular_polygon(n, count):
    """Each point takes its own arc of half-width pi/n."""
    polygon = atoms(0.3 + TURN * np.arange(n) / n)
    assert wasserstein(polygon, cells(count), CIRCLE, p=1) == pytest.approx(np.pi / (2 * n), rel=1e-12)  # 1e-16 of an angle against pi/2n
    assert wasserstein(polygon, cells(count), CIRCLE, p=2) == pytest.approx(np.pi / (n * np.sqrt(3)), rel=1e-12)


@both
@pytest.mark.parametrize("shift", [1, 5, 100, 255])
def test_a_bump_moved_by_whole_cells_moves_by_as_much(p, shift):
    """Compact support in half of the circle, so that no mass gains by going the other way; through the seam as well."""
    bump = cells(1024, lambda t: np.where(abs(t - 0.3) < 0.2, 1 + np.cos((t - 0.3) / 0.2 * np.pi), 0.0))
    distance = wasserstein(bump, rotated(bump, -shift * TURN / 1024), CIRCLE, p=p)
    assert distance == pytest.approx(shift * TURN / 1024, rel=1e-13)


def test_unequal_masses_on_two_points():
    """Mass .1 crosses an arc of 2: W_1 = .2, W_2 = 2 sqrt(.1)."""
    a, b = atoms([1, 3], [0.6, 0.4]), atoms([1, 3], [0.5, 0.5])
    assert wasserstein(a, b, CIRCLE, p=1) == pytest.approx(0.2, rel=ROUND)
    assert wasserstein(a, b, CIRCLE, p=2) == pytest.approx(2 * np.sqrt(0.1), rel=ROUND)


def test_one_cell_against_an_atom_and_against_its_neighbour():
    one, next_one = (cells(8, lambda t, k=k: (np.arange(8) == k) + 0.0 * t) for k in (0, 7))
    h = TURN / 8
    assert wasserstein(one, next_one, CIRCLE, p=2) == pytest.approx(h, rel=ROUND)
    assert wasserstein(one, atoms(h / 2), CIRCLE, p=1) == pytest.approx(h / 4, rel=ROUND)
    assert wasserstein(one, atoms(h / 2), CIRCLE, p=2) == pytest.approx(h / np.sqrt(12), rel=ROUND)
    assert wasserstein(one, atoms(0.0), CIRCLE, p=2) == pytest.approx(h / np.sqrt(3), rel=ROUND)


@both
def test_two_halves_of_the_uniform_law(p):
    """Uniform on [0, pi] against uniform on [0, 2 pi): quantiles pi s and 2 pi s, turned by alpha = 1/4: |x - y| <= pi/2, triangular."""
    half = cells(64, lambda t: (t < np.pi) + 0.0)
    expected = {1: np.pi / 4, 2: np.pi / np.sqrt(12)}[p]  # x - y is uniform on [-pi/2, pi/2]
    assert wasserstein(half, cells(30), CIRCLE, p=p) == pytest.approx(expected, rel=ROUND)


def test_quantile_atoms_approach_their_density():
    """n atoms at the mid-quantiles of a smooth positive density: each splits an arc of mass 1/n in halves, so W_1 = 2 pi/(4 n) + O(n^-2)."""
    density = cells(512, von_mises(1.0, 1.0))
    edges = np.arange(513) * TURN / 512
    for n in (250, 500, 1000):
        quantiles = np.interp((np.arange(n) + 0.5) / n, np.concatenate([[0], np.cumsum(density.weights)]), edges)
        assert wasserstein(atoms(quantiles), density, CIRCLE, p=1) == pytest.approx(np.pi / (2 * n), rel=3 / n)


# ------------------------------------------------------------------ tiny distances keep their digits


@pytest.mark.parametrize("epsilon", [1e-3, 1e-6, 1e-9, 1e-12])
def test_nearly_uniform_laws(epsilon):
    """Density (1 + eps cos)/2 pi: the displacement is eps sin + O(eps^2), so W_1 = 2 eps/pi and W_2 = eps/sqrt(2), up to h^2/24 and eps^2."""
    count = 20_000
    a, b = cells(count), cells(count, lambda t: 1 + epsilon * np.cos(t))
    error = 1e-7 + epsilon**2 + 2e-16 / epsilon  # mesh; next order; weights near 1/N are rounded by 1e-16/N, eps/N is to be seen
    assert wasserstein(a, b, CIRCLE, p=1) == pytest.approx(2 * epsilon / np.pi, rel=error)
    assert wasserstein(a, b, CIRCLE, p=2) == pytest.approx(epsilon / np.sqrt(2), rel=error)


@both
@pytest.mark.parametrize("offset", [1e-3, 1e-9, 1e-15, 1e-100])
@pytest.mark.parametrize("axis", [[1, 0], [0, 1], [-1, 0], [0, -1]])
def test_clusters_close_to_an_axis(p, offset, axis):
    """Beside an axis the coordinates resolve angles far below 1e-16, and so does the distance."""
    axis = np.array(axis, dtype=float)
    normal = np.array([-axis[1], axis[0]])
    angle = np.arctan(offset)
    a = Measure(np.array([axis, -axis]), [0.5, 0.5])
    b = Measure(np.array([axis - offset * normal, -axis - offset * normal]) / np.hypot(1, offset), [0.5, 0.5])
    assert wasserstein(a, b, CIRCLE, p=p) == pytest.approx(angle, rel=ROUND, abs=0)


@both
@pytest.mark.parametrize("n", [3, 1000])
def test_a_cloud_moved_by_little(p, n):
    """Equal weights 1/n do not sum to 1 in doubles; the levels of both clouds must coincide nevertheless."""
    theta = np.random.default_rng(1).uniform(0.1, 6.1, n)
    moved = theta + 2.0**-30
    assert wasserstein(atoms(theta), atoms(moved[::-1]), CIRCLE, p=p) == pytest.approx(2.0**-30, rel=1e-6)  # 1e-15 in an angle against 1e-9


def test_a_tiny_mass_far_away():
    """Mass w across an arc of 2: W_1 = 2w, W_2 = 2 sqrt(w), down to the rounding of 1 - w in the other weight."""
    for w in (1e-3, 2.0**-30, 2.0**-50):
        a, b = atoms([1, 3], [1 - w, w]), atoms([1.0])
        assert wasserstein(a, b, CIRCLE, p=1) == pytest.approx(2 * w, rel=1e-15 + 1e-32 / w)
        assert wasserstein(a, b, CIRCLE, p=2) == pytest.approx(2 * np.sqrt(w), rel=1e-15 + 1e-32 / w)


# ------------------------------------------------------------------ independent computations


@both
def test_against_the_linear_program(p):
    """200 random weighted clouds, clustered and spread; the program is exact to 1e-13 or so of its cost, which is of order 1 or 1e-4."""
    rng = np.random.default_rng(3)
    for trial in range(200):
        n, m = rng.integers(1, 12, 2)
        spread = rng.choice([0.3, 7.0])
        a = atoms(rng.uniform(0, spread, n), rng.exponential(size=n) ** 3 + 1e-9)
        b = atoms(rng.uniform(0, 7, m), rng.exponential(size=m) ** 3 + 1e-9)
        assert wasserstein(a, b, CIRCLE, p=p) == pytest.approx(linear_program(a, b, p), rel=1e-10), trial


def in_rational_levels(a, b):
    """W_2 of atoms with levels as fractions: the minimum lies where two levels meet, and all of these are tried."""
    from fractions import Fraction

    def sorted_levels(measure):
        order = np.argsort(measure.angles(), kind="stable")
        masses = [Fraction(w) for w in measure.weights[order]]
        total = sum(masses)
        return measure.angles()[order], [sum(masses[:i], Fraction(0)) / total for i in range(len(masses) + 1)]

    (x, S), (y, T) = sorted_levels(a), sorted_levels(b)
    best = np.inf
    for alpha in {s - t + lap for s in S for t in T for lap in (-1, 0, 1) if -1 <= s - t + lap <= 1}:
        lifted = [(S[i] + lap - alpha, S[i + 1] + lap - alpha, x[i] + lap * TURN) for lap in (-1, 0, 1, 2) for i in range(len(x))]
        best = min(best, sum(float(m) * (u - y[j]) ** 2 for lo, hi, u in lifted for j in range(len(y)) if (m := min(hi, T[j + 1]) - max(lo, T[j])) > 0))
    return np.sqrt(best)


@given(st.lists(st.tuples(st.floats(0.1, 6.1), st.integers(1, 5)), min_size=1, max_size=4), st.sampled_from([1e-3, 1e-12, 1e-17, 1e-25]), st.integers(0, 3))
@example([(1.0, 1), (3.0, 1), (4.0, 4)], 1e-12, 1)
@settings(deadline=None, max_examples=60)
def test_misplaced_masses_far_below_round_off(points, mass, far):
    """A mass of 1e-25 across an arc of 2 is a distance of 6e-13, and 1/6 in doubles leaves residues of 1e-17 that count as well."""
    theta, w = np.array([p[0] for p in points]), np.array([float(p[1]) for p in points])
    a, b = atoms(theta, w), atoms([*theta, [0.5, 2.0, 3.5, 5.0][far]], [*w, mass])
    # angles are rounded to 1e-15; a difference of weights below 1e-29 does not count
    assert wasserstein(a, b, CIRCLE, p=2) == pytest.approx(in_rational_levels(a, b), rel=1e-12, abs=1e-13)


@both
@pytest.mark.parametrize("sizes", [(2, 1000), (1000, 2), (37, 501)])
def test_against_the_library_on_atoms(p, sizes):
    rng = np.random.default_rng(5)
    a, b = (atoms(rng.vonmises(centre, 2, n), rng.exponential(size=n)) for centre, n in zip((0, 3), sizes, strict=True))
    reference, bound = wasserstein_reference(a, b, CIRCLE, p)
    assert bound == 0
    assert wasserstein(a, b, CIRCLE, p=p) == pytest.approx(reference, rel=1e-8)  # where the library stops its search, for p = 2


@both
@pytest.mark.parametrize(("a", "b"), [
    (cells(64, von_mises(3.0, 1.0)), cells(100, von_mises(50.0, 6.2))),
    (cells(64, von_mises(3.0, 1.0)), atoms([0.1, 2.0, 4.0], [0.2, 0.3, 0.5])),
    (atoms([0.0, np.pi]), cells(50, von_mises(1e3, 4.0))),
])  # fmt: skip
def test_against_the_library_on_densities(p, a, b):
    """Within the stated bound of the refined cells, and the bound shrinks."""
    exact = wasserstein(a, b, CIRCLE, p=p)
    for refine in (1, 4, 64):
        reference, bound = wasserstein_reference(a, b, CIRCLE, p, refine=refine)
        assert abs(reference - exact) <= bound + 1e-8 * exact
    assert bound < 1e-3


@given(measures, measures)
@settings(deadline=None, max_examples=60)
def test_first_distance_by_a_weighted_median(a, b):
    """W_1 once more: sample F - G on the merged breakpoints, take the weighted median; exact for atoms, trapezoidal error for cells."""
    fine = np.unique(np.concatenate([np.linspace(0, TURN, 20_001), *(m.angles() for m in (a, b) if m.mesh is None)]))
    middle = (fine[1:] + fine[:-1]) / 2

    def distribution(measure):
        if measure.mesh is None:
            order = np.argsort(measure.angles())
            cumulative = np.concatenate([[0], np.cumsum(measure.weights[order])])
            return cumulative[np.searchsorted(measure.angles()[order], middle)]
        return np.interp(middle, np.arange(len(measure) + 1) * TURN / len(measure), np.concatenate([[0], np.cumsum(measure.weights)]))

    difference, lengths = distribution(a) - distribution(b), np.diff(fine)
    order = np.argsort(difference)
    median = difference[order][np.searchsorted(np.cumsum(lengths[order]), np.pi)]
    by_median = lengths @ abs(difference - median)
    # midpoint rule: only the strips with a kink or a change of sign err, by slope * strip^2 / 4; slopes reach the largest density, strips are 3e-4
    steepest = max([float(m.density().max()) for m in (a, b) if m.mesh is not None], default=0.0)
    assert wasserstein(a, b, CIRCLE, p=1) == pytest.approx(by_median, abs=1e-13 + 140 * steepest * 1e-7)


# ------------------------------------------------------------------ properties


@given(measures, measures, measures, st.sampled_from([1, 2]))
@settings(deadline=None, max_examples=150)
def test_axioms_of_a_distance(a, b, c, p):
    ab, bc, ac = (wasserstein(x, y, CIRCLE, p=p) for x, y in ((a, b), (b, c), (a, c)))
    assert 0 <= ab <= np.pi * (1 + ROUND)
    assert wasserstein(a, a, CIRCLE, p=p) == 0
    assert wasserstein(b, a, CIRCLE, p=p) == pytest.approx(ab, rel=1e-12, abs=1e-13)  # no swap of roles in the walk
    assert ac <= ab + bc + 1e-13


@given(measures, measures)
@settings(deadline=None, max_examples=100)
def test_first_distance_is_the_smaller_and_dual_to_moments(a, b):
    """W_1 <= W_2 <= sqrt(pi W_1), and a 1-Lipschitz function cannot tell more than W_1."""
    first, second = (wasserstein(a, b, CIRCLE, p=p) for p in (1, 2))
    assert first <= second * (1 + 1e-12) + 1e-15
    assert second <= np.sqrt(np.pi * first) * (1 + 1e-12) + 1e-15
    means = [m.mean if m.mesh is None else m.mean * np.sinc(1 / len(m)) for m in (a, b)]  # of cells spread evenly: sin(h/2)/(h/2)
    assert abs(means[0][1] - means[1][1]) <= first + 1e-14


@given(clouds(), clouds(), st.floats(0, TURN), st.sampled_from([1, 2]))
@example(atoms([0.0, 2.0, 4.0]), atoms([1.0, 2.0, 4.5]), np.pi, 1)
@settings(deadline=None, max_examples=100)
def test_rotation_reflection_and_order_of_the_atoms(a, b, angle, p):
    """W_1 moves by the round-off of the angles, W_2 too: the weights are untouched."""
    distance = wasserstein(a, b, CIRCLE, p=p)
    assert wasserstein(rotated(a, angle), rotated(b, angle), CIRCLE, p=p) == pytest.approx(distance, abs=5e-15)
    assert wasserstein(reflected(a), reflected(b), CIRCLE, p=p) == pytest.approx(distance, abs=5e-15)
    shuffled = Measure(a.points[::-1], a.weights[::-1])
    assert wasserstein(shuffled, b, CIRCLE, p=p) == pytest.approx(distance, abs=5e-15)


@given(densities(64), densities(64), st.integers(0, 63), st.sampled_from([1, 2]))
@settings(deadline=None, max_examples=60)
def test_rotation_and_reflection_of_densities(a, b, k, p):
    distance = wasserstein(a, b, CIRCLE, p=p)
    angle = k * TURN / len(a)
    # the levels of a sum of doubles depend on where it starts, by 1e-16: nearly empty arcs turn that into a root
    tolerance = 1e-14 if p == 1 else SLOPPY
    assert wasserstein(rotated(a, angle), rotated(b, angle), CIRCLE, p=p) == pytest.approx(distance, abs=tolerance)
    assert wasserstein(reflected(a), reflected(b), CIRCLE, p=p) == pytest.approx(distance, abs=tolerance)


@given(measures, measures, st.sampled_from([1, 2]))
@settings(deadline=None, max_examples=40)
def test_the_cost_is_convex_in_the_shift_and_its_slopes_are_right(a, b, p):
    """What `minimum` relies on: tangents lie below, and one-sided slopes bracket every chord."""
    walk = partial(flow_cost if p == 1 else shift_cost, graph(a), graph(b))
    shifts = np.array([-0.9, -0.25, -0.1, 0.0, 1 / 3, 0.5, 0.99])
    values, left, right = np.array([walk(s, 0.0) for s in shifts]).T
    scale = 1e-11 * (1 + abs(values).max())
    assert (left <= right + scale).all()
    for i in range(len(shifts) - 1):
        chord = (values[i + 1] - values[i]) / (shifts[i + 1] - shifts[i])
        assert right[i] - scale <= chord <= left[i + 1] + scale


# ------------------------------------------------------------------ weights as they come


@both
def test_zero_and_denormal_weights_do_not_count(p):
    a, b = atoms([1.0, 2.0, 5.0], [0.5, 0.5, 0.0]), atoms([1.5, 3.0], [0.5, 0.5])
    with_dust = atoms([1.0, 2.0, 5.0, 4.0, 0.2], [0.5, 0.5, 0.0, 1e-300, 5e-324])
    bare = atoms([1.0, 2.0], [0.5, 0.5])
    distance = wasserstein(bare, b, CIRCLE, p=p)
    assert wasserstein(a, b, CIRCLE, p=p) == distance
    assert wasserstein(with_dust, b, CIRCLE, p=p) == pytest.approx(distance, rel=ROUND)


@both
def test_weights_from_single_precision(p):
    rng = np.random.default_rng(7)
    raw = rng.exponential(size=(2, 300)).astype(np.float32)
    theta = rng.uniform(0, 7, (2, 300))
    a, b = (atoms(t, np.asarray(w / w.sum(), dtype=float)) for t, w in zip(theta, raw, strict=True))
    assert wasserstein(a, b, CIRCLE, p=p) == pytest.approx(linear_program(a, b, p), rel=1e-9)


@both
def test_masses_within_the_tolerance_of_a_measure_are_divided_out(p):
    points = CIRCLE.points([0.5, 2.0])
    heavy = Measure(points, np.array([0.25, 0.75]) * (1 + 9e-10))
    assert wasserstein(heavy, Measure(points, [0.25, 0.75]), CIRCLE, p=p) < {1: 1e-15, 2: SLOPPY}[p]


@both
def test_many_points(p):
    """1e5 points and cells; against the closed form of the polygon, whose distance 1e-5 is far below that of any two neighbours in a random cloud."""
    n = 100_000
    polygon = atoms(TURN * (np.arange(n) + 0.5) / n)
    expected = {1: np.pi / (2 * n), 2: np.pi / (n * np.sqrt(3))}[p]
    assert wasserstein(polygon, cells(n), CIRCLE, p=p) == pytest.approx(expected, rel=1e-9)  # angles are known to 1e-16 of 1e-5
    rng = np.random.default_rng(0)
    cloud, other = atoms(rng.uniform(0, TURN, n)), atoms(rng.vonmises(1, 3, n))
    reference, _ = wasserstein_reference(cloud, other, CIRCLE, p)
    assert wasserstein(cloud, other, CIRCLE, p=p) == pytest.approx(reference, rel=1e-8)


def test_one_minimum_takes_few_evaluations():
    """The cost of the distance: a few dozen walks, also where the cost has kinks everywhere."""
    rng = np.random.default_rng(0)
    pairs = [
        (atoms(rng.uniform(0, 7, 500), rng.exponential(size=500)), atoms(rng.vonmises(1, 3, 400), rng.exponential(size=400))),
        (cells(512, von_mises(100.0, 1.0)), cells(512, von_mises(2.0, 4.0))),
        (cells(512, von_mises(100.0, 1.0)), atoms([0.2])),
        (cells(512), cells(512, lambda t: 1 + 1e-12 * np.sin(t))),
    ]
    for a, b in pairs:
        for walk in (flow_cost, shift_cost):
            calls = []
            minimum(lambda x, y, walk=walk, a=a, b=b, calls=calls: calls.append(x) or walk(graph(a), graph(b), x, y))
            assert len(calls) < 80  # 10 to 45 observed


def test_levels_are_sums_of_two_doubles():
    from fractions import Fraction

    w = np.random.default_rng(2).exponential(size=1000)
    high, low = levels(w)
    total = sum(map(Fraction, w))
    partial_sum = Fraction(0)
    for i, weight in enumerate(w):
        partial_sum += Fraction(weight)
        assert abs(Fraction(high[i + 1]) + Fraction(low[i + 1]) - partial_sum / total) < Fraction(2) ** -96


def test_angles_as_quarter_turns():
    theta = np.concatenate([np.random.default_rng(3).uniform(0, TURN, 1000), np.arange(8) * np.pi / 4, [TURN - 1e-15]])
    quarters, offsets = quarter_turns(CIRCLE.points(theta))
    assert np.abs(quarters * (np.pi / 2) + offsets - theta).max() < 2e-15  # two roundings of 2 pi
    assert np.abs(offsets).max() <= np.pi / 4 * (1 + 1e-15)
    assert quarter_turns(np.array([[1.0, -1e-200]])) == (4, -1e-200)


# ------------------------------------------------------------------ bad input


def test_bad_input_is_named():
    a, b = atoms([0.0]), atoms([1.0])
    for p in (0, 3, 1.5, "2", np.inf, None):
        with pytest.raises(InputError, match="W_1 and W_2"):
            wasserstein(a, b, CIRCLE, p=p)
        with pytest.raises(InputError, match="W_1 and W_2"):
            wasserstein_reference(a, b, CIRCLE, p)
    for bad in (None, "circle"):
        with pytest.raises(InputError, match="on the circle and on the sphere"):
            wasserstein(a, b, bad)
    with pytest.raises(InputError, match="two measures"):
        wasserstein(a.points, b, CIRCLE)
    with pytest.raises(InputError, match="R\\^2"):
        wasserstein(a, Measure([[0.0, 0.0, 1.0]], [1.0]), CIRCLE)
    with pytest.raises(InputError, match="does not lie"):
        wasserstein(a, Measure([[0.5, 0.0]], [1.0]), CIRCLE)
    with pytest.raises(InputError, match="refine"):
        wasserstein_reference(a, cells(4), CIRCLE, refine=0)
