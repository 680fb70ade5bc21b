"""Gradients of rollouts against differences of the rollouts themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from lissom.dynamics.assembly import assemble
from lissom.dynamics.configuration import integrate
from lissom.errors import ShapeError
from lissom.gradients.carried import Gradient
from lissom.gradients.designs import moved_model
from lissom.gradients.rollout import Rollout, rollout
from lissom.model.model import Model
from lissom.robot import checks, formatting

_LEAST = 1e-3  # of the largest derivative, below which others are as good as zero
_STEPS = 10.0 ** -np.arange(2.0, 5.5, 0.5)  # of a direction of natural size


@final
@formatting.in_one_line
@dataclass(frozen=True)
class GradientCheck:
    """Derivatives along one direction in each of what a gradient is by: "q0", "v0", "u" and paths of design values.

    Fields:
        exact: by the gradient. differenced: by differences of fourth order. uncertainty: by how much these differ among
        themselves, in relation to the size of the gradient along directions of that size, or to a thousandth of the
        largest of these sizes, where it is less; large where the motion is chaotic or has kinks. error: difference of
        exact and differenced in the same relation.
    """

    exact: dict[str, float]
    differenced: dict[str, float]
    uncertainty: dict[str, float]
    error: dict[str, float]

    @property
    def worst(self) -> float:
        """The largest error."""
        return max(self.error.values(), default=0.0)


def check_gradient(
    motion: Rollout, loss: Callable[[Rollout], float], gradient: Gradient, *, seed: int = 0
) -> GradientCheck:
    """Compare a gradient of a loss with differences of the loss, along random directions.

    Args:
        motion: a single one. loss: function of a rollout that returns a number. gradient: of the loss, as
            `motion.backward` gave it. seed: of the directions.
    Returns:
        GradientCheck, of the loss [per natural size of coordinates, and per size of inputs and of design values].
        Each derivative is differenced with seven steps, and the two neighbours that agree best
        count: so the choice knows nothing of the gradient.
    Raises:
        ShapeError: the motion is a batch. ConvergenceError: a moved motion has no step.
    Accuracy: some 1e-9 where the motion is smooth. Cost: 28 rollouts for each item.
    """
    model = motion.model
    if motion.lead or not isinstance(model, Model):
        raise ShapeError(f"motion: expected a single one, got a batch of shape {motion.lead}")
    checks.integer(seed, "seed", least=0)
    rng = np.random.default_rng(seed)
    q0, v0, scale = motion.path.q[0, 0], motion.path.v[0, 0], model.dofs.scale
    onto = motion.starts.onto_q[0]

    def again(own: Model, q: np.ndarray, v: np.ndarray, u: np.ndarray) -> float:
        q = assemble(own, q) if own.n_rows else q
        options: dict[str, Any] = {"dt": motion.dt, "method": motion.method, "every": motion.every}
        return float(loss(rollout(own, q, v, u, tolerance=motion.stepping.tolerance, **options)))

    ways: dict[str, tuple[float, float, Callable[[float], float]]] = {}
    dq, dv = onto @ (rng.normal(size=model.nv) * scale), rng.normal(size=model.nv) * scale
    size_u = float(np.abs(motion.u).max(initial=0.0)) or 1.0
    du = size_u * rng.normal(size=motion.u.shape)
    norms = [float(np.linalg.norm(x)) for x in (gradient.q0 * scale, gradient.v0 * scale, gradient.u * size_u)]
    ways["q0"] = float(gradient.q0 @ dq), norms[0], lambda x: again(model, integrate(model, q0, x * dq), v0, motion.u)
    ways["v0"] = float(gradient.v0 @ dv), norms[1], lambda x: again(model, q0, v0 + x * dv, motion.u)
    ways["u"] = float(np.sum(gradient.u * du)), norms[2], lambda x: again(model, q0, v0, motion.u + x * du)
    for path, slope in gradient.parameters.items():
        size = moved_model(model, path, np.zeros(slope.shape))[1]
        way = size * rng.normal(size=slope.shape)

        def redesigned(x: float, path: str = path, way: np.ndarray = way) -> float:
            return again(moved_model(model, path, x * way)[0], q0, v0, motion.u)

        ways[path] = float(np.sum(slope * way)), float(size * np.linalg.norm(slope)), redesigned
    found = {name: _differenced(f) for name, (_, _, f) in ways.items()}
    sizes = {name: max(abs(exact), norm, 1e-300) for name, (exact, norm, _) in ways.items()}
    units = {name: max(size, _LEAST * max(sizes.values())) for name, size in sizes.items()}
    return GradientCheck(
        {name: x[0] for name, x in ways.items()},
        {name: x[0] for name, x in found.items()},
        {name: x[1] / units[name] for name, x in found.items()},
        {name: abs(ways[name][0] - x[0]) / units[name] for name, x in found.items()},
    )


def _differenced(f: Callable[[float], float]) -> tuple[float, float]:
    """The derivative of f at 0, and by how much the two best estimates differ."""
    slopes = np.array([(8.0 * (f(h) - f(-h)) - f(2.0 * h) + f(-2.0 * h)) / (12.0 * h) for h in _STEPS])
    apart = np.abs(np.diff(slopes))
    k = int(np.argmin(apart))
    return float(slopes[k + 1]), float(apart[k])
