"""One-step schemes as weights of their stages: the generalised-α family, Bathe's scheme, SDIRK and ESDIRK.

The generalised-α family has one stage:

    Δ = h v + h² (b₀ âₙ + b₁ âₙ₊₁),   vₙ₊₁ = v + h (g₀ âₙ + g₁ âₙ₊₁)                                      (1)
    (1 − α_m) âₙ₊₁ + α_m âₙ = (1 − α_f) aₙ₊₁ + α_f aₙ                                                   (2)

â leads the acceleration by (α_m − α_f) h.

Bathe's composite scheme uses the trapezoidal rule to t + γ h, then a backward difference over three points:

    Δ₁ = γ h (vₙ + v₁)/2,   v₁ = vₙ + γ h (aₙ + a₁)/2                                                       (3)
    v = (k₂ Δ₁ + k₃ Δ)/h,   a = (k₁ vₙ + k₂ v₁ + k₃ v)/h                                                    (4)
    k₁ = (1 − γ)/γ,   k₂ = −1/(γ (1 − γ)),   k₃ = (2 − γ)/(1 − γ)

It is of second order, and one step damps an infinitely fast vibration completely. With γ = 2 − √2 both stages have the
same matrix, and the error of a step is smallest: (−3γ² + 4γ − 2)/(12 (2 − γ)) h³ da/dt in q. Without a projection of
velocities, A v has an error of h², which differs between the two stages. By (4) the constraint forces are then of first
order only, as measured on a four-bar linkage. With projected velocities they are of second order.

SDIRK is a diagonally implicit Runge-Kutta scheme with two stages, which uses only q and v at the start:

    Δ₁ = γ h v₁,   v₁ = vₙ + γ h a₁,   γ = 1 − 1/√2                                                         (5)
    Δ = h ((1 − γ) v₁ + γ v),   v = vₙ + h ((1 − γ) a₁ + γ a)                                               (6)

It does not use the acceleration at the start, where inputs may jump. With inputs that are constant during each step the
scheme is of second order, and (q, v) is the whole state. One step damps an infinitely fast vibration completely. Both
stages have the same matrix. A step has an error of (1/6 − 3γ² + 2γ³) h³ da/dt in q.

ESDIRK is a scheme for first-order equations, of order 4, applied to motions. Its first stage is the start of the step;
stage i has the weights A and the diagonal γ:

    Δ_i = h Σ A_ij w_j,   v_i = vₙ + h Σ A_ij a_j,   w = T(Δ)⁻¹ v                                          (7)

w is the rate of Δ; it equals v except for poses with quaternions. γ is the same for all stages, so they share one
matrix. The last stage ends the step. A second set of weights for the same stages has order 3; the difference between
the two results estimates the error.

SDIRK has another form where steps hold the positions of loops alone, e = 0 at the end of each stage (index 3). There
(5) makes v₁ across the loops a backward difference, late by γ h/2, and the constraint forces of both stages are off by
as much as themselves. They cancel but for the turn of the loops between the stages: v has an error of h² after each
step, which no projection of v at the end of the step removes. Three stages of Nyström's form, whose Δ all have errors
of h³ only, leave errors of h in a and of h² in v across the loops:

    Δ_i = h c_i vₙ + h² Σ B_ij a_j,   v_i = vₙ + h Σ A_ij a_j,   Σ_j A_ij = c_i,   Σ_j B_ij = c_i²/2           (8)
    bᵀ c = 1/2,   bᵀ c² = 1/3,   bᵀ A c = 1/6,   bᵀ B⁻¹ c = 1    with the last row b of A                  (9)

The first stage serves the others only: b = (0, 3/4, 1/4) are Radau's weights for c₂ = 1/3 and c₃ = 1, with which v has
an error of h⁴ in a step without loops. The last equation of (9) keeps errors of vₙ across the loops out of v at the
end, and makes a step damp an infinitely fast vibration completely. c₁ = 4/5 and the diagonal of B were found by
numerical search: no vibration grows, whatever its damping and gyroscopic forces, and a linkage without inputs that
turns by a radian in a step gains no energy (both are tested). With two stages of this form some vibrations grow. A step
has an error of (1/6 − Σ B_3j c_j) h³ da/dt in q.

Sources: J. Chung, G. M. Hulbert, J. Appl. Mech. 60, 1993; on the manifold O. Brüls, A. Cardona, M. Arnold, Mech. Mach.
Theory 48, 2012. K. J. Bathe, Comput. Struct. 85, 2007; R. E. Bank et al., IEEE Trans. Electron Devices 32, 1985 (γ). R.
Alexander, SIAM J. Numer. Anal. 14, 1977. E. Hairer, C. Lubich, M. Roche, The Numerical Solution of Differential-
Algebraic Systems by Runge-Kutta Methods, 1989 (orders of index 3). C. A. Kennedy, M. H. Carpenter, Appl. Numer. Math.
44, 2003 (ESDIRK4(3)6L[2]SA); H. Munthe-Kaas, Appl. Numer. Math. 29, 1999 (the rates).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from math import sqrt
from typing import TYPE_CHECKING, final

import numpy as np

from lissom.errors import ModelError
from lissom.robot import checks, formatting

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from lissom.model.model import Model

MOST_STAGES = 5
ORDER_SHARE = 1e-4  # error of the iteration, relative to that of the step, in (6) of newton_stages


@final
@dataclass(frozen=True)
class Stage:
    """One solve for the acceleration a at a fraction of a step that starts at n.

    The weights multiply h² a, h vₙ, h² aₙ, h² âₙ, and then Δ₁, h v₁, h² a₁, …

    with the increments, velocities and accelerations Δ₁, v₁, a₁, … of the earlier stages.

    Fields:
        end: end of the stage, its ratio to the step [-].
        position, velocity, ahead: weights in Δ, h v and h² â at the end of the stage.
        first_order: the same rule for an equation ż = r: weights in z − zₙ of (h r; h rₙ; z₁ − zₙ, h r₁; …).
    """

    end: float
    position: tuple[float, ...]
    velocity: tuple[float, ...]
    ahead: tuple[float, ...]
    first_order: tuple[float, ...]

    def check(self, where: str, earlier: int) -> None:
        """Raise ModelError for the first wrong number. `earlier`: number of stages before this one."""
        end = checks.number(self.end, f"{where} > end", above=0.0)
        checks.require(end <= 1.0, f"{where} > end", "must be <= 1", end)
        for name in ("position", "velocity", "ahead"):
            _check_weights(getattr(self, name), f"{where} > {name}", 4 + 3 * earlier)
        _check_weights(self.first_order, f"{where} > first_order", 2 + 2 * earlier)
        rule = "must be > 0, since each stage solves for its acceleration; explicit stages are not possible"
        checks.require(self.position[0] > 0.0, f"{where} > position[0]", rule, self.position[0])


def _check_weights(weights: object, where: str, count: int) -> None:
    rule = f"must be a tuple of {count} numbers"
    checks.require(isinstance(weights, tuple) and len(weights) == count, where, rule, weights)
    for k, weight in enumerate(weights if isinstance(weights, tuple) else ()):
        checks.number(weight, f"{where}[{k}]")


@final
@formatting.in_one_line
@dataclass(frozen=True)
class Scheme:
    """A time integration scheme, for `simulate(method=)`.

    Fields:
        name: name of the scheme.
        stages: its stages, one to five. The last one ends the step.
        order: order of the global error.
        lead: number of steps by which â leads the acceleration.
        is_undamped: whether a step does not damp an infinitely fast vibration.
        error: weights of the estimated error of Δ in a step, in the order of those of the last stage. If all are zero,
            there is no estimate, and steps need a fixed size.
        error_power: power of h to which this estimate is proportional.
    Raises:
        ModelError: the number of stages or weights is wrong, a number is not finite, a stage ends outside the step, or
            a stage does not depend on its own acceleration.
    """

    name: str
    stages: tuple[Stage, ...]
    error: tuple[float, ...]
    order: int = 2
    lead: float = 0.0
    is_undamped: bool = False
    error_power: int = 3

    def __post_init__(self) -> None:
        where = f"Scheme({self.name!r})"
        count = len(self.stages) if isinstance(self.stages, tuple) else 0
        rule = f"must be a tuple of one to {MOST_STAGES} stages"
        checks.require(1 <= count <= MOST_STAGES, f"{where} > stages", rule, self.stages)
        for k, stage in enumerate(self.stages):
            checks.require(isinstance(stage, Stage), f"{where} > stages[{k}]", "must be a Stage", stage)
            stage.check(f"{where} > stages[{k}]", k)
        end = self.stages[-1].end
        checks.require(end == 1.0, f"{where} > stages[{count - 1}] > end", "must be 1, the end of the step", end)
        _check_weights(self.error, f"{where} > error", 1 + 3 * count)

    @classmethod
    def from_tableau(cls, name: str, A: ArrayLike, embedded: ArrayLike, order: int) -> Scheme:
        """A diagonally implicit Runge-Kutta scheme (7) from its Butcher tableau.

        Args:
            A: weights of the stages, (n, n), lower triangular. Each stage ends at the sum of its row, and the last row
                ends the step. The diagonal is positive. Only the first row may be zero, for the start of the step.
            embedded: weights of the stages in a scheme of order `order` − 1, (n,), whose difference from the last row
                estimates the error.
            order: order of the global error.
        Raises:
            ModelError: a wrong shape, a number above the diagonal, or as of Scheme.
        """
        where = f"Scheme({name!r})"
        A = checks.array(A, (len(np.atleast_1d(A)),) * 2, f"{where} > A", "must be a lower triangular matrix")
        checks.require(bool((np.tril(A) == A).all()), f"{where} > A", "must be lower triangular", A.tolist())
        rule = "must be as many numbers as A has rows"
        weights = checks.array(embedded, (len(A),), f"{where} > embedded", rule)
        starts = 0 if A[0].any() else 1  # rows for the start of the step
        ends, misses = np.round(A.sum(axis=1), 14)[starts:], A[-1] - weights
        start, A = A[starts:, :starts].sum(axis=1), A[starts:]
        stages = tuple(_diagonal_stage(float(ends[i]), start[i], A[i, starts : starts + i + 1]) for i in range(len(A)))
        last = misses[-1] * np.array(stages[-1].velocity)
        last[1] += misses[:starts].sum()
        for j in range(len(A) - 1):
            last[5 + 3 * j] += misses[starts + j]
        return cls(name, stages, tuple(last.tolist()), order=order, error_power=order)

    @cached_property
    def ends(self) -> np.ndarray:
        """Ends of the stages, as fractions of a step."""
        return np.array([stage.end for stage in self.stages])

    def check_estimate(self) -> None:
        """Raise ModelError if steps have no estimate of their error, so that their size cannot be adapted to it."""
        rule = "must have a weight that is not zero, or steps must have a fixed size"
        checks.require(any(self.error), f"Scheme({self.name!r}) > error", rule, self.error)

    @property
    def follows_rates(self) -> bool:
        """Whether stages add rates of Δ, which differ from v for poses with quaternions. This is the case above order
        2."""
        return self.order > 2

    @property
    def follows_accelerations(self) -> bool:
        """Whether a step depends on a or â at its start."""
        rows = (row for stage in self.stages for row in (stage.position, stage.velocity))
        return any(weight != 0.0 for row in rows for weight in row[2:4])


@final
@dataclass(frozen=True)
class StepState:
    """The state at the start or the end of a step.

    Fields:
        t: time [s].
        q, v, a: configuration, velocity and acceleration.
        ahead: â.
        h: size of the last step [s].
        force: constraint forces.
        z: state of a continuous controller.
        before, force_before: acceleration and constraint forces at the start of the last step.
        is_steady: whether the extrapolation in (5) of newton_stages predicts better.
        is_plastic: whether the next step begins with the weights of implicit Euler (step_changes).
    """

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
    is_plastic: bool = False


@lru_cache(maxsize=64)
def _single_stage(
    name: str, alpha_m: float, alpha_f: float, beta: float, gamma: float, *, b0: float, g0: float
) -> Scheme:
    """The scheme (1), (2) with b₁ = beta and g₁ = gamma."""
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
    """The second-order scheme with given α, and with the β that damps fast vibrations most."""
    gamma = 0.5 + alpha_f - alpha_m
    beta = 0.25 * (gamma + 0.5) ** 2
    return _single_stage(name, alpha_m, alpha_f, beta, gamma, b0=0.5 - beta, g0=1.0 - gamma)


def generalized_alpha(rho_inf: float = 0.8) -> Scheme:
    """Generalised-α scheme: second order, with adjustable damping of vibrations that the step does not resolve.

    Args:
        rho_inf: factor by which a step changes the amplitude of an infinitely fast vibration [-], from 0 (fully damped)
            to 1 (undamped).
    Returns:
        Scheme, for `simulate(method=)`.
    Raises:
        ModelError: rho_inf is outside [0, 1].
    Source: Chung and Hulbert 1993; Brüls, Cardona and Arnold 2012 (rotations).
    """
    rho = checks.number(rho_inf, "generalized_alpha > rho_inf", least=0.0)
    if rho > 1.0:
        raise ModelError(f"generalized_alpha > rho_inf: must be <= 1 (got {rho_inf!r})")
    return _family(f"generalized_alpha({rho:g})", (2.0 * rho - 1.0) / (rho + 1.0), rho / (rho + 1.0))


def newmark(beta: float = 0.25, gamma: float = 0.5) -> Scheme:
    """Newmark's scheme. With the default ¼ and ½ it is undamped and of second order.

    Args:
        beta, gamma: weights of the new acceleration in position and velocity [-]; gamma >= ½, 2 beta >= gamma.
    Returns:
        Scheme, for `simulate(method=)`.
    Raises:
        ModelError: the scheme would not be stable for all step sizes.
    Source: Mathew 2025 eqs. (10)-(12); Boyer 2023 §VI.
    """
    gamma = checks.number(gamma, "newmark > gamma", least=0.5)
    beta = checks.number(beta, "newmark > beta", least=0.5 * gamma)
    return _single_stage(f"newmark({beta:g}, {gamma:g})", 0.0, 0.0, beta, gamma, b0=0.5 - beta, g0=1.0 - gamma)


def hht(alpha: float = 0.05) -> Scheme:
    """Scheme of Hilber, Hughes and Taylor: second order; its damping increases with alpha.

    Args:
        alpha: weight of the old forces [-], from 0 (Newmark with ¼ and ½) to 1/3.
    Returns:
        Scheme, for `simulate(method=)`.
    Raises:
        ModelError: alpha is outside [0, 1/3].
    Source: H. M. Hilber, T. J. R. Hughes, R. L. Taylor, Earthq. Eng. Struct. Dyn. 5, 1977.
    """
    alpha_f = checks.number(alpha, "hht > alpha", least=0.0)
    if alpha_f > 1.0 / 3.0 + 1e-12:
        raise ModelError(f"hht > alpha: must be <= 1/3 (got {alpha!r})")
    return _family(f"hht({alpha_f:g})", 0.0, alpha_f)


def implicit_euler() -> Scheme:
    """Implicit Euler scheme: first order, strong damping.

    Returns:
        Scheme, for `simulate(method=)`.
    """
    return _single_stage("implicit_euler", 0.0, 0.0, 1.0, 1.0, b0=0.0, g0=0.0)


_BATHE_GAMMA = 2.0 - sqrt(2.0)


def bathe(gamma: float = _BATHE_GAMMA) -> Scheme:
    """Bathe's scheme with two stages: second order; a step damps infinitely fast vibrations completely.

    Args:
        gamma: fraction of a step at which the first stage ends [-], in (0, 1). With 2 − √2 both stages share one
            matrix; Bathe uses ½.
    Returns:
        Scheme, for `simulate(method=)`.
    Raises:
        ModelError: gamma is outside (0, 1).
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
    name = "bathe" if part == _BATHE_GAMMA else f"bathe({part:g})"
    return Scheme(name, (trapezoid, backward), error=(error, 0.0, 0.0, -error, 0.0, 0.0, 0.0))


