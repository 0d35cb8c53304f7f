"""Results for other programs: labelled arrays and NetCDF (extra "io"), and tables of comma-separated values.

A trajectory becomes an `xarray.Dataset` over `time`; what it holds beside depends on its laws:

    on a mesh            weights (time, cell), density (time, cell), points (cell, coordinate), volumes (cell)
    equally many points  weights (time, point), points (time, point, coordinate)
    varying numbers      the same, with weight 0 and points NaN beyond the last one of each time

and the observables. All metadata is one JSON text, the attribute `metadata`, for NetCDF refuses None, truth values and tables.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mfpde.errors import InputError
from mfpde.storage.archive import common_mesh, write_whole
from mfpde.trajectory import Trajectory

if TYPE_CHECKING:
    import xarray

    from mfpde.comparison import Comparison


def needs(package: str, extra: str) -> InputError:
    """The error of a missing extra."""
    return InputError(f"This needs the package {package}.\n  Install the extra: pip install 'mfpde[{extra}]'")


def to_xarray(trajectory: Trajectory, *, metadata: Mapping[str, Any] | None = None) -> xarray.Dataset:
    """A trajectory as a labelled data set; `metadata` is added to what the trajectory knows of itself.

    Raises `InputError` without xarray. Cost: one copy.

    >>> import mfpde as mf
    >>> run = mf.solve(*mf.cases.poisson(t_end=1.0, cells=64), save_at=[0, 1])
    >>> data = to_xarray(run)  # doctest: +SKIP
    """
    try:
        import xarray
    except ImportError:
        raise needs("xarray", "io") from None
    measures = trajectory.measures
    if not measures:
        raise InputError("The trajectory is empty: the run failed before its first output.")
    variables: dict[str, Any] = {}
    mesh = common_mesh(measures)
    coordinates: dict[str, Any] = {"time": trajectory.times}
    if mesh is not None:
        weights = np.array([measure.weights for measure in measures])
        variables["weights"] = (("time", "cell"), weights, {"long_name": "mass of the cell"})
        variables["density"] = (("time", "cell"), weights / mesh.volumes, {"long_name": "mass per arc length or area"})
        variables["points"] = (("cell", "coordinate"), mesh.centres, {"long_name": "cell centre"})
        variables["volumes"] = (("cell",), mesh.volumes, {"long_name": "arc length or area of the cell"})
    else:
        most, dim = max(len(measure) for measure in measures), measures[0].points.shape[1]
        weights, points = np.zeros((len(measures), most)), np.full((len(measures), most, dim), np.nan)
        for k, measure in enumerate(measures):
            weights[k, : len(measure)], points[k, : len(measure)] = measure.weights, measure.points
        variables["weights"] = (("time", "point"), weights, {"long_name": "mass of the token"})
        variables["points"] = (("time", "point", "coordinate"), points, {"long_name": "unit vector"})
    for name, values in trajectory.observed.items():
        array = np.asarray(values)
        variables[name] = (("time", *(f"{name}_{axis}" for axis in range(1, array.ndim))), array)
    known = {**trajectory.described, "status": trajectory.status, "message": trajectory.message, "statistics": trajectory.stats, **(metadata or {})}
    return xarray.Dataset(variables, coordinates, {"metadata": json.dumps(known, default=str)})


def save_netcdf(trajectory: Trajectory, path: str | os.PathLike[str], *, metadata: Mapping[str, Any] | None = None) -> Path:
    """Write a trajectory as NetCDF; the file appears whole or not at all. Read it back with `xarray.open_dataset(path, engine="h5netcdf")`."""
    data = to_xarray(trajectory, metadata=metadata)
    try:
        import h5netcdf  # noqa: F401
        import h5py  # noqa: F401
    except ImportError:
        raise needs("h5netcdf and h5py", "io") from None
    target = Path(path).with_suffix(".nc")
    write_whole(target, lambda file: data.to_netcdf(file.name, engine="h5netcdf"))
    return target


def read_metadata(data: xarray.Dataset) -> dict[str, Any]:
    """The metadata that `to_xarray` put in."""
    return json.loads(data.attrs["metadata"])


def table_csv(columns: Mapping[str, np.ndarray]) -> str:
    """Columns of equal length as comma-separated values, every digit kept, names in the first line."""
    rows = np.column_stack(list(columns.values()))
    quoted = [f'"{name}"' if "," in name else name for name in columns]
    return "\n".join([",".join(quoted), *(",".join(f"{value:.17g}" for value in row) for row in rows)]) + "\n"


def distances_csv(comparison: Comparison) -> str:
    """t and all distances, W_1 then W_2."""
    columns = {"t": comparison.times}
    for p in (1, 2):
        columns |= {f"W{p} {a}-{b}": d[p] for (a, b), d in comparison.distances.items()}
    return table_csv(columns)


def observables_csv(trajectories: Mapping[str, Trajectory]) -> str:
    """t and the observables of each method; those with several numbers get one column a number."""
    columns = {"t": next(iter(trajectories.values())).times}
    for name, trajectory in trajectories.items():
        for observable, values in trajectory.observed.items():
            flat = np.asarray(values, dtype=float).reshape(len(trajectory.times), -1)
            columns |= {f"{name} {observable}" + (f" {i}" if flat.shape[1] > 1 else ""): column for i, column in enumerate(flat.T)}
    return table_csv(columns)
