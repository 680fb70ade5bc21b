"""Contacts: distances of shapes, the law of contact with friction, and contacts of pairs as a term, inside kernels.

With the shape at rest, φ its distance from the ball's centre c, n and N the gradient and Hessian of φ, ball radius r,
centre velocity u and angular velocity ω,

    δ = r − φ(c),   N = k δ^p (1 + d δ̇ + b δ̇/√(δ̇² + v_r²))₊,   δ̇ = −n·u                                 (1)
    w = (1 − n nᵀ) u − r ω × n                                                                          (2)
    f = N n + f_t(N, w),   m = −r n × f                                        force, moment about the centre    (3)

Derivatives are taken in the body's frame: D_c = ∂/∂c, D_u, D_ω, and D_θ for a rotation θ of the ball with its anchor.
Friction is a smooth function of the slip velocity w, or the force of a spring between two anchors:

    smooth      f_t = −μ N w / √(|w|² + v_s²)                                                            (4)
    anchored    s = x + τ w,   f_t = −k_t s,   but −μ N s/|s| where k_t |s| > μ N                         (5)
    x = P [(c − r n) − A] + r (φ/sin φ) P b,   P = 1 − n nᵀ,   cos φ = −n·b                               (6)

One anchor is the point A of the shape. The other is a point of the ball, in the direction b from its centre. The two
coincide at the moment when the pair is anchored. The second part of (6) is the arc along which the ball has rolled
since, so that x is slip only: a rolling ball has no friction. A ball without an anchor has x = 0. With G = φ/sin φ and
z = cos φ,

    ∂x/∂c = P (1 − r N) − (n·d + n dᵀ) N − r [G (n·b + n bᵀ) + G' (P b) bᵀ] N,   d = c − r n − A          (7)
    ∂x/∂θ = −r G P b^ + r G' (P b) (n × b)ᵀ for a rotation θ of the ball,   G' = (z G − 1)/sin² φ          (8)

where N in (7) is the Hessian of the distance.

In the base frame, with W the wrench on ball a of node A from an obstacle on node B, F_A −= W and F_B += W. In the axes
of each of the two nodes, for changes δ of poses and δη of twists, and with W̄ = adbar_W,

    δF_A = K (δ_A − δ_B) + N (δη_A − δη_B),   K = H − N ad_{η_B}                                         (9)
    δF_B = (W̄ − K) (δ_A − δ_B) − N (δη_A − δη_B)                                                        (10)

H and N are those of an obstacle at rest, at the relative twist. A new list of near pairs is made whenever a ball has
moved by half the margin since the last one, so that no contact is missed.

A point of a surface has an outward normal m that turns with its body. It carries the pressure on its projected area:
its k has the factor

    a = (−m·n)₊,   δa = −(m × n)·θ − m·N δc        for a rotation θ of the body and a displacement δc         (11)

The distance of a shape on a grid has a gradient g whose length s is not quite 1 where edges are rounded. All formulas
hold for n = g/s with N = ∂n/∂c, which has no symmetry then. k has the factor s, so that undamped normal forces keep
their potential:

    n = g/s,   N = (1 − n nᵀ) H/s,   δδ = −s n·δc,   δs = (H n)·δc        H the Hessian of the distance      (12)

The point stands for a cell (cells) with half-edges e₁, e₂ that turn with the body. Its depth has the slopes gᵢ = −n·eᵢ.
The curvature of the obstacle reduces its mean depth by a constant ρ. M, m and Φ are those of δ − ρ with the bends c of
cells (4); pair_bow has ρ and c. M stands in the place of the depth, and the pressure has a moment about the point:

    δM = −(C s n + Nᵀ B)·δc − (B × n)·θ,   B = Σ ∂M/∂gᵢ eᵢ,   C = ∂M/∂δ                                   (13)
    k V × n,   V = Σ mᵢ eᵢ,   δV = −(s B nᵀ + Q N) δc − (V^ + Q n^) θ,   Q = Σ ∂mᵢ/∂gⱼ eᵢ eⱼᵀ              (14)
    δ̇ = −n·u − l·ω,   l = V × n/M                                         at the centre of pressure         (15)

The lowest point of an ellipsoid over a plane is exact: a ball that rolls along the inside of the ellipsoid touches it
there. With the centre c₀ of the ellipsoid, and Q the square of its half-axes as a matrix, its centre c is

    c = c₀ − Q n/σ + r n,   σ = √(nᵀ Q n)                                                                (16)
    δc = B θ in the body for its rotation θ,   B = −(Q/σ − Q n nᵀ Q/σ³ − r) n^                            (17)

u is the velocity of the point of the body at c, so that (17) changes f by D_u (ω × B θ), and the moment about a point
of the body by (B θ) × f. The anchor of the body is the point at which it touched when it was anchored, e from c₀. It
replaces the arc of (6), since it moves along the plane like the point of contact but for terms of third order:

    x = P [c₀ + e − A],   ∂x/∂c = P,   ∂x/∂θ = −P (c₀ + e − c)^                                           (18)

Source: Mathew 2025 (57)-(61) and §6.2, with the shape's Hessian in place of that of a cylinder, damping and friction.
K. L. Johnson, Contact Mechanics, 1985, ch. 7 (a tangential spring below the limit of friction); the return to the cone
is that of J. C. Simo, T. J. R. Hughes, Computational Inelasticity, 1998, ch. 1. For b see robot.contact_laws.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false, reportAttributeAccessIssue=false
# pyright: reportIndexIssue=false

from __future__ import annotations

import warp as wp

from lissom.forces.cells import CellPressure, curved_cell_pressure, triangle_pressure
from lissom.forces.rare_shapes import ellipsoid_distance, grid_distance, heights_distance, torus_distance
from lissom.forces.term import Term, couple_nodes
from lissom.lie import se3, so3
from lissom.lie.se3 import ad_matrix, adbar_matrix
from lissom.lie.types import mat3, mat4, mat6, vec3, vec6
from lissom.model.tables import Tables
from lissom.passes import traversal
from lissom.passes.columns import Matrix
from lissom.passes.features import is_rare_shape
from lissom.passes.scratch import LOADS, STATUS_TOO_MANY_PAIRS, Scratch
from lissom.passes.traversal import origin_between, origin_of, place_bases
from lissom.robot.shapes import ShapeKind

PLANE = wp.constant(wp.int32(ShapeKind.PLANE.value))
SPHERE = wp.constant(wp.int32(ShapeKind.SPHERE.value))
BOX = wp.constant(wp.int32(ShapeKind.BOX.value))
CYLINDER = wp.constant(wp.int32(ShapeKind.CYLINDER.value))
HOLLOW = wp.constant(wp.int32(ShapeKind.HOLLOW.value))
CONE = wp.constant(wp.int32(ShapeKind.CONE.value))
TORUS = wp.constant(wp.int32(ShapeKind.TORUS.value))
ELLIPSOID = wp.constant(wp.int32(ShapeKind.ELLIPSOID.value))
HEIGHTS = wp.constant(wp.int32(ShapeKind.HEIGHTS.value))
TINY = wp.constant(wp.float64(1e-30))
SHORT = wp.constant(wp.float64(1e-12))  # length below which a line has no direction [m]
SMALL = wp.constant(wp.float64(0.02))  # 1 − cos φ below which G and G' are computed by series
BELOW_LIMIT = wp.constant(wp.float64(1.0 - 1e-10))  # part of the largest friction at which a new anchor sticks
ROUNDED = wp.constant(wp.float64(1e-14))  # rounding error of an elastic slip, relative to the place of the contact
NOT_A_NUMBER = wp.constant(wp.float64(wp.nan))  # coordinates of an anchor that does not exist


@wp.func
def projector(n: vec3) -> mat3:
    """1 − n nᵀ."""
    return wp.identity(n=3, dtype=wp.float64) - wp.outer(n, n)


@wp.func
def sphere_distance(y: vec3, radius: wp.float64):
    """Distance, gradient and Hessian of a sphere about the origin. At its centre the gradient is one of many unit
    vectors, so that no body rests there."""
    r = wp.length(y)
    if r < SHORT:
        n = vec3(so3.ZERO, so3.ZERO, so3.ONE)
        return r - radius, n, mat3()
    n = y / r
    return r - radius, n, projector(n) / r


@wp.func
def axis_distance(y: vec3, radius: wp.float64):
    """Distance, gradient and Hessian of an infinite cylinder about z; likewise on its axis."""
    rho = wp.sqrt(y[0] * y[0] + y[1] * y[1])
    if rho < SHORT:
        return rho - radius, vec3(so3.ONE, so3.ZERO, so3.ZERO), mat3()
    n = vec3(y[0] / rho, y[1] / rho, so3.ZERO)
    round_it = vec3(-n[1], n[0], so3.ZERO)
    return rho - radius, n, wp.outer(round_it, round_it) / rho


@wp.func
def box_distance(half: vec3, y: vec3):
    """Distance, gradient and Hessian of a box of half sizes `half`."""
    out = vec3()
    open_ = mat3()
    side = vec3()
    for c in range(3):
        side[c] = wp.where(y[c] < so3.ZERO, -so3.ONE, so3.ONE)
        excess = wp.abs(y[c]) - half[c]
        if excess > so3.ZERO:
            out[c] = side[c] * excess
            open_[c, c] = so3.ONE
    distance = wp.length(out)
    if distance > so3.ZERO:
        n = out / distance
        return distance, n, (open_ - wp.outer(n, n)) / distance
    nearest = wp.int32(0)
    for c in range(1, 3):
        if wp.abs(y[c]) - half[c] > wp.abs(y[nearest]) - half[nearest]:
            nearest = c
    n = vec3()
    n[nearest] = side[nearest]
    return wp.abs(y[nearest]) - half[nearest], n, mat3()


@wp.func
def rim_distance(radius: wp.float64, y: vec3):
    """Distance, gradient and Hessian of a circle about z at the origin."""
    side, n, _N = axis_distance(y, radius)
    across = side * n + vec3(so3.ZERO, so3.ZERO, y[2])
    distance = wp.length(across)
    out = across / distance
    round_it = vec3(-n[1], n[0], so3.ZERO)
    curvature = wp.dot(out, n) / (side + radius) - so3.ONE / distance
    return distance, out, projector(out) / distance + curvature * wp.outer(round_it, round_it)


@wp.func
def cylinder_distance(radius: wp.float64, half: wp.float64, y: vec3):
    """Distance, gradient and Hessian of a cylinder with flat ends at ±half."""
    side, n, N = axis_distance(y, radius)
    end = wp.where(y[2] < so3.ZERO, -so3.ONE, so3.ONE)
    above = wp.abs(y[2]) - half
    if side > so3.ZERO and above > so3.ZERO:
        d, m, M = rim_distance(radius, y - vec3(so3.ZERO, so3.ZERO, end * half))
        return d, m, M
    if above > side:
        return above, vec3(so3.ZERO, so3.ZERO, end), mat3()
    return side, n, N


@wp.func
def cone_distance(radius: wp.float64, half: wp.float64, y: vec3):
    """Distance, gradient and Hessian of a cone with its base at −half and its tip at half."""
    slant = wp.length(vec3(radius, so3.TWO * half, so3.ZERO))
    outwards, upwards = so3.TWO * half / slant, radius / slant  # the normal of its side
    side, n, N = axis_distance(y, radius)
    above = y[2] + half
    along = upwards * -side + outwards * above  # on the side, from the rim
    below = -above
    if side > so3.ZERO and along < so3.ZERO:
        d, m, M = rim_distance(radius, y + vec3(so3.ZERO, so3.ZERO, half))
        return d, m, M
    if along > slant:
        d, m, M = sphere_distance(y - vec3(so3.ZERO, so3.ZERO, half), so3.ZERO)
        return d, m, M
    beyond = outwards * side + upwards * above
    if below > beyond:
        return below, vec3(so3.ZERO, so3.ZERO, -so3.ONE), mat3()
    return beyond, outwards * n + vec3(so3.ZERO, so3.ZERO, upwards), outwards * N


@wp.func
def signed_distance(kind: int, size: vec3, y: vec3):
    """Distance of the point y from a shape, negative inside, with gradient n and Hessian N; axes along z.

    Outside, N is the curvature of the parallel surface through the point: 1/distance along the directions in which the
    nearest feature does not extend. Inside a box, a cylinder or a cone the nearest face counts.
    """
    if kind == PLANE:
        return y[2], vec3(so3.ZERO, so3.ZERO, so3.ONE), mat3()
    if kind == SPHERE:
        d, n, N = sphere_distance(y, size[0])
        return d, n, N
    if kind == BOX:
        d, n, N = box_distance(size, y)
        return d, n, N
    if kind == HOLLOW:
        d, n, N = axis_distance(y, size[0])
        return -d, -n, -N
    if kind == CYLINDER:
        if size[1] < so3.ZERO:
            d, n, N = axis_distance(y, size[0])
            return d, n, N
        d, n, N = cylinder_distance(size[0], size[1], y)
        return d, n, N
    if kind == CONE:
        d, n, N = cone_distance(size[0], size[1], y)
        return d, n, N
    if wp.abs(y[2]) <= size[1]:  # a capsule
        d, n, N = axis_distance(y, size[0])
        return d, n, N
    end = wp.where(y[2] < so3.ZERO, -size[1], size[1])
    d, n, N = sphere_distance(y - vec3(so3.ZERO, so3.ZERO, end), size[0])
    return d, n, N


@wp.func(inline=False)
def rare_distance(t: Tables, obstacle: int, y: vec3) -> mat4:
    """The matrix [[N, n], [nᵀ, d]] of forces.rare_shapes for the shape of an obstacle."""
    kind = t.contacts.obstacle_kind[obstacle]
    size = t.contacts.obstacle_size[obstacle]
    if kind == TORUS:
        return torus_distance(size, y)
    if kind == ELLIPSOID:
        return ellipsoid_distance(size, y)
    k = t.contacts.obstacle_grid[obstacle]
    low = t.contacts.grid_low[k]
    spacing = t.contacts.grid_spacing[k]
    n_x = t.contacts.grid_count[k, 0]
    n_y = t.contacts.grid_count[k, 1]
    n_z = t.contacts.grid_count[k, 2]
    start = t.contacts.grid_count[k, 3]
    if kind == HEIGHTS:
        return heights_distance(size, y, low, spacing, n_x, n_y, start, t.contacts.grid_coefficient)
    return grid_distance(y, low, spacing, n_x, n_y, n_z, start, t.contacts.grid_coefficient)


@wp.func
def obstacle_distance(t: Tables, obstacle: int, y: vec3):
    """signed_distance of the shape of an obstacle; y, n and N in the obstacle's frame."""
    kind = t.contacts.obstacle_kind[obstacle]
    if is_rare_shape(kind):
        x = rare_distance(t, obstacle, y)
        n = vec3(x[0, 3], x[1, 3], x[2, 3])
        return x[3, 3], n, mat3(x[0, 0], x[0, 1], x[0, 2], x[1, 0], x[1, 1], x[1, 2], x[2, 0], x[2, 1], x[2, 2])
    d, n, N = signed_distance(kind, t.contacts.obstacle_size[obstacle], y)
    return d, n, N


