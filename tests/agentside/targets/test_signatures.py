"""How signatures of the author's code are read: who takes a context, which calls are possible."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agenteval.agentside.targets.signatures import (
    find_signature_mismatch,
    format_signature,
    is_async,
    is_context,
    parameters_of,
    source_location,
    takes_context,
    underlying_function,
)

THIS = Path(__file__).name


def made(source: str) -> Any:
    """What ``f`` is after the source has run."""
    names: dict[str, Any] = {"functools": functools}
    exec(compile(source, "agent.py", "exec", dont_inherit=True), names)
    return names["f"]


TAKES = {
    "def f(): ...": False,
    "def f(messages): ...": False,
    "def f(messages, ctx): ...": True,
    "def f(messages, anything): ...": True,
    "def f(messages, /, ctx): ...": True,
    "def f(messages, ctx, /): ...": True,
    "def f(messages, top_k=5): ...": False,
    "def f(messages, ctx=None): ...": True,
    "def f(messages, context=None): ...": True,
    "def f(messages, _ctx=None): ...": True,
    "def f(messages, ctx_=None): ...": True,
    "def f(messages, contexts=None): ...": False,
    "def f(messages, c: 'AgentContext' = None): ...": True,
    "def f(messages, c: 'Context | None' = None): ...": True,
    "def f(messages, c: 'ToolContext' = None): ...": True,
    "def f(messages, c: 'Contextual' = None): ...": False,
    "def f(messages, c: 'MyContext' = None): ...": False,
    "def f(messages, top_k=5, ctx=None): ...": False,
    "def f(messages, *, ctx): ...": False,
    "def f(*args): ...": True,
    "def f(messages, *args): ...": True,
    "def f(**options): ...": False,
    "def f(messages, **options): ...": False,
    "class f:\n    def __call__(self, messages, ctx): ...\nf = f()": True,
    "class f:\n    def __call__(self, messages): ...\nf = f()": False,
    "f = functools.partial(lambda lang, messages: '', 'de')": False,
    "f = functools.partial(lambda lang, messages, ctx: '', 'de')": True,
    "f = min": True,  # no signature that can be read
}


@pytest.mark.parametrize("source", TAKES)
def test_who_is_called_with_a_context(source: str) -> None:
    assert takes_context(made(source)) is TAKES[source]


@pytest.mark.parametrize(
    ("name", "annotation", "accepts"),
    [
        ("ctx", inspect.Parameter.empty, True),
        ("__context__", inspect.Parameter.empty, True),
        ("Context", inspect.Parameter.empty, False),
        ("ctx2", inspect.Parameter.empty, False),
        ("c", "agenteval.AgentContext", True),
        ("c", "Optional[Context]", True),
        ("c", str, False),
        ("c", "RunContextWrapper", False),
    ],
)
def test_a_parameter_accepts_the_context_by_name_or_annotation(
    name: str, annotation: Any, accepts: bool
) -> None:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert is_context(inspect.Parameter(name, kind, annotation=annotation)) is accepts


def test_the_parameters_of_a_function() -> None:
    found = parameters_of(made("def f(a, *b, c=1): ..."))
    assert found is not None
    assert [each.name for each in found] == ["a", "b", "c"]
    assert parameters_of(made("def f(): ...")) == []
    assert parameters_of(min) is None
    assert parameters_of(5) is None  # type: ignore[arg-type]


def test_parameters_are_those_of_what_is_wrapped() -> None:
    found = parameters_of(decorated)
    assert found is not None
    assert [each.name for each in found] == ["a"]


# ── calls that are possible ──────────────────────────────────────────────────────────────────────

FITS: list[tuple[str, int, tuple[str, ...], bool]] = [
    ("def f(): ...", 0, (), True),
    ("def f(): ...", 1, (), False),
    ("def f(a): ...", 0, (), False),
    ("def f(a): ...", 1, (), True),
    ("def f(a): ...", 0, ("a",), True),
    ("def f(a): ...", 1, ("a",), False),
    ("def f(a, b=1): ...", 1, (), True),
    ("def f(a, b=1): ...", 2, (), True),
    ("def f(a, b=1): ...", 3, (), False),
    ("def f(*a): ...", 9, (), True),
    ("def f(a, *, b): ...", 1, (), False),
    ("def f(a, *, b): ...", 1, ("b",), True),
    ("def f(a, **b): ...", 1, ("c", "d"), True),
]


@pytest.mark.parametrize(("source", "arguments", "by_name", "fits"), FITS)
def test_a_call_that_is_impossible_is_told_by_the_signature(
    source: str, arguments: int, by_name: tuple[str, ...], fits: bool
) -> None:
    function = made(source)
    expected = "" if fits else source.removeprefix("def ").removesuffix(": ...")
    assert find_signature_mismatch(function, arguments, by_name) == expected


def test_what_cannot_be_read_may_be_called() -> None:
    assert find_signature_mismatch(min, 9) == ""


def test_the_signature_that_is_called_is_the_decorators() -> None:
    assert find_signature_mismatch(decorated, 3) == ""
    assert find_signature_mismatch(decorated, 1, ("b",)).startswith("inner(*args)")


FORMS = {
    "def f(message, user): ...": "f(message, user)",
    "def f(message: str, *, k: int = 5) -> str: ...": "f(message: str, *, k: int = 5) -> str",
    "class Bot:\n    def __call__(self, text): ...\nf = Bot()": "Bot(text)",
    "class f:\n    def __init__(self, shop): ...": "f(shop)",
    "f = functools.partial(lambda a, b: '', 1)": "partial(b)",
    "f = min": "min(…)",
}


@pytest.mark.parametrize("source", FORMS)
def test_a_signature_in_words(source: str) -> None:
    assert format_signature(made(source)) == FORMS[source]


# ── what is inside ───────────────────────────────────────────────────────────────────────────────


def inner(a: int) -> int:
    return a


@functools.wraps(inner)
def decorated(*args: Any) -> Any:
    return inner(*args)


class Bot:
    def chat(self, text: str) -> str:
        return text

    def __call__(self, text: str) -> str:
        return text


UNDERLYING: dict[str, tuple[Any, Any]] = {
    "a function": (inner, inner),
    "a decorated function": (decorated, inner),
    "a method": (Bot().chat, Bot.chat),
    "a partial": (functools.partial(inner, 1), inner),
    "a partial of a partial": (functools.partial(functools.partial(decorated), 1), inner),
    "a partial of a method": (functools.partial(Bot().chat, "x"), Bot.chat),
    "a callable object": (Bot(), Bot.__call__),
    "a cached function": (functools.lru_cache(inner), inner),
    "a function of the language": (min, min),
    "a class": (Bot, Bot),
    "a number": (5, 5),
    "nothing": (None, None),
}


@pytest.mark.parametrize(("given", "found"), UNDERLYING.values(), ids=UNDERLYING)
def test_the_innermost_function(given: Any, found: Any) -> None:
    assert underlying_function(given) == found


def line_of(function: Callable[..., Any]) -> int:
    return function.__code__.co_firstlineno


@pytest.mark.parametrize("given", [inner, decorated, functools.partial(inner, 1)])
def test_where_a_function_stands(given: Any) -> None:
    assert source_location(given) == f" ({THIS}:{line_of(inner)})"


@pytest.mark.parametrize("given", [Bot(), Bot().__call__])
def test_where_an_object_is_called(given: Any) -> None:
    assert source_location(given) == f" ({THIS}:{line_of(Bot.__call__)})"


@pytest.mark.parametrize("given", [min, 5])
def test_a_place_that_is_not_known(given: Any) -> None:
    assert source_location(given) == ""


async def a_coroutine() -> None:
    return


class AsyncBot:
    async def __call__(self) -> None:
        return


class PlainMaker:
    async def chat(self) -> None:
        return


ASYNC: dict[str, tuple[Any, bool]] = {
    "a function": (inner, False),
    "an async function": (a_coroutine, True),
    "an async method": (PlainMaker().chat, True),
    "an object with an async call": (AsyncBot(), True),
    "its class": (AsyncBot, True),
    "an object with a plain call": (Bot(), False),
    "its class too": (Bot, False),
    "a class with an async method": (PlainMaker, False),
    "a partial of an async function": (functools.partial(a_coroutine), True),
    "a lambda that gives a coroutine": (lambda: a_coroutine(), False),
}


@pytest.mark.parametrize(("given", "found"), ASYNC.values(), ids=ASYNC)
def test_whose_call_gives_a_coroutine(given: Any, found: bool) -> None:
    assert is_async(given) is found
