"""Checks of a description. Each check raises a ModelError that states the path of the entity, the rule and the
value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from math import isfinite
from typing import Any, final

import numpy as np

from lissom.errors import ModelError, ShapeError, lost


def fail(where: str, rule: str, value: Any, cure: str = "") -> ModelError:
    """A ModelError for a broken rule. where: path of the entity. rule: the rule. value: the wrong value. cure: a
    remedy, at the end of the message."""
    try:
        text = repr(value.tolist() if isinstance(value, np.ndarray | np.generic) else value)
    except Exception:  # a number with more digits than Python writes, or an object whose repr fails
        text = f"a {type(value).__name__} that cannot be written"
    return ModelError(f"{where}: {rule} (got {text if len(text) <= 120 else text[:117] + '...'}){cure}")


def nearest(word: Any, known: Iterable[str]) -> str:
    """The known word nearest to an unknown word, as the end of an error message; empty if no known word is similar."""
    if not isinstance(word, str) or len(word) > _LONGEST_WORD:
        return ""
    small = {one.lower(): one for one in known}
    near = get_close_matches(word.lower(), small, n=1, cutoff=0.5)
    inside = [one for one in small if len(word) > 2 and word.lower() in one]
    return f"; did you mean {small[(near or inside)[0]]!r}?" if near or inside else ""


def title(name: Any, where: str, *, may_be_empty: bool = False) -> None:
    """Raise ModelError unless `name` is printable text of one line."""
    good = isinstance(name, str) and (may_be_empty or bool(name.strip()))
    require(good, where, "must be a text" if may_be_empty else "must be a text that is not empty", name)
    rule = "must hold letters that can be shown, no control characters and no line breaks"
    require(name.isprintable(), where, rule, name)


def named(word: Any, known: Mapping[str, Any], where: str, what: str) -> None:
    """Raise ModelError unless `word` is a key of `known`. `what` is a plural noun for the keys, used in the message."""
    if not (isinstance(word, str) and word in known):
        raise fail(where, f"must be one of the {what} {sorted(known)}", word, nearest(word, known))


_LONGEST_WORD = 100  # characters; a longer word is not compared with others
SIZE = "its numbers must be of a size that can be multiplied"
_found: ContextVar[list[ModelError] | None] = ContextVar("found", default=None)


@contextmanager
def gathered() -> Iterator[list[ModelError]]:
    """Inside this block, collect the first error of each `part` in a list instead of raising it."""
    found: list[ModelError] = []
    token = _found.set(found)
    try:
        yield found
    finally:
        _found.reset(token)


@contextmanager
def sized(where: str) -> Iterator[None]:
    """Replace an OverflowError inside the block by a ModelError about the numbers of `where`."""
    try:
        yield
    except OverflowError as error:
        raise ModelError(f"{where}: {SIZE} (arithmetic overflows)") from error


@final
class part:
    """A block that checks one part of a description. Inside `gathered` its error is collected, otherwise raised.

    It is a class since a robot has a block for each joint and body, and a generator takes four times as long.
    """

    def __init__(self, where: str) -> None:
        self.where = where

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        if isinstance(error, ModelError) and (found := _found.get()) is not None:
            found.append(error)
            return True
        if isinstance(error, OverflowError):
            with part(self.where), sized(self.where):
                raise error
            return True
        return False


def faults() -> int:
    """Number of errors that `gathered` has collected so far."""
    return len(_found.get() or ())


def require(condition: bool, where: str, rule: str, value: Any) -> None:
    """Raise ModelError unless `condition` holds."""
    if not condition:
        raise fail(where, rule, value)


def among(value: Any, kinds: tuple[str | None, ...]) -> bool:
    """Whether `value` is one of the words `kinds`. An array is never one, although `in` compares its entries."""
    return (value is None or isinstance(value, str)) and value in kinds


def time(t: Any) -> None:
    """Raise ModelError unless `t` is one finite time."""
    if type(t) is not float or t - t:
        number(t, "t")


def times(t: Any) -> None:
    """Raise ModelError unless `t` is a finite time or an array of finite times."""
    if type(t) is not float or t - t:
        rule = "must be finite times"
        array(t, (-1,) * len(shape(t)), "t", rule)


def shape(value: Any) -> tuple[int, ...]:
    """The shape of a value as an array; (n, −1) for a list of n parts that have different shapes."""
    try:
        return np.shape(value)
    except ValueError:
        return len(value), -1


def array(value: Any, shape: tuple[int, ...], where: str, rule: str) -> np.ndarray:
    """`value` as a finite float64 array of shape `shape`. An axis with -1 in `shape` may have any length."""
    if missing := lost(value):
        raise ModelError(f"{where}: {missing}")
    try:
        out = np.array(value, dtype=np.float64)  # a copy, so that later edits by the user have no effect
    except (TypeError, ValueError, OverflowError):
        raise fail(where, rule, value) from None
    fits = out.shape == shape or (
        out.ndim == len(shape) and all(n in (-1, m) for n, m in zip(shape, out.shape, strict=True))
    )
    require(fits and bool(np.isfinite(out).all()), where, rule, value)
    return out


def each(value: Any, count: int, where: str, rule: str) -> np.ndarray:
    """`value` as a float64 array of shape (count,). `value` is one finite number for all entries, or one for each
    entry."""
    own = (count,) if shape(value) else ()
    return np.broadcast_to(array(value, own, where, rule), (count,)).copy()


def number(value: Any, where: str, *, above: float | None = None, least: float | None = None) -> float:
    """`value` as a finite float that is > `above` or >= `least`, if these are given."""
    bound = f" > {above:g}" if above is not None else f" >= {least:g}" if least is not None else " a finite number"
    rule = f"must be{bound}"
    if type(value) is float and isfinite(value):
        out = value
    else:
        require(not isinstance(value, bool | str), where, rule, value)
        out = float(array(value, (), where, rule))
    require((above is None or out > above) and (least is None or out >= least), where, rule, value)
    return out


def integer(value: Any, where: str, *, least: int, most: int | None = None) -> int:
    """`value` as an integer from `least` to `most`; `most` may be None."""
    rule = f"must be an integer >= {least}"
    require(isinstance(value, int | np.integer) and not isinstance(value, bool), where, rule, value)
    require(bool(value >= least), where, rule, value)
    require(most is None or bool(value <= most), where, f"must be at most {most}", value)
    return int(value)


def abscissa(value: Any, where: str) -> float:
    """`value` as a normalised abscissa in [0, 1]."""
    out = number(value, where)
    require(0.0 <= out <= 1.0, where, "must lie in [0, 1]", value)
    return out


def place(value: Any, where: str) -> None:
    """Raise ModelError unless `value` is a place on a link: a normalised abscissa in [0, 1], or a material point of a
    deformable body, given by a finite 3-vector or a name."""
    if isinstance(value, str):
        return
    if isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim > 0):
        array(value, (3,), where, "must be an abscissa in [0, 1], or a material point, a finite 3-vector")
        return
    abscissa(value, where)


def direction(value: Any, where: str) -> np.ndarray:
    """`value` as a unit vector, shape (3,)."""
    out = array(value, (3,), where, "must be a finite 3-vector")
    length = float(np.sqrt(out @ out))
    require(length > 1e-12, where, "must not be zero", value)
    return out / length


def pose(value: Any, where: str) -> np.ndarray:
    """`value` as a rigid transform: a 4x4 matrix with an orthonormal rotation; None is the identity."""
    if value is None:
        return np.eye(4)
    g = array(value, (4, 4), where, "must be a finite 4x4 matrix")
    R = g[:3, :3]
    if R.tolist() == _LEVEL and g[3].tolist() == _LAST:
        return g
    square = R @ R.T
    right_handed = _near(square, _IDENTITY[:3, :3], 1e-6) and float(np.linalg.det(R)) > 0.0
    require(right_handed, where, "its rotation must be orthonormal with determinant +1", value)
    require(_near(g[3], _IDENTITY[3], 1e-8), where, "its last row must be (0, 0, 0, 1)", value)
    if not (square == _IDENTITY[:3, :3]).all():
        U, _, Vt = np.linalg.svd(R)  # remove the rounding the check lets through
        g[:3, :3] = U @ Vt
    g[3] = _IDENTITY[3]
    return g


_IDENTITY = np.eye(4)
_LEVEL, _LAST = _IDENTITY[:3, :3].tolist(), _IDENTITY[3].tolist()


def _near(a: np.ndarray, b: np.ndarray, error: float) -> bool:
    """np.allclose of two finite arrays, which costs ten times as much."""
    return bool((np.abs(a - b) <= error + 1e-5 * np.abs(b)).all())


def symmetric(value: Any, n: int, where: str, *, rule: str = "must be symmetric positive semi-definite") -> np.ndarray:
    """`value` as a symmetric positive semi-definite matrix (n, n). `value` is a number, the n diagonal entries, or a
    matrix."""
    if type(value) is float and value == 0.0:  # the default of springs and dampers
        return np.zeros((n, n))
    return symmetric_spectrum(value, n, where, rule)[0]


def symmetric_spectrum(value: Any, n: int, where: str, rule: str) -> tuple[np.ndarray, np.ndarray]:
    """The matrix (n, n) of `symmetric`, and its eigenvalues in ascending order, shape (n,)."""
    if missing := lost(value):
        raise ModelError(f"{where}: {missing}")
    try:
        raw = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise fail(where, "must be a number, a vector or a matrix of numbers", value) from None
    shapes = {(): lambda: raw * np.eye(n), (n,): lambda: np.diag(raw), (n, n): lambda: raw.copy()}
    require(raw.shape in shapes, where, f"must have shape (), ({n},) or ({n}, {n})", value)
    out = shapes[raw.shape]()
    scale = float(np.abs(out).max(initial=0.0))
    require(isfinite(scale), where, "must be finite", value)
    if raw.ndim < 2:
        moments = np.sort(out.diagonal())
    else:
        require(bool((np.abs(out - out.T) <= 1e-12 * scale).all()), where, rule, value)
        moments = np.linalg.eigvalsh(out)
    require(not n or bool(moments[0] >= -1e-12 * scale), where, rule, value)
    return out, moments


def limits(value: Any, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Limits (low, high) of n inputs as two arrays of shape (n,). An infinite entry is no limit."""
    try:
        low, high = (np.broadcast_to(np.asarray(x, dtype=np.float64), (n,)).copy() for x in value)
    except (TypeError, ValueError):
        raise ShapeError(f"limits: expected (low, high), numbers or shape ({n},), got {value!r}") from None
    require(bool((low <= high).all()), "limits", "must be low <= high", value)
    return low, high


def value_at(value: Any, s: float, where: str) -> Any:
    """`value` itself, or its value at s if it is a function of s."""
    if not callable(value):
        return value
    try:
        return value(s)
    except Exception as error:
        raise ModelError(f"{where}: the function failed at {s:g} ({type(error).__name__}: {error})") from error


def call(function: Callable[..., Any], argument: float, shape: tuple[int, ...], where: str) -> np.ndarray:
    """Value of a user's function at `argument`. Raise ModelError unless it is finite and has shape `shape`."""
    try:
        value = function(argument)
    except Exception as error:
        raise ModelError(f"{where}: the function failed at {argument:g} ({type(error).__name__}: {error})") from error
    return array(value, shape, where, f"the function must return finite values of shape {shape} at {argument:g}")
