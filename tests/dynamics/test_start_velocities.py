"""Velocities at the start of driven closed chains: against quadratic programs and closed forms, for each cut."""

from functools import lru_cache

import numpy as np
import pytest

import lissom as ls
from lissom.cli.main import main

pytestmark = pytest.mark.filterwarnings("ignore::lissom.errors.RedundancyWarning")

W, RADIUS, LENGTH, WIDTH, HEIGHT = 157.08, 0.06, 0.24, 0.010, 0.006  # 1500 rpm [rad/s]; [m]
PIN = ls.JointRevolute((0, 1, 0))
CRANK = ls.RigidBody(0.4, (0.03, 0, 0), (1e-4, 4e-4, 4e-4))
CRANK_ENERGY = 0.5 * (4e-4 + 0.4 * 0.03**2) * W**2
CUTS = ("slider", "crank", "rail")


def rod(young):
    """A rod with lateral velocities of degree 7."""
    material = ls.Material(young=young, poisson=0.3, density=7850.0, damping_time=1e-5)
    basis = ls.BasisLegendre(bending_y=5, elongation=1)
    return ls.Rod(LENGTH, ls.SectionRectangle(WIDTH, HEIGHT), basis, material, gauss_points=10)


def at(x, *, turned=False):
    """A placement on the x axis, turned by π about y."""
    g = np.eye(4)
    g[0, 3] = x
    if turned:
        g[0, 0] = g[2, 2] = -1.0
    return g


@lru_cache
def slider_crank(cut, speed=W, young=210e9, angle=0.0):
    """A slider-crank with a flexible rod, cut at its slider pin, at its crank pin, or between slider and rail."""
    connection = rod(young)
    robot = ls.Robot(f"slider-crank, cut at {cut}", gravity=(0, 0, 0))
    robot.add_link("crank", CRANK, PIN)
    slider, rail = ls.RigidBody.box(0.05, 0.04, 0.04, density=7850), ls.JointPrismatic((1, 0, 0))
    if cut == "rail":
        robot.add_link("rod", connection, PIN, "crank", placement=at(RADIUS))
        robot.add_link("slider", slider, PIN, "rod")
        robot.add_loop("rail", "slider", placement_b=at(RADIUS + LENGTH), joint=rail)
    else:
        robot.add_link("slider", slider, rail, placement=at(RADIUS + LENGTH))
        if cut == "slider":
            robot.add_link("rod", connection, PIN, "crank", placement=at(RADIUS))
            robot.add_loop("pin", "rod", "slider", joint=PIN)
        else:
            robot.add_link("rod", connection, PIN, "slider", placement=at(0.0, turned=True))
            robot.add_loop("pin", "rod", "crank", placement_b=at(RADIUS), joint=PIN)
    robot.add_joint_motion("drive", "crank", position=ls.Expression(f"{angle} + {speed}*t", "t"))
    return robot.build()


def kinetic(model, v, q=None):
    """Kinetic energy [J]."""
    return ls.energy(model, model.neutral() if q is None else q, v).kinetic


def least_energy():
    """Kinetic energy of the stretched slider-crank: a rod whose lateral velocity is a polynomial of degree 7 (its
    rates of curvature have degree 5), with the crank pin's velocity at one end and none at the other."""
    x, weight = np.polynomial.legendre.leggauss(20)
    s, weight = 0.5 * LENGTH * (x + 1.0), 0.5 * LENGTH * weight
    A, second = WIDTH * HEIGHT, WIDTH * HEIGHT**3 / 12.0
    powers = np.arange(8)
    y = s[:, None] ** powers / LENGTH**powers
    slope = powers * s[:, None] ** np.maximum(powers - 1, 0) / LENGTH**powers
    M = 7850.0 * ((A * y.T * weight) @ y + (second * slope.T * weight) @ slope)
    C = np.vstack([powers == 0, np.ones(8)])  # at its two ends
    system = np.block([[M, C.T], [C, np.zeros((2, 2))]])
    c = np.linalg.solve(system, np.concatenate([np.zeros(8), [RADIUS * W, 0.0]]))[:8]
    return CRANK_ENERGY + 0.5 * c @ M @ c


