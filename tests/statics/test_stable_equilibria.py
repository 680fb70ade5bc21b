"""Stable equilibria: the reported stability agrees with the Hessian of the potential, and requested stability is
reached."""

import re

import numpy as np
import pytest
from statics.cantilevers import loaded
from statics.soft_robots import arm, built, closed, hessian, pair

import lissom as ls
from lissom.launch import progress
from lissom.statics import descent, equilibrium
from lissom.statics.newton import newton_in_python
from lissom.statics.newton_kernel import CONVERGED, Sought, results

NONE = np.zeros(0)

ROBOTS = {
    "upright": (lambda: arm(True), 6.0),
    "hanging": (lambda: arm(False), 10.0),
    "upright chain": (lambda: pair(True, False), 2.0),
    "chain in space": (lambda: pair(True, True), 2.0),
    "hanging chain": (lambda: pair(False, True), 2.0),
}


def check_claims(name, count, seed=0):
    """Random tension sets, half of the pulls slack: claims of the nearest and of the stable equilibrium against the
    Hessian; how many of the nearest were unstable, and how many have no nearest."""
    describe, most = ROBOTS[name]
    model, rng = describe(), np.random.default_rng(seed)
    tensions = rng.uniform(0, most, (count, model.nu)) * (rng.uniform(size=(count, model.nu)) > 0.3)
    found, unstable, lost = ls.solve_statics(model, tensions), 0, 0
    assert found.is_stable.all() and not found.unstable_count.any()
    for q, u, least in zip(found.q, tensions, found.least_stiffness):
        curvature = np.linalg.eigvalsh(hessian(model, q, u))
        assert curvature[0] > 0.0
        assert least == pytest.approx(curvature[0], rel=1e-3, abs=1e-7)
        try:
            near = ls.solve_statics(model, u, stable=False)
        except ls.ConvergenceError:
            lost += 1
            continue
        if not near.is_stable:
            unstable += 1
            assert near.unstable_count == (np.linalg.eigvalsh(hessian(model, near.q, u)) < 0.0).sum()
    return unstable, lost


@pytest.mark.parametrize("name", ROBOTS)
def test_random_tensions(name):
    """Sixty-four random tension sets on five soft robots: each claim agrees with the Hessian, each answer is stable."""
    unstable, lost = check_claims(name, 8 if "chain" in name else 20)
    assert (unstable + lost > 5) == name.startswith(("upright", "chain")), "only upright robots are unstable"


def test_load_steps_count_as_work_of_the_solve():
    """Where load steps end at a limit point, a descent may take twenty times their work, not that of the few iterations
    of the solve before: here it needs 109 steps and some more."""
    model, rng = pair(True, True), np.random.default_rng(1)
    u = (rng.uniform(0, 2.0, (400, model.nu)) * (rng.uniform(size=(400, model.nu)) > 0.3))[2]
    with pytest.raises(ls.ConvergenceError, match="limit point"):
        ls.solve_statics(model, u, stable=False)
    found = ls.solve_statics(model, u)
    assert found.is_stable and np.linalg.eigvalsh(hessian(model, found.q, u))[0] > 0.0


@pytest.mark.slow
@pytest.mark.parametrize("name", ROBOTS)
def test_two_thousand_random_tensions(name):
    """The same with two thousand sets."""
    check_claims(name, 400, seed=1)


def tip(model, q):
    """Where the arm ends."""
    return ls.frame_pose(model, q, "arm")[:3, 3]


def test_an_upright_arm_falls_over():
    """The arm that Newton's method leaves upright with two unstable modes is found where it comes to rest, as by
    continuation."""
    model = arm(True, tendons=1, basis=ls.BasisLegendre(bending_y=4, bending_z=4))
    near, found = ls.solve_statics(model, [10.0], stable=False), ls.solve_statics(model, [10.0])
    np.testing.assert_allclose(tip(model, near.q), (0.0278, 0.0, 0.2307), atol=1e-3)
    np.testing.assert_allclose(tip(model, found.q), (-0.094, 0.0, -0.215), atol=1e-3)
    assert (near.is_stable.item(), near.unstable_count.item(), found.is_stable.item()) == (False, 2, True)
    assert near.least_stiffness < 0.0 < found.least_stiffness
    np.testing.assert_allclose(ls.continuation(model, u=[10.0]).q[-1], found.q, atol=1e-7)


