"""Functions of the normalised abscissa s = x/length that coordinates multiply, and their integrals from the base."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lissom.deformable.cubature import gauss
from lissom.errors import ModelError
from lissom.robot import checks
from lissom.robot.poses import in_double

Modes = Sequence[Sequence[float]] | Callable[[Any], Any]
"""One polynomial each, as its coefficients by rising power of s; or a smooth function of s that returns all values,
shape (k,), made of jax.numpy."""

_NODES = 16  # of the rule along x: exact for modes of degree 31, and to 1e-14 for bends by more than a turn
T, W = gauss(_NODES, 0.0, 1.0)
_VANDER = np.polynomial.legendre.legvander(2.0 * T - 1.0, _NODES - 1)
_RUNNING = np.stack(
    [np.polynomial.legendre.Legendre.basis(k, domain=[0.0, 1.0]).integ(lbnd=0.0)(T) for k in range(_NODES)], axis=-1
)
RUNNING = _RUNNING @ np.linalg.inv(_VANDER)  # integrals from 0 to each node, of values at the nodes


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
    return _horner(list(_coefficients(modes).T), s)


def _coefficients(modes: Sequence[Sequence[float]]) -> np.ndarray:
    """Of polynomials as rows of one length."""
    size = max(len(polynomial) for polynomial in modes)
    rows = [[*polynomial, *[0.0] * (size - len(polynomial))] for polynomial in modes]
    return np.array(rows, dtype=np.float64)


def _horner(coefficients: Any, s: Any) -> Any:
    """Σ c_k s^k."""
    total = coefficients[-1]
    for k in reversed(range(len(coefficients) - 1)):
        total = total * s + coefficients[k]
    return total


def combined(modes: Modes, q: Any, s: Any) -> Any:
    """m(s) = Σ modes θ at abscissae s, of the shape of s."""
    import jax
    import jax.numpy as jnp

    if not callable(modes):
        return _horner(q @ _coefficients(modes), s) + 0.0 * s
    flat = jnp.ravel(s)
    return jnp.reshape(jax.vmap(lambda s: values(modes, s) @ q)(flat), jnp.shape(s))


def integrated(modes: Modes, q: Any, x: Any, length: float) -> tuple[Any, Any]:
    """∫ m dx from 0 to the nodes T x, and to x [m times the unit of m]; exact for polynomials."""
    if not callable(modes):
        table = _coefficients(modes)
        c, s = q @ (table * length / np.arange(1, table.shape[1] + 1)), x / length
        return T * s * _horner(c, T * s), s * _horner(c, s)
    along = combined(modes, q, T * x / length)
    return x * (RUNNING @ along), x * (W * along).sum()


def check_modes(modes: Any, where: str) -> None:
    """Raise ModelError where modes are neither polynomials nor a function of s."""
    if not callable(modes):
        rule = "must be a list of polynomials, each its coefficients by rising power, or a function of s"
        checks.require(isinstance(modes, Sequence) and len(modes) > 0, where, rule, modes)
        for k, polynomial in enumerate(modes):
            found = checks.array(polynomial, (-1,), f"{where}[{k}]", "must be a list of finite coefficients")
            checks.require(len(found) > 0, f"{where}[{k}]", "must have at least one coefficient", polynomial)
        return
    import jax

    try:
        found = np.asarray(in_double(jax.jit(modes))(np.float64(0.5)))
    except Exception as error:
        text = str(error).partition("\n")[0]
        rule = "must be a function of s made of jax.numpy"
        raise ModelError(f"{where}: {rule}; it failed ({type(error).__name__}: {text})") from error
    fits = found.ndim == 1 and found.size > 0 and bool(np.isfinite(found).all())
    checks.require(fits, where, "must return finite values of shape (k,)", found)
