"""The tables of a Model on a Warp device."""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from lissom.lie.types import mat3, mat6, vec3, vec6
from lissom.model.model import Model
from lissom.robot.joints import MotionKind

EXP = wp.constant(wp.int32(MotionKind.EXP.value))
SPHERICAL = wp.constant(wp.int32(MotionKind.SPHERICAL.value))
FREE = wp.constant(wp.int32(MotionKind.FREE.value))
MAP = wp.constant(wp.int32(MotionKind.MAP.value))


vec7i = wp.types.vector(length=7, dtype=wp.int32)
vec6i = wp.types.vector(length=6, dtype=wp.int32)


@wp.struct
class NodeRow:
    """One node of Model; placement (R, p), inertia [[J, C], [Cᵀ, m]]."""

    R: mat3
    p: vec3
    h: wp.float64
    kappa: wp.float64
    xi1: vec6
    xi2: vec6
    J: mat3
    C: mat3
    m: mat3
    mass: wp.float64
    mass_c: vec3
    heavy: wp.float64
    heavy_c: vec3
    run_start: vec7i
    run_v: vec6i
    parent: wp.int32
    base: wp.int32
    kind: wp.int32
    has_quaternion: wp.int32
    map: wp.int32  # number in MapRows, −1 for other kinds
    v_start: wp.int32
    v_stop: wp.int32
    q_shift: wp.int32
    is_placed: wp.int32
    has_inertia: wp.int32
    is_centred: wp.int32  # the same mass in every direction, at the frame's origin


@wp.struct
class World:
    """What kernels read of the surroundings; the names and meanings are those of Surroundings."""

    ball_node: wp.array(dtype=wp.int32)
    ball_position: wp.array(dtype=vec3)
    ball_radius: wp.array(dtype=wp.float64)
    obstacle_kind: wp.array(dtype=wp.int32)
    obstacle_node: wp.array(dtype=wp.int32)
    obstacle_roams: wp.array(dtype=wp.int32)
    obstacle_R: wp.array(dtype=mat3)
    obstacle_p: wp.array(dtype=vec3)
    obstacle_size: wp.array(dtype=vec3)
    pair: wp.array2d(dtype=wp.int32)
    law: wp.array2d(dtype=wp.float64)
    anchor: wp.array2d(dtype=vec3)
    sticks: wp.int32
    margin: wp.float64
    has_current: wp.int32
    fluid_node: wp.array(dtype=wp.int32)
    fluid_added: wp.array(dtype=mat6)
    fluid_drag: wp.array(dtype=mat6)
    fluid_lift: wp.array(dtype=mat6)
    fluid_displaced: wp.array(dtype=mat6)
    tail_node: wp.array(dtype=wp.int32)
    tail_mass: wp.array(dtype=mat3)
    force_node: wp.array(dtype=wp.int32)
    force_which: wp.array(dtype=wp.int32)
    force_weight: wp.array(dtype=wp.float64)
    force_s: wp.array(dtype=wp.float64)


@wp.struct
class SpringRows:
    """What kernels read of the springs; the names and meanings are those of Springs."""

    node: wp.array2d(dtype=wp.int32)
    position: wp.array2d(dtype=vec3)
    law: wp.array2d(dtype=wp.float64)
    kind: wp.array(dtype=wp.int32)
    first: wp.array(dtype=wp.int32)
    pieces: wp.array(dtype=wp.int32)
    knot: wp.array(dtype=wp.float64)
    coefficient: wp.array2d(dtype=wp.float64)


@wp.struct
class TermRows:
    """Numbers of one term of what acts, row by row, which that term alone gives a meaning."""

    index: wp.array2d(dtype=wp.int32)
    number: wp.array2d(dtype=wp.float64)


@wp.struct
class MapRows:
    """What kernels read of mapped nodes; the names and meanings are those of Maps."""

    column_start: wp.array(dtype=wp.int32)
    pair_start: wp.array(dtype=wp.int32)
    triple_start: wp.array(dtype=wp.int32)
    piece_start: wp.array(dtype=wp.int32)
    knot: wp.array(dtype=wp.float64)
    coefficient: wp.array2d(dtype=vec6)


