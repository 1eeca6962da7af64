"""What an author writes: persona, goal, turns, the tool world, expectations; and what is run of it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from enum import StrEnum, nonmember
from functools import partial
from hashlib import blake2b
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    SerializerFunctionWrapHandler,
    Tag,
    field_validator,
    model_serializer,
    model_validator,
)

from agenteval.core import needles, patterns
from agenteval.core.trajectory import Turn
from agenteval.core.value import Count, ListOf, Number, Text, Texts, Value, numbers_once

MAX_EPOCHS = 10_000
"""Conversations per scenario: more is a slip of the finger."""


class Category(StrEnum):
    """The dimension whose table a scenario is in."""

    CAPABILITY = "capability"
    EFFICIENCY = "efficiency"
    ROBUSTNESS = "robustness"


class ArgsMatch(StrEnum):
    EXACT = "exact"
    PARTIAL = "partial"
    IGNORE = "ignore"


class MatchMode(StrEnum):
    """How expected and actual tool calls are compared; see ``agenteval.scoring.checks.call_matching``."""

    STRICT = "strict"
    UNORDERED = "unordered"
    IN_ORDER = "in_order"
    CONTAINS = "contains"
    WITHIN = "within"

    MEANT = nonmember(
        {
            **dict.fromkeys(("ordered", "in-order", "sequence", "sequential"), "in_order"),
            **dict.fromkeys(("exact", "equal"), "strict"),
            **dict.fromkeys(("any_order", "any-order", "set"), "unordered"),
            **{"superset": "contains", "subset": "within"},
        }
    )
    """Words of others, and which of ours they mean: the nearest in letters is not always it."""


class ExpectedCall(Value):
    """A tool call that is expected or forbidden. Without ``args`` any arguments will do, without ``agent``
    any agent of a multi-agent system."""

    name: str
    args: dict[str, Any] | None = None
    args_match: ArgsMatch | None = None
    agent: Text | None = None

    @property
    def mode(self) -> ArgsMatch:
        if self.args is None:
            return ArgsMatch.IGNORE
        return self.args_match or ArgsMatch.EXACT

    @model_validator(mode="after")
    def _args_go_with_args_match(self) -> ExpectedCall:
        if self.args is None and self.args_match in (ArgsMatch.EXACT, ArgsMatch.PARTIAL):
            raise ValueError(f"args_match: {self.args_match} without args; add args or remove args_match")
        return self


class ToolCallsExpectation(Value):
    match: MatchMode = MatchMode.CONTAINS
    calls: tuple[ExpectedCall, ...] | None = None
    forbidden: tuple[ExpectedCall, ...] = ()

    @field_validator("forbidden")
    @classmethod
    def _by_what_they_name(cls, value: tuple[ExpectedCall, ...]) -> tuple[ExpectedCall, ...]:
        """What must not be called is called with further arguments, too, unless the author says otherwise."""
        partial = {"args_match": ArgsMatch.PARTIAL}
        unsaid = (each.args is not None and each.args_match is None for each in value)
        return tuple(e.model_copy(update=partial) if u else e for e, u in zip(value, unsaid, strict=True))

    @model_validator(mode="after")
    def _says_something(self) -> ToolCallsExpectation:
        open_modes = (MatchMode.CONTAINS, MatchMode.IN_ORDER)
        if not self.forbidden and (self.calls is None or (not self.calls and self.match in open_modes)):
            raise ValueError(
                f"checks nothing: no call is expected ({self.match}) and none is forbidden; add calls or"
                " forbidden (to allow no call at all: match: strict, calls: [])"
            )
        return self


def _checked(misuse: Callable[[str], str]) -> AfterValidator:
    def check(text: str) -> str:
        if wrong := misuse(text):
            raise ValueError(wrong)
        return text

    return AfterValidator(check)


Needles: TypeAlias = ListOf[Annotated[str, _checked(partial(needles.misuse, takes_stars=True))]]
PlainNeedles: TypeAlias = ListOf[Annotated[str, _checked(partial(needles.misuse, takes_stars=False))]]
Patterns: TypeAlias = ListOf[Annotated[str, _checked(patterns.misuse_for_answers)]]


with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # `json` was a method of models once

    class OutputExpectation(Value):
        contains: Needles = ()
        any_of: Needles = ()
        not_contains: PlainNeedles = ()
        matches: Patterns | None = None
        json_schema: dict[str, Any] = {}
        json: dict[str, Any] = {}  # type: ignore[assignment]
        cites: Needles = ()


class Limits(Value):
    """Upper bounds, of the whole conversation or (at a turn) of that turn; the agent's side only."""

    steps: Annotated[Count, Field(ge=0)] | None = None
    tool_calls: Annotated[Count, Field(ge=0)] | None = None
    tokens: Annotated[Count, Field(ge=0)] | None = None
    latency_ms: Annotated[Number, Field(ge=0)] | None = None


