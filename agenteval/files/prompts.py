"""Loads the prompts for a run: the built-in prompts, and the project's files that override some of them.

A file begins with front matter (``prompt_front_matter``), followed by the prompt (``prompt_templates``). In a
rubric, the prompt is only the criterion. In any other file, the prompt may be preceded by a system prompt and
another ``---`` line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, NamedTuple

from agenteval.core.errors import AuthorError, Place, Problem, did_you_mean, parse_place
from agenteval.core.scenario import Scenario
from agenteval.core.score import Needs, Severity
from agenteval.files.prompt_front_matter import (
    NOT_ENOUGH_INFORMATION,
    BuiltInRubricFrontMatter,
    PromptFile,
    PromptFrontMatter,
    RubricFrontMatter,
    front_matter_problems,
    split_front_matter,
    unknown_keys,
)
from agenteval.files.prompt_templates import (
    RenderedPrompt,
    content_hash,
    find_placeholders,
    placeholder_problems,
    render_template,
)
from agenteval.files.regular_files import read_text, wrap_read_errors


def _shipped_folder() -> Traversable:
    """Return the folder with the built-in prompts, in the installed package or otherwise in the source
    checkout."""
    packed: Traversable = files("agenteval") / "_prompts"
    return packed if packed.is_dir() else Path(__file__).parents[2] / "prompts"


_ORDER = re.compile(r"^order: (\d+)$", re.MULTILINE)


def _built_in_metrics() -> tuple[str, ...]:
    """Return the names of the rubrics in ``prompts/judges`` that have an ``order``, such as ``helpfulness``
    and ``faithfulness``, sorted by ``order``. Only the ``order`` key makes a metric a built-in metric."""
    found = []
    for file in (_shipped_folder() / "judges").iterdir():
        head = file.read_text(encoding="utf-8").partition("\n---\n")[0] if file.name.endswith(".md") else ""
        if order := _ORDER.search(head):
            found.append((int(order[1]), file.name.removesuffix(".md")))
    return tuple(name for _, name in sorted(found))


BUILT_IN_METRICS = _built_in_metrics()
CRITERIA = "criteria"
FAULT_RESPONSE = "fault_response"
RUBRICS = (*BUILT_IN_METRICS, CRITERIA, FAULT_RESPONSE)
"""All shipped rubrics."""
SIMULATED_USER = "simulated_user"
USER_REVIEW = "user_review"
USER_TOOLS = "user_tools"
_FILES = {
    "judge_rules": "judges/rules.md",
    "answer_score": "judges/answer_score.md",
    "answer_label": "judges/answer_label.md",
    "answer_outcome": "judges/answer_outcome.md",
    "answer_policy": "judges/answer_policy.md",
    "answer_shared": "judges/answer_shared.md",
    "answer_review": "judges/answer_review.md",
    "judge_refute": "judges/refute.md",
    "judge_decide": "judges/decide.md",
    "judge_raised": "judges/raised.md",
    "judge_refute_ruled_out": "judges/refute_ruled_out.md",
    "judge_refute_withdrawn": "judges/refute_withdrawn.md",
    "judge_decide_ruled_out": "judges/decide_ruled_out.md",
    "judge_twin": "judges/twin.md",
    "error_deduplication": "issues/deduplicate.md",
    SIMULATED_USER: "user/simulated_user.md",
    USER_REVIEW: "user/review.md",
    USER_TOOLS: "user/tools.md",
    **{name: f"judges/{name}.md" for name in RUBRICS},
}
PROMPT_FILES = tuple(_FILES.values())
RESERVED_NAMES = frozenset((*_FILES, "tool_accuracy", "output_correct", "robustness_pass"))
"""Names that are not allowed for a custom metric, because reports and thresholds already use them."""


@dataclass(frozen=True)
class Prompt:
    """A prompt that is not a rubric, with its two templates and their source."""

    name: str
    version: int
    system: str
    prompt: str
    hash: str
    source: str

    @cached_property
    def placeholders(self) -> tuple[str, ...]:
        return find_placeholders(f"{self.system}\n{self.prompt}")

    def render(self, **values: str) -> RenderedPrompt:
        """Fill in both templates. Raise ``AuthorError`` if a placeholder has no value or a value has no
        placeholder, because every value that the caller passes must be used."""
        unused = sorted(set(values) - set(self.placeholders))
        if unused:
            what = f"the prompt '{self.name}' has no placeholder for '{unused[0]}'"
            raise AuthorError(Problem(what, f"add ${{{unused[0]}}} to it", Place(self.source)))
        return RenderedPrompt(
            render_template(self.system, values, source=self.source),
            render_template(self.prompt, values, source=self.source),
        )


def _parse_prompt(name: str, text: str, source: str, shipped: Prompt | None = None) -> Prompt:
    """Parse a prompt file. ``shipped`` is the built-in prompt that the file overrides; both must have the
    same parts and placeholders."""
    file = split_front_matter(text, source, remedy="begin with two lines '---', followed by the prompt")
    problems = [
        *unknown_keys(file, PromptFrontMatter),
        *front_matter_problems(file, file.head.value, PromptFrontMatter),
    ]
    system, separator, prompt = file.body.partition("\n---\n")
    if not separator:
        system, prompt = "", system
    system, prompt = system.strip(), prompt.strip()
    if shipped is not None:
        problems += _name_problems(file, name)
        problems += _part_problems(system, prompt, shipped, file.place)
        problems += placeholder_problems(file.body, shipped.placeholders, file.place)
    if problems:
        raise AuthorError(*problems)
    head = PromptFrontMatter.model_validate(file.head.value)
    return Prompt(name, head.version, system, prompt, content_hash(text), source)


def _name_problems(file: PromptFile, name: str) -> Iterator[Problem]:
    if (written_name := file.head.value.get("name", name)) != name:
        remedy = f"use `name: {name}`, or remove `name`"
        yield file.problem("name", f"the file replaces '{name}', but its `name` is '{written_name}'", remedy)


def _part_problems(system: str, prompt: str, shipped: Prompt, at: Place) -> Iterator[Problem]:
    """Check that a prompt has the same parts as the built-in prompt that it overrides. Without a system part,
    no system prompt would be sent."""
    at = at._replace(column=1)
    if shipped.system and not (system and prompt):
        remedy = "use the system text, a line '---', and the prompt"
        yield Problem("the prompt must have two parts", remedy, at)
    elif not shipped.system and (system or not prompt):
        yield Problem("the prompt must be a single, non-empty part", "remove the extra line '---'", at)


def _read_shipped(name: str) -> tuple[str, str]:
    """Return the display path and the content of a built-in file."""
    path = _FILES[name]
    folder = _shipped_folder()
    shown = "prompts" if isinstance(folder, Path) and folder.name == "prompts" else "agenteval/_prompts"
    return f"{shown}/{path}", (folder / path).read_text(encoding="utf-8")


# ── rubrics ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Rubric:
    """A judge rubric: the criterion for an LLM-as-a-judge metric, with its scale, labels or outcomes."""

    metric: str
    scope: str
    """``turn`` or ``conversation``."""
    text: str
    scale: tuple[float, float] | None = None
    whole: bool = False
    """True if only whole numbers on the scale are valid."""
    labels: tuple[str, ...] = ()
    ok: frozenset[str] = frozenset()
    """The labels that do not count as failures."""
    severities: Mapping[str, Severity] = field(default_factory=dict)
    """The severities that the file itself specifies, keyed by label."""
    references: Mapping[str, str] = field(default_factory=dict)
    """The references that an answer must contain in addition to its evidence, each with a description for the
    judge."""
    outcomes: Mapping[str, float | None] = field(default_factory=dict)
    """The possible outcomes of a goal with their values. An outcome whose value is ``None`` counts neither as
    a success nor as a failure."""
    form: str = "answer_score"
    """The prompt that specifies the form of the answer."""
    short: str = ""
    """The heading of the metric's table column. Only built-in rubrics have one."""
    needs: Needs = ""
    """The data that must be available for the metric to be judged. Only built-in rubrics require data."""
    shared: bool = False
    """True if a single call may judge the metric together with other metrics. Only built-in rubrics can be
    shared."""
    unsure: str = NOT_ENOUGH_INFORMATION
    """The answer that a judge gives if it cannot decide."""
    version: int = 1
    hash: str = ""
    """A hash of everything that is sent to a judge in addition to the conversation: the rules, the criterion
    and the form of the answer."""
    source: str = ""
    prompts: Prompts = field(default_factory=lambda: SHIPPED_PROMPTS, compare=False, repr=False)
    """The prompts that contain the rules and the form of the answer."""

    def without_label(self, label: str) -> Rubric:
        """Return the rubric without the given label: the label is not offered as an answer, and its
        explanation and any references that only it uses are left out."""
        if label not in self.labels:
            return self
        text = "\n".join(line for line in self.text.split("\n") if not line.startswith(f"- {label}:"))
        return replace(
            self,
            text=text,
            labels=tuple(each for each in self.labels if each != label),
            references={
                name: description
                for name, description in self.references.items()
                if f'"{label}"' not in description
            },
        )

    def with_question(self, question: str) -> Rubric:
        """Return the rubric with ``question`` appended verbatim."""
        return replace(self, text=f"{self.text}\n\n{question.replace('${', '$${')}")

    def with_reference(self, name: str, text: str) -> Rubric:
        """Return the rubric with an additional reference for the judge to provide."""
        return replace(self, references={**self.references, name: text})


