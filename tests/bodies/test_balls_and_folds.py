"""Balls of deformable bodies that touch each other, their compliance, and shapes that are turned inside out."""

import jax.numpy as jnp
import numpy as np
import pytest

import lissom as ls
from lissom.bodies.domains import surface_balls

LAW = ls.HyperelasticLinear(young=1e4, poisson=0.3)
BOX = ls.DomainBox(0.2, 0.02, 0.02, degree=4)


def bent(x):
    """Bending far enough that the ends may meet, and stretching."""
    return jnp.stack([jnp.array([-2.0 * x[0] * x[1], x[0] ** 2, 0.0]), jnp.array([x[0], 0.0, 0.0])], axis=1)


BALLS = [[0.02, 0.0, 0.0, 0.01], [0.035, 0.0, 0.0, 0.01], [0.18, 0.0, 0.0, 0.01]]
SOFT = ls.DeformableBody(ls.KinematicsRitz(bent, 2), BOX, LAW, 1e3, balls=BALLS)

DISTANCE = {  # from the surface of a shape, inside it
    "cylinder": (ls.DomainCylinder(0.2, 0.02), lambda x, r: np.minimum(0.02 - r, np.minimum(x, 0.2 - x))),
    "tube": (
        ls.DomainAnnulus(0.1, 0.02, 0.01),
        lambda x, r: np.minimum(np.minimum(0.02 - r, r - 0.01), np.minimum(x, 0.1 - x)),
    ),
    "cone": (
        ls.DomainCone(0.1, 0.02, 0.01),
        lambda x, r: np.minimum(np.minimum(x, 0.1 - x), (0.02 - 0.1 * x - r) / np.hypot(1.0, 0.1)),
    ),
}


@pytest.mark.parametrize("name", DISTANCE)
def test_balls_lie_inside_and_reach_the_surface(name):
    """Each is as far from the surface as its radius says, to what facets miss of round sides; none are alike."""
    domain, distance = DISTANCE[name]
    rows = surface_balls(domain, 32)
    x, r, radius = rows[:, 0], np.hypot(rows[:, 1], rows[:, 2]), rows[:, 3]
    inside = distance(x, r)
    assert (radius > 0.0).all() and (radius <= inside + 1e-12).all()
    assert np.allclose(radius, inside, rtol=0, atol=0.02 * (1.0 - np.cos(np.pi / 32)) + 1e-12)
    apart = np.linalg.norm(rows[:, None, :3] - rows[None, :, :3], axis=-1) + np.eye(len(rows))
    assert len(rows) == 32 and apart.min() > 1e-3


def described():
    """A soft strip that may touch itself and a rod beside it."""
    robot = ls.Robot("strip", gravity=(0, 0, 0))
    robot.add_link("soft", SOFT)
    rod = ls.Rod(0.2, ls.SectionCircle(0.01), ls.BasisLegendre(bending_z=1), ls.Material(young=1e5, density=1e3))
    away = np.eye(4)
    away[1, 3] = 0.1
    robot.add_link("rod", rod, placement=away)
    robot.add_contact("self", "soft", others="soft", stiffness=1e3)
    robot.add_contact("beside", "soft", others="rod", stiffness=1e3)
    return robot


def test_a_body_touches_itself_and_others():
    """Balls that start near each other do not; the others do where they meet, and their forces are equal."""
    model = described().build()
    pair = model.contacts.pair
    own = pair[pair[:, 2] == 0]
    kept = {tuple(sorted(model.contacts.ball_s[[a, b % 3]].round(3).tolist())) for a, b, _ in own}
    assert kept == {(0.1, 0.9), (0.175, 0.9)}
    q = np.concatenate([[0.0, -0.9], np.zeros(2)])
    moved = SOFT.moved(np.array(BALLS)[:, :3], q[:2])
    found = ls.contact_forces(model, q)
    depths = [0.02 - np.linalg.norm(moved[k] - moved[2]) for k in (0, 1)]
    assert min(depths) > 0.001 and found.link == found.other == ("soft", "soft")
    assert np.allclose(sorted(found.depth), sorted(depths), rtol=0, atol=1e-14)
    beside = np.concatenate([[2.8, 0.0], np.zeros(2)])
    assert set(ls.contact_forces(model, beside).other) == {"rod"}


@pytest.mark.parametrize(("given", "error"), [({"surface": 4}, 0.003), ({}, 0.05)])
def test_the_compliance_of_a_body_counts_once(given, error):
    """A block that is pressed onto a plane by 4 % of its height carries E A/h of this, without another layer of its own
    material: up to the part of a hundredth of the layer, or to the place of its balls."""
    young, width, height = 2e5, 0.04, 0.03
    law = ls.HyperelasticLinear(young=young, poisson=0.0)
    stretch = ls.KinematicsRitz(lambda x: jnp.stack([jnp.stack([x[0], 0.0 * x[0], 0.0 * x[0]])], axis=1), 1)
    body = ls.DeformableBody(stretch, ls.DomainBox(height, width, width), law, 10.0)
    robot, down, floor = ls.Robot("press", gravity=(0, 0, 0)), np.eye(4), np.eye(4)
    down[:3, :3], floor[2, 3] = [[0, 0, 1], [0, 1, 0], [-1, 0, 0]], -height
    robot.add_link("press", None, ls.JointPrismatic((0, 0, -1)))
    robot.add_link("block", body, parent="press", placement=down)
    robot.add_joint_motion("down", "press", position=0.04 * height)
    robot.add_contact("floor", "block", ls.ShapePlane(), placement=floor, friction=0.0, **given)
    found = ls.solve_statics(robot.build())
    assert abs(found.multipliers[0]) == pytest.approx(young * width**2 * 0.04, rel=error)