class Expectation(Value):
    tool_calls: ToolCallsExpectation | None = None
    output: OutputExpectation | None = None
    agents: Texts = ()
    criteria: Texts = ()
    limits: Limits | None = None
    python: Texts = ()
    allow_empty: bool | None = None

    @property
    def is_vacuous(self) -> bool:
        """Whether nothing is checked: each of the fields is a check, but what ``allow_empty`` waives."""
        return not any(says_something(value) for name, value in self if name != "allow_empty")


def says_something(asked: Any) -> bool:
    """Whether a field of ``expect`` asks for anything, or one of those within it."""
    if isinstance(asked, Value):
        return any(says_something(value) for _, value in asked)
    return asked is not None and asked not in ((), {})


class ScriptedTurn(Value):
    """A turn whose user message is written down."""

    user: Text
    expect: Expectation = Expectation()

    SHORT_FORM: ClassVar[str] = "a text"


class SimulatedTurns(Value):
    """A stretch of at most ``simulate`` turns by the simulated user."""

    simulate: Annotated[Count, Field(ge=1)]


def _turn(value: Any) -> Any:
    """A text alone is what the user says."""
    return {"user": value} if isinstance(value, str | int | float) else value


def _turn_kind(value: Any) -> str:
    simulated = "simulate" in value if isinstance(value, dict) else isinstance(value, SimulatedTurns)
    return "simulated" if simulated else "scripted"


TurnEntry: TypeAlias = Annotated[
    Annotated[ScriptedTurn, Tag("scripted")] | Annotated[SimulatedTurns, Tag("simulated")],
    Discriminator(_turn_kind),
    BeforeValidator(_turn),
]


TOOL_ANSWERS = frozenset({"returns", "error", "sequence", "python"})
"""The keys that say how a tool answers: at most one of them."""


def _only_given(value: Value, dump: SerializerFunctionWrapHandler) -> Any:
    """Answers that were not given are not written: ``returns: null`` is one, and means null."""
    made = dump(value)
    return {k: v for k, v in made.items() if k not in TOOL_ANSWERS or k in value.model_fields_set}


class ToolStep(Value):
    """One answer of a mocked tool: ``returns`` any value, or ``error`` a message."""

    returns: Any = None
    error: Text | None = None

    @model_validator(mode="after")
    def _one_of(self) -> ToolStep:
        if ("returns" in self.model_fields_set) == ("error" in self.model_fields_set):
            raise ValueError("needs either returns or error")
        return self

    @model_serializer(mode="wrap")
    def _dump(self, dump: SerializerFunctionWrapHandler) -> Any:
        return _only_given(self, dump)


class Tool(Value):
    """A tool of the scenario's world: what the agent sees of it, and how it answers.

    At most one of ``returns``, ``error``, ``sequence`` and ``python`` says how it answers; none of
    them is an error unless ``unmocked_tools`` says what is to happen. ``reads``: it only looks things up;
    ``writes``: it changes something; ``destructive``: what it does cannot be taken back (it writes, too).
    Checks in code go by these marks.
    """

    description: str | None = None
    parameters: dict[str, Any] | None = None
    returns: Any = None
    error: Text | None = None
    sequence: Annotated[tuple[ToolStep, ...], Field(min_length=1)] | None = None
    python: str | None = None
    reads: bool = False
    writes: bool = False
    destructive: bool = False
    base: str = ""  # the scenario file's folder; set by the loader, `python` paths start there

    INTERNAL: ClassVar[frozenset[str]] = frozenset({"base"})

    @model_validator(mode="after")
    def _one_answer(self) -> Tool:
        given = [k for k in ("returns", "error", "sequence", "python") if k in self.model_fields_set]
        if len(given) > 1:
            raise ValueError(f"says more than once how it answers: {' and '.join(given)}; keep one")
        if self.reads and (self.writes or self.destructive):
            raise ValueError("is marked `reads` and also as changing something; keep one")
        return self

    @model_serializer(mode="wrap")
    def _dump(self, dump: SerializerFunctionWrapHandler) -> Any:
        return _only_given(self, dump)

    @property
    def is_mocked(self) -> bool:
        return bool(self.model_fields_set & TOOL_ANSWERS)


