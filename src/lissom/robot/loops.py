"""Loops: joints that close a chain of links.

A closed loop has g_BA = g_B⁻¹ g_A equal to a motion h of its joint. With h the motion of the joint nearest to g_BA, the
residual e of the loop is

    g_BA = exp(ε) h,   e = Φ⊥ᵀ ε = 0                                                                      (1)

Φ⊥ complements the joint's motion subspace, in the axes of B. For a fixed joint, ε is the logarithm of Mathew 2025
(47c). For other joints e has no jump if the joint itself turns by π. The motions of a universal joint form no group:
its rotational residual is a₁ᵀR a₂ − a₁ᵀa₂, with the axis a₁ fixed in B and a₂ fixed in A.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, NamedTuple, final

import numpy as np

from lissom.errors import ModelError
from lissom.robot import checks
from lissom.robot.fields import LINK_OR_WORLD, LinkName, Place, Placement
from lissom.robot.joints import Joint, JointFixed, MotionKind, acting_fields

_SMALL = 1e-9


class Closure(NamedTuple):
    """Constants of the constraint (1) of a joint.

    Fields:
        rows: Φ⊥ᵀ, shape (m, 6). The rotational row of a universal joint is zero.
        is_hinge: mask (m,) of that row.
        turns: 0 for a joint that does not rotate, 1 for a joint that rotates about `axis`, 3 for a joint that rotates
            about any axis.
        axis: unit vector (3,) of the rotation.
        slide: projector (3, 3) onto the directions along which the joint slides.
        pitch: advance along the axis [m/rad].
        hinge: a₁ and a₂ / |a₁ × a₂| of a universal joint, shape (2, 3); zero for other joints.
    """

    rows: np.ndarray
    is_hinge: np.ndarray
    turns: int
    axis: np.ndarray
    slide: np.ndarray
    pitch: float
    hinge: np.ndarray

    @property
    def holds_turns(self) -> bool:
        """Whether the constraint depends on the orientation of the frames. It does not for a spherical joint."""
        return bool(self.rows[:, :3].any() or self.is_hinge.any())


@final
@dataclass(frozen=True)
class Loop:
    """A joint that closes a chain. It connects frame B to frame A; both are frames on links, or B is fixed in the
    world.

    Args:
        name: unique among the loops.
        link_a: name of the link that carries frame A.
        link_b: name of the link that carries frame B; None is the world.
        s_a, s_b: abscissae on rods, or places on deformable bodies.
        placement_a, placement_b: poses (4, 4) of frames A and B in their links' frames at s, or in the world; None is
            the identity.
        joint: any joint except JointFree and JointCustom, without spring, damper and stops. Its axes are given in frame
            B. At its neutral configuration the axes of frames A and B agree.
    """

    name: str
    link_a: LinkName
    link_b: Annotated[str | None, LINK_OR_WORLD, "s_b", "placement_b"] = None
    s_a: Place = 1.0
    s_b: Place = 1.0
    placement_a: Placement = None
    placement_b: Placement = None
    joint: Joint = field(default_factory=JointFixed)

    def check(self, where: str) -> None:
        """Raise ModelError where the description breaks a rule."""
        for side in ("a", "b"):
            checks.place(getattr(self, f"s_{side}"), f"{where}: s_{side}")
            checks.pose(getattr(self, f"placement_{side}"), f"{where}: placement_{side}")
        checks.require(isinstance(self.joint, Joint), f"{where} > joint", "must be a Joint", self.joint)
        self.joint.check(f"{where} > joint")
        rule = "must be zero: put the spring on a joint of the tree and close the chain elsewhere"
        for name in acting_fields(self.joint):
            raise checks.fail(f"{where} > joint: {name}", rule, getattr(self.joint, name))
        self.closure(where)

    def closure(self, where: str) -> Closure:
        """The constraint of the joint."""
        motions = self.joint.motions(f"{where} > joint")
        kinds = [motion.kind for motion in motions]
        rule = "must be one of the joints with axes: close the chain elsewhere"
        checks.require(MotionKind.MAP not in kinds, f"{where} > joint", rule, self.joint)
        rule = "must hold something: a free joint closes no loop"
        checks.require(MotionKind.FREE not in kinds, f"{where} > joint", rule, self.joint)
        Phi = np.hstack([np.zeros((6, 0)), *(motion.Phi for motion in motions)])
        turning = np.linalg.norm(Phi[:3], axis=0) > _SMALL
        slide = _projector(Phi[3:, ~turning])
        rank = int(np.linalg.matrix_rank(Phi[:3], tol=_SMALL))
        if MotionKind.SPHERICAL in kinds or rank == 3:
            return _ball(slide, rank, where)
        if rank == 2:
            return _hinge(Phi, slide, where)
        return _axial(Phi[:, turning], slide, where)


def _projector(directions: np.ndarray) -> np.ndarray:
    """Projector (3, 3) onto the span of the columns of `directions` (3, n)."""
    if directions.shape[1] == 0:
        return np.zeros((3, 3))
    U, size, _ = np.linalg.svd(directions)
    U = U[:, : int((size > _SMALL).sum())]
    return U @ U.T


def _complement(taken: np.ndarray) -> np.ndarray:
    """Orthonormal rows (n, 3), normal to the range of the projector `taken`. They follow the axes of the frame if
    possible."""
    rows: list[np.ndarray] = []
    for axis in np.eye(3):
        left = axis - taken @ axis - sum((row * (row @ axis) for row in rows), np.zeros(3))
        size = float(np.linalg.norm(left))
        if size > 0.5:
            rows.append(left / size)
    if len(rows) < round(3 - np.trace(taken)):  # no axis is near a missing direction
        return np.linalg.svd(np.eye(3) - taken)[2][: round(3 - np.trace(taken))]
    return np.array(rows).reshape(-1, 3)


def _wide(turn: np.ndarray, push: np.ndarray) -> np.ndarray:
    """Rows (n, 3) for rotations and rows (m, 3) for translations as rows (n + m, 6)."""
    return np.vstack([np.hstack([turn, np.zeros_like(turn)]), np.hstack([np.zeros_like(push), push])])


def _ball(slide: np.ndarray, rank: int, where: str) -> Closure:
    """The constraint of a joint that rotates about any axis."""
    if slide.any():
        raise ModelError(f"{where} > joint: must not slide, if it turns about any axis (got {rank} turns and a slide)")
    rows = _wide(np.zeros((0, 3)), np.eye(3))
    return Closure(rows, np.zeros(3, dtype=bool), 3, np.zeros(3), slide, 0.0, np.zeros((2, 3)))


def _hinge(Phi: np.ndarray, slide: np.ndarray, where: str) -> Closure:
    """The constraint of a universal joint: two rotations, the first of which turns the axis of the second."""
    if Phi.shape[1] != 2 or np.abs(Phi[3:]).max() > _SMALL:
        raise ModelError(f"{where} > joint: must be two turns alone, if it turns about two axes (got {Phi.T.tolist()})")
    rows = _wide(np.zeros((1, 3)), np.eye(3))
    first, second = Phi[:3].T
    hinge = np.array([first, second / np.linalg.norm(np.cross(first, second))])
    return Closure(rows, np.array([True, False, False, False]), 3, np.zeros(3), slide, 0.0, hinge)


def _axial(turning: np.ndarray, slide: np.ndarray, where: str) -> Closure:
    """The constraint of a joint that rotates about at most one axis through its origin, and may slide, with or without
    a pitch."""
    none = np.zeros((2, 3))
    if turning.shape[1] == 0:
        rows = _wide(np.eye(3), _complement(slide))
        return Closure(rows, np.zeros(len(rows), dtype=bool), 0, np.zeros(3), slide, 0.0, none)
    size = float(np.linalg.norm(turning[:3, 0]))
    axis, push = turning[:3, 0] / size, turning[3:, 0] / size
    push = push - slide @ push
    pitch = float(axis @ push)
    if turning.shape[1] > 1 or np.linalg.norm(push - pitch * axis) > _SMALL:
        raise ModelError(f"{where} > joint: its turns must be about one axis through its origin "
                         f"(got {turning.T.tolist()})")  # fmt: skip
    along = np.outer(axis, axis)
    across = slide - along @ slide
    if not (np.abs(slide @ along - along @ slide).max() < _SMALL and round(float(np.trace(across))) in (0, 2)):
        raise ModelError(f"{where} > joint: its rotation must keep its directions of sliding (got {slide.tolist()})")
    rows = _wide(_complement(along), _complement(slide))
    if pitch != 0.0:
        screw = np.concatenate([-pitch * axis, axis])
        rows = np.vstack([_wide(_complement(along), _complement(slide + along)), screw])
    return Closure(rows, np.zeros(len(rows), dtype=bool), 1, axis, slide, pitch, none)
