"""Values in the agent's answers that nothing in the conversation supports.

Each value of each answer is looked up in what the agent had been told by then: user, policy, knowledge,
tool calls and their results, and one or two steps of arithmetic on them. One that is not there either
stands against a value of the same field, unit or shape (``contradicts_evidence``), or against nothing
(``ungrounded_value``); never both. When in doubt, nothing is said.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple
from weakref import ReferenceType, ref

from agenteval.detectors.alignment import elsewhere, missing, of_spoken_row, off_sum, other_rate, slipped
from agenteval.detectors.amounts import Beside
from agenteval.detectors.arithmetic import operands_of
from agenteval.detectors.clocks import told_as_local
from agenteval.detectors.coherence import counted, off_column, off_sentence, off_share
from agenteval.detectors.conversation import Conversation, PlacedCall, Proof
from agenteval.detectors.dates import weekday_beside
from agenteval.detectors.elapsed import is_other_weekday
from agenteval.detectors.entries import Leaf
from agenteval.detectors.evidence import Evidence
from agenteval.detectors.json_text import text_of
from agenteval.detectors.links import links_against, links_from_nowhere
from agenteval.detectors.mentions import Mention
from agenteval.detectors.noteworthy import reportable
from agenteval.detectors.opposition import PLACED, is_sure, misplaced, opposing
from agenteval.detectors.phrases import Answer, Phrase
from agenteval.detectors.rows import of_other_row
from agenteval.detectors.sources import NOW
from agenteval.detectors.support import follows, is_derived, told
from agenteval.detectors.values import plain, stands_in
from agenteval.expressions import expression
from agenteval.score import Severity


class Suspect(NamedTuple):
    """A value that nothing supports. ``against``: what it contradicts, in words; empty: nothing. ``sure``:
    whether it cannot be a calculation of the agent's."""

    turn: int
    phrase: Phrase
    against: str
    sure: bool = True


def contradicts_evidence(conversation: Conversation) -> Iterable[Proof]:
    """Values of answers for which a tool, the policy or the knowledge gave another value."""
    for suspect in _suspects(conversation):
        if suspect.against:
            said = suspect.phrase.mention.text
            explanation = f"the answer says {said}, but {suspect.against}"
            proof = _proof(conversation, suspect, explanation)
            yield proof if suspect.sure else proof._replace(severity=Severity.MEDIUM)
    yield from links_against(conversation)


def ungrounded_value(conversation: Conversation) -> Iterable[Proof]:
    """Values of answers that nobody gave and that follow from nothing that was given."""
    for suspect in _suspects(conversation):
        if not suspect.against:
            said = suspect.phrase.mention.text
            yield _proof(conversation, suspect, f"nothing before in the conversation gave {said}")
    yield from links_from_nowhere(conversation)


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
    evidence: Evidence | None = None
    said: list[Answer] = []
    reported: set[object] = set()
    read = 0
    calls: defaultdict[int, list[PlacedCall]] = defaultdict(list)
    for call in conversation.calls:
        calls[call.turn].append(call)
    for number, turn in enumerate(conversation.turns):
        answer = Answer(plain(turn.answer))
        if not answer.mentions:
            continue  # what was told is read when there is something to look up
        evidence = evidence or _told_at_first(conversation)
        for earlier in range(read, number + 1):
            evidence.add_text("user", "the user", conversation.turns[earlier].user)
            for call in calls[earlier]:
                evidence.add_call(call.call, call.index)
        read = number + 1
        for index, mention in enumerate(answer.mentions):
            if reported and _key(mention) in reported:
                continue
            if len(reported) >= _MOST or evidence.compared > _MOST_COMPARED:
                return  # the agent made everything up; the search for more takes long
            if suspect := _judge(number, answer, index, said, evidence):
                reported.add(_key(mention))
                if not _declared(mention.text, conversation):
                    yield suspect
        said.append(answer)