ShareBelow: TypeAlias = dict[Number, Annotated[Number, Field(ge=0, lt=1)]]


class ThresholdRule(Value):
    """Bounds on the scores of a metric. ``at_least``: their mean. ``min``: each of them. ``share_below``:
    by score, the largest share of them that may be lower. At least one is given."""

    at_least: Number | None = None
    min: Number | None = None
    share_below: Annotated[ShareBelow, BeforeValidator(numbers_once), Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _says_something(self) -> ThresholdRule:
        if self.at_least is None and self.min is None and self.share_below is None:
            raise ValueError("is empty; write at_least, min or share_below")
        return self

    @property
    def numbers(self) -> tuple[float, ...]:
        """Every score that it names."""
        given = (bound for bound in (self.at_least, self.min) if bound is not None)
        return (*given, *(self.share_below or ()))


def _threshold_kind(value: Any) -> str:
    return "rule" if isinstance(value, dict | ThresholdRule) else "number"


ThresholdEntry: TypeAlias = Annotated[
    Annotated[Number, Tag("number")] | Annotated[ThresholdRule, Tag("rule")],
    Discriminator(_threshold_kind),
]
Thresholds: TypeAlias = dict[str, ThresholdEntry | None]


def long_form(entry: ThresholdEntry) -> ThresholdRule:
    """A threshold in its long form: a number is the least mean or rate."""
    return entry if isinstance(entry, ThresholdRule) else ThresholdRule(at_least=entry)


def short_form(rule: ThresholdRule) -> ThresholdEntry:
    """The same as an author may write it."""
    given = rule.at_least
    return given if given is not None and rule.min is None and rule.share_below is None else rule


class EpochRange(Value):
    """Between ``min`` and ``max`` epochs: a scenario ends as soon as its gate is decided."""

    min: Annotated[Count, Field(ge=1, le=MAX_EPOCHS)]
    max: Annotated[Count, Field(ge=1, le=MAX_EPOCHS)]

    @model_validator(mode="after")
    def _in_order(self) -> EpochRange:
        if self.min > self.max:
            raise ValueError(f"min ({self.min}) is above max ({self.max}); write the lower number first")
        return self


def _epochs_kind(value: Any) -> str:
    return "range" if isinstance(value, dict | EpochRange) else "number"


Epochs: TypeAlias = Annotated[
    Annotated[Count, Field(ge=1, le=MAX_EPOCHS), Tag("number")] | Annotated[EpochRange, Tag("range")],
    Discriminator(_epochs_kind),
]


class Belief(Value):
    """What the user believes, true or not, and what it takes to give it up: the agent's word (``loosely``), a
    reason (``normally``), nothing that is said (``firmly``)."""

    belief: Text
    held: Literal["loosely", "normally", "firmly"] = "normally"

    SHORT_FORM: ClassVar[str] = "a text"
    EXAMPLE: ClassVar[str] = "{belief: The shop is open on Sunday., held: firmly}"

    @model_serializer(mode="wrap")
    def _dump(self, dump: SerializerFunctionWrapHandler) -> Any:
        return self.belief if self.held == "normally" else dump(self)


def _belief(value: Any) -> Any:
    """A text alone is believed as people believe most things."""
    return {"belief": value} if isinstance(value, str) else value


class CaseSpec(Value):
    """What the short form asked for. It is kept apart from the scenario's expectations: the scorers
    of the three dimensions read it here."""

    expected_tools: Texts = ()
    expected_output_contains: Needles = ()


class ScenarioFields(Value):
    """The keys that scenarios and test cases share."""

    id: Text = ""
    name: Text = ""
    category: Category = Category.CAPABILITY
    tags: Texts = ()
    agent: str | None = None
    profile: Text = ""
    goal: Text = ""
    goal_outcome: Literal["reached", "refused"] = "reached"
    knowledge: Texts = ()
    facts: Texts = ()
    beliefs: ListOf[Annotated[Belief, BeforeValidator(_belief)]] = ()
    tools: dict[str, Tool] = {}
    expect: Expectation = Expectation()
    epochs: Epochs | None = None
    max_turns: Annotated[Count, Field(ge=1)] | None = None
    thresholds: Thresholds = {}
    checks: Literal["none"] | None = None


class Scenario(ScenarioFields):
    """One scenario. ``turns`` is ``None`` for a wholly simulated conversation. ``policy``: what the agent
    of a recorded conversation was told to do.

    ``source`` is its place (``path:line``) and ``lines`` maps the dotted path of what it says
    (``expect.output.contains``, ``turns.1.expect.tool_calls``, ``thresholds.helpfulness``) to a line.
    ``base``: the folder of its file, where ``python`` of its expectations starts.
    """

    turns: tuple[TurnEntry, ...] | None = None
    case: CaseSpec | None = None
    policy: str = ""
    source: str = ""
    lines: dict[str, int] = {}
    base: str = ""

    INTERNAL: ClassVar[frozenset[str]] = frozenset({"case", "policy", "source", "lines", "base"})

    @property
    def is_scripted(self) -> bool:
        """Whether every user message is written down."""
        return self.turns is not None and all(isinstance(turn, ScriptedTurn) for turn in self.turns)

    @property
    def tools_named(self) -> frozenset[str]:
        """Those that it declares, and those that it expects or forbids a call of."""
        asked = (expect.tool_calls for _, expect in self.expectations if expect.tool_calls)
        calls = (call.name for rule in asked for call in (*(rule.calls or ()), *rule.forbidden))
        return frozenset((*self.tools, *calls))

    @property
    def has_several_turns(self) -> bool:
        """Whether the agent may be asked more than once in a conversation."""
        return not self.is_scripted or len(self.turns or ()) > 1

    @property
    def expectations(self) -> tuple[tuple[str, Expectation], ...]:
        """Every ``expect`` with its path, those of the turns first."""
        turns = enumerate(self.turns or ())
        written = (
            (f"turns.{at}.expect", turn.expect) for at, turn in turns if isinstance(turn, ScriptedTurn)
        )
        return (*written, ("expect", self.expect))

    @property
    def all_criteria(self) -> tuple[str, ...]:
        """Every criterion, those of the turns first."""
        return tuple(criterion for _, expect in self.expectations for criterion in expect.criteria)

    def where(self, path: str = "") -> str:
        """``file:line`` of what ``path`` (or its nearest parent) was written as."""
        file = self.source.rsplit(":", 1)[0]
        while path:
            if path in self.lines:
                return f"{file}:{self.lines[path]}"
            path = path.rpartition(".")[0]
        return self.source

    def turn_expectation(self, turn: Turn) -> Expectation | None:
        """What is expected of ``turn``; ``None`` for a simulated one."""
        if self.turns is None or turn.script is None:
            return None
        entry = self.turns[turn.script]
        return entry.expect if isinstance(entry, ScriptedTurn) else None


class SampleKey(Value):
    """The only identity in the system: ``scenario × agent × variant × epoch``."""

    scenario: str
    agent: str
    epoch: int = 0
    variant: str = ""

    def __str__(self) -> str:
        variant = f" [{self.variant}]" if self.variant else ""
        return f"{self.scenario}{variant} · {self.agent} · epoch {self.epoch + 1}"


class Sample(Value):
    """One unit of execution."""

    key: SampleKey
    scenario: Scenario
    seed: int = 0


def sample_seed(run_seed: int, key: SampleKey) -> int:
    """A seed of 63 bits that depends on the run's seed and the sample's identity alone."""
    text = f"{run_seed}\0{key.scenario}\0{key.agent}\0{key.variant}\0{key.epoch}"
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest()) >> 1
