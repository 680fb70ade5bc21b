"""Controlled wrenches: each acts like a point load of the same size, in every algorithm that takes inputs."""

import numpy as np
import pytest
from robots import build, random_state, random_tree
from sampling import halved

import lissom as ls
from lissom.simulation.simulate import METHODS

OFFSET = (0.02, -0.01, 0.03)
FRAMES = ("world", "body")
every_frame = pytest.mark.parametrize("frame", FRAMES)
every_method = pytest.mark.parametrize("method", sorted(METHODS))


def places(robot):
    """Every link: inside a rod at s = 0.37, at its tip, on bodies and on frames without mass."""
    inside = [(name, 0.37) for name, link in robot.links.items() if isinstance(link.body, ls.Rod)]
    return inside + [(name, 1.0) for name in robot.links]


def twins(seed, frame):
    """A random tree with wrench inputs everywhere, their sizes, and the same tree with point loads of these sizes."""
    driven, loaded = random_tree(seed), random_tree(seed)
    size = np.random.default_rng(seed).uniform(-2, 2, (len(places(driven)), 6))
    for k, (link, s) in enumerate(places(driven)):
        driven.add_wrench_input(f"wrench {k}", link, s=s, frame=frame, position=OFFSET)
        parts = {"moment": size[k, :3], "force": size[k, 3:]}
        loaded.add_point_load(f"wrench {k}", link, s=s, **parts, frame=frame, position=OFFSET)
    return driven, size.ravel(), loaded


