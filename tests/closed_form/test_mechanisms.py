"""Closed rigid mechanisms against their exact reduction to one coordinate.

The references of mechanisms.py are integrated to 1e-12. Steps of second order leave an error that falls with h²: one
fine step is compared to 1e-6, and three coarse ones give the order.
"""

from types import SimpleNamespace

import numpy as np
import pytest
from closed_form.mechanisms import FourBar, SliderCrank, Truss
from scipy.optimize import brentq

import lissom as ls

pytestmark = pytest.mark.filterwarnings("ignore::lissom.RedundancyWarning")  # planar loops in space; tested below

DOWN = (0.0, -9.81, 0.0)
BARS = FourBar()
PISTON = SliderCrank()
# joint coordinates from the angles (θ, φ, ψ) of crank, coupler and rocker, by the joint that is closed as a loop, and
# from the angles and the place (θ, φ, x) of crank, rod and slider
FROM_ANGLES = {
    "B": np.array([[1, 0, 0], [-1, 1, 0], [0, 0, 1]]),
    "A": np.array([[1, 0, 0], [0, 0, 1], [0, 1, -1]]),
    "O": np.array([[0, 0, 1], [0, 1, -1], [1, -1, 0]]),
    "slider": np.array([[1, 0, 0], [-1, 1, 0], [0, 0, 1]]),
}


def shift(x, y=0.0, z=0.0):
    """Pose of a frame moved without a turn."""
    g = np.eye(4)
    g[:3, 3] = x, y, z
    return g


def bar(mass, length, com):
    """A slender bar along x with its centre of mass at x = com."""
    return ls.RigidBody(mass, (com, 0, 0), (1e-6, mass * length**2 / 12, mass * length**2 / 12))


def four_bar(bars, cut="B", closure=None):
    """The mechanism in the x-y plane with its joint `cut` closed by a loop; the motor needs the crank on the ground."""
    (a, b, c), masses = bars.lengths, bars.masses
    pin, closure = ls.JointRevolute(), closure or ls.JointRevolute()
    robot = ls.Robot("four-bar", gravity=DOWN)
    if cut != "O":
        robot.add_link("crank", bar(masses[0], a, a / 2), pin)
    if cut == "B":
        robot.add_link("coupler", bar(masses[1], b, b / 2), pin, "crank", placement=shift(a))
    robot.add_link("rocker", bar(masses[2], c, c / 2), pin, placement=shift(bars.ground))
    if cut != "B":
        robot.add_link("coupler", bar(masses[1], b, -b / 2), pin, "rocker", placement=shift(c))
    if cut == "O":
        robot.add_link("crank", bar(masses[0], a, -a / 2), pin, "coupler", placement=shift(-b))
    link_a, link_b, at_a, at_b = {
        "B": ("coupler", "rocker", shift(b), shift(c)),
        "A": ("coupler", "crank", shift(-b), shift(a)),
        "O": ("crank", None, shift(-a), None),
    }[cut]
    robot.add_loop("closure", link_a, link_b, placement_a=at_a, placement_b=at_b, joint=closure)
    if cut != "O":
        robot.add_joint_actuator("motor", "crank")
    return robot.build()


def slider_crank(piston, closure=None):
    """The mechanism in the x-y plane; a loop pins the rod to the slider."""
    masses, pin = piston.masses, ls.JointRevolute()
    robot = ls.Robot("slider-crank", gravity=DOWN)
    robot.add_link("crank", bar(masses[0], piston.crank, piston.crank / 2), pin)
    robot.add_link("rod", bar(masses[1], piston.rod, piston.rod / 2), pin, "crank", placement=shift(piston.crank))
    slider = ls.RigidBody(masses[2], inertia=(piston.slider_inertia,) * 3)
    robot.add_link("slider", slider, ls.JointPrismatic(), placement=shift(0, piston.offset))
    robot.add_loop("closure", "rod", "slider", placement_a=shift(piston.rod), joint=closure or pin)
    robot.add_joint_actuator("motor", "crank")
    return robot.build()


