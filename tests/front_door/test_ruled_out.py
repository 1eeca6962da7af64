"""A goal that was ruled out or withdrawn is asked again: to be refuted, beside a conversation that reached
it, and a third time where another metric contradicts. The judge is a server that answers by what it is asked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, NamedTuple

import pytest

from agenteval.core.event import Event
from agenteval.files.runs import load_run
from agenteval.verdict.report import build_report
from tests.support.kit import Done, Project
from tests.support.local_servers import completion
from tests.support.model_servers import Json, ModelServer, Reply, schema_in

KEY = {"MODEL_KEY": "key-of-the-model-123456"}
RULE = "Sale items cannot be returned."
REFUSAL = "I cannot refund it"
ASKED = "Please refund the red lamp."
ON_SALE = "The red lamp was on sale."
AGENT = """
def agent(messages, ctx):
    asked = messages[-1]["content"]
    if "lamp" not in asked:
        return "Glad to help."
    if ctx.epoch < REACHED:
        ctx.call_tool_sync("refund", {"item": "lamp"})
        return "Your lamp is refunded."
    return ANSWER
"""
REFUND = {"parameters": {"type": "object"}, "writes": True, "returns": {"ok": True, "refund": "R-100"}}

Verdict = dict[str, Any]
RULED_OUT: Verdict = {"outcome": "ruled out", "evidence": REFUSAL, "rule": RULE, "fact": ON_SALE}
MISSED: Verdict = {"outcome": "missed", "evidence": REFUSAL}
REACHED: Verdict = {"outcome": "reached", "evidence": "Your lamp is refunded.", "call": 0}
NOT_CLEAR: Verdict = {"outcome": "not clear", "evidence": ""}


class Asked(NamedTuple):
    """How a goal is asked about: at first, again, for the third time; and beside what."""

    number: int
    is_beside_twin: bool
    prompt: str


def asked_of(prompt: str) -> Asked:
    is_third = any(title in prompt for title in ("# Answers about this goal", "# Two answers that differ"))
    number = 3 if is_third else 2 if "# A claim to be refuted" in prompt else 1
    return Asked(number, "## Another conversation that reached this goal" in prompt, prompt)


class Bench:
    """A project whose judge of goals answers by ``goal``, and whose judge of behaviour by ``label``."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.goal: Callable[[Asked], Verdict] = lambda _asked: MISSED
        self.label = "no failure"
        self.asked: list[Asked] = []
        self.server = ModelServer(self._play)

    def _play(self, request: Json) -> Reply:
        fields = schema_in(request)["properties"]
        answer: Verdict = {"reason": "because"}
        if "issues" in fields:
            answer = {"issues": []}
        elif "outcome" in fields:
            asked = asked_of(request["messages"][1]["content"])
            self.asked.append(asked)
            texts = ("rule", "kind", "source", "fact", "difference", "evidence")
            blank = {"call": None, **dict.fromkeys(texts, "")}
            answer |= {**blank, **self.goal(asked)}
        else:
            is_found = self.label != "no failure" and REFUSAL in request["messages"][1]["content"]
            answer |= {"evidence": REFUSAL if is_found else "", "source": "", "call": None}
            answer |= {"label": self.label if is_found else "no failure"}
        return Reply(completion(json.dumps(answer)))

    def suite(
        self, *, reached: int = 0, epochs: int = 1, answer: str = "", more: str = "", **own: Any
    ) -> None:
        words = answer or f"I am sorry, {REFUSAL}: it was on sale."
        self.project.agent(AGENT.replace("REACHED", str(reached)).replace("ANSWER", repr(words)))
        entry = f"{{model: openai-compatible/m, base_url: '{self.server.base_url}', api_key_env: MODEL_KEY}}"
        self.project.write(
            "agenteval.yaml",
            f"agent: {{name: bot, target: 'agent.py:agent', policy: '{RULE}'}}\n"
            f"models: {{default: {entry}}}\nmetrics: [goal_completion, agent_behavior_failure]\n"
            f"{more}reporters: [{{name: json, path: results.json}}, terminal]\n",
        )
        scenario = {
            "id": "lamp",
            "goal": "A refund for the lamp.",
            "knowledge": [ON_SALE],
            "turns": [ASKED],
            "tools": {"refund": REFUND},
            "epochs": epochs,
            **own,
        }
        self.project.scenarios(json.dumps({"scenarios": [scenario]}))

    def run(self, *flags: str) -> Done:
        self.asked.clear()
        return self.project.run(*flags, env=KEY)

    def scenarios(self, file: str = "results.json") -> Any:
        return json.loads((self.project.root / file).read_text("utf-8"))["scenarios"]

    def score(self, epoch: int = 0) -> Any:
        return self.scenarios()[0]["samples"][epoch]["scores"]["goal_completion"]

    def votes(self, epoch: int = 0) -> list[str]:
        return [vote["verdict"] for vote in self.score(epoch).get("votes", [])]

    def found(self) -> list[tuple[str, str]]:
        samples = self.scenarios()[0]["samples"]
        return [(f["label"], f["severity"]) for sample in samples for f in sample["findings"]]


