"""What can be set by hand: coordinates and inputs, their names, units, and how far each is worth moving."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from lissom.dynamics.actuation import actuation_matrix
from lissom.dynamics.configuration import difference, groups, integrate
from lissom.dynamics.mass_matrix import mass_matrix
from lissom.model.model import Model
from lissom.robot.bases import STRAINS
from lissom.robot.bodies import Rod
from lissom.statics.residual import tangent_stiffness
from lissom.viewing.building import robot_geometry
from lissom.viewing.trajectories import inputs_by_unit

TURN, MOVE = "rad", "m"
_MOST_STRAIN = 0.3  # of stretch and shear
_REACH = 6.0  # how far an input at the end of its range bends a rod, to first order [rad]
SLOW = 2.0 * np.pi * 0.5  # of what nothing else holds [rad/s]


@final
@dataclass(frozen=True)
class Slider:
    """One number that can be set.

    Fields:
        name; unit. group: of the link, or what an input is. part: what of the link, empty for its joint.
        low, high: ends of its range. column: its index in v or u.
    """

    name: str
    unit: str
    group: str
    part: str
    low: float
    high: float
    column: int

    @property
    def step(self) -> float:
        """What one notch is."""
        return nice((self.high - self.low) / 200.0)


def nice(x: float) -> float:
    """The largest of 1, 2 or 5 times a power of ten that is not above x."""
    power = 10.0 ** np.floor(np.log10(max(x, 1e-300)))
    return float(power * max(k for k in (1.0, 2.0, 5.0) if k * power <= x * (1.0 + 1e-9)))


def robot_size(model: Model, q: np.ndarray | None = None) -> float:
    """The longest side of the box around a robot [m]."""
    points = robot_geometry(model).points(model.neutral() if q is None else q)
    size = float(np.ptp(points, axis=0).max()) if len(points) else 0.0
    return size if size > 0.0 else 1.0


# -- coordinates ------------------------------------------------------------------------------------------------------


def coordinate_sliders(model: Model) -> list[Slider]:
    """One for each velocity coordinate, in their order."""
    found, ends = [], [*model.links.v_start[1:].tolist(), model.nv]
    for k, name in enumerate(model.links.names):
        start = int(model.links.v_start[k])
        joint = _joint_sliders(model, k, name, start)
        body = _body_sliders(model, name, start + len(joint), ends[k])
        found += [*joint, *body]
    return found


def _joint_sliders(model: Model, k: int, name: str, start: int) -> list[Slider]:
    joint = model.links.joint[k]
    columns = [column for motion in joint.motions("joint") for column in motion.Phi.T]
    limits = np.broadcast_to(np.array([-np.inf, np.inf]), (len(columns), 2))
    if joint.limits is not None:
        limits = np.stack([np.broadcast_to(side, len(columns)) for side in joint.limits], axis=1)
    size, found = robot_size(model), []
    for j, (column, (low, high)) in enumerate(zip(columns, limits)):
        turns = bool(column[:3].any())
        part = column[:3] if turns else column[3:]
        axis = "xyz"[int(np.argmax(np.abs(part)))] if np.count_nonzero(np.abs(part) > 1e-9) == 1 else str(j + 1)
        most = np.pi if turns else size
        first, last = (float(x) if np.isfinite(x) else sign * most for x, sign in ((low, -1.0), (high, 1.0)))
        label = f"{'turn about' if turns else 'move along'} {axis}"
        found.append(Slider(label, TURN if turns else MOVE, name, "", first, last, start + j))
    return found


def _body_sliders(model: Model, name: str, start: int, stop: int) -> list[Slider]:
    """Of the coordinates of a body, those of a rod by strains."""
    body = model.links.body[model.links.names.index(name)]
    if not isinstance(body, Rod):
        return [
            Slider(f"{j - start + 1}", "", name, "shape", -_MOST_STRAIN, _MOST_STRAIN, j) for j in range(start, stop)
        ]
    Phi = np.array([np.asarray(body.basis.evaluate(s)) for s in np.linspace(0.0, 1.0, 33)])
    size, found, orders = np.abs(Phi).max(axis=0), [], dict.fromkeys(STRAINS, 0)
    for j in range(stop - start):
        row = int(size[:, j].argmax())
        strain = STRAINS[row]
        most = (np.pi / body.length if row < 3 else _MOST_STRAIN) / max(size[row, j], 1e-12)
        unit = "1/m" if row < 3 else ""
        found.append(Slider(f"{strain} {orders[strain]}", unit, name, strain, -most, most, start + j))
        orders[strain] += 1
    return found


def placed(model: Model, values: np.ndarray) -> np.ndarray:
    """The configuration of values (nv,) of the coordinate sliders: rotations of spherical and free joints by their
    vectors, positions of free ones as they are."""
    turned = values.copy()
    for _, at, free in groups(model):
        turned[at + 3 : at + 6 if free else at + 3] = 0.0
    q = integrate(model, model.neutral(), turned)
    for first, at, free in groups(model):
        if free:
            q[first + 4 : first + 7] = values[at + 3 : at + 6]
    return q


def values_of(model: Model, q: np.ndarray) -> np.ndarray:
    """The values of the coordinate sliders at a configuration: the inverse of `placed`."""
    values = difference(model, model.neutral(), q)
    for first, at, free in groups(model):
        if free:
            values[at + 3 : at + 6] = q[first + 4 : first + 7]
    return values


# -- inputs -----------------------------------------------------------------------------------------------------------


def input_sliders(model: Model) -> list[Slider]:
    """One for each input, in their order; each far enough to bend or move the robot well."""
    found: list[Slider] = []
    for kind, columns in inputs_by_unit(model).items():
        name, _, unit = kind.partition(" [")
        for k in columns:
            found.append(Slider(model.inputs.names[k], unit.rstrip("]"), name, "", 0.0, 1.0, k))
    most = _worth(model)
    return [_ranged(model, one, most[one.column]) for one in sorted(found, key=lambda one: one.column)]


def _ranged(model: Model, slider: Slider, most: float) -> Slider:
    """Tendons do not push, and chambers are seldom evacuated."""
    one_sided = slider.group in ("tension", "pressure", "length pulled in")
    low = 0.0 if one_sided else -most
    return Slider(slider.name, slider.unit, slider.group, "", low, most, slider.column)


def _worth(model: Model) -> np.ndarray:
    """The size of each input that moves the robot by about _REACH, to first order, shape (nu,)."""
    if not model.nu:
        return np.zeros(0)
    q, zero = model.neutral(), np.zeros(model.nu)
    K: Any = tangent_stiffness(model, q, zero)
    held = 0.5 * (K + K.T) + SLOW**2 * mass_matrix(model, q)
    moved = np.linalg.lstsq(held, actuation_matrix(model, q), rcond=1e-12)[0] / model.dofs.scale[:, None]
    reach = np.abs(moved).max(axis=0)
    return np.array([nice(_REACH / x) if np.isfinite(x) and x > 1e-12 else 1.0 for x in reach])
