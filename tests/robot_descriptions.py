"""Plain descriptions for the tests of robot files, and what it means that two of them agree."""

from __future__ import annotations

import dataclasses

import families
import numpy as np

import lissom as ls
from lissom.robot.shapes import Shape

ABSCISSAE = np.linspace(0.0, 1.0, 41)
MATERIAL = ls.Material(young=1e6, density=1000.0)
SHAPES = [
    ls.ShapePlane((0, 1, 1)),
    ls.ShapeSphere(0.1 + 0.2),
    ls.ShapeBox(0.1, 0.2, 0.3),
    ls.ShapeCylinder(0.1),
    ls.ShapeCylinder(0.1, axis=np.array([0.0, 0, 1]), inside=True),
    ls.ShapeCylinder(0.1, 0.5),
    ls.ShapeCapsule(0.1, 0.5, (0, 1, 0)),
    *families.all_made(Shape),
]


def assert_same(a, b, where="robot"):
    """Two descriptions agree: classes and fields, numbers exactly, functions exactly or, once tabulated, to 1e-13."""
    if isinstance(a, ls.Robot):
        assert vars(a).keys() == vars(b).keys()
        for part in vars(a):
            if part == "forces":  # functions of a pose and a twist
                assert list(a.forces) == list(b.forces)
            else:
                assert_same(getattr(a, part), getattr(b, part), part)
    elif isinstance(a, dict):
        assert list(a) == list(b), where
        for key in a:
            assert_same(a[key], b[key], f"{where} > {key}")
    elif dataclasses.is_dataclass(a) and not (callable(a) and type(a) is not type(b)):
        assert type(a) is type(b), where
        for field in dataclasses.fields(a):
            assert_same(getattr(a, field.name), getattr(b, field.name), f"{where} > {field.name}")
    elif callable(a):
        expected, read = (np.array([function(s) for s in ABSCISSAE]) for function in (a, b))
        np.testing.assert_allclose(read, expected, rtol=0, atol=1e-13 * np.abs(expected).max(), err_msg=where)
    elif isinstance(a, list | tuple) and any(dataclasses.is_dataclass(item) or np.ndim(item) for item in a):
        assert len(a) == len(b), where
        for k, (x, y) in enumerate(zip(a, b, strict=True)):
            assert_same(x, y, f"{where}[{k}]")
    elif a is None or isinstance(a, bool | str):
        assert a == b and type(a) is type(b), where
    else:
        assert np.array_equal(np.asarray(a), np.asarray(b)), f"{where}: {a} != {b}"


def round_trip(robot, tmp_path):
    """The robot that is read from what was written."""
    ls.save_robot(robot, tmp_path / "robot.yaml")
    return ls.load_robot(tmp_path / "robot.yaml")


def rod(**fields):
    """A plain rod with some of its fields replaced."""
    plain = {"length": 0.5, "section": ls.SectionCircle(0.01), "basis": ls.BasisLegendre(bending_y=2)}
    return ls.Rod(**(plain | {"material": MATERIAL} | fields))


def one_rod(**fields):
    """A robot of one rod called arm."""
    robot = ls.Robot("one")
    robot.add_link("arm", rod(**fields))
    return robot
