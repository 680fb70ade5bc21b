"""Constraints by functions of poses and velocities: rows, derivatives, other descriptions of the same, and errors."""

from functools import lru_cache

import numpy as np
import pytest
import warp as wp
from dynamics.constraint_checks import (
    check_derivatives,
    check_derivatives_of_forward_dynamics,
    check_wrenches,
    state,
)
from touching_robots import moved

import lissom as ls
from lissom.launch.buffers import Buffers, register_loops
from lissom.launch.prepare import TableOptions
from lissom.lie.types import kernel_options, vec3, vec6
from lissom.model.tables import TablesStruct
from lissom.passes.scratch import ScratchStruct
from lissom.statics.newton_kernel import Sought, newton_in_kernel, results
from lissom.systems.newton_matrix import NewtonBuffersStruct, newton_buffers, newton_matrix_of
from lissom.systems.residual import residual_of

A, B = moved(0.1, 0.02, -0.05, (0.3, -0.2, 0.4)), moved(-0.2, 0.1, 0.3, (-0.1, 0.5, 0.2))
BODY = ls.RigidBody(1.3, (0.02, 0.01, -0.03), (0.02, 0.03, 0.04))
SURFACE = "z - x**2 + 0.3*sin(y)*x"
TURNED = "R11*x + R23*R32 - cos(R31)*y + exp(z/2)*R22 - 0.4"


def free():
    """A free body with a frame on a surface and at an angle to it, both in the world."""
    robot = ls.Robot("free")
    robot.add_link("body", BODY, ls.JointFree())
    robot.add_constraint("surface", "body", function=ls.Expression(SURFACE, "x, y, z"), placement_a=A, placement_b=B)
    robot.add_constraint("turned", "body", function=ls.Expression(TURNED, "x, y, z, R11, R23, R32, R31, R22"),
                         placement_a=B, placement_b=A)  # fmt: skip
    return robot


def soft(base=None):
    """A soft arm on a spherical joint of a free base, with a ball on a second arm: a rod between the arms, whose length
    is a coordinate, a curve with two joints, a loop and a gear."""
    robot = ls.Robot("soft")
    robot.add_link("base", BODY, base or ls.JointFree())
    robot.add_link("hip", ls.RigidBody(0.2, inertia=(0.01, 0.01, 0.01)), ls.JointSpherical(), "base")
    rubber = ls.Material(young=1e5, poisson=0.5, density=1000.0, damping_time=0.02)
    rod = ls.Rod(0.5, ls.SectionCircle(0.02), ls.BasisLegendre(bending_y=1, bending_z=1, elongation=0), rubber)
    robot.add_link("arm", rod, parent="hip")
    robot.add_link("hand", ls.RigidBody(0.3, inertia=(0.01, 0.01, 0.02)), ls.JointRevolute((0, 1, 0)), "arm")
    robot.add_link("slide", ls.RigidBody(0.4, inertia=(0.01, 0.01, 0.02)), ls.JointPrismatic((1, 0, 0)), "base",
                   placement=A)  # fmt: skip
    robot.add_link("other", rod, ls.JointRevolute((0, 0, 1)), "slide")
    length = ls.Expression("sqrt(x*x + y*y + z*z) - 0.3 - l**2/2", "x, y, z, l")
    robot.add_constraint("rope", "arm", "other", function=length, joints=["slide"], s_a=0.6, s_b=0.5, placement_a=A)
    curve = ls.Expression("z*a + R12*sin(b) - x*y*a*b - k", "b, a, x, y, z, R12", {"k": 0.1})
    robot.add_constraint("curve", "hand", "base", function=curve, joints=["hand", "other"], placement_b=B)
    robot.add_loop("pin", "other", "hand", placement_b=A, joint=ls.JointUniversal())
    robot.add_coupling("gear", ["hand", "slide"], [1.0, -2.0])
    return robot


def moving(base=None):
    """The soft arms with velocities: of a place between the arms that depends on two joints and their rates, and of an
    edge on a curved surface of the world."""
    robot = soft(base)
    robot.constraints.clear()
    rates = "vx*R21 + wz*x*y - b*a_rate*z + 0.3*b_rate + R33*vz*cos(a) - wx"
    robot.add_constraint("place", "arm", "other", velocity=True, joints=["slide", "hand"], s_a=0.6, s_b=0.5,
                         function=ls.Expression(rates, "a, b, a_rate, b_rate, x, y, z, vx, vz, wz, wx, R21, R33"),
                         placement_a=A)  # fmt: skip
    edge = ls.Expression("vy*(1 + x*x) - 2*x*z*vx + sin(y)*wy/(2 + z)", "x, y, z, vx, vy, wy")
    robot.add_constraint("edge", "hand", velocity=True, function=edge, placement_a=A, placement_b=B)
    held = ls.Expression("x - 0.3*l", "x, l")
    robot.add_constraint("held", "hand", "slide", function=held, joints=["other"])
    return robot


def fixed():
    """The soft arms on a hinge, without quaternions."""
    return soft(ls.JointRevolute((0, 0.6, 0.8)))