@pytest.mark.parametrize(("seed", "frame"), halved(range(8), FRAMES))
def test_like_point_loads(seed, frame):
    """B u of wrench inputs is the force of equal point loads, and forward dynamics answers the same, on random trees.

    Both are sums of the same terms in another order: 1e-12 of the largest for forces; the mass matrices of these trees
    have condition numbers up to 1e8, which accelerations lose at most.
    """
    driven, size, loaded = twins(seed, frame)
    model, twin = build(driven), build(loaded)
    q, v, _, u = random_state(loaded, seed)
    all_u = np.concatenate([u, size])
    free = ls.inverse_dynamics(model, q, v, np.zeros(model.nv)) - ls.actuation_matrix(model, q) @ all_u
    expected = ls.inverse_dynamics(twin, q, v, np.zeros(model.nv)) - ls.actuation_matrix(twin, q) @ u
    np.testing.assert_allclose(free, expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    M = ls.mass_matrix(model, q)
    difference = M @ (ls.forward_dynamics(model, q, v, all_u) - ls.forward_dynamics(twin, q, v, u))
    assert np.abs(difference).max() <= 1e-9 * np.abs(expected).max()


@pytest.mark.parametrize(("seed", "frame"), halved(range(4), FRAMES))
def test_derivatives(seed, frame):
    """The derivative of ID − B u along the tangent space equals fourth-order central differences below 1e-7."""
    driven, size, _ = twins(seed, frame)
    model = build(driven)
    q, _, _, u = random_state(driven, seed)
    u[-len(size) :] = size

    def residual(d):
        at, still = ls.integrate(model, q, d), np.zeros(model.nv)
        return ls.inverse_dynamics(model, at, still, still) - ls.actuation_matrix(model, at) @ u

    def slopes(h):
        return np.array([(residual(h * d) - residual(-h * d)) / (2 * h) for d in np.eye(model.nv)]).T

    numeric = (4 * slopes(1e-3) - slopes(2e-3)) / 3
    exact = ls.tangent_stiffness(model, q, u)
    assert np.abs(exact - numeric).max() <= 1e-7 * np.abs(numeric).max()
    without = ls.tangent_stiffness(model, q, np.where(np.arange(len(u)) < len(u) - len(size), u, 0.0))
    assert np.abs(exact - without).max() > 1e-2


def drone():
    """A free body of unequal moments without weight."""
    robot = ls.Robot("drone", gravity=(0, 0, 0))
    robot.add_link("hull", ls.RigidBody(1.3, (0, 0, 0), (0.02, 0.03, 0.045)), ls.JointFree())
    return robot


@every_frame
def test_derivatives_of_forward_dynamics(frame):
    """da/dq, da/dv and da/du of a free body with all six components, against central differences below 1e-7."""
    robot = drone()
    robot.add_wrench_input("all", "hull", frame=frame, position=(0.1, -0.2, 0.3))
    model = robot.build()
    q, v, _, _ = random_state(robot, 2)
    u = np.random.default_rng(1).normal(size=6)
    moves = (
        lambda d: ls.forward_dynamics(model, ls.integrate(model, q, d), v, u),
        lambda d: ls.forward_dynamics(model, q, v + d, u),
        lambda d: ls.forward_dynamics(model, q, v, u + d),
    )
    for exact, move in zip(ls.forward_dynamics_derivatives(model, q, v, u), moves, strict=True):
        numeric = np.array([(move(1e-5 * d) - move(-1e-5 * d)) / 2e-5 for d in np.eye(6)]).T
        assert np.abs(exact - numeric).max() <= 1e-7 * max(np.abs(numeric).max(), 1.0)
    A = ls.linearize(model, q, u).A
    still = ls.forward_dynamics_derivatives(model, q, 0 * v, u)[0]
    np.testing.assert_allclose(A[6:, :6], still, atol=1e-9 * np.abs(A).max())


@every_method
def test_a_world_force_gives_its_impulse(method):
    """A free body that tumbles gains F t in linear momentum and M t in angular momentum, by every method.

    Velocities are in the turning axes of the body, so that both parts have the error of the method.
    """
    robot = drone()
    robot.add_wrench_input("hand", "hull", frame="world")
    model = robot.build()
    force, moment, T = np.array([0.3, -0.5, 0.2]), np.array([0.01, 0.02, -0.015]), 1.5
    v0 = np.array([1.0, -0.4, 0.3, 0.2, 0.1, -0.3])
    step = {
        "generalized_alpha": 0.01,
        "newmark": 0.01,
        "hht": 0.01,
        "bathe": 0.01,
        "sdirk": 0.01,
        "implicit_euler": 1e-3,
    }
    step = step.get(method)
    motion = ls.simulate(model, T, v0=v0, u=[*moment, *force], method=method, dt=step, t_eval=[0.0, T], rtol=1e-9)
    momentum = []
    for q, v in zip(motion.q, motion.v):
        R = ls.frame_pose(model, q, "hull")[:3, :3]
        momentum.append(np.concatenate([R @ (np.array([0.02, 0.03, 0.045]) * v[:3]), R @ (1.3 * v[3:])]))
    gained = momentum[1] - momentum[0]
    loose = {"implicit_euler": 5e-3, "bdf": 1e-6}.get(method, 2e-4 if step else 1e-7)
    np.testing.assert_allclose(gained[3:], force * T, atol=loose * np.linalg.norm(force * T))
    np.testing.assert_allclose(gained[:3], moment * T, atol=loose * np.linalg.norm(moment * T))


@every_frame
def test_fused_steps(frame):
    """The fused kernel and the separate launches take the same steps of a rod that a moving wrench drives."""
    driven = ls.Robot("arm")
    basis = ls.BasisLegendre(torsion=1, bending_y=2, bending_z=2)
    material = ls.Material(young=1e5, density=1e3, viscosity=1e3)
    driven.add_link("arm", ls.Rod(0.4, ls.SectionCircle(0.02), basis, material))
    driven.add_wrench_input("jet", "arm", s=0.37, frame=frame, directions=np.eye(6)[:, [1, 4, 5]], position=OFFSET)
    model = driven.build()

    def u(t):
        return np.array([0.05 * np.sin(9 * t), 0.6 * np.cos(7 * t), -0.4 * t])

    options = {"method": "generalized_alpha", "dt": 0.01}
    fused = ls.simulate(model, 0.3, u=u, **options)
    apart = ls.simulate(model, 0.3, controller=lambda t, q, v: u(t), **options)
    np.testing.assert_allclose(fused.q, apart.q, atol=1e-7 * np.abs(apart.q).max())
    np.testing.assert_allclose(fused.a, apart.a, atol=1e-5 * np.abs(apart.a).max())
    assert ls.energy_balance(model, fused).residual < 0.02


@every_frame
def test_statics_and_continuation(frame):
    """A cantilever bends under a wrench input as under an equal load, at once and along a branch of equilibria."""
    rod = ls.Rod(0.5, ls.SectionCircle(0.01), ls.BasisLegendre(torsion=1, bending_y=2, bending_z=2),
                 ls.Material(young=1e6, density=1e3))  # fmt: skip
    driven, loaded = ls.Robot("driven", gravity=(0, 0, 0)), ls.Robot("loaded", gravity=(0, 0, 0))
    for robot in (driven, loaded):
        robot.add_link("arm", rod)
    force, moment = np.array([0.0, 0.02, -0.06]), np.array([0.004, 0.0, 0.002])
    driven.add_wrench_input("tip", "arm", frame=frame)
    loaded.add_point_load("tip", "arm", frame=frame, force=force, moment=moment)
    model, twin, u = driven.build(), loaded.build(), np.concatenate([moment, force])
    found, expected = ls.solve_statics(model, u, stable=False), ls.solve_statics(twin, stable=False)
    np.testing.assert_allclose(found.q, expected.q, atol=1e-9 * np.abs(expected.q).max())
    assert np.linalg.norm(ls.frame_pose(model, found.q, "arm")[:3, 3] - [0.5, 0, 0]) > 0.1
    branch, other = ls.continuation(model, u=u), ls.continuation(twin)
    np.testing.assert_allclose(branch.q[-1], other.q[-1], atol=1e-8 * np.abs(other.q[-1]).max())
    np.testing.assert_allclose(branch.q[-1], found.q, atol=1e-8 * np.abs(found.q).max())


def test_a_wrench_on_what_cannot_move():
    """A wrench on a fixed base has inputs and moves nothing; a negative one is no tendon that pushes."""
    robot = ls.Robot("fixed")
    robot.add_link("base", ls.RigidBody.box(0.1, 0.1, 0.1, density=1.0))
    robot.add_link("arm", ls.RigidBody.box(0.1, 0.1, 0.1, density=1.0), ls.JointRevolute((0, 1, 0)), parent="base")
    robot.add_wrench_input("push", "base")
    robot.add_wrench_input("turn", "arm", directions=(0, 1, 0, 0, 0, 0), frame="world")
    model = robot.build()
    assert model.nu == 7
    assert np.array_equal(ls.actuation_matrix(model, [0.3]), [[0, 0, 0, 0, 0, 0, 1]])
    bare = ls.forward_dynamics(model, [0.3], [0.0])
    assert ls.forward_dynamics(model, [0.3], [0.0], [-1.0] * 6 + [0.0]) == bare
    assert ls.forward_dynamics(model, [0.3], [0.0], [0.0] * 6 + [-1.0]) < bare


def test_inputs_are_drawn_by_their_units():
    """plot_trajectory gives moments, forces and mixed wrenches that change panels of their own."""
    robot = drone()
    robot.add_wrench_input("six", "hull")
    robot.add_wrench_input("screw", "hull", directions=(1, 0, 0, 1, 0, 0))
    model = robot.build()
    motion = ls.simulate(model, 0.01, u=lambda t: np.full(7, 0.1 + t))
    panels = [panel.get_ylabel() for panel in ls.plot_trajectory(model, motion).axes]
    assert panels == ["hull [m]", "moment [N·m]", "force [N]", "input"]
