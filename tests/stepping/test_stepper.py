"""Steps one call after the other: the same as those of a simulation, whatever the calls."""

from __future__ import annotations

import copy
import pickle
from threading import Thread

import numpy as np
import pytest

import lissom as ls
from lissom.stepping.stepper import Stepper

DT = 1.0 / 240.0


def arm(order=1):
    """A soft arm that is driven by one tendon."""
    robot = ls.Robot("arm")
    basis = ls.BasisLegendre(bending_y=order, bending_z=0)
    rod = ls.Rod(0.3, ls.SectionCircle((0.02, 0.01)), basis, ls.Material(young=1e6, density=1000, viscosity=2e3))
    robot.add_link("arm", rod)
    robot.add_tendon("up", "arm", (0.0, 0.008))
    return robot.build()


def moved(stepper, u=None, steps=1):
    """The state of a stepper after steps."""
    stepper.step(u, steps)
    return stepper.state


@pytest.fixture(scope="module")
def model():
    """The arm, clamped."""
    return arm()


def test_constant_inputs_give_the_steps_of_a_simulation(model):
    """Calls of one, three and many steps end where one simulation with as many steps does."""
    known = ls.simulate(model, 60 * DT, u=[3.0], method="sdirk", dt=DT, rtol=1e-10, atol=1e-12)
    stepper = Stepper(model, u=[3.0], dt=DT)
    for steps in (1, 3, 16, 40):
        stepper.step([3.0], steps)
        here = stepper.state
    assert here.t == pytest.approx(60 * DT, rel=1e-12)
    scale = np.abs(known.q).max(axis=0)
    assert np.abs(here.q - known.q[-1]).max() < 1e-6 * scale.max()
    assert np.abs(here.v - known.v[-1]).max() < 1e-5 * np.abs(known.v).max()


def test_changing_inputs_are_right_to_second_order(model):
    """Inputs that are told step by step, for the middle of each step, converge to those of a function of time as the
    square of the step."""

    def pull(t):
        return np.array([2.0 * np.sin(20.0 * t) ** 2])

    q0 = ls.solve_statics(model).q
    exact = ls.simulate(model, 0.2, q0=q0, u=pull, rtol=1e-11, atol=1e-13, t_eval=[0.2]).q[-1]
    missed = []
    for n in (96, 192, 384):
        stepper = Stepper(model, 0.2 / n, q0=q0)
        for k in range(n):
            stepper.step(pull(0.2 * (k + 0.5) / n))
            here = stepper.state
        missed.append(np.abs(here.q - exact).max())
    assert np.log2(missed[0] / missed[1]) > 1.7 and np.log2(missed[1] / missed[2]) > 1.7


def test_a_motion_goes_on_from_where_it_was(model):
    """A stepper placed at a later time, in the state another has reached, goes on as that one does."""
    first = Stepper(model, u=[3.0], dt=DT)
    here = moved(first, [3.0], 20)
    second = Stepper(model, DT, q0=here.q, v0=here.v, u=[3.0], t=here.t)
    one, other = moved(first, [3.0], 20), moved(second, [3.0], 20)
    assert one.t == pytest.approx(other.t)
    assert np.abs(one.q - other.q).max() < 1e-3 * np.abs(one.q).max()


def test_inputs_that_change_keep_newtons_matrix(model):
    """Small changes of the inputs from call to call cost few matrices."""
    stepper = Stepper(model, DT, q0=ls.solve_statics(model).q)
    for k in range(60):
        stepper.step([0.01 * k])
    assert stepper.matrices <= 6


def test_a_free_robot_that_touches_and_sticks_comes_to_rest():
    """Anchors of contacts are kept on the way: a box laid on a slope under its angle of friction stays there."""
    robot = ls.Robot("box", gravity=(1.0, 0.0, -9.0))
    robot.add_link("box", ls.RigidBody.box(0.1, 0.1, 0.05, density=500), ls.JointFree())
    robot.add_contact("floor", "box", ls.ShapePlane(), stiffness=1e4, damping=3.0, friction=0.5, stick_stiffness=1e4)
    model = robot.build()
    start = model.neutral()
    start[6] = 0.026
    stepper = Stepper(model, DT, q0=start)
    stepper.step(steps=360)
    here = stepper.state
    there = moved(stepper, steps=240)
    assert np.abs(there.v).max() < 1e-3
    assert abs(there.q[4] - here.q[4]) < 1e-5  # it does not creep


