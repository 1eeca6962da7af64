"""Values that belong to another row of a result than the one that is named beside them.

A row is one of several objects with the same field. It is named by a text that only it has among them (or by
the words of that text that no other has). Where the sentence, the list item or the row of a table names one
row only, or names and values take turns, it is plain whose value each is. A value that nothing but this
field of another row has, and that is not reached from the row's own numbers, is then that of the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import NamedTuple

from agenteval.detectors.amounts import SMALL
from agenteval.detectors.arithmetic import one_step
from agenteval.detectors.entries import Entries, Leaf, values_of
from agenteval.detectors.evidence import Evidence
from agenteval.detectors.fields import text_stems
from agenteval.detectors.mentioned import mentions_of
from agenteval.detectors.mentions import Mention
from agenteval.detectors.phrases import Answer, Phrase
from agenteval.detectors.values import stands_in
from agenteval.expressions import expression

_MOST = 3_000
"""Of more values some fit by chance."""
_MOST_ROWS = 60
_NAMING = expression(
    r"(?i)(?:name|title|label|id|code|sku|number|no|ref|city|country|bank|subject|product|item|plan|model|room|"
    r"hotel|airline|carrier|provider|store|shop|vendor|supplier|customer|client|employee|team|player|region|"
    r"branch|location|symbol|ticker|company|brand|station|line|course|student|patient|drug|medication|account|"
    r"category|class|month|day|weekday|service|option|package|route|zone|host|server|service|repo|branch|"
    r"flight|train|tour|event|film|book|dish|recipe|crop|animal|pet|vehicle|car|site|project|task)\Z"
)
"""How keys end whose values name a thing."""
_OF_OTHERS = expression(
    r"(?i)\b(?:instead|rather|than|versus|vs|unlike|like|compar\w+|same|match\w*|from|between|differen\w+|total\w*|"
    r"sum|combined|together|both|plus|without|upgrad\w+|switch\w*|chang\w+|swap\w*|replac\w+|next|previous\w*|"
    r"another|other|others|either|if|until|then|average|all|respectively|former|latter|against|behind|ahead|"
    r"follow\w*|was|were|used to|originally|before|after|sold|won|beat|competitor|"
    r"alternative|counterpart|successor|predecessor|neighbou?r|with|and its|statt|als|anstatt|wie|"
    r"zusammen|beide|vorher|früher|gegen|au lieu|que|comme|avant|ensemble|en lugar|como|antes|juntos)\b"
)
"""Words by which a sentence may bring in what is another row's, or was so at another time."""


class _Rows(NamedTuple):
    """The rows of one field: the place of each entry with its value there, and the titles of each."""

    values: dict[int, Leaf]
    titles: dict[int, frozenset[str]]


def of_other_row(phrase: Phrase, answer: Answer, evidence: Evidence) -> Leaf | None:
    """The value that the row named by the phrase has in the field from which its value is another row's."""
    mention, leaves = phrase.mention, evidence.leaves
    if evidence.given(mention) or not _is_plain(phrase) or len(leaves) > _MOST or not leaves.has_rows:
        return None
    holders = _holders(mention, leaves.all())
    entries = leaves.entries()
    fields = {leaf[1:] for leaf in holders}
    if len(fields) != 1 or not all(map(entries.is_field, holders)):
        return None
    rows = _rows_of(holders[0], leaves.all(), entries)
    if rows is None:
        return None
    named = _named(phrase, rows)
    if named is None or named in map(entries.place, holders):
        return None
    meant = rows.values[named]
    if not _is_its_field(phrase, meant, rows, entries) or _is_reached(
        mention, entries.all[named].leaves, evidence
    ):
        return None
    others = (other for other in mentions_of(phrase.clause) if other.start != mention.start - phrase.at)
    return None if _holders_of(others, meant) else meant


def _is_plain(phrase: Phrase) -> bool:
    return not (
        phrase.asked
        or phrase.hedged
        or phrase.compared
        or phrase.hypothetical
        or _OF_OTHERS.search(phrase.clause)
    )


def _holders(mention: Mention, leaves: Iterable[Leaf]) -> list[Leaf]:
    said = set(values_of(mention))
    return [leaf for leaf in leaves if not said.isdisjoint(values_of(leaf.mention))]


def _holders_of(mentions: Iterable[Mention], leaf: Leaf) -> bool:
    """Whether one of the values is the leaf's."""
    given = set(values_of(leaf.mention))
    return any(not given.isdisjoint(values_of(mention)) for mention in mentions)


