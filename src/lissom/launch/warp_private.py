"""The one place that uses parts of Warp which are not public, and what serves where they have changed.

A recorded launch on the CPU packs its arguments anew each time it is launched, which costs more than a small kernel.
The arguments of a workspace never change, so they are packed once, in the way of Warp's own `invoke`, and the compiled
function is called with them. Versions of Warp that have not been read launch in the public way, some microseconds
slower; a test says when the list below is out of date.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial, partialmethod
from importlib import import_module
from itertools import product
from pathlib import Path
from threading import Lock, local
from typing import Any, final
from weakref import WeakKeyDictionary

import warp as wp

from lissom.lie.start import clear

READ = ("1.19",)  # versions of Warp whose `invoke` packs arguments as `packed_launch` does


def is_read(version: str) -> bool:
    """Whether the private parts of this version of Warp are as this file has them."""
    return version.rsplit(".", 1)[0] in READ or version in READ


def direct(command: Any) -> Callable[[], None]:
    """A recorded launch as a plain call."""
    if not command.device.is_cpu or not is_read(wp.__version__):
        return command.launch
    return packed_launch(command)


def packed_launch(command: Any) -> Callable[[], None]:
    """The compiled function of a recorded launch on the CPU, called with arguments packed once."""
    values = command.params[1:]
    names = [argument.label for argument in command.kernel.adj.args]
    packed = type("Arguments", (ctypes.Structure,), {"_fields_": [(n, type(x)) for n, x in zip(names, values)]})()
    for name, value in zip(names, values):
        setattr(packed, name, value)
    launch = partial(command.hooks.forward, ctypes.byref(command.params[0]), ctypes.byref(packed))
    vars(launch)["command"] = command  # the compiled module and the buffers live as long as the call
    return launch


def holding(launch: Callable[[], None]) -> Callable[[], None]:
    """A packed launch during which no other thread of Python runs: letting them takes as long as a small kernel. Any
    other launch is as it was."""
    if not isinstance(launch, partial):
        return launch
    function: Any = launch.func
    at = ctypes.cast(function, ctypes.c_void_p).value or 0
    held = partial(ctypes.PYFUNCTYPE(None)(at), *launch.args)
    vars(held).update(vars(launch))
    return held


def is_compiled(module: Any, device: str) -> bool | None:
    """Whether the cache has what a module is compiled to; None where this version of Warp has not been read."""
    if not is_read(wp.__version__):
        return None
    at, folder = wp.get_device(device), str(wp.config.kernel_cache_dir)
    block = 1 if at.is_cpu else module.options["block_dim"]
    module.get_module_hash(block)  # which fixes the names
    name = module._get_compile_output_name(at, block_dim=block)
    within = os.path.join(folder, module.get_module_identifier(block_dim=block))
    return all(os.path.isfile(os.path.join(within, file)) for file in (name, f"{os.path.basename(within)}.meta"))


def name_in_cache(module: Any) -> str:
    """The name that a module for the CPU has in the cache, which tells of what it is made."""
    module.get_module_hash(1)
    return str(module.get_module_identifier(block_dim=1))


def object_for(module: Any, flags: str, folder: Path, name: str) -> None:
    """Compile a module for the CPU with other flags, to `name`.o and `name`.meta in a folder."""
    write_once(module)
    own = dict(module.options)
    aside = Path(tempfile.mkdtemp(dir=folder))
    module.options.update(cpu_compiler_flags=flags, block_dim=1)
    module.mark_modified()
    try:
        made = wp.compile_aot_module(module, "cpu", module_dir=aside)[0]
        os.replace(next(aside.glob("*.meta")), folder / f"{name}.meta")
        os.replace(made, folder / f"{name}.o")  # last: what is there is whole
    finally:
        module.options.clear()
        module.options.update(own)
        module.mark_modified()
        shutil.rmtree(aside, ignore_errors=True)


_sharing = Lock()
_folders: list[Path] = []  # of threads that share what is read of Warp's headers
_headers: list[Path] = []  # what is read of them


def share_headers() -> None:
    """Let this thread compile with what `read_headers` reads of Warp's headers, before or from now on."""
    if is_read(wp.__version__):
        with _sharing:
            _folders.append(Path(import_module("warp._src.context").runtime.get_clang_pch_dir()))
            _link(_headers, _folders[-1:])


