"""What every joint promises (Joint's law), on each class with generic axes.

Closed forms of the poses come from SciPy's rotations. Entries are of order one, so 1e-14 is a few roundings; gradients
are fourth-order central differences, good to 1e-10 of the largest force.
"""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.linalg import expm, null_space
from scipy.spatial.transform import Rotation

import lissom as ls
from lissom.robot.fields import members
from lissom.robot.joints import Joint, Motion, MotionKind, Spring

A = np.array([0.48, -0.6, 0.64])
B = np.array([0.6, 0.8, 0.0])
TABLE = np.linspace(-1.5, 1.5, 7)
JOINTS = {
    "Fixed": ls.JointFixed(),
    "Revolute": ls.JointRevolute(3.0 * A),  # axes are normalised
    "Prismatic": ls.JointPrismatic(A),
    "Helical": ls.JointHelical(A, pitch=-0.13),
    "Cylindrical": ls.JointCylindrical(A),
    "Universal": ls.JointUniversal(A, B),
    "Planar": ls.JointPlanar(A),
    "Spherical": ls.JointSpherical(),
    "Free": ls.JointFree(),
    "Custom": ls.JointCustom(ls.PoseSpline(TABLE, TABLE[:, None] * A, -0.13 * TABLE[:, None] * A)),
}
SIZES = {"Fixed": (0, 0), "Revolute": (1, 1), "Prismatic": (1, 1), "Helical": (1, 1), "Cylindrical": (2, 2),
         "Universal": (2, 2), "Planar": (3, 3), "Spherical": (4, 3), "Free": (7, 6),
         "Custom": (1, 1)}  # fmt: skip
NODES = {"Fixed": 0, "Universal": 2, "Planar": 3}  # of the others: one
BODY = ls.RigidBody(0.7, (0.03, -0.02, 0.05), (2e-3, 3e-3, 4e-3))
QUATERNION = np.array([0.5, -0.7, 0.1, 0.5])

every = pytest.mark.parametrize("kind", JOINTS)


def turn(axis, angle):
    """4x4 turn about an axis."""
    g = np.eye(4)
    g[:3, :3] = Rotation.from_rotvec(angle * axis).as_matrix()
    return g


def slide(by):
    """4x4 translation."""
    g = np.eye(4)
    g[:3, 3] = by
    return g


def stored(q):
    """4x4 of a quaternion (w, x, y, z) and, for a free joint, a position."""
    g = slide(q[4:7]) if len(q) == 7 else np.eye(4)
    g[:3, :3] = Rotation.from_quat(np.roll(q[:4], -1)).as_matrix()
    return g


def in_plane(normal):
    """The axes x, y of a planar joint: x follows the normal's largest component cyclically."""
    x = np.eye(3)[(np.argmax(abs(normal)) + 1) % 3]
    x = x - normal * (normal @ x)
    x /= np.linalg.norm(x)
    return x, np.cross(normal, x)


def closed_form(kind, q):
    """Pose of each joint, written down directly."""
    return {
        "Fixed": lambda: np.eye(4),
        "Revolute": lambda: turn(A, q[0]),
        "Prismatic": lambda: slide(q[0] * A),
        "Helical": lambda: turn(A, q[0]) @ slide(-0.13 * q[0] * A),
        "Cylindrical": lambda: turn(A, q[0]) @ slide(q[1] * A),
        "Universal": lambda: turn(A, q[0]) @ turn(B, q[1]),
        "Planar": lambda: slide(q[0] * in_plane(A)[0] + q[1] * in_plane(A)[1]) @ turn(A, q[2]),
        "Spherical": lambda: stored(q),
        "Free": lambda: stored(q),
        "Custom": lambda: turn(A, q[0]) @ slide(-0.13 * q[0] * A),
    }[kind]()


def model_of(joint, **options):
    """A body on one joint, without gravity unless asked for."""
    robot = ls.Robot("joint", gravity=options.pop("gravity", (0, 0, 0)))
    robot.add_link("body", BODY, joint, **options)
    return robot.build()


def configuration(joint, seed=0):
    """A generic configuration, turned by about 1 rad."""
    q = np.random.default_rng(seed).uniform(-1.2, 1.2, joint.nq)
    if joint.nq != joint.nv:
        q[:4] = QUATERNION / np.linalg.norm(QUATERNION)
    return q


