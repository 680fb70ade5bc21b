"""State of a viewer without a browser: sliders, equilibria, motions in real time, mouse spring, history."""

from __future__ import annotations

import numpy as np
import pytest

import lissom as ls
from lissom.viewing import session as sessions
from lissom.viewing.canvas import nice_number
from lissom.viewing.colors import COLOR_LEVELS, ColorScale, facets_by_level, state_values
from lissom.viewing.controls import configuration_of, coordinate_sliders, values_of
from lissom.viewing.geometry import robot_geometry
from lissom.viewing.session import Session
from lissom.viewing.stage import outer_forces, outer_moments, second_heads

TICK = 1.0 / 60.0


def soft_arm(**options):
    """A soft arm with one tendon below it and a motor at its base."""
    robot = ls.Robot("arm", **options)
    basis = ls.BasisLegendre(bending_y=1, bending_z=0)
    rod = ls.Rod(0.3, ls.SectionCircle((0.02, 0.01)), basis, ls.Material(young=1e6, density=1000, viscosity=4e3))
    robot.add_link(
        "arm",
        rod,
        ls.JointRevolute(axis=(0, 1, 0), stiffness=1.0, damping=0.1, limits=(-0.5, 2.0), limit_stiffness=50.0),
    )
    robot.add_tendon("up", "arm", (0.0, 0.008))
    robot.add_joint_actuator("motor", "arm")
    return robot


@pytest.fixture(scope="module")
def model():
    """The soft arm."""
    return soft_arm().build()


@pytest.fixture
def session(model):
    """A new session with the arm."""
    return Session(model)


# -- sliders ----------------------------------------------------------------------------------------------------------


def test_each_coordinate_and_input_has_a_slider(session, model):
    """All columns once, in order; limits of joints are the ends; tendons only pull, motors push and pull."""
    assert [one.column for one in session.coordinates] == list(range(model.nv))
    assert [one.column for one in session.inputs] == list(range(model.nu))
    turn, *modes = session.coordinates
    assert (turn.low, turn.high, turn.unit) == (-0.5, 2.0, "rad")
    assert [one.name for one in modes] == ["bending_y 0", "bending_y 1", "bending_z 0"]
    assert {one.unit for one in modes} == {"1/m"}
    assert modes[0].high == pytest.approx(np.pi / 0.3)
    tendon, motor = session.inputs
    assert tendon.low == 0.0 and tendon.unit == "N" and motor.low == -motor.high and motor.unit == "N·m"


def test_a_full_slider_moves_the_robot_well_and_not_wildly(session, model):
    """The end of an input's range bends the arm by some radians, whatever it is made of."""
    for k, one in enumerate(session.inputs):
        u = np.zeros(model.nu)
        u[k] = 0.1 * one.high
        moved = ls.solve_statics(model, u).q - ls.solve_statics(model).q
        assert 0.1 < np.abs(moved / model.dofs.scale).max() < 3.0


def test_values_of_sliders_give_the_configuration_and_back():
    """Quaternions by rotation vectors, positions as they are, in any order of links."""
    robot = ls.Robot("free")
    robot.add_link("body", ls.RigidBody.box(0.3, 0.2, 0.1, density=500), ls.JointFree())
    robot.add_link("ball", ls.RigidBody.sphere(0.05, density=500), ls.JointSpherical(), parent="body")
    model = robot.build()
    values = np.array([0.3, -1.0, 2.0, 0.1, 0.2, 0.3, 1.0, 0.5, -0.2])
    q = configuration_of(model, values)
    assert np.allclose(q[4:7], [0.1, 0.2, 0.3], rtol=0, atol=1e-15)
    assert np.allclose(values_of(model, q), values, rtol=0, atol=1e-12)
    names = [one.name for one in coordinate_sliders(model)]
    assert names[:4] == ["turn about x", "turn about y", "turn about z", "move along x"]


@pytest.mark.parametrize("x, expected", [(0.7, 0.5), (1.0, 1.0), (49.9, 20.0), (50.0, 50.0), (3e-4, 2e-4)])
def test_nice_numbers(x, expected):
    """1, 2 or 5 times a power of ten, not above the number."""
    assert nice_number(x) == pytest.approx(expected)


# -- modes ------------------------------------------------------------------------------------------------------------


def test_sliders_place_the_robot_and_nothing_changes_by_itself(session):
    """In a pose the configuration is that of the sliders; an update without news says so."""
    session.update(TICK)
    session.set_values([0.2, 1.0, 0.0, -1.0])
    assert session.update(TICK) and np.allclose(session.q, [0.2, 1.0, 0.0, -1.0])
    assert not session.update(TICK)


