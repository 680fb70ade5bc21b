"""The tables of a robot description, by independent formulas: bases, sections, joints, loads and paths.

Only the attributes of a description are read; a class is recognised by its name.
"""

from __future__ import annotations

from math import comb

import numpy as np
from numpy import pi
from reference.reference_lie import exp, hat3, pose_of_quaternion, tangent_and_derivative
from scipy.interpolate import CubicSpline, make_interp_spline

STRAINS = ("torsion", "bending_y", "bending_z", "elongation", "shear_y", "shear_z")
PIECEWISE = ("BasisHermite", "BasisPiecewiseConstant", "BasisPiecewiseLinear")


def kind(thing):
    """Name of the class of a part of the description."""
    return type(thing).__name__


# --- bases ---------------------------------------------------------------------------------------------------------


def legendre(n, x):
    """P_n(x), by the explicit sum."""
    return sum(comb(n, k) * comb(n + k, k) * ((x - 1) / 2) ** k for k in range(n + 1))


def bump(n, node, s):
    """Cubic Hermite functions of one node of n equal elements: of its value, and of its slope per element length."""
    x = s * n - node
    if abs(x) >= 1.0:
        return 0.0, 0.0
    return (1 - abs(x)) ** 2 * (1 + 2 * abs(x)), x * (1 - abs(x)) ** 2


def knots_of(order):
    """Interior knots of a B-spline: as given, or of equal spans."""
    return [k / order[1] for k in range(1, order[1])] if np.ndim(order[1]) == 0 else list(order[1])


def bsplines(degree, inner, s):
    """All B-splines of a degree on a clamped knot vector at s, by the recursion of Cox and de Boor."""
    t = [0.0] * (degree + 1) + list(inner) + [1.0] * (degree + 1)
    values = [float(t[i] < s < t[i + 1]) for i in range(len(t) - 1)]
    for k in range(1, degree + 1):
        for i in range(len(t) - 1 - k):
            left = (s - t[i]) / (t[i + k] - t[i]) * values[i] if t[i + k] > t[i] else 0.0
            right = (t[i + k + 1] - s) / (t[i + k + 1] - t[i + 1]) * values[i + 1] if t[i + k + 1] > t[i + 1] else 0.0
            values[i] = left + right
    return values[: len(t) - 1 - degree]


def modes(family, n, s):
    """Values at s of the scalar functions of a family, order n."""
    if family == "BasisBSpline":
        return bsplines(n[0], knots_of(n), s)
    orders = range(n + 1)
    if family == "BasisLegendre":
        return [legendre(k, 2 * s - 1) for k in orders]
    if family == "BasisMonomial":
        return [s**k for k in orders]
    if family == "BasisChebyshev":
        return [np.cos(k * np.arccos(2 * s - 1)) for k in orders]
    if family == "BasisFourier":
        waves = [f(2 * pi * k * s) for k in range(1, n + 1) for f in (np.cos, np.sin)]
        return [1.0, *waves]
    if family == "BasisGaussian":
        centres = [k / n for k in orders] if n else [0.5]
        sigma = 1 / (n + 1)
        return [np.exp(-((s - c) ** 2) / (2 * sigma**2)) for c in centres]
    if family == "BasisHermite":
        return [value for node in orders for value in bump(n, node, s)]
    if family == "BasisPiecewiseConstant":
        return [float(k / n < s < (k + 1) / n) for k in range(n)]
    if family == "BasisPiecewiseLinear":
        return [max(0.0, 1 - abs(s * n - node)) for node in orders]
    raise ValueError(f"the reference knows no basis {family}")


def basis_matrix(basis, s):
    """Phi(s), shape (6, size); s is not a break."""
    if kind(basis) == "BasisCustom":
        return np.asarray(basis.function(s), dtype=float)
    rows = [[] if getattr(basis, n) is None else modes(kind(basis), getattr(basis, n), s) for n in STRAINS]
    out = np.zeros((6, sum(map(len, rows))))
    column = 0
    for row, values in enumerate(rows):
        out[row, column : column + len(values)] = values
        column += len(values)
    return out


def breaks(basis):
    """Interior abscissae where Phi is not smooth."""
    if kind(basis) == "BasisCustom":
        return [float(s) for s in basis.knots]
    if kind(basis) == "BasisBSpline":
        orders = [getattr(basis, n) for n in STRAINS if getattr(basis, n) is not None]
        return sorted({knot for order in orders for knot in knots_of(order)})
    if kind(basis) not in PIECEWISE:
        return []
    orders = [getattr(basis, n) for n in STRAINS if getattr(basis, n) is not None]
    return sorted({k / n for n in orders for k in range(1, n)})


# --- rods ----------------------------------------------------------------------------------------------------------


def along(value, s):
    """A number, a (base, tip) pair or a function, at s."""
    if callable(value):
        return float(value(s))
    if np.ndim(value) == 0:
        return float(value)
    return (1 - s) * float(value[0]) + s * float(value[1])


