"""Calls of traced functions from kernels: the addresses, arguments and results that headers pass."""

import numpy as np
import pytest
import warp as wp

import lissom as ls
from lissom.dynamics.inverse_dynamics import run_inverse_dynamics
from lissom.forces import custom_actuators, fluid, point_elasticity, springs, traced_forces
from lissom.forces.terms import TERMS, tables_with_terms
from lissom.launch.buffers import scratch_memory
from lissom.launch.compiling import wait_for_native_functions
from lissom.launch.workspace import Workspace
from lissom.lie.types import kernel_options, mat3, mat6, vec3, vec6
from lissom.model.tables import TablesStruct
from lissom.passes import deforming, mapped, pulls
from lissom.passes.scratch import ScratchStruct
from lissom.stepping import feedback
from lissom.stepping.step_kernel import law_room, workspace_with_room
from lissom.stepping.step_rows import StepRowsStruct, step_rows

jnp = pytest.importorskip("jax.numpy")
wp.set_module_options(kernel_options())
Matrix = wp.array2d(dtype=wp.float64)


@wp.kernel
def pose_tables(t: TablesStruct, s: ScratchStruct, q: Matrix, v: Matrix):
    mapped.follow_function(t, s, 0, 0, q, 0)
    mapped.curve_function(t, s, 0, 0, v, 0)


@wp.kernel
def body_tables(t: TablesStruct, s: ScratchStruct):
    deforming.call_values(t, s, 0, 0)
    deforming.call_derivatives(t, s, 0, 0)


@wp.kernel
def pull_tables(t: TablesStruct, s: ScratchStruct, bend: Matrix):
    bend[0, 0] = pulls.bend_of_pull(t, s, 0, pulls.body_of(t, 0), 0)
    for e in range(t.pulls.channel.shape[0]):
        b = pulls.body_of(t, e)
        pulls.call_pull(t, s, e, b, 0)
        if t.pulls.surface_start[e + 1] > t.pulls.surface_start[e]:
            pulls.press(t, s, e, 0)
        pulls.call_pull_derivatives(t, s, e, b, 0)
        if t.pulls.surface_start[e + 1] > t.pulls.surface_start[e]:
            pulls.press_derivatives(t, s, e, 0)


@wp.kernel
def law_rows(x: StepRowsStruct):
    feedback.evaluate_law(x, 1, wp.float64(0.3))
    feedback.differentiate_law(x, 1, wp.float64(0.3))


@wp.kernel
def actuator_rows(t: TablesStruct, s: ScratchStruct, place: int, which: int, q: Matrix):
    custom_actuators.call_actuator(t, s, place, 1, which, 1, q)


@wp.kernel
def driven_rows(
    t: TablesStruct, s: ScratchStruct, place: int, R: wp.array(dtype=mat3), p: wp.array(dtype=vec3),
    eta: wp.array(dtype=vec6), wrench: wp.array(dtype=vec6), by: wp.array(dtype=mat6), by_input: Matrix,
):  # fmt: skip
    wrench[0] = traced_forces.call_force(t, s, place, 1, 0, 1, wp.float64(0.3), R[0], p[0], eta[0])
    traced_forces.call_force(t, s, place, 1, 1, 1, wp.float64(0.3), R[0], p[0], eta[0])
    by[0] = traced_forces.matrix_in_row(s, 1, 2)
    by[1] = traced_forces.matrix_in_row(s, 1, 38)
    traced_forces.call_force(t, s, place, 1, 2, 1, wp.float64(0.3), R[0], p[0], eta[0])
    for k in range(12):
        by_input[0, k] = s.channel.row[1, 2 + k]


@wp.kernel
def law_of_second_spring(t: TablesStruct, place: int, found: wp.array(dtype=vec3)):
    found[0] = springs.call_law(t.terms[place], 1, wp.float64(0.4), wp.float64(-0.7))


@wp.kernel
def current_here(t: TablesStruct, place: int, x: wp.array(dtype=vec3), found: wp.array(dtype=vec6)):
    found[0] = fluid.call_current(t.terms[place], x[0], wp.float64(0.3))


@wp.kernel
def sums_of_points(t: TablesStruct, place: int, rows: Matrix, tau: Matrix, out: Matrix, width: int):
    tau[0, 0] = point_elasticity.point_energy(t, place, 1, 1, rows)
    point_elasticity.add_point_force(t, place, 1, 1, rows, rows, tau)
    point_elasticity.add_point_stiffness(t, place, 1, width, 1, rows, rows, wp.float64(2.0), wp.float64(3.0), out)
    point_elasticity.add_point_change(t, place, 1, 2, rows, rows, rows, rows, tau)


