"""Bodies of user functions: native code in kernels against the same bodies by JAX, and what only kernels do."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from bodies.kinematics_makers import PAD as LENGTH
from bodies.kinematics_makers import in_python, pad

import lissom as ls
from lissom.bodies.material_frames import point_numbers
from lissom.cli.descriptions import python_functions


@cache
def arm(native: bool) -> ls.Model:
    """Two such blocks in a row on a hinge, with a rigid body at the end and a rod beside."""
    function = pad if native else in_python(pad)
    law = ls.HyperelasticSaintVenantKirchhoff(young=2e5, poisson=0.3, damping_time=0.01)
    block = ls.DeformableBody(ls.KinematicsFunction(function, 2), ls.DomainBox(LENGTH, 0.03, 0.02), law, 1e3)
    robot = ls.Robot("arm")
    robot.add_link("near", block, ls.JointRevolute((0.0, 1.0, 0.0), damping=0.01))
    robot.add_link("far", block, parent="near")
    robot.add_link("tip", ls.RigidBody.sphere(0.015, density=1e3), parent="far")
    material = ls.Material(young=1e6, density=1e3, damping_time=0.01)
    robot.add_link("rod", ls.Rod(0.1, ls.SectionCircle(0.005), ls.BasisLegendre(bending_y=1), material), parent="near")
    robot.add_joint_actuator("motor", "near")
    return robot.build()


def state(model: ls.Model, rows: tuple[int, ...] = ()) -> list[np.ndarray]:
    return list(np.random.default_rng(1).uniform(-0.4, 0.4, (3, *rows, model.nv)))


def assert_close(found, expected):
    scale = np.abs(expected).max() + 1e-300
    np.testing.assert_allclose(np.asarray(found) / scale, np.asarray(expected) / scale, rtol=0.0, atol=2e-11)


def test_kernels_have_the_functions_of_python():
    """Purpose: forces, matrices, derivatives, energy and accelerations equal those with integrals by JAX."""
    native, python = arm(True), arm(False)
    assert not native.calls_python and python.calls_python
    q, v, a = state(native)
    for call, values in (
        (ls.inverse_dynamics, (q, v, a)), (ls.inverse_dynamics_derivatives, (q, v, a)), (ls.mass_matrix, (q,)),
        (ls.coriolis_matrix, (q, v)), (ls.forward_dynamics, (q, v)), (ls.forward_dynamics_derivatives, (q, v)),
        (ls.tangent_stiffness, (q,)), (ls.frame_pose, (q, "tip")), (ls.frame_jacobian, (q, "tip")),
    ):  # fmt: skip
        found, expected = call(native, *values), call(python, *values)
        for one, other in zip(*(x if isinstance(x, tuple) else (x,) for x in (found, expected)), strict=True):
            assert_close(one, other)
    found, expected = ls.energy(native, q, v), ls.energy(python, q, v)
    for name in ("kinetic", "gravitational", "elastic"):
        assert_close(getattr(found, name), getattr(expected, name))
    assert_close(
        ls.inverse_dynamics(native, q, v, a, elastic=False), ls.inverse_dynamics(python, q, v, a, elastic=False)
    )
    found, expected = ls.solve_statics(native), ls.solve_statics(python)
    np.testing.assert_allclose(found.q, expected.q, atol=1e-10)


def test_motions_and_gradients_are_those_of_python():
    """Purpose: rollouts and their backward passes are the same."""
    q, v, _ = state(arm(True))
    found, expected = (
        ls.rollout(model, q, 0.3 * v, np.full((8, 1), 0.02), dt=0.01, tolerance=1e-12)
        for model in (arm(True), arm(False))
    )
    np.testing.assert_allclose(found.q, expected.q, atol=1e-9)
    weights = np.random.default_rng(2).normal(size=(2, *found.q.shape))
    found, expected = found.backward(*weights), expected.backward(*weights)
    for name in ("q0", "v0", "u"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-6, atol=1e-8)


def test_batches_are_single_motions():
    """Purpose: a batch of motions, and of models, has the bits of single ones; JAX took one state after the other."""
    model = arm(True)
    q, v, a = state(model, (5,))
    together = ls.inverse_dynamics(model, q, v, a)
    np.testing.assert_array_equal(together, [ls.inverse_dynamics(model, *row) for row in zip(q, v, a)])
    batch = ls.rollout(model, q, 0.2 * v, np.zeros((5, 4, 1)), dt=0.01)  # the next step has several solutions
    for k in range(5):
        np.testing.assert_array_equal(batch.q[k], ls.rollout(model, q[k], 0.2 * v[k], np.zeros((4, 1)), dt=0.01).q)
    models = model.batch("rod.material.young", [1e6, 3e6])
    for k in range(2):
        np.testing.assert_array_equal(ls.inverse_dynamics(models, q[:2], v[:2], a[:2])[k],
                                      ls.inverse_dynamics(models[k], q[k], v[k], a[k]))  # fmt: skip


def test_adaptive_steps_run_in_kernels():
    """Purpose: the default method takes its steps in kernels and conserves the energy of undamped bodies."""
    law = ls.HyperelasticSaintVenantKirchhoff(young=2e5, poisson=0.3)
    robot = ls.Robot("free")
    robot.add_link("pad", ls.DeformableBody(ls.KinematicsFunction(pad, 2), ls.DomainBox(LENGTH, 0.03, 0.02), law, 1e3))
    model = robot.build()
    motion = ls.simulate(model, 0.2, q0=np.array([0.2, 0.05]), rtol=1e-8, atol=1e-10)
    energies = [ls.energy(model, q, v) for q, v in zip(motion.q, motion.v)]
    total = np.array([e.kinetic + e.gravitational + e.elastic for e in energies])
    assert np.abs(total - total[0]).max() < 1e-5 * max(e.kinetic for e in energies)


@pytest.mark.parametrize("turns", [True, False])
def test_points_of_a_body_share_their_functions(turns):
    """Purpose: one pair of native functions serves the frames at all points, and gives what JAX gives."""
    law = ls.HyperelasticSaintVenantKirchhoff(young=2e5, poisson=0.3)
    body = ls.DeformableBody(ls.KinematicsFunction(pad, 2), ls.DomainBox(LENGTH, 0.03, 0.02), law, 1e3)
    rng = np.random.default_rng(5)
    points = rng.uniform([0.0, -0.015, -0.01], [LENGTH, 0.015, 0.01], (5, 3))
    frames = [body.frames.at(x, turns=turns) for x in [*points, np.zeros(3)]]
    assert len({frame.native.address for frame in frames}) == 1
    q = rng.uniform(-0.4, 0.4, 2)
    expected = body.frames.derivatives(frames, q[None])
    for k, (frame, numbers) in enumerate(zip(frames, point_numbers(frames))):
        R, p, S, S_q = places = [np.empty(shape) for shape in ((3, 3), 3, (2, 6), (2, 2, 6))]
        v, S_vv = rng.uniform(-1.0, 1.0, 2), np.empty((2, 6))
        frame.native.call(0, [q, v, numbers], places)
        frame.native.call(1, [q, v, numbers], [S_vv])
        assert_close(R, expected.g[0, k, :3, :3])
        assert_close(p, expected.g[0, k, :3, 3])
        assert_close(S, expected.S[0, k])
        assert_close(S_q, expected.S_q[0, k])
        assert_close(S_vv, np.einsum("jcek,c,e->jk", expected.S_qq[0, k], v, v))


def test_reasons_are_given():
    """Purpose: `lissom info` names the body and the operation."""
    assert python_functions(arm(True)) == []
    lines = python_functions(arm(False))
    assert len(lines) == 4 and "'near' are evaluated in Python: it has a loop whose length" in lines[0]
    assert lines[0].startswith("frames on") and lines[2].startswith("deformable body 'near' is evaluated in Python")


def modal(x, q):
    """Bending modes with their second-order shortening, and stretches: three coordinates for each mode."""
    s, out = x[0] / LENGTH, x
    for j in range(len(q) // 3):
        k, (bend_y, bend_z, stretch) = (j + 0.5) * np.pi, q[3 * j : 3 * j + 3]
        w, slope = 0.5 * LENGTH * jnp.sin(k * s), 0.5 * k * jnp.cos(k * s)
        shortening = -bend_y * slope * x[1] - bend_z * slope * x[2] + stretch * s ** (j + 1) * LENGTH - bend_y**2 * w
        out = out + jnp.stack([shortening, bend_y * w * (1.0 + stretch), bend_z * w])
    return out


def modal_shapes(x):
    """∂/∂θ of `modal` at θ = 0, for twelve coordinates."""
    return jax.jacfwd(lambda q: modal(x, q))(jnp.zeros(12))


LARGE = {
    "function": (ls.KinematicsFunction(modal, 12), ls.HyperelasticCompressibleNeoHookean(2e5, 0.3, 0.02)),
    "Ritz": (ls.KinematicsRitz(modal_shapes, 12), ls.HyperelasticCompressibleNeoHookean(2e5, 0.3, 0.02)),
    "24 coordinates": (ls.KinematicsFunction(modal, 24), ls.HyperelasticSaintVenantKirchhoff(2e5, 0.3)),
}


@pytest.mark.parametrize("name", ["function", pytest.param("Ritz", marks=pytest.mark.slow), "24 coordinates"])
def test_bodies_of_many_coordinates(name):
    """Purpose: bodies of 12 and of 24 coordinates, such as modal ones, have native functions equal to those of JAX."""
    motion, law = LARGE[name]
    body = ls.DeformableBody(motion, ls.DomainBox(LENGTH, 0.03, 0.02, degree=6), law, 1e3)
    integrals, n = body.integrals, motion.n
    native, random = integrals.native, np.random.default_rng(4)
    q, v, a = 0.02 * random.uniform(-1.0, 1.0, n), *random.uniform(-1.0, 1.0, (2, n))
    vector, square, cube = (n, 3), (n, n), (n, n, 3)
    shapes = [(3,), (3, 3), vector, (n, 3, 3), square, (3,), (3,), vector, (n,), (), (n,), square]
    found = [np.zeros(shape) for shape in shapes]
    native.functions.call(0, [q, v, native.table], found)
    x = integrals.values(q, v)
    for one, other in zip(found, (*x[1:10], x.U, x.g + x.d, x.d_v), strict=True):
        assert_close(one, other)
    shapes = [vector, vector, square, cube, (n, n, 3, 3), cube, vector, vector, square, cube, square]
    found = [np.zeros(shape) for shape in shapes]
    native.functions.call(1, [q, v, native.table, a], found)
    y = integrals.derivatives(q, v, a)
    for one, other in zip(found, (*y[:10], y.K + y.d_q), strict=True):
        assert_close(one, other)


def test_larger_bodies_stay_with_jax():
    """Purpose: a body of more coordinates than native code has is evaluated by JAX."""

    def many(x, q):
        return x + jnp.stack([q[:3].sum() * x[0], q[3:6].sum() * x[0], q[6:].sum() * x[0]])

    law = ls.HyperelasticSaintVenantKirchhoff(young=2e5, poisson=0.3)
    body = ls.DeformableBody(ls.KinematicsFunction(many, 25), ls.DomainBox(LENGTH, 0.03, 0.02, degree=4), law, 1e3)
    assert body.integrals.native is None and "25 coordinates, more than 24" in body.integrals.why_python


def own_energy(F):
    """A compressible law of one's own."""
    J = jnp.dot(F[0], jnp.cross(F[1], F[2]))
    return 3e4 * ((F * F).sum() - 3.0 - 2.0 * jnp.log(J))


