"""The content of a scenario as an author writes it (persona, goal, turns, tool mocks, expectations), and the
samples that are run from it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sized
from dataclasses import dataclass
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
    WithJsonSchema,
    model_serializer,
    model_validator,
)

from agenteval.core import patterns, text_matching
from agenteval.core.tool_faults import ToolFault
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
from agenteval.core.world_state import StateExpectations, StateSpec

MAX_EPOCHS = 10_000
"""The maximum number of conversations per scenario. A higher number is probably a typo."""


def _is_empty(value: Sized) -> bool:
    return not value


class Category(StrEnum):
    """The dimension of a scenario, which determines the table that lists the scenario."""

    CAPABILITY = "capability"
    EFFICIENCY = "efficiency"
    ROBUSTNESS = "robustness"


class ArgsMatch(StrEnum):
    EXACT = "exact"
    PARTIAL = "partial"
    IGNORE = "ignore"


class MatchMode(StrEnum):
    """The mode in which expected and actual tool calls are compared. See
    ``agenteval.scoring.checks.call_matching``."""

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
    """Maps terms that other tools use to the mode with the same meaning, because the mode with the most
    similar name may have a different meaning."""


class CallPattern(Value):
    """A pattern for tool calls. If ``args`` is omitted, any arguments match; if ``agent`` is omitted, any
    agent matches."""

    name: str
    """Name of the tool."""
    args: dict[str, Any] | None = None
    """Arguments of the call; a matcher such as {$in: [a, b]} may replace any value."""
    args_match: ArgsMatch | None = None
    """Comparison of args: exact, partial (at least these keys) or ignore."""
    agent: Text | None = None
    """Agent in a multi-agent system that makes the call."""

    DEFAULT_MATCH: ClassVar[ArgsMatch] = ArgsMatch.EXACT
    """The comparison of ``args`` if ``args_match`` is not set."""

    @property
    def mode(self) -> ArgsMatch:
        if self.args is None:
            return ArgsMatch.IGNORE
        return self.args_match or self.DEFAULT_MATCH

    @property
    def wanted_result(self) -> Literal["ok", "error"] | None:
        """The required result, or ``None`` if any result matches."""
        return None

    @model_validator(mode="after")
    def _args_go_with_args_match(self) -> CallPattern:
        if self.args is None and self.args_match in (ArgsMatch.EXACT, ArgsMatch.PARTIAL):
            raise ValueError(
                f"`args_match: {self.args_match}` requires `args`; add `args` or remove `args_match`"
            )
        return self


_NO_CALL_AT_ALL = "0 would forbid the call; list it under `forbidden` instead"


def _not_zero(value: Any) -> Any:
    if value == 0 and not isinstance(value, bool):
        raise ValueError(_NO_CALL_AT_ALL)
    return value


CallCount: TypeAlias = Annotated[Count, Field(ge=1), BeforeValidator(_not_zero)]


class CallRange(Value):
    """Bounds on the number of matching calls. If ``at_least`` is omitted, the minimum is the same as for a
    call that does not set ``times``: one call or, under ``within``, no calls. If ``at_most`` is omitted,
    there is no maximum."""

    at_least: Annotated[Count, Field(ge=0)] | None = None
    """Minimum number of matching calls; 0 makes the call optional."""
    at_most: CallCount | None = None
    """Maximum number of matching calls."""

    EXAMPLE: ClassVar[str] = "{at_least: 1, at_most: 3}"

    @model_validator(mode="after")
    def _in_order(self) -> CallRange:
        if self.at_least is None and self.at_most is None:
            raise ValueError("no bound is set; set `at_least` or `at_most`")
        if self.at_least is not None and self.at_most is not None and self.at_least > self.at_most:
            what = f"`at_least` ({self.at_least}) is greater than `at_most` ({self.at_most})"
            raise ValueError(f"{what}; swap the two numbers")
        return self


def _times_kind(value: Any) -> str:
    return "range" if isinstance(value, dict | CallRange) else "number"


Times: TypeAlias = Annotated[
    Annotated[CallCount, Tag("number")] | Annotated[CallRange, Tag("range")],
    Discriminator(_times_kind),
]


class ExpectedCall(CallPattern):
    """An expected tool call. See ``agenteval.scoring.checks.call_matching``."""

    times: Times | None = None
    """Number of matching calls, or {at_least, at_most}."""
    result: Literal["ok", "error"] | None = None
    """Required result of the call: ok or error."""

    @property
    def wanted_result(self) -> Literal["ok", "error"] | None:
        return self.result

    def bounds(self, match: MatchMode) -> tuple[int, int | None]:
        """Return the minimum and the maximum number of calls that match this expectation. ``None`` means that
        there is no maximum."""
        fewest = 0 if match is MatchMode.WITHIN else 1
        if self.times is None:
            return fewest, (None if match is MatchMode.WITHIN else 1)
        if isinstance(self.times, int):
            return self.times, self.times
        fewest_given = self.times.at_least
        return (fewest if fewest_given is None else fewest_given), self.times.at_most


class ForbiddenCall(CallPattern):
    """Calls that must not be made. Calls with additional arguments are also forbidden, unless the author
    specifies otherwise."""

    DEFAULT_MATCH: ClassVar[ArgsMatch] = ArgsMatch.PARTIAL
    NOT_HERE: ClassVar[dict[str, str]] = {
        "times": "to allow a few calls, set `times: {at_least: 0, at_most: N}` for a call under `calls`",
        "result": "remove it; a forbidden call is forbidden whatever its result",
    }


NO_CALL = "none"
"""The word that replaces expected calls or tools to specify that no calls may be made."""


def _is_misspelled_none(value: Any) -> bool:
    return isinstance(value, str) and value != NO_CALL and value.strip().casefold() == NO_CALL


def _long_form(value: Any) -> Any:
    """Expand ``none``, which means that no tool may be called, to its long form."""
    if _is_misspelled_none(value):
        raise ValueError(f"expected '{NO_CALL}' or a mapping, got '{value}'; use `{NO_CALL}`")
    return {"match": MatchMode.STRICT, "calls": ()} if value == NO_CALL else value


_OR_NONE = AlternativeSchema(enum=[NO_CALL])


def _not_none(value: Any) -> Any:
    if value == NO_CALL:
        raise ValueError(
            f"expected a list, got '{NO_CALL}'; use `{NO_CALL}` in place of the enclosing mapping"
        )
    return value


class CallsExpectation(Value):
    """The expected calls, and the mode in which they are compared with the actual calls."""

    match: MatchMode = MatchMode.CONTAINS
    """Mode in which the expected calls are compared with the calls that were made."""
    calls: Annotated[tuple[ExpectedCall, ...] | None, BeforeValidator(_not_none)] = None
    """The expected calls."""

    SHORT_FORM: ClassVar[str] = f"'{NO_CALL}'"

    @property
    def is_closed(self) -> bool:
        """True if no calls other than the expected calls are allowed."""
        return self.match in (MatchMode.STRICT, MatchMode.UNORDERED, MatchMode.WITHIN)

    @property
    def is_ordered(self) -> bool:
        return self.match in (MatchMode.STRICT, MatchMode.IN_ORDER)

    @model_validator(mode="after")
    def _require_content_in_each(self) -> CallsExpectation:
        for call in self.calls or () if self.match is MatchMode.CONTAINS else ():
            if call.times is not None and call.bounds(self.match) == (0, None):
                what = f"'{call.name}' with `times: {{at_least: 0}}` checks nothing under `match: contains`"
                raise ValueError(f"{what}; add `at_most`, or remove the call")
        return self

    def _refuse_no_calls(self) -> None:
        if self.calls == () and self.match is not MatchMode.STRICT:
            raise ValueError(
                "`calls` is an empty list, which checks nothing; add calls"
                f" (if no tool may be called, use `{NO_CALL}` in place of the mapping)"
            )


class CallsAlternative(CallsExpectation):
    """One of the alternatives in ``any_of``."""

    NOT_HERE: ClassVar[dict[str, str]] = {
        "forbidden": "move it next to `any_of`, not inside it",
        "any_of": "move its alternatives to the enclosing list",
    }

    @model_validator(mode="after")
    def _require_alternative_content(self) -> CallsAlternative:
        if self.calls is None:
            raise ValueError("`calls` is missing; list the calls of each alternative")
        self._refuse_no_calls()
        return self


class ToolCallsExpectation(CallsExpectation):
    """The key ``tool_calls``. It contains ``calls`` or the alternatives in ``any_of``, optionally with
    ``forbidden``, or ``forbidden`` alone."""

    any_of: tuple[Annotated[CallsAlternative, BeforeValidator(_long_form), _OR_NONE], ...] | None = None
    """Alternatives, of which at least one must hold; each has match and calls, or is none."""
    forbidden: tuple[ForbiddenCall, ...] = ()
    """Calls that must not be made."""

    @property
    def alternatives(self) -> tuple[CallsExpectation, ...]:
        """Alternatives, at least one of which must hold. If there are none, only ``forbidden`` is checked.
        Unless the mode is ``strict``, an empty ``calls`` next to ``forbidden`` is treated as omitted."""
        if self.any_of is not None:
            return self.any_of
        is_left_out = not self.calls and self.forbidden and self.match is not MatchMode.STRICT
        return () if self.calls is None or is_left_out else (self,)

    @property
    def expected_calls(self) -> tuple[ExpectedCall, ...]:
        """The expected calls in all alternatives."""
        return tuple(call for each in self.alternatives for call in each.calls or ())

    @model_validator(mode="after")
    def _require_any_rule(self) -> ToolCallsExpectation:
        if self.any_of is not None:
            self._any_of_stands_alone()
        elif self.calls is None and not self.forbidden:
            raise ValueError(
                "no call is expected or forbidden, so nothing is checked; add `calls` or `forbidden`"
                f" (if no tool may be called, use `tool_calls: {NO_CALL}`)"
            )
        elif not self.forbidden:
            self._refuse_no_calls()
        return self

    def _any_of_stands_alone(self) -> None:
        given = {"match": self.match is not MatchMode.CONTAINS, "calls": self.calls is not None}
        if others := [name for name, is_given in given.items() if is_given]:
            what = f"`any_of` cannot be combined with {' or '.join(f'`{name}`' for name in others)}"
            raise ValueError(f"{what}; set `match` and `calls` in the alternatives")
        if not self.any_of:
            raise ValueError(
                "`any_of` is an empty list, which checks nothing; add alternatives, or use `calls`"
            )


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
        """Strings that the answer must contain as whole words and numbers; refund* allows any ending."""
        any_of: Needles = ()
        """Strings of which the answer must contain at least one."""
        not_contains: PlainNeedles = ()
        """Strings that the agent must not write, not even inside a word."""
        matches: Patterns | None = None
        """Regular expressions that must match somewhere in the answer, ignoring case."""
        json_schema: dict[str, Any] = {}
        """JSON Schema for the answer, which must be valid JSON."""
        json: dict[str, Any] = {}  # type: ignore[assignment]
        """Paths in the answer, which must be valid JSON, and their expected values: {"items[0].price":
        9.5}."""
        cites: Needles = ()
        """Strings that both the answer and the result of an earlier tool call must contain."""


class Limits(Value):
    """Upper bounds for the entire conversation or, in the expectations of a turn, for that turn. They apply
    only to the agent, not to the user."""

    steps: Annotated[Count, Field(ge=0)] | None = None
    """Maximum number of the agent's replies: rounds of tool calls, plus one for the answer."""
    tool_calls: Annotated[Count, Field(ge=0)] | None = None
    """Maximum number of tool calls."""
    tokens: Annotated[Count, Field(ge=0)] | None = None
    """Maximum number of tokens, input and output."""
    latency_ms: Annotated[Number, Field(ge=0)] | None = None
    """Maximum time from the user's message to the final answer, in milliseconds."""