ROBOTS = {make.__name__: make for make in (free, soft, moving, fixed)}


@lru_cache
def model_of(name):
    return ROBOTS[name]().build()


@pytest.mark.parametrize("name", ROBOTS)
def test_derivatives(name):
    """Of residuals, rows, rates and forces, against differences."""
    check_derivatives(model_of(name))


@pytest.mark.parametrize("name", ROBOTS)
def test_derivatives_of_forward_dynamics(name):
    """By q and v, against differences."""
    check_derivatives_of_forward_dynamics(model_of(name))


def test_wrenches_are_the_forces():
    """Aᵀ λ is the effect of loop_wrenches at their frames."""
    check_wrenches(model_of("free"))


def test_values_and_rows_are_those_of_poses():
    """Residuals are the function of the pose of A in B by frame_pose, rates those of poses a moment before and after:
    for positions the change of the function, for velocities the function itself."""
    model = model_of("soft")
    q, v, *_ = state(model)
    h, rope = 1e-6, model.loops.names.index("rope")

    def value(q):
        a = ls.frame_pose(model, q, "arm", s=0.6) @ A
        b = ls.frame_pose(model, q, "other", s=0.5)
        slide = q[model.links.q_start[model.links.names.index("slide")]]
        return np.linalg.norm(a[:3, 3] - b[:3, 3]) - 0.3 - slide**2 / 2

    row = model.loops.row_start[rope]
    assert ls.loop_residual(model, q)[row] == pytest.approx(value(q), abs=1e-14)
    slope = (value(ls.integrate(model, q, h * v)) - value(ls.integrate(model, q, -h * v))) / (2 * h)
    assert (ls.constraint_jacobian(model, q) @ v)[row] == pytest.approx(slope, abs=1e-9)
    model = model_of("moving")
    q, v, *_ = state(model)
    places = [
        np.linalg.solve(B, ls.frame_pose(model, ls.integrate(model, q, k * h * v), "hand") @ A) for k in (-1, 0, 1)
    ]
    rate = (places[2] - places[0]) / (2 * h)
    (x, y, z), (vx, vy, _) = places[1][:3, 3], rate[:3, 3]
    wy = (rate[:3, :3] @ places[1][:3, :3].T)[0, 2]
    wanted = vy * (1 + x * x) - 2 * x * z * vx + np.sin(y) * wy / (2 + z)
    row = model.loops.row_start[model.loops.names.index("edge")]
    assert (ls.constraint_jacobian(model, q) @ v)[row] == pytest.approx(wanted, abs=1e-8)
    assert model.rate_rows[row] and ls.loop_residual(model, q)[row] == 0.0


@pytest.mark.parametrize("base", [ls.JointRevolute((0, 0.6, 0.8), stiffness=5.0), ls.JointSpherical(stiffness=5.0)])
def test_newton_iterations_converge_quadratically(base):
    """Equilibria of the soft arms: two iterations from 1e-3 away reach what takes an exact matrix. Derivatives of the
    equilibrium by an input and by a constant of a function are those of other equilibria."""
    robot = soft(base)
    robot.add_joint_actuator("motor", "hand")
    model, paths = robot.build(), ("curve.function.k",)
    rest = ls.solve_statics(model, [0.03], q0=ls.assemble(model, model.neutral()))
    assert np.abs(ls.loop_residual(model, rest.q)).max() < 1e-11
    move = np.random.default_rng(0).normal(size=model.nv) * model.dofs.scale
    sought = Sought(np.array([[0.03]]), 0.0, 1.0, np.zeros(model.n_rows), 1e-13, 2, 0.0)
    start, force = ls.integrate(model, rest.q, 1e-3 * move), rest.multipliers
    q, *_ = (x[0] for x in results(newton_in_kernel(model, start[None], force[None], sought)))
    assert np.abs(ls.difference(model, rest.q, q) / model.dofs.scale).max() < 1e-7
    found = ls.equilibrium_derivatives(rest, parameters=paths)

    def at(u, k):
        return ls.solve_statics(robot.with_({paths[0]: k}).build(), [u], q0=rest.q).q

    for slope, (low, high) in (
        (found.u[:, 0], [at(0.03 + h, 0.1) for h in (-1e-4, 1e-4)]),
        (found.parameters[paths[0]], [at(0.03, 0.1 + h) for h in (-1e-4, 1e-4)]),
    ):
        wanted = ls.difference(model, low, high) / 2e-4
        np.testing.assert_allclose(slope, wanted, atol=1e-5 * np.abs(wanted).max())


def step_kernel(act):
    """One that makes the matrix of a step."""
    residual, matrix, Rows = residual_of(act), newton_matrix_of(act), wp.array2d(dtype=wp.float64)

    @wp.kernel(module="unique", module_options=kernel_options(act.kinds))
    def matrix_alone(
        t: TablesStruct, s: ScratchStruct, b: NewtonBuffersStruct, q: Rows, v: Rows, a: Rows, u: Rows, none: Rows,
        c: wp.array(dtype=wp.float64), gravity: wp.array(dtype=vec3), load: wp.array(dtype=vec6), tau: Rows, first: int,
    ):  # fmt: skip
        i = first + wp.tid()
        residual(t, s, i, q, v, a, u, none, gravity[0], load, b.loops, tau)
        matrix(t, s, b, i, q, v, a, none, c[0], c[1], gravity[0], load)

    return matrix_alone


