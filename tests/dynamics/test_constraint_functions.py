"""Couplings by one function of several coordinates: closed forms, other models, SymPy, and differences."""

from functools import lru_cache

import numpy as np
import pytest
import sympy
from scipy.integrate import solve_ivp

import lissom as ls

RUBBER = ls.Material(young=1e6, poisson=0.4, density=1000.0)
NOTHING = ls.RigidBody(0.0, (0, 0, 0), np.zeros((3, 3)))
G, LENGTH, MASS = 9.81, 0.5, 2.0
CIRCLE = ls.Expression("x*x + z*z", "x, z")


def particle(function, offset=0.0, *, gravity=(0, 0, -G), mass=MASS, **options):
    """A point that slides along x and z and satisfies a constraint."""
    robot = ls.Robot("particle", gravity=gravity)
    robot.add_link("x", NOTHING, ls.JointPrismatic((1, 0, 0)))
    robot.add_link("z", ls.RigidBody(mass, (0, 0, 0), np.zeros((3, 3))), ls.JointPrismatic((0, 0, 1)), parent="x")
    robot.add_coupling("curve", ["x", "z"], function=function, offset=offset, **options)
    return robot


def on_circle(angle, rate=0.0):
    """Place and velocity of a pendulum's bob at an angle from the lowest point."""
    place = LENGTH * np.array([np.sin(angle), -np.cos(angle)])
    return place, LENGTH * rate * np.array([np.cos(angle), np.sin(angle)])


@lru_cache
def pendulum():
    """The particle on a circle, and the same pendulum with a revolute joint."""
    robot = ls.Robot("pendulum", gravity=(0, 0, -G))
    bob = ls.RigidBody(MASS, (0, 0, -LENGTH), np.zeros((3, 3)))
    robot.add_link("bob", bob, ls.JointRevolute((0, -1, 0)))
    return particle(CIRCLE, LENGTH**2).build(), robot.build()


def test_a_particle_on_a_circle_accelerates_as_a_pendulum():
    """Tangential acceleration −g sin φ and centripetal acceleration L φ̇², and the multiplier times the gradient."""
    model, _ = pendulum()
    for angle, rate in ((0.3, 1.2), (2.5, -3.0), (-1.4, 0.0)):
        q, v = on_circle(angle, rate)
        along, inwards = on_circle(angle, 1.0)[1] / LENGTH, -q / LENGTH
        want = -G * np.sin(angle) * along + LENGTH * rate**2 * inwards
        np.testing.assert_allclose(ls.forward_dynamics(model, q, v), want, rtol=0, atol=1e-12)
        np.testing.assert_allclose(ls.constraint_jacobian(model, q), [2.0 * q], rtol=1e-15)


@pytest.mark.parametrize("method", ["auto", "esdirk", "dop853"])
def test_a_particle_on_a_circle_moves_as_a_pendulum(method):
    """Two swings over 1.5 s, through the top of the gradient's directions; the energy is kept."""
    model, other = pendulum()
    q, v = on_circle(2.0, 1.0)
    options = {"rtol": 1e-12, "atol": 1e-14}
    moved = ls.simulate(model, 1.5, q, v, method=method, **options)
    swung = ls.simulate(other, 1.5, [2.0], [1.0], method="dop853", **options)
    want = np.array([on_circle(*x) for x in zip(swung.q[-1], swung.v[-1])])[0]
    np.testing.assert_allclose(moved.q[-1], want[0], rtol=0, atol=1e-8)
    np.testing.assert_allclose(moved.v[-1], want[1], rtol=0, atol=1e-7)
    energy = ls.energy(model, moved.q, moved.v).total
    np.testing.assert_allclose(energy, energy[0], rtol=0, atol=1e-7)


def test_statics_with_a_multiplier():
    """The particle rests at the lowest point, held by 2 z λ = m g; the place follows from the search."""
    model, _ = pendulum()
    rest = ls.solve_statics(model, q0=on_circle(0.4)[0])
    assert rest.is_stable
    np.testing.assert_allclose(rest.q, [0.0, -LENGTH], rtol=0, atol=1e-9)
    assert abs(rest.multipliers[0]) == pytest.approx(MASS * G / (2.0 * LENGTH), rel=1e-9)


