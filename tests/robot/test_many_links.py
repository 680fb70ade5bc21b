"""Robots of many links: the work to describe, build, write and read them grows with their number, not its square."""

import pickle
import sys

import numpy as np
import pytest

import lissom as ls
from lissom.robot import checks


class Counted(str):
    """A name that counts its comparisons with other names."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        Counted.compared += 1
        return str.__eq__(self, other)


def many(count, shape, name=str):
    """A robot of many links in a chain, a tree or with one parent each in the world, with some parts on each."""
    robot, names = ls.Robot("many"), [name(f"link {k}") for k in range(count)]
    parents = {"chain": lambda k: k - 1, "tree": lambda k: (k - 1) // 2, "heap": lambda k: -1}[shape]
    body = ls.RigidBody(1.0, (0.01, 0.0, 0.0), (1e-3, 2e-3, 2e-3))
    step = np.eye(4)
    step[0, 3] = 0.1
    for k in range(count):
        joint = ls.JointFree() if shape == "heap" else ls.JointRevolute((0, 1, 0))
        robot.add_link(names[k], body, joint, None if parents(k) < 0 else names[parents(k)], placement=step.tolist())
        if k % 10 == 0:
            robot.add_frame(name(f"frame {k}"), names[k])
            robot.add_joint_actuator(name(f"motor {k}"), names[k])
            robot.add_point_load(name(f"load {k}"), names[k], force=(0, 0, 1.0))
            robot.add_spring(name(f"spring {k}"), names[k], ls.PathPoint(None, (0, 0, 1.0)), stiffness=1.0)
            robot.couple_inputs(name(f"input {k}"), {f"motor {k}": 2.0} if shape != "heap" else {})
    if shape == "heap":
        robot.couplings.clear()
    return robot


def calls(function):
    """Number of calls of functions, in Python and in C, during one call."""
    count = 0

    def counter(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counter)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("shape", ["chain", "tree", "heap"])
def test_the_build_is_linear(shape):
    """Three times the links need at most 3.3 times the calls and comparisons of names."""
    work = []
    many(3, shape).build()
    for count in (100, 300):
        robot = many(count, shape, Counted)
        Counted.compared = 0
        work.append((calls(robot.build), Counted.compared))
    assert work[1][0] <= 3.3 * work[0][0]
    assert work[1][1] <= 3.3 * work[0][1]


@pytest.mark.parametrize("body", [ls.RigidBody.sphere(0.05, density=1e3), ls.RigidBody.box(0.1, 0.1, 0.1, density=1e3)])
def test_the_work_for_each_pair_is_constant(body):
    """Bodies that may all touch each other: ten times the pairs need no more calls for each of them."""

    def heap(count):
        robot = ls.Robot("heap")
        for k in range(count):
            robot.add_link(f"{k}", body, ls.JointFree())
        return robot

    def made(robot):
        robot.add_mutual_contacts()
        robot.build()

    made(heap(3))
    work = [calls(lambda: made(heap(count))) / (count * (count - 1) / 2) for count in (10, 30)]  # noqa: B023
    assert work[1] <= work[0]


def test_robot_files_are_linear(tmp_path):
    """Writing and reading a robot file."""
    work = []
    for count in (3, 100, 300):
        robot, path = many(count, "tree"), tmp_path / f"{count}.yaml"
        work.append((calls(lambda: ls.save_robot(robot, path)), calls(lambda: ls.load_robot(path))))  # noqa: B023
    assert work[2][0] < 3.3 * work[1][0]
    assert work[2][1] < 3.3 * work[1][1]


def test_changes_are_linear():
    """Attaching a robot, and removing a branch with half of the links."""
    work = []
    for count in (3, 100, 300):
        robot, other = many(count, "tree", Counted), many(count, "tree", Counted)
        Counted.compared = 0
        attached = calls(lambda: robot.attach(other, "link 0", prefix="other "))  # noqa: B023
        removed = calls(lambda: robot.remove_link("link 1", with_children=True))  # noqa: B023
        work.append((attached, removed, Counted.compared))
    assert all(large <= 3.3 * small for large, small in zip(work[2], work[1], strict=True))


@pytest.mark.slow
def test_thousands_of_links_take_seconds(tmp_path):
    """6,000 links are built, and 3,000 are read, in a time that is a small multiple of that of a tenth of them."""
    import time

    times = []
    for count in (600, 6000):
        robot = many(count, "tree")
        began = time.process_time()
        robot.build()
        times.append(time.process_time() - began)
    assert times[1] < 15.0 * times[0]


def test_a_passed_link_is_checked_again_once_its_numbers_change():
    """A link that passed keeps its contents; numbers that a user changes in place are found, copies are checked."""
    placement, inertia = np.eye(4).tolist(), np.diag([1e-3, 2e-3, 2e-3])
    for changed in (lambda: placement[0].__setitem__(0, 3.0), lambda: inertia.__setitem__((0, 0), -1.0)):
        placement[0][0], inertia[0, 0] = 1.0, 1e-3
        robot = ls.Robot("one")
        robot.add_link("body", ls.RigidBody(1.0, inertia=inertia), ls.JointRevolute(), placement=placement)
        robot.check()
        robot.check()
        assert "_passed" not in pickle.loads(pickle.dumps(robot)).links["body"].__dict__
        changed()
        with pytest.raises(ls.ModelError, match=r"orthonormal|positive semi-definite"):
            robot.build()


def test_a_built_robot_is_not_checked_twice(monkeypatch):
    """The second check of an unchanged link compares its contents only, also inside the reading of a file."""
    robot = many(5, "chain")
    robot.check()
    monkeypatch.setattr(ls.RigidBody, "check", lambda body, where: pytest.fail(where))
    robot.check()
    robot.links["link 0"].__dict__["_passed"] = b""
    with pytest.raises(pytest.fail.Exception):
        robot.check()


def test_links_that_fail_are_not_kept():
    """A wrong link fails at each check, also where a reader gathers the mistakes."""
    robot = ls.Robot("one")
    robot.add_link("body", ls.RigidBody(-1.0), ls.JointRevolute())
    for _ in range(2):
        with checks.gathered() as found:
            robot.check()
        assert len(found) == 1
