"""Many branches of equilibria followed at once: each is that of `continuation`, from few launches."""

import numpy as np
import pytest
from statics.cantilevers import loaded
from statics.soft_robots import SOFT, arm, pair

import lissom as ls
from lissom.launch.buffers import Buffers
from lissom.statics import continuation, static_path
from lissom.statics.continuation import crossing

STIFF = ls.Material(young=1e7, poisson=0.5, density=1000)


def floating():
    """Bodies on sprung free and spherical joints, with a thruster."""
    robot = ls.Robot("sprung")
    robot.add_link("body", ls.RigidBody(1.0, (0.1, 0.0, 0.0), (2e-3, 3e-3, 4e-3)), ls.JointFree(stiffness=20.0))
    robot.add_link("head", ls.RigidBody(0.5, (0.0, 0.2, 0.0), (2e-3, 1e-3, 2e-3)), ls.JointSpherical(stiffness=4.0),
                   parent="body")  # fmt: skip
    robot.add_wrench_input("pull", "head", directions=(0, 0, 0, 1.0, 0, 0))
    return robot.build()


def gripped():
    """An arm whose input acts through a Python function of its angle: it has launches of its own."""
    robot = ls.Robot("gripped", gravity=(0, 0, 0))
    robot.add_link(
        "arm", ls.RigidBody(1.0, (0.1, 0, 0), (0.01, 0.01, 0.01)), ls.JointRevolute((0, 1, 0), stiffness=1.0)
    )
    robot.add_custom_actuator("grip", lambda q: [1 + q[0] ** 2])
    return robot.build()


def elastic():
    """An arm on an elastic tendon, with which nothing is linear in the factor."""
    robot = ls.Robot("elastic")
    rod = ls.Rod(0.5, ls.SectionCircle(0.02), ls.BasisLegendre(bending_y=2), SOFT)
    robot.add_link("arm", rod)
    robot.add_tendon("tendon", "arm", (0.0, 0.01), stiffness=100.0)
    return robot.build()


def turned():
    """A soft rod on a joint that turns with time, under its weight."""
    robot = ls.Robot("turned")
    rod = ls.Rod(0.3, ls.SectionCircle(0.02), ls.BasisLegendre(bending_y=2), STIFF)
    robot.add_link("rod", rod, ls.JointRevolute((0, 1, 0)))
    robot.add_joint_motion("turn", "rod", position=lambda t: 0.5 * t)
    robot.add_wrench_input("pull", "rod", directions=(0, 0, 0, 0, 0, 1.0))
    return robot.build()


ROBOTS = {
    "tendons": lambda: arm(upwards=True),
    "loops": lambda: pair(upwards=True, spatial=False),
    "groups": floating,
    "Python": gripped,
    "elastic tendon": elastic,
    "time": turned,
}


