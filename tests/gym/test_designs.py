"""Environments whose episodes have designs of their own, and observations that are late and noisy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import lissom as ls
from lissom.gym.registered import Episodes
from lissom.stepping.stepper import Copies

MODES = {mode.name.lower(): mode for mode in AutoresetMode}


def arm():
    """A soft arm with a tendon and a tip of steel."""
    robot = ls.Robot("arm")
    basis = ls.BasisLegendre(bending_y=1, bending_z=1)
    rod = ls.Rod(0.3, ls.SectionCircle((0.02, 0.01)), basis, ls.Material(young=1e6, density=1000, viscosity=2e3))
    robot.add_link("arm", rod)
    robot.add_link("tip", ls.RigidBody.sphere(0.01, density=8000.0), parent="arm")
    robot.add_tendon("up", "arm", (0.0, 0.008))
    return robot.build()


@dataclass(frozen=True, eq=False)
class Lift(ls.gym.Task):
    """Bend an arm of unknown stiffness and length by a tendon, seen late and inexactly."""

    memory = 3

    def design(self, random):
        """Another stiffness, length, tip and gravity in each episode."""
        young, length = 1e6 * np.exp(0.3 * random.normal()), random.uniform(0.2, 0.4)
        return {"arm.material.young": young, "arm.length": length, "tip.mass": random.uniform(0.01, 0.1)}

    def start(self, random):
        """A random bend, and a delay of the sensor."""
        return ls.gym.TaskStart(q=0.5 * random.normal(size=self.model.nq), goal=random.integers(0, 4, size=1))

    def observe(self, state):
        """The place of the tip some actions ago with noise, the speed now with noise, and the delay."""
        late = state.before(state.goal[:, 0].astype(int)).place("tip") + 0.01 * state.noise(3)
        return np.concatenate([late, state.velocity("tip") + 0.1 * state.noise(5)[:, 2:], state.goal], axis=1)

    def reward(self, state):
        """The height of the tip."""
        return state.place("tip")[:, 2]

    def terminated(self, state):
        """Whether the tip is high."""
        return state.place("tip")[:, 2] > 0.05

    def told(self, state):
        """Energies of the robots."""
        return {"mass": np.array([one.links.mass.sum() for one in state.model])}


@pytest.mark.parametrize("mode", MODES)
def test_copies_with_own_designs_equal_single_environments(mode):
    """Observations, rewards, ends and information of many copies equal those of single ones to the last bit, through
    several episodes."""
    task = Lift(arm(), most=3.0, steps=2, limit=4)
    many = ls.gym.vector_environment(task, 5, autoreset=mode)
    single = SyncVectorEnv([lambda: ls.gym.environment(task)] * 5, autoreset_mode=MODES[mode])
    assert np.array_equal(many.reset(seed=5)[0], single.reset(seed=5)[0])
    many.action_space.seed(0)
    masses = set()
    for _ in range(14):
        action = many.action_space.sample()
        (*found, info), (*wanted, told) = many.step(action), single.step(action)
        assert all(np.array_equal(x, y) for x, y in zip(found, wanted))
        assert np.array_equal(info.get("mass"), told.get("mass"))
        masses |= set(np.ravel(info.get("mass", ())).tolist())
        over = found[2] | found[3]
        if mode == "disabled" and over.any():
            options = {"reset_mask": over}
            assert np.array_equal(many.reset(options=options)[0], single.reset(options=options)[0])
    assert len(masses) > 10


def test_episodes_are_those_of_built_robots():
    """A copy moves, to the last bit, as the robot that is built from its drawn values."""
    task, n = Lift(arm(), most=3.0, steps=2), 3
    random = [np.random.default_rng(k) for k in range(n)]
    episodes = Episodes(task, n, random)
    for _ in range(2):
        episodes.begin(np.arange(n))
        state = episodes.state()
        for k in range(n):
            robot = episodes.task_of(k).model.description
            alone = Copies(robot.build(), dt=task.period / 2, steps=2)
            alone.place([0], state.q[k : k + 1], state.v[k : k + 1], np.zeros((1, 1)))
            alone.advance(task.inputs(np.ones((1, 1))))
            if k == 0:
                episodes.act(np.ones((n, 1)))
            assert np.array_equal(alone.q[0], episodes.state().q[k])
        lengths = {episodes.task_of(k).model.description.with_().links["arm"].body.length for k in range(n)}
        assert len(lengths) == n


def test_past_states_and_noise():
    """States of earlier actions are those that were seen then, up to the start of the episode; the noise of a state
    stays the same, is normal, and differs between copies and states."""
    task = Lift(arm(), most=3.0, steps=2, limit=100)
    episodes = Episodes(task, 4, [np.random.default_rng(k) for k in range(4)])
    episodes.begin(np.arange(4))
    seen, noises = [episodes.state()], []
    for k in range(6):
        episodes.act(np.full((4, 1), 0.1 * k))
        state = episodes.state()
        seen.append(state)
        for ago in range(4):
            then = seen[max(len(seen) - 1 - ago, 0)]
            assert all(
                np.array_equal(getattr(state.before(ago), x), getattr(then, x)) for x in ("t", "q", "v", "action")
            )
        mixed = state.before(np.arange(4))
        assert all(np.array_equal(mixed.q[ago], state.before(ago).q[ago]) for ago in range(4))
        first = state.noise(200)
        assert np.array_equal(first, episodes.state().noise(200)) and np.array_equal(first[:, :7], state.noise(7))
        noises.append(first)
    numbers = np.array(noises)
    assert len(np.unique(numbers)) == numbers.size
    assert abs(numbers.mean()) < 5.0 / np.sqrt(numbers.size) and abs(numbers.std() - 1.0) < 5.0 / np.sqrt(numbers.size)


def test_wrong_designs_and_delays_get_one_line():
    """A delay beyond the memory, noise outside of an environment, and designs of another form are refused."""
    task = Lift(arm(), most=3.0, steps=2)
    episodes = Episodes(task, 2, [np.random.default_rng(k) for k in range(2)])
    with pytest.raises(ls.ModelError, match="integers from 0 to the memory of the task, 3"):
        episodes.state().before(4)
    with pytest.raises(ls.ModelError, match="integers from 0"):
        episodes.state().before(np.array([0.5, 1.0]))
    state = episodes.state()
    alone = ls.gym.TaskState(state.t, state.q, state.v, state.u, state.action, state.goal, task.model)
    with pytest.raises(ls.ModelError, match="noise: needs a state of an environment"):
        alone.noise(2)

    class Wrong(Lift):
        """Draws a list."""

        def design(self, random):
            """No values by path."""
            return [1.0]

    with pytest.raises(ls.ModelError, match=r"Wrong\.design: must return values by path"):
        ls.gym.environment(Wrong(arm(), most=3.0))
