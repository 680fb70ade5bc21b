"""Jets: derivatives up to the third, with respect to points and coordinates, of motions and of their compositions.

Each elementary motion is evaluated on power series of third order in a few variables. The coefficients are arrays with
one value for each point. Most products of four variables never occur. Series arithmetic omits them; it needs fewer
operations than nested differentiation of functions, and compiles in a fraction of the time.

The integral from 0 to x of a smooth function is such a function again:

    y(θ, x) = ∫₀ˣ h(θ, s) ds,   dy = h(θ, x) dx + (∫₀ˣ ∂h/∂θ ds) dθ                                         (1)

For many values of x, h is evaluated at the nodes of one rule for all of them, and its integral is a series of Chebyshev
polynomials T_k. JAX uses (1) as a differentiation rule. So derivatives of any order are such integrals too, and
derivatives with respect to x are exact.

Let z = (p, s), with p the point that a motion g moves and s the coordinates of the motion. z_α are the derivatives of z
with respect to the coordinates of earlier motions and to the directions of x. Then the derivatives of g are

    g_z z_α,   g_z z_αβ + g_zz[z_α, z_β],   g_z z_αβγ + Σ g_zz[z_αβ, z_γ] + g_zzz[z_α, z_β, z_γ]           (2)

with the sum over the three pairs αβ. Each motion has few coordinates, and most of their derivatives are zero or one. So
(2) costs a hundredth of the derivatives of the whole composition, and compiles as fast as its parts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import factorial, prod
from typing import Any, NamedTuple, TypeVar, final

import numpy as np
from numpy.polynomial import chebyshev

from lissom.tracing.graph import integral, is_tracing

ORDER = 3
Key = tuple[int, ...]  # indices of variables in ascending order
_NODES = 32  # resolves bending by three turns to rounding error
_UNIT = np.cos(np.pi * (np.arange(_NODES) + 0.5) / _NODES)
_SERIES = np.linalg.inv(chebyshev.chebvander(_UNIT, _NODES - 1))
_INTEGRALS = np.stack([chebyshev.chebint(c) for c in _SERIES.T], axis=-1)  # from values at the nodes


@final
class Series:
    """Power series Σ c_k δ^k: coefficients by the variables that they multiply. Zero coefficients are omitted."""

    __slots__ = ("terms",)
    __array_ufunc__ = None  # NumPy leaves arithmetic to the series

    def __init__(self, terms: Mapping[Key, Any]) -> None:
        self.terms = dict(terms)

    @classmethod
    def variable(cls, value: Any, number: int) -> Series:
        """The variable with index `number`, expanded about a value."""
        return cls({(): value, (number,): 1.0})

    def __add__(self, other: Any) -> Series:
        terms = dict(self.terms)
        for key, value in _terms(other).items():
            terms[key] = terms[key] + value if key in terms else value
        return Series(terms)

    __radd__ = __add__

    def __neg__(self) -> Series:
        return Series({key: -value for key, value in self.terms.items()})

    def __sub__(self, other: Any) -> Series:
        return self + -other

    def __rsub__(self, other: Any) -> Series:
        return -self + other

    def __mul__(self, other: Any) -> Series:
        return self.times(other, ORDER)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Series:
        return self * (power(other, -1.0) if isinstance(other, Series) else 1.0 / other)

    def __rtruediv__(self, other: Any) -> Series:
        return other * power(self, -1.0)

    def materialized(self) -> Series:
        """The same series. XLA computes its coefficients once, and not once for each use."""
        import jax
        from jax.core import Tracer

        traced = {key: value for key, value in self.terms.items() if isinstance(value, Tracer)}
        return Series({**self.terms, **jax.lax.optimization_barrier(traced)}) if traced else self

    def times(self, other: Any, order: int) -> Series:
        """The product, without terms above an order."""
        terms: dict[Key, Any] = {}
        for key, value in self.terms.items():
            for others, factor in _terms(other).items():
                if len(key) + len(others) <= order:
                    _add(terms, tuple(sorted(key + others)), _product(value, factor))
        return Series(terms).materialized()

    def powers(self) -> tuple[Series, Series]:
        """Square and cube of a series whose constant part is zero."""
        square: dict[Key, Any] = {}
        rows = list(self.terms.items())
        for k, (key, value) in enumerate(rows):
            if 2 * len(key) <= ORDER:
                _add(square, tuple(sorted(key + key)), _product(value, value))
            twice = value * 2.0
            for others, factor in rows[k + 1 :]:
                if len(key) + len(others) <= ORDER:
                    _add(square, tuple(sorted(key + others)), _product(twice, factor))
        second = Series(square).materialized()
        return second, self.times(second, ORDER)

    def derivatives(self, order: int) -> dict[Key, Any]:
        """The derivatives of an order, with respect to variables in ascending order."""
        found = {key: value for key, value in self.terms.items() if len(key) == order}
        repeated = {key: np.prod([factorial(key.count(a)) for a in set(key)], initial=1.0) for key in found}
        return {key: _product(float(repeated[key]), value) for key, value in found.items()}


def _terms(x: Any) -> Mapping[Key, Any]:
    """The terms of a series; an array is a series with a constant term only."""
    return x.terms if isinstance(x, Series) else {(): x}


def _add(terms: dict[Key, Any], key: Key, part: Any) -> None:
    terms[key] = terms[key] + part if key in terms else part


def _product(a: Any, b: Any) -> Any:
    """The product of two coefficients. A factor of one is not multiplied."""
    if isinstance(a, float) and a == 1.0:
        return b
    return a if isinstance(b, float) and b == 1.0 else a * b


def compose(values: list[Any], x: Series) -> Series:
    """f(x) for a series x, from the values of f and its derivatives at the constant part of x."""
    return _compose_all([values], x)[0]


def _compose_all(functions: list[list[Any]], x: Series) -> list[Series]:
    """`compose` for several functions; the powers of x are computed once."""
    change = Series({key: value for key, value in x.terms.items() if key})
    powers = [change, *change.powers()]
    found = []
    for middle, *slopes in functions:
        total = Series({(): middle})
        for k, (slope, power_) in enumerate(zip(slopes, powers), 1):
            factor = slope * (1.0 / factorial(k)) if k > 1 else slope
            total = total + Series({key: _product(value, factor) for key, value in power_.terms.items()})
        found.append(total.materialized())
    return found


def cos_sin(x: Any) -> tuple[Any, Any]:
    """Cosine and sine of an array or a series."""
    import jax.numpy as jnp

    middle = x.terms[()] if isinstance(x, Series) else x
    c, s = jnp.cos(middle), jnp.sin(middle)
    if not isinstance(x, Series):
        return c, s
    first, second = _compose_all([[c, -s, -c, s], [s, c, -s, -c]], x)
    return first, second


def power(x: Any, exponent: float) -> Any:
    """An array or a series to the power 1/2, −1/2 or −1."""
    import jax.numpy as jnp

    def plain(x: Any) -> Any:
        if exponent == -1.0:
            return 1.0 / x
        return jnp.sqrt(x) if exponent == 0.5 else 1.0 / jnp.sqrt(x)

    if not isinstance(x, Series):
        return plain(x)
    middle = x.terms[()]
    values, inverse = [plain(middle)], 1.0 / middle
    for k in range(ORDER):
        values.append((exponent - k) * values[-1] * inverse)
    return compose(values, x)


def thickening(u: Any) -> Any:
    """2/(1 + √(1 − 2u)) of an array or a series."""
    import jax.numpy as jnp

    root = jnp.sqrt(1.0 - 2.0 * (u.terms[()] if isinstance(u, Series) else u))
    g, b = 2.0 / (1.0 + root), 1.0 / root
    if not isinstance(u, Series):
        return g
    both = g * b
    squares = g * g + 2.0 * both + 2.0 * b * b
    return compose([g, 0.5 * g * both, 0.5 * both * both * (g + b), 0.75 * both * both * b * squares], u)


def positive_or_one(x: Any) -> Any:
    """A nonnegative array or series in which zeros are replaced by the constant one."""
    import jax.numpy as jnp

    if not isinstance(x, Series):
        return jnp.where(x > 0.0, x, 1.0)
    positive = x.terms[()] > 0.0
    return Series({key: jnp.where(positive, value, 0.0 if key else 1.0) for key, value in x.terms.items()})


def _polynomials(u: Any) -> Any:
    """T_0 to T_32 at u, shape (33, ...): T_(m+j) = 2 T_m T_j − T_(m−j)."""
    import jax.numpy as jnp

    T = jnp.stack([jnp.ones_like(u), u])
    while len(T) <= _NODES:
        T = jnp.concatenate([T, 2.0 * T[-1] * T[1:] - T[-2::-1]])
    return T


def _integral_by_nodes(function: Callable[[Any, Any], Any], q: Any, x: Any) -> Any:
    """`antiderivative` without a rule for its derivatives."""
    import jax.numpy as jnp

    low, high = jnp.minimum(x.min(), 0.0), jnp.maximum(x.max(), 0.0)
    half = 0.5 * jnp.maximum(high - low, 1e-300)
    middle = low + half
    series = function(q, middle + half * _UNIT) @ _INTEGRALS.T
    T = _polynomials(jnp.concatenate([jnp.zeros(1), jnp.ravel(x)]) / half - middle / half)
    found = half * (series @ T)
    found = found[..., 1:] - found[..., :1]
    return found.reshape(*found.shape[:-1], *jnp.shape(x))


@lru_cache(maxsize=1)
def _integral_with_rule() -> Callable[..., Any]:
    """`_integral_by_nodes` with (1) as the rule for its derivatives."""
    import jax

    whole = jax.custom_jvp(_integral_by_nodes, nondiff_argnums=(0,))

    def rule(function: Callable[[Any, Any], Any], values: Any, rates: Any) -> Any:
        (q, x), (q_dot, x_dot) = values, rates
        zero = jax.custom_derivatives.SymbolicZero
        total = 0.0
        if not isinstance(x_dot, zero):
            total = function(q, x) * x_dot
        moving = [not isinstance(part, zero) for part in jax.tree.leaves(q_dot, is_leaf=lambda p: isinstance(p, zero))]
        if any(moving):
            filled = jax.tree.map(
                lambda rate, part: jax.numpy.zeros_like(part) if isinstance(rate, zero) else rate, q_dot, q,
                is_leaf=lambda p: isinstance(p, zero),
            )  # fmt: skip
            total = total + whole(_directional(function), (q, filled), x)
        found = whole(function, q, x)
        return found, jax.numpy.broadcast_to(total, found.shape)

    whole.defjvp(rule, symbolic_zeros=True)
    return whole


def _directional(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The function ((x, dx), s) → ∂f/∂x dx at (x, s): the derivative of f(x, s) along the direction dx."""
    import jax

    return lambda both, s: jax.jvp(lambda q: function(q, s), (both[0],), (both[1],))[1]


