"""The interfaces (protocols) of all extension points. Built-in implementations and plugins use the same
interfaces."""

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
    ToolCall,
    ToolResult,
    Trajectory,
    Usage,
)
from agenteval.core.value import Value

if TYPE_CHECKING:
    import anyio

Emit: TypeAlias = Callable[[Event], None]
"""A function that receives events. It never blocks or awaits. A function that fails is disabled and reported
once."""


@dataclass(frozen=True)
class AgentReply:
    """An agent's answer. A Python agent may return an ``AgentReply``; every field is optional."""

    text: str | None = None
    """The final text. A Python agent may instead pass a message, a list of messages or a chat completion."""
    tool_calls: Sequence[Any] = ()
    """Tool calls that agenteval should answer, in OpenAI's format. The agent is then called again with the
    results."""
    messages: Sequence[Message] = ()
    """The messages in this turn, from an agent that executed its own tools."""
    usage: Usage | Mapping[str, Any] | None = None
    """The token usage: a ``Usage``, or a mapping or object in a provider's format. If ``None``, tokens are
    estimated."""
    latency_ms: float | None = None
    """The agent's response time in milliseconds, if the agent can measure it more accurately than its
    caller."""
    agent: str = ""
    """The name of the agent that replied, in a multi-agent system. Names in ``messages`` take precedence."""


@dataclass(frozen=True)
class ReadReply(AgentReply):
    """A reply as returned by agenteval's own adapters, including information about how the reply was
    obtained."""

    extra: Mapping[str, Any] = field(default_factory=dict)
    """Unknown fields of the message, which are sent back to the same endpoint."""
    evidence: CallEvidence | None = None
    """Evidence about the visibility of the agent's tool calls, in addition to that in the reply itself."""
    unplaced: Sequence[str] = ()
    """Content that could not be placed, as phrases (see ``agenteval.core.tool_visibility``)."""
    unknown_tools: Collection[str] = ()
    """Names of called tools that the agent certainly does not have (hallucinated tools)."""
    is_over: bool = False
    """True if the agent executes its tool calls itself, so that agenteval does not answer a call without a
    result."""
    apart: Collection[str] = ()
    """The ids of calls that were recorded at the agent's model client. They are not sent to the agent as
    messages."""
    made: Sequence[RequestedCall] = ()
    """The calls that the scenario was asked to answer, including information from the agent's framework about
    these calls."""

    @classmethod
    def from_reply(cls, reply: AgentReply) -> ReadReply:
        """Convert the reply of any agent. For an agent of another package, no additional information is
        available."""
        if isinstance(reply, cls):
            return reply
        return cls(reply.text, reply.tool_calls, reply.messages, reply.usage, reply.latency_ms, reply.agent)


AgentExecutedCall: TypeAlias = Callable[[], Awaitable[ToolResult]]
"""A function that lets the agent execute a tool call itself and waits for the result."""


class DatabaseAccess(NamedTuple):
    """The database file of one conversation, for the agent's own tools."""

    variable: str
    """The environment variable in which the agent's process gets the path."""
    path: str


@dataclass(frozen=True)
class TurnTools:
    """The tools that are available to an agent during one turn."""

    turn: int
    """The number of the user message, counted from 0."""
    schemas: tuple[dict[str, Any], ...]
    """The declared tools (those with ``parameters``), as tool schemas in OpenAI's format."""
    call: Callable[[str, Any, int], Awaitable[ToolResult]]
    """``call(name, args, batch)`` answers and records a tool call. It never raises an exception for a tool
    error. Calls with the same ``batch`` were made in parallel and form one step."""
    answered: frozenset[str] | None = None
    """The tools that the scenario answers if the agent executes all other tools itself, or ``None`` if the
    agent executes no tools."""
    record: Callable[[str, Any, int, AgentExecutedCall], Awaitable[ToolResult]] | None = None
    """``record(name, args, batch, own)`` records a call that the agent executes. ``await own()`` returns its
    result."""
    call_known: Callable[[str, Any, int], Awaitable[ToolResult]] | None = None
    """A function that works as ``call`` does, for a tool that the agent certainly has."""
    list_asked: Callable[[], None] = lambda: None
    """The function to call, from any thread, when the agent requests the list of tools."""
    mocked: frozenset[str] = frozenset()
    """The tools that the scenario answers (mocks)."""
    database: DatabaseAccess | None = None
    """The database on which the agent's own tools work, or ``None`` if the scenario exposes none."""

    def leaves(self, name: str) -> bool:
        """Check whether the agent executes a tool itself."""
        return self.answered is not None and name not in self.answered


