"""What acts on copies of a robot that are not at the same time: loads, currents and prescribed motions.

Each copy has rows of its own in the buffers that kernels read. Copies take steps of one size from time zero on, so that
their times are those of a grid; what acts from a place of the grid on is worked out once and serves all copies that
come by, in whatever company, so that it is the same to the last bit for each.
"""

from __future__ import annotations

from typing import NamedTuple, final

import numpy as np

from lissom.dynamics.loads import rows_of_times
from lissom.integration.fused_runs import stage_times
from lissom.integration.schemes import Scheme
from lissom.launch.workspace import Workspace
from lissom.model.model import Model
from lissom.model.model_batch import acts_alike

_MOST_KNOWN = 1024  # places of the grid that are remembered


class _Acting(NamedTuple):
    """Loads (n, n_load_rows, 6) and motions (n, 3 n_motions) at n ends of stages."""

    load: np.ndarray
    held: np.ndarray


@final
class OwnTimes:
    """Rows of what acts on copies.

    Args:
        w: the buffers, with `rows` rows and room for `most` steps. copies: how many. dt: size of steps [s]. steps: how
            many they take at once.
    """

    def __init__(
        self, model: Model, w: Workspace, scheme: Scheme, copies: int, most: int, dt: float, steps: int
    ) -> None:
        self.model, self.scheme, self.copies, self.dt, self.steps = model, scheme, copies, dt, steps
        stages = len(scheme.stages)
        self._load = w.host["load"].reshape(copies, most * stages, *w.host["load"].shape[1:])
        self._held = w.host["held"].reshape(copies, most * stages, -1)
        w.host["span"][:, 2] = most * np.arange(copies)
        self._are_alike = acts_alike(model)
        self._known: dict[tuple[int, int], _Acting] = {}

    @staticmethod
    def are_needed(model: Model) -> bool:
        """Whether something acts that is not the same at all times and for all models."""
        varies = model.loads.varies or model.n_motions > 0
        return varies or (model.n_load_rows > 0 and not acts_alike(model))

    @staticmethod
    def rows(scheme: Scheme, copies: int, most: int) -> int:
        """How many rows the buffers must have."""
        return copies * most * len(scheme.stages)

    def put_steps(self, which: np.ndarray, counts: np.ndarray) -> None:
        """Fill in what acts during the steps of copies (k,) that have taken so many (k,)."""
        for k, count in zip(which.tolist(), counts.tolist()):
            self._put(k, self._on_grid(k, count))

    def put_parts(self, which: np.ndarray, starts: np.ndarray, sizes: np.ndarray, many: np.ndarray) -> None:
        """Fill in what acts during so many (k,) steps of other sizes (k,), of copies (k,) at times (k,)."""
        for k, start, size, n in zip(which.tolist(), starts.tolist(), sizes.tolist(), many.tolist()):
            self._put(k, self._at(self._model_of(k), start, start + size * np.arange(1, n + 1)))

    def _put(self, copy: int, acting: _Acting) -> None:
        n = len(acting.load)
        self._load[copy, :n], self._held[copy, :n] = acting

    def _model_of(self, copy: int) -> Model:
        return self.model.one(copy, self.copies)

    def _on_grid(self, copy: int, count: int) -> _Acting:
        key = 0 if self._are_alike else copy * len(self.model.models) // self.copies, count
        found = self._known.get(key)
        if found is None:
            if len(self._known) == _MOST_KNOWN:
                self._known.clear()
            ends = self.dt * np.arange(count + 1, count + self.steps + 1)
            found = self._known[key] = self._at(self._model_of(copy), self.dt * count, ends)
        return found

    def _at(self, model: Model, start: float, ends: np.ndarray) -> _Acting:
        """What acts at the ends of the stages of steps from `start` to times."""
        times = stage_times(self.scheme, start, ends)
        held = model.motions_over(np.array(times)) if model.n_motions else np.zeros((len(times), 0))
        return _Acting(rows_of_times(model, times), held)
