"""A Robot handed over where its Model is expected: every public function says so."""

import copy
import inspect
from operator import attrgetter

import numpy as np
import pytest
from house import stub

import lissom as ls


def described():
    """A pendulum with a motor."""
    robot = ls.Robot("arm")
    robot.add_link("link", ls.RigidBody(1.0, (0.5, 0, 0)), ls.JointRevolute())
    robot.add_joint_actuator("motor", "link")
    return robot


def arguments(function):
    """Something for each argument that has no default, besides the model."""
    known = {"duration": 1.0, "link": "link", "link_or_frame": "link", "path": "x.gif"}
    trajectory = ls.simulate(described().build(), 0.01, method="newmark", dt=0.01)
    needed = [p for p in list(inspect.signature(function).parameters.values())[1:] if p.default is p.empty]
    given = {p: trajectory if p.name == "trajectory" else known.get(p.name, np.zeros(1)) for p in needed}
    named = {p.name: value for p, value in given.items() if p.kind is p.KEYWORD_ONLY}
    return [value for p, value in given.items() if p.name not in named], named


def takes_model(name):
    """Whether a public name is a function of a model."""
    value = attrgetter(name)(ls)
    return inspect.isfunction(value) and next(iter(inspect.signature(value).parameters), None) == "model"


@pytest.mark.parametrize("name", [name for name in stub.names() if takes_model(name)])
def test_every_function_of_a_model_says_that_it_got_a_robot(name, tmp_path, monkeypatch):
    """The message names the robot, the expected type, and the call that is missing."""
    monkeypatch.chdir(tmp_path)
    function = attrgetter(name)(ls)
    with pytest.raises(ls.ModelError) as caught:
        positional, named = arguments(function)
        function(described(), *positional, **named)
    assert str(caught.value) == "robot 'arm': expected a Model, got a Robot: call robot.build()"


def test_other_attributes_are_missing_as_ever():
    """What neither has is an AttributeError, and a description is copied as before."""
    robot = described()
    with pytest.raises(AttributeError, match="no attribute 'lnks'"):
        _ = robot.lnks
    assert not hasattr(robot, "__len__") and not hasattr(robot, "weight")
    assert copy.deepcopy(robot).build().nq == 1


def test_a_model_is_not_saved_as_a_robot(tmp_path):
    """save_robot wants the description."""
    with pytest.raises(ls.ModelError, match=r"save_robot: expected a Robot, the description and not its Model \(got "):
        ls.save_robot(described().build(), tmp_path / "robot.yaml")
