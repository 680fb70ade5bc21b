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

A deformable body holds the compliance of its material already. The side of its surface therefore counts with the part
`OWN_PART` of its compliance. A ball in such a body keeps its radius r, so that the column of material between its
centre and its surface does not deform with the body. The contact adds the compliance of this column:

    column   p = 1,    w = A/r      A the area of the body's surface for each of its balls               (10)

A coefficient of restitution e is a hysteresis: the force is (1 + b) k δ^p while a contact closes, and (1 − b) k δ^p
while it opens. Both are joined by a smooth function of δ̇ of width v_r:

    N = k δ^p (1 + b δ̇/√(δ̇² + v_r²)),   b = (1 − e²)/(1 + e²)                                            (5)

It returns the share (1 − b)/(1 + b) = e² of the energy of any impact that is much faster than v_r, at any speed, and
k δ^p at rest. With w = δ̇/v_r, a = 1 − b² and σ = w/√(w² + 1), an impact at the speed w v_r ends with e w v_r if

    F(b, w) = F(−b, e w),   F(b, w) = ∫ w dw/(1 + b σ) = w²/2a − (1 − a) ln(1 + a w²)/2a²                  (9)
                                      − (b/2a) (w √(w² + 1) + asinh w) + (b/a²) asinh w − (1 − a) artanh(b σ)/a²

Near rest (5) is linear damping. A body of weight m g that rests at the depth δ₀ vibrates with ω² = p g/δ₀, and loses
the share b √(g δ₀/p)/(2 v_r) of critical damping. v_r is therefore a part of √(g δ₀/p), about the speed of a fall
through δ₀, below which no body bounces.

The tangential stiffness of friction that sticks is 2 (1 − ν)/(2 − ν) times the normal stiffness (Mindlin), at the depth
δ₀. Its damping is half the critical one of the mass on the tangential springs of its whole patch.

