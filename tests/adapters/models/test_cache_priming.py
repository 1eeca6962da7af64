"""One judge of a record goes first; the others follow its reply, and find it in the provider's cache."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from agenteval.adapters.models.cache_priming import (
    MIN_PREFIX_TOKENS,
    PATIENCE_S,
    REMEMBERED,
    STEP,
    CachePrimingModel,
)
from agenteval.adapters.traffic.middleware import Traffic
from agenteval.core.config import Config, ModelConfig
from agenteval.core.errors import BudgetError, InfrastructureError, RequestSkippedError
from agenteval.core.protocols import ModelReply, ModelRequest
from agenteval.core.trajectory import Usage
from tests.support.judged_projects import KEY, contented, judged_project, model_config, scenario
from tests.support.kit import Project
from tests.support.model_servers import Json, ModelServer, Reply
from tests.support.virtual_time import VirtualTime, run_virtually

SUITE = "s" * 4 * MIN_PREFIX_TOKENS
MORE = "m" * 4 * STEP


class Answer(BaseModel):
    said: str = "fine"


class Slow:
    """Takes ``takes_s`` for each answer (by the end of the prompt), and notes when it was asked what."""

    def __init__(self, takes_s: float = 1.0, **takes: float) -> None:
        self._takes_s = takes_s
        self._takes = takes
        self.begun: dict[str, float] = {}
        self.error: Exception | None = None

    async def complete(self, request: ModelRequest) -> ModelReply:
        name = request.prompt.rpartition(" ")[2]
        self.begun[name] = anyio.current_time()
        await anyio.sleep(self._takes.get(name, self._takes_s))
        if self.error:
            raise self.error
        return ModelReply(Answer(), Usage(calls=1), "slow/model")

    async def aclose(self) -> None:
        pass


def request(name: str, *parts: str) -> ModelRequest:
    """One whose beginnings are shared up to the end of each part."""
    lengths = [len("".join(parts[: place + 1])) for place in range(len(parts))]
    return ModelRequest("judge", "", f"{''.join(parts)} {name}", Answer, shared=tuple(lengths))


def begun(
    slow: Slow,
    *requests: ModelRequest,
    apart_s: float = 0.0,
    meanwhile: Callable[..., Awaitable[None]] | None = None,
) -> dict[str, float]:
    """When each was sent; all that are begun come to an end."""

    async def main(_: VirtualTime) -> None:
        model = CachePrimingModel(slow)

        async def ask(each: ModelRequest) -> None:
            with suppress(InfrastructureError):
                await model.complete(each)

        async with anyio.create_task_group() as group:
            if meanwhile:
                group.start_soon(meanwhile, model)
                await anyio.sleep(0.5)
            for each in requests:
                group.start_soon(ask, each)
                await anyio.sleep(apart_s)
        assert not model._under_way

    run_virtually(main)
    return slow.begun


def test_the_others_start_when_the_first_has_its_reply() -> None:
    asked = [request(name, SUITE) for name in "abcd"]
    assert begun(Slow(), *asked) == {"a": 0, "b": 1, "c": 1, "d": 1}


@pytest.mark.parametrize(
    "error", [InfrastructureError("down"), BudgetError("spent"), RequestSkippedError("closed")]
)
def test_or_has_failed(error: Exception) -> None:
    slow = Slow()
    slow.error = error
    assert begun(slow, *[request(name, SUITE) for name in "abc"]) == {"a": 0, "b": 1, "c": 1}


def test_or_is_cancelled() -> None:
    async def cancelled(model: CachePrimingModel) -> None:
        with anyio.move_on_after(0.75):
            await model.complete(request("a", SUITE))

    asked = [request(name, SUITE) for name in "bc"]
    assert begun(Slow(), *asked, meanwhile=cancelled) == {"a": 0, "b": 0.75, "c": 0.75}


def test_a_suite_has_one_that_goes_first_and_then_each_record() -> None:
    """Nobody waits for another's record: with many conversations, as many calls are under way."""
    asked = [request(f"{name}{number}", SUITE, name * len(MORE)) for name in "xyz" for number in range(3)]
    times = begun(Slow(), *asked)
    assert [name for name, at in times.items() if at == 0] == ["x0"]
    assert sorted(name for name, at in times.items() if at == 1) == ["x1", "x2", "y0", "z0"]
    assert sorted(name for name, at in times.items() if at == 2) == ["y1", "y2", "z1", "z2"]


def test_a_turn_waits_for_the_turn_before_and_for_no_other() -> None:
    asked = [
        request("one", SUITE, MORE),
        request("two", SUITE, MORE, "2" + MORE),
        request("three", SUITE, MORE, "3" + MORE),
    ]
    assert begun(Slow(), *asked) == {"one": 0, "two": 1, "three": 1}
    assert begun(Slow(), *asked, apart_s=5) == {"one": 0, "two": 5, "three": 10}


