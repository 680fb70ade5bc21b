"""Loads, currents, the time itself and prescribed motions, as polynomials of time and as programs of expressions.

In the order in which kernels read them: of each row of `load` six numbers, then positions, velocities and accelerations
of the prescribed coordinates, then inputs. Programs put their numbers in place of the polynomials' zeros.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from lissom.model.model import Model
from lissom.robot.expression_programs import Operation, Steps, programs_of
from lissom.robot.functions import constant, is_compiled, polynomial_of, stacked_polynomials

if TYPE_CHECKING:
    from scipy.interpolate import PPoly

Laws = tuple[np.ndarray, np.ndarray]  # as `stacked_polynomials` returns them
_PUTS = (Operation.PUT_VALUE, Operation.PUT_RATE, Operation.PUT_CHANGE)


class _Law(NamedTuple):
    """Some numbers: polynomials, or which derivative of what programs leave on the stack; neither where they are
    something else."""

    size: int
    polynomial: PPoly | None
    programs: list[Steps] | None = None
    order: int = 0


def laws_of_time(model: Model) -> Laws | None:
    """The table for kernels; None where something is neither a polynomial of time nor an expression, or is a Python
    function of the state."""
    return model.cached(("laws of time",), lambda: _laws(model))[0]


def steps_of_laws(model: Model) -> Steps:
    """The programs that go with the table; none where there is no table."""
    return model.cached(("laws of time",), lambda: _laws(model))[1]


def constant_laws(model: Model) -> Laws:
    """A table of zeros, for what is given otherwise."""
    return stacked_polynomials([constant(np.zeros(n_laws(model)))])


def n_laws(model: Model) -> int:
    """How many numbers of loads and motions kernels read."""
    return 6 * model.n_load_rows + 3 * model.n_motions


@final
class _Puts:
    """Programs and where they put what they leave, those that are the same once."""

    def __init__(self) -> None:
        self.places: dict[tuple[Any, ...], Steps] = {}

    def add(self, programs: list[Steps], first: int, order: int = 0) -> None:
        """What programs leave, or a derivative of it, goes to places from the first on."""
        for k, steps in enumerate(programs):
            self.places.setdefault(tuple(steps), []).append((_PUTS[order], first + k))

    @property
    def steps(self) -> Steps:
        """All of them as one program."""
        clear = (Operation.CLEAR, 0.0)
        return [step for steps, places in self.places.items() for step in (*steps, *places, clear)]


def steps_of_inputs(model: Model, programs: list[Steps]) -> Steps:
    """The program that puts expressions into the inputs."""
    puts = _Puts()
    puts.add(programs, n_laws(model))
    return puts.steps


def _laws(model: Model) -> tuple[Laws | None, Steps]:
    if model.calls_python or model.prescribed.n_locked:
        return None, []
    parts = [*_loads(model), *_surroundings(model), *_motions(model)]
    if any(part.polynomial is None and part.programs is None for part in parts):
        return None, []
    known, puts, first = [], _Puts(), 0
    for part in parts:
        known.append(constant(np.zeros(part.size)) if part.polynomial is None else part.polynomial)
        if part.polynomial is None:
            puts.add(part.programs or [], first, part.order)
        first += part.size
    return stacked_polynomials(known), puts.steps


def _loads(model: Model) -> Iterator[_Law]:
    """Moment and force of each point load."""
    for load in model.description.loads.values():
        for value in (load.moment, load.force):
            yield _Law(3, polynomial_of(value, 3), programs_of(value, 3))


def _surroundings(model: Model) -> Iterator[_Law]:
    """The current with its rate, and the time, where kernels read them."""
    if not model.has_surroundings:
        return
    from scipy.interpolate import PPoly

    fluid = model.description.fluid
    current: Any = None if fluid is None or is_compiled(fluid.current) else fluid.current
    flow, programs = polynomial_of(current, 3), programs_of(current, 3)
    yield _Law(3, flow, programs)
    yield _Law(3, None if flow is None else flow.derivative(), programs, 1)
    yield _Law(1, PPoly.construct_fast(np.array([[[1.0]], [[0.0]]]), np.array([0.0, 1.0])))
    yield _Law(5, constant(np.zeros(5)))


def _motions(model: Model) -> Iterator[_Law]:
    """Positions, velocities and accelerations."""
    links, joints = model.links.names, model.of_row(0, 1).links.joint
    made: list[tuple[_Law, ...]] = []
    for motion in model.description.motions.values():
        size = joints[links.index(motion.link)].nv
        pairs = zip(motion.polynomials(size), motion.programs(size))
        made.append(tuple(_Law(size, polynomial, *(programs or (None, 0))) for polynomial, programs in pairs))
    for order in range(3):
        yield from (motion[order] for motion in made)
