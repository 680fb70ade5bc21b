"""Behaviour of simulate: its arguments and results.

The motions here are short, of small robots; convergence orders and conservation have their own suites. CVODE keeps its
local error below rtol: global errors of a few hundred times rtol are allowed.
"""

from functools import partial

import numpy as np
import pytest
from dynamics.small_robots import describe_pendulum, mixed, pendulum, rod, state
from scipy.special import ellipk

import lissom as ls

simulate = partial(ls.simulate, method="bdf")
ARRAYS = ("t", "q", "v", "a", "u", "multipliers")


def check_shapes(model, motion, lead=()):
    """Shapes of a trajectory, and that nothing in it is NaN."""
    n = len(motion.t)
    shapes = {"t": (n,), "q": (*lead, n, model.nq), "v": (*lead, n, model.nv), "a": (*lead, n, model.nv),
              "u": (*lead, n, model.nu), "multipliers": (*lead, n, 0)}  # fmt: skip
    for name, shape in shapes.items():
        assert getattr(motion, name).shape == shape, name
        assert np.isfinite(getattr(motion, name)).all(), name


def test_pendulum_period():
    """A pendulum let go at 2 rad comes back after four quarter periods of an elliptic integral."""
    model = pendulum()
    period = 4 * np.sqrt((2 / 3) / 9.81) * ellipk(np.sin(1.0) ** 2)
    motion = simulate(model, period, [2.0], t_eval=[period / 2, period], rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(motion.q[:, 0], [-2.0, 2.0], atol=1e-6)
    np.testing.assert_allclose(motion.v[:, 0], 0.0, atol=1e-5)


def test_every_step_when_no_times_are_given():
    """Without t_eval all steps come back: from 0 to the end, rising, as many as the statistics say."""
    model = rod()
    motion = simulate(model, 0.05)
    check_shapes(model, motion)
    assert motion.t[0] == 0.0
    assert motion.t[-1] == 0.05
    assert (np.diff(motion.t) > 0).all()
    assert motion.statistics.steps == len(motion.t) - 1


def test_neutral_and_at_rest_without_a_start():
    """q0=None is the neutral configuration, v0=None rest, u=None nothing."""
    model = mixed()
    motion = simulate(model, 0.002)
    assert np.array_equal(motion.q[0], model.neutral())
    assert not motion.v[0].any()
    assert not motion.u.any()
    given = simulate(model, 0.002, model.neutral(), np.zeros(model.nv), np.zeros(model.nu))
    assert np.array_equal(given.q, motion.q)


@pytest.mark.parametrize("t_eval", [[0.0, 0.013, 0.05], [0.013, 0.05], np.linspace(0, 0.05, 7), [0.02], 0.03])
def test_wanted_times(t_eval):
    """t_eval gives exactly those times, t = 0 only where it is asked for, and the values of finer output there."""
    model = rod()
    motion = simulate(model, 0.05, t_eval=t_eval)
    assert np.array_equal(motion.t, np.atleast_1d(t_eval))
    check_shapes(model, motion)
    tight = simulate(model, 0.05, t_eval=np.union1d([0.0], motion.t), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(motion.q, tight.q[-len(motion.t) :], atol=1e-3 * np.abs(tight.q).max())


@pytest.mark.parametrize(("method", "dt"), [("bdf", None), ("radau", None), ("generalized_alpha", 0.01)])
def test_asked_times_alone_come_back(method, dt):
    """No method puts the start in front of the asked times, of one motion or of a batch."""
    model, times = pendulum(), [0.025, 0.1]
    one = simulate(model, 0.1, [0.5], t_eval=times, method=method, dt=dt)
    assert one.t.tolist() == times
    check_shapes(model, one)
    many = simulate(model, 0.1, [[0.5], [0.7]], t_eval=times, method=method, dt=dt)
    assert many.t.tolist() == times
    check_shapes(model, many, (2,))
    np.testing.assert_array_equal(many.q[0], one.q)


def test_output_times_do_not_change_the_steps():
    """The method steps where it wants to: more output times do not move the end."""
    model = rod()
    coarse, fine = (simulate(model, 0.05, t_eval=np.linspace(0, 0.05, n)) for n in (2, 400))
    np.testing.assert_allclose(coarse.q[-1], fine.q[-1], atol=1e-4 * np.abs(fine.q).max())
    assert abs(coarse.statistics.steps - fine.statistics.steps) <= 0.05 * fine.statistics.steps


def test_accelerations_are_those_of_the_motion():
    """a is forward dynamics of the returned states, inputs and times, also with loads of time."""
    model = mixed()
    q, v, _, u = state(model, seed=2)
    motion = simulate(model, 0.01, q, 0.1 * v, u, t_eval=np.linspace(0, 0.01, 4))
    for k, t in enumerate(motion.t):
        expected = ls.forward_dynamics(model, motion.q[k], motion.v[k], motion.u[k], t=t)
        np.testing.assert_allclose(motion.a[k], expected, rtol=1e-12, atol=1e-10)


def test_quaternions_stay_on_the_sphere():
    """Free and spherical joints return unit quaternions to rounding, and turn as the velocity says."""
    model = mixed()
    q, v, _, u = state(model, seed=3)
    motion = simulate(model, 0.02, q, v, u, t_eval=np.linspace(0, 0.02, 81))
    hand = model.links.q_start[model.links.names.index("hand")]
    for at in (0, hand):
        np.testing.assert_allclose(np.linalg.norm(motion.q[:, at : at + 4], axis=1), 1.0, atol=4e-16)
    moved = ls.difference(model, motion.q[:-1], motion.q[1:])
    mean = (motion.v[:-1] + motion.v[1:]) / 2  # the trapezoidal rule, against vibrations of a few ms
    np.testing.assert_allclose(moved, 0.02 / 80 * mean, atol=0.02 * np.abs(moved).max())


def test_a_free_body_turns_as_euler_says():
    """Torque-free turning keeps the angular momentum in the world, through several turns."""
    robot = ls.Robot("top", gravity=(0, 0, 0))
    robot.add_link("body", ls.RigidBody(1.0, inertia=(1.0, 2.0, 2.5)), ls.JointFree())
    model = robot.build()
    v0 = np.array([3.0, 0.2, -2.0, 0.5, 0.0, 0.1])
    motion = simulate(model, 4.0, v0=v0, t_eval=np.linspace(0, 4, 9), rtol=1e-9, atol=1e-11)
    R = ls.frame_pose(model, motion.q, "body")[:, :3, :3]
    momentum = np.einsum("tij,tj->ti", R, motion.v[:, :3] * [1.0, 2.0, 2.5])
    np.testing.assert_allclose(momentum, np.tile(momentum[0], (9, 1)), atol=1e-6)
    np.testing.assert_allclose(motion.q[:, 4:], motion.t[:, None] * v0[3:], atol=1e-6)


def test_inputs_in_every_form():
    """A constant, samples and a function of t of equal values drive the same motion; u has the inputs applied."""
    model, times = pendulum(), np.linspace(0, 0.3, 7)
    constant = simulate(model, 0.3, u=[2.0], t_eval=times)
    samples = simulate(model, 0.3, u=ls.Samples([0.0, 1.0], [[2.0], [2.0]]), t_eval=times)
    function = simulate(model, 0.3, u=lambda t: np.array([2.0]), t_eval=times)
    for motion in (samples, function):
        assert np.array_equal(motion.q, constant.q)
    assert np.array_equal(constant.u, np.full((7, 1), 2.0))
    ramp = ls.Samples([0.0, 0.1, 0.2], [[0.0], [3.0], [1.0]])
    one = simulate(model, 0.3, u=ramp, t_eval=times, rtol=1e-9)
    other = simulate(model, 0.3, u=lambda t: [np.interp(t, [0, 0.1, 0.2], [0, 3, 1])], t_eval=times, rtol=1e-9)
    np.testing.assert_allclose(one.q, other.q, atol=1e-7)
    np.testing.assert_allclose(one.u[:, 0], np.interp(times, [0, 0.1, 0.2], [0, 3, 1]), atol=1e-14)


def test_a_continuous_controller():
    """A controller of (t, q, v) is feedback: a computed torque that cancels weight gives a harmonic oscillator."""
    model, times = pendulum(), np.linspace(0, 1, 5)

    def law(t, q, v):
        return ls.inverse_dynamics(model, q, 0 * v, -4.0 * ls.difference(model, model.neutral(), q))

    motion = simulate(model, 1.0, [0.5], controller=law, t_eval=times, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(motion.q[:, 0], 0.5 * np.cos(2 * times), atol=1e-6)
    for k in range(5):
        np.testing.assert_allclose(motion.u[k], law(times[k], motion.q[k], motion.v[k]), atol=1e-12)


def test_a_sampled_controller():
    """With a period the controller is called at its multiples, once each, and its value held in between."""
    model, calls = pendulum(), []

    def law(t, q, v):
        calls.append((t, q.copy(), v.copy()))
        return [1.0 + len(calls)]

    times = np.linspace(0.0, 0.35, 36)
    motion = simulate(model, 0.35, [0.3], controller=law, period=0.1, t_eval=times)
    np.testing.assert_allclose([t for t, _, _ in calls], [0.0, 0.1, 0.2, 0.3], rtol=1e-15)
    held = 2.0 + np.floor(times / 0.1 + 1e-9)
    strictly = np.abs(times / 0.1 - np.round(times / 0.1)) > 1e-6
    assert np.array_equal(motion.u[strictly, 0], held[strictly])
    for t, q, v in calls:  # the controller saw the motion there
        k = int(np.argmin(abs(times - t)))
        np.testing.assert_allclose([*q, *v], [*motion.q[k], *motion.v[k]], atol=1e-9)


def test_sample_and_hold_is_exact():
    """A constant torque held over each period on a weightless hinge is a parabola, from sample to sample."""
    model = describe_pendulum(gravity=(0, 0, 0)).build()
    steps = {"period": 0.1, "t_eval": [0.1, 0.2, 0.3], "rtol": 1e-9, "atol": 1e-12}
    motion = simulate(model, 0.3, controller=lambda t, q, v: [np.round(10 * t) - 1], **steps)
    q, v = 0.0, 0.0
    for k, u in enumerate((-1.0, 0.0, 1.0)):
        a = u / (2 / 3)
        q, v = q + 0.1 * v + 0.005 * a, v + 0.1 * a
        np.testing.assert_allclose([motion.q[k, 0], motion.v[k, 0]], [q, v], atol=1e-8)


def test_a_controller_of_a_quaternion_robot_sees_unit_quaternions():
    """q is handed to controllers as it is returned, normalised."""
    model, seen = mixed(), []
    q, v, *_ = state(model, seed=3)

    def law(t, x, y):
        seen.append(np.linalg.norm(x[:4]))
        return np.zeros(model.nu)

    check_shapes(model, simulate(model, 0.01, q, v, controller=law))
    np.testing.assert_allclose(seen, 1.0, atol=4e-16)


@pytest.mark.parametrize("period", [None, 0.02])
@pytest.mark.parametrize("build", [pendulum, mixed])
def test_a_controller_cannot_spoil_the_motion(build, period):
    """Writing to the q and v that a controller is given changes nothing: they are its own."""
    model = build()
    start = state(model, seed=3)[0]

    def law(t, q, v, spoil):
        if spoil:
            q[:], v[:] = 0.0, 0.0
        return np.zeros(model.nu)

    kept, spoilt = (simulate(model, 0.05, start, controller=partial(law, spoil=spoil), period=period, t_eval=[0.05])
                    for spoil in (False, True))  # fmt: skip
    assert np.array_equal(kept.q, spoilt.q)


@pytest.mark.parametrize("lead", [(1,), (2,), (2, 2)])
def test_batches(lead):
    """Leading axes of q0 and v0 give motions at common times; each is the single one."""
    model, times = pendulum(), [0.0, 0.1, 0.3]
    q0 = np.linspace(0.2, 1.0, int(np.prod(lead))).reshape(*lead, 1)
    motion = simulate(model, 0.3, q0, np.ones(1), t_eval=times)
    check_shapes(model, motion, lead)
    total = 0
    for at in np.ndindex(*lead):
        single = simulate(model, 0.3, q0[at], np.ones(1), t_eval=times)
        np.testing.assert_allclose(motion.q[at], single.q, atol=1e-12)
        total += single.statistics.steps
    assert motion.statistics.steps == total
    assert simulate(model, 0.3, v0=np.zeros((*lead, 1)), t_eval=times).q.shape == (*lead, 3, 1)


def test_batches_of_inputs():
    """u of shape (..., nu) drives each instance of a batch by its own input."""
    model = pendulum()
    motion = simulate(model, 0.1, u=[[0.0], [1.0]], t_eval=[0.1])
    assert motion.q.shape == (2, 1, 1)
    np.testing.assert_allclose(motion.q[1], simulate(model, 0.1, u=[1.0], t_eval=[0.1]).q, atol=1e-12)


def test_an_empty_batch():
    """No starts give no motions, in the right shape."""
    motion = simulate(pendulum(), 0.1, np.zeros((0, 1)), t_eval=[0.0, 0.1])
    assert motion.q.shape == (0, 2, 1)


def test_statistics():
    """Counts and time are sane, and a tighter tolerance costs more."""
    loose, tight = (simulate(rod(), 0.05, rtol=tol, atol=tol).statistics for tol in (1e-4, 1e-9))
    for cost in (loose, tight):
        assert cost.method == "bdf"
        assert cost.evaluations >= cost.steps > 0
        assert 0 < cost.jacobians <= cost.steps
        assert 0.0 < cost.wall_time < 60.0
    assert tight.steps > loose.steps


def test_largest_step():
    """dt bounds the steps."""
    motion = simulate(pendulum(), 0.5, [0.1], dt=0.01)
    assert np.diff(motion.t).max() <= 0.01 * (1 + 1e-12)


def test_arguments_are_never_modified():
    """q0, v0, u and t_eval keep their values, and results share no memory with them."""
    model = pendulum()
    given = {"q0": np.array([0.3]), "v0": np.array([0.1]), "u": np.array([0.5]), "t_eval": np.array([0.0, 0.1])}
    copies = {name: x.copy() for name, x in given.items()}
    motion = simulate(model, 0.1, **given)
    for name in ARRAYS:
        x = getattr(motion, name)
        assert not any(np.shares_memory(x, y) for y in given.values()), name
        x[...] = np.nan
    assert all(np.array_equal(given[name], copies[name]) for name in given)


def test_the_models_caches_do_not_leak_into_results():
    """A trajectory stays as it is while the model is used again."""
    model = rod()
    first = simulate(model, 0.02)
    kept = {name: getattr(first, name).copy() for name in ARRAYS}
    simulate(model, 0.02, [1.0, 0.0, 0.0])
    ls.forward_dynamics(model, np.ones((len(first.t), model.nq)), np.ones((len(first.t), model.nv)))
    assert all(np.array_equal(getattr(first, name), kept[name]) for name in ARRAYS)


def test_progress_function():
    """A function as `progress` is called with rising times up to the duration, and its error ends the motion."""
    times = []
    simulate(pendulum(), 0.05, progress=times.append)
    assert times == sorted(times) and times[-1] == pytest.approx(0.05)

    def stop(t):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        simulate(pendulum(), 0.05, progress=stop)


def test_progress_bar(capsys):
    """progress=True shows a bar that reaches the duration; otherwise nothing is printed."""
    simulate(pendulum(), 0.05)
    assert capsys.readouterr().out == ""
    simulate(pendulum(), 0.05, progress=True)
    shown = capsys.readouterr().out
    assert "simulating" in shown
    assert "0.05 of 0.05 s" in shown


def test_sampled_inputs_keep_the_order_of_implicit_steps():
    """Purpose: where a sampled controller makes the acceleration jump, the scheme forgets the old one: errors fall with
    h², and are not of first order."""
    robot = ls.Robot("swing")
    robot.add_link("bar", ls.RigidBody(1.0, com=(0.1, 0, 0)), ls.JointRevolute(axis=(0, 1, 0)))
    robot.add_joint_actuator("motor", "bar")
    model, steps = robot.build(), [0.01, 0.005, 0.0025]
    options = {"controller": lambda t, q, v: np.array([0.7 - 3 * q[0] - 0.5 * v[0]]), "period": 0.02}
    exact = simulate(model, 0.5, t_eval=[0.5], rtol=1e-10, atol=1e-12, **options).q[-1]
    ends = [ls.simulate(model, 0.5, method="generalized_alpha", dt=dt, rtol=1e-9, **options).q[-1] for dt in steps]
    errors = [np.abs(end - exact).max() for end in ends]
    assert np.polyfit(np.log(steps), np.log(errors), 1)[0] > 1.9, errors


@pytest.mark.parametrize("method", ["bdf", "radau"])
def test_jacobians_of_differences(method):
    """Without the exact Jacobian the motion is the same, no Jacobian is evaluated, and the rate is evaluated more
    often; of one motion and of a batch."""
    model = mixed()
    given = {"method": method, "t_eval": np.linspace(0.0, 0.05, 6), "rtol": 1e-7, "atol": 1e-9}
    exact = ls.simulate(model, 0.05, **given)
    other = ls.simulate(model, 0.05, **given, jacobian="differences")
    assert exact.statistics.jacobians > 0 and other.statistics.jacobians == 0
    assert other.statistics.evaluations > exact.statistics.evaluations + model.nv
    apart = ls.difference(model, exact.q, other.q) / model.dofs.scale
    assert np.abs(apart).max() < 1e-5
    both = ls.simulate(model, 0.05, np.tile(model.neutral(), (2, 1)), **given, jacobian="differences")
    assert both.statistics.jacobians == 0
    np.testing.assert_array_equal(both.q[1], other.q)


@pytest.mark.parametrize("method", ["auto", "dop853", "esdirk", "newmark"])
def test_methods_without_jacobians_of_differences(method):
    """They are refused, with the methods that can."""
    with pytest.raises(ls.ModelError, match="jacobian: 'differences' needs method='bdf' or method='radau'"):
        ls.simulate(pendulum(), 0.01, method=method, jacobian="differences")
    with pytest.raises(ls.ModelError, match="jacobian: must be 'exact' or 'differences'"):
        ls.simulate(pendulum(), 0.01, method=method, jacobian="analytical")