class Agent(Protocol):
    """The agent under test. There is one instance per sample, so that conversations share nothing.

    Three methods are optional:

    - ``end_conversation()`` is for an agent that holds resources. ``close`` calls it.
    - ``async after_last_answer()`` is for an agent that may fail after its last answer. ``finish`` calls it.
    - ``async settle(none_follows)`` is for an agent whose process handles additional
      conversations. ``settle`` calls it.
    """

    async def reply(self, messages: list[Message], tools: TurnTools) -> AgentReply:
        """Answer the conversation so far. Raise ``AgentError`` if the agent failed, and
        ``InfrastructureError`` if something else failed."""


async def finish(agent: Agent | None) -> None:
    """Notify the agent that the conversation has ended normally: no message follows its last answer. Raises
    ``AgentError`` if the agent fails now."""
    if after := getattr(agent, "after_last_answer", None):
        await after()


def close(agent: Agent | None) -> None:
    """Notify the agent, through ``end_conversation()``, that the conversation is over, regardless of how it
    ended. That method neither waits nor raises an exception. Cleanup that has to wait belongs in the
    factory's ``aclose``."""
    if end := getattr(agent, "end_conversation", None):
        end()


async def settle(agent: Agent | None, none_follows: anyio.Event) -> None:
    """Wait, after ``close``, until everything that the agent did since its last answer is known. This may
    require another conversation to begin. ``none_follows`` means that no conversation will begin for now.
    Raise ``AgentError`` if the agent failed, and ``InfrastructureError`` if its calls may belong to another
    conversation."""
    if wait := getattr(agent, "settle", None):
        await wait(none_follows)


class AgentWrapper:
    """A wrapper around an agent that forwards the end of the conversation."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    async def after_last_answer(self) -> None:
        await finish(self._agent)

    async def settle(self, none_follows: anyio.Event) -> None:
        await settle(self._agent, none_follows)

    def end_conversation(self) -> None:
        close(self._agent)


class AgentTool(NamedTuple):
    """A tool of an agent."""

    name: str
    """The name of the tool. Empty if this object represents tools that become known only during a run."""
    description: str = ""
    """The description that the agent's model receives."""
    parameters: dict[str, Any] | None = None
    """The JSON Schema of the tool's arguments, or ``None`` if it is unknown."""
    hosted: bool = False
    """True if the tool is executed by the provider, so that no scenario can answer (mock) it."""
    hints: Mapping[str, bool] = MappingProxyType({})
    """The declared effects of the tool, named as in MCP."""
    is_agent: bool = False
    """True if the tool is another agent (multi-agent system), which runs unless a scenario answers
    instead."""


class AgentFactory(Protocol):
    """Creates the agents for a run, and may hold resources that they share, such as a connection pool. A
    factory that knows its agents' tools may list them in ``tools``, a sequence of ``AgentTool``, and describe
    their use in ``does``. A factory whose agents pass on ``TurnTools.database`` has an empty
    ``database_remedy``; one whose agents do not may name there what an author can do. A factory whose agents
    do not get the earlier messages says so in ``no_history``, a ``NoHistory``. Scenarios with a ``history``
    are then refused."""

    def make(self, sample: Sample) -> Agent:
        """Create the agent for one conversation."""

    async def aclose(self) -> None:
        """Release all resources at the end of the run."""


class NoHistory(NamedTuple):
    """The reason why an agent cannot be given the messages before a conversation."""

    why: str
    """A phrase that follows the agent's name, such as "gets only the latest message"."""
    remedy: str


class NoOptions(Value):
    """The options model for an adapter that has no options."""


def _no_mistakes(_own: Mapping[str, Any]) -> Iterator[Mistake]:
    yield from ()


@dataclass(frozen=True)
class AgentAdapter:
    """An agent adapter, which defines a kind of agent: its options, and the function that creates it.

    A plugin package registers an adapter in the entry point group ``agenteval.agents``, under the name that
    authors write as ``type``."""

    make: Callable[[AgentConfig, Any, Any], AgentFactory]
    """``make(agent, options, resources)`` creates the agent factory. ``agent`` contains the keys that all
    agents share. ``options`` is an instance of the model ``options``. ``resources`` contains the objects that
    are shared within a run (``config``, ``secrets``, ``tell(text)``). The function raises ``AuthorError`` if
    the options are unusable."""
    options: type[BaseModel] = NoOptions
    """The model for the keys that an author may write under ``options``. Unknown keys are always rejected,
    even if the model allows them."""
    mistakes: Callable[[Mapping[str, Any]], Iterable[Mistake]] = _no_mistakes
    """A function that finds additional mistakes in the options as written."""
    visibility: Callable[[Any, frozenset[str]], KnownVisibility | None] = lambda _options, _tools: None
    """``visibility(options, tools)`` returns the visibility of the agent's tool calls as known before a run.
    ``tools`` contains all tools that occur in the suite. ``None`` means that the run determines the
    visibility."""
    hears_mcp_url: Callable[[Any], bool] = lambda _options: False
    """A function that returns True if, with these options, each conversation of an agent with ``mcp`` gets
    its own server address. Otherwise, all conversations read the same address from the environment of this
    process and run one at a time."""
    example: str = ""
    """An example configuration of such an agent."""

    def parse_options(self, agent: AgentConfig) -> Any:
        """Validate the options of an agent."""
        return self.options.model_validate(agent.adapter_options)