class Expectation(Value):
    tool_calls: Annotated[ToolCallsExpectation | None, BeforeValidator(_long_form), _OR_NONE] = None
    """Expected or forbidden calls; none means that no tool may be called."""
    output: OutputExpectation | None = None
    """Content that the agent's answer must or must not have."""
    agents: Texts = ()
    """Agents in a multi-agent system that must reply, in order."""
    criteria: Texts = ()
    """Statements that an LLM judge decides one by one: pass, fail or not clear."""
    limits: Limits | None = None
    """Upper bounds on steps, tool calls, tokens and latency."""
    state: StateExpectations = ()
    """Expectations about the state of the tool world."""
    python: Texts = ()
    """Functions that check the conversation: file.py:function, relative to the folder of this file."""
    allow_empty: bool | None = None
    """True if an empty answer is accepted."""

    @property
    def is_vacuous(self) -> bool:
        """True if nothing is checked. Every field is a check except for ``allow_empty``, which waives a
        check."""
        return not any(has_expectation(value) for name, value in self if name != "allow_empty")


def has_expectation(asked: Any) -> bool:
    """Check whether a field of ``expect``, or a field nested in it, contains an expectation."""
    if isinstance(asked, Value):
        return any(has_expectation(value) for _, value in asked)
    return asked is not None and asked not in ((), {})


