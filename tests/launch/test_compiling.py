"""Kernels are compiled together, by several processes at once, and where nothing can be kept."""

import importlib
import inspect
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from threading import Event

import numpy as np
import pytest
import warp as wp
from house.test_kernels import kernels

import lissom as ls
from lissom.cli.main import main
from lissom.forces.terms import acting_on
from lissom.kernels import KERNELS
from lissom.launch import compiling
from lissom.launch.compiling import kernel_for
from lissom.lie.types import CPU_FLAGS, FEATURES

ALONE = """
import warnings
{before}
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    from launch import small_kernels
    from lissom.launch.compiling import load
    load([small_kernels.rotated.module], "cpu")
print(*small_kernels.quarter())
print(*(f"{{w.category.__name__}}: {{w.message}}" for w in told))
"""
QUARTER = [0.0, -1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0]


def begin(before="", within=(), **environment):
    """A process that computes a rotation by kernels of its own."""
    here = {name: value for name, value in os.environ.items() if name not in ("WARP_CACHE_PATH", "XDG_CACHE_HOME")}
    here |= {"PYTHONPATH": os.pathsep.join(sys.path)} | environment
    command = [*within, sys.executable, "-c", ALONE.format(before=before)]
    return subprocess.Popen(command, env=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def answer(process):
    """Its rotation, and its messages."""
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    numbers, told = out.splitlines()[-2:]
    return [float(x) for x in numbers.split()], told


def arm(is_held=False):
    """A rod with a tendon, whose tip may be held by a loop."""
    robot = ls.Robot("arm")
    material = ls.Material(young=1e6, density=1000.0, viscosity=2e3)
    robot.add_link("arm", ls.Rod(0.3, ls.SectionCircle(0.01), ls.BasisLegendre(bending_y=1, elongation=1), material))
    robot.add_tendon("up", "arm", (0, 0.008))
    if is_held:
        tip = np.eye(4)
        tip[0, 3] = 0.3
        robot.add_loop("hold", "arm", None, s_a=1.0, placement_b=tip, joint=ls.JointSpherical())
    return robot.build()


def test_two_processes_fill_one_cache(tmp_path):
    """Where nothing is ready-compiled both come to the right answer, and the cache holds the module once, whole."""
    (tmp_path / "none").mkdir()
    cache = tmp_path / "cache"
    both = [begin(WARP_CACHE_PATH=str(cache), LISSOM_KERNELS=str(tmp_path / "none")) for _ in range(2)]
    assert [answer(process) for process in both] == [(QUARTER, "")] * 2
    assert len(list(cache.rglob("*.o"))) == 1 and len(list(cache.rglob("*.meta"))) == 1


@pytest.mark.parametrize("name", ["WARP_CACHE_PATH", pytest.param("HOME", marks=pytest.mark.slow)])
def test_a_cache_that_cannot_be_made(tmp_path, name):
    """Where there is no folder and none can be made, a process compiles for itself, and says what to set."""
    (tmp_path / "file").touch()
    numbers, told = answer(begin(**{name: str(tmp_path / "file" / "below")}, TMPDIR=str(tmp_path)))
    assert numbers == QUARTER
    assert told.startswith("CacheWarning: kernels cannot be stored (") and "set WARP_CACHE_PATH to a folder" in told


def test_a_full_disk(tmp_path):
    """Where no file of a kernel fits on the disk, the error says so and what to set."""
    pytest.importorskip("resource", reason="the system limits no files")
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))"
    process = begin(limit, WARP_CACHE_PATH=str(tmp_path), TMPDIR=str(tmp_path))
    err = process.communicate(timeout=300)[1]
    assert process.returncode == 1
    last = err.splitlines()[-1]
    assert last.startswith("OSError: kernels cannot be stored (") and "set WARP_CACHE_PATH to a folder" in last


SMALL = "mount -t tmpfs -o size={} none {} && mount -t tmpfs -o size={} none {} && exec "


@pytest.mark.parametrize(("cache", "temporary"), [("100k", "100m"), ("300k", "100m"), ("1m", "100m"), ("100m", "1m"),
                                                  ("100m", "4700k"), ("1m", "1m")])  # fmt: skip
