"""The machines of expressions in kernels against NumPy and mpmath, and the empty ones of kernels that serve none."""

import re

import mpmath
import numpy as np
import pytest
import warp as wp

import lissom as ls
from lissom.lie.arrays import se3_Ad, se3_exp, se3_log
from lissom.lie.native import shared_code
from lissom.lie.types import EXPRESSIONS, PROGRAMS, RARE, kernel_options, mat3, mat6, vec3, vec6
from lissom.model.tables import TablesStruct, device_tables
from lissom.robot.constraint_functions import JOINTS, RATES
from lissom.robot.expression_programs import Operation, has_corners, jet, jet_of, linked, program
from lissom.stepping.step_sizes import evaluate
from lissom.systems.constraint_functions import (
    number_of_product,
    put_function,
    put_function_bend,
    six_slopes,
    turned_slopes,
)
from lissom.systems.couplings import program_jet

TEXTS = ["sin(3*t)/2", "cos(t)**2", "tan(t/3)", "sinh(t) - cosh(2*t)", "tanh(t/2)", "exp(-t**2)", "log(1 + t**2)",
         "sqrt(2 + t)", "arcsin(0.4*t) + arccos(0.3*t)", "arctan(t)", "t**2.5", "2**t", "(1 + t)**t",
         "t - (2 - sin(t))", "t/(2 - t*sin(t))", "2 - (t - 1)**3", "t**1 + t**0", "abs(t - 1)", "sign(t - 1)*t",
         "maximum(t, 1 - t)", "minimum(t*t, 1 - t)", "-t", "7.5", "(t - 2)**-2", "log(t - 1)",
         "maximum(1, log(t - 1))"]  # fmt: skip
TIMES = [0.3, 0.77, 1.4]


def kernel(serves):
    """One that runs a program."""

    @wp.kernel(module="unique", module_options=kernel_options((*RARE, *serves)))
    def run_program(now: wp.float64, code: wp.array2d(dtype=wp.int32), numbers: wp.array(dtype=wp.float64),
                    load: wp.array2d(dtype=vec6), held: wp.array2d(dtype=wp.float64),
                    u: wp.array2d(dtype=wp.float64)):  # fmt: skip
        evaluate(now, code, numbers, load[1], held[1], u[1])

    return run_program


SERVING, EMPTY = kernel((EXPRESSIONS,)), kernel(())


def ran(made, steps, now, rows=2, held=3, inputs=4):
    """Results of a program for instance 1: all its numbers in their order; those of instance 0 stay."""
    code, numbers = (wp.array(x, device="cpu") for x in linked(steps))
    load = wp.zeros((2, rows), dtype=vec6, device="cpu")
    others = [wp.zeros((2, size), dtype=wp.float64, device="cpu") for size in (held, inputs)]
    wp.launch(made, dim=1, inputs=[now, code, numbers, load, *others], device="cpu")
    parts = [load.numpy().reshape(2, -1), *(x.numpy() for x in others)]
    assert not any(x[0].any() for x in parts)
    return np.concatenate([x[1] for x in parts])


@pytest.mark.parametrize("text", TEXTS)
def test_jets(text):
    """evaluate( gives the value and two derivatives, in loads, in motions and in inputs, the later programs on an
    empty stack."""
    steps, puts = program(text, "t"), [Operation.PUT_VALUE, Operation.PUT_RATE, Operation.PUT_CHANGE]
    whole = [*steps, *zip(puts, (10, 13, 17)), (Operation.CLEAR, 0.0), (Operation.TIME, 0.0), (puts[0], 3.0)]
    for now in TIMES:
        found, expected = ran(SERVING, whole, now), np.zeros(19)
        expected[[10, 13, 17]], expected[3] = jet(steps, now), now
        np.testing.assert_allclose(found, expected, rtol=2e-14, atol=1e-15, err_msg=text)


def test_kernels_without_expressions():
    """The function is empty there."""
    assert not ran(EMPTY, [(Operation.TIME, 0.0), (Operation.PUT_VALUE, 0.0)], 2.0).any()


def jet_kernel(serves):
    """One that evaluates a function of a coupling."""

    @wp.kernel(module="unique", module_options=kernel_options((*RARE, *serves)))
    def run_jet(j: int, k: int, start: int, first: int, q: wp.array2d(dtype=wp.float64),
                w: wp.array2d(dtype=wp.float64), q_of: wp.array(dtype=wp.int32), v_of: wp.array(dtype=wp.int32),
                code: wp.array(dtype=wp.int32), numbers: wp.array(dtype=wp.float64),
                out: wp.array(dtype=vec6)):  # fmt: skip
        out[0] = program_jet(1, j, k, start, first, q, w, q_of, v_of, code, numbers)

    return run_jet


