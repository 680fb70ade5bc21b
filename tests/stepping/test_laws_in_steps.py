"""Traced feedback laws in steppers and in copies: the motions of `simulate`, added inputs, times of their own."""

import numpy as np
import pytest
from dynamics.small_robots import describe_pendulum
from simulation import test_traced_laws as laws

import lissom as ls
from lissom.model.model import Model
from lissom.stepping.feedback import native_law
from lissom.stepping.stepper import ATOL, RTOL, Copies, Stepper

jnp = pytest.importorskip("jax.numpy")
DT, STEPS = 2e-3, 20
SAME = {"method": "sdirk", "rtol": RTOL, "atol": ATOL}  # the steps of a stepper


def moved(stepper, u=None, steps=1):
    """The state of a stepper after steps."""
    stepper.step(u, steps)
    return stepper.state


@pytest.mark.parametrize("name", laws.ROBOTS)
def test_steps_are_those_of_a_simulation(name):
    """Calls of one and of many steps end where a simulation under the law does, with the same tolerance of Newton's
    method."""
    model, law = laws.ROBOTS[name](), laws.law_of(name)
    q0 = laws.start(model)
    known = ls.simulate(model, STEPS * DT, q0, controller=law, dt=DT, t_eval=[STEPS * DT], **SAME)
    stepper = Stepper(model, DT, controller=law, q0=q0)
    for steps in (1, 3, 16):
        stepper.step(steps=steps)
    here, far = stepper.state, np.abs(ls.difference(model, q0, known.q[-1])).max()
    assert here.t == pytest.approx(STEPS * DT)
    assert np.abs(ls.difference(model, here.q, known.q[-1])).max() < 1e-9 * far
    with_none = moved(Stepper(model, DT, q0=q0), steps=STEPS)
    assert np.abs(ls.difference(model, with_none.q, here.q)).max() > 1e-3 * far


@pytest.mark.parametrize("tolerance", [None, 1e-7], ids=["fixed", "adaptive"])
@pytest.mark.parametrize("in_python", [False, True], ids=["kernel", "python"])
def test_given_inputs_are_added(tolerance, in_python, monkeypatch):
    """Under a constant law a stepper moves as without one and with the sum of the inputs, which jump."""
    model, more = laws.pulled(), np.array([0.5, 0.003, 1.0, 0.3])
    law = ls.TracedFunction(lambda t, q, v: jnp.asarray(more))
    if in_python:
        monkeypatch.setattr(Model, "calls_python", True)
    under = Stepper(model, DT, controller=law, tolerance=tolerance)
    plain = Stepper(model, DT, u=more, tolerance=tolerance)
    for k in range(6):
        u = np.array([0.2 * k, 0.001 * k, 0.1, 0.05 * (k % 2)])
        one, other = moved(under, u, 2), moved(plain, u + more, 2)
        assert np.abs(one.q - other.q).max() < 1e-9 * np.abs(other.q).max()
        np.testing.assert_allclose(one.a, other.a, rtol=0, atol=1e-6 * np.abs(other.a).max())


def test_adaptive_steps():
    """With a tolerance a stepper under a law is where an accurate simulation is."""
    model, law = laws.pulled(), laws.law_of("pulled")
    known = ls.simulate(model, 0.06, controller=law, method="esdirk", rtol=1e-10, atol=1e-12, t_eval=[0.06])
    here = moved(Stepper(model, 0.02, controller=law, tolerance=1e-8), steps=3)
    assert np.abs(here.q - known.q[-1]).max() < 1e-5 * np.abs(known.q[-1]).max()


@pytest.mark.parametrize("options", [{"dt": DT, "method": "bathe"}, {"method": "esdirk"}], ids=["fixed", "adaptive"])
def test_simulations_forget_the_inputs_of_a_stepper(options):
    """Inputs that a stepper has added do not act in a later simulation. A load in Python lets steps be planned."""
    robot = describe_pendulum()
    robot.add_point_load("gust", "bob", force=lambda t: (0.1 * np.sin(20.0 * t), 0.0, 0.0))
    model, law = robot.build(), ls.TracedFunction(lambda t, q, v: -q)
    given = {"controller": law, "q0": [0.3], "t_eval": [0.02], **options}
    before = ls.simulate(model, 0.02, **given)
    Stepper(model, DT, controller=law, tolerance=1e-6, q0=[0.3]).step([10.0])
    np.testing.assert_array_equal(ls.simulate(model, 0.02, **given).q, before.q)


