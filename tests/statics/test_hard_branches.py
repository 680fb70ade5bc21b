"""Branches where symmetry leaves a motion free, where a rod is thin or a knee is sharp; their messages and costs.

A ring that was bent from a straight round rod may turn about itself for nothing, and so may a round rod between clamps.
"""

import numpy as np
import pytest
from closed_form.beams import beam
from numpy.polynomial import legendre
from scipy.optimize import brentq
from scipy.special import ellipe, ellipk
from statics.cantilevers import beck_load, loaded

import lissom as ls
from lissom.statics.static_path import StaticPath

pytestmark = pytest.mark.filterwarnings("ignore::lissom.RedundancyWarning")  # rods that bend in a plane, in space
PLANE = ls.BasisLegendre(bending_y=8, elongation=4)
EVERY_WAY = ls.BasisLegendre(bending_y=8, bending_z=8, torsion=2, elongation=4, shear_y=4, shear_z=4)
ROUND = (2e-3, 1e-3, 1e-3, 1, 1, 1)
ORDER = 14  # holds the curvature of a ring twisted by 11 rad to 1e-6
SQRT_3 = np.sqrt(3.0)


def ring(reference_strain=None, EA=None, order=ORDER):
    """A rod closed to a ring of radius 1 that a unit torque about its tangent twists; its section may only turn."""
    stiffness = (1, 1, 1, *(EA or 1.0,) * 3)
    modes = {"elongation": 4, "shear_y": 4, "shear_z": 4} if EA else {}
    basis = ls.BasisLegendre(torsion=order if EA else 0, bending_y=order, bending_z=order, **modes)
    section = ls.SectionGeneral(stiffness=stiffness, inertia=ROUND)
    robot = ls.Robot("ring", gravity=(0, 0, 0))
    robot.add_link("ring", ls.Rod(2 * np.pi, section, basis, reference_strain=reference_strain, gauss_points=64))
    robot.add_loop("closed", "ring", joint=ls.JointRevolute((1, 0, 0)))
    robot.add_point_load("twist", "ring", moment=(1.0, 0, 0), frame="body")
    return robot.build()


def twisted_ring(angle, order=ORDER):
    """Torsion and bending of a straight rod bent to a ring of radius 1 and then twisted: its curvature stays in a plane
    while its sections turn by the angle."""
    x, w = legendre.leggauss(60)
    along = (np.arange(order + 1) + 0.5)[:, None] * (legendre.legvander(x, order).T * w)
    s = angle * (x + 1) / 2
    return np.concatenate([[angle / (2 * np.pi)], *((c @ along.T) for c in (np.sin(s), np.cos(s)))])


def guided(basis, EA=1e6, points=48):
    """A column clamped below and guided above, without a load at the factor 0."""
    robot = beam(basis, EA=EA, GA=EA, gauss_points=points, inertia=ROUND)
    tip = np.eye(4)
    tip[0, 3] = 1.0
    robot.add_loop("guide", "beam", joint=ls.JointPrismatic((1, 0, 0)), placement_b=tip)
    robot.add_point_load("tip", "beam", force=(-1.0, 0, 0))
    return robot.build()


@pytest.mark.parametrize("step", [0.5, 0.2])
def test_ring_under_torque(step):
    """The ring loses its plane at the torque √3 EI/R (Michell 1889), and its branch goes on from there."""
    torque = 0.97 * SQRT_3
    branch = ls.continuation(
        ring(), q0=twisted_ring(2 * np.pi * torque), factor=torque, factor_range=(0.0, 2.0), step=step, max_points=40
    )
    event = branch.events[0]
    assert event.kind in ("limit", "bifurcation") and event.factor == pytest.approx(SQRT_3, rel=3e-4)
    assert branch.ended == "max_points" and len(branch.factor) > event.index + 5
    assert branch.stable[: event.index + 1].all() and not branch.stable[event.index + 1]


