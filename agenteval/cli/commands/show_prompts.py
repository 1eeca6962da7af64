"""Implements ``agenteval show-prompts``: prints every prompt as it is sent to a model, with named
placeholders."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from agenteval.adapters.models.response_formats import schema_of
from agenteval.cli.safe_output import print_author_error, print_out
from agenteval.conversation.simulated_user import UserReply
from agenteval.core.config import Config
from agenteval.core.errors import AuthorError, Problem, did_you_mean
from agenteval.core.plurals import join_first
from agenteval.core.protocols import ModelRequest, Subject
from agenteval.core.scenario import Scenario
from agenteval.files import scenario_loader
from agenteval.files.prompt_templates import find_placeholders
from agenteval.files.prompts import (
    CRITERIA,
    RUBRICS,
    SHIPPED_PROMPTS,
    SIMULATED_USER,
    USER_REVIEW,
    Prompt,
    Prompts,
    Rubric,
    judge_prompt_names,
    user_prompt_name,
)
from agenteval.running.registries import REGISTRIES
from agenteval.scoring.checks import RULES
from agenteval.scoring.issues import DedupReply
from agenteval.scoring.judges.requests import build_judge_request, build_review_request
from agenteval.scoring.judges.user_review import ReviewReply
from agenteval.scoring.metrics import REVIEW, REVIEWED
from agenteval.scoring.transcript import JudgeTranscript

_RULE = "─" * 100
_MOST_NAMED = 20
"""The maximum number of scenarios that are listed for one prompt."""


def show_prompts(metric: str | None, config: str | None = None) -> int:
    """Print the prompt of ``metric``, or all prompts. The project's overrides are included if a configuration
    is named or found. Raise ``AuthorError`` if there is no prompt with that name."""
    try:
        found = _load_project_prompts(config, with_scenarios=_may_be_of_scenario(metric))
    except AuthorError as error:
        # Shipped prompts can be shown even if the configuration is broken; those of the project cannot.
        if config is not None or metric not in (None, *_shipped_names()):
            raise
        print_author_error(
            f"only built-in prompts are shown, because the configuration cannot be read:\n{error}"
        )
        found = ProjectPrompts()
    print_out(render_prompts(metric, found.prompts, found.custom, found.by_scenario))
    return 0


def _may_be_of_scenario(name: str | None) -> bool:
    """Check whether the prompts to show may include those of scenarios."""
    return name is None or name.startswith(user_prompt_name(""))


def _shipped_names() -> tuple[str, ...]:
    return (*RUBRICS, REVIEW, "error_deduplication", SIMULATED_USER, USER_REVIEW, *_PARTS)


_PARTS = {
    "judge_raised": "after a label criterion, with the questions that code raises about the turn",
    "judge_refute": "after a criterion, to refute an answer",
    "judge_decide": "after a criterion, if two answers differ",
    "judge_refute_ruled_out": "after the goal criterion, to refute that a goal was ruled out",
    "judge_refute_withdrawn": "after the goal criterion, to refute that the user withdrew a goal",
    "judge_decide_ruled_out": "after the goal criterion, if either is in dispute",
    "judge_twin": "in both of these for a ruled-out goal, if another conversation reached it",
    "user_tools": "after the prompt of a simulated user whose scenario has `user_tools`",
    "answer_shared": "after several criteria in one call (judge: {calls: shared})",
    "answer_review": "after the label criteria, if one call judges all turns (judge: {calls: review})",
}
"""The prompts that are inserted into other prompts, each with a description of its position."""


class ProjectPrompts(NamedTuple):
    """The prompts of a project."""

    prompts: Prompts = SHIPPED_PROMPTS
    """The built-in prompts, including the project's overrides."""
    custom: tuple[Rubric, ...] = ()
    """The rubrics of custom metrics."""
    by_scenario: Mapping[str, Prompt] = MappingProxyType({})
    """The user prompts of scenarios that have their own, keyed by the scenario's id."""


def _load_project_prompts(config: str | None, *, with_scenarios: bool) -> ProjectPrompts:
    """Return the prompts of a configuration, and those of its scenarios if ``with_scenarios`` is true. Custom
    metrics that are Python classes have no prompt and are not imported."""
    from agenteval.files import config_file
    from agenteval.planning import judge_setup

    path = Path(config) if config else config_file.find_config(Path.cwd())
    if path is None:
        return ProjectPrompts()
    found = config_file.load_config(path, REGISTRIES, environ=os.environ, flags={}).config
    prompts = judge_setup.load_project_prompts(found)
    rubrics = [
        prompts.load_custom_rubric(entry, base=found.root, place=found.place(f"custom_metrics.{at}"))
        for at, entry in enumerate(found.custom_metrics)
        if entry.endswith(".md")
    ]
    scenarios = _load_scenarios(found) if with_scenarios else ()
    own = {each.id: prompts.user_prompt(each) for each in scenarios if each.user_prompt is not None}
    return ProjectPrompts(prompts, tuple(rubrics), own)


def _load_scenarios(config: Config) -> tuple[Scenario, ...]:
    """Return the scenarios that a configuration includes. Scenarios with mistakes are left out, and the
    mistakes are printed."""
    root = Path(config.root)
    files = scenario_loader.find_scenario_files(root, config.include, config.exclude)
    try:
        return scenario_loader.load_scenario_files(files, rules=RULES, root=root)
    except scenario_loader.PartlyReadError as error:
        print_author_error(f"the prompts of some scenarios are not shown, because of mistakes:\n{error}")
        return error.scenarios


