"""Ellipsoids touch planes at their lowest point: heights, rocking, rolling, and derivatives, against closed forms."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import lissom as ls

HALF = np.array([0.05, 0.04, 0.03])  # half-axes [m]
G = 9.81


def quaternion(turn):
    """Of a Rotation, (w, x, y, z)."""
    return np.roll(turn.as_quat(), 1)


def ellipsoid(half=HALF, *, pose=None, normal=(0, 0, 1), density=1000.0, carried=False, **law):
    """A free ellipsoid over a plane through the origin, which is that of the world or moves with a tray."""
    robot = ls.Robot("ellipsoid")
    if carried:
        robot.add_link("tray", ls.RigidBody.box(0.2, 0.2, 0.01, density=500.0), ls.JointFree())
    a, b, c = np.square(half)
    mass = density * 4.0 / 3.0 * np.pi * np.prod(half)
    inertia = mass / 5.0 * np.array([b + c, a + c, a + b])
    shape = ls.PlacedShape(ls.ShapeEllipsoid(*half), np.eye(4) if pose is None else pose)
    g = np.eye(4) if pose is None else np.asarray(pose)
    body = ls.RigidBody(mass, g[:3, 3], (g[:3, :3] @ np.diag(inertia) @ g[:3, :3].T).tolist(), shapes=(shape,))
    robot.add_link("stone", body, ls.JointFree())
    robot.add_contact(
        "floor",
        "stone",
        ls.ShapePlane(normal),
        on="tray" if carried else None,
        placement=np.eye(4),
        **({"exponent": 1.0} | law),
    )
    return robot.build()


def test_lowest_points_are_exact():
    """At any attitude, over planes of any direction, with the shape anywhere in its body: the depth is the height
    √(nᵀA²n) of the centre less the distance of the centre, and the point of contact is the lowest one, −A²n/|An| from
    the centre, raised by nothing but the depth."""
    rng = np.random.default_rng(0)
    for n in (np.array([0, 0, 1.0]), np.array([0.3, -0.5, 0.8])):
        n = n / np.linalg.norm(n)
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = Rotation.random(random_state=1).as_matrix(), (0.02, -0.01, 0.03)
        model = ellipsoid(pose=pose, normal=n, stiffness=1e4)
        assert len(model.contacts.pair) == 1
        for _ in range(20):
            turn = Rotation.random(random_state=rng.integers(10**6))
            R = turn.as_matrix() @ pose[:3, :3]
            m = R.T @ n
            height, depth = np.linalg.norm(HALF * m), rng.uniform(1e-6, 1e-3)
            centre = (height - depth) * n + np.cross(n, rng.normal(size=3))
            q = np.concatenate([quaternion(turn), centre - turn.as_matrix() @ pose[:3, 3]])
            found = ls.contact_forces(model, q)
            np.testing.assert_allclose(found.depth, [depth], rtol=1e-9)
            np.testing.assert_allclose(found.force, [1e4 * depth * n], rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(found.point, [centre - R @ (HALF**2 * m) / height], rtol=0, atol=1e-14)


@pytest.mark.parametrize("carried", [False, True])
@pytest.mark.parametrize("law", [{}, {"stick_stiffness": 2e3, "stick_damping": 1e-2}], ids=["smooth", "sticking"])
def test_derivatives_against_differences(law, carried):
    """Derivatives of the force by pose and velocity agree with central differences, for ellipsoids that roll, spin and
    slide on planes at rest and on moving ones, with sticking anchors from an earlier pose and without."""
    model = ellipsoid(carried=carried, stiffness=1e4, exponent=1.5, damping=2.0, friction=0.4, **law)
    rng = np.random.default_rng(3)
    for k in range(6):
        q, v = ls.start_configuration(model), rng.normal(size=model.nv)
        turn = Rotation.random(random_state=k)
        n, at = np.array([0, 0, 1.0]), np.zeros(3)
        if carried:
            tray = Rotation.random(random_state=50 + k)
            n, at = tray.as_matrix()[:, 2], rng.normal(size=3)
            q[:7] = np.concatenate([quaternion(tray), at])
        height = np.linalg.norm(HALF * (turn.as_matrix().T @ n))
        q[-7:] = np.concatenate([quaternion(turn), at + (height - 4e-4) * n])
        now = model
        if "stick_stiffness" in law:
            before = ls.integrate(model, q, 1e-3 * rng.normal(size=model.nv))
            now = model.anchored(ls.contact_anchors(model, before, v))
            if np.isnan(now.contacts.anchors).all():
                now = model.anchored(ls.contact_anchors(model, q, v))
                q = ls.integrate(model, q, 2e-5 * rng.normal(size=model.nv))
        a = rng.normal(size=model.nv)
        by_q, by_v, _ = ls.inverse_dynamics_derivatives(now, q, v, a)
        h = 1e-6
        for j in range(model.nv):
            d = h * np.eye(model.nv)[j]
            ends = [ls.inverse_dynamics(now, ls.integrate(now, q, s * d), v, a) for s in (1, -1)]
            np.testing.assert_allclose(by_q[:, j], (ends[0] - ends[1]) / (2 * h), rtol=2e-6, atol=2e-5)
            ends = [ls.inverse_dynamics(now, q, v + s * d, a) for s in (1, -1)]
            np.testing.assert_allclose(by_v[:, j], (ends[0] - ends[1]) / (2 * h), rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("rolls", [True, False])
def test_rocking_has_its_period(rolls):
    """Small rocking about the end of the short axis, on a floor that holds the stone or on a smooth one.

    The centre rises by (a² − c²) θ²/2c. The stone turns about the point of contact, or about its centre:
    ω² = m g (a² − c²)/c/(I + m c²) or without m c². The difference of an amplitude of 0.01 is of order 1e-4.
    """
    law = {"friction": 1.0, "stick_stiffness": 1e6, "stick_damping": 1e-4} if rolls else {"friction": 0.0}
    model = ellipsoid(stiffness=1e6, damping=0.0, **law)
    a, _, c = HALF
    mass, turning = model.links.mass[0], (a**2 + c**2) / 5.0 + (c**2 if rolls else 0.0)
    omega = np.sqrt(G * (a**2 - c**2) / c / turning)
    tilt, rest = 0.01, mass * G / 1e6
    start = np.concatenate(
        [quaternion(Rotation.from_euler("y", tilt)), [0, 0, np.hypot(a * np.sin(tilt), c * np.cos(tilt)) - rest]]
    )
    t = np.linspace(0, 4.25 * 2 * np.pi / omega, 2001)
    motion = ls.simulate(model, t[-1], start, t_eval=t, rtol=1e-7, atol=1e-10)
    angle = 2 * motion.q[:, 2]
    k = np.flatnonzero((angle[:-1] > 0) & (angle[1:] <= 0))
    crossings = t[k] + angle[k] / (angle[k] - angle[k + 1]) * (t[k + 1] - t[k])
    assert len(crossings) == 4 or len(crossings) == 5
    np.testing.assert_allclose(np.diff(crossings), 2 * np.pi / omega, rtol=1e-3)
    assert angle.min() == pytest.approx(-tilt, rel=0.02)


def test_a_spheroid_rolls_evenly():
    """A spheroid that rolls on its equator keeps its speed and its height, as no polygon does."""
    half = np.array([0.05, 0.02, 0.05])  # turns about y
    model = ellipsoid(half, stiffness=1e6, friction=1.0, stick_stiffness=1e6, stick_damping=1e-4, damping=0.0)
    rest, turns = model.links.mass[0] * G / 1e6, 12.0
    speed = turns * half[0]  # its lowest point is at rest
    motion = ls.simulate(
        model, 1.0, [1, 0, 0, 0, 0, 0, half[0] - rest], [0, turns, 0, speed, 0, 0], rtol=1e-6, atol=1e-9,
        t_eval=np.linspace(0, 1, 201),
    )  # fmt: skip
    np.testing.assert_allclose(motion.q[:, 6], half[0] - rest, rtol=0, atol=1e-8)
    np.testing.assert_allclose(motion.v[:, 1], turns, rtol=1e-5)
    assert motion.q[-1, 4] == pytest.approx(speed, rel=1e-5)


def test_energy_is_kept_without_friction():
    """A stone that tumbles over a smooth elastic floor keeps its energy and that of the contact, k δ²/2; the floor
    exerts no force along itself."""
    model = ellipsoid(stiffness=2e4, friction=0.0, damping=0.0)
    start = np.concatenate([quaternion(Rotation.from_euler("xyz", [0.7, 0.4, 0.2])), [0, 0, 0.06]])
    spin = np.array([9.0, -4.0, 6.0])
    motion = ls.simulate(model, 1.0, start, np.append(spin, [0.2, 0.1, 0.0]), rtol=1e-8, atol=1e-10)
    energy = ls.energy(model, motion.q, motion.v).total
    for k, found in enumerate(ls.contact_forces(model, motion.q)):
        energy[k] += 0.5 * 2e4 * (found.depth**2).sum()
    assert motion.statistics.deepest > 1e-4
    np.testing.assert_allclose(energy, energy[0], rtol=3e-6)
    R = ls.frame_pose(model, motion.q, "stone")[:, :3, :3]
    along = np.einsum("tij,tj->ti", R, motion.v[:, 3:])[:, :2]
    np.testing.assert_allclose(along, np.tile(along[0], (len(along), 1)), rtol=0, atol=1e-6)
