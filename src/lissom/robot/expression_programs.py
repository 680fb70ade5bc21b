"""Expressions as programs of a stack machine, which also computes their derivatives.

A program is a list of steps (operation, number). The steps of operands come before the step of their operation. Of two
operands, the one that needs the deeper stack comes first, so that every expression fits into a stack of DEPTH values. A
constant subexpression is folded into one number. NumPy runs the programs in this module, and kernels run them in
stepping/step_sizes, and in systems/couplings, where programs may have several variables. A value on the stack is a jet
(x, ẋ, ẍ). Functions act on it by the chain rule:

    y = f(x),   ẏ = f'(x) ẋ,   ÿ = f''(x) ẋ² + f'(x) ẍ                                                    (1)
    (x y)'' = ẍ y + 2 ẋ ẏ + x ÿ,   z = x/y:  ż = (ẋ − z ẏ)/y,   z̈ = (ẍ − 2 ż ẏ − z ÿ)/y                  (2)
    z = x^y,  L = log x:   ż = y x^(y−1) ẋ + z L ẏ                                                        (3)
    z̈ = y (y−1) x^(y−2) ẋ² + y x^(y−1) ẍ + 2 x^(y−1) (1 + y L) ẋ ẏ + z L² ẏ² + z L ÿ                      (4)
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum, auto
from types import MappingProxyType
from typing import Any, final

import numpy as np

from lissom.robot.functions import CONSTANTS, Expression, names_of, parsed, require_one_variable

DEPTH = 10  # of the stack: an expression of 1000 characters has fewer than 2⁹ numbers and variables
MOST_STEPS = 2**DEPTH - 1  # of a program of a traced function; it has at most 2⁹ numbers and variables


@final
class Operation(IntEnum):
    """The operation of a step. NUMBER pushes the number of the step onto the stack, and TIME the variable, of several
    variables the one with the number of the step. For an operation with two operands, the number is 1 if the operands
    are on the stack in reverse order, otherwise 0."""

    END = 0
    TIME = auto()
    NUMBER = auto()
    ADD = auto()
    SUBTRACT = auto()
    MULTIPLY = auto()
    DIVIDE = auto()
    POWER = auto()
    MINIMUM = auto()
    MAXIMUM = auto()
    NEGATE = auto()
    ABS = auto()
    SIGN = auto()
    SIN = auto()
    COS = auto()
    TAN = auto()
    SINH = auto()
    COSH = auto()
    TANH = auto()
    EXP = auto()
    LOG = auto()
    SQRT = auto()
    ARCSIN = auto()
    ARCCOS = auto()
    ARCTAN = auto()
    PUT_VALUE = auto()  # stores x of the top of the stack in the output whose index is the number of the step
    PUT_RATE = auto()  # stores ẋ
    PUT_CHANGE = auto()  # stores ẍ
    CLEAR = auto()  # empties the stack


Steps = list[tuple[Operation, float]]
Jet = tuple[Any, Any, Any]

_PAIRS: dict[type[ast.AST], Operation] = {
    ast.Add: Operation.ADD,
    ast.Sub: Operation.SUBTRACT,
    ast.Mult: Operation.MULTIPLY,
}
_PAIRS |= {ast.Div: Operation.DIVIDE, ast.Pow: Operation.POWER}
_CORNERED = {Operation.ABS, Operation.SIGN, Operation.MINIMUM, Operation.MAXIMUM}

_CURVES: dict[Operation, Callable[[Any], Jet]] = {  # f, f' and f'' of (1)
    Operation.NEGATE: lambda x: (-x, -1.0, 0.0),
    Operation.ABS: lambda x: (np.abs(x), np.sign(x), 0.0),
    Operation.SIGN: lambda x: (np.sign(x), 0.0, 0.0),
    Operation.SIN: lambda x: (np.sin(x), np.cos(x), -np.sin(x)),
    Operation.COS: lambda x: (np.cos(x), -np.sin(x), -np.cos(x)),
    Operation.TAN: lambda x: (np.tan(x), 1.0 + np.tan(x) ** 2, 2.0 * np.tan(x) * (1.0 + np.tan(x) ** 2)),
    Operation.SINH: lambda x: (np.sinh(x), np.cosh(x), np.sinh(x)),
    Operation.COSH: lambda x: (np.cosh(x), np.sinh(x), np.cosh(x)),
    Operation.TANH: lambda x: (np.tanh(x), 1.0 / np.cosh(x) ** 2, -2.0 * np.tanh(x) / np.cosh(x) ** 2),
    Operation.EXP: lambda x: (np.exp(x), np.exp(x), np.exp(x)),
    Operation.LOG: lambda x: (np.log(x), 1.0 / x, -1.0 / (x * x)),
    Operation.SQRT: lambda x: (np.sqrt(x), 0.5 / np.sqrt(x), -0.25 / (x * np.sqrt(x))),
    Operation.ARCSIN: lambda x: (np.arcsin(x), 1.0 / np.sqrt(1.0 - x * x), x / np.sqrt(1.0 - x * x) ** 3),
    Operation.ARCCOS: lambda x: (np.arccos(x), -1.0 / np.sqrt(1.0 - x * x), -x / np.sqrt(1.0 - x * x) ** 3),
    Operation.ARCTAN: lambda x: (np.arctan(x), 1.0 / (1.0 + x * x), -2.0 * x / (1.0 + x * x) ** 2),
}


def programs_of(expression: Any, size: int) -> list[Steps] | None:
    """Programs of the components of an Expression with `size` components, in order. None for any other function."""
    if not isinstance(expression, Expression):
        return None
    require_one_variable(expression)
    texts = np.ravel(np.array(expression.source, dtype=object)).tolist()
    if len(texts) != size:
        return None
    return [program(text, expression.variable, expression.constants) for text in texts]


def program(text: Any, variable: str, constants: Mapping[str, float] = MappingProxyType({})) -> Steps:
    """The program of one expression whose text has passed the checks of Expression, with its variable or variables."""
    return _steps(parsed(str(text)), names_of(variable), {**CONSTANTS, **constants})[0]


def linked(steps: Steps) -> tuple[np.ndarray, np.ndarray]:
    """A program as arrays for kernels: code (n, 2) with rows (operation, integer), the last of them END, and numbers
    (n,). The integer of NUMBER is the index of its number."""
    code, numbers = np.zeros((len(steps) + 1, 2), dtype=np.int32), np.zeros(len(steps) + 1)
    for k, (step, number) in enumerate(steps):
        code[k] = step, k if step == Operation.NUMBER else number
        numbers[k] = number
    return code, numbers


def has_corners(steps: Steps) -> bool:
    """Whether a program has corners, at which it has no derivative."""
    return any(step in _CORNERED for step, _ in steps)


def jet(steps: Steps, t: Any) -> Jet:
    """Value, first and second derivative of a program at a time t, or at times t (n,). They may be infinite or NaN."""
    return jet_of({0: (np.asarray(t, dtype=np.float64)[()], np.float64(1.0), np.float64(0.0))}, steps)


def jet_of(variables: Mapping[int, Jet], steps: Steps) -> Jet:
    """The same of a program along a curve, with the jets of its variables by their numbers."""
    stack: list[Jet] = []
    with np.errstate(all="ignore"):
        for step, number in steps:
            if step == Operation.TIME:
                stack.append(variables[int(number)])
            elif step == Operation.NUMBER:
                stack.append((np.float64(number), np.float64(0.0), np.float64(0.0)))
            elif step in _CURVES:
                x, rate, change = stack.pop()
                f, slope, bend = _CURVES[step](x)
                stack.append((f, slope * rate, bend * rate * rate + slope * change))  # (1)
            else:
                y, x = stack.pop(), stack.pop()
                stack.append(_of_pair(step, *((y, x) if number else (x, y))))
    return stack.pop()


def _of_pair(step: Operation, x: Jet, y: Jet) -> Jet:
    """The jet of an operation with two operands."""
    if step == Operation.ADD:
        return x[0] + y[0], x[1] + y[1], x[2] + y[2]
    if step == Operation.SUBTRACT:
        return x[0] - y[0], x[1] - y[1], x[2] - y[2]
    if step == Operation.MULTIPLY:  # (2)
        return x[0] * y[0], x[1] * y[0] + x[0] * y[1], x[2] * y[0] + 2.0 * x[1] * y[1] + x[0] * y[2]
    if step == Operation.DIVIDE:
        value = x[0] / y[0]
        rate = (x[1] - value * y[1]) / y[0]
        return value, rate, (x[2] - 2.0 * rate * y[1] - value * y[2]) / y[0]
    if step == Operation.POWER:
        return _power(x, y)
    takes_x = (x[0] < y[0]) if step == Operation.MINIMUM else (x[0] > y[0])
    takes_x |= np.isnan(x[0])
    value, rate, change = (np.where(takes_x, a, b) for a, b in zip(x, y))
    return value, rate, change


def _power(x: Jet, y: Jet) -> Jet:
    """x^y by (3) and (4). A term with a factor of zero is zero, even if its other factors are not finite."""
    power, once, twice = (np.power(x[0], y[0] - k) for k in range(3))
    slope, bend = _times(y[0], once), _times(y[0] * (y[0] - 1.0), twice)
    rate, change = slope * x[1], bend * x[1] * x[1] + slope * x[2]
    if not (np.any(y[1]) or np.any(y[2])):
        return power, rate, change
    log = np.log(x[0])
    change = change + 2.0 * once * (1.0 + y[0] * log) * x[1] * y[1]
    return power, rate + power * log * y[1], change + power * log * (log * y[1] * y[1] + y[2])


def _times(factor: Any, x: Any) -> Any:
    """factor * x, but zero wherever the factor is zero, even if x is not finite."""
    return np.where(factor == 0.0, 0.0, factor * x)


def _steps(node: Any, names: tuple[str, ...], known: Mapping[str, float]) -> tuple[Steps, int]:
    """The program of a node of the syntax tree, and the stack depth that it needs."""
    if isinstance(node, ast.Constant):
        return [(Operation.NUMBER, float(node.value))], 1  # type: ignore[arg-type]
    if isinstance(node, ast.Name) and node.id in names:
        return [(Operation.TIME, float(names.index(node.id)))], 1
    if isinstance(node, ast.Name):
        return [(Operation.NUMBER, float(known[node.id]))], 1
    if isinstance(node, ast.UnaryOp):
        steps, depth = _steps(node.operand, names, known)
        return (steps, depth) if isinstance(node.op, ast.UAdd) else _folded([*steps, (Operation.NEGATE, 0.0)], depth)
    if isinstance(node, ast.BinOp):
        operands, step = [node.left, node.right], _PAIRS[type(node.op)]
    else:
        operands, step = node.args, Operation[node.func.id.upper()]
    return combined(step, [_steps(operand, names, known) for operand in operands])


def combined(step: Operation, operands: Sequence[tuple[Steps, int]]) -> tuple[Steps, int]:
    """The program of an operation on one or two operands, and the stack depth that it needs, from those of the
    operands."""
    if len(operands) == 1:
        return _folded([*operands[0][0], (step, 0.0)], operands[0][1])
    (first, room), (second, more) = operands
    if more > room:
        return _folded([*second, *first, (step, 1.0)], more)
    return _folded([*first, *second, (step, 0.0)], max(room, more + 1))


def _folded(steps: Steps, depth: int) -> tuple[Steps, int]:
    """A program and its stack depth. A program without the variable is folded into one number."""
    if any(step == Operation.TIME for step, _ in steps):
        return steps, depth
    return [(Operation.NUMBER, float(jet(steps, 0.0)[0]))], 1
