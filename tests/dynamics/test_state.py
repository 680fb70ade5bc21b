"""No function keeps hidden state: models are frozen, caches do not show, threads do not disturb each other.

Results are compared to the last bit, since the same operations must be done in the same order.
"""

import dataclasses
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from dynamics.small_robots import describe_mixed, describe_pendulum, describe_rod, mixed, pendulum, rod, state

import lissom as ls


def everything(model, seed, lead=()):
    """The results of every function for one state."""
    q, v, a, u = state(model, lead, seed)
    link = next(iter(model.rods)) if model.rods else model.links.names[0]
    e = ls.energy(model, q, v)
    return [
        ls.inverse_dynamics(model, q, v, a, t=0.3),
        ls.forward_dynamics(model, q, v, u, t=0.3),
        *ls.inverse_dynamics_derivatives(model, q, v, a, t=0.3),
        *ls.forward_dynamics_derivatives(model, q, v, u, t=0.3),
        ls.mass_matrix(model, q),
        ls.coriolis_matrix(model, q, v),
        ls.actuation_matrix(model, q),
        ls.path_lengths(model, q),
        ls.external_force(model, q, v, t=0.3),
        ls.forward_kinematics(model, q),
        ls.frame_pose(model, q, link, [0.1, 0.45]),
        ls.frame_twist(model, q, v, link, 0.45),
        ls.frame_acceleration(model, q, v, a, link),
        ls.frame_jacobian(model, q, link, 0.3),
        ls.frame_jacobian_derivative(model, q, v, link, 0.3),
        ls.integrate(model, q, v),
        e.kinetic, e.gravitational, e.elastic,
        ls.stiffness_matrix(model),
        ls.damping_matrix(model),
    ]  # fmt: skip


def same(one, other):
    """Whether two lists of results agree to the last bit."""
    return all(np.array_equal(x, y) for x, y in zip(one, other, strict=True))


@pytest.mark.parametrize("describe", [describe_rod, describe_pendulum, describe_mixed])
def test_cold_and_warm(describe):
    """The first call of a fresh model, a warm one and one after other batch sizes agree to the last bit."""
    model = describe().build()
    cold = everything(model, 0)
    everything(model, 1, (5,))
    everything(model, 2)
    assert same(everything(model, 0), cold)
    assert same(everything(describe().build(), 0), cold)
    model.cache.clear()
    assert same(everything(model, 0), cold)


def test_many_batch_sizes_and_points():
    """More batch sizes and points than the caches keep are all right, and the caches stay bounded."""
    model = describe_rod().build()
    expected = everything(model, 0)
    for n in range(1, 60):
        q, v, *_ = state(model, (n,))
        assert ls.forward_dynamics(model, q, v).shape == (n, model.nv)
        assert ls.frame_pose(model, q, "rod", n / 60).shape == (n, 4, 4)
    assert same(everything(model, 0), expected)
    assert len(model.cache) < 200


@pytest.mark.parametrize("build", [rod, pendulum, mixed])
def test_threads_agree_with_serial(build):
    """Eight threads that call every function on one model at the same time get the results of one thread."""
    model = build()
    serial = [everything(model, seed, (3,) if seed % 2 else ()) for seed in range(8)]
    start = threading.Barrier(8)

    def work(seed):
        start.wait()
        return [everything(model, seed, (3,) if seed % 2 else ()) for _ in range(5)]

    with ThreadPoolExecutor(8) as pool:
        for seed, results in enumerate(pool.map(work, range(8))):
            assert all(same(result, serial[seed]) for result in results)


def test_threads_on_a_fresh_model():
    """Threads that meet a model nobody has used yet build its tables without harm."""
    expected = everything(mixed(), 0)
    for _ in range(3):
        model, start = describe_mixed().build(), threading.Barrier(6)

        def work(_, model=model, start=start):
            start.wait()
            return everything(model, 0)

        with ThreadPoolExecutor(6) as pool:
            assert all(same(result, expected) for result in pool.map(work, range(6)))


def test_threads_with_large_batches():
    """Batches that are themselves split over the pool may be asked for from several threads."""
    model = mixed()
    q, v, _, u = state(model, (64,))
    expected = ls.forward_dynamics(model, q, v, u)
    with ThreadPoolExecutor(4) as pool:
        for result in pool.map(lambda _: ls.forward_dynamics(model, q, v, u), range(8)):
            assert np.array_equal(result, expected)


@pytest.mark.parametrize("build", [rod, pendulum, mixed])
def test_the_model_is_frozen(build):
    """Fields cannot be set, and no array of the model, nor one that a dictionary of it holds, can be written to."""
    model = build()
    with pytest.raises(dataclasses.FrozenInstanceError):
        model.gravity = np.zeros(3)
    groups = [getattr(model, item.name) for item in dataclasses.fields(model)]
    for group in (model, *(x for x in groups if dataclasses.is_dataclass(x) and x is not model.description)):
        for item in dataclasses.fields(group):
            value = getattr(group, item.name)
            if isinstance(value, np.ndarray):
                assert not value.flags.writeable, item.name
    assert len(model.nodes.parent) and len(model.links.mass)
    for frames in (model.links.frame, model.frames):
        for name, (_, placement) in frames.items():
            assert not placement.flags.writeable, name
    for rod_table in model.rods.values():
        assert not rod_table.node_s.flags.writeable


def test_copies_that_are_handed_out():
    """neutral, stiffness_matrix and damping_matrix give copies: writing to them changes nothing."""
    model = mixed()
    for function in (lambda: model.neutral(), lambda: ls.stiffness_matrix(model), lambda: ls.damping_matrix(model)):
        kept = function().copy()
        function()[...] = 7.0
        assert np.array_equal(function(), kept)


