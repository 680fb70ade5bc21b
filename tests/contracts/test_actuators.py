"""What every actuator promises (Actuator's law): τ = B(q) u, linear in its own inputs, in the order added.

B's entries are projections of order one of unit forces: 1e-14 of the largest is a few roundings; gradients are
fourth-order central differences, good to 1e-9.
"""

import numpy as np
import pytest

import lissom as ls
from lissom.robot.actuators import (
    Actuator,
    BodyChamber,
    Chamber,
    CustomActuator,
    JointActuator,
    SurfacePressure,
    Tendon,
    WrenchInput,
)

JETS = np.random.default_rng(4).normal(size=(6, 2))
GAIN = np.random.default_rng(3).normal(size=(10, 2))


def described():
    """A rod on a hinge, a body on a universal joint at its tip: ten coordinates."""
    robot = ls.Robot("driven")
    robot.add_link(
        "rod",
        ls.Rod(0.4, ls.SectionCircle(0.02), ls.BasisLegendre(torsion=0, bending_y=2, bending_z=1, elongation=0),
               ls.Material(young=1e6, density=1e3)),
        ls.JointRevolute((0, 1, 0)),
    )  # fmt: skip
    robot.add_link("tool", ls.RigidBody.box(0.1, 0.05, 0.02, density=500), ls.JointUniversal(), parent="rod")
    return robot


ADD = {
    "tendon": lambda r: r.add_tendon("x", "rod", lambda s: (0.01 * s, 0.015)),
    "partial tendon": lambda r: r.add_tendon("x", "rod", (0.01, -0.01), start=0.8, stop=0.3),
    "routed tendon": lambda r: r.add_tendon(
        "x",
        path=[
            ls.PathPoint(None, (0, 0, 0.2)),
            ls.PathRod("rod", (0.0, 0.02), 0.1, 0.9),
            ls.PathPoint("tool", (0.05, 0, 0.02)),
        ],
    ),
    "chamber": lambda r: r.add_chamber("x", "rod", offset=(0.0, 0.01), area=lambda s: 2e-4 * (1 + s)),
    "volume chamber": lambda r: r.add_chamber("x", "rod", offset=(0.005, 0.01), area=2e-4, force="volume"),
    "joint actuator": lambda r: r.add_joint_actuator("x", "tool"),
    "wrench": lambda r: r.add_wrench_input("x", "rod", s=0.37, directions=JETS, frame="world", position=(0, 0.01, 0)),
    "follower": lambda r: r.add_wrench_input("x", "tool", directions=JETS[:, 0], position=(0.1, 0, 0.02)),
    "custom actuator": lambda r: r.add_custom_actuator("x", lambda q: GAIN * np.cos(q[3]), size=2),
}  # fmt: skip
SIZES = {"joint actuator": 2, "wrench": 2, "custom actuator": 2}
every = pytest.mark.parametrize("kind", ADD)


def built(*kinds, coupled=None):
    """The robot with actuators of these kinds, named x0, x1, …"""
    robot = described()
    for k, kind in enumerate(kinds):
        ADD[kind](robot)
        actuator = robot.actuators.pop("x")
        robot.actuators[f"x{k}"] = type(actuator)(**(vars(actuator) | {"name": f"x{k}"}))
    if coupled:
        robot.couple_inputs("both", coupled)
    return robot.build()


def state(model, seed=0, rows=()):
    """q, v, u of order one."""
    rng = np.random.default_rng(seed)
    q, v, u = (rng.uniform(-1, 1, (*rows, n)) for n in (model.nq, model.nv, model.nu))
    return q, v, 0.2 + abs(u)  # tendons pull


def test_every_actuator_is_here():
    """A new kind of actuator must join this sweep."""
    robot = described()
    kinds = set()
    for add in ADD.values():
        kinds.add(type(add(robot)))
        robot.actuators.clear()
    known = {Tendon, Chamber, JointActuator, WrenchInput, CustomActuator}
    within_bodies = {
        BodyChamber,
        SurfacePressure,
    }  # which need a deformable body: bodies.test_pulls holds them to it
    assert kinds == set(Actuator.__subclasses__()) - within_bodies == known


@every
def test_inputs_and_their_names(kind):
    """nu counts the actuator's own inputs; one input bears its name, several the name and a number."""
    model, size = built(kind), SIZES.get(kind, 1)
    assert model.nu == size
    assert model.inputs.names == (("x0",) if size == 1 else ("x0[0]", "x0[1]"))
    assert ls.actuation_matrix(model, model.neutral()).shape == (model.nv, size)


