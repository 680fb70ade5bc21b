"""Shapes kept in steady motion: closed forms, what dynamics does with them, and small motions about them."""

import numpy as np
import pytest

import lissom as ls

MASS, ARM, SPEED = 0.7, 0.4, 9.0
HANGING = np.array([[0.0, 0, 1, 0], [0, 1, 0, 0], [-1, 0, 0, 0], [0, 0, 0, 1]])  # turns x down
SILICONE = ls.Material(young=1e6, density=1000, viscosity=2e3)


def steady(robot, link, speed):
    """The robot with a joint that turns at a constant speed."""
    robot.add_joint_motion("turn", link, position=lambda t: speed * t, velocity=lambda t: speed,
                           acceleration=lambda t: 0.0)  # fmt: skip
    return robot


def governor(*, driven):
    """A point mass on an arm that swings from a shaft, which turns."""
    robot = ls.Robot("governor")
    robot.add_link("shaft", ls.RigidBody.cylinder(0.1, 0.02, density=1000), ls.JointRevolute((0, 0, 1)))
    robot.add_link("arm", ls.RigidBody(MASS, com=(0, 0, -ARM)), ls.JointRevolute((0, 1, 0)), "shaft")
    return (steady(robot, "shaft", SPEED) if driven else robot).build()


def rotor(speed=6.0, *, driven=True, python=False):
    """A soft arm that sticks out of a shaft under gravity and turns with it."""
    robot = ls.Robot("rotor")
    robot.add_link("shaft", ls.RigidBody.cylinder(0.1, 0.02, density=1000), ls.JointRevolute((0, 0, 1)))
    rod = ls.Rod(0.4, ls.SectionCircle(0.012), ls.BasisLegendre(bending_y=4, bending_z=3, torsion=1), SILICONE)
    at = np.eye(4)
    at[:3, 3] = 0.05, 0.02, 0.0
    robot.add_link("arm", rod, parent="shaft", placement=at)
    if python:
        robot.add_force("nothing", "arm", lambda *state: np.zeros(6))
    return (steady(robot, "shaft", speed) if driven else robot).build()


def top():
    """A top in gimbals: precession about z, nutation about y, spin about its own z."""
    robot = ls.Robot("top")
    robot.add_link("outer", None, ls.JointRevolute((0, 0, 1)))
    robot.add_link("inner", None, ls.JointRevolute((0, 1, 0)), "outer")
    robot.add_link("top", ls.RigidBody(0.3, (0, 0, 0.04), (3e-4, 3e-4, 4e-4)), ls.JointRevolute((0, 0, 1)), "inner")
    return robot.build()


@pytest.mark.parametrize("driven", [True, False], ids=["motion", "velocity"])
def test_governor(driven):
    """The arm of a governor stands at cos θ = g/Ω²l and swings about that at Ω sin θ; the drive feels nothing."""
    model = governor(driven=driven)
    v = None if driven else [SPEED, 0.0]
    found = ls.solve_statics(model, q0=[0.3, 0.8], v=v)
    angle = np.arccos(9.81 / SPEED**2 / ARM)
    np.testing.assert_allclose(abs(found.q[1]), angle, rtol=1e-12)
    assert found.q[0] == (0.0 if driven else 0.3)
    np.testing.assert_array_equal(found.v, [SPEED, 0.0])
    assert found.residual < 1e-11 and found.multipliers.shape == (model.n_multipliers,)
    if driven:
        swing = ls.modes(model, found.q).frequencies
        np.testing.assert_allclose(swing, SPEED * np.sin(angle), rtol=1e-9)
    rest = ls.solve_statics(model, q0=[0.3, 0.8], v=[0.0, 0.0]) if driven else None
    assert rest is None or abs(np.sin(rest.q[1])) < 1e-10


