"""Simulation of a robot: choice of the method, collection of the motion, progress, and error estimate.

The error of a motion is estimated from a second, finer motion. For a scheme of order p the finer motion has half the
step, x_h/2 and x_h; otherwise it has a tenth of the tolerance, x' and x. At the same times,

    x_h − x ≈ (x_h − x_h/2) / (1 − 2⁻ᵖ),   or   x − x'                                                    (1)

Tolerances bound the error of one step. Damping reduces these errors along a motion. In a fast motion without damping
they may grow with e^(λt), with the largest Lyapunov exponent λ; tolerances do not bound this growth.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lissom.dynamics.actuation import warn_of_pushing
from lissom.dynamics.assembly import consistent_start, require_motions_until
from lissom.dynamics.configuration import checked_configuration, difference
from lissom.dynamics.constraints import constraint_kernel
from lissom.dynamics.contacts import contact_anchors, contacts_kernel, largest_depth, present_anchors
from lissom.dynamics.forward_dynamics import accelerations_kernel
from lissom.dynamics.inverse_dynamics_derivatives import residual_derivatives_kernel
from lissom.dynamics.kinematics import frames_kernel, motion_kernel
from lissom.dynamics.loads import steps_of_inputs
from lissom.dynamics.mass_matrix import kernel_of
from lissom.dynamics.start import CHECKED, default_start, warn_of_start
from lissom.errors import (
    AccuracyWarning,
    ConvergenceError,
    ModelError,
    PlausibilityWarning,
    ShapeError,
    check_kept,
    of_instance,
)
from lissom.launch.compiling import load_kernels
from lissom.launch.cores import run_on_pool
from lissom.launch.over_models import lead_of_models
from lissom.launch.progress import progress_bar
from lissom.launch.workspace import batch_of, leading, stack
from lissom.model.model import Model
from lissom.model.model_batch import ModelBatch
from lissom.model.plausibility import warn_of_shapes, warn_of_wheels
from lissom.robot import checks
from lissom.robot.expression_programs import Steps
from lissom.robot.traced_functions import TracedFunction
from lissom.simulation.batches import Batch, reason_to_separate, simulate_batch
from lissom.simulation.external_integrators import (
    DIFFERENCING,
    SCIPY_METHODS,
    integrate_bdf,
    integrate_scipy,
    quiet_sundials,
)
from lissom.simulation.implicit_methods import integrate_implicit
from lissom.simulation.inputs import Controller, InputRows, control_law, traced_law
from lissom.simulation.streams import Stream
from lissom.simulation.trajectory import Trajectory, motion_arrays
from lissom.stepping.contact_search import contact_search_kernel
from lissom.stepping.driver import accelerations
from lissom.stepping.schemes import (
    Scheme,
    at_positions,
    bathe,
    esdirk,
    generalized_alpha,
    hht,
    implicit_euler,
    newmark,
    sdirk,
)
from lissom.stepping.state import StateDerivative
from lissom.stepping.statistics import Statistics
from lissom.stepping.step_kernel import steps_kernel

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from lissom.simulation.inputs import Samples


_MOST_STEPS = 1e15  # largest number of steps, which are counted by integers
METHODS: dict[str, Callable[..., Iterator[Any]]] = {"bdf": integrate_bdf}
METHODS |= {name: partial(integrate_scipy, method=name) for name in SCIPY_METHODS}
METHODS |= {
    make.__name__: partial(integrate_implicit, scheme=make())
    for make in (generalized_alpha, newmark, hht, implicit_euler, bathe, esdirk, sdirk)
}


def simulate(
    model: Model | ModelBatch,
    duration: float,
    q0: ArrayLike | None = None,
    v0: ArrayLike | None = None,
    u: ArrayLike | Samples | Callable[[float], ArrayLike] | None = None,
    *,
    method: str | Scheme = "auto",
    dt: float | None = None,
    rtol: float = 1e-6,
    atol: float | tuple[float, float] = 1e-8,
    t_eval: ArrayLike | None = None,
    controller: Any = None,
    period: float | None = None,
    project_velocity: bool = True,
    progress: bool | Callable[[float], Any] = False,
    out: Any = None,
    flush: float = 10.0,
    check: bool = False,
    jacobian: str = "exact",
    baumgarte_time: float | None = None,
) -> Trajectory:
    """Motion of a robot from t = 0.

        M(q) a + c(q, v) + g(q) + K q + D v = B(q) u + F_ext + A(q)ᵀ λ,   e(q) = 0

    Skates and rolling wheels add rows A(q) v = 0 without e.

    Args:
        duration: end time [s].
        q0: start, shape (..., nq) [rad, m, or strain units]; None is `start_configuration`. Coordinates with a
            prescribed motion start on this motion, not at q0.
        v0: velocity before the start, shape (..., nv) [unit of q per s]; None is rest. The motion starts with the
            velocity of `assemble_velocities`, which satisfies loops and prescribed motions.
        u: inputs [N, m, Pa or N·m, by actuator]: an array (..., nu); ls.Samples, whose u may have leading axes; an
            ls.Expression of t with nu components, or a list of nu expressions and numbers; or a function of t that
            returns (nu,), also as an ls.TracedFunction, which kernels evaluate. None is zero.
        method: name of the method, or a scheme object:
            "bdf": SUNDIALS CVODE, adaptive, for stiff robots;
            "generalized_alpha", "newmark", "hht", "implicit_euler", "bathe", "sdirk", "esdirk", or the result of the
            function with this name: implicit, on the configuration manifold;
            "radau" (implicit, order 5) and "dop853" (explicit, order 8): SciPy;
            "auto": "generalized_alpha" if dt is given, otherwise "esdirk". If each evaluation calls Python and no dt is
            given, it is "bdf", except for robots with Python joints or bodies that vibrate without damping.
            "bdf", "radau" and "dop853" do not support contacts that stick. `statistics` of the result names the method.
        dt: step size of the implicit schemes [s]; None is an adaptive step size. For the other methods it is the
            largest step.
        rtol, atol: relative and absolute tolerance of the components of the state. atol may be a pair, for q and for v.
            The implicit schemes apply them to q only; "esdirk" also to v, relative to the fastest coordinate. With
            fixed steps they bound the error of Newton's iteration, which is also kept below the error of the step.
        t_eval: times to return, ascending in [0, duration], shape (n,); None returns the start and every step.
        controller: function of (t, q, v) that returns u; an ls.TracedFunction of them, which kernels evaluate; or an
            ls.Controller with a state. Then leave out `u`, unless both are an ls.TracedFunction: the inputs are then
            their sum.
        period: sampling period of the controller [s]: it is called once a period, and u is constant in between. None:
            it is called at every evaluation.
        project_velocity: True: the implicit schemes project the velocity onto A v = 0 of the loops after every step.
            False: the velocity satisfies this to the accuracy of the scheme; "sdirk" has three stages then.
        progress: True shows a progress bar. A function is called with the time reached [s] now and then; an error that
            it raises ends the simulation.
        out: path of a new or an empty folder to which a single motion is written during the simulation, so that memory
            use does not grow with its length. `resume` continues an interrupted motion. With `out`, the methods of
            SUNDIALS and SciPy restart every 2000 steps, because their inner state cannot be stored.
        flush: time between two writes to `out` [s]. A killed process loses the points after the last write.
        check: True simulates a second time, with a tenth of the tolerances or half of a fixed dt. `statistics.error` is
            then the estimated error of q: the largest over all times, divided by the largest distance of a coordinate
            from its start. An AccuracyWarning is issued if it is above 0.01.
        jacobian: "exact": implicit methods get the exact derivative of the state's rate. "differences": "bdf" and
            "radau" estimate it by differences of the rate, as solvers do that know nothing of the robot; for
            comparisons.
        baumgarte_time: T of "bdf", "radau" and "dop853" for robots with loops [s]: gaps e obey ë + 2 ė/T + e/T² = 0.
            None: twice the longest recent step, at least 0.01 s. The implicit schemes close loops in each step.
    Returns:
        Trajectory. With `out`, its arrays stay on the disk. Leading axes of q0, v0 or u give a batch, which needs
        t_eval. An implicit scheme computes the steps of the whole batch in the same launches, on all cores, if no
        controller in Python and no Python force acts.
    Raises:
        ConvergenceError: the method failed; the message gives time, reason and a remedy. The error carries the
            Trajectory so far.
        KeyboardInterrupt: Ctrl-C. Its attribute `partial` is the Trajectory so far, if it has a point; for a batch a
            tuple, with one for each motion that was begun.
        ModelError, ShapeError: an argument is wrong, or q0 leaves a loop open.
    """
    model = model.common if isinstance(model, ModelBatch) else model
    given = {"model": model, "duration": duration, "q0": q0, "v0": v0, "u": u, "method": method, "dt": dt, "rtol": rtol}
    given |= {"atol": atol, "t_eval": t_eval, "controller": controller, "period": period}
    given |= {"project_velocity": project_velocity, "jacobian": jacobian, "baumgarte_time": baumgarte_time}
    motion = _simulated(None if out is None else Stream(Path(out), given, flush), progress, **given)
    motion = replace(motion, model=model)
    return _with_error(motion, given) if check else motion


def resume(path: str | Path, *, progress: bool = False) -> Trajectory:
    """Continue an interrupted motion of `simulate(out=)`. The result equals an uninterrupted motion bit for bit.

    The files of an unfinished motion are pickles, which can run code: resume only folders that you trust.

    Args:
        path: the folder.
        progress: True shows a progress bar of the time reached [s].
    Returns:
        Trajectory, whose arrays stay on the disk until they are used. A finished motion is returned at once, without
        its model, as by `Trajectory.load`.
    Raises:
        ModelError: the folder holds no motion, or a file is damaged.
        ConvergenceError: as for `simulate`.
    """
    stream = Stream.open(path)
    if stream.is_finished:
        return Trajectory.load(path)
    return replace(_simulated(stream, progress, **stream.arguments), model=stream.arguments["model"])


def _simulated(
    stream: Stream | None, progress: Any, *, model: Model, duration: float, q0: Any, v0: Any, u: Any, method: Any,
    dt: float | None, rtol: float, atol: Any, t_eval: Any, controller: Any, period: float | None,
    project_velocity: bool, jacobian: str = "exact", baumgarte_time: float | None = None,
) -> Trajectory:  # fmt: skip
    """The result of `simulate` for its arguments. A stream with a checkpoint continues from the checkpoint."""
    if stream is not None:
        stream.check()
    if isinstance(u, TracedFunction):
        u, controller = None, traced_law(u, controller, period)
    start = default_start(model) if q0 is None else checked_configuration(model, "q0", q0)
    speed = np.zeros(model.nv) if v0 is None else stack("v0", v0, model.nv)
    if not np.isfinite(speed).all():
        raise ShapeError("v0: must be finite, got NaN or infinity")
    atols: Any = atol if isinstance(atol, tuple) and len(atol) == 2 else (atol, atol)
    sizes = {"duration": duration, "rtol": rtol, "atol": atols[0], "atol of v": atols[1]}
    _check_numbers(**sizes, **({} if dt is None else {"dt": dt}))
    for name, part in (("dt", dt), ("period", period)):
        if isinstance(part, int | float | np.number) and part > 0 and duration / part > _MOST_STEPS:
            rule = f"duration: must be at most {_MOST_STEPS:g} times {name} = {part:g} s"
            raise ModelError(f"{rule} (got {duration:g} s)")
    require_motions_until(model, float(duration))
    law = controller if period is None else None
    run, method, why = chosen_method(method, model.of_row(0, 1), law, dt)
    if not project_velocity and getattr(run, "func", None) is integrate_implicit:
        run = partial(integrate_implicit, scheme=at_positions(run.keywords["scheme"], model.of_row(0, 1)))
    _check_anchors(model.of_row(0, 1), run, method)
    _check_jacobian(jacobian, method)
    _check_baumgarte(baumgarte_time, model, getattr(run, "func", None) is integrate_implicit, method)
    given = InputRows(model, u)
    has_law = is_native(model, law)
    is_fused = (controller is None or has_law) and _is_fused(model, run)
    _load_ahead(model.of_row(0, 1), is_fused, dt is None, given.programs if dt is None else [], has_law)
    wanted = _times(t_eval, float(duration))
    times = wanted if wanted is None or wanted[0] == 0.0 else np.concatenate([[0.0], wanted])
    lead = lead_of_models(model, leading(q0=start, v0=speed, u=np.zeros((*given.lead, model.nu))))
    if lead and stream is not None:
        raise ShapeError(f"out: takes one motion, got a batch of shape {lead}")
    rows = given.u if isinstance(given.u, np.ndarray) and given.u.ndim == 2 and not model.models else None
    cure = "is a batch of motions under constant inputs; inputs over time are ls.Samples(times, u)"
    meaning = "" if rows is None else f"u of shape {rows.shape} {cure}"
    if lead and times is None:
        more = f"; {meaning}" if meaning else ""
        raise ShapeError(f"t_eval: a batch of shape {lead} needs common times, got None{more}")
    if meaning and wanted is not None and lead == wanted.shape and start.ndim == speed.ndim == 1:
        warnings.warn(meaning, PlausibilityWarning, stacklevel=2)
    count, inputs, left_out = batch_of(lead), given.over(lead), 0 if times is wanted else 1
    starts, speeds = (np.broadcast_to(x, lead + x.shape[-1:]).reshape(count, x.shape[-1]) for x in (start, speed))
    nz = len(controller.start) if isinstance(controller, Controller) else 0
    motions, begun = [], _begun(model, starts, speeds)
    is_implicit = getattr(run, "func", None) is integrate_implicit
    apart = reason_to_separate(model, is_implicit, inputs, controller, dt is not None)
    if count > 1 and times is not None and not apart:
        given_law = control_law(model.of_row(0, 1), inputs.of(0) if controller is None else u, controller, period)
        q, v = (np.array(x) for x in zip(*begun))
        for k in range(min(count, CHECKED)):
            with of_instance(k, count):
                _warn_of_start(
                    model.of_row(k, count), q[k], v[k],
                    lambda k=k: given_law.inputs(0.0, q[k], v[k], given_law.start) if controller is not None
                    else inputs.row(k, 0.0)
                )  # fmt: skip
        scheme, limits = run.keywords["scheme"], (rtol, atols, project_velocity)
        batch = Batch(model, scheme, q, v, inputs, times, float(duration), *limits, given_law.native, given_law.period)
        motions = simulate_batch(batch, method, dt, left_out, progress)
        return _explained(_stacked(model, method, motions, lead, wanted, nz), why)
    for i, begin in enumerate(begun):
        own = model.of_row(i, count)
        with of_instance(i, count), progress_bar(progress, float(duration)) as advance:
            law = control_law(own, inputs.of(i), controller, period)
            if i < CHECKED:
                _warn_of_start(own, *begin, lambda law=law, begin=begin: law.inputs(0.0, *begin, law.start))
            if own.contacts.sticks:
                own = own.anchored(contact_anchors(own, *begin))
            f = StateDerivative(own, law, jacobian == "exact", baumgarte_time)
            x0 = np.concatenate([*begin, law.carried])
            given = times, float(duration), law.period, rtol, atols, dt, project_velocity
            try:
                if stream is not None:
                    return stream.collect(own, f, partial(run, own, f, x0, *given), method, why, advance, left_out)
                motions.append(_collect(own, f, run(own, f, x0, *given), method, advance, left_out))
            except KeyboardInterrupt as stop:
                if lead and (begun := (*motions, *filter(None, [getattr(stop, "partial", None)]))):
                    stop.partial = begun  # type: ignore[attr-defined]
                raise
            finally:
                f.end()
    for own, motion in zip(model.of_rows(count), motions):
        warn_of_pushing(own, motion.u)
        warn_of_shapes(own, motion.q, motion.t)
        warn_of_wheels(own, motion.multipliers, motion.t)
    if count > 1:
        why = "; ".join(filter(None, (why, f"one motion after the other: {apart}")))
    return _explained(motions[0] if not lead else _stacked(model, method, motions, lead, wanted, nz), why)


def _with_error(motion: Trajectory, given: dict[str, Any]) -> Trajectory:
    """The motion with its estimated error in `statistics`, from a second, finer motion."""
    one, dt, atol, controller = given["model"].of_row(0, 1), given["dt"], given["atol"], given["controller"]
    run, _, _ = chosen_method(given["method"], one, controller if given["period"] is None else None, dt)
    finer: dict[str, Any] = {"rtol": 0.1 * given["rtol"], "atol": tuple((0.1 * np.broadcast_to(atol, 2)).tolist())}
    share = 1.0
    if dt is not None and getattr(run, "func", None) is integrate_implicit:
        finer, share = {"dt": 0.5 * dt}, 1.0 - 0.5 ** run.keywords["scheme"].order
    finer["t_eval"] = motion.t
    other = _simulated(None, False, **(given | finer))
    error = global_error(one, motion.q, other.q) / share
    warn_of_error(error)
    return replace(motion, statistics=replace(motion.statistics, error=error))


def _explained(motion: Trajectory, why: str) -> Trajectory:
    """The motion with the reason for its method as remark in `statistics`."""
    if not why:
        return motion
    cost = motion.statistics
    remark = "; ".join(filter(None, (why, cost.remark)))
    return replace(motion, statistics=replace(cost, remark=remark))


def _is_fused(model: Model, run: Callable[..., Iterator[Any]]) -> bool:
    """Whether the kernel takes fixed steps without Python between them, except for a controller."""
    return getattr(run, "func", None) is integrate_implicit and not model.calls_python


def is_native(model: Model, law: Any) -> bool:
    """Whether kernels can evaluate a continuous controller."""
    return isinstance(law, TracedFunction) and model.device == "cpu" and not model.calls_python


def _load_ahead(model: Model, is_fused: bool, is_adaptive: bool, formulas: list[Steps], has_law: bool) -> None:
    """Load all kernels of a motion. A fused step kernel evaluates inputs by `formulas`, and a law if has_law."""
    drives = len(steps_of_inputs(model, formulas))
    steps = steps_kernel(model, drives, has_law) if is_fused else residual_derivatives_kernel
    loops = (constraint_kernel, kernel_of(model)) if model.n_rows else ()
    searches = is_fused and is_adaptive and not model.n_motions  # whether the step kernel searches for contacts
    contacts = (contact_search_kernel,) if len(model.contacts.pair) and not searches else ()
    if model.contacts.sticks:
        contacts = *contacts, contacts_kernel
    kernels = (steps, accelerations_kernel(model), *loops, *contacts)
    load_kernels(model, f"simulate by {steps.__name__}", *kernels, then=(frames_kernel, motion_kernel))


def _begun(model: Model, q: np.ndarray, v: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the start (q, v) of each motion, corrected to satisfy the loops and the prescribed motions."""
    for i, own in enumerate(model.of_rows(len(q))):
        with of_instance(i, len(q)):
            yield consistent_start(own, 0.0, q[i], v[i])


