"""Groups of a model: stiffness and damping of rods and joints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from lissom.model.fields import Floats, Ints, Matrices6, Poses


@final
@dataclass(frozen=True, eq=False)
class Elasticity:
    """K and D of rods, joints and bodies, which are square blocks on a diagonal; the rows kernels read are compressed,
    and have nothing of what other terms know: stiffness of PoseSprings, K and D of bodies of Green strains."""

    block_start: np.ndarray  # first coordinate of each block
    block_size: np.ndarray
    block_stiffness: np.ndarray  # K of one block after another, row by row
    block_damping: np.ndarray  # D likewise
    start: Ints  # where each row starts in what follows
    column: Ints  # index in v
    row_stiffness: Floats
    row_damping: Floats

    @cached_property
    def stiffness(self) -> np.ndarray:
        """K (nv, nv)."""
        return self._matrix(self.block_stiffness)

    @cached_property
    def damping(self) -> np.ndarray:
        """D (nv, nv)."""
        return self._matrix(self.block_damping)

    @property
    def stiffness_diagonal(self) -> np.ndarray:
        """The diagonal of K (nv,)."""
        out = np.zeros(len(self.start) - 1)
        for first, K in self._blocks(self.block_stiffness):
            out[first : first + len(K)] = np.diag(K)
        return out

    def _matrix(self, values: np.ndarray) -> np.ndarray:
        nv = len(self.start) - 1
        out = np.zeros((nv, nv))
        for first, X in self._blocks(values):
            out[first : first + len(X), first : first + len(X)] = X
        out.setflags(write=False)
        return out

    def _blocks(self, values: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        at = 0
        for first, n in zip(self.block_start.tolist(), self.block_size.tolist()):
            yield first, values[at : at + n * n].reshape(n, n)
            at += n * n


@final
@dataclass(frozen=True, eq=False)
class PoseSprings:
    """Springs of spherical and free joints."""

    node: Ints
    rest: Poses  # where it is slack (n, 4, 4)
    stiffness: Matrices6  # (n, 6, 6)
