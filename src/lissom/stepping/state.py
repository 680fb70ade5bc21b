"""The state x = (q, v, z) of integrators, its rate, the Jacobian of the rate, and the inputs.

q̇ follows from v (½ q ⊗ ω for quaternions), and v̇ = FD(q, v, u, t) from forward dynamics. z is the state of a
continuous controller. The Jacobian comes from the exact derivatives of inverse dynamics (Mathew 2025, eqs. (7) and
(9)). Coordinates with a prescribed motion are set to it at every evaluation (index 1; Mathew 2025 eqs. (43)-(44)).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, final

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from lissom.dynamics.actuation import input_response
from lissom.dynamics.assembly import prescribed_state
from lissom.dynamics.configuration import configuration_rate_derivatives, unit_quaternions
from lissom.dynamics.forward_dynamics import raise_if_massless, run_forward_dynamics
from lissom.dynamics.forward_dynamics_derivatives import constrained_response
from lissom.dynamics.inverse_dynamics_derivatives import residual_derivatives
from lissom.dynamics.kinematics import node_motion
from lissom.dynamics.mass_matrix import mass_matrix
from lissom.errors import ShapeError
from lissom.launch.workspace import Workspace
from lissom.model.model import Model
from lissom.passes.scratch import STATUS_NOT_FINITE, STATUS_OVERFLOW, STATUS_TOO_MANY_PAIRS
from lissom.stepping.contact_search import ContactSearch


class FunctionOfTime(Protocol):
    """Inputs u as a function of time."""

    @abstractmethod
    def __call__(self, t: float, /) -> np.ndarray:
        """u at a time, shape (nu,)."""
        ...

    @abstractmethod
    def over(self, times: np.ndarray, /) -> np.ndarray:
        """u at many times (n,), shape (n, nu)."""
        ...

    @abstractmethod
    def polynomials(self) -> tuple[np.ndarray, np.ndarray] | None:
        """u as cubic polynomials between knots: the starts of the pieces (n,) [s], the first one minus infinity, and
        their coefficients (n, 4 nu), highest power first. None if u is not such a function."""
        ...

    @property
    @abstractmethod
    def programs(self) -> list[Any]:
        """Programs of the expressions in u, which kernels evaluate."""
        ...


def constant_polynomials(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Constant inputs (nu,) in the form of `FunctionOfTime.polynomials`."""
    return np.full(1, -np.inf), np.append(np.zeros(3 * len(u)), u)[None]


@final
@dataclass(frozen=True)
class ControlLaw:
    """The control law of an integrator, (1) of inputs, with checked values and copied arguments.

    Fields:
        inputs, rate: functions of (t, q, v, z) that return u and dz/dt.
        start: z(0).
        period: time between samples [s]; infinite for a continuous law.
        feed: u as a function of time; None for feedback.
        derivatives: function of (t, q, v, z) that returns ∂u/∂(q, v); None if unknown.
        native: the law as native code, if it is a traced function; then `inputs` and `derivatives` call it.
        along_step: function of (t, q, v, matrix, c₀, c₁, turned) that returns B and ∂u/∂Δ of an implicit step, from its
            matrix without feedback; `turned` multiplies columns by T(Δ). None if unknown, or with forces in Python.
    """

    inputs: Callable[[float, np.ndarray, np.ndarray, np.ndarray], np.ndarray]
    rate: Callable[[float, np.ndarray, np.ndarray, np.ndarray], np.ndarray]
    start: np.ndarray
    period: float
    feed: FunctionOfTime | None = None
    derivatives: Callable[[float, np.ndarray, np.ndarray, np.ndarray], np.ndarray] | None = None
    native: Any = None
    along_step: Callable[..., tuple[np.ndarray, np.ndarray]] | None = None

    @property
    def is_feedback(self) -> bool:
        """Whether u depends on q and v."""
        return self.feed is None

    @property
    def carried(self) -> np.ndarray:
        """The part of z(0) in the integrator's state x: all of it for a continuous law, nothing for a sampled
        controller."""
        return self.start if np.isinf(self.period) else self.start[:0]


Checkpoint = dict[str, Any]
PULL = 100.0  # largest rate at which open loops are closed [1/s]; changes of a larger rate excite stiff motions
_PULL_STEPS = 0.5  # product of this rate and the longest recent step
_LEAST_PULL = 0.1
_LATE = 20  # number of steps that count as recent
_MOST_NOT_FINITE = 100  # largest number of consecutive evaluations without a finite rate
_MOST_KNOWN = 10_000  # largest number of times whose inputs are cached
_ROOT_EPS = float(np.sqrt(np.finfo(float).eps))


