"""The library's tasks: doing nothing fails, and a simple control law succeeds."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import lissom as ls

TASKS = {"balance": ls.gym.TaskBalance, "hold": ls.gym.TaskHold, "swim": ls.gym.TaskSwim}


@pytest.fixture(scope="module")
def tasks():
    """One task of each kind."""
    return {name: make() for name, make in TASKS.items()}


def run(task, law, copies=2, most=None):
    """Sums of rewards, numbers of actions and last information of the first episodes of copies."""
    env = ls.gym.vector_environment(task, copies)
    seen, _ = env.reset(seed=0)
    worth, count, goes = np.zeros(copies), np.zeros(copies, dtype=int), np.ones(copies, dtype=bool)
    for k in range(most or task.limit):
        seen, reward, terminated, truncated, told = env.step(law(k, env.episodes.state()))
        assert (np.abs(seen) < env.observation_space.high).sum() >= seen.size - copies * task.n_actions
        worth, count, goes = worth + goes * reward, count + goes, goes & ~(terminated | truncated)
        if not goes.any():
            break
    return worth, count, told


@pytest.mark.parametrize("name", TASKS)
def test_environments_pass_the_check_of_gymnasium(tasks, name):
    """Gymnasium's check of each task passes without a warning."""
    check_env(ls.gym.environment(tasks[name]), skip_render_check=True)


def test_a_rod_falls_over_and_a_regulator_keeps_it_upright(tasks):
    """Without a force an episode ends early. With the linear quadratic regulator of the upright rod it reaches its
    limit, with a reward of nearly the height of the rod for each action."""
    task = tasks["balance"]
    model = task.model
    _, count, _ = run(task, lambda k, state: np.zeros((2, 1)))
    assert (count < task.limit / 2).all()
    law = ls.lqr(model, np.zeros(model.nq), state=1.0, inputs=1.0, period=task.period)

    def force(k, state):
        x = np.concatenate([state.q, state.v], axis=1)
        return -(law.gain * x).sum(axis=1, keepdims=True) / task.most

    worth, count, _ = run(task, force)
    assert (count == task.limit).all() and (worth > 0.95 * task.limit).all()


def test_a_swimmer_goes_where_its_waves_do_not(tasks):
    """Waves towards the tail drive the swimmer forwards, waves towards the nose backwards; without them it stays."""
    task = tasks["swim"]

    def wave(lag):
        return lambda k, state: np.tile(np.sin(task.period * 10.0 * k - np.array([0.0, lag])), (2, 1))

    ways = [run(task, law, most=50)[2]["way"] for law in (wave(np.pi / 2), wave(-np.pi / 2))]
    still = run(task, lambda k, state: np.zeros((2, 2)), most=10)[2]["way"]
    assert (ways[0] > 0.2).all() and (ways[1] < -0.2).all() and (np.abs(still) < 0.01).all()


def test_a_ball_is_held_by_those_who_pull(tasks):
    """With enough tension the fingers hold the ball when its table sinks; without tension it falls."""
    task = tasks["hold"]
    _, count, told = run(task, lambda k, state: np.full((2, 1), 0.25))
    assert (count == task.limit).all() and told["is_success"].all()
    _, count, told = run(task, lambda k, state: -np.ones((2, 1)))
    assert (count < task.limit).all() and not told["is_success"].any()


@pytest.mark.graphics
def test_a_picture_of_a_grasp_leaves_the_table_out(tasks):
    """The renderer receives the options of a task."""
    env = ls.gym.environment(tasks["hold"], render_mode="rgb_array", size=80)
    env.reset(seed=0)
    assert env.render().shape[1:] == (80, 3)
    assert "table" not in tasks["hold"].drawn(env.unwrapped.episodes.state(), 0)["links"]


def test_gymnasium_knows_the_tasks_by_name(tasks):
    """gymnasium.make and make_vec find the tasks by name, with further arguments, and give the same environments."""
    name = "lissom.gym.registered:lissom/Balance-v0"
    seen = gymnasium.make(name, render_mode="rgb_array").reset(seed=3)[0]
    many = gymnasium.make_vec(name, num_envs=2, autoreset="same_step")
    assert many.num_envs == 2 and np.array_equal(many.reset(seed=3)[0][0], seen)
    assert np.array_equal(ls.gym.environment(tasks["balance"]).reset(seed=3)[0], seen)
    for task in TASKS:
        assert f"lissom/{task.capitalize()}-v0" in gymnasium.registry
