"""The only module that uses private parts of Warp, with a public alternative for versions of Warp that were not tested.

A recorded launch of Warp on the CPU packs its arguments in each call, which costs more than a small kernel. The
arguments of a workspace never change. They are packed once, as Warp's own `invoke` does it, and the compiled function
is called with them. With other versions of Warp the public launch is used, which is some microseconds slower. A test
fails if the installed version is not in the list below. LISSOM_WARP=public in the environment turns all private parts
off; `make test-public` runs tests so.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial, partialmethod
from importlib import import_module
from itertools import count, product
from pathlib import Path
from threading import Lock, get_ident, local
from typing import Any, final
from weakref import WeakKeyDictionary, finalize

import warp as wp

from lissom.lie.start import clear, load_whole, place_with_room

TESTED_VERSIONS = ("1.19",)  # of Warp, whose private parts are as this module needs them


def is_tested(version: str) -> bool:
    """Whether private parts may be used: Warp has one of TESTED_VERSIONS, and they are not turned off."""
    if os.environ.get("LISSOM_WARP") == "public":
        return False
    return version.rsplit(".", 1)[0] in TESTED_VERSIONS or version in TESTED_VERSIONS


def direct_call(command: Any) -> Callable[[], None]:
    """A function that runs a recorded launch in the fastest way that this version of Warp allows."""
    if not command.device.is_cpu or not is_tested(wp.__version__):
        return command.launch
    return packed_launch(command)


def packed_launch(command: Any) -> Callable[[], None]:
    """A function that calls the compiled code of a recorded launch on the CPU with arguments packed once."""
    values = command.params[1:]
    names = argument_names(command.kernel)
    packed = type("Arguments", (ctypes.Structure,), {"_fields_": [(n, type(x)) for n, x in zip(names, values)]})()
    for name, value in zip(names, values):
        setattr(packed, name, value)
    launch = partial(command.hooks.forward, ctypes.byref(command.params[0]), ctypes.byref(packed))
    vars(launch)["command"] = command  # keeps the compiled module and the buffers alive
    return launch


def argument_names(kernel: Any) -> list[str]:
    """Names of a kernel's arguments, in their order."""
    return [argument.label for argument in kernel.adj.args]


def launch_under_lock(launch: Callable[[], None]) -> Callable[[], None]:
    """A packed launch that does not release Python's interpreter lock; any other launch unchanged.

    Releasing the lock takes as long as a small kernel.
    """
    if not isinstance(launch, partial):
        return launch
    function: Any = launch.func
    address = ctypes.cast(function, ctypes.c_void_p).value or 0
    direct = partial(ctypes.PYFUNCTYPE(None)(address), *launch.args)
    vars(direct).update(vars(launch))
    return direct


def is_compiled(module: Any, device: str) -> bool | None:
    """Whether Warp's cache on disk contains a module; None for versions of Warp that were not tested."""
    if not is_tested(wp.__version__):
        return None
    at, folder = wp.get_device(device), str(wp.config.kernel_cache_dir)
    block = 1 if at.is_cpu else module.options["block_dim"]
    module.get_module_hash(block)  # computes the hash, which is part of the names
    name = module._get_compile_output_name(at, block_dim=block)
    within = os.path.join(folder, module.get_module_identifier(block_dim=block))
    return all(os.path.isfile(os.path.join(within, file)) for file in (name, f"{os.path.basename(within)}.meta"))


def name_in_cache(module: Any) -> str:
    """The name of a module for the CPU in Warp's cache; it contains a hash of the module."""
    module.get_module_hash(1)
    return str(module.get_module_identifier(block_dim=1))


def object_for(module: Any, flags: str, folder: Path, name: str) -> None:
    """Compile a module for the CPU with other flags, to `name`.o and `name`.meta in a folder."""
    share_generated_code(module)
    own = dict(module.options)
    aside = Path(tempfile.mkdtemp(dir=folder))
    module.options.update(cpu_compiler_flags=flags, block_dim=1)
    module.mark_modified()
    try:
        made = wp.compile_aot_module(module, "cpu", module_dir=aside)[0]
        os.replace(next(aside.glob("*.meta")), folder / f"{name}.meta")
        os.replace(made, folder / f"{name}.o")  # last, so that a code file always has its description
    finally:
        module.options.clear()
        module.options.update(own)
        module.mark_modified()
        shutil.rmtree(aside, ignore_errors=True)


_headers_lock = Lock()
_folders: list[Path] = []  # folders of precompiled headers, of threads that share them
_headers: list[Path] = []  # the precompiled headers