def antiderivative(function: Callable[[Any, Any], Any], q: Any, x: Any) -> Any:
    """y of (1), in the shape of x. Axes of h other than the one of s come first.

    Args:
        function: h(q, s) for s of shape (m,), written with jax.numpy.
        q: parameters of h: an array or several arrays.
        x: upper limits of the integral, any shape.
    """
    import jax.numpy as jnp

    return (integral if is_tracing() else _integral_with_rule())(function, q, jnp.asarray(x))


def antiderivatives(functions: Callable[[Any, Any], tuple[Any, ...]], q: Any, x: Any) -> tuple[Any, ...]:
    """∫₀ˣ h(q, s) ds for several functions h, followed by h(q, x). q is an array or a tuple of series.

    Args:
        x: an array, or a series of first order in one variable on which q does not depend.
    """
    import jax.numpy as jnp

    if not isinstance(q, tuple):
        return *antiderivative(lambda q, s: jnp.stack(functions(q, s)), q, x), *functions(q, x)
    shapes: list[list[Key]] = []

    def rows(q: Any, s: Any) -> Any:
        found = [_terms(part) for part in functions(q, s)]
        shapes[:] = [list(terms) for terms in found]
        return jnp.stack([jnp.broadcast_to(value, s.shape) for terms in found for value in terms.values()])

    summed = iter(_integral_by_nodes(rows, q, _terms(x)[()]))
    totals = tuple(Series({key: next(summed) for key in keys}) for keys in shapes)
    here = functions(q, x)
    if not isinstance(x, Series):
        return *totals, *here
    (((number,), slope),) = ((key, value) for key, value in x.terms.items() if key)
    return *(
        (total + _integral_of_change(part, number, slope)).materialized() for total, part in zip(totals, here)
    ), *here


