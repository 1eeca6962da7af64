"""Parse model replies (structured output). The parser is tolerant of wrapping but strict about the value.

Models wrap JSON in code fences, comments and apologies, or in an object that contains nothing else, and put
reasoning before it. All of that is removed, and the rest must contain exactly one answer. A reply may quote
an answer that an attacker wants the judge to give (prompt injection), before or after the model's own answer.
Nothing distinguishes the two answers. The value must fit the requested type; nothing is guessed, clamped or
filled in."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

ReplyT = TypeVar("ReplyT", bound=BaseModel)

_TAG = re.compile(r"<(/?)(?:think|thinking|thought|reasoning)>", re.IGNORECASE)
_FENCE = re.compile(r"```(?:json)?", re.IGNORECASE)
_BLANK = re.compile(
    r'("[^"\\]*(?:\\.[^"\\]*)*")'  # a text, kept as it is
    r"|//[^\n]*|/\*.*?\*/"  # comments
    r"|,(?=\s*(?:(?://[^\n]*|/\*.*?\*/)\s*)*[}\]])",  # a trailing comma in an object or list
    re.DOTALL,
)
_MAX_ERRORS = 5
_WORDS = frozenset(("evidence", "reason"))
"""The fields that accompany a verdict but are not part of it."""
_WRAPPERS = frozenset(("answer", "verdict", "result", "response", "output", "json"))
"""The keys under which some models place the complete answer."""


class InvalidReply(ValueError):  # noqa: N818  # a parsing result for the model, not for people
    """Raised if the text does not contain an answer of the requested type. The message explains the problem
    to the model."""


def parse_model_reply(text: str, reply: type[ReplyT], *, is_cut: bool = False) -> ReplyT:
    """Parse the one answer in ``text``: the JSON object that contains a key of the verdict.

    The object must fit the requested type; unknown keys are ignored. An identical object that appears twice
    counts as one answer. Two different objects, in either order, are not an answer, and neither is an object
    with a duplicate key. Objects *inside* an object are ignored, unless the outer object is the only object
    in the text and contains only the answer, under a key such as ``answer``.

    If ``is_cut`` is true, the reply was truncated. The only visible object may then be a quotation, so an
    object counts as the answer only if no other text surrounds it. Raise ``InvalidReply`` if the text does
    not contain exactly one answer."""
    answer_text = strip_reasoning(text)
    found = _find_answer(answer_text, _verdict_keys(reply), alone=is_cut)
    if is_cut and answer_text != text.strip():
        raise InvalidReply("it is cut off")
    try:
        value = reply.model_validate(found, extra="ignore")
    except ValidationError as error:
        raise InvalidReply(_explain(error)) from None
    if not _is_finite(value.model_dump()):
        raise InvalidReply("a number is not finite")
    return value


def strip_reasoning(text: str) -> str:
    """Return ``text`` without the reasoning at its beginning, or an empty string if the reasoning does not
    end.

    A later tag may be a quotation, so nothing is removed there. If the reasoning itself contains a tag, the
    end of the reasoning is unknown."""
    text = text.strip()
    tags = list(_TAG.finditer(text))
    if not tags or tags[0].start() or tags[0][1]:
        return text
    if len(tags) > 1 and tags[1][1]:
        return text[tags[1].end() :].strip()
    # It quotes a tag, or does not end: keep it all if the answer may come after its end.
    return text if tags[-1][1] and "{" in text[tags[-1].end() :] else ""


def _verdict_keys(reply: type[BaseModel]) -> frozenset[str]:
    """Return the keys that identify an answer: the required keys, excluding those for explanations."""
    fields = reply.model_fields
    needed = frozenset(name for name, field in fields.items() if field.is_required())
    return (needed - _WORDS) or frozenset(fields)


def _find_answer(text: str, keys: frozenset[str], *, alone: bool) -> dict[str, Any]:
    """Return the only object in a reply that contains one of ``keys``. With ``alone``, the reply must contain
    nothing else."""
    shown = " and ".join(sorted(keys))
    answers: list[dict[str, Any]] = []
    parts = list(_parts(text))
    is_wrapped = False
    for part in parts:
        if part.value is None:
            # A broken answer, perhaps the model's own: a complete one next to it may be a quotation.
            if "}" in part.text and _spelled(keys).search(part.text):
                raise InvalidReply("the JSON is not valid; escape quotation marks inside strings")
            if alone and _FENCE.sub("", part.text).strip():
                raise InvalidReply("it is cut off")
        elif (answer := _unwrap(part.value, keys)) is not None:
            if part.doubled:
                raise InvalidReply(f"the key {part.doubled!r} appears twice in one object")
            answers.append(answer)
            is_wrapped = is_wrapped or answer is not part.value
    if is_wrapped and sum("{" in part.text for part in parts) > 1:
        # A wrapped object next to another one may be a quotation of the agent or a tool.
        raise InvalidReply(
            f"it contains several JSON objects; give a single one, with the top-level keys {shown}"
        )
    if not answers:
        raise InvalidReply(f"it contains no valid JSON object with the keys {shown}")
    if len(answers) > 1 and (count := len({json.dumps(each, sort_keys=True) for each in answers})) > 1:
        raise InvalidReply(
            f"it contains {count} different JSON objects with the keys {shown}; give a single one"
        )
    return answers[-1]


def _spelled(keys: Iterable[str]) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(keys)))})[\"'\\]*\s*[:=]")


def _unwrap(value: dict[str, Any], keys: frozenset[str]) -> dict[str, Any] | None:
    """Return the object if it is the answer, or the answer if the object merely wraps it; otherwise, return
    ``None``."""
    if keys & value.keys():
        return value
    if len(value) != 1:
        return None
    [(name, inner)] = value.items()
    is_answer = name.casefold() in _WRAPPERS and isinstance(inner, dict) and bool(keys & inner.keys())
    return inner if is_answer else None


def _is_finite(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_finite, value.values()))
    if isinstance(value, list | tuple):
        return all(map(_is_finite, value))
    return not isinstance(value, float) or math.isfinite(value)


def _explain(error: ValidationError) -> str:
    """Describe the errors in agenteval's own words.

    The next request contains this text, which must not change when the validation library is upgraded."""
    found = [(".".join(map(str, one["loc"])), _explain_error(one)) for one in error.errors(include_url=False)]
    return "; ".join(f"{where or 'the object'}: {what}" for where, what in found[:_MAX_ERRORS])


def _explain_error(error: ErrorDetails) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if kind == "value_error":
        return str(context["error"])
    if kind in _BOUNDS:
        name, words = _BOUNDS[kind]
        return f"must be {words} {context[name]}"
    known = next((words for begin, words in _WRONG.items() if kind.startswith(begin)), "")
    return known or f"is invalid ({kind.replace('_', ' ')})"


_BOUNDS = {
    "less_than_equal": ("le", "at most"),
    "less_than": ("lt", "less than"),
    "greater_than_equal": ("ge", "at least"),
    "greater_than": ("gt", "greater than"),
    "literal_error": ("expected", "one of"),
    "enum": ("expected", "one of"),
}
_WRONG = {
    "missing": "is missing",
    "int_": "must be a whole number",
    "float_": "must be a number",
    "finite_": "must be a finite number",
    "bool_": "must be true or false",
    "string_type": "must be a string",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "model_": "must be an object",
}
"""The explanations, keyed by the beginning of an error's type."""


