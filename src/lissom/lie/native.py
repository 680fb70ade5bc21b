"""Native functions of kernels: C++ in header files, declared by typed stubs in Python.

A header holds functions with whole signatures, and their shared code in `namespace lissom`. A Python module names the
header and declares the functions that its kernels call:

    native = native_functions("systems/fronts.h", STATE=STATE)

    @wp.func_native(native("clear_front"))
    def clear_front(y: Blocks, z: Fronts, i: int, e: int, work: Matrix, C: Matrix, R: Matrix): ...

Warp puts the body of a function, with the arguments of its stub, into the code of the kernels that call it, and into
no other. Code in `namespace lissom` precedes every kernel and is parsed with each, so it holds small functions and
templates only. Comments are removed before compilation, so that an edited comment leaves compiled kernels valid.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).parents[1]
# Headers with shared code, each after those that it needs.
_SHARED = (
    "lie/native.h",
    "lie/interval.h",
    "passes/columns.h",
    "passes/interval.h",
    "passes/linear_algebra.h",
    "systems/fronts.h",
    "systems/programs.h",
    "forces/green_strains.h",
    "gradients/recursion.h",
)
_COMMENT = re.compile(r"^[ \t]*//[^\n]*\n|[ \t]*//[^\n]*", re.MULTILINE)
_NAMESPACE = re.compile(r"^namespace lissom \{\n.*?^\}  // namespace lissom\n", re.MULTILINE | re.DOTALL)
_FUNCTION = re.compile(r"^LISSOM_INLINE [^{};]*?(\w+)\([^{};]*\) \{\n(.*?)^\}\n", re.MULTILINE | re.DOTALL)


@cache
def _text(header: str) -> str:
    return (_PACKAGE / header).read_text(encoding="utf-8")


@cache
def _bodies(header: str) -> dict[str, str]:
    """The bodies of the native functions of a header, by name."""
    return dict(_FUNCTION.findall(_COMMENT.sub("", _NAMESPACE.sub("", _text(header)))))


def shared_code() -> str:
    """The code before every kernel: the whole first header, and the shared parts of the others."""
    first, *others = map(_text, _SHARED)
    parts = [part for text in others for part in _NAMESPACE.findall(text)]
    return _COMMENT.sub("", "\n".join([first, *parts]))


def own_code(header: str) -> str:
    """The whole code of a header that is used alone."""
    return _COMMENT.sub("", _text(header))


def native_functions(header: str, **constants: int) -> Callable[[str], str]:
    """The bodies of the functions in a header, by name, as arguments of `warp.func_native`.

    Args:
        header: path of the header below the package.
        constants: integers of Python that bodies of the header use by name.
    Raises:
        LookupError: the header and the name of a function that it does not have.
    """

    def body_of(name: str) -> str:
        body = _bodies(header).get(name)
        if body is None:
            raise LookupError(f"{header} has no function {name}")
        words = set(re.findall(r"\w+", body))
        used = (f"    const int {key} = {value};\n" for key, value in constants.items() if key in words)
        return "".join(used) + body

    return body_of