def _integral_of_change(h: Series, number: int, slope: Any) -> Series:
    """∫ h dx from the constant part of x to x, if x depends linearly on one variable with a given slope."""
    parts = {key: value for key, value in h.terms.items() if len(key) < ORDER}
    scaled = {key: _product(slope, value) * (1.0 / (key.count(number) + 1)) for key, value in parts.items()}
    return Series({tuple(sorted((*key, number))): value for key, value in scaled.items()})


class FirstDerivatives(NamedTuple):
    """First derivatives at N points, which are along the last axis of each array.

    Fields:
        p: positions (3, N).
        F: gradients ∂f/∂x (3, 3, N).
        J: ∂p/∂θ (n, 3, N).
        F_j: ∂F/∂θ (n, 3, 3, N).
        h: J̇θ̇ (3, N).
        F_h: Σ ∂²F/∂θ_j∂θ_k θ̇_jθ̇_k (3, 3, N).
    """

    p: Any
    F: Any
    J: Any
    F_j: Any
    h: Any
    F_h: Any


class SecondDerivatives(NamedTuple):
    """Second derivatives at N points, which are along the last axis of each array.

    Fields:
        p, F, J, F_j: as in FirstDerivatives.
        H: ∂²p/∂θ_j∂θ_l (n, n, 3, N), indexed [j, l].
        F_jl: ∂²F/∂θ_j∂θ_l (n, n, 3, 3, N), indexed [j, l].
        h_q: ∂(J̇θ̇)/∂θ (n, 3, N).
    """

    p: Any
    F: Any
    J: Any
    F_j: Any
    H: Any
    F_jl: Any
    h_q: Any