class Case:
    """A mechanism, its model, and how the model's coordinates and loop force follow from the crank's motion."""

    def __init__(self, mechanism, cut="B", closure=None, start=(0.5, 12.0), torque=0.0):
        self.mechanism, self.cut, self.start, self.torque = mechanism, cut, start, torque
        is_bars = isinstance(mechanism, FourBar)
        self.model = four_bar(mechanism, cut, closure) if is_bars else slider_crank(mechanism, closure)

    def coordinates(self, theta, speed, acceleration=0.0):
        """q, v and a."""
        jets = self.mechanism.angles(theta)
        if isinstance(self.mechanism, SliderCrank):
            jets = np.column_stack([jets, self.mechanism.slide(theta)])
        q, first, second = jets @ FROM_ANGLES["slider" if isinstance(self.mechanism, SliderCrank) else self.cut].T
        return q, first * speed, first * acceleration + second * speed**2

    def reference(self, times, start=None):
        """(q, v, force): of joints (n, 3), and the force on link a of the loop in the world, complex (n,)."""
        motion = self.mechanism.motion(*(start or self.start), times=times, torque=self.torque).T
        q, v = zip(*[self.coordinates(theta, speed)[:2] for theta, speed, _ in motion])
        force = [self.mechanism.reactions(*x)[0][self.cut] for x in motion]
        return np.array(q), np.array(v), np.array(force)

    def simulate(self, times, **options):
        """The model's motion from the same start."""
        q0, v0, _ = self.coordinates(*self.start)
        return ls.simulate(self.model, float(times[-1]), q0, v0, [self.torque] * self.model.nu, t_eval=times, **options)

    def force(self, motion):
        """Moment and force on link a of the loop in the world, (n, 6)."""
        q, multipliers = np.atleast_2d(motion.q), np.atleast_2d(motion.multipliers)
        local = ls.loop_wrenches(self.model, q, multipliers)[:, 0]
        link_b = {"B": "rocker" if isinstance(self.mechanism, FourBar) else "slider", "A": "crank"}.get(self.cut)
        R = ls.frame_pose(self.model, q, link_b)[:, :3, :3] if link_b else np.tile(np.eye(3), (len(local), 1, 1))
        return np.einsum("nij,nkj->nki", R, local.reshape(-1, 2, 3)).reshape(-1, 6)

    def errors(self, reference, motion):
        """Largest error of q, v and the loop's force."""
        q, v, force = reference
        loop = self.force(motion)
        missed = np.abs(loop[:, 3] + 1j * loop[:, 4] - force).max()
        return np.array([np.abs(motion.q - q).max(), np.abs(motion.v - v).max(), missed])


CASES = {
    "four-bar": lambda: Case(BARS),
    "four-bar, driven": lambda: Case(BARS, torque=0.8),
    "four-bar, folded": lambda: Case(FourBar(folded=True)),
    "four-bar, closed by a ball": lambda: Case(BARS, closure=ls.JointSpherical()),
    "four-bar, cut at the crank": lambda: Case(BARS, "A", start=(0.5, 18.0)),
    "four-bar, cut at the ground": lambda: Case(BARS, "O", start=(0.5, 18.0)),
    "slider-crank": lambda: Case(PISTON),
    "slider-crank, driven": lambda: Case(PISTON, torque=0.5),
    "slider-crank, closed by a ball": lambda: Case(PISTON, closure=ls.JointSpherical()),
}


@pytest.fixture(params=CASES)
def case(request):
    """Each mechanism in turn."""
    return CASES[request.param]()


@pytest.mark.parametrize("mechanism", [BARS, FourBar(folded=True), PISTON], ids=["bars", "folded", "piston"])
def test_references_hold_together(mechanism):
    """(1) conserves the energy, and needs in (2) the torque that (1) was given; jets are derivatives."""
    times = np.linspace(0.0, 1.0, 41)
    motion = mechanism.motion(0.5, 12.0, times, torque=0.3)
    energy = np.array([mechanism.energy(*x[:2]) - 0.3 * x[0] for x in motion.T])
    np.testing.assert_allclose(energy, energy[0], rtol=0, atol=1e-9 * np.abs(energy).max())
    torques = [mechanism.reactions(*x)[1] for x in motion.T]
    np.testing.assert_allclose(torques, 0.3, rtol=0, atol=1e-11)
    h = 1e-5
    for theta in (0.3, 2.0, 4.5):
        (c, phi), (c1, phi1), (c0, phi0) = (mechanism.bodies(x) for x in (theta, theta + h, theta - h))
        np.testing.assert_allclose((c1 - c0)[:2] / (2 * h), c[1:], rtol=0, atol=1e-9)
        np.testing.assert_allclose((phi1 - phi0)[:2] / (2 * h), phi[1:], rtol=0, atol=1e-9)