def header_folder() -> Path:
    """Folder of Warp's precompiled headers in this thread. It has room for them: the compiler ends the process on a
    full disk.

    Raises:
        OSError: no folder for temporary files has room.
    """
    runtime, place = import_module("warp._src.context").runtime, place_with_room()
    folder = Path(runtime.get_clang_pch_dir())
    if folder.parent != place and place != Path(tempfile.gettempdir()):
        made = tempfile.TemporaryDirectory(prefix="wp_pch_", dir=place)
        with runtime._pch_dirs_lock:
            old, runtime._pch_dirs[get_ident()] = runtime._pch_dirs[get_ident()], made
        old.cleanup()
        folder = Path(made.name)
    return folder


def load_with_room(module: Any, device: str, make: Callable[[], Any], recompile: bool = False) -> None:
    """Load a module by `load_whole`, with room for Warp's headers if it is compiled.

    Raises:
        OSError: no folder for temporary files has room.
    """
    compiles = recompile or is_compiled(module, device) is not True

    def made() -> None:
        if compiles and wp.get_device(device).is_cpu and is_tested(wp.__version__):
            header_folder()
        make()

    load_whole(module, made, compiles)


def share_headers() -> None:
    """Let this thread use the precompiled headers of `read_headers`, those that exist and those to come."""
    if not is_tested(wp.__version__):
        return
    with suppress(OSError), _headers_lock:  # without room the module that is to be compiled says so
        folder = header_folder()
        _folders.append(folder)
        _link(_headers, _folders[-1:])


def read_headers(flags: str) -> None:
    """Precompile Warp's headers for modules of the CPU with these compiler flags, which takes a second.

    A thread that compiles a module before they are ready reads the headers itself.
    """
    if not is_tested(wp.__version__):
        return
    folder = header_folder()
    with tempfile.TemporaryDirectory(dir=place_with_room()) as aside:
        source = Path(aside, "nothing.cpp")
        source.touch()
        import_module("warp._src.build").build_cpu(
            str(source.with_suffix(".o")), str(source), extra_flags=flags, use_precompiled_headers=True,
            pch_dir=str(folder), block_dim=1,
        )  # fmt: skip
    with _headers_lock:
        found = [file for file in folder.glob("*.pch") if file not in _headers]
        _headers.extend(found)
        _link(found, _folders)


def object_of(source: str, flags: str, level: int) -> bytes:
    """Compile C++ code that includes no header, at an optimization level.

    Raises:
        OSError: no folder for temporary files has room. Exception: the code is wrong.
    """
    with tempfile.TemporaryDirectory(dir=place_with_room()) as folder:
        text, code = Path(folder, "code.cpp"), Path(folder, "code.o")
        text.write_text(source, encoding="utf-8")
        import_module("warp._src.build").build_cpu(
            str(code), str(text), extra_flags=flags, optimization_level=level, fast_math=False,
            use_precompiled_headers=False, block_dim=1,
        )  # fmt: skip
        return code.read_bytes()


def function_of_object(code: bytes, name: str, owner: Any) -> int:
    """Load compiled code, and unload it when its owner is deleted. Returns the address of a function.

    Args:
        name: the function, declared as extern "C".
    Raises:
        ValueError: the code cannot be loaded.
    """
    llvm = import_module("warp._src.context").runtime.llvm
    handle = f"lissom_{next(_numbers)}".encode()
    if llvm.wp_load_obj_from_bytes(code, len(code), handle, wp.config.legacy_cpu_linker) != 0:
        raise ValueError("compiled code cannot be loaded")
    finalize(owner, llvm.wp_unload_obj, handle).atexit = False
    found = llvm.wp_lookup(handle, name.encode())
    if not found:
        raise ValueError(f"compiled code has no function {name}")
    return int(found)


_numbers = count()


def _link(files: list[Path], folders: list[Path]) -> None:
    """Link files into folders, unless they are there or the file system cannot link them."""
    for file, folder in product(files, folders):
        with suppress(OSError):
            os.link(file, folder / file.name)


@final
@dataclass
class _GeneratedCode:
    """The code that Warp generates for a function. Other modules use it if options, digest and blocks agree."""

    options: dict[str, Any]  # of the module
    digest: bytes  # hash of the function's source and of all names in it
    blocks: list[Any]  # of code; Warp makes another list if it generates the function again
    needs: dict[tuple[str, Any], None]  # names of methods of the module's builder, and arguments, to call before
    texts: dict[Any, str]  # generated C++ by options of the text


@final
class _RecordingWriter:
    """A builder of a module that records the functions and structs needed by one function."""

    functions = ()  # those generated already, which a function looks up before each call

    def __init__(self, writer: Any) -> None:
        self.writer, self.options = writer, writer.options
        self.needs: dict[tuple[str, Any], None] | None = {}

    def build_function(self, function: Any) -> None:
        self._first("build_function", function)

    def build_struct_recursive(self, struct: Any) -> None:
        self._first("build_struct_recursive", struct)

    def _first(self, method: str, what: Any) -> None:
        if self.needs is not None:
            self.needs[method, what] = None
        getattr(self.writer, method)(what)

    def __getattr__(self, name: str) -> Any:
        self.needs = None  # other needs are not recorded, and the function is not shared
        return getattr(self.writer, name)


