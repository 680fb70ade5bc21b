"""Shapes on grids: distances against closed forms, derivatives of the spline, points beyond the grid, and
refused arguments."""

import families
import numpy as np
import pytest
from forces.exact_distances import distance
from forces.test_distances import STEP, found, slopes
from one_sided import projective_plane
from scipy.spatial import ConvexHull

import lissom as ls
from lissom.model import distance_grids
from lissom.model.distance_grids import grid_of
from lissom.robot.sampled_shapes import SampledShape
from lissom.robot.shapes import Shape

REACH = 0.05  # radius of the balls [m]
SAMPLED = [form for form in families.forms(Shape) if issubclass(form[0], SampledShape)]


def sphere(radius=0.2, rings=160, around=320):
    """Vertices and triangles of a fine sphere; its facets are within radius/rings² of it."""
    polar, turn = np.linspace(0.0, np.pi, rings + 1)[1:-1], 2.0 * np.pi * np.arange(around) / around
    points = np.stack(
        [
            np.outer(np.sin(polar), np.cos(turn)),
            np.outer(np.sin(polar), np.sin(turn)),
            np.cos(polar)[:, None] + 0 * turn,
        ],
        axis=-1,
    ).reshape(-1, 3)
    points = radius * np.concatenate([points, [[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]]])
    return points, ConvexHull(points).simplices


def outwards(points, rows):
    """The same triangles of a convex body, all turned outwards."""
    a, b, c = np.moveaxis(points[rows], 1, 0)
    inward = np.einsum("mi,mi->m", np.cross(b - a, c - a), a + b + c) < 0.0
    return points, np.where(inward[:, None], rows[:, ::-1], rows)


def around(low, high, count=3000, seed=2):
    """Random points at distances from `low` to `high` from the origin."""
    rng = np.random.default_rng(seed)
    y = rng.normal(size=(count, 3))
    return y * (rng.uniform(low, high, count) / np.linalg.norm(y, axis=1))[:, None]


@pytest.mark.parametrize("form", SAMPLED, ids=families.name_of)
def test_the_spline_is_that_of_scipy(form):
    """Purpose: the distance in kernels is the tensor-product spline of SciPy through the same samples; gradient and
    Hessian are its slopes, inside the grid and beyond it."""
    shape = families.made(form, 1)
    grid = grid_of(shape, REACH, "shape")
    spread = float(max(-grid.low))
    points = np.random.default_rng(1).uniform(-1.2 * spread, 1.2 * spread, (300, 3))
    d, n, N = found(shape, points)
    np.testing.assert_allclose(d, [distance(shape, y)[0] for y in points], rtol=0, atol=1e-13)
    cells = (points - grid.low) / grid.spacing  # third derivatives jump between cells
    clear = (np.abs(cells - np.round(cells)) * grid.spacing > 3.0 * STEP).all(axis=1)
    np.testing.assert_allclose(n[clear], slopes(lambda y: found(shape, y)[0], points[clear]), rtol=0, atol=1e-8)
    error = np.abs(N - slopes(lambda y: found(shape, y)[1], points))[clear]
    assert (error.max(axis=(1, 2)) / (1.0 + np.abs(N[clear]).max(axis=(1, 2)))).max() < 1e-6


@pytest.mark.parametrize("form", SAMPLED, ids=families.name_of)
def test_second_derivatives_are_continuous(form):
    """Purpose: the Hessian does not jump where one cell meets the next."""
    shape = families.made(form, 1)
    grid = grid_of(shape, REACH, "shape")
    count = np.array(grid.coefficient.shape) - 2
    nodes = np.random.default_rng(3).integers(2, count - 2, (200, 3))
    points = grid.low + grid.spacing * nodes
    across = 1e-9 * np.ones(3)
    ahead, behind = found(shape, points + across)[2], found(shape, points - across)[2]
    assert np.abs(ahead - behind).max() < 1e-5 * np.abs(ahead).max()


def test_a_mesh_of_a_sphere():
    """Purpose: distance, normal and curvature of a fine mesh are those of the sphere."""
    vertices, triangles = outwards(*sphere())
    shape, y = ls.ShapeMesh(ls.Mesh(vertices=vertices, triangles=triangles), 24), around(0.15, 0.24)
    d, n, N = found(shape, y)
    far = np.linalg.norm(y, axis=1)
    np.testing.assert_allclose(d, far - 0.2, rtol=0, atol=3e-5)
    np.testing.assert_allclose(n, y / far[:, None], rtol=0, atol=2e-3)
    flat = np.eye(3) - np.einsum("ki,kj->kij", y, y) / (far**2)[:, None, None]
    outside = far > 0.205  # facets and edges show in the curvature at the surface itself
    np.testing.assert_allclose(N[outside], (flat / far[:, None, None])[outside], rtol=0, atol=0.6)


