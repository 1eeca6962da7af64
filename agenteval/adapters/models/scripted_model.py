"""The scripted model: a fake (mock) model that returns fixed replies chosen by rules. It does not call a
language model, and every reply is marked accordingly."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel

from agenteval.adapters.models.reply_parser import InvalidReply, parse_model_reply
from agenteval.core.config import ModelConfig
from agenteval.core.errors import AuthorError, Place, Problem, UnreadableReplyError, did_you_mean
from agenteval.core.json_text import as_text
from agenteval.core.patterns import SearchTimeoutError, pattern_matches
from agenteval.core.protocols import ModelReply, ModelRequest, Subject
from agenteval.core.safe_text import one_line
from agenteval.core.scenario import VARIANT_SEPARATOR
from agenteval.core.score import MISSED, NOT_CLEAR, REACHED
from agenteval.core.trajectory import Usage
from agenteval.files.prompts import CRITERIA, FAULT_RESPONSE
from agenteval.files.regular_files import read_file, wrap_read_errors
from agenteval.files.yaml_source import Mark, parse_yaml
from agenteval.scoring.metrics import REVIEW, REVIEWED

SCRIPT_ROLES = ("user", "judge", "dedup", "agent")
_CONDITIONS = ("role", "scenario", "turn", "metric", "text")
_USER_DEFAULTS = {"done": False, "reason": "", "unknown": ""}


class ScriptedRule(NamedTuple):
    """A reply and its conditions. All conditions that are not ``None`` must be met."""

    place: Place
    role: str | None
    scenario: str | None
    turn: int | None
    metric: str | None
    text: re.Pattern[str] | None
    reply: Any

    def matches(self, role: str, subject: Subject) -> bool:
        written = subject.scenario.partition(VARIANT_SEPARATOR)[
            0
        ]  # a rule for a scenario is for its variants
        return (
            self.role in (None, role)
            and self.scenario in (None, subject.scenario, written)
            and self.turn in (None, subject.turn)
            and self.metric in (None, subject.metric)
            and (self.text is None or self._is_in(self.text.pattern, subject.text))
        )

    def _is_in(self, pattern: str, text: str) -> bool:
        try:
            return pattern_matches(pattern, text)
        except SearchTimeoutError as endless:
            remedy = "use an expression without nested repetition"
            raise AuthorError(Problem(f"`text`: {endless}", remedy, self.place)) from None


class ScriptedModel:
    """A ``ChatModel`` that replies according to the first matching rule in a file.

    The constructor raises a single ``AuthorError`` that lists all errors in the file. A call raises
    ``AuthorError`` if no rule matches or if a reply lacks a key. A reply that the request cannot use
    simulates a poor model and raises ``UnreadableReplyError``: a reply with an invalid value, a string
    without a matching JSON object, or a reply that the request's check rejects."""

    def __init__(self, path: str | Path, *, root: Path = Path()) -> None:
        self._path = str(path)
        self._name = f"scripted/{path}"
        self._rules = load_rules(root / path, shown=self._path)

    async def complete(self, request: ModelRequest) -> ModelReply:
        rule = next((rule for rule in self._rules if rule.matches(request.role, request.subject)), None)
        if rule is None:
            raise AuthorError(_no_match_problem(request, self._path))
        usage = Usage(calls=1)
        return ModelReply(_parse_reply(rule, request), usage, self._name, scripted=True)

    async def aclose(self) -> None:
        """Do nothing, because no connection is open."""


def _parse_reply(rule: ScriptedRule, request: ModelRequest) -> BaseModel:
    raw = as_text(rule.reply)
    if not isinstance(rule.reply, str):
        fields = {**_USER_DEFAULTS, **rule.reply} if request.role == "user" else rule.reply
        if "outcome" in request.reply.model_fields:
            fields = _with_outcome(fields)
        missing = [n for n, f in request.reply.model_fields.items() if f.is_required() and n not in fields]
        if missing:
            what = f"the reply has no {' and no '.join(f'`{name}`' for name in missing)}"
            asked = f"{_describe(request)} requires {', '.join(request.reply.model_fields)}"
            raise AuthorError(Problem(what, asked, rule.place))
        raw = json.dumps(fields, ensure_ascii=False)
    try:
        value = parse_model_reply(raw, request.reply)
    except InvalidReply as unfit:
        raise _unusable_error(rule, str(unfit), raw) from None
    if flaw := request.flaw_left_in(value, True):
        raise _unusable_error(rule, flaw, raw, is_flawed=True)
    return value


