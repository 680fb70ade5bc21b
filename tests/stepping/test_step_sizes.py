"""The law of step sizes: one statement for kernels and for Python."""

import numpy as np
import pytest
import warp as wp

from lissom.stepping import step_sizes

LAWS = {"size_towards": (0, 1), "change_of_size": (0, 1, 2, 3), "cut_of_size": (0, 2)}  # with places of arguments


@wp.kernel
def laws_kernel(x: wp.array2d(dtype=wp.float64), out: wp.array2d(dtype=wp.float64)):
    """All laws of rows of four numbers."""
    i = wp.tid()
    out[i, 0] = step_sizes.size_towards(x[i, 0], x[i, 1])
    out[i, 1] = step_sizes.change_of_size(x[i, 0], x[i, 1], x[i, 2], x[i, 3])
    out[i, 2] = step_sizes.cut_of_size(x[i, 0], x[i, 2])


def test_python_and_kernels_follow_the_same_law():
    """Purpose: steps of Python are as long as those of kernels, for errors of all sizes and after rejected steps."""
    rng = np.random.default_rng(0)
    x = np.column_stack([10.0 ** rng.uniform(-6, 2, 200), 10.0 ** rng.uniform(-6, 2, 200), rng.integers(2, 5, 200),
                         rng.uniform(0.1, 1.2, 200)])  # fmt: skip
    x[::5, 1] *= -1.0
    x[1::5, 1] = x[1::5, 0]
    x[:, 1] = np.where((np.arange(200) % 3 == 0) & (x[:, 1] > 0), np.abs(x[:, 2]), x[:, 1])
    out = wp.zeros((len(x), 3), dtype=wp.float64)
    wp.launch(laws_kernel, len(x), inputs=[wp.array(x, dtype=wp.float64)], outputs=[out])
    for k, (name, places) in enumerate(LAWS.items()):
        law = step_sizes.of_numbers(getattr(step_sizes, name))
        for row, known in zip(x.tolist(), out.numpy()[:, k]):
            assert law(*(row[e] for e in places)) == pytest.approx(known, rel=1e-14), (name, row)
