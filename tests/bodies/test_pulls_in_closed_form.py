"""Tendons and pressures in deformable bodies against a native rod, and against Lamé's pipe."""

import numpy as np

import lissom as ls
from lissom.bodies.pulls import pulls_on
from lissom.robot.actuators import SurfacePressure

INNER, OUTER, YOUNG, POISSON = 0.01, 0.02, 1e6, 0.3


def pipe(rings, around, thickness=0.004):
    """Vertices, cells and radii of a slice of a pipe: a box bent to a ring, whose ends meet."""
    size = (thickness, OUTER - INNER, 2 * np.pi)
    flat, cells = ls.box_mesh(size, (1, rings, around))
    radius, angle = 0.5 * (INNER + OUTER) + flat[:, 1], flat[:, 2] + np.pi
    bent = np.stack([flat[:, 0], radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    kept, number = np.unique(np.round(bent, 12), axis=0, return_inverse=True)
    return kept, number.ravel()[cells]


def widening(rings, around):
    """Radii of the rings of nodes, and how far a pressure inside moves them, in plane strain: the elements move each
    ring outwards as a whole, and nothing along the pipe."""
    vertices, cells = pipe(rings, around)
    mesh = ls.DomainTetrahedra(vertices, cells, degree=2)
    elements = ls.KinematicsFiniteElements(mesh, fixed=None)
    radius = np.hypot(vertices[:, 1], vertices[:, 2])
    levels = np.unique(np.round(radius, 9))
    nodes = elements.elements.nodes
    on = np.abs(np.hypot(nodes[:, 1], nodes[:, 2])[:, None] - levels) < 1e-8
    outwards = nodes * (0.0, 1.0, 1.0) / np.hypot(nodes[:, 1], nodes[:, 2])[:, None]
    columns = (on[:, None, :] * outwards[:, :, None]).reshape(-1, len(levels))
    motion = ls.KinematicsReduced(elements, columns)
    law = ls.HyperelasticLinear(young=YOUNG, poisson=POISSON)
    body = ls.DeformableBody(motion, mesh, law, 1e3)
    inside = SurfacePressure("inside", "pipe", lambda x: np.hypot(x[1], x[2]) < 1.001 * INNER)
    B = pulls_on(body, (inside,)).values(np.zeros((1, motion.n)))[1][0, 0]
    return levels, np.linalg.solve(body.integrals.linear_coefficients().K2, 1e3 * B)


def test_a_pipe_under_pressure_widens_as_lame_says():
    """u = p a² (1 + ν)/(E (b² − a²)) ((1 − 2ν) r + b²/r), to second order in the size of the elements."""
    errors = []
    for rings, around in ((3, 24), (6, 48), (12, 96)):
        r, found = widening(rings, around)
        factor = 1e3 * INNER**2 * (1 + POISSON) / (YOUNG * (OUTER**2 - INNER**2))
        expected = factor * ((1 - 2 * POISSON) * r + OUTER**2 / r)
        errors.append(float(np.abs(found / expected - 1.0).max()))
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert (np.abs(orders - 2.0) < 0.3).all()
    assert errors[-1] < 0.005


LENGTH, RADIUS = 0.4, 0.03


def test_a_rod_of_material_points_feels_the_tendons_of_a_rod():
    """Lengths, and forces on curvatures and elongation, of a straight tendon, one that winds, one of half length."""
    motion = ls.KinematicsStrain.constant_curvature(LENGTH, elongation=True)
    law = ls.HyperelasticSaintVenantKirchhoff(1e5, 0.0)
    domain = ls.DomainCylinder(LENGTH, RADIUS, degree=2)
    material, section = ls.Material(young=1e5, poisson=0.0, density=1e3), ls.SectionCircle(radius=RADIUS)
    rod = ls.Rod(length=LENGTH, section=section, material=material, basis=motion.basis, gauss_points=10)
    body = ls.DeformableBody(motion, domain, law, 1e3)
    paths = {
        "straight": (lambda s: (0.02, 0.01), 1.0),
        "winding": (lambda s: (0.02 * np.cos(3 * s), 0.02 * np.sin(3 * s)), 1.0),
        "half": (lambda s: (-0.02, 0.005), 0.5),
    }
    robot, items = ls.Robot("arm"), []
    robot.add_link("arm", rod)
    for name, (offset, stop) in paths.items():
        robot.add_tendon(name, "arm", offset, stop=stop)
        curve = lambda k, offset=offset, stop=stop: (LENGTH * stop * k, *offset(stop * k))  # noqa: E731
        items.append(ls.PathBody("arm", curve, gauss_points=10))
    model, q = robot.build(), np.random.default_rng(0).uniform(-1.0, 1.0, (4, 3)) * (3.0, 3.0, 0.2)
    work, B, wrench = pulls_on(body, tuple(items)).values(q)
    for one, other in ((ls.path_lengths(model, q), -work), (ls.actuation_matrix(model, q), np.swapaxes(B, 1, 2))):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-8 * np.abs(one).max())
    assert not wrench.any()
