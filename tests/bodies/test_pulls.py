"""Inputs in deformable bodies: tendons along their material, chambers, and pressure on their surfaces."""

import jax.numpy as jnp
import numpy as np
import pytest

import lissom as ls

LENGTH, RADIUS = 0.2, 0.02
LAW = ls.HyperelasticLinear(young=1e5, poisson=0.4)


def shapes(x):
    """Bending about z, a twist, and a bulge."""
    X = x[0] / LENGTH
    bending = jnp.array([-2.0 * x[1] * X / LENGTH, X**2, 0.0])
    return jnp.stack([0.1 * bending, jnp.array([0.0, -x[2] * X, x[1] * X]), X * x * jnp.array([0.0, 1.0, 1.0])], axis=1)


DOMAIN = ls.DomainCylinder(LENGTH, RADIUS, degree=4)
SOFT = ls.DeformableBody(ls.KinematicsRitz(shapes, 3), DOMAIN, LAW, 1e3, tip="tip")
CHAMBER = ls.cylinder_surface(0.02, 0.16, 0.01, around=6, along=4)
ALONG = ls.PathBody("soft", [(0.0, 0.015, 0.0), (0.1, 0.018, 0.004), (LENGTH, 0.0, 0.0)])
BEYOND = ls.PathBody("next", lambda s: (LENGTH * s, 0.015 * np.sin(2 * s), 0.015 * np.sin(3 * s)))
EYELETS = ls.PathBody("soft", [(0.0, 0.0, 0.016), (0.1, 0.0, 0.018), (0.19, 0.002, 0.016)], gauss_points=None)


def outside(x):
    """Half of the mantle and of the lids."""
    return x[1] > -1e-9


@pytest.fixture(scope="module")
def model():
    """A hip on a hinge with two bodies in a row, and every kind of input in them."""
    robot = ls.Robot("arm")
    robot.add_link("hip", ls.RigidBody.box(0.1, 0.1, 0.1, density=500.0), ls.JointFree())
    robot.add_link("soft", SOFT, ls.JointRevolute((0, 1, 0)), parent="hip")
    robot.add_link("next", SOFT, parent="soft")
    robot.add_tendon("long", path=[ls.PathPoint("hip", (0.0, 0.03, 0.01)), ALONG, BEYOND])
    robot.add_tendon("eyelets", path=[EYELETS])
    robot.add_body_chamber("shut", "soft", surface=CHAMBER)
    robot.add_body_chamber("open", "next", surface=(CHAMBER[0], CHAMBER[1][:36]))
    robot.add_body_chamber("given", "soft", volume=lambda q: 1e-5 * (1.0 + q[2]) ** 3 * jnp.cos(q[0]))
    robot.add_tendon("elastic", path=[ALONG, ls.PathPoint("next", s=1.0)], stiffness=2e3)
    robot.add_surface_pressure("outside", "soft", outside)
    return robot.build()


@pytest.fixture(scope="module")
def state(model):
    """Bent, in motion, with inputs."""
    rng = np.random.default_rng(0)
    q = ls.integrate(model, model.neutral(), rng.uniform(-0.4, 0.4, model.nv))
    return q, rng.normal(size=model.nv), np.array([20.0, 10.0, 3e4, 2e4, 1e4, 0.02, 2e4])


def slopes(model, function, q, step=1e-5):
    """Jacobian along the configuration by central differences."""
    ahead, behind = (function(ls.integrate(model, q, side * step * np.eye(model.nv))) for side in (1, -1))
    return np.swapaxes(ahead - behind, 0, -1) / (2 * step)


def triangles_at(q, surface):
    """Corners of the moved triangles of a surface in the frame of the body, shape (k, 3, 3)."""
    vertices, triangles = surface
    return SOFT.moved(vertices, q)[triangles]


def own(model, q, link):
    """The coordinates of a body."""
    first = int(model.links.q_start[model.links.names.index(link) + 1]) - 3
    return q[first : first + 3]


def volume(corners):
    """Inside closed triangles."""
    return np.linalg.det(corners).sum() / 6.0


def test_lengths_and_volumes_have_the_forces_as_gradients(model, state):
    """B against differences of the tendons' lengths, and of volumes that the test itself sums over triangles."""
    q, _, _ = state
    B = ls.actuation_matrix(model, q)
    lengths = -slopes(model, lambda q: ls.path_lengths(model, q), q).T
    expected = lengths * (1.0, 1.0, 2e3)  # the input of an elastic tendon is a length
    np.testing.assert_allclose(B[:, [0, 1, 5]], expected, rtol=0, atol=1e-8 * np.abs(expected).max())
    functions = {
        2: lambda q: volume(triangles_at(own(model, q, "soft"), CHAMBER)),
        4: lambda q: 1e-5 * (1.0 + own(model, q, "soft")[2]) ** 3 * np.cos(own(model, q, "soft")[0]),
    }
    for column, function in functions.items():
        expected = slopes(model, lambda rows: np.array([function(row) for row in rows])[:, None], q)[0]  # noqa: B023
        np.testing.assert_allclose(B[:, column], expected, rtol=0, atol=1e-8 * np.abs(expected).max())


