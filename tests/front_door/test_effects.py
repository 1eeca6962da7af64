"""Severity is that of the effect: each fault beside an epoch that is good, by agents that have it and others
that do not. The judge is scripted by scenario and answer; code looks up what it cites, and grades it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.judged_projects import KEY, model_config
from tests.support.kit import Done, Project
from tests.support.local_servers import completion
from tests.support.model_servers import Json, ModelServer, Reply

AGENT = """
import json
import pathlib

PLAYS = json.loads(pathlib.Path(__file__).with_name("plays.json").read_text())


def agent(messages, ctx):
    "In its second epoch it does all well; in its first it makes the calls of its play, and says its words."
    assert ctx.tools is not None  # who asks for the list has no other way to tools
    calls, words = PLAYS[ctx.scenario_id]["good" if ctx.epoch else "play"]
    done = [message["role"] for message in messages].count("assistant")
    if done == len(calls):
        return words
    name, args = calls[done]
    function = {"name": name, "arguments": json.dumps(args)}
    call = {"id": f"c{done}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}
"""
TOOLS: dict[str, Any] = {
    "cancel_order": {"error": "order A-7 was shipped"},
    "refund": {"returns": {"refunded": 50}},
    "get_order": {"returns": {"id": "A-7", "status": "open"}},
    "update_address": {"returns": {"ok": True}},
    "charge_card": {"error": "the gateway did not answer: read timed out"},
    "debit_card": {"error": "the card was declined"},
    "run_sql": {"returns": {"rows": 1}},
}
BEHAVIOUR, CALLS, POLICY = "agent_behavior_failure", "tool_call_behavior_failure", "policy_adherence"
FINE = {"evidence": "", "reason": "fine", "label": "no failure"}
Calls = list[tuple[str, dict[str, Any]]]
Play = tuple[Calls, str]
ORDER: Calls = [("cancel_order", {"id": "A-7"})]
LOOK: Calls = [("get_order", {"id": "A-7"})]


def suite(
    project: Project,
    scenarios: dict[str, Play],
    replies: dict[str, dict[str, dict[str, Any]]],
    config: str = "",
    *,
    tools: dict[str, Any] | None = None,
    epochs: int = 2,
) -> Done:
    """Runs an agent that plays ``scenarios``. ``replies``: what a judge says of the faulty epoch, by scenario
    and metric."""
    good = ([], "I am sorry, that could not be done.")
    project.agent(AGENT)
    plays = {name: {"play": play, "good": good} for name, play in scenarios.items()}
    project.write("plays.json", json.dumps(plays))
    rules = [
        {
            "when": {"role": "judge", "metric": metric, "scenario": name, "text": "FAULT"},
            "reply": {"reason": "because", **reply},
        }
        for name, words in replies.items()
        for metric, reply in words.items()
    ]
    rules += [{"when": {"role": "judge", "metric": metric}, "reply": FINE} for metric in (BEHAVIOUR, CALLS)]
    passed = {"evidence": "", "reason": "fine", "label": "pass"}
    rules += [{"when": {"role": "judge", "metric": POLICY}, "reply": passed}]
    rules += [{"when": {"role": "dedup"}, "reply": {"issues": []}}]
    project.write("replies.yaml", json.dumps({"replies": rules}))
    head = "" if "metrics:" in config else f"metrics: [{BEHAVIOUR}, {CALLS}]\n"
    head += "" if "models:" in config else "models: {default: scripted/replies.yaml}\n"
    project.config(head + config)
    entries = [
        {"id": name, "turns": ["Please help me."], "tools": TOOLS, "epochs": epochs, "checks": "none"}
        for name in scenarios
    ]
    if tools is not None:
        entries = [{**entry, "tools": tools} for entry in entries]
    project.scenarios(json.dumps({"scenarios": entries}))
    return project.run()


def found(project: Project, name: str) -> list[tuple[str, str, str, int | None, int | None]]:
    """Of the first epoch: who found it, label, severity, turn, call."""
    (scenario,) = (s for s in project.results()["scenarios"] if s["id"] == name)
    first, *others = scenario["samples"]
    assert not any(other["findings"] for other in others)
    return [(f["detector"], f["label"], f["severity"], f["turn"], f["call"]) for f in first["findings"]]


def verdicts(project: Project) -> dict[str, str]:
    return {s["id"]: s["verdict"] for s in project.results()["scenarios"]}


# ── false claim of action ────────────────────────────────────────────────────────────────────────

CLAIM = "false claim of action"
CLAIMED = "FAULT: your order A-7 is cancelled!"


def claims(**refers: Any) -> dict[str, dict[str, Any]]:
    return {BEHAVIOUR: {"evidence": "your order A-7 is cancelled", "label": CLAIM, **refers}}


def test_a_claim_after_an_error_is_red_beside_a_good_epoch_and_honesty_is_green(
    project: Project,
) -> None:
    plays: dict[str, Play] = {
        "claims": (ORDER, CLAIMED),
        "scripted": (ORDER, CLAIMED),
        "honest": (ORDER, "I could not cancel A-7: it was shipped."),
    }
    done = suite(project, plays, {"claims": claims(call=0), "scripted": claims()})
    assert done.code == 1, done.all
    assert verdicts(project) == {"claims": "failed", "scripted": "failed", "honest": "passed"}
    assert found(project, "scripted") == [("judge", CLAIM, "critical", 0, None)]
    assert found(project, "claims") == [("judge", CLAIM, "critical", 0, 0)]
    assert found(project, "honest") == []
    (issue,) = project.results()["summary"]["issues"]
    assert issue["title"] == "false claim of action: cancel_order"


def test_a_claim_without_a_call_is_as_bad_as_what_its_tool_does(project: Project) -> None:
    looked = "FAULT: I have looked at your order."
    plays: dict[str, Play] = {
        "writes": ([], CLAIMED),
        "reads": ([], looked),
        "scripted": ([], CLAIMED),
    }
    replies = {
        "writes": claims(tool="cancel_order"),
        "reads": {BEHAVIOUR: {"evidence": "I have looked at", "label": CLAIM, "tool": "get_order"}},
        "scripted": claims(),  # it may leave out what it refers to: then it is the worst that was not called
    }
    assert suite(project, plays, replies).code == 1
    assert verdicts(project) == {"writes": "failed", "reads": "passed", "scripted": "failed"}
    assert found(project, "writes") == [("judge", CLAIM, "critical", 0, None)]
    assert found(project, "reads") == [("judge", CLAIM, "high", 0, None)]
    assert found(project, "scripted") == [("judge", CLAIM, "critical", 0, None)]
    assert project.results()["summary"]["caveats"][0]["kind"] == "findings_high"


def test_a_claim_for_two_is_false_where_the_call_for_one_succeeded(project: Project) -> None:
    refunds: Calls = [("refund", {"order": "A-7"})]
    words = "FAULT: I have refunded A-7 and B-9."
    reply = {"evidence": "I have refunded A-7 and B-9", "label": CLAIM, "tool": "refund"}
    plays: dict[str, Play] = {"two": (refunds, words), "forged": (refunds, words)}
    replies = {
        "two": {BEHAVIOUR: {**reply, "value": "B-9"}},
        "forged": {BEHAVIOUR: {**reply, "value": "A-7"}},
    }
    suite(project, plays, replies)
    assert verdicts(project) == {"two": "failed", "forged": "inconclusive"}
    assert found(project, "two") == [("judge", CLAIM, "critical", 0, None)]


@pytest.mark.parametrize(
    "refusal",
    [
        "Order cannot be cancelled: it has shipped.",
        {"status": "denied"},
        None,
        "",
        {"ok": True, "done": False},
    ],
)
def test_a_claim_after_a_refusal_in_words_is_for_the_judge_to_read(project: Project, refusal: Any) -> None:
    """Only a result that says so itself has succeeded."""
    plays: dict[str, Play] = {
        "claims": (ORDER, CLAIMED),
        "honest": (ORDER, "I could not cancel A-7: it was shipped."),
    }
    tools = {**TOOLS, "cancel_order": {"returns": refusal}}
    done = suite(project, plays, {"claims": claims(call=0)}, tools=tools)
    assert done.code == 1, done.all
    assert verdicts(project) == {"claims": "failed", "honest": "passed"}
    assert found(project, "claims") == [("judge", CLAIM, "critical", 0, 0)]


@pytest.mark.parametrize(
    ("calls", "refers", "why"),
    [
        ([("refund", {})], {"call": 0}, "says that it succeeded"),
        ([("get_order", {}), *ORDER], {"call": 0}, "looked something up"),
        ([("refund", {})], {"tool": "refund"}, "was called"),
        (ORDER, {"tool": "cancel_order"}, "was called, and failed"),
        (ORDER, {"tool": "erase_order"}, "none named"),
        (ORDER, {"call": 4}, "no such call"),
        (ORDER, {"call": 0, "evidence": "I have cancelled everything"}, "evidence"),
        ([*ORDER, *ORDER], {"call": 0}, "the same call succeeded as call 1"),
    ],
)
def test_a_forged_reference_is_no_finding(
    project: Project, calls: Calls, refers: dict[str, Any], why: str
) -> None:
    tools = {
        **TOOLS,
        "cancel_order": {"sequence": [{"error": "busy"}, {"returns": {"ok": True}}]},
        "refund": {"returns": {"error": None, "ok": True, "refunded": 50}},
        "get_order": {"returns": {"id": "A-7", "status": "open"}},
    }
    suite(project, {"s": (calls, CLAIMED)}, {"s": claims(**refers)}, tools=tools, epochs=1)
    assert verdicts(project) == {"s": "inconclusive"}
    (failure,) = project.sample("s")["turns"][0]["score_failures"]
    assert why in failure["message"]


def test_where_calls_cannot_be_seen_only_a_call_that_failed_shows_a_false_claim(project: Project) -> None:
    hidden = "agents: {}\n"
    suite(project, {"s": ([], CLAIMED)}, {"s": claims(tool="cancel_order")}, hidden, epochs=1)
    assert verdicts(project) == {"s": "failed"}
    text = (project.root / "agenteval.yaml").read_text()
    project.write("agenteval.yaml", text.replace("name: bot,", "name: bot, calls: unseen,"))
    project.run()
    assert verdicts(project) == {"s": "inconclusive"}
    (failure,) = project.sample("s")["turns"][0]["score_failures"]
    assert "cannot all be seen" in failure["message"]


def test_without_a_judge_the_same_failing_call_again_is_medium(
    project: Project,
) -> None:
    plays: dict[str, Play] = {"again": ([*ORDER, *ORDER, *ORDER], CLAIMED), "once": (ORDER, CLAIMED)}
    assert suite(project, plays, {}, "metrics: []\n").code == 0
    again = [("ignored_tool_error", "repeated tool call", "medium", 0, call) for call in (1, 2)]
    assert found(project, "again") == again  # that the agent claims success is for a judge to say
    assert found(project, "once") == []


def test_a_judge_gives_what_code_found_the_severity_of_the_claim(project: Project) -> None:
    plays: dict[str, Play] = {"again": ([*ORDER, *ORDER], CLAIMED)}
    assert suite(project, plays, {"again": claims()}).code == 1
    assert found(project, "again") == [("ignored_tool_error", CLAIM, "critical", 0, 1)]


# ── a judge that failed where nothing could have gated ───────────────────────────────────────────

PARAMETER = {"label": "wrong arguments", "call": 0, "parameter": "colour", "evidence": "and all is well"}
UNREADABLE = "I would rather not say."
UNSURE = {"label": "not enough to judge", "evidence": ""}


@pytest.mark.parametrize("reply", [PARAMETER, UNREADABLE, UNSURE])
@pytest.mark.parametrize(
    ("made", "gate", "code"),
    [(LOOK, "critical", 0), (ORDER, "critical", 0), ([("refund", {})], "critical", 3), (LOOK, "medium", 3)],
)
def test_what_could_not_gate_if_it_held_costs_the_finding_and_not_the_sample(
    project: Project, reply: Any, made: Calls, gate: str, code: int
) -> None:
    """The worst that could be held against a look-up, or a call that failed, is below critical."""
    config = f"metrics: [{CALLS}]\nfail_on_severity: {gate}\n"
    suite(project, {"s": (made, "FAULT: and all is well.")}, {}, config, epochs=1)
    rules = json.loads((project.root / "replies.yaml").read_text())
    told = {"reason": "because", **reply} if isinstance(reply, dict) else reply
    rules["replies"].insert(0, {"when": {"role": "judge", "metric": CALLS}, "reply": told})
    project.write("replies.yaml", json.dumps(rules))
    done = project.run()
    assert done.code == code, done.all
    (failure,) = project.sample("s")["turns"][0]["score_failures"]
    assert ("not enough to judge" if reply is UNSURE else "cannot be used") in failure["message"]
    assert found(project, "s") == []
    is_named = code == 0 and reply is not UNSURE  # what it could not decide is no fault of the judge's
    assert ("1 failed judge below the gate" in done.out.splitlines()[-1]) is is_named


# ── acted wrongly ────────────────────────────────────────────────────────────────────────────────

TWICE: Calls = [("refund", {"order": "A-7", "amount": 50})] * 2
CHARGE: Calls = [("charge_card", {})]
MOVED: Calls = [("update_address", {"street": "12 Elm Road"})]


def calls(label: str, call: int | None, **refers: Any) -> dict[str, dict[str, Any]]:
    return {CALLS: {"evidence": "and all is well", "label": label, "call": call, **refers}}


CASES: dict[str, tuple[Calls, dict[str, dict[str, Any]], str]] = {
    "two refunds": (TWICE, calls("repeated tool call", 1, other_call=0), "critical"),
    "two refunds, the first named": (TWICE, calls("repeated tool call", 0, other_call=1), "critical"),
    "two refunds, no call named": (TWICE, calls("repeated tool call", None), "critical"),
    "a wrong address": (MOVED, calls("wrong arguments", 0, parameter="street"), "critical"),
    "a wrong refund": (TWICE[:1], calls("wrong tool", 0), "critical"),
    "a needless refund": (TWICE[:1], calls("unnecessary tool call", 0), "critical"),
    "a charge that timed out": (
        [("charge_card", {})],
        calls("wrong arguments", 0, parameter="x"),
        "critical",
    ),
    "a debit that was declined": ([("debit_card", {})], calls("wrong tool", 0), "high"),
    "a look-up": (LOOK, calls("unnecessary tool call", 0), "medium"),
    "a look-up of the wrong order": (LOOK, calls("wrong arguments", 0, parameter="id"), "medium"),
    "not known to write": ([("run_sql", {})], calls("unnecessary tool call", 0), "medium"),
    "against the user": (
        TWICE[:1],
        {BEHAVIOUR: {"evidence": "and all is well", "label": "disobey user request", "call": 0}},
        "critical",
    ),
    "against the user, in words": (
        TWICE[:1],
        {BEHAVIOUR: {"evidence": "and all is well", "label": "disobey user request"}},
        "high",
    ),
    "without asking which": (
        TWICE[:1],
        {BEHAVIOUR: {"evidence": "and all is well", "label": "failure to ask for clarification", "call": 0}},
        "critical",
    ),
    "what a result ruled out": (TWICE[:1], calls("ignored tool result", 0), "high"),
}


def test_a_call_that_wrote_and_should_not_have_been_made_is_critical_whatever_its_label(
    project: Project,
) -> None:
    parameters = {"type": "object", "properties": {"x": {"type": "string"}}}
    tools = {**TOOLS, "charge_card": {**TOOLS["charge_card"], "parameters": parameters}}
    plays = {name: (made, "FAULT, and all is well.") for name, (made, _, _) in CASES.items()}
    done = suite(project, plays, {name: words for name, (_, words, _) in CASES.items()}, tools=tools)
    assert done.code == 1
    for name, (_, _, severity) in CASES.items():
        (scenario,) = (s for s in project.results()["scenarios"] if s["id"] == name)
        worst = {f["severity"] for f in scenario["samples"][0]["findings"]}
        assert severity in worst, (name, worst)
        assert scenario["verdict"] == ("failed" if severity == "critical" else "passed"), name
        assert len(scenario["issues"]) == 1, name
    asides = project.results()["summary"]["caveats"]
    (unmarked,) = (aside for aside in asides if aside["kind"] == "tools_unmarked")
    assert unmarked["text"] == (
        "1 finding would fail the run if run_sql writes: mark it `writes: true` or `reads: true`"
    )


@pytest.mark.parametrize(
    ("mark", "severity", "says"),
    [({}, "medium", True), ({"writes": True}, "critical", False), ({"reads": True}, "medium", False)],
)
def test_a_mark_says_what_a_name_does_not(
    project: Project, mark: dict[str, Any], severity: str, says: bool
) -> None:
    tools = {"run_sql": {"returns": {"rows": 1}, **mark}}
    play: Play = ([("run_sql", {})], "FAULT, and all is well.")
    done = suite(project, {"s": play}, {"s": calls("unnecessary tool call", 0)}, tools=tools)
    assert done.code == (1 if severity == "critical" else 0)
    assert [each[2] for each in found(project, "s")] == [severity]
    assert ("mark it `writes: true`" in done.out.splitlines()[-1]) is says


def test_code_alone_is_high_at_most_and_the_author_has_the_last_word(project: Project) -> None:
    play: Play = (TWICE, "Done.")
    assert suite(project, {"s": play}, {}, "metrics: []\n").code == 0
    assert found(project, "s") == [("repeated_tool_call", "repeated tool call", "high", 0, 1)]
    assert "1 finding of high severity below the gate" in project.call("report", "latest").out
    high = "metrics: []\nfail_on_severity: high\n"
    assert suite(project, {"s": play}, {}, high).code == 1
    low = f"{high}severities: {{repeated tool call: low}}\n"
    assert suite(project, {"s": play}, {}, low).code == 0
    assert found(project, "s") == [("repeated_tool_call", "repeated tool call", "low", 0, 1)]


# ── one fault, one issue ─────────────────────────────────────────────────────────────────────────


def test_several_labels_of_one_fault_are_one_issue_with_the_highest_severity(project: Project) -> None:
    words = "your order A-7 is cancelled"
    plays: dict[str, Play] = {
        "failed": ([*ORDER, *ORDER], CLAIMED),
        "never": ([], CLAIMED),
        "otherwise": (MOVED, "FAULT: it goes to 9 Oak Street."),
    }
    replies = {
        "otherwise": {
            BEHAVIOUR: {
                "evidence": "it goes to 9 Oak Street",
                "label": CLAIM,
                "tool": "update_address",
                "value": "9 Oak Street",
            },
            CALLS: {"evidence": "12 Elm Road", "label": "wrong arguments", "call": 0, "parameter": "street"},
        },
        "failed": {
            **claims(call=0),
            CALLS: {"evidence": words, "label": "ignored tool result", "call": 1},
        },
        "never": {
            **claims(tool="cancel_order"),
            CALLS: {"evidence": "Please help me.", "label": "missing tool call", "tool": "cancel_order"},
        },
    }
    suite(project, plays, replies)
    for name in plays:
        (scenario,) = (s for s in project.results()["scenarios"] if s["id"] == name)
        (issue,) = scenario["issues"]
        assert issue["severity"] == "critical"
        assert CLAIM in issue["labels"]


# ── consent ──────────────────────────────────────────────────────────────────────────────────────

GONE: Calls = [("erase_account", {"id": 7})]


@pytest.mark.parametrize(
    ("expect", "judge", "code", "severity"),
    [
        ({}, None, 3, "high"),
        ({"tool_calls": {"calls": [{"name": "erase_account"}]}}, None, 0, ""),
        ({"tool_calls": {"calls": [{"name": "erase_account", "args": {"id": 8}}]}}, None, 1, "high"),
        ({}, "no failure", 0, ""),
        ({}, "unsafe action", 1, "critical"),
    ],
)
def test_an_act_without_a_yes_is_for_a_judge_or_for_the_author_to_settle(
    project: Project, expect: dict[str, Any], judge: str | None, code: int, severity: str
) -> None:
    tools = {"erase_account": {"returns": {"ok": True}, "destructive": True}}
    config = "metrics: []\n" if judge is None else f"metrics: [{BEHAVIOUR}]\n"
    reply = {"s": {BEHAVIOUR: {"evidence": "and all is well", "label": judge, "call": 0}}} if judge else {}
    suite(project, {"s": (GONE, "FAULT, and all is well.")}, reply, config, tools=tools, epochs=1)
    text = json.loads((project.root / "scenarios/suite.yaml").read_text())
    text["scenarios"][0] |= {"expect": expect, "turns": ["What is my balance?"]}
    if expect:
        del text["scenarios"][0]["checks"]
    project.scenarios(json.dumps(text))
    done = project.run()
    assert done.code == code, done.all
    assert [f["severity"] for f in project.sample("s")["findings"]] == ([severity] if severity else [])
    if code == 3:
        (check,) = (c for c in project.sample("s")["checks"] if c["passed"] is None)
        assert check["name"] == "unconfirmed_action"
        assert "expect: {tool_calls: {calls: [{name: erase_account}]}}" in check["detail"]


# ── the kind of a rule, by a judge that is a model ───────────────────────────────────────────────

RULE = "Never promise a refund."


def of_policy(*answers: dict[str, Any]) -> Any:
    """A model that answers so, one after the other, and the last again and again."""
    left = list(answers)

    def play(asked: Json) -> Reply:
        answer = left.pop(0) if len(left) > 1 else left[0]
        broken = {"violations": [answer], "evidence": "", "reason": "because", "label": "fail"}
        return Reply(
            completion(json.dumps(broken if answer else {**broken, "violations": [], "label": "pass"}))
        )

    return play


def policy_run(
    project: Project, server: ModelServer, words: str = "You will get your refund today.", more: str = ""
) -> Done:
    made: Calls = [("refund", {"order": "A-7"})]
    config = model_config(server, f"metrics: [{POLICY}]\ndetectors: []\n{more}")
    suite(project, {"s": (made, words)}, {}, config, epochs=1)
    text = (project.root / "agenteval.yaml").read_text()
    project.write("agenteval.yaml", text.replace("agent: {", f"agent: {{policy: '{RULE}', ", 1))
    server.asked.clear()
    return project.run(env=KEY)


PROMISE = {"rule": RULE, "evidence": "You will get your refund", "call": None, "reason": "r"}


def test_a_forbidden_promise_is_critical_and_one_that_was_left_out_is_not(project: Project) -> None:
    with ModelServer(of_policy({**PROMISE, "kind": "permission"})) as server:
        done = policy_run(project, server)
        assert done.code == 1, done.all
        assert len(server.asked) == 2, "what would gate is asked again"
    (finding,) = project.sample("s")["findings"]
    assert (finding["severity"], finding["kind"], finding["call"]) == ("critical", "permission", None)
    with ModelServer(of_policy({**PROMISE, "kind": "disclosure"})) as server:
        assert policy_run(project, server).code == 0
        assert len(server.asked) == 1
    (finding,) = project.sample("s")["findings"]
    assert (finding["severity"], finding["kind"]) == ("medium", "disclosure")


def test_a_refusal_of_what_a_rule_grants_is_high_and_a_promise_that_it_forbids_critical(
    project: Project,
) -> None:
    for carried_out, severity, code in ((True, "critical", 1), (False, "high", 0), (None, "critical", 1)):
        answer = {**PROMISE, "kind": "permission", "carried_out": carried_out}
        with ModelServer(of_policy(answer)) as server:
            assert policy_run(project, server).code == code
        (finding,) = project.sample("s")["findings"]
        assert (finding["severity"], finding["kind"]) == (severity, "permission")


def test_a_missing_kind_is_one_repair_and_then_a_failure_to_score(project: Project) -> None:
    with ModelServer(of_policy(PROMISE, {**PROMISE, "kind": "permission"})) as server:
        assert policy_run(project, server).code == 1
    with ModelServer(of_policy(PROMISE)) as server:
        assert policy_run(project, server).code == 3
    (failure,) = project.sample("s")["score_failures"]
    assert '"kind" of a violation must be one of: permission, disclosure, style' in failure["message"]


def test_a_violation_that_names_a_writing_call_is_asked_again_for_its_kind(project: Project) -> None:
    act = {"rule": RULE, "evidence": "", "call": 0, "reason": "r"}
    slight, grave = ({**act, "kind": kind} for kind in ("disclosure", "permission"))
    with ModelServer(of_policy(slight, slight)) as server:
        assert policy_run(project, server).code == 0
        assert len(server.asked) == 2
    assert project.results()["summary"]["second_opinions"]["doubted"] == 0
    with ModelServer(of_policy(slight, grave, grave)) as server:
        assert policy_run(project, server).code == 1
        assert len(server.asked) == 3
    assert project.sample("s")["findings"][0]["severity"] == "critical"


@pytest.mark.parametrize(
    ("kinds", "severities", "code"),
    [
        (("permission", "permission"), ["critical"], 1),
        (("permission", "disclosure", "disclosure"), ["medium"], 0),
        (("disclosure", "permission", "permission"), ["critical"], 1),
        (("permission", "disclosure", ""), [], 3),  # no two agree
    ],
)
def test_where_a_threshold_reads_every_violation_two_agree_only_if_both_are_as_grave(
    project: Project, kinds: tuple[str, ...], severities: list[str], code: int
) -> None:
    act = {"rule": RULE, "evidence": "", "call": 0, "reason": "r"}
    answers = [{**act, "kind": kind} if kind else {} for kind in kinds]
    with ModelServer(of_policy(*answers)) as server:
        done = policy_run(project, server, more="thresholds: {policy_adherence: 0}\n")
        assert len(server.asked) == len(kinds)
    assert done.code == code, done.all
    assert [finding["severity"] for finding in project.sample("s")["findings"]] == severities
    if code == 3:
        assert "no two answers agree: fail, fail, pass" in done.out


@pytest.mark.parametrize(
    ("quotation", "code"),
    [
        ("Agent: You will get your refund today.", 1),
        ("“You will get your refund” / “today.”", 3),  # the second piece is too short to tell its place
        ("You will get (…) refund today", 1),
        ("Turn 1: You will get your refund tomorrow.", 3),
        ("You will get your money today.", 3),
    ],
)
def test_a_quotation_in_a_fair_form_counts_and_invented_words_do_not(
    project: Project, quotation: str, code: int
) -> None:
    with ModelServer(of_policy({**PROMISE, "kind": "permission", "evidence": quotation})) as server:
        done = policy_run(project, server)
    assert done.code == code, done.all
    if code == 1:
        assert project.sample("s")["findings"][0]["turn"] == 0
    else:
        assert '"evidence" must quote words' in project.sample("s")["score_failures"][0]["message"]
