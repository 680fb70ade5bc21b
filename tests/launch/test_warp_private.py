"""The private parts of Warp that launches use are as they were read, and where they are not launches still work."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
import warp as wp
from robots import build, random_state, random_tree

import lissom as ls
from lissom.launch import warp_private
from lissom.lie.types import CPU_FLAGS, kernel_options
from lissom.model.tables import device_tables
from lissom.passes.column_tables import column_tables

wp.set_module_options(kernel_options())


@wp.struct
class Pair:
    """A struct of an array and a number."""

    x: wp.array(dtype=wp.float64)
    factor: wp.float64


@wp.kernel
def scaled(pair: Pair, out: wp.array(dtype=wp.float64), first: int):
    i = first + wp.tid()
    out[i] = out[i] + pair.factor * pair.x[i]


def recorded():
    """A recorded launch, and the array that it adds to."""
    pair, out = Pair(), wp.zeros(4, dtype=wp.float64, device="cpu")
    pair.x, pair.factor = wp.array([1.0, 2.0, 3.0, 4.0], dtype=wp.float64, device="cpu"), 2.0
    return wp.launch(scaled, dim=2, inputs=[pair, out, 1], device="cpu", record_cmd=True), out


def test_this_version_of_warp_has_been_read():
    """A new Warp: read its `invoke` and LaunchParams, run these tests with its version added to READ, and keep it."""
    assert warp_private.is_read(wp.__version__), (
        f"Warp {wp.__version__} is not in {warp_private.READ}: every call is some microseconds slower until "
        "launch/warp_private.py has been compared with it"
    )


def test_a_packed_launch_does_what_the_public_one_does():
    """The same numbers, again and again."""
    command, out = recorded()
    launch = warp_private.packed_launch(command)
    for times in range(1, 4):
        launch()
        assert out.numpy().tolist() == [0.0, 4.0 * times, 6.0 * times, 0.0]
    command.launch()
    assert out.numpy().tolist() == [0.0, 16.0, 24.0, 0.0]


def test_a_launch_that_holds_the_interpreter_does_the_same():
    """And one that was never packed is left alone."""
    command, out = recorded()
    held = warp_private.holding(warp_private.packed_launch(command))
    for times in range(1, 4):
        held()
        assert out.numpy().tolist() == [0.0, 4.0 * times, 6.0 * times, 0.0]
    assert warp_private.holding(command.launch) == command.launch


@pytest.mark.parametrize("version", ["1.18.3", "1.20.0", "2.0.0.dev1"])
def test_an_unread_version_is_launched_in_the_public_way(version, monkeypatch):
    """Nothing private is touched, and the results are the same."""
    model, (q, v, a, _) = build(random_tree(3)), random_state(random_tree(3), 3)
    known = ls.inverse_dynamics(model, q, v, a)
    monkeypatch.setattr(wp, "__version__", version)
    monkeypatch.setattr(warp_private, "packed_launch", None)
    command, out = recorded()
    warp_private.direct(command)()
    assert out.numpy().tolist() == [0.0, 4.0, 6.0, 0.0]
    assert np.array_equal(ls.inverse_dynamics(build(random_tree(3)), q, v, a), known)


def test_memory_of_arguments_is_seen():
    """Arrays of structs of structs are counted: caches are bounded by what is found here."""
    model = build(random_tree(3))
    assert warp_private.bytes_of(wp.zeros((3, 4), dtype=wp.float64, device="cpu")) == 96
    columns = column_tables(model)
    assert warp_private.bytes_of(columns) > columns.entry_phi1.size * 16
    assert warp_private.bytes_of(device_tables(model)) > 1000
    assert warp_private.bytes_of(7) == 0


def test_headers_are_read_once_for_all_threads():
    """What one thread has read of Warp's headers is the same file to the others, whether they began before or after."""
    folders = []

    def share():
        warp_private.share_headers()
        folders.append(warp_private._folders[-1])

    before = list(warp_private._folders), list(warp_private._headers)
    try:
        threads = [ThreadPoolExecutor(1) for _ in range(3)]  # which stay, so that each is another one
        for thread, of_thread in zip(
            threads, (share, partial(warp_private.read_headers, f"{CPU_FLAGS} -DOF_A_TEST="), share)
        ):
            thread.submit(of_thread).result()
        made = warp_private._headers[-1]
        assert made not in before[1] and made.parent not in folders and len(folders) == 2
        assert all((folder / made.name).samefile(made) for folder in folders)
    finally:
        warp_private._folders[:], warp_private._headers[:] = before


def test_nothing_else_reaches_into_warp():
    """No other file names what is private in Warp."""
    from house.sources import package_files

    words = ("._src", ".hooks.forward", "adj.args", "_invoke_cache", 'getattr(value, "_cls"')
    found = [
        file for file, path in package_files().items() if any(w in path.read_text(encoding="utf-8") for w in words)
    ]
    assert found == ["launch/warp_private.py"]
