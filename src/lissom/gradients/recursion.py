"""Derivatives of the steps of a motion, carried on from one to the next inside a kernel, forwards and backwards.

In the tangent space a stage of a step from n (schemes) gives, with the weights p of Δ, w of its rate and x of its
acceleration, where v = T w + W δΔ and a = x + c₁ (v − w) in coordinates of a stored pose that adds up rates, else
v = w and a = x,

    δΔ = p₀ x + k_Δ,   δw = w₀ x + k_w,   k of δvₙ, δaₙ, δâₙ and of the stages before                      (1)
    S (x; δλ) = f − K̃ (E δqₙ + T k_Δ) − D (T k_w + W k_Δ) − c₁ M (T k_w + W k_Δ − k_w)                     (2)
    δqₙ₊₁ = E δqₙ + T δΔ,   K̃ = (∂r/∂q; A_q/p₀),   D = ∂r/∂v,   M = ∂r/∂a                                 (3)

with E = Ad(exp Δ)⁻¹ and T = T(Δ), both 1 but in coordinates of a stored pose. The matrix S has, with K = ∂r/∂q,

    S = M + w₀ D' + p₀ K',   K' = K T + (D + c₁ M) W and D' = D T + c₁ M (T − 1)   of poses that add up rates,
    K' = K T and D' = D   of other poses,   K' = K and D' = D   of other coordinates;
    with loops  (S, −Aᵀ; A_q T, 0)                                                                         (4)

A row of loops that follows from the others is one of the identity. Each row is multiplied by a unit that makes it of
size one in coordinates of size (M + w₀ |D| + p₀ |K|)^(-1/2), of the diagonals, or of natural size where these are zero:
so a symmetric S has its own diagonal for pivots. Otherwise rows of stiff coordinates and of loops serve as pivots of
soft ones, and solutions forwards and backwards lose two digits where a heavy arm ends in a light gripper.

S and its factors serve (2) and, transposed, the way backwards: with g, of all that depends on x, Sᵀ μ = (g; g_λ), and
−K̃ᵀ μ, −Dᵀ μ, −Mᵀ μ go on to the terms of (2), while μ itself is the derivative by f. One matrix and one solution serve
all inputs and design values.

Where contacts stick, changes of anchors go along and add to f; their equations are those of anchors. The pairs that
touch stand in rows, those of each stage of each step behind each other from `begin` on, with their number `pair` and
with `slopes`: generalised force by the anchor, (nv, 6), and the anchor that a step ends with by q and by v there,
(6, nv) each, and by the one before, (6, 6). `held` has the changes of the anchors of all pairs, or derivatives by them,
at the end of a step. K, A_q, D, M and the units of rows are those of a window of steps, row `here`; T, E and W those of
all steps.
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
from lissom.launch.warp_private import direct_call
from lissom.lie.native import native_functions
from lissom.lie.types import kernel_options
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
    """S of row `here` of a window, whose poses have moved as row r of all; rows of A_q that follow from others become
    zero."""
    ...


@wp.func_native(native("begin_backward"))
def begin_backward(
    nv: int, n: int, stages: int, groups: int, rates: int, base: int, own: int, k: int, s: int, weights: Rows,
    group: Integers, T: Rows, E: Rows, W: Rows, seeds: Rows, state: Rows, work: Rows, mu: Rows,
):  # fmt: skip
    """The right side of Sᵀ μ = g in stage s of step k: derivatives by what the step leaves, with `seeds`, and by what
    the stages behind take from this one."""
    ...


@wp.func_native(native("end_backward"))
def end_backward(
    nv: int, n: int, width: int, stages: int, groups: int, rates: int, base: int, here: int, own: int, k: int, s: int,
    weights: Rows, group: Integers, T: Rows, E: Rows, W: Rows, K: Rows, A_q: Rows, D: Rows, M: Rows, units: Rows,
    state: Rows, work: Rows, mu: Rows,
):  # fmt: skip
    """Give μ its units, and hand on −K̃ᵀ μ, −Dᵀ μ and −Mᵀ μ to the start of the step and to the stages before."""
    ...


@wp.func_native(native("begin_forward"))
def begin_forward(
    nv: int, n: int, width: int, stages: int, groups: int, rates: int, base: int, here: int, own: int, k: int, s: int,
    weights: Rows, group: Integers, T: Rows, E: Rows, W: Rows, K: Rows, A_q: Rows, D: Rows, M: Rows, units: Rows,
    forcing: Rows, state: Rows, work: Rows, unknown: Rows,
):  # fmt: skip
    """The right side of (2) in stage s of step k."""
    ...


@wp.func_native(native("end_forward"))
def end_forward(
    nv: int, n: int, stages: int, groups: int, rates: int, base: int, own: int, k: int, s: int, weights: Rows,
    group: Integers, T: Rows, E: Rows, W: Rows, state: Rows, work: Rows, unknown: Rows, result: Rows,
):  # fmt: skip
    """δΔ, δv and δa of a stage from (1), and behind the last one what the step leaves, by (3)."""
    ...


@wp.func_native(native("pull_forward"))
def pull_forward(
    nv: int, n: int, stages: int, base: int, own: int, k: int, s: int, begin: Numbers, pair: Numbers, slopes: Rows,
    held: Rows, forcing: Rows,
):  # fmt: skip
    """Add to f of stage s of step k what the changes of anchors give."""
    ...


@wp.func_native(native("move_forward"))
def move_forward(
    nv: int, numbers: int, stages: int, base: int, own: int, k: int, begin: Numbers, pair: Numbers, slopes: Rows,
    state: Rows, held: Rows, moves: Rows,
):  # fmt: skip
    """Changes of anchors at the end of step k, to what `moves` has of the rows there; none of pairs that do not
    touch."""
    ...


@wp.func_native(native("move_backward"))
def move_backward(
    nv: int, numbers: int, stages: int, base: int, own: int, k: int, begin: Numbers, pair: Numbers, slopes: Rows,
    state: Rows, held: Rows, moves: Rows,
):  # fmt: skip
    """Hand derivatives by the anchors that step k leaves on to its end and to the anchors before; `moves` has them by
    rows."""
    ...


@wp.func_native(native("pull_backward"))
def pull_backward(
    nv: int, n: int, stages: int, base: int, own: int, k: int, s: int, begin: Numbers, pair: Numbers, slopes: Rows,
    held: Rows, mu: Rows,
):  # fmt: skip
    """Hand μ of stage s of step k on to the anchors that pull there."""
    ...


@wp.kernel
def recursion_kernel(
    task: int, sizes: wp.array(dtype=wp.int32), window: wp.array(dtype=wp.int32), weights: Rows, group: Integers,
    T: Rows, E: Rows, W: Rows, scale: wp.array(dtype=wp.float64), K: Rows, D: Rows, M: Rows, A: Rows, A_q: Rows,
    slot: Integers, begin: Numbers, pair: Numbers, slopes: Rows, matrix: Rows, L: Rows, pivots: Integers, units: Rows,
    status: Integers, given: Rows, state: Rows, work: Rows, unknown: Rows, result: Rows, held: Rows, moves: Rows,
    first: int,
):  # fmt: skip
    # sizes: of unknowns, of coordinates, both padded, of steps, stages, stored poses, whether these add up rates, steps
    # of a window, numbers of anchors, directions; window: its first step, then the first and the last of what is to
    # be done
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
                move_backward(nv, anchors, stages, base, i, k, begin, pair, slopes, state, held, moves)
            begin_backward(
                nv, n, stages, groups, rates, base, i, k, s, weights, group, T, E, W, given, state, work, result
            )
            lu_solve_transposed(n, wide, r, matrix, L, pivots, i, at * n, result)
            end_backward(
                nv, n, width, stages, groups, rates, base, r, i, k, s, weights, group, T, E, W, K, A_q, D, M, units,
                state, work, result,
            )  # fmt: skip
            if anchors > 0:
                pull_backward(nv, n, stages, base, i, k, s, begin, pair, slopes, held, result)
    if task == FORWARD:
        for at in range(window[1] * stages, window[2] * stages):
            k = at / stages
            s = at % stages
            r = here + at - window[0] * stages
            if anchors > 0:
                pull_forward(nv, n, stages, base, i, k, s, begin, pair, slopes, held, given)
            begin_forward(
                nv, n, width, stages, groups, rates, base, r, i, k, s, weights, group, T, E, W, K, A_q, D, M, units,
                given, state, work, unknown,
            )  # fmt: skip
            lu_solve_at(n, wide, r, matrix, L, pivots, i, unknown)
            end_forward(
                nv, n, stages, groups, rates, base, i, k, s, weights, group, T, E, W, state, work, unknown, result
            )
            if anchors > 0 and s == stages - 1:
                move_forward(nv, anchors, stages, base, i, k, begin, pair, slopes, state, held, moves)


@final
@dataclass(frozen=True)
class Matrices:
    """∂r/∂q, ∂r/∂v and ∂r/∂a at the states of a window in rows of `width`, the rows A and A_q of loops, and −1 for
    those of them that follow from others; arrays of Warp."""

    K: Any
    D: Any
    M: Any
    A: Any
    A_q: Any
    slot: Any


@final
@dataclass(frozen=True)
class AnchorRows:
    """Pairs that touch at the states of some steps, as the kernel takes them, and how many numbers all anchors
    have."""

    numbers: int
    begin: np.ndarray
    pair: np.ndarray
    slopes: np.ndarray


@final
@dataclass(frozen=True)
class Held:
    """Changes of the anchors of all pairs, or derivatives by them, (count, m, numbers), at one end of some steps, which
    those at the other end replace. Those by rows of all stages of each motion, (count, m, 6 most rows): forwards what
    is to be added at the ends of steps, backwards the derivatives by that."""

    z: np.ndarray
    moves: np.ndarray


@final
class StageSystems:
    """The systems (2) of the stages of some steps, of motion after motion, step by step. A window of some steps at a
    time is there, so that what is read again stays in a cache.

    Args:
        count: motions. steps: of each. window: steps that are there at once. nv, unknowns: coordinates, and these with
        rows of loops. width, wide: how many with padding. weights: of each stage, (stages, 3 (4 + 3 (stages − 1))):
        those in Δ, w and â. rates: whether stored poses add up rates. group: where the coordinates of stored poses
        begin and how many there are, (groups, 2). turns: T, E and W of these, (rows, 36 groups). scale: natural sizes
        of the coordinates, an array of Warp. t: of all rows [s]. given: matrices of the window. fill: puts them there,
        of the window that begins with a step. anchors: where contacts stick, those that touch at all rows.
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

    def held(self, z: np.ndarray) -> Held | None:
        """Changes of anchors or derivatives by them, (count, m, numbers), to go along; None where nothing sticks."""
        if self.anchors is None:
            return None
        edges = self.anchors.begin[:: self.steps * self.stages]
        return Held(z, np.zeros((*z.shape[:2], 6 * int(np.diff(edges).max(initial=1)))))

    @property
    def windows(self) -> list[tuple[int, int, int]]:
        """First step of each window, and where begins and ends what none before has had."""
        begins = range(0, self.steps, self.window)
        return [(min(k, self.steps - self.window), k, min(k + self.window, self.steps)) for k in begins]

    def matrices(self) -> Iterator[slice]:
        """The steps of each window in turn, while its matrices S are there, not factored."""
        none, other = self._none
        make = self._launch(MAKE, len(self.matrix), [none, other, *self._units, other, *[none] * 7])
        for first, _, stop in self.windows:
            self._at[0] = first
            self.fill(first)
            make()
            yield slice(first, stop)

    def backward(self, seeds: np.ndarray, state: np.ndarray, held: Held | None = None) -> np.ndarray:
        """μ of all stages, shape (count, m, steps, stages, unknowns).

        Args:
            seeds: derivatives by q, v, a and λ at the end of each step, (count, m, steps, 3 nv + n_rows).
            state: derivatives by q, v, a and â at the end of the last one, (count, m, 4 nv); replaced by those at the
                start of the first. held: derivatives by the anchors alike, where contacts stick.
        Raises:
            ConvergenceError: a system is singular.
        """
        m = state.shape[1]
        mu = np.zeros((self.count * m, self.steps * self.stages * self.unknowns))
        self._carry(BACKWARD, seeds, state, mu, np.zeros((1, 1)), held)
        return mu.reshape(self.count, m, self.steps, self.stages, self.unknowns)

    def forward(self, forcing: np.ndarray, state: np.ndarray, held: Held | None = None) -> np.ndarray:
        """δq, δv, δa, δâ and δλ at the end of each step, shape (count, m, steps, 4 nv + n_rows).

        Args:
            forcing: f of (2), (count, m, steps, stages, unknowns); anchors add to it.
            state: δq, δv, δa and δâ at the start of the first step, (count, m, 4 nv); replaced by those at the end of
                the last. held: changes of anchors alike, where contacts stick.
        Raises:
            ConvergenceError: a system is singular.
        """
        m = state.shape[1]
        out = np.zeros((self.count * m, self.steps * (3 * self.nv + self.unknowns)))
        self._carry(FORWARD, forcing, state, out, np.zeros((self.count * m, self.unknowns)), held)
        return out.reshape(self.count, m, self.steps, -1)

    def _carry(
        self, task: int, given: np.ndarray, state: np.ndarray, result: np.ndarray, unknown: np.ndarray,
        held: Held | None,
    ) -> None:  # fmt: skip
        """One task for all windows, from the last one on backwards."""
        rows, m = len(self.matrix), state.shape[1]
        work = np.zeros((self.count * m, (4 + 3 * self.stages) * self.nv + 3 * self.width))
        L, status = np.zeros(self.matrix.shape), np.zeros((rows, 1), dtype=np.int32)
        made = L, np.zeros((rows, self.unknowns), dtype=np.int32)
        flat = given.reshape(self.count * m, -1), state.reshape(self.count * m, -1)
        along = (
            (np.zeros((1, 1)),) * 2 if held is None else [x.reshape(self.count * m, -1) for x in (held.z, held.moves)]
        )
        carried = [*_arrays(*made), *self._units, *_arrays(status, *flat, work, unknown, result, *along)]
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
        """The kernel for so many instances, split over the cores."""
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
    """The same memory as arrays of the kernel."""
    dtypes = [wp.int32 if x.dtype == np.int32 else wp.float64 for x in values]
    return [wp.array(x, dtype=dtype, device="cpu", copy=False) for x, dtype in zip(values, dtypes)]
