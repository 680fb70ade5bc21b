"""Signed distances of shapes inside kernels: values, gradients and Hessians at faces, edges, corners and inside."""

from functools import cache

import families
import numpy as np
import pytest
import warp as wp
from forces.exact_distances import distance, features

import lissom as ls
from lissom.forces.contact import obstacle_distance
from lissom.lie.types import kernel_options, mat3, vec3
from lissom.model.tables import TablesStruct, device_tables
from lissom.robot.sampled_shapes import GRIDDED
from lissom.robot.shapes import Shape

BOX, CAPSULE = ls.ShapeBox(0.3, 0.4, 0.5), ls.ShapeCapsule(0.2, 0.6)
CYLINDER = ls.ShapeCylinder(0.2, 0.6, axis=(1, 2, 2))
ENDLESS, HOLE = ls.ShapeCylinder(0.2, axis=(0, 1, 1)), ls.ShapeCylinder(0.3, axis=(1, 0, 3), inside=True)
EXACT = [form for form in families.forms(Shape) if not issubclass(form[0], GRIDDED)]
SHAPES = {
    "plane": ls.ShapePlane(normal=(1, -2, 3)),
    "sphere": ls.ShapeSphere(0.3),
    "box": BOX,
    "cylinder": CYLINDER,
    "endless cylinder": ENDLESS,
    "hole": HOLE,
    "capsule": CAPSULE,
} | {f"random {families.name_of(form)}": families.made(form, 0) for form in EXACT}
MANY_SIDED = [
    name for name, shape in SHAPES.items() if features(shape) > 1 and not isinstance(shape, ls.ShapeEllipsoid)
]
STEP = 1e-5  # of differences of fourth order [m]: 1e-20 of truncation, 1e-11 of rounding, over the size 0.1 m
CLEAR = 5e-3  # how far points are from where another feature becomes the nearest [m]


@wp.kernel(module="unique", module_options=kernel_options())
def distance_kernel(
    t: TablesStruct,
    y: wp.array(dtype=vec3),
    d: wp.array(dtype=wp.float64),
    n: wp.array(dtype=vec3),
    N: wp.array(dtype=mat3),
):
    k = wp.tid()
    value, gradient, hessian = obstacle_distance(t, 0, y[k])
    d[k] = value
    n[k] = gradient
    N[k] = hessian


@cache
def model_of(shape, radius):
    """A ball of this radius that may touch the shape."""
    robot = ls.Robot("ball")
    robot.add_link("ball", ls.RigidBody.sphere(radius, density=1000), ls.JointFree())
    robot.add_contact("touch", "ball", shape)
    return robot.build()


def found(shape, points, radius=0.05):
    """Distance (n,), gradient (n, 3) and Hessian (n, 3, 3) at points in the shape's frame, by the kernels' function.
    Beyond the radius of the ball, distances from shapes on grids are lower bounds."""
    model = model_of(shape, radius)
    R = model.contacts.obstacle_placement[0, :3, :3]
    rows = wp.array(np.ascontiguousarray(points @ R), dtype=vec3)
    d, n, N = (wp.zeros(len(points), dtype=kind_) for kind_ in (wp.float64, vec3, mat3))
    wp.launch(distance_kernel, len(points), [device_tables(model), rows, d, n, N])
    return d.numpy(), n.numpy() @ R.T, R @ N.numpy() @ R.T


def clear_points(shape, count=500):
    """Random points around and inside a shape, away from where its nearest feature changes, with their features."""
    rng = np.random.default_rng(3)
    points, labels = [], []
    for y in np.concatenate([rng.uniform(-0.5, 0.5, (count, 3)), rng.uniform(-0.2, 0.2, (count, 3))]):
        around = [distance(shape, y + CLEAR * e)[1] for e in (*np.eye(3), *-np.eye(3), np.zeros(3))]
        if len(set(around)) == 1:
            points.append(y)
            labels.append(around[0])
    return np.array(points), labels


def slopes(function, points):
    """Derivative of function(points) (n, ...) by the points, on a trailing axis, by differences of fourth order."""
    columns = []
    for e in STEP * np.eye(3):
        near, far = (function(points + s * e) - function(points - s * e) for s in (1, 2))
        columns.append((8 * near - far) / (12 * STEP))
    return np.stack(columns, axis=-1)


@pytest.mark.parametrize("name", SHAPES)
def test_distance_gradient_and_hessian(name):
    """Purpose: the distance is that of NumPy; its gradient has unit length and is its slope, the Hessian that of the
    gradient, for every feature of the shape that random points find nearest."""
    shape = SHAPES[name]
    points, labels = clear_points(shape)
    assert len(points) > 100 and len(set(labels)) == features(shape)
    d, n, N = found(shape, points)
    np.testing.assert_allclose(d, [distance(shape, y)[0] for y in points], rtol=0, atol=1e-15)
    np.testing.assert_allclose(np.linalg.norm(n, axis=1), 1.0, rtol=0, atol=1e-15)
    np.testing.assert_allclose(n, slopes(lambda y: found(shape, y)[0], points), rtol=0, atol=1e-9)
    size = 1.0 + np.abs(N).max(axis=(1, 2))
    error = np.abs(N - slopes(lambda y: found(shape, y)[1], points)).max(axis=(1, 2))
    assert (error / size).max() < 1e-8
    np.testing.assert_allclose(np.einsum("kij,kj->ki", N, n), 0.0, rtol=0, atol=1e-12 * size.max())


