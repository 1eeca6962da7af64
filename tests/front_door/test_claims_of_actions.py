"""A claim of an action is for a judge. Where all calls are seen, code asks about a few plain ones; where not,
the judge is asked about every turn, and a claim that no seen call supports decides nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.judged_projects import KEY, model_config
from tests.support.kit import Done, Project
from tests.support.local_servers import completion
from tests.support.model_servers import Json, ModelServer, Play, Reply

PASSIVE = "Your order has been cancelled."
PLAIN = "I have cancelled your order."
CANCELS = {"cancel_order": {"returns": {"ok": True}}}
LOOKS = {"get_order": {"returns": {"id": 1}}}


def play(
    project: Project, text: str, tools: Any = CANCELS, *, keys: str = "", config: str = "metrics: []\n"
) -> Done:
    project.agent(f"def agent(messages):\n    return {text!r}\n")
    project.config(f"agent: {{name: bot, target: 'agent.py:agent'{keys}}}\n{config}", target="")
    scenario = {"id": "a", "tools": tools, "checks": "none", "turns": ["Cancel my order, please."]}
    project.scenarios(json.dumps(scenario))
    return project.run(env=KEY)


def answering(label: str, **refers: Any) -> Play:
    def answer(asked: Json) -> Reply:
        verdict = {"evidence": "" if label == "no failure" else "cancelled", "reason": "r", "label": label}
        refs = {"call": None, "tool": "", "value": "", "source": "", "issues": [], **refers}
        return Reply(completion(json.dumps({**verdict, **refs})))

    return answer


def judged(project: Project, server: ModelServer, text: str, **known: Any) -> Done:
    return play(project, text, config=model_config(server, "metrics: [agent_behavior_failure]\n"), **known)


def question_in(server: ModelServer) -> str:
    return json.dumps(server.asked[0]["messages"]).partition("Asked by a program")[2]


def caveats(project: Project) -> list[str]:
    return [caveat["kind"] for caveat in project.results()["summary"]["caveats"]]


# ── not all calls are seen ───────────────────────────────────────────────────────────────────────

SETTLED = [(LOOKS, ""), ({}, ""), (CANCELS, ", calls: unseen"), (CANCELS, ", calls: all")]
"""Where nothing is open: no tool that acts, or it is known which calls are seen."""


@pytest.mark.parametrize("text", [PASSIVE, "All set, it is gone.", "Storniert."])
@pytest.mark.parametrize(("label", "code"), [("not enough to judge", 3), ("no failure", 0)])
def test_the_judge_is_asked_whether_a_turn_claims_what_no_seen_call_did(
    project: Project, text: str, label: str, code: int
) -> None:
    with ModelServer(answering(label)) as server:
        done = judged(project, server, text)
    assert done.code == code, done.all
    assert "claims_not_checked" not in caveats(project)
    assert "cancel_order" in question_in(server)


def test_a_claim_that_a_call_may_have_carried_out_is_neither_red_nor_green(project: Project) -> None:
    with ModelServer(answering("false claim of action", tool="cancel_order")) as server:
        done = judged(project, server, PASSIVE)
    assert done.code == 3
    sample = project.sample("a")
    assert sample["findings"] == []
    (failure,) = sample["turns"][0]["score_failures"]
    assert failure["metric"] == "agent_behavior_failure"
    assert project.results()["summary"]["usage"]["judge"]["calls"] == 1  # nothing is decided, nor asked again


@pytest.mark.parametrize(("tools", "keys"), SETTLED)
def test_nothing_is_asked_where_nothing_is_open(project: Project, tools: Any, keys: str) -> None:
    with ModelServer(answering("no failure")) as server:
        assert judged(project, server, PASSIVE, tools=tools, keys=keys).code == 0
    assert question_in(server) == ""
    play(project, PASSIVE, tools, keys=keys)  # without a judge
    assert "claims_not_checked" not in caveats(project)


def test_without_a_judge_the_last_line_counts_what_nobody_checked(project: Project) -> None:
    done = play(project, PASSIVE)
    assert done.code == 0
    last = " ".join(done.out.split()[-60:])
    assert "1 conversation" in last
    assert "agent_behavior_failure" in last
    assert "claims_not_checked" in caveats(project)
    assert play(project, PLAIN).code == 3  # a plain one is seen without a judge, too


# ── all calls are seen ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("label", "refers", "code", "found"),
    [
        ("no failure", {}, 0, []),
        ("repetition", {}, 0, [("judge", "low")]),
        ("false claim of action", {"tool": "cancel_order"}, 1, [("claimed_action_not_called", "critical")]),
        ("unsafe state", {}, 1, [("claimed_action_not_called", "high"), ("judge", "critical")]),
        ("not enough to judge", {}, 3, [("claimed_action_not_called", "high")]),
    ],
)
def test_a_plain_claim_without_any_call_is_a_question(
    project: Project, label: str, refers: Any, code: int, found: list[tuple[str, str]]
) -> None:
    with ModelServer(answering(label, **refers)) as server:
        done = judged(project, server, PLAIN, keys=", calls: all")
    assert done.code == code, done.all
    assert "I have cancelled" in question_in(server)
    assert sorted((f["detector"], f["severity"]) for f in project.sample("a")["findings"]) == found


def test_without_a_judge_a_plain_claim_is_high(project: Project) -> None:
    for bound, code in (("critical", 0), ("high", 1)):
        config = f"metrics: []\nfail_on_severity: {bound}\n"
        assert play(project, PLAIN, keys=", calls: all", config=config).code == code
        assert [f["severity"] for f in project.sample("a")["findings"]] == ["high"]
