"""Converts the calls that an agent's own tools answered during a run to mocks (``agenteval run
--record-tools``), and formats the mocks as a YAML file of ``tools``.

A mock is written only for a call whose arguments and answer are fully known and can be expressed in a
scenario file. All other calls are left out, and the head of the file counts them."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from textwrap import indent
from typing import Any, NamedTuple

import yaml

from agenteval.agentside.targets.serialization import is_unserializable_text
from agenteval.core.call_outcomes import json_key
from agenteval.core.folding import nfc
from agenteval.core.json_schema import schema_mistakes, schema_violations
from agenteval.core.json_text import to_json
from agenteval.core.plurals import plural
from agenteval.core.trajectory import ToolCall
from agenteval.files.redaction import MASK, mask_value
from agenteval.files.scenario_checks import argument_names
from agenteval.files.yaml_scalars import MAX_DIGITS, parse_scalar

MAX_RESULT = 20_000
"""The maximum length of a recorded result, in characters of JSON."""
MAX_TOTAL = 10_000_000
"""The maximum length of all recorded results together. A scenario file of twice this size cannot be read."""
_MAX_DEPTH = 60
"""The maximum nesting depth of a recorded value. A file that is nested 100 levels deep cannot be read."""


class KnownTool(NamedTuple):
    """What is known about a tool, independently of its calls."""

    description: str = ""
    parameters: Mapping[str, Any] | None = None
    """The JSON Schema of the arguments, or ``None`` if it is unknown."""
    marks: Mapping[str, bool] = {}
    """The mark (``reads`` or ``writes``) that corresponds to the tool's hints."""
    argument_names: frozenset[str] | None = None
    """The names that arguments may have, or ``None`` if any other names are possible."""
    excluded: str = ""
    """The reason why no scenario can answer for the tool, or an empty string if one can."""


class KnownTools(NamedTuple):
    """The known tools of all agents of a run, keyed by name."""

    tools: Mapping[str, KnownTool] = {}
    are_all: bool = False
    """True if the agents have no other tools, so that another name is, for example, a handoff."""

    def of(self, name: str) -> KnownTool:
        """Return what is known about the tool with this name."""
        if name not in self.tools and self.are_all:
            return KnownTool(excluded="it is none of the agent's tools")
        return self.tools.get(name, KnownTool())


class RecordedAnswer(NamedTuple):
    """One answer of a real tool, in the form of a mock: ``returns`` or ``error``."""

    kind: str
    value: Any

    @property
    def key(self) -> Any:
        """A hashable key that is equal for equal answers."""
        return self.kind, json_key(self.value)


@dataclass
class RecordedRule:
    """The answers to one set of arguments."""

    args: Mapping[str, Any]
    answers: list[RecordedAnswer]
    """The answers in order of occurrence, in one conversation."""
    calls: int = 0
    """The number of calls with these arguments that had a usable answer."""
    conversations: set[int] = field(default_factory=set)
    """The positions of the conversations that contain these calls."""
    others: int = 0
    """The number of conversations that got different answers, which are not recorded."""


@dataclass
class RecordedTool:
    """The rules recorded for one tool."""

    name: str
    known: KnownTool
    rules: list[RecordedRule] = field(default_factory=list)


@dataclass
class ToolRecording:
    """The tools that were recorded, and what was left out."""

    tools: list[RecordedTool]
    left_out: Counter[str] = field(default_factory=Counter)
    """The number of calls that were left out, keyed by reason."""

    @property
    def rules(self) -> list[RecordedRule]:
        return [rule for tool in self.tools for rule in tool.rules]

    @property
    def calls(self) -> int:
        """The number of calls on which the rules are based."""
        return sum(rule.calls for rule in self.rules)

    @property
    def conversations(self) -> int:
        """The number of conversations that contain such a call."""
        return len(set[int]().union(*(rule.conversations for rule in self.rules)))

    @property
    def differing(self) -> int:
        """The number of rules for which other conversations got different answers."""
        return sum(bool(rule.others) for rule in self.rules)

    @property
    def masked(self) -> int:
        """The number of recorded answers in which a secret was masked."""
        return sum(MASK in to_json(answer.value) for rule in self.rules for answer in rule.answers)