def test_python_between_the_steps_changes_nothing(model):
    """A robot whose forces come from Python takes the same steps."""
    robot = ls.Robot("arm")
    robot.add_link("arm", model.links.body[0])
    robot.add_custom_actuator("up", lambda q: ls.actuation_matrix(model, q))
    there = moved(Stepper(robot.build(), u=[2.0], dt=DT), [2.0], 12)
    here = moved(Stepper(model, u=[2.0], dt=DT), [2.0], 12)
    assert np.abs(there.q - here.q).max() < 1e-6 * np.abs(here.q).max()


def test_a_step_that_cannot_be_taken_says_when(model):
    """If no step is found, the error has the time, and the state stays the one before."""
    stepper = Stepper(model, dt=DT)
    before = moved(stepper, steps=2)
    with pytest.raises(ls.ConvergenceError, match=r"stopped at t=0\.0083"):
        stepper.step([1e30], 4)
    assert stepper.state.t == before.t and np.array_equal(stepper.state.q, before.q)


def test_arguments_are_checked(model):
    """Sizes and numbers that cannot be are refused by name."""
    with pytest.raises(ls.ModelError, match="dt"):
        Stepper(model, dt=0.0)
    with pytest.raises(ls.ShapeError, match="q"):
        Stepper(model, DT, q0=np.zeros(model.nq + 1))
    with pytest.raises(ls.ShapeError, match="u"):
        Stepper(model, dt=DT).step(np.zeros(model.nu + 1))
    with pytest.raises(ls.ModelError, match=r"^scheme: must be a Scheme, such as ls\.sdirk\(\) .* \(got 'sdirk'\)"):
        ls.Stepper(model, DT, scheme="sdirk")


@pytest.mark.parametrize("tolerance", [None, 1e-5])
def test_inputs_and_numbers_of_steps_are_checked(model, tolerance):
    """Inputs that are not finite, and numbers of steps that are none, are refused by name, and change nothing."""
    stepper, other = (ls.Stepper(model, DT, tolerance=tolerance) for _ in range(2))
    for bad in (np.nan, np.inf):
        for call in (stepper.step, lambda u: stepper.set_state(u=u)):
            with pytest.raises(ls.ShapeError, match=r"^u: must be finite, got NaN or infinity"):
                call([bad])
        with pytest.raises(ls.ModelError, match=r"^t: must be a finite number"):
            stepper.set_state(t=bad)
        with pytest.raises(ls.ModelError, match=r"^t: must be a finite number"):
            ls.Stepper(model, DT, t=bad)
    for bad in (-1, 1.5, None, True, "2"):
        with pytest.raises(ls.ModelError, match=r"^steps: must be an integer >= 0 \(got "):
            stepper.step([1.0], bad)
    stepper.step([1.0], 0)
    assert stepper.state.t == 0.0
    one, two = moved(stepper, [2.0], 5), moved(other, [2.0], np.int64(5))
    assert one.t == two.t and np.array_equal(one.q, two.q)


def test_snapshots_of_other_steppers_are_refused(model):
    """Nothing but a snapshot of the same model, dt, tolerance and scheme is taken; the message names the difference."""
    snapshot = ls.Stepper(model, DT).snapshot()
    for bad in ({}, None, ls.Stepper(model, DT).state):
        with pytest.raises(ls.ModelError, match=r"^snapshot: must come from Stepper\.snapshot"):
            ls.Stepper(model, DT).restore(bad)
    stiffer = model.with_({"arm.material.young": 3e6})
    same = pickle.loads(pickle.dumps(model))
    others = {
        "dt": ls.Stepper(model, 2.0 * DT),
        "scheme, here generalized_alpha": ls.Stepper(model, DT, scheme=ls.generalized_alpha()),
        "tolerance": ls.Stepper(model, DT, tolerance=1e-5),
        "model, here the model 'arm'": ls.Stepper(stiffer, DT),
        "model": ls.Stepper(arm(3), DT),
    }
    for name, stepper in others.items():
        before = moved(stepper, [1.0], 2)
        with pytest.raises(ls.ModelError, match=f"^snapshot: must be of a stepper with the same {name}"):
            stepper.restore(snapshot)
        assert np.array_equal(stepper.state.q, before.q)
    named = ls.Stepper(model, DT, scheme=ls.sdirk())  # the default by its name
    named.restore(snapshot)
    assert named.state.t == 0.0
    again = ls.Stepper(same, DT)  # the same model, built again
    again.restore(pickle.loads(pickle.dumps(snapshot)))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda stepper: pickle.loads(pickle.dumps(stepper))],
                         ids=["deepcopy", "pickle"])  # fmt: skip