Kind = TypeVar("Kind", FirstDerivatives, SecondDerivatives)


def packed(x: FirstDerivatives | SecondDerivatives) -> Any:
    """All fields in one array (rows, N). JAX returns one array faster than many."""
    import jax.numpy as jnp

    return jnp.concatenate([part.reshape(-1, part.shape[-1]) for part in x])


def unpacked(kind: type[Kind], rows: Any, n: int) -> Kind:
    """The fields of a packed array (rows, N), for n coordinates."""
    last = ((3,), (3, 3)) if kind is FirstDerivatives else ((n, n, 3), (n, n, 3, 3), (n, 3))
    parts, first = [], 0
    for shape in ((3,), (3, 3), (n, 3), (n, 3, 3), *last):
        size = prod(shape)
        parts.append(rows[first : first + size].reshape(*shape, rows.shape[-1]))
        first += size
    return kind(*parts)


def value_and_jacobian(function: Callable[[Any], Any], q: Any) -> tuple[Any, Any]:
    """A function's value, and its derivative with respect to q with the axis of q first."""
    import jax
    import jax.numpy as jnp

    return jax.vmap(lambda e: jax.jvp(function, (q,), (e,)), out_axes=(None, 0))(jnp.eye(len(q)))


def second_along(function: Callable[..., Any], at: tuple[Any, ...], rates: tuple[Any, ...]) -> Any:
    """The second derivative of a function along `rates`. For positions as a function of θ it is J̇θ̇."""
    import jax

    return jax.jvp(lambda *at: jax.jvp(function, at, rates)[1], at, rates)[1]


