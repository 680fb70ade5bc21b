"""Which rows of loops are independent, found block by block, inside kernels.

What bordered finds by QR with row exchange of all rows A, in the units of the coordinates. Here the columns of A come
block by block from the tips to the base; reflections turn those of the blocks behind into as many columns as there are
rows of open loops, and rows are chosen where their loop closes, since all of their columns are known then:

    A D = [X_c; X_o],   X_c Qᵀ = [T 0],   X_o Qᵀ = [· X_o']   for the rows chosen, the largest that is left first    (1)

X_o' goes on to the block below. A row counts as dependent as in bordered: where not more is left of it than rounding of
the largest row could have made.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportIndexIssue=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false, reportReturnType=false

from __future__ import annotations

import warp as wp

from lissom.lie import se3
from lissom.lie.types import vec3, vec6
from lissom.passes.block_tables import Blocks
from lissom.passes.column_tables import Columns, Matrix
from lissom.passes.front_tables import Fronts

TAKE = """
    const bool is_last = e == y.count;
    const int rows = z.size.data[e];
    int given = 0;
    for (int m = z.child_start.data[e]; m < z.child_start.data[e + 1]; ++m)
        given += z.size.data[z.child.data[m]] - z.closed.data[z.child.data[m]];
    const int width = (given + (is_last ? 0 : y.size.data[e]) + 7) / 8 * 8;
    double* to = row(work, i);
    for (int m = 0; m < rows * width; ++m)
        to[m] = 0.0;
    int at = 0;
    for (int m = z.child_start.data[e]; m < z.child_start.data[e + 1]; ++m) {
        const int child = z.child.data[m], open = z.size.data[child] - z.closed.data[child];
        const double* from = row(front, i) + z.front_start.data[child];
        for (int a = 0; a < open; ++a)
            for (int b = 0; b < open; ++b)
                to[z.up.data[z.up_start.data[child] + a] * width + at + b] = from[a * ((open + 7) / 8 * 8) + b];
        at += open;
    }
    return given;
"""


@wp.func_native(TAKE)
def take_children(y: Blocks, z: Fronts, i: int, e: int, front: Matrix, work: Matrix) -> int:
    """The rows at block e with the columns that the blocks behind it left; how many these are."""
    ...


PASS = """
    const int n = y.size.data[e], width = (given + n + 7) / 8 * 8, first = y.v_start.data[e];
    const double* rows = six_rows(L, i, k, x.width);
    double* to = row(work, i) + at * width + given;
    for (int j = 0; j < n; ++j)
        for (int c = 0; c < 6; ++c)
            to[j] += sign * f.c[c] * rows[c * x.width + j] * scale.data[first + j];
"""


@wp.func_native(PASS)
def pass_block(
    x: Columns, y: Blocks, i: int, e: int, k: int, at: int, given: int, sign: wp.float64, f: vec6, L: Matrix,
    scale: wp.array(dtype=wp.float64), work: Matrix,
):  # fmt: skip
    """What the coordinates of block e do to one row through node k, behind `given` other columns."""
    ...


SIZES = """
    const int rows = z.size.data[e], n = y.size.data[e], width = (given + n + 7) / 8 * 8;
    for (int a = 0; a < rows; ++a)
        for (int j = 0; j < n; ++j) {
            const double own = row(work, i)[a * width + given + j];
            row(size, i)[z.who.data[z.who_start.data[e] + a]] += own * own;
        }
"""


@wp.func_native(SIZES)
def add_sizes(y: Blocks, z: Fronts, i: int, e: int, given: int, work: Matrix, size: Matrix):
    """The squares of the rows of A += those of the columns of block e."""
    ...


CHOOSE = """
    const int rows = z.size.data[e], closed = z.closed.data[e], open = rows - closed;
    const int cols = given + (e == y.count ? 0 : y.size.data[e]), width = (cols + 7) / 8 * 8;
    const int* who = z.who.data + z.who_start.data[e];
    int* taken = row(slot, i);
    double *a = row(work, i), *v = row(mirror, i);
    auto square = [&](int r, int from) {
        double sum = 0.0;
        for (int j = from; j < cols; ++j)
            sum += a[r * width + j] * a[r * width + j];
        return sum;
    };
    auto reflect = [&](int p, int from, int first) {
        for (int j = 0; j < width; ++j)
            v[j] = j < from ? 0.0 : a[p * width + j];
        const double length = sqrt(square(p, from));
        v[from] += v[from] < 0.0 ? -length : length;
        double sum = 0.0;
        for (int j = from; j < cols; ++j)
            sum += v[j] * v[j];
        if (!(sum > 0.0))
            return;
        for (int r = first; r < rows; ++r) {
            if (r < closed && taken[who[r]] >= 0)
                continue;
            block total = {};
            double* here = a + r * width;
            for (int j = from / 8 * 8; j < width; j += 8)
                total += load(here + j) * load(v + j);
            double along = 0.0;
            for (int c = 0; c < 8; ++c)
                along += total[c];
            for (int j = from / 8 * 8; j < width; j += 8)
                add(here + j, load(v + j) * (-2.0 * along / sum));
        }
    };
    int done = 0;
    for (; done < cols; ++done) {
        int best = -1;
        double most = 1e-16 * largest;
        for (int r = 0; r < closed; ++r) {
            const double left = taken[who[r]] < 0 ? square(r, done) : 0.0;
            if (left > most) {
                most = left;
                best = r;
            }
        }
        if (best < 0)
            break;
        reflect(best, done, 0);
        taken[who[best]] = 1;
    }
    if (cols - done > open)
        for (int r = 0; r < open; ++r)
            reflect(closed + r, done + r, closed + r);
    double* to = row(front, i) + z.front_start.data[e];
    for (int r = 0; r < open; ++r)
        for (int j = 0; j < open; ++j)
            to[r * ((open + 7) / 8 * 8) + j] = done + j < cols ? a[(closed + r) * width + done + j] : 0.0;