@every
def test_force_is_linear_in_u(kind):
    """M a changes by B(q) u, and twice the input by twice as much: whatever drives, B u is all it does."""
    model = built(kind)
    q, v, u = state(model)
    B = ls.actuation_matrix(model, q)
    free = ls.forward_dynamics(model, q, v)
    M = ls.mass_matrix(model, q)
    scale = np.abs(B @ u).max()
    for factor in (1.0, 2.0, 0.3):
        a = ls.forward_dynamics(model, q, v, factor * u)
        cancelled = 1e-15 * np.abs(M @ np.abs(a)).max() + 1e-12 * scale
        np.testing.assert_allclose(M @ (a - free), factor * (B @ u), atol=100 * cancelled)
    assert scale > 1e-6


@every
def test_inputs_do_not_appear_in_inverse_dynamics(kind):
    """The left side of the equation of motion is the same with and without the actuator."""
    model, bare = built(kind), described().build()
    q, v, _ = state(model)
    a = np.ones(model.nv)
    assert np.array_equal(ls.inverse_dynamics(model, q, v, a), ls.inverse_dynamics(bare, q, v, a))


@every
def test_batches(kind):
    """B of a batch is B of each row."""
    model = built(kind)
    q, *_ = state(model, rows=(2, 3))
    B = ls.actuation_matrix(model, q)
    assert B.shape == (2, 3, model.nv, model.nu)
    for at in np.ndindex(2, 3):
        np.testing.assert_allclose(B[at], ls.actuation_matrix(model, q[at]), atol=1e-16)


@every
def test_only_tendons_have_lengths(kind):
    """path_lengths lists tendons, whose B is minus the gradient of the length."""
    model = built(kind)
    q, *_ = state(model)
    lengths = ls.path_lengths(model, q)
    assert lengths.shape == ((1,) if "tendon" in kind else (0,))
    if len(lengths):
        h, steps = 1e-3, np.eye(model.nv)
        at = [ls.path_lengths(model, q + k * h * steps) for k in (-2, -1, 1, 2)]
        B = ls.actuation_matrix(model, q)
        np.testing.assert_allclose(B, -(at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * h), atol=1e-9 * np.abs(B).max())


def test_a_chamber_does_work_on_its_volume():
    """A volume chamber's B is the gradient of the volume ∫ A (ε_x − κ_z y + κ_y z) ds that it encloses.

    Here it is the straight formula for constant strains: a rod with constant modes only.
    """
    robot = ls.Robot("chamber")
    basis = ls.BasisLegendre(bending_y=0, bending_z=0, elongation=0)
    robot.add_link("rod", ls.Rod(0.4, ls.SectionCircle(0.02), basis, ls.Material(young=1e6, density=1e3)))
    robot.add_chamber("c", "rod", offset=(0.005, 0.01), area=3e-4, force="volume")
    model = robot.build()
    expected = 3e-4 * 0.4 * np.array([0.01, -0.005, 1.0])
    for q in (np.zeros(3), np.array([0.7, -0.4, 0.1])):
        np.testing.assert_allclose(ls.actuation_matrix(model, q)[:, 0], expected, rtol=1e-14)


def test_a_motor_turns_its_own_joint_only():
    """A motor's B selects the joint's velocity coordinates."""
    model = built("joint actuator")
    B = ls.actuation_matrix(model, state(model)[0])
    expected = np.zeros((model.nv, 2))
    expected[-2:] = np.eye(2)
    assert np.array_equal(B, expected)


def test_columns_stand_in_the_order_added():
    """u stacks the inputs in the order the actuators were added, whatever their kinds."""
    kinds = ["joint actuator", "chamber", "custom actuator", "tendon", "wrench", "routed tendon"]
    model = built(*kinds)
    assert model.inputs.names == ("x0[0]", "x0[1]", "x1", "x2[0]", "x2[1]", "x3", "x4[0]", "x4[1]", "x5")
    q, *_ = state(model)
    B = ls.actuation_matrix(model, q)
    alone = np.hstack([ls.actuation_matrix(built(kind), q) for kind in kinds])
    np.testing.assert_allclose(B, alone, atol=1e-16)


