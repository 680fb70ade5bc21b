"""Robots and costs for tests of problems of optimal control."""

import numpy as np
from gradients.moving_robots import soft
from touching_robots import moved

import lissom as ls


def flying():
    """A free base with a ball on a spherical joint, which carries a soft rod with a tendon."""
    robot = ls.Robot("flying")
    robot.add_link("base", ls.RigidBody.box(0.2, 0.1, 0.1, density=300), ls.JointFree())
    ball = ls.RigidBody.sphere(0.03, density=500)
    robot.add_link("ball", ball, ls.JointSpherical(stiffness=0.5, damping=0.01), "base", placement=moved(0.1, 0, 0))
    material = ls.Material(young=1e6, density=1000, viscosity=1e4)
    robot.add_link("arm", ls.Rod(0.3, ls.SectionCircle(0.015), ls.BasisLegendre(bending_y=0), material), parent="ball")
    robot.add_tendon("above", "arm", (0.0, 0.01))
    return robot


def tracking(model):
    """A cost of every kind."""
    rng = np.random.default_rng(4)
    W = rng.normal(size=(2 * model.nv, 3))
    goal = ls.integrate(model, model.neutral(), 0.4 * rng.normal(size=model.nv))
    return ls.TrackingCost(
        model, inputs=np.diag(rng.uniform(0.1, 1.0, model.nu)), state=W @ W.T, points={"arm": 30.0, "ball": 10.0},
        state_reference=lambda t: (goal, np.full(model.nv, t)), point_reference=[[0.3, t, 0.1] for t in (0.1, 0.2)],
        input_reference=np.ones(model.nu), end=0.5,
    )  # fmt: skip


def reaching():
    """A cost and a problem: the soft arm lifts its tip with tendons that only pull, and a weak motor."""
    model = soft().build()
    goal = ls.frame_pose(model, ls.solve_statics(model, u=[4.0, 2.0, 0.3]).q, "arm")[:3, 3]
    cost = ls.TrackingCost(model, inputs=[0.1, 0.1, 1.0], state=0.1, points={"arm": 300.0}, point_reference=[goal],
                            end=0.2)  # fmt: skip
    limits = ([0.0, 0.0, -0.2], [5.0, 5.0, 0.2])
    return model, cost, limits