def differences(function, model, q, h=1e-3):
    """Gradient of function(q) in the tangent space, fourth-order central differences."""
    steps = np.eye(model.nv)
    near, far = ((function(ls.integrate(model, q, k * h * steps)) - function(ls.integrate(model, q, -k * h * steps)))
                 / (2 * k * h) for k in (1, 2))  # fmt: skip
    return (4 * near - far) / 3


def test_every_joint_is_here():
    """A new joint must join this sweep."""
    assert {type(joint) for joint in JOINTS.values()} == set(members(Joint))


@every
def test_sizes(kind):
    """nq, nv and the neutral configuration agree with the table and with the built model."""
    joint = JOINTS[kind]
    assert (joint.nq, joint.nv) == SIZES[kind]
    model = model_of(joint)
    assert (model.nq, model.nv) == SIZES[kind]
    assert np.array_equal(model.neutral(), joint.neutral())
    assert np.array_equal(np.flatnonzero(joint.neutral()), [0] if joint.nq != joint.nv else [])


@every
def test_motions(kind):
    """Every node's columns are independent, and those of an EXP node commute."""
    motions = JOINTS[kind].motions("joint")
    assert len(motions) == NODES.get(kind, 1)
    for motion in motions:
        Phi = motion.Phi
        assert Phi.shape[0] == 6
        assert np.linalg.matrix_rank(Phi) == Phi.shape[1]
        if motion.kind is MotionKind.EXP:
            for x in Phi.T:
                for y in Phi.T:
                    assert np.abs(ls.lie.se3_ad(x) @ y).max() < 1e-15


@every
def test_neutral_is_the_identity(kind):
    """Joint frames coincide at the neutral configuration."""
    model = model_of(JOINTS[kind])
    assert np.array_equal(ls.frame_pose(model, model.neutral(), "body"), np.eye(4))


@every
@pytest.mark.parametrize("seed", range(3))
def test_pose(kind, seed):
    """The pose is the closed form, seen from the placement."""
    joint = JOINTS[kind]
    q = configuration(joint, seed)
    np.testing.assert_allclose(ls.frame_pose(model_of(joint), q, "body"), closed_form(kind, q), atol=2e-15)
    placement = turn(B, 0.8) @ slide([0.3, -0.2, 0.5])
    placed = ls.frame_pose(model_of(joint, placement=placement), q, "body")
    np.testing.assert_allclose(placed, placement @ closed_form(kind, q), atol=2e-15)


@every
def test_pose_is_a_product_of_exponentials(kind):
    """The law g = Π exp(Φ q) of the EXP nodes, by matrix exponentials of their columns. Other kinds have other laws."""
    joint = JOINTS[kind]
    if any(motion.kind != MotionKind.EXP for motion in joint.motions("joint")):
        return
    q, g, at = configuration(joint), np.eye(4), 0
    for motion in joint.motions("joint"):
        n = motion.Phi.shape[1]
        x = motion.Phi @ q[at : at + n]
        W = np.array([[0, -x[2], x[1], x[3]], [x[2], 0, -x[0], x[4]], [-x[1], x[0], 0, x[5]], [0, 0, 0, 0]])
        g, at = g @ expm(W), at + n
    np.testing.assert_allclose(ls.frame_pose(model_of(joint), q, "body"), g, atol=4e-15)


@every
def test_twist_is_the_rate_of_the_pose(kind):
    """The body twist is (g⁻¹ ġ)^∨ along integrate, and J v."""
    joint = JOINTS[kind]
    model, q = model_of(joint), configuration(joint)
    v = np.random.default_rng(5).uniform(-1, 1, joint.nv)
    g, h = ls.frame_pose(model, q, "body"), 1e-3
    steps = [ls.lie.se3_log(np.linalg.inv(g) @ ls.frame_pose(model, ls.integrate(model, q, k * h * v), "body"))
             for k in (-2, -1, 1, 2)]  # fmt: skip
    expected = (steps[0] - 8 * steps[1] + 8 * steps[2] - steps[3]) / (12 * h)
    twist = ls.frame_twist(model, q, v, "body")
    np.testing.assert_allclose(twist, expected, atol=1e-10)
    np.testing.assert_allclose(ls.frame_jacobian(model, q, "body") @ v, twist, atol=1e-15)


