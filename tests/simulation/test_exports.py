"""Motions for other programs: the exported numbers are those of the model, at every time and for every tip."""

import csv
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

import lissom as ls
from lissom.simulation.trajectory import Statistics

TIMES = np.array([0.0, 0.25, 1.0])


@pytest.fixture(scope="module")
def moved():
    """A model of a turning body with a rod and a frame on it, and a motion of it."""
    robot = ls.Robot("waving arm")
    ball = ls.RigidBody.sphere(0.05, density=1000)
    robot.add_link("upper arm", ball, ls.JointRevolute((0, 1, 0)))
    rod = ls.Rod(0.2, ls.SectionCircle(0.01), ls.BasisLegendre(bending_y=1), ls.Material(young=1e6, density=1000))
    robot.add_link("finger", rod, parent="upper arm")
    robot.add_frame("mark", "upper arm", placement=[[1, 0, 0, 0.1], [0, 0, -1, 0], [0, 1, 0, 0], [0, 0, 0, 1]])
    mesh = ls.Mesh.of_shape(ls.ShapeBox(0.1, 0.1, 0.1), color=(1, 0, 0, 1))
    robot.add_link("plate", ls.RigidBody(0.1, inertia=(1e-4,) * 3, meshes=(mesh,)), parent="upper arm")
    robot.add_joint_actuator("motor", "upper arm")
    robot.add_tendon("t/1", "finger", (0.0, 0.008))
    model = robot.build()
    rng = np.random.default_rng(1)
    q, v, a = rng.uniform(-1, 1, (3, 3, model.nq))
    u = rng.uniform(0, 1, (3, 2))
    return model, ls.Trajectory(TIMES, q, v, a, u, np.zeros((3, 0)), np.zeros((3, 0)), Statistics("test", 3, 3, 0, 0.1))


def turned(quaternion):
    """The rotation of a quaternion (w, x, y, z)."""
    w, x, y, z = quaternion
    W = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + 2 * w * W + 2 * W @ W


