"""Deformable bodies: their tips, surfaces, refused arguments and their messages."""

import numpy as np
import pytest
from bodies.kinematics_makers import KINDS, RADIUS, L, composed

from lissom.bodies.body import DeformableBody
from lissom.bodies.domains import DomainCylinder
from lissom.bodies.kinematics import KinematicsFunction
from lissom.bodies.materials import (
    HyperelasticCompressibleNeoHookean,
    HyperelasticFunction,
    HyperelasticNeoHookean,
    HyperelasticSaintVenantKirchhoff,
)
from lissom.errors import ModelError

jax = pytest.importorskip("jax")
jnp = jax.numpy
DOMAIN = DomainCylinder(L, RADIUS, 3)
LAW = HyperelasticCompressibleNeoHookean(1e5, 0.3)
AREA = ("tip", "tip_y", "tip_z")


def body(kinematics, **options):
    """A body with defaults for all fields that are not under test."""
    return DeformableBody(kinematics, **({"domain": DOMAIN, "material": LAW, "density": 1e3} | options))


def test_tip_of_three_points_and_of_one():
    """Three points on a rigid section, and the frame of the material, give the pose of the strain's line at the tip."""
    kinematics, q = KINDS["spatial"][0], np.array([3.0, -4.0, 0.2])
    three, one = body(kinematics, tip=AREA), body(kinematics, tip="tip")
    three.check("arm")
    one.check("arm")
    R = np.eye(3)
    expected = three.tip_pose.motion(q)[0]
    np.testing.assert_allclose(one.tip_pose.motion(q)[0], expected, atol=1e-14)
    np.testing.assert_allclose(expected[:3, 3], three.moved(np.array([[L, 0, 0]]), q)[0], atol=1e-15)
    np.testing.assert_allclose(three.tip_pose.motion(np.zeros(3))[0][:3, :3], R, atol=1e-15)
    rim = three.moved(np.array([[L, 0.0, RADIUS]]), q)[0]
    np.testing.assert_allclose(expected[:3, 3] + RADIUS * expected[:3, 2], rim, atol=1e-15)
    assert body(kinematics).tip_pose is None


def test_surface_keeps_the_volume_that_the_kinematics_keeps():
    """The deformed surface of a body that keeps volume encloses its initial volume, up to the error of its facets."""
    kinematics, size = composed(["stretch", "twist", "bending_z"])
    one = body(kinematics, material=HyperelasticNeoHookean(1e5))
    volumes = []
    for q in (np.zeros(kinematics.n), 0.5 * size):
        x, triangles = one.surface(q)
        a, b, c = (x[triangles[:, k]] for k in range(3))
        volumes.append(np.einsum("ki,ki->", a, np.cross(b, c)) / 6)
    assert volumes[1] == pytest.approx(volumes[0], rel=2e-3)


def test_forces_vanish_in_the_reference_shape():
    """The incompressible law of a motion that keeps volume, and others of any, have no force at θ = 0."""
    for kinematics, law in ((composed(["stretch", "shear_y", "bending_y"])[0], HyperelasticNeoHookean(1e5, 0.1)),
                            (KINDS["spatial"][0], LAW)):  # fmt: skip
        zero = np.zeros(kinematics.n)
        one = body(kinematics, material=law)
        one.check("arm")
        K = one.integrals.derivatives(zero, zero, zero).K
        assert np.linalg.eigvalsh(K).min() > 0
        assert np.abs(one.integrals.values(zero, zero).g).max() < 1e-12 * np.abs(K).max()


def test_rigid_motion_of_the_material_costs_nothing():
    """A motion that turns all points has no energy, no force and no damping at any angle, but for linear elasticity."""

    def turned(x, q):
        c, s = jnp.cos(q[0]), jnp.sin(q[0])
        return jnp.stack([c * x[0] - s * x[1], s * x[0] + c * x[1], x[2]])

    for law in (LAW, HyperelasticSaintVenantKirchhoff(1e5, 0.3), HyperelasticNeoHookean(1e5)):
        damped = type(law)(*[getattr(law, name) for name in ("C", "young", "poisson") if hasattr(law, name)], 0.1)
        motion = KinematicsFunction(turned, 1, keeps_volume=True)
        found = body(motion, material=damped).integrals.values(np.array([1.3]), np.array([2.0]))
        scale = 1e5 * DOMAIN.volume
        assert abs(found.U) < 1e-14 * scale and abs(found.g[0]) < 1e-13 * scale and abs(found.d[0]) < 1e-13 * scale


