"""Motions of robots whose joints and bodies are Python functions: equal to those of the same robots in kernels, and to
differences."""

import numpy as np
import pytest
from dynamics.custom_joints import AXIS, OTHER, both, state, universal
from gradients.moving_robots import changes

import lissom as ls
from lissom.bodies import native_code


def moved(model, scheme, steps=20, dt=0.01):
    """A motion under inputs that vary."""
    q, v, _, u = state(model, 3, 0.3)
    u = u * np.linspace(0.5, 1.0, steps)[:, None]
    return ls.rollout(model, q, 0.3 * v, u, method=scheme, dt=dt, tolerance=1e-12)


@pytest.mark.parametrize("scheme", ["generalized_alpha", "esdirk"])
def test_motions_are_those_of_kernels(scheme):
    """A custom joint has the motion of the native one, and the same forward and backward derivatives."""
    native, custom = (moved(model, scheme) for model in both("helical in Python"))
    np.testing.assert_allclose(custom.q, native.q, rtol=0.0, atol=1e-9 * np.abs(native.q).max())
    rng, nv = np.random.default_rng(1), native.model.nv
    direction = {"dq0": rng.normal(size=nv), "dv0": rng.normal(size=nv), "du": rng.normal(size=native.u.shape)}
    one, other = (motion.forward(**direction) for motion in (native, custom))
    np.testing.assert_allclose(other.q, one.q, rtol=0.0, atol=1e-8 * np.abs(one.q).max())
    weights = rng.normal(size=(2, *one.q.shape))
    one, other = (motion.backward(*weights) for motion in (native, custom))
    for name in ("q0", "v0", "u"):
        want = getattr(one, name)
        np.testing.assert_allclose(getattr(other, name), want, rtol=0.0, atol=1e-8 * np.abs(want).max())


def test_motions_between_kept_states():
    """Derivatives of a batch with every=5, also by a design value, equal those of single motions with all states."""
    model = both("universal in Python")[1]
    q, v, _, u = state(model, 3, 0.3)
    u, options = np.stack([u, 0.5 * u])[:, None] * np.ones((10, 1)), {"dt": 0.01, "tolerance": 1e-12}
    sparse = ls.rollout(model, q, v, u, every=5, **options)
    weights = np.random.default_rng(2).normal(size=(2, *sparse.v.shape))
    path = "rod.material.young"
    found = sparse.backward(*weights, parameters=[path])
    for k in range(2):
        alone = ls.rollout(model, q, v, u[k], **options)
        np.testing.assert_array_equal(sparse.q[k], alone.q[::5])
        spread = np.zeros((2, *alone.v.shape))
        spread[:, ::5] = weights[:, k]
        want = alone.backward(*spread, parameters=[path])
        np.testing.assert_allclose(found.v0[k], want.v0, rtol=1e-10)
        np.testing.assert_allclose(found.parameters[path][k], want.parameters[path], rtol=1e-8)


def test_a_body_of_python_by_differences():
    """A finite element body that bends by its own functions, to 1e-7 of the largest change."""
    jax = pytest.importorskip("jax")
    assert jax is not None
    from gallery.examples import example

    model = example("many_bodies").chain(1)
    options = {"steps": 10, "dt": 0.01, "tolerance": 1e-13}
    q, v = model.neutral(), np.full(model.nv, 0.1)
    motion, direction = ls.rollout(model, q, v, **options), np.ones(model.nv)
    change = motion.forward(dv0=direction)
    exact = np.array([change.q, change.v, change.a])
    h = 1e-3
    ways = [changes(model, motion, ls.rollout(model, q, v + x * direction, **options)) for x in (h, -h, 2 * h, -2 * h)]
    slope = (8 * (ways[0] - ways[1]) - (ways[2] - ways[3])) / (12 * h)
    assert np.abs(slope - exact).max() < 1e-7 * np.abs(exact).max()


