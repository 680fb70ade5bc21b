"""A cable that is wrapped round a fixed peg: the tensions of its ends at the edge of slipping.

The centreline of a cable of radius r lies on a circle of radius R + r around the axis of a peg of radius R. Friction
acts on the surface of the peg. The moment of a piece of the cable about the axis gives dT (R + r) = μ T R dφ, so that

    T₁/T₂ = exp(μ φ R/(R + r))
"""

import numpy as np
import pytest

import lissom as ls

PEG, RADIUS, LEAD, HOLD = 0.05, 3e-4, 0.02, 10.0  # radii, length of the straight ends [m], tension of the far end [N]
CIRCLE = PEG + RADIUS  # radius of the centreline
LAW = {"stiffness": 1e5, "exponent": 1.0, "stick_stiffness": 1e5, "damping": 1.0}
CASES = [(0.3, np.pi), (0.6, 0.5 * np.pi), (0.1, 1.5 * np.pi)]  # coefficients of friction, angles of wrap
STEPS = {"method": "generalized_alpha", "dt": 5e-3}


def capstan(friction, angle, pull=0.0):
    """A carriage that slides along y is pulled by a force and draws a cable, whose other end is held by `HOLD`."""
    length, spans = CIRCLE * angle + 2 * LEAD, round(20 * angle / np.pi)

    def wrapped(s):
        return 0.0, 0.0, 1.0 / CIRCLE if LEAD < s * length < length - LEAD else 0.0, 1.0, 0.0, 0.0

    robot = ls.Robot("capstan", gravity=(0, 0, 0))
    along = np.eye(4)
    along[:3, :3] = [[0, -1, 0], [1, 0, 0], [0, 0, 1]]
    along[:2, 3] = CIRCLE, -LEAD
    robot.add_link("carriage", ls.RigidBody.box(0.1, 0.1, 0.1, density=1000), ls.JointPrismatic((1, 0, 0)),
                   placement=along)  # fmt: skip
    knots = np.linspace(LEAD / length, 1.0 - LEAD / length, spans + 1)
    basis, soft = ls.BasisBSpline(bending_z=(1, knots.tolist())), ls.Material(young=1e7, density=1000, viscosity=1e3)
    cable = ls.Rod(length, ls.SectionCircle(RADIUS), basis, soft, wrapped, gauss_points=2, interval_points=2)
    robot.add_link("cable", cable, parent="carriage")
    robot.add_point_load("pull", "carriage", force=(0, -pull, 0))
    robot.add_point_load("hold", "cable", force=(-HOLD * np.sin(angle), HOLD * np.cos(angle), 0))
    robot.add_contact("peg", "cable", ls.ShapeCylinder(PEG, 0.1, axis=(0, 0, 1)), friction=friction, **LAW)
    return robot


def edge(friction, angle):
    """The tension that draws the cable over the peg by the closed form [N]."""
    return HOLD * np.exp(friction * angle * PEG / CIRCLE)


def drawn(friction, angle):
    """The model of a cable whose carriage is drawn slowly by 1 mm, with its anchors, and the motion."""
    robot = capstan(friction, angle)
    robot.add_joint_motion("draw", "carriage", position=lambda t: -0.5e-2 * t * t)
    model = robot.build()
    motion = ls.simulate(model, 0.45, model.neutral(), **STEPS)
    return model.anchored(motion.anchors), motion


@pytest.mark.parametrize("friction, angle", CASES)
def test_a_cable_that_is_drawn_over_a_peg(friction, angle):
    """Where all of it slips, the force on the carriage is that of the closed form within 0.2 %; a thin cable's exp(μ φ)
    is within 1 %."""
    model, motion = drawn(friction, angle)
    state = motion.q[-1], motion.v[-1]
    found = ls.contact_forces(model, *state)
    push = np.einsum("ni,ni->n", found.force, found.normal)
    slip = np.linalg.norm(found.force - push[:, None] * found.normal, axis=1)
    assert len(push) > 12 * angle and (slip > 0.999 * friction * push).all()
    weight = model.links.mass[0] * motion.a[-1, 0]
    tension = weight - ls.inverse_dynamics(model, *state, motion.a[-1])[0]
    assert tension == pytest.approx(edge(friction, angle), rel=2e-3)
    assert tension == pytest.approx(HOLD * np.exp(friction * angle), rel=1e-2)


def test_the_edge_of_slipping():
    """At 0.99 of the closed form the cable holds in statics and in dynamics, at 1.01 of it there is no equilibrium and
    it runs away."""
    friction, angle = CASES[0]
    _, motion = drawn(friction, angle)
    q = motion.q[-1]
    for factor, holds in ((0.99, True), (1.01, False)):
        pulled = capstan(friction, angle, factor * edge(friction, angle)).build().anchored(motion.anchors)
        after = ls.simulate(pulled, 0.5, q, **STEPS)
        if holds:
            found = ls.solve_statics(pulled, q0=q)
            assert abs(found.q[0] - q[0]) < 1e-6 and abs(after.q[-1, 0] - found.q[0]) < 1e-7
        else:
            with pytest.raises(ls.ConvergenceError):
                ls.solve_statics(pulled, q0=q)
            assert after.q[-1, 0] - q[0] < -1e-2 and after.v[-1, 0] < -0.1