@pytest.mark.parametrize("tolerance", [None, 1e-5])
def test_steppers_are_copied(model, tolerance, copied):
    """A copy goes on like the stepper, bit for bit, and apart from it."""
    stepper = ls.Stepper(model, DT, tolerance=tolerance, q0=[0.5, -0.2, 0.1], u=[1.0], t=0.3)
    moved(stepper, [2.0], 5)
    other = copied(stepper)
    one = moved(stepper, [1.0], 10)
    assert other.state.t < one.t
    two = moved(other, [1.0], 10)
    assert one.t == two.t and np.array_equal(one.q, two.q) and np.array_equal(one.v, two.v)


@pytest.mark.parametrize("tolerance", [None, 1e-5])
def test_states_are_read_only(model, tolerance):
    """A state that is read cannot be changed, and does not change when the stepper goes on."""
    stepper = ls.Stepper(model, DT, tolerance=tolerance)
    here = moved(stepper, [2.0], 3)
    for name in ("q", "v", "a"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(here, name)[0] = 9.0
    q = here.q.copy()
    moved(stepper, [2.0], 3)
    np.testing.assert_array_equal(here.q, q)


def test_one_thread_at_a_time_uses_a_stepper(model):
    """A second thread is refused by name; steps of several threads in one stepper were lost. So is a step in a step."""
    stepper, refused = ls.Stepper(model, DT), []

    def use():
        with pytest.raises(ls.ModelError, match=r"^stepper: another thread") as error:
            stepper.step([1.0])
        refused.append(error)

    stepper._begin()
    thread = Thread(target=use)
    thread.start()
    thread.join()
    stepper._lock.release()
    assert len(refused) == 1 and moved(stepper, [1.0]).t == pytest.approx(DT)


def pushed(model):
    """A robot with a force of Python."""
    robot = model.description
    robot.add_force("pull", "arm", lambda t, g, eta: np.array([0.0, 0.0, 0.0, 0.0, 0.0, -0.1]) - 0.01 * eta)
    return robot.build()


@pytest.mark.parametrize("tolerance", [None, 1e-5])
@pytest.mark.parametrize("python", [False, True], ids=["kernel", "Python"])
def test_a_snapshot_leads_back_to_the_last_bit(model, python, tolerance):
    """After it is restored, in this stepper or a new one, the same inputs give the same motion."""
    robot = pushed(arm()) if python else model
    pulls = np.random.default_rng(0).uniform(0.0, 4.0, (8, 1))
    steppers = [ls.Stepper(robot, 4.0 * DT, tolerance=tolerance) for _ in range(2)]
    for u in pulls[:3]:
        steppers[0].step(u)
    before, at = steppers[0].snapshot(), steppers[0].state.t
    ends = [[moved(steppers[0], u) for u in pulls[3:]][-1]]
    for stepper in steppers:
        stepper.restore(before)
        assert stepper.state.t == at
        ends.append([moved(stepper, u) for u in pulls[3:]][-1])
    for end in ends[1:]:
        assert np.array_equal(end.q, ends[0].q) and np.array_equal(end.v, ends[0].v)


def test_a_tolerance_takes_as_many_steps_as_it_needs(model):
    """Long steps under held inputs end where an exact motion does, also where the inputs have jumped."""
    stepper, q, v = ls.Stepper(model, 0.1, tolerance=1e-7), model.neutral(), np.zeros(model.nv)
    for pull in (3.0, 0.0, 5.0):
        exact = ls.simulate(model, 0.1, q, v, u=[pull], rtol=1e-10, atol=1e-12, t_eval=[0.1])
        q, v = exact.q[-1], exact.v[-1]
        stepper.step([pull])
        here = stepper.state
        assert np.abs(here.q - q).max() < 1e-5 * np.abs(q).max()
    assert here.t == pytest.approx(0.3)


def test_a_state_can_be_set(model):
    """A stepper that is put to a state takes the steps of one that begins there."""
    stepper, other = ls.Stepper(model, DT), ls.Stepper(model, DT, q0=[0.5, -0.2, 0.1], v0=[1.0, 0.0, 0.0], u=[2.0])
    stepper.step([5.0], 7)
    stepper.set_state([0.5, -0.2, 0.1], [1.0, 0.0, 0.0], [2.0], t=0.0)
    one, same = moved(stepper, [2.0], 20), moved(other, [2.0], 20)
    assert one.t == same.t and np.array_equal(one.q, same.q)
