"""Batches of motions: each is the motion that it is alone, to the last bit, whatever happens to the others.

Tolerances are zero where the same numbers are computed; failures are made by steps that are far too long.
"""

import copy
import threading
import warnings

import numpy as np
import pytest
from dynamics.small_robots import mixed, pendulum, rod

import lissom as ls
from lissom.simulation import batches
from lissom.simulation.inputs import InputRows
from lissom.stepping import step_kernel

ARRAYS = ("q", "v", "a", "u", "multipliers", "z")
TIMES = np.linspace(0.0, 0.2, 9)
OPTIONS = {"method": "generalized_alpha", "dt": 0.01, "t_eval": TIMES}


def starts(model, count, size=0.1, seed=0):
    """Configurations near the neutral one, and velocities."""
    rng = np.random.default_rng(seed)
    moves = size * rng.normal(size=(count, model.nv)) * model.dofs.scale
    return ls.integrate(model, model.neutral(), moves), size * rng.normal(size=(count, model.nv)) * model.dofs.scale


def four_bar():
    """Three bars and the ground, closed by a revolute joint."""
    robot = ls.Robot("four-bar")
    length = {"a": 0.3, "b": 0.5, "c": 0.4}
    bars = {name: ls.RigidBody(0.5, com=(x / 2, 0, 0), inertia=(1e-3, 4e-3, 4e-3)) for name, x in length.items()}
    at = np.eye(4)
    robot.add_link("a", bars["a"], ls.JointRevolute((0, 1, 0)), placement=at)
    at = np.eye(4)
    at[0, 3] = 0.3
    robot.add_link("b", bars["b"], ls.JointRevolute((0, 1, 0)), parent="a", placement=at)
    ground = np.eye(4)
    ground[0, 3] = 0.6
    robot.add_link("c", bars["c"], ls.JointRevolute((0, 1, 0)), placement=ground)
    tip_b, tip_c = np.eye(4), np.eye(4)
    tip_b[0, 3], tip_c[0, 3] = 0.5, 0.4
    robot.add_loop("pin", "b", "c", placement_a=tip_b, placement_b=tip_c, joint=ls.JointRevolute((0, 1, 0)))
    robot.add_joint_actuator("motor", "a")
    model = robot.build()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ls.RedundancyWarning)
        ls.assemble(model, [0.0, 0.0, 1.0])  # says once that rows depend on each other
    return model


def rod_in_a_loop():
    """A rod whose tip slides on the ground's axis by a prismatic and a revolute joint."""
    robot = ls.Robot("bow")
    silicone = ls.Material(young=1e6, poisson=0.5, density=1000, viscosity=1e4)
    body = ls.Rod(0.4, ls.SectionCircle(0.01), ls.BasisLegendre(torsion=1, bending_y=2, bending_z=2), silicone)
    robot.add_link("bow", body, ls.JointSpherical())
    placement = np.eye(4)
    placement[0, 3] = 0.36
    robot.add_loop("end", "bow", None, placement_b=placement, joint=ls.JointUniversal((0, 1, 0), (0, 0, 1)))
    robot.add_tendon("t", "bow", lambda s: (0.0, 0.008))
    return robot.build()


def ball(stick_stiffness=0.0):
    """A ball that falls on a floor, with friction."""
    robot = ls.Robot("ball")
    robot.add_link("ball", ls.RigidBody.sphere(0.05, density=500), ls.JointFree())
    law = {"stiffness": 2e4, "friction": 0.4, "damping": 0.2, "slip_speed": 0.05}
    if stick_stiffness:
        law |= {"stick_stiffness": stick_stiffness}
    floor = np.eye(4)
    floor[2, 3] = -0.06
    robot.add_contact("floor", ["ball"], ls.ShapePlane((0, 0, 1)), placement=floor, radius=0.05, **law)
    return robot.build()


