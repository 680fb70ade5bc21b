"""Robots that are written for other tools, and their coordinates there."""

import numpy as np

import lissom as ls

SILICONE = ls.Material(young=3e6, density=1100, damping_time=0.01)


def placed(x=0.0, y=0.0, z=0.0, turn=None):
    """A pose by its position and, optionally, a rotation vector."""
    from scipy.spatial.transform import Rotation

    g = np.eye(4)
    g[:3, 3] = x, y, z
    if turn is not None:
        g[:3, :3] = Rotation.from_rotvec(turn).as_matrix()
    return g.tolist()


def soft_arm():
    """A rigid base with a motor, a tapered curved rod with tendons, a branch at half of it, and a tool at its tip."""
    robot = ls.Robot("soft arm", gravity=(0.4, -0.3, -9.7))
    motor = ls.JointRevolute((0.0, 0.6, 0.8), stiffness=2.0, rest=0.2, damping=0.1, armature=0.01, limits=(-2.0, 1.5),
                             limit_stiffness=50.0)  # fmt: skip
    robot.add_link(
        "base",
        ls.RigidBody.box(0.1, 0.06, 0.04, density=800.0),
        motor,
        placement=placed(0.1, 0.2, 0.3, (0.2, 0.3, -0.4)),
    )
    rod = ls.Rod(0.3, ls.SectionCircle((0.012, 0.008)), ls.BasisLegendre(torsion=1, bending_y=3, bending_z=3), SILICONE,
                 reference_strain=(0.3, 1.5, -1.0, 1, 0, 0))  # fmt: skip
    robot.add_link("arm", rod, parent="base", placement=placed(0.05, 0.0, 0.02, (0.0, 0.3, 0.2)))
    body = ls.RigidBody(0.05, (0.01, 0.02, 0.0), [[4e-5, 1e-6, 0], [1e-6, 5e-5, 2e-6], [0, 2e-6, 6e-5]])
    robot.add_link("branch", body, ls.JointUniversal(stiffness=0.2, damping=(0.01, 0.02)), parent="arm", at=0.52,
                   placement=placed(0.0, 0.02, 0.0, (0.1, 0.0, 0.3)))  # fmt: skip
    slide = ls.JointPrismatic((1, 0, 0), stiffness=30.0, damping=0.4)
    robot.add_link("tool", ls.RigidBody.cylinder(0.05, 0.01, density=900.0), slide, "arm", placement=placed(0.03))
    robot.add_tendon("up", "arm", lambda s: (0.0, 0.007 - 0.002 * s))
    robot.add_tendon("side", path=[ls.PathPoint("base", (0.0, 0.02, 0.0)), ls.PathRod("arm", (0.006, 0.0), 0.1, 0.9)])
    robot.add_tendon("low", "arm", (0.0, -0.006))
    robot.add_joint_actuator("turn", "base")
    robot.add_joint_actuator("wag", "branch")
    robot.add_wrench_input("jet", "tool", directions=(0.1, 0, 0, 0, 1, 0.2), position=(0.02, 0.0, 0.0))
    robot.couple_inputs("pull", {"up": 1.5, "low": 0.5})
    robot.limit_input("side", 0.0, 20.0)
    robot.add_spring("stay", ls.PathPoint(None, (0.3, 0.3, 0.6)), ls.PathPoint("arm", (0.0, 0.0, 0.01), 0.7),
                     stiffness=8.0, damping=0.3, rest=0.2)  # fmt: skip
    robot.add_frame("mark", "arm", s=0.3, placement=placed(0.0, 0.0, 0.01, (0.5, 0.0, 0.0)))
    robot.add_state(
        "home", {"base": 0.3, "tool": 0.01, "branch": (0.1, -0.2)}, {"base": 0.5}, {"side": 2.0, "wag": (0.1, 0.2)}
    )
    return robot


def names_of_coordinates(robot):
    """The names of the joints of a rigid robot in files, one for each velocity coordinate."""
    out = []
    for link in robot.links.values():
        n = link.joint.nv
        out += [link.name] if n == 1 else [f"{link.name}_{k + 1}" for k in range(n)]
    return out
