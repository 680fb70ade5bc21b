"""Derivatives of the steps of a motion, carried on from one to the next inside a kernel, forwards and backwards.

In the tangent space a stage of a step from n (schemes) gives, with the weights p of Δ, w of its rate and x of its
acceleration, where v = T w + W δΔ and a = x + c₁ (v − w) in coordinates of a stored pose that adds up rates, else
v = w and a = x,

    δΔ = p₀ x + k_Δ,   δw = w₀ x + k_w,   k of δvₙ, δaₙ, δâₙ and of the stages before                      (1)
    S (x; δλ) = f − K̃ (E δqₙ + T k_Δ) − D (T k_w + W k_Δ) − c₁ M (T k_w + W k_Δ − k_w)                     (2)
    δqₙ₊₁ = E δqₙ + T δΔ,   K̃ = (∂r/∂q; A_q/p₀),   D = ∂r/∂v,   M = ∂r/∂a                                 (3)

with E = Ad(exp Δ)⁻¹ and T = T(Δ), both 1 but in coordinates of a stored pose. S and its factors serve (2) and,
transposed, what goes backwards: with g, of all that depends on x, Sᵀ μ = (g; g_λ), and −K̃ᵀ μ, −Dᵀ μ, −Mᵀ μ go on to
what (2) is made of, while μ itself is the derivative by f. One matrix and one solution serve all
inputs and design values.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, final

import numpy as np
import warp as wp

from lissom.gradients.stage_passes import (
    begin_backward,
    begin_forward,
    end_backward,
    end_forward,
    lu_solve_at,
    lu_solve_transposed,
)
from lissom.launch.compiling import load
from lissom.launch.cores import cores, making, on_all
from lissom.lie.types import kernel_options
from lissom.passes.linear_solve import lu_factor

wp.set_module_options(kernel_options())

Rows = wp.array2d(dtype=wp.float64)
Integers = wp.array2d(dtype=wp.int32)

FACTOR, BACKWARD, FORWARD = range(3)
_LEAST_PER_THREAD = 16


@wp.kernel
def recursion_kernel(
    task: int, sizes: wp.array(dtype=wp.int32), rates: int, weights: Rows, group: Integers, T: Rows, E: Rows, W: Rows,
    matrix: Rows, L: Rows, pivots: Integers, K: Rows, D: Rows, M: Rows, given: Rows, state: Rows, work: Rows,
    unknown: Rows, result: Rows, status: Integers, first: int,
):  # fmt: skip
    # sizes: of unknowns, of coordinates, both padded, of steps, stages, directions and stored poses
    i = first + wp.tid()
    n = sizes[0]
    nv = sizes[1]
    wide = sizes[2]
    width = sizes[3]
    steps = sizes[4]
    stages = sizes[5]
    groups = sizes[7]
    base = i / sizes[6] * steps * stages
    if task == FACTOR:
        status[i, 0] = lu_factor(n, wide, i, matrix, L, pivots)
    if task == BACKWARD:
        for back in range(steps * stages):
            at = steps * stages - 1 - back
            k = at / stages
            s = at % stages
            begin_backward(
                nv, n, stages, groups, rates, base, i, k, s, weights, group, T, E, W, given, state, work, result
            )
            lu_solve_transposed(n, wide, base + at, matrix, L, pivots, i, at * n, result)
            end_backward(
                nv, n, width, stages, groups, rates, base, i, k, s, weights, group, T, E, W, K, D, M, state, work,
                result,
            )  # fmt: skip
    if task == FORWARD:
        for at in range(steps * stages):
            k = at / stages
            s = at % stages
            begin_forward(
                nv, n, width, stages, groups, rates, base, i, k, s, weights, group, T, E, W, K, D, M, given, state,
                work, unknown,
            )  # fmt: skip
            lu_solve_at(n, wide, base + at, matrix, L, pivots, i, unknown)
            end_forward(
                nv, n, stages, groups, rates, base, i, k, s, weights, group, T, E, W, state, work, unknown, result
            )


def _arrays(*values: np.ndarray) -> list[Any]:
    """The same memory as arrays of the kernel."""
    dtypes = [wp.int32 if x.dtype == np.int32 else wp.float64 for x in values]
    return [wp.array(x, dtype=dtype, device="cpu", copy=False) for x, dtype in zip(values, dtypes)]


@final
@dataclass(frozen=True)
class StageSystems:
    """The systems (2) of the stages of some steps, of motion after motion, step by step, with their factors.

    Fields:
        count: motions. steps: of each. weights: of each stage, (stages, 3 (4 + 3 (stages − 1))): those in Δ, w and â.
        rates: whether stored poses add up rates. group: where the coordinates of stored poses begin and how many there
        are, (groups, 2). T, E, W: of these, (rows, 36 groups). matrix, L, pivots: of S (rows, ...). K, D, M: (rows,
        ...), in rows of `width`, M without rows unless rates are added up for stored poses. unknowns: of S.
        units: (rows, unknowns) that the rows of S, K, D and M have been multiplied by, if any.
    """

    count: int
    steps: int
    nv: int
    unknowns: int
    width: int
    weights: np.ndarray
    rates: bool
    group: np.ndarray
    T: np.ndarray
    E: np.ndarray
    W: np.ndarray
    matrix: np.ndarray
    L: np.ndarray
    pivots: np.ndarray
    K: np.ndarray
    D: np.ndarray
    M: np.ndarray
    units: np.ndarray | None = None

    @property
    def stages(self) -> int:
        """Stages of a step."""
        return len(self.weights)

    def factor(self) -> np.ndarray:
        """Factor all matrices in place; of each 0, or 1 + the index of a pivot that vanished."""
        none = np.zeros((1, 1))
        status = np.zeros((len(self.matrix), 1), dtype=np.int32)
        self._run(FACTOR, len(self.matrix), 1, none, none, none, none, none, status)
        return status[:, 0]

    def backward(self, seeds: np.ndarray, state: np.ndarray) -> np.ndarray:
        """μ of all stages, shape (count, m, steps, stages, unknowns).

        Args:
            seeds: derivatives by q, v, a and λ at the end of each step, (count, m, steps, 3 nv + n_rows).
            state: derivatives by q, v, a and â at the end of the last one, (count, m, 4 nv); replaced by those at the
                start of the first.
        """
        m = state.shape[1]
        mu = np.zeros((self.count * m, self.steps * self.stages * self.unknowns))
        work = self._work(m)
        flat = seeds.reshape(self.count * m, -1)
        self._run(BACKWARD, self.count * m, m, flat, state.reshape(self.count * m, -1), work, work, mu, None)
        rows = mu.reshape(self.count, m, self.steps, self.stages, self.unknowns)
        return rows if self.units is None else rows * self._units

    def forward(self, forcing: np.ndarray, state: np.ndarray) -> np.ndarray:
        """δq, δv, δa, δâ and δλ at the end of each step, shape (count, m, steps, 4 nv + n_rows).

        Args:
            forcing: f of (2), (count, m, steps, stages, unknowns).
            state: δq, δv, δa and δâ at the start of the first step, (count, m, 4 nv); replaced by those at the end of
                the last.
        """
        m = state.shape[1]
        out = np.zeros((self.count * m, self.steps * (3 * self.nv + self.unknowns)))
        unknown = np.zeros((self.count * m, self.unknowns))
        flat = (forcing if self.units is None else forcing * self._units).reshape(self.count * m, -1)
        self._run(
            FORWARD, self.count * m, m, flat, state.reshape(self.count * m, -1), self._work(m), unknown, out, None
        )
        return out.reshape(self.count, m, self.steps, -1)

    @property
    def _units(self) -> np.ndarray:
        assert self.units is not None
        return self.units.reshape(self.count, 1, self.steps, self.stages, self.unknowns)

    def _work(self, m: int) -> np.ndarray:
        return np.zeros((self.count * m, (4 + 3 * self.stages) * self.nv + 3 * self.width))

    def _run(
        self, task: int, count: int, directions: int, given: np.ndarray, state: np.ndarray, work: np.ndarray,
        unknown: np.ndarray, result: np.ndarray, status: np.ndarray | None,
    ) -> None:  # fmt: skip
        """Launch the kernel for so many instances, split over the cores."""
        wide = self.matrix.shape[1] // self.unknowns
        sizes = (
            self.unknowns,
            self.nv,
            wide,
            self.width,
            self.steps,
            self.stages,
            directions,
            len(self.group),
        )
        none = np.zeros((1, 1), dtype=np.int32)
        own = _arrays(self.weights, self.group, self.T, self.E, self.W, self.matrix, self.L, self.pivots)
        more = _arrays(self.K, self.D, self.M, given, state, work, unknown, result, none if status is None else status)
        first = wp.array(np.array(sizes, dtype=np.int32), dtype=wp.int32, device="cpu")
        with making():
            load([recursion_kernel.module], "cpu")
        inputs = [task, first, int(self.rates), *own, *more]
        parts = max(1, min(cores(), count // (_LEAST_PER_THREAD if task == FACTOR else 1)))
        edges = np.linspace(0, count, parts + 1).astype(int).tolist()
        calls = [partial(_launch, a, b, inputs) for a, b in pairwise(edges)]
        calls[0]() if len(calls) == 1 else on_all(calls)


def _launch(first: int, stop: int, inputs: list[Any]) -> None:
    """The kernel for some instances."""
    wp.launch(recursion_kernel, dim=stop - first, inputs=[*inputs, first], device="cpu")