FEATURES = {
    "face of a box": (BOX, (0.17, 0.05, 0.05), (1, 0, 0), 0.02, (0, 0)),
    "edge of a box": (BOX, (0.18, 0.24, 0.05), (0.6, 0.8, 0), 0.05, (0, 20)),
    "corner of a box": (BOX, (0.15 + 0.02, 0.2 + 0.01, 0.25 + 0.02), (2 / 3, 1 / 3, 2 / 3), 0.03, (1 / 0.03, 1 / 0.03)),
    "inside a box": (BOX, (0.03, 0.19, 0.05), (0, 1, 0), -0.01, (0, 0)),
    "side of a capsule": (CAPSULE, (0.1, 0.15, 0.2), (0, 0.6, 0.8), 0.05, (0, 4)),
    "end of a capsule": (CAPSULE, (0.45, 0.2, 0.0), (0.6, 0.8, 0), 0.05, (4, 4)),
}


@pytest.mark.parametrize("name", FEATURES)
def test_known_features(name):
    """Purpose: distance, normal and principal curvatures at single features, by hand."""
    shape, point, normal, far, curvatures = FEATURES[name]
    d, n, N = found(shape, np.array([point]))
    assert d[0] == pytest.approx(far, abs=1e-15)
    np.testing.assert_allclose(n[0], normal, rtol=0, atol=1e-14)
    principal = np.linalg.eigvalsh(N[0])
    np.testing.assert_allclose(principal, sorted([0.0, *curvatures]), rtol=0, atol=1e-11)


@pytest.mark.parametrize("name", ["rim", "side", "end"])
def test_known_features_of_a_cylinder(name):
    """Purpose: the rim of a finite cylinder has the curvature 1/d across and that of a torus along; side, end."""
    shape = ls.ShapeCylinder(0.2, 0.6, axis=(0, 0, 1))
    point, normal, curvatures = {
        "rim": ((0.23, 0.0, 0.34), (0.6, 0, 0.8), (1 / 0.05, 0.6 / 0.23)),
        "side": ((0.25, 0.0, 0.1), (1, 0, 0), (0, 4)),
        "end": ((0.05, 0.05, 0.35), (0, 0, 1), (0, 0)),
    }[name]
    d, n, N = found(shape, np.array([point]))
    assert d[0] == pytest.approx(0.05, abs=1e-15)
    np.testing.assert_allclose(n[0], normal, rtol=0, atol=1e-14)
    np.testing.assert_allclose(np.linalg.eigvalsh(N[0]), sorted([0.0, *curvatures]), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["side", "rim", "tip", "base", "inside the side", "inside the base"])
def test_known_features_of_a_cone(name):
    """Purpose: a cone of sides 3, 4 and 5: its side is curved as a circle of the distance along the normal to the axis,
    its rim as a torus, its tip as a sphere."""
    shape = ls.ShapeCone(0.3, 0.4, axis=(0, 0, 1))
    point, normal, far, curvatures = {
        "side": ((0.19, 0.0, 0.03), (0.8, 0, 0.6), 0.05, (0, 0.8 / 0.19)),
        "rim": ((0.0, 0.33, -0.24), (0, 0.6, -0.8), 0.05, (1 / 0.05, 0.6 / 0.33)),
        "tip": ((-0.03, 0.0, 0.24), (-0.6, 0, 0.8), 0.05, (1 / 0.05, 1 / 0.05)),
        "base": ((0.1, 0.05, -0.25), (0, 0, -1), 0.05, (0, 0)),
        "inside the side": ((0.142, 0.0, -0.006), (0.8, 0, 0.6), -0.01, (0, 0.8 / 0.142)),
        "inside the base": ((0.1, 0.05, -0.19), (0, 0, -1), -0.01, (0, 0)),
    }[name]
    d, n, N = found(shape, np.array([point]))
    assert d[0] == pytest.approx(far, abs=1e-15)
    np.testing.assert_allclose(n[0], normal, rtol=0, atol=2e-14)
    np.testing.assert_allclose(np.linalg.eigvalsh(N[0]), sorted([0.0, *curvatures]), rtol=0, atol=1e-11)


@pytest.mark.parametrize("name", MANY_SIDED)
def test_distance_is_smooth_past_edges(name):
    """Purpose: outside, distance and normal are continuous where another feature becomes the nearest."""
    shape = SHAPES[name]
    rng = np.random.default_rng(5)
    a, b = rng.uniform(-0.6, 0.6, (2, 200, 3))
    met = 0
    for start, stop in zip(a, b):
        low, high, first = 0.0, 1.0, distance(shape, start)[1]
        if first == distance(shape, stop)[1]:
            continue
        for _ in range(45):
            middle = 0.5 * (low + high)
            same = distance(shape, start + middle * (stop - start))[1] == first
            low, high = (middle, high) if same else (low, middle)
        at = start + np.array([[low], [high]]) * (stop - start)
        if distance(shape, at[0])[0] > 1e-2 and np.abs(at[0] - at[1]).max() < 1e-12:
            met += 1
            d, n, _ = found(shape, at)
            assert abs(d[1] - d[0]) < 1e-12 and np.abs(n[1] - n[0]).max() < 1e-10
    assert met > 30