def same(model, many, ones):
    """All arrays of a batch are those of the single motions, to the last bit; costs add up."""
    for k, one in enumerate(ones):
        assert np.array_equal(many.t, one.t)
        for name in ARRAYS:
            np.testing.assert_array_equal(getattr(many, name)[k], getattr(one, name), err_msg=f"{name} of {k}")
        np.testing.assert_array_equal(many.anchors[k], one.anchors)
    for name in ("steps", "evaluations", "jacobians"):
        assert getattr(many.statistics, name) == sum(getattr(one.statistics, name) for one in ones), name


def compare(model, q, v, u, **changes):
    """Simulate a batch and its members."""
    options = OPTIONS | changes
    duration = float(options["t_eval"][-1])
    inputs = [u] * len(q) if u is None or callable(u) else u
    many = ls.simulate(model, duration, q, v, u, **options)
    ones = [ls.simulate(model, duration, *x, **options) for x in zip(q, v, inputs)]
    same(model, many, ones)
    return many


@pytest.mark.parametrize("scheme", ["generalized_alpha", "newmark", "implicit_euler", "bathe"])
def test_trees(scheme):
    """A hybrid tree with spherical and free joints, loads of time and tendons."""
    model = mixed()
    q, v = starts(model, 5)
    compare(model, q, v, np.random.default_rng(1).uniform(0.0, 1.0, (5, model.nu)), method=scheme, dt=0.004)


@pytest.mark.parametrize("scheme", ["generalized_alpha", "newmark", "bathe"])
@pytest.mark.parametrize("build", [four_bar, rod_in_a_loop])
def test_loops(scheme, build):
    """Robots with loops, with projected velocities, and free ones under a scheme that settles accelerations."""
    model = build()
    q = np.array([ls.assemble(model, x) for x in starts(model, 4)[0]])
    u = np.random.default_rng(2).uniform(0.0, 0.5, (4, model.nu))
    v = starts(model, 4)[1]
    compare(model, q, v, u, method=scheme, dt=0.005)
    compare(model, q, v, u, method=scheme, dt=0.005, project_velocity=False)


def test_dependent_rows():
    """A planar loop has rows that depend on each other: forces of least norm are those of each motion alone."""
    model = four_bar()
    q = np.array([ls.assemble(model, [0.1 * k, 0.0, 1.0]) for k in range(3)])
    many = compare(model, q, np.zeros((3, 3)), np.ones((3, 1)))
    assert np.abs(many.multipliers).max() > 0.0


@pytest.mark.parametrize("stick_stiffness", [0.0, 1e4])
def test_contact(stick_stiffness):
    """Balls that fall, roll and slide; with friction that holds, each has anchors of its own."""
    model = ball(stick_stiffness)
    q = np.tile(model.neutral(), (6, 1))
    q[:, 6] += np.linspace(-0.012, 0.02, 6)
    v = np.random.default_rng(3).normal(size=(6, 6)) * [1, 1, 1, 0.3, 0.3, 0.1]
    many = compare(model, q, v, None, t_eval=np.linspace(0.0, 0.3, 7), dt=0.005)
    assert np.isnan(many.anchors).all() or stick_stiffness > 0.0


@pytest.mark.parametrize("dt", [0.01, 0.05])
def test_failures_inside_a_batch(dt):
    """Steps that fail are cut, for the motions that ask for it, and the others take their whole steps."""
    model = rod()
    q, v = starts(model, 6, size=1.0)
    options = {"dt": dt, "t_eval": [0.05, 0.2]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ls.PlausibilityWarning)
        many = compare(model, q, v, np.random.default_rng(7).uniform(0.0, 1.0, (6, model.nu)), **options)
        steps = [ls.simulate(model, 0.2, *x, **(OPTIONS | options)).statistics.steps for x in zip(q, v)]
    assert min(steps) < max(steps), "not all motions fail at the same steps, or they would show nothing"
    assert many.statistics.steps > 6 * round(0.2 / dt)


