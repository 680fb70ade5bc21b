"""Environments satisfy Gymnasium's rules, and a copy in a vector environment equals a single one."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from dataclasses import dataclass, replace

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import lissom as ls

# The foot of the leg begins in the floor.
pytestmark = pytest.mark.filterwarnings("ignore:.*its start violates:lissom.PlausibilityWarning")
MODES = {mode.name.lower(): mode for mode in AutoresetMode}


@dataclass(frozen=True, eq=False)
class Straighten(ls.gym.Task):
    """Hold a soft arm straight: an example of a user's task."""

    def start(self, random):
        """A random bend."""
        return ls.gym.TaskStart(q=0.5 * random.normal(size=self.model.nq), goal=random.normal(size=2))

    def observe(self, state):
        """The whole state, and an unused goal."""
        return np.concatenate([state.q, state.v, state.goal], axis=1)

    def reward(self, state):
        """Smaller for larger bends."""
        return -(state.q**2).sum(axis=1)

    def terminated(self, state):
        """Whether the arm is far from straight."""
        return np.abs(state.q).max(axis=1) > 1.5

    def observation_limits(self):
        """Limits beyond all observations."""
        return -1e4, 1e4

    def told(self, state):
        """The size of the bend."""
        return {"bend": np.abs(state.q).max(axis=1)}


def arm(joint=None):
    """A soft arm with a tendon, and with a motor if it has a joint."""
    robot = ls.Robot("arm")
    basis = ls.BasisLegendre(bending_y=1, bending_z=1)
    rod = ls.Rod(0.3, ls.SectionCircle((0.02, 0.01)), basis, ls.Material(young=1e6, density=1000, viscosity=2e3))
    robot.add_link("arm", rod, joint)
    robot.add_tendon("up", "arm", (0.0, 0.008))
    if joint is not None:
        robot.add_joint_actuator("motor", "arm")
    return robot.build()


def leg(young=2e6):
    """A soft leg that sticks to a floor and sways in a gust."""
    robot = ls.Robot("leg")
    silicone = ls.Material(young=young, density=1000, viscosity=1e4)
    hip, c, s = np.eye(4), np.cos(1.0), np.sin(1.0)
    hip[:3, 0], hip[:3, 2], hip[2, 3] = (c, 0.0, -s), (s, 0.0, c), 0.262
    rod = ls.Rod(0.3, ls.SectionCircle(0.01), ls.BasisLegendre(bending_y=1), silicone)
    robot.add_link("leg", rod, ls.JointRevolute((0.0, 1.0, 0.0)), placement=hip)
    robot.add_joint_motion("sway", "leg", position=ls.Expression("0.02 - 0.02*cos(9*t)", "t"))
    robot.add_tendon("up", "leg", (0.0, 0.008))
    robot.add_point_load("gust", "leg", force=lambda t: (0.2 * np.sin(20.0 * t), 0.0, 0.0))
    robot.add_point_load("breeze", "leg", force=ls.Expression(["0", "0", "0.1*cos(15*t)"], "t"))
    law = {"stiffness": 1e3, "exponent": 1.0, "friction": 0.6, "stick_stiffness": 300.0, "stick_damping": 1.0}
    robot.add_contact("floor", "leg", ls.ShapePlane(), damping=1.0, **law)
    return robot.build()


def same_episodes(many, single, steps):
    """Assert that two vector environments return the same to the last bit. Returns the number of finished episodes, and
    of steps after which a contact stuck."""
    assert np.array_equal(many.reset(seed=5)[0], single.reset(seed=5)[0])
    many.action_space.seed(0)
    over = held = 0
    for _ in range(steps):
        action = many.action_space.sample()
        (*found, _), (*wanted, _) = many.step(action), single.step(action)
        assert all(np.array_equal(x, y) for x, y in zip(found, wanted))
        over += int((found[2] | found[3]).sum())
        held += int(np.isfinite(many.episodes.copies.w.host["anchor"]).any())
    return over, held


@pytest.fixture(scope="module")
def standing():
    """The task of a leg, with some episodes that end early."""
    return Straighten(leg(), most=3.0, steps=2, period=0.02, limit=6)


@pytest.fixture(scope="module")
def task():
    """A task with episodes of at most four actions."""
    return Straighten(arm(), most=3.0, steps=2, limit=4)


@pytest.fixture(scope="module")
def reach():
    """The library's TaskReach, with a small arm."""
    return ls.gym.TaskReach(arm(), most=3.0, limit=5)