@every
def test_integrate_and_difference(kind):
    """difference undoes integrate; two half steps along one velocity are one step, as in a group."""
    joint = JOINTS[kind]
    model, q = model_of(joint), configuration(joint)
    dv = np.random.default_rng(6).uniform(-1, 1, joint.nv)
    there = ls.integrate(model, q, dv)
    np.testing.assert_allclose(ls.difference(model, q, there), dv, atol=2e-15)
    np.testing.assert_allclose(ls.integrate(model, ls.integrate(model, q, 0.5 * dv), 0.5 * dv), there, atol=2e-15)
    if joint.nq != joint.nv:
        g = stored(q)
        step = np.concatenate([dv, np.zeros(6 - len(dv))])
        np.testing.assert_allclose(stored(there), g @ ls.lie.se3_exp(step), atol=2e-15)
        assert np.linalg.norm(there[:4]) == pytest.approx(1.0, abs=4e-16)


@every
def test_both_quaternions_of_a_rotation_are_one_configuration(kind):
    """q and the configuration with −quaternion are the same place: same pose, no difference."""
    joint = JOINTS[kind]
    if joint.nq == joint.nv:
        return
    model, q = model_of(replace(joint, stiffness=2.0)), configuration(joint)
    other = q.copy()
    other[:4] *= -1
    zero = np.zeros(joint.nv)
    np.testing.assert_allclose(ls.difference(model, q, other), zero, atol=1e-15)
    np.testing.assert_allclose(ls.frame_pose(model, other, "body"), ls.frame_pose(model, q, "body"), atol=1e-15)
    force = ls.inverse_dynamics(model, q, zero, zero)
    np.testing.assert_allclose(ls.inverse_dynamics(model, other, zero, zero), force, atol=1e-15)


def spring(joint, seed):
    """The joint with a full stiffness, a full damping and a rest configuration."""
    rng = np.random.default_rng(seed)
    n = joint.nv
    K, D = (np.eye(n) + 0.3 * (X @ X.T) for X in rng.normal(size=(2, n, n)))
    rest = 0.4 * rng.normal(size=joint.nq)
    if joint.nq != n:
        rest[:4] = np.roll(Rotation.from_rotvec([0.5, -0.3, 0.2]).as_quat(), 1)
    return replace(joint, stiffness=K, damping=D, rest=rest), K, D, rest


moving = pytest.mark.parametrize("kind", [kind for kind in JOINTS if kind != "Fixed"])


@moving
def test_spring_is_slack_at_rest(kind):
    """At `rest` the spring stores nothing and pulls nothing, and its stiffness there is K."""
    joint, K, _, rest = spring(JOINTS[kind], 1)
    model, zero = model_of(joint), np.zeros(joint.nv)
    assert abs(ls.energy(model, rest, zero).elastic) < 1e-30
    np.testing.assert_allclose(ls.inverse_dynamics(model, rest, zero, zero), zero, atol=1e-14)
    np.testing.assert_allclose(ls.stiffness_matrix(model), K, atol=1e-15)
    slope = differences(lambda x: ls.inverse_dynamics(model, x, np.zeros((len(x), joint.nv)), zero), model, rest)
    np.testing.assert_allclose(slope, K, atol=1e-9)


@moving
def test_spring_force_is_the_gradient_of_its_energy(kind):
    """Inverse dynamics at rest is ∂U/∂q of the elastic energy, in the tangent space."""
    joint, *_ = spring(JOINTS[kind], 2)
    model, q, zero = model_of(joint), configuration(JOINTS[kind]), np.zeros(joint.nv)
    force = ls.inverse_dynamics(model, q, zero, zero)
    gradient = differences(lambda x: ls.energy(model, x, np.zeros((len(x), joint.nv))).elastic, model, q)
    np.testing.assert_allclose(force, gradient, atol=1e-10 * np.abs(force).max())
    assert np.abs(force).max() > 0.1
    assert not ls.inverse_dynamics(model, q, zero, zero, elastic=False).any()