def test_what_costs_nothing_is_no_event():
    """A round column between a clamp and a guide buckles in every plane; bent, it may turn about its axis for nothing,
    which neither stops the branch nor counts as a bifurcation."""
    model = guided(EVERY_WAY)
    (event,) = ls.continuation(model, factor_range=(0.0, 60.0), step=0.2).events
    assert (event.kind, event.count) == ("bifurcation", 2)
    bent = ls.continuation(
        model, q0=event.q, factor=event.factor, along=event.direction, factor_range=(0.0, 80.0), step=0.2, max_points=16
    )
    assert bent.stable.all() and not bent.events and bent.ended == "max_points"


def test_sharp_knee():
    """A column with a small force to the side bends at its Euler load: steps that would jump to the unstable branch
    beyond it are taken again, shorter, and the bent branch is followed."""
    model = loaded(PLANE, 48, force=(-1.0, 0, 0.01), EA=1e6, GA=1e6)
    branch = ls.continuation(model, factor_range=(0.0, 8.0), step=0.2)
    assert branch.stable.all() and not branch.events and branch.ended == "factor_range"
    ratio = 32 / np.pi**2  # of the load to the Euler load
    m = np.square(brentq(lambda k: (2 * ellipk(k**2) / np.pi) ** 2 - ratio, 0.1, 0.999))  # pyright: ignore
    x = 2 * ellipe(m) / ellipk(m) - 1
    assert ls.frame_pose(model, branch.q[-1], "beam")[0, 3] == pytest.approx(x, abs=0.01)


@pytest.mark.parametrize("EA", [1e9, 1e12])
def test_thin_columns(EA):
    """However thin, a column buckles at its Euler load to 1e-6, in one plane or in two at once, clamped or guided, and
    is followed where it bends."""
    for basis, count in ((PLANE, 1), (EVERY_WAY, 2)):
        for model, load in (
            (loaded(basis, 48, force=(-1.0, 0, 0), EA=EA, GA=EA), np.pi**2 / 4),
            (guided(basis, EA, 96), 4 * np.pi**2),
        ):
            (event,) = ls.continuation(model, factor_range=(0.0, 1.5 * load), step=0.3).events
            assert (event.kind, event.count) == ("bifurcation", count)
            assert event.factor == pytest.approx(load, rel=1e-6)
            bent = ls.continuation(
                model, q0=event.q, factor=event.factor, along=event.direction, factor_range=(0, 2 * load), max_points=6
            )
            assert bent.stable.all() and not bent.events and bent.factor[-1] > load


def test_thin_ring():
    """The torque in a ring with EA R²/EI = 1e12 is found at every factor that is asked for."""
    branch = ls.continuation(ring((0, 0, 1, 1, 0, 0), EA=1e12, order=8), step=0.2, factor_range=(0.0, 0.05))
    assert branch.ended == "factor_range" and branch.stable.all()
    soft = ls.continuation(ring((0, 0, 1, 1, 0, 0), EA=1e6, order=8), step=0.2, factor_range=(0.0, 0.05))
    np.testing.assert_allclose(branch.q[-1, :27], soft.q[-1, :27], rtol=0, atol=1e-4)


@pytest.fixture
def points_asked(monkeypatch):
    """How many points were sought on branches: grows as they are followed."""
    asked, ahead = [], StaticPath.ahead

    def counted(self, *args, **options):
        asked.append(args)
        return ahead(self, *args, **options)

    monkeypatch.setattr(StaticPath, "ahead", counted)
    return asked


def test_events_that_are_not_asked_for(points_asked):
    """Flutter is located by some fifteen points, and by none where it is not requested; stability is reported all the
    same."""
    model = loaded(ls.BasisLegendre(bending_y=8), force=(-1.0, 0, 0), frame="body")
    branches, asked = [], []
    for events in (True, "flutter", False, ("limit", "bifurcation")):
        points_asked.clear()
        branches.append(ls.continuation(model, factor_range=(0.0, 40.0), step=0.2, events=events))
        asked.append(len(points_asked))
    assert [len(branch.events) for branch in branches] == [1, 1, 0, 0]
    assert branches[0].events[0].factor == pytest.approx(beck_load(), rel=5e-7)
    assert asked[2] == asked[3] <= 2 * len(branches[2].factor)
    assert asked[0] - asked[2] <= 16 and asked[1] == asked[0]
    for branch in branches:
        np.testing.assert_array_equal(branch.unstable_count, branches[0].unstable_count)