def test_assembly_finds_the_closed_form(case):
    """With one coordinate held, an open start closes to the angles of the reference, on its side of the fold."""
    exact = case.coordinates(case.start[0], 0.0)[0]
    held = 2 if case.cut == "O" else 0
    closed = ls.assemble(case.model, exact + 0.1 * np.insert([1.0, -0.5], held, 0.0), fixed=[held])
    assert closed[held] == exact[held]
    assert np.abs(ls.loop_residual(case.model, closed)).max() < 1e-12
    np.testing.assert_allclose(closed, exact, rtol=0, atol=1e-11)


def test_one_warning_of_redundancy():
    """A planar loop with a spatial revolute closure says once for each model that it is redundant."""
    model = four_bar(BARS)
    q0 = Case(BARS).coordinates(0.5, 0.0)[0]
    with pytest.warns(ls.RedundancyWarning) as said:
        ls.assemble(model, q0)
        ls.simulate(model, 1e-3, q0, dt=1e-3, method="newmark")
    assert len(said) == 1


@pytest.mark.parametrize("theta, speed", [(0.5, 12.0), (2.4, -7.0), (5.1, 0.0)])
def test_acceleration_at_a_point(case, theta, speed):
    """Forward dynamics gives the acceleration of (1), multipliers of least norm the force of (2); the loop stays closed
    with the reference's place, velocity and acceleration."""
    model = case.model
    alpha = case.mechanism.acceleration(theta, speed, case.torque)
    q, v, a = case.coordinates(theta, speed, alpha)
    assert np.abs(ls.loop_residual(model, q)).max() < 1e-14
    A, A_dot = ls.constraint_jacobian(model, q), ls.constraint_jacobian_derivative(model, q, v)
    np.testing.assert_allclose(A @ v, 0.0, rtol=0, atol=1e-13 * max(1.0, np.abs(v).max()))
    np.testing.assert_allclose(A @ a + A_dot @ v, 0.0, rtol=0, atol=1e-13 * np.abs(a).max())
    found = ls.forward_dynamics(model, q, v, [case.torque] * model.nu)
    np.testing.assert_allclose(found, a, rtol=0, atol=1e-11 * np.abs(a).max())
    left = ls.inverse_dynamics(model, q, v, a) - ls.actuation_matrix(model, q) @ ([case.torque] * model.nu)
    multipliers = np.linalg.lstsq(A.T, left, rcond=1e-10)[0]
    force = case.mechanism.reactions(theta, speed, alpha)[0][case.cut]
    wrench = case.force(SimpleNamespace(q=q, multipliers=multipliers))[0]
    exact = [0, 0, 0, force.real, force.imag, 0]
    np.testing.assert_allclose(wrench, exact, rtol=0, atol=1e-11 * max(1.0, abs(force)))


PINS = {  # of the closure, those that are joints of the tree, by the link behind them, and whether (2) has that on it
    "B": {"O": ("crank", 1), "A": ("coupler", 1), "D": ("rocker", 1)},
    "A": {"O": ("crank", 1), "B": ("coupler", 1), "D": ("rocker", 1)},
    "O": {"A": ("crank", -1), "B": ("coupler", 1), "D": ("rocker", 1)},
}


@pytest.mark.parametrize("theta, speed", [(0.5, 12.0), (2.4, -7.0), (5.1, 0.0)])
@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("four-bar")])
def test_reactions_in_the_pins(name, theta, speed):
    """The reaction in each joint is the force of (2), the multiplier of the bars' own equations, and about the axis
    minus the torque of the motor; the multipliers may be given or left to forward dynamics."""
    case = CASES[name]()
    model, u = case.model, [case.torque] * case.model.nu
    alpha = case.mechanism.acceleration(theta, speed, case.torque)
    q, v, a = case.coordinates(theta, speed, alpha)
    left = ls.inverse_dynamics(model, q, v, a) - ls.actuation_matrix(model, q) @ u
    multipliers = np.linalg.lstsq(ls.constraint_jacobian(model, q).T, left, rcond=1e-10)[0]
    forces, _ = case.mechanism.reactions(theta, speed, alpha)
    for pin, (link, sign) in PINS[case.cut].items():
        turned = ls.frame_pose(model, q, link)[:3, :3]
        exact = turned.T @ (-sign * np.array([forces[pin].real, forces[pin].imag, 0.0]))
        for options in ({}, {"multipliers": multipliers}):
            W = ls.joint_wrench(model, q, v, a, u, link, **options)
            torque = -case.torque if link == "crank" and case.cut != "O" else 0.0
            tolerance = 1e-11 * max(1.0, abs(forces[pin]))
            np.testing.assert_allclose(W, [0.0, 0.0, torque, *exact], rtol=0, atol=tolerance)