@wp.struct
class ContactLaw:
    """k, p, c, μ, v_s, k_t (0 for the smooth law), τ, b and v_r of robot.contacts.Contact."""

    stiffness: wp.float64
    exponent: wp.float64
    damping: wp.float64
    friction: wp.float64
    slip_speed: wp.float64
    stick_stiffness: wp.float64
    stick_damping: wp.float64
    hysteresis: wp.float64
    rest_speed: wp.float64


@wp.struct
class Anchor:
    """The anchor of a pair for (6), in the base frame: whether it exists, d = c − r n − A, and b. Of (18): whether it
    is a point of the body, d = c₀ + e − A, and b = c₀ + e − c."""

    exists: wp.int32
    is_point: wp.int32
    d: vec3
    b: vec3


@wp.func
def arc_factor(n: vec3, b: vec3):
    """G and G' of (8)."""
    z = -wp.dot(n, b)
    y = so3.ONE - z
    if y < SMALL:
        G = so3.ZERO
        slope = so3.ZERO
        term = wp.float64(1.0)  # term of the series of G in y; the next is (m + 1)/(2m + 3) y times this one
        m = wp.float64(0.0)
        for _k in range(9):
            G += term
            factor = (m + so3.ONE) / (so3.TWO * m + wp.float64(3.0))
            slope -= (m + so3.ONE) * factor * term
            term = term * factor * y
            m += so3.ONE
        return G, slope
    side = wp.max(wp.length(b + z * n), TINY)
    G = wp.atan2(side, z) / side
    return G, (z * G - so3.ONE) / (side * side)


