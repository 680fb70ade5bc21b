"""Rods as chains of rigid links: against beam theory, against the rod itself, and what moves to the links."""

import numpy as np
import pytest

import lissom as ls

SOFT = ls.Material(young=5e5, density=1070, damping_time=0.02)
BENDING = ls.BasisLegendre(bending_y=3, bending_z=3)


def cantilever(radius=0.01, length=0.3, basis=BENDING, young=5e6, **rod):
    """A horizontal rod that is fixed at its base."""
    robot = ls.Robot("cantilever")
    material = ls.Material(young=young, density=1070, damping_time=0.02)
    robot.add_link("rod", ls.Rod(length, ls.SectionCircle(radius), basis, material, **rod))
    robot.add_frame("tip", "rod", s=1.0)
    return robot


def sag(robot):
    """The displacement of the frame "tip" from the neutral configuration to rest (3,) [m]."""
    model = robot.build()
    rest = ls.solve_statics(model).q
    return (ls.frame_pose(model, rest, "tip") - ls.frame_pose(model, model.neutral(), "tip"))[:3, 3]


@pytest.mark.parametrize("joints", [1, 2, 5, 20])
def test_error_under_a_tip_load_is_that_of_the_midpoint_rule(joints):
    """The compliance of joints at the middles of N elements of a uniform beam is L³/(3EI) (1 − 1/(4N²))."""
    (error,) = ls.rigid_chains(cantilever(), joints=joints).errors
    assert error.tip_load == pytest.approx(1.0 / (4 * joints**2), rel=1e-9)
    assert error.basis < 1e-12


@pytest.mark.parametrize("tolerance", [0.1, 0.01, 1e-3])
def test_number_of_joints_follows_from_the_tolerance(tolerance):
    """The stated errors are within the tolerance, and one element less is not."""
    (error,) = ls.rigid_chains(cantilever(), tolerance=tolerance).errors
    assert max(error.tip_load, error.weight) <= tolerance
    (fewer,) = ls.rigid_chains(cantilever(), joints=error.joints - 1).errors
    assert max(fewer.tip_load, fewer.weight) > tolerance


@pytest.mark.parametrize(
    "robot",
    [
        cantilever(young=1e8),
        cantilever((0.012, 0.006), young=1e8),
        cantilever(young=1e8, reference_strain=(0, 2.0, 3.0, 1, 0, 0), basis=ls.BasisLegendre(2, 4, 4, 1)),
    ],
    ids=["straight", "tapered", "curved"],
)
def test_small_deflections_differ_by_the_stated_error(robot):
    """The tip of the chain at rest is where the rod's is, to the error that is stated of it (and the bend squared)."""
    made = ls.rigid_chains(robot, tolerance=0.02)
    exact, ours = sag(robot), sag(made.robot)
    away = np.linalg.norm(ours - exact) / np.linalg.norm(exact)
    assert max(made.errors[0].weight, made.errors[0].tip_load) <= 0.0201
    assert away <= 1.2 * made.errors[0].weight + 2e-3
    assert away > 1e-4  # it is an error, and not that of another robot


def test_large_deflections_tend_to_those_of_the_rod():
    """A rod that hangs down by its weight: the error falls with the square of the number of elements."""
    robot = cantilever(young=3e5)
    exact = sag(robot)
    assert exact[2] < -0.15
    away = [np.linalg.norm(sag(ls.rigid_chains(robot, joints=n).robot) - exact) for n in (4, 8, 16)]
    assert away[0] / away[1] == pytest.approx(4.0, rel=0.25)
    assert away[2] < 4e-3 * np.linalg.norm(exact)


@pytest.mark.parametrize("radius", [0.01, (0.015, 0.005)], ids=["uniform", "tapered"])
@pytest.mark.parametrize("bend", [0.0, 4.0], ids=["straight", "curved"])
def test_mass_centre_and_inertia_are_those_of_the_rod(radius, bend):
    """The composite inertia of the chain in the stress-free shape is that of the rod, in a fine quadrature."""
    robot = cantilever(radius, reference_strain=(0, bend, 0.0, 1, 0, 0), gauss_points=12, exponentials=2)
    robot.links["rod"] = ls.Robot().add_link("rod", robot.links["rod"].body, ls.JointFree())
    model, chain = robot.build(), ls.rigid_chains(robot, joints=7).robot.build()
    M, N = (ls.mass_matrix(one, one.neutral())[:6, :6] for one in (model, chain))
    np.testing.assert_allclose(N, M, atol=1e-9 * np.abs(M).max())
    assert N[5, 5] == pytest.approx(M[5, 5], rel=1e-13)


