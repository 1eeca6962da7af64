"""Values in the agent's answers that nothing in the conversation supports.

Each value of each answer is looked up in what the agent had been told by then: user, policy, knowledge,
tool calls and their results, and one or two steps of arithmetic on them. One that is not there either
stands against a value of the same field, unit or shape (``contradicts_evidence``), or against nothing
(``ungrounded_value``); never both. When in doubt, nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple
from weakref import ReferenceType, ref

from agenteval.detectors.conversation import Conversation, Proof
from agenteval.detectors.evidence import Evidence, text_of
from agenteval.detectors.leaves import Leaf
from agenteval.detectors.mentions import Mention
from agenteval.detectors.noteworthy import reportable
from agenteval.detectors.opposition import PLACED, misplaced, opposing
from agenteval.detectors.phrases import Answer, Phrase
from agenteval.detectors.support import Beside, follows, told
from agenteval.detectors.values import plain, stands_in


class Suspect(NamedTuple):
    """A value that nothing supports. ``against``: what it contradicts, in words; empty: nothing."""

    turn: int
    phrase: Phrase
    against: str


def contradicts_evidence(conversation: Conversation) -> Iterable[Proof]:
    """Values of answers for which a tool, the policy or the knowledge gave another value."""
    for suspect in _suspects(conversation):
        if suspect.against:
            said = suspect.phrase.mention.text
            yield _proof(conversation, suspect, f"the answer says {said}, but {suspect.against}")


def ungrounded_value(conversation: Conversation) -> Iterable[Proof]:
    """Values of answers that nobody gave and that follow from nothing that was given."""
    for suspect in _suspects(conversation):
        if not suspect.against:
            said = suspect.phrase.mention.text
            yield _proof(conversation, suspect, f"nothing before in the conversation gave {said}")


def _proof(conversation: Conversation, suspect: Suspect, explanation: str) -> Proof:
    """With the clause as evidence, quoted as the answer has it."""
    phrase = suspect.phrase
    start = max(phrase.at, phrase.mention.start - 80)
    end = min(phrase.at + len(phrase.clause), phrase.mention.end + 60)
    answer = conversation.turns[suspect.turn].answer
    quote = answer[start:end]
    start += len(quote) - len(quote.lstrip())
    quote = quote.strip()
    return Proof(suspect.turn, None, quote, explanation, (start, start + len(quote)))


_LATEST: list[tuple[ReferenceType[Conversation], tuple[Suspect, ...]]] = []
"""Of the latest conversation: the two detectors are asked one after the other."""


def _suspects(conversation: Conversation) -> tuple[Suspect, ...]:
    if _LATEST and _LATEST[0][0]() is conversation:
        return _LATEST[0][1]
    found = tuple(_find(conversation))
    _LATEST[:] = [(ref(conversation), found)]
    return found


def _find(conversation: Conversation) -> Iterator[Suspect]:
    evidence = _told_at_first(conversation)
    said: dict[float, None] = {}
    reported: set[object] = set()
    calls = iter(conversation.calls)
    call = next(calls, None)
    for number, turn in enumerate(conversation.turns):
        evidence.add_text("user", "the user", turn.user)
        while call and call.turn <= number:
            evidence.add_call(call.call, call.index)
            call = next(calls, None)
        answer = Answer(plain(turn.answer))
        for index, mention in enumerate(answer.mentions):
            key = (mention.kind, mention.numbers or mention.text)
            if key not in reported and (suspect := _judge(number, answer, index, said, evidence)):
                reported.add(key)
                if _is_worth_telling(suspect, evidence) and not _declared(mention.text, conversation):
                    yield suspect
        said = {**dict.fromkeys(_amounts(answer)), **said}


def _is_worth_telling(suspect: Suspect, evidence: Evidence) -> bool:
    return suspect.phrase.claimed and (bool(suspect.against) or reportable(suspect.phrase, evidence))


def _declared(text: str, conversation: Conversation) -> bool:
    """Whether the parameters of a tool speak of the value: a limit, a default, an example."""
    return any(
        stands_in(text, text_of(tool.parameters)) for tool in conversation.tools.values() if tool.parameters
    )


def _judge(
    turn: int, answer: Answer, index: int, said: Iterable[float], evidence: Evidence
) -> Suspect | None:
    """The value at ``index``, if nothing supports it; the cheap looks first, since most values are told."""
    mention = answer.mentions[index]
    is_told = told(mention, evidence)
    if is_told and (
        mention.kind not in PLACED
        or evidence.given(mention)
        # In the object of the identifier before it, the value is right.
        or evidence.stands_beside(mention, answer.latest_identifier(index))
    ):
        return None
    named = answer.named_around(index, evidence.titles)
    if is_told and (not named or evidence.stands_beside(mention, named)):
        return None
    phrase = answer.phrase(index)
    against = misplaced(phrase, named, evidence) if is_told or mention.kind == "time" else None
    if not against:
        if is_told or follows(phrase, evidence, _beside(answer, mention, said)):
            return None
        against = opposing(phrase, named, evidence)
    return Suspect(turn, phrase, _in_words(against, evidence) if against else "")


def _beside(answer: Answer, but: Mention, said: Iterable[float]) -> Beside:
    """What else is in the answer, the nearest first, and the amounts ``said`` before."""
    others = [other for other in answer.mentions if other.numbers and other.start != but.start]
    others = [other for other in others if but.numbers[:1] != other.numbers[:1]]
    others.sort(key=lambda other: abs(other.start - but.start))
    here = [other.numbers[0] for other in others if other.kind == "money"]
    return Beside(here, list(said), [other.numbers[0] for other in others if other.kind == "number"])


def _amounts(answer: Answer) -> list[float]:
    return [other.numbers[0] for other in answer.mentions if other.kind == "money" and other.numbers]


def _in_words(leaf: Leaf, evidence: Evidence) -> str:
    source = evidence.sources[leaf.source]
    verb = "was called with" if source.role == "args" else "gave"
    label = leaf.label if len(leaf.label) <= 40 else ""
    return f"{source.name} {verb} {label} {leaf.mention.text}".replace("  ", " ")


def _told_at_first(conversation: Conversation) -> Evidence:
    evidence = Evidence()
    evidence.add_text("told", "the policy", conversation.policy)
    evidence.add_text("told", "the date", conversation.now)
    for truth in conversation.truths:
        evidence.add_text("told", "the knowledge", truth)
    for belief in conversation.beliefs:
        evidence.add_text("user", "the user", belief)
    return evidence
