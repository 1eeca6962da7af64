"""A target as the agent of one conversation: what it is called with, what is made of its answers."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from agenteval.agentside import hooks
from agenteval.agentside.targets.context import Context
from agenteval.agentside.targets.loading import Method
from agenteval.agentside.targets.target_resolution import ResolvedTarget, resolve_target
from agenteval.agentside.targets.target_session import NotAnAgentError, TargetRefusedError, TargetSession
from agenteval.agentside.world import World, current_world

CTX = object()
FIRST = [{"role": "user", "content": "Hi"}]
SECOND = [*FIRST, {"role": "assistant", "content": "Hello"}, {"role": "user", "content": "And?"}]


def session(target: Any, **more: Any) -> TargetSession:
    resolved = resolve_target(target, "bot.py:bot", more.get("recognize", lambda _: None))
    assert isinstance(resolved, ResolvedTarget), resolved
    return TargetSession(resolved, **more)


def asked(played: TargetSession, messages: Any = None) -> Any:
    """What the agent says to the messages, whether it is async or not."""

    async def main() -> Any:
        value = played.entry()(FIRST if messages is None else messages, CTX)
        return await value if inspect.isawaitable(value) else value

    return asyncio.run(main())


# ── what it is called with ───────────────────────────────────────────────────────────────────────

GIVEN: dict[str, tuple[Callable[..., Any], Any]] = {
    "the text": (lambda message: message, "And?"),
    "the messages": (lambda messages: messages, SECOND),
    "messages and ctx": (lambda messages, ctx: (messages, ctx), (SECOND, CTX)),
    "the messages before": (lambda message, history: [message, *history], ["And?", *SECOND[:2]]),
    "text and ctx by name": (lambda question, k=5, ctx=None: (question, k, ctx), ("And?", 5, CTX)),
    "only by name": (lambda *, message, ctx: (message, ctx), ("And?", CTX)),
}


@pytest.mark.parametrize(("target", "given"), GIVEN.values(), ids=GIVEN)
def test_what_a_target_gets(target: Any, given: Any) -> None:
    played = session(target)
    asked(played)
    assert asked(played, SECOND) == given


def test_messages_before_the_first_one_are_not_lost() -> None:
    assert asked(session(lambda message, history: [message, *history]), SECOND) == ["And?", *SECOND[:2]]
    with pytest.raises(TargetRefusedError, match="history"):
        asked(session(lambda message: message), SECOND)


def test_no_text_before_the_first_message() -> None:
    found = asked(session(lambda message, history: [message, history]))
    assert found == ["Hi", []]


def test_an_id_for_each_conversation() -> None:
    def target(message: str, session_id: str) -> str:
        return session_id

    one, two = session(target), session(target)
    ids = [asked(one), asked(one), asked(two)]
    assert ids[0] == ids[1] != ids[2]
    assert all(isinstance(each, str) and len(each) == 32 for each in ids)


def test_an_agent_that_gets_only_a_text_cannot_get_results() -> None:
    messages = [*FIRST, {"role": "assistant", "tool_calls": []}, {"role": "tool", "content": "5"}]
    with pytest.raises(NotAnAgentError) as caught:
        asked(session(lambda message: "x"), messages)
    assert "messages" in str(caught.value)
    assert isinstance(caught.value, TypeError)
    assert asked(session(lambda messages: len(messages)), messages) == 3


def test_without_a_user_there_is_no_text() -> None:
    with pytest.raises(NotAnAgentError):
        asked(session(lambda message: "x"), [{"role": "system", "content": "Be kind."}])


def test_a_text_that_is_missing() -> None:
    assert asked(session(lambda message: [message]), [{"role": "user"}]) == [None]


# ── its memory ───────────────────────────────────────────────────────────────────────────────────


class Bot:
    def __init__(self) -> None:
        self.heard: list[str] = []

    def chat(self, message: str) -> str:
        self.heard.append(message)
        return ",".join(self.heard)

    def __call__(self, message: str) -> str:
        return self.chat(message)


class AsyncBot(Bot):
    async def __call__(self, message: str) -> str:  # type: ignore[override]
        return self.chat(message)


def make_bot() -> Any:
    return Bot()


def make_method() -> Any:
    return Bot().chat


def make_class() -> Any:
    return Bot


async def make_later() -> Any:
    return AsyncBot()


async def make_plain_later() -> Any:
    return Bot()


REMEMBERS: dict[str, Any] = {
    "a class": Bot,
    "an async class": AsyncBot,
    "a method of a class": Method(Bot, "chat"),
    "an object": Bot(),
    "a method of an object": Bot().chat,
    "a function that makes it": make_bot,
    "one that makes a method": make_method,
    "one that makes a class": make_class,
    "an async one": make_later,
    "an async one that makes a plain agent": make_plain_later,
}


@pytest.mark.parametrize("target", REMEMBERS.values(), ids=REMEMBERS)
def test_each_conversation_has_its_own(target: Any) -> None:
    one, two = session(target), session(target)
    assert asked(one) == "Hi"
    assert asked(one, SECOND) == "Hi,And?"
    assert asked(two) == "Hi"


def test_an_agent_is_made_with_the_first_message() -> None:
    made: list[str] = []

    class Late:
        def __init__(self) -> None:
            made.append("x")

        def __call__(self, message: str) -> str:
            return message

    played = session(Late)
    entry = played.entry()
    assert made == []
    entry(FIRST, CTX)
    entry(FIRST, CTX)
    assert made == ["x"]


def test_the_world_knows_the_agent_until_the_end() -> None:
    world = World()
    played = session(Bot, world=world)
    assert played.world is world
    assert world.target is None
    asked(played)
    assert isinstance(world.target, Bot)
    asyncio.run(played.close())
    assert world.target is None
    assert session(Bot).world is not session(Bot).world


# ── what a factory makes ─────────────────────────────────────────────────────────────────────────


def make_number() -> Any:
    return 5


def make_maker() -> Any:
    def make_another() -> Any:
        return Bot()

    return make_another


def make_wrong() -> Any:
    return lambda message, user: message


class Silent:
    def chat(self, message: str) -> str:
        return message


def make_silent() -> Any:
    return Silent()


@pytest.mark.parametrize("make", [make_number, make_maker, make_wrong])
def test_a_factory_that_makes_no_agent(make: Any) -> None:
    with pytest.raises(NotAnAgentError) as caught:
        asked(session(make))
    assert f"{make.__name__}()" in str(caught.value)


def test_a_factory_that_makes_an_object_that_is_not_called() -> None:
    with pytest.raises(TargetRefusedError) as caught:
        asked(session(make_silent))
    assert "make_silent()" in str(caught.value)
    assert "return Silent(…).chat" in str(caught.value)
    assert caught.value.agenteval_kind == "author"


# ── objects of frameworks ────────────────────────────────────────────────────────────────────────


class Opened:
    def __init__(self, args: tuple[Any, ...]) -> None:
        self.args, self.texts, self.is_closed = args, [], False  # type: ignore[var-annotated]

    async def reply(self, text: str) -> Any:
        self.texts.append(text)
        return f"{len(self.texts)}: {text}"

    async def close(self) -> None:
        self.is_closed = True


class Framework:
    """What an adapter makes of its framework's object."""

    def __init__(self) -> None:
        self.conversations: list[Opened] = []

    def opened(self, *args: Any) -> Opened:
        self.conversations.append(Opened(args))
        return self.conversations[-1]


