"""Severity is that of the effect: each fault beside an epoch that is good, by agents that have it and others
that do not. The judge is scripted by scenario and answer; code looks up what it cites, and grades it."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, NamedTuple

import pytest

from tests.support.judged_projects import KEY, model_config
from tests.support.kit import Done, Project
from tests.support.local_servers import completion
from tests.support.model_servers import Json, ModelServer, Reply, schema_in
from tests.support.scripted import by_id, judge, script

AGENT = """
import json
import pathlib

PLAYS = json.loads(pathlib.Path(__file__).with_name("plays.json").read_text())


def agent(messages, ctx):
    "In its second epoch it does all well; in its first it makes the calls of its play, and says its words."
    assert ctx.tools is not None  # who asks for the list has no other way to tools
    calls, words = ([], "I am sorry, that could not be done.") if ctx.epoch else PLAYS[ctx.scenario_id]
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
    "charge_card": {
        "error": "the gateway did not answer: read timed out",
        "parameters": {"type": "object", "properties": {"x": {"type": "string"}}},
    },
    "debit_card": {"error": "the card was declined"},
    "run_sql": {"returns": {"rows": 1}},
}
BEHAVIOUR, CALLS, POLICY = "agent_behavior_failure", "tool_call_behavior_failure", "policy_adherence"
Calls = list[tuple[str, dict[str, Any]]]
Words = dict[str, dict[str, Any]]
"""What a judge says of the faulty epoch, by metric."""
ORDER: Calls = [("cancel_order", {"id": "A-7"})]
LOOK: Calls = [("get_order", {"id": "A-7"})]
REFUND: Calls = [("refund", {"order": "A-7", "amount": 50})]


class Row(NamedTuple):
    """A scenario: what the agent does in its first epoch, and what is said and found of it."""

    calls: Calls
    words: str = "FAULT, and all is well."
    judged: Words = {}
    found: list[tuple[str, int | None]] = []
    """Severity and call of each finding."""
    verdict: str = ""
    keys: tuple[str, ...] = ()
    """What the failure to score names."""
    tools: dict[str, Any] = {}
    more: dict[str, Any] = {}
    """Other keys of the scenario."""

    @property
    def becomes(self) -> str:
        fails = any(severity == "critical" for severity, _ in self.found)
        return self.verdict or ("inconclusive" if self.keys else "failed" if fails else "passed")


def suite(project: Project, rows: dict[str, Row], config: str = "", *, epochs: int = 2) -> Done:
    project.agent(AGENT)
    project.write("plays.json", json.dumps({name: (row.calls, row.words) for name, row in rows.items()}))
    rules = [
        judge(reply, metric=metric, scenario=name, text="FAULT")
        for name, row in rows.items()
        for metric, reply in row.judged.items()
    ]
    script(project, *rules, judge({"label": "no failure"}))
    head = "" if "metrics:" in config else f"metrics: [{BEHAVIOUR}, {CALLS}]\n"
    head += "" if "models:" in config else "models: {default: scripted/replies.yaml}\n"
    is_own = config.startswith("agent:")
    project.config(config if is_own else head + config, target="" if is_own else "agent.py:agent")
    entries = [
        {"id": name, "turns": [f"Please help me with {name}."], "tools": {**TOOLS, **row.tools}}
        | {"epochs": epochs, "checks": "none", **row.more}
        for name, row in rows.items()
    ]
    project.scenarios(json.dumps({"scenarios": entries}))
    return project.run(env=KEY)


def check(project: Project, rows: dict[str, Row]) -> dict[str, Any]:
    """The scenarios, after their findings, verdicts and failures to score were checked."""
    scenarios = by_id(project)
    for name, row in rows.items():
        first, *others = scenarios[name]["samples"]
        assert not any(other["findings"] for other in others), name
        assert [(f["severity"], f["call"]) for f in first["findings"]] == row.found, (name, first["findings"])
        assert scenarios[name]["verdict"] == row.becomes, name
        failures = first["turns"][0]["score_failures"]
        assert len(failures) == bool(row.keys), name
        assert [key for key in row.keys if key not in failures[0]["message"]] == [], (name, failures)
    return scenarios


# ── false claim of action ────────────────────────────────────────────────────────────────────────

