"""Recursion of derivatives over the steps of a motion in a kernel, forwards and backwards.

A stage of a step from state n (schemes) has the displacement Δ, its rate w and the unknown acceleration x, with weights
p of Δ and w of its rate. For stored poses that integrate rates v = T w + W δΔ and a = x + c₁ (v − w), otherwise v = w
and a = x. In the tangent space

    δΔ = p₀ x + k_Δ,   δw = w₀ x + k_w,   k from δvₙ, δaₙ, δâₙ and earlier stages                          (1)
    S (x; δλ) = f − K̃ (E δqₙ + T k_Δ) − D (T k_w + W k_Δ) − c₁ M (T k_w + W k_Δ − k_w)                     (2)
    δqₙ₊₁ = E δqₙ + T δΔ,   K̃ = (∂r/∂q; A_q/p₀),   D = ∂r/∂v,   M = ∂r/∂a                                 (3)

with E = Ad(exp Δ)⁻¹ and T = T(Δ) for stored poses, and E = T = 1 for other coordinates. With K = ∂r/∂q,

    S = M + w₀ D' + p₀ K',   K' = K T + (D + c₁ M) W and D' = D T + c₁ M (T − 1)   of poses that integrate rates,
    K' = K T and D' = D   of other poses,   K' = K and D' = D   of other coordinates;
    with loops  (S, −Aᵀ; A_q T, 0)                                                                         (4)

A row of loops that depends on other rows is replaced by a row of the identity. Each row of S is scaled to size one in
coordinates of size (M + w₀ |D| + p₀ |K|)^(-1/2), from the diagonals, or of natural size if these are zero. With this
scaling a symmetric S is factored with its own diagonal as pivots. Without it, rows of stiff coordinates and of loops
become pivots of soft coordinates, and the solutions lose two digits for a heavy arm with a light gripper.

The factors of S solve (2). Transposed they solve the backward recursion: Sᵀ μ = (g; g_λ), where g is the derivative of
the function by x. Then −K̃ᵀ μ, −Dᵀ μ and −Mᵀ μ are added to the derivatives by the other terms of (2), and μ is the
derivative by f. One factorisation and one solution are enough for all inputs and design values.

Where contacts stick, changes of anchors are propagated too and add to f; their equations are those of anchors. Contact
pairs are stored in rows, for all stages of all steps in turn. Stage r has the rows from begin[r] to begin[r + 1].
Each row has the number `pair` and the derivatives `slopes`: of the generalised force by the anchor, (nv, 6), and of the
anchor at the end of a step by q and by v there, (6, nv) each, and by the anchor before, (6, 6). `anchor_change`
contains the changes of all anchors, or the derivatives by them, at the end of a step. K, A_q, D, M and the scales of
rows are those of a window of steps, with row `here`. T, E and W are those of all steps.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, final

import numpy as np
import warp as wp

from lissom.errors import ConvergenceError
from lissom.launch.compiling import load
from lissom.launch.cores import build_lock, cores, run_on_pool
from lissom.lie.native import native_functions
from lissom.lie.types import kernel_options
from lissom.lie.warp_private import direct_call
from lissom.passes.linear_algebra import lu_factor, lu_solve_at, lu_solve_transposed

wp.set_module_options(kernel_options())

Rows = wp.array2d(dtype=wp.float64)
Integers = wp.array2d(dtype=wp.int32)
Numbers = wp.array(dtype=wp.int32)

MAKE, FACTOR, BACKWARD, FORWARD = range(4)
_LEAST_PER_THREAD = 16

native = native_functions("gradients/recursion.h")


@wp.func_native(native("stage_matrix"))
def stage_matrix(
    nv: int, n: int, width: int, wide: int, stages: int, groups: int, rates: int, r: int, here: int, s: int,
    weights: Rows, group: Integers, T: Rows, W: Rows, K: Rows, D: Rows, M: Rows, A: Rows, A_q: Rows, slot: Integers,
    scale: wp.array(dtype=wp.float64), matrix: Rows, units: Rows,
):  # fmt: skip
    """S of row `here` of a window, with the pose maps of row r of all steps. Dependent rows of A_q become zero."""
    ...


@wp.func_native(native("begin_backward"))
def begin_backward(
    nv: int, n: int, stages: int, groups: int, rates: int, base: int, own: int, k: int, s: int, weights: Rows,
    group: Integers, T: Rows, E: Rows, W: Rows, seeds: Rows, state: Rows, work: Rows, mu: Rows,
):  # fmt: skip
    """Right side of Sᵀ μ = g in stage s of step k: derivatives by the end of the step, with `seeds`, and by the use of
    this stage in later ones."""
    ...


@wp.func_native(native("end_backward"))
def end_backward(
    nv: int, n: int, width: int, stages: int, groups: int, rates: int, base: int, here: int, own: int, k: int, s: int,
    weights: Rows, group: Integers, T: Rows, E: Rows, W: Rows, K: Rows, A_q: Rows, D: Rows, M: Rows, units: Rows,
    state: Rows, work: Rows, mu: Rows,
):  # fmt: skip
    """Scale μ, and add −K̃ᵀ μ, −Dᵀ μ and −Mᵀ μ to the derivatives by the start of the step and by earlier stages."""
    ...


@wp.func_native(native("begin_forward"))
def begin_forward(
    nv: int, n: int, width: int, stages: int, groups: int, rates: int, base: int, here: int, own: int, k: int, s: int,
    weights: Rows, group: Integers, T: Rows, E: Rows, W: Rows, K: Rows, A_q: Rows, D: Rows, M: Rows, units: Rows,
    forcing: Rows, state: Rows, work: Rows, unknown: Rows,
):  # fmt: skip
    """Right side of (2) in stage s of step k."""
    ...


@wp.func_native(native("end_forward"))
def end_forward(
    nv: int, n: int, stages: int, groups: int, rates: int, base: int, own: int, k: int, s: int, weights: Rows,
    group: Integers, T: Rows, E: Rows, W: Rows, state: Rows, work: Rows, unknown: Rows, result: Rows,
):  # fmt: skip
    """δΔ, δv and δa of a stage by (1), and after the last stage the end of the step by (3)."""
    ...


@wp.func_native(native("pull_forward"))
def pull_forward(
    nv: int, n: int, stages: int, base: int, own: int, k: int, s: int, begin: Numbers, pair: Numbers, slopes: Rows,
    anchor_change: Rows, forcing: Rows,
):  # fmt: skip
    """Add the forces of changed anchors to f of stage s of step k."""
    ...


@wp.func_native(native("move_forward"))
def move_forward(
    nv: int, numbers: int, stages: int, base: int, own: int, k: int, begin: Numbers, pair: Numbers, slopes: Rows,
    state: Rows, anchor_change: Rows, moves: Rows,
):  # fmt: skip
    """Changes of anchors at the end of step k, added to the entries of `moves` in the rows there. Changes of pairs
    without contact become zero."""
    ...


@wp.func_native(native("move_backward"))
def move_backward(
    nv: int, numbers: int, stages: int, base: int, own: int, k: int, begin: Numbers, pair: Numbers, slopes: Rows,
    state: Rows, anchor_change: Rows, moves: Rows,
):  # fmt: skip
    """Propagate derivatives by the anchors at the end of step k to the state there and to the anchors before. `moves`
    receives them by rows."""
    ...


@wp.func_native(native("pull_backward"))
def pull_backward(
    nv: int, n: int, stages: int, base: int, own: int, k: int, s: int, begin: Numbers, pair: Numbers, slopes: Rows,
    anchor_change: Rows, mu: Rows,
):  # fmt: skip
    """Add the part of μ of stage s of step k to the derivatives by the anchors of the contact pairs there."""
    ...


@wp.kernel
def recursion_kernel(
    task: int, sizes: wp.array(dtype=wp.int32), window: wp.array(dtype=wp.int32), weights: Rows, group: Integers,
    T: Rows, E: Rows, W: Rows, scale: wp.array(dtype=wp.float64), K: Rows, D: Rows, M: Rows, A: Rows, A_q: Rows,
    slot: Integers, begin: Numbers, pair: Numbers, slopes: Rows, matrix: Rows, L: Rows, pivots: Integers, units: Rows,
    status: Integers, given: Rows, state: Rows, work: Rows, unknown: Rows, result: Rows, anchor_change: Rows,
    moves: Rows, first: int,
):  # fmt: skip
    # sizes: unknowns, coordinates, both padded, steps, stages, stored poses, whether these integrate rates, steps of a
    # window, numbers of all anchors, directions. window: its first step, then the first and the last step of the task
    i = first + wp.tid()
    n = sizes[0]
    nv = sizes[1]
    wide = sizes[2]
    width = sizes[3]
    steps = sizes[4]
    stages = sizes[5]
    groups = sizes[6]
    rates = sizes[7]
    many = sizes[8]
    anchors = sizes[9]
    if task < BACKWARD:
        at = i / (many * stages) * steps * stages + window[0] * stages + i % (many * stages)
        stage_matrix(nv, n, width, wide, stages, groups, rates, at, i, i % stages, weights, group, T, W, K, D, M, A,
                     A_q, slot, scale, matrix, units)  # fmt: skip
    if task == FACTOR:
        status[i, 0] = lu_factor(n, wide, i, matrix, L, pivots)
    base = i / sizes[10] * steps * stages
    here = i / sizes[10] * many * stages
    if task == BACKWARD:
        for back in range((window[2] - window[1]) * stages):
            at = window[2] * stages - 1 - back
            k = at / stages
            s = at % stages
            r = here + at - window[0] * stages
            if anchors > 0 and s == stages - 1:
                move_backward(nv, anchors, stages, base, i, k, begin, pair, slopes, state, anchor_change, moves)
            begin_backward(
                nv, n, stages, groups, rates, base, i, k, s, weights, group, T, E, W, given, state, work, result
            )
            lu_solve_transposed(n, wide, r, matrix, L, pivots, i, at * n, result)
            end_backward(
                nv, n, width, stages, groups, rates, base, r, i, k, s, weights, group, T, E, W, K, A_q, D, M, units,
                state, work, result,
            )  # fmt: skip
            if anchors > 0:
                pull_backward(nv, n, stages, base, i, k, s, begin, pair, slopes, anchor_change, result)
    if task == FORWARD:
        for at in range(window[1] * stages, window[2] * stages):
            k = at / stages
            s = at % stages
            r = here + at - window[0] * stages
            if anchors > 0:
                pull_forward(nv, n, stages, base, i, k, s, begin, pair, slopes, anchor_change, given)
            begin_forward(
                nv, n, width, stages, groups, rates, base, r, i, k, s, weights, group, T, E, W, K, A_q, D, M, units,
                given, state, work, unknown,
            )  # fmt: skip
            lu_solve_at(n, wide, r, matrix, L, pivots, i, unknown)
            end_forward(
                nv, n, stages, groups, rates, base, i, k, s, weights, group, T, E, W, state, work, unknown, result
            )
            if anchors > 0 and s == stages - 1:
                move_forward(nv, anchors, stages, base, i, k, begin, pair, slopes, state, anchor_change, moves)


@final
@dataclass(frozen=True)
class Matrices:
    """Matrices at the states of a window, as arrays of Warp in rows of `width`.

    Fields:
        K, D, M: ∂r/∂q, ∂r/∂v and ∂r/∂a. A, A_q: rows of loops. slot: −1 for rows of loops that depend on others.
    """

    K: Any
    D: Any
    M: Any
    A: Any
    A_q: Any
    slot: Any


@final
@dataclass(frozen=True)
class AnchorRows:
    """Contact pairs at the states of several steps, in the form of the kernel.

    Fields:
        numbers: count of numbers of all anchors, 6 n_pairs. begin, pair, slopes: see the module.
    """

    numbers: int
    begin: np.ndarray
    pair: np.ndarray
    slopes: np.ndarray


@final
@dataclass(frozen=True)
class AnchorChanges:
    """Changes of anchors, or derivatives by anchors, of several directions.

    Fields:
        z: of all pairs, (count, directions, numbers), at the start of the steps; the recursion replaces it by that at
        their end, or backwards the other way. moves: by rows of all stages of each motion,
        (count, directions, 6 most rows): forwards the terms to add at the ends of steps, backwards the derivatives by
        these terms.
    """

    z: np.ndarray
    moves: np.ndarray


@final
class StageSystems:
    """The systems (2) of the stages of several steps, in the order of motions, then of steps.

    Matrices are in memory for one window of steps at a time, so that they stay in the processor's cache.

    Args:
        count: number of motions. steps: of each motion. window: steps of a window. nv: coordinates. unknowns:
        coordinates and rows of loops. width, wide: nv and unknowns with padding.
        weights: of Δ, w and â in each stage, (stages, 3 (4 + 3 (stages − 1))). rates: whether stored poses integrate
        rates. group: first coordinate and number of coordinates of each stored pose, (groups, 2). turns: T, E and W
        of the poses, (rows, 36 groups). scale: natural sizes of the coordinates, an array of Warp. t: times of all
        rows [s]. given: matrices of the window. fill: a function of a step that computes the matrices of the window
        that begins there. anchors: contact pairs of all rows, where contacts stick.
    """

    def __init__(
        self, count: int, steps: int, window: int, nv: int, width: int, unknowns: int, wide: int, weights: np.ndarray,
        rates: bool, group: np.ndarray, turns: tuple[np.ndarray, np.ndarray, np.ndarray], scale: Any, t: np.ndarray,
        given: Matrices, fill: Callable[[int], None], anchors: AnchorRows | None = None,
    ) -> None:  # fmt: skip
        self.count, self.steps, self.window, self.stages = count, steps, window, len(weights)
        self.nv, self.width, self.unknowns, self.wide = nv, width, unknowns, wide
        self.weights, self.rates, self.group, self.turns, self.t = weights, rates, group, turns, t
        self.given, self.fill, self.anchors = given, fill, anchors
        rows = count * window * self.stages
        self.matrix = np.zeros((rows, unknowns * wide))
        self.units = np.zeros((rows, unknowns))
        sizes = unknowns, nv, wide, width, steps, self.stages, len(group), int(rates), window
        own = anchors or AnchorRows(0, *(np.zeros(1, dtype=np.int32) for _ in range(2)), np.zeros((1, 1)))
        self._sizes = np.array([*sizes, own.numbers, 1], dtype=np.int32)
        self._at = np.zeros(3, dtype=np.int32)
        self._before = [
            *_arrays(self._sizes, self._at, weights, group, *turns), scale,
            *(given.K, given.D, given.M, given.A, given.A_q, given.slot),
            *_arrays(own.begin, own.pair, own.slopes, self.matrix),
        ]  # fmt: skip
        self._units = _arrays(self.units)
        self._none = *_arrays(np.zeros((1, 1))), *_arrays(np.zeros((1, 1), dtype=np.int32))

    def anchor_changes(self, z: np.ndarray) -> AnchorChanges | None:
        """Changes of the anchors of sticking contacts at the start of the steps, with room for their moves; None if no
        contact sticks. z: the changes, (motions, directions, numbers of all anchors)."""
        if self.anchors is None:
            return None
        edges = self.anchors.begin[:: self.steps * self.stages]
        return AnchorChanges(z, np.zeros((*z.shape[:2], 6 * int(np.diff(edges).max(initial=1)))))

    @property
    def windows(self) -> list[tuple[int, int, int]]:
        """The first step of each window, and the first step and the stop of those that no earlier window contains."""
        begins = range(0, self.steps, self.window)
        return [(min(k, self.steps - self.window), k, min(k + self.window, self.steps)) for k in begins]

    def matrices(self) -> Iterator[slice]:
        """The steps of each window in turn. `matrix` holds the matrices S of the present one, not factored."""
        none, other = self._none
        make = self._launch(MAKE, len(self.matrix), [none, other, *self._units, other, *[none] * 7])
        for first, _, stop in self.windows:
            self._at[0] = first
            self.fill(first)
            make()
            yield slice(first, stop)

    def backward(self, seeds: np.ndarray, state: np.ndarray, anchor_change: AnchorChanges | None = None) -> np.ndarray:
        """μ of all stages, shape (count, directions, steps, stages, unknowns).

        Args:
            seeds: derivatives by q, v, a and λ at the end of each step, (count, directions, steps, 3 nv + n_rows).
            state: derivatives by q, v, a and â at the end of the last step, (count, directions, 4 nv). They are
                replaced by those at the start of the first step.
            anchor_change: derivatives by the anchors, replaced in the same way; None if no contact sticks.
        Raises:
            ConvergenceError: a system is singular.
        """
        m = state.shape[1]
        mu = np.zeros((self.count * m, self.steps * self.stages * self.unknowns))
        self._carry(BACKWARD, seeds, state, mu, np.zeros((1, 1)), anchor_change)
        return mu.reshape(self.count, m, self.steps, self.stages, self.unknowns)

    def forward(self, forcing: np.ndarray, state: np.ndarray, anchor_change: AnchorChanges | None = None) -> np.ndarray:
        """δq, δv, δa, δâ and δλ at the end of each step, shape (count, directions, steps, 4 nv + n_rows).

        Args:
            forcing: f of (2), (count, directions, steps, stages, unknowns). Anchors add to it.
            state: δq, δv, δa and δâ at the start of the first step, (count, directions, 4 nv). They are replaced by
                those at the end of the last step.
            anchor_change: changes of anchors, replaced in the same way; None if no contact sticks.
        Raises:
            ConvergenceError: a system is singular.
        """
        m = state.shape[1]
        out = np.zeros((self.count * m, self.steps * (3 * self.nv + self.unknowns)))
        self._carry(FORWARD, forcing, state, out, np.zeros((self.count * m, self.unknowns)), anchor_change)
        return out.reshape(self.count, m, self.steps, -1)

    def _carry(
        self, task: int, given: np.ndarray, state: np.ndarray, result: np.ndarray, unknown: np.ndarray,
        anchor_change: AnchorChanges | None,
    ) -> None:  # fmt: skip
        """Run one task for all windows: BACKWARD from the last window to the first, FORWARD in their order."""
        rows, m = len(self.matrix), state.shape[1]
        work = np.zeros((self.count * m, (4 + 3 * self.stages) * self.nv + 3 * self.width))
        L, status = np.zeros(self.matrix.shape), np.zeros((rows, 1), dtype=np.int32)
        made = L, np.zeros((rows, self.unknowns), dtype=np.int32)
        flat = given.reshape(self.count * m, -1), state.reshape(self.count * m, -1)
        z, moves = (np.zeros((1, 1)),) * 2 if anchor_change is None else (anchor_change.z, anchor_change.moves)
        if anchor_change is not None:
            z, moves = z.reshape(self.count * m, -1), moves.reshape(self.count * m, -1)
        carried = [*_arrays(*made), *self._units, *_arrays(status, *flat, work, unknown, result, z, moves)]
        self._sizes[-1] = m
        factor, carry = self._launch(FACTOR, rows, carried), self._launch(task, self.count * m, carried)
        for window in reversed(self.windows) if task == BACKWARD else self.windows:
            self._at[:] = window
            self.fill(window[0])
            factor()
            if status.any():
                row = int(np.flatnonzero(status)[0])
                motion, rest = divmod(row, self.window * self.stages)
                t = self.t[(motion * self.steps + window[0]) * self.stages + rest]
                rule = "a step has no derivative, its matrix is singular; take a shorter dt"
                raise ConvergenceError(f"rollout at t={t:g} s: {rule}")
            carry()

    def _launch(self, task: int, count: int, more: list[Any]) -> Callable[[], None]:
        """A function that runs the kernel for `count` instances, split over the cores."""
        with build_lock():
            load([recursion_kernel.module], "cpu")
        parts = max(1, min(cores(), count // (1 if task in (BACKWARD, FORWARD) else _LEAST_PER_THREAD)))
        calls = []
        for first, stop in pairwise(np.linspace(0, count, parts + 1).astype(int).tolist()):
            inputs = [task, *self._before, *more, first]
            with build_lock():
                command = wp.launch(recursion_kernel, stop - first, inputs=inputs, device="cpu", record_cmd=True)
                calls.append(direct_call(command))
        return calls[0] if len(calls) == 1 else partial(run_on_pool, calls)


def _arrays(*values: np.ndarray) -> list[Any]:
    """Arrays of Warp that share the memory of NumPy arrays."""
    dtypes = [wp.int32 if x.dtype == np.int32 else wp.float64 for x in values]
    return [wp.array(x, dtype=dtype, device="cpu", copy=False) for x, dtype in zip(values, dtypes)]
