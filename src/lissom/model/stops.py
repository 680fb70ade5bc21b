"""Stops of the coordinates of joints and of elastic couplings of joints, and the start within all of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lissom.model.model import Model
from lissom.robot.joints import stop_numbers

_SWEEPS = 50  # over the stops, since couplings share coordinates with joints
_WITHIN = 1e-12  # distance beyond a limit that is rounding [rad, m]


class Stops(NamedTuple):
    """The n stops of a robot: of elastic couplings of joints, then of joints.

    Fields:
        names: such as "joint of 'knee'". units: "rad", "m", or "" for a coupling.
        by_q, by_v: the coordinate of each stop as a sum over q (n, nq), and over v (n, nv).
        low, high [rad, m], stiffness [N·m/rad, N/m] and width [rad, m]: (n,).
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    by_q: np.ndarray
    by_v: np.ndarray
    low: np.ndarray
    high: np.ndarray
    stiffness: np.ndarray
    width: np.ndarray

    def excess(self, q: np.ndarray) -> np.ndarray:
        """How far a configuration (nq,) is beyond each stop, positive above and negative below, (n,)."""
        x = self.by_q @ q
        return x - np.clip(x, self.low, self.high)


def stops_of(model: Model) -> Stops:
    """The stops of a model."""
    return model.cached(("stops",), lambda: _stops_of(model))


def _stops_of(model: Model) -> Stops:
    links, x, rows = model.links, model.joint_couplings, []
    ends = np.append(x.elastic_start, len(x.elastic_ratio))
    for e, (name, law) in enumerate(zip(x.elastic_names, x.elastic_law)):
        part = slice(int(ends[e]), int(ends[e + 1]))
        rows.append((f"coupling {name!r}", "", *x.elastic_dof[part].T, x.elastic_ratio[part], *law[[0, 1, 2, 4]]))
    for name, joint, first in zip(links.names, links.joint, links.v_start.tolist()):
        if joint.limits is None:
            continue
        turns = [bool(column[:3].any()) for motion in joint.motions(name) for column in motion.Phi.T]
        for v, numbers, turn in zip(range(first, first + joint.nv), stop_numbers(joint, joint.nv, name), turns):
            unit = "rad" if turn else "m"
            rows.append((f"joint of {name!r}", unit, model.dofs.q[v], v, 1.0, *numbers[[0, 1, 2, 4]]))
    by_q, by_v = np.zeros((len(rows), model.nq)), np.zeros((len(rows), model.nv))
    for k, (_, _, at, dof, ratio, *_) in enumerate(rows):
        np.add.at(by_q[k], at, ratio)
        np.add.at(by_v[k], dof, ratio)
    names, units = tuple(row[0] for row in rows), tuple(row[1] for row in rows)
    return Stops(names, units, by_q, by_v, *np.array([row[5:] for row in rows], dtype=float).reshape(-1, 4).T)


def given_start(model: Model) -> np.ndarray:
    """The neutral configuration, with the starts that joints have, (nq,)."""
    q, links = model.neutral(), model.links
    for name, joint, first in zip(links.names, links.joint, links.q_start.tolist()):
        if joint.start is not None:
            q[first : first + joint.nq] = joint.start_configuration(f"link {name!r} > joint")
    return q


def within_stops(model: Model) -> np.ndarray:
    """The start, moved within all stops as little as possible, (nq,). It may open loops."""
    q, stops = given_start(model), stops_of(model)
    for _ in range(_SWEEPS):
        if (np.abs(stops.excess(q)) <= _WITHIN).all():
            break
        for row, low, high in zip(stops.by_q, stops.low, stops.high):
            x = row @ q
            q += row * ((np.clip(x, low, high) - x) / (row @ row))
    return q
