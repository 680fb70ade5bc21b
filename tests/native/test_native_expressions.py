"""The machine of expressions in kernels against NumPy's, and the empty one of kernels that serve none."""

import numpy as np
import pytest
import warp as wp

from lissom.lie.types import EXPRESSIONS, RARE, kernel_options, vec6
from lissom.robot.expression_programs import Operation, jet, linked, program
from lissom.stepping.step_sizes import evaluate

TEXTS = ["sin(3*t)/2", "cos(t)**2", "tan(t/3)", "sinh(t) - cosh(2*t)", "tanh(t/2)", "exp(-t**2)", "log(1 + t**2)",
         "sqrt(2 + t)", "arcsin(0.4*t) + arccos(0.3*t)", "arctan(t)", "t**2.5", "2**t", "(1 + t)**t",
         "t - (2 - sin(t))", "t/(2 - t*sin(t))", "2 - (t - 1)**3", "t**1 + t**0", "abs(t - 1)", "sign(t - 1)*t",
         "maximum(t, 1 - t)", "minimum(t*t, 1 - t)", "-t", "7.5", "(t - 2)**-2", "log(t - 1)",
         "maximum(1, log(t - 1))"]  # fmt: skip
TIMES = [0.3, 0.77, 1.4]


def kernel(serves):
    """One that runs a program."""

    @wp.kernel(module="unique", module_options=kernel_options((*RARE, *serves)))
    def run_program(now: wp.float64, code: wp.array2d(dtype=wp.int32), numbers: wp.array(dtype=wp.float64),
                    load: wp.array2d(dtype=vec6), held: wp.array2d(dtype=wp.float64),
                    u: wp.array2d(dtype=wp.float64)):  # fmt: skip
        evaluate(now, code, numbers, load[1], held[1], u[1])

    return run_program


SERVING, EMPTY = kernel((EXPRESSIONS,)), kernel(())


def ran(made, steps, now, rows=2, held=3, inputs=4):
    """Results of a program for instance 1: all its numbers in their order; those of instance 0 stay."""
    code, numbers = (wp.array(x, device="cpu") for x in linked(steps))
    load = wp.zeros((2, rows), dtype=vec6, device="cpu")
    others = [wp.zeros((2, size), dtype=wp.float64, device="cpu") for size in (held, inputs)]
    wp.launch(made, dim=1, inputs=[now, code, numbers, load, *others], device="cpu")
    parts = [load.numpy().reshape(2, -1), *(x.numpy() for x in others)]
    assert not any(x[0].any() for x in parts)
    return np.concatenate([x[1] for x in parts])


@pytest.mark.parametrize("text", TEXTS)
def test_jets(text):
    """evaluate( gives the value and two derivatives, in loads, in motions and in inputs, the later programs on an
    empty stack."""
    steps, puts = program(text, "t"), [Operation.PUT_VALUE, Operation.PUT_RATE, Operation.PUT_CHANGE]
    whole = [*steps, *zip(puts, (10, 13, 17)), (Operation.CLEAR, 0.0), (Operation.TIME, 0.0), (puts[0], 3.0)]
    for now in TIMES:
        found, expected = ran(SERVING, whole, now), np.zeros(19)
        expected[[10, 13, 17]], expected[3] = jet(steps, now), now
        np.testing.assert_allclose(found, expected, rtol=2e-14, atol=1e-15, err_msg=text)


def test_kernels_without_expressions():
    """The function is empty there."""
    assert not ran(EMPTY, [(Operation.TIME, 0.0), (Operation.PUT_VALUE, 0.0)], 2.0).any()
