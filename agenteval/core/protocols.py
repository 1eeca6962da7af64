"""Every seam on one page. Built-ins come through the same doors as plugins."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

from pydantic import BaseModel

from agenteval.agentside.world import AskedCall
from agenteval.core.config import AgentConfig
from agenteval.core.errors import Mistake
from agenteval.core.event import Event
from agenteval.core.scenario import Sample, SampleKey, Scenario
from agenteval.core.score import ScoreItem
from agenteval.core.tool_visibility import KnownVisibility
from agenteval.core.trajectory import (
    CallEvidence,
    Message,
    StopReason,
    ToolResult,
    Trajectory,
    Usage,
)
from agenteval.core.value import Value

if TYPE_CHECKING:
    import anyio

Emit: TypeAlias = Callable[[Event], None]
"""A sink of events. It never blocks or awaits; one that fails is switched off and told once."""


@dataclass(frozen=True)
class AgentReply:
    """What an agent answers. A Python agent may return one; any part may be left out.

    ``text``: the final text. ``tool_calls``: calls for agenteval to resolve, in OpenAI's format.
    ``messages``: the messages of this turn of an agent that ran its tools itself. ``usage``: a
    ``Usage``, or a mapping or an object in the words of a provider. ``extra``: unknown fields of the message,
    echoed back to the same endpoint. ``alone``: ``messages`` is one message in the shape of another library,
    and no list of all that the agent did in the turn. ``agent``: of a multi-agent system, the name of the one
    that replies. Where ``messages`` name theirs, these count. ``evidence``: what the adapter knows of how its
    calls are seen, beyond what the reply itself shows; ``unplaced``: what it could not place, as phrases
    (``agenteval.core.tool_visibility``). ``unknown_tools``: names that
    were called and that are surely no tools of the agent's. ``is_over``: the agent carries out its calls
    itself, and one without a result is not for agenteval to answer. ``apart``: the ids of calls that were
    heard where the agent asks its models: it is not sent them as messages. ``made``: the calls for which the
    scenario was asked, with what the agent's framework knows of them.
    """

    text: str | None = None
    tool_calls: Sequence[Any] = ()
    messages: Sequence[Message] = ()
    usage: Usage | Mapping[str, Any] | None = None
    latency_ms: float | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    alone: bool = False
    agent: str = ""
    evidence: CallEvidence | None = None
    unplaced: Sequence[str] = ()
    unknown_tools: Collection[str] = ()
    is_over: bool = False
    apart: Collection[str] = ()
    made: Sequence[AskedCall] = ()


OwnCall: TypeAlias = Callable[[], Awaitable[ToolResult]]
"""A call that the agent carries out itself, once it is told to."""


@dataclass(frozen=True)
class TurnTools:
    """The tool world as an agent meets it during one turn.

    ``schemas``: the declared tools (those with ``parameters``) in OpenAI's format. ``call(name, args,
    batch)`` resolves and records a call; it never raises for an error of the tool. Calls of one
    ``batch`` were made at the same time: they are one step. ``turn`` counts from 0. ``answered``: the tools
    that the scenario answers where all others are the agent's own to carry out (``None``: none is);
    ``record(name, args, batch, own)`` then records a call whose result ``await own()`` gives. ``call_known``:
    as ``call``, for a tool that the agent surely has. ``list_asked()``: to be called, from any thread, when
    the agent asks for the list of the tools. ``mocked``: the tools that the scenario has an answer for.
    """

    turn: int
    schemas: tuple[dict[str, Any], ...]
    call: Callable[[str, Any, int], Awaitable[ToolResult]]
    answered: frozenset[str] | None = None
    record: Callable[[str, Any, int, OwnCall], Awaitable[ToolResult]] | None = None
    call_known: Callable[[str, Any, int], Awaitable[ToolResult]] | None = None
    list_asked: Callable[[], None] = lambda: None
    mocked: frozenset[str] = frozenset()

    def leaves(self, name: str) -> bool:
        """Whether a tool is the agent's own to carry out."""
        return self.answered is not None and name not in self.answered


class Agent(Protocol):
    """The agent under test; one instance per sample, so that conversations share nothing.

    Raises ``AgentError`` when the agent broke and ``InfrastructureError`` when something else did. One that
    holds something may have an ``end_conversation()``, too, which ``close`` calls; one that can break after
    its last answer, an ``async after_last_answer()``, which ``finish`` calls; one whose process is kept for
    other conversations, an ``async settle(none_follows)``, which ``settle`` calls.
    """

    async def reply(self, messages: list[Message], tools: TurnTools) -> AgentReply: ...