def rectangle_torsion(b, h):
    """Saint-Venant constant of a rectangle, by the series across the longer side (the slower one)."""
    a, b = min(b, h), max(b, h)
    n = np.arange(1, 6001, 2.0)
    return b * b * b * a * (1 / 3 - 64 / pi**5 * b / a * np.sum(np.tanh(n * pi * a / (2 * b)) / n**5))


def area_moments(section, s):
    """Area, second moments about y and z, torsion constant."""
    name = kind(section)
    if name == "SectionCircle":
        r = along(section.radius, s)
        return pi * r**2, pi * r**4 / 4, pi * r**4 / 4, pi * r**4 / 2
    if name == "SectionAnnulus":
        r, i = along(section.outer, s), along(section.inner, s)
        return pi * (r**2 - i**2), pi * (r**4 - i**4) / 4, pi * (r**4 - i**4) / 4, pi * (r**4 - i**4) / 2
    if name == "SectionEllipse":
        a, b = along(section.semi_axis_y, s), along(section.semi_axis_z, s)
        Jy, Jz = pi * a * b**3 / 4, pi * b * a**3 / 4
        return pi * a * b, Jy, Jz, pi * (a * b) ** 3 / (a**2 + b**2) if section.saint_venant else Jy + Jz
    if name == "SectionRectangle":
        b, h = along(section.width_y, s), along(section.width_z, s)
        Jy, Jz = b * h**3 / 12, h * b**3 / 12
        return b * h, Jy, Jz, rectangle_torsion(b, h) if section.saint_venant else Jy + Jz
    raise ValueError(f"the reference knows no section {name}")


def square(value, n):
    """A scalar, a diagonal or a matrix as an n x n matrix."""
    value = np.asarray(value, dtype=float)
    return value.copy() if value.ndim == 2 else np.diag(np.broadcast_to(value, (n,)))


def polygon_matrix(section, s, normal, shear, twist):
    """Of a polygon, by quadrature: triangles from the origin to each edge, with three points each.

    Where `twist` is asked for and the section takes Saint-Venant's constant it must be an equilateral triangle; then
    torsion is sqrt(3)/80 of its side to the fourth, about its middle.
    """
    points = along(section.scale, s) * np.asarray(section.points, dtype=float)
    normals, shears, area, middle = np.zeros((6, 6)), np.zeros((6, 6)), 0.0, np.zeros(2)
    for a, b in zip(points, np.roll(points, -1, axis=0)):
        part = 0.5 * (a[0] * b[1] - a[1] * b[0])
        area, middle = area + part, middle + part * (a + b) / 3
        for y, z in (a / 2, b / 2, (a + b) / 2):
            n, t, u = np.array([[0, z, -y, 1, 0, 0], [-z, 0, 0, 0, 1, 0], [y, 0, 0, 0, 0, 1]])
            normals += part / 3 * np.outer(n, n)
            shears += part / 3 * (np.outer(t, t) + np.outer(u, u))
    if twist and section.saint_venant:
        sides = [np.sqrt((b - a) @ (b - a)) for a, b in zip(points, np.roll(points, -1, axis=0))]
        assert len(points) == 3 and max(sides) - min(sides) < 1e-12, "the reference knows no such torsion"
        y, z = middle / area
        shears[0, 0] = np.sign(area) * np.sqrt(3) / 80 * sides[0] ** 4 + area * (y * y + z * z)
    return np.sign(area) * (normal * normals + shear * shears)


def section_matrices(section, material, s):
    """Sigma, inertia per length and Upsilon at s."""
    if kind(section) == "SectionPolygon":
        E, G = material.young, 0.5 * material.young / (1 + material.poisson)
        stiffness = polygon_matrix(section, s, E, G, True)
        inertia = polygon_matrix(section, s, material.density, material.density, False)
        viscous = polygon_matrix(section, s, 3 * material.viscosity, material.viscosity, True)
        return [stiffness, inertia, viscous + material.damping_time * stiffness]
    if kind(section) == "SectionGeneral":
        own = [None if x is None else square(x(s) if callable(x) else x, 6)
               for x in (section.stiffness, section.inertia, section.damping)]  # fmt: skip
        if section.shape is not None:
            shape = section_matrices(section.shape, material, s)
            return [given if given is not None else base for given, base in zip(own, shape)]
        if own[2] is None:
            own[2] = (material.damping_time if material is not None else 0.0) * own[0]
        return own
    A, Jy, Jz, Jt = area_moments(section, s)
    E, G = material.young, 0.5 * material.young / (1 + material.poisson)
    stiffness = np.diag([G * Jt, E * Jy, E * Jz, E * A, G * A, G * A])
    inertia = material.density * np.diag([Jy + Jz, Jy, Jz, A, A, A])
    viscous = material.viscosity * np.diag([Jt, 3 * Jy, 3 * Jz, 3 * A, A, A])
    return [stiffness, inertia, viscous + material.damping_time * stiffness]


def reference_strain(rod, s):
    """xi*(s)."""
    if rod.reference_strain is None:
        return np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0])
    value = rod.reference_strain
    return np.asarray(value(s) if callable(value) else value, dtype=float)


# --- joints --------------------------------------------------------------------------------------------------------


