"""What an author writes (persona, goal, turns, tool world, expectations) and the samples that are run from
it."""

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
    model_serializer,
    model_validator,
)

from agenteval.core import patterns, text_matching
from agenteval.core.trajectory import Turn
from agenteval.core.value import (
    AlternativeSchema,
    Count,
    ListOf,
    Number,
    Text,
    Texts,
    Value,
    reject_duplicate_numbers,
)

MAX_EPOCHS = 10_000
"""The maximum of conversations per scenario; a higher number is probably a typo."""


class Category(StrEnum):
    """The dimension in whose table a scenario is shown."""

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
    """Terms of other tools, and which of the modes they mean: it is not always the one with the most similar
    name."""


class CallPattern(Value):
    """A pattern for tool calls. Without ``args`` any arguments match, without ``agent`` any agent."""

    name: str
    """Name of the tool."""
    args: dict[str, Any] | None = None
    """Arguments of the call; a matcher such as {$in: [a, b]} may replace any value."""
    args_match: ArgsMatch | None = None
    """How args are compared: exact, partial (at least these keys) or ignore."""
    agent: Text | None = None
    """Agent of a multi-agent system that makes the call."""

    DEFAULT_MATCH: ClassVar[ArgsMatch] = ArgsMatch.EXACT
    """How ``args`` are compared if ``args_match`` is not given."""

    @property
    def mode(self) -> ArgsMatch:
        if self.args is None:
            return ArgsMatch.IGNORE
        return self.args_match or self.DEFAULT_MATCH

    @property
    def wanted_result(self) -> Literal["ok", "error"] | None:
        """The required result; ``None``: any."""
        return None

    @model_validator(mode="after")
    def _args_go_with_args_match(self) -> CallPattern:
        if self.args is None and self.args_match in (ArgsMatch.EXACT, ArgsMatch.PARTIAL):
            raise ValueError(f"args_match: {self.args_match} without args; add args or remove args_match")
        return self


_NO_CALL_AT_ALL = "0 forbids the call; write it under forbidden"


def _not_zero(value: Any) -> Any:
    if value == 0 and not isinstance(value, bool):
        raise ValueError(_NO_CALL_AT_ALL)
    return value


CallCount: TypeAlias = Annotated[Count, Field(ge=1), BeforeValidator(_not_zero)]


class CallRange(Value):
    """Bounds on the number of matching calls. Without ``at_least``, it is the number that a call without
    ``times`` needs: one, or under ``within`` none. Without ``at_most``, any number."""

    at_least: Annotated[Count, Field(ge=0)] | None = None
    """Minimum number of matching calls; 0 makes the call optional."""
    at_most: CallCount | None = None
    """Maximum number of matching calls."""

    EXAMPLE: ClassVar[str] = "{at_least: 1, at_most: 3}"

    @model_validator(mode="after")
    def _in_order(self) -> CallRange:
        if self.at_least is None and self.at_most is None:
            raise ValueError("is empty; write at_least or at_most")
        if self.at_least is not None and self.at_most is not None and self.at_least > self.at_most:
            what = f"at_least ({self.at_least}) is above at_most ({self.at_most})"
            raise ValueError(f"{what}; write the lower number under at_least")
        return self


def _times_kind(value: Any) -> str:
    return "range" if isinstance(value, dict | CallRange) else "number"


Times: TypeAlias = Annotated[
    Annotated[CallCount, Tag("number")] | Annotated[CallRange, Tag("range")],
    Discriminator(_times_kind),
]


class ExpectedCall(CallPattern):
    """A call that is expected; see ``agenteval.scoring.checks.call_matching``."""

    times: Times | None = None
    """Number of matching calls, or {at_least, at_most}."""
    result: Literal["ok", "error"] | None = None
    """Required result of the call: ok or error."""

    @property
    def wanted_result(self) -> Literal["ok", "error"] | None:
        return self.result

    def bounds(self, match: MatchMode) -> tuple[int, int | None]:
        """Return the fewest and the most calls that it stands for; ``None``: any number."""
        fewest = 0 if match is MatchMode.WITHIN else 1
        if self.times is None:
            return fewest, (None if match is MatchMode.WITHIN else 1)
        if isinstance(self.times, int):
            return self.times, self.times
        fewest_given = self.times.at_least
        return (fewest if fewest_given is None else fewest_given), self.times.at_most