def _warn_of_start(model: Model, q: np.ndarray, v: np.ndarray, inputs: Callable[[], np.ndarray]) -> None:
    """Warn if violated stops or contacts throw the robot at the start (q, v) of a motion, under the inputs that a
    function returns. It is called if something is violated."""
    warn_of_start(model, q, lambda: accelerations(model, 0.0, q[None], v[None], inputs()[None])[0][0])


def chosen_method(
    method: Any, model: Model | None = None, law: Any = None, dt: float | None = None
) -> tuple[Callable[..., Iterator[Any]], str, str]:
    """The integrator, its name, and the reason for the choice of "auto".

    Args:
        method, dt: as in `simulate`.
        model: the model, on which "auto" depends.
        law: controller that acts continuously; None if there is none.
    Raises:
        ModelError: there is no method of this name, or steps of a scheme without estimated errors need a dt.
    """
    if isinstance(method, Scheme):
        if dt is None:
            method.check_estimate()
        return partial(integrate_implicit, scheme=method), method.name, ""
    if method == "auto":
        if dt is not None:
            return (
                METHODS["generalized_alpha"],
                "generalized_alpha",
                "auto: steps of a given size, stable for stiff robots",
            )
        has_feedback = law is not None and (model is None or not is_native(model, law))
        asks = has_feedback or (model is not None and model.calls_python)
        if asks and model is not None and not model.contacts.sticks:
            if not (model.calls_python and _rings(model)):
                return METHODS["bdf"], "bdf", "auto: each evaluation calls Python, and bdf needs few of them"
            return METHODS["esdirk"], "esdirk", "auto: vibrations without damping keep their energy, unlike by bdf"
        return METHODS["esdirk"], "esdirk", "auto: order 4, for stiff robots, with steps in the kernel"
    if not isinstance(method, str) or method not in METHODS:
        raise ModelError(f"method: must be one of {[*sorted(METHODS), 'auto']} (got {method!r})")
    return METHODS[method], method, ""