@pytest.mark.parametrize("cut", CUTS)
def test_energy_is_least_at_each_cut(cut):
    """The drive throws the robot from rest with the least kinetic energy that it can have, Kelvin's theorem."""
    model = slider_crank(cut)
    v = ls.assemble_velocities(model, model.neutral())
    assert kinetic(model, v) == pytest.approx(least_energy(), rel=1e-9)
    assert least_energy() == pytest.approx(9.461, abs=1e-3)
    assert v[0] == W
    assert np.abs(ls.constraint_jacobian(model, model.neutral())[1:] @ v).max() < 1e-10 * W


@pytest.mark.parametrize("cut", CUTS)
def test_a_running_start_has_no_rates_of_strain(cut):
    """The rod turns about the slider pin like a rigid one."""
    model = slider_crank(cut)
    v = ls.assemble_velocities(model, model.neutral(), start="running")
    A, second = WIDTH * HEIGHT, WIDTH * HEIGHT**3 / 12.0
    J = 7850.0 * (A * LENGTH**3 / 3.0 + second * LENGTH)
    assert kinetic(model, v) == pytest.approx(CRANK_ENERGY + 0.5 * J * (W * RADIUS / LENGTH) ** 2, rel=1e-9)
    first = model.links.v_start[model.links.names.index("rod")] + 1
    assert np.abs(v[first : first + 8]).max() < 1e-9 * W


def test_every_caller_starts_so():
    """simulate, its batches, steppers, copies and rollouts begin with the same velocity, wherever the loop is cut."""
    for cut in CUTS:
        model = slider_crank(cut)
        want, q = ls.assemble_velocities(model, model.neutral()), model.neutral()
        found = {
            "simulate": ls.simulate(model, 1e-6, t_eval=[0.0]).v[0],
            "batch": ls.simulate(model, 1e-6, np.array([q, q]), t_eval=[0.0]).v[1, 0],
            "zeros": ls.simulate(model, 1e-6, v0=np.zeros(model.nv), t_eval=[0.0]).v[0],
            "drive only": ls.simulate(model, 1e-6, v0=W * (np.arange(model.nv) == 0), t_eval=[0.0]).v[0],
            "stepper": ls.Stepper(model, 1e-5).state.v,
            "rollout": ls.rollout(model, dt=1e-6, steps=1).v[0],
        }
        for name, v in found.items():
            np.testing.assert_allclose(v, want, rtol=0, atol=1e-9 * W, err_msg=f"{name}, cut at {cut}")


def test_motion_does_not_depend_on_the_cut():
    """The slider moves alike during the first millisecond, in which the rod vibrates."""
    ends = []
    for cut in CUTS:
        model = slider_crank(cut)
        motion = ls.simulate(model, 1e-3, rtol=1e-9, atol=1e-11)
        ends.append(ls.frame_pose(model, motion.q[-1], "slider")[0, 3])
        assert abs(ends[0] - ends[-1]) < 1e-9
    assert abs(ends[0] - RADIUS - LENGTH) > 1e-4


RUBBER = ls.Material(young=5e6, poisson=0.5, density=1100, damping_time=5e-3)
UP = np.eye(4)
UP[:3, :3] = [[0, 0, -1.0], [0, 1, 0], [1, 0, 0]]


def feet():
    """Two soft legs, one on a foot that slides along z."""
    robot = ls.Robot("portal")
    leg = ls.Rod(0.3, ls.SectionCircle(0.01), ls.BasisLegendre(bending_y=3, elongation=1), RUBBER)
    for name, x in (("a", 0.0), ("b", 0.2)):
        joint = ls.JointPrismatic((0, 0, 1)) if name == "a" else ls.JointFixed()
        robot.add_link(f"foot {name}", ls.RigidBody(0.1), joint, placement=at(x))
        robot.add_link(f"leg {name}", leg, parent=f"foot {name}", placement=UP)
    return robot


@lru_cache
def portal(first):
    """The legs carry a beam, which the tree has on leg `first`; a foot is driven, at 0.5 m/s at the start."""
    robot, sign, other = feet(), 1.0 if first == "a" else -1.0, "b" if first == "a" else "a"
    back, end = UP.T.copy(), UP.copy()
    back[:3, 3], end[0, 3] = UP[:3, :3].T @ [sign * 0.1, 0, 0], sign * 0.1
    back[3, :3] = 0.0
    robot.add_link("beam", ls.RigidBody.box(0.2, 0.02, 0.02, density=1000), parent=f"leg {first}", placement=back)
    robot.add_loop("weld", f"leg {other}", "beam", placement_b=end)
    robot.add_joint_motion("drive", "foot a", position=ls.Expression("0.05*sin(10*t)", "t"))
    return robot.build()


