"""Implicit schemes as methods of `simulate`, with fixed steps or adaptive steps.

Fixed steps end on wanted times and on samples of a controller; between these they have the size dt. A step is divided
if Newton's method fails, if a contact, a stop or a cable begins or ceases to act in it, or if a ball passes through an
obstacle (stepping.step_changes).

Adaptive steps do not depend on the wanted times. States at wanted times are interpolated between the ends of steps by
Hermite's polynomials

    q(s) = qₙ ⊕ Δ(s),   Δ(0) = 0, Δ(1) = qₙ₊₁ ⊖ qₙ,   Δ' = h T(Δ)⁻¹ v                                      (1)

Δ is a quintic for coordinates that are added, with Δ'' = h² a, and a cubic for a pose with a quaternion. v is a cubic
with v' = h a. If a step passes through an obstacle, it is repeated up to a time at which the ball is inside. The kernel
searches for such contacts. If it cannot evaluate the prescribed motion of an obstacle, or if it pauses, the search
follows after the step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, final

import numpy as np

from lissom.dynamics.configuration import difference, integrate, quaternion_joints
from lissom.lie.arrays import se3_tangent_inverse, so3_tangent_inverse
from lissom.model.model import Model
from lissom.simulation.step_monitor import StepMonitor
from lissom.stepping.adaptive import AdaptiveMotion, AdaptiveRun, state_parts, state_row
from lissom.stepping.driver import (
    LEAST_STEP,
    Motions,
    restored,
    with_checkpoint,
)
from lissom.stepping.python_stages import ImplicitSteps
from lissom.stepping.schemes import ORDER_SHARE, Scheme, StepState
from lissom.stepping.state import StateDerivative, configuration_scale
from lissom.stepping.step_kernel import LONGEST_RUN, law_room, put_law, room_for, workspace_with_room


def between(
    model: Model, t: np.ndarray, q: np.ndarray, v: np.ndarray, a: np.ndarray, wanted: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, v and a at wanted times (m,), interpolated between states q (n, nq), v, a (n, nv) at the ends t (n,) of
    steps."""
    k = np.clip(np.searchsorted(t, wanted, side="left") - 1, 0, len(t) - 2)
    ends = t[np.stack([k, k + 1], axis=1)]
    return within(model, wanted, ends, (q[k], v[k], a[k]), (q[k + 1], v[k + 1], a[k + 1]))