def _rings(model: Model) -> bool:
    """Whether a coordinate or a deformable body has a stiffness but no damping."""
    stiff, damped = (np.diag(x) > 0.0 for x in (model.elasticity.stiffness, model.elasticity.damping))
    bodies = (body.material.damping_time == 0.0 for body in model.deforming.integrals)
    return bool((stiff & ~damped).any()) or any(bodies)


def _check_anchors(model: Model, run: Callable[..., Iterator[Any]], method: str) -> None:
    """Raise ModelError if contacts stick and the method does not store anchors."""
    if model.contacts.sticks and getattr(run, "func", None) is not integrate_implicit:
        raise ModelError(
            f"contact {model.contacts.sticking[0]!r}: stick_stiffness needs a method that stores the anchors of "
            f"contacts: take 'generalized_alpha', 'newmark', 'hht', 'implicit_euler', 'bathe', 'sdirk' or 'esdirk', or "
            f"give the contact a slip_speed (got {method!r})"
        )


def _check_jacobian(jacobian: str, method: str) -> None:
    """Raise ModelError if the method cannot have a Jacobian of this kind."""
    known = checks.among(jacobian, ("exact", "differences"))
    checks.require(known, "jacobian", "must be 'exact' or 'differences'", jacobian)
    if jacobian == "differences" and method not in DIFFERENCING:
        raise ModelError(
            f"jacobian: 'differences' needs method='bdf' or method='radau', which can form them (got {method!r}); "
            "leave it out, or choose one of these methods"
        )