def lowest(mechanism):
    """The crank angle where V is least, next to −π/2."""
    angles = np.linspace(-3.5, 3.5, 141)
    slope = np.array([mechanism.potential(x)[1] for x in angles])
    (k,) = np.flatnonzero((slope[:-1] < 0) & (slope[1:] >= 0))
    return float(brentq(lambda x: mechanism.potential(x)[1], angles[k], angles[k + 1], xtol=1e-15))  # pyright: ignore[reportArgumentType]


def test_at_rest(case):
    """Statics finds the lowest place, and there the force in the loop that (2) has at rest."""
    theta = lowest(case.mechanism)
    found = ls.solve_statics(case.model, q0=case.coordinates(theta + 0.2, 0.0)[0])
    np.testing.assert_allclose(found.q, case.coordinates(theta, 0.0)[0], rtol=0, atol=1e-10)
    force = case.mechanism.reactions(theta, 0.0, 0.0)[0][case.cut]
    np.testing.assert_allclose(case.force(found)[0], [0, 0, 0, force.real, force.imag, 0], rtol=0, atol=1e-9)


def test_small_vibration(case):
    """Around the lowest place there is one frequency, √(V''/I)."""
    theta = lowest(case.mechanism)
    frequency = np.sqrt(case.mechanism.potential(theta)[2] / case.mechanism.inertia(theta)[0])
    modes = ls.modes(case.model, case.coordinates(theta, 0.0)[0])
    np.testing.assert_allclose(modes.frequencies, [frequency], rtol=1e-9)
    slope = case.coordinates(theta, 1.0)[1]
    np.testing.assert_allclose(np.cross(slope, modes.shapes[:, 0]), 0.0, rtol=0, atol=1e-9)


