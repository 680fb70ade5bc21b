"""Steps onto the loops and forces of least norm block by block, against the rows of the loops as a whole matrix."""

from copy import copy
from types import SimpleNamespace

import numpy as np
import pytest
from dynamics.test_closed_dynamics import NETS, closed_state, planar, state
from net_robots import BAR, describe_net

import lissom as ls
from lissom.dynamics import assembly, forward_dynamics
from lissom.dynamics.assembly import closing_weights, consistent_velocity, project_onto_loops
from lissom.dynamics.constraints import (
    LEAST_NORM_FORCES,
    STEP_BY_KINETIC_ENERGY,
    STEP_POSITIONS,
    STEP_VELOCITIES,
    minimum_norm,
    run_closing,
    run_constraints,
)
from lissom.dynamics.inverse_dynamics_derivatives import row_results
from lissom.launch.workspace import independent_rows

pytestmark = pytest.mark.filterwarnings("ignore::lissom.errors.RedundancyWarning")


def both_ways(monkeypatch, model, compute):
    """Results of a function by rows and by blocks, each with a model of empty caches."""
    found = []
    for least in (model.nv + 1, 0):
        monkeypatch.setattr(forward_dynamics, "_LEAST_COORDINATES_CLOSED", least)
        found.append(compute(copy(model)))
    return found


def rows(model, q, v):
    """The residuals, their Jacobian, the rates and their rows, of the rows that are independent."""
    w, _ = run_constraints(model, q, v, find_independent=True)
    kept = independent_rows(w)
    gap, rate = (w.host[name][0, kept].copy() for name in ("gap", "rate"))
    return gap, row_results(model, w, "A_q")[kept], rate, row_results(model, w, "A")[kept]