class UserToolCall(Value):
    """A call of one of the user's tools."""

    name: Text
    """Name of the tool, one of user_tools."""
    args: dict[str, Any] = {}
    """Arguments of the call."""

    EXAMPLE: ClassVar[str] = "{name: restart_router, args: {}}"


class ScriptedTurn(Value):
    """A turn with a predefined user message."""

    user: Text
    """The user's message."""
    tool_calls: Annotated[tuple[UserToolCall, ...], Field(exclude_if=_is_empty)] = ()
    """Calls of the user's tools, made in order before the message is sent."""
    expect: Expectation = Expectation()
    """Expectations for this turn."""

    SHORT_FORM: ClassVar[str] = "a string"


class SimulatedTurns(Value):
    """A series of turns written by the simulated user."""

    simulate: Annotated[Count, Field(ge=1)]
    """Maximum number of turns written by the simulated user."""


def _turn(value: Any) -> Any:
    """Expand a string to a turn with this user message."""
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


TOOL_ANSWERS = frozenset({"returns", "error", "sql", "one", "none", "sequence", "python", "rules", "method"})
"""The keys that define the answer of a tool."""
_ANSWER_KINDS = ("returns", "error", "sql", "sequence", "python", "rules")
"""The keys of which at most one may be set. Only ``returns`` may accompany ``sql``."""


def _only_given(value: Value, dump: SerializerFunctionWrapHandler) -> Any:
    """Omit answers that are not set from the dump. ``returns: null`` counts as set, and means null."""
    made = dump(value)
    return {k: v for k, v in made.items() if k not in TOOL_ANSWERS or k in value.model_fields_set}


def _find_answers(value: Value, *, at_least: int) -> str:
    """Check that one key defines the answer. Return what is wrong, or an empty string."""
    given = value.model_fields_set
    if "sql" in given and not getattr(value, "sql", None):
        return "`sql` has no statement; write one, or remove it"
    kinds = [key for key in _ANSWER_KINDS if key in type(value).model_fields]
    answers = [key for key in kinds if key in given]
    if "sql" in answers:
        answers = [key for key in answers if key != "returns"]
    elif stray := [key for key in ("one", "none") if key in given]:
        return f"`{stray[0]}` needs `sql`"
    if len(answers) > 1:
        return f"the answer is defined more than once, by {' and '.join(answers)}; keep one"
    if len(answers) < at_least:
        names = [f"`{key}`" for key in kinds]
        return f"exactly one of {', '.join(names[:-1])} and {names[-1]} must be set"
    return ""


class NoRows(Value):
    """The answer of a tool whose ``sql`` found no row, or changed none."""

    returns: Any = None
    """Result, which may be any value; ${args.NAME} is replaced with an argument of the call."""
    error: Text | None = None
    """Error message that the call returns; everything that the call did to the state is undone."""

    EXAMPLE: ClassVar[str] = "{error: there is no such order}"

    @model_validator(mode="after")
    def _one_of(self) -> NoRows:
        if wrong := _find_answers(self, at_least=1):
            raise ValueError(wrong)
        return self

    @model_serializer(mode="wrap")
    def _dump(self, dump: SerializerFunctionWrapHandler) -> Any:
        return _only_given(self, dump)


