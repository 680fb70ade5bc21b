"""Where searches for static equilibria end: the equilibria that they find, and the iterates at which they stop."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import final

import numpy as np

from lissom.dynamics.accuracy import Accuracy, estimate
from lissom.dynamics.steady_motion import steady_velocity
from lissom.launch.workspace import batch_of
from lissom.model.model import Model
from lissom.model.model_batch import ModelBatch
from lissom.robot import telling
from lissom.statics.residual import static_residual
from lissom.statics.verdict import growing, least_stiffness


@final
@dataclass(frozen=True, repr=False)
class Equilibrium:
    """A static equilibrium.

    Fields:
        q: configuration (..., nq). u: inputs (..., nu). multipliers: forces of the prescribed motions, then of the
        loops (..., n_multipliers) [N·m, N]. residual: largest entry of the generalised force that is left (...).
        iterations: Newton steps, and those of a descent (...).
        v: the velocity of the steady motion it is found in, zero at rest (..., nv).
        is_stable: whether no small motion that loops and prescribed motions allow grows, flutter included (...);
            motions that nothing holds and nothing drives do not count, nor does what only a gyroscope holds up. False
            of an iterate that is no equilibrium.
        unstable_count: number of motions that grow (...).
        anchors: where contacts that stick hold on, (..., n_pairs, 6), for `Model.anchored`.
        model, t: what it is an equilibrium of, and at which time [s].
    """

    q: np.ndarray
    u: np.ndarray
    multipliers: np.ndarray
    residual: np.ndarray
    iterations: np.ndarray
    v: np.ndarray
    is_stable: np.ndarray
    unstable_count: np.ndarray
    model: Model | ModelBatch = field(repr=False, compare=False)
    t: float = field(repr=False, compare=False)
    anchors: np.ndarray = field(default_factory=lambda: np.zeros((0, 6)))

    __repr__ = telling.equilibrium_words  # type: ignore[assignment]

    def _repr_html_(self) -> str:
        return telling.html_arrays(repr(self), {name: getattr(self, name) for name in ("q", "u", "multipliers", "v")})

    @cached_property
    def accuracy(self) -> Accuracy:
        """Estimated error by points and bases of rods [m], as of `accuracy`; computed when first asked for, with an
        AccuracyWarning where it exceeds a hundredth of the longest rod."""
        model = self.model.common if isinstance(self.model, ModelBatch) else self.model
        lead, n_motions = self.q.shape[:-1], model.n_motions - model.prescribed.n_held
        state = (self.q, self.v, np.zeros_like(self.v), self.u, self.multipliers[..., n_motions:])
        rows = [np.reshape(x, (batch_of(lead), x.shape[-1])) for x in state]
        return estimate(list(model.of_rows(batch_of(lead))), rows, np.full(batch_of(lead), self.t), lead, None)

    @cached_property
    def least_stiffness(self) -> np.ndarray:
        """Least eigenvalue of the tangent stiffness on the motions that loops and prescribed motions allow, of its
        symmetric part where loads are not conservative (...) [J].

        A motion of unit size turns, stretches or shears a rod by 1 from end to end, turns a joint by 1 rad, or moves
        one by as much as it moves the robot when turned by 1 rad (`model.dofs.scale`): the work it takes is half of
        this. Negative where an equilibrium under conservative loads is unstable, zero where it buckles or is neutral;
        infinite where nothing can move. Computed when first asked for, at the cost of an eigenvalue problem each.
        """
        model = self.model.common if isinstance(self.model, ModelBatch) else self.model
        lead, n_motions = self.q.shape[:-1], model.n_motions - model.prescribed.n_held
        rows = (
            np.reshape(x, (batch_of(lead), x.shape[-1])) for x in (self.q, self.u, self.multipliers[..., n_motions:])
        )
        each = model.of_rows(batch_of(lead))
        found = [least_stiffness(one, q, u, self.t, force) for one, q, u, force in zip(each, *rows)]
        return np.array(found, dtype=np.float64).reshape(lead)


@final
@dataclass
class Iterate:
    """Where a Newton solve ended, with the forces of loops; what to do about it, empty where it converged; how many
    motions grow, where that is known; and which descents towards a stable one were tried."""

    q: np.ndarray
    force: np.ndarray
    iterations: int
    remedy: str
    growing: int | None = None
    tried: str = ""

    def unstable_count(self, model: Model, u: np.ndarray, t: float) -> int:
        """How many motions grow about it under the full load."""
        if self.growing is None:
            self.growing = len(growing(model, self.q, u, t, self.force))
        return self.growing

    def equilibrium(self, model: Model, u: np.ndarray, t: float, factor: float = 1.0) -> Equilibrium:
        """The iterate as a result, with the residual it leaves."""
        r = static_residual(model, self.q, u, t, factor, self.force)
        size = np.array(np.inf if r is None else np.abs(r[: model.nv]).max(initial=0.0))
        forces = np.concatenate([np.zeros(model.n_motions - model.prescribed.n_held), self.force])
        claims = np.array(False), np.array(0)
        v = steady_velocity(model, factor)
        return Equilibrium(self.q, u, forces, size, np.array(self.iterations), v, *claims, model, t)