@wp.func
def elastic_slip(anchored: Anchor, radius: wp.float64, n: vec3) -> vec3:
    """x of (6) or (18)."""
    if anchored.exists == 0:
        return vec3()
    if anchored.is_point != 0 or radius == so3.ZERO:
        return anchored.d - wp.dot(n, anchored.d) * n
    G, _slope = arc_factor(n, anchored.b)
    return projector(n) * (anchored.d + radius * G * anchored.b)


@wp.func
def elastic_slip_derivatives(anchored: Anchor, radius: wp.float64, n: vec3, N: mat3):
    """∂x/∂c of (7) and ∂x/∂θ of (8), or those of (18)."""
    if anchored.exists == 0:
        return mat3(), mat3()
    P = projector(n)
    if anchored.is_point != 0:
        return P, -(P * so3.hat(anchored.b))
    if radius == so3.ZERO:
        moved = wp.dot(n, anchored.d) * wp.identity(n=3, dtype=wp.float64) + wp.outer(n, anchored.d)
        return P - moved * N, mat3()
    G, slope = arc_factor(n, anchored.b)
    one = wp.identity(n=3, dtype=wp.float64)
    arm = P * anchored.b
    turned = G * (wp.dot(n, anchored.b) * one + wp.outer(n, anchored.b)) + slope * wp.outer(arm, anchored.b)
    moved = wp.dot(n, anchored.d) * one + wp.outer(n, anchored.d)
    by_centre = P * (one - radius * N) - (moved + radius * turned) * N
    by_turn = radius * (slope * wp.outer(arm, wp.cross(n, anchored.b)) - G * (P * so3.hat(anchored.b)))
    return by_centre, by_turn


@wp.func
def friction_force(law: ContactLaw, anchored: Anchor, radius: wp.float64, push: wp.float64, n: vec3, w: vec3) -> vec3:
    """f_t of (4) or (5)."""
    most = law.friction * push
    if law.stick_stiffness == so3.ZERO:
        return (-most / wp.sqrt(wp.dot(w, w) + law.slip_speed * law.slip_speed)) * w
    s = elastic_slip(anchored, radius, n) + law.stick_damping * w
    return -wp.min(law.stick_stiffness, most / wp.max(wp.length(s), TINY)) * s


@wp.func
def friction_slopes(law: ContactLaw, anchored: Anchor, radius: wp.float64, push: wp.float64, n: vec3, w: vec3):
    """∂f_t/∂s at fixed N, ∂f_t/∂N, and ∂s/∂w, which is τ; for the smooth law (4) s = w, and ∂s/∂w is 1."""
    most = law.friction * push
    one = wp.identity(n=3, dtype=wp.float64)
    if law.stick_stiffness == so3.ZERO:
        size = wp.sqrt(wp.dot(w, w) + law.slip_speed * law.slip_speed)
        g = w / size
        return (-most / size) * (one - wp.outer(g, g)), -law.friction * g, so3.ONE
    s = elastic_slip(anchored, radius, n) + law.stick_damping * w
    size = wp.length(s)
    if most <= so3.ZERO:
        return mat3(), vec3(), law.stick_damping
    if law.stick_stiffness * size <= most:
        return -law.stick_stiffness * one, vec3(), law.stick_damping
    g = s / size
    return (-most / size) * (one - wp.outer(g, g)), -law.friction * g, law.stick_damping


@wp.func
def limited_slip(law: ContactLaw, anchored: Anchor, radius: wp.float64, push: wp.float64, n: vec3, c: vec3) -> vec3:
    """x shortened to the limit of friction, k_t |x| < μ N: beyond this limit the ball slips. The limit is lowered by
    more than the rounding errors of x at the centre c, so that the new anchor surely sticks."""
    x = elastic_slip(anchored, radius, n)
    most = wp.max(BELOW_LIMIT * law.friction * push / law.stick_stiffness - ROUNDED * wp.length(c), so3.ZERO)
    size = wp.length(x)
    if size > most:
        return (most / size) * x
    return x


@wp.func
def pressure(law: ContactLaw, depth: wp.float64, rate: wp.float64):
    """N of (1), its derivative with respect to δ, and that by δ̇."""
    static = law.stiffness * depth
    if law.exponent == wp.float64(1.5):  # of Hertz
        static = static * wp.sqrt(depth)
    elif law.exponent != so3.ONE:
        static = law.stiffness * wp.pow(depth, law.exponent)
    size = wp.sqrt(rate * rate + law.rest_speed * law.rest_speed)
    swell = so3.ONE + law.damping * rate + law.hysteresis * rate / size
    if swell <= so3.ZERO:
        return so3.ZERO, so3.ZERO, so3.ZERO
    steep = law.rest_speed / size
    by_rate = law.damping + law.hysteresis * steep * steep / size
    return static * swell, law.exponent * static / depth * swell, static * by_rate


