"""Descriptions in Python with values of any type in any place: built, or refused by a ModelError, and nothing else."""

import inspect
import random
import warnings

import numpy as np
import pytest

import lissom as ls

SOFT = ls.Material(young=1e6, density=1000)
WRONG = (None, True, 0, -1, 3, 0.5, np.nan, np.inf, 10**400, 2**53, "", "arm", "x", b"arm", (), (1,), (0, 1), [[]],
         [1, 2, 3], ["arm"], {}, {"arm": 1}, {"t": "x"}, {1: 2}, object(), np.zeros(3), np.eye(4), np.array("x"), 1j,
         lambda s: None, lambda *_: 1.0, ls.Hydrodynamics(), ls.JointRevolute(), SOFT, {"t", "arm"},
         ls.PathPoint("arm"), [ls.PathRod("arm", (0, 0.01))], [None], Ellipsis, ls.Robot, ls.Rod)  # fmt: skip


def rod():
    """A rod of two modes."""
    return ls.Rod(0.5, ls.SectionCircle(0.02), ls.BasisLegendre(bending_y=1), SOFT)


GOOD = {
    "add_link": {"name": "hand", "body": ls.RigidBody(1.0), "joint": ls.JointRevolute(), "parent": "arm", "at": 1.0},
    "add_frame": {"name": "tip", "link": "arm", "s": 1.0, "placement": None},
    "add_tendon": {"name": "more", "link": "arm", "offset": (0.0, 0.01), "start": 0.0, "stop": 1.0, "path": None,
                   "stiffness": 1e4, "slack_length": None},
    "add_chamber": {"name": "air", "link": "arm", "offset": (0.0, 0.0), "area": 1e-4, "force": "tangent"},
    "add_joint_actuator": {"name": "motor", "link": "base"},
    "add_wrench_input": {"name": "push", "link": "arm", "s": 1.0, "directions": None, "frame": "body"},
    "add_custom_actuator": {"name": "own", "function": lambda q: np.zeros((3, 1)), "size": 1},
    "couple_inputs": {"name": "pair", "gains": {"t": 1.0}},
    "add_point_load": {"name": "load", "link": "arm", "s": 1.0, "force": (0, 0, 1), "moment": None, "frame": "world"},
    "add_joint_motion": {"name": "turn", "link": "base", "position": lambda t: 0.0 * t},
    "add_loop": {"name": "loop", "link_a": "arm", "link_b": None, "s_a": 1.0, "joint": ls.JointSpherical()},
    "add_spring": {"name": "spring", "a": "arm", "b": ls.PathPoint(None), "stiffness": 1.0, "damping": 0.1,
                   "rest": None, "preload": 0.0, "slack": False},
    "add_contact": {"name": "floor", "links": "arm", "shape": ls.ShapePlane(), "others": None, "friction": 0.5,
                    "per_interval": 1, "radius": 0.01},
    "add_force": {"name": "own", "link": "arm", "function": lambda t, g, eta: np.zeros(6), "s": 1.0},
    "add_state": {"name": "home", "positions": {"base": 0.1}, "velocities": {"base": [0.2]}, "inputs": {"t": 1.0}},
    "attach": {"other": ls.Robot("other"), "parent": "arm", "placement": None, "prefix": "x", "at": 0.5},
    "lock": {"joint": "base", "q": 0.1},
    "remove_link": {"name": "arm", "with_children": True},
    "set_fluid": {"density": 1000.0, "current": None, "default": ls.Hydrodynamics(), "links": {"arm": None}},
}  # fmt: skip
PARTS = {
    "Rod": (ls.Rod, {"length": 0.5, "section": ls.SectionCircle(0.02), "basis": ls.BasisLegendre(bending_y=1),
                     "material": SOFT, "reference_strain": None, "gauss_points": None}),
    "RigidBody": (ls.RigidBody, {"mass": 1.0, "com": (0, 0, 0), "inertia": (1, 1, 1), "form": None, "balls": None}),
    "Material": (lambda **x: ls.Rod(0.5, ls.SectionCircle(0.02), ls.BasisLegendre(bending_y=1), ls.Material(**x)),
                 {"young": 1e6, "density": 1000.0, "poisson": 0.5}),
    "Section": (lambda **x: ls.Rod(0.5, ls.SectionRectangle(**x), ls.BasisLegendre(bending_y=1), SOFT),
                {"width_y": 0.1, "width_z": 0.1}),
    "Basis": (lambda **x: ls.Rod(0.5, ls.SectionCircle(0.02), ls.BasisHermite(**x), SOFT),
              {"bending_y": 1, "torsion": None}),
}  # fmt: skip


def described():
    """An arm with a tendon on a hinge."""
    robot = ls.Robot("arm")
    robot.add_link("base", ls.RigidBody(1.0, inertia=(1, 1, 1)), ls.JointRevolute())
    robot.add_link("arm", rod(), parent="base")
    robot.add_tendon("t", "arm", (0.0, 0.01))
    return robot


def outcome(kind, values):
    """What came of building with these values: nothing, or an error that is no ModelError."""
    robot = described()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if kind in PARTS:
                robot.add_link("part", PARTS[kind][0](**values))
            else:
                getattr(robot, kind)(**values)
            robot.build()
    except ls.ModelError as error:
        assert str(error)
    except Exception as error:
        return f"{kind}({values}): {error!r}"[:400]
    return None


@pytest.mark.parametrize("kind", [*GOOD, *PARTS])
def test_a_wrong_value_in_each_place(kind):
    """Each argument in turn, a sample of what there is; the values that are right build."""
    values = GOOD[kind] if kind in GOOD else PARTS[kind][1]
    if kind in GOOD:
        assert set(values) <= set(inspect.signature(getattr(ls.Robot, kind)).parameters) | {
            "friction", "per_interval", "radius"}  # fmt: skip
    assert outcome(kind, values) is None
    chance = random.Random(kind)
    tried = [outcome(kind, values | {name: chance.choice(WRONG)}) for name in values for _ in range(4)]
    assert not [x for x in tried if x]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*GOOD, *PARTS])
def test_every_wrong_value_in_each_place(kind):
    """Each argument in turn, all that there is."""
    values = GOOD[kind] if kind in GOOD else PARTS[kind][1]
    tried = [outcome(kind, values | {name: value}) for name in values for value in WRONG]
    assert not [x for x in tried if x]


def test_the_first_of_many_is_raised():
    """In Python an error names the first rule that is broken; for a file, which is read as a whole, it names all."""
    robot = ls.Robot("two")
    robot.add_link("arm", ls.RigidBody(-1.0), at=2.0)
    with pytest.raises(ls.ModelError, match=r"^link 'arm' > body: mass: must be >= 0 \(got -1.0\)$"):
        robot.build()
