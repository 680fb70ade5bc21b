"""Each copy moves as it does alone, whatever happens to the others."""

from __future__ import annotations

import numpy as np
import pytest

import lissom as ls
from lissom.stepping.stepper import ATOL, RTOL, Copies, Stepper

DT = 0.01


def arm(**more):
    """A soft arm that two tendons bend."""
    robot = ls.Robot("arm")
    basis = ls.BasisLegendre(bending_y=1, bending_z=2)
    rod = ls.Rod(0.3, ls.SectionCircle((0.02, 0.01)), basis, ls.Material(young=1e6, density=1000, viscosity=2e3))
    robot.add_link("arm", rod)
    robot.add_tendon("up", "arm", (0.0, 0.008))
    robot.add_tendon("side", "arm", (0.008, 0.0))
    for name, force in more.items():
        robot.add_point_load(name, "arm", force=force)
    return robot.build()


@pytest.fixture(scope="module")
def model():
    """The arm, clamped."""
    return arm()


def swung(young=2e6, weight=0.3):
    """A soft leg on a motor that swings it to and fro over a floor that it sticks to, in a gust that Python knows and
    another one that is a formula."""
    robot = ls.Robot("leg")
    silicone = ls.Material(young=young, density=1000, viscosity=1e4)
    rod = ls.Rod(0.3, ls.SectionCircle(0.01), ls.BasisLegendre(bending_y=1), silicone)
    hip, c, s = np.eye(4), np.cos(1.0), np.sin(1.0)
    hip[:3, 0], hip[:3, 2], hip[2, 3] = (c, 0.0, -s), (s, 0.0, c), 0.262
    robot.add_link("leg", rod, ls.JointRevolute((0.0, 1.0, 0.0)), placement=hip)
    robot.add_joint_motion("swing", "leg", position=ls.Expression("0.02 - 0.02*cos(9*t)", "t"))
    robot.add_tendon("up", "leg", (0.0, 0.008))
    robot.add_point_load("gust", "leg", force=lambda t: (0.2 * np.sin(20.0 * t), 0.0, 0.0))
    robot.add_point_load("breeze", "leg", force=ls.Expression(["0", "0", "0.1*cos(15*t)"], "t"))
    robot.add_point_load("burden", "leg", force=(0.0, 0.0, -weight))
    law = {"stiffness": 1e3, "exponent": 1.0, "friction": 3.0, "stick_stiffness": 300.0, "stick_damping": 1.0}
    robot.add_contact("floor", "leg", ls.ShapePlane(), damping=1.0, **law)
    return robot.build()


def agree(many, alone):
    """Whether copies are where copies alone are, to the last bit."""
    pairs = [(many.q, [one.q for one in alone]), (many.v, [one.v for one in alone])]
    if "anchor" in many.w.host:
        pairs.append((many.w.host["anchor"], [one.w.host["anchor"] for one in alone]))
    return all(np.array_equal(x, np.concatenate(y), equal_nan=True) for x, y in pairs)


def placed(model, n, steps=1, dt=DT):
    """Copies at rest."""
    copies = Copies(model, n, dt=dt, steps=steps)
    copies.place(range(n), np.zeros((n, model.nq)), np.zeros((n, model.nv)), np.zeros((n, model.nu)))
    return copies


def test_the_steps_are_those_of_a_stepper(model):
    """The library's stepper, whose sizes of steps are rounded differences of times, ends in the same states."""
    copies, stepper = placed(model, 1, steps=3), Stepper(model, dt=DT)
    for u in np.random.default_rng(0).uniform(0.0, 5.0, (30, 2)):
        assert not len(copies.advance(u[None]))
        stepper.step(u, 3)
        here = stepper.state
        assert np.abs(copies.q[0] - here.q).max() < 1e-10 * np.abs(here.q).max()
        assert np.abs(copies.v[0] - here.v).max() < 1e-10 * np.abs(here.v).max()


def test_a_copy_among_others_is_the_same_to_the_last_bit(model):
    """Copies that restart at different times, and rest at others, go where copies alone do."""
    n, random = 21, np.random.default_rng(1)
    many, alone = placed(model, n, 2), [placed(model, 1, 2) for _ in range(n)]
    for _ in range(12):
        u = random.uniform(0.0, 8.0, (n, 2))
        rests = random.uniform(size=n) < 0.2
        which = np.flatnonzero(random.uniform(size=n) < 0.3)
        q, v = 0.1 * random.normal(size=(2, len(which), model.nq)) * model.dofs.scale
        many.place(which, q, v, u[which])
        many.advance(u, rests)
        for i, one in enumerate(alone):
            if i in which:
                j = which.tolist().index(i)
                one.place([0], q[j : j + 1], v[j : j + 1], u[i : i + 1])
            if not rests[i]:
                one.advance(u[i : i + 1])
    assert np.array_equal(many.q, np.concatenate([one.q for one in alone]))
    assert np.array_equal(many.v, np.concatenate([one.v for one in alone]))