@pytest.mark.parametrize("resolution", [24, 48])
def test_a_hull_of_a_box(resolution):
    """Purpose: the hull of corners is the box, within rounding of the grid beside its faces and within a share of a
    cell near its edges."""
    corners = 0.5 * np.array([0.3, 0.4, 0.5]) * np.array(np.meshgrid(*[[-1, 1]] * 3)).reshape(3, -1).T
    box, shape = ls.ShapeBox(0.3, 0.4, 0.5), ls.ShapeHull(corners.tolist(), resolution)
    cell = 0.5 / resolution
    points = np.random.default_rng(4).uniform(-0.3, 0.3, (4000, 3))
    expected = np.array([distance(box, y)[0] for y in points])
    near = np.abs(expected) < 0.04
    d, n, _ = found(shape, points[near])
    excess = np.sort(np.abs(points[near]) - np.array([0.15, 0.2, 0.25]), axis=1)
    error = np.abs(d - expected[near])
    beside = excess[:, 2] - excess[:, 1] > 5.0 * cell
    assert beside.sum() > 100 and error[beside].max() < 1e-3 * cell
    assert np.abs(np.linalg.norm(n[beside], axis=1) - 1.0).max() < 5e-3
    assert error.max() < 0.3 * cell


def test_functions_and_their_order():
    """Purpose: the grid of a smooth function has errors of fourth order in the cell."""
    errors = []
    for resolution in (16, 32, 64):
        shape = ls.ShapeFunction("sqrt(x**2 + y**2 + z**2) - 0.2", [-0.3] * 3, [0.3] * 3, resolution)
        y = around(0.17, 0.23)
        d, n, _ = found(shape, y)
        far = np.linalg.norm(y, axis=1)
        errors.append((np.abs(d - far + 0.2).max(), np.abs(n - y / far[:, None]).max()))
    order = np.log2(np.array(errors)[:-1] / np.array(errors)[1:])
    assert (order[:, 0] > 3.5).all() and (order[:, 1] > 2.5).all() and errors[-1][0] < 1e-7

    def of_python(x, y, z):
        return np.sqrt(x * x + y * y + z * z) - 0.2

    same = ls.ShapeFunction(of_python, [-0.3] * 3, [0.3] * 3, 64)
    np.testing.assert_allclose(found(same, y)[0], d, rtol=0, atol=1e-14)


def test_beyond_the_grid():
    """Purpose: beyond the grid the distance is a lower bound of the true one, and continuous at the grid."""
    shape = ls.ShapeFunction("sqrt(x**2 + y**2 + z**2) - 0.2", [-0.21] * 3, [0.21] * 3, 32)
    y = around(0.2, 3.0)
    true = np.linalg.norm(y, axis=1) - 0.2
    d, n, _ = found(shape, y)
    assert (d <= true + 1e-5).all() and (d > 0.6 * true - 1e-5).all()
    assert (np.linalg.norm(n, axis=1) < 1.0 + 1e-3).all()


def test_a_height_field_that_leans():
    """Purpose: on a slope the distance is that of the perpendicular; above it is a lower bound; beyond the edges the
    ground goes on."""
    x, y = np.linspace(-1.0, 1.0, 81), np.linspace(-0.5, 0.5, 41)
    shape = ls.ShapeHeightField((0.1 * x[:, None] + 0.2 * y).tolist(), 2.0, 1.0)
    normal = np.array([-0.1, -0.2, 1.0]) / np.linalg.norm([-0.1, -0.2, 1.0])
    points = np.random.default_rng(5).uniform([-0.8, -0.4, -0.3], [0.8, 0.4, 0.3], (500, 3))
    d, n, N = found(shape, points, REACH)
    near = d < REACH
    np.testing.assert_allclose(d[near], (points @ normal)[near], rtol=0, atol=1e-12)
    np.testing.assert_allclose(n[near], np.tile(normal, (near.sum(), 1)), rtol=0, atol=1e-12)
    np.testing.assert_allclose(N[near], 0.0, rtol=0, atol=1e-9)
    assert (d <= points @ normal + 1e-9).all()
    far = found(shape, np.array([[50.0, 0.0, 0.13]]))[0]  # the edge is half a cell beyond the last points
    assert far[0] == pytest.approx((0.13 - 0.1 - 0.0025) / np.sqrt(1.04), abs=1e-6)