LAWS = {
    "linear": ls.HyperelasticLinear(2e5, 0.3, 0.02),
    "neo-Hookean": ls.HyperelasticCompressibleNeoHookean(2e5, 0.3, 0.02),
    "uniaxial": ls.HyperelasticUniaxial(2e5, 0.3, 0.02),
    "without Poisson's ratio": ls.HyperelasticSaintVenantKirchhoff(2e5, 0.0, 0.02),
    "own": ls.HyperelasticFunction(own_energy, 0.02),
    "undamped": ls.HyperelasticCompressibleNeoHookean(2e5, 0.3),
}


@pytest.mark.parametrize("law", LAWS)
def test_laws(law):
    """Purpose: values and derivatives for other laws, by both ways."""
    material = LAWS[law]
    body = ls.DeformableBody(ls.KinematicsFunction(pad, 2), ls.DomainBox(LENGTH, 0.03, 0.02, degree=6), material, 1e3)
    q, v, integrals = np.array([0.3, 0.1]), np.array([-1.0, 2.0]), body.integrals
    shapes = [(3,), (3, 3), (2, 3), (2, 3, 3), (2, 2), (3,), (3,), (2, 3), (2,), (), (2,), (2, 2)]
    found = [np.zeros(shape) for shape in shapes]
    integrals.native.functions.call(0, [q, v, integrals.native.table], found)
    x = integrals.values(q, v)
    for one, other in zip(found[-3:], (x.U, x.g + x.d, x.d_v)):
        assert_close(one, other)


