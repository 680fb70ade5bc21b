"""MATLAB files of motions and models: structs of arrays, with indices that are counted from 1."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lissom.dynamics.actuation import actuation_matrix, damping_matrix, stiffness_matrix
from lissom.dynamics.configuration import single_configuration
from lissom.dynamics.inverse_dynamics import external_force
from lissom.dynamics.mass_matrix import mass_matrix
from lissom.errors import ShapeError
from lissom.model.model import Model
from lissom.portable import write_whole
from lissom.robot import checks
from lissom.simulation.trajectory import Trajectory, tip_poses

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_ARRAYS = ("q", "v", "a", "u", "multipliers", "z")


def write_mat(trajectory: Trajectory, path: Path, model: Model, frames: Sequence[str] | None) -> None:
    """Write the arrays of a trajectory, the poses of tips, and names, as structs of MATLAB."""
    poses = tip_poses(trajectory, model, frames)
    motion: dict[str, Any] = {name: np.asarray(getattr(trajectory, name)) for name in _ARRAYS}
    motion |= {"t": np.asarray(trajectory.t)[:, None], "tips": _cells(list(poses))}
    motion["poses"] = _cells([np.moveaxis(pose, (-2, -1), (0, 1)) for pose in poses.values()])
    motion["statistics"] = {name: x for name, x in asdict(trajectory.statistics).items() if x is not None}
    _write(path, {"motion": motion, "robot": _names(model)})


def save_mat(model: Model, path: str | os.PathLike[str], q: ArrayLike | None = None) -> None:
    """Write a model to a MATLAB file (.mat, version 5): a struct `robot` of its names and of the first indices of
    coordinates, counted from 1, and a struct `at` of its matrices at a configuration.

    With the generalised force F of gravity and loads at rest and the inputs u,

        M a = B u + F − K q − D v

    for small v, up to joints whose springs have a rest position, and to loops. Motions are written by
    `Trajectory.to_mat`.

    Args:
        path: file to write, .mat.
        q: configuration, shape (nq,) [rad, m, or strain units]; None is the neutral one.
    Raises:
        ShapeError: another ending of the file, or the argument and its expected shape. ModelError: not one Model.
    """
    checks.require(not model.models and isinstance(model, Model), "model", "must be one Model", model)
    q = single_configuration(model, model.neutral() if q is None else q, "q")
    at: dict[str, Any] = {"q": q, "M": mass_matrix(model, q), "K": stiffness_matrix(model), "D": damping_matrix(model)}
    at |= {"B": actuation_matrix(model, q), "F": external_force(model, q)[:, None]}
    _write(Path(path), {"robot": _names(model), "at": at})


def _names(model: Model) -> dict[str, Any]:
    links, named = model.links, {"name": model.name, "nq": float(model.nq), "nv": float(model.nv)}
    first = {"q_start": np.asarray(links.q_start) + 1.0, "v_start": np.asarray(links.v_start) + 1.0}
    return named | {"links": _cells(links.names), "inputs": _cells(model.inputs.names)} | first


def _cells(items: Sequence[Any]) -> np.ndarray:
    """Items as a cell array of MATLAB."""
    out = np.empty(len(items), dtype=object)
    for k, item in enumerate(items):
        out[k] = item
    return out


def _write(path: Path, structs: dict[str, Any]) -> None:
    """Write structs completely or not at all."""
    from scipy.io import savemat

    if path.suffix != ".mat":
        raise ShapeError(f"MATLAB file: must end in .mat, got {path.name!r}")
    made = io.BytesIO()
    savemat(made, structs, do_compression=True, long_field_names=True)
    write_whole(path, lambda file: file.write(made.getbuffer()))
