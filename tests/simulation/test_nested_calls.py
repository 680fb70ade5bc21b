"""A user's function that calls lissom on the model it acts on changes nothing except by its result.

Each run has buffers of its own. Every method, kind of function and inner call is compared, to the last bit, with a
function that asks a second model, equal to the first.
"""

from functools import partial

import numpy as np
import pytest

import lissom as ls

DT, DURATION, MOST = 0.005, 0.02, 20_000
LOOSE = {"rtol": 1e-2, "atol": 1e-4}  # the numbers compared are the same to the last bit, at any tolerance
METHODS = {
    "generalized_alpha": {"method": "generalized_alpha", "dt": DT},
    "newmark": {"method": "newmark", "dt": DT},
    "bathe": {"method": "bathe", "dt": DT},
    "esdirk": {"method": "esdirk", **LOOSE},
    "bdf": {"method": "bdf", **LOOSE},
    "auto": {"method": "auto", **LOOSE},
    "dop853": {"method": "dop853", **LOOSE},
}
OF_ROBOT = ("force", "load", "current", "actuator", "motion")
KINDS = ("u", "controller", "sampled controller", "rate", "derivatives", *OF_ROBOT)
FIXED, ADAPTIVE = tuple(METHODS)[:3], tuple(METHODS)[3:]
Q, V = np.array([0.3, -0.4]), np.array([0.5, 1.0])


def chain(actuator=None):
    """Two rods that hang on springs and are pulled about; the second one by an actuator of a user."""
    robot = ls.Robot("chain")
    for k in range(2):
        joint = ls.JointRevolute((0.0, 1.0, 0.0), stiffness=2.0, damping=0.05)
        body = ls.RigidBody(1.0, (0.2, 0.0, 0.0), (0.001, 0.02, 0.02))
        robot.add_link(f"link{k}", body, joint, parent=f"link{k - 1}" if k else None)
        if k and actuator is not None:
            robot.add_custom_actuator("motor1", actuator)
        else:
            robot.add_joint_actuator(f"motor{k}", f"link{k}")
    return robot


def simulated(model, t, options):
    """The end of a motion by the method of the outer one."""
    motion = ls.simulate(model, 2 * DT, Q, V, u=np.array([t, 0.0]), t_eval=[2 * DT], **options)
    return motion.q[-1]


def by_steps(model, t, _):
    """The same by given steps, whatever the method of the outer one."""
    return simulated(model, t, METHODS["generalized_alpha"])


def rolled(model, t, _):
    """The end of a rollout."""
    return ls.rollout(model, Q, V, np.array([t, 0.0]), dt=DT, steps=2).q[-1]


def stepped(model, t, _):
    """How a step answers."""
    return ls.step_derivatives(model, Q, V, np.array([t, 0.0]), dt=DT).A[:2, 0]


def rested(model, t, _):
    """An equilibrium."""
    return ls.solve_statics(model, np.array([t, 0.0]), q0=Q, stable=False).q


def forced(model, t, _):
    """Inverse dynamics at another state."""
    return ls.inverse_dynamics(model, Q + t, V, V, t=1.0)


def predicted(model, t, _):
    """The prediction of a filter."""
    sensor = ls.SensorPosition("link1", 1e-3)
    observer = ls.ExtendedKalmanFilter(model, [sensor], DT, process_noise=np.full(4, 1e-3))
    return observer.predict(observer.start(Q, V, np.full(4, 0.1)), np.array([t, 0.0])).covariance[:2, 0]


def planned(model, t, _):
    """The first inputs of a plan."""
    cost = ls.TrackingCost(model, inputs=1e-2, state=1.0)
    return ls.ModelPredictiveControl(model, cost, DT, 2).plan(0.0, Q + t, V).u[0]


INNER = {
    "simulate": simulated,
    "simulate by steps": by_steps,
    "rollout": rolled,
    "step_derivatives": stepped,
    "solve_statics": rested,
    "inverse_dynamics": forced,
    "EKF.predict": predicted,
    "MPC.plan": planned,
}


class Asking:
    """Numbers (2,) that follow t by an inner call on a model, at most MOST times; zero while such a call is at work."""

    def __init__(self, inner, options):
        self.inner, self.options, self.model, self.is_busy, self.calls = inner, options, None, False, 0

    def __call__(self, t):
        if self.is_busy or self.model is None:  # None while it is built
            return np.zeros(2)
        self.calls += 1
        if self.calls > MOST:
            raise RuntimeError("the run does not end")
        self.is_busy = True
        try:
            return 0.1 * self.inner(self.model, float(t), self.options)
        finally:
            self.is_busy = False


def later(ask, t):
    """The same at times that no inner call has, zero else: values at a time are kept, so that they must be those of t
    alone."""
    return ask(t) if 2.5 * DT < t <= 1.01 * DURATION else np.zeros(2)


def model_of(kind, ask):
    """The robot, with a part that asks."""
    robot = chain((lambda q: np.add([0.0, 1.0], ask(q[0]))[:, None]) if kind == "actuator" else None)
    if kind == "force":
        robot.add_force("pull", "link1", lambda t, g, eta: np.append(0.01 * eta[:4], ask(t)))
    if kind == "load":
        robot.add_point_load("pull", "link1", force=lambda t: (*ask(t), 0.0))
    if kind == "current":
        felt = ls.Hydrodynamics(volume=1e-4, added_matrix=(0.0, 0.001, 0.001, 0.1, 0.1, 0.1), drag_matrix=np.ones(6))
        robot.set_fluid(1000.0, current=lambda t: (*later(ask, t), 0.1), default=felt)
    if kind == "motion":
        functions = {"position": lambda t: Q[0] + later(ask, t)[0], "velocity": lambda t: later(ask, t)[0]}
        robot.add_joint_motion("drive", "link0", **functions, acceleration=lambda t: later(ask, t)[1])
    return robot.build()


