"""Functions of the normalised abscissa s = x/length that coordinates multiply, and their integrals from the base."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lissom.bodies.series import ORDER, Series, chained, integrals
from lissom.errors import ModelError
from lissom.robot import checks
from lissom.robot.poses import compiled, in_double

Modes = Sequence[Sequence[float]] | Callable[[Any], Any]
"""One polynomial each, as its coefficients by rising power of s; or a smooth function of s that returns all values,
shape (k,), made of jax.numpy."""


def count(modes: Modes) -> int:
    """How many there are."""
    if not callable(modes):
        return len(modes)
    import jax

    return int(in_double(jax.eval_shape)(modes, np.float64(0.5)).shape[0])


def values(modes: Modes, s: Any) -> Any:
    """Of all modes at s, shape (k,)."""
    import jax.numpy as jnp

    if callable(modes):
        return jnp.asarray(modes(s), dtype=jnp.float64)
    table = _table(modes)
    total = jnp.asarray(table[:, -1])
    for column in table.T[-2::-1]:
        total = total * s + column
    return total


def combined(modes: Modes, q: Any, s: Any) -> Any:
    """Σ modes θ at abscissae s, an array or a series, of the shape of s; of series θ is a tuple."""
    import jax
    import jax.numpy as jnp

    if not callable(modes):
        return _horner(_weighted(_table(modes), q), s)
    if isinstance(q, tuple):
        return sum(mode * theta for mode, theta in zip(_modes_of_series(modes, s), q))
    flat = jnp.ravel(s)
    return jnp.reshape(jax.vmap(lambda s: values(modes, s) @ q)(flat), jnp.shape(s))


def summed(modes: Modes, q: Any, s: Any) -> Any:
    """The integral of Σ modes θ from 0 to s, of the shape of s."""
    if callable(modes):
        return integrals(lambda q, s: (combined(modes, q, s),), q, s)[0]
    table = _table(modes)
    return s * _horner(_weighted(table / (1.0 + np.arange(table.shape[1])), q), s)


def _modes_of_series(modes: Callable[[Any], Any], s: Any) -> list[Any]:
    """Each mode of a series, or of an array."""
    import jax
    import jax.numpy as jnp

    def sloped(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda s: jax.jvp(function, (s,), (jnp.ones_like(s),))[1]

    is_series = isinstance(s, Series)
    functions: list[Callable[[Any], Any]] = [jax.vmap(lambda s: values(modes, s), out_axes=-1)]
    for _ in range(ORDER * is_series):
        functions.append(sloped(functions[-1]))
    if not is_series:
        return list(functions[0](s))
    found = [function(s.terms[()]) for function in functions]
    return [chained([part[k] for part in found], s) for k in range(len(found[0]))]


def _table(modes: Sequence[Sequence[float]]) -> np.ndarray:
    """Coefficients of polynomials, shape (k, degree + 1)."""
    size = max(len(polynomial) for polynomial in modes)
    return np.array([[*polynomial, *[0.0] * (size - len(polynomial))] for polynomial in modes], dtype=np.float64)


def _weighted(table: np.ndarray, q: Any) -> Any:
    """Coefficients of Σ modes θ."""
    if not isinstance(q, tuple):
        return q @ table
    return [sum((theta * float(c) for theta, c in zip(q, column) if c), 0.0) for column in table.T]


def _horner(coefficients: Any, s: Any) -> Any:
    total = 0.0 * s + coefficients[-1] if not isinstance(coefficients, list) else coefficients[-1]
    for k in reversed(range(len(coefficients) - 1)):
        total = total * s + coefficients[k]
    return total


def check_modes(modes: Any, where: str) -> None:
    """Raise ModelError where modes are neither polynomials nor a function of s."""
    if not callable(modes):
        rule = "must be a list of polynomials, each its coefficients by rising power, or a function of s"
        checks.require(isinstance(modes, Sequence) and len(modes) > 0, where, rule, modes)
        for k, polynomial in enumerate(modes):
            found = checks.array(polynomial, (-1,), f"{where}[{k}]", "must be a list of finite coefficients")
            checks.require(len(found) > 0, f"{where}[{k}]", "must have at least one coefficient", polynomial)
        return

    try:
        found = np.asarray(compiled(modes)(np.float64(0.5)))
    except Exception as error:
        text = str(error).partition("\n")[0]
        rule = "must be a function of s made of jax.numpy"
        raise ModelError(f"{where}: {rule}; it failed ({type(error).__name__}: {text})") from error
    fits = found.ndim == 1 and found.size > 0 and bool(np.isfinite(found).all())
    checks.require(fits, where, "must return finite values of shape (k,)", found)
