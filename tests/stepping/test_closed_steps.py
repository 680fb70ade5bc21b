"""Implicit steps of robots with loops block by block against those with the whole matrix."""

from copy import copy

import numpy as np
import pytest
from dynamics.test_closed_dynamics import HINGE, NETS, planar
from net_robots import describe_net

import lissom as ls
from lissom.stepping import step_kernel
from lissom.stepping.newton_stages import BEGIN, CORRECT
from lissom.stepping.schemes import ORDER_SHARE, StepState, generalized_alpha
from lissom.stepping.step_rows import scheme_numbers
from lissom.systems import newton_blocks
from lissom.systems.newton_blocks import steps_by_blocks


def direction(model, q, v, a, force, h):
    """The first change of Δ and of the constraint forces by Newton's method in a step from a state."""
    w = step_kernel.steps_workspace(model, 1)
    begin = StepState(0.0, q, v, a, a, h, force, np.zeros(0), a, force)
    scheme = generalized_alpha()
    step_kernel.put_start(w, scheme_numbers(scheme, 1e-6, (1e-8, 1e-8), False, ORDER_SHARE), begin, 1, False, (0, 0))
    w.host["h"][0, 1] = h
    step_kernel.put_inputs(w, np.zeros((1, 1, model.nu)), 1)
    step_kernel.put_times(model, w, [h])
    before = np.zeros(0), np.zeros(0)
    for part in range(BEGIN, CORRECT + 1):
        before = w.host["move"][0].copy(), w.host["force"][0].copy()
        w.host["pause"][0] = 1, part, 0, 0
        w.run()
    return (w.host["move"][0] - before[0]) / model.dofs.scale, w.host["force"][0] - before[1]


@pytest.mark.parametrize("net", NETS)
def test_direction_is_that_of_the_whole_matrix(monkeypatch, net):
    """At random states with open loops and large forces in them, which turn with their ends, to 1e-9 of the largest."""
    model = NETS[net]().build()
    rng = np.random.default_rng(7)
    for h in (0.05, 1e-3):
        q = ls.integrate(model, model.neutral(), 0.05 * rng.normal(size=model.nv))
        v, a, force = rng.normal(size=model.nv), rng.normal(size=model.nv), rng.normal(size=model.n_rows)
        found = []
        for least in (model.nv + 1, 0):
            monkeypatch.setattr(newton_blocks, "_LEAST_COORDINATES", least)
            one = copy(model)
            assert steps_by_blocks(one) == (least == 0)
            found.append(direction(one, q, v, a, force, h))
        for whole, blocks in zip(*found):
            np.testing.assert_allclose(blocks, whole, rtol=0.0, atol=1e-9 * np.abs(whole).max())


def both_ways(monkeypatch, model, *state, **options):
    """A motion with the whole matrix, and block by block."""
    found = []
    for least in (model.nv + 1, 0):
        monkeypatch.setattr(newton_blocks, "_LEAST_COORDINATES", least)
        found.append(ls.simulate(copy(model), 0.02, *state, **options))
    return found


@pytest.mark.parametrize("method", ["generalized_alpha", "newmark", "esdirk", "auto"])
def test_motions_are_those_of_the_whole_matrix(monkeypatch, method):
    """Of one stage and of several, damping and not, with steps of a given size and as long as errors allow."""
    options = {"rtol": 1e-5} if method == "auto" else {"dt": 4e-3}
    model = NETS["balls"]().build()
    whole, blocks = both_ways(monkeypatch, model, method=method, **options)
    scale = np.abs(whole.q[-1]).max()
    np.testing.assert_allclose(blocks.q[-1], whole.q[-1], atol=1e-8 * scale)
    assert blocks.statistics.jacobians == whole.statistics.jacobians
    assert np.abs(ls.loop_residual(model, blocks.q)).max() < 1e-10


@pytest.mark.filterwarnings("ignore::lissom.errors.RedundancyWarning")
def test_dependent_rows_are_left_out(monkeypatch):
    """A mechanism of bars whose loops ask more than once for the same moves as with the whole matrix."""
    model = planar(2, 2)
    whole, blocks = both_ways(monkeypatch, model, method="generalized_alpha", dt=2e-3)
    np.testing.assert_allclose(blocks.q[-1], whole.q[-1], atol=1e-9)
    np.testing.assert_allclose(blocks.v[-1], whole.v[-1], atol=1e-7)
    assert np.abs(ls.loop_residual(model, blocks.q)).max() < 1e-10


def test_a_batch_is_its_motions(monkeypatch):
    """Block by block, to the last bit."""
    monkeypatch.setattr(newton_blocks, "_LEAST_COORDINATES", 0)
    model = describe_net(1, 2).build()
    q = np.array([ls.assemble(model, row) for row in 0.05 * np.random.default_rng(4).normal(size=(3, model.nv))])
    options = {"dt": 2e-3, "method": "generalized_alpha", "t_eval": [0.0, 0.01]}
    together = ls.simulate(model, 0.01, q, **options)
    for k in range(3):
        np.testing.assert_array_equal(together.q[k], ls.simulate(model, 0.01, q[k], **options).q)


def test_memory_of_large_nets():
    """Grows about as the number of rods does; loops stay closed."""
    taken = []
    for n in (3, 6):
        model = describe_net(n, n).build()
        assert steps_by_blocks(model)
        motion = ls.simulate(model, 0.01, dt=5e-3, method="generalized_alpha")
        assert np.abs(ls.loop_residual(model, motion.q[-1])).max() < 1e-10
        taken.append(step_kernel.steps_workspace(model, 1).buffers.nbytes)
    assert taken[1] < 5.0 * taken[0]  # for 3.5 times as many rods


def test_what_else_ties_links_needs_the_whole_matrix(monkeypatch):
    """A spring between two links, beside loops."""
    monkeypatch.setattr(newton_blocks, "_LEAST_COORDINATES", 0)
    robot = describe_net(1, 1, joint=HINGE)
    assert steps_by_blocks(robot.build())
    robot.add_spring("tie", "h0_0", "h1_0", stiffness=10.0)
    assert not steps_by_blocks(robot.build())
