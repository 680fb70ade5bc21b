"""Model predictive control: at each sample, the optimal motion over a horizon within input limits.

With u = (u₀ … u_{N−1}), states of a rollout xₖ(u), and r of (8),

    minimise L(u) = ½ Σ |r(xₖ, uₖ)|²,   low ≤ uₖ ≤ high                                                    (1)
    δxₖ₊₁ = Aₖ δxₖ + Bₖ δuₖ   ⇒   δxₖ = Gₖ δu                                                              (2)
    H = Σ (Jₖ Gₖ)ᵀ(Jₖ Gₖ) + h diag(R),   g = Σ (Jₖ Gₖ)ᵀ rₖ + h R (u − u_r)                                  (3)

x is (q, v), followed by the accelerations for schemes whose steps start from them. δx₀ = 0, except for the effect of
the first input on these accelerations. δu minimises ½ δuᵀH δu + gᵀδu within the limits (`box_least`). A line search
along δu decreases L. This is the Gauss-Newton method with single shooting. Aₖ and Bₖ of all steps are computed in one
launch. From sample to sample u is shifted by the time between them. If the motion follows the plan, one iteration per
sample is enough (real-time iteration).

Source: M. Diehl, H. G. Bock, J. P. Schlöder, SIAM J. Control Optim. 43, 2005, for the real-time iteration.

`box_least` minimises a quadratic function within limits by Newton's method on the free variables f:

    minimise ½ δᵀH δ + gᵀδ,   low ≤ δ ≤ high,   H positive definite                                       (4)
    active: at a limit, with −gradient outward;   H_ff s = −(H δ + g)_f on the free variables              (5)

with a line search along the projection of δ + α s onto the limits.

Source: D. P. Bertsekas, SIAM J. Control Optim. 20, 1982.

The cost of a motion that tracks a reference is a sum of squares, with Gauss-Newton second derivatives:

    l(t, x, u) = ½ (x ⊖ x_r)ᵀQ (x ⊖ x_r) + ½ Σᵢ wᵢ |pᵢ(q) − p_rᵢ|² + ½ (u − u_r)ᵀR (u − u_r)                 (6)
    L = Σₖ h l(tₖ, xₖ, uₖ) + T l(t_N, x_N, u_r),   k = 0 … N − 1                                             (7)
    ½ |r|² = h l or T l   with   r = √h (Fᵀ(x ⊖ x_r); √wᵢ (pᵢ − p_rᵢ); Cᵀ(u − u_r)),   Q = F Fᵀ, R = C Cᵀ       (8)
    ∂(x ⊖ x_r)/∂x = diag(T(q ⊖ q_r)⁻¹, 1),   ∂p/∂q = R_B J_v   with the tangent operator T of quaternions        (9)

h is the step size, T the weight `end` of the final state (in (7) and (8)), and R_B the rotation of the frame at p.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from lissom.control.feedback_linearization import gain
from lissom.dynamics.configuration import apply_tangent_operator, checked_configuration, difference, quaternion_joints
from lissom.dynamics.kinematics import frame_jacobian, frame_pose
from lissom.errors import ConvergenceError, ModelError, ShapeError, renamed
from lissom.gradients.propagation import path_matrices
from lissom.gradients.rollout import Rollout, chosen_scheme, rollout
from lissom.gradients.starts import forbid_anchors
from lissom.launch.workspace import stack
from lissom.model.model import Model
from lissom.robot import checks, formatting
from lissom.simulation.inputs import Controller
from lissom.stepping.schemes import Scheme

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class References(NamedTuple):
    """References at n times.

    Fields:
        q: q_r (n, nq).
        v: v_r (n, nv) or (nv,).
        points: p_r (n, points, 3) [m].
    """

    q: np.ndarray
    v: np.ndarray
    points: np.ndarray


@final
@dataclass(frozen=True)
class TrackingCost:
    """Cost of deviations from a reference and of inputs, for optimal control.

        l = ½ (x ⊖ x_r)ᵀQ (x ⊖ x_r) + ½ Σ w |p − p_r|² + ½ (u − u_r)ᵀR (u − u_r)   per second

    with x = (q, v) and x ⊖ x_r = (q ⊖ q_r, v − v_r) by `difference`. The points p are the origins of links and frames;
    for a rod, its tip.

    Args:
        model: the model of the robot.
        inputs: R, symmetric and positive definite: a number, shape (nu,) or (nu, nu) [per squared input and s].
        state: Q, symmetric and positive semidefinite: a number, shape (2 nv,) or (2 nv, 2 nv) [per squared unit and s].
        points: weight w by name of a link or frame [1/(m² s)].
        state_reference: q_r, shape (nq,), with v_r = 0; or a function of t that returns (q_r, v_r). None is the neutral
            configuration.
        point_reference: p_r, shape (n, 3) [m], in the order of `points`; or a function of t that returns it.
        input_reference: u_r, shape (nu,); None is zero.
        end: T, weight of the final state [s]: its cost counts as if the robot stayed there for this time.
    Raises:
        ModelError: wrong weights, or points without a reference.
        ShapeError: an argument has a wrong shape.
    """

    model: Model = field(repr=False)
    inputs: ArrayLike
    state: ArrayLike = 0.0
    points: Mapping[str, float] | None = None
    state_reference: Any = None
    point_reference: Any = None
    input_reference: ArrayLike | None = None
    end: float = 0.0

    def __post_init__(self) -> None:
        nu, points = self.model.nu, dict(self.points or {})
        checks.require(nu > 0, "inputs", "a control law needs an actuator", nu)
        _ = self.input_root, self.state_root
        for name, weight in points.items():
            checks.number(weight, f"points > {name}", least=0.0)
            frame_pose(self.model, self.model.neutral(), name)
        known = self.point_reference is not None or not points
        checks.require(known, "point_reference", "must be given for points", self.point_reference)
        checks.number(self.end, "end", least=0.0)
        _ = self.input_references
        self.state_references(np.zeros(6))
        self.point_references(np.zeros(6))

    @cached_property
    def input_root(self) -> np.ndarray:
        """C of (8), lower triangular."""
        return np.linalg.cholesky(gain(self.inputs, self.model.nu, "inputs"))

    @cached_property
    def state_root(self) -> np.ndarray:
        """F of (8), shape (2 nv, k), with one column for each direction with nonzero cost."""
        Q = checks.symmetric(self.state, 2 * self.model.nv, "state")
        if not np.any(Q - np.diag(np.diag(Q))):
            return np.diag(np.sqrt(np.diag(Q)))[:, np.diag(Q) > 0.0]
        size, ways = np.linalg.eigh(Q)
        some = size > 1e-14 * size.max(initial=0.0)
        return ways[:, some] * np.sqrt(size[some])

    @cached_property
    def input_references(self) -> np.ndarray:
        """u_r, shape (nu,)."""
        nu = self.model.nu
        return np.zeros(nu) if self.input_reference is None else _row("input_reference", self.input_reference, nu)

    @property
    def count(self) -> int:
        """Number of entries of r, without the entries of the inputs."""
        return self.state_root.shape[1] + 3 * len(self.points or {})

    def state_references(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """q_r and v_r at times (n,)."""
        model, given = self.model, self.state_reference
        if not callable(given):
            q = model.neutral() if given is None else _row("state_reference", given, model.nq)
            return np.tile(checked_configuration(model, "state_reference", q), (len(times), 1)), np.zeros(model.nv)
        rows = [_pair(given, t) for t in times.tolist()]
        q = np.array([_row("state_reference", q, model.nq) for q, _ in rows])
        v = np.array([_row("state_reference", v, model.nv) for _, v in rows])
        return checked_configuration(model, "state_reference", q), v

    def point_references(self, times: np.ndarray) -> np.ndarray:
        """p_r at times (n,), shape (n, points, 3)."""
        given, shape = self.point_reference, (len(self.points or {}), 3)
        if not shape[0]:
            return np.zeros((len(times), *shape))
        if callable(given):
            function: Callable[..., Any] = given
            return np.array([checks.call(function, t, shape, "point_reference") for t in times.tolist()])
        row = checks.array(given, shape, "point_reference", f"must be finite, of shape {shape}")
        return np.tile(row, (len(times), 1, 1))

    def references(self, times: np.ndarray) -> References:
        """All references at times (n,)."""
        return References(*self.state_references(times), self.point_references(times))

    def residuals(self, to: References, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """r of (8) with h = 1 and without the inputs, for states (n, ...): shape (n, count)."""
        away = np.concatenate([difference(self.model, to.q, q), v - to.v], axis=-1) @ self.state_root
        rows, targets = [away], to.points
        for k, (name, weight) in enumerate((self.points or {}).items()):
            rows.append(np.sqrt(weight) * (frame_pose(self.model, q, name)[:, :3, 3] - targets[:, k]))
        return np.concatenate(rows, axis=-1)

    def slopes(self, to: References, q: np.ndarray) -> np.ndarray:
        """∂r/∂x by (9), with h = 1 and without the inputs, shape (n, count, 2 nv)."""
        nv, many = self.model.nv, self.state_root.shape[1]
        out = np.zeros((len(q), self.count, 2 * nv))
        out[:, :many] = self.state_root.T
        if quaternion_joints(self.model) and many:
            move = difference(self.model, to.q, q)
            T = apply_tangent_operator(self.model, move[:, None], np.eye(nv), invert=True)  # its rows are columns
            out[:, :many, :nv] = self.state_root[:nv].T @ np.swapaxes(T, -1, -2)
        for k, (name, weight) in enumerate((self.points or {}).items()):
            R, J = frame_pose(self.model, q, name)[:, :3, :3], frame_jacobian(self.model, q, name)[:, 3:]
            out[:, many + 3 * k : many + 3 * k + 3, :nv] = np.sqrt(weight) * (R @ J)
        return out

    def of_inputs(self, u: np.ndarray) -> np.ndarray:
        """The entries of the inputs in r of (8) with h = 1, shape (..., nu)."""
        return (u - self.input_references) @ self.input_root


def _pair(function: Callable[[float], Any], t: float) -> tuple[Any, Any]:
    value = checks.value_at(function, t, "state_reference")
    try:
        q, v = value
    except (TypeError, ValueError):
        raise ShapeError(f"state_reference: the function must return (q, v), got {value!r} at t={t:g}") from None
    return q, v


def _row(name: str, value: Any, size: int) -> np.ndarray:
    """A finite array of shape (size,)."""
    row = stack(name, value, size)
    if row.shape != (size,) or not np.isfinite(row).all():
        raise ShapeError(f"{name}: expected finite numbers of shape ({size},), got shape {row.shape}")
    return row


_HALVINGS = 6  # largest number of halvings of a step in the line search
_SHARE = 1e-4  # smallest accepted decrease of the cost, relative to the decrease of the quadratic function
_TOLERANCE = 1e-7  # tolerance of Newton's method in the steps


@final
@formatting.in_one_line
@dataclass(frozen=True)
class MotionPlan:
    """The optimal motion from a given state.

    Fields:
        t: times (steps + 1,) [s].
        q, v: configurations (steps + 1, nq) and velocities (steps + 1, nv).
        u: inputs, constant during each step (steps, nu) [N, m, Pa or N·m, by actuator].
        cost: total cost L.
        iterations: number of iterations.
        left: decrease of the cost that the last iteration predicts, relative to the cost. It is small at a minimum.
        motion: Rollout of the plan.
    """

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    u: np.ndarray
    cost: float
    iterations: int
    left: float
    motion: Rollout = field(repr=False)

    def error(self) -> tuple[np.ndarray, np.ndarray]:
        """Estimated discretisation errors of q and v: deviation from the exact motion under the same inputs. See
        `Rollout.error`."""
        return self.motion.error()


@final
@formatting.in_one_line
@dataclass(frozen=True)
class ModelPredictiveControl:
    """Control law that plans, at each sample, the inputs with the least cost over a horizon, within input limits.

    Args:
        model: the model of the robot.
        cost: cost of its motion.
        dt: step size [s].
        steps: number of steps of the horizon.
        limits: (low, high) of the inputs, numbers or shape (nu,); None: those of the robot (`Robot.limit_input`).
        iterations: largest number of iterations per sample. 1, starting from the last plan, is the real-time iteration.
        method: scheme of the steps, see `rollout`. "sdirk" is of second order for inputs that jump from step to step.
            "implicit_euler" takes half the time and adds numerical damping.
    Raises:
        ModelError: an argument is invalid; or the robot has contacts that stick, or loads or motions that depend on
            time, which plans do not support.
        ShapeError: an argument has a wrong shape.
    Source: Diehl, Bock and Schlöder 2005.
    """

    model: Model
    cost: TrackingCost
    dt: float
    steps: int
    limits: Any = None
    iterations: int = 1
    method: str | Scheme = "sdirk"
    low: np.ndarray = field(init=False, repr=False)
    high: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        checks.number(self.dt, "dt", above=0.0)
        checks.integer(self.steps, "steps", least=1)
        checks.integer(self.iterations, "iterations", least=1)
        if not isinstance(self.cost, TrackingCost) or self.cost.model is not self.model:
            raise ModelError(f"cost: must be an ls.TrackingCost of the same model (got {self.cost!r})")
        if self.model.n_motions or self.model.loads.varies:  # varying currents included
            rule = "must have no loads, currents or prescribed motions that depend on time"
            raise ModelError(f"robot {self.model.name!r}: {rule} (got some)")
        forbid_anchors(self.model)
        chosen_scheme(self.method, self.dt)
        low, high = checks.limits(self.model.input_limits if self.limits is None else self.limits, self.model.nu)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    @renamed(u="u0")
    def plan(self, t: float, q: Any, v: Any, u0: Any = None, *, iterations: int | None = None) -> MotionPlan:
        """The motion from a state with the least cost, after the given number of iterations.

        Args:
            t: time at which references are evaluated [s].
            q: configuration, shape (nq,) [rad, m, or strain units].
            v: velocity, shape (nv,) [unit of q per s].
            u0: initial inputs, shape (steps, nu) or (nu,) [N, m, Pa or N·m, by actuator]; None: the input reference,
                clipped to the limits.
            iterations: largest number of iterations; the search ends earlier if the cost no longer decreases. None: the
                number of the controller.
        Returns:
            MotionPlan.
        Raises:
            ConvergenceError: Newton's method finds no motion with the initial inputs.
        """
        q, v = checked_configuration(self.model, "q", q), stack("v", v, self.model.nv)
        if q.ndim != 1 or v.ndim != 1:
            raise ShapeError(
                f"q, v: expected shapes ({self.model.nq},) and ({self.model.nv},), got {q.shape}, {v.shape}"
            )
        u = self.cost.input_references if u0 is None else stack("u0", u0, self.model.nu)
        if u.shape not in ((self.model.nu,), (self.steps, self.model.nu)):
            raise ShapeError(f"u0: expected shape ({self.steps}, {self.model.nu}), got {u.shape}")
        u = np.clip(np.broadcast_to(u, (self.steps, self.model.nu)), self.low, self.high)
        times = t + self.dt * np.arange(self.steps + 1)
        to, motion = self.cost.references(times), self._motion(q, v, u)
        r, cost = self._residual(to, motion)
        left, made, most = np.inf, 0, self.iterations if iterations is None else iterations
        while made < most and left > 1e-12:
            move, gain = self._move(to, motion, r)
            left, made = gain / max(cost, 1e-300), made + 1
            found = self._search(to, motion, move, gain, cost)
            if found is None:
                break
            motion, r, cost = found
        return MotionPlan(times, motion.q, motion.v, motion.u, cost, made, left, motion)

    @renamed(u="u0")
    def controller(self, period: float | None = None, u0: Any = None) -> Controller:
        """The law for `simulate(controller=, period=)`. Its state is the plan. Pass the same `period` to `simulate`.

        Args:
            period: time between samples [s]; None: dt.
            u0: initial inputs of the first plan, see `plan`.
        """
        apart = checks.number(self.dt if period is None else period, "period", above=0.0)
        u = self.cost.input_references if u0 is None else stack("u0", u0, self.model.nu)
        start = np.clip(np.broadcast_to(u, (self.steps, self.model.nu)), self.low, self.high)
        law = _Law(self, apart)
        return Controller(law.output, law.rate, start.ravel())

    def shifted(self, u: np.ndarray, time: float) -> np.ndarray:
        """Inputs (steps, nu) shifted by a time [s]. The inputs of the last step are repeated."""
        whole, part = divmod(time / self.dt, 1.0)
        k = np.minimum(np.arange(self.steps) + int(whole), self.steps - 1)
        return (1.0 - part) * u[k] + part * u[np.minimum(k + 1, self.steps - 1)]

    def _motion(self, q: np.ndarray, v: np.ndarray, u: np.ndarray) -> Rollout:
        return rollout(self.model, q, v, u, dt=self.dt, method=self.method, tolerance=_TOLERANCE)

    def _worth(self) -> np.ndarray:
        """Weights of the states in r of (8), shape (steps + 1,): √h, and √T for the last state."""
        each = np.full(self.steps + 1, self.dt)
        each[-1] = self.cost.end
        return np.sqrt(each)

    def _residual(self, to: References, motion: Rollout) -> tuple[np.ndarray, float]:
        """r of all states, shape (steps + 1, count), and L of (1)."""
        r = self._worth()[:, None] * self.cost.residuals(to, motion.q, motion.v)
        return r, 0.5 * float(np.sum(r * r) + self.dt * np.sum(self.cost.of_inputs(motion.u) ** 2))

    def _move(self, to: References, motion: Rollout, r: np.ndarray) -> tuple[np.ndarray, float]:
        """δu, shape (steps, nu), and the decrease of the quadratic function."""
        N, nu, nv = self.steps, self.model.nu, self.model.nv
        follows = motion.method.follows_accelerations
        size = 4 * nv if follows else 2 * nv
        AB = path_matrices(motion, motion.path, np.eye(4 * nv, size + nu), accelerations=follows)[0]
        J = self._worth()[1:, None, None] * self.cost.slopes(to, motion.q)[1:]
        C = np.sqrt(self.dt) * self.cost.input_root
        g = (np.sqrt(self.dt) * self.cost.of_inputs(motion.u) @ C.T).ravel()
        G, H = np.zeros((size, N * nu)), np.zeros((N * nu, N * nu))
        if follows:
            begins = motion.start_derivatives
            G[2 * nv :, :nu] = np.tile((begins.solve[0] @ begins.B[0])[:nv], (2, 1))
        for k in range(N):
            end, now = k * nu, (k + 1) * nu
            G[:, :now] = AB[k, :, :size] @ G[:, :now]  # (2)
            G[:, end:now] += AB[k, :, size:]
            E = J[k] @ G[: 2 * nv, :now]  # (3)
            H[:now, :now] += E.T @ E
            H[end:now, end:now] += C @ C.T
            g[:now] += E.T @ r[k + 1]
        low, high = ((x - motion.u).ravel() for x in (self.low, self.high))
        move = box_least(H, g, low, high)
        return move.reshape(N, nu), -float(g @ move + 0.5 * move @ H @ move)

    def _search(
        self, to: References, motion: Rollout, move: np.ndarray, gain: float, cost: float
    ) -> tuple[Rollout, np.ndarray, float] | None:
        """Line search along `move`: the motion, its inputs and its cost; None if the cost does not decrease."""
        part = 1.0
        for _ in range(_HALVINGS):
            u = np.clip(motion.u + part * move, self.low, self.high)
            try:
                found = self._motion(motion.q[0], motion.v[0], u)
            except ConvergenceError:
                part *= 0.5
                continue
            r, new = self._residual(to, found)
            if new <= cost - _SHARE * part * gain:
                return found, r, new
            part *= 0.5
        return None


@final
@dataclass(frozen=True)
class _Law:
    """The law as functions of (t, q, v, z). z holds the inputs of the plan."""

    control: ModelPredictiveControl
    period: float
    last: list[Any] = field(default_factory=list, compare=False)

    def _planned(self, t: float, q: np.ndarray, v: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Inputs of the plan from a state. The plan is cached, because `output` and `rate` use the same one."""
        key = (t, q.tobytes(), v.tobytes(), z.tobytes())
        if not self.last or self.last[0] != key:
            found = self.control.plan(t, q, v, z.reshape(self.control.steps, -1))
            self.last[:] = [key, found.u]
        return self.last[1]

    def output(self, t: float, q: np.ndarray, v: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Inputs until the next sample."""
        return self._planned(t, q, v, z)[0]

    def rate(self, t: float, q: np.ndarray, v: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Rate of z for which z is the shifted plan at the next sample."""
        later = self.control.shifted(self._planned(t, q, v, z), self.period)
        return (later.ravel() - z) / self.period


_TRIES = 50
_GAIN = 0.1  # smallest accepted decrease of a step, relative to the slope along s
_SMALL = 1e-9  # largest remaining slope, relative to the slope at the start


def box_least(H: np.ndarray, g: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """δ of (4), shape (n,). The search starts at 0, which must be within the limits."""
    x, slope, value = np.zeros_like(g), g, 0.0
    small = _SMALL * np.abs(g).max(initial=0.0)
    for _ in range(_TRIES):
        free = np.flatnonzero(~(((x <= low) & (slope > 0.0)) | ((x >= high) & (slope < 0.0))))
        if np.abs(slope[free]).max(initial=0.0) <= small:
            break
        s = np.zeros_like(x)
        s[free] = -cho_solve(cho_factor(H[np.ix_(free, free)], check_finite=False), slope[free], check_finite=False)
        part, start = 1.0, x
        while True:  # a short enough step decreases the value
            x = np.clip(start + part * s, low, high)
            Hx = H @ x
            new = 0.5 * x @ Hx + g @ x
            if new <= value + _GAIN * slope @ (x - start) or part < 1e-8:
                break
            part *= 0.5
        slope, done = Hx + g, value - new <= 1e-14 * abs(new)
        value = new
        if done:
            break
    return x
