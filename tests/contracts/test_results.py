"""Results show themselves in one short line: every public class that holds arrays, and some as users meet them."""

import dataclasses
import inspect
import re
from operator import attrgetter

import numpy as np
import pytest
from house import stub

import lissom as ls

LONGEST = 200  # characters
HOLDS_ARRAYS = re.compile(r"(^|dict\[str, )np\.ndarray")
CLASSES = [
    value
    for value in (attrgetter(name)(ls) for name in stub.names())
    if inspect.isclass(value)
    and dataclasses.is_dataclass(value)
    and any(HOLDS_ARRAYS.search(str(item.type)) for item in dataclasses.fields(value))
] + [ls.GradientCheck, ls.KernelCache, ls.Samples, ls.Statistics, ls.SweepResults, ls.Trial]


@pytest.fixture(scope="module")
def arm():
    """A soft arm with a tendon that lies on a floor."""
    robot = ls.Robot("arm")
    material = ls.Material(young=1e6, density=1000, viscosity=1e4)
    rod = ls.Rod(0.3, ls.SectionCircle(0.02), ls.BasisLegendre(bending_y=1), material)
    robot.add_link("arm", rod)
    robot.add_tendon("up", "arm", (0.0, 0.015))
    g = np.eye(4)
    g[2, 3] = -0.05
    robot.add_contact("floor", "arm", ls.ShapePlane(), placement=g, stiffness=1e5)
    return robot.build()


def filled(kind, model):
    """A result whose every field is as large as one may be, made without its maker."""
    found = object.__new__(kind)
    big = np.linspace(-1.23456789, 1.23456789e-7, 60 * 40 * 7).reshape(60, 40, 7)
    for item in dataclasses.fields(kind):
        words = str(item.type)
        if words.startswith("dict"):
            value = {f"link_{k}.material.young": big for k in range(40)}
        elif "ndarray" in words:
            value = big
        elif "Model" in words:
            value = model
        elif words.startswith(("tuple", "Sequence")):
            value = tuple(f"a name of several words, number {k}" for k in range(300))
        else:
            value = {"str": "two\nlines " * 40, "float": 1.0 / 3.0, "int": 7}.get(words.partition(" ")[0], big)
        object.__setattr__(found, item.name, value)
    return found


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_result_is_one_line(kind, arm):
    """However large its fields: one line of less than 200 characters, which begins with the name of the class."""
    if kind is ls.Trajectory:
        text = repr(ls.simulate(arm, 0.01, dt=5e-3))
    elif kind in (ls.Model, ls.ModelBatch):
        text = repr(arm)
    elif kind is ls.Equilibrium:
        text = repr(ls.solve_statics(arm, stable=False))
    else:
        text = repr(filled(kind, arm))
    assert text.startswith(f"{kind.__name__}(") and text.endswith(")")
    assert "\n" not in text and len(text) < LONGEST and "array(" not in text and " object at 0x" not in text


def test_shapes_and_key_numbers_are_shown(arm):
    """Arrays by shape and range, single numbers as they are, tables by their keys."""
    found = ls.solve_statics(arm, [[1.0], [2.0]], stable=False)
    assert repr(ls.energy(arm, found.q, found.v)).startswith("Energy(kinetic=(2,) 0 to 0, gravitational=(2,) ")
    motion = ls.rollout(arm, u=[1.0], dt=1e-3, steps=4)
    assert re.match(r"Rollout\(t=\(5,\) 0 to 0\.004, q=\(5, 2\) .*dt=0\.001, every=1", repr(motion))
    slopes = motion.backward(dL_dq=np.ones((5, 2)), parameters=["arm.material.young"])
    assert "parameters={'arm.material.young': " in repr(slopes)
    touching = repr(ls.contact_forces(arm, found.q[0]))
    assert touching.startswith("Contacts(contact: 1 ('floor'), link: 1 ('arm'), s=1, ") and "depth=0.000" in touching
    held = repr(ls.prescribed_equilibrium(arm, {"up": 2e-3}))
    assert "y=0.002" in held and "is_stable=True" in held