@pytest.mark.parametrize("path", ["pad.material.young", "pad.material.poisson", "pad.density"])
def test_numbers_of_a_body_in_kernels_need_no_code(path, monkeypatch):
    """Derivatives of an equilibrium by numbers of a body that is native code equal converged differences, and no
    changed value has code of its own: the tables have these numbers."""
    from bodies.kinematics_makers import PAD, pad

    law = ls.HyperelasticCompressibleNeoHookean(young=2e4, poisson=0.3, damping_time=0.01)
    robot = ls.Robot("pad")
    body = ls.DeformableBody(ls.KinematicsFunction(pad, 2), ls.DomainBox(PAD, 0.03, 0.02, degree=6), law, 1e3)
    robot.add_link("pad", body, placement=ls.lie.se3_exp([0.0, 0.4, 0.0, 0.0, 0.0, 0.0]))
    model = robot.build()
    assert not model.calls_python
    monkeypatch.setattr(native_code, "code_of", None)
    rest = ls.solve_statics(model)
    found = ls.equilibrium_derivatives(rest, parameters=[path]).parameters[path]
    value = model.description.described_values()[path]
    moved = [ls.solve_statics(model.with_({path: value * (1.0 + 1e-2 * k)}), q0=rest.q).q for k in range(-4, 5)]
    weights = np.array([1 / 280, -4 / 105, 1 / 5, -4 / 5, 0.0, 4 / 5, -1 / 5, 4 / 105, -1 / 280])
    slope = weights @ np.array(moved) / (1e-2 * value)
    assert np.abs(slope).max() * value > 1e-3
    np.testing.assert_allclose(found, slope, rtol=0, atol=1e-9 * np.abs(slope).max())


def placed(*position):
    """4x4 of a displacement."""
    g = np.eye(4)
    g[:3, 3] = position
    return g


def leaning(joint):
    """A rigid arm on a hinge, whose ball lies on a dome."""
    robot = ls.Robot("arm")
    bar = ls.RigidBody(0.3, (0.15, 0.0, 0.0), (1e-4, 1e-3, 1e-3))
    robot.add_link("arm", bar, joint)
    robot.add_link("ball", ls.RigidBody.sphere(0.02, density=1000), parent="arm", placement=placed(0.3, 0.0, 0.0))
    robot.add_joint_actuator("motors", "arm")
    place = ls.lie.se3_exp([0.1, 0.2, 0.3, 0.0, 0.0, 0.0])
    place[:3, 3] = 0.28, 0.02, -0.119
    law = {"damping": 0.5, "friction": 0.8, "stick_stiffness": 500.0, "stick_damping": 0.01}
    robot.add_contact("dome", "ball", ls.ShapeSphere(0.1), placement=place, stiffness=1e4, **law)
    return robot.build()


@pytest.mark.parametrize("scheme", ["generalized_alpha", "bathe"])
def test_contacts_that_stick(scheme):
    """A robot with a joint in Python has the motion and the derivatives of the one in kernels."""
    springs = {"stiffness": 0.5, "damping": 0.05}
    native, custom = (leaning(x) for x in (ls.JointUniversal(AXIS, OTHER, **springs),
                                           ls.JointCustom(universal, 2, **springs)))  # fmt: skip
    rng, motions = np.random.default_rng(12), []
    u = np.array([0.3, -0.2]) + 0.2 * rng.normal(size=(2, 20, 2))
    for one in (native, custom):
        motions.append(ls.rollout(one, u=u, dt=4e-3, method=scheme, tolerance=1e-12))
    one, other = motions
    assert 0.5 < np.isfinite(one.anchors[..., 0]).mean() < 1.0  # it bounces
    np.testing.assert_allclose(other.q, one.q, rtol=0, atol=1e-9)
    np.testing.assert_allclose(other.anchors, one.anchors, rtol=0, atol=1e-9)
    weights, du = rng.normal(size=one.v.shape), rng.normal(size=u.shape)
    paths = ["dome.stick_stiffness"]
    gradient, found = (x.backward(weights, parameters=paths) for x in motions)
    change, answer = (x.forward(du=du) for x in motions)
    np.testing.assert_allclose(found.u, gradient.u, rtol=0, atol=1e-7 * np.abs(gradient.u).max())
    np.testing.assert_allclose(answer.q, change.q, rtol=0, atol=1e-7 * np.abs(change.q).max())
    assert found.parameters[paths[0]] == pytest.approx(gradient.parameters[paths[0]], rel=1e-6)


