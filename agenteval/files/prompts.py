"""Prompt files: found, parsed, rendered in one pass, hashed; and the fences around untrusted text.

A file begins with front matter (YAML between two ``---`` lines). What follows is the prompt: of a
rubric the criterion alone, of other prompts a system part and, after a further ``---`` line, the
prompt itself (or the latter alone). ``${name}`` is a placeholder, ``$${`` writes ``${``.

A project may put files of its own in place of some: ``Prompts`` is the set that a run goes by.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, NamedTuple

from agenteval.core.errors import AuthorError, Place, Problem, did_you_mean
from agenteval.core.score import Needs, Severity
from agenteval.files.plain_files import read_text
from agenteval.files.yaml_source import Mark, parse


def _shipped_folder() -> Traversable:
    """In an installed package, else in the checkout."""
    packed: Traversable = files("agenteval") / "_prompts"
    return packed if packed.is_dir() else Path(__file__).parents[2] / "prompts"


_ORDER = re.compile(r"^order: (\d+)$", re.MULTILINE)


def _built_in_metrics() -> tuple[str, ...]:
    """The rubrics of ``prompts/judges`` that have an ``order``, in that order. This alone makes a metric a
    built-in one."""
    found = []
    for file in (_shipped_folder() / "judges").iterdir():
        head = file.read_text(encoding="utf-8").partition("\n---\n")[0] if file.name.endswith(".md") else ""
        if order := _ORDER.search(head):
            found.append((int(order[1]), file.name.removesuffix(".md")))
    return tuple(name for _, name in sorted(found))


BUILT_IN_METRICS = _built_in_metrics()
CRITERIA = "criteria"
USER_REVIEW = "user_review"
_FILES = {
    "judge_rules": "judges/rules.md",
    "answer_score": "judges/answer_score.md",
    "answer_label": "judges/answer_label.md",
    "answer_outcome": "judges/answer_outcome.md",
    "answer_policy": "judges/answer_policy.md",
    "answer_shared": "judges/answer_shared.md",
    "judge_refute": "judges/refute.md",
    "judge_decide": "judges/decide.md",
    "judge_raised": "judges/raised.md",
    "judge_refute_ruled_out": "judges/refute_ruled_out.md",
    "judge_refute_withdrawn": "judges/refute_withdrawn.md",
    "judge_decide_ruled_out": "judges/decide_ruled_out.md",
    "judge_twin": "judges/twin.md",
    "error_deduplication": "issues/deduplicate.md",
    "simulated_user": "user/simulated_user.md",
    USER_REVIEW: "user/review.md",
    **{name: f"judges/{name}.md" for name in (*BUILT_IN_METRICS, CRITERIA)},
}
PROMPT_FILES = tuple(_FILES.values())
RESERVED_NAMES = frozenset((*_FILES, "tool_accuracy", "output_correct", "robustness_pass"))
"""What a custom metric cannot be called: reports and thresholds know these names already."""
NOT_ENOUGH = "not enough to judge"
"""What a judge says instead of a label when it cannot tell."""


_REFERENCE = re.compile(r"\$(?:(?P<escaped>\$\{)|\{(?P<name>[^}\n]*)\})")


def render(template: str, values: Mapping[str, str], *, source: str = "") -> str:
    """``template`` with each ``${name}`` replaced, in one pass: what is put in is never read again.

    Raises ``AuthorError`` for a placeholder without a value.
    """

    def put(found: re.Match[str]) -> str:
        if found["escaped"]:
            return "${"
        if found["name"] not in values:
            place = _place_in(template, found.start(), source, 1) if source else None
            raise AuthorError(_unknown_placeholder(found["name"], values, place))
        return values[found["name"]]

    return _REFERENCE.sub(put, template)


def placeholders(template: str) -> tuple[str, ...]:
    """The names of the placeholders, each once, in order."""
    found = (match["name"] for match in _REFERENCE.finditer(template) if not match["escaped"])
    return tuple(dict.fromkeys(found))


def _place_in(text: str, at: int, source: str, first_line: int) -> Place:
    """Where a position of a text is, whose first line has the number ``first_line``."""
    column = at - text.rfind("\n", 0, at)
    return Place(source, first_line + text.count("\n", 0, at), column)


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


_SURROGATES = re.compile("[\ud800-\udfff]")


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
    """A prompt that is not a rubric: its two templates, and where they are from."""

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


def _parse_prompt(name: str, text: str, source: str, shipped: Prompt | None = None) -> Prompt:
    """``shipped``: the prompt whose place it takes; it must have its parts and its placeholders."""
    head = _split(text, source)
    problems = [*_unknown_keys(head, _PROMPT_KEYS)]
    version = _version(head, problems)
    system, separator, prompt = head.body.partition("\n---\n")
    if not separator:
        system, prompt = "", system
    made = Prompt(name, version, system.strip(), prompt.strip(), content_hash(text), source)
    if shipped is not None:
        problems += [*_not_its_name(head, "name", name), *_other_parts(head, made, shipped)]
        problems += _placeholder_problems(head, shipped.placeholders)
    if problems:
        raise AuthorError(*problems)
    return made


_PROMPT_KEYS = ("name", "version")


def _not_its_name(head: _Head, key: str, name: str) -> Iterator[Problem]:
    if (given := head.value.get(key, name)) != name:
        remedy = f"write {key}: {name}, or leave it out"
        yield head.problem(key, f"the file replaces '{name}', but says {key}: {given}", remedy)


def _other_parts(head: _Head, made: Prompt, shipped: Prompt) -> Iterator[Problem]:
    """A system text is sent as such; where there is none, what stands for one would be lost."""
    at = Place(head.source, head.first_line, 1)
    if shipped.system and not (made.system and made.prompt):
        remedy = "write the system text, a line '---', and the prompt"
        yield Problem("the prompt does not have its two parts", remedy, at)
    elif not shipped.system and (made.system or not made.prompt):
        yield Problem("the prompt must be a single, non-empty part", "remove the extra line '---'", at)


def _placeholder_problems(head: _Head, known: tuple[str, ...]) -> Iterator[Problem]:
    """Those that nothing fills; and those that are not there, since what they stand for would not be told."""
    for found in _REFERENCE.finditer(head.body):
        if not found["escaped"] and found["name"] not in known:
            place = _place_in(head.body, found.start(), head.source, head.first_line)
            yield _unknown_placeholder(found["name"], known, place)
    there = placeholders(head.body)
    for name in known:
        if name not in there:
            what = f"the prompt has no placeholder '${{{name}}}'"
            yield Problem(what, f"add ${{{name}}} to it", Place(head.source, head.first_line, 1))


def _shipped(name: str) -> tuple[str, str]:
    """The place and the text of a shipped file: in an installed package, else in the checkout."""
    path = _FILES[name]
    folder = _shipped_folder()
    shown = "prompts" if isinstance(folder, Path) and folder.name == "prompts" else "agenteval/_prompts"
    return f"{shown}/{path}", (folder / path).read_text(encoding="utf-8")


# ── rubrics ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Rubric:
    """A criterion with its scale, its labels or its outcomes.

    ``scope``: ``turn`` or ``conversation``. ``whole``: only whole numbers of the scale count.
    ``ok``: the labels that are no failure; ``severities``: those that the file itself sets.
    ``references``: what an answer refers to beside its evidence, by key, in words for the judge.
    ``outcomes``: what may have become of a goal, and what it is worth (``None``: neither way). ``form``: the
    prompt that asks for the answer.
    ``hash`` covers all that a judge is told beside the conversation: rules, criterion, form of answer.
    ``prompts``: where the rules and the form are from. Of built-in ones alone: ``short``, the head of
    a column; ``needs``, without what it is not judged; ``shared``, whether it may be asked with others in one
    call; ``unsure``, what a judge answers when it cannot tell.
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
    outcomes: Mapping[str, float | None] = field(default_factory=dict)
    form: str = "answer_score"
    short: str = ""
    needs: Needs = ""
    shared: bool = False
    unsure: str = NOT_ENOUGH
    version: int = 1
    hash: str = ""
    source: str = ""
    prompts: Prompts = field(default_factory=lambda: SHIPPED, compare=False, repr=False)

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

    def asking(self, question: str) -> Rubric:
        """The same, and ``question`` is asked behind it, word for word."""
        return replace(self, text=f"{self.text}\n\n{question.replace('${', '$${')}")

    def with_reference(self, name: str, text: str) -> Rubric:
        """The same, and one reference more is asked for."""
        return replace(self, references={**self.references, name: text})


