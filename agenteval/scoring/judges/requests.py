"""Builds the prompts (requests) that apply one or several rubrics to a record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from pydantic import BaseModel

from agenteval.core.protocols import ModelRequest, Subject, no_flaw
from agenteval.core.scenario import Scenario
from agenteval.core.trajectory import Trajectory
from agenteval.files.prompt_templates import RenderedPrompt, render_template
from agenteval.files.prompts import Rubric
from agenteval.scoring.judges.judge_question import JudgeQuestion
from agenteval.scoring.judges.replies import build_reply_type, build_shared_reply_type, describe_scale
from agenteval.scoring.transcript import JudgeTranscript, latest_answer


def build_subject(scenario: Scenario, trajectory: Trajectory, *, metric: str, turn: int | None) -> Subject:
    """Return the subject of a judge's call."""
    return Subject(scenario=scenario.id, turn=turn, metric=metric, text=latest_answer(trajectory))


def build_judge_request(
    rubric: Rubric,
    record: JudgeTranscript,
    *,
    subject: Subject,
    criterion: Mapping[str, str] | None = None,
    opinion: str = "",
    flaw_in: Callable[[Any, bool], str] = no_flaw,
) -> ModelRequest:
    """Build the judge prompt (request) that applies a rubric to a record.

    The system prompt, and the prompt up to the end of ``record``, are the same for every rubric.
    ``criterion`` fills the placeholders in ``criteria``. ``opinion`` contains the previous answers, and
    instructions on how to use them."""
    text = render_template(rubric.text, criterion or {}, source=rubric.source)
    return _request(
        rubric.prompts.prompt("judge_rules").render(
            transcript=record.text,
            criterion=f"{text}\n\n{opinion}" if opinion else text,
            answer=render_answer_form(rubric),
        ),
        record,
        build_reply_type(rubric),
        subject,
        flaw_in,
    )


def build_question_request(question: JudgeQuestion, opinion: str = "") -> ModelRequest:
    """Build the request that asks a question. For ``opinion``, see ``build_judge_request``."""
    request = build_judge_request(
        question.rubric,
        question.record,
        subject=question.subject,
        criterion=question.criterion,
        opinion=opinion,
        flaw_in=question.flaw_in,
    )
    return replace(request, accepts_flawed=question.accepts_flawed)


def build_shared_request(questions: Mapping[str, JudgeQuestion], metric: str) -> ModelRequest:
    """Build the request for several questions about one record whose answers all have the same format.

    The keys of ``questions`` name the answers. ``metric`` is the metric under which the call is counted."""
    first = next(iter(questions.values()))
    prompts = first.rubric.prompts
    texts = (
        f'Criterion "{name}":\n\n'
        + render_template(each.rubric.text, each.criterion or {}, source=each.rubric.source)
        for name, each in questions.items()
    )
    form = prompts.prompt("answer_shared").render(
        count=str(len(questions)), names=_quote_names(questions), form=render_answer_form(first.rubric)
    )
    types = tuple(build_reply_type(each.rubric) for each in questions.values())
    return _request(
        prompts.prompt("judge_rules").render(
            transcript=first.record.text, criterion="\n\n".join(texts), answer=form.prompt
        ),
        first.record,
        build_shared_reply_type(tuple(questions), types),
        replace(first.subject, metric=metric),
        no_flaw,
    )


def _request(
    rendered: RenderedPrompt,
    record: JudgeTranscript,
    reply: type[BaseModel],
    subject: Subject,
    flaw_in: Callable[[Any, bool], str],
) -> ModelRequest:
    # The project's own rules may put text before the record; it is the same for all requests, too.
    start = rendered.prompt.index(record.text)
    return ModelRequest(
        role="judge",
        system=rendered.system,
        prompt=rendered.prompt,
        reply=reply,
        subject=subject,
        states_form=True,
        flaw_in=flaw_in,
        shared=tuple(start + length for length in record.shared),
    )


def render_answer_form(rubric: Rubric) -> str:
    form = rubric.prompts.prompt(rubric.form)
    values = {
        "scale": describe_scale(*rubric.scale, whole=rubric.whole) if rubric.scale else "",
        "labels": _quote_names(rubric.labels),
        "outcomes": _quote_names(rubric.outcomes),
        "references": "".join(f'- "{name}": {text}\n' for name, text in rubric.references.items()),
        "unsure": rubric.unsure,
    }
    return form.render(**{name: values[name] for name in form.placeholders}).prompt


def _quote_names(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
