"""``agenteval show-prompts``: every prompt as it is sent, with its placeholders named."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from agenteval.errors import AuthorError, Problem, did_you_mean
from agenteval.issues import DedupReply
from agenteval.llm.structured import schema_of
from agenteval.prompts import BUILT_IN_METRICS, CRITERIA, Rubric, load_prompt, load_rubric, placeholders
from agenteval.protocols import ModelRequest, Subject
from agenteval.scorers.judge import request_of
from agenteval.simulated_user import UserReply

_RULE = "─" * 100


def show_prompts(metric: str | None, *, custom: Iterable[Rubric] = ()) -> int:
    """Print the prompt of ``metric``, or all of them; ``custom`` are an author's own rubrics. Raises
    ``AuthorError`` for a name that no prompt has."""
    shown: dict[str, Callable[[], str]] = {name: _of_rubric(name) for name in (*BUILT_IN_METRICS, CRITERIA)}
    shown["error_deduplication"] = _of_prompt("error_deduplication", "dedup", DedupReply)
    shown["simulated_user"] = _of_prompt("simulated_user", "user", UserReply)
    shown |= {rubric.metric: _of_rubric(rubric) for rubric in custom}
    if metric is not None and metric not in shown:
        raise AuthorError(Problem(f"no prompt is named '{metric}'", did_you_mean(metric, shown)))
    names = list(shown) if metric is None else [metric]
    sys.stdout.write("\n".join(shown[name]() for name in names))
    return 0


def template_of(rubric: Rubric) -> ModelRequest:
    """What a judge sends, with ``${transcript}`` (and the placeholders of ``criteria``) in place of what
    a conversation fills in."""
    named = {name: _named(name) for name in placeholders(rubric.text)}
    return request_of(rubric, _named("transcript"), subject=Subject(metric=rubric.metric), criterion=named)


def _named(name: str) -> str:
    return f"${{{name}}}"


def _of_rubric(which: str | Rubric) -> Callable[[], str]:
    def show() -> str:
        rubric = load_rubric(which) if isinstance(which, str) else which
        scope = "turn or conversation" if rubric.metric == CRITERIA else rubric.scope
        head = {"role": "judge", "scope": scope, "version": rubric.version, "hash": rubric.hash}
        return _block(rubric.metric, {**head, "file": rubric.source}, template_of(rubric))

    return show


def _of_prompt(name: str, role: str, reply: Any) -> Callable[[], str]:
    def show() -> str:
        prompt = load_prompt(name)
        rendered = prompt.render(**{each: _named(each) for each in prompt.placeholders})
        head = {"role": role, "version": prompt.version, "hash": prompt.hash, "file": prompt.source}
        return _block(
            name, head, ModelRequest(role, rendered.system, rendered.prompt, reply, states_form=True)
        )

    return show


def _block(name: str, head: Mapping[str, object], request: ModelRequest) -> str:
    return "\n".join(_lines(name, head, request))


def _lines(name: str, head: Mapping[str, object], request: ModelRequest) -> Iterator[str]:
    yield _RULE
    yield f"metric: {name}" if head["role"] == "judge" else f"prompt: {name}"
    yield from (f"{key}: {value}" for key, value in head.items())
    for title, text in (("system", request.system), ("prompt", request.prompt)):
        yield f"\n── {title} ──\n\n{text}"
    schema = json.dumps(schema_of(request.reply), indent=2, ensure_ascii=False)
    yield f"\n── reply (JSON Schema) ──\n\n{schema}\n"