def test_a_chamber_open_at_its_rims_is_closed_by_lids(model, state):
    """Its force is that of the triangles with fans to the middle of each rim."""
    q, _, _ = state
    vertices, triangles = CHAMBER

    def closed(row):
        p = SOFT.moved(vertices, own(model, row, "next")).copy()
        p[24], p[25] = p[:6].mean(axis=0), p[18:24].mean(axis=0)  # around which the lids of the helper are
        return volume(p[triangles])

    expected = slopes(model, lambda rows: np.array([closed(row) for row in rows])[:, None], q)[0]
    B = ls.actuation_matrix(model, q)[:, 3]
    np.testing.assert_allclose(B, expected, rtol=0, atol=1e-8 * np.abs(expected).max())


def test_pressure_acts_by_the_virtual_work_of_each_triangle(model, state):
    """−Σ N·δx over the moved triangles, whatever moves them: the hip, the hinge, or the body; a shut chamber has the
    opposite sign, and no net wrench on what carries the body."""
    q, _, _ = state
    B = ls.actuation_matrix(model, q)
    vertices, triangles = DOMAIN.surface()
    chosen = triangles[np.array([outside(x) for x in vertices])[triangles].all(axis=1)]
    for column, sign, surface in ((6, -1.0, (vertices, chosen)), (2, 1.0, CHAMBER)):

        def places(rows, surface=surface):
            g = ls.frame_pose(model, rows, "soft", s=0.0)
            local = np.array([triangles_at(own(model, row, "soft"), surface) for row in rows])
            return np.einsum("nij,nkcj->nkci", g[:, :3, :3], local) + g[:, None, None, :3, 3]

        corners = places(q[None])[0]
        N = 0.5 * np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])

        def work(rows, places=places, N=N):
            return np.einsum("nki,ki->n", places(rows).mean(axis=2), N)[:, None]

        expected = sign * slopes(model, work, q)[0]
        np.testing.assert_allclose(B[:, column], expected, rtol=0, atol=1e-8 * np.abs(expected).max())
        carried = np.abs(B[:7, column]).max() / np.abs(B[:, column]).max()
        assert carried < 1e-12 if column == 2 else carried > 0.1


def test_derivatives_of_forward_dynamics_are_exact(model, state):
    """With all inputs at work; the tendon that is elastic is taut."""
    q, v, u = state
    assert ls.tendon_tensions(model, q, u).min() > 5.0
    by_q, _, by_u = ls.forward_dynamics_derivatives(model, q, v, u)
    expected = slopes(model, lambda rows: ls.forward_dynamics(model, rows, v, u), q)
    np.testing.assert_allclose(by_q, expected, rtol=0, atol=1e-8 * np.abs(expected).max())
    ahead, behind = (ls.forward_dynamics(model, q, v, u * (1 + side * 1e-3 * np.eye(7))) for side in (1, -1))
    expected = (ahead - behind).T / (2e-3 * u)
    np.testing.assert_allclose(by_u, expected, rtol=0, atol=1e-8 * np.abs(expected).max())


def test_inputs_leave_nothing_to_inverse_dynamics(model, state):
    """Its derivatives, in the buffers that those of forward dynamics were in, are those of a robot without inputs."""
    q, v, u = state
    a = np.cos(np.arange(model.nv))
    ls.forward_dynamics_derivatives(model, q, v, u)
    found = ls.inverse_dynamics_derivatives(model, q, v, a)[0]
    expected = slopes(model, lambda rows: ls.inverse_dynamics(model, rows, v, a), q)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8 * np.abs(expected).max())


def test_inverse_dynamics_undoes_forward_dynamics(model, state):
    """ID(q, v, FD(q, v, u)) = B T, and FD of a batch is that of each state."""
    q, v, u = state
    a = ls.forward_dynamics(model, q, v, u)
    B = ls.actuation_matrix(model, q)
    size = u.copy()
    size[5] = ls.tendon_tensions(model, q, u)[2] / 2e3
    tau = ls.inverse_dynamics(model, q, v, a)
    np.testing.assert_allclose(tau, B @ size, rtol=0, atol=1e-9 * np.abs(tau).max())
    both = ls.forward_dynamics(model, np.array([q, model.neutral()]), np.array([v, 0 * v]), u)
    np.testing.assert_allclose(both[0], a, rtol=0, atol=1e-12 * np.abs(a).max())