def _read(name: str, base: str | Path, what: str, place: Place | None) -> tuple[str, str]:
    """The source and the text of an author's file; ``place`` is where its path is written."""
    path = Path(base) / name
    try:
        text = read_text(path, what)
    except OSError as error:
        told = f"the {what} '{name}' cannot be read: {error.strerror}"
        raise AuthorError(Problem(told, f"looked for {path}", place)) from None
    return _shown(path), text


def _shown(path: Path) -> str:
    """The path as messages have it: short where it lies below the working directory."""
    try:
        return path.resolve().relative_to(Path.cwd()).as_posix()
    except ValueError:
        return str(path)


_AGAIN = ("judge_refute", "judge_decide")
_RAISED = ("judge_raised",)
_OF_GOALS = ("judge_refute_ruled_out", "judge_refute_withdrawn", "judge_decide_ruled_out", "judge_twin")
_KEYS = ("metric", "scope", "scale", "whole", "labels", "version")
_TABLE_KEYS = ("order", "short", "needs", "shared", "unsure")
"""What tables say of a metric and a judge is not told: no part of the hash."""
_SHIPPED_KEYS = ("references", "outcomes", "answer", *_TABLE_KEYS)
_TABLE_LINES = re.compile(rf"^(?:{'|'.join(_TABLE_KEYS)}): .*\n", re.MULTILINE)
METRIC_NAME = re.compile(r"[^\W\d_][\w .-]*")
"""How a metric may be called: it stands in YAML keys, tables and on the command line."""