def _rows_of(leaf: Leaf, leaves: Iterable[Leaf], entries: Entries) -> _Rows | None:
    """The rows with the field of the leaf, if each has it once and titles that tell it from the others."""
    alike = [one for one in leaves if one[1:] == leaf[1:]]
    values = {entries.place(one): one for one in alike}
    if not 1 < len(values) <= _MOST_ROWS or len(values) != len(alike):
        return None
    counts = Counter(title for place in values for title in set(entries.all[place].titles))
    first = Counter(entries.all[place].titles[0][0] for place in values if entries.all[place].titles)
    titles = {
        place: frozenset(
            text
            for key, text in entries.all[place].titles
            if counts[key, text] == 1 and (_NAMING.search(key) or first[key] == len(values))
        )
        for place in values
    }
    return _Rows(values, titles) if all(titles.values()) else None


def _named(phrase: Phrase, rows: _Rows) -> int | None:
    """The place of the row that the value of the phrase stands beside."""
    found = _names_in(phrase.clause, rows) or _names_in(phrase.head, rows)
    places = {place for _, place in found}
    if len(places) < 2:
        return min(places, default=None)
    turns = [(at, place) for at, place in found]
    values = [
        (other.start, -1)
        for other in mentions_of(phrase.clause)
        if any(_holders_of((other,), leaf) for leaf in rows.values.values())
    ]
    turns = sorted([*turns, *values])
    if len(places) != len(found) or len(values) != len(found) or any(place < 0 for _, place in turns[::2]):
        return None
    if not all(place < 0 for _, place in turns[1::2]):
        return None
    here = phrase.mention.start - phrase.at
    return next(
        (place for (_, place), (at, _) in zip(turns[::2], turns[1::2], strict=True) if at == here), None
    )


def _names_in(text: str, rows: _Rows) -> list[tuple[int, int]]:
    """Where a text names which rows: by their titles, or by words with a capital that only one title has."""
    low = text.lower()
    found = [
        (title, place)
        for place, titles in rows.titles.items()
        for title in titles
        if title in low and stands_in(title, low)
    ]
    found = [
        (title, place)
        for title, place in found
        if not any(
            title != other and title in other and low.count(title) == low.count(other) for other, _ in found
        )
    ]
    whole = {place: low.find(title) for title, place in sorted(found, key=lambda each: -len(each[0]))}
    for word, place in _words_of(rows).items():
        if place not in whole and (at := text.find(word.capitalize())) >= 0 and stands_in(word, low):
            whole[place] = at
    return [(at, place) for place, at in whole.items()]


def _words_of(rows: _Rows) -> dict[str, int]:
    """The words of longer titles that stand in those of one row only."""
    words = [
        (word, place)
        for place, titles in rows.titles.items()
        for word in {word for title in titles if " " in title for word in _WORD.findall(title)}
    ]
    counts = Counter(word for word, _ in words)
    others = {title for titles in rows.titles.values() for title in titles if " " not in title}
    return {word: place for word, place in words if counts[word] == 1 and word not in others}


_WORD = expression(r"[^\W\d_]{4,}")


def _is_its_field(phrase: Phrase, meant: Leaf, rows: _Rows, entries: Entries) -> bool:
    """Whether the phrase speaks of the field: by a word of its name, as the only value of the rows, or as an
    amount beside the name of what costs so much."""
    if not phrase.label.isdisjoint(meant.own) or not text_stems(phrase.head).isdisjoint(meant.own):
        return True
    if phrase.mention.kind == "money":
        number = phrase.mention.numbers[0]
        return meant.is_amount or number >= 100 or number % 1 > 0
    numbers = [leaf for place in rows.values for leaf in entries.all[place].leaves if _is_like(leaf, meant)]
    return len(numbers) == len(rows.values) and not _WORD.search(_without_names(phrase, rows))


def _is_like(leaf: Leaf, other: Leaf) -> bool:
    return bool(leaf.mention.numbers) == bool(other.mention.numbers) and (
        leaf.mention.kind == other.mention.kind
    )


def _without_names(phrase: Phrase, rows: _Rows) -> str:
    low = phrase.clause.lower()
    for titles in rows.titles.values():
        for title in titles:
            low = low.replace(title, " ")
    return low


def _is_reached(mention: Mention, own: Collection[Leaf], evidence: Evidence) -> bool:
    """Whether a step of arithmetic leads from the row's own numbers, and what the user said, to the value."""
    if not mention.numbers:
        return False
    mine = [number for leaf in own for number in leaf.mention.numbers]
    known = {*mine[:20], *sorted(evidence.asked)[:6]}
    counts = {*SMALL, *(number for number in evidence.asked if 1 < number <= 60)}
    return one_step(mention.numbers[0], known, counts)
