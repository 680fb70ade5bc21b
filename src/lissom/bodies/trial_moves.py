"""What a motion must do about the reference shape, tried with a few small θ, whatever it was made for.

Each coordinate moves no point by more than a hundredth of the body. Nodes of a mesh move by parts of the size of its
cells: each coordinate changes ∂f/∂x by no more than a hundredth there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, final

import numpy as np

from lissom.bodies import cubature
from lissom.bodies.domains import Domain, Quadrature, SweptDomain
from lissom.bodies.kinematics import Kinematics
from lissom.bodies.materials import Hyperelastic
from lissom.bodies.resolution import limits_of, reach
from lissom.robot import checks

_MOVED, _STRAINED = 1e-2, 1e-2  # in sizes of the body, and of ∂f/∂x
_LOOKS = 4  # θ that are tried
_PLACE = 1e-9  # how far f(x, 0) may be from x, in sizes of the body
_VOLUME = 1e-9  # how far det ∂f/∂x may be from one where volume is kept
_BLOCK = 1 << 20  # numbers that are made of points in one go
_MOST_PLACES = 500  # points whose positions are looked at, unless they are those of a mesh
_RANK = 1e-9  # singular value, relative to the largest, of coordinates that depend on each other
_NAMED = 6  # numbers that a message lists
_RIGID = 1e-9  # strain of sections that are rigid
_TOO_STIFF = 1e-3  # part by which a law may be too stiff for rigid sections


@final
class TrialMoves:
    """Small θ of a motion, what they move, and what is wrong with that.

    Args:
        kinematics, quadrature: of a body, as chosen.
    """

    def __init__(self, kinematics: Kinematics, quadrature: Quadrature) -> None:
        self.kinematics, self.points = kinematics, quadrature.points
        self.size = float(np.ptp(self.points, axis=0).max()) or 1.0
        zero = np.zeros(kinematics.n)
        self._blocks = list(self._in_blocks())
        strained = np.max([reach(moved.slopes(zero)[1]) for _, moved in self._blocks], axis=0)
        self._placed = self._blocks
        if not kinematics.is_of_cells and len(self.points) > _MOST_PLACES:
            some = self.points[:: len(self.points) // _MOST_PLACES]
            self._placed = [(some, kinematics.samples(some))]
        shifted = np.max([reach(moved.positions(zero)[1]) for _, moved in self._placed], axis=0)
        most = _STRAINED if kinematics.is_of_cells else np.inf
        limits = limits_of(shifted, strained, _MOVED * self.size, most)
        self.q = np.random.default_rng(0).uniform(-1.0, 1.0, (_LOOKS, kinematics.n)) * limits  # NaN: moves nothing
        self.q[0] = 0.0 * limits
        self.rigid_sections = False

    def _in_blocks(self) -> Iterator[tuple[np.ndarray, Any]]:
        step = max(256, _BLOCK // (12 * self.kinematics.n))
        for k in range(0, len(self.points), step):
            some = self.points[k : k + step]
            yield some, self.kinematics.samples(some)

    def check(self, where: str) -> None:
        """f(x, 0) = x, every coordinate moves something, and nothing folds near the reference shape."""
        for x, moved in self._placed:
            p = moved.positions(np.zeros(self.kinematics.n))[0]
            worst = int(np.argmax(np.abs(p - x).max(axis=1)))
            near = np.abs(p - x).max() <= _PLACE * self.size  # not so for NaN
            checks.require(bool(near), where, f"f(x, 0) must be x = {x[worst].tolist()}", p[worst])
        for k in np.flatnonzero(~np.isfinite(self.q).all(axis=0))[:1]:
            rule = f"coordinate {k} must move some point of the quadrature at θ = 0, with a finite derivative"
            checks.require(False, where, rule, float(self.q[1, k]))
        lateral, axial = 0.0, 0.0
        for q in self.q:
            for x, moved in self._blocks:
                F = moved.slopes(q)[0]
                self._check_slopes(x, F, q, where)
                C = F.swapaxes(1, 2) @ F - np.eye(3)
                lateral, axial = (
                    max(lateral, float(np.abs(C[:, 1:, 1:]).max())),
                    max(axial, float(np.abs(C[:, 0, 0]).max())),
                )
        self.rigid_sections = lateral <= _RIGID < 1e-3 * axial

    def _check_slopes(self, x: np.ndarray, F: np.ndarray, q: np.ndarray, where: str) -> None:
        J = np.linalg.det(F)
        checks.require(bool(np.isfinite(J).all()), where, "must be finite, with its derivatives, at θ =", short(q))
        k = int(np.argmin(J))
        rule = f"folds: det ∂f/∂x must be > 0 at x = {x[k].round(9).tolist()}, θ = {short(q)}"
        checks.require(bool(J[k] > 0.0), where, rule, float(J[k]))
        k = int(np.argmax(np.abs(J - 1.0)))
        rule = f"must keep volume, as it says: det ∂f/∂x must be 1 at x = {x[k].round(9).tolist()}, θ = {short(q)}"
        kept = not self.kinematics.keeps_volume or abs(J[k] - 1.0) <= _VOLUME
        checks.require(bool(kept), where, rule, float(J[k]))


def check_independent(kinematics: Kinematics, domain: Domain, quadrature: Quadrature, tried: np.ndarray,
                      where: str) -> None:  # fmt: skip
    """Raise ModelError where the mass matrix is singular: the coordinates depend on each other, or the points are too
    few to tell them apart; `tried` are θ (k, n), zero first."""
    if kinematics.is_of_cells:
        return
    points = quadrature.points[:: max(1, len(quadrature.points) // max(_MOST_PLACES, 4 * kinematics.n))]
    of_points = _dependence(kinematics, points, quadrature.points, tried)
    if of_points is None and (not isinstance(domain, SweptDomain) or domain.is_chosen_by_body):
        return
    finely = quadrature.points
    if isinstance(domain, SweptDomain):
        along = cubature.line(max(12, kinematics.n + 2), kinematics.breaks)
        second = cubature.equidistant(8) if domain.goes_round else cubature.line(3)
        finely = domain.product(along, cubature.line(3), second).points
    at_all = _dependence(kinematics, finely, finely, tried)
    if at_all is not None:
        which, what = at_all
        rule = f"coordinates {_listed(which)} depend on each other: {what}, so that the mass matrix is singular; leave"
        checks.require(False, where, f"{rule} out what the others do. Number of coordinates", kinematics.n)
    if of_points is not None:
        which, what = of_points
        rule = f"its points are too few to tell coordinates {_listed(which)} apart ({what}): take a higher degree, or"
        checks.require(False, where, f"{rule} None, which chooses it. Points", len(quadrature.points))


def _dependence(
    kinematics: Kinematics, places: np.ndarray, points: np.ndarray, tried: np.ndarray
) -> tuple[np.ndarray, str] | None:
    """Coordinates that together move no point at one of some θ, or strain none at zero although each does alone, and
    which of the two."""
    moved = kinematics.samples(places)
    for q in tried:
        which = _null(moved.positions(q)[1])
        if which is not None:
            at = "in the reference shape" if not q.any() else f"at θ = {short(q)}"
            return which, f"together they move nothing {at}"
    F_j = (moved if points is places else kinematics.samples(points)).slopes(tried[0])[1]
    which = _null(F_j + F_j.swapaxes(1, 2))
    return None if which is None else (which, "together they strain nothing in the reference shape")


def _null(slopes: np.ndarray) -> np.ndarray | None:
    """Which of the columns of arrays (N, ..., n) are dependent; those that are zero are left out."""
    rows = slopes.reshape(-1, slopes.shape[-1])
    sizes = np.linalg.norm(rows, axis=0)
    used = np.flatnonzero(sizes > 1e-12 * sizes.max(initial=0.0))
    if len(used) < 2 or not np.isfinite(rows).all():
        return None
    R = np.linalg.qr(rows[:, used] / sizes[used], mode="r")
    _, square, turn = np.linalg.svd(R)
    if len(square) == len(used) and square[-1] > _RANK * square[0]:
        return None
    return used[np.abs(turn[-1]) > 0.05 * np.abs(turn[-1]).max()]


def too_stiff(law: Hyperelastic) -> float:
    """By how much a law is stiffer along x where sections cannot expand than where they are free to, relative; 0 where
    it is right."""
    C = law.moduli().reshape(3, 3, 3, 3)
    pairs = [(0, 0), (1, 1), (2, 2), (1, 2)]
    A = np.array([[C[a, b, c, d] for c, d in pairs] for a, b in pairs])
    free = A[0, 0] - A[0, 1:] @ np.linalg.lstsq(A[1:, 1:], A[1:, 0], rcond=1e-10)[0]
    more = A[0, 0] / free - 1.0 if free > 1e-12 * abs(A[0, 0]) else np.inf
    return more if more > _TOO_STIFF else 0.0


def short(q: np.ndarray) -> str:
    """θ, or how large they are where they are many."""
    if len(q) <= _NAMED:
        return str([float(f"{x:.6g}") for x in q])
    return f"{len(q)} coordinates up to {np.abs(q).max():.2g}"


def _listed(which: np.ndarray) -> str:
    words = [str(int(k)) for k in which[:_NAMED]]
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(which) <= _NAMED else f"{', '.join(words)} and more"