def test_equilibria_are_those_of_statics(session, model):
    """The state shown is an equilibrium under the inputs, reported as stable."""
    session.set_mode("equilibrium")
    for tension in (0.0, 1.0, 2.0):
        session.set_inputs([tension, 0.1])
        assert session.update(TICK)
        assert np.abs(session.q - ls.solve_statics(model, [tension, 0.1]).q).max() < 1e-8
    assert session.is_good and session.note == "stable equilibrium"
    assert not session.update(TICK)  # nothing was set since


def test_instability_is_said_and_left_on_request():
    """A column under more than Euler's load is unstable while it stands straight; it falls when it is asked to."""
    robot = ls.Robot("column", gravity=(0, 0, 0))
    rod = ls.Rod(0.5, ls.SectionCircle(0.01), ls.BasisLegendre(bending_y=3), ls.Material(young=1e6, density=1000))
    robot.add_link("column", rod)
    euler = np.pi**2 * 1e6 * np.pi / 4 * 0.01**4 / (4 * 0.5**2)
    robot.add_point_load("push", "column", force=(-1.2 * euler, 0, 0))
    session = Session(robot.build())
    session.set_mode("equilibrium")
    session.update(TICK)
    assert not session.is_good and session.note == "equilibrium with 1 unstable mode" and np.abs(session.q).max() < 1e-9
    session.q[0] = 1e-3
    session.settle(stable=True)
    assert session.is_good and np.abs(session.q).max() > 1.0


def test_a_lost_equilibrium_is_said_and_the_shape_stays(session):
    """Where no equilibrium is found the last one stays, with the reason; it comes back with the inputs."""
    session.set_mode("equilibrium")
    session.update(TICK)
    before = session.q.copy()
    session.set_inputs([1e7, 0.0])
    session.update(TICK)
    assert not session.is_good and session.note.startswith("equilibrium lost: ")
    assert np.array_equal(session.q, before)
    session.set_inputs([0.0, 0.0])
    session.update(TICK)
    assert session.is_good and np.abs(session.q - before).max() < 1e-8


def test_simulations_run_with_the_clock(session, model):
    """After as many seconds of the clock times the speed the robot is where a simulation has it."""
    session.set_inputs([1.0, 0.05])
    session.set_mode("simulate")
    session.speed = 0.5
    for _ in range(60):
        session.update(TICK)
    assert session.t == pytest.approx(0.5, abs=sessions.STEP * 1.01)
    exact = ls.simulate(model, session.t, u=[1.0, 0.05], rtol=1e-9, atol=1e-11, t_eval=[session.t])
    assert np.abs(session.q - exact.q[-1]).max() < 5e-3 * np.abs(exact.q[-1]).max()


def test_one_scrubs_back_and_goes_on_from_there(session):
    """A paused simulation shows any moment of its past, and forgets what came after where it goes on."""
    session.set_mode("simulate")
    for _ in range(40):
        session.update(TICK)
    q_end, end = session.q.copy(), session.t
    session.pause()
    session.scrub(0.3)
    shown = session.q.copy()
    assert session.update(TICK) and session.t == 0.3 and not np.allclose(shown, q_end)
    assert session.history.span == (0.0, end)
    session.play()
    while session.t < end - 1e-9:
        session.update(TICK)
    assert np.abs(session.q - q_end).max() < 0.02 * np.abs(q_end).max()  # the same motion, restarted within
    assert np.all(np.diff(session.history.t) > 0.0)


def test_a_motion_is_replayed(model):
    """Its states at its times, as fast as is asked, and to its end; one of another robot is refused."""
    motion = ls.simulate(model, 0.4, u=[1.0, 0.0], t_eval=np.linspace(0, 0.4, 41))
    session = Session(model, motion=motion)
    assert session.mode == "replay" and session.is_playing
    session.speed = 2.0
    session.update(0.1)
    assert session.t == pytest.approx(0.2) and np.abs(session.q - motion.q[20]).max() < 1e-9
    assert session.update(0.3) and not session.is_playing and np.array_equal(session.q, motion.q[-1])
    session.play()
    assert session.t == 0.0
    other = soft_arm()
    other.add_link("more", ls.RigidBody.sphere(0.01, density=1000), ls.JointRevolute(axis=(0, 0, 1)), parent="arm")
    with pytest.raises(ls.ModelError, match="is not one of robot 'arm': q has 4 columns and the robot 5"):
        Session(other.build(), motion=motion)
    with pytest.raises(ls.ModelError, match="mode"):
        Session(model).set_mode("replay")


def test_reset_and_modes_keep_their_word(session):
    """Reset comes back to the start; another mode goes on from the state shown."""
    session.set_mode("simulate")
    for _ in range(10):
        session.update(TICK)
    q = session.q.copy()
    session.set_mode("pose")
    assert np.array_equal(session.q, q) and not session.v.any()
    session.reset()
    assert np.array_equal(session.q, session.start) and session.t == 0.0


