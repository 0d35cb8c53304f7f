r"""One explicit Runge-Kutta step with an error estimate, and the rule for the next step size.

The pair is Dormand and Prince's 5(4) (J. Comput. Appl. Math. 6 (1980) 19): order 5, first same as last, six evaluations a step.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

NODES = (
    (),
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
# fifth-order minus fourth-order weights
ERROR = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)

Field = Callable[[np.ndarray], np.ndarray]


def dormand_prince(field: Field, x: np.ndarray, slope: np.ndarray, step: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`(x after, slope after, error estimate)` of one step of `x' = field(x)`; `slope = field(x)`, all of one shape.

    >>> import numpy as np
    >>> x, slope, error = dormand_prince(lambda x: -x, np.array([1.0]), np.array([-1.0]), 0.1)
    >>> bool(abs(x[0] - np.exp(-0.1)) < 1e-8)
    True
    """
    slopes = [slope]
    stage = x
    for weights in NODES[1:]:
        stage = x + step * np.tensordot(weights, np.array(slopes), axes=1)
        slopes.append(field(stage))
    error = np.tensordot(ERROR, np.array(slopes), axes=1)
    return stage, slopes[-1], step * error


def next_step(step: float, error: float, order: int = 5) -> float:
    """The step that should bring the local `error` (relative to its tolerance) to 1, changed by a factor within [1/5, 5].

    >>> next_step(0.1, 1.0) < 0.1 < next_step(0.1, 1e-3)
    True
    """
    return step * min(5.0, max(0.2, 0.9 * max(error, 1e-10) ** (-1 / order)))
