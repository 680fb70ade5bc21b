"""Small forced vibrations about an equilibrium or a steady motion: state space of minimal size, frequency response.

N spans the motions y that loops and prescribed motions allow. With the matrices of (3) in dynamics.linearization,
inputs δu, and sensors whose readings have the slopes H_q and H_v,

    M̂ ÿ + Ĉ ẏ + K̂ y = Nᵀ B δu,   δh = (H_q N + H_v G N) y + H_v N ẏ                                       (1)
    H(iω) = (H_q N + H_v G N + iω H_v N) (K̂ + iω Ĉ − ω² M̂)⁻¹ Nᵀ B                                        (2)
    ẋ = A x + B δu,  δh = C x,   x = (y, ẏ)                                                              (3)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from lissom.dynamics.actuation import input_response
from lissom.dynamics.forward_dynamics import run_forward_dynamics
from lissom.dynamics.inverse_dynamics_derivatives import residual_derivatives, row_results
from lissom.dynamics.linearization import velocity_adjoint
from lissom.errors import ModelError, ShapeError
from lissom.inverse.kalman_filter import Sensor
from lissom.launch.workspace import independent_rows, require_finite
from lissom.model.model import Model
from lissom.robot import checks, formatting
from lissom.systems.bordered import allowed_motions

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from lissom.statics.equilibrium import Equilibrium


@final
@formatting.in_one_line
@dataclass(frozen=True)
class StateSpace:
    """ẋ = A x + B δu, δh = C x + D δu of small motions; D is zero. x = (y, ẏ), with δq = N y.

    Fields:
        A, B, C, D: matrices, shapes (2 n, 2 n), (2 n, n_inputs), (n_outputs, 2 n) and (n_outputs, n_inputs), in units
            of the sensors per unit of the inputs; time is in s.
        N: allowed motions, shape (nv, n). Without loops and prescribed motions it is the identity.
        inputs: names of the inputs.
    """

    A: np.ndarray
    B: np.ndarray
    C: np.ndarray
    D: np.ndarray
    N: np.ndarray
    inputs: tuple[str, ...]

    @property
    def poles(self) -> np.ndarray:
        """Eigenvalues of A, shape (2 n,), complex [1/s]."""
        return np.linalg.eigvals(self.A)

    def frequency_response(self, frequencies: ArrayLike) -> np.ndarray:
        """H(iω) = C (iω − A)⁻¹ B + D at frequencies (k,) [rad/s], complex, shape (k, n_outputs, n_inputs).

        Raises:
            ShapeError: the frequencies are not finite numbers >= 0 of shape (k,).
            ModelError: an undamped mode has one of the frequencies.
        """
        w = _frequencies(frequencies)
        unit = np.eye(len(self.A))
        return np.array([self.C @ _solved(1j * x * unit - self.A, self.B, x) + self.D for x in w.tolist()]).reshape(
            len(w), len(self.C), self.B.shape[1]
        )


def _frequencies(frequencies: Any) -> np.ndarray:
    try:
        w = np.asarray(frequencies, dtype=np.float64)
    except (TypeError, ValueError):
        w = np.full((1, 1), np.nan)
    if w.ndim != 1 or not np.isfinite(w).all() or (w < 0.0).any():
        raise ShapeError(f"frequencies: expected finite numbers >= 0 of shape (k,), got {frequencies!r}")
    return w


def _solved(matrix: np.ndarray, right: np.ndarray, w: float) -> np.ndarray:
    try:
        return np.linalg.solve(matrix, right)
    except np.linalg.LinAlgError:
        rule = (
            "an undamped mode has this frequency, so that the response is infinite; add damping, or move away from it"
        )
        raise ModelError(f"frequencies: {rule} (got {w:g} rad/s)") from None


class _SmallMotions(NamedTuple):
    """The matrices of (1): N, M̂, Ĉ, K̂, Nᵀ B, and the slopes of the readings by y and by ẏ."""

    N: np.ndarray
    M: np.ndarray
    C: np.ndarray
    K: np.ndarray
    B: np.ndarray
    by_y: np.ndarray
    by_rate: np.ndarray


def _small_motions(
    model: Model, equilibrium: Equilibrium, inputs: Any, output: Any
) -> tuple[_SmallMotions, tuple[str, ...]]:
    """The matrices of (1), and the names of the inputs."""
    checks.require(not model.models and isinstance(model, Model), "model", "must be one Model", model)
    model.require_positions("small motions")
    for name, size in (("q", model.nq), ("v", model.nv), ("u", model.nu)):
        shape = np.asarray(getattr(equilibrium, name, None)).shape
        if shape != (size,):
            raise ShapeError(f"equilibrium > {name}: expected shape ({size},), as of model {model.name!r}, got {shape}")
    names = model.inputs.names if inputs is None else (inputs,) if isinstance(inputs, str) else tuple(inputs)
    unknown = [name for name in names if name not in model.inputs.names]
    checks.require(not unknown, "input", f"must be among {', '.join(model.inputs.names)}", unknown)
    sensors: Sequence[Sensor] = (output,) if isinstance(output, Sensor) else tuple(output)
    for sensor in sensors:
        checks.require(isinstance(sensor, Sensor), "output", "must be a sensor, such as SensorPosition", sensor)
        sensor.shape(model)
    q, v, u, t = equilibrium.q, equilibrium.v, equilibrium.u, equilibrium.t
    steady, force = np.zeros(model.nv), np.zeros(model.n_rows)
    if model.n_rows:
        force = run_forward_dynamics(model, q, v, u, t).host["force"][0].copy()
    K, C, M, w = residual_derivatives(model, q, v, steady, u, t, 1.0, force)
    require_finite(K, C, M)
    N = allowed_motions(model, row_results(model, w, "A"), independent_rows(w))
    G = velocity_adjoint(model, v)
    B = input_response(model, q, v, u, t)[:, [model.inputs.names.index(name) for name in names]]
    slopes = [sensor.slopes(model, q, v) for sensor in sensors]
    H_q, H_v = (np.concatenate([np.zeros((0, model.nv)), *(rows[k] for rows in slopes)]) for k in (0, 1))
    M, C, K = (N.T @ X @ N for X in (M, M @ G + C, K + C @ G))
    return _SmallMotions(N, M, C, K, N.T @ B, (H_q + H_v @ G) @ N, H_v @ N), names


def state_space(
    model: Model,
    equilibrium: Equilibrium,
    inputs: str | Sequence[str] | None = None,
    output: Sensor | Sequence[Sensor] = (),
) -> StateSpace:
    """State space of small motions about an equilibrium, of minimal size: loops and prescribed motions take no states.

    Args:
        equilibrium: an Equilibrium of the model, at rest or in a steady motion.
        inputs: name of an input, or names; None: all.
        output: a sensor, such as SensorPosition or SensorStrain, or a list of sensors. Their noise does not count; a
            pose gives the increment (w; u) on its right [rad, m].
    Returns:
        StateSpace with its matrices, for example for `scipy.signal` or `control`; time in s.
    Raises:
        ModelError: an input does not exist, a sensor does not fit the model, or a coordinate moves no mass.
        ShapeError: the equilibrium is not one state of this model.
    Accuracy: exact derivatives of the discrete model.
    """
    x, names = _small_motions(model, equilibrium, inputs, output)
    n, k = len(x.M), x.B.shape[1]
    try:
        rates = np.linalg.solve(x.M, np.hstack([-x.K, -x.C, x.B]))
    except np.linalg.LinAlgError:
        rule = "each motion must move some mass; frequency_response needs none"
        raise ModelError(f"robot {model.name!r}: {rule} (got a singular mass matrix)") from None
    A = np.vstack([np.hstack([np.zeros((n, n)), np.eye(n)]), rates[:, : 2 * n]])
    B = np.vstack([np.zeros((n, k)), rates[:, 2 * n :]])
    C = np.hstack([x.by_y, x.by_rate])
    return StateSpace(A, B, C, np.zeros((len(C), k)), x.N, names)


def frequency_response(
    model: Model,
    equilibrium: Equilibrium,
    inputs: str | Sequence[str] | None,
    output: Sensor | Sequence[Sensor],
    frequencies: ArrayLike,
) -> np.ndarray:
    """Response of sensors to harmonic inputs of small amplitude about an equilibrium.

    An input δu cos ωt moves a reading by Re(H δu exp(iωt)). For a force at a point take a wrench input of the robot
    (`Robot.add_wrench_input`).

    Args:
        equilibrium: an Equilibrium of the model, at rest or in a steady motion.
        inputs: name of an input, or names; None: all.
        output: a sensor, such as SensorPosition or SensorStrain, or a list of sensors. Their noise does not count.
        frequencies: ω, shape (k,) [rad/s]; 0 is the static response.
    Returns:
        H, complex, shape (k, n_outputs, n_inputs), or (k, n_outputs) for one name of an input, in units of the sensors
        per unit of the input.
    Raises:
        ModelError: an input does not exist, a sensor does not fit the model, or an undamped mode has one of the
            frequencies. ShapeError: the equilibrium is not one state of this model, or frequencies are no such numbers.
    Accuracy: exact for the discrete model, with all its dissipation.
    """
    w, (x, _) = _frequencies(frequencies), _small_motions(model, equilibrium, inputs, output)
    out = np.zeros((len(w), len(x.by_y), x.B.shape[1]), dtype=complex)
    for k, value in enumerate(w.tolist()):
        inside = _solved(x.K + 1j * value * x.C - value**2 * x.M, x.B.astype(complex), value)  # (2)
        out[k] = (x.by_y + 1j * value * x.by_rate) @ inside
    return out[..., 0] if isinstance(inputs, str) else out
