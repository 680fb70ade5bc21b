"""B-splines as strain basis: polynomials between chosen knots, joined as smoothly as their degree allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from lissom.robot import checks
from lissom.robot.bases import MOST_ORDER, StrainwiseBasis
from lissom.robot.fields import Numbers

MOST_DEGREE = 20


@final
@dataclass(frozen=True)
class BasisBSpline(StrainwiseBasis):
    """B-splines on a clamped knot vector; each strain has a degree and knots of its own.

    Degree k on m spans has m + k modes, which are >= 0 and sum to 1. They are smooth but for their derivative of order
    k, which jumps at the knots; with k = 0 a knot belongs to the span after it.

    Args:
        torsion, bending_y, bending_z, elongation, shear_y, shear_z: (degree, number of equal spans) of each strain, or
            (degree, interior knots) with knots that rise inside (0, 1); None leaves the strain at its reference.
    """

    torsion: Numbers | None = None
    bending_y: Numbers | None = None
    bending_z: Numbers | None = None
    elongation: Numbers | None = None
    shear_y: Numbers | None = None
    shear_z: Numbers | None = None

    @staticmethod
    def count(order: Any) -> int:
        return order[0] + len(BasisBSpline.knots(order)) + 1

    @staticmethod
    def functions(order: Any, s: float) -> np.ndarray:
        from scipy.interpolate import BSpline  # describing a robot needs no SciPy, but for splines

        degree, ends = order[0], np.ones(order[0] + 1)
        clamped = np.concatenate([0.0 * ends, BasisBSpline.knots(order), ends])
        return BSpline.design_matrix(np.clip([float(s)], 0.0, 1.0), clamped, degree).toarray()[0]

    @staticmethod
    def knots(order: Any) -> tuple[float, ...]:
        spans = order[1]
        if _is_list(spans):
            return tuple(float(knot) for knot in spans)
        return tuple(k / int(spans) for k in range(1, int(spans)))

    @staticmethod
    def polynomial_degree(order: Any) -> int:
        return int(order[0])

    @classmethod
    def check_order(cls, order: Any, where: str) -> None:
        rule = "must be (degree, number of spans) or (degree, interior knots)"
        checks.require(_is_list(order) and len(order) == 2, where, rule, order)
        checks.integer(order[0], f"{where} degree", least=0, most=MOST_DEGREE)
        if not _is_list(order[1]):
            checks.integer(order[1], f"{where} spans", least=1, most=MOST_ORDER)
            return
        knots = checks.array(order[1], (-1,), f"{where} knots", "must be a list of numbers")
        checks.require(len(knots) < MOST_ORDER, f"{where} knots", f"must be fewer than {MOST_ORDER}", len(knots))
        inside = bool((np.diff(np.concatenate([[0.0], knots, [1.0]])) > 0).all())
        checks.require(inside, f"{where} knots", "must rise strictly inside (0, 1)", order[1])


def _is_list(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return isinstance(value, Sequence) and not isinstance(value, str)
