"""What to cite: the package, the model and the theory a problem rests on, the papers behind a method."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

from mfpde import __version__
from mfpde.model import Problem

MODEL = "geshkovski2023mathematical"
COLD = "alcalde2026quantifying"
BIBLIOGRAPHY = r"""
@software{mfpde,
  title = {mfpde: the mean-field transformer equation in low dimension}, version = {VERSION}, author = {{The mfpde developers}}}

@article{geshkovski2023mathematical,
  title = {A mathematical perspective on transformers},
  author = {Geshkovski, Borjan and Letrouit, Cyril and Polyanskiy, Yury and Rigollet, Philippe},
  eprint = {2312.10794}, archiveprefix = {arXiv}, year = {2023}}

@article{alcalde2026quantifying,
  title = {Quantifying Concentration Phenomena of Mean-Field Transformers in the Low-Temperature Regime},
  author = {Alcalde, A. and Bungert, L. and Riedl, K. and Roith, T.},
  eprint = {2605.10931}, archiveprefix = {arXiv}, year = {2026}}

@article{shu1988efficient,
  title = {Efficient implementation of essentially non-oscillatory shock-capturing schemes},
  author = {Shu, Chi-Wang and Osher, Stanley},
  journal = {Journal of Computational Physics}, volume = {77}, pages = {439--471}, year = {1988}}

@article{vanleer1977towards,
  title = {Towards the ultimate conservative difference scheme. {IV}. {A} new approach to numerical convection},
  author = {van Leer, Bram},
  journal = {Journal of Computational Physics}, volume = {23}, pages = {276--299}, year = {1977}}

@article{dormand1980family,
  title = {A family of embedded {Runge--Kutta} formulae},
  author = {Dormand, John R. and Prince, Peter J.},
  journal = {Journal of Computational and Applied Mathematics}, volume = {6}, pages = {19--26}, year = {1980}}

@article{guyer2009fipy,
  title = {{FiPy}: Partial differential equations with {Python}},
  author = {Guyer, Jonathan E. and Wheeler, Daniel and Warren, James A.},
  journal = {Computing in Science and Engineering}, volume = {11}, number = {3}, pages = {6--15}, year = {2009}}

@article{delon2010fast,
  title = {Fast transport optimization for {Monge} costs on the circle},
  author = {Delon, Julie and Salomon, Julien and Sobolevski, Andrei},
  journal = {SIAM Journal on Applied Mathematics}, volume = {70}, pages = {2239--2258}, year = {2010}}

@article{watanabe1994constants,
  title = {Constants of motion for superconducting {Josephson} arrays},
  author = {Watanabe, Shinya and Strogatz, Steven H.},
  journal = {Physica D}, volume = {74}, pages = {197--253}, year = {1994}}

@article{ott2008low,
  title = {Low dimensional behavior of large systems of globally coupled oscillators},
  author = {Ott, Edward and Antonsen, Thomas M.},
  journal = {Chaos}, volume = {18}, pages = {037113}, year = {2008}}
"""
ENTRIES = {entry[entry.index("{") + 1 : entry.index(",")]: entry.replace("VERSION", __version__) for entry in BIBLIOGRAPHY.strip().split("\n\n")}
BY_METHOD = {
    "FiniteVolume": ("shu1988efficient", "vanleer1977towards"),
    "Particles": ("dormand1980family",),
    "Lagrangian": ("dormand1980family",),
    "Clusters": ("dormand1980family",),
    "Handover": ("dormand1980family",),
    "ZeroTemperature": (COLD,),
    "FiPyUpwind": ("guyer2009fipy",),
}


@dataclass(frozen=True)
class Citation:
    """Keys of what to cite, and why; `bibtex` is the entries."""

    reasons: dict[str, str]

    @property
    def bibtex(self) -> str:
        """BibTeX, one entry a key, with the reason as a comment."""
        return "\n\n".join(f"% {reason}\n{ENTRIES[key]}" for key, reason in self.reasons.items())

    def __repr__(self) -> str:
        return "Please cite\n" + "\n".join(f"  {key:<28}{reason}" for key, reason in self.reasons.items()) + "\nEntries: .bibtex"

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><td><code>{escape(key)}</code></td><td style='text-align:left'>{escape(reason)}</td></tr>" for key, reason in self.reasons.items())
        return f"<table><caption>Please cite</caption><tbody>{rows}</tbody></table><pre>{escape(self.bibtex)}</pre>"


def citation(problem: Problem | None = None, *methods: Any) -> Citation:
    """What to cite for results on `problem` by `methods`: the package and the model always.

    >>> import mfpde as mf
    >>> problem, method = mf.cases.poisson()
    >>> mf.citation(problem, method)
    Please cite
      mfpde                       the package
      geshkovski2023mathematical  the model
      watanabe1994constants       beta = 0: the Kuramoto equation and its Moebius flow
      ott2008low                  beta = 0: Poisson kernels stay Poisson kernels
      shu1988efficient            FiniteVolume
      vanleer1977towards          FiniteVolume
    Entries: .bibtex
    """
    reasons = {"mfpde": "the package", MODEL: "the model"}
    if problem is not None and problem.attention.beta == 0 and problem.geometry.dim == 2:
        reasons["watanabe1994constants"] = "beta = 0: the Kuramoto equation and its Moebius flow"
        reasons["ott2008low"] = "beta = 0: Poisson kernels stay Poisson kernels"
    if problem is not None and problem.attention.beta > 10:
        reasons[COLD] = "low temperature: concentration, and its limit"
    for method in methods:
        for key in BY_METHOD.get(type(method).__name__, ()):
            reasons.setdefault(key, type(method).__name__)
    if len(methods) > 1:
        reasons["delon2010fast"] = "Wasserstein distances on the circle"
    return Citation(reasons)