class ToolStep(Value):
    """One answer of a mocked tool, defined by one of its keys."""

    returns: Any = None
    """Result, any value; ${args.NAME} is an argument of the call, ${result.NAME} a column of the first row.
    """
    error: Text | None = None
    """Error message that the call returns."""
    sql: Texts | None = None
    """Statement over the state, or several in one transaction; :NAME is an argument of the call."""
    one: bool = False
    """True if the result of sql is its first row instead of a list of rows."""
    none: NoRows | None = None
    """Answer if sql found no row, or changed none."""

    @model_validator(mode="after")
    def _one_of(self) -> ToolStep:
        if wrong := _find_answers(self, at_least=1):
            raise ValueError(wrong)
        return self

    @model_serializer(mode="wrap")
    def _dump(self, dump: SerializerFunctionWrapHandler) -> Any:
        return _only_given(self, dump)


class RuleCondition(Value):
    """The calls that a rule answers. All of its parts must hold."""

    args: Annotated[dict[str, Any], Field(min_length=1)] | None = None
    """Arguments that the call must have, with the matchers of expectations; other arguments may be added."""
    call: Annotated[Count, Field(ge=1)] | None = None
    """Number of the call among the calls to this tool, from 1."""
    turn: Annotated[Count, Field(ge=0)] | None = None
    """Number of the turn, from 0."""

    EXAMPLE: ClassVar[str] = "{args: {city: Rome}}"

    @model_validator(mode="after")
    def _has_condition(self) -> RuleCondition:
        if self.args is None and self.call is None and self.turn is None:
            raise ValueError("the condition is empty; set `args`, `call` or `turn`, or remove `when`")
        return self


class ToolRule(Value):
    """An answer of a mocked tool to some calls, defined by one of its keys."""

    when: RuleCondition | None = None
    """Calls that the rule answers; default: all that reach it."""
    returns: Any = None
    """Result, which may be any value; ${args.NAME} is replaced with an argument of the call."""
    error: Text | None = None
    """Error message that the call returns."""
    sql: Texts | None = None
    """Statement over the state, or several in one transaction; :NAME is an argument of the call."""
    one: bool = False
    """True if the result of sql is its first row instead of a list of rows."""
    none: NoRows | None = None
    """Answer if sql found no row, or changed none."""
    sequence: Annotated[tuple[ToolStep, ...], Field(min_length=1)] | None = None
    """Results of the first call that the rule answers, the second and so on; the last result is repeated."""
    python: str | None = None
    """Function that answers the calls: file.py:function, relative to the folder of this file."""

    @model_validator(mode="after")
    def _one_answer(self) -> ToolRule:
        if wrong := _find_answers(self, at_least=1):
            raise ValueError(wrong)
        return self

    @model_serializer(mode="wrap")
    def _dump(self, dump: SerializerFunctionWrapHandler) -> Any:
        return _only_given(self, dump)


class Tool(Value):
    """A tool (mock) in a scenario: its description for the agent, and its answers.

    At most one of ``returns``, ``error``, ``sequence``, ``python`` and ``rules`` defines the answers. If none
    is set, calling the tool is an error unless ``unmocked_tools`` specifies otherwise. Checks in code use the
    marks (``reads``, ``writes``, ``destructive``). A ``destructive`` tool also counts as a writing tool."""

    description: str | None = None
    """Description of the tool that the agent receives."""
    parameters: dict[str, Any] | None = None
    """JSON Schema of the arguments, of type object; a call that violates it gets an error."""
    returns: Any = None
    """Result of every call, which may be any value; ${args.NAME} is replaced with an argument of the call."""
    error: Text | None = None
    """Error message that every call returns."""
    sql: Texts | None = None
    """Statement over the state, or several in one transaction; :NAME is an argument of the call."""
    one: bool = False
    """True if the result of sql is its first row instead of a list of rows."""
    none: NoRows | None = None
    """Answer if sql found no row, or changed none."""
    sequence: Annotated[tuple[ToolStep, ...], Field(min_length=1)] | None = None
    """Results of the first call, the second call and so on; the last result is repeated."""
    python: str | None = None
    """Function that answers the calls: file.py:function, relative to the folder of this file."""
    rules: Annotated[tuple[ToolRule, ...], Field(min_length=1)] | None = None
    """Answers that depend on the call: the first rule that matches the call answers it."""
    reads: bool = False
    """True if the tool only reads."""
    writes: bool = False
    """True if the tool changes something."""
    destructive: bool = False
    """True if the effect cannot be undone, so that the tool requires the user's confirmation."""
    faults: Annotated[tuple[ToolFault, ...], Field(exclude_if=lambda faults: not faults)] = ()
    """Faults of the calls, such as {kind: timeout, on_call: 1}; the first that applies to a call counts."""
    base: str = ""  # set by the loader: the scenario file's folder, where `python` paths start
    method: str | None = None  # set by the loader: the method of the scenario's `world` that answers

    INTERNAL: ClassVar[frozenset[str]] = frozenset({"base", "method"})

    @model_validator(mode="after")
    def _one_answer(self) -> Tool:
        if wrong := _find_answers(self, at_least=0):
            raise ValueError(wrong)
        if self.reads and (self.writes or self.destructive):
            raise ValueError("`reads` cannot be combined with `writes` or `destructive`; keep one of them")
        if self.faults and not self.is_mocked:
            raise ValueError("`faults` need an answer that they can change; add `returns`, `sql` or `python`")
        if not self.has_effects and any(fault.kind == "no_op" for fault in self.faults):
            raise ValueError("a `no_op` has no effect on fixed answers; it needs `sql` or `python`")
        return self

    @model_serializer(mode="wrap")
    def _dump(self, dump: SerializerFunctionWrapHandler) -> Any:
        return _only_given(self, dump)

    @property
    def is_mocked(self) -> bool:
        return bool(self.model_fields_set & TOOL_ANSWERS)

    @property
    def all_answers(self) -> Iterator[tuple[tuple[str | int, ...], ToolAnswer]]:
        """All answers of the tool, each with the path of its keys, such as ``("rules", 1)``."""
        yield (), self
        yield from ((("sequence", at), step) for at, step in enumerate(self.sequence or ()))
        for number, rule in enumerate(self.rules or ()):
            yield ("rules", number), rule
            steps = enumerate(rule.sequence or ())
            yield from ((("rules", number, "sequence", at), step) for at, step in steps)

    @property
    def functions(self) -> dict[str, str]:
        """The functions that answer calls, keyed by the path of their key."""
        rules = ((f"rules.{at}.python", rule.python) for at, rule in enumerate(self.rules or ()))
        return {path: target for path, target in (("python", self.python), *rules) if target is not None}

    @property
    def calls_python(self) -> bool:
        """True if the author's code answers some of the calls."""
        return bool(self.functions) or self.method is not None

    @property
    def has_effects(self) -> bool:
        """True if calls may change something: SQL or the author's code answers them."""
        return self.calls_python or any(answer.sql for _, answer in self.all_answers)

    @property
    def is_marked(self) -> bool:
        """True if a mark specifies the effect of the tool."""
        return self.reads or self.writes or self.destructive


