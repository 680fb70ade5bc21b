"""Recursion of derivatives over the steps of a motion in a kernel, forwards and backwards.

A stage of a step from state n (schemes) has the displacement Δ, its rate w and the unknown acceleration x, with weights
p of Δ and w of its rate. For stored poses that integrate rates v = T w + W δΔ and a = x + c₁ (v − w), otherwise v = w
and a = x. In the tangent space

    δΔ = p₀ x + k_Δ,   δw = w₀ x + k_w,   k from δvₙ, δaₙ, δâₙ and earlier stages                          (1)
    S (x; δλ) = f − K̃ (E δqₙ + T k_Δ) − D (T k_w + W k_Δ) − c₁ M (T k_w + W k_Δ − k_w)                     (2)
    δqₙ₊₁ = E δqₙ + T δΔ,   K̃ = (∂r/∂q; A_q/p₀),   D = (∂r/∂v; A_v/p₀),   M = ∂r/∂a                       (3)

with E = Ad(exp Δ)⁻¹ and T = T(Δ) for stored poses, and E = T = 1 for other coordinates. With K = ∂r/∂q,

    S = M + w₀ D' + p₀ K',   K' = K T + (D + c₁ M) W and D' = D T + c₁ M (T − 1)   of poses that integrate rates,
    K' = K T and D' = D   of other poses,   K' = K and D' = D   of other coordinates;
    with loops  (S, −Aᵀ; A_q T + A_v (c₁ T + W), 0)                                                        (4)

Rows that restrict velocities only hold A v = 0: of these A_q is ∂(A v)/∂q, and A_v = A. Of other rows A_v = 0.

A row of loops that depends on other rows is replaced by a row of the identity. Each row of S is scaled to size one in
coordinates of size (M + w₀ |D| + p₀ |K|)^(-1/2), from the diagonals, or of natural size if these are zero. With this
scaling a symmetric S is factored with its own diagonal as pivots. Without it, rows of stiff coordinates and of loops
become pivots of soft coordinates, and the solutions lose two digits for a heavy arm with a light gripper.

The factors of S solve (2). Transposed they solve the backward recursion: Sᵀ μ = (g; g_λ), where g is the derivative of
the function by x. Then −K̃ᵀ μ, −Dᵀ μ and −Mᵀ μ are added to the derivatives with respect to the other terms of (2), and
μ is the derivative with respect to f. One factorisation and one solution are enough for all inputs and design values.

Where contacts stick, changes of anchors are propagated too and add to f; their equations are those of anchors. Contact
pairs are stored in rows, for all stages of all steps in turn. Stage r has the rows from begin[r] to begin[r + 1].
Each row has the number `pair` and the derivatives `slopes`: of the generalised force by the anchor, (nv, 6), and of the
anchor at the end of a step by q and by v there, (6, nv) each, and by the anchor before, (6, 6). `anchor_change`
contains the changes of all anchors, or the derivatives with respect to them, at the end of a step. K, A_q, D, M and the
scales of rows are those of a window of steps, with row `here`. T, E and W are those of all steps.
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
from lissom.lie.types import by_reference, kernel_options
from lissom.lie.warp_private import direct_call
from lissom.passes.linear_algebra import lu_factor, lu_solve_at, lu_solve_transposed

wp.set_module_options(kernel_options())

Rows = wp.array2d(dtype=wp.float64)
Integers = wp.array2d(dtype=wp.int32)
Numbers = wp.array(dtype=wp.int32)

MAKE, FACTOR, BACKWARD, FORWARD = range(4)
_LEAST_PER_THREAD = 16

native = native_functions("gradients/recursion.h")


@wp.struct
class StageSizesStruct:
    """Sizes of the systems and weights of the scheme. All are inputs.

    n, nv: unknowns and coordinates. wide, width: n and nv with padding. steps: of each motion. stages: of a step.
    groups: number of stored poses. rates: 1 if these integrate rates, otherwise 0. window: steps of a window. anchors:
    count of numbers of all anchors. weights: of Δ, w and â, a row for each stage of the scheme, then of implicit Euler
    (step_changes). scheme: 0 or 1 for each step, which of them it has. scale: natural sizes of coordinates.
    """

    n: wp.int32
    nv: wp.int32
    wide: wp.int32
    width: wp.int32
    steps: wp.int32
    stages: wp.int32
    groups: wp.int32
    rates: wp.int32
    window: wp.int32
    anchors: wp.int32
    weights: Rows
    scheme: Numbers
    scale: wp.array(dtype=wp.float64)


@wp.struct
class PoseMapsStruct:
    """Stored poses. All are inputs.

    group: first coordinate and number of coordinates of each pose. T, E, W: 6x6 matrices of (2) and (3) of all poses,
    a row for each stage of all steps.
    """

    group: Integers
    T: Rows
    E: Rows
    W: Rows


@wp.struct
class StageMatricesStruct:
    """Matrices of a window, a row for each stage of its steps.

    Inputs: K, D, M, A, A_q, A_v and slot as in `Matrices`; dependent rows of A_q and A_v become zero. Outputs: matrix:
    S with scaled rows, padded; FACTOR overwrites it by its factors. units: scales of the rows. status: 0, or another
    number if S is singular. L, pivots: lower factors and pivots of S, unused by MAKE, as is status.
    """

    K: Rows
    D: Rows
    M: Rows
    A: Rows
    A_q: Rows
    A_v: Rows
    slot: Integers
    matrix: Rows
    units: Rows
    L: Rows
    pivots: Integers
    status: Integers


@wp.struct
class AnchorPairsStruct:
    """Contact pairs that stick, in rows as the module describes them. All are inputs."""

    begin: Numbers
    pair: Numbers
    slopes: Rows


@wp.struct
class CarriedStruct:
    """Changes or derivatives carried over the steps, a row for each direction of each motion. MAKE and FACTOR use none.

    Inputs: directions: of each motion. right_side: backwards the seeds by q, v, a and λ at the ends of steps,
    forwards f of (2), to which anchors add. Inputs and outputs: state: at one end of the steps, replaced by that at
    the other end. anchor_change, moves: as in `AnchorChanges`. Output: result: backwards μ, forwards δq, δv, δa, δâ and
    δλ at the ends of steps. Scratch: work: of one step. unknown: of one stage, forwards alone.
    """

    directions: wp.int32
    right_side: Rows
    state: Rows
    anchor_change: Rows
    moves: Rows
    result: Rows
    work: Rows
    unknown: Rows


StageSizes = by_reference(StageSizesStruct)
PoseMaps = by_reference(PoseMapsStruct)
StageMatrices = by_reference(StageMatricesStruct)
AnchorPairs = by_reference(AnchorPairsStruct)
Carried = by_reference(CarriedStruct)


@wp.func_native(native("stage_matrix"))
def stage_matrix(systems: StageSizes, poses: PoseMaps, matrices: StageMatrices, r: int, here: int, s: int):
    """S of row `here` of a window, with the pose maps of row r of all steps. Dependent rows of A_q and A_v become
    zero."""
    ...


@wp.func_native(native("begin_backward"))
def begin_backward(systems: StageSizes, poses: PoseMaps, carried: Carried, base: int, i: int, k: int, s: int):
    """Right side of Sᵀ μ = g in stage s of step k: derivatives with respect to the end of the step, with `seeds`, and
    by the use of this stage in later ones."""
    ...


@wp.func_native(native("end_backward"))
def end_backward(
    systems: StageSizes, poses: PoseMaps, matrices: StageMatrices, carried: Carried,
    base: int, here: int, i: int, k: int, s: int,
):  # fmt: skip
    """Scale μ, and add −K̃ᵀ μ, −Dᵀ μ and −Mᵀ μ to the derivatives with respect to the start of the step and by earlier
    stages."""
    ...


@wp.func_native(native("begin_forward"))
def begin_forward(
    systems: StageSizes, poses: PoseMaps, matrices: StageMatrices, carried: Carried,
    base: int, here: int, i: int, k: int, s: int,
):  # fmt: skip
    """Right side of (2) in stage s of step k."""
    ...


@wp.func_native(native("end_forward"))
def end_forward(systems: StageSizes, poses: PoseMaps, carried: Carried, base: int, i: int, k: int, s: int):
    """δΔ, δv and δa of a stage by (1), and after the last stage the end of the step by (3)."""
    ...


@wp.func_native(native("anchor_forces_forward"))
def anchor_forces_forward(systems: StageSizes, pairs: AnchorPairs, carried: Carried, base: int, i: int, k: int, s: int):
    """Add the forces of changed anchors to f of stage s of step k."""
    ...


@wp.func_native(native("anchor_motion_forward"))
def anchor_motion_forward(systems: StageSizes, pairs: AnchorPairs, carried: Carried, base: int, i: int, k: int):
    """Changes of anchors at the end of step k, added to the entries of `moves` in the rows there. Changes of pairs
    without contact become zero."""
    ...


@wp.func_native(native("anchor_motion_backward"))
def anchor_motion_backward(systems: StageSizes, pairs: AnchorPairs, carried: Carried, base: int, i: int, k: int):
    """Propagate derivatives with respect to the anchors at the end of step k to the state there and to the anchors
    before. `moves` receives them by rows."""
    ...


@wp.func_native(native("anchor_forces_backward"))
def anchor_forces_backward(
    systems: StageSizes, pairs: AnchorPairs, carried: Carried, base: int, i: int, k: int, s: int
):  # fmt: skip
    """Add the part of μ of stage s of step k to the derivatives with respect to the anchors of the contact pairs
    there."""
    ...


@wp.kernel
def recursion_kernel(
    task: int, first: int, window: wp.array(dtype=wp.int32), systems: StageSizesStruct, poses: PoseMapsStruct,
    matrices: StageMatricesStruct, pairs: AnchorPairsStruct, carried: CarriedStruct,
):  # fmt: skip
    # window: its first step, then the first and the last step of the task
    i = first + wp.tid()
    n = systems.n
    wide = systems.wide
    stages = systems.stages
    window_steps = systems.window
    if task < BACKWARD:
        at = i / (window_steps * stages) * systems.steps * stages + window[0] * stages + i % (window_steps * stages)
        stage_matrix(systems, poses, matrices, at, i, i % stages)
    if task == FACTOR:
        matrices.status[i, 0] = lu_factor(n, wide, i, matrices.matrix, matrices.L, matrices.pivots)
    motion = i / carried.directions
    base = motion * systems.steps * stages
    here = motion * window_steps * stages
    if task == BACKWARD:
        for back in range((window[2] - window[1]) * stages):
            at = window[2] * stages - 1 - back
            k = at / stages
            s = at % stages
            r = here + at - window[0] * stages
            if systems.anchors > 0 and s == stages - 1:
                anchor_motion_backward(systems, pairs, carried, base, i, k)
            begin_backward(systems, poses, carried, base, i, k, s)
            lu_solve_transposed(n, wide, r, matrices.matrix, matrices.L, matrices.pivots, i, at * n, carried.result)
            end_backward(systems, poses, matrices, carried, base, r, i, k, s)
            if systems.anchors > 0:
                anchor_forces_backward(systems, pairs, carried, base, i, k, s)
    if task == FORWARD:
        for at in range(window[1] * stages, window[2] * stages):
            k = at / stages
            s = at % stages
            r = here + at - window[0] * stages
            if systems.anchors > 0:
                anchor_forces_forward(systems, pairs, carried, base, i, k, s)
            begin_forward(systems, poses, matrices, carried, base, r, i, k, s)
            lu_solve_at(n, wide, r, matrices.matrix, matrices.L, matrices.pivots, i, carried.unknown)
            end_forward(systems, poses, carried, base, i, k, s)
            if systems.anchors > 0 and s == stages - 1:
                anchor_motion_forward(systems, pairs, carried, base, i, k)


@final
@dataclass(frozen=True)
class Matrices:
    """Matrices at the states of a window, as arrays of Warp in rows of `width`.

    Fields:
        K, D, M: ∂r/∂q, ∂r/∂v and ∂r/∂a. A, A_q: constraint rows. slot: −1 for constraint rows that depend on others.
        A_v: as in (3); without columns if it is zero.
    """

    K: Any
    D: Any
    M: Any
    A: Any
    A_q: Any
    slot: Any
    A_v: Any


@final
@dataclass(frozen=True)
class Sizes:
    """Sizes of the systems of several steps.

    Fields:
        count: number of motions. steps: of each motion. window: steps of a window. nv: coordinates. unknowns:
        coordinates and constraint rows. width, wide: nv and unknowns with padding.
    """

    count: int
    steps: int
    window: int
    nv: int
    width: int
    unknowns: int
    wide: int


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
    """Changes of anchors, or derivatives with respect to anchors, of several directions.

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
        sizes: of the systems and their window.
        weights: of Δ, w and â in each stage, of the scheme and of implicit Euler, (2, stages, 3 (4 + 3 (stages − 1))).
        scheme: which of them each step has, (motions, steps). rates: whether stored poses integrate rates. group:
        first coordinate and number of coordinates of each stored pose, (groups, 2). turns: T, E and W of the poses,
        (rows, 36 groups). scale: natural sizes of the coordinates, an array of Warp. t: times of all rows [s]. given:
        matrices of the window. fill: a function of a step that computes the matrices of the window that begins there.
        anchors: contact pairs of all rows, where contacts stick.
    """

    def __init__(
        self, sizes: Sizes, weights: np.ndarray, scheme: np.ndarray, rates: bool, group: np.ndarray,
        turns: tuple[np.ndarray, np.ndarray, np.ndarray], scale: Any, t: np.ndarray, given: Matrices,
        fill: Callable[[int], None], anchors: AnchorRows | None = None,
    ) -> None:  # fmt: skip
        self.count, self.steps, self.window, self.stages = sizes.count, sizes.steps, sizes.window, weights.shape[1]
        self.nv, self.width, self.unknowns, self.wide = sizes.nv, sizes.width, sizes.unknowns, sizes.wide
        self.weights, self.scheme, self.rates, self.group, self.turns, self.t = weights, scheme, rates, group, turns, t
        self.given, self.fill, self.anchors = given, fill, anchors
        rows = self.count * self.window * self.stages
        self.matrix = np.zeros((rows, self.unknowns * self.wide))
        self.units = np.zeros((rows, self.unknowns))
        own = anchors or AnchorRows(0, *(np.zeros(1, dtype=np.int32) for _ in range(2)), np.zeros((1, 1)))
        self._at = np.zeros(3, dtype=np.int32)
        systems, poses, pairs = StageSizesStruct(), PoseMapsStruct(), AnchorPairsStruct()
        systems.n, systems.nv, systems.wide, systems.width = self.unknowns, self.nv, self.wide, self.width
        systems.steps, systems.stages, systems.window = self.steps, self.stages, self.window
        systems.groups, systems.rates, systems.anchors = len(group), int(rates), own.numbers
        window, systems.weights = _arrays(self._at, weights.reshape(2 * self.stages, -1))
        (systems.scheme,) = _arrays(np.ascontiguousarray(scheme, dtype=np.int32).ravel())
        systems.scale = scale
        poses.group, poses.T, poses.E, poses.W = _arrays(group, *turns)
        pairs.begin, pairs.pair, pairs.slopes = _arrays(own.begin, own.pair, own.slopes)
        self._matrices = StageMatricesStruct()
        for name, array in vars(given).items():
            setattr(self._matrices, name, array)
        self._matrices.matrix, self._matrices.units = _arrays(self.matrix, self.units)
        self._before = window, systems, poses, self._matrices, pairs

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
        none = CarriedStruct()
        none.directions = 1  # a divisor in the kernel
        make = self._launch(MAKE, len(self.matrix), none)
        for first, _, stop in self.windows:
            self._at[0] = first
            self.fill(first)
            make()
            yield slice(first, stop)

    def backward(self, seeds: np.ndarray, state: np.ndarray, anchor_change: AnchorChanges | None = None) -> np.ndarray:
        """μ of all stages, shape (count, directions, steps, stages, unknowns).

        Args:
            seeds: derivatives with respect to q, v, a and λ at the end of each step, (count, directions, steps, 3 nv +
                n_rows).
            state: derivatives with respect to q, v, a and â at the end of the last step, (count, directions, 4 nv).
                They are replaced by those at the start of the first step.
            anchor_change: derivatives with respect to the anchors, replaced in the same way; None if no contact sticks.
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
        made, carried = self._matrices, CarriedStruct()
        made.L, made.pivots, made.status = _arrays(L, np.zeros((rows, self.unknowns), dtype=np.int32), status)
        flat = given.reshape(self.count * m, -1), state.reshape(self.count * m, -1)
        carried.directions = m
        carried.right_side, carried.state, carried.work = _arrays(*flat, work)
        carried.unknown, carried.result = _arrays(unknown, result)
        if anchor_change is not None:
            moving = anchor_change.z, anchor_change.moves
            carried.anchor_change, carried.moves = _arrays(*(x.reshape(self.count * m, -1) for x in moving))
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

    def _launch(self, task: int, count: int, carried: Any) -> Callable[[], None]:
        """A function that runs the kernel for `count` instances, split over the cores."""
        with build_lock():
            load([recursion_kernel.module], "cpu")
        parts = max(1, min(cores(), count // (1 if task in (BACKWARD, FORWARD) else _LEAST_PER_THREAD)))
        calls = []
        for first, stop in pairwise(np.linspace(0, count, parts + 1).astype(int).tolist()):
            inputs = [task, first, *self._before, carried]
            with build_lock():
                command = wp.launch(recursion_kernel, stop - first, inputs=inputs, device="cpu", record_cmd=True)
                calls.append(direct_call(command))
        return calls[0] if len(calls) == 1 else partial(run_on_pool, calls)


def _arrays(*values: np.ndarray) -> list[Any]:
    """Arrays of Warp that share the memory of NumPy arrays."""
    dtypes = [wp.int32 if x.dtype == np.int32 else wp.float64 for x in values]
    return [wp.array(x, dtype=dtype, device="cpu", copy=False) for x, dtype in zip(values, dtypes)]
