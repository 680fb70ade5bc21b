"""Small robots that the tests of dynamics, statics and integration share, built once."""

from functools import lru_cache

import numpy as np

import lissom as ls

MATERIAL = ls.Material(young=1e6, density=1000.0, viscosity=3e3)


def describe_rod(joint=None, **options):
    """A soft rod with a tendon and one bending mode too many to be trivial; three coordinates."""
    robot = ls.Robot("rod", **options)
    basis = ls.BasisLegendre(bending_y=1, elongation=0)
    robot.add_link("rod", ls.Rod(0.4, ls.SectionCircle(0.02), basis, MATERIAL), joint)
    robot.add_tendon("tendon", "rod", (0.0, 0.01))
    return robot


def describe_pendulum(**options):
    """A rigid rod of 1 m and 2 kg on a hinge about y, hanging along −z, with a motor; its frame is at the hinge."""
    robot = ls.Robot("pendulum", **options)
    robot.add_link("bob", ls.RigidBody(2.0, (0.0, 0.0, -0.5), (2 / 12, 2 / 12, 0.0)), ls.JointRevolute((0, 1, 0)))
    robot.add_joint_actuator("motor", "bob")
    return robot


def describe_floating():
    """A free body, a rod on it with a tendon, and a spherical wrist with a body."""
    robot = ls.Robot("free")
    robot.add_link("base", ls.RigidBody.box(0.2, 0.1, 0.1, density=300.0), ls.JointFree(damping=0.3))
    rod = ls.Rod(0.3, ls.SectionCircle(0.02), ls.BasisLegendre(torsion=0, bending_y=1), MATERIAL)
    robot.add_link("arm", rod, parent="base")
    robot.add_link("hand", ls.RigidBody.sphere(0.04, density=800.0), ls.JointSpherical(stiffness=0.5), parent="arm")
    robot.add_tendon("tendon", "arm", (0.0, 0.01))
    return robot


def describe_mixed():
    """A free body, a rod on it, a spherical wrist with a body and a load: every kind of coordinate."""
    robot = ls.Robot("mixed")
    robot.add_link("base", ls.RigidBody.box(0.2, 0.1, 0.1, density=300.0), ls.JointFree(damping=0.3))
    basis = ls.BasisLegendre(torsion=0, bending_y=1, bending_z=0)
    robot.add_link("arm", ls.Rod(0.3, ls.SectionCircle((0.02, 0.015)), basis, MATERIAL), parent="base")
    robot.add_link("hand", ls.RigidBody.sphere(0.04, density=800.0), ls.JointSpherical(stiffness=0.5), parent="arm")
    robot.add_frame("mark", "arm", s=0.7)
    robot.add_tendon("tendon", "arm", (0.0, 0.01))
    robot.add_joint_actuator("wrist", "hand")
    robot.add_point_load("load", "hand", force=lambda t: (np.sin(t), 0.0, 1.0))
    return robot


def describe_looped():
    """A rod and a rigid finger on a turning base, joined by a universal loop; the rod is tied to the world as well."""
    robot = ls.Robot("looped")
    robot.add_link("base", ls.RigidBody.box(0.2, 0.1, 0.1, density=300.0), ls.JointRevolute(stiffness=2.0))
    basis = ls.BasisLegendre(torsion=0, bending_y=1, bending_z=1, elongation=0)
    robot.add_link("arm", ls.Rod(0.3, ls.SectionCircle(0.02), basis, MATERIAL), parent="base")
    robot.add_link("finger", ls.RigidBody.box(0.3, 0.02, 0.02, density=800.0), ls.JointSpherical(stiffness=0.5), "base")
    aside = np.eye(4)
    aside[:3, 3] = 0.1, 0.05, 0.0
    joint = ls.JointUniversal((1, 0, 0), (0, 1, 1))
    robot.add_tendon("tendon", "arm", (0.0, 0.01))
    robot.add_loop("tie", "finger", "arm", s_b=0.7, placement_a=aside, placement_b=aside, joint=joint)
    robot.add_loop("rail", "arm", placement_b=aside, joint=ls.JointPlanar((0, 1, 2)))
    return robot


@lru_cache(maxsize=1)
def rod():
    """Model of describe_rod."""
    return describe_rod().build()


@lru_cache(maxsize=1)
def pendulum():
    """Model of describe_pendulum."""
    return describe_pendulum().build()


@lru_cache(maxsize=1)
def mixed():
    """Model of describe_mixed."""
    return describe_mixed().build()


@lru_cache(maxsize=1)
def looped():
    """Model of describe_looped."""
    return describe_looped().build()


def state(model, lead=(), seed=0):
    """q, v, a, u of order one, quaternions of unit length; leading axes `lead`."""
    rng = np.random.default_rng(seed)
    step, v, a = (rng.uniform(-1, 1, (*lead, model.nv)) for _ in range(3))
    return ls.integrate(model, model.neutral(), step), v, a, rng.uniform(0.1, 1, (*lead, model.nu))