BUMPS = ls.InflationBumps(angles=(0.0, np.pi), sharpness_along=2.0)
PARTS = ls.BasisPiecewiseConstant(bending_y=2, elongation=1)
CURVED = ls.KinematicsStrain.constant_curvature(LENGTH, elongation=True)
PRIMITIVES = [
    ls.PrimitiveStretch([[0.0, 1.0]]), ls.PrimitiveSource([[0.0, 1e-5]]), ls.PrimitiveBending([[3.0]], "y"),
    ls.PrimitiveTwist([[0.0, 1.0]]),
]  # fmt: skip
MOTIONS = {
    "pieces": (ls.KinematicsStrain(LENGTH, PARTS), 1.0),
    "inflation": (ls.KinematicsStrain.constant_curvature(LENGTH, planar=True, inflation=BUMPS), 0.3),
    "volume": (ls.KinematicsVolumePreserving(LENGTH, PRIMITIVES), 0.5),
}


@pytest.mark.parametrize("name", list(MOTIONS))
def test_compositions(name):
    """Purpose: integrals, their derivatives and frames of the library's motions equal those of JAX."""
    motion, size = MOTIONS[name]
    law = ls.HyperelasticSaintVenantKirchhoff(young=2e5, poisson=0.3, damping_time=0.02)
    body = ls.DeformableBody(motion, ls.DomainCylinder(LENGTH, 0.01, degree=4), law, 1e3)
    integrals, n, native = body.integrals, motion.n, body.integrals.native
    q, v = size * np.random.default_rng(3).uniform(-1.0, 1.0, (2, n))
    vectors, square, cube = [(n, 3)], (n, n), (n, n, 3)
    shapes = [(3,), (3, 3), (n, 3), (n, 3, 3), square, (3,), (3,), (n, 3), (n,), (), (n,), square]
    found = [np.zeros(shape) for shape in shapes]
    native.functions.call(0, [q, v, native.table], found)
    x = integrals.values(q, v)
    for one, other in zip(found, (*x[1:10], x.U, x.g + x.d, x.d_v), strict=True):
        assert np.isfinite(other).all()
        assert_close(one, other)
    shapes = [*vectors, *vectors, square, cube, (n, n, 3, 3), cube, *vectors, *vectors, square, cube, square]
    found, a = [np.zeros(shape) for shape in shapes], np.linspace(-1.0, 2.0, n)
    native.functions.call(1, [q, v, native.table, a], found)
    y = integrals.derivatives(q, v, a)
    for one, other in zip(found, (*y[:10], y.K + y.d_q), strict=True):
        assert_close(one, other)
    for turns in (True, False):
        frame = body.frames.at((0.8 * LENGTH, 0.004, 0.002), turns=turns)
        found = [np.zeros(shape) for shape in ((3, 3), (3,), (n, 6), (n, n, 6))]
        numbers, curved = point_numbers([frame])[0], np.zeros((n, 6))
        frame.native.call(0, [q, v, numbers], found)
        frame.native.call(1, [q, v, numbers], [curved])
        x = frame.derivatives(q[None])
        for one, other in zip(found, (x.g[0, :3, :3], x.g[0, :3, 3], x.S[0], x.S_q[0]), strict=True):
            assert_close(one, other)
        slopes = [np.zeros((n, n, 6)) for _ in range(2 * n)]
        for slope, move in zip(slopes, np.concatenate([np.eye(n), -np.eye(n)])):
            frame.native.call(0, [q + 1e-5 * move, v, numbers], [*found[:3], slope])
        expected = np.stack([(slopes[e] - slopes[n + e]) / 2e-5 for e in range(n)], axis=2)
        expected = np.einsum("jcek,c,e->jk", expected, v, v)
        np.testing.assert_allclose(curved, expected, rtol=0.0, atol=1e-7 * np.abs(expected).max())


