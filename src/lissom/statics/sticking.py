"""Equilibria among contacts with friction, which depend on how the robot came to rest.

Held at its start q₀ by the forces r(q₀), the robot is let go in equal parts,

    r(q) = (1 − p) r(q₀),   p from 0 to 1                                                                 (1)

and after each part what has begun to touch is anchored where it is, and what slips takes its anchor along. Where
nothing slips and nothing new touches, all parts at once do the same.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np

from lissom.dynamics.contacts import contact_anchors, contact_forces, present_anchors, put_anchors, shares_of_friction
from lissom.errors import AccuracyWarning
from lissom.model.model import Model
from lissom.statics.parts import raised
from lissom.statics.residual import static_residual

PART = 0.05  # of what holds the robot, let go at a time
_AT_LIMIT = 1.0 - 1e-9  # share of friction from which a contact may have slipped
_LOOKED_AT = 100  # rows of a batch that are searched for friction that is left out


def warn_of_dropped_friction(model: Model, q: np.ndarray) -> None:
    """Warn where a contact touches at one of the rows of q whose friction statics leaves out."""
    world = model.surroundings
    moving = [name for name, law in zip(world.contact_names, world.law) if law[3] > 0.0 and law[5] == 0.0]
    moving = [] if model.prescribed.steady is not None else moving
    for row in q[:_LOOKED_AT] if moving else ():
        found = sorted(set(moving) & set(contact_forces(model, row).contact))
        if found:
            warnings.warn(
                f"contact {found[0]!r}: its friction is a law of speed, which is zero at rest: statics leaves it out; "
                "give the contact a stick_stiffness",
                AccuracyWarning,
                stacklevel=3,
            )
            return


def let_go(
    newton: Callable[..., list[Any]],
    model: Model,
    start: Any,
    direct: Any,
    u: np.ndarray,
    t: float,
    tolerance: float,
    limit: int,
) -> Any:
    """Where (1) leads to, its anchors left in the tables of a model that nobody else has.

    Args:
        newton: what iterates, of `equilibrium`. start, direct: the start, and what all parts at once have led to, which
            serves where nothing has slipped, and where the path fails.
    """
    hold = static_residual(model, start.q, u, t, 1.0, start.force)
    anchors, whole = present_anchors(model), np.zeros(0) if hold is None else hold[: model.nv]

    def less_held(here: Any, part: float) -> Any:
        rest = (1.0 - part) * whole
        (end,) = newton(model, here.q[None], here.force[None], u[None], t, 1.0, tolerance, limit, hold=rest)
        if not end.remedy:
            put_anchors(model, contact_anchors(model, end.q))
        return end

    if hold is not None and (direct.remedy or not _is_unchanged(model, direct.q)):
        here, reached, _ = raised(start, less_held, PART)
        if reached == 1.0:
            return here
        put_anchors(model, anchors)
    if not direct.remedy:
        put_anchors(model, contact_anchors(model, direct.q))
    return direct


def stacked(alone: list[Any], lead: tuple[int, ...]) -> Any:
    """Equilibria of single states as one of a batch, whose model is that of the first."""
    given = {"model": alone[0].model, "t": alone[0].t}
    found = {f.name: np.array([getattr(end, f.name) for end in alone]) for f in fields(alone[0]) if f.name not in given}
    out = type(alone[0])(**{name: x.reshape(*lead, *x.shape[1:]) for name, x in found.items()}, **given)
    vars(out)["least_stiffness"] = np.array([end.least_stiffness for end in alone]).reshape(lead)  # each has a model
    return out


def _is_unchanged(model: Model, q: np.ndarray) -> bool:
    """Whether at q just what is anchored touches, and none of it has slipped."""
    same = np.isnan(contact_anchors(model, q)) == np.isnan(present_anchors(model))
    return bool(same.all()) and float(shares_of_friction(model, q).max(initial=0.0)) < _AT_LIMIT
