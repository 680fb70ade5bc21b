"""One-step schemes as weights of their stages, and the generalised-α family, which has one:

    Δ = h v + h² (b₀ âₙ + b₁ âₙ₊₁),   vₙ₊₁ = v + h (g₀ âₙ + g₁ âₙ₊₁)                                      (1)
    (1 − α_m) âₙ₊₁ + α_m âₙ = (1 − α_f) aₙ₊₁ + α_f aₙ                                                   (2)

â runs ahead of the acceleration by (α_m − α_f) h. Source: J. Chung, G. M. Hulbert, J. Appl. Mech. 60, 1993; on the
manifold O. Brüls, A. Cardona, M. Arnold, Mech. Mach. Theory 48, 2012.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from lissom.errors import ModelError
from lissom.robot import checks

ORDER_SHARE = 1e-4  # of the error a step makes that its iteration may leave, (6) of implicit_steps


@final
@dataclass(frozen=True)
class Stage:
    """One solve for an acceleration a, at a part of a step from its start n, as weights of

        (a; vₙ, aₙ, âₙ; Δ₁, v₁, a₁; …)   each in units of h: h² a, h vₙ, h² aₙ, h² âₙ, Δ₁, h v₁, h² a₁, …

    with Δ₁, v₁, a₁, … the increments, velocities and accelerations of the stages before.

    Fields:
        end: the part. position, velocity, ahead: weights in Δ, h v and h² â at the end of the stage.
        first_order: what the same rule says of an equation ż = r, weights in z − zₙ of (h r; h rₙ; z₁ − zₙ, h r₁; …).
    """

    end: float
    position: tuple[float, ...]
    velocity: tuple[float, ...]
    ahead: tuple[float, ...]
    first_order: tuple[float, ...]


@final
@dataclass(frozen=True)
class Scheme:
    """One scheme, for `simulate(method=)`.

    Fields:
        name. stages. order: of the global error. lead: by how many steps â runs ahead of the acceleration. is_undamped:
        whether a step leaves all of an infinitely fast vibration. error: weights in an estimate of the error that one
        step makes in Δ, as those of a stage behind the last. error_power: of h, to which that estimate is proportional.
    """

    name: str
    stages: tuple[Stage, ...]
    error: tuple[float, ...]
    order: int = 2
    lead: float = 0.0
    is_undamped: bool = False
    error_power: int = 3

    @cached_property
    def ends(self) -> np.ndarray:
        """Where the stages end, as parts of a step."""
        return np.array([stage.end for stage in self.stages])

    @property
    def follows_rates(self) -> bool:
        """Whether stages add up rates of Δ, which differ from v where a pose is stored: so above order 2."""
        return self.order > 2

    @property
    def follows_accelerations(self) -> bool:
        """Whether the acceleration at the start of a step, or â there, has a part in it."""
        rows = (row for stage in self.stages for row in (stage.position, stage.velocity))
        return any(weight != 0.0 for row in rows for weight in row[2:4])


@final
@dataclass(frozen=True)
class StepState:
    """Where a step starts or ends: time, configuration, velocity, acceleration, â, the size of the last step, the
    forces of loops, the state of a controller that acts continuously, the acceleration and the forces of loops one such
    step before, and whether the acceleration has gone on as it changed then."""

    t: float
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    ahead: np.ndarray
    h: float
    force: np.ndarray
    z: np.ndarray
    before: np.ndarray
    force_before: np.ndarray
    is_steady: bool = False


def _one_stage(name: str, alpha_m: float, alpha_f: float, beta: float, gamma: float, *, b0: float, g0: float) -> Scheme:
    """(1) and (2) with b₁ = beta and g₁ = gamma as one stage."""
    new, old, older = (x / (1.0 - alpha_m) for x in (1.0 - alpha_f, alpha_f, -alpha_m))  # â from a, aₙ, âₙ by (2)
    lead, second = alpha_m - alpha_f, b0 + beta - 0.5  # second: factor of h² a in the error, and third of h³ da/dt
    third = (b0 + beta) * lead + beta - 1.0 / 6.0
    late = 0.5 if second == 0.0 else 1.0
    stage = Stage(
        end=1.0,
        position=(beta * new, 1.0, beta * old, b0 + beta * older),
        velocity=(gamma * new, 1.0, gamma * old, g0 + gamma * older),
        ahead=(new, 0.0, old, older),
        first_order=(late, 1.0 - late),
    )
    undamped = alpha_m == alpha_f and gamma == 0.5
    error = (third * new, 0.0, second + third * old, third * (older - 1.0))  # h³ da/dt is h² (âₙ₊₁ − âₙ)
    order = 2 if second == 0.0 and gamma == 0.5 + alpha_f - alpha_m else 1
    return Scheme(name, (stage,), error, order, lead, undamped, error_power=3 if second == 0.0 else 2)


def _family(name: str, alpha_m: float, alpha_f: float) -> Scheme:
    """The second-order scheme of given α, with the β that damps fast vibrations most."""
    gamma = 0.5 + alpha_f - alpha_m
    beta = 0.25 * (gamma + 0.5) ** 2
    return _one_stage(name, alpha_m, alpha_f, beta, gamma, b0=0.5 - beta, g0=1.0 - gamma)


def generalized_alpha(rho_inf: float = 0.8) -> Scheme:
    """Generalised-α: second order, with a chosen damping of what the step does not resolve.

    Args:
        rho_inf: what a step leaves of an infinitely fast vibration [-], from 0 (all damped) to 1 (nothing damped).
    Returns:
        Scheme, for `simulate(method=)`.
    Raises:
        ModelError: rho_inf outside [0, 1].
    Source: Chung and Hulbert 1993; Brüls, Cardona and Arnold 2012 (rotations).
    """
    rho = checks.number(rho_inf, "generalized_alpha > rho_inf", least=0.0)
    if rho > 1.0:
        raise ModelError(f"generalized_alpha > rho_inf: must be <= 1 (got {rho_inf!r})")
    return _family(f"generalized_alpha({rho:g})", (2.0 * rho - 1.0) / (rho + 1.0), rho / (rho + 1.0))


def newmark(beta: float = 0.25, gamma: float = 0.5) -> Scheme:
    """Newmark's scheme; ¼ and ½ damp nothing and are of second order.

    Args:
        beta, gamma: weights of the new acceleration in position and velocity [-]; gamma >= ½, 2 beta >= gamma.
    Returns:
        Scheme, for `simulate(method=)`.
    Raises:
        ModelError: the step would not be stable for all step sizes.
    Source: Mathew 2025 eqs. (10)-(12); Boyer 2023 §VI.
    """
    gamma = checks.number(gamma, "newmark > gamma", least=0.5)
    beta = checks.number(beta, "newmark > beta", least=0.5 * gamma)
    return _one_stage(f"newmark({beta:g}, {gamma:g})", 0.0, 0.0, beta, gamma, b0=0.5 - beta, g0=1.0 - gamma)


def hht(alpha: float = 0.05) -> Scheme:
    """The scheme of Hilber, Hughes and Taylor: second order, damping with alpha.

    Args:
        alpha: weight of the old forces [-], from 0 (Newmark ¼, ½) to 1/3.
    Returns:
        Scheme, for `simulate(method=)`.
    Raises:
        ModelError: alpha outside [0, 1/3].
    Source: H. M. Hilber, T. J. R. Hughes, R. L. Taylor, Earthq. Eng. Struct. Dyn. 5, 1977.
    """
    alpha_f = checks.number(alpha, "hht > alpha", least=0.0)
    if alpha_f > 1.0 / 3.0 + 1e-12:
        raise ModelError(f"hht > alpha: must be <= 1/3 (got {alpha!r})")
    return _family(f"hht({alpha_f:g})", 0.0, alpha_f)


def implicit_euler() -> Scheme:
    """Implicit Euler: first order, damps strongly.

    Returns:
        Scheme, for `simulate(method=)`.
    """
    return _one_stage("implicit_euler", 0.0, 0.0, 1.0, 1.0, b0=0.0, g0=0.0)
