"""Robots of files whose bodies can fall, without a described contact: told once, at the first motion."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pytest

import lissom as ls
from lissom.dynamics.start import warn_of_start

CUBE = """<link name="{0}"><inertial><mass value="0.1"/>
<inertia ixx="1e-4" iyy="1e-4" izz="1e-4" ixy="0" ixz="0" iyz="0"/>
</inertial><collision><geometry><box size="0.1 0.1 0.1"/></geometry></collision></link>"""
URDF = f"""<robot name="pile">{CUBE.format("table")}{CUBE.format("cube")}
<joint name="way" type="floating"><parent link="table"/><child link="cube"/><origin xyz="0 0 0.2"/></joint></robot>"""
MJCF = """<mujoco model="pile"><worldbody><body name="table"><geom type="box" size="0.5 0.5 0.1"/></body>
<body name="cube" pos="0 0 0.3"><freejoint/><geom type="box" size="0.05 0.05 0.05" mass="0.1"/></body>
</worldbody></mujoco>"""


def pile(tmp_path, text):
    """The robot of a file with a fixed table and a free cube 50 to 100 mm above it."""
    kind = "urdf" if "<robot" in text else "mjcf"
    path = tmp_path / f"pile.{'urdf' if kind == 'urdf' else 'xml'}"
    path.write_text(text)
    return getattr(ls, f"load_{kind}")(path)


def told(act):
    """The messages of warnings of an action."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        act()
    return [str(w.message) for w in found if w.category is ls.LeftOutWarning]


@pytest.mark.parametrize("text", [URDF, MJCF], ids=["urdf", "mjcf"])
def test_a_fall_without_contacts_is_told_once(tmp_path, text):
    """The first motion names the bodies that nothing stops, the file and both cures; loading and building do not."""
    robot = pile(tmp_path, text)
    assert not told(robot.build)
    model = robot.build()
    (message,) = told(lambda: ls.simulate(model, 0.01, dt=5e-3))
    assert "'cube'" in message and "'table'" not in message and robot.source in message
    assert "add_contact('floor', ls.EVERYTHING, ls.ShapePlane())" in message and "add_mutual_contacts()" in message
    assert not told(lambda: ls.simulate(model, 0.01, dt=5e-3))
    ways = {
        "stepper": lambda one: ls.Stepper(one, 5e-3),
        "rollout": lambda one: ls.rollout(one, dt=5e-3, steps=2),
        "batch": lambda one: ls.simulate(one, 0.01, np.stack([one.neutral()] * 2), dt=5e-3, t_eval=[0.01]),
        "copy": lambda one: ls.simulate(copy.deepcopy(one.description).build(), 0.01, dt=5e-3),
        "pickle": lambda one: ls.simulate(pickle.loads(pickle.dumps(one.description)).build(), 0.01, dt=5e-3),
    }
    for name, way in ways.items():
        assert told(lambda way=way: way(robot.build())) == [message], name
    into = ls.Robot("lab")
    into.attach(robot, None)
    assert len(told(lambda: ls.simulate(into.build(), 0.01, dt=5e-3))) == 1


@pytest.mark.parametrize("text", [URDF, MJCF], ids=["urdf", "mjcf"])
def test_with_the_named_cure_the_cube_rests_and_nothing_is_told(tmp_path, text):
    """Mutual contacts hold the cube on the table at the height of its half edge, to 1 mm."""
    robot = pile(tmp_path, text)
    assert robot.add_mutual_contacts().pairs == (("table", "cube"),)  # a free joint does not keep them apart
    model, found = robot.build(), []
    assert not told(lambda: found.append(ls.simulate(model, 0.6, dt=2e-3)))
    top = 0.05 if text is URDF else 0.1
    place = ls.frame_pose(model, found[0].q[-1], "cube")[:3, 3]
    assert place == pytest.approx([0.0, 0.0, top + 0.05], abs=1e-3)


def test_no_warning_where_nothing_falls(tmp_path):
    """No warning for fixed robots, without gravity, in a fluid, for robots of scripts, or if a loop holds the body."""
    fixed = pile(tmp_path, URDF.replace('"floating"', '"continuous"').replace("<parent", '<axis xyz="0 1 0"/><parent'))
    weightless, wet, held = (pile(tmp_path, URDF) for _ in range(3))
    weightless.gravity = (0.0, 0.0, 0.0)
    wet.set_fluid(1000.0, default=ls.Hydrodynamics(volume=1e-3, added_mass=0.0, drag_normal=0.0))
    place = np.eye(4)
    place[2, 3] = 0.2
    held.add_loop("pin", "cube", joint=ls.JointSpherical(), placement_b=place)
    script = ls.Robot("script")
    script.add_link("cube", ls.RigidBody.box(0.1, 0.1, 0.1, density=100), ls.JointFree())
    assert script.source is None
    for robot in (fixed, weightless, wet, held, script):
        model = robot.build()
        assert not told(lambda model=model: warn_of_start(model, model.neutral(), lambda: np.zeros(model.nv)))
    model = pile(tmp_path, URDF).build()
    assert told(lambda: warn_of_start(model, model.neutral(), lambda: np.zeros(model.nv)))
