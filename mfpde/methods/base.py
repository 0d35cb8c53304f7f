"""What every numerical method is: a value that, prepared for a problem, yields a scheme.

The contract of a scheme, which `tests/contract` checks for every method:

1. `initial()` is the state at time 0; a state holds all that the future depends on, and nothing else.
2. `advance(state)` makes one step of its own choosing. It never looks at output times, so these cannot change the result,
   and it never alters the state it was given. The last step may pass the final time.
3. `measure(before, after, time)` is the law at any time of the last step, as accurate as the step itself.
4. `statistics()` is a flat dictionary of counts and of seconds by stage, for the end-of-run table. Names say how two parts of a resumed run add up:
   `mfpde.storage.checkpoint.total_statistics`.
5. A method that draws random numbers while it runs keeps its generator in the state: `mfpde.storage.checkpoint.generator_to_array`.

A scheme may also have `verdict(state) -> (status, remark)`: what a run that ends in this state should be called, "done" or else, and a sentence
for its message. `FiniteVolume` tells so of clusters that its mesh does not resolve.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from mfpde.measure import Measure
from mfpde.model import Problem


class State(NamedTuple):
    """A moment of a run: its time, the size of the next step to try (inf: no opinion), and named arrays."""

    time: float
    step: float
    arrays: dict[str, np.ndarray]


class Scheme(Protocol):
    """A method prepared for one problem; see the contract in the module's text."""

    def initial(self) -> State: ...

    def advance(self, state: State) -> State: ...

    def measure(self, before: State, after: State, time: float) -> Measure: ...

    def statistics(self) -> dict[str, Any]: ...


@runtime_checkable
class Method(Protocol):
    """A frozen description of numerics: sizes, orders, tolerances."""

    def prepare(self, problem: Problem) -> Scheme: ...