async def finish(agent: Agent | None) -> None:
    """The conversation came to its end by itself: no message follows the agent's last answer. Raises
    ``AgentError`` if the agent breaks now."""
    if after := getattr(agent, "after_last_answer", None):
        await after()


def close(agent: Agent | None) -> None:
    """The conversation is over, in whatever way: an agent's ``end_conversation()`` hears of it. That
    neither waits nor raises; what has to be waited for is for the factory's ``aclose``."""
    if end := getattr(agent, "end_conversation", None):
        end()


async def settle(agent: Agent | None, none_follows: anyio.Event) -> None:
    """Wait, after ``close``, until what the agent did since its last answer is known. Another conversation
    may have to begin for that; ``none_follows``: none will for now. Raises ``AgentError`` if it broke, and
    ``InfrastructureError`` where its calls may have been another's."""
    if wait := getattr(agent, "settle", None):
        await wait(none_follows)


class AgentTool(NamedTuple):
    """A tool that an agent has. ``hosted``: it runs at the provider, and no scenario can answer it. One
    without a name stands for tools that only a run shows. ``hints``: what it says that it does, under the
    names of MCP. ``is_agent``: another agent, which runs unless a scenario answers in its place."""

    name: str
    description: str = ""
    parameters: dict[str, Any] | None = None
    hosted: bool = False
    hints: Mapping[str, bool] = MappingProxyType({})
    is_agent: bool = False


class AgentFactory(Protocol):
    """Makes the agents of a run; may hold what they share (a connection pool). One that knows which tools its
    agents have may say so as ``tools``, a sequence of ``AgentTool``; what is done with them, as ``does``."""

    def make(self, sample: Sample) -> Agent: ...

    async def aclose(self) -> None: ...


class NoOptions(Value):
    """Of an adapter that has none."""


def _no_mistakes(_own: Mapping[str, Any]) -> Iterator[Mistake]:
    yield from ()


@dataclass(frozen=True)
class AgentAdapter:
    """One kind of agent: what an author may write of it, and how it is made.

    A package of its own registers one under the entry point group ``agenteval.agents``, by the name that
    authors give as ``type``.
    """

    make: Callable[[AgentConfig, Any, Any], AgentFactory]
    """``make(agent, options, resources)``: ``agent`` has the keys that all agents share, ``options`` is an
    instance of the model below, ``resources`` is what the parts of a run share (``config``, ``secrets``,
    ``tell(text)``). Raises ``AuthorError`` for what cannot work."""
    options: type[BaseModel] = NoOptions
    """What an author may write under ``options``. Unknown keys are refused, whatever the model says."""
    mistakes: Callable[[Mapping[str, Any]], Iterable[Mistake]] = _no_mistakes
    """What else is wrong with the options as they are written, in words of its own."""
    visibility: Callable[[Any, frozenset[str]], KnownVisibility | None] = lambda _options, _tools: None
    """``visibility(options, tools)``: what is known before a run of how the agent's tool calls are seen;
    ``tools`` are all that the suite names. ``None``: the run finds out."""
    hears_mcp_url: Callable[[Any], bool] = lambda _options: False
    """Whether, with these options, each conversation of an agent with ``mcp`` hears of an address of its own.
    Otherwise all read one in this process's environment, and are played one at a time."""
    example: str = ""
    """An agent of this kind, as an author writes it."""

    def of(self, agent: AgentConfig) -> Any:
        """The options of an agent."""
        return self.options.model_validate(agent.own)


class SampleQueue(Protocol):
    """Which sample is run next. A sink of events, too. ``next`` gives ``None`` when there is none now; it is
    asked again when a sample has finished. ``plays_again``: whether one that is about to finish is handed out
    once more, since its conversation was lost; ``events``: all of the sample, its end included."""

    def __call__(self, event: Event, /) -> None: ...

    def next(self) -> Sample | None: ...

    def plays_again(self, key: SampleKey, events: Sequence[Event], /) -> bool: ...


class UserMove(NamedTuple):
    """The user's next message.

    ``stop``: why the conversation ends, after the answer to this message; at once if ``text`` is
    ``None``. ``script``: see ``Turn``. ``usage`` and ``model``: of a simulated user; ``fault``: what was
    wrong with its first attempt at this message.
    """

    text: str | None
    stop: StopReason | None = None
    script: int | None = None
    usage: Usage = Usage()
    model: str = ""
    fault: str = ""


class User(Protocol):
    async def next(self, trajectory: Trajectory) -> UserMove: ...


