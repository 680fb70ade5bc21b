"""Columns and local terms of intervals, eight nodes at once and one alone, against products of 6x6 matrices."""

import numpy as np
import pytest
import warp as wp
from native.native_calls import COUNT, HERE, MODEL, NODES, NV, WIDTH, X, blocks, dense_phi, device, filled, random

import lissom as ls
from lissom.launch.buffers import Buffers
from lissom.lie.types import kernel_options, vec3, vec6
from lissom.model.tables import TablesStruct
from lissom.passes import interval as intervals
from lissom.passes import traversal
from lissom.passes.columns import ColumnsStruct, DerivativeSumsStruct, Matrix, NewtonSumsStruct, newton_point
from lissom.passes.scratch import ScratchStruct
from lissom.robot.joints import MotionKind

wp.set_module_options(kernel_options())

C0, C1 = 3.0, -0.7
DERIVATIVE_SUMS = ("S", "J", "J_R", "J_Q", "J_E")
EXP = MODEL.nodes.kind[:NODES] == MotionKind.EXP.value
RUNS = [k for k in range(NODES) if EXP[k] and (k == 0 or not EXP[k - 1])]  # where runs of intervals start


@wp.kernel
def k_motion(t: TablesStruct, s: ScratchStruct, q: Matrix, v: Matrix, a: Matrix, F: wp.array(dtype=vec6), i: int):
    s.status[i] = 0
    for k in range(t.n_dynamic):
        traversal.outward_motion(t, s, i, k, q, v, a, vec6())
        s.node[i, k].F = F[k]


@wp.kernel
def k_stop(out: wp.array(dtype=wp.int32), t: TablesStruct, k: int):
    out[0] = intervals.intervals_stop(t, k, t.n_dynamic)


@wp.kernel
def k_derivatives(
    sums: DerivativeSumsStruct, out: Matrix, t: TablesStruct, s: ScratchStruct, x: ColumnsStruct, first: int, stop: int,
    before: int, v: Matrix, a: Matrix, asked: int, i: int,
):  # fmt: skip
    intervals.derivative_columns(t, s, x, i, first, stop, before, v, a, sums, asked, out)


@wp.kernel
def k_newton(
    sums: NewtonSumsStruct, out: Matrix, t: TablesStruct, s: ScratchStruct, x: ColumnsStruct, first: int, stop: int,
    before: int, v: Matrix, a: Matrix, alone: int, i: int,
):  # fmt: skip
    point = newton_point(v, a, v, wp.float64(C0), wp.float64(C1), vec3())
    if alone != 0:
        intervals.newton_columns_of_node(t, s, x, x, i, first, before, point, sums, out)
    else:
        intervals.newton_columns(t, s, x, i, first, stop, before, point, sums, out)


def launch(kernel, sums, *given):
    """Launch a kernel with the struct of columns that it takes, filled with arrays by name."""
    struct = DerivativeSumsStruct() if kernel is k_derivatives else NewtonSumsStruct()
    wp.launch(kernel, 1, inputs=[filled(struct, sums), *given], device="cpu")


@pytest.fixture(scope="module")
def moved():
    """A workspace with a motion in it, v and a, and wrenches of the nodes."""
    w = Buffers(MODEL, COUNT, {})
    q = np.array([ls.integrate(MODEL, MODEL.neutral(), turn) for turn in 0.3 * random(COUNT, NV)])
    v, a, F = device(random(COUNT, NV)), device(random(COUNT, NV)), random(NODES, 6)
    wp.launch(k_motion, 1, inputs=[w.tables, w.scratch, device(q), v, a, wp.array(F, dtype=vec6), HERE], device="cpu")
    return w, v, a, F


def adbar(f):
    """adbar_f: adbar_f x = −ad_xᵀ f."""
    return np.array([-ls.lie.se3_ad(e).T @ f for e in np.eye(6)]).T


