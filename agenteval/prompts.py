"""Prompt files: found, parsed, rendered in one pass, hashed; and the fences around untrusted text.

A file begins with front matter (YAML between two ``---`` lines). What follows is the prompt: of a
rubric the criterion alone, of other prompts a system part and, after a further ``---`` line, the
prompt itself (or the latter alone). ``${name}`` is a placeholder, ``$${`` writes ``${``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from hashlib import blake2b
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, NamedTuple

from agenteval.errors import AuthorError, Place, Problem, did_you_mean
from agenteval.expressions import expression
from agenteval.plain_files import read_file
from agenteval.score import Severity
from agenteval.yaml_source import Mark, parse

BUILT_IN_METRICS = (
    "helpfulness",
    "coherence",
    "relevance",
    "faithfulness",
    "verbosity",
    "goal_completion",
    "agent_behavior_failure",
    "tool_call_behavior_failure",
)
CRITERIA = "criteria"
_FILES = {
    "judge_rules": "judges/rules.md",
    "answer_score": "judges/answer_score.md",
    "answer_label": "judges/answer_label.md",
    "judge_refute": "judges/refute.md",
    "judge_decide": "judges/decide.md",
    "error_deduplication": "issues/deduplicate.md",
    "simulated_user": "user/simulated_user.md",
    **{name: f"judges/{name}.md" for name in (*BUILT_IN_METRICS, CRITERIA)},
}
RESERVED_NAMES = frozenset((*_FILES, "tool_accuracy", "output_correct", "robustness_pass"))
"""What a custom metric cannot be called: reports and thresholds know these names already."""
NOT_ENOUGH = "not enough to judge"
"""What a judge says instead of a label when it cannot tell; of a criterion: ``not clear``."""


_REFERENCE = expression(r"\$(?:(?P<escaped>\$\{)|\{(?P<name>[^}\n]*)\})")


def render(template: str, values: Mapping[str, str], *, source: str = "") -> str:
    """``template`` with each ``${name}`` replaced, in one pass: what is put in is never read again.

    Raises ``AuthorError`` for a placeholder without a value.
    """

    def put(found: re.Match[str]) -> str:
        if found["escaped"]:
            return "${"
        if found["name"] not in values:
            place = Place(source, template.count("\n", 0, found.start()) + 1) if source else None
            raise AuthorError(_unknown_placeholder(found["name"], values, place))
        return values[found["name"]]

    return _REFERENCE.sub(put, template)


def placeholders(template: str) -> tuple[str, ...]:
    """The names of the placeholders, each once, in order."""
    found = (match["name"] for match in _REFERENCE.finditer(template) if not match["escaped"])
    return tuple(dict.fromkeys(found))


def _unknown_placeholder(name: str, known: Iterable[str], place: Place | None) -> Problem:
    remedy = did_you_mean(name, known) or "write $${ for the text ${"
    return Problem(f"the prompt has a placeholder '${{{name}}}' that nothing fills", remedy, place)


def content_hash(*texts: str) -> str:
    """16 hex digits that depend on the texts alone; line ends of Windows count as others do."""
    digest = blake2b(digest_size=8)
    for text in texts:
        data = text.replace("\r\n", "\n").encode("utf-8", "replace")
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


_SURROGATES = expression("[\ud800-\udfff]")


def fence(text: str) -> str:
    """``text`` between marks that its author could not have written: they hold a hash of it. The same
    text has the same fence, so that equal requests stay equal. Half a surrogate pair, which no
    request can carry, becomes U+FFFD."""
    text = _SURROGATES.sub("\ufffd", text)
    nonce = blake2b(text.encode(), digest_size=6).hexdigest()
    return f"<data-{nonce}>\n{text}\n</data-{nonce}>"


class Rendered(NamedTuple):
    """What goes to a model."""

    system: str
    prompt: str


@dataclass(frozen=True)
class Prompt:
    """A prompt that is shipped: its two templates, and where they are from."""

    name: str
    version: int
    system: str
    prompt: str
    hash: str
    source: str

    @cached_property
    def placeholders(self) -> tuple[str, ...]:
        return placeholders(f"{self.system}\n{self.prompt}")

    def render(self, **values: str) -> Rendered:
        """Both parts filled in. Raises ``AuthorError`` if a placeholder lacks a value, or a value its
        placeholder: what the caller knows must not get lost on the way."""
        lost = sorted(set(values) - set(self.placeholders))
        if lost:
            what = f"the prompt '{self.name}' has no place for '{lost[0]}'"
            raise AuthorError(Problem(what, f"add ${{{lost[0]}}} to it", Place(self.source)))
        return Rendered(
            render(self.system, values, source=self.source), render(self.prompt, values, source=self.source)
        )


@cache
def load_prompt(name: str) -> Prompt:
    """A shipped prompt that is no rubric: ``simulated_user``, ``error_deduplication``, or one of the
    parts that judges' prompts are made of: ``judge_rules``, ``answer_score``, ``answer_label``, and where
    one is asked again ``judge_refute`` and ``judge_decide``."""
    source, text = _shipped(name)
    head = _split(text, source)
    problems = [*_unknown_keys(head, ("name", "version"))]
    version = _version(head, problems)
    if problems:
        raise AuthorError(*problems)
    system, separator, prompt = head.body.partition("\n---\n")
    if not separator:
        system, prompt = "", system
    return Prompt(name, version, system.strip(), prompt.strip(), content_hash(text), source)


def _shipped(name: str) -> tuple[str, str]:
    """The place and the text of a shipped file: in an installed package, else in the checkout."""
    path = _FILES[name]
    packed: Traversable = files("agenteval") / "_prompts"
    if packed.is_dir():
        return f"agenteval/_prompts/{path}", (packed / path).read_text(encoding="utf-8")
    file = Path(__file__).parent.parent / "prompts" / path
    return f"prompts/{path}", file.read_text(encoding="utf-8")


# ── rubrics ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Rubric:
    """A criterion with its scale or its labels.

    ``scope``: ``turn`` or ``conversation``. ``whole``: only whole numbers of the scale count.
    ``ok``: the labels that are no failure; ``severities``: those that the file itself sets.
    ``references``: what an answer refers to beside its evidence, by key, in words for the judge.
    ``hash`` covers all that a judge is told beside the conversation: rules, criterion, form of answer.
    """

    metric: str
    scope: str
    text: str
    scale: tuple[float, float] | None = None
    whole: bool = False
    labels: tuple[str, ...] = ()
    ok: frozenset[str] = frozenset()
    severities: Mapping[str, Severity] = field(default_factory=dict)
    references: Mapping[str, str] = field(default_factory=dict)
    version: int = 1
    hash: str = ""
    source: str = ""

    @property
    def unsure(self) -> str:
        """What a judge answers instead of a label when it cannot tell."""
        return "not clear" if self.metric == CRITERIA else NOT_ENOUGH

    def without(self, label: str) -> Rubric:
        """The same, and one label is not offered: neither as an answer nor in the list of what they mean, nor
        are references that it alone has."""
        if label not in self.labels:
            return self
        text = "\n".join(line for line in self.text.split("\n") if not line.startswith(f"- {label}:"))
        return replace(
            self,
            text=text,
            labels=tuple(each for each in self.labels if each != label),
            references={name: told for name, told in self.references.items() if f'"{label}"' not in told},
        )


def load_rubric(name: str, *, base: str | Path = ".", place: Place | None = None) -> Rubric:
    """A built-in rubric by its name, or an author's by its path (from ``base``); ``place`` is where the
    path is written. Raises ``AuthorError``, with path and line, for whatever is wrong with it."""
    if name in BUILT_IN_METRICS or name == CRITERIA:
        return _built_in_rubric(name)
    if not name.endswith(".md"):
        known = (*BUILT_IN_METRICS, CRITERIA)
        raise AuthorError(Problem(f"no rubric is named '{name}'", did_you_mean(name, known), place))
    path = Path(base) / name
    try:
        text = read_file(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise AuthorError(Problem("the rubric is not UTF-8", "save it as UTF-8", Place(str(path)))) from None
    except OSError as error:
        what = f"the rubric '{name}' cannot be read: {error.strerror}"
        raise AuthorError(Problem(what, f"looked for {path}", place)) from None
    return _parse_rubric(text.replace("\r\n", "\n"), _shown(path), shipped=False)


@cache
def _built_in_rubric(name: str) -> Rubric:
    source, text = _shipped(name)
    return _parse_rubric(text, source, shipped=True)


def _shown(path: Path) -> str:
    """The path as messages have it: short where it lies below the working directory."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


