"""Buffers: one grows for all batches, memory is bounded, a forked child has threads of its own."""

import multiprocessing

import history_calls
import numpy as np
import pytest
from robots import build, random_tree

import lissom as ls
from lissom.launch import buffers as buffers_module
from lissom.launch import workspace as workspace_module
from lissom.launch.buffers import least_instances
from lissom.model import model as model_module


def states(model, n, seed=0):
    """n states near the neutral one."""
    rng = np.random.default_rng(seed)
    q = ls.integrate(model, np.tile(model.neutral(), (n, 1)), 0.1 * rng.normal(size=(n, model.nv)) * model.dofs.scale)
    return q, rng.normal(size=(n, model.nv)), rng.normal(size=(n, model.nv))


def test_batches_of_all_sizes_share_buffers():
    """Growing and shrinking batches give what single states do, from few buffers."""
    model = build(random_tree(3))
    q, v, a = states(model, 150)
    u = np.ones((150, model.nu))
    one = np.array([ls.inverse_dynamics(model, *row) for row in zip(q, v, a)])
    single = np.array([ls.forward_dynamics(model, *row) for row in zip(q, v, u)])
    for n in (33, 150, 2, 64, 149, 7):
        assert (ls.inverse_dynamics(model, q[:n], v[:n], a[:n]) == one[:n]).all()
        assert (ls.forward_dynamics(model, q[:n], v[:n], u[:n]) == single[:n]).all()
        wrong = q[:n].copy()
        wrong[-1, 0] = np.nan
        with pytest.raises(ls.ShapeError, match=f"instance {n - 1} of {n}"):
            ls.inverse_dynamics(model, wrong, v[:n], a[:n])
    for family in ("inverse_dynamics", "forward_dynamics"):
        (pool,) = (pool for key, pool in model.cache.items() if isinstance(key, tuple) and key[:2] == (family, "batch"))
        assert len(pool.buffers) == len(pool.free) == 1


def test_options_hold_when_a_batch_changes():
    """Without gravity, without springs, then all of it, for other sizes of the batch."""
    model = build(random_tree(5))
    q, v, a = states(model, 40)
    for n in (40, 9, 20):
        for options in ({"gravity": False}, {"elastic": False}, {}):
            whole = ls.inverse_dynamics(model, q[:n], v[:n], a[:n], **options)
            assert (whole[-1] == ls.inverse_dynamics(model, q[n - 1], v[n - 1], a[n - 1], **options)).all()


def results(model, q, v, a, u):
    """Arrays of functions that take batches."""
    link = model.links.names[-1]
    derivatives = ls.inverse_dynamics_derivatives(model, q, v, a), ls.forward_dynamics_derivatives(model, q, v, u)
    return [
        ls.inverse_dynamics(model, q, v, a), ls.mass_matrix(model, q), ls.forward_dynamics(model, q, v, u),
        ls.coriolis_matrix(model, q, v), ls.forward_kinematics(model, q), ls.frame_pose(model, q, link, s=[0.0, 1.0]),
        ls.frame_twist(model, q, v, link), ls.frame_jacobian(model, q, link),
        ls.frame_acceleration(model, q, v, a, link), ls.momentum(model, q, v), ls.energy(model, q, v).kinetic,
        ls.actuation_matrix(model, q),
        *(x for one in derivatives for x in one if x is not None),
    ]  # fmt: skip


