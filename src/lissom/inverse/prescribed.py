"""Actuation by length, angle or volume: actuation coordinates are prescribed, and their inputs are Lagrange
multipliers. Index h: prescribed inputs, index g: given inputs.

At rest (`prescribed_equilibrium`):

    ID(q, 0, 0) = B_h u_h + B_g u_g + Aᵀ λ,   y_h(q) = y_d,   c(q) = 0        B_h = (∂y_h/∂q)ᵀ             (1)
    [K, −B_h, −Aᵀ; B_hᵀ, 0, 0; A_q, 0, 0] (δq; δu_h; δλ) = (−r; y_d − y_h; −c)        Newton's step        (2)
    Nᵀ K N positive definite,   (B_hᵀ; A) N = 0                              stable at constant y_h          (3)
    r(q, u) = (1 − p) r(q₀, u₀),   y_h = y_h(q₀) + p (y_d − y_h(q₀))         p from 0 to 1 in parts          (4)

The path (4) constrains y from the first iteration, so that a link that only a motor supports does not float. y are the
`actuation_coordinates`: the shortening of a tendon, the coordinate of a motor, the increase of the volume of a chamber.
(2) is solved in natural sizes of the coordinates; if it is singular, the shortest step is taken. A tendon that may be
slack and would have a negative tension is released (u = 0). It is prescribed again if it becomes longer than
prescribed.

In motion (`prescribed_actuation`), inputs are multipliers that keep the coordinates on prescribed functions:

    M a + h = B_h u_h + B_g u_g + Aᵀ λ,   ẏ = B_hᵀ v                                                      (5)
    ÿ = D u_h + B_hᵀ a₀ + Ḃ_hᵀ v,   D = B_hᵀ M⁻¹ B_h,   a₀ = M⁻¹ (B_g u_g − h)                            (6)
    D u_h = ÿ_d + 2 p (ẏ_d − ẏ) + p² (y_d − y) − B_hᵀ a₀ − Ḃ_hᵀ v                                         (7)

If y = y_d at the start, (7) is the index-reduced constraint y = y_d with the multiplier u_h, and p only removes errors
of rounding and steps. Otherwise y follows y_d as a critically damped servo. With loops and prescribed motions, their
forward dynamics replaces M⁻¹. Derivatives for implicit methods are (7) and (8) of actuation_coordinates, with K_P = p²
and K_D = 2 p.

Source: Mathew 2025 §5 (constraints and multipliers); Pustina 2025 §7.1 (the coordinates y, and (6)); J. Baumgarte,
Comput. Methods Appl. Mech. Eng. 1, 1972, for p.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, final

import numpy as np
from scipy.linalg import null_space

from lissom.control.actuation_coordinates import actuation_rates, coordinates_of_all, require_coordinates
from lissom.control.feedback_linearization import decoupled
from lissom.dynamics.actuation import actuation_matrix, input_rows, tightening_inputs, warn_of_pushing
from lissom.dynamics.assembly import closed_start, prescribed_configuration
from lissom.dynamics.configuration import checked_configuration, integrate
from lissom.dynamics.constraints import joined_too_often, warn_of_redundancy
from lissom.dynamics.forward_dynamics import forward_dynamics
from lissom.dynamics.inverse_dynamics_derivatives import residual_derivatives
from lissom.dynamics.linearization import steady_velocity
from lissom.dynamics.mass_matrix import mass_inverse_dynamics
from lissom.dynamics.start import default_start
from lissom.errors import AccuracyWarning, ConvergenceError, ModelError, StabilityWarning, keeping
from lissom.inverse.targets import finite
from lissom.launch.progress import PATIENCE, progress_bar
from lissom.launch.workspace import flat, leading, require_finite_rows
from lissom.model.model import Model
from lissom.model.plausibility import inside_out
from lissom.robot import checks, formatting
from lissom.robot.functions import RowsOfTime
from lissom.robot.joints import JointMotion
from lissom.simulation.inputs import Controller, input_function
from lissom.statics.equilibrium import solve_statics
from lissom.statics.residual import residual_jacobian, static_residual
from lissom.statics.stability import Reduced, floating, growing_on

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from lissom.simulation.inputs import Samples

_LONGEST = 0.5  # longest step, in natural sizes of the coordinates
_ITERATIONS = 30
_SMALLEST = 1 / 256  # smallest part of the path (4)
_CONSISTENT, _NOTHING = 1e-6, 1e-10  # largest residual of (2): relative to its right side, plus absolute
_PUSH = 1e-9  # a push below this fraction of the largest input is a rounding error
_LONGER = 1e-9  # tolerance of y, relative to |y_d| or 1 m, whichever is larger


@final
@formatting.in_one_line
@dataclass(frozen=True)
class PrescribedEquilibrium:
    """An equilibrium with prescribed actuation coordinates.

    Fields:
        q: configuration (..., nq) [rad, m, or strain units].
        u: all inputs (..., nu) [N, m, Pa or N·m, by actuator]: given ones, and those of prescribed coordinates.
        y: prescribed coordinates, in the given order (..., n) [m, rad, m³].
        slack: mask of the released tendons (..., n).
        multipliers: constraint forces λ (..., n_rows).
        residual: largest absolute entry of the remaining generalised force (...).
        iterations: number of Newton iterations (...).
        is_stable: True if there is no unstable mode at constant y, flutter included (...). The coordinates of slack
            tendons are not constant.
    """

    q: np.ndarray
    u: np.ndarray
    y: np.ndarray
    slack: np.ndarray
    multipliers: np.ndarray
    residual: np.ndarray
    iterations: np.ndarray
    is_stable: np.ndarray


@final
@dataclass(frozen=True)
class _State:
    """A configuration (nq,), inputs (nu,), constraint forces (n_rows,) and the number of iterations so far."""

    q: np.ndarray
    u: np.ndarray
    force: np.ndarray
    iterations: int = 0


def prescribed_inputs(model: Model, y: Any) -> np.ndarray:
    """Indices of the inputs that a user's dictionary prescribes by name, in its order.

    Raises:
        ModelError: a name is no input, or its input has no actuation coordinate or is that of an elastic tendon.
    """
    names = list(model.inputs.names)
    checks.require(isinstance(y, Mapping) and len(y) > 0, "y", "must be a dictionary of values by input", y)
    for name in y:
        if name not in names:
            raise ModelError(f"y: must be by names of inputs, which are {names} (got {name!r})")
    chosen = np.array([names.index(name) for name in y])
    for c in model.spools.channel:
        if model.channels.gain[c][chosen].any():
            rule = "is elastic, and its input is the length pulled in: give it as u"
            raise ModelError(f"tendon {model.channels.names[c]!r}: {rule} (got it in y)")
    require_coordinates(model, chosen, "has no actuation coordinate to prescribe")
    return chosen


def prescribed_equilibrium(
    model: Model,
    y: Mapping[str, ArrayLike],
    *,
    u: ArrayLike | None = None,
    q0: ArrayLike | None = None,
    slack: bool = False,
    t: float = 0.0,
    tolerance: float = 1e-11,
    progress: bool = False,
) -> PrescribedEquilibrium:
    """Static equilibrium in which tendons have given lengths, motors given angles, and chambers given volumes.

        ID(q, 0, 0) = B(q) u + A(q)ᵀ λ,   y_h(q) = y_d,   e(q) = 0

    The inputs of prescribed coordinates are Lagrange multipliers: for tendons, the tensions at the prescribed lengths.

    Args:
        y: y_d by name of the input, as in `actuation_coordinates`: shortening of a tendon from the neutral
            configuration [m], joint coordinate of a motor [rad, m], increase of a volume [m³]; each a number or an
            array (...).
        u: the other inputs, shape (..., nu) [N, m, Pa or N·m, by actuator]; None is zero. Entries of prescribed inputs
            are start values.
        q0: start (..., nq) [rad, m, or strain units]; None is `start_configuration`. From here y moves to y_d while
            the residual at the start decreases to zero, in parts if necessary. If this leads to no stable equilibrium,
            the equilibrium under u near q0 is the second start.
        slack: True: tendons that would have a negative tension are released. False: the negative tension is computed,
            with a warning.
        t: time of loads and prescribed motions [s], which are held constant.
        tolerance: largest last step, in units of a rod's end rotation [rad] and stretch [-].
        progress: True shows the number of solved instances of a batch, if this takes longer than one second.
    Returns:
        PrescribedEquilibrium.
    Raises:
        ModelError: a name is no input; an input has no known coordinate; or contacts stick.
        ShapeError: an argument has a wrong shape.
        ConvergenceError: there is no equilibrium at y_d. The message gives the part of the path that was reached, and
            the link that floats freely, if there is one.
        KeyboardInterrupt: Ctrl-C. Its attribute `partial` is the PrescribedEquilibrium of the instances solved so far,
            the first rows of the batch, with one leading axis.
        StabilityWarning: an equilibrium is unstable at constant y.
        AccuracyWarning: a tension is negative.
    Source: Mathew 2025 §5; Pustina 2025 §7.1.
    """
    model.require_positions("prescribed_equilibrium")
    chosen = prescribed_inputs(model, y)
    rule = "needs contacts that do not stick, since their anchors depend on the path"
    checks.require(not model.contacts.sticks, "prescribed equilibrium", rule, "friction that sticks")
    checks.number(tolerance, "tolerance", above=0.0)
    checks.time(t)
    values = [finite(value, f"y[{name!r}]") for name, value in y.items()]
    given = input_rows(model, u)
    found: list[_State] = []
    loose: list[np.ndarray] = []  # masks of released inputs

    def so_far() -> PrescribedEquilibrium | None:
        count = len(loose)
        return _result(model, chosen, found[:count], np.array(loose), t, (count,)) if lead and count else None

    lead: tuple[int, ...] = ()
    with keeping(so_far):
        start = default_start(model) if q0 is None else checked_configuration(model, "q0", q0)
        require_finite_rows(u=given)
        others = np.where(np.isin(np.arange(model.nu), chosen), 0.0, given)
        warn_of_pushing(model, others)
        axes = {f"y[{name!r}]": value[..., None] for name, value in zip(y, values)}
        lead = leading(**axes, q0=start, u=given)
        wanted = np.stack([np.broadcast_to(value, lead) for value in values], axis=-1).reshape(-1, len(chosen))
        q, u = (flat(x, lead) for x in (start, given))
        q = closed_start(model, prescribed_configuration(model, q, t))
        if len(q):
            warn_of_redundancy(model, q[0])
        with progress_bar(progress, len(wanted), "statics", "equilibria", PATIENCE) as advance:
            for k, (begin, inputs, target) in enumerate(zip(q, u, wanted)):
                search = _Search(model, chosen, t, tolerance, f"instance {k} of {len(wanted)}: " if lead else "")
                state, free = search.best(begin, inputs, target, slack)
                found.append(state)
                loose.append(free)
                advance(len(found))
        end = _result(model, chosen, found, np.reshape(loose, wanted.shape), t, lead)
    _warn(model, chosen, end)
    return end


@final
@dataclass(frozen=True)
class _Search:
    """Search for the equilibrium of one instance of a batch, by (1), (2) and (4)."""

    model: Model
    chosen: np.ndarray
    t: float
    tolerance: float
    where: str

    def best(self, q: np.ndarray, u: np.ndarray, y_d: np.ndarray, slack: bool) -> tuple[_State, np.ndarray]:
        """Equilibrium at the end of (4) from q, and the mask of released inputs. If it does not exist or is unstable,
        (4) is repeated from the equilibrium under u near q."""
        model = self.model
        try:
            first = self.found(_State(q, u, np.zeros(model.n_rows)), y_d, slack)
        except ConvergenceError as error:
            try:
                return self.found(self._rest(q, u), y_d, slack)
            except ConvergenceError:
                raise error from None
        if _is_stable(model, first[0], self.chosen[~first[1]], self.t):
            return first
        try:
            other = self.found(self._rest(q, u), y_d, slack)
        except ConvergenceError:
            return first
        return other if _is_stable(model, other[0], self.chosen[~other[1]], self.t) else first

    def _rest(self, q: np.ndarray, u: np.ndarray) -> _State:
        """The equilibrium under u near q."""
        model = self.model
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they concern the start only
            rest = solve_statics(model, u=u, q0=q, v=np.zeros(model.nv), t=self.t, stable=False)
        force = rest.multipliers[model.n_motions - model.prescribed.n_locked :]
        return _State(rest.q, rest.u, force, int(rest.iterations))

    def found(self, start: _State, y_d: np.ndarray, slack: bool) -> tuple[_State, np.ndarray]:
        """The equilibrium, and the mask of released inputs."""
        loose, free = np.zeros(len(self.chosen), dtype=bool), start
        may = slack & tightening_inputs(self.model)[self.chosen]
        for _ in range(2 * len(loose) + 3):
            state = self._along(free, y_d, np.flatnonzero(~loose))
            u, beyond = state.u[self.chosen], self.y(state.q) - y_d
            pushing = may & ~loose & (u < -_PUSH * np.abs(state.u).max(initial=0.0))
            longer = loose & (beyond < -_LONGER * np.maximum(1.0, np.abs(y_d)))
            if not (pushing | longer).any():
                return state, loose
            loose = (loose | pushing) & ~longer
            u = state.u.copy()
            u[self.chosen[loose]] = 0.0
            free = replace(state, u=u)
        raise ConvergenceError(f"{self.where}y: found no set of taut tendons (last slack: {loose.tolist()})")

    def y(self, q: np.ndarray) -> np.ndarray:
        """Coordinates of the prescribed inputs, shape (n,)."""
        return coordinates_of_all(self.model, q)[self.chosen]

    def _along(self, state: _State, y_d: np.ndarray, taut: np.ndarray) -> _State:
        """State at the end of (4), in parts if necessary. `taut` holds the indices of inputs that are not released."""
        model, here, done, part = self.model, self.y(state.q), 0.0, 1.0
        initial = static_residual(model, state.q, state.u, self.t, 1.0, state.force)
        if initial is None:
            raise ConvergenceError(f"{self.where}y: the start turns a rod interval by 2π or more")
        while done < 1.0:
            goal = min(1.0, done + part)
            found = self._newton(state, here + goal * (y_d - here), taut, (1.0 - goal) * initial[: model.nv])
            if found is not None:
                state, done, part = found, goal, 2.0 * part
            elif part < _SMALLEST:
                names = ", ".join(repr(model.inputs.names[k]) for k in self.chosen[taut])
                loose = floating(model, self._reduced(state, taut)) if done == 0.0 else ""
                loose = loose or joined_too_often(model, state.q)
                raise ConvergenceError(f"{self.where}y of {names}: no equilibrium was reached beyond {100 * done:.0f} "
                                       f"% of the path to {y_d[taut].tolist()}{loose}")  # fmt: skip
            else:
                part = 0.5 * part
        return state

    def _reduced(self, state: _State, taut: np.ndarray) -> Reduced:
        """The matrices on the motions with constant y of the taut inputs."""
        return _reduced(self.model, state, self.chosen[taut], self.t)

    def _newton(self, state: _State, y_d: np.ndarray, taut: np.ndarray, rest: np.ndarray) -> _State | None:
        """Newton's method for r = rest, with a generalised force `rest` (nv,). None if it does not converge."""
        model, scale = self.model, self.model.dofs.scale
        q, u, force = state.q, state.u.copy(), state.force
        for k in range(_ITERATIONS):
            step = self._step(q, u, force, y_d, taut, rest)
            if step is None:
                return None
            dq, du, change = step
            size = float(np.abs(dq / scale).max(initial=0.0))
            part = min(1.0, _LONGEST / max(size, 1e-300))
            q, force = integrate(model, q, part * dq), force + part * change
            u[self.chosen[taut]] += part * du
            if size <= self.tolerance:
                if inside_out(model, q[None]) is not None:
                    return None
                return _State(q, u, force, state.iterations + k + 1)
        return None

    def _step(
        self, q: np.ndarray, u: np.ndarray, force: np.ndarray, y_d: np.ndarray, taut: np.ndarray, rest: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """δq, δu_h and δλ of (2); None if the robot is folded or (2) has no solution."""
        model, n = self.model, self.model.nv
        scale = np.where(np.isin(np.arange(n), model.prescribed.dof), 0.0, model.dofs.scale)
        r = static_residual(model, q, u, self.t, 1.0, force)
        if r is None:
            return None
        r[:n] -= rest
        K, A, A_q = residual_jacobian(model, q, u, self.t, 1.0, force)
        B = actuation_matrix(model, q)[:, self.chosen[taut]] * scale[:, None]
        K, A, A_q = scale[:, None] * K * scale, A * scale, A_q * scale
        stiff = np.abs(K).max(initial=0.0) or 1.0
        units = [1.0 / np.maximum(np.linalg.norm(X, axis=0), 1e-300) for X in (B, A.T)]
        rows = np.vstack([B.T * units[0][:, None], A_q * units[1][:, None]])
        right = np.concatenate([-scale * r[:n] / stiff, units[0] * (y_d - self.y(q))[taut], -units[1] * r[n:]])
        columns = np.hstack([B * units[0], A.T * units[1]])
        matrix = np.block([[K / stiff, -columns], [rows, np.zeros((len(rows), len(rows)))]])
        if not (np.isfinite(matrix).all() and np.isfinite(right).all()):
            return None
        x = np.linalg.lstsq(matrix, right, rcond=1e-13)[0]
        if np.abs(matrix @ x - right).max(initial=0.0) > _CONSISTENT * np.abs(right).max(initial=0.0) + _NOTHING:
            return None
        pull, push = np.split(stiff * x[n:], [len(taut)])
        return scale * x[:n], units[0] * pull, units[1] * push


def _reduced(model: Model, state: _State, taut: np.ndarray, t: float) -> Reduced:
    """The matrices on the motions N of (3)."""
    q, v, scale = state.q, steady_velocity(model), model.dofs.scale
    K, D, M, _ = residual_derivatives(model, q, v, np.zeros(model.nv), state.u, t, 1.0, state.force)
    A = residual_jacobian(model, q, state.u, t, 1.0, state.force)[1]
    rows = np.vstack([actuation_matrix(model, q)[:, taut].T, A]) * scale
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300)
    rows = np.vstack([rows, np.eye(model.nv)[model.prescribed.dof]])
    N = scale[:, None] * (null_space(rows, rcond=1e-9) if len(rows) else np.eye(model.nv))
    return Reduced(N, *(N.T @ X @ N for X in (K, D, M, model.elasticity.stiffness)))


