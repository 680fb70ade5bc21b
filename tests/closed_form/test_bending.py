"""Constant strain: tip moments, tip torques and straight tendons, where the discrete equilibrium is the exact one.

One constant mode makes Ω = h ξ exact on every interval, so only rounding is left: 1e-12 of the length.
"""

from math import pi

import numpy as np
import pytest
from closed_form.beams import beam, tip_pose

import lissom as ls

EI, GJ, EA, GA, LENGTH = 2.3, 1.7, 410.0, 150.0, 0.8
FREE = {"EI": EI, "GJ": GJ, "EA": EA, "GA": GA, "length": LENGTH}
TURNS = pytest.mark.parametrize("turn", [0.0, 0.3, pi, 2 * pi], ids=["straight", "arc", "half circle", "full circle"])


def moment_beam(basis, moment, frame):
    """A cantilever under a tip moment."""
    robot = beam(basis, **FREE)
    robot.add_point_load("tip", "beam", moment=moment, frame=frame)
    return robot.build()


@TURNS
@pytest.mark.parametrize("frame", ["world", "body"])
@pytest.mark.parametrize("axis", [1, 2])
def test_tip_moment_bends_to_a_circle(axis, frame, turn):
    """κ = M/EI with one bending coordinate, and the tip on the circle of radius 1/κ."""
    moment = np.zeros(3)
    moment[axis] = EI * turn / LENGTH
    basis = ls.BasisLegendre(bending_y=0) if axis == 1 else ls.BasisLegendre(bending_z=0)
    model = moment_beam(basis, moment, frame)
    q = ls.solve_statics(model).q
    kappa = turn / LENGTH
    assert q == pytest.approx([kappa], rel=1e-12, abs=1e-12)
    along = LENGTH * np.sinc(turn / pi)  # sin(κL)/κ
    aside = LENGTH * np.sin(turn / 2) * np.sinc(turn / 2 / pi)  # (1 − cos κL)/κ
    c, s = np.cos(turn), np.sin(turn)
    if axis == 1:  # a turn about +y takes the tangent x to −z
        expected = np.array([[c, 0, s, along], [0, 1, 0, 0], [-s, 0, c, -aside], [0, 0, 0, 1]])
    else:  # a turn about +z takes x to +y
        expected = np.array([[c, -s, 0, along], [s, c, 0, aside], [0, 0, 1, 0], [0, 0, 0, 1]])
    np.testing.assert_allclose(tip_pose(model, q), expected, rtol=0, atol=1e-12)


@TURNS
def test_tip_torque_twists_uniformly(turn):
    """τ = M/GJ, the centreline stays straight and the tip section turns by τL."""
    model = moment_beam(ls.BasisLegendre(torsion=0), (GJ * turn / LENGTH, 0, 0), "world")
    q = ls.solve_statics(model).q
    assert q == pytest.approx([turn / LENGTH], rel=1e-12, abs=1e-12)
    expected = np.eye(4)
    expected[1:3, 1:3] = [[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]
    expected[0, 3] = LENGTH
    np.testing.assert_allclose(tip_pose(model, q), expected, rtol=0, atol=1e-12)


def test_higher_modes_stay_at_rest_under_a_pure_moment():
    """A constant bending moment leaves every mode but the constants at zero, whatever else the rod could do.

    The load's work is M times the tip angle; more modes only add rounding (condition of K here about 1e4).
    """
    model = moment_beam(ls.BasisLegendre(3, 3, 3, 1, 1, 1), (0, 0.9 * EI * pi / LENGTH, 0), "world")
    q = ls.solve_statics(model).q
    expected = np.zeros(model.nq)
    expected[4] = 0.9 * pi / LENGTH
    np.testing.assert_allclose(q, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("offset", [(0.0, 0.02), (0.0, -0.03), (0.02, 0.0), (0.015, -0.025), (0.0, 0.0)])
@pytest.mark.parametrize("basis", ["constant", "six strains, quadratic"])
def test_parallel_tendon_bends_to_an_arc(basis, offset):
    """ε = −T/EA and κ = T d/EI towards the tendon, for a tendon parallel to the axis.

    A tendon at (y, z) has the length L (1 + ε + κ_y z − κ_z y) exactly, however strong the bending, as long as the
    rod twists and shears nowhere, so q = −K⁻¹ (∂L/∂q)ᵀ T is linear in T: κ_y = −T z/EI and κ_z = T y/EI. With torsion
    and shear free as well, the tendon's tangent stays along the axis and excites neither.
    """
    tension = 30.0
    order = 0 if basis == "constant" else 2
    twist = None if basis == "constant" else 2
    robot = beam(ls.BasisLegendre(twist, order, order, order, twist, twist), **FREE)
    robot.add_tendon("t", "beam", offset)
    model = robot.build()
    q = ls.solve_statics(model, u=[tension]).q
    y, z = offset
    strain = {"bending_y": -tension * z / EI, "bending_z": tension * y / EI, "elongation": -tension / EA}
    rows = ["bending_y", "bending_z", "elongation"]
    if twist is not None:
        rows = ["torsion", *rows, "shear_y", "shear_z"]
    expected = np.array([[strain.get(name, 0.0)] + [0.0] * order for name in rows]).ravel()
    np.testing.assert_allclose(q, expected, rtol=0, atol=1e-10)
    if y or z:
        toward = tip_pose(model, q)[1:3, 3] @ [y, z]
        assert toward > 0, "the tip moves to the tendon's side"


def test_two_opposite_tendons_only_compress():
    """Equal tensions on opposite sides cancel in bending and add in compression; the path lengths say the same."""
    robot = beam(ls.BasisLegendre(bending_y=1, bending_z=1, elongation=1), **FREE)
    robot.add_tendon("up", "beam", (0.0, 0.02))
    robot.add_tendon("down", "beam", (0.0, -0.02))
    model = robot.build()
    q = ls.solve_statics(model, u=[15.0, 15.0]).q
    np.testing.assert_allclose(q, [0, 0, 0, 0, -30.0 / EA, 0], rtol=0, atol=1e-10)
    np.testing.assert_allclose(ls.path_lengths(model, q), LENGTH * (1 - 30.0 / EA), rtol=1e-12)
