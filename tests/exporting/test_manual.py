"""Pages of the manual on exports, word for word in an empty folder: their code, programs and commands."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from exporting.built import needs_compiler

from lissom.cli.main import main
from lissom.errors import ModelError
from lissom.exporting.building import find_web_compiler

PAGES = Path(__file__).parents[2] / "docs" / "how_to"
SIMPLE = ("-std=c++17", "-fPIC", "-fvisibility=hidden", "-fno-strict-aliasing", "-O1", "-w")  # compiles in seconds
LAST = {"export": "M[0][0] = 0.", "real_time": "1 s, "}  # what the last command prints


def _can_run(program, words):
    """Whether the machine has what a command needs."""
    if "--web" in words:
        try:
            return bool(find_web_compiler("test"))
        except ModelError:
            return False
    return program == "lissom" or program.startswith("./") or shutil.which(program) is not None


def _run(command):
    """Run a command of a page; returns what it prints, None if its program is not installed."""
    program, *words = shlex.split(command)
    if not _can_run(program, words):
        return None
    if program == "lissom":
        assert main(words) == 0, command
        return ""
    done = subprocess.run([program, *words], capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("page", ["export", "fmu", "real_time", "web_page"])
def test_a_new_user_follows_the_page(page, monkeypatch, tmp_path):
    """Code of Python runs, programs whose first line names their file are written there, and each command succeeds."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "examples").symlink_to(PAGES.parents[1] / "examples")
    monkeypatch.setattr("lissom.exporting.building.compiler_flags", lambda _: SIMPLE)
    text, names, absent, said = (PAGES / f"{page}.md").read_text(encoding="utf-8"), {}, [], []
    found = re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    last = max(k for k, (kind, _) in enumerate(found) if kind == "console")
    for kind, block in found[: last + 1]:
        if kind == "python":
            exec(block, names)
        elif kind == "text" and (named := re.match(r"/\* (\w+\.c) \*/", block)):
            Path(named[1]).write_text(block, encoding="utf-8")
        elif kind in ("console", "bash"):
            for command in block.splitlines():
                said.append(None if absent else _run(command))
                absent += [command.split()[0]] if said[-1] is None else []
    if absent:
        pytest.skip(f"not installed: {absent[0]}; the commands before it have run")
    assert LAST.get(page, "") in (said[-1] or "")
    for name in re.findall(r"--out(?:put-file)? (\S+)", text):
        assert page == "web_page" or Path(name).exists() or "/" in name or name == "robot.fmu", name