def test_limit_points_alone():
    """Of a limit point and a bifurcation beyond it only those of the requested kinds are reported."""
    robot = ls.Robot("gripped", gravity=(0, 0, 0))
    joint = ls.JointUniversal((1, 0, 0), (0, 1, 0), stiffness=1.0)
    robot.add_link("arm", ls.RigidBody(1.0, (0.1, 0, 0), (0.01,) * 3), joint)
    robot.add_custom_actuator("grip", lambda q: [1 + q[0] ** 2, q[1] * (0.5 + 1.2 * q[0] + 0.3 * q[1])])
    model = robot.build()
    for kinds in (("limit",), ("bifurcation",), ("limit", "bifurcation"), ()):
        branch = ls.continuation(model, u=[1.0], factor_range=(0.0, 2.0), max_points=25, events=kinds)
        assert tuple(event.kind for event in branch.events) == kinds


@pytest.mark.parametrize("order", [6, 8, 10])
@pytest.mark.parametrize("step", [0.1, 0.3])
def test_side_of_a_symmetric_bifurcation(order, step):
    """The largest entry of the direction is positive: every discretisation and step bends a column to the same side."""
    model = loaded(ls.BasisLegendre(bending_y=order), 24, force=(-1.0, 0, 0))
    (event,) = ls.continuation(model, factor_range=(0.0, 4.0), step=step).events
    assert event.direction[0] > 0.7 and event.direction[0] == np.abs(event.direction).max()


def test_round_column_bends_in_its_first_plane():
    """Where a column buckles in every plane at once, the direction is along the first of the equal coordinates."""
    model = loaded(ls.BasisLegendre(bending_y=6, bending_z=6), 24, force=(-1.0, 0, 0))
    (event,) = ls.continuation(model, factor_range=(0.0, 4.0), step=0.3).events
    assert event.count == 2 and event.direction[0] > 0.7
    np.testing.assert_allclose(event.direction[7:], 0.0, rtol=0, atol=1e-6)


def test_a_branch_says_why_it_ended():
    """At a bound, after max_points, or with the reason of the error that carries it."""
    column = loaded(ls.BasisLegendre(bending_y=4), 24, force=(-1.0, 0, 0))
    assert ls.continuation(column).ended == "factor_range"
    assert ls.continuation(column, max_points=2, step=0.01).ended == "max_points"
    wound = loaded(ls.BasisLegendre(bending_y=1), 6, moment=(0, 60.0, 0), frame="body")
    with pytest.raises(ls.ConvergenceError, match="turns by 2π") as caught:
        ls.continuation(wound, step=2.0)
    assert "turns by 2π" in caught.value.partial.ended
    with pytest.raises(ls.ConvergenceError, match="forces are left") as caught:
        ls.continuation(column, q0=0.1 * np.ones(5), factor=0.5, along=np.ones(6))
    assert caught.value.partial.ended == "forces are left"


@pytest.mark.parametrize(
    "bad, words",
    [
        ({"events": "flutters"}, "events: must be True, False or some of"),
        ({"events": 3}, "events: must be True, False or some of"),
        ({"parameter": "load"}, "parameter: must be 'factor' or 'time'"),
        ({"parameter": "time", "t": 1.0}, "t: must be left out"),
    ],
)
def test_wrong_options(bad, words):
    """Kinds of events and parameters that are none are refused by name."""
    with pytest.raises(ls.ModelError, match=words):
        ls.continuation(loaded(ls.BasisLegendre(bending_y=1), 6, force=(-1.0, 0, 0)), **bad)
