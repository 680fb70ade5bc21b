"""Implicit steps block by block against those with the whole matrix."""

from copy import copy

import numpy as np
import pytest
from dynamics.small_robots import describe_mixed, looped, rod

import lissom as ls
from lissom.stepping import step_kernel
from lissom.stepping.newton_stages import BEGIN, CORRECT
from lissom.stepping.schemes import ORDER_SHARE, StepState, generalized_alpha
from lissom.stepping.step_rows import scheme_numbers
from lissom.systems import newton_blocks
from lissom.systems.newton_blocks import steps_by_blocks


def direction(model, q, v, a, u, h):
    """The first change of Δ by Newton's method in a step."""
    w = step_kernel.steps_workspace(model, 1)
    begin = StepState(0.0, q, v, a, a, h, np.zeros(0), np.zeros(0), a, np.zeros(0))
    scheme = generalized_alpha()
    step_kernel.put_start(w, scheme_numbers(scheme, 1e-6, (1e-8, 1e-8), False, ORDER_SHARE), begin, 1, False, (0, 0))
    w.host["h"][0, 1] = h
    step_kernel.put_inputs(w, u[None, None], 1)
    step_kernel.put_times(model, w, [h])
    before = np.zeros(0)
    for part in range(BEGIN, CORRECT + 1):
        before = w.host["move"][0].copy()
        w.host["pause"][0] = 1, part, 0, 0
        w.run()
    return w.host["move"][0] - before


def tree():
    """A free body that carries rods and joints of many kinds, in branches, with a prescribed motion and tendons."""
    robot = describe_mixed()
    soft = ls.Material(young=3e5, density=1000.0, viscosity=3e3)
    plane = ls.Rod(0.2, ls.SectionCircle(0.01), ls.BasisLegendre(bending_y=2, elongation=0), soft)
    robot.add_link("tail", plane, ls.JointUniversal((1, 0, 0), (0, 1, 0), stiffness=0.3), parent="arm", at=0.4)
    robot.add_link("fin", ls.RigidBody.box(0.1, 0.05, 0.01, density=500.0), ls.JointFixed(), parent="tail")
    robot.add_link("flap", ls.RigidBody.box(0.1, 0.05, 0.01, density=500.0), ls.JointRevolute(), parent="fin")
    robot.add_joint_motion("wave", "flap", position=lambda t: 0.3 * np.sin(t))
    robot.add_link("leg", plane, ls.JointRevolute((0, 1, 0), damping=0.01, armature=1e-3), parent="base")
    robot.add_tendon("pull", "leg", (0.0, 0.008))
    return robot.build()


def test_direction_is_that_of_the_whole_matrix(monkeypatch):
    """At random states of a tree of free, spherical and other joints and rods, to 1e-10 of the largest change."""
    model = tree()
    rng = np.random.default_rng(0)
    for h in (0.1, 0.01, 1e-3):
        q = ls.integrate(model, model.neutral(), 0.3 * rng.normal(size=model.nv))
        v, a, u = rng.normal(size=model.nv), rng.normal(size=model.nv), rng.uniform(size=model.nu)
        found = []
        for least in (model.nv + 1, 0):
            monkeypatch.setattr(newton_blocks, "_LEAST_COORDINATES", least)
            one = copy(model)
            assert steps_by_blocks(one) == (least == 0)
            found.append(direction(one, q, v, a, u, h) / model.dofs.scale)
        whole, blocks = found
        np.testing.assert_allclose(blocks, whole, rtol=0.0, atol=1e-10 * np.abs(whole).max())


@pytest.fixture
def by_blocks(monkeypatch):
    """Every robot that can takes its steps by blocks."""
    monkeypatch.setattr(newton_blocks, "_LEAST_COORDINATES", 0)


def both_ways(monkeypatch, model, **options):
    """A motion with the whole matrix, and block by block."""
    found = []
    for least in (model.nv + 1, 0):
        monkeypatch.setattr(newton_blocks, "_LEAST_COORDINATES", least)
        found.append(ls.simulate(copy(model), 0.02, **options))
    return found


