"""Bodies and robots that touch, beside MuJoCo in the same run on one core, at equal penetration at rest.

    python benchmarks/contacts.py

A ball that drops and comes to rest, a ball that rolls, a box that slides to rest, 50 balls and 20 boxes that fall into
a pit, Gymnasium's humanoid, which falls, its ant, which lands and stands on four legs, and a gripper, which closes on a
box and holds it in the air. Both programs read each scene from the same MJCF text.

- Law of lissom: that which it chooses for a soft material of all bodies.
- Law of MuJoCo: its own, with the stiffness at which the deepest contact at rest is as deep as in lissom, with critical
  damping and the same friction; elliptic cones, Newton's solver and semi-implicit Euler steps, its defaults but for the
  cones. Files that state other ones are overruled.
- Steps: 2 ms in both. Single bodies also move by adaptive steps of lissom and by steps of 0.2 ms of MuJoCo.

A scene moves, settles, and rests for a second. Columns: processor time per simulated second while it moves and at rest,
depth of the deepest contact at the end, distance of the first body along x, drift (largest displacement of a body
during the second at rest), and the largest energy over that of the start, above the floor.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("LISSOM_CORES", "1")

import dataclasses
import tempfile
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np

import lissom as ls

G, FRICTION, IMPEDANCE, STEP, SAMPLES = 9.81, 0.5, 0.9, 2e-3, 50
STOP_DAMPING = 50.0  # of joints, since MuJoCo's stops are damped, too [N·m·s/rad]
SOFT = ls.Material(young=2e6, poisson=0.45, density=1000.0, friction=FRICTION, restitution=0.3)
RADIUS, SIDES = 0.05, (0.2, 0.1, 0.06)
PIT = 0.25  # half the width of a pit [m]
Plane = tuple[tuple[float, float, float], tuple[float, float, float]]  # normal, place [m]
FLOOR: Plane = ((0, 0, 1), (0, 0, 0))
WALLS: tuple[Plane, ...] = (
    FLOOR, ((-1, 0, 0), (PIT, 0, 0)), ((1, 0, 0), (-PIT, 0, 0)), ((0, -1, 0), (0, PIT, 0)), ((0, 1, 0), (0, -PIT, 0))
)  # fmt: skip


class Case(NamedTuple):
    """A scene: its MJCF text, in which planes of the world may stand; those that lissom gets; the first velocity of the
    first body along x [m/s]; for how long it moves and settles [s], whether it rests then, and the steps of both
    programs."""

    name: str
    text: str
    planes: tuple[Plane, ...] = (FLOOR,)
    speed: float = 0.0
    moves: float = 2.0
    settles: float = 0.0
    rests: bool = True
    lissom_steps: tuple[dict[str, Any], ...] = ({"dt": STEP},)
    mujoco_steps: tuple[float, ...] = (STEP,)
    rounds: int = 3


class Row(NamedTuple):
    """A row of the table: times per simulated second while a scene moves and at rest [s], depth, distance and drift
    [m], and the largest energy over that of the start."""

    moving: float
    resting: float
    depth: float
    distance: float
    drift: float
    energy: float


# ---- scenes ----


def scene(bodies: str, planes: tuple[Plane, ...] = (FLOOR,)) -> str:
    """The MJCF text of bodies and planes."""
    walls = "".join(
        f'<geom type="plane" size="5 5 .1" pos="{numbers(place)}" zaxis="{numbers(normal)}"/>'
        for normal, place in planes
    )
    return f'<mujoco><size memory="200M"/><worldbody>{walls}{bodies}</worldbody></mujoco>'


def numbers(values: Any) -> str:
    """Numbers as an attribute of MJCF."""
    return " ".join(f"{x:.12g}" for x in values)


def body(geom: str, place: Any) -> str:
    """A free body of one geom."""
    return f'<body pos="{numbers(place)}"><freejoint/><geom {geom} density="{SOFT.density:g}"/></body>'


def box(*sides: float) -> str:
    """Attributes of a box [m]."""
    return f'type="box" size="{numbers(0.5 * x for x in sides)}"'


BALL = f'type="sphere" size="{RADIUS}"'


def single(name: str, geom: str, height: float, **options: Any) -> Case:
    """One body whose centre starts at a height above the floor [m], by several kinds of steps."""
    steps = {"dt": STEP}, {"rtol": 1e-3}, {"rtol": 1e-6}
    text = scene(body(geom, (0, 0, height)))
    return Case(name, text, lissom_steps=steps, mujoco_steps=(STEP, 0.1 * STEP), rounds=5, **options)


def heap(count: int, geom: str) -> str:
    """Bodies in layers of nine above a pit, slightly out of line."""
    rng, bodies = np.random.default_rng(0), []
    for k in range(count):
        layer, rest = divmod(k, 9)
        i, j = divmod(rest, 3)
        shift = np.clip(0.2 * rng.normal(size=2), -0.28, 0.28) * RADIUS  # balls do not overlap
        x, y = (i - 1) * 2.6 * RADIUS + shift[0], (j - 1) * 2.6 * RADIUS + shift[1]
        bodies.append(body(geom, (x, y, (1.2 + 2.5 * layer) * RADIUS)))
    return scene("".join(bodies), WALLS)


def of_gymnasium(name: str) -> str:
    """The text of a robot of Gymnasium."""
    package = find_spec("gymnasium")
    if package is None or package.origin is None:
        raise SystemExit("the humanoid and the ant are files of gymnasium: pip install gymnasium")
    return (Path(package.origin).parent / "envs" / "mujoco" / "assets" / name).read_text()


def gripper() -> str:
    """Two fingers on slides, which soft springs of 20 N close on a box; nothing else carries it."""
    finger = ('<body pos="{x} 0 0.3"><joint type="slide" axis="{axis} 0 0" stiffness="200" springref="0.1"/>'
              '<geom type="box" size="0.01 0.02 0.03" density="1000"/></body>')  # fmt: skip
    fingers = finger.format(x=-0.041, axis=1) + finger.format(x=0.041, axis=-1)
    return scene(body(box(0.06, 0.05, 0.08), (0, 0, 0.3)) + fingers)


def cases() -> tuple[Case, ...]:
    """All scenes."""
    cube = box(*[1.6 * RADIUS] * 3)
    return (
        single("ball that drops", BALL, RADIUS + 0.05),
        single("ball that rolls", BALL, RADIUS, speed=1.0, rests=False),
        single("box that slides", box(*SIDES), 0.5 * SIDES[2], speed=1.0),
        Case("50 balls", heap(50, BALL), WALLS, moves=1.0, settles=4.0),
        Case("20 boxes", heap(20, cube), WALLS, moves=1.0, settles=2.0),
        Case("humanoid", of_gymnasium("humanoid.xml"), settles=4.0),
        Case("ant", of_gymnasium("ant.xml"), settles=2.0),
        Case("gripper", gripper()),
    )


# ---- both programs ----


def smallest(run: Callable[[], Any], count: int) -> float:
    """The smallest processor time of `count` runs [s]."""
    times = []
    for _ in range(count):
        began = process_time()
        run()
        times.append(process_time() - began)
    return min(times)


def described(case: Case) -> ls.Robot:
    """The robot of a scene, whose bodies are of the soft material and touch each other and the planes."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", ls.LeftOutWarning)  # planes, lights, and the law of MuJoCo
        path = Path(folder) / "scene.xml"
        path.write_text(case.text)
        robot = ls.load_mjcf(path, limit_damping=STOP_DAMPING)
    robot.gravity = (0, 0, -G)
    for name, link in robot.links.items():
        if isinstance(link.body, ls.RigidBody):
            robot.links[name] = dataclasses.replace(link, body=dataclasses.replace(link.body, material=SOFT))
    for k, (normal, place) in enumerate(case.planes):
        g = np.eye(4)
        g[:3, 3] = place
        robot.add_contact(f"plane {k}", ls.EVERYTHING, ls.ShapePlane(normal), placement=g)
    robot.add_mutual_contacts()
    return robot


