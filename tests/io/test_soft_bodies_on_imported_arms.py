"""Soft bodies on the links of imported arms: two lines each."""

import warnings
from pathlib import Path

import numpy as np
import pytest

import lissom as ls

ROBOTS = Path(__file__).parent / "robots"
LENGTH, RADIUS, DENSITY = 0.12, 0.01, 1070.0


@pytest.mark.parametrize(("load", "file"), [(ls.load_urdf, "ur10e.urdf"), (ls.load_mjcf, "ur10e.xml")])
def test_a_deformable_body_on_an_imported_arm(load, file):
    """Purpose: unbent and not bending, a soft finger is felt by the arm as the rigid cylinder that it is; its own
    coordinates come after the arm's, and its tip is where that of the cylinder is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ls.LeftOutWarning)
        arm, other = load(ROBOTS / file), load(ROBOTS / file)
    last = list(arm.links)[-1]

    skin = ls.HyperelasticUniaxial(young=2e5, poisson=0.45, damping_time=0.02)
    bends, shape = ls.KinematicsStrain.constant_curvature(LENGTH), ls.DomainCylinder(LENGTH, RADIUS)

    finger = ls.DeformableBody(bends, shape, skin, DENSITY)
    arm.add_link("finger", finger, parent=last)

    mass = DENSITY * np.pi * RADIUS**2 * LENGTH
    across = mass * (RADIUS**2 / 4 + LENGTH**2 / 12)
    rigid = ls.RigidBody(mass, (LENGTH / 2, 0, 0), np.diag([mass * RADIUS**2 / 2, across, across]))
    other.add_link("finger", rigid, parent=last)
    model, stiff = arm.build(), other.build()
    assert model.nq == stiff.nq + 2 and model.links.names[-1] == "finger"
    angles = np.random.default_rng(2).uniform(-1, 1, stiff.nq)
    M = ls.mass_matrix(model, np.append(angles, [0.0, 0.0]))
    wanted = ls.mass_matrix(stiff, angles)
    np.testing.assert_allclose(M[:-2, :-2], wanted, atol=1e-9 * np.abs(wanted).max())
    assert (np.diag(M)[-2:] > 0).all() and np.abs(M[:-2, -2:]).max() > 0
    rest = ls.frame_pose(model, np.append(angles, [0.0, 0.0]), "finger")
    np.testing.assert_allclose(
        rest[:3, 3], (ls.frame_pose(stiff, angles, "finger") @ [LENGTH, 0, 0, 1])[:3], atol=1e-12
    )
