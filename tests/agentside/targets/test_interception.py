"""Functions of the agent that the scenario answers, in place: what their callers get, and what is refused."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import pytest

from agenteval.agentside.targets.interception import CannotInterceptError, FunctionInterceptor, ToolError
from agenteval.agentside.world import ToolAnswer, UntrackedCallError, World, detach_from_world, open_worlds

SOURCE = '''
import functools

ran = []

def book(day, seats=1, *more, note="none", **rest):
    """Books."""
    ran.append("book")
    return [day, seats, *more, note, rest]

async def look(id):
    ran.append("look")
    return id

def again(n):
    ran.append(n)
    return again(n - 1) if n else 0

def outer(x):
    return book(x)

class Shop:
    def find(self, id): ran.append("find"); return id
    @staticmethod
    def plain(id): return id
    @classmethod
    def made(cls, id): return id
    class Desk:
        def ask(self, id): return id

shop = Shop()

def closure():
    kept = "kept"
    def inside(a): return [kept, a]
    return inside

inside = closure()

def wrap(function):
    @functools.wraps(function)
    def run(*args, **kwargs):
        return function(*args, **kwargs)
    return run

@wrap
def decorated(id, *, k=0): return id

class Tool:
    def __init__(self, **kept): vars(self).update(kept)

def plain_work(a): return a
async def async_work(a): return a
tool = Tool(func=plain_work, coroutine=async_work)
method_tool = Tool(func=shop.find)
empty_tool = Tool()

cached = functools.lru_cache(plain_work)
part = functools.partial(plain_work, 1)
same = book
value = 5
def pieces(): yield 1
async def stream(): yield 1
'''


class Calls:
    """Answers the tools that it mocks, and leaves the others to the agent."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.seen: list[tuple[str, Any]] = []

    def mocks(self, name: str) -> bool:
        return name in self.answers

    def _answer(self, name: str) -> ToolAnswer:
        value = self.answers[name]
        return value if isinstance(value, ToolAnswer) else ToolAnswer(value)

    def call_sync(self, name: str, args: Any, run_real: Callable[[], Any]) -> ToolAnswer:
        self.seen.append((name, args))
        return self._answer(name) if name in self.answers else ToolAnswer(run_real())

    async def call(self, name: str, args: Any, run_real: Callable[[], Any]) -> ToolAnswer:
        self.seen.append((name, args))
        return self._answer(name) if name in self.answers else ToolAnswer(await run_real())

    async def record(self, name: str, args: Any, run_real: Callable[[], Any]) -> Any:
        raise NotImplementedError

    def record_sync(self, name: str, args: Any, run_real: Callable[[], Any]) -> Any:
        raise NotImplementedError


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for each in open_worlds():
        each.close()
    yield load("ic_shop", monkeypatch)
    for each in open_worlds():
        each.close()


def load(name: str, monkeypatch: pytest.MonkeyPatch, file: str | None = None) -> Any:
    module = ModuleType(name)
    if file:
        module.__file__ = file
    monkeypatch.setitem(sys.modules, name, module)
    exec(SOURCE, module.__dict__)
    return module


def intercept(**targets: str) -> FunctionInterceptor:
    return FunctionInterceptor({name: f"ic_shop:{each}" for name, each in targets.items()}, ".")


@contextmanager
def playing(calls: Calls, **targets: str) -> Iterator[World]:
    """A turn in which the functions are intercepted."""
    interceptor = intercept(**targets)
    interceptor.install()
    world = World("one", interceptor.tools)
    try:
        with world.turn(calls):
            yield world
    finally:
        interceptor.restore()
        world.close()


def finish(coroutine: Any) -> Any:
    with pytest.raises(StopIteration) as stopped:
        coroutine.send(None)
    return stopped.value.value


# ── calls ────────────────────────────────────────────────────────────────────────────────────────


def test_the_scenario_answers_and_the_function_does_not_run(shop: Any) -> None:
    calls = Calls(book={"ok": True}, look=5)
    before = shop.book
    with playing(calls, book="book", look="look"):
        assert shop.book is before
        assert shop.book("mon") == {"ok": True}
        assert shop.same("tue", 2) == {"ok": True}
        assert shop.outer("wed") == {"ok": True}
        assert finish(shop.look(id=7)) == 5
    assert shop.ran == []
    assert calls.seen == [
        ("book", {"day": "mon"}),
        ("book", {"day": "tue", "seats": 2}),
        ("book", {"day": "wed"}),
        ("look", {"id": 7}),
    ]


