"""Named cases: plain functions with keyword arguments that return `(Problem, Method)`.

The first line of each docstring is what `mfpde cases` prints; its keywords are what `mfpde run CASE key=value` sets.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable

import numpy as np

from mfpde import initial
from mfpde.cases.sphere import sphere_concentration, sphere_great_circle, sphere_growth, sphere_mobius, sphere_pair, sphere_rotation
from mfpde.errors import InputError, unknown_name
from mfpde.geometry import Circle
from mfpde.methods.base import Method
from mfpde.methods.clusters import Clusters
from mfpde.methods.finite_volume import FiniteVolume
from mfpde.methods.handover import Handover
from mfpde.methods.lagrangian import Lagrangian
from mfpde.model import Attention, Problem

Case = tuple[Problem, Method]
I = np.eye(2)
ON_THE_SPHERE = (sphere_concentration, sphere_mobius, sphere_growth, sphere_pair, sphere_great_circle, sphere_rotation)


def rotation(angle: float) -> np.ndarray:
    """The matrix that turns the plane by `angle`."""
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def concentration(*, beta: float = 100.0, t_end: float = 12.0, cells: int = 1024, order: int = 2) -> Case:
    """Low temperature, general Q, K, V with a spectral gap: concentration onto the push-forward of the initial law.

    The drift M = VA has eigenvalues 1 and 0.2 and is not normal; none of Q, K, V, A is symmetric. V and A share the dominant
    eigenvector with M, so the law stays where it concentrates.
    """
    K = np.array([[1.0, -0.1], [0.2, 0.8]])
    A = np.array([[1.2, 0.3], [0.0, 0.8]])
    drift = np.array([[1.0, 0.5], [0.0, 0.2]])
    law = initial.fourier([0.15 * np.exp(1j), 0.125j, 0.1])
    return Problem(Attention(np.linalg.solve(K.T, A), K, drift @ np.linalg.inv(A), beta), Circle(), law, t_end), FiniteVolume(cells=cells, order=order)


def poisson(*, r: float = 0.3, t_end: float = 2.0, cells: int = 1024, order: int = 2) -> Case:
    """beta = 0: a Poisson kernel stays one, its radius follows r' = r (1 - r^2) / 2."""
    return Problem(Attention.identity(2, 0.0), Circle(), initial.poisson(r), t_end), FiniteVolume(cells=cells, order=order)


def growth(
    *, beta: float = 9.0, mode: int = 4, amplitude: float = 1e-6, value: float = 1.0, turn: float = 0.0, t_end: float = 3.0, cells: int = 512, order: int = 2
) -> Case:
    """A small wave on the uniform law grows at a known rate (V = value * I, A a rotation by `turn`)."""
    law = initial.fourier(np.r_[np.zeros(mode - 1), amplitude / 2])
    attention = Attention(rotation(turn), I, value * I, beta)
    return Problem(attention, Circle(), law, t_end), FiniteVolume(cells=cells, order=order)


def two_clusters(*, beta: float = 4.0, distance: float = 2.0, width: float = 0.15, t_end: float = 60.0, cells: int = 512, order: int = 2) -> Case:
    """Two equal clusters that attract each other: metastable for a time like e^{beta (1 - cos distance)}."""
    law = initial.von_mises_mixture([-distance / 2, distance / 2], kappa=1 / width**2)
    return Problem(Attention.identity(2, beta), Circle(), law, t_end), FiniteVolume(cells=cells, order=order)


def zero_temperature(*, gap: float = 1.0, angle: float = 0.4, t_end: float = 6.0, cells: int = 1024, order: int = 2) -> Case:
    """beta = inf from the uniform law: the exact projective flow, symmetric drift with eigenvalues 1 + gap and 1."""
    turn = rotation(angle)
    V = turn @ np.diag([1 + gap, 1.0]) @ turn.T
    return Problem(Attention(I, I, V, np.inf), Circle(), initial.uniform(Circle()), t_end), FiniteVolume(cells=cells, order=order)


def handover(*, beta: float = 100.0, t_end: float = 16.0, cells: int = 1024, order: int = 2) -> Case:
    """The top of VA is not the top of V: the law gathers at +-e1, stays for a time like log beta, then leaves for +-e2."""
    law = initial.fourier([0.15 * np.exp(1j), 0.125j, 0.1 * np.exp(-0.4j)])
    return Problem(Attention(np.diag([4.0, 1.0]), I, np.diag([1.0, 2.0]), beta), Circle(), law, t_end), FiniteVolume(cells=cells, order=order)


def exact_law(name: str, problem: Problem) -> initial.InitialLaw | None:
    """The exact law at `t_end` of the case `name`, where a closed form is known (docs/theory), else None."""
    from mfpde import exact
    from mfpde.methods.zero_temperature import density

    if name == "poisson":
        return exact.poisson_law(abs(complex(*problem.initial.nodes(4096).mean)), problem.t_end)
    if name == "sphere_mobius":
        from mfpde.exact.sphere import axisymmetric_law

        mean = problem.initial.nodes(4096).mean
        return axisymmetric_law(problem.initial, mean / np.linalg.norm(mean), problem.t_end)
    if name == "zero_temperature":
        return initial.from_density(lambda x: density(problem, problem.t_end, x), problem.geometry)
    return None