def framework_session(**more: Any) -> tuple[TargetSession, Framework]:
    framework = Framework()
    binding = resolve_target(lambda message, ctx: "", "x", lambda _: None)
    assert isinstance(binding, ResolvedTarget)
    resolved = ResolvedTarget(framework, "framework", binding=binding.binding, is_async=True, name="bot")
    return TargetSession(resolved, **more), framework


def test_a_conversation_with_an_object_of_a_framework() -> None:
    world = World()

    def deps() -> Any:
        return 5

    played, framework = framework_session(make_deps=deps, world=world)
    assert played.is_of_framework
    assert not played.has_open_conversation
    assert asked(played) == "1: Hi"
    assert asked(played, SECOND) == "2: And?"
    assert played.has_open_conversation
    (opened,) = framework.conversations
    assert len(opened.args[0]) == 32
    assert opened.args[1:] == (deps, world)
    assert opened.texts == ["Hi", "And?"]
    asyncio.run(played.close())
    assert opened.is_closed


def test_what_is_no_framework_has_nothing_to_close() -> None:
    played = session(Bot)
    asked(played)
    assert not played.is_of_framework
    assert not played.has_open_conversation
    asyncio.run(played.close())


# ── answers ──────────────────────────────────────────────────────────────────────────────────────


def pieces(*found: Any) -> Any:
    def agent(message: str) -> Any:
        yield from found

    return agent


def later_pieces(*found: Any) -> Any:
    async def agent(message: str) -> Any:
        for each in found:
            yield each

    return agent


def growing(*found: Any) -> Any:
    def agent(message: str, history: list[dict[str, Any]]) -> Any:
        yield from found

    return agent


def later_growing(*found: Any) -> Any:
    async def agent(message: str, history: list[dict[str, Any]]) -> Any:
        for each in found:
            yield each

    return agent