def durations(case: Case) -> list[float]:
    """Of the parts of a scene: it moves, settles, and rests for a second [s]."""
    return [x for x in (case.moves, case.settles, float(case.rests)) if x > 0.0]


def of_lissom(case: Case, model: ls.Model, steps: dict[str, Any]) -> Row:
    """The row of a scene by lissom."""
    names = list(model.description.links)
    q, v, held = ls.start_configuration(model), np.zeros(model.nv), model
    v[3] += case.speed
    start, times, energies, places = ls.frame_pose(model, q, names[0])[0, 3], [], [], np.zeros(0)
    for duration in durations(case):
        motion, time = _part(case, held, q, v, duration, steps)
        times.append(time)
        energies.append(ls.energy(model, motion.q, motion.v).total)
        places = np.stack([ls.frame_pose(model, motion.q, name)[:, :3, 3] for name in names], axis=1)
        q, v, held = motion.q[-1], motion.v[-1], held.anchored(motion.anchors)
    depth = float(ls.contact_forces(model, q).depth.max())
    return row(case, times, depth, places[-1, 0, 0] - start, places, np.concatenate(energies))


def _part(
    case: Case, model: ls.Model, q: np.ndarray, v: np.ndarray, duration: float, steps: dict[str, Any]
) -> tuple[ls.Trajectory, float]:
    """A part of a motion, and its time per simulated second without samples [s]."""

    def moved(t: Any) -> ls.Trajectory:
        return ls.simulate(model, duration, q, v, t_eval=t, u=np.zeros(model.nu), **steps)

    motion = moved(np.linspace(0.0, duration, round(SAMPLES * duration) + 1))
    return motion, smallest(lambda: moved([duration]), case.rounds) / duration