def test_a_rough_height_field():
    """Purpose: on rough ground the distance is that of the foot of a perpendicular found by SciPy, and gradient and
    Hessian are its slopes."""
    shape = families.made((ls.ShapeHeightField, 0), 3)
    points = np.random.default_rng(6).uniform([-0.5, -0.5, -0.1], [0.5, 0.5, 0.2], (300, 3))
    d, n, N = found(shape, points, 1.0)
    np.testing.assert_allclose(d, [distance(shape, y)[0] for y in points], rtol=0, atol=1e-15)
    np.testing.assert_allclose(np.linalg.norm(n, axis=1), 1.0, rtol=0, atol=1e-15)
    np.testing.assert_allclose(n, slopes(lambda y: found(shape, y, 1.0)[0], points), rtol=0, atol=1e-7)
    error = np.abs(N - slopes(lambda y: found(shape, y, 1.0)[1], points)).max(axis=(1, 2))
    assert np.quantile(error, 0.95) < 1e-8 and error.max() < 1e-3  # third derivatives jump between cells


def mesh_of_box(**other):
    return ls.Mesh.of_shape(ls.ShapeBox(0.2, 0.3, 0.4), **other)


def test_inside_out_and_cavities():
    """Purpose: a mesh turned inside out is turned back; a smaller mesh inside, turned against the outer, is a
    cavity."""
    given = mesh_of_box()
    rows = np.asarray(given.triangles)
    turned = ls.Mesh(vertices=given.vertices, triangles=rows[:, ::-1])
    points = np.array([[0.0, 0.0, 0.0], [0.09, 0.0, 0.0], [0.13, 0.0, 0.0]])
    for mesh in (given, turned):
        d = found(ls.ShapeMesh(mesh, 40), points)[0]
        np.testing.assert_allclose(d[1:], [-0.01, 0.03], rtol=0, atol=1e-4)
    both = np.vstack([given.vertices, 0.5 * np.asarray(given.vertices)])
    hollow = ls.Mesh(vertices=both, triangles=np.vstack([rows, rows[:, ::-1] + len(given.vertices)]))
    assert found(ls.ShapeMesh(hollow, 40), points)[0][0] == pytest.approx(0.05, abs=2e-3)


def test_a_shell_around_an_open_mesh():
    """Purpose: with a thickness, an open mesh is a shell of that thickness."""
    given = mesh_of_box()
    mesh = ls.Mesh(vertices=given.vertices, triangles=np.asarray(given.triangles)[:-1])
    points = np.array([[0.0, 0.0, 0.0], [0.1, 0.02, 0.03], [0.13, 0.01, 0.02]])
    d = found(ls.ShapeMesh(mesh, 40, thickness=0.03), points)[0]
    np.testing.assert_allclose(d[[0, 2]], [0.085, 0.015], rtol=0, atol=1e-3)
    assert -0.015 <= d[1] < -0.005


def test_a_grid_is_made_once(monkeypatch):
    """Purpose: the grid of a mesh comes from the cache on disk the next time, and a broken file is replaced."""
    shape = ls.ShapeMesh(mesh_of_box(), 23)
    first = grid_of(shape, 0.031, "shape").coefficient.copy()
    files = sorted(distance_grids.cache_folder("lissom-grids").glob("*.npy"), key=lambda file: file.stat().st_mtime)

    def never(*_):
        raise AssertionError("sampled again")

    with monkeypatch.context() as patch:
        patch.setattr(distance_grids, "_mesh_distances", never)
        again = grid_of(ls.ShapeMesh(mesh_of_box(), 23), 0.031, "shape")
    np.testing.assert_array_equal(again.coefficient, first)
    del again
    files[-1].write_bytes(b"broken")
    np.testing.assert_array_equal(grid_of(ls.ShapeMesh(mesh_of_box(), 23), 0.031, "shape").coefficient, first)


