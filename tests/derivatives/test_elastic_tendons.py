"""Elastic tendons: their law, derivatives against differences, springs as a second opinion, statics, motion, files."""

from dataclasses import replace

import numpy as np
import pytest
from robot_descriptions import assert_same, one_rod, round_trip
from touching_robots import differences, hybrid, mismatch, state

import lissom as ls

TOLERANCE, STEP = 1e-7, 1e-5
GROUND = ls.PathPoint(None, (0.2, 0.3, -0.4))
BALL = ls.PathPoint("ball", (0.0, 0.01, 0.0))
PATHS = {
    "in a rod": [ls.PathRod("a", (0.0, 0.01))],
    "through two rods and the world": [
        ls.PathPoint(None, (-0.1, 0.05, 0.03)),
        ls.PathRod("a", [(0.0, 0.0, 0.01), (1.0, 0.005, 0.008)], start=0.1),
        ls.PathPoint("base", (0.0, 0.02, 0.1)),
        ls.PathRod("b", (0.01, 0.0), start=0.9, stop=0.2),
    ],
    "between links": [BALL, ls.PathPoint("b", (0.0, 0.0, 0.02), s=0.6)],
}


def tendons(base="free", looped=False):
    """The hybrid robot with an elastic tendon on each path, the second one driven with a motor, and another tendon."""
    robot = hybrid(base)
    for name, path in PATHS.items():
        robot.add_tendon(name, path=path, stiffness=70.0)
    robot.add_tendon("stiff", "b", (0.0, 0.012))
    robot.add_joint_actuator("motor", "ball")
    robot.couple_inputs("both", {"through two rods and the world": 0.5, "motor": -2.0})
    if looped:
        robot.add_loop("ring", "a", "b", joint=ls.JointSpherical())
    return robot.build()


def taut_state(model, seed, slack=()):
    """State and inputs by which every elastic tendon is stretched by 1 to 3 cm, or is slack by as much."""
    q, v, a = state(model, seed)
    stretch = np.array([0.01, 0.02, 0.03])
    stretch[list(slack)] *= -1.0
    L = ls.path_lengths(model, q)[:3]
    need = stretch - (L - model.spools.slack)
    u = np.zeros(model.nu)
    for name, value in zip(PATHS, need):
        column = np.flatnonzero(model.channels.gain[model.channels.names.index(name)])[0]
        u[column] = value / model.channels.gain[model.channels.names.index(name), column]
    u[-1] = 3.0
    return q, v, a, u, 70.0 * np.maximum(stretch, 0.0)


def test_tensions():
    """k times the stretch, and nothing where slack; another tendon's is its input, over leading axes too."""
    model = tendons()
    q, _, _, u, expected = taut_state(model, 5, slack=[1])
    T = ls.tendon_tensions(model, q, u)
    np.testing.assert_allclose(T[:3], expected, atol=1e-12)
    np.testing.assert_allclose(T[3], model.channels.gain[3] @ u)
    rows = ls.tendon_tensions(model, q, np.array([u, 0 * u]))
    np.testing.assert_array_equal(rows[0], T)
    still = ls.tendon_tensions(model, model.neutral())
    np.testing.assert_allclose(still, 0.0, atol=1e-12)


@pytest.mark.parametrize("slack", [(), (0, 2), (1,)])
@pytest.mark.parametrize("base", ["fixed", "free", "spherical"])
def test_derivatives(base, slack):
    """Forward dynamics by q and u, and what input and tangent stiffness are, by differences."""
    model = tendons(base)
    q, v, _, u, _ = taut_state(model, 5, slack)
    da_dq, _, da_du = ls.forward_dynamics_derivatives(model, q, v, u)
    M = ls.mass_matrix(model, q)
    along = differences(model, lambda d: ls.forward_dynamics(model, ls.integrate(model, q, d), v, u), STEP)
    assert mismatch(model, M @ da_dq, M @ along) < TOLERANCE
    h = 1e-5
    by_u = [(ls.forward_dynamics(model, q, v, u + h * e) - ls.forward_dynamics(model, q, v, u - h * e)) / (2 * h)
            for e in np.eye(model.nu)]  # fmt: skip
    np.testing.assert_allclose(da_du, np.array(by_u).T, atol=1e-7 * np.abs(da_du).max())
    B = np.linalg.solve(M, ls.actuation_matrix(model, q))
    if not slack:
        np.testing.assert_allclose(B, da_du, atol=1e-9 * np.abs(da_du).max())
    dq = ls.inverse_dynamics_derivatives(model, q, v, 0 * v)[0]
    along = differences(model, lambda d: ls.inverse_dynamics(model, ls.integrate(model, q, d), v, 0 * v), STEP)
    assert mismatch(model, dq, along) < TOLERANCE  # which knows no inputs


