"""Edges of two boxes that cross: how deep they sink before a point of one of them is inside the other."""

from __future__ import annotations

import numpy as np
import pytest

import lissom as ls

LONG, WIDE = 0.2, 0.05  # of both bars [m]
HALF = WIDE / np.sqrt(2.0)  # height of an edge above the axis of a bar that stands on an edge


def rotation(axis, angle):
    """Rotation by Rodrigues' formula about a unit axis."""
    x, y, z = axis
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + np.sin(angle) * K + (1.0 - np.cos(angle)) * K @ K


def bars(per_interval):
    """A fixed bar along x that stands on an edge, and a free bar."""
    robot, placement = ls.Robot("bars", gravity=(0, 0, 0)), np.eye(4)
    placement[:3, :3] = rotation((1, 0, 0), np.pi / 4)
    robot.add_link("low", ls.RigidBody.box(LONG, WIDE, WIDE, density=1000), placement=placement)
    robot.add_link("high", ls.RigidBody.box(LONG, WIDE, WIDE, density=1000), ls.JointFree())
    robot.add_contact("pair", "low", others="high", per_interval=per_interval)
    return robot.build()


def depth_at_first_touch(model, angle, place):
    """The overlap of two edges that cross at an angle, at which the free bar, which comes from above, feels a force.

    Args:
        angle: between the edges in the plan [rad]. place: of the crossing on both edges, from their middles [m].
    """
    (c, d), (s, t) = np.cos([angle / 2, np.pi / 8]), np.sin([angle / 2, np.pi / 8])
    turned = [c * d, c * t, s * t, s * d]  # the quaternion of a turn by 45° about x, then by `angle` about z
    middle = place * np.array([1.0 - np.cos(angle), -np.sin(angle), 0.0])

    def touches(depth):
        place_of_bar = middle + np.array([0.0, 0.0, 2.0 * HALF - depth])
        return len(ls.contact_forces(model, np.concatenate([turned, place_of_bar])).depth) > 0

    low, high = 0.0, HALF
    assert touches(high)
    for _ in range(20):
        between = 0.5 * (low + high)
        low, high = (low, between) if touches(between) else (between, high)
    return high


@pytest.mark.parametrize("per_interval", [1, 4])
def test_crossing_edges_sink_by_half_the_distance_of_points(per_interval):
    """Midway between points, right-angled edges sink in by half the distance of the points times the sine of their
    angle, and not at all where a point of each is. The points are 0.8 widths apart, divided by `per_interval`.

    Bisection to 1e-6 of the depth of a bar; between the points no place is worse.
    """
    model, spacing = bars(per_interval), 0.8 * WIDE / per_interval
    midway, at_point = (0.5 * spacing, 0.0) if per_interval % 2 else (0.0, 0.5 * spacing)
    for angle in (np.pi / 2, np.pi / 4):
        worst = 0.5 * spacing * np.sin(angle)
        assert depth_at_first_touch(model, angle, midway) == pytest.approx(worst, abs=1e-6)
        assert depth_at_first_touch(model, angle, at_point) < 1e-6
        for part in (0.1, 0.25, 0.6, 0.8):
            assert depth_at_first_touch(model, angle, part * spacing) <= worst + 1e-6
