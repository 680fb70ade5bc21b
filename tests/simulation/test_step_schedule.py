"""Where fixed steps end, told piece by piece."""

import numpy as np
import pytest

from lissom.simulation.implicit_methods import StepSchedule


def listed(times, duration, period, dt):
    """Ends, which are wanted and which are samples, stop by stop in a loop."""
    stops = {float(t): "w" for t in (times[1:] if times is not None else [duration])}
    if np.isfinite(period):
        for k in range(1, int(np.ceil(duration / period))):
            near = [t for t in stops if abs(t - k * period) <= 1e-12 * duration]
            stops[near[0] if near else k * period] = stops.get(near[0], "") + "s" if near else "s"
    rows, start = [], 0.0
    for stop in sorted(stops):
        k = 1
        while stop - (start + k * dt) > 1e-9 * dt:
            rows.append((start + k * dt, times is None, False))
            k += 1
        rows.append((stop, times is None or "w" in stops[stop], "s" in stops[stop]))
        start = stop
    return rows


CASES = [
    (None, 1.0, np.inf, 0.01),
    (None, 1.0, np.inf, 0.3),
    (None, 1.0, 0.1, 0.03),
    (np.array([0.0, 0.1, 0.1004, 0.7]), 1.0, np.inf, 0.01),
    (np.linspace(0, 1, 11), 1.0, 0.05, 0.01),
    (np.array([0.0, 0.3, 0.9]), 1.0, 0.3, 0.05),
    (np.array([0.0]), 1.0, np.inf, 0.1),
    (np.array([0.0, 1e-13]), 1.0, np.inf, 0.1),
]


@pytest.mark.parametrize("times, duration, period, dt", CASES)
def test_pieces_are_those_of_the_whole(times, duration, period, dt):
    """Whatever pieces are asked for, ends, wanted ones and samples are those that a plain loop finds."""
    plan, rows = StepSchedule(times, duration, period, dt), listed(times, duration, period, dt)
    assert len(plan) == len(rows)
    for size in (1, 7, 1000):
        parts = [(first, min(first + size, len(rows))) for first in range(0, len(rows), size)]
        ends = np.concatenate([np.zeros(0), *(plan.ends(*part) for part in parts)])
        np.testing.assert_array_equal(ends, [row[0] for row in rows])
        wanted = np.concatenate([np.zeros(0), *(plan.wanted(*part) for part in parts)])
        np.testing.assert_array_equal(wanted, [row[1] for row in rows])
    assert [plan.is_sample(k) for k in range(len(rows))] == [row[2] for row in rows]
    for k in range(len(rows)):
        left = [j for j in range(k, len(rows)) if rows[j][2] or j == len(rows) - 1]
        assert plan.to_sample(k) == left[0] - k + 1


def test_many_steps_need_little_room():
    """A day in steps of a millisecond is planned at once."""
    plan = StepSchedule(None, 86_400.0, np.inf, 1e-3)
    assert len(plan) == 86_400_000 and plan.ends(86_399_999, 86_400_000)[0] == 86_400.0
    assert sum(x.nbytes for x in vars(plan).values() if isinstance(x, np.ndarray)) < 1000
