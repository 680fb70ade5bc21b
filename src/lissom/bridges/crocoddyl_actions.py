"""Models as `action` models of Crocoddyl: steps of an implicit scheme with exact derivatives.

A state is x = (q, v), with tangent increments (δq, δv) and δq as in `integrate`. For spherical and free joints

    ∂(q₁ ⊖ q₀)/∂q₀ = −T(−Δ)⁻¹,   ∂(q₁ ⊖ q₀)/∂q₁ = T(Δ)⁻¹,   Δ = q₁ ⊖ q₀                                    (1)
    ∂(q ⊕ Δ)/∂q = Ad(exp Δ)⁻¹,   ∂(q ⊕ Δ)/∂Δ = T(Δ)                                                        (2)

For all other coordinates these derivatives are identities.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import numpy as np

from lissom.bridges.shooting_nodes import Node, shooting_node, shooting_start
from lissom.control.model_predictive import TrackingCost
from lissom.dynamics.configuration import (
    apply_tangent_operator,
    difference,
    free_increment,
    integrate,
    quaternion_joints,
)
from lissom.dynamics.start import start_configuration
from lissom.errors import ModelError, renamed
from lissom.lie.arrays import se3_Ad, se3_exp
from lissom.model.model import Model
from lissom.robot import checks
from lissom.stepping.schemes import Scheme

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def state(model: Model) -> Any:
    """The state manifold (q, v) of a robot for Crocoddyl.

    Returns:
        crocoddyl.StateAbstract with nx = nq + nv and ndx = 2 nv; for robots without quaternions a crocoddyl.StateVector
        [rad, m, strain units, and per s].
    Raises:
        ModelError: Crocoddyl is not installed.
    """
    croc = _crocoddyl()
    return _state(croc, model) if quaternion_joints(model) else croc.StateVector(2 * model.nv)


@renamed(scheme="method")
def action(
    model: Model,
    cost: Any,
    *,
    dt: float,
    t: float = 0.0,
    method: str | Scheme = "sdirk",
    limits: tuple[ArrayLike, ArrayLike] | None = None,
    tolerance: float = 1e-11,
) -> Any:
    """A time step of a robot as an action model of Crocoddyl, with exact derivatives, states on the manifold, and input
    limits.

    Args:
        cost: a TrackingCost, whose l is multiplied by dt, or at the end by its `end`; or a crocoddyl.CostModelSum on
            `crocoddyl.state(model)`, without a factor.
        dt: step size [s].
        t: time at which the references of the cost are evaluated [s]. Loads and motions have their values at time 0.
        method, tolerance: as in `step_derivatives`. "sdirk" (second order) and "implicit_euler" (first order) depend on
            (q, v) only. Other methods start with the acceleration at (q, v).
        limits: (low, high) of the inputs, numbers or shape (nu,); None: no limits.
    Returns:
        crocoddyl.ActionModelAbstract. As a terminal model it evaluates the cost only. If the step fails, the velocities
        at its end are infinite.
    Raises:
        ModelError: Crocoddyl is not installed, or an argument is invalid.
        ShapeError: an argument has a wrong shape.
    Accuracy: derivatives of the step are exact. Second derivatives of the cost are Gauss-Newton approximations. Cost:
    one or two Newton iterations per call.
    """
    croc = _crocoddyl()
    other = croc.CostModelSum, "a crocoddyl.CostModelSum"
    node = shooting_node(model, cost, other, dt=dt, t=t, method=method, limits=limits, tolerance=tolerance)
    return _action(croc, node) if isinstance(cost, TrackingCost) else _action_of_crocoddyl_s_costs(croc, node)


@renamed(scheme="method")
def problem(
    model: Model,
    cost: Any,
    q0: ArrayLike | None = None,
    v0: ArrayLike | None = None,
    *,
    dt: float,
    steps: int,
    t: float = 0.0,
    method: str | Scheme = "sdirk",
    limits: tuple[ArrayLike, ArrayLike] | None = None,
    tolerance: float = 1e-11,
) -> Any:
    """Optimal control problem from a given start, for the solvers of Crocoddyl.

    Args:
        cost: as in `action`.
        q0: start, shape (nq,) [rad, m, or strain units]; None is `start_configuration`.
        v0: start velocity, shape (nv,) [unit of q per s]; None is rest.
        dt: step size [s].
        steps: number of steps.
        t: time at the start [s].
        method, limits, tolerance: as in `action`.
    Returns:
        crocoddyl.ShootingProblem with one action for each step and a terminal action.
    Raises:
        ModelError, ShapeError: as in `action`.
    """
    x0 = shooting_start(model, q0, v0)
    checks.integer(steps, "steps", least=1)
    options: dict[str, Any] = {"method": method, "limits": limits, "tolerance": tolerance}
    if isinstance(cost, TrackingCost):
        actions = [action(model, cost, dt=dt, t=t + k * dt, **options) for k in range(steps + 1)]
    else:
        actions = [action(model, cost, dt=dt, t=t, **options)] * (steps + 1)
    return _crocoddyl().ShootingProblem(x0, actions[:-1], actions[-1])


def _crocoddyl() -> Any:
    try:
        import crocoddyl
    except ImportError:
        raise ModelError("action models need Crocoddyl: pip install 'lissom[crocoddyl]'") from None
    return crocoddyl


def _turns(model: Model, move: np.ndarray, *, invert: bool) -> np.ndarray:
    """T(Δ) or T(Δ)⁻¹ of (1) and (2) for all coordinates (δq, δv), shape (2 nv, 2 nv)."""
    n = model.nv
    out = np.eye(2 * n)
    out[:n, :n] = apply_tangent_operator(model, move[:n], np.eye(n), invert=invert).T
    return out


def _carried(model: Model, move: np.ndarray) -> np.ndarray:
    """Ad(exp Δ)⁻¹ of (2) for all coordinates (δq, δv), shape (2 nv, 2 nv)."""
    out = np.eye(2 * model.nv)
    for _, j, free in quaternion_joints(model):
        size = 6 if free else 3
        own = slice(j, j + size)
        out[own, own] = se3_Ad(se3_exp(-free_increment(move[own])))[:size, :size]
    return out


def _state(croc: Any, model: Model) -> Any:
    """The state model of a robot with spherical or free joints."""
    nq, nv, both, first = model.nq, model.nv, croc.Jcomponent.both, croc.Jcomponent.first

    @final
    class State(croc.StateAbstract):
        def __init__(self) -> None:
            super().__init__(nq + nv, 2 * nv)

        def zero(self) -> np.ndarray:
            return np.concatenate([start_configuration(model), np.zeros(nv)])

        def rand(self) -> np.ndarray:
            return self.integrate(self.zero(), np.random.uniform(-1.0, 1.0, 2 * nv))  # noqa: NPY002  Crocoddyl's seed

        def diff(self, x0: np.ndarray, x1: np.ndarray) -> np.ndarray:
            return np.concatenate([difference(model, x0[:nq], x1[:nq]), x1[nq:] - x0[nq:]])

        def integrate(self, x: np.ndarray, dx: np.ndarray) -> np.ndarray:
            return np.concatenate([integrate(model, x[:nq], dx[:nv]), x[nq:] + dx[nv:]])

        def Jdiff(self, x0: np.ndarray, x1: np.ndarray, firstsecond: Any = both) -> Any:
            move = self.diff(x0, x1)
            parts = -_turns(model, -move, invert=True), _turns(model, move, invert=True)  # (1)
            return list(parts) if firstsecond == both else parts[firstsecond != first]

        def Jintegrate(self, x: np.ndarray, dx: np.ndarray, firstsecond: Any = both) -> Any:
            parts = _carried(model, dx), _turns(model, dx, invert=False)  # (2)
            return list(parts) if firstsecond == both else parts[firstsecond != first]

        def JintegrateTransport(self, x: np.ndarray, dx: np.ndarray, Jin: np.ndarray, firstsecond: Any) -> Any:
            return self.Jintegrate(x, dx, firstsecond) @ Jin

    return State()


def _action(croc: Any, node: Node) -> Any:
    """The action model of a node with a TrackingCost."""
    cost, nu = node.cost, node.model.nu

    @final
    class Action(croc.ActionModelAbstract):
        def __init__(self) -> None:
            super().__init__(state(node.model), nu, cost.count + nu)
            if node.bounds is not None:
                self.u_lb, self.u_ub = node.bounds

        def calc(self, data: Any, x: np.ndarray, u: np.ndarray | None = None) -> None:
            if u is not None:
                data.xnext = node.step(x, u)
            data.r = node.residual(x, u)
            data.cost = 0.5 * float(data.r @ data.r)

        def calcDiff(self, data: Any, x: np.ndarray, u: np.ndarray | None = None) -> None:
            (data.Lx, data.Lu), (data.Lxx, data.Luu) = node.gradient(x, u), node.hessian(x, u)
            if u is not None:
                data.Fx, data.Fu = node.slopes(x, u)

    return Action()


def _action_of_crocoddyl_s_costs(croc: Any, node: Node) -> Any:
    """The action model of a node whose cost is a CostModelSum."""
    cost = node.cost

    @final
    class Data(croc.ActionDataAbstract):
        def __init__(self, action: Any) -> None:
            super().__init__(action)
            self.collector = croc.DataCollectorAbstract()
            self.costs = cost.createData(self.collector)
            self.costs.shareMemory(self)

    @final
    class Action(croc.ActionModelAbstract):
        def __init__(self) -> None:
            super().__init__(cost.state, node.model.nu, cost.nr)
            if node.bounds is not None:
                self.u_lb, self.u_ub = node.bounds

        def createData(self) -> Any:
            return Data(self)

        def calc(self, data: Any, x: np.ndarray, u: np.ndarray | None = None) -> None:
            if u is not None:
                data.xnext = node.step(x, u)
            cost.calc(data.costs, *((x,) if u is None else (x, u)))
            data.cost = data.costs.cost

        def calcDiff(self, data: Any, x: np.ndarray, u: np.ndarray | None = None) -> None:
            if u is not None:
                data.Fx, data.Fu = node.slopes(x, u)
            cost.calcDiff(data.costs, *((x,) if u is None else (x, u)))

    return Action()