class _JsonPart(NamedTuple):
    """Part of a reply: either a top-level object or the text around such objects."""

    text: str
    value: dict[str, Any] | None = None
    doubled: str = ""
    """A key that appears more than once in the object or in an object inside it."""


def _parts(text: str) -> Iterator[_JsonPart]:
    """Yield the objects in a reply, followed by all of the text around them.

    Raise ``InvalidReply`` if an object is truncated."""
    whole = _load(text, text)
    if whole:
        yield whole
        return
    around, begin = [], 0
    while (at := text.find("{", begin)) >= 0:
        around.append(text[begin:at])
        end = _end_of_object(text, at)
        if end is None:
            raise InvalidReply("the JSON is incomplete")
        yield _parse(text[at:end])
        begin = end
    yield _JsonPart("\n".join((*around, text[begin:])))


def _parse(text: str) -> _JsonPart:
    """Parse an object, tolerating comments and trailing commas. Any other text is returned unchanged."""
    return _load(text, text) or _load(text, _BLANK.sub(lambda found: found[1] or "", text)) or _JsonPart(text)


def _load(text: str, written: str) -> _JsonPart | None:
    doubled: list[str] = []

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs):
            [(name, _)] = Counter(name for name, _ in pairs).most_common(1)
            doubled.append(name)
        return made

    try:
        # Control characters within texts are common and harmless; hence not strict.
        value = json.loads(written, strict=False, object_pairs_hook=once)
    except (ValueError, RecursionError):
        return None
    return _JsonPart(text, value, doubled[0] if doubled else "") if isinstance(value, dict) else None


_STRUCTURAL = re.compile(r'[{}"]|\\.', re.DOTALL)


def _end_of_object(text: str, start: int) -> int | None:
    """Return the end position of the object that begins at ``start``, or ``None`` if it is truncated."""
    depth, is_text = 0, False
    for found in _STRUCTURAL.finditer(text, start):
        mark = found[0]
        if mark == '"':
            is_text = not is_text
        elif is_text or mark.startswith("\\"):
            continue
        else:
            depth += 1 if mark == "{" else -1
            if depth == 0:
                return found.end()
    return None
