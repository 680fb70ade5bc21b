"""Contact laws from the materials of both sides, for contacts that give no numbers.

Each side has a Young's modulus E, a Poisson's ratio ν and so a compliance (1 − ν²)/E, which is zero for a rigid side.
The effective modulus E* is the inverse of the sum of both compliances (Johnson (4.6)):

    1/E* = (1 − ν₁²)/E₁ + (1 − ν₂²)/E₂                                                                      (1)

A law N = E* w δ^p has a factor w of the geometry. With the principal relative curvatures 1/R' <= 1/R" of a ball and a
shape, the ratio b/a of the axes of their patch, e² = 1 − (b/a)² and complete elliptic integrals K(e), E(e):

    round    p = 1.5,  w = (4/3) √R F₂^(−1.5),  R = √(R' R"),   F₂ = 1 for R' = R"                          (2)
             R'/R" = ((a/b)² E − K)/(K − E),   F₂ = (2/π) √(b/a) K/F₁,
             F₁³ = (4/(π e²)) (b/a)^1.5 √(((a/b)² E − K)(K − E))
    line     p = 1,    w = (π/4) l      a ball of a rod on a flat side or along a parallel cylinder; it stands
                                        for a length l                                                      (3)
    facet    p = 1,    w = 2 √(A/π)/n   one of the n points that carry a facet of area A as a flat punch      (4)

A surface with a pressure p = K δ (an elastic layer, each side with its own thickness h) has the inverse of K as the sum
of h (1 − ν²)/E. Its integral over a patch of a plane is K w δ^p with

    point    p = 1,    w = A            the area of a point                                                 (6)
    line     p = 1.5,  w = (4/3) √(2/κ) l   a ball of a rod with the relative curvature κ across it         (7)
    sphere   p = 2,    w = π/√(κ₁ κ₂)                                                                       (8)

Damping follows from the coefficient of restitution e at an impact speed V. A law with the factor 1 + c δ̇ returns e V
if

    c V (1 + e) = ln((1 + c V)/(1 − e c V))                                                                (5)

The tangential stiffness of friction that sticks is 2 (1 − ν)/(2 − ν) times the normal stiffness (Mindlin), at the depth
at which the body rests under its own weight.

Source: K. L. Johnson, Contact Mechanics, 1985, (4.6), (4.22)-(4.28), (5.40); R. D. Mindlin, J. Appl. Mech. 16, 1949.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from lissom.robot.contacts import GIVEN, Contact
from lissom.robot.materials import Material
from lissom.robot.shapes import ShapeKind

if TYPE_CHECKING:
    from scipy.interpolate import CubicSpline

STIFF = Material(young=3e9, poisson=0.35, density=1000.0)  # of bodies without a material, where both sides have none
FRICTION = 0.5  # coefficient of a chosen law where no side states one
RESTITUTION = 0.5
LEAST = 0.05  # smallest coefficient of restitution of (5)
LEAST_CURVATURE = 1e-6  # ratio to the larger one below which a curvature counts as this part of it
REST = 9.81  # gravity at which a body without gravity would rest [m/s²]


@final
class Law(NamedTuple):
    """A contact law as kernels read it; see `law` of the tables of contacts."""

    stiffness: float
    exponent: float
    damping: float
    friction: float
    slip_speed: float
    stick_stiffness: float
    stick_damping: float


def effective_modulus(a: Material | None, b: Material | None) -> float:
    """E* of (1) [Pa]. None is a rigid side; if both are, one of them is `STIFF`."""
    a = STIFF if a is None and b is None else a
    return 1.0 / (_compliance(a) + _compliance(b))


def _compliance(x: Material | None) -> float:
    return 0.0 if x is None else (1.0 - x.poisson**2) / x.young


def mixed_friction(a: Material | None, b: Material | None) -> float | None:
    """The friction coefficient of a pair: the geometric mean of both sides, or that of the only side that states one.
    None if no side does."""
    given = [x.friction for x in (a, b) if x is not None and x.friction is not None]
    return float(np.prod(given) ** (1.0 / len(given))) if given else None


def mixed_restitution(a: Material | None, b: Material | None) -> float | None:
    """The coefficient of restitution of a pair: the losses 1 − e of both sides, weighted by their compliances. None if
    no side states one."""
    sides = [(_compliance(x), x.restitution) for x in (a, b) if x is not None and x.restitution is not None]
    return 1.0 - sum(w * (1.0 - e) for w, e in sides) / sum(w for w, _ in sides) if sides else None


class Geometry(NamedTuple):
    """Geometry of touching surfaces, one in each row.

    Fields:
        low, high: the smaller and the larger principal curvature [1/m], 0 for a flat side.
        extent: length of the line or width of the facet for which a ball stands [m], 0 for a sphere. A facet has an
            infinite curvature.
    """

    low: np.ndarray
    high: np.ndarray
    extent: np.ndarray

    def take(self, which: np.ndarray) -> Geometry:
        """Chosen rows."""
        return Geometry(*(x[which] for x in self))


def geometry_of_balls(radius: np.ndarray, extent: np.ndarray) -> Geometry:
    """Geometry of balls with radii and extents (n,) [m]."""
    with np.errstate(divide="ignore"):
        high = 1.0 / radius
    return Geometry(np.where(extent > 0.0, 0.0, high), high, extent)


def geometry_of_shape(kind: ShapeKind, size: tuple[float, float, float]) -> Geometry:
    """Geometry of a shape, in one row. Boxes, cones and shapes of other kinds count as flat."""
    curvatures = {
        ShapeKind.SPHERE: (1.0 / max(size[0], 1e-300), 1.0 / max(size[0], 1e-300)),
        ShapeKind.CYLINDER: (0.0, 1.0 / max(size[0], 1e-300)),
        ShapeKind.CAPSULE: (0.0, 1.0 / max(size[0], 1e-300)),
        ShapeKind.HOLLOW: (-1.0 / max(size[0], 1e-300), 0.0),
    }
    low, high = curvatures.get(kind, (0.0, 0.0))
    return Geometry(np.array([low]), np.array([high]), np.zeros(1))


def factors(
    ball: Geometry, other: Geometry, parallel: np.ndarray, *, on_layer: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Exponents p (n,) and factors w (n,) of balls (n rows) with surfaces (n rows, or one), by (2)-(4), or by (6)-(8)
    for pressures on a layer. Axes of lines are parallel (n,), or cross at right angles."""
    n = len(ball.low)
    if on_layer:
        return _layer_factors(ball, other, parallel)
    facet = np.isinf(ball.high) | np.isinf(other.high)
    line = ~facet & (ball.extent > 0.0) & ((other.high <= 0.0) | parallel)
    width = np.where(np.isinf(ball.high), ball.extent, other.extent)
    curvatures = np.sort([ball.low + other.high, ball.high + other.low], axis=0)
    curvatures = np.where(facet | line, 1.0, np.broadcast_to(curvatures, (2, n)))
    w = np.select(
        [facet, line], [width, 0.25 * np.pi * np.maximum(ball.extent, other.extent)], round_factor(*curvatures)
    )
    return np.where(facet | line, 1.0, 1.5), w


