"""Every reader of files, given damaged ones: they return the contents of the file, or raise an error of the library or
an OSError.

Files are cut, emptied, filled with random bytes, and changed in places; a bare exception of whatever parses them is a
defect, since it names neither the file nor what to do.
"""

import random
import shutil
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import lissom as ls
from lissom.cli.common import state_of
from lissom.io.text_files import read_inputs
from lissom.simulation.streams import Stream
from lissom.sweeps.sweep import load_study

EXAMPLES = Path(__file__).parents[2] / "examples"
BALL = '<mujoco><worldbody><body name="b"><freejoint/><geom size="0.1"/></body></worldbody></mujoco>'
OBJ = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
PLY = """ply
format ascii 1.0
element vertex 3
property float x
property float y
property float z
element face 1
property list uchar int vertex_indices
end_header
0 0 0
1 0 0
0 1 0
3 0 1 2
"""
MSH = """$MeshFormat
2.2 0 8
$EndMeshFormat
$Nodes
4
1 0 0 0
2 1 0 0
3 0 1 0
4 0 0 1
$EndNodes
$Elements
1
1 4 2 1 1 1 2 3 4
$EndElements
"""


def rod():
    """A soft rod on a tendon."""
    robot = ls.Robot("rod")
    material = ls.Material(young=1e6, density=1000.0, viscosity=1e3)
    robot.add_link("rod", ls.Rod(0.3, ls.SectionCircle(0.01), ls.BasisLegendre(bending_y=1), material))
    robot.add_tendon("up", "rod", (0.0, 0.008))
    return robot.build()


@pytest.fixture(scope="module")
def model():
    """Its model."""
    return rod()


