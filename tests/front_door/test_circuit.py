"""A judge that fails on every call is asked a few times, and no more; what was not asked is marked."""

from __future__ import annotations

import json
import threading
from collections import Counter
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from agenteval.adapters.models.circuit_breaker import FAILURES, CircuitBreakerModel
from agenteval.core.errors import BudgetError, InfrastructureError, RequestSkippedError, UnreadableReplyError
from agenteval.core.protocols import ModelRequest, Subject
from tests.support.fake_models import FakeModel
from tests.support.judged_projects import content, role_of, scenario
from tests.support.kit import Project
from tests.support.local_servers import completion
from tests.support.model_servers import Json, ModelServer, Reply, error
from tests.support.results import last_line

AGENT = "def agent(messages, ctx):\n    return f'Answer number {ctx.turn}.'\n"


class Judge:
    """A server whose user answers, and whose judge answers only the metrics of ``scores`` (1 to 5)."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.works = False
        self._lock = threading.Lock()

    def __call__(self, asked: Json) -> Reply:
        kind = "label" if '"label"' in json.dumps(asked.get("response_format")) else role_of(asked)
        with self._lock:
            self.asked[kind] += 1
        if kind == "judge" and not self.works:
            return error("out of order", status=503)
        return Reply(completion(json.dumps(content(asked))))


def configure(project: Project, server: ModelServer, metrics: str, more: str = "") -> None:
    project.agent(AGENT)
    project.config(
        f"models: {{default: {{model: openai-compatible/m, base_url: '{server.base_url}'}}}}\n"
        f"metrics: [{metrics}]\nepochs: 1\n{more}"
    )


def failures(project: Project) -> list[Json]:
    samples = [sample for each in project.results()["scenarios"] for sample in each["samples"]]
    return [f for sample in samples for turn in sample["turns"] for f in turn["score_failures"]]


def test_a_judge_that_never_answers_is_asked_a_few_times(project: Project) -> None:
    """The server is there for the user and for another rubric: only the rubric that fails is given up."""
    judge = Judge()
    with ModelServer(judge) as server:
        configure(project, server, "helpfulness, agent_behavior_failure")
        names = [f"s{number}" for number in range(12)]
        project.scenarios(json.dumps({"scenarios": [scenario(n, "Hi.", "And then?") for n in names]}))
        done = project.run()
        assert done.code == 0, done.all  # no threshold is based on it
        turns = 2 * len(names)
        again = project.results()["summary"]["second_opinions"]["usage"]["calls"]  # drawn by lot
        labels = turns + again
        assert judge.asked == {"judge": 4 * FAILURES, "label": labels}, "four: each with its retries"
        found = failures(project)
        assert Counter(f["not_asked"] for f in found) == {True: turns - FAILURES, False: FAILURES}
        [why] = {f["message"] for f in found if f["not_asked"]}
        assert all(fact in why for fact in ("helpfulness", "out of order"))
        notices = project.results()["summary"]["notices"]
        warnings = [notice["text"] for notice in notices if notice["level"] == "warning"]
        assert ["helpfulness" in text for text in warnings] == [True]
        assert f" {turns - FAILURES} judge" in last_line(done)
        # A resumed run asks them, and those that were asked stay as they are.
        judge.works = True
        run = next((project.root / ".agenteval/runs").iterdir()).name
        again = project.call("run", "--resume", run, "--report", "json=results.json")
        assert again.code == 0, again.all
        assert not any(f["not_asked"] for f in failures(project))
        assert "not asked" not in again.out


def test_a_threshold_on_what_was_not_asked_is_undecided(project: Project) -> None:
    with ModelServer(lambda asked: Reply(completion("I would rather not say."))) as server:
        configure(project, server, "helpfulness", "thresholds: {helpfulness: 1}\n")
        turns = [f"Question {number}?" for number in range(10)]
        project.scenarios(json.dumps({"scenarios": [scenario("s", *turns)]}))
        done = project.run()
        assert done.code == 3, done.all
        assert len(server.asked) == 2 * FAILURES, "each with its repair"
        # Some were asked afresh meanwhile, which is a call that failed like any other.
        assert 0 < sum(not f["not_asked"] for f in failures(project)) <= FAILURES
        assert len(failures(project)) == len(turns)


# ── the rule ─────────────────────────────────────────────────────────────────────────────────────


class Score(BaseModel):
    score: int


REQUEST = ModelRequest("judge", "", "", Score, Subject(metric="helpfulness"))
DOWN, UNREADABLE = InfrastructureError("the server is down"), UnreadableReplyError("no JSON")
FLAWED = UnreadableReplyError("the quotation stands nowhere", is_flawed=True)


def run(answers: list[Any]) -> tuple[list[str], list[str]]:
    """What becomes of calls that would be answered so, one after another; and the warnings."""
    warnings: list[str] = []
    left = iter(answers)
    model = CircuitBreakerModel(FakeModel(lambda _: next(left)), "m", warn=warnings.append)

    async def ask() -> list[str]:
        ends = []
        for _ in answers:
            try:
                await model.complete(REQUEST)
                ends.append("ok")
            except RequestSkippedError as error:
                ends.append("budget" if isinstance(error, BudgetError) else "not asked")
            except InfrastructureError:
                ends.append("failed")
        return ends

    return anyio.run(ask), warnings


OK = {"score": 1}


@pytest.mark.parametrize(
    ("answers", "not_asked"),
    [
        ([DOWN] * 9, 4),
        ([UNREADABLE] * 9, 4),
        ([UNREADABLE, DOWN] * 4, 3),
        ([DOWN] * 4 + [OK] + [DOWN] * 4 + [OK], 0),
        ([OK] + [DOWN] * 7, 2),
        # It answers: what it makes of some records is a matter of theirs.
        ([OK] + [UNREADABLE] * 20, 0),
        ([OK] + [DOWN] * 4 + [UNREADABLE] * 9 + [DOWN, DOWN], 1),
        # An answer with an invented quotation is an answer.
        ([FLAWED] * 20, 0),
        ([DOWN] * 4 + [FLAWED] + [DOWN] * 4, 0),
        # The budget says nothing of the judge.
        ([BudgetError("used up")] * 9 + [DOWN] * 4 + [OK], 0),
    ],
)
def test_when_a_judge_is_asked_no_more(answers: list[Any], not_asked: int) -> None:
    ends, warnings = run(answers)
    assert ends.count("not asked") == not_asked
    assert len(warnings) == (1 if not_asked else 0)


def test_until_it_is_known_whether_it_answers_few_calls_are_under_way() -> None:
    begun, released = Counter[str](), anyio.Event()

    class Slow(FakeModel):
        async def complete(self, request: ModelRequest) -> Any:
            begun[request.subject.metric] += 1
            await released.wait()
            return await super().complete(request)

    async def ask(works: bool) -> tuple[int, int, int]:
        nonlocal released
        released = anyio.Event()
        begun.clear()
        model = CircuitBreakerModel(Slow(OK if works else DOWN), "m", warn=lambda _: None)
        refused = 0

        async def one() -> None:
            nonlocal refused
            try:
                await model.complete(REQUEST)
            except RequestSkippedError:
                refused += 1
            except InfrastructureError:
                pass

        async with anyio.create_task_group() as group:
            for _ in range(20):
                group.start_soon(one)
            await anyio.wait_all_tasks_blocked()
            first = begun["helpfulness"]
            released.set()
        return first, begun["helpfulness"], refused

    assert anyio.run(ask, True) == (FAILURES, 20, 0)
    assert anyio.run(ask, False) == (FAILURES, FAILURES, 15)