def test_derivatives_with_loops():
    """The same for a closed robot, where both its loops and the tendons tie branches."""
    model = tendons("fixed", looped=True)
    q = ls.assemble(model, taut_state(model, 3)[0])
    u = np.array([0.3, 0.9, 0.4, 3.0])
    assert (ls.tendon_tensions(model, q, u)[:3] > 0.0).all()
    v = np.zeros(model.nv)
    da_dq, _, da_du = ls.forward_dynamics_derivatives(model, q, v, u)
    h = 1e-5
    by_u = [(ls.forward_dynamics(model, q, v, u + h * e) - ls.forward_dynamics(model, q, v, u - h * e)) / (2 * h)
            for e in np.eye(model.nu)]  # fmt: skip
    np.testing.assert_allclose(da_du, np.array(by_u).T, atol=1e-7 * np.abs(da_du).max())
    N = np.linalg.svd(ls.constraint_jacobian(model, q))[2][-3:].T  # along which the loop stays closed to first order

    def a(s):
        return ls.forward_dynamics(model, ls.assemble(model, ls.integrate(model, q, s * N[:, 0])), v, u)

    h = 1e-5
    slope = (8 * (a(h) - a(-h)) - (a(2 * h) - a(-2 * h))) / (12 * h)
    np.testing.assert_allclose(da_dq @ N[:, 0], slope, atol=2e-5 * np.abs(slope).max())


def as_spring(spring):
    """The hybrid robot with a cable between two links, as a spring or as a tendon."""
    robot = hybrid("free")
    ends = PATHS["between links"]
    if spring:
        robot.add_spring("cable", *ends, stiffness=90.0, rest=0.05, slack=True)
    else:
        robot.add_tendon("cable", path=ends, stiffness=90.0, slack_length=0.07)
    return robot.build(), None if spring else np.array([0.02])


@pytest.mark.parametrize("seed", [5, 6])
def test_is_a_spring_between_two_points(seed):
    """A straight piece between two links has the forces of a cable of add_spring that is shorter by the length pulled
    in."""
    (one, u_one), (other, u_other) = as_spring(False), as_spring(True)
    q, v, _ = state(one, seed)
    assert ls.tendon_tensions(one, q, u_one) > 0.0
    for x, y in zip(
        (ls.forward_dynamics(one, q, v, u_one), *ls.forward_dynamics_derivatives(one, q, v, u_one)[:2]),
        (ls.forward_dynamics(other, q, v), *ls.forward_dynamics_derivatives(other, q, v)[:2]),
    ):
        np.testing.assert_allclose(x, y, atol=1e-12 * np.abs(y).max())
    K, K_other = ls.tangent_stiffness(one, q, u_one), ls.tangent_stiffness(other, q)
    np.testing.assert_allclose(K, K_other, atol=1e-12 * np.abs(K).max())
    options = {"method": "generalized_alpha", "dt": 2e-3}
    motion = [ls.simulate(m, 0.1, q, u=u, **options) for m, u in ((one, u_one), (other, u_other))]
    np.testing.assert_allclose(motion[0].q[-1], motion[1].q[-1], atol=1e-11)


@pytest.mark.parametrize("base", ["fixed", "free", "spherical"])
def test_fused_and_separate_steps(base):
    """A Python actuator of no force makes the steps go through Python: the same numbers."""
    ends = []
    for separate in (False, True):
        robot = hybrid(base)
        for name, path in PATHS.items():
            robot.add_tendon(name, path=path, stiffness=70.0)
        size = robot.build().nv
        if separate:
            robot.add_custom_actuator("nothing", lambda q, n=size: np.zeros(n))
        model = robot.build()
        u = np.append([0.02, 0.05, 0.03], np.zeros(model.nu - 3))
        motion = ls.simulate(model, 0.1, u=u, method="generalized_alpha", dt=5e-3)
        ends.append((motion.q[-1], motion.v[-1], motion.statistics.jacobians))
    for one, other in zip(*ends):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-10 * np.abs(one).max())


