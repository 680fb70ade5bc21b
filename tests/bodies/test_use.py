"""Deformable bodies in use: places on them, pictures, copies, files, and refused arguments."""

import copy
import pickle
import sys

import jax.numpy as jnp
import numpy as np
import pytest
from viewing.facets import body_facets, facet_normals

import lissom as ls

LENGTH = 0.3
LAW = ls.HyperelasticLinear(young=1e5, poisson=0.4, damping_time=0.02)
DOMAIN = ls.DomainCylinder(LENGTH, 0.03, degree=4)
STATE = np.array([0.1, 0.02, 0.03])


def shapes(x):
    """Bending about z, and stretching with a bulge."""
    X = x[0] / LENGTH
    return jnp.stack([jnp.array([-2.0 * x[1] * X / LENGTH, X**2, 0.0]), jnp.array([X**2 / 2, x[1] * X, 0.0])], axis=1)


SOFT = ls.DeformableBody(ls.KinematicsRitz(shapes, 2), DOMAIN, LAW, 1e3, tip="tip")


def described(body=SOFT):
    """A hip on a hinge that carries a deformable body, with a place and a load amid it, and a ball at its tip."""
    robot = ls.Robot("leg")
    robot.add_link("hip", ls.RigidBody.box(0.1, 0.1, 0.1, density=500.0), ls.JointRevolute((0, 0, 1), stiffness=5.0))
    robot.add_link("soft", body, parent="hip")
    robot.add_link("ball", ls.RigidBody.sphere(0.03, density=500.0), parent="soft")
    robot.add_frame("amid", "soft", s=0.5)
    robot.add_point_load("tug", "soft", s=0.5, force=(0.3, 0.5, 0.2))
    return robot


@pytest.fixture(scope="module")
def model():
    """One model for all tests, so that its functions are compiled once."""
    return described().build()


def followed(x):
    """Pose at STATE of the area across a material point, in the frame of the body, by differences."""
    moved = [SOFT.moved(np.array([x, x + 1e-6 * e, x - 1e-6 * e]), STATE[1:]) for e in np.eye(3)]
    F = np.array([(ahead - behind) / 2e-6 for _, ahead, behind in moved]).T
    first, second = np.cross(F[:, 1], F[:, 2]), F[:, 1]
    first, second = first / np.linalg.norm(first), second / np.linalg.norm(second)
    g = np.eye(4)
    g[:3, :3], g[:3, 3] = np.array([first, second, np.cross(first, second)]).T, moved[0][0]
    return g


def test_places_on_a_body_follow_its_material(model):
    """The base, frames inside and the tip lie where the map moves them; other places raise an error."""
    hip = ls.frame_pose(model, STATE, "hip")
    found = ls.frame_pose(model, STATE, "soft", s=[0.0, 0.5, 1.0])
    for g, x in zip(found, (0.0, LENGTH / 2, LENGTH)):
        assert np.allclose(g, hip @ followed(np.array([x, 0.0, 0.0])), rtol=0, atol=1e-9)
    assert np.array_equal(found[1], ls.frame_pose(model, STATE, "amid"))
    assert np.array_equal(found[2], ls.frame_pose(model, STATE, "ball"))
    assert np.array_equal(found[2], ls.frame_pose(model, STATE, "soft"))
    with pytest.raises(ls.ModelError, match=r"s: must be one of \[0.0, 0.5, 1.0\] on the deformable body of 'soft', or "
                       r"name a place by add_frame \(got 0.3\)"):  # fmt: skip
        ls.frame_pose(model, STATE, "soft", s=0.3)


