"""Feedback laws as native code: u(t, q, v) in the residual of a step, and its derivatives in the matrix.

Inputs that the host gives are added to those of the law. With r = ID(q, v, a) − B u of (1) in newton_stages, the matrix
(2) has the further terms

    ∂r/∂Δ:  −B (∂u/∂q T(Δ) + c₁ ∂u/∂v)                                                                   (1)

in which changes of q are in the tangent space (robot/traced_functions). A column of B is the generalised force of one
unit of an input; for an elastic tendon, and for a user's force that depends on inputs, that of its derivative.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportIndexIssue=false

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import isfinite
from typing import Any, final

import numpy as np
import warp as wp

from lissom.dynamics.configuration import quaternion_joints
from lissom.errors import ModelError, ShapeError
from lissom.forces.custom_actuators import call_actuator
from lissom.forces.tendons import (
    add_channel_wrenches,
    add_outer_product,
    add_path_forces,
    add_pull_forces,
    add_pull_wrenches,
    channel_sizes,
)
from lissom.forces.traced_forces import put_driven_column
from lissom.lie import so3
from lissom.lie.native import native_functions
from lissom.lie.types import vec6
from lissom.model.model import Model
from lissom.model.tables import Tables
from lissom.passes import kinds
from lissom.passes.features import may_have_elastic_tendons
from lissom.passes.scratch import Scratch
from lissom.passes.traversal import project
from lissom.robot import checks
from lissom.robot.poses import captured
from lissom.robot.traced_functions import TracedFunction, tangent_directions
from lissom.stepping.state import ControlLaw
from lissom.stepping.step_rows import ADDED, C1, TIME, StepRows
from lissom.systems.newton_matrix import NewtonBuffers
from lissom.tracing.code_cache import content_key, stored_code
from lissom.tracing.graph import Refused, derivative, require_few
from lissom.tracing.native import Code, Traced, code_of, compiled_functions


@final
@dataclass(frozen=True, eq=False)
class NativeLaw:
    """A law u(t, q, v) of a robot as native code.

    Fields:
        functions: functions of (t, q, v) that return u (nu,); and ∂u/∂q and ∂u/∂v (nu, nv), changes of q being in the
            tangent space.
        nu, nv: sizes. name: the argument that gives the law, for messages.
    """

    functions: Traced
    nu: int
    nv: int
    name: str

    def inputs(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """u at a state, shape (nu,).

        Raises:
            ShapeError: an input is not finite.
        """
        u = np.empty(self.nu)
        self.functions.call(0, self._given(t, q, v), [u])
        if not isfinite(sum(u.tolist())) and not np.isfinite(u).all():  # the sum is several times faster
            raise ShapeError(f"{self.name} at t={t:g}: must be finite, got NaN or infinity")
        return u

    def derivatives(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """∂u/∂(q, v) at a state, shape (nu, 2 nv)."""
        by_q, by_v = np.empty((2, self.nu, self.nv))
        self.functions.call(1, self._given(t, q, v), [by_q, by_v])
        return np.hstack([by_q, by_v])

    def inputs_over(self, t: np.ndarray, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """u at times (n,) and states (n, nq) and (n, nv), shape (n, nu).

        Raises:
            ShapeError: an input is not finite.
        """
        u = np.empty((len(t), self.nu))
        self.functions.call_rows(0, self._given(t, q, v), [u])
        for k in np.flatnonzero(~np.isfinite(u).all(axis=1))[:1].tolist():
            self.inputs(float(t[k]), q[k], v[k])
        return u

    def derivatives_over(self, t: np.ndarray, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """∂u/∂q and ∂u/∂v at times (n,) and states (n, nq) and (n, nv), shape (n, nu, nv) each."""
        by_q, by_v = np.empty((2, len(t), self.nu, self.nv))
        self.functions.call_rows(1, self._given(t, q, v), [by_q, by_v])
        return by_q, by_v

    def control_law(self, period: float = np.inf) -> ControlLaw:
        """The law for integrators, with the time between samples [s]."""
        none = np.zeros(0)

        def derivatives(t: float, q: np.ndarray, v: np.ndarray, z: np.ndarray) -> np.ndarray:
            return self.derivatives(t, q, v)

        inputs, rate = (lambda t, q, v, z: self.inputs(t, q, v)), (lambda t, q, v, z: none)
        return ControlLaw(inputs, rate, none, period, derivatives=derivatives, native=self)

    @staticmethod
    def _given(t: Any, q: np.ndarray, v: np.ndarray) -> list[np.ndarray]:
        return [np.ascontiguousarray(x, dtype=np.float64) for x in (t, q, v)]


def law_in_kernels(model: Model, controller: Any, otherwise: str) -> NativeLaw | None:
    """The law of a controller that only kernels evaluate; None if there is none.

    Args:
        controller: the user's controller. otherwise: the remedy for a function in Python, for the message.
    Raises:
        ModelError: it is not an `ls.TracedFunction`, cannot be traced, or the model is on a GPU.
    """
    if controller is None:
        return None
    where = "controller"
    checks.require(
        isinstance(controller, TracedFunction), where, f"must be an ls.TracedFunction; {otherwise}", controller
    )
    checks.require(model.device == "cpu", where, "needs a model on the CPU", model.device)
    return native_law(model.of_row(0, 1), controller)


def native_law(model: Model, law: TracedFunction, name: str = "controller") -> NativeLaw:
    """A law u(t, q, v) as native code. The numbers that it reads besides its arguments are the present ones.

    Args:
        name: the argument that gives the law, for messages.
    Raises:
        ModelError: the law cannot be traced.
    """
    key = ("native law", law.function, captured(law.function), name)
    return model.cached(key, lambda: _made(model, law, name))


def _made(model: Model, law: TracedFunction, where: str) -> NativeLaw:
    nq, nv, nu = model.nq, model.nv, model.nu
    graph, (_, q, v), u = law.traced(where, [(), (nq,), (nv,)], (nu,))
    poses = [(int(k), int(j), bool(free)) for k, j, free in quaternion_joints(model)]
    places = model.dofs.q

    def code() -> Code:
        moved = derivative(graph, u, q.tolist(), tangent_directions(graph, q, places, poses))
        rates = derivative(graph, u, v.tolist())
        require_few(graph.count([moved, rates]))
        return code_of([(graph, [u]), (graph, [moved, rates])], [1, nq, nv])

    try:
        require_few(graph.count([u]))
        found = stored_code(content_key("law", graph, u, nq, nv, poses, places), code)
    except Refused as error:
        raise ModelError(f"{where}: must be a function of few operations; it {error}") from error
    return NativeLaw(compiled_functions(found), nu, nv, where)


native = native_functions("stepping/feedback.h")


@wp.func_native(native("evaluate_law"))
def evaluate_law(x: StepRows, i: int, time: wp.float64):
    """Set x.u to the inputs u(t, q, v) of the law at a time [s] and the state q, v in x."""
    ...


@wp.func_native(native("differentiate_law"))
def differentiate_law(x: StepRows, i: int, time: wp.float64):
    """∂u/∂q and ∂u/∂v at a time, into x.feedback."""
    ...


@wp.func
def begin_law(x: StepRows, i: int, now: int, time: wp.float64, is_known: bool):
    """Store the inputs that are added to those of the law, and the time of a stage: `time` if it is known, otherwise
    the one of row `now` of the buffers."""
    if is_known:
        x.notes[i, TIME] = time
    else:
        x.notes[i, TIME] = x.feedback.time[now]
    for k in range(x.u.shape[1]):
        x.notes[i, ADDED + k] = x.u[i, k]


@wp.func
def put_law_inputs(x: StepRows, i: int):
    """Set x.u to the inputs of the law at the state in x, plus the inputs that begin_law has stored."""
    evaluate_law(x, i, x.notes[i, TIME])
    for k in range(x.u.shape[1]):
        x.u[i, k] = x.u[i, k] + x.notes[i, ADDED + k]


@wp.func(inline=False)
def add_law_response(t: Tables, s: Scratch, b: NewtonBuffers, x: StepRows, i: int):
    """Add (1) to the matrix. Overwrites node.F, deforming.inertial and the sizes of channels in s."""
    differentiate_law(x, i, x.notes[i, TIME])
    if may_have_elastic_tendons():
        for e in range(t.spools.channel.shape[0]):
            x.feedback.taut[i, e] = wp.where(s.channel.size[i, t.spools.channel[e]] > so3.ZERO, so3.ONE, so3.ZERO)
    for k in range(x.u.shape[1]):
        at = k * t.nv
        largest = wp.float64(0.0)
        for j in range(t.nv):
            x.feedback.change[i, j] = x.feedback.by_q[i, at + j]
            x.feedback.moved[i, j] = x.feedback.by_q[i, at + j]
        for n in range(t.n_dynamic):
            kinds.pull_back(t, i, n, x.move, x.feedback.change, x.feedback.moved)
        for j in range(t.nv):
            x.feedback.moved[i, j] = x.feedback.moved[i, j] + x.notes[i, C1] * x.feedback.by_v[i, at + j]
            largest = wp.max(largest, wp.abs(x.feedback.moved[i, j]))
        if largest > so3.ZERO:
            put_input_column(t, s, x, i, k)
            add_outer_product(t.nv, b.x.width, i, -so3.ONE, x.feedback.column, x.feedback.moved, b.matrix)


@wp.func
def put_input_column(t: Tables, s: Scratch, x: StepRows, i: int, k: int):
    """Set x.feedback.column to the column of B of input k, from the poses in s and x.feedback.taut. Overwrites node.F,
    deforming.inertial and the sizes of channels in s."""
    for c in range(s.channel.size.shape[1]):
        s.channel.size[i, c] = t.channels.gain[c, k]
    if may_have_elastic_tendons():
        for e in range(t.spools.channel.shape[0]):
            c = t.spools.channel[e]
            s.channel.size[i, c] = s.channel.size[i, c] * x.feedback.taut[i, e] * t.spools.stiffness[e]
    for n in range(t.n_dynamic):
        s.node[i, n].F = vec6()
    for j in range(s.deforming.inertial.shape[1]):
        s.deforming.inertial[i, j] = so3.ZERO
    add_channel_wrenches(t, s, i, -so3.ONE)
    add_pull_wrenches(t, s, i, -so3.ONE)
    project(t, s, i, x.feedback.column)
    add_path_forces(t, i, x.q, s.channel.size, so3.ONE, x.feedback.column)
    add_pull_forces(t, s, i, so3.ONE, x.feedback.column)
    for j in range(t.nv):
        x.feedback.column[i, j] = x.feedback.column[i, j] + t.inputs.joint_gain[j, k]


@cache
def law_response_with(custom: int, driven: int) -> Any:
    """`add_law_response` for robots with actuators or forces of users that depend on inputs, whose terms have these
    places among all terms; −1 without one of them."""
    by_actuators = no_response if custom < 0 else _response_of_actuators(custom)
    by_forces = no_response if driven < 0 else _response_of_forces(driven)

    @wp.func(module="unique")
    def respond(t: Tables, s: Scratch, b: NewtonBuffers, x: StepRows, i: int):
        add_law_response(t, s, b, x, i)
        by_actuators(t, s, b, x, i)
        by_forces(t, s, b, x, i)

    return respond


def _response_of_actuators(place: int) -> Any:
    here = wp.constant(wp.int32(place))

    @wp.func(module="unique")
    def respond(t: Tables, s: Scratch, b: NewtonBuffers, x: StepRows, i: int):
        channel_sizes(t, s, i, x.u)
        for e in range(t.terms[here].index.shape[0]):
            first = t.terms[here].index[e, 0]
            n = t.terms[here].index[e, 1]
            call_actuator(t, s, here, e, 2, i, x.q)
            for k in range(n):
                for j in range(t.nv):
                    x.feedback.column[i, j] = s.channel.row[i, t.nv + j * n + k]
                add_channel_response(t, b, x, i, first + k)

    return respond


def _response_of_forces(place: int) -> Any:
    here = wp.constant(wp.int32(place))

    @wp.func(module="unique")
    def respond(t: Tables, s: Scratch, b: NewtonBuffers, x: StepRows, i: int):
        channel_sizes(t, s, i, x.u)
        for c in range(t.terms[here].index[0, 1], s.channel.size.shape[1]):
            put_driven_column(t, s, here, i, c, x.notes[i, TIME], x.feedback.column)
            add_channel_response(t, b, x, i, c)

    return respond


@wp.func
def add_channel_response(t: Tables, b: NewtonBuffers, x: StepRows, i: int, c: int):
    """Add (1) of channel c to the matrix. On entry x.feedback.column holds the generalised force per unit of the size w
    of the channel. The law changes w by ∂w/∂q T(Δ) + c₁ ∂w/∂v per Δ."""
    for j in range(t.nv):
        by_q = wp.float64(0.0)
        for k in range(x.u.shape[1]):
            by_q += t.channels.gain[c, k] * x.feedback.by_q[i, k * t.nv + j]
        x.feedback.change[i, j] = by_q
        x.feedback.moved[i, j] = by_q
    for n in range(t.n_dynamic):
        kinds.pull_back(t, i, n, x.move, x.feedback.change, x.feedback.moved)
    for j in range(t.nv):
        by_v = wp.float64(0.0)
        for k in range(x.u.shape[1]):
            by_v += t.channels.gain[c, k] * x.feedback.by_v[i, k * t.nv + j]
        x.feedback.moved[i, j] = x.feedback.moved[i, j] + x.notes[i, C1] * by_v
    add_outer_product(t.nv, b.x.width, i, -so3.ONE, x.feedback.column, x.feedback.moved, b.matrix)


@wp.func
def no_law(x: StepRows, i: int, now: int, time: wp.float64, is_known: bool):
    """No law acts."""
    ...


@wp.func
def no_inputs(x: StepRows, i: int):
    """The inputs do not depend on the state."""
    ...


@wp.func
def no_response(t: Tables, s: Scratch, b: NewtonBuffers, x: StepRows, i: int):
    """The inputs do not depend on the state."""
    ...
