"""A hand of four kinds of bodies that takes a ball: rigid links, rods, finite elements, and a body that keeps volume.

Three rigid links on springy motors carry a soft wrist, which is a rod with two tendons. A strut beside the wrist, with
a universal joint at one end and a ball joint at the other, closes a loop and keeps that side at its length.
On the palm are two soft fingers. One is a box of finite elements in four vibration modes and their derivatives, with
two chambers on its outer side. The other is a cylinder whose motions keep the volume of every part: it stretches,
bends to both sides and twists, and a tendon runs along its inner side. Between them stands a ball on a soft stalk. The
fingers touch it by balls at their material points, and hold it by friction that sticks.

The sizes are ours. The stalk has to be stiff enough: where it is not, what squeezes the ball makes it roll out to the
side, as soon as 2 F/R, F the squeeze and R the distance of the centres, is more than the stalk's stiffness. The fingers
close on the ball, the arm turns and takes it along, which bends the stalk; then they open, and the ball springs back.

    python examples/hybrid_hand.py out/hybrid_hand
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import lissom as ls

HEIGHT, UPPER, FORE, WRIST, FINGER = 0.244, 0.22, 0.14, 0.12, 0.1  # heights and lengths [m]
BALL, PLACE, STALK = 0.022, (0.357, 0.0, 0.027), 0.08  # radius of the ball and where it is, length of its stalk [m]
APART, BESIDE = 0.034, 0.03  # of a finger from the middle of the palm, of the strut from the wrist [m]
INPUTS = "turret", "upper arm", "forearm", "front", "back", "flexor", "bore 1", "bore 2"
CONTACT = {"stiffness": 1e4, "exponent": 1.5}
HOLDS = {"damping": 5.0, "friction": 0.8, "stick_stiffness": 1e3, "stick_damping": 5e-3}
GRIP = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 2.5, 1e5, 1e5])  # [N] and [Pa]
DRIVEN = GRIP + np.array([0.1, 0.1, 0.1, 1.0, 1.0, 0.0, 0.0, 0.0])  # every input at work
TURN = np.array([0.6, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0])  # [N·m] and [N]
CLOSED, TURNED, OPENED, DURATION = 0.4, 1.0, 1.2, 2.0  # [s]
BALLS = [(x, inward, z) for x in (0.055, 0.067, 0.079) for inward in (0.004,) for z in (-0.007, 0.007)]


def at(x: float = 0.0, y: float = 0.0, z: float = 0.0) -> np.ndarray:
    """4x4 of a displacement."""
    g = np.eye(4)
    g[:3, 3] = x, y, z
    return g


DOWN = np.array([[0, 1, 0, 0], [0, 0, -1, 0], [-1, 0, 0, 0], [0, 0, 0, 1.0]])  # x down, y along the arm
UP = np.array([[0, 0, -1, 0], [0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1.0]])  # x up
BENDING = ls.BasisLegendre(torsion=0, bending_y=1, bending_z=1, elongation=0)


def bar(length: float, radius: float, density: float) -> ls.RigidBody:
    """A cylinder along x whose frame is at its end."""
    mass = density * np.pi * radius**2 * length
    across = mass * (3 * radius**2 + length**2) / 12
    moments = (mass * radius**2 / 2, across, across)
    return ls.RigidBody(mass, (length / 2, 0, 0), moments, outline=(length / 2, radius, radius), form="cylinder")


def touching(side: int) -> list[tuple[float, float, float, float]]:
    """Balls of a finger on the side y of it that is turned to the ball, as rows (x, y, z, radius)."""
    return [(x, side * inward, z, 0.006) for x, inward, z in BALLS]


def elements(divisions: tuple[int, int, int], damping_time: float) -> ls.DeformableBody:
    """The finger of finite elements."""
    mesh = ls.DomainTetrahedra(*ls.box_mesh((FINGER, 0.02, 0.018), divisions), degree=4)
    silicone = ls.HyperelasticSaintVenantKirchhoff(young=3e5, poisson=0.4, damping_time=damping_time)
    whole = ls.KinematicsFiniteElements(mesh, degree=2)
    reduced = whole.reduced(silicone, 1070.0, modes=4, derivatives=2)
    return ls.DeformableBody(reduced, mesh, silicone, 1070.0, balls=touching(-1))


def gripper(damping_time: float) -> ls.DeformableBody:
    """The finger that keeps the volume of every part."""
    motions = [
        ls.PrimitiveStretch(modes=[[1.0]]),
        ls.PrimitiveTwist(modes=[[0.0, 1.0]]),
        ls.PrimitiveBending(modes=[[1.0]], axis="y"),
        ls.PrimitiveBending(modes=[[1.0], [0.0, 1.0]], axis="z"),
    ]
    keeping = ls.KinematicsVolumePreserving(FINGER, motions)
    rubber = ls.HyperelasticNeoHookean(C=5e4, damping_time=damping_time)
    return ls.DeformableBody(keeping, ls.DomainCylinder(FINGER, 0.01), rubber, 1070.0, balls=touching(1))


def robot(*, divisions: tuple[int, int, int] = (10, 2, 2), passive: bool = False) -> ls.Robot:
    """The arm, its hand and the ball. Passive: without damping and friction, so that energy is kept."""
    damping, time = (0.0, 0.0) if passive else (0.6, 0.02)
    contact: dict[str, Any] = CONTACT if passive else CONTACT | HOLDS
    made = ls.Robot("hybrid hand")
    hinge = ls.JointRevolute((0, 1, 0), stiffness=30.0, damping=damping)
    made.add_link("turret", bar(HEIGHT, 0.02, 600.0), ls.JointRevolute((1, 0, 0), stiffness=15.0, damping=damping),
                  placement=UP)  # fmt: skip
    level = np.array([[0, 0, 1, HEIGHT], [0, 1, 0, 0], [-1, 0, 0, 0], [0, 0, 0, 1.0]])
    made.add_link("upper arm", bar(UPPER, 0.014, 700.0), hinge, parent="turret", placement=level)
    made.add_link("forearm", bar(FORE, 0.011, 700.0), hinge, parent="upper arm", placement=at(UPPER))
    _add_wrist(made, time)
    soft = {"finger": (elements(divisions, time), APART), "gripper": (gripper(time), -APART)}
    for name, (body, y) in soft.items():
        made.add_link(name, body, parent="palm", placement=at(0.006, y))
    made.add_link("stalk", ls.Rod(STALK, ls.SectionCircle(0.007), BENDING, _rubber(time)),
                  placement=at(*PLACE) @ UP @ at(-STALK))  # fmt: skip
    made.add_link("ball", ls.RigidBody.sphere(BALL, density=300.0), parent="stalk")
    for name in INPUTS[:3]:
        made.add_joint_actuator(name, name)
    for name, side in (("front", 1), ("back", -1)):
        made.add_tendon(name, "wrist", (0.008 * side, 0.0))
    made.add_tendon("flexor", path=[ls.PathBody("gripper", [(0.0, 0.008, 0.0), (FINGER, 0.008, 0.0)])])
    for name, z in (("bore 1", -0.0045), ("bore 2", 0.0045)):
        bore = ls.cylinder_surface(0.005, 0.09, 0.0035, center=(0.005, z), around=8, along=9)
        made.add_body_chamber(name, "finger", surface=bore)
    made.add_contact("grasp", list(soft), ls.ShapeSphere(BALL), on="ball", **contact)
    return made


def _rubber(time: float) -> ls.Material:
    return ls.Material(young=2e6, poisson=0.5, density=1100.0, damping_time=time)


def _add_wrist(made: ls.Robot, time: float) -> None:
    """The rod, the palm at its end, and the strut from forearm to palm, which closes the loop."""
    end = at(FORE) @ DOWN
    wrist = ls.Rod(WRIST, ls.SectionCircle(0.01), BENDING, _rubber(time))
    made.add_link("wrist", wrist, parent="forearm", placement=end)
    made.add_link("palm", ls.RigidBody.box(0.012, 0.1, 0.07, density=500.0), parent="wrist", placement=at(0.006))
    made.add_link("strut", bar(WRIST, 0.003, 1500.0), ls.JointUniversal(), "forearm", placement=end @ at(z=BESIDE))
    seat = at(-0.006, 0.0, BESIDE)
    made.add_loop("strut", "strut", "palm", placement_a=at(WRIST), placement_b=seat, joint=ls.JointSpherical())


def held(model: ls.Model) -> ls.Equilibrium:
    """The fingers closed on the ball."""
    free = ls.solve_statics(model)
    return ls.solve_statics(model.anchored(free.anchors), GRIP, free.q)


def smooth(t: float, first: float, last: float) -> float:
    """From 0 to 1, with two smooth derivatives."""
    x = min(max((t - first) / (last - first), 0.0), 1.0)
    return x * x * x * (10.0 - 15.0 * x + 6.0 * x * x)


def inputs(t: float) -> np.ndarray:
    """Close, turn, open."""
    closed = smooth(t, 0.0, CLOSED) - smooth(t, TURNED, OPENED)
    return closed * GRIP + smooth(t, CLOSED, TURNED) * TURN


def take(model: ls.Model, duration: float = DURATION, dt: float = 4e-3) -> ls.Trajectory:
    """The motion, from rest with open fingers."""
    free = ls.solve_statics(model)
    return ls.simulate(model.anchored(free.anchors), duration, free.q, u=inputs, method="generalized_alpha", dt=dt)


def mismatch(model: ls.Model, q: np.ndarray, v: np.ndarray, u: np.ndarray) -> float:
    """Residual of inverse dynamics at the result of forward dynamics, less constraint forces, relative to its size."""
    a = ls.forward_dynamics(model, q, v, u)
    asked = ls.inverse_dynamics(model, q, v, a) - ls.actuation_matrix(model, q) @ u
    across = ls.constraint_jacobian(model, q).T
    left = asked - across @ np.linalg.lstsq(across, asked, rcond=None)[0]
    return float(np.abs(left).max() / np.abs(ls.inverse_dynamics(model, q, v, a)).max())


def derivative_errors(model: ls.Model, q: np.ndarray, v: np.ndarray, u: np.ndarray, step: float = 1e-7) -> list[float]:
    """Errors of the derivatives of forward dynamics with respect to q, v and u against central differences, relative to
    the largest entry of each."""
    a, shifts = ls.forward_dynamics_derivatives(model, q, v, u), step * np.eye(model.nv)

    def slope(function: Any, count: int, size: Any) -> np.ndarray:
        return (function(1.0) - function(-1.0)).T / (2 * np.broadcast_to(size, count))

    pushes = np.diag(1e-3 * np.maximum(np.abs(u), 1.0))
    numerical = (
        slope(lambda s: ls.forward_dynamics(model, ls.integrate(model, q, s * shifts), v, u), model.nv, step),
        slope(lambda s: ls.forward_dynamics(model, q, v + s * 1e3 * shifts, u), model.nv, 1e3 * step),
        slope(lambda s: ls.forward_dynamics(model, q, v, u + s * pushes), model.nu, np.diag(pushes)),
    )
    return [float(np.abs(exact - found).max() / np.abs(found).max()) for exact, found in zip(a, numerical)]


def balance(model: ls.Model, motion: ls.Trajectory, u: np.ndarray) -> np.ndarray:
    """Energy with that of the springs of contacts, less the work of constant inputs; constant where nothing is lost."""
    p = CONTACT["exponent"] + 1.0
    touching = ls.contact_forces(model, motion.q, motion.v)
    springs = np.array([(CONTACT["stiffness"] * found.depth**p / p).sum() for found in touching])
    return ls.energy(model, motion.q, motion.v).total + springs - ls.actuation_coordinates(model, motion.q) @ u


def main(out: str | Path | None = None, duration: float = DURATION) -> dict[str, float]:
    """Statics of the closed hand, its identities and derivatives, and the motion; pictures and film in `out`."""
    model = robot().build()
    rest, motion = held(model), take(model, duration)
    closed, v = model.anchored(rest.anchors), 0.05 * np.cos(np.arange(model.nv))
    touching = ls.contact_forces(closed, rest.q)
    bodies = {name: _coordinates(model, motion.q, name) for name in ("finger", "gripper")}
    ball = ls.frame_pose(model, motion.q, "ball")[:, :3, 3]
    found = {
        "coordinates": float(model.nv),
        "stable": float(rest.is_stable),
        "residual of statics [N, N·m]": float(rest.residual),
        "loop open by [m]": float(np.abs(ls.loop_residual(model, motion.q)).max()),
        "balls that touch": float(len(touching.depth)),
        "squeeze [N]": float(np.abs(touching.force[:, 0]).sum() / 2),
        "mismatch of forward and inverse dynamics": mismatch(closed, rest.q, v, DRIVEN),
        "error of derivatives": max(derivative_errors(closed, rest.q, v, DRIVEN)),
        "ball taken along [mm]": 1e3 * float(np.linalg.norm(ball[:, :2] - ball[0, :2], axis=1).max()),
        "ball at the end from its start [mm]": 1e3 * float(np.linalg.norm(ball[-1] - ball[0])),
    }
    for name, theta in bodies.items():
        body: Any = model.links.body[model.links.names.index(name)]
        found[f"least det ∂f/∂x of the {name}"] = float(np.min(body.integrals.fold(theta)))
    if out is not None:
        Path(out).mkdir(parents=True, exist_ok=True)
        _draw(model, motion, ball, Path(out))
    return found


def _coordinates(model: ls.Model, q: np.ndarray, name: str) -> np.ndarray:
    """Of one link, shape (..., n)."""
    link = model.links.names.index(name)
    first, last = model.links.q_start[link : link + 2]
    return q[..., first:last]


def _draw(model: ls.Model, motion: ls.Trajectory, ball: np.ndarray, folder: Path) -> None:
    """Four moments, where the ball is in time, and the film."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 9), layout="constrained")
    times = [t for t in (0.0, CLOSED, TURNED, DURATION) if t <= motion.t[-1]]
    for k, t in enumerate(times):
        q = motion.q[np.argmin(np.abs(motion.t - t))]
        axes = figure.add_subplot(2, 2, k + 1)
        ls.plot_shapes(model, q, axes=axes, view=(14, -65), title=f"t = {t:g} s", obstacles=False)
    figure.savefig(folder / "shapes.png", dpi=110)
    figure = Figure(figsize=(8, 6), layout="constrained")
    place, bends = figure.subplots(2, 1, sharex=True)
    for k, name in enumerate("xyz"):
        place.plot(motion.t, 1e3 * (ball[:, k] - ball[0, k]), label=name)
    gripper = _coordinates(model, motion.q, "gripper")
    bends.plot(motion.t, FINGER * (gripper[:, 3] + 0.5 * gripper[:, 4]), label="finger that keeps volume [rad]")
    stalk = _coordinates(model, motion.q, "stalk")
    bends.plot(motion.t, STALK * np.abs(stalk).max(axis=1), label="stalk, largest [rad]")
    for axes, title in ((place, "displacement of the ball [mm]"), (bends, "bending")):
        axes.set_title(title, loc="left", fontsize=10)
        axes.legend(frameon=False, fontsize=9)
        axes.grid(alpha=0.3)
    bends.set(xlabel="t [s]", xlim=(0, motion.t[-1]))
    figure.savefig(folder / "motion.png", dpi=120)
    motion.animate(folder / "film.mp4", view=(14, -75), obstacles=False, trail="ball")


if __name__ == "__main__":
    for key, number in main(out=sys.argv[1] if sys.argv[1:] else None).items():
        print(f"{key}: {number:.4g}")
