"""Rollouts: motions by steps of constant size with exact derivatives, the check of a gradient against finite
differences, and single steps for optimal control."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, final

import numpy as np

from lissom.dynamics.actuation import warn_of_pushing
from lissom.dynamics.assembly import (
    assemble,
    consistent_start,
    prescribed_state,
    require_motions_until,
    velocity_before,
)
from lissom.dynamics.configuration import checked_configuration, difference, integrate
from lissom.dynamics.contacts import largest_depths
from lissom.dynamics.start import CHECKED, default_start, warn_of_start
from lissom.errors import ModelError, ShapeError, keeping, of_instance, renamed
from lissom.gradients.design_changes import changed_model
from lissom.gradients.propagation import (
    Gradient,
    Sensitivity,
    path_matrices,
    propagate_backward,
    propagate_forward,
    step_matrices,
)
from lissom.gradients.starts import StartDerivatives, forbid_anchors, initial_values, start_derivatives
from lissom.gradients.steps import Cost, FixedSteps, Path
from lissom.launch.over_models import lead_of_models
from lissom.launch.progress import PATIENCE, progress_bar
from lissom.launch.workspace import batch_of, flat, leading, require_finite_rows, stack
from lissom.model.model import Model
from lissom.model.model_batch import ModelBatch
from lissom.robot import checks, formatting
from lissom.robot.paths import size_of
from lissom.robot.traced_functions import TracedFunction
from lissom.simulation.simulate import chosen_method
from lissom.stepping.feedback import law_in_kernels
from lissom.stepping.schemes import Scheme, at_positions
from lissom.stepping.statistics import Statistics

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@renamed(scheme="method")
@final
@formatting.in_one_line
@dataclass(frozen=True)
class Rollout:
    """A motion by steps of constant size, and its derivatives.

    Fields (a batch adds leading axes):
        t: times (n,) [s], beginning with the start.
        q: configurations (n, nq) [rad, m, or strain units].
        v, a: velocities and accelerations (n, nv) [unit of q per s, per s²].
        u: given inputs of each step (steps, nu) [N, m, Pa or N·m, by actuator].
        method: scheme of the steps.
        dt: size of the steps [s].
        model: the robot, or a batch of models.
        every: number of steps between two of the times.
        statistics: cost of the motion, summed over a batch: numbers of steps, of evaluations of the residual, of
            matrices, of damped steps, which take longer, and of plastic steps, and the deepest contact. No step is
            divided: `parts` is 0.
        impulse: change of velocity by loops and drives at the start, a row for each motion; see `assemble_velocities`.
    """

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    u: np.ndarray
    method: Scheme
    dt: float
    every: int
    model: Model | ModelBatch = field(repr=False)
    path: Path = field(repr=False)
    stepping: FixedSteps = field(repr=False)
    statistics: Statistics = field(repr=False)
    impulse: np.ndarray = field(repr=False)

    @property
    def lead(self) -> tuple[int, ...]:
        """Leading axes of a batch."""
        return self.q.shape[:-2]

    @property
    def common(self) -> Model:
        """The model, or the common Model of a batch."""
        return self.model.common if isinstance(self.model, ModelBatch) else self.model

    @property
    def steps(self) -> int:
        """Number of steps."""
        return self.u.shape[-2]

    @cached_property
    def energy_made(self) -> float | np.ndarray:
        """Energy that the steps made [J]: the largest rise, from one time to a later one, of the energy of bodies,
        springs and contacts less the work of inputs and loads. Shape (...) of a batch.

        It is 0 for exact motions. Energy that damping and friction take meanwhile hides as much of it. Computed on
        first use. The work is integrated over the times, by the inputs of each step; with `every` > 1 by those at the
        times.
        """
        from lissom.simulation.energy_balance import energy_made

        before = self.inputs
        after = np.concatenate([self.u, self.u[..., -1:, :]], axis=-2) if self.every == 1 else None
        if after is not None and self.stepping.law is not None:
            after = after + (before - np.concatenate([self.u[..., :1, :], self.u], axis=-2))
        arrays = [self.q, self.v, before, *([] if after is None else [after])]
        rows = [x.reshape(batch_of(self.lead), *x.shape[-2:]) for x in arrays]
        found = [
            energy_made(one, self.t, q, v, u, after=own[0] if own else None)
            for one, q, v, u, *own in zip(self._started(), *rows)
        ]
        return np.reshape(found, self.lead) if self.lead else found[0]

    def _started(self) -> list[Model]:
        """The model of each motion, with the anchors of its start."""
        anchors = self.path.anchors
        models = self.common.of_rows(len(self.path.q))
        return [one.anchored(own[0]) if anchors.shape[2] else one for one, own in zip(models, anchors)]

    @property
    def anchors(self) -> np.ndarray | None:
        """Anchors of contacts at all times, (n, n_pairs, 6), as in `contact_anchors`; None if no contact sticks."""
        rows = self.path.anchors
        return rows.reshape(*self.lead, *rows.shape[1:]) if rows.shape[2] else None

    @property
    def inputs(self) -> np.ndarray:
        """All inputs at all times, with those of a controller, (n, nu): at the ends of steps, before `u` jumps."""
        rows = self.path.u[:, self.every - 1 :: self.every]
        rows = np.concatenate([self.path.u[:, :1], rows], axis=1)
        u, q, v = (x.reshape(len(rows) * len(self.t), x.shape[-1]) for x in (rows, self.path.q, self.path.v))
        found = self.stepping.inputs(u, np.tile(self.t, len(rows)), q, v)
        return found.reshape(*self.lead, *rows.shape[1:])

    def backward(
        self,
        dL_dq: ArrayLike | None = None,
        dL_dv: ArrayLike | None = None,
        dL_da: ArrayLike | None = None,
        *,
        parameters: Sequence[str] = (),
    ) -> Gradient:
        """Derivatives of a function L of the motion, by one pass from its end to its start.

        Args:
            dL_dq, dL_dv, dL_da: derivatives of L with respect to q, in the tangent space of `integrate`, v and a at all
                times, shape (..., n, nv); None is zero. Further leading axes are several functions.
            parameters: paths of design values (`Robot.described_values`), numbers or arrays of numbers.
        Returns:
            Gradient.
        Raises:
            ShapeError: the argument, the expected and the received shape. ModelError: a path leads to no number.
        Accuracy: exact derivative of the steps, to rounding; by design values 1e-8, since their tables are differenced.
        Cost: about that of the motion for any number of inputs, and up to three times as much with contacts that
        stick; each number of a design value adds a tenth to a half of the motion.
        """
        given = {"dL_dq": dL_dq, "dL_dv": dL_dv, "dL_da": dL_da}
        return propagate_backward(self, given, parameters)

    def forward(
        self,
        dq0: ArrayLike | None = None,
        dv0: ArrayLike | None = None,
        du: ArrayLike | None = None,
        *,
        parameters: Mapping[str, Any] | None = None,
    ) -> Sensitivity:
        """Derivatives of the motion along directions, by one pass from its start to its end.

        Args:
            dq0, dv0: increments of q0, in the tangent space of `integrate`, and of v0, shape (..., nv). None is zero.
            du: increments of the inputs, shape (..., steps, nu). None is zero. Further leading axes are several
                directions.
            parameters: increments of design values by path, in the shape of each.
        Returns:
            Sensitivity.
        Raises:
            ShapeError, ModelError: as backward.
        Accuracy: as backward.
        """
        given = {"dq0": dq0, "dv0": dv0, "du": du}
        return propagate_forward(self, given, dict(parameters or {}))

    def step_matrices(self) -> tuple[np.ndarray, np.ndarray]:
        """A and B of each step: the increment x = (δq, δv, δa, δâ) of the state before the step becomes x' = A x + B δu
        after it.

        â is the auxiliary acceleration of the scheme. If contacts stick, x also has the increments of all `anchors`,
        6 n_pairs more; those of pairs without an anchor are zero.

        Returns:
            A, shape (..., steps, 4 nv, 4 nv), and B, shape (..., steps, 4 nv, nu).
        Raises:
            ModelError: the rollout has every > 1.
        """
        if self.every > 1:
            raise ModelError(f"every: must be 1 for the matrices of each step (got {self.every})")
        A, B = step_matrices(self)
        return A.reshape(*self.lead, *A.shape[1:]), B.reshape(*self.lead, *B.shape[1:])

    def error(self) -> tuple[np.ndarray, np.ndarray]:
        """Estimated errors of q and v by the size of the steps.

        The same motion is computed with steps of half the size. If the errors are of first order, it is computed with
        steps of a quarter too. With x_k the motion in steps of dt/k, the error x_1 − x of a scheme of order p is
        2ᵖ/(2ᵖ − 1) (x_1 − x_2). Implicit Euler is of first order. Schemes that begin a step with the acceleration of
        the last one are of first order if inputs change from step to step. An error of first and second order is

            x_1 − x = ⅔ (x_1 − x_2) + 8/3 (x_2 − x_4)                                                       (1)

        Returns:
            The errors of q, in the tangent space of `integrate`, and of v, at all times, shape (..., n, nv) each.
        Raises:
            ConvergenceError: Newton's method finds no shorter step.
        Accuracy: within a factor of two if the steps resolve the motion, mostly to the first significant digit.
            Otherwise, for instance if a scheme damps vibrations, the errors may be larger. Cost: that of two rollouts,
            or of six by (1).
        """
        half, order = self._with_smaller_steps(2), self.method.order
        apart = difference(self.common, half.q, self.q), self.v - half.v
        jumps = bool(np.any(np.diff(self.u, axis=-2)))
        if order > 1 and not (jumps and self.method.follows_accelerations):
            factor = 2.0**order / (2.0**order - 1.0)
            return factor * apart[0], factor * apart[1]
        quarter = self._with_smaller_steps(4)
        more = difference(self.common, quarter.q, half.q), half.v - quarter.v
        q, v = ((2.0 * first + 8.0 * second) / 3.0 for first, second in zip(apart, more))  # (1)
        return q, v

    def _with_smaller_steps(self, count: int) -> Rollout:
        """The same motion at the same times, with each step divided into `count` steps."""
        first = self.path.state(0)
        q0, v0 = (first[name].reshape(*self.lead, -1) for name in ("q", "v"))
        stepping = replace(self.stepping, dt=self.dt / count)
        return rolled(self.model, q0, v0, np.repeat(self.u, count, axis=-2), stepping, every=count * self.every)

    @cached_property
    def start_derivatives(self) -> StartDerivatives:
        """Derivatives of the initial state."""
        x, u, law = self.path.state(0), self.stepping.start_inputs(self.path), self.stepping.law
        return start_derivatives(self.common, x["q"], x["v"], x["a"], u, x["force"], x["anchors"], 0.0, law,
                                 self.impulse)  # fmt: skip

    def stretches(self, longest: int, *, back: bool = False) -> Iterator[Path]:
        """Parts of the path with at most `longest` steps, in order, or with back=True from the end. If not all states
        were kept, the steps between are computed once more."""
        points, whole = (self.steps // self.every, self.every) if self.every > 1 else (1, self.steps)
        for k in reversed(range(points)) if back else range(points):
            path = self.path if self.every == 1 else self._recomputed(k)
            each = -(-whole // -(-whole // longest))  # of one length
            edges = list(range(0, whole, each))
            for at in reversed(edges) if back else edges:
                yield path.part(at, min(at + each, whole))

    def _recomputed(self, k: int) -> Path:
        """The steps between times k and k + 1, computed once more."""
        first = k * self.every
        return self.stepping.run(self.common, self.path.state(k), self.path.u[:, first : first + self.every], first)


@renamed(scheme="method")
def rollout(
    model: Model | ModelBatch,
    q0: ArrayLike | None = None,
    v0: ArrayLike | None = None,
    u: ArrayLike | None = None,
    *,
    dt: float,
    steps: int | None = None,
    method: str | Scheme = "sdirk",
    every: int = 1,
    tolerance: float = 1e-11,
    controller: TracedFunction | None = None,
    progress: bool = False,
) -> Rollout:
    """Motion of a robot from t = 0 by steps of constant size, with exact derivatives.

    The steps are those of `simulate(method=, dt=)`, with converged Newton iterations and without shortened steps. Loops
    are closed as with `project_velocity=False`: A v = 0 to the accuracy of the scheme.

    Args:
        q0: start, shape (..., nq) [rad, m, or strain units]; None is `start_configuration`. Prescribed coordinates
            start on their motion, and loops are closed.
        v0: velocity before the start, shape (..., nv) [unit of q per s]; None is rest. The motion starts with the
            velocity of `assemble_velocities`, which satisfies loops and prescribed motions.
        u: inputs, constant during each step, shape (..., steps, nu), or (nu,) for all steps [N, m, Pa or N·m, by
            actuator]; None is zero.
        dt: size of the steps [s].
        steps: number of steps; None: the number of rows of u.
        method: "sdirk", "generalized_alpha", "newmark", "hht", "implicit_euler", "bathe", "esdirk", or the Scheme that
            one of the functions of these names returns. Inputs jump between steps: "sdirk" begins with q and v alone
            and is of second order. Schemes that begin with the acceleration of the last step, which belongs to the
            input before, are of first order then; "generalized_alpha" takes 0.6 of the time. With loops, couplings or
            wheels that hold positions, "sdirk" has three stages in place of two.
        every: number of steps between stored states. Derivatives compute the other states once more, which takes the
            time of one more motion and memory for that number of steps.
        tolerance: largest error of Newton's method, relative to a step [-].
        controller: a feedback law f(t, q, v) of `ls.TracedFunction`, or None. The inputs are f(t, q, v) + u at the end
            of each stage of a step, as by `simulate(controller=)`. Derivatives are those of the closed loop. Numbers
            that f reads besides its arguments are the present ones.
        progress: True shows the number of steps if the rollout takes longer than one second.
    Returns:
        Rollout, with `forward` and `backward`.
    Raises:
        ConvergenceError: Newton's method finds no step; the message gives its time.
        KeyboardInterrupt: Ctrl-C; its `partial` is the Rollout of the steps so far, if there are any.
        ModelError: an argument is wrong, or forces of a batch of models come from Python functions. ShapeError: the
            argument, the expected and the received shape.
    """
    stepping = fixed_steps(model, dt, method, tolerance, controller)
    return rolled(model, q0, v0, u, stepping, steps=steps, every=every, progress=progress)


def fixed_steps(
    model: Model | ModelBatch, dt: float, method: str | Scheme, tolerance: float, controller: Any
) -> FixedSteps:
    """The steps of a rollout. The numbers that a controller reads besides its arguments are the present ones.

    Raises:
        ModelError: as `rollout`.
    """
    common = model.common if isinstance(model, ModelBatch) else model
    if common.models and common.python_forces:
        rule = "a batch of models needs forces that kernels compute, none that a Python function gives"
        raise ModelError(f"robot {common.name!r}: {rule} (got one that does)")
    size, small = checks.number(dt, "dt", above=0.0), checks.number(tolerance, "tolerance", above=0.0)
    law = law_in_kernels(common, controller, "feedback_rollout takes functions in Python")
    return FixedSteps(at_positions(chosen_scheme(method, dt), common), float(size), float(small), law)


def rolled(
    model: Model | ModelBatch,
    q0: Any,
    v0: Any,
    u: Any,
    stepping: FixedSteps,
    *,
    steps: int | None = None,
    every: int = 1,
    progress: bool = False,
) -> Rollout:
    """A rollout by given steps, with the law of these steps. Arguments and errors as `rollout`."""
    common = model.common if isinstance(model, ModelBatch) else model
    scheme, dt = stepping.scheme, stepping.dt
    checks.integer(every, "every", least=1)
    start = default_start(common) if q0 is None else checked_configuration(common, "q0", q0)
    speed = np.zeros(common.nv) if v0 is None else stack("v0", v0, common.nv)
    require_finite_rows(v0=speed)
    inputs = _inputs(common, u, steps)
    lead = lead_of_models(common, leading(q0=start, v0=speed, u=inputs[..., 0, :]))
    n, n_steps = batch_of(lead), np.shape(inputs)[-2]
    if n_steps % every:
        raise ModelError(f"every: must divide the number of steps, {n_steps} (got {every})")
    u_rows = np.broadcast_to(inputs, (*lead, n_steps, common.nu)).reshape(n, n_steps, common.nu)
    require_motions_until(common, dt * n_steps)
    q, v, impulse = _consistent_starts(common, flat(start, lead), flat(speed, lead))
    if stepping.law is None:
        warn_of_pushing(common, u_rows, depth=5)
    u0 = stepping.inputs(u_rows[:, 0], np.zeros(n), q, v)
    anchors, a, force = initial_values(common, q, v, u0)
    for k in range(min(n, CHECKED)):
        warn_of_start(common.of_row(k, n), q[k], lambda k=k: a[k])
    ahead = a if scheme.follows_accelerations else np.zeros_like(a)  # a is a bad start if fast vibrations are excited
    begin = {"q": q, "v": v, "a": ahead, "ahead": ahead, "force": force, "anchors": anchors}

    cost, began = Cost(), time.perf_counter()

    def result(path: Path) -> Rollout:
        took = time.perf_counter() - began
        counted = cost.steps, cost.evaluations, cost.matrices, took
        damping = {"damped": cost.damped, "damped_time": took * cost.damped_share}
        ends = list(path.q[:, -1:])  # steps do not count their last end in Python
        deepest = max(cost.deepest, float(largest_depths(common.of_rows(n), ends).max()))
        known = Statistics(scheme.name, *counted, **damping, plastic=cost.plastic, deepest=deepest)
        path.a[:, 0] = path.ahead[:, 0] = a
        t = dt * np.arange(0, path.steps + 1, every)
        q, v, rate, taken = (x.reshape((*lead, *x.shape[1:])) for x in (path.q, path.v, path.a, path.u))
        found = Rollout(t, q, v, rate, taken, scheme, dt, every, model, path, stepping, known, impulse)
        if stepping.law is not None:
            warn_of_pushing(common, found.inputs, depth=6)
        return found

    with progress_bar(progress, n_steps, "rollout", "steps", PATIENCE) as report:
        try:
            if every == 1:
                return result(stepping.run(common, begin, u_rows, report=report, cost=cost))
            return result(_sparse_path(common, stepping, begin, u_rows, every, report, cost))
        except KeyboardInterrupt as stop:
            path = getattr(stop, "partial", None)
            stop.partial = None if path is None else result(path)  # type: ignore[attr-defined]
            raise


def chosen_scheme(scheme: str | Scheme, dt: float) -> Scheme:
    """The scheme from its name, or a Scheme itself.

    Raises:
        ModelError: the method is not an implicit scheme with steps of constant size.
    """
    run, name, _ = chosen_method(scheme, dt=dt)
    own: Any = scheme if isinstance(scheme, Scheme) else getattr(run, "keywords", {}).get("scheme")
    if not isinstance(own, Scheme):
        raise ModelError(f"method: must be implicit, with steps of one size (got {name!r})")
    return own


def _inputs(model: Model, u: Any, steps: int | None) -> np.ndarray:
    """u as (..., steps, nu)."""
    rows = np.zeros(model.nu) if u is None else stack("u", u, model.nu)
    if not np.isfinite(rows).all():
        raise ShapeError("u: must be finite, got NaN or infinity")
    if steps is not None:
        checks.integer(steps, "steps", least=1)
    if rows.ndim == 1:
        if steps is None:
            raise ModelError("steps: must be given if u is constant (got None)")
        return np.broadcast_to(rows, (steps, model.nu))
    count = np.shape(rows)[-2]
    if count != (steps or count) or count == 0:
        raise ShapeError(f"u: expected shape (..., {steps or 'steps'}, {model.nu}), got {rows.shape}")
    return rows


def _consistent_starts(model: Model, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Initial states with closed loops and on prescribed motions, and the changes of velocity by an impulse."""
    q, v, before = q.copy(), v.copy(), v.copy()
    for i, own in enumerate(model.of_rows(len(q))):
        with of_instance(i, len(q)):
            q[i], found = consistent_start(own, 0.0, q[i], v[i])
            moved = prescribed_state(own, 0.0, q[i], v[i])[1]
            before[i] = velocity_before(own, q[i], moved, v[i]) if own.n_rows else moved
            v[i] = found
    return q, v, v - before


