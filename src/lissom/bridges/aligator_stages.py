"""Models as `stage`s of aligator problems: steps of an implicit scheme with exact derivatives.

States of aligator are elements of products of its manifolds, with the conventions of Pinocchio: in a free joint the
position comes before the quaternion; the real part of a quaternion comes last; in an increment the translation comes
before the rotation. Everything else is as in `integrate`. So states and derivatives are those of this library in
another order:

    x_a = x[o],   δx_a = δx[w],   A_a = A[w][:, w],   B_a = B[w],   ∂l/∂x_a = (∂l/∂x)[w]                      (1)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, final

import numpy as np

from lissom.bridges.shooting_nodes import Node, shooting_node, shooting_start
from lissom.control.model_predictive import TrackingCost
from lissom.dynamics.configuration import quaternion_joints
from lissom.errors import ModelError, renamed
from lissom.model.model import Model
from lissom.robot import checks
from lissom.stepping.schemes import Scheme

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def order(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Orders in which aligator stores the entries of states and of increments: indices in (q, v) and in (δq, δv).

    For (q, v) as one array x, x[order] is the state of aligator. For states xs of aligator, one per row, xs[:,
    np.argsort(order)] is (q, v). Both orders are 0, 1, 2, … for robots without quaternions.

    Returns:
        order of states, shape (nq + nv,), and order of increments, shape (2 nv,): integers [-].
    """
    order, increments = np.arange(model.nq + model.nv), np.arange(2 * model.nv)
    for i, j, free in quaternion_joints(model):
        if free:
            order[i : i + 7] = i + np.array([4, 5, 6, 1, 2, 3, 0])
            increments[j : j + 6] = j + np.array([3, 4, 5, 0, 1, 2])
        else:
            order[i : i + 4] = i + np.array([1, 2, 3, 0])
    return order, increments


def state(model: Model) -> Any:
    """The state manifold of a robot for aligator, in the order of `aligator.order`.

    Returns:
        aligator.manifolds.VectorSpace; for robots with quaternions a CartesianProduct of it with SE3 and SO3 [rad, m,
        strain units, and per s]. Its nx is nq + nv, and its ndx is 2 nv.
    Raises:
        ModelError: aligator is not installed; or it was built without Pinocchio and the robot has quaternions.
    """
    turned, spaces = sorted(quaternion_joints(model)), _aligator().manifolds
    if not turned:
        return spaces.VectorSpace(2 * model.nv)
    if not hasattr(spaces, "SE3"):
        raise ModelError("robots with free or spherical joints need an aligator that was built with Pinocchio")
    product, at = spaces.CartesianProduct(), 0
    for i, _, free in turned:
        if i > at:
            product.addComponent(spaces.VectorSpace(i - at))
        product.addComponent(spaces.SE3() if free else spaces.SO3())
        at = i + (7 if free else 4)
    product.addComponent(spaces.VectorSpace(model.nq + model.nv - at))
    return product


