"""WonderBot's three tools, mocked: a table of cities, a table of plans and a safe calculator.

agenteval calls a Python mock as ``mock(args, ctx)``. What it returns is the tool's result: text
reaches the agent as it is, anything else as JSON. The data are deliberately small, so that a
failing case points at the agent and never at its tools.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

WEATHER = {
    "beijing": {"temp": 25, "condition": "sunny"},
    "shanghai": {"temp": 22, "condition": "cloudy"},
    "shenzhen": {"temp": 30, "condition": "rainy"},
}
UNKNOWN_WEATHER = {"temp": 20, "condition": "unknown"}

PLANS = {
    "wonderbot basic": {"price": 99, "api_calls": 10000},
    "wonderbot pro": {"price": 299, "api_calls": 100000},
    "wonderbot enterprise": {"price": 0, "api_calls": -1},
}

CALCULATOR_CHARACTERS = frozenset("0123456789 +-*/.()")
MAX_EXPRESSION_LENGTH = 500
MAX_POWER_BITS = 10_000
"""Size of the largest integer that ``**`` may make: about 3,000 digits, reached in no time."""

BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}


def get_weather(args: dict[str, Any], ctx: Any) -> dict[str, Any]:
    """The weather of ``city``; an unknown city is no error, its condition is "unknown"."""
    return {"city": args["city"], **WEATHER.get(args["city"].lower(), UNKNOWN_WEATHER)}


def get_product_info(args: dict[str, Any], ctx: Any) -> dict[str, Any] | str:
    """Monthly price and API calls of a plan, or a text that names the plans there are."""
    name = args["product_name"]
    plan = PLANS.get(name.lower())
    if plan is None:
        return f"Product '{name}' not found. Available: {list(PLANS)}"
    return {"product": name, **plan}


def calculator(args: dict[str, Any], ctx: Any) -> str:
    """``"<expression> = <value>"``, or ``"Error: …"``; letters (so ``sqrt`` too) are refused."""
    expression = args["expression"]
    if not CALCULATOR_CHARACTERS.issuperset(expression):
        return "Error: only numeric expressions allowed"
    if len(expression) > MAX_EXPRESSION_LENGTH:
        return f"Error: expression longer than {MAX_EXPRESSION_LENGTH} characters"
    try:
        tree = ast.parse(expression.lstrip(), filename="<string>", mode="eval")
        return f"{expression} = {_value(tree.body)}"
    except (SyntaxError, ArithmeticError, TypeError, ValueError, RecursionError, MemoryError) as error:
        return f"Error: {error}"


def _value(node: ast.expr) -> Any:
    """The value of an arithmetic expression. Without ``eval`` the agent's text runs no code."""
    match node:
        case ast.Constant(value=int() | float() as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return +_value(operand)
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _power(_value(left), _value(right))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in BINARY:
            return BINARY[type(op)](_value(left), _value(right))
    raise ValueError("not an arithmetic expression")


def _power(base: Any, exponent: Any) -> Any:
    """``base ** exponent``, refused where the result would be too large to be worked out."""
    whole = isinstance(base, int) and isinstance(exponent, int)
    if whole and abs(base) > 1 and base.bit_length() * exponent > MAX_POWER_BITS:
        raise ValueError("result too large")
    return base**exponent
