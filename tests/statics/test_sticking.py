"""Equilibria among contacts with friction: their loads, against the end of motions."""

import numpy as np
import pytest
from interrupting import press_at

import lissom as ls
from lissom.dynamics.contacts import present_anchors
from lissom.model import tables

SLOW = {"method": "generalized_alpha", "dt": 2e-3}


def finger(extra=None, **law):
    """A soft finger over a plane, pulled onto it by a tendon."""
    robot = ls.Robot("finger")
    basis = ls.BasisLegendre(bending_y=3, elongation=1)
    material = ls.Material(young=3e5, density=1100, viscosity=300)
    robot.add_link("finger", ls.Rod(0.2, ls.SectionCircle((0.012, 0.008)), basis, material, None, 6))
    robot.add_tendon("flexor", "finger", lambda s: (0.0, -0.008))
    g = np.eye(4)
    g[2, 3] = -0.03
    whole = {"stiffness": 1e4, "friction": 0.6, "stick_stiffness": 1e4} | law
    robot.add_contact("plane", "finger", ls.ShapePlane(), placement=g, **whole)
    if extra is not None:
        robot.add_force("extra", "finger", extra, s=1.0)
    return robot.build()


def friction_and_push(model, anchors, q):
    """Sums of tangential and normal forces on the finger."""
    force = ls.contact_forces(model.anchored(anchors), q).force.sum(axis=0)
    return np.linalg.norm(force[:2]), force[2]


@pytest.fixture(scope="module")
def pulled():
    """The finger and its equilibrium at 6 N."""
    model = finger()
    return model, ls.solve_statics(model, [6.0])


def test_statics_has_friction(pulled):
    """Let go bit by bit, the fingertip slides along the plane as far as friction 0.6 allows, and stays there; the
    anchors make it an equilibrium of their own."""
    model, found = pulled
    along, push = friction_and_push(model, found.anchors, found.q)
    assert push > 0.4 and along == pytest.approx(0.6 * push, rel=1e-9)
    held = model.anchored(found.anchors)
    still = np.zeros(model.nv)
    left = ls.inverse_dynamics(held, found.q, still, still) - ls.actuation_matrix(held, found.q) @ [6.0]
    assert np.abs(left).max() < 1e-9
    motion = ls.simulate(held, 0.5, found.q, u=[6.0], **SLOW)
    assert np.abs(motion.q - found.q).max() < 1e-7 * np.abs(found.q).max()


def test_statics_is_where_dynamics_comes_to_rest():
    """From the end of a motion whose tension rises, with its anchors, statics stays; from the start, let go bit by bit,
    it finds about the same place."""
    model = finger(damping=1.0)
    ramp = ls.Samples([0.0, 2.0], [[0.0], [6.0]])
    motion = ls.simulate(model, 8.0, u=ramp, t_eval=[8.0], **SLOW)
    speed = np.abs(motion.v[-1]).max()
    held = ls.solve_statics(model.anchored(motion.anchors), [6.0], motion.q[-1])
    assert speed < 1e-4 and np.abs(held.q - motion.q[-1]).max() < 1e-6
    path = ls.solve_statics(model, [6.0])
    scale = np.abs(held.q).max()
    assert np.abs(path.q - held.q).max() < 0.03 * scale


def gripper():
    """Three soft fingers that hang around a ball."""
    robot = ls.Robot("gripper")
    basis = ls.BasisLegendre(bending_y=2, bending_z=2)
    rod = ls.Rod(0.12, ls.SectionCircle(0.01), basis, ls.Material(young=4e5, density=1000, damping_time=0.05), None, 5)
    for k in range(3):
        turn, g = ls.lie.so3_exp([0.0, 0.0, 2 * np.pi * k / 3]), np.eye(4)
        g[:3, :3] = turn @ [[0.0, -1.0, 0.0], [0.0, 0.0, 1.0], [-1.0, 0.0, 0.0]]
        g[:3, 3] = turn @ [0.04, 0.0, 0.1]
        robot.add_link(f"finger {k}", rod, placement=g)
        robot.add_tendon(f"flexor {k}", f"finger {k}", lambda s: (0.008, 0.0))
    robot.add_link("ball", ls.RigidBody.sphere(0.03, density=300), ls.JointFree())
    law = {"stiffness": 1e4, "friction": 0.8, "damping": 2.0, "stick_stiffness": 1e4, "stick_damping": 5e-3}
    robot.add_contact("grip", "ball", others=[f"finger {k}" for k in range(3)], **law)
    return robot.build()