def least_portal(by_stiffness):
    """Kinetic energy of the portal at its start, from the legs without a beam: the velocities with the least kinetic
    energy, or with the least rates of strain, for which both tips move like ends of the beam."""
    model = feet().build()
    q, m = model.neutral(), 0.08
    inertia = np.diag([m * 2 * 0.02**2 / 12, *2 * [m * (0.02**2 + 0.2**2) / 12], m, m, m])
    onto = []
    for name, x in (("a", -0.1), ("b", 0.1)):
        R, J = UP[:3, :3], ls.frame_jacobian(model, q, f"leg {name}")
        turn, move = R @ J[:3], R @ J[3:]
        arm = np.array([[0, 0, 0], [0, 0, x], [0, -x, 0]])  # (−x e) × ω of the beam's centre, seen from its end
        onto.append(np.vstack([turn, move + arm @ turn]))
    M = ls.mass_matrix(model, q) + onto[0].T @ inertia @ onto[0]
    rows = np.vstack([onto[0] - onto[1], np.eye(model.nv)[:1]])
    cost = ls.stiffness_matrix(model) if by_stiffness else M
    size = np.abs(cost).max()
    system = np.block([[cost / size, rows.T], [rows, np.zeros((len(rows), len(rows)))]])
    v = np.linalg.lstsq(system, np.append(np.zeros(model.nv + 6), 0.5), rcond=1e-13)[0][: model.nv]
    assert np.abs(rows @ v - np.append(np.zeros(6), 0.5)).max() < 1e-10
    return 0.5 * v @ M @ v


@pytest.mark.parametrize("start", ["impulse", "running"])
def test_a_soft_portal_through_each_leg(start):
    """Two soft legs carry a beam; one foot is driven. The tree goes through either leg."""
    want = least_portal(start == "running")
    for first in "ab":
        model = portal(first)
        assert np.abs(ls.loop_residual(model, model.neutral())).max() < 1e-14
        v = ls.assemble_velocities(model, model.neutral(), start=start)
        assert kinetic(model, v) == pytest.approx(want, rel=1e-8)


def differences(function, x, step):
    """Central differences of a function of an array x, the derivative on the last axis."""
    units = np.eye(len(x))
    return np.stack([(function(x + step * e) - function(x - step * e)) / (2.0 * step) for e in units], axis=-1)


def bent(model):
    """A configuration of the slider-crank with its rod bent and its loop closed."""
    q = np.zeros(model.nq)
    first = model.links.v_start[model.links.names.index("rod")]
    q[first + 1 : first + 4] = 0.3, 0.2, -0.1
    return ls.assemble(model, q)


@pytest.mark.parametrize("moving", [False, True])
def test_derivatives_of_rollouts_that_begin_with_an_impulse(moving):
    """With respect to q0, v0 and design values, against differences of rollouts; for a robot at rest and for one that
    moves against its loops."""
    model = slider_crank("slider", 10.0, 1e7, 0.7)
    q, rng = bent(model), np.random.default_rng(0)
    v = 0.3 * rng.normal(size=model.nv) if moving else np.zeros(model.nv)
    names = ["rod.material.density", "rod.length", "crank.mass", "rod.section.width_z"]
    motion = ls.rollout(model, q, v, dt=2e-4, steps=1)
    weight = rng.normal(size=(2, model.nv)) * [[1.0], [0.0]]  # the first step adds differences of stiff vibrations
    found = motion.backward(dL_dv=weight, parameters=names)

    def loss(q, v, own=model):
        return np.sum(weight * ls.rollout(own, ls.assemble(own, q), v, dt=2e-4, steps=1).v)

    def moved(x):
        return loss(ls.integrate(model, q, x), v)

    coarse, fine = (differences(moved, np.zeros(model.nv), h) for h in (4e-4, 2e-4))
    by_q = (4.0 * fine - coarse) / 3.0
    np.testing.assert_allclose(found.q0, by_q, rtol=0, atol=1e-6 * np.abs(by_q).max())
    if moving:
        by_v = differences(lambda x: loss(q, x), v, 1e-3)
        np.testing.assert_allclose(found.v0, by_v, rtol=0, atol=1e-6 * np.abs(by_v).max())
    forward = motion.forward(dq0=np.eye(model.nv), dv0=np.eye(model.nv))
    np.testing.assert_allclose(np.einsum("tj,ktj->k", weight, forward.v), found.q0 + found.v0, rtol=1e-9)
    for name in names:
        value = model.description.described_values()[name]

        def changed(h, name=name, value=value):
            return loss(q, v, model.description.with_({name: value * (1.0 + h)}).build()) / value

        want = (8.0 * (changed(5e-3) - changed(-5e-3)) - changed(1e-2) + changed(-1e-2)) / 6e-2
        # momenta are differenced to 1e-9, and the least mass of a bending mode is 1e-6 of the largest
        assert found.parameters[name] == pytest.approx(want, rel=2e-4), name