def pose(q):
    """A screw whose pitch changes, and a slide."""
    c, s = jnp.cos(q[0]), jnp.sin(q[0])
    R = jnp.stack([jnp.stack([c, -s, 0.0 * c]), jnp.stack([s, c, 0.0 * c]), jnp.array([0.0, 0.0, 1.0])])
    p = jnp.stack([0.2 * c, q[1] * jnp.exp(0.1 * q[0]), 0.1 * q[0] ** 3])
    return jnp.concatenate([jnp.concatenate([R, p[:, None]], axis=1), jnp.array([[0.0, 0.0, 0.0, 1.0]])])


def bent(x, q):
    """A block that bends and stretches, with no integral that vanishes by symmetry."""
    y, z = x[1] + 0.02, x[2] + 0.01
    along = q[1] * x[0] - y * q[0] * x[0] * (1.0 + q[1])
    return x + jnp.stack([along, 0.5 * q[0] ** 2 * x[0] ** 2 + q[0] * q[1] * y, q[1] ** 2 * z + q[0] ** 2 * y])


def scratch_at(model: ls.Model, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> Workspace:
    """Buffers of inverse dynamics after a launch at one state."""
    return run_inverse_dynamics(model, q[None], v[None], a[None], True, True, False, 0.0)[0]


def test_pose():
    """Purpose: R, p, S, S_q and S_vv of a joint's function stand in the tables where JAX has them."""
    robot = ls.Robot("r")
    robot.add_link("a", ls.RigidBody.sphere(0.1, density=1e3), joint=ls.JointCustom(pose, 2))
    model, q = robot.build(), np.array([0.4, -0.3])
    w = scratch_at(model, q, np.zeros(2), np.zeros(2))
    v = np.array([0.7, -1.3])
    rows = [wp.array(x[None], dtype=wp.float64, device="cpu") for x in (q, v)]
    wait_for_native_functions(pose_tables, model)
    wp.launch(pose_tables, 1, [w.buffers.tables, w.buffers.scratch, *rows], device="cpu")
    s, expected = w.buffers.scratch.maps, model.maps.pose[0].by_jax(q[None])
    np.testing.assert_allclose(s.R.numpy()[0, 0], expected.g[0, :3, :3], atol=1e-15)
    np.testing.assert_allclose(s.p.numpy()[0, 0], expected.g[0, :3, 3], atol=1e-15)
    for name in ("S", "S_q"):
        np.testing.assert_allclose(getattr(s, name).numpy()[0], getattr(expected, name).reshape(-1, 6), atol=1e-14)
    bent = np.einsum("jcek,c,e->jk", expected.S_qq[0], v, v)
    np.testing.assert_allclose(s.S_vv.numpy()[0], bent, atol=1e-13)
    np.testing.assert_allclose(model.maps.pose[0].derivatives(q[None]).S_qq, expected.S_qq, atol=1e-13)


def test_body():
    """Purpose: all integrals of a body and their derivatives stand in the tables where JAX has them."""
    body = ls.DeformableBody(
        ls.KinematicsFunction(bent, 2), ls.DomainBox(0.1, 0.02, 0.03),
        ls.HyperelasticSaintVenantKirchhoff(young=1e5, poisson=0.3, damping_time=0.01), 1e3,
    )  # fmt: skip
    robot = ls.Robot("r")
    robot.add_link("a", body)
    model, (q, v, a) = robot.build(), np.array([[0.4, -0.1], [1.2, 0.7], [-2.0, 3.0]])
    assert not model.calls_python
    w = scratch_at(model, q, v, a)
    wait_for_native_functions(body_tables, model)
    wp.launch(body_tables, 1, [w.buffers.tables, w.buffers.scratch], device="cpu")
    values, slopes = body.integrals.values(q, v), body.integrals.derivatives(q, v, a)
    expected = {name: getattr(values, name) for name in ("c", "P", "c_j", "P_j", "M", "c_v", "b_v", "w_j", "e_v")}
    expected |= {"energy": values.U, "force": values.g + values.d, "D": values.d_v, "K": slopes.K + slopes.d_q}
    expected |= {name: getattr(slopes, name) for name in ("c_q", "b_q", "e_q", "c_jl", "P_jl", "w_q")}
    expected |= {f"{name}dot": getattr(slopes, f"{name[0]}_v") for name in ("c_q", "b_q", "e_q", "w_q")}
    for name, value in expected.items():
        found = getattr(w.buffers.scratch.deforming, name).numpy()[0]
        scale = np.abs(value).max() + 1e-12
        np.testing.assert_allclose(found.ravel() / scale, np.ravel(value) / scale, atol=1e-12, err_msg=name)


@pytest.mark.filterwarnings("ignore::lissom.PlausibilityWarning")
def test_pulls():
    """Purpose: work, B, wrenches and their derivatives of a tendon and of surfaces stand in the tables where JAX has
    them. The second derivative along v is that of the matrix."""
    law = ls.HyperelasticSaintVenantKirchhoff(young=1e5, poisson=0.3)
    body = ls.DeformableBody(ls.KinematicsFunction(bent, 2), ls.DomainBox(0.1, 0.02, 0.03), law, 1e3)
    robot = ls.Robot("r")
    robot.add_link("a", body)
    robot.add_tendon("line", path=[ls.PathBody("a", [(0.0, 0.004, 0.0), (0.05, 0.006, 0.002), (0.1, 0.005, 0.001)])])
    vertices, triangles = ls.cylinder_surface(0.02, 0.08, 0.005, around=6, along=4)
    robot.add_body_chamber("open", "a", surface=(vertices, triangles[:36]))
    robot.add_surface_pressure("outside", "a", lambda x: x[1] > -1e-9)
    model, q = robot.build(), np.array([[0.4, -0.1]])
    v, bend = np.array([0.7, -1.3]), wp.zeros((1, 1), dtype=wp.float64, device="cpu")
    w = scratch_at(model, q[0], v, np.zeros(2))
    wait_for_native_functions(pull_tables, model)
    wp.launch(pull_tables, 1, [w.buffers.tables, w.buffers.scratch, bend], device="cpu")
    own = model.pulls.bodies[0].pulls
    names = ("work", "B", "wrench", "B_q", "wrench_q")
    for name, value in zip(names, (*own.values(q), *own.derivatives(q))):
        found = getattr(w.buffers.scratch.pulls, name).numpy()[0].reshape(value[0].shape)
        for one, other in zip(found, value[0]):
            scale = np.abs(other).max() + 1e-300
            np.testing.assert_allclose(one / scale, other / scale, rtol=0, atol=1e-11, err_msg=name)
    assert bend.numpy()[0, 0] == pytest.approx(v @ own.derivatives(q)[0][0, 0] @ v, rel=1e-11)


def test_law():
    """Purpose: u of a law and its derivatives stand in the rows of its instance where NumPy has them."""
    robot = ls.Robot("r")
    for name, parent in (("a", None), ("b", "a")):
        robot.add_link(name, ls.RigidBody.sphere(0.1, density=1e3), ls.JointRevolute((0, 1, 0)), parent)
        robot.add_joint_actuator(f"motor {name}", name)
    model, K = robot.build(), np.array([[1.0, 2.0], [-0.5, 3.0]])
    law = feedback.native_law(model, ls.TracedFunction(lambda t, q, v: K @ jnp.sin(q) - t * v[::-1]))
    w = workspace_with_room(model, 2, *law_room(model)).buffers
    x = step_rows(w, model, times=1)
    q, v = np.array([0.4, -1.1]), np.array([0.7, 0.2])
    w.host["law"][:], w.host["q"][1], w.host["v"][1] = law.functions.address, q, v
    wp.launch(law_rows, 1, [x], device="cpu")
    np.testing.assert_allclose(x.u.numpy(), [[0.0, 0.0], K @ np.sin(q) - 0.3 * v[::-1]], rtol=1e-14)
    by_q, by_v = (getattr(x.feedback, name).numpy() for name in ("by_q", "by_v"))
    np.testing.assert_allclose(by_q, [np.zeros(4), (K * np.cos(q)).ravel()], rtol=1e-14)
    np.testing.assert_allclose(by_v, [np.zeros(4), [0.0, -0.3, -0.3, 0.0]], rtol=1e-14)


def test_actuator():
    """Purpose: B w of the second of two actuators, and ∂(B w)/∂q, stand in the rows of an instance where NumPy has
    them."""
    robot = ls.Robot("r")
    for name, parent in (("a", None), ("b", "a")):
        robot.add_link(name, ls.RigidBody.sphere(0.1, density=1e3), ls.JointRevolute((0, 1, 0)), parent)
    K = np.array([[1.0, 2.0, 0.3], [-0.5, 3.0, -1.0]])
    robot.add_custom_actuator("one", ls.TracedFunction(lambda q: 5.0 * q))
    robot.add_custom_actuator("three", ls.TracedFunction(lambda q: K * jnp.sin(q)[:, None]), size=3)
    model = robot.build()
    s, t, place = scratch_memory(model, 2), tables_with_terms(model), TERMS.index(custom_actuators.TERM)
    q, w = np.array([0.4, -1.1]), np.array([2.0, -3.0, 0.7])
    s.channel.size.assign(np.vstack([np.zeros(4), [9.0, *w]]))
    rows = wp.array(np.vstack([np.zeros(2), q]), dtype=wp.float64, device="cpu")
    wait_for_native_functions(actuator_rows, model)
    for which, expected in ((1, np.diag(K @ w * np.cos(q))), (2, K * np.sin(q)[:, None])):
        for k in (0, which):
            wp.launch(actuator_rows, 1, [t, s, place, k, rows], device="cpu")
        first, second = s.channel.row.numpy()
        assert not first.any()
        np.testing.assert_allclose(second[:2], K @ w * np.sin(q), rtol=1e-14)
        np.testing.assert_allclose(second[2:][: expected.size], expected.ravel(), rtol=1e-14, atol=1e-300)


def test_driven_force():
    """Purpose: the wrench of the second of two forces with inputs, and its derivatives by pose, twist and inputs, stand
    where JAX has them."""
    jax = pytest.importorskip("jax")

    def law(t, g, eta, w):
        push = g[:3, :3].T @ (jnp.sin(g[:3, 3]) * w[0] * w[1] - t * g[:3, 1])
        return jnp.concatenate([w[1] ** 2 * eta[3:] * eta[:3], push])

    robot = ls.Robot("r")
    robot.add_link("a", ls.RigidBody.sphere(0.1, density=1e3), ls.JointFree())
    robot.add_force("one", "a", ls.TracedFunction(lambda t, g, eta, w: w[0] * eta), inputs="x")
    robot.add_force("two", "a", ls.TracedFunction(law), inputs=["y", "x"])
    model = robot.build()
    s, t, place = scratch_memory(model, 2), tables_with_terms(model), TERMS.index(traced_forces.DRIVEN_TERM)
    g = ls.forward_kinematics(model, [0.5, -0.5, 0.5, 0.5, 0.3, -0.2, 0.7])[-1]
    w, eta = np.array([-0.7, 2.0]), np.array([0.3, -0.1, 0.2, 0.5, 1.1, -0.4])
    s.channel.size.assign(np.vstack([np.zeros(2), w[::-1]]))
    rows = [
        wp.array(x[None], dtype=kind, device="cpu") for x, kind in ((g[:3, :3], mat3), (g[:3, 3], vec3), (eta, vec6))
    ]
    wrench, by = wp.zeros(1, dtype=vec6, device="cpu"), wp.zeros(2, dtype=mat6, device="cpu")
    by_input = wp.zeros((1, 12), dtype=wp.float64, device="cpu")
    wait_for_native_functions(driven_rows, model)
    wp.launch(driven_rows, 1, [t, s, place, *rows, wrench, by, by_input], device="cpu")

    def moved(d):
        """g exp(δ) to first order."""
        cross = jnp.cross(jnp.eye(3), d[:3])
        return jnp.asarray(g) @ (jnp.eye(4) + jnp.zeros((4, 4)).at[:3, :3].set(cross).at[:3, 3].set(d[3:]))

    with jax.enable_x64(True):
        np.testing.assert_allclose(wrench.numpy()[0], law(0.3, g, eta, w), rtol=1e-14)
        by_pose = jax.jacobian(lambda d: law(0.3, moved(d), jnp.asarray(eta), jnp.asarray(w)))(jnp.zeros(6))
        by_twist, by_w = jax.jacobian(lambda *x: law(0.3, jnp.asarray(g), *x), (0, 1))(jnp.asarray(eta), jnp.asarray(w))
        np.testing.assert_allclose(by.numpy(), [by_pose, by_twist], rtol=1e-13, atol=1e-14)
        np.testing.assert_allclose(by_input.numpy().reshape(2, 6).T, by_w, rtol=1e-13, atol=1e-14)


def test_law_of_a_spring():
    """Purpose: the force of the second of two springs of users, and its derivatives by length and rate, stand where the
    kernel reads them."""
    robot = ls.Robot("r")
    robot.add_link("a", ls.RigidBody.sphere(0.1, density=1e3), ls.JointFree())
    point = ls.PathPoint(None, (0.0, 0.0, 0.5))
    robot.add_spring("one", point, "a", law=ls.TracedFunction(lambda x, rate: x))
    robot.add_spring("two", point, "a", law=ls.TracedFunction(lambda x, rate: jnp.sin(x) * rate + x**2))
    model = robot.build()
    t, place = tables_with_terms(model), TERMS.index(springs.SPRING_TERM)
    found = wp.zeros(1, dtype=vec3, device="cpu")
    wait_for_native_functions(law_of_second_spring, model)
    wp.launch(law_of_second_spring, 1, [t, place, found], device="cpu")
    expected = [np.sin(0.4) * -0.7 + 0.16, np.cos(0.4) * -0.7 + 0.8, np.sin(0.4)]
    np.testing.assert_allclose(found.numpy()[0], expected, rtol=1e-14)


def test_current():
    """Purpose: the velocity of a user's current and the acceleration of its particles stand where the kernel reads
    them."""
    robot = ls.Robot("r")
    robot.add_link("a", ls.RigidBody.sphere(0.1, density=1e3), ls.JointFree())
    current = ls.TracedFunction(lambda x, t: jnp.stack([x[1] * t, x[2] ** 2, 0.5 + 0.0 * t]))
    robot.set_fluid(1000.0, current=current, default=ls.Hydrodynamics(drag_normal=1.0))
    model, x = robot.build(), np.array([0.2, -0.4, 0.7])
    t, place = tables_with_terms(model), TERMS.index(fluid.TERM)
    found = wp.zeros(1, dtype=vec6, device="cpu")
    wait_for_native_functions(current_here, model)
    wp.launch(current_here, 1, [t, place, wp.array(x[None], dtype=vec3, device="cpu"), found], device="cpu")
    c = np.array([x[1] * 0.3, x[2] ** 2, 0.5])
    rate = np.array([x[1] + 0.3 * c[1], 2.0 * x[2] * c[2], 0.0])
    np.testing.assert_allclose(found.numpy()[0], [*c, *rate], rtol=1e-14)


def test_points_of_a_body():
    """Purpose: of the second of two bodies the energy, force, stiffness with both factors and change of force at a row
    of q and v go to the places of its coordinates, where JAX has them."""
    law = ls.HyperelasticCompressibleNeoHookean(1e5, 0.3, 0.02)
    mesh = ls.DomainTetrahedra(*ls.box_mesh((0.3, 0.1, 0.1), (1, 1, 1)), degree=2)
    body = ls.DeformableBody(ls.KinematicsFiniteElements(mesh), mesh, law, 1e3)
    robot = ls.Robot("r")
    robot.add_link("a", body)
    robot.add_link("b", body)
    model = robot.build()
    n, rng = model.nv // 2, np.random.default_rng(0)
    rows = 1e-3 * rng.normal(size=(3, model.nv))
    t, place = tables_with_terms(model), TERMS.index(point_elasticity.TERM)
    given = wp.array(rows, dtype=wp.float64, device="cpu")
    tau, out = (wp.zeros((3, size), dtype=wp.float64, device="cpu") for size in (model.nv, model.nv**2))
    wait_for_native_functions(sums_of_points, model)
    wp.launch(sums_of_points, 1, [t, place, given, tau, out, model.nv], device="cpu")
    x, y = rows[1:, n:]
    values, slopes = body.integrals.values(x, x), body.integrals.derivatives(x, x, 0.0 * x)
    K, D = slopes.K + slopes.d_q, values.d_v
    force, matrix = tau.numpy(), out.numpy()[1].reshape(model.nv, model.nv)
    assert force[0, 0] == pytest.approx(float(values.U), rel=1e-13)
    np.testing.assert_allclose(force[1, n:], values.g + values.d, rtol=0, atol=1e-13 * np.abs(values.g).max())
    assert not force[1, :n].any() and not matrix[:n].any() and not matrix[:, :n].any()
    np.testing.assert_allclose(matrix[n:, n:], 2.0 * K + 3.0 * D, rtol=0, atol=1e-13 * np.abs(K).max())
    there = body.integrals.derivatives(y, y, 0.0 * y)
    change = (there.K + there.d_q) @ y + body.integrals.values(y, y).d_v @ y
    np.testing.assert_allclose(force[2, n:], change, rtol=0, atol=1e-12 * np.abs(change).max())
