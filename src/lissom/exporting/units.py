"""Units of coordinates and inputs, and exponents of SI units in the name of a unit."""

from __future__ import annotations

import re

import numpy as np

from lissom.dynamics.configuration import quaternion_joints
from lissom.model.model import Model

# Exponents of the base units, and the factor, of the units that names consist of
_OWN: dict[str, dict[str, int]] = {
    "1": {},
    "kg": {"kg": 1},
    "m": {"m": 1},
    "s": {"s": 1},
    "A": {"A": 1},
    "rad": {"rad": 1},
    "N": {"kg": 1, "m": 1, "s": -2},
    "Pa": {"kg": 1, "m": -1, "s": -2},
    "J": {"kg": 1, "m": 2, "s": -2},
    "W": {"kg": 1, "m": 2, "s": -3},
    "V": {"kg": 1, "m": 2, "s": -3, "A": -1},
    "Hz": {"s": -1},
}
_POWERS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
# Units of a coordinate, its velocity and acceleration, and of the force on it
_RATES = {
    "rad": ("rad", "rad/s", "rad/s²", "N·m"),
    "m": ("m", "m/s", "m/s²", "N"),
    "1/m": ("1/m", "1/(m·s)", "1/(m·s²)", "N·m²"),
    "1": ("1", "1/s", "1/s²", "N·m"),
    "": ("", "", "", ""),
}


def exponents(unit: str) -> dict[str, int] | None:
    """Exponents of the base units of SI in a unit such as kg·m² or N·m·s/rad; None for a name that is none."""
    if not unit:
        return None
    found: dict[str, int] = {}
    above, _, below = unit.partition("/")
    for text, sign in ((above, 1), (below, -1)):
        for part in re.split(r"[·*]", text.strip("()")) if text else ():
            match = re.fullmatch(r"([A-Za-z]+|1)([⁰¹²³⁴⁵⁶⁷⁸⁹⁻]*)", part.strip())
            if match is None or match[1] not in _OWN:
                return None
            power = sign * int(match[2].translate(_POWERS) or 1)
            for base, own in _OWN[match[1]].items():
                found[base] = found.get(base, 0) + power * own
    return {base: power for base, power in found.items() if power}


def velocity_kinds(model: Model) -> list[str]:
    """For each velocity the unit of its coordinate: rad, m, 1/m, 1, or nothing if it is not known."""
    kinds, nodes = [""] * model.nv, model.nodes
    for k in range(len(nodes.parent)):
        is_rod = nodes.kappa[k] > 0.0
        for strain in range(6):
            first = int(nodes.run_v[k, strain])
            count = int(nodes.run_start[k, strain + 1] - nodes.run_start[k, strain]) if first >= 0 else 0
            unit = ("1/m" if strain < 3 else "1") if is_rod else ("rad" if strain < 3 else "m")
            for j in range(first, min(first + count, model.nv)):
                kinds[j] = kinds[j] or unit
    for _, at, is_free in quaternion_joints(model):
        kinds[at : at + 3] = ["rad"] * 3
        if is_free:
            kinds[at + 3 : at + 6] = ["m"] * 3
    return kinds


def coordinate_units(model: Model) -> tuple[list[str], list[str], list[str]]:
    """Units of coordinates (nq), velocities and accelerations (nv). Quaternions have the unit 1."""
    kinds = velocity_kinds(model)
    q = [""] * model.nq
    for j, at in enumerate(np.asarray(model.dofs.q).tolist()):
        if at >= 0:
            q[at] = _RATES[kinds[j]][0]
    for at, _, is_free in quaternion_joints(model):
        q[at : at + 4] = ["1"] * 4
        if is_free:
            q[at + 4 : at + 7] = ["m"] * 3
    return q, [_RATES[kind][1] for kind in kinds], [_RATES[kind][2] for kind in kinds]


def unit_of_input(model: Model, k: int) -> str:
    """Unit of an input: that of a channel, such as a tension, or of the force on a joint; empty if it is not known."""
    own = np.flatnonzero(model.channels.gain[:, k])
    if len(own):
        found = re.search(r"\[(.+)\]", model.channels.units[int(own[0])])
        return found[1] if found else ""
    driven = np.flatnonzero(model.inputs.joint_gain[:, k])
    return _RATES[velocity_kinds(model)[int(driven[0])]][3] if len(driven) else ""