@pytest.mark.parametrize("tolerance", [None, 1e-6], ids=["fixed", "adaptive"])
def test_snapshots(tolerance):
    """From a snapshot another stepper under the same law moves on to the last bit."""
    model, law, u = laws.free(), laws.law_of("free"), 0.1 * np.array(laws.SIZES["free"])
    made = lambda: Stepper(model, DT, controller=law, tolerance=tolerance, q0=laws.start(model))  # noqa: E731
    first, second = made(), made()
    first.step(u, 3)
    kept = first.snapshot()
    one = moved(first, u, 4)
    second.restore(kept)
    other = moved(second, u, 4)
    for name in ("q", "v", "a"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_copies_have_times_of_their_own():
    """Copies under a law of time, placed at different moments, move as each alone, to the last bit, and as a stepper
    does."""
    model = laws.pulled()
    size = jnp.array(laws.SIZES["pulled"])
    law = ls.TracedFunction(lambda t, q, v: size * (jnp.sin(80.0 * t) ** 2 - 0.1 * jnp.tanh(v[:4])))
    n, rng = 5, np.random.default_rng(2)
    made = lambda count: Copies(model, count, dt=DT, steps=3, law=native_law(model, law))  # noqa: E731
    many, alone = made(n), [made(1) for _ in range(n)]
    still, u = np.zeros((1, model.nv)), 0.1 * rng.uniform(size=(n, model.nu)) * laws.SIZES["pulled"]
    for k, one in enumerate(alone):
        for copies, which in ((many, [k]), (one, [0])):
            copies.place(which, model.neutral()[None], still, u[k : k + 1])
    for count in range(8):
        which = np.flatnonzero(rng.uniform(size=n) < 0.3) if count < 5 else []
        for k in which:
            many.place([k], model.neutral()[None], still, u[k : k + 1])
            alone[k].place([0], model.neutral()[None], still, u[k : k + 1])
        assert not len(many.advance(u))
        for k, one in enumerate(alone):
            one.advance(u[k : k + 1])
    np.testing.assert_array_equal(many.q, np.concatenate([one.q for one in alone]))
    np.testing.assert_array_equal(many.v, np.concatenate([one.v for one in alone]))
    copies = made(1)
    copies.place([0], model.neutral()[None], still, u[:1])
    stepper = Stepper(model, DT, controller=law, u=u[0])
    for _ in range(4):
        copies.advance(u[:1])
        stepper.step(u[0], 3)
    assert np.abs(copies.q[0] - stepper.state.q).max() < 1e-9 * np.abs(copies.q).max()


@pytest.mark.filterwarnings("ignore::lissom.StepWarning")
def test_steps_that_are_cut():
    """A step under a law for which Newton's method fails is taken in parts, each with its own times, in copies too."""
    model = laws.touching()
    law = ls.TracedFunction(lambda t, q, v: jnp.array([-40.0, 8.0]) * jnp.sin(60.0 * t + 3.0 * q[0]) - 0.1 * v)
    q0, dt, count = model.neutral(), 0.05, 8
    known = ls.simulate(model, count * dt, q0, controller=law, dt=dt, t_eval=[count * dt], **SAME)
    assert known.statistics.plastic > count // 2
    stepper = Stepper(model, dt, controller=law)
    stepper.step(steps=count)
    copies = Copies(model, 2, dt=dt, steps=2, law=native_law(model, law))
    copies.place([0, 1], np.array([q0, q0]), np.zeros((2, model.nv)), np.zeros((2, model.nu)))
    for _ in range(count // 2):
        assert not len(copies.advance(np.zeros((2, model.nu))))
    for q in (stepper.state.q, *copies.q):
        np.testing.assert_allclose(q, known.q[-1], rtol=0, atol=1e-9)


def test_what_is_no_traced_function():
    """A function in Python is refused, with the place where its inputs go."""
    with pytest.raises(ls.ModelError, match=r"controller: must be an ls\.TracedFunction; .* `step`"):
        Stepper(laws.pendulum(), DT, controller=lambda t, q, v: -q)