def _is_stable(model: Model, state: _State, taut: np.ndarray, t: float) -> bool:
    """Whether the equilibrium is stable by (3), with damping and inertia as for other equilibria."""
    here = _reduced(model, state, taut, t)
    return not here.N.shape[1] or not len(growing_on(here))


def _result(
    model: Model, chosen: np.ndarray, found: list[_State], slack: np.ndarray, t: float, lead: tuple[int, ...]
) -> PrescribedEquilibrium:
    """The results of all instances as a PrescribedEquilibrium."""
    stable = np.array([_is_stable(model, state, chosen[~loose], t) for state, loose in zip(found, slack)], dtype=bool)
    q, u, force = (np.array([getattr(state, name) for state in found]).reshape(len(found), size)
                   for name, size in (("q", model.nq), ("u", model.nu), ("force", model.n_rows)))  # fmt: skip
    left = [static_residual(model, *row, t, 1.0, push) for row, push in zip(zip(q, u), force)]
    size = np.array([np.inf if r is None else np.abs(r[: model.nv]).max(initial=0.0) for r in left])
    y = coordinates_of_all(model, q)[:, chosen]
    count = np.array([state.iterations for state in found], dtype=int)
    parts = (q, u, y, slack, force, size, count, stable)
    return PrescribedEquilibrium(*(x.reshape(lead + x.shape[1:]) for x in parts))