@pytest.mark.parametrize("precession", [2.0, 12.0])
def test_steady_precession_of_a_top(precession):
    """A top that precesses at Ω and spins at n relative to its gimbals leans by θ with
    (I₁ − I₃) Ω² cos θ − I₃ n Ω + m g l = 0, and nutates about that as its equation of nutation says."""
    across, polar, weight = 3e-4 + 0.3 * 0.04**2, 4e-4, 0.3 * 9.81 * 0.04
    angle = 0.6
    spin = (weight + (across - polar) * precession**2 * np.cos(angle)) / polar / precession
    model = top()
    v = np.array([precession, 0.0, spin])
    found = ls.solve_statics(model, q0=[0.2, 0.5, 0.1], v=v)
    np.testing.assert_allclose(found.q, [0.2, angle, 0.1], rtol=1e-11)
    # with both momenta kept: I₁ θ'' = −V'(θ) of V = (p − h cos θ)²/(2 I₁ sin²θ) + m g l cos θ
    momentum = polar * (spin + precession * np.cos(angle))
    about_z = across * np.sin(angle) ** 2 * precession + momentum * np.cos(angle)

    def slope(x):
        """V'."""
        turn = (about_z - momentum * np.cos(x)) / (across * np.sin(x) ** 2)
        return -(across * turn**2 * np.sin(x) * np.cos(x) - momentum * turn * np.sin(x) + weight * np.sin(x))

    nutation = np.sqrt((slope(angle + 1e-5) - slope(angle - 1e-5)) / 2e-5 / across)
    exponents = ls.modes(model, found.q, v=v).exponents
    np.testing.assert_allclose(np.abs(exponents.imag).max(), nutation, rtol=1e-8)
    assert np.sort(np.abs(exponents))[-2] < 1e-4 * nutation, "its two turns cost nothing"


@pytest.mark.parametrize("python", [False, True], ids=["kernel", "Python"])
def test_a_soft_rotor_keeps_its_shape(python):
    """Forward dynamics has no acceleration at a shape found, whichever Newton iteration found it, by a motion or by
    its speed; the drive needs no moment; batches and times agree."""
    model, free = rotor(python=python), rotor(driven=False)
    found = ls.solve_statics(model)
    speed = np.zeros(model.nv)
    speed[0] = 6.0
    for made in (model, free):
        a = ls.forward_dynamics(made, found.q, speed)
        assert np.abs(a).max() < 1e-6
    tau = ls.inverse_dynamics(free, found.q, speed, 0 * speed)
    np.testing.assert_allclose(tau[0], found.multipliers[0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(tau[1:], 0.0, atol=1e-10)
    same = ls.solve_statics(free, q0=np.tile(found.q * 0.9, (2, 1)), v=speed)
    np.testing.assert_allclose(same.q[:, 1:], np.tile(found.q[1:], (2, 1)), rtol=0, atol=1e-9)
    assert same.v.shape == (2, model.nv)
    still = ls.solve_statics(model, v=np.zeros(model.nv))
    assert not still.v.any() and np.abs(ls.difference(model, still.q, found.q)).max() > 0.1
    K = ls.tangent_stiffness(model, found.q)
    moves = 1e-6 * np.eye(model.nv)[1:]
    zero = np.zeros(model.nv)
    by_q = [ls.inverse_dynamics(free, found.q + d, speed, zero) - ls.inverse_dynamics(free, found.q - d, speed, zero)
            for d in moves]  # fmt: skip
    np.testing.assert_allclose(K[1:, 1:], np.array(by_q).T[1:] / 2e-6, rtol=0, atol=1e-7 * np.abs(K).max())


def test_a_rotor_let_go_at_its_shape_stays():
    """Simulated from the shape found it keeps it to the tolerance of the integration."""
    model = rotor()
    found = ls.solve_statics(model)
    motion = ls.simulate(model, 0.5, found.q, found.v, method="radau", rtol=1e-8, atol=1e-10)
    assert np.abs(motion.q[:, 1:] - found.q[1:]).max() < 1e-6
    np.testing.assert_allclose(motion.q[-1, 0], 3.0, rtol=1e-12)


@pytest.mark.filterwarnings("ignore:statics. the equilibria that follow from q0 end:lissom.errors.StabilityWarning")
def test_a_fast_rotor_is_reached_in_steps():
    """A start far from the shape takes load steps, in which inertia forces rise with the load."""
    model = rotor(60.0)
    speed = np.zeros(model.nv)
    speed[0] = 60.0
    q0 = np.full(model.nq, 8.0)
    for made, v in ((model, None), (rotor(driven=False), speed)):
        found = ls.solve_statics(made, q0=q0, v=v)
        assert np.abs(ls.forward_dynamics(made, found.q, speed)).max() < 1e-5
        assert found.q[0] == (0.0 if v is None else 8.0)


def test_a_free_robot_that_spins():
    """Soft arms on a free hub that spins in space bend outwards; the hub stays where it is, and small motions about
    it are bounded."""
    robot = ls.Robot("propeller", gravity=(0, 0, 0))
    robot.add_link("hub", ls.RigidBody.cylinder(0.05, 0.03, density=2000), ls.JointFree())
    rod = ls.Rod(0.2, ls.SectionCircle(0.008), ls.BasisLegendre(bending_y=3, bending_z=3), SILICONE)
    for k in range(3):
        at = np.eye(4)
        c, s = np.cos(2 * np.pi * k / 3), np.sin(2 * np.pi * k / 3)
        lean = np.array([[0.8, 0, -0.6], [0, 1, 0], [0.6, 0, 0.8]])
        at[:3, :3] = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]) @ lean
        at[:3, 3] = 0.03 * at[:3, 0]
        robot.add_link(f"arm {k}", rod, parent="hub", placement=at)
    model = robot.build()
    v = np.zeros(model.nv)
    v[2] = 8.0
    q0 = model.neutral()
    q0[4:7] = 1.0, 2.0, 3.0
    found = ls.solve_statics(model, q0=q0, v=v)
    np.testing.assert_array_equal(found.q[:7], q0[:7])
    assert found.residual < 1e-12
    tip = ls.frame_pose(model, found.q, "arm 0")[:3, 3] - q0[4:7]
    before = ls.frame_pose(model, q0, "arm 0")[:3, 3] - q0[4:7]
    assert tip[2] < before[2] - 1e-3, "arms that lean up are pulled down"
    a = ls.forward_dynamics(model, found.q, v)
    np.testing.assert_allclose(a, 0.0, atol=1e-6)
    found_modes = ls.modes(model, found.q, v=v, damped=True)
    assert np.real(found_modes.exponents).max() < 1e-4