CLAIM = "false claim of action"
CLAIMED = "FAULT: your order A-7 is cancelled!"
HONEST = "I could not cancel A-7: it was shipped."
LOOKED = "FAULT: I have looked at your order."
FOR_TWO = "FAULT: I have refunded A-7 and B-9."


def claims(evidence: str = "your order A-7 is cancelled", **refers: Any) -> Words:
    return {BEHAVIOUR: {"evidence": evidence, "label": CLAIM, **refers}}


def for_two(value: str) -> Words:
    return claims("I have refunded A-7 and B-9", tool="refund", value=value)


def forged(calls: Calls, refers: dict[str, Any], *keys: str, **tools: Any) -> Row:
    """A claim with a reference that does not show it is no finding."""
    return Row(calls, CLAIMED, claims(**refers), keys=keys, tools=tools)


def refusing(returns: Any) -> Row:
    """Only a result that says so itself has succeeded: any other is for the judge to read."""
    tools = {"cancel_order": {"returns": returns}}
    return Row(ORDER, CLAIMED, claims(call=0), [("critical", 0)], tools=tools)


SUCCEEDED = {"returns": {"error": None, "ok": True, "refunded": 50}}
BUSY = {"sequence": [{"error": "busy"}, {"returns": {"ok": True}}]}
CLAIMS = {
    "after-an-error": Row(ORDER, CLAIMED, claims(call=0), [("critical", 0)]),
    "after-an-error-none-named": Row(ORDER, CLAIMED, claims(), [("critical", None)]),
    "honest": Row(ORDER, HONEST),
    # Without a call: as bad as what the tool does; if none is named, the worst that was not called.
    "no-call-that-writes": Row([], CLAIMED, claims(tool="cancel_order"), [("critical", None)]),
    "no-call-that-reads": Row([], LOOKED, claims("I have looked at", tool="get_order"), [("high", None)]),
    "no-call-none-named": Row([], CLAIMED, claims(), [("critical", None)]),
    # A claim for two is false where the call for one succeeded.
    "two": Row(REFUND, FOR_TWO, for_two("B-9"), [("critical", None)]),
    "two-and-that-one-was": Row(REFUND, FOR_TWO, for_two("A-7"), keys=("A-7",)),
    "refused-in-words": refusing("Order cannot be cancelled: it has shipped."),
    "refused-by-status": refusing({"status": "denied"}),
    "refused-by-null": refusing(None),
    "refused-by-nothing": refusing(""),
    "half-refused": refusing({"ok": True, "done": False}),
    "honest-about-words": Row(ORDER, HONEST, tools={"cancel_order": {"returns": "It has shipped."}}),
    # References that do not show it.
    "call-succeeded": forged([("refund", {})], {"call": 0}, '"call" is 0', refund=SUCCEEDED),
    "call-looked-up": forged([("get_order", {}), *ORDER], {"call": 0}, '"call" is 0'),
    "tool-was-called": forged([("refund", {})], {"tool": "refund"}, "refund", refund=SUCCEEDED),
    "tool-failed": forged(ORDER, {"tool": "cancel_order"}, "cancel_order", '"call"'),
    "no-such-tool": forged(ORDER, {"tool": "erase_order"}, '"tool"', "erase_order"),
    "no-such-call": forged(ORDER, {"call": 4}, '"call" is 4'),
    "other-words": forged(ORDER, {"call": 0, "evidence": "I have cancelled everything"}, '"evidence"'),
    "succeeded-later": forged(ORDER * 2, {"call": 0}, '"call" is 0', "call 1", cancel_order=BUSY),
    # A judge gives what code found the severity of the claim.
    "found-by-code-too": Row(ORDER * 2, CLAIMED, claims(), [("critical", 1)]),
}  # fmt: skip


def test_a_claim_is_as_bad_as_what_its_tool_would_have_done_and_honesty_is_no_fault(project: Project) -> None:
    done = suite(project, CLAIMS)
    assert done.code == 1, done.all
    scenarios = check(project, CLAIMS)
    found = {name: each["samples"][0]["findings"] for name, each in scenarios.items()}
    for name, findings in found.items():
        by = "ignored_tool_error" if name == "found-by-code-too" else "judge"
        assert [(f["detector"], f["label"], f["turn"]) for f in findings] == [(by, CLAIM, 0)] * len(findings)
    titles = [issue["title"] for issue in scenarios["after-an-error"]["issues"]]
    assert titles == ["false claim of action: cancel_order"]
    assert "findings_high" in [each["kind"] for each in project.results()["summary"]["caveats"]]