class SampleQueue(Protocol):
    """Decides which sample runs next, based on the events that it receives.

    ``reorder`` sets the order of the planned samples before the first one starts, and ignores all others.
    ``next`` returns ``None`` if no sample is available now, and is called again when a sample has finished.
    ``plays_again`` returns True if a sample that is about to finish will be repeated because its conversation
    was lost. ``events`` contains all events of the sample, including its end. ``was_victim`` is true if the
    sample cannot have been the cause of the loss."""

    def __call__(self, event: Event, /) -> None: ...

    def reorder(self, samples: Iterable[Sample], /) -> None: ...

    def next(self) -> Sample | None: ...

    def plays_again(
        self, key: SampleKey, events: Sequence[Event], /, *, was_victim: bool = False
    ) -> bool: ...


class ConversationProgress(Protocol):
    """Receives what a runner reports about a conversation in addition to its events."""

    async def wait_until_known(self) -> None:
        """Wait until whoever decides about the run has received what was reported. Called before the next
        turn begins: what a turn proves must not be lost with the process in which the next one is played."""

    def free_slot(self) -> None:
        """Report that the agent has given its last answer, so that another conversation may start."""

    def end_conversation(self) -> None:
        """Report that the conversation has ended, and that only its scoring remains."""


class SampleLostError(Exception):
    """Raised by a runner if a sample was lost together with the process or the machine that played it. The
    message says what happened to it. ``was_victim`` is true if the sample cannot have been the cause."""

    def __init__(self, message: str, *, was_victim: bool = False) -> None:
        super().__init__(message)
        self.was_victim = was_victim


class SampleRunner(Protocol):
    """Plays samples, in this process or elsewhere (remote execution). The caller decides which sample runs
    when, whether a sample is repeated, and when the run stops."""

    async def run_sample(self, sample: Sample, emit: Emit, progress: ConversationProgress, /) -> None:
        """Play and score one sample, and emit its events, from ``SampleStarted`` to ``SampleFinished``.

        If the run is cancelled, stop the sample and emit its end. If the sample was lost, raise
        ``SampleLostError``: the caller then ends the sample, and may run it once more. Any other exception
        has the same effect, and counts as a failure of the runner."""


class UserMove(NamedTuple):
    """The user's next message."""

    text: str | None
    """The message, or ``None`` if the conversation ends at once."""
    stop: StopReason | None = None
    """The reason why the conversation ends after the answer to this message."""
    script: int | None = None
    """The index of the message in the scenario's ``turns`` (see ``Turn``)."""
    usage: Usage = Usage()
    """The token usage of a simulated user."""
    model: str = ""
    """The model of a simulated user."""
    fault: str = ""
    """A description of the fault in a simulated user's first attempt at this message, or an empty string if
    there was none."""
    wrote: str | None = None
    """The message before a variant altered it (see ``Turn.user_wrote``)."""


CallUserTool: TypeAlias = Callable[[str, Any, int], Awaitable[ToolCall]]
"""``call(name, args, turn)`` makes a call of one of the user's tools before the message of ``turn`` (from 0),
records it, and returns it with its result."""


class User(Protocol):
    async def next(self, trajectory: Trajectory) -> UserMove: ...


ScorerResults: TypeAlias = Sequence[ScoreItem] | Mapping[int, Sequence[ScoreItem]]
"""The results for the turn or conversation that a scorer was called with, or the results for each of several
turns, keyed by turn (from 0)."""


class Scorer(Protocol):
    """Evaluates conversations. If ``scope`` is ``turn``, the scorer is called with each prefix of the
    conversation, and judges the last turn of the prefix. If ``scope`` is ``conversation``, the scorer is
    called once, with ``stop`` set. It may then return results for single turns, keyed by turn (from 0)."""

    @property
    def scope(self) -> str: ...

    async def __call__(self, scenario: Scenario, trajectory: Trajectory) -> ScorerResults: ...


class Reviewer(Protocol):
    """Selects the conversations that are reviewed after everything else has been scored, and provides the
    scorer for the review. ``events`` contains all events of the sample, including its end."""

    def __call__(self, sample: Sample, events: Sequence[Event]) -> Scorer | None: ...


