"""What travels between processes: descriptions, models, inputs, controllers and motions."""

import copy
import pickle
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
import warp as wp
from robot_descriptions import assert_same, one_rod
from robots import build, random_state, random_tree

import lissom as ls
from lissom.lie.types import vec6


@wp.func
def push(R: wp.mat33d, p: wp.vec3d, eta: vec6, s: wp.float64, t: wp.float64) -> vec6:
    """A constant force of a test."""
    return vec6(wp.float64(0.0), wp.float64(0.0), wp.float64(0.0), wp.float64(1.0), wp.float64(0.0), wp.float64(0.0))


def offset(s):
    """A path that a module names."""
    return 0.01, 0.02 * s


def law(t, q, v):
    """A controller that a module names."""
    return np.array([2.0 * t])


def output(t, q, v, z):
    """The output of a controller with a state."""
    return z


def rate(t, q, v, z):
    """Its rate."""
    return 1.0 - z


def driven(path=offset):
    """A rod with a tendon along a function, and a compiled force."""
    robot = one_rod()
    robot.add_tendon("t1", "arm", path)
    robot.add_force("push", "arm", push, s=1.0)
    return robot


def again(value):
    """What comes out of a pickle."""
    return pickle.loads(pickle.dumps(value))


@pytest.mark.parametrize("copied", [again, copy.deepcopy, copy.copy], ids=["pickle", "deepcopy", "copy"])
def test_robots(copied):
    """A copy of a description is equal and independent: additions to one do not change the other."""
    robot = driven()
    other = copied(robot)
    assert_same(robot, other)
    other.add_frame("new", "arm")
    assert "new" not in robot.frames


@pytest.mark.parametrize("copied", [again, copy.deepcopy, copy.copy], ids=["pickle", "deepcopy", "copy"])
@pytest.mark.parametrize("used", [False, True], ids=["fresh", "used"])
def test_models(copied, used):
    """A model gives the same numbers after it has travelled, whatever has been added to its description since."""
    robot = driven()
    model = robot.build()
    q, still = np.full(model.nq, 0.1), np.zeros(model.nv)
    here = ls.forward_dynamics(model, q, still, [3.0]) if used else None
    robot.add_frame("new", "arm")
    other = copied(model)
    assert "new" not in other.frames
    here = ls.forward_dynamics(model, q, still, [3.0]) if here is None else here
    np.testing.assert_array_equal(ls.forward_dynamics(other, q, still, [3.0]), here)


@pytest.mark.parametrize("seed", [2, 11])
def test_random_trees(seed):
    """Models with every kind of part; functions that no module names need cloudpickle."""
    pytest.importorskip("cloudpickle", reason="functions without a name travel by cloudpickle")
    model, (q, v, a, _) = build(random_tree(seed)), random_state(random_tree(seed), seed)
    np.testing.assert_array_equal(ls.inverse_dynamics(again(model), q, v, a), ls.inverse_dynamics(model, q, v, a))


def test_equilibria_in_motion_and_on_anchors():
    """What an equilibrium keeps of its model travels along: a steady motion, held coordinates, anchors of contacts."""
    robot = ls.Robot("wheel", gravity=(0, 0, 0))
    robot.add_link("wheel", ls.RigidBody.box(0.1, 0.1, 0.1, density=1000.0), ls.JointFree())
    spoke = ls.JointRevolute((0, 1, 0), stiffness=2.0)
    robot.add_link("spoke", ls.RigidBody(0.1, com=(0.2, 0, 0.1), inertia=np.eye(3) * 1e-4), spoke, "wheel")
    model = robot.build()
    rest = ls.solve_statics(model, v=[0, 0, 3.0, 0, 0, 0, 0])
    assert again(rest).least_stiffness == rest.least_stiffness != ls.solve_statics(model).least_stiffness
    robot = ls.Robot("block", gravity=(0.5, 0, -9.81))
    corners = [(x, y, -0.05, 0.01) for x in (-0.05, 0.05) for y in (-0.05, 0.05)]
    robot.add_link("block", ls.RigidBody(1.0, inertia=np.eye(3) * 1e-3, balls=corners), ls.JointPlanar((0, 1, 0)))
    robot.add_contact("floor", "block", ls.ShapePlane(), friction=0.5, stick_stiffness=1e5, stiffness=1e5, exponent=1.0,
                      placement=[[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, -0.0599], [0, 0, 0, 1]])  # fmt: skip
    held = ls.solve_statics(robot.build())
    other = again(held)
    assert np.isfinite(other.model.contacts.anchors).any()
    np.testing.assert_array_equal(other.model.contacts.anchors, held.model.contacts.anchors)