def _sparse_path(
    model: Model,
    stepping: FixedSteps,
    begin: dict[str, np.ndarray],
    u: np.ndarray,
    every: int,
    report: Callable[[float], None],
    cost: Cost,
) -> Path:
    """The path with the states after every `every` steps only."""
    kept = {name: [x] for name, x in begin.items()}

    def so_far(count: int) -> Path:
        rows = {name: np.stack(x[: count + 1], axis=1) for name, x in kept.items()}
        none = {"earlier": np.zeros((len(u), 0, 0, 3, model.nv)), "scheme": np.zeros((len(u), 0), dtype=int)}
        return Path(0, **rows, u=u[:, : count * every], **none)

    count = 0
    with keeping(lambda: so_far(count) if count else None):
        for first in range(0, u.shape[1], every):
            begin = stepping.run(model, begin, u[:, first : first + every], first, report, cost).state(-1)
            for name, x in begin.items():
                kept[name].append(x)
            count += 1
    return so_far(count)


@final
@formatting.in_one_line
@dataclass(frozen=True)
class Step:
    """The end of a step, and its derivatives. A batch adds leading axes.

    Fields:
        q, v: state at the end, (nq,) and (nv,).
        A: derivative of (q, v) at the end with respect to (q, v) at the start, in the tangent spaces of `integrate`,
            (2 nv, 2 nv).
        B: derivative with respect to the inputs, (2 nv, nu).
    """

    q: np.ndarray
    v: np.ndarray
    A: np.ndarray
    B: np.ndarray