@pytest.mark.parametrize("cut", CUTS)
def test_given_velocities_that_satisfy_the_loops_are_kept(cut):
    """Those of the running mechanism, with and without the entry of the drive."""
    model = slider_crank(cut)
    v = ls.assemble_velocities(model, model.neutral(), start="running")
    for given in (v, np.where(np.arange(model.nv) == 0, 0.0, v)):
        found = ls.assemble_velocities(model, model.neutral(), given)
        np.testing.assert_allclose(found, v, rtol=0, atol=1e-8 * W)


def test_far_starts_are_told():
    """Given velocities against the loops that leave many times the energy that the drive needs cause a warning."""
    model = slider_crank("slider").description.build()
    with pytest.warns(ls.PlausibilityWarning, match=r"v0 does not satisfy the loops.* need 9\.461 J.*leave v0 out"):
        ls.simulate(model, 1e-6, v0=np.where(np.arange(model.nv) < 2, [[W], [W]], 0.0)[0], t_eval=[0.0])


def test_a_drive_on_no_loop_carries_its_links():
    """A turntable with a pendulum and a four-bar, which stand on it, turns with them at its start."""
    robot = ls.Robot("turntable", gravity=(0, 0, 0))
    robot.add_link("table", ls.RigidBody(1.0, inertia=(0.1, 0.1, 0.1)), ls.JointRevolute())
    bar = ls.RigidBody.box(0.2, 0.02, 0.02, density=1000)
    x = {"left": 0.0, "right": 0.3}
    for name in x:
        robot.add_link(name, bar, ls.JointRevolute((0, 1, 0)), "table", placement=at(x[name]))
    robot.add_link("pendulum", bar, ls.JointRevolute(), "table", placement=at(0.5))
    end = at(0.1)
    robot.add_link("coupler", bar, ls.JointRevolute((0, 1, 0)), "left", placement=end)
    robot.add_loop("pin", "coupler", "right", placement_a=at(0.3), placement_b=end, joint=ls.JointRevolute((0, 1, 0)))
    robot.add_joint_motion("spin", "table", position=ls.Expression("3*t", "t"))
    model = robot.build()
    v = ls.assemble_velocities(model, model.neutral())
    np.testing.assert_array_equal(v, [3.0, 0, 0, 0, 0])


def test_couplings_count_as_loops():
    """A gear whose wheel is driven moves its other shaft, and a differential moves its two shafts by their inertia."""
    robot = ls.Robot("gears", gravity=(0, 0, 0))
    for name, inertia in (("case", 0.1), ("left", 0.2), ("right", 0.3), ("loose", 0.1)):
        robot.add_link(name, ls.RigidBody(1.0, inertia=(1.0, 1.0, inertia)), ls.JointRevolute())
    robot.add_coupling("differential", ["left", "right", "case"], [1.0, 1.0, -2.0])
    robot.add_joint_motion("drive", "case", position=ls.Expression("5*t", "t"))
    v = ls.assemble_velocities(robot.build(), np.zeros(4))
    np.testing.assert_allclose(v, [5.0, 6.0, 4.0, 0.0], rtol=1e-12)  # 0.2 · 6 = 0.3 · 4


@pytest.mark.parametrize("start", ["impulse", "running"])
def test_the_command_line_starts_so(tmp_path, start):
    """`lissom simulate --start`."""
    model = slider_crank("slider", 10.0)
    ls.save_robot(model.description, tmp_path / "crank.yaml")
    files = [str(tmp_path / "crank.yaml"), "--out", str(tmp_path / "out")]
    assert main(["simulate", *files, "--duration", "1e-4", "--quiet", "--start", start]) == 0
    with np.load(tmp_path / "out" / "trajectory.npz") as saved:
        v = saved["v"][0]
    np.testing.assert_allclose(v, ls.assemble_velocities(model, model.neutral(), start=start), rtol=0, atol=1e-9)