ToolAnswer: TypeAlias = Tool | ToolRule | ToolStep

ShareBelow: TypeAlias = dict[Number, Annotated[Number, Field(ge=0, lt=1)]]


class ThresholdRule(Value):
    """Bounds on the scores for a metric. At least one bound is set."""

    at_least: Number | None = None
    """Lowest acceptable mean of the scores, or lowest acceptable share."""
    min: Number | None = None
    """Lowest acceptable single score."""
    share_below: (
        Annotated[ShareBelow, BeforeValidator(reject_duplicate_numbers), Field(min_length=1)] | None
    ) = None
    """Largest acceptable share of scores below a given score: {2: 0.1}."""

    @model_validator(mode="after")
    def _require_bound(self) -> ThresholdRule:
        if self.at_least is None and self.min is None and self.share_below is None:
            raise ValueError("no bound is set; set `at_least`, `min` or `share_below`")
        return self

    @property
    def numbers(self) -> tuple[float, ...]:
        """All scores that the rule contains."""
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
    """Return a threshold in its long form. A plain number is the lowest acceptable mean or rate."""
    return entry if isinstance(entry, ThresholdRule) else ThresholdRule(at_least=entry)


def compact_threshold(rule: ThresholdRule) -> ThresholdEntry:
    """Return a threshold in the shortest form that an author may write."""
    lowest = rule.at_least
    return lowest if lowest is not None and rule.min is None and rule.share_below is None else rule


class EpochRange(Value):
    """A range for the number of epochs. A scenario ends as soon as its gate is decided."""

    min: Annotated[Count, Field(ge=1, le=MAX_EPOCHS)]
    """Minimum number of conversations."""
    max: Annotated[Count, Field(ge=1, le=MAX_EPOCHS)]
    """Maximum number of conversations; they end sooner once a gate is decided."""

    @model_validator(mode="after")
    def _in_order(self) -> EpochRange:
        if self.min > self.max:
            raise ValueError(f"`min` ({self.min}) is greater than `max` ({self.max}); swap the two numbers")
        return self


def _epochs_kind(value: Any) -> str:
    return "range" if isinstance(value, dict | EpochRange) else "number"


Epochs: TypeAlias = Annotated[
    Annotated[Count, Field(ge=1, le=MAX_EPOCHS), Tag("number")] | Annotated[EpochRange, Tag("range")],
    Discriminator(_epochs_kind),
]


class Belief(Value):
    """A belief of the simulated user, which may be true or false, and what can change it."""

    belief: Text
    """Statement that the user believes."""
    held: Literal["loosely", "normally", "firmly"] = "normally"
    """Strength of the belief: loosely, normally (a reason changes it) or firmly (nothing does)."""

    SHORT_FORM: ClassVar[str] = "a string"
    EXAMPLE: ClassVar[str] = "{belief: The shop is open on Sunday., held: firmly}"

    @model_serializer(mode="wrap")
    def _dump(self, dump: SerializerFunctionWrapHandler) -> Any:
        return self.belief if self.held == "normally" else dump(self)


def _belief(value: Any) -> Any:
    """Expand a string to a belief that is held normally."""
    return {"belief": value} if isinstance(value, str) else value


_NO_TOOL_NAMES = frozenset({"none", "null", "~", "false", "no", "true", "yes"})
"""Words that authors use to mean no tools or all tools. A tool with such a name can be expected only under
``expect``."""