_AGAIN = ("judge_refute", "judge_decide")
_KEYS = ("metric", "scope", "scale", "whole", "labels", "version")
METRIC_NAME = expression(r"[^\W\d_][\w .-]*")
"""How a metric may be called: it stands in YAML keys, tables and on the command line."""


def _parse_rubric(text: str, source: str, *, shipped: bool) -> Rubric:
    head = _split(text, source)
    problems = [*_unknown_keys(head, (*_KEYS, "references") if shipped else _KEYS)]
    metric = _metric_name(head, problems, shipped=shipped)
    scope = head.value.get("scope", "turn")
    if scope not in ("turn", "conversation"):
        problems.append(head.problem("scope", f"scope is '{scope}'", "write turn or conversation"))
    whole = head.value.get("whole", False)
    if not isinstance(whole, bool):
        problems.append(head.problem("whole", f"whole is '{whole}'", "write true or false"))
    scale, labels = _scale(head, problems), _labels(head, problems)
    if ("scale" in head.value) == ("labels" in head.value):
        what = "a rubric needs either scale or labels"
        problems.append(head.problem("labels", what, "write for example scale: [1, 5]"))
    version = _version(head, problems)
    problems += _body_problems(head, known=("criterion", "span") if shipped and metric == CRITERIA else ())
    if problems:
        raise AuthorError(*problems)
    answer = "answer_score" if scale else "answer_label"
    return Rubric(
        metric=metric,
        scope=scope,
        text=head.body.strip(),
        scale=scale,
        whole=whole,
        labels=labels.names,
        ok=labels.ok,
        severities=labels.severities,
        references=head.value.get("references", {}),
        version=version,
        hash=content_hash(text, *(_shipped(name)[1] for name in ("judge_rules", answer, *_AGAIN))),
        source=source,
    )


