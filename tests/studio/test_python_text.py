"""Robots as Python scripts: a script makes the same robot."""

import pytest
from robot_descriptions import assert_same, everything

import lissom as ls
from lissom.io.reading import read
from lissom.io.robot_file import document
from lissom.studio.document import templates
from lissom.studio.python_text import python_of


def made_by(text):
    """The robot that a script makes."""
    space = {}
    exec(compile(text, "script", "exec"), space)
    return space["robot"]


@pytest.mark.parametrize("name", templates())
def test_the_script_of_a_template_makes_its_robot(name):
    """Every template comes back from its script, with the same file."""
    robot = read(templates()[name], name)[0]
    assert document(made_by(python_of(robot))) == document(robot)


def test_the_script_of_a_robot_with_every_part_makes_this_robot():
    """The robot with each field of each part comes back from its script, class by class and number by number."""
    robot = everything()
    made = made_by(python_of(robot))
    assert document(made) == document(robot)
    assert_same(made.links, robot.links)


def test_functions_of_python_have_no_script():
    """A user's force is refused by its name."""
    robot = ls.Robot("r")
    robot.add_link("b", ls.RigidBody(1.0, inertia=(1, 1, 1)), ls.JointFree())
    robot.add_force("f", "b", lambda t, g, eta: eta)
    with pytest.raises(ls.ModelError, match="force 'f': a Python function cannot be written"):
        python_of(robot)