_MOST = 100
"""Values of one conversation that are reported."""
_MOST_COMPARED = 200_000
"""Pairs of a value of an answer and one beside it or of the evidence: by then it is no answer any more that
anybody reads."""


def _key(mention: Mention) -> object:
    """What is reported once."""
    return (mention.kind, mention.numbers or mention.text)


def _declared(text: str, conversation: Conversation) -> bool:
    """Whether the parameters of a tool speak of the value: a limit, a default, an example."""
    return any(
        stands_in(text, text_of(tool.parameters)) for tool in conversation.tools.values() if tool.parameters
    )


def _judge(
    turn: int, answer: Answer, index: int, said: Sequence[Answer], evidence: Evidence
) -> Suspect | None:
    """The value at ``index``, if nothing supports it and that is worth telling; the cheap looks first, since
    most values are told."""
    mention = answer.mentions[index]
    is_told = told(mention, evidence)
    if is_told and mention.kind == "date" and _is_miscalled(answer, index, evidence):
        return Suspect(turn, answer.phrase(index), _OTHER_DAY, sure=False)
    if (is_told or mention.kind == "number") and (off := _off_though_told(answer, index, evidence)):
        return Suspect(turn, answer.phrase(index), off, sure=False)
    if is_told and mention.kind == "identifier":
        return _id_of_another(turn, answer, index, evidence)
    if is_told and mention.kind == "time" and evidence.has_utc:
        phrase = answer.phrase(index)
        if phrase.claimed and (stamp := told_as_local(phrase, evidence)):
            return Suspect(turn, phrase, f"{_in_words(stamp, evidence=evidence)}, which is UTC", sure=False)
    if is_told and mention.kind == "percent":
        phrase = answer.phrase(index)
        return _told_of_another(turn, phrase, answer, (), evidence) if phrase.claimed else None
    if is_told and (
        mention.kind not in PLACED
        or evidence.given(mention)
        # In the object of the identifier before it, the value is right.
        or evidence.stands_beside(mention, answer.latest_identifier(index))
    ):
        return None
    named = answer.named_around(index, evidence.titles)
    if is_told and named and evidence.stands_beside(mention, named):
        return None
    phrase = answer.phrase(index)
    if is_told:
        return _told_of_another(turn, phrase, answer, named, evidence) if phrase.claimed else None
    if not phrase.claimed or _key(mention) in evidence.supported or _was_said(mention, said):
        return None
    evidence.compared += _pairs(answer, evidence)
    return _unsupported(turn, phrase, answer, named, evidence, _beside(answer, mention, said))


_OTHER_DAY = "that is another day of the week"


def _is_miscalled(answer: Answer, index: int, evidence: Evidence) -> bool:
    """Whether a date that was told is called by a day of the week that it is not; the quick look first."""
    mention = answer.mentions[index]
    if weekday_beside(answer.text, mention.start, mention.end) is None:
        return False
    phrase = answer.phrase(index)
    return phrase.claimed and is_other_weekday(phrase, evidence)


def _off_though_told(answer: Answer, index: int, evidence: Evidence) -> str:
    """What is wrong with a percentage or a count, in words, though something has the same number."""
    mention = answer.mentions[index]
    if mention.kind == "number" and mention.decimals == 0 and 1 < mention.numbers[0] <= _LONGEST_LIST:
        return _off_count(mention.numbers[0], counted(answer, mention), evidence)
    if mention.kind != "percent" or not (phrase := answer.phrase(index)).claimed:
        return ""
    return off_column(answer, mention) or off_sentence(phrase) or _off_share(phrase, answer, evidence)


def _off_count(number: float, listed: int, evidence: Evidence) -> str:
    """Where a list has as many points as one of the results, none of which is as long as is said."""
    if listed < 2 or listed == number:
        return ""
    lengths = evidence.leaves.lengths
    return f"the list has {listed}" if listed in lengths and number not in lengths else ""


_LONGEST_LIST = 20