@pytest.mark.parametrize("net", NETS)
def test_least_steps(net):
    """In weighted coordinates the steps are those of the pseudo-inverse, with and without damping; rows are sized."""
    model = NETS[net]().build()
    (q, v), W = state(model, 1), closing_weights(model, np.ones(model.nv, dtype=bool))
    gap, A_q, rate, A = rows(model, q, v)
    for task, J, missing in ((STEP_POSITIONS, A_q, gap), (STEP_VELOCITIES, A, rate)):
        w = run_closing(model, task, q[None], v[None], weights=W)
        assert not w.status.any()
        want = -W * (np.linalg.pinv(J * W) @ missing)
        np.testing.assert_allclose(w.host["move"][0], want, rtol=0.0, atol=1e-10 * np.abs(want).max())
    w = run_closing(model, STEP_POSITIONS, q[None], v[None], weights=W, damping=0.3)
    want = -W * ((A_q * W).T @ np.linalg.solve((A_q * W) @ (A_q * W).T + 0.3 * np.eye(len(gap)), gap))
    np.testing.assert_allclose(w.host["move"][0], want, rtol=0.0, atol=1e-11 * np.abs(want).max())
    np.testing.assert_allclose(w.host["size"][0], ((A_q * W) ** 2).sum(axis=1), rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("net", NETS)
def test_velocities_by_least_energy(monkeypatch, net):
    """A v = 0 as by the whole matrix, prescribed coordinates standing."""
    model = NETS[net]().build()
    q, v = state(model, 2)
    assert not run_closing(model, STEP_BY_KINETIC_ENERGY, q[None], v[None]).status.any()
    whole, blocks = both_ways(monkeypatch, model, lambda one: consistent_velocity(one, q, v))
    np.testing.assert_allclose(blocks, whole, rtol=0.0, atol=1e-9 * np.abs(whole).max())
    assert np.abs((ls.constraint_jacobian(model, q) @ blocks)[model.n_motions :]).max() < 1e-11 * np.abs(v).max()
    np.testing.assert_array_equal(blocks[model.prescribed.dof], v[model.prescribed.dof])


@pytest.mark.parametrize("size", [(1, 2), (2, 2), (3, 4), (6, 6)])
def test_forces_of_least_norm(monkeypatch, size):
    """Of loops of which less than half of the rows are independent, those of the singular value decomposition."""
    model = planar(*size)
    q = ls.assemble(model, 0.1 * np.random.default_rng(1).normal(size=model.nv))
    force = np.random.default_rng(2).normal(size=(1, model.n_rows))
    assert not run_closing(model, LEAST_NORM_FORCES, q[None], force=force).status.any()
    assert len(rows(model, q, np.zeros(model.nv))[0]) < 0.5 * model.n_rows
    whole, blocks = both_ways(monkeypatch, model, lambda one: minimum_norm(one, q[None], force))
    A = ls.constraint_jacobian(model, q)
    np.testing.assert_allclose(blocks, whole, rtol=0.0, atol=1e-10)
    np.testing.assert_allclose(blocks, force @ A @ np.linalg.pinv(A, rcond=1e-9), rtol=0.0, atol=1e-10)


def test_forces_of_independent_rows_stay(monkeypatch):
    """There is one set of forces only."""
    model = describe_net(2, 3).build()
    q, force = state(model, 3)[0], np.random.default_rng(2).normal(size=(1, model.n_rows))
    for found in both_ways(monkeypatch, model, lambda one: minimum_norm(one, q[None], force)):
        np.testing.assert_array_equal(found, force)


@pytest.mark.parametrize("net", [*NETS, "planar"])
def test_assembled_configurations(monkeypatch, net):
    """From an open start, with a link that stays: as by rows, up to terms quadratic in the opening."""
    model = planar(2, 3) if net == "planar" else NETS[net]().build()
    q, _ = state(model, 4, 1e-3)
    whole, blocks = both_ways(monkeypatch, model, lambda one: ls.assemble(one, q, fixed=["v0_0"]))
    assert np.abs(ls.loop_residual(model, blocks)).max() < 1e-10
    np.testing.assert_allclose(blocks, whole, rtol=0.0, atol=0.02 * np.abs(whole - q).max())


def test_outputs_are_moved_onto_loops(monkeypatch):
    """States near the loops: closed and still, and moved as by rows to the square of their distance."""
    model = planar(2, 2)
    q, v = closed_state(model)
    rng = np.random.default_rng(5)
    near = np.stack([ls.integrate(model, q, 1e-5 * rng.normal(size=model.nv)) for _ in range(3)])
    speeds = v + 1e-5 * rng.normal(size=(3, model.nv))
    whole, blocks = both_ways(monkeypatch, model, lambda one: project_onto_loops(one, near, speeds))
    assert np.abs(ls.loop_residual(model, blocks[0])).max() < 1e-11
    for one, x in zip(*blocks):
        assert np.abs(ls.constraint_jacobian(model, one) @ x).max() < 1e-10
    for found, want in zip(blocks, whole):
        np.testing.assert_allclose(found, want, rtol=0.0, atol=1e-9)


def test_rows_take_over_where_a_block_is_singular(monkeypatch):
    """Closed and still all the same."""
    monkeypatch.setattr(forward_dynamics, "_LEAST_COORDINATES_CLOSED", 0)
    sizes = np.ones((1, 1000))

    def singular(model, *_, **__):
        return SimpleNamespace(status=np.ones(1), host={"size": sizes[:, : model.n_rows]})

    monkeypatch.setattr(assembly, "run_closing", singular)
    model = describe_net(1, 2, body=BAR, joint=ls.JointSpherical()).build()
    q = ls.assemble(model, state(model, 6)[0])
    assert np.abs(ls.loop_residual(model, q)).max() < 1e-10
    near, v = project_onto_loops(model, q[None] + 0.0, state(model, 6)[1][None])
    assert np.abs(ls.constraint_jacobian(model, near[0]) @ v[0]).max() < 1e-10 * np.abs(v).max()
