"""State of a viewer and its history: one robot, without drawing and without a browser.

In every mode `update` computes the state from the coordinates and inputs that were set, and from the force of the mouse
spring:

    pose          q is set by the coordinate sliders
    equilibrium   q is the equilibrium under the inputs, found from the previous one
    simulate      q and v follow the equations of motion, in real time
    replay        q and v are those of a given motion
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from threading import RLock
from typing import Any, NamedTuple, final

import numpy as np

from lissom.dynamics.actuation import single_inputs
from lissom.dynamics.configuration import difference, integrate, single_configuration
from lissom.dynamics.energy import energy
from lissom.dynamics.kinematics import forward_kinematics
from lissom.dynamics.start import start_configuration
from lissom.errors import ConvergenceError, ModelError
from lissom.model.model import Model
from lissom.simulation.trajectory import Trajectory
from lissom.statics.equilibrium import Equilibrium, solve_statics
from lissom.stepping.statistics import Statistics
from lissom.stepping.stepper import Stepper
from lissom.viewing.controls import (
    Grip,
    MouseSpring,
    Slider,
    configuration_of,
    coordinate_sliders,
    input_sliders,
    nearest_grip,
    values_of,
    with_pull_input,
)
from lissom.viewing.geometry import robot_geometry

MODES = ("pose", "equilibrium", "simulate", "replay")
STEP = 1.0 / 240.0  # time step of the simulation [s]
_MOST_WORK = 0.03  # computing time between two pictures [s]; a motion that needs more is slower than real time
_PULLED_SOLVES = 4  # equilibria per update while the mouse pulls, until the force of its spring converges
_MOST_STATES = 36_000  # number of states in a history: ten minutes at sixty per second
_MOST_PLOTTED = 600  # number of states of a plotted series


@final
class Series(NamedTuple):
    """Columns against time t (n,) [s].

    Fields:
        positions: of frames by name, each (n, 3) [m]. inputs: shape (n, nu). energies: kinetic, gravitational and
        elastic, shape (n, 3) [J].
    """

    t: np.ndarray
    positions: dict[str, np.ndarray]
    inputs: np.ndarray
    energies: np.ndarray


@final
class History:
    """States of one robot at increasing times. Beyond _MOST_STATES states the oldest are dropped."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.t: list[float] = []
        self.rows: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def __len__(self) -> int:
        return len(self.t)

    @classmethod
    def of(cls, model: Model, motion: Trajectory) -> History:
        """History with the states of a simulated motion."""
        made = cls(model)
        made.t, made.rows = motion.t.tolist(), list(zip(motion.q, motion.v, motion.u))
        return made

    def add(self, t: float, q: np.ndarray, v: np.ndarray, u: np.ndarray) -> None:
        """Append a state, after the states at its time and later are dropped."""
        self.cut(t)
        self.t.append(t)
        self.rows.append((q.copy(), v.copy(), u.copy()))
        if len(self.t) > _MOST_STATES:
            del self.t[0], self.rows[0]

    def cut(self, t: float) -> None:
        """Drop the states at a time and later."""
        while self.t and self.t[-1] >= t:
            self.t.pop()
            self.rows.pop()

    @property
    def span(self) -> tuple[float, float]:
        """The first and the last time [s]."""
        return (self.t[0], self.t[-1]) if self.t else (0.0, 0.0)

    def at(self, t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q, v and u at a time within the span, interpolated on the manifold."""
        k = int(np.clip(np.searchsorted(self.t, t, side="right") - 1, 0, len(self.t) - 1))
        if k + 1 == len(self.t) or t <= self.t[k]:
            return self.rows[k]
        part = (t - self.t[k]) / (self.t[k + 1] - self.t[k])
        (q0, v0, u0), (q1, v1, u1) = self.rows[k], self.rows[k + 1]
        q = integrate(self.model, q0, part * difference(self.model, q0, q1))
        return q, v0 + part * (v1 - v0), u0 + part * (u1 - u0)

    def series(self, end: float, length: float, frames: Sequence[str]) -> Series:
        """Columns to plot over the time `length` before `end`."""
        first, last = np.searchsorted(self.t, [end - length, end + 1e-12])
        chosen = np.unique(
            np.linspace(first, max(last - 1, first), min(_MOST_PLOTTED, max(last - first, 1))).astype(int)
        )
        chosen = chosen[chosen < len(self.t)]
        q, v, u = (np.array([self.rows[k][i] for k in chosen]) for i in range(3))
        t = np.array([self.t[k] for k in chosen])
        known, positions = {**self.model.links.frame, **self.model.frames}, {}
        poses = forward_kinematics(self.model, q) if len(t) else np.zeros((0, self.model.n_nodes, 4, 4))
        for name in frames:
            node, g = known[name]
            positions[name] = np.tile(g[:3, 3], (len(t), 1)) if node < 0 else (poses[:, node] @ g)[:, :3, 3]
        parts = energy(self.model, q, v) if len(t) else None
        energies = (
            np.zeros((0, 3)) if parts is None else np.stack([parts.kinetic, parts.gravitational, parts.elastic], 1)
        )
        return Series(t, positions, u.reshape(len(t), self.model.nu), energies)

    def trajectory(self) -> Trajectory:
        """The states as a trajectory; accelerations and multipliers are unknown, NaN."""
        model, n = self.model, len(self)
        q, v, u = (np.array([row[i] for row in self.rows]).reshape(n, size)
                   for i, size in enumerate((model.nq, model.nv, model.nu)))  # fmt: skip
        unknown, cost = np.full((n, model.nv), np.nan), Statistics("recorded", n, 0, 0, 0.0)
        return Trajectory(np.array(self.t), q, v, unknown, u, np.full((n, model.n_multipliers), np.nan),
                          np.zeros((n, 0)), cost)  # fmt: skip


@final
class Session:
    """Current state of one robot in a viewer.

    Args:
        q: initial configuration, shape (nq,); None is `start_configuration`.
        motion: a simulated motion of a single robot, to replay.
        u: initial inputs, shape (nu,); None is zero.
        before: session of a robot with the same coordinates and inputs, such as this one with other values, whose
            ranges of sliders and grip are taken over, which saves most of the time.
        inputs: the ranges of all inputs; None computes them.
    Raises:
        ModelError: the motion is not one of this robot.
    """

    def __init__(
        self, model: Model, q: Any = None, motion: Trajectory | None = None, u: Any = None,
        before: Session | None = None, inputs: list[Slider] | None = None,
    ) -> None:  # fmt: skip
        self.model = model
        self.start = start_configuration(model) if q is None else single_configuration(model, q)
        self.start_inputs = single_inputs(model, u)
        if before is None:
            self.coordinates = coordinate_sliders(model)
            self.inputs = input_sliders(model) if inputs is None else inputs
        else:
            self.coordinates, self.inputs = before.coordinates, before.inputs
        self.q, self.v, self.u = self.start.copy(), np.zeros(model.nv), self.start_inputs.copy()
        self.t, self.speed, self.is_playing = 0.0, 1.0, False
        self.mode, self.note, self.is_good = "pose", "", True
        self.pace = 1.0  # simulated time divided by the time that should be simulated; below 1 the machine is too slow
        self.equilibrium: Equilibrium | None = None
        self.spring: MouseSpring | None = None
        self.history = History(model)
        self.motion = None if motion is None else _history(model, motion)
        self.solving = 0.0  # computing time of the last update [s]
        self._lock = RLock()  # held while the state advances
        self._pulled_model: Model | None = None
        self._grip = self._first_grip() if before is None else before._grip
        self._pulled_before, self._may_overwrite = (None, False) if before is None else before._hand_over()
        self._stepper: Stepper | None = None
        self._pending, self._is_due = 0.0, True
        if motion is not None:
            self.set_mode("replay")

    def set_mode(self, mode: str) -> None:
        """Change the mode; the state stays."""
        if mode not in MODES or (mode == "replay" and self.motion is None):
            raise ModelError(f"mode: must be one of {self.modes} (got {mode!r})")
        if mode != self.mode:
            self.release()
            if mode != "simulate":
                self.v = np.zeros(self.model.nv)
            self._stepper, self.mode, self.note, self.is_good = None, mode, "", True
            self.is_playing = mode in ("simulate", "replay")
            self._restart()
            if mode == "replay" and self.motion is not None:
                self.scrub(self.motion.span[0])
        self._is_due = True

    @property
    def modes(self) -> tuple[str, ...]:
        """Modes that can be chosen."""
        return MODES if self.motion is not None else MODES[:-1]

    @property
    def record(self) -> History:
        """History that `scrub` moves through: the replayed motion, or the states shown so far."""
        return self.motion if self.mode == "replay" and self.motion is not None else self.history

    def set_values(self, values: np.ndarray) -> None:
        """Set values (nv,) of the coordinate sliders; a simulation continues from there at rest."""
        self.set_shape(configuration_of(self.model, np.asarray(values, dtype=np.float64)))

    def set_shape(self, q: Any) -> None:
        """Set the configuration, shape (nq,); a simulation continues from there at rest."""
        self._refuse_replay("q")
        self.q, self.v = single_configuration(self.model, q).copy(), np.zeros(self.model.nv)
        self._stepper, self._is_due = None, True

    @property
    def values(self) -> np.ndarray:
        """Values of the coordinate sliders at the current configuration."""
        return values_of(self.model, self.q)

    def set_inputs(self, u: Any) -> None:
        """Set the inputs, shape (nu,); None is zero."""
        self._refuse_replay("u")
        self.u, self._is_due = single_inputs(self.model, u).copy(), True

    def _refuse_replay(self, name: str) -> None:
        """Raise a ModelError in the mode "replay", in which the motion sets shapes and inputs."""
        if self.mode == "replay":
            raise ModelError(f"{name}: cannot be set while a motion is replayed; take another mode first")

    def play(self) -> None:
        """Start time. A simulation continues from the current state; later states of its history are dropped."""
        if self.mode == "replay" and self.motion is not None and self.t >= self.motion.span[1]:
            self.t = self.motion.span[0]
        if self.mode == "simulate" and not self.is_playing:
            self._stepper = None
            self.history.cut(self.t)
        self.is_playing, self._pending = True, 0.0

    def pause(self) -> None:
        """Stop time."""
        self.is_playing = False

    def scrub(self, t: float) -> None:
        """Go to another time of the history [s]."""
        if len(self.record) and self.mode in ("simulate", "replay"):
            self.t = float(np.clip(t, *self.record.span))
            self.q, self.v, self.u = (x.copy() for x in self.record.at(self.t))
            self._is_due = True

    def reset(self) -> None:
        """Return to the initial configuration and inputs, at rest, and clear the history."""
        self.release()
        self.q, self.v, self.u = self.start.copy(), np.zeros(self.model.nv), self.start_inputs.copy()
        self._stepper, self.equilibrium, self.note, self.is_good = None, None, "", True
        self._restart()
        if self.mode == "replay":
            self.scrub(self.record.span[0])

    def _restart(self) -> None:
        self.t, self._pending, self._is_due = 0.0, 0.0, True
        self.history = History(self.model)

    def grab(self, point: Any, link: str | None = None) -> None:
        """Attach the mouse spring to the robot at the place nearest to a point in the world, on one link or on any
        link.

        The spring acts in the modes "equilibrium" and "simulate".
        """
        grip = nearest_grip(self.model, self.q, link, np.asarray(point, dtype=np.float64))
        if grip is None or self.mode not in ("equilibrium", "simulate"):
            return
        self._grip, self._pulled_model, self._pulled_before, self._stepper = grip, None, None, None
        self._may_overwrite = False
        model = self.pulled_model
        self.spring = MouseSpring(model, grip, self.q, self.u, self.t, np.asarray(point, dtype=np.float64))
        self.spring.target = self.spring.position(self.q)

    def drag(self, target: Any) -> None:
        """Set the position of the mouse [m]."""
        if self.spring is not None:
            self.spring.target, self._is_due = np.array(target, dtype=np.float64), True

    def release(self) -> None:
        """Remove the mouse spring."""
        self.spring, self._is_due = None, True

    @property
    def pulled_model(self) -> Model:
        """The robot with a force input at the last grip; models of all grips use the same kernels."""
        with self._lock:
            if self._pulled_model is None:
                self._pulled_model = with_pull_input(
                    self.model, self._grip, self._pulled_before, overwrite=self._may_overwrite
                )
                self._pulled_before, self._may_overwrite = self._pulled_model, False
            return self._pulled_model

    def _hand_over(self) -> tuple[Model | None, bool]:
        """The pulled model for a session of this robot with other values, and whether that session may overwrite it.
        This session then makes another one if it needs it; a session that moves or is pulled keeps its own."""
        with self._lock:
            found, is_free = self._pulled_model, self.spring is None and self._stepper is None
            if found is None:
                return self._pulled_before, False
            if is_free:
                self._pulled_model = None
            return found, is_free

    def _first_grip(self) -> Grip | None:
        """Grip on the last link, so that its kernels are compiled before the mouse first drags the robot."""
        meshes = [mesh for mesh in robot_geometry(self.model).meshes if mesh.kind != "deformable"]
        if not meshes:
            return None
        return Grip(str(meshes[-1].link), 1.0, np.zeros(3))

    def _all_inputs(self, force: np.ndarray | None = None) -> np.ndarray:
        """u of the model that has the force input of the grip."""
        more = self.pulled_model.nu - self.model.nu
        return np.concatenate([self.u, np.zeros(more) if force is None else force])

    def update(self, elapsed: float) -> bool:
        """Advance the state by the time `elapsed` [s]; returns whether anything changed."""
        began = time.perf_counter()
        with self._lock, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # `note` shows their content
            changed = getattr(self, f"_update_{self.mode}")(elapsed)
        if changed:
            self.solving = time.perf_counter() - began
        return changed

    def _update_pose(self, elapsed: float) -> bool:
        changed, self._is_due = self._is_due, False
        return changed

    def _update_equilibrium(self, elapsed: float) -> bool:
        self.t += elapsed
        if not self._is_due:
            return False
        self.settle(stable=False)
        self._is_due = self.is_good and self.spring is not None and not self.spring.is_converged(self.q)
        return True

    def settle(self, *, stable: bool) -> None:
        """Find the equilibrium next to the current state. With `stable` the search goes on from an unstable equilibrium
        to a stable one."""
        with self._lock:
            self._settle(stable)

    def _settle(self, stable: bool) -> None:
        try:
            for _ in range(1 if self.spring is None else _PULLED_SOLVES):
                force = None if self.spring is None else self.spring.static_force(self.q, self.u, 0.0)
                found = solve_statics(self.pulled_model, self._all_inputs(force), self.q, stable=stable)
                self.q, self.equilibrium = found.q, found
            self.is_good, self.note = self._verdict(found)
        except (ConvergenceError, ModelError) as error:
            self.is_good, self.note = False, f"equilibrium lost: {error}"
        self.history.add(self.t, self.q, self.v, self.u)

    def _verdict(self, found: Equilibrium) -> tuple[bool, str]:
        count = int(found.unstable_count)
        if count:
            return False, f"equilibrium with {count} unstable mode{'s' if count > 1 else ''}"
        return True, "stable equilibrium"

    def _update_simulate(self, elapsed: float) -> bool:
        changed, self._is_due = self._is_due, False
        if not self.is_playing:
            return changed
        self._pending += self.speed * elapsed
        steps = int(self._pending / STEP + 1e-9)
        if steps == 0:
            return changed
        self._pending -= steps * STEP
        try:
            if self._stepper is None:
                self._stepper = Stepper(self.pulled_model, STEP, q0=self.q, v0=self.v, u=self._all_inputs(), t=self.t)
                self.history.add(self.t, self._stepper.state.q, self._stepper.state.v, self.u)
            self._advance(self._stepper, steps)
        except (ConvergenceError, ModelError) as error:
            self.is_playing, self._stepper = False, None
            self.is_good, self.note = False, f"simulation stopped: {error}"
            return True
        here = self._stepper.state
        self.t, self.q, self.v = here.t, here.q, here.v
        self.history.add(self.t, self.q, self.v, self.u)
        self.is_good, self.note = True, "" if self.pace > 0.95 else f"at {self.pace:.0%} of the wanted speed"
        return True

    @property
    def deepest(self) -> float | None:
        """Deepest contact of the motion in the mode "simulate" [m]; None in other modes, and without contacts."""
        if self._stepper is None or self.mode != "simulate" or not len(self.model.contacts.pair):
            return None
        return self._stepper.statistics.deepest

    def _advance(self, stepper: Stepper, steps: int) -> None:
        """Take the steps that are due, or as many of them as _MOST_WORK allows."""
        began, done = time.perf_counter(), 0
        while done < steps and (done == 0 or time.perf_counter() - began < _MOST_WORK):
            n, force = min(4, steps - done), None
            if self.spring is not None:
                n, here = 1, stepper.state
                force = self.spring.step_force(here.q, here.v, self.u, here.t, STEP)
            stepper.step(self._all_inputs(force), n)
            done += n
        self.pace += 0.1 * (done / steps - self.pace)
        if done < steps:
            self._pending = 0.0

    def _update_replay(self, elapsed: float) -> bool:
        changed, self._is_due = self._is_due, False
        if not self.is_playing or self.motion is None:
            return changed
        t = self.t + self.speed * elapsed
        if t >= self.motion.span[1]:
            self.pause()
        self.scrub(t)
        self._is_due = False
        return True


def _history(model: Model, motion: Trajectory) -> History:
    """History of a motion to replay, checked."""
    if motion.q.ndim != 2 or not len(motion.t):
        raise ModelError(f"motion: must be one motion with at least one state (got q of shape {motion.q.shape})")
    sizes = {"q": (motion.q, model.nq), "v": (motion.v, model.nv), "u": (motion.u, model.nu)}
    for name, (rows, size) in sizes.items():
        if rows.shape[1] != size:
            raise ModelError(
                f"motion: is not one of robot {model.name!r}: {name} has {rows.shape[1]} columns and the robot {size}"
            )
    return History.of(model, motion)
