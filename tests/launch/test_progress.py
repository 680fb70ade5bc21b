"""Bars that say how far long calls have come."""

import logging
import time

import numpy as np
import pytest
from dynamics.small_robots import rod

import lissom as ls
from lissom.launch import progress
from lissom.launch.progress import progress_bar


def test_a_bar_waits_for_a_second(capsys):
    """Purpose: a short call prints nothing; a long one prints its progress, in its own words if it has some."""
    with progress_bar(True, 3, "counting", "sheep", patience=60.0) as advance:
        advance(3)
    assert capsys.readouterr().out == ""
    with progress_bar(True, None, "looking", patience=0.01) as advance:
        time.sleep(0.1)
        advance(7, "7 of who knows how many")
    shown = capsys.readouterr().out
    assert "looking" in shown and "7 of who knows how many" in shown


@pytest.fixture
def told(monkeypatch):
    """Labels, units and last values of all bars, each with its own delay."""
    seen = []

    class Bar:
        def __init__(self, show, total, label="simulating", unit="s", patience=0.0):
            self.row = [show, total, label, unit, []]

        def __enter__(self):
            seen.append(self.row)
            return lambda done, said="": self.row[-1].append(done)

        def __exit__(self, *_):
            return None

    for name in ("statics.equilibrium", "statics.continuation", "inverse.kinematics", "inverse.prescribed",
                 "inverse.fit", "gradients.rollout"):  # fmt: skip
        __import__(f"lissom.{name}")
        monkeypatch.setattr(f"lissom.{name}.progress_bar", Bar)
    return seen


def test_long_calls_say_how_far_they_are(told):
    """Purpose: statics, continuation, inverse problems and rollouts end at the total that they announced."""
    model = rod()
    u = np.zeros((3, model.nu))
    ls.solve_statics(model, u, progress=True)
    assert told.pop(0) == [True, 3, "statics", "equilibria", [1, 2, 3]]
    branch = ls.continuation(model, max_points=4, progress=True)
    show, total, label, _, counts = told[0]
    assert (show, total, label) == (True, None, "following a branch") and counts[-1] >= len(branch.factor) - 1
    assert counts == sorted(counts)
    told.clear()
    run = ls.rollout(model, u=u, dt=1e-3, progress=True)
    assert told.pop(0)[:4] == [True, 3, "rollout", "steps"] and run.steps == 3
    tip = model.links.names[-1]
    places = ls.frame_pose(model, np.stack([model.neutral()] * 2), tip)[:, :3, 3]
    ls.inverse_kinematics(model, {tip: places}, progress=True)
    assert told.pop(0) == [True, 2, "inverse kinematics", "targets", [2]]


def test_elsewhere_the_log_says_words_too(caplog, monkeypatch):
    """Purpose: where nobody knows how far it is, the log has the words of the call."""
    caplog.set_level(logging.INFO, logger="lissom")
    monkeypatch.setattr(progress, "_PAUSE", 0.0)
    with progress_bar(True, None, "fitting", patience=60.0) as advance:
        advance(2, "2 shapes")
    assert [record.getMessage() for record in caplog.records] == ["fitting: 2 shapes"]


def test_elsewhere_than_on_terminals_the_log_says_how_far_a_motion_is(caplog, monkeypatch):
    """A line after a pause, the next after twice as long; none before."""
    caplog.set_level("INFO", logger="lissom")
    now = [0.0]
    monkeypatch.setattr("lissom.launch.progress.time.monotonic", lambda: now[0])
    with progress_bar(True, 10.0) as advance:
        for now[0] in (0.5, 1.0, 2.5, 3.0, 6.9):
            advance(now[0])
    assert [record.getMessage() for record in caplog.records] == [f"simulating: {t} of 10 s" for t in (1, 3)]