def test_failures_under_loads_of_time():
    """A step that is cut sees loads and prescribed motions of its own times."""
    robot = ls.Robot("driven")
    robot.add_link("base", ls.RigidBody(0.3, inertia=(0.01, 0.01, 0.01)), ls.JointRevolute((0, 0, 1)))
    body = ls.Rod(
        0.3, ls.SectionCircle(0.01), ls.BasisLegendre(bending_y=2, bending_z=2), ls.Material(young=1e6, density=1000)
    )
    robot.add_link("rod", body, parent="base")
    robot.add_joint_motion("turn", "base", position=lambda t: np.sin(30.0 * t))
    robot.add_point_load("wind", "rod", force=lambda t: (0.0, 0.3 * np.cos(40.0 * t), 0.2 * t))
    model = robot.build()
    q, v = starts(model, 5, size=2.0, seed=3)
    many = compare(model, q, v, lambda t: np.zeros(0), t_eval=[0.1, 0.2], dt=0.05)
    assert many.statistics.steps > 5 * 4


def test_short_windows(monkeypatch):
    """The memory bound splits a run into several launches, which changes nothing."""
    model = rod()
    q, v = starts(model, 3)
    whole = ls.simulate(model, 0.2, q, v, **OPTIONS)
    monkeypatch.setattr(step_kernel, "_MOST_BYTES", 1)
    model = copy.copy(model)  # with buffers of its own
    split = ls.simulate(model, 0.2, q, v, **OPTIONS)
    assert step_kernel.steps_workspace(model, 3).host["inputs"].shape[1] == 8
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(split, name), getattr(whole, name))


def test_groups(monkeypatch):
    """Where there is no room for all of a batch, motions run in groups, and an error still tells the right one."""
    model = rod()
    q, v = starts(model, 6)
    u = np.random.default_rng(8).uniform(0.0, 1.0, (6, model.nu))
    monkeypatch.setattr(batches, "_MOST_GROUP_BYTES", 1)
    monkeypatch.setattr(batches, "_LEAST_GROUP", 2)
    assert [some.start for some in batches.groups_of(model, 6, 1)] == [0, 2, 4]
    compare(model, q, v, u)
    shared = ls.simulate(model, 0.2, q, v, lambda t: u[0], **OPTIONS)
    np.testing.assert_array_equal(shared.q[5], ls.simulate(model, 0.2, q[5], v[5], u[0], **OPTIONS).q)
    samples = ls.Samples([0.0, 0.1], np.stack([u, 2 * u], axis=1))
    np.testing.assert_array_equal(ls.simulate(model, 0.2, q, v, samples, **OPTIONS).u[4, 0], u[4])
    q[4] = starts(model, 5, size=2.0)[0][4]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ls.PlausibilityWarning)
        with pytest.raises(ls.ConvergenceError, match=r"\(instance 4 of 6\)$"):
            ls.simulate(model, 0.2, q, 20.0 * v, u, **OPTIONS)


def test_groups_cover_the_batch_and_the_first_is_the_largest(monkeypatch):
    """For any number of motions and cores, within the room there is."""
    model = rod()
    monkeypatch.setattr(batches, "_LEAST_GROUP", 50)
    monkeypatch.setattr(batches, "_MOST_GROUP_BYTES", 1)
    for count in (2, 31, 64, 65, 333, 1000):
        for cores in (1, 2, 3, 16):
            groups = batches.groups_of(model, count, cores)
            sizes = [some.stop - some.start for some in groups]
            assert [some.start for some in groups] == [0, *np.cumsum(sizes)[:-1]] and sum(sizes) == count
            assert max(sizes) <= -(-50 // cores) + 1 and sizes[0] == max(sizes) <= min(sizes) + 1


def test_groups_at_once(monkeypatch):
    """Groups that have a core each, and an error in the last of them, which names the motion and ends the call."""
    monkeypatch.setenv("LISSOM_CORES", "3")
    model = rod()
    q, v = starts(model, 100)
    u = np.random.default_rng(9).uniform(0.0, 1.0, (100, model.nu))
    seen = set()
    began = batches.FixedBatch
    monkeypatch.setattr(batches, "FixedBatch", lambda *x: (seen.add(threading.get_ident()), began(*x))[1])
    many = ls.simulate(model, 0.2, q, v, u, **OPTIONS)
    assert len(seen) > 1 and threading.get_ident() not in seen
    monkeypatch.setenv("LISSOM_CORES", "1")
    alone = ls.simulate(model, 0.2, q, v, u, **OPTIONS)
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(many, name), getattr(alone, name))
    assert many.statistics.steps == alone.statistics.steps
    monkeypatch.setenv("LISSOM_CORES", "3")
    q[97], v[97] = starts(model, 5, size=2.0)[0][4], 20.0 * v[97]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ls.PlausibilityWarning)
        with pytest.raises(ls.ConvergenceError, match=r"\(instance 97 of 100\)$"):
            ls.simulate(model, 0.2, q, v, u, **OPTIONS)