def bubble():
    """A body on the world with a chamber."""
    robot = ls.Robot("bubble", gravity=(0, 0, 0))
    robot.add_link("soft", SOFT)
    robot.add_body_chamber("shut", "soft", surface=CHAMBER)
    return robot.build()


def test_a_constant_pressure_works_by_the_change_of_the_volume():
    """An undamped body under a pressure in its chamber: what its energy grows by is u ΔV."""
    model = bubble()
    path = ls.simulate(model, 0.05, u=[2e4], method="dop853", rtol=1e-9, atol=1e-11)
    energy = [ls.energy(model, path.q[k], path.v[k]).total for k in (0, -1)]
    y = ls.actuation_coordinates(model, path.q[-1])[0]
    assert abs(y) > 1e-7
    assert energy[1] - energy[0] == pytest.approx(2e4 * y, rel=1e-6)


@pytest.mark.slow  # kernels of statics for one more kind of robot
def test_statics_and_linearization_know_the_pressure():
    """Elasticity balances the pressure, and the linearised equation of motion is that of forward dynamics."""
    model = bubble()
    rest = ls.solve_statics(model, u=[2e3])
    force = ls.inverse_dynamics(model, rest.q, 0 * rest.q, 0 * rest.q)
    expected = ls.actuation_matrix(model, rest.q) @ [2e3]
    np.testing.assert_allclose(force, expected, rtol=0, atol=1e-9 * np.abs(expected).max())
    near = ls.linearize(model, rest.q, u=[2e3])
    zero = np.zeros(3)
    by_q, _, by_u = ls.forward_dynamics_derivatives(model, rest.q, zero, [2e3])
    np.testing.assert_allclose(near.A[3:, :3], by_q, rtol=0, atol=1e-8 * np.abs(by_q).max())
    np.testing.assert_allclose(near.B[3:], by_u, rtol=0, atol=1e-8 * np.abs(by_u).max())


WRONG = {
    "a point alone": (lambda r: r.add_tendon("x", path=[ls.PathBody("soft", [(0, 0, 0)])]), "two points or more"),
    "points twice": (lambda r: r.add_tendon("x", path=[ls.PathBody("soft", [(0, 0, 0)] * 2)]), "must differ"),
    "eyelets of a function": (
        lambda r: r.add_tendon("x", path=[ls.PathBody("soft", lambda s: (s, 0, 0), gauss_points=None)]),
        "gauss_points: must be a number",
    ),
    "a path in a rigid body": (
        lambda r: r.add_tendon("x", path=[ls.PathBody("hip", [(0, 0, 0), (1, 0, 0)])]),
        "actuator 'x' > path[0]: link: must carry a DeformableBody (got 'hip')",
    ),
    "neither surface nor volume": (lambda r: r.add_body_chamber("x", "soft"), "'x': must have a surface or a volume"),
    "corners that are not": (
        lambda r: r.add_body_chamber("x", "soft", surface=(np.eye(3), [(0, 1, 3)])),
        "surface: its triangles must hold whole numbers from 0 to 2",
    ),
    "triangles that look apart": (
        lambda r: r.add_body_chamber("x", "soft", surface=(np.eye(3), [(0, 1, 2), (0, 1, 2)])),
        "surface: each edge must be passed once in each direction",
    ),
    "no volume": (
        lambda r: r.add_body_chamber("x", "soft", surface=(np.eye(3), [(0, 1, 2)])),
        "surface: must enclose a volume",
    ),
    "a volume of two": (
        lambda r: r.add_body_chamber("x", "soft", volume=lambda q: q[:2]),
        "volume: function: must return shape ()",
    ),
    "no triangle chosen": (lambda r: r.add_surface_pressure("x", "soft", lambda x: x[0] > 1), "must choose some"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_is_said(case):
    """The entity, the rule and the value."""
    add, text = WRONG[case]
    robot = ls.Robot("arm")
    robot.add_link("hip", ls.RigidBody.box(0.1, 0.1, 0.1, density=500.0))
    robot.add_link("soft", SOFT, parent="hip")
    add(robot)
    with pytest.raises(ls.ModelError) as error:
        robot.build()
    assert text in str(error.value)


def test_a_pressure_from_outside_has_no_coordinate(model):
    """Its force is no gradient, so that actuation coordinates ask for some."""
    with pytest.raises(ls.ModelError, match="has no known actuation coordinate"):
        ls.actuation_coordinates(model, model.neutral())