def render_prompts(
    metric: str | None,
    prompts: Prompts = SHIPPED_PROMPTS,
    custom: Iterable[Rubric] = (),
    by_scenario: Mapping[str, Prompt] = MappingProxyType({}),
) -> str:
    """Render the prompt of ``metric``, or all prompts. ``custom`` contains the author's own rubrics.
    ``by_scenario`` contains the user prompts of scenarios that have their own."""
    shown: dict[str, Callable[[], str]] = {name: _rubric_page(prompts.rubric(name)) for name in RUBRICS}
    shown[REVIEW] = _review_page(prompts)
    shown["error_deduplication"] = _prompt_page("error_deduplication", "dedup", DedupReply, prompts)
    shown[SIMULATED_USER] = _prompt_page(SIMULATED_USER, "user", UserReply, prompts)
    shown[USER_REVIEW] = _prompt_page(USER_REVIEW, "judge", ReviewReply, prompts)
    shown |= {name: _part_page(name, prompts) for name in _PARTS}
    shown |= {rubric.metric: _rubric_page(rubric) for rubric in custom}
    own = {user_prompt_name(scenario): prompt for scenario, prompt in by_scenario.items()}
    first = {prompt.source: name for name, prompt in reversed(own.items())}
    names = [*shown, *(name for name in own if name in first.values())] if metric is None else [metric]
    shown |= {name: _scenario_page(name, prompt, by_scenario) for name, prompt in own.items()}
    if metric is not None and metric not in shown:
        raise AuthorError(Problem(f"unknown prompt '{metric}'", did_you_mean(metric, shown)))
    return "\n".join(shown[name]() for name in names)


def template_of(rubric: Rubric) -> ModelRequest:
    """Return a judge request as a template. ``${transcript}`` and the placeholders of ``criteria`` mark the
    parts that are filled in from a conversation."""
    named = {name: _placeholder(name) for name in find_placeholders(rubric.text)}
    return build_judge_request(
        rubric,
        JudgeTranscript(_placeholder("transcript")),
        subject=Subject(metric=rubric.metric),
        criterion=named,
    )


def _placeholder(name: str) -> str:
    return f"${{{name}}}"


def _rubric_page(rubric: Rubric) -> Callable[[], str]:
    def show() -> str:
        scope = "turn or conversation" if rubric.metric == CRITERIA else rubric.scope
        head = {"role": "judge", "scope": scope, "version": rubric.version, "hash": rubric.hash}
        overridden = rubric.prompts.overridden_parts((rubric.metric, *judge_prompt_names(rubric.form)))
        return _block(
            rubric.metric,
            {**head, "file": rubric.source, **_overridden_entry(overridden)},
            template_of(rubric),
        )

    return show


def _review_page(prompts: Prompts) -> Callable[[], str]:
    """Return the page of the request that judges all turns of a conversation."""

    def show() -> str:
        rubrics = [prompts.rubric(name) for name in REVIEWED]
        form = prompts.prompt("answer_review")
        used = {name: None for rubric in rubrics for name in judge_prompt_names(rubric.form)}
        overridden = prompts.overridden_parts((*REVIEWED, form.name, *used))
        head = {"role": "judge", "scope": "all turns (judge: {calls: review})", "version": form.version}
        head |= {"hash": form.hash, "file": form.source, **_overridden_entry(overridden)}
        request = build_review_request(
            rubrics,
            JudgeTranscript(_placeholder("transcript")),
            subject=Subject(metric=REVIEW),
            turns=_placeholder("turns"),
        )
        return _block(REVIEW, head, request)

    return show


def _prompt_page(name: str, role: str, reply: Any, prompts: Prompts) -> Callable[[], str]:
    def show() -> str:
        more = _overridden_entry(prompts.overridden_parts((name,)))
        return _prompt_block(name, role, reply, prompts.prompt(name), more)

    return show


def _scenario_page(name: str, prompt: Prompt, by_scenario: Mapping[str, Prompt]) -> Callable[[], str]:
    """Return the page of a scenario's own user prompt. It lists the scenarios that use the same file."""

    def show() -> str:
        scenarios = [scenario for scenario, each in by_scenario.items() if each.source == prompt.source]
        more = {"scenarios": join_first(scenarios, _MOST_NAMED)}
        return _prompt_block(name, "user", UserReply, prompt, more)

    return show


def _prompt_block(name: str, role: str, reply: Any, prompt: Prompt, more: Mapping[str, str]) -> str:
    rendered = prompt.render(**{each: _placeholder(each) for each in prompt.placeholders})
    head = {"role": role, "version": prompt.version, "hash": prompt.hash, "file": prompt.source, **more}
    return _block(name, head, ModelRequest(role, rendered.system, rendered.prompt, reply))


def _part_page(name: str, prompts: Prompts) -> Callable[[], str]:
    def show() -> str:
        prompt = prompts.prompt(name)
        text = prompt.render(**{each: _placeholder(each) for each in prompt.placeholders}).prompt
        head = {"stands": _PARTS[name], "version": prompt.version, "hash": prompt.hash, "file": prompt.source}
        lines = (
            f"{key}: {value}"
            for key, value in {**head, **_overridden_entry(prompts.overridden_parts((name,)))}.items()
        )
        return "\n".join((_RULE, f"prompt: {name}", *lines, f"\n── part of a prompt ──\n\n{text}\n"))

    return show


def _overridden_entry(overridden: Mapping[str, str]) -> dict[str, str]:
    """Return a header entry with the parts that the project overrides, or an empty dictionary if the project
    overrides nothing."""
    return (
        {"overridden": ", ".join(f"{path} ({file})" for path, file in overridden.items())}
        if overridden
        else {}
    )


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
