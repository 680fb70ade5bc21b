"""What motions say about their steps: energy that they made, deepest contacts, parts of steps."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import lissom as ls

START = np.array([1.0, 0, 0, 0, 0, 0, 0.09])  # the ball of 2 cm, 7 cm above the floor


def ball(**law):
    """A ball of 2 cm above a floor."""
    robot = ls.Robot("ball")
    robot.add_link("ball", ls.RigidBody.sphere(0.02, density=1200), ls.JointFree())
    robot.add_contact("floor", "ball", ls.ShapePlane(), **law)
    return robot.build()


def largest_rise(x):
    """The largest increase of x from one entry to a later one, by all pairs of entries."""
    return max(0.0, float(np.triu(x[None, :] - x[:, None]).max()))


def made_by_rows(model, q, v):
    """The largest rise of the energy of stored rows. A contact with N ~ δ^1.5 stores N δ / 2.5."""
    found = ls.energy(model, q, v).total
    for k, contacts in enumerate(ls.contact_forces(model, q)):
        found[k] += sum(0.4 * n @ f * depth for n, f, depth in zip(contacts.normal, contacts.force, contacts.depth))
    return largest_rise(found)


DROPS = {
    "implicit Euler": {"dt": 2e-3, "method": "implicit_euler"},
    "default scheme": {"dt": 2e-3},
    "adaptive": {},
    "coarse adaptive": {"rtol": 1e-3},
}


@pytest.mark.parametrize("way", sorted(DROPS))
def test_energy_made_is_the_rise_of_the_energy_of_rows(way):
    """The energy that the steps of a bouncing ball made equals that of its rows; fixed steps make none.

    A ball falls 70 mm with 0.028 J. Rounding is 1e-16 of it for each of the steps, and tolerances of Newton's method
    count with 1e-9.
    """
    model = ball(friction=0.0)
    motion = ls.simulate(model, 0.4, START, **DROPS[way])
    fall = 1200 * 4 / 3 * np.pi * 0.02**3 * 9.81 * 0.07
    assert motion.energy_made == pytest.approx(made_by_rows(model, motion.q, motion.v), rel=1e-6, abs=1e-13)
    assert motion.energy_made < (1e-3 if way == "coarse adaptive" else 1e-9) * fall
    if way == "coarse adaptive":
        assert motion.energy_made > 1e-7 * fall  # the loose tolerance shows


def test_energy_made_without_contacts():
    """An undamped scheme with long steps makes energy in a pendulum, as much as the closed form of its energy rises."""
    robot = ls.Robot("pendulum")
    body = ls.RigidBody(2.0, (0, 0, -0.5), (0.01, 0.02, 0.03))
    robot.add_link("arm", body, ls.JointRevolute((0, 1, 0)))
    model = robot.build()
    motion = ls.simulate(model, 5.0, [2.0], dt=0.05, method="newmark")
    q, v = motion.q[:, 0], motion.v[:, 0]
    energy = 0.5 * (0.02 + 2.0 * 0.5**2) * v**2 - 2.0 * 9.81 * 0.5 * np.cos(q)
    assert largest_rise(energy) > 0.01
    assert motion.energy_made == pytest.approx(largest_rise(energy), rel=1e-9)


def test_work_of_inputs_is_not_made():
    """A flywheel under a motor gains energy that its steps did not make, also if the torque jumps from step to step.

    Both schemes are exact for the speed under constant torques, and so is the trapezoidal rule for their work.
    """
    robot = ls.Robot("wheel", gravity=(0, 0, 0))
    robot.add_link("wheel", ls.RigidBody.cylinder(0.05, 0.1, density=1000), ls.JointRevolute((0, 0, 1)))
    robot.add_joint_actuator("motor", "wheel")
    model = robot.build()
    driven = ls.simulate(model, 0.5, [0.0], [0.0], u=[0.3], dt=0.01, method="newmark")
    gained = ls.energy(model, driven.q, driven.v).total[-1]
    assert gained > 0.1 and driven.energy_made < 1e-12 * gained
    torques = np.random.default_rng(0).normal(size=(2, 40, 1))
    motions = ls.rollout(model, np.zeros((2, 1)), np.zeros((2, 1)), torques, dt=0.01, method="sdirk")
    energy = ls.energy(model, motions.q, motions.v).total
    assert motions.energy_made.shape == (2,)
    assert (motions.energy_made < 1e-12).all() and energy.max() > 1e-3


def test_batches_and_files():
    """Each motion of a batch, and of a batch of models, has its own energy made; a file does not hold the model."""
    model, times = ball(), np.linspace(0, 0.3, 61)
    starts = np.stack([START, START + np.array([0, 0, 0, 0, 0, 0, 0.05])])
    options = {"t_eval": times, "rtol": 1e-3}
    motions = ls.simulate(model, 0.3, starts, **options)
    alone = [ls.simulate(model, 0.3, q, **options) for q in starts]
    assert motions.energy_made.tolist() == [one.energy_made for one in alone]
    assert motions.statistics.deepest == max(one.statistics.deepest for one in alone)
    models = model.batch("ball.mass", [0.02, float(model.links.mass[0])])
    both = ls.simulate(models, 0.3, START, **options)
    assert both.energy_made[1] == ls.simulate(models[1], 0.3, START, **options).energy_made
    assert both.statistics.deepest == alone[0].statistics.deepest  # the heavier ball
    with pytest.raises(ls.ModelError, match="does not hold its model"):
        _ = pickle.loads(pickle.dumps(ls.simulate(model, 0.01, START))).energy_made


def test_deepest_contacts_of_all_drivers():
    """All drivers have the deepest contact at the ends of their steps, whatever their rows."""
    model = ball()
    steps = ls.simulate(model, 0.3, START)
    deepest = max(c.depth.max(initial=0.0) for c in ls.contact_forces(model, steps.q))
    assert 5e-5 < deepest < 2e-4
    assert steps.statistics.deepest == pytest.approx(deepest, rel=1e-12)
    sampled = ls.simulate(model, 0.3, START, t_eval=np.linspace(0, 0.3, 4))
    assert sampled.statistics.deepest == pytest.approx(deepest, rel=1e-12)
    fixed = ls.simulate(model, 0.3, START, dt=2e-3)
    stepper = ls.Stepper(model, 2e-3, q0=START, scheme=ls.generalized_alpha())
    for _ in range(50):
        stepper.step()
    kept, then = stepper.snapshot(), stepper.statistics
    stepper.step(steps=100)
    known, alone = stepper.statistics, fixed.statistics
    assert (known.steps, known.parts, known.plastic) == (150, alone.parts, alone.plastic)
    assert known.deepest == pytest.approx(alone.deepest, rel=1e-6) and known.jacobians == stepper.matrices
    stepper.restore(kept)
    assert then.deepest == stepper.statistics.deepest == 0.0
    assert (then.steps, then.evaluations) == (stepper.statistics.steps, stepper.statistics.evaluations)
    free = ls.Stepper(model, 2e-3, q0=START, tolerance=1e-6)
    free.step(steps=150)
    assert free.statistics.deepest == pytest.approx(deepest, rel=0.01) and free.statistics.steps > 150
    motion = ls.rollout(model, START, dt=2e-3, steps=150, every=50)
    rows = ls.rollout(model, START, dt=2e-3, steps=150).q
    assert motion.statistics.deepest == max(c.depth.max(initial=0.0) for c in ls.contact_forces(model, rows))
    assert motion.statistics.parts == 0 and motion.statistics.plastic > 0


def test_steps_in_python_have_their_deepest_contact():
    """Steps that call Python have the deepest contact, within parts of steps too."""
    robot = ball().description
    robot.add_force("draught", "ball", lambda t, g, eta: np.zeros(6))
    model = robot.build()
    motion = ls.simulate(model, 0.15, START, dt=2e-3)
    in_kernels = ls.simulate(ball(), 0.15, START, dt=2e-3)
    assert motion.statistics.parts > 5 and motion.statistics.plastic > 1
    assert motion.statistics.deepest == pytest.approx(in_kernels.statistics.deepest, rel=1e-3)
    assert motion.energy_made < 1e-9 * 0.028
    stepper = ls.Stepper(model, 2e-3, q0=START, scheme=ls.generalized_alpha())
    for _ in range(75):
        stepper.step()
    assert stepper.statistics.deepest == pytest.approx(motion.statistics.deepest, rel=1e-6)
    assert stepper.statistics.parts == motion.statistics.parts