_SDIRK_GAMMA = 1.0 - sqrt(0.5)


def sdirk() -> Scheme:
    """Alexander's scheme with two stages: second order, also with inputs that jump between steps. A step uses only q
    and v at its start.

    In rollouts, and with `project_velocity=False`, robots whose loops, wheels or couplings hold positions have three
    stages of the same kind, since two would be of first order there.

    Returns:
        Scheme, for `simulate(method=)`, `rollout(method=)` and control.
    Source: Alexander 1977.
    """
    y = _SDIRK_GAMMA
    A = np.array([[y, 0.0], [1.0 - y, y]])
    error = 1.0 / 6.0 - 3.0 * y**2 + 2.0 * y**3  # of h³ da/dt, in place of an embedded scheme
    return replace(
        Scheme.from_tableau("sdirk", A, A[-1], order=2),
        error=(error, 0.0, 0.0, -error, 0.0, 0.0, 0.0),
        error_power=3,
    )


_C = np.array([4.0 / 5.0, 1.0 / 3.0, 1.0])  # c of (8)
_A = np.array([[4.0 / 5.0, 0.0, 0.0], [-5.0 / 42.0, 19.0 / 42.0, 0.0], [0.0, 3.0 / 4.0, 1.0 / 4.0]])


@cache
def _sdirk_at_positions() -> Scheme:
    """The scheme (8) that takes the place of `sdirk` where positions alone are held on loops."""
    B = np.diag([0.5 * _C[0] ** 2, 0.55, 0.055])
    B[1, 0] = 0.5 * _C[1] ** 2 - B[1, 1]
    first = -_C[0] / B[0, 0]  # of h a₁ by an error of vₙ = 1 across the loops, and of h a₂ and h a₃
    second = -(_C[1] + B[1, 0] * first) / B[1, 1]
    third = -(1.0 + _A[2, :2] @ [first, second]) / _A[2, 2]  # v = 0 of (9)
    rest = 0.5 - B[2, 2]
    B[2, 1] = -(1.0 + rest * first + B[2, 2] * third) / (second - first)  # Δ = 0
    B[2, 0] = rest - B[2, 1]
    stages = tuple(_nystrom_stage(float(_C[i]), _A[i, : i + 1], B[i, : i + 1]) for i in range(3))
    error = float((1.0 / 6.0 - B[2] @ _C) / (_C[2] - _C[1]))  # of h³ da/dt, with da/dt from a and a₂
    return Scheme("sdirk", stages, (error, *[0.0] * 8, -error))