class ForbiddenCall(CallPattern):
    """Calls that must not be made. Calls with further arguments are forbidden, too, unless the author says
    otherwise."""

    DEFAULT_MATCH: ClassVar[ArgsMatch] = ArgsMatch.PARTIAL
    NOT_HERE: ClassVar[dict[str, str]] = {
        "times": "to allow a few calls, write times: {at_least: 0, at_most: N} at a call under calls",
        "result": "it is a key of expected calls; a call is forbidden whatever its result",
    }


NO_CALL = "none"
"""Written instead of expected calls or tools: none may be made."""


def _is_misspelled_none(value: Any) -> bool:
    return isinstance(value, str) and value != NO_CALL and value.strip().casefold() == NO_CALL


def _long_form(value: Any) -> Any:
    """Expand ``none``: no tool may be called."""
    if _is_misspelled_none(value):
        raise ValueError(f"expected '{NO_CALL}' or a mapping, got '{value}'; write {NO_CALL}")
    return {"match": MatchMode.STRICT, "calls": ()} if value == NO_CALL else value


_OR_NONE = AlternativeSchema(enum=[NO_CALL])


def _not_none(value: Any) -> Any:
    if value == NO_CALL:
        raise ValueError(
            f"expected a list, got '{NO_CALL}'; write {NO_CALL} in place of the mapping around it"
        )
    return value


class CallsExpectation(Value):
    """The expected calls, and how they are compared with those that were made."""

    match: MatchMode = MatchMode.CONTAINS
    """How the expected calls are compared with those that were made."""
    calls: Annotated[tuple[ExpectedCall, ...] | None, BeforeValidator(_not_none)] = None
    """The expected calls."""

    SHORT_FORM: ClassVar[str] = f"'{NO_CALL}'"

    @property
    def is_closed(self) -> bool:
        """True if no other calls are allowed."""
        return self.match in (MatchMode.STRICT, MatchMode.UNORDERED, MatchMode.WITHIN)

    @property
    def is_ordered(self) -> bool:
        return self.match in (MatchMode.STRICT, MatchMode.IN_ORDER)

    @model_validator(mode="after")
    def _require_content_in_each(self) -> CallsExpectation:
        for call in self.calls or () if self.match is MatchMode.CONTAINS else ():
            if call.times is not None and call.bounds(self.match) == (0, None):
                what = f"'{call.name}' with times: {{at_least: 0}} checks nothing under match: contains"
                raise ValueError(f"{what}; add at_most, or remove it")
        return self

    def _refuse_no_calls(self) -> None:
        if self.calls == () and self.match is not MatchMode.STRICT:
            raise ValueError(
                "calls: an empty list checks nothing; add calls"
                f" (if no tool may be called, write {NO_CALL} in place of the mapping)"
            )


class CallsAlternative(CallsExpectation):
    """One of the alternatives of ``any_of``."""

    NOT_HERE: ClassVar[dict[str, str]] = {
        "forbidden": "write it next to any_of, not inside",
        "any_of": "move its alternatives to the list above it",
    }

    @model_validator(mode="after")
    def _require_alternative_content(self) -> CallsAlternative:
        if self.calls is None:
            raise ValueError("'calls' is missing; each alternative must list its calls")
        self._refuse_no_calls()
        return self


class ToolCallsExpectation(CallsExpectation):
    """The key ``tool_calls``: either ``calls`` or the alternatives of ``any_of``, with or without
    ``forbidden``, which may also be alone."""

    any_of: tuple[Annotated[CallsAlternative, BeforeValidator(_long_form), _OR_NONE], ...] | None = None
    """Alternatives, each with match and calls, or none; one of them must hold."""
    forbidden: tuple[ForbiddenCall, ...] = ()
    """Calls that must not be made."""

    @property
    def alternatives(self) -> tuple[CallsExpectation, ...]:
        """One of these has to hold; if empty, only ``forbidden`` is checked. Except under ``strict``, an
        empty ``calls`` with ``forbidden`` counts as omitted."""
        if self.any_of is not None:
            return self.any_of
        is_left_out = not self.calls and self.forbidden and self.match is not MatchMode.STRICT
        return () if self.calls is None or is_left_out else (self,)

    @property
    def expected_calls(self) -> tuple[ExpectedCall, ...]:
        """The expected calls of all alternatives."""
        return tuple(call for each in self.alternatives for call in each.calls or ())

    @model_validator(mode="after")
    def _require_any_rule(self) -> ToolCallsExpectation:
        if self.any_of is not None:
            self._any_of_stands_alone()
        elif self.calls is None and not self.forbidden:
            raise ValueError(
                "checks nothing: no call is expected and none is forbidden; add calls or forbidden"
                f" (if no tool may be called, write tool_calls: {NO_CALL})"
            )
        elif not self.forbidden:
            self._refuse_no_calls()
        return self

    def _any_of_stands_alone(self) -> None:
        given = {"match": self.match is not MatchMode.CONTAINS, "calls": self.calls is not None}
        if others := [name for name, is_given in given.items() if is_given]:
            what = f"any_of and {' and '.join(others)} exclude each other"
            raise ValueError(f"{what}; write match and calls in the alternatives")
        if not self.any_of:
            raise ValueError("any_of: an empty list checks nothing; write its alternatives, or calls")


