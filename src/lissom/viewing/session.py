"""What a viewer shows: one robot in one state, and how it came there. No drawing, no browser.

In every mode `update` brings the state up to date with what was set since: coordinates, inputs, a hand that pulls. The
modes differ in what follows from what.

    pose          q is what the coordinate sliders say
    equilibrium   q is in equilibrium under the inputs, found from the last one
    simulate      q and v follow the equations of motion, one second in one second
    replay        q and v are those of a motion that is known
"""

from __future__ import annotations

import time
import warnings
from typing import Any, final

import numpy as np

from lissom.dynamics.configuration import checked_configuration
from lissom.dynamics.forward_dynamics import input_rows
from lissom.errors import ConvergenceError, ModelError, ShapeError
from lissom.model.model import Model
from lissom.simulation.trajectory import Trajectory
from lissom.statics.equilibrium import Equilibrium, solve_statics
from lissom.stepping.stepper import Stepper
from lissom.viewing.building import robot_geometry
from lissom.viewing.hand import Grip, Hand, held_by_hand, nearest_grip
from lissom.viewing.history import History
from lissom.viewing.sliders import coordinate_sliders, input_sliders, placed, values_of

MODES = ("pose", "equilibrium", "simulate", "replay")
STEP = 1.0 / 240.0  # of the simulation [s]
_MOST_WORK = 0.03  # between two pictures [s]: beyond that the motion is slower than the clock
_SETTLES = 4  # equilibria found while a hand pulls, until its force fits


