"""Power series of third order in a few variables, whose coefficients are arrays of one value for each point.

What elementary motions make of a point has few terms: most products of four variables never occur. Arithmetic that
leaves them out finds all derivatives up to the third by fewer operations than one value takes by nested differentiation
of functions, and compiles in a fraction of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import factorial
from typing import Any, final

import numpy as np

from lissom.bodies import running

ORDER = 3
Key = tuple[int, ...]


@final
class Series:
    """Σ c_k δ^k: coefficients by what they multiply, the numbers of variables in rising order; zeros are left out."""

    __slots__ = ("terms",)
    __array_ufunc__ = None  # arrays of NumPy leave arithmetic to the series

    def __init__(self, terms: Mapping[Key, Any]) -> None:
        self.terms = dict(terms)

    @classmethod
    def variable(cls, value: Any, number: int) -> Series:
        """A variable about a value."""
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

    def made(self) -> Series:
        """The same with its coefficients as arrays of their own, which XLA does not make again wherever they are
        used."""
        import jax
        from jax.core import Tracer

        traced = {key: value for key, value in self.terms.items() if isinstance(value, Tracer)}
        return Series({**self.terms, **jax.lax.optimization_barrier(traced)}) if traced else self

    def times(self, other: Any, order: int) -> Series:
        """The product up to an order."""
        terms: dict[Key, Any] = {}
        for key, value in self.terms.items():
            for more, factor in _terms(other).items():
                if len(key) + len(more) <= order:
                    _add(terms, tuple(sorted(key + more)), _product(value, factor))
        return Series(terms).made()

    def powers(self) -> tuple[Series, Series]:
        """Its square and its cube, where it has no constant part."""
        square: dict[Key, Any] = {}
        rows = list(self.terms.items())
        for k, (key, value) in enumerate(rows):
            if 2 * len(key) <= ORDER:
                _add(square, tuple(sorted(key + key)), _product(value, value))
            twice = value * 2.0
            for more, factor in rows[k + 1 :]:
                if len(key) + len(more) <= ORDER:
                    _add(square, tuple(sorted(key + more)), _product(twice, factor))
        second = Series(square).made()
        return second, self.times(second, ORDER)

    def derivatives(self, order: int) -> dict[Key, Any]:
        """Those of an order, by variables in rising order."""
        found = {key: value for key, value in self.terms.items() if len(key) == order}
        repeated = {key: np.prod([factorial(key.count(a)) for a in set(key)], initial=1.0) for key in found}
        return {key: _product(float(repeated[key]), value) for key, value in found.items()}


def _terms(x: Any) -> Mapping[Key, Any]:
    return x.terms if isinstance(x, Series) else {(): x}


def _add(terms: dict[Key, Any], key: Key, part: Any) -> None:
    terms[key] = terms[key] + part if key in terms else part


def _product(a: Any, b: Any) -> Any:
    """Of coefficients, without a multiplication by one."""
    if isinstance(a, float) and a == 1.0:
        return b
    return a if isinstance(b, float) and b == 1.0 else a * b


def chained(values: list[Any], x: Series) -> Series:
    """A function with its derivatives at the middle of a series, of that series."""
    return together([values], x)[0]


def together(functions: list[list[Any]], x: Series) -> list[Series]:
    """The same of several functions."""
    change = Series({key: value for key, value in x.terms.items() if key})
    powers = [change, *change.powers()]
    found = []
    for middle, *slopes in functions:
        total = Series({(): middle})
        for k, (slope, power_) in enumerate(zip(slopes, powers), 1):
            factor = slope * (1.0 / factorial(k)) if k > 1 else slope
            total = total + Series({key: _product(value, factor) for key, value in power_.terms.items()})
        found.append(total.made())
    return found


def cos_sin(x: Any) -> tuple[Any, Any]:
    """Both of an array or a series."""
    import jax.numpy as jnp

    middle = x.terms[()] if isinstance(x, Series) else x
    c, s = jnp.cos(middle), jnp.sin(middle)
    if not isinstance(x, Series):
        return c, s
    first, second = together([[c, -s, -c, s], [s, c, -s, -c]], x)
    return first, second


def power(x: Any, exponent: float) -> Any:
    """Of an array or a series, to 1/2, −1/2 or −1."""
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
    return chained(values, x)


def thickened(u: Any) -> Any:
    """2/(1 + √(1 − 2u)) of an array or a series."""
    import jax.numpy as jnp

    root = jnp.sqrt(1.0 - 2.0 * (u.terms[()] if isinstance(u, Series) else u))
    g, b = 2.0 / (1.0 + root), 1.0 / root
    if not isinstance(u, Series):
        return g
    both = g * b
    squares = g * g + 2.0 * both + 2.0 * b * b
    return chained([g, 0.5 * g * both, 0.5 * both * both * (g + b), 0.75 * both * both * b * squares], u)


def or_one(x: Any) -> Any:
    """An array or a series that is not negative, and the constant one wherever it is zero."""
    import jax.numpy as jnp

    if not isinstance(x, Series):
        return jnp.where(x > 0.0, x, 1.0)
    positive = x.terms[()] > 0.0
    return Series({key: jnp.where(positive, value, 0.0 if key else 1.0) for key, value in x.terms.items()})


def integrals(functions: Callable[[Any, Any], tuple[Any, ...]], q: Any, x: Any) -> tuple[Any, ...]:
    """∫₀ˣ h(q, s) ds of several functions h of q, an array or a tuple of series, and of s; behind them h(q, x).

    Args:
        x: an array, or a series of first order in one variable, in which q does not vary.
    """
    import jax.numpy as jnp

    if not isinstance(q, tuple):
        return *running.integral(lambda q, s: jnp.stack(functions(q, s)), q, x), *functions(q, x)
    shapes: list[list[Key]] = []

    def rows(q: Any, s: Any) -> Any:
        found = [_terms(part) for part in functions(q, s)]
        shapes[:] = [list(terms) for terms in found]
        return jnp.stack([jnp.broadcast_to(value, s.shape) for terms in found for value in terms.values()])

    summed = iter(running.plain_integral(rows, q, _terms(x)[()]))
    totals = tuple(Series({key: next(summed) for key in keys}) for keys in shapes)
    here = functions(q, x)
    if not isinstance(x, Series):
        return *totals, *here
    (((number,), slope),) = ((key, value) for key, value in x.terms.items() if key)
    return *((total + _raised(part, number, slope)).made() for total, part in zip(totals, here)), *here


def _raised(h: Series, number: int, slope: Any) -> Series:
    """∫ h dx from the middle on, where x changes with a variable by a slope."""
    parts = {key: value for key, value in h.terms.items() if len(key) < ORDER}
    scaled = {key: _product(slope, value) * (1.0 / (key.count(number) + 1)) for key, value in parts.items()}
    return Series({tuple(sorted((*key, number))): value for key, value in scaled.items()})
