"""Native functions of the mass matrix and of the search for numbers that are not finite, against NumPy."""

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
    host,
    pair,
    random,
)

import lissom as ls
from lissom.lie.arrays import se3_Ad, se3_exp
from lissom.lie.types import kernel_options, mat3, mat6, vec3
from lissom.model.tables import TablesStruct, device_tables
from lissom.passes.columns import ColumnsStruct, Matrix, put_turned_columns
from lissom.passes.linear_algebra import is_finite
from lissom.systems.mass import MassBuffersStruct, add_matrix, fold_mass, put_square, rigid_buffers, rigid_mass

wp.set_module_options(kernel_options())

Matrices = wp.array2d(dtype=mat6)


@wp.kernel
def k_fold_mass(V: Matrix, out: Matrix, S: Matrix, composite: Matrices, x: ColumnsStruct, first: int, stop: int, k: int,
                i: int):  # fmt: skip
    fold_mass(x, first, stop, i, k, composite, S, V, out)


@pytest.mark.parametrize("k", SITES)
def test_fold_mass(k):
    """fold_mass( adds M S to the running sum, and rows with half of that, against products of whole matrices."""
    M, slot = random(COUNT, NODES, 6, 6), host("slot")
    S, V, out = random(COUNT, 6 * NODES * WIDTH), random(COUNT, 6 * X.n_slots * WIDTH), random(COUNT, NV * WIDTH)
    first, stop = int(MODEL.nodes.v_start[k]), int(MODEL.nodes.v_stop[k])
    S_k, V_k = S[HERE].reshape(NODES, 6, WIDTH)[k], V[HERE].reshape(-1, 6, WIDTH)
    sums, rows = changed(k_fold_mass, [V, out], device(S), device(M, mat6), X, first, stop, k)
    own, below = np.arange(first // 8 * 8, (stop + 7) // 8 * 8), blocks("subtree_start", "subtree_range", k)
    more = np.zeros((6, WIDTH))
    more[:, own] = (M[HERE, k] @ S_k)[:, own]
    want = V_k.copy()
    want[slot[k]] += more
    assert np.allclose(sums.reshape(want.shape), want, atol=1e-14)
    want = out[HERE].reshape(NV, WIDTH).copy()
    want[first:stop, below] += (S_k.T @ (V_k[slot[k]] + 0.5 * more))[first:stop][:, below]
    assert np.allclose(rows.reshape(want.shape), want, atol=1e-14)


@wp.kernel
def k_add_matrix(composite: Matrices, other: int, to: int, i: int):
    add_matrix(i, other, to, composite)


def test_add_matrix():
    """add_matrix( adds all 36 numbers, and touches no other matrix."""
    want = random(COUNT, 3, 6, 6)
    made = device(want, mat6)
    wp.launch(k_add_matrix, dim=1, inputs=[made, 2, 0, HERE], device="cpu")
    want[HERE, 0] += want[HERE, 2]
    assert np.array_equal(made.numpy(), want)


@wp.kernel
def k_finite(out: Matrix, x: Matrix, i: int):
    out[i, 0] = wp.float64(0.0)
    if is_finite(i, x):
        out[i, 0] = wp.float64(1.0)


@pytest.mark.parametrize("size", [0, 1, 7, 8, 21])
def test_is_finite(size):
    """is_finite( finds one number of any place that is none, however large the others are."""
    x = 1e308 * random(COUNT, size)
    assert changed(k_finite, [np.zeros((COUNT, 1))], device(x))[0][0] == 1.0
    for at in range(size):
        for bad in (np.nan, np.inf, -np.inf):
            wrong = x.copy()
            wrong[HERE, at] = bad
            assert changed(k_finite, [np.zeros((COUNT, 1))], device(wrong))[0][0] == 0.0


@wp.kernel
def k_turned(S: Matrix, x: ColumnsStruct, k: int, A: mat3, B: mat3, i: int):
    put_turned_columns(x, i, k, A, B, S)


@pytest.mark.parametrize("k", SITES)
def test_turned_columns(k):
    """put_turned_columns( writes [A, B] Φ₁ on the node's own blocks, and nothing else."""
    A, B = random(2, 3, 3)
    own = np.arange(MODEL.nodes.v_start[k] // 8 * 8, (MODEL.nodes.v_stop[k] + 7) // 8 * 8)
    S = random(COUNT, 6 * NODES * WIDTH)
    (out,) = changed(k_turned, [S], X, k, mat3(A), mat3(B))
    want = S[HERE].reshape(NODES, 6, WIDTH).copy()
    want[k][:, own] = (pair(A, B) @ dense_phi(k)[0])[:, own]
    assert np.allclose(out.reshape(want.shape), want, atol=1e-15)


@wp.kernel
def k_square(M: Matrix, b: MassBuffersStruct, nv: int, width: int, i: int):
    put_square(nv, width, b, i, M)


def test_put_square():
    """put_square( adds the transpose to the half, in rows of nv numbers."""
    b = MassBuffersStruct()
    half = random(COUNT, NV * WIDTH)
    b.half = device(half)
    (out,) = changed(k_square, [np.zeros((COUNT, NV * NV))], b, NV, WIDTH)
    X_half = half[HERE].reshape(NV, WIDTH)[:, :NV]
    assert np.array_equal(out.reshape(NV, NV), X_half + X_half.T)


@wp.kernel
def k_rigid(M: Matrix, t: TablesStruct, q: Matrix, origin: wp.array2d(dtype=vec3), bodies: Matrix, i: int):
    rigid_mass(t, i, q, origin, bodies, M)


def rigid_tree():
    """Two trees: one that slides, then branches, with a link that carries nothing, and one that is fixed."""
    made = ls.Robot("rigid")
    at = np.eye(4)
    at[:3, 3] = 0.3, -0.2, 0.1
    rows = (
        ("rail", None, ls.JointPrismatic((0, 1, 0))), ("left", "rail", ls.JointRevolute((0.6, 0, 0.8))),
        ("none", "rail", ls.JointFixed()), ("right", "none", ls.JointHelical((0, 0, 1), pitch=0.1)),
        ("post", None, ls.JointFixed()), ("flag", "post", ls.JointRevolute((0, 1, 0))),
    )  # fmt: skip
    for k, (name, parent, joint) in enumerate(rows):
        body = None if name == "none" else ls.RigidBody(1.0 + k, (0.1, 0.02 * k, -0.1), (0.05, 0.04, 0.03))
        made.add_link(name, body, joint, parent=parent, placement=at)
    return made.build()


def test_rigid_mass():
    """rigid_mass( fills Σ Jᵀ M J of all bodies, J of products of exponentials, and every place of the result."""
    model = rigid_tree()
    nodes, q = model.nodes, random(COUNT, model.nq)
    origin, bodies = device(np.zeros((COUNT, len(model.bases.position), 3)), vec3), rigid_buffers(model, COUNT).bodies
    arguments = device_tables(model), device(q), origin, bodies
    (out,) = changed(k_rigid, [random(COUNT, model.nv**2)], *arguments)
    poses, columns, want = [], [], np.zeros((model.nv, model.nv))
    for k, parent in enumerate(nodes.parent):
        g, J = (poses[parent], columns[parent]) if parent >= 0 else (np.eye(4), np.zeros((6, model.nv)))
        moved = nodes.screw[k] * (q[HERE, nodes.v_start[k]] if nodes.v_stop[k] > nodes.v_start[k] else 0.0)
        step = nodes.placement[k] @ se3_exp(moved)
        poses.append(g @ step)
        columns.append(np.linalg.solve(se3_Ad(step), J))
        columns[k][:, nodes.v_start[k] : nodes.v_stop[k]] += nodes.screw[k, :, None]
        want += columns[k].T @ nodes.inertia[k] @ columns[k]
    assert np.allclose(out.reshape(want.shape), want, rtol=0, atol=1e-14 * np.abs(want).max())
