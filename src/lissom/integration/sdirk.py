"""A diagonally implicit Runge-Kutta scheme of two stages, which begins from q and v alone.

    Δ₁ = γ h v₁,   v₁ = vₙ + γ h a₁,   γ = 1 − 1/√2                                                         (1)
    Δ = h ((1 − γ) v₁ + γ v),   v = vₙ + h ((1 − γ) a₁ + γ a)                                               (2)

The acceleration at the start has no part in it, so that inputs may jump there: under inputs held during each step it
keeps its second order, and the state (q, v) says all of what follows. One step leaves nothing of an infinitely fast
vibration. Both stages have the same matrix. An error of q of (1/6 − 3γ² + 2γ³) h³ da/dt is what a step makes.
Source: R. Alexander, SIAM J. Numer. Anal. 14, 1977.
"""

from __future__ import annotations

from math import sqrt

from lissom.integration.schemes import Scheme, Stage

_GAMMA = 1.0 - sqrt(0.5)


def sdirk() -> Scheme:
    """Alexander's scheme of two stages: second order under inputs that jump, from q and v alone.

    Returns:
        Scheme, for `simulate(method=)`, `rollout(method=)` and control.
    Source: Alexander 1977.
    """
    y, rest = _GAMMA, 1.0 - _GAMMA
    first = Stage(
        end=y,
        position=(y * y, y, 0.0, 0.0),
        velocity=(y, 1.0, 0.0, 0.0),
        ahead=(1.0, 0.0, 0.0, 0.0),
        first_order=(y, 0.0),
    )
    last = Stage(
        end=1.0,
        position=(y * y, y, 0.0, 0.0, 0.0, rest, y * rest),
        velocity=(y, 1.0, 0.0, 0.0, 0.0, 0.0, rest),
        ahead=(1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
        first_order=(y, 0.0, 0.0, rest),
    )
    error = 1.0 / 6.0 - 3.0 * y**2 + 2.0 * y**3
    return Scheme("sdirk", (first, last), error=(error, 0.0, 0.0, -error, 0.0, 0.0, 0.0))
