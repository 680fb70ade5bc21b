"""Folders of motions that are damaged, or that come from somebody else."""

import json
import os
import pickle
import shutil
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from simulation.test_streams import Killed, arm, assert_same_motion

import lissom as ls
from lissom.simulation.streams import Stream


class Alarm:
    """What tells that it was unpickled."""

    def __reduce__(self):
        return (os.mkdir, (str(Path("unpickled").resolve()),))


def test_a_finished_motion_is_read_without_unpickling(tmp_path, monkeypatch):
    """Its folder may come from anybody: whatever the pickles hold is not run."""
    monkeypatch.chdir(tmp_path)
    found = ls.simulate(arm(), 0.02, u=[0.5], method="generalized_alpha", dt=1e-2, out=tmp_path / "out")
    (tmp_path / "out" / "arguments.pickle").write_bytes(pickle.dumps(Alarm()))
    assert_same_motion(ls.resume(tmp_path / "out"), found)
    assert not (tmp_path / "unpickled").exists()


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """The folder of a motion that was killed after some flushes."""
    folder = tmp_path_factory.mktemp("stopped") / "out"
    calls = []

    def law(t, q, v):
        calls.append(t)
        if len(calls) > 60:
            raise Killed
        return [0.3]

    with pytest.raises(Killed):
        ls.simulate(arm(), 0.1, method="generalized_alpha", dt=1e-3, controller=law, out=folder, flush=0)
    return folder


def states(text):
    """Damaged contents of run.json."""
    state = json.loads(text)
    yield from ("", "{", "null", "[]", "7", '"text"', "[" * 100_000, text[: len(text) // 2], "\x00" * 50, "\ud800")
    for key in state:
        yield json.dumps({name: value for name, value in state.items() if name != key})
        for value in (None, [], {}, "x", 7.5, -1, 10**30, True, "../../etc/passwd"):
            yield json.dumps(state | {key: value})


def test_a_damaged_state_of_a_run_is_named(stopped, tmp_path):
    """Whatever stands in run.json, what comes is a motion or an error of the library, of `resume` and of `load`."""
    folder = shutil.copytree(stopped, tmp_path / "out")
    text = (stopped / "run.json").read_text()
    for changed in states(text):
        (folder / "run.json").write_bytes(changed.encode("utf-8", "surrogatepass"))
        with suppress(ls.ShapeError):
            ls.Trajectory.load(folder)
        with suppress(ls.ModelError):
            Stream.open(folder)


@pytest.mark.parametrize("part", [0.0, 0.5, 0.95])
def test_damaged_files_of_a_run_are_named(stopped, tmp_path, part):
    """A file that is cut, missing, or a folder: the error names it, and nothing goes on from it."""
    for name in sorted(file.name for file in stopped.iterdir()):
        folder = shutil.copytree(stopped, tmp_path / f"{name} {part}")
        file = folder / name
        data = file.read_bytes()
        file.write_bytes(data[: int(part * len(data))])
        with pytest.raises(ls.ModelError, match=r"resume: .*"):
            ls.resume(folder)
        if name.endswith(".npy"):
            with pytest.raises(ls.ShapeError, match="is not a trajectory file"):
                ls.Trajectory.load(folder)


def test_an_array_of_objects_is_refused(stopped, tmp_path):
    """Mapping such a file would read addresses from it."""
    folder = shutil.copytree(stopped, tmp_path / "out")
    rows = len(np.load(stopped / "t.npy"))
    for kind in ("|O", "<f4", "|V8", ">f8"):
        with (folder / "q.npy").open("wb") as file:
            np.lib.format.write_array_header_1_0(file, {"descr": kind, "fortran_order": False, "shape": (rows, 2)})
            file.write(bytes(8 * 2 * rows))
        with pytest.raises(ls.ShapeError, match=r"is not a trajectory file .*q\.npy"):
            ls.Trajectory.load(folder)