@renamed(scheme="method")
def stage(
    model: Model,
    cost: Any,
    *,
    dt: float,
    t: float = 0.0,
    method: str | Scheme = "sdirk",
    limits: tuple[ArrayLike, ArrayLike] | None = None,
    tolerance: float = 1e-11,
) -> Any:
    """A time step of a robot as a stage of aligator, with exact derivatives, states on the manifold, and input limits.

    Args:
        cost: a TrackingCost, whose l is multiplied by dt; or an aligator.CostAbstract on `aligator.state(model)`,
            without a factor.
        dt: step size [s].
        t: time at which the references of the cost are evaluated [s]. Loads and motions have their values at time 0.
        method, tolerance: as in `step_derivatives`. "sdirk" (second order) and "implicit_euler" (first order) depend on
            (q, v) only. Other methods start with the acceleration at (q, v).
        limits: (low, high) of the inputs, numbers or shape (nu,). They are the first constraint of the stage. None: no
            limits.
    Returns:
        aligator.StageModel. If the step fails, the velocities at its end are infinite, which a line search rejects.
    Raises:
        ModelError: aligator is not installed, or an argument is invalid.
        ShapeError: an argument has a wrong shape.
    Accuracy: first derivatives of the step are exact, its second derivatives are omitted. Second derivatives of the
    cost are Gauss-Newton approximations. Cost: one or two Newton iterations per call.
    """
    nu, al = model.nu, _aligator()
    node = _node(al, model, cost, dt=dt, t=t, method=method, limits=limits, tolerance=tolerance)
    stage = al.StageModel(_cost(al, node, end=False), _dynamics(al, node))
    if node.bounds is not None:
        inputs = al.ControlErrorResidual(2 * model.nv, np.zeros(nu))
        stage.addConstraint(inputs, al.constraints.BoxConstraint(*node.bounds))
    return stage


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
    """Optimal control problem from a given start, for the solvers of aligator.

    Args:
        cost: as in `stage`. At the end a TrackingCost is multiplied by its `end`. A cost of aligator is the same at the
            end as in the stages, with zero inputs.
        q0: start, shape (nq,) [rad, m, or strain units]; None is `start_configuration`.
        v0: start velocity, shape (nv,) [unit of q per s]; None is rest.
        dt: step size [s].
        steps: number of steps.
        t: time at the start [s].
        method, limits, tolerance: as in `stage`.
    Returns:
        aligator.TrajOptProblem with one stage for each step. Further constraints can be added to it.
    Raises:
        ModelError, ShapeError: as in `stage`.
    """
    x0, al = shooting_start(model, q0, v0), _aligator()
    checks.integer(steps, "steps", least=1)
    options: dict[str, Any] = {"method": method, "limits": limits, "tolerance": tolerance}
    last = _node(al, model, cost, dt=dt, t=t + steps * dt, **options)
    if isinstance(cost, TrackingCost):
        stages = [stage(model, cost, dt=dt, t=t + k * dt, **options) for k in range(steps)]
    else:
        stages = [stage(model, cost, dt=dt, t=t, **options)] * steps
    return al.TrajOptProblem(x0[order(model)[0]], stages, _cost(al, last, end=True))


def _aligator() -> Any:
    try:
        al: Any = import_module("aligator")
    except ImportError:
        al = None
    if not hasattr(al, "TrajOptProblem"):  # on PyPI another package has this name
        raise ModelError("stages need aligator, the solver: conda install -c conda-forge aligator")
    return al


def _node(al: Any, model: Model, cost: Any, **options: Any) -> Node:
    """A node from checked arguments."""
    return shooting_node(model, cost, (al.CostAbstract, "an aligator.CostAbstract"), **options)


def _fill(place: np.ndarray, matrix: np.ndarray) -> None:
    """Write a matrix into an array of aligator, which is a vector if there is one column."""
    place[...] = matrix.reshape(place.shape)


def _dynamics(al: Any, node: Node) -> Any:
    """The dynamics model of a node. Aligator copies it by calling its class without arguments."""
    model = node.model
    places, increments = order(model)
    back = np.argsort(places)

    @final
    class Dynamics(al.dynamics.ExplicitDynamicsModel):
        def __init__(self) -> None:
            super().__init__(state(model), model.nu)

        def forward(self, x: np.ndarray, u: np.ndarray, data: Any) -> None:
            data.xnext[:] = node.step(x[back], u)[places]

        def dForward(self, x: np.ndarray, u: np.ndarray, data: Any) -> None:
            A, B = node.slopes(x[back], u)
            _fill(data.Jx, A[np.ix_(increments, increments)])
            _fill(data.Ju, B[increments])

    return Dynamics()


def _cost(al: Any, node: Node, *, end: bool) -> Any:
    """The cost model of a node; with `end` of the end of the problem."""
    if not isinstance(node.cost, TrackingCost):
        return node.cost
    model = node.model
    places, increments = order(model)
    back = np.argsort(places)

    @final
    class Cost(al.CostAbstract):
        def __init__(self) -> None:
            super().__init__(state(model), model.nu)

        def evaluate(self, x: np.ndarray, u: np.ndarray, data: Any) -> None:
            r = node.residual(x[back], None if end else u)
            data.value = 0.5 * float(r @ r)

        def computeGradients(self, x: np.ndarray, u: np.ndarray, data: Any) -> None:
            by_x, by_u = node.gradient(x[back], None if end else u)
            data.Lx[:], data.Lu[:] = by_x[increments], by_u

        def computeHessians(self, x: np.ndarray, u: np.ndarray, data: Any) -> None:
            by_x, by_u = node.hessian(x[back], None if end else u)
            _fill(data.Lxx, by_x[np.ix_(increments, increments)])
            _fill(data.Luu, by_u)

    return Cost()