@wp.struct
class Contact:
    """The arguments of the contact law for a pair, in the base frame.

    law. anchored: the anchor. facing: m/a of (11), zero for balls. slope, bend: s and H n/s of (12). cell, e_1, e_2: of
    (13), for balls with C = 1 and all else zero. radius: of the ball, zero for a cell. depth: δ of a ball, M of a cell.
    at_point: δ − ρ of (13). gap: distance of the ball, or of the point of a cell. c: centre. rolls: whether it moves in
    the body by (17), and swing: B. n, N: normal and its derivative with respect to c. u, spin: velocity of the centre
    and angular velocity relative to the obstacle. a, b: nodes of ball and obstacle.
    """

    law: ContactLaw
    anchored: Anchor
    facing: vec3
    slope: wp.float64
    bend: vec3
    cell: CellPressure
    e_1: vec3
    e_2: vec3
    radius: wp.float64
    depth: wp.float64
    at_point: wp.float64
    gap: wp.float64
    c: vec3
    rolls: wp.int32
    swing: mat3
    n: vec3
    N: mat3
    u: vec3
    spin: vec3
    a: wp.int32
    b: wp.int32


@wp.func
def contact_force(x: Contact):
    """f and m of (3), with the moment (14) of a cell."""
    push, by_depth, _by_rate = pressure(x.law, x.depth, rate_of(x))
    f = push * x.n
    if x.law.friction > so3.ZERO:
        slip = x.u - wp.dot(x.n, x.u) * x.n - x.radius * wp.cross(x.spin, x.n)
        f += friction_force(x.law, x.anchored, x.radius, push, x.n, slip)
    if x.radius > so3.ZERO:
        return f, -x.radius * wp.cross(x.n, f)
    return f, by_depth * wp.cross(spread_of(x), x.n)


@wp.func
def spread_of(x: Contact) -> vec3:
    """V of (14)."""
    return x.cell.m_1 * x.e_1 + x.cell.m_2 * x.e_2


@wp.func
def rate_of(x: Contact) -> wp.float64:
    """δ̇ of (1), or of (15) for a cell."""
    if x.radius > so3.ZERO:
        return -wp.dot(x.n, x.u)
    return -wp.dot(x.n, x.u) - wp.dot(x.spin, wp.cross(spread_of(x), x.n)) / x.depth


@wp.func
def second_moments(x: Contact) -> mat3:
    """Q of (14)."""
    Q = x.cell.m_11 * wp.outer(x.e_1, x.e_1) + x.cell.m_22 * wp.outer(x.e_2, x.e_2)
    return Q + x.cell.m_12 * (wp.outer(x.e_1, x.e_2) + wp.outer(x.e_2, x.e_1))


@wp.func(inline=False)
def rate_slopes(x: Contact):
    """Derivatives of −δ̇ of (15), of a cell, by c with u held fixed, by θ, and by ω."""
    N_t = wp.transpose(x.N)
    by_place = N_t * x.u
    spread = spread_of(x)
    lever = wp.cross(spread, x.n) / x.depth
    tilt = x.cell.depth_1 * x.e_1 + x.cell.depth_2 * x.e_2
    drop = x.cell.cover * x.slope * x.n + N_t * tilt
    turning = wp.cross(x.spin, x.n)
    pressed = second_moments(x) * turning
    share = wp.dot(x.spin, lever) / x.depth
    by_place += (x.slope * wp.dot(tilt, turning) * x.n + N_t * (pressed + wp.cross(x.spin, spread))) / x.depth
    by_turn = -(wp.cross(spread, turning) + wp.cross(x.n, pressed)) / x.depth
    return by_place + share * drop, by_turn + share * wp.cross(tilt, x.n), lever


@wp.func
def contact_derivatives(x: Contact):
    """D_c, D_u, D_ω and D_θ of f, with u and ω held fixed under D_c and D_θ."""
    n = x.n
    N = x.N
    u = x.u
    N_t = wp.transpose(N)
    push, by_depth, by_rate = pressure(x.law, x.depth, rate_of(x))
    along = n
    flat = projector(n)
    D_c = push * N
    D_u = mat3()
    D_spin = mat3()
    D_turn = mat3()
    if x.law.friction > so3.ZERO:
        slip = flat * u - x.radius * wp.cross(x.spin, n)
        G, by_push, share = friction_slopes(x.law, x.anchored, x.radius, push, n, slip)
        along = n + by_push
        slip_c = -(wp.outer(n, N_t * u) + wp.dot(n, u) * N)
        D_u += share * (G * flat)
        if x.radius > so3.ZERO:
            slip_c -= x.radius * so3.cross_columns(x.spin, N)
            D_spin += (share * x.radius) * (G * so3.hat(n))
        D_c += share * (G * slip_c)
        if x.law.stick_stiffness > so3.ZERO:
            by_centre, by_turn = elastic_slip_derivatives(x.anchored, x.radius, n, N)
            D_c += G * by_centre
            D_turn += G * by_turn
    D_u += wp.outer(along, -by_rate * n)
    if wp.dot(x.facing, x.facing) > so3.ZERO:
        rate_c, rate_turn, lever = rate_slopes(x)
        tilt = x.cell.depth_1 * x.e_1 + x.cell.depth_2 * x.e_2
        drop = x.cell.cover * x.slope * n + N_t * tilt
        D_c += wp.outer(along, -by_depth * drop - by_rate * rate_c + push * (x.bend - N_t * x.facing))  # (11) to (15)
        D_turn += wp.outer(along, -push * wp.cross(x.facing, n))  # (11)
        D_turn += wp.outer(along, -by_depth * wp.cross(tilt, n) - by_rate * rate_turn)  # (13), (15)
        D_spin += wp.outer(along, -by_rate * lever)
    else:
        D_c += wp.outer(along, -by_depth * x.slope * n - by_rate * (N_t * u) + push * x.bend)  # (1), (12)
    if x.rolls != 0:
        D_turn += D_u * (so3.hat(x.spin) * x.swing)  # (17)
    return D_c, D_u, D_spin, D_turn


@wp.func(inline=False)
def cell_response(x: Contact):
    """The part of the moment (14) in H and N of contact_response."""
    _push, k, by_rate = pressure(x.law, x.depth, rate_of(x))
    if k == so3.ZERO:
        return mat6(), mat6()
    N_t = wp.transpose(x.N)
    n_hat = so3.hat(x.n)
    spread = spread_of(x)
    moment = k * wp.cross(spread, x.n)
    per_rate = -by_rate / (k * x.depth)
    rate_c, rate_turn, lever = rate_slopes(x)
    tilt = x.cell.depth_1 * x.e_1 + x.cell.depth_2 * x.e_2
    Q = second_moments(x)
    T_c = wp.outer(moment, x.bend - N_t * x.facing + per_rate * rate_c)
    T_c += k * (n_hat * (x.slope * wp.outer(tilt, x.n) + Q * x.N) + so3.hat(spread) * x.N)
    T_turn = k * (n_hat * (so3.hat(spread) + Q * n_hat))
    T_turn += wp.outer(moment, per_rate * rate_turn - wp.cross(x.facing, x.n))
    T_u = per_rate * wp.outer(moment, x.n)
    T_spin = per_rate * wp.outer(moment, lever)
    zero = mat3()
    T_turn -= T_u * so3.hat(x.u) + T_spin * so3.hat(x.spin)
    return -se3.block(T_turn, T_c, zero, zero), -se3.block(T_spin, T_u, zero, zero)