def _read_author_file(name: str, base: str | Path, what: str, place: Place | None) -> tuple[str, str]:
    """Return the display path and the content of an author's file. ``place`` is the location at which the
    path of the file is written."""
    path = Path(base) / name
    with wrap_read_errors(f"the {what} '{name}'", place, f"the expected path is {path}"):
        return _shown_path(path), read_text(path, what)


def _shown_path(path: Path) -> str:
    """Return a path for display in messages. It is relative to the working directory if the file is inside
    that directory."""
    try:
        return path.resolve().relative_to(Path.cwd()).as_posix()
    except ValueError:
        return str(path)


_SECOND_OPINION_PROMPTS = ("judge_refute", "judge_decide")
_RAISED_PROMPTS = ("judge_raised",)
_GOAL_PROMPTS = ("judge_refute_ruled_out", "judge_refute_withdrawn", "judge_decide_ruled_out", "judge_twin")
_TABLE_KEYS = ("order", "short", "needs", "shared", "unsure")
"""Keys that are used only in tables and are not sent to a judge. The hash does not include them."""
_TABLE_LINES = re.compile(rf"^(?:{'|'.join(_TABLE_KEYS)}): .*\n", re.MULTILINE)


def _parse_rubric(
    text: str, source: str, prompts: Prompts, *, shipped: bool = False, replaced: PromptFile | None = None
) -> Rubric:
    """Parse a rubric file. If ``shipped`` is true, the metric has the name of a built-in metric. ``replaced``
    is the built-in file that this file overrides."""
    file = split_front_matter(text, source)
    problems = [*unknown_keys(file, BuiltInRubricFrontMatter if shipped else RubricFrontMatter)]
    value = file.head.value
    known = (
        find_placeholders((replaced or file).body) if shipped else ()
    )  # of one that is shipped, they are filled in
    if replaced is not None:
        problems += _metric_mismatches(file, replaced.head.value)
        value = {**replaced.head.value, **value}
    metric = value.get("metric")
    if not shipped and isinstance(metric, str) and metric in RESERVED_NAMES:
        problems.append(
            file.problem("metric", f"'{metric}' is the name of a built-in metric", "choose another name")
        )
    problems += front_matter_problems(file, value, RubricFrontMatter)
    problems += _empty_problems(file, value)
    problems += placeholder_problems(file.body, known, file.place)
    if problems:
        raise AuthorError(*problems)
    head = BuiltInRubricFrontMatter.model_validate(
        {key: each for key, each in value.items() if each is not None}
    )
    form = head.answer or ("answer_score" if head.scale else "answer_label")
    parts = (prompts.read_source(name)[1] for name in judge_prompt_names(form))
    return Rubric(
        metric=head.metric,
        scope=head.scope,
        text=file.body.strip(),
        scale=head.scale,
        whole=head.whole,
        labels=head.labels.names,
        ok=head.labels.ok,
        severities=head.labels.severities,
        references=head.references,
        outcomes=head.outcomes,
        form=form,
        short=head.short,
        needs=head.needs,
        shared=head.shared,
        unsure=head.unsure,
        version=head.version,
        hash=content_hash(_without_table_lines(text), *parts),
        source=source,
        prompts=prompts,
    )