def test_velocities_and_loads_of_places(model):
    """Twists are rates of poses, and a load does the work of its point."""
    v, zero = np.array([0.7, -0.2, 0.3]), np.zeros(3)
    ahead, behind = (ls.frame_pose(model, STATE + h * v, "amid") for h in (1e-6, -1e-6))
    g = ls.frame_pose(model, STATE, "amid")
    rate = g[:3, :3].T @ (ahead - behind)[:3, 3] / 2e-6
    assert np.allclose(ls.frame_twist(model, STATE, v, "amid")[3:], rate, rtol=0, atol=1e-8)
    J = ls.frame_jacobian(model, STATE, "amid")
    assert np.allclose(J @ v, ls.frame_twist(model, STATE, v, "amid"), rtol=0, atol=1e-14)
    free = described()
    free.loads.clear()
    tug = ls.inverse_dynamics(free.build(), STATE, zero, zero) - ls.inverse_dynamics(model, STATE, zero, zero)
    assert np.allclose(tug, J[3:].T @ g[:3, :3].T @ [0.3, 0.5, 0.2], rtol=0, atol=1e-12)


def test_reactions_of_joints_are_in_base_frames(model):
    """At rest a joint carries the weight of the links beyond it, and the load; in the axes behind its motions."""
    rest = ls.solve_statics(model).q
    zero, g = np.zeros(3), np.array(model.gravity)
    reaction = ls.joint_wrench(model, rest, zero, zero, np.zeros(0), "soft")
    R = ls.frame_pose(model, rest, "soft", s=0.0)[:3, :3]
    held = model.links.mass[1:].sum() * g + [0.3, 0.5, 0.2]
    assert np.allclose(R @ reaction[3:], held, rtol=0, atol=1e-9)


def test_a_body_with_nothing_on_it_needs_no_python():
    """Its tip is where it is, and kernels evaluate frames of few coordinates."""
    robot = ls.Robot("flap")
    robot.add_link("soft", SOFT)
    flap = robot.build()
    tip = ls.frame_pose(flap, STATE[1:], "soft")
    assert np.allclose(tip, followed(np.array([LENGTH, 0.0, 0.0])), rtol=0, atol=1e-9)
    assert not flap.calls_python and not described().build().calls_python


def test_pictures_show_the_deformed_surface(model):
    """Facets are the surface in the world, closed and seen from outside, for each of several configurations."""
    states = np.array([STATE, 0.0 * STATE])
    facets = body_facets(model, states, "soft")
    hip = ls.frame_pose(model, STATE, "hip")
    vertices, triangles = SOFT.surface(STATE[1:])
    assert np.allclose(facets[0, :, :3], (vertices @ hip[:3, :3].T + hip[:3, 3])[triangles], rtol=0, atol=1e-12)
    a, b, c = np.moveaxis(facets[1, :, :3], 1, 0)
    volume = np.einsum("ki,ki->", a, np.cross(b, c)) / 6.0
    assert volume == pytest.approx(DOMAIN.volume, rel=0.01)
    normals = facet_normals(facets[1])
    assert np.allclose(normals, np.cross(b - a, c - a) / np.linalg.norm(np.cross(b - a, c - a), axis=1)[:, None])


@pytest.mark.graphics
def test_a_picture_shows_several_shapes(model, tmp_path):
    """Two configurations are drawn into a file."""
    ls.plot_shapes(model, np.array([STATE, 0.0 * STATE]), path=tmp_path / "leg.png")
    assert (tmp_path / "leg.png").stat().st_size > 10_000


def test_copies_and_batches_compute_the_same(model):
    """A model that travelled, and the rows of a batch, give the same numbers."""
    v, a = np.array([0.3, -1.0, 0.5]), np.array([1.0, 2.0, -1.0])
    expected = ls.inverse_dynamics(model, STATE, v, a)
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert np.array_equal(ls.inverse_dynamics(other, STATE, v, a), expected)
    rows = ls.inverse_dynamics(model, np.array([STATE, 2 * STATE, 0 * STATE]), v, a)
    assert np.allclose(rows[0], expected, rtol=0, atol=1e-12 * np.abs(expected).max())


