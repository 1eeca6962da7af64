"""Custom metrics (user-defined scorers): base classes for authors, and functions that load metrics and track
their state.

A metric that asks a single question can be defined in a rubric file and does not need a class. A class is for
metrics that require code, such as a measurement, several questions, or another service."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias, TypeVar

import anyio
from pydantic import BaseModel

from agenteval.agentside.targets.faults import contain_exits, describe_error
from agenteval.agentside.targets.signatures import find_signature_mismatch
from agenteval.conversation.user_code import import_target
from agenteval.core.errors import AuthorError, Place, Problem
from agenteval.core.protocols import ChatModel, ModelReply, ModelRequest, Subject
from agenteval.core.score import MetricSpec
from agenteval.core.trajectory import Trajectory, Usage
from agenteval.files.prompt_front_matter import METRIC_NAME, Labels, parse_labels, parse_scale
from agenteval.files.prompts import SHIPPED_PROMPTS, Prompts, Rubric
from agenteval.scoring.checks.conversation import ToolCallRecord
from agenteval.scoring.judges.corroboration import complete
from agenteval.scoring.metrics import build_metric_spec

T = TypeVar("T", bound=BaseModel)


# ── what the author sees ─────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class TurnRecord:
    """An earlier turn."""

    user_message: str
    """The user's message."""
    agent_message: str
    """The agent's final text."""
    tool_calls: tuple[ToolCallRecord, ...] = ()
    """The calls in the turn, in order."""


@dataclass(frozen=True)
class ScoreInput:
    """The input of a metric. For a turn, the input is the turn with everything before it. For a whole
    conversation, it is the last turn with everything before it."""

    goal: str
    """The goal of the scenario."""
    profile: str
    """The profile of the user."""
    knowledge: tuple[str, ...]
    """The user's knowledge, all of which is true."""
    user_message: str
    """The user's message in the turn."""
    agent_message: str
    """The agent's final text in the turn."""
    tool_calls: tuple[ToolCallRecord, ...]
    """The calls in the turn, in order. For a whole conversation, the calls in all turns."""
    history: tuple[TurnRecord, ...]
    """The preceding turns."""
    turn_index: int
    """The index of the turn, from 0."""
    trajectory: Trajectory
    """The complete record, including steps, latencies, usage and errors."""


@dataclass(frozen=True)
class QuantResult:
    """A number on the metric's scale, with the reason."""

    value: float | None
    """The number, or ``None`` if there is not enough information to judge."""
    reason: str = ""
    """A free-text explanation of the value."""
    evidence: str = ""
    """A verbatim quotation from the conversation that supports the value."""


@dataclass(frozen=True)
class QualResult:
    """One of the metric's labels, with the reason."""

    label: str
    """The label."""
    reason: str = ""
    """A free-text explanation of the label."""
    evidence: str = ""
    """A verbatim quotation from the conversation that supports the label."""


class Llm:
    """The judge's model, for metrics that call a model. The cost is counted as the judge's cost."""

    def __init__(self, model: ChatModel | None) -> None:
        self._model = model

    async def generate_object(self, *, prompt: str, schema: type[T], system: str = "") -> T:
        """Return a structured answer that conforms to ``schema``. Raise ``UnreadableReplyError`` if there is
        none."""
        evaluation = CURRENT_EVALUATION.get(None)
        if evaluation is None:
            raise RuntimeError("`self.llm` is available only during `score` or `evaluate`")
        if self._model is None:
            what = f"the custom metric '{evaluation.subject.metric}' uses a model, but none is configured"
            raise AuthorError(Problem(what, "set `models.default` or `models.judge`"))
        request = ModelRequest("judge", system, prompt, schema, evaluation.subject)
        answer = evaluation.complete_request(self._model, request)
        # The author's code runs on its own event loop; the model's connections belong to the main one.
        reply = await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(answer, evaluation.loop))
        evaluation.usage = evaluation.usage + reply.usage
        evaluation.by, evaluation.scripted = reply.model, evaluation.scripted or reply.scripted
        assert isinstance(reply.value, schema)
        return reply.value

    async def generate_text(self, *, prompt: str, system: str = "") -> str:
        """Return an answer in plain text."""
        return (await self.generate_object(prompt=prompt, schema=_Text, system=system)).text


