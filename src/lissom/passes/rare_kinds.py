"""Which nodes are of a kind that few robots have, inside kernels.

Kernels composed for a model know which of these kinds it has (kernel_options): for the others the answer is a constant,
and the compiler leaves out what stands behind it. Robots without them do not pay for it, nor does their compilation.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportGeneralTypeIssues=false

from __future__ import annotations

import warp as wp

from lissom.lie.types import served
from lissom.robot.joints import MotionKind


@wp.func_native(f"return {served('MAP')} && kind == {MotionKind.MAP.value};")
def is_mapped(kind: int) -> bool:
    """Whether a node's pose is any function of its coordinates."""
    ...


@wp.func_native(f"return {served('BODY')} && kind == {MotionKind.BODY.value};")
def is_body(kind: int) -> bool:
    """Whether a node is the frame of a deformable body."""
    ...
