"""One self-contained HTML page about a run: it opens from the file system, without network or server (extra "report").

    the law with a time slider      on the circle densities and tokens against the angle, on the sphere a surface that turns under the mouse
    distances, observables          against time; logarithmic where they fall over decades
    numbers                         cost and quality of each method, files, provenance

The plotting library is inside the page, which makes it 5 MB. The numbers of the slider are kept to four digits and at most 400 cells and 60 times, for
they are looked at, not computed with: the files beside the page hold all of them.
"""

from __future__ import annotations

import json
import os
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from mfpde import limits
from mfpde.errors import InputError
from mfpde.export import needs
from mfpde.figures.profile import profile
from mfpde.measure import Measure
from mfpde.methods.cell_measure import has_density
from mfpde.storage.archive import write_text
from mfpde.trajectory import Trajectory

MOST_CELLS, MOST_TIMES, MOST_TOKENS = 400, 60, 400
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
TWO_PI = 2 * np.pi


def write(folder: str | os.PathLike[str], output: str | None = None) -> Path:
    """Make the page of a run folder, DIR/report.html when no other name is given; returns the file."""
    from mfpde.runs import experiment

    run, _, trajectories = experiment.read(folder)
    target = Path(output) if output else run.path / "report.html"
    write_text(target, page(run.record, trajectories, distances(run.path / "distances.csv")))
    return target


def distances(path: Path) -> dict[str, np.ndarray]:
    """The columns of distances.csv; empty where there is none, because the run is unfinished or its geometry has no distances."""
    if not path.exists():
        return {}
    try:
        lines = path.read_text().splitlines()
        names = lines[0].split(",")
        table = np.array([[float(value) for value in line.split(",")] for line in lines[1:]])
        if table.shape != (len(lines) - 1, len(names)) or names[0] != "t":
            raise ValueError(f"shape {table.shape} under {len(names)} names")
    except (OSError, ValueError, IndexError) as error:
        raise InputError(f"{path} is no table of distances, or it is damaged.\n  {error}") from None
    return dict(zip(names, table.T, strict=True))


def page(record: dict[str, Any], trajectories: dict[str, Trajectory], table: dict[str, np.ndarray]) -> str:
    """The page as text: `record` is run.json, `table` the columns of distances.csv."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise needs("plotly", "report") from None
    figures = [("law", law_figure(trajectories))]
    if table:
        figures.append(("distances", distance_figure(table, trajectories)))
    figures.append(("observables", observable_figure(trajectories)))
    bodies = [f'<div id="{name}" class="figure" style="height:{figure["layout"]["height"]}px"></div>' for name, figure in figures if figure]
    calls = [f"Plotly.newPlot({json.dumps(name)}, {safe(figure)});" for name, figure in figures if figure]
    title = f"{record['name']}: {record['problem']}"
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(record['name'])}</title><link rel='icon' href='data:,'><style>{STYLE}</style></head><body>",
            f"<h1>{escape(record['name'])}</h1><p>{escape(title)}</p>",
            f"<p>State: <b>{escape(record['state'])}</b> {escape(record['message'])}</p>",
            *bodies,
            "<h2>Numbers</h2>",
            numbers(trajectories),
            "<h2>Provenance</h2>",
            provenance_table(record),
            f"<script>{get_plotlyjs()}</script>",
            f"<script>{chr(10).join(calls)}</script>",
            "</body></html>",
        ]
    )


STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; max-width: 60rem; margin: 1rem auto; padding: 0 1rem; color: #222; background: #fff; }
h1 { font-size: 1.5rem; margin-bottom: 0; } h2 { font-size: 1.15rem; margin-top: 2rem; }
table { border-collapse: collapse; display: block; overflow-x: auto; } th, td { padding: .2rem .7rem; border-bottom: 1px solid #ddd; text-align: right; }
th:first-child, td:first-child { text-align: left; } .left td { text-align: left; } pre { white-space: pre-wrap; margin: 0; }
"""