class Scorer(Protocol):
    """Anything that judges a conversation. ``scope`` is ``turn`` (called with each prefix; the last
    turn is the one to judge) or ``conversation`` (called once, with ``stop`` set)."""

    @property
    def scope(self) -> str: ...

    async def __call__(self, scenario: Scenario, trajectory: Trajectory) -> Sequence[ScoreItem]: ...


class Reviewer(Protocol):
    """Chooses which conversations are looked at once more when all else was said of them, and by whom.
    ``events``: every event of the sample, its end included."""

    def __call__(self, sample: Sample, events: Sequence[Event]) -> Scorer | None: ...


@dataclass(frozen=True)
class Subject:
    """What a model call is about; the scripted model chooses its reply by it. ``turn`` counts from 0;
    ``text`` is the agent's latest answer (for ``dedup``: the findings)."""

    scenario: str = ""
    turn: int | None = None
    metric: str = ""
    text: str = ""
    epoch: int = 0


def no_flaw(_value: Any, _scripted: bool) -> str:
    """Of an answer of which nothing is asked but its shape."""
    return ""


def never(_value: Any, _scripted: bool) -> bool:
    """Of an answer that is of no use with any flaw."""
    return False


@dataclass(frozen=True)
class ModelRequest:
    """One question to one of agenteval's own models. ``role``: user, judge or dedup. ``reply`` is the
    shape of the answer; its JSON Schema is sent along, and the answer is checked against it.

    ``states_form``: the texts say themselves which keys the answer has; then the schema is not written out
    after them, and a form is told once.

    ``flaw_in(value, scripted)``: what else is wrong with an answer that has the shape, in words for the
    model ("the quotation stands nowhere in the record"); empty: nothing. Every ``ChatModel`` asks it of
    each answer, and an answer with a flaw is as one that could not be read, unless
    ``accepts_flawed(value, scripted)``: then it is asked to be corrected all the same, and what comes of
    that is the answer. Neither is part of the question: hashes and comparisons of requests do not know them.

    ``shared``: how long the beginnings of ``prompt`` are that other requests begin with too, in characters,
    the shortest first; no part of the question either.
    """

    role: str
    system: str
    prompt: str
    reply: type[BaseModel]
    subject: Subject = field(default_factory=Subject)
    states_form: bool = False
    flaw_in: Callable[[Any, bool], str] = field(default=no_flaw, compare=False, repr=False)
    accepts_flawed: Callable[[Any, bool], bool] = field(default=never, compare=False, repr=False)
    shared: tuple[int, ...] = field(default=(), compare=False, repr=False)

    def flaw_left_in(self, value: Any, scripted: bool) -> str:
        """What is wrong with an answer that nobody is asked to correct; empty if it can be used."""
        return "" if self.accepts_flawed(value, scripted) else self.flaw_in(value, scripted)


class ModelReply(NamedTuple):
    """An answer of the asked shape. ``model`` names who gave it; ``scripted``: no language model did."""

    value: BaseModel
    usage: Usage
    model: str
    scripted: bool = False


class ExpectRule(Protocol):
    """A check of ``expect`` as whoever reads scenarios meets it: the path where it is asked for, and what is
    wrong with what is written there."""

    @property
    def name(self) -> str: ...

    @property
    def mistakes(self) -> Callable[[Any], Iterator[Mistake]]: ...


class ChatModel(Protocol):
    """Raises ``UnreadableReplyError`` (with the raw text) when no answer of the asked shape, and without
    a flaw, could be had, and ``InfrastructureError`` when none at all."""

    async def complete(self, request: ModelRequest) -> ModelReply: ...

    async def aclose(self) -> None: ...


class Importer(Protocol):
    """Reads the logs of one dialect: another package's door to ``agenteval score``.

    ``matches``: whether a record, one JSON value of a log, is of this dialect; it is asked of every record,
    so it looks at keys and not at texts. ``read``: its conversations, in OpenAI's form: ``messages``, and
    where the record tells them ``id``, ``agent``, ``tools``, ``system``, ``outcome`` (true, or 1: a success)
    and ``notes``, sentences of what was not read. None at all: the record is of another dialect after all.
    One that raises makes its record unreadable; the others go on.
    """

    @property
    def name(self) -> str: ...

    def matches(self, record: Any, /) -> bool: ...

    def read(self, record: Any, /) -> Sequence[Mapping[str, Any]]: ...


@runtime_checkable
class LineImporter(Importer, Protocol):
    """Of a dialect that writes a conversation in several records, an event a line. ``goes_on``: whether a
    record that matches begins one (nothing is ``held`` yet), or a record goes on with the one that is held.
    ``read`` gets all of them as a tuple."""

    def goes_on(self, held: Sequence[Any], record: Any, /) -> bool: ...