@pytest.fixture
def bench(project: Project) -> Iterator[Bench]:
    made = Bench(project)
    with made.server:
        yield made


def by_number(*answers: Verdict) -> Callable[[Asked], Verdict]:
    return lambda asked: answers[asked.number - 1]


# ── asked again ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("answers", "outcome", "code"),
    [
        ((RULED_OUT, RULED_OUT), "ruled out", 0),
        ((RULED_OUT, MISSED, RULED_OUT), "ruled out", 0),
        ((RULED_OUT, MISSED, MISSED), "missed", 1),  # the false refusal that one judge believed
        ((RULED_OUT, MISSED, NOT_CLEAR), "not clear", 0),  # no two agree
        ((RULED_OUT, NOT_CLEAR, NOT_CLEAR), "not clear", 0),
        ((MISSED, RULED_OUT, RULED_OUT), "ruled out", 0),  # two say so already
        ((MISSED, RULED_OUT, NOT_CLEAR), "not clear", 0),
    ],
)
def test_a_goal_that_was_ruled_out_is_asked_again(
    bench: Bench, answers: tuple[Verdict, ...], outcome: str, code: int
) -> None:
    bench.suite()
    bench.goal = by_number(*answers)
    done = bench.run()
    assert done.code == code, done.all
    assert (bench.score()["label"], len(bench.votes())) == (outcome, len(answers))
    assert bench.found() == ([("goal not completed", "critical")] if outcome == "missed" else [])
    told = bench.project.results()["summary"]["second_opinions"]
    assert (told["doubted"], told["upheld"]) == (1, int(answers[0]["outcome"] == outcome))
    assert told["usage"]["calls"] == len(answers) - 1
    claims = [asked for asked in bench.asked if asked.number > 1]
    for asked in claims:
        assert f'"rule": "{RULE}"' in asked.prompt or answers[0] is MISSED
        assert not asked.is_beside_twin
    again = bench.project.call("report", "latest", "--report", "json=again.json", "-v", env=KEY)
    assert again.code == code
    assert bench.scenarios("again.json") == bench.scenarios()


def test_what_no_judge_answers_again_is_not_known(bench: Bench) -> None:
    bench.suite()
    bench.goal = by_number(RULED_OUT, {"outcome": "whatever"})
    done = bench.run()
    assert done.code == 3, done.all
    assert "the second opinion on a goal that was ruled out failed" in done.out


def test_without_corroboration_it_is_asked_once(bench: Bench) -> None:
    bench.suite(more="judge: {corroborate: false}\n")
    bench.goal = by_number(RULED_OUT)
    assert bench.run().code == 0
    assert [asked.number for asked in bench.asked] == [1]


# ── what it refers to ────────────────────────────────────────────────────────────────────────────

DOWN = {**REFUND, "returns": None, "error": "refund service unavailable"}
TRIES = "def agent(messages, ctx):\n    said = messages[-1]['content']\n"
REFUSES_FIRST = (
    f"{TRIES}    if 'again' in said:\n        ctx.call_tool_sync('refund', {{}})\n        return 'No.'\n"
)
REFUSES_FIRST += "    return 'I cannot refund it, the system is down.'\n"
TRIES_FIRST = (
    f"{TRIES}    ctx.call_tool_sync('refund', {{}})\n    return 'I cannot refund it, the system is down.'\n"
)
BY_RESULT = {
    "outcome": "ruled out",
    "evidence": REFUSAL,
    "call": 0,
    "source": "refund service unavailable",
    "fact": "A refund for the lamp.",
}