@pytest.mark.parametrize("parts", [(), ("s" * 4 * (MIN_PREFIX_TOKENS - 1),), ("s", "m")])
def test_what_no_cache_keeps_is_sent_at_once(parts: tuple[str, ...]) -> None:
    assert set(begun(Slow(), *[request(name, *parts) for name in "abc"]).values()) == {0}


def test_little_more_is_not_waited_for() -> None:
    """A provider caches in steps: of a turn that has only just more, nothing would be found."""
    one, two = (request(name, SUITE, name * (len(MORE) - 4)) for name in "ab")
    again = request("c", SUITE, "a" * (len(MORE) - 4))
    assert begun(Slow(), one, two, again) == {"a": 0, "b": 1, "c": 1}


def test_nobody_waits_without_end() -> None:
    asked = [request(name, SUITE, MORE) for name in "abc"]
    times = begun(Slow(a=1000), *asked)
    assert times["a"] == 0
    assert times["b"] == times["c"] == 2 * PATIENCE_S  # for the suite, then for the record


def test_so_many_are_remembered() -> None:
    async def main(_: VirtualTime) -> None:
        model = CachePrimingModel(Slow(0))
        model._known = {number.to_bytes(4): None for number in range(REMEMBERED)}
        await model.complete(request("a", SUITE))
        assert len(model._known) == REMEMBERED
        assert (0).to_bytes(4) not in model._known

    run_virtually(main)


# ── through the command line ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("is_long", [True, False])
def test_judges_of_a_turn_follow_the_first_where_the_record_is_long(project: Project, is_long: bool) -> None:
    first, second = threading.Event(), threading.Event()
    met: list[bool] = []
    answer = contented()

    def play(asked: Json) -> Reply | None:
        if first.is_set():
            second.set()
        else:
            first.set()
            met.append(second.wait(0.3 if is_long else 30))
        return answer(asked)

    with ModelServer(play) as server:
        more = "metrics: [helpfulness, coherence, agent_behavior_failure]\njudge: {corroborate: false}\n"
        said = "Where is it? " * 400 if is_long else "Where is it?"
        judged_project(project, [scenario("a", said)], model_config(server, more))
        done = project.run(env=KEY)
        texts: list[Any] = [asked["messages"][1]["content"] for asked in server.asked]
    assert done.code in (0, 3), done.all
    assert met == [not is_long]
    assert len(texts) == 3
    assert len({text.partition("# Criterion")[0] for text in texts}) == 1


def test_scripted_and_cached_judges_do_not_wait() -> None:
    class Nobody:
        async def complete(self, request: ModelRequest) -> ModelReply:
            raise RequestSkippedError("nobody")

        async def aclose(self) -> None:
            pass

    def doors(name: str, role: str) -> list[str]:
        model: Any = Traffic(Config(cache=True)).model(ModelConfig(model=name), Nobody, role=role)
        found = []
        while model is not None:
            found.append(type(model).__name__)
            model = getattr(model, "_model", None)
        return found

    asked = doors("openai/x", "judge")
    assert (
        asked.index("StoreBackedModel")
        < asked.index("CircuitBreakerModel")
        < asked.index("CachePrimingModel")
    )
    assert "CachePrimingModel" not in doors("scripted/x.yaml", "judge")
    assert "CachePrimingModel" not in doors("openai/x", "user")


def test_a_run_takes_hardly_longer() -> None:
    """Twelve conversations of four turns with seven judges each, 20 calls in flight: the pool stays full."""

    class Pool(Slow):
        def __init__(self) -> None:
            super().__init__()
            self.places = anyio.CapacityLimiter(20)

        async def complete(self, request: ModelRequest) -> ModelReply:
            async with self.places:
                return await super().complete(request)

    def takes_s(door: Callable[[Any], Any]) -> float:
        took: list[float] = []

        async def main(time: VirtualTime) -> None:
            model = door(Pool())
            async with anyio.create_task_group() as group:
                for talk in range(12):
                    group.start_soon(converse, model, talk)
            took.append(time.now_s)

        async def converse(model: Any, talk: int) -> None:
            parts = [SUITE]
            async with anyio.create_task_group() as judging:
                for turn in range(4):
                    await anyio.sleep(1)
                    parts.append(f"{talk}.{turn}" * len(MORE))
                    for judge in range(7):
                        judging.start_soon(model.complete, request(f"{talk}.{turn}.{judge}", *parts))

        run_virtually(main)
        return took[0]

    at_once = takes_s(lambda model: model)
    assert at_once == 1 + 17  # 336 calls, 20 at a time
    assert takes_s(CachePrimingModel) <= at_once + 2
