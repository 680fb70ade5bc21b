"""Custom joints for the tests: copies of native ones, curved ones of no native kind, and robots that have them."""

from functools import cache, partial

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import lissom as ls

jax = pytest.importorskip("jax")
jnp = jax.numpy

AXIS = np.array([0.48, -0.6, 0.64])
OTHER = np.array([0.6, 0.8, 0.0])
PITCH = -0.13
SPRING = {"stiffness": 1.7, "damping": 0.2, "rest": [0.3]}
SPRINGS = {"stiffness": [[1.7, 0.3], [0.3, 2.0]], "damping": 0.2, "rest": [0.3, -0.1]}


def turned(axis, angle):
    """Rotation by Rodrigues' formula, in JAX."""
    W = jnp.array([[0.0, -axis[2], axis[1]], [axis[2], 0.0, -axis[0]], [-axis[1], axis[0], 0.0]])
    return jnp.eye(3) + jnp.sin(angle) * W + (1.0 - jnp.cos(angle)) * W @ W


def posed(R, p):
    """4x4, in JAX."""
    return jnp.block([[R, jnp.asarray(p)[:, None]], [jnp.zeros((1, 3)), jnp.ones((1, 1))]])


def screw(q, pitch=0.0):
    """A revolute or helical joint."""
    return posed(turned(AXIS, q[0]), pitch * q[0] * AXIS)


def cylinder(q):
    """A cylindrical joint."""
    return posed(turned(AXIS, q[0]), q[1] * AXIS)


def universal(q):
    """A universal joint as one motion."""
    return posed(turned(AXIS, q[0]) @ turned(OTHER, q[1]), jnp.zeros(3))


def in_python(function):
    """The same function, with a loop that cannot be compiled, so that Python evaluates it at every state."""
    return lambda q: function(jax.lax.while_loop(lambda s: s[1] < 1, lambda s: (s[0], s[1] + 1), (q, 0))[0])


def spline(pitch):
    """A screw as a table: its rotation vector and its position are straight lines."""
    points = np.array([-2.0, -1.1, -0.3, 0.4, 1.0, 1.9, 2.5])
    return ls.PoseSpline(points, points[:, None] * AXIS, pitch * points[:, None] * AXIS)


PAIRS = {
    "revolute": (ls.JointRevolute(AXIS, **SPRING), ls.JointCustom(screw, **SPRING)),
    "revolute table": (ls.JointRevolute(AXIS, **SPRING), ls.JointCustom(spline(0.0), **SPRING)),
    "helical": (ls.JointHelical(AXIS, PITCH, **SPRING), ls.JointCustom(partial(screw, pitch=PITCH), **SPRING)),
    "helical table": (ls.JointHelical(AXIS, PITCH, **SPRING), ls.JointCustom(spline(PITCH), **SPRING)),
    "cylindrical": (ls.JointCylindrical(AXIS, **SPRINGS), ls.JointCustom(cylinder, 2, **SPRINGS)),
    "helical in Python": (
        ls.JointHelical(AXIS, PITCH, **SPRING),
        ls.JointCustom(in_python(partial(screw, pitch=PITCH)), **SPRING),
    ),
    "universal in Python": (
        ls.JointUniversal(AXIS, OTHER, **SPRINGS),
        ls.JointCustom(in_python(universal), 2, **SPRINGS),
    ),
    "universal": (ls.JointUniversal(AXIS, OTHER, **SPRINGS), ls.JointCustom(universal, 2, **SPRINGS)),
}
pairs = pytest.mark.parametrize("kind", PAIRS)


def body(rng, mass=0.7):
    """A small body with its mass off its frame."""
    return ls.RigidBody(mass, rng.uniform(-0.05, 0.05, 3), (2e-3, 3e-3, 4e-3))


def placement(rng):
    """A random pose near by."""
    g = np.eye(4)
    g[:3, :3], g[:3, 3] = Rotation.random(random_state=rng).as_matrix(), rng.uniform(-0.1, 0.1, 3)
    return g


def robot_with(joint, base=None):
    """A free or given base, the joint twice with a rod between, and more beyond it and beside."""
    rng = np.random.default_rng(3)
    robot = ls.Robot("custom")
    robot.add_link("base", body(rng), ls.JointFree() if base is None else base, placement=placement(rng))
    robot.add_link("near", body(rng), joint, "base", placement=placement(rng))
    material = ls.Material(young=1e5, density=1100, viscosity=1e2)
    basis = ls.BasisLegendre(bending_y=1, bending_z=1, torsion=0)
    rod = ls.Rod(length=0.3, section=ls.SectionCircle(0.04), material=material, basis=basis)
    robot.add_link("rod", rod, ls.JointSpherical(stiffness=0.4), "near", placement=placement(rng))
    robot.add_link("far", body(rng, 0.2), joint, "rod", placement=placement(rng))
    robot.add_link("beside", body(rng, 0.3), ls.JointRevolute(stiffness=0.5), "near", placement=placement(rng))
    robot.add_tendon("pull", "rod", offset=(0.0, 0.02))
    robot.add_joint_actuator("motor", "near")
    robot.add_point_load("load", "far", force=(0.3, -0.2, 0.5), moment=(0.01, 0.02, 0.0))
    return robot


@cache
def both(kind, base=None):
    """The native robot and the custom one, on a free base or on a joint."""
    return tuple(robot_with(joint, base).build() for joint in PAIRS[kind])


def state(model, seed=0, size=0.7):
    """A random state and inputs."""
    rng = np.random.default_rng(seed)
    q = ls.integrate(model, model.neutral(), size * rng.uniform(-1, 1, model.nv))
    return q, rng.uniform(-1, 1, model.nv), rng.uniform(-2, 2, model.nv), rng.uniform(0, 2, model.nu)


def close(found, expected, share=1e-12):
    """Arrays, or tuples of them, equal to a share of the largest entry."""
    if isinstance(expected, tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected):
            close(one, other, share)
        return
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    assert np.abs(found - expected).max(initial=0.0) <= share * max(np.abs(expected).max(initial=0.0), 1e-3)


def warped(q):
    """Three coordinates that bend, turn and move together, at an offset where all are zero."""
    x, y, z = q
    w = jnp.array([0.3 + x * y, jnp.sin(x) - 0.4 * z, 0.2 * y * y + x + z**3])
    p = jnp.array([0.1 + 0.3 * jnp.cos(y * z), x * z + 0.2 * y, jnp.exp(0.4 * x) - y])
    angle = jnp.sqrt(w @ w)
    return posed(turned(w / angle, angle), p)


def wound():
    """A table that is no straight line."""
    x = np.linspace(-2.0, 2.0, 9)
    w = np.stack([np.sin(x), 0.3 * x**2, x], axis=1)
    return ls.PoseSpline(x, w, np.stack([0.1 * np.cos(x), 0.2 * x, 0.05 * x**3], axis=1))


CURVED = {"function": ls.JointCustom(warped, 3, stiffness=0.3), "table": ls.JointCustom(wound(), damping=0.1)}