def row(case: Case, times: list[float], depth: float, way: float, places: np.ndarray, energy: np.ndarray) -> Row:
    """A row from the times of all parts, places of the bodies in the last of them (n, bodies, 3) [m], and energies."""
    drift = np.linalg.norm(places - places[0], axis=2).max() if case.rests else np.nan
    return Row(times[0], times[-1] if case.rests else np.nan, depth, way, float(drift), float(energy.max() / energy[0]))


def of_mujoco(case: Case, depth: float, step: float) -> Row:
    """The row of a scene by MuJoCo, for the stiffness with which it rests at a depth."""
    stiffness, rounds = (1.0 - IMPEDANCE) * G / (IMPEDANCE * depth), case.rounds
    for _ in range(4):  # a depth is nearly as the inverse of the stiffness
        stiffness *= _moved(case, stiffness, step, 0).depth / depth
    return _moved(case, stiffness, step, rounds)


def compiled(case: Case, stiffness: float, step: float) -> Any:
    """The MjModel of a scene with the law of all its geoms."""
    import mujoco

    model: Any = mujoco.MjModel.from_xml_string(case.text)  # type: ignore[attr-defined]
    model.opt.timestep, model.opt.gravity[:] = step, (0, 0, -G)
    model.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC  # type: ignore[attr-defined]
    model.opt.solver = mujoco.mjtSolver.mjSOL_NEWTON  # type: ignore[attr-defined]
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_EULER  # type: ignore[attr-defined]
    model.opt.iterations, model.geom_condim[:], model.geom_margin[:] = 100, 3, 0.0
    model.geom_friction[:] = FRICTION, 0.0, 0.0
    model.geom_solref[:] = -stiffness, -2.0 * np.sqrt(stiffness)
    model.geom_solimp[:] = IMPEDANCE, IMPEDANCE, 1e-6, 0.5, 2.0
    return model


def _started(case: Case, model: Any) -> Any:
    """The state at which a scene begins: that of the file, within all limits of hinges and slides."""
    import mujoco

    data: Any = mujoco.MjData(model)  # type: ignore[attr-defined]
    for k in np.flatnonzero(model.jnt_limited):
        place = model.jnt_qposadr[k]
        data.qpos[place] = np.clip(data.qpos[place], *model.jnt_range[k])
    data.qvel[0] += case.speed
    mujoco.mj_forward(model, data)  # type: ignore[attr-defined]
    return data