def first_derivatives(motion: Callable[[Any], tuple[Any, Any]], q: Any, v: Any) -> FirstDerivatives:
    """FirstDerivatives at θ = q and θ̇ = v of any motion, given as a function of θ that returns p and F."""
    (p, F), (J, F_j) = value_and_jacobian(motion, q)
    return FirstDerivatives(p, F, J, F_j, *second_along(motion, (q,), (v,)))


def second_derivatives(motion: Callable[[Any], tuple[Any, Any]], q: Any, v: Any) -> SecondDerivatives:
    """SecondDerivatives at θ = q and θ̇ = v of any motion, given as a function of θ that returns p and F."""
    ((p, F), (J, F_j)), (_, (H, F_jl)) = value_and_jacobian(lambda q: value_and_jacobian(motion, q), q)
    _, h_q = value_and_jacobian(lambda q: second_along(lambda q: motion(q)[0], (q,), (v,)), q)
    return SecondDerivatives(p, F, J, F_j, H, F_jl, h_q)


# a motion: the three components of a point and its own coordinates, as series
Motion = Callable[[tuple[Series, Series, Series], tuple[Series, ...]], Sequence[Series]]
Jet = list[list[dict[Key, Any]]]  # for each component of g, its derivatives of order 0 to 3 with respect to z
Parts = list[Any]  # tables of the three components, in some functions followed by those of the motion's coordinates


def jets(motions: list[tuple[Motion, int]], points: Any, q: Any) -> list[Jet]:
    """Jets of composed motions at θ = q. `motions` holds each motion with the number of its coordinates."""
    import jax.numpy as jnp

    p, found, n = list(jnp.asarray(points, dtype=jnp.float64).T), [], 0
    for motion, k in motions:
        x, y, z, *own = (Series.variable(part, number) for number, part in enumerate([*p, *q[n : n + k]]))
        moved = motion((x, y, z), tuple(own))
        found.append([[g.derivatives(order) for order in range(ORDER + 1)] for g in moved])
        p, n = [g[0][()] for g in found[-1]], n + k
    return found


def first_of_composition(jets: list[Jet], counts: list[int], points: Any, v: Any) -> FirstDerivatives:
    """FirstDerivatives of composed motions by (2), from their jets and numbers of coordinates, at θ̇ = v.

    Tables have one entry for each component of p: X (3, N) by directions of x; J (n, N) by coordinates; XJ (n, 3, N) by
    both; h = J̇θ̇ (N,); and Xh (3, N), the derivative of h with respect to directions. The coordinates of a motion come
    after those of earlier motions.
    """
    import jax.numpy as jnp

    p, X, J, XJ, _, _ = _identity_tables(points)
    h: Parts = [0.0] * 3
    Xh: Parts = h
    N, n = points.shape[0], 0
    for jet, k in zip(jets, counts):
        rate, X_dot = [*_summed(J, v[:n]), *v[n : n + k]], _summed(XJ, v[:n])
        tables = []
        for value, first, second, third in jet:
            A, R = _along(second, X), _along(second, rate)
            mixed = _sum(A, h) + 2.0 * _sum(R, X_dot) + _sum(_along(_along(third, rate), rate), X)
            by_both = _broadcast(_sum(first, XJ) + _sum(A, _wide(J, 1)), n, 3, N)
            tables.append((
                _broadcast(value[()], N),
                _broadcast(_sum(first, X), 3, N),
                _joined(_broadcast(_sum(first, J), n, N), _own(first, k), N),
                _joined(by_both, _own(A, k), 3, N),
                _broadcast(_sum(first, h) + _sum(R, rate), N),
                _broadcast(_sum(first, Xh) + mixed, 3, N),
            ))  # fmt: skip
        p, X, J, XJ, h, Xh = _transposed(tables)
        n += k
    return FirstDerivatives(
        *(jnp.stack(part, axis=axis) for part, axis in ((p, 0), (X, 0), (J, 1), (XJ, 1), (h, 0), (Xh, 0)))
    )