def read_headers(flags: str) -> None:
    """Read Warp's headers, which takes a second, as modules for the CPU with these flags take them; a thread whose
    module comes first reads them itself."""
    if not is_read(wp.__version__):
        return
    folder = Path(import_module("warp._src.context").runtime.get_clang_pch_dir())
    with tempfile.TemporaryDirectory() as aside:
        source = Path(aside, "nothing.cpp")
        source.touch()
        import_module("warp._src.build").build_cpu(
            str(source.with_suffix(".o")), str(source), extra_flags=flags, use_precompiled_headers=True,
            pch_dir=str(folder), block_dim=1,
        )  # fmt: skip
    with _sharing:
        found = [file for file in folder.glob("*.pch") if file not in _headers]
        _headers.extend(found)
        _link(found, _folders)


def _link(files: list[Path], folders: list[Path]) -> None:
    """Let files stand in folders too, where that can be and they do not yet."""
    for file, folder in product(files, folders):
        with suppress(OSError):
            os.link(file, folder / file.name)


@final
@dataclass
class _Written:
    """What Warp makes of the source of a function; it holds while the first three are those of the next module."""

    options: dict[str, Any]  # of the module
    digest: bytes  # of its source and of all that this names
    blocks: list[Any]  # of code, another list when somebody else had the function written
    needs: dict[tuple[str, Any], None]  # what is written before it: names of methods of a module's writer, and of what
    texts: dict[Any, str]  # by options of the text


@final
class _Writer:
    """A writer of a module, as one function in it sees that: with a note of what has to be written before it."""

    functions = ()  # written already, of which a function asks before each call

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
        self.needs = None  # rare things, of which there is no note
        return getattr(self.writer, name)


_written: WeakKeyDictionary[Any, _Written] = WeakKeyDictionary()
_ELSEWHERE = ("extra_", "cpu_compiler_flags")  # how options begin that do not change what is made of a function


_hashes: WeakKeyDictionary[Any, bytes] = WeakKeyDictionary()
_hashing = local()  # `stack`: whether the functions being hashed in this thread call only those of this library


def share_hashes() -> None:
    """Let Warp hash each function of this library once in a process, instead of once for every module that calls it.
    A function that calls one of the user's, who may define it again, is hashed each time."""
    if not is_read(wp.__version__):
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


def write_once(module: Any, before_compiling: Callable[[], Any] = lambda: None) -> None:
    """Let a module take the code of functions that another module of this process has, which is most of its code,
    instead of writing it from their Python source again, and call a function between writing and compiling it."""
    if not is_read(wp.__version__) or "_run_codegen" in vars(module):
        return
    context, codegen = import_module("warp._src.context"), import_module("warp._src.codegen")

    def run(*arguments: Any, **named: Any) -> Any:
        with context._codegen_lock, ExitStack() as stack:  # under which Warp writes all modules
            for where, name, other in (
                (context.Function, "build", partial(partialmethod, _build)),
                (context.ModuleBuilder, "_collect_native_types", partial(partialmethod, _collect, codegen, set())),
                (codegen, "codegen_func", partial(partial, _text)),
                (codegen.Adjoint, "resolve_func", partial(partialmethod, _overload)),
            ):
                own = getattr(where, name)
                setattr(where, name, other(own))
                stack.callback(setattr, where, name, own)
            written = type(module)._run_codegen(module, *arguments, **named)
        before_compiling()
        return written

    module._run_codegen = run


def _collect(writer: Any, codegen: Any, seen: set[Any], collect: Callable[..., None], kind: Any) -> None:
    """Look into a type for those of other libraries, of which a module tells the compiler; into a struct once."""
    kind = codegen.strip_reference(kind)
    if not isinstance(kind, codegen.Struct):
        collect(writer, kind)
    elif kind not in seen:
        seen.add(kind)
        collect(writer, kind)


