"""Frames of cross-sections in finite elements, which kernels compute: poses, derivatives, and memory."""

import numpy as np
import pytest

import lissom as ls
from lissom.launch.buffers import scratch_memory
from lissom.lie.warp_private import bytes_of
from lissom.model.maps import map_tables
from lissom.model.nodes import Node
from lissom.robot.joints import MotionKind
from lissom.robot.poses import PoseFunction

pytest.importorskip("jax")
SIZE = (0.3, 0.1, 0.08)
PLACES = {
    "inside": [0.11, 0.02, 0.01],
    "side": [0.2, 0.05, 0.013],
    "edge": [0.3, 0.05, 0.04],
    "node": [0.15, 0.0, 0.04],
}


def soft(cells, degree=1, law=None, **fields):
    """A block of finite elements that is held at x = 0."""
    mesh = ls.DomainTetrahedra(*ls.box_mesh(SIZE, cells), degree=2 * degree)
    law = law or ls.HyperelasticSaintVenantKirchhoff(2e5, 0.3, damping_time=0.02)
    return ls.DeformableBody(ls.KinematicsFiniteElements(mesh, degree), mesh, law, 900.0, **fields)


def described(cells, surface, law=None):
    """A block on a joint, whose surface slides on a plane, with a rigid body on its tip and a load on its side."""
    robot = ls.Robot("finger", gravity=(1.0, -2.0, -9.0))
    robot.add_link("block", soft(cells, law=law, tip="tip"), ls.JointRevolute((0, 1, 0)))
    hand = ls.RigidBody.box(0.05, 0.04, 0.03, density=3000)
    robot.add_link("hand", hand, ls.JointRevolute((0, 0, 1)), parent="block")
    for name, place in PLACES.items():
        robot.add_frame(name, "block", s=place)
    place = {"s": PLACES["side"], "frame": "body"}
    robot.add_point_load("push", "block", force=(3.0, 1.0, -2.0), moment=(0.1, 0.2, -0.3), **place)
    touch = {"stiffness": 1e5, "damping": 0.5, "friction": 0.4, "slip_speed": 0.05}
    g = np.eye(4)
    g[2, 3] = -0.035
    robot.add_contact("floor", "block", ls.ShapePlane(normal=(0.1, 0.2, 1.0)), placement=g, surface=surface, **touch)
    return robot.build()


@pytest.fixture(scope="module")
def model():
    """A small block."""
    return described((2, 1, 1), 4)


def state(model, seed=0):
    """A state of large strains and rotations."""
    rng = np.random.default_rng(seed)
    return 0.02 * rng.normal(size=model.nq), rng.normal(size=model.nv), 5.0 * rng.normal(size=model.nv)


def slope(function, x, step=1e-4):
    """Central differences of fourth order, derivatives last."""
    e = step * np.eye(len(x))
    parts = [
        (8 * (function(x + d) - function(x - d)) - function(x + 2 * d) + function(x - 2 * d)) / (12 * step) for d in e
    ]
    return np.stack(parts, axis=-1)


def test_axes_are_those_of_the_moved_material(model):
    """Purpose: the first axis is normal to the moved section, the second follows the material's y, from positions of
    material points near the place, and kernels call no Python."""
    q, *_ = state(model)
    assert not model.calls_python and model.maps.is_area.any()
    body, base = model.description.links["block"].body, ls.frame_pose(model, q, "block", 0.0)
    theta = q[1:-1]
    for name in ("inside", "side"):
        x, h = np.array(PLACES[name]), 1e-4  # linear within a cell
        at = lambda y: body.moved(y[None], theta)[0]  # noqa: E731
        b, d = ((at(x - h * e * np.sign(x[k + 1])) - at(x)) * -np.sign(x[k + 1]) for k, e in enumerate(np.eye(3)[1:]))
        first, second = np.cross(b, d), b / np.linalg.norm(b)
        first /= np.linalg.norm(first)
        R = np.stack([first, second, np.cross(first, second)], axis=-1)
        found = ls.frame_pose(model, q, name)
        np.testing.assert_allclose(found[:3, :3], base[:3, :3] @ R, rtol=0, atol=1e-10)
        np.testing.assert_allclose(found[:3, 3], base[:3, :3] @ at(x) + base[:3, 3], rtol=0, atol=1e-12)


