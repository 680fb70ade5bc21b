"""Derivatives of an equilibrium among contacts that stick, along the path on which it was reached.

`solve_statics` releases the supporting forces s of the start q₀ in parts, and anchors z follow after each part:

    z₁ = U(z₀, q₀),   s = r(q₀; z₁) − A₀ᵀ λ₀                                                              (1)
    r(q_k; z_k) − A_kᵀ λ_k = σ_k s,   e(q_k) = 0,   z_{k+1} = U(z_k, q_k),   k = 1 … n,   σ_n = 0         (2)

with the given anchors z₀, the shares σ_k of a `ReleasePath`, and the update U of anchors (3). The anchor of a ball that
sticks stays, that of a ball that slides moves with the ball and with the limit of friction, and a ball that begins to
touch gets one. So all q_k and z_k depend on inputs u, design values p and the start. The derivatives of (2),

    [∂r/∂q, −Aᵀ; A_q, 0] (dq; dλ)_k = (B du − r_p dp + F dz_k + σ_k ds; −e_p dp),   F = −∂r/∂z            (3)
    dz_{k+1} = C_q dq_k + C_z dz_k + U_p dp                                                               (4)

are propagated from the end to the start, for several functions of q_n and z_{n+1} at once. The supporting forces have
the derivative of r at the start. With loops λ₀ is the constraint force at the release, whose derivative and that of the
closed q₀ are those of starts. F, C_q and C_z are those of anchors, U_p those of contact_designs.
"""

from __future__ import annotations

from typing import NamedTuple, final

import numpy as np

from lissom.dynamics.forward_dynamics import run_forward_dynamics
from lissom.gradients.anchors import anchor_rows, rows_of
from lissom.gradients.designs import Designs
from lissom.gradients.recursion import AnchorRows
from lissom.gradients.stage_systems import StageStates
from lissom.gradients.starts import start_derivatives
from lissom.statics.equilibrium import ReleasePath


@final
class ReleaseDerivatives(NamedTuple):
    """Derivatives of m functions with respect to inputs (m, nu), design values (m, count) and the start (m, nv)."""

    u: np.ndarray
    parameters: np.ndarray
    q0: np.ndarray


@final
class Systems(NamedTuple):
    """The systems (3) at states in rows: the matrices (rows, n, n), and (B; 0), (rows, n, nu)."""

    matrix: np.ndarray
    B: np.ndarray


def release_states(path: ReleasePath, u: np.ndarray, v: np.ndarray, t: float) -> StageStates:
    """The states of (2) in rows, and first that of (1), with the anchors of each residual."""
    n, anchors = len(path.q), path.anchors
    anchors[0] = anchors[1]
    rest = np.tile(v, (n, 1))
    given = np.tile(u, (n, 1)), path.force, np.full(n, t)
    return StageStates(path.q, rest, np.zeros_like(rest), *given, None, None, anchors)


def release_derivatives(
    path: ReleasePath, states: StageStates, systems: Systems, inverse: np.ndarray, designs: Designs,
    by_q: np.ndarray, by_z: np.ndarray | None = None,
) -> ReleaseDerivatives:  # fmt: skip
    """Derivatives of m functions of the end of a path by (3) and (4).

    Args:
        states: those of release_states. systems, inverse: the systems at the states, and the inverses of the matrices.
        designs: design values of the model of the path.
        by_q: derivatives of the functions with respect to q_n, (m, nv). by_z: with respect to all anchors z_{n+1}, (m,
            6 n_pairs); None is zero.
    """
    model, nv, last, still = path.model, path.model.nv, len(path.q) - 1, np.zeros_like(states.v)
    assert states.anchors is not None
    moves = _Anchors(anchor_rows(model, path.anchors, states.q, still), nv)
    pulls = _Anchors(anchor_rows(model, states.anchors, states.q, states.v), nv)  # differ at the start, and if v ≠ 0
    slopes = np.swapaxes(designs.slopes(states).residual, -1, -2)  # (r_p; e_p)
    by_update = designs.anchor_slopes(path.anchors, states.q, still)  # U_p
    z = np.zeros((len(by_q), moves.rows.numbers)) if by_z is None else by_z
    by_u, by_p, by_s = (np.zeros((len(by_q), size)) for size in (model.nu, designs.count, nv))
    onto = by_q
    for k in range(last, 0, -1):
        onto, by_p, z = onto + moves.by_q(k, z), by_p + z @ by_update[k].T, moves.before(k, z)
        mu = onto @ inverse[k, :nv]
        by_u, by_p, z = by_u + mu @ systems.B[k], by_p - mu @ slopes[k], z + pulls.pulled(k, mu)
        by_s, onto = by_s + path.share[k] * mu[:, :nv], np.zeros_like(by_q)
    by_s[:, model.prescribed.dof] = 0.0
    by_u, by_p, z = by_u - by_s @ systems.B[0, :nv], by_p + by_s @ slopes[0, :nv], z - pulls.pulled(0, by_s)
    onto = by_s @ systems.matrix[0, :nv, :nv]
    if model.n_rows:
        start = _Start.of(path, states, designs)
        mu = by_s @ systems.matrix[0, :nv, nv:] @ start.force
        by_u, by_p, z = by_u + mu @ start.B, by_p - mu @ start.slopes, z + pulls.pulled(0, mu)
        onto = onto - mu @ start.by_q
    onto, by_p = onto + moves.by_q(0, z), by_p + z @ by_update[0].T
    if model.n_rows:
        onto, by_p = onto @ start.onto_q, by_p + onto @ start.gap
    onto[:, model.prescribed.dof] = 0.0
    return ReleaseDerivatives(by_u, by_p, onto)


