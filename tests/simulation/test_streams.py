"""Motions that stream to a folder: the same as without, bit for bit, however often they are killed and go on."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from dynamics.small_robots import describe_looped, describe_mixed

import lissom as ls
from lissom.cli.main import main
from lissom.simulation import external_integrators, streams
from lissom.simulation.streams import Stream

FIELDS = ("t", "q", "v", "a", "u", "multipliers", "z", "anchors")
pytestmark = pytest.mark.filterwarnings("ignore::lissom.RedundancyWarning", "ignore::lissom.StepWarning")


class Killed(BaseException):
    """What ends a motion in these tests, as a signal would."""


def arm():
    """A soft arm on a tendon."""
    robot = ls.Robot("arm")
    material = ls.Material(young=1e6, density=1000.0, viscosity=1e3)
    robot.add_link("arm", ls.Rod(0.3, ls.SectionCircle(0.01), ls.BasisLegendre(bending_y=1, bending_z=1), material))
    robot.add_tendon("up", "arm", (0.0, 0.008))
    return robot.build()


def block(**sticks):
    """A ball that falls on a floor, rolls, and may stick."""
    robot = ls.Robot("block")
    robot.add_link("ball", ls.RigidBody.sphere(0.05, density=500.0), ls.JointFree())
    law = {"stiffness": 1e4, "friction": 0.4, "damping": 0.3, "slip_speed": 0.05}
    robot.add_contact("floor", "ball", ls.ShapePlane(), **law, **sticks)
    return robot.build()


def sticking():
    """The same, which sticks."""
    return block(stick_stiffness=1e4)


def looped():
    """A rod and a finger in two loops."""
    return describe_looped().build()


def pushed():
    """An arm under a force of Python."""
    robot = ls.Robot("pushed")
    material = ls.Material(young=1e6, density=1000.0, viscosity=1e3)
    robot.add_link("arm", ls.Rod(0.3, ls.SectionCircle(0.01), ls.BasisLegendre(bending_y=1), material))
    robot.add_force("push", "arm", push, s=1.0)
    return robot.build()


def push(t, g, eta):
    """A force that follows the velocity."""
    return np.concatenate([np.zeros(3), -0.01 * eta[3:]])


class Counter:
    """A controller that counts its calls."""

    def __init__(self):
        self.calls = 0

    def __call__(self, t, q, v):
        self.calls += 1
        return [0.3 + 0.001 * self.calls]


def integral():
    """A controller with a state."""
    return ls.Controller(lambda t, q, v, z: 0.5 - z, lambda t, q, v, z: q[:1] - 0.1 * z, [0.0])


RISING = ls.Samples([0.0, 0.1, 0.3], [[0.0], [1.0], [0.5]])
FALL = {"q0": [1.0, 0, 0, 0, 0, 0, 0.06], "v0": [0, 3.0, 0, 0.2, 0, 0]}
CASES = {
    "fixed": (arm, 0.3, {"method": "generalized_alpha", "dt": 1e-3, "u": RISING}),
    "fixed-asked": (arm, 0.3, {"method": "bathe", "dt": 1e-3, "u": [0.5], "t_eval": np.linspace(0.1, 0.3, 7)}),
    "adaptive": (arm, 0.5, {"method": "esdirk", "rtol": 1e-11, "atol": 1e-12, "u": RISING}),
    "adaptive-asked": (arm, 0.5, {"method": "esdirk", "rtol": 1e-11, "atol": 1e-12, "t_eval": [0.1, 0.2, 0.5]}),
    "sampled": (arm, 0.1, {"method": "esdirk", "period": 0.01, "controller": integral}),
    "sampled-fixed": (arm, 0.1, {"method": "hht", "dt": 2e-3, "period": 0.01, "controller": Counter}),
    "feedback": (arm, 0.05, {"method": "generalized_alpha", "dt": 2e-3, "controller": integral}),
    "feedback-adaptive": (arm, 0.05, {"method": "esdirk", "controller": integral}),
    "python-forces": (pushed, 0.05, {"method": "esdirk", "dt": 2e-3}),
    "loops": (looped, 0.1, {"method": "generalized_alpha", "dt": 1e-3, "u": [3.0]}),
    "loops-adaptive": (looped, 0.15, {"method": "esdirk", "rtol": 1e-10, "atol": 1e-12, "u": [3.0]}),
    "poses": (lambda: describe_mixed().build(), 0.1, {"method": "esdirk", "dt": 1e-3}),
    "contact": (sticking, 0.2, {"method": "generalized_alpha", "dt": 1e-3, **FALL}),
    "contact-adaptive": (sticking, 0.2, {"method": "generalized_alpha", "rtol": 1e-6, **FALL}),
}
RESTARTED = {
    "bdf": (arm, 0.1, {"method": "bdf", "u": RISING}),
    "bdf-asked": (arm, 0.1, {"method": "bdf", "t_eval": np.linspace(0.0, 0.1, 11)}),
    "bdf-sampled": (arm, 0.05, {"method": "bdf", "period": 0.01, "controller": integral}),
    "bdf-loops": (looped, 0.02, {"method": "bdf", "u": [3.0]}),
    "bdf-contact": (block, 0.1, {"method": "bdf", **FALL}),
    "radau": (arm, 0.1, {"method": "radau", "t_eval": np.linspace(0.01, 0.1, 9)}),
    "dop853": (arm, 0.02, {"method": "dop853"}),
    "bdf-loops-given-time": (looped, 0.02, {"method": "bdf", "u": [3.0], "baumgarte_time": 0.05}),
    "radau-differences": (arm, 0.1, {"method": "radau", "jacobian": "differences"}),
}


def called(case):
    """Model, duration and options of a case, with a controller of its own."""
    make, duration, options = case
    made, model = {name: value() if name == "controller" else value for name, value in options.items()}, make()
    if model.n_rows:
        made["q0"] = ls.assemble(model, model.neutral())
    return model, duration, made


def killed_often(case, out, monkeypatch):
    """A motion that is killed at its first flush and at two later ones, and how often that was."""
    tell, count, kills = Stream._write_state, [0], 0

    def told(self, state):
        tell(self, state)
        if state["memory"] is not None and not state["is_finished"]:
            count[0] += 1
            if count[0] in (1, 4, 12):
                raise Killed

    monkeypatch.setattr(Stream, "_write_state", told)
    model, duration, options = called(case)
    begin = lambda: ls.simulate(model, duration, out=out, flush=0, **options)  # noqa: E731
    while True:
        try:
            return begin(), kills
        except Killed:
            kills += 1
            begin = lambda: ls.resume(out)  # noqa: E731


def assert_same_motion(a, b):
    """All fields of two trajectories are the same to the last bit, and so is their cost."""
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
    for name in ("method", "steps", "evaluations", "jacobians", "remark"):
        assert getattr(a.statistics, name) == getattr(b.statistics, name), name


@pytest.mark.parametrize("name", CASES)
def test_implicit_steps_go_on_bit_for_bit(name, tmp_path, monkeypatch):
    """Killed again and again, a motion is the one that was never written anywhere."""
    model, duration, options = called(CASES[name])
    plain = ls.simulate(model, duration, **options)
    found, kills = killed_often(CASES[name], tmp_path / "out", monkeypatch)
    assert kills >= 1
    assert_same_motion(found, plain)


@pytest.mark.parametrize("name", RESTARTED)
def test_methods_that_restart_continue_bit_for_bit(name, tmp_path, monkeypatch):
    """Killed again and again, a motion is the one that streamed without a stop, and within the tolerance the plain."""
    monkeypatch.setattr(external_integrators, "LEG", 20)
    model, duration, options = called(RESTARTED[name])
    plain = ls.simulate(model, duration, **options)
    model, duration, options = called(RESTARTED[name])
    whole = ls.simulate(model, duration, out=tmp_path / "whole", flush=0, **options)
    found, kills = killed_often(RESTARTED[name], tmp_path / "out", monkeypatch)
    assert kills >= 1
    assert_same_motion(found, whole)
    np.testing.assert_allclose(found.q[-1], plain.q[-1], rtol=1e-4, atol=1e-4)


def test_a_finished_motion_is_read_back(tmp_path):
    """Its arrays stay on the disk, any tool reads its files, and nothing is computed again."""
    model = arm()
    found = ls.simulate(model, 0.05, u=[0.5], method="generalized_alpha", dt=1e-3, out=tmp_path / "out")
    assert isinstance(found.q, np.memmap) and found.statistics.steps == 50
    np.testing.assert_array_equal(np.load(tmp_path / "out" / "q.npy"), found.q)
    before = (tmp_path / "out" / "run.json").stat().st_mtime_ns
    again = ls.resume(tmp_path / "out")
    assert_same_motion(again, found)
    assert (tmp_path / "out" / "run.json").stat().st_mtime_ns == before
    assert_same_motion(ls.Trajectory.load(tmp_path / "out"), found)
    again.save(tmp_path / "copy.npz")
    assert_same_motion(ls.Trajectory.load(tmp_path / "copy.npz"), found)


def test_memory_is_bounded(tmp_path, monkeypatch):
    """The data that wait for the disk do not grow with the motion; one launch gives the largest part."""
    monkeypatch.setattr(streams, "_MOST_BYTES", 2**12)
    largest, append = [0], Stream._append

    def appended(self, model):
        largest[0] = max(largest[0], self.bytes)
        append(self, model)

    monkeypatch.setattr(Stream, "_append", appended)
    sizes = []
    for duration in (1.5, 6.0):
        largest[0] = 0
        ls.simulate(arm(), duration, method="generalized_alpha", dt=1e-3, out=tmp_path / str(duration), flush=1e9)
        sizes.append(largest[0])
    assert sizes[0] == sizes[1] > 0


def test_a_failure_leaves_what_there_is(tmp_path):
    """The error carries the motion so far; going on fails at the same place."""
    options = {"method": "generalized_alpha", "dt": 1e-3, "controller": lambda t, q, v: [0.1 if t < 0.02 else 1e9]}
    with pytest.raises(ls.ConvergenceError, match=r"stopped at t=0\.02") as first:
        ls.simulate(arm(), 0.1, out=tmp_path / "out", flush=0, **options)
    assert first.value.partial.t[-1] == pytest.approx(0.02, abs=2e-3)
    with pytest.raises(ls.ConvergenceError) as second:
        ls.resume(tmp_path / "out")
    assert str(second.value) == str(first.value)
    assert_same_motion(second.value.partial, first.value.partial)


def test_a_full_disk(tmp_path):
    """Where the system takes no larger files, flushed data stay, and the motion goes on when there is room."""
    resource = pytest.importorskip("resource", reason="the system limits no files")
    limits, options = resource.getrlimit(resource.RLIMIT_FSIZE), {"method": "generalized_alpha", "dt": 1e-3, "u": [0.5]}
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (80_000, limits[1]))
        with pytest.raises(OSError, match="File too large"):
            ls.simulate(arm(), 3.0, out=tmp_path / "out", flush=0, **options)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    there, plain = ls.Trajectory.load(tmp_path / "out"), ls.simulate(arm(), 3.0, **options)
    assert 0 < len(there.t) < 3001
    np.testing.assert_array_equal(there.q, plain.q[: len(there.t)])
    assert_same_motion(ls.resume(tmp_path / "out"), plain)


def test_what_is_wrong_with_a_stream(tmp_path):
    """A folder that holds a motion, one that holds none, a batch, a time that is none."""
    model = arm()
    options = {"method": "generalized_alpha", "dt": 1e-2}
    ls.simulate(model, 0.02, out=tmp_path / "out", **options)
    with pytest.raises(ls.ModelError, match=r"out: the folder holds a motion; continue it by resume \(got"):
        ls.simulate(model, 0.02, out=tmp_path / "out", **options)
    with pytest.raises(ls.ModelError, match=r"resume: the folder must hold a motion .*\(got"):
        ls.resume(tmp_path)
    state = (tmp_path / "out" / "run.json").read_text()
    (tmp_path / "out" / "run.json").write_text(state.replace(ls.__version__, "0.0.1"))
    with pytest.raises(ls.ModelError, match=r"version of lissom that began it, 0\.0\.1 \(got "):
        ls.resume(tmp_path / "out")
    with pytest.raises(ls.ShapeError, match=r"out: takes one motion, got a batch of shape \(3,\)"):
        ls.simulate(model, 0.02, np.zeros((3, model.nq)), t_eval=[0.02], out=tmp_path / "b", **options)
    with pytest.raises(ls.ModelError, match=r"flush: must be >= 0 \(got -1\)"):
        ls.simulate(model, 0.02, out=tmp_path / "b", flush=-1, **options)
    assert not (tmp_path / "b").exists()


LONG = """
import lissom as ls
from pathlib import Path
model = ls.load_robot({robot!r}).build()
ls.simulate(model, 1e4, u=[1.0, 0, 0, 0, 0], method="generalized_alpha", dt=1e-3, out={out!r}, flush=0.05)
"""


def test_a_process_that_is_killed(tmp_path):
    """After SIGKILL the motion goes on where it was flushed last, and is the one of a process that was not killed."""
    robot = str(Path(__file__).parents[2] / "examples" / "robots" / "cdm.yaml")
    out = tmp_path / "out"
    script = LONG.format(robot=robot, out=str(out))
    there = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen([sys.executable, "-c", script], env=there)
    until = time.monotonic() + 60.0
    while not (out / "run.json").exists() or json.loads((out / "run.json").read_text())["rows"] < 500:
        assert process.poll() is None and time.monotonic() < until
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    known = json.loads((out / "run.json").read_text())
    assert not known["is_finished"] and known["memory"]
    stream = Stream.open(out)
    stream.arguments["duration"] = known["rows"] * 1e-3 + 0.2
    from lissom.simulation.simulate import _simulated

    found = _simulated(stream, False, **stream.arguments)
    model = ls.load_robot(robot).build()
    options = {"u": [1.0, 0, 0, 0, 0], "method": "generalized_alpha", "dt": 1e-3}
    plain = ls.simulate(model, stream.arguments["duration"], **options)
    assert len(found.t) > known["rows"]
    np.testing.assert_array_equal(found.q, plain.q)


def test_the_command_line_goes_on(tmp_path, monkeypatch, capsys):
    """`simulate --stream`, interrupted, and `simulate --resume` leave what an uninterrupted one does."""
    robot = str(Path(__file__).parents[2] / "examples" / "robots" / "cdm.yaml")
    common = ["simulate", robot, "--duration", "0.3", "--method", "generalized_alpha", "--dt", "0.001", "--stream"]
    assert main([*common, "--out", str(tmp_path / "whole"), "--quiet"]) == 0
    monkeypatch.setattr(streams, "_MOST_BYTES", 0)
    tell, count = Stream._write_state, [0]

    def told(self, state):
        tell(self, state)
        count[0] += 1
        if count[0] == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(Stream, "_write_state", told)
    assert main([*common, "--out", str(tmp_path / "out"), "--quiet"]) == 130
    assert main(["simulate", "--resume", str(tmp_path / "out")]) == 0
    assert "0.3 s in 300 steps, 301 rows" in capsys.readouterr().out
    assert_same_motion(*(ls.Trajectory.load(tmp_path / name / "motion") for name in ("out", "whole")))
    with pytest.raises(SystemExit):
        main(["simulate"])
    assert "needs a robot file and --out, or --resume" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["q.npy", "run.json", "arguments.pickle", "notes.txt"])
def test_a_folder_with_other_files_is_left_as_it_is(tmp_path, name):
    """A motion is written to a new or an empty folder; files of the user are not replaced."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / name).write_text("mine")
    for out in (tmp_path / "mine", tmp_path / "mine" / name):
        with pytest.raises(ls.ModelError, match="out: must be a new"):
            ls.simulate(arm(), 0.01, method="generalized_alpha", dt=1e-2, out=out)
    assert [(path.name, path.read_text()) for path in (tmp_path / "mine").iterdir()] == [(name, "mine")]
    (tmp_path / "empty").mkdir()
    found = ls.simulate(arm(), 0.01, method="generalized_alpha", dt=1e-2, out=tmp_path / "empty")
    assert len(found.t) == 2