@renamed(scheme="method")
def step_derivatives(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    u: ArrayLike | None = None,
    *,
    dt: float,
    method: str | Scheme = "sdirk",
    tolerance: float = 1e-11,
    controller: TracedFunction | None = None,
) -> Step:
    """One step from a state with the acceleration there, and its exact derivatives.

    Args:
        q: configuration, shape (..., nq) [rad, m, or strain units].
        v: velocity, shape (..., nv) [unit of q per s].
        u: inputs, constant during the step, shape (..., nu) [N, m, Pa or N·m, by actuator]; None is zero.
        dt: size of the step [s]. The step begins at t = 0.
        method, tolerance, controller: as `rollout`. With a controller A and B are those of the closed loop.
    Returns:
        Step. States of a batch are computed in one launch.
    Raises:
        ConvergenceError, ModelError, ShapeError: as rollout.
    Accuracy: exact derivative of the step. Second-order schemes with an auxiliary acceleration â are of first order in
    v if each step begins with the acceleration of its state. "bathe", "sdirk", "esdirk" and newmark() keep their order.
    """
    forbid_anchors(model)
    q, v = checked_configuration(model, "q", q), stack("v", v, model.nv)
    require_finite_rows(v=v)
    inputs = np.zeros(model.nu) if u is None else stack("u", u, model.nu)
    lead = leading(q=q, v=v, u=inputs)
    n, nv, nu = batch_of(lead), model.nv, model.nu
    options: dict[str, Any] = {"dt": dt, "steps": 1, "method": method, "tolerance": tolerance, "controller": controller}
    motion = rollout(model, flat(q, lead), flat(v, lead), flat(inputs, lead).reshape(n, 1, nu), **options)
    matrix = path_matrices(motion, motion.path, _derivatives_at_start(motion), accelerations=False)[:, 0]
    matrix = matrix.reshape(*lead, 2 * nv, 2 * nv + nu)
    end, speed = motion.q[:, 1].reshape(*lead, model.nq), motion.v[:, 1].reshape(*lead, nv)
    return Step(end, speed, matrix[..., : 2 * nv], matrix[..., 2 * nv :])


