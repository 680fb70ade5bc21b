"""Continuation of static equilibria: buckling and the bent column, follower loads, flutter, limit points, switching.

Rods are inextensible, of one Legendre basis and 96 Gauss points: the Magnus steps shift loads by a few 1e-9 (see
closed_form/test_buckling), of flutter by a few 1e-7, and order 10 and above leave less. Events are located to 1e-11.
"""

from functools import lru_cache

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq
from scipy.special import ellipe, ellipk, jv
from statics.cantilevers import beck_load, loaded

import lissom as ls

EI, LENGTH = 1.4, 1.3
EULER = np.pi**2 * EI / (4 * LENGTH**2)
MAGNUS = 3.6e-9  # late by (kh)⁴/120


@lru_cache(maxsize=1)
def column():
    """An inextensible column under its Euler load."""
    return loaded(ls.BasisLegendre(bending_y=10), force=(-EULER, 0, 0), length=LENGTH, EI=EI)


@lru_cache(maxsize=1)
def straight():
    """The straight branch of the column up to two and a half Euler loads."""
    return ls.continuation(column(), factor_range=(0.0, 2.5))


def gripped(grip, joint, inertia=(0.01, 0.01, 0.01)):
    """An arm on springs of unit stiffness with q = λ grip(q)."""
    robot = ls.Robot("gripped", gravity=(0, 0, 0))
    robot.add_link("arm", ls.RigidBody(1.0, (0.1, 0, 0), inertia), joint)
    robot.add_custom_actuator("grip", grip)
    return robot.build()


def growth(model, q, u=None):
    """Largest real part of the exponents of small motions, by linearize."""
    return np.linalg.eigvals(ls.linearize(model, q, u).A).real.max()


def test_column_buckles_at_the_euler_load():
    """The straight column loses stability at π²EI/4L², late by the error of the Magnus steps, and nowhere else."""
    branch = straight()
    (event,) = branch.events
    assert (event.kind, event.count) == ("bifurcation", 1)
    assert -1e-10 < event.factor - 1 < MAGNUS
    assert branch.factor[event.index] < event.factor < branch.factor[event.index + 1]
    np.testing.assert_array_equal(branch.unstable_count, branch.factor > event.factor)
    np.testing.assert_array_equal(branch.stable, branch.factor < event.factor)
    np.testing.assert_array_equal(branch.q, 0.0)
    assert branch.factor[0] == 0.0 and branch.factor[-1] == 2.5 and np.all(np.diff(branch.factor) > 0)


@pytest.mark.parametrize("direction", [1, -1])
def test_bent_column_is_the_elastica(direction):
    """To 139° at the tip: P/P_E = (2K/π)², x/L = 2E/K − 1, |z|/L = 2k/K with k = sin(α/2); stable; both ways."""
    (event,) = straight().events
    bent = ls.continuation(
        column(), q0=event.q, factor=event.factor, along=event.direction, direction=direction, factor_range=(0.0, 2.5)
    )
    poses = [ls.frame_pose(column(), q, "beam") for q in bent.q[1:]]
    alpha = np.array([abs(np.arctan2(g[0, 2], g[0, 0])) for g in poses])
    assert np.degrees(alpha[-1]) > 135 and np.all(np.diff(alpha) > 0)
    k = np.sin(alpha / 2)
    K, E = ellipk(k**2), ellipe(k**2)
    np.testing.assert_allclose(bent.factor[1:], (2 * K / np.pi) ** 2, rtol=2 * MAGNUS)
    np.testing.assert_allclose([g[0, 3] / LENGTH for g in poses], 2 * E / K - 1, rtol=0, atol=1e-8)
    np.testing.assert_allclose([abs(g[2, 3]) / LENGTH for g in poses], 2 * k / K, rtol=0, atol=1e-8)
    nudged = ls.integrate(column(), event.q, 1e-3 * direction * event.direction[:-1])
    side = np.sign(ls.frame_pose(column(), nudged, "beam")[2, 3])
    assert all(np.sign(g[2, 3]) == side for g in poses)
    assert bent.stable.all() and not bent.events