_generated: WeakKeyDictionary[Any, _GeneratedCode] = WeakKeyDictionary()
_IRRELEVANT_OPTIONS = ("extra_", "cpu_compiler_flags")  # beginnings of names of options that do not change the code


_hashes: WeakKeyDictionary[Any, bytes] = WeakKeyDictionary()


def leave_out_dependents() -> None:
    """Let Warp not search the functions of this library for the modules on which they depend. It does so for Python
    modules that are loaded again, which this library's cannot be, and it takes a sixth of the time to the first result.
    """
    if not is_tested(wp.__version__):
        return
    module = import_module("warp._src.context").Module
    if not isinstance(vars(module)["_find_references"], partialmethod):
        module._find_references = partialmethod(_references, module._find_references)


def _references(module: Any, own: Callable[..., None], adjoint: Any) -> None:
    """Register the modules of the functions that a function calls, unless it belongs to this library."""
    if not str(adjoint.func.__module__).startswith("lissom."):
        own(module, adjoint)


_hashing = local()  # `stack`: whether the functions being hashed in this thread call only those of this library


def share_hashes() -> None:
    """Let Warp hash each function of this library once in a process, instead of once for every module that calls it.
    A function that calls one of the user's, who may define it again, is hashed each time."""
    if not is_tested(wp.__version__):
        return
    hasher = import_module("warp._src.context").ModuleHasher
    if not isinstance(vars(hasher)["hash_function"], partialmethod):
        hasher.hash_function = partialmethod(_hash, hasher.hash_function)


def _hash(hasher: Any, own: Callable[..., bytes], function: Any) -> bytes:
    """The hash of a function and of all that it calls."""
    known = _hashes.get(function)
    if known is not None:
        hasher.function_hashes[function] = known
        return known
    stack: list[bool] = vars(_hashing).setdefault("stack", [])
    is_first = function not in hasher.function_hashes
    stack.append(is_first and str(getattr(function.func, "__module__", "")).startswith("lissom."))
    try:
        found = own(hasher, function)
    finally:
        is_ours = stack.pop()
    if is_ours:
        _hashes[function] = found
    elif stack:
        stack[-1] = False
    return found


def share_generated_code(module: Any, before_compiling: Callable[[], Any] = lambda: None) -> None:
    """Let a module reuse the generated code of functions of other modules in this process, which is most of its code.

    Kernels for the CPU take their structs by address. Warp copies them for each instance: 13 kB of tables and scratch
    memory, a fifth of a call of inverse dynamics of a small arm.

    Args:
        before_compiling: called between the generation of the code and its compilation.
    """
    if not is_tested(wp.__version__) or "_run_codegen" in vars(module):
        return
    context, codegen = import_module("warp._src.context"), import_module("warp._src.codegen")

    def run(*arguments: Any, **named: Any) -> Any:
        with context._codegen_lock, ExitStack() as stack:  # Warp generates all code under this lock
            for where, name, other in (
                (context.Function, "build", partial(partialmethod, _build)),
                (codegen, "codegen_func", partial(partial, _text)),
                (codegen.Adjoint, "resolve_func", partial(partialmethod, _overload)),
            ):
                own = getattr(where, name)
                setattr(where, name, other(own))
                stack.callback(setattr, where, name, own)
            source, *others = type(module)._run_codegen(module, *arguments, **named)
        before_compiling()
        return _COPIED_STRUCT.sub(r"\1& \2", source), *others

    module._run_codegen = run


# A struct among the arguments of a kernel for the CPU; names of structs end in their hash
_COPIED_STRUCT = re.compile(r"^( +\w+_[0-9a-f]{8}) (var_\w+ = _wp_args->)", re.MULTILINE)


def _build(function: Any, build: Callable[..., None], writer: Any, *others: Any) -> None:
    """Generate the code of a function for a module, or reuse that of another module."""
    hasher = writer and writer.module.hashers.get(writer.options["block_dim"])
    digest = _hashes.get(function) or (hasher and hasher.function_hashes.get(function))
    if digest is None:
        build(function, writer, *others)
        return
    known = _generated.get(function.adj)
    options = _relevant_options(writer.options)
    if known and known.blocks is function.adj.blocks and (known.digest, known.options) == (digest, options):
        for method, what in known.needs:
            getattr(writer, method)(what)
        return
    noting = _RecordingWriter(writer)
    build(function, noting)
    if noting.needs is not None:
        _generated[function.adj] = _GeneratedCode(options, digest, function.adj.blocks, noting.needs, {})


