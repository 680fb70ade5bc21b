"""Warnings about implausible robots and motions: numbers that look like a wrong unit, shapes that no rod can take, and
wheels that would lift off.

Each number of a description is compared with the range of materials and machines, with a wide margin. Each rod of a
result is checked at its Gauss points. Let λ = ξ₄ be the stretch and κ = (ξ₂, ξ₃) the curvature there, and r the reach
of the section's outline from the centreline. The material is turned inside out where

    λ <= 0            on the centreline itself, where the model has no meaning                               (1)
    λ <= |κ| r        on the inner side of a bend                                                            (2)

A deformable body is turned inside out where det ∂f/∂x <= 0 at a point of its quadrature.

Robots of the literature exceed (2) slightly under large tensions. A warning therefore needs twice the bend. Linear
elasticity has no meaning either for a stretch below 1/10 or above 10.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from lissom.errors import PlausibilityWarning
from lissom.model.bodies import PlacedBody, placed
from lissom.model.model import Model
from lissom.robot.actuators import PathRod, Tendon, offset_function
from lissom.robot.constraints import RowKind
from lissom.robot.robot import Robot

YOUNG = (1e2, 1e13)  # [Pa]; the softest gels have 1e2, diamond 1e12
DENSITY = (5.0, 1e5)  # [kg/m³]; light foams 10, osmium 2e4
LENGTH = (1e-7, 100.0)  # of one rod [m]
GRAVITY = 1e3  # [m/s²]
THICKNESS = (1e-6, 2.0)  # reach of a section, relative to the length of its rod
REACH = 3.0  # distance of a tendon from the centreline, relative to the length of the rod
STRETCH = (0.1, 10.0)
BENT = 2.0  # |κ| r / λ
_MOTIONS = 16  # number of motions that are checked at once
_NO_PULL = 1e-6  # pull on a wheel that is rounding, relative to the largest force on one
CAUSE = "are loads and tensions in N, young in Pa, lengths in m?"


def warn_of_units(robot: Robot) -> None:
    """Issue a PlausibilityWarning for each number of a description whose unit is probably wrong."""
    for text in _doubts(robot):
        warnings.warn(text, PlausibilityWarning, stacklevel=4)


def _doubts(robot: Robot) -> Iterator[str]:
    gravity = float(np.linalg.norm(robot.gravity))
    if gravity > GRAVITY:
        yield f"robot {robot.name!r}: gravity is {gravity:g} m/s²; did you mean {gravity / 1e3:g} (given in mm/s²)?"
    for name, link in robot.links.items():
        yield from _doubts_of_body(placed(link.body), f"link {name!r} > body")
    for name, actuator in robot.actuators.items():
        items = actuator.path if isinstance(actuator, Tendon) else [getattr(actuator, "path", None)]
        for item in items:
            if isinstance(item, PathRod):
                yield from _doubts_of_path(robot, item, f"actuator {name!r}")


def _doubts_of_body(body: PlacedBody, where: str) -> Iterator[str]:
    if body.doubt is not None:
        yield f"{where}: {body.doubt}"
    if body.length == 0.0:
        return
    if not LENGTH[0] <= body.length <= LENGTH[1]:
        yield f"{where}: length is {body.length:g} m; did you mean {body.length / 1e3:g} m (given in mm)?"
    if body.material is not None:
        young, density = body.material.young, body.material.density
        if not YOUNG[0] <= young <= YOUNG[1]:
            meant = "1 MPa is 1e6 and 1 GPa is 1e9" if young < YOUNG[0] else "diamond has 1e12"
            yield f"{where} > material: young is {young:g} Pa, like no material ({meant})"
        if not DENSITY[0] <= density <= DENSITY[1]:
            meant = (
                f"did you mean {density * 1e3:g} kg/m³ (given in g/cm³)?" if density < DENSITY[0] else "osmium has 2e4"
            )
            yield f"{where} > material: density is {density:g} kg/m³; {meant}"
    radii = [body.reach(s) for s in (0.0, 0.5, 1.0)]
    low, high = min(radii) / body.length, max(radii) / body.length
    if low and not (THICKNESS[0] <= low and high <= THICKNESS[1]):
        what = f"reaches {max(radii):g} m" if high > THICKNESS[1] else f"reaches only {min(radii):g} m"
        yield f"{where} > section: {what} from the centreline of a rod of {body.length:g} m; are both in m?"


def _doubts_of_path(robot: Robot, item: PathRod, where: str) -> Iterator[str]:
    body = placed(robot.links[item.link].body)
    offset = offset_function(item.offset, f"{where}: offset")
    far = max(float(np.linalg.norm(offset(s))) for s in np.linspace(item.start, item.stop, 5))
    if far > REACH * body.length and far > 10 * max(body.reach(s) for s in (0.0, 0.5, 1.0)):
        ends = f"{far:g} m from the centreline of {item.link!r}, which is {body.length:g} m long"
        yield f"{where}: offset runs {ends}; did you mean {far / 1e3:g} m (given in mm)?"


class _Strains(NamedTuple):
    """Strains of one rod at its g Gauss points.

    Fields:
        name; basis of ξ₂, ξ₃, ξ₄, shape (3 g, n); their reference (3 g,); columns in q; s (g,); reach of the section
        from the centreline [m], shape (g,).
    """

    name: str
    basis: np.ndarray
    reference: np.ndarray
    columns: slice
    s: np.ndarray
    reach: np.ndarray


def inside_out(model: Model, q: np.ndarray) -> tuple[int, str] | None:
    """Index of the first of configurations (n, nq) in which a rod satisfies (1) or a deformable body is turned inside
    out, with a text that names body and place; None if there is no such configuration."""
    found = []
    for rod, stretch, _ in _stretch_and_bend(model, q) if len(q) else ():
        for row in np.flatnonzero((stretch <= 0.0).any(axis=1))[:1].tolist():
            point = stretch[row].argmin()
            where = f"stretch {stretch[row, point]:.3g} at s = {rod.s[point]:.3f}"
            found.append((row, f"rod {rod.name!r} is turned inside out ({where})"))
    for name, points, least, where in _folds(model, q) if len(q) else ():
        for row in np.flatnonzero(least <= 0.0)[:1].tolist():
            x = points[where[row]].round(6).tolist()
            folded = f"det ∂f/∂x = {least[row]:.3g} at x = {x}"
            found.append((row, f"deformable body {name!r} is turned inside out ({folded})"))
    return min(found, key=lambda one: one[0], default=None)


def is_folded(model: Model, q: np.ndarray) -> bool:
    """Whether a deformable body is turned inside out in a configuration (nq,)."""
    return any(float(least[0]) <= 0.0 for _, _, least, _ in _folds(model, q[None]))


def warn_of_shapes(model: Model, q: np.ndarray, t: np.ndarray | None = None) -> None:
    """Issue a PlausibilityWarning for each rod and deformable body that is outside the range of the model in
    configurations q (n, nq), with the worst value, its place and its time (t (n,) [s])."""
    for name, points, least, where in _folds(model, q) if len(q) else ():
        row = int(least.argmin())
        if least[row] <= 0.0:
            when = "" if t is None else f" at t = {t[row]:.4g} s"
            x = points[where[row]].round(6).tolist()
            text = f"deformable body {name!r} is turned inside out: det ∂f/∂x = {least[row]:.3g} at x = {x}{when}"
            warnings.warn(f"{text}; {CAUSE}", PlausibilityWarning, stacklevel=3)
    for rod, stretch, bend in _stretch_and_bend(model, q) if len(q) else ():
        least, most = stretch.min(), stretch.max()
        if least <= 0.0:
            value, what = stretch, "turned inside out"
        elif least < STRETCH[0]:
            value, what = stretch, f"squeezed to {100 * least:.2g} % of its length"
        elif most > STRETCH[1]:
            value, what = -stretch, f"drawn out to {most:.3g} times its length"
        elif np.any(BENT * stretch <= bend):
            value, what = (
                BENT * stretch - bend,
                "bent so tightly that the inner side of its section is turned inside out",
            )
        else:
            continue
        row, point = np.unravel_index(value.argmin(), value.shape)
        when = "" if t is None else f" at t = {t[row]:.4g} s"
        text = f"rod {rod.name!r} is {what} at s = {rod.s[point]:.3f}{when}; {CAUSE}"
        warnings.warn(text, PlausibilityWarning, stacklevel=3)


def warn_of_motions(model: Model, q: np.ndarray, t: np.ndarray) -> None:
    """Issue the warnings of `warn_of_shapes` for each of m motions, shape (m, n, nq), at times (n,) [s]."""
    if model.models:
        for one, motion in zip(model.of_rows(len(q)), q):
            warn_of_motions(one, motion[None], t)
        return
    for first in range(0, len(q), _MOTIONS):
        part = q[first : first + _MOTIONS]
        flat = part.reshape(-1, model.nq)
        strains, folds = (_stretch_and_bend(model, flat), _folds(model, flat)) if part.size else ((), ())
        bent = any(((x < STRETCH[0]) | (x > STRETCH[1]) | (BENT * x <= bend)).any() for _, x, bend in strains)
        if bent or any((least <= 0.0).any() for _, _, least, _ in folds):
            for motion in part:
                warn_of_shapes(model, motion, t)


def warn_of_wheels(model: Model, multipliers: np.ndarray, t: np.ndarray) -> None:
    """Issue a PlausibilityWarning, once for a model, if a plane pulls at a wheel or a ball that would lift off, with
    the largest pull and its time. multipliers: (..., n, n_multipliers), at times t (n,) [s]."""
    rows = np.flatnonzero(model.loops.row_kind == RowKind.HEIGHT)
    if not len(rows) or not multipliers.size or "warned of wheels" in model.cache:
        return
    forces = multipliers[..., model.n_motions + rows].reshape(-1, len(t), len(rows))
    _, k, row = np.unravel_index(int(forces.argmin()), forces.shape)
    if not forces.min() < -_NO_PULL * np.abs(forces).max():
        return
    model.cache["warned of wheels"] = True
    wheel = model.loops.names[int(np.searchsorted(model.loops.row_start, rows[row], side="right")) - 1]
    text = f"rolling contact {wheel!r}: the plane pulls with {-forces.min():.3g} N at t = {t[k]:.4g} s, where the wheel"
    warnings.warn(f"{text} would lift off; it holds the wheel from both sides", PlausibilityWarning, stacklevel=3)


def _stretch_and_bend(model: Model, q: np.ndarray) -> Iterator[tuple[_Strains, np.ndarray, np.ndarray]]:
    """λ and |κ| r of (2) at the Gauss points of each rod, shape (n, g) each."""
    for rod in model.cached(("strains",), lambda: _strains(model)):
        xi = (q[:, rod.columns] @ rod.basis.T + rod.reference).reshape(len(q), -1, 3)
        yield rod, xi[:, :, 2], np.hypot(xi[:, :, 0], xi[:, :, 1]) * rod.reach


def _folds(model: Model, q: np.ndarray) -> Iterator[tuple[str, np.ndarray, np.ndarray, np.ndarray]]:
    """For each deformable body whose motion does not keep volume: its name, its points, and in each of n configurations
    the least det ∂f/∂x and the index of its point, shape (n,) each."""
    bodies = model.deforming
    for b, integrals in enumerate(bodies.integrals):
        if not integrals.kinematics.keeps_volume:
            first = int(bodies.q_start[b])
            least, where = integrals.worst(q[:, first : first + integrals.kinematics.n])
            yield model.links.names[model.nodes.link[bodies.node[b]]], integrals.domain.points, least, where


def _strains(model: Model) -> list[_Strains]:
    found = []
    for name, rod in model.rods.items():
        body = placed(model.links.body[model.links.names.index(name)])
        s = rod.node_s[rod.weight > 0.0]
        basis = np.concatenate([rod.strain.basis(float(x))[1:4] for x in s])
        reference = np.concatenate([rod.strain.reference(float(x))[1:4] for x in s])
        start = rod.strain.v_start + rod.strain.q_shift
        reach = np.array([body.reach(float(x)) for x in s])
        found.append(_Strains(name, basis, reference, slice(start, start + basis.shape[1]), s, reach))
    return found