# -- the mouse --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["equilibrium", "simulate"])
def test_the_mouse_pulls_the_nearest_place_towards_itself(session, model, mode):
    """At rest the force of the mouse spring balances the robot; without it the robot springs back."""
    session.set_mode("equilibrium")
    session.update(TICK)
    rest = session.q.copy()
    session.set_mode(mode)
    tip = ls.frame_pose(model, rest, "arm")[:3, 3]
    session.grab(tip + np.array([0.0, 0.0, 0.012]), "arm")
    spring = session.spring
    assert spring is not None and spring.grip.s > 0.95
    begin = spring.position(session.q)
    session.drag(begin + np.array([0.0, 0.05, 0.08]))
    for _ in range(150):
        session.update(TICK)
    reached = spring.position(session.q)
    assert np.abs(reached - begin)[1:].min() > 0.01
    missing = np.linalg.norm(spring.force - spring.stiffness * (spring.target - reached)) / np.linalg.norm(spring.force)
    assert missing < (1e-3 if mode == "equilibrium" else 0.2)  # (1) makes the spring softer while the robot moves
    pulled = session.pulled_model
    still = ls.solve_statics(pulled, np.concatenate([session.u, spring.force]), session.q)
    assert np.abs(still.q - session.q).max() < 0.02 * np.abs(session.q).max()
    session.release()
    for _ in range(240 if mode == "simulate" else 1):
        session.update(TICK)
    assert np.abs(session.q - rest).max() < 0.02 * np.abs(rest).max()


def test_a_stiff_mouse_spring_does_not_shake_a_light_robot(session):
    """However stiff the spring, its work stays bounded: the robot follows and comes to rest."""
    session.set_mode("simulate")
    session.update(TICK)
    session.grab([0.3, 0.0, 0.0])
    session.spring.stiffness *= 100.0
    session.drag(session.spring.position(session.q) + np.array([0.0, 0.0, 0.05]))
    for _ in range(120):
        session.update(TICK)
    assert session.is_good and np.abs(session.v).max() < 0.5


# -- the drawing -----------------------------------------------------------------------------------------------------


def test_painted_values_are_strains_and_speeds(model):
    """On a rod of constant curvature: curvature, fibre strain κ times the height, and the speed of each point."""
    geometry, q = robot_geometry(model), np.array([0.0, 2.0, 0.0, 0.0])
    v, u = np.array([1.0, 0.0, 0.0, 0.0]), np.zeros(model.nu)
    rows = geometry.meshes[0].rows
    values = {name: state_values(geometry, name, q, v, u, 0.0)[rows]
              for name in ("curvature", "torsion", "elongation", "strain", "speed")}  # fmt: skip
    assert np.allclose(values["curvature"], 2.0) and np.allclose(values["torsion"], 0.0)
    assert np.allclose(values["strain"], 2.0 * geometry.local[rows][:, 2])
    points = geometry.points(q)[rows]
    assert np.allclose(values["speed"], np.hypot(points[:, 0], points[:, 2]), atol=1e-6)


def test_painted_tension_carries_what_hangs_below():
    """A rod that hangs carries the weight below each section; the tendons in it are counted with it."""
    robot = ls.Robot("rope", gravity=(9.81, 0, 0))
    rod = ls.Rod(0.5, ls.SectionCircle(0.01), ls.BasisLegendre(elongation=1), ls.Material(young=1e6, density=1000))
    robot.add_link("rope", rod)
    model = robot.build()
    q = ls.solve_statics(model).q
    geometry = robot_geometry(model)
    values = state_values(geometry, "tension", q, np.zeros(model.nv), np.zeros(0), 0.0)
    mesh = geometry.meshes[0]
    weight = 1000 * np.pi * 1e-4 * 0.5 * 9.81
    assert np.abs(values[mesh.rows] - weight * (1.0 - mesh.s)).max() < 0.02 * weight