def _moved(case: Case, stiffness: float, step: float, rounds: int) -> Row:
    """The row of a scene with a stiffness; without times if `rounds` is 0."""
    import mujoco

    model = compiled(case, stiffness, step)
    data = _started(case, model)
    start, times, energies, places = data.xpos[1, 0], [], [], np.zeros(0)
    for duration in durations(case):
        count, samples = round(duration / step), round(SAMPLES * duration)
        if rounds:
            times.append(min(_time(model, data, count) for _ in range(rounds)) / duration)
        seen = []
        for _ in range(samples):
            energies.append(_energy(model, data))
            seen.append(data.xpos[1:].copy())
            mujoco.mj_step(model, data, count // samples)  # type: ignore[attr-defined]
        places = np.array([*seen, data.xpos[1:]])
    mujoco.mj_forward(model, data)  # type: ignore[attr-defined]
    depth = -float(data.contact.dist.min(initial=0.0))
    return row(case, times or [np.nan], depth, data.xpos[1, 0] - start, places, np.array(energies))


def _energy(model: Any, data: Any) -> float:
    """Energy of a state, of gravity, springs and motion [J]."""
    import mujoco

    mujoco.mj_forward(model, data)  # type: ignore[attr-defined]
    mujoco.mj_energyPos(model, data)  # type: ignore[attr-defined]
    mujoco.mj_energyVel(model, data)  # type: ignore[attr-defined]
    return float(data.energy.sum())


def _time(model: Any, data: Any, count: int) -> float:
    """Processor time of `count` steps from a state, which stays [s]."""
    import mujoco

    copied = mujoco.MjData(model)  # type: ignore[attr-defined]
    mujoco.mj_copyData(copied, model, data)  # type: ignore[attr-defined]
    began = process_time()
    mujoco.mj_step(model, copied, count)  # type: ignore[attr-defined]
    return process_time() - began


# ---- the table ----


def line(name: str, program: str, found: Row) -> str:
    """A line of the table; a number that a scene does not have is left out."""
    cells = ((1e3, 12, ".2f"), (1e3, 12, ".2f"), (1e3, 11, ".4f"), (1.0, 13, ".4f"), (1e6, 12, ".3g"), (1.0, 8, ".3f"))
    shown = (f"{unit * x:{width}{form}}" if x == x else " " * width for x, (unit, width, form) in zip(found, cells))
    return f"{name:16s} {program:18s}" + "".join(shown)


def main() -> None:
    """Print a row for each scene and program, and the ratio of the times at equal steps."""
    print(f"{'':35s}{'moving':>12s}{'at rest':>12s}{'depth':>11s}{'distance':>13s}{'drift':>12s}{'energy':>8s}\n"
          f"{'scene':16s} {'program':18s}{'[ms/s]':>12s}{'[ms/s]':>12s}{'[mm]':>11s}{'[m]':>13s}{'[um]':>12s}"
          f"{'[-]':>8s}")  # fmt: skip
    for case in cases():
        model, rows = described(case).build(), {}
        for steps in case.lissom_steps:
            label = "lissom, " + "".join(f"{name} {value:g}" for name, value in steps.items())
            rows[label] = of_lissom(case, model, steps)
        ours = next(iter(rows.values()))
        for step in case.mujoco_steps:
            rows[f"MuJoCo, dt {step:g}"] = of_mujoco(case, ours.depth, step)
        for label, found in rows.items():
            print(line(case.name, label, found), flush=True)
        theirs = rows[f"MuJoCo, dt {STEP:g}"]
        print(f"{case.name:16s} {'ratio':18s}{ours.moving / theirs.moving:12.2f}"
              + (f"{ours.resting / theirs.resting:12.2f}" if case.rests else ""), flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
