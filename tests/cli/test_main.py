"""The command line as a whole: usage, exit codes, help, and results that are not overwritten."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cli.small_robot import SMALL, write

import lissom as ls
from lissom.cli.main import COMMANDS, main, parser


@pytest.mark.parametrize("command", [command.name for command in COMMANDS])
def test_every_command_shows_an_example(command, capsys):
    """The help of a command ends with an example that its parser accepts."""
    with pytest.raises(SystemExit) as caught:
        main([command, "--help"])
    example = capsys.readouterr().out.rstrip().splitlines()[-1].split()
    assert caught.value.code == 0 and example[:2] == ["lissom", command]
    assert parser().parse_args(example[1:]).command


def test_version_and_help(capsys):
    """--version prints the version, and --help lists the commands."""
    for argument, part in (("--version", f"lissom {ls.__version__}"), ("--help", "simulate")):
        with pytest.raises(SystemExit) as caught:
            main([argument])
        assert caught.value.code == 0 and part in capsys.readouterr().out


def test_help_imports_nothing_heavy():
    """The parser imports no heavy packages, so that it starts quickly."""
    code = "import sys; from lissom.cli import main; main.parser(); print([m for m in sys.modules if m in %r])"
    heavy = ("numpy", "scipy", "warp", "pydantic", "matplotlib", "rich")
    done = subprocess.run([sys.executable, "-c", code % (heavy,)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_installed_command_is_this_one(small):
    """The entry point of the package calls main."""
    program = str(Path(sys.executable).parent / "lissom")
    done = subprocess.run([program, "info", str(small)], capture_output=True, text=True, check=True)
    assert "nq 3, nv 3, nu 2" in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["fly"],
        ["simulate", "r.yaml", "--duration", "-1", "--out", "o"],
        ["simulate", "r.yaml", "--duration", "nan", "--out", "o"],
        ["simulate", "r.yaml", "--samples", "1", "--out", "o"],
        ["simulate", "r.yaml", "--rtol", "0", "--out", "o"],
        ["simulate", "r.yaml"],
        ["statics", "r.yaml", "--out", "o", "--inputs", "a=1", "--inputs-values", "1"],
    ],
)
def test_wrong_arguments_end_with_usage(arguments, capsys):
    """argparse refuses wrong arguments with status 2."""
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2 and "usage: lissom" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command", [["info"], ["simulate", "--duration", "1", "--out", "o"], ["statics", "--out", "o"]]
)
def test_wrong_files_return_2(command, tmp_path, capsys, monkeypatch):
    """A missing or wrong robot file is one line on stderr, without a traceback and without results."""
    monkeypatch.chdir(tmp_path)
    assert main([*command, "none.yaml"]) == 2
    assert "none.yaml" in capsys.readouterr().err
    write(tmp_path / "bad.yaml", SMALL.replace("length: 0.3", "length: -0.3"))
    assert main([*command, "bad.yaml"]) == 2
    assert capsys.readouterr().err == "error: bad.yaml, line 6: link 'arm' > body: length: must be > 0 (got -0.3)\n"
    assert not (tmp_path / "o").exists()


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
    """Existing results are refused before anything is computed or written. The error names the file and --force."""
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
    """--force overwrites existing results."""
    (tmp_path / "equilibrium.npz").write_text("old")
    assert main(["statics", str(small), "--out", str(tmp_path), "--force"]) == 0
    with np.load(tmp_path / "equilibrium.npz") as found:
        assert "q" in found