def test_colour_levels_share_out_all_facets():
    """Every facet is at the level of its value, once, as two triangles; a scale that has seen one value has a width."""
    rng = np.random.default_rng(1)
    points, values = rng.normal(size=(200, 3)), rng.normal(size=200)
    quads = rng.permutation(200).reshape(50, 4)
    quads[:10, 3] = quads[:10, 2]  # triangles
    scale = ColorScale("speed")
    scale.include(values)
    found = facets_by_level(quads, points, values, scale)
    assert len(found) == COLOR_LEVELS and sum(len(faces) for _, faces in found) == 90
    corners = np.concatenate([vertices[faces] for vertices, faces in found if len(faces)])
    every = np.concatenate([quads[:, :3], quads[10:][:, [0, 2, 3]]])
    assert np.allclose(np.sort(corners.reshape(90, -1).sum(axis=1)), np.sort(points[every].sum(axis=(1, 2))))
    means = values[quads].mean(axis=1)
    middle = np.flatnonzero(scale.levels(means) == COLOR_LEVELS // 2)
    assert len(found[COLOR_LEVELS // 2][1]) == sum(1 if quads[k, 2] == quads[k, 3] else 2 for k in middle)
    flat = ColorScale("speed")
    flat.include(np.full(3, 2.0))
    assert flat.ends == (1.5, 2.5)


def test_forces_are_where_and_as_large_as_they_act():
    """A load in body axes turns with the section; contacts push by what contact_forces says; arrows reach so far."""
    robot = soft_arm(gravity=(0, 0, 0))
    robot.add_point_load("follower", "arm", force=(0, 0, 2.0), frame="body")
    robot.add_contact("floor", "arm", ls.ShapePlane(), stiffness=1e3)
    model = robot.build()
    q = np.array([0.5, 0.0, 0.0, 0.0])
    found = outer_forces(model, q, np.zeros(model.nv), np.zeros(model.nu), 0.0)
    g = ls.frame_pose(model, q, "arm")
    assert np.allclose(found.points[0], g[:3, 3]) and np.allclose(found.forces[0], 2.0 * g[:3, 2])
    touching = ls.contact_forces(model, q)
    assert len(touching.force) == len(found.forces) - 1 > 0
    lines, colors = found.arrows(0.1)
    assert len(lines) == len(colors) and np.allclose(lines[0, 1] - lines[0, 0], 0.1 * found.forces[0])
    assert np.allclose(lines[1, 1], touching.point[0])


def test_moments_are_arrows_of_two_heads():
    """Moments of loads and inputs turn with the section where they follow it; both heads lie on one line."""
    robot = soft_arm(gravity=(0, 0, 0))
    robot.add_point_load("wrung", "arm", moment=(0, 0.4, 0), frame="body")
    robot.add_wrench_input("turned", "arm", directions=(0, 0, 1.0, 2.0, 0, 0))
    model = robot.build()
    q, u = np.array([0.5, 0.0, 0.0, 0.0]), np.zeros(model.nu)
    u[-1] = 3.0
    found, g = outer_moments(model, q, u, 0.0), ls.frame_pose(model, q, "arm")
    assert np.allclose(found.forces, [0.4 * g[:3, 1], 3.0 * g[:3, 2]])
    assert np.allclose(outer_forces(model, q, np.zeros(model.nv), u, 0.0).forces[-1], 6.0 * g[:3, 0])
    lines, _ = found.arrows(0.1)
    second = second_heads(lines, 0.03)
    assert np.allclose(np.linalg.norm(lines[:, 1] - second[:, 1], axis=1), [0.02, 0.03])
    assert np.allclose(np.cross(lines[:, 1] - lines[:, 0], second[:, 1] - second[:, 0]), 0.0)


def test_a_session_takes_over_what_an_earlier_one_found(model):
    """A session of the robot with other values has the ranges of the earlier sliders, and its pulled model is that of a
    build."""
    before = Session(model)
    before.set_mode("equilibrium")
    before.update(0.0)
    other = model.with_({"arm.material.young": 2e6})
    after = Session(other, None, None, [1.0, 0.0], before)
    assert after.inputs is before.inputs and after.coordinates is before.coordinates
    fresh = Session(other)
    np.testing.assert_array_equal(ls.stiffness_matrix(after.pulled_model), ls.stiffness_matrix(fresh.pulled_model))
    after.set_mode("equilibrium")
    after.update(0.0)
    np.testing.assert_allclose(after.q, ls.solve_statics(other, [1.0, 0.0]).q, rtol=0, atol=1e-9)


def test_a_session_that_takes_over_leaves_the_former_one_usable(model):
    """A session of a robot with other values overwrites the pulled model of the session before. Both find the
    equilibria of their own robots, also in turns; a session that is pulled keeps its model."""
    first, softer = Session(model), model.with_({"arm.material.young": 2e6})
    first.set_mode("equilibrium")
    first.update(0.0)
    pulled = first.pulled_model
    second = Session(softer, before=first)
    second.set_mode("equilibrium")
    second.update(0.0)
    assert second.pulled_model is pulled
    for session in (first, second, first):
        session.set_inputs([3.0, 0.0])
        session.update(0.0)
        expected = ls.solve_statics(session.model, [3.0, 0.0]).q
        np.testing.assert_allclose(session.q, expected, rtol=0, atol=1e-9)
    second.grab(ls.frame_pose(softer, second.q, "arm", 1.0)[:3, 3])
    kept = second.pulled_model
    third = Session(model, before=second)
    assert third.pulled_model is not kept and second.pulled_model is kept