def test_no_more_memory_than_asked_for():
    """A thousand robots leave a bounded part of their steps at a time."""
    model = copy.copy(rod())
    for batch in (2, 100, 1000):
        w = step_kernel.steps_workspace(model, batch)
        assert w.host["out"].nbytes + w.host["inputs"].nbytes <= step_kernel._MOST_BYTES


@pytest.mark.parametrize("smooth", [False, True])
def test_samples_with_leading_axes(smooth):
    """Samples of shape (..., n, nu) drive each motion by its own; one set drives all."""
    model = rod()
    q, v = starts(model, 6)
    t = np.array([0.0, 0.03, 0.1, 0.15])
    u = np.random.default_rng(4).uniform(0.0, 1.0, (2, 3, 4, model.nu))
    many = ls.simulate(model, 0.2, q.reshape(2, 3, -1), v.reshape(2, 3, -1), ls.Samples(t, u, smooth), **OPTIONS)
    assert many.q.shape == (2, 3, 9, model.nq)
    for k, index in enumerate(np.ndindex(2, 3)):
        one = ls.simulate(model, 0.2, q[k], v[k], ls.Samples(t, u[index], smooth), **OPTIONS)
        for name in ARRAYS:
            np.testing.assert_array_equal(getattr(many, name)[index], getattr(one, name), err_msg=name)
    shared = ls.simulate(model, 0.2, q, v, ls.Samples(t, u[0, 0], smooth), **OPTIONS)
    for k in range(6):
        one = ls.simulate(model, 0.2, q[k], v[k], ls.Samples(t, u[0, 0], smooth), **OPTIONS)
        np.testing.assert_array_equal(shared.q[k], one.q)


def test_samples_as_rows_of_one():
    """Samples with leading axes give at a time the values of each of them."""
    t = np.array([0.0, 0.1, 0.3])
    u = np.random.default_rng(5).normal(size=(2, 4, 3, 5))
    for smooth in (False, True):
        many = ls.Samples(t, u, smooth)
        for time in (-1.0, 0.0, 0.05, 0.1, 0.27, 0.3, 2.0):
            assert many(time).shape == (2, 4, 5)
            for index in np.ndindex(2, 4):
                np.testing.assert_array_equal(many(time)[index], ls.Samples(t, u[index], smooth)(time))


def test_adaptive_methods_take_leading_axes_of_samples():
    """Methods that need Python between two steps go through the motions one by one."""
    model = pendulum()
    u = ls.Samples([0.0, 0.1], np.zeros((2, 2, 1)))
    many = ls.simulate(model, 0.1, [[0.3], [0.5]], u=u, t_eval=[0.1])
    one = ls.simulate(model, 0.1, [0.5], t_eval=[0.1])
    np.testing.assert_array_equal(many.q[1], one.q)