@wp.func
def contact_response(
    radius: wp.float64,
    n: vec3,
    N: mat3,
    u: vec3,
    spin: vec3,
    f: vec3,
    m: vec3,
    D_c: mat3,
    D_u: mat3,
    D_spin: mat3,
    D_turn: mat3,
):
    """Derivatives of −(m; f) at the centre by a small motion of the body and by its twist, both at the centre.

    In the body's frame a rotation θ changes f by δf − θ × f, and reduces the changes of u and ω by θ × u and θ × ω.
    """
    turn = D_u * so3.hat(u) + D_spin * so3.hat(spin) - D_turn
    lever = radius * so3.hat(n)
    H = -se3.block(lever * turn + so3.hat(m), radius * so3.cross_columns(f, N) - lever * D_c, so3.hat(f) - turn, D_c)
    return H, -se3.block(-lever * D_spin, -lever * D_u, D_spin, D_u)


@wp.func
def at_origin(c: vec3, X: mat6) -> mat6:
    """A 6x6 matrix X from twists at the point c to wrenches there, transformed to the origin."""
    c_hat = so3.hat(c)
    A = mat3(X[0, 0], X[0, 1], X[0, 2], X[1, 0], X[1, 1], X[1, 2], X[2, 0], X[2, 1], X[2, 2])
    B = mat3(X[0, 3], X[0, 4], X[0, 5], X[1, 3], X[1, 4], X[1, 5], X[2, 3], X[2, 4], X[2, 5])
    C = mat3(X[3, 0], X[3, 1], X[3, 2], X[4, 0], X[4, 1], X[4, 2], X[5, 0], X[5, 1], X[5, 2])
    D = mat3(X[3, 3], X[3, 4], X[3, 5], X[4, 3], X[4, 4], X[4, 5], X[5, 3], X[5, 4], X[5, 5])
    lower = C - D * c_hat
    return se3.block(A - B * c_hat + c_hat * lower, B + c_hat * D, lower, D)


@wp.func
def force_at_origin(c: vec3, C: mat3, D: mat3) -> mat6:
    """`at_origin` of [[0, 0], [C, D]]."""
    c_hat = so3.hat(c)
    lower = C - D * c_hat
    return se3.block(so3.cross_columns(c, lower), so3.cross_columns(c, D), lower, D)


@wp.func
def wrench_at_origin(c: vec3, m: vec3, f: vec3) -> vec6:
    """The wrench about the origin of a moment and a force at the point c."""
    return se3.join(m + wp.cross(c, f), f)


@wp.func
def pose_of(s: Scratch, i: int, k: int, origin: vec3):
    """Pose of node k in the base frame with origin `origin`; that of the world for k = −1."""
    if k < 0:
        return wp.identity(n=3, dtype=wp.float64), -origin
    return s.node[i, k].R, s.node[i, k].p


@wp.func
def twist_of(s: Scratch, i: int, k: int) -> vec6:
    """Twist of node k; zero for the world, k = −1."""
    if k < 0:
        return vec6()
    return s.node[i, k].eta


@wp.func
def ball_centre(t: Tables, s: Scratch, i: int, ball: int, origin: vec3) -> vec3:
    """Centre of a ball in the base frame with origin `origin`."""
    R, p = pose_of(s, i, t.contacts.ball_node[ball], origin)
    return R * t.contacts.ball_position[ball] + p


@wp.func
def rolls_inside(t: Tables, ball: int) -> bool:
    """Whether a ball rolls along the inside of an ellipsoid."""
    return t.contacts.ball_squares[ball][0, 0] > so3.ZERO


@wp.func
def squares_of(t: Tables, ball: int, R_a: mat3) -> mat3:
    """Q of (16) in the base frame, where the node of the ball has the rotation R_a."""
    return R_a * t.contacts.ball_squares[ball] * wp.transpose(R_a)


@wp.func
def rolled(t: Tables, ball: int, R_a: mat3, n: vec3) -> vec3:
    """c − c₀ of (16) on a plane with the normal n."""
    Q_n = squares_of(t, ball, R_a) * n
    return t.contacts.ball_radius[ball] * n - Q_n / wp.sqrt(wp.dot(n, Q_n))


@wp.func
def swing_of(t: Tables, ball: int, R_a: mat3, n: vec3) -> mat3:
    """B of (17)."""
    Q = squares_of(t, ball, R_a)
    Q_n = Q * n
    size = wp.sqrt(wp.dot(n, Q_n))
    tilt = Q / size - wp.outer(Q_n, Q_n) / (size * size * size)
    return (t.contacts.ball_radius[ball] * wp.identity(n=3, dtype=wp.float64) - tilt) * so3.hat(n)


@wp.func
def touching_centre(t: Tables, s: Scratch, i: int, e: int, origin: vec3) -> vec3:
    """Centre of the ball of pair e in the base frame with origin `origin`, by (16) if it rolls in its body."""
    ball = t.contacts.pair[e, 0]
    c = ball_centre(t, s, i, ball, origin)
    if rolls_inside(t, ball):
        R_a, _p_a = pose_of(s, i, t.contacts.ball_node[ball], origin)
        R, _p = obstacle_pose(t, s, i, t.contacts.pair[e, 1], origin)
        c += rolled(t, ball, R_a, vec3(R[0, 2], R[1, 2], R[2, 2]))
    return c


@wp.func
def ball_in_world(t: Tables, s: Scratch, i: int, ball: int) -> vec3:
    """Centre of a ball in the world."""
    origin = origin_of(t, s, i, t.contacts.ball_node[ball])
    return ball_centre(t, s, i, ball, origin) + origin


@wp.func
def ball_place(t: Tables, s: Scratch, i: int, e: int) -> vec3:
    """Centre of the ball of pair e in the frame of its obstacle's node."""
    ball = t.contacts.pair[e, 0]
    node = t.contacts.obstacle_node[t.contacts.pair[e, 1]]
    origin = origin_between(t, s, i, t.contacts.ball_node[ball], node)
    R, p = pose_of(s, i, node, origin)
    return wp.transpose(R) * (ball_centre(t, s, i, ball, origin) - p)


@wp.func
def obstacle_pose(t: Tables, s: Scratch, i: int, obstacle: int, origin: vec3):
    """Pose of the frame of an obstacle in the base frame."""
    R, p = pose_of(s, i, t.contacts.obstacle_node[obstacle], origin)
    return R * t.contacts.obstacle_R[obstacle], R * t.contacts.obstacle_p[obstacle] + p


@wp.func
def is_aside(t: Tables, ball: int, R_a: mat3, n: vec3) -> int:
    """Whether the contact point of a ball, which stands for a part of an axis, is beyond the ends of this part."""
    part = t.contacts.ball_part[ball]
    if t.contacts.ball_radius[ball] * wp.abs(wp.dot(R_a * part, n)) > wp.dot(part, part):
        return 1
    return 0


