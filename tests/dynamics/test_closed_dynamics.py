"""Forward dynamics of robots with loops block by block against the whole matrix, and on large nets."""

from copy import copy

import numpy as np
import pytest
from dynamics.small_robots import looped
from gallery.examples import example
from net_robots import BAR, describe_net, turned

import lissom as ls
from lissom.dynamics import forward_dynamics
from lissom.dynamics.forward_dynamics import run_forward_dynamics, solves_closed

HINGE = ls.JointRevolute((0, 0, 1))


@pytest.fixture
def by_blocks(monkeypatch):
    """Every robot with loops that can is solved by blocks."""
    monkeypatch.setattr(forward_dynamics, "_LEAST_COORDINATES_CLOSED", 0)


def both_ways(monkeypatch, model, q, v, u=None, t=0.0):
    """Accelerations and constraint forces by the whole matrix, and by blocks, with a pull onto the loops."""
    found = []
    for least in (model.nv + 1, 0):
        monkeypatch.setattr(forward_dynamics, "_LEAST_COORDINATES_CLOSED", least)
        one = copy(model)
        assert solves_closed(one) == (least == 0)
        w = run_forward_dynamics(one, q, v, np.zeros(model.nu) if u is None else u, t, 3.0)
        assert not w.status.any()
        found.append((w.host["a"].copy(), w.host["force"].copy(), w.host["slot"] >= 0))
    return found


def state(model, seed, size=0.05):
    """A random state near the neutral one; loops are open by as much."""
    rng = np.random.default_rng(seed)
    return ls.integrate(model, model.neutral(), size * rng.normal(size=model.nv)), rng.normal(size=model.nv)


def hung():
    """A net of bars on ball joints that floats, with one bar that follows a motion."""
    robot = describe_net(1, 2, body=BAR, joint=ls.JointSpherical(stiffness=0.2), root=ls.JointFree())
    robot.add_link("flap", BAR, HINGE, parent="h1_0")
    robot.add_joint_motion("wave", "flap", position=lambda t: 0.3 * np.sin(t))
    return robot


def crossed():
    """Rods of which two ends are tied to each other and one to a place on a rod that is on the way to the base."""
    robot = describe_net(2, 1)
    robot.add_loop("cross", "v1_0", "h0_0", s_b=0.5, joint=ls.JointUniversal((1, 0, 0), (0, 1, 1)))
    robot.add_loop("rail", "h2_0", placement_b=turned(0.3), joint=ls.JointCylindrical((1, 0, 0)))
    return robot


NETS = {
    "welded": lambda: describe_net(2, 3),
    "balls": lambda: describe_net(3, 2, loop=ls.JointSpherical()),
    "held": lambda: describe_net(2, 2, held=((2, 0), (2, 2), (0, 2))),
    "turning": lambda: describe_net(2, 2, joint=ls.JointRevolute((0, 0, 1), stiffness=0.1), held=((2, 0),)),
    "hung": hung,
    "crossed": crossed,
}


@pytest.mark.parametrize("net", NETS)
def test_accelerations_are_those_of_the_whole_matrix(monkeypatch, net):
    """To 1e-9 of the largest, with the constraint forces: welded, by other joints, to the world, across a rod, free."""
    model = NETS[net]().build()
    whole, blocks = both_ways(monkeypatch, model, *state(model, 1), np.full(model.nu, 0.5), 0.4)
    for one, other in zip(whole[:2], blocks[:2]):
        np.testing.assert_allclose(other, one, rtol=0.0, atol=1e-9 * np.abs(one).max())
    assert whole[2].all()
    assert blocks[2].all()


def planar(rows, columns):
    """Squares of bars on hinges about z, of whose loops' five rows two are independent."""
    return describe_net(rows, columns, body=BAR, joint=HINGE, root=HINGE, loop=HINGE).build()


def closed_state(model):
    """A random state of closed loops that stay so."""
    q = ls.assemble(model, 0.1 * np.random.default_rng(2).normal(size=model.nv))
    v, A = np.random.default_rng(3).normal(size=model.nv), ls.constraint_jacobian(model, q)
    return q, v - np.linalg.pinv(A) @ (A @ v)


@pytest.mark.filterwarnings("ignore::lissom.errors.RedundancyWarning")
def test_dependent_rows_are_left_out(monkeypatch):
    """As many rows are chosen as by the whole matrix, and the accelerations are the same."""
    for model in (planar(2, 2), planar(1, 3)):
        q, v = closed_state(model)
        whole, blocks = both_ways(monkeypatch, model, q, v)
        assert blocks[2].sum() == whole[2].sum() == np.linalg.matrix_rank(ls.constraint_jacobian(model, q))
        assert blocks[2].sum() < model.n_rows
        np.testing.assert_allclose(blocks[0], whole[0], rtol=0.0, atol=1e-9 * np.abs(whole[0]).max())


@pytest.mark.filterwarnings("ignore::lissom.errors.RedundancyWarning")
def test_forces_of_dependent_rows_have_least_norm(by_blocks):
    """Those of a motion lie in the range of the constraint Jacobian, and move the robot as the blocks found."""
    model = planar(1, 2)
    assert solves_closed(model)
    motion = ls.simulate(model, 0.02, *closed_state(model), method="radau")
    for q, v, a, force in zip(motion.q, motion.v, motion.a, motion.multipliers):
        A = ls.constraint_jacobian(model, q)
        held = A.T @ force
        assert np.abs(ls.inverse_dynamics(model, q, v, a) - held).max() < 1e-9 * np.abs(held).max()
        least = np.linalg.pinv(A.T, rcond=1e-9) @ held
        np.testing.assert_allclose(force, least, rtol=0.0, atol=1e-9 * np.abs(force).max())