def test_editing_the_robot_after_build():
    """A model is a copy of its description: later changes of the robot do not change it."""
    robot = describe_mixed()
    model = robot.build()
    expected = everything(model, 0)
    robot.add_link("more", ls.RigidBody(5.0), parent="arm")
    robot.loads.clear()
    robot.frames.clear()
    robot.actuators.clear()
    del robot.links["hand"]
    robot.gravity = (0, 0, 0)
    model.cache.clear()
    assert same(everything(model, 0), expected)


# arrays of a user's, what becomes of them after the build
ARRAYS = {
    "gravity": (0.0, 0.0, -9.81),
    "axis": (0.0, 1.0, 0.0),
    "stiffness": (2.0,),
    "rest": (0.3,),
    "placement": np.eye(4),
    "reference_strain": (0.0, 0.5, 0.0, 1.0, 0.0, 0.0),
    "offset": (0.0, 0.01),
    "force": (1.0, 0.0, 0.0),
    "position": (0.0, 0.1, 0.0),
    "mark": np.eye(4),
    "com": (0.1, 0.0, 0.0),
}


@pytest.mark.parametrize("edited", ARRAYS)
def test_editing_arrays_after_build(edited):
    """An array that the description was given may be changed in place afterwards: the model has its own."""
    x = {name: np.array(value) for name, value in ARRAYS.items()}
    robot = ls.Robot("edited", gravity=x["gravity"])
    rod = ls.Rod(0.4, ls.SectionCircle(0.02), ls.BasisLegendre(bending_y=1), ls.Material(young=1e6, density=1e3),
                 reference_strain=x["reference_strain"])  # fmt: skip
    joint = ls.JointRevolute(x["axis"], stiffness=x["stiffness"], rest=x["rest"])
    robot.add_link("rod", rod, joint, placement=x["placement"])
    robot.add_link("tool", ls.RigidBody(0.5, x["com"]), parent="rod", placement=x["placement"])
    robot.add_tendon("tendon", "rod", x["offset"])
    robot.add_point_load("load", "tool", force=x["force"], position=x["position"])
    robot.add_frame("mark", "rod", s=0.6, placement=x["mark"])
    model = robot.build()
    expected, mark = everything(model, 0), ls.frame_pose(model, model.neutral(), "mark")
    x[edited] += 0.7
    model.cache.clear()
    assert same(everything(model, 0), expected)
    assert np.array_equal(ls.frame_pose(model, model.neutral(), "mark"), mark)


def test_building_twice_and_building_after_edits():
    """A description can be built again, and a later build sees the edits."""
    robot = describe_rod()
    first, second = robot.build(), robot.build()
    assert same(everything(first, 0), everything(second, 0))
    robot.add_link("tool", ls.RigidBody(0.5), parent="rod")
    third = robot.build()
    q, v, a, _ = state(first)
    assert not np.allclose(ls.inverse_dynamics(third, q, v, a), ls.inverse_dynamics(first, q, v, a))


@pytest.mark.parametrize("s", [0.0, 0.3, 1.0])
def test_frames_never_change_the_dynamics(s):
    """A frame has no mass and moves with its link: it changes no bit of any other result."""
    plain, framed = describe_mixed(), describe_mixed()
    framed.add_frame("extra", "arm", s=s)
    placement = np.eye(4)
    placement[:3, 3] = (0.1, 0.2, 0.3)
    framed.add_frame("far", "arm", s=min(s + 0.05, 1.0), placement=placement)
    framed.add_frame("on the hand", "hand", placement=placement)
    one, other = plain.build(), framed.build()
    assert one.n_dynamic == other.n_dynamic
    results = zip(everything(one, 0), everything(other, 0), strict=True)
    for k, (x, y) in enumerate(results):
        if x.shape == y.shape:
            assert np.array_equal(x, y), k
        else:
            assert k == 13  # forward_kinematics lists more nodes
    q = state(one)[0]
    np.testing.assert_allclose(ls.frame_pose(other, q, "extra"), ls.frame_pose(one, q, "arm", s), atol=1e-15)


def test_a_robot_that_cannot_move():
    """A robot of fixed joints has empty coordinates, and every function takes it."""
    robot = ls.Robot("statue")
    robot.add_link("stone", ls.RigidBody.box(0.1, 0.1, 0.1, density=2000.0))
    model = robot.build()
    assert (model.nq, model.nv, model.nu) == (0, 0, 0)
    results = everything(model, 0, (2,))
    assert all(np.isfinite(x).all() for x in results)
    empty = np.zeros(0)
    assert ls.solve_statics(model).q.shape == (0,)
    assert ls.simulate(model, 0.1, t_eval=[0.0, 0.1], method="bdf").q.shape == (2, 0)
    assert ls.mass_matrix(model, empty).shape == (0, 0)
    assert ls.linearize(model, empty).A.shape == (0, 0)


def test_a_robot_that_is_nothing_but_a_frame():
    """A single fixed link without a body is a frame in the world: it is built, and it is found."""
    robot = ls.Robot("mark")
    placement = np.eye(4)
    placement[:3, 3] = (0.1, 0.2, 0.3)
    robot.add_link("mark", None, placement=placement)
    model = robot.build()
    assert np.array_equal(ls.frame_pose(model, [], "mark"), placement)
    assert ls.inverse_dynamics(model, [], [], []).shape == (0,)
