"""What blocks have in common with those they hang on, as native functions against NumPy."""

import numpy as np
import pytest
import warp as wp
from native.native_calls import COUNT, HERE, MODEL, NODES, NV, WIDTH, X, changed, device, random

from lissom.lie.types import kernel_options, mat6
from lissom.passes import attachments as j
from lissom.passes.columns import ColumnsStruct, Matrix

wp.set_module_options(kernel_options())


@pytest.fixture(scope="module")
def tables():
    """The tables of the branched robot, whichever way its derivatives would go."""
    model = MODEL.models[0] if MODEL.models else MODEL
    model.cache.pop(("attachments",), None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(j, "_LEAST_GAIN", 0.0)
        made = j.attachments(MODEL, COUNT)
    model.cache.pop(("attachments",), None)
    return made


def listed(z, name, attachment):
    """Columns on the stretches listed for an attachment."""
    start, ranges = (getattr(z, f"{name}_{end}").numpy() for end in ("start", "range"))
    pairs = ranges[start[attachment] : start[attachment + 1]].reshape(-1, 2)
    return np.concatenate([np.zeros(0, int), *(np.arange(*pair) for pair in pairs)])


@wp.kernel
def k_transposed(
    x: ColumnsStruct, z: j.AttachmentsStruct, M: mat6, N: mat6, H: mat6, k: int, node: int, L: Matrix, i: int
):
    j.add_transposed_products(x, z, M, N, H, i, k, node, L)


@wp.kernel
def k_clear(x: ColumnsStruct, z: j.AttachmentsStruct, i: int):
    j.clear_products(x, z, i)


@wp.kernel
def k_between(
    out: Matrix, x: ColumnsStruct, z: j.AttachmentsStruct, attachment: int, first: int, stop: int, s_at: int, S: Matrix,
    v_at: int, V: Matrix, i: int,
):  # fmt: skip
    j.fold_between(x, z.beyond_start, z.beyond_range, attachment, first, stop, i, s_at, S, v_at, V, out)


@wp.kernel
def k_forget(W: Matrix, x: ColumnsStruct, z: j.AttachmentsStruct, attachment: int, k: int, i: int):
    j.clear_foreign_columns(x, z, attachment, i, k, W)


def test_products_of_a_block(tables):
    """add_transposed_products sums Mᵀ L of a node's own block, clear_products forgets them."""
    M, N, H = random(3, 6, 6)
    L, of_node = random(COUNT, 6 * NODES * WIDTH), tables.of_node.numpy()
    k = int(np.flatnonzero(of_node >= 0)[-1])
    home = listed(tables, "home", k)
    for times in (1, 2):
        given = [X, tables, *map(mat6, (M, N, H)), k, 1, device(L), HERE]
        wp.launch(k_transposed, dim=1, inputs=given, device="cpu")
        for name, matrix in (("Y_M", M), ("Y_N", N), ("Y_H", H)):
            rows = getattr(tables, name).numpy().reshape(COUNT, -1, 6, WIDTH)
            want = np.zeros_like(rows)
            want[HERE, of_node[k]][:, home] = (times * matrix.T @ L[HERE].reshape(NODES, 6, WIDTH)[1])[:, home]
            assert np.allclose(rows, want, atol=1e-13)
    wp.launch(k_clear, dim=1, inputs=[X, tables, HERE], device="cpu")
    assert not any(getattr(tables, name).numpy().any() for name in ("Y_M", "Y_N", "Y_H"))


def test_rows_between_blocks(tables):
    """fold_between adds Sᵀ V on the columns of an attachment, clear_foreign_columns clears the columns of other
    blocks."""
    S, V = (random(COUNT, 6 * NODES * WIDTH) for _ in range(2))
    out, W = random(COUNT, NV * WIDTH), random(COUNT, 6 * X.n_slots * WIDTH)
    for attachment, k in enumerate(np.flatnonzero(tables.below.numpy() >= 0)):
        beyond = listed(tables, "beyond", attachment)
        (new,) = changed(k_between, [out], X, tables, attachment, 1, 4, 0, device(S), 2, device(V))
        want = out[HERE].reshape(NV, WIDTH).copy()
        want[1:4, beyond] += (S[HERE].reshape(NODES, 6, -1)[0].T @ V[HERE].reshape(NODES, 6, -1)[2])[1:4][:, beyond]
        assert np.allclose(new.reshape(want.shape), want, atol=1e-14)
        (new,) = changed(k_forget, [W], X, tables, attachment, int(k))
        want = W[HERE].reshape(-1, 6, WIDTH).copy()
        first = int(MODEL.nodes.v_start[k])
        want[X.slot.numpy()[k], :, first // 8 * 8 : first] = 0.0
        assert np.array_equal(new.reshape(want.shape), want)
