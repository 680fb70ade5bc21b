"""Articulated bodies: M a = f solved block by block, from the tips to the base and back, inside kernels.

With α̇_p the acceleration of the node that a block hangs on, J_k the columns of the block up to its node k, and Î_k the
inertia of that node with all that hangs on it:

    α̇_k = α̇_p + J_k a                                                                                     (1)
    H a = f − Σ J_kᵀ p̂_k − G α̇_p,   H = I_a + Σ J_kᵀ Î_k J_k,   G = Σ J_kᵀ Î_k                                   (2)
    Λ = Σ Î_k − Gᵀ H⁻¹ G,   p = Σ p̂_k + Gᵀ H⁻¹ (f − Σ J_kᵀ p̂_k)                                             (3)
    Î_k = M_k + Σ Λ,   p̂_k = Σ p   over the blocks that hang on k                                          (4)

The base frame's axes serve all blocks; each is seen from a point of its own, the place of its first node, since the
inertia of a short link seen from far away is lost to rounding. A pivot of H counts as zero if it is small beside the
same entry of M, which composite inertias give.
Source: R. Featherstone, Rigid Body Dynamics Algorithms, 2008, §7.3, with blocks of coordinates for joints.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportIndexIssue=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false, reportReturnType=false

from __future__ import annotations

import warp as wp

from lissom.lie import se3
from lissom.lie.spatial import about
from lissom.lie.types import by_reference, mat6, vec3, vec6
from lissom.model.model import Model
from lissom.model.tables import Tables
from lissom.passes import deforming, kinds, mapped, traversal
from lissom.passes.block_tables import Blocks, block_width, squares
from lissom.passes.column_tables import Columns, Matrix
from lissom.passes.rare_kinds import is_body, is_mapped
from lissom.passes.scratch import Scratch
from lissom.systems.armature import add_armature_block


@wp.struct
class ArticulatedStruct:
    """Î and composite inertias by node; where each block is seen from; columns S and path sums J by node; H, G, H⁻¹ G
    and the diagonal of M by block; p̂ and accelerations by node."""

    inertia: wp.array2d(dtype=mat6)
    composite: wp.array2d(dtype=mat6)
    centre: wp.array2d(dtype=vec3)
    S: Matrix
    J: Matrix
    H: Matrix
    G: Matrix
    answer: Matrix
    diagonal: Matrix
    wrench: wp.array2d(dtype=vec6)
    acc: wp.array2d(dtype=vec6)


Articulated = by_reference(ArticulatedStruct)


def articulated_buffers(model: Model, batch: int) -> ArticulatedStruct:
    """Buffers of factor_blocks and solve_blocks for a batch."""
    b, size = ArticulatedStruct(), squares(model)
    width = (size + 7) // 8 * 8
    columns, rows = 6 * model.n_dynamic * block_width(model), int(width.sum())
    shapes = dict.fromkeys(("inertia", "composite", "wrench", "acc"), model.n_dynamic)
    shapes |= {"centre": len(size), "S": columns, "J": columns}
    shapes |= {"H": int((size * width).sum()), "G": 8 * rows, "answer": 8 * rows, "diagonal": rows}
    for name, count in shapes.items():
        dtype = ArticulatedStruct.vars[name].type.dtype
        setattr(b, name, wp.zeros((batch, count), dtype=dtype, device=model.device))
    return b


PATH = """
    const double* own = six_rows(S, i, k, x.width);
    const double* up = six_rows(J, i, before < 0 ? 0 : before, x.width);
    double* out = six_rows(J, i, k, x.width);
    for (int r = 0; r < 6; ++r)
        for (int j = 0; j < width; j += 8) {
            block sum = load(own + r * x.width + j);
            if (before >= 0)
                sum += load(up + r * x.width + j);
            store(out + r * x.width + j, sum);
        }