def test_arms_of_compositions_stay_in_kernels():
    """Purpose: a robot of such bodies, one behind the other, needs no Python."""
    law, domain = ls.HyperelasticUniaxial(young=2e5, poisson=0.3), ls.DomainCylinder(LENGTH, 0.01)
    soft, robot = ls.DeformableBody(CURVED, domain, law, 1e3, tip="tip"), ls.Robot("arm")
    for name, parent in (("near", None), ("far", "near")):
        robot.add_link(name, soft, parent=parent)
    model = robot.build()
    assert not model.calls_python
    q, v, a = state(model)
    h, axes = 1e-6, np.eye(model.nv)
    by_q = ls.inverse_dynamics_derivatives(model, q, v, a)[0]
    both = [ls.inverse_dynamics(model, q + sign * h * axes, v + 0 * axes, a + 0 * axes) for sign in (1, -1)]
    np.testing.assert_allclose(by_q, (both[0] - both[1]).T / (2 * h), rtol=1e-5, atol=1e-7 * np.abs(by_q).max())


def test_bodies_in_python_share_compiled_functions():
    """Purpose: bodies evaluated by JAX whose laws and densities differ in numbers compile their sums over points once,
    and each has its own forces, those of native code."""
    motions = [ls.KinematicsFunction(function, 2) for function in (in_python(pad), pad)]
    domain, q, v = ls.DomainBox(LENGTH, 0.03, 0.02, degree=6), np.array([0.3, 0.1]), np.array([-1.0, 2.0])
    laws = [ls.HyperelasticUniaxial(young, 0.3, time) for young, time in ((2e5, 0.02), (3e5, 0.05))]
    one, other = (ls.DeformableBody(motions[0], domain, law, 1e3).integrals for law in laws)
    assert one._of_points is other._of_points
    for law, python in zip(laws, (one, other)):
        native = ls.DeformableBody(motions[1], domain, law, 1e3).integrals
        own, wanted = python.derivatives(q, v, v), native.derivatives(q, v, v)
        for name in ("K", "d_q", "b_q"):
            assert_close(getattr(own, name), getattr(wanted, name))
        found = [np.zeros(shape) for shape in [(3,), (3, 3), (2, 3), (2, 3, 3), (2, 2), (3,), (3,), (2, 3), (2,), ()]]
        found += [np.zeros(2), np.zeros((2, 2))]
        native.native.functions.call(0, [q, v, native.native.table], found)
        x = python.values(q, v)
        assert_close(x.g + x.d, found[-2])
        assert_close(x.U, found[-3])