def _empty_problems(file: PromptFile, value: Mapping[str, Any]) -> Iterator[Problem]:
    """Find a rubric that has no question, or no answers to choose from."""
    if not value.get("outcomes") and ("scale" in value) == ("labels" in value):
        what = "a rubric requires either `scale` or `labels`"
        yield file.problem("labels", what, "use, for example, scale: [1, 5]")
    if not file.body.strip():
        what = "the rubric has no text after its front matter"
        yield Problem(what, "describe what the judge must assess", file.place)


def _without_table_lines(text: str) -> str:
    """Return the content of a file without the lines that are not sent to a judge."""
    front, end, body = text.partition("\n---\n")
    return f"{_TABLE_LINES.sub('', front + chr(10)).removesuffix(chr(10))}{end}{body}"


def judge_prompt_names(form: str) -> tuple[str, ...]:
    """Return the names of the prompts that may be sent to a judge in addition to a rubric with this form of
    answer."""
    more = {"answer_outcome": _GOAL_PROMPTS, "answer_label": _RAISED_PROMPTS}
    return ("judge_rules", form, *_SECOND_OPINION_PROMPTS, *more.get(form, ()))


def _metric_mismatches(file: PromptFile, shipped: Mapping[str, Any]) -> Iterator[Problem]:
    """Find keys whose values in a project's rubric for a built-in metric differ from those of the metric.
    These values must not change, because scores, thresholds, severities and comparisons depend on them. Keys
    that the file omits keep their values."""
    head = file.head.value
    for key in head:
        if key in _FIXED_KEYS and head[key] != shipped.get(key, _DEFAULT_TERMS.get(key)):
            what = f"`{key}` of a built-in metric cannot be changed"
            remedy = "remove it, or define a custom metric (`custom_metrics`)"
            yield file.problem(key, what, remedy)
    required = shipped.get("references", {})
    if "references" in head and not _covers_references(head["references"], required):
        what = "`references` do not match those of the built-in metric"
        remedy = f"set a text for each of {', '.join(required)}, or remove `references`"
        yield file.problem("references", what, remedy if required else "remove `references`")


