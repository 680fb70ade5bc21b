"""Motions of a batch in groups, as many as there is room for.

Where nothing of Python's is asked, groups go their way at once, each on one core. Otherwise one follows the other, and
their launches are split over the cores.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from threading import Event
from typing import Any, final

import numpy as np

from lissom.dynamics.actuation import warn_of_pushing
from lissom.errors import ConvergenceError, of_instance
from lissom.integration.batches import Batch, ManyMotions, MotionFailed
from lissom.integration.fused_runs import bytes_of_instance
from lissom.integration.motions import motion_arrays
from lissom.integration.paced_batches import ManyPacedMotions
from lissom.integration.trajectory import Statistics, Trajectory
from lissom.launch.cores import at_once, cores
from lissom.launch.progress import progress_bar
from lissom.model.model import Model
from lissom.model.plausibility import warn_of_motions

_MOST_BYTES = 2**27  # of buffers of motions that run together
_LEAST_GROUP = 64  # motions that run together whatever they need
_LEAST_AT_ONCE = 16  # motions of a group that has a core: enough to hide what Python does for it
_ROUNDS = 2  # of groups, which do not take the same time


@final
class _Stopped(Exception):
    """Another group has failed, or the call was interrupted."""


def motions_together(batch: Batch, method: str, dt: float | None, unasked: int, progress: bool) -> list[Trajectory]:
    """The motions of a batch, group by group.

    Args:
        batch: what they are. method: its name. dt: their steps [s]; None: as long as their errors allow.
        unasked: times at the start that are left out. progress: show a bar.
    Raises:
        ConvergenceError: the steps of a motion became too short; it carries what there is of it.
        KeyboardInterrupt: Ctrl-C; its `partial` are the motions that have begun, each as far as it came.
    """
    model, count, stop = batch.model, len(batch.q), Event()
    kept: dict[int, Trajectory] = {}
    in_order = not batch.inputs.are_known or len(model.models) > 0
    groups = groups_of(model, count, 1 if in_order or count < cores() * _LEAST_AT_ONCE else cores())
    reached = np.zeros(len(groups))
    with progress_bar(progress, batch.duration) as advance:

        def tell(k: int, t: float) -> None:
            if stop.is_set():
                raise _Stopped
            reached[k] = t
            advance(float(np.mean(reached)))

        def run(k: int) -> Trajectory:
            own = batch.some(groups[k])
            many = ManyPacedMotions(own) if dt is None else ManyMotions(own, dt)
            keep = partial(kept.__setitem__, k)
            return _run(own.model, method, many, (groups[k].start, count), unasked, partial(tell, k), keep)

        calls = [partial(run, k) for k in range(len(groups))]
        try:
            motions = [call() for call in calls] if in_order else at_once(calls, stop)
        except KeyboardInterrupt as error:
            if begun := tuple(one for k in sorted(kept) for one in _singles(kept[k])):
                error.partial = begun  # type: ignore[attr-defined]
            raise
    for motion, some in zip(motions, groups):
        warn_of_pushing(model.some(some, count), motion.u)
        warn_of_motions(model.some(some, count), motion.q, motion.t)
    return motions


def groups_of(model: Model, count: int, at_once: int) -> list[slice]:
    """Motions that run together, in as many groups as there is room for so many of them at once; the first are the
    largest, so that buffers made for them serve the others."""
    room = max(_LEAST_GROUP, _MOST_BYTES // bytes_of_instance(model))
    rounds = max(1, -(-count // room))
    if at_once > 1:
        rounds = max(rounds, min(_ROUNDS, count // (at_once * _LEAST_AT_ONCE)))
    sizes = [len(part) for part in np.array_split(np.arange(count), min(rounds * at_once, count))]
    return [slice(stop - size, stop) for stop, size in zip(np.cumsum(sizes).tolist(), sizes)]


def _run(
    model: Model,
    method: str,
    motions: ManyMotions | ManyPacedMotions,
    place: tuple[int, int],
    unasked: int,
    advance: Callable[[float], None],
    keep: Callable[[Trajectory], None],
) -> Trajectory:
    """Run motions together to their end, or to the failure of one, which then carries what there is of it; `place` is
    that of the first in the batch, and how many that has. `keep` is given what there is at the end, and where they are
    stopped."""
    began = time.perf_counter()

    def so_far(which: slice, reached: int, shape: tuple[int, ...]) -> Trajectory:
        t = motions.times[:reached]
        arrays = motion_arrays(model, t, motions.rows[which, :reached], motions.shown[which, :reached])
        cost = Statistics(method, *motions.counted(which), time.perf_counter() - began)
        asked: dict[str, Any] = {
            name: x[:, unasked:].reshape(*shape, reached - unasked, x.shape[-1]) for name, x in arrays.items()
        }
        anchors = motions.anchors[which].reshape(*shape, *model.surroundings.anchors.shape)
        return Trajectory(t[unasked:], **asked, statistics=cost, anchors=anchors)

    try:
        motions.run(advance)
    except MotionFailed as error:
        i = error.motion
        with of_instance(place[0] + i, place[1]):
            raise ConvergenceError(str(error), so_far(slice(i, i + 1), error.reached, ())) from error
    except (_Stopped, KeyboardInterrupt):
        keep(so_far(slice(None), motions.reached, (motions.n,)))
        raise
    found = so_far(slice(None), motions.reached, (motions.n,))
    keep(found)
    return found


def _singles(motions: Trajectory) -> list[Trajectory]:
    """The motions of a batch (n,), without those that have reached no time that was asked for."""
    names = ("q", "v", "a", "u", "multipliers", "z", "anchors")
    rows = zip(*(getattr(motions, name) for name in names)) if len(motions.t) else ()
    return [replace(motions, **dict(zip(names, row))) for row in rows]
