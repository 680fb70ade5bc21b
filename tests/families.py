"""A random member of each class of each family of the description, from which the sweeps of all tests draw.

A class that the library defines is in every sweep by existing. It needs makers here, functions of a random generator;
`made` says so if it has none. A class may have several, each for a form that matters of its own.
"""

from __future__ import annotations

import numpy as np

import lissom as ls
from lissom.robot.bases import STRAINS, Basis, ModalBasis
from lissom.robot.fields import members
from lissom.robot.joints import Joint
from lissom.robot.sections import Section
from lissom.robot.shapes import Shape

FAMILIES = {"Basis": Basis, "Joint": Joint, "Section": Section, "Shape": Shape}


def names(family):
    """Names of the classes of a family without the family's own, such as "Revolute"."""
    return tuple(cls.__name__.removeprefix(family.__name__) for cls in members(family))


def makers(cls):
    """The makers of a class; an error that says what to do where it has none."""
    if cls not in MAKERS:
        text = f"{cls.__name__} has no maker in tests/families.py: add one, so that every sweep of the tests holds it"
        raise LookupError(text)
    return MAKERS[cls]


def forms(family):
    """Each form of each class of a family: (class, number of its maker)."""
    return [(cls, k) for cls in members(family) for k in range(len(makers(cls)))]


def made(form, seed):
    """A random member of a form; the same one for the same seed."""
    cls, k = form
    return makers(cls)[k](np.random.default_rng([seed, k]))


def all_made(family, seed=0):
    """One of each form of a family."""
    return [made(form, seed) for form in forms(family)]


def name_of(form):
    """A readable name for a form as a parameter of a test."""
    cls, k = form
    return cls.__name__ if len(makers(cls)) == 1 else f"{cls.__name__}-{k}"


# --- bases ---------------------------------------------------------------------------------------------------------


def some_strains(rng, count):
    """Some strains by chance, a bending among them."""
    chosen = {str(name) for name in rng.choice(STRAINS, count, replace=False)} | {str(rng.choice(STRAINS[1:3]))}
    return sorted(chosen)


def modal(cls, least, most, count=None):
    """A maker of bases whose orders are numbers from `least` to `most`; `count` strains, by chance if it is None."""

    def make(rng):
        number = int(rng.integers(2, 5)) if count is None else count
        return cls(**{name: int(rng.integers(least, most + 1)) for name in some_strains(rng, number)})

    return make


def smooth_basis(rng):
    """Columns that couple strains, by a function of Python."""
    twist = rng.uniform(0.4, 0.6)

    def function(s):
        columns = [
            [twist, 1.0, 0.0, 0.0, 0.0, 0.02],
            [0.0, 1.0 - 2.0 * s**2 + 0.6 * s**4, 2.0 * s - 1.3 * s**3, 0.0, 0.01 * s, 0.0],
            [0.3 * s, 0.0, s, 0.1 * s, 0.0, 0.0],
        ]
        return np.array(columns).T

    return ls.BasisCustom(function, order=4)


def cornered_basis(rng):
    """Columns that couple strains, with a corner."""
    knot = round(float(rng.uniform(0.3, 0.6)), 3)
    corner = f"abs(s - {knot})"
    rows = [[0.5, "0.3*s"], [1.0, 0], [0, corner], [0, f"0.1*{corner}"], [0, 0], [0.02, 0]]
    return ls.BasisCustom(ls.Expression(rows), order=1, knots=(knot,))


def bspline(rng):
    """A degree and knots of its own for each strain: equal spans, or knots by chance."""
    orders = {}
    for k, name in enumerate(some_strains(rng, 2)):
        knots = sorted(round(float(x), 3) for x in rng.uniform(0.15, 0.85, int(rng.integers(2))))
        orders[name] = (int(rng.integers(4)), tuple(knots) if k else int(rng.integers(1, 3)))
    return ls.BasisBSpline(**orders)


def graded(cls, order, strains):
    """The basis of a class in which every one of some strains has the order, or what grows with it."""
    if issubclass(cls, ModalBasis):
        return cls(**dict.fromkeys(strains, max(order, cls.least_order)))
    if cls is ls.BasisBSpline:
        return cls(**dict.fromkeys(strains, (2, max(order, 1))))
    raise LookupError(f"{cls.__name__} has orders of no kind that tests/families.py knows: add it to `graded`")


