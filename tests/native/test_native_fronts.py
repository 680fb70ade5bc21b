"""Native functions of the fronts of robots with loops against NumPy."""

import numpy as np
import pytest
import warp as wp
from native.native_calls import COUNT, HERE, changed, device, random
from net_robots import describe_net

from lissom.lie.types import kernel_options, mat6, vec6
from lissom.passes.blocks import (
    BlocksStruct,
    FrontsStruct,
    block_columns,
    block_tables,
    coordinate_blocks,
    front_tables,
)
from lissom.passes.columns import ColumnsStruct, Matrix
from lissom.systems import fronts
from lissom.systems import newton_blocks as elimination
from lissom.systems.bordered import LoopRowsStruct, loop_rows
from lissom.systems.loop_unknowns import complete_rows, inverse_of
from lissom.systems.newton_blocks import BlockMatrixStruct, LoopFrontsStruct, block_matrix, loop_fronts

wp.set_module_options(kernel_options())

MODEL = describe_net(2, 2, held=((2, 0),)).build()
BLOCKS, FRONTS = coordinate_blocks(MODEL), front_tables(MODEL, wide=False)
X, Y, Z = block_columns(MODEL), block_tables(MODEL), FRONTS.tables
SIZE, CLOSED, WIDTH = Z.size.numpy(), Z.closed.numpy(), Z.width.numpy()
LAST = len(BLOCKS)
BOTH = next(e for e in range(LAST) if 0 < CLOSED[e] < SIZE[e])  # closes loops, and others stay open
INNER = next(e for e in range(LAST) if CLOSED[e] == 0 < SIZE[e])


def moves(e):
    """Coordinates of a block."""
    return 0 if e == LAST else BLOCKS[e].v_stop - BLOCKS[e].v_start


def test_loops_close_where_their_ways_meet():
    """Unknowns are closed once each, in every order of blocks; a block with both ends behind it has none open."""
    who, start, order = Z.unknown.numpy(), Z.unknown_start.numpy(), Z.order.numpy().tolist()
    shut = np.concatenate([who[start[e] : start[e] + CLOSED[e]] for e in order])
    assert sorted(shut) == list(range(MODEL.n_rows))
    of_node = {k: e for e, block in enumerate(BLOCKS) for k in block.nodes}
    for e, block in enumerate(BLOCKS):
        if block.parent >= 0:
            assert order.index(e) < order.index(of_node[block.parent])
    behind = [{e} for e in range(LAST + 1)]
    for e in order[:-1]:
        parent = BLOCKS[e].parent
        behind[of_node[parent] if parent >= 0 else LAST] |= behind[e]
    for loop, (a, b) in enumerate(MODEL.loops.node):
        for e in range(LAST + 1):
            inside = sum(int(k >= 0 and of_node[k] in behind[e]) for k in (a, b))
            held = set(range(*MODEL.loops.row_start[loop : loop + 2]))
            there = held & set(who[start[e] : start[e + 1]])
            opened = held & set(who[start[e] + CLOSED[e] : start[e + 1]])
            assert opened == (held if inside == 1 and e < LAST else set())
            assert there >= opened


@wp.kernel
def k_front(
    work: Matrix, C: Matrix, R: Matrix, kept: Matrix, front: Matrix, gross: Matrix, right: Matrix, found: Matrix,
    f: Matrix, B: Matrix, V: Matrix, answer: Matrix, own: Matrix, local: Matrix,
    pivots: elimination.Pivots, swap: elimination.Pivots, y: BlocksStruct, z: FrontsStruct, e: int, x: vec6, w: vec6,
    m: vec6, doubt: wp.array(dtype=wp.int32), c: wp.array(dtype=vec6), i: int,
):  # fmt: skip
    if e < y.count:
        doubt[0] = elimination.factor_block(y, i, e, B, pivots, answer, V)
        fronts.reduce_front(y, z, i, e, B, pivots, answer, V, C, R, work, gross)
    doubt[1] = fronts.close_front(z, i, e, own, gross, swap, work)
    fronts.store_front(z, i, e, work, kept, front)
    if e < y.count:
        c[0] = elimination.solve_inward(y, i, e, vec6(), B, pivots, V, f)
    c[0] = fronts.front_inward(y, z, i, e, c[0], f, R, kept, swap, right, local)
    if e < y.count:
        elimination.solve_outward(y, i, e, x, w, m, answer, f)
    fronts.front_outward(y, z, i, e, x, w, m, C, kept, found, local, f)
    for part in range(3):
        c[1 + part] = fronts.front_row(z, i, e, 1, part, front)
    c[4] = fronts.front_column(z, i, e, 1, front)


