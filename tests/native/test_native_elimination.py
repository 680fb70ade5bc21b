"""Native functions of Newton's matrix block by block against NumPy."""

import numpy as np
import pytest
import warp as wp
from native.native_calls import COUNT, HERE, MODEL, NODES, NV, changed, device, filled, random
from native.test_native_blocks import BLOCKS, RODS, ROWS, SIZES, SQUARES, WIDTHS, X, Y

from lissom.lie.types import kernel_options, mat6, vec6
from lissom.passes.blocks import BlocksStruct, band_columns, band_size, block_width
from lissom.passes.columns import ColumnsStruct, Matrix, NewtonSumsStruct
from lissom.systems import newton_blocks as elimination
from lissom.systems.newton_blocks import BlockMatrixStruct

wp.set_module_options(kernel_options())

S, J, J_R, J_P, L = (random(COUNT, 6 * NODES * X.width) for _ in range(5))


def columns(of, k, e):
    """The columns of node k for the coordinates of block e."""
    return of[HERE].reshape(NODES, 6, X.width)[k][:, : SIZES[e]]


def places(e):
    """Where B of block e stands, and its rows."""
    return slice(*SQUARES[e : e + 2]), slice(*ROWS[e : e + 2])


def test_band_holds_the_blocks_apart():
    """Entries of a band matrix stand at places of their own, within its size, and rows are as wide as any block."""
    band = band_columns(MODEL)
    at = [r * band.width + c for b in BLOCKS for r in range(b.v_start, b.v_stop) for c in range(b.v_start, b.v_stop)]
    assert len(set(at)) == len(at) == int((SIZES**2).sum())
    assert max(at) < band_size(MODEL)
    assert band.width == block_width(MODEL) >= SIZES.max()


@wp.kernel
def k_gather(b: BlockMatrixStruct, S: Matrix, e: int, k: int, H: mat6, N: mat6, M: mat6, bar: mat6, i: int):
    elimination.load_band(b.y, b.x.width, i, e, b.K, b.B, b.inverse_G, b.V)
    elimination.gather_node(b, i, e, k, H, N, M, bar, S)


@pytest.mark.parametrize("e", RODS)
def test_gathering(e):
    """load_band and gather_node: the terms of one node in B, G and V of (2) to (4), added to K, and nowhere else."""
    n, (at, row) = SIZES[e], places(e)
    H, N, M, bar = random(4, 6, 6)
    K = random(COUNT, band_size(MODEL))
    old = [random(COUNT, SQUARES[-1]), random(COUNT, 24 * NV), random(COUNT, 6 * ROWS[-1])]
    span = range(BLOCKS[e].v_start, BLOCKS[e].v_stop)
    own = np.array([[K[HERE, r * X.width + c] for c in span] for r in span])
    b = filled(BlockMatrixStruct(), {"x": X, "y": Y, "K": device(K), "L": device(L)})
    b.sums = filled(NewtonSumsStruct(), {"J": device(J), "J_R": device(J_R), "J_P": device(J_P)})
    for k, before in ((BLOCKS[e].nodes[1], BLOCKS[e].nodes[0]), (BLOCKS[e].nodes[0], -1)):
        x, w, z, s, rows = (columns(of, k, e) for of in (J, J_R, J_P, S, L))
        given = [device(S), e, k, *map(mat6, (H, N, M, bar))]
        found = changed(k_gather, dict(zip(("B", "inverse_G", "V"), old)), *given, struct=b)
        below = columns(L, before, e) if before >= 0 else np.zeros((6, n))
        f, g = H @ x + N @ w + M @ z, bar @ s
        want = own + rows.T @ f + below.T @ g
        np.testing.assert_allclose(found[0][at].reshape(n, -1)[:, :n], want, atol=1e-13)
        G = found[1].reshape(-1, 24)[span.start : span.stop, :18]
        np.testing.assert_allclose(G, rows.T @ np.hstack([H, N, M]), atol=1e-13)
        width = WIDTHS[e]
        V = found[2][6 * row.start :][: 6 * width].reshape(6, width)[:, :n]
        np.testing.assert_allclose(V, f + g, atol=1e-13)
        outside = np.ones(SQUARES[-1], dtype=bool)
        outside[at] = False
        np.testing.assert_array_equal(found[0][outside], old[0][HERE][outside])


