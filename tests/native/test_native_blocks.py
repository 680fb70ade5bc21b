"""Native functions of the elimination block by block against NumPy."""

import numpy as np
import pytest
import warp as wp
from native.native_calls import COUNT, HERE, MODEL, NODES, NV, changed, device, random

from lissom.lie.types import kernel_options, mat6, vec6
from lissom.passes.blocks import BlocksStruct, block_columns, block_tables, coordinate_blocks
from lissom.passes.columns import ColumnsStruct, Matrix
from lissom.systems import articulated

wp.set_module_options(kernel_options())

BLOCKS, X, Y = coordinate_blocks(MODEL), block_columns(MODEL), block_tables(MODEL)
SIZES = np.array([b.v_stop - b.v_start for b in BLOCKS])
WIDTHS = (SIZES + 7) // 8 * 8
ROWS, SQUARES = np.cumsum([0, *WIDTHS]), np.cumsum([0, *SIZES * WIDTHS])
RODS = [int(e) for e in np.flatnonzero(SIZES > 8)]  # a width of two registers, and nodes that move along
J = random(COUNT, 6 * NODES * X.width)


def columns(k, e):
    """J of node k of block e."""
    return J[HERE].reshape(NODES, 6, X.width)[k][:, : SIZES[e]]


def test_blocks_hold_each_coordinate_once():
    """Blocks partition coordinates and nodes; the parent of a block comes before it; nodes share their coordinates."""
    assert sorted(k for b in BLOCKS for k in b.nodes) == list(range(NODES))
    assert sorted(j for b in BLOCKS for j in range(b.v_start, b.v_stop)) == list(range(NV))
    assert len(RODS) == 2
    for e, block in enumerate(BLOCKS):
        assert Y.above.numpy()[e] < e
        for k in block.nodes:
            inside = int(Y.inside.numpy()[k])
            assert inside in block.nodes if inside >= 0 else int(MODEL.nodes.parent[k]) == block.parent


@wp.kernel
def k_path(J: Matrix, S: Matrix, x: ColumnsStruct, width: int, before: int, k: int, i: int):
    articulated.sum_path(x, width, before, i, k, S, J)


def test_path():
    """sum_path adds the columns of a node to those of the node before it in the block."""
    S, k, width = random(COUNT, J.shape[1]), BLOCKS[RODS[0]].nodes[1], int(WIDTHS[RODS[0]])
    for before in (k - 1, -1):
        (out,) = changed(k_path, [J], device(S), X, width, before, k)
        rows, up = out.reshape(NODES, 6, X.width), J[HERE].reshape(NODES, 6, X.width)
        want = S[HERE].reshape(NODES, 6, X.width)[k] + (up[before] if before >= 0 else 0.0)
        np.testing.assert_allclose(rows[k][:, :width], want[:, :width], atol=1e-15)


@wp.kernel
def k_gather(
    H: Matrix, G: Matrix, diagonal: Matrix, J: Matrix, x: ColumnsStruct, y: BlocksStruct, e: int, k: int, one: mat6,
    two: mat6, i: int,
):  # fmt: skip
    articulated.clear_block(y, i, e, H, G, diagonal)
    articulated.gather_node(x, y, i, e, k, one, two, J, H, G, diagonal)


@pytest.mark.parametrize("e", RODS)
def test_gathering(e):
    """clear_block and gather_node: Jᵀ Î J, Î J and the diagonal of Jᵀ M J at the place of a block, and nowhere else."""
    one, two, k = random(6, 6), random(6, 6), BLOCKS[e].nodes[-1]
    old = [random(COUNT, SQUARES[-1]), random(COUNT, 8 * ROWS[-1]), random(COUNT, ROWS[-1])]
    H, G, diagonal = changed(k_gather, old, device(J), X, Y, e, k, mat6(one), mat6(two))
    n, j = SIZES[e], columns(k, e)
    at, row = slice(*SQUARES[e : e + 2]), slice(*ROWS[e : e + 2])
    np.testing.assert_allclose(H[at].reshape(n, -1)[:, :n], j.T @ one @ j, atol=1e-13)
    np.testing.assert_allclose(G.reshape(-1, 8)[row][:n, :6], (one @ j).T, atol=1e-14)
    np.testing.assert_allclose(diagonal[row][:n], np.diag(j.T @ two @ j), atol=1e-13)
    for new, before, where in ((H, old[0], at), (diagonal, old[2], row)):
        new[where] = before[HERE][where]
        np.testing.assert_array_equal(new, before[HERE])


