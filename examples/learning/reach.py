"""Learn to bring the tip of a soft arm to points, by PPO of stable-baselines3, within minutes on two cores.

The arm is the cable-driven manipulator of Mathew 2025 §4.5, 24 coordinates and five tendons, in `TaskReach`: 64
copies move in one launch, each for 50 ms in five implicit steps for each action. The policy is always judged on the
same 64 episodes, of other seeds than those of learning, without noise in the actions. Needs the extra `learning`;
`make learn` installs it and asserts the curve.

    python examples/learning/reach.py out/learning
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import lissom as ls

COPIES, ACTIONS = 64, 40  # that learn at once; of an episode, which is also a round of each copy
ROUNDS = 24  # rounds of learning
SEED = 0


def judge(task: ls.gym.TaskReach, learned: Any) -> tuple[float, float]:
    """Mean distance at the end of episodes [m], and the share of those that end within the tolerance."""
    env = ls.gym.stable_baselines_environment(task, COPIES)
    env.seed(1000)
    seen = env.reset()
    told: list[dict[str, Any]] = []
    for _ in range(task.limit):
        action, _ = learned.predict(seen, deterministic=True)
        seen, _, _, told = env.step(action)
    return float(np.mean([x["distance"] for x in told])), float(np.mean([x["is_success"] for x in told]))


def main(out: str | Path | None = None) -> dict[str, float]:
    """Distances and successes before and after, and the time it took; a picture of the curve goes to `out`."""
    import torch
    from stable_baselines3 import PPO

    torch.set_num_threads(1)  # small networks; the cores are for the robots
    task = ls.gym.TaskReach(limit=ACTIONS)
    copies = ls.gym.stable_baselines_environment(task, COPIES)
    learned = PPO("MlpPolicy", copies, n_steps=ACTIONS, batch_size=512, n_epochs=10,
                  learning_rate=1e-3, gamma=0.9, gae_lambda=0.9, policy_kwargs={"log_std_init": -0.7}, seed=SEED,
                  device="cpu")  # fmt: skip
    began, rows = time.perf_counter(), [(0, *judge(task, learned))]
    for k in range(0, ROUNDS, 4):
        learned.learn(4 * COPIES * ACTIONS, reset_num_timesteps=k == 0)
        distance, successes = judge(task, learned)
        rows.append((learned.num_timesteps, distance, successes))
        print(
            f"{learned.num_timesteps:7d} actions: {1e3 * distance:5.1f} mm, {successes:4.0%} within 20 mm", flush=True
        )
    spent = time.perf_counter() - began
    if out is not None:
        _plot(np.array(rows), Path(out))
    return {
        "distance before [m]": rows[0][1],
        "distance after [m]": rows[-1][1],
        "successes before": rows[0][2],
        "successes half way": rows[len(rows) // 2][2],
        "successes after": rows[-1][2],
        "actions": rows[-1][0],
        "wall time [s]": spent,
    }


def check(found: dict[str, float]) -> None:
    """Assert the curve: from a hand's breadth to within the tolerance, half of it early, and in minutes."""
    assert found["distance before [m]"] > 0.05 and found["successes before"] < 0.2, found
    assert found["successes half way"] > 0.5, found
    assert found["distance after [m]"] < 0.01 and found["successes after"] > 0.95, found
    assert found["wall time [s]"] < 600.0, found


def _plot(rows: np.ndarray, folder: Path) -> None:
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    figure = Figure(figsize=(7, 4), layout="constrained")
    left = figure.subplots()
    right = left.twinx()
    left.semilogy(rows[:, 0], 1e3 * rows[:, 1], "o-", color="C0")
    right.plot(rows[:, 0], 100.0 * rows[:, 2], "s--", color="C1")
    left.set(xlabel="actions", ylabel="distance at the end [mm]")
    right.set(ylabel="episodes that end within 20 mm [%]", ylim=(0, 105))
    left.grid(alpha=0.3)
    figure.savefig(folder / "curve.png", dpi=120)


if __name__ == "__main__":
    numbers = main(out=sys.argv[1] if sys.argv[1:] else None)
    for name, value in numbers.items():
        print(f"{name}: {value:.3g}")
    check(numbers)