def turning_loop(speed=4.0):
    """Two arms on a turntable, tied by a spherical loop; the table turns as prescribed."""
    robot = ls.Robot("turning loop", gravity=(0, 0, -3.0))
    robot.add_link("table", ls.RigidBody.box(0.2, 0.2, 0.05, density=500), ls.JointRevolute((0, 0, 1)))
    rod = ls.Rod(0.3, ls.SectionCircle(0.02), ls.BasisLegendre(bending_y=2, bending_z=2, torsion=0), SILICONE)
    for name, y in (("left", 0.05), ("right", -0.05)):
        at = np.eye(4)
        at[1, 3] = y
        robot.add_link(name, rod, parent="table", placement=at)
    tie = np.eye(4)
    tie[1, 3] = -0.1
    robot.add_loop("tie", "left", "right", placement_a=tie, joint=ls.JointSpherical())
    return steady(robot, "table", speed).build()


def test_small_motions_of_a_loop_that_turns():
    """Damped exponents about the shape of a loop on a turntable are eigenvalues of A, and shapes its vectors; undamped
    ones are imaginary; the loop stays closed in both."""
    model = turning_loop()
    found = ls.solve_statics(model)
    assert np.abs(ls.forward_dynamics(model, found.q, found.v)).max() < 1e-6
    A = ls.linearize(model, found.q).A
    rows = ls.constraint_jacobian(model, found.q)
    modes = ls.modes(model, found.q, damped=True)
    for s, x in zip(modes.exponents, modes.shapes.T):
        z = np.append(x, s * x)
        assert np.abs(A @ z - s * z).max() < 1e-6 * abs(s) * np.abs(z).max()
        assert np.abs(rows @ x).max() < 1e-10 * np.abs(x).max()
    assert np.abs(ls.modes(model, found.q).exponents.real).max() == 0.0