def at_positions(scheme: Scheme, model: Model) -> Scheme:
    """The scheme of steps that hold the loops of a robot at positions alone: `scheme`, but (8) in place of `sdirk` if
    a row of the constraints holds positions."""
    holds = model.n_rows > 0 and not model.rate_rows.all()
    return _sdirk_at_positions() if holds and scheme.stages == sdirk().stages else scheme


_ESDIRK_A = np.zeros((6, 6))
_ESDIRK_A[1:, 1:] += 0.25 * np.eye(5)
_ESDIRK_A[1, :1] = 1.0 / 4.0
_ESDIRK_A[2, :2] = 8611.0 / 62500.0, -1743.0 / 31250.0
_ESDIRK_A[3, :3] = 5012029.0 / 34652500.0, -654441.0 / 2922500.0, 174375.0 / 388108.0
_ESDIRK_A[4, :4] = (
    15267082809.0 / 155376265600.0,
    -71443401.0 / 120774400.0,
    730878875.0 / 902184768.0,
    2285395.0 / 8070912.0,
)
_ESDIRK_A[5, :5] = 82889.0 / 524892.0, 0.0, 15625.0 / 83664.0, 69875.0 / 102672.0, -2260.0 / 8211.0
_EMBEDDED = (
    4586570599.0 / 29645900160.0,
    0.0,
    178811875.0 / 945068544.0,
    814220225.0 / 1159782912.0,
    -3700637.0 / 11593932.0,
    61727.0 / 225920.0,
)  # weights of the embedded scheme of order 3