@pytest.mark.parametrize(
    ("answer", "flaw"),
    [
        ({**RULED_OUT, "fact": ""}, '"fact" is empty'),  # any sentence of the policy
        ({**RULED_OUT, "fact": RULE}, '"fact" must quote words from the user'),
        ({**RULED_OUT, "fact": "The lamp was on sale at forty percent."}, '"fact" must quote'),
        ({**RULED_OUT, "fact": REFUSAL}, '"fact" must quote'),
        ({**RULED_OUT, "rule": "No refunds on Sundays."}, '"rule" must quote the policy'),
        ({**RULED_OUT, "fact": "A refund for the lamp."}, ""),
        ({**RULED_OUT, "fact": ASKED}, ""),
    ],
)
def test_it_names_the_rule_and_the_fact_that_falls_under_it(bench: Bench, answer: Verdict, flaw: str) -> None:
    bench.suite()
    bench.goal = lambda _asked: answer
    done = bench.run()
    assert done.code == (3 if flaw else 0), done.all
    (sample,) = bench.scenarios()[0]["samples"]
    if flaw:
        assert flaw in sample["score_failures"][0]["message"]
    else:
        assert sample["scores"]["goal_completion"]["references"]["fact"] == answer["fact"]


@pytest.mark.parametrize(
    ("agent", "answer", "is_right"),
    [
        (TRIES_FIRST, BY_RESULT, True),
        (REFUSES_FIRST, BY_RESULT, False),  # the call came after the refusal
        (TRIES_FIRST, {**BY_RESULT, "source": ""}, False),
        (TRIES_FIRST, {**BY_RESULT, "fact": BY_RESULT["source"]}, False),
    ],
)
def test_the_call_whose_result_ruled_it_out_was_made_before_the_refusal(
    bench: Bench, agent: str, answer: Verdict, is_right: bool
) -> None:
    bench.suite(turns=[ASKED, "Try again."], tools={"refund": {"writes": True, "error": DOWN["error"]}})
    bench.project.agent(agent)
    bench.goal = lambda _asked: answer
    done = bench.run()
    assert done.code == (0 if is_right else 3), done.all


# ── beside a conversation that reached it ────────────────────────────────────────────────────────


def is_reached(asked: Asked) -> bool:
    return "Your lamp is refunded." in asked.prompt.partition("# Criterion")[0]


def twice(bench: Bench, again: Callable[[Asked], Verdict]) -> None:
    """Reached in the first epoch, and refused in the second."""

    def goal(asked: Asked) -> Verdict:
        if is_reached(asked):
            return REACHED
        return again(asked) if asked.number > 1 else RULED_OUT

    bench.goal = goal


def test_what_another_epoch_reached_was_missed_unless_the_judge_names_what_was_different(
    bench: Bench,
) -> None:
    bench.suite(reached=1, epochs=2, more="fail_on_severity: high\n")
    twice(bench, lambda _asked: MISSED)
    done = bench.run()
    assert done.code == 1, done.all
    assert bench.score(1)["label"] == "missed"
    assert "epoch 1 reached it" in bench.score(1)["reason"]
    assert bench.found() == [("goal not completed", "high")]
    again = [asked for asked in bench.asked if asked.number > 1]
    again = [asked for asked in again if asked.is_beside_twin]
    assert [asked.number for asked in again] == [2, 3]
    for asked in again:
        assert "Your lamp is refunded." in asked.prompt.partition("## Another conversation")[2]