def test_an_elliptic_trammel():
    """The ends of a massless rod of length L on two tracks: with equal masses and without gravity its angle turns at a
    constant rate, and an assembly moves onto the circle of their distances."""
    robot = ls.Robot("trammel", gravity=(0, 0, 0))
    for name, axis in (("x", (1, 0, 0)), ("y", (0, 1, 0))):
        robot.add_link(name, ls.RigidBody(0.7, (0, 0, 0), np.zeros((3, 3))), ls.JointPrismatic(axis))
    robot.add_coupling("rod", ["x", "y"], function=ls.Expression("sqrt(x**2 + y**2)", "x, y"), offset=0.4)
    model = robot.build()
    for y in (0.1, 0.0):  # at y = 0 the constraint has no slope in y
        q = ls.assemble(model, [0.3, y], fixed=["x"])
        assert q[0] == 0.3 and abs(q[1]) == pytest.approx(np.sqrt(0.4**2 - 0.3**2), rel=1e-12)
    rate, angle = 2.0, np.array([0.3, 0.3 + 2.0])
    q, v = 0.4 * np.array([np.cos(0.3), np.sin(0.3)]), 0.8 * np.array([-np.sin(0.3), np.cos(0.3)])
    motion = ls.simulate(model, 1.0, q, v, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(motion.q[-1], 0.4 * np.array([np.cos(angle[1]), np.sin(angle[1])]), rtol=0, atol=1e-8)
    assert np.linalg.norm(motion.v[-1]) == pytest.approx(0.4 * rate, rel=1e-9)


def test_a_product_that_is_constant():
    """x z = c: the motion along a hyperbola equals that of x alone, z = c/x, by another solver."""
    model, c = particle(ls.Expression("x*z", "x, z"), 0.3).build(), 0.3

    def reduced(t, y):
        x, w = y  # (1 + c²/x⁴) ẍ = 2 c² ẋ²/x⁵ + g c/x²
        return [w, (2.0 * c**2 * w**2 / x**5 + G * c / x**2) / (1.0 + c**2 / x**4)]

    found = ls.simulate(model, 0.6, [0.5, 0.6], [0.4, -0.48], rtol=1e-11, atol=1e-13)
    want = solve_ivp(reduced, (0, 0.6), [0.5, 0.4], method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    np.testing.assert_allclose(found.q[-1], [want[0], c / want[0]], rtol=0, atol=1e-8)


TEXTS = [
    "sin(a*b) + c*exp(a/3)", "a**2*b/(2 + cos(c)) - c", "sqrt(3 + a*b*c) - log(4 + b*c + a)", "(2 + a*a)**(b*c)",
    "arctan(a*b) - arcsin(0.2*c*a) + arccos(0.2*b*c)", "tanh(a - b)*sinh(c/2) + cosh(a*c/3) - tan(b*c/5)",
    "(a + 2*b*c)**3 - 2**(a*c) + b", "-(a/(3 - b)) - (c - (a - b*c))",
]  # fmt: skip
POINTS = np.array([[0.7, 0.4, 0.9], [-0.6, 0.8, 0.3]])


def three_joints(function, offset=0.0):
    robot = ls.Robot("three")
    for name, axis in (("one", (1, 0, 0)), ("two", (0, 1, 0)), ("three", (0, 0.6, 0.8))):
        robot.add_link(name, ls.RigidBody(1.0, inertia=(0.02, 0.03, 0.04)), ls.JointRevolute(axis))
    robot.add_coupling("curve", ["one", "two", "three"], function=function, offset=offset)
    return robot.build()


@pytest.mark.parametrize("text", TEXTS)
def test_rows_and_their_derivatives_equal_sympy(text):
    """Φ, ∇Φ, vᵀ∇²Φ v, λ ∇²Φ, and the derivatives of A a + Ȧ v, with third derivatives of Φ, to rounding."""
    names = sympy.symbols("a b c")
    others = {"arcsin": sympy.asin, "arccos": sympy.acos, "arctan": sympy.atan}
    phi = sympy.sympify(text, locals=dict(zip("abc", names)) | others)
    model = three_joints(ls.Expression(text, "a, b, c"), 0.1)
    rng = np.random.default_rng(3)
    for q in POINTS:
        v, a = rng.normal(size=(2, 3))
        at = dict(zip(names, map(sympy.Float, q)))
        along = sum(float(x) * sympy.diff(phi, n) for x, n in zip(v, names))
        twice = sum(float(x) * sympy.diff(along, n) for x, n in zip(v, names))
        pushed = sum(float(x) * sympy.diff(phi, n) for x, n in zip(a, names)) + twice

        def numbers(expressions, at=at):
            return np.array([[float(x.subs(at)) for x in row] for row in expressions])

        gradient = numbers([[sympy.diff(phi, n) for n in names]])
        hessian = numbers([[sympy.diff(phi, n, m) for n in names] for m in names])
        d = ls.constraint_derivatives(model, q, v, a)
        for found, want in (
            (ls.loop_residual(model, q), [float(phi.subs(at)) - 0.1]),
            (ls.constraint_jacobian(model, q), gradient),
            (ls.constraint_jacobian_derivative(model, q, v), [hessian @ v]),
            (ls.constraint_force_derivative(model, q, np.array([1.7])), 1.7 * hessian),
            (d.residual_q, gradient),
            (d.velocity_q, [hessian @ v]),
            (d.acceleration_q, numbers([[sympy.diff(pushed, n) for n in names]])),
            (d.acceleration_v, [2.0 * hessian @ v]),
        ):
            np.testing.assert_allclose(found, want, rtol=1e-12, atol=1e-12, err_msg=text)


def test_a_sum_by_either_way_gives_the_same_numbers():
    """The same constraint as a sum of functions, as one function, and with a joint twice as steep."""
    parts = [ls.Expression(text, "q") for text in ("sin(q)", "0.3*q**2", "exp(q/5)")]
    robot = ls.Robot("three")
    for name, axis in (("one", (1, 0, 0)), ("two", (0, 1, 0)), ("three", (0, 0.6, 0.8))):
        robot.add_link(name, ls.RigidBody(1.0, inertia=(0.02, 0.03, 0.04)), ls.JointRevolute(axis))
    robot.add_coupling("curve", ["one", "two", "three"], parts, 1.0)
    summed = robot.build()
    whole = three_joints(ls.Expression("sin(a) + 0.3*b**2 + exp(c/5)", "a, b, c"), 1.0)
    rng = np.random.default_rng(4)
    q, v, a = rng.normal(size=(3, 3))
    q = ls.assemble(summed, q)
    np.testing.assert_allclose(ls.assemble(whole, q), q, rtol=0, atol=1e-14)
    v = ls.assemble_velocities(summed, q, v)
    np.testing.assert_allclose(ls.loop_residual(whole, q), ls.loop_residual(summed, q), rtol=0, atol=1e-15)
    same = {"rtol": 1e-13, "atol": 1e-13}
    np.testing.assert_allclose(ls.forward_dynamics(whole, q, v), ls.forward_dynamics(summed, q, v), **same)
    one, other = (ls.constraint_derivatives(m, q, v, a) for m in (whole, summed))
    for name in ("residual_q", "velocity_q", "acceleration_q", "acceleration_v"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-14, atol=1e-14)
    one, other = (ls.forward_dynamics_derivatives(m, q, v) for m in (whole, summed))
    for found, want in zip(one[:2], other[:2]):
        np.testing.assert_allclose(found, want, rtol=1e-12, atol=1e-12)


def test_traced_functions_are_the_same_programs():
    """A function made of jax.numpy has the rows of the expression with the same operations. What has no program, values
    of another shape and long functions are refused."""
    jnp = pytest.importorskip("jax.numpy")

    def curve(q):
        a, b, c = q
        return jnp.sin(a * b) + c * jnp.exp(a / 3) - jnp.sqrt(2 + b**4) / (3 - c)

    traced = three_joints(ls.TracedFunction(curve), 0.2)
    written = three_joints(ls.Expression("sin(a*b) + c*exp(a/3) - sqrt(2 + b**4)/(3 - c)", "a, b, c"), 0.2)
    q, v, a = np.random.default_rng(6).normal(size=(3, 3))
    same = {"rtol": 1e-13, "atol": 1e-13}
    np.testing.assert_allclose(ls.forward_dynamics(traced, q, v), ls.forward_dynamics(written, q, v), **same)
    one, other = (ls.constraint_derivatives(m, q, v, a) for m in (traced, written))
    np.testing.assert_allclose(one.acceleration_q, other.acceleration_q, **same)
    with pytest.raises(ls.ShapeError, match="function of coupling 'curve' is not finite at 'one' = 0, 'two' = 0"):
        ls.loop_residual(three_joints(ls.TracedFunction(lambda q: q[0] / q[1] * q[2])), np.zeros(3))

    def doubled(q):
        x = q[0] * q[1] * q[2]
        for _ in range(12):
            x = jnp.sin(x) * jnp.cos(x)
        return x

    for function, text in (
        (lambda q: jnp.arctan2(q[0], q[1]) + q[2], "must be made of the operations add, sub, .*got 'atan2'"),
        (lambda q: jnp.abs(q[0]) + q[1] * q[2], "must be made of the operations add, sub, .*got 'abs'"),
        (lambda q: q, r"must return an array of shape \(\)"),
        (lambda q: q[0] * q[1], "must depend on each joint; .*'three'"),
        (doubled, "must be a short formula: without shared parts it may have 1023"),
    ):
        with pytest.raises(ls.ModelError, match=f"coupling 'curve': function: {text}"):
            three_joints(ls.TracedFunction(function))


def test_derivatives_of_accelerations_equal_differences():
    """∂v̇/∂q and ∂v̇/∂v of the particle on a curve without symmetry, off the curve too."""
    model = three_joints(ls.Expression("sin(a*b) + c*exp(a/3)", "a, b, c"))
    q, v = np.random.default_rng(5).normal(size=(2, 3))
    found_q, found_v, _ = ls.forward_dynamics_derivatives(model, q, v)

    def differences(function, x, h=1e-6):
        return np.stack([(function(x + h * e) - function(x - h * e)) / (2 * h) for e in np.eye(3)], axis=-1)

    by_q = differences(lambda x: ls.forward_dynamics(model, x, v), q)
    by_v = differences(lambda x: ls.forward_dynamics(model, q, x), v)
    np.testing.assert_allclose(found_q, by_q, rtol=0, atol=1e-7 * np.abs(by_q).max())
    np.testing.assert_allclose(found_v, by_v, rtol=0, atol=1e-7 * np.abs(by_v).max())


@pytest.mark.parametrize("method", ["sdirk", "generalized_alpha"])
def test_gradients_of_rollouts(method):
    """A loss of the last state by the start, by a mass, and by the numbers of the constraint."""
    model = particle(ls.Expression("x*x + k*z*z", "x, z", {"k": 1.0}), LENGTH**2).build()
    q, v = on_circle(0.8, 1.5)
    motion = ls.rollout(model, q, v, dt=0.01, steps=20, method=method)
    rng = np.random.default_rng(0)
    of_q, of_v = rng.normal(size=(2, 2))
    by_q, by_v = np.zeros((2, *motion.v.shape))
    by_q[-1], by_v[-1] = of_q, of_v
    paths = ("z.body.mass", "curve.offset", "curve.function.k")
    found = ls.check_gradient(motion, lambda x: x.q[-1] @ of_q + x.v[-1] @ of_v,
                              motion.backward(by_q, by_v, parameters=paths))  # fmt: skip
    assert set(paths) <= set(found.exact)
    for name, value in found.exact.items():
        assert value == pytest.approx(found.differenced[name], rel=1e-6, abs=1e-9), name


def test_batches_and_redundant_functions():
    """States take a batch; a function that repeats another one is a redundant row, with one warning."""
    model, _ = pendulum()
    states = [on_circle(x, 0.3) for x in (0.1, 0.9, 2.2)]
    q, v = (np.array([state[k] for state in states]) for k in (0, 1))
    each = [ls.forward_dynamics(model, *state) for state in states]
    np.testing.assert_allclose(ls.forward_dynamics(model, q, v), each, rtol=1e-13)
    robot = particle(CIRCLE, LENGTH**2)
    robot.add_coupling("again", ["x", "z"], function=ls.Expression("sqrt(x*x + z*z)", "x, z"), offset=LENGTH)
    twice = robot.build()
    with pytest.warns(ls.RedundancyWarning, match="of the 2 rows of its loops 1 are independent"):
        ls.assemble(twice, q[1])
    found = ls.forward_dynamics(twice, q[1], v[1])
    np.testing.assert_allclose(found, each[1], rtol=1e-12)


def clock(robot, motion):
    """A massless joint whose coordinate is a function of time."""
    robot.add_link("clock", NOTHING, ls.JointPrismatic((0, 1, 0)))
    robot.add_joint_motion("time", "clock", position=ls.Expression(motion, "t"))


def test_a_bead_on_a_turning_wire():
    """Φ(q, t) = 0 by a joint that is a clock: on a straight wire that turns at ω the bead is at r₀ cosh ω t."""
    robot = ls.Robot("bead", gravity=(0, 0, 0))
    robot.add_link("x", NOTHING, ls.JointPrismatic((1, 0, 0)))
    robot.add_link("y", ls.RigidBody(0.3, (0, 0, 0), np.zeros((3, 3))), ls.JointPrismatic((0, 1, 0)), parent="x")
    clock(robot, "t")
    wire = ls.Expression("x*sin(w*t) - y*cos(w*t)", "x, y, t", {"w": 1.5})
    robot.add_coupling("wire", ["x", "y", "clock"], function=wire)
    model = robot.build()
    found = ls.simulate(model, 1.0, [0.2, 0.0, 0.0], [0.0, 0.3, 1.0], rtol=1e-11, atol=1e-13)
    r, angle = 0.2 * np.cosh(1.5 * found.t), 1.5 * found.t
    np.testing.assert_allclose(found.q.T, [r * np.cos(angle), r * np.sin(angle), found.t], rtol=0, atol=1e-8)


def test_a_pendulum_whose_length_is_prescribed():
    """x² + z² = l(t)²: the motion is that of φ̈ = −(g sin φ + 2 l̇ φ̇)/l by another solver."""
    robot = particle(ls.Expression("x*x + z*z - l*l", "x, z, l"))
    robot.joint_couplings.clear()
    clock(robot, "0.5 + 0.1*sin(3*t)")
    robot.add_coupling("rope", ["x", "z", "clock"], function=ls.Expression("x*x + z*z - l*l", "x, z, l"))
    model = robot.build()

    def swing(t, y):
        length, rate = 0.5 + 0.1 * np.sin(3 * t), 0.3 * np.cos(3 * t)
        return [y[1], -(G * np.sin(y[0]) + 2.0 * rate * y[1]) / length]

    angle, speed = solve_ivp(swing, (0, 1), [0.7, 0.4], method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    q = 0.5 * np.array([np.sin(0.7), -np.cos(0.7)])
    v = 0.5 * 0.4 * np.array([np.cos(0.7), np.sin(0.7)]) + 0.3 * q / 0.5
    found = ls.simulate(model, 1.0, [*q, 0.5], [*v, 0.3], rtol=1e-11, atol=1e-13)
    length = 0.5 + 0.1 * np.sin(3.0)
    np.testing.assert_allclose(found.q[-1], [length * np.sin(angle), -length * np.cos(angle), length],
                               rtol=0, atol=1e-8)  # fmt: skip
    assert speed != 0.0


@pytest.mark.parametrize("function, text", [
    (ls.Expression("abs(x) + z", "x, z"), "must have derivatives: abs, sign, minimum and maximum have corners"),
    (ls.Expression("x + y + z", "x, y, z"), "must have 2 variables, one for each joint"),
    (ls.Expression("q*q", "q"), "must have 2 variables, one for each joint"),
    (ls.Expression("x*x + 1", "x, z"), "must depend on each joint; .*'z'"),
    (ls.Expression("x*z + 1/0", "x, z"), "must have finite numbers"),
    (ls.Expression(["x*z"], "x, z"), "must be one ls.Expression, or an ls.TracedFunction"),
    (3.0, "must be one ls.Expression, or an ls.TracedFunction"),
    (np.hypot, "must be one ls.Expression, or an ls.TracedFunction"),
])  # fmt: skip
def test_wrong_functions_are_named(function, text):
    """Corners, numbers of names, unused names, and other kinds of functions."""
    with pytest.raises(ls.ModelError, match=f"coupling 'curve': function: {text}"):
        particle(function).build()


@pytest.mark.parametrize("name, value", [
    ("ratios", [1.0, 2.0]), ("stiffness", 2.0), ("damping", 1.0), ("limits", (0, 1)), ("span", (0, 1)),
    ("spring", [[0, 0], [1, 1]]),
])  # fmt: skip
def test_other_laws_beside_a_function_are_refused(name, value):
    """Ratios, springs, dampers, stops and spans belong to sums of functions."""
    with pytest.raises(ls.ModelError, match=f"coupling 'curve': {name}: must be left out where there is a function"):
        particle(CIRCLE, **{name: value}).build()


def test_names_of_variables():
    """Names are checked at once, and an expression of several variables is no function of one."""
    for names in ("x, x", "x, 2", "x, sin", "x, pi", "x,"):
        with pytest.raises(ls.ModelError, match="expression > variable: must be different words"):
            ls.Expression("x", names)
    with pytest.raises(ls.ModelError, match=r"only numbers, 'x', 'z', .*got 'y'"):
        ls.Expression("x + y", "x, z")
    with pytest.raises(ls.ModelError, match="a name must be a word that is no variable"):
        ls.Expression("x + z", "x, z", {"z": 1.0})
    assert CIRCLE([3.0, 4.0]) == 25.0
    with pytest.raises(ls.ModelError, match="must be given the values of its 2 variables x, z"):
        CIRCLE(3.0)
    robot = particle(CIRCLE)
    robot.add_coupling("c", ["x", "z"], [1.0, ls.Expression("x*z", "x, z")])
    with pytest.raises(ls.ModelError, match=r"expression 'x\*z': must have one variable here \(got 'x, z'\)"):
        robot.build()
    with pytest.raises(ls.ModelError, match=r"must have one variable here|must be given the values of its 2 variables"):
        rod = ls.Rod(1.0, ls.SectionCircle(ls.Expression("x*z", "x, z")), ls.BasisLegendre(bending_y=1), RUBBER)
        robot.add_link("rod", rod)
        robot.joint_couplings.pop("c")
        robot.build()


def test_states_without_a_value_are_named():
    """The logarithm of a negative number: the error has the coupling, its joints and their values."""
    model = particle(ls.Expression("log(x*z)", "x, z")).build()
    with pytest.raises(ls.ShapeError, match=r"function of coupling 'curve' is not finite at 'x' = -1, 'z' = 2"):
        ls.forward_dynamics(model, [-1.0, 2.0], np.zeros(2))
    assert np.isfinite(ls.forward_dynamics(model, [0.5, 2.0], [0.1, -0.4])).all()


def test_files_keep_functions(tmp_path):
    """A saved robot has the same function, with its constants."""
    robot = particle(ls.Expression("x*x + k*x*z", "x, z", {"k": 0.7}), 0.2)
    ls.save_robot(robot, tmp_path / "particle.yaml")
    again = ls.load_robot(tmp_path / "particle.yaml")
    assert again.joint_couplings["curve"] == robot.joint_couplings["curve"]
    q = np.array([0.3, 0.8])
    np.testing.assert_array_equal(ls.loop_residual(again.build(), q), ls.loop_residual(robot.build(), q))
