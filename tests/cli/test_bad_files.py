"""Dangerous files and arguments: files without end, names that steer a terminal, numbers beyond memory."""

import subprocess
import sys

import numpy as np
import pytest
from cli.small_robot import SMALL, write

import lissom as ls
from lissom.cli.main import main

STUDY = "robot: small.yaml\nparameters:\n  u.up: [0, 1]\nstatics: {results: [q]}\n"
ESCAPE = "\x1b]0;owned\x07"


@pytest.fixture
def small(tmp_path):
    """The file of a robot."""
    return write(tmp_path / "small.yaml", SMALL)


@pytest.mark.parametrize("command", [["check"], ["info"], ["sweep", "--out", "o"], ["simulate", "--out", "o"]])
def test_a_file_without_end_is_refused(command, tmp_path, monkeypatch, capsys):
    """/dev/zero is read up to the largest size of a description only."""
    monkeypatch.chdir(tmp_path)
    assert main([*command, "/dev/zero"]) == 2
    told = capsys.readouterr().err
    assert told.startswith("error: /dev/zero: must hold at most 64 MiB")


@pytest.mark.parametrize("load", [ls.load_robot, ls.load_urdf, ls.load_mjcf])
def test_readers_end(load):
    """Every reader of a description refuses /dev/zero."""
    with pytest.raises((ls.ModelError, OSError), match="/dev/zero"):
        load("/dev/zero")


def test_inputs_without_end_are_refused(small, tmp_path, monkeypatch, capsys):
    """The table of inputs has a largest size too."""
    monkeypatch.setattr("lissom.io.text_files._MOST_INPUT_BYTES", 2**20)
    given = ["--inputs", "/dev/zero", "--out", str(tmp_path / "o")]
    assert main(["simulate", str(small), *given]) == 2
    assert "/dev/zero: must hold at most 1 MiB" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text",
    [
        SMALL.replace("name: arm", 'name: "\\e]0;owned\\a"', 1),
        SMALL.replace("name: up", 'name: "up\\e[31m"'),
        SMALL.replace("name: up", 'name: "up\\nwrote all"'),
        SMALL.replace("name: small", 'name: "\\e]0;owned\\a"'),
        SMALL + '"\\e]0;owned\\a": 1\n',
        SMALL + 'frames: [{name: f, link: "\\e]0;owned\\a"}]\n',
    ],
)
@pytest.mark.parametrize("command", ["check", "info"])
def test_names_cannot_steer_a_terminal(command, text, tmp_path, capsys):
    """Names with control characters are refused, and messages show the characters escaped."""
    assert main([command, str(write(tmp_path / "robot.yaml", text))]) == 2
    told = capsys.readouterr()
    shown = (told.out + told.err).replace("\n", "")
    assert shown.isprintable() and ("\\x1b" in shown or "\\n" in shown), shown


def test_names_of_files_cannot_either(tmp_path, capsys):
    """`lissom check` escapes control characters in names of files that are right, doubtful or wrong."""
    for text in (SMALL, SMALL.replace("density: 1000", "density: 1"), SMALL + "links: 1\n", SMALL + "nothing: 1\n"):
        main(["check", str(write(tmp_path / f"{ESCAPE}.yaml", text))])
        told = capsys.readouterr()
        shown = (told.out + told.err).replace("\n", "")
        assert shown.isprintable() and "\\x1b" in shown, shown


def test_keys_of_a_study_cannot_either(small, tmp_path, capsys):
    """Messages on study files escape control characters in keys and parameters."""
    for text in (STUDY + '"\\e]0;owned\\a": 1\n', STUDY.replace("u.up", '"u.\\e]0;owned\\a"')):
        assert main(["sweep", str(write(tmp_path / "study.yaml", text)), "--out", str(tmp_path / "o")]) == 2
        told = capsys.readouterr().err.replace("\n", "")
        assert told.isprintable() and "\\x1b" in told


@pytest.mark.parametrize("add", [lambda r, name: r.add_link(name), lambda r, name: r.add_frame(name, "a")])
def test_python_refuses_such_names_too(add):
    """Robot.add_link and others refuse control characters at once, with the name escaped."""
    robot = ls.Robot("r")
    robot.add_link("a", ls.RigidBody(1.0))
    with pytest.raises(ls.ModelError, match=r"name: must hold letters that can be shown.*\(got '\\x1b"):
        add(robot, ESCAPE)
    robot.name = ESCAPE
    with pytest.raises(ls.ModelError, match="robot: name: must hold letters"):
        robot.build()


@pytest.mark.parametrize(
    "command",
    [["simulate", "--duration", "1", "--samples", "999999999999"], ["continuation", "--points", "999999999999"]],
)
def test_numbers_beyond_memory_end_with_usage(small, tmp_path, capsys, command):
    """argparse refuses numbers that are too large, with the option and the limit."""
    with pytest.raises(SystemExit):
        main([*command, str(small), "--out", str(tmp_path / "o")])
    assert "must be from 2 to 10,000,000 (got 999999999999)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ("samples: {kind: sobol, count: 999999999999}\n", "count: must be at most 10000000"),
        ("samples: {kind: grid}\n", "steps: must be at most 10000000"),
    ],
)
def test_sweeps_beyond_memory_are_refused(small, tmp_path, capsys, given, rule):
    """Sweeps with too many samples are refused before anything is computed."""
    span = "{low: 0, high: 1, steps: 999999999999}" if "grid" in given else "{low: 0, high: 1}"
    study = write(tmp_path / "study.yaml", STUDY.replace("[0, 1]", span) + given)
    assert main(["sweep", str(study), "--out", str(tmp_path / "o")]) == 2
    assert rule in capsys.readouterr().err


def test_grids_beyond_memory_are_refused(tmp_path):
    """A grid of two ranges that are each small enough is refused if it has too many samples."""
    spans = {name: ls.Span(0.0, 1.0, steps=10_000) for name in "ab"}
    with pytest.raises(ls.ModelError, match="a grid has at most 10,000,000 samples"):
        ls.sweep(lambda trial: {"x": 0.0}, spans, out=tmp_path / "o", workers=1)


def test_ports_that_there_are_not_are_refused(small, capsys):
    """Wrong ports are refused before a socket is opened."""
    pytest.importorskip("viser")
    for port in ("99999", "-1"):
        assert main(["view", str(small), "--no-browser", "--port", port]) == 2
        assert capsys.readouterr().err.startswith("error: port: must be")


def test_too_little_memory_is_one_line(small, tmp_path, monkeypatch, capsys):
    """A MemoryError is one line without a traceback."""

    def full(*_, **__):
        raise MemoryError("7 TiB")

    monkeypatch.setattr(ls, "solve_statics", full)
    assert main(["statics", str(small), "--out", str(tmp_path / "o")]) == 2
    assert capsys.readouterr().err == "error: there is not enough memory (7 TiB)\n"


def test_films_beyond_memory_are_refused(small, tmp_path):
    """A film with too many frames is refused."""
    motion = ls.simulate(ls.load_robot(small).build(), 0.01, t_eval=np.array([0.0, 0.01]))
    with pytest.raises(ls.ModelError, match="at most 1,000,000 frames"):
        motion.animate(tmp_path / "film.gif", fps=1e12)


def test_check_of_dev_zero_ends(tmp_path):
    """The program itself ends within seconds on /dev/zero."""
    command = [sys.executable, "-m", "lissom.cli.main", "check", "/dev/zero"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "Traceback" not in done.stderr
