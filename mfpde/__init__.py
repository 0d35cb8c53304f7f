"""mfpde: the mean-field transformer equation in low dimension, solved three ways and compared.

    import mfpde as mf

    problem = mf.Problem(mf.Attention.identity(dim=2, beta=4.0), mf.Circle(),
                         mf.initial.von_mises_mixture(angles=[0.0, 2.0], kappa=4.0), t_end=1.0)
    density = mf.solve(problem, mf.FiniteVolume(cells=512))

The public names load when they are first used, so that `import mfpde` stays fast.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "Attention": "model",
    "Problem": "model",
    "Circle": "geometry",
    "Sphere": "geometry",
    "Mesh": "mesh",
    "Measure": "measure",
    "FiniteVolume": "methods.finite_volume",
    "Particles": "methods.particles",
    "Lagrangian": "methods.lagrangian",
    "Clusters": "methods.clusters",
    "Handover": "methods.handover",
    "ZeroTemperature": "methods.zero_temperature",
    "FiPyUpwind": "methods.fipy_upwind",
    "solve": "solver",
    "Trajectory": "trajectory",
    "load": "trajectory",
    "wasserstein": "transport",
    "converge": "convergence",
    "Checkpoints": "storage.checkpoint",
    "citation": "citations",
    "InputError": "errors",
    "NumericalError": "errors",
    "ToleranceError": "errors",
}
_MODULES = ("attention", "exact", "initial", "limits", "diagnostics", "transport", "figures", "export", "cases")

__all__ = [*_HOME, *_MODULES]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(importlib.import_module(f"mfpde.{_HOME[name]}"), name)
    elif name in _MODULES:
        value = importlib.import_module(f"mfpde.{name}")
    else:
        raise AttributeError(f"module 'mfpde' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
