"""From findings to issues: when a model is asked, what its failure costs, and the fields of an issue."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from agenteval.core.errors import (
    AuthorError,
    InfrastructureError,
    Problem,
    RequestSkippedError,
    UnreadableReplyError,
)
from agenteval.core.event import IssuesFound
from agenteval.core.protocols import ModelReply, ModelRequest
from agenteval.core.scenario import SampleKey
from agenteval.core.score import Finding, References, Severity
from agenteval.core.trajectory import Step, ToolCall, Trajectory, Turn, Usage
from agenteval.scoring.findings import locate_findings
from agenteval.scoring.issues.deduplication import MAX_EXAMPLES, deduplicate_findings, find_issues
from agenteval.scoring.issues.grouping_request import MAX_ENTRIES, METRIC, AgentSetup
from tests.support.fake_models import USAGE, FakeModel
from tests.support.verdict_runs import PASS, report_of, whole

LOW, MEDIUM, HIGH, CRITICAL = Severity
Told = tuple[SampleKey, Trajectory, Sequence[Finding]]
BOOK = ToolCall(name="book", args={})


def finding(label: str = "false information", severity: Severity = HIGH, **more: Any) -> Finding:
    given = {"detector": "judge", "metric": "agent_behavior_failure", "turn": 0, **more}
    return Finding(label=label, severity=severity, **given)


def told(*findings: Finding, scenario: str = "s", epoch: int = 0, agent: str = "bot") -> Told:
    key = SampleKey(scenario=scenario, agent=agent, epoch=epoch)
    return key, Trajectory(turns=(Turn(user="Hi", steps=(Step(tool_calls=(BOOK,)),)),)), findings


def grouped(samples: Sequence[Told], model: Any = None, **more: Any) -> IssuesFound:
    async def run() -> IssuesFound:
        return await deduplicate_findings(locate_findings(samples), model, **more)

    return anyio.run(run)


def issues(*proposed: dict[str, Any]) -> FakeModel:
    return FakeModel({"issues": list(proposed)})


TWO = [told(finding("false information"), finding("repetition", LOW))]


# ── whether a model is asked ─────────────────────────────────────────────────────────────────────


def test_without_findings_there_is_nothing() -> None:
    model = issues()
    assert grouped([], model) == IssuesFound(issues=())
    assert model.requests == []


def test_without_a_model_each_cause_is_an_issue() -> None:
    found = grouped([*TWO, told(finding("repetition", LOW), epoch=1)])
    assert [(each.id, each.title, each.severity, each.by) for each in found.issues] == [
        ("I1", "false information", HIGH, ""),
        ("I2", "repetition", LOW, ""),
    ]
    assert (found.usage, found.failures, found.not_asked) == (Usage(), (), 0)


@pytest.mark.parametrize(
    ("samples", "uses_model_severity", "asked"),
    [
        ([told(finding())], False, 0),
        ([told(finding())], True, 1),
        (TWO, False, 1),
        ([told(finding()), told(finding(), agent="new")], False, 0),
        ([*TWO, told(finding(), finding("repetition"), agent="new")], False, 2),
        ([*TWO, told(finding(), agent="new")], False, 1),
    ],
    ids=["nothing to merge", "its severity counts", "two", "one for each agent", "two of two", "two of one"],
)
def test_a_model_is_asked_once_for_each_agent_with_something_to_merge(
    samples: list[Told], uses_model_severity: bool, asked: int
) -> None:
    model = issues()
    found = grouped(samples, model, uses_model_severity=uses_model_severity)
    assert len(model.requests) == asked
    assert found.usage.calls == asked
    assert sum(len(each.findings) for issue in found.issues for each in issue.occurrences) == sum(
        len(own) for *_, own in samples
    )


def test_each_agent_is_asked_about_with_its_own_setup() -> None:
    samples = [*TWO, told(finding(), finding("repetition"), agent="new")]
    model = issues()
    grouped(samples, model, setups={"new": AgentSetup(("Always refund.",))})
    assert ["Always refund." in request.prompt for request in model.requests] == [False, True]


# ── what the model says ──────────────────────────────────────────────────────────────────────────


def test_a_models_group_has_its_words_and_all_its_findings() -> None:
    proposed = {
        "title": "Lies and repeats",
        "explanation": "It does both.",
        "severity": "critical",
        "not_the_agents_fault": "the tool was down",
        "findings": ["F1", "F2"],
    }
    found = grouped(TWO, issues(proposed))
    (issue,) = found.issues
    assert (issue.id, issue.title, issue.explanation) == ("I1", "Lies and repeats", "It does both.")
    assert (issue.severity, issue.proposed_severity) == (HIGH, CRITICAL)
    assert issue.not_the_agents_fault == "the tool was down"
    assert (issue.by, issue.scripted) == ("fake/model", True)
    assert issue.labels == ("false information", "repetition")
    assert found.usage == USAGE


def test_what_the_model_forgets_is_grouped_by_code() -> None:
    found = grouped(TWO, issues({"title": "Repeats", "findings": ["F2"]}))
    titles = {issue.title: issue.by for issue in found.issues}
    assert titles == {"false information": "", "Repeats": "fake/model"}
    assert found.failures == ()


def test_issues_of_all_agents_are_numbered_worst_first() -> None:
    samples = [
        told(finding("a", LOW)),
        told(finding("b", CRITICAL), agent="new"),
        told(finding("c", MEDIUM), agent="old"),
    ]
    assert [(each.id, each.agent, each.title) for each in grouped(samples).issues] == [
        ("I1", "new", "b"),
        ("I2", "old", "c"),
        ("I3", "bot", "a"),
    ]


def test_what_did_not_fit_is_counted_and_still_an_issue() -> None:
    samples = [told(*(finding(f"l{n:02}") for n in range(MAX_ENTRIES + 3)))]
    found = grouped(samples, issues())
    assert found.not_asked == 3
    assert len(found.issues) == MAX_ENTRIES + 3
    assert grouped([told(*(finding(f"l{n:02}") for n in range(MAX_ENTRIES)))], issues()).not_asked == 0


# ── what a failure costs ─────────────────────────────────────────────────────────────────────────


def with_usage(error: Exception, usage: Any) -> Exception:
    error.usage = usage  # type: ignore[attr-defined]
    return error


@pytest.mark.parametrize(
    ("error", "facts", "raw", "author", "refused", "usage"),
    [
        (InfrastructureError("the server is down"), ["the server is down"], "", False, False, Usage()),
        (UnreadableReplyError("not JSON", raw="oops"), ["not JSON"], "oops", False, False, Usage()),
        (AuthorError(Problem("no key", "set it")), ["no key"], "", True, False, Usage()),
        (RequestSkippedError("the budget is spent"), ["the budget is spent"], "", False, True, Usage()),
        (KeyError("x"), ["the model failed", "KeyError"], "", False, False, Usage()),
        (with_usage(InfrastructureError("down"), USAGE), ["down"], "", False, False, USAGE),
        (with_usage(ValueError("v"), "much"), ["ValueError"], "", False, False, Usage()),
    ],
)
def test_a_model_that_fails_costs_its_titles_alone(
    error: Exception, facts: list[str], raw: str, author: bool, refused: bool, usage: Usage
) -> None:
    found = grouped(TWO, FakeModel(error))
    (failure,) = found.failures
    assert failure.metric == METRIC
    assert [fact for fact in facts if fact not in failure.message] == []
    assert (failure.raw, failure.author, failure.refused) == (raw, author, refused)
    assert found.usage == usage
    assert [issue.title for issue in found.issues] == ["false information", "repetition"]


class OtherShape(FakeModel):
    async def complete(self, request: ModelRequest) -> ModelReply:
        return ModelReply(request.reply.model_construct(), USAGE, "m")._replace(value=_Other())  # type: ignore[arg-type]


class _Other:
    pass


def test_an_answer_of_another_shape_is_a_failure_that_was_paid_for() -> None:
    found = grouped(TWO, OtherShape({}))
    (failure,) = found.failures
    assert "_Other" in failure.message
    assert found.usage == USAGE
    assert len(found.issues) == 2


def test_the_failure_of_one_agent_leaves_the_others_alone() -> None:
    def answer(request: ModelRequest) -> Any:
        if '"l1"' in request.prompt:
            return InfrastructureError("down")
        return {"issues": [{"title": "Both", "findings": ["F1", "F2", "F3", "F4"]}]}

    samples = [told(finding("a"), finding("b")), told(finding("l1"), finding("l2"), agent="new")]
    found = grouped(samples, FakeModel(answer))
    assert [(each.agent, each.title) for each in found.issues] == [
        ("bot", "Both"),
        ("new", "l1"),
        ("new", "l2"),
    ]
    assert len(found.failures) == 1


# ── the fields of an issue ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("given", "title"),
    [
        (finding("wrong arguments", call=0), "wrong arguments: book"),
        (
            finding("criterion not met", metric="criteria", criterion="Asks first", turn=None),
            "criterion not met: Asks first",
        ),
        (finding("broken", turn=None, references=References(rule="Never refund.")), "broken: never refund"),
        (finding("goal not completed", metric="goal_completion", turn=None), "goal not completed"),
        (finding("", metric="tone", turn=None), "tone"),
        (finding("x" * 200, turn=None), "x" * 119 + "…"),
    ],
    ids=["tool", "criterion", "rule", "label", "metric", "cut"],
)
def test_codes_title_is_the_label_and_what_it_is_about(given: Finding, title: str) -> None:
    (issue,) = grouped([told(given)]).issues
    assert issue.title == title


def test_a_title_of_a_models_group_without_words_counts_other_causes() -> None:
    found = grouped(TWO, issues({"findings": ["F1", "F2"]}))
    (issue,) = found.issues
    assert issue.title == "false information (and 1 more)"


@pytest.mark.parametrize(
    ("explanation", "evidence", "shown"),
    [
        ("why", "seen", "why"),
        ("", "seen", "seen"),
        ("e" * 601, "", "e" * 599 + "…"),
        ("e" * 600, "", "e" * 600),
    ],
)
def test_the_worst_finding_explains(explanation: str, evidence: str, shown: str) -> None:
    mild = finding(severity=LOW, explanation="mild", evidence="mild")
    worst = finding(explanation=explanation, evidence=evidence)
    (issue,) = grouped([told(mild, worst)]).issues
    assert (issue.explanation, issue.severity, issue.proposed_severity) == (shown, HIGH, None)


def test_occurrences_name_the_samples_and_their_findings_in_order() -> None:
    samples = [
        told(finding(), finding("repetition"), finding(), epoch=1),
        told(finding()),
        told(finding(), scenario="t"),
    ]
    issue = next(each for each in grouped(samples).issues if each.labels == ("false information",))
    assert [(each.scenario, each.epoch, each.findings) for each in issue.occurrences] == [
        ("s", 0, (0,)),
        ("s", 1, (0, 2)),
        ("t", 0, (0,)),
    ]


def test_metrics_tools_and_scripted_findings_are_collected() -> None:
    proposed = {"title": "t", "findings": ["F1", "F2"]}
    samples = [
        told(
            finding("b", metric="m2", turn=None),
            finding("a", metric="m1", call=0, scripted=True),
        )
    ]
    (issue,) = grouped(samples, issues(proposed)).issues
    assert (issue.metrics, issue.labels, issue.tools) == (("m1", "m2"), ("a", "b"), ("book",))
    plain, scripted = sorted(grouped(samples).issues, key=lambda each: each.scripted)
    assert (plain.labels, scripted.labels) == (("b",), ("a",))


@pytest.mark.parametrize("count", [MAX_EXAMPLES, MAX_EXAMPLES + 1])
def test_examples_are_few(count: int) -> None:
    (issue,) = grouped([told(finding(evidence=f"e{n}"), epoch=n) for n in range(count)]).issues
    assert [each.evidence for each in issue.examples] == [f"e{n}" for n in range(MAX_EXAMPLES)]
    assert len(issue.occurrences) == count


# ── a whole run ──────────────────────────────────────────────────────────────────────────────────


def test_a_run_without_findings_has_no_issues() -> None:
    assert anyio.run(find_issues, report_of({"a": [PASS]}).scenarios) is None


def test_the_findings_of_a_run_are_asked_about_with_the_policies() -> None:
    report = report_of({"a": [whole(finding(turn=None), finding("repetition", turn=None))], "b": [PASS]})
    model = issues()

    async def run() -> IssuesFound | None:
        return await find_issues(report.scenarios, model, policies={"bot": "Be kind."})

    found = anyio.run(run)
    assert found is not None
    assert len(found.issues) == 2
    (request,) = model.requests
    assert "Be kind." in request.prompt
    assert [json.loads(line)["id"] for line in request.subject.text.splitlines()] == ["F1", "F2"]


def test_a_models_severity_makes_it_asked_of_one_issue_too() -> None:
    report = report_of({"a": [whole(finding(turn=None))]})
    for uses, asked in ((False, 0), (True, 1)):
        model = issues()

        async def run(model: FakeModel = model, uses: bool = uses) -> IssuesFound | None:
            return await find_issues(report.scenarios, model, uses_model_severity=uses)

        assert anyio.run(run) is not None
        assert len(model.requests) == asked
