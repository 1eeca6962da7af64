"""Every seam on one page. Built-ins come through the same doors as plugins."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

from pydantic import BaseModel

from agenteval.agentside.world import RequestedCall
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
    """What an agent answers. A Python agent may return one; any part may be left out."""

    text: str | None = None
    """The final text. A Python agent may give a message, a list of messages or a completion in its place."""
    tool_calls: Sequence[Any] = ()
    """Calls for agenteval to resolve, in OpenAI's format: the agent is asked again, with their results."""
    messages: Sequence[Message] = ()
    """The messages of this turn, of an agent that ran its tools itself."""
    usage: Usage | Mapping[str, Any] | None = None
    """A ``Usage``, or a mapping or an object in the words of a provider; ``None``: tokens are estimated."""
    latency_ms: float | None = None
    """How long the agent took for it, if it knows better than the clock of its caller."""
    agent: str = ""
    """Which agent of several replies, by its name. Where ``messages`` name theirs, these count."""


@dataclass(frozen=True)
class ReadReply(AgentReply):
    """What agenteval's own adapters hand to the conversation: a reply, and what is known of how it was
    read."""

    extra: Mapping[str, Any] = field(default_factory=dict)
    """Unknown fields of the message, echoed back to the same endpoint."""
    evidence: CallEvidence | None = None
    """How the agent's calls are seen, beyond what the reply itself shows."""
    unplaced: Sequence[str] = ()
    """What of it could not be placed, as phrases (``agenteval.core.tool_visibility``)."""
    unknown_tools: Collection[str] = ()
    """Names that were called and that are surely no tools of the agent's."""
    is_over: bool = False
    """The agent carries out its calls itself: one without a result is not for agenteval to answer."""
    apart: Collection[str] = ()
    """The ids of calls that were heard where the agent asks its models: it is not sent them as messages."""
    made: Sequence[RequestedCall] = ()
    """The calls for which the scenario was asked, with what the agent's framework knows of them."""

    @classmethod
    def from_reply(cls, reply: AgentReply) -> ReadReply:
        """A reply of any agent: of one of another package, nothing more is known."""
        if isinstance(reply, cls):
            return reply
        return cls(reply.text, reply.tool_calls, reply.messages, reply.usage, reply.latency_ms, reply.agent)


AgentExecutedCall: TypeAlias = Callable[[], Awaitable[ToolResult]]
"""A call that the agent carries out itself, once it is told to."""


@dataclass(frozen=True)
class TurnTools:
    """The tool world as an agent meets it during one turn."""

    turn: int
    """The number of the user's message, from 0."""
    schemas: tuple[dict[str, Any], ...]
    """The declared tools (those with ``parameters``) in OpenAI's format."""
    call: Callable[[str, Any, int], Awaitable[ToolResult]]
    """``call(name, args, batch)`` resolves and records a call; it never raises for an error of the tool.
    Calls of one ``batch`` were made at the same time: they are one step."""
    answered: frozenset[str] | None = None
    """The tools that the scenario answers where all others are the agent's own to carry out; ``None``: none
    is."""
    record: Callable[[str, Any, int, AgentExecutedCall], Awaitable[ToolResult]] | None = None
    """``record(name, args, batch, own)`` records a call of the agent's own, whose result ``await own()``
    gives."""
    call_known: Callable[[str, Any, int], Awaitable[ToolResult]] | None = None
    """As ``call``, for a tool that the agent surely has."""
    list_asked: Callable[[], None] = lambda: None
    """To be called, from any thread, when the agent asks for the list of the tools."""
    mocked: frozenset[str] = frozenset()
    """The tools that the scenario has an answer for."""

    def leaves(self, name: str) -> bool:
        """Whether a tool is the agent's own to carry out."""
        return self.answered is not None and name not in self.answered


class Agent(Protocol):
    """The agent under test; one instance per sample, so that conversations share nothing.

    One that holds something may have an ``end_conversation()``, too, which ``close`` calls; one that can
    break after its last answer, an ``async after_last_answer()``, which ``finish`` calls; one whose process
    is kept for other conversations, an ``async settle(none_follows)``, which ``settle`` calls.
    """

    async def reply(self, messages: list[Message], tools: TurnTools) -> AgentReply:
        """Answer the conversation so far. Raises ``AgentError`` when the agent broke and
        ``InfrastructureError`` when something else did."""


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


