"""Dry friction of joints: the laws of Coulomb and Stribeck on a coordinate, smooth at rest.

At the rate v of a coordinate friction is the force

    f = −C(v) v/√(v² + v_s²),   C = F + (F_s − F) exp(−(v/v_f)²)                                           (1)
    ∂f/∂v = −C v_s²/(v² + v_s²)^(3/2) − C' v/√(v² + v_s²),   C' = −2 v/v_f² (F_s − F) exp(−(v/v_f)²)       (2)

with sliding friction F and static friction F_s. F_s falls to F over the speed v_f. At speeds far below the slip speed
v_s friction is linear damping, F_s/v_s, so that a joint under a force P < F_s creeps at v_s P/√(F_s² − P²).

Source: R. Stribeck, Z. VDI 46, 1902; the exponential form by L. C. Bo and D. Pavelescu, Wear 82, 1982.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false, reportAttributeAccessIssue=false
# pyright: reportIndexIssue=false

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from lissom.forces.springs import bound_to_coordinates, no_law_of_user
from lissom.forces.term import Term
from lissom.lie import so3
from lissom.model.model import Model
from lissom.model.tables import TermRows
from lissom.passes.scratch import SPRINGS
from lissom.robot.joints import friction_numbers, has_friction


@wp.func
def friction_of(rows: TermRows, e: int, x: wp.float64, v: wp.float64, law: wp.Function):
    """−f of (1) of row e of the table, and its derivatives by the coordinate, 0, and by its rate (2)."""
    most = rows.number[e, 0]
    slope = so3.ZERO
    if rows.number[e, 1] != so3.ZERO:
        z = v / rows.number[e, 2]
        static = rows.number[e, 1] * wp.exp(-z * z)
        most += static
        slope = -so3.TWO * z / rows.number[e, 2] * static
    v_s = rows.number[e, 3]
    size = wp.sqrt(v * v + v_s * v_s)
    part = v_s / size
    return most * (v / size), so3.ZERO, slope * (v / size) + most * part * part / size


def _bound(place: Any) -> dict[str, Any]:
    return bound_to_coordinates(place, no_law_of_user, friction_of)


def _tables(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Each coordinate of a joint with friction, in v and in q (n, 2), and its F, F_s − F, v_f and v_s (n, 4)."""
    index, numbers = [np.zeros((0, 2), dtype=np.int32)], [np.zeros((0, 4))]
    for name, joint, first in zip(model.links.names, model.links.joint, model.links.v_start.tolist()):
        rows = friction_numbers(joint, f"link {name!r} > joint")
        own = first + np.arange(len(rows), dtype=np.int32)
        index.append(np.stack([own, model.dofs.q[own]], axis=1).astype(np.int32))
        numbers.append(rows)
    return np.vstack(index), np.vstack(numbers)


TERM = Term(
    "dry friction of joints",
    int(SPRINGS),
    lambda model: any(map(has_friction, model.links.joint)),
    bind=_bound,
    tables=_tables,
)
