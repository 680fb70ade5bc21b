"""Numbers that public functions cannot use are refused at the door, on a fresh model and on a used one."""

from inspect import isroutine, signature

import numpy as np
import pytest
from dynamics.small_robots import mixed

import lissom as ls

LIE = {"so3_exp": 3, "so3_tangent": 3, "so3_tangent_inverse": 3, "se3_exp": 6, "se3_tangent": 6}


def pendulum():
    """A bar on a hinge with a motor."""
    robot = ls.Robot("pendulum")
    robot.add_link("bar", ls.RigidBody(1.0, (0.1, 0.0, 0.0), (1e-4, 2e-3, 2e-3)), ls.JointRevolute((0, 1, 0)))
    robot.add_joint_actuator("motor", "bar")
    return robot.build()


def of_time():
    """Public functions of a model with one time as an argument, but for those of other libraries."""
    for name in ls.__all__:
        function = getattr(ls, name)
        known = signature(function).parameters if isroutine(function) else {}
        ours = "t" in known and next(iter(known)) == "model" and not function.__module__.startswith("lissom.bridges")
        if ours and name not in ("fit", "static_reference"):
            yield name


@pytest.mark.parametrize("name", list(of_time()))
def test_times_are_checked(name):
    """Every function with t= refuses values that are not finite times, by name and by place, and takes a finite
    time."""
    model, one = pendulum(), np.zeros(1)
    given = {"targets": {"bar": [0.0, 0.0, 0.2]}, "y": {"motor": 0.1}, "link": "bar", "s": 0.0, "u": one}
    known = signature(getattr(ls, name)).parameters
    needed = {key: given.get(key, one) for key, p in list(known.items())[1:] if p.default is p.empty or key == "v"}
    for bad in (np.nan, np.inf, "soon", None, 1j):
        with pytest.raises(ls.ModelError, match=r"^t: must be "):
            getattr(ls, name)(model, **needed, t=bad)


def test_times_by_place_are_checked():
    """The time of forward dynamics, which may stand behind the inputs."""
    with pytest.raises(ls.ModelError, match=r"^t: must be a finite number"):
        ls.forward_dynamics(pendulum(), [0.0], [0.0], [0.0], np.nan)


def test_nothing_of_an_array_is_lost():
    """Complex and masked arrays are refused, also by a model that has prepared its calls; masks without an entry and
    empty arrays of complex numbers pass."""
    model, one = pendulum(), np.zeros(1)
    masked = np.ma.array(one, mask=True)
    for _ in range(3):
        ls.inverse_dynamics(model, one, one, one)
        with pytest.raises(ls.ShapeError, match=r"q: must be real \(got complex numbers\)"):
            ls.inverse_dynamics(model, one + 1j, one, one)
        for place in range(3):
            rows = [one, one, one]
            rows[place] = masked
            with pytest.raises(ls.ShapeError, match=rf"{'qva'[place]}: must have no masked entries \(got 1\)"):
                ls.inverse_dynamics(model, *rows)
    np.testing.assert_array_equal(
        ls.inverse_dynamics(model, np.ma.array(one), one, one), ls.inverse_dynamics(model, one, one, one)
    )
    with pytest.raises(ls.ShapeError, match="w: must be real"):
        ls.lie.so3_exp(np.zeros(3) + 1j)
    with pytest.raises(ls.ShapeError, match="target of 'bar': must be real"):
        ls.inverse_kinematics(model, {"bar": np.zeros(3) + 1j})
    robot = ls.Robot("x", gravity=np.zeros(3) + 1j)
    robot.add_link("bar", ls.RigidBody(1.0, np.ma.array(np.zeros(3), mask=[0, 0, 1]), (1.0, 1.0, 1.0)))
    with pytest.raises(ls.ModelError, match="gravity: must be real"):
        robot.build()
    robot.gravity = (0, 0, 0)
    with pytest.raises(ls.ModelError, match=r"com: must have no masked entries \(got 1\)"):
        robot.build()


LOSSY = {
    "complex": (lambda *shape: np.zeros(shape) + 0.1j, "must be real"),
    "masked": (lambda *shape: np.ma.array(np.zeros(shape), mask=True), "must have no masked entries"),
}


