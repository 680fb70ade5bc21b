"""Native functions on rows, matrices and systems of equations against NumPy."""

import ast
from pathlib import Path

import numpy as np
import pytest
import warp as wp
from house.sources import definitions, package_files, text
from native.native_calls import COUNT, HERE, MODEL, NODES, NV, RNG, SITES, TABLES, WIDTH, changed, device, random

from lissom.forces.elasticity import add_weighted_elastic_rows, changed_elastic_rows, elastic_rows
from lissom.forces.tendons import add_outer_product
from lissom.lie.types import CONTACTS, kernel_options, vec6
from lissom.passes import linear_algebra
from lissom.passes.columns import Matrix
from lissom.passes.deforming import is_body
from lissom.passes.features import (
    has_stored_pose,
    is_exp,
    may_have_couplings,
    may_have_elastic_tendons,
    may_have_loops,
    may_have_stored_poses,
    may_have_straight_tendons,
)
from lissom.passes.mapped import is_mapped
from lissom.robot.joints import MotionKind
from lissom.systems import mass_response
from lissom.systems.bordered import choose_rows, put_border, put_constrained
from lissom.systems.loops import add_covector
from lissom.systems.residual import subtract_inputs

wp.set_module_options(kernel_options())

Ints = wp.array2d(dtype=wp.int32)
Row = wp.array(dtype=wp.float64)


@wp.kernel
def k_covector(out: Matrix, S: Matrix, width: int, k: int, first: int, stop: int, y: vec6, at: int, i: int):
    add_covector(width, k, first, stop, i, y, S, at, out)


@wp.kernel
def k_outer(out: Matrix, left: Matrix, right: Matrix, nv: int, width: int, size: wp.float64, i: int):
    add_outer_product(nv, width, i, size, left, right, out)


@wp.kernel
def k_inputs(tau: Matrix, gain: Matrix, u: Matrix, extra: Matrix, nv: int, nu: int, i: int):
    subtract_inputs(nv, nu, i, gain, u, extra, tau)


@wp.func
def rarities(out: Row, kind: int, has_quaternion: bool):
    """The results of the functions of features, a number each."""
    one = wp.float64(1.0)
    none = wp.float64(0.0)
    out[0] = wp.where(is_exp(kind), one, none)
    out[1] = wp.where(is_mapped(kind), one, none)
    out[2] = wp.where(is_body(kind), one, none)
    out[3] = wp.where(has_stored_pose(has_quaternion), one, none)
    out[4] = wp.where(may_have_stored_poses(), one, none)
    out[5] = wp.where(may_have_loops(), one, none)
    out[6] = wp.where(may_have_couplings(), one, none)
    out[7] = wp.where(may_have_elastic_tendons(), one, none)
    out[8] = wp.where(may_have_straight_tendons(), one, none)


@wp.kernel
def k_rarities(out: Row, kind: int, has_quaternion: bool, i: int):
    rarities(out, kind, has_quaternion)


@wp.kernel(module="unique", module_options=kernel_options((CONTACTS,)))
def k_touching(out: Row, kind: int, has_quaternion: bool, i: int):
    rarities(out, kind, has_quaternion)


@wp.kernel(module="unique", module_options=kernel_options(()))
def k_plain(out: Row, kind: int, has_quaternion: bool, i: int):
    rarities(out, kind, has_quaternion)


def test_further_kinds_of_nodes():
    """is_exp(, is_mapped(, is_body(, has_stored_pose(, may_have_stored_poses(, may_have_loops(, may_have_couplings(,
    may_have_elastic_tendons( and may_have_straight_tendons( of kernels that serve all robots, of those that serve
    robots with contacts and nothing else, and of those that serve plain ones."""
    for kind in MotionKind:
        stored = kind.has_quaternion
        own = [kind.name == "EXP", kind.name == "MAP", kind.name == "BODY", stored]
        touching = [kind.name == "EXP", False, False, stored, True, False, True, False, False]
        answers = (k_rarities, own + [True] * 5), (k_touching, touching), (k_plain, [True] + [False] * 8)
        for kernel, want in answers:
            out = wp.zeros(9, dtype=wp.float64, device="cpu")
            wp.launch(kernel, dim=1, inputs=[out, kind.value, stored, 0], device="cpu")
            assert out.numpy().tolist() == want