def record_tools(
    conversations: Iterable[Sequence[ToolCall]], known: KnownTools, mask: Callable[[str], str]
) -> ToolRecording:
    """Return the answers of the agent's own tools. ``conversations`` is in the order of the run: if two
    conversations got different answers, those of the first one are recorded. ``mask`` masks the secrets in a
    text."""
    rules: dict[str, dict[Any, RecordedRule]] = {}
    made = ToolRecording([])
    size = 0
    for position, calls in enumerate(conversations):
        answers = _answers_of(calls, known, mask, made.left_out)
        for (name, key), (args, found) in answers.items():
            before = rules.get(name, {}).get(key)
            new = found[len(before.answers) if before else 0 :]
            size += sum(len(to_json(answer.value)) for answer in new)
            if new and size > MAX_TOTAL:
                made.left_out["the file would be too large"] += len(found)
                continue
            rule = rules.setdefault(name, {}).setdefault(key, RecordedRule(args, found))
            _merge_answers(rule, found)
            rule.calls += len(found)
            rule.conversations.add(position)
    for name in sorted(rules):
        tool = RecordedTool(name, _usable(known.of(name), rules[name].values(), mask))
        tool.rules = list(_in_order(rules[name].values(), tool.known, made.left_out))
        if tool.rules:
            made.tools.append(tool)
    return made


def _merge_answers(rule: RecordedRule, found: Sequence[RecordedAnswer]) -> None:
    """Add the answers of another conversation. One that went on where the recorded answers end extends
    them."""
    shorter = min(len(rule.answers), len(found))
    if any(one.key != other.key for one, other in zip(rule.answers[:shorter], found, strict=False)):
        rule.others += 1
    elif len(found) > len(rule.answers):
        rule.answers = list(found)


_Answers = dict[tuple[str, Any], tuple[Mapping[str, Any], list[RecordedAnswer]]]


def _answers_of(
    calls: Sequence[ToolCall], known: KnownTools, mask: Callable[[str], str], left_out: Counter[str]
) -> _Answers:
    """Return the answers in one conversation, keyed by tool and arguments. After an answer that cannot be
    recorded, further answers to the same arguments are left out, because their number would be wrong."""
    answers: _Answers = {}
    ended: set[tuple[str, Any]] = set()
    for call in calls:
        if not call.observed or not call.was_made:
            continue
        args = mask_value(call.args, mask)
        reason = known.of(call.name).excluded or _why_unusable(call.name, args)
        if reason:
            left_out[reason] += 1
            continue
        key = (call.name, _args_key(args))
        answer = _answer_of(call, mask)
        if isinstance(answer, RecordedAnswer) and key in ended:
            answer = "an earlier answer to the same arguments was left out"
        if isinstance(answer, str):
            left_out[answer] += 1
            ended.add(key)
            continue
        answers.setdefault(key, (args, []))[1].append(answer)
    return answers


def _args_key(args: Any) -> Any:
    """Return a hashable key that is equal for arguments that one rule cannot tell apart."""
    return json_key(_normalized(args))


def _normalized(value: Any) -> Any:
    if isinstance(value, str):
        return nfc(value)
    if isinstance(value, Mapping):
        return {nfc(key): _normalized(item) for key, item in value.items()}
    return [_normalized(item) for item in value] if isinstance(value, list) else value


def _why_unusable(name: str, args: Any) -> str:
    """Return the reason why no rule can be written for a call, or an empty string."""
    if not name.strip() or not name.isprintable():
        return "the tool has no printable name"
    if not isinstance(args, Mapping):
        return "the arguments are not known"
    if not _is_writable(args):
        return "the arguments cannot be written in a scenario file"
    if _has_reserved_key(args):
        return "an argument has a key that begins with $, which would be a matcher"
    if MASK in to_json(args):
        return "an argument contains a masked secret"
    return ""