"""


@wp.func_native(PATH)
def sum_path(x: Columns, width: int, before: int, i: int, k: int, S: Matrix, J: Matrix):
    """J_k = J of node `before` (none if negative) + S_k."""
    ...


CLEAR = """
    const int n = y.size.data[e], width = y.width.data[e], at = y.row_start.data[e];
    double* to = row(H, i) + y.square_start.data[e];
    for (int m = 0; m < n * width; ++m)
        to[m] = 0.0;
    for (int m = 0; m < 8 * width; ++m)
        row(G, i)[8 * at + m] = 0.0;
    for (int m = 0; m < width; ++m)
        row(diagonal, i)[at + m] = 0.0;
"""


@wp.func_native(CLEAR)
def clear_block(y: Blocks, i: int, e: int, H: Matrix, G: Matrix, diagonal: Matrix):
    """H, G and the diagonal of block e = 0."""
    ...


GATHER = """
    const int n = y.size.data[e], width = y.width.data[e], at = y.row_start.data[e];
    const double* in = six_rows(J, i, k, x.width);
    double* square = row(H, i) + y.square_start.data[e];
    double* coupling = row(G, i) + 8 * at;
    double* full = row(diagonal, i) + at;
    for (int j = 0; j < width; j += 8) {
        block s[6], v[6] = {}, u[6] = {}, sum = {};
        for (int r = 0; r < 6; ++r)
            s[r] = load(in + r * x.width + j);
        for (int c = 0; c < 6; ++c)
            for (int r = 0; r < 6; ++r) {
                v[r] += s[c] * inertia.data[r][c];
                u[r] += s[c] * composite.data[r][c];
            }
        for (int r = 0; r < 6; ++r)
            sum += s[r] * u[r];
        add(full + j, sum);
        for (int a = 0; a < n; ++a) {
            block h = load(square + a * width + j);
            for (int r = 0; r < 6; ++r)
                h += v[r] * in[r * x.width + a];
            store(square + a * width + j, h);
        }
        for (int c = 0; c < 8; ++c)
            for (int r = 0; r < 6; ++r)
                coupling[8 * (j + c) + r] += v[r][c];
    }
"""


@wp.func_native(GATHER)
def gather_node(
    x: Columns, y: Blocks, i: int, e: int, k: int, inertia: mat6, composite: mat6, J: Matrix, H: Matrix, G: Matrix,
    diagonal: Matrix,
):  # fmt: skip
    """What node k adds to H and G of (2) and to the diagonal of M."""
    ...


FACTOR = """
    const int n = y.size.data[e], width = y.width.data[e], at = y.row_start.data[e], first = y.v_start.data[e];
    double* square = row(H, i) + y.square_start.data[e];
    double* coupling = row(G, i) + 8 * at;
    double* out = row(answer, i) + 8 * at;
    double* full = row(diagonal, i) + at;
    for (int k = 0; k < n; ++k)
        if (y.held.data[first + k]) {
            for (int j = 0; j < n; ++j)
                square[k * width + j] = square[j * width + k] = 0.0;
            square[k * width + k] = full[k] = 1.0;
            store(coupling + 8 * k, block{});
        }
    for (int k = 0; k < n; ++k)
        store(out + 8 * k, load(coupling + 8 * k));
    for (int k = 0; k < n; ++k) {
        const double* top = square + k * width;
        if (!(top[k] > 1e-14 * full[k]))
            return first + k + 1;
        const double inverse = -1.0 / top[k];
        const block known = load(out + 8 * k);
        for (int row = k + 1; row < n; ++row) {
            const double factor = top[row] * inverse;
            for (int j = row / 8 * 8; j < width; j += 8)
                add(square + row * width + j, load(top + j) * factor);
            add(out + 8 * row, known * factor);
        }
    }
    for (int k = n - 1; k >= 0; --k) {
        const double* top = square + k * width;
        block sum = load(out + 8 * k);
        for (int j = k + 1; j < n; ++j)
            sum += load(out + 8 * j) * -top[j];
        store(out + 8 * k, sum * (1.0 / top[k]));
    }
    return 0;
