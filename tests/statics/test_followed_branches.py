"""Equilibria that start at the last one stay on its branch, or a warning says that they left it."""

import numpy as np
import pytest

import lissom as ls

LENGTH, RADIUS, YOUNG = 1.0, 0.005, 1e7
ROD = ls.Rod(
    LENGTH, ls.SectionCircle(RADIUS), ls.BasisLegendre(torsion=6, bending_y=10, bending_z=10),
    ls.Material(young=YOUNG, poisson=0.5, density=1100),
)  # fmt: skip


def arch(distance, turn):
    """A rod whose ends are clamped at a distance, one of them turned about the line between them."""
    c, s = np.cos(turn), np.sin(turn)
    robot = ls.Robot("arch")
    robot.add_link("rod", ROD)
    end = np.array([[1, 0, 0, distance], [0, c, -s, 0], [0, s, c, 0], [0, 0, 0, 1.0]])
    robot.add_loop("clamp", "rod", s_a=1.0, placement_b=end, joint=ls.JointFixed())
    return robot.build()


def twist(model, q):
    """Rotation of the sections about the centreline [turns]."""
    R = ls.frame_pose(model, q, "rod", s=np.linspace(0, 1, 401))[:, :3, :3]
    between = np.einsum("nij,nik->njk", R[:-1], R[1:])
    return (between[:, 2, 1] - between[:, 1, 2]).sum() / (4.0 * np.pi)


@pytest.fixture(scope="module")
def bent():
    """The arch before its end is turned."""
    q = np.zeros(arch(1.0, 0.0).nv)
    q[7], q[9] = 0.5, 3.0
    for k in range(1, 11):
        model = arch(1.0 - 0.03 * k, 0.0)
        q = ls.solve_statics(model, q0=ls.assemble(model, q)).q
    return q


@pytest.mark.parametrize("share", [10, 5])
@pytest.mark.parametrize("closes", [True, False])
def test_a_twisted_arch_keeps_its_turns(bent, share, closes):
    """The end of an arch is turned by 3 π in steps of π/10 and π/5. The work of the clamp is the energy of the arch, so
    that no turn is lost; no solve takes long. The starts are closed by `assemble`, or by solve_statics."""
    q, step, energy, moment, turns = bent, np.pi / share, [], [], []
    for k in range(3 * share + 1):
        model = arch(0.7, k * step)
        rest = ls.solve_statics(model, q0=ls.assemble(model, q) if closes else q)
        q = rest.q
        assert rest.is_stable and rest.iterations < 80
        energy.append(ls.energy(model, q, np.zeros(model.nv)).total)
        moment.append(ls.loop_wrenches(model, q, rest.multipliers)[0, 0])
        turns.append(twist(model, q))
    work = step * np.cumsum(0.5 * (np.array(moment[1:]) + moment[:-1]))
    np.testing.assert_allclose(np.array(energy[1:]) - energy[0], work, rtol=0.01)
    assert (np.diff(turns) > 0.0).all()
    assert turns[-1] == pytest.approx(1.3293, abs=1e-3)  # the same for all steps; the rest of 1.5 turns is writhe


@pytest.fixture(scope="module")
def truss():
    """A spring that snaps through, and the load at which it does."""
    robot = ls.Robot("truss", gravity=(0, 0, 0))
    robot.add_link("slide", ls.RigidBody(0.1), ls.JointPrismatic((0, 1, 0)))
    robot.add_spring("bar", "slide", ls.PathPoint(None, position=(1.0, 0.3, 0.0)), stiffness=1e3)
    robot.add_joint_actuator("push", "slide")
    d = 0.3 - np.linspace(0.0, 0.3, 3001)
    length, free = np.hypot(1.0, d), np.hypot(1.0, 0.3)
    return robot.build(), (1e3 * (free - length) * d / length).max()


def test_a_branch_that_ends_is_told(truss):
    """A spring snaps through under a load beyond its limit: the start's branch has no equilibrium there. The result is
    the one beyond, with a warning that says where the branch ends."""
    model, limit = truss
    rest = ls.solve_statics(model, [0.95 * limit], q0=[0.0])
    assert 0.0 < rest.q[0] < 0.3
    with pytest.warns(
        ls.StabilityWarning, match=r"the equilibria that follow from q0 end at .* of the release from q0"
    ):
        beyond = ls.solve_statics(model, [1.05 * limit], q0=rest.q)
    assert beyond.is_stable and beyond.q[0] > 0.6


def test_no_branch_of_unstable_equilibria_is_followed(truss):
    """From an unstable equilibrium below the limit load, the path to a load beyond it ends at the limit, too. A robot
    that is released there does not follow this path, so that no warning says that it left it."""
    model, limit = truss
    start = ls.solve_statics(model, [0.95 * limit], q0=[0.17], stable=False)
    assert start.unstable_count == 1 and 0.13 < start.q[0] < 0.3
    beyond = ls.solve_statics(model, [1.05 * limit], q0=start.q)
    assert beyond.is_stable and beyond.q[0] > 0.6
