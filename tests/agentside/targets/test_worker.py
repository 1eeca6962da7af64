"""An agent in its own interpreter, line by line: what it is asked, what it says, and what it asks for."""

from __future__ import annotations

import asyncio
import json
import os
import platform
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from agenteval.agentside.targets import module_files, same_names, worker
from agenteval.agentside.targets.tool_proxy import PassthroughCall
from agenteval.agentside.world import ToolAnswer

PATIENCE_S = 10.0
INTERCEPT = {"book": "wk_bot.py:book"}

BOT = """
import asyncio
from agenteval.agentside.world import current_world

class Odd:
    def __repr__(self): return "x" * 300

class Bot:
    def __init__(self): self.heard = []
    def __call__(self, messages):
        self.heard.append(messages[-1]["content"])
        return ",".join(self.heard)

def agent(messages, ctx):
    text = messages[-1]["content"]
    if text == "where":
        return [{"role": "assistant", "content": [ctx.scenario_id, ctx.epoch, ctx.seed, ctx.turn]}]
    if text == "tools":
        return {"role": "assistant", "content": ctx.tools}
    if text == "call":
        return str(ctx.call_tool_sync("look", {"a": 1}))
    if text == "twice":
        return str([ctx.call_tool_sync("look"), ctx.call_tool_sync("look")])
    if text == "both":
        return str([ctx.call_tool_sync("look"), ctx.call_tool_sync("book")])
    if text == "fault":
        current_world().record_fault("nobody knows")
        return "x"
    if text == "copy":
        import sys, types
        copied = types.ModuleType("wk_copy")
        exec(open(__file__).read(), copied.__dict__)
        copied.__file__ = __file__
        sys.modules["wk_copy"] = copied
        return "x"
    if text == "odd":
        return str(ctx.call_tool_sync(Odd(), {"a": Odd()}))
    if text == "book":
        return str(book("mon"))
    if text == "number":
        return 5
    if text == "large":
        return "x" * (10 * 2**20 + 1)
    if text == "fail":
        raise ValueError("no key")
    if text == "quit":
        raise SystemExit(3)
    if text == "cancel":
        raise asyncio.CancelledError
    if text == "no text":
        raise TimeoutError
    return text

async def later(messages, ctx):
    if messages[-1]["content"] == "fail":
        raise ConnectionRefusedError("down")
    return str(await ctx.call_tool("look", {"a": 1}))

def gives_later(message):
    async def answer():
        return message
    return answer()

def pieces(message):
    yield "a"
    yield "b"
    raise ValueError("no more")

def large_pieces(message):
    yield "x" * (10 * 2**20 + 1)
    raise ValueError("no more")

def book(day):
    return ["real", day]

def deps(): return 5
def deps_of(shop): return 5
number = 5
"""


class Lines:
    """What a worker writes, and what it reads: one that ends with ``None``."""

    def __init__(self) -> None:
        self.written: Queue[dict[str, Any]] = Queue()
        self.read: Queue[bytes | None] = Queue()
        self.raw: list[bytes] = []

    def write(self, line: bytes) -> None:
        self.raw.append(line)
        self.written.put(json.loads(line))

    def flush(self) -> None:
        return

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.read.get, None)


