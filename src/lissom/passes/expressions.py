"""The machine that runs programs of expressions (robot/expression_programs), inside kernels.

Kernels composed for robots and inputs without expressions know that (kernel_options), and have an empty function here.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportInvalidTypeForm=false, reportGeneralTypeIssues=false

from __future__ import annotations

import warp as wp

from lissom.lie.native import native_functions
from lissom.lie.types import vec6
from lissom.robot.expression_programs import DEPTH, Operation

native = native_functions("passes/expressions.h", DEPTH=DEPTH, **{code.name: code.value for code in Operation})


@wp.func_native(native("evaluate"))
def evaluate(
    now: wp.float64,
    code: wp.array2d(dtype=wp.int32),
    numbers: wp.array(dtype=wp.float64),
    load: wp.array(dtype=vec6),
    held: wp.array(dtype=wp.float64),
    u: wp.array(dtype=wp.float64),
):
    """Run a program at a time: it puts numbers in place into loads, then into what motions hold, then into inputs."""
    ...
