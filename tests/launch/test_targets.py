"""Kernels compiled for a kind of processors serve where the cache has nothing, and only on such processors."""

import os
import platform
import subprocess
import sys

import numpy as np
import pytest
import warp as wp
from launch import small_kernels

import lissom as ls
from lissom.cli.main import main
from lissom.dynamics.contacts import contacts_kernel
from lissom.dynamics.forward_dynamics import accelerations_kernel
from lissom.dynamics.kinematics import frames_kernel
from lissom.launch import compiling
from lissom.lie.warp_private import name_in_cache
from lissom.stepping.step_kernel import steps_kernel

ALONE = """
from launch import small_kernels
from lissom.launch.compiling import load
load([small_kernels.rotated.module], "cpu")
print(*small_kernels.quarter())
"""
TARGET = next(iter(compiling.targets_here()), "")
needs_one = pytest.mark.skipif(
    not TARGET,
    reason="kernels are compiled ahead for aarch64 and for x86-64 with AVX2 or AVX-512 alone, and only Linux lists "
    "what an x86-64 processor has; this machine is none of these: it compiles kernels at first use, and could run no "
    "others",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Small kernels, for the first kind that this processor is of."""
    out = tmp_path_factory.mktemp("compiled")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lissom.kernels.KERNELS", (small_kernels.doubled,))
        patch.setattr("lissom.kernels.arrays", small_kernels)
        assert main(["kernels", "build", "--target", TARGET, "--out", str(out)]) == 0
    return out


def one_with(cache, compiled):
    """The output of a process that has a cache, and a folder of kernels."""
    here = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    here |= {"WARP_CACHE_PATH": str(cache), "LISSOM_KERNELS": str(compiled)}
    done = subprocess.run([sys.executable, "-c", ALONE], env=here, capture_output=True, text=True, check=True)
    return [float(x) for x in done.stdout.split()]


@needs_one
def test_what_is_ready_is_not_compiled(folder, tmp_path):
    """A process with an empty cache computes by it, and leaves the cache empty. Where there is none, the same process
    compiles: see `test_two_processes_fill_one_cache`."""
    assert one_with(tmp_path / "cache", folder) == [0.0, -1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0]
    assert not list((tmp_path / "cache").rglob("*.o"))


@needs_one
def test_what_is_ready_is_counted_and_compiled_on_request(folder, tmp_path, capsys, monkeypatch):
    """`info` counts it apart from the contents of the cache; `build` compiles it for this very processor."""
    monkeypatch.setattr("lissom.kernels.KERNELS", (small_kernels.doubled,))
    monkeypatch.setattr("lissom.kernels.arrays", small_kernels)
    monkeypatch.setattr(wp.config, "kernel_cache_dir", str(tmp_path))
    monkeypatch.setenv("LISSOM_KERNELS", str(folder))
    monkeypatch.setattr(compiling, "_loaded", set())
    assert main(["kernels", "info"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "0 of 2 modules of plain robots are compiled",
        "2 more were installed ready-compiled for processors like this one",
    ]
    ls.build_kernels()
    found = ls.kernel_cache()
    assert (found.compiled, found.count, found.ready) == (2, 2, 0)


@needs_one
def test_other_processors_do_not_take_it(folder, monkeypatch):
    """A processor that lists fewer instructions, or of another architecture, finds nothing."""
    module = small_kernels.rotated.module
    monkeypatch.setenv("LISSOM_KERNELS", str(folder))
    code, description = compiling.find_precompiled(module, "cpu")
    assert code.stem == description.stem == name_in_cache(module) and TARGET in code.parent.name
    monkeypatch.setattr(compiling, "_processor_features", lambda: frozenset({"sse2", "avx"}))
    monkeypatch.setattr(compiling.platform, "machine", lambda: "x86_64")
    assert compiling.targets_here() == () and compiling.find_precompiled(module, "cpu") is None
    monkeypatch.setattr(compiling.platform, "machine", lambda: "riscv64")
    assert compiling.targets_here() == () and compiling.find_precompiled(module, "cpu") is None


def test_this_processor_is_known():
    """Where NumPy finds AVX2 and FMA on Linux, or the machine is of ARM, there is a kind: no test above is left out."""
    core = np._core if hasattr(np, "_core") else np.core
    features = core._multiarray_umath.__cpu_features__
    has = features.get("AVX2", False) and features.get("FMA3", False) and sys.platform == "linux"
    assert bool(TARGET) or not (has or platform.machine().lower() in ("arm64", "aarch64"))


def test_kinds_of_processors(monkeypatch):
    """Those that can more take kernels that use it, and the others behind."""
    for machine, listed, expected in (
        ("x86_64", compiling.TARGETS["x86-64-v4"][1], ("x86-64-v4", "x86-64-v3")),
        ("AMD64", compiling.TARGETS["x86-64-v3"][1], ("x86-64-v3",)),
        ("arm64", frozenset(), ("aarch64",)),
    ):
        monkeypatch.setattr(compiling.platform, "machine", lambda machine=machine: machine)
        monkeypatch.setattr(compiling, "_processor_features", lambda listed=listed: listed)
        assert compiling.targets_here() == expected


def test_kernels_for_other_machines_serve_contacts(monkeypatch, tmp_path):
    """A robot that touches finds all its kernels among those compiled for a class of processors."""
    made = []
    monkeypatch.setattr("lissom.kernels.build", lambda modules, target, out: made.extend(modules))
    monkeypatch.setattr("lissom.kernels.check_target", lambda target: None)
    ls.build_kernels(target="x86-64-v3", out=tmp_path)
    robot = ls.Robot("disc")
    robot.add_link("disc", ls.RigidBody.cylinder(0.02, 0.1, density=1e3), ls.JointFree())
    robot.add_contact("hill", "disc", ls.ShapeSphere(1.0), surface=4)
    model = robot.build()
    kernels = steps_kernel(model), accelerations_kernel(model), contacts_kernel, frames_kernel
    assert {compiling.kernel_for(kernel, model).module for kernel in kernels} <= set(made)


def test_targets_that_cannot_be(tmp_path):
    """Errors name the alternatives."""
    with pytest.raises(ls.ModelError, match=r"target: must be one of .* on this machine \(got 'z80'\)"):
        ls.build_kernels(target="z80", out=tmp_path)
    with pytest.raises(ls.ModelError, match="target, out: must be given together"):
        ls.build_kernels(target="x86-64-v3")