def _warn(model: Model, chosen: np.ndarray, found: PrescribedEquilibrium) -> None:
    """Warn of the number of unstable equilibria, and of the prescribed tendon with the least tension, if negative."""
    stable, u = found.is_stable, found.u.reshape(-1, model.nu)
    if not stable.all():
        text = f"{int((~stable).sum())} of {stable.size} prescribed equilibria are unstable at fixed coordinates"
        warnings.warn(f"robot {model.name!r}: {text}; start from another q0", StabilityWarning, stacklevel=3)
    pulls = chosen[tightening_inputs(model)[chosen]]
    least = u[:, pulls].min(axis=0, initial=0.0)
    if (least < -_PUSH * np.abs(u).max(initial=0.0)).any():
        name = model.inputs.names[pulls[int(np.argmin(least))]]
        text = f"would have to push to be as long as prescribed (got a tension of {least.min():.4g} N)"
        warnings.warn(f"tendon {name!r}: {text}; slack=True releases it", AccuracyWarning, stacklevel=3)


def prescribed_actuation(
    model: Model,
    y: Any,
    *,
    u: ArrayLike | Samples | Callable[[float], ArrayLike] | None = None,
    correction: Any = None,
    rate: float = 50.0,
    slack: bool = False,
) -> Controller:
    """Control law that keeps lengths of tendons, angles of motors or volumes of chambers on given functions of time.

        y_h(q(t)) = y_d(t),   with tensions, torques and pressures u_h as multipliers

    The constraint is solved exactly at each evaluation. Start at a state that satisfies it, such as q of
    `prescribed_equilibrium`. From other states the error e = y_h − y_d decays as that of a critically damped servo,
    ë + 2 p ė + p² e = 0. A negative tension is computed as given, and `simulate` warns of it. With `slack` such a
    tendon has no tension.

    Args:
        y: y_d by name of the input, as in `actuation_coordinates` [m, rad, m³]: constants, functions of t,
            ls.Tabulated, or (y, ẏ, ÿ), three functions of t. Missing rates are finite differences.
        u: the other inputs, as in `simulate`; None is zero.
        correction: function of (t, q, v) that returns an increment of y_d, shape (n,) in the order of `y`, such as the
            output of a control law. Its rates are taken as zero, so the servo smooths it.
        rate: p [1/s].
        slack: True: a tendon that would have a negative tension becomes slack. The servo makes it taut again without
            impact.
    Returns:
        Controller for `simulate`. `Trajectory.u` has the computed inputs. The law is continuous; with a sampling
        `period` T keep T p below 1.
    Raises:
        ModelError: a name is no input; an input has no known coordinate; or a function of `y` has a wrong type, fails
            or returns a wrong value. During a simulation: the effects of the inputs are linearly dependent, so their
            coordinates cannot be prescribed independently.
    Accuracy: the integrator's tolerance. Source: Pustina 2025 §7.1.
    """
    model.require_positions("prescribed_actuation")
    chosen = prescribed_inputs(model, y)
    checks.number(rate, "rate", above=0.0)
    good = correction is None or callable(correction)
    checks.require(good, "correction", "must be a function of (t, q, v)", correction)
    motions = []
    for name, value in y.items():
        parts = value if isinstance(value, tuple) and len(value) == 3 else (value,)
        motion = JointMotion("y", "", *parts)
        motion.check(f"y[{name!r}]", 1)
        motions.append(motion.kinematics(f"y[{name!r}]", 1))
    law = _PrescribedLaw(model, chosen, tuple(motions), input_function(model, u), correction, float(rate))
    if slack:
        law = replace(law, may_slack=tightening_inputs(model)[chosen])
    known = not (model.n_multipliers or len(model.spools.channel) or correction)
    return Controller(law, derivatives=law.derivatives if known else None)