def test_csv_holds_inputs_and_tips(moved, tmp_path):
    """Purpose: a row for each time has the inputs by name and the poses of tips and frames as the model has them."""
    model, motion = moved
    motion.to_csv(tmp_path / "a.csv", model=model)
    with (tmp_path / "a.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert [float(row["t"]) for row in rows] == TIMES.tolist()
    for k, row in enumerate(rows):
        assert (float(row["motor"]), float(row["t/1"])) == tuple(motion.u[k])
        for name in ("finger", "plate", "mark"):
            pose = ls.frame_pose(model, motion.q[k], name)
            assert [float(row[f"{name}.{x}"]) for x in "xyz"] == pytest.approx(pose[:3, 3].tolist(), abs=1e-15)
            quaternion = [float(row[f"{name}.q{x}"]) for x in "wxyz"]
            assert turned(quaternion) == pytest.approx(pose[:3, :3], abs=1e-14) and quaternion[0] >= 0.0
    assert len(rows[0]) == 3 + 3 * 7
    replace(motion, model=model).to_csv(tmp_path / "b.csv", frames=["upper arm"])
    header = (tmp_path / "b.csv").read_text(encoding="utf-8").splitlines()[0]
    assert header == "t,motor,t/1," + ",".join(f"upper arm.{x}" for x in ("x", "y", "z", "qw", "qx", "qy", "qz"))


def test_hdf5_holds_everything(moved, tmp_path):
    """Purpose: arrays are the trajectory's to the last bit, batches too, with names of inputs and tips."""
    model, one = moved
    both = {name: np.stack([getattr(one, name)] * 2) for name in ("q", "v", "a", "u", "multipliers", "z")}
    for motion in (one, ls.Trajectory(one.t, **both, statistics=one.statistics)):
        motion.to_hdf5(tmp_path / "a.h5", model=model)
        with h5py.File(tmp_path / "a.h5") as file:
            for name in ("t", "q", "v", "a", "u", "multipliers", "z"):
                np.testing.assert_array_equal(file[name][()], getattr(motion, name))
            assert list(file["u"].attrs["names"]) == ["motor", "t/1"] and file.attrs["robot"] == "waving arm"
            assert {tip.attrs["name"] for tip in file["tips"].values()} == {"finger", "plate", "mark"}
            pose = ls.frame_pose(model, motion.q, "finger")
            np.testing.assert_array_equal(file["tips/finger/position"][()], pose[..., :3, 3])
            assert file["tips/finger/quaternion"].shape == (*pose.shape[:-2], 4)


def test_rerun_reads_the_recording(moved, tmp_path):
    """Purpose: rerun's own reader finds inputs, tips, bodies and rods with the numbers of the model at all times."""
    model, motion = moved
    motion.to_rerun(tmp_path / "a.rrd", model=model)
    rerun = Path(sys.executable).with_name("rerun")
    done = subprocess.run(
        [rerun, "rrd", "print", "-vvv", tmp_path / "a.rrd"], capture_output=True, text=True, check=True
    )
    chunks = {}
    for text in done.stdout.split("Chunk(")[1:]:
        path = re.search(r"entity_path: (\S.*?) +│", text)[1]
        chunks[path] = chunks.get(path, "") + text
    shown = {path.replace("\\", "") for path in chunks}
    assert {"/inputs/motor", "/inputs/t/1", "/tips/finger", "/tips/mark", "/robot/upper arm", "/robot/plate/mesh 0",
            "/robot/finger", "/robot/upper arm/ellipsoid"} <= shown  # fmt: skip
    assert all(f"[{u!r}]" in chunks["/inputs/motor"] for u in motion.u[:, 0].tolist())
    for word in ("P0D", "PT0.25S", "PT1S"):
        assert all(word in chunks[path] for path in ("/inputs/motor", "/tips/finger", "/robot/finger"))
    found = re.findall(r"\[\[(-?[\d.e-]+), (-?[\d.e-]+), (-?[\d.e-]+)\]\]", chunks["/tips/finger"])
    tips = ls.frame_pose(model, motion.q, "finger")[:, :3, 3]
    np.testing.assert_allclose(np.array(found, dtype=float), tips, atol=1e-6)


def test_what_does_not_fit_is_refused(moved, tmp_path):
    """Purpose: a motion of another model, a batch in a table, and an unknown frame are named."""
    model, motion = moved
    other = ls.Robot("other")
    other.add_link("a", ls.RigidBody(1.0), ls.JointPrismatic())
    with pytest.raises(ls.ShapeError, match="trajectory: has nq=3, nv=3, nu=2, and model 'other' nq=1"):
        motion.to_csv(tmp_path / "a.csv", model=other.build())
    batch = ls.Trajectory(motion.t, *(np.stack([x] * 2) for x in (motion.q, motion.v, motion.a, motion.u)),
                          np.zeros((2, 3, 0)), np.zeros((2, 3, 0)), motion.statistics)  # fmt: skip
    for write in (batch.to_csv, batch.to_rerun):
        with pytest.raises(ls.ShapeError, match="holds one motion, got a batch of shape"):
            write(tmp_path / "a.csv", model=model)
    with pytest.raises(ls.ModelError, match="does not hold its model; give model="):
        motion.to_csv(tmp_path / "a.csv")
    with pytest.raises(ls.ModelError, match="nowhere"):
        motion.to_hdf5(tmp_path / "a.h5", model=model, frames=["nowhere"])


def test_matlab_reads_motions_and_models(moved, tmp_path):
    """Purpose: the structs of .mat files have the arrays, names as cells, indices from 1, and poses with their two axes
    first; the matrices of a model balance with inverse dynamics."""
    from scipy.io import loadmat

    model, motion = moved
    motion.to_mat(tmp_path / "a.mat", model=model)
    found = loadmat(tmp_path / "a.mat", simplify_cells=True)
    for name in ("q", "v", "a", "u"):
        np.testing.assert_array_equal(found["motion"][name], getattr(motion, name))
    np.testing.assert_array_equal(found["motion"]["t"], TIMES)
    assert loadmat(tmp_path / "a.mat")["motion"]["t"][0, 0].shape == (3, 1)  # a column, as MATLAB's solvers return it
    tips = dict(zip(found["motion"]["tips"], found["motion"]["poses"]))
    for name in ("finger", "plate", "mark"):
        expected = np.array([ls.frame_pose(model, q, name) for q in motion.q])
        np.testing.assert_allclose(np.moveaxis(tips[name], -1, 0), expected, rtol=0, atol=1e-15)
    assert found["robot"]["links"].tolist() == list(model.links.names)
    assert found["robot"]["inputs"].tolist() == ["motor", "t/1"] and found["motion"]["statistics"]["steps"] == 3
    assert found["robot"]["q_start"].tolist() == [k + 1 for k in model.links.q_start]
    q, u = motion.q[1], np.array([0.3, 2.0])
    ls.save_mat(model, tmp_path / "m.mat", q)
    at = loadmat(tmp_path / "m.mat", simplify_cells=True)["at"]
    a = np.linalg.solve(at["M"], at["B"] @ u + at["F"] - at["K"] @ q)
    np.testing.assert_allclose(a, ls.forward_dynamics(model, q, 0 * q, u), rtol=1e-9)
    for write in (lambda path: motion.to_mat(path, model=model), lambda path: ls.save_mat(model, path)):
        with pytest.raises(ls.ShapeError, match=r"must end in \.mat"):
            write(tmp_path / "a.csv")
    with pytest.raises(ls.ModelError, match="does not hold its model"):
        motion.to_mat(tmp_path / "b.mat")
