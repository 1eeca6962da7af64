"""The request to the model that groups findings: what it shows and leaves out, and how its answer is read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from agenteval.core.protocols import ModelReply
from agenteval.core.scenario import SampleKey, Tool
from agenteval.core.score import Finding, Severity
from agenteval.core.trajectory import Step, ToolCall, Trajectory, Turn, Usage
from agenteval.scoring.findings import locate_findings
from agenteval.scoring.issues.grouping import FindingGroup, build_candidates
from agenteval.scoring.issues.grouping_request import (
    MAX_CHARACTERS,
    MAX_ENTRIES,
    MAX_POLICY,
    METRIC,
    AgentSetup,
    DedupReply,
    GroupingQuestion,
    ProposedIssue,
    apply_grouping,
    build_grouping_question,
    collect_agent_setups,
)
from tests.support.verdict_runs import PASS, Played, report_of, whole
from tests.support.verdict_runs import finding as found

LOW, MEDIUM, HIGH, CRITICAL = Severity
CALLS = (ToolCall(name="book", args={}), ToolCall(name="pay", args={}))


def finding(label: str = "false information", severity: Severity = HIGH, **more: Any) -> Finding:
    given = {"detector": "judge", "metric": "agent_behavior_failure", "turn": 0, **more}
    return Finding(label=label, severity=severity, **given)


def candidates(*samples: Sequence[Finding], scenarios: Sequence[str] = ()) -> list[FindingGroup]:
    """The groups of samples of one scenario, unless ``scenarios`` names that of each."""
    turns = (Turn(user="Hi", steps=(Step(tool_calls=CALLS),)),)
    names = scenarios or ["s"] * len(samples)
    placed = [
        (SampleKey(scenario=name, agent="bot", epoch=n), Trajectory(turns=turns), own)
        for n, (name, own) in enumerate(zip(names, samples, strict=True))
    ]
    return build_candidates(locate_findings(placed))


def asked(groups: Sequence[FindingGroup], setup: AgentSetup | None = None) -> GroupingQuestion:
    return build_grouping_question(groups, setup or AgentSetup(), None)


def entries(question: GroupingQuestion) -> list[dict[str, Any]]:
    return [json.loads(line) for line in question.request.subject.text.splitlines()]


# ── an agent's setup ─────────────────────────────────────────────────────────────────────────────

LIE = found(turn=None)


def setups(
    told: dict[str, list[Played | None]], policies: dict[str, str] | None = None, **more: Any
) -> dict[str, AgentSetup]:
    return collect_agent_setups(report_of(told, **more).scenarios, policies or {})


def test_only_conversations_with_findings_count() -> None:
    assert setups({"a": [PASS]}, {"bot": "Be kind."}) == {}
    scenarios = {name: {"tools": {f"tool_{name}": Tool(returns=1)}} for name in "ab"}
    assert setups({"a": [PASS], "b": [PASS, whole(LIE)]}, scenarios=scenarios) == {
        "bot": AgentSetup((), {"tool_b": ""})
    }


def test_each_agent_has_its_policy() -> None:
    told = setups({"a": [whole(LIE)]}, {"bot": " Be kind. ", "other": "x"}, agents=("bot", "new"))
    assert told == {"bot": AgentSetup(("Be kind.",)), "new": AgentSetup()}


def test_a_recorded_conversation_has_a_policy_of_its_own() -> None:
    scenarios = {
        "a": {"policy": "Old."},
        "b": {"policy": ""},
        "c": {"policy": "Old."},
        "d": {"policy": "New."},
    }
    told = setups({name: [whole(LIE)] for name in scenarios}, {"bot": "Be kind."}, scenarios=scenarios)
    assert told["bot"].policies == ("Old.", "Be kind.", "New.")


def test_tools_are_those_declared_and_those_called_beside_a_finding() -> None:
    scenarios = {
        "a": {"tools": {"book": Tool(returns=1), "pay": Tool(returns=1, description="Pays.")}},
        "b": {
            "tools": {
                "book": Tool(returns=1, description="Books."),
                "pay": Tool(returns=1, description="Other."),
            }
        },
    }
    called = Played(
        (LIE,), turns=((),), calls=(ToolCall(name="drop", args={}), ToolCall(name="pay", args={}))
    )
    quiet = Played((), turns=((),), calls=(ToolCall(name="unseen", args={}),))
    told = setups({"a": [called, quiet], "b": [whole(LIE)]}, scenarios=scenarios)
    assert told["bot"].tools == {"book": "Books.", "pay": "Pays.", "drop": ""}


# ── policy and tools in the request ──────────────────────────────────────────────────────────────


def test_a_request_is_for_the_grouping_model() -> None:
    question = asked(candidates([finding()]))
    request = question.request
    assert (request.role, request.reply, request.states_form) == ("dedup", DedupReply, True)
    assert (request.subject.metric, request.subject.scenario) == (METRIC, "s")
    assert request.subject.text in request.prompt


def test_a_request_about_several_scenarios_is_about_none() -> None:
    groups = candidates([finding()], [finding("repetition")], scenarios=["s", "t"])
    assert asked(groups).request.subject.scenario == ""


def test_an_unknown_setup_is_said() -> None:
    assert asked(candidates([finding()])).request.prompt.count("None is known.") == 2


@pytest.mark.parametrize(
    ("policies", "shown", "more"),
    [
        (["p1"], ["p1"], None),
        (["p1", "p2", "p3"], ["p1", "p2", "p3"], None),
        ([f"p{n}" for n in range(1, 6)], ["p1", "p2", "p3"], "2 more"),
    ],
)
def test_at_most_three_policies_are_shown(policies: list[str], shown: list[str], more: str | None) -> None:
    setup = AgentSetup(tuple(f"<<{each}>>" for each in policies))
    prompt = asked(candidates([finding()]), setup).request.prompt
    assert [each for each in policies if f"<<{each}>>" in prompt] == shown
    assert ("of other conversations" in prompt) is bool(more)
    assert more is None or more in prompt


@pytest.mark.parametrize(
    ("count", "length", "cut"),
    [
        (1, MAX_POLICY, False),
        (1, MAX_POLICY + 1, True),
        (3, MAX_POLICY // 3, False),
        (3, MAX_POLICY // 3 + 1, True),
    ],
)
def test_a_long_policy_loses_its_middle(count: int, length: int, cut: bool) -> None:
    setup = AgentSetup(tuple(f"<{n}{'x' * (length - 3)}>" for n in range(count)))
    prompt = asked(candidates([finding()]), setup).request.prompt
    assert ("left out here" in prompt) is cut
    for n in range(count):
        assert f"<{n}xx" in prompt
        assert prompt.count("x>") >= count
    assert (f"{setup.policies[0]}" in prompt) is not cut


def test_tools_are_shown_with_their_descriptions() -> None:
    prompt = asked(
        candidates([finding()]), AgentSetup(tools={"book": "Books\na slot.", "pay": ""})
    ).request.prompt
    assert '{"name": "book", "description": "Books a slot."}' in prompt
    assert '{"name": "pay"}' in prompt


def test_many_tools_are_shown_by_name_alone() -> None:
    tools = {f"tool_{n:02}": "d" * 100 for n in range(20)}
    prompt = asked(candidates([finding()]), AgentSetup(tools=tools)).request.prompt
    assert "dddd" not in prompt
    assert all(f'"{name}"' in prompt for name in tools)
    many = {f"tool_{n:04}": "" for n in range(1000)}
    prompt = asked(candidates([finding()]), AgentSetup(tools=many)).request.prompt
    assert '"tool_0000"' in prompt
    assert '"tool_0999"' in prompt
    assert '"tool_0500"' not in prompt
    assert "left out here" in prompt


# ── the list ─────────────────────────────────────────────────────────────────────────────────────


def test_an_entry_says_what_code_knows() -> None:
    (entry,) = entries(
        asked(
            candidates(
                [
                    finding("wrong arguments", call=1, evidence="paid\n10", explanation="it was 20"),
                    finding("wrong arguments", call=1, turn=0, evidence="paid 11", explanation="again"),
                ],
                [finding("wrong arguments", call=1, turn=0, evidence="z", explanation="other")],
            )
        )
    )
    assert entry == {
        "id": "F1",
        "label": "wrong arguments",
        "tool": "pay",
        "conversation": "s",
        "times": 3,
        "conversations": 2,
        "examples": [
            {"turn": 1, "quotation": "paid 10", "explanation": "it was 20"},
            {"turn": 1, "quotation": "z", "explanation": "other"},
        ],
    }


def test_a_criterion_is_named_and_a_whole_conversation_has_no_turn() -> None:
    unmet = finding("criterion not met", metric="criteria", criterion="Asks first", turn=None, evidence="e")
    (entry,) = entries(asked(candidates([unmet])))
    assert (entry["criterion"], entry["examples"]) == ("Asks first", [{"quotation": "e", "explanation": ""}])
    assert "tool" not in entry
    assert "shows as" not in entry


@pytest.mark.parametrize(
    ("labels", "text"),
    [
        ((), None),
        (("b", "a"), "a, b"),
        (("a", "a"), "a"),
        (("c", "b", "a"), "a, b, c"),
        (("e", "d", "c", "b", "a"), "a, b, c and 2 more"),
    ],
)
def test_other_labels_of_the_same_fault_are_listed(labels: tuple[str, ...], text: str | None) -> None:
    group, *effects = candidates([finding("main", CRITICAL), *(finding(each, turn=None) for each in labels)])
    others = [each for effect in effects for each in effect.members]
    (entry,) = entries(asked([group.with_effects(*others)]))
    assert entry.get("shows as") == text
    assert entry["times"] == 1 + len(labels)


@pytest.mark.parametrize(("count", "left"), [(MAX_ENTRIES, 0), (MAX_ENTRIES + 1, 1), (MAX_ENTRIES + 9, 9)])
def test_the_worst_groups_are_listed_in_their_order(count: int, left: int) -> None:
    labels = [f"l{n:02}" for n in range(count)]
    groups = candidates([finding(each, LOW if n < left else HIGH) for n, each in enumerate(labels)])
    question = asked(groups)
    assert len(question.listed) == min(count, MAX_ENTRIES)
    assert sorted(each.cause.label for each in question.left_out) == labels[:left]
    assert [entry["id"] for entry in entries(question)] == [each.members[0].id for each in question.listed]


def test_the_list_keeps_the_order_of_the_groups_not_of_their_weight() -> None:
    groups = candidates([finding("a"), finding("b")], [finding("b")])
    assert [entry["label"] for entry in entries(asked(groups))] == ["a", "b"]


def test_what_does_not_fit_is_left_out_from_the_least_bad_on() -> None:
    def long(n: int) -> Finding:
        severity = HIGH if n else LOW
        return finding(f"l{n:02}" + "x" * 150, severity, evidence=f"e{n}" * 60, explanation="x" * 200)

    groups = candidates([long(n) for n in range(40)])
    question = asked(groups, AgentSetup(("p" * MAX_POLICY,), {"t": "d" * 150}))
    assert 0 < len(question.left_out) < 40
    assert "l00" in {each.cause.label[:3] for each in question.left_out}
    assert len(question.request.subject.text) <= MAX_CHARACTERS - MAX_POLICY
    assert len(question.listed) + len(question.left_out) == 40
    assert len(asked(groups).listed) >= len(question.listed)


# ── the answer ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (["F1", "F2"], ["F1", "F2"]),
        ("F1, F2;F3 F4", ["F1", "F2", "F3", "F4"]),
        ([1, "F2", None, {"x": 1}], ["1", "F2"]),
        (None, []),
        (3, []),
        ({}, []),
    ],
)
def test_ids_are_read_leniently(written: Any, read: list[str]) -> None:
    assert ProposedIssue.model_validate({"findings": written}).findings == read


@pytest.mark.parametrize(
    ("written", "severity"),
    [
        ("high", HIGH),
        (" Critical ", CRITICAL),
        ("LOW", LOW),
        ("severe", None),
        ("", None),
        (4, None),
        (None, None),
    ],
)
def test_a_severity_is_one_of_ours_or_none(written: Any, severity: Severity | None) -> None:
    assert ProposedIssue.model_validate({"severity": written}).proposed is severity


def test_a_malformed_field_is_empty() -> None:
    fields = ("title", "explanation", "not_the_agents_fault")
    read = ProposedIssue.model_validate({name: ["x"] for name in fields})
    assert [getattr(read, name) for name in fields] == ["", "", ""]


def test_the_schema_asks_for_every_field() -> None:
    schema = DedupReply.model_json_schema()["$defs"]["ProposedIssue"]
    assert set(schema["required"]) == set(schema["properties"])
    assert schema["properties"]["severity"]["enum"] == ["low", "medium", "high", "critical"]


GROUPS = candidates([finding("a"), finding("b"), finding("c")])


def applied(
    *issues: dict[str, Any], model: str = "m", scripted: bool = False
) -> tuple[list[list[str]], list[str]]:
    reply = ModelReply(DedupReply.model_validate({"issues": list(issues)}), Usage(), model, scripted)
    made, forgotten = apply_grouping(GROUPS, reply)
    return [[each.finding.label for each in group.members] for group in made], [
        each.cause.label for each in forgotten
    ]


@pytest.mark.parametrize(
    ("issues", "made", "forgotten"),
    [
        ([], [], ["a", "b", "c"]),
        ([["F1", "F3"]], [["a", "c"]], ["b"]),
        ([["F3", "F1"]], [["a", "c"]], ["b"]),
        ([["F1"], ["F1", "F2"]], [["a"], ["b"]], ["c"]),
        ([["F1"], ["F1"]], [["a"]], ["b", "c"]),
        ([["F1", "F1"]], [["a"]], ["b", "c"]),
        ([["F4", "F0", "x", ""]], [], ["a", "b", "c"]),
        ([["f1", " F02. ", "#3"]], [["a", "b", "c"]], []),
        ([["1", "(F2)"]], [["a", "b"]], ["c"]),
        ([["F1F2", "FF3", "F-1"]], [], ["a", "b", "c"]),
        ([["F" + "0" * 50 + "1"]], [], ["a", "b", "c"]),
        ([["F99999999999"]], [], ["a", "b", "c"]),
    ],
)
def test_each_finding_is_in_the_first_group_that_names_it(
    issues: list[list[str]], made: list[list[str]], forgotten: list[str]
) -> None:
    assert applied(*({"title": "t", "findings": each} for each in issues)) == (made, forgotten)


def test_any_id_of_a_group_means_the_whole_group() -> None:
    groups = candidates([finding("a"), finding("a")], [finding("a")])
    reply = ModelReply(DedupReply.model_validate({"issues": [{"findings": ["F3"]}]}), Usage(), "m", False)
    (made,), forgotten = apply_grouping(groups, reply)
    assert [each.id for each in made.all_findings] == ["F1", "F2", "F3"]
    assert forgotten == []


def test_a_proposal_is_kept_within_its_limits() -> None:
    written = {
        "title": "t" * 121,
        "explanation": "e" * 601,
        "not_the_agents_fault": "n" * 301,
        "severity": "low",
    }
    reply = ModelReply(
        DedupReply.model_validate({"issues": [{**written, "findings": ["F1"]}]}), Usage(), "", True
    )
    ((group,), _) = apply_grouping(GROUPS, reply)
    proposal = group.proposal
    assert [len(text) for text in (proposal.title, proposal.explanation, proposal.excuse)] == [120, 600, 300]
    assert (proposal.severity, proposal.by, proposal.scripted) == (LOW, "a model", True)
    reply = ModelReply(reply.value, Usage(), "lab/model", False)
    ((group,), _) = apply_grouping(GROUPS, reply)
    assert (group.proposal.by, group.proposal.scripted) == ("lab/model", False)
