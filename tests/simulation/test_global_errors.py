"""The error that a simulation estimates of itself by a finer one, against the true one."""

import warnings

import numpy as np
import pytest

import lissom as ls


def double_pendulum(damping=0.0):
    """Two bars of 1 m on hinges; without damping a motion from above the hinge is chaotic."""
    robot = ls.Robot("pendulum")
    bar = ls.RigidBody.cylinder(1.0, 0.02, density=1000.0)
    down = np.eye(4)
    down[0, 3] = 0.5
    joint = ls.JointRevolute((0, 1, 0), damping=damping)
    robot.add_link("upper", bar, joint)
    robot.add_link("lower", bar, joint, parent="upper", placement=down)
    return robot.build()


def checked(model, duration, q0, **options):
    """A motion, its estimated error, whether it warned, and its true error by a tight tolerance."""
    times = np.linspace(0.0, duration, 11)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        motion = ls.simulate(model, duration, q0, t_eval=times, check=True, **options)
    tight = ls.simulate(model, duration, q0, t_eval=times, method="dop853", rtol=1e-12, atol=1e-13)
    apart, moved = np.abs(motion.q - tight.q).max(), np.abs(motion.q - motion.q[0]).max()
    return motion.statistics.error, any(w.category is ls.AccuracyWarning for w in told), apart / moved


@pytest.mark.parametrize("options", [{}, {"rtol": 1e-4, "atol": 1e-6}, {"method": "bdf"}, {"dt": 0.01},
                                     {"dt": 0.01, "method": "implicit_euler"}], ids=str)  # fmt: skip
def test_estimates(options):
    """Where the error is small it is estimated within a factor of three, by tolerances and by steps of one size; there
    is a warning where it is above a hundredth."""
    error, warned, true = checked(double_pendulum(0.5), 1.0, [0.5, 0.3], **options)
    assert true / 3.0 < error < 3.0 * true
    assert warned == (error > 0.01)


def test_a_chaotic_flight():
    """Errors that grow without bound are reported, although the tolerance is met by every step."""
    error, warned, true = checked(double_pendulum(), 20.0, [-1.2, 2.5], rtol=1e-2, atol=1e-4)
    assert warned and error > 0.01 and true > 0.01


def test_a_batch_and_rest():
    """The largest error of a batch; at rest there is none, and without a check none is reported."""
    model = double_pendulum(0.5)
    motion = ls.simulate(model, 0.2, [[0.5, 0.3], [0.1, 0.0]], t_eval=[0.1, 0.2], check=True)
    alone = [ls.simulate(model, 0.2, q0, t_eval=[0.1, 0.2], check=True) for q0 in ([0.5, 0.3], [0.1, 0.0])]
    assert motion.statistics.error == max(one.statistics.error for one in alone)
    still = ls.simulate(model, 0.2, [np.pi / 2, 0.0], check=True)
    assert still.statistics.error < 1e-6
    assert ls.simulate(model, 0.2).statistics.error is None
