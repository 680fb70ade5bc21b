"""Trajectories: the result of a simulation, its files, and exports to other programs.

A method returns states x at the wanted times. `motion_arrays` converts them to the arrays of trajectories, for one or
many motions. x is (q, v, a, λ of loops), or (q, v) if a and λ are computed afterwards. Each motion is computed
independently, so that a motion of a batch equals a single motion to the last bit.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from lissom.dynamics.accuracy import Accuracy, estimate
from lissom.dynamics.assembly import prescribed_state, project_onto_loops
from lissom.dynamics.configuration import unit_quaternions
from lissom.dynamics.constraints import least_norm, minimum_norm
from lissom.dynamics.forward_dynamics import forward_dynamics, run_forward_dynamics, run_residual
from lissom.dynamics.kinematics import frame_pose
from lissom.errors import ModelError, ShapeError
from lissom.launch.cores import states_per_launch
from lissom.launch.workspace import batch_of, row_slices
from lissom.model.model import Model
from lissom.model.model_batch import ModelBatch
from lissom.portable import cell_of, whole, write_whole
from lissom.robot.formatting import html_arrays
from lissom.stepping.statistics import Statistics

if TYPE_CHECKING:
    from lissom.simulation.trajectory import Trajectory


def motion_arrays(model: Model, t: np.ndarray, x: np.ndarray, shown: np.ndarray) -> dict[str, np.ndarray]:
    """q, v, a, u, multipliers and z (n, n_times, ...) of n motions, from states x and (u, z) at common times."""
    u, z = shown[..., : model.nu], shown[..., model.nu :]
    q, v, a, force = np.split(x, np.cumsum([model.nq, model.nv, model.nv]), axis=-1)
    q = unit_quaternions(model, q)
    if a.shape[-1] < model.nv:
        q, v = prescribed_state(model, t, q, v)
        q, v = project_onto_loops(model, q, v)
        a, force = motion_accelerations(model, t, q, v, u)
    else:
        force = minimum_norm(model, q, force)
    multipliers = _multipliers(model, t, q, v, a, u, force)
    return {"q": q, "v": v, "a": a, "u": u, "multipliers": multipliers, "z": z}


def _parts(n: int, times: int) -> Iterator[slice]:
    """Slices of the times of n motions, one for each launch."""
    return row_slices(times) if n == 1 else row_slices(times, max(1, states_per_launch() // n))


def _rows(x: np.ndarray, part: slice) -> np.ndarray:
    """An array (n, n_times, width) at a slice of m times, as rows (n m, width), motion by motion."""
    chosen = x[:, part]
    return chosen.reshape(chosen.shape[0] * chosen.shape[1], chosen.shape[2])


def motion_accelerations(
    model: Model, t: np.ndarray, q: np.ndarray, v: np.ndarray, u: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Accelerations of motions (n, n_times, ...), and the constraint forces with least norm."""
    n = len(q)
    a, force = np.zeros((n, len(t), model.nv)), np.zeros((n, len(t), model.n_rows))
    for part in _parts(n, len(t)):
        w = run_forward_dynamics(model, _rows(q, part), _rows(v, part), _rows(u, part), np.tile(t[part], n))
        a[:, part] = w.host["a"].reshape(a[:, part].shape)
        if model.n_rows:
            force[:, part] = least_norm(model, w, w.host["force"]).reshape(force[:, part].shape)
    return a, force


def _multipliers(
    model: Model, t: np.ndarray, q: np.ndarray, v: np.ndarray, a: np.ndarray, u: np.ndarray, force: np.ndarray
) -> np.ndarray:
    """Forces of prescribed motions, then of loops. The former are the residuals of the equation of motion in their
    rows."""
    if not model.n_motions:
        return force
    n = len(q)
    left = np.zeros((n, len(t), model.nv))
    for part in _parts(n, len(t)):
        x, v_x, a_x, u_x = (_rows(x, part) for x in (q, v, a, u))
        w = run_residual(model, x, v_x, a_x, u_x, np.tile(t[part], n), 1.0, _rows(force, part))
        left[:, part] = w.host["tau"].reshape(left[:, part].shape)
    return np.concatenate([left[..., model.prescribed.dof], force], axis=-1)


_ESTIMATES = 5  # number of times at which the error of a motion is estimated
STREAMED = "run.json"  # file with the state of the folder of a streamed motion


