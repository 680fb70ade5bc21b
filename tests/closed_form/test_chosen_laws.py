"""Contact laws chosen from materials: Hertz in statics, the restitution of a bounce, rest, and rules for friction."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq, fsolve

import lissom as ls
from lissom.robot.contact_laws import hysteresis_of

RUBBER = ls.Material(young=2e6, poisson=0.45, density=1100.0, friction=0.8, restitution=0.7)
STEEL = ls.Material(young=210e9, poisson=0.3, density=7850.0, friction=0.2, restitution=0.9)
BALL = ls.Material(young=5e6, poisson=0.3, density=900.0)


def modulus(*sides):
    """E* of two sides by Johnson (4.6)."""
    return 1.0 / sum((1.0 - x.poisson**2) / x.young for x in sides)


def hertz_depth(force, E, low, high):
    """The approach of two bodies with relative curvatures low <= high under a force, from the potential of an elliptic
    pressure (Johnson section 4.2), by quadrature."""

    def integral(a, b, by_a, by_b):
        # ∫ dw / (√(a² + w) √(b² + w) √w) over w from 0, with further factors, by w = t²
        return quad(lambda t: 2.0 * (a * a + t * t) ** (-0.5 - by_a) * (b * b + t * t) ** (-0.5 - by_b), 0, np.inf)[0]

    def gap(x):
        a, b = np.exp(x)
        load = 3.0 * force / (2.0 * np.pi * E)
        return np.log([load * integral(a, b, 1, 0) / low, load * integral(a, b, 0, 1) / high])

    size = (0.75 * force / E / np.sqrt(low * high)) ** (1 / 3)
    a, b = np.exp(fsolve(gap, np.log([size * (high / low) ** 0.3, size * (low / high) ** 0.3]), xtol=1e-12))
    return 0.75 * force / (np.pi * E) * integral(a, b, 0, 0)


def resting(shape, radius=0.03, **contact):
    """How deep a ball of BALL that moves up and down rests on a shape, and its weight."""
    robot = ls.Robot("rest")
    lift = np.eye(4)
    lift[2, 3] = radius
    robot.add_link("ball", ls.RigidBody.sphere(radius, material=BALL), ls.JointPrismatic((0, 0, 1)), placement=lift)
    down = np.eye(4)
    down[2, 3] = -getattr(shape, "radius", 0.0)
    robot.add_contact("floor", "ball", shape, placement=down, **contact)
    model = robot.build()
    return -float(ls.solve_statics(model, q0=[-1e-5]).q[0]), 9.81 * 900.0 * 4 / 3 * np.pi * radius**3


def test_a_ball_rests_as_deep_as_hertz_says():
    """A ball on a plane, on a sphere and on a cylinder along x, with the modulus of both sides."""
    E, radius, other = modulus(RUBBER, BALL), 0.03, 0.05
    cases = [(ls.ShapePlane(), 1 / radius, 1 / radius), (ls.ShapeSphere(other), 1 / radius + 20, 1 / radius + 20),
             (ls.ShapeCylinder(other), 1 / radius, 1 / radius + 20), (ls.ShapeCapsule(other, 0.5), 1 / radius,
             1 / radius + 20)]  # fmt: skip
    for shape, low, high in cases:
        depth, weight = resting(shape, radius, material=RUBBER)
        assert depth == pytest.approx(hertz_depth(weight, E, low, high), rel=1e-6)
        if low == high:
            assert depth == pytest.approx((9 * weight**2 * low / 16 / E**2) ** (1 / 3), rel=1e-8)  # Johnson (4.23)


def test_rods_that_cross_press_as_hertz_says():
    """Two rods of different radii that cross at right angles press with the force of crossed cylinders."""
    robot, apart = ls.Robot("cross", gravity=(0, 0, 0)), 0.0299
    for name, radius in (("a", 0.02), ("b", 0.01)):
        rod = ls.Rod(0.5, ls.SectionCircle(radius), ls.BasisLegendre(bending_z=0), RUBBER, gauss_points=3)
        across = np.array([[0.0, -1, 0, 0.25], [1, 0, 0, -0.25], [0, 0, 1, -apart], [0, 0, 0, 1]])
        robot.add_link(name, rod, placement=None if name == "a" else across)
    robot.add_contact("touch", "a", others="b")
    model = robot.build()
    found = ls.contact_forces(model, model.neutral())
    assert len(found.depth) == 1 and found.depth[0] == pytest.approx(0.03 - apart)
    force = np.linalg.norm(found.force[0])
    assert hertz_depth(force, modulus(RUBBER, RUBBER), 50.0, 100.0) == pytest.approx(1e-4, rel=1e-6)


LENGTH, RADII, DEPTH = 0.4, (0.02, 0.03), 1e-4


def parallel(kind, turn=0.0):
    """Contact forces of two cylinders of steel and rubber above each other, DEPTH deep, with axes at an angle."""
    robot = ls.Robot("pair", gravity=(0, 0, 0))
    upper = ls.lie.se3_exp([0.0, 0.0, turn, 0.0, 0.0, 0.0])
    upper[2, 3] = sum(RADII) - DEPTH
    if kind == "rods":
        for name, radius, material, place in (("a", RADII[0], RUBBER, upper), ("b", RADII[1], STEEL, np.eye(4))):
            rod = ls.Rod(LENGTH, ls.SectionCircle(radius), ls.BasisLegendre(bending_z=1), material)
            robot.add_link(name, rod, ls.JointFree(), placement=place)
        robot.add_contact("touch", "a", others="b", friction=0.0)
    else:
        robot.add_link("a", ls.RigidBody.cylinder(LENGTH, RADII[0], material=RUBBER), placement=upper)
        shape = {"cylinder": ls.ShapeCylinder(RADII[1]), "capsule": ls.ShapeCapsule(RADII[1], 2.0)}[kind]
        robot.add_contact("touch", "a", shape, material=STEEL, friction=0.0)
    model = robot.build()
    return ls.contact_forces(model, model.neutral())


@pytest.mark.parametrize("kind", ["rods", "cylinder", "capsule"])
@pytest.mark.parametrize("turn", [0.0, 0.02])
def test_parallel_cylinders_press_along_a_line(kind, turn):
    """Parallel cylinders carry π/4 E* l δ with the moduli of both, whatever their radii. At right angles they are
    softer, since they cross at a point."""
    expected = 0.25 * np.pi * modulus(RUBBER, STEEL) * LENGTH * DEPTH
    found = parallel(kind, turn)
    if turn == 0.0:
        np.testing.assert_allclose(found.force.sum(axis=0), [0, 0, expected], rtol=1e-9, atol=1e-9 * expected)
    else:
        assert 0.0 < np.linalg.norm(found.force.sum(axis=0)) < expected  # balls at the ends have less depth
    crossed = np.linalg.norm(parallel(kind, 0.5 * np.pi).force.sum(axis=0))
    assert crossed < 0.2 * expected


def test_rods_are_parallel_in_parts():
    """Where a curved rod follows a straight one the law is that of a line, and where it crosses it that of a point."""
    robot = ls.Robot("pair", gravity=(0, 0, 0))
    curved = ls.Rod(LENGTH, ls.SectionCircle(RADII[0]), ls.BasisLegendre(bending_z=1), RUBBER,
                    reference_strain=[0, 0, 2.0, 1, 0, 0])  # fmt: skip
    straight = ls.Rod(LENGTH, ls.SectionCircle(RADII[1]), ls.BasisLegendre(bending_z=1), STEEL)
    upper = np.eye(4)
    upper[2, 3] = sum(RADII) - DEPTH
    robot.add_link("a", curved, ls.JointFree(), placement=upper)
    robot.add_link("b", straight, ls.JointFree())
    robot.add_contact("touch", "a", others="b", friction=0.0)
    model = robot.build()
    force = np.linalg.norm(ls.contact_forces(model, model.neutral()).force.sum(axis=0))
    assert 0.0 < force < 0.25 * np.pi * modulus(RUBBER, STEEL) * LENGTH * DEPTH
    assert set(model.contacts.law[:, 1]) == {1.0, 1.5}


def test_a_cylinder_rests_along_another():
    """A cylinder that rests along a round rail sinks by its weight over π/4 E* l."""
    robot, (small, large) = ls.Robot("rail"), RADII
    up = np.eye(4)
    up[2, 3] = small + large
    body = ls.RigidBody.cylinder(LENGTH, small, density=900.0, material=RUBBER)
    robot.add_link("roll", body, ls.JointPrismatic((0, 0, 1)), placement=up)
    robot.add_contact("rail", "roll", ls.ShapeCylinder(large), material=STEEL)
    model = robot.build()
    weight = 9.81 * 900.0 * np.pi * small**2 * LENGTH
    found = ls.solve_statics(model, q0=[-1e-5])
    assert -found.q[0] == pytest.approx(weight / (0.25 * np.pi * modulus(RUBBER, STEEL) * LENGTH), rel=1e-8)


@pytest.mark.parametrize("count", [1, 4])
def test_a_rod_presses_on_a_plane_by_its_length(count):
    """A straight rod pressed flat by δ carries π/4 E* δ per metre, however many balls it has, and its law shows it."""
    robot = ls.Robot("flat", gravity=(0, 0, 0))
    robot.add_link("rod", ls.Rod(0.4, ls.SectionCircle(0.01), ls.BasisLegendre(bending_z=1), RUBBER), ls.JointFree())
    down = np.eye(4)
    down[2, 3] = -0.0098
    robot.add_contact("floor", "rod", ls.ShapePlane(), placement=down, per_interval=count)
    model = robot.build()
    force = ls.contact_forces(model, model.neutral()).force.sum(axis=0)
    np.testing.assert_allclose(force, [0, 0, np.pi / 4 * modulus(RUBBER) * 0.4 * 2e-4], rtol=1e-9, atol=1e-12)


def test_a_box_presses_as_a_flat_punch():
    """A box pressed flat into a soft floor carries 2 E* a δ, with the radius a of a circle of its mean face."""
    robot = ls.Robot("punch", gravity=(0, 0, 0))
    robot.add_link("box", ls.RigidBody.box(0.1, 0.1, 0.1, material=STEEL), ls.JointFree())
    down = np.eye(4)
    down[2, 3] = -0.0499
    robot.add_contact("floor", "box", ls.ShapePlane(), placement=down, material=RUBBER)
    model = robot.build()
    force = ls.contact_forces(model, model.neutral()).force.sum(axis=0)
    expected = 2 * modulus(STEEL, RUBBER) * np.sqrt(0.01 / np.pi) * 1e-4
    np.testing.assert_allclose(force, [0, 0, expected], rtol=1e-9, atol=1e-9)


def test_a_ball_bounces_by_its_restitution():
    """An impact at the stated speed returns the coefficient of restitution of the pair, given or of the materials."""
    for given, e in (({"restitution": 0.4}, 0.4), ({"restitution": 0.1}, 0.1), ({}, 0.7)):
        robot, speed = ls.Robot("bounce", gravity=(0, 0, 0)), 0.3
        robot.add_link("ball", ls.RigidBody.sphere(0.03, material=RUBBER), ls.JointPrismatic((0, 0, 1)))
        wall = np.eye(4)
        wall[2, 3] = -0.0301
        robot.add_contact("wall", "ball", ls.ShapePlane(), placement=wall, impact_speed=speed, friction=0.0, **given)
        motion = ls.simulate(robot.build(), 0.1, v0=[-speed], rtol=1e-9, atol=1e-11)
        assert motion.v[-1, 0] == pytest.approx(e * speed, rel=1e-6)


@pytest.mark.parametrize("e", [0.05, 0.2, 0.5, 0.9])
def test_the_hysteresis_of_an_impact_speed(e):
    """The hysteresis that is exact at one speed returns e there by the integral of the motion, and a little less than e
    of the fastest impacts."""
    for ratio in (5.0 / e**2, 100.0 / e**2):
        b = hysteresis_of(e, ratio)
        assert rebound(b, 1.0, ratio) == pytest.approx(e * ratio, rel=1e-9)
        fastest = np.sqrt((1.0 - b) / (1.0 + b))
        assert 0.97 * e < fastest < e


def above_wall(body, lift, material=None, **contact):
    """A body without weight that moves up and down over a plane, 0.1 mm above it."""
    robot, up = ls.Robot("bounce", gravity=(0, 0, 0)), np.eye(4)
    up[2, 3] = lift + 1e-4
    robot.add_link("body", body, ls.JointPrismatic((0, 0, 1)), placement=up)
    robot.add_contact("wall", "body", ls.ShapePlane(), friction=0.0, material=material, **contact)
    return robot.build()


def rebound(b, width, speed):
    """The speed after an impact by the law k δ^p (1 + b w/√(w² + v_r²)): both phases have the same ∫ k δ^p dδ."""

    def work(v, b):
        return quad(lambda w: w / (1.0 + b * w / np.hypot(w, width)), 0.0, v, epsabs=0.0, epsrel=1e-12, limit=200)[0]

    return brentq(lambda v: work(v, -b) - work(speed, b), 1e-9 * speed, speed, xtol=1e-12 * speed)


BODIES = {
    "ball": (ls.RigidBody.sphere(0.03, material=BALL), 0.03, {}),
    "box": (ls.RigidBody.box(0.1, 0.08, 0.06, material=BALL), 0.03, {}),
    "box with surfaces": (ls.RigidBody.box(0.1, 0.08, 0.06, material=BALL), 0.03, {"surface": 4}),
    "rod": (
        ls.Rod(0.2, ls.SectionCircle(0.02), ls.BasisLegendre(torsion=0), STEEL, gauss_points=4),
        0.02,
        {"material": BALL},
    ),
}


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("e", [0.2, 0.5, 0.9])
def test_restitution_does_not_depend_on_the_speed(name, e):
    """From 0.05 to 5 m/s a ball, a box on its face and a rod along its side return the speed of the law. It is the
    stated share where the impact is much faster than the settling speed v_r: to 2 % above 6 v_r/e²."""
    body, lift, given = BODIES[name]
    model = above_wall(body, lift, restitution=e, **given)
    b, width = model.contacts.law[0, 7:9]
    assert width < 0.05 and b == pytest.approx((1 - e**2) / (1 + e**2))
    for speed in (0.05, 0.5, 5.0):
        start = np.append(-speed, np.zeros(model.nv - 1))
        motion = ls.simulate(model, 3e-4 / speed + 0.03, v0=start, rtol=1e-7, atol=1e-10)
        found = motion.v[-1, 0]
        assert found == pytest.approx(rebound(b, width, speed), rel=1e-5)
        if speed > 6.0 / e**2 * width:
            assert found == pytest.approx(e * speed, rel=0.02)


@pytest.mark.parametrize("speed", [0.5, 5.0])
def test_an_edge_returns_its_own_speed(speed):
    """A tilted box that hits a plane without friction with one edge turns away: the edge returns e times its speed, by
    works at the point of contact, and loses the energy (1 − e²) v²/2 of its mass 1/(1/m + x²/I)."""
    robot, tilt, e = ls.Robot("edge", gravity=(0, 0, 0)), 0.3, 0.4
    stiff = ls.Material(young=5e9, poisson=0.3, density=900.0)
    robot.add_link("box", ls.RigidBody.box(0.1, 0.08, 0.06, material=stiff), ls.JointFree())
    robot.add_contact("wall", "box", ls.ShapePlane(), friction=0.0, restitution=e)
    model = robot.build()
    corner = ls.lie.so3_exp([0.0, tilt, 0.0]) @ np.array([0.05, 0.0, -0.03])
    q = ls.integrate(model, model.neutral(), np.array([0.0, tilt, 0.0, 0.0, 0.0, 0.0]))
    q[6] = 1e-6 - corner[2]
    down = ls.lie.so3_exp([0.0, -tilt, 0.0]) @ np.array([0.0, 0.0, -speed])
    motion = ls.simulate(model, 4e-3 / speed**0.2, q, np.append(np.zeros(3), down), rtol=1e-8, atol=1e-10)
    lost = ls.energy(model, q, motion.v[0]).kinetic - ls.energy(model, q, motion.v[-1]).kinetic
    m, across = model.links.mass[0], model.links.mass[0] / 12 * (0.1**2 + 0.06**2)
    assert lost == pytest.approx(0.5 * (1 - e**2) * speed**2 / (1 / m + corner[0] ** 2 / across), rel=0.02)


@pytest.mark.parametrize("surface", [False, 3, 6])
def test_a_body_settles_on_its_patch(surface):
    """With e = 0.5, a box that is pressed a little off its rest returns as a critically damped one: (1 + ω t) exp(−ω t)
    with ω² = g/δ₀, on its corners and on any number of cells. Its friction has half the critical damping."""
    robot, up = ls.Robot("rest"), np.eye(4)
    up[2, 3] = 0.03
    robot.add_link("box", ls.RigidBody.box(0.1, 0.08, 0.06, material=BALL), ls.JointPrismatic((0, 0, 1)), placement=up)
    robot.add_contact("floor", "box", ls.ShapePlane(), surface=surface)
    model = robot.build()
    rest = float(ls.solve_statics(model, q0=[-1e-6]).q[0])
    omega, off = np.sqrt(9.81 / -rest), -1e-4 * rest
    times = np.linspace(0.0, 6.0, 7) / omega
    motion = ls.simulate(model, times[-1], [rest - off], t_eval=times, rtol=1e-9, atol=1e-9 * off)
    expected = -off * (1.0 + omega * times) * np.exp(-omega * times)
    # to the area of the mean face, from which the four corners have their stiffness
    np.testing.assert_allclose(motion.q[:, 0] - rest, expected, rtol=0, atol=(0.06 if not surface else 1e-3) * off)
    stick = 1.4 / 1.7 * 9.81 / -rest  # tangential stiffness of the patch, over the mass
    assert model.contacts.law[0, 6] == pytest.approx(stick**-0.5, rel=1e-6)


@pytest.mark.parametrize("surface", [False, True])
def test_a_block_below_the_friction_angle_stays(surface):
    """A block that is laid on a slope of 0.98 of its angle of friction stops after some microns, and stays."""
    angle, mu = 0.98 * np.arctan(0.5), 0.5
    robot = ls.Robot("slope", gravity=(9.81 * np.sin(angle), 0, -9.81 * np.cos(angle)))
    robot.add_link("block", ls.RigidBody.box(0.1, 0.1, 0.05, material=BALL), ls.JointFree())
    robot.add_contact("slope", "block", ls.ShapePlane(), friction=mu, surface=surface)
    motion = ls.simulate(robot.build(), 1.0, [1, 0, 0, 0, 0, 0, 0.025], rtol=1e-5, t_eval=[0.0, 0.1, 0.5, 1.0])
    x = motion.q[:, 4]
    assert 0.0 < x[1] < 1e-4
    np.testing.assert_allclose(x[2:], x[1], rtol=0, atol=1e-9)


def law_of(a, b, **contact):
    """The row of the law of a ball of material a on a plate of material b."""
    robot = ls.Robot("pair")
    robot.add_link("ball", ls.RigidBody.sphere(0.03, density=1000, material=a), ls.JointFree())
    robot.add_contact("touch", "ball", ls.ShapePlane(), material=b, **contact)
    world = robot.build().contacts
    return dict(zip(("k", "p", "c", "mu", "v_s", "k_t", "tau", "b", "v_r"), world.laws_of(np.array([0]))[0]))


def test_what_materials_say_is_combined_by_rules():
    """Friction is the geometric mean, or that of one side; restitution weighs the compliances; given numbers win."""
    assert law_of(RUBBER, STEEL)["mu"] == pytest.approx(np.sqrt(0.8 * 0.2))
    assert law_of(RUBBER, None)["mu"] == law_of(None, RUBBER)["mu"] == 0.8
    assert law_of(BALL, None)["mu"] == 0.5 and law_of(RUBBER, STEEL, friction=0.1)["mu"] == 0.1
    soft = law_of(RUBBER, None)["b"]
    assert law_of(RUBBER, STEEL)["b"] == pytest.approx(soft, rel=1e-4) and law_of(STEEL, STEEL)["b"] < soft
    given = law_of(RUBBER, None, damping=0.3)
    assert given["c"] == 0.3 and given["b"] == 0.0 and law_of(RUBBER, None)["c"] == 0.0
    assert law_of(RUBBER, None, restitution=1.0)["b"] == 0.0
    smooth = law_of(RUBBER, None, slip_speed=0.01)
    assert smooth["k_t"] == 0.0 and smooth["v_s"] == 0.01 and law_of(RUBBER, None)["k_t"] > 0.0
    assert law_of(RUBBER, None, friction=0.0)["k_t"] == 0.0


def test_numbers_that_are_given_keep_their_meaning():
    """With a stiffness, parameters that are not given have their defaults without materials, or a material's values."""
    before = {"k": 1e5, "p": 1.5, "c": 0.0, "mu": 0.0, "v_s": 1e-3, "k_t": 0.0, "tau": 1e-3, "b": 0.0}
    assert law_of(BALL, None, stiffness=1e5).items() >= before.items()
    assert law_of(None, None, stiffness=1e5).items() >= before.items()
    stated = law_of(STEEL, RUBBER, stiffness=1e5)
    assert stated.items() >= (before | {"mu": stated["mu"], "b": stated["b"]}).items()
    assert stated["mu"] == pytest.approx(0.4) and stated["b"] == pytest.approx(law_of(STEEL, RUBBER)["b"])
    assert law_of(None, None)["k"] == pytest.approx(4 / 3 * 3e9 / (1 - 0.35**2) * np.sqrt(0.03))


