"""What only some robots have, inside kernels: kinds of nodes, loops, ties between nodes, elastic tendons.

Kernels composed for a model know which of these kinds of nodes it has, and whether it has any of the rest
(kernel_options): otherwise the answer is a constant, and the compiler leaves out what stands behind it. Plain robots do
not pay for it, nor does their compilation, which takes two thirds of the time. The rest is one thing and not several:
a robot that gets one more of it then needs no other kernels.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportGeneralTypeIssues=false

from __future__ import annotations

import warp as wp

from lissom.lie.types import MORE, RARE, served
from lissom.robot.joints import MotionKind


@wp.func_native(f"return !({' || '.join(map(served, RARE))}) || kind == {MotionKind.EXP.value};")
def is_exp(kind: int) -> bool:
    """Whether a node's pose is the exponential of its coordinates, as all poses of plain robots are."""
    ...


@wp.func_native(f"return {served('MAP')} && kind == {MotionKind.MAP.value};")
def is_mapped(kind: int) -> bool:
    """Whether a node's pose is any function of its coordinates."""
    ...


@wp.func_native(f"return {served('BODY')} && kind == {MotionKind.BODY.value};")
def is_body(kind: int) -> bool:
    """Whether a node is the frame of a deformable body."""
    ...


@wp.func_native(f"return {served(MORE)} && has_quaternion;")
def is_stored(has_quaternion: bool) -> bool:
    """Whether a node's pose is stored in q, as those of spherical and free joints are."""
    ...


@wp.func_native(f"return {served(MORE)};")
def may_be_stored() -> bool:
    """Whether some poses may be stored in q."""
    ...


@wp.func_native(f"return {served(MORE)};")
def may_have_loops() -> bool:
    """Whether there may be loops."""
    ...


@wp.func_native(f"return {served(MORE)};")
def may_be_tied() -> bool:
    """Whether something else than joints may tie two nodes: contacts, springs, straight pieces of tendons."""
    ...


@wp.func_native(f"return {served(MORE)};")
def may_stretch() -> bool:
    """Whether there may be elastic tendons."""
    ...