COUPLING, NO_COUPLING = jet_kernel((PROGRAMS,)), jet_kernel(())
SMOOTH = [k for k, text in enumerate(TEXTS) if not has_corners(program(text, "t"))]  # others couple no joints
MPMATH = {"arcsin": mpmath.asin, "arccos": mpmath.acos, "arctan": mpmath.atan}


def differentiated(text, x, order):
    """A derivative of an expression of t at x, with 50 digits."""
    with mpmath.workdps(50):
        names = {**vars(mpmath), **MPMATH}
        return float(mpmath.diff(lambda t: eval(text, names, {"t": t}), mpmath.mpf(x), order))


def coupled(made, texts, index, x, names="t", j=0, k=0, w=()):
    """Results of the program of one of several expressions in a row, for instance 1, with other numbers before and
    after the coordinates x, and w in another order."""
    parts, code, numbers, starts = [linked(program(text, names)) for text in texts], [], [], []
    for own, values in parts:
        own = own.copy()
        own[own[:, 0] == Operation.NUMBER, 1] += len(numbers)
        starts.append(len(code))
        code.extend(own.tolist())
        numbers.extend(values)
    x = np.atleast_1d(x)
    w = w if np.size(w) else np.zeros(len(x))
    q_of, v_of = (
        np.arange(-1, len(x)) + 2,
        np.append(99, np.arange(len(x))[::-1]),
    )
    rows = np.full((2, len(x) + 3), 7.0), np.full((2, len(x) + 1), 8.0)
    rows[0][1, q_of[1:]], rows[1][1, v_of[1:]] = x, w
    arrays = *rows, q_of.astype(np.int32), v_of.astype(np.int32), np.ravel(code).astype(np.int32), np.array(numbers)
    out = wp.zeros(1, dtype=vec6, device="cpu")
    given = [wp.array(values, device="cpu") for values in arrays]
    wp.launch(made, dim=1, inputs=[j, k, starts[index], 1, *given, out], device="cpu")
    return out.numpy()[0]


@pytest.mark.parametrize("k", SMOOTH, ids=lambda k: TEXTS[k])
def test_three_derivatives_of_couplings(k):
    """program_jet( gives the value and three derivatives of the program that begins at `start`."""
    for x in TIMES:
        found, orders = coupled(COUPLING, TEXTS, k, x), range(4)
        if TEXTS[k] == "log(t - 1)" and x < 1.0:
            assert np.isnan(found[0])
            continue
        expected = [differentiated(TEXTS[k], x, order) for order in orders]
        np.testing.assert_allclose(found[[0, 1, 3, 5]], expected, rtol=1e-13, atol=1e-13)
        np.testing.assert_array_equal(found[[2, 4]], found[[1, 3]])  # both directions are those of the variable


SEVERAL = ["sin(x*y) + z*exp(x/3)", "x**2*y/(2 + cos(z)) - z", "(2 + x*x)**(y*z)", "x*y*z", "log(x + y*y) - sqrt(z*x)"]


@pytest.mark.parametrize("text", SEVERAL)
def test_derivatives_along_two_directions(text):
    """Derivatives by variable j, and by variable k or along w, and the mixed ones, equal those of mpmath."""
    place, w = [0.7, 0.4, 0.9], np.array([0.3, -0.8, 0.5])
    for j, k in ((0, 0), (0, 2), (2, 1), (1, -1)):
        along = w if k < 0 else np.eye(3)[k]

        def moved(a, b, j=j, along=along):
            at = [
                mpmath.mpf(x) + b * mpmath.mpf(d) + (a if m == j else 0) for m, (x, d) in enumerate(zip(place, along))
            ]
            return eval(text, {**vars(mpmath), **MPMATH}, dict(zip("xyz", at)))

        with mpmath.workdps(50):
            orders = (0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)
            want = [float(mpmath.diff(moved, (0, 0), order) if any(order) else moved(0, 0)) for order in orders]
        found = coupled(COUPLING, ["y - 2", text, "z"], 1, place, "x, y, z", j, k, w)
        np.testing.assert_allclose(found, want, rtol=1e-13, atol=1e-13)


def test_kernels_without_functions_of_couplings():
    """The function is empty there."""
    assert not coupled(NO_COUPLING, ["t"], 0, 2.0).any()