def test_a_true_difference_leaves_it_ruled_out(bench: Bench) -> None:
    """The service is down in the second epoch alone."""
    agent = (
        "def agent(messages, ctx):\n    ctx.call_tool_sync('status', {})\n    if ctx.epoch < 1:\n"
        "        ctx.call_tool_sync('refund', {'item': 'lamp'})\n        return 'Your lamp is refunded.'\n"
        "    return 'I cannot refund it, the service is down.'\n"
    )
    down = "from agenteval import ToolError\ndef status(args, ctx):\n    if ctx.sample.epoch:\n"
    down += "        raise ToolError('refund service unavailable')\n    return 'up'\n"
    bench.project.write("scenarios/mocks.py", down)
    status = {"reads": True, "python": "mocks.py:status"}
    difference = "refund service unavailable"
    for quoted, code in ((difference, 0), (ASKED, 1), ("", 1), ("Your lamp is refunded.", 1)):
        bench.suite(epochs=2, more="fail_on_severity: high\n", tools={"refund": REFUND, "status": status})
        bench.project.agent(agent)
        answer = {**BY_RESULT, "source": difference}
        twice(bench, lambda _asked, quoted=quoted, answer=answer: {**answer, "difference": quoted})  # type: ignore[misc]
        first = bench.goal
        bench.goal = lambda asked, first=first, answer=answer: (  # type: ignore[misc]
            {**REACHED, "call": 1} if is_reached(asked) else answer if asked.number == 1 else first(asked)
        )
        done = bench.run()
        assert done.code == code, (quoted, done.all)
        if not code:
            assert bench.score(1)["label"] == "ruled out"
            assert f"although epoch 1 reached it: “{difference}”" in bench.score(1)["reason"]
            assert "1 goal ruled out" in done.out.splitlines()[-1]
        else:
            # Asked to mend it, twice, the judge could not: what another conversation reached was missed.
            assert bench.score(1)["label"] == "missed"
            assert '(answered ruled out, but "difference"' in bench.score(1)["reason"]
            assert bench.votes(1) == ["ruled out", "missed", "missed"]
            assert bench.found() == [("goal not completed", "high")]
            bench.asked.clear()
            again = ("report", "latest", "--rejudge", "--report", "json=results.json")
            assert (bench.project.call(*again, env=KEY).code, bench.asked) == (1, [])


FAILS_LATER = """
from agenteval import ToolError


def refund(args, ctx):
    if ctx.sample.epoch:
        raise ToolError("WHY")
    return {"ok": True, "refund": "R-100"}
"""
TRIES_LATER = """
def agent(messages, ctx):
    if ctx.epoch == 0:
        ctx.call_tool_sync("refund", {"item": "lamp"})
        return "Your lamp is refunded."
    BEFORE
    ctx.call_tool_sync("refund", {"item": "lamp"})
    return "I cannot refund it, as you see."
"""
CANCELS = "ctx.call_tool_sync('cancel_order', {})"
LOOKS_UP = "ctx.call_tool_sync('get_order', {})"


@pytest.mark.parametrize(
    ("before", "error", "difference", "outcome"),
    [
        (CANCELS, "it is cancelled", '"cancelled": true', "missed"),  # a change that the agent made
        (CANCELS, "it is cancelled", "it is cancelled", "missed"),  # and what came of it
        (CANCELS, "it is cancelled", '"refund": "R-100"', "missed"),
        (LOOKS_UP, "service is down", '"item": "a red lamp"', "missed"),  # only one of them looked
        (LOOKS_UP, "service is down", "service is down", "ruled out"),  # to the same call of both
        ("pass", "service is down", "service is down", "ruled out"),
    ],
)
def test_what_an_agent_brought_about_is_no_difference(
    bench: Bench, before: str, error: str, difference: str, outcome: str
) -> None:
    tools = {
        "refund": {"writes": True, "python": "mocks.py:refund"},
        "cancel_order": {"writes": True, "returns": {"cancelled": True}},
        "get_order": {"reads": True, "returns": {"item": "a red lamp"}},
    }
    bench.suite(epochs=2, more="fail_on_severity: high\n", tools=tools)
    bench.project.write("scenarios/mocks.py", FAILS_LATER.replace("WHY", error))
    bench.project.agent(TRIES_LATER.replace("BEFORE", before))
    call = 0 if before == "pass" else 1
    claim = {**RULED_OUT, "rule": "", "call": call, "source": error, "difference": difference}
    bench.goal = lambda asked: REACHED if is_reached(asked) else claim
    done = bench.run()
    assert done.code == (1 if outcome == "missed" else 0), done.all
    assert bench.score(1)["label"] == outcome
    assert bench.found() == ([("goal not completed", "high")] if outcome == "missed" else [])
    if outcome == "missed":
        assert "is what an agent brought about" in bench.score(1)["reason"]


def test_the_act_that_only_the_other_agent_tried_is_no_difference(bench: Bench) -> None:
    bench.suite(reached=1, epochs=2, more="fail_on_severity: high\n")
    twice(bench, lambda _asked: {**RULED_OUT, "difference": '"refund": "R-100"'})
    done = bench.run()
    assert done.code == 1, done.all
    assert bench.score(1)["label"] == "missed"