ARGUMENTS: dict[str, tuple[str, tuple[Any, ...], dict[str, Any], dict[str, Any]]] = {
    "by position": ("book", ("mon", 2), {}, {"day": "mon", "seats": 2}),
    "by name": ("book", (), {"seats": 2, "day": "mon"}, {"day": "mon", "seats": 2}),
    "further ones": ("book", ("mon", 2, 3, 4), {}, {"day": "mon", "seats": 2, "more": [3, 4]}),
    "only by name": ("book", ("mon",), {"note": "x"}, {"day": "mon", "note": "x"}),
    "any others": ("book", ("mon",), {"a": 1, "b": {2}}, {"day": "mon", "a": 1, "b": [2]}),
    "not JSON": ("book", (object(),), {"a": object(), "note": None}, {"note": None}),
    "of a decorated one": ("decorated", (1,), {"k": 2}, {"id": 1, "k": 2}),
    "of a closure": ("inside", (1,), {}, {"a": 1}),
    "of a method": ("Shop.find", (None, 1), {}, {"id": 1}),
    "of a static method": ("Shop.plain", (1,), {}, {"id": 1}),
}


@pytest.mark.parametrize(("target", "args", "kwargs", "named"), ARGUMENTS.values(), ids=ARGUMENTS)
def test_arguments_are_recorded_by_the_names_of_the_parameters(
    shop: Any, target: str, args: Any, kwargs: Any, named: dict[str, Any]
) -> None:
    calls = Calls(tool=1)
    with playing(calls, tool=target):
        assert functools.reduce(getattr, target.split("."), shop)(*args, **kwargs) == 1
    assert calls.seen == [("tool", named)]


def test_methods_are_called_without_self(shop: Any) -> None:
    calls = Calls(find=1, made=2, ask=3)
    with playing(calls, find="Shop.find", made="Shop.made", ask="Shop.Desk.ask"):
        assert (shop.shop.find(5), shop.Shop().find(id=6)) == (1, 1)
        assert (shop.Shop.made(7), shop.Shop.Desk().ask(8)) == (2, 3)
    assert calls.seen == [("find", {"id": 5}), ("find", {"id": 6}), ("made", {"id": 7}), ("ask", {"id": 8})]


def test_the_method_of_an_object_is_that_of_its_class(shop: Any) -> None:
    calls = Calls(find=1)
    with playing(calls, find="shop.find"):
        assert shop.shop.find(5) == 1
    assert calls.seen == [("find", {"id": 5})]


def test_what_the_scenario_leaves_to_the_agent_runs(shop: Any) -> None:
    calls, kept = Calls(), object()
    with playing(calls, book="book", look="look", inside="inside", decorated="decorated"):
        assert shop.book("mon", a=1) == ["mon", 1, "none", {"a": 1}]
        assert finish(shop.look(kept)) is kept
        assert shop.inside(2) == ["kept", 2]
        assert shop.decorated(3, k=4) == 3
    assert shop.ran == ["book", "look"]
    assert calls.seen == [
        ("book", {"day": "mon", "a": 1}),
        ("look", {}),
        ("inside", {"a": 2}),
        ("decorated", {"id": 3, "k": 4}),
    ]


def test_a_function_that_calls_itself_is_one_call(shop: Any) -> None:
    calls = Calls()
    with playing(calls, again="again"):
        assert shop.again(2) == 0
    assert shop.ran == [2, 1, 0]
    assert calls.seen == [("again", {"n": 2})]


def test_a_function_that_calls_another_tool_is_two(shop: Any) -> None:
    calls = Calls(book="mock")
    with playing(calls, outer="outer", book="book"):
        assert shop.outer(1) == "mock"
    assert calls.seen == [("outer", {"x": 1}), ("book", {"day": 1})]


def test_an_argument_that_does_not_fit_is_the_callers(shop: Any) -> None:
    calls = Calls(look=1, find=2)
    with playing(calls, look="look", find="Shop.find"):
        wrong: list[Callable[[], Any]] = [
            lambda: shop.shop.find(),
            lambda: shop.shop.find(1, 2),
            lambda: finish(shop.look(x=1)),
        ]
        for call in wrong:
            with pytest.raises(TypeError) as caught:
                call()
            assert "find()" in str(caught.value) or "look()" in str(caught.value)
    assert calls.seen == []


ERRORS: dict[str, tuple[Any, str]] = {
    "text": ({"error": "no seat"}, "no seat"),
    "more than text": ({"error": "no seat", "code": 4}, "{'error': 'no seat', 'code': 4}"),
    "another value": ("broken", "broken"),
    "an error that is no text": ({"error": 5}, "5"),
}