@wp.kernel
def k_factor(
    B: Matrix, inverse_G: Matrix, f: Matrix, V: Matrix, L: Matrix, J: Matrix, pivots: elimination.Pivots,
    x: ColumnsStruct, y: BlocksStruct, e: int, k: int, sum: mat6, below: vec6, twist: vec6, rate: vec6, acc: vec6,
    pivot: wp.array(dtype=wp.int32), Lambda: wp.array(dtype=mat6), c: wp.array(dtype=vec6), i: int,
):  # fmt: skip
    elimination.subtract_projection(x, y, i, e, k, below, L, f)
    pivot[0] = elimination.factor_block(y, i, e, B, pivots, inverse_G, V)
    for part in range(3):
        Lambda[part] = elimination.reduced_response(y, i, e, part, sum, inverse_G, V)
    c[0] = elimination.solve_inward(y, i, e, below, B, pivots, V, f)
    elimination.solve_outward(y, i, e, twist, rate, acc, inverse_G, f)
    c[1] = elimination.block_motion(x, y, i, e, k, below, J, f)


def factored(e, B, G, V, f, k, sum, below, y):
    """Results of the elimination of block e: pivot, the parts of Λ, c and the state at node k, δ."""
    n, (at, row) = SIZES[e], places(e)
    square, coupling, wrench = (np.zeros((COUNT, m)) for m in (SQUARES[-1], 24 * NV, 6 * ROWS[-1]))
    square[HERE, at] = np.pad(B, [(0, 0), (0, WIDTHS[e] - n)]).ravel()
    coupling[HERE].reshape(-1, 24)[BLOCKS[e].v_start : BLOCKS[e].v_stop, :18] = G
    wrench[HERE, 6 * row.start : 6 * row.stop] = np.pad(V, [(0, 0), (0, WIDTHS[e] - n)]).ravel()
    right = np.zeros((COUNT, NV))
    right[HERE, BLOCKS[e].v_start : BLOCKS[e].v_stop] = f
    swaps = wp.zeros((COUNT, int(ROWS[-1])), dtype=wp.int32, device="cpu")
    pivot = wp.zeros(1, dtype=wp.int32, device="cpu")
    Lambda, c = wp.zeros(3, dtype=mat6, device="cpu"), wp.zeros(2, dtype=vec6, device="cpu")
    delta = device(right)
    wp.launch(k_factor, dim=1, device="cpu",
              inputs=[device(square), device(coupling), delta, device(wrench), device(L), device(J), swaps, X, Y, e, k,
                      mat6(sum), vec6(below), *map(vec6, y), pivot, Lambda, c, HERE])  # fmt: skip
    return pivot.numpy()[0], Lambda.numpy(), c.numpy(), delta.numpy()[HERE, BLOCKS[e].v_start : BLOCKS[e].v_stop]


@pytest.mark.parametrize("e", RODS)
def test_elimination_of_a_block(e):
    """factor_block, reduced_response, subtract_projection, solve_inward, solve_outward and block_motion against (1),
    (2) and (4), for a matrix whose rows must be swapped."""
    n, k = SIZES[e], BLOCKS[e].nodes[-1]
    B, G, V, f = random(n, n), random(n, 18), random(6, n), random(n)
    B[0, 0] = 0.0
    sum, below, y = random(6, 6), random(6), random(3, 6)
    pivot, Lambda, c, delta = factored(e, B, G, V, f, k, sum, below, y)
    known = np.linalg.solve(B, f - columns(L, k, e).T @ below)
    want = known - np.linalg.solve(B, G @ y.ravel())
    assert pivot == 0
    for part in range(3):
        part_of_G = G[:, 6 * part : 6 * part + 6]
        np.testing.assert_allclose(Lambda[part], sum - V @ np.linalg.solve(B, part_of_G), rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(c[0], below + V @ known, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(delta, want, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(c[1], below + columns(J, k, e) @ want, rtol=1e-9, atol=1e-10)


def test_a_pivot_that_vanishes():
    """factor_block names the coordinate that no row is left for."""
    e, n = RODS[1], SIZES[RODS[1]]
    B = np.eye(n)
    B[3, 3] = 0.0
    none = random(n, 18), random(6, n), random(n), BLOCKS[e].nodes[0], random(6, 6), random(6), random(3, 6)
    assert factored(e, B, *none)[0] == BLOCKS[e].v_start + 3 + 1


@wp.kernel
def k_clear(X: Matrix, i: int):
    elimination.clear_row(i, X)


def test_one_instance_is_cleared():
    """clear_row: all numbers of one instance are zero, those of others stay."""
    given = random(COUNT, 6)
    found = device(given)
    wp.launch(k_clear, dim=1, device="cpu", inputs=[found, HERE])
    given[HERE] = 0.0
    np.testing.assert_array_equal(found.numpy(), given)
