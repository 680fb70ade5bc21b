"""Libraries that the export builds, and the programs of the manual in other languages that call them."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from exporting.built import finger, needs_compiler

import lissom as ls
from lissom.cli.main import main

PAGE = (Path(__file__).parents[2] / "docs" / "how_to" / "export.md").read_text(encoding="utf-8")
PROGRAMS = {
    "Python": (sys.executable, "import ctypes", "arm.py", ()),
    "Rust": ("rustc", "use std::", "arm.rs", ("-L", "soft_arm_sources", "-C", "link-arg=-Wl,-rpath,soft_arm_sources")),
    "Julia": ("julia", "const lib", "arm.jl", ()),
    "MATLAB": ("matlab", "loadlibrary", "arm.m", ("-batch", "arm")),
}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The soft arm of the manual, and the folder beside that of its sources."""
    code = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[0]
    robot = {}
    exec(code.split("model = robot.build()")[0], robot)
    folder, model = tmp_path_factory.mktemp("languages"), robot["robot"].build()
    made = ls.export(model, folder / "soft_arm_sources", ["mass_matrix"], build=True)
    assert made.library == folder / "soft_arm_sources" / "libsoft_arm.so" and made.library.exists()
    return folder, model


@needs_compiler
@pytest.mark.parametrize("language", PROGRAMS)
def test_programs_of_the_manual_run(language, built):
    """The program of the manual in each language prints a status of 0 and the first entry of the mass matrix."""
    (tool, begin, name, options), (folder, model) = PROGRAMS[language], built
    if not shutil.which(tool):
        pytest.skip(f"{language} is not installed")
    (program,) = [text for text in re.findall(r"^```text\n(.*?)^```$", PAGE, re.M | re.S) if text.startswith(begin)]
    (folder / name).write_text(program, encoding="utf-8")
    command = [tool, *(options if language == "MATLAB" else [name, *options])]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    if language == "Rust":
        done = subprocess.run([folder / "arm"], cwd=folder, capture_output=True, text=True)
    status, entry = done.stdout.split()[:2]
    wanted = ls.mass_matrix(model, model.neutral())[0, 0]
    assert int(status) == 0 and np.isclose(float(entry), wanted, rtol=1e-12 if language != "MATLAB" else 1e-3, atol=0.0)


def test_a_build_needs_a_compiler_that_works(monkeypatch, tmp_path):
    """Without a compiler the error says which one is needed, before anything is written; one that fails is named with
    its last words."""
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(ls.ModelError, match=r"export: build: needs a C\+\+ compiler .*CXX"):
        ls.export(finger().build(), tmp_path / "x", ["energy"], build=True)
    assert not (tmp_path / "x").exists()
    monkeypatch.setenv("CXX", "false")
    with pytest.raises(OSError, match="export: build: false cannot compile the sources"):
        ls.export(finger().build(), tmp_path / "x", ["energy"], build=True)


@needs_compiler
def test_the_command_builds(tmp_path, capsys):
    """`lissom export --build` tells the path of the library."""
    ls.save_robot(finger(), tmp_path / "finger.yaml")
    words = [
        "export",
        str(tmp_path / "finger.yaml"),
        "--functions",
        "energy",
        "--out",
        str(tmp_path / "out"),
        "--build",
    ]
    assert main(words) == 0
    line = capsys.readouterr().out.splitlines()[-1]
    assert line.startswith("built ") and Path(line.removeprefix("built ")).suffix == ".so"