@pytest.mark.parametrize(("value", "text"), ERRORS.values(), ids=ERRORS)
def test_a_tool_that_fails_raises(shop: Any, value: Any, text: str) -> None:
    with (
        playing(Calls(book=ToolAnswer(value, is_error=True)), book="book"),
        pytest.raises(ToolError) as caught,
    ):
        shop.book("mon")
    assert str(caught.value) == text
    assert isinstance(caught.value, RuntimeError)


def test_a_value_like_an_error_is_a_value(shop: Any) -> None:
    with playing(Calls(book={"error": "x"}), book="book"):
        assert shop.book("mon") == {"error": "x"}


# ── other code ───────────────────────────────────────────────────────────────────────────────────


def test_a_conversation_that_does_not_intercept_runs_the_function(shop: Any) -> None:
    with playing(Calls(book=1), book="book", look="look"):
        other, calls = World("two"), Calls()
        with other.turn(calls):
            assert shop.book("mon") == ["mon", 1, "none", {}]
            assert finish(shop.look(3)) == 3
        other.close()
    assert calls.seen == []


def test_a_call_of_nobody_runs_nothing(shop: Any) -> None:
    interceptor = intercept(book="book", look="look")
    interceptor.install()
    mine, other = World("mine", interceptor.tools), World("other")
    try:
        calls: list[Callable[[], Any]] = [lambda: shop.book("mon"), lambda: finish(shop.look(1))]
        for call in calls:
            with pytest.raises(UntrackedCallError):
                call()
            assert mine.take_fault()
        assert other.take_fault() == ""
    finally:
        interceptor.restore()
    assert shop.ran == []


def test_a_mock_must_not_call_what_it_replaces(shop: Any) -> None:
    import contextvars

    def mock() -> Any:
        detach_from_world()
        return shop.book("mon")

    with playing(Calls(book=1), book="book") as world:
        with pytest.raises(UntrackedCallError) as caught:
            contextvars.copy_context().run(mock)
        assert "book" in str(caught.value)
        assert world.take_fault() == ""
    assert shop.ran == []


def test_afterwards_the_function_is_as_it_was(shop: Any) -> None:
    code, declared = shop.book.__code__, inspect.Signature()
    shop.look.__signature__ = declared
    shown = inspect.signature(shop.book)
    with playing(Calls(book=1), book="book", look="look"):
        assert shop.book.__code__ is not code
        assert inspect.signature(shop.book) == shown
        assert inspect.iscoroutinefunction(shop.look)
        assert not inspect.iscoroutinefunction(shop.book)
        assert shop.book.__name__ == "book"
        assert shop.book.__code__.co_name == "book"
        assert shop.book.__code__.co_filename == code.co_filename
        assert shop.book.__code__.co_firstlineno == code.co_firstlineno
        assert shop.book.__doc__ == "Books."
    assert shop.book.__code__ is code
    assert "__signature__" not in vars(shop.book)
    assert shop.look.__signature__ is declared
    assert shop.book("mon") == ["mon", 1, "none", {}]


def test_two_that_intercept_one_function(shop: Any) -> None:
    one, two = intercept(book="book"), intercept(reserve="book")
    code = shop.book.__code__
    one.install()
    two.install()
    for interceptor, name in ((one, "book"), (two, "reserve")):
        calls, world = Calls(book=1, reserve=2), World("w", interceptor.tools)
        with world.turn(calls):
            assert shop.book("mon") == (1 if name == "book" else 2)
        assert calls.seen == [(name, {"day": "mon"})]
        world.close()
    one.restore()
    one.restore()
    assert shop.book.__code__ is not code
    two.restore()
    assert shop.book.__code__ is code


# ── which functions ──────────────────────────────────────────────────────────────────────────────


def test_the_tools_of_an_interceptor(shop: Any) -> None:
    interceptor = intercept(b="book", a="Shop.find")
    assert interceptor.names == ("b", "a")
    assert dict(interceptor.tools) == {id(shop.book): "b", id(shop.Shop.find): "a"}
    assert intercept().names == ()


def test_the_functions_within_a_tool(shop: Any) -> None:
    interceptor = intercept(tool="tool", found="method_tool")
    assert dict(interceptor.tools) == {
        id(shop.plain_work): "tool",
        id(shop.async_work): "tool",
        id(shop.Shop.find): "found",
    }
    calls = Calls(tool=1, found=2)
    with playing(calls, tool="tool", found="method_tool"):
        assert shop.tool.func(4) == 1
        assert finish(shop.tool.coroutine(5)) == 1
        assert shop.method_tool.func(6) == 2
    assert calls.seen == [("tool", {"a": 4}), ("tool", {"a": 5}), ("found", {"id": 6})]


