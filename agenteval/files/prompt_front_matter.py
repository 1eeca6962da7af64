"""Parses the front matter of prompt files: YAML between two ``---`` lines."""

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
"""The answer that a judge gives if it cannot decide on a label."""
METRIC_NAME = re.compile(r"[^\W\d_][\w .-]*")
"""The pattern for metric names, which occur in YAML keys, in tables and on the command line."""


class PromptFile(NamedTuple):
    """A prompt file, split into its parts."""

    head: LocatedValue
    """The mapping in the front matter."""
    body: str
    """The text below the front matter."""
    place: Place
    """The location at which the body begins."""

    def problem(self, key: str, what: str, remedy: str) -> Problem:
        """Describe a mistake at a key in the front matter."""
        return Problem(what, remedy, self.head.mark.find((key,)).place)


_RUBRIC_REMEDY = "begin with a line '---', then `metric` and `scale` or `labels`, then a line '---'"


def split_front_matter(text: str, source: str, *, remedy: str = _RUBRIC_REMEDY) -> PromptFile:
    """Split a file into front matter and body. Raise ``AuthorError`` with the line if the front matter is
    invalid, or with ``remedy`` if there is none."""
    lines = text.split("\n")
    end = next((n for n, line in enumerate(lines) if n and line.rstrip() == "---"), 0)
    if lines[0].rstrip() != "---" or not end:
        raise AuthorError(Problem("the file has no front matter", remedy, Place(source, 1)))
    # The first line becomes empty, so that the lines of the keys are those of the file.
    front_matter = "\n".join(["", *lines[1:end]])
    document = parse_yaml((front_matter if front_matter.strip() else "{}").encode(), source)
    if not isinstance(document.value, dict):
        raise AuthorError(Problem("the front matter is not a mapping", "use `key: value`", Place(source, 2)))
    head = LocatedValue(document.value, document.mark)
    return PromptFile(head, "\n".join(lines[end + 1 :]), Place(source, end + 2))


# ── labels and scales ────────────────────────────────────────────────────────────────────────────


class Labels(NamedTuple):
    """The labels of a metric."""

    names: tuple[str, ...] = ()
    """The labels, in order."""
    ok: frozenset[str] = frozenset()
    """The labels that do not count as failures."""
    severities: Mapping[str, Severity] = {}
    """The severities that were specified, keyed by label."""


def parse_labels(value: Any) -> Labels:
    """Parse labels from a list, or from a mapping of each label to ``ok`` or a severity. In a list, the label
    ``no failure`` is ok, and the severities of the remaining labels are taken from the built-in table. Raise
    ``ValueError`` with a description of the mistake."""
    meanings = _meanings(value)
    for name, meaning in meanings.items():
        if meaning not in ("ok", "", *Severity):
            raise ValueError(f"'{meaning}' (label '{name}') is not one of ok, low, medium, high or critical")
    ok = frozenset(name for name, meaning in meanings.items() if meaning == "ok")
    if len(meanings) < 2 or not all(name.strip() for name in meanings):
        raise ValueError("a metric needs at least two labels, none of them empty")
    if not ok:
        raise ValueError("every label is a failure; mark at least one label as `ok`")
    if len({normalize_label(name) for name in (*meanings, NOT_ENOUGH_INFORMATION)}) <= len(meanings):
        raise ValueError(f"two labels are identical, or one is '{NOT_ENOUGH_INFORMATION}', which is reserved")
    severities = {name: Severity(each) for name, each in meanings.items() if each not in ("ok", "")}
    return Labels(tuple(meanings), ok, severities)


def _meanings(value: Any) -> dict[str, str]:
    """Return the meaning of each label: ``ok``, a severity, or an empty string if the built-in table defines
    the meaning."""
    if isinstance(value, Mapping):
        return {str(name): str(meaning) for name, meaning in value.items()}
    if isinstance(value, list | tuple):
        return {str(name): "ok" if str(name) == "no failure" else "" for name in value}
    raise ValueError(f"`labels` cannot be {value!r}")


def normalize_label(text: str) -> str:
    """Normalize a label by ignoring case, underscores, hyphens and surrounding white space."""
    return " ".join(re.sub(r"[_\-\s]+", " ", text.casefold()).split())