def _reject(misuse: Callable[[str], str]) -> AfterValidator:
    def check(text: str) -> str:
        if wrong := misuse(text):
            raise ValueError(wrong)
        return text

    return AfterValidator(check)


Needles: TypeAlias = ListOf[Annotated[str, _reject(partial(text_matching.needle_mistake, takes_stars=True))]]
PlainNeedles: TypeAlias = ListOf[
    Annotated[str, _reject(partial(text_matching.needle_mistake, takes_stars=False))]
]
Patterns: TypeAlias = ListOf[Annotated[str, _reject(patterns.answer_pattern_mistake)]]


with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # pydantic's models once had a method `json`

    class OutputExpectation(Value):
        contains: Needles = ()
        """Texts that the answer must contain, as whole words and numbers; refund* allows any ending."""
        any_of: Needles = ()
        """Texts of which the answer must contain at least one."""
        not_contains: PlainNeedles = ()
        """Texts that the agent must not write, not even inside a word."""
        matches: Patterns | None = None
        """Regular expressions that must match in the answer, ignoring case."""
        json_schema: dict[str, Any] = {}
        """JSON Schema for the answer, which must be JSON."""
        json: dict[str, Any] = {}  # type: ignore[assignment]
        """Paths into the answer, which must be JSON, with their values: {"items[0].price": 9.5}."""
        cites: Needles = ()
        """Texts that both the answer and the result of an earlier tool call must contain."""


class Limits(Value):
    """Upper bounds for the whole conversation or, at a turn, for that turn; they apply only to the agent's
    side."""

    steps: Annotated[Count, Field(ge=0)] | None = None
    """Maximum number of replies of the agent: rounds of tool calls, plus one for the answer."""
    tool_calls: Annotated[Count, Field(ge=0)] | None = None
    """Maximum number of tool calls."""
    tokens: Annotated[Count, Field(ge=0)] | None = None
    """Maximum number of tokens, input and output."""
    latency_ms: Annotated[Number, Field(ge=0)] | None = None
    """Maximum milliseconds from the user's message to the final answer."""


class Expectation(Value):
    tool_calls: Annotated[ToolCallsExpectation | None, BeforeValidator(_long_form), _OR_NONE] = None
    """The expected or forbidden calls; none: no tool may be called."""
    output: OutputExpectation | None = None
    """What the agent's answer must and must not contain."""
    agents: Texts = ()
    """The agents of a multi-agent system that must reply, in order."""
    criteria: Texts = ()
    """Statements that a judge decides one by one: pass, fail or not clear."""
    limits: Limits | None = None
    """Upper bounds on steps, tool calls, tokens and latency."""
    python: Texts = ()
    """Functions that check the conversation: file.py:function, relative to this file's folder."""
    allow_empty: bool | None = None
    """Whether an empty answer is accepted."""

    @property
    def is_vacuous(self) -> bool:
        """True if nothing is checked. Every field is a check except ``allow_empty``, which waives one."""
        return not any(has_expectation(value) for name, value in self if name != "allow_empty")


def has_expectation(asked: Any) -> bool:
    """Check whether a field of ``expect``, or one nested in it, asks for anything."""
    if isinstance(asked, Value):
        return any(has_expectation(value) for _, value in asked)
    return asked is not None and asked not in ((), {})


class ScriptedTurn(Value):
    """A turn whose user message is written down."""

    user: Text
    """The user's message."""
    expect: Expectation = Expectation()
    """Expectations for this turn."""

    SHORT_FORM: ClassVar[str] = "a text"


class SimulatedTurns(Value):
    """A stretch of turns by the simulated user."""

    simulate: Annotated[Count, Field(ge=1)]
    """Maximum number of turns by the simulated user."""