@pytest.mark.parametrize("name", list(history_calls.ROBOTS))
def test_large_batches_run_in_blocks(name, monkeypatch):
    """Several blocks, with enough instances for each core, give the results of one for the whole batch. Errors count
    the instances of the batch."""
    model = history_calls.ROBOTS[name]().build()
    q, v, a = states(model, 77)
    u = np.random.default_rng(1).uniform(0.0, 0.1, size=(77, model.nu))
    given = [x.copy() for x in (q, v, a, u)]
    whole = results(model, q, v, a, u)
    monkeypatch.setattr(workspace_module, "_COLUMNS_PER_CORE", 1)
    monkeypatch.setattr(workspace_module, "cores", lambda: 1)
    fresh = history_calls.ROBOTS[name]().build()
    for found, expected in zip(results(fresh, q, v, a, u), whole, strict=True):
        np.testing.assert_array_equal(found, expected)
    pools = [pool for pool in fresh.cache.values() if isinstance(pool, workspace_module.Pool)]
    capacities = {buffers.capacity for pool in pools for buffers in pool.buffers}
    blocks = -(-77 // (2 * least_instances(fresh)))
    assert blocks >= 3 and -(-77 // blocks) in capacities
    assert all(np.array_equal(*pair) for pair in zip(given, (q, v, a, u)))
    q[60] = np.nan
    with pytest.raises(ls.ShapeError, match=r"q \(instance 60 of 77\): must be finite"):
        ls.inverse_dynamics(fresh, q, v, a)


def test_one_costly_state_is_one_launch(monkeypatch):
    """Work that is worth several threads is not split into more launches than it has states, also on many cores."""
    model = build(random_tree(3))
    known = ls.solve_statics(model), ls.simulate(model, 0.02, dt=0.01).q
    monkeypatch.setattr(buffers_module, "_MIN_INSTANCES_PER_THREAD", 1)
    monkeypatch.setattr(buffers_module, "cores", lambda: 8)
    fresh = build(random_tree(3))
    np.testing.assert_array_equal(ls.solve_statics(fresh).q, known[0].q)
    np.testing.assert_array_equal(ls.simulate(fresh, 0.02, dt=0.01).q, known[1])


def test_memory_is_bounded(monkeypatch):
    """Seventy batches of different sizes leave one workspace, and the least recently used one goes first."""
    model = build(random_tree(3))
    for n in range(1000, 1070):
        ls.inverse_dynamics(model, *states(model, n))
    held = [getattr(x, "nbytes", 0) for x in model.cache.values()]
    ls.inverse_dynamics(model, *states(model, 1069))
    assert 0 < sum(held) == sum(getattr(x, "nbytes", 0) for x in model.cache.values())
    monkeypatch.setattr(model_module, "_MOST_BYTES", int(1.5 * sum(held)))
    q, v, a = states(model, 1000)
    ls.energy(model, q, v)
    ls.inverse_dynamics(model, q, v, a)
    ls.inverse_dynamics_derivatives(model, q, v, a)
    names = [key[0] for key in model.cache if isinstance(key, tuple) and "batch" in key]
    assert "energy" not in names and "derivatives" in names[-1]


def child_answer(model, queue):
    """Results of a child process for a batch."""
    queue.put(ls.inverse_dynamics(model, *states(model, 200)))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")  # JAX warns of forks once it has been used
@pytest.mark.parametrize("way", ["fork", "spawn"])
def test_children_answer(way):
    """A child forked after a batch has used the threads, or that starts new, computes a batch of its own."""
    context = multiprocessing.get_context(way)
    model = build(random_tree(3))
    mine = ls.inverse_dynamics(model, *states(model, 200))
    queue = context.Queue()
    child = context.Process(target=child_answer, args=(model, queue), daemon=True)
    child.start()
    try:
        np.testing.assert_array_equal(queue.get(timeout=120), mine)
    finally:
        child.join(10)
        child.kill()


def test_the_environment_says_how_many_cores(monkeypatch):
    """Batches are split over so many cores, with the same results; a wrong number of cores is refused."""
    model = build(random_tree(3))
    q, v, a = states(model, 64)
    monkeypatch.setenv("LISSOM_CORES", "1")
    alone = ls.inverse_dynamics(model, q, v, a)
    (w,) = model.cache["inverse_dynamics", "batch", 1].free
    assert len(w.launches) == 1
    model.cache.clear()
    monkeypatch.setenv("LISSOM_CORES", "3")
    np.testing.assert_array_equal(ls.inverse_dynamics(model, q, v, a), alone)
    (w,) = model.cache["inverse_dynamics", "batch", 3].free
    assert len(w.launches) == 3
    model.cache.clear()
    monkeypatch.setenv("LISSOM_CORES", "two")
    with pytest.raises(ls.ModelError, match=r"LISSOM_CORES: must be an integer >= 1 \(got 'two'\)"):
        ls.inverse_dynamics(model, q, v, a)
