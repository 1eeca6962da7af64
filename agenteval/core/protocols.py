"""The interfaces of all extension points. Built-in implementations and plugins use the same ones."""

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
"""A sink of events. It never blocks or awaits; one that fails is disabled and reported once."""


@dataclass(frozen=True)
class AgentReply:
    """An agent's answer. A Python agent may return one; every part may be omitted."""

    text: str | None = None
    """The final text. A Python agent may pass a message, a list of messages or a completion instead."""
    tool_calls: Sequence[Any] = ()
    """Calls for agenteval to resolve, in OpenAI's format; the agent is then called again with their results.
    """
    messages: Sequence[Message] = ()
    """The messages of this turn, from an agent that ran its tools itself."""
    usage: Usage | Mapping[str, Any] | None = None
    """A ``Usage``, or a mapping or object in a provider's format; ``None``: tokens are estimated."""
    latency_ms: float | None = None
    """How long the agent took, if it measures that better than its caller."""
    agent: str = ""
    """The name of the agent that replied, if there are several. Names in ``messages`` take precedence."""


@dataclass(frozen=True)
class ReadReply(AgentReply):
    """A reply as agenteval's own adapters pass it on, with what is known about how it was read."""

    extra: Mapping[str, Any] = field(default_factory=dict)
    """Unknown fields of the message, which are sent back to the same endpoint."""
    evidence: CallEvidence | None = None
    """How the agent's calls are seen, in addition to what the reply itself shows."""
    unplaced: Sequence[str] = ()
    """Content that could not be placed, as phrases (``agenteval.core.tool_visibility``)."""
    unknown_tools: Collection[str] = ()
    """Called names that are certainly not tools of the agent."""
    is_over: bool = False
    """True if the agent carries out its calls itself: agenteval does not answer one without a result."""
    apart: Collection[str] = ()
    """The ids of calls that were recorded at the agent's model client; they are not sent to the agent as
    messages."""
    made: Sequence[RequestedCall] = ()
    """The calls that the scenario was asked to answer, with what the agent's framework knows about them."""

    @classmethod
    def from_reply(cls, reply: AgentReply) -> ReadReply:
        """Convert any agent's reply; for one of another package, nothing more is known."""
        if isinstance(reply, cls):
            return reply
        return cls(reply.text, reply.tool_calls, reply.messages, reply.usage, reply.latency_ms, reply.agent)


AgentExecutedCall: TypeAlias = Callable[[], Awaitable[ToolResult]]
"""A function that makes the agent carry out a call itself and waits for the result."""


@dataclass(frozen=True)
class TurnTools:
    """The tool world as an agent sees it during one turn."""

    turn: int
    """The number of the user's message, from 0."""
    schemas: tuple[dict[str, Any], ...]
    """The declared tools (those with ``parameters``) in OpenAI's format."""
    call: Callable[[str, Any, int], Awaitable[ToolResult]]
    """``call(name, args, batch)`` resolves and records a call; it never raises for an error of the tool.
    Calls of one ``batch`` were made at the same time: they are one step."""
    answered: frozenset[str] | None = None
    """The tools that the scenario answers if the agent carries out all others itself, or ``None`` if it
    carries out none."""
    record: Callable[[str, Any, int, AgentExecutedCall], Awaitable[ToolResult]] | None = None
    """``record(name, args, batch, own)`` records a call that the agent carries out; ``await own()`` returns
    its result."""
    call_known: Callable[[str, Any, int], Awaitable[ToolResult]] | None = None
    """Like ``call``, for a tool that the agent certainly has."""
    list_asked: Callable[[], None] = lambda: None
    """Called, from any thread, when the agent requests the list of tools."""
    mocked: frozenset[str] = frozenset()
    """The tools that the scenario answers."""

    def leaves(self, name: str) -> bool:
        """Check whether the agent carries out a tool itself."""
        return self.answered is not None and name not in self.answered


class Agent(Protocol):
    """The agent under test; one instance per sample, so that conversations share nothing.

    Three methods are optional. ``end_conversation()`` is for an agent that holds resources; ``close`` calls
    it. ``async after_last_answer()`` is for one that can break after its last answer; ``finish`` calls it.
    ``async settle(none_follows)`` is for one whose process serves further conversations; ``settle`` calls it.
    """

    async def reply(self, messages: list[Message], tools: TurnTools) -> AgentReply:
        """Answer the conversation so far. Raises ``AgentError`` if the agent broke and
        ``InfrastructureError`` if something else did."""


async def finish(agent: Agent | None) -> None:
    """Notify the agent that the conversation ended regularly: no message follows its last answer. Raises
    ``AgentError`` if the agent breaks now."""
    if after := getattr(agent, "after_last_answer", None):
        await after()