def test_slow_vibrations_and_their_damping_are_those_of_the_rod():
    """The first two frequencies of bending agree to 1 %; the damping, in proportion to the stiffness, too."""
    robot = cantilever(young=1e8)
    robot.gravity = (0.0, 0.0, 0.0)
    models = robot.build(), ls.rigid_chains(robot, joints=20).robot.build()
    first, chain = (ls.modes(model, model.neutral()).frequencies[:4] for model in models)
    np.testing.assert_allclose(chain, first, rtol=0.01)
    K, D = (f(models[1]) for f in (ls.stiffness_matrix, ls.damping_matrix))
    np.testing.assert_allclose(D, 0.02 * K, rtol=1e-12, atol=1e-15)


def test_all_strains_become_joints():
    """A rod of six strains stretches, shears and twists as a chain: the tip load moves it by the compliance matrix."""
    basis = ls.BasisLegendre(1, 1, 1, 1, 1, 1)
    robot = cantilever(0.03, 0.2, basis, young=1e7)
    robot.gravity = (0.0, 0.0, 0.0)
    robot.add_point_load("pull", "rod", force=(0.5, 0.1, -0.2), moment=(0.01, 0.0, 0.0))
    made = ls.rigid_chains(robot, joints=12)
    assert made.errors[0].strains == ("torsion", "bending_y", "bending_z", "elongation", "shear_y", "shear_z")
    np.testing.assert_allclose(sag(made.robot), sag(robot), rtol=5e-3, atol=1e-7)


def test_tendons_bend_the_chain_as_the_rod():
    """A tendon along a rod, and one around it, bend the chain as they bend the rod, to 1 %."""
    robot = cantilever(basis=ls.BasisLegendre(torsion=3, bending_y=4, bending_z=4))
    robot.add_tendon("straight", "rod", (0.0, 0.006), stop=0.8)
    robot.add_tendon("helix", "rod", lambda s: (0.006 * np.cos(3 * s), 0.006 * np.sin(3 * s)))
    chain = ls.rigid_chains(robot, joints=20).robot
    for u in ((3.0, 0.0), (0.0, 3.0)):
        tips = []
        for one in (robot, chain):
            model = one.build()
            tips.append(ls.frame_pose(model, ls.solve_statics(model, u).q, "tip")[:3, 3])
        assert np.linalg.norm(tips[0] - (0.3, 0.0, 0.0)) > 0.02
        assert np.linalg.norm(tips[1] - tips[0]) < 0.01 * np.linalg.norm(tips[0] - (0.3, 0.0, 0.0))


@pytest.mark.filterwarnings("ignore:tendon .air_line.:lissom.AccuracyWarning")
def test_chamber_becomes_a_tendon_that_pushes():
    """A chamber of constant area has the same generalised force as before, and one that varies is left out by name."""
    robot = cantilever(basis=ls.BasisLegendre(bending_y=2, elongation=1))
    robot.gravity = (0.0, 0.0, 0.0)
    robot.add_chamber("air", "rod", offset=(0.0, 0.005), area=4e-5)
    robot.add_chamber("cone", "rod", area=(4e-5, 2e-5))
    robot.limit_input("cone", 0.0, 1e5)
    made = ls.rigid_chains(robot, joints=20)
    assert made.left_out == ("pressure on sections, or area that varies, of chamber 'cone'",)
    models = robot.build(), made.robot.build()
    assert models[1].inputs.names == ("air",)
    tips = [ls.frame_pose(one, ls.solve_statics(one, u).q, "tip")[:3, 3] for one, u in
            zip(models, ((3e4, 0.0), (3e4,)))]  # fmt: skip
    rest = ls.frame_pose(models[0], ls.solve_statics(models[0]).q, "tip")[:3, 3]
    assert np.linalg.norm(tips[1] - tips[0]) < 0.01 * np.linalg.norm(tips[0] - rest)


def laden():
    """A curved rod that carries links, frames, springs, loops, loads and controlled wrenches on its length."""
    robot = cantilever(reference_strain=(0.5, 3.0, -2.0, 1, 0, 0), basis=ls.BasisLegendre(2, 3, 3), young=5e6)
    turn = np.eye(4)
    turn[:3, :3] = [[0, -1, 0], [1, 0, 0], [0, 0, 1]]
    turn[:3, 3] = 0.01, 0.02, 0.03
    ball, below = ls.RigidBody.sphere(0.02, density=500.0), np.eye(4)
    below[2, 3] = -1.0
    robot.add_link("branch", ball, ls.JointUniversal(stiffness=0.5), parent="rod", at=0.45, placement=turn)
    robot.add_link("end", ball, ls.JointRevolute((0, 1, 0), stiffness=0.3), parent="rod", placement=turn)
    robot.add_link("side", ls.RigidBody.box(0.05, 0.02, 0.02, density=500.0), ls.JointPrismatic(stiffness=40.0))
    robot.add_frame("middle", "rod", s=0.61, placement=turn)
    hook = ls.PathPoint("rod", (0.0, 0.0, 0.01), 0.7)
    robot.add_spring("stay", ls.PathPoint(None, (0.2, 0.1, 0.3)), hook, stiffness=5.0, rest=0.1)
    robot.add_spring("tie", "rod", "side", stiffness=2.0)
    robot.add_point_load("follower", "rod", s=0.8, force=(0.0, 0.02, 0.01), moment=(1e-3, 0, 0), frame="body")
    robot.add_wrench_input("jet", "rod", s=0.9, directions=(0, 0, 0, 0, 1, 0), position=(0.0, 0.0, 0.01))
    robot.add_contact("floor", ["rod", "branch"], ls.ShapePlane(), placement=below, stiffness=100.0)
    robot.add_state("home", {"branch": (0.1, 0.2)}, inputs={"jet": 0.3})
    return robot