@pytest.mark.parametrize("name", ["task", pytest.param("reach", marks=pytest.mark.graphics), "standing"])
def test_environments_pass_the_check_of_gymnasium(name, request):
    """Gymnasium's check of spaces, seeds, infos, pictures and the specification passes without a warning."""
    env = ls.gym.environment(request.getfixturevalue(name), size=64)
    if name == "reach":
        env = ls.gym.environment(ls.gym.TaskReach(arm(), most=3.0, limit=5), size=64)
    check_env(env, skip_render_check=name != "reach")


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_copies_are_single_environments_to_the_last_bit(task, mode):
    """A vector environment equals Gymnasium's SyncVectorEnv of single ones, through many episodes."""
    count = 6
    many = ls.gym.vector_environment(task, count, autoreset=mode)
    single = SyncVectorEnv([lambda: ls.gym.environment(task)] * count, autoreset_mode=MODES[mode])
    assert many.metadata["autoreset_mode"] is MODES[mode]
    for space in ("observation_space", "action_space", "single_observation_space", "single_action_space"):
        assert getattr(many, space) == getattr(single, space)
    assert np.array_equal(many.reset(seed=5)[0], single.reset(seed=5)[0])
    many.action_space.seed(0)
    over = 0
    for _ in range(14):
        action = many.action_space.sample()
        (*found, told), (*wanted, known) = many.step(action), single.step(action)
        assert all(np.array_equal(x, y) for x, y in zip(found, wanted))
        over += int((found[2] | found[3]).sum())
        assert set(told) == set(known)
        for key in ("bend", "_bend", "_final_obs"):
            assert np.array_equal(told.get(key), known.get(key))
        for x, y in zip(told.get("final_obs", []), known.get("final_obs", [])):
            assert np.array_equal(x, y)
        assert np.array_equal(told.get("final_info", {}).get("bend"), known.get("final_info", {}).get("bend"))
    assert over > 2 * count


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_time_and_what_sticks_are_of_each_copy(standing, mode):
    """Copies whose episodes end at different times have their own times of the wind and their own anchors. Each equals
    a single environment to the last bit."""
    many = ls.gym.vector_environment(standing, 5, autoreset=mode)
    single = SyncVectorEnv([lambda: ls.gym.environment(standing)] * 5, autoreset_mode=MODES[mode])
    over, held = same_episodes(many, single, 16)
    assert over > 5 and held > 2
    assert len(np.unique(many.episodes.state().t)) > 1


def test_copies_may_have_models_of_their_own(standing, reach):
    """For a batch of models the first copies equal single environments of the first model, and so on. Models that
    differ in spaces are refused."""
    youngs = [1e6, 2e6, 4e6]
    batch = standing.model.batch("leg.material.young", youngs)
    many = ls.gym.vector_environment(replace(standing, model=batch), 6)
    tasks = [replace(standing, model=leg(young)) for young in youngs for _ in range(2)]
    single = SyncVectorEnv([lambda task=task: ls.gym.environment(task) for task in tasks])
    assert same_episodes(many, single, 12)[0] > 6
    arms = ls.ModelBatch([arm(), arm().with_({"arm.material.young": 2e6})])
    many = ls.gym.vector_environment(replace(reach, model=arms), 2)
    seen, _ = many.reset(seed=0)
    assert len(np.unique(seen[:, 6:9], axis=0)) == 2  # the ways to points, which differ between the models
    with pytest.raises(ls.ModelError, match=r"must be a multiple of the 2 models of the task \(got 3\)"):
        ls.gym.vector_environment(replace(reach, model=arms), 3)
    with pytest.raises(ls.ModelError, match="must have one model"):
        ls.gym.environment(replace(reach, model=arms))
    limited = [arm(ls.JointRevolute((0, 0, 1), limits=(-1.0, x), limit_stiffness=10.0)) for x in (1.0, 2.0)]
    with pytest.raises(ls.ModelError, match="model 1 of a batch: configuration_limits of all models"):
        ls.gym.vector_environment(Straighten(ls.ModelBatch(limited)), 2)


def test_episodes_must_be_restarted(task):
    """With autoreset disabled, a mask chooses the copies that are reset. Other copies do not change."""
    many = ls.gym.vector_environment(task, 3, autoreset="disabled")
    start = many.reset(seed=[4, 4, 5])[0]
    assert np.array_equal(start[0], start[1]) and not np.array_equal(start[0], start[2])
    for _ in range(task.limit):
        seen, _, terminated, truncated, _ = many.step(np.zeros((3, 1)))
        if (terminated | truncated).any():
            break
    over = terminated | truncated
    with pytest.raises(ls.ModelError, match="must be reset"):
        many.step(np.zeros((3, 1)))
    again = many.reset(options={"reset_mask": over})[0]
    assert np.array_equal(again[~over], seen[~over]) and not (again[over] == seen[over]).all(axis=1).any()
    many.step(np.zeros((3, 1)))