def buffer(total, start, values):
    """A buffer with a matrix at a place."""
    out = np.zeros((COUNT, max(int(total), 1)))
    out[HERE, start : start + values.size] = values.ravel()
    return out


def padded(matrix, width):
    """A matrix with zeros up to a width."""
    return np.pad(matrix, [(0, 0), (0, width - matrix.shape[1])])


@pytest.mark.parametrize("e", [BOTH, INNER, LAST])
def test_elimination_of_a_front(e):
    """(1) to (3) and solving by them: residuals of loops and solutions, for matrices whose rows are swapped."""
    n, m, shut, wide = moves(e), SIZE[e], CLOSED[e], WIDTH[e]
    left, tall = m - shut, (n + 7) // 8 * 8
    at = dict.fromkeys(("square", "row", "v"), 0) if e == LAST else {
        "square": Y.square_start.numpy()[e], "row": Y.row_start.numpy()[e], "v": BLOCKS[e].v_start}  # fmt: skip
    B, C, R, S, G = random(n, n), random(n, m), random(m, n), random(m, m), random(n, 18)
    Q, V, E, own = random(m, 18), random(6, n), random(6, m), random(m)
    f, g, y, outer = random(n), random(m), random(18), random(left)
    who = Z.unknown.numpy()[Z.unknown_start.numpy()[e] :][:m]
    rows_total = int(Y.row_start.numpy()[-1])
    work = np.zeros((m + 6, wide + 24))
    work[:m, :m], work[m:, :m], work[:m, wide : wide + 18] = S, E, Q
    by_unknown = {"own": own, "right": g, "found": np.concatenate([np.zeros(shut), outer]), "gross": np.zeros(m)}
    spread = {}
    for name, values in by_unknown.items():
        spread[name] = np.zeros((COUNT, FRONTS.unknowns))
        spread[name][HERE, who] = values
    old = [
        buffer(FRONTS.work, 0, work), buffer(FRONTS.inverse_C, Z.inverse_C_start.numpy()[e], padded(C, wide)),
        buffer(FRONTS.rows, Z.rows_start.numpy()[e], padded(R, tall)), np.zeros((COUNT, FRONTS.closed_factors)),
        np.zeros((COUNT, FRONTS.fronts)), spread["gross"], spread["right"], spread["found"],
        buffer(MODEL.nv, at["v"], f), buffer(Y.square_start.numpy()[-1], at["square"], padded(B, tall)),
        buffer(6 * rows_total, 6 * at["row"], padded(V, tall)), buffer(24 * MODEL.nv, 24 * at["v"], padded(G, 24)),
    ]  # fmt: skip
    doubt, c = wp.zeros(2, dtype=wp.int32, device="cpu"), wp.zeros(5, dtype=vec6, device="cpu")
    swaps = [wp.zeros((COUNT, size), dtype=wp.int32, device="cpu") for size in (rows_total, FRONTS.places)]
    local = device(np.zeros((COUNT, FRONTS.places)))
    result = changed(k_front, old, device(spread["own"]), local, *swaps, Y, Z, e, *map(vec6, y.reshape(3, 6)), doubt, c)
    S = S + np.diag(np.concatenate([own[:shut], np.zeros(left)]))
    inner = np.block([[B, C[:, :shut]], [R[:shut], S[:shut, :shut]]])
    side = np.block([[C[:, shut:], G], [S[:shut, shut:], Q[:shut]]])
    low = np.block([[R[shut:], S[shut:, :shut]], [V, E[:, :shut]]])
    known = np.concatenate([f, g[:shut]])
    assert not doubt.numpy().any()
    corner = np.block([[S[shut:, shut:], Q[shut:]], [E[:, shut:], np.zeros((6, 18))]])
    want, narrow = corner - low @ np.linalg.solve(inner, side), (left + 7) // 8 * 8
    front = result[4][Z.front_start.numpy()[e] :][: (left + 6) * (narrow + 24)].reshape(left + 6, -1)
    scale = 1e-10 * np.abs(want).max()
    np.testing.assert_allclose(front[:, :left], want[:, :left], rtol=0.0, atol=scale)
    np.testing.assert_allclose(front[:left, narrow : narrow + 18], want[:left, left:], rtol=0.0, atol=scale)
    rest = want[left:, left:]
    if n:  # without what newton_blocks has of it, which may be many times larger
        rest = rest + V @ np.linalg.solve(B, G)
    scale = 1e-10 * max(np.abs(want).max(), np.abs(rest).max())
    np.testing.assert_allclose(front[left:, narrow : narrow + 18], rest, rtol=0.0, atol=scale)
    answer = np.linalg.solve(inner, known)
    np.testing.assert_allclose(result[6][who[shut:]], g[shut:] - low[:left] @ answer, atol=1e-9)
    np.testing.assert_allclose(c.numpy()[0], low[left:] @ answer, atol=1e-9)
    x = np.linalg.solve(inner, known - side @ np.concatenate([outer, y]))
    np.testing.assert_allclose(result[8][at["v"] : at["v"] + n], x[:n], atol=1e-9 * np.abs(x).max())
    np.testing.assert_allclose(result[7][who[:shut]], x[n:], atol=1e-9 * np.abs(x).max())
    if left > 1:
        np.testing.assert_array_equal(c.numpy()[1:4].ravel(), front[1, narrow : narrow + 18])
        np.testing.assert_array_equal(c.numpy()[4], front[left:, 1])