UNGRADED = {ls.BasisCustom}  # classes without orders
APPROXIMATED = {ls.BasisFourier, ls.BasisGaussian}  # classes whose modes are no polynomials between breaks
BASES = {
    ls.BasisLegendre: [modal(ls.BasisLegendre, 0, 2)],
    ls.BasisMonomial: [modal(ls.BasisMonomial, 0, 2)],
    ls.BasisChebyshev: [modal(ls.BasisChebyshev, 0, 2)],
    ls.BasisFourier: [modal(ls.BasisFourier, 1, 1, 2)],
    ls.BasisGaussian: [modal(ls.BasisGaussian, 0, 1)],
    ls.BasisHermite: [modal(ls.BasisHermite, 1, 1, 2)],
    ls.BasisPiecewiseConstant: [modal(ls.BasisPiecewiseConstant, 1, 3)],
    ls.BasisPiecewiseLinear: [modal(ls.BasisPiecewiseLinear, 1, 2)],
    ls.BasisBSpline: [bspline],
    ls.BasisCustom: [smooth_basis, cornered_basis],
}


# --- joints --------------------------------------------------------------------------------------------------------


def axis(rng):
    """A direction of any length."""
    return tuple(rng.normal(size=3).tolist())


def custom_joint(rng):
    """A table of a joint that turns and slides along curves; its frames coincide where q = 0."""
    points = np.linspace(-2.5, 2.5, 11)
    waves = np.stack([points, np.sin(points), 1.0 - np.cos(points)], axis=1)
    rotation, position = waves @ rng.uniform(-0.6, 0.6, (3, 3)), waves @ rng.uniform(-0.1, 0.1, (3, 3))
    return ls.JointCustom(ls.PoseSpline(points.tolist(), rotation.tolist(), position.tolist()))


JOINTS = {
    ls.JointCustom: [custom_joint],
    ls.JointFixed: [lambda rng: ls.JointFixed()],
    ls.JointRevolute: [lambda rng: ls.JointRevolute(axis(rng))],
    ls.JointPrismatic: [lambda rng: ls.JointPrismatic(axis(rng))],
    ls.JointHelical: [lambda rng: ls.JointHelical(axis(rng), float(rng.uniform(-0.1, 0.1)))],
    ls.JointCylindrical: [lambda rng: ls.JointCylindrical(axis(rng))],
    ls.JointUniversal: [lambda rng: ls.JointUniversal(axis(rng), axis(rng))],
    ls.JointPlanar: [lambda rng: ls.JointPlanar(axis(rng))],
    ls.JointSpherical: [lambda rng: ls.JointSpherical()],
    ls.JointFree: [lambda rng: ls.JointFree()],
}


def sliding(joint):
    """Whether each coordinate of a joint without a quaternion is a length."""
    motions = [motion for motion in joint.motions("joint") if not motion.kind.has_quaternion]
    return [not column[:3].any() for motion in motions for column in motion.Phi.T]


# --- sections ------------------------------------------------------------------------------------------------------


def size(rng):
    """Half of a thickness of a rod [m]."""
    return float(rng.uniform(0.02, 0.03))


def lamina(mass, centre, J_y, J_z, J_yz):
    """Inertia per length of a plane section whose centre of mass (y, z) is off the centreline."""
    c = np.array([0.0, *centre])
    moment = mass * np.cross(np.eye(3), c)
    own = np.array([[J_y + J_z, 0.0, 0.0], [0.0, J_y, -J_yz], [0.0, -J_yz, J_z]])
    shift = mass * (c @ c * np.eye(3) - np.outer(c, c))
    return np.block([[own + shift, moment], [moment.T, mass * np.eye(3)]])


def tapered_circle(rng):
    """A linear taper."""
    a = size(rng)
    return ls.SectionCircle((a, 0.6 * a))


def callable_circle(rng):
    """A radius that is a function."""
    a = size(rng)
    return ls.SectionCircle(lambda s: a * (1 - 0.3 * s**2))


def annulus(rng):
    """A tube with a tapered outside."""
    a = size(rng)
    return ls.SectionAnnulus((a, 0.8 * a), 0.3 * a)


def ellipse(rng):
    """An ellipse with one tapered axis."""
    a, b = size(rng), size(rng)
    return ls.SectionEllipse(a, (b, 0.7 * b), saint_venant=bool(rng.integers(2)))


def rectangle(rng):
    """A rectangle with one side a function."""
    a, b = size(rng), size(rng)
    return ls.SectionRectangle(2 * a, lambda s: 2 * b * (1 - 0.2 * s), saint_venant=bool(rng.integers(2)))


