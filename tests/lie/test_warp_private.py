"""The private parts of Warp that launches use are as they were read, and where they are not launches still work."""

import re
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module
from weakref import WeakKeyDictionary

import numpy as np
import pytest
import warp as wp
from robots import build, random_state, random_tree

import lissom as ls
from lissom.dynamics.inverse_dynamics import inverse_dynamics_kernel
from lissom.dynamics.kinematics import frames_kernel, jacobian_kernel
from lissom.launch.compiling import kernel_for
from lissom.lie import warp_private
from lissom.lie.types import CPU_FLAGS, kernel_options
from lissom.model.tables import device_tables
from lissom.passes.columns import column_tables

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


FACTOR = 2.0


@wp.func
def taken_times(pair: Pair, i: int) -> wp.float64:
    return wp.float64(FACTOR) * pair.x[i]


def module_with_a_kernel_of_its_own(shift):
    """A module whose kernel calls a function that those of others call, and a struct that comes after it."""
    further = wp.constant(wp.float64(shift))

    @wp.kernel(module="unique")
    def shifted(pair: Pair, out: wp.array(dtype=wp.float64)):
        i = wp.tid()
        other = Pair()
        other.factor = taken_times(pair, i) + further
        out[i] = other.factor

    return shifted.module


STRUCT_BY_ADDRESS = re.compile(r"(\w+_[0-9a-f]{8})& var_(?=\w+ = _wp_args)")


def texts(modules, *, together):
    """What Warp writes for modules, with structs by value, without comments, in which it leaves out lines that it wrote
    last."""
    found = []
    for module in modules:
        module.get_module_hash(1)
        if together:
            warp_private.share_generated_code(module)
        write = module._run_codegen if together else partial(type(module)._run_codegen, module)
        lines = write(module.resolved_options[1] | {"output_arch": None}, True)[0].splitlines()
        found.append([STRUCT_BY_ADDRESS.sub(r"\1 var_", x) for x in lines if not x.lstrip().startswith("//")])
    return found


def recorded():
    """A recorded launch, and the array that it adds to."""
    pair, out = Pair(), wp.zeros(4, dtype=wp.float64, device="cpu")
    pair.x, pair.factor = wp.array([1.0, 2.0, 3.0, 4.0], dtype=wp.float64, device="cpu"), 2.0
    return wp.launch(scaled, dim=2, inputs=[pair, out, 1], device="cpu", record_cmd=True), out


def test_this_version_of_warp_has_been_read():
    """A new Warp: read its `invoke` and LaunchParams, add its version to TESTED_VERSIONS, and run these tests."""
    assert warp_private.is_tested(wp.__version__), (
        f"Warp {wp.__version__} is not in {warp_private.TESTED_VERSIONS}: every call is some microseconds slower until "
        "lie/warp_private.py has been compared with it"
    )


def test_private_parts_can_be_turned_off(monkeypatch):
    """By the environment variable that `make test-public` sets; the launch is then Warp's own."""
    command, _ = recorded()
    assert warp_private.direct_call(command) != command.launch
    monkeypatch.setenv("LISSOM_WARP", "public")
    assert warp_private.direct_call(command) == command.launch


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
    held = warp_private.launch_under_lock(warp_private.packed_launch(command))
    for times in range(1, 4):
        held()
        assert out.numpy().tolist() == [0.0, 4.0 * times, 6.0 * times, 0.0]
    assert warp_private.launch_under_lock(command.launch) == command.launch


@pytest.mark.parametrize("version", ["1.18.3", "1.20.0", "2.0.0.dev1"])
def test_an_unread_version_is_launched_in_the_public_way(version, monkeypatch):
    """Nothing private is touched, and the results are the same."""
    model, (q, v, a, _) = build(random_tree(3)), random_state(random_tree(3), 3)
    known = ls.inverse_dynamics(model, q, v, a)
    monkeypatch.setattr(wp, "__version__", version)
    monkeypatch.setattr(warp_private, "packed_launch", None)
    command, out = recorded()
    warp_private.direct_call(command)()
    assert out.numpy().tolist() == [0.0, 4.0, 6.0, 0.0]
    assert np.array_equal(ls.inverse_dynamics(build(random_tree(3)), q, v, a), known)


def test_memory_of_arguments_is_seen():
    """Arrays of structs of structs are counted: caches are bounded by this count."""
    model = build(random_tree(3))
    assert warp_private.bytes_of(wp.zeros((3, 4), dtype=wp.float64, device="cpu")) == 96
    columns = column_tables(model)
    assert warp_private.bytes_of(columns) > columns.entry_phi1.size * 16
    assert warp_private.bytes_of(device_tables(model)) > 1000
    assert warp_private.bytes_of(7) == 0


def test_headers_are_read_once_for_all_threads():
    """A header of Warp that one thread has read is the same file for the others, whether they began before or after."""
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


def test_functions_that_kernels_share_are_written_once(monkeypatch):
    """The text of modules is the same as if each writes all of its functions, in the same order. Only those that take
    other functions are written again."""
    model = build(random_tree(3))
    modules = [kernel_for(kernel, model).module for kernel in (inverse_dynamics_kernel, frames_kernel)]
    alone = texts(modules, together=False)
    codegen = import_module("warp._src.codegen")
    written, write = [], codegen.Adjoint.build
    monkeypatch.setattr(codegen.Adjoint, "build", lambda code, *rest: (written.append(code), write(code, *rest))[1])
    assert texts(modules, together=True) == alone
    assert texts(reversed(modules), together=True) == alone[::-1]
    of_functions = [code for code in written if code.is_user_function and not hasattr(code, "callable_arg_values")]
    assert len(of_functions) > 50 and len(set(of_functions)) == len(of_functions)


