"""Derivatives of the residual by design values, from differences of the tables that `build` makes of them.

    r_p ≈ (8 (r(p + h) − r(p − h)) − r(p + 2h) + r(p − 2h)) / 12 h                                        (1)

at the same q, v, a, u and λ. The error is h⁴/30 ∂⁵r/∂p⁵ plus rounding over h: with h = p/10⁴ it is about 1e-12 of the
terms of r. Contacts and elastic tendons have kinks and are left out of the differences. contact_designs adds the
derivatives of contacts. If a rule of the description allows values on one side only,

    r_p ≈ ± (−25 r(p) + 48 r(p ± h) − 36 r(p ± 2h) + 16 r(p ± 3h) − 3 r(p ± 4h)) / 12 h                   (2)

A slack tendon has no derivative. For a taut tendon b, k and the stretch of tendons (7) are differenced:

    r_p = −b' T − b T',   T' = k' (L − L₀ + u) + k (L − L₀ + u)'                                          (3)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, final

import numpy as np

from lissom.dynamics.actuation import run_actuation
from lissom.dynamics.forward_dynamics import run_residual
from lissom.dynamics.inverse_dynamics_derivatives import derivative_workspace, run_residual_derivatives
from lissom.errors import ModelError, ShapeError
from lissom.forces.tendons import SLACK_TOLERANCE
from lissom.gradients.contact_designs import anchor_design_slopes, contact_slopes
from lissom.gradients.stage_systems import StageStates
from lissom.gradients.steps import Path
from lissom.launch.workspace import row_slices
from lissom.lie.arrays import se3_exp
from lissom.model.model import Model
from lissom.model.model_batch import ModelBatch
from lissom.robot.paths import number_at
from lissom.robot.sampled_shapes import GRIDDED

SHARE = 1e-4  # step of the differences over a value, or over the largest number of its array
CENTRAL = ((-2.0, -1.0, 1.0, 2.0), (1.0 / 12.0, -8.0 / 12.0, 8.0 / 12.0, -1.0 / 12.0))
_ONE_SIDED = ((0.0, 1.0, 2.0, 3.0, 4.0), (-25.0 / 12.0, 4.0, -3.0, 4.0 / 3.0, -0.25))
_ROWS = 256  # states of all models in one launch
_MODELS_AT_ONCE = 64  # in one batch


@final
@dataclass(frozen=True)
class Stencil:
    """The difference stencil of one number of the description.

    Fields:
        models: with changed values of the number. steps: their changes. weights: of the models in the derivative.
    """

    models: tuple[Model, ...]
    weights: tuple[float, ...]
    steps: tuple[float, ...]


@final
class Designs:
    """Design values of a robot, or of each model of a batch, as one array of `count` numbers.

    Raises:
        ModelError: a path leads to no number, array of numbers or pose.
    """

    def __init__(self, model: Model, paths: tuple[str, ...], count: int) -> None:
        self.model, self.paths, self.rows = model, paths, count
        first = model.of_row(0, 1)
        self.shapes = {path: _shape(first, path) for path in paths}
        self.count = sum(int(np.prod(shape)) for shape in self.shapes.values())
        _check_shapes(first, paths)
        self.stencils = [_stencils(one, paths) for one in (model.models or (model,))]

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

    def slopes(self, states: StageStates) -> np.ndarray:
        """(∂r/∂p; ∂e/∂p) at states, shape (rows, count, nv + n_rows)."""
        count = len(states.t)
        force = states.force if states.force is not None else np.zeros((count, self.model.n_rows))
        rows = (states.q, states.v, states.a, states.u, states.t, force)
        return self._residual_slopes(_residuals, rows, self.model.nv + self.model.n_rows, states.anchors)

    def start_slopes(self, path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Derivatives by p of (r; A a + Ȧ v), of e and of A v at the initial states, shapes (n, count, ...)."""
        nv, m, first = self.model.nv, self.model.n_rows, path.state(0)
        rows = (first["q"], first["v"], first["a"], path.u[:, 0], np.zeros(len(path.q)), first["force"])
        out = self._residual_slopes(_start_residuals, rows, nv + 3 * m, first["anchors"])
        return out[..., : nv + m], out[..., nv + m : nv + 2 * m], out[..., nv + 2 * m :]

    def anchor_slopes(self, anchors: np.ndarray, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Derivatives of the anchors at the ends of steps, (rows, count, 6 n_pairs); zero for pairs without an anchor.

        Args:
            anchors: before the ends of the steps, (rows, n_pairs, 6). q, v: states at the ends.
        """
        out = np.zeros((len(q), self.count, anchors[:1].size))
        for model, own in self._models(len(q)) if out.size else ():
            batches = _stencil_batches(model, self.paths)
            out[own] = anchor_design_slopes(model, batches, self.count, q[own], v[own], anchors[own])
        return out

    def _models(self, count: int) -> Iterator[tuple[Model, slice]]:
        """The models, and the slice of `count` states that belongs to each."""
        models = self.model.models or (self.model,)
        each = count // len(models)
        return ((model, slice(k * each, (k + 1) * each)) for k, model in enumerate(models))

    def _residual_slopes(
        self, function: Callable[..., np.ndarray], rows: tuple[np.ndarray, ...], size: int, anchors: np.ndarray | None
    ) -> np.ndarray:
        """Derivatives of function(model, *rows), whose first numbers are r, shape (rows, count, size)."""
        nv, (q, v, _, u, *_) = self.model.nv, rows
        out = self._differences(function, rows, size)
        for model, own in self._models(len(q)) if out.size else ():
            batches = _stencil_batches(model, self.paths)
            own_anchors = None if anchors is None else anchors[own]
            out[own, :, :nv] += contact_slopes(model, batches, self.count, q[own], v[own], own_anchors)
        if out.size and len(self.model.spools.channel):
            out[..., :nv] += self._tendon_slopes(q, u)
        out[..., self.model.prescribed.dof] = 0.0
        return out

    def _tendon_slopes(self, q: np.ndarray, u: np.ndarray) -> np.ndarray:
        """(3) of all elastic tendons, shape (rows, count, nv)."""
        n, n_tendons, nv = len(q), len(self.model.spools.channel), self.model.nv
        slack, k = (self.model.by_row(lambda one, x=x: getattr(one.spools, x), n) for x in ("slack", "stiffness"))
        b, stretch = _split_pulls(_pulls(self.model, q, u), n_tendons, nv)
        b_p, stretch_p = _split_pulls(self._differences(_pulls, (q, u), n_tendons * (nv + 1)), n_tendons, nv)
        k_p = np.zeros((n, self.count, n_tendons))
        for model, own in self._models(n):
            for _, weights, models in _stencil_batches(model, self.paths):
                k_p[own] += weights @ [one.spools.stiffness for one in models]
        k, stretch, b = np.broadcast_to(k, (n, n_tendons))[:, None], stretch[:, None], b[:, None]
        taut = stretch > -SLACK_TOLERANCE * np.broadcast_to(slack, (n, n_tendons))[:, None]
        by_b = np.einsum("rpe,rpej->rpj", taut * k * stretch, b_p)
        return -by_b - np.einsum("rpe,rpej->rpj", taut * (k_p * stretch + k * stretch_p), b)

    def _differences(self, function: Callable[..., np.ndarray], rows: tuple[np.ndarray, ...], size: int) -> np.ndarray:
        """(1) or (2) of function(model, *rows), shape (rows, count, size)."""
        out = np.zeros((len(rows[0]), self.count, size))
        for model, own in self._models(len(rows[0])) if out.size else ():
            arguments = [x[own] for x in rows]
            states = len(arguments[0])
            for common, weights, _ in _stencil_batches(model, self.paths):
                n_models, found = weights.shape[1], np.zeros((states, self.count, size))
                with common.temporary_buffers():
                    for part in row_slices(states, max(1, _ROWS // n_models)):
                        values = function(common, *(np.concatenate([x[part]] * n_models) for x in arguments))
                        found[part] = np.einsum("pm,mrj->rpj", weights, values.reshape(n_models, -1, size))
                out[own] += found
        return out


def _check_shapes(model: Model, paths: tuple[str, ...]) -> None:
    """Raise ModelError if a path leads into a shape on a grid."""
    for path in paths:
        name, _, field = path.partition(".")
        contact = model.description.contacts.get(name)
        if contact is not None and field.startswith("shape.") and isinstance(contact.shape, GRIDDED):
            raise ModelError(
                f"parameters > {path}: must not lead into a {type(contact.shape).__name__}, which is sampled on a grid "
                "and has no derivatives by its sizes; its placement has (got a shape on a grid)"
            )


def _stencil_batches(model: Model, paths: tuple[str, ...]) -> list[tuple[Model, np.ndarray, tuple[Model, ...]]]:
    """The models of the stencils of all numbers, in batches.

    Returns:
        For each batch its common model, without forces of contacts and elastic tendons; the weights of its models in
        the derivative by each number, (count, models); and the models themselves.
    """

    def make() -> list[tuple[Model, np.ndarray, tuple[Model, ...]]]:
        stencils = _stencils(model, paths)
        points = [(k, *point) for k, stencil in enumerate(stencils) for point in zip(stencil.models, stencil.weights)]
        most = 1 if model.calls_python or model.fills_tables_before_launch else _MODELS_AT_ONCE
        out = []
        for batch in (points[first : first + most] for first in range(0, len(points), most)):
            weights, models = np.zeros((len(stencils), len(batch))), tuple(changed for _, changed, _ in batch)
            weights[[k for k, _, _ in batch], range(len(batch))] = [weight for _, _, weight in batch]
            smooth = [_without_kinks(changed) for changed in models]
            try:
                out.append((ModelBatch(smooth).common if len(batch) > 1 else smooth[0], weights, models))
            except ModelError:  # their structures differ, for instance if a number is zero
                out += [(changed, weights[:, m : m + 1], models[m : m + 1]) for m, changed in enumerate(smooth)]
        return out

    return model.cached(("stencils of design values", paths), make)


def _without_kinks(model: Model) -> Model:
    """The model without forces of contacts and elastic tendons."""
    world, spools = model.contacts, model.spools
    if not len(world.pair) and not len(spools.channel):
        return model
    law = world.law.copy()
    law[:, 0] = 0.0
    none = replace(spools, stiffness=np.zeros_like(spools.stiffness))
    return replace(model, contacts=replace(world, law=law), spools=none, cache={})


def _pulls(model: Model, q: np.ndarray, u: np.ndarray) -> np.ndarray:
    """b and the stretch of the n elastic tendons at states, shape (rows, n (nv + 1))."""
    workspace, lead = run_actuation(model, q)
    c, names = model.spools.channel, len(model.channels.names)
    b, length = workspace.result("B", lead, names, model.nv)[:, c], workspace.result("length", lead, names)[:, c]
    gain = model.by_row(lambda one: one.channels.gain[c], len(q))
    stretch = length - model.by_row(lambda one: one.spools.slack, len(q)) + (gain @ u[..., None])[..., 0]
    return np.concatenate([b.reshape(len(q), -1), stretch], axis=1)


def _split_pulls(rows: np.ndarray, n_tendons: int, nv: int) -> tuple[np.ndarray, np.ndarray]:
    """b (..., n, nv) and the stretch (..., n) from rows of _pulls."""
    b, stretch = np.split(rows, [n_tendons * nv], axis=-1)
    return b.reshape(*b.shape[:-1], n_tendons, nv), stretch


def _residuals(
    model: Model, q: np.ndarray, v: np.ndarray, a: np.ndarray, u: np.ndarray, t: np.ndarray, force: np.ndarray
) -> np.ndarray:
    """(r; e) at states, shape (rows, nv + n_rows)."""
    workspace = run_residual(model, q, v, a, u, t, 1.0, force)
    workspace.raise_for_status()
    return np.concatenate([workspace.host["tau"], workspace.host["gap"]], axis=1)


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


def _value(model: Model, path: str) -> tuple[Any, np.ndarray]:
    """The value at a path, and the same as an array. The array of a function is its value at 0."""
    value = number_at(model.description, path)
    try:
        array = np.asarray(value(0.0) if callable(value) else value, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.full((), np.nan)
    if not np.isfinite(array).all() or isinstance(value, bool):
        rule = "a design value must be a number, an array of numbers, a pose, or a function that returns one of these"
        raise ModelError(f"robot {model.name!r} > {path}: {rule} (got {value!r})")
    return value, array


def _is_pose(array: np.ndarray) -> bool:
    return array.shape == (4, 4) and bool(np.array_equal(array[3], (0.0, 0.0, 0.0, 1.0)))


def _shape(model: Model, path: str) -> tuple[int, ...]:
    array = _value(model, path)[1]
    return (6,) if _is_pose(array) else array.shape


def _stencils(model: Model, paths: tuple[str, ...]) -> list[Stencil]:
    """The stencils of all numbers of all paths."""
    out = []
    for path in paths:
        for index in product(*map(range, _shape(model, path))):
            out.append(model.cached(("design value", path, index), lambda path=path, index=index:
                                    _stencil(model, path, index)))  # fmt: skip
    return out


def _stencil(model: Model, path: str, index: tuple[int, ...]) -> Stencil:
    """The stencil of one number, central or one-sided."""
    value, array = _value(model, path)
    size = 0.3 if _is_pose(array) else float(abs(array[index])) or float(np.abs(array).max(initial=0.0)) or 0.1
    tried = []
    for side, (places, weights) in ((1.0, CENTRAL), (1.0, _ONE_SIDED), (-1.0, _ONE_SIDED)):
        h = side * SHARE * size
        try:
            batch = model.batch(path, [_changed(value, array, index, c * h) for c in places])
        except ModelError as error:
            tried.append(error)
            continue
        steps = tuple(c * h for c in places)
        return Stencil(tuple(batch), tuple(weight / h for weight in weights), steps)
    raise tried[0]


def changed_model(model: Model, path: str, change: np.ndarray) -> tuple[Model, float]:
    """The model with a changed design value, and the size of that value. change: in the shape of the value."""
    value, array = _value(model, path)
    size = 0.3 if _is_pose(array) else float(np.abs(array).max(initial=0.0)) or 0.1
    for index in np.ndindex(*change.shape):
        if change[index] != 0.0:
            value = _changed(value, _value_of(value), index, float(change[index]))
    return model.batch(path, [value])[0], size


def _value_of(value: Any) -> np.ndarray:
    """A value as an array. That of a function is its value at 0."""
    return np.asarray(value(0.0) if callable(value) else value, dtype=np.float64)


def _changed(value: Any, array: np.ndarray, index: tuple[int, ...], by: float) -> Any:
    """The value with one number, or one direction of a pose, changed by `by`. Its type stays the same."""
    if callable(value):
        return _changed_function(value, array, index, by)
    if _is_pose(array):
        return array @ se3_exp(by * np.eye(6)[index[0]])
    out = array.copy()
    out[index] += by
    if array.ndim == 0:
        return float(out)
    return type(value)(out.tolist()) if isinstance(value, tuple | list) else out


def _changed_function(function: Any, array: np.ndarray, index: tuple[int, ...], by: float) -> Any:
    """A function whose values are changed by the same constant everywhere."""
    if _is_pose(array):
        step = se3_exp(by * np.eye(6)[index[0]])
        return lambda s: np.asarray(function(s), dtype=np.float64) @ step
    step = np.zeros(array.shape)
    step[index] = by
    return lambda s: np.asarray(function(s), dtype=np.float64) + step