def second_of_composition(jets: list[Jet], counts: list[int], points: Any, v: Any) -> SecondDerivatives:
    """SecondDerivatives of composed motions by (2), from their jets and numbers of coordinates, at θ̇ = v.

    Tables in addition to `first_of_composition`: H (n, n, N) and XH (n, n, 3, N) by two coordinates, and h_q (n, N).
    """
    import jax.numpy as jnp

    p, X, J, XJ, H, XH = _identity_tables(points)
    h: Parts = [0.0] * 3
    h_q = J
    N, n = points.shape[0], 0
    for jet, k in zip(jets, counts):
        rate, turned = [*_summed(J, v[:n]), *v[n : n + k]], _summed(H, v[:n])
        tables = []
        for value, first, second, third in jet:
            A, B, R, AX = _along(second, X), _along(second, J), _along(second, rate), _along(third, X)
            C = _along(AX, _wide(J, 1))  # g_zzz[x_i, z_j] by [j, i]
            by_rate = _added(_along(second, h), _along(_along(third, rate), rate))
            B_1 = _wide_keys(B, 1)
            by_two = _sum(first, H) + _sum(B_1, _wide(J, 0))
            by_three = _sum(first, XH) + _sum(A, _wide(H, 2)) + _sum(_wide_keys(C, 1), _wide(_wide(J, 1), 0))
            by_rates = _sum(first, h_q) + _sum(by_rate, J) + 2.0 * _sum(R, turned)
            by_three += _sum(_wide_keys(B_1, 1), _wide(XJ, 0)) + _sum(_wide_keys(B_1, 0), _wide(XJ, 1))
            across = [_sum(_by(second, a), XJ) + C.get((a,), 0.0) for a in range(3, 3 + k)]
            tables.append((
                _broadcast(value[()], N),
                _broadcast(_sum(first, X), 3, N),
                _joined(_broadcast(_sum(first, J), n, N), _own(first, k), N),
                _joined(_broadcast(_sum(first, XJ) + _sum(A, _wide(J, 1)), n, 3, N), _own(A, k), 3, N),
                _broadcast(_sum(first, h) + _sum(R, rate), N),
                _square(_broadcast(by_two, n, n, N), _own(B, k), _own_pairs(second, k), N),
                _square(_broadcast(by_three, n, n, 3, N), across, _own_pairs(AX, k), 3, N),
                _joined(_broadcast(by_rates, n, N), _own(by_rate, k), N),
            ))  # fmt: skip
        p, X, J, XJ, h, H, XH, h_q = _transposed(tables)
        n += k
    parts = ((p, 0), (X, 0), (J, 1), (XJ, 1), (H, 2), (XH, 2), (h_q, 1))
    return SecondDerivatives(*(jnp.stack(part, axis=axis) for part, axis in parts))


def _identity_tables(points: Any) -> tuple[Parts, ...]:
    """p, X, J, XJ, H and XH of the identity."""
    import jax.numpy as jnp

    p = jnp.asarray(points, dtype=jnp.float64).T
    N = p.shape[-1]
    X = list(jnp.broadcast_to(jnp.eye(3)[:, :, None], (3, 3, N)))
    return list(p), X, *([jnp.zeros((*shape, N))] * 3 for shape in ((0,), (0, 3), (0, 0), (0, 0, 3)))