def _check_baumgarte(baumgarte_time: Any, model: Model, is_implicit: bool, method: str) -> None:
    """Raise ModelError if a rate of closing is given to a method or a robot that has no use for it."""
    if baumgarte_time is None:
        return
    checks.number(baumgarte_time, "baumgarte_time", above=0.0)
    if is_implicit:
        rule = "needs method='bdf', 'radau' or 'dop853'; the implicit schemes close loops in each step"
        raise ModelError(f"baumgarte_time: {rule}; leave it out (got {method!r})")
    rule = "needs a robot with loops or couplings; leave it out"
    checks.require(model.n_rows > 0, "baumgarte_time", rule, baumgarte_time)


def _check_numbers(**values: Any) -> None:
    for name, value in values.items():
        good = isinstance(value, int | float | np.number) and np.isfinite(value) and value > 0
        if not good:
            raise ModelError(f"{name}: must be a finite number > 0 (got {value!r})")


def _times(t_eval: Any, duration: float) -> np.ndarray | None:
    """The wanted times, checked."""
    if t_eval is None:
        return None
    check_kept("t_eval", t_eval)
    try:
        times = np.atleast_1d(np.array(t_eval, dtype=np.float64))
    except (TypeError, ValueError, OverflowError):
        raise ShapeError(f"t_eval: expected shape (n,), got {t_eval!r}") from None
    if times.ndim != 1 or len(times) == 0:
        raise ShapeError(f"t_eval: expected shape (n,), got {times.shape}")
    inside = np.isfinite(times).all() and times[0] >= 0.0 and times[-1] <= duration * (1 + 1e-12)
    if not inside or np.any(np.diff(times) <= 0):
        raise ShapeError(f"t_eval: must rise strictly within [0, {duration:g}], got {t_eval!r}")
    return np.minimum(times, duration)