def _metric_name(head: _Head, problems: list[Problem], *, shipped: bool) -> str:
    metric = head.value.get("metric")
    if not isinstance(metric, str) or not METRIC_NAME.fullmatch(metric):
        what = f"metric is '{metric}'" if metric is not None else "the rubric does not name its metric"
        problems.append(head.problem("metric", what, "write metric: and a name, letters first"))
        return ""
    if not shipped and metric in RESERVED_NAMES:
        problems.append(head.problem("metric", f"'{metric}' is a built-in name", "choose another name"))
    return metric


def _scale(head: _Head, problems: list[Problem]) -> tuple[float, float] | None:
    if "scale" not in head.value:
        return None
    scale = as_scale(head.value["scale"])
    if scale is None:
        what = f"scale is {head.value['scale']!r}"
        problems.append(head.problem("scale", what, "write the lowest and the highest number: scale: [1, 5]"))
    return scale


def as_scale(value: Any) -> tuple[float, float] | None:
    """``[lowest, highest]`` as two finite numbers; ``None`` if it is nothing of the kind."""
    if not isinstance(value, list | tuple) or len(value) != 2:
        return None
    if any(isinstance(bound, bool) or not isinstance(bound, int | float) for bound in value):
        return None
    low, high = float(value[0]), float(value[1])
    return (low, high) if float("-inf") < low < high < float("inf") else None


class Labels(NamedTuple):
    """Labels in their order, which of them are no failure, and the severities that were written."""

    names: tuple[str, ...] = ()
    ok: frozenset[str] = frozenset()
    severities: Mapping[str, Severity] = {}


def _labels(head: _Head, problems: list[Problem]) -> Labels:
    if "labels" not in head.value:
        return Labels()
    try:
        return read_labels(head.value["labels"])
    except ValueError as error:
        problems.append(head.problem("labels", str(error), "write labels: {on brand: ok, off brand: medium}"))
        return Labels()