def test_a_grip_holds_in_statics_as_in_dynamics():
    """The fingers close on a ball that falls; where it comes to rest it is an equilibrium, and statics goes on from
    there to other tensions, as dynamics does."""
    model, weight = gripper(), 0.03**3 * 4 / 3 * np.pi * 300 * 9.81
    closed = ls.simulate(model, 3.0, u=[1.5, 1.5, 1.6], t_eval=[3.0], **SLOW)
    held = model.anchored(closed.anchors)
    found = ls.solve_statics(held, [1.5, 1.5, 1.6], closed.q[-1])
    assert np.abs(found.q - closed.q[-1]).max() < 1e-8
    carried = ls.contact_forces(model.anchored(found.anchors), found.q).force.sum(axis=0)
    np.testing.assert_allclose(carried, [0, 0, weight], atol=1e-9)
    more = ls.solve_statics(model.anchored(found.anchors), [1.6, 1.6, 1.7], found.q)
    ramp = ls.Samples([0.0, 0.5], [[1.5, 1.5, 1.6], [1.6, 1.6, 1.7]])
    motion = ls.simulate(model.anchored(found.anchors), 3.0, found.q, u=ramp, t_eval=[3.0], **SLOW)
    np.testing.assert_allclose(more.q, motion.q[-1], atol=1e-5 * np.abs(more.q).max())


def test_python_and_kernel_and_continuation_agree(pulled):
    """Newton's method in Python finds the equilibrium of the kernel; continuation at full load starts from it."""
    model, found = pulled
    same = ls.solve_statics(finger(lambda t, g, eta: np.zeros(6)), [6.0])
    np.testing.assert_allclose(same.q, found.q, atol=1e-8)
    held = model.anchored(found.anchors)
    branch = ls.continuation(held, u=[6.0], q0=found.q, factor=1.0, factor_range=(0.98, 1.0), direction=-1)
    np.testing.assert_allclose(branch.q[0], found.q, atol=1e-9)


def test_a_batch_is_its_rows(pulled):
    """Each row of a batch has a path and anchors of its own."""
    model, found = pulled
    batch = ls.solve_statics(model, [[5.0], [6.0]])
    assert batch.anchors.shape == (2, *found.anchors.shape)
    np.testing.assert_array_equal(batch.q[1], found.q)
    np.testing.assert_array_equal(batch.anchors[1], found.anchors)
    assert ls.solve_statics(model, np.zeros((0, 1))).anchors.shape == (0, *found.anchors.shape)


def test_friction_that_statics_leaves_out_is_reported():
    """The law of speed has no friction at rest: statics and continuation say so; without friction there is nothing to
    say."""
    model = finger(stick_stiffness=None)
    text = "contact 'plane': its friction is a law of speed, so that statics leaves it out; give the"
    with pytest.warns(ls.AccuracyWarning, match=text):
        found = ls.solve_statics(model, [6.0])
    assert friction_and_push(model, found.anchors, found.q)[0] == 0.0
    with pytest.warns(ls.AccuracyWarning, match=text):
        ls.continuation(model, u=[6.0], q0=found.q, factor=1.0, factor_range=(0.98, 1.0), direction=-1)
    ls.solve_statics(finger(stick_stiffness=None, friction=0.0), [6.0])


def test_wrong_anchors_and_methods_are_refused(pulled):
    """Anchors of another shape, and methods that cannot store them."""
    model, found = pulled
    with pytest.raises(ls.ShapeError, match=r"anchors: expected shape \(\d+, 6\), got \(1, 6\)"):
        model.anchored(found.anchors[:1])
    with pytest.raises(ls.ShapeError, match="a row must be finite"):
        model.anchored(np.full(found.anchors.shape, np.inf))
    for method in ("bdf", "radau", "dop853"):
        with pytest.raises(ls.ModelError, match=f"contact 'plane': stick_stiffness needs a method .*got '{method}'"):
            ls.simulate(model, 0.1, method=method)


def test_interrupted_equilibria_are_kept(monkeypatch, pulled):
    """Purpose: of those that are sought one after the other the first is left by Ctrl-C in the second, with anchors."""
    model, whole = pulled
    press_at(monkeypatch, "statics.equilibrium", 2)
    with pytest.raises(KeyboardInterrupt) as stop:
        ls.solve_statics(model, [[6.0], [5.0], [4.0]])
    found = stop.value.partial
    assert found.q.shape == (1, model.nq)
    np.testing.assert_array_equal(found.q[0], whole.q)
    np.testing.assert_array_equal(found.anchors[0], whole.anchors)


def test_tables_of_searches_serve_again(pulled, monkeypatch):
    """A second search makes no tables, and leaves the model of the first as it was, whose anchors are those found."""
    model, found = pulled
    still = np.zeros(model.nv)
    held = ls.forward_dynamics(found.model, found.q, still, [6.0])
    np.testing.assert_array_equal(found.model.contacts.anchors, found.anchors)
    monkeypatch.setattr(tables, "_make", None)
    other = ls.solve_statics(model, [1.0])
    monkeypatch.undo()
    assert np.abs(other.q - found.q).max() > 1e-3
    np.testing.assert_array_equal(ls.forward_dynamics(found.model, found.q, still, [6.0]), held)
    with pytest.raises(ls.ConvergenceError) as failed:
        ls.solve_statics(model, [6.0], max_iterations=1)
    last = failed.value.partial.model
    ls.solve_statics(model, [6.0])
    np.testing.assert_array_equal(present_anchors(last), last.contacts.anchors)
