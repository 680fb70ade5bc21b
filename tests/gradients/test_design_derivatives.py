"""Partial derivatives of functions of a state by design values, against converged differences."""

from dataclasses import fields, is_dataclass
from functools import cache

import numpy as np
import pytest

import lissom as ls

PATHS = ["arm.material.young", "arm.section.radius", "arm.length", "cable.stiffness", "cable.path[0].offset", "gravity"]
Q, V = np.array([0.4, -1.3, 0.7, 0.02]), np.array([0.1, 0.5, -0.3, 0.01])
EIGHTH = ((1, 4 / 5), (2, -1 / 5), (3, 4 / 105), (4, -1 / 280))  # central difference of order eight


@pytest.fixture(scope="module")
def model():
    """A tapered rod with an elastic tendon on a hinge."""
    robot = ls.Robot("arm")
    material = ls.Material(young=1e6, density=1000.0)
    rod = ls.Rod(0.3, ls.SectionCircle((0.02, 0.015)), ls.BasisLegendre(bending_y=1, elongation=0), material)
    robot.add_link("arm", rod, ls.JointRevolute((0, 1, 0), stiffness=2.0))
    robot.add_tendon("cable", "arm", (0.002, 0.01), stiffness=800.0, slack_length=0.28)
    return robot.build()


@pytest.fixture(scope="module")
def places(model):
    """For a number of a design value: its step, and models at the places of its difference, each built once."""
    known = model.description.described_values()

    @cache
    def made(path, index):
        start = np.asarray(known[path.replace("path[0].", "")], dtype=float)
        h = 2e-3 * (abs(start[index]) or np.abs(start).max())
        models = []
        for k, weight in EIGHTH:
            for sign in (1.0, -1.0):
                value = start.copy()
                value[index] += sign * k * h
                models.append((sign * weight / h, model.with_({path: value.tolist()})))
        return h, models

    return made


FUNCTIONS = {
    "pose": (ls.frame_pose, (Q, "arm")),
    "poses along": (ls.frame_pose, (Q, "arm", [0.0, 0.4, 1.0])),
    "tensions": (ls.tendon_tensions, (Q, [0.01])),
    "lengths": (ls.path_lengths, (np.stack([Q, 0.5 * Q]),)),
    "wrench": (ls.internal_wrench, (Q, V, None, [0.01], "arm", 0.3)),
    "energy": (ls.energy, (Q, V)),
    "twist derivatives": (ls.frame_twist_derivatives, (Q, V, "arm")),
}


def arrays(result):
    """The arrays of a result."""
    if isinstance(result, tuple):
        return list(result)
    if is_dataclass(result):
        return [x for x in (getattr(result, item.name) for item in fields(result)) if np.asarray(x).dtype.kind == "f"]
    return [result]


@pytest.mark.parametrize("kind", FUNCTIONS)
def test_against_converged_differences(model, places, kind):
    """Purpose: derivatives of frames, tensions, lengths, wrenches and energies are differences of order eight."""
    function, args = FUNCTIONS[kind]
    found = ls.design_derivatives(function, model, *args, parameters=PATHS)
    known = model.description.described_values()
    here = [np.asarray(x) for x in arrays(function(model, *args))]
    for path in PATHS:
        shape = np.shape(known[path.replace("path[0].", "")])
        for index in np.ndindex(shape):
            slope, (h, models) = [0.0 * x for x in here], places(path, index)
            for weight, one in models:
                slope = [x + weight * np.asarray(end) for x, end in zip(slope, arrays(function(one, *args)))]
            for own, wanted, x in zip(arrays(found[path]), slope, here):
                assert own.shape == (*x.shape, *shape)
                size = max(np.abs(wanted).max(initial=0.0), np.abs(x).max(initial=0.0) / (h / 2e-3))
                np.testing.assert_allclose(own[(..., *index)], wanted, rtol=0, atol=1e-8 * size, err_msg=path)


def test_the_form_of_results_is_kept(model):
    """Purpose: a result of a class has derivatives in the same class, a function of one's own may return a float."""
    found = ls.design_derivatives(ls.energy, model, Q, V, parameters=["gravity"])["gravity"]
    assert isinstance(found, ls.Energy) and found.kinetic.shape == (3,) and np.abs(found.elastic).max() < 1e-12
    own = ls.design_derivatives(lambda m, q: ls.energy(m, q, V).total.item(), model, Q, parameters=["gravity[2]"])
    assert own["gravity[2]"].shape == () and own["gravity[2]"] == pytest.approx(found.gravitational[2], rel=1e-9)


def test_wrong_arguments_are_refused(model):
    """Purpose: a batch, a word as result and an unknown path raise one line."""
    batch = model.batch("arm.length", [0.2, 0.3])
    with pytest.raises(ls.ModelError, match="model: must be one Model"):
        ls.design_derivatives(ls.frame_pose, batch, Q, "arm", parameters=["arm.length"])
    with pytest.raises(ls.ModelError, match=r"function: must return an array.*got str"):
        ls.design_derivatives(lambda m: m.name, model, parameters=["arm.length"])
    with pytest.raises(ls.ModelError, match="nearest is 'length'"):
        ls.design_derivatives(ls.frame_pose, model, Q, "arm", parameters=["arm.lenght"])