def _turn(value: Any) -> Any:
    """Expand a text to the user's message."""
    return {"user": value} if isinstance(value, str | int | float) else value


def _turn_kind(value: Any) -> str:
    simulated = "simulate" in value if isinstance(value, dict) else isinstance(value, SimulatedTurns)
    return "simulated" if simulated else "scripted"


TurnEntry: TypeAlias = Annotated[
    Annotated[ScriptedTurn, Tag("scripted")] | Annotated[SimulatedTurns, Tag("simulated")],
    Discriminator(_turn_kind),
    BeforeValidator(_turn),
    AlternativeSchema(type=["string", "number", "boolean"]),
]


TOOL_ANSWERS = frozenset({"returns", "error", "sequence", "python"})
"""The keys that define how a tool answers: at most one of them."""


def _only_given(value: Value, dump: SerializerFunctionWrapHandler) -> Any:
    """Omit answers that were not given from the dump: ``returns: null`` is given, and means null."""
    made = dump(value)
    return {k: v for k, v in made.items() if k not in TOOL_ANSWERS or k in value.model_fields_set}


class ToolStep(Value):
    """One answer of a mocked tool, given by one of its keys."""

    returns: Any = None
    """The result: any value; ${args.NAME} is an argument of the call."""
    error: Text | None = None
    """Error message that the call returns."""

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

    At most one of ``returns``, ``error``, ``sequence`` and ``python`` defines how it answers; if none does,
    calling it is an error unless ``unmocked_tools`` says otherwise. Checks in code use the marks; a
    ``destructive`` tool counts as writing."""

    description: str | None = None
    """Description of the tool for the agent."""
    parameters: dict[str, Any] | None = None
    """JSON Schema of its arguments, of type object; a call that violates it gets an error."""
    returns: Any = None
    """The result of every call: any value; ${args.NAME} is an argument of the call."""
    error: Text | None = None
    """Error message that every call returns."""
    sequence: Annotated[tuple[ToolStep, ...], Field(min_length=1)] | None = None
    """Results of the first call, the second and so on; the last one repeats."""
    python: str | None = None
    """Function that answers the calls: file.py:function, relative to this file's folder."""
    reads: bool = False
    """Whether the tool only reads."""
    writes: bool = False
    """Whether the tool changes something."""
    destructive: bool = False
    """Whether the effect cannot be undone, so that the tool needs the user's confirmation."""
    base: str = ""  # set by the loader: the scenario file's folder, where `python` paths start

    INTERNAL: ClassVar[frozenset[str]] = frozenset({"base"})

    @model_validator(mode="after")
    def _one_answer(self) -> Tool:
        answers = [k for k in ("returns", "error", "sequence", "python") if k in self.model_fields_set]
        if len(answers) > 1:
            raise ValueError(f"defines its answer more than once: {' and '.join(answers)}; keep one")
        if self.reads and (self.writes or self.destructive):
            raise ValueError("is marked both as reading and as changing something; keep one")
        return self

    @model_serializer(mode="wrap")
    def _dump(self, dump: SerializerFunctionWrapHandler) -> Any:
        return _only_given(self, dump)

    @property
    def is_mocked(self) -> bool:
        return bool(self.model_fields_set & TOOL_ANSWERS)

    @property
    def is_marked(self) -> bool:
        """True if a mark states its effect."""
        return self.reads or self.writes or self.destructive


ShareBelow: TypeAlias = dict[Number, Annotated[Number, Field(ge=0, lt=1)]]


class ThresholdRule(Value):
    """Bounds on the scores of a metric. At least one is given."""

    at_least: Number | None = None
    """Lowest acceptable mean of the scores, or share."""
    min: Number | None = None
    """Lowest acceptable single score."""
    share_below: (
        Annotated[ShareBelow, BeforeValidator(reject_duplicate_numbers), Field(min_length=1)] | None
    ) = None
    """By score, the largest acceptable share of lower scores: {2: 0.1}."""

    @model_validator(mode="after")
    def _require_bound(self) -> ThresholdRule:
        if self.at_least is None and self.min is None and self.share_below is None:
            raise ValueError("is empty; write at_least, min or share_below")
        return self

    @property
    def numbers(self) -> tuple[float, ...]:
        """Every score that it names."""
        bounds = (bound for bound in (self.at_least, self.min) if bound is not None)
        return (*bounds, *(self.share_below or ()))


