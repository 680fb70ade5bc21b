"""One step of an implicit scheme from a state alone, with its exact derivatives: what optimal control is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from lissom.dynamics.configuration import checked_configuration
from lissom.errors import renamed
from lissom.gradients.carried import matrices_of_path
from lissom.gradients.holding import forbid_anchors
from lissom.gradients.rollout import Rollout, rollout
from lissom.launch.workspace import batch_of, flat, leading, stack
from lissom.model.model import Model
from lissom.robot import formatting
from lissom.stepping.schemes import Scheme

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@final
@formatting.in_one_line
@dataclass(frozen=True)
class Step:
    """The end of a step, and how it answers (a batch adds leading axes).

    Fields:
        q, v: state at its end, (nq,), (nv,). A: (δq, δv) there by (δq, δv) at its start, (2 nv, 2 nv), δq in the
        tangent spaces of `integrate` at either end. B: by the inputs, (2 nv, nu).
    """

    q: np.ndarray
    v: np.ndarray
    A: np.ndarray
    B: np.ndarray


@renamed(scheme="method")
def step_derivatives(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    u: ArrayLike | None = None,
    *,
    dt: float,
    method: str | Scheme = "generalized_alpha",
    tolerance: float = 1e-11,
) -> Step:
    """One step from a state, which begins with the acceleration there, and its exact derivatives.

    Args:
        q: configuration, shape (..., nq). v: velocity, shape (..., nv). u: inputs held during the step, shape
            (..., nu); None is zero.
        dt: size of the step [s]. method, tolerance: as of `rollout`.
    Returns:
        Step. States of a batch are stepped together.
    Raises:
        ConvergenceError, ModelError, ShapeError: as rollout.
    Accuracy: exact derivative of the step. Second-order schemes that carry â on are of first order in v when each of
    their steps is begun so; "bathe", "sdirk", "esdirk" and newmark() keep their order.
    """
    forbid_anchors(model)
    q, v = checked_configuration(model, "q", q), stack("v", v, model.nv)
    inputs = np.zeros(model.nu) if u is None else stack("u", u, model.nu)
    lead = leading(q=q, v=v, u=inputs)
    n, nv, nu = batch_of(lead), model.nv, model.nu
    options: dict[str, Any] = {"dt": dt, "steps": 1, "method": method, "tolerance": tolerance}
    motion = rollout(model, flat(q, lead), flat(v, lead), flat(inputs, lead).reshape(n, 1, nu), **options)
    matrix = matrices_of_path(motion, motion.path, _begun(motion), accelerations=False)[:, 0]
    matrix = matrix.reshape(*lead, 2 * nv, 2 * nv + nu)
    end, speed = motion.q[:, 1].reshape(*lead, model.nq), motion.v[:, 1].reshape(*lead, nv)
    return Step(end, speed, matrix[..., : 2 * nv], matrix[..., 2 * nv :])


def _begun(motion: Rollout) -> np.ndarray:
    """(δq, δv, δa, δâ) that steps begin with by (δq0, δv0, δu), shape (n, 4 nv, 2 nv + nu), or one for all."""
    nv, nu, model = motion.common.nv, motion.common.nu, motion.common
    if not (motion.method.follows_accelerations or model.n_rows or len(model.prescribed.dof)):
        return np.eye(4 * nv, 2 * nv + nu)
    s, n = motion.starts, len(motion.path.q)
    begun = np.zeros((n, 4, nv, 2 * nv + nu))
    begun[:, 0, :, :nv], begun[:, 1, :, nv : 2 * nv] = s.onto_q, s.onto_v
    begun[:, 1] += s.carried @ begun[:, 0]
    right = -s.by_q @ begun[:, 0] - s.by_v @ begun[:, 1]
    right[..., 2 * nv :] += s.B
    begun[:, 2] = begun[:, 3] = (s.solve @ right)[:, :nv]
    return begun.reshape(n, 4 * nv, -1)