def _collect(
    model: Model, f: StateDerivative, points: Iterator[Any], method: str, advance: Any, left_out: int
) -> Trajectory:
    """Run the method to its end, or to its failure; the error then carries the motion so far.

    A point is (t, x, (u, z), steps so far), with x = (q, v) or (q, v, a, λ of loops). Several points have a leading
    axis. The first `left_out` points (the start, or none) are not returned.
    """
    rows, steps = [], 0
    began = time.perf_counter()

    def so_far() -> Trajectory:
        times, states, shown = (np.concatenate(parts) for parts in zip(*rows))
        arrays = motion_arrays(model, times, states[None], shown[None])
        remark = f.monitor.remark if f.monitor is not None else ""
        counts = method != "bdf" and method not in SCIPY_METHODS  # but for the last end, in Python
        seen = slice(-1, None) if counts else slice(None)
        deepest = max(f.deepest, largest_depth(model, arrays["q"][0, seen]))
        cost = Statistics(method, steps, f.evaluations, f.jacobians, time.perf_counter() - began, remark,
                          parts=f.parts, plastic=f.plastic, deepest=deepest)  # fmt: skip
        asked: dict[str, Any] = {name: array[0, left_out:] for name, array in arrays.items()}
        return Trajectory(times[left_out:], **asked, statistics=cost, anchors=present_anchors(model))

    try:
        with quiet_sundials() if method == "bdf" else nullcontext():
            for time_now, state, inputs, taken in points:
                steps = taken
                rows.append((np.atleast_1d(time_now), np.atleast_2d(state), np.atleast_2d(inputs)))
                advance(rows[-1][0][-1])
    except ConvergenceError as error:
        raise ConvergenceError(str(error), so_far()) from error
    except KeyboardInterrupt as error:
        if rows:
            error.partial = so_far()  # type: ignore[attr-defined]
        raise
    return so_far()