@wp.func
def gap_of_surfaces(t: Tables, s: Scratch, i: int, e: int):
    """Distance of the surfaces of pair e, negative if they overlap; for a cell a lower bound of its distance. Also
    whether the pair cannot touch there since its ball is aside."""
    ball = t.contacts.pair[e, 0]
    obstacle = t.contacts.pair[e, 1]
    b = t.contacts.obstacle_node[obstacle]
    origin = origin_between(t, s, i, t.contacts.ball_node[ball], b)
    R, p = pose_of(s, i, b, origin)
    x = wp.transpose(R) * (touching_centre(t, s, i, e, origin) - p) - t.contacts.obstacle_p[obstacle]
    y = wp.transpose(t.contacts.obstacle_R[obstacle]) * x
    d, n, _N = obstacle_distance(t, obstacle, y)
    normal = t.contacts.ball_normal[ball]
    if wp.dot(normal, normal) > so3.ZERO:  # a cell touches before its point does
        R_a, _p_a = pose_of(s, i, t.contacts.ball_node[ball], origin)
        z = wp.transpose(R_a) * (R * (t.contacts.obstacle_R[obstacle] * n))
        bow = t.contacts.pair_bow[e]
        d += bow[0] - wp.abs(bow[1]) - wp.abs(bow[2])
        d -= wp.abs(wp.dot(z, t.contacts.ball_cell[ball, 0])) + wp.abs(wp.dot(z, t.contacts.ball_cell[ball, 1]))
    aside = wp.int32(0)
    if t.contacts.ball_radius[ball] > so3.ZERO:
        R_ball, _p_ball = pose_of(s, i, t.contacts.ball_node[ball], origin)
        aside = is_aside(t, ball, R_ball, R * (t.contacts.obstacle_R[obstacle] * n))
    return d - t.contacts.ball_radius[ball], aside


@wp.func
def gap_of_pair(t: Tables, s: Scratch, i: int, e: int) -> wp.float64:
    """Distance of the surfaces of pair e, negative if they overlap; at least the margin if its ball is aside."""
    gap, aside = gap_of_surfaces(t, s, i, e)
    if aside == 1:
        return wp.max(gap, t.contacts.margin)
    return gap


@wp.func(inline=False)
def renew_near(t: Tables, s: Scratch, i: int):
    """Measure how far the balls that are watched have moved since the last list of near pairs. Make a new list if one
    has moved by half the margin, or if there is no list."""
    if s.near.count[i] >= 0:
        limit = so3.HALF * t.contacts.margin
        farthest = wp.float64(0.0)
        serves = wp.int32(1)
        for k in range(t.contacts.watched.shape[0]):
            ball = t.contacts.watched[k]
            moved = ball_in_world(t, s, i, ball) - s.near.listed_position[i, ball]
            square = wp.dot(moved, moved)
            farthest = wp.max(farthest, square)
            if not (square < limit * limit):
                serves = 0
        s.near.moved[i] = wp.sqrt(farthest)
        if serves == 1:
            return
    list_near(t, s, i)


@wp.func
def note_if_open(t: Tables, s: Scratch, i: int, j: int) -> bool:
    """Store the gap of near pair j, or a lower bound, and no force, if the pair is open. Returns whether it is. A pair
    is surely open if neither of its sides has moved far enough to meet the other one, or if its ball has not moved far
    enough relative to the obstacle. Only pairs without a force at the last evaluation are looked at, so that a pair in
    contact is not evaluated twice."""
    room = s.near.room[i, j]
    left = room - so3.TWO * s.near.moved[i]
    if left <= so3.ZERO:
        if s.near.push[i, j] != so3.ZERO:
            return False
        e = s.near.pair[i, j]
        if room > so3.ZERO:
            left = room - wp.length(ball_place(t, s, i, e) - s.near.place[i, j])
        if not (left > so3.ZERO):
            left = gap_of_pair(t, s, i, e)
            if left < so3.ZERO:
                return False
    s.near.gap[i, j] = left
    s.near.push[i, j] = so3.ZERO
    return True


@wp.func(inline=False)
def place_clusters(t: Tables, s: Scratch, i: int):
    """Store the positions of all balls, and centre and radius of a sphere around each cluster of balls."""
    for c in range(s.near.centre.shape[1]):
        begin, end = t.contacts.cluster_start[c], t.contacts.cluster_start[c + 1]
        centre = vec3()
        for ball in range(begin, end):
            position = ball_in_world(t, s, i, ball)
            s.near.listed_position[i, ball] = position
            centre = centre + position / wp.float64(end - begin)
        radius = wp.float64(0.0)
        for ball in range(begin, end):
            reach = wp.length(t.contacts.ball_cell[ball, 0]) + wp.length(t.contacts.ball_cell[ball, 1])
            squares = t.contacts.ball_squares[ball]
            reach += t.contacts.ball_radius[ball] + wp.sqrt(squares[0, 0] + squares[1, 1] + squares[2, 2])
            distance = wp.length(s.near.listed_position[i, ball] - centre) + reach
            radius = wp.max(radius, distance)
        s.near.centre[i, c] = centre
        s.near.radius[i, c] = radius


@wp.func
def gap_of_block(t: Tables, s: Scratch, i: int, k: int) -> wp.float64:
    """Lower bound of the gaps of the pairs of block k: the gap of the spheres around two clusters, or of one sphere and
    a shape."""
    mine = t.contacts.block[k, 0]
    other = t.contacts.block[k, 1]
    centre = s.near.centre[i, mine]
    if other >= 0:
        return wp.length(centre - s.near.centre[i, other]) - s.near.radius[i, mine] - s.near.radius[i, other]
    obstacle = t.contacts.pair[t.contacts.block[k, 2], 1]
    node = t.contacts.obstacle_node[obstacle]
    origin = origin_of(t, s, i, node)
    R, p = pose_of(s, i, node, origin)
    x = wp.transpose(R) * (centre - origin - p) - t.contacts.obstacle_p[obstacle]
    y = wp.transpose(t.contacts.obstacle_R[obstacle]) * x
    d, _n, _N = obstacle_distance(t, obstacle, y)
    return d - s.near.radius[i, mine]


@wp.func
def room_of(t: Tables, e: int, roams: bool, gap: wp.float64) -> wp.float64:
    """How far the two sides of pair e may move before they meet. Distances of rare shapes may have gradients of other
    lengths than 1; those of shapes without bounds may move faster than the balls that are watched."""
    if roams:
        return so3.ZERO
    return wp.where(is_rare_shape(t.contacts.obstacle_kind[t.contacts.pair[e, 1]]), so3.HALF * gap, gap)


@wp.func
def listed_place(t: Tables, s: Scratch, i: int, e: int) -> vec3:
    """`place` of scratch memory for pair e: a cell, and a ball that rolls inside an ellipsoid, have none."""
    ball = t.contacts.pair[e, 0]
    if t.contacts.ball_radius[ball] == so3.ZERO or rolls_inside(t, ball):
        return vec3(NOT_A_NUMBER, NOT_A_NUMBER, NOT_A_NUMBER)
    return ball_place(t, s, i, e)


@wp.func(inline=False)
def list_near(t: Tables, s: Scratch, i: int):
    """Make the list of near pairs: those within the margin, and all pairs whose obstacle is an unbounded shape on a
    link. Too many pairs set the status of the instance, and leave no list."""
    count = wp.int32(0)
    capacity = s.near.pair.shape[1]
    place_clusters(t, s, i)
    for k in range(t.contacts.block.shape[0]):
        begin, end = t.contacts.block[k, 2], t.contacts.block[k, 3]
        roams = t.contacts.obstacle_roams[t.contacts.pair[begin, 1]] != 0
        if roams or gap_of_block(t, s, i, k) < t.contacts.margin:
            for e in range(begin, end):
                gap, _aside = gap_of_surfaces(t, s, i, e)
                if roams or gap < t.contacts.margin:
                    if count < capacity:
                        s.near.pair[i, count] = e
                        s.near.room[i, count] = room_of(t, e, roams, gap)
                        s.near.place[i, count] = listed_place(t, s, i, e)
                    count += 1
    if count > capacity:
        s.status[i] = STATUS_TOO_MANY_PAIRS
        count = wp.int32(-1)
    s.near.count[i] = count
    s.near.lists[i] = s.near.lists[i] + 1
    s.near.moved[i] = so3.ZERO
    s.near.is_swept[i] = 0


