"""Touches that begin and end within adaptive steps of the kernel: exact bounces, orders, batches."""

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import lissom as ls
from lissom.simulation.batches import AdaptiveBatch
from lissom.stepping.adaptive import AdaptiveKernelSteps, AdaptiveMotion

MASS, RADIUS, STIFFNESS, G = 0.5, 0.02, 1e4, 9.81
HEIGHT, DURATION = 0.1, 2.0  # of the fall [m], and seven bounces of it [s]


def ball(exponent=1.0, **law):
    """A ball that moves along z over a floor, whose push at a depth δ is k δ^p."""
    robot = ls.Robot("ball", gravity=(0, 0, -G))
    body = ls.RigidBody(MASS, inertia=(1e-4,) * 3, balls=[(0.0, 0.0, 0.0, RADIUS)])
    robot.add_link("ball", body, ls.JointPrismatic((0, 0, 1)))
    robot.add_contact("floor", "ball", ls.ShapePlane(), stiffness=STIFFNESS, exponent=exponent, **law)
    return robot.build()


@pytest.fixture(scope="module")
def linear():
    """The ball on a floor that pushes back as a spring."""
    return ball()


def bounces():
    """Times of the first touch, of a touch, and of a whole bounce [s]."""
    fall, speed, w = np.sqrt(2 * HEIGHT / G), np.sqrt(2 * G * HEIGHT), np.sqrt(STIFFNESS / MASS)
    touch = 2.0 * (np.pi - np.arctan(speed * w / G)) / w
    return fall, touch, 2.0 * fall + touch


def exact(times):
    """Where the ball is: parabolas, and halves of a vibration about where it would rest."""
    fall, touch, whole = bounces()
    speed, w = np.sqrt(2 * G * HEIGHT), np.sqrt(STIFFNESS / MASS)
    s = (times - fall) % whole
    down = G / w**2 * (np.cos(w * s) - 1.0) - speed / w * np.sin(w * s)
    up = speed * (s - touch) - 0.5 * G * (s - touch) ** 2
    return RADIUS + np.where(times < fall, HEIGHT - 0.5 * G * times**2, np.where(s < touch, down, up))


def dropped(model, rtol, **options):
    """The motion from rest."""
    return ls.simulate(model, DURATION, [RADIUS + HEIGHT], rtol=rtol, atol=1e-3 * rtol, **options)


def test_a_bouncing_ball_in_one_launch(linear, monkeypatch):
    """Seven bounces without Python, every one of whose touches begins and ends with a step."""
    runs, run = [], AdaptiveKernelSteps.run
    monkeypatch.setattr(AdaptiveKernelSteps, "run", lambda self, *args: runs.append(args) or run(self, *args))
    motion = dropped(linear, 1e-7)
    assert len(runs) == 1
    fall, touch, whole = bounces()
    events = (fall + whole * np.arange(7)[:, None] + [0.0, touch]).ravel()
    events = events[events < DURATION]
    missed = np.abs(motion.t - events[:, None]).min(axis=1)
    assert len(events) == 13 and missed.max() < 1e-5
    assert np.median(np.diff(motion.t)) > 5e-4
    assert np.abs(motion.q[:, 0] - exact(motion.t)).max() < 1e-6


def test_the_order_is_kept_across_touches(linear):
    """Of order 4 and within ten times the tolerance, where the stiffness jumps at every touch."""
    tolerances, times = 10.0 ** -np.arange(5, 10), np.linspace(0.0, DURATION, 41)
    steps, missed = [], []
    for rtol in tolerances:
        motion = dropped(linear, rtol, t_eval=times)
        steps.append(motion.statistics.steps)
        missed.append(np.abs(motion.q[:, 0] - exact(times)).max())
    assert np.all(np.array(missed[1:]) < 10.0 * tolerances[1:])
    assert -np.polyfit(np.log(steps), np.log(missed), 1)[0] > 4.0
    assert steps[-1] < 10.0 * steps[0]


def test_steps_of_order_two_end_at_touches(linear):
    """So do those of generalised-α: its error at bounces falls with the tolerance."""
    times = np.linspace(0.0, DURATION, 41)
    motion = dropped(linear, 1e-3, t_eval=times, method="generalized_alpha")
    assert np.abs(motion.q[:, 0] - exact(times)).max() < 0.01 and motion.statistics.steps < 300


def test_a_touch_of_hertz_keeps_its_energy():
    """Where the force begins smoothly: the ball rises to where it fell from, seven times."""
    motion = dropped(ball(1.5), 1e-7)
    energy = 0.5 * motion.v[:, 0] ** 2 + G * motion.q[:, 0]
    free = motion.q[:, 0] > RADIUS
    assert np.abs(energy[free] / energy[0] - 1.0).max() < 1e-5