@moving
def test_spring_energy_is_quadratic(kind):
    """½ eᵀ K e with e = q − rest, or the logarithm of the pose from rest."""
    joint, K, _, rest = spring(JOINTS[kind], 3)
    model, q = model_of(joint), configuration(JOINTS[kind])
    e = ls.difference(model, rest, q)
    U = ls.energy(model, q, np.zeros(joint.nv)).elastic
    assert pytest.approx(0.5 * e @ K @ e, rel=1e-13) == U


@moving
def test_damping_force(kind):
    """D v on top of everything else, whatever the configuration."""
    joint, _, D, _ = spring(JOINTS[kind], 4)
    model, q, zero = model_of(joint), configuration(JOINTS[kind]), np.zeros(joint.nv)
    v = np.random.default_rng(7).uniform(-1, 1, joint.nv)
    undamped = model_of(replace(joint, damping=0.0))
    more = ls.inverse_dynamics(model, q, v, zero) - ls.inverse_dynamics(undamped, q, v, zero)
    np.testing.assert_allclose(more, D @ v, atol=1e-14)
    np.testing.assert_allclose(ls.damping_matrix(model), D, atol=1e-15)


@moving
def test_numbers_and_vectors_as_stiffness(kind):
    """A scalar stiffness or damping is that times the identity, a vector its diagonal."""
    joint = JOINTS[kind]
    diagonal = np.arange(1.0, joint.nv + 1)
    model = model_of(replace(joint, stiffness=2.5, damping=diagonal))
    assert np.array_equal(ls.stiffness_matrix(model), 2.5 * np.eye(joint.nv))
    assert np.array_equal(ls.damping_matrix(model), np.diag(diagonal))


@every
def test_constraint_carries_everything_else(kind):
    """Power: a force on the body works only along the joint, so τ of a body wrench is J'F and has joint size."""
    joint = JOINTS[kind]
    robot = ls.Robot("joint", gravity=(0, 0, 0))
    robot.add_link("body", BODY, joint)
    F = np.array([0.3, -0.5, 0.2, 1.5, 0.7, -1.1])
    robot.add_point_load("load", "body", moment=F[:3], force=F[3:], frame="body")
    model, q = robot.build(), configuration(joint)
    J = ls.frame_jacobian(model, q, "body")
    np.testing.assert_allclose(ls.external_force(model, q), J.T @ F, atol=4e-15)
    assert null_space(J).shape[1] == 0


@dataclass(frozen=True)
class Own(Joint, Spring):
    """A joint of a developer: a node of some kind for each column of Φ."""

    columns: tuple = ()
    node: MotionKind = MotionKind.EXP

    def motions(self, where):
        return [Motion(self.node, np.array(column, dtype=float)[:, None]) for column in self.columns]


def loop_of(joint):
    """A robot with one loop, closed by a joint."""
    robot = ls.Robot("loop")
    robot.add_link("body", BODY, ls.JointFree())
    robot.add_loop("closing", "body", joint=joint)
    return robot


def test_another_kind_of_node_is_no_exponential():
    """A loop refuses it, and its pose must be given: by exp(Φ q) both would be wrong without a sign of it."""
    strange = Own(columns=(np.eye(6)[3],), node=MotionKind.BODY)
    with pytest.raises(ls.ModelError, match=r"closing.*must be one of the joints with axes"):
        loop_of(strange).check()
    with pytest.raises(ls.ModelError, match=r"^joint: .* needs its own `displacement` \(got 'BODY'\)"):
        strange.displacement(np.zeros(1), "joint")


def test_loops_of_three_turns():
    """Three turns about axes through one point hold what a spherical joint holds; off that point they are refused."""
    turns = np.eye(6)[:3]
    found, ball = (loop_of(x).loops["closing"].closure("loop") for x in (Own(columns=(*turns,)), ls.JointSpherical()))
    for name, value in found._asdict().items():
        np.testing.assert_array_equal(value, getattr(ball, name))
    for off in (turns[2] + 0.1 * np.eye(6)[3], turns[2] + 0.1 * np.eye(6)[5]):
        with pytest.raises(ls.ModelError, match=r"closing.*must be turns about its origin"):
            loop_of(Own(columns=(*turns[:2], off))).check()
    with pytest.raises(ls.ModelError, match=r"closing.*must be turns about its origin"):
        loop_of(Own(columns=(*turns, np.eye(6)[4]))).check()
