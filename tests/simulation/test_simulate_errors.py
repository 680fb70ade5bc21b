"""How simulate fails: wrong arguments at the door, users' own errors, and motions that stop, with what there is."""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from dynamics.small_robots import mixed, pendulum, rod

import lissom as ls

simulate = partial(ls.simulate, method="bdf")


WRONG = {
    "duration zero": ({"duration": 0.0}, ls.ModelError, "duration: must be a finite number > 0 (got 0.0)"),
    "duration nan": ({"duration": np.nan}, ls.ModelError, "duration: must be a finite number > 0 (got nan)"),
    "duration text": ({"duration": "1"}, ls.ModelError, "duration: must be a finite number > 0 (got '1')"),
    "number of steps": ({"duration": 1e300, "method": "generalized_alpha", "dt": 1e-3}, ls.ModelError,
              "duration: must be at most 1e+15 times dt = 0.001 s (got 1e+300 s)"),
    "sampled steps": ({"duration": 1e300, "controller": lambda t, q, v: [0.0], "period": 1e-3}, ls.ModelError,
                "duration: must be at most 1e+15 times period = 0.001 s (got 1e+300 s)"),
    "rtol": ({"rtol": 0.0}, ls.ModelError, "rtol: must be a finite number > 0 (got 0.0)"),
    "atol": ({"atol": -1.0}, ls.ModelError, "atol: must be a finite number > 0 (got -1.0)"),
    "dt": ({"dt": 0.0}, ls.ModelError, "dt: must be a finite number > 0 (got 0.0)"),
    "method": ({"method": "euler"}, ls.ModelError, "method: must be one of ["),
    "q0 size": ({"q0": [0.0, 1.0]}, ls.ShapeError, "q0: expected shape (..., 1), got (2,)"),
    "q0 nan": ({"q0": [np.nan]}, ls.ShapeError, "q0: must be finite, got NaN or infinity"),
    "v0 size": ({"v0": [0.0, 1.0]}, ls.ShapeError, "v0: expected shape (..., 1), got (2,)"),
    "v0 nan": ({"v0": [np.inf]}, ls.ShapeError, "v0: must be finite, got NaN or infinity"),
    "q0 and v0": ({"q0": np.zeros((2, 1)), "v0": np.zeros((3, 1)), "t_eval": [0.1]}, ls.ShapeError,
                  "leading axes do not broadcast: q0 (2, 1), v0 (3, 1)"),
    "batch without times": ({"q0": np.zeros((2, 1))}, ls.ShapeError,
                            "t_eval: a batch of shape (2,) needs common times"),
    "u size": ({"u": [1.0, 2.0]}, ls.ShapeError, "u: expected shape (..., 1), got (2,)"),
    "u nan": ({"u": [np.nan]}, ls.ShapeError, "u at t=0: must be finite, got NaN or infinity"),
    "u text": ({"u": "x"}, ls.ShapeError, "u: expected numbers of shape (..., 1), got 'x'"),
    "u of t wrong": ({"u": lambda t: 1.0}, ls.ShapeError, "u at t=0: expected shape (1,), got ()"),
    "u of t text": ({"u": lambda t: "x"}, ls.ShapeError, "u at t=0: expected"),
    "u of t nan": ({"u": lambda t: [np.nan]}, ls.ShapeError, "u at t=0: must be finite, got NaN or infinity"),
    "samples": ({"u": ls.Samples([0.0], [[1.0, 2.0]])}, ls.ShapeError,
                "u: expected samples of shape (n, 1), got (1, 2)"),
    "controller wrong": ({"controller": lambda t, q, v: [1.0, 2.0]}, ls.ShapeError,
                         "controller at t=0: expected shape (1,), got (2,)"),
    "controller is none": ({"controller": 3.0}, ls.ModelError, "controller: must be a function of (t, q, v) or an"),
    "both": ({"u": [1.0], "controller": lambda t, q, v: [1.0]}, ls.ModelError, "controller: give u or a controller"),
    "period zero": ({"controller": lambda t, q, v: [1.0], "period": 0.0}, ls.ModelError,
                    "period: must be > 0 (got 0.0)"),
    "period text": ({"controller": lambda t, q, v: [1.0], "period": "x"}, ls.ModelError,
                    "period: must be > 0 (got 'x')"),
    "period alone": ({"period": 0.1}, ls.ModelError, "period: needs a controller"),
    "times fall": ({"t_eval": [0.1, 0.0]}, ls.ShapeError, "t_eval: must rise strictly within [0, 0.2]"),
    "times beyond": ({"t_eval": [0.1, 0.3]}, ls.ShapeError, "t_eval: must rise strictly within [0, 0.2]"),
    "times before": ({"t_eval": [-0.1]}, ls.ShapeError, "t_eval: must rise strictly within [0, 0.2]"),
    "times nan": ({"t_eval": [0.1, np.nan]}, ls.ShapeError, "t_eval: must rise strictly within [0, 0.2]"),
    "times 2d": ({"t_eval": [[0.1]]}, ls.ShapeError, "t_eval: expected shape (n,), got (1, 1)"),
    "times empty": ({"t_eval": []}, ls.ShapeError, "t_eval: expected shape (n,), got (0,)"),
    "times text": ({"t_eval": "soon"}, ls.ShapeError, "t_eval: expected"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments(case):
    """Every wrong argument is refused at the door by an error that names it, the rule and the value."""
    arguments, error, message = WRONG[case]
    with pytest.raises(error) as caught:
        ls.simulate(pendulum(), **({"duration": 0.2, "method": "bdf"} | arguments))
    assert str(caught.value).startswith(message)


def test_a_quaternion_off_unit_length():
    """q0 with a stretched quaternion is refused under its own name."""
    q0 = mixed().neutral()
    q0[0] = 1.1
    with pytest.raises(ls.ShapeError, match=r"^q0: a quaternion must have unit length to 1e-6"):
        simulate(mixed(), 0.1, q0)


class OwnError(Exception):
    """An error of a user's."""


@pytest.mark.parametrize("period", [None, 0.01])
def test_the_users_own_exception_arrives(period):
    """What an input function or a controller raises on the way reaches the caller as it is."""

    def stop_at(t, *_):
        if t > 0.03:
            raise OwnError(f"no more after {t:.2f}")
        return [0.0]

    with pytest.raises(OwnError, match=r"no more after 0\.0"):
        simulate(pendulum(), 0.1, [1.0], controller=stop_at, period=period)
    if period is None:
        with pytest.raises(OwnError):
            simulate(pendulum(), 0.1, [1.0], u=stop_at)
    assert simulate(pendulum(), 0.1, [1.0]).t[-1] == 0.1  # nothing is left behind


WHERE = {
    "controller": lambda fail: {"controller": lambda t, q, v: fail(t)},
    "controller: output": lambda fail: {"controller": ls.Controller(lambda t, q, v, z: fail(t))},
    "controller: rate": lambda fail: {
        "controller": ls.Controller(lambda t, q, v, z: [0.0], lambda t, q, v, z: fail(t), [0.0])
    },
    "u": lambda fail: {"u": fail},
}


@pytest.mark.parametrize("method", ["bdf", "radau", "generalized_alpha"])
@pytest.mark.parametrize("where", WHERE)
def test_what_is_raised_says_when(where, method):
    """An exception of a user's function keeps its type and its text, and says at which time it was raised, once."""

    def fail(t):
        if t > 0.03:
            raise KeyError("gain")
        return [0.0]

    with pytest.raises(KeyError, match="gain") as caught:
        ls.simulate(pendulum(), 0.1, **WHERE[where](fail), method=method, dt=0.01)
    told = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])  # Python 3.10 has no notes
    assert len(re.findall(rf"raised by {where} at t=0\.0[34]\d* s", told)) == 1
    assert told.count("raised by") == 1


