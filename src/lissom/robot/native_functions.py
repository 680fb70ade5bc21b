"""Functions of users as native code, which kernels call by its address."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

if TYPE_CHECKING:
    from lissom.tracing.native import Traced


@final
@dataclass(frozen=True)
class NativeFunction:
    """A function of a user without inputs, such as a force or the law of a spring, as native code.

    Kernels for the CPU find its address in their tables, so that they need not be compiled for it. Kernels for other
    devices have no addresses and contain its code. Equal code is one function.

    Fields:
        functions: its value, and its derivatives.
        takes_time: whether it depends on t.
        in_kernel: makes the same function as a Warp function.
    """

    functions: Traced
    takes_time: bool
    in_kernel: Callable[[], Any] = field(compare=False, repr=False)
