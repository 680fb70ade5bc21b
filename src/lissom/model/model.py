"""Model: the frozen flat tables of a robot."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any, final

import numpy as np

from lissom.errors import ShapeError
from lissom.model.maps import Maps
from lissom.model.nodes import RodTable
from lissom.model.springs import Springs
from lissom.model.surroundings import Surroundings
from lissom.robot.robot import Robot

_KEPT = 128
_MOST_BYTES = 2**29


@final
@dataclass(frozen=True, eq=False, repr=False)
class Model:
    """A built robot: flat, read-only tables that every function takes. Made by Robot.build().

    Fields (index sets first; *_start arrays end with a sentinel; SI units, 6-vectors angular first):
        name; gravity (3,) [m/s²]; nq, nv, nu: sizes of q, v, u; n_dynamic: nodes that carry or hold up anything, the
        rest are massless frames.
        link_*: names, index of the parent (-1 world), start in q and v, mass [kg], frame at the tip (node, placement).
        frame_*: named frames: (node, placement 4x4).
        base_*: base frames of the sweeps: position of the root each stands at (n, 3) [m], and base_slide, the nodes of
        that root's joint where it can slide, from base_slide_start on.
        node_*: parent, base frame, kind, whether it has a quaternion, link, s, placement (n, 4, 4), h [m], kappa [m²],
        reference strains, range in v, shift from v to q, inertia (n, 6, 6) with that of the fluid around, dry: first
        moment and mass of its own
        (n, 4), heavy: less what the fluid carries, and the runs of its strain basis: for each of the six strains, where
        its values start and the index in v of the first.
        run_*: values of the strain bases at the two points of a node, strain by strain.
        dof_*: index in q of a velocity coordinate (-1 for spherical and free joints), where its spring is slack,
        and its natural size: 1/length for a rod's curvatures and twist, 1 otherwise.
        elastic_*: K and D in compressed rows.
        group_*: springs of spherical and free joints: node, rest pose, stiffness (6, 6).
        load_*: node, frame in the node (4, 4), whether in its axes, of point loads, then of users' Python forces;
        load_wrench: functions of t of the former.
        surroundings: contacts, the fluid and users' forces. springs: those between two points. maps: joints
        whose pose is any function of q.
        motion_*: names and velocity coordinates of prescribed motions; functions of t for position, velocity and
        acceleration. The last n_held of them have no motion, but are held for a steady one; steady: velocity
        (nv,) of the motion about which equilibria are sought, None at rest.
        loop_*: names, the two nodes and frames in them (a, then b), range of its rows; turns, axis, slide, pitch and
        hinge are those of robot.loops.Closure. row_direction (n, 6) Φ⊥ᵀ and row_is_hinge, row by row.
        point_*, path_*: strain points of tendons and chambers, and what runs through each.
        segment_*: straight pieces of tendons between two points (node, position).
        spool_*: elastic tendons: channel, stiffness [N/m] and slack length [m].
        wrench_*: controlled wrenches: channel, node, wrench per unit (6,) and point (3,) in the node, whether it turns
        with the node.
        channel_actuator: what describes each channel. channel_gain (n_channels, nu): tensions, or lengths pulled in of
        elastic tendons, chamber pressures and sizes of wrenches from u, channel_units what they are; joint_gain
        (nv, nu): joint forces from u; custom_actuators: (function, (size, nu) gain) pairs. description: the robot as it
        was when it was built.
    """

    name: str
    gravity: np.ndarray
    nq: int
    nv: int
    nu: int
    n_dynamic: int
    link_names: tuple[str, ...]
    link_parent: np.ndarray
    link_q_start: np.ndarray
    link_v_start: np.ndarray
    link_mass: np.ndarray
    link_frame: dict[str, tuple[int, np.ndarray]]
    frames: dict[str, tuple[int, np.ndarray]]
    rods: dict[str, RodTable]
    link_joint: tuple[Any, ...]
    link_body: tuple[Any, ...]
    q_neutral: np.ndarray
    dof_q: np.ndarray
    dof_rest: np.ndarray
    dof_scale: np.ndarray
    base_position: np.ndarray
    base_slide_start: np.ndarray
    base_slide: np.ndarray
    node_parent: np.ndarray
    node_base: np.ndarray
    node_kind: np.ndarray
    node_has_quaternion: np.ndarray
    node_link: np.ndarray
    node_s: np.ndarray
    node_placement: np.ndarray
    node_h: np.ndarray
    node_kappa: np.ndarray
    node_xi1: np.ndarray
    node_xi2: np.ndarray
    node_v_start: np.ndarray
    node_v_stop: np.ndarray
    node_q_shift: np.ndarray
    node_inertia: np.ndarray
    node_dry: np.ndarray
    node_heavy: np.ndarray
    node_run_start: np.ndarray
    node_run_v: np.ndarray
    run_phi1: np.ndarray
    run_phi2: np.ndarray
    stiffness: np.ndarray
    damping: np.ndarray
    elastic_start: np.ndarray
    elastic_column: np.ndarray
    elastic_stiffness: np.ndarray
    elastic_damping: np.ndarray
    group_node: np.ndarray
    group_rest: np.ndarray
    group_stiffness: np.ndarray
    load_node: np.ndarray
    load_placement: np.ndarray
    load_is_body: np.ndarray
    load_wrench: tuple[Any, ...]
    load_varies: bool
    surroundings: Surroundings
    springs: Springs
    maps: Maps
    motion_names: tuple[str, ...]
    motion_dof: np.ndarray
    motion_functions: tuple[Any, ...]
    loop_names: tuple[str, ...]
    loop_node: np.ndarray
    loop_placement: np.ndarray
    loop_row_start: np.ndarray
    loop_turns: np.ndarray
    loop_axis: np.ndarray
    loop_slide: np.ndarray
    loop_pitch: np.ndarray
    loop_hinge: np.ndarray
    row_direction: np.ndarray
    row_is_hinge: np.ndarray
    point_q_shift: np.ndarray
    point_xi: np.ndarray
    point_run_start: np.ndarray
    point_run_v: np.ndarray
    point_phi: np.ndarray
    point_path_start: np.ndarray
    path_channel: np.ndarray
    path_weight: np.ndarray
    path_offset: np.ndarray
    path_slope: np.ndarray
    path_is_normal: np.ndarray
    segment_channel: np.ndarray
    segment_node: np.ndarray
    segment_position: np.ndarray
    spool_channel: np.ndarray
    spool_stiffness: np.ndarray
    spool_slack: np.ndarray
    wrench_channel: np.ndarray
    wrench_node: np.ndarray
    wrench_unit: np.ndarray
    wrench_position: np.ndarray
    wrench_is_body: np.ndarray
    channel_names: tuple[str, ...]
    channel_actuator: tuple[Any, ...]
    channel_units: tuple[str, ...]
    channel_is_tendon: np.ndarray
    channel_gain: np.ndarray
    joint_gain: np.ndarray
    custom_actuators: tuple[Any, ...]
    input_names: tuple[str, ...]
    description: Robot
    n_held: int = 0
    steady: np.ndarray | None = None
    device: str = "cpu"
    cache: dict[Any, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for item in fields(self):
            _freeze(getattr(self, item.name))

    def __repr__(self) -> str:
        return f"Model({self.name!r}, nq={self.nq}, nv={self.nv}, nu={self.nu}, n_nodes={self.n_nodes})"

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.node_parent)

    @property
    def n_multipliers(self) -> int:
        """Number of constraint forces: one for each prescribed coordinate, then one for each row of each loop."""
        return self.n_motions + self.n_rows

    @property
    def n_motions(self) -> int:
        """Number of prescribed coordinates."""
        return len(self.motion_dof)

    @property
    def n_rows(self) -> int:
        """Number of directions that loops hold, dependent ones included."""
        return len(self.row_direction)

    @property
    def n_load_rows(self) -> int:
        """Rows that kernels read: wrenches of point loads and of Python forces, then current and time."""
        return len(self.load_node) + (2 if self.meets_anything else 0)

    @property
    def meets_anything(self) -> bool:
        """Whether kernels must look at surroundings or at springs between points."""
        return self.surroundings.exists or len(self.springs) > 0

    @property
    def calls_python(self) -> bool:
        """Whether forces or poses come from Python functions of the state, which kernels cannot call."""
        return bool(self.custom_actuators or self.surroundings.called or self.maps.calls_python)

    def motions(self, t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Positions, velocities and accelerations of the prescribed coordinates at time t, each (n_motions,)."""
        known = self.cache.get("motions")
        if known is None or known[0] != t:
            rows = np.array(self.motion_numbers(t)).reshape(3, -1)
            rows.setflags(write=False)
            known = self.cache["motions"] = (t, (rows[0], rows[1], rows[2]))
        return known[1]

    def motion_numbers(self, t: float) -> list[float]:
        """What `motions` returns, as 3 n_motions numbers."""
        return [x for order in range(3) for functions in self.motion_functions for x in functions[order](t)]

    def __reduce__(self) -> tuple[Any, ...]:
        held = self.motion_dof[self.n_motions - self.n_held :].copy()
        return _rebuilt, (self.description, self.device, held, self.steady, self.surroundings.anchors)

    def __copy__(self) -> Model:
        """The same tables, which nothing can change, with buffers of its own."""
        return replace(self, cache={})

    def __deepcopy__(self, memo: dict[int, Any]) -> Model:
        return replace(self, cache={})

    def cached(self, key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """What `make` returned for this key. It is made again once more than _KEPT things, or _MOST_BYTES of buffers,
        have been used since."""
        found = self.cache.pop(key, None)
        made = make() if found is None else found
        self.cache[key] = made  # the last is what was used last
        if found is None:
            self._forget()
        return made

    def _forget(self) -> None:
        """Drop what was used least recently, but never the last."""
        keys = [key for key in list(self.cache) if isinstance(key, tuple)]
        sizes = [getattr(self.cache.get(key), "nbytes", 0) for key in keys]
        held, count = sum(sizes), len(keys)
        for key, size in zip(keys[:-1], sizes):
            if count <= _KEPT and held <= _MOST_BYTES:
                return
            if count > _KEPT or size:
                self.cache.pop(key, None)
                held, count = held - size, count - 1

    def on(self, device: str) -> Model:
        """The same model whose functions run on another Warp device, such as "cuda:0"."""
        return replace(self, device=device, cache={})

    def anchored(self, anchors: Any) -> Model:
        """The same model whose contacts hold on at given anchors.

        Args:
            anchors: shape (n_pairs, 6) [m, -], of `contact_anchors`, an `Equilibrium` or a `Trajectory`: of each pair
                the point of the obstacle and the direction in the ball where they hold on; rows of NaN do not hold.
        Returns:
            Model.
        Raises:
            ShapeError: the expected and the received shape, or an infinite value.
        """
        rows, shape = np.array(anchors, dtype=np.float64), self.surroundings.anchors.shape
        if rows.shape != shape:
            raise ShapeError(f"anchors: expected shape {shape}, got {rows.shape}")
        if np.isinf(rows).any() or (np.isnan(rows).any(axis=1) != np.isnan(rows).all(axis=1)).any():
            raise ShapeError("anchors: a row must be finite, or NaN where a pair does not hold on")
        return replace(self, surroundings=replace(self.surroundings, anchors=rows), cache={})

    def holding(self, dofs: np.ndarray, steady: np.ndarray | None) -> Model:
        """The same model with more coordinates held as if they had a motion, in a steady motion of velocity (nv,)."""
        zero = [0.0] * len(dofs)
        return replace(
            self,
            motion_names=(*self.motion_names, *(f"held[{j}]" for j in dofs.tolist())),
            motion_dof=np.append(self.motion_dof, dofs).astype(np.int32),
            motion_functions=(*self.motion_functions, (lambda t: zero,) * 3),
            n_held=len(dofs),
            steady=steady,
            cache={},
        )

    def neutral(self) -> np.ndarray:
        """The reference configuration: zero coordinates, unit quaternions; shape (nq,)."""
        return self.q_neutral.copy()


def _rebuilt(
    description: Robot, device: str, held: np.ndarray, steady: np.ndarray | None, anchors: np.ndarray
) -> Model:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what there was to say was said when it was first built
        model = replace(description.build(), device=device)
    model = model if steady is None else model.holding(held, steady)
    return model.anchored(anchors) if model.surroundings.sticks else model


def _freeze(value: Any) -> None:
    """Make every array of a table read-only, in the frames and rods too."""
    if isinstance(value, np.ndarray):
        value.setflags(write=False)
    elif isinstance(value, RodTable):
        for part in (value.base, value.node, value.node_s):
            _freeze(part)
    elif isinstance(value, tuple | dict):
        for part in value.values() if isinstance(value, dict) else value:
            _freeze(part)
    elif isinstance(value, Surroundings | Springs | Maps):
        for item in fields(value):
            _freeze(getattr(value, item.name))