Source: K. L. Johnson, Contact Mechanics, 1985, (4.6), (4.22)-(4.28), (5.40); R. D. Mindlin, J. Appl. Mech. 16, 1949;
O. R. Walton, R. L. Braun, J. Rheol. 30, 1986 (loading and unloading by two stiffnesses); W. J. Stronge, Impact
Mechanics, 2000, ch. 3 (e² as a ratio of works).
"""

from __future__ import annotations

from dataclasses import replace
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
REST_SPEED = 0.3  # v_r over √(g δ₀/p): a body with e = 0.5 rests with critical damping
IMPACT = 0.2  # largest v_r over e² times a given `impact_speed`; (9) has no solution above about 1.4
LEAST_REST_SPEED = 1e-5  # smallest chosen v_r [m/s]
OWN_PART = 0.01  # part of its compliance that a side adds whose body deforms by coordinates of its own
TRIPOD = 3  # spheres that carry a body at rest
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
    hysteresis: float = 0.0  # b of (5)
    rest_speed: float = 1.0  # v_r of (5) [m/s]


def effective_modulus(a: Material | None, b: Material | None) -> float:
    """E* of (1) [Pa]. None is a rigid side; if both are, one of them is `STIFF`."""
    a = STIFF if a is None and b is None else a
    return 1.0 / (_compliance(a) + _compliance(b))


def stiffened(side: Material) -> Material:
    """The material of a side whose body deforms itself."""
    return replace(side, young=side.young / OWN_PART)


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


def column_factors(exponents: np.ndarray, weights: np.ndarray, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """p and w of pairs with balls in deformable bodies, by (10), from w of columns [m]. These are zero for pairs
    without such balls, and infinite for corners, which keep their law with a stiffened side."""
    is_column, is_corner = (columns > 0.0) & np.isfinite(columns), np.isinf(columns)
    weights = np.where(is_column, columns, weights)
    return np.where(is_column, 1.0, exponents), np.where(is_corner, weights / OWN_PART, weights)


def layer_stiffness(a: Material | None, b: Material | None, layer_a: float, layer_b: float) -> float:
    """K of (6) [N/m³] from the layers [m] of both sides, whose compliances add up."""
    a = STIFF if a is None and b is None else a
    return 1.0 / (layer_a * _compliance(a) + layer_b * _compliance(b))


def hysteresis_of(restitution: float, ratio: float = np.inf) -> float:
    """b of (5) for a coefficient of restitution of fast impacts, or by (9) of impacts at a speed of `ratio` times v_r.
    Restitutions below `LEAST` count as `LEAST`."""
    from scipy.optimize import brentq

    e = max(restitution, LEAST)
    b = (1.0 - e * e) / (1.0 + e * e)
    if not b or not np.isfinite(ratio):
        return b
    found: Any = brentq(lambda x: _impact_work(x, ratio) - _impact_work(-x, e * ratio), b, 1.0 - 1e-9, xtol=1e-15)
    return found


def _impact_work(b: float, w: float) -> float:
    """F of (9)."""
    a, root = (1.0 - b) * (1.0 + b), np.sqrt(w * w + 1.0)
    logs = b * np.arcsinh(w) - b * b * (0.5 * np.log1p(a * w * w) + np.arctanh(b * w / root))
    return (0.5 * (w * w - b * (w * root + np.arcsinh(w))) + logs / a) / a


def patch_factor(weights: np.ndarray, balls: np.ndarray, rows: np.ndarray) -> float:
    """Sum of the factors w of the balls on which a body rests.

    These are the cells that face along the axis of the body along which their projected areas are largest, half of the
    corners, all balls along a line, and three spheres.

    Args:
        weights: w of pairs (n,). balls: number of the ball of each pair (n,).
        rows: radius, extent and normal (3,) of each ball, (n, 5).
    """
    _, first, which, count = np.unique(balls, return_index=True, return_inverse=True, return_counts=True)
    w, rows = np.bincount(which, weights) / count, rows[first]  # of each ball
    normal, is_point, is_line = rows[:, 2:], rows[:, 0] == 0.0, rows[:, 1] > 0.0
    is_cell = normal.any(axis=1)
    corner, sphere = w[is_point & ~is_cell], w[~is_point & ~is_line]
    found = [
        max(w[is_cell] @ np.maximum(side * normal[is_cell, axis], 0.0) for axis in range(3) for side in (-1.0, 1.0)),
        max(0.5 * corner.sum(), corner.max(initial=0.0)),
        w[~is_point & is_line].sum(),
        min(len(sphere), TRIPOD) * (sphere.mean() if len(sphere) else 0.0),
    ]
    return float(max(found))


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


def given_law(contact: Contact, a: Material | None, b: Material | None, depth: float) -> Law:
    """The law of a contact with a stiffness, for bodies that rest at a depth δ₀ [m]. Friction and restitution that it
    does not give are those of materials that state them, otherwise zero and one."""
    given: dict[str, Any] = {name: getattr(contact, name) for name in ("stiffness", *GIVEN)}
    friction = mixed_friction(a, b) if contact.friction is None else contact.friction
    law = Law(**given, damping=0.0, friction=friction or 0.0, stick_stiffness=contact.stick_stiffness or 0.0)
    return _damped(law, contact, a, b, depth, 1.0)


def rest_depth(mass: float, stiffness: float, exponent: float) -> float:
    """δ₀ [m]: the depth at which a mass [kg] rests on k δ^p, with the stiffness k [N/m^p] of its whole patch."""
    return float((max(mass, 1e-9) * REST / stiffness) ** (1.0 / exponent))


def chosen_law(
    contact: Contact,
    a: Material | None,
    b: Material | None,
    modulus: float,
    exponent: float,
    factor: float,
    patch: float,
    mass: float,
) -> Law:
    """The law of pairs with factors w. The law does not contain the factors.

    Args:
        a, b: materials of both sides; None is rigid.
        modulus: E* [Pa] or K [N/m³]. exponent, factor: p, and the mean w of the pairs.
        patch: sum of w of the pairs on which the body rests.
        mass: mass that the pairs carry at rest [kg].
    """
    depth = rest_depth(mass, modulus * patch, exponent)
    slope = exponent * depth ** (exponent - 1.0)  # of w δ^p there, without w
    if contact.stiffness is not None:
        law = given_law(contact, a, b, depth)
        return law._replace(stiffness=modulus, exponent=exponent, stick_stiffness=slope * law.stick_stiffness)
    friction = contact.friction
    if friction is None:
        mixed = mixed_friction(a, b)
        friction = FRICTION if mixed is None else mixed
    slip_speed = GIVEN["slip_speed"] if contact.slip_speed is None else contact.slip_speed
    stick, lag = 0.0, GIVEN["stick_damping"] if contact.stick_damping is None else contact.stick_damping
    if friction > 0.0 and (contact.slip_speed is None or contact.stick_stiffness is not None):
        stick = modulus * slope * _mindlin_ratio(a, b)
        if contact.stick_stiffness is not None:
            stick = contact.stick_stiffness * (slope if contact.surface else 1.0 / factor)
        if contact.stick_damping is None and mass > 0.0:
            lag = float(np.sqrt(mass / (stick * patch)))
    law = Law(modulus, exponent, 0.0, friction, slip_speed, stick, lag)
    return _damped(law, contact, a, b, depth, RESTITUTION)


def _damped(law: Law, contact: Contact, a: Material | None, b: Material | None, depth: float, otherwise: float) -> Law:
    """A law with the damping of its contact, or with the hysteresis (5) of the restitution that the contact or its
    materials state, or of `otherwise`."""
    if contact.damping is not None:
        return law._replace(damping=contact.damping)
    e = mixed_restitution(a, b) if contact.restitution is None else contact.restitution
    e = otherwise if e is None else e
    rest_speed = max(REST_SPEED * float(np.sqrt(REST * depth / law.exponent)), LEAST_REST_SPEED)
    if contact.impact_speed is None:
        return law._replace(hysteresis=hysteresis_of(e), rest_speed=rest_speed)
    rest_speed = min(rest_speed, IMPACT * max(e, LEAST) ** 2 * contact.impact_speed)
    return law._replace(hysteresis=hysteresis_of(e, contact.impact_speed / rest_speed), rest_speed=rest_speed)


def _mindlin_ratio(a: Material | None, b: Material | None) -> float:
    """Tangential over normal stiffness of a round contact, 2 (1 − ν)/(2 − ν), weighted by the compliances."""
    sides = [x for x in (a, b) if x is not None] or [STIFF]
    weights = [_compliance(x) for x in sides]
    return sum(w * 2.0 * (1.0 - x.poisson) / (2.0 - x.poisson) for w, x in zip(weights, sides)) / sum(weights)