@pytest.mark.parametrize("method", ["generalized_alpha", "bathe", "esdirk", "auto"])
def test_motions_are_those_of_the_whole_matrix(monkeypatch, method):
    """Of one stage and of several, with steps of a given size and as long as errors allow."""
    options = {"rtol": 1e-6} if method == "auto" else {"dt": 2e-3}
    whole, blocks = both_ways(monkeypatch, tree(), method=method, **options)
    np.testing.assert_allclose(blocks.q[-1], whole.q[-1], atol=1e-9)
    np.testing.assert_allclose(blocks.v[-1], whole.v[-1], atol=1e-7)
    assert blocks.statistics.jacobians == whole.statistics.jacobians


def test_feedback_takes_the_whole_matrix(monkeypatch):
    """Its derivatives tie all coordinates to all; the steps are the same."""
    model = tree()

    def law(t, q, v):
        return np.full(model.nu, 0.1) - 0.2 * v[: model.nu]

    whole, blocks = both_ways(monkeypatch, model, method="generalized_alpha", dt=5e-3, controller=law)
    np.testing.assert_array_equal(blocks.q, whole.q)


def test_a_batch_is_its_motions(by_blocks):
    """Block by block, to the last bit."""
    model = tree()
    rng = np.random.default_rng(4)
    q = ls.integrate(model, model.neutral(), 0.1 * rng.normal(size=(3, model.nv)))
    options = {"dt": 2e-3, "method": "generalized_alpha", "t_eval": [0.0, 0.01]}
    together = ls.simulate(model, 0.01, q, **options)
    for k in range(3):
        np.testing.assert_array_equal(together.q[k], ls.simulate(model, 0.01, q[k], **options).q)


def test_designs_are_single_models(by_blocks):
    """A batch of models by blocks moves as each model does, to the last bit."""
    designs = describe_mixed().build().batch("arm.material.density", [900.0, 1100.0], "arm.length", [0.2, 0.4])
    q = ls.integrate(designs[0], designs[0].neutral(), 0.1 * np.random.default_rng(5).normal(size=(2, designs[0].nv)))
    options = {"dt": 2e-3, "method": "generalized_alpha", "t_eval": [0.0, 0.01]}
    assert steps_by_blocks(designs[0])
    together = ls.simulate(designs, 0.01, q, **options)
    for k in range(2):
        np.testing.assert_array_equal(together.q[k], ls.simulate(designs[k], 0.01, q[k], **options).q)


def rods(count, *, tied=False):
    """Soft rods, each on the one before the last, with two coordinates each."""
    robot = ls.Robot("rods")
    material = ls.Material(young=1e7, density=1000.0, viscosity=1e4)
    rod = ls.Rod(0.2, ls.SectionCircle(0.02), ls.BasisLegendre(bending_y=0, bending_z=0), material)
    for k in range(count):
        robot.add_link(f"rod{k}", rod, parent=f"rod{k // 2 - 1}" if k > 1 else None)
    if tied:
        robot.add_spring("tie", "rod0", "rod1", stiffness=10.0)
    robot.add_tendon("tendon", "rod0", (0.0, 0.01))
    return robot.build()


def test_memory_grows_with_the_number_of_links():
    """And accelerations at the end of a step are those of the equation of motion."""
    taken = []
    for count in (50, 200):
        model = rods(count)
        assert steps_by_blocks(model)
        motion = ls.simulate(model, 0.01, dt=5e-3, u=np.ones(1), method="generalized_alpha")
        q, v, a = motion.q[-1], motion.v[-1], motion.a[-1]
        rest = ls.inverse_dynamics(model, q, v, a) - ls.actuation_matrix(model, q) @ np.ones(1)
        most = np.abs(ls.inverse_dynamics(model, q, v, 0.0 * a)).max()
        assert np.abs(rest).max() < 1e-6 * most
        taken.append(step_kernel.steps_workspace(model, 1).buffers.nbytes)
    assert taken[1] < 4.2 * taken[0]


def test_what_ties_links_needs_the_whole_matrix(by_blocks):
    """Springs between links, loops, and most coordinates in one rod."""
    assert steps_by_blocks(rods(4))
    assert not steps_by_blocks(rods(4, tied=True))
    assert not steps_by_blocks(looped())
    assert not steps_by_blocks(rod())