def test_operations_have_the_same_numbers():
    """The operations of programs in native code are those of Python, in their order."""
    listed = re.search(r"struct operation \{\s*enum \{(.*?)\}", shared_code(), re.DOTALL)
    assert listed is not None
    names = [name.strip() for name in listed.group(1).split(",")]
    assert names == [code.name for code in list(Operation)[: len(names)]]
    assert names[-1] == "ARCTAN"


def function_kernel(serves):
    """One that stores the derivatives of a function of a pose."""

    @wp.kernel(module="unique", module_options=kernel_options((*RARE, *serves)))
    def run_function(t: TablesStruct, f: int, R: mat3, p: vec3, y: vec6, q: wp.array2d(dtype=wp.float64),
                     v: wp.array2d(dtype=wp.float64), out: wp.array2d(dtype=wp.float64)):  # fmt: skip
        put_function(t, 1, f, R, p, q, out)
        put_function_bend(t, 1, f, R, p, y, q, v, out)

    return run_function


POSES, NO_POSES = function_kernel((PROGRAMS,)), function_kernel(())
JOINTS_OF = ["a", "b", "c"]  # with the six motions of the pose more than a register holds


def of_poses():
    """A robot with a function of a pose and three joints, and one of velocities."""
    robot = ls.Robot("functions")
    robot.add_link("body", ls.RigidBody(1.0, inertia=(1.0, 1.0, 1.0)), ls.JointFree())
    for name in JOINTS_OF:
        robot.add_link(name, ls.RigidBody(1.0, inertia=(1.0, 1.0, 1.0)), ls.JointRevolute())
    place = ls.Expression(
        "sin(x*R12) + y*z*R31*a - exp(b*R23)/(2 + c*c) + R33*a*c", "x, y, z, R12, R31, R23, R33, a, b, c"
    )
    speed = ls.Expression("vx*y*R11 + wz*sin(a)*x - b_rate*R32*c + vy*z*z + c_rate/a + a_rate*x",
                          "vx, vy, wz, x, y, z, R11, R32, a, b_rate, c, c_rate, a_rate")  # fmt: skip
    robot.add_constraint("place", "body", function=place, joints=JOINTS_OF)
    robot.add_constraint("speed", "body", function=speed, joints=JOINTS_OF, velocity=True)
    return robot.build()


def test_functions_of_poses():
    """put_function( and put_function_bend( store Φ, P, T and D: of the variables along motions g → exp(y) g, by NumPy
    and differences; nothing where kernels serve no programs."""
    model, rng, h = of_poses(), np.random.default_rng(0), 1e-4
    table = model.constraint_functions
    g = se3_exp(np.array([0.4, -0.3, 0.8, 0.2, 0.5, -0.4]))
    q, v = rng.normal(size=(2, 2, max(model.nq, 20)))
    y = rng.normal(size=6)

    def variables(g, angles, twist, rates):
        p = g[:3, 3]
        known = dict(enumerate([*p, *g[:3, :3].T.ravel(), *(twist[3:] + np.cross(twist[:3], p)), *twist[:3]]))
        known |= {JOINTS + 2 * k: x for k, x in enumerate(angles)}
        return known | {JOINTS + 2 * k + 1: x for k, x in enumerate(rates)}

    def value(f, move, rates):
        """Φ after a motion (9,) with rates (9,) of all motions."""
        at = variables(se3_exp(move[:6]) @ g, q[1, table.q[:3]] + move[6:], rates[:6], rates[6:])
        assert len(at) == RATES + 6 + 2 * 3
        return float(jet_of({k: (x, 0.0, 0.0) for k, x in at.items()}, table.steps(f))[0])

    def slope(function, e):
        """The derivative of a function of a motion along e, of fourth order."""
        low, high = function(-h * e) - 8 * function(-h / 2 * e), function(h * e) - 8 * function(h / 2 * e)
        return (low - high) / (6 * h)

    motions, rates = np.eye(9), np.append(y, v[1, table.v[:3]])

    def row(f, k, move):
        """P_k after a motion."""
        if table.is_rate[f]:
            return value(f, move, motions[k])
        return slope(lambda step: value(f, after(step, move), rates), motions[k])

    def after(step, move):
        """The motion that has the effect of `step` after `move`."""
        return np.append(se3_log(se3_exp(step[:6]) @ se3_exp(move[:6])), step[6:] + move[6:])

    def along(f, move):
        """Y·D Y after a motion, with constant Y."""
        if table.is_rate[f]:
            return slope(lambda step: value(f, after(step, move), rates), rates)
        far = 2e-3 * rates
        values = [value(f, after(n * far, move), rates) for n in (-2, -1, 0, 1, 2)]
        return np.dot(values, [-1, 16, -30, 16, -1]) / (12 * 2e-3**2)

    none = np.zeros(9)
    for made in (POSES, NO_POSES):
        out = wp.zeros((2, int(table.at[-1])), dtype=wp.float64, device="cpu")
        given = [wp.array(x, device="cpu") for x in (q, v)]
        for f in range(2):
            inputs = [device_tables(model), f, mat3(g[:3, :3]), vec3(g[:3, 3]), vec6(y), *given, out]
            wp.launch(made, dim=1, inputs=inputs, device="cpu")
        assert not out.numpy()[0].any()
        if made is NO_POSES:
            assert not out.numpy().any()
            continue
        for f in range(2):
            found = out.numpy()[1, table.at[f] : table.at[f + 1]]
            P, T, D = found[1:10], found[10:19], found[19:].reshape(9, 9)
            assert found[0] == pytest.approx(0.0 if table.is_rate[f] else value(f, none, rates), abs=1e-14)
            np.testing.assert_allclose(P, [row(f, k, none) for k in range(9)], atol=1e-9)
            by = [[slope(lambda move, f=f, j=j: row(f, j, move), e) for e in motions] for j in range(9)]
            np.testing.assert_allclose(D, by, atol=1e-6)
            assert rates @ D @ rates == pytest.approx(along(f, none), abs=1e-7)
            wanted = [(along(f, 1e-3 * e) - along(f, -1e-3 * e)) / 2e-3 for e in motions]
            np.testing.assert_allclose(T, wanted, atol=1e-4)


