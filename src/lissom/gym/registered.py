"""Environments of Gymnasium from tasks: single ones, vector environments of many copies, and their pictures.

An environment runs episodes of n copies of a robot. Each copy has its own random number generator with its own seed, so
that its episodes do not depend on the other copies. The results of a vector environment are equal, to the last bit, to
those of SyncVectorEnv with the same number of single environments; for a batch of models, each with its own model.

Importing this module registers the tasks of this library in Gymnasium:
gymnasium.make("lissom.gym.registered:lissom/Reach-v0"), and make_vec(..., num_envs=64) for many copies in one launch.
Further arguments are passed to `environment` and `vector_environment`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, final

import gymnasium
import numpy as np
from gymnasium.envs.registration import register
from gymnasium.spaces import Box
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from lissom.dynamics.start import start_configuration
from lissom.errors import ModelError, ShapeError
from lissom.gym.tasks import Task, TaskBalance, TaskHold, TaskMemory, TaskReach, TaskState, TaskSwim
from lissom.launch.workspace import stack
from lissom.model.model_batch import ModelBatch
from lissom.robot import checks
from lissom.robot.robot import Robot
from lissom.stepping.feedback import law_in_kernels
from lissom.stepping.stepper import Copies, changeable
from lissom.viewing.render import render

if TYPE_CHECKING:
    from lissom.gym.stable_baselines import StableBaselinesEnvironment

_RENDER_MODES = ("rgb_array",)
_AUTORESETS = ("next_step", "same_step", "disabled")
Info = dict[str, Any]


# -- episodes of copies -----------------------------------------------------------------------------------------------


class Outcome(NamedTuple):
    """The results of an action for n copies.

    Fields:
        seen: observations (n, n_seen).
        reward: rewards (n,).
        terminated, truncated: whether the episode has terminated or is truncated (n,).
        info: further information by name.
    """

    seen: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    info: dict[str, np.ndarray]


@final
class Episodes:
    """Episodes of n copies. Each model of a batch has the same number of consecutive copies.

    Raises:
        ModelError: the number of copies is no multiple of the number of models, or the task is invalid.
    Fields:
        task: the task.
        n: number of copies.
        random: random number generators of the copies.
        least, most: limits of observations, each (n_seen,).
    """

    def __init__(self, task: Task, copies: int, random: list[np.random.Generator]) -> None:
        task.check()
        given = list(task.model) if isinstance(task.model, ModelBatch) else [task.model]
        if copies % len(given):
            raise ModelError(f"copies: must be a multiple of the {len(given)} models of the task (got {copies})")
        self._robots: list[Robot] = []  # of the copies, if their designs are drawn
        if type(task).design is not Task.design:
            own = [given[k * len(given) // copies] for k in range(copies)]
            self._robots = [model.description for model in own]
            task = replace(task, model=changeable(own))
        self.task, self.random = task, random
        model = task.model
        self._tasks = [replace(task, model=one) for one in model] if isinstance(model, ModelBatch) else [task]
        common = model.common if isinstance(model, ModelBatch) else model
        law = law_in_kernels(common, task.controller, "a function in Python computes inputs in `Task.inputs`")
        self.copies = Copies(common, copies, dt=task.period / task.steps, steps=task.steps, law=law)
        self.n, n = copies, copies
        self._count = np.zeros(n, dtype=int)
        self._u, self._action, self._goal = np.zeros((n, model.nu)), np.zeros((n, task.n_actions)), np.zeros((n, 0))
        self._memory: TaskMemory | None = None
        self._goal = self._begin(np.arange(n), [np.random.default_rng(0)] * n)
        limits = task.observation_limits()
        size = self._see(self.state()).shape[1]
        self.least, self.most = (np.broadcast_to(np.asarray(x, dtype=np.float64), size).copy() for x in limits)
        self._has_limits = bool(np.isfinite([self.least, self.most]).any())

    def state(self) -> TaskState:
        """The present state of all copies."""
        task = self.task
        q, v, u = self.copies.q.copy(), self.copies.v.copy(), self._u.copy()
        action, goal = self._action.copy(), self._goal.copy()
        return TaskState(self._count * task.period, q, v, u, action, goal, task.model, _memory=self._memory)

    def task_of(self, copy: int) -> Task:
        """The task with the model of one copy."""
        return self._tasks[copy * len(self._tasks) // self.n]

    def see(self) -> np.ndarray:
        """The present observations (n, n_seen)."""
        return self._clipped(self._see(self.state()))

    def begin(self, which: np.ndarray) -> None:
        """Begin new episodes of the copies with indices `which` (k,)."""
        self._goal[which] = self._begin(which, [self.random[k] for k in which.tolist()])

    def act(self, action: Any, rests: np.ndarray | None = None) -> Outcome:
        """Apply actions (n, n_actions), clipped to −1 and 1, for one period. Copies in the mask `rests` (n,) do not
        move.

        Raises:
            ShapeError: actions have a wrong shape or are NaN.
        """
        task = self.task
        rows = stack("action", action, task.n_actions)
        if rows.shape != (self.n, task.n_actions) or np.isnan(rows).any():
            raise ShapeError(f"action: expected numbers of shape {(self.n, task.n_actions)}, got {action!r}")
        moves = slice(None) if rests is None else ~rests
        self._action[moves] = np.minimum(np.maximum(rows, -1.0), 1.0)[moves]  # np.clip takes five times as long
        self._u[moves] = task.inputs(self._action)[moves]
        lost = self.copies.advance(self._u, rests)
        self._count[moves] += 1
        state = self.state()
        if self._memory is not None:
            self._memory.add(state, None if rests is None else ~rests)
        info: dict[str, np.ndarray] = self.copies.told()
        info |= {name: self._rows(f"told[{name!r}]", value) for name, value in task.told(state).items()}
        truncated = self._count >= task.limit
        if len(lost):
            truncated[lost] = True
            info["is_unsolved"] = np.isin(np.arange(self.n), lost)
        seen = self._clipped(self._see(state))
        reward = self._rows("reward", task.reward(state), axes=1)
        return Outcome(seen, reward, self._rows("terminated", task.terminated(state), axes=1), truncated, info)

    def _rows(self, name: str, value: Any, axes: int | None = None) -> np.ndarray:
        """A value of a task for all copies, as an array (n, ...). It must have `axes` axes, if this is given."""
        rows = np.asarray(value)
        if rows.ndim != (axes or max(rows.ndim, 1)) or len(rows) != self.n:
            rest = "" if axes == 1 else " ..."
            raise ShapeError(f"{type(self.task).__name__}.{name}: expected shape ({self.n},{rest}), got {rows.shape}")
        return rows

    def _clipped(self, seen: np.ndarray) -> np.ndarray:
        return np.clip(seen, self.least, self.most) if self._has_limits else seen

    def _see(self, state: TaskState) -> np.ndarray:
        return self._rows("observe", self.task.observe(state), axes=2).astype(np.float64)

    def _begin(self, which: np.ndarray, random: list[np.random.Generator]) -> np.ndarray:
        """Put the copies with indices `which` (k,) at starts of episodes. Returns their goals (k, ...)."""
        model = self.task.model
        for k, own in zip(which.tolist(), random) if self._robots else ():
            self._draw(k, own)
        starts = [self.task_of(k).start(own) for k, own in zip(which.tolist(), random)]
        rest, none = np.zeros(model.nv), np.zeros(model.nu)
        own = [self.copies.model.of_row(k, self.n) for k in which.tolist()]
        q = np.array([start_configuration(one) if x.q is None else x.q for one, x in zip(own, starts)])
        q = q.reshape(len(which), model.nq)
        v = np.array([rest if x.v is None else x.v for x in starts]).reshape(len(which), model.nv)
        u = np.array([none if x.u is None else x.u for x in starts]).reshape(len(which), model.nu)
        self.copies.place(which, q, v, u)
        self._count[which], self._action[which], self._u[which] = 0, 0.0, u
        state = self.state()
        if self._memory is None:
            self._memory = TaskMemory(state, checks.integer(self.task.memory, "memory", least=0))
        self._memory.begin(which, state, random)
        return np.array([np.zeros(0) if x.goal is None else np.asarray(x.goal, dtype=np.float64) for x in starts])

    def _draw(self, k: int, random: np.random.Generator) -> None:
        """Give copy k the design of its next episode."""
        values = self.task_of(k).design(random)
        where = f"{type(self.task).__name__}.design"
        checks.require(isinstance(values, Mapping), where, "must return values by path", values)
        self.copies.redraw(k, self._robots[k], values)
        self._tasks[k] = task = replace(self.task, model=self._tasks[k].model)
        if not np.array_equal(task.configuration_limits, self.task.configuration_limits):
            raise ModelError(f"{where}: must not change limits of joints (got {', '.join(values)})")


# -- environments of Gymnasium ----------------------------------------------------------------------------------------


def _picture(task: Task, state: TaskState, copy: int, size: int) -> np.ndarray:
    """Picture of one copy in its present state, shape (height, width, 3), integers from 0 to 255."""
    options: dict[str, Any] = {"size": size} | task.drawn(state, copy)
    return render(task.robot, state.q[copy], **options)


@final
class ManyEnvironments(VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """Copies that move in one launch per action."""

    def __init__(self, task: Task, copies: int, autoreset: str, render_mode: str | None, size: int) -> None:
        self.task, self.num_envs, self.render_mode, self.size = task, copies, render_mode, size
        self.mode = AutoresetMode[autoreset.upper()]
        self.metadata = {
            "render_modes": list(_RENDER_MODES),
            "render_fps": round(1.0 / task.period),
            "autoreset_mode": self.mode,
        }
        self.episodes = Episodes(task, copies, [np.random.default_rng(k) for k in range(copies)])
        self.single_action_space = Box(-1.0, 1.0, (task.n_actions,), np.float64)
        self.single_observation_space = Box(self.episodes.least, self.episodes.most, dtype=np.float64)
        self.action_space = batch_space(self.single_action_space, copies)
        self.observation_space = batch_space(self.single_observation_space, copies)
        self._over = np.zeros(copies, dtype=bool)
        self._has_begun = False

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, Info]:
        """Begin episodes of all copies, or of the copies in the mask options["reset_mask"]. With a seed k the copies
        get the seeds k, k + 1, …

        Raises:
            ModelError, ShapeError: the number of seeds or of mask entries is not the number of copies.
        """
        seeds = (
            [None if seed is None else seed + k for k in range(self.num_envs)] if not isinstance(seed, list) else seed
        )
        if len(seeds) != self.num_envs:
            raise ModelError(f"seed: must be one number, or one for each of {self.num_envs} copies (got {len(seeds)})")
        which = np.asarray((options or {}).get("reset_mask", np.ones(self.num_envs, dtype=bool)))
        if which.shape != (self.num_envs,) or which.dtype != bool:
            raise ShapeError(f"reset_mask: expected booleans of shape ({self.num_envs},), got {which!r}")
        for k in np.flatnonzero(which).tolist():
            if seeds[k] is not None or not self._has_begun:
                self.episodes.random[k] = seeding.np_random(seeds[k])[0]
        self._has_begun = True
        self._over[which] = False
        self.episodes.begin(np.flatnonzero(which))
        return self.episodes.see(), {}

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, Info]:
        """Apply the actions of all copies for one period.

        Raises:
            ShapeError: actions have a wrong shape.
        """
        if self.mode is AutoresetMode.NEXT_STEP and self._over.any():
            return self._step_and_begin(actions)
        if self._over.any():
            raise ModelError(f"copies whose episode is over must be reset (got {np.flatnonzero(self._over).tolist()})")
        found = self.episodes.act(actions)
        over = found.terminated | found.truncated
        info = _masked(found.info, ~np.zeros(self.num_envs, dtype=bool))
        if self.mode is not AutoresetMode.SAME_STEP:
            self._over = over
            return found.seen, found.reward, found.terminated, found.truncated, info
        return self._begin_here(found, over)

    def _step_and_begin(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, Info]:
        """A step in which copies whose episodes are over begin new ones."""
        begins = self._over
        self.episodes.begin(np.flatnonzero(begins))
        found = self.episodes.act(actions, begins)
        reward = np.where(begins, 0.0, found.reward)
        terminated, truncated = found.terminated & ~begins, found.truncated & ~begins
        self._over = terminated | truncated
        return found.seen, reward, terminated, truncated, _masked(found.info, ~begins)

    def _begin_here(
        self, found: Outcome, over: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, Info]:
        """Begin new episodes immediately for copies whose episodes are over. Their last observations and information
        are added to the information."""
        info = _masked(found.info, ~over)
        if not over.any():
            return found.seen, found.reward, found.terminated, found.truncated, info
        last = np.full(self.num_envs, None, dtype=object)
        for k in np.flatnonzero(over).tolist():
            last[k] = found.seen[k]
        info |= {"final_obs": last, "_final_obs": over, "final_info": _masked(found.info, over), "_final_info": over}
        self.episodes.begin(np.flatnonzero(over))
        return self.episodes.see(), found.reward, found.terminated, found.truncated, info

    def render(self) -> tuple[np.ndarray, ...] | None:
        """Pictures of the present states of all copies."""
        if self.render_mode is None:
            return None
        state = self.episodes.state()
        return tuple(_picture(self.episodes.task_of(k), state, k, self.size) for k in range(self.num_envs))


def _masked(info: Info, which: np.ndarray) -> Info:
    """Information about the copies in the mask `which`, in the form of Gymnasium: zeros for other copies, and a
    mask."""
    if not which.any():
        return {}
    out: Info = {}
    for name, value in info.items():
        shown = which & value if name == "is_unsolved" else which
        if shown.any():
            wide = shown.reshape(-1, *[1] * (value.ndim - 1))
            out |= {name: np.where(wide, value, np.zeros_like(value)), f"_{name}": shown}
    return out


@final
class SingleEnvironment(gymnasium.Env[np.ndarray, np.ndarray]):
    """A task of one copy. It equals, to the last bit, the first copy of a vector environment with the same seed."""

    def __init__(self, task: Task, render_mode: str | None, size: int) -> None:
        self.task, self.render_mode, self.size = task, render_mode, size
        self.metadata = {"render_modes": list(_RENDER_MODES), "render_fps": round(1.0 / task.period)}
        self.episodes = Episodes(task, 1, [np.random.default_rng(0)])
        self.action_space = Box(-1.0, 1.0, (task.n_actions,), np.float64)
        self.observation_space = Box(self.episodes.least, self.episodes.most, dtype=np.float64)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        """Begin an episode. A seed restarts the random numbers."""
        super().reset(seed=seed)
        self.episodes.random[0] = self.np_random
        self.episodes.begin(np.arange(1))
        return self.episodes.see()[0], {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Apply an action for a period."""
        seen, reward, terminated, truncated, info = self.episodes.act(np.asarray(action)[None])
        info = {name: value[0] for name, value in info.items()}
        return seen[0], float(reward[0]), bool(terminated[0]), bool(truncated[0]), info

    def render(self) -> np.ndarray | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Picture of the robot in its present state, shape (height, width, 3)."""
        if self.render_mode is None:
            return None
        return _picture(self.task, self.episodes.state(), 0, self.size)


# -- environments from tasks ------------------------------------------------------------------------------------------


def environment(task: Task, *, render_mode: str | None = None, size: int = 480) -> gymnasium.Env:
    """Environment of Gymnasium: one robot at a task.

    Actions (n_actions,) are numbers from −1 to 1 [-]. The task decides when an episode is `terminated`. An episode is
    `truncated` after `task.limit` actions, or if a time step fails; then `info["is_unsolved"]` is true.

    Args:
        task: the task, with one model.
        render_mode: "rgb_array": `render()` returns a picture. None: no pictures.
        size: width of pictures [pixels].
    Returns:
        gymnasium.Env (extra `gym`).
    Raises:
        ModelError: Gymnasium is not installed, or the task is invalid.
    """
    _require_gymnasium()
    from gymnasium.envs.registration import EnvSpec

    _check_task(task, render_mode)
    one = not isinstance(task.model, ModelBatch)
    checks.require(one, "task", "must have one model; vector_environment takes a batch", task.model)
    made = SingleEnvironment(task, render_mode, checks.integer(size, "size", least=1))
    given = {"task": task, "size": size, "render_mode": render_mode}
    made.spec = EnvSpec(
        f"lissom/{type(task).__name__}-v0", entry_point="lissom.gym.registered:environment", kwargs=given
    )
    return made


def vector_environment(
    task: Task, copies: int, *, autoreset: str = "next_step", render_mode: str | None = None, size: int = 480
) -> gymnasium.vector.VectorEnv:
    """Vector environment of Gymnasium: many copies of a robot at a task. One launch, on all cores, moves all copies.

    Actions (copies, n_actions) are numbers from −1 to 1 [-]. Copy k is equal, to the last bit, to a single environment
    with its seed s + k for a seed s of `reset`. If the model of the task is a ModelBatch, each of its models has
    the same number of consecutive copies: copy k has the model k · models // copies.

    Args:
        task: the task, with one model or a batch of models.
        copies: number of copies, a multiple of the number of models.
        autoreset: when the next episode of a copy begins: "next_step"; "same_step"; or "disabled": only by
            `reset(options={"reset_mask": ...})`. The value is also `metadata["autoreset_mode"]`.
        render_mode, size: as in environment.
    Returns:
        gymnasium.vector.VectorEnv.
    Raises:
        ModelError: as in environment.
    """
    _require_gymnasium()
    _check_task(task, render_mode)
    checks.require(checks.among(autoreset, _AUTORESETS), "autoreset", f"must be among {list(_AUTORESETS)}", autoreset)
    count = checks.integer(copies, "copies", least=1)
    return ManyEnvironments(task, count, autoreset, render_mode, checks.integer(size, "size", least=1))


def stable_baselines_environment(task: Task, copies: int) -> StableBaselinesEnvironment:
    """Many copies of a robot at a task, as a vector environment of stable-baselines3.

    Actions (copies, n_actions) are numbers from −1 to 1 [-]. The copies are those of
    `vector_environment(autoreset="same_step")`.

    Args:
        task: the task.
        copies: number of copies.
    Returns:
        VecEnv of stable-baselines3 (extra `learning`).
    Raises:
        ModelError: stable-baselines3 is not installed, or the task is invalid.
    """
    _require_gymnasium()
    try:
        from lissom.gym.stable_baselines import StableBaselinesEnvironment
    except ImportError as error:
        raise ModelError(f"stable-baselines3 is needed: pip install 'lissom[learning]' (got {error})") from None
    _check_task(task, None)
    return StableBaselinesEnvironment(task, checks.integer(copies, "copies", least=1))


def _check_task(task: Task, render_mode: str | None) -> None:
    checks.require(isinstance(task, Task), "task", "must be a Task", task)
    modes = (None, *_RENDER_MODES)
    checks.require(checks.among(render_mode, modes), "render_mode", "must be 'rgb_array' or None", render_mode)


def _require_gymnasium() -> None:
    try:
        import gymnasium  # noqa: F401
    except ImportError:
        raise ModelError("environments need Gymnasium: pip install 'lissom[gym]'") from None


# -- names in the registry of Gymnasium -------------------------------------------------------------------------------


def _single(made: type[Task], **options: Any) -> Any:
    return environment(made(), **options)  # pyright: ignore[reportCallIssue]


def _vectorized(made: type[Task], num_envs: int, **options: Any) -> Any:
    return vector_environment(made(), num_envs, **options)  # pyright: ignore[reportCallIssue]


for _task in (TaskBalance, TaskHold, TaskReach, TaskSwim):
    _name = f"lissom/{_task.__name__.removeprefix('Task')}-v0"
    register(_name, entry_point=partial(_single, _task), vector_entry_point=partial(_vectorized, _task))