def acted_on(**functions):
    """The pendulum's bar with a force and an actuator of Python."""
    robot = ls.Robot("acted on")
    robot.add_link("bar", ls.RigidBody(1.0, (0.1, 0.0, 0.0), (1e-4, 2e-3, 2e-3)), ls.JointRevolute((0, 1, 0)))
    robot.add_force("push", "bar", functions.get("push", lambda t, g, eta: np.zeros(6)))
    robot.add_custom_actuator("pull", functions.get("pull", lambda q: np.ones(1)))
    return robot.build()


@pytest.mark.parametrize("kind", LOSSY)
def test_nothing_of_other_arrays_is_lost(kind):
    """Nor of times, samples, places, measurements, and what functions of the user return."""
    make, rule = LOSSY[kind]
    model, one = pendulum(), np.zeros(1)
    sensor = ls.SensorPosition("bar", 0.01)
    kalman = ls.ExtendedKalmanFilter(model, [sensor], dt=0.01)
    start = kalman.start(one, one, covariance=np.ones(2))
    calls = {
        "t_eval": lambda: ls.simulate(model, 0.01, t_eval=make(2)),
        "samples: t": lambda: ls.Samples(make(1), np.zeros((1, 1))),
        "samples: u": lambda: ls.Samples([0.0], make(1, 1)),
        "u at t=0": lambda: ls.simulate(model, 0.01, u=lambda t: make(1)),
        "controller": lambda: ls.simulate(model, 0.01, controller=lambda t, q, v: make(1)),
        "controller: start": lambda: ls.Controller(lambda t, q, v, z: z, lambda t, q, v, z: z, start=make(1)),
        "s": lambda: ls.frame_pose(model, one, "bar", s=make(1)),
        "force 'push' at t=0": lambda: ls.inverse_dynamics(acted_on(push=lambda t, g, eta: make(6)), one, one, one),
        "actuator 'pull'": lambda: ls.actuation_matrix(acted_on(pull=lambda q: make(1)), one),
        "measured > 'bar'": lambda: ls.fit(model, ["bar.mass"], np.zeros((1, 1)), {"bar": make(1, 3)}),
        r"measured\[0\]": lambda: kalman.innovation(start, [make(3)]),
        "covariance": lambda: kalman.start(one, one, covariance=make(2)),
    }
    for name, call in calls.items():
        with pytest.raises(ls.ShapeError, match=f"^{name}.*: {rule}"):
            call()
    with pytest.raises(ls.ModelError, match=r"^t: must"):
        ls.inverse_dynamics(model, one, one, one, t=np.ma.masked if kind == "masked" else 0.1j)


def test_results_that_overflow_are_errors():
    """No NaN at the end: of moves on the manifold, of the Lie group's functions, and of statics."""
    model = mixed()
    for size in (1e200, 1e308):
        with pytest.raises(ls.ShapeError, match="q and dv: the result is not finite"):
            ls.integrate(model, model.neutral(), np.full(model.nv, size))
        for name, n in LIE.items():
            with pytest.raises(ls.ShapeError, match="the result is not finite; the arguments are too large"):
                getattr(ls.lie, name)(np.full(n, size))
    with pytest.raises(ls.ShapeError, match="q0 and q1: the result is not finite"):
        ls.difference(pendulum(), [1e308], [-1e308])
    with pytest.raises(ls.ShapeError, match=r"u: must be at most 1e\+150, .*\(got 1e\+308\)"):
        ls.solve_statics(pendulum(), u=[1e308])


def test_a_batch_needs_a_list():
    """One number for all models is named, as are balls of points that coincide."""
    for value in (1e6, "12", np.array(2.0)):
        with pytest.raises(ls.ModelError, match=r"batch: bar\.mass: must be a list of values, one for each model"):
            pendulum().batch("bar.mass", value)
    faces = [[0, 1, 2], [0, 2, 3], [0, 3, 1], [1, 3, 2]]
    for size in (0.0, 1e-200, 1e200):
        with pytest.raises(ls.ModelError, match="fit_balls: vertices: must be apart, by 1e-09 m to "):
            ls.fit_balls(size * np.eye(4)[:, :3], faces)
