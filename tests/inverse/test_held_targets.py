"""A platform on eight cables, and other robots whose inputs, coordinates and constraint forces are searched together.

The balance of the platform is written here by hand: the unit vectors of straight cables and their moments. The least
tensions are those of SciPy's sequential programming on these six equations.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, minimize
from scipy.spatial.transform import Rotation

import lissom as ls

SIGNS = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=float)
ANCHORS = 0.5 * np.array([1.0, 0.8, 1.2]) * SIGNS  # in the world [m]
TURNED = SIGNS * np.stack([SIGNS[:, 2], -SIGNS[:, 2], np.ones(8)], axis=1)  # cables cross, so that they resist turning
CORNERS = np.array([0.1, 0.08, 0.06]) * np.array([1, 1, -1]) * TURNED  # on the platform [m]
MATERIAL = ls.Material(young=1e6, poisson=0.5, density=1000)
STIFFNESS, MASS, GRAVITY = 2e4, 1.0, 9.81
MIDDLE = np.linalg.norm(ANCHORS - CORNERS, axis=1)  # lengths in the neutral configuration


def platform(stiffness: float | None = STIFFNESS, cables: range = range(8), joint: ls.Joint | None = None) -> ls.Model:
    robot = ls.Robot("eight cables")
    joint = ls.JointFree() if joint is None else joint
    robot.add_link("platform", ls.RigidBody(MASS, inertia=(0.003, 0.004, 0.005)), joint)
    for k in cables:
        path = [ls.PathPoint(None, ANCHORS[k]), ls.PathPoint("platform", CORNERS[k])]
        robot.add_tendon(f"cable {k}", path=path, stiffness=stiffness)
    return robot.build()


def pose(move=(0.05, 0.03, 0.08), turn=(0.02, -0.03, 0.1)) -> np.ndarray:
    g = np.eye(4)
    g[:3, :3], g[:3, 3] = Rotation.from_rotvec(turn).as_matrix(), move
    return g


def balance(g: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lengths of the cables, the wrenches of unit tensions about the middle in world axes (6, 8), and the wrench of the
    weight."""
    arms = CORNERS @ g[:3, :3].T
    pulls = ANCHORS - g[:3, 3] - arms
    lengths = np.linalg.norm(pulls, axis=1)
    along = pulls / lengths[:, None]
    return lengths, np.vstack([np.cross(arms, along).T, along.T]), np.array([0, 0, 0, 0, 0, -MASS * GRAVITY])


def least_tensions(g: np.ndarray, low: np.ndarray, high: np.ndarray, more: np.ndarray | float = 0.0) -> np.ndarray:
    """The tensions of least squares that carry the platform at g and another force on its middle, within limits."""
    _, W, weight = balance(g)
    weight = weight + np.concatenate([np.zeros(3), np.broadcast_to(more, 3)])
    begin = np.clip(np.full(8, 10.0), low, np.minimum(high, 1e6))
    found = minimize(
        lambda T: 0.5 * T @ T, begin, jac=lambda T: T, method="SLSQP", bounds=list(zip(low, high)),
        constraints=LinearConstraint(W, -weight, -weight), options={"ftol": 1e-14, "maxiter": 300},
    )  # fmt: skip
    assert np.abs(W @ found.x + weight).max() < 1e-8
    return found.x


def test_without_a_start_the_platform_is_held():
    """Purpose: from no inputs, under which all cables are slack, poses of the platform are reached to rounding, with
    the least tensions that carry it; the cables have the lengths of these tensions; statics alone stays there."""
    model, rng = platform(), np.random.default_rng(0)
    goals = np.array([pose(rng.uniform(-0.1, 0.1, 3), rng.uniform(-0.1, 0.1, 3)) for _ in range(12)])
    found = ls.inverse_kinematics(model, {"platform": goals}, by="statics")
    assert found.converged.all() and (found.reason == "").all() and found.is_stable.all()
    assert np.abs(found.residual).max() < 1e-13
    T = ls.tendon_tensions(model, found.q, found.u)
    for g, tensions, u in zip(goals, T, found.u):
        lengths, W, weight = balance(g)
        np.testing.assert_allclose(W @ tensions, -weight, atol=1e-9)
        np.testing.assert_allclose(tensions, least_tensions(g, np.zeros(8), np.full(8, np.inf)), atol=2e-5)
        taut = tensions > 0.0
        np.testing.assert_allclose(u[taut], (tensions / STIFFNESS + MIDDLE - lengths)[taut], atol=1e-12)
        assert (u <= tensions / STIFFNESS + MIDDLE - lengths + 1e-12).all()
    again = ls.solve_statics(model, u=found.u, q0=found.q)
    np.testing.assert_allclose(ls.frame_pose(model, again.q, "platform"), goals, atol=1e-10)