def test_balance_of_energy():
    """A swinging robot whose tendons are wound in, fall slack and are stretched again."""
    model = tendons("fixed")

    def u(t):
        return np.array([0.05 * np.sin(20 * t), 0.05 * t, 0.1 * t, 0.1])

    motion = ls.simulate(model, 0.4, u=u, rtol=1e-9, t_eval=np.linspace(0, 0.4, 1601))
    T = ls.tendon_tensions(model, motion.q, motion.u)
    assert (T[:, 0] == 0.0).any() and (T[:, 0] > 0.0).any()
    assert ls.energy_balance(model, motion).residual < 1e-6


def bent_rod(**tendon):
    """A rod of constant curvature, bent by a tendon 1 cm off its axis, without weight; its bending stiffness."""
    basis, material = ls.BasisLegendre(bending_y=0), ls.Material(young=1e6, poisson=0.5, density=1000.0)
    robot = ls.Robot("bent", gravity=(0, 0, 0))
    robot.add_link("rod", ls.Rod(0.4, ls.SectionCircle(0.01), basis, material))
    robot.add_tendon("tendon", "rod", (0.0, 0.01), **tendon)
    return robot.build(), 1e6 * np.pi * 0.01**4 / 4


@pytest.mark.parametrize("pulled", [0.0, 0.004, 0.03])
def test_bent_rod(pulled):
    """The curvature EI κ = −d T, T = k (u − d |κ| l) where taut, and the stiffness of that."""
    k, length, d, loose = 300.0, 0.4, 0.01, 0.005
    model, EI = bent_rod(stiffness=k, slack_length=length + loose)
    found = ls.solve_statics(model, u=[pulled])
    T = k * max(pulled - loose, 0.0) / (1.0 + k * d**2 * length / EI)
    np.testing.assert_allclose(np.abs(found.q), d * T / EI, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(ls.tendon_tensions(model, found.q, [pulled]), T, rtol=1e-10, atol=1e-14)
    K = ls.tangent_stiffness(model, found.q, [pulled])[0, 0]
    np.testing.assert_allclose(K, EI * length + (k * (d * length) ** 2 if T > 0.0 else 0.0), rtol=1e-12)


def test_stiff_tendon_is_inextensible():
    """Wound in by the length by which a tension of 2 N shortens it, a tendon of great stiffness holds the shape of that
    tension."""
    free, _ = bent_rod()
    found = ls.solve_statics(free, u=[2.0])
    short = ls.path_lengths(free, free.neutral()) - ls.path_lengths(free, found.q)
    gaps = []
    for k in (1e4, 1e6, 1e8):
        model, _ = bent_rod(stiffness=k)
        held = ls.solve_statics(model, u=short)
        gaps.append(abs(held.q[0] / found.q[0] - 1.0))
        exact = ls.solve_statics(model, u=short + 2.0 / k)
        np.testing.assert_allclose(exact.q, found.q, rtol=1e-9)
        W = [ls.internal_wrench(m, found.q, None, None, u, "rod", 0.5)
             for m, u in ((model, short + 2.0 / k), (free, [2.0]))]  # fmt: skip
        np.testing.assert_allclose(W[0].actuators, W[1].actuators, atol=1e-12 * k * 1e-4)
    np.testing.assert_allclose(np.array(gaps[1:]) / gaps[:-1], 1e-2, rtol=0.3)


def test_statics_of_a_tree():
    """Equilibria of rods, a spherical joint and a hinge under taut and slack tendons, in the kernel and through Python;
    Newton's iteration begins where all of them begin to pull."""
    ends = []
    for separate in (False, True):
        robot = hybrid("fixed")
        for name, joint in (
            ("b", ls.JointSpherical(stiffness=5.0)),
            ("ball", ls.JointRevolute((0, 1, 1), stiffness=1.0)),
        ):
            robot.links[name] = replace(robot.links[name], joint=joint)
        for name, path in PATHS.items():
            robot.add_tendon(name, path=path, stiffness=700.0)
        size = robot.build().nv
        if separate:
            robot.add_custom_actuator("nothing", lambda q, n=size: np.zeros(n))
        model = robot.build()
        u = np.append([0.02, 0.05, -0.9], np.zeros(model.nu - 3))
        found = ls.solve_statics(model, u=u)
        assert (ls.tendon_tensions(model, found.q, u)[:2] > 0.0).all()
        assert ls.tendon_tensions(model, found.q, u)[2] == 0.0
        assert np.abs(ls.forward_dynamics(model, found.q, 0.0 * found.q[: model.nv], u)).max() < 1e-6
        ends.append(found.q)
    np.testing.assert_allclose(*ends, rtol=0, atol=1e-9)


def test_branch_through_slack():
    """A branch along a growing input meets the equilibria of statics, before the tendon is taut and after."""
    k, length, d, loose = 300.0, 0.4, 0.01, 0.005
    model, EI = bent_rod(stiffness=k, slack_length=length + loose)
    branch = ls.continuation(model, u=[0.02])
    T = k * np.maximum(0.02 * branch.factor - loose, 0.0) / (1.0 + k * d**2 * length / EI)
    apart = np.abs(branch.factor - loose / 0.02) > 1e-3  # from where it begins to pull, which stalls the correction
    np.testing.assert_allclose(np.abs(branch.q[apart, 0]), (d * T / EI)[apart], rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(np.abs(branch.q[:, 0]), d * T / EI, atol=1e-5)
    assert T[1] == 0.0 and T[-1] > 0.0 and branch.factor[-1] == 1.0


def test_hanging_mass():
    """A mass on a tendon that nothing else holds sinks from where the tendon begins to pull; a stiff one as well."""
    for k in (40.0, 1e6):
        robot = ls.Robot("hanging")
        robot.add_link("mass", ls.RigidBody.sphere(0.05, density=1000.0), ls.JointPrismatic((0, 0, 1)))
        robot.add_tendon("line", path=[ls.PathPoint(None, (0, 0, 1.0)), ls.PathPoint("mass")], stiffness=k)
        model = robot.build()
        rest = ls.solve_statics(model, u=[0.1])
        weight = 9.81 * model.links.mass[0]
        np.testing.assert_allclose(rest.q, 0.1 - weight / k, rtol=1e-12)
        np.testing.assert_allclose(ls.modes(model, rest.q, [0.1]).frequencies, np.sqrt(k / model.links.mass[0]))


def test_no_warning_of_pushing():
    """Paying out an elastic tendon is no push."""
    model = tendons("fixed")
    assert ls.tendon_tensions(model, model.neutral(), [-1.0, -1.0, -1.0, 0.0]).max() == 0.0
    ls.forward_dynamics(model, model.neutral(), np.zeros(model.nv), [-1.0, 0.0, -1.0, 0.0])
    assert model.channels.units[:2] == ("length pulled in [m]",) * 2
    assert model.channels.units[3] == "tension [N]"


def test_length_in_the_neutral_configuration():
    """Left out, the slack length is that of the robot as it was described."""
    model = tendons("spherical")
    np.testing.assert_allclose(model.spools.slack, ls.path_lengths(model, model.neutral())[:3], rtol=1e-12)


def test_robot_file(tmp_path):
    """Elastic tendons are read as they were written."""
    robot = one_rod()
    robot.add_tendon("plain", "arm", (0.0, 0.01))
    robot.add_tendon("elastic", "arm", (0.0, -0.01), stiffness=3e3)
    path = [ls.PathPoint(None, (0.1, 0.2, 0.3)), ls.PathRod("arm", (0.01, 0.0))]
    robot.add_tendon("all", path=path, stiffness=50.0, slack_length=0.3)
    again = round_trip(robot, tmp_path)
    one, two = robot.build(), again.build()
    for name in ("channel", "stiffness", "slack"):
        assert_same(getattr(one.spools, name), getattr(two.spools, name), name)
    assert_same(one.channels.units, two.channels.units, "units")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"stiffness": 0.0}, "actuator 't': stiffness: must be > 0"),
        ({"stiffness": "x"}, "stiffness: must be > 0"),
        ({"stiffness": 1.0, "slack_length": -0.1}, "slack_length: must be >= 0"),
        ({"slack_length": 0.3}, "slack_length: must be left out where the tendon has no stiffness"),
    ],
)
def test_bad_descriptions(options, words):
    """Each wrong value is named with the rule it breaks."""
    robot = one_rod()
    robot.add_tendon("t", "arm", (0.0, 0.01), **options)
    with pytest.raises(ls.ModelError, match=words):
        robot.build()
