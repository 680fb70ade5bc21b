"""Derivatives of rollouts of robots with skates, wheels and constraints by functions, against differences."""

from functools import lru_cache

import numpy as np
import pytest
from touching_robots import moved

import lissom as ls


@lru_cache
def coin():
    """A coin that rolls, with a start and design values."""
    robot = ls.Robot("coin")
    robot.add_link("coin", ls.RigidBody(1.3, inertia=(0.013, 0.013, 0.024)), ls.JointFree())
    robot.add_rolling("rim", "coin", 0.2, axis=(0, 0, 1))
    robot.add_wrench_input("push", "coin")
    model = robot.build()
    q = ls.assemble(model, ls.integrate(model, model.neutral(), [1.1, 0.3, 0.2, 0.0, 0.0, 0.19]))
    v = ls.assemble_velocities(model, q, [0.5, 0.8, 5.0, 0.0, 0.0, 0.0])
    return model, q, v, ("coin.body.mass", "rim.radius")


@lru_cache
def sleigh(has_gear=True):
    """A sleigh with a soft tail that has a skate too, and a gear or not, with a start and design values."""
    robot = ls.Robot("sleigh", gravity=(0, 0, 0))
    robot.add_link("body", ls.RigidBody(2.0, com=(0.3, 0, 0), inertia=(0.06, 0.05, 0.1)), ls.JointPlanar())
    rubber = ls.Material(young=1e5, poisson=0.5, density=1000.0, damping_time=0.02)
    robot.add_link("tail", ls.Rod(0.3, ls.SectionCircle(0.01), ls.BasisLegendre(bending_z=1), rubber), parent="body")
    for name in ("one", "two"):
        wheel = ls.RigidBody(0.2, inertia=(0.01, 0.01, 0.01), com=(0.1, 0, 0))
        robot.add_link(name, wheel, ls.JointRevolute((0, 0, 1)), "body")
    robot.add_joint_actuator("motor", "one")
    if has_gear:
        robot.add_coupling("gear", ["one", "two"], [1.0, 2.0])
    robot.add_skate("blade", "body", (0, 1, 0))
    robot.add_skate("end", "tail", (0, 1, 0), s=1.0)
    model = robot.build()
    q = np.zeros(model.nq)
    q[3:5] = 0.3
    v = ls.assemble_velocities(model, q, [1.0, 0.2, 0.7, *np.zeros(model.nv - 3)])
    return model, q, v, ("body.body.mass", "blade.point")


@lru_cache
def tethered():
    """A body with an edge on a curved surface, tethered by a rope whose length is a joint with a motor, by functions of
    poses, of a joint and of velocities."""
    robot = ls.Robot("tethered")
    robot.add_link("body", ls.RigidBody(1.3, (0.02, 0.0, 0.01), (0.013, 0.013, 0.024)), ls.JointFree())
    robot.add_link("winch", ls.RigidBody(0.7, (0, 0, 0), np.zeros((3, 3))), ls.JointPrismatic((0, 1, 0)))
    robot.add_joint_actuator("motor", "winch")
    surface = ls.Expression("z - k*x**2 - 0.2*y*y", "x, y, z", {"k": 0.4})
    edge = ls.Expression("R12*vx + R22*vy + R32*vz + c*y*wz + d*l*l_rate",
                         "x, y, l, l_rate, vx, vy, vz, wz, R12, R22, R32", {"c": 0.2, "d": 0.3})  # fmt: skip
    rope = ls.Expression("sqrt(x*x + y*y + z*z) - l", "x, y, z, l")
    robot.add_constraint("surface", "body", function=surface)
    robot.add_constraint("edge", "body", function=edge, velocity=True, joints=["winch"])
    robot.add_constraint("rope", "body", function=rope, joints=["winch"], placement_b=moved(0.0, 0.1, 1.0))
    model = robot.build()
    q = ls.integrate(model, model.neutral(), [0.3, 0.2, 0.1, 0.4, 0.3, 0.1, 1.0])
    q = ls.assemble(model, q)
    v = ls.assemble_velocities(model, q, [0.5, 0.8, 1.0, 0.3, 0.0, 0.0, 0.1])
    return model, q, v, ("body.body.mass", "surface.function.k", "edge.function.c", "rope.placement_b")


