"""A result depends on its arguments alone: random sequences of all public functions, with random options, shapes and
batches, on one used model, are those of a fresh model to the last bit."""

import inspect
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from copy import copy, deepcopy
from operator import attrgetter

import numpy as np
import pytest
from history_calls import CALLS, CHEAP, LEFT_OUT, RARE, ROBOTS, called, deformable, flat, same
from house import stub

import lissom as ls

KEPT = 8  # results that are looked at again


def sequence(made, count, seed, names=None):
    """Compare so many calls on a used model with calls on fresh ones; every tenth of these is newly built, the others
    share nothing but tables that nothing changes. No call changes the results of those before it."""
    rng, used, before = np.random.default_rng(seed), made().build(), deque(maxlen=KEPT)
    frequent, rare = sorted(set(CALLS) - RARE), sorted(RARE)
    for k in range(count):
        name = rng.choice(names or (rare if rng.random() < 0.15 else frequent))
        own = int(rng.integers(2**31))
        fresh = made().build() if k % 10 == 0 else copy(used)
        found, expected = (called(CALLS[name], model, np.random.default_rng(own)) for model in (used, fresh))
        where = f"call {k} of {made.__name__}, {name} with seed {own}"
        assert same(found, expected), f"{where}: {found}, {expected}"
        assert all(same(kept, copied) for kept, copied in before), f"{where} changes a result before it"
        before.append((found, deepcopy(flat(found))))


@pytest.mark.parametrize("robot", ROBOTS)
def test_histories(robot):
    """Five hundred calls."""
    sequence(ROBOTS[robot], -(-500 // len(ROBOTS)), 1)


@pytest.mark.slow
@pytest.mark.parametrize("robot", ROBOTS)
def test_long_histories(robot):
    """Twenty thousand calls."""
    for seed in range(8):
        sequence(ROBOTS[robot], -(-20_000 // (8 * len(ROBOTS))), 100 + seed)


@pytest.mark.slow
def test_histories_of_a_deformable_body():
    """Of a body whose tables JAX fills before each launch."""
    pytest.importorskip("jax")
    sequence(deformable, 200, 3)


def test_every_function_is_called():
    """All public functions of a model, but those that are left out for a reason."""
    with_model = {
        name
        for name in stub.names()
        if inspect.isfunction(found := attrgetter(name)(ls)) and "model" in inspect.signature(found).parameters
    }
    assert not {name for name in with_model - set(CALLS) if not name.startswith(tuple(LEFT_OUT))}


@pytest.mark.parametrize("robot", ["arm", "soft", "closed"])
def test_two_threads(robot):
    """Two threads on one model get the results that each gets alone."""
    used = ROBOTS[robot]().build()
    tasks = [(name, 1000 + k) for k, name in enumerate(CHEAP)]
    alone = [called(CALLS[name], copy(used), np.random.default_rng(seed)) for name, seed in tasks]

    def run(order):
        return [(k, called(CALLS[tasks[k][0]], used, np.random.default_rng(tasks[k][1]))) for k in order]

    with ThreadPoolExecutor(2) as pool:
        for found in pool.map(run, (range(len(tasks)), reversed(range(len(tasks))))):
            for k, result in found:
                assert same(result, alone[k]), tasks[k]