def _threshold_kind(value: Any) -> str:
    return "rule" if isinstance(value, dict | ThresholdRule) else "number"


ThresholdEntry: TypeAlias = Annotated[
    Annotated[Number, Tag("number")] | Annotated[ThresholdRule, Tag("rule")],
    Discriminator(_threshold_kind),
]
Thresholds: TypeAlias = dict[str, ThresholdEntry | None]


def expand_threshold(entry: ThresholdEntry) -> ThresholdRule:
    """Return a threshold in its long form: a number is the lowest mean or rate."""
    return entry if isinstance(entry, ThresholdRule) else ThresholdRule(at_least=entry)


def compact_threshold(rule: ThresholdRule) -> ThresholdEntry:
    """Return a threshold in the shortest form that an author may write."""
    lowest = rule.at_least
    return lowest if lowest is not None and rule.min is None and rule.share_below is None else rule


class EpochRange(Value):
    """A range of epochs: a scenario ends as soon as its gate is decided."""

    min: Annotated[Count, Field(ge=1, le=MAX_EPOCHS)]
    """Minimum number of conversations."""
    max: Annotated[Count, Field(ge=1, le=MAX_EPOCHS)]
    """Maximum number of conversations; they end sooner once a gate is decided."""

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
    """What the user believes, true or not, and what would change that."""

    belief: Text
    """What the user believes."""
    held: Literal["loosely", "normally", "firmly"] = "normally"
    """What changes the belief: loosely, the agent's word; normally, a reason; firmly, nothing."""

    SHORT_FORM: ClassVar[str] = "a text"
    EXAMPLE: ClassVar[str] = "{belief: The shop is open on Sunday., held: firmly}"

    @model_serializer(mode="wrap")
    def _dump(self, dump: SerializerFunctionWrapHandler) -> Any:
        return self.belief if self.held == "normally" else dump(self)


def _belief(value: Any) -> Any:
    """Expand a text to a belief that is held normally."""
    return {"belief": value} if isinstance(value, str) else value


_NO_TOOL_NAMES = frozenset({"none", "null", "~", "false", "no", "true", "yes"})
"""Words that authors write for none or all tools. A tool with such a name can be expected under ``expect``.
"""


def _tool_names(value: Any) -> Any:
    if value is None or value == NO_CALL:
        return value
    for name in value if isinstance(value, list | tuple) else (value,):
        text = "null" if name is None else str(name).lower() if isinstance(name, bool) else name
        if isinstance(text, str) and text.strip().casefold() in _NO_TOOL_NAMES:
            what = f"'{text}' would be the name of a tool"
            raise ValueError(
                f"{what}; write expected_tools: {NO_CALL} if no tool may be called, else the names of tools"
            )
    return value


class CaseSpec(Value):
    """The expectations of the short form. They are separate from those of the scenario, because the scorers
    of the three dimensions read them here. ``None``: the key is not written; an empty list checks nothing."""

    expected_tools: Annotated[
        Literal["none"] | Texts | None,
        Field(union_mode="left_to_right"),
        BeforeValidator(_tool_names),
    ] = None
    """Names of the tools that must be called; none: no tool may be called."""
    expected_output_contains: Needles | None = None
    """Texts that the answer must contain, as whole words and numbers."""

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools that must be called. A name that is written twice counts once."""
        tools = self.expected_tools
        return () if tools is None or tools == NO_CALL else tuple(dict.fromkeys(tools))

    @property
    def allows_no_call(self) -> bool:
        return self.expected_tools == NO_CALL

    @property
    def keywords(self) -> tuple[str, ...]:
        return self.expected_output_contains or ()

    @property
    def empty_lists(self) -> tuple[str, ...]:
        """The keys whose lists are written and empty."""
        written = {
            "expected_tools": self.expected_tools,
            "expected_output_contains": self.expected_output_contains,
        }
        return tuple(name for name, value in written.items() if value == ())


class ScenarioFields(Value):
    """The keys that scenarios and test cases share."""

    id: Text = ""
    """Name in selections and reports, unique across all files; default: derived from name."""
    name: Text = ""
    """Title of the scenario in reports."""
    category: Category = Category.CAPABILITY
    """Table of the report in which the scenario is shown."""
    tags: Texts = ()
    """Labels for selection with --tag."""
    agent: str | None = None
    """Name of the agent to test, if not the configuration's."""
    profile: Text = ""
    """Description of the simulated user."""
    goal: Text = ""
    """Goal of the simulated user; a judge decides whether it was reached."""
    goal_outcome: Literal["reached", "refused"] = "reached"
    """Expected end of the goal: reached, or refused by the agent."""
    knowledge: Texts = ()
    """Facts that the simulated user knows."""
    facts: Texts = ()
    """True statements that only the judge knows."""
    beliefs: ListOf[Annotated[Belief, BeforeValidator(_belief), AlternativeSchema(type="string")]] = ()
    """Beliefs of the simulated user, true or not."""
    tools: dict[str, Tool] = {}
    """Tools of this scenario by name: what the agent sees of each, and how it answers."""
    expect: Expectation = Expectation()
    """Expectations for the whole conversation."""
    epochs: Epochs | None = None
    """Number of conversations, or {min, max}."""
    max_turns: Annotated[Count, Field(ge=1)] | None = None
    """Maximum number of turns of the simulated user."""
    thresholds: Thresholds = {}
    """Lowest acceptable values by metric; null removes one of the configuration."""
    checks: Literal["none"] | None = None
    """none: confirms that only an unbroken, non-empty answer is checked."""


