"""Commands around a robot file: make one, check one, look at it, let it rest, move and measure it."""

from __future__ import annotations

from contextlib import contextmanager
from io import StringIO

import numpy as np
import pytest
from cli.small_robot import EXAMPLES, SMALL, write

import lissom as ls
from lissom.cli.main import COMMANDS, main, parser
from lissom.launch.progress import progress_bar
from lissom.statics import static_path


@pytest.mark.parametrize("command", [command.name for command in COMMANDS])
def test_every_command_shows_an_example(command, capsys):
    """Its help ends with a command that begins with its name and that its own parser takes."""
    with pytest.raises(SystemExit) as caught:
        main([command, "--help"])
    example = capsys.readouterr().out.rstrip().splitlines()[-1].split()
    assert caught.value.code == 0 and example[:2] == ["lissom", command]
    assert parser().parse_args(example[1:]).command


def test_check_tells_all_mistakes_and_returns_2(small, tmp_path, capsys):
    """Each on a line with the file and its line; a right file is said to be right."""
    wrong = write(tmp_path / "wrong.yaml", SMALL.replace("length: 0.3", "length: '0.3'").replace("young", "yuong"))
    assert main(["check", str(small), str(wrong)]) == 2
    told = capsys.readouterr()
    assert told.out.splitlines()[0].startswith(f"{small}: OK; Robot('small'")
    assert told.out.splitlines()[1] == f"{wrong}: 2 errors"
    lines = told.err.splitlines()
    assert lines[0].startswith(f"{wrong}, line 6: link 'arm' > body: length") and lines[0].endswith("remove the quotes")
    assert lines[1].startswith(f"{wrong}, line 8: ") and lines[1].endswith("did you mean 'young'?")


def test_check_warns_of_slips_of_units(tmp_path, capsys):
    """A right file whose numbers no material has returns 0, with the reason and the line on standard error."""
    assert main(["check", str(write(tmp_path / "r.yaml", SMALL.replace("1e6", "1")))]) == 0
    told = capsys.readouterr()
    assert "line 8: warning: link 'arm' > body > material: young is 1 Pa" in told.err and "OK, 1 warning;" in told.out


def test_check_strict_fails_at_warnings(small, tmp_path, capsys):
    """For scripts: 2 where there are warnings, 0 without."""
    doubtful = write(tmp_path / "r.yaml", SMALL.replace("1e6", "1"))
    assert main(["check", "--strict", str(small)]) == 0
    assert main(["check", "--strict", str(small), str(doubtful)]) == 2
    assert "OK, 1 warning;" in capsys.readouterr().out


def test_check_says_how_to_hang_a_link_on_the_world(tmp_path, capsys):
    """A parent called world is no link, and the link itself is no suggestion."""
    for name, cure in (("world", "leave the parent out"), ("armm", "(got 'armm')")):
        path = write(tmp_path / "r.yaml", SMALL.replace("- name: arm", f"- name: arm\n    parent: {name}"))
        assert main(["check", str(path)]) == 2
        told = capsys.readouterr().err
        assert "link 'arm': parent: must be one of the links" in told and cure in told and "did you mean" not in told


def test_new_asks_and_writes_a_file_with_comments(tmp_path, capsys, monkeypatch):
    """Answers that make no sense are asked for again; the file holds them, loads without a warning, and is not lost."""
    path = tmp_path / "mine.yaml"
    monkeypatch.setattr("sys.stdin", StringIO("finger\nlong\n-1\n0.2\n0.01\n0.005\n\n\nhinge\n4\n0.05\n"))
    assert main(["new", str(path)]) == 0
    told = capsys.readouterr().out
    assert "  must be a number" in told and "  must be > 0 (got -1)" in told and f"lissom check {path}" in told
    robot = ls.load_robot(path)
    rod = robot.links["rod"]
    assert (robot.name, rod.body.length, rod.body.section.radius) == ("finger", 0.2, [0.01, 0.005])
    assert type(rod.joint) is ls.JointRevolute and list(robot.actuators) == ["t1", "t2", "t3", "t4", "motor"]
    np.testing.assert_allclose(robot.actuators["t2"].path[0].offset(1.0), [0.004, 0.0], rtol=0, atol=1e-17)
    assert robot.build().links.mass[1] == 0.05 and path.read_text().count("#") > 8
    assert main(["new", str(path)]) == 2 and "--force" in capsys.readouterr().err