_FIXED_KEYS = BuiltInRubricFrontMatter.model_fields.keys() - {"version", "references"}
_DEFAULT_TERMS: Mapping[str, Any] = {"scope": "turn", "whole": False}


def _covers_references(references: Any, required: Mapping[str, str]) -> bool:
    texts = references if isinstance(references, dict) else {}
    return texts.keys() == required.keys() and all(isinstance(text, str) for text in texts.values())


# ── the set of a run ─────────────────────────────────────────────────────────────────────────────


class Prompts:
    """All prompts for a run: the built-in prompts, some of which may be overridden by the project's files."""

    def __init__(self, overrides: Mapping[str, _ProjectFile] | None = None) -> None:
        self._overrides = overrides or {}
        self._prompts: dict[str, Prompt] = {}
        self._rubrics: dict[str, Rubric] = {}

    @property
    def overridden(self) -> dict[str, str]:
        """The project's files, keyed by the path of the built-in file that each file overrides
        (``judges/helpfulness.md``)."""
        return {_FILES[name]: override.source for name, override in self._overrides.items()}

    def overridden_parts(self, names: Iterable[str]) -> dict[str, str]:
        """Return the same mapping as ``overridden``, restricted to the given prompts."""
        return {_FILES[name]: self._overrides[name].source for name in names if name in self._overrides}

    def read_source(self, name: str) -> tuple[str, str]:
        """Return the display path and the unparsed content of a prompt."""
        override = self._overrides.get(name)
        return (override.source, override.text) if override else _read_shipped(name)

    def prompt(self, name: str) -> Prompt:
        """Return a prompt that is not a rubric: ``simulated_user``, ``error_deduplication``, or a part of the
        judges' prompts, such as ``judge_rules``."""
        if name not in self._prompts:
            source, text = self.read_source(name)
            shipped = SHIPPED_PROMPTS.prompt(name) if name in self._overrides else None
            self._prompts[name] = _parse_prompt(name, text, source, shipped)
        return self._prompts[name]

    def user_prompt(self, scenario: Scenario) -> Prompt:
        """Return the prompt for the simulated user of a scenario: the scenario's own prompt if it has one.
        Raise ``AuthorError`` if the scenario's file is invalid."""
        if scenario.user_prompt is None:
            return self.prompt(SIMULATED_USER)
        place = parse_place(scenario.where("user_prompt"))
        return load_user_prompt(scenario.user_prompt, base=scenario.base, place=place)

    def rubric(self, name: str) -> Rubric:
        """Return a built-in rubric. Raise ``AuthorError`` for an unknown name."""
        if name not in self._rubrics:
            if name not in RUBRICS:
                raise AuthorError(Problem(f"no rubric is named '{name}'", did_you_mean(name, RUBRICS)))
            source, text = self.read_source(name)
            replaced = split_front_matter(_read_shipped(name)[1], source) if name in self._overrides else None
            self._rubrics[name] = _parse_rubric(text, source, self, shipped=True, replaced=replaced)
        return self._rubrics[name]

    def load_custom_rubric(self, path: str, *, base: str | Path = ".", place: Place | None = None) -> Rubric:
        """Load an author's rubric for a custom LLM-as-a-judge metric from a path relative to ``base``.
        ``place`` is the location at which the path is written. Raise ``AuthorError`` with the path and line
        of every mistake in the file."""
        source, text = _read_author_file(path, base, "rubric", place)
        return _parse_rubric(text, source, self)

    def hashes(self, rubrics: Iterable[Rubric] = ()) -> dict[str, str]:
        """Return the hash of each prompt that a run may send, keyed by name, for the record of the run."""
        hashes = {
            name: self.prompt(name).hash for name in (SIMULATED_USER, USER_REVIEW, "error_deduplication")
        }
        return {**hashes, **{rubric.metric: rubric.hash for rubric in rubrics}}


