"""Derivatives and steps of trees of blocks, with what blocks have in common counted at attachments and at each node."""

import numpy as np
import pytest

import lissom as ls
from lissom.passes import attachments

MATERIAL = ls.Material(young=1e6, density=1e3, viscosity=1e3)


def tree():
    """A free base with two branches of rods and rigid links by joints of all kinds, columns of blocks in shared
    registers, a rod that carries a link halfway, and a rigid link at its tip."""
    robot = ls.Robot("tree")
    rod = ls.Rod(0.3, ls.SectionCircle(0.02), ls.BasisLegendre(torsion=0, bending_y=1, bending_z=1), MATERIAL)
    long = ls.Rod(0.4, ls.SectionCircle(0.02), ls.BasisLegendre(*[1] * 6), MATERIAL)
    box = ls.RigidBody.box(0.1, 0.05, 0.08, density=500)
    robot.add_link("base", box, ls.JointFree())
    robot.add_link("arm", rod, parent="base")
    robot.add_link("ball", box, ls.JointSpherical(), parent="arm")
    robot.add_link("finger", long, ls.JointRevolute((0, 1, 0)), parent="ball")
    robot.add_link("half", rod, ls.JointUniversal(), parent="arm", at=0.5)
    robot.add_link("tip", box, parent="half")
    robot.add_link("leg", long, ls.JointPrismatic((1, 0, 0)), parent="base")
    robot.add_link("foot", rod, ls.JointCylindrical((0, 0, 1)), parent="leg")
    return robot


def model(patch, gain):
    """The robot, with attachments from a gain on."""
    patch.setattr(attachments, "_LEAST_GAIN", gain)
    return tree().build()


def test_attachments_change_nothing():
    """The three derivatives, of a batch, and a motion by implicit steps, to rounding, at the same cost."""
    found = []
    for gain in (0.0, np.inf):
        with pytest.MonkeyPatch.context() as patch:
            made = model(patch, gain)
            rng = np.random.default_rng(1)
            q = ls.integrate(made, made.neutral(), 0.4 * rng.normal(size=(3, made.nv)))
            v, a = rng.normal(size=(2, 3, made.nv))
            found.append([*ls.inverse_dynamics_derivatives(made, q, v, a)])
            moved = ls.simulate(made, 0.02, q0=q[0], v0=v[0], method="generalized_alpha", dt=0.002)
            found[-1] += [moved.q, np.array([moved.statistics.evaluations, moved.statistics.jacobians])]
            has_attachments = attachments.attachments(made, 1).row_start.shape[0] > 0
            assert has_attachments == (gain == 0.0)
    for one, other in zip(*found):
        assert np.allclose(one, other, rtol=1e-9, atol=1e-11 * np.abs(other).max())


def test_ties_between_blocks_need_all_columns():
    """A robot whose links something else than joints ties together has no attachments."""
    robot = tree()
    robot.add_loop("loop", "foot", "finger", joint=ls.JointSpherical())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attachments, "_LEAST_GAIN", 0.0)
        assert attachments.attachments(robot.build(), 1).row_start.shape[0] == 0