def takes_state(model: Model, q: np.ndarray, v: np.ndarray) -> bool:
    """Whether the robot can be in the states (..., nq), (..., nv): finite, and no rod interval turns by 2π or more."""
    if not (np.isfinite(q).all() and np.isfinite(v).all()):
        return False
    try:
        node_motion(model, unit_quaternions(model, q), v)
    except ShapeError:
        return False
    return True


def configuration_scale(model: Model) -> np.ndarray:
    """Natural size of each entry of q, (nq,), which is not to be changed; 1 for quaternions and their positions."""
    return model.cached(("scale of q",), lambda: _configuration_scale(model))


def _configuration_scale(model: Model) -> np.ndarray:
    scale, on_q = np.ones(model.nq), model.dofs.q >= 0
    scale[model.dofs.q[on_q]] = model.dofs.scale[on_q]
    scale.setflags(write=False)
    return scale


@final
class StateDerivative:
    """ẋ = f(t, x) and its Jacobian for x = (q, v, z), with the signatures that CVODE needs. It counts its evaluations.

    z is the state of a continuous controller, otherwise empty. The state of a sampled controller is `sampled_z`. Inputs
    `added` are added to those of a continuous law. Without `has_exact_jacobian`, integrators of other libraries form
    differences of f. Open loops close as critically damped vibrations at the rate `pull`, 1/`baumgarte_time` if given.
    """

    def __init__(
        self, model: Model, law: ControlLaw, has_exact_jacobian: bool = True, baumgarte_time: float | None = None
    ) -> None:
        self.model, self.law, self.has_exact_jacobian = model, law, has_exact_jacobian
        self.constant_u: np.ndarray | None = None
        self.added: np.ndarray | None = None
        self.sampled_z = self.next_z = law.start
        self.follows_steps = baumgarte_time is None and model.n_rows > 0  # whether the pull does
        self.pull = (PULL if baumgarte_time is None else 1.0 / baumgarte_time) if model.n_rows else 0.0
        self.evaluations = self.jacobians = self.parts = self.plastic = 0
        self.deepest = 0.0
        self.not_finite = 0
        self.left_span = ""  # text of the coupling whose function ended at the last state that was refused
        self.late: list[float] = []
        self.monitor: Any = None  # of the steps of CVODE
        self.error: Exception | None = None
        self.streams = False  # whether the method must stop from time to time for a checkpoint
        self.checkpoint: Checkpoint | None = None  # from which the method resumes
        self.take_checkpoint: Callable[[], Checkpoint] | None = (
            None  # set between two points where the method can resume
        )
        self.ready: Workspace | None = None
        self.known: dict[float, np.ndarray] = {}
        self.scale = np.concatenate([configuration_scale(model), model.dofs.scale, np.ones(len(law.carried))])

    @property
    def is_feedback(self) -> bool:
        """Whether the inputs depend on the state at present, and not only on time or on a sample."""
        return self.law.is_feedback and self.constant_u is None

    @property
    def has_native_law(self) -> bool:
        """Whether kernels can evaluate the feedback law, which acts at present."""
        return self.is_feedback and self.law.native is not None and self.model.device == "cpu"

    def end(self) -> None:
        """Release the buffers. SciPy's integrators keep references to their functions until the next garbage
        collection."""
        self.ready = self.take_checkpoint = None

    def split(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q with unit quaternions, v and z of a state."""
        nq, nv = self.model.nq, self.model.nv
        return unit_quaternions(self.model, x[:nq]), x[nq : nq + nv].copy(), x[nq + nv :].copy()

    def absolute(self, atol: tuple[float, float]) -> np.ndarray:
        """Absolute tolerance of each component of x, from the tolerances of q (and z) and of v."""
        out = np.full(len(self.scale), atol[0])
        out[self.model.nq : self.model.nq + self.model.nv] = atol[1]
        return out

    def give(self, u: np.ndarray) -> None:
        """Give inputs (nu,) from now on: those of the robot, or with a continuous native law further ones."""
        if self.law.native is None:
            self.constant_u = u
        else:
            self.added = u

    def known_inputs(self, times: np.ndarray) -> np.ndarray:
        """The inputs at times (n,), without those of a continuous law, shape (n, nu)."""
        if self.is_feedback:
            return np.tile(np.zeros(self.model.nu) if self.added is None else self.added, (len(times), 1))
        return self.shown_over(times)[:, : self.model.nu]

    def _response_of_law(self, t: float, q: np.ndarray, v: np.ndarray, z: np.ndarray) -> np.ndarray:
        """The inputs of the law, and those added to them."""
        u = self.law.inputs(t, q, v, z)
        return u if self.added is None else u + self.added

    def inputs(self, t: float, q: np.ndarray, v: np.ndarray, z: np.ndarray) -> np.ndarray:
        """The inputs at a state. A sampled controller returns the inputs of its last sample. Inputs that depend on time
        only are cached."""
        if self.constant_u is not None:
            return self.constant_u
        if self.law.is_feedback:
            return self._response_of_law(t, q, v, z)
        u = self.known.get(t)
        if u is None:
            if len(self.known) > _MOST_KNOWN:
                self.known.clear()
            u = self.known[t] = self.law.inputs(t, q, v, z)
        return u

    def shown(self, t: float, q: np.ndarray, v: np.ndarray, z: np.ndarray) -> np.ndarray:
        """(u, z) of a point to return. With a sampled controller u is the present input, and z the state from which it
        was computed."""
        return np.concatenate([self.inputs(t, q, v, z), z if self.constant_u is None else self.sampled_z])

    def shown_over(self, times: np.ndarray) -> np.ndarray:
        """(u, z) at times (n,), without feedback between them, shape (n, ...)."""
        if self.constant_u is not None:
            return np.tile(np.concatenate([self.constant_u, self.sampled_z]), (len(times), 1))
        if self.law.feed is None:
            raise RuntimeError("inputs that depend on the state are unknown in advance")
        return self.law.feed.over(times)

    def shown_rows(self, times: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """(u, z) at times (n,) with states x (n, ...)."""
        if self.is_feedback:
            return np.array([self.shown(t, *self.split(row)) for t, row in zip(times.tolist(), rows)])
        return self.shown_over(times)

    def ended(self, t: float) -> None:
        """Record the end of a step at t, and set the rate at which open loops are closed: half the inverse of the
        longest recent step, at most PULL. So it does not limit the steps, and gaps close within two steps. A rate that
        was given stays."""
        if not self.follows_steps:
            return
        self.late.append(t)
        if len(self.late) > _LATE:
            h = max(float(np.diff(self.late).max()), 1e-300)
            wanted = min(max(_PULL_STEPS / h, _LEAST_PULL), PULL)
            if not 0.5 < wanted / self.pull < 2.0:
                self.pull = wanted
            self.late = self.late[-1:]

    def first_contact(self, search: ContactSearch, times: np.ndarray, rows: np.ndarray) -> tuple[int, float] | None:
        """First contact among the states x (n, nq + nv + nz) at `times` (n,). Returns (step index, time) or None, as
        `ContactSearch.first_contact`."""
        model, end = self.model, self.model.nq + self.model.nv
        if not len(model.contacts.pair):
            return None
        q, v = rows[:, : model.nq], rows[:, model.nq : end]
        q, v = prescribed_state(model, times, q, v)
        return search.first_contact(times, q, v)

    def sample(self, t: float, q: np.ndarray, v: np.ndarray) -> None:
        """Take a sample by (2) of inputs: u is constant from now on, and z advances to the next sample."""
        z = self.sampled_z = self.next_z
        self.constant_u = self.law.inputs(t, q, v, z)
        if len(z):
            self.next_z = z + self.law.period * self.law.rate(t, q, v, z)

    def _rows(self, t: float, x: np.ndarray) -> np.ndarray:
        """f at one time for states (n, nq + nv + nz), with continuous feedback."""
        model, law, end = self.model, self.law, self.model.nq + self.model.nv
        q, v = prescribed_state(model, t, x[:, : model.nq], x[:, model.nq : end])
        z = x[:, end:]
        seen = list(zip(unit_quaternions(model, q), v, z))
        u = np.array([self._response_of_law(t, *row) for row in seen])
        w = run_forward_dynamics(model, q, v, u, t, self.pull)
        raise_if_massless(model, w)
        z_dot = np.array([law.rate(t, *row) for row in seen]) if z.shape[1] else z
        return np.concatenate([w.host["q_dot"], w.host["a"], z_dot], axis=1)

    def _row(self, t: float, x: np.ndarray, out: np.ndarray) -> None:
        """Store f of one state in `out`, with little overhead."""
        model, nq, end = self.model, self.model.nq, self.model.nq + self.model.nv
        q, v = prescribed_state(model, t, x[:nq], x[nq:end])
        z = x[end:]
        seen = unit_quaternions(model, q) if self.is_feedback else q
        u, w = self.inputs(t, seen, v, z), self.ready
        if w is None:
            w = run_forward_dynamics(model, q, v, u, t, self.pull)
            if w.buffers.only_launch is not None and not (model.calls_python or model.loads.varies or model.n_motions):
                self.ready = w  # later calls change only q, v and u
        else:
            known = w.host
            known["q"][0], known["v"][0], known["u"][0], known["pull"][0] = q, v, u, self.pull
            w.run()
        host = w.host
        out[:nq], out[nq:end] = host["q_dot"][0], host["a"][0]
        if w.status[0] != 0 or (self.model.joint_couplings.has_ends and self.model.joint_couplings.without_value(q)):
            self._refused(w)
            if self.left_span:
                out[nq:end] = np.nan
        if len(z):
            out[end:] = self.law.rate(t, seen, v, z)

    def _refused(self, w: Workspace) -> None:
        """Raise an error if a shorter step would not help, or after too many consecutive states that are not finite.
        CVODE would try shorter steps forever."""
        q = w.host["q"][0]
        self.left_span = self.model.joint_couplings.without_value(q) if np.isfinite(q).all() else self.left_span
        if self.left_span:
            return self._count_not_finite()
        raise_if_massless(self.model, w)
        if w.status[0] == STATUS_TOO_MANY_PAIRS:
            w.raise_for_status()
        if w.status[0] in (STATUS_NOT_FINITE, STATUS_OVERFLOW):
            self._count_not_finite()

    def _count_not_finite(self) -> None:
        self.not_finite += 1
        if self.not_finite > _MOST_NOT_FINITE:
            self.error = FloatingPointError(self.left_span or "the acceleration is not finite")
            raise self.error

    def takes(self, t: float, x: np.ndarray) -> bool:
        """Whether the robot can be in the state x."""
        q, v, _ = self.split(x)
        return bool(np.isfinite(x).all()) and takes_state(self.model, *prescribed_state(self.model, t, q, v))

    def __call__(self, t: float, x: np.ndarray, out: np.ndarray) -> None:
        """Right-hand side. An exception of the user's law is stored for the caller. A state that the robot cannot have
        gives NaN, so that the integrator shortens its step."""
        self.evaluations += 1
        try:
            self._row(t, x, out)
        except Exception as error:
            if self.error is not None or self.takes(t, x):
                self.error = error
                raise
            out[:] = np.nan
            self._count_not_finite()

    def jacobian(self, t: float, x: np.ndarray, rate: np.ndarray, out: np.ndarray) -> None:
        """∂f/∂x. It is exact, except for continuous feedback without derivatives of its law, where f is differentiated
        by finite differences."""
        self.jacobians += 1
        step = _ROOT_EPS * np.maximum(np.abs(x), self.scale)
        seen = np.concatenate([np.array(x)[None], x + np.diag(step)])
        try:
            if self.is_feedback and (self.law.derivatives is None or self.model.n_rows):
                rows = self._rows(t, seen)
                out[:, :] = ((rows[1:] - rows[0]) / step[:, None]).T
            else:
                self._exact(t, np.array(x), np.array(rate), out)
        except Exception as error:
            if all(self.takes(t, row) for row in seen):
                self.error = error
                raise
            out[:, :] = np.nan

    def _exact(self, t: float, x: np.ndarray, rate: np.ndarray, out: np.ndarray) -> None:
        """∂f/∂x from the derivatives of inverse dynamics: ∂a/∂(q, v) = −M⁻¹ ∂r/∂(q, v), r = ID − B u at a."""
        model, nq, nv = self.model, self.model.nq, self.model.nv
        q, v = prescribed_state(model, t, unit_quaternions(model, x[:nq]), x[nq:])
        a = rate[nq:]
        z = x[nq + nv :]
        u = self.inputs(t, q, v, z)
        M_inv_dr = self._response(t, q, v, a, u)
        if self.is_feedback and self.law.derivatives is not None:
            moved = input_response(model, q, v, u, t) @ self.law.derivatives(t, q, v, z)
            M_inv_dr = M_inv_dr - np.linalg.solve(mass_matrix(model, q), moved)
        rate_q, rate_v, tangent = configuration_rate_derivatives(model, x[:nq], v)
        out[:nq, :nq], out[:nq, nq:] = rate_q, rate_v
        out[nq:, :nq], out[nq:, nq:] = -M_inv_dr[:, :nv] @ tangent, -M_inv_dr[:, nv:]
        on_q, on_v = model.dofs.q[model.prescribed.dof], nq + model.prescribed.dof
        for on in (on_q, on_v):  # prescribed coordinates do not depend on x
            out[on], out[:, on] = 0.0, 0.0

    def _response(self, t: float, q: np.ndarray, v: np.ndarray, a: np.ndarray, u: np.ndarray) -> np.ndarray:
        """−∂a/∂(q, v) = M⁻¹ ∂r/∂(q, v), shape (nv, 2 nv); with loops by Mathew 2025 (50), (51)."""
        model = self.model
        if not model.n_rows:
            dq, dv, M, _ = residual_derivatives(model, q, v, a, u, t)
            return cho_solve(cho_factor(M, check_finite=False), np.hstack([dq, dv]), check_finite=False)
        force = run_forward_dynamics(model, q, v, u, t, self.pull).host["force"][0].copy()
        return constrained_response(model, q, v, a, u, t, force, self.pull)