SPECTRA = {
    "attracting": (I, I),  # (a) no zero-temperature motion: clusters form at distances beta^{-1/2}
    "antipodal": (I, np.diag([1.0, 0.5])),  # (b) two antipodal clusters, stable while l2/l1 < tanh beta
    "misaligned": (rotation(np.deg2rad(20)), np.diag([1.0, 0.5]) @ rotation(np.deg2rad(20)).T),  # (b'') departure linear in beta
    "repelling": (I, -np.diag([0.2, 1.0])),  # (c) negative top eigenvalue: blobs of width beta^{-1/2}, no collapse
    "complex": (I, I + rotation(np.pi / 2)),  # (d) V = I + J: clusters form while everything turns at rate 1
}


def gallery(*, spectrum: str = "complex", beta: float = 20.0, t_end: float = 10.0, cells: int = 512, order: int = 2) -> Case:
    """Terminal phases by the spectrum of V: attracting, antipodal, misaligned, repelling or complex."""
    if spectrum not in SPECTRA:
        raise unknown_name("spectrum", spectrum, SPECTRA)
    A, V = SPECTRA[spectrum]
    law = initial.fourier([0.15 * np.exp(1j), 0.125j, 0.1 * np.exp(-0.4j)])
    return Problem(Attention(A, I, V, beta), Circle(), law, t_end), FiniteVolume(cells=cells, order=order)


ASYMMETRIC = [0.15 * np.exp(1j), 0.125j, 0.1 * np.exp(-0.4j)]  # moments of (1 + .3 cos(x-1) + .25 sin 2x + .2 cos(3x+.4)) / 2 pi


def merge_time(*, beta: float = 100.0, distance: float = 2.5, mass: float = 0.6, t_end: float = 1e300) -> Case:
    """Two atoms that merge after a time like e^{beta (1 - cos distance)}, found as ln t."""
    law = initial.atoms(Circle().points([0.0, distance]), [mass, 1 - mass])
    return Problem(Attention.identity(2, beta), Circle(), law, t_end), Clusters()


def staircase(*, beta: float = 20.0, amplitude: float = 0.01, cells: int = 256, log_t_end: float = 45.0) -> Case:
    """A whole life: waves on the uniform law, clusters, plateaus of the energy over logarithmic time, the last merger."""
    phases = np.array([0.3, 1.1, 2.9, 4.0, 0.7, 5.2, 2.2, 1.9])
    law = initial.fourier(0.5 * amplitude * np.exp(1j * phases))
    return Problem(Attention.identity(2, beta), Circle(), law, float(np.exp(log_t_end))), Handover(Lagrangian(cells=cells, tol=1e-9))


def departure_log(*, beta: float = 100.0, t_end: float = 12.0, cells: int = 256) -> Case:
    """The top of VA is e1, that of V is e2: clusters form at +-e1 and leave for +-e2 after a time like 1.5 log beta."""
    attention = Attention(np.diag([4.0, 1.0]), I, np.diag([1.0, 2.0]), beta)
    return Problem(attention, Circle(), initial.fourier(ASYMMETRIC), t_end), Lagrangian(cells=cells, tol=1e-8)


def departure_linear(*, beta: float = 60.0, angle: float = 20.0, t_end: float = 10.0, cells: int = 256) -> Case:
    """Clusters at +-e1 that look `angle` degrees away hold for a time proportional to beta: V = diag(1, .5) A^T, A a rotation."""
    turn = rotation(np.deg2rad(angle))
    problem = Problem(Attention(turn, I, np.diag([1.0, 0.5]) @ turn.T, beta), Circle(), initial.uniform(Circle()), t_end)
    return problem, Lagrangian(cells=cells, tol=1e-8)


def terminal(*, spectrum: str = "complex", beta: float = 20.0, t_end: float = 30.0, cells: int = 256) -> Case:
    """The gallery of spectra by moving cells, until clusters are points: attracting, antipodal, misaligned, repelling or complex."""
    problem, _ = gallery(spectrum=spectrum, beta=beta, t_end=t_end)
    return problem, Lagrangian(cells=cells, tol=1e-8)


def names() -> dict[str, Callable[..., Case]]:
    """All cases by name: the functions of this module that return a `Case` and need no argument, and those on the sphere."""
    functions = inspect.getmembers(sys.modules[__name__], inspect.isfunction)
    signatures = {name: inspect.signature(f) for name, f in functions if f.__module__ == __name__ or f in ON_THE_SPHERE}
    ready = [name for name, s in signatures.items() if s.return_annotation == "Case" and all(p.default is not p.empty for p in s.parameters.values())]
    return {name: f for name, f in functions if name in ready}


def build(name: str, **keywords: object) -> Case:
    """The case `name` with `keywords`; an `InputError` names the nearest right one for a wrong case or keyword.

    >>> import mfpde as mf
    >>> problem, method = mf.cases.build("poisson", r=0.5)
    >>> method
    FiniteVolume(cells=1024, order=2, tol=1e-10)
    """
    known = names()
    if name not in known:
        raise unknown_name("case", name, known)
    parameters = inspect.signature(known[name]).parameters
    for keyword, value in keywords.items():
        if keyword not in parameters:
            raise unknown_name(f"keyword of {name}", keyword, parameters)
        wanted = type(parameters[keyword].default)
        if not (isinstance(value, wanted) or (wanted is float and isinstance(value, int) and not isinstance(value, bool))):
            raise InputError(f"{keyword} of {name} is of type {wanted.__name__}.\n  {keyword} = {value!r}\n  The default is {parameters[keyword].default!r}.")
    return known[name](**keywords)