class _Text(BaseModel):
    text: str


class CustomMetric:
    """The base class of the three kinds of metrics. A single object is used for all conversations in a run,
    some of which are judged concurrently."""

    name: str = ""
    """The name used in thresholds and reports."""
    timeout_s: float = 60.0
    """The time limit for one judgment in seconds, excluding the time spent in ``llm``."""
    llm: Llm
    """The judge's model. It is available only while a conversation is judged."""
    scope: ClassVar[str] = "turn"
    """The unit that is judged: each turn, or the whole conversation."""
    scale: Sequence[float] = (1, 5)
    """The lowest and the highest value, if the metric returns a number."""
    labels: Mapping[str, str] | Sequence[str] | None = None
    """The labels, if the metric returns a label, as ``{label: ok or a severity}``. If ``None``, any label is
    allowed, and only ``no failure`` is ok."""


class QuantitativeMetric(CustomMetric):
    """A metric that returns a number for each turn. Set ``name`` (and ``scale``, unless it is 1 to 5), and
    implement ``score``."""

    def score(self, input: ScoreInput) -> QuantResult | Awaitable[QuantResult]:
        """Judge the turn. This method may be async."""
        raise NotImplementedError


class QualitativeMetric(CustomMetric):
    """A metric that returns a label for each turn. Set ``name`` and ``labels``, and
    implement ``evaluate``."""

    def evaluate(self, input: ScoreInput) -> QualResult | Awaitable[QualResult]:
        """Judge the turn. This method may be async."""
        raise NotImplementedError


class ConversationMetric(CustomMetric):
    """A metric that returns a number or a label for each whole conversation. Implement ``score`` or
    ``evaluate``."""

    scope: ClassVar[str] = "conversation"
    """The scope ``conversation``, in which the whole conversation is judged at once."""


AnyCustomMetric: TypeAlias = "CustomMetric | Rubric"


# ── loading ──────────────────────────────────────────────────────────────────────────────────────


def load_custom_metric(
    entry: str, base: str, *, prompts: Prompts = SHIPPED_PROMPTS, place: Place | None = None
) -> AnyCustomMetric:
    """Load a custom metric (a user-defined scorer) from an entry in ``custom_metrics``.

    The entry is a rubric file, or a class (or object) specified as ``module:Class`` or ``file.py:Class``.
    ``prompts`` contains the prompts with which a rubric is sent. Raise ``AuthorError`` if the entry cannot be
    loaded."""
    if entry.endswith(".md"):
        return prompts.load_custom_rubric(entry, base=base, place=place)
    found = import_target(entry, base, what="custom metric", place=place)
    try:
        with contain_exits():
            metric = found() if isinstance(found, type) else found
            problem = _find_problem(metric)
    except Exception as error:
        what = f"custom metric '{entry}' cannot be created: {describe_error(error)}"
        raise AuthorError(Problem(what, "make its class callable without arguments", place)) from error
    if problem:
        raise AuthorError(Problem(f"custom metric '{entry}' {problem[0]}", problem[1], place))
    assert isinstance(metric, CustomMetric)
    return metric


def load_custom_metrics(
    entries: Sequence[str],
    base: str,
    *,
    prompts: Prompts = SHIPPED_PROMPTS,
    place_of: Callable[[int], Place | None] = lambda _: None,
) -> tuple[AnyCustomMetric, ...]:
    """Load all entries in ``custom_metrics``. ``place_of`` returns the location of the entry with a given
    index."""
    loaded: list[AnyCustomMetric] = []
    problems: list[Problem] = []
    for position, entry in enumerate(entries):
        try:
            loaded.append(load_custom_metric(entry, base, prompts=prompts, place=place_of(position)))
        except AuthorError as error:
            problems += error.problems
    if problems:
        raise AuthorError(*problems)
    return tuple(loaded)