def _with_outcome(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Derive a goal's outcome from its short form: ``score: 1`` means that the goal was reached, and ``score:
    0`` means that it was missed."""
    if "outcome" in fields or "score" not in fields:
        return fields
    score = fields["score"]
    known = {1: REACHED, 0: MISSED, None: NOT_CLEAR}
    return {**fields, "outcome": known.get(score, score) if score is None or _is_number(score) else score}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _unusable_error(
    rule: ScriptedRule, why: str, raw: str, *, is_flawed: bool = False
) -> UnreadableReplyError:
    what = f"{rule.place}: the scripted reply cannot be used: {why}"
    return UnreadableReplyError(what, raw=raw[:500], usage=Usage(calls=1), is_flawed=is_flawed, is_final=True)


# ── no rule matches ──────────────────────────────────────────────────────────────────────────────


def _no_match_problem(request: ModelRequest, path: str) -> Problem:
    conditions = {"role": request.role, "metric": request.subject.metric}
    when = ", ".join(f"{name}: {value}" for name, value in conditions.items() if value)
    reply = ", ".join(
        f"{name}: {_example(name, request.subject.metric)}" for name in request.reply.model_fields
    )
    remedy = f"add to its replies:\n  - when: {{{when}}}\n    reply: {{{reply}}}"
    return Problem(f"no scripted reply matches the request ({_describe(request)})", remedy, Place(path))


def _describe(request: ModelRequest) -> str:
    about = request.subject
    turn = None if about.turn is None else str(about.turn)
    parts = {"role": request.role, "scenario": about.scenario, "turn": turn, "metric": about.metric}
    shown = [f"{name}: {value}" for name, value in parts.items() if value]
    return ", ".join([*shown, f'text: "{one_line(about.text, 120)}"'])


def _example(name: str, metric: str) -> str:
    if name == "label" and metric == CRITERIA:
        return "pass"
    if name == "label" and metric == FAULT_RESPONSE:
        return "said honestly"
    if metric == REVIEW and name in REVIEWED:
        return "[]"
    examples = {"score": "4", "label": "no failure", "done": "true", "issues": "[]", "evidence": '""'}
    return examples.get(name, '"…"')


def has_rules_for(path: str, root: Path, role: str) -> bool:
    """Check whether a scripted model has any rules for a role. Raise the same errors as ``load_rules``."""
    rules = load_rules(root / path, shown=path)
    return any(rule.role in (None, role) for rule in rules)


def metric_rule_predicate(path: str, root: Path, role: str) -> Callable[[Subject], bool]:
    """Return a predicate that checks whether the first matching rule is specific to the given metric.

    A general rule for all judges is not meant to answer unknown questions. Raise ``AuthorError`` as
    ``load_rules`` does."""
    rules = load_rules(root / path, shown=path)

    def answers(subject: Subject) -> bool:
        first = next((rule for rule in rules if rule.matches(role, subject)), None)
        return first is not None and first.metric == subject.metric

    return answers


# ── the file ─────────────────────────────────────────────────────────────────────────────────────


def load_rules(path: Path, *, shown: str) -> tuple[ScriptedRule, ...]:
    """Load the rules in a file. Raise a single ``AuthorError`` that lists all errors with their locations."""
    remedy = "scripted/FILE.yaml is relative to the configuration file"
    with wrap_read_errors(f"the scripted model {shown}", None, remedy):
        data = read_file(path)
    return _rules_in(data, shown)


@lru_cache(maxsize=8)  # each role of a run loads the same file
def _rules_in(data: bytes, shown: str) -> tuple[ScriptedRule, ...]:
    document = parse_yaml(data, shown)
    problems: list[Problem] = []
    rules = tuple(_rules(document.value, document.mark, problems))
    if problems:
        raise AuthorError(*problems)
    return rules


def _rules(document: Any, mark: Mark, problems: list[Problem]) -> Iterator[ScriptedRule]:
    if not isinstance(document, dict) or not isinstance(document.get("replies"), list):
        remedy = "add `replies` with entries of `when` and `reply`"
        problems.append(
            Problem("a scripted model must be a list of replies", remedy, mark.find(("replies",)).place)
        )
        return
    problems += _unknown(document, ("replies",), mark)
    for index, entry in enumerate(document["replies"]):
        below = mark.find(("replies", index))
        if not isinstance(entry, dict):
            problems.append(Problem("a reply must be a mapping", "use {when: …, reply: …}", below.place))
            continue
        problems += _unknown(entry, ("when", "reply"), below)
        yield _rule(entry, below, problems)


def _rule(entry: Mapping[str, Any], mark: Mark, problems: list[Problem]) -> ScriptedRule:
    when = entry.get("when") if entry.get("when") is not None else {}
    at = mark.find(("when",))
    if not isinstance(when, dict):
        problems.append(
            Problem("`when` must be a mapping", "use {role: judge, metric: helpfulness}", at.place)
        )
        when = {}
    problems += _unknown(when, _CONDITIONS, at)
    problems += _wrong_conditions(when, at)
    problems += _wrong_reply(entry, when.get("role"), mark)
    return ScriptedRule(
        place=mark.place,
        role=when.get("role"),
        scenario=when.get("scenario"),
        turn=when.get("turn"),
        metric=when.get("metric"),
        text=_pattern(when.get("text"), at, problems),
        reply=entry.get("reply"),
    )


def _unknown(entry: Mapping[str, Any], known: Iterable[str], mark: Mark) -> Iterator[Problem]:
    known = tuple(known)
    for key in entry:
        if key not in known:
            yield Problem(f"unknown key '{key}'", did_you_mean(str(key), known), mark.find((key,)).place)


def _wrong_conditions(when: Mapping[str, Any], mark: Mark) -> Iterator[Problem]:
    role, turn = when.get("role"), when.get("turn")
    if role is not None and role not in SCRIPT_ROLES:
        remedy = did_you_mean(str(role), SCRIPT_ROLES)
        yield Problem(f"unknown role '{role}'", remedy, mark.find(("role",)).place)
    if turn is not None and (not isinstance(turn, int) or isinstance(turn, bool) or turn < 0):
        yield Problem("`turn` must be a whole number, at least 0", "", mark.find(("turn",)).place)
    for name in ("scenario", "metric"):
        if not isinstance(when.get(name), str | None):
            yield Problem(f"`{name}` must be a string", "put it in quotes", mark.find((name,)).place)


def _wrong_reply(entry: Mapping[str, Any], role: Any, mark: Mark) -> Iterator[Problem]:
    reply, at = entry.get("reply"), mark.find(("reply",))
    if not isinstance(reply, dict | str):
        remedy = "use {evidence: …, reason: …, score: 4}, or a string as a model might write it"
        yield Problem(
            "`reply` is missing" if reply is None else "`reply` must be a mapping or a string",
            remedy,
            at.place,
        )
    elif role == "judge" and isinstance(reply, dict):
        # Each finding of a review has evidence of its own.
        is_review = (entry.get("when") or {}).get("metric") == REVIEW
        for name in ("reason",) if is_review else ("evidence", "reason"):
            if name not in reply:
                yield Problem(f"`{name}` is missing in a judge reply", f'add {name}: "…"', at.place)
            elif not isinstance(reply[name], str):
                yield Problem(f"`{name}` must be a string", "put it in quotes", at.find((name,)).place)


def _pattern(text: Any, mark: Mark, problems: list[Problem]) -> re.Pattern[str] | None:
    if text is None:
        return None
    at = mark.find(("text",))
    written = text if isinstance(text, str) else at.text or str(text)
    try:
        return re.compile(written)
    except re.error as error:
        problems.append(Problem(f"`text` is not a valid regular expression: {error}", "", at.place))
        return None


def make(config: ModelConfig, *, root: Path, **_shared: Any) -> ScriptedModel:
    return ScriptedModel(config.name, root=root)
