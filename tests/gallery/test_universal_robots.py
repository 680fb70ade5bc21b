"""The robot files of the UR10 and UR10e against the maker's tables, by Denavit-Hartenberg and by Pinocchio."""

from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

import lissom as ls

pin = pytest.importorskip("pinocchio")
ROBOTS = Path(__file__).parents[2] / "examples" / "robots"
ALPHA = np.array([1, 0, 0, 1, -1, 0]) * np.pi / 2
CENTERS = [(0.021, 0, 0.027), (0.38, 0, 0.158), (0.24, 0, 0.068), (0, 0.007, 0.018), (0, 0.007, 0.018), (0, 0, -0.026)]
TENSORS = [  # xx, xy, xz, yy, yz, zz
    (0.03408, 0.00002, -0.00425, 0.03529, 0.00008, 0.02156),
    (0.02814, 0.00005, -0.01561, 0.77068, 0.00002, 0.76943),
    (0.01014, 0.00008, 0.00916, 0.30928, 0.0, 0.30646),
    (0.00296, -0.00001, 0.0, 0.00222, -0.00024, 0.00258),
    (0.00296, -0.00001, 0.0, 0.00222, -0.00024, 0.00258),
    (0.00040, 0.0, 0.0, 0.00041, 0.0, 0.00034),
]
TABLES = {  # a, d and masses
    "ur10": (
        (0, -0.612, -0.5723, 0, 0, 0),
        (0.1273, 0, 0, 0.163941, 0.1157, 0.0922),
        (7.1, 12.7, 4.27, 2.0, 2.0, 0.365),
    ),
    "ur10e": (
        (0, -0.6127, -0.57155, 0, 0, 0),
        (0.1807, 0, 0, 0.17415, 0.11985, 0.11655),
        (7.369, 13.051, 3.989, 2.1, 1.98, 0.615),
    ),
}


def after_joint(a, d, alpha):
    """The constant part of a Denavit-Hartenberg transform, behind the rotation of its joint, 4x4."""
    c, s = np.cos(alpha), np.sin(alpha)
    return np.array([[1, 0, 0, a], [0, c, -s, 0], [0, s, c, d], [0, 0, 0, 1]])


@lru_cache(maxsize=2)
def built(name):
    """The model of a robot file."""
    return ls.load_robot(ROBOTS / f"{name}.yaml").build()


def in_pinocchio(name):
    """The same from the tables, whose inertias are in the frames of Denavit and Hartenberg."""
    model, place = pin.Model(), pin.SE3.Identity()
    model.gravity.linear = np.array([0.0, 0.0, -9.81])
    joint = 0
    for a, d, mass, alpha, center, (xx, xy, xz, yy, yz, zz) in zip(*TABLES[name], ALPHA, CENTERS, TENSORS):
        joint = model.addJoint(joint, pin.JointModelRZ(), place, f"joint {joint}")
        place = pin.SE3(after_joint(a, d, alpha))
        inertia = pin.Inertia(mass, np.array(center), np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
        model.appendBodyToJoint(joint, inertia, place)
    return model


@pytest.mark.parametrize("name", TABLES)
def test_flange(name):
    """Purpose: the flange is where Denavit and Hartenberg have it, at zero as far out as the maker's arm reaches."""
    model, rng = built(name), np.random.default_rng(1)
    q = rng.uniform(-np.pi, np.pi, 6)
    expected = np.eye(4)
    for a, d, alpha, angle in zip(*TABLES[name][:2], ALPHA, q):
        turn = np.eye(4)
        turn[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
        expected = expected @ turn @ after_joint(a, d, alpha)
    np.testing.assert_allclose(ls.frame_pose(model, q, "flange"), expected, atol=1e-12)
    assert ls.frame_pose(model, np.zeros(6), "flange")[0, 3] == pytest.approx(sum(TABLES[name][0]))
    assert model.nu == 6


@pytest.mark.parametrize("name", TABLES)
def test_inverse_dynamics(name):
    """Purpose: torques and mass matrix are Pinocchio's, from the tables as they are published."""
    model, other = built(name), in_pinocchio(name)
    data, rng = other.createData(), np.random.default_rng(2)
    for _ in range(5):
        q, v, a = rng.uniform(-3.0, 3.0, (3, 6))
        expected = pin.rnea(other, data, q, v, a)
        np.testing.assert_allclose(ls.inverse_dynamics(model, q, v, a), expected, atol=1e-11 * np.abs(expected).max())
        mass = np.triu(pin.crba(other, data, q))
        np.testing.assert_allclose(np.triu(ls.mass_matrix(model, q)), mass, atol=1e-11 * mass.max())