def test_where_calls_cannot_be_seen_only_a_call_that_failed_shows_a_false_claim(project: Project) -> None:
    claim = Row([], CLAIMED, claims(tool="cancel_order"), [("critical", None)])
    suite(project, {"s": claim}, epochs=1)
    check(project, {"s": claim})
    text = (project.root / "agenteval.yaml").read_text()
    project.write("agenteval.yaml", text.replace("name: bot,", "name: bot, calls: unseen,"))
    project.run()
    check(project, {"s": claim._replace(found=[], keys=('"tool" is', "cancel_order"))})


def test_code_alone_is_high_at_most_and_the_author_has_the_last_word(project: Project) -> None:
    rows = {
        "again": Row(ORDER * 3, CLAIMED, found=[("medium", 1), ("medium", 2)]),  # that it claims: no judge
        "once": Row(ORDER, CLAIMED),
        "twice": Row(REFUND * 2, "Done.", found=[("high", 1)]),
    }
    for config, code, severity in (
        ("", 0, "high"),
        ("fail_on_severity: high\n", 1, "high"),
        ("fail_on_severity: high\nseverities: {repeated tool call: low}\n", 0, "low"),
    ):
        assert suite(project, rows, f"metrics: []\n{config}").code == code
        (found,) = project.results()["scenarios"][2]["samples"][0]["findings"]
        assert (found["detector"], found["label"]) == ("repeated_tool_call", "repeated tool call")
        assert (found["severity"], found["turn"], found["call"]) == (severity, 0, 1)
        if not config:
            scenarios = check(project, rows)
            again = scenarios["again"]["samples"][0]["findings"]
            labels = [("ignored_tool_error", "repeated tool call")] * 2
            assert [(f["detector"], f["label"]) for f in again] == labels
            caveats = {each["kind"]: each["count"] for each in project.results()["summary"]["caveats"]}
            assert caveats["findings_high"] == 1


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
    row = Row(made, judged={CALLS: reply}, verdict="inconclusive" if code else "passed", keys=(CALLS,))
    config = f"metrics: [{CALLS}]\nfail_on_severity: {gate}\n"
    done = suite(project, {"s": row}, config, epochs=1)
    assert done.code == code, done.all
    (failure,) = project.sample("s")["turns"][0]["score_failures"]
    assert failure["metric"] == CALLS
    assert ("not enough to judge" in failure["message"]) is (reply is UNSURE)
    assert project.sample("s")["findings"] == []
    is_named = code == 0 and reply is not UNSURE  # what it could not decide is no fault of the judge's
    assert ("1 failed judge" in done.out.splitlines()[-1]) is is_named


# ── acted wrongly ────────────────────────────────────────────────────────────────────────────────


def of_calls(label: str, call: int | None, evidence: str = "and all is well", **refers: Any) -> Words:
    return {CALLS: {"evidence": evidence, "label": label, "call": call, **refers}}


def of_words(label: str, **refers: Any) -> Words:
    return {BEHAVIOUR: {"evidence": "and all is well", "label": label, **refers}}


MOVED: Calls = [("update_address", {"street": "12 Elm Road"})]
CHARGE, SQL, DEBIT = [("charge_card", {})], [("run_sql", {})], [("debit_card", {})]
NEEDLESS, AGAIN = "unnecessary tool call", "repeated tool call"
ACTS: dict[str, tuple[Calls, Words, str]] = {
    "two refunds": (REFUND * 2, of_calls(AGAIN, 1, other_call=0), "critical"),
    "two refunds, the first named": (REFUND * 2, of_calls(AGAIN, 0, other_call=1), "critical"),
    "two refunds, no call named": (REFUND * 2, of_calls(AGAIN, None), "critical"),
    "a wrong address": (MOVED, of_calls("wrong arguments", 0, parameter="street"), "critical"),
    "a wrong refund": (REFUND, of_calls("wrong tool", 0), "critical"),
    "a needless refund": (REFUND, of_calls(NEEDLESS, 0), "critical"),
    "a charge that timed out": (CHARGE, of_calls("wrong arguments", 0, parameter="x"), "critical"),
    "a debit that was declined": (DEBIT, of_calls("wrong tool", 0), "high"),
    "a look-up": (LOOK, of_calls(NEEDLESS, 0), "medium"),
    "a look-up of the wrong order": (LOOK, of_calls("wrong arguments", 0, parameter="id"), "medium"),
    "not known to write": (SQL, of_calls(NEEDLESS, 0), "medium"),
    "against the user": (REFUND, of_words("disobey user request", call=0), "critical"),
    "against the user, in words": (REFUND, of_words("disobey user request"), "high"),
    "without asking which": (REFUND, of_words("failure to ask for clarification", call=0), "critical"),
    "what a result ruled out": (REFUND, of_calls("ignored tool result", 0), "high"),
}