def test_a_plane_closed_chain_falls_to_the_right_side():
    """A four-bar on its head is an equilibrium, and unstable; it falls to the side to which it leans, and hangs."""
    robot = ls.Robot("four-bar")
    bar = ls.RigidBody(0.5, (0.1, 0.0, 0.0), (1e-5, 2e-3, 2e-3))
    across = np.eye(4)
    across[0, 3] = 0.3
    robot.add_link("left", bar, ls.JointRevolute((0, 1, 0)))
    robot.add_link("coupler", ls.RigidBody(0.5, (0.15, 0.0, 0.0), (1e-5, 4e-3, 4e-3)), ls.JointRevolute((0, 1, 0)),
                   parent="left", placement=shifted(0.2))  # fmt: skip
    robot.add_link("right", bar, ls.JointRevolute((0, 1, 0)), parent="coupler", placement=shifted(0.3))
    robot.add_loop("ground", "right", None, placement_a=shifted(0.2), placement_b=across,
                   joint=ls.JointSpherical())  # fmt: skip
    model = closed(robot)
    upright = np.array([-np.pi / 2, np.pi / 2, np.pi / 2])
    near = ls.solve_statics(model, q0=upright, stable=False)
    np.testing.assert_allclose(near.q, upright, atol=1e-12)
    assert (near.is_stable.item(), near.unstable_count.item()) == (False, 1)
    for lean in (-0.01, 0.01):
        found = ls.solve_statics(model, q0=upright + lean * np.array([1.0, -1.0, 1.0]))
        assert found.is_stable and np.sin(found.q[0]) > 0.99
        assert np.sign(found.q[0] - upright[0]) == np.sign(lean)


def shifted(x):
    """A placement along x."""
    g = np.eye(4)
    g[0, 3] = x
    return g


def test_flutter_is_no_stable_equilibrium():
    """Beyond Beck's load of 20.05 EI/L² the straight column flutters, its stiffness being regular: none that is stable
    is in reach, a warning says so, and stable=False takes the one there is."""
    basis = ls.BasisLegendre(bending_y=8)
    for by, stable in ((0.99, True), (1.01, False)):
        model = loaded(basis, 40, force=(-by * 20.05, 0, 0), frame="body")
        assert ls.solve_statics(model, stable=False).is_stable == stable
    slowest = r"\(the slowest grows (oscillating|steadily)\)"
    with pytest.warns(ls.StabilityWarning, match=r"'beam'.*has [12] unstable modes? " + slowest):
        found = ls.solve_statics(model)
    assert not found.is_stable and found.unstable_count >= 1


def wound(order):
    """A weightless rod of 10 m under a couple and a force at its tip that keep their directions in the world."""
    basis = ls.BasisLegendre(**dict.fromkeys(("torsion", "bending_y", "bending_z", "elongation", "shear_y"), order))
    section = ls.SectionGeneral(
        stiffness=np.diag([100.0, 100.0, 100.0, 1e4, 1e4, 1e4]), inertia=np.diag([0.02, 0.01, 0.01, 1.0, 1.0, 1.0]),
        damping=np.zeros((6, 6)),
    )  # fmt: skip
    robot = ls.Robot("wound", gravity=(0, 0, 0))
    robot.add_link("rod", ls.Rod(length=10.0, section=section, material=None, basis=basis))
    robot.add_point_load("tip", "rod", moment=(0, 0, 40 * np.pi / 3), force=(0, 0, 10 / 3), frame="world")
    return robot.build()


def test_the_search_for_a_stable_equilibrium_ends(monkeypatch):
    """A couple that keeps its direction has no potential, and descents return to an unstable equilibrium: the search
    ends after at most twenty times the work of the solve, and the warning names the attempts."""
    model, count = wound(6), []
    near = ls.solve_statics(model, stable=False)
    jacobian = descent.residual_jacobian
    monkeypatch.setattr(descent, "residual_jacobian", lambda *given: [count.append(1), jacobian(*given)][1])
    tried = r"tried descents: one from q0 of \d+ steps .*; one from the unstable equilibrium .*; start from another q0"
    with pytest.warns(ls.StabilityWarning, match=tried):
        found = ls.solve_statics(model)
    np.testing.assert_array_equal(found.q, near.q)
    assert not found.is_stable and 1 < len(count) < 20 * near.iterations


def test_a_search_is_bounded_by_the_work_of_the_solve(monkeypatch):
    """A search that never knows where it has been ends, too, after twenty times the work of the solve."""
    model, count = wound(6), []
    near = ls.solve_statics(model, stable=False)
    jacobian = descent.residual_jacobian
    leave, share = descent.Descent.leave, descent.EIGENVALUES
    monkeypatch.setattr(descent, "residual_jacobian", lambda *given: [count.append(1), jacobian(*given)][1])
    monkeypatch.setattr(descent.Descent, "leave", lambda self: [count.append(share), leave(self)][1])
    monkeypatch.setattr(equilibrium, "_SAME", -1.0)
    with pytest.warns(ls.StabilityWarning, match="one from q0 .* was stopped at its limit of work"):
        found = ls.solve_statics(model)
    assert not found.is_stable and 1 < sum(count) < 20 * max(near.iterations, 15)