def by_asking(ask):
    """Derivatives of a law by q and v, of which small terms ask."""
    return lambda t, q, v, z: (np.zeros((2, 2)), np.diag(1e-3 * ask(t) - 0.1))


def motion(kind, inner, options, asks_itself):
    """The motion under a function that asks the model of the motion, or another one."""
    ask = Asking(inner, options)
    model = model_of(kind, ask)
    ask.model = model if asks_itself else model_of(kind, ask)
    law = {
        "u": {"u": ask},
        "controller": {"controller": lambda t, q, v: ask(t) - 0.1 * v},
        "sampled controller": {"controller": lambda t, q, v: ask(t) - 0.1 * v, "period": DT},
        "rate": {"controller": ls.Controller(lambda t, q, v, z: z, lambda t, q, v, z: ask(t) - z, np.zeros(2))},
        "derivatives": {"controller": ls.Controller(lambda t, q, v, z: -0.1 * v, derivatives=by_asking(ask))},
    }.get(kind, {})
    start = Q + 0.05 if kind == "actuator" else Q  # where the inner calls do not begin: it is a function of q alone
    found = ls.simulate(model, DURATION, start, V, **law, **options)
    return found, ask.calls


def compare(method, kind, inner):
    """A motion whose function asks its own model is the one whose function asks another."""
    if kind in OF_ROBOT and inner in ("EKF.predict", "MPC.plan"):
        return  # which refuse loads and laws that follow time
    if kind == "motion" and inner == "step_derivatives":
        return  # whose states are free
    if kind == "derivatives" and method == "dop853":
        return  # which needs none
    run = partial(motion, kind, INNER[inner], METHODS[method])
    (own, calls), (other, others) = run(True), run(False)
    assert calls == others > 0
    for name in ("t", "q", "v", "u"):
        np.testing.assert_array_equal(getattr(own, name), getattr(other, name), err_msg=f"{method} {kind} {inner}")


@pytest.mark.parametrize("kind", KINDS)
def test_functions_may_simulate_their_own_model(kind):
    """A law, a load or a force that simulates, by the same method, the model that it drives returns, with the result
    of an equal model. Each kind has two methods here and each method two kinds or more; the slow test has all
    pairs."""
    k = KINDS.index(kind)
    for method in (FIXED[k % 3], ADAPTIVE[k % 4]):
        compare(method, kind, "simulate")


@pytest.mark.parametrize("inner", INNER)
def test_functions_may_ask_their_own_model(inner):
    """The same of whatever else a controller, by given steps, or a load, by adaptive ones, asks."""
    compare("generalized_alpha", "controller", inner)
    compare("esdirk", "load", inner)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
def test_all_functions_may_ask_all(method, kind):
    """Every method, kind of function and inner call."""
    for inner in INNER:
        compare(method, kind, inner)


def test_the_motion_of_the_report():
    """A law that simulates its own model for a while, at one time alone, leaves the motion as it is."""
    model, seen = chain().build(), []

    def law(t):
        if not seen and t >= 0.01:
            seen.append(ls.simulate(model, 0.05, -Q, dt=0.002).q[-1])
        return np.zeros(2)

    asked = ls.simulate(model, 0.1, Q, V, u=law, method="generalized_alpha", dt=0.002)
    plain = ls.simulate(chain().build(), 0.1, Q, V, u=lambda t: np.zeros(2), method="generalized_alpha", dt=0.002)
    assert seen
    np.testing.assert_array_equal(asked.q, plain.q)


@pytest.mark.parametrize("kind", ["u", "progress"])
def test_batches_may_be_interrupted(kind):
    """Motions that run together, of which a function of time, or a bar, simulates the same batch on the way."""
    starts = np.linspace(-0.3, 0.3, 3)[:, None] * np.ones(2)
    plain = ls.simulate(chain().build(), DURATION, starts, u=lambda t: (t, 0.0), dt=DT, t_eval=[DURATION])
    model = chain().build()

    def law(t):
        if kind == "u":
            ls.simulate(model, 2 * DT, -starts, dt=DT, t_eval=[2 * DT])
        return t, 0.0

    asked = ls.simulate(model, DURATION, starts, u=law, dt=DT, t_eval=[DURATION])
    np.testing.assert_array_equal(asked.q, plain.q)


def pairs(distances):
    """Pairs of methods, the second so many places behind the first in the list."""
    names = list(METHODS)
    return [(names[k], names[(k + far) % len(names)]) for far in distances for k in range(len(names))]


@pytest.mark.parametrize("distances", [(1, 3), pytest.param((0, 2, 4, 5, 6), marks=pytest.mark.slow)])
def test_pairs_of_methods(distances):
    """A law of time under each method simulates its own model by two other ones; by all in the slow test."""
    model, other = chain().build(), chain().build()
    for outer, inner in pairs(distances):
        ends = []
        for asked in (model, other):

            def law(t, asked=asked, options=METHODS[inner]):
                return 0.1 * simulated(asked, t, options) if t < 2 * DT else np.zeros(2)

            ends.append(ls.simulate(model, 2 * DT, Q, V, u=law, **METHODS[outer]).q)
        np.testing.assert_array_equal(*ends, err_msg=f"{inner} in {outer}")