def test_a_link_without_mass_that_a_loop_holds(by_blocks):
    """Blocks alone cannot tell what moves it; the whole matrix then does."""
    robot, axis = ls.Robot("light"), ls.JointRevolute((0, 1, 0))
    robot.add_link("base", BAR, ls.JointUniversal((1, 0, 0), (0, 0, 1)))
    robot.add_link("wrist", None, axis, parent="base")
    robot.add_link("tip", BAR, axis, parent="wrist")
    robot.add_loop("lock", "wrist", "base")
    model = robot.build()
    assert solves_closed(model)
    q = np.array([0.1, 0.2, 0.0, 0.5])
    stiff = ls.Robot("stiff")
    stiff.add_link("base", BAR, ls.JointUniversal((1, 0, 0), (0, 0, 1)))
    stiff.add_link("tip", BAR, axis, parent="base")
    want = ls.forward_dynamics(stiff.build(), q[[0, 1, 3]], np.ones(3))
    found = ls.forward_dynamics(model, q, np.array([1.0, 1.0, 0.0, 1.0]))
    np.testing.assert_allclose(found[[0, 1, 3]], want, rtol=1e-9)


def test_what_has_no_mass_in_one_state_of_a_batch(by_blocks):
    """The whole matrix finds that one alone; each is the same to the last bit as by itself."""
    robot = ls.Robot("gimbal")
    robot.add_link("base", BAR, ls.JointUniversal((1, 0, 0), (0, 0, 1)))
    robot.add_link("wrist", None, ls.JointRevolute((0, 1, 0)), parent="base")
    robot.add_link("ring", None, HINGE, parent="wrist")
    ball = ls.RigidBody(1.0, (0.0, 0.0, 0.0), (1e-2, 2e-2, 3e-2))
    robot.add_link("tip", ball, ls.JointRevolute((0, 1, 0)), parent="ring")
    robot.add_loop("lock", "wrist", "base")
    model = robot.build()
    assert solves_closed(model)
    q, v = np.zeros((3, 5)), np.array([1.0, 1.0, 0.0, 0.5, 1.0])
    q[0], q[2] = (0.3, -0.4, 0.0, 0.5, 0.2), (-0.6, 0.2, 0.0, 0.7, 0.9)
    together = ls.forward_dynamics(model, q, v)
    assert any("forward_dynamics dense" in key for key in model.cache if isinstance(key, tuple))
    for k in range(3):
        np.testing.assert_array_equal(together[k], ls.forward_dynamics(model, q[k], v))


def test_large_nets():
    """The equation of motion and the loops are met by 144 rods; memory grows about as their number does."""
    taken = []
    for n in (4, 8):
        model = describe_net(n, n).build()
        q, v = state(model, 4, 0.01)
        assert solves_closed(model)
        w = run_forward_dynamics(model, q, v, np.zeros(0), 0.0)
        a, force = w.host["a"][0].copy(), w.host["force"][0].copy()
        taken.append(w.buffers.nbytes)
        A, still = ls.constraint_jacobian(model, q), w.host["acceleration"][0]
        held = A.T @ force
        assert np.abs(ls.inverse_dynamics(model, q, v, a) - held).max() < 1e-10 * np.abs(held).max()
        assert np.abs(A @ a + still).max() < 1e-12 * (np.abs(A) @ np.abs(a)).max()
    assert taken[1] < 4.5 * taken[0]  # for 3.6 times as many rods


def test_batches_are_their_states(by_blocks):
    """Of states, and of models, to the last bit."""
    designs = describe_net(1, 2).build().batch("h1_0.material.density", [900.0, 1100.0])
    q, v = state(designs[0], 5)
    q, v = np.stack([[q, 0.5 * q, -q]] * 2), np.stack([[v, -v, 0.3 * v]] * 2)
    together = ls.forward_dynamics(designs, q, v)
    for k in range(2):
        assert solves_closed(designs[k])
        np.testing.assert_array_equal(together[k], ls.forward_dynamics(designs[k], q[k], v[k]))
        np.testing.assert_array_equal(together[k][1], ls.forward_dynamics(designs[k], q[k][1], v[k][1]))


def test_which_robots_are_solved_by_blocks(by_blocks):
    """None with most coordinates in one rod, and none where something light hangs at an end."""
    assert not solves_closed(looped())
    robot = describe_net(1, 1)
    assert solves_closed(robot.build())
    robot.add_link("light", None, HINGE, parent="h1_0")
    assert not solves_closed(robot.build())


def test_a_stiff_robot_keeps_its_digits():
    """The parallel robot at a tight tolerance: where accelerations lose digits, bdf takes ten times as many steps."""
    model = example("parallel_robot").build()
    motion = ls.simulate(model, 0.1, ls.solve_statics(model).q, method="bdf", rtol=1e-9, atol=1e-12)
    assert motion.statistics.steps < 1000