def test_seeds_make_episodes(task):
    """Equal seeds give equal episodes, other seeds different ones, and None continues the random numbers."""
    env = ls.gym.environment(task)
    first, second, other = env.reset(seed=1)[0], env.reset()[0], env.reset(seed=2)[0]
    assert not np.array_equal(first, second) and not np.array_equal(first, other)
    assert np.array_equal(env.reset(seed=1)[0], first) and np.array_equal(env.reset()[0], second)


def test_time_limits_cut_and_tasks_end(task):
    """Episodes are truncated after the limit of actions, and terminated by the task."""
    env = ls.gym.environment(Straighten(arm(), most=1e-3, limit=3))
    env.reset(seed=1)
    found = [env.step(-np.ones(1))[2:] for _ in range(3)]
    assert [x[1] for x in found] == [False, False, True]
    assert all(x[0] == (x[2]["bend"] > 1.5) for x in found)


def test_inputs_are_scaled_to_what_actuators_can_do():
    """Actions from -1 to 1 are zero to `most` for tendons, both signs for motors, and given limits otherwise."""
    model = arm(ls.JointRevolute((0, 0, 1), limits=(-1.0, 2.0), limit_stiffness=10.0))
    task = Straighten(model, most=(3.0, 0.5))
    assert np.array_equal(
        task.inputs(np.array([[-1.0, -1.0], [0.0, 0.0], [1.0, 1.0]])), [[0, -0.5], [1.5, 0], [3, 0.5]]
    )
    assert np.array_equal(Straighten(model, most=1.0, least=(0.5, 0)).input_limits, [[0.5, 0.0], [1.0, 1.0]])
    low, high = task.configuration_limits
    assert (low[0], high[0]) == (-1.0, 2.0) and np.isinf(low[1:]).all() and np.isinf(high[1:]).all()


def test_points_of_reach_can_be_reached(reach):
    """Under the inputs of a point the tip comes to rest at it, and the info reports the success."""
    env = ls.gym.environment(ls.gym.TaskReach(arm(), most=3.0, limit=60, tolerance=1e-3))
    env.reset(seed=3)
    goal = env.unwrapped.episodes.state().goal[0]
    pulls = np.linspace(0.0, 3.0, 301)[:, None]
    tips = ls.frame_pose(reach.model, ls.solve_statics(reach.model, pulls).q, "arm")[:, :3, 3]
    best = np.linalg.norm(tips - goal, axis=1).argmin()
    for _ in range(60):
        *_, told = env.step(2.0 * pulls[best] / 3.0 - 1.0)
    assert told["is_success"] and told["distance"] < 1e-3


@pytest.mark.graphics
def test_pictures_are_those_of_the_renderer(reach):
    """Each copy has a picture of the given width; without a render mode there is none."""
    many = ls.gym.vector_environment(reach, 2, render_mode="rgb_array", size=64)
    many.reset(seed=0)
    first, second = many.render()
    assert first.shape[1:] == (64, 3) and first.dtype == np.uint8 and not np.array_equal(first, second)
    assert ls.gym.environment(reach).render() is None and ls.gym.vector_environment(reach, 1).render() is None


def test_wrong_arguments_are_named(task, monkeypatch):
    """Errors of wrong arguments and actions, a failed step, and a missing package."""
    with pytest.raises(ls.ModelError, match=r"Straighten: steps: must be an integer >= 1 \(got 0\)"):
        ls.gym.environment(Straighten(task.model, steps=0))
    with pytest.raises(ls.ModelError, match="autoreset: must be among"):
        ls.gym.vector_environment(task, 2, autoreset="sometimes")
    with pytest.raises(ls.ModelError, match="render_mode: must be 'rgb_array' or None"):
        ls.gym.environment(task, render_mode="human")
    with pytest.raises(ls.ModelError, match="task: must be a Task"):
        ls.gym.environment(task.model)
    env = ls.gym.environment(Straighten(task.model, most=1e9, steps=1))
    env.reset(seed=0)
    with pytest.raises(ls.ShapeError, match="action: expected"):
        env.step(np.zeros(3))
    *_, truncated, told = env.step(np.ones(1))
    assert truncated and told["is_unsolved"]
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(ls.ModelError, match=r"pip install 'lissom\[gym\]'"):
        ls.gym.environment(task)
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    with pytest.raises(ls.ModelError, match=r"pip install 'lissom\[learning\]'"):
        ls.gym.stable_baselines_environment(task, 2)