@wp.kernel
def k_factor(
    H: Matrix, inverse_G: Matrix, G: Matrix, diagonal: Matrix, wrench: wp.array2d(dtype=vec6), f: Matrix, J: Matrix,
    acc: wp.array2d(dtype=vec6), x: ColumnsStruct, y: BlocksStruct, e: int, inertia: mat6, below: vec6,
    pivot: wp.array(dtype=wp.int32), Lambda: wp.array(dtype=mat6), p: wp.array(dtype=vec6), i: int,
):  # fmt: skip
    pivot[0] = articulated.factor_block(y, i, e, H, G, inverse_G, diagonal)
    Lambda[0] = articulated.reduced_inertia(y, i, e, inertia, G, inverse_G)
    p[0] = articulated.solve_inward(x, y, i, e, J, H, inverse_G, wrench, f)
    articulated.solve_outward(x, y, i, e, below, J, inverse_G, acc, f)


def factored(e, H, G, f, wrench, inertia, below):
    """Results of the elimination of block e: pivot, Λ, p, a, accelerations."""
    n, width = SIZES[e], WIDTHS[e]
    square, rows = np.zeros((COUNT, SQUARES[-1])), np.zeros((COUNT, 8 * ROWS[-1]))
    square[HERE, slice(*SQUARES[e : e + 2])] = np.pad(H, [(0, 0), (0, width - n)]).ravel()
    rows[HERE].reshape(-1, 8)[ROWS[e] : ROWS[e] + n, :6] = G
    full = np.zeros((COUNT, ROWS[-1]))
    full[HERE, ROWS[e] : ROWS[e] + n] = np.diag(H)
    right = np.zeros((COUNT, NV))
    right[HERE, BLOCKS[e].v_start : BLOCKS[e].v_stop] = f
    forces, acc = device(np.tile(wrench, (COUNT, 1, 1)), vec6), wp.zeros((COUNT, NODES), dtype=vec6, device="cpu")
    pivot, Lambda, p = (wp.zeros(1, dtype=kind, device="cpu") for kind in (wp.int32, mat6, vec6))
    a = device(right)
    wp.launch(k_factor, dim=1, device="cpu",
              inputs=[device(square), device(np.zeros_like(rows)), device(rows), device(full), forces, a, device(J),
                      acc, X, Y, e, mat6(inertia), vec6(below), pivot, Lambda, p, HERE])  # fmt: skip
    return (*(x.numpy()[0] for x in (pivot, Lambda, p)), a.numpy()[HERE], acc.numpy()[HERE])


@pytest.mark.parametrize("e", RODS)
def test_elimination_of_a_block(e):
    """factor_block, reduced_inertia, solve_inward and solve_outward against the equations (1) to (3) of articulated."""
    n, block = SIZES[e], BLOCKS[e]
    H, G, f, wrench, below = random(n, n), random(n, 6), random(n), random(NODES, 6), random(6)
    H, inertia = H @ H.T + np.eye(n), random(6, 6)
    pivot, Lambda, p, a, acc = factored(e, H, G, f, wrench, inertia, below)
    right = f - sum(columns(k, e).T @ wrench[k] for k in block.nodes)
    want = np.linalg.solve(H, right - G @ below)
    assert pivot == 0
    np.testing.assert_allclose(Lambda, inertia - G.T @ np.linalg.solve(H, G), atol=1e-12)
    np.testing.assert_allclose(p, wrench[block.nodes].sum(axis=0) + G.T @ np.linalg.solve(H, right), atol=1e-12)
    np.testing.assert_allclose(a[block.v_start : block.v_stop], want, atol=1e-12)
    for k in block.nodes:
        np.testing.assert_allclose(acc[k], below + columns(k, e) @ want, atol=1e-12)


def test_a_pivot_that_vanishes():
    """factor_block names the coordinate whose pivot rounding could have made."""
    e, n = RODS[1], SIZES[RODS[1]]
    H = np.eye(n)
    H[4, 2] = H[2, 4] = 1.0
    assert factored(e, H, random(n, 6), random(n), random(NODES, 6), random(6, 6), random(6))[0] == (
        BLOCKS[e].v_start + 4 + 1
    )