def unit(axis):
    """A 3-vector of unit length."""
    axis = np.asarray(axis, dtype=float)
    return axis / np.sqrt(axis @ axis)


def joint_screws(joint):
    """Motions in order, each a 6 x n matrix of commuting screws; None for a joint that stores its pose."""
    name, zero = kind(joint), np.zeros(3)
    if name == "JointFixed":
        return []
    if name == "JointCustom":
        return [np.zeros((6, 1))]  # one coordinate, whose screw varies: table_motion
    if name in ("JointSpherical", "JointFree"):
        return None
    if name == "JointUniversal":
        return [np.r_[unit(joint.axis_1), zero][:, None], np.r_[unit(joint.axis_2), zero][:, None]]
    if name == "JointPlanar":
        n = unit(joint.normal)
        e = np.roll([1.0, 0.0, 0.0], (int(np.argmax(abs(n))) + 1) % 3)
        x = unit(e - (e @ n) * n)
        return [np.r_[zero, x][:, None], np.r_[zero, np.cross(n, x)][:, None], np.r_[n, zero][:, None]]
    a = unit(joint.axis)
    turn, slide = np.r_[a, zero], np.r_[zero, a]
    columns = {
        "JointRevolute": lambda: [turn],
        "JointPrismatic": lambda: [slide],
        "JointHelical": lambda: [turn + joint.pitch * slide],
        "JointCylindrical": lambda: [turn, slide],
    }[name]()
    return [np.stack(columns, axis=1)]


def table_motion(joint, q, v):
    """Pose of a joint given by a table, its motion subspace in the moved frame and the rate of that."""
    x, table = np.asarray(joint.pose.points), joint.pose
    spline = make_interp_spline(x, np.hstack([table.rotation, table.position]), k=table.degree)
    y, slope, bend = (spline(q[0], nu=order) for order in range(3))
    w, none = np.r_[y[:3], np.zeros(3)], np.zeros(3)
    g = exp(w)
    g[:3, 3] = y[3:]
    T, dT = tangent_and_derivative(w, np.r_[slope[:3] * v[0], none])
    turn, slide = T[:3, :3] @ slope[:3], g[:3, :3].T @ slope[3:]
    turn_rate = dT[:3, :3] @ slope[:3] + T[:3, :3] @ bend[:3] * v[0]
    slide_rate = g[:3, :3].T @ bend[3:] * v[0] - np.cross(turn * v[0], slide)
    return g, np.r_[turn, slide][:, None], np.r_[turn_rate, slide_rate][:, None]


def joint_sizes(joint):
    """(nq, nv)."""
    stored = {"JointSpherical": (4, 3), "JointFree": (7, 6)}
    if kind(joint) in stored:
        return stored[kind(joint)]
    n = sum(screws.shape[1] for screws in joint_screws(joint))
    return n, n


def joint_neutral(joint):
    """Coordinates at which both joint frames coincide."""
    nq, nv = joint_sizes(joint)
    return np.eye(nq)[0] if nq != nv else np.zeros(nq)


def joint_pose(joint, q):
    """Pose of a joint that stores it."""
    return pose_of_quaternion(q[:4], q[4:] if len(q) == 7 else np.zeros(3))


def rest(joint):
    """Coordinates where the joint's spring is slack."""
    return joint_neutral(joint) if joint.rest is None else np.atleast_1d(np.asarray(joint.rest, dtype=float))


# --- placements, loads, paths --------------------------------------------------------------------------------------


def placement(value):
    """A 4x4 pose; None is the identity."""
    return np.eye(4) if value is None else np.asarray(value, dtype=float)


def at_time(value, t):
    """A 3-vector, constant, function of t, or None."""
    if value is None:
        return np.zeros(3)
    return np.asarray(value(t) if callable(value) else value, dtype=float)


def rigid_inertia(body):
    """6x6 inertia at the body frame."""
    m, c = float(body.mass), hat3(np.asarray(body.com, dtype=float))
    out = np.zeros((6, 6))
    out[:3, :3] = square(body.inertia, 3) + m * c @ c.T
    out[:3, 3:], out[3:, :3], out[3:, 3:] = m * c, m * c.T, m * np.eye(3)
    return out


def offset_and_slope(offset, s):
    """d = (0, y, z) at s and its derivative with respect to s (by a complex step, or of the spline)."""
    if callable(offset):
        value = np.asarray(offset(s + 1e-40j), dtype=complex)
        d, slope = value.real, value.imag / 1e-40
    elif np.ndim(offset) == 1:
        d, slope = np.asarray(offset, dtype=float), np.zeros(2)
    elif len(offset) < 4:
        (s0, *d0), (s1, *d1) = offset  # two rows: a straight line
        slope = (np.array(d1) - d0) / (s1 - s0)
        d = np.array(d0) + slope * (s - s0)
    else:
        spline = CubicSpline(np.asarray(offset)[:, 0], np.asarray(offset)[:, 1:])
        d, slope = spline(s), spline(s, 1)
    return np.r_[0.0, d], np.r_[0.0, slope]