@pytest.fixture(scope="module")
def whole(model, tmp_path_factory):
    """A folder with one good file for each reader."""
    folder = tmp_path_factory.mktemp("whole")
    shutil.copy(EXAMPLES / "robots" / "hybrid_arm.yaml", folder / "robot.yaml")
    shutil.copy(Path(__file__).parent / "robots" / "ur10e.xml", folder / "robot.xml")
    (folder / "ball.xml").write_text(BALL)
    (folder / "mesh.obj").write_text(OBJ)
    (folder / "mesh.ply").write_text(PLY)
    (folder / "mesh.msh").write_text(MSH)
    corners, sides = (
        np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]),
        [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]],
    )
    rows = np.zeros(4, [("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("more", "<u2")])
    rows["corners"] = corners[sides]
    (folder / "mesh.stl").write_bytes(bytes(80) + np.uint32(4).tobytes() + rows.tobytes())
    links = '<link name="a"/><link name="b"/>'
    joint = '<joint name="j" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/></joint>'
    (folder / "robot.urdf").write_text(f'<?xml version="1.0"?><robot name="r">{links}{joint}</robot>')
    (folder / "inputs.csv").write_text("t,up\n0,1\n0.5,2\n1,0\n")
    study = "robot: robot.yaml\nparameters:\n  a: {low: 0, high: 1}\nsamples: {kind: sobol, count: 4}\n"
    (folder / "study.yaml").write_text(study + "statics: {results: [q]}\n")
    motion = ls.simulate(model, 0.02, u=[0.1], method="generalized_alpha", dt=1e-2, out=folder / "motion")
    for ending in ("npz", "csv"):
        motion.save(folder / f"motion.{ending}")
    np.savez(folder / "equilibrium.npz", q=np.zeros(model.nq), v=np.zeros(model.nv), u=np.zeros(model.nu))
    if find_spec("pyarrow"):
        ls.sweep(lambda trial: {"y": np.ones(3)}, {"x": [1.0, 2.0]}, out=folder / "sweep", workers=1)
    return folder


def sweep_of(path):
    """All contents of a folder of a sweep."""
    found = ls.SweepResults.load(path)
    return [found[name] for name in found.names], found.units, found.failures, found.is_complete


READERS = {
    "robot.yaml": lambda path, model: ls.load_robot(path),
    "study.yaml": lambda path, model: load_study(path),
    "robot.urdf": lambda path, model: ls.load_urdf(path),
    "robot.xml": lambda path, model: ls.load_mjcf(path),
    "ball.xml": lambda path, model: ls.load_mjcf(path),
    "inputs.csv": lambda path, model: read_inputs(path, ["up"]),
    "motion.npz": lambda path, model: repr(ls.Trajectory.load(path)),
    "motion.csv": lambda path, model: repr(ls.Trajectory.load(path)),
    "equilibrium.npz": state_of,
    "mesh.stl": lambda path, model: ls.Mesh(file=str(path)).surface(),
    "mesh.obj": lambda path, model: ls.Mesh(file=str(path)).surface(),
    "mesh.ply": lambda path, model: ls.Mesh(file=str(path)).surface(),
    "mesh.msh": lambda path, model: ls.DomainTetrahedra.load(path).check("mesh"),
    "motion/run.json": lambda path, model: (ls.Trajectory.load(path.parent), Stream.open(path.parent)),
    "motion/q.npy": lambda path, model: np.array(ls.Trajectory.load(path.parent).q),
    "motion/multipliers.npy": lambda path, model: ls.Trajectory.load(path.parent),
    "sweep/sweep.json": lambda path, model: sweep_of(path.parent),
    "sweep/chunks": lambda path, model: sweep_of(path.parents[1]),
}
OPTIONAL = {"robot.xml": "mujoco", "ball.xml": "mujoco", "mesh.msh": "meshio", "mesh.stl": "trimesh",
            "mesh.obj": "trimesh", "mesh.ply": "trimesh", "sweep/sweep.json": "pyarrow",
            "sweep/chunks": "pyarrow"}  # fmt: skip


def damaged(chance, data):
    """Bytes in place of a file's, each time damaged in another way."""
    kind = chance.randrange(6)
    at = sorted(chance.randrange(len(data) + 1) for _ in range(2))
    if kind == 0:
        return data[: at[0]]
    if kind == 1:
        return data[: at[0]] + data[at[1] :]
    if kind == 2:
        return data[: at[0]] + bytes(at[1] - at[0]) + data[at[1] :]
    if kind == 3:
        return chance.randbytes(chance.choice((1, 10, 1000)))
    out = bytearray(data)
    for _ in range(chance.choice((1, 1, 4, 30))):
        out[chance.randrange(len(out))] = chance.randrange(256)
    if kind == 4:
        return bytes(out)
    words = (b"1e999", b"nan", b"-1", b"99999999999999999999", b"\x00", b"\xff\xfe", b'"', b"[", b"{", b"\n", b"1e300")
    return data[: at[0]] + chance.choice(words) + data[at[0] :]


def tries(name, whole, model, folder, count):
    """What came out of damaged files besides results and errors of the library."""
    wrong, chance = [], random.Random(name)
    place = shutil.copytree(whole, folder / "all") / name
    if place.is_dir():
        place = sorted(place.iterdir())[0]
    data = place.read_bytes()
    for k in range(count):
        changed = (b"", b"\x00", b"\n", data[: len(data) // 2])[k] if k < 4 else damaged(chance, data)
        place.write_bytes(changed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                READERS[name](place, model)
            except (ls.ModelError, ls.ShapeError, OSError) as error:
                assert str(error)
            except Exception as error:
                wrong.append((k, repr(error)[:300], changed[:200]))
    return wrong


@pytest.mark.parametrize("name", READERS)
def test_damaged_files(name, whole, model, tmp_path):
    """A sample of the cases of the slow test."""
    pytest.importorskip(OPTIONAL.get(name, "numpy"))
    assert not tries(name, whole, model, tmp_path, 60 if name != "robot.yaml" else 15)


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_many_damaged_files(name, whole, model, tmp_path):
    """The same, two thousand times each."""
    pytest.importorskip(OPTIONAL.get(name, "numpy"))
    assert not tries(name, whole, model, tmp_path, 2000 if name != "robot.yaml" else 200)
