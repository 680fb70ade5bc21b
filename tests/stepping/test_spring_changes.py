"""Fixed steps in which stops are hit and cables become taut: energy, rebounds, gradients, drivers."""

from __future__ import annotations

import numpy as np
import pytest

import lissom as ls

SCHEMES = {
    "generalized_alpha": ls.generalized_alpha(),
    "undamped": ls.newmark(),
    "bathe": ls.bathe(),
    "sdirk": ls.sdirk(),
    "esdirk": ls.esdirk(),
    "implicit_euler": ls.implicit_euler(),
}
ORIGIN = ls.PathPoint(None, (0.0, 0.0, 0.0))
DOWN = {"axis": (0.0, 0.0, -1.0)}


def weight(**joint):
    """A weight of half a kilogram that falls along a joint whose coordinate is its depth below the origin."""
    robot = ls.Robot("weight")
    robot.add_link("weight", ls.RigidBody(0.5, inertia=(1e-4, 1e-4, 1e-4)), ls.JointPrismatic(**DOWN, **joint))
    return robot


def pendulum(**joint):
    """A pendulum, horizontal at zero, that falls to larger angles."""
    robot = ls.Robot("pendulum")
    body = ls.RigidBody(0.12, com=(0.15, 0.0, 0.0), inertia=(1e-5, 1e-3, 1e-3))
    robot.add_link("pendulum", body, ls.JointRevolute((0.0, 1.0, 0.0), **joint))
    return robot


def coupled():
    """Two pendulums whose sum of angles has stops."""
    robot = pendulum()
    robot.add_link("second", robot.links["pendulum"].body, ls.JointRevolute((0.0, 1.0, 0.0)), parent="pendulum")
    robot.add_coupling("sum", ["pendulum", "second"], ratios=[1.0, 1.0], limits=(-0.6, 0.6), limit_stiffness=1e4)
    return robot, [0.3, 0.2]


def cable(via=()):
    """A weight that falls into a slack cable, straight or over a point."""
    robot = weight()
    robot.add_spring("cable", ORIGIN, "weight", stiffness=1e5, rest=0.5, slack=True, via=via)
    return robot, [0.1]


def tendon():
    """A weight that falls into an elastic tendon."""
    robot = weight()
    path = [ORIGIN, ls.PathPoint("weight", (0.0, 0.0, 0.0))]
    robot.add_tendon("tendon", path=path, stiffness=1e5, slack_length=0.5)
    return robot, [0.1]


def play():
    """A weight on a spring with play."""
    law = ls.Tabulated([-1.0, -0.3, 0.3, 1.0], [-7e4, 0.0, 0.0, 7e4], "linear")
    return weight(spring=law), [0.0]


ROBOTS = {
    "stop of a joint": lambda: (pendulum(limits=(-2.0, 0.8), limit_stiffness=1e4), [-0.5]),
    "stop under a weight": lambda: (weight(limits=(-2.0, 0.3), limit_stiffness=1e5), [0.0]),
    "damped stop": lambda: (weight(limits=(-2.0, 0.3), limit_stiffness=1e5, limit_damping=40.0), [0.0]),
    "stop of a coupling": coupled,
    "cable": cable,
    "cable over a point": lambda: cable((ls.PathPoint(None, (0.0, 0.0, -0.05)),)),
    "tendon": tendon,
    "play": play,
}


def largest_kinetic(model, motion):
    """The largest kinetic energy of a motion [J]."""
    return float(np.max(ls.energy(model, motion.q, motion.v).kinetic))


@pytest.mark.parametrize("name", sorted(ROBOTS))
def test_one_sided_springs_make_no_energy(name):
    """Fixed steps of all schemes make less than 1 % of the kinetic energy where a stop is hit or a cable becomes taut.

    Without implicit Euler in these steps it is 2 to 120 %.
    """
    robot, q = ROBOTS[name]()
    model = robot.build()
    for scheme, method in SCHEMES.items():
        for dt in (5e-3, 1e-3):
            motion = ls.simulate(model, 0.8, q, dt=dt, method=method)
            made = motion.energy_made / largest_kinetic(model, motion)
            assert made < 0.01, (scheme, dt, made)
            assert motion.statistics.plastic > 0