def test_dependents_of_own_functions_are_not_searched():
    """Functions of users register the modules of the functions that they call, those of this library do not."""
    theirs = module_with_a_kernel_of_its_own(4.0)
    assert taken_times.module in theirs.references
    assert not frames_kernel.__globals__["traversal"].outward_pose.module.references


def test_functions_are_hashed_once(monkeypatch):
    """Modules have the hash that Warp alone gives them, by which the cache knows them. Functions of this library are
    hashed for the first module that calls them, those of the user for each."""
    model = build(random_tree(3))
    modules = [kernel_for(kernel, model).module for kernel in (inverse_dynamics_kernel, frames_kernel)]
    hasher = import_module("warp._src.context").ModuleHasher
    with_cache, adjoints, adjoint = vars(hasher)["hash_function"], [], hasher.hash_adjoint

    def hashes():
        adjoints.clear()
        return [hasher([*module.kernels.values()], module.options).hash for module in modules]

    monkeypatch.setattr(hasher, "hash_adjoint", lambda self, code: (adjoints.append(code), adjoint(self, code))[1])
    found = hashes()
    assert hashes() == found and len(adjoints) == 2, "of the kernels"
    monkeypatch.setattr(hasher, "hash_function", with_cache.args[0])
    assert hashes() == found and len(adjoints) > 100, "of what Warp alone hashes"
    monkeypatch.setattr(hasher, "hash_function", with_cache)
    changing = module_with_a_kernel_of_its_own(1.0)
    adjoints.clear()
    for _ in range(2):
        hasher([*changing.kernels.values()], changing.options)
    assert [code.fun_name for code in adjoints].count("taken_times") == 2


def test_overloads_are_chosen_once(monkeypatch):
    """Warp searches for the overload of each of its own functions once for the same types, in any caller."""
    model = build(random_tree(3))
    module = kernel_for(jacobian_kernel, model).module
    codegen = import_module("warp._src.codegen")
    compared, compare = [], codegen.func_match_args
    monkeypatch.setattr(warp_private, "_overloads", {})
    monkeypatch.setattr(warp_private, "_generated", WeakKeyDictionary())
    monkeypatch.setattr(
        codegen, "func_match_args", lambda *call, **more: (compared.append((call, more)), compare(*call, **more))[1]
    )
    texts([module], together=True)
    of_warp = [
        (f, *types, *named.items(), *more.items())
        for (f, types, named), more in compared
        if f.is_builtin() and all(isinstance(x, type) for x in types)
    ]
    assert len(of_warp) > 100 and len(set(of_warp)) == len(of_warp)
    count = len(compared)
    texts([module], together=False)
    assert len(compared) > 5 * count


def test_a_function_that_has_changed_is_written_again(monkeypatch):
    """A constant of another value, another version of Warp, and code that somebody else wrote meanwhile."""
    modules = [module_with_a_kernel_of_its_own(shift) for shift in (1.0, 3.0)]
    assert texts(modules, together=True) == texts(modules, together=False) == texts(modules, together=True)
    monkeypatch.setitem(globals(), "FACTOR", 5.0)
    changed = module_with_a_kernel_of_its_own(7.0)
    assert any("5.0" in line for line in texts([changed], together=True)[0])
    assert texts([changed], together=True) == texts([changed], together=False)
    monkeypatch.setattr(wp, "__version__", "1.20.0")
    unread = module_with_a_kernel_of_its_own(9.0)
    warp_private.share_generated_code(unread)
    assert "_run_codegen" not in vars(unread)


def test_kernels_take_structs_by_address():
    """A struct is not copied for each instance; arrays and numbers are. A kernel that wrote to a field of its struct
    would change it for all instances (tests/house/test_kernels.py)."""
    module = scaled.module
    module.get_module_hash(1)
    warp_private.share_generated_code(module)
    source = module._run_codegen(module.resolved_options[1] | {"output_arch": None}, True)[0]
    assert (
        len(STRUCT_BY_ADDRESS.findall(source)) == 1 and "wp::int32 var_" in source and "wp::int32& var_" not in source
    )
    launch, out = recorded()
    warp_private.direct_call(launch)()
    np.testing.assert_array_equal(out.numpy(), [0.0, 4.0, 6.0, 0.0])


def test_functions_of_structs_that_nobody_calls_are_left_out(tmp_path):
    """Those that derivatives would call, of each struct in each module."""
    module = module_with_a_kernel_of_its_own(2.0)
    module.options.update(kernel_options())
    warp_private.object_for(module, CPU_FLAGS.replace("-march=native ", ""), tmp_path, "made")
    made = (tmp_path / "made.o").read_bytes()
    assert b"shifted" in made and b"atomic_add" not in made


def test_nothing_else_reaches_into_warp():
    """No other file names private parts of Warp."""
    from house.sources import package_files

    words = ("._src", ".hooks.forward", "adj.args", "_invoke_cache", 'getattr(value, "_cls"')
    found = [
        file for file, path in package_files().items() if any(w in path.read_text(encoding="utf-8") for w in words)
    ]
    assert found == ["lie/warp_private.py"]