def test_new_takes_its_defaults_where_nothing_is_answered(tmp_path, capsys, monkeypatch):
    """At the end of the input, as with --defaults: the same file, right and without doubts."""
    monkeypatch.setattr("sys.stdin", StringIO(""))
    paths = [tmp_path / "a.yaml", tmp_path / "b.yaml"]
    assert main(["new", str(paths[0])]) == 0 and main(["new", str(paths[1]), "--defaults"]) == 0
    assert paths[0].read_text() == paths[1].read_text()
    assert main(["check", str(paths[0])]) == 0 and not capsys.readouterr().err


def test_info_says_lengths_sections_materials_and_units(capsys):
    """Of each body a line with its numbers and their units, and the unit of each input."""
    assert main(["info", str(EXAMPLES / "hybrid_arm.yaml")]) == 0
    text = capsys.readouterr().out
    for part in ("Rod, length", "young", "Pa", "kg/m³", "Section", "[N·m]", " m, "):
        assert part in text, part


def test_simulate_goes_on_from_an_equilibrium(small, tmp_path, capsys):
    """It rests there under the inputs of the file; a file of another robot is refused by the size that differs."""
    assert main(["statics", str(small), "--inputs", "up=1", "--out", str(tmp_path)]) == 0
    out, rest = tmp_path / "motion", tmp_path / "equilibrium.npz"
    given = ["--duration", "0.05", "--samples", "3", "--out", str(out), "--quiet"]
    assert main(["simulate", str(small), "--from", str(rest), *given]) == 0
    with np.load(rest) as begun, np.load(out / "trajectory.npz") as motion:
        np.testing.assert_allclose(motion["q"], np.tile(begun["q"], (3, 1)), rtol=0, atol=1e-6)
        assert motion["u"].tolist() == [[1.0, 0.0]] * 3 and np.abs(begun["q"]).max() > 0.1
    other = EXAMPLES / "cdm.yaml"
    assert main(["simulate", str(other), "--from", str(rest), *given]) == 2
    assert "q must have shape (24,)" in capsys.readouterr().err


def test_modes_and_continuation_say_and_write_what_they_find(small, tmp_path, capsys):
    """The frequencies are those of Python, and the branch ends under the full load where statics is."""
    assert main(["modes", str(small), "--out", str(tmp_path), "--count", "2"]) == 0
    told = capsys.readouterr().out
    model = ls.load_robot(small).build()
    found = ls.modes(model, ls.solve_statics(model).q)
    assert f"{found.frequencies[0] / (2 * np.pi):12.6g}" in told and "and 1 more" in told
    with np.load(tmp_path / "modes.npz") as saved:
        np.testing.assert_allclose(saved["frequencies"], found.frequencies, rtol=1e-9)
    assert main(["continuation", str(small), "--inputs", "up=1", "--out", str(tmp_path)]) == 0
    assert "ended by factor range" in capsys.readouterr().out
    with np.load(tmp_path / "branch.npz") as branch:
        assert branch["factor"][-1] == 1.0
        np.testing.assert_allclose(branch["q"][-1], ls.solve_statics(model, [1.0, 0.0]).q, rtol=0, atol=1e-9)


def test_an_interrupt_keeps_the_motion_so_far(small, tmp_path, capsys, monkeypatch):
    """Ctrl-C in the middle: what there is is written, said up to when, and 130 returned."""
    monkeypatch.setattr("lissom.simulation.simulate.progress_bar", interrupting)
    out = tmp_path / "o"
    given = ["--duration", "5", "--dt", "1e-3", "--out", str(out)]
    assert main(["simulate", str(small), *given]) == 130
    told = capsys.readouterr()
    assert told.err == "interrupted\n" and "stopped at t = " in told.out
    with np.load(out / "trajectory.npz") as saved:
        assert 1e-3 < saved["t"][-1] < 5.0 and len(saved["t"]) == len(saved["q"])


def test_an_interrupt_keeps_the_branch_so_far(small, tmp_path, capsys, monkeypatch):
    """Ctrl-C in the middle of a branch: its equilibria are written, said up to where, and 130 returned."""
    ahead, calls = static_path.ahead_on_each, []

    def interrupted(*args):
        calls.append(args)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return ahead(*args)

    monkeypatch.setattr("lissom.statics.continuation.ahead_on_each", interrupted)
    given = ["--inputs", "up=1", "--step", "0.02", "--out", str(tmp_path)]
    assert main(["continuation", str(small), *given]) == 130
    told = capsys.readouterr()
    assert told.err == "interrupted\n" and "3 equilibria so far" in told.out
    with np.load(tmp_path / "branch.npz") as saved:
        assert len(saved["factor"]) == len(saved["q"]) == 3 and saved["factor"][-1] < 1.0