@wp.kernel
def k_gather(
    work: Matrix, C: Matrix, R: Matrix, front: Matrix, J: Matrix, L: Matrix, x: ColumnsStruct, y: BlocksStruct,
    z: FrontsStruct, e: int, child: int, k: int, at: int, f: vec6, i: int,
):  # fmt: skip
    fronts.clear_front(y, z, i, e, work, C, R)
    fronts.merge_front(z, i, e, child, front, work)
    fronts.add_row(x, y, z, i, e, k, at, 1, f, J, work, R)
    fronts.add_column(x, y, z, i, e, k, at, f, L, work, C)


def test_gathering_a_front():
    """clear_front, merge_front, add_row and add_column: from one child, and the terms of one row and column."""
    e = BOTH
    child = int(Z.child.numpy()[Z.child_start.numpy()[e]])
    n, m, wide, k, at = moves(e), SIZE[e], WIDTH[e], BLOCKS[e].nodes[-1], 2
    sizes = (FRONTS.work, FRONTS.inverse_C, FRONTS.rows, FRONTS.fronts, *[6 * MODEL.n_dynamic * X.width] * 2)
    old = [random(COUNT, size) for size in sizes]
    f = random(6)
    new = changed(k_gather, old, X, Y, Z, e, child, k, at, vec6(f))
    own = [of[HERE].reshape(-1, 6, X.width)[k][:, :n] for of in old[4:]]
    front = new[0][: (m + 6) * (wide + 24)].reshape(m + 6, -1)
    want = np.zeros_like(front)
    left, up = SIZE[child] - CLOSED[child], Z.in_parent.numpy()[slice(*Z.in_parent_start.numpy()[child : child + 2])]
    stride = (left + 7) // 8 * 8 + 24
    from_child = old[3][HERE][Z.front_start.numpy()[child] :][: left * stride].reshape(left, stride)[:, :left]
    want[np.ix_(up, up)] = from_child
    want[at, wide + 6 : wide + 12] = f
    want[m:, at] += f
    np.testing.assert_allclose(front, want, atol=1e-14)
    tall = (n + 7) // 8 * 8
    R = new[2][Z.rows_start.numpy()[e] :][: m * tall].reshape(m, tall)
    np.testing.assert_allclose(R[at, :n], f @ own[0], atol=1e-14)
    C = new[1][Z.inverse_C_start.numpy()[e] :][: n * wide].reshape(n, wide)
    np.testing.assert_allclose(C[:, at], own[1].T @ f, atol=1e-14)
    assert not np.delete(C, at, axis=1).any()
    assert not np.delete(R, at, axis=0).any()