def expected(w, v, a, F, k):
    """S, R, Q of node k and its local term, dense, by (1)-(5) of interval."""
    state, table = w.scratch.node.numpy()[HERE, k], MODEL.nodes
    Omega, eta, acc, xi1, xi2 = (np.asarray(state[name]) for name in ("Omega", "eta", "acc", "xi1", "xi2"))
    half, kappa = 0.5 * table.h[k], table.kappa[k]
    g = np.eye(4)
    g[:3, :3], g[:3, 3] = state["R"], state["p"]
    Phi = dense_phi(k)[:, :, :NV]
    (d1, d2), (e1, e2) = Phi @ v.numpy()[HERE], Phi @ a.numpy()[HERE]
    ad, Ad = ls.lie.se3_ad, ls.lie.se3_Ad(g)

    def Z(own, one, two):
        return (own * half * np.eye(6) - kappa * ad(two)) @ Phi[0] + (own * half * np.eye(6) + kappa * ad(one)) @ Phi[1]

    Z0, Z1, Z2 = Z(1.0, xi1, xi2), Z(0.0, d1, d2), Z(0.0, e1, e2)
    rate, second = Z0 @ v.numpy()[HERE], Z0 @ a.numpy()[HERE] + Z1 @ v.numpy()[HERE]
    D0, once = Ad @ ls.lie.se3_tangent(Omega), Ad @ ls.lie.se3_tangent_dot(Omega, rate)
    D1 = ad(eta) @ D0 + once
    D2 = ad(acc) @ D0 + ad(eta) @ (D1 + once) + Ad @ ls.lie.se3_tangent_ddot(Omega, rate, second)
    f = Ad.T @ F[k]
    y = ls.lie.se3_tangent(Omega).T @ f
    local = Z0.T @ ls.lie.se3_tangent_transpose_derivative(Omega, f) @ Z0
    local += kappa * (Phi[0].T @ adbar(y) @ Phi[1] - Phi[1].T @ adbar(y) @ Phi[0])
    return D0 @ Z0, D1 @ Z0 + D0 @ Z1, D2 @ Z0 + 2.0 * D1 @ Z1 + D0 @ Z2, local


def compare(new, old, before, own, k):
    """Whether a path sum is that before the node and its own columns, on its path."""
    path = blocks("path_start", "path_range", k)
    path = path[path < NV]
    base = new[before] if before >= 0 else 0.0 * old
    assert np.allclose(new[k][:, path], (base[:, :NV] + own)[:, path], rtol=1e-12, atol=1e-12)


def test_a_call_reaches_eight_intervals_in_a_row():
    """intervals_stop ends at a node of another kind, after eight, or at the last."""
    w, out = Buffers(MODEL, COUNT, {}), device(np.zeros(1), wp.int32)
    for k in range(NODES):
        wp.launch(k_stop, 1, inputs=[out, w.tables, k], device="cpu")
        run = next((e for e in range(k, NODES) if not EXP[e]), NODES) - k
        assert out.numpy()[0] == k + min(run, 8)


@pytest.mark.parametrize("first", RUNS)
@pytest.mark.parametrize("way", ["derivatives", "newton", "one"])
def test_columns_of_intervals(moved, first, way):
    """S, path sums and local terms are those of 6x6 matrices, of all nodes of a run and of no other."""
    w, v, a, F = moved
    stop = next((k for k in range(first, NODES) if not EXP[k]), NODES)
    stop = first + 1 if way == "one" else min(stop, first + 8)
    before = int(MODEL.nodes.parent[first])
    names = DERIVATIVE_SUMS if way == "derivatives" else ("S", "J", "J_P", "J_R")
    start = [*random(len(names), COUNT, 6 * NODES * WIDTH), random(COUNT, NV * WIDTH)]
    made = [device(x) for x in start]
    kernel, last = (k_derivatives, 1) if way == "derivatives" else (k_newton, int(way == "one"))
    launch(kernel, dict(zip(names, made)), made[-1], w.tables, w.scratch, X, first, stop, before, v, a, last, HERE)
    new = [x.numpy()[HERE].reshape(-1, WIDTH) for x in made]
    old = [x[HERE].reshape(-1, WIDTH) for x in start]
    *columns, out = [x.reshape(NODES, 6, WIDTH) for x in new[:-1]] + [new[-1]]
    others = [k for k in range(NODES) if not first <= k < stop]
    for x, y in zip(columns, old):
        assert np.array_equal(x[others], y.reshape(NODES, 6, WIDTH)[others])
    local = old[-1][:, :NV].copy()
    for k in range(first, stop):
        S, R, Q, own_local = expected(w, v, a, F, k)
        P, R_c = (Q, R) if way == "derivatives" else (Q + 2.0 * C1 * R + C0 * S, R + C1 * S)
        own = slice(MODEL.nodes.v_start[k], MODEL.nodes.v_stop[k])
        assert np.allclose(columns[0][k][:, own], S[:, own], rtol=1e-12, atol=1e-12)
        wanted = (S, R_c, P, 2.0 * R) if way == "derivatives" else (S, P, R_c)
        below = before if k == first else int(MODEL.nodes.parent[k])
        for x, own_columns in zip(columns[1:], wanted):
            compare(x, x[k], below, own_columns, k)
        local += own_local
    assert np.allclose(out[:, :NV], local, rtol=1e-12, atol=1e-12)


def test_no_local_term_unless_it_is_asked_for(moved):
    """derivative_columns leaves the matrix of local terms alone where the columns alone count."""
    w, v, a, _ = moved
    made = {name: device(random(COUNT, 6 * NODES * WIDTH)) for name in DERIVATIVE_SUMS}
    out = random(COUNT, NV * WIDTH)
    put = device(out)
    launch(k_derivatives, made, put, w.tables, w.scratch, X, RUNS[0], RUNS[0] + 1, -1, v, a, 0, HERE)
    assert np.array_equal(put.numpy(), out)