def test_steps_that_are_not_found_are_cut_and_leave_the_others_alone(model):
    """A pull too sudden for the step is taken in parts, in those of a simulation; a copy that finds no part is named,
    and can be placed again."""
    copies, calm = placed(model, 3), placed(model, 1)
    pulls = np.array([[2.0, 0.0], [400.0, 100.0], [1e9, 0.0]])
    copies.place([1], np.zeros((1, model.nq)), np.zeros((1, model.nv)), pulls[1:2])
    assert copies.advance(pulls).tolist() == [2]
    calm.advance(pulls[:1])
    limits = {"method": "sdirk", "dt": DT, "rtol": RTOL, "atol": ATOL}
    cut = ls.simulate(model, DT, u=pulls[1], **limits)
    assert cut.statistics.steps > 1
    assert np.array_equal(copies.q[0], calm.q[0]) and np.array_equal(copies.q[1], cut.q[-1])
    assert np.isfinite(copies.q).all() and np.isfinite(copies.v).all()
    copies.place([2], np.zeros((1, model.nq)), np.zeros((1, model.nv)), np.zeros((1, 2)))
    assert not len(copies.advance(np.tile([2.0, 0.0], (3, 1))))


def test_time_and_anchors_are_those_of_a_stepper():
    """Loads over time, prescribed motions and friction act as in the library's stepper, as long as no step
    is cut, which the two do differently."""
    model = swung()
    copies, stepper = placed(model, 1, steps=5, dt=2e-4), Stepper(model, dt=2e-4)
    for u in np.random.default_rng(0).uniform(0.0, 1.0, (30, 1)):
        assert not len(copies.advance(u[None]))
        stepper.step(u, 5)
        here = stepper.state
        assert np.abs(copies.q[0] - here.q).max() < 1e-9 * np.abs(here.q).max()
        assert np.abs(copies.v[0] - here.v).max() < 1e-9 * np.abs(here.v).max()
    assert np.isfinite(copies.w.host["anchor"]).any()


def test_each_copy_has_a_time_and_anchors_of_its_own():
    """Copies that restart at different times begin at time zero, without anchors of friction, and go where
    copies alone do, also where steps are cut."""
    model, n, random = swung(), 7, np.random.default_rng(2)
    many, alone = placed(model, n, 2), [placed(model, 1, 2) for _ in range(n)]
    held = 0
    for _ in range(15):
        u = random.uniform(0.0, 2.0, (n, 1))
        u[random.uniform(size=n) < 0.1] = 3e3
        rests = random.uniform(size=n) < 0.1
        which = np.flatnonzero(random.uniform(size=n) < 0.15)
        q, v = 0.05 * random.normal(size=(2, len(which), model.nq)) * model.dofs.scale
        many.place(which, q, v, u[which])
        many.advance(u, rests)
        for i, one in enumerate(alone):
            if i in which:
                j = which.tolist().index(i)
                one.place([0], q[j : j + 1], v[j : j + 1], u[i : i + 1])
            if not rests[i]:
                one.advance(u[i : i + 1])
        held += int(np.isfinite(many.w.host["anchor"]).any())
        assert agree(many, alone)
    assert held > 5
    fresh = placed(model, 1, 2)
    many.place([3], np.zeros((1, model.nq)), np.zeros((1, model.nv)), np.zeros((1, 1)))
    many.advance(np.zeros((n, 1)))
    fresh.advance(np.zeros((1, 1)))
    assert np.array_equal(many.q[3], fresh.q[0])


def test_copies_of_a_batch_of_models_are_those_of_its_models():
    """Copies of models that differ in stiffness and in a load go where copies of each of these alone do."""
    models = [swung(young, weight) for young, weight in ((1e6, 0.1), (2e6, 0.3), (4e6, 0.2))]
    batch, random = ls.ModelBatch(models), np.random.default_rng(3)
    many, alone = placed(batch.common, 6, 2), [placed(models[k // 2], 1, 2) for k in range(6)]
    for _ in range(8):
        u = random.uniform(0.0, 2.0, (6, 1))
        which = np.flatnonzero(random.uniform(size=6) < 0.3)
        q, v = 0.05 * random.normal(size=(2, len(which), batch.nq)) * models[0].dofs.scale
        many.place(which, q, v, u[which])
        many.advance(u)
        for i, one in enumerate(alone):
            if i in which:
                j = which.tolist().index(i)
                one.place([0], q[j : j + 1], v[j : j + 1], u[i : i + 1])
            one.advance(u[i : i + 1])
        assert agree(many, alone)
    assert len(np.unique(many.q[:, 1])) == 6


def test_what_copies_cannot_do_is_reported(model):
    """Functions of the state and wrong numbers are refused, with the fault."""
    robot = arm().description
    robot.add_force("pull", "arm", lambda t, g, eta: np.zeros(6))
    with pytest.raises(ls.ModelError, match="must need kernels alone"):
        Copies(robot.build(), dt=DT)
    with pytest.raises(ls.ModelError, match="copies: must be an integer >= 1"):
        Copies(model, 0, dt=DT)
    with pytest.raises(ls.ShapeError, match="q"):
        placed(model, 1).place([0], np.zeros((1, 1)), np.zeros((1, model.nv)), np.zeros((1, 2)))