def _derivatives_at_start(motion: Rollout) -> np.ndarray:
    """Derivative of (q, v, a, â) at the start by (q0, v0, u), shape (n, 4 nv, 2 nv + nu), or one matrix for all."""
    nv, nu, model = motion.common.nv, motion.common.nu, motion.common
    if not (motion.method.follows_accelerations or model.n_rows or len(model.prescribed.dof)):
        return np.eye(4 * nv, 2 * nv + nu)
    s, n = motion.start_derivatives, len(motion.path.q)
    start = np.zeros((n, 4, nv, 2 * nv + nu))
    start[:, 0, :, :nv], start[:, 1, :, nv : 2 * nv] = s.onto_q, s.onto_v
    start[:, 1] += s.carried @ start[:, 0]
    right = -s.by_q @ start[:, 0] - s.by_v @ start[:, 1]
    right[..., 2 * nv :] += s.B
    start[:, 2] = start[:, 3] = (s.solve @ right)[:, :nv]
    return start.reshape(n, 4 * nv, -1)


_LEAST = 1e-3  # of the largest derivative: smaller ones count as zero
_STEPS = 10.0 ** -np.arange(2.0, 5.5, 0.5)  # of a direction of natural size


@final
@formatting.in_one_line
@dataclass(frozen=True)
class GradientCheck:
    """Derivatives of a loss along one random direction of each argument: "q0", "v0", "u" and paths of design values.

    Fields:
        exact: directional derivatives by the gradient.
        differenced: directional derivatives by differences of fourth order.
        uncertainty: difference between the two best estimates by differences, divided by the size of the gradient with
            respect to the argument, or by a thousandth of the largest of these sizes if that is more [-]. It is large
            if the motion is chaotic or has kinks.
        error: |exact − differenced|, divided by the same size [-].
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
        motion: a single rollout.
        loss: function of a rollout that returns a number.
        gradient: gradient of the loss, the result of `motion.backward`.
        seed: seed of the random directions.
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
    q0, v0, scale = motion.path.q[0, 0], motion.path.v[0, 0] - motion.impulse[0], model.dofs.scale
    onto = motion.start_derivatives.onto_q[0]

    def loss_of(own: Model, q: np.ndarray, v: np.ndarray, u: np.ndarray) -> float:
        q = assemble(own, q) if own.n_rows else q
        return float(loss(rolled(own, q, v, u, motion.stepping, every=motion.every)))

    directions: dict[str, tuple[float, float, Callable[[float], float]]] = {}
    dq, dv = onto @ (rng.normal(size=model.nv) * scale), rng.normal(size=model.nv) * scale
    size_u = size_of(motion.u, default=1.0)
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