def esdirk() -> Scheme:
    """Kennedy and Carpenter's scheme with five implicit stages: order 4; a step damps infinitely fast vibrations
    completely.

    Returns:
        Scheme, for `simulate(method=)`.
    Source: Kennedy and Carpenter 2003; Munthe-Kaas 1999 (rotations).
    """
    return Scheme.from_tableau("esdirk", _ESDIRK_A, _EMBEDDED, order=4)


def _diagonal_stage(end: float, start: float, row: np.ndarray) -> Stage:
    """A stage of (7) with the weights `row` of the stages up to itself and `start` of the start, with v_i substituted
    into Δ_i."""
    *others, own = row.tolist()
    start = float(start)
    position, velocity, first_order = [own**2, start + own, own * start, 0.0], [own, 1.0, start, 0.0], [own, start]
    for weight in others:
        position += [0.0, weight, own * weight]
        velocity += [0.0, 0.0, weight]
        first_order += [0.0, weight]
    ahead = (1.0, *[0.0] * (len(position) - 1))
    return Stage(end, tuple(position), tuple(velocity), ahead, tuple(first_order))


def _nystrom_stage(end: float, velocity: np.ndarray, position: np.ndarray) -> Stage:
    """A stage of (8) with its rows of A and B, which end with those of the stage itself."""
    (*rates, rate), (*moves, move) = velocity.tolist(), position.tolist()
    by_move, by_rate, first_order = [move, end, 0.0, 0.0], [rate, 1.0, 0.0, 0.0], [rate, 0.0]
    for own_move, own_rate in zip(moves, rates):
        by_move += [0.0, 0.0, own_move]
        by_rate += [0.0, 0.0, own_rate]
        first_order += [0.0, own_rate]
    ahead = (1.0, *[0.0] * (len(by_move) - 1))
    return Stage(end, tuple(by_move), tuple(by_rate), ahead, tuple(first_order))