def test_round_column_buckles_in_every_plane_at_once():
    """Two motions begin to grow together, which the determinant does not show; the bent branch is neutral, not lost."""
    basis = ls.BasisLegendre(bending_y=8, bending_z=8, torsion=2, elongation=2, shear_y=2, shear_z=2)
    model = loaded(basis, 48, force=(-1.0, 0, 0), EA=1e6, GA=5e5)
    first, second = ls.continuation(model, factor_range=(0, 25), step=0.2).events
    assert [(e.kind, e.count) for e in (first, second)] == [("bifurcation", 2)] * 2
    assert first.factor == pytest.approx(np.pi**2 / 4, rel=1e-5)  # shortening and shear: P/EA
    assert second.factor == pytest.approx(9 * np.pi**2 / 4, rel=1e-4)
    bent = ls.continuation(
        model, q0=first.q, factor=first.factor, along=first.direction, factor_range=(0.0, 5.0), step=0.2
    )
    assert bent.stable.all() and not bent.events and bent.factor[-1] == 5.0


def test_lateral_buckling():
    """A strip under a dead force on its edge tips over at P L²/√(EI GJ) = 4.0126, of half of which J₋₁/₄ is 0.

    The strip has bent in its plane by then, stiffly: that raises the load by 1.15 EI over the stiffness in the plane.
    """
    stiff = 1e5
    robot = ls.Robot("strip", gravity=(0, 0, 0))
    section = ls.SectionGeneral(stiffness=(1, stiff, 1, 1, 1, 1), inertia=(1e-6, 1e-6, 1e-6, 1, 1, 1))
    rod = ls.Rod(1.0, section, ls.BasisLegendre(bending_y=6, bending_z=10, torsion=10), gauss_points=64)
    robot.add_link("strip", rod)
    robot.add_point_load("edge", "strip", force=(0, 0, -1.0))
    branch = ls.continuation(robot.build(), factor_range=(0.0, 8.0))
    (event,) = branch.events
    exact = 2 * brentq(lambda x: jv(-0.25, x), 1.5, 2.5, xtol=1e-14)  # pyright: ignore[reportOperatorIssue, reportArgumentType]
    assert event.kind == "bifurcation"
    assert 1.0 / stiff < event.factor / exact - 1 < 1.3 / stiff
    within, out = np.split(event.q, (11, 18))[1], np.delete(event.q, np.s_[11:18])  # torsion, bending_y, bending_z
    assert np.abs(within).max() > 1.0 / stiff
    np.testing.assert_allclose(out, 0.0, rtol=0, atol=1e-9)
    assert np.abs(event.direction[18:-1]).max() > 0.1
    np.testing.assert_allclose(event.direction[np.r_[11:18, -1]], 0.0, rtol=0, atol=1e-6)


