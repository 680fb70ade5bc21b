"""Whether equilibria are stable: no small motion that loops and prescribed motions allow may grow.

    δr = K δq,   δq = N y,   Nᵀ K N positive definite where loads are conservative                        (1)

with K the tangent stiffness, forces of loops included, and N the motions that are allowed. A Cholesky factorisation in
units of what springs and rods hold tells that of most equilibria; where it fails, or where K is not symmetric, the
exponents of `stability` are asked, flutter included. Motions that nothing holds and nothing drives are no instability.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import final

import numpy as np
import scipy

from lissom.dynamics.contacts import ball_gaps
from lissom.dynamics.inverse_dynamics_derivatives import residual_derivatives, row_results
from lissom.dynamics.steady_motion import steady_velocity
from lissom.errors import ModelError, StabilityWarning
from lissom.launch.loop_buffers import chosen_rows
from lissom.launch.workspace import parts
from lissom.model.model import Model
from lissom.statics.residual import static_residual
from lissom.statics.stability import growing_exponents, is_flutter, is_symmetric, own_units
from lissom.systems.allowed_motions import allowed_motions

_LOOSE = 1e-9  # of the largest stiffness: what holds nothing
NOTHING = 1e-11  # of the largest curvature: what is left of K where nothing holds, at equilibria known to 1e-11


@final
@dataclass(frozen=True)
class Reduced:
    """Stiffness, damping, mass and the stiffness of springs at rest, each on the allowed motions N (nv, n)."""

    N: np.ndarray
    K: np.ndarray
    D: np.ndarray
    M: np.ndarray
    elastic: np.ndarray


def reduced(model: Model, q: np.ndarray, u: np.ndarray, t: float, force: np.ndarray, factor: float = 1.0) -> Reduced:
    """The matrices of (1) at one configuration with the forces of its loops, under a factor of the load."""
    v, zero = steady_velocity(model, factor), np.zeros(model.nv)
    K, D, M, w = residual_derivatives(model, q, v, zero, u, t, factor, force)
    N = allowed_motions(model, row_results(model, w, "A"), chosen_rows(w))
    return Reduced(N, *(N.T @ X @ N for X in (K, D, M, model.elasticity.stiffness)))


def surely_stable(model: Model, K: np.ndarray, A: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Whether K (n, nv, nv) is symmetric and positive definite on the motions that the rows A (n, n_rows, nv) allow, of
    which those `kept` (n, n_rows) are independent; shape (n,)."""
    found = np.zeros(len(K), dtype=bool)
    for part in parts(len(K)):
        if model.n_rows:
            motions = [allowed_motions(model, rows, np.flatnonzero(own)) for rows, own in zip(A[part], kept[part])]
            found[part] = [_is_definite(*(N.T @ X @ N for X in (here, model.elasticity.stiffness)))[0]
                           for N, here in zip(motions, K[part][:, None])]  # fmt: skip
        elif model.n_motions:
            free = np.setdiff1d(np.arange(model.nv), model.prescribed.dof)
            found[part] = _is_definite(K[part][:, free[:, None], free], model.elasticity.stiffness[np.ix_(free, free)])
        else:
            found[part] = _is_definite(K[part], model.elasticity.stiffness)
    return found


def _is_definite(K: np.ndarray, elastic: np.ndarray) -> np.ndarray:
    """Whether each K (n, m, m) is symmetric and, but for rounding, positive definite."""
    if not K.shape[-1]:
        return np.ones(len(K), dtype=bool)
    units = own_units(K, elastic)
    K = K * (units[:, :, None] * units[:, None, :])
    shift = NOTHING * np.abs(K).max(axis=(1, 2))
    K[:, np.arange(K.shape[1]), np.arange(K.shape[1])] += shift[:, None]
    return is_symmetric(K) & np.array([_has_factor(row) for row in K])


def _has_factor(K: np.ndarray) -> bool:
    """Whether Cholesky's factor exists."""
    try:
        np.linalg.cholesky(K)
    except np.linalg.LinAlgError:
        return False
    return True


def growing(model: Model, q: np.ndarray, u: np.ndarray, t: float, force: np.ndarray) -> np.ndarray:
    """The exponents of the motions that grow about one equilibrium; where loads that turn with the body move
    coordinates without mass, those of (1) without mass."""
    return growing_on(reduced(model, q, u, t, force))


def growing_on(here: Reduced) -> np.ndarray:
    """The same on the motions N of given matrices."""
    try:
        return growing_exponents(here.K, here.D, here.M, here.elastic, NOTHING)
    except ModelError:
        units = own_units(here.K, here.elastic)
        values = np.linalg.eigvals(here.K * units * units[:, None])
        return -values[np.real(values) < -NOTHING * np.abs(values).max(initial=0.0)]