def test_another_agent_that_reached_it_is_shown_too_with_its_policy(bench: Bench) -> None:
    """What only one policy forbids is a difference."""
    bench.suite(reached=0)
    text = (bench.project.root / "agenteval.yaml").read_text().splitlines()
    agents = (
        f"compare: [{{name: bot, target: 'agent.py:agent', policy: '{RULE}'}},"
        " {name: able, target: 'able.py:agent', policy: 'Everything can be returned.'}]"
    )
    bench.project.write("agenteval.yaml", "\n".join([agents, *text[1:]]) + "\n")
    agent = (bench.project.root / "agent.py").read_text()
    bench.project.write("able.py", agent.replace("ctx.epoch < 0", "ctx.epoch < 1"))
    for again, code in ((MISSED, 1), ({**RULED_OUT, "difference": RULE}, 0)):
        twice(bench, lambda _asked, again=again: again)  # type: ignore[misc]
        done = bench.run()
        assert done.code == code, done.all
        shown = next(asked.prompt for asked in bench.asked if asked.is_beside_twin)
        assert "The goal was reached in epoch 1 of able." in shown
        assert "Everything can be returned." in shown.partition("## Another conversation")[2]


def test_the_baseline_that_reached_it_is_shown_where_no_conversation_of_the_run_did(bench: Bench) -> None:
    bench.suite(reached=1)
    twice(bench, lambda _asked: MISSED)
    assert bench.run().code == 0
    bench.suite(reached=0)
    done = bench.run("--baseline", "latest")
    assert done.code == 1, done.all
    assert bench.score()["label"] == "missed"
    assert any("reached in the baseline" in asked.prompt for asked in bench.asked)