@pytest.mark.parametrize("method", ["sdirk", "generalized_alpha", "esdirk", "bathe"])
@pytest.mark.parametrize("make", [coin, sleigh, tethered], ids=["coin", "sleigh", "tethered"])
def test_gradients(make, method):
    """A loss of the last state by start, inputs and design values. Rollouts do not slip at the ends of steps."""
    model, q, v, paths = make()
    rng = np.random.default_rng(0)
    of_q, of_v = rng.normal(size=model.nq), rng.normal(size=model.nv)
    u = 0.1 * rng.normal(size=(20, model.nu))
    motion = ls.rollout(model, q, v, u, dt=0.01, steps=20, method=method)
    rates = (ls.constraint_jacobian(model, motion.q) @ motion.v[..., None])[..., 0]
    assert np.abs(rates[:, model.rate_rows]).max() < 1e-9

    def loss(x):
        return (x.q[-1] @ of_q) ** 2 + np.sin(x.v[-1] @ of_v)

    h, end = 1e-6, motion.q[-1]
    tangent = [of_q @ (ls.integrate(model, end, h * e) - ls.integrate(model, end, -h * e)) / (2 * h)
               for e in np.eye(model.nv)]  # fmt: skip
    by_q, by_v = np.zeros((2, *motion.v.shape))
    by_q[-1], by_v[-1] = 2.0 * (end @ of_q) * np.array(tangent), np.cos(motion.v[-1] @ of_v) * of_v
    gradient = motion.backward(by_q, by_v, parameters=paths)
    found = ls.check_gradient(motion, loss, gradient)
    assert set(paths) <= set(found.exact)
    for name, value in found.exact.items():
        assert value == pytest.approx(found.differenced[name], rel=1e-7, abs=1e-10), name


@pytest.mark.parametrize("method", ["sdirk", "esdirk"])
def test_forward_and_backward_agree(method):
    """A direction carried forwards has the product with any seeds that the backward pass gives, batches included."""
    model, q, v, _ = coin()
    rng = np.random.default_rng(1)
    u = 0.1 * rng.normal(size=(2, 10, model.nu))
    motion = ls.rollout(model, np.stack([q, q]), np.stack([v, 0.5 * v]), u, dt=0.01, steps=10, method=method)
    dq, dv, du = rng.normal(size=(2, model.nv)), rng.normal(size=(2, model.nv)), rng.normal(size=u.shape)
    moved = motion.forward(dq, dv, du)
    seeds = rng.normal(size=(2, *motion.v.shape))
    gradient = motion.backward(*seeds)
    forwards = (seeds[0] * moved.q).sum((-1, -2)) + (seeds[1] * moved.v).sum((-1, -2))
    backwards = (gradient.q0 * dq).sum(-1) + (gradient.v0 * dv).sum(-1) + (gradient.u * du).sum((-1, -2))
    np.testing.assert_allclose(forwards, backwards, rtol=1e-9)


@lru_cache
def slides():
    """Sliding links with functions of velocities, also of a joint, whose coordinates add."""
    robot = ls.Robot("slides")
    for name, axis in (("x", (1, 0, 0)), ("y", (0, 1, 0)), ("z", (0, 0, 1))):
        robot.add_link(name, ls.RigidBody(0.5, (0, 0, 0), np.zeros((3, 3))), ls.JointPrismatic(axis),
                       parent={"y": "x", "z": "y"}.get(name))  # fmt: skip
    robot.add_link("turn", ls.RigidBody(0.5, (0.1, 0, 0), (0.01, 0.02, 0.03)), ls.JointRevolute((0, 0, 1)), "z")
    robot.add_joint_actuator("motor", "turn")
    edge = ls.Expression("R12*vx + R22*vy + y*wz*cos(x)", "R12, R22, vx, vy, wz, x, y")
    robot.add_constraint("edge", "turn", function=edge, velocity=True)
    lift = ls.Expression("vz - x*a_rate*sin(a) + y*vx", "a, a_rate, x, y, vx, vz")
    robot.add_constraint("lift", "turn", function=lift, velocity=True, joints=["turn"])
    model = robot.build()
    q = np.array([0.3, 0.4, 0.1, 0.5])
    return model, q, ls.assemble_velocities(model, q, [0.5, 0.2, 0.0, 0.8])


@pytest.mark.parametrize("make", [lambda: sleigh(False)[:3], slides], ids=["sleigh", "slides"])
def test_step_derivatives(make):
    """The matrices of one step, against differences: all coordinates of these robots add."""
    model, q, v = make()
    x, h = np.concatenate([q, v, [0.2]]), 1e-5
    found = ls.step_derivatives(model, q, v, [0.2], dt=0.01)

    def end(x):
        step = ls.step_derivatives(model, x[: model.nv], x[model.nv : -1], x[-1:], dt=0.01)
        return np.concatenate([step.q, step.v])

    wanted = np.stack([(end(x + h * e) - end(x - h * e)) / (2 * h) for e in np.eye(len(x))], axis=-1)
    np.testing.assert_allclose(np.hstack([found.A, found.B]), wanted, atol=1e-7 * np.abs(wanted).max())
