"""Derivatives of expressions, as expressions, so that rates of motions that are given as text are exact.

Rules of one variable, the chain rule among them; nothing is simplified but zeros and ones.
"""

from __future__ import annotations

import ast
from typing import Any, final

from lissom.errors import ModelError
from lissom.robot.functions import Expression

_SLOPES = {  # of the functions, of u
    "sin": "cos(u)",
    "cos": "-sin(u)",
    "tan": "1 / cos(u)**2",
    "sinh": "cosh(u)",
    "cosh": "sinh(u)",
    "tanh": "1 / cosh(u)**2",
    "exp": "exp(u)",
    "log": "1 / u",
    "sqrt": "0.5 / sqrt(u)",
    "arcsin": "1 / sqrt(1 - u**2)",
    "arccos": "-1 / sqrt(1 - u**2)",
    "arctan": "1 / (1 + u**2)",
}


@final
class _HasCorners(Exception):
    """The expression has corners, at which it has no derivative."""


def rate_of(expression: Expression) -> Expression | None:
    """The derivative of an expression, or of each of a list, by its variable; None where there are corners (abs, sign,
    minimum, maximum), or where it would be too long."""
    try:
        return Expression(_nested(expression.source, expression.variable), expression.variable)
    except (_HasCorners, ModelError):
        return None


def _nested(source: Any, variable: str) -> Any:
    if isinstance(source, list | tuple):
        return [_nested(item, variable) for item in source]
    slope = _slope(ast.parse(str(source).strip(), mode="eval").body, variable)
    return "0" if slope is None else ast.unparse(ast.fix_missing_locations(slope))


def _slope(node: Any, x: str) -> Any:
    """Derivative of a node; None for zero."""
    if isinstance(node, ast.Name):
        return ast.Constant(1) if node.id == x else None
    if isinstance(node, ast.UnaryOp):
        slope = _slope(node.operand, x)
        return None if slope is None else ast.UnaryOp(node.op, slope)
    if isinstance(node, ast.BinOp):
        return _of_pair(node, _slope(node.left, x), _slope(node.right, x))
    if isinstance(node, ast.Call):
        return _of_call(node, [_slope(argument, x) for argument in node.args])
    return None


def _of_pair(node: ast.BinOp, left: Any, right: Any) -> Any:
    """Of two nodes with an operation between them, given their slopes."""
    a, b = node.left, node.right
    if isinstance(node.op, ast.Add):
        return _sum(left, right)
    if isinstance(node.op, ast.Sub):
        return _sum(left, None if right is None else ast.UnaryOp(ast.USub(), right))
    if isinstance(node.op, ast.Mult):
        return _sum(_product(left, b), _product(a, right))
    if isinstance(node.op, ast.Div):
        late = None if right is None else _quotient(_product(a, right), ast.BinOp(b, ast.Pow(), ast.Constant(2)))
        return _sum(_quotient(left, b), None if late is None else ast.UnaryOp(ast.USub(), late))
    lower = ast.BinOp(a, ast.Pow(), ast.BinOp(b, ast.Sub(), ast.Constant(1)))  # a^b
    if isinstance(b, ast.Constant) and b.value in (1, 2):
        lower = a if b.value == 2 else ast.Constant(1)
    log = ast.Call(ast.Name("log", ast.Load()), [a], [])
    return _sum(_product(_product(b, lower), left), _product(_product(node, log), right))


def _of_call(node: ast.Call, slopes: list[Any]) -> Any:
    """Of a function, given the slopes of its arguments."""
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if all(slope is None for slope in slopes):
        return None
    if name not in _SLOPES:
        raise _HasCorners
    return _product(_Put(node.args[0]).visit(ast.parse(_SLOPES[name], mode="eval").body), slopes[0])


def _sum(a: Any, b: Any) -> Any:
    return b if a is None else a if b is None else ast.BinOp(a, ast.Add(), b)


def _product(a: Any, b: Any) -> Any:
    if a is None or b is None:
        return None
    if isinstance(a, ast.Constant) and a.value == 1:
        return b
    return a if isinstance(b, ast.Constant) and b.value == 1 else ast.BinOp(a, ast.Mult(), b)


def _quotient(a: Any, b: Any) -> Any:
    return None if a is None else ast.BinOp(a, ast.Div(), b)


@final
class _Put(ast.NodeTransformer):
    """Puts a node in the place of u."""

    def __init__(self, node: Any) -> None:
        self.node = node

    def visit_Name(self, node: ast.Name) -> Any:
        return self.node if node.id == "u" else node