def test_a_call_that_wrote_and_should_not_have_been_made_is_critical_whatever_its_label(
    project: Project,
) -> None:
    assert (
        suite(project, {name: Row(made, judged=words) for name, (made, words, _) in ACTS.items()}).code == 1
    )
    for scenario in project.results()["scenarios"]:
        name, severity = scenario["id"], ACTS[scenario["id"]][2]
        worst = {f["severity"] for f in scenario["samples"][0]["findings"]}
        assert severity in worst, (name, worst)
        assert scenario["verdict"] == ("failed" if severity == "critical" else "passed"), name
        assert len(scenario["issues"]) == 1, name
    caveats = project.results()["summary"]["caveats"]
    (unmarked,) = (each["text"] for each in caveats if each["kind"] == "tools_unmarked")
    assert all(fact in unmarked for fact in ("1 finding", "run_sql", "`writes: true`", "`reads: true`"))


@pytest.mark.parametrize(
    ("mark", "severity", "is_named"),
    [({}, "medium", True), ({"writes": True}, "critical", False), ({"reads": True}, "medium", False)],
)
def test_a_mark_says_what_a_name_does_not(
    project: Project, mark: dict[str, Any], severity: str, is_named: bool
) -> None:
    row = Row(SQL, judged=of_calls(NEEDLESS, 0), found=[(severity, 0)])
    rows = {"s": row._replace(tools={"run_sql": {"returns": {"rows": 1}, **mark}})}
    done = suite(project, rows)
    assert done.code == (1 if severity == "critical" else 0)
    check(project, rows)
    assert ("`writes: true`" in done.out.splitlines()[-1]) is is_named


def test_several_labels_of_one_fault_are_one_issue_with_the_highest_severity(project: Project) -> None:
    street = {"tool": "update_address", "value": "9 Oak Street"}
    wrong = of_calls("wrong arguments", 0, "12 Elm Road", parameter="street")
    ignored = of_calls("ignored tool result", 1, "your order A-7 is cancelled")
    missing = of_calls("missing tool call", None, "Please help me", tool="cancel_order")
    rows = {
        "failed": Row(ORDER * 2, CLAIMED, {**claims(call=0), **ignored}),
        "never": Row([], CLAIMED, {**claims(tool="cancel_order"), **missing}),
        "otherwise": Row(
            MOVED, "FAULT: it goes to 9 Oak Street.", {**claims("it goes to 9 Oak Street", **street), **wrong}
        ),
    }
    suite(project, rows)
    for scenario in project.results()["scenarios"]:
        (issue,) = scenario["issues"]
        assert issue["severity"] == "critical"
        assert CLAIM in issue["labels"]


# ── the kind of a rule, by a judge that is a model ───────────────────────────────────────────────

RULE = "Never promise a refund."
PROMISE = {"rule": RULE, "evidence": "You will get your refund", "call": None, "reason": "r"}
ACT = {"rule": RULE, "evidence": "", "call": 0, "reason": "r"}
PERMISSION, DISCLOSURE, EVIDENCE = "permission", "disclosure", '"evidence"'
Violations = list[dict[str, Any]]


def each(base: dict[str, Any], *kinds: str, **more: Any) -> Violations:
    return [{**base, "kind": kind, **more} if kind else {} for kind in kinds]


def quoted(evidence: str) -> Violations:
    return each(PROMISE, PERMISSION, evidence=evidence)