@wp.kernel
def k_choose(b: BlockMatrixStruct, c: LoopFrontsStruct, loops: LoopRowsStruct, i: int):
    elimination.number_independent_rows(b, c, i, loops)


def test_choosing_rows():
    """number_independent_rows: as many rows as the rank, and independent ones, where some rows are zero or repeat
    others."""
    n, m = MODEL.nv, MODEL.n_rows
    y_rows = random(COUNT, m, 6)
    y_rows[HERE, [3, 8]] = 0.0
    y_rows[HERE, 10] = 2.0 * y_rows[HERE, 9]  # of one loop
    L, scale = random(COUNT, 6 * MODEL.n_dynamic * X.width), 1.0 + random(n) / 2.0
    A, of_node = np.zeros((m, n)), {k: e for e, block in enumerate(BLOCKS) for k in block.nodes}
    for loop, ends in enumerate(MODEL.loops.node):
        held = slice(*MODEL.loops.row_start[loop : loop + 2])
        for sign, k in zip((1.0, -1.0), ends):
            while k >= 0:
                block = BLOCKS[of_node[k]]
                span = slice(block.v_start, block.v_stop)
                own = L[HERE].reshape(-1, 6, X.width)[k][:, : block.v_stop - block.v_start]
                A[held, span] += sign * y_rows[HERE, held] @ own
                k = block.parent
    b, c = block_matrix(MODEL, COUNT, of_mass=True), loop_fronts(MODEL, COUNT, wide=False)
    loops = loop_rows(MODEL, COUNT, dense=False)
    for array, value in ((b.L, L), (c.row, y_rows), *((x, random(*x.shape)) for x in (c.work, c.front, c.size))):
        array.assign(value)
    loops.scale = device(scale)
    loops.slot.fill_(7)
    wp.launch(k_choose, dim=1, inputs=[b, c, loops, HERE], device="cpu")
    slots, rank = loops.slot.numpy(), np.linalg.matrix_rank(A * scale)
    slot = slots[HERE]
    assert (np.delete(slots, HERE, axis=0) == 7).all()
    assert loops.rank.numpy()[HERE] == (slot >= 0).sum() == rank == m - 3
    assert sorted(slot[slot >= 0]) == list(range(rank))
    assert np.linalg.matrix_rank((A * scale)[slot >= 0]) == rank


@wp.kernel
def k_rows(
    work: Matrix, front: Matrix, size: Matrix, mirror: Matrix, slot: wp.array2d(dtype=wp.int32), before: Matrix,
    L: Matrix, scale: wp.array(dtype=wp.float64), x: ColumnsStruct, y: BlocksStruct, z: FrontsStruct, e: int, k: int,
    at: int, f: vec6, largest: wp.float64, given: wp.array(dtype=wp.int32), i: int,
):  # fmt: skip
    given[0] = fronts.gather_children(y, z, i, e, front, work)
    fronts.put_coordinate_columns(x, y, i, e, k, at, given[0], wp.float64(-1.0), f, L, scale, work)
    fronts.add_square_sums(y, z, i, e, given[0], work, size)
    for j in range(work.shape[1]):
        before[i, j] = work[i, j]
    fronts.choose_closing(y, z, i, e, given[0], largest, work, mirror, front, slot)