def _along(derivatives: Mapping[Key, Any], rates: Parts) -> dict[Key, Any]:
    """Symmetric derivatives contracted with one vector of z; the order decreases by one. Missing entries of the vector
    are zero."""
    total: dict[Key, Any] = {}
    for key, value in derivatives.items():
        for a in sorted(set(key)):
            if a < len(rates):
                rest = _without(key, a)
                part = rates[a] if isinstance(value, float) and value == 1.0 else value * rates[a]
                total[rest] = total[rest] + part if rest in total else part
    return total


def _sum(derivatives: Mapping[Key, Any], rates: Parts) -> Any:
    """First derivatives contracted with one vector of z."""
    return _along(derivatives, rates).get((), 0.0)


def _by(derivatives: Mapping[Key, Any], a: int) -> dict[Key, Any]:
    """Symmetric derivatives that contain entry a of z, with this entry removed."""
    return {_without(key, a): value for key, value in derivatives.items() if a in key}


def _without(key: Key, a: int) -> Key:
    """A key with one occurrence of a variable removed."""
    place = key.index(a)
    return key[:place] + key[place + 1 :]


def _added(first: Mapping[Key, Any], second: Mapping[Key, Any]) -> dict[Key, Any]:
    """The sum of two sets of derivatives."""
    return {key: first.get(key, 0.0) + second.get(key, 0.0) for key in {**first, **second}}


def _own(derivatives: Mapping[Key, Any], k: int) -> Parts:
    """First derivatives with respect to a motion's own coordinates."""
    return [derivatives.get((a,), 0.0) for a in range(3, 3 + k)]


def _own_pairs(derivatives: Mapping[Key, Any], k: int) -> list[Parts]:
    """Second derivatives with respect to a motion's own coordinates."""
    own = range(3, 3 + k)
    return [[derivatives.get((min(a, b), max(a, b)), 0.0) for b in own] for a in own]


def _wide(parts: Parts, axis: int) -> Parts:
    """The tables with one more axis of length one."""
    import jax.numpy as jnp

    return [jnp.expand_dims(part, axis) for part in parts]


def _wide_keys(derivatives: Mapping[Key, Any], axis: int) -> dict[Key, Any]:
    """Derivatives with one more axis of length one."""
    return dict(zip(derivatives, _wide(list(derivatives.values()), axis)))


def _summed(parts: Parts, v: Any) -> Parts:
    """Tables contracted with θ̇ over their first axis."""
    return [(part * v.reshape(-1, *[1] * (part.ndim - 1))).sum(axis=0) for part in parts]


def _broadcast(x: Any, *shape: int) -> Any:
    """An array or a number in a shape."""
    import jax.numpy as jnp

    return jnp.broadcast_to(x, shape)


def _joined(table: Any, own: Parts, *shape: int) -> Any:
    """A table, followed by rows for the motion's own coordinates."""
    import jax.numpy as jnp

    return jnp.concatenate([table, *(_broadcast(row, 1, *shape) for row in own)])


def _square(table: Any, across: Parts, own: list[Parts], *shape: int) -> Any:
    """A table (n, n, ...) extended by rows (n, ...), their transposes, and a corner for the motion's own
    coordinates."""
    import jax.numpy as jnp

    n = len(table)
    rows = jnp.stack([_broadcast(row, n, *shape) for row in across])
    corner = jnp.stack([jnp.stack([_broadcast(x, *shape) for x in row]) for row in own])
    upper, lower = ([table, rows.swapaxes(0, 1)], [rows, corner])
    return jnp.concatenate([jnp.concatenate(upper, axis=1), jnp.concatenate(lower, axis=1)])


def _transposed(tables: list[tuple[Any, ...]]) -> list[Parts]:
    """The tables of the components of a point, regrouped: one list per quantity, with an array per component. The
    barrier keeps XLA from computing an array again at each use."""
    import jax

    return [list(parts) for parts in zip(*jax.lax.optimization_barrier(tables))]