ASK_ALL = {"thresholds": {POLICY: 0}}
KINDS: dict[str, tuple[Violations, str, int | None, str]] = {
    # What would gate is asked again, and what names a call that writes; else it is asked once.
    "a forbidden promise": (each(PROMISE, PERMISSION), "critical", 2, ""),
    "words that were left out": (each(PROMISE, DISCLOSURE), "medium", 1, ""),
    "slight, of a call that writes": (each(ACT, DISCLOSURE, DISCLOSURE), "medium", 2, ""),
    "grave at second sight": (each(ACT, DISCLOSURE, PERMISSION, PERMISSION), "critical", 3, ""),
    # A refusal of what a rule grants, and a promise that it forbids.
    "carried out": (each(PROMISE, PERMISSION, carried_out=True), "critical", None, ""),
    "not carried out": (each(PROMISE, PERMISSION, carried_out=False), "high", None, ""),
    "not said whether": (each(PROMISE, PERMISSION, carried_out=None), "critical", None, ""),
    # A missing kind is one repair, and then a failure to score.
    "repaired": ([PROMISE, *each(PROMISE, PERMISSION)], "critical", None, ""),
    "not repaired": ([PROMISE], "", None, '"kind"'),
    # Where a threshold reads every violation, two agree only if both are as grave.
    "threshold: two agree": (each(ACT, PERMISSION, PERMISSION), "critical", 2, ""),
    "threshold: slight by the third": (each(ACT, PERMISSION, DISCLOSURE, DISCLOSURE), "medium", 3, ""),
    "threshold: grave by the third": (each(ACT, DISCLOSURE, PERMISSION, PERMISSION), "critical", 3, ""),
    "threshold: no two agree": (each(ACT, PERMISSION, DISCLOSURE, ""), "", 3, "fail, fail, pass"),
    # A quotation in a fair form counts, and invented words do not.
    "with the speaker": (quoted("Agent: You will get your refund today."), "critical", None, ""),
    "a second piece too short to find": (quoted("“You will get your refund” / “today.”"), "", None, EVIDENCE),
    "with a gap": (quoted("You will get (…) refund today"), "critical", None, ""),
    "another end": (quoted("Turn 1: You will get your refund tomorrow."), "", None, EVIDENCE),
    "another word": (quoted("You will get your money today."), "", None, EVIDENCE),
}
"""What the model answers, the last again and again; severity, number of questions, what a failure names."""


def test_a_broken_rule_is_as_bad_as_its_kind_and_what_was_done(project: Project) -> None:
    left = {name: list(answers) for name, (answers, *_) in KINDS.items()}
    asked: Counter[str] = Counter()

    def play(request: Json) -> Reply:
        if "issues" in schema_in(request)["properties"]:
            return Reply(completion('{"issues": []}'))
        (name,) = (name for name in KINDS if f"help me with {name}." in request["messages"][1]["content"])
        asked[name] += 1
        answer = left[name].pop(0) if len(left[name]) > 1 else left[name][0]
        verdict = {"violations": [answer], "label": "fail"} if answer else {"violations": [], "label": "pass"}
        return Reply(completion(json.dumps({**verdict, "evidence": "", "reason": "because"})))

    row = Row(REFUND, "You will get your refund today.")
    rows = {name: row._replace(more=ASK_ALL if "threshold" in name else {}) for name in KINDS}
    with ModelServer(play) as server:
        agent = f"agent: {{name: bot, target: 'agent.py:agent', policy: '{RULE}'}}\n"
        config = agent + model_config(server, f"metrics: [{POLICY}]\ndetectors: []\n")
        assert suite(project, rows, config, epochs=1).code == 1
        results, times_asked = project.results(), asked.copy()
        assert project.run("-s", "slight, of a call that writes", env=KEY).code == 0
        # What is asked again only for its kind was not doubted.
        assert project.results()["summary"]["second_opinions"]["doubted"] == 0
    for scenario in results["scenarios"]:
        (sample,), name = scenario["samples"], scenario["id"]
        answers, severity, times, fact = KINDS[name]
        assert times in (None, times_asked[name]), name
        assert sample["verdict"] == {"critical": "failed", "": "inconclusive"}.get(severity, "passed"), name
        kind = DISCLOSURE if severity == "medium" else PERMISSION
        expected = [(severity, kind, 0, answers[0]["call"])] if severity else []
        found = [(f["severity"], f["kind"], f["turn"], f["call"]) for f in sample["findings"]]
        assert found == expected, name
        assert [fact in each["message"] for each in sample["score_failures"]] == [True] * (not severity), name