def _parse_rubric(
    text: str, source: str, prompts: Prompts, *, shipped: bool = False, over: _Head | None = None
) -> Rubric:
    """``shipped``: its name is a built-in one. ``over``: the front matter of the shipped rubric whose place
    it takes."""
    head = _split(text, source)
    problems = [*_unknown_keys(head, (*_KEYS, *_SHIPPED_KEYS) if shipped else _KEYS)]
    known = placeholders((over or head).body) if shipped else ()  # of one that is shipped, they are filled in
    if over is not None:
        problems += _other_terms(head, over)
        head = head._replace(value={**over.value, **head.value})
    metric = _metric_name(head, problems, shipped=shipped)
    scope = head.value.get("scope", "turn")
    if scope not in ("turn", "conversation"):
        problems.append(head.problem("scope", f"scope is '{scope}'", "write turn or conversation"))
    whole = head.value.get("whole", False)
    if not isinstance(whole, bool):
        problems.append(head.problem("whole", f"whole is '{whole}'", "write true or false"))
    scale, labels = _scale(head, problems), _labels(head, problems)
    outcomes = head.value.get("outcomes", {})
    if not outcomes and ("scale" in head.value) == ("labels" in head.value):
        what = "a rubric needs either scale or labels"
        problems.append(head.problem("labels", what, "write for example scale: [1, 5]"))
    version = _version(head, problems)
    if not head.body.strip():
        what = "the rubric says nothing after its front matter"
        problems.append(Problem(what, "write what the judge is to look at", Place(source, head.first_line)))
    problems += _placeholder_problems(head, known)
    if problems:
        raise AuthorError(*problems)
    form = head.value.get("answer", "answer_score" if scale else "answer_label")
    parts = (prompts.text(name)[1] for name in beside(form))
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
        outcomes=outcomes,
        form=form,
        **{key: head.value[key] for key in _TABLE_KEYS if key != "order" and key in head.value},
        version=version,
        hash=content_hash(_judged(text), *parts),
        source=source,
        prompts=prompts,
    )


def _judged(text: str) -> str:
    """A file without what a judge is not told."""
    front, end, body = text.partition("\n---\n")
    return f"{_TABLE_LINES.sub('', front + chr(10)).removesuffix(chr(10))}{end}{body}"


def beside(form: str) -> tuple[str, ...]:
    """The prompts that a judge is sent beside a rubric whose answer has this form."""
    more = {"answer_outcome": _OF_GOALS, "answer_label": _RAISED}
    return ("judge_rules", form, *_AGAIN, *more.get(form, ()))


def _other_terms(head: _Head, shipped: _Head) -> Iterator[Problem]:
    """What an own text of a built-in metric says of it and is not so: scores, thresholds, severities and
    comparisons rest on the metric as it is. What it leaves out is as it is."""
    for key in head.value:
        if (
            key in (*_KEYS, "outcomes", "answer", *_TABLE_KEYS)
            and key != "version"
            and head.value[key] != shipped.value.get(key, _LEFT_OUT.get(key))
        ):
            what = f"{key} is not that of the built-in metric"
            remedy = "leave it out, or make it a custom metric (custom_metrics)"
            yield head.problem(key, what, remedy)
    asked = shipped.value.get("references", {})
    if (own := head.value.get("references", asked)) is not asked:
        texts = own if isinstance(own, dict) and all(isinstance(text, str) for text in own.values()) else {}
        if texts.keys() != asked.keys():
            what = "references are not those of the built-in metric"
            remedy = f"give a text for each of {', '.join(asked)}, or leave it out"
            yield head.problem("references", what, remedy if asked else "leave it out")


_LEFT_OUT: Mapping[str, Any] = {"scope": "turn", "whole": False}


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
        raise ValueError(f"two labels are the same, or one is '{NOT_ENOUGH}', which every judge may say")
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
    written = "\n".join(["", *lines[1:end]])
    document = parse((written if written.strip() else "{}").encode(), source)
    if not isinstance(document.value, dict):
        raise AuthorError(Problem("the front matter is not a mapping", "write key: value", Place(source, 2)))
    return _Head(document.value, document.mark, "\n".join(lines[end + 1 :]), end + 2, source)