def test_parts_on_a_rod_stay_at_their_places():
    """Frames and links on a curved rod are at the same poses in the stress-free shape, and act alike at rest."""
    robot = laden()
    chain = ls.rigid_chains(robot, joints=30).robot
    models = robot.build(), chain.build()
    for name, s in (("middle", None), ("branch", 0.0), ("end", 0.0), ("tip", None)):
        poses = [ls.frame_pose(one, one.neutral(), name, **({} if s is None else {"s": s})) for one in models]
        np.testing.assert_allclose(poses[1], poses[0], atol=1e-7)
    rests = [ls.solve_statics(one, [0.1]).q for one in models]
    for name in ("middle", "branch", "end", "side", "tip"):
        a, b = (ls.frame_pose(one, q, name)[:3, 3] for one, q in zip(models, rests))
        start = ls.frame_pose(models[0], models[0].neutral(), name)[:3, 3]
        assert np.linalg.norm(b - a) < 0.01 * np.linalg.norm(a - start) + 1e-6, name
    assert set(chain.contacts["floor"].links) == {"branch", "rod", *(f"rod_{k}" for k in range(1, 31))}
    assert chain.states == robot.states


def test_robot_without_rods_stays_as_it_is():
    """A rigid robot comes back with the same links, and the given robot is never changed."""
    robot = laden()
    before = dict(robot.links)
    ls.rigid_chains(robot)
    assert robot.links == before
    stiff = ls.Robot("stiff")
    stiff.add_link("a", ls.RigidBody.sphere(0.1, density=1000.0), ls.JointRevolute())
    made = ls.rigid_chains(stiff)
    assert made.robot.links == stiff.links and made.errors == () and made.left_out == ()


def test_rod_of_few_modes_states_its_own_error():
    """A rod of constant curvature is stiffer than the beam: 3/4 of its deflection, which more joints do not reduce."""
    (error,) = ls.rigid_chains(cantilever(basis=ls.BasisLegendre(bending_y=0)), joints=50).errors
    assert error.tip_load == pytest.approx(1.0 / 3.0, rel=1e-3)
    assert error.basis > 0.3


def test_wrong_arguments_and_bodies_are_refused():
    """A model, a tolerance of zero, no joints, and deformable bodies are refused by name."""
    with pytest.raises(ls.ModelError, match="expected a Robot"):
        ls.rigid_chains(cantilever().build())
    with pytest.raises(ls.ModelError, match="tolerance"):
        ls.rigid_chains(cantilever(), tolerance=0.0)
    with pytest.raises(ls.ModelError, match="joints"):
        ls.rigid_chains(cantilever(), joints=0)
    robot, rubber = ls.Robot("soft"), ls.HyperelasticSaintVenantKirchhoff(young=1e5, poisson=0.4)
    cells = ls.DomainTetrahedra(*ls.box_mesh((0.1, 0.1, 0.1), (1, 1, 1)))
    robot.add_link("brick", ls.DeformableBody(ls.KinematicsFiniteElements(cells), cells, rubber, density=1e3))
    with pytest.raises(ls.ModelError, match="link 'brick' > body: must not be deformable: no chain of rigid links"):
        ls.rigid_chains(robot)


def test_chains_feel_no_fluid():
    """A rod in water becomes a dry chain, which is told; rigid bodies stay in the water."""
    robot = cantilever()
    robot.add_link("ball", ls.RigidBody.sphere(0.05, density=500.0), ls.JointFree())
    robot.set_fluid(density=1000.0)
    made = ls.rigid_chains(robot, joints=3)
    assert made.left_out == ("fluid of the rods",)
    model = made.robot.build()
    wet, dry = (float(ls.forward_dynamics(one, one.neutral(), np.zeros(one.nv))[-1]) for one in (model, robot.build()))
    assert wet == pytest.approx(dry) and wet > 1.0  # the ball rises
    chain = ls.rigid_chains(cantilever(), joints=3).robot.build()
    q = np.full(chain.nq, 0.1)
    ours = ls.forward_dynamics(model, np.concatenate([q, [1.0], np.zeros(6)]), np.zeros(model.nv))[: chain.nv]
    np.testing.assert_allclose(ours, ls.forward_dynamics(chain, q, np.zeros(chain.nv)), rtol=1e-9)