def parse_scale(value: Any) -> tuple[float, float] | None:
    """Parse ``[lowest, highest]`` as two finite numbers, or return ``None`` for any other value."""
    if not isinstance(value, list | tuple) or len(value) != 2:
        return None
    if any(isinstance(bound, bool) or not isinstance(bound, int | float) for bound in value):
        return None
    low, high = float(value[0]), float(value[1])
    return (low, high) if float("-inf") < low < high < float("inf") else None


# ── values of the keys ───────────────────────────────────────────────────────────────────────────
# Each ``ValueError`` has two arguments: what is wrong, and what to write.


def _validate_metric(value: Any) -> str:
    if isinstance(value, str) and METRIC_NAME.fullmatch(value):
        return value
    what = "the rubric has no `metric`" if value is None else f"`metric` cannot be '{value}'"
    raise ValueError(what, "set `metric` to a name that begins with a letter")


def _validate_scope(value: Any) -> str:
    if value in ("turn", "conversation"):
        return str(value)
    raise ValueError(f"`scope` cannot be '{value}'", "use `turn` or `conversation`")


def _validate_whole(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise ValueError(f"`whole` cannot be '{value}'", "use `true` or `false`")


def _validate_scale(value: Any) -> tuple[float, float]:
    if scale := parse_scale(value):
        return scale
    raise ValueError(
        f"`scale` cannot be {value!r}", "use the lowest and the highest score, as in scale: [1, 5]"
    )


def _validate_labels(value: Any) -> Labels:
    try:
        return parse_labels(value)
    except ValueError as error:
        raise ValueError(str(error), "use, for example, labels: {on brand: ok, off brand: medium}") from None


def _validate_version(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise ValueError(f"`version` cannot be '{value}'", "use a whole number")


Version = Annotated[int, PlainValidator(_validate_version)]


class PromptFrontMatter(Value):
    """The front matter of a prompt that is not a rubric."""

    name: Any = None
    """The name of the prompt."""
    version: Version = 1
    """A number that is incremented when the text changes."""


class RubricFrontMatter(Value):
    """The front matter of a rubric (the prompt for an LLM-as-a-judge metric), with the keys that an author
    may write."""

    metric: Annotated[str, PlainValidator(_validate_metric)] = Field(None, validate_default=True)
    """The name of the metric in reports, in thresholds and on the command line."""
    scope: Annotated[Literal["turn", "conversation"], PlainValidator(_validate_scope)] = "turn"
    """The unit that is judged: each turn, or the conversation as a whole."""
    whole: Annotated[bool, PlainValidator(_validate_whole)] = False
    """True if only whole numbers on the scale are valid."""
    scale: Annotated[tuple[float, float] | None, PlainValidator(_validate_scale)] = None
    """The lowest and the highest score."""
    labels: Annotated[Labels, PlainValidator(_validate_labels)] = Labels()
    """The answers that a judge chooses from, instead of a scale."""
    version: Version = 1
    """A number that is incremented when the text changes."""


class BuiltInRubricFrontMatter(RubricFrontMatter):
    """The front matter of a built-in rubric, which supports additional keys."""

    references: Mapping[str, Any] = {}
    """The references that an answer must contain in addition to its evidence, each with a description for the
    judge."""
    outcomes: Mapping[str, Any] = {}
    """The possible outcomes of a goal with their values. An outcome whose value is null counts neither as a
    success nor as a failure."""
    answer: str = ""
    """The prompt that asks for the answer, if neither a scale nor labels determine the form of the answer."""
    order: int | None = None
    """The position of the metric among the built-in metrics."""
    short: str = ""
    """The heading of the metric's table column."""
    needs: Needs = ""
    """The data, if any, that must be available for the metric to be judged."""
    shared: bool = False
    """True if a single call may judge the metric together with other metrics."""
    unsure: str = NOT_ENOUGH_INFORMATION
    """The answer that a judge gives if it cannot decide."""


def unknown_keys(file: PromptFile, model: type[Value]) -> Iterator[Problem]:
    """Return a problem for each key in the front matter that its model does not define."""
    known = known_keys(model)
    return (
        unknown_key(key, known, file.head.mark.find((key,))) for key in file.head.value if key not in known
    )


def front_matter_problems(
    file: PromptFile, value: Mapping[str, Any], model: type[Value]
) -> Iterator[Problem]:
    """Yield the mistakes in the keys that a model defines, each with its location in the file. ``value`` is
    the front matter, or the value that replaces the front matter."""
    try:
        model.model_validate({key: value[key] for key in known_keys(model) & value.keys()})
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            yield file.problem(str(detail["loc"][0]), *detail["ctx"]["error"].args)