"""


@wp.func_native(CHOOSE)
def choose_closing(
    y: Blocks, z: Fronts, i: int, e: int, given: int, largest: wp.float64, work: Matrix, mirror: Matrix, front: Matrix,
    slot: wp.array2d(dtype=wp.int32),
):  # fmt: skip
    """(1) for block e: mark the rows chosen, and let what is left of those of open loops wait for the block below."""
    ...


@wp.func(inline=False)
def put_passing(
    x: Columns, y: Blocks, z: Fronts, i: int, e: int, given: int, centre: vec3, rows: wp.array2d(dtype=vec6),
    L: Matrix, scale: wp.array(dtype=wp.float64), work: Matrix,
):  # fmt: skip
    """What the coordinates of block e do to all rows of loops with ends behind it, which are wrenches in the base."""
    for m in range(z.child_start[e], z.child_start[e + 1]):
        child = z.child[m]
        for a in range(z.up_start[child], z.up_start[child + 1]):
            at = z.up[a]
            f = about_centre(rows[i, z.who[z.who_start[e] + at]], centre)
            pass_block(x, y, i, e, y.parent[child], at, given, wp.float64(z.sign[a]), f, L, scale, work)
    for m in range(z.end_start[e], z.end_start[e + 1]):
        loop = z.end[m] / 2
        sign = wp.float64(1 - 2 * (z.end[m] % 2))
        for u in range(z.loop_start[loop], z.loop_start[loop + 1]):
            at = z.end_at[m] + u - z.loop_start[loop]
            pass_block(x, y, i, e, z.end_node[m], at, given, sign, about_centre(rows[i, u], centre), L, scale, work)


@wp.func
def about_centre(f: vec6, centre: vec3) -> vec6:
    """A wrench about a point at `centre` from that about the origin."""
    return se3.join(se3.angular(f) - wp.cross(centre, se3.linear(f)), se3.linear(f))


@wp.func(inline=False)
def row_sizes(
    x: Columns, y: Blocks, z: Fronts, i: int, centre: wp.array2d(dtype=vec3), rows: wp.array2d(dtype=vec6), L: Matrix,
    scale: wp.array(dtype=wp.float64), work: Matrix, size: Matrix,
):  # fmt: skip
    """The squares of the rows of loops in the units of the coordinates."""
    for row in range(size.shape[1]):
        size[i, row] = wp.float64(0.0)
    for e in range(y.count):
        clear_rows(y, z, i, e, work)
        put_passing(x, y, z, i, e, 0, centre[i, e], rows, L, scale, work)
        add_sizes(y, z, i, e, 0, work, size)


@wp.func(inline=False)
def choose_by_blocks(
    x: Columns, y: Blocks, z: Fronts, i: int, centre: wp.array2d(dtype=vec3), rows: wp.array2d(dtype=vec6), L: Matrix,
    scale: wp.array(dtype=wp.float64), work: Matrix, mirror: Matrix, front: Matrix, size: Matrix,
    slot: wp.array2d(dtype=wp.int32),
) -> int:  # fmt: skip
    """Number the independent ones of the rows of loops in slot, the others −1; how many there are."""
    m = slot.shape[1]
    for row in range(m):
        slot[i, row] = -1
    row_sizes(x, y, z, i, centre, rows, L, scale, work, size)
    largest = wp.float64(0.0)
    for row in range(m):
        largest = wp.max(largest, size[i, row])
    for step in range(y.count + 1):
        e = z.order[step]
        given = take_children(y, z, i, e, front, work)
        if e < y.count:
            put_passing(x, y, z, i, e, given, centre[i, e], rows, L, scale, work)
        choose_closing(y, z, i, e, given, largest, work, mirror, front, slot)
    kept = wp.int32(0)
    for row in range(m):
        if slot[i, row] >= 0:
            slot[i, row] = kept
            kept += 1
    return kept


CLEAR = """
    const int count = z.size.data[e] * ((y.size.data[e] + 7) / 8 * 8);
    for (int m = 0; m < count; ++m)
        row(work, i)[m] = 0.0;
"""


@wp.func_native(CLEAR)
def clear_rows(y: Blocks, z: Fronts, i: int, e: int, work: Matrix):
    """The rows at block e, with its own columns alone, = 0."""
    ...