def least_stiffness(model: Model, q: np.ndarray, u: np.ndarray, t: float, force: np.ndarray) -> float:
    """Least eigenvalue of the symmetric part of (1) on motions of unit size in units of dofs.scale [J]."""
    here = reduced(model, q, u, t, force)
    unit = here.N / model.dofs.scale[:, None]
    if not unit.shape[1]:
        return np.inf
    return float(
        scipy.linalg.eigh(0.5 * (here.K + here.K.T), unit.T @ unit, eigvals_only=True, subset_by_index=(0, 0))[0]
    )


def describe_growth(model: Model, q: np.ndarray, u: np.ndarray, t: float, force: np.ndarray) -> str:
    """How many motions grow about an equilibrium, how fast, and which link moves most."""
    here = reduced(model, q, u, t, force)
    exponents = growing(model, q, u, t, force)
    text = f"{len(exponents)} motion{'s' if len(exponents) != 1 else ''} grow{'s' if len(exponents) == 1 else ''}"
    if not is_symmetric(here.K):
        kind = "oscillating" if len(exponents) and is_flutter(exponents) else "steadily"
        return f"{text}, the slowest {kind}"
    try:
        size, shape = scipy.linalg.eigh(0.5 * (here.K + here.K.T), here.M)
    except np.linalg.LinAlgError:
        return text
    moved = np.abs(here.N @ shape[:, 0]) / model.dofs.scale
    link = link_of(model, int(moved.argmax()))
    return f"{text}, the fastest by e in {1.0 / np.sqrt(max(-size[0], 1e-300)):.3g} s, most of it in link {link!r}"


def warn_of_instability(
    model: Model, q: np.ndarray, u: np.ndarray, t: float, force: np.ndarray, counts: np.ndarray, tried: list[str]
) -> None:
    """Say how many of the equilibria are unstable, and of the first of these what grows about it and what was tried."""
    bad = np.flatnonzero(counts)
    which = f" of {len(bad)} of {len(counts)} instances, first {bad[0]}," if len(counts) > 1 else ""
    what = describe_growth(model, q[bad[0]], u[bad[0]], t, force[bad[0]])
    warnings.warn(
        f"robot {model.name!r}: no stable equilibrium was found in reach of the start{which} and about the one that is "
        f"returned {what}; tried descents: {tried[bad[0]]}; start from another q0, or take stable=False where it may "
        "be unstable",
        StabilityWarning, stacklevel=3
    )  # fmt: skip


def floating(model: Model, here: Reduced) -> str:
    """Which link moves most in the motions that nothing holds, as the end of an error; empty where all are held."""
    if not here.N.shape[1]:
        return ""
    units = own_units(here.K, here.elastic)
    _, size, V = np.linalg.svd(here.K * units * units[:, None])
    motions = here.N @ (units[:, None] * V[size <= _LOOSE * max(size[0], 1e-300)].T) / model.dofs.scale[:, None]
    if not motions.shape[1]:
        return ""
    moved = np.linalg.norm(np.linalg.svd(motions, full_matrices=False)[0], axis=1)
    return f": link {link_of(model, int(np.argmax(moved >= (1.0 - 1e-9) * moved.max())))!r} floats freely"


def link_of(model: Model, dof: int) -> str:
    """The link that a coordinate of v belongs to."""
    return model.links.names[int(np.searchsorted(model.links.v_start, dof, side="right")) - 1]


def floats_at(model: Model, q: np.ndarray, u: np.ndarray, t: float, force: np.ndarray, factor: float = 1.0) -> str:
    """The same at a configuration (nq,), with forces of loops and a factor of the load; empty where that is refused."""
    if static_residual(model, q, u, t, factor, force) is None:
        return ""
    here = reduced(model, q, u, t, force, factor)
    return floating(model, here) if np.isfinite(here.K).all() else ""


def what_hangs_loose(model: Model, q: np.ndarray) -> str:
    """What to do about a contact that is near at q but does not press and so holds nothing; empty without one."""
    world = model.surroundings
    if not len(world.pair):
        return ""
    gap = ball_gaps(model, q)
    near = np.flatnonzero((gap >= 0.0) & (gap <= world.ball_radius))
    if not len(near):
        return ""
    k = near[np.argmin(gap[near])]
    name = world.contact_names[int(world.pair[world.pair[:, 0] == k][0, 2])]
    return (
        f"; contact {name!r} on link {world.ball_link[k]!r} does not press at the start (its gap is {gap[k]:.3g} m) "
        "and has no stiffness there: start with it pressed in a little, or give its body a spring"
    )