def product_kernel(serves):
    """One that multiplies by the derivatives D of a function."""

    @wp.kernel(module="unique", module_options=kernel_options((*RARE, *serves)))
    def run_products(t: TablesStruct, R: mat3, p: vec3, y: vec6, v: wp.array2d(dtype=wp.float64),
                     values: wp.array2d(dtype=wp.float64), numbers: wp.array2d(dtype=wp.float64),
                     slopes: wp.array(dtype=vec6), turned: wp.array(dtype=mat6)):  # fmt: skip
        for j in range(9):
            numbers[0, j] = number_of_product(t, 1, 1, j, y, v, 0, values)
            numbers[1, j] = number_of_product(t, 1, 1, j, y, v, 1, values)
        slopes[0] = six_slopes(t, 1, 1, 0, 7, 1, values)
        slopes[1] = six_slopes(t, 1, 1, 8, 0, 0, values)
        turned[0] = turned_slopes(t, 1, 1, R, p, values)

    return run_products


def test_products_with_derivatives_of_functions():
    """number_of_product( multiplies D and Dᵀ by motions, six_slopes( takes parts of D, turned_slopes( D in the axes of
    another frame; nothing where kernels serve no programs."""
    model, rng = of_poses(), np.random.default_rng(1)
    table = model.constraint_functions
    g = se3_exp(np.array([0.4, -0.3, 0.8, 0.2, 0.5, -0.4]))
    v, y, values = rng.normal(size=(2, 20)), rng.normal(size=6), rng.normal(size=(2, int(table.at[-1])))
    D = values[1, table.at[1] + 19 : table.at[2]].reshape(9, 9)
    Y, back = np.append(y, v[1, table.v[3:]]), np.linalg.inv(se3_Ad(g))
    wanted = [np.stack([D @ Y, D.T @ Y]), np.stack([D[:6, 7], D[8, :6]]), (back.T @ D[:6, :6] @ back)[None]]
    for made, factor in ((product_kernel((PROGRAMS,)), 1.0), (product_kernel(()), 0.0)):
        out = [wp.zeros((2, 9), dtype=wp.float64, device="cpu"), wp.zeros(2, dtype=vec6, device="cpu"),
               wp.zeros(1, dtype=mat6, device="cpu")]  # fmt: skip
        given = [wp.array(x, device="cpu") for x in (v, values)]
        inputs = [device_tables(model), mat3(g[:3, :3]), vec3(g[:3, 3]), vec6(y), *given, *out]
        wp.launch(made, dim=1, inputs=inputs, device="cpu")
        for found, expected in zip(out, wanted):
            np.testing.assert_allclose(found.numpy(), factor * expected, rtol=1e-12, atol=1e-12)