class AgentWrapper:
    """What stands before an agent: the conversation's end is handed on to it."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    async def after_last_answer(self) -> None:
        await finish(self._agent)

    async def settle(self, none_follows: anyio.Event) -> None:
        await settle(self._agent, none_follows)

    def end_conversation(self) -> None:
        close(self._agent)


class AgentTool(NamedTuple):
    """A tool that an agent has."""

    name: str
    """Empty: it stands for tools that only a run shows."""
    description: str = ""
    """What its model is told of it."""
    parameters: dict[str, Any] | None = None
    """The JSON Schema of its arguments; ``None``: not known."""
    hosted: bool = False
    """It runs at the provider, and no scenario can answer it."""
    hints: Mapping[str, bool] = MappingProxyType({})
    """What it says that it does, under the names of MCP."""
    is_agent: bool = False
    """It is another agent, which runs unless a scenario answers in its place."""


class AgentFactory(Protocol):
    """Makes the agents of a run; may hold what they share (a connection pool). One that knows which tools its
    agents have may say so as ``tools``, a sequence of ``AgentTool``; what is done with them, as ``does``."""

    def make(self, sample: Sample) -> Agent:
        """The agent of one conversation."""

    async def aclose(self) -> None:
        """Close what is open, at the end of the run."""


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

    def parse_options(self, agent: AgentConfig) -> Any:
        """The options of an agent."""
        return self.options.model_validate(agent.adapter_options)


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


def reject_flawed(_value: Any, _scripted: bool) -> bool:
    """Of an answer that is of no use with any flaw."""
    return False


@dataclass(frozen=True)
class ModelRequest:
    """One question to one of agenteval's own models. The last three fields are no part of it: hashes and
    comparisons of requests do not know them."""

    role: str
    """user, judge or dedup."""
    system: str
    """The system message; may be empty."""
    prompt: str
    """The user message."""
    reply: type[BaseModel]
    """The shape of the answer: its JSON Schema is sent along, and the answer is checked against it."""
    subject: Subject = field(default_factory=Subject)
    """What the question is about."""
    states_form: bool = False
    """The texts say themselves which keys the answer has: then the schema is not written out after them."""
    flaw_in: Callable[[Any, bool], str] = field(default=no_flaw, compare=False, repr=False)
    """``flaw_in(value, scripted)``: what else is wrong with an answer that has the shape, in words for the
    model ("the quotation stands nowhere in the record"); empty: nothing. Every ``ChatModel`` asks it of each
    answer, and an answer with a flaw is as one that could not be read."""
    accepts_flawed: Callable[[Any, bool], bool] = field(default=reject_flawed, compare=False, repr=False)
    """``accepts_flawed(value, scripted)``: unless this holds. Then a correction is asked for all the same,
    and what comes of that is the answer."""
    shared: tuple[int, ...] = field(default=(), compare=False, repr=False)
    """How long the beginnings of ``prompt`` are that other requests begin with too, in characters, the
    shortest first."""

    def flaw_left_in(self, value: Any, scripted: bool) -> str:
        """What is wrong with an answer that nobody is asked to correct; empty if it can be used."""
        return "" if self.accepts_flawed(value, scripted) else self.flaw_in(value, scripted)


class ModelReply(NamedTuple):
    """An answer of the asked shape."""

    value: BaseModel
    """The answer: an instance of the request's ``reply``."""
    usage: Usage
    """What it cost, repairs included."""
    model: str
    """Who gave it."""
    scripted: bool = False
    """Whether it was no language model."""


class ExpectRule(Protocol):
    """A check of ``expect`` as whoever reads scenarios meets it: the path where it is asked for, and what is
    wrong with what is written there."""

    @property
    def name(self) -> str: ...

    @property
    def find_mistakes(self) -> Callable[[Any], Iterator[Mistake]]: ...


class ChatModel(Protocol):
    """One of agenteval's own models: a simulated user, a judge or who groups findings asks it."""

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Answer. Raises ``UnreadableReplyError`` (with the raw text) when no answer of the asked shape, and
        without a flaw, could be had, and ``InfrastructureError`` when none at all."""

    async def aclose(self) -> None:
        """Close what is open, at the end of the run."""


class Importer(Protocol):
    """Reads the logs of one dialect: another package's door to ``agenteval score``. One that raises makes its
    record unreadable; the others go on."""

    @property
    def name(self) -> str:
        """What messages call it."""

    def matches(self, record: Any, /) -> bool:
        """Whether a record, one JSON value of a log, is of this dialect. It is asked of every record, so it
        looks at keys and not at texts."""

    def read(self, record: Any, /) -> Sequence[Mapping[str, Any]]:
        """The conversations of a record, in OpenAI's form: ``messages``, and where the record tells them
        ``id``, ``agent``, ``tools``, ``system``, ``outcome`` (true, or 1: a success) and ``notes``, sentences
        of what was not read. None at all: the record is of another dialect after all."""


@runtime_checkable
class LineImporter(Importer, Protocol):
    """Of a dialect that writes a conversation in several records, an event a line. ``read`` gets all of them
    as a tuple."""

    def goes_on(self, held: Sequence[Any], record: Any, /) -> bool:
        """Whether a record that matches begins a conversation (nothing is ``held`` yet), or a record goes on
        with the one that is held."""