def _layer_factors(ball: Geometry, other: Geometry, parallel: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """p and w of (6)-(8)."""
    point, line = np.isinf(ball.high), ball.extent > 0.0
    across, along = (np.maximum(np.where(point, 1.0, x), LEAST_CURVATURE) for x in
                     (ball.high + np.where(line & ~parallel, other.low, other.high), ball.low + other.low))  # fmt: skip
    w = np.select([point, line], [ball.extent, 4.0 / 3.0 * np.sqrt(2.0 / across) * ball.extent],
                  np.pi / np.sqrt(across * along))  # fmt: skip
    return np.select([point, line], [1.0, 1.5], 2.0), w


def layer_stiffness(a: Material | None, b: Material | None, layer_a: float, layer_b: float) -> float:
    """K of (6) [N/m³] from the layers [m] of both sides, whose compliances add up."""
    a = STIFF if a is None and b is None else a
    return 1.0 / (layer_a * _compliance(a) + layer_b * _compliance(b))


def damping_of(restitution: float, speed: float) -> float:
    """c of (5) [s/m] for a coefficient of restitution at an impact speed [m/s]. Restitutions below `LEAST` count as
    `LEAST`."""
    from scipy.optimize import brentq

    e = max(restitution, LEAST)
    if e > 1.0 - 1e-6:
        return 1.5 * (1.0 - e) / speed
    x: Any = brentq(lambda x: x * (1.0 + e) - np.log1p(x) + np.log1p(-e * x), 0.1 * (1.0 - e), (1.0 - 1e-15) / e)
    return x / speed


def round_factor(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """w of (2) [√m] from the smaller and the larger relative curvature [1/m]."""
    ratio = np.maximum(high / np.maximum(low, LEAST_CURVATURE * high), 1.0)
    return 4.0 / 3.0 / np.sqrt(high) * ratio**0.25 * np.exp(-1.5 * _log_F2()(np.log(ratio)))


@lru_cache(maxsize=1)
def _log_F2() -> CubicSpline:
    """ln F₂ of (2) as a function of ln(R'/R"), up to ratios of 1/LEAST_CURVATURE."""
    from scipy.interpolate import CubicSpline
    from scipy.special import ellipe, ellipkm1

    m = np.concatenate([[1.0], 1.0 - np.geomspace(1e-3, 0.99, 60), np.geomspace(0.009, 1e-13, 120)])  # (b/a)²
    K, E = ellipkm1(m[1:]), ellipe(1.0 - m[1:])
    first, second = E / m[1:] - K, K - E
    F1 = (4.0 / np.pi / (1.0 - m[1:]) * m[1:] ** 0.75 * np.sqrt(first * second)) ** (1.0 / 3.0)
    F2 = 2.0 / np.pi * m[1:] ** 0.25 * K / F1
    log_ratio, log_F2 = np.log(first / second), np.log(F2)
    return CubicSpline(np.concatenate([[0.0], log_ratio]), np.concatenate([[0.0], log_F2]))


def given_law(contact: Contact, a: Material | None, b: Material | None) -> Law:
    """The law of a contact with a stiffness. Friction and damping that it does not give are those of materials that
    state friction or restitution, otherwise zero."""
    given: dict[str, Any] = {name: getattr(contact, name) for name in ("stiffness", *GIVEN)}
    friction = mixed_friction(a, b) if contact.friction is None else contact.friction
    damping = restitution_damping(contact, a, b) if contact.damping is None else contact.damping
    stick = contact.stick_stiffness or 0.0
    return Law(**given, damping=damping or 0.0, friction=friction or 0.0, stick_stiffness=stick)


def chosen_law(
    contact: Contact,
    a: Material | None,
    b: Material | None,
    modulus: float,
    exponent: float,
    factor: float,
    mass: float,
) -> Law:
    """The law of pairs with factors w. The law does not contain the factors.

    Args:
        a, b: materials of both sides; None is rigid.
        modulus: E* [Pa] or K [N/m³]. exponent, factor: p, and the mean w of the pairs.
        mass: mass of the link that carries the balls [kg].
    """
    depth = (max(mass, 1e-9) * REST / (modulus * factor)) ** (1.0 / exponent)
    slope = exponent * depth ** (exponent - 1.0)  # of w δ^p there, without w
    if contact.stiffness is not None:
        law = given_law(contact, a, b)
        return law._replace(stiffness=modulus, exponent=exponent, stick_stiffness=slope * law.stick_stiffness)
    friction, damping = contact.friction, restitution_damping(contact, a, b)
    if friction is None:
        mixed = mixed_friction(a, b)
        friction = FRICTION if mixed is None else mixed
    if contact.damping is not None:
        damping = contact.damping
    elif damping is None:
        damping = damping_of(RESTITUTION, contact.impact_speed)
    slip_speed = GIVEN["slip_speed"] if contact.slip_speed is None else contact.slip_speed
    stick, lag = 0.0, GIVEN["stick_damping"] if contact.stick_damping is None else contact.stick_damping
    if friction > 0.0 and (contact.slip_speed is None or contact.stick_stiffness is not None):
        stick = modulus * slope * _mindlin_ratio(a, b)
        if contact.stick_stiffness is not None:
            stick = contact.stick_stiffness * (slope if contact.surface else 1.0 / factor)
        if contact.stick_damping is None and mass > 0.0:
            lag = float(np.sqrt(mass / (stick * factor)))
    return Law(modulus, exponent, damping, friction, slip_speed, stick, lag)


def restitution_damping(contact: Contact, a: Material | None, b: Material | None) -> float | None:
    """c [s/m] of the restitution that the contact or its materials state; None if none does."""
    e = mixed_restitution(a, b) if contact.restitution is None else contact.restitution
    return None if e is None else damping_of(e, contact.impact_speed)


def _mindlin_ratio(a: Material | None, b: Material | None) -> float:
    """Tangential over normal stiffness of a round contact, 2 (1 − ν)/(2 − ν), weighted by the compliances."""
    sides = [x for x in (a, b) if x is not None] or [STIFF]
    weights = [_compliance(x) for x in sides]
    return sum(w * 2.0 * (1.0 - x.poisson) / (2.0 - x.poisson) for w, x in zip(weights, sides)) / sum(weights)
