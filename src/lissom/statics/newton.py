"""Newton's method for equilibria: plain iterations, then shortest steps if a neutral direction may have disturbed them.

The plain iterations run in the kernel of newton_kernel. Python runs between its parts if forces call Python, and for
the shortest steps. Shortest steps are taken if the tangent stiffness K is singular to rounding, for instance if a round
rod can rotate about its own axis. In units D in which the stiffness of springs and rods is 1,

    D K D = U diag(s) Vᵀ,   x = −D V diag(1/s, 0 where neutral) Uᵀ D r                                    (1)

is the shortest step. A direction is neutral if s < 1e-9 s₁, or if s < 1e-6 s₁ and r along it is a rounding error. A
direction is omitted from one step if s < 1e-3 s₁ and less than a thousandth of r is along it: near a neutral direction
this part of r is meaningless until the rest of r has vanished.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from lissom.dynamics.configuration import integrate
from lissom.dynamics.loads import put_python_forces, python_response
from lissom.launch.workspace import Workspace, independent_rows
from lissom.model.model import Model
from lissom.model.plausibility import is_folded
from lissom.statics.blas_threads import one_thread
from lissom.statics.newton_kernel import (
    BORDER,
    CHECKED_FROM,
    CONVERGED,
    LIMIT,
    NO_STEP,
    RESIDUAL,
    ROUNDING_BELOW,
    ROUNDING_STEP,
    SHORTEST,
    SINGULAR,
    SOLVE,
    UNKNOWNS,
    Sought,
    last_stiffness,
    newton_in_kernel,
    newton_workspace,
    results,
)
from lissom.statics.residual import static_residuals
from lissom.statics.stability import surely_stable

SUSPECT = 1.0  # shortest steps are tried if |r| / |step|, in units of own stiffness, is below this
_SLACK = 1e-3
_SOFT = 1e-6
_NEUTRAL = 1e-9
_CONSISTENT = 1e-6  # largest part of r along neutral directions
_ROUNDING = 1e-13  # rounding error of r, relative to the force of a unit move


def shortest_step(
    model: Model, own: np.ndarray, matrix: np.ndarray, right: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """The two factors of the inverse in (1), diag(1/s) Uᵀ D and D V, to be applied one after the other. Rows and
    columns of omitted directions are zero. None if a force acts along a neutral direction.

    Args:
        own: stiffness of each coordinate by springs and rods (nv,).
        matrix: tangent stiffness followed by the constraint Jacobian, (n, n).
        right: the residual (n,), which decides which directions are neutral or omitted.
    """
    S = model.dofs.scale
    size = float(np.abs(S * right[: model.nv]).max(initial=0.0)) or 1.0
    D = 1.0 / np.sqrt(np.where(own > 0.0, own, size / S**2))
    rows = np.linalg.norm(matrix[model.nv :, : model.nv] * D, axis=1)
    D = np.concatenate([D, 1.0 / np.where(rows > 0.0, rows, 1.0)])
    with one_thread(len(matrix)):
        U, s, V = np.linalg.svd(matrix * D * D[:, None])
    met, rounding = np.abs(U.T @ (D * right)), _ROUNDING * float((S / D[: model.nv]).max(initial=0.0))
    top = max(s[0], 1.0)
    neutral = (s <= _NEUTRAL * top) | ((s <= _SOFT * top) & (met <= rounding))
    if met[neutral].max(initial=0.0) > _CONSISTENT * met.max(initial=0.0) + rounding:
        return None
    left_out = neutral | ((s <= _SLACK * top) & (met <= _SLACK * met.max(initial=0.0)))
    inverse = np.where(left_out, 0.0, 1.0 / np.where(left_out, 1.0, s))
    return (inverse * U).T * D, D[:, None] * np.where(left_out, 0.0, V.T)


_BEYOND = 1e150  # residual set at points where material is turned inside out, so that they are not accepted


def newton_in_python(
    model: Model, q: np.ndarray, force: np.ndarray, sought: Sought, *, shortest: bool = True
) -> tuple[Workspace, int]:
    """The iteration of newton_in_kernel for one robot, with Python forces. It takes shortest steps if the stiffness is
    singular to rounding and no force acts along neutral directions.

    Returns:
        the workspace after the last iteration, and the constant that says how it ended.
    """
    w = newton_workspace(model, q[None], force[None], sought)
    host, matrix, right = w.host, np.zeros(0), np.zeros(0)
    if shortest:
        host["numbers"][[ROUNDING_BELOW, CHECKED_FROM]] = SUSPECT, 0.0
    part = _run(w)
    while part < CONVERGED:
        if part == SOLVE:
            matrix, right = host["matrix"].copy(), host["unknown"].copy()
        part = _continued(model, w, part, sought)
        if shortest and part in (SINGULAR, ROUNDING_STEP) and not host["notes"][0, SHORTEST]:
            part = _shortened(model, w, matrix, right, part)
    return w, part


def bordered_at(model: Model, q: np.ndarray, u: np.ndarray, t: float) -> tuple[np.ndarray, float]:
    """The indices of the independent rows of the constraint Jacobian at q, ascending, and the unit σ of their
    forces."""
    slack = np.zeros(model.n_rows)
    sought = Sought(u[None], t, 1.0, slack, 1.0, 1)
    w = newton_workspace(model, q[None], slack[None], sought)
    part = _run(w)
    while part < SOLVE:
        part = _continued(model, w, part, sought)
    w.raise_for_status()
    return independent_rows(w), float(w.host["sigma"][0])


def _continued(model: Model, w: Workspace, part: int, sought: Sought) -> int:
    """Evaluate the Python forces that a part needs, and run to the next pause. Returns the part at the pause, or how
    the iteration ended."""
    q, v, u = (w.host[name][0] for name in ("q", "v", "u"))
    t, factor = sought.t, sought.factor
    if part == RESIDUAL:
        put_python_forces(model, w.host["extra"][0], w.host["load"], q, v, u, t, factor, sought.support)
        if not np.array_equal(q, w.host["start"][0]) and is_folded(model, q):
            w.host["extra"][0] = _BEYOND
    elif part == BORDER and (model.calls_python or sought.differences):
        K = w.host["K"][0].reshape(model.nv, -1)[:, : model.nv]
        if sought.differences:
            K[:] = difference_stiffness(model, q, sought.u, t, factor, w.host["force"][0])
        else:
            K += python_response(model, q, v, u, t, factor)[0]
    return _run(w)


_ROOT_EPS = float(np.sqrt(np.finfo(float).eps))


def difference_stiffness(
    model: Model, q: np.ndarray, u: np.ndarray, t: float, factor: float, force: np.ndarray
) -> np.ndarray:
    """The tangent stiffness at q (nq,) by forward differences of the residual, shape (nv, nv); u has shape (1, nu)."""
    h = _ROOT_EPS * model.dofs.scale
    seen = integrate(model, q, np.vstack([np.zeros(model.nv), np.diag(h)]))
    rows, _ = static_residuals(model, seen, np.repeat(u, len(seen), axis=0), t, factor, force)
    return (rows[1:, : model.nv] - rows[0, : model.nv]).T / h


def _run(w: Workspace) -> int:
    """Run to the next pause or the end. Returns the part at the pause, or how the iteration ended."""
    w.host["pause"][0, 0] = 1
    w.run()
    return int(w.host["pause"][0, 1])


def _shortened(model: Model, w: Workspace, matrix: np.ndarray, right: np.ndarray, part: int) -> int:
    """Continue the iteration with shortest steps; if there are none, with its last step. Returns the part at the next
    pause, or how the iteration ended."""
    host, n = w.host, int(w.host["notes"][0, UNKNOWNS])
    width = matrix.size // (model.nv + model.n_rows)
    square = matrix.reshape(-1, width)[:n, :n]
    factors = shortest_step(model, host["unit_stiffness"][0], square, right[0, :n])
    if factors is not None:
        for name, factor in zip(("matrix", "factors"), factors):
            host[name].reshape(-1, width)[:n, :n] = factor
        host["unknown"][:], host["notes"][0, SHORTEST] = right, 1.0
    elif part == SINGULAR:
        return SINGULAR
    host["pause"][0, 1] = LIMIT if factors is None else SOLVE
    return _run(w)


_LEAST_LEFT = 2  # smallest limit for iterations with shortest steps, even if the plain ones have reached the limit

# q, constraint forces, iterations, how the iteration ended, whether the equilibrium is certainly stable
End = tuple[np.ndarray, np.ndarray, int, int, bool]


def newton(model: Model, q: np.ndarray, force: np.ndarray, sought: Sought) -> list[End]:
    """The ends of the iterations of a batch; arguments as in newton_in_kernel."""
    ends = []
    for k, (*end, definite) in enumerate(_plain(model, q, force, sought)):
        at, push, count, why, stable = end
        if why in (SINGULAR, ROUNDING_STEP, NO_STEP) or (why == CONVERGED and sought.factor == 1.0 and not definite):
            left = max(_LEAST_LEFT, sought.limit - count)  # a neutral direction may have ended it early
            w, why = newton_in_python(model, at, push, replace(sought.of(k), limit=left))
            at, push, more, _ = (x[0] for x in results(w))
            stable, count = False, count + int(more)
        ends.append((at, push, count, why, stable))
    return ends


def _plain(model: Model, q: np.ndarray, force: np.ndarray, sought: Sought) -> Iterator[tuple[Any, ...]]:
    """`_judged` of plain iterations: all in one launch, or one after another if Python takes part."""
    if not model.calls_python and not sought.differences:
        yield from _judged(newton_in_kernel(model, q, force, sought), sought.factor) if len(q) else ()
        return
    for k in range(len(q)):
        yield from _judged(newton_in_python(model, q[k], force[k], sought.of(k), shortest=False)[0], sought.factor)


def _judged(w: Workspace, factor: float) -> Iterator[tuple[Any, ...]]:
    """The ends of a run, each with whether no direction is neutral at the full load."""
    q, force, iterations, ended = results(w)
    definite = stable = np.zeros(len(q), dtype=bool)
    if factor == 1.0:
        definite, stable = surely_stable(w.model, *last_stiffness(w))
    return zip(q, force, iterations.tolist(), ended.tolist(), stable.tolist(), definite.tolist())
