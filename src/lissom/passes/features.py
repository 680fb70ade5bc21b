"""Features that only some robots have, inside kernels: kinds of nodes, loops, couplings of nodes, elastic tendons, and
contact shapes.

Kernels are composed for a model by compiler options (kernel_options): one for each rare kind of nodes, one for the
rare contact shapes, and one for all other features together. Without the option a function here returns a constant, and
the compiler removes the code that depends on it. Kernels of robots without these features are faster, and compile in
two thirds of the time. One option stands for several features, so that a robot that gets another one of them needs no
new kernels. Robots that have contacts, but no loops, springs, fluid, nor straight or elastic tendons have an option of
their own, since kernels with all of these compile much longer. If such a robot is rigid (`is_rigid_with_contacts`),
another option leaves out rods and tendons.

The compiler removes such code before it optimises it, which saves time, if the condition only decides which functions
are called. Behind `not`, or if a branch assigns a variable that is used later, it optimises the code first.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportGeneralTypeIssues=false

from __future__ import annotations

import numpy as np
import warp as wp

from lissom.lie.types import CONTACTS, FEATURES, RARE, RIGID, SHAPES, served
from lissom.model.groups import Nodes
from lissom.model.model import Model
from lissom.robot.joints import MotionKind
from lissom.robot.shapes import ShapeKind


def optional_kinds(nodes: Nodes) -> tuple[str, ...]:
    """Names of the kinds among the nodes that kernels serve only with an option."""
    return tuple(kind.name for kind in MotionKind if kind.name in RARE and (nodes.kind == kind.value).any())


def are_single_screws(nodes: Nodes) -> np.ndarray:
    """Whether each node is a fixed joint at its placement, or turns about or slides along one axis."""
    moves = nodes.h != 1.0
    for x in (nodes.kappa, nodes.v_stop - nodes.v_start, *nodes.xi1.T, *nodes.xi2.T):
        moves |= x != 0
    return (nodes.kind == MotionKind.EXP.value) & (nodes.is_screw | ~moves)


def is_rigid_with_contacts(model: Model) -> bool:
    """Whether the links of a robot are rigid and contacts are its only feature. Its kernels leave out rods and tendons.

    Its joints are fixed, have one axis, or are spherical or free without springs. There are no point loads.
    """
    nodes, others = model.nodes, (model.channels.names, model.loads.node, model.pose_springs.node)
    if not model.has_contacts_only or any(len(rows) > 0 for rows in others):
        return False
    return bool((nodes.has_quaternion | are_single_screws(nodes)).all())


@wp.func_native(f"return !({' || '.join(map(served, RARE))}) || kind == {MotionKind.EXP.value};")
def is_exp(kind: int) -> bool:
    """Whether a node's pose is the exponential of its coordinates."""
    ...


@wp.func_native(f"return {served(SHAPES)} && kind >= {ShapeKind.TORUS.value};")
def is_rare_shape(kind: int) -> bool:
    """Whether the shape of an obstacle is one of forces/rare_shapes."""
    ...


@wp.func_native(f"return ({served(FEATURES)} || {served(CONTACTS)}) && has_quaternion;")
def has_stored_pose(has_quaternion: bool) -> bool:
    """Whether a node's pose is stored in q with a quaternion: those of spherical and free joints."""
    ...


@wp.func_native(f"return {served(FEATURES)} || {served(CONTACTS)};")
def may_have_stored_poses() -> bool:
    """Whether some nodes may have poses that are stored in q."""
    ...


@wp.func_native(f"#ifdef {served(RIGID)}\n    return false;\n#else\n    return true;\n#endif\n")
def may_have_strains() -> bool:
    """Whether some nodes may be intervals of rods, or joints whose constant twist is no screw."""
    ...


@wp.func_native(f"#ifdef {served(RIGID)}\n    return true;\n#else\n    return false;\n#endif\n")
def are_all_screws() -> bool:
    """The opposite of `may_have_strains`, since the compiler spends time on code that `not` excludes."""
    ...


@wp.func_native(
    f"#ifdef {served(RIGID)}\n    return false;\n#else\n    return {served(FEATURES)} || {served(CONTACTS)};\n#endif\n"
)
def may_have_pose_springs() -> bool:
    """Whether spherical and free joints may have springs."""
    ...


@wp.func_native(f"return {served(FEATURES)};")
def may_have_loops() -> bool:
    """Whether there may be loops."""
    ...


@wp.func_native(f"return {served(FEATURES)} || {served(CONTACTS)};")
def may_have_couplings() -> bool:
    """Whether contacts, springs or straight pieces of tendons may couple two nodes."""
    ...


@wp.func_native(f"return {served(FEATURES)};")
def may_have_straight_tendons() -> bool:
    """Whether tendons may have straight pieces between links."""
    ...


@wp.func_native(f"return {served(FEATURES)};")
def may_have_elastic_tendons() -> bool:
    """Whether there may be elastic tendons."""
    ...