class _ProjectFile(NamedTuple):
    """A project's file that overrides a built-in prompt."""

    source: str
    text: str


SHIPPED_PROMPTS: Prompts = Prompts()


def load_prompts(
    files: Mapping[str, str],
    base: str | Path = ".",
    *,
    place_of: Callable[[str], Place | None] = lambda _: None,
) -> Prompts:
    """Load the built-in prompts and the project's overrides. ``files`` maps the path of a built-in file to a
    path below ``base`` from which it is read instead. ``place_of`` returns the location at which an entry of
    ``files`` is written. Raise ``AuthorError`` with every mistake."""
    if not files:
        return SHIPPED_PROMPTS
    names = {path: name for name, path in _FILES.items()}
    overrides: dict[str, _ProjectFile] = {}
    problems: list[Problem] = []
    for path, file in files.items():
        if path not in names:
            problems.append(
                Problem(f"no built-in prompt is named '{path}'", did_you_mean(path, names), place_of(path))
            )
            continue
        try:
            overrides[names[path]] = _ProjectFile(*_read_author_file(file, base, "prompt", place_of(path)))
        except AuthorError as error:
            problems += error.problems
    prompts = Prompts(overrides)
    for name in overrides:
        try:
            prompts.rubric(name) if name in RUBRICS else prompts.prompt(name)
        except AuthorError as error:
            problems += error.problems
    if problems:
        raise AuthorError(*problems)
    return prompts


def load_user_prompt(path: str, *, base: str | Path, place: Place | None = None) -> Prompt:
    """Load a scenario's own prompt for its simulated user from a path relative to ``base``. ``place`` is the
    location at which the path is written. Raise ``AuthorError`` with the path and line of every mistake in
    the file."""
    source, text = _read_author_file(path, base, "user prompt", place)
    return _parse_prompt(SIMULATED_USER, text, source, SHIPPED_PROMPTS.prompt(SIMULATED_USER))


def user_prompt_name(scenario: str) -> str:
    """Return the name of a scenario's own user prompt. No metric can have this name."""
    return f"{SIMULATED_USER}::{scenario}"


def load_rubric(name: str, *, base: str | Path = ".", place: Place | None = None) -> Rubric:
    return (
        SHIPPED_PROMPTS.load_custom_rubric(name, base=base, place=place)
        if name.endswith(".md")
        else SHIPPED_PROMPTS.rubric(name)
    )


load_prompt = SHIPPED_PROMPTS.prompt
prompt_hashes = SHIPPED_PROMPTS.hashes