def _has_reserved_key(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(key.startswith("$") or _has_reserved_key(item) for key, item in value.items())
    return isinstance(value, list) and any(map(_has_reserved_key, value))


_ORIGIN = re.compile(r" \([^()\n]+\.py:\d+, in [^()\n]+\)\Z")
"""The place of an error in the agent's code, which a run adds to its text."""


def without_origin(error: str) -> str:
    """Return the text of an error without its place in the code, which is different after every change."""
    return _ORIGIN.sub("", error)


def _answer_of(call: ToolCall, mask: Callable[[str], str]) -> RecordedAnswer | str:
    """Return the answer to a call, or the reason why it is left out."""
    result = call.result
    if call.given_up or result is None:
        return "the result is not known"
    value = mask_value(result.value, mask)
    if result.is_error:
        text = value.get("error") if isinstance(value, Mapping) and len(value) == 1 else value
        if text == f"unknown tool '{call.name}'":
            return "the agent has no such tool"  # agenteval's own answer to a client of MCP
        if not isinstance(text, str) or not text.strip():
            return "the error has a form that no mock can give"
        value = without_origin(text)
    if not _is_writable(value):
        return "the result cannot be written in a scenario file"
    if is_unserializable_text(value):
        return "the result is not JSON, so that a part of it is not known"
    if len(to_json(value)) > MAX_RESULT:
        return f"the result is longer than {MAX_RESULT:,} characters"
    return RecordedAnswer("error" if result.is_error else "returns", value)


def _is_writable(value: Any) -> bool:
    """Check whether a scenario file can hold a value: it is finite and not nested too deeply."""
    pending = [(value, 0)]
    while pending:
        item, depth = pending.pop()
        if depth > _MAX_DEPTH:
            return False
        if isinstance(item, float) and not math.isfinite(item):
            return False
        if isinstance(item, int) and item.bit_length() > MAX_DIGITS * 3:  # below MAX_DIGITS digits
            return False
        if isinstance(item, Mapping):
            pending += [(each, depth + 1) for each in item.values()]
        elif isinstance(item, list):
            pending += [(each, depth + 1) for each in item]
    return True


def _usable(known: KnownTool, rules: Iterable[RecordedRule], mask: Callable[[str], str]) -> KnownTool:
    """Return what is known about a tool, without a schema that a scenario file refuses or that refuses a
    recorded call."""
    known = known._replace(description=mask(known.description).strip())
    parameters = mask_value(known.parameters, mask) if known.parameters is not None else None
    if parameters is None and known.argument_names == frozenset():
        parameters = {"type": "object", "properties": {}, "additionalProperties": False}
    if not isinstance(parameters, Mapping) or not _is_accepted(parameters, rules):
        return known._replace(parameters=None)
    return known._replace(parameters=parameters)


def _is_accepted(parameters: Mapping[str, Any], rules: Iterable[RecordedRule]) -> bool:
    if parameters.get("type") != "object" or not _is_writable(parameters) or any(schema_mistakes(parameters)):
        return False
    names = argument_names(parameters)
    return all(
        (names is None or rule.args.keys() <= names)
        and not schema_violations(parameters, rule.args, nullable=False)
        for rule in rules
    )


def _in_order(
    rules: Iterable[RecordedRule], known: KnownTool, left_out: Counter[str]
) -> Iterator[RecordedRule]:
    """Yield the rules of a tool. A rule also answers calls with further arguments, so that those with more
    arguments come first. A call without arguments is left out if nothing would tell it from others."""
    found = sorted(rules, key=lambda rule: (-len(rule.args), to_json(_sorted_keys(rule.args))))
    names = known_argument_names(known, found)
    for rule in found:
        if rule.args or names is not None:
            yield rule
        else:
            left_out[_NO_ARGUMENTS] += rule.calls


_NO_ARGUMENTS = "no rule can tell a call without arguments from others, because the parameters are not known"


def _sorted_keys(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _sorted_keys(value[key]) for key in sorted(value)}
    return [_sorted_keys(item) for item in value] if isinstance(value, list) else value


def known_argument_names(known: KnownTool, rules: Sequence[RecordedRule]) -> frozenset[str] | None:
    """Return the names by which a call with arguments differs from one without: those of the tool's
    parameters, or else those of recorded calls. Return ``None`` if no such name is known and there may be
    any."""
    if (names := argument_names(known.parameters)) is not None:
        return names
    recorded = frozenset(name for rule in rules for name in rule.args)
    if known.argument_names is not None:
        return known.argument_names | recorded
    return recorded or None


# ── the file ─────────────────────────────────────────────────────────────────────────────────────

_HEAD = "# Recorded by `agenteval run --record-tools`; unchanged: "
_HEAD_LINE = re.compile(re.escape(_HEAD) + r"([0-9a-f]{16})")


def format_recording(recording: ToolRecording) -> str:
    """Return the file's text: comments, and ``defaults`` with the ``tools``. The text depends only on the
    recording, and its first line shows whether somebody has edited it since."""
    body = "\n".join([*_comments(recording), "defaults:", *_tool_lines(recording.tools), ""])
    return f"{_HEAD}{_checksum(body)}\n{body}"


def is_unedited_recording(text: str) -> bool:
    """Check whether a file's text is a recording that nobody has edited."""
    head, _, body = text.partition("\n")
    found = _HEAD_LINE.fullmatch(head)
    return found is not None and found[1] == _checksum(body)


def _checksum(body: str) -> str:
    return sha256(body.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _comments(recording: ToolRecording) -> Iterator[str]:
    tools, calls = plural(len(recording.tools), "tool"), plural(recording.calls, "call")
    yield f"# {tools}, from {calls} in {plural(recording.conversations, 'conversation')}."
    yield "# To use it, add `scenarios:` below, or copy `defaults` into a scenario file."
    yield "# `agenteval tools check FILE` compares the tools that only read with the real ones."
    for reason, count in sorted(recording.left_out.items()):
        yield f"# Left out: {plural(count, 'call')}: {reason}."
    if recording.differing:
        yield f"# {plural(recording.differing, 'rule')} below: other conversations got other answers."
    if recording.masked:
        yield f"# {plural(recording.masked, 'answer')} with {MASK} where a secret was masked."


def _tool_lines(tools: Sequence[RecordedTool]) -> Iterator[str]:
    if not tools:
        yield "  tools: {}"
        return
    yield "  tools:"
    for tool in tools:
        yield f"    {_dump(tool.name)}:"
        known = tool.known
        about: dict[str, Any] = {"description": known.description} if known.description else {}
        if known.parameters is not None:
            about["parameters"] = dict(known.parameters)
        about |= known.marks
        if about:
            yield indent(_dump(about), " " * 6)
        yield "      rules:"
        names = known_argument_names(known, tool.rules) or frozenset()
        for rule in tool.rules:
            if rule.others:
                yield f"        # {plural(rule.others, 'other conversation')} got another answer."
            written = indent(_dump(_answer_in_yaml(rule.answers)), " " * 10)
            if condition := _condition(rule.args, names):
                yield f"        - when: {{args: {_dump(condition, flow=True)}}}"
                yield written
            else:
                yield f"        - {written.lstrip()}"


def _condition(args: Mapping[str, Any], names: Iterable[str]) -> Mapping[str, Any]:
    """Return the condition of a rule. For a call without arguments, the condition says that none of the known
    ones is given; it is empty if the tool has none."""
    return args or {name: {"$optional": None} for name in sorted(names)}


def _answer_in_yaml(answers: Sequence[RecordedAnswer]) -> dict[str, Any]:
    steps = list(answers)
    while len(steps) > 1 and steps[-1].key == steps[-2].key:  # the last one of a sequence repeats
        steps.pop()
    written = [{answer.kind: escape_references(answer.value)} for answer in steps]
    return written[0] if len(written) == 1 else {"sequence": written}


def escape_references(value: Any) -> Any:
    """Escape ``${`` in a value, so that a mock returns it unchanged."""
    if isinstance(value, str):
        return value.replace("${", "$${")
    if isinstance(value, Mapping):
        return {key: escape_references(item) for key, item in value.items()}
    return [escape_references(item) for item in value] if isinstance(value, list) else value


class _Dumper(yaml.SafeDumper):
    """Writes strings so that YAML 1.1 and 1.2 read them alike."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


_PLAIN = re.compile(r"[A-Za-z_][\w.@/+-]*(?: [\w.@/+-]+)*", re.ASCII)


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    is_plain = _PLAIN.fullmatch(text) and isinstance(parse_scalar(text), str)
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if is_plain else '"')


_Dumper.add_representer(str, _represent_text)


def _dump(value: Any, *, flow: bool = False) -> str:
    text = yaml.dump(
        value,
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=math.inf,
        default_flow_style=flow,
    )
    return text.removesuffix("\n").removesuffix("\n...")
