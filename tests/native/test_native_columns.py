"""Native functions on columns and strains against NumPy."""

import numpy as np
import pytest
import warp as wp
from native.native_calls import (
    COUNT,
    HERE,
    MODEL,
    NODES,
    NV,
    SITES,
    WIDTH,
    X,
    blocks,
    changed,
    dense_phi,
    device,
    filled,
    host,
    pair,
    random,
)

from lissom.lie.types import kernel_options, mat3, mat6, vec6
from lissom.model.groups import vec6i, vec7i
from lissom.passes import columns, interval
from lissom.passes.columns import ColumnsStruct, DerivativeSumsStruct, Matrix
from lissom.passes.interval import project_at, strain_at

wp.set_module_options(kernel_options())

Row = wp.array(dtype=wp.float64)


@wp.kernel
def k_put(S: Matrix, x: ColumnsStruct, k: int, A1: mat3, B1: mat3, A2: mat3, B2: mat3, i: int):
    columns.put_columns(x, i, k, A1, B1, A2, B2, S)


@wp.kernel
def k_extend(J: Matrix, x: ColumnsStruct, parent: int, k: int, A1: mat3, B1: mat3, A2: mat3, B2: mat3, i: int):
    columns.extend_path(x, parent, i, k, A1, B1, A2, B2, J)


