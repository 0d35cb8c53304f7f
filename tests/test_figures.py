"""Figures show the numbers they are given, in the right place, and survive tiny and degenerate input. Warnings are errors in this suite."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from matplotlib.collections import QuadMesh
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure

import mfpde as mf
from mfpde import figures
from mfpde.convergence import ConvergenceTable
from mfpde.figures import circle, laws, style
from mfpde.methods.clusters import life
from mfpde.trajectory import Trajectory

CIRCLE = mf.Circle()


def on_mesh(laws, times, problem=None, cells=64) -> Trajectory:
    """A trajectory that takes these laws at these times."""
    mesh = CIRCLE.mesh(cells)
    return Trajectory(problem, None, np.array(times, dtype=float), [mf.Measure(mesh.centres, law.cell_masses(mesh), mesh) for law in laws], status="done")


def tokens(angles, times, weights=None, problem=None) -> Trajectory:
    angles = np.atleast_2d(angles)
    weights = np.full(angles.shape[1], 1 / angles.shape[1]) if weights is None else np.asarray(weights)
    return Trajectory(problem, None, np.array(times, dtype=float), [mf.Measure(CIRCLE.points(row), weights) for row in angles], status="done")


def drawn(figure: Figure, tmp_path) -> bytes:
    """The figure as a png file: what is lazy in matplotlib happens here."""
    return figures.save(figure, tmp_path / "figure").read_bytes()


UNIFORM = mf.initial.uniform(CIRCLE)
SHARP = mf.initial.von_mises_mixture([1.0], kappa=1e4)
GAP = mf.Problem(mf.Attention(np.eye(2), np.eye(2), np.diag([1.0, 0.2]), 100.0), CIRCLE, mf.initial.fourier([0.2]), 3.0)


# ---- density


def test_the_image_shows_the_density_at_its_angle_and_time(tmp_path):
    run = on_mesh([UNIFORM, SHARP], [0.0, 2.0])
    figure = figures.density(run)
    (image,) = [artist for artist in figure.axes[0].collections if isinstance(artist, QuadMesh)]
    assert isinstance(image.norm, LogNorm)
    values = np.ma.getdata(image.get_array())
    corners = image.get_coordinates()
    row = np.argmax(values[:, 1])
    assert corners[row, 1, 1] % (2 * np.pi) <= 1.0 <= corners[row + 1, 1, 1] % (2 * np.pi)
    assert values[row, 1] == run.final.density().max()
    assert figure.axes[0].get_xlim() == (0.0, 2.0)
    low, high = figure.axes[0].get_ylim()
    assert high - low == pytest.approx(2 * np.pi)
    assert image.norm.vmin > 0
    assert drawn(figure, tmp_path)[:4] == b"\x89PNG"


@pytest.mark.parametrize("scale", ["auto", "linear", "log"])
@pytest.mark.parametrize("laws", [[UNIFORM], [UNIFORM, UNIFORM, UNIFORM], [SHARP], [mf.initial.atoms([[1.0, 0.0]], [1.0])] * 2])
def test_density_of_degenerate_laws(scale, laws, tmp_path):
    """One time, the uniform law, a Dirac in one cell: zeros on a logarithmic scale, and no range at all."""
    drawn(figures.density(on_mesh(laws, np.arange(len(laws)), cells=4), scale=scale), tmp_path)


def test_a_flat_law_is_shown_from_zero():
    figure = figures.density(on_mesh([UNIFORM, UNIFORM], [0, 1]))
    (image,) = [artist for artist in figure.axes[0].collections if isinstance(artist, QuadMesh)]
    assert type(image.norm) is Normalize
    assert image.norm.vmin == 0


def test_paths_are_broken_where_they_pass_the_cut(tmp_path):
    """A token that goes round the circle: no line across the picture."""
    t = np.linspace(0, 1, 41)
    run = tokens(np.stack([4 * np.pi * t, np.full(41, 0.1)], axis=1), t)
    figure = figures.density(run)
    for line in figure.axes[0].lines:
        jumps = np.abs(np.diff(line.get_ydata()))
        assert not (jumps > np.pi).any()
    assert np.isnan(figure.axes[0].lines[0].get_ydata()).sum() + np.isnan(figure.axes[0].lines[1].get_ydata()).sum() == 2
    drawn(figure, tmp_path)


def test_many_tokens_are_thinned_and_the_title_says_so():
    run = tokens(np.linspace(0, 6, 500)[None, :].repeat(2, axis=0), [0, 1])
    figure = figures.density(run, tokens=50)
    assert len(figure.axes[0].lines) == 50
    assert "50 of 500 tokens" in figure.axes[0].get_title()


def test_single_tokens_and_points_that_come_and_go(tmp_path):
    drawn(figures.density(tokens([[0.5]], [0.0])), tmp_path)
    run = tokens([[0.5, 1.0]], [0.0])
    run.times, run.measures = np.array([0.0, 1.0]), [*run.measures, mf.Measure(CIRCLE.points([0.7]), [1.0])]
    drawn(figures.density(run), tmp_path)


@pytest.mark.parametrize(("centre", "clear"), [(0.0, np.pi), (np.pi / 2, -np.pi / 2), (3.0, 0.0)])
def test_the_circle_is_cut_where_nothing_is(centre, clear):
    law = mf.initial.von_mises_mixture([centre], kappa=100)
    view = laws._view_of(on_mesh([law], [0.0]))
    apart = abs((view.cut - centre + np.pi) % (2 * np.pi) - np.pi)
    assert apart > 1.4
    assert -1.5 * np.pi - 1e-9 <= view.cut <= 0


def test_ticks_name_their_angles():
    for quarters in range(-8, 9):
        text = circle._pi_label(quarters).strip("$").replace(r"\pi", "*np.pi").replace("-*", "-1*")
        text = "1" + text if text.startswith("*") else text
        assert eval(text, {"np": np}) == pytest.approx(quarters * np.pi / 2)


# ---- snapshots


def test_snapshots_show_density_tokens_and_limit(tmp_path):
    run = on_mesh([UNIFORM, SHARP], [0.0, 2.0], problem=GAP)
    figure = figures.snapshots(run, tokens=tokens([[0.1, 1.0], [0.2, 3.0]], [0.0, 2.0]))
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["$t = 0$", "$t = 2$"]
    axes = figure.axes[1]
    patch = axes.patches[0]
    values, edges, _ = patch.get_data()
    assert np.all(values >= axes.get_ylim()[0])
    assert values.max() == run.final.density().max()
    assert edges[np.argmax(values)] % (2 * np.pi) == pytest.approx(1.0, abs=2 * np.pi / 64)
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["2 tokens", "dominant space $E$ of $VA$", "limit law, area = mass"]
    (limit,) = [artist for artist in axes.collections if artist.get_label() == "limit law, area = mass"]
    areas = limit.get_sizes()
    law = mf.limits.push_forward(GAP)
    assert areas / areas.sum() == pytest.approx(law.weights)
    assert np.ma.getdata(limit.get_offsets())[:, 0] % (2 * np.pi) == pytest.approx(law.angles(), abs=1e-12)
    drawn(figure, tmp_path)


def test_snapshots_choose_times_and_the_log_scale():
    run = on_mesh([UNIFORM] * 10 + [SHARP], np.arange(11))
    figure = figures.snapshots(run)
    assert len(figure.axes) == 6
    assert figure.axes[0].get_title(loc="left") == "$t = 0$"
    assert figure.axes[-1].get_title(loc="left") == "$t = 10$"
    assert all(axes.get_yscale() == "log" for axes in figure.axes)
    assert all(axes.get_yscale() == "linear" for axes in figures.snapshots(run, [0, 1]).axes)
    assert all(axes.get_yscale() == "linear" for axes in figures.snapshots(run, scale="linear").axes)


def test_a_histogram_has_mass_one_and_keeps_clusters_together():
    run = tokens([np.concatenate([np.full(50, 1e-9), np.full(50, 2 * np.pi - 1e-9)])], [0.0])
    (axes,) = figures.snapshots(run, scale="linear").axes
    values, edges, _ = axes.patches[1].get_data()
    low, high = axes.get_xlim()
    inside = (edges[:-1] >= low - 1e-9) & (edges[1:] <= high + 1e-9)
    assert np.sum(values[inside] * np.diff(edges)[inside]) == pytest.approx(1.0, rel=1e-6)
    assert (values[inside] > 1e-6 * values.max()).sum() == 1  # one bin around angle 0, not two beside it


@pytest.mark.parametrize("scale", ["auto", "linear", "log"])
def test_snapshots_of_degenerate_laws(scale, tmp_path):
    dirac = mf.initial.atoms([[1.0, 0.0]], [1.0])
    for run in (on_mesh([UNIFORM], [0.0], cells=4), on_mesh([dirac], [0.0]), tokens([[0.5]], [0.0]), on_mesh([dirac, UNIFORM], [0.0, 1e-12])):
        drawn(figures.snapshots(run, scale=scale), tmp_path)


@pytest.mark.parametrize("V", [np.eye(2), [[1.0, -1.0], [1.0, 1.0]], [[1.0, 1.0], [0.0, 1.0]]])
def test_problems_without_a_limit_of_atoms_draw_none(V, tmp_path):
    """Nothing moves, a rotation, a Jordan block."""
    problem = mf.Problem(mf.Attention(np.eye(2), np.eye(2), V, 10.0), CIRCLE, UNIFORM, 1.0)
    figure = figures.snapshots(on_mesh([UNIFORM], [0.0], problem=problem))
    assert not figure.legends
    drawn(figure, tmp_path)


# ---- decay


def test_slope_lines_have_their_slope_and_touch_their_series(tmp_path):
    t = np.linspace(0, 20, 101)
    series = {"density": (t, np.exp(-0.5 * t) + 1e-3), "flow": (t, 2 * np.exp(-0.5 * t))}
    figure = figures.decay(series, rates={"density": 0.5, "theory": 0.25}, plateaus={"density": 1e-3}, p=1)
    lines = {line.get_label(): line for line in figure.axes[0].lines}
    for label, rate in (("predicted, $e^{-0.5t}$", 0.5), ("theory", 0.25)):
        x, y = lines[label].get_data()
        assert -np.diff(np.log(y)) / np.diff(x) == pytest.approx(rate)
    assert lines["predicted, $e^{-0.5t}$"].get_ydata()[0] == pytest.approx(1.35, rel=0.05)  # raised by 1.35 above e^{-t/2}
    assert lines["predicted, $e^{-0.5t}$"].get_color() == lines["density"].get_color() == style.PALETTE[0]
    assert lines["theory"].get_color() == style.GUIDE
    assert figure.axes[0].get_ylabel() == "$W_1$ (rad)"
    low, high = figure.axes[0].get_ylim()
    assert low < 2 * np.exp(-10) < 2 < high
    drawn(figure, tmp_path)


@pytest.mark.parametrize("values", [[0.0, 0.0, 0.0], [1.0, 0.0, 1e-3], [1.0, np.nan, np.inf], [np.nan] * 3, [0.5, 0.5, 0.5], [1e-300, 1e-200, 1.0]])
def test_decay_of_zeros_gaps_and_constants(values, tmp_path):
    drawn(figures.decay({"a": ([0, 1, 2], values)}, rates={"a": 1.0, "line": 3.0, "growth": -1.0}, plateaus={"a": 0.5}), tmp_path)
    drawn(figures.decay({"a": ([0, 1, 2], values)}, rates={"a": 1e4}, plateaus={"a": 0.0}), tmp_path)


def test_decay_of_a_single_time_and_of_many_series(tmp_path):
    drawn(figures.decay({"a": ([1.0], [0.3])}, rates={"a": 1.0}), tmp_path)
    figure = figures.decay({f"series {i}": ([0.0, 1.0], [1.0, 0.1 * (i + 1)]) for i in range(9)})
    styles = {(line.get_color(), line.get_linestyle(), str(line._unscaled_dash_pattern)) for line in figure.axes[0].lines}
    assert len(styles) == 9
    drawn(figure, tmp_path)


# ---- orders and energies


def table_of(errors, levels=(32, 64, 128, 256), size="cells") -> ConvergenceTable:
    levels = levels[: len(errors)]
    return ConvergenceTable("Method(cells=...)", size, "W1 to the truth at t = 1", np.array(levels), np.array(errors), np.ones(len(errors)))


def test_order_plot_shows_points_order_and_guide(tmp_path):
    table = table_of(3 * np.array([32.0, 64, 128, 256]) ** -2)
    figure = figures.order_plot({"scheme": table})
    points, guide = figure.axes[0].lines
    assert points.get_ydata() == pytest.approx(table.errors)
    x, y = guide.get_data()
    assert -np.diff(np.log(y)) / np.diff(np.log(x)) == pytest.approx(2.0)
    assert figure.legends[0].get_texts()[0].get_text() == r"scheme: order 2.000 $\pm$ 0.000"
    assert [tick.get_text() for tick in figure.axes[0].get_xticklabels()] == ["32", "64", "128", "256"]
    assert figure.axes[0].get_ylabel() == "$W_1$ (rad)"
    drawn(figure, tmp_path)


@pytest.mark.parametrize("errors", [[0.0, 0.0], [1e-3, 0.0, 1e-5], [1e-3], [0.0], [1e-3, 1e-3], [1e-5, 1e-3]])
def test_order_plot_of_zeros_and_few_levels(errors, tmp_path):
    drawn(figures.order_plot(table_of(errors)), tmp_path)
    drawn(figures.order_plot({"a": table_of(errors), "b": table_of([1e-2, 1e-3], size="n")}), tmp_path)


def test_energy_marks_every_fall(tmp_path):
    run = on_mesh([UNIFORM] * 4, [0.0, 1.0, 2.0, 3.0])
    run.observed = {"energy": np.array([0.3, 0.5, 0.4999, 0.8])}
    figure = figures.energy(run)
    falls = figure.axes[0].lines[1]
    assert falls.get_data()[0].tolist() == [2.0]
    assert "2.0e-04" in falls.get_label()
    drawn(figure, tmp_path)


def test_energy_is_computed_when_it_was_not_observed(tmp_path):
    run = on_mesh([UNIFORM, SHARP], [0.0, 1.0], problem=GAP)
    line = figures.energy(run).axes[0].lines[0]
    assert line.get_ydata() == pytest.approx([mf.diagnostics.energy(measure, GAP) for measure in run.measures])
    for degenerate in (on_mesh([UNIFORM], [0.0], problem=GAP), on_mesh([UNIFORM] * 3, [0, 1, 2], problem=GAP)):
        drawn(figures.energy(degenerate), tmp_path)
    zero = on_mesh([UNIFORM] * 2, [0, 1])
    zero.observed = {"energy": np.zeros(2)}
    drawn(figures.energy(zero), tmp_path)


# ---- lives over logarithmic time


def pair_of_atoms(beta=10.0, t_end=1e9):
    return mf.Problem(mf.Attention.identity(2, beta), CIRCLE, mf.initial.atoms(CIRCLE.points([0.2, 2.7]), [0.6, 0.4]), t_end)


def test_the_tree_shows_angles_masses_and_the_merger(tmp_path):
    run = mf.solve(pair_of_atoms(), mf.Clusters(), save_at=[0.0, 1.0, 1e3, 1e6, 1e7, 1e9])
    figure = figures.cluster_tree(run)
    axes = figure.axes[0]
    lines = [line for line in axes.lines if line.get_color() == style.PALETTE[0] and len(line.get_xdata())]
    assert sorted(line.get_ydata()[0] % (2 * np.pi) for line in lines)[::2] == pytest.approx([0.2, 2.7], abs=1e-3)
    widths = sorted(line.get_linewidth() for line in lines)
    assert np.array(widths) / widths[-1] == pytest.approx([0.4, 0.6, 1.0])
    (mergers,) = [line for line in axes.lines if line.get_label() == "1 merger"]
    x, y = mergers.get_data()
    assert x == pytest.approx([run.stats["ln t of merger 1"]])
    assert y % (2 * np.pi) == pytest.approx([run.stats["angle of merger 1"]])
    assert axes.get_xlim()[0] < 0 < np.log(1e9) < axes.get_xlim()[1]
    drawn(figure, tmp_path)


def test_the_staircase_has_a_step_at_the_merger(tmp_path):
    run = mf.solve(pair_of_atoms(), mf.Clusters(), save_at=[0.0, 1.0, 1e3, 1e6, 1e7, 1e9])
    figure = figures.energy_staircase(run)
    energy = figure.axes[0].lines[0]
    assert energy.get_xdata() == pytest.approx(np.log(run.times[1:]))
    assert energy.get_ydata()[[0, -1]] == pytest.approx([0.52, 1.0], abs=1e-6)
    (merger,) = [line for line in figure.axes[0].lines if line.get_label() == "1 merger"]
    assert merger.get_xdata()[0] == pytest.approx(run.stats["ln t of merger 1"])
    run.observed = {"log_energy": np.log([0.5, 0.5, 0.6, 0.59, 0.7, 1.0])}
    falls = [line for line in figures.energy_staircase(run).axes[0].lines if line.get_label().startswith("falls, by at most 1.7e-02")]
    assert falls[0].get_xdata() == pytest.approx([np.log(1e6)])
    drawn(figure, tmp_path)


def test_lives_beyond_the_largest_double(tmp_path):
    """beta = 1e6: ln t = 1.8e6, of which no exponential exists."""
    story = life(pair_of_atoms(beta=1e6))
    for figure in (figures.cluster_tree(story), figures.energy_staircase(story)):
        assert figure.axes[0].get_xlim()[1] > story.log_times[0] > 1.8e6
        drawn(figure, tmp_path)
    energy = figures.energy_staircase(story).axes[0].lines[0]
    assert set(energy.get_ydata().round(6)) >= {0.52, 1.0}
    assert not [line for line in figures.energy_staircase(story).axes[0].lines if line.get_label().startswith("falls")]  # beta eps is no fall


def test_a_life_loaded_from_disk_is_drawn_alike(tmp_path):
    run = mf.solve(pair_of_atoms(), mf.Clusters(), save_at=[0.0, 1.0, 1e6, 1e9], observe=[mf.diagnostics.energy])
    loaded = mf.load(run.save(tmp_path / "run"))
    for draw in (figures.cluster_tree, figures.energy_staircase):
        one, other = draw(run).axes[0], draw(loaded).axes[0]
        assert [line.get_xydata().tolist() for line in one.lines] == [line.get_xydata().tolist() for line in other.lines]


def test_departures_and_the_hand_over_are_marked(tmp_path):
    times = np.geomspace(1, 100, 60)
    path = 0.01 * np.exp(np.minimum(times - 30, 5.5))
    laws = [mf.initial.von_mises_mixture([x, 4.0], kappa=1e5) for x in path]
    run = on_mesh(laws, times, problem=GAP, cells=1024)
    run.stats = {"hand-over at t": 2.0}
    figure = figures.cluster_tree(run)
    labels = [line.get_label() for line in figure.axes[0].lines]
    assert "1 departure" in labels
    assert "hand-over to atoms" in labels
    assert "1 departure" in [line.get_label() for line in figures.energy_staircase(run).axes[0].lines]
    drawn(figure, tmp_path)


@pytest.mark.parametrize("draw", [figures.cluster_tree, figures.energy_staircase])
def test_no_tree_without_clusters(draw):
    for run in (on_mesh([UNIFORM, UNIFORM], [0.0, 1.0], problem=GAP), on_mesh([SHARP], [0.0], problem=GAP)):
        with pytest.raises(mf.InputError, match=r"There are no clusters at any of the \d output times after 0"):
            draw(run)
    with pytest.raises(mf.InputError, match="empty"):
        draw(Trajectory())
    unknown = on_mesh([SHARP], [1.0])
    if draw is figures.energy_staircase:
        with pytest.raises(mf.InputError, match="Observe it"):
            draw(unknown)


# ---- files, state, questions


def test_save_is_whole_repeatable_and_chooses_by_suffix(tmp_path):
    make = lambda: figures.density(on_mesh([UNIFORM, SHARP], [0, 1]))
    first = figures.save(make(), tmp_path / "deep" / "picture")
    assert first == tmp_path / "deep" / "picture.png"
    assert first.read_bytes() == figures.save(make(), tmp_path / "again.png").read_bytes()
    assert figures.save(make(), tmp_path / "p.pdf").read_bytes()[:4] == b"%PDF"
    assert b"<svg" in figures.save(make(), str(tmp_path / "p.svg")).read_bytes()
    with pytest.raises(mf.InputError, match="png, pdf or svg"):
        figures.save(make(), tmp_path / "p.jpeg")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again.png", "deep", "p.pdf", "p.svg"]  # no temporary files


def test_no_figure_loads_pyplot_and_importing_loads_no_matplotlib():
    code = (
        "import sys, numpy as np, mfpde as mf; from mfpde import figures; assert 'matplotlib' not in sys.modules\n"
        "figures.decay({'a': ([0, 1], [1, .1])}); assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


@pytest.mark.parametrize("question", [
    lambda: figures.density(Trajectory()),
    lambda: figures.density(on_mesh([UNIFORM], [0.0]), scale="logarithmic"),
    lambda: figures.snapshots(on_mesh([UNIFORM], [0.0]), scale="lin"),
    lambda: figures.snapshots(on_mesh([UNIFORM], [0.0]), []),
    lambda: figures.snapshots(on_mesh([UNIFORM], [0.0]), [0.5]),
    lambda: figures.decay({}),
    lambda: figures.decay({"a": ([0, 1], [1.0])}),
    lambda: figures.decay({"a": ([0, 1], [1.0, 2.0])}, rates={"a": np.nan}),
    lambda: figures.decay({"a": ([0, 1], [1.0, 2.0])}, plateaus={"b": 1.0}),
    lambda: figures.order_plot({}),
    lambda: figures.energy(on_mesh([UNIFORM], [0.0])),
    lambda: figures.density(Trajectory(None, None, np.array([0.0]), [mf.Measure([[0.0, 0.0, 0.0, 1.0]], [1.0])])),
])
def test_bad_questions_are_refused(question):
    with pytest.raises(mf.InputError):
        question()