def test_an_almost_full_disk(tmp_path, cache, temporary):
    """Where the disk has room for a part of what the compiler writes, which would end the process, kernels are compiled
    in another place: beside temporary files, or in memory. The answer is right, and a warning says what to set."""
    small, other = tmp_path / "cache", tmp_path / "tmp"
    small.mkdir(), other.mkdir()
    within = ["unshare", "-rm", "sh", "-c", SMALL.format(cache, small, temporary, other) + '"$0" "$@"']
    try:
        subprocess.run([*within, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("the system gives users no small disks")
    if temporary != "100m" and not os.path.isdir("/dev/shm"):
        pytest.skip("the system has no folder in memory")
    places = {"WARP_CACHE_PATH": str(small), "TMPDIR": str(other), "LISSOM_CORES": "1"}
    numbers, told = answer(begin(within=within, LISSOM_KERNELS=str(tmp_path), **places))
    assert numbers == QUARTER
    expected = "" if cache == "100m" else "CacheWarning: kernels cannot be stored ([Errno 28] there is no room in "
    assert told.startswith(expected) and bool(told) == bool(expected)


@pytest.fixture
def loaded(monkeypatch):
    """The names of modules that are loaded together, as if none had been."""
    together = []

    def bar(names):
        together.append(names)
        return whole(names)

    whole = compiling._compile_progress
    monkeypatch.setattr(compiling, "_loaded", set())
    monkeypatch.setattr(compiling, "_compile_progress", bar)
    return together


def chain():
    """Rods whose accelerations are found block by block."""
    robot, basis = ls.Robot("chain"), ls.BasisLegendre(torsion=3, bending_y=3, bending_z=3)
    for k in range(4):
        material = ls.Material(young=1e6, density=1000.0, viscosity=2e3)
        robot.add_link(f"{k}", ls.Rod(0.1, ls.SectionCircle(0.01), basis, material), parent=f"{k - 1}" if k else None)
    return robot.build()


def test_plain_robots_get_the_same_numbers_from_all_kernels(monkeypatch):
    """To the last bit, from kernels that know of nothing beyond plain robots and from those that serve all others."""

    def numbers():
        model = arm()
        q, v, a = np.array([[3.0, 1.0, 0.02, 0.01], [5.0, 9.0, 0.1, 0.3], [40.0, 70.0, 2.0, 1.0]])
        rows = ls.inverse_dynamics_derivatives(model, q, v, a)
        path = ls.simulate(model, 0.02, q, v, u=[1.0], method="esdirk")
        return [*rows, ls.forward_dynamics(model, q, v, [1.0]), ls.solve_statics(model, u=[2.0]).q, path.q, path.v]

    plain = numbers()
    monkeypatch.setattr(compiling, "acting_on", lambda model: acting_on(model)._replace(kinds=(FEATURES,)))
    assert all(np.array_equal(x, y) for x, y in zip(plain, numbers(), strict=True))


@pytest.mark.filterwarnings("ignore::lissom.RedundancyWarning")  # in a plane
@pytest.mark.parametrize("make", [arm, lambda: arm(is_held=True), chain], ids=["tree", "loop", "chain"])
@pytest.mark.parametrize("method", ["statics", "esdirk", "generalized_alpha", "bdf"])
def test_an_algorithm_loads_its_kernels_together(loaded, make, method):
    """Nothing is left to compile after that."""
    model = make()
    if method == "statics":
        ls.solve_statics(model)
    else:
        ls.simulate(model, 1e-3, method=method, **({"dt": 1e-3} if method == "generalized_alpha" else {}))
    assert len(loaded) == 1, loaded


def test_a_motion_with_contact_loads_its_kernels_together(loaded):
    """With that of the first anchors; nothing is left to compile after that."""
    robot = ls.Robot("ball")
    robot.add_link("ball", ls.RigidBody.sphere(0.05, density=1e3), ls.JointFree())
    robot.add_contact("ground", "ball", ls.ShapePlane())
    model = robot.build()
    assert model.contacts.sticks
    ls.simulate(model, 1e-3, [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.06])
    assert len(loaded) == 1, loaded
    assert any("contacts_kernel" in name for name in loaded[0])
    assert not any("contact_search" in name for name in loaded[0])


@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize("there", [True, False, None])
def test_what_is_mostly_asked_next_is_compiled_along(loaded, monkeypatch, there, cores):
    """Poses, while the kernels of equilibria are compiled, where a core has nothing else to do."""
    monkeypatch.setattr(compiling, "is_compiled", lambda module, device: there)
    monkeypatch.setattr(compiling, "cores_of_process", lambda: cores)
    ls.solve_statics(arm())
    assert ("frames_kernel" in loaded[0]) == (there is False and cores == 2)


@pytest.mark.parametrize("there", ["nothing", "compiled", "ready"])
def test_headers_are_read_at_once_on_a_new_machine(tmp_path, monkeypatch, there):
    """They are read before the contents of the first module are known; on other machines only if it is missing."""

    def composing(kernel, model):
        raise InterruptedError

    if there == "compiled":
        (tmp_path / "wp_some_kernel").mkdir()
    read = []
    monkeypatch.setattr(wp.config, "kernel_cache_dir", str(tmp_path))
    monkeypatch.setattr(compiling, "has_precompiled", lambda: there == "ready")
    monkeypatch.setattr(compiling, "_header_tasks", [])
    monkeypatch.setattr(compiling, "read_headers", read.append)
    monkeypatch.setattr(compiling, "kernel_for", composing)
    with pytest.raises(InterruptedError):
        compiling.load_kernels(arm(), "something", None)
    wait(compiling._header_tasks)
    assert read == ([CPU_FLAGS] if there == "nothing" else [])


def test_a_module_is_written_while_headers_are_read(monkeypatch):
    """And compiled when they are, so that no thread reads them once more."""
    order, written = [], Event()

    def force_load(*_, **__):
        order.append("written")
        written.set()
        ready[0]()
        order.append("compiled")

    ready = []
    monkeypatch.setattr(
        compiling, "share_generated_code", lambda module, before_compiling: ready.append(before_compiling)
    )
    monkeypatch.setattr(compiling, "is_compiled", lambda module, device: True)
    monkeypatch.setattr(wp, "force_load", force_load)
    with ThreadPoolExecutor(1) as thread:
        monkeypatch.setattr(compiling, "_header_tasks", [thread.submit(lambda: (written.wait(), order.append("read")))])
        compiling._load(wp.get_module("lissom.lie.arrays"), "cpu", False)
    assert order == ["written", "read", "compiled"]


def test_what_is_waited_for_is_reported(loaded, monkeypatch, caplog):
    """Away from a terminal by the logger of the library."""
    monkeypatch.setattr(compiling, "PATIENCE", 0.0)
    model = arm()
    with caplog.at_level("INFO", logger="lissom"), compiling._compile_progress(["one", "two"]) as done:
        while not caplog.records:
            pass
        done()
    assert caplog.messages == ["compiling kernels, once on this machine: one, two"]
    compiling.load([kernel_for(KERNELS[-1], model).module], "cpu")
    assert loaded == [["one", "two"], ["mass_response_kernel"]]


@pytest.mark.parametrize(("quiet", "told"), [("", True), ("1", False)])
def test_scripts_say_once_what_they_wait_for(monkeypatch, capsys, quiet, told):
    """Away from a terminal standard error says once that kernels are compiled, unless it is to be quiet."""
    monkeypatch.setattr(compiling, "_announced", [])
    monkeypatch.setenv(compiling.QUIET, quiet)
    monkeypatch.setattr(compiling, "PATIENCE", 0.0)
    for _ in range(2):
        with compiling._compile_progress(["one"]):
            time.sleep(0.1)
    line = "lissom: compiling kernels, once on this machine; LISSOM_QUIET=1 keeps this quiet\n"
    assert capsys.readouterr().err == line * told


def test_all_modules_are_built_ahead():
    """One kernel of each module stands in the list, except for the functions of the Lie group, the grids of meshes, the
    steps with feedback laws of users, which few robots need, and the laws of time and responses to inputs that only
    exports write."""
    made = {importlib.import_module(name): names for name, names in kernels().items()}
    alone = {kernel.module.name for kernel in KERNELS if isinstance(kernel, wp.Kernel)}
    composed = {kernel.__name__ for kernel in KERNELS if not isinstance(kernel, wp.Kernel)}
    for file in made:
        own = [x for x in vars(file).values() if inspect.isfunction(x) and x.__module__ == file.__name__]
        factories = {x.__name__ for x in own if list(inspect.signature(x).parameters) == ["act"]}
        of_few = {"law_steps_kernel", "laws_at_time_kernel", "input_columns_kernel"}
        assert factories <= composed | of_few, (file, factories - composed)
        if not factories and file.__name__ not in ("lissom.lie.arrays", "lissom.model.distance_grids"):
            assert file.__name__ in alone


def test_the_cache_is_measured_while_another_process_compiles(tmp_path, monkeypatch):
    """Folders and files that are gone when it is their turn do not count."""
    monkeypatch.setattr(wp.config, "kernel_cache_dir", str(tmp_path))
    for name in ("gone", "stays"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_bytes(b"12345")
    (tmp_path / "stays" / "moved").symlink_to(tmp_path / "nowhere")
    look = os.scandir

    def scandir(folder):
        if Path(folder).name == "gone":
            raise FileNotFoundError(folder)
        return look(folder)

    monkeypatch.setattr(os, "scandir", scandir)
    assert ls.kernel_cache(arm()).bytes == 5


def test_build_and_info_on_the_command_line(tmp_path, capsys, monkeypatch):
    """Compiled modules are counted; the folder is that of Warp."""
    model = arm()
    monkeypatch.setattr("lissom.kernels.KERNELS", KERNELS[-1:])
    ls.mass_matrix(model, model.neutral())
    assert main(["kernels", "build"]) == 0
    assert main(["kernels", "info"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == lines[3] == "2 of 2 modules of plain robots are compiled"
    assert lines[2].startswith(f"{wp.config.kernel_cache_dir}: ")
    monkeypatch.setattr(wp.config, "kernel_cache_dir", str(tmp_path))
    found = ls.kernel_cache(model)
    with pytest.raises(ls.ModelError, match="device: must be one of cpu"):
        ls.kernel_cache(model, device="abacus")
    with pytest.raises(ls.ModelError, match="device: must be one of cpu"):
        model.on("abacus")
    assert (found.folder, found.bytes, found.compiled, found.count) == (tmp_path, 0, 0, 2)