def within(
    model: Model, wanted: np.ndarray, ends: np.ndarray, start: Sequence[np.ndarray], stop: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, v and a at wanted times (m,), each interpolated within its own step.

    Args:
        ends: start and end of each step, shape (m, 2) [s].
        start, stop: q (m, nq), v and a (m, nv) at the start and the end of each step.
    """
    h = (ends[:, 1] - ends[:, 0])[:, None]
    s = np.minimum((wanted - ends[:, 0])[:, None] / h, 1.0)
    (q, v, a), (q_end, v_end, a_end) = start, stop
    step = difference(model, q, q_end)
    slope, slope_end, bend, bend_end = h * v, h * v_end, h * h * a, h * h * a_end
    for _, j, free in quaternion_joints(model):
        block = slice(j, j + (6 if free else 3))
        inverse = (se3_tangent_inverse if free else so3_tangent_inverse)(step[:, block])
        slope_end[:, block] = np.einsum("kab,kb->ka", inverse, slope_end[:, block])
    move = _quintic(s, step, slope, slope_end, bend, bend_end)
    for _, j, free in quaternion_joints(model):
        block = slice(j, j + (6 if free else 3))
        move[:, block] = cubic(s, 0.0, step[:, block], slope[:, block], slope_end[:, block])
    reached = integrate(model, q, move)
    speed = cubic(s, v, v_end, h * a, h * a_end)
    acceleration = _cubic_slope(s, v, v_end, h * a, h * a_end) / h
    ended = wanted == ends[:, 1]
    for found, known in ((reached, q_end), (speed, v_end), (acceleration, a_end)):
        found[ended] = known[ended]
    return reached, speed, acceleration


def cubic(s: np.ndarray, x0: Any, x1: np.ndarray, d0: np.ndarray, d1: np.ndarray) -> np.ndarray:
    """The cubic polynomial with values x and derivatives d at s = 0 and 1."""
    r = 1.0 - s
    return r * r * ((1.0 + 2.0 * s) * x0 + s * d0) + s * s * ((3.0 - 2.0 * s) * x1 - r * d1)


def _cubic_slope(s: np.ndarray, x0: np.ndarray, x1: np.ndarray, d0: np.ndarray, d1: np.ndarray) -> np.ndarray:
    """The derivative of `cubic` with respect to s."""
    return 6.0 * s * (1.0 - s) * (x1 - x0) + (1.0 - s) * (1.0 - 3.0 * s) * d0 + s * (3.0 * s - 2.0) * d1


def _quintic(
    s: np.ndarray, x1: np.ndarray, d0: np.ndarray, d1: np.ndarray, b0: np.ndarray, b1: np.ndarray
) -> np.ndarray:
    """The quintic polynomial with values 0 and x1, slopes d and second derivatives b at s = 0 and 1."""
    rest, slope, bend = x1 - d0 - 0.5 * b0, d1 - d0 - b0, b1 - b0
    c3, c4 = 10.0 * rest - 4.0 * slope + 0.5 * bend, -15.0 * rest + 7.0 * slope - bend
    c5 = 6.0 * rest - 3.0 * slope + 0.5 * bend
    return s * (d0 + s * (0.5 * b0 + s * (c3 + s * (c4 + s * c5))))


SAME_TIME = 1e-12  # times closer than this fraction of the duration are the same time


@final
class StepSchedule:
    """The ends of all fixed steps of a motion; `len` is their number.

    Args:
        times: wanted times, beginning with the start; None: every end is wanted.
    """

    def __init__(self, times: np.ndarray | None, duration: float, period: float, dt: float) -> None:
        stops = times[1:] if times is not None else np.array([duration])
        samples = np.arange(1, int(np.ceil(duration / period))) * period if np.isfinite(period) else np.zeros(0)
        samples = _snapped(samples, stops, SAME_TIME * duration)
        self.dt, self.stops = dt, np.union1d(samples, stops) if len(samples) else stops
        self.starts = np.append(0.0, self.stops)[: len(self.stops)]
        steps = np.maximum(np.ceil((self.stops - self.starts) / dt * (1.0 - 1e-9)).astype(int), 1)
        self.until = np.cumsum(steps)
        self.first = self.until - steps
        self.is_wanted = None if times is None else np.isin(self.stops, times) if len(samples) else stops == stops
        self.samples = self.until[np.isin(self.stops, samples)] - 1 if len(samples) else self.until[:0]

    def __len__(self) -> int:
        return int(self.until[-1]) if len(self.until) else 0

    def ends(self, first: int, last: int) -> np.ndarray:
        """Ends of the steps `first` to `last` − 1 [s]."""
        k = np.arange(first, last)
        part = np.searchsorted(self.until, k, side="right")
        inner = k + 1 - self.first[part]
        return np.where(k + 1 == self.until[part], self.stops[part], self.starts[part] + self.dt * inner)

    def wanted(self, first: int, last: int) -> np.ndarray:
        """Mask of the steps `first` to `last` − 1 that end on a wanted time."""
        k = np.arange(first, last)
        if self.is_wanted is None:
            return np.ones(len(k), dtype=bool)
        part = np.searchsorted(self.until, k, side="right")
        return self.is_wanted[part] & (k + 1 == self.until[part])

    def is_sample(self, k: int) -> bool:
        """Whether step k ends on a sample time of the controller."""
        at = int(np.searchsorted(self.samples, k))
        return at < len(self.samples) and int(self.samples[at]) == k

    def to_sample(self, k: int) -> int:
        """Number of steps from step k to the next step that ends on a sample time, or to the end, both included."""
        sample = int(np.searchsorted(self.samples, k))
        return (int(self.samples[sample]) + 1 if sample < len(self.samples) else len(self)) - k


def _snapped(samples: np.ndarray, ends: np.ndarray, tolerance: float) -> np.ndarray:
    """The samples; a sample closer than the tolerance to one of the ends is moved onto that end."""
    if len(samples) == 0 or len(ends) == 0:
        return samples
    after = np.minimum(np.searchsorted(ends, samples), len(ends) - 1)
    near = [ends[after], ends[np.maximum(after - 1, 0)]]
    return np.select([np.abs(end - samples) <= tolerance for end in near], near, samples)


Point = tuple[float | np.ndarray, np.ndarray, np.ndarray, int]


def point(stepper: ImplicitSteps, s: StepState, steps: int) -> Point:
    """The point (t, x, (u, z), steps) of a state."""
    parts = [s.q, s.v] if stepper.leaves_states else [s.q, s.v, s.a, s.force]
    return s.t, np.concatenate(parts), stepper.f.shown(s.t, s.q, s.v, s.z), steps


def adaptive_steps(
    stepper: ImplicitSteps, begin: StepState | None, times: np.ndarray | None, duration: float, period: float
) -> Iterator[Point]:
    """Points at the wanted times, or at every step if times is None. The motion starts from `begin`, or from the
    checkpoint of a stream."""
    adaptive, f, nq = AdaptiveMotion(stepper, duration), stepper.f, stepper.model.nq
    monitor = step_monitor(stepper.scheme, duration, stepper.rtol, configuration_scale(stepper.model))
    parts = {"f": f, "stepper": stepper, "control": stepper.control, "adaptive": adaptive, "kernel": adaptive.kernel}
    parts |= {"monitor": monitor}
    loop: Any = (begin, 0, 1) if f.checkpoint is None else restored(f, parts)
    here, steps, sample = loop
    output = _Output(stepper, here, times)
    while here.t < duration and not output.is_complete:
        due = sample * period
        stop = duration if due > duration * (1.0 - SAME_TIME) else due
        run = adaptive.steps(here, stop, steps)
        steps += len(run.t)
        monitor.follow(run.t, run.rows[:, :nq])
        points = list(output.of(here, run, steps))
        here = run.last
        if here.t >= stop and stop < duration:
            here, sample = stepper.sampled(here), sample + 1
        yield from with_checkpoint(f, points, parts, (here, steps, sample))


def step_monitor(scheme: Scheme, duration: float, rtol: float, scale: np.ndarray) -> StepMonitor:
    """The monitor of adaptive steps of an implicit scheme."""
    return StepMonitor(scheme.name, duration, np.inf, rtol, scale, scheme.error_power)


@final
class _Output:
    """The points to return for the steps that were taken."""

    def __init__(self, stepper: ImplicitSteps, start: StepState, times: np.ndarray | None) -> None:
        self.stepper, self.model = stepper, stepper.model
        self.left = None if times is None else times[times > start.t]
        self.keeps_forces = not stepper.leaves_states

    @property
    def is_complete(self) -> bool:
        """Whether all wanted times have been returned."""
        return self.left is not None and len(self.left) == 0

    def of(self, here: StepState, run: AdaptiveRun, steps: int) -> Iterator[Point]:
        """The points of a run that began at `here`. `steps` is the number of steps up to the end of the run."""
        if len(run.t) == 0:
            return
        if self.left is None:
            q, v, a, _, force = state_parts(self.model, run.rows)
            yield run.t, np.hstack([q, v, a, force] if self.keeps_forces else [q, v]), run.shown, steps
            return
        wanted = self.left[self.left <= run.t[-1]]
        self.left = self.left[len(wanted) :]
        if len(wanted):
            rows = np.vstack([state_row(here), run.rows])
            yield wanted, *self._within(here, np.append(here.t, run.t), rows, run, wanted), steps

    def _within(
        self, here: StepState, t: np.ndarray, rows: np.ndarray, run: AdaptiveRun, wanted: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """States x and (u, z) at wanted times within steps that end at t; `rows` are the states at these ends."""
        q, v, a, _, force = state_parts(self.model, rows)
        x = between(self.model, t, q, v, a, wanted)
        f = self.stepper.f
        z = _states_of_controller(f, t, here, run, wanted)
        if f.is_feedback:
            known = np.array([f.shown(*row) for row in zip(wanted.tolist(), x[0], x[1], z)])
        else:
            known = f.shown_over(wanted)
        if not self.keeps_forces:
            return np.hstack(x[:2]), known
        part = np.clip(np.searchsorted(t, wanted) - 1, 0, len(t) - 2)
        s = ((wanted - t[part]) / (t[part + 1] - t[part]))[:, None]
        return np.hstack([*x, (1.0 - s) * force[part] + s * force[part + 1]]), known


def _states_of_controller(
    f: StateDerivative, t: np.ndarray, here: StepState, run: AdaptiveRun, wanted: np.ndarray
) -> np.ndarray:
    """State z (m, nz) of a continuous controller at wanted times within one step, interpolated with its rates at both
    ends."""
    if len(here.z) == 0:
        return np.zeros((len(wanted), 0))
    h, last = t[-1] - t[0], run.last
    slopes = [h * f.law.rate(state.t, state.q, state.v, state.z) for state in (here, last)]
    return cubic(((wanted - t[0]) / h)[:, None], here.z, last.z, *slopes)


_FIRST_WINDOW = 8  # number of steps of the first launch; each later launch has twice as many


def integrate_implicit(
    model: Model,
    f: StateDerivative,
    x0: np.ndarray,
    times: np.ndarray | None,
    duration: float,
    period: float,
    rtol: float,
    atol: tuple[float, float],
    dt: float | None,
    project: bool = True,
    *,
    scheme: Scheme,
) -> Iterator[tuple[float | np.ndarray, np.ndarray, np.ndarray, int]]:
    """Yield (t, x, (u, z), number of steps so far) at `times`, or at every step if times is None. The start comes
    first.

    x is (q, v, a, λ of loops) or (q, v). If t, x and (u, z) have a leading axis, they hold several points. Steps of
    size dt end on the wanted times. With dt None the step size is adaptive.

    Raises:
        ConvergenceError: the method stopped; the message gives the time and a remedy. There is no partial result.
    """
    share = None if dt is None else ORDER_SHARE
    stepper = ImplicitSteps(model, f, scheme, rtol, atol, project, share)
    here = None
    if f.checkpoint is None:
        q, v, z = f.split(x0)
        if np.isfinite(period):
            f.sample(0.0, q, v)
        here = stepper.start(q, v, z, dt)
        yield point(stepper, here, 0)
    if dt is None:
        yield from adaptive_steps(stepper, here, times, duration, period)
    else:
        yield from _fixed_steps(stepper, here, times, duration, period, dt)


def _fixed_steps(
    stepper: ImplicitSteps, begin: StepState | None, times: np.ndarray | None, duration: float, period: float, dt: float
) -> Iterator[Point]:
    """Points of steps of size dt. Steps are shorter before a wanted time or a sample time of the controller, and are
    divided if Newton's method fails or contacts or stops change (step_changes). The motion starts from `begin`, or
    from the checkpoint of a stream."""
    f, model, scheme, least = stepper.f, stepper.model, stepper.scheme, LEAST_STEP * duration
    plan = StepSchedule(times, duration, period, dt)
    if f.checkpoint is not None:  # can_run depends on whether a sample of a controller is held
        vars(f).update(f.checkpoint["fields"]["f"] | {"checkpoint": f.checkpoint})
    in_kernel = Motions.can_run(model, f)
    has_law = in_kernel and f.has_native_law
    if in_kernel:
        w = workspace_with_room(model, 1, *(law_room(model) if has_law else room_for(model)))
        if has_law:
            put_law(w, f.law.native)
        motions = Motions(model, 1, scheme, least, w=w, numbers=stepper.numbers)
    else:
        motions = Motions(model, 1, scheme, least, python=stepper)
    parts = {"f": f, "stepper": stepper, "control": stepper.control, "motions": motions}
    if begin is not None:
        motions.put_state(begin)
    t, k, length = (0.0, 0, _FIRST_WINDOW) if f.checkpoint is None else restored(f, parts)
    while k < len(plan):
        count = min(length, plan.to_sample(k)) if in_kernel else 1
        ends = np.append(t, plan.ends(k, k + count))
        motions.advance(ends, lambda _, times: f.known_inputs(times.ravel())[None])
        motions.count(f)
        done, rows = int(motions.reached[0]), motions.rows()[0]
        at, points = np.flatnonzero(plan.wanted(k, k + done)), []
        if len(at):
            taken = int(motions.steps[0]) - (count - 1 - int(at[-1]))
            shown = _shown(motions, f, ends[1 + at], rows[at], at)
            points.append((ends[1 + at], _given(stepper, rows[at]), shown, taken))
        if len(motions.lost):
            yield from points
            raise motions.failure(0)
        t, k, length = float(ends[-1]), k + count, min(2 * length, LONGEST_RUN)
        f.parts = int(motions.steps[0]) - k
        if plan.is_sample(k - 1):
            motions.put_state(stepper.sampled(motions.state(t)))
        yield from with_checkpoint(f, points, parts, (t, k, length))


def _given(stepper: ImplicitSteps, rows: np.ndarray) -> np.ndarray:
    """The states x to return, from rows (q, v, a, â, λ)."""
    q, v, a, _, force = state_parts(stepper.model, rows)
    return np.hstack([q, v] if stepper.leaves_states else [q, v, a, force])


def _shown(motions: Motions, f: StateDerivative, t: np.ndarray, rows: np.ndarray, at: np.ndarray) -> np.ndarray:
    """(u, z) at the ends of steps of a single motion.

    Args:
        t: times of the ends.
        rows: states there.
        at: indices of the steps.
    """
    if motions.w is None or f.is_feedback:
        q, v = (rows[:, motions.parts[name]] for name in ("q", "v"))
        return np.array([f.shown(*row, motions.z) for row in zip(t.tolist(), q, v)])
    last = (len(motions.scheme.stages) - 1) * f.model.nu
    u = motions.host["inputs"][0, at, last : last + f.model.nu]
    return u if f.constant_u is None else np.hstack([u, np.tile(f.sampled_z, (len(at), 1))])