@pytest.mark.parametrize("period", [None, 0.01])
def test_a_controller_that_returns_nan(period):
    """NaN from a controller on the way is a ShapeError that names it and the time."""
    with pytest.raises(ls.ShapeError, match=r"controller at t=0\.0[34]\d*: must be finite, got NaN"):
        simulate(pendulum(), 0.1, controller=lambda t, q, v: [np.nan if t > 0.03 else 0.0], period=period)


def test_a_massless_coordinate():
    """Forward dynamics' ModelError reaches the caller of simulate."""
    robot = ls.Robot("bare")
    robot.add_link("frame", None, ls.JointRevolute())
    with pytest.raises(ls.ModelError, match="link 'frame': its velocity coordinate 0 must move some mass"):
        simulate(robot.build(), 0.1)


def test_a_motion_that_stops(capfd):
    """Where the method gives up, the error says when and what to try, and carries the motion up to there."""

    def push(t):
        return [0.0 if t < 0.05 else 1e308]

    with pytest.raises(ls.ConvergenceError, match=r"stopped at t=0\.0\d+ s after \d+ steps: .*; try ") as caught:
        simulate(rod(), 0.2, u=push)
    motion = caught.value.partial
    assert isinstance(motion, ls.Trajectory)
    assert motion.q.shape == (len(motion.t), 3) and np.isfinite(motion.a).all()
    assert 0.03 < motion.t[-1] <= 0.051
    np.testing.assert_allclose(motion.q[-1], simulate(rod(), 0.2, t_eval=[motion.t[-1]]).q[-1], rtol=1e-2)
    assert motion.statistics.steps == len(motion.t) - 1
    assert tuple(capfd.readouterr()) == ("", "")  # SUNDIALS' own messages do not reach the terminal


