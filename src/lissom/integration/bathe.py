"""The composite scheme of Bathe: the trapezoidal rule to t + γ h, then a backward difference over three points.

    Δ₁ = γ h (vₙ + v₁)/2,   v₁ = vₙ + γ h (aₙ + a₁)/2                                                       (1)
    v = (k₂ Δ₁ + k₃ Δ)/h,   a = (k₁ vₙ + k₂ v₁ + k₃ v)/h                                                    (2)
    k₁ = (1 − γ)/γ,   k₂ = −1/(γ (1 − γ)),   k₃ = (2 − γ)/(1 − γ)

It is of second order, and one step leaves nothing of an infinitely fast vibration. With γ = 2 − √2 both stages have the
same matrix, and the error of a step is least: (−3γ² + 4γ − 2)/(12 (2 − γ)) h³ da/dt in q.
Without a projection of velocities A v keeps an error of h², which differs between the two stages: by (2) the forces of
loops then are of first order only, as measured on a four-bar linkage; with projected velocities they are of second.
Source: K. J. Bathe, Comput. Struct. 85, 2007; R. E. Bank et al., IEEE Trans. Electron Devices 32, 1985 (γ).
"""

from __future__ import annotations

from math import sqrt

from lissom.errors import ModelError
from lissom.integration.schemes import Scheme, Stage
from lissom.robot import checks

_ONE_MATRIX = 2.0 - sqrt(2.0)


def bathe(gamma: float = _ONE_MATRIX) -> Scheme:
    """Bathe's scheme of two stages: second order, and what a step does not resolve is gone after it.

    Args:
        gamma: part of a step at which its first stage ends [-], within (0, 1); 2 − √2 shares one matrix between the
            stages, ½ is what Bathe takes.
    Returns:
        Scheme, for `simulate(method=)`.
    Raises:
        ModelError: gamma outside (0, 1).
    Source: K. J. Bathe, Comput. Struct. 85, 2007.
    """
    part = checks.number(gamma, "bathe > gamma", least=0.0)
    if not 0.0 < part < 1.0:
        raise ModelError(f"bathe > gamma: must be > 0 and < 1 (got {gamma!r})")
    k1, k2, k3 = (1.0 - part) / part, -1.0 / (part * (1.0 - part)), (2.0 - part) / (1.0 - part)
    half, quarter = 0.5 * part, 0.25 * part * part
    trapezoid = Stage(
        end=part,
        position=(quarter, part, quarter, 0.0),
        velocity=(half, 1.0, half, 0.0),
        ahead=(1.0, 0.0, 0.0, 0.0),
        first_order=(half, half),
    )
    backward = Stage(
        end=1.0,
        position=(1.0 / k3**2, -k1 / k3**2, 0.0, 0.0, -k2 / k3, -k2 / k3**2, 0.0),
        velocity=(1.0 / k3, -k1 / k3, 0.0, 0.0, 0.0, -k2 / k3, 0.0),
        ahead=(1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
        first_order=(1.0 / k3, 0.0, -k2 / k3, 0.0),
    )
    error = (-3.0 * part**2 + 4.0 * part - 2.0) / (12.0 * (2.0 - part))
    name = "bathe" if part == _ONE_MATRIX else f"bathe({part:g})"
    return Scheme(name, (trapezoid, backward), error=(error, 0.0, 0.0, -error, 0.0, 0.0, 0.0))
