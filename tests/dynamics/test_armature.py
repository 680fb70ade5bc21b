"""Inertia of rotors at joints: its part of M, forces, accelerations, derivatives, energy and steps."""

import numpy as np
import pytest
from robot_descriptions import assert_same, round_trip

import lissom as ls

AT = np.eye(4)
AT[:3, 3] = 0.25, 0.02, 0.0
AT_KNOTS = np.linspace(-2.0, 2.0, 7)
PATH = ls.PoseSpline(AT_KNOTS, np.outer(AT_KNOTS, (0.1, 0.3, 0)), np.outer(AT_KNOTS**2, (0.02, 0, 0.1)))
BAR = ls.RigidBody(0.4, (0.12, 0.01, 0.0), np.diag([1.5e-3, 3e-3, 4e-3]))


def tree(rotors=True, more=0):
    """Joints of every kind that takes rotors, a rod, one coordinate without, and a chain of `more` joints."""
    joints = [
        ls.JointRevolute((0, 1, 0), armature=0.03),
        ls.JointUniversal(armature=(0.01, 0.02), stiffness=0.4, damping=0.01),
        ls.JointSpherical(armature=0.005),
        ls.JointPrismatic((0, 0, 1)),
        ls.JointCustom(PATH, armature=0.7),
        *[ls.JointRevolute((0, k % 2, (k + 1) % 2), armature=0.01 * k) for k in range(more)],
    ]  # fmt: skip
    robot, parent = ls.Robot("tree"), None
    for k, joint in enumerate(joints):
        robot.add_link(f"link{k}", BAR, joint, parent=parent, placement=None if parent is None else AT)
        parent = f"link{k}"
    rod = ls.Rod(
        0.3, ls.SectionCircle(0.01), ls.BasisLegendre(bending_y=1), ls.Material(young=1e6, density=1000, viscosity=500)
    )
    robot.add_link("rod", rod, ls.JointRevolute((1, 0, 0), armature=0.2), parent="link1", placement=AT)
    robot.add_joint_actuator("motor", "link0")
    if not rotors:
        for name in robot.links:
            robot = robot.with_({f"{name}.joint.armature": 0.0})
    return robot


@pytest.fixture(scope="module")
def models():
    """The tree with rotors and without."""
    return tree().build(), tree(rotors=False).build()


def state(model, n=3):
    rng = np.random.default_rng(5)
    q = ls.integrate(model, np.tile(model.neutral(), (n, 1)), rng.uniform(-0.6, 0.6, (n, model.nv)))
    return q, rng.uniform(-1, 1, (n, model.nv)), rng.uniform(-1, 1, (n, model.nv))


def rotors(model):
    """The inertias as they were described."""
    return np.concatenate([np.broadcast_to(link.joint.armature, link.joint.nv) if name != "rod" else [0.2, 0, 0]
                           for name, link in model.description.links.items()])  # fmt: skip


def test_is_added_to_mass_forces_and_energy(models):
    """Purpose: M, ID, h and kinetic energy are those without rotors and the diagonal, its product and its form."""
    with_them, without = models
    (q, v, a), own = state(with_them), rotors(with_them)
    near = {"rtol": 1e-12, "atol": 1e-13}
    np.testing.assert_allclose(ls.mass_matrix(with_them, q), ls.mass_matrix(without, q) + np.diag(own), **near)
    tau, plain = ls.inverse_dynamics(with_them, q, v, a), ls.inverse_dynamics(without, q, v, a)
    np.testing.assert_allclose(tau, plain + own * a, **near)
    both, neither = ls.mass_inverse_dynamics(with_them, q, v), ls.mass_inverse_dynamics(without, q, v)
    np.testing.assert_allclose(both.bias, neither.bias, **near)
    np.testing.assert_allclose(both.mass, neither.mass + np.diag(own), **near)
    np.testing.assert_allclose(ls.coriolis_matrix(with_them, q, v), ls.coriolis_matrix(without, q, v), **near)
    more = ls.energy(with_them, q, v).kinetic - ls.energy(without, q, v).kinetic
    np.testing.assert_allclose(more, 0.5 * v**2 @ own, rtol=1e-12)
    np.testing.assert_allclose(ls.momentum(with_them, q, v), ls.momentum(without, q, v), **near)


@pytest.mark.parametrize("more", [0, 40], ids=["by M", "by blocks"])
def test_accelerations(models, more):
    """Purpose: forward dynamics takes back inverse dynamics, whether it factors M or eliminates joint by joint."""
    model = models[0] if not more else tree(more=more).build()
    q, v, _ = state(model)
    u = np.array([0.3])
    found = ls.forward_dynamics(model, q, v, u)
    want = np.broadcast_to(ls.actuation_matrix(model, q) @ u, found.shape)
    np.testing.assert_allclose(ls.inverse_dynamics(model, q, v, found), want, atol=1e-10)


def test_derivatives(models):
    """Purpose: derivatives of ID against differences, and the tangent against them."""
    model, h = models[0], 1e-6
    q, v, a = (x[0] for x in state(model))
    dq, dv, da = ls.inverse_dynamics_derivatives(model, q, v, a)
    np.testing.assert_allclose(da, ls.mass_matrix(model, q), atol=1e-12)
    steps = h * np.eye(model.nv)
    ahead, behind = (ls.inverse_dynamics(model, ls.integrate(model, q, s * steps), v, a) for s in (1, -1))
    np.testing.assert_allclose(dq.T, (ahead - behind) / (2 * h), rtol=1e-6, atol=1e-7)
    rng = np.random.default_rng(1)
    x, y, z = rng.normal(size=(3, model.nv))
    np.testing.assert_allclose(
        ls.inverse_dynamics_tangent(model, q, v, a, x, y, z), dq @ x + dv @ y + da @ z, rtol=1e-11
    )
    by_u = ls.forward_dynamics_derivatives(model, q, v, [0.3])[2]
    ahead, behind = (ls.forward_dynamics(model, q, v, [0.3 + s]) for s in (h, -h))
    np.testing.assert_allclose(by_u[:, 0], (ahead - behind) / (2 * h), rtol=1e-6)