def _find_problem(metric: Any) -> tuple[str, str] | None:
    if not isinstance(metric, CustomMetric):
        kinds = "QuantitativeMetric, QualitativeMetric or ConversationMetric"
        return f"is not a metric: {type(metric).__name__}", f"derive it from {kinds}"
    if not isinstance(metric.name, str) or not METRIC_NAME.fullmatch(metric.name):
        return f"has the name {metric.name!r}", 'set `name = "…"`, starting with a letter'
    written = _list_judging_methods(metric)
    if len(written) != 1:
        return f"has {' and '.join(written) or 'no judging method'}", "define either `score` or `evaluate`"
    if shape := find_signature_mismatch(getattr(metric, written[0]), 1):
        return f"cannot be called: {shape}", f"define `def {written[0]}(self, input)`"
    if written == ["score"] and parse_scale(metric.scale) is None:
        return f"has the scale {metric.scale!r}", "set the lowest and highest score: `scale = (1, 5)`"
    try:
        get_declared_labels(metric)
    except ValueError as error:
        return f"has invalid labels: {error}", 'set `labels = {"on brand": "ok", …}`'
    return None


def _list_judging_methods(metric: CustomMetric) -> list[str]:
    """Return the judging methods that the author implemented. Each kind of metric has its own method, except
    that a conversation metric may have either one."""
    kinds = {"score": QuantitativeMetric, "evaluate": QualitativeMetric}
    return [
        name
        for name, kind in kinds.items()
        if isinstance(metric, kind | ConversationMetric)
        and getattr(type(metric), name, None) not in (None, getattr(kind, name))
    ]


def build_custom_metric_spec(metric: AnyCustomMetric) -> MetricSpec:
    """Return the metric that a rubric or a class defines."""
    if isinstance(metric, Rubric):
        return build_metric_spec(metric)
    scope: Any = metric.scope
    if _list_judging_methods(metric) == ["score"]:
        low, high = metric.scale
        return MetricSpec(name=metric.name, scope=scope, kind="mean", scale=(low, high))
    labels = get_declared_labels(metric)
    ok = tuple(label for label in labels.names if label in labels.ok) or ("no failure",)
    return MetricSpec(name=metric.name, scope=scope, kind="rate", labels=labels.names, ok=ok)


def get_declared_labels(metric: CustomMetric) -> Labels:
    """Return the labels that a class declares, or no labels if the class allows any label."""
    return Labels() if metric.labels is None else parse_labels(metric.labels)


# ── while it is judged ───────────────────────────────────────────────────────────────────────────


@dataclass
class MetricEvaluation:
    """A judgment in progress, with its subject, the cost of its model calls and its deadline."""

    subject: Subject
    scope: anyio.CancelScope
    timeout_s: float
    usage: Usage = field(default_factory=Usage)
    by: str = ""
    scripted: bool = False
    in_flight: int = 0
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)

    @property
    def reported_usage(self) -> Usage | None:
        """The cost of the model calls, or ``None`` if there were no model calls."""
        return None if self.usage == Usage() else self.usage

    async def complete_request(self, model: ChatModel, request: ModelRequest) -> ModelReply:
        with _Pause(self):
            return await complete(model, request)


class _Pause:
    """Pauses a judgment's clock while its model calls are queued or in progress."""

    def __init__(self, evaluation: MetricEvaluation) -> None:
        self._asking = evaluation

    def __enter__(self) -> None:
        self._asking.in_flight += 1
        self._asking.scope.deadline = math.inf

    def __exit__(self, *_error: object) -> None:
        self._asking.in_flight -= 1
        if not self._asking.in_flight:
            self._asking.scope.deadline = anyio.current_time() + self._asking.timeout_s


# One object serves many conversations at once, and its author calls ``self.llm`` without saying which
# of them the call is for. The context variable of the task identifies it.
CURRENT_EVALUATION: ContextVar[MetricEvaluation] = ContextVar("agenteval_custom_metric")