WRONG = {
    "exponent": ({"exponent": 2.0}, "contact 'touch': exponent: needs a stiffness (got 2.0)"),
    "twice": (
        {"damping": 1.0, "restitution": 0.5},
        "restitution: must be None with a damping, which states it already",
    ),
    "and speed": (
        {"damping": 1.0, "impact_speed": 0.5},
        "impact_speed: must be None with a damping, whose restitution falls with the speed",
    ),
    "lively": ({"restitution": 1.5}, "contact 'touch': restitution: must be <= 1 (got 1.5)"),
    "dead": ({"restitution": 0.0}, "contact 'touch': restitution: must be > 0 (got 0.0)"),
    "speed": ({"impact_speed": 0.0}, "contact 'touch': impact_speed: must be > 0 (got 0.0)"),
    "friction": ({"friction": -1.0}, "contact 'touch': friction: must be >= 0 (got -1.0)"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_choices(name):
    """Numbers that contradict each other are refused by name."""
    given, message = WRONG[name]
    with pytest.raises(ls.ModelError) as caught:
        law_of(None, None, **given)
    assert message in str(caught.value)


def test_wrong_materials():
    """A material of a shape, of a body and of a surface is checked."""
    with pytest.raises(ls.ModelError, match="contact 'touch': material: must be a Material"):
        law_of(None, "steel")
    with pytest.raises(ls.ModelError, match="material: friction: must be >= 0"):
        law_of(ls.Material(young=1.0, density=1.0, friction=-0.1), None)
    with pytest.raises(ls.ModelError, match=r"RigidBody.sphere > density: must be given, or a material that has one"):
        ls.RigidBody.sphere(0.1)