@contextmanager
def interrupting(*_):
    """A bar that sends an interrupt once some time was reached."""

    def advance(t):
        if t > 1e-3:
            raise KeyboardInterrupt

    yield advance


def test_elsewhere_than_on_terminals_the_log_says_how_far_a_motion_is(caplog, monkeypatch):
    """A line after a pause, the next after twice as long; none before."""
    caplog.set_level("INFO", logger="lissom")
    now = [0.0]
    monkeypatch.setattr("lissom.launch.progress.time.monotonic", lambda: now[0])
    with progress_bar(True, 10.0) as advance:
        for now[0] in (0.5, 1.0, 2.5, 3.0, 6.9):
            advance(now[0])
    assert [record.getMessage() for record in caplog.records] == [f"simulating: {t} of 10 s" for t in (1, 3)]


def test_demo_and_bench_run(tmp_path, capsys):
    """A first look leaves a robot file and its motion; the speeds of a robot are told."""
    assert main(["demo", "--duration", "0.2", "--out", str(tmp_path)]) == 0
    assert {"robot.yaml", "trajectory.npz", "trajectory.png"} <= {path.name for path in tmp_path.iterdir()}
    assert main(["bench", str(tmp_path / "robot.yaml"), "--duration", "0.05"]) == 0
    assert "mass matrix" in capsys.readouterr().out


@pytest.mark.graphics
def test_render_and_animate_write_what_they_are_asked_for(small, tmp_path, capsys):
    """A picture of the equilibrium and a film of a motion; a motion of another robot is refused."""
    path, film = tmp_path / "deep" / "arm.png", tmp_path / "motion.gif"
    assert main(["render", str(small), "--inputs", "up=1", "--out", str(path)]) == 0
    assert path.read_bytes().startswith(b"\x89PNG")
    model = ls.load_robot(small).build()
    ls.simulate(model, 0.2, t_eval=[0.0, 0.1, 0.2]).save(tmp_path / "motion.npz")
    assert main(["animate", str(small), str(tmp_path / "motion.npz"), "--fps", "10", "--out", str(film)]) == 0
    assert film.read_bytes().startswith(b"GIF")
    assert main(["animate", str(EXAMPLES / "cdm.yaml"), str(tmp_path / "motion.npz"), "--out", str(film)]) == 2
    assert "must hold 24 coordinates" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "file"),
    [
        (["statics"], "equilibrium.npz"),
        (["statics"], "shapes.png"),
        (["modes"], "modes.npz"),
        (["continuation"], "branch.npz"),
        (["simulate", "--duration", "0.01"], "trajectory.csv"),
        (["demo"], "robot.yaml"),
        (["render"], "picture.png"),
        (["animate"], "film.gif"),
    ],
)
def test_results_that_are_there_are_kept(small, tmp_path, capsys, command, file):
    """The error names the file and --force, and comes before anything is computed or written."""
    held = tmp_path / file
    held.write_text("dear")
    name, *rest = command
    given = [] if name == "demo" else [str(small)]
    if name == "animate":
        model = ls.load_robot(small).build()
        ls.simulate(model, 0.01, t_eval=[0.0, 0.01]).save(tmp_path / "motion.npz")
        given.append(str(tmp_path / "motion.npz"))
    before = sorted(tmp_path.iterdir())
    out = held if name in ("render", "animate") else tmp_path
    assert main([name, *given, *rest, "--out", str(out)]) == 2
    assert f"{held}: exists already" in (told := capsys.readouterr().err) and "--force" in told
    assert held.read_text() == "dear" and sorted(tmp_path.iterdir()) == before


def test_results_are_replaced_when_asked(small, tmp_path, capsys):
    """With --force the new ones are there."""
    (tmp_path / "equilibrium.npz").write_text("old")
    assert main(["statics", str(small), "--out", str(tmp_path), "--force"]) == 0
    with np.load(tmp_path / "equilibrium.npz") as found:
        assert "q" in found


def test_check_shows_how_exact_a_robot_is(small, capsys):
    """With --accuracy a line for each link at rest, by points and by basis, and the cure."""
    assert main(["check", str(small), "--accuracy"]) == 0
    told = capsys.readouterr().out
    assert "at rest off by" in told and "m by its points" in told and "more exact: " in told