def test_lambdas_by_cloudpickle():
    """A function without a name travels where cloudpickle is installed."""
    pytest.importorskip("cloudpickle", reason="functions without a name travel by cloudpickle")
    robot = driven(lambda s: (0.01, 0.02 * s))
    other = again(robot)
    assert other.actuators["t1"].path[0].offset(0.5) == (0.01, 0.01) and other.forces["push"].function is push


def test_lambdas_without_cloudpickle(monkeypatch):
    """Otherwise the error names the function and the cure."""
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    robot = driven(lambda s: (0.01, 0.02 * s))
    words = r"robot 'one' > actuators > t1 > path > \[0\] > offset: cannot be pickled by name: define it at"
    for value in (robot, robot.build()):
        with pytest.raises(ls.ModelError, match=words):
            pickle.dumps(value)
    with pytest.raises(ls.ModelError, match=r"controller > output: .* install cloudpickle"):
        pickle.dumps(ls.Controller(lambda t, q, v, z: z, rate, [0.0]))


def test_inputs_controllers_and_motions():
    """Samples, controllers and trajectories."""
    samples = again(ls.Samples([0.0, 1.0, 2.0], [[0.0], [2.0], [3.0]], smooth=True))
    assert samples(0.5) == ls.Samples([0.0, 1.0, 2.0], [[0.0], [2.0], [3.0]], smooth=True)(0.5)
    model = driven().build()
    for controller in (law, ls.Controller(output, rate, [0.0])):
        options = {"method": "generalized_alpha", "dt": 0.01}
        motion = ls.simulate(model, 0.05, controller=controller, **options)
        other = ls.simulate(model, 0.05, controller=again(controller), **options)
        np.testing.assert_array_equal(again(motion).q, other.q)
        assert copy.deepcopy(motion).statistics.steps == other.statistics.steps


def test_controllers_made_from_models():
    """Laws of the library act the same to the last bit after they have travelled, model included."""
    pytest.importorskip("cloudpickle", reason="functions without a name travel by cloudpickle")
    robot = one_rod()
    robot.add_tendon("t1", "arm", [0.0, 0.01])
    model = robot.build()
    q, v, z = np.full(model.nq, 0.1), np.full(model.nv, 0.2), np.zeros(0)
    held = ls.solve_statics(model, [1.0]).q
    for law in (ls.pd_compensation(model, held, proportional=3.0, derivative=0.1),
                ls.partial_feedback_linearization(model, [0.4], proportional=3.0, derivative=1.0)):  # fmt: skip
        np.testing.assert_array_equal(again(law).output(0.1, q, v, z), law.output(0.1, q, v, z))


@pytest.mark.parametrize("start", ["spawn", "fork"])
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:os.fork.. was called:RuntimeWarning")  # of JAX, where another test has loaded it
def test_other_processes(start):
    """A process that begins afresh, or as a copy, computes and returns the same bits."""
    model = ls.load_robot(Path(__file__).parents[2] / "examples" / "robots" / "cdm.yaml").build()
    q, still, u = np.linspace(-0.5, 0.5, model.nq), np.zeros(model.nv), np.arange(model.nu) * 2.0
    fed = ls.Samples([0.0, 0.02], [0.0 * u, u], smooth=True)
    options = {"method": "generalized_alpha", "dt": 0.01}
    with ProcessPoolExecutor(1, get_context(start)) as pool:
        there = pool.submit(ls.forward_dynamics, model, q, still, u).result()
        motion = pool.submit(ls.simulate, model, 0.02, u=fed, **options).result()
        rest = pool.submit(ls.solve_statics, model, u).result()
    np.testing.assert_array_equal(there, ls.forward_dynamics(model, q, still, u))
    np.testing.assert_array_equal(motion.q, ls.simulate(model, 0.02, u=fed, **options).q)
    here = ls.solve_statics(model, u)
    np.testing.assert_array_equal(rest.q, here.q)
    assert rest.least_stiffness == here.least_stiffness and rest.model.nq == model.nq