REFUSED: dict[str, list[str]] = {
    "Shop": ["Shop", "class"],
    "cached": ["lru_cache"],
    "pieces": ["pieces", "generator"],
    "stream": ["stream", "generator"],
    "value": ["int"],
    "empty_tool": ["Tool"],
    "nowhere": ["nowhere"],
    "Shop.nowhere": ["Shop.nowhere"],
}


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize("target", REFUSED)
def test_what_cannot_be_intercepted(target: str) -> None:
    with pytest.raises(CannotInterceptError) as caught:
        intercept(buy=target)
    error = caught.value
    assert error.tool == "buy"
    assert str(error) == error.what
    assert "'buy'" in error.what
    for part in REFUSED[target]:
        assert part in error.what
    assert error.remedy


@pytest.mark.usefixtures("shop")
def test_a_cached_function_has_another_remedy() -> None:
    remedies = []
    for target in ("cached", "Shop", "nowhere", "Shop.nowhere"):
        with pytest.raises(CannotInterceptError) as caught:
            intercept(buy=target)
        remedies.append(caught.value.remedy)
    assert len(set(remedies)) == 4
    assert "FILE.py:NAME" in remedies[1]
    assert "book" in remedies[2]
    assert "find" in remedies[3]


@pytest.mark.usefixtures("shop")
def test_a_partial_is_intercepted_within() -> None:
    calls = Calls(buy=1)
    with playing(calls, buy="part"):
        assert sys.modules["ic_shop"].part() == 1
    assert calls.seen == [("buy", {"a": 1})]


@pytest.mark.usefixtures("shop")
def test_one_function_is_one_tool() -> None:
    with pytest.raises(CannotInterceptError) as caught:
        intercept(buy="book", get="same")
    assert caught.value.tool == "get"
    assert "'buy'" in caught.value.what
    assert "'get'" in caught.value.what


@pytest.mark.usefixtures("shop")
def test_a_module_that_is_not_there() -> None:
    with pytest.raises(CannotInterceptError) as caught:
        FunctionInterceptor({"buy": "ic_nowhere:book"}, ".")
    assert "'buy'" in caught.value.what
    assert "ic_nowhere" in caught.value.what
    assert caught.value.remedy


# ── files and their copies ───────────────────────────────────────────────────────────────────────


def test_a_second_copy_of_a_module_is_told_and_intercepted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    path = tmp_path / "ic_file.py"
    path.write_text(SOURCE, encoding="utf-8")
    monkeypatch.setattr(sys, "path", [*sys.path])
    first = load("ic_file", monkeypatch, str(path))
    interceptor = FunctionInterceptor({"book": "ic_file.py:book"}, str(tmp_path))
    assert dict(interceptor.tools) == {id(first.book): "book"}
    interceptor.install()
    try:
        assert interceptor.check_second_copy() == ""
        second = load("ic_second", monkeypatch, str(path))
        assert "'book'" in interceptor.check_second_copy()
        assert interceptor.check_second_copy() == ""
        assert dict(interceptor.tools) == {id(first.book): "book", id(second.book): "book"}
        calls, world = Calls(book=1), World("one", interceptor.tools)
        with world.turn(calls):
            assert (first.book("mon"), second.book("tue")) == (1, 1)
        world.close()
    finally:
        interceptor.restore()
    assert second.ran == []
    assert second.book("tue") == ["tue", 1, "none", {}]


@pytest.mark.parametrize("names", [("__init__", "prices"), ("prices",)], ids=["package", "folder"])
def test_a_file_is_loaded_by_the_name_that_the_agent_imports(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any, names: tuple[str, ...]
) -> None:
    package = tmp_path / "ic_package"
    package.mkdir()
    for name in names:
        (package / f"{name}.py").write_text("def price(): return 5\n", encoding="utf-8")
    monkeypatch.setattr(sys, "path", [*sys.path])
    try:
        interceptor = FunctionInterceptor({"price": "ic_package/prices.py:price"}, str(tmp_path))
        module: Any = sys.modules["ic_package.prices"]
        assert dict(interceptor.tools) == {id(module.price): "price"}
        assert str(tmp_path) in sys.path
    finally:
        for name in ("ic_package", "ic_package.prices"):
            sys.modules.pop(name, None)