@wp.struct
class Tables:
    """What kernels read; the names and meanings are those of Model, but for `terms`, which those fill."""

    nv: wp.int32
    n_nodes: wp.int32
    n_dynamic: wp.int32
    node: wp.array(dtype=NodeRow)
    world: World
    springs: SpringRows
    terms: wp.array(dtype=TermRows)
    maps: MapRows
    base_position: wp.array(dtype=vec3)
    base_slide_start: wp.array(dtype=wp.int32)
    base_slide: wp.array(dtype=wp.int32)
    run_phi1: wp.array(dtype=wp.float64)
    run_phi2: wp.array(dtype=wp.float64)
    dof_q: wp.array(dtype=wp.int32)
    dof_rest: wp.array(dtype=wp.float64)
    motion_dof: wp.array(dtype=wp.int32)
    elastic_start: wp.array(dtype=wp.int32)
    elastic_column: wp.array(dtype=wp.int32)
    elastic_stiffness: wp.array(dtype=wp.float64)
    elastic_damping: wp.array(dtype=wp.float64)
    group_node: wp.array(dtype=wp.int32)
    group_R: wp.array(dtype=mat3)
    group_p: wp.array(dtype=vec3)
    group_stiffness: wp.array(dtype=mat6)
    load_node: wp.array(dtype=wp.int32)
    load_R: wp.array(dtype=mat3)
    load_p: wp.array(dtype=vec3)
    load_is_body: wp.array(dtype=wp.int32)
    loop_node: wp.array2d(dtype=wp.int32)
    loop_R: wp.array2d(dtype=mat3)
    loop_p: wp.array2d(dtype=vec3)
    loop_row_start: wp.array(dtype=wp.int32)
    loop_turns: wp.array(dtype=wp.int32)
    loop_axis: wp.array(dtype=vec3)
    loop_slide: wp.array(dtype=mat3)
    loop_pitch: wp.array(dtype=wp.float64)
    loop_hinge: wp.array2d(dtype=vec3)
    row_direction: wp.array(dtype=vec6)
    row_is_hinge: wp.array(dtype=wp.int32)
    point_run_start: wp.array(dtype=vec7i)
    point_run_v: wp.array(dtype=vec6i)
    point_phi: wp.array(dtype=wp.float64)
    point_xi: wp.array(dtype=vec6)
    point_q_shift: wp.array(dtype=wp.int32)
    point_path_start: wp.array(dtype=wp.int32)
    path_channel: wp.array(dtype=wp.int32)
    path_weight: wp.array(dtype=wp.float64)
    path_offset: wp.array(dtype=vec3)
    path_slope: wp.array(dtype=vec3)
    path_is_normal: wp.array(dtype=wp.int32)
    segment_channel: wp.array(dtype=wp.int32)
    segment_node: wp.array2d(dtype=wp.int32)
    segment_position: wp.array2d(dtype=vec3)
    spool_channel: wp.array(dtype=wp.int32)
    spool_stiffness: wp.array(dtype=wp.float64)
    spool_slack: wp.array(dtype=wp.float64)
    wrench_channel: wp.array(dtype=wp.int32)
    wrench_node: wp.array(dtype=wp.int32)
    wrench_unit: wp.array(dtype=vec6)
    wrench_position: wp.array(dtype=vec3)
    wrench_is_body: wp.array(dtype=wp.int32)
    channel_gain: wp.array2d(dtype=wp.float64)
    joint_gain: wp.array2d(dtype=wp.float64)


def device_tables(model: Model) -> Tables:
    """The model's tables on its device, made once."""
    if "tables" not in model.cache:
        model.cache["tables"] = _make(model)
    return model.cache["tables"]