def test_a_thin_plate_is_found_in_the_kernel(monkeypatch):
    """Free flight allows steps that go through it; none is looked at in Python, and none taken there."""
    monkeypatch.setattr(AdaptiveMotion, "_single_step", None)
    monkeypatch.setattr(AdaptiveMotion, "_contact", None)
    robot = ls.Robot("shot", gravity=(0, 0, 0))
    robot.add_link("ball", ls.RigidBody.sphere(0.005, density=1000), ls.JointFree())
    place = np.eye(4)
    place[0, 3] = 5.0
    robot.add_contact("plate", "ball", ls.ShapeBox(1e-3, 1.0, 1.0), placement=place, stiffness=1e8)
    model = robot.build()
    v0 = np.array([0, 0, 0, 20.0, 0, 0]) * np.linspace(0.8, 1.2, 3)[:, None]
    motion = ls.simulate(model, 0.4, v0=v0, t_eval=[0.4])
    np.testing.assert_allclose(motion.v[:, 0], -v0, rtol=0, atol=0.02)


def block():
    """A box that slides and sticks on a floor."""
    robot = ls.Robot("block", gravity=(1.0, 0.0, -G))
    robot.add_link("block", ls.RigidBody.box(0.1, 0.1, 0.05, density=1000), ls.JointFree())
    law = {"stiffness": 1e5, "friction": 0.5, "damping": 1.0, "stick_stiffness": 1e4, "stick_damping": 0.01}
    robot.add_contact("floor", "block", ls.ShapePlane(), **law)
    return robot.build()


@pytest.mark.parametrize("make", [ball, block])
def test_each_motion_of_a_batch_is_as_it_is_alone(make, monkeypatch):
    """To the last bit, in one launch and in short ones, whenever each touches; where contacts hold on, too."""
    model, rng, n = make(), np.random.default_rng(0), 4
    q0 = np.tile(model.neutral(), (n, 1))
    q0[:, -1] = (RADIUS if make is ball else 0.025) + rng.uniform(0.0, 0.05, n)
    v0 = 0.3 * rng.normal(size=(n, model.nv))
    options = {"t_eval": np.array([0.05, 0.051, 0.2, 0.4]), "rtol": 1e-4, "atol": 1e-7}
    runs, run = [], AdaptiveBatch.run
    monkeypatch.setattr(AdaptiveBatch, "run", lambda self, advance: runs.append(run(self, advance)))
    many = ls.simulate(model, 0.4, q0, v0, **options)
    with monkeypatch.context() as m:
        m.setattr("lissom.stepping.step_kernel._MOST_BYTES", 2**14)
        again = ls.simulate(make(), 0.4, q0, v0, **options)
    assert len(runs) == 2
    for k in range(n):
        alone = ls.simulate(model, 0.4, q0[k], v0[k], **options)
        for name in ("q", "v", "a", "anchors"):
            np.testing.assert_array_equal(getattr(many, name)[k], getattr(alone, name), (k, name))
            np.testing.assert_array_equal(getattr(again, name)[k], getattr(alone, name), (k, name))


def formulas():
    """The swing of `swept` as expressions."""
    x = "(40*maximum(t - 1, 0))"
    texts = (f"0.5*sin{x}**3", f"60*sin{x}**2*cos{x}", f"2400*(2*sin{x}*cos{x}**2 - sin{x}**3)")
    return {name: ls.Expression(text, "t") for name, text in zip(("position", "velocity", "acceleration"), texts)}


def swept(wrap):
    """A ball at rest, and a paddle that swings after a second, and so fast that long steps do not show it."""
    t = np.linspace(0.0, 3.0, 3001)
    swing = CubicSpline(t, np.where(t < 1.0, 0.0, 0.5 * np.sin(40.0 * (t - 1.0)) ** 3))
    robot = ls.Robot("swept", gravity=(0, 0, 0))
    robot.add_link("paddle", ls.RigidBody(1.0, inertia=(0.1,) * 3), ls.JointRevolute((0, 0, 1)))
    motion = {"position": swing, "velocity": swing.derivative(), "acceleration": swing.derivative(2)}
    robot.add_joint_motion("swing", "paddle", **{name: wrap(law) for name, law in motion.items()}
                           if wrap is not None else formulas())  # fmt: skip
    robot.add_link("ball", ls.RigidBody.sphere(0.02, density=1000), ls.JointFree())
    place = np.eye(4)
    place[0, 3] = 1.0
    box = ls.ShapeBox(0.2, 0.04, 0.04)
    robot.add_contact("hit", "ball", box, on="paddle", placement=place, stiffness=1e6)
    model = robot.build()
    q0 = model.neutral()
    q0[5:8] = np.cos(0.3), np.sin(0.3), 0.0
    return model, q0


@pytest.mark.parametrize(
    "wrap", [lambda law: law, lambda law: lambda t: law(t), None], ids=["in the kernel", "in Python", "expressions"]
)
def test_what_is_driven_hits(wrap):
    """An obstacle on a prescribed joint meets a ball at rest between the ends of a step, once: at twice its speed the
    ball flies on."""
    model, q0 = swept(wrap)
    motion = ls.simulate(model, 1.2, q0, rtol=1e-4, atol=1e-6, t_eval=[1.0, 1.2])
    hit = 1.0 + np.arcsin(((0.3 - 0.04) / 0.5) ** (1 / 3)) / 40.0
    way = 0.5 * 3.0 * np.sin(40.0 * (hit - 1.0)) ** 2 * np.cos(40.0 * (hit - 1.0)) * 40.0
    assert not motion.v[0, 1:].any()
    speed = np.linalg.norm(motion.v[1, 4:])
    assert 0.9 < speed / (2.0 * way) < 1.1