class Driver:
    """agenteval's end of the pipes."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines

    def send(self, **message: Any) -> None:
        self._lines.read.put(json.dumps(message).encode())

    def receive(self) -> dict[str, Any]:
        return self._lines.written.get(timeout=PATIENCE_S)

    def ask(self, text: str, session: str = "s1", **more: Any) -> None:
        where = {"scenario_id": "sc", "epoch": 2, "seed": 7, "turn": 0, "tools": []}
        self.send(session=session, messages=[{"role": "user", "content": text}], **{**where, **more})

    def answer(self, text: str, session: str = "s1", **more: Any) -> dict[str, Any]:
        self.ask(text, session, **more)
        return self.receive()


class Workers:
    def __init__(self, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._base, self._patch = base, monkeypatch
        self._running: list[tuple[Lines, threading.Thread]] = []
        self._faults: list[BaseException] = []

    def start(self, target: str = "wk_bot.py:agent", deps: str = "", **settings: Any) -> Driver:
        lines = Lines()
        self._patch.setattr(worker, "_take_over_pipes", lambda: (lines, lines))
        arguments: Any = (target, str(self._base), deps, lambda _: None, settings or None)

        def work() -> None:
            try:
                worker.work(*arguments)
            except BaseException as error:
                self._faults.append(error)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        self._running.append((lines, thread))
        return Driver(lines)

    def ready(self, *args: Any, **settings: Any) -> Driver:
        driver = self.start(*args, **settings)
        assert "ready" in driver.receive()
        return driver

    def end(self) -> None:
        """End the input of those that still run: who reads it would end the process of a busy one."""
        for lines, thread in self._running:
            if thread.is_alive():
                lines.read.put(None)
                thread.join(PATIENCE_S)
            assert not thread.is_alive()
        assert self._faults == []


@pytest.fixture
def workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workers]:
    path, modules, claims = [*sys.path], {*sys.modules}, dict(same_names._CLAIMS)
    same_names._CLAIMS.clear()
    (tmp_path / "wk_bot.py").write_text(BOT, encoding="utf-8")
    monkeypatch.setattr(os, "_exit", lambda code: None)  # a worker ends its process, which is the tests'
    made = Workers(tmp_path, monkeypatch)
    yield made
    made.end()
    sys.path[:] = path
    for name in {*sys.modules} - modules:
        if getattr(sys.modules[name], "__file__", None) and str(tmp_path) in str(sys.modules[name].__file__):
            del sys.modules[name]
    same_names._CLAIMS.clear()
    same_names._CLAIMS.update(claims)
    module_files.module_of_file.cache_clear()


# ── the first line ───────────────────────────────────────────────────────────────────────────────


def test_a_worker_says_that_it_is_ready(workers: Workers) -> None:
    found = workers.start().receive()["ready"]
    assert found["python"] == platform.python_version()
    assert found["imported"] == ""
    assert {*found["agent"]} == {"does", "warning", "one_at_a_time", "tools", "no_history"}
    assert "wk_bot.py:agent" in found["agent"]["does"]


REFUSED: dict[str, tuple[str, str, dict[str, str], dict[str, Any]]] = {
    "no such file": ("nowhere.py:agent", "", {}, {"asked": "", "known": []}),
    "no such name": ("wk_bot.py:agnt", "", {}, {"asked": "agnt", "remedy": ""}),
    "no agent": ("wk_bot.py:number", "", {}, {"of": "agent"}),
    "no such dependencies": ("wk_bot.py:agent", "wk_bot.py:dps", {}, {"asked": "dps"}),
    "dependencies that need more": ("wk_bot.py:agent", "wk_bot.py:deps_of", {}, {"of": "agent"}),
    "no function to intercept": (
        "wk_bot.py:agent",
        "",
        {"buy": "wk_bot.py:number"},
        {"of": "intercept", "tool": "buy"},
    ),
}


@pytest.mark.parametrize(("target", "deps", "intercept", "parts"), REFUSED.values(), ids=REFUSED)
def test_a_worker_says_why_it_cannot_run(
    workers: Workers, target: str, deps: str, intercept: dict[str, str], parts: dict[str, Any]
) -> None:
    (found,) = workers.start(target, deps, intercept=intercept).receive().values()
    assert found["what"]
    assert found["imported"] == ""
    assert {key: found[key] for key in parts} == parts
    if found.get("asked"):
        assert "agent" in found["known"]
    elif target != "wk_bot.py:number":
        assert found["remedy"]


def test_what_the_import_called_is_told(workers: Workers, tmp_path: Path) -> None:
    source = "def agent(message): return message\nfrom agenteval.agentside.world import current_world\n"
    call = "current_world().call_sync({name!r}, {{}}, lambda: 1)\n"
    (tmp_path / "wk_runs.py").write_text(source + "".join(call.format(name=name) for name in ("a", "b")))
    ready = workers.start("wk_runs.py:agent", declared=["a"], runs_others=True).receive()["ready"]
    assert "a (not run), b (the real tool ran)" in ready["imported"]
    (tmp_path / "wk_wrong.py").write_text(source.replace("agent", "agnt", 1) + call.format(name="b"))
    refused = workers.start("wk_wrong.py:agent").receive()["refused"]
    assert "b (not run)" in refused["imported"]


# ── answers ──────────────────────────────────────────────────────────────────────────────────────


def test_an_answer_is_one_line(workers: Workers) -> None:
    driver = workers.ready()
    assert driver.answer("Hi") == {"value": "Hi"}
    assert driver.answer("number") == {"returned": "int"}
    found = driver.answer("large")
    assert [*found] == ["too_large"]
    assert "10 MiB" in found["too_large"]


def test_where_the_conversation_is(workers: Workers) -> None:
    found = workers.ready().answer("where", turn=3)
    assert found == {"value": [{"role": "assistant", "content": ["sc", 2, 7, 3]}]}


def test_the_list_of_tools_was_read(workers: Workers) -> None:
    driver = workers.ready()
    found = driver.answer("tools", tools=[{"type": "function"}])
    assert found == {"value": {"role": "assistant", "content": [{"type": "function"}]}, "list_asked": True}
    assert driver.answer("Hi") == {"value": "Hi"}


FAULTS: dict[str, tuple[str, list[str]]] = {
    "fail": ("exception", ["ValueError: no key", "wk_bot.py"]),
    "quit": ("exception", ["SystemExit", "3"]),
    "cancel": ("exception", ["CancelledUserCodeError"]),
    "no text": ("timeout", ["TimeoutError"]),
}


@pytest.mark.parametrize("text", FAULTS)
def test_an_exception_is_told(workers: Workers, text: str) -> None:
    kind, parts = FAULTS[text]
    driver = workers.ready()
    found = driver.answer(text)
    assert {**found["error"], "message": ""} == {"message": "", "kind": kind, "final": False}
    for part in parts:
        assert part in found["error"]["message"]
    assert driver.answer("Hi") == {"value": "Hi"}


def test_a_provider_that_is_down_is_not_the_agents_fault(workers: Workers) -> None:
    found = workers.ready("wk_bot.py:later").answer("fail")
    assert found["error"]["kind"] == "infrastructure"


def test_what_an_unfinished_answer_has_is_told(workers: Workers) -> None:
    found = workers.ready("wk_bot.py:pieces").answer("Hi")
    assert found["value"] == "ab"
    assert "no more" in found["error"]["message"]
    found = workers.ready("wk_bot.py:large_pieces").answer("Hi")
    assert [*found] == ["error"]
    found = workers.ready("wk_bot.py:agent").answer("fail")
    assert found.get("value") is None


def test_an_answer_that_comes_later(workers: Workers) -> None:
    assert workers.ready("wk_bot.py:gives_later").answer("Hi") == {"value": "Hi"}


# ── conversations ────────────────────────────────────────────────────────────────────────────────


def test_each_conversation_has_its_own_agent(workers: Workers) -> None:
    driver = workers.ready("wk_bot.py:Bot")
    assert driver.answer("a")["value"] == "a"
    assert driver.answer("b")["value"] == "a,b"
    assert driver.answer("c", session="s2")["value"] == "c"
    driver.send(over=True)
    assert driver.receive() == {"over": True}
    assert driver.answer("d", session="s2")["value"] == "d"


# ── calls ────────────────────────────────────────────────────────────────────────────────────────


def result(driver: Driver, call: dict[str, Any], **parts: Any) -> None:
    driver.send(tool_result={"id": call["tool_call"]["id"], **parts})


def test_a_call_is_answered(workers: Workers) -> None:
    driver = workers.ready()
    driver.ask("call")
    call = driver.receive()
    assert call == {
        "tool_call": {"id": 1, "name": "look", "arguments": {"a": 1}, "batch": 1, "session": "s1"}
    }
    result(driver, call, result={"seen": True}, is_error=False)
    found = driver.receive()
    assert found["value"] == "{'seen': True}"
    assert found["asked"] == [["look", '{"a": 1}', "", ""]]
    assert found["met"] == ["look"]
    assert "made" not in found
    assert driver.answer("Hi")["value"] == "Hi"


def test_one_call_after_the_other_is_a_step_each(workers: Workers) -> None:
    driver = workers.ready()
    driver.ask("twice")
    found = []
    for value in (1, 2):
        call = driver.receive()["tool_call"]
        found.append((call["id"], call["batch"], call["arguments"]))
        driver.send(tool_result={"id": 99, "result": "nobody's"})
        driver.send(tool_result={"id": call["id"], "result": value})
    assert found == [(1, 1, None), (2, 2, None)]
    assert driver.receive()["value"] == "[1, 2]"
    driver.ask("call", session="s2")
    call = driver.receive()
    assert (call["tool_call"]["id"], call["tool_call"]["batch"]) == (3, 1)
    result(driver, call, result=0)
    assert driver.receive()["value"] == "0"


def test_the_tools_that_were_called_are_in_order(workers: Workers) -> None:
    driver = workers.ready()
    driver.ask("both")
    for _ in range(2):
        result(driver, driver.receive(), result=1)
    found = driver.receive()
    assert found["met"] == ["book", "look"]
    assert [name for name, *_ in found["asked"]] == ["look", "book"]


def test_why_a_turn_cannot_be_judged(workers: Workers) -> None:
    driver = workers.ready(intercept=INTERCEPT)
    assert driver.answer("fault")["missed"] == "nobody knows"
    assert "missed" not in driver.answer("Hi")
    assert "'book'" in driver.answer("copy")["missed"]
    assert "missed" not in driver.answer("Hi")


def test_a_call_of_an_async_agent(workers: Workers) -> None:
    driver = workers.ready("wk_bot.py:later")
    driver.ask("Hi")
    call = driver.receive()
    result(driver, call, result={"error": "no"}, is_error=True)
    assert driver.receive()["value"] == "{'error': 'no'}"


def test_a_name_and_arguments_that_are_not_json(workers: Workers) -> None:
    driver = workers.ready()
    driver.ask("odd")
    call = driver.receive()["tool_call"]
    assert call["name"] == "x" * 200
    assert isinstance(call["arguments"], str)
    assert call["arguments"].startswith("dict ")
    driver.send(tool_result={"id": call["id"], "result": 1})
    driver.receive()


def test_a_conversation_that_is_over_answers_no_calls(workers: Workers) -> None:
    driver = workers.ready()
    driver.ask("call")
    result(driver, driver.receive(), over=True)
    found = driver.receive()
    assert "the conversation is over" in found["error"]["message"]


def test_an_intercepted_function_that_the_scenario_answers(workers: Workers) -> None:
    driver = workers.ready(intercept=INTERCEPT)
    driver.ask("book", answered=["book"], mocked=["book"])
    call = driver.receive()
    assert call["tool_call"].pop("known") is True
    assert call["tool_call"] == {
        "id": 1,
        "name": "book",
        "arguments": {"day": "mon"},
        "batch": 1,
        "session": "s1",
    }
    result(driver, call, result="mocked")
    found = driver.receive()
    assert found["value"] == "mocked"
    assert found["made"] == found["asked"] == [["book", '{"day": "mon"}', "", ""]]


def test_an_intercepted_function_that_the_agent_runs(workers: Workers) -> None:
    driver = workers.ready(intercept=INTERCEPT)
    driver.ask("book", answered=["look"])
    call = driver.receive()
    assert call["tool_call"]["own"] is True
    assert "known" not in call["tool_call"]
    result(driver, call, go=True)
    done = {"id": 1, "result": ["real", "mon"], "is_error": False}
    assert driver.receive() == {"tool_done": done}
    driver.send(tool_result=done)
    assert driver.receive()["value"] == "['real', 'mon']"


def test_without_a_list_everything_is_answered(workers: Workers) -> None:
    driver = workers.ready(intercept=INTERCEPT)
    driver.ask("book")
    call = driver.receive()
    assert call["tool_call"]["known"] is True
    result(driver, call, result=1)
    assert driver.receive()["value"] == "1"


# ── the parts ────────────────────────────────────────────────────────────────────────────────────


def wire() -> tuple[Any, Lines]:
    lines = Lines()
    return worker._Wire(lines), lines  # type: ignore[arg-type]


def test_lines_are_short_and_not_escaped() -> None:
    out, lines = wire()
    out.send({"a": "é", "b": [1, 2]})
    out.send({"a": "\ud800é", "b": [1, 2]})
    assert lines.raw == ['{"a":"é","b":[1,2]}\n'.encode(), b'{"a":"\\ud800\\u00e9","b":[1,2]}\n']


def test_the_end_of_the_input(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int] = []
    monkeypatch.setattr(os, "_exit", ended.append)
    for lines, is_busy in (
        ([], False),
        ([b'{"session": "s1"}'], True),
        ([b'{"tool_result": {"id": 1}}'], False),
    ):
        ended.clear()
        out, _ = wire()
        requests: Queue[Any] = Queue()
        out.listen(lines, requests)
        assert ended == ([0] if is_busy else [])
        if is_busy:
            assert requests.get() == {"session": "s1"}
        assert requests.get() is None


def test_a_result_of_nobody_and_one_that_comes_twice() -> None:
    out, _ = wire()
    future = out.call("s1", "look", {}, 1)
    out._resolve_call({"id": 2, "result": 5})
    out._resolve_call({"id": 1, "result": 5, "is_error": True})
    out._resolve_call({"id": 1, "result": 6})
    assert future.result(0) == ToolAnswer(5, True)
    nothing = out.call("s1", "look", {}, 1)
    out._resolve_call({"id": 2})
    assert nothing.result(0) == ToolAnswer(None, False)
    given_up = out.call("s1", "look", {}, 1)
    given_up.cancel()
    out._resolve_call({"id": 3, "result": 5})
    assert given_up.cancelled()


def test_a_call_that_the_worker_runs() -> None:
    out, lines = wire()
    passthrough = PassthroughCall()
    out.call("s1", "book", {}, 4, passthrough=passthrough)
    assert lines.written.get()["tool_call"]["own"] is True
    assert not passthrough.go_ahead.done()
    out._resolve_call({"id": 1, "go": True})
    assert passthrough.go_ahead.done()
    passthrough.finish_with_error(ValueError("no seat"))
    done = lines.written.get()["tool_done"]
    assert (done["id"], done["is_error"]) == (1, True)
    assert "no seat" in done["result"]["error"]


@pytest.mark.parametrize(
    ("answered", "mocked", "runs", "mocks"),
    [
        (None, (), False, False),
        ([], (), True, False),
        (["look"], ("look",), False, True),
        (["a"], ("a",), True, False),
    ],
)
def test_which_tools_the_worker_runs(answered: Any, mocked: Any, runs: bool, mocks: bool) -> None:
    context = worker._WorkerContext(wire()[0], "s1", iter([1]), [])
    context.answered, context.mocked = answered, mocked
    assert (context.passes_through("look"), context.mocks("look")) == (runs, mocks)


@pytest.mark.parametrize("args", [None, {}, {"a": [1]}, "x", 5])
def test_arguments_that_are_json_stay_as_they_are(args: Any) -> None:
    assert worker._json_arguments(args) is args


ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)


@pytest.mark.parametrize(("args", "name"), [({1}, "set"), ({"a": object()}, "dict"), (ENDLESS, "list")])
def test_arguments_that_are_not_json_are_named(args: Any, name: str) -> None:
    found = worker._json_arguments(args)
    assert found.split()[0] == name
    with pytest.raises(ValueError):
        json.loads(found)


def test_the_form_of_an_exception() -> None:
    own = ValueError("x")
    assert worker._as_exception(own) is own
    cancelled = asyncio.CancelledError("why")
    found = worker._as_exception(cancelled)
    assert (type(found).__name__, str(found)) == ("CancelledUserCodeError", "why")
    assert found.__cause__ is cancelled
    assert str(worker._as_exception(asyncio.CancelledError()))
    left = KeyboardInterrupt("x")
    found = worker._as_exception(left)
    assert (type(found).__name__, str(found)) == ("QuitError", "KeyboardInterrupt")
    assert found.__cause__ is left