def with_anchors(tables: Tables, anchor: Any) -> Tables:
    """The same tables with other anchors of contacts, by instance."""
    world, out = World(), Tables()
    for name in World.vars:
        setattr(world, name, anchor if name == "anchor" else getattr(tables.world, name))
    for name in Tables.vars:
        setattr(out, name, world if name == "world" else getattr(tables, name))
    return out


def _make(model: Model) -> Tables:
    t = Tables()
    t.nv, t.n_nodes, t.n_dynamic = model.nv, model.n_nodes, model.n_dynamic
    special = {
        "node": _node_rows(model),
        "group_R": model.group_rest[:, :3, :3],
        "group_p": model.group_rest[:, :3, 3],
        "load_R": model.load_placement[:, :3, :3],
        "load_p": model.load_placement[:, :3, 3],
        "loop_R": model.loop_placement[:, :, :3, :3],
        "loop_p": model.loop_placement[:, :, :3, 3],
    }
    t.world, t.springs, t.maps = _world(model), _springs(model), _maps(model)
    for name, variable in Tables.vars.items():
        if isinstance(variable.type, wp.array) and name != "terms":
            value = special[name] if name in special else getattr(model, name)
            setattr(t, name, wp.array(value, dtype=variable.type.dtype, device=model.device))
    return t


def _world(model: Model) -> World:
    x, world = model.surroundings, World()
    world.margin, world.has_current = x.margin, x.current is not None
    world.sticks = x.sticks
    special = {"obstacle_R": x.obstacle_placement[:, :3, :3], "obstacle_p": x.obstacle_placement[:, :3, 3]}
    special["anchor"] = x.anchors.reshape(1, -1, 3)
    for name, variable in World.vars.items():
        if isinstance(variable.type, wp.array):
            value = special[name] if name in special else getattr(x, name)
            setattr(world, name, wp.array(value, dtype=variable.type.dtype, device=model.device))
    return world


def _springs(model: Model) -> SpringRows:
    rows = SpringRows()
    for name, variable in SpringRows.vars.items():
        value = getattr(model.springs, name)
        setattr(rows, name, wp.array(value, dtype=variable.type.dtype, device=model.device))
    return rows


def _maps(model: Model) -> MapRows:
    rows = MapRows()
    for name, variable in MapRows.vars.items():
        value = getattr(model.maps, name)
        setattr(rows, name, wp.array(value, dtype=variable.type.dtype, device=model.device))
    return rows


def _node_rows(model: Model) -> np.ndarray:
    """The node_* arrays of a model as one structured array."""
    rows: Any = np.zeros(model.n_nodes, dtype=NodeRow.numpy_dtype())
    g, inertia = model.node_placement, model.node_inertia
    rows["R"], rows["p"] = g[:, :3, :3], g[:, :3, 3]
    rows["J"], rows["C"], rows["m"] = inertia[:, :3, :3], inertia[:, :3, 3:], inertia[:, 3:, 3:]
    rows["mass"], rows["mass_c"] = model.node_dry[:, 3], model.node_dry[:, :3]
    rows["heavy"], rows["heavy_c"] = model.node_heavy[:, 3], model.node_heavy[:, :3]
    rows["map"] = -1
    rows["map"][model.maps.node] = np.arange(len(model.maps))
    rows["is_placed"] = (g != np.eye(4)).any(axis=(1, 2))
    rows["has_inertia"] = inertia.any(axis=(1, 2))
    plain = inertia[:, 5, 5, None, None] * np.eye(3)
    rows["is_centred"] = (inertia[:, :3, 3:] == 0.0).all(axis=(1, 2)) & (inertia[:, 3:, 3:] == plain).all(axis=(1, 2))
    names = (
        "h",
        "kappa",
        "xi1",
        "xi2",
        "run_start",
        "run_v",
        "parent",
        "base",
        "kind",
        "has_quaternion",
        "v_start",
        "v_stop",
        "q_shift",
    )
    for name in names:
        rows[name] = getattr(model, f"node_{name}")
    return rows