@pytest.mark.parametrize("k", SITES)
def test_columns_of_a_node(k):
    """put_columns writes M₁ Φ₁ + M₂ Φ₂ on the node's own blocks; extend_path adds the parent's on the path."""
    A1, B1, A2, B2 = random(4, 3, 3)
    Phi = dense_phi(k)
    own = pair(A1, B1) @ Phi[0] + pair(A2, B2) @ Phi[1]
    S = random(COUNT, 6 * NODES * WIDTH)
    (out,) = changed(k_put, [S], X, k, *map(mat3, (A1, B1, A2, B2)))
    touched = np.zeros(WIDTH, bool)
    touched[MODEL.nodes.v_start[k] // 8 * 8 : (MODEL.nodes.v_stop[k] + 7) // 8 * 8] = True
    new, old = out.reshape(NODES, 6, WIDTH), S[HERE].reshape(NODES, 6, WIDTH)
    assert np.allclose(new[k][:, touched], own[:, touched], atol=1e-15)
    new[k][:, touched] = old[k][:, touched]
    assert np.array_equal(new, old)
    for parent in (int(MODEL.nodes.parent[k]), -1):
        (out,) = changed(k_extend, [S], X, parent, k, *map(mat3, (A1, B1, A2, B2)))
        path = blocks("path_start", "path_range", k)
        before = old[parent] if parent >= 0 else np.zeros((6, WIDTH))
        assert np.allclose(out.reshape(NODES, 6, WIDTH)[k][:, path], (before + own)[:, path], atol=1e-15)


@wp.kernel
def k_clear_sums(V: Matrix, x: ColumnsStruct, i: int):
    columns.clear_sums(x, i, V)


@wp.kernel
def k_clear_rows(M: Matrix, nv: int, width: int, i: int):
    columns.clear_rows(nv, width, i, M)


@wp.kernel
def k_transposed(out: Matrix, A: Matrix, B: Matrix, nv: int, width: int, i: int):
    columns.add_transposed(nv, width, i, A, B, out)


def test_clearing_and_transposing():
    """clear_sums, clear_rows and add_transposed."""
    assert not changed(k_clear_sums, [random(COUNT, 6 * X.n_slots * WIDTH)], X)[0].any()
    assert not changed(k_clear_rows, [random(COUNT, NV * WIDTH)], NV, WIDTH)[0].any()
    A, B = (random(COUNT, NV * WIDTH) for _ in range(2))
    (out,) = changed(k_transposed, [np.zeros_like(A)], device(A), device(B), NV, WIDTH)
    square = [y.reshape(NV, WIDTH)[:, :NV] for y in (out, A[HERE], B[HERE])]
    assert np.array_equal(square[0], square[1] + square[2].T)


@wp.kernel
def k_product(V: Matrix, S: Matrix, x: ColumnsStruct, M: mat6, first: int, stop: int, k: int, i: int):
    columns.add_product(x, M, first, stop, i, k, S, V)


@wp.kernel
def k_fold(out: Matrix, S: Matrix, V: Matrix, x: ColumnsStruct, first: int, stop: int, k: int, i: int):
    columns.fold_rows(x, x.sum_start, x.sum_range, first, stop, i, k, S, V, out)


@wp.kernel
def k_pass(V: Matrix, x: ColumnsStruct, parent: int, k: int, i: int):
    columns.pass_to_parent(x, x.sum_start, x.sum_range, parent, i, k, V)


@pytest.mark.parametrize("k", SITES)
def test_running_sums(k):
    """add_product, fold_rows and pass_to_parent against products of whole matrices."""
    M, slot = random(6, 6), host("slot")
    S, V, out = random(COUNT, 6 * NODES * WIDTH), random(COUNT, 6 * X.n_slots * WIDTH), random(COUNT, NV * WIDTH)
    first, stop = int(MODEL.nodes.v_start[k]), int(MODEL.nodes.v_stop[k])
    S_k, V_k = S[HERE].reshape(NODES, 6, WIDTH)[k], V[HERE].reshape(-1, 6, WIDTH)
    (new,) = changed(k_product, [V], device(S), X, mat6(M), first, stop, k)
    own = np.arange(first // 8 * 8, (stop + 7) // 8 * 8)
    want = V_k.copy()
    want[slot[k]][:, own] += (M @ S_k)[:, own]
    assert np.allclose(new.reshape(want.shape), want, atol=1e-14)
    (new,) = changed(k_fold, [out], device(S), device(V), X, first, stop, k)
    want, reach = out[HERE].reshape(NV, WIDTH).copy(), blocks("sum_start", "sum_range", k)
    want[first:stop, reach] += (S_k.T @ V_k[slot[k]])[first:stop][:, reach]
    assert np.allclose(new.reshape(want.shape), want, atol=1e-14)
    parent = int(MODEL.nodes.parent[k])
    (new,) = changed(k_pass, [V], X, parent, k)
    want = V_k.copy()
    if parent >= 0 and slot[parent] != slot[k]:
        want[slot[parent]][:, reach] += V_k[slot[k]][:, reach]
    assert np.allclose(new.reshape(want.shape), want, atol=1e-15)


@wp.kernel
def k_derivatives(sums: DerivativeSumsStruct, x: ColumnsStruct, k: int, M: mat6, N: mat6, H: mat6, i: int):
    columns.add_derivative_products(x, x.path_start, x.path_range, i, k, M, N, H, sums)


@wp.kernel
def k_fold_derivatives(
    da: Matrix, dv: Matrix, dq: Matrix, sums: DerivativeSumsStruct, x: ColumnsStruct, first: int, stop: int, k: int,
    i: int,
):  # fmt: skip
    columns.fold_derivatives(x, x.sum_start, x.sum_range, first, stop, i, k, sums, da, dv, dq)


@wp.kernel
def k_weighted(
    W: Matrix, J_P: Matrix, J_R: Matrix, J: Matrix, x: ColumnsStruct, k: int, M: mat6, N: mat6, H: mat6, i: int
):
    columns.add_weighted_products(x, x.path_start, x.path_range, i, k, M, N, H, J_P, J_R, J, W)


@wp.kernel
def k_cross(W: Matrix, J: Matrix, x: ColumnsStruct, to: int, from_: int, M: mat6, i: int):
    columns.add_cross_product(x, i, to, from_, M, J, W)


@wp.kernel
def k_row(out: Matrix, J: Matrix, J_R: Matrix, x: ColumnsStruct, k: int, number: int, y: vec6, z: vec6, i: int):
    columns.add_to_row(x, i, k, number, y, z, J, J_R, out)


@pytest.mark.parametrize("k", SITES)
def test_rows_of_three_matrices(k):
    """fold_derivatives."""
    S, out = random(COUNT, 6 * NODES * WIDTH), [random(COUNT, NV * WIDTH) for _ in range(3)]
    W, slot = [random(COUNT, 6 * X.n_slots * WIDTH) for _ in range(3)], host("slot")
    first, stop = int(MODEL.nodes.v_start[k]), int(MODEL.nodes.v_stop[k])
    S_k, reach = S[HERE].reshape(NODES, 6, WIDTH)[k], blocks("sum_start", "sum_range", k)
    sums = filled(DerivativeSumsStruct(), dict(zip(("S", "W_a", "W_v", "W_q"), map(device, (S, *W)))))
    for new, old, w in zip(changed(k_fold_derivatives, out, sums, X, first, stop, k), out, W):
        want = old[HERE].reshape(NV, WIDTH).copy()
        want[first:stop, reach] += (S_k.T @ w[HERE].reshape(-1, 6, WIDTH)[slot[k]])[first:stop][:, reach]
        assert np.allclose(new.reshape(want.shape), want, atol=1e-14)


@pytest.mark.parametrize("k", SITES)
def test_a_row_along_a_path(k):
    """add_to_row."""
    path, y, z = blocks("path_start", "path_range", k), *random(2, 6)
    J, J_R, rows = random(COUNT, 6 * NODES * WIDTH), random(COUNT, 6 * NODES * WIDTH), random(COUNT, 4 * WIDTH)
    (out,) = changed(k_row, [rows], device(J), device(J_R), X, k, 2, vec6(y), vec6(z))
    want = rows[HERE].reshape(4, WIDTH).copy()
    j, r = (x[HERE].reshape(NODES, 6, WIDTH)[k] for x in (J, J_R))
    want[2, path] += (y @ j + z @ r)[path]
    assert np.allclose(out.reshape(want.shape), want, atol=1e-14)


@pytest.mark.parametrize("k", SITES)
def test_products_along_paths(k):
    """add_derivative_products, add_weighted_products and add_cross_product."""
    slot, path = host("slot"), blocks("path_start", "path_range", k)
    M, N, H = random(3, 6, 6)
    J, J_R, J_Q, J_E = (random(COUNT, 6 * NODES * WIDTH) for _ in range(4))
    W = [random(COUNT, 6 * X.n_slots * WIDTH) for _ in range(3)]
    j, r, q, e = (y[HERE].reshape(NODES, 6, WIDTH)[k] for y in (J, J_R, J_Q, J_E))
    sums = filled(DerivativeSumsStruct(), {"J": device(J), "J_E": device(J_E), "J_R": device(J_R), "J_Q": device(J_Q)})
    new = changed(k_derivatives, dict(zip(("W_a", "W_v", "W_q"), W)), X, k, *map(mat6, (M, N, H)), struct=sums)
    added = (M @ j, M @ e + N @ j, M @ q + N @ r + H @ j)
    for out, old, more in zip(new, W, added):
        want = old[HERE].reshape(-1, 6, WIDTH).copy()
        want[slot[k]][:, path] += more[:, path]
        assert np.allclose(out.reshape(want.shape), want, atol=1e-14)
    (out,) = changed(k_weighted, W[:1], *map(device, (J_Q, J_R, J)), X, k, *map(mat6, (M, N, H)))
    want = W[0][HERE].reshape(-1, 6, WIDTH).copy()
    want[slot[k]][:, path] += (M @ q + N @ r + H @ j)[:, path]
    assert np.allclose(out.reshape(want.shape), want, atol=1e-14)
    (out,) = changed(k_cross, W[:1], device(J), X, SITES[0], k, mat6(M))
    want = W[0][HERE].reshape(-1, 6, WIDTH).copy()
    want[slot[SITES[0]]][:, path] += (M @ j)[:, path]
    assert np.allclose(out.reshape(want.shape), want, atol=1e-14)


@wp.kernel
def k_point(out: Matrix, x: ColumnsStruct, site: int, H: mat6, i: int):
    columns.add_point_block(x, i, site, H, out)


def test_local_blocks():
    """add_point_block at a strain point of a tendon: Φᵀ H Φ."""
    out, H = random(COUNT, NV * WIDTH), random(6, 6)
    site = MODEL.n_nodes + 1
    Phi = dense_phi(site)[0]
    assert Phi.any()
    (new,) = changed(k_point, [out], X, site, mat6(H))
    assert np.allclose(new.reshape(NV, WIDTH), out[HERE].reshape(NV, WIDTH) + (Phi.T @ H @ Phi)[:NV], atol=1e-14)


@wp.kernel
def k_strains(out: Matrix, q: Matrix, v: Matrix, a: Matrix, phi1: Row, phi2: Row, start: vec7i, at: vec6i,
              shift: int, i: int):  # fmt: skip
    sums = interval.strain_sums(phi1, phi2, start, at, i, shift, q, v, a)
    for r in range(6):
        for c in range(6):
            out[i, 6 * r + c] = sums[r, c]


@wp.kernel
def k_project(tau: Matrix, phi1: Row, phi2: Row, start: vec7i, at: vec6i, y1: vec6, y2: vec6, i: int):
    interval.project_strains(phi1, phi2, start, at, i, y1, y2, tau)


@wp.kernel
def k_strain_at(out: Matrix, q: Matrix, phi: Row, start: vec7i, at: vec6i, shift: int, i: int):
    x = strain_at(phi, start, at, i, shift, q)
    for c in range(6):
        out[i, c] = x[c]


@wp.kernel
def k_project_at(tau: Matrix, phi: Row, start: vec7i, at: vec6i, shift: int, y: vec6, i: int):
    project_at(phi, start, at, i, shift, y, tau)


@pytest.mark.parametrize("k", SITES[:2])
def test_strains(k):
    """strain_sums and project_strains of an interval, and those of a tendon's strain point."""
    q, v, a, tau = random(COUNT, MODEL.nq), *(random(COUNT, NV) for _ in range(3))
    start, at, shift = vec7i(MODEL.nodes.run_start[k]), vec6i(MODEL.nodes.run_v[k]), int(MODEL.nodes.q_shift[k])
    phi = device(MODEL.runs.phi1), device(MODEL.runs.phi2)
    (out,) = changed(k_strains, [np.zeros((COUNT, 36))], *map(device, (q, v, a)), *phi, start, at, shift)
    Phi, here = dense_phi(k)[:, :, :NV], np.zeros((3, NV))
    own = np.arange(MODEL.nodes.v_start[k], MODEL.nodes.v_stop[k])
    here[0][own], here[1], here[2] = q[HERE][own + shift], v[HERE], a[HERE]
    want = [Phi[p] @ row for row in here for p in (0, 1)]
    assert np.allclose(out.reshape(6, 6), want, atol=1e-14)
    y = random(2, 6)
    (out,) = changed(k_project, [tau], *phi, start, at, *map(vec6, y))
    assert np.allclose(out, tau[HERE] + Phi[0].T @ y[0] + Phi[1].T @ y[1], atol=1e-14)
    start, at, shift = (getattr(MODEL.points, name)[0] for name in ("run_start", "run_v", "q_shift"))
    Phi = dense_phi(MODEL.n_nodes)[0][:, :NV]
    own = np.flatnonzero(Phi.any(axis=0))
    arguments = device(MODEL.points.phi), vec7i(start), vec6i(at)
    (out,) = changed(k_strain_at, [np.zeros((COUNT, 6))], device(q), *arguments, int(shift))
    assert np.allclose(out, Phi[:, own] @ q[HERE][own + int(shift)], atol=1e-14)
    (out,) = changed(k_project_at, [tau], *arguments, 0, vec6(y[0]))
    assert np.allclose(out, tau[HERE] + Phi.T @ y[0], atol=1e-14)
    rows = random(COUNT, 3 * NV)
    (out,) = changed(k_project_at, [rows], *arguments, 2 * NV, vec6(y[0]))
    assert np.allclose(out, rows[HERE] + np.concatenate([np.zeros(2 * NV), Phi.T @ y[0]]), atol=1e-14)