def test_a_fine_step_follows_the_reference(case):
    """Generalised-α at a fine step: joint angles to 1e-6; the loop does nothing out of the plane."""
    times = np.linspace(0.0, 0.25, 6)
    q, _, force = case.reference(times)
    motion = case.simulate(times, method=ls.generalized_alpha(0.9), dt=2e-5, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(motion.q, q, rtol=0, atol=1e-6)
    loop = case.force(motion)
    np.testing.assert_allclose(loop[:, [0, 1, 2, 5]], 0.0, rtol=0, atol=1e-9 * np.abs(force).max())


@pytest.mark.parametrize("rho", [0.9, 0.4])
def test_order_two(case, rho):
    """The errors of angles, speeds and loop force at common times fall with the square of the step."""
    times, steps = np.linspace(0.0, 0.25, 6), [2e-3, 1e-3, 5e-4]
    exact = case.reference(times)
    options = {"method": ls.generalized_alpha(rho), "rtol": 1e-9, "atol": 1e-11}
    errors = np.array([case.errors(exact, case.simulate(times, dt=dt, **options)) for dt in steps])
    orders = np.polyfit(np.log(steps), np.log(errors), 1)[0]
    np.testing.assert_allclose(orders, 2.0, rtol=0, atol=0.15, err_msg=str(errors))


@pytest.mark.parametrize("cut", ["A", "O"])
def test_a_turning_loop_passes_half_a_turn(cut):
    """The relative angle of the closed joint passes π and comes round; every step in between keeps it closed."""
    case = Case(BARS, cut, start=(0.5, 18.0))
    times = np.linspace(0.0, 0.9, 91)
    motion = case.simulate(times, method=ls.generalized_alpha(0.9), dt=1e-3, rtol=1e-10, atol=1e-12)
    theta = case.mechanism.motion(0.5, 18.0, times)[0]
    assert theta[-1] - theta[0] > 4 * np.pi
    q = case.reference(times)[0]
    assert np.abs(motion.q - q).max() < 2e-2
    assert np.abs(ls.loop_residual(case.model, motion.q)).max() < 1e-9


def test_bdf_follows_the_reference(case):
    """CVODE's errors of each step, rtol of the state, add up at random and grow as starts apart by as much do."""
    rtol, times = 1e-10, np.linspace(0.0, 0.4, 9)
    exact = case.reference(times)
    theta, speed = case.start
    apart = 1e-7 * np.abs(exact[0]).max(), 1e-7 * np.abs(exact[1]).max()
    nearby = [case.reference(times, start) for start in ((theta + apart[0], speed), (theta, speed + apart[1]))]
    growth = np.max([[np.abs(x - y).max() for x, y in zip(near, exact)] for near in nearby], axis=0) / 1e-7
    motion = case.simulate(times, method="bdf", rtol=rtol, atol=rtol)
    tolerance = 3 * np.sqrt(motion.statistics.steps) * rtol * growth
    assert tolerance[0] < 1e-5, "the motion is predictable enough to compare"
    errors = case.errors(exact, motion)
    assert np.all(errors < tolerance), (errors, tolerance)


TRUSS = Truss()


def truss():
    """The truss under its limit load, at factor 1."""
    L, x = TRUSS.bar, TRUSS.span(TRUSS.height)
    pin = ls.JointRevolute()
    robot = ls.Robot("truss", gravity=(0, 0, 0))
    robot.add_link("left", bar(0.3, L, L / 2), pin)
    robot.add_link("right", bar(0.3, L, L / 2), pin, "left", placement=shift(L))
    spring = ls.JointPrismatic(stiffness=TRUSS.stiffness)
    robot.add_link("foot", ls.RigidBody(0.2, inertia=(1e-4,) * 3), spring, placement=shift(x))
    robot.add_loop("hinge", "right", "foot", placement_a=shift(L), joint=pin)
    robot.add_point_load("weight", "left", force=(0, -TRUSS.limit()[1], 0), position=(L, 0, 0))
    return robot.build()


def truss_at(h):
    """Coordinates with the apex at height h."""
    slope = np.arcsin(h / TRUSS.bar)
    return np.array([slope, -2 * slope, TRUSS.span(h) - TRUSS.span(TRUSS.height)])


def test_truss_snaps_through_both_limit_points():
    """The load of the truss with a springy foot follows its closed form, turns back at ±1 and is unstable between."""
    branch = ls.continuation(truss(), q0=truss_at(TRUSS.height), factor=0.0, factor_range=(-1.5, 1.5), step=0.1)
    height, load = TRUSS.limit()
    h = TRUSS.bar * np.sin(branch.q[:, 0])
    assert branch.factor[0] == 0.0 and branch.factor[-1] == 1.5 and h[0] > height and h[-1] < -TRUSS.height
    np.testing.assert_allclose(branch.q, [truss_at(x) for x in h], rtol=0, atol=1e-10)
    np.testing.assert_allclose(branch.factor, TRUSS.load(h) / load, rtol=0, atol=1e-9)
    down, up = branch.events
    assert [(e.kind, e.count) for e in branch.events] == [("limit", 1)] * 2
    assert down.factor == pytest.approx(1.0, rel=1e-8) and up.factor == pytest.approx(-1.0, rel=1e-8)
    assert TRUSS.bar * np.sin(down.q[0]) == pytest.approx(height, rel=1e-8)
    assert TRUSS.bar * np.sin(up.q[0]) == pytest.approx(-height, rel=1e-8)
    np.testing.assert_array_equal(branch.unstable_count, np.abs(h) < height)
    np.testing.assert_array_equal(branch.stable, np.abs(h) >= height)


def test_truss_reaction():
    """At an equilibrium the foot pushes the bar with the spring's force and half the weight."""
    model, load = truss(), TRUSS.limit()[1]
    at = ls.solve_statics(model, q0=truss_at(-1.2 * TRUSS.height))  # below both feet: there is one equilibrium
    h = TRUSS.bar * np.sin(at.q[0])
    assert h < -TRUSS.height and TRUSS.load(h) == pytest.approx(load, rel=1e-10)
    push = -TRUSS.stiffness * (TRUSS.span(h) - TRUSS.span(TRUSS.height))
    (wrench,) = ls.loop_wrenches(model, at.q, at.multipliers)
    np.testing.assert_allclose(wrench, [0, 0, 0, push, load / 2, 0], rtol=0, atol=1e-9 * load)


@pytest.mark.parametrize("scheme", [ls.generalized_alpha(1.0), ls.newmark()], ids=lambda s: s.name)
def test_energy_stays_bounded(scheme):
    """Over many turns the energy of the free four-bar stays within a bound that falls with the square of the step."""
    case = Case(BARS, start=(0.5, 18.0))
    times, drifts = np.linspace(0.0, 9.0, 901), []
    for dt in (1e-3, 5e-4):
        motion = case.simulate(times, method=scheme, dt=dt, rtol=1e-9, atol=1e-11)
        energy = ls.energy(case.model, motion.q, motion.v).total
        assert motion.q[-1, 0] > 20 * 2 * np.pi
        drifts.append(np.abs(energy / energy[0] - 1.0).max())
    assert drifts[0] < 5e-4 and drifts[1] < 0.3 * drifts[0], drifts