def _relevant_options(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if not name.startswith(_IRRELEVANT_OPTIONS)}


def _text(text: Callable[..., str], code: Any, *, options: dict[str, Any], **others: Any) -> str:
    """The C++ text of a function by Warp's `text`, kept in _generated for other modules."""
    known = _generated.get(code)
    if known is None or known.blocks is not code.blocks or known.options != _relevant_options(options):
        return text(code, options=options, **others)
    key = code.used_by_backward_kernel, code.force_adjoint_codegen, *sorted(others.items())
    if key not in known.texts:
        known.texts[key] = text(code, options=options, **others)
    return known.texts[key]


_overloads: dict[tuple[Any, ...], Any] = {}  # overloads of Warp's own functions, by the types of their arguments


def _overload(writer: Any, resolve: Callable[..., Any], function: Any, types: Any, named: Any, outputs: Any) -> Any:
    """The overload of a function for a call. Warp compares the types of the call with each overload in turn, 31,000
    times for the first kernel of a robot; for its own functions the result is kept by types."""
    keys = [_overload_key(kind) for kind in (*types, *named.values())]
    if not function.is_builtin() or None in keys:
        return resolve(writer, function, types, named, outputs)
    key = function, outputs, *keys, *named
    if key not in _overloads:
        _overloads[key] = resolve(writer, function, types, named, outputs)
    return _overloads[key]


def _overload_key(kind: Any) -> Any:
    """The part of a type on which the choice of an overload depends; None for rare types."""
    if isinstance(kind, wp.array):
        return type(kind), kind.dtype, kind.ndim
    return kind if isinstance(kind, type) else None


def generated_code(module: Any) -> str:
    """The C++ code that Warp generates for a module for the CPU, with structs by address.

    Raises:
        ValueError: the installed version of Warp was not tested.
    """
    if not is_tested(wp.__version__):
        raise ValueError(f"Warp must be of version {' or '.join(TESTED_VERSIONS)} (got {wp.__version__})")
    share_generated_code(module)
    module.get_module_hash(1)
    code, *_ = module._run_codegen(module.resolved_options[1] | {"output_arch": None}, True)
    return str(code)


def native_headers() -> Path:
    """Folder of the headers that generated code includes."""
    return Path(wp.__file__).parent / "native"


def compile_into_cache(module: Any) -> None:
    """Compile a module for the CPU into the cache. The module that is loaded stays as it is."""
    clear(module)
    module.get_module_hash(1)
    module._compile(wp.get_device("cpu"), options=module.resolved_options[1])


def is_whole(code: Path, description: Path) -> bool:
    """Whether compiled code can be loaded and its description can be read."""
    llvm = import_module("warp._src.context").runtime.llvm
    try:
        json.loads(description.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    name = f"tried {code.name}".encode()
    good = code.is_file() and llvm.wp_load_obj(str(code).encode(), name, wp.config.legacy_cpu_linker) == 0
    if good:
        llvm.wp_unload_obj(name)
    return good


def load_object(module: Any, code: Path, description: Path) -> None:
    """Load a module from the files that `object_for` made, instead of compiling it."""
    module.load(wp.get_device("cpu"), block_dim=1, binary_path=str(code), meta_path=str(description))


def struct_of(value: Any) -> Any:
    """The struct type of an argument of a kernel; None if it is no struct."""
    return getattr(value, "_cls", None)


def bytes_of(value: Any) -> int:
    """Memory of an argument of a kernel [bytes]: of an array, or of all arrays in a struct; 0 for others."""
    return sum(int(array.size) * wp.types.type_size_in_bytes(array.dtype) for array in arrays_of(value))


def repeat_row(value: Any, rows: int) -> Any:
    """Give each array of one row in a struct, and in structs within it, the shape of `rows` rows in the same memory."""
    for name in struct_of(value).vars:
        array = getattr(value, name)
        if hasattr(struct_of(array), "vars"):
            repeat_row(array, rows)
        if isinstance(array, wp.array) and array.ndim == 2:
            strides = (0, wp.types.type_size_in_bytes(array.dtype))
            shape = (rows, array.shape[1])
            view = wp.array(ptr=array.ptr, dtype=array.dtype, shape=shape, strides=strides, device=array.device)
            view._ref = array  # keeps the memory alive
            setattr(value, name, view)
    return value


def arrays_of(value: Any) -> Iterator[Any]:
    """The arrays of an argument of a kernel: itself, or those in a struct."""
    if isinstance(value, wp.array):
        yield value
    else:
        for name in getattr(struct_of(value), "vars", ()):
            yield from arrays_of(getattr(value, name))