JOINED: dict[str, tuple[tuple[Any, ...], Any, Any]] = {
    "none": ((), "", ""),
    "one": (("a",), "a", "a"),
    "texts": (("a", "b"), "ab", "ab"),
    "the whole text each time": (("a", "ab", "abc"), "aababc", "abc"),
    "the same text again": (("a", "a"), "aa", "a"),
    "one that does not go on": (("a", "ab", "b"), "aabb", "aabb"),
    "messages": (({"a": 1}, {"b": 2}), [{"a": 1}, {"b": 2}], [{"a": 1}, {"b": 2}]),
    "a text among messages": (("a", {"b": 2}), ["a", {"b": 2}], ["a", {"b": 2}]),
}


@pytest.mark.parametrize(("found", "plain", "with_history"), JOINED.values(), ids=JOINED)
def test_pieces_are_one_answer(found: tuple[Any, ...], plain: Any, with_history: Any) -> None:
    for make in (pieces, later_pieces):
        assert asked(session(make(*found))) == plain
    for make in (growing, later_growing):
        assert asked(session(make(*found))) == with_history


def test_what_was_said_before_a_fault_is_known() -> None:
    def agent(message: str) -> Any:
        yield "a"
        yield "b"
        raise ValueError

    async def later(message: str) -> Any:
        yield "a"
        yield "b"
        raise ValueError

    for target in (agent, later):
        played = session(target)
        assert played.partial_answer is None
        with pytest.raises(ValueError):
            asked(played)
        assert played.partial_answer == "ab"


def test_what_was_said_before_is_forgotten_with_the_next_message() -> None:
    count = iter(range(9))

    def agent(message: str) -> Any:
        if next(count):
            raise ValueError
        return iter_of("a")

    def iter_of(*found: str) -> Any:
        yield from found

    played = session(agent)
    assert asked(played) == "a"
    with pytest.raises(ValueError):
        asked(played)
    assert played.partial_answer is None


def test_a_partial_answer_with_history_is_the_last_piece() -> None:
    def agent(message: str, history: list[dict[str, Any]]) -> Any:
        yield "a"
        yield "ab"
        raise ValueError

    played = session(agent)
    with pytest.raises(ValueError):
        asked(played)
    assert played.partial_answer == "ab"


async def give(value: Any) -> Any:
    return value


def yields(*found: Any) -> Any:
    yield from found


AWAITED: dict[str, Any] = {
    "a function that gives a coroutine": lambda message: give("x"),
    "one that gives a coroutine of pieces": lambda message: give(yields("x")),
    "a generator that another gives": lambda message: yields("x"),
}


@pytest.mark.parametrize("target", AWAITED.values(), ids=AWAITED)
def test_whatever_can_be_awaited_is(target: Any) -> None:
    assert asked(session(target)) == "x"


def test_an_async_function_that_gives_pieces_or_a_coroutine() -> None:
    async def gives_pieces(message: str) -> Any:
        return yields("a", "b")

    async def gives_later(message: str) -> Any:
        return later_pieces("a", "b")("")

    for target in (gives_pieces, gives_later):
        assert asked(session(target)) == "ab"


def test_a_plain_function_is_not_awaited() -> None:
    assert session(lambda message: message).entry()(FIRST, CTX) == "Hi"
    assert not inspect.iscoroutinefunction(session(lambda message: message).entry())
    assert inspect.iscoroutinefunction(session(AsyncBot).entry())


def test_the_answer_is_taken_out_of_a_result_of_a_framework() -> None:
    result = type("RunResult", (), {"__module__": "smolagents.agents", "output": "five\n"})
    assert asked(session(lambda message: result())) == "five"
    assert asked(session(lambda message: give(result()))) == "five"


# ── a turn ───────────────────────────────────────────────────────────────────────────────────────


def test_a_turn_is_of_the_conversation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hooks, "list_failures", lambda: [])
    played = session(Bot)
    context: Any = Context(SimpleNamespace(), iter([1]), [])  # type: ignore[arg-type]
    with played.turn(context) as turn:
        assert current_world() is played.world
        assert not turn.is_over
        context.on_direct_call("look", {"a": 1})
    assert [each.name for each in played.world.calls_so_far] == ["look"]
    assert turn.is_over
    assert current_world() is None
    assert played.world.take_fault() == ""


def test_a_framework_that_could_not_be_hooked_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hooks, "list_failures", lambda: ["first", "second"])
    played = session(Bot)

    def fail() -> None:
        with played.turn(SimpleNamespace()):
            raise ValueError

    with pytest.raises(ValueError):
        fail()
    assert played.world.take_fault() == "first"
