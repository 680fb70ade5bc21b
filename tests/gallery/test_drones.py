"""The example of two drones that carry a payload on soft rods (Boyer 2023, example 1)."""

import numpy as np
import pytest
from gallery.examples import example
from scipy.spatial.transform import Rotation

import lissom as ls


@pytest.fixture(scope="module")
def drones():
    """The example as a module."""
    return example("drones")


@pytest.fixture(scope="module")
def model(drones):
    """Its robot."""
    return drones.robot().build()


def state(model, seed=0):
    """Turned, bent, twisted and fast."""
    rng = np.random.default_rng(seed)
    q, v = rng.uniform(-1, 1, model.nq), rng.uniform(-1, 1, model.nv)
    q[:4] = np.roll(Rotation.random(random_state=rng).as_quat(), 1)
    return q, v


def test_the_flight_as_a_script(drones, tmp_path):
    """Purpose: the numbers of the first two seconds, and the picture.

    Momentum is that of the wrenches, as well as CVODE holds 1e-8 and as steps of 10 ms allow; errors of the steps fall
    as their square; three to five Newton iterations a step, three in the paper; nothing leaves the plane.
    """
    numbers = drones.main(tmp_path, 2.0)
    assert numbers["momentum against impulse, CVODE [-]"] < 2e-5
    assert numbers["momentum against impulse, Newmark [-]"] < 3e-3
    assert numbers["integral of the errors, CVODE against rows [-]"] < 2e-5
    assert 3.5 < numbers["error of the step of 10 ms [m]"] / numbers["error of the step of 5 ms [m]"] < 4.5
    assert numbers["error of the step of 10 ms [m]"] < 5e-4
    assert 3 < numbers["Newton iterations per step"] < 5
    assert numbers["out of the plane [m]"] < 1e-12
    assert 0.4 < numbers["drone 0 goes along z [m]"] < 0.7 and 1.0 < numbers["drone 6 goes along z [m]"] < 1.3
    picture = (tmp_path / "drones.png").read_bytes()
    assert picture[:8] == b"\x89PNG\r\n\x1a\n" and len(picture) > 10_000


def test_the_robot_is_that_of_the_paper(drones, model):
    """Purpose: 6 coordinates of the free drone, 9 of each rod; EI and the mass of the rods; 12 inputs."""
    assert (model.nv, model.nu, len(model.rods)) == (24, 12, 2)
    rod = drones.robot().links["rod 2"].body
    constitution = rod.section.constitution(0.5, rod.material, "rod")
    assert constitution.stiffness[1, 1] == pytest.approx(0.25e6 * np.pi * 0.035**4 / 4)
    np.testing.assert_allclose(model.links.mass, [2.0, 950 * np.pi * 0.035**2, 1.0, 950 * np.pi * 0.035**2, 2.0])


def test_the_error_is_equation_69(drones, model):
    """Purpose: e = Ad(g⁻¹ g^d) η^d − η with the desired pose spelled out; u = k_P e + k_I z."""
    control = drones.controller(model)
    (q, v), t, z = state(model), 1.3, np.linspace(-1, 1, 12)
    expected = []
    for name, w in (("drone 0", np.pi), ("drone 6", np.pi / 2)):
        g_d, eta_d = np.eye(4), np.array([0, 0, 0, 0, 0, np.sin(w * t)])
        g_d[2, 3] = (1 - np.cos(w * t)) / w
        g = np.linalg.inv(ls.frame_pose(model, q, name)) @ g_d
        expected.append(ls.lie.se3_Ad(g) @ eta_d - ls.frame_twist(model, q, v, name))
    expected = np.concatenate(expected)
    np.testing.assert_allclose(control.rate(t, q, v, z), expected, atol=1e-14)
    np.testing.assert_allclose(control.output(t, q, v, z), 20.0 * expected + 2.5 * z, atol=1e-12)


def test_momentum(drones, model):
    """Purpose: the momentum that the mass matrix gives is the sum over drones, payload and the points of the rods.

    A rod's Gauss rule is exact for its uniform mass at the nodes that the model has, which are taken here.
    """
    q, v = state(model, 1)
    total = np.zeros(6)
    poses = ls.forward_kinematics(model, q)
    for k in range(model.n_dynamic):
        link = model.links.names[model.nodes.link[k]]
        s = float(model.nodes.s[k]) if link in model.rods else 1.0
        if not model.nodes.inertia[k].any():
            continue
        h = model.nodes.inertia[k] @ ls.frame_twist(model, q, v, link, s)
        R, p = poses[k, :3, :3], poses[k, :3, 3]
        total += np.concatenate([R @ h[:3] + np.cross(p, R @ h[3:]), R @ h[3:]])
    found = drones.momentum(model, q[None], v[None])[0]
    np.testing.assert_allclose(found, total, atol=1e-12 * np.abs(total).max())


def test_the_rate_of_momentum_is_the_sum_of_the_wrenches(drones, model):
    """Purpose: at a state far from any plane, by central differences along the motion, for all twelve inputs."""
    q, v = state(model, 2)
    u = np.random.default_rng(3).normal(size=12)
    a = ls.forward_dynamics(model, q, v, u)
    h = 1e-5
    ends = []
    for t in (-h, h):
        moved = ls.integrate(model, q, t * v + 0.5 * t * t * a)
        ends.append(drones.momentum(model, moved[None], (v + t * a)[None])[0])
    wrench = sum(drones.in_world(model, q[None], name, u[None, 6 * k : 6 * k + 6])[0]
                 for k, name in enumerate(("drone 0", "drone 6")))  # fmt: skip
    np.testing.assert_allclose((ends[1] - ends[0]) / (2 * h), wrench, atol=1e-6 * np.abs(a).max())