@dataclass(frozen=True)
class Subject:
    """The subject of a model call, which the scripted model uses to select its reply."""

    scenario: str = ""
    turn: int | None = None
    """The turn, counted from 0."""
    metric: str = ""
    text: str = ""
    """The agent's latest answer or, for ``dedup``, the findings."""
    epoch: int = 0


def no_flaw(_value: Any, _scripted: bool) -> str:
    """Return an empty string, which means that the answer has no flaw."""
    return ""


def reject_flawed(_value: Any, _scripted: bool) -> bool:
    """Reject every answer with a flaw."""
    return False


@dataclass(frozen=True)
class ModelRequest:
    """One request to one of agenteval's own models. The last four fields are excluded from hashes and
    comparisons of requests."""

    role: str
    """The role of the model: ``user``, ``judge`` or ``dedup``."""
    system: str
    """The system message, which may be empty."""
    prompt: str
    """The user message."""
    reply: type[BaseModel]
    """The Pydantic model of the answer (structured output). Its JSON Schema is sent with the request, and the
    answer is validated against it."""
    subject: Subject = field(default_factory=Subject)
    """The subject of the request."""
    states_form: bool = False
    """True if the texts themselves specify the keys of the answer, so that the schema is not appended."""
    flaw_in: Callable[[Any, bool], str] = field(default=no_flaw, compare=False, repr=False)
    """``flaw_in(value, scripted)`` returns a description of any other flaw in an answer of the right shape,
    such as a quotation that does not occur in the record, or an empty string if there is no flaw. The
    description is addressed to the model. Every ``ChatModel`` calls this function for each answer and treats
    a flawed answer as an unreadable one."""
    accepts_flawed: Callable[[Any, bool], bool] = field(default=reject_flawed, compare=False, repr=False)
    """``accepts_flawed(value, scripted)`` returns True if an answer can be used despite its flaw. A
    correction is still requested, and the corrected reply is used as the answer."""
    reuses_flawed: bool = field(default=True, compare=False, repr=False)
    """True if a stored answer may be used again even though it was accepted with a flaw."""
    shared: tuple[int, ...] = field(default=(), compare=False, repr=False)
    """The lengths, in characters, of prefixes of ``prompt`` that other requests share (for prompt caching),
    shortest first."""

    def flaw_left_in(self, value: Any, scripted: bool) -> str:
        """Return the flaw in an answer that will not be corrected, or an empty string if the answer can be
        used."""
        return "" if self.accepts_flawed(value, scripted) else self.flaw_in(value, scripted)


class ModelReply(NamedTuple):
    """A model's answer, which has the requested shape."""

    value: BaseModel
    """The answer, which is an instance of the request's ``reply``."""
    usage: Usage
    """The token usage, including that of repairs."""
    model: str
    """The model that returned the answer."""
    scripted: bool = False
    """True if the answer did not come from a language model."""


class ExpectRule(Protocol):
    """A check under ``expect`` as used by the scenario loader: the path of its key, and a function that finds
    the mistakes in its value."""

    @property
    def name(self) -> str: ...

    @property
    def find_mistakes(self) -> Callable[[Any], Iterator[Mistake]]: ...


class ChatModel(Protocol):
    """One of agenteval's own models (LLMs). It is called by a simulated user, by a judge, or to group
    findings."""

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Answer the request. Raise ``UnreadableReplyError`` (with the raw text) if no answer both had the
        requested shape and was free of flaws, and ``InfrastructureError`` if there was no answer at all."""

    async def aclose(self) -> None:
        """Release all resources at the end of the run."""


class Importer(Protocol):
    """Reads logs in one dialect for ``agenteval score``. Other packages may register importers. If an
    importer raises an exception, the record is reported as unreadable, and the remaining records are still
    read."""

    @property
    def name(self) -> str:
        """The name of the importer in messages."""

    def matches(self, record: Any, /) -> bool:
        """Check whether a record, which is one JSON value in a log, is in this dialect. The method is called
        for every record, so it should inspect keys rather than texts."""

    def read(self, record: Any, /) -> Sequence[Mapping[str, Any]]:
        """Return the conversations in a record, in OpenAI's format. Each conversation contains ``messages``
        and, if present in the record, ``id``, ``agent``, ``tools``, ``system``, ``outcome`` (true or 1 means
        success) and ``notes``. ``notes`` contains sentences about content that was not read. An empty result
        means that the record turned out to be in another dialect."""


@runtime_checkable
class LineImporter(Importer, Protocol):
    """An importer for a dialect that spreads a conversation over several records, such as one event per line.
    ``read`` receives all of them as a tuple."""

    def goes_on(self, held: Sequence[Any], record: Any, /) -> bool:
        """Check whether a matching record begins a conversation (``held`` is empty) or continues the
        conversation in ``held``."""