def test_a_ball_on_the_floor_is_silent(capfd):
    """A start whose distance is exactly zero makes CVODE warn, which nobody sees; the prints of a controller are seen,
    and the output is as it was afterwards, also where several motions run at once."""
    robot = ls.Robot("ball")
    robot.add_link("ball", ls.RigidBody.sphere(0.1, density=500), ls.JointFree())
    robot.add_contact("floor", "ball", ls.ShapePlane(), stiffness=1e5)
    model = robot.build()
    start, before, variable = np.array([1.0, 0, 0, 0, 0, 0, 0.1]), sys.stdout, "SUNLOGGER_WARNING_FILENAME"

    def law(t, q, v):
        if t == 0.0:
            print("law")
        return []

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda k: simulate(model, 0.02 * k, start), (1, 2, 3)))
    assert tuple(capfd.readouterr()) == ("", "")
    simulate(model, 0.01, start, controller=law)
    captured = capfd.readouterr()
    assert set(captured.out.split()) == {"law"} and not captured.err
    assert sys.stdout is before and variable not in os.environ


def test_a_motion_that_blows_up():
    """dv/dt = v² leaves every bound at t = 2/3: ConvergenceError with the motion so far, soon and not by a hang.

    The run has a process of its own, so that a hang fails this test only.
    """
    code = """
import numpy as np, lissom as ls
robot = ls.Robot("runaway", gravity=(0, 0, 0))
robot.add_link("bob", ls.RigidBody(2.0, (0.0, 0.0, -0.5), (2 / 12, 2 / 12, 0.0)), ls.JointRevolute((0, 1, 0)))
robot.add_joint_actuator("motor", "bob")
try:
    ls.simulate(robot.build(), 1.0, v0=[1.0], controller=lambda t, q, v: v**2, method="bdf")
except ls.ConvergenceError as error:
    print("caught", error.partial.t[-1], np.isfinite(error.partial.q).all(), str(error))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    words = done.stdout.split("caught")[-1].split()
    assert float(words[0]) == pytest.approx(2 / 3, rel=1e-3)
    assert words[1] == "True"


@pytest.mark.filterwarnings("ignore::lissom.RedundancyWarning")
def test_a_start_that_steps_do_not_resolve():
    """Purpose: the acceleration a thousandth of a step ahead may belong to a state that the robot cannot have. It is
    left out, and steps end as failures of steps; the error was that of an argument q, with advice on Gauss points."""
    robot, place = ls.Robot("slider"), np.eye(4)
    place[0, 3] = 0.3
    soft = ls.Material(young=1e5, poisson=0.3, density=1000)
    robot.add_link("rod", ls.Rod(0.3, ls.SectionCircle(5e-4), ls.BasisLegendre(bending_y=3), soft))
    robot.add_link("cart", ls.RigidBody(1e-3), ls.JointPrismatic((1, 0, 0)), placement=place)
    robot.add_loop("pin", "rod", "cart", joint=ls.JointRevolute((0, 1, 0)))
    robot.add_wrench_input("turn", "rod", directions=(0, 1, 0, 0, 0, 0))
    with pytest.raises(ls.ConvergenceError, match="stopped at t="):
        ls.simulate(robot.build(), 0.02, u=[1e3], dt=0.01)
