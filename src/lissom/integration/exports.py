"""Motions for other programs: tables, HDF5 and rerun, with what the inputs did and where the tips went."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lissom.dynamics.kinematics import frame_pose
from lissom.errors import ModelError, ShapeError
from lissom.model.model import Model
from lissom.portable import whole, write_whole

if TYPE_CHECKING:
    from lissom.integration.trajectory import Trajectory

_ALONG = np.linspace(0.0, 1.0, 21)  # of a rod that is shown
_SUFFIXES = ("x", "y", "z", "qw", "qx", "qy", "qz")


def tip_poses(trajectory: Trajectory, model: Model, frames: Sequence[str] | None) -> dict[str, np.ndarray]:
    """Poses (..., n, 4, 4) of frames by name: those asked for, or those that have a name and the tips, which are links
    that carry no other.

    Raises:
        ShapeError: the motion is not one of this model. ModelError: there is no such link or frame.
    """
    nq, nv, nu = trajectory.q.shape[-1], trajectory.v.shape[-1], trajectory.u.shape[-1]
    if (nq, nv, nu) != (model.nq, model.nv, model.nu):
        had = f"nq={nq}, nv={nv}, nu={nu}"
        raise ShapeError(f"trajectory: has {had}, and model {model.name!r} nq={model.nq}, nv={model.nv}, nu={model.nu}")
    if frames is None:
        carrying = set(model.links.parent.tolist())
        tips = [name for k, name in enumerate(model.links.names) if k not in carrying]
        frames = [*tips, *model.frames]
    return {name: frame_pose(model, trajectory.q, name) for name in frames}


def quaternions(pose: np.ndarray) -> np.ndarray:
    """Unit quaternions (..., 4) of poses, (w, x, y, z) with w >= 0."""
    from scipy.spatial.transform import Rotation

    R = pose[..., :3, :3]
    found = Rotation.from_matrix(R.reshape(-1, 3, 3)).as_quat(canonical=True)[:, [3, 0, 1, 2]]
    return found.reshape(*R.shape[:-2], 4)


def write_csv(trajectory: Trajectory, path: Path, model: Model, frames: Sequence[str] | None) -> None:
    """One row for each time: t, inputs by name, positions and quaternions of tips."""
    if trajectory.q.ndim != 2:
        raise ShapeError(f"trajectory: a table holds one motion, got a batch of shape {trajectory.q.shape[:-2]}")
    poses = tip_poses(trajectory, model, frames)
    header, columns = ["t", *model.inputs.names], [trajectory.t[:, None], trajectory.u]
    for name, pose in poses.items():
        header += [f"{name}.{suffix}" for suffix in _SUFFIXES]
        columns += [pose[:, :3, 3], quaternions(pose)]
    with whole(path) as new, new.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(header)
        writer.writerows([f"{x:.17g}" for x in row] for row in np.hstack(columns))


def write_hdf5(trajectory: Trajectory, path: Path, model: Model, frames: Sequence[str] | None) -> None:
    """Everything a trajectory holds, tips and inputs by name, with units."""
    try:
        import h5py
    except ImportError:
        raise ModelError(f"{path}: HDF5 needs h5py: pip install 'lissom[hdf5]'") from None
    poses = tip_poses(trajectory, model, frames)
    made = io.BytesIO()  # HDF5 ends the process where it closes a file on a full disk
    with h5py.File(made, "w") as file:
        file.attrs["robot"] = model.name
        for name in ("t", "q", "v", "a", "u", "multipliers", "z"):
            file.create_dataset(name, data=np.asarray(getattr(trajectory, name)))
        file["t"].attrs["unit"] = "s"
        file["u"].attrs["names"] = list(model.inputs.names)
        file["q"].attrs["links"] = list(model.links.names)
        file["q"].attrs["start"] = model.links.q_start
        file["v"].attrs["start"] = model.links.v_start
        for key, value in vars(trajectory.statistics).items():
            if value is not None:
                file.attrs[f"statistics.{key}"] = value
        tips = file.create_group("tips", track_order=True)
        for name, pose in poses.items():
            tip = tips.create_group(name.replace("/", "_"))
            tip.attrs["name"] = name
            tip.create_dataset("position", data=pose[..., :3, 3]).attrs["unit"] = "m"
            tip.create_dataset("quaternion", data=quaternions(pose)).attrs["order"] = "w, x, y, z"
    write_whole(path, lambda file: file.write(made.getbuffer()))


def write_rerun(trajectory: Trajectory, path: Path, model: Model, frames: Sequence[str] | None) -> None:
    """A recording: rods as tubes, meshes of rigid bodies, tips, and inputs as curves over the time "t"."""
    rerun = _rerun(path)
    if trajectory.q.ndim != 2:
        raise ShapeError(f"trajectory: a recording holds one motion, got a batch of shape {trajectory.q.shape[:-2]}")
    poses = tip_poses(trajectory, model, frames)
    recording = rerun.RecordingStream("lissom")
    stream = recording.binary_stream()  # rerun writes files in a thread of its own, which only logs that a disk is full
    _record(rerun, recording, trajectory, model, poses)
    data = stream.read()
    write_whole(path, lambda file: file.write(data))


def _record(rerun: Any, recording: Any, trajectory: Trajectory, model: Model, poses: dict[str, np.ndarray]) -> None:
    """What a recording holds."""
    time = [rerun.TimeColumn("t", duration=trajectory.t)]
    for k, name in enumerate(model.inputs.names):
        recording.send_columns(_path(rerun, "inputs", name), time, rerun.Scalars.columns(scalars=trajectory.u[:, k]))
    for name, pose in poses.items():
        recording.send_columns(_path(rerun, "tips", name), time, rerun.Points3D.columns(positions=pose[:, :3, 3]))
    for name, body in zip(model.links.names, model.links.body):
        if name in model.rods:
            lines = frame_pose(model, trajectory.q, name, s=_ALONG)[..., :3, 3]
            radius = float(np.linalg.norm(body.cross_outline(0.5, 8), axis=-1).max(initial=0.0))
            for t, line in zip(trajectory.t, lines):
                recording.set_time("t", duration=float(t))
                recording.log(_path(rerun, "robot", name), rerun.LineStrips3D([line], radii=[radius or 1e-3]))
        elif body is not None:
            _show_body(rerun, recording, name, body)
            pose = frame_pose(model, trajectory.q, name)
            moves = rerun.Transform3D.columns(translation=pose[:, :3, 3], quaternion=np.roll(quaternions(pose), -1, 1))
            recording.send_columns(_path(rerun, "robot", name), time, moves)


def _rerun(path: Path) -> Any:
    try:
        import rerun
    except ImportError:
        raise ModelError(f"{path}: needs rerun: pip install 'lissom[rerun]'") from None
    return rerun


def _show_body(rerun: Any, recording: Any, name: str, body: Any) -> None:
    """What is drawn of a body that keeps its shape, in its frame."""
    for k, mesh in enumerate(body.drawn_meshes()):
        vertices, triangles = mesh.surface()
        color = None if mesh.color is None else list(mesh.color)
        shown = rerun.Mesh3D(vertex_positions=vertices, triangle_indices=triangles, albedo_factor=color)
        recording.log(_path(rerun, "robot", name, f"mesh {k}"), shown, static=True)
    solid = body.solid()
    if solid is not None and not body.drawn_meshes():
        box = rerun.Boxes3D(half_sizes=[solid.half], centers=[solid.centre])
        recording.log(_path(rerun, "robot", name, solid.form), box, static=True)


def _path(rerun: Any, *parts: str) -> str:
    """Where something stands in a recording; names may hold any characters."""
    return rerun.new_entity_path(list(parts))
