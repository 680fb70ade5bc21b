"""Loads, currents, the time itself and prescribed motions as polynomials of time.

In the order in which kernels read them: of each row of `load` six numbers, then positions, velocities and accelerations
of the prescribed coordinates.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from lissom.model.model import Model
from lissom.robot.forces import is_compiled
from lissom.robot.polynomials import constant, polynomial_of, together

if TYPE_CHECKING:
    from scipy.interpolate import PPoly

Laws = tuple[np.ndarray, np.ndarray]  # as `together` gives them


def laws_of_time(model: Model) -> Laws | None:
    """The table for kernels; None where something is no polynomial of time, or is a Python function of the state."""
    return model.cached(("laws of time",), lambda: (_laws(model),))[0]


def constant_laws(model: Model) -> Laws:
    """A table of zeros, for what is given otherwise."""
    return together([constant(np.zeros(6 * model.n_load_rows + 3 * model.n_motions))])


def _laws(model: Model) -> Laws | None:
    if model.calls_python or model.prescribed.n_held:
        return None
    parts = [*_loads(model), *_surroundings(model), *_motions(model)]
    return None if any(part is None for part in parts) else together([part for part in parts if part is not None])


def _loads(model: Model) -> Iterator[PPoly | None]:
    """Moment and force of each point load."""
    for load in model.description.loads.values():
        yield polynomial_of(load.moment, 3)
        yield polynomial_of(load.force, 3)


def _surroundings(model: Model) -> Iterator[PPoly | None]:
    """The current with its rate, and the time, where kernels read them."""
    if not model.meets_anything:
        return
    from scipy.interpolate import PPoly

    fluid = model.description.fluid
    current: Any = None if fluid is None or is_compiled(fluid.current) else fluid.current
    flow = polynomial_of(current, 3)
    yield flow
    yield None if flow is None else flow.derivative()
    yield PPoly.construct_fast(np.array([[[1.0]], [[0.0]]]), np.array([0.0, 1.0]))
    yield constant(np.zeros(5))


def _motions(model: Model) -> Iterator[PPoly | None]:
    """Positions, velocities and accelerations."""
    links, joints = model.links.names, model.links.joint
    made: list[Any] = []
    for motion in model.description.motions.values():
        made.append(motion.polynomials(joints[links.index(motion.link)].nv))
    for order in range(3):
        yield from (motion[order] for motion in made)
