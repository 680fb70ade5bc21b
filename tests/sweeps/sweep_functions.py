"""Robots and functions for the tests of sweeps, in a module that other processes can import."""

import os
import signal
import time
from pathlib import Path

import numpy as np

import lissom as ls

GRID = {"arm.material.young": ls.Span(1e6, 2e6, 3, "log"), "u.up": [0.0, 1.0, 2.0]}


def small():
    """A rod with two tendons."""
    robot = ls.Robot("small")
    material = ls.Material(young=1e6, density=1000.0, viscosity=2e3)
    robot.add_link("arm", ls.Rod(0.3, ls.SectionCircle(0.01), ls.BasisLegendre(bending_y=1, bending_z=0), material))
    robot.add_tendon("up", "arm", (0, 0.008))
    robot.add_tendon("side", "arm", (0.008, 0))
    return robot


def tip(trial):
    """Where the tip rests; one tension is refused."""
    if trial.values.get("u.up", 0.0) > 1.9:
        raise ValueError("a tension too large")
    found = ls.solve_statics(trial.model, trial.u)
    return {"tip": ls.frame_pose(trial.model, found.q, "arm")[:3, 3], "stable": found.is_stable}


def force(trial):
    """The force that holds a bent shape; one tension is refused. A process is ready for it sooner than for statics."""
    if trial.values.get("u.up", 0.0) > 1.9:
        raise ValueError("a tension too large")
    q, still = trial.u[0] + np.arange(trial.model.nq), np.zeros(trial.model.nv)
    return {"force": ls.inverse_dynamics(trial.model, q, still, still)}


def begin_lightly():
    """The start of a worker process without its imports, which take seconds and which `square` does not need."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def square(trial):
    """No robot at all."""
    return {"y": trial["x"] ** 2, "number": trial.number} if trial["x"] < 0 else {"y": trial["x"] ** 2}


def slow_square(trial):
    """A square that takes a while; a file in a folder names the process that computes it."""
    if "LISSOM_TEST_PROCESSES" in os.environ:
        (Path(os.environ["LISSOM_TEST_PROCESSES"]) / str(os.getpid())).touch()
    time.sleep(0.05)
    return square(trial)


def killed_once(trial):
    """Sample 5 ends its process when it is first computed."""
    marker = Path(os.environ["LISSOM_TEST_MARKER"])
    if trial.number == 5 and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return square(trial)


def killed(trial):
    """Sample 3 ends its process whenever it is computed, and sample 5 when it first is."""
    if trial.number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return killed_once(trial)


def large(trial):
    """Much data; from sample 4 on the system takes no larger file than a few bytes, as if the disk were full."""
    if trial.number >= 4 and "LISSOM_TEST_FULL" in os.environ:
        import resource  # where the system limits files

        resource.setrlimit(resource.RLIMIT_FSIZE, (512, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    return {"noise": np.random.default_rng(trial.number).random(2000)}