def test_a_specification_makes_the_environment_again(task):
    """gymnasium.make with the specification of an environment makes one of the same task."""
    made = gymnasium.make(ls.gym.environment(task).spec)
    assert np.array_equal(made.reset(seed=0)[0], ls.gym.environment(task).reset(seed=0)[0])


@pytest.mark.parametrize("name", ["task", "standing"])
def test_steps_leave_nothing_behind(name, request):
    """The memory of Python objects does not grow over hundreds of steps and many episodes."""
    many = ls.gym.vector_environment(request.getfixturevalue(name), 8)
    many.reset(seed=0)
    actions = np.random.default_rng(0).uniform(-1.0, 1.0, (50, 8, 1))
    held = []
    tracemalloc.start()
    for _ in range(4):
        for action in actions:
            many.step(action)
        gc.collect()
        held.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert held[-1] - held[1] < 5_000  # bytes: less than one array of all copies for each ten steps


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("reward", 0.0, r"reward: expected shape \(2,\), got \(\)"),
        ("reward", np.zeros((2, 1)), r"reward: expected shape \(2,\), got \(2, 1\)"),
        ("terminated", False, r"terminated: expected shape \(2,\), got \(\)"),
        ("told", {"bend": np.zeros(3)}, r"told\['bend'\]: expected shape \(2, ...\), got \(3,\)"),
    ],
)
def test_what_a_task_says_of_other_than_all_copies_is_refused(monkeypatch, name, value, expected):
    """Results of a task with a wrong shape are errors that name the method."""
    env = ls.gym.vector_environment(Straighten(arm()), 2)
    env.reset(seed=0)
    monkeypatch.setattr(Straighten, name, lambda self, state: value)
    with pytest.raises(ls.ShapeError, match=f"Straighten.{expected}"):
        env.step(np.zeros((2, 1)))


def test_what_is_seen_has_a_row_for_each_copy(monkeypatch):
    """Observations without an axis of copies are refused."""
    monkeypatch.setattr(Straighten, "observe", lambda self, state: state.q.ravel())
    with pytest.raises(ls.ShapeError, match=r"Straighten.observe: expected shape \(2, ...\), got \(8,\)"):
        ls.gym.vector_environment(Straighten(arm()), 2)


def test_a_law_within_an_action():
    """The inputs of a traced law are added to those of the actions: an episode moves as `simulate` under their sum, and
    a copy among others as a single one. A function in Python is refused."""
    jnp = pytest.importorskip("jax.numpy")
    law = ls.TracedFunction(lambda t, q, v: 2.0 * jnp.sin(40.0 * t) ** 2 - 0.5 * q[:1] - 0.01 * v[:1])

    class Endless(Straighten):
        terminated = ls.gym.Task.terminated

        def start(self, random):
            return replace(super().start(random), u=np.array([3.0]))

    task = Endless(arm(), most=4.0, controller=law)
    env, many = ls.gym.environment(task), ls.gym.vector_environment(task, 3)
    start, rows = env.reset(seed=1)[0], many.reset(seed=1)[0]
    np.testing.assert_array_equal(rows[0], start)
    for _ in range(3):
        seen, found = env.step(np.array([0.5]))[0], many.step(np.full((3, 1), 0.5))[0]
        np.testing.assert_array_equal(found[0], seen)
    model, dt = task.robot, task.period / task.steps
    held = ls.TracedFunction(lambda t, q, v: law.function(t, q, v) + 3.0)
    options = {"method": "sdirk", "dt": dt, "rtol": 1e-9, "atol": 1e-11, "t_eval": [3 * task.period]}
    known = ls.simulate(model, 3 * task.period, start[: model.nq], controller=held, **options)
    np.testing.assert_allclose(seen[: model.nq], known.q[-1], rtol=0, atol=1e-5 * np.abs(known.q[-1]).max())
    alone = ls.simulate(model, 3 * task.period, start[: model.nq], u=[3.0], **options)
    assert np.abs(alone.q[-1] - known.q[-1]).max() > 1e-2 * np.abs(known.q[-1]).max()
    with pytest.raises(ls.ModelError, match=r"controller: must be an ls\.TracedFunction; .* `Task\.inputs`"):
        ls.gym.environment(replace(task, controller=lambda t, q, v: -q))