def test_a_function_of_time_drives_all():
    """It is asked for once at each time, whatever the number of motions."""
    model = rod()
    q, v = starts(model, 4)
    asked = []

    def u(t):
        asked.append(t)
        return np.full(model.nu, t)

    many = ls.simulate(model, 0.2, q, v, u, **OPTIONS)
    assert len(asked) < 40
    np.testing.assert_array_equal(many.q[2], ls.simulate(model, 0.2, q[2], v[2], u, **OPTIONS).q)


def test_leading_axes_meet():
    """Axes of q0, v0 and u are broadcast against each other."""
    model = rod()
    q, v = starts(model, 3)
    u = np.random.default_rng(6).uniform(0.0, 1.0, (2, 1, model.nu))
    many = ls.simulate(model, 0.1, q, v[0], u, **(OPTIONS | {"t_eval": [0.0, 0.1]}))
    assert many.q.shape == (2, 3, 2, model.nq)
    one = ls.simulate(model, 0.1, q[2], v[0], u[1, 0], **(OPTIONS | {"t_eval": [0.0, 0.1]}))
    np.testing.assert_array_equal(many.q[1, 2], one.q)


def test_one_launch(monkeypatch):
    """A batch takes no step by itself, and one whose inputs come from Python does."""
    model = rod()
    q, v = starts(model, 3)
    used = []
    monkeypatch.setattr(batches.FixedBatch, "run", lambda self, advance: used.append(self.n))
    ls.simulate(model, 0.1, q, v, **(OPTIONS | {"t_eval": [0.0]}))
    assert used == [3]
    ls.simulate(
        model, 0.02, q, v, controller=lambda *state: np.zeros(model.nu), period=0.01, **(OPTIONS | {"t_eval": [0.02]})
    )
    ls.simulate(model, 0.02, q, v, **(OPTIONS | {"t_eval": [0.02], "dt": None}))
    assert used == [3]


def test_errors_name_the_instance():
    """An error of one motion of a batch names its place."""
    model = rod()
    q, v = starts(model, 3)
    u = np.zeros((3, model.nu))
    u[1] = np.nan
    with pytest.raises(ls.ShapeError, match=r"u \(instance 1 of 3\): must be finite, got NaN or infinity"):
        ls.simulate(model, 0.2, q, v, u, **OPTIONS)
    closed = four_bar()
    good = ls.assemble(closed, [0.0, 0.0, 1.0])
    with pytest.raises(ls.ModelError, match=r"q0: loop 'pin' stays open by .* \(instance 1 of 2\)"):
        ls.simulate(closed, 0.2, [good, good + 0.1], **OPTIONS)
    samples = ls.Samples([0.0], np.zeros((3, 1, model.nu + 1)))
    with pytest.raises(ls.ShapeError, match="u: expected samples of shape"):
        ls.simulate(model, 0.2, q, v, samples, **OPTIONS)
    with pytest.raises(ls.ShapeError, match=r"u: expected samples of shape \(n, .*\), got \(3, 1,"):
        InputRows(model, ls.Samples([0.0], np.zeros((3, 1, model.nu)))).function  # noqa: B018
    with pytest.raises(ls.ShapeError, match="leading axes do not broadcast"):
        ls.simulate(model, 0.2, q, v, np.zeros((2, model.nu)), **OPTIONS)


def test_a_motion_that_stops_says_which():
    """The error names the motion and carries what there is of it, as that of the motion alone does."""
    model = rod()
    q, v = starts(model, 5, size=2.0)
    q[:4], v[:4] = model.neutral(), 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ls.PlausibilityWarning)
        with pytest.raises(ls.ConvergenceError, match=r"stopped at t=") as alone:
            ls.simulate(model, 0.2, q[4], v[4], **OPTIONS)
        with pytest.raises(ls.ConvergenceError, match=r"\(instance 4 of 5\)$") as found:
            ls.simulate(model, 0.2, q, v, **OPTIONS)
    assert str(found.value).startswith(str(alone.value))
    for name in ("t", *ARRAYS):
        np.testing.assert_array_equal(getattr(found.value.partial, name), getattr(alone.value.partial, name))
