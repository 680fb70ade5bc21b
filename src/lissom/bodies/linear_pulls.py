"""Forces of tendons, chambers and pressures in bodies whose points move linearly in θ, by native code.

A tendon is a sum of pieces s, a chamber a sum over triangles p_a, p_b, p_c of its surface (module pulls). All of these
vectors are linear in θ, so that only the code that sums them is native, and it is the same for all bodies:

    B_j = −Σ t·s_j,   ∂B_j/∂θ_l = −Σ (s_j·s_l − (t·s_j)(t·s_l))/|s|,   t = s/|s|                           (1)
    B_j = ⅙ Σ p_a,j·(p_b×p_c) + p_b,j·(p_c×p_a) + p_c,j·(p_a×p_b)                                         (2)

In finite elements a piece depends on the coordinates of its cells alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from lissom.bodies.kinematics import Kinematics
from lissom.bodies.native_code import NativePull
from lissom.tracing.graph import MOST_COORDINATES, Graph, Refused
from lissom.tracing.native import LANES, Traced, code_with, compiled_functions

_NO_SURFACE = np.zeros(0, dtype=np.int32)
_TENDON = "length", "length_slopes", "length_bend"
_CHAMBER = "volume", "volume_slopes", "volume_bend"
_SURFACE = "vertices", "no_bend_of_vertices"


@cache
def _functions(names: tuple[str, ...]) -> Traced:
    """Functions of the header, which all bodies share."""
    return compiled_functions(code_with("bodies/linear_pulls.h", Graph(), {}, [], [], names))


def tendon_along_line(motion: Kinematics, points: np.ndarray, tangents: np.ndarray) -> NativePull:
    """A tendon along a material line with points (k, 3) and tangents (k, 3) there."""
    slopes = np.einsum("kabn,kb->kan", motion.shape_gradients(points), tangents)
    return NativePull(_functions(_TENDON), _table(tangents, slopes), _NO_SURFACE)


def tendon_through_eyelets(motion: Kinematics, points: np.ndarray) -> NativePull:
    """A tendon straight from point to point of (k, 3)."""
    return NativePull(
        _functions(_TENDON), _table(np.diff(points, axis=0), np.diff(motion.shapes(points), axis=0)), _NO_SURFACE
    )


def chamber(motion: Kinematics, points: np.ndarray, triangles: np.ndarray, rims: Sequence[np.ndarray]) -> NativePull:
    """A chamber of triangles (k, 3) of points (m, 3), followed by the middles of rims."""
    phi = motion.shapes(points)
    x = np.concatenate([points, *(points[rim].mean(axis=0, keepdims=True) for rim in rims)])
    phi = np.concatenate([phi, *(phi[rim].mean(axis=0, keepdims=True) for rim in rims)])
    table = _table(x[triangles].reshape(-1, 9), phi[triangles].reshape(-1, 9, motion.n))
    return NativePull(_functions(_CHAMBER), table, _NO_SURFACE)


def pressure(motion: Kinematics, points: np.ndarray, triangles: np.ndarray) -> NativePull:
    """A pressure on triangles (k, 3) of points (m, 3).

    Raises:
        Refused: the body has too many coordinates for the sums over triangles in kernels.
    """
    n = motion.n
    if n > MOST_COORDINATES:
        raise Refused(f"has a surface under pressure and {n} coordinates, more than {MOST_COORDINATES}")
    blocks = -(-len(points) // LANES)
    rows = np.zeros((blocks * LANES, 3 + 3 * n))
    rows[: len(points)] = np.concatenate([points, np.swapaxes(motion.shapes(points), 1, 2).reshape(-1, 3 * n)], axis=1)
    lanes = rows.reshape(blocks, LANES, -1).swapaxes(1, 2)
    surface = np.concatenate([[blocks, 0, len(triangles)], np.ravel(triangles)]).astype(np.int32)
    return NativePull(_functions(_SURFACE), np.concatenate([[blocks, n], lanes.ravel()]), surface, -1.0)


def _table(x: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """The table that the header describes, for pieces of numbers x (k, r) with derivatives (k, r, n)."""
    parts = [np.array([len(x), slopes.shape[-1]], dtype=np.float64)]
    for own, slope in zip(x, slopes):
        index = np.flatnonzero(slope.any(axis=0))
        parts += [own, [len(index)], index, slope[:, index].ravel()]
    return np.concatenate(parts)