"""


@wp.func_native(FACTOR)
def factor_block(y: Blocks, i: int, e: int, H: Matrix, G: Matrix, answer: Matrix, diagonal: Matrix) -> int:
    """Factors LDLᵀ of H in its place, rows of prescribed coordinates as in the identity, and H⁻¹ G. Returns 0, or 1 +
    the coordinate whose pivot rounding could have made."""
    ...


REDUCE = """
    const int n = y.size.data[e], at = y.row_start.data[e];
    const double* coupling = row(G, i) + 8 * at;
    const double* solved = row(answer, i) + 8 * at;
    wp::mat_t<6, 6, double> out = inertia;
    for (int k = 0; k < n; ++k)
        for (int r = 0; r < 6; ++r)
            for (int c = 0; c < 6; ++c)
                out.data[r][c] -= coupling[8 * k + r] * solved[8 * k + c];
    return out;
"""


@wp.func_native(REDUCE)
def reduced_inertia(y: Blocks, i: int, e: int, inertia: mat6, G: Matrix, answer: Matrix) -> mat6:
    """Λ of (3) from Σ Î."""
    ...


INWARD = """
    const int n = y.size.data[e], width = y.width.data[e], at = y.row_start.data[e], first = y.v_start.data[e];
    const double* square = row(H, i) + y.square_start.data[e];
    const double* solved = row(answer, i) + 8 * at;
    double* z = row(f, i) + first;
    wp::vec_t<6, double> out = {};
    for (int m = y.node_start.data[e]; m < y.node_start.data[e + 1]; ++m) {
        const int k = y.node.data[m];
        const double* in = six_rows(J, i, k, x.width);
        for (int r = 0; r < 6; ++r) {
            const double p = row(wrench, i)[k].c[r];
            out.c[r] += p;
            if (p != 0.0)
                for (int j = 0; j < n; ++j)
                    z[j] -= in[r * x.width + j] * p;
        }
    }
    for (int k = 0; k < n; ++k) {
        if (y.held.data[first + k])
            z[k] = 0.0;
        for (int r = 0; r < 6; ++r)
            out.c[r] += solved[8 * k + r] * z[k];
    }
    for (int k = 0; k < n; ++k) {
        const double* top = square + k * width;
        const double known = z[k] / top[k];
        for (int j = k + 1; j < n; ++j)
            z[j] -= top[j] * known;
    }
    for (int k = n - 1; k >= 0; --k) {
        const double* top = square + k * width;
        double sum = z[k];
        for (int j = k + 1; j < n; ++j)
            sum -= top[j] * z[j];
        z[k] = sum / top[k];
    }
    return out;
"""


@wp.func_native(INWARD)
def solve_inward(
    x: Columns, y: Blocks, i: int, e: int, J: Matrix, H: Matrix, answer: Matrix, wrench: wp.array2d(dtype=vec6),
    f: Matrix,
) -> vec6:  # fmt: skip
    """p of (3) for block e; f on its coordinates becomes H⁻¹ (f − Σ Jᵀ p̂)."""
    ...


OUTWARD = """
    const int n = y.size.data[e], at = y.row_start.data[e];
    const double* solved = row(answer, i) + 8 * at;
    double* a = row(f, i) + y.v_start.data[e];
    for (int k = 0; k < n; ++k)
        for (int r = 0; r < 6; ++r)
            a[k] -= solved[8 * k + r] * below.c[r];
    for (int m = y.node_start.data[e]; m < y.node_start.data[e + 1]; ++m) {
        const int k = y.node.data[m];
        const double* in = six_rows(J, i, k, x.width);
        for (int r = 0; r < 6; ++r) {
            double sum = below.c[r];
            for (int j = 0; j < n; ++j)
                sum += in[r * x.width + j] * a[j];
            row(acc, i)[k].c[r] = sum;
        }
    }