def test_a_long_search_says_how_far_it_is(caplog, monkeypatch):
    """With progress asked for, a search that is long says how much of its work is done."""
    monkeypatch.setattr(progress, "_PAUSE", 0.0)
    with caplog.at_level("INFO", logger="lissom"), pytest.warns(ls.StabilityWarning):
        ls.solve_statics(wound(6), progress=True)
    assert re.search(r"statics: no stable equilibrium yet, \d+ of \d+ steps", caplog.text)


def test_a_pendulum_on_its_head():
    """An inverted pendulum falls; its stiffness is its weight times its arm."""
    robot = ls.Robot("pendulum")
    robot.add_link("bar", ls.RigidBody(1.0, (0.1, 0.0, 0.0), (1e-4, 2e-3, 2e-3)), ls.JointRevolute((0, 1, 0)))
    model = built(robot)
    found = ls.solve_statics(model, q0=[-np.pi / 2])
    assert np.sin(found.q[0]) == pytest.approx(1.0, abs=1e-12)
    assert found.least_stiffness == pytest.approx(9.81 * 0.1 * model.dofs.scale[0] ** 2)


def test_neutral_motions_are_stable():
    """A planar body that floats without gravity is at rest anywhere, and stays there."""
    robot = ls.Robot("puck", gravity=(0, 0, 0))
    robot.add_link("puck", ls.RigidBody.box(0.1, 0.1, 0.1, density=100.0), ls.JointPlanar((0, 0, 1)))
    found = ls.solve_statics(built(robot), q0=[0.3, -0.2, 1.0])
    assert found.is_stable and found.least_stiffness == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_array_equal(found.q, [0.3, -0.2, 1.0])


def test_a_start_near_a_ring_of_equilibria_stays():
    """A round rod that has fallen over may turn about the vertical for nothing: from starts near one of its equilibria
    Newton's method stays near, in the kernel and in Python."""
    model = arm(True, basis=ls.BasisLegendre(torsion=2, bending_y=4, bending_z=4, elongation=2))
    rng = np.random.default_rng(1)
    rest = ls.solve_statics(model, q0=0.3 * rng.normal(size=model.nq))
    assert rest.is_stable and abs(rest.least_stiffness) < 1e-10
    for size in (1e-13, 1e-11, 1e-9, 1e-6, 1e-3):
        starts = rest.q + size * rng.normal(size=(24, model.nq)) * model.dofs.scale
        again = ls.solve_statics(model, q0=starts, stable=False)
        assert again.is_stable.all()
        assert (np.abs(again.q - starts) / model.dofs.scale).max() < 1e-3 + 100 * size
        for start in starts[:3]:
            w, why = newton_in_python(model, start, NONE, Sought(np.zeros((1, 3)), 0.0, 1.0, NONE, 1e-11, 100))
            q = results(w)[0][0]
            assert why == CONVERGED and (np.abs(q - start) / model.dofs.scale).max() < 1e-3 + 100 * size


def test_a_batch_says_which_are_unstable():
    """Fields have the leading axes of the arguments, and each entry is that of the single equilibrium."""
    model = arm(True, tendons=1, basis=ls.BasisLegendre(bending_y=3))
    tensions = np.array([[0.0], [10.0], [2.0], [6.0]]).reshape(2, 2, 1)
    near = ls.solve_statics(model, tensions, stable=False)
    assert near.is_stable.shape == near.unstable_count.shape == near.least_stiffness.shape == (2, 2)
    for at in np.ndindex(2, 2):
        one = ls.solve_statics(model, tensions[at], stable=False)
        assert (one.is_stable, one.unstable_count) == (near.is_stable[at], near.unstable_count[at])
        assert one.least_stiffness == pytest.approx(near.least_stiffness[at], rel=1e-6)
    assert not near.is_stable.all()
    assert ls.solve_statics(model, tensions).is_stable.all()


def test_a_ball_that_only_just_touches():
    """A contact without depth has no stiffness: the ball is found where it presses k δ^p = m g; with stable=False the
    error names the contact, its gap and what to do."""
    up = np.eye(4)
    up[2, 3] = 0.05
    robot = ls.Robot("ball")
    body = ls.RigidBody(0.7, inertia=(7e-4,) * 3, balls=[(0.0, 0.0, 0.0, 0.05)])
    robot.add_link("ball", body, ls.JointPrismatic((0, 0, 1)), placement=up)
    robot.add_contact("ground", "ball", ls.ShapePlane(), stiffness=1e6, exponent=1.5)
    model = built(robot)
    for height in (0.0, 0.01):
        found = ls.solve_statics(model, q0=[height])
        assert found.q[0] == pytest.approx(-((0.7 * 9.81 / 1e6) ** (1 / 1.5)), rel=1e-9) and found.is_stable
        with pytest.raises(ls.ConvergenceError, match=r"contact 'ground' on link 'ball' does not press.*pressed in"):
            ls.solve_statics(model, q0=[height], stable=False)