def test_coupling():
    """One input drives several actuators by gains and stands where the first of them stood."""
    kinds = ["joint actuator", "tendon", "chamber", "follower"]
    gains = {"x3": -0.5, "x1": 2.0}
    model = built(*kinds, coupled=gains)
    assert model.inputs.names == ("x0[0]", "x0[1]", "both", "x2")
    q, *_ = state(model)
    free, B = ls.actuation_matrix(built(*kinds), q), ls.actuation_matrix(model, q)
    np.testing.assert_allclose(B[:, 2], 2.0 * free[:, 2] - 0.5 * free[:, 4], atol=1e-16)
    np.testing.assert_allclose(B[:, [0, 1, 3]], free[:, [0, 1, 3]], atol=0)


def test_a_coupled_custom_actuator():
    """Coupling reaches actuators of one's own, too."""
    robot = described()
    robot.add_custom_actuator("c", lambda q: GAIN[:, 0])
    robot.add_tendon("t", "rod", (0.0, 0.01))
    q = state(robot.build())[0]
    free = ls.actuation_matrix(robot.build(), q)
    robot.couple_inputs("both", {"c": 3.0, "t": 1.0})
    model = robot.build()
    assert model.inputs.names == ("both",)
    np.testing.assert_allclose(ls.actuation_matrix(model, q)[:, 0], 3 * free[:, 0] + free[:, 1], atol=1e-15)
    assert ls.forward_dynamics(model, q, 0 * q, [0.1]).shape == (model.nv,)


@pytest.mark.parametrize(
    "value, got",
    [(np.ones(3), r"got shape \(3,\)"), (np.full((10, 1), np.nan), r"finite values"), (np.ones((10, 2)), r"\(10, 2\)")],
)
def test_what_a_custom_actuator_may_return(value, got):
    """A wrong shape, NaN or infinity from a user's B is a ShapeError that names the actuator."""
    robot = described()
    robot.add_custom_actuator("mine", lambda q: value)
    model = robot.build()
    with pytest.raises(ls.ShapeError, match=rf"actuator 'mine': .*{got}"):
        ls.actuation_matrix(model, model.neutral())
    with pytest.raises(ls.ShapeError, match=rf"actuator 'mine': .*{got}"):
        ls.forward_dynamics(model, model.neutral(), np.zeros(model.nv), [1.0])


def test_the_error_of_a_custom_actuator_is_the_users_own():
    """An exception of a user's B reaches the caller unchanged."""

    def broken(q):
        raise KeyError("my table")

    robot = described()
    robot.add_custom_actuator("mine", broken)
    model = robot.build()
    with pytest.raises(KeyError, match="my table"):
        ls.actuation_matrix(model, model.neutral())


def test_negative_tensions_are_computed_with_one_warning():
    """A tendon cannot push: a negative tension is computed as asked, with one AccuracyWarning."""
    model = built("tendon")
    q, v, _ = state(model)
    with pytest.warns(ls.AccuracyWarning, match="x0"):
        a = ls.forward_dynamics(model, q, v, [-1.0])
    change = ls.mass_matrix(model, q) @ (a - ls.forward_dynamics(model, q, v))
    np.testing.assert_allclose(change, -ls.actuation_matrix(model, q)[:, 0], atol=1e-9)


def test_tendon_goes_on_into_a_fixed_rod():
    """A rod of two welded halves is one rod to its tendon: the same length, and forces that add up to the same.

    The constant strains of the one rod are those of both halves, so that its force is the sum of theirs.
    """

    def rod(parts):
        robot = ls.Robot("seams", gravity=(0, 0, 0))
        basis = ls.BasisLegendre(0, 0, 0, 0, 0, 0)
        body = ls.Rod(0.4 / parts, ls.SectionCircle(0.02), basis, ls.Material(young=1e6, density=1e3), gauss_points=8)
        for k in range(parts):
            robot.add_link(f"rod {k}", body, parent=f"rod {k - 1}" if k else None)
        robot.add_tendon("x", path=[ls.PathRod(f"rod {k}", (0.01, -0.015)) for k in range(parts)])
        return robot.build()

    one, two = rod(1), rod(2)
    q = np.random.default_rng(5).uniform(-0.5, 0.5, (3, 6))
    np.testing.assert_allclose(ls.path_lengths(two, np.tile(q, 2)), ls.path_lengths(one, q), rtol=1e-14)
    B = ls.actuation_matrix(two, np.tile(q, 2)).reshape(3, 2, 6, 1).sum(axis=1)
    np.testing.assert_allclose(B, ls.actuation_matrix(one, q), rtol=0, atol=1e-14)
    assert np.abs(B).max() > 0.1