@pytest.mark.parametrize("make", [soft, moving])
def test_the_matrix_of_a_step(make):
    """It and its constraint rows are ∂/∂q + c₁ ∂/∂v + c₀ ∂/∂a of the residual and of A v/c₁, or the rows A_q, of other
    kernels, which the tests above compare with differences. Without quaternions, whose steps are no rates."""
    robot = make(ls.JointRevolute((0, 0.6, 0.8)))
    robot.links["hip"] = ls.Robot("x").add_link("hip", BODY, ls.JointRevolute((1, 0, 0)), "base")
    model, c0, c1 = robot.build(), 300.0, 20.0
    q, v, a, force = state(model)
    nv, m = model.nv, model.n_rows
    sizes = {"q": (model.nq,), "v": (nv,), "a": (nv,), "u": (model.nu,), "none": (nv,)}
    w = Buffers(model, 1, sizes, {"tau": (nv,)}, table_options=TableOptions(derivatives=True))
    b = newton_buffers(model, 1)
    register_loops(w, b.loops)
    known = {"K": b.matrix, "A": b.loops.A, "A_q": b.loops.A_q}
    for name, array in known.items():
        w.register(name, array)
    rest = [w.buffer("c", (2,), common=True), w.buffer("gravity", (1,), vec3, common=True),
            w.buffer("load", (model.n_load_rows,), vec6, common=True)]  # fmt: skip
    given = [w.on_device[name] for name in sizes]
    w.record(step_kernel, [w.tables, w.scratch, b, *given, *rest, w.on_device["tau"]])
    for name, value in {"q": q, "v": v, "a": a, "force": force, "c": (c0, c1), "gravity": model.gravity}.items():
        w.host[name][:] = value
    w.run()
    K, A, A_q = (w.host[name].reshape(-1, b.x.width)[:, :nv] for name in known)
    by_q, by_v, by_a = ls.inverse_dynamics_derivatives(model, q, v, a)
    wanted = by_q + c1 * by_v + c0 * by_a - ls.constraint_force_derivative(model, q, force)
    np.testing.assert_allclose(K, wanted, atol=1e-12 * np.abs(wanted).max())
    J = ls.constraint_jacobian(model, q)
    np.testing.assert_allclose(A, J, atol=1e-13 * np.abs(J).max())
    d = ls.constraint_derivatives(model, q, v, a)
    rows = np.where(model.rate_rows[:, None], J + d.velocity_q / c1, d.residual_q)
    assert rows.shape == (m, nv)
    np.testing.assert_allclose(A_q, rows, atol=1e-12 * np.abs(rows).max())
    left = w.host["tau"][0] - ls.inverse_dynamics(model, q, v, a) + J.T @ force
    np.testing.assert_allclose(left, 0.0, atol=1e-11 * np.abs(force).max())


def test_places_on_deformable_bodies():
    """Material points of a deformable body and of a second one on it, one against the other and against the world, with
    a joint of the tree: against differences."""
    jnp = pytest.importorskip("jax.numpy")

    def swaying(x, q):
        bend = jnp.stack([-x[2] * x[0], 0.0 * x[0], 0.5 * x[0] ** 2]) * jnp.sin(q[0]) * 10.0
        return x + bend + jnp.stack([q[1] * x[0], -0.3 * q[1] * x[1], -0.3 * q[1] * x[2]])

    law = ls.HyperelasticSaintVenantKirchhoff(young=2e5, poisson=0.3, damping_time=0.02)
    robot = ls.Robot("blocks")
    for name, parent in (("a", None), ("b", "a")):
        body = ls.DeformableBody(ls.KinematicsFunction(swaying, 2), ls.DomainCylinder(0.1, 0.01, degree=4), law, 1e3,
                                 tip=(0.1, 0.0, 0.0))  # fmt: skip
        robot.add_link(name, body, ls.JointRevolute((0, 0, 1)), parent=parent)
    far = ls.Expression("x*x + y*y + z*z + R12*l - 0.01", "x, y, z, R12, l")
    robot.add_constraint("far", "a", "b", function=far, joints=["b"], s_a=(0.03, 0.005, 0.0), s_b=(0.08, 0.0, 0.003))
    robot.add_constraint("floor", "b", function=ls.Expression("z - 0.1*x", "x, z"), s_a=(0.09, 0.0, -0.005))
    edge = ls.Expression("R12*vx + R22*vy + x*wz", "R12, R22, vx, vy, wz, x")
    robot.add_constraint("edge", "b", function=edge, velocity=True, s_a=(0.05, 0.0, 0.0))
    model = robot.build()
    check_derivatives(model)
    check_wrenches(model, without=["far"])