def _tool_names(value: Any) -> Any:
    if value is None or value == NO_CALL:
        return value
    for name in value if isinstance(value, list | tuple) else (value,):
        text = "null" if name is None else str(name).lower() if isinstance(name, bool) else name
        if isinstance(text, str) and text.strip().casefold() in _NO_TOOL_NAMES:
            what = f"'{text}' would be read as a tool name"
            raise ValueError(
                f"{what}; use `expected_tools: {NO_CALL}` if no tool may be called,"
                " otherwise list the expected tools"
            )
    return value


class CaseSpec(Value):
    """The expectations of a test case in its short form. They are stored separately from those of the
    scenario, because the scorers of the three dimensions read them here. ``None`` means that the key is not
    set; an empty list checks nothing."""

    expected_tools: Annotated[
        Literal["none"] | Texts | None,
        Field(union_mode="left_to_right"),
        BeforeValidator(_tool_names),
    ] = None
    """Names of the tools that must be called; none means that no tool may be called."""
    expected_output_contains: Needles | None = None
    """Strings that the answer must contain as whole words and numbers."""

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools that must be called, without duplicates."""
        tools = self.expected_tools
        return () if tools is None or tools == NO_CALL else tuple(dict.fromkeys(tools))

    @property
    def allows_no_call(self) -> bool:
        return self.expected_tools == NO_CALL

    @property
    def tool_calls(self) -> ToolCallsExpectation | None:
        """What the key says about calls, in the form in which a scenario says it: each tool is called at
        least once, or none is."""
        if not self.tools and not self.allows_no_call:
            return None
        match = MatchMode.STRICT if self.allows_no_call else MatchMode.CONTAINS
        return ToolCallsExpectation(match=match, calls=tuple(ExpectedCall(name=name) for name in self.tools))

    @property
    def keywords(self) -> tuple[str, ...]:
        return self.expected_output_contains or ()

    @property
    def empty_lists(self) -> tuple[str, ...]:
        """The keys that are set to an empty list."""
        written = {
            "expected_tools": self.expected_tools,
            "expected_output_contains": self.expected_output_contains,
        }
        return tuple(name for name, value in written.items() if value == ())


def _is_zero(value: int) -> bool:
    return not value


HistoryMessage: TypeAlias = Annotated[
    dict[str, Any],
    WithJsonSchema(
        {
            "type": "object",
            "properties": {
                "role": {"enum": ["user", "assistant", "tool"]},
                "content": {"description": "Text of the message, or result of the call."},
                "tool_calls": {"type": "array", "items": {"type": "object"}},
                "tool_call_id": {"type": "string"},
                "name": {"type": "string"},
                "status": {"enum": ["success", "error"]},
            },
            "required": ["role"],
            "additionalProperties": False,
        }
    ),
]
"""An earlier message in OpenAI's format. The loader reads the messages (``files.scenario_history``)."""


def _reason(value: Any) -> Any:
    if isinstance(value, str):
        return value
    raise ValueError("expected the reason as a string; remove `skip` to run the scenario")


class ScenarioFields(Value):
    """The keys that scenarios and test cases share."""

    id: Text = ""
    """Id used in selections and reports, unique across all files; default: derived from name."""
    name: Text = ""
    """Title of the scenario in reports."""
    category: Category = Category.CAPABILITY
    """Table in the report that lists the scenario."""
    tags: Texts = ()
    """Labels for selecting scenarios with --tag."""
    note: Text | None = None
    """Description of what the scenario tests, shown beside its result; not part of what is judged."""
    agent: str | None = None
    """Name of the agent to test, if it is not the agent of the configuration."""
    profile: Text = ""
    """Description of the simulated user (persona)."""
    goal: Text = ""
    """Goal of the simulated user; a judge decides whether it was reached."""
    goal_outcome: Literal["reached", "refused"] = "reached"
    """Expected outcome of the goal: reached, or refused by the agent."""
    knowledge: Texts = ()
    """Facts that the simulated user knows."""
    facts: Texts = ()
    """True statements that only the judge knows."""
    beliefs: ListOf[Annotated[Belief, BeforeValidator(_belief), AlternativeSchema(type="string")]] = ()
    """Beliefs of the simulated user, which may be true or false."""
    user_prompt: str | None = None
    """Prompt file for the simulated user of this scenario, relative to the folder of this file."""
    history: Annotated[tuple[HistoryMessage, ...], Field(exclude_if=_is_empty)] = ()
    """Earlier messages, from which the conversation continues."""
    tools: dict[str, Tool] = {}
    """Tools in this scenario by name: the description for the agent, and the answers (mocks)."""
    user_tools: Annotated[dict[str, Tool], Field(exclude_if=_is_empty)] = {}
    """Tools that the user can call, on the user's side, over the same state; written like tools."""
    state: StateSpec | None = None
    """State of the tool world, over which sql of tools works: tables, a schema, or a SQLite file."""
    world: Text = ""
    """Class with a back end in Python (file.py:Class, relative to the folder of this file); its methods are
    tools."""
    expect: Expectation = Expectation()
    """Expectations for the entire conversation."""
    epochs: Epochs | None = None
    """Number of conversations, or {min, max}."""
    max_turns: Annotated[Count, Field(ge=1)] | None = None
    """Maximum number of turns by the simulated user."""
    min_turns: Annotated[Count, Field(ge=0, exclude_if=_is_zero)] = 0
    """Number of turns before which the simulated user cannot end the conversation."""
    thresholds: Thresholds = {}
    """Lowest acceptable scores by metric; null removes a threshold of the configuration."""
    skip: Annotated[Text, BeforeValidator(_reason)] = ""
    """Reason for not running the scenario; reports mention it."""
    setup: Text = ""
    """Function (file.py:name) called with the sample before each conversation."""
    teardown: Text = ""
    """Function (file.py:name) called with the sample after each conversation."""
    checks: Literal["none"] | None = None
    """Confirmation (none) that only failures of the agent and empty answers are checked."""