def test_rotor_on_a_standing_axis_is_inertia_of_the_link():
    """Purpose: about an axis that stands still a rotor is felt as inertia of the link; two descriptions, one motion."""
    swings = []
    for joint, J in ((ls.JointRevolute((0, 1, 0), armature=0.05), 3e-3), (ls.JointRevolute((0, 1, 0)), 3e-3 + 0.05)):
        robot = ls.Robot("pendulum")
        robot.add_link("bar", ls.RigidBody(0.4, (0.12, 0.0, 0.0), np.diag([2e-4, J, J])), joint)
        swings.append(ls.simulate(robot.build(), 1.0, [0.4], method="generalized_alpha", dt=0.01).q)
    np.testing.assert_allclose(swings[0], swings[1], rtol=1e-11)
    assert np.ptp(swings[0]) > 0.5


def test_steps_and_gradients(models):
    """Purpose: implicit steps follow a solver that asks for accelerations alone, and gradients know the rotors."""
    model = models[0]
    start = state(model)[0][0]
    fine = ls.simulate(model, 0.1, start, method="dop853", rtol=1e-10, atol=1e-12)
    steps = ls.simulate(model, 0.1, start, method="esdirk", rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(steps.q[-1], fine.q[-1], atol=1e-7)
    run = ls.rollout(model, start, dt=0.01, u=np.full((5, 1), 0.2))
    by_q = np.zeros((6, model.nv))
    by_q[-1] = 1.0
    names = ["link0.joint.armature", "rod.joint.armature"]
    gradient, h = run.backward(dL_dq=by_q, parameters=names), 1e-5
    for name in names:
        value = float(gradient.parameters[name])
        inertia = 0.03 if "link0" in name else 0.2
        ends = [ls.rollout(model.with_({name: inertia + s}), start, dt=0.01, u=np.full((5, 1), 0.2)).q[-1]
                for s in (h, -h)]  # fmt: skip
        assert value == pytest.approx(ls.difference(model, ends[1], ends[0]).sum() / (2 * h), rel=1e-5)


@pytest.mark.filterwarnings("ignore::lissom.errors.RedundancyWarning")
def test_closed_loops_feel_rotors():
    """Purpose: accelerations of a four-bar are those of M with the rotors' diagonal under the same constraints."""
    robot, parent = ls.Robot("four-bar"), None
    for k, length in enumerate((0.2, 0.5, 0.4)):
        bar, at = ls.RigidBody(1.0, (length / 2, 0.0, 0.0), np.diag([1e-3, 0.02, 0.02])), np.eye(4)
        at[0, 3] = 0.2 if k == 1 else 0.5
        joint = ls.JointRevolute((0, 1, 0), armature=0.1 * (k + 1))
        robot.add_link(f"bar{k}", bar, joint, parent=parent, placement=None if parent is None else at)
        parent = f"bar{k}"
    end, ground = np.eye(4), np.eye(4)
    end[0, 3], ground[0, 3] = 0.4, 0.45
    robot.add_loop("closure", "bar2", None, placement_a=end, placement_b=ground, joint=ls.JointRevolute((0, 1, 0)))
    model = robot.build()
    q = ls.assemble(model, [-0.8, 0.6, 1.6])
    v = np.zeros(3)
    a = ls.forward_dynamics(model, q, v)
    left, A = ls.inverse_dynamics(model, q, v, a), ls.constraint_jacobian(model, q)
    M = ls.mass_matrix(model, q)
    plain = ls.mass_matrix(robot.with_({f"bar{k}.joint.armature": 0.0 for k in range(3)}).build(), q)
    np.testing.assert_allclose(M - plain, np.diag([0.1, 0.2, 0.3]), atol=1e-14)
    force = np.linalg.lstsq(A.T, left, rcond=None)[0]
    np.testing.assert_allclose(A.T @ force, left, atol=1e-10)  # only reactions are left
    np.testing.assert_allclose(A @ a, 0.0, atol=1e-9)


def test_files_values_and_batches(models, tmp_path):
    """Purpose: rotors are saved, changed by their path without compiling, and differ within a batch."""
    robot = tree()
    assert_same(round_trip(robot, tmp_path), robot)
    q = models[0].neutral()
    for model in (models[0].with_({"link0.joint.armature": 0.5}), models[0].batch("link0.joint.armature", [0.5])):
        M = ls.mass_matrix(model, q)
        assert M[..., 0, 0] - ls.mass_matrix(models[0], q)[0, 0] == pytest.approx(0.47, rel=1e-12)


@pytest.mark.parametrize(
    ("joint", "rule"),
    [
        (ls.JointRevolute(armature=-1.0), "must be >= 0, a number or one for each coordinate"),
        (ls.JointUniversal(armature=(1.0, 2.0, 3.0)), "must be >= 0, a number or one for each coordinate"),
        (ls.JointSpherical(armature=(1.0, 2.0, 3.0)), "must be >= 0, a number"),
        (ls.JointFree(armature=1.0), "must be left out on a free joint"),
        (ls.JointRevolute(armature="heavy"), "must be >= 0"),
    ],
)
def test_errors(joint, rule):
    """Purpose: each wrong rotor is refused by its rule."""
    robot = ls.Robot("bad")
    robot.add_link("bar", BAR, joint)
    with pytest.raises(ls.ModelError, match=f"link 'bar' > joint: armature: {rule}"):
        robot.build()