def follower_tips(factors, force, moment):
    """Angle and place of the tip of a unit cantilever, from x towards z, under follower loads, by integration.

    In the axes of the tip the loads are known and the rod is an initial value problem from the tip to the clamp:
    ψ' = M,  M' = −(cos ψ F_z − sin ψ F_x),  (x', z') = (cos ψ, sin ψ);  the clamp's angle and place give the tip's.
    """
    tips = []
    for factor in factors:
        Fx, Fz = factor * np.array(force)

        def rate(_, y, Fx=Fx, Fz=Fz):
            return [y[1], -(np.cos(y[0]) * Fz - np.sin(y[0]) * Fx), np.cos(y[0]), np.sin(y[0])]

        start = [0.0, factor * moment, 0.0, 0.0]
        psi, _, x, z = solve_ivp(rate, (1.0, 0.0), start, method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
        c, s = np.cos(-psi), np.sin(-psi)
        tips.append([-psi, -(c * x - s * z), -(s * x + c * z)])
    return np.array(tips)


def branch_tips(model, branch):
    """The same of a branch; the angle is −∫κ_y, the first Legendre coefficient with the other sign."""
    places = np.array([ls.frame_pose(model, q, "beam")[[0, 2], 3] for q in branch.q])
    return np.column_stack([-branch.q[:, 0], places])


def test_transverse_follower_force():
    """The tip turns to 180°, where √P = 2 K(1/√2), and back to 0° at √P = 4 K(1/√2): a full turn of travel in all."""
    model = loaded(ls.BasisLegendre(bending_y=18), 192, force=(0, 0, 1.0), frame="body")
    branch = ls.continuation(model, factor_range=(0.0, 60.0), step=0.3)
    tips = branch_tips(model, branch)
    np.testing.assert_allclose(tips[::3], follower_tips(branch.factor[::3], (0, 1), 0.0), rtol=0, atol=1e-6)
    assert np.abs(np.diff(tips[:, 0])).sum() > 2 * np.pi
    for periods, angle in ((2, np.pi), (4, 0.0)):
        exact = (periods * ellipk(0.5)) ** 2
        near = branch.q[np.argmin(np.abs(branch.factor - exact))]
        there = ls.continuation(model, q0=near, factor=exact, factor_range=(0.0, 60.0), max_points=1)
        assert branch_tips(model, there)[0, 0] == pytest.approx(angle, abs=1e-6)


@lru_cache(maxsize=1)
def flutter_of_a_bent_rod(basis):
    """The only event of a rod under a transverse follower force."""
    model = loaded(basis, force=(0, 0, 1.0), frame="body")
    (event,) = ls.continuation(model, factor_range=(0.0, 42.0), step=0.3).events
    return event


@pytest.mark.parametrize("by, growing", [(1 - 1e-6, 0), (1 + 1e-6, 2)])
def test_flutter_of_a_bent_rod(by, growing):
    """The bent rod under a transverse follower force flutters at 39.23 EI/L²; linearize sees it begin within 1e-6."""
    basis = ls.BasisLegendre(bending_y=14)
    event = flutter_of_a_bent_rod(basis)
    assert (event.kind, event.count) == ("flutter", 2)
    model = loaded(basis, force=(0, 0, by * event.factor), frame="body")
    s = np.linalg.eigvals(ls.linearize(model, ls.solve_statics(model, q0=event.q, stable=False).q).A)
    assert np.sum(s.real > 1e-4) == growing


def test_follower_force_and_moment_wind_the_rod_up():
    """A force and a moment that turn with the tip turn it through more than two full turns."""
    model = loaded(ls.BasisLegendre(bending_y=16), force=(0, 0, 4.0), moment=(0, -14.0, 0), frame="body")
    branch = ls.continuation(model, step=0.3)
    tips = branch_tips(model, branch)
    np.testing.assert_allclose(tips[::3], follower_tips(branch.factor[::3], (0, 4.0), 14.0), rtol=0, atol=1e-6)
    assert tips[-1, 0] > 4 * np.pi and branch.factor[-1] == 1.0


def test_beck_column_flutters():
    """Under a tangential force flutter begins at 20.05 EI/L², though K stays regular; linearize agrees on both sides.

    At the load two frequencies meet and their difference opens with its root: 1e-7 of it beyond shows as 1e-4.
    """
    basis = ls.BasisLegendre(bending_y=8)
    model = loaded(basis, force=(-1.0, 0, 0), frame="body")
    branch = ls.continuation(model, factor_range=(0.0, 40.0), step=0.2)
    (event,) = branch.events
    assert (event.kind, event.count) == ("flutter", 2)
    assert beck_load() == pytest.approx(20.05, abs=0.005)
    assert event.factor == pytest.approx(beck_load(), rel=5e-7)
    np.testing.assert_array_equal(branch.unstable_count, 2 * (branch.factor > event.factor))
    before, after = (
        growth(loaded(basis, force=(-event.factor * by, 0, 0), frame="body"), event.q) for by in (1 - 1e-7, 1 + 1e-7)
    )
    assert before < 1e-7 and after > 1e-4


def test_damping_brings_flutter_forward():
    """A little internal damping halves Beck's load (Ziegler's paradox), to 10.94; linearize changes sign just there."""
    robot = ls.Robot("damped", gravity=(0, 0, 0))
    section = ls.SectionGeneral(stiffness=np.ones(6), inertia=(0, 0, 0, 1, 1, 1), damping=1e-3 * np.ones(6))
    robot.add_link("beam", ls.Rod(1.0, section, ls.BasisLegendre(bending_y=8), gauss_points=48))

    def at(load):
        robot.loads.clear()
        robot.add_point_load("tip", "beam", force=(-load, 0, 0), frame="body")
        return robot.build()

    (event,) = ls.continuation(at(1.0), factor_range=(0.0, 15.0), step=0.2).events
    assert event.kind == "flutter" and event.factor == pytest.approx(10.94, abs=0.01)
    assert growth(at(event.factor * (1 - 1e-7)), event.q) < 0 < growth(at(event.factor * (1 + 1e-7)), event.q)


def test_limit_point_in_closed_form():
    """q = λ (1 + q²) turns back at λ = 1/2, q = 1, and goes on unstable; at -1 it runs the other way to λ = -1/2."""
    model = gripped(lambda q: [1 + q[0] ** 2], ls.JointRevolute((0, 1, 0), stiffness=1.0))
    for direction in (1, -1):
        branch = ls.continuation(model, u=[1.0], factor_range=(-1.0, 1.0), direction=direction, max_points=40)
        (event,) = branch.events
        assert event.kind == "limit" and event.factor == pytest.approx(0.5 * direction, rel=1e-12)
        assert event.q[0] == pytest.approx(direction, abs=1e-9)
        np.testing.assert_allclose(branch.factor, branch.q[:, 0] / (1 + branch.q[:, 0] ** 2), rtol=0, atol=1e-11)
        np.testing.assert_array_equal(branch.stable, np.abs(branch.q[:, 0]) < 1)
        assert len(branch.factor) == 40 and np.abs(branch.q[-1, 0]) > 2


def test_inverted_pendulum_snaps():
    """k (θ − θ₀) = λ m g l sin θ: on the far side the branch turns back where tan θ = θ − θ₀, to full accuracy."""
    rest, weight = 0.5, 1.0 * 9.81 * 0.2
    robot = ls.Robot("pendulum")
    robot.add_link("rod", ls.RigidBody(1.0, (0, 0, 0.2)), ls.JointRevolute((0, 1, 0), stiffness=weight, rest=rest))
    model = robot.build()
    branch = ls.continuation(model, q0=[-2.5], factor=5.0, factor_range=(0.0, 5.0), direction=-1)
    (event,) = branch.events
    theta = np.float64(brentq(lambda x: np.tan(x) - (x - rest), -1.3, -0.5, xtol=1e-14))  # pyright: ignore[reportArgumentType]
    assert event.kind == "limit" and event.q[0] == pytest.approx(theta, abs=1e-9)
    assert event.factor == pytest.approx((theta - rest) / np.sin(theta), rel=1e-12)
    assert branch.factor[0] == branch.factor[-1] == 5.0
    np.testing.assert_allclose(branch.factor, (branch.q[:, 0] - rest) / np.sin(branch.q[:, 0]), rtol=1e-10)
    np.testing.assert_array_equal(branch.stable, branch.q[:, 0] < theta)


@pytest.mark.parametrize("direction", [1, -1])
def test_switching_where_branches_cross(direction):
    """q = λ (q + q²/2): the branch q = 2 (1 − λ)/λ leaves the trivial one at λ = 1 with dq/dλ = −2, and is followed."""
    model = gripped(lambda q: [q[0] + 0.5 * q[0] ** 2], ls.JointRevolute((0, 1, 0), stiffness=1.0))
    (event,) = ls.continuation(model, u=[1.0], factor_range=(0.0, 2.0)).events
    assert event.kind == "bifurcation" and event.factor == pytest.approx(1.0, rel=1e-10)
    assert event.direction[0] / event.direction[1] == pytest.approx(-2.0, rel=1e-9)
    other = ls.continuation(
        model,
        u=[1.0],
        q0=event.q,
        factor=event.factor,
        along=event.direction,
        direction=direction,
        factor_range=(0.5, 2.0),
    )
    np.testing.assert_allclose(other.q[:, 0], 2 * (1 - other.factor) / other.factor, rtol=0, atol=1e-9)
    assert other.factor[-1] in (0.5, 2.0)
    np.testing.assert_array_equal(other.stable, np.full(len(other.q), other.factor[-1] == 2.0))


def test_bifurcation_from_a_curved_branch():
    """x = λ (1 + x²), y = λ y (1/2 + 6x/5 + 3y/10): past the limit point at λ = 1/2, y branches off where
    λ (1/2 + 6x/5) = 1; K is not symmetric."""

    def grip(q):
        return [1 + q[0] ** 2, q[1] * (0.5 + 1.2 * q[0] + 0.3 * q[1])]

    model = gripped(grip, ls.JointUniversal((1, 0, 0), (0, 1, 0), stiffness=1.0))
    limit, crossing = ls.continuation(model, u=[1.0], factor_range=(0.0, 2.0), max_points=25).events
    assert (limit.kind, crossing.kind) == ("limit", "bifurcation")
    x = (-0.5 + np.sqrt(0.25 + 0.8)) / 0.4
    assert limit.factor == pytest.approx(0.5, rel=1e-10)
    np.testing.assert_allclose(crossing.q, [x, 0.0], rtol=0, atol=1e-8)
    assert crossing.factor == pytest.approx(x / (1 + x**2), rel=1e-9)
    other = ls.continuation(
        model,
        u=[1.0],
        q0=crossing.q,
        factor=crossing.factor,
        along=crossing.direction,
        factor_range=(0, 2),
        max_points=10,
    )
    x, y = other.q.T
    np.testing.assert_allclose(x, other.factor * (1 + x**2), rtol=0, atol=1e-10)
    np.testing.assert_allclose(other.factor[1:] * (0.5 + 1.2 * x + 0.3 * y)[1:], 1.0, rtol=0, atol=1e-9)
    assert np.all(np.abs(y[1:]) > 0.01)


def test_column_on_a_joint_that_is_held():
    """At time 1 a joint has turned the column upright: it buckles there at its Euler load, with the joint held where
    solve_statics has it, whatever q0 and `along` say of that."""
    robot = ls.Robot("turned", gravity=(0, 0, 0))
    rod = ls.Rod(LENGTH, ls.SectionGeneral(stiffness=EI * np.ones(6), inertia=(0, 0, 0, 1, 1, 1)),
                 ls.BasisLegendre(bending_y=10), gauss_points=96)  # fmt: skip
    robot.add_link("beam", rod, joint=ls.JointRevolute((0, 1, 0)))
    robot.add_point_load("tip", "beam", force=(0, 0, -EULER))
    robot.add_joint_motion("turn", "beam", position=lambda t: -0.5 * np.pi * t)
    model = robot.build()
    branch = ls.continuation(model, factor_range=(0.0, 2.5), t=1.0)
    (event,) = branch.events
    assert (event.kind, event.count) == ("bifurcation", 1) and abs(event.direction[0]) < 1e-14
    assert -1e-10 < event.factor - 1 < MAGNUS
    np.testing.assert_array_equal(branch.q[:, 0], -0.5 * np.pi)
    q0, along = event.q + 0.3 * np.eye(12)[0], event.direction + 0.1 * np.eye(13)[0]
    bent = ls.continuation(model, q0=q0, factor=event.factor, along=along, factor_range=(0.0, 2.5), t=1.0)
    robot.loads.clear()
    robot.add_point_load("tip", "beam", force=(0, 0, -2.5 * EULER))
    found = ls.solve_statics(robot.build(), q0=bent.q[-1], t=1.0, v=np.zeros(model.nv)).q
    np.testing.assert_allclose(bent.q[-1], found, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(bent.q[:, 0], -0.5 * np.pi)
    k = np.sin(0.5 * LENGTH * bent.q[-1, 1])
    assert bent.stable.all() and (2 * ellipk(k**2) / np.pi) ** 2 == pytest.approx(2.5, rel=2 * MAGNUS)


def test_spherical_and_free_joints():
    """On groups quaternions keep unit length, and the end of the branch is where solve_statics stays."""
    robot = ls.Robot("sprung")
    robot.add_link("body", ls.RigidBody(1.0, (0.1, 0.0, 0.0), (2e-3, 3e-3, 4e-3)), ls.JointFree(stiffness=20.0))
    robot.add_link("head", ls.RigidBody(0.5, (0.0, 0.2, 0.0), (2e-3, 1e-3, 2e-3)), ls.JointSpherical(stiffness=4.0),
                   parent="body")  # fmt: skip
    model = robot.build()
    branch = ls.continuation(model)
    for at in (0, 7):
        np.testing.assert_allclose(np.linalg.norm(branch.q[:, at : at + 4], axis=1), 1.0, rtol=0, atol=1e-14)
    assert branch.factor[-1] == 1.0 and branch.stable.all()
    gap = ls.difference(model, branch.q[-1], ls.solve_statics(model, q0=branch.q[-1]).q)
    assert np.abs(gap).max() < 1e-9


def test_no_equilibrium_to_start_from():
    """Where there is none at the first factor, or `along` is given off the curve, the error says so."""
    model = gripped(lambda q: [1 + q[0] ** 2], ls.JointRevolute((0, 1, 0), stiffness=1.0))
    with pytest.raises(ls.ConvergenceError, match=r"no equilibrium next to q0 at the factor 0\.6") as caught:
        ls.continuation(model, u=[1.0], factor_range=(0.6, 1.0))
    assert isinstance(caught.value.partial, ls.Branch)
    with pytest.raises(ls.ConvergenceError, match=r"q0 is no equilibrium at the factor 0\.3"):
        ls.continuation(model, u=[1.0], q0=[2.0], factor=0.3, along=[1.0, 0.0])


def test_a_floating_robot():
    """A free body falls as soon as there is gravity, and the error says so; without gravity it stays where it is."""
    for gravity in ((0, 0, -9.81), (0, 0, 0)):
        robot = ls.Robot("floating", gravity=gravity)
        robot.add_link("body", ls.RigidBody.box(0.1, 0.1, 0.1, density=100.0), ls.JointFree())
        if any(gravity):
            with pytest.raises(ls.ConvergenceError, match="link 'body' floats freely; hold it"):
                ls.continuation(robot.build())
        else:
            branch = ls.continuation(robot.build())
            assert branch.stable.all() and branch.factor[-1] == 1.0
            np.testing.assert_array_equal(branch.q, np.tile([1.0, 0, 0, 0, 0, 0, 0], (len(branch.q), 1)))


def test_a_branch_that_ends():
    """A rod wound up until one of its intervals turns by 2π ends there: the error carries the equilibria found, κ =
    M/EI."""
    model = loaded(ls.BasisLegendre(bending_y=1), 6, moment=(0, 60.0, 0), frame="body")
    with pytest.raises(ls.ConvergenceError, match="no next point at the factor 0") as caught:
        ls.continuation(model, step=2.0)
    found = caught.value.partial
    assert len(found.factor) > 10 and found.factor[-1] < 1.0
    np.testing.assert_allclose(found.q[:, 0], 60.0 * found.factor, rtol=1e-9)


def test_stability_needs_masses_where_loads_are_not_conservative():
    """Two coordinates without mass under a grip whose derivative is not symmetric: no mass matrix, no exponents."""
    robot = ls.Robot("massless", gravity=(0, 0, 0))
    robot.add_link("arm", None, ls.JointUniversal((1, 0, 0), (0, 1, 0), stiffness=1.0))
    robot.add_custom_actuator("grip", lambda q: [1.0 - q[1], q[0]])
    with pytest.raises(ls.ModelError, match="needs a positive definite mass matrix"):
        ls.continuation(robot.build(), u=[1.0])


@pytest.mark.parametrize(
    "bad, error, words",
    [
        ({"factor_range": (1.0, 0.0)}, ls.ModelError, "factor_range: must rise"),
        ({"factor": 2.0}, ls.ModelError, "factor: must lie in factor_range"),
        ({"direction": 0}, ls.ModelError, "direction: must be 1 or -1"),
        ({"step": 0.0}, ls.ModelError, "step: must be > 0"),
        ({"max_points": 0}, ls.ModelError, "max_points: must be an integer >= 1"),
        ({"along": [1.0]}, ls.ModelError, "along: must be 12 finite numbers"),
        ({"along": np.zeros(12)}, ls.ModelError, "along: must not be zero"),
        ({"q0": np.zeros((2, 11))}, ls.ShapeError, r"q0: expected shape \(11,\)"),
        ({"q0": np.zeros(3)}, ls.ShapeError, "q0: "),
        ({"u": [1.0]}, ls.ShapeError, "u: "),
    ],
)
def test_wrong_arguments(bad, error, words):
    """Each wrong argument is refused by name."""
    with pytest.raises(error, match=words):
        ls.continuation(column(), **bad)