def _stacked(
    model: Model, method: str, motions: list[Trajectory], lead: tuple[int, ...], times: np.ndarray | None, nz: int
) -> Trajectory:
    costs = [motion.statistics for motion in motions]
    counts = ("steps", "evaluations", "jacobians", "wall_time", "parts", "plastic")
    sums = {name: sum(getattr(cost, name) for cost in costs) for name in counts}
    deepest = max((cost.deepest for cost in costs), default=0.0)
    remarks = "; ".join(dict.fromkeys(cost.remark for cost in costs if cost.remark))
    total = Statistics(method, **sums, remark=remarks, deepest=deepest)
    sizes = {"q": model.nq, "v": model.nv, "a": model.nv, "u": model.nu, "multipliers": model.n_multipliers, "z": nz}
    t = np.zeros(0) if times is None else times
    shape = (*lead, len(t))
    arrays: dict[str, Any] = {n: _rows(n, motions, (len(t), size)).reshape(*shape, size) for n, size in sizes.items()}
    size = model.contacts.anchors.shape
    anchors = _rows("anchors", motions, size).reshape(*lead, *size)
    return Trajectory(t=t.copy(), **arrays, statistics=total, anchors=anchors)


def _rows(name: str, motions: list[Trajectory], shape: tuple[int, ...]) -> np.ndarray:
    """An array of all motions, in order. An element of `motions` may hold one motion or several."""
    rows = [x[None] if x.ndim == len(shape) else x for x in (getattr(motion, name) for motion in motions)]
    if len(rows) == 1:
        return rows[0]
    out = np.empty((sum(map(len, rows)), *shape))
    edges = np.cumsum([0, *map(len, rows)]).tolist()
    run_on_pool([partial(np.copyto, out[slice(*ends)], rows_of) for ends, rows_of in zip(pairwise(edges), rows)])
    return out


_MOST_ERROR = 0.01  # a larger error causes a warning
_AT_REST = 1e-3  # smallest divisor of the error, in natural sizes of a coordinate


def global_error(model: Model, q: np.ndarray, other: np.ndarray) -> float:
    """The largest distance between two motions (..., n_times, nq), divided by the largest distance of a coordinate from
    its start. Coordinates are scaled by their natural sizes."""
    if not q.size:
        return 0.0
    scale = model.dofs.scale
    apart = np.abs(difference(model, q, other) / scale).max(axis=(-2, -1))
    moved = np.abs(difference(model, q[..., :1, :], q) / scale).max(axis=(-2, -1))
    return float(np.max(apart / np.maximum(moved, _AT_REST)))


def warn_of_error(error: float) -> None:
    """Warn if the error of a motion, relative to its path, is above _MOST_ERROR."""
    if not error <= _MOST_ERROR:
        text = f"the motion is off by {100.0 * error:.2g} % of its path, by a finer one; take a smaller rtol and atol, "
        text += "or a smaller dt; fast motions without damping may let every error grow"
        warnings.warn(text, AccuracyWarning, stacklevel=4)
