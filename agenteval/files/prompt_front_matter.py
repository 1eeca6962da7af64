"""The front matter of prompt files: YAML between two ``---`` lines, what it may say, and what that means."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, PlainValidator, ValidationError

from agenteval.core.errors import AuthorError, Place, Problem
from agenteval.core.score import Needs, Severity
from agenteval.core.value import Value
from agenteval.files.located_value import LocatedValue
from agenteval.files.validation import known_keys, unknown_key
from agenteval.files.yaml_source import parse_yaml

NOT_ENOUGH_INFORMATION = "not enough to judge"
"""What a judge says instead of a label when it cannot tell."""
METRIC_NAME = re.compile(r"[^\W\d_][\w .-]*")
"""How a metric may be called: it stands in YAML keys, tables and on the command line."""


class PromptFile(NamedTuple):
    """A prompt file, taken apart."""

    head: LocatedValue
    """The mapping in its front matter."""
    body: str
    """All below."""
    place: Place
    """The line at which the body begins."""

    def problem(self, key: str, what: str, remedy: str) -> Problem:
        """Describe what is wrong at a key of the front matter."""
        return Problem(what, remedy, self.head.mark.find((key,)).place)


def split_front_matter(text: str, source: str) -> PromptFile:
    """Split a file into front matter and text. Raises ``AuthorError`` with the line if the front matter is
    broken."""
    lines = text.split("\n")
    end = next((n for n, line in enumerate(lines) if n and line.rstrip() == "---"), 0)
    if lines[0].rstrip() != "---" or not end:
        remedy = "begin with a line '---', then metric: and scale: or labels:, then a line '---'"
        raise AuthorError(Problem("the file has no front matter", remedy, Place(source, 1)))
    # The first line stays as an empty one, so that the places of the keys are those of the file.
    written = "\n".join(["", *lines[1:end]])
    document = parse_yaml((written if written.strip() else "{}").encode(), source)
    if not isinstance(document.value, dict):
        raise AuthorError(Problem("the front matter is not a mapping", "write key: value", Place(source, 2)))
    head = LocatedValue(document.value, document.mark)
    return PromptFile(head, "\n".join(lines[end + 1 :]), Place(source, end + 2))


# ── labels and scales ────────────────────────────────────────────────────────────────────────────


class Labels(NamedTuple):
    """Labels in their order, which of them are no failure, and the severities that were written."""

    names: tuple[str, ...] = ()
    ok: frozenset[str] = frozenset()
    severities: Mapping[str, Severity] = {}


def parse_labels(value: Any) -> Labels:
    """Labels from ``{label: ok or a severity}``, or from a list of which ``no failure`` is ok (and the
    other severities are those of the built-in table). Raises ``ValueError`` with what is wrong."""
    meanings = _meanings(value)
    for name, meaning in meanings.items():
        if meaning not in ("ok", "", *Severity):
            raise ValueError(f"label '{name}': '{meaning}' is neither ok nor low, medium, high or critical")
    ok = frozenset(name for name, meaning in meanings.items() if meaning == "ok")
    if len(meanings) < 2 or not all(name.strip() for name in meanings):
        raise ValueError("a metric needs two labels or more, and none may be blank")
    if not ok:
        raise ValueError("every label is a failure; say which are ok")
    if len({normalize_label(name) for name in (*meanings, NOT_ENOUGH_INFORMATION)}) <= len(meanings):
        raise ValueError(
            f"two labels are the same, or one is '{NOT_ENOUGH_INFORMATION}', which every judge may say"
        )
    severities = {name: Severity(each) for name, each in meanings.items() if each not in ("ok", "")}
    return Labels(tuple(meanings), ok, severities)


def _meanings(value: Any) -> dict[str, str]:
    """Return by label ``ok``, a severity, or nothing if the built-in table defines it."""
    if isinstance(value, Mapping):
        return {str(name): str(meaning) for name, meaning in value.items()}
    if isinstance(value, list | tuple):
        return {str(name): "ok" if str(name) == "no failure" else "" for name in value}
    raise ValueError(f"labels are {value!r}")


def normalize_label(text: str) -> str:
    """Normalize a label: case, underscores, hyphens and surrounding blanks do not count."""
    return " ".join(re.sub(r"[_\-\s]+", " ", text.casefold()).split())


def parse_scale(value: Any) -> tuple[float, float] | None:
    """Parse ``[lowest, highest]`` as two finite numbers; return ``None`` for anything else."""
    if not isinstance(value, list | tuple) or len(value) != 2:
        return None
    if any(isinstance(bound, bool) or not isinstance(bound, int | float) for bound in value):
        return None
    low, high = float(value[0]), float(value[1])
    return (low, high) if float("-inf") < low < high < float("inf") else None


# ── what each key takes ──────────────────────────────────────────────────────────────────────────
# A ``ValueError`` has two arguments: what is wrong, and what to write.


def _validate_metric(value: Any) -> str:
    if isinstance(value, str) and METRIC_NAME.fullmatch(value):
        return value
    what = "the rubric does not name its metric" if value is None else f"metric is '{value}'"
    raise ValueError(what, "write metric: and a name, letters first")


def _validate_scope(value: Any) -> str:
    if value in ("turn", "conversation"):
        return str(value)
    raise ValueError(f"scope is '{value}'", "write turn or conversation")


def _validate_whole(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise ValueError(f"whole is '{value}'", "write true or false")


def _validate_scale(value: Any) -> tuple[float, float]:
    if scale := parse_scale(value):
        return scale
    raise ValueError(f"scale is {value!r}", "write the lowest and the highest number: scale: [1, 5]")


def _validate_labels(value: Any) -> Labels:
    try:
        return parse_labels(value)
    except ValueError as error:
        raise ValueError(str(error), "write labels: {on brand: ok, off brand: medium}") from None


def _validate_version(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise ValueError(f"version is '{value}'", "write a whole number")


Version = Annotated[int, PlainValidator(_validate_version)]


class PromptFrontMatter(Value):
    """Of a prompt that is no rubric."""

    name: Any = None
    """Which prompt it is."""
    version: Version = 1
    """Counted up when the text changes."""


class RubricFrontMatter(Value):
    """Of a rubric, with the keys that an author may write."""

    metric: Annotated[str, PlainValidator(_validate_metric)] = Field(None, validate_default=True)
    """Name in reports, thresholds and on the command line."""
    scope: Annotated[Literal["turn", "conversation"], PlainValidator(_validate_scope)] = "turn"
    """Whether each turn is judged, or the conversation as a whole."""
    whole: Annotated[bool, PlainValidator(_validate_whole)] = False
    """Whether only whole numbers of the scale count."""
    scale: Annotated[tuple[float, float] | None, PlainValidator(_validate_scale)] = None
    """The lowest and the highest score."""
    labels: Annotated[Labels, PlainValidator(_validate_labels)] = Labels()
    """The answers that a judge chooses from, instead of a scale."""
    version: Version = 1
    """Counted up when the text changes."""


class BuiltInRubricFrontMatter(RubricFrontMatter):
    """Of a shipped rubric, which says more."""

    references: Mapping[str, Any] = {}
    """What an answer refers to beside its evidence, by key, in words for the judge."""
    outcomes: Mapping[str, Any] = {}
    """What may have become of a goal, and what that is worth; null: neither way."""
    answer: str = ""
    """The prompt that asks for the answer, where scale or labels do not say it."""
    order: int | None = None
    """Place among the built-in metrics."""
    short: str = ""
    """Head of a column."""
    needs: Needs = ""
    """Without what it is not judged."""
    shared: bool = False
    """Whether it may be asked with others in one call."""
    unsure: str = NOT_ENOUGH_INFORMATION
    """What a judge answers when it cannot tell."""


def unknown_keys(file: PromptFile, model: type[Value]) -> Iterator[Problem]:
    """Complain about each key of the front matter that its model does not know."""
    known = known_keys(model)
    return (
        unknown_key(key, known, file.head.mark.find((key,))) for key in file.head.value if key not in known
    )


def front_matter_problems(
    file: PromptFile, value: Mapping[str, Any], model: type[Value]
) -> Iterator[Problem]:
    """Return what is wrong with the keys that a model defines, each at its place in the file. ``value`` is
    the front matter, or what replaces it."""
    try:
        model.model_validate({key: value[key] for key in known_keys(model) & value.keys()})
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            yield file.problem(str(detail["loc"][0]), *detail["ctx"]["error"].args)
