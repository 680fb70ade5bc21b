"""Check of a gradient of a rollout against finite differences of the rollout."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from lissom.dynamics.assembly import assemble
from lissom.dynamics.configuration import integrate
from lissom.errors import ShapeError
from lissom.gradients.design_changes import changed_model
from lissom.gradients.propagation import Gradient
from lissom.gradients.rollout import Rollout, rolled
from lissom.model.model import Model
from lissom.robot import checks, formatting

_LEAST = 1e-3  # of the largest derivative: smaller ones count as zero
_STEPS = 10.0 ** -np.arange(2.0, 5.5, 0.5)  # of a direction of natural size


@final
@formatting.in_one_line
@dataclass(frozen=True)
class GradientCheck:
    """Derivatives of a loss along one random direction of each argument: "q0", "v0", "u" and paths of design values.

    Fields:
        exact: from the gradient. differenced: from differences of fourth order.
        uncertainty: difference between the two best estimates by differences, divided by the size of the gradient by
        that argument, or by a thousandth of the largest of these sizes if that is more. It is large if the motion is
        chaotic or has kinks. error: |exact − differenced|, divided by the same size.
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
    """Compare a gradient of a loss with differences of the loss along random directions.

    Args:
        motion: a single rollout. loss: function of a rollout that returns a number. gradient: of the loss, the result
            of `motion.backward`. seed: of the random directions.
    Returns:
        GradientCheck of the loss [per natural size of coordinates, and per size of inputs and of design values]. Each
        derivative is differenced with seven step sizes. The two neighbouring results that agree best are used, so that
        the choice does not depend on the gradient.
    Raises:
        ShapeError: the motion is a batch. ConvergenceError: Newton's method finds no step of a changed motion.
    Accuracy: about 1e-9 if the motion is smooth. Cost: 28 rollouts for each argument.
    """
    model = motion.model
    if motion.lead or not isinstance(model, Model):
        raise ShapeError(f"motion: expected a single rollout, got a batch of shape {motion.lead}")
    checks.integer(seed, "seed", least=0)
    rng = np.random.default_rng(seed)
    q0, v0, scale = motion.path.q[0, 0], motion.path.v[0, 0], model.dofs.scale
    onto = motion.start_derivatives.onto_q[0]

    def loss_of(own: Model, q: np.ndarray, v: np.ndarray, u: np.ndarray) -> float:
        q = assemble(own, q) if own.n_rows else q
        return float(loss(rolled(own, q, v, u, motion.stepping, every=motion.every)))

    directions: dict[str, tuple[float, float, Callable[[float], float]]] = {}
    dq, dv = onto @ (rng.normal(size=model.nv) * scale), rng.normal(size=model.nv) * scale
    size_u = float(np.abs(motion.u).max(initial=0.0)) or 1.0
    du = size_u * rng.normal(size=motion.u.shape)
    norms = [float(np.linalg.norm(x)) for x in (gradient.q0 * scale, gradient.v0 * scale, gradient.u * size_u)]
    exact = [float(np.sum(slope * way)) for slope, way in ((gradient.q0, dq), (gradient.v0, dv), (gradient.u, du))]
    directions["q0"] = exact[0], norms[0], lambda x: loss_of(model, integrate(model, q0, x * dq), v0, motion.u)
    directions["v0"] = exact[1], norms[1], lambda x: loss_of(model, q0, v0 + x * dv, motion.u)
    directions["u"] = exact[2], norms[2], lambda x: loss_of(model, q0, v0, motion.u + x * du)
    for path, slope in gradient.parameters.items():
        size = changed_model(model, path, np.zeros(slope.shape))[1]
        direction = size * rng.normal(size=slope.shape)

        def redesigned(x: float, path: str = path, direction: np.ndarray = direction) -> float:
            return loss_of(changed_model(model, path, x * direction)[0], q0, v0, motion.u)

        directions[path] = float(np.sum(slope * direction)), float(size * np.linalg.norm(slope)), redesigned
    found = {name: _differenced(f) for name, (_, _, f) in directions.items()}
    sizes = {name: max(abs(exact), norm, 1e-300) for name, (exact, norm, _) in directions.items()}
    units = {name: max(size, _LEAST * max(sizes.values())) for name, size in sizes.items()}
    return GradientCheck(
        {name: x[0] for name, x in directions.items()},
        {name: x[0] for name, x in found.items()},
        {name: x[1] / units[name] for name, x in found.items()},
        {name: abs(directions[name][0] - x[0]) / units[name] for name, x in found.items()},
    )


def _differenced(f: Callable[[float], float]) -> tuple[float, float]:
    """The derivative of f at 0, and the difference between the two best estimates."""
    slopes = np.array([(8.0 * (f(h) - f(-h)) - f(2.0 * h) + f(-2.0 * h)) / (12.0 * h) for h in _STEPS])
    apart = np.abs(np.diff(slopes))
    k = int(np.argmin(apart))
    return float(slopes[k + 1]), float(apart[k])