@final
@dataclass(frozen=True)
class _PrescribedLaw:
    """The law as a function of (t, q, v, z)."""

    model: Model
    chosen: np.ndarray
    motions: tuple[tuple[RowsOfTime, RowsOfTime, RowsOfTime], ...]
    others: Callable[[float], np.ndarray]
    correction: Callable[[float, np.ndarray, np.ndarray], Any] | None
    rate: float
    may_slack: np.ndarray | None = None
    last: dict[str, Any] = field(default_factory=dict, compare=False)

    def __call__(self, t: float, q: np.ndarray, v: np.ndarray, z: np.ndarray) -> np.ndarray:
        return self._found(t, q, v)[0].copy()

    def _found(self, t: float, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, ...]:
        """u, indices of the taut inputs among the prescribed ones, B_h, a₀ and M⁻¹B_h. The result at the last state is
        cached, because the derivatives there are computed next."""
        key = (t, q.tobytes(), v.tobytes())
        if self.last.get("key") != key:
            self.last.update(key=key, found=self._solved(t, q, v))
        return self.last["found"]

    def _solved(self, t: float, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, ...]:
        model, u = self.model, np.array(self.others(t), dtype=np.float64)
        u[self.chosen] = 0.0
        if model.n_multipliers or len(model.spools.channel):
            units = np.zeros((len(self.chosen), model.nu))
            units[np.arange(len(self.chosen)), self.chosen] = 1.0
            a = forward_dynamics(model, q, v, np.vstack([u, u + units]), t)
            a_0, response = a[0], (a[1:] - a[0]).T
            B, curving = actuation_rates(model, q, v)
        else:
            own = mass_inverse_dynamics(model, q, v, t=t)
            B, curving = actuation_rates(model, q, v)
            a = np.linalg.solve(own.mass, np.column_stack([B @ u - own.bias, B[:, self.chosen]]))
            a_0, response = a[:, 0], a[:, 1:]
        B_h = B[:, self.chosen]
        wanted = self._wanted(t, q, v, B_h) - B_h.T @ a_0 - curving[self.chosen]
        taut = np.arange(len(self.chosen))
        while len(taut):
            names = tuple(model.inputs.names[k] for k in self.chosen[taut])
            found = decoupled(names, B_h.T[taut] @ response[:, taut], wanted[taut], t)
            pushing = (found < 0.0) & self.may_slack[taut] if self.may_slack is not None else np.zeros(len(taut), bool)
            if not pushing.any():
                u[self.chosen[taut]] = found
                break
            taut = np.delete(taut, np.argmin(np.where(pushing, found, np.inf)))
        return u, taut, B_h, a_0, response

    def _wanted(self, t: float, q: np.ndarray, v: np.ndarray, B_h: np.ndarray) -> np.ndarray:
        """The first three terms on the right of (7)."""
        y_d, rate_d, turn_d = (np.array([motion[k](t)[0] for motion in self.motions]) for k in range(3))
        if self.correction is not None:
            rule = f"must return finite values of shape ({len(self.chosen)},)"
            value = np.atleast_1d(self.correction(t, q.copy(), v.copy()))
            y_d = y_d + checks.array(value, (len(self.chosen),), "correction", rule)
        missing, p = y_d - coordinates_of_all(self.model, q)[self.chosen], self.rate
        return turn_d + 2.0 * p * (rate_d - B_h.T @ v) + p * p * missing

    def derivatives(self, t: float, q: np.ndarray, v: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """∂u/∂q and ∂u/∂v, shape (nu, nv) each."""
        model, p = self.model, self.rate
        u, taut, B_h, a_0, response = self._found(t, q, v)
        a = a_0 + response @ u[self.chosen]
        chosen, B_h, response = self.chosen[taut], B_h[:, taut], response[:, taut]
        dq, dv, _, _ = residual_derivatives(model, q, v, a, u, t, approximate=True)
        D = B_h.T @ response
        by_q, by_v = np.zeros((model.nu, model.nv)), np.zeros((model.nu, model.nv))
        by_q[chosen] = np.linalg.solve(D, response.T @ dq - p * p * B_h.T)
        by_v[chosen] = np.linalg.solve(D, response.T @ dv - 2.0 * p * B_h.T)
        return by_q, by_v
