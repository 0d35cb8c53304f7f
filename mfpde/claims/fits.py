r"""Fits that state their window, their residual and their uncertainty.

A window is chosen by a rule that sees the data only through named levels, never by eye. The interval is Student's 95 % interval of the slope from the scatter
about the line; a curve that bends systematically inside its window is worse than its interval says, so look at the residual too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mfpde.errors import InputError


@dataclass(frozen=True)
class Fit:
    """A straight line `y = intercept + slope x`, or a slope with another law around it.

    Attributes
    ----------
    slope, intercept : float
    interval : float
        Half-width of the 95 % interval of the slope.
    residual : float
        Root-mean-square distance of the points from the fit, in y.
    r_squared : float
        Share of the variance of y that the fit explains.
    window : (float, float)
        Smallest and largest x used.
    points : int
    """

    slope: float
    intercept: float
    interval: float
    residual: float
    r_squared: float
    window: tuple[float, float]
    points: int

    def __str__(self) -> str:
        return f"{self.slope:.4f} +- {self.interval:.4f} on [{self.window[0]:.3g}, {self.window[1]:.3g}], residual {self.residual:.2g}, {self.points} points"


def line(x: np.ndarray, y: np.ndarray) -> Fit:
    """Least squares of y (n,) on x (n,), n >= 3; an `InputError` for fewer, since two points have no residual.

    >>> import numpy as np
    >>> fit = line(np.arange(5.0), 2 - 0.5 * np.arange(5.0))
    >>> round(fit.slope, 12), fit.points, bool(fit.interval < 1e-12)
    (-0.5, 5, True)
    """
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if len(x) < 3:
        raise InputError(f"A fit with an uncertainty needs at least three points.\n  {len(x)} in the window.\n  Save more output times or widen the window.")
    design = np.stack([x, np.ones_like(x)], axis=1)
    return _summary(design, y, x)


def power(x: np.ndarray, y: np.ndarray) -> Fit:
    """The exponent of `y ~ x^slope`: a line through the logarithms.

    >>> import numpy as np
    >>> round(power(np.array([1.0, 10, 100]), np.array([3.0, 0.3, 0.03])).slope, 12)
    -1.0
    """
    return line(np.log(x), np.log(y))


def decay(times: np.ndarray, distances: np.ndarray, *, p: float = 1, factor: str = "none") -> Fit:
    r"""The rate c of `W ~ e^{-ct}`, or of `W^p ~ (t + t_0) e^{-pct}` with factor = "linear", which section 4 of docs/theory predicts where two rates are equal.

    The slope of the result is c itself, positive for a decay. With the factor t_0 >= 0 is fitted, too: the constant beside the factor fades like 1/t only.

    >>> import numpy as np
    >>> t = np.linspace(5, 12, 15)
    >>> round(decay(t, (t + 2) * np.exp(-0.8 * t), factor="linear").slope, 5)
    0.8
    """
    t, y = np.asarray(times, dtype=float), np.log(distances)
    if factor == "none":
        fit = line(t, y)
        return Fit(-fit.slope, fit.intercept, fit.interval, fit.residual, fit.r_squared, fit.window, fit.points)
    if factor != "linear":
        raise InputError(f'factor is "none" or "linear".\n  factor = {factor!r}')
    from scipy.optimize import least_squares
    from scipy.stats import t as student

    def miss(parameters: np.ndarray) -> np.ndarray:
        rate, constant, log_shift = parameters
        return constant - rate * t + np.log(t + np.exp(log_shift)) / p - y

    first = line(t, y - np.log(t) / p)
    found = least_squares(miss, [-first.slope, first.intercept, 0.0], xtol=1e-14, ftol=1e-14, gtol=1e-14)
    freedom = max(len(t) - 3, 1)
    residual = float(np.sqrt(np.mean(found.fun**2)))
    covariance = np.linalg.pinv(found.jac.T @ found.jac) * (found.fun @ found.fun / freedom)
    interval = float(student.ppf(0.975, freedom) * np.sqrt(covariance[0, 0]))
    explained = 1 - float(found.fun @ found.fun / np.sum((y - y.mean()) ** 2))
    return Fit(float(found.x[0]), float(found.x[1]), interval, residual, explained, (float(t[0]), float(t[-1])), len(t))


def between(distances: np.ndarray, high: float, low: float) -> slice:
    """The window of a decay: from the first value at or below `high` to the last before the values first fall below `low`.

    >>> import numpy as np
    >>> between(np.array([1.0, 0.5, 0.2, 0.1, 0.05]), 0.5, 0.1)
    slice(1, 4, None)
    """
    below_high, below_low = np.flatnonzero(distances <= high), np.flatnonzero(distances < low)
    begin = int(below_high[0]) if len(below_high) else len(distances)
    end = int(below_low[0]) if len(below_low) else len(distances)
    return slice(begin, max(end, begin))


def _summary(design: np.ndarray, y: np.ndarray, x: np.ndarray) -> Fit:
    from scipy.stats import t as student

    (slope, intercept), *_ = np.linalg.lstsq(design, y, rcond=None)
    off = y - design @ [slope, intercept]
    freedom = len(y) - 2
    spread = np.sqrt(off @ off / freedom / np.sum((x - x.mean()) ** 2))
    total = float(np.sum((y - y.mean()) ** 2))
    r_squared = 1 - float(off @ off) / total if total > 0 else 1.0
    interval = float(student.ppf(0.975, freedom) * spread)
    return Fit(float(slope), float(intercept), interval, float(np.sqrt(np.mean(off**2))), r_squared, (float(x.min()), float(x.max())), len(x))