def wrong_map(text):
    """A map that breaks one rule."""
    maps = {
        "shifted": lambda x, q: x + 1e-3 * jnp.cos(q[0]) + q[0],
        "nan": lambda x, q: x + jnp.stack([jnp.sqrt(q[0]), 0.0 * q[0], 0.0 * q[0]]),
        "shape": lambda x, q: x[:2] + q[0],
        "numpy": lambda x, q: np.array([float(x[0]), 0.0, 0.0]),
        "folded": lambda x, q: jnp.stack([x[0], x[1] + q[0] * jnp.sin(x[1] * 5000), x[2]]),
        "idle": lambda x, q: x + 0.0 * q[0],
    }
    return body(maps[text], n=1)


BAD = {
    "shifted": (wrong_map, r"arm > kinematics: f\(x, 0\) must be x = \[.*\(got \["),
    "nan": (wrong_map, r"arm > kinematics: coordinate 0 must move some point .* finite derivative"),
    "shape": (wrong_map, r"arm > kinematics: function: must return shape \(3,\) \(got \(2,\)\)"),
    "numpy": (wrong_map, r"arm > kinematics: function: must be a function of \(3,\) and \(1,\) made of jax.numpy"),
    "folded": (wrong_map, r"arm > kinematics: folds: det ∂f/∂x must be > 0 at x = .*\(got -"),
    "idle": (wrong_map, r"arm > kinematics: coordinate 0 must move some point"),
    "material": (
        lambda _: body(KINDS["spatial"][0], material=HyperelasticNeoHookean(1e5)),
        r"arm > material: HyperelasticNeoHookean is incompressible .* keeps volume \(got 'KinematicsStrain'\)",
    ),
    "claims": (
        lambda _: body(KinematicsFunction(lambda x, q: x * (1 + q[0]), 1, keeps_volume=True)),
        r"arm > kinematics: must keep volume, as it says: det ∂f/∂x must be 1",
    ),
    "soft tip": (
        lambda _: body(composed(["stretch"])[0], tip=AREA),
        r"arm: tip: its points must move as a rigid area; lengths and angles change .* in metres by",
    ),
    "skew tip": (
        lambda _: body(KINDS["spatial"][0], tip=("tip", "tip_y", "center")),
        r"arm: tip: its points must move as a rigid area",
    ),
    "oblique tip": (
        lambda _: body(KINDS["spatial"][0], tip=("tip", "tip_y", (L, 0.01, 0.01))),
        r"arm: tip: the arms .* right angles; their cosine must be 0 \(got 0.7",
    ),
    "unknown place": (
        lambda _: body(KINDS["spatial"][0], tip="end"),
        r"arm: tip: must name one of the places \['base', 'center', 'tip', 'tip_y', 'tip_z'\] \(got 'end'\)",
    ),
    "pose": (
        lambda _: body(KINDS["spatial"][0], tip=lambda q: 2.0 * jnp.eye(4)),
        r"arm: tip: must be a rigid transform",
    ),
    "density": (lambda _: body(KINDS["spatial"][0], density=-1.0), r"arm: density: must be > 0 \(got -1.0\)"),
    "density in places": (
        lambda _: body(KINDS["spatial"][0], density=lambda x: x[0] - 0.1),
        r"arm: density: must be > 0 everywhere \(got -",
    ),
    "stress at rest": (
        lambda _: body(KINDS["spatial"][0], material=HyperelasticFunction(lambda F: (F * F).sum() - 3.0)),
        r"arm > material: function: must have no stress at F = 1",
    ),
}


@pytest.mark.parametrize("kind", BAD)
def test_what_is_wrong_is_named(kind):
    """The error names the body, the rule and the value."""
    make, text = BAD[kind]
    with pytest.raises(ModelError, match=text):
        make(kind).check("arm")


def test_a_users_law_is_the_librarys():
    """A law of Saint Venant and Kirchhoff written as a function has its energy, forces and damping."""
    law = HyperelasticSaintVenantKirchhoff(1e5, 0.3, 0.1)
    user = HyperelasticFunction(law.energy_density, 0.1)
    user.check("here")
    np.testing.assert_allclose(user.moduli(), law.moduli(), rtol=1e-12, atol=1e-6)
    q, v = np.array([2.0, 1.0, 0.1]), np.ones(3)
    kinds = [body(KINDS["spatial"][0], material=m).integrals.values(q, v) for m in (law, user)]
    for name in ("U", "g", "d"):
        np.testing.assert_allclose(getattr(kinds[1], name), getattr(kinds[0], name), rtol=1e-11)
