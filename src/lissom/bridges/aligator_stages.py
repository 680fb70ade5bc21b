"""Models as `stage`s of problems of aligator: steps of an implicit scheme with their exact derivatives.

Aligator's states lie on products of its own spaces, whose groups are those of Pinocchio: the place of a free joint
comes before its quaternion, the real part of a quaternion last, and in an increment the shift before the turn. All else
is as in `integrate`, so that states and derivatives are the library's in another order:

    x_a = x[o],   δx_a = δx[w],   A_a = A[w][:, w],   B_a = B[w],   ∂l/∂x_a = (∂l/∂x)[w]                      (1)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, final

import numpy as np

from lissom.bridges.shooting_nodes import Node, shooting_node, shooting_start
from lissom.control.tracking_cost import TrackingCost
from lissom.dynamics.configuration import groups
from lissom.errors import ModelError, renamed
from lissom.model.model import Model
from lissom.robot import checks
from lissom.stepping.schemes import Scheme

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def order(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Where the entries of states of aligator stand in (q, v), and those of their increments in (δq, δv).

    For (q, v) as one array x, x[order] is the state of aligator; for many of these, xs[:, np.argsort(order)] is (q, v).
    Both orders are 0, 1, 2, … where no quaternion is stored.

    Returns:
        order, shape (nq + nv,), and that of increments, shape (2 nv,): whole numbers [-].
    """
    order, ways = np.arange(model.nq + model.nv), np.arange(2 * model.nv)
    for i, j, free in groups(model):
        if free:
            order[i : i + 7] = i + np.array([4, 5, 6, 1, 2, 3, 0])
            ways[j : j + 6] = j + np.array([3, 4, 5, 0, 1, 2])
        else:
            order[i : i + 4] = i + np.array([1, 2, 3, 0])
    return order, ways


def state(model: Model) -> Any:
    """States of a robot for aligator, on their manifold, in the order of `aligator.order`.

    Returns:
        aligator.manifolds.VectorSpace; a CartesianProduct of it and of SE3 and SO3 where quaternions are stored [rad,
        m, strain units, and per s]. Its nx is nq + nv and its ndx 2 nv.
    Raises:
        ModelError: aligator is missing, or it is without Pinocchio and quaternions are stored.
    """
    turned, spaces = sorted(groups(model)), _aligator().manifolds
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
    """A step of a robot as a stage of aligator, with exact derivatives, states on the manifold and limits.

    Args:
        cost: a TrackingCost, whose l counts for dt; or an aligator.CostAbstract over `aligator.state(model)`, taken as
            it is.
        dt: size of the step [s]. t: time that references of the cost are asked for [s]; the robot is taken at t = 0.
        method, tolerance: as of `step_derivatives`. "sdirk" is of second order and begins from (q, v) alone, as the
            first-order "implicit_euler" does; others begin with the acceleration there.
        limits: (low, high) of the inputs, numbers or shape (nu,), a box that the stage's first constraint is held to;
            None: no limits.
    Returns:
        aligator.StageModel. A step that is not found is one to infinite velocities, which a line search rejects.
    Raises:
        ModelError: aligator is missing, or an argument breaks its rule. ShapeError: the argument and its shapes.
    Accuracy: exact derivatives of the step; second ones of the cost by Gauss and Newton, of the step none. Cost: one to
        two steps of Newton's method in each call.
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
    """The best motion from a start as a problem of aligator, for its solvers.

    Args:
        cost: as of `stage`; at the end a TrackingCost counts for its `end`, one of aligator as everywhere, with
            inputs of zero. q0: start, shape (nq,); None is neutral. v0: velocity, shape (nv,); None is rest.
        dt: size of the steps [s]. steps: how many. t: time at the start [s].
        method, limits, tolerance: as of `stage`.
    Returns:
        aligator.TrajOptProblem of so many stages. Further constraints can be added to it.
    Raises:
        ModelError, ShapeError: as `stage`.
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
    if not hasattr(al, "TrajOptProblem"):  # another package bears its name among those of pip
        raise ModelError("stages need aligator, the solver: conda install -c conda-forge aligator")
    return al


def _node(al: Any, model: Model, cost: Any, **options: Any) -> Node:
    """A node by checked arguments."""
    return shooting_node(model, cost, (al.CostAbstract, "an aligator.CostAbstract"), **options)


def _fill(place: np.ndarray, matrix: np.ndarray) -> None:
    """Write a matrix where aligator keeps it; it shows one column as a vector."""
    place[...] = matrix.reshape(place.shape)


def _dynamics(al: Any, node: Node) -> Any:
    """The step of a node. Aligator copies it by a call without arguments."""
    model = node.model
    places, ways = order(model)
    back = np.argsort(places)

    @final
    class Dynamics(al.dynamics.ExplicitDynamicsModel):
        def __init__(self) -> None:
            super().__init__(state(model), model.nu)

        def forward(self, x: np.ndarray, u: np.ndarray, data: Any) -> None:
            data.xnext[:] = node.step(x[back], u)[places]

        def dForward(self, x: np.ndarray, u: np.ndarray, data: Any) -> None:
            A, B = node.slopes(x[back], u)
            _fill(data.Jx, A[np.ix_(ways, ways)])
            _fill(data.Ju, B[ways])

    return Dynamics()


def _cost(al: Any, node: Node, *, end: bool) -> Any:
    """The cost of a node, or at the end."""
    if not isinstance(node.cost, TrackingCost):
        return node.cost
    model = node.model
    places, ways = order(model)
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
            data.Lx[:], data.Lu[:] = by_x[ways], by_u

        def computeHessians(self, x: np.ndarray, u: np.ndarray, data: Any) -> None:
            by_x, by_u = node.hessian(x[back], None if end else u)
            _fill(data.Lxx, by_x[np.ix_(ways, ways)])
            _fill(data.Luu, by_u)

    return Cost()
