"""Models in the steady motion whose shapes are sought."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from lissom.dynamics.constraints import run_constraints
from lissom.dynamics.steady_motion import in_motion, moving_velocity
from lissom.errors import AccuracyWarning, ModelError
from lissom.model.model import Model

_UNMOVED = 1e-6  # of the fastest joint: slower than that, loops stand


def moving_model(model: Model, q: np.ndarray, v: Any, t: float) -> Model:
    """The model in the motion of v, or of its prescribed motions; at rest where those would move loops."""
    moving = in_motion(model, moving_velocity(model, v, t))
    if moving.prescribed.steady is None or not model.n_rows or not len(q):
        return moving
    w, _ = run_constraints(model, q, np.broadcast_to(moving.prescribed.steady, (len(q), model.nv)))
    rate = np.abs(w.host["rate"]).max(axis=0)
    if rate.max(initial=0.0) <= _UNMOVED * np.abs(moving.prescribed.steady).max():
        return moving
    name = model.loops.names[int(np.searchsorted(model.loops.row_start, rate.argmax(), side="right")) - 1]
    if v is not None:
        raise ModelError(f"v: must not move loop {name!r} (it parts at {rate.max():.3g} rad/s or m/s)")
    warnings.warn(
        f"robot {model.name!r}: statics takes it at rest where its prescribed motions have it at t = {t:g}: they would "
        f"move loop {name!r}, so that it keeps no shape; v=np.zeros(model.nv) says that rest is meant",
        AccuracyWarning, stacklevel=3,
    )  # fmt: skip
    return model