@final
class _Anchors(NamedTuple):
    """Derivatives (4) and F of (3) of all pairs at states in rows, applied to derivatives of m functions."""

    rows: AnchorRows
    nv: int

    def _slopes(self, k: int, first: int, stop: int, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        """Numbers `first` to `stop` of the slopes of each pair in contact in state k, and the numbers of the pairs."""
        _, at = rows_of(self.rows, np.array([k]))
        return self.rows.slopes[at, first * self.nv : stop].reshape(-1, *shape), self.rows.pair[at]

    def _of_pairs(self, z: np.ndarray, pair: np.ndarray) -> np.ndarray:
        return z.reshape(len(z), -1, 6)[:, pair]

    def by_q(self, k: int, z: np.ndarray) -> np.ndarray:
        """z C_q, (m, nv), for derivatives z (m, numbers) with respect to the anchors after state k."""
        slopes, pair = self._slopes(k, 6, 12 * self.nv, (6, self.nv))
        return np.einsum("mpe,pej->mj", self._of_pairs(z, pair), slopes)

    def before(self, k: int, z: np.ndarray) -> np.ndarray:
        """z C_z, (m, numbers). Pairs without contact in state k have no anchor after it."""
        slopes, pair = self._slopes(k, 18, 18 * self.nv + 36, (6, 6))
        out = np.zeros((len(z), self.rows.numbers // 6, 6))
        out[:, pair] = np.einsum("mpe,pec->mpc", self._of_pairs(z, pair), slopes)
        return out.reshape(z.shape)

    def pulled(self, k: int, mu: np.ndarray) -> np.ndarray:
        """μ F, (m, numbers), for μ (m, n) with respect to the generalised forces of state k."""
        slopes, pair = self._slopes(k, 0, 6 * self.nv, (self.nv, 6))
        out = np.zeros((len(mu), self.rows.numbers // 6, 6))
        out[:, pair] = np.einsum("mj,pje->mpe", mu[:, : self.nv], slopes)
        return out.reshape(len(mu), -1)


@final
class _Start(NamedTuple):
    """Derivatives of the release of a robot with loops, of starts (1) and (2): those of λ₀ with respect to the right
    side of (1) there, (n_rows, n); B, by_q and slopes (r_p; …) of that right side; and q₀ with respect to the given
    start, (nv, nv), and to the design values through the loops, (nv, count)."""

    force: np.ndarray
    B: np.ndarray
    by_q: np.ndarray
    slopes: np.ndarray
    onto_q: np.ndarray
    gap: np.ndarray

    @classmethod
    def of(cls, path: ReleasePath, states: StageStates, designs: Designs) -> _Start:
        model, nv, anchors = path.model, path.model.nv, states.anchors
        assert anchors is not None and states.force is not None
        q, v, u, force = (x[:1] for x in (states.q, states.v, states.u, states.force))
        found = run_forward_dynamics(model.anchored(anchors[0]), q, v, u, states.t[0])
        a = np.where((found.status == 0)[:, None], found.host["a"], 0.0)
        s = start_derivatives(model, q, v, a, u, force, anchors[:1], float(states.t[0]))
        slopes, gap, _ = designs.start_slopes((q, v, a, u, states.t[:1], force), anchors[:1])
        solve = s.solve[0, nv:] * (found.status[0] == 0)  # without accelerations λ₀ is zero
        by_q = s.by_q[0].copy()
        by_q[:nv] += s.pull[0] @ s.moved[0, :, :nv]  # (4) adds the motion of the anchors
        return cls(solve, s.B[0], by_q, slopes[0].T, s.onto_q[0], s.gap[0] @ gap[0].T)
