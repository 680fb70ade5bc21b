"""Traced functions against JAX: values, derivatives by the chain rule, native code, and refused functions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lissom.bodies.twists import exp
from lissom.robot import poses
from lissom.robot.poses import in_double, pose_code
from lissom.tracing import native
from lissom.tracing.graph import _OPERATIONS, Graph, Refused, _Interpreter, derivative, inputs, integral, run, trace
from lissom.tracing.native import LANES, code_of, compiled_functions, table_of

RNG = np.random.default_rng(0)


def both_ways(function, *values):
    """The results of a function by JAX and by native code, as lists of arrays."""
    shapes = [np.shape(value) for value in values]
    graph, nodes = trace(function, shapes)
    found = [np.full(part.shape, np.nan) for part in nodes]
    compiled_functions(code_of([(graph, nodes)], [int(np.prod(shape)) for shape in shapes])).call(0, values, found)
    return [np.asarray(part) for part in jax.tree.leaves(in_double(function)(*values))], found


def assert_same(function, *values):
    for expected, found in zip(*both_ways(function, *values), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-14)


def test_elementary_functions():
    """Purpose: each elementary function and comparison of jax.numpy, at several numbers."""
    x = np.array([-0.7, -0.2, 0.3, 0.9])
    names = [
        *("sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "arcsinh", "arctanh", "exp"),
        *("exp2", "expm1", "abs", "sign", "floor", "ceil", "round", "square", "cbrt", "negative", "trunc", "isfinite"),
    ]
    positive = ["sqrt", "log", "log1p", "log2", "log10", "reciprocal"]

    def everything(x):
        y = jnp.abs(x) + 0.1
        values = [getattr(jnp, name)(x) for name in names] + [getattr(jnp, name)(y) for name in positive]
        values += [jnp.arccosh(1.0 + y), jax.scipy.special.erf(x), jax.lax.rsqrt(y), jax.nn.sigmoid(x), jax.nn.relu(x)]
        values += [y**x, x**3, x**-2, jnp.arctan2(x, y), jnp.maximum(x, 0.1), jnp.minimum(x, 0.1), jnp.fmod(x, 0.4)]
        values += [jnp.where((x > 0.0) & ~(x > 0.5) | (x < -0.5), x, -y), jnp.clip(x, -0.3, 0.3), x / y - 2.0 * x]
        return [jnp.asarray(value, dtype=jnp.float64) for value in values]

    assert_same(everything, x)


def test_arrays():
    """Purpose: products, reductions, moves and writes of arrays, loops of known length and branches."""

    def everything(A, x):
        B = jnp.zeros((3, 3)).at[0, 1].set(x[0]).at[1].add(x).at[jnp.array([0, 0])].add(A[:2])
        loop = jax.lax.fori_loop(0, 4, lambda k, y: jnp.sin(y) + k * x, x)
        _, rows = jax.lax.scan(lambda carry, row: (carry + row, carry * row), x, A)
        branch = jax.lax.cond(x[0] > 0.0, lambda: x**2, lambda: -x)
        parts = [jnp.split(x, 3)[1], jnp.concatenate([A, B])[::-1, ::2], jnp.stack([x, x[::-1]]), jnp.pad(x, 1)]
        sums = [A.sum(), A.prod(axis=0), A.max(axis=1), A.min(), jnp.cumsum(A, axis=0), jnp.cumprod(x), A.mean()]
        products = [A @ B @ x, jnp.einsum("ij,kj,i->k", A, B, x), jnp.cross(x, A[0]), jnp.outer(x, x), jnp.trace(A)]
        return [
            B,
            loop,
            rows,
            branch,
            *parts,
            *sums,
            *products,
            A.T.reshape(-1)[jnp.array([0, 5, 2])],
            jnp.linalg.norm(x),
            jax.grad(lambda x: x @ A @ jnp.stack([x[0] * x[1], x[2], x[1]]))(x),
            jax.jacrev(lambda x: jnp.stack([x[:2] * x[0], jnp.sin(x[1:])], axis=1))(x),
        ]

    assert_same(everything, RNG.normal(size=(3, 3)), np.array([0.4, -0.3, 0.7]))


def test_derivatives_are_those_of_jax():
    """Purpose: first to third derivatives, and one along a direction, of a function with kinks."""

    def function(x):
        r = jnp.sqrt(1.0 + x @ x)
        smooth = [jnp.sin(x[0] * r) / r, jnp.exp(-x[1]) ** 1.5, jnp.abs(x[2]) ** x[0], jnp.arctan2(x[0], x[1])]
        kinks = [jnp.maximum(x[2], 0.1) * jnp.tanh(x[0]), jnp.where(x[0] > 0.0, x[1] ** 3, x[2])]
        return jnp.stack([*smooth, *kinks])

    x, rate = np.array([0.3, 0.8, -0.4]), np.array([0.2, -1.0, 0.5])
    graph, (nodes,) = trace(lambda x, v: function(x), [(3,), (3,)])
    by, along = range(3), [[graph.input(3 + j) for j in range(3)]]
    first = derivative(graph, nodes, by)
    parts = [nodes, first, derivative(graph, first, by), derivative(graph, derivative(graph, first, by), by),
             derivative(graph, nodes, by, along)]  # fmt: skip
    found = [np.full(part.shape, np.nan) for part in parts]
    compiled_functions(code_of([(graph, parts)], [3, 3])).call(0, [x, rate], found)
    slopes = [function]
    for _ in range(3):
        slopes.append(jax.jacfwd(slopes[-1]))
    expected = [np.asarray(in_double(slope)(x)) for slope in slopes]
    expected.append(expected[1] @ rate[:, None])
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)


def test_sums_over_rows():
    """Purpose: sums over rows of a table, whose number is no multiple of LANES, with a part that no row changes."""

    def function(q, row):
        ends = row[0] ** 2, jnp.where(row[1] > q[1], row[1], 0.0), jnp.exp(q[1] * row[0])
        return jnp.sin(q[0]) * row[2] * jnp.stack(ends)

    rows, q = RNG.normal(size=(2 * LANES + 1, 3)), np.array([0.4, 0.1])
    graph, nodes = trace(function, [(2,), (3,)])
    table = table_of(graph, [nodes], [2, 3, 4], (2,))
    assert [len(part) for part in (table.outer, table.inner)] == [2, 2]  # x², x; y, w
    code = compiled_functions(code_of([(graph, nodes)], [2, 3], table))
    groups = np.repeat(rows[: 2 * LANES], 7, axis=0) * np.linspace((1.0, 1.0, 1.0), (1.0, 2.0, -1.0), 14 * LANES)
    for given in (rows, groups[:-1]):
        out, filled = np.zeros(3), table.filled(given)
        code.call(0, [q, filled], [out])
        expected = np.asarray(in_double(jax.vmap(function, (None, 0)))(q, given)).sum(axis=0)
        np.testing.assert_allclose(out, expected, rtol=1e-13)
    assert filled[1] == 7.0  # members of a group


def test_nodes_of_one_graph_join():
    """Purpose: a second function takes nodes of the first, and equal operations share a node."""
    graph, (squares,) = trace(lambda x: x * x, [(2,)])
    before = len(graph.nodes)
    (again,) = run(graph, lambda x: x * x, inputs(graph, [(2,)]))
    assert len(graph.nodes) == before and (again == squares).all()
    (total,) = run(graph, jnp.sum, [squares])
    assert graph.count([total]) == 3


@jax.custom_jvp
def with_a_rule(x):
    """A function whose stated derivative is not that of its operations."""
    return jnp.sin(x)


with_a_rule.defjvp(lambda values, rates: (jnp.sin(values[0]), 2.0 * rates[0]))


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda x: jax.lax.while_loop(lambda y: y[0] < 9.0, lambda y: y + 1.0, x), "loop whose length depends"),
        (lambda x: jnp.sort(x), "'sort'.*minimum and maximum"),
        (lambda x: jnp.linalg.solve(jnp.outer(x, x) + jnp.eye(3), x), "Cramer"),
        (lambda x: x[jnp.argmax(x)], "'argmax'"),
        (lambda x: x[(x[0] * 2.0).astype(int)], "index that depends on values"),
        (lambda x: jax.pure_callback(np.sin, jax.ShapeDtypeStruct((3,), np.float64), x), "'pure_callback'"),
        (lambda x: x + 1j, "complex"),
        (lambda x: jnp.real(x.astype(complex)), "complex"),
        (lambda x: x + jax.random.normal(jax.random.key(0), (3,)), "draws random numbers; draw them outside"),
        (lambda x: x + jax.random.uniform(jax.random.PRNGKey(0), (3,)), "draws random numbers; draw them outside"),
        (lambda x: (jax.debug.print("{}", x), x)[1], "prints.*take the print out"),
        (lambda x: x * (x.astype(int) & 1), "bits of integers"),
        (with_a_rule, "rule of its own for derivatives .*'with_a_rule'"),
    ],
)  # fmt: skip
def test_refused(function, says):
    """Purpose: one line names the operation and what to write instead."""
    with pytest.raises(Refused, match=says) as error:
        trace(function, [(3,)])
    assert "\n" not in str(error.value)


def swept(q, x):
    """A point on a line that bends: an integral of an integral, Stumpff functions, and comparisons."""
    along = integral(lambda q, s: jnp.stack([jnp.cos(q[0] * s + integral(lambda q, r: q[1] * r**2, q, s)), s]), q, x[0])
    turned = exp(jnp.stack([q[0], q[1] * x[0], x[1], x[0], 0.1, 0.0]))
    return jnp.where(q[0] > x[1], along[0], along[1]) * turned


def test_integrals_and_twists(monkeypatch):
    """Purpose: integrals with nested ones, and exponentials, with derivatives, equal closed forms; also in parts."""
    graph = Graph()
    q, row = inputs(graph, [(2,), (3,)])
    (values,) = run(graph, lambda q, x: x[2] * swept(q, x), [q, row])
    slopes = derivative(graph, values, q.tolist())
    results = [values, slopes, derivative(graph, slopes, q.tolist())]
    table = table_of(graph, [results], row.tolist(), (2,))
    at, rows = np.array([0.7, -0.4]), np.array([[0.5, 0.2, 1.0], [0.3, 4.9, 2.0], [0.5, -0.3, 0.5], [4.0, 0.1, 1.0]])
    whole, parts = [[np.zeros(part.shape) for part in results] for _ in range(2)]
    compiled_functions(code_of([(graph, results)], [2, 3], table)).call(0, [at, table.filled(rows)], whole)
    divide(monkeypatch)
    compiled_functions(code_of([(graph, results)], [2, 3], table)).call(0, [at, table.filled(rows)], parts)

    def plain(q):
        total = 0.0
        for x, y, w in rows:
            s, weights = (0.5 * x * (np.polynomial.legendre.leggauss(60)[k] + (1 - k)) for k in (0, 1))
            along = (weights * jnp.cos(q[0] * s + q[1] * s**3 / 3)).sum(), 0.5 * x**2
            turned = exp(
                jnp.stack([q[0], q[1] * x, jnp.asarray(y), jnp.asarray(x), jnp.asarray(0.1), jnp.asarray(0.0)])
            )
            total += w * jnp.where(q[0] > y, *along) * turned
        return total

    functions = plain, jax.jacfwd(plain), jax.jacfwd(jax.jacfwd(plain))
    for function, one, other, nodes in zip(functions, whole, parts, results, strict=True):
        expected = np.asarray(in_double(function)(at))
        near = {"rtol": 1e-11, "atol": 1e-12 * np.abs(expected).max()}
        np.testing.assert_allclose(one, expected, **near)
        np.testing.assert_allclose(other, expected, **near)
        known = dict(zip(row.tolist(), rows.T)) | dict(zip(q.tolist(), at))
        by_numpy = np.sum(graph.evaluated(nodes.ravel().tolist(), known), axis=1)
        np.testing.assert_allclose(by_numpy.reshape(expected.shape), expected, **near)


def divide(monkeypatch):
    """Let native code be written as functions of fifteen lines."""
    monkeypatch.setattr(native, "_MOST_IN_ONE", 0)
    monkeypatch.setattr(native, "_PART", 15)


@pytest.mark.parametrize("n", [*(pytest.param(n, marks=pytest.mark.slow) for n in (1, 4)), 6])  # six: four and two
def test_poses_along_directions(n, monkeypatch):
    """Purpose: columns of poses and their derivatives, for four directions at a time, equal those of JAX; also in
    parts."""

    def pose(q):
        twist = jnp.stack([q[k % n] * (1.0 + 0.3 * k * q[k * k % n]) for k in range(6)])
        g, turn = exp(twist), exp(twist[::-1] - 0.5)
        return jnp.concatenate([g[:, :3] @ turn[:, :3], g[:, 3:] + g[:, :3] @ turn[:, 3:] / (2.0 + q[:1])], axis=1)

    graph = Graph()
    (q,) = inputs(graph, [(n,)])
    (g,) = run(graph, pose, [q])
    at, rate = RNG.uniform(-0.5, 0.5, (2, n))
    expected, *slopes, curves = (np.asarray(part)[0] for part in poses._compiled(pose, n, None)(at[None]))
    for parts in (False, True):
        if parts:
            divide(monkeypatch)
        R, p, S, S_q, S_vv = out = [np.full(shape, np.nan) for shape in [(3, 3), 3, (n, 6), (n, n, 6), (n, 6)]]
        code = compiled_functions(pose_code(graph, g, q))
        code.call(0, [at, rate], out[:4])
        code.call(1, [at, rate], out[4:])
        np.testing.assert_allclose(np.column_stack([R, p]), expected, atol=1e-14)
        for found, part in zip((S, S_q, S_vv), (*slopes, np.einsum("jcek,c,e->jk", curves, rate, rate))):
            np.testing.assert_allclose(found, part, rtol=1e-12, atol=1e-13 * np.abs(part).max())


def test_sines_of_four_numbers():
    """Purpose: sine and cosine of small, usual and large arguments, to the last bits."""
    graph = Graph()
    q, row = inputs(graph, [(1,), (2,)])
    (values,) = run(graph, lambda q, x: x[1] * jnp.stack([jnp.sin(q[0] * x[0]), jnp.cos(q[0] * x[0])]), [q, row])
    table = table_of(graph, [[values]], row.tolist(), (1,))
    code = compiled_functions(code_of([(graph, [values])], [1, 2], table))
    for x in np.concatenate([RNG.uniform(-1e4, 1e4, 50), RNG.uniform(-4, 4, 50), [0.0, 1e-9, 3e5, -1e300]]):
        out = np.zeros(2)
        code.call(0, [np.ones(1), table.filled(np.array([[x, 1.0]]))], [out])
        np.testing.assert_allclose(out, [np.sin(x), np.cos(x)], rtol=0.0, atol=3e-16)


def test_flags_are_numbers_where_they_are_counted():
    """Purpose: comparisons that are added, divided, subtracted, compared and returned, of numbers and of rows."""

    def everything(x):
        a, b = x > 0.35, x > -1.0
        parts = [jnp.sum(a) / jnp.sum(b), jnp.sum(a.astype(float) + b), jnp.cumsum(b), 1.0 - a, -a.astype(float), a]
        parts += [jnp.where(jnp.where(a, b, ~b), x, 2.0 * x), jnp.where(a == b, x, -x), jnp.where(a & True, x, -x)]
        parts += [jnp.where(compare(a, b), x, -x) for compare in (jnp.less, jnp.greater, jnp.less_equal, jnp.not_equal)]
        parts += [jnp.where(jnp.maximum(a, b), x, -x), jnp.where(jnp.any(a) ^ jnp.all(a), x, -x), b * x]
        return [jnp.sum(jnp.asarray(part, dtype=jnp.float64)) * jnp.ones(1) for part in parts]

    x = np.array([0.3, 0.4, -2.0])
    assert_same(everything, x)
    graph, parts = trace(everything, [(3,)])
    for nodes, expected in zip(parts, in_double(everything)(x), strict=True):
        (value,) = graph.evaluated(nodes.tolist(), {graph.input(k): float(x[k]) for k in range(3)})
        assert float(value) == pytest.approx(float(expected[0]), abs=1e-14)

    graph = Graph()
    q, row = inputs(graph, [(3,), (3,)])
    nodes = run(graph, lambda q, row: jnp.stack(everything(q * row[1])) * row[2], [q, row])
    table = table_of(graph, [nodes], row.tolist(), (2,))
    code, found = code_of([(graph, nodes)], [3, 3], table), np.zeros(len(parts))
    rows = RNG.uniform(0.5, 2.0, (7, 3))
    compiled_functions(code).call(0, [x, code.table.filled(rows)], [found])
    every = [np.ravel(in_double(everything)(x * other)) * weight for _, other, weight in rows]
    np.testing.assert_allclose(found, np.sum(every, axis=0), rtol=1e-13)


def test_integers_are_those_of_jax():
    """Purpose: bits, overflow and division of integers that the function makes itself."""

    def everything(x):
        k, small = jnp.arange(4), jnp.arange(200, dtype=jnp.int8)
        counts = [(k & 1).sum(), (k ^ 2).sum(), (~k).sum(), (k | 4).sum(), small.sum(dtype=jnp.int8), jnp.uint8(3) - 5]
        counts += [((k - 2) // 2).sum(), (k % 3).prod(), (k << 2).sum()]
        return [x * jnp.asarray(count, dtype=jnp.float64) for count in counts]

    assert_same(everything, np.array([0.3]))


@pytest.mark.parametrize("mode", ["fill", "clip"])
def test_reading_outside_an_array(mode):
    """Purpose: entries outside an array have the value that the function asks for, never that of another number."""
    assert_same(lambda x: x + jnp.asarray(x).at[jnp.array([5])].get(mode=mode, fill_value=0.25), np.array([0.3]))
    assert_same(lambda x: x + jnp.asarray(x).at[jnp.array([5])].get(mode=mode, fill_value=0.0), np.array([0.3]))
    assert_same(lambda x: x + jnp.take(x, 5, mode=mode), np.array([0.3]))


def test_functions_with_rules_for_derivatives():
    """Purpose: functions of JAX whose operations alone have other derivatives at some numbers, or none."""
    functions = [jnp.sinc, jax.nn.softplus, jax.nn.sigmoid, jax.nn.silu, jax.nn.relu, jax.nn.log_sigmoid]
    for function in functions:
        for x in (0.0, 0.7, -3.0, 800.0, -800.0):
            if function is jax.nn.relu and x == 0.0:
                continue  # a kink
            graph, (nodes,) = trace(function, [(1,)])
            expected = function
            for order in range(3):
                (value,) = graph.evaluated(nodes.ravel().tolist(), {graph.input(0): x})
                wanted = np.ravel(in_double(expected)(np.array([x])))[0]
                assert float(value) == pytest.approx(float(wanted), rel=1e-12, abs=1e-13), (function, x, order)
                nodes, expected = derivative(graph, nodes, [graph.input(0)]), jax.jacfwd(expected)


def test_inverse_hyperbolic_functions_of_small_and_large_numbers():
    """Purpose: relative errors of rounding size where the textbook formulas cancel or overflow."""
    small, near, large = np.array([1e-9, -1e-7, 1e-300]), np.array([1.0 + 1e-9, 1.5]), np.array([1e160, -1e300, 3.0])
    for x, names in ((small, ["arcsinh", "arctanh", "log1p"]), (near, ["arccosh"]), (large, ["arcsinh"])):
        _, found = both_ways(lambda x, names=names: [getattr(jnp, name)(x) for name in names], x)
        for name, one in zip(names, found, strict=True):
            np.testing.assert_allclose(one, getattr(np, name)(x), rtol=1e-15 * 4, err_msg=name)
    _, (found,) = both_ways(jnp.log1p, np.array([1e307]))
    np.testing.assert_allclose(found, np.log1p(1e307), rtol=1e-15)


def test_rounding_and_powers():
    """Purpose: both ways to round halves, and powers that are no integers."""
    halves = np.array([2.5, -2.5, 0.5, 1.5, 0.49999999999999994, -0.2])
    assert_same(lambda x: [jax.lax.round(x), jnp.round(x)], halves)
    assert_same(lambda x: [x**jnp.inf, x**-jnp.inf, x**64.0, x**2.5], np.array([0.3, 1.7]))


@pytest.mark.parametrize("name, expected", [
    ("one_minus_square", lambda x: 1.0 - x**2),
    ("log2", np.log2),
    ("polynomial", lambda x: 0.5 - 3.0 * x + 2.0 * x**2),
])  # fmt: skip
def test_operations_of_later_versions_of_jax(name, expected):
    """Operations that JAX has since 0.11 or 0.12, without this JAX."""
    graph, x = Graph(), np.array([0.3, 1.7])
    nodes = np.array([graph.input(k) for k in range(2)])
    interpreter = _Interpreter(graph)
    rest = [interpreter.numbers(np.full(2, value)) for value in (0.5, -3.0, 2.0)] if name == "polynomial" else []
    found = graph.evaluated(_OPERATIONS[name](interpreter, [nodes, *rest], {}).tolist(), dict(zip(nodes.tolist(), x)))
    np.testing.assert_allclose(found, expected(x), rtol=1e-14)


def test_loops_of_later_versions_of_jax():
    """JAX 0.12 gives the groups of operands of a loop as a tree, without their numbers."""

    class Groups:
        def update(self, operands):
            self.operands = operands
            return self

        def unpack(self):
            return self.operands[:1], self.operands[1:2], self.operands[2:]

    def loop(x, start, rows):
        return jax.lax.scan(lambda total, row: (total + x * row, total), start, rows)

    (equation,) = jax.make_jaxpr(loop)(2.0, 1.0, np.arange(3.0)).jaxpr.eqns[-1:]
    graph = Graph()
    operands = [np.array(graph.input(0)), np.array(graph.input(1)), np.array([graph.input(k) for k in (2, 3, 4)])]
    names = ("length", "reverse", "jaxpr")
    parameters = {name: equation.params[name] for name in names} | {"ft_in": Groups()}
    total, before = _Interpreter(graph).unrolled(operands, parameters)
    values = {graph.input(k): value for k, value in enumerate((2.0, 1.0, 3.0, 4.0, 5.0))}
    assert graph.evaluated([int(total), *before.tolist()], values) == [25.0, 1.0, 7.0, 15.0]