def test_columns_are_derivatives_of_poses(model):
    """Purpose: columns that kernels leave out are zero in those that JAX gives. The Jacobians of frames are derivatives
    of their poses, and rates of Jacobians those along v."""
    q, v, _ = state(model, 1)
    for m in np.flatnonzero(model.maps.is_area)[:6].tolist():
        pose, line = model.maps.pose[m], slice(*model.maps.column_start[m : m + 2].tolist())
        expected = pose.derivatives(q[None, 1:-1])
        outside = np.setdiff1d(np.arange(pose.n), model.maps.coordinate[line])
        assert not expected.S[0][outside].any() and not expected.S_q[0][:, outside].any()
    for name in PLACES:
        jacobian = ls.frame_jacobian(model, q, name)
        turn = lambda y, name=name: ls.frame_pose(model, y, name)  # noqa: E731
        g, moved = turn(q), slope(turn, q)
        S = np.einsum("ba,bcj->acj", np.linalg.inv(g).T, moved)
        np.testing.assert_allclose(jacobian[3:], S[:3, 3], rtol=0, atol=1e-9)
        np.testing.assert_allclose(jacobian[:3], [S[2, 1], S[0, 2], S[1, 0]], rtol=0, atol=1e-9)
        along = lambda x, name=name: ls.frame_jacobian(model, q + x[0] * v, name)  # noqa: E731
        rate = ls.frame_jacobian_derivative(model, q, v, name)
        expected = slope(along, np.zeros(1), 1e-5)[..., 0]  # 1e-20 of truncation, 1e-11 of rounding
        np.testing.assert_allclose(rate, expected, rtol=0, atol=1e-8 * np.abs(expected).max())


def test_derivatives_are_exact(model):
    """Purpose: derivatives of inverse dynamics with respect to q, v and a, and Newton matrices, are differences of
    fourth order: first and second derivatives of columns, loads, contacts and a body on the tip."""
    q, v, a = state(model, 2)
    assert len(ls.contact_forces(model, q, v).depth) > 3
    found = ls.inverse_dynamics_derivatives(model, q, v, a)
    for at, by in enumerate(found):
        arguments = [q, v, a]

        def tau(x, at=at, arguments=arguments):
            return ls.inverse_dynamics(model, *arguments[:at], x, *arguments[at + 1 :])

        expected = slope(tau, arguments[at], 1e-3 if at else 1e-5)
        np.testing.assert_allclose(by, expected, rtol=0, atol=1e-6 * np.abs(expected).max())


def numbers(model):
    """Bytes of the tables of maps of one state."""
    return bytes_of(scratch_memory(model, 1).maps)


@pytest.mark.parametrize("degree, most", [(1, 45), (2, 240)])
def test_memory_of_a_point_does_not_depend_on_the_body(degree, most):
    """Purpose: tables of points take 48 bytes for each column and 200 for the point; a point has the columns of the
    nodes of its cells, as many in large bodies as in small ones."""
    for cells in ((2, 2, 2), (3, 3, 3), (4, 6, 6)) if degree == 1 else ((1, 2, 2), (2, 2, 2)):
        robot = ls.Robot("block")
        robot.add_link("block", soft(cells, degree))
        robot.add_contact("floor", "block", ls.ShapePlane(), surface=True)
        model = robot.build()
        points = len(model.contacts.ball_s)
        columns = np.diff(model.maps.column_start)
        assert columns.max() <= most and points >= 32
        assert numbers(model) < points * (130.0 * most + 300.0)
    assert model.nv > 150


def held(model):
    """Bytes of all buffers of a model and of the matrices that its launches use in between."""
    workspaces = [x for x in model.cache.values() if hasattr(x, "buffers")]
    between = [bytes_of(array) for x in workspaces for y in x.buffers for array in y._temporaries.values()]
    return sum(x.nbytes for x in workspaces) + sum(between)


def test_six_hundred_coordinates():
    """Purpose: derivatives of 590 coordinates with 340 points take less than a tenth of 2 GB: eight matrices of six
    rows for each point, and sixty numbers for each pair of coordinates."""
    for cells in ((2, 2, 2), (2, 5, 5), (4, 6, 6)):
        model = described(cells, True, ls.HyperelasticLinear(2e5, 0.3, damping_time=0.02))
        q, v, a = (1e-3 * x for x in state(model))
        ls.inverse_dynamics_derivatives(model, q, v, a)
        n, points = model.nv, model.n_dynamic
        assert 8 * 5 * 6 * points * n < held(model) < 8 * (8 * 6 * points * (n + 8) + 60 * n * n + 1e3 * points)
    assert n >= 588 and points >= 340 and held(model) < 2e8


def test_places_of_general_bodies_are_refused_before_they_need_memory():
    """Purpose: places that depend on all coordinates of a large body are refused with their number and memory."""
    pose = PoseFunction(lambda q: np.eye(4), 700)
    none = np.zeros((6, 700))
    nodes = [Node(None, np.eye(4), 0, 1.0, 0, 0, MotionKind.MAP, none, none, pose=pose)]
    with pytest.raises(ls.ModelError, match=r"1 places on bodies of up to 700 coordinates, .* would need 16\.5 GB"):
        map_tables(nodes)