@final
class Session:
    """One robot that is looked at.

    Args:
        q: where it begins, shape (nq,); None is the neutral configuration. u: inputs that it begins with, shape (nu,);
        None is zero.
        motion: a simulated motion to look at, of a single robot.
    Raises:
        ModelError: the motion is not one of this robot.
    """

    def __init__(self, model: Model, q: Any = None, motion: Trajectory | None = None, u: Any = None) -> None:
        self.model = model
        self.start = model.neutral() if q is None else _shape_of(model, q)
        self.start_inputs = _inputs_of(model, u)
        self.coordinates, self.inputs = coordinate_sliders(model), input_sliders(model)
        self.q, self.v, self.u = self.start.copy(), np.zeros(model.nv), self.start_inputs.copy()
        self.t, self.speed, self.is_playing = 0.0, 1.0, False
        self.mode, self.note, self.is_good = "pose", "", True
        self.pace = 1.0  # seconds of motion in one of the clock, as far as the machine keeps up
        self.equilibrium: Equilibrium | None = None
        self.hand: Hand | None = None
        self.seen = History(model)
        self.known = None if motion is None else _history(model, motion)
        self.solving = 0.0  # what the last update took to compute [s]
        self._acting: Model | None = None
        self._grip = self._first_grip()
        self._stepper: Stepper | None = None
        self._owed, self._is_due = 0.0, True
        if motion is not None:
            self.set_mode("replay")

    # -- what is set --------------------------------------------------------------------------------------------------

    def set_mode(self, mode: str) -> None:
        """Go on in another mode, from the state that is shown."""
        if mode not in MODES or (mode == "replay" and self.known is None):
            raise ModelError(f"mode: must be one of {self.modes} (got {mode!r})")
        if mode != self.mode:
            self.let_go()
            if mode != "simulate":
                self.v = np.zeros(self.model.nv)
            self._stepper, self.mode, self.note, self.is_good = None, mode, "", True
            self.is_playing = mode in ("simulate", "replay")
            self._restart()
            if mode == "replay" and self.known is not None:
                self.scrub(self.known.span[0])
        self._is_due = True

    @property
    def modes(self) -> tuple[str, ...]:
        """Those there are."""
        return MODES if self.known is not None else MODES[:-1]

    @property
    def record(self) -> History:
        """What scrubbing looks back at: the motion that is replayed, or what has been seen."""
        return self.known if self.mode == "replay" and self.known is not None else self.seen

    def set_values(self, values: np.ndarray) -> None:
        """Coordinates (nv,) of the sliders, as `placed` reads them; in a simulation the robot is put there at rest."""
        self.set_shape(placed(self.model, np.asarray(values, dtype=np.float64)))

    def set_shape(self, q: Any) -> None:
        """A configuration, shape (nq,); in a simulation the robot is put there at rest."""
        self._refuse_replay("q")
        self.q, self.v = _shape_of(self.model, q).copy(), np.zeros(self.model.nv)
        self._stepper, self._is_due = None, True

    @property
    def values(self) -> np.ndarray:
        """Coordinates of the sliders at what is shown."""
        return values_of(self.model, self.q)

    def set_inputs(self, u: Any) -> None:
        """Inputs, shape (nu,); None is zero."""
        self._refuse_replay("u")
        self.u, self._is_due = _inputs_of(self.model, u).copy(), True

    def _refuse_replay(self, name: str) -> None:
        """Say that a motion which is known has its own shapes and inputs."""
        if self.mode == "replay":
            raise ModelError(f"{name}: cannot be set while a motion is replayed; take another mode first")

    def play(self) -> None:
        """Let time run: a simulation goes on from the state that is shown, and what came after it is forgotten."""
        if self.mode == "replay" and self.known is not None and self.t >= self.known.span[1]:
            self.t = self.known.span[0]
        if self.mode == "simulate" and not self.is_playing:
            self._stepper = None
            self.seen.cut(self.t)
        self.is_playing, self._owed = True, 0.0

    def pause(self) -> None:
        """Let time stand."""
        self.is_playing = False

    def scrub(self, t: float) -> None:
        """Look at another time of what is recorded [s]."""
        if len(self.record) and self.mode in ("simulate", "replay"):
            self.t = float(np.clip(t, *self.record.span))
            self.q, self.v, self.u = (x.copy() for x in self.record.at(self.t))
            self._is_due = True

    def reset(self) -> None:
        """Back to the start, at rest, under the inputs of the start, and nothing recorded."""
        self.let_go()
        self.q, self.v, self.u = self.start.copy(), np.zeros(self.model.nv), self.start_inputs.copy()
        self._stepper, self.equilibrium, self.note, self.is_good = None, None, "", True
        self._restart()
        if self.mode == "replay":
            self.scrub(self.record.span[0])

    def _restart(self) -> None:
        self.t, self._owed, self._is_due = 0.0, 0.0, True
        self.seen = History(self.model)

    # -- the hand -----------------------------------------------------------------------------------------------------

    def grab(self, point: Any, link: str | None = None) -> None:
        """Take hold of the robot at the place nearest to a point in the world, on one link or on any; it is pulled from
        there in equilibria and simulations."""
        grip = nearest_grip(self.model, self.q, link, np.asarray(point, dtype=np.float64))
        if grip is None or self.mode not in ("equilibrium", "simulate"):
            return
        self._grip, self._acting, self._stepper = grip, None, None
        model = self.acting
        self.hand = Hand(model, grip, self.q, self.u, self.t, np.asarray(point, dtype=np.float64))
        self.hand.target = self.hand.place(self.q)

    def drag(self, target: Any) -> None:
        """Move the hand [m]."""
        if self.hand is not None:
            self.hand.target, self._is_due = np.array(target, dtype=np.float64), True

    def let_go(self) -> None:
        """Open the hand."""
        self.hand, self._is_due = None, True

    @property
    def acting(self) -> Model:
        """The robot with a hand at the place it was last held at: the same kernels serve every place."""
        if self._acting is None:
            self._acting = held_by_hand(self.model, self._grip)
        return self._acting

    def _first_grip(self) -> Grip | None:
        """Some place, so that the first pull waits for no compiler: the last link's."""
        meshes = [mesh for mesh in robot_geometry(self.model).meshes if mesh.kind != "deformable"]
        if not meshes:
            return None
        return Grip(str(meshes[-1].link), 1.0, np.zeros(3))

    def _all_inputs(self, force: np.ndarray | None = None) -> np.ndarray:
        """u of the model with the hand."""
        more = self.acting.nu - self.model.nu
        return np.concatenate([self.u, np.zeros(more) if force is None else force])

    # -- what follows -------------------------------------------------------------------------------------------------

    def update(self, elapsed: float) -> bool:
        """Bring the state up to date after so much time of the clock [s]; whether anything changed."""
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what they say is shown in `note`
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
        self._is_due = self.is_good and self.hand is not None and not self.hand.fits(self.q)
        return True

    def settle(self, *, stable: bool) -> None:
        """Find the equilibrium next to the state that is shown; `stable`: where that is unstable, fall to one that is
        not."""
        try:
            for _ in range(1 if self.hand is None else _SETTLES):
                force = None if self.hand is None else self.hand.pull_still(self.q, self.u, 0.0)
                found = solve_statics(self.acting, self._all_inputs(force), self.q, stable=stable)
                self.q, self.equilibrium = found.q, found
            self.is_good, self.note = self._verdict(found)
        except (ConvergenceError, ModelError) as error:
            self.is_good, self.note = False, f"equilibrium lost: {error}"
        self.seen.add(self.t, self.q, self.v, self.u)

    def _verdict(self, found: Equilibrium) -> tuple[bool, str]:
        count = int(found.unstable_count)
        if count:
            return False, f"unstable: {count} motion{'s' if count > 1 else ''} grow{'' if count > 1 else 's'}"
        return True, "stable equilibrium"

    def _update_simulate(self, elapsed: float) -> bool:
        changed, self._is_due = self._is_due, False
        if not self.is_playing:
            return changed
        self._owed += self.speed * elapsed
        steps = int(self._owed / STEP + 1e-9)
        if steps == 0:
            return changed
        self._owed -= steps * STEP
        try:
            if self._stepper is None:
                self._stepper = Stepper(self.acting, STEP, q0=self.q, v0=self.v, u=self._all_inputs(), t=self.t)
                self.seen.add(self.t, self._stepper.state.q, self._stepper.state.v, self.u)
            self._advance(self._stepper, steps)
        except (ConvergenceError, ModelError) as error:
            self.is_playing, self._stepper = False, None
            self.is_good, self.note = False, f"simulation stopped: {error}"
            return True
        here = self._stepper.state
        self.t, self.q, self.v = here.t, here.q, here.v
        self.seen.add(self.t, self.q, self.v, self.u)
        self.is_good, self.note = True, "" if self.pace > 0.95 else f"at {self.pace:.0%} of the wanted speed"
        return True

    def _advance(self, stepper: Stepper, steps: int) -> None:
        """Take the steps that are due, or as many as there is time for."""
        began, done = time.perf_counter(), 0
        while done < steps and (done == 0 or time.perf_counter() - began < _MOST_WORK):
            n, force = min(4, steps - done), None
            if self.hand is not None:
                n, here = 1, stepper.state
                force = self.hand.pull_moving(here.q, here.v, self.u, here.t, STEP)
            stepper.step(self._all_inputs(force), n)
            done += n
        self.pace += 0.1 * (done / steps - self.pace)
        if done < steps:
            self._owed = 0.0

    def _update_replay(self, elapsed: float) -> bool:
        changed, self._is_due = self._is_due, False
        if not self.is_playing or self.known is None:
            return changed
        t = self.t + self.speed * elapsed
        if t >= self.known.span[1]:
            self.pause()
        self.scrub(t)
        self._is_due = False
        return True


def _shape_of(model: Model, q: Any) -> np.ndarray:
    """One configuration, checked."""
    shape = checked_configuration(model, "q", q)
    if shape.ndim != 1:
        raise ShapeError(f"q: expected shape ({model.nq},), got {shape.shape}")
    return shape


def _inputs_of(model: Model, u: Any) -> np.ndarray:
    """Inputs for one robot, checked."""
    inputs = input_rows(model, u)
    if inputs.ndim != 1 or not np.isfinite(inputs).all():
        raise ShapeError(f"u: expected finite ({model.nu},), got {np.asarray(u).tolist()}")
    return inputs


def _history(model: Model, motion: Trajectory) -> History:
    """A motion to replay, checked."""
    if motion.q.ndim != 2 or not len(motion.t):
        raise ModelError(f"motion: must be one motion with at least one state (got q of shape {motion.q.shape})")
    sizes = {"q": (motion.q, model.nq), "v": (motion.v, model.nv), "u": (motion.u, model.nu)}
    for name, (rows, size) in sizes.items():
        if rows.shape[1] != size:
            raise ModelError(
                f"motion: is not one of robot {model.name!r}: {name} has {rows.shape[1]} columns and the robot {size}"
            )
    return History.of(model, motion)