def _build(function: Any, build: Callable[..., None], writer: Any, *others: Any) -> None:
    """Make the code of a function for a module, or take it from another."""
    hasher = writer and writer.module.hashers.get(writer.options["block_dim"])
    digest = _hashes.get(function) or (hasher and hasher.function_hashes.get(function))
    if digest is None:
        build(function, writer, *others)
        return
    known = _written.get(function.adj)
    options = _of_functions(writer.options)
    if known and known.blocks is function.adj.blocks and (known.digest, known.options) == (digest, options):
        for method, what in known.needs:
            getattr(writer, method)(what)
        return
    noting = _Writer(writer)
    build(function, noting)
    if noting.needs is not None:
        _written[function.adj] = _Written(options, digest, function.adj.blocks, noting.needs, {})


def _of_functions(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if not name.startswith(_ELSEWHERE)}


def _text(text: Callable[..., str], code: Any, *, options: dict[str, Any], **others: Any) -> str:
    """The text of the code of a function, made once."""
    known = _written.get(code)
    if known is None or known.blocks is not code.blocks or known.options != _of_functions(options):
        return text(code, options=options, **others)
    key = code.used_by_backward_kernel, code.force_adjoint_codegen, *sorted(others.items())
    if key not in known.texts:
        known.texts[key] = text(code, options=options, **others)
    return known.texts[key]


_overloads: dict[tuple[Any, ...], Any] = {}  # of Warp's own functions, by the types of what they are called with


def _overload(writer: Any, resolve: Callable[..., Any], function: Any, types: Any, named: Any, outputs: Any) -> Any:
    """Which of the overloads of a function a call means: asked of Warp once for each of its own functions and types, as
    it tries them one after the other."""
    kinds = [_kind(one) for one in (*types, *named.values())]
    if not function.is_builtin() or None in kinds:
        return resolve(writer, function, types, named, outputs)
    key = function, outputs, *kinds, *named
    if key not in _overloads:
        _overloads[key] = resolve(writer, function, types, named, outputs)
    return _overloads[key]


def _kind(of: Any) -> Any:
    """What tells a type from others where overloads are chosen; None of types that are rare."""
    if isinstance(of, wp.array):
        return type(of), of.dtype, of.ndim
    return of if isinstance(of, type) else None


def compile_into_cache(module: Any) -> None:
    """Compile a module for the CPU of which the cache has not all, and leave what is loaded of it as it is."""
    clear(module)
    module.get_module_hash(1)
    module._compile(wp.get_device("cpu"), options=module.resolved_options[1])


def is_whole(code: Path, description: Path) -> bool:
    """Whether compiled code can be loaded, and its description read."""
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
    """Load what `object_for` made, instead of compiling."""
    module.load(wp.get_device("cpu"), block_dim=1, binary_path=str(code), meta_path=str(description))


def struct_of(value: Any) -> Any:
    """The struct that an argument of a kernel is of; None where it is of none."""
    return getattr(value, "_cls", None)


def bytes_of(value: Any) -> int:
    """Memory of an argument of a kernel: an array, or a struct of arrays; 0 of what Warp does not let see."""
    return sum(int(array.size) * wp.types.type_size_in_bytes(array.dtype) for array in arrays_of(value))


def one_row_for_all(value: Any, rows: int) -> Any:
    """A struct of arrays of one row, and of such structs, as if each array had so many: all of them are that one."""
    for name in struct_of(value).vars:
        array = getattr(value, name)
        if hasattr(struct_of(array), "vars"):
            one_row_for_all(array, rows)
        if isinstance(array, wp.array) and array.ndim == 2:
            strides = (0, wp.types.type_size_in_bytes(array.dtype))
            shape = (rows, array.shape[1])
            view = wp.array(ptr=array.ptr, dtype=array.dtype, shape=shape, strides=strides, device=array.device)
            view._ref = array  # whose memory it is
            setattr(value, name, view)
    return value


def arrays_of(value: Any) -> Iterator[Any]:
    """The arrays of an argument of a kernel; none of what Warp does not let see."""
    if isinstance(value, wp.array):
        yield value
    else:
        for name in getattr(struct_of(value), "vars", ()):
            yield from arrays_of(getattr(value, name))