def test_rows_of_one_block():
    """gather_children, put_coordinate_columns, add_square_sums and choose_closing: columns that blocks behind left and
    those of the block itself; the remainder of rows of open loops is their part beside the rows chosen."""
    e, at = BOTH, 0
    n, m, shut, k, f = moves(e), SIZE[e], CLOSED[e], BLOCKS[e].nodes[-1], random(6)
    sizes = (FRONTS.work, FRONTS.fronts, MODEL.n_rows, FRONTS.longest_row)
    old = [*(random(COUNT, size) for size in sizes), np.full((COUNT, MODEL.n_rows), -1), np.zeros((COUNT, FRONTS.work))]
    L, scale = random(COUNT, 6 * MODEL.n_dynamic * X.width), 1.0 + random(MODEL.nv) / 2.0
    count = wp.zeros(1, dtype=wp.int32, device="cpu")
    given = [device(L), device(scale), X, Y, Z, e, k, at, vec6(f), wp.float64(1.0), count]
    _work, front, size, _mirror, slot, before = changed(k_rows, old, *given)
    want, column = np.zeros((m, 0)), 0
    for child in Z.child.numpy()[slice(*Z.child_start.numpy()[e : e + 2])]:
        left, up = (
            SIZE[child] - CLOSED[child],
            Z.in_parent.numpy()[slice(*Z.in_parent_start.numpy()[child : child + 2])],
        )
        part, stride = np.zeros((m, left)), (left + 7) // 8 * 8
        part[up] = old[1][HERE][Z.front_start.numpy()[child] :][: left * stride].reshape(left, stride)[:, :left]
        want, column = np.hstack([want, part]), column + left
    own, span = np.zeros((m, n)), slice(BLOCKS[e].v_start, BLOCKS[e].v_stop)
    own[at] = -(f @ L[HERE].reshape(-1, 6, X.width)[k][:, :n]) * scale[span]
    want = np.hstack([want, own])
    wide = (column + n + 7) // 8 * 8
    assert count.numpy()[0] == column > 0
    np.testing.assert_allclose(before[: m * wide].reshape(m, wide)[:, : column + n], want, atol=1e-14)
    who = Z.unknown.numpy()[Z.unknown_start.numpy()[e] :][:m]
    np.testing.assert_allclose(size[who] - old[2][HERE, who], (own**2).sum(axis=1), atol=1e-14)
    chosen = want[:shut][slot[who[:shut]] >= 0]
    assert len(chosen) == np.linalg.matrix_rank(want[:shut]) > 0
    beside = np.eye(column + n) - np.linalg.pinv(chosen) @ chosen
    stride = (m - shut + 7) // 8 * 8
    left = front[Z.front_start.numpy()[e] :][: (m - shut) * stride].reshape(m - shut, stride)[:, : m - shut]
    np.testing.assert_allclose(left @ left.T, want[shut:] @ beside @ want[shut:].T, atol=1e-12)


@wp.kernel
def k_complete(given: mat6, mask: int, out: wp.array(dtype=mat6)):
    out[0] = complete_rows(given, mask)
    out[1] = inverse_of(out[0])


@pytest.mark.parametrize("mask", [0, 0b111111, 0b010110, 0b000001])
def test_completed_rows(mask):
    """complete_rows and inverse_of: given rows stay, rows of the identity make the matrix regular, and it is
    inverted."""
    given, out = random(6, 6), wp.zeros(2, dtype=mat6, device="cpu")
    given[1, :3] = 0.0
    given[2] = [0.0, 0.0, 0.0, 0.0, 0.0, 1.0]
    wp.launch(k_complete, dim=1, device="cpu", inputs=[mat6(given), mask, out])
    every, inverse = out.numpy()
    for r in range(6):
        if mask >> r & 1:
            np.testing.assert_array_equal(every[r], given[r])
        else:
            assert np.count_nonzero(every[r]) == every[r].sum() == 1.0
    np.testing.assert_allclose(inverse @ every, np.eye(6), atol=1e-11)
