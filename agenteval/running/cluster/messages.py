"""What the driver and its workers tell each other. All of it is text or plain values, so that versions of
packages matter as little as possible.

A worker sends lines. The first character tells what a line is."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal, NamedTuple, TypeAlias

from agenteval.core.event import Event
from agenteval.core.scenario import Sample, SampleKey
from agenteval.core.trajectory import CallEvidence
from agenteval.files.journal import event_from_json, event_to_json

LineKind: TypeAlias = Literal["sample", "run", "once", "progress"]
_MARKS: Mapping[str, LineKind] = {"s": "sample", "r": "run", "o": "once", "p": "progress"}
_KINDS = {kind: mark for mark, kind in _MARKS.items()}


class Line(NamedTuple):
    """One line of a worker.

    ``sample``: an event of the sample. ``run``: an event of the run, such as a notice that came too late for
    its sample. ``once``: a warning that is shown once in a run. ``progress``: the name of a method of
    ``ConversationProgress``."""

    kind: LineKind
    text: str

    @property
    def event(self) -> Event:
        return event_from_json(self.text)


def event_line(kind: LineKind, event: Event) -> Line:
    return Line(kind, event_to_json(event))


def encode_lines(lines: Iterable[Line]) -> bytes:
    """Return lines as one message. JSON contains no line ending."""
    return "\n".join(f"{_KINDS[line.kind]}{line.text}" for line in lines).encode()


def decode_lines(message: bytes) -> list[Line]:
    return [Line(_MARKS[text[0]], text[1:]) for text in message.decode().split("\n") if text]


class PlayOrder(NamedTuple):
    """The order to play a sample. The worker has the scenario."""

    number: int
    """The number of the attempt. A sample that is repeated gets another one."""
    key: SampleKey
    seed: int

    def encode(self) -> bytes:
        return json.dumps([self.number, self.key.model_dump(), self.seed]).encode()

    @classmethod
    def decode(cls, data: bytes) -> PlayOrder:
        number, key, seed = json.loads(data)
        return cls(number, SampleKey.model_validate(key), seed)


def order_for(sample: Sample, number: int) -> PlayOrder:
    return PlayOrder(number, sample.key, sample.seed)


@dataclass(frozen=True)
class RunState:
    """What a worker needs to know of the conversations that others play."""

    may_learn: bool = True
    """True if a conversation may still show whether an agent's calls are seen."""
    none_follows: bool = False
    """True if no other sample is about to begin."""
    evidence: Mapping[str, frozenset[CallEvidence]] | None = None
    """The evidence so far, keyed by agent."""

    def encode(self) -> bytes:
        evidence = {agent: sorted(found) for agent, found in (self.evidence or {}).items()}
        return json.dumps([self.may_learn, self.none_follows, evidence]).encode()

    @classmethod
    def decode(cls, data: bytes) -> RunState:
        may_learn, none_follows, evidence = json.loads(data)
        return cls(
            may_learn,
            none_follows,
            {agent: frozenset(map(CallEvidence, found)) for agent, found in evidence.items()},
        )


@dataclass(frozen=True)
class WorkerSetup:
    """Everything from which a worker prepares the run again."""

    name: str
    """The name of the worker."""
    run: bytes
    """The event with which the run starts, as JSON. It contains the request."""
    masked: bytes
    """The same as it is written to the journal. The worker's own must be equal in all that matters."""
    environ: Mapping[str, str]
    """Environment variables, which may be secret."""
    known_secrets: Collection[str]
    """The hashes of the secrets that the driver masks. A worker masks those that it has besides."""
    shipped_from: str | None = None
    """The folder of the driver that was copied to the working directory of the worker. None if the worker
    works in the same folders."""


@dataclass(frozen=True)
class WorkerHello:
    """A worker is ready, or says why it cannot take part."""

    problems: tuple[str, ...] = ()
    place: str = ""
    """The machine and process."""


def hash_secret(secret: str) -> str:
    return sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