def read_labels(value: Any) -> Labels:
    """Labels from ``{label: ok or a severity}``, or from a list of which ``no failure`` is ok (and the
    other severities are those of the built-in table). Raises ``ValueError`` with what is wrong."""
    if isinstance(value, Mapping):
        pairs = {str(name): str(meaning) for name, meaning in value.items()}
    elif isinstance(value, list | tuple):
        pairs = {str(name): "ok" if str(name) == "no failure" else "" for name in value}
    else:
        raise ValueError(f"labels are {value!r}")
    severities = {}
    for name, meaning in pairs.items():
        if meaning in set(Severity):
            severities[name] = Severity(meaning)
        elif meaning not in ("ok", ""):
            raise ValueError(f"label '{name}': '{meaning}' is neither ok nor low, medium, high or critical")
    ok = frozenset(name for name, meaning in pairs.items() if meaning == "ok")
    if len(pairs) < 2 or not all(name.strip() for name in pairs):
        raise ValueError("a metric needs two labels or more, and none may be blank")
    if not ok:
        raise ValueError("every label is a failure; say which are ok")
    spelled = {same_label(name) for name in (*pairs, NOT_ENOUGH)}
    if len(spelled) <= len(pairs):
        raise ValueError(f"two labels read alike, or one is '{NOT_ENOUGH}', which every judge may say")
    return Labels(tuple(pairs), ok, severities)


def same_label(text: str) -> str:
    """What is left of a label when case, underscores, hyphens and surrounding blanks do not count."""
    return " ".join(re.sub(r"[_\-\s]+", " ", text.casefold()).split())


def _version(head: _Head, problems: list[Problem]) -> int:
    version = head.value.get("version", 1)
    if isinstance(version, bool) or not isinstance(version, int):
        problems.append(head.problem("version", f"version is '{version}'", "write a whole number"))
        return 1
    return version


def _body_problems(head: _Head, *, known: tuple[str, ...]) -> Iterable[Problem]:
    if not head.body.strip():
        what = "the rubric says nothing after its front matter"
        yield Problem(what, "write what the judge is to look at", Place(head.source, head.first_line))
    for found in _REFERENCE.finditer(head.body):
        if not found["escaped"] and found["name"] not in known:
            line = head.first_line + head.body.count("\n", 0, found.start())
            yield _unknown_placeholder(found["name"], known, Place(head.source, line))


# ── front matter ─────────────────────────────────────────────────────────────────────────────────


class _Head(NamedTuple):
    """The front matter of a file, and its body with the number of its first line."""

    value: Mapping[str, Any]
    mark: Mark
    body: str
    first_line: int
    source: str

    def problem(self, key: str, what: str, remedy: str) -> Problem:
        return Problem(what, remedy, self.mark.find((key,)).place)


def _split(text: str, source: str) -> _Head:
    lines = text.split("\n")
    end = next((n for n, line in enumerate(lines) if n and line.rstrip() == "---"), 0)
    if lines[0].rstrip() != "---" or not end:
        remedy = "begin with a line '---', then metric: and scale: or labels:, then a line '---'"
        raise AuthorError(Problem("the file has no front matter", remedy, Place(source, 1)))
    # The first line stays as an empty one, so that the places of the keys are those of the file.
    document = parse("\n".join(["", *lines[1:end]]).encode(), source)
    if not isinstance(document.value, dict):
        raise AuthorError(Problem("the front matter is no mapping", "write key: value", Place(source, 2)))
    return _Head(document.value, document.mark, "\n".join(lines[end + 1 :]), end + 2, source)


def _unknown_keys(head: _Head, known: Iterable[str]) -> Iterable[Problem]:
    for key in head.value:
        if key not in known:
            yield head.problem(key, f"unknown key '{key}'", did_you_mean(key, known))


def prompt_hashes(rubrics: Iterable[Rubric] = ()) -> dict[str, str]:
    """The hash of each prompt that a run may send, by name, for the record of the run."""
    hashes = {name: load_prompt(name).hash for name in ("simulated_user", "error_deduplication")}
    return {**hashes, **{rubric.metric: rubric.hash for rubric in rubrics}}