def _id_of_another(turn: int, answer: Answer, index: int, evidence: Evidence) -> Suspect | None:
    """An identifier of an entry other than the one whose values its sentence gave before; the quick look
    first. Where the identifier comes first, the values are those that may be another's."""
    values = answer.values_before(index)
    name = (answer.mentions[index].text.lower(),)
    if not values or any(evidence.stands_beside(value, name) for value in values):
        return None
    phrase = answer.phrase(index)
    if not phrase.claimed or phrase.asked:
        return None
    evidence.compared += _pairs(answer, evidence) // 10  # of which less is asked
    against = elsewhere(phrase, answer, evidence)
    return Suspect(turn, phrase, _in_words(against, evidence=evidence), sure=False) if against else None


def _was_said(mention: Mention, said: Sequence[Answer]) -> bool:
    """Whether an amount was in an answer before, where nothing was wrong with it."""
    return _is_amount(mention) and any(
        mention.numbers == other.numbers for answer in said for other in answer.mentions if _is_amount(other)
    )


def _pairs(answer: Answer, evidence: Evidence) -> int:
    """How many values another one is held against."""
    return len(evidence.numbers) + len(answer.mentions)


def _identifiers(answer: Answer, phrase: Phrase) -> Iterator[str]:
    """Those in the sentence of the phrase."""
    end = phrase.at + len(phrase.clause)
    return (
        other.text
        for other in answer.mentions
        if other.kind == "identifier" and phrase.at <= other.start < end
    )


def _told_of_another(
    turn: int, phrase: Phrase, answer: Answer, named: Collection[str], evidence: Evidence
) -> Suspect | None:
    against, sure = misplaced(phrase, named, evidence) if named else None, not phrase.inherited
    if not against and evidence.may_be_of(phrase.mention, phrase.clause):
        evidence.compared += _pairs(answer, evidence) // 10  # of which less is asked
        against, sure = elsewhere(phrase, answer, evidence), False
    if not against:
        against, sure = _of_other_row(phrase, answer, evidence), False
    if not against or not all(map(evidence.has_word, _identifiers(answer, phrase))):
        return None  # what is spoken of may be none that anybody told of
    return Suspect(turn, phrase, _in_words(against, evidence=evidence), sure)


def _of_other_row(phrase: Phrase, answer: Answer, evidence: Evidence) -> Leaf | None:
    """The value that the row named by the phrase has; the quick look first."""
    named_in = f"{phrase.clause} {head}" if (head := phrase.head) else phrase.clause
    if not evidence.stands_apart(phrase.mention, named_in):
        return None
    evidence.compared += _pairs(answer, evidence) // 10
    return of_other_row(phrase, answer, evidence)


def _unsupported(
    turn: int, phrase: Phrase, answer: Answer, named: Collection[str], evidence: Evidence, beside: Beside
) -> Suspect | None:
    """The value, which nobody told as it is, if it does not follow either and is news or stands against
    something. The search for how it follows takes most time: it comes where it can decide."""
    if phrase.mention.kind == "date" and is_other_weekday(phrase, evidence):
        return Suspect(turn, phrase, _OTHER_DAY, sure=False)
    is_news = reportable(phrase, evidence)
    if is_derived(phrase, evidence, beside):
        evidence.supported.add(_key(phrase.mention))
        return None
    if is_news and follows(phrase, evidence, beside):
        return _slip(turn, phrase, answer, evidence, is_news=True)
    against = opposing(phrase, named, evidence)
    sure = against is not None and is_sure(phrase, against, named, evidence)
    is_stated = False
    if not against or phrase.mention.kind == "percent":
        absent = missing(phrase, answer, evidence, sure=not is_news)
        against = against or (absent.leaf if absent else None)
        is_stated = absent is not None and absent.leaf is against and absent.is_stated_share
    if not is_news and (not against or (not is_stated and follows(phrase, evidence, beside))):
        return _slip(turn, phrase, answer, evidence, is_news=False)
    if against and not sure and _WOULD.search(phrase.left):
        return None
    if not against:
        return Suspect(turn, phrase, "", sure)
    off = "" if sure else off_sum(phrase, evidence)
    return Suspect(
        turn,
        phrase,
        off or _in_words(*of_spoken_row(against, phrase, answer, evidence), evidence=evidence),
        sure,
    )