def _unknown_keys(head: _Head, known: Iterable[str]) -> Iterable[Problem]:
    for key in head.value:
        if key not in known:
            yield head.problem(key, f"unknown key '{key}'", did_you_mean(key, known))


# ── the set of a run ─────────────────────────────────────────────────────────────────────────────


class Prompts:
    """All prompts that a run goes by: those that are shipped, or a project's own in their place.

    ``own``: by name, its path among the shipped ones, where the project's file is, and its text.
    """

    def __init__(self, own: Mapping[str, _Own] | None = None) -> None:
        self._own = own or {}
        self._prompts: dict[str, Prompt] = {}
        self._rubrics: dict[str, Rubric] = {}

    @property
    def overridden(self) -> dict[str, str]:
        """By path among the shipped ones (``judges/helpfulness.md``), the file that is in its place."""
        return {_FILES[name]: own.source for name, own in self._own.items()}

    def own_parts(self, names: Iterable[str]) -> dict[str, str]:
        """The same, of some prompts."""
        return {_FILES[name]: self._own[name].source for name in names if name in self._own}

    def text(self, name: str) -> tuple[str, str]:
        """Where a prompt is from, and its file as it is."""
        own = self._own.get(name)
        return (own.source, own.text) if own else _shipped(name)

    def prompt(self, name: str) -> Prompt:
        """A prompt that is no rubric: ``simulated_user``, ``error_deduplication``, or one of the parts that
        judges' prompts are made of, such as ``judge_rules``."""
        if name not in self._prompts:
            source, text = self.text(name)
            shipped = SHIPPED.prompt(name) if name in self._own else None
            self._prompts[name] = _parse_prompt(name, text, source, shipped)
        return self._prompts[name]

    def rubric(self, name: str) -> Rubric:
        """A built-in rubric. Raises ``AuthorError`` for a name that none has."""
        if name not in self._rubrics:
            known = (*BUILT_IN_METRICS, CRITERIA)
            if name not in known:
                raise AuthorError(Problem(f"no rubric is named '{name}'", did_you_mean(name, known)))
            source, text = self.text(name)
            over = _split(_shipped(name)[1], source) if name in self._own else None
            self._rubrics[name] = _parse_rubric(text, source, self, shipped=True, over=over)
        return self._rubrics[name]

    def custom(self, path: str, *, base: str | Path = ".", place: Place | None = None) -> Rubric:
        """An author's rubric by its path (from ``base``); ``place`` is where the path is written. Raises
        ``AuthorError``, with path and line, for whatever is wrong with it."""
        source, text = _read(path, base, "rubric", place)
        return _parse_rubric(text, source, self)

    def hashes(self, rubrics: Iterable[Rubric] = ()) -> dict[str, str]:
        """The hash of each prompt that a run may send, by name, for the record of the run."""
        hashes = {
            name: self.prompt(name).hash for name in ("simulated_user", USER_REVIEW, "error_deduplication")
        }
        return {**hashes, **{rubric.metric: rubric.hash for rubric in rubrics}}


class _Own(NamedTuple):
    source: str
    text: str


SHIPPED: Prompts = Prompts()


def load_prompts(
    files: Mapping[str, str],
    base: str | Path = ".",
    *,
    place_of: Callable[[str], Place | None] = lambda _: None,
) -> Prompts:
    """The shipped prompts, those of ``files`` (by path among the shipped ones) read from ``base`` instead.
    ``place_of`` tells where an entry is written. Raises ``AuthorError`` with all that is wrong."""
    if not files:
        return SHIPPED
    names = {path: name for name, path in _FILES.items()}
    own: dict[str, _Own] = {}
    problems: list[Problem] = []
    for path, file in files.items():
        if path not in names:
            problems.append(
                Problem(f"no shipped prompt is named '{path}'", did_you_mean(path, names), place_of(path))
            )
            continue
        try:
            own[names[path]] = _Own(*_read(file, base, "prompt", place_of(path)))
        except AuthorError as error:
            problems += error.problems
    made = Prompts(own)
    for name in own:
        try:
            made.rubric(name) if name in (*BUILT_IN_METRICS, CRITERIA) else made.prompt(name)
        except AuthorError as error:
            problems += error.problems
    if problems:
        raise AuthorError(*problems)
    return made


def load_rubric(name: str, *, base: str | Path = ".", place: Place | None = None) -> Rubric:
    return SHIPPED.custom(name, base=base, place=place) if name.endswith(".md") else SHIPPED.rubric(name)


load_prompt = SHIPPED.prompt
prompt_hashes = SHIPPED.hashes
