"""Each native function against NumPy, on the tables of a robot with a branch, rods and a spherical joint."""

import ast

import numpy as np
import pytest
import warp as wp
from house.sources import package_files, tree

import lissom as ls
from lissom.forces.elastic_tendons import add_outer_product
from lissom.forces.elasticity import add_weighted_elastic_rows, elastic_rows
from lissom.forces.tendons import project_at, strain_at
from lissom.lie.types import kernel_options, mat3, mat6, vec6
from lissom.model.tables import device_tables, vec6i, vec7i
from lissom.sweep import column_products as products
from lissom.sweep import columns, linear_solve, traversal
from lissom.sweep.column_tables import Columns, Matrix, column_tables
from lissom.systems.bordered import choose_rows, put_border, put_constrained
from lissom.systems.loops import add_covector
from lissom.systems.residual import subtract_inputs

wp.set_module_options(kernel_options())

Ints = wp.array2d(dtype=wp.int32)
Row = wp.array(dtype=wp.float64)
I = 1  # the instance that is looked at; the others must stay as they are
COUNT = 3


def robot():
    """A hinge, a rod with five strains, a spherical joint on it and a second rod that branches off."""
    made = ls.Robot("branched")
    material = ls.Material(young=1e6, density=1e3, viscosity=1e3)
    basis = ls.BasisLegendre(torsion=1, bending_y=3, bending_z=2, elongation=0, shear_y=1)
    rod = ls.Rod(0.4, ls.SectionCircle(0.02), basis, material)
    made.add_link("one", rod, ls.JointRevolute(stiffness=2.0, damping=0.1))
    made.add_link("two", ls.RigidBody.box(0.1, 0.1, 0.1, density=500), ls.JointSpherical(), parent="one")
    made.add_link("three", rod, ls.JointUniversal(stiffness=1.0, rest=(0.1, 0.2)), parent="one", at=0.5)
    made.add_tendon("tendon", "one", (0.0, 0.01))
    return made.build()


MODEL = robot()
X = column_tables(MODEL)
TABLES = device_tables(MODEL)
WIDTH, NV, NODES = X.width, MODEL.nv, MODEL.n_dynamic
RNG = np.random.default_rng(3)


def random(*shape):
    """Random numbers."""
    return RNG.uniform(-1.0, 1.0, shape)


def device(array, dtype=wp.float64):
    """A device array."""
    return wp.array(array, dtype=dtype, device="cpu")


def host(name):
    """A table of Columns."""
    return getattr(X, name).numpy()


def blocks(start, ranges, k):
    """Columns on the stretches listed for node k."""
    s, r = host(start), host(ranges)
    listed = [np.arange(r[e], r[e + 1]) for e in range(s[k], s[k + 1], 2)]
    return np.concatenate([np.zeros(0, int), *listed])


def dense_phi(site):
    """Φ at the two points of a site, (2, 6, width), from its rows."""
    Phi = np.zeros((2, 6, WIDTH))
    for e in range(host("row_start")[site], host("row_start")[site + 1]):
        at = host("row_component")[e], host("row_v")[e]
        Phi[(0, *at)], Phi[(1, *at)] = host("row_phi1")[e], host("row_phi2")[e]
    return Phi


def pair(A, B):
    """[[A, 0], [B, A]]."""
    return np.block([[A, np.zeros((3, 3))], [B, A]])


def changed(kernel, arrays, *arguments, first=0):
    """What a kernel leaves in its first arrays, having run for instance I alone."""
    made = [device(a, wp.int32 if a.dtype.kind == "i" else wp.float64) for a in arrays]
    wp.launch(kernel, dim=1, inputs=[*made, *arguments, I], device="cpu")
    out = [array.numpy() for array in made]
    for new, old in zip(out, arrays):
        others = [k for k in range(COUNT) if k != I]
        assert np.array_equal(new[others], old[others]), "an instance that was not asked for has changed"
    return [array[I] for array in out]


NODE = next(k for k in range(NODES) if MODEL.node_v_stop[k] - MODEL.node_v_start[k] > 8)  # an interval of a rod
LATE = max(k for k in range(NODES) if MODEL.node_v_stop[k] - MODEL.node_v_start[k] > 8)
BALL = next(k for k in range(NODES) if MODEL.node_kind[k] != 0)
SITES = [NODE, LATE, BALL]


