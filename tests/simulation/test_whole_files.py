"""Every file that the library writes is there whole or not at all, whatever stops the writing."""

import os
import stat
import subprocess
import sys

import numpy as np
import pytest
from dynamics.small_robots import pendulum

import lissom as ls
from lissom import portable
from lissom.io.text_files import read_inputs
from lissom.portable import NEW, write_whole


@pytest.fixture(scope="module")
def motion():
    """A short motion."""
    return ls.simulate(pendulum(), 0.02, q0=[0.3], t_eval=[0.0, 0.01, 0.02])


def picture(motion, path):
    """Write a picture of the motion."""
    ls.render(motion.model, motion.q[0], path, size=(64, 48))


def film(motion, path):
    """Write a film of the motion."""
    motion.animate(path, fps=100.0, size=(64, 48))


WRITERS = {
    "m.npz": lambda motion, path: motion.save(path),
    "m.csv": lambda motion, path: motion.save(path),
    "table.csv": lambda motion, path: motion.to_csv(path),
    "m.h5": lambda motion, path: motion.to_hdf5(path),
    "m.rrd": lambda motion, path: motion.to_rerun(path),
    "graph.png": lambda motion, path: ls.plot_trajectory(motion.model, motion, path=path),
    "picture.png": picture,
    "film.gif": film,
    "film.mp4": film,
    "robot.yaml": lambda motion, path: ls.save_robot(motion.model.description, path),
}
DRAWN = {"picture.png", "film.gif", "film.mp4"}  # by OpenGL


@pytest.mark.parametrize("name", [pytest.param(x, marks=[pytest.mark.graphics] * (x in DRAWN)) for x in WRITERS])
def test_a_file_that_cannot_be_finished_leaves_the_old_one(motion, name, tmp_path, monkeypatch):
    """The disk refuses at the last moment: the old file stays, and nothing lies beside it. Without that, the new one
    takes its place, with the permissions of the old one."""
    path = tmp_path / name
    path.write_text("old")
    path.chmod(0o600)

    def refused(_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", refused)
        with pytest.raises(OSError, match="No space"):
            WRITERS[name](motion, path)
    assert path.read_text() == "old" and os.listdir(tmp_path) == [name]
    WRITERS[name](motion, path)
    assert path.read_bytes() != b"old" and os.listdir(tmp_path) == [name]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


FULL = """
import resource, sys
import numpy as np
import lissom as ls
from dynamics.small_robots import pendulum
from lissom.simulation.trajectory import Statistics, Trajectory
x, none = np.zeros((5000, 1)), np.zeros((5000, 0))
motion = Trajectory(x[:, 0], x, x, x, x, none, none, Statistics("none", 0, 0, 0, 0.0))
model = pendulum()
ls.frame_pose(model, x, model.links.names[0])  # compiles
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
for name, writer in (arg.split("=") for arg in sys.argv[2:]):
    try:
        getattr(motion, writer)(f"{sys.argv[1]}/{name}", **({} if writer == "save" else {"model": model}))
    except OSError as error:
        print(name, type(error).__name__)
"""


def test_a_full_disk(tmp_path):
    """A limit of the system on the size of files stands for a full disk: an OSError, and the old file is there.

    HDF5 and rerun write past Python, where nothing reports a full disk or the process ends."""
    pytest.importorskip("resource", reason="the system limits no files")
    writers = {"m.npz": "save", "m.csv": "save", "t.csv": "to_csv", "m.h5": "to_hdf5", "m.rrd": "to_rerun"}
    for name in writers:
        (tmp_path / name).write_text("old")
    here = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", FULL, tmp_path, *(f"{name}={writer}" for name, writer in writers.items())]
    done = subprocess.run(command, env=here, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"{name} OSError" for name in writers]
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == dict.fromkeys(writers, "old")


def test_nobody_guesses_the_name_of_the_file_that_is_written(tmp_path):
    """Two files are written under different names, which did not exist before: a link there is not followed."""
    seen = []

    def write(file):
        seen.append(file.name)
        file.write(b"new")

    for _ in range(2):
        write_whole(tmp_path / "file", write)
    assert seen[0] != seen[1] and all(len(name.rpartition(NEW)[2]) >= 16 for name in seen)
    victim, taken = tmp_path / "victim", tmp_path / f"file{NEW}0"
    victim.write_text("old")
    taken.symlink_to(victim)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(portable, "token_hex", lambda _: "0")
        with pytest.raises(FileExistsError):
            write_whole(tmp_path / "file", write)
    assert victim.read_text() == "old" and taken.is_symlink()


NAMES = ["=HYPERLINK(1)", "+1", "-x", "@SUM(1)", "plain", "a=b"]


def test_names_are_no_formulas_of_spreadsheets(tmp_path):
    """Names that a spreadsheet would take for formulas begin with an apostrophe, and are read back without it."""
    robot = ls.Robot("arm")
    for k, name in enumerate(NAMES):
        link = f"={k}" if name != "plain" else "tip"
        robot.add_link(link, ls.RigidBody(1.0, inertia=(1, 1, 1)), ls.JointRevolute())
        robot.add_joint_actuator(name, link)
    model = robot.build()
    motion = ls.simulate(model, 0.02, t_eval=[0.0, 0.01, 0.02], u=np.arange(6.0))
    motion.to_csv(tmp_path / "m.csv")
    cells = (tmp_path / "m.csv").read_text().splitlines()[0].split(",")
    assert not any(cell[0] in "=+-@" for cell in cells)
    assert cells[1:7] == ["'=HYPERLINK(1)", "'+1", "'-x", "'@SUM(1)", "plain", "a=b"]
    assert "'=0.x" in cells and "tip.x" in cells
    rows = [",".join(line.split(",")[:7]) for line in (tmp_path / "m.csv").read_text().splitlines()]
    (tmp_path / "u.csv").write_text("\n".join(rows))
    np.testing.assert_array_equal(read_inputs(tmp_path / "u.csv", model.inputs.names).u, motion.u)


def test_links_and_devices_are_written_through(tmp_path):
    """A symbolic link stays one, and a pipe is not replaced by a file."""
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    write_whole(link, lambda file: file.write(b"new"))
    assert link.is_symlink() and target.read_bytes() == b"new"
    read, write = os.pipe()
    write_whole(type(link)(f"/dev/fd/{write}"), lambda file: file.write(b"told"))
    assert os.read(read, 10) == b"told"
    os.close(read)
    os.close(write)


def test_two_threads_write_one_file(tmp_path):
    """Each writes beside the file under a name of its own, and the final file is that of one of them."""
    from threading import Barrier, Thread

    path, both = tmp_path / "file", Barrier(2)

    def write(letter):
        def put(file):
            both.wait()
            file.write(letter * 100_000)
            both.wait()

        write_whole(path, put)

    threads = [Thread(target=write, args=[letter]) for letter in (b"a", b"b")]
    _ = [thread.start() for thread in threads], [thread.join() for thread in threads]
    assert np.unique(np.frombuffer(path.read_bytes(), np.uint8)).size == 1
    assert not list(tmp_path.glob(f"*{NEW}*"))
