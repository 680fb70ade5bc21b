"""Where contacts that stick hold on while motions run together: anchors, which each motion has for itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import numpy as np

from lissom.dynamics.contacts import contact_anchors, put_anchors
from lissom.integration.starts import accelerations
from lissom.model.model import Model


@final
@dataclass(frozen=True)
class Holding:
    """Models of motions whose contacts stick, on whose tables the anchors of one motion stand at a time.

    Fields:
        models: copies that nobody else has, one for each model. first: anchors at the start, (n, n_pairs, 6). own:
        those that the models came with, (n, n_pairs, 6). kept: those at times that are kept alone, (n, times, n_pairs,
        6).
    """

    models: tuple[Model, ...]
    first: np.ndarray
    own: np.ndarray
    kept: np.ndarray | None = None

    @staticmethod
    def begun(model: Model, q: np.ndarray, v: np.ndarray) -> Holding:
        """Of motions that begin at states (n, ...)."""
        rows = model.of_rows(len(q))
        own = np.array([one.surroundings.anchors for one in rows])
        first = np.array([contact_anchors(one, *state) for one, *state in zip(rows, q, v)])
        models = tuple(one.anchored(one.surroundings.anchors) for one in model.models or (model,))
        return Holding(models, first, own)

    def at(self, i: int, anchors: np.ndarray) -> Model:
        """The model of motion i, while it holds on there."""
        model = self.models[i * len(self.models) // len(self.first)]
        put_anchors(model, anchors)
        return model

    def onwards(self, anchors: np.ndarray) -> Holding:
        """Of the same motions from other anchors (n, n_pairs, 6) on."""
        return replace(self, first=anchors, kept=None)

    def rates(self, q: np.ndarray, v: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Accelerations at the start, and the forces of loops."""
        found = [accelerations(self.at(i, self.first[i]), 0.0, q[i : i + 1], v[i : i + 1], u[i : i + 1])
                 for i in range(len(q))]  # fmt: skip
        a, force = zip(*found)
        return np.concatenate(a), np.concatenate(force)

    def along(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Anchors at states (n, steps + 1, ...), each moved from those before, (n, steps + 1, n_pairs, 6)."""
        out = np.zeros((*q.shape[:2], *self.first.shape[1:]))
        for i in range(len(q)):
            out[i, 0] = self.first[i]
            for k in range(1, q.shape[1]):
                out[i, k] = contact_anchors(self.at(i, out[i, k - 1]), q[i, k], v[i, k])
        return out