def tied_to_the_ground():
    """A crank that turns, and a soft link from it to the ground."""
    robot = ls.Robot("tied", gravity=(0, 0, 0))
    robot.add_link("crank", ls.RigidBody(0.1, (0.05, 0, 0), (1e-5, 1e-4, 1e-4)), ls.JointRevolute((0, 0, 1)))
    at = np.eye(4)
    at[0, 3] = 0.1
    rod = ls.Rod(0.3, ls.SectionCircle(0.01), ls.BasisLegendre(bending_z=3), SILICONE)
    robot.add_link("link", rod, ls.JointRevolute((0, 0, 1)), parent="crank", placement=at)
    ground = np.eye(4)
    ground[:3, 3] = 0.2, 0.25, 0.0
    robot.add_loop("foot", "link", None, placement_b=ground, joint=ls.JointRevolute((0, 0, 1)))
    return steady(robot, "crank", 1.0).build()


@pytest.mark.filterwarnings("ignore::lissom.RedundancyWarning")
def test_a_loop_that_a_motion_moves_has_no_steady_shape():
    """Where prescribed joints move a loop statics says that it takes the robot at rest; a v that does so is refused,
    as is one that changes a rod."""
    model = tied_to_the_ground()
    rest = ls.solve_statics(model, v=np.zeros(model.nv), t=0.1)
    with pytest.warns(
        ls.AccuracyWarning, match=r"robot 'tied': statics takes the robot at rest, .* would open loop 'foot'"
    ):
        found = ls.solve_statics(model, t=0.1)
    np.testing.assert_array_equal(found.q, rest.q)
    assert not found.v.any()
    with pytest.raises(ls.ModelError, match=r"^v: must not move loop 'foot' \(it parts at"):
        ls.solve_statics(model, v=[1.0, *np.zeros(model.nv - 1)])
    with pytest.raises(ls.ModelError, match=r"^v\[3\]: must be zero for the shape of link 'link'"):
        ls.solve_statics(model, v=[0, 0, 0, 1.0, *np.zeros(model.nv - 4)])
    for v in (np.zeros(2), np.full(model.nv, np.nan)):
        with pytest.raises(ls.ShapeError, match=r"^v: expected finite values of shape"):
            ls.solve_statics(model, v=v)


def test_a_motion_that_accelerates_is_taken_at_its_speed():
    """A robot that starts to move at t = 0 is at rest there, whatever its acceleration; later it has the speed of that
    time, as if it were kept up."""
    robot = ls.Robot("starting governor")
    robot.add_link("shaft", None, ls.JointRevolute((0, 0, 1)))
    robot.add_link("arm", ls.RigidBody(MASS, com=(0, 0, -ARM)), ls.JointRevolute((0, 1, 0)), "shaft")
    robot.add_joint_motion("turn", "shaft", position=lambda t: 5.0 * t**2, velocity=lambda t: 10.0 * t,
                           acceleration=lambda t: 10.0)  # fmt: skip
    model = robot.build()
    np.testing.assert_allclose(ls.solve_statics(model, q0=[0, 0.3]).q, 0.0, atol=1e-12)
    found = ls.solve_statics(model, q0=[0, 0.8], t=0.9)
    np.testing.assert_allclose(found.q, [4.05, np.arccos(9.81 / SPEED**2 / ARM)], rtol=1e-12)


@pytest.mark.parametrize("driven", [True, False], ids=["motion", "velocity"])
def test_stability_is_that_of_the_motion(driven):
    """The arm of a governor that hangs straight is stable at rest, not at speed, where its stiffness is
    m g l − m l² Ω²; from next to it the lifted shape is found, which is stable."""
    model, v = governor(driven=driven), None if driven else [SPEED, 0.0]
    straight = ls.solve_statics(model, q0=[0.0, 0.0], v=v, stable=False)
    assert straight.q[1] == 0.0 and not straight.is_stable and straight.unstable_count == 1
    np.testing.assert_allclose(straight.least_stiffness, MASS * ARM * (9.81 - ARM * SPEED**2), rtol=1e-12)
    lifted = ls.solve_statics(model, q0=[0.0, 0.01], v=v)
    assert lifted.is_stable and abs(np.cos(lifted.q[1]) - 9.81 / SPEED**2 / ARM) < 1e-12
    if driven:
        assert ls.solve_statics(model, v=np.zeros(2)).is_stable
