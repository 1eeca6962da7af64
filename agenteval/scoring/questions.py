"""Questions that code raises and only a judge can answer: whether the user had agreed to a call, and whether
the agent's words claim that something was done. A detector raises the question as a finding, the judge of
that turn is shown the question, and the judge's answer settles it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from agenteval.core.plan import SuitePolicy
from agenteval.core.scenario import Scenario
from agenteval.core.score import Check, Finding, Score
from agenteval.core.severity import FALSE_CLAIM
from agenteval.core.tool_effects import ToolEffect, effect_of
from agenteval.core.trajectory import ToolVisibility, Trajectory
from agenteval.files.prompt_templates import fence
from agenteval.files.prompts import Rubric
from agenteval.scoring.detectors.table import DETECTORS
from agenteval.scoring.finding_severity import get_cited_tool, rate_finding
from agenteval.scoring.metrics import BEHAVIOR

JUDGE_RAISED = "judge_raised"
"""The prompt that shows a judge the questions raised about the judged turn."""


def asks_judge(suite: SuitePolicy) -> bool:
    """Check whether the run has a judge that can answer."""
    return not suite.no_judge and BEHAVIOR in suite.judged


def question_detectors(suite: SuitePolicy) -> tuple[str, ...]:
    """Return the detectors of the run that raise questions."""
    names = DETECTORS if suite.detectors is None else suite.detectors
    return tuple(name for name in names if DETECTORS[name].question)


# ── asked ────────────────────────────────────────────────────────────────────────────────────────


def select_questions(raised: Iterable[Finding], metric: str, turn: int) -> list[Finding]:
    """List the questions among ``raised`` that a metric's judge of the turn answers."""
    return [each for each in raised if each.metric == metric and each.turn == turn]


def add_raised_questions(
    rubric: Rubric, raised: Iterable[Finding], scenario: Scenario, trajectory: Trajectory, turn: int
) -> Rubric:
    """Return the rubric with the questions in ``raised`` about the turn, or the unchanged rubric if there are
    no questions."""
    questions = [format_question(each) for each in select_questions(raised, rubric.metric, turn)]
    questions += ask_about_unseen_calls(rubric, scenario, trajectory)
    return with_questions(rubric, questions)


def with_questions(rubric: Rubric, questions: Sequence[str]) -> Rubric:
    """Return the rubric with the questions, numbered from 1, or the unchanged rubric if there are none."""
    if not questions:
        return rubric
    shown = "\n\n".join(f"{number}. {each}" for number, each in enumerate(questions, 1))
    text = rubric.prompts.prompt(JUDGE_RAISED).render(questions=shown).prompt
    return rubric.with_question(text)


def format_question(raised: Finding) -> str:
    """Format a question that code raises, with the call and the words that it is about."""
    call = "" if raised.call is None else f"Call {raised.call}: "
    quoted = f"{fence(raised.evidence)}\n" if raised.evidence else ""
    return f"{call}{raised.explanation}.\n{quoted}Answer {DETECTORS[raised.detector].question}."


def tools_of_unseen_calls(scenario: Scenario, trajectory: Trajectory) -> Sequence[str]:
    """Return the declared tools that write, if one of these tools may have been called without being
    observed.

    Return no tools if the author declares that the agent's statements about its actions are to be trusted."""
    if trajectory.all_calls_seen or trajectory.visibility is ToolVisibility.DECLARED_UNSEEN:
        return ()
    return [name for name, tool in scenario.tools.items() if effect_of(name, tool) is ToolEffect.WRITES]


def ask_about_unseen_calls(rubric: Rubric, scenario: Scenario, trajectory: Trajectory) -> Iterator[str]:
    """Yield the question whether unobserved calls may have done what the agent claims, if this is possible
    and the rubric is about claims."""
    tools = tools_of_unseen_calls(scenario, trajectory) if FALSE_CLAIM in rubric.labels else ()
    if not tools:
        return
    listed = json.dumps(list(tools), ensure_ascii=False)
    yield (
        "Calls may have been made that the record does not show. These tools of the agent change something:\n"
        f"{fence(listed)}\n"
        "If the agent says in this turn that something is done which one of them does, and no call in the"
        f' record did it, answer "{rubric.unsure}": whether it was done cannot be seen.'
    )


# ── answered ─────────────────────────────────────────────────────────────────────────────────────


def is_open_question(finding: Finding) -> bool:
    """Check whether a finding is an unanswered question, which decides nothing until a judge confirms it."""
    detector = DETECTORS.get(finding.detector)
    return bool(detector and detector.requires_judge) and not finding.also


def drop_answered_questions(
    findings: Iterable[Finding], scores: Mapping[int, Iterable[Score]]
) -> tuple[Finding, ...]:
    """Return a sample's findings, merged with the judges' findings, excluding the questions that a judge's
    label rejected.

    ``scores`` contains the scores of each turn. A judge gives only one label per turn. If that label is the
    question's own label, it may be about another call. If it is an overriding label, it is about another
    fault. Neither label rejects the question."""
    return tuple(each for each in findings if not _is_answered(each, scores))


def _is_answered(finding: Finding, scores: Mapping[int, Iterable[Score]]) -> bool:
    detector = DETECTORS.get(finding.detector)
    if detector is None or not detector.question or finding.also or finding.turn is None:
        return False
    unanswered = {detector.label, *detector.overriding_labels}
    labels = [score.label for score in scores.get(finding.turn, ()) if score.metric == detector.metric]
    return any(label is not None and label not in unanswered for label in labels)


def build_open_checks(
    findings: Iterable[Finding], trajectory: Trajectory, scenario: Scenario, suite: SuitePolicy
) -> Iterator[Check]:
    """Yield an undecided check for each open question whose answer could have failed the sample.

    The check states what would settle the question."""
    why = f"no judge was asked (enable the metric {BEHAVIOR})"
    if asks_judge(suite):
        why = "the judge gave no clear answer"
    for finding in findings:
        if not is_open_question(finding) or suite.fail_on is None:
            continue
        confirmed = rate_finding(finding, trajectory, scenario.tools, suite.severities).severity
        if confirmed.rank >= suite.fail_on.rank:
            at = "" if finding.turn is None else f"turn {finding.turn + 1}: "
            tool = get_cited_tool(finding, trajectory)
            remedy = f"expect it in this turn: `expect: {{tool_calls: {{calls: [{{name: {tool}}}]}}}}`"
            detail = (
                f"{at}{finding.explanation}; it is unknown whether the user had agreed, because {why}"
                f" — if the call is right, {remedy}"
            )
            where = scenario.where("tools")
            yield Check(name=finding.detector, passed=None, detail=detail, where=where, turn=finding.turn)