def polygon(rng):
    """A polygon around a point near the centreline, its corners at random."""
    count = int(rng.integers(3, 7))
    angle = 2 * np.pi * (np.arange(count) + rng.uniform(-0.2, 0.2, count)) / count
    points = rng.uniform(0.5, 1.2, (count, 1)) * size(rng) * np.column_stack([np.cos(angle), np.sin(angle)])
    return ls.SectionPolygon(np.round(points + rng.uniform(-0.006, 0.006, 2), 6), (1.0, float(rng.uniform(0.6, 0.9))))


def triangle(rng):
    """An equilateral triangle anywhere, whose torsion is known."""
    angle = rng.uniform(0, 2 * np.pi) + 2 * np.pi / 3 * np.arange(3)
    points = 1.4 * size(rng) * np.column_stack([np.cos(angle), np.sin(angle)]) + rng.uniform(-0.006, 0.006, 2)
    return ls.SectionPolygon(tuple(map(tuple, points.tolist())), lambda s: 1.0 - 0.3 * s**2, saint_venant=True)


def stiffened(rng):
    """A circle of another stiffness."""
    stiffness = np.array([0.2, 0.3, 0.3, 900.0, 300.0, 300.0])
    return ls.SectionGeneral(stiffness=stiffness, shape=ls.SectionCircle(size(rng)))


def full_general(rng):
    """Matrices that couple everything and vary along the rod."""
    inertia = lamina(0.8, (0.003, -0.002), 1.5e-4, 2e-4, 3e-5)
    A = rng.normal(size=(6, 6))
    full = np.diag([0.3, 0.2, 0.2, 800.0, 300.0, 300.0]) ** 0.5
    full = full @ (np.eye(6) + 0.1 * A @ A.T) @ full
    return ls.SectionGeneral(
        stiffness=lambda s: full * (1 - 0.3 * s),
        inertia=lambda s: inertia * (1 + 0.5 * s),
        damping=None if rng.random() < 0.5 else 0.01 * full,
    )


SECTIONS = {
    ls.SectionCircle: [lambda rng: ls.SectionCircle(size(rng)), tapered_circle, callable_circle],
    ls.SectionAnnulus: [annulus],
    ls.SectionEllipse: [ellipse],
    ls.SectionRectangle: [rectangle],
    ls.SectionPolygon: [polygon, triangle],
    ls.SectionGeneral: [stiffened, full_general],
}


# --- shapes --------------------------------------------------------------------------------------------------------


def length(rng):
    """A size of an obstacle [m]."""
    return float(rng.uniform(0.15, 0.3))


SHAPES = {
    ls.ShapePlane: [lambda rng: ls.ShapePlane(axis(rng))],
    ls.ShapeSphere: [lambda rng: ls.ShapeSphere(length(rng))],
    ls.ShapeBox: [lambda rng: ls.ShapeBox(length(rng), length(rng), length(rng))],
    ls.ShapeCylinder: [
        lambda rng: ls.ShapeCylinder(length(rng), 2 * length(rng), axis(rng)),
        lambda rng: ls.ShapeCylinder(length(rng), axis=axis(rng)),
        lambda rng: ls.ShapeCylinder(length(rng), axis=axis(rng), inside=True),
    ],
    ls.ShapeCone: [lambda rng: ls.ShapeCone(length(rng), 2 * length(rng), axis(rng))],
    ls.ShapeCapsule: [lambda rng: ls.ShapeCapsule(length(rng), 2 * length(rng), axis(rng))],
    ls.ShapeEllipsoid: [lambda rng: ls.ShapeEllipsoid(length(rng), length(rng), length(rng))],
    ls.ShapeTorus: [lambda rng: ls.ShapeTorus(length(rng), 0.4 * length(rng), axis(rng))],
    ls.ShapeMesh: [
        lambda rng: ls.ShapeMesh(ls.Mesh.of_shape(ls.ShapeCone(length(rng), 2 * length(rng))), 16),
        lambda rng: ls.ShapeMesh(ls.Mesh.of_shape(ls.ShapeBox(length(rng), length(rng), length(rng))), 16, 0.1),
    ],
    ls.ShapeHull: [lambda rng: ls.ShapeHull(rng.uniform(-0.3, 0.3, (12, 3)).tolist(), 16)],
    ls.ShapeFunction: [
        lambda rng: ls.ShapeFunction(
            f"sqrt(x**2 + y**2 + (z - minimum(maximum(z, -0.1), 0.1))**2) - {length(rng)}", [-0.4] * 3, [0.4] * 3, 24
        )
    ],
    ls.ShapeHeightField: [lambda rng: ls.ShapeHeightField(rng.uniform(-0.02, 0.02, (8, 7)).tolist(), 1.4, 1.6)],
}

MAKERS = BASES | JOINTS | SECTIONS | SHAPES
