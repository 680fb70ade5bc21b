"""Nodes of optimal control problems for external solvers: a time step, its cost, and the derivatives of both.

The solvers call from C++, where a Python exception ends the program, and they try infeasible states and inputs. If
Newton's method fails, the step returns infinite velocities. A state that cannot be computed, for instance of a rod that
is bent too far, has an infinite cost. A line search rejects both. The derivatives are zero there, because some solvers
factor matrices before they check them for NaN.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from lissom.control.model_predictive import References, TrackingCost
from lissom.dynamics.actuation import pushing_without_warning
from lissom.dynamics.configuration import checked_configuration, unit_quaternions
from lissom.dynamics.start import default_start
from lissom.errors import ConvergenceError, ModelError, ShapeError
from lissom.gradients.rollout import rollout, step_derivatives
from lissom.gradients.starts import forbid_anchors
from lissom.launch.workspace import stack
from lissom.model.model import Model
from lissom.model.model_batch import ModelBatch
from lissom.robot import checks
from lissom.stepping.schemes import Scheme

LOST = ConvergenceError, ShapeError  # errors of states that cannot be computed; ShapeError: a rod is bent too far


@final
@dataclass(frozen=True)
class Node:
    """A time step of a robot with its derivatives, and its cost if this is a TrackingCost. x is the state (q, v), shape
    (nq + nv,).

    Fields:
        model: model of the robot.
        cost: a TrackingCost, or a cost of the solver's class.
        to: references at the time of the node.
        options: options of the step.
        bounds: (low, high) of the inputs.
    """

    model: Model
    cost: Any
    to: References | None
    options: dict[str, Any]
    bounds: tuple[np.ndarray, np.ndarray] | None

    def state(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """q and v of x, with normalised quaternions."""
        return unit_quaternions(self.model, x[: self.model.nq]), x[self.model.nq :]

    def step(self, x: np.ndarray, u: np.ndarray) -> np.ndarray:
        """x at the end of the step. Its velocities are infinite if the step fails."""
        q, v = self.state(x)
        try:
            with pushing_without_warning(self.model):
                end = rollout(self.model, q, v, u[None], steps=1, **self.options)
        except LOST:
            return np.concatenate([q, np.full(len(v), np.inf)])
        return np.concatenate([end.q[1], end.v[1]])

    def slopes(self, x: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A (2 nv, 2 nv) and B (2 nv, nu) of the step."""
        try:
            with pushing_without_warning(self.model):
                step = step_derivatives(self.model, *self.state(x), u, **self.options)
        except LOST:
            n = 2 * self.model.nv
            return np.zeros((n, n)), np.zeros((n, self.model.nu))
        return step.A, step.B

    def residual(self, x: np.ndarray, u: np.ndarray | None) -> np.ndarray:
        """r of (8) in model_predictive; the entries of the inputs come last."""
        q, v = self.state(x)
        root, effort = np.sqrt(self.worth(u)), np.zeros(self.model.nu) if u is None else self.cost.of_inputs(u)
        try:
            away = root * self.cost.residuals(self.to, q[None], v[None])[0]
        except LOST:
            away = np.full(self.cost.count, np.inf)
        return np.concatenate([away, root * effort])

    def gradient(self, x: np.ndarray, u: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Gradients of ½ |r|² with respect to x and u."""
        r, count = self.residual(x, u), self.cost.count
        r[np.isinf(r)] = 0.0
        return self.residual_slopes(x, u).T @ r[:count], self.input_slopes(u) @ r[count:]

    def hessian(self, x: np.ndarray, u: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Gauss-Newton approximations of the Hessians of ½ |r|² with respect to x and u."""
        slope, C = self.residual_slopes(x, u), self.input_slopes(u)
        return slope.T @ slope, C @ C.T

    def residual_slopes(self, x: np.ndarray, u: np.ndarray | None) -> np.ndarray:
        """∂r/∂x without the rows of the inputs, which are zero."""
        try:
            return np.sqrt(self.worth(u)) * self.cost.slopes(self.to, self.state(x)[0][None])[0]
        except LOST:
            return np.zeros((self.cost.count, 2 * self.model.nv))

    def input_slopes(self, u: np.ndarray | None) -> np.ndarray:
        """Transpose of ∂r/∂u, for the rows of the inputs."""
        return (0.0 if u is None else np.sqrt(self.worth(u))) * self.cost.input_root

    def worth(self, u: np.ndarray | None) -> float:
        """Weight of the cost [s]: the step size h; at the end of the problem (u is None) the weight `end` of the
        cost."""
        return self.cost.end if u is None else self.options["dt"]


def shooting_node(
    model: Model,
    cost: Any,
    other: tuple[Any, str],
    *,
    dt: float,
    t: float = 0.0,
    method: str | Scheme = "sdirk",
    limits: Any = None,
    tolerance: float = 1e-11,
) -> Node:
    """A node from checked arguments. `other` holds the class of the solver's costs and its name in messages."""
    if isinstance(model, ModelBatch):
        raise ModelError("model: must be one Model for problems of optimal control (got a ModelBatch)")
    nu = model.nu
    checks.number(dt, "dt", above=0.0)
    checks.number(t, "t")
    if not isinstance(cost, TrackingCost | other[0]):
        raise ModelError(f"cost: must be an ls.TrackingCost or {other[1]} (got {cost!r})")
    bounds = None if limits is None else checks.limits(limits, nu)
    options = {"dt": dt, "method": method, "tolerance": tolerance}
    forbid_anchors(model)
    rollout(model, dt=dt, steps=1, method=method)  # raises the errors of the robot and the scheme
    to = cost.references(np.array([float(t)])) if isinstance(cost, TrackingCost) else None
    return Node(model, cost, to, options, bounds)


def shooting_start(model: Model, q0: Any, v0: Any) -> np.ndarray:
    """x at the start of a problem. The defaults are `start_configuration` and rest."""
    q = default_start(model) if q0 is None else checked_configuration(model, "q0", q0)
    return np.concatenate([q, np.zeros(model.nv) if v0 is None else stack("v0", v0, model.nv)])
