"""Two modules of one small kernel each, compiled in a moment, for tests of compiling and of other processes."""

import numpy as np
import warp as wp

from lissom.lie import so3
from lissom.lie.types import kernel_options, vec3

wp.set_module_options(kernel_options())


@wp.kernel
def rotated(w: wp.array(dtype=vec3), R: wp.array2d(dtype=wp.float64)):  # type: ignore[valid-type]
    i = wp.tid()
    turn = so3.exp(w[i])
    for r in range(3):
        for c in range(3):
            R[i, 3 * r + c] = turn[r, c]


@wp.kernel(module="unique", module_options=kernel_options())
def doubled(x: wp.array(dtype=wp.float64)):  # type: ignore[valid-type]
    x[wp.tid()] *= wp.float64(2.0)


def quarter():
    """The rotation by a quarter about z, by the kernel, row by row."""
    R = wp.zeros((1, 9), dtype=wp.float64, device="cpu")
    w = wp.array([[0.0, 0.0, 0.5 * np.pi]], dtype=vec3, device="cpu")
    wp.launch(rotated, 1, [w, R], device="cpu")
    return R.numpy()[0].round(12).tolist()
