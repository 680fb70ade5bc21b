"""A diagonally implicit Runge-Kutta scheme of order 4 for motions, from one for first-order equations.

Stage i of such a scheme, whose first one is the start of the step, has the weights A and the diagonal γ:

    Δ_i = h Σ A_ij w_j,   v_i = vₙ + h Σ A_ij a_j,   w = T(Δ)⁻¹ v                                          (1)

w is the rate of Δ; it is v but where a pose is stored. As γ is the same for all stages, they share one matrix. The last
stage ends the step, and what a second set of weights makes of the same stages differs by the error of order 3.
Source: C. A. Kennedy, M. H. Carpenter, Appl. Numer. Math. 44, 2003 (ESDIRK4(3)6L[2]SA); H. Munthe-Kaas, Appl. Numer.
Math. 29, 1999 (the rates).
"""

from __future__ import annotations

import numpy as np

from lissom.integration.schemes import Scheme, Stage

_GAMMA = 0.25
_ENDS = (0.0, 1.0 / 2.0, 83.0 / 250.0, 31.0 / 50.0, 17.0 / 20.0, 1.0)
_A: tuple[tuple[float, ...], ...] = (
    (),
    (1.0 / 4.0,),
    (8611.0 / 62500.0, -1743.0 / 31250.0),
    (5012029.0 / 34652500.0, -654441.0 / 2922500.0, 174375.0 / 388108.0),
    (
        15267082809.0 / 155376265600.0,
        -71443401.0 / 120774400.0,
        730878875.0 / 902184768.0,
        2285395.0 / 8070912.0,
    ),
    (82889.0 / 524892.0, 0.0, 15625.0 / 83664.0, 69875.0 / 102672.0, -2260.0 / 8211.0),
)
_OTHER = (
    4586570599.0 / 29645900160.0,
    0.0,
    178811875.0 / 945068544.0,
    814220225.0 / 1159782912.0,
    -3700637.0 / 11593932.0,
    61727.0 / 225920.0,
)  # weights of the embedded scheme of order 3


def esdirk() -> Scheme:
    """Kennedy and Carpenter's scheme of five stages: order 4, and what a step does not resolve is gone after it.

    Returns:
        Scheme, for `simulate(method=)`.
    Source: Kennedy and Carpenter 2003; Munthe-Kaas 1999 (rotations).
    """
    stages = tuple(_stage(i) for i in range(1, len(_A)))
    misses = np.append(_A[-1], _GAMMA) - _OTHER
    error = [misses[-1] * _GAMMA, misses[0] + misses[-1], misses[-1] * _A[-1][0], 0.0]
    for j in range(1, len(_A) - 1):
        error += [0.0, misses[j], misses[-1] * _A[-1][j]]
    return Scheme("esdirk", stages, tuple(error), order=4, error_power=4)


def _stage(i: int) -> Stage:
    """Stage i of (1), with v_i put into Δ_i."""
    first, *others = _A[i]
    position, velocity = [_GAMMA**2, first + _GAMMA, _GAMMA * first, 0.0], [_GAMMA, 1.0, first, 0.0]
    first_order = [_GAMMA, first]
    for weight in others:
        position += [0.0, weight, _GAMMA * weight]
        velocity += [0.0, 0.0, weight]
        first_order += [0.0, weight]
    ahead = [1.0] + [0.0] * (len(position) - 1)
    return Stage(_ENDS[i], tuple(position), tuple(velocity), tuple(ahead), tuple(first_order))
