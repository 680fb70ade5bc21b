"""The tasks that come along are what they say: nothing is achieved by doing nothing, and something by a simple law."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import lissom as ls

TASKS = {"balance": ls.gym.TaskBalance, "hold": ls.gym.TaskHold, "swim": ls.gym.TaskSwim}


@pytest.fixture(scope="module")
def tasks():
    """One of each."""
    return {name: make() for name, make in TASKS.items()}


def run(task, law, copies=2, most=None):
    """What copies are worth in all until their first episode ends, for how many actions they go, and the last told."""
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
    """Spaces, seeds and infos of each task, none with a warning."""
    check_env(ls.gym.environment(tasks[name]), skip_render_check=True)


def test_a_rod_falls_over_and_a_regulator_keeps_it_upright(tasks):
    """Without a force an episode ends early; with the linear quadratic regulator of the upright rod it goes on to its
    limit, worth nearly the height of the rod at each action."""
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
    """Waves towards the tail drive it ahead, waves towards the nose back, and stillness nowhere."""
    task = tasks["swim"]

    def wave(lag):
        return lambda k, state: np.tile(np.sin(task.period * 10.0 * k - np.array([0.0, lag])), (2, 1))

    ways = [run(task, law, most=50)[2]["way"] for law in (wave(np.pi / 2), wave(-np.pi / 2))]
    still = run(task, lambda k, state: np.zeros((2, 2)), most=10)[2]["way"]
    assert (ways[0] > 0.2).all() and (ways[1] < -0.2).all() and (np.abs(still) < 0.01).all()


def test_a_ball_is_held_by_those_who_pull(tasks):
    """With a firm pull the ball stays when its table is gone; without, it is lost with the table."""
    task = tasks["hold"]
    _, count, told = run(task, lambda k, state: np.full((2, 1), 0.25))
    assert (count == task.limit).all() and told["is_success"].all()
    _, count, told = run(task, lambda k, state: -np.ones((2, 1)))
    assert (count < task.limit).all() and not told["is_success"].any()


@pytest.mark.graphics
def test_a_picture_of_a_grasp_leaves_the_table_out(tasks):
    """What a task says of its pictures reaches the renderer."""
    env = ls.gym.environment(tasks["hold"], render_mode="rgb_array", size=80)
    env.reset(seed=0)
    assert env.render().shape[1:] == (80, 3)
    assert "table" not in tasks["hold"].drawn(env.unwrapped.episodes.state(), 0)["links"]


def test_gymnasium_knows_the_tasks_by_name(tasks):
    """By the module that registers them, single and as many copies, with further arguments; they go as they do here."""
    name = "lissom.gym.registered:lissom/Balance-v0"
    seen = gymnasium.make(name, render_mode="rgb_array").reset(seed=3)[0]
    many = gymnasium.make_vec(name, num_envs=2, autoreset="same_step")
    assert many.num_envs == 2 and np.array_equal(many.reset(seed=3)[0][0], seen)
    assert np.array_equal(ls.gym.environment(tasks["balance"]).reset(seed=3)[0], seen)
    for task in TASKS:
        assert f"lissom/{task.capitalize()}-v0" in gymnasium.registry