def test_two_deformable_bodies_count_once():
    """Balls of two bodies that meet press with the columns of both in series, those of a rod by its compliance too."""
    soft = ls.DeformableBody(SOFT.kinematics, BOX, LAW, 1e3, balls=[[0.1, 0.0, 0.0, 0.01]])
    rod = ls.Rod(0.2, ls.SectionCircle(0.01), ls.BasisLegendre(bending_z=1), ls.Material(young=1e4, density=1e3))
    apart, found = np.eye(4), {}
    apart[1, 3] = 0.0195
    for name, other in (("soft", soft), ("rod", rod), ("rigid", ls.RigidBody.box(0.2, 0.02, 0.02, density=1e3))):
        robot = ls.Robot("two", gravity=(0, 0, 0))
        robot.add_link("a", soft)
        robot.add_link("b", other, placement=apart)
        robot.add_contact("touch", "a", others="b", friction=0.0)
        found[name] = robot.build().contacts.laws_of(np.arange(1))[0]
    area, shear = 4 * 0.2 * 0.02 + 2 * 0.02**2, 1.0 - 0.3**2
    assert found["soft"][0] == pytest.approx(area / 0.01 * 1e4 / shear / 4.0, rel=0.01)  # half the modulus, half of w
    assert found["rod"][0] == pytest.approx(area / 0.01 / (shear / 1e4 + 0.75 / 1e4), rel=0.01)
    assert found["rigid"][0] == pytest.approx(area / 0.01 * 1e4 / shear, rel=0.01)
    assert {x[1] for x in found.values()} == {1.0}


def test_a_given_number_of_balls_and_wrong_ones():
    """Named by entity, rule and value."""
    few = ls.DeformableBody(SOFT.kinematics, BOX, LAW, 1e3, balls=5)
    assert few.ball_rows.shape == (5, 4)
    for balls, words in (
        (0, r"balls: must be an integer >= 1 \(got 0\)"),
        ([[0.1, 0.0, 0.0]], r"balls: must be rows \(x, y, z, radius\), or how many"),
        ([[0.1, 0.0, 0.0, -1.0]], r"balls\[0\]: radius: must be >= 0 \(got -1.0\)"),
        ([[0.1, 0.0, 9.0, 0.1]], r"balls\[0\]: a material point must lie within 0.2 m"),
    ):
        with pytest.raises(ls.ModelError, match=words):
            ls.DeformableBody(SOFT.kinematics, BOX, LAW, 1e3, balls=balls).check("here")


def squeezed(force):
    """A strip whose tip is pushed back, more than it is long where the force is large."""
    robot = ls.Robot("strip", gravity=(0, 0, 0))
    robot.add_link("soft", SOFT)
    robot.add_point_load("push", "soft", s="tip", force=(force, 0, 0))
    return robot.build()


def test_statics_refuses_what_is_turned_inside_out():
    """The error names body, value and point; det ∂f/∂x is 1 plus the stretch."""
    stiff = SOFT.integrals.linear_coefficients().K2[1, 1]
    model = squeezed(-1.5 * stiff / 0.2)
    with pytest.raises(
        ls.ConvergenceError, match=r"deformable body 'soft' is turned inside out \(det ∂f/∂x = -0.5.* at x"
    ):
        ls.solve_statics(model)
    rest = ls.solve_statics(squeezed(-0.5 * stiff / 0.2))
    assert SOFT.integrals.fold(rest.q) == pytest.approx(0.5, rel=1e-9)


def test_motions_warn_of_it_with_the_time():
    """Of the worst of the returned states; a batch too."""
    stiff = SOFT.integrals.linear_coefficients().K2[1, 1]
    model, times = squeezed(-3.0 * stiff / 0.2), np.linspace(0.0, 0.05, 6)
    steps = {"method": "generalized_alpha", "dt": 1e-3, "t_eval": times}
    with pytest.warns(
        ls.PlausibilityWarning, match=r"body 'soft' is turned inside out: det ∂f/∂x = -.* at t = "
    ) as told:
        motion = ls.simulate(model, 0.05, **steps)
    least = SOFT.integrals.fold(motion.q)
    assert f"= {least.min():.3g} at" in str(told[0].message)
    assert f"t = {times[least.argmin()]:.4g} s" in str(told[0].message)
    with pytest.warns(ls.PlausibilityWarning, match="turned inside out"):
        ls.simulate(model, 0.05, q0=np.zeros((2, 2)), **steps)


def test_the_least_determinant_is_the_same_by_kernels_of_either_kind():
    """Of a linear map by constants, of any by JAX; where it is, too."""
    q = np.array([[0.3, -0.2], [1.0, 0.5], [-2.0, 0.1]])
    anyhow = ls.DeformableBody(lambda x, theta: x + bent(x) @ theta, BOX, LAW, 1e3, n=2).integrals
    for found, expected in zip(SOFT.integrals.worst(q), anyhow.worst(q)):
        assert np.allclose(found, expected, rtol=0, atol=1e-13)
    x, y = BOX.points[:, :2].T
    F = [(1.0 - 2.0 * a * y + b) + 4.0 * a * a * x * x for a, b in q]  # det of ((1 − 2ay + b, −2ax), (2ax, 1))
    assert np.allclose(SOFT.integrals.fold(q), np.min(F, axis=1), rtol=0, atol=1e-13)
