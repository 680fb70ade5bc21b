"""Broken files in the cache of kernels, or among those that came compiled, are replaced, and the user learns which."""

import shutil
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import warp as wp

import lissom as ls
from lissom.launch import compiling
from lissom.lie import arrays, start
from lissom.lie.types import kernel_options
from lissom.lie.warp_private import is_whole


@wp.kernel(module="unique", module_options=kernel_options())
def twice(x: wp.array(dtype=wp.float64)):  # type: ignore[valid-type]
    x[wp.tid()] *= wp.float64(2.0)


def cut(file, part):
    """Keep the first part of a file."""
    data = file.read_bytes()
    file.write_bytes(data[: int(part * len(data))])


def folder(file):
    """Put a folder in place of a file."""
    file.unlink()
    file.mkdir()


def a_file(file):
    """Put a file in place of the folder that holds a file."""
    shutil.rmtree(file.parent)
    file.parent.touch()


FAULTS = {
    "empty": partial(cut, part=0.0),
    "cut": partial(cut, part=0.6),
    "random": lambda file: file.write_bytes(np.random.default_rng(1).bytes(4000)),
    "folder": folder,
}
BREAKS = [(end, fault) for end in (".o", ".meta") for fault in FAULTS.values()] + [(".o", a_file)]
NAMES = [f"{end[1:]} {fault}" for end in (".o", ".meta") for fault in FAULTS] + ["folder of the module"]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """A cache that holds the module of one kernel."""
    with pytest.MonkeyPatch.context() as patch:
        whole = tmp_path_factory.mktemp("compiled")
        patch.setattr(wp.config, "kernel_cache_dir", str(whole))
        compiling.load([twice.module], "cpu")
    return whole


@pytest.fixture
def cache(compiled, tmp_path, monkeypatch):
    """A copy of that in a folder of its own; the module is not loaded."""
    monkeypatch.setattr(wp.config, "kernel_cache_dir", str(tmp_path / "cache"))
    monkeypatch.setattr(compiling, "_loaded", set())
    twice.module.unload()
    return shutil.copytree(compiled, tmp_path / "cache")


def doubled():
    """Twice three, by the kernel."""
    x = wp.array([3.0], dtype=wp.float64, device="cpu")
    wp.launch(twice, dim=1, inputs=[x], device="cpu")
    return float(x.numpy()[0])


@pytest.mark.parametrize(("end", "fault"), BREAKS, ids=NAMES)
def test_a_broken_file_of_the_cache_is_replaced(cache, end, fault):
    """The answer is right, the warning names the folder, and the next process finds nothing wrong."""
    file = next(cache.rglob(f"*{end}"))
    fault(file)
    with pytest.warns(ls.CacheWarning, match="cannot be loaded .* removed and compiled again") as told:
        compiling.load([twice.module], "cpu")
    assert str(file.parent) in str(told[0].message) and doubled() == 6.0
    twice.module.unload()
    compiling._loaded.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiling.load([twice.module], "cpu")
    assert doubled() == 6.0


@pytest.mark.parametrize(("end", "fault"), [(".o", FAULTS["cut"]), (".o", folder), (".meta", folder)])
def test_building_ahead_replaces_it_too(cache, end, fault):
    """What `lissom kernels build` does: afterwards the cache holds code that can be loaded."""
    file = next(cache.rglob(f"*{end}"))
    fault(file)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ls.CacheWarning)
        compiling.load([twice.module], "cpu", recompile=True)
    assert is_whole(next(cache.rglob("*.o")), next(cache.rglob("*.meta")))


@pytest.mark.parametrize("end", [".o", ".meta"])
def test_what_came_broken_is_compiled_here(cache, tmp_path, monkeypatch, end):
    """Files that came compiled are not ours to remove: they stay, the warning names them, and the cache gets its own;
    `build` for a target makes them again."""
    came = tmp_path / "came"
    shutil.move(next(cache.glob("wp_*")), came)
    file = next(came.glob(f"*{end}"))
    cut(file, 0.5)
    code, description = next(came.glob("*.o")), next(came.glob("*.meta"))
    monkeypatch.setattr(compiling, "find_precompiled", lambda module, device: (code, description))
    with pytest.warns(ls.CacheWarning, match="precompiled kernels in .* cannot be loaded .* compiled here") as told:
        compiling.load([twice.module], "cpu")
    assert str(code) in str(told[0].message) and doubled() == 6.0
    assert file.exists() and len(list(cache.rglob("*.o"))) == 1
    assert not is_whole(code, description)


@pytest.mark.parametrize("part", [0.0, 0.5])
def test_building_for_a_target_replaces_broken_files(tmp_path, part):
    """A file that is there but broken does not count as made."""
    twice.module.unload()
    if not compiling.targets_here():
        pytest.skip("kernels are compiled ahead for aarch64 and for x86-64 with AVX2 alone")
    target = compiling.targets_here()[0]
    compiling.precompile(twice.module, target, tmp_path / "out")
    code = next((tmp_path / "out").rglob("*.o"))
    cut(code, part)
    compiling.precompile(twice.module, target, tmp_path / "out")
    assert is_whole(code, code.with_suffix(".meta"))


class Module:
    """A module, as far as the cache asks for one."""

    name = "some"

    def mark_modified(self):
        pass


def test_what_another_process_has_replaced_is_left(tmp_path, monkeypatch):
    """Two processes find one broken file; the second to fail does not remove the file that the first has compiled."""
    monkeypatch.setattr(wp.config, "kernel_cache_dir", str(tmp_path))
    file = tmp_path / "wp_some_0123abc" / "code"
    file.parent.mkdir()
    file.write_text("broken")
    neighbour = tmp_path / "wp_some_0123abc_p1_t2"
    neighbour.mkdir()
    calls = []

    def make():
        calls.append(file.read_text())
        if len(calls) == 1:  # meanwhile the other process is done
            start._remove(file.parent)
            file.parent.mkdir()
            file.write_text("whole")
        if calls[-1] == "broken":
            raise Exception("Failed to load")

    start.load_whole(Module(), make)
    assert calls == ["broken", "whole"] and neighbour.exists()


def test_a_module_that_cannot_be_compiled_says_why(tmp_path, monkeypatch):
    """Its own error comes through, after one more try at most, and without a warning."""
    monkeypatch.setattr(wp.config, "kernel_cache_dir", str(tmp_path))
    Path(tmp_path, "wp_some_0123abc").mkdir()
    calls = []

    def make():
        calls.append(1)
        raise RuntimeError("no such function")

    with pytest.raises(RuntimeError, match="no such function"):
        start.load_whole(Module(), make)
    assert len(calls) == 2


def test_functions_of_the_lie_group_load_the_same_way(monkeypatch):
    """They launch without a model, and their module is in the cache as all others are."""
    loaded = []
    monkeypatch.setattr(arrays, "load_with_room", lambda module, *_: loaded.append(module.name))
    arrays._load.cache_clear()
    ls.lie.so3_exp(np.zeros(3))
    arrays._load.cache_clear()
    assert loaded == [arrays.__name__]