def test_from_a_start_with_taut_cables():
    """Purpose: the search along equilibria that stalls where cables become slack is no longer the end."""
    model = platform()
    found = ls.inverse_kinematics(model, {"platform": pose()}, by="statics", u0=np.full(8, 0.002))
    assert found.converged and np.abs(found.residual).max() < 1e-13


def test_limits_of_tensions_keep_cables_taut():
    """Purpose: tensions stay between their limits and are the least squares there; some are at each limit."""
    model, low, high = platform(), np.full(8, 5.0), np.full(8, np.inf)
    low[3] = 20.0
    free = least_tensions(pose(), low, high)
    high[5] = free[5] - 0.9
    found = ls.inverse_kinematics(model, {"platform": pose()}, by="statics", tensions=(low, high))
    T = ls.tendon_tensions(model, found.q, found.u)
    assert found.converged and found.is_stable
    np.testing.assert_allclose(T[[3, 5]], [20.0, high[5]], atol=1e-8)
    np.testing.assert_allclose(T, least_tensions(pose(), low, high), atol=2e-5)


def test_limits_of_lengths():
    """Purpose: limits of the lengths that are pulled in become limits of tensions at the pose."""
    model, goal = platform(), pose()
    lengths, _, _ = balance(goal)
    free = ls.inverse_kinematics(model, {"platform": goal}, by="statics")
    least = np.full(8, -1.0)
    least[0] = free.u[0] + 3e-4  # 6 N more than none
    found = ls.inverse_kinematics(model, {"platform": goal}, by="statics", limits=(least, 1.0))
    low = np.maximum(0.0, STIFFNESS * (least - MIDDLE + lengths))
    T = ls.tendon_tensions(model, found.q, found.u)
    assert found.converged and found.u[0] == pytest.approx(least[0], abs=1e-12) and low[0] > 5.0
    np.testing.assert_allclose(T, least_tensions(goal, low, np.full(8, np.inf)), atol=2e-5)


def test_a_leg_that_closes_a_loop():
    """Purpose: with a telescopic leg between floor and platform, whose loop has constraint forces, the tensions are the
    least that carry the platform and the leg's share of its own weight: all along the leg of its upper half, and across
    it what balances the moments of both halves about the foot."""
    robot, foot, half = ls.Robot("platform and leg"), np.array([0.0, 0.0, -0.6]), 0.6
    robot.add_link("platform", ls.RigidBody(MASS, inertia=(0.003, 0.004, 0.005)), ls.JointFree())
    for k in range(8):
        path = [ls.PathPoint(None, ANCHORS[k]), ls.PathPoint("platform", CORNERS[k])]
        robot.add_tendon(f"cable {k}", path=path, stiffness=STIFFNESS)
    g, end = np.eye(4), np.eye(4)
    g[:3, 3], end[2, 3] = foot, half
    bar = ls.RigidBody(0.1, com=(0, 0, 0.15), inertia=(1e-3, 1e-3, 1e-4))
    robot.add_link("lower", bar, ls.JointUniversal((1, 0, 0), (0, 1, 0)), placement=g)
    robot.add_link("upper", bar, ls.JointPrismatic((0, 0, 1)), "lower")
    robot.add_loop("top", "upper", "platform", placement_a=end, joint=ls.JointSpherical())
    model, goal = robot.build(), pose()
    found = ls.inverse_kinematics(model, {"platform": goal}, by="statics", tensions=(5.0, 500.0))
    assert found.converged and found.is_stable and np.abs(ls.loop_residual(model, found.q)).max() < 1e-10
    length = np.linalg.norm(goal[:3, 3] - foot)
    along, weight = (goal[:3, 3] - foot) / length, 0.1 * np.array([0.0, 0.0, -GRAVITY])
    across = weight - along * (along @ weight)
    share = along * (along @ weight) + across * (0.15 + length - half + 0.15) / length
    T = ls.tendon_tensions(model, found.q, found.u)
    np.testing.assert_allclose(T, least_tensions(goal, np.full(8, 5.0), np.full(8, 500.0), share), atol=2e-5)


