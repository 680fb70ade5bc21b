"""Scratch memory of the kernels: arrays of the sizes that a model and a batch ask for."""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

import warp as wp

from lissom.lie.types import vec3
from lissom.model.model import Model
from lissom.passes.scratch import (
    BY_BODY,
    BY_PAIR,
    ChannelState,
    DeformingState,
    MapState,
    Near,
    NodeState,
    PullState,
    ScratchStruct,
)


def scratch_memory(model: Model, batch: int, more_nodes: int = 0) -> ScratchStruct:
    """Scratch memory of a batch, with room for further nodes."""
    s = ScratchStruct()
    s.node = wp.zeros((batch, model.n_nodes + more_nodes), dtype=NodeState, device=model.device)
    s.origin = wp.zeros((batch, len(model.bases.position)), dtype=vec3, device=model.device)
    s.status = wp.zeros(batch, dtype=wp.int32, device=model.device)
    s.near, s.maps, s.deforming = _near(model, batch), _map_state(model, batch), _deforming_state(model, batch)
    s.pulls = _pull_state(model, batch)
    s.channel = ChannelState()
    row = model.nv if len(model.spools.channel) else 0
    for name, size in {"size": len(model.channels.names), "row": row, "moved_row": row}.items():
        setattr(s.channel, name, wp.zeros((batch, size), dtype=wp.float64, device=model.device))
    return s


def _near(model: Model, batch: int) -> Near:
    world, near = model.surroundings, Near()
    count = batch if model.has_surroundings else 0
    clusters = len(world.cluster_start) - 1
    sizes = {"pair": world.capacity, "seen": len(world.ball_node), "N": model.n_dynamic}
    sizes |= {"centre": clusters, "reach": clusters}
    shapes = {name: (count, size) for name, size in sizes.items()}
    ties = len(model.springs) + len(model.segments.channel)
    tied = batch if count or ties else 0
    shapes |= dict.fromkeys(("a", "b", "K", "D", "bar", "is_damped"), (tied, world.capacity + ties))
    for name, shape in shapes.items():
        setattr(near, name, wp.zeros(shape, dtype=Near.vars[name].type.dtype, device=model.device))
    near.count = wp.full(count, -1, dtype=wp.int32, device=model.device)
    near.touching = wp.zeros(tied, dtype=wp.int32, device=model.device)
    return near


def _map_state(model: Model, batch: int) -> MapState:
    maps, state = model.maps, MapState()
    sizes = {"R": len(maps), "p": len(maps), "S": maps.column_start[-1]}
    sizes |= {"S_q": maps.pair_start[-1], "S_qq": maps.triple_start[-1]}
    for name, size in sizes.items():
        setattr(state, name, wp.zeros((batch, int(size)), dtype=MapState.vars[name].type.dtype, device=model.device))
    return state


def _deforming_state(model: Model, batch: int) -> DeformingState:
    """Room for the integrals; what kernels make of constants has none by pair."""
    bodies, state = model.deforming, DeformingState()
    called = bodies.calls_python
    for name, variable in DeformingState.vars.items():
        size = len(bodies) if name in BY_BODY else bodies.column_start[-1]
        if name in BY_PAIR:
            size = bodies.pair_start[-1] * called
        setattr(state, name, wp.zeros((batch, int(size)), dtype=variable.type.dtype, device=model.device))
    return state


def _pull_state(model: Model, batch: int) -> PullState:
    pulls, state = model.pulls, PullState()
    columns = int(pulls.column_start[-1])
    sizes = {"work": len(pulls), "wrench": len(pulls), "B": columns, "wrench_q": columns}
    sizes |= {"B_q": int(pulls.pair_start[-1])}
    sizes |= {"answer": int(model.deforming.column_start[-1]) if pulls.presses.any() else 0}
    for name, size in sizes.items():
        setattr(state, name, wp.zeros((batch, size), dtype=PullState.vars[name].type.dtype, device=model.device))
    return state