@final
@dataclass(frozen=True, repr=False)
class Trajectory:
    """A simulated motion. A batch adds leading axes before n.

    Fields:
        t: times (n,) [s].
        q: configurations (n, nq) [rad, m, or strain units].
        v, a: velocities and accelerations (n, nv) [unit of q per s, per s²].
        u: inputs (n, nu) [N, m, Pa or N·m, by actuator].
        multipliers: forces of the prescribed motions, then of the loops, skates, rolling contacts and couplings
            (n, n_multipliers) [N·m, N].
        z: state of the controller (n, nz); nz is 0 without a state. With a sampled controller, u was computed from this
            z.
        statistics: cost of the simulation.
        anchors: anchors at the end of the contacts that stick, (n_pairs, 6), for `Model.anchored`. A .csv file does not
            hold them.
        model: the model; None if the trajectory was read from a file, which does not hold it.
    """

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    u: np.ndarray
    multipliers: np.ndarray
    z: np.ndarray
    statistics: Statistics
    anchors: np.ndarray = field(default_factory=lambda: np.zeros((0, 6)))
    model: Model | None = field(default=None, repr=False, compare=False)

    @cached_property
    def accuracy(self) -> Accuracy:
        """Estimated position errors from quadrature points and from bases [m]: the largest at five times; see
        `accuracy`.

        Computed on first use. An AccuracyWarning is issued if the error exceeds a hundredth of the longest rod or body.
        Errors that accumulate along a motion, such as a phase drift, are not included.

        Raises:
            ModelError: the trajectory was read from a file, which does not hold its model.
        """
        if self.model is None:
            raise ModelError("accuracy: the file of a trajectory does not hold its model; see lissom.accuracy")
        model = self.model.common if isinstance(self.model, ModelBatch) else self.model
        lead, n = self.q.shape[:-2], self.q.shape[-2]
        k = np.unique(np.linspace(0, n - 1, min(n, _ESTIMATES)).round().astype(int)) if n else np.zeros(0, int)
        models = [one for one in model.of_rows(batch_of(lead)) for _ in k]
        q, v, u, force = (
            np.reshape(x[..., k, :], (len(models), x.shape[-1]))
            for x in (self.q, self.v, self.u, self.multipliers[..., model.n_motions :])
        )
        t = np.tile(self.t[k], batch_of(lead))
        rows = [forward_dynamics(one, q[i], v[i], u[i], float(t[i])) for i, one in enumerate(models)]
        a = np.reshape(rows, v.shape)
        duration = float(self.t[-1] - self.t[0]) if n else None
        found = estimate(models, (q, v, a, u, force), t, (*lead, len(k)), duration)
        points, basis = (x.max(axis=-2, initial=0.0) for x in (found.points, found.basis))
        return Accuracy(found.links, points, basis, found.length, found.cure, found.not_estimated)

    @cached_property
    def energy_made(self) -> float | np.ndarray:
        """Energy that the steps made [J]: the largest rise, from one time to a later one, of the energy of bodies,
        springs and contacts less the work of inputs, loads and prescribed motions. Shape (...) of a batch.

        It is 0 for exact motions. Energy that damping and friction take meanwhile hides as much of it. Computed on
        first use. The work is integrated over the times, which must resolve it; see `energy_balance`.

        Raises:
            ModelError: the trajectory was read from a file, which does not hold its model.
        """
        from lissom.simulation.energy_balance import energy_made

        if self.model is None:
            raise ModelError("energy_made: the file of a trajectory does not hold its model; see lissom.energy_balance")
        model = self.model.common if isinstance(self.model, ModelBatch) else self.model
        lead = self.q.shape[:-2]
        count, arrays = batch_of(lead), (self.q, self.v, self.u, self.multipliers)
        rows = [x.reshape(count, *x.shape[-2:]) for x in arrays]
        found = [energy_made(one, self.t, *own) for one, *own in zip(model.of_rows(count), *rows)]
        return np.reshape(found, lead) if lead else found[0]

    def __getstate__(self) -> dict[str, Any]:
        """All fields except the model; each process that receives the trajectory would have to build it again."""
        return {name: value for name, value in self.__dict__.items() if name not in ("model", "accuracy")}

    def animate(
        self,
        path: str | Path,
        *,
        model: Model | None = None,
        fps: float = 25.0,
        speed: float | None = None,
        trail: str | None = None,
        follow: str | None = None,
        orbit: float = 0.0,
        links: Sequence[str] | None = None,
        paint: str | None = None,
        view: tuple[float, float] | None = None,
        obstacles: bool = True,
        size: tuple[int, int] = (960, 720),
        progress: bool | Callable[[float], Any] = False,
    ) -> Path:
        """Film the motion, drawn as by `render`. Needs the extra `render`, but no screen.

        Args:
            path: file to write, .mp4 or .gif.
            model: the model; needed if the trajectory was read from a file.
            fps: frames per second of the film [1/s].
            speed: seconds of the motion per second of the film [-]. None: 1, and less for motions below 3 s, whose
                films last 3 to 7.5 s. A film that is not as fast as the motion says so.
            trail: name of a link or frame whose path is drawn.
            follow: name of a link or frame that the camera follows.
            orbit: rotation speed of the camera about the vertical, per second of the film [deg/s].
            links, paint, view, obstacles: see `render`.
            size: width and height [pixels].
            progress: True shows the number of frames drawn, if this takes longer than one second. A function is called
                with the number now and then; an error that it raises ends the film, and no file is left.
        Returns:
            the path.
        Raises:
            ShapeError: the trajectory is a batch.
            ModelError: the model is missing, there is no such link, the file format cannot be written, or a package is
                missing.
        """
        from lissom.viewing.render import film

        moved = self.model if model is None else model
        if moved is None:
            raise ModelError("film: the file of a trajectory does not hold its model; give animate(path, model=...)")
        return film(moved, self, path, fps=fps, speed=speed, trail=trail, follow=follow, orbit=orbit, links=links,
                    paint=paint, view=view, obstacles=obstacles, size=size, progress=progress)  # fmt: skip

    def __repr__(self) -> str:
        lead, cost = self.q.shape[:-2], self.statistics
        when = f"t = {self.t[0]:g} to {self.t[-1]:g} s, {len(self.t)} times" if len(self.t) else "no times"
        batch = f", batch {lead}" if lead else ""
        sizes = f"nq={self.q.shape[-1]}, nv={self.v.shape[-1]}, nu={self.u.shape[-1]}"
        return f"Trajectory({when}{batch}, {sizes}; {cost.method}, {cost.steps} steps in {cost.wall_time:.3g} s)"

    def _repr_html_(self) -> str:
        return html_arrays(repr(self), {name: x for name, x in self._arrays().items() if x.size})

    def save(self, path: str | Path) -> None:
        """Write to .npz (everything) or .csv (one motion: a header, rows, and a last line "# ..." with the statistics).
        For MATLAB see `to_mat`.

        `save` and the exports write a file completely or not at all.

        Raises:
            ShapeError: the path has another ending, or a .csv file of a batch is requested.
            OSError: the file cannot be written; an existing file is not changed.
        """
        path = Path(path)
        if path.suffix == ".npz":
            statistics = json.dumps(asdict(self.statistics))
            arrays = self._arrays() | {"anchors": self.anchors, "statistics": statistics}
            write_whole(path, lambda file: np.savez(file, **arrays))
        elif path.suffix == ".csv":
            if self.q.ndim != 2:
                raise ShapeError(f"trajectory: a table holds one motion, got a batch of shape {self.q.shape[:-2]}")
            columns = {name: x[:, None] if x.ndim == 1 else x for name, x in self._arrays().items()}
            names = ["t"] + [f"{n}{k}" for n, x in columns.items() if n != "t" for k in range(x.shape[1])]
            rows = np.hstack(list(columns.values()))
            last = "# " + json.dumps(asdict(self.statistics))
            text = {"header": ",".join(names), "footer": last, "comments": ""}
            write_whole(path, lambda file: np.savetxt(file, rows, "%.17g", ",", **text))
        else:
            raise ShapeError(f"trajectory file: must end in .npz or .csv (or take to_mat, to_hdf5), got {path.name!r}")

    def to_csv(self, path: str | Path, *, model: Model | None = None, frames: Sequence[str] | None = None) -> None:
        """Write a table for other programs: t [s], the inputs by name, and for each tip its position [m] and quaternion
        (w, x, y, z), in columns `<name>.x` to `<name>.qz`.

        Args:
            model: the model; needed if the trajectory was read from a file.
            frames: names of links and frames to write. None: the named frames, and the tips (links without children).
        Raises:
            ShapeError: the trajectory is a batch, or not a motion of this model.
            ModelError: the trajectory does not hold its model.
        """
        from lissom.simulation.trajectory import write_csv

        write_csv(self, Path(path), self._moved(model), frames)

    def to_hdf5(self, path: str | Path, *, model: Model | None = None, frames: Sequence[str] | None = None) -> None:
        """Write all arrays, and the poses of tips as in `to_csv`, to an HDF5 file (extra `hdf5`). Batches are allowed.

        Raises:
            ShapeError: not a motion of this model.
            ModelError: h5py is not installed.
        """
        from lissom.simulation.trajectory import write_hdf5

        write_hdf5(self, Path(path), self._moved(model), frames)

    def to_mat(self, path: str | Path, *, model: Model | None = None, frames: Sequence[str] | None = None) -> None:
        """Write a MATLAB file (.mat, version 5) with a struct `motion` of all arrays, with the poses of tips as in
        `to_csv`, and a struct `robot` of names and of the first indices of links, counted from 1. In MATLAB
        `plot(motion.t, motion.q)` draws the coordinates. Batches are allowed.

        Args:
            model: the model; needed if the trajectory was read from a file.
            frames: names of links and frames to write. None: the named frames, and the tips (links without children).
        Raises:
            ShapeError: not a motion of this model.
            ModelError: the trajectory does not hold its model.
        """
        from lissom.simulation.mat_files import write_mat

        write_mat(self, Path(path), self._moved(model), frames)

    def to_rerun(self, path: str | Path, *, model: Model | None = None, frames: Sequence[str] | None = None) -> None:
        """Write a recording for rerun (extra `rerun`): bodies, rods, tips and inputs over the time "t".

        Raises:
            ShapeError: the trajectory is a batch, or not a motion of this model.
            ModelError: rerun is not installed.
        """
        from lissom.simulation.trajectory import write_rerun

        write_rerun(self, Path(path), self._moved(model), frames)

    def _moved(self, model: Model | None) -> Model:
        """The given model, or the model of the trajectory."""
        moved = self.model if model is None else model
        if moved is None:
            raise ModelError("trajectory: the file of a trajectory does not hold its model; give model=...")
        return moved

    @classmethod
    def load(cls, path: str | Path) -> Trajectory:
        """Read a file of `save`, or the folder of `simulate(out=)`. The arrays of a folder stay on the disk until they
        are used.

        Raises:
            ShapeError: the file is not a trajectory; the message gives the reason.
            OSError: there is no file.
        """
        path = Path(path)
        is_folder = path.is_dir()
        if not is_folder and path.suffix not in (".npz", ".csv"):
            raise ShapeError(f"trajectory file: must end in .npz or .csv, got {path.name!r}")
        if not is_folder:
            path.open("rb").close()  # raises the errors of the file itself
        load = cls._load_folder if is_folder else cls._load_arrays if path.suffix == ".npz" else cls._load_table
        try:
            return load(path)._checked()
        except Exception as error:  # NumPy, zipfile and JSON raise errors of many kinds for a damaged file
            raise ShapeError(f"{path}: is not a trajectory file ({type(error).__name__}: {error})") from error

    @classmethod
    def _load_arrays(cls, path: Path) -> Trajectory:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            arrays = {name: file[name] for name in cls._names()}
            statistics = Statistics.of(json.loads(str(file["statistics"])))
            anchors = {"anchors": file["anchors"]} if "anchors" in file else {}
        return cls(**arrays, statistics=statistics, **anchors)

    @classmethod
    def _load_folder(cls, path: Path) -> Trajectory:
        known = json.loads((path / STREAMED).read_text(encoding="utf-8"))
        if known["statistics"] is None:
            raise ValueError("nothing of it has been flushed yet")
        arrays = {name: _mapped(path / f"{name}.npy", known["rows"]) for name in cls._names()}
        anchors = {"anchors": np.load(path / "anchors.npy")} if (path / "anchors.npy").exists() else {}
        return cls(**arrays, statistics=Statistics.of(known["statistics"]), **anchors)

    @classmethod
    def _load_table(cls, path: Path) -> Trajectory:
        lines = path.read_text(encoding="utf-8").splitlines()
        names = lines[0].split(",")
        if len(lines) < 3:
            raise ValueError("it has no rows")
        table = np.loadtxt(lines[1:-1], delimiter=",", ndmin=2)
        if table.shape[1] != len(names):
            raise ValueError(f"{len(names)} names above {table.shape[1]} columns")
        columns = {n: [k for k, name in enumerate(names) if _stem(name) == n] for n in cls._names()}
        arrays: dict[str, Any] = {n: table[:, found] for n, found in columns.items()}
        return cls(**(arrays | {"t": arrays["t"][:, 0]}), statistics=Statistics.of(json.loads(lines[-1].lstrip("# "))))

    def _checked(self) -> Trajectory:
        """The trajectory itself. Raises ValueError unless its arrays hold numbers and have matching shapes."""
        for name, x in self._arrays().items():
            if x.dtype != np.float64 or (x.ndim != 1 if name == "t" else x.shape[-2:-1] != self.t.shape):
                raise ValueError(f"{name} has shape {x.shape} and type {x.dtype} beside {len(self.t)} times")
        if self.anchors.dtype != np.float64 or self.anchors.shape[-1:] != (6,):
            raise ValueError(f"anchors have shape {self.anchors.shape} and type {self.anchors.dtype}")
        if self.v.shape != self.a.shape:
            raise ValueError(f"v has shape {self.v.shape} and a {self.a.shape}")
        return self

    @staticmethod
    def _names() -> tuple[str, ...]:
        return ("t", "q", "v", "a", "u", "multipliers", "z")

    def _arrays(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._names()}


