"""Models as action models of Crocoddyl: steps of an implicit scheme with their exact derivatives.

A state is x = (q, v), its changes are tangent increments (δq, δv), δq by `integrate`, with

    ∂(q₁ ⊖ q₀)/∂q₀ = −T(−Δ)⁻¹,   ∂(q₁ ⊖ q₀)/∂q₁ = T(Δ)⁻¹,   Δ = q₁ ⊖ q₀                                    (1)
    ∂(q ⊕ Δ)/∂q = Ad(exp Δ)⁻¹,   ∂(q ⊕ Δ)/∂Δ = T(Δ)                                                        (2)

in the coordinates of stored poses, and ones in all others. Crocoddyl calls these classes from C++, where an error of
Python ends the program: a step that Newton's method does not find is one to infinity, which a line search rejects.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from lissom.control.tracking_cost import References, TrackingCost
from lissom.dynamics.configuration import checked_configuration, difference, groups, integrate, unit_quaternions
from lissom.errors import ConvergenceError, ModelError
from lissom.gradients.one_step import step_derivatives
from lissom.gradients.rollout import rollout
from lissom.gradients.stage_states import over_groups, six
from lissom.integration.schemes import Scheme
from lissom.launch.workspace import stack
from lissom.lie.arrays import se3_Ad, se3_exp
from lissom.model.model import Model
from lissom.robot import checks


def crocoddyl_state(model: Model) -> Any:
    """States (q, v) of a robot for Crocoddyl, on their manifold.

    Returns:
        crocoddyl.StateAbstract, with nx = nq + nv and ndx = 2 nv; a crocoddyl.StateVector where no quaternion is stored
        [rad, m, strain units, and per s].
    Raises:
        ModelError: Crocoddyl is missing.
    """
    croc = _crocoddyl()
    return _state(croc, model) if groups(model) else croc.StateVector(2 * model.nv)


def crocoddyl_action(
    model: Model,
    cost: Any,
    *,
    dt: float,
    t: float = 0.0,
    scheme: str | Scheme = "implicit_euler",
    limits: Any = None,
    tolerance: float = 1e-11,
) -> Any:
    """A step of a robot as an action model of Crocoddyl, with exact derivatives, states on the manifold and limits.

    Args:
        cost: a TrackingCost, whose l counts for dt, or at the end for its `end`; or a crocoddyl.CostModelSum, made with
            `crocoddyl_state(model)`, taken as it is at each node.
        dt: size of the step [s]. t: time that references of the cost are asked for [s]; the robot is taken at t = 0.
        scheme, tolerance: as of `step_derivatives`; all but "implicit_euler" begin with the acceleration at (q, v).
        limits: (low, high) of the inputs, numbers or shape (nu,); None: no limits.
    Returns:
        crocoddyl.ActionModelAbstract. As a terminal model it has the cost alone. A step that is not found is one to
        infinity.
    Raises:
        ModelError: Crocoddyl is missing, or an argument breaks its rule. ShapeError: the argument and its shapes.
    Accuracy: exact derivatives of the step; second ones of the cost by Gauss and Newton. Cost: one to two steps of
        Newton's method in each call.
    """
    croc, nu = _crocoddyl(), model.nu
    checks.number(dt, "dt", above=0.0)
    checks.number(t, "t")
    if not isinstance(cost, TrackingCost | croc.CostModelSum):
        raise ModelError(f"cost: must be an ls.TrackingCost or a crocoddyl.CostModelSum (got {cost!r})")
    bounds = None if limits is None else checks.limits(limits, nu)
    options = {"dt": dt, "scheme": scheme, "tolerance": tolerance}
    rollout(model, dt=dt, steps=1, scheme=scheme).forbid_anchors()  # says what is wrong with the robot and the scheme
    if isinstance(cost, TrackingCost):
        return _action(croc, _Node(model, cost, cost.references(np.array([float(t)])), options, bounds))
    return _action_of_crocoddyl_s_costs(croc, _Node(model, cost, None, options, bounds))


def crocoddyl_problem(
    model: Model, cost: Any, q0: Any = None, v0: Any = None, *, dt: float, steps: int, t: float = 0.0, **options: Any
) -> Any:
    """The best motion from a start as a problem of Crocoddyl, for its solvers.

    Args:
        cost: as of crocoddyl_action. q0: start, shape (nq,); None is neutral. v0: velocity, shape (nv,); None is rest.
        dt: size of the steps [s]. steps: how many. t: time at the start [s]. options: further ones of crocoddyl_action.
    Returns:
        crocoddyl.ShootingProblem of so many actions and a terminal one.
    Raises:
        ModelError, ShapeError: as crocoddyl_action.
    """
    q = model.neutral() if q0 is None else checked_configuration(model, "q0", q0)
    checks.integer(steps, "steps", least=1)
    v = np.zeros(model.nv) if v0 is None else stack("v0", v0, model.nv)
    if isinstance(cost, TrackingCost):
        actions = [crocoddyl_action(model, cost, dt=dt, t=t + k * dt, **options) for k in range(steps + 1)]
    else:
        actions = [crocoddyl_action(model, cost, dt=dt, t=t, **options)] * (steps + 1)
    return _crocoddyl().ShootingProblem(np.concatenate([q, v]), actions[:-1], actions[-1])


def _crocoddyl() -> Any:
    try:
        import crocoddyl
    except ImportError:
        raise ModelError("action models need Crocoddyl: pip install 'lissom[crocoddyl]'") from None
    return crocoddyl


def _turns(model: Model, move: np.ndarray, *, invert: bool) -> np.ndarray:
    """T(Δ) or T(Δ)⁻¹ of (1) and (2) over all coordinates of (δq, δv)."""
    n = model.nv
    out = np.eye(2 * n)
    out[:n, :n] = over_groups(model, move[:n], np.eye(n), invert=invert).T
    return out


def _carried(model: Model, move: np.ndarray) -> np.ndarray:
    """Ad(exp Δ)⁻¹ of (2)."""
    out = np.eye(2 * model.nv)
    for _, j, free in groups(model):
        many = 6 if free else 3
        own = slice(j, j + many)
        out[own, own] = se3_Ad(se3_exp(-six(move[own])))[:many, :many]
    return out


def _state(croc: Any, model: Model) -> Any:
    """The states of a robot that stores poses."""
    nq, nv, both, first = model.nq, model.nv, croc.Jcomponent.both, croc.Jcomponent.first

    @final
    class State(croc.StateAbstract):
        def __init__(self) -> None:
            super().__init__(nq + nv, 2 * nv)

        def zero(self) -> np.ndarray:
            return np.concatenate([model.neutral(), np.zeros(nv)])

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


@final
@dataclass(frozen=True)
class _Node:
    """What an action model computes: a step, and its cost where that is a TrackingCost.

    Fields:
        model, cost, bounds: of crocoddyl_action. to: references at its time. options: of its step.
    """

    model: Model
    cost: Any
    to: References | None
    options: dict[str, Any]
    bounds: tuple[np.ndarray, np.ndarray] | None

    def state(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """q and v."""
        return unit_quaternions(self.model, x[: self.model.nq]), x[self.model.nq :]

    def step(self, x: np.ndarray, u: np.ndarray) -> np.ndarray:
        """x at the end of the step, infinite where none is found."""
        try:
            end = rollout(self.model, *self.state(x), u[None], steps=1, **self.options)
        except ConvergenceError:
            return np.full(len(x), np.inf)
        return np.concatenate([end.q[1], end.v[1]])

    def slopes(self, x: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A and B of the step."""
        step = step_derivatives(self.model, *self.state(x), u, **self.options)
        return step.A, step.B

    def residual(self, x: np.ndarray, u: np.ndarray | None) -> np.ndarray:
        """r of (3) of tracking_cost."""
        q, v = self.state(x)
        away = self.cost.residuals(self.to, q[None], v[None])[0]
        effort = np.zeros(self.model.nu) if u is None else self.cost.of_inputs(u)
        return np.sqrt(self.worth(u)) * np.concatenate([away, effort])

    def residual_slopes(self, x: np.ndarray, u: np.ndarray | None) -> np.ndarray:
        """∂r/∂x but for the inputs."""
        return np.sqrt(self.worth(u)) * self.cost.slopes(self.to, self.state(x)[0][None])[0]

    def worth(self, u: np.ndarray | None) -> float:
        """h, or T at the end."""
        return self.cost.end if u is None else self.options["dt"]


def _action(croc: Any, node: _Node) -> Any:
    """The action model of a node with a TrackingCost."""
    cost, nu = node.cost, node.model.nu

    @final
    class Action(croc.ActionModelAbstract):
        def __init__(self) -> None:
            super().__init__(crocoddyl_state(node.model), nu, cost.count + nu)
            if node.bounds is not None:
                self.u_lb, self.u_ub = node.bounds

        def calc(self, data: Any, x: np.ndarray, u: np.ndarray | None = None) -> None:
            if u is not None:
                data.xnext = node.step(x, u)
            data.r = node.residual(x, u)
            data.cost = 0.5 * float(data.r @ data.r)

        def calcDiff(self, data: Any, x: np.ndarray, u: np.ndarray | None = None) -> None:
            slope, r = node.residual_slopes(x, u), node.residual(x, u)
            data.Lx, data.Lxx = slope.T @ r[: cost.count], slope.T @ slope
            if u is not None:
                C = np.sqrt(node.worth(u)) * cost.input_root
                data.Fx, data.Fu = node.slopes(x, u)
                data.Lu, data.Luu = C @ r[cost.count :], C @ C.T

    return Action()


def _action_of_crocoddyl_s_costs(croc: Any, node: _Node) -> Any:
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