"""


@wp.func_native(OUTWARD)
def solve_outward(
    x: Columns, y: Blocks, i: int, e: int, below: vec6, J: Matrix, answer: Matrix, acc: wp.array2d(dtype=vec6),
    f: Matrix,
):  # fmt: skip
    """a of (2) from H⁻¹ (f − Σ Jᵀ p̂) in its place, and (1), where the block hangs on what accelerates by `below`."""
    ...


@wp.func
def open_block(t: Tables, s: Scratch, x: Columns, y: Blocks, b: Articulated, i: int, e: int):
    """See block e from the place of its first node: inertias, and J of its nodes. Places in s become relative."""
    centre = s.node[i, y.node[y.node_start[e]]].p
    b.centre[i, e] = centre
    for m in range(y.node_start[e], y.node_start[e + 1]):
        k = y.node[m]
        s.node[i, k].p = s.node[i, k].p - centre
        traversal.base_inertia(t, s, b.inertia, i, k)
        b.composite[i, k] = b.inertia[i, k]
        if is_mapped(t.node[k].kind):
            mapped.put_block_columns(t, s, x.width, i, k, b.S)
        elif not is_body(t.node[k].kind):  # whose columns are zero
            kinds.motion_columns(t, s, x, i, k, b.S)
        sum_path(x, y.width[e], y.inside[k], i, k, b.S, b.J)


@wp.func
def close_block(t: Tables, s: Scratch, x: Columns, y: Blocks, b: Articulated, i: int, e: int) -> int:
    """H, G and Λ of block e, handed on to what it hangs on; 1 + the coordinate of a pivot that vanished, or 0."""
    clear_block(y, i, e, b.H, b.G, b.diagonal)
    inertia = mat6()
    composite = mat6()
    for m in range(y.node_start[e], y.node_start[e + 1]):
        k = y.node[m]
        inertia += b.inertia[i, k]
        composite += b.composite[i, k]
        gather_node(x, y, i, e, k, b.inertia[i, k], b.composite[i, k], b.J, b.H, b.G, b.diagonal)
        if is_body(t.node[k].kind):
            deforming.couple_block(t, s, i, k, y.square_start[e], y.width[e], y.row_start[e], b.H, b.G, b.diagonal)
    at = y.square_start[e]
    add_armature_block(t, i, y.v_start[e], y.size[e], at, y.width[e], y.row_start[e], b.H, b.diagonal)
    pivot = factor_block(y, i, e, b.H, b.G, b.answer, b.diagonal)
    parent = y.parent[e]
    if pivot == 0 and parent >= 0:
        r = b.centre[i, e] - b.centre[i, y.above[e]]
        b.inertia[i, parent] = b.inertia[i, parent] + about(reduced_inertia(y, i, e, inertia, b.G, b.answer), r)
        b.composite[i, parent] = b.composite[i, parent] + about(composite, r)
    return pivot


@wp.func
def factor_blocks(t: Tables, s: Scratch, x: Columns, y: Blocks, b: Articulated, i: int) -> int:
    """(2)-(4) for the poses left in s; 1 + the coordinate of a pivot that vanished, or 0."""
    for e in range(y.count):
        open_block(t, s, x, y, b, i, e)
    pivot = wp.int32(0)
    for step in range(y.count):
        if pivot == 0:
            pivot = close_block(t, s, x, y, b, i, y.count - 1 - step)
    for e in range(y.count):
        for m in range(y.node_start[e], y.node_start[e + 1]):
            s.node[i, y.node[m]].p = s.node[i, y.node[m]].p + b.centre[i, e]
    return pivot


@wp.func
def solve_blocks(x: Columns, y: Blocks, b: Articulated, i: int, f: Matrix):
    """Solve M a = f by what factor_blocks left: f becomes a, that of prescribed coordinates zero."""
    for e in range(y.count):
        for m in range(y.node_start[e], y.node_start[e + 1]):
            b.wrench[i, y.node[m]] = vec6()
    for step in range(y.count):
        e = y.count - 1 - step
        p = solve_inward(x, y, i, e, b.J, b.H, b.answer, b.wrench, f)
        parent = y.parent[e]
        if parent >= 0:
            lever = b.centre[i, e] - b.centre[i, y.above[e]]
            moment = se3.angular(p) + wp.cross(lever, se3.linear(p))
            b.wrench[i, parent] = b.wrench[i, parent] + se3.join(moment, se3.linear(p))
    for e in range(y.count):
        below = vec6()
        parent = y.parent[e]
        if parent >= 0:
            w = se3.angular(b.acc[i, parent])
            r = b.centre[i, e] - b.centre[i, y.above[e]]
            below = se3.join(w, se3.linear(b.acc[i, parent]) + wp.cross(w, r))
        solve_outward(x, y, i, e, below, b.J, b.answer, b.acc, f)