def test_epochs_of_a_log_are_held_against_each_other_too(bench: Bench) -> None:
    bench.suite()
    tool = {"type": "function", "function": {"name": "refund", "parameters": {"type": "object"}}}
    refunded = [
        {"role": "user", "content": ASKED},
        {
            "role": "assistant",
            "tool_calls": [{"id": "1", "function": {"name": "refund", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "1", "content": '{"ok": true}'},
        {"role": "assistant", "content": "Your lamp is refunded."},
    ]
    refused = [{"role": "user", "content": ASKED}, {"role": "assistant", "content": f"Sorry, {REFUSAL}."}]
    policy = {"role": "system", "content": RULE}
    lines = [
        {"id": f"c{n}", "task": "lamp", "messages": [policy, *talk], "tools": [tool]}
        for n, talk in enumerate((refused, refunded))
    ]
    bench.project.write("log.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    bench.project.scenarios(
        "id: lamp\ngoal: A refund for the lamp.\nturns: [Hi]\nfacts: [The red lamp was on sale.]\n"
    )
    twice(bench, lambda _asked: MISSED)
    given = (
        "log.jsonl",
        "--scenario-from",
        "task",
        "--scenarios",
        "scenarios",
        "--metric",
        "goal_completion",
    )
    done = bench.project.call("score", *given, "--report", "json=results.json", env=KEY)
    labels = [s["scores"]["goal_completion"]["label"] for s in bench.scenarios()[0]["samples"]]
    assert labels == ["missed", "reached"], done.all
    issues = bench.project.results()["summary"]["issues"]
    assert [issue["labels"] for issue in issues] == [["goal not completed"]]


# ── reached without a change, and refused after one ──────────────────────────────────────────────

BY_SOURCE: Verdict = {"outcome": "reached", "evidence": REFUSAL, "source": ON_SALE}


@pytest.mark.parametrize(
    ("tools", "again", "outcome", "numbers", "code"),
    [
        ({"refund": REFUND}, MISSED, "missed", [1, 2, 3], 1),  # it only talked of it
        ({"refund": REFUND}, BY_SOURCE, "reached", [1, 2], 0),  # the goal was to know something
        ({"refund": {**REFUND, "writes": False, "reads": True}}, MISSED, "reached", [1], 0),
    ],
)
def test_a_goal_reached_without_a_change_where_one_could_be_made_is_asked_again(
    bench: Bench, tools: Any, again: Verdict, outcome: str, numbers: list[int], code: int
) -> None:
    bench.suite(tools=tools)
    bench.goal = by_number(BY_SOURCE, again, again)
    done = bench.run()
    assert done.code == code, done.all
    assert bench.score()["label"] == outcome
    assert [asked.number for asked in bench.asked] == numbers


@pytest.mark.parametrize(
    ("reached", "again", "outcome", "code"), [(1, REACHED, "reached", 1), (0, None, "", 0)]
)
def test_a_refusal_that_is_right_is_asked_again_too(
    bench: Bench, reached: int, again: Verdict | None, outcome: str, code: int
) -> None:
    """An agent that refunds, and says that it does not."""
    bench.suite(reached=reached, goal_outcome="refused")
    if reached:
        agent = (bench.project.root / "agent.py").read_text()
        bench.project.agent(agent.replace("Your lamp is refunded.", f"{REFUSAL}, but so be it."))
    done_it = {**REACHED, "evidence": "but so be it"}
    bench.goal = by_number(RULED_OUT, *([done_it] * 2 if again else [RULED_OUT]))
    done = bench.run()
    assert done.code == code, done.all
    assert bench.score()["label"] == (outcome or "ruled out")
    assert [asked.number for asked in bench.asked] == ([1, 2, 3] if again else [1, 2])
    assert bench.found() == [("goal not completed", "critical")] * code


# ── contradicted by another metric ───────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("third", "outcome"), [(RULED_OUT, "ruled out"), (MISSED, "missed"), (REACHED, "")])
def test_where_another_metric_contradicts_a_third_call_decides(
    bench: Bench, third: Verdict, outcome: str
) -> None:
    bench.suite()
    bench.label = "disobey user request"
    bench.goal = by_number(RULED_OUT, RULED_OUT, third)
    done = bench.run()
    assert done.code == (1 if outcome == "missed" else 0 if outcome else 3), done.all
    assert [asked.number for asked in bench.asked][:3] == [1, 2, 3]
    assert "disobeyed the user's request" in bench.asked[2].prompt
    if outcome:
        assert bench.score()["label"] == outcome
        assert bench.votes() == ["ruled out", "ruled out", third["outcome"]]


# ── a run that goes on, and is judged anew ───────────────────────────────────────────────────────


def test_a_run_that_was_killed_before_it_was_asked_asks_when_it_goes_on(bench: Bench) -> None:
    """Of the journal there is what had been written when both conversations were over."""
    bench.suite(reached=1, epochs=2, more="fail_on_severity: high\n")
    twice(bench, lambda _asked: MISSED)
    assert bench.run().code == 1
    whole = bench.scenarios()
    (journal,) = (bench.project.root / ".agenteval/runs").glob("*/events.jsonl")
    lines = journal.read_text("utf-8").splitlines(keepends=True)
    last = max(n for n, line in enumerate(lines) if '"type":"sample_finished"' in line)
    journal.write_text("".join(lines[: last + 1]), "utf-8")
    assert bench.project.call("report", "latest", "--report", "json=cut.json", env=KEY).code == 3
    assert bench.scenarios("cut.json")[0]["samples"][1]["scores"]["goal_completion"]["label"] == "ruled out"
    done = bench.run("--resume", "latest")
    assert done.code == 1, done.all
    assert [asked.number for asked in bench.asked] == [2, 3]
    assert bench.scenarios() == whole
    assert bench.run("--resume", "latest").code == 1
    assert not bench.asked, "the run is complete"


def test_a_run_that_is_judged_anew_asks_nothing_that_its_journal_knows(bench: Bench) -> None:
    bench.suite(reached=1, epochs=2, more="fail_on_severity: high\n")
    twice(bench, lambda _asked: MISSED)
    assert bench.run().code == 1
    bench.asked.clear()
    done = bench.project.call("report", "latest", "--rejudge", "--report", "json=results.json", env=KEY)
    assert (done.code, bench.asked) == (1, []), done.all
    assert bench.score(1)["label"] == "missed"


def test_the_report_does_not_depend_on_the_order_of_events_between_conversations(bench: Bench) -> None:
    bench.suite(reached=2, epochs=4, more="fail_on_severity: high\n")
    twice(bench, lambda _asked: MISSED)
    assert bench.run().code == 1
    (folder,) = (bench.project.root / ".agenteval/runs").iterdir()
    begin, *rest = load_run(folder)
    of_samples: dict[Any, list[Event]] = {}
    for event in rest:
        of_samples.setdefault(getattr(event, "key", None), []).append(event)
    whole = build_report([begin, *rest]).scenarios
    assert [sample.scores[0].label for sample in whole[0].samples] == ["reached"] * 2 + ["missed"] * 2
    draw = Random(7)
    for _ in range(20):
        waiting = {key: list(events) for key, events in of_samples.items()}
        shuffled: list[Event] = []
        while waiting:
            key = draw.choice(list(waiting))
            shuffled.append(waiting[key].pop(0))
            if not waiting[key]:
                del waiting[key]
        assert build_report([begin, *shuffled]).scenarios == whole


# ── three agents, and a judge who believes each of them at first ────────────────────────────────

LOOKS = "def agent(messages, ctx):\n    ctx.call_tool_sync('get_order', {})\n"
CLOSES = "    ctx.call_tool_sync('cancel_order', {})\n    ctx.call_tool_sync('refund', {})\n"
SAYS_SO = f"    return 'I am sorry, {REFUSAL}: sale items cannot be returned.'\n"


@pytest.mark.parametrize(
    ("agent", "is_on_sale", "code"),
    [
        (LOOKS + SAYS_SO, True, 0),  # as the policy has it
        (LOOKS + SAYS_SO, False, 1),  # a false refusal, with a sentence of the policy
        (LOOKS + CLOSES + SAYS_SO, False, 1),  # it has closed the order itself
    ],
)
def test_an_agent_that_refuses_falsely_is_red_and_one_that_must_refuse_is_not(
    bench: Bench, agent: str, is_on_sale: bool, code: int
) -> None:
    tools = {
        "get_order": {"reads": True, "returns": {"item": "lamp", "on_sale": is_on_sale}},
        "cancel_order": {"writes": True, "returns": {"ok": True}},
        "refund": {"writes": True, "error": "the order is closed"},
    }
    bench.suite(tools=tools, knowledge=[])
    bench.project.agent(agent)

    def goal(asked: Asked) -> Verdict:
        record = asked.prompt.partition("# Criterion")[0]
        is_true = '"on_sale": true' in record and "cancel_order {" not in record
        believed = {**RULED_OUT, "fact": f'"on_sale": {json.dumps(is_on_sale)}'}
        return believed if asked.number == 1 or is_true else MISSED

    bench.goal = goal
    done = bench.run()
    assert done.code == code, done.all
    assert bench.score()["label"] == ("missed" if code else "ruled out")
    assert bench.found() == [("goal not completed", "critical")] * code


# ── withdrawn ────────────────────────────────────────────────────────────────────────────────────

CHANGED_MIND = "On second thought I will keep the lamp."
WITHDRAWN: Verdict = {"outcome": "withdrawn", "evidence": CHANGED_MIND, "source": CHANGED_MIND}
ENDED: Verdict = {**MISSED, "evidence": "As you like."}
PATIENT = "def agent(messages):\n    return 'One moment.' if len(messages) < 2 else 'As you like.'\n"
STUBBORN = "def agent(messages):\n    return 'I cannot refund it.' if len(messages) < 2 else 'As you like.'\n"
"""It had refused before the user gave up."""


@pytest.mark.parametrize(
    ("agent", "answers", "outcome", "code"),
    [
        (PATIENT, (WITHDRAWN, WITHDRAWN), "withdrawn", 0),
        (PATIENT, (WITHDRAWN, ENDED, WITHDRAWN), "withdrawn", 0),
        (PATIENT, (ENDED, WITHDRAWN, WITHDRAWN), "withdrawn", 0),
        (STUBBORN, (WITHDRAWN, MISSED, MISSED), "missed", 1),
        (STUBBORN, (WITHDRAWN, RULED_OUT, NOT_CLEAR), "not clear", 0),
        (STUBBORN, (WITHDRAWN, RULED_OUT, RULED_OUT, RULED_OUT), "ruled out", 0),
    ],
)
def test_a_goal_that_was_withdrawn_is_asked_again(
    bench: Bench, agent: str, answers: tuple[Verdict, ...], outcome: str, code: int
) -> None:
    bench.suite(turns=[ASKED, CHANGED_MIND])
    bench.project.agent(agent)
    bench.goal = by_number(*answers)
    done = bench.run()
    assert done.code == code, done.all
    assert bench.score()["label"] == outcome
    if outcome == "withdrawn":
        assert bench.score()["value"] is None
        assert "1 goal withdrawn by the user" in done.out.splitlines()[-1]
    if answers[0] is WITHDRAWN:
        second = next(asked for asked in bench.asked if asked.number == 2)
        assert "found that the user withdrew the goal" in second.prompt
    again = bench.project.call("report", "latest", "--report", "json=again.json", env=KEY)
    assert again.code == code
    assert bench.scenarios("again.json") == bench.scenarios()


def test_where_the_agent_disobeyed_a_third_call_decides_whether_it_was_withdrawn(bench: Bench) -> None:
    bench.suite(turns=[ASKED, CHANGED_MIND])
    bench.project.agent(STUBBORN)
    bench.label = "disobey user request"
    bench.goal = by_number(WITHDRAWN, WITHDRAWN, {**MISSED, "evidence": REFUSAL})
    assert bench.run().code == 1
    assert (bench.score()["label"], bench.votes()) == ("missed", ["withdrawn", "withdrawn", "missed"])


@pytest.mark.parametrize("source", ["", "As you like.", "I have changed my mind about it.", RULE])
def test_only_the_users_words_withdraw_a_goal(bench: Bench, source: str) -> None:
    bench.suite(turns=[ASKED, CHANGED_MIND])
    bench.project.agent(PATIENT)
    bench.goal = lambda _asked: {**WITHDRAWN, "source": source}
    done = bench.run()
    assert done.code == 3, done.all
    (sample,) = bench.scenarios()[0]["samples"]
    assert '"source"' in sample["score_failures"][0]["message"]


def test_what_one_conversation_reached_another_user_may_withdraw(bench: Bench) -> None:
    """Nobody is asked to name what was different: that is what the user said."""
    bench.suite(reached=1, epochs=2, turns=[ASKED, CHANGED_MIND])
    bench.goal = lambda asked: REACHED if is_reached(asked) else WITHDRAWN
    done = bench.run()
    assert done.code == 0, done.all
    assert (bench.score(1)["label"], bench.votes(1)) == ("withdrawn", ["withdrawn", "withdrawn"])
    assert not any(asked.is_beside_twin for asked in bench.asked)


# ── the kind of a rule that was broken ───────────────────────────────────────────────────────────


@pytest.mark.parametrize(("kind", "code"), [("permission", 1), ("disclosure", 3), ("style", 3), ("", 3)])
def test_only_a_rule_of_kind_permission_makes_a_goal_that_was_reached_a_miss(
    bench: Bench, kind: str, code: int
) -> None:
    """Any other answer is asked to be mended, and is no score."""
    bench.suite(reached=1)
    broken = {"outcome": "policy broken", "rule": RULE, "kind": kind, "call": 0, "evidence": ""}
    bench.goal = lambda _asked: {**broken, "evidence": "Your lamp is refunded."}
    done = bench.run()
    assert done.code == code, done.all
    if code == 3:
        assert "a broken rule of another kind leaves the goal as it is" in done.out


# ── a hand-over that the goal names ──────────────────────────────────────────────────────────────

HAND_OVER = "until the agent puts the user through to a person"
PUT_THROUGH = "I am putting you through to a colleague."
BY_WORDS = {"outcome": "reached", "evidence": PUT_THROUGH, "source": HAND_OVER}
SAYS = f"def agent(messages):\n    return {PUT_THROUGH!r}\n"
PASSES_ON = "def agent(messages, ctx):\n    ctx.call_tool_sync('transfer', {})\n    return 'One moment.'\n"


@pytest.mark.parametrize(
    ("agent", "goal", "answer", "code"),
    [
        (SAYS, f"Ask for a refund {HAND_OVER}.", BY_WORDS, 0),
        (SAYS, "A refund for the lamp.", BY_WORDS, 3),  # the goal names none
        (SAYS, f"Ask for a refund {HAND_OVER}.", {**BY_WORDS, "evidence": "The agent hung up."}, 3),
        (SAYS, f"Ask for a refund {HAND_OVER}.", {**BY_WORDS, "source": ""}, 3),
        (
            PASSES_ON,
            f"Ask for a refund {HAND_OVER}.",
            {"outcome": "reached", "call": 0, "evidence": "One moment."},
            0,
        ),
    ],
)
def test_a_hand_over_that_the_goal_names_is_reached_by_a_call_or_by_words(
    bench: Bench, agent: str, goal: str, answer: Verdict, code: int
) -> None:
    transfer = {"returns": "Transfer successful"}
    bench.suite(goal=goal, tools={"refund": REFUND, "transfer": transfer})
    bench.project.agent(agent)
    bench.goal = lambda _asked: answer
    done = bench.run()
    assert done.code == code, done.all
    if not code:
        assert (bench.score()["label"], bench.score()["value"]) == ("reached", 1.0)
        # Nobody can look up what words did: that is asked again.
        assert len(bench.votes()) == (2 if answer is BY_WORDS else 0)