def close(agent: Agent | None) -> None:
    """Notify the agent's ``end_conversation()`` that the conversation is over, however it ended. That method
    neither waits nor raises; cleanup that has to wait belongs in the factory's ``aclose``."""
    if end := getattr(agent, "end_conversation", None):
        end()


async def settle(agent: Agent | None, none_follows: anyio.Event) -> None:
    """Wait, after ``close``, until everything that the agent did since its last answer is known. That may
    require another conversation to begin; ``none_follows`` is set if none will for now. Raises ``AgentError``
    if the agent broke, and ``InfrastructureError`` if its calls may belong to another conversation."""
    if wait := getattr(agent, "settle", None):
        await wait(none_follows)


class AgentWrapper:
    """A wrapper of an agent that passes on the end of the conversation."""

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
    """Empty if it stands for tools that only a run shows."""
    description: str = ""
    """The description for the agent's model."""
    parameters: dict[str, Any] | None = None
    """The JSON Schema of its arguments, or ``None`` if unknown."""
    hosted: bool = False
    """True if it runs at the provider, so that no scenario can answer it."""
    hints: Mapping[str, bool] = MappingProxyType({})
    """Its declared effects, under the names of MCP."""
    is_agent: bool = False
    """True if it is another agent, which runs unless a scenario answers instead."""


class AgentFactory(Protocol):
    """Makes the agents of a run and may hold what they share (a connection pool). One that knows the tools of
    its agents may list them as ``tools``, a sequence of ``AgentTool``, and describe their use as ``does``."""

    def make(self, sample: Sample) -> Agent:
        """Make the agent of one conversation."""

    async def aclose(self) -> None:
        """Close what is open, at the end of the run."""


class NoOptions(Value):
    """The options of an adapter without options."""


def _no_mistakes(_own: Mapping[str, Any]) -> Iterator[Mistake]:
    yield from ()


@dataclass(frozen=True)
class AgentAdapter:
    """One kind of agent: its options and how it is made.

    Another package registers one under the entry point group ``agenteval.agents``, by the name that authors
    write as ``type``."""

    make: Callable[[AgentConfig, Any, Any], AgentFactory]
    """``make(agent, options, resources)``: ``agent`` has the keys that all agents share, ``options`` is an
    instance of the model below, ``resources`` is what the parts of a run share (``config``, ``secrets``,
    ``tell(text)``). Raises ``AuthorError`` if the options cannot work."""
    options: type[BaseModel] = NoOptions
    """The model of what an author may write under ``options``. Unknown keys are rejected, whatever the model
    says."""
    mistakes: Callable[[Mapping[str, Any]], Iterable[Mistake]] = _no_mistakes
    """Finds further mistakes in the options as written."""
    visibility: Callable[[Any, frozenset[str]], KnownVisibility | None] = lambda _options, _tools: None
    """``visibility(options, tools)`` returns what is known before a run about the visibility of the agent's
    calls; ``tools`` are all tools that the suite names. ``None``: the run finds out."""
    hears_mcp_url: Callable[[Any], bool] = lambda _options: False
    """Returns whether, with these options, each conversation of an agent with ``mcp`` gets a server address
    of its own. Otherwise all conversations read one from this process's environment and are played one at a
    time."""
    example: str = ""
    """An example of such an agent in the configuration."""

    def parse_options(self, agent: AgentConfig) -> Any:
        """Validate the options of an agent."""
        return self.options.model_validate(agent.adapter_options)


class SampleQueue(Protocol):
    """Decides which sample runs next; also a sink of events.

    ``next`` returns ``None`` if there is none now; it is called again when a sample has finished.
    ``plays_again`` returns whether a sample that is about to finish will be repeated because its conversation
    was lost; ``events`` are all events of the sample, including its end."""

    def __call__(self, event: Event, /) -> None: ...

    def next(self) -> Sample | None: ...

    def plays_again(self, key: SampleKey, events: Sequence[Event], /) -> bool: ...


class UserMove(NamedTuple):
    """The user's next message."""

    text: str | None
    """The message, or ``None`` if the conversation ends at once."""
    stop: StopReason | None = None
    """Why the conversation ends after the answer to this message."""
    script: int | None = None
    """See ``Turn``."""
    usage: Usage = Usage()
    """The usage of a simulated user."""
    model: str = ""
    """The model of a simulated user."""
    fault: str = ""
    """What was wrong with a simulated user's first attempt at this message, or an empty string if nothing
    was."""


class User(Protocol):
    async def next(self, trajectory: Trajectory) -> UserMove: ...


class Scorer(Protocol):
    """Evaluates conversations. If ``scope`` is ``turn``, it is called with each prefix, whose last turn is to
    be judged; if ``conversation``, once, with ``stop`` set."""

    @property
    def scope(self) -> str: ...

    async def __call__(self, scenario: Scenario, trajectory: Trajectory) -> Sequence[ScoreItem]: ...