def safe(figure: dict[str, Any]) -> str:
    """JSON that may stand in a script element; NaN and inf become gaps."""
    return json.dumps(clean(figure), allow_nan=False).replace("</", "<\\/")


def clean(value: Any) -> Any:
    """Plain numbers with four digits, None for what is not finite."""
    if isinstance(value, dict):
        return {key: clean(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return clean(value.tolist())
    if isinstance(value, (list, tuple)):
        return [clean(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.5g}") if np.isfinite(value) else None
    return value


# ---- the law -------------------------------------------------------------------------------------------------------------------------


def law_figure(trajectories: dict[str, Trajectory]) -> dict[str, Any]:
    """The laws of all methods at each time, with a slider and a button that plays them."""
    first = next(iter(trajectories.values()))
    times = first.times
    shown = np.unique(np.linspace(0, len(times) - 1, min(len(times), MOST_TIMES)).astype(int))
    sphere = first.final.points.shape[1] == 3
    frames = [{"name": f"{times[k]:.4g}", "data": (sphere_traces if sphere else circle_traces)(trajectories, int(k))} for k in shown]
    play = {"frame": {"duration": 80, "redraw": True}, "fromcurrent": True, "transition": {"duration": 0}}
    jump = {"mode": "immediate", "frame": {"duration": 0, "redraw": True}, "transition": {"duration": 0}}
    steps = [{"label": frame["name"], "method": "animate", "args": [[frame["name"]], jump]} for frame in frames]
    buttons = [
        {"label": "play", "method": "animate", "args": [None, play]},
        {"label": "stop", "method": "animate", "args": [[None], {"mode": "immediate", "frame": {"duration": 0, "redraw": True}}]},
    ]
    layout: dict[str, Any] = {
        "height": 560,
        "title": {"text": "The law of the tokens"},
        "margin": {"t": 50, "l": 70, "r": 20, "b": 40},
        "sliders": [{"currentvalue": {"prefix": "t = "}, "steps": steps, "len": 0.86, "x": 0.14, "y": -0.06, "pad": {"t": 30}}],
        "updatemenus": [
            {
                "type": "buttons",
                "direction": "left",
                "buttons": buttons,
                "showactive": False,
                "x": 0.0,
                "y": -0.06,
                "xanchor": "left",
                "yanchor": "top",
                "pad": {"t": 30},
            }
        ],
        "legend": {"orientation": "h", "y": 1.06},
    }
    if sphere:
        axis = {"visible": False, "range": [-1.1, 1.1]}
        layout["scene"] = {"xaxis": axis, "yaxis": axis, "zaxis": axis, "aspectmode": "cube", "camera": {"eye": {"x": 0.85, "y": 0.85, "z": 0.55}}}
    else:
        angles = [i * np.pi / 2 for i in range(5)]
        layout["xaxis"] = {"title": {"text": "angle (rad)"}, "range": [0, TWO_PI], "tickvals": angles, "ticktext": ["0", "π/2", "π", "3π/2", "2π"]}
        layout["yaxis"] = {"title": {"text": "density (1/rad)"}, **density_range(trajectories)}
    return {"data": frames[0]["data"], "layout": layout, "frames": frames}


def density_range(trajectories: dict[str, Trajectory]) -> dict[str, Any]:
    """Eight decades at most when the densities need them, else from zero."""
    curves = [curve(measure)[1] for trajectory in trajectories.values() for measure in trajectory.measures[:: max(1, len(trajectory.measures) // 12)]]
    top = max(float(rho.max()) for rho in curves)
    if top * TWO_PI > 20:
        least = min((float(rho[rho > 0].min()) for rho in curves if (rho > 0).any()), default=top)
        return {"type": "log", "range": [float(np.log10(max(least / 2, top * 1e-8))), float(np.log10(2 * top))], "exponentformat": "power"}
    return {"range": [0, 1.1 * top]}


def curve(measure: Measure) -> tuple[np.ndarray, np.ndarray]:
    """`(angles, density)` of a law on the circle, few enough numbers for a page."""
    rho, edges = profile(measure)
    theta = (edges[1:] + edges[:-1]) / 2
    if len(theta) > MOST_CELLS:  # the largest of neighbours, so that no peak is lost
        groups = np.array_split(np.arange(len(theta)), MOST_CELLS)
        theta, rho = np.array([theta[g].mean() for g in groups]), np.array([rho[g].max() for g in groups])
    return theta, rho


def circle_traces(trajectories: dict[str, Trajectory], k: int) -> list[dict[str, Any]]:
    """One curve a method."""
    traces = []
    for (name, trajectory), colour in zip(trajectories.items(), PALETTE * len(trajectories), strict=False):
        theta, rho = curve(trajectory.measures[k])
        steps = not has_density(trajectory.measures[k])
        style = {"color": colour, "width": 1.2 if steps else 2, "shape": "hvh" if steps else "linear"}
        traces.append({"type": "scatter", "mode": "lines", "name": name, "x": theta, "y": np.where(rho > 0, rho, np.nan), "line": style})
    return traces


def sphere_traces(trajectories: dict[str, Trajectory], k: int) -> list[dict[str, Any]]:
    """The first law on a mesh as a coloured surface, tokens of the others as points just above it."""
    traces: list[dict[str, Any]] = []
    for (name, trajectory), colour in zip(trajectories.items(), PALETTE * len(trajectories), strict=False):
        measure = trajectory.measures[k]
        if measure.mesh is not None and not any(trace["type"] == "mesh3d" for trace in traces):
            x, y, z = measure.points.T
            hull = triangles(measure.points)
            surface = {
                "type": "mesh3d",
                "name": name,
                "x": x,
                "y": y,
                "z": z,
                "i": hull[:, 0],
                "j": hull[:, 1],
                "k": hull[:, 2],
                "intensity": measure.density(),
            }
            light = {"ambient": 1.0, "diffuse": 0.0, "specular": 0.0}  # colours alone tell the density
            look = {"colorscale": "Viridis", "cmin": 0, "colorbar": {"title": {"text": "density"}}, "lighting": light}
            traces.append({**surface, **look})
        elif measure.mesh is None:
            few = np.unique(np.linspace(0, len(measure) - 1, min(len(measure), MOST_TOKENS)).astype(int))
            x, y, z = 1.01 * measure.points[few].T
            traces.append({"type": "scatter3d", "mode": "markers", "name": name, "x": x, "y": y, "z": z, "marker": {"size": 2.5, "color": colour}})
    return traces


def triangles(points: np.ndarray) -> np.ndarray:
    """The triangulation of points on a sphere: the faces of their convex hull, (F, 3)."""
    from scipy.spatial import ConvexHull

    return ConvexHull(points).simplices


# ---- curves against time -------------------------------------------------------------------------------------------------------------


def distance_figure(table: dict[str, np.ndarray], trajectories: dict[str, Trajectory]) -> dict[str, Any]:
    """All distances against time, W_1 solid, W_2 dashed, with the predicted slopes where there are some."""
    times = table["t"]
    pairs = list(dict.fromkeys(name[3:] for name in table if name != "t"))
    colours = dict(zip(pairs, PALETTE * len(pairs), strict=False))
    traces = []
    for name, values in table.items():
        if name != "t":
            style = {"color": colours[name[3:]], "dash": "solid" if name.startswith("W1") else "dash"}
            shown = True if name.startswith("W1") and (name.endswith("limit") or len(pairs) < 3) else "legendonly"
            traces.append(
                {"type": "scatter", "mode": "lines", "name": name, "x": times, "y": np.where(values > 0, values, np.nan), "line": style, "visible": shown}
            )
    problem = next(iter(trajectories.values())).problem
    to_limit = next((values for name, values in table.items() if name.startswith("W1") and name.endswith("limit")), None)
    if problem is not None and to_limit is not None and to_limit[0] > 0:
        try:
            rate = limits.rate(problem.attention, 1)
            line = to_limit[0] * np.exp(-rate * (times - times[0]))
            guide = {"color": "#555", "dash": "dot"}
            traces.append(
                {
                    "type": "scatter",
                    "mode": "lines",
                    "name": f"predicted W1, c = {rate:.3f}",
                    "x": times,
                    "y": np.where(line > 1e-16, line, np.nan),
                    "line": guide,
                }
            )
        except InputError:
            pass
    axes = {"xaxis": {"title": {"text": "time t"}}, "yaxis": {"title": {"text": "distance (rad)"}, "type": "log", "exponentformat": "power"}}
    return {"data": traces, "layout": {"height": 460, "title": {"text": "Wasserstein distances (click a name to show it)"}, **axes}}


def observable_figure(trajectories: dict[str, Trajectory]) -> dict[str, Any]:
    """Energy, order parameter, clusters and other observables, one panel each."""
    names = list(dict.fromkeys(name for trajectory in trajectories.values() for name in trajectory.observed))
    if not names:
        return {}
    layout: dict[str, Any] = {
        "height": 230 * len(names) + 60,
        "title": {"text": "Observables"},
        "grid": {"rows": len(names), "columns": 1, "pattern": "independent"},
    }
    layout["margin"] = {"l": 90, "t": 50}
    traces = []
    for row, observable in enumerate(names, start=1):
        suffix = "" if row == 1 else str(row)
        layout[f"yaxis{suffix}"] = {"title": {"text": observable.replace("_", " ")}}
        layout[f"xaxis{suffix}"] = {"title": {"text": "time t"} if row == len(names) else {}}
        for (name, trajectory), colour in zip(trajectories.items(), PALETTE * len(trajectories), strict=False):
            if observable in trajectory.observed:
                values = np.asarray(trajectory.observed[observable], dtype=float).reshape(len(trajectory.times), -1)
                for column in values.T:
                    line = {"type": "scatter", "mode": "lines", "name": name, "legendgroup": name, "showlegend": row == 1, "x": trajectory.times, "y": column}
                    traces.append({**line, "line": {"color": colour}, "xaxis": f"x{suffix}", "yaxis": f"y{suffix}"})
    return {"data": traces, "layout": layout}


# ---- tables --------------------------------------------------------------------------------------------------------------------------


def numbers(trajectories: dict[str, Trajectory]) -> str:
    """One column a method, one row a statistic."""
    names = list(dict.fromkeys(name for trajectory in trajectories.values() for name in trajectory.stats))

    def cell(value: Any) -> str:
        return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)

    head = "".join(f"<th>{escape(name)}</th>" for name in trajectories)
    methods = "".join(f"<td>{escape(trajectory.described['method'])}</td>" for trajectory in trajectories.values())
    rows = [f"<tr><td>method</td>{methods}</tr>"]
    rows += [f"<tr><td>{escape(n)}</td>{''.join(f'<td>{cell(t.stats.get(n))}</td>' for t in trajectories.values())}</tr>" for n in names]
    return f"<table id='numbers'><thead><tr><th></th>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def provenance_table(record: dict[str, Any]) -> str:
    """Configuration, hash, versions, machine, command, timings."""
    shown = ("hash", "configuration", "seeds", "versions", "commit", "python", "platform", "processors", "threads", "command", "date", "timings", "warnings")
    rows = [(key, record.get(key)) for key in shown]
    body = "".join(f"<tr><td>{escape(k)}</td><td><pre>{escape(v if isinstance(v, str) else json.dumps(v, indent=1))}</pre></td></tr>" for k, v in rows if v)
    return f"<table class='left' id='provenance'><tbody>{body}</tbody></table>"