def assert_same_branch(one, other):
    """Points, stability and events to the last bit."""
    for name in ("q", "factor", "stable", "unstable_count"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert one.ended == other.ended and len(one.events) == len(other.events)
    for a, b in zip(one.events, other.events):
        assert (a.kind, a.index, a.factor, a.count) == (b.kind, b.index, b.factor, b.count)
        np.testing.assert_array_equal(a.direction, b.direction)


@pytest.mark.parametrize("kind", ROBOTS)
def test_each_is_as_alone(kind):
    """With inputs of their own, branches do not see each other, whatever the robot has."""
    model, rng = ROBOTS[kind](), np.random.default_rng(3)
    size = {"elastic tendon": 0.02, "Python": 0.4}.get(kind, 0.5)
    u = size * rng.uniform(0.2, 1.0, (4, model.nu))
    options = {"parameter": "time"} if kind == "time" else {}
    together = ls.branches(model, u=u, max_points=15, **options)
    assert len(together) == 4 and len({branch.q[-1].tobytes() for branch in together}) == 4
    for branch, row in zip(together, u):
        assert_same_branch(branch, ls.continuation(model, u=row, max_points=15, **options))


def test_many_take_few_launches(monkeypatch):
    """Thirty branches take hardly more launches than one of them, but for their starts."""
    model, runs, run = arm(upwards=False), [], Buffers.run
    monkeypatch.setattr(Buffers, "run", lambda self, *x, **y: (runs.append(self.batch), run(self, *x, **y)))
    u = np.random.default_rng(0).uniform(0.0, 0.5, (30, model.nu))
    ls.continuation(model, u=u[0], events=False)
    alone = len(runs)
    runs.clear()
    ls.branches(model, u=u, events=False)
    assert alone > 100 and sum(size > 1 for size in runs) < 3 * alone and len(runs) < 8 * alone


def test_starts_and_directions_of_their_own():
    """Both sides of a bent column are followed at once from the event, each along its direction."""
    column = loaded(ls.BasisLegendre(bending_y=6), force=(-(np.pi**2) / 4, 0, 0))
    (event,) = ls.continuation(column, factor_range=(0.0, 2.0)).events
    options = {"factor": event.factor, "factor_range": (0.0, 2.0)}
    one, other = ls.branches(column, q0=event.q, along=[event.direction, -event.direction], **options)
    assert one.stable.all() and other.stable.all()
    np.testing.assert_allclose(one.q[-1], -other.q[-1], rtol=0, atol=1e-9)
    assert_same_branch(other, ls.continuation(column, q0=event.q, along=event.direction, direction=-1, **options))


def test_one_that_ends():
    """A rod wound up until an interval turns by 2π ends its branch; the other is complete, and the error has both."""
    robot = ls.Robot("wound", gravity=(0, 0, 0))
    section = ls.SectionGeneral(stiffness=np.ones(6), inertia=(0, 0, 0, 1, 1, 1))
    robot.add_link("beam", ls.Rod(1.0, section, ls.BasisLegendre(bending_y=1), gauss_points=6))
    robot.add_wrench_input("tip", "beam", directions=(0, 1.0, 0, 0, 0, 0))
    with pytest.raises(ls.ConvergenceError, match=r"no next point at the factor 0.*\(instance 1 of 2\)") as caught:
        ls.branches(robot.build(), u=[[1.0], [60.0]], step=2.0)
    whole, broken = caught.value.partial
    assert whole.ended == "factor_range" and whole.factor[-1] == 1.0
    np.testing.assert_allclose(broken.q[:, 0], 60.0 * broken.factor, rtol=1e-9)


def test_wrong_arguments():
    """One leading axis, that of the branches; numbers that are finite."""
    model = arm(upwards=False)
    for bad in ({"u": np.zeros(3)}, {"u": np.zeros((2, 2, 3))}, {"u": np.zeros((2, 3)), "q0": np.zeros((3, model.nq))}):
        with pytest.raises(ls.ShapeError):
            ls.branches(model, **bad)
    with pytest.raises(ls.ShapeError, match="finite"):
        ls.branches(model, u=np.full((2, 3), np.nan))
    with pytest.raises(ls.ShapeError, match="along: expected shape"):
        ls.branches(model, u=np.zeros((2, 3)), along=np.ones((2, 3)))
    assert ls.branches(model, u=np.zeros((0, 3))) == ()


@pytest.mark.parametrize(
    "function, low, high, exact",
    [
        (lambda x: x**3 - 2.0, 0.0, 5.0, 2.0 ** (1 / 3)),
        (lambda x: np.tanh(1e3 * (x - 0.3)), 0.0, 1.0, 0.3),
        (lambda x: (x - 0.7) ** 9, 0.0, 1.0, 0.7),
        (lambda x: 1.0 if x > 0.123 else -1.0, 0.0, 1.0, 0.123),
        (lambda x: np.cos(x), 0.0, 3.0, np.pi / 2),
    ],
)
def test_where_a_sign_changes(function, low, high, exact):
    """Zeros of smooth, steep, flat and broken functions, to the requested tolerance and in about sixty values."""
    search, count = crossing(low, high, function(low), function(high), 1e-11), 0
    s = next(search)
    while True:
        count += 1
        try:
            s = search.send(function(s))
        except StopIteration as end:
            found = end.value
            break
    assert abs(found - exact) < (1e-11 if function(exact + 1e-11) != 0.0 else 1e-2) and count < 120


@pytest.mark.parametrize("count", [1, 2])
def test_an_interrupt_keeps_the_branches_so_far(monkeypatch, count):
    """Purpose: Ctrl-C leaves in `partial` the points that were found, which are those of the branch left alone."""
    model = loaded(ls.BasisLegendre(bending_y=2), force=(0, 0, 1.0))
    whole = ls.continuation(model, step=0.05)
    ahead, calls = static_path.ahead_on_each, [0]

    def interrupted(*args):
        calls[0] += 1
        if calls[0] == 4:
            raise KeyboardInterrupt
        return ahead(*args)

    monkeypatch.setattr(continuation, "ahead_on_each", interrupted)
    with pytest.raises(KeyboardInterrupt) as stop:
        if count == 1:
            ls.continuation(model, step=0.05)
        else:
            ls.branches(model, u=np.zeros((2, model.nu)), step=0.05)
    found = stop.value.partial if count > 1 else (stop.value.partial,)
    assert len(found) == count
    for branch in found:
        assert branch.ended == "interrupted" and len(branch.factor) == 4 < len(whole.factor)
        np.testing.assert_array_equal(branch.q, whole.q[:4])


def test_an_interrupt_before_the_first_point_has_nothing_to_keep(monkeypatch):
    """Purpose: where nothing is found yet, nothing is carried."""

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(continuation, "_start", interrupted)
    with pytest.raises(KeyboardInterrupt) as stop:
        ls.continuation(loaded(ls.BasisLegendre(bending_y=2), force=(0, 0, 1.0)))
    assert not hasattr(stop.value, "partial")