class Reviewer(Protocol):
    """Selects the conversations that are reviewed after everything else is scored, and the scorer that does
    it. ``events`` are all events of the sample, including its end."""

    def __call__(self, sample: Sample, events: Sequence[Event]) -> Scorer | None: ...


@dataclass(frozen=True)
class Subject:
    """The subject of a model call, by which the scripted model chooses its reply."""

    scenario: str = ""
    turn: int | None = None
    """The turn, from 0."""
    metric: str = ""
    text: str = ""
    """The agent's latest answer (for ``dedup``: the findings)."""
    epoch: int = 0


def no_flaw(_value: Any, _scripted: bool) -> str:
    """Accept every answer that has the requested shape."""
    return ""


def reject_flawed(_value: Any, _scripted: bool) -> bool:
    """Reject every answer with a flaw."""
    return False


@dataclass(frozen=True)
class ModelRequest:
    """One request to one of agenteval's own models. The last three fields do not count in hashes and
    comparisons of requests."""

    role: str
    """``user``, ``judge`` or ``dedup``."""
    system: str
    """The system message; may be empty."""
    prompt: str
    """The user message."""
    reply: type[BaseModel]
    """The shape of the answer: its JSON Schema is sent along, and the answer is validated against it."""
    subject: Subject = field(default_factory=Subject)
    """The subject of the request."""
    states_form: bool = False
    """True if the texts themselves state the keys of the answer, so that the schema is not appended."""
    flaw_in: Callable[[Any, bool], str] = field(default=no_flaw, compare=False, repr=False)
    """``flaw_in(value, scripted)`` returns what else is wrong with an answer of the right shape, in words for
    the model ("the quotation stands nowhere in the record"); empty if nothing is. Every ``ChatModel`` calls
    it for each answer, and treats an answer with a flaw like an unreadable one."""
    accepts_flawed: Callable[[Any, bool], bool] = field(default=reject_flawed, compare=False, repr=False)
    """``accepts_flawed(value, scripted)`` returns whether a flawed answer can be used nevertheless. A
    correction is still requested, and its result is the answer."""
    shared: tuple[int, ...] = field(default=(), compare=False, repr=False)
    """The lengths, in characters, of the beginnings of ``prompt`` that other requests share, shortest first.
    """

    def flaw_left_in(self, value: Any, scripted: bool) -> str:
        """Return what is wrong with an answer that will not be corrected, or an empty string if it can be
        used."""
        return "" if self.accepts_flawed(value, scripted) else self.flaw_in(value, scripted)


class ModelReply(NamedTuple):
    """An answer of the requested shape."""

    value: BaseModel
    """The answer: an instance of the request's ``reply``."""
    usage: Usage
    """Its cost, including repairs."""
    model: str
    """The model that gave it."""
    scripted: bool = False
    """True if it was not a language model."""


class ExpectRule(Protocol):
    """A check of ``expect`` as the scenario loader sees it: the path of its key, and the mistakes in its
    value."""

    @property
    def name(self) -> str: ...

    @property
    def find_mistakes(self) -> Callable[[Any], Iterator[Mistake]]: ...


class ChatModel(Protocol):
    """One of agenteval's own models: a simulated user, a judge or the grouping of findings calls it."""

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Answer the request. Raises ``UnreadableReplyError`` (with the raw text) if no answer had the
        requested shape without a flaw, and ``InfrastructureError`` if there was no answer at all."""

    async def aclose(self) -> None:
        """Close what is open, at the end of the run."""


class Importer(Protocol):
    """Reads the logs of one dialect for ``agenteval score``; other packages may register one. If it raises,
    its record is unreadable and the others are still read."""

    @property
    def name(self) -> str:
        """The name in messages."""

    def matches(self, record: Any, /) -> bool:
        """Check whether a record, one JSON value of a log, is in this dialect. It is called for every record,
        so it should look at keys rather than texts."""

    def read(self, record: Any, /) -> Sequence[Mapping[str, Any]]:
        """Return the conversations of a record in OpenAI's format: ``messages``, and if the record contains
        them ``id``, ``agent``, ``tools``, ``system``, ``outcome`` (true, or 1: a success) and ``notes``,
        sentences about content that was not read. An empty result means that the record is in another dialect
        after all."""


@runtime_checkable
class LineImporter(Importer, Protocol):
    """An importer of a dialect that spreads a conversation over several records, such as one event per line.
    ``read`` gets all of them as a tuple."""

    def goes_on(self, held: Sequence[Any], record: Any, /) -> bool:
        """Check whether a matching record begins a conversation (``held`` is empty), or whether a record
        continues the one in ``held``."""