@wp.func
def anchor_at(t: Tables, i: int, e: int) -> vec3:
    """Anchor of pair e of an instance on its obstacle; NaN if it has none."""
    return t.contacts.anchor[anchor_row(t, i), 2 * e]


@wp.func
def has_anchor(t: Tables, i: int, e: int) -> bool:
    """Whether pair e of an instance has an anchor. A function call of wp.isnan would take longer than all else here."""
    x = t.contacts.anchor[anchor_row(t, i), 2 * e][0]
    return x == x


@wp.func
def anchor_row(t: Tables, i: int) -> int:
    """Row of the anchors of instance i; a table with one row serves all instances."""
    return wp.min(i, t.contacts.anchor.shape[0] - 1)


@wp.func
def put_anchor(t: Tables, i: int, e: int, on_obstacle: vec3, on_ball: vec3):
    """Set both anchors of pair e of an instance."""
    t.contacts.anchor[anchor_row(t, i), 2 * e] = on_obstacle
    t.contacts.anchor[anchor_row(t, i), 2 * e + 1] = on_ball


@wp.func(inline=False)
def contact_of(t: Tables, s: Scratch, i: int, e: int, differs: bool) -> Contact:
    """The contact of pair e, from the poses and twists in s. If it is open, its depth is zero or negative, and n, N, u,
    spin, law and anchored are zero. A pair of a surface point that faces away, or of a ball aside, counts as open.
    Without `differs` it has no N, bend and swing, which forces do not need."""
    ball = t.contacts.pair[e, 0]
    obstacle = t.contacts.pair[e, 1]
    x = Contact()
    x.a = t.contacts.ball_node[ball]
    x.b = t.contacts.obstacle_node[obstacle]
    x.radius = t.contacts.ball_radius[ball]
    origin = origin_between(t, s, i, x.a, x.b)
    x.c = touching_centre(t, s, i, e, origin)
    R, p = obstacle_pose(t, s, i, obstacle, origin)
    y = wp.transpose(R) * (x.c - p)
    d, n, N = obstacle_distance(t, obstacle, y)
    x.depth = x.radius - d
    x.gap = d - x.radius
    x.slope = so3.ONE
    if is_rare_shape(t.contacts.obstacle_kind[obstacle]):  # (12)
        x.slope = wp.max(wp.length(n), TINY)
        n = n / x.slope
        if differs:
            x.bend = R * (N * n) / x.slope
            N = projector(n) * N / x.slope
    share = so3.ONE
    x.cell.cover = so3.ONE
    normal = vec3()
    if x.radius == so3.ZERO:  # others have no cell
        normal = t.contacts.ball_normal[ball]
    if wp.dot(normal, normal) > so3.ZERO:
        R_a, _p_a = pose_of(s, i, x.a, origin)
        facing = R_a * normal
        share = -wp.dot(facing, R * n)
        bow = t.contacts.pair_bow[e]
        x.at_point = x.depth - bow[0]
        x.depth = so3.ZERO
        if share > so3.ZERO:
            x.facing = facing / share
            x.e_1 = R_a * t.contacts.ball_cell[ball, 0]
            x.e_2 = R_a * t.contacts.ball_cell[ball, 1]
            g_1 = -wp.dot(R * n, x.e_1)
            g_2 = -wp.dot(R * n, x.e_2)
            if t.contacts.ball_is_triangle[ball] != 0:
                x.cell = triangle_pressure(x.at_point, g_1, g_2)
            else:
                x.cell = curved_cell_pressure(x.at_point, g_1, g_2, bow[1], bow[2])
            x.depth = x.cell.depth
    if x.depth > so3.ZERO and x.radius > so3.ZERO:
        R_ball, _p_ball = pose_of(s, i, x.a, origin)
        if is_aside(t, ball, R_ball, R * n) == 1:
            x.depth = so3.ZERO
    if x.depth > so3.ZERO:
        x.n = R * n
        if differs:
            x.N = R * N * wp.transpose(R)
        rho = twist_of(s, i, x.a) - twist_of(s, i, x.b)
        x.spin = se3.angular(rho)
        x.u = se3.linear(rho) + wp.cross(x.spin, x.c)
        if rolls_inside(t, ball):
            R_a, _p_a = pose_of(s, i, x.a, origin)
            x.rolls = 1
            if differs:
                x.swing = swing_of(t, ball, R_a, x.n)
        row = t.contacts.pair[e, 2]
        weight = t.contacts.pair_weight[e]
        x.law.stiffness = share * x.slope * weight * t.contacts.law[row, 0]
        x.law.exponent = t.contacts.law[row, 1]
        x.law.damping = t.contacts.law[row, 2]
        x.law.friction = t.contacts.law[row, 3]
        x.law.slip_speed = t.contacts.law[row, 4]
        x.law.stick_stiffness = weight * t.contacts.law[row, 5]
        x.law.stick_damping = t.contacts.law[row, 6]
        x.law.hysteresis = t.contacts.law[row, 7]
        x.law.rest_speed = t.contacts.law[row, 8]
        if x.law.stick_stiffness > so3.ZERO and has_anchor(t, i, e):
            R_a, _p_a = pose_of(s, i, x.a, origin)
            x.anchored.exists = 1
            x.anchored.d = x.c - x.radius * x.n - R * anchor_at(t, i, e) - p
            x.anchored.b = R_a * t.contacts.anchor[anchor_row(t, i), 2 * e + 1]
            if x.rolls != 0:
                at = ball_centre(t, s, i, ball, origin) + x.anchored.b
                x.anchored.is_point = 1
                x.anchored.d = at - R * anchor_at(t, i, e) - p
                x.anchored.b = at - x.c
    return x


@wp.func
def new_anchor(t: Tables, s: Scratch, i: int, e: int, x: Contact, push: wp.float64):
    """New anchors of pair e, which is in contact with the normal force `push`, in the frames of the obstacle and of the
    ball's node: the contact point, moved back by the elastic slip up to the limit of friction, and b of (6) or e of
    (18)."""
    origin = origin_between(t, s, i, x.a, x.b)
    R, p = obstacle_pose(t, s, i, t.contacts.pair[e, 1], origin)
    R_a, _p_a = pose_of(s, i, x.a, origin)
    A = x.c - x.radius * x.n - limited_slip(x.law, x.anchored, x.radius, push, x.n, x.c)
    if x.rolls != 0:
        e_a = x.c - x.radius * x.n - ball_centre(t, s, i, t.contacts.pair[e, 0], origin)
        return wp.transpose(R) * (A - p), wp.transpose(R_a) * e_a
    return wp.transpose(R) * (A - p), -(wp.transpose(R_a) * x.n)


@wp.func
def put_push(s: Scratch, i: int, j: int, x: Contact) -> wp.float64:
    """Store gap and normal force of near pair j, and return the force."""
    push = wp.float64(0.0)
    if x.depth > so3.ZERO:
        push, _by_depth, _by_rate = pressure(x.law, x.depth, rate_of(x))
    s.near.gap[i, j] = x.gap
    s.near.push[i, j] = push
    return push