def pulled(**forces):
    """An arm of a rod on a hinge, with a curved tendon or a Python function in its place, and with a stiffening and
    damping spring in Python at its tip."""
    robot = ls.Robot("arm")
    material = ls.Material(young=1e6, density=1100, viscosity=1e3)
    rod = ls.Rod(0.3, ls.SectionCircle(0.01), ls.BasisLegendre(torsion=0, bending_y=1, bending_z=1), material)
    robot.add_link("arm", rod, ls.JointRevolute((0, 1, 0), stiffness=0.1, damping=0.01))
    if "tendon" in forces:
        robot.add_custom_actuator("tendon", forces["tendon"])
    else:
        robot.add_tendon("tendon", "arm", (0.005, 0.002))
    if "force" in forces:
        robot.add_force("spring", "arm", forces["force"], s=1.0)
    return robot.build()


def spring(t, g, twist):
    """A wrench that depends on time, place and velocity."""
    R, p = g[:3, :3], g[:3, 3]
    return np.concatenate([-1e-3 * twist[:3], R.T @ (-20.0 * (p @ p) * p) - (0.1 + t) * twist[3:]])


def test_actuators_of_python():
    """An actuator in Python that returns the columns of a tendon gives the motion of the tendon, and the same forward
    and backward derivatives, also by design values."""
    native = pulled()
    custom = pulled(tendon=lambda q: ls.actuation_matrix(native, q))
    rng = np.random.default_rng(4)
    v, u = 0.3 * rng.normal(size=native.nv), 3.0 * rng.uniform(size=(2, 20, 1))
    one, other = (ls.rollout(model, v0=v, u=u, dt=5e-3, tolerance=1e-13) for model in (native, custom))
    np.testing.assert_allclose(other.q, one.q, rtol=0.0, atol=1e-10 * np.abs(one.q).max())
    du, weights = rng.normal(size=u.shape), rng.normal(size=one.v.shape)
    change, answer = (motion.forward(du=du) for motion in (one, other))
    np.testing.assert_allclose(answer.q, change.q, rtol=0.0, atol=1e-8 * np.abs(change.q).max())
    path = "arm.material.young"
    gradient, found = (motion.backward(weights, parameters=[path]) for motion in (one, other))
    np.testing.assert_allclose(found.v0, gradient.v0, rtol=0.0, atol=1e-8 * np.abs(gradient.v0).max())
    np.testing.assert_allclose(found.parameters[path], gradient.parameters[path], rtol=1e-7)
    back, forwards = np.sum(found.u * du), np.sum(weights * answer.q)
    assert back == pytest.approx(forwards, rel=1e-11)


@pytest.mark.parametrize("scheme", ["generalized_alpha", "esdirk"])
def test_forces_of_python(scheme):
    """Derivatives by the initial state and inputs equal differences."""
    model, rng = pulled(force=spring), np.random.default_rng(5)
    v, u = 0.3 * rng.normal(size=model.nv), 3.0 * rng.uniform(size=(10, 1))
    dv, du = 0.3 * rng.normal(size=model.nv), rng.normal(size=u.shape)

    def run(x):
        return ls.rollout(model, None, v + x * dv, u + x * du, dt=5e-3, method=scheme, tolerance=1e-13)

    motion = run(0.0)
    change = motion.forward(dv0=dv, du=du)
    exact, h = np.array([change.q, change.v, change.a]), 1e-2
    ways = [changes(model, motion, run(x)) for x in (h, -h, 2 * h, -2 * h)]
    slope = (8 * (ways[0] - ways[1]) - (ways[2] - ways[3])) / (12 * h)
    assert np.abs(slope - exact).max() < 1e-7 * np.abs(exact).max()


def test_forces_of_python_in_a_batch_of_models_are_refused():
    """A batch of models is refused."""
    model = pulled(force=spring)
    with pytest.raises(ls.ModelError, match="'arm': a batch of models needs forces that kernels compute"):
        ls.rollout(model.batch("arm.material.young", [1e6, 2e6]), steps=2, dt=0.01)