def test_what_cannot_be_held_has_a_reason():
    """Purpose: where no tensions within limits hold the platform, or none at all, or no configuration is there, the
    result names the cause, the worst input and a cure."""
    goal = {"platform": pose()}
    cases = [
        (platform(), {"tensions": (0.0, 2.0)}, "no inputs within the limits hold the targets: .* above low limits take "
         "a tension of .* N of 'cable .', outside 0 to 2: widen the limits"),
        (platform(cables=range(0, 8, 2)), {}, "no inputs, however large, balance the robot .*'platform'.*add an"),
        (platform(joint=ls.JointRevolute((0, 0, 1))), {}, "no configuration near the result .*choose targets within"),
    ]  # fmt: skip
    for model, options, text in cases:
        found = ls.inverse_kinematics(model, goal, by="statics", **options)
        assert not found.converged
        assert re.search(text, str(found.reason)), found.reason
    found = ls.inverse_kinematics(platform(), goal, by="statics", tensions=(0.0, 2.0))
    T = least_tensions(pose(), np.zeros(8), np.full(8, np.inf))
    worst = int(np.argmax(T))
    assert f"a tension of {T[worst]:.4g} N of 'cable {worst}', outside 0 to 2" in str(found.reason)
    found = ls.inverse_kinematics(platform(), {"platform": pose((0.0, 0.0, 2.0))}, by="statics")
    assert re.search("without limits take a tension of -.* an actuator that pulls the other way", str(found.reason))


def test_tensions_as_inputs():
    """Purpose: with constant tensions this pose is unstable. It is found with the least tensions, and counts only where
    an unstable one was asked for; otherwise the reason says so."""
    model, goal = platform(None), {"platform": pose()}
    found = ls.inverse_kinematics(model, goal, by="statics", stable=False, tensions=(5.0, 100.0))
    assert found.converged and not found.is_stable and found.reason == ""
    np.testing.assert_allclose(found.u, least_tensions(pose(), np.full(8, 5.0), np.full(8, 100.0)), atol=2e-5)
    strict = ls.inverse_kinematics(model, goal, by="statics", limits=(5.0, 100.0))
    assert not strict.converged and "unstable under constant inputs" in str(strict.reason)
    np.testing.assert_allclose(strict.u, found.u, atol=1e-6)


def lifted(limit=np.inf):
    """A mass on a slide, which two magnets with a force of w + w³/10 lift, at a height: nothing holds it by itself."""
    import jax.numpy as jnp

    robot = ls.Robot("lifted")
    robot.add_link("mass", ls.RigidBody(1.0), ls.JointPrismatic((0, 0, 1)))
    magnet = ls.TracedFunction(lambda t, g, eta, w: jnp.stack([0, 0, 0, 0, 0, w[0] + 0.1 * w[0] ** 3]))
    for name in ("left", "right"):
        robot.add_force(name, "mass", magnet, inputs=f"{name} coil")
    model, goal = robot.build(), {"mass": np.array([0.0, 0.0, 0.2])}
    return ls.inverse_kinematics(model, goal, by="statics", limits=(0.0, limit))


def test_inputs_whose_forces_are_no_linear_functions():
    """Purpose: forces that grow with the cube of their inputs are not taken for linear ones: both coils take the same
    current, of which the cubic gives half the weight; and where limits forbid it, the reason does not say how much."""
    found = lifted()
    assert found.converged and found.q[0] == pytest.approx(0.2, abs=1e-12)
    current = np.roots([0.1, 0.0, 1.0, -0.5 * GRAVITY])
    np.testing.assert_allclose(found.u, np.real(current[np.isreal(current)])[0], rtol=1e-9)
    weak = lifted(1.5)
    assert not weak.converged and re.search(
        "search ended .*, with 'left coil', 'right coil' at limits", str(weak.reason)
    )


