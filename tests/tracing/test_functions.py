"""Compiled functions that kernels may call before they are compiled."""

import ctypes
import os
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Event

import numpy as np
import pytest

from lissom.tracing import native
from lissom.tracing.graph import trace
from lissom.tracing.native import Code, Function, begin_functions, code_of, wait_for_functions

POINTERS = ctypes.c_void_p * 1
CALL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


def code(factor: float) -> Callable[[], str]:
    """What writes the code of factor · x² for one x."""
    graph, nodes = trace(lambda x: (factor * x * x,), [(1,)])
    return code_of([(graph, nodes)], [1]).functions[0]


def called_as_kernels_do(function: Function, x: float) -> float:
    """The value at x of the function whose address is in the cell."""
    given, found = np.array([x]), np.zeros(1)
    ends = [POINTERS(ctypes.c_void_p(part.ctypes.data)) for part in (given, found)]
    CALL(int(function.cell[0]))(*ends)
    return float(found[0])


def fails() -> str:
    """No code."""
    raise OSError("no room on the disk")


def test_the_cell_has_the_address_once_it_is_compiled():
    """Before that it is zero, and `wait_for_functions` waits."""
    ready, write = Event(), code(3.0)

    def late() -> str:
        assert ready.wait(60.0)
        return write()

    function = Function(late, begins=False)
    cells = np.array([0, function.cell.ctypes.data], dtype=np.uint64)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(wait_for_functions, cells)
        time.sleep(0.1)
        assert not waiting.done() and function.cell[0] == 0
        ready.set()
        waiting.result(60.0)
    assert function.cell[0] == function.address != 0
    assert called_as_kernels_do(function, 2.0) == 12.0


def test_an_error_of_the_compilation_reaches_the_caller():
    """Waiting raises the error of the thread that compiled."""
    function = Function(fails, begins=True)
    with pytest.raises(OSError, match="no room on the disk"):
        wait_for_functions(np.array([function.cell.ctypes.data], dtype=np.uint64))
    with pytest.raises(OSError, match="no room on the disk"):
        _ = function.address


def test_derivatives_are_compiled_when_they_are_needed(monkeypatch):
    """All code is written at once, so that it can be stored; only the first function is compiled."""
    compiled, own = [], native._address
    monkeypatch.setattr(native, "_address", lambda function, text: compiled.append(text) or own(function, text))
    texts = [f"{code(1.0)()}\n// {name}" for name in ("values", "derivatives")]
    traced = native.compiled_functions(Code(tuple(partial(str, text) for text in texts), None, "of this test"))
    assert traced.functions[0].address != 0
    assert traced.functions[1].tasks[0].result() == texts[1] and compiled == texts[:1]
    begin_functions(np.array([*traced.cell, 0], dtype=np.uint64))
    assert traced.functions[1].address != 0 and called_as_kernels_do(traced.functions[1], 2.0) == 4.0
    assert compiled == texts


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_forked_process_has_the_functions():
    """Compilations in progress end before a process forks, which has no threads that would end them."""
    write = code(5.0)

    def slow() -> str:
        time.sleep(0.3)
        return write()

    function = Function(slow, begins=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of JAX, which the child does not use
        child = os.fork()
    if child == 0:
        os._exit(0 if function.tasks[1].done() and called_as_kernels_do(function, 2.0) == 20.0 else 1)
    assert os.waitpid(child, 0)[1] == 0
