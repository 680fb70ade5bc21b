"""What has been seen so far: states against time, to look back at, to plot and to save."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np

from lissom.dynamics.configuration import difference, integrate
from lissom.dynamics.energy import energy
from lissom.dynamics.kinematics import forward_kinematics
from lissom.model.model import Model
from lissom.simulation.trajectory import Statistics, Trajectory

MOST = 36_000  # states that are kept: ten minutes at sixty a second
SERIES = 600  # of a plotted series, at most


@final
class History:
    """States of one robot, the times rising; the oldest are forgotten."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.t: list[float] = []
        self.rows: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def __len__(self) -> int:
        return len(self.t)

    @classmethod
    def of(cls, model: Model, motion: Trajectory) -> History:
        """That of a simulated motion."""
        made = cls(model)
        made.t, made.rows = motion.t.tolist(), list(zip(motion.q, motion.v, motion.u))
        return made

    def add(self, t: float, q: np.ndarray, v: np.ndarray, u: np.ndarray) -> None:
        """Take in a state; those at its time and later are dropped."""
        self.cut(t)
        self.t.append(t)
        self.rows.append((q.copy(), v.copy(), u.copy()))
        if len(self.t) > MOST:
            del self.t[0], self.rows[0]

    def cut(self, t: float) -> None:
        """Forget what lies at a time and later."""
        while self.t and self.t[-1] >= t:
            self.t.pop()
            self.rows.pop()

    @property
    def span(self) -> tuple[float, float]:
        """The first and the last time [s]."""
        return (self.t[0], self.t[-1]) if self.t else (0.0, 0.0)

    def at(self, t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q, v and u at a time within the span, between two states on the manifold."""
        k = int(np.clip(np.searchsorted(self.t, t, side="right") - 1, 0, len(self.t) - 1))
        if k + 1 == len(self.t) or t <= self.t[k]:
            return self.rows[k]
        part = (t - self.t[k]) / (self.t[k + 1] - self.t[k])
        (q0, v0, u0), (q1, v1, u1) = self.rows[k], self.rows[k + 1]
        q = integrate(self.model, q0, part * difference(self.model, q0, q1))
        return q, v0 + part * (v1 - v0), u0 + part * (u1 - u0)

    def series(self, end: float, length: float, frames: Sequence[str]) -> Series:
        """What is plotted of the time `length` before `end`."""
        first, last = np.searchsorted(self.t, [end - length, end + 1e-12])
        chosen = np.unique(np.linspace(first, max(last - 1, first), min(SERIES, max(last - first, 1))).astype(int))
        chosen = chosen[chosen < len(self.t)]
        q, v, u = (np.array([self.rows[k][i] for k in chosen]) for i in range(3))
        t = np.array([self.t[k] for k in chosen])
        known, positions = {**self.model.links.frame, **self.model.frames}, {}
        poses = forward_kinematics(self.model, q) if len(t) else np.zeros((0, self.model.n_nodes, 4, 4))
        for name in frames:
            node, g = known[name]
            positions[name] = np.tile(g[:3, 3], (len(t), 1)) if node < 0 else (poses[:, node] @ g)[:, :3, 3]
        parts = energy(self.model, q, v) if len(t) else None
        energies = (
            np.zeros((0, 3)) if parts is None else np.stack([parts.kinetic, parts.gravitational, parts.elastic], 1)
        )
        return Series(t, positions, u.reshape(len(t), self.model.nu), energies)

    def trajectory(self) -> Trajectory:
        """The states as a motion to save; accelerations and forces of constraints are not known."""
        model, n = self.model, len(self)
        q, v, u = (np.array([row[i] for row in self.rows]).reshape(n, size)
                   for i, size in enumerate((model.nq, model.nv, model.nu)))  # fmt: skip
        unknown, cost = np.full((n, model.nv), np.nan), Statistics("recorded", n, 0, 0, 0.0)
        return Trajectory(np.array(self.t), q, v, unknown, u, np.full((n, model.n_multipliers), np.nan),
                          np.zeros((n, 0)), cost)  # fmt: skip


@final
class Series:
    """Columns against time: positions of frames by name, each (n, 3) [m], inputs (n, nu), and kinetic, gravitational
    and elastic energy (n, 3) [J]."""

    def __init__(
        self, t: np.ndarray, positions: dict[str, np.ndarray], inputs: np.ndarray, energies: np.ndarray
    ) -> None:
        self.t, self.positions, self.inputs, self.energies = t, positions, inputs, energies
