"""Deliberate faults are caught by the tests."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from house.mutations import MUTATIONS

ROOT = Path(__file__).parents[2]
every = pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: m.fault.replace(" ", "_"))


@every
def test_the_fault_can_be_made(mutation):
    """The text that is replaced stands where the list says, once, and so do the tests that catch it."""
    files = [ROOT / name.split("::")[0] for name in mutation.tests if name.startswith("tests/")]
    assert files and all(file.exists() for file in files)
    text = (ROOT / "src" / "lissom" / mutation.file).read_text(encoding="utf-8")
    assert text.count(mutation.old) == 1 and mutation.new != mutation.old


@pytest.mark.slow
@every
def test_the_fault_is_caught(mutation, tmp_path):
    """With the fault in a copy of the library, which compiles all the same, a test fails."""
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    file = tmp_path / "src" / "lissom" / mutation.file
    file.write_text(file.read_text(encoding="utf-8").replace(mutation.old, mutation.new), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *mutation.tests]
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "src")}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 1 and "FAILED" in done.stdout, done.stdout[-2000:]
    assert not any(text in done.stdout for text in ("error during collection", "WarpCodegen", "build failed"))