def _slip(turn: int, phrase: Phrase, answer: Answer, evidence: Evidence, *, is_news: bool) -> Suspect | None:
    """The value that follows (or is no news), if it rather is a slip of one that was told."""
    if meant := slipped(phrase, answer, evidence, sure=not is_news):
        return Suspect(turn, phrase, _in_words(meant, evidence=evidence), sure=False)
    if rate := other_rate(phrase, evidence):
        return Suspect(turn, phrase, _in_words(rate, evidence=evidence), sure=False)
    if off := (
        off_sum(phrase, evidence)
        or off_column(answer, phrase.mention)
        or off_sentence(phrase)
        or _off_share(phrase, answer, evidence)
    ):
        return Suspect(turn, phrase, off, sure=False)
    if is_news:
        evidence.supported.add(_key(phrase.mention))
    return None


def _off_share(phrase: Phrase, answer: Answer, evidence: Evidence) -> str:
    if phrase.mention.kind != "percent":
        return ""
    here = [other.numbers[0] for other in answer.mentions if other.numbers and _is_amount(other)]
    wholes = operands_of([here, *evidence.leaves.amounts().fields, evidence.amounts_told], _MOST_WHOLES)
    return off_share(phrase, wholes, evidence.percents())


_MOST_WHOLES = 60
"""Of more, some have any share by chance."""
_WOULD = expression(r"(?i)\b(?:would|wouldn't|could|w[äu]rden?|wären?)\b|\b(?:it|that|you|they|we|I)['’]d\b")


def _beside(answer: Answer, but: Mention, said: Sequence[Answer]) -> Beside:
    """What else is in the answer, the nearest first, and the amounts in what was ``said`` before."""
    others = [other for other in answer.mentions if other.numbers and other.start != but.start]
    others = [other for other in others if but.numbers[:1] != other.numbers[:1]]
    others.sort(key=lambda other: abs(other.start - but.start))
    here = [other.numbers[0] for other in others if _is_amount(other)]
    counts = [other.numbers[0] for other in others if other.kind == "number"]
    days = [day for other in answer.mentions if other.start < but.start for day in other.days]
    earlier = [other.numbers[0] for other in said[-1].mentions if other.kind == "number"] if said else []
    return Beside(here, lambda: _amounts(said), counts, earlier, days, answer.totals)


def _is_amount(mention: Mention) -> bool:
    """In tables, the currency stands above."""
    return mention.kind == "money" or (
        mention.kind == "number" and mention.decimals == 2 and not mention.unit
    )


def _amounts(answers: Sequence[Answer]) -> list[float]:
    """Different ones, those of the latest answer first."""
    said = (mention for answer in reversed(answers) for mention in answer.mentions)
    return list(
        dict.fromkeys(mention.numbers[0] for mention in said if _is_amount(mention) and mention.numbers)
    )


def _in_words(leaf: Leaf, *others: Leaf, evidence: Evidence) -> str:
    """What a source gave; with ``others``: in one of several rows."""
    source = evidence.sources[leaf.source]
    verb = "was called with" if source.role == "args" else "gave"
    label = leaf.label if len(leaf.label) <= 40 else ""
    texts = [one.mention.text for one in (leaf, *others)]
    values = " or ".join(filter(None, (", ".join(texts[:-1]), texts[-1])))
    return f"{source.name} {verb} {label} {values}".replace("  ", " ")


def _told_at_first(conversation: Conversation) -> Evidence:
    evidence = Evidence(tools_declared=bool(conversation.tools))
    evidence.add_text("told", "the policy", conversation.policy)
    evidence.add_text("told", NOW, conversation.now)
    for truth in conversation.truths:
        evidence.add_text("told", "the knowledge", truth)
    for belief in conversation.beliefs:
        evidence.add_text("user", "the user", belief)
    return evidence