@wp.func(inline=False)
def update_anchors(t: Tables, s: Scratch, i: int):
    """Update the anchors of pairs in contact to the present state, and clear those of pairs that have opened. Stores
    `gap` and `push` of s.near."""
    renew_near(t, s, i)
    if s.near.is_swept[i] == 0:  # pairs that are near no longer may have anchors
        for e in range(t.contacts.pair.shape[0]):
            if has_anchor(t, i, e):
                clear_anchor(t, s, i, e)
        s.near.is_swept[i] = 1
    for j in range(s.near.count[i]):
        e = s.near.pair[i, j]
        sticks = wp.int32(0)
        if not note_if_open(t, s, i, j):
            x = contact_of(t, s, i, e, False)
            push = put_push(s, i, j, x)
            if x.depth > so3.ZERO and x.law.stick_stiffness > so3.ZERO:
                on_obstacle, on_ball = new_anchor(t, s, i, e, x, push)
                put_anchor(t, i, e, on_obstacle, on_ball)
                sticks = 1
        if sticks == 0 and has_anchor(t, i, e):
            clear_anchor(t, s, i, e)


@wp.func
def clear_anchor(t: Tables, s: Scratch, i: int, e: int):
    """Clear the anchor of pair e if it is open."""
    if not (gap_of_pair(t, s, i, e) < so3.ZERO):
        none = vec3(NOT_A_NUMBER, NOT_A_NUMBER, NOT_A_NUMBER)
        put_anchor(t, i, e, none, none)


@wp.func(inline=False)
def add_contacts(t: Tables, s: Scratch, i: int):
    """Subtract the wrenches of contacts from F of both nodes of each pair. Stores `gap` and `push` of s.near."""
    renew_near(t, s, i)
    for j in range(s.near.count[i]):
        if not note_if_open(t, s, i, j):
            add_contact(s, i, j, contact_of(t, s, i, s.near.pair[i, j], False))


@wp.func
def add_contact(s: Scratch, i: int, j: int, x: Contact):
    """`add_contacts` for near pair j."""
    s.near.gap[i, j] = x.gap
    s.near.push[i, j] = so3.ZERO
    if x.depth > so3.ZERO:
        f, m = contact_force(x)
        W = wrench_at_origin(x.c, m, f)
        s.near.push[i, j] = wp.dot(f, x.n)
        if x.a >= 0:
            s.node[i, x.a].F = s.node[i, x.a].F - W
        if x.b >= 0:
            s.node[i, x.b].F = s.node[i, x.b].F + W


@wp.struct
class Response:
    """Derivatives of the wrench between nodes a and b about the origin: K and N of (9) for an obstacle at rest, and the
    wrench W on a. count: number of contacts in the sums."""

    a: wp.int32
    b: wp.int32
    count: wp.int32
    K: mat6
    N: mat6
    W: vec6


@wp.func
def put_sums(s: Scratch, i: int, x: Response, H: wp.array2d(dtype=mat6)):
    """Add the derivatives (9), (10) of F of nodes a and b by their own motion to H and s.near.N, and list the coupling
    of the two nodes in s.near."""
    K = x.K
    bar = adbar_matrix(x.W)
    if x.b >= 0:
        K -= x.N * ad_matrix(s.node[i, x.b].eta)
        H[i, x.b] = H[i, x.b] + K - bar
        s.near.N[i, x.b] = s.near.N[i, x.b] + x.N
    if x.a >= 0:
        H[i, x.a] = H[i, x.a] + K
        s.near.N[i, x.a] = s.near.N[i, x.a] + x.N
    couple_nodes(s, i, x.a, x.b, K, x.N, bar, 1)


@wp.func
def put_response(
    s: Scratch, i: int, a: int, b: int, c: vec3, m: vec3, f: vec3, H_c: mat6, N_c: mat6, H: wp.array2d(dtype=mat6)
):
    """`put_sums` for a wrench (m; f) at c on node a, with the derivatives H_c and N_c there."""
    x = Response()
    x.a = a
    x.b = b
    x.K = at_origin(c, H_c)
    x.N = at_origin(c, N_c)
    x.W = wrench_at_origin(c, m, f)
    put_sums(s, i, x, H)


@wp.func(inline=False)
def respond_to_contacts(t: Tables, s: Scratch, i: int, H: wp.array2d(dtype=mat6)):
    """Add H and N of both nodes of each pair in contact to H and s.near.N, and list their couplings in s.near. Reads
    the list of near pairs and their forces that add_contacts has made. Pairs of the same nodes follow each other in
    the list, and are coupled once."""
    sums = Response()
    for j in range(s.near.count[i]):
        if s.near.push[i, j] != so3.ZERO:
            x = contact_of(t, s, i, s.near.pair[i, j], True)
            if sums.count > 0 and (x.a != sums.a or x.b != sums.b):
                put_sums(s, i, sums, H)
                sums = Response()
            sums.a = x.a
            sums.b = x.b
            sums.count = sums.count + 1
            f, m = contact_force(x)
            H_0, N_0 = response_at_origin(x, f, m)
            sums.K = sums.K + H_0
            sums.N = sums.N + N_0
            sums.W = sums.W + wrench_at_origin(x.c, m, f)
    if sums.count > 0:
        put_sums(s, i, sums, H)


@wp.func
def response_at_origin(x: Contact, f: vec3, m: vec3):
    """H and N of contact_response for a pair in contact, transformed to the origin."""
    D_c, D_u, D_spin, D_turn = contact_derivatives(x)
    if x.radius == so3.ZERO and wp.dot(x.facing, x.facing) == so3.ZERO:  # a force at a point
        turn = D_u * so3.hat(x.u) - D_turn
        return -force_at_origin(x.c, so3.hat(f) - turn, D_c), -force_at_origin(x.c, mat3(), D_u)
    H_c, N_c = contact_response(x.radius, x.n, x.N, x.u, x.spin, f, m, D_c, D_u, D_spin, D_turn)
    if wp.dot(x.facing, x.facing) > so3.ZERO:
        H_m, N_m = cell_response(x)
        H_c += H_m
        N_c += N_m
    if x.rolls != 0:
        zero = mat3()
        H_c += se3.block(so3.hat(f) * x.swing, zero, zero, zero)  # (17)
    return at_origin(x.c, H_c), at_origin(x.c, N_c)


@wp.func
def add(t: Tables, s: Scratch, i: int, q: Matrix, gravity: vec3, load: wp.array(dtype=vec6), acting: int):
    """`add` of the term: wrenches of contacts."""
    if t.contacts.pair.shape[0] > 0:
        add_contacts(t, s, i)


@wp.func
def respond(
    t: Tables, s: Scratch, i: int, gravity: vec3, load: wp.array(dtype=vec6), acting: int, H: wp.array2d(dtype=mat6)
):
    """`respond` of the term: derivatives of the wrenches of contacts."""
    if t.contacts.pair.shape[0] > 0:
        respond_to_contacts(t, s, i, H)


@wp.func
def renew(t: Tables, s: Scratch, i: int, q: Matrix, v: Matrix, a: Matrix):
    """`renew` of the term: updates the anchors. Anchors of the model, in a table of one row, allow one instance
    only."""
    if t.contacts.sticks != 0:
        place_bases(t, s, i, q)
        for k in range(t.n_dynamic):
            traversal.outward_motion(t, s, i, k, q, v, a, vec6())
        update_anchors(t, s, i)


TERM = Term("contacts", int(LOADS), lambda model: model.has_surroundings, add=add, respond=respond, renew=renew)