def _rows(value: Any) -> Any:
    if value is None or isinstance(value, str | list | tuple):
        return value
    raise ValueError("expected a list of rows or a file name; use, for example, [{id: A-1}] or orders.csv")


class RowsSpec(Value):
    """The data for generating scenarios from a template (parametrization): every row of ``rows`` is combined
    with every combination of values in ``matrix``."""

    rows: Annotated[str | tuple[Any, ...] | None, BeforeValidator(_rows)] = None
    """List of rows, or a CSV, TSV, JSONL, JSON or YAML file that contains them: one scenario per row."""
    matrix: dict[str, tuple[Any, ...]] = {}
    """Lists of values by name: one scenario for each combination."""
    types: dict[str, Literal["string", "integer", "number", "boolean", "json"]] = {}
    """Types of the cells by column of a CSV file; default: text."""


MessageVariantKind: TypeAlias = Literal[
    "typos", "case", "noise", "reordered", "empty", "long", "unicode", "paraphrase"
]


class ScenarioVariant(Value):
    """What makes a scenario a variant of another one."""

    of: str
    """The id of the scenario that was written."""
    tool: str = ""
    """The tool that has the fault."""
    fault: ToolFault | None = None
    """The fault of the tool."""
    waived: dict[str, Expectation] = {}
    """The expectations of success, keyed by path. They decide whether the agent recovered, and count
    against it only if the fault passes."""
    waived_case: CaseSpec | None = None
    """The same for a test case."""
    messages: Annotated[MessageVariantKind | None, Field(exclude_if=lambda messages: messages is None)] = None
    """What is done to the user's messages."""
    texts: Annotated[tuple[str, ...], Field(exclude_if=lambda texts: not texts)] = ()
    """The messages of a paraphrase, by turn of the script."""
    values: Annotated[tuple[str, ...], Field(exclude_if=lambda values: not values)] = ()
    """Words that are values in the scenario, and therefore stay as they are in each message."""

    @property
    def is_compared(self) -> bool:
        """True if the conversation must have the same effect as one of the scenario that was written."""
        return self.messages is not None and self.messages != "empty"


VARIANT_SEPARATOR = "~"
"""Separates the id of the scenario from what is varied, in the id of a variant."""