@wp.kernel
def k_put(S: Matrix, x: Columns, k: int, A1: mat3, B1: mat3, A2: mat3, B2: mat3, i: int):
    columns.put_columns(x, i, k, A1, B1, A2, B2, S)


@wp.kernel
def k_extend(J: Matrix, x: Columns, parent: int, k: int, A1: mat3, B1: mat3, A2: mat3, B2: mat3, i: int):
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
    touched[MODEL.node_v_start[k] // 8 * 8 : (MODEL.node_v_stop[k] + 7) // 8 * 8] = True
    new, old = out.reshape(NODES, 6, WIDTH), S[I].reshape(NODES, 6, WIDTH)
    assert np.allclose(new[k][:, touched], own[:, touched], atol=1e-15)
    new[k][:, touched] = old[k][:, touched]
    assert np.array_equal(new, old)
    for parent in (int(MODEL.node_parent[k]), -1):
        (out,) = changed(k_extend, [S], X, parent, k, *map(mat3, (A1, B1, A2, B2)))
        path = blocks("path_start", "path_range", k)
        before = old[parent] if parent >= 0 else np.zeros((6, WIDTH))
        assert np.allclose(out.reshape(NODES, 6, WIDTH)[k][:, path], (before + own)[:, path], atol=1e-15)


@wp.kernel
def k_clear_sums(V: Matrix, x: Columns, i: int):
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
    square = [y.reshape(NV, WIDTH)[:, :NV] for y in (out, A[I], B[I])]
    assert np.array_equal(square[0], square[1] + square[2].T)


@wp.kernel
def k_product(V: Matrix, S: Matrix, x: Columns, M: mat6, first: int, stop: int, k: int, i: int):
    columns.add_product(x, M, first, stop, i, k, S, V)


@wp.kernel
def k_fold(out: Matrix, S: Matrix, V: Matrix, x: Columns, first: int, stop: int, k: int, i: int):
    columns.fold_rows(x, x.reach_start, x.reach_range, first, stop, i, k, S, V, out)


@wp.kernel
def k_pass(V: Matrix, x: Columns, parent: int, k: int, i: int):
    columns.pass_to_parent(x, x.reach_start, x.reach_range, parent, i, k, V)


@pytest.mark.parametrize("k", SITES)
def test_running_sums(k):
    """add_product, fold_rows and pass_to_parent against products of whole matrices."""
    M, slot = random(6, 6), host("slot")
    S, V, out = random(COUNT, 6 * NODES * WIDTH), random(COUNT, 6 * X.n_slots * WIDTH), random(COUNT, NV * WIDTH)
    first, stop = int(MODEL.node_v_start[k]), int(MODEL.node_v_stop[k])
    S_k, V_k = S[I].reshape(NODES, 6, WIDTH)[k], V[I].reshape(-1, 6, WIDTH)
    (new,) = changed(k_product, [V], device(S), X, mat6(M), first, stop, k)
    own = np.arange(first // 8 * 8, (stop + 7) // 8 * 8)
    want = V_k.copy()
    want[slot[k]][:, own] += (M @ S_k)[:, own]
    assert np.allclose(new.reshape(want.shape), want, atol=1e-14)
    (new,) = changed(k_fold, [out], device(S), device(V), X, first, stop, k)
    want, reach = out[I].reshape(NV, WIDTH).copy(), blocks("reach_start", "reach_range", k)
    want[first:stop, reach] += (S_k.T @ V_k[slot[k]])[first:stop][:, reach]
    assert np.allclose(new.reshape(want.shape), want, atol=1e-14)
    parent = int(MODEL.node_parent[k])
    (new,) = changed(k_pass, [V], X, parent, k)
    want = V_k.copy()
    if parent >= 0 and slot[parent] != slot[k]:
        want[slot[parent]][:, reach] += V_k[slot[k]][:, reach]
    assert np.allclose(new.reshape(want.shape), want, atol=1e-15)


@wp.kernel
def k_newton(
    W_a: Matrix, W_v: Matrix, W_q: Matrix, J: Matrix, J_R: Matrix, J_Q: Matrix, J_E: Matrix,
    x: Columns, k: int, M: mat6, N: mat6, H: mat6, i: int,
):  # fmt: skip
    products.add_newton_products(x, i, k, M, N, H, J, J_R, J_Q, J_E, W_a, W_v, W_q)


@wp.kernel
def k_weighted(W: Matrix, J_P: Matrix, J_R: Matrix, J: Matrix, x: Columns, k: int, M: mat6, N: mat6, H: mat6, i: int):
    products.add_weighted_products(x, i, k, M, N, H, J_P, J_R, J, W)


@wp.kernel
def k_cross(W: Matrix, J: Matrix, x: Columns, to: int, from_: int, M: mat6, i: int):
    products.add_cross_product(x, i, to, from_, M, J, W)


@pytest.mark.parametrize("k", SITES)
def test_products_along_paths(k):
    """add_newton_products, add_weighted_products and add_cross_product."""
    slot, path = host("slot"), blocks("path_start", "path_range", k)
    M, N, H = random(3, 6, 6)
    J, J_R, J_Q, J_E = (random(COUNT, 6 * NODES * WIDTH) for _ in range(4))
    W = [random(COUNT, 6 * X.n_slots * WIDTH) for _ in range(3)]
    j, r, q, e = (y[I].reshape(NODES, 6, WIDTH)[k] for y in (J, J_R, J_Q, J_E))
    new = changed(k_newton, W, *map(device, (J, J_R, J_Q, J_E)), X, k, *map(mat6, (M, N, H)))
    added = (M @ j, M @ e + N @ j, M @ q + N @ r + H @ j)
    for out, old, more in zip(new, W, added):
        want = old[I].reshape(-1, 6, WIDTH).copy()
        want[slot[k]][:, path] += more[:, path]
        assert np.allclose(out.reshape(want.shape), want, atol=1e-14)
    (out,) = changed(k_weighted, W[:1], *map(device, (J_Q, J_R, J)), X, k, *map(mat6, (M, N, H)))
    want = W[0][I].reshape(-1, 6, WIDTH).copy()
    want[slot[k]][:, path] += added[2][:, path]
    assert np.allclose(out.reshape(want.shape), want, atol=1e-14)
    (out,) = changed(k_cross, W[:1], device(J), X, SITES[0], k, mat6(M))
    want = W[0][I].reshape(-1, 6, WIDTH).copy()
    want[slot[SITES[0]]][:, path] += (M @ j)[:, path]
    assert np.allclose(out.reshape(want.shape), want, atol=1e-14)


@wp.kernel
def k_local(out: Matrix, x: Columns, site: int, H11: mat6, H12: mat6, H21: mat6, H22: mat6, i: int):
    products.add_local_block(x, i, site, H11, H12, H21, H22, out)


@wp.kernel
def k_point(out: Matrix, x: Columns, site: int, H: mat6, i: int):
    products.add_point_block(x, i, site, H, out)


def test_local_blocks():
    """add_local_block at a node and add_point_block at a strain point of a tendon: Φᵀ H Φ."""
    out, H = random(COUNT, NV * WIDTH), random(2, 2, 6, 6)
    for site in SITES[:2]:
        Phi = dense_phi(site)
        (new,) = changed(k_local, [out], X, site, *map(mat6, H.reshape(4, 6, 6)))
        want = out[I].reshape(NV, WIDTH) + sum(Phi[a].T @ H[a, b] @ Phi[b] for a in (0, 1) for b in (0, 1))[:NV]
        assert np.allclose(new.reshape(NV, WIDTH), want, atol=1e-14)
    site = MODEL.n_nodes + 1
    Phi = dense_phi(site)[0]
    assert Phi.any()
    (new,) = changed(k_point, [out], X, site, mat6(H[0, 0]))
    assert np.allclose(new.reshape(NV, WIDTH), out[I].reshape(NV, WIDTH) + (Phi.T @ H[0, 0] @ Phi)[:NV], atol=1e-14)


@wp.kernel
def k_strains(out: Matrix, q: Matrix, v: Matrix, a: Matrix, phi1: Row, phi2: Row, start: vec7i, at: vec6i,
              shift: int, i: int):  # fmt: skip
    sums = traversal.strain_sums(phi1, phi2, start, at, i, shift, q, v, a)
    for r in range(6):
        for c in range(6):
            out[i, 6 * r + c] = sums[r, c]


@wp.kernel
def k_project(tau: Matrix, phi1: Row, phi2: Row, start: vec7i, at: vec6i, y1: vec6, y2: vec6, i: int):
    traversal.project_strains(phi1, phi2, start, at, i, y1, y2, tau)


@wp.kernel
def k_strain_at(out: Matrix, q: Matrix, phi: Row, start: vec7i, at: vec6i, shift: int, i: int):
    x = strain_at(phi, start, at, i, shift, q)
    for c in range(6):
        out[i, c] = x[c]


@wp.kernel
def k_project_at(tau: Matrix, phi: Row, start: vec7i, at: vec6i, y: vec6, i: int):
    project_at(phi, start, at, i, y, tau)


@pytest.mark.parametrize("k", SITES[:2])
def test_strains(k):
    """strain_sums and project_strains of an interval, strain_at and project_at of a tendon's strain point."""
    q, v, a, tau = random(COUNT, MODEL.nq), *(random(COUNT, NV) for _ in range(3))
    start, at, shift = vec7i(MODEL.node_run_start[k]), vec6i(MODEL.node_run_v[k]), int(MODEL.node_q_shift[k])
    phi = device(MODEL.run_phi1), device(MODEL.run_phi2)
    (out,) = changed(k_strains, [np.zeros((COUNT, 36))], *map(device, (q, v, a)), *phi, start, at, shift)
    Phi, here = dense_phi(k)[:, :, :NV], np.zeros((3, NV))
    own = np.arange(MODEL.node_v_start[k], MODEL.node_v_stop[k])
    here[0][own], here[1], here[2] = q[I][own + shift], v[I], a[I]
    want = [Phi[p] @ row for row in here for p in (0, 1)]
    assert np.allclose(out.reshape(6, 6), want, atol=1e-14)
    y = random(2, 6)
    (out,) = changed(k_project, [tau], *phi, start, at, *map(vec6, y))
    assert np.allclose(out, tau[I] + Phi[0].T @ y[0] + Phi[1].T @ y[1], atol=1e-14)
    start, at, shift = (getattr(MODEL, f"point_{name}")[0] for name in ("run_start", "run_v", "q_shift"))
    Phi = dense_phi(MODEL.n_nodes)[0][:, :NV]
    own = np.flatnonzero(Phi.any(axis=0))
    arguments = device(MODEL.point_phi), vec7i(start), vec6i(at)
    (out,) = changed(k_strain_at, [np.zeros((COUNT, 6))], device(q), *arguments, int(shift))
    assert np.allclose(out, Phi[:, own] @ q[I][own + int(shift)], atol=1e-14)
    (out,) = changed(k_project_at, [tau], *arguments, vec6(y[0]))
    assert np.allclose(out, tau[I] + Phi.T @ y[0], atol=1e-14)


@wp.kernel
def k_covector(out: Matrix, S: Matrix, width: int, k: int, first: int, stop: int, y: vec6, at: int, i: int):
    add_covector(width, k, first, stop, i, y, S, at, out)


@wp.kernel
def k_outer(out: Matrix, left: Matrix, right: Matrix, nv: int, width: int, size: wp.float64, i: int):
    add_outer_product(nv, width, i, size, left, right, out)


@wp.kernel
def k_inputs(tau: Matrix, gain: Matrix, u: Matrix, extra: Matrix, nv: int, nu: int, i: int):
    subtract_inputs(nv, nu, i, gain, u, extra, tau)


def test_rows():
    """add_covector, add_outer_product and subtract_inputs."""
    S, y, k = random(COUNT, 6 * NODES * WIDTH), random(6), SITES[1]
    rows = random(COUNT, 4 * WIDTH)
    first, stop = int(MODEL.node_v_start[k]), int(MODEL.node_v_stop[k])
    (out,) = changed(k_covector, [rows], device(S), WIDTH, k, first, stop, vec6(y), 2 * WIDTH)
    want, own = rows[I].reshape(4, WIDTH).copy(), np.arange(first // 8 * 8, (stop + 7) // 8 * 8)
    want[2, own] += y @ S[I].reshape(NODES, 6, WIDTH)[k][:, own]
    assert np.allclose(out.reshape(want.shape), want, atol=1e-15)
    M, left, right = random(COUNT, NV * WIDTH), random(COUNT, NV), random(COUNT, NV)
    (out,) = changed(k_outer, [M], device(left), device(right), NV, WIDTH, wp.float64(0.7))
    want = M[I].reshape(NV, WIDTH).copy()
    want[:, :NV] += 0.7 * np.outer(left[I], right[I])
    assert np.allclose(out.reshape(want.shape), want, atol=1e-15)
    gain, u, extra = random(NV, 4), random(COUNT, 4), random(COUNT, NV)
    (out,) = changed(k_inputs, [left], device(gain), device(u), device(extra), NV, 4)
    assert np.allclose(out, left[I] - gain @ u[I] - extra[I], atol=1e-15)


@wp.kernel
def k_elastic(tau: Matrix, q: Matrix, v: Matrix, start: wp.array(dtype=wp.int32), column: wp.array(dtype=wp.int32),
              K: Row, D: Row, dof_q: wp.array(dtype=wp.int32), rest: Row, nv: int, i: int):  # fmt: skip
    elastic_rows(nv, start, column, K, D, dof_q, rest, i, q, v, tau)


@wp.kernel
def k_weighted_elastic(out: Matrix, start: wp.array(dtype=wp.int32), column: wp.array(dtype=wp.int32),
                       K: Row, D: Row, nv: int, width: int, by_k: wp.float64, by_d: wp.float64, i: int):  # fmt: skip
    add_weighted_elastic_rows(nv, width, start, column, K, D, i, by_k, by_d, out)


def test_elastic_rows():
    """elastic_rows and add_weighted_elastic_rows against K and D themselves."""
    q, v, tau = random(COUNT, MODEL.nq), random(COUNT, NV), random(COUNT, NV)
    names = ("elastic_start", "elastic_column", "elastic_stiffness", "elastic_damping")
    tables = [getattr(TABLES, name) for name in names]
    (out,) = changed(k_elastic, [tau], device(q), device(v), *tables, TABLES.dof_q, TABLES.dof_rest, NV)
    x = np.where(MODEL.dof_q >= 0, q[I][MODEL.dof_q] - MODEL.dof_rest, 0.0)
    want = tau[I] + MODEL.stiffness @ x + MODEL.damping @ v[I]
    assert np.allclose(out, want, rtol=1e-13, atol=1e-13)
    M = random(COUNT, NV * WIDTH)
    (out,) = changed(k_weighted_elastic, [M], *tables, NV, WIDTH, wp.float64(0.3), wp.float64(1.7))
    want = M[I].reshape(NV, WIDTH).copy()
    want[:, :NV] += 0.3 * MODEL.stiffness + 1.7 * MODEL.damping
    assert np.allclose(out.reshape(want.shape), want, rtol=1e-13, atol=1e-13)


@wp.kernel
def k_ldl(A: Matrix, b: Matrix, ended: Ints, n: int, width: int, i: int):
    ended[i, 0] = linear_solve.ldl_solve(n, width, i, A, b)


@wp.kernel
def k_lu(A: Matrix, L: Matrix, pivots: Ints, b: Matrix, ended: Ints, n: int, width: int, i: int):
    ended[i, 0] = linear_solve.lu_factor(n, width, i, A, L, pivots)
    linear_solve.lu_solve(n, width, i, A, L, pivots, b)


@pytest.mark.parametrize("n", [1, 5, 8, 13])
def test_linear_systems(n):
    """ldl_solve, lu_factor and lu_solve, whose pivots need swaps; a matrix without rank is refused."""
    width, b = (n + 7) // 8 * 8, random(COUNT, n)
    A, ended = random(n, n), np.zeros((COUNT, 1), np.int32)
    A[0, 0] = 0.0 if n > 1 else 2.0

    def stored(matrix, rows):
        out = np.zeros((COUNT, rows, width))
        out[:, :n, :n] = matrix
        return out.reshape(COUNT, -1)

    empty = np.zeros((COUNT, n * width)), np.zeros((COUNT, n), np.int32)
    *_, x, code = changed(k_lu, [stored(A, n), *empty, b, ended], n, width)
    assert code[0] == 0 and np.allclose(A @ x, b[I], atol=1e-11)
    positive = A @ A.T + np.eye(n)
    *_, x, code = changed(k_ldl, [stored(positive, n + 1), b, ended], n, width)
    assert code[0] == 0 and np.allclose(positive @ x, b[I], atol=1e-11)
    none = np.zeros((n, n))
    assert changed(k_lu, [stored(none, n), *empty, b, ended], n, width)[-1][0] == 1
    assert changed(k_ldl, [stored(none, n + 1), b, ended], n, width)[-1][0] == 1


@wp.kernel
def k_choose(basis: Matrix, work: Matrix, slot: Ints, kept: Ints, A: Matrix, scale: Row, m: int, width: int, i: int):
    kept[i, 0] = choose_rows(m, width, i, A, scale, basis, work, slot)


@wp.kernel
def k_border(matrix: Matrix, sigma: Matrix, K: Matrix, A: Matrix, A_q: Matrix, scale: Row, slot: Ints, nv: int, m: int,
             narrow: int, width: int, i: int):  # fmt: skip
    sigma[i, 0] = put_border(nv, m, narrow, width, i, K, A, A_q, scale, slot, matrix)


@wp.kernel
def k_constrained(matrix: Matrix, units: Matrix, M: Matrix, A: Matrix, slot: Ints, nv: int, m: int, narrow: int,
                  width: int, i: int):  # fmt: skip
    put_constrained(nv, m, narrow, width, i, M, A, slot, units, matrix)


def test_rows_of_constraints():
    """choose_rows finds a largest set of independent rows; put_border and put_constrained make the bordered systems."""
    nv, m, narrow, width = 6, 4, 8, 16
    A, A_q, K = np.zeros((COUNT, m, narrow)), np.zeros((COUNT, m, narrow)), np.zeros((COUNT, nv, narrow))
    A[..., :nv], A_q[..., :nv], K[..., :nv] = random(COUNT, m, nv), random(COUNT, m, nv), random(COUNT, nv, nv)
    A[:, 2] = 2.0 * A[:, 0] - A[:, 1]
    K[:, range(nv), range(nv)] += 3.0
    scale = np.zeros(narrow)
    scale[:nv] = RNG.uniform(0.5, 2.0, nv)
    flat = [y.reshape(COUNT, -1) for y in (K, A, A_q)]
    none = np.zeros((COUNT, m * narrow)), np.zeros((COUNT, m)), np.zeros((COUNT, m), np.int32)
    ended = np.zeros((COUNT, 1), np.int32)
    basis, _, slot, kept = changed(k_choose, [*none, ended], device(flat[1]), device(scale), m, narrow)
    chosen = np.flatnonzero(slot >= 0)
    assert kept[0] == 3 == len(chosen) == np.linalg.matrix_rank(A[I][chosen])
    assert sorted(slot[chosen]) == [0, 1, 2] and slot[3] >= 0
    Q = basis.reshape(m, narrow)[chosen]
    assert np.allclose(Q @ Q.T, np.eye(3), atol=1e-14)
    number = np.zeros((COUNT, m), np.int32)
    number[:] = slot
    made = np.zeros((COUNT, (nv + m) * width)), np.zeros((COUNT, 1))
    order = [int(np.flatnonzero(slot == k)[0]) for k in range(3)]
    out, sigma = changed(k_border, made, *map(device, flat), device(scale), device(number, wp.int32), nv, m, narrow,
                         width)  # fmt: skip
    diagonal = np.abs(np.diag(K[I])) * scale[:nv] ** 2
    assert sigma[0] == pytest.approx(np.exp(np.log(diagonal).mean()), rel=1e-13)
    rows, moves = A[I][order, :nv], A_q[I][order, :nv]
    want = np.block([[K[I][:, :nv], -sigma[0] * rows.T], [sigma[0] * moves, np.zeros((3, 3))]])
    assert np.allclose(out.reshape(-1, width)[: nv + 3, : nv + 3], want, atol=1e-14)
    made = np.zeros((COUNT, (nv + m) * width)), np.zeros((COUNT, nv + m))
    out, units = changed(k_constrained, made, device(flat[0]), device(flat[1]), device(number, wp.int32), nv, m, narrow,
                         width)  # fmt: skip
    D = np.diag(units[: nv + 3])
    assert np.allclose(np.diag(D)[:nv], 1.0 / np.sqrt(np.diag(K[I])), rtol=1e-14)
    assert np.allclose(np.linalg.norm(D[nv:, nv:] @ rows @ D[:nv, :nv], axis=1), 1.0, rtol=1e-13)
    want = D @ np.block([[K[I][:, :nv], -rows.T], [rows, np.zeros((3, 3))]]) @ D
    assert np.allclose(out.reshape(-1, width)[: nv + 3, : nv + 3], want, atol=1e-13)


def test_every_native_function_is_here():
    """A new native function must join these tests."""
    found = {
        node.name
        for path in package_files().values()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef) and any("func_native" in ast.unparse(d) for d in node.decorator_list)
    }
    from pathlib import Path

    text = Path(__file__).read_text(encoding="utf-8")
    assert found and not [name for name in found if f"{name}(" not in text]
