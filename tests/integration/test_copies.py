"""Copies in motion do what each does alone, whatever happens to the others."""

from __future__ import annotations

import numpy as np
import pytest

import lissom as ls
from lissom.integration.copies import Copies
from lissom.integration.stepper import Stepper

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


def placed(model, n, steps=1):
    """Copies at rest."""
    copies = Copies(model, n, dt=DT, steps=steps)
    copies.place(range(n), np.zeros((n, model.nq)), np.zeros((n, model.nv)), np.zeros((n, model.nu)))
    return copies


def test_the_steps_are_those_of_a_stepper(model):
    """The library's stepper, whose sizes of steps are rounded differences of times, ends in the same states."""
    copies, stepper = placed(model, 1, steps=3), Stepper(model, dt=DT)
    for u in np.random.default_rng(0).uniform(0.0, 5.0, (30, 2)):
        assert not len(copies.advance(u[None]))
        here = stepper.advance(3, u)
        assert np.abs(copies.q[0] - here.q).max() < 1e-10 * np.abs(here.q).max()
        assert np.abs(copies.v[0] - here.v).max() < 1e-10 * np.abs(here.v).max()


def test_a_copy_among_others_is_the_same_to_the_last_bit(model):
    """Copies that are placed anew at different times, and rest at others, go where copies alone do."""
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
    """A pull too sudden for the step is taken in four parts, as four steps of a quarter are; after one that no part
    follows the copy is told, and can be placed anew."""
    copies, calm = placed(model, 3), placed(model, 1)
    quarters = Copies(model, 1, dt=DT / 4, steps=4)
    quarters.place([0], np.zeros((1, model.nq)), np.zeros((1, model.nv)), np.zeros((1, 2)))
    pulls = np.array([[2.0, 0.0], [400.0, 100.0], [1e9, 0.0]])
    assert copies.advance(pulls).tolist() == [2]
    calm.advance(pulls[:1])
    quarters.advance(pulls[1:2])
    assert np.array_equal(copies.q[0], calm.q[0]) and np.array_equal(copies.q[1], quarters.q[0])
    assert np.isfinite(copies.q).all() and np.isfinite(copies.v).all()
    copies.place([2], np.zeros((1, model.nq)), np.zeros((1, model.nv)), np.zeros((1, 2)))
    assert not len(copies.advance(np.tile([2.0, 0.0], (3, 1))))


def test_what_copies_cannot_do_is_told(model):
    """Loads of the time and wrong numbers are refused, with what is wrong."""
    with pytest.raises(ls.ModelError, match="do not vary in time"):
        Copies(arm(wind=lambda t: (0.0, t, 0.0)), dt=DT)
    with pytest.raises(ls.ModelError, match="copies: must be an integer >= 1"):
        Copies(model, 0, dt=DT)
    with pytest.raises(ls.ShapeError, match="q"):
        placed(model, 1).place([0], np.zeros((1, 1)), np.zeros((1, model.nv)), np.zeros((1, 2)))