def _rows(value: Any) -> Any:
    if value is None or isinstance(value, str | list | tuple):
        return value
    raise ValueError("expected a list of rows, or a file; write [{id: A-1}], or orders.csv")


class RowsSpec(Value):
    """The data that makes one scenario many: every row of ``rows`` with every combination of ``matrix``."""

    rows: Annotated[str | tuple[Any, ...] | None, BeforeValidator(_rows)] = None
    """List of rows, or a CSV, TSV, JSONL, JSON or YAML file of them: one scenario per row."""
    matrix: dict[str, tuple[Any, ...]] = {}
    """Lists of values by name: one scenario for each combination."""
    types: dict[str, Literal["string", "integer", "number", "boolean", "json"]] = {}
    """Types of the cells by column of a CSV file; the default is text."""


class Scenario(ScenarioFields):
    """One scenario."""

    turns: tuple[TurnEntry, ...] | None = None
    """User messages in order: a text, {user, expect}, or {simulate: N}; default: all are simulated."""
    case: CaseSpec | None = None
    policy: str = ""
    """The instructions of the agent in a recorded conversation."""
    source: str = ""
    """Its place (``path:line``)."""
    lines: dict[str, int | str] = {}
    """By the dotted path of a key (``expect.output.contains``, ``turns.1.expect.tool_calls``,
    ``thresholds.helpfulness``), its line in that file or its place elsewhere."""
    base: str = ""
    """The folder of its file, where the paths in ``python`` expectations start."""
    row: str = ""
    """The place of the data row that it was made from, or an empty string if it was written out."""
    pattern: str = ""
    """The id that all rows share, with ``*`` for what differs, or an empty string if it was written out."""

    PLACES: ClassVar[frozenset[str]] = frozenset({"source", "lines", "base", "row", "pattern"})
    """Fields on where it was written, which are not part of its content."""
    INTERNAL: ClassVar[frozenset[str]] = frozenset({"case", "policy", *PLACES})

    @property
    def is_scripted(self) -> bool:
        """True if every user message is written."""
        return self.turns is not None and all(isinstance(turn, ScriptedTurn) for turn in self.turns)

    @property
    def tools_named(self) -> frozenset[str]:
        """The tools that it declares, and those whose calls it expects or forbids."""
        asked = (expect.tool_calls for _, expect in self.expectations if expect.tool_calls)
        calls = (call.name for rule in asked for call in (*rule.expected_calls, *rule.forbidden))
        return frozenset((*self.tools, *calls))

    @property
    def has_several_turns(self) -> bool:
        """True if the agent may be called more than once in a conversation."""
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
        """Return ``file:line`` of ``path`` or of its nearest parent that is written."""
        file = self.source.rsplit(":", 1)[0]
        while path:
            if (at := self.lines.get(path)) is not None:
                return at if isinstance(at, str) else f"{file}:{at}"
            path = path.rpartition(".")[0]
        return self.source

    def turn_expectation(self, turn: Turn) -> Expectation | None:
        """Return the expectation of ``turn``; ``None`` for a simulated one."""
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
    """Return a 63-bit seed that depends only on the run's seed and the sample's identity."""
    text = f"{run_seed}\0{key.scenario}\0{key.agent}\0{key.variant}\0{key.epoch}"
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest()) >> 1