def test_a_place_leaves_turning_free():
    """Purpose: where the targets leave coordinates free, tensions are the least at the pose found, and nearly the least
    of all poses near it, which is far less than without a turn."""
    model, place = platform(), np.array([0.05, 0.03, 0.08])
    found = ls.inverse_kinematics(model, {"platform": place}, by="statics", tensions=(5.0, 500.0))
    assert found.converged and np.abs(found.residual).max() < 1e-12
    T = ls.tendon_tensions(model, found.q, found.u)
    turn = Rotation.from_matrix(ls.frame_pose(model, found.q, "platform")[:3, :3]).as_rotvec()
    low, high = np.full(8, 5.0), np.full(8, 500.0)
    here = least_tensions(pose(place, turn), low, high)
    np.testing.assert_allclose(T, here, atol=1e-4)

    def cost(w):
        return (least_tensions(pose(place, w), low, high) ** 2).sum()

    best = minimize(cost, turn, method="Nelder-Mead", options={"xatol": 1e-5, "fatol": 1e-4}).fun
    assert (T**2).sum() < 1.02 * best < 0.7 * cost(np.zeros(3))


def test_a_batch_with_one_that_cannot_be_held():
    """Purpose: each row has its own reason and its own result."""
    goals = np.array([pose(), pose((0.0, 0.0, 2.0)), pose((0.0, 0.0, 0.0))])
    found = ls.inverse_kinematics(platform(), {"platform": goals}, by="statics", tensions=(1.0, 500.0))
    assert found.converged.tolist() == [True, False, True]
    assert found.reason[0] == found.reason[2] == "" and "no inputs within the limits" in found.reason[1]


def test_a_soft_arm_on_elastic_tendons():
    """Purpose: more elastic tendons than numbers of the place get the tensions of a general minimiser that starts
    elsewhere and takes differences of equilibria."""
    robot = ls.Robot("arm", gravity=(0.0, 0.0, -9.81))
    basis = ls.BasisLegendre(bending_y=1, bending_z=1, elongation=0)
    robot.add_link("arm", ls.Rod(0.3, ls.SectionCircle(0.01), basis, MATERIAL))
    for k in range(5):
        at = 0.008 * np.cos(2 * np.pi * k / 5), 0.008 * np.sin(2 * np.pi * k / 5)
        robot.add_tendon(f"t{k}", "arm", at, stiffness=2e3)
    model = robot.build()
    drawn = np.array([0.003, 0.001, 0.002, 0.004, 0.001])

    def rest(u):
        return ls.solve_statics(model, u=u)

    place = ls.frame_pose(model, rest(drawn).q, "arm")[:3, 3]
    found = ls.inverse_kinematics(model, {"arm": place}, by="statics")
    T = ls.tendon_tensions(model, found.q, found.u)

    def tensions(u):
        return ls.tendon_tensions(model, rest(u).q, u)

    there = {"type": "eq", "fun": lambda u: 1e2 * (ls.frame_pose(model, rest(u).q, "arm")[:3, 3] - place)}
    least = minimize(lambda u: (tensions(u) ** 2).sum(), drawn, constraints=there, method="SLSQP")
    assert found.converged
    assert (T**2).sum() <= least.fun * (1 + 1e-3)


def test_wrong_limits_of_tensions():
    """Purpose: a wrong argument is named, with the rule and the value."""
    model, goal = platform(), {"platform": pose()}
    for value, text in (
        (5.0, r"tensions: must be a pair \(low, high\)"),
        ((-1.0, 5.0), "0 <= low <= high"),
        ((5.0, 1.0), "0 <= low <= high"),
        ((np.zeros(3), 5.0), r"of shape \(8,\)"),
        ((0.0, "much"), "tensions: must be"),
    ):
        with pytest.raises(ls.ModelError, match=text):
            ls.inverse_kinematics(model, goal, by="statics", tensions=value)
    with pytest.raises(ls.ModelError, match="tensions: is for by='statics'"):
        ls.inverse_kinematics(model, goal, tensions=(0.0, 5.0))
    with pytest.raises(ls.ModelError, match="stable: is for by='statics'"):
        ls.inverse_kinematics(model, goal, stable=False)
    robot = ls.Robot("pair")
    robot.add_link("arm", ls.Rod(0.3, ls.SectionCircle(0.01), ls.BasisLegendre(bending_z=1), MATERIAL))
    for k in range(2):
        robot.add_tendon(f"t{k}", "arm", (0.0, 0.005 - 0.01 * k), stiffness=100.0)
    robot.couple_inputs("both", {"t0": 1.0, "t1": -1.0})
    with pytest.raises(ls.ModelError, match=r"tensions: tendon 't0'.* must have an input of its own"):
        ls.inverse_kinematics(robot.build(), {"arm": [0.3, 0, 0]}, by="statics", tensions=(0.0, 5.0))
