"""Environments of bodies that fall and touch: no energy from steps of the control's size, and what `info` says."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import lissom as ls

PILE = """<robot name="pile">
<link name="table"><collision><geometry><box size="0.2 0.2 0.1"/></geometry></collision></link>
<link name="cube">
<inertial><mass value="0.1"/><inertia ixx="2e-4" iyy="2e-4" izz="2e-4" ixy="0" ixz="0" iyz="0"/></inertial>
<collision><geometry><box size="0.1 0.1 0.1"/></geometry></collision></link>
<joint name="way" type="floating"><parent link="table"/><child link="cube"/><origin xyz="0 0 0.12"/></joint></robot>"""


@dataclass(frozen=True, eq=False)
class Fall(ls.gym.Task):
    """A free body falls."""

    height: float = 0.0

    def start(self, random):
        """The height above the neutral place, and some millimetres."""
        q = self.model.neutral()
        q[6] = self.height
        return ls.gym.TaskStart(q=q)

    def observe(self, state):
        """The configuration."""
        return state.q

    def reward(self, state):
        """Nothing."""
        return np.zeros(len(state.q))


def ball():
    """A ball of 2 cm without numbers of a user above a floor."""
    robot = ls.Robot("ball")
    robot.add_link("ball", ls.RigidBody.sphere(0.02, density=1200), ls.JointFree())
    robot.add_contact("floor", "ball", ls.ShapePlane())
    return robot.build()


def fallen(env, steps):
    """The heights of the body, and the infos, of a number of actions."""
    env.reset(seed=0)
    found = [env.step(np.zeros(0)) for _ in range(steps)]
    return np.array([seen[6] for seen, *_ in found]), [info for *_, info in found]


def test_a_ball_in_an_environment_does_not_rise_beyond_its_bounce():
    """A ball dropped 70 mm, with actions of 2 ms, bounces no higher than an exact bounce and comes to rest; the info is
    that of a stepper.

    With restitution 0.5 an exact bounce rises to 20 + 70/4 = 37.5 mm.
    """
    model, steps = ball(), 400
    height, told = fallen(ls.gym.environment(Fall(model, period=2e-3, steps=1, limit=1000, height=0.09)), steps)
    assert height[np.argmax(np.diff(height) > 0.0) :].max() < 0.0375
    assert height[-1] == pytest.approx(0.02, abs=1e-4) and height.min() > 0.0195
    stepper = ls.Stepper(model, 2e-3, q0=[1.0, 0, 0, 0, 0, 0, 0.09])
    stepper.step(steps=steps)
    known = stepper.statistics
    assert (told[-1]["parts"], told[-1]["plastic"]) == (known.parts, known.plastic)
    assert told[-1]["deepest"] == pytest.approx(known.deepest, rel=1e-6) and known.deepest > 5e-5
    deepest = [info["deepest"] for info in told]
    assert deepest[0] == 0.0 and (np.diff(deepest) >= 0.0).all()


def test_copies_say_what_their_own_episodes_did():
    """Copies of a vector environment have the info of single environments, and a new episode begins with nothing."""
    task = Fall(ball(), period=2e-3, steps=1, limit=80, height=0.03)
    _, told = fallen(ls.gym.environment(task), 80)
    many = ls.gym.vector_environment(task, 2)
    many.reset(seed=0)
    for k in range(80):
        *_, info = many.step(np.zeros((2, 0)))
        for name in ("parts", "plastic", "deepest"):
            assert info[name].tolist() == [told[k][name]] * 2, (k, name)
    assert told[-1]["parts"] > 5
    for _ in range(2):
        *_, info = many.step(np.zeros((2, 0)))
    assert info["parts"].tolist() == [0, 0] and info["deepest"].tolist() == [0.0, 0.0]
    single = ls.gym.environment(task)
    for _ in range(2):
        assert fallen(single, 80)[1][-1] == told[-1]


def test_a_cube_of_a_file_rests_on_a_table_of_the_file(tmp_path):
    """A cube of a URDF file that falls 20 mm in an environment rests on the box below it."""
    (tmp_path / "pile.urdf").write_text(PILE)
    robot = ls.load_urdf(tmp_path / "pile.urdf")
    robot.add_mutual_contacts()
    height, told = fallen(ls.gym.environment(Fall(robot.build(), period=2e-3, steps=1, limit=1000)), 300)
    assert height[-1] + 0.12 == pytest.approx(0.1, abs=1e-4) and height.min() + 0.12 > 0.0995
    assert told[-1]["deepest"] < 5e-4