def test_signs_are_those_of_winding_numbers():
    """Purpose: each sample has the sign of its own winding number: of overlapping parts, of a cavity, and of a plate
    thinner than a cell, which no sample inside is far from."""
    points, rows = outwards(*sphere(rings=8, around=16))
    box = mesh_of_box().surface()
    plate = (np.array([1.0, 1.0, 0.01]) * box[0] + [0.0, 0.0, 0.31], box[1])
    parts = [(points, rows), (0.4 * points, rows[:, ::-1]), (points + np.array([0.15, 0.0, 0.0]), rows), plate]
    start = np.cumsum([0] + [len(part[0]) for part in parts])
    mesh = ls.Mesh(
        vertices=np.concatenate([part[0] for part in parts]),
        triangles=np.concatenate([part[1] + k for part, k in zip(parts, start)]),
    )
    solid = ls.ShapeMesh(mesh).solid("shape")
    low, high = solid.vertices.min(axis=0) - 0.05, solid.vertices.max(axis=0) + 0.05
    spacing = np.full(3, float((high - low).max()) / 30)
    count = np.ceil((high - low) / spacing).astype(int)
    sign = np.sign(distance_grids._mesh_distances(distance_grids._Frame(solid), low, spacing, count)).ravel()
    at = low + spacing * np.stack(np.unravel_index(np.arange(len(sign)), count), axis=-1)
    a, b, c = (solid.vertices[solid.triangles[:, k]][:, None] - at[::7] for k in range(3))
    x, y, z = (np.linalg.norm(corner, axis=-1) for corner in (a, b, c))
    dots = [(p * q).sum(axis=-1) for p, q in ((a, b), (b, c), (c, a))]
    over = np.einsum("mni,mni->mn", a, np.cross(b, c))
    winding = 2.0 * np.arctan2(over, x * y * z + dots[0] * z + dots[1] * x + dots[2] * y).sum(axis=0) / (4.0 * np.pi)
    clear = np.abs(np.abs(winding) - 0.5) > 0.4
    assert (winding > 0.5).any() and clear.mean() > 0.99
    np.testing.assert_array_equal(sign[::7][clear] < 0.0, winding[clear] > 0.5)


FAULTS = {
    "open": (
        lambda: ls.ShapeMesh(ls.Mesh(vertices=np.eye(3), triangles=[[0, 1, 2]])),
        "3 of its 3 edges have a triangle on one side only",
    ),
    "turned": (lambda: ls.ShapeMesh(projective_plane()), "must have triangles that are all turned outwards: at "),
    "thin": (lambda: ls.ShapeMesh(mesh_of_box(), thickness=0.0), "thickness: must be > 0"),
    "side": (
        lambda: ls.ShapeMesh(mesh_of_box(), thickness=0.01, side="left"),
        "side: must be one of ['middle', 'front'",
    ),
    "no mesh": (lambda: ls.ShapeMesh("cup.stl"), "mesh: must be a Mesh"),
    "no file": (lambda: ls.ShapeMesh(ls.Mesh(file="nowhere.stl")), "mesh 'nowhere.stl': cannot be read"),
    "coarse": (lambda: ls.ShapeHull(np.eye(4, 3).tolist(), 4), "resolution: must be an integer >= 8"),
    "fine": (lambda: ls.ShapeHull(np.eye(4, 3).tolist(), 512), "its grid would have"),
    "flat": (lambda: ls.ShapeHull([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]]), "points: must span a volume"),
    "few": (lambda: ls.ShapeHull([[0, 0, 0]]), "points: must be at least four"),
    "no zero": (lambda: ls.ShapeFunction("x + 9", [-1] * 3, [1] * 3, 16), "must be zero on a surface between low and"),
    "steep": (lambda: ls.ShapeFunction("2*z", [-1] * 3, [1] * 3, 16), "must be a distance, with a slope of 1"),
    "rough": (
        lambda: ls.ShapeFunction("sqrt(x**2+y**2+z**2) - 0.5", [-1] * 3, [1] * 3, 16, 1e-9),
        "tolerance: the grid must",
    ),
    "text": (lambda: ls.ShapeFunction("open(x)", [-1] * 3, [1] * 3), "distance: expression 'open(x)': only numbers"),
    "raises": (lambda: ls.ShapeFunction(lambda x, y, z: 1 / 0, [-1] * 3, [1] * 3), "the function failed (ZeroDivision"),
    "shape": (lambda: ls.ShapeFunction(lambda x, y, z: [x, y], [-1] * 3, [1] * 3), "must return 1 finite numbers"),
    "box": (lambda: ls.ShapeFunction("x", [1] * 3, [1] * 3), "high: must be above low along each axis"),
    "heights": (lambda: ls.ShapeHeightField([[0, 1], [1, 2]], 1, 1), "must have at least 4 rows and 4 columns"),
    "tube": (lambda: ls.ShapeTorus(0.1, 0.2), "tube: must be less than the radius 0.1"),
    "needle": (lambda: ls.ShapeEllipsoid(1.0, 1.0, 1e-5), "half-axes: must be at most 10000 times as long"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_refusals(name):
    """Purpose: one clear line names the contact, the rule and the value."""
    make, text = FAULTS[name]
    robot = ls.Robot("ball")
    robot.add_link("ball", ls.RigidBody.sphere(0.05, density=1000), ls.JointFree())
    with pytest.raises(ls.ModelError) as error:
        robot.add_contact("touch", "ball", make())
        robot.build()
    assert text in str(error.value) and str(error.value).startswith("contact 'touch' > shape")
    assert "\n" not in str(error.value)
