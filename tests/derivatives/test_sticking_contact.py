"""Derivatives with contacts that hold by anchors against central differences, where they stick and where they slip."""

import numpy as np
import pytest
from derivatives.test_surroundings import SHAPES, check, check_touching
from touching_robots import BASES, LAW, RADIUS, hybrid, rod, state, touching_shape

import lissom as ls

STICKS = {"stick_stiffness": 30.0, "stick_damping": 0.01}
SLIPS = {"stick_stiffness": 3e4, "stick_damping": 0.01}
LAWS = {"sticks": STICKS, "slips": SLIPS}


def shares(model, q, v):
    """Friction over the most there can be, of each pair that touches."""
    found = ls.contact_forces(model, q, v)
    N = (found.force * found.normal).sum(axis=1)
    return np.linalg.norm(found.force - N[:, None] * found.normal, axis=1) / (LAW["friction"] * N)


def displaced(model, q, v, name):
    """The model anchored at a state nearby, from which it has slipped and rolled; that it does as it is named."""
    world, rng, touching = model.contacts, np.random.default_rng(4), np.isfinite(ls.contact_anchors(model, q))
    assert touching.any() and world.sticks
    for _ in range(50):  # until what touches here touches there, too
        before = ls.integrate(model, q, 0.01 * rng.normal(size=model.nv) * model.dofs.scale)
        anchors = ls.contact_anchors(model, before)
        if (np.isfinite(anchors) | ~touching).all():
            break
    held = model.anchored(anchors)
    found = shares(held, q, v)
    assert np.isfinite(anchors[touching]).all()
    held_back = found < 0.95
    assert np.allclose(found[~held_back], 1.0, rtol=1e-12)  # none is near the switch
    assert held_back.any() if name == "sticks" else not held_back.any()
    return held


def with_law(monkeypatch, name):
    """Give the robots of touching_robots a law that sticks."""
    for key, value in LAWS[name].items():
        monkeypatch.setitem(LAW, key, value)


def each_shape():
    """Shapes and laws. Each shape has one law in the fast run, and each law shapes in the world and on a link."""
    for k, place in enumerate(SHAPES):
        for j, name in enumerate(LAWS):
            yield pytest.param(place, name, marks=[pytest.mark.slow] * ((k // 2 + j) % 2))


@pytest.mark.parametrize(("place", "name"), list(each_shape()))
def test_shapes(place, name, monkeypatch):
    """Purpose: every shape, in the world and on a moving link, away from the switch between stick and slip."""
    with_law(monkeypatch, name)
    shape, centre = SHAPES[place]
    seed = list(SHAPES).index(place)
    moves = bool((seed + (name == "sticks")) % 2)
    model, shape, (q, v, a) = touching_shape(list(BASES)[seed % 3], shape, centre, seed, moves=moves)
    check_touching(model, shape, q, v)
    check(displaced(model, q, v, name), q, v, a)


@pytest.mark.parametrize("name", LAWS)
def test_balls_of_other_links(name, monkeypatch):
    """Purpose: balls of one rod against those of another, and of a body."""
    with_law(monkeypatch, name)
    bare = hybrid("free").build()
    q, v, a = state(bare, 5)
    g = ls.frame_pose(bare, q, "base")
    there, here = (ls.frame_pose(bare, q, *at)[:3, 3] for at in (("a", 0.5), ("b", 0.5)))
    foot = np.array([0.0, -0.05, 0.0]) + g[:3, :3].T @ (there - here + 1.4 * RADIUS * g[:3, 0])
    robot = hybrid("free", tuple(foot.tolist()))
    robot.add_contact("touch", ["a", "ball"], others="b", radius=RADIUS, **LAW)
    model = robot.build()
    check_touching(model, None, q, v)
    check(displaced(model, q, v, name), q, v, a)


@pytest.mark.parametrize("name", LAWS)
def test_self_contact(name, monkeypatch):
    """Purpose: a rod curled up until its tip lies at its foot sticks to itself."""
    with_law(monkeypatch, name)
    robot = hybrid("fixed")
    robot.add_contact("touch", ["a", "b"], others=["a", "b"], radius=RADIUS, **LAW)
    model = robot.build()
    q, v, a = state(model, 8, 0.02)
    first = model.nq - 21 - 4  # of rod a, in front of rod b on its joint and the hinge
    q = q.copy()
    q[first + 5] += 1.8 * np.pi / rod().length
    check_touching(model, None, q, v)
    check(displaced(model, q, v, name), q, v, a)