def _mapped(path: Path, rows: int) -> np.ndarray:
    """The first `rows` rows of an array on the disk.

    Raises:
        ValueError: the file holds no array of numbers, or fewer rows.
    """
    with path.open("rb") as file:
        version = np.lib.format.read_magic(file)
        shape, by_columns, kind = np.lib.format.read_array_header_1_0(file)
        start = file.tell()
    good = version == (1, 0) and kind == np.dtype("<f8") and not by_columns and len(shape) in (1, 2)
    if not good or isinstance(rows, bool) or not isinstance(rows, int) or not 0 <= rows <= shape[0]:
        raise ValueError(f"{path.name} holds an array {shape} of type {kind}, and not {rows} rows of numbers")
    shape = (rows, *shape[1:])
    if 0 in shape:
        return np.zeros(shape)
    return np.memmap(path, kind, "r", start, shape)


def _stem(name: str) -> str:
    return name.rstrip("0123456789")


_ALONG = np.linspace(0.0, 1.0, 21)  # abscissae of the drawn points of a rod
_SUFFIXES = ("x", "y", "z", "qw", "qx", "qy", "qz")


def tip_poses(trajectory: Trajectory, model: Model, frames: Sequence[str] | None) -> dict[str, np.ndarray]:
    """Poses (..., n, 4, 4) of links and frames by name. With `frames` None: the named frames, and the tips (links
    without children).

    Raises:
        ShapeError: not a motion of this model.
        ModelError: there is no such link or frame.
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
    """Write one row for each time: t, inputs by name, positions and quaternions of tips."""
    if trajectory.q.ndim != 2:
        raise ShapeError(f"trajectory: a table holds one motion, got a batch of shape {trajectory.q.shape[:-2]}")
    poses = tip_poses(trajectory, model, frames)
    header, columns = ["t", *map(cell_of, model.inputs.names)], [trajectory.t[:, None], trajectory.u]
    for name, pose in poses.items():
        header += [cell_of(f"{name}.{suffix}") for suffix in _SUFFIXES]
        columns += [pose[:, :3, 3], quaternions(pose)]
    with whole(path) as new, new.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(header)
        writer.writerows([f"{x:.17g}" for x in row] for row in np.hstack(columns))


def write_hdf5(trajectory: Trajectory, path: Path, model: Model, frames: Sequence[str] | None) -> None:
    """Write all fields of a trajectory, and tips and inputs by name, with units."""
    try:
        import h5py
    except ImportError:
        raise ModelError(f"{path}: HDF5 needs h5py: pip install 'lissom[hdf5]'") from None
    poses = tip_poses(trajectory, model, frames)
    made = io.BytesIO()  # HDF5 ends the process if it closes a file on a full disk
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
    """Write a recording: rods as tubes, meshes of rigid bodies, tips, and inputs as curves over the time "t"."""
    rerun = _rerun(path)
    if trajectory.q.ndim != 2:
        raise ShapeError(f"trajectory: a recording holds one motion, got a batch of shape {trajectory.q.shape[:-2]}")
    poses = tip_poses(trajectory, model, frames)
    recording = rerun.RecordingStream("lissom")
    stream = recording.binary_stream()  # rerun would write files in another thread, which only logs a full disk
    _record(rerun, recording, trajectory, model, poses)
    data = stream.read()
    write_whole(path, lambda file: file.write(data))


def _record(rerun: Any, recording: Any, trajectory: Trajectory, model: Model, poses: dict[str, np.ndarray]) -> None:
    """Write the contents of a recording."""
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
    """Draw a rigid body in its frame."""
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
    """The path of an entity in a recording. Names may contain any characters."""
    return rerun.new_entity_path(list(parts))
