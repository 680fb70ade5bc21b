"""Random fingers, grippers and feet whose contacts stick, slide and begin on the way to an equilibrium."""

from typing import NamedTuple

import numpy as np

import lissom as ls


class Case(NamedTuple):
    """A robot, its inputs, its start, paths of design values, and the directions in which poses may change."""

    robot: ls.Robot
    u: np.ndarray
    q0: np.ndarray
    paths: tuple[str, ...]
    turns: tuple[int, ...] = (1, 1, 1, 1, 1, 1)


def finger(seed):
    """A tapered rod that tendons bend onto a tilted plane, along which it slides before it rests."""
    rng = np.random.default_rng([1, seed])
    robot = ls.Robot(f"finger {seed}")
    material = ls.Material(young=rng.uniform(3e5, 6e5), poisson=0.45, density=1100, viscosity=2e3)
    basis = ls.BasisLegendre(bending_y=int(rng.integers(2, 4)), bending_z=1, elongation=int(rng.integers(0, 2)))
    robot.add_link("arm", ls.Rod(rng.uniform(0.17, 0.22), ls.SectionCircle((0.012, 0.008)), basis, material))
    robot.add_tendon("flexor", "arm", lambda s: (0.0, -0.008))
    robot.add_tendon("side", "arm", lambda s: (0.006, -0.002))
    place = ls.lie.se3_exp([*rng.uniform(-0.15, 0.15, 2), 0.0, 0.0, 0.0, 0.0])
    place[:3, 3] = 0.0, 0.0, rng.uniform(-0.04, -0.025)
    law = {"stiffness": 1e4, "damping": 1.0, "friction": rng.uniform(0.2, 0.9), "stick_stiffness": 1e4}
    robot.add_contact("touch", "arm", ls.ShapePlane(), placement=place, **law)
    paths = ("arm.length", "arm.material.young", "touch.friction", "touch.stiffness", "touch.placement")
    return Case(robot, np.array([rng.uniform(3.0, 6.0), rng.uniform(0.0, 0.6)]), robot.build().neutral(), paths)


def gripper(seed):
    """Three fingers that press a ball from the start, and more when tendons pull. The ball slips down onto a tray."""
    rng = np.random.default_rng([2, seed])
    robot = ls.Robot(f"gripper {seed}")
    radius = rng.uniform(0.025, 0.035)
    rod = ls.Rod(
        0.12, ls.SectionCircle(0.01), ls.BasisLegendre(bending_y=2, bending_z=2),
        ls.Material(young=rng.uniform(5e6, 1e7), density=1000, damping_time=0.05), None, 5,
    )  # fmt: skip
    for k in range(3):
        turn, g = ls.lie.so3_exp([0.0, 0.0, 2.0 * np.pi * k / 3.0]), np.eye(4)
        g[:3, :3] = turn @ [[0.0, -1.0, 0.0], [0.0, 0.0, 1.0], [-1.0, 0.0, 0.0]]
        g[:3, 3] = turn @ [radius + 0.01 - rng.uniform(1e-3, 2e-3), 0.0, 0.1]
        robot.add_link(f"finger {k}", rod, placement=g)
        robot.add_tendon(f"flexor {k}", f"finger {k}", lambda s: (0.008, 0.0))
    robot.add_link("ball", ls.RigidBody.sphere(radius, density=rng.uniform(300, 900)), ls.JointFree())
    law = {"stiffness": 1e4, "friction": rng.uniform(0.3, 0.9), "damping": 2.0}
    law |= {"stick_stiffness": rng.uniform(2e3, 1e4), "stick_damping": 5e-3}
    robot.add_contact("touch", "ball", others=[f"finger {k}" for k in range(3)], **law)
    tray = np.eye(4)
    tray[2, 3] = -radius
    robot.add_contact("tray", "ball", ls.ShapePlane(), placement=tray, **law | {"friction": rng.uniform(0.1, 0.6)})
    paths = ("finger 0.length", "finger 1.material.young", "touch.friction", "touch.stiffness", "tray.placement")
    q0 = robot.build().neutral()
    q0[-3:] = 0.0, 0.0, rng.uniform(-1e-4, 6e-3)  # where each finger has a ball of its contact
    return Case(robot, rng.uniform(3.0, 12.0, 3), q0, paths)


def foot(seed):
    """A leg with two springy joints and a round foot, some mm deep in the ground, along which motors push it. Every
    third is a closed chain of two legs."""
    rng = np.random.default_rng([3, seed])
    robot, height = ls.Robot(f"foot {seed}"), rng.uniform(0.36, 0.39)
    lean = np.arccos((height - 0.03 + rng.uniform(0.5e-3, 2.5e-3)) / 0.4)  # where the foot is so deep
    legs = [("", 0.0, lean)] + ([("other ", -0.12, 0.45)] if seed % 3 == 0 else [])
    down = np.array([[0.0, 0, 1, 0], [0, 1, 0, 0], [-1, 0, 0, 0], [0, 0, 0, 1]])  # x of the leg points down
    angles = {}
    for name, x, lean in legs:
        hip = down.copy()
        hip[:3, 3] = x, 0.0, height
        knee = np.eye(4)
        knee[0, 3] = 0.2
        joint = ls.JointRevolute((0, 1, 0), stiffness=rng.uniform(0.5, 2.0), damping=0.02)
        robot.add_link(f"{name}thigh", ls.RigidBody.box(0.2, 0.03, 0.03, density=600), joint, placement=hip)
        robot.add_link(f"{name}shin", ls.RigidBody.box(0.2, 0.02, 0.02, density=600), joint, f"{name}thigh",
                       placement=knee)  # fmt: skip
        angles[name] = -lean, 2.0 * lean
    sole = np.eye(4)
    sole[0, 3] = 0.2
    robot.add_link("foot", ls.RigidBody.sphere(0.03, density=800), parent="shin", placement=sole)
    if len(legs) > 1:
        robot.add_loop("ankle", "shin", "other shin", joint=ls.JointRevolute((0, 1, 0)), placement_a=sole,
                       placement_b=sole)  # fmt: skip
    robot.add_joint_actuator("hip", "thigh")
    robot.add_joint_actuator("knee", "shin")
    law = {"stiffness": rng.uniform(5e3, 2e4), "damping": 1.0, "friction": rng.uniform(0.2, 0.8)}
    law |= {"stick_stiffness": rng.uniform(3e3, 1e4), "stick_damping": 1e-2}
    robot.add_contact("touch", "foot", ls.ShapePlane(), **law)
    model = robot.build()
    q0 = np.concatenate([angles[name] for name, *_ in legs])
    q0 = ls.assemble(model, q0) if model.n_rows else q0
    paths = ("thigh.joint.stiffness", "touch.friction", "touch.stiffness", "shin.placement", "foot.mass")
    return Case(robot, rng.uniform(-1.5, 1.5, 2), q0, paths, (0, 1, 0, 1, 0, 1))  # in its plane


KINDS = {"finger": finger, "gripper": gripper, "foot": foot}
