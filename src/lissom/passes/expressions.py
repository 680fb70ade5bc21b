"""A stack machine for programs of expressions (robot/expression_programs), inside kernels.

In kernels for robots and inputs without expressions (kernel_options) the function is empty.
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
    prescribed: wp.array(dtype=wp.float64),
    u: wp.array(dtype=wp.float64),
):
    """Run a program at time `now` [s]. It writes values of loads, of prescribed motions and of inputs.

    Args:
        code, numbers: the program. load: rows of loads. prescribed: positions, velocities and accelerations of
            prescribed coordinates. u: inputs. Places are counted through load, then prescribed, then u.
    """
    ...