def test_a_body_travels_without_what_was_compiled():
    """After JAX has compiled its integrals, too."""
    body = ls.DeformableBody(SOFT.kinematics, DOMAIN, LAW, 1e3)
    before = body.integrals.values(STATE[1:], STATE[1:])
    after = pickle.loads(pickle.dumps(body)).integrals.values(STATE[1:], STATE[1:])
    assert np.array_equal(before.M, after.M)


def test_motion_by_every_kind_of_method(model):
    """Explicit, implicit and adaptive methods agree."""
    fixed = dict.fromkeys(("generalized_alpha", "hht", "newmark", "bathe"), 5e-4)
    kinds = fixed | dict.fromkeys(("bdf", "radau", "dop853"))
    ends = [ls.simulate(model, 0.02, q0=STATE, method=m, dt=dt).q[-1] for m, dt in kinds.items()]
    assert all(np.abs(end - ends[-1]).max() < 2e-3 * np.abs(ends[-1]).max() for end in ends)


REFUSED = {
    "tendon": (lambda r: r.add_tendon("t", "soft", (0, 0.01)), r"actuator 't' > path\[0\]: link: must carry a Rod"),
    "chamber": (lambda r: r.add_chamber("c", "soft", area=1e-4), r"actuator 'c' > path\[0\]: link: must carry a Rod"),
    "fluid": (
        lambda r: r.set_fluid(1e3),
        r"fluid > link 'soft': must be None, since no fluid acts on its body yet \(got 'DeformableBody'\)",
    ),
    "tail": (lambda r: r.set_fluid(1e3, links={"soft": ls.Hydrodynamics(tail=True)}), "needs a Rod"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_work_on_it_is_refused(case):
    """Named by entity, rule and value."""
    change, words = REFUSED[case]
    robot = described()
    change(robot)
    with pytest.raises(ls.ModelError, match=words):
        robot.build()


def test_left_out_of_a_fluid_it_is_accepted():
    """Said on purpose."""
    robot = described()
    robot.set_fluid(1e3, default=None)
    robot.check()
    robot.set_fluid(1e3, links={"soft": None})
    robot.check()


def test_robot_files_do_not_hold_functions(tmp_path):
    """The error names the body and its function; no file is left."""
    words = "link 'soft' > body: kinematics: a Python function made of jax.numpy cannot be saved in a robot file"
    with pytest.raises(ls.ModelError, match=words):
        ls.save_robot(described(), tmp_path / "leg.yaml")
    assert not list(tmp_path.iterdir())


def test_without_jax_it_says_what_to_install(monkeypatch):
    """Also where the kinematics is the library's."""
    body = ls.DeformableBody(
        ls.KinematicsStrain.constant_curvature(LENGTH), DOMAIN, ls.HyperelasticUniaxial(1e5, 0.4), 1e3
    )
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(ls.ModelError, match=r"link 'soft' > body: a DeformableBody needs JAX: .*lissom\[deformable\]"):
        described(body).check()


WRONG = {
    "kinematics": (3, {}, r"kinematics: must be a Kinematics or a function f\(x, θ\) \(got 3\)"),
    "n": (SOFT.kinematics, {"n": 3}, r"n: must be 2, as the kinematics has it, or be left out \(got 3\)"),
    "density": (SOFT.kinematics, {"density": lambda x: x}, "density: must be a function of a point"),
    "domain": (SOFT.kinematics, {"domain": "a mesh"}, r"domain: must be a Domain \(got 'a mesh'\)"),
    "material": (SOFT.kinematics, {"material": ls.HyperelasticNeoHookean(1e5)}, "needs a kinematics that keeps volume"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input_is_reported_at_build(case):
    """Through the link, which is named."""
    kinematics, options, words = WRONG[case]
    body = ls.DeformableBody(kinematics, **({"domain": DOMAIN, "material": LAW, "density": 1e3} | options))
    with pytest.raises(ls.ModelError, match=f"link 'soft' > body.*{words}"):
        described(body).build()
