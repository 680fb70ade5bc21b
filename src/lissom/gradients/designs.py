"""Derivatives of the residual with respect to design values, from the tables of changed models (design_changes).

If a design value changes only tables in which the residual is linear, its derivative is exact. That of elastic and
viscous forces needs no launch. For others it is a difference,

    r_p ≈ (r(p + h) − r(p − h)) / 2 h                                                                     (1)

at the same q, v, a, u and λ, where the tables of p ± h are those of design_changes (2). The error is h²/6 ∂³r/∂p³
plus rounding over h: with h = 5e-5 p it is about 1e-9 of the terms of r. Numbers that are in no table are differenced
to fourth order. Contacts and elastic tendons have kinks and are left out of the differences. contact_designs adds the
derivatives of contacts. If a rule of the description allows values on one side only,

    r_p ≈ ± (−25 r(p) + 48 r(p ± h) − 36 r(p ± 2h) + 16 r(p ± 3h) − 3 r(p ± 4h)) / 12 h                   (2)

A slack tendon has no derivative. For a taut tendon b, k and the stretch of tendons (7) are differenced:

    r_p = −b' T − b T',   T' = k' (L − L₀ + u) + k (L − L₀ + u)'                                          (3)

design_derivatives gives partial derivatives of other functions of a state, with the state held fixed, on the same
models.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import fields, is_dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple, final

import numpy as np

from lissom.dynamics.actuation import run_actuation
from lissom.dynamics.constraints import constraint_jacobian, run_residuals
from lissom.dynamics.forward_dynamics import run_residual
from lissom.dynamics.inverse_dynamics import inverse_dynamics
from lissom.dynamics.inverse_dynamics_derivatives import derivative_workspace, run_residual_derivatives
from lissom.errors import ModelError, ShapeError
from lissom.forces.tendons import SLACK_TOLERANCE
from lissom.gradients.contact_designs import ContactSlopes, contact_slopes
from lissom.gradients.design_changes import Change, Stencil, changed_tables, changes, shape_of, stencils
from lissom.gradients.stage_systems import StageStates
from lissom.gradients.steps import Path
from lissom.launch.workspace import row_slices
from lissom.model.model import Model
from lissom.robot import checks
from lissom.robot.sampled_shapes import GRIDDED
from lissom.statics.equilibrium import Equilibrium

_ROWS = 256  # states in one launch


def start_rows(path: Path, u: np.ndarray) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """q, v, a, u, t and λ at the initial states of a path with inputs u, and the anchors there."""
    first = path.state(0)
    return (first["q"], first["v"], first["a"], u, np.zeros(len(path.q)), first["force"]), first["anchors"]


@final
class _Job(NamedTuple):
    """A function(model, *rows) of states in rows, the count of its numbers at each state, and the anchors there."""

    function: Callable[..., np.ndarray]
    rows: tuple[np.ndarray, ...]
    size: int
    anchors: np.ndarray | None = None


@final
class DesignSlopes(NamedTuple):
    """Derivatives with respect to design values at states in rows.

    Fields:
        residual: ∂r/∂p, and in further numbers those of loops, (rows, count, nv + ...).
        state, pair: of each contact pair that touches and sticks, in ascending order. anchor: derivatives of their
        anchors after these states, (pairs, count, 6).
    """

    residual: np.ndarray
    state: np.ndarray
    pair: np.ndarray
    anchor: np.ndarray


@final
class Designs:
    """Design values of a robot, or of each model of a batch, as one array of `count` numbers.

    Raises:
        ModelError: a path leads to no number, array of numbers or pose.
    """

    def __init__(self, model: Model, paths: tuple[str, ...], count: int) -> None:
        self.model, self.paths, self.rows = model, paths, count
        first = model.of_row(0, 1)
        self.shapes = {path: shape_of(first, path) for path in paths}
        self.count = sum(int(np.prod(shape)) for shape in self.shapes.values())
        _check_shapes(first, paths)

    @cached_property
    def stencils(self) -> list[list[Stencil]]:
        """The stencils of all numbers, for each model."""
        return [stencils(one, self.paths) for one in (self.model.models or (self.model,))]

    def split(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """Numbers (..., count) as arrays by path."""
        out, at = {}, 0
        for path, shape in self.shapes.items():
            size = int(np.prod(shape))
            out[path] = x[..., at : at + size].reshape((*x.shape[:-1], *shape))
            at += size
        return out

    def joined(self, given: dict[str, Any]) -> np.ndarray | None:
        """Numbers (..., count) from arrays by path, the inverse of `split`; None if there are no paths."""
        rows = []
        for path, shape in self.shapes.items():
            x = np.asarray(given[path], dtype=np.float64)
            if x.shape[x.ndim - len(shape) :] != shape:
                raise ShapeError(f"parameters > {path}: expected shape (..., {', '.join(map(str, shape))}), "
                                 f"got {x.shape}")  # fmt: skip
            rows.append(x.reshape(*x.shape[: x.ndim - len(shape)], -1))
        if not rows:
            return None
        lead = np.broadcast_shapes(*(x.shape[:-1] for x in rows))
        return np.concatenate([np.broadcast_to(x, (*lead, x.shape[-1])) for x in rows], axis=-1)

    def slopes(self, states: StageStates) -> DesignSlopes:
        """(∂r/∂p; ∂e/∂p) and the derivatives of anchors at states."""
        return self._residual_slopes([self._stage_job(states)])[0]

    def start_slopes(
        self, rows: tuple[np.ndarray, ...], anchors: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Derivatives with respect to p of (r; A a + Ȧ v), of e and of A v at initial states, shapes (n, count, ...).

        Args:
            rows: q, v, a, u, t and λ (n, ...), with all inputs u. anchors: (n, n_pairs, 6).
        """
        return self._split_start(self._residual_slopes([self._start_job(rows, anchors)])[0])

    def slopes_with_start(
        self, states: StageStates, path: Path, u: np.ndarray
    ) -> tuple[DesignSlopes, tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """`slopes` at the stages of the first steps of a path, and its `start_slopes`, with the same changed tables."""
        jobs = [self._stage_job(states), self._start_job(*start_rows(path, u))]
        known, start = self._residual_slopes(jobs)
        return known, self._split_start(start)

    def _stage_job(self, states: StageStates) -> _Job:
        count, m = len(states.t), self.model.n_rows
        force = states.force if states.force is not None else np.zeros((count, m))
        rows = (states.q, states.v, states.a, states.u, states.t, force)
        return _Job(_residuals, rows, self.model.nv + m, states.anchors)

    def _start_job(self, rows: tuple[np.ndarray, ...], anchors: np.ndarray) -> _Job:
        return _Job(_start_residuals, rows, self.model.nv + 3 * self.model.n_rows, anchors)

    def _split_start(self, start: DesignSlopes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        nv, m = self.model.nv, self.model.n_rows
        rows, gap, rate = np.split(start.residual, [nv + m, nv + 2 * m], axis=-1)
        return rows, gap, rate

    def momentum_slopes(self, q: np.ndarray, d: np.ndarray, push: np.ndarray) -> np.ndarray:
        """Derivatives with respect to p of M d − Aᵀ μ, for changes of velocity d and impulses μ of the rows in `push`,
        at states (n, ...), shape (n, count, nv). Those of prescribed coordinates are zero."""
        (out,) = self._differences([_Job(_momenta, (q, d, push), self.model.nv)], is_linear=True)
        out[..., self.model.prescribed.dof] = 0.0
        return out

    def anchor_slopes(self, anchors: np.ndarray, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Derivatives of the anchors after states (rows, ...), (rows, count, 6 n_pairs); zero for open pairs.

        Args:
            anchors: before, (rows, n_pairs, 6).
        """
        out = np.zeros((len(q), anchors.shape[1], self.count, 6))
        for model, own in self._models(len(q)) if out.size else ():
            found = contact_slopes(model, changes(model, self.paths), q[own], v[own], anchors[own])
            out[own.start + found.state, found.pair] = found.anchor
        return np.swapaxes(out, 1, 2).reshape(len(q), self.count, anchors[:1].size)

    def _models(self, count: int) -> Iterator[tuple[Model, slice]]:
        """The models, and the slice of `count` states that belongs to each."""
        models = self.model.models or (self.model,)
        each = count // len(models)
        return ((model, slice(k * each, (k + 1) * each)) for k, model in enumerate(models))

    def _residual_slopes(self, jobs: list[_Job]) -> list[DesignSlopes]:
        """Derivatives of functions whose first numbers are r, and of anchors."""
        nv, none = self.model.nv, np.zeros(0, dtype=int)
        results = []
        for job, out in zip(jobs, self._differences(jobs, is_linear=True)):
            q, v, _, u, *_ = job.rows
            found = [ContactSlopes(out, none, none, np.zeros((0, self.count, 6)))]
            for model, own in self._models(len(q)) if out.size else ():
                own_anchors = None if job.anchors is None else job.anchors[own]
                part = contact_slopes(model, changes(model, self.paths), q[own], v[own], own_anchors)
                out[own, :, :nv] += part.residual
                for p, change in enumerate(changes(model, self.paths)):
                    if change.elastic is not None:
                        out[own, p, :nv] += change.elastic.force(model, q[own], v[own])
                found.append(part._replace(state=own.start + part.state))
            if out.size and len(self.model.spools.channel):
                out[..., :nv] += self._tendon_slopes(q, u)
            out[..., self.model.prescribed.dof] = 0.0
            state, pair, anchor = (np.concatenate(x) for x in list(zip(*found))[1:])
            results.append(DesignSlopes(out, state, pair, anchor))
        return results

    def _tendon_slopes(self, q: np.ndarray, u: np.ndarray) -> np.ndarray:
        """(3) of all elastic tendons, shape (rows, count, nv)."""
        n, n_tendons, nv = len(q), len(self.model.spools.channel), self.model.nv
        slack, k = (self.model.by_row(lambda one, x=x: getattr(one.spools, x), n) for x in ("slack", "stiffness"))
        b, length = _split_pulls(_pulls(self.model, q, u), n_tendons, nv)
        b_p, length_p = _split_pulls(self._differences([_Job(_pulls, (q, u), n_tendons * (nv + 1))])[0], n_tendons, nv)
        k_p, slack_p = np.zeros((2, n, self.count, n_tendons))
        for model, own in self._models(n):
            for p, change in enumerate(changes(model, self.paths)):
                for one, weight in zip(change.stencil.models, change.stencil.weights):
                    k_p[own, p] += weight * one.spools.stiffness
                    slack_p[own, p] += weight * one.spools.slack
        k, slack, b = np.broadcast_to(k, (n, n_tendons))[:, None], np.broadcast_to(slack, (n, n_tendons)), b[:, None]
        stretch = (length - slack)[:, None]
        taut = stretch > -SLACK_TOLERANCE * slack[:, None]
        by_b = np.einsum("rpe,rpej->rpj", taut * k * stretch, b_p)
        return -by_b - np.einsum("rpe,rpej->rpj", taut * (k_p * stretch + k * (length_p - slack_p)), b)

    def _differences(self, jobs: list[_Job], *, is_linear: bool = False) -> list[np.ndarray]:
        """(1) or (2) of the function of each job, shape (rows, count, size); the derivative of design_changes (1) for
        functions that are linear in the tables there, zero for those that do not read them."""
        results = [np.zeros((len(job.rows[0]), self.count, job.size)) for job in jobs]
        models = (self.model.models or (self.model,)) if self.count else ()
        for at, model in enumerate(models):
            with changed_tables(model) as tables:
                found = _evaluations(tables.first, changes(model, self.paths), is_linear=is_linear)
                for p, weight, one in found:
                    launched = tables.of(one)
                    with launched.temporary_buffers() if launched is one else nullcontext():
                        for job, out in zip(jobs, results):
                            each = len(out) // len(models)
                            _add_differences(job, launched, slice(at * each, (at + 1) * each), p, weight, out)
        return results


def _add_differences(job: _Job, model: Model, own: slice, p: list[int], weight: list[float], out: np.ndarray) -> None:
    """Add weighted values of the function of a job for a model at the states `own` to derivatives by numbers p."""
    rows, slopes, done = [x[own] for x in job.rows], out[own], 0
    size = -(-len(slopes) // max(-(-len(slopes) // _ROWS), 1))  # equal parts, of which the last overlaps least
    for part in row_slices(len(slopes), size) if job.size else ():
        values = job.function(model, *(x[part] for x in rows))[done - part.start :]
        for k, w in zip(p, weight):
            slopes[done : part.stop, k] += w * values
        done = part.stop


def _evaluations(
    first: Model, found: list[Change], *, is_linear: bool
) -> Iterator[tuple[list[int], list[float], Model]]:
    """For each model to evaluate: the indices of the numbers whose derivatives need its residual, the weight of the
    residual in each of these derivatives, and the model."""
    linear = [p for p, change in enumerate(found) if change.linear is not None] if is_linear else []
    if linear:
        yield linear, [-1.0 / found[p].size for p in linear], first
    for p, change in enumerate(found):
        if change.moves:
            assert change.ends is not None
            for one, weight in zip(change.smooth, change.ends.weights):
                yield [p], [weight], one
        if is_linear and change.linear is not None:
            yield [p], [1.0 / change.size], change.linear


def _check_shapes(model: Model, paths: tuple[str, ...]) -> None:
    """Raise ModelError if a path leads into a shape on a grid."""
    for path in paths:
        name, _, field = path.partition(".")
        contact = model.description.contacts.get(name)
        if contact is not None and field.startswith("shape.") and isinstance(contact.shape, GRIDDED):
            raise ModelError(
                f"parameters > {path}: must not lead into a {type(contact.shape).__name__}, which is sampled on a grid "
                "and has no derivatives with respect to its sizes; its placement has (got a shape on a grid)"
            )


def _pulls(model: Model, q: np.ndarray, u: np.ndarray) -> np.ndarray:
    """b, and length plus length pulled in, of the n elastic tendons at states, shape (rows, n (nv + 1))."""
    workspace, lead = run_actuation(model, q)
    c, names = model.spools.channel, len(model.channels.names)
    b, length = workspace.result("B", lead, names, model.nv)[:, c], workspace.result("length", lead, names)[:, c]
    gain = model.by_row(lambda one: one.channels.gain[c], len(q))
    return np.concatenate([b.reshape(len(q), -1), length + (gain @ u[..., None])[..., 0]], axis=1)


def _split_pulls(rows: np.ndarray, n_tendons: int, nv: int) -> tuple[np.ndarray, np.ndarray]:
    """b (..., n, nv) and the lengths (..., n) from rows of _pulls."""
    b, length = np.split(rows, [n_tendons * nv], axis=-1)
    return b.reshape(*b.shape[:-1], n_tendons, nv), length


def _residuals(
    model: Model, q: np.ndarray, v: np.ndarray, a: np.ndarray, u: np.ndarray, t: np.ndarray, force: np.ndarray
) -> np.ndarray:
    """(r; e) at states, with A v in place of e for rows that restrict velocities only, shape (rows, nv + n_rows)."""
    workspace = run_residual(model, q, v, a, u, t, 1.0, force)
    workspace.raise_for_status()
    tau, gap = workspace.host["tau"].copy(), workspace.host["gap"].copy()
    if model.rate_rows.any():
        gap = np.where(model.rate_rows, run_residuals(model, q, v)[0].host["rate"], gap)
    return np.concatenate([tau, gap], axis=1)


def _start_residuals(
    model: Model, q: np.ndarray, v: np.ndarray, a: np.ndarray, u: np.ndarray, t: np.ndarray, force: np.ndarray
) -> np.ndarray:
    """(r; A a + Ȧ v; e; A v) at initial states, shape (rows, nv + 3 n_rows)."""
    workspace = run_residual(model, q, v, a, u, t, 1.0, force)
    workspace.raise_for_status()
    residual = workspace.host["tau"].copy()
    if not model.n_rows:
        return residual
    workspace, _ = derivative_workspace(model, q, v, a, u)
    run_residual_derivatives(model, workspace, t, inputs=True, force=force)
    return np.concatenate([residual, *(workspace.host[name] for name in ("acceleration", "gap", "rate"))], axis=1)


def _momenta(model: Model, q: np.ndarray, d: np.ndarray, push: np.ndarray) -> np.ndarray:
    """M d − Aᵀ μ, shape (rows, nv)."""
    nothing = {"gravity": False, "elastic": False, "loads": False}
    rows = constraint_jacobian(model, q)[:, model.n_motions :]
    return inverse_dynamics(model, q, np.zeros_like(d), d, **nothing) - np.einsum("nrj,nr->nj", rows, push)


def design_derivatives(
    function: Callable[..., Any], model: Model, *args: Any, parameters: Sequence[str], **kwargs: Any
) -> dict[str, Any]:
    """Partial derivatives of function(model, *args, **kwargs) with respect to design values, at fixed other arguments.

    Args:
        function: a function of a model that returns an array, a tuple of arrays or a result such as `Energy` or
            `InternalWrench`: `frame_pose`, `tendon_tensions`, `path_lengths`, `internal_wrench`, `energy`, or your own.
        model: one Model.
        args, kwargs: further arguments of the function, such as the state.
        parameters: paths of design values (`Robot.described_values`), numbers, arrays of numbers, poses or functions.
    Returns:
        Derivatives by path, in the form of the result: arrays of shape (*shape of the result, *shape of the value)
        [unit of the result per unit of the value]. The derivative with respect to a pose is that with respect to an
        increment (w; u) on its right, (6,). For a function it is the derivative with respect to a constant that is
        added to it.
    Raises:
        ModelError: a path leads to no number, the model is a batch, or the function returns no numbers; and errors of
        the function.
    Accuracy: 1e-9 of the largest terms of the result, by differences of fourth order in which only the tables of the
    model change. It is wrong if a tendon becomes slack or a contact begins within 2e-4 of a design value. Cost: four
    calls for each number; the first time four models are built for each.
    """
    checks.require(isinstance(model, Model), "model", "must be one Model", model)
    paths = tuple(parameters)
    designs = Designs(model, paths, 1)
    slopes = []
    for stencil in designs.stencils[0]:
        results = []
        for changed in stencil.models:
            with changed.temporary_buffers():
                results.append(function(changed, *args, **kwargs))
        slopes.append(_combined(results, list(stencil.weights)))
    out, at = {}, 0
    for path, shape in designs.shapes.items():
        count = int(np.prod(shape))
        out[path] = _stacked(slopes[at : at + count], shape)
        at += count
    return out


def _combined(results: list[Any], weights: list[float]) -> Any:
    """The weighted sum of results of the same form."""
    first = results[0]
    if isinstance(first, tuple):
        return tuple(_combined(list(parts), weights) for parts in zip(*results))
    if is_dataclass(first) and not isinstance(first, type):
        names = [item.name for item in fields(first) if item.init and _is_array(getattr(first, item.name))]
        found = {name: _combined([getattr(one, name) for one in results], weights) for name in names}
        if isinstance(first, Equilibrium):  # whose stability could not be computed from derivatives
            found["_known"] = first.unstable_count
        return replace(first, **found)
    try:
        parts = [weight * np.asarray(one, dtype=np.float64) for one, weight in zip(results, weights)]
    except (TypeError, ValueError):
        rule = "must return an array, a tuple of arrays or a result with arrays"
        raise ModelError(f"function: {rule} (got {type(first).__name__})") from None
    return np.sum(parts, axis=0)


def _is_array(value: Any) -> bool:
    return isinstance(value, float | np.floating) or (isinstance(value, np.ndarray) and value.dtype.kind == "f")


def _stacked(slopes: list[Any], shape: tuple[int, ...]) -> Any:
    """Derivatives with respect to the numbers of a value of a shape, which become the last axes."""
    first: Any = slopes[0]
    if isinstance(first, tuple):
        return tuple(_stacked(list(parts), shape) for parts in zip(*slopes))
    if is_dataclass(first) and not isinstance(first, type):
        names = [item.name for item in fields(first) if item.init and _is_array(getattr(first, item.name))]
        return replace(first, **{name: _stacked([getattr(one, name) for one in slopes], shape) for name in names})
    out = np.zeros((*np.shape(slopes[0]), *shape))
    for index, slope in zip(product(*map(range, shape)), slopes):
        out[(..., *index)] = slope
    return out
