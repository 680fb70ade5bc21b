"""A soft arm whose joint, load and current are laws of time, for tests of who evaluates these."""

import numpy as np

import lissom as ls


def describe_driven_arm(push, flow=None, **turn):
    """A soft arm on a joint that is led by `turn`, pushed at its tip, in water that flows where there is a flow."""
    robot = ls.Robot("arm")
    robot.add_link("base", ls.RigidBody.sphere(0.02, density=1000.0), ls.JointRevolute((0, 0, 1)))
    material = ls.Material(young=1e6, poisson=0.5, density=1000, viscosity=2e3)
    rod = ls.Rod(0.3, ls.SectionCircle(0.01), ls.BasisLegendre(bending_y=2, bending_z=1), material)
    robot.add_link("rod", rod, parent="base")
    robot.add_point_load("push", "rod", force=push)
    robot.add_joint_motion("turn", "base", **turn)
    if flow is not None:
        robot.set_fluid(1000.0, current=flow)
    return robot


def in_python(function):
    """The same as a function that nothing can be said of."""
    return lambda t: function(t)


def starts(model, n=3):
    """Velocities of motions."""
    return np.random.default_rng(1).normal(size=(n, model.nv)) * model.dofs.scale