def test_rows():
    """add_covector, add_outer_product and subtract_inputs."""
    S, y, k = random(COUNT, 6 * NODES * WIDTH), random(6), SITES[1]
    rows = random(COUNT, 4 * WIDTH)
    first, stop = int(MODEL.nodes.v_start[k]), int(MODEL.nodes.v_stop[k])
    (out,) = changed(k_covector, [rows], device(S), WIDTH, k, first, stop, vec6(y), 2 * WIDTH)
    want, own = rows[HERE].reshape(4, WIDTH).copy(), np.arange(first // 8 * 8, (stop + 7) // 8 * 8)
    want[2, own] += y @ S[HERE].reshape(NODES, 6, WIDTH)[k][:, own]
    assert np.allclose(out.reshape(want.shape), want, atol=1e-15)
    M, left, right = random(COUNT, NV * WIDTH), random(COUNT, NV), random(COUNT, NV)
    (out,) = changed(k_outer, [M], device(left), device(right), NV, WIDTH, wp.float64(0.7))
    want = M[HERE].reshape(NV, WIDTH).copy()
    want[:, :NV] += 0.7 * np.outer(left[HERE], right[HERE])
    assert np.allclose(out.reshape(want.shape), want, atol=1e-15)
    gain, u, extra = random(NV, 4), random(COUNT, 4), random(COUNT, NV)
    (out,) = changed(k_inputs, [left], device(gain), device(u), device(extra), NV, 4)
    assert np.allclose(out, left[HERE] - gain @ u[HERE] - extra[HERE], atol=1e-15)


@wp.kernel
def k_elastic(tau: Matrix, q: Matrix, v: Matrix, start: wp.array(dtype=wp.int32), column: wp.array(dtype=wp.int32),
              K: Row, D: Row, dof_q: wp.array(dtype=wp.int32), rest: Row, nv: int, i: int):  # fmt: skip
    elastic_rows(nv, start, column, K, D, dof_q, rest, i, q, v, tau)


@wp.kernel
def k_changed_elastic(tau: Matrix, dq: Matrix, dv: Matrix, start: wp.array(dtype=wp.int32),
                      column: wp.array(dtype=wp.int32), K: Row, D: Row, nv: int, i: int):  # fmt: skip
    changed_elastic_rows(nv, start, column, K, D, i, dq, dv, tau)


@wp.kernel
def k_weighted_elastic(out: Matrix, start: wp.array(dtype=wp.int32), column: wp.array(dtype=wp.int32),
                       K: Row, D: Row, nv: int, width: int, by_k: wp.float64, by_d: wp.float64, i: int):  # fmt: skip
    add_weighted_elastic_rows(nv, width, start, column, K, D, i, by_k, by_d, out)


def test_elastic_rows():
    """elastic_rows, changed_elastic_rows and add_weighted_elastic_rows against K and D themselves."""
    q, v, tau = random(COUNT, MODEL.nq), random(COUNT, NV), random(COUNT, NV)
    names = ("start", "column", "row_stiffness", "row_damping")
    tables = [getattr(TABLES.elasticity, name) for name in names]
    (out,) = changed(k_elastic, [tau], device(q), device(v), *tables, TABLES.dofs.q, TABLES.dofs.rest, NV)
    x = np.where(MODEL.dofs.q >= 0, q[HERE][MODEL.dofs.q] - MODEL.dofs.rest, 0.0)
    want = tau[HERE] + MODEL.elasticity.stiffness @ x + MODEL.elasticity.damping @ v[HERE]
    assert np.allclose(out, want, rtol=1e-13, atol=1e-13)
    dq = random(COUNT, NV)
    (out,) = changed(k_changed_elastic, [tau], device(dq), device(v), *tables, NV)
    spring = np.where(MODEL.dofs.q >= 0, dq[HERE], 0.0)  # those of spherical and free joints are no rows
    assert np.allclose(
        out,
        tau[HERE] + MODEL.elasticity.stiffness @ spring + MODEL.elasticity.damping @ v[HERE],
        rtol=1e-13,
        atol=1e-13,
    )
    M = random(COUNT, NV * WIDTH)
    (out,) = changed(k_weighted_elastic, [M], *tables, NV, WIDTH, wp.float64(0.3), wp.float64(1.7))
    want = M[HERE].reshape(NV, WIDTH).copy()
    want[:, :NV] += 0.3 * MODEL.elasticity.stiffness + 1.7 * MODEL.elasticity.damping
    assert np.allclose(out.reshape(want.shape), want, rtol=1e-13, atol=1e-13)


@wp.kernel
def k_ldl(A: Matrix, b: Matrix, ended: Ints, n: int, width: int, i: int):
    ended[i, 0] = linear_algebra.ldl_solve(n, width, i, A, b)


@wp.kernel
def k_lu(A: Matrix, L: Matrix, pivots: Ints, b: Matrix, ended: Ints, n: int, width: int, i: int):
    ended[i, 0] = linear_algebra.lu_factor(n, width, i, A, L, pivots)
    linear_algebra.lu_solve(n, width, i, A, L, pivots, b)


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
    assert code[0] == 0 and np.allclose(A @ x, b[HERE], atol=1e-11)
    positive = A @ A.T + np.eye(n)
    *_, x, code = changed(k_ldl, [stored(positive, n + 1), b, ended], n, width)
    assert code[0] == 0 and np.allclose(positive @ x, b[HERE], atol=1e-11)
    none = np.zeros((n, n))
    assert changed(k_lu, [stored(none, n), *empty, b, ended], n, width)[-1][0] == 1
    assert changed(k_ldl, [stored(none, n + 1), b, ended], n, width)[-1][0] == 1


@wp.kernel
def k_tree(A: Matrix, work: Matrix, X: Matrix, ended: Ints, n: int, width: int, columns: int, i: int):
    ended[i, 0] = mass_response.tree_factor(n, width, i, A, work)
    mass_response.tree_response(n, width, columns, i, A, X)


@pytest.mark.parametrize("n", [1, 5, 8, 13])
def test_systems_of_trees(n):
    """tree_factor and tree_response solve for many right sides, also with zeros between branches; a matrix without rank
    is refused."""
    width, columns = (n + 7) // 8 * 8, 16
    right, work, ended = random(COUNT, n * columns), np.zeros((COUNT, n)), np.zeros((COUNT, 1), np.int32)
    branches = np.tril(random(n, n)) * (np.arange(n)[:, None] % 2 == np.arange(n) % 2)
    for lower in (np.tril(random(n, n)), branches):
        matrix = lower.T @ lower + np.eye(n)
        stored = np.zeros((COUNT, n, width))
        stored[:, :, :n] = matrix
        *_, found, code = changed(k_tree, [stored.reshape(COUNT, -1), work, right, ended], n, width, columns)
        wanted = -np.linalg.solve(matrix, right[HERE].reshape(n, columns))
        assert code[0] == 0 and np.allclose(found.reshape(n, columns), wanted, atol=1e-11)
    none = np.zeros((COUNT, n * width))
    assert changed(k_tree, [none, work, right, ended], n, width, columns)[-1][0] == n


@wp.kernel
def k_choose(basis: Matrix, work: Matrix, slot: Ints, kept: Ints, A: Matrix, scale: Row, late: wp.array(dtype=wp.int32),
             m: int, width: int, i: int):  # fmt: skip
    kept[i, 0] = choose_rows(m, width, i, A, scale, late, basis, work, slot)


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
    for first in (0, 1, 2):  # late rows are chosen after the others, and are the dependent ones
        late = np.array([1, 1, 1, 0], np.int32)
        late[first] = 0
        given = device(flat[1]), device(scale), device(late, wp.int32)
        _, _, slot, kept = changed(k_choose, [*none, ended], *given, m, narrow)
        assert kept[0] == 3 and set(slot[[first, 3]]) == {0, 1} and sorted(slot) == [-1, 0, 1, 2]
    given = device(flat[1]), device(scale), device(np.zeros(m, np.int32), wp.int32)
    basis, _, slot, kept = changed(k_choose, [*none, ended], *given, m, narrow)
    chosen = np.flatnonzero(slot >= 0)
    assert kept[0] == 3 == len(chosen) == np.linalg.matrix_rank(A[HERE][chosen])
    assert sorted(slot[chosen]) == [0, 1, 2] and slot[3] >= 0
    Q = basis.reshape(m, narrow)[chosen]
    assert np.allclose(Q @ Q.T, np.eye(3), atol=1e-14)
    number = np.zeros((COUNT, m), np.int32)
    number[:] = slot
    made = np.zeros((COUNT, (nv + m) * width)), np.zeros((COUNT, 1))
    order = [int(np.flatnonzero(slot == k)[0]) for k in range(3)]
    out, sigma = changed(k_border, made, *map(device, flat), device(scale), device(number, wp.int32), nv, m, narrow,
                         width)  # fmt: skip
    diagonal = np.abs(np.diag(K[HERE])) * scale[:nv] ** 2
    assert sigma[0] == pytest.approx(np.exp(np.log(diagonal).mean()), rel=1e-13)
    rows, moves = A[HERE][order, :nv], A_q[HERE][order, :nv]
    want = np.block([[K[HERE][:, :nv], -sigma[0] * rows.T], [sigma[0] * moves, np.zeros((3, 3))]])
    assert np.allclose(out.reshape(-1, width)[: nv + 3, : nv + 3], want, atol=1e-14)
    made = np.zeros((COUNT, (nv + m) * width)), np.zeros((COUNT, nv + m))
    out, units = changed(k_constrained, made, device(flat[0]), device(flat[1]), device(number, wp.int32), nv, m, narrow,
                         width)  # fmt: skip
    D = np.diag(units[: nv + 3])
    assert np.allclose(np.diag(D)[:nv], 1.0 / np.sqrt(np.diag(K[HERE])), rtol=1e-14)
    assert np.allclose(np.linalg.norm(D[nv:, nv:] @ rows @ D[:nv, :nv], axis=1), 1.0, rtol=1e-13)
    want = D @ np.block([[K[HERE][:, :nv], -rows.T], [rows, np.zeros((3, 3))]]) @ D
    assert np.allclose(out.reshape(-1, width)[: nv + 3, : nv + 3], want, atol=1e-13)


def test_every_native_function_is_here():
    """A new native function must join these tests."""
    found = {
        node.name
        for path in package_files().values()
        if "func_native(native" in text(path)
        for node in definitions(path)
        if any("func_native(native" in ast.unparse(d) for d in node.decorator_list)
    }
    tests = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    assert found and not [name for name in found if f"{name}(" not in tests]