class Scenario(ScenarioFields):
    """A scenario to be run, with all its fields."""

    turns: tuple[TurnEntry, ...] | None = None
    """User messages in order: a string, {user, expect}, or {simulate: N}; default: all are simulated."""
    case: CaseSpec | None = None
    policy: str = ""
    """The agent's instructions (system prompt) in a recorded conversation."""
    history_turns: Annotated[tuple[Turn, ...], Field(exclude_if=_is_empty)] = ()
    """``history`` as turns. They precede the first turn of the conversation, and are not part of it."""
    user_prompt_hash: str = ""
    """A hash of the content of ``user_prompt``, or an empty string if the scenario has no prompt of its
    own."""
    source: str = ""
    """The location of the scenario (``path:line``)."""
    lines: dict[str, int | str] = {}
    """The line of each key in the scenario's file, or the key's location if it is in another file. The keys
    are dotted paths, such as ``expect.output.contains``, ``turns.1.expect.tool_calls`` or
    ``thresholds.helpfulness``."""
    base: str = ""
    """The folder of the scenario's file. Paths in ``python`` expectations are relative to it."""
    row: str = ""
    """The location of the data row from which the scenario was generated; an empty string if there is
    none."""
    variant: Annotated[ScenarioVariant | None, Field(exclude_if=lambda variant: variant is None)] = None
    """What makes this scenario a variant of another one, or ``None`` for a scenario as it was written."""
    pattern: str = ""
    """The id shared by all scenarios of the same template, with ``*`` for the parts that differ. Empty if the
    scenario was not generated."""

    PLACES: ClassVar[frozenset[str]] = frozenset({"source", "lines", "base", "row", "pattern"})
    """Fields that record where the scenario was written. They are not part of its content."""
    NOTES: ClassVar[frozenset[str]] = frozenset({"note"})
    """Fields for the readers of reports. They affect neither the conversation nor its evaluation."""
    INTERNAL: ClassVar[frozenset[str]] = frozenset(
        {"case", "policy", "history_turns", "user_prompt_hash", "variant", *PLACES}
    )

    @property
    def is_scripted(self) -> bool:
        """True if all user messages are predefined."""
        return self.turns is not None and all(isinstance(turn, ScriptedTurn) for turn in self.turns)

    def entry_turns(self, max_turns: int, *, is_long: bool) -> Iterator[tuple[int, TurnEntry, int]]:
        """Yield each entry of ``turns`` with its index and the number of turns that come from it: as many as
        ``max_turns`` allows if ``is_long`` is true, otherwise as few as possible, with a simulated user that
        ends each of its stretches as soon as it can."""
        left, count = max_turns, 0
        for at, entry in enumerate(self.turns or (SimulatedTurns(simulate=max_turns),)):
            taken = 1
            if isinstance(entry, SimulatedTurns):
                # A simulated stretch has at least one turn, even if max_turns is used up.
                most = min(entry.simulate, max(left, 1))
                taken = most if is_long else min(most, max(self.min_turns - count, 1))
                left -= taken
            count += taken
            yield at, entry, taken

    @property
    def compared_with(self) -> str:
        """The id of the scenario whose conversations those of this variant must be like, or an empty string
        if they are compared with none."""
        return self.variant.of if self.variant and self.variant.is_compared else ""

    @property
    def uses_state(self) -> bool:
        """True if conversations work on a database: the scenario has a state, or its tools use SQL."""
        answers = (answer for tool in self.every_tool.values() for _, answer in tool.all_answers)
        return self.state is not None or any(answer.sql for answer in answers)

    @property
    def every_tool(self) -> dict[str, Tool]:
        """The tools of the agent and of the user."""
        return {**self.tools, **self.user_tools} if self.user_tools else self.tools

    @property
    def tools_named(self) -> frozenset[str]:
        """The names of tools that the scenario declares, and of tools whose calls it expects or forbids."""
        written = (*self.expectations, *self.with_waived.expectations)
        asked = (expect.tool_calls for _, expect in written if expect.tool_calls)
        calls = (call.name for rule in asked for call in (*rule.expected_calls, *rule.forbidden))
        return frozenset((*self.tools, *calls))

    @property
    def has_several_turns(self) -> bool:
        """True if the agent may be called more than once in a conversation (multi-turn)."""
        return not self.is_scripted or len(self.turns or ()) > 1

    @property
    def expectations(self) -> tuple[tuple[str, Expectation], ...]:
        """All ``expect`` values with their paths, starting with those of the turns."""
        turns = enumerate(self.turns or ())
        written = (
            (f"turns.{at}.expect", turn.expect) for at, turn in turns if isinstance(turn, ScriptedTurn)
        )
        return (*written, ("expect", self.expect))

    @property
    def with_waived(self) -> Scenario:
        """The scenario with the expectations of success that a variant keeps apart, in place of its own. It
        is this scenario unless it is a variant with a fault."""
        if self.variant is None or self.variant.fault is None:
            return self
        waived = self.variant.waived
        turns = self.turns and tuple(
            entry.model_copy(update={"expect": waived.get(f"turns.{at}.expect", Expectation())})
            if isinstance(entry, ScriptedTurn)
            else entry
            for at, entry in enumerate(self.turns)
        )
        expect = waived.get("expect", Expectation())
        update = {"expect": expect, "turns": turns, "case": self.variant.waived_case}
        return self.model_copy(update=update)

    @property
    def all_criteria(self) -> tuple[str, ...]:
        """All criteria, starting with those of the turns."""
        return tuple(criterion for _, expect in self.expectations for criterion in expect.criteria)

    def where(self, path: str = "") -> str:
        """Return ``file:line`` of ``path``, or of its nearest parent that is set."""
        file = self.source.rsplit(":", 1)[0]
        while path:
            if (at := self.lines.get(path)) is not None:
                return at if isinstance(at, str) else f"{file}:{at}"
            path = path.rpartition(".")[0]
        return self.source

    def turn_expectation(self, turn: Turn) -> Expectation | None:
        """Return the expectation for ``turn``, or ``None`` if the turn is simulated."""
        if self.turns is None or turn.script is None:
            return None
        entry = self.turns[turn.script]
        return entry.expect if isinstance(entry, ScriptedTurn) else None


class SharedTools:
    """Lets scenarios with equal tools share one object. A suite may repeat a few tools in thousands of
    scenarios."""

    def __init__(self) -> None:
        self._known: dict[tuple[tuple[str, str], ...], dict[str, Tool]] = {}

    def share(self, tools: dict[str, Tool]) -> dict[str, Tool]:
        """Return the tools, or those of an earlier scenario that are equal."""
        key = tuple((name, tool.model_dump_json()) for name, tool in tools.items())
        return self._known.setdefault(key, tools)


class SampleKey(Value):
    """The identity of a sample: ``scenario × agent × variant × epoch``. The system uses no other identity."""

    scenario: str
    agent: str
    epoch: int = 0
    variant: str = ""

    # Those of pydantic make a dictionary of each key that is looked up, which stays with it.

    def __hash__(self) -> int:
        return hash((self.scenario, self.agent, self.epoch, self.variant))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SampleKey) and (
            (self.scenario, self.agent, self.epoch, self.variant)
            == (other.scenario, other.agent, other.epoch, other.variant)
        )

    def __str__(self) -> str:
        variant = f" [{self.variant}]" if self.variant else ""
        return f"{self.scenario}{variant} · {self.agent} · epoch {self.epoch + 1}"


@dataclass(frozen=True, slots=True)
class Sample:
    """The unit of execution: one conversation to be run."""

    key: SampleKey
    scenario: Scenario
    seed: int = 0


def sample_seed(run_seed: int, key: SampleKey, variant: ScenarioVariant | None = None) -> int:
    """Return a 63-bit seed that depends only on the run's seed and the sample's identity. A ``variant`` has
    the seeds of its scenario, so that the two differ in what is varied and in nothing else."""
    scenario = variant.of if variant else key.scenario
    text = f"{run_seed}\0{scenario}\0{key.agent}\0{key.variant}\0{key.epoch}"
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest()) >> 1