@pytest.mark.parametrize("name", ["stop under a weight", "damped stop", "cable", "tendon", "play"])
def test_rebounds_are_those_of_adaptive_steps(name):
    """From 1 ms on the first rebound is as high as by adaptive steps, to 10 %: of stops, cables, tendons and play."""
    robot, q = ROBOTS[name]()
    model = robot.build()

    def rise(motion):
        """The height of the first rebound above the lowest point [m]."""
        back = int(np.argmax(motion.v[:, 0] < 0.0))
        stop = back + int(np.argmax(motion.v[back:, 0] > 0.0))
        assert 0 < back < stop
        return float(motion.q[:back, 0].max() - motion.q[back:stop, 0].min())

    exact = rise(ls.simulate(model, 0.8, q, rtol=1e-9, atol=1e-11))
    for method in ("generalized_alpha", "sdirk", "undamped"):
        for dt in (1e-3, 2e-4):
            assert rise(ls.simulate(model, 0.8, q, dt=dt, method=SCHEMES[method])) == pytest.approx(exact, rel=0.1)


def test_a_smooth_spring_is_not_damped():
    """A spring that hardens smoothly, a linear one and a stop on which a joint vibrates keep the weights of the scheme:
    implicit Euler would damp them."""
    x = np.linspace(-0.1, 0.1, 41)
    hardening = weight(spring=[(a, 1e6 * a**3) for a in x])
    linear = weight(stiffness=1e5)
    pressed = weight(limits=(-2.0, 0.01), limit_stiffness=1e4, limit_width=1e-6)  # 50 mm deep, all the time
    for robot, q in ((hardening, 0.05), (linear, 0.01), (pressed, 0.0105)):
        motion = ls.simulate(robot.build(), 0.2, [q], dt=2e-3, method=ls.newmark())
        assert motion.statistics.plastic == motion.statistics.parts == 0


def test_all_drivers_take_the_same_steps():
    """`simulate`, a stepper, a batch, a controller in Python and a stepper that goes back hit a stop alike."""
    robot, q = ROBOTS["stop of a joint"]()
    model, dt, n = robot.build(), 4e-3, 150
    times = dt * np.arange(n + 1)
    alone = ls.simulate(model, n * dt, q, dt=dt, t_eval=times, method=ls.sdirk())
    assert alone.statistics.plastic > 2 and alone.statistics.parts > 2
    both = ls.simulate(model, n * dt, np.stack([q, q]), dt=dt, t_eval=times, method=ls.sdirk())
    assert (both.q == alone.q).all()
    law = ls.simulate(model, n * dt, q, dt=dt, t_eval=times, controller=lambda t, q, v: np.zeros(0), method=ls.sdirk())
    assert np.abs(law.q - alone.q).max() < 1e-6
    stepper = ls.Stepper(model, dt, q0=q)
    kept = None
    for k in range(n):
        if k == 60:
            kept = stepper.snapshot()
        stepper.step()
    assert stepper.state.q == pytest.approx(alone.q[-1], abs=1e-6)
    stepper.restore(kept)
    stepper.step(steps=n - 60)
    assert stepper.state.q == pytest.approx(alone.q[-1], abs=1e-6)
    assert stepper.statistics.plastic > 2


@pytest.mark.parametrize("name", ["stop of a joint", "tendon"])
def test_gradients_follow_plastic_steps(name):
    """Derivatives of a rollout that hits a stop or tightens a tendon equal central differences."""
    robot, q = ROBOTS[name]()
    model, h = robot.build(), 1e-6
    for method in ("generalized_alpha", "sdirk"):

        def ends(step, method=method):
            return ls.rollout(model, np.add(q, step), [0.3 * step], dt=2e-3, steps=200, method=method)

        motion = ends(0.0)
        assert motion.statistics.plastic > 0
        seed = np.zeros((201, 1))
        seed[-1] = 1.0
        slope = motion.backward(seed, seed)
        a, b, c, d = (float(x.q[-1, 0] + x.v[-1, 0]) for x in (ends(k * h) for k in (-2, -1, 1, 2)))
        exact = (8.0 * (c - b) - (d - a)) / (12.0 * h)  # of fourth order, since the width of a stop is small
        assert slope.q0[0] + 0.3 * slope.v0[0] == pytest.approx(exact, rel=1e-6)
        assert motion.energy_made < 0.01 * largest_kinetic(model, motion)


def test_energy_of_tendons_whose_inputs_move():
    """Pulling an elastic tendon in makes no energy, be the input smooth or a jump, and a stiffer step would show."""
    robot, q = tendon()
    model = robot.build()
    smooth = ls.simulate(model, 0.4, q, u=lambda t: [0.02 * np.sin(20.0 * t) ** 2], dt=1e-4, method=ls.newmark())
    assert smooth.energy_made < 0.01 * largest_kinetic(model, smooth)
    u = np.where(np.arange(400) < 200, 0.0, 0.02)[:, None]
    jump = ls.rollout(model, q, u=u, dt=1e-3)
    assert np.ptp(jump.q) > 0.1
    assert jump.energy_made < 0.01 * largest_kinetic(model, jump)
