"""The phrase that a value of an answer stands in: what it is called there, and whether it is claimed."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection
from functools import cached_property, lru_cache
from itertools import accumulate, islice, takewhile

from agenteval.detectors.claimed import is_claimed
from agenteval.detectors.fields import text_stems
from agenteval.detectors.language import is_english
from agenteval.detectors.mentions import Mention, mentions_in
from agenteval.detectors.values import stands_in
from agenteval.expressions import expression

_SENTENCE_END = expression(
    # The characters first, of which most texts have few: that lets the search skip everything else quickly.
    r"[\n.!?;。！？；](?:(?<![.!?;])|(?=[\s*_)\"]|\Z)"
    r"(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bz\.B\.)(?<!\b[ap]\.m\.)(?<!\b(?:No|Nr|ca|Dr|Mr|"
    r"St)\.)(?<!\b(?:Std|Min|Mrs|tel|Tel|bzw|ggf|usw)\.)(?<!\bvs\.)(?<!\binkl\.)"
    r"(?!\s(?:Jan|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez)))"
)
_PART_END = expression(r"[,;|()\n—]|\s(?:and|or|but|und|et|y)\s|\s-\s")
_HEDGED = expression(
    r"(?i)(?:\b(?:about|around|approx(?:imately|\.)?|roughly|nearly|almost|over|more than|up to|under|"
    r"less than|at least|at most|circa|ca\.|close to|just|well|some|etwa|rund|environ|unos|within|below|"
    r"above|exceeds|exceeding|starting at|from|maximum|minimum|plus|beyond)|[~≈<>±约])\s*(?:of\s+)?\W{0,3}$"
)


_CALCULATED = expression(
    r"(?i)\b(?:total\w*|sum|sums|differen\w+|refund\w*|sav(?:e|es|ed|ing|ings)|additional\w*|extra|"
    r"remain\w*|leaves?|to spare|"
    r"balance|each|per|combined|altogether|overall|average|split|half|charge[ds]?|all|both|times|plus|"
    r"minus|"
    r"equals?|increase\w*|decrease\w*|reduc\w+|net|more|less|left|subtotal|exact\w*|spend\w*|spent|budget|"
    r"pay\w*|paid|comes to|double\w*|twice|triple\w*|cover\w*|compensat\w+|annual\w*|months?|monthly|"
    r"years?|"
    r"yearly|weeks?|weekly|daily|jahr|monat|full|entire|adds? up|gesamt|insgesamt|summe|cost|costs|worth|"
    r"two|three|four|five|six|seven|eight|nine|ten|dozen|of them|rest|difference|together|discount\w*|"
    r"off|whole|so|i\.e|means|that is|makes?|equivalent|"
    r"share|split|ago|since|rest|dose\w*|times|them|weighted|pro ?rata|prorated|"
    r"zusammen|übrig|bleib\w*|verbleib\w*|rest|restbetrag|jeweils|je|ersparnis|sparen|abzüglich|zuzüglich|netto|brutto|"
    r"inklusive|"
    r"monatlich|jährlich|zwei|drei|vier|fünf|differenz|total\w*|somme|soit|reste\w*|chacun\w*|par|remise|"
    r"rabais|économi\w+|mois|ans?|ttc|ht|deux|trois|quatre|cinq|en tout|restant\w*|suma|queda[nr]?|"
    r"cada|por|"
    r"descuento|ahorr\w+|diferencia|mes|meses|año|años|dos|tres|cuatro|cinco|juntos|incluid\w+|soma|restam|"
    r"resta|sobra\w*|desconto|economiz\w+|economia|diferença|mês|anos?|dois|duas|três|ao todo|altogether)\b"
    r"|(?:[+×=]|[0-9)]\s?[*x/])\s*[$€£]?[0-9]|[0-9]\s*[x×+=]|[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]"
)
"""Words of European languages; in scripts that do not part words, any."""

_TOTALLED = expression(
    r"(?i)\b(?:(?:sub)?total\w*|sums?|differen\w+|combined|remain\w*|left|savings?|change|gesamt\w*|summe|"
    r"differenz|zusammen|rest|somme|différence|reste|suma|diferencia|diferença|soma|restante|resto)\b|[合总計计差]"
)
"""In the head of a column."""

_HYPOTHETICAL = expression(
    r"(?i)\b(?:if|would|could|might|(?-i:may)|can|cannot|can't|don't|do not|unable|unless|whether|suggest|"
    # What should come is promised, what one should do is advised.
    r"should(?! (?:\w+ )?(?:be|see|receive|get|have|take|appear|arrive|reach|hear|expect|show))|"
    r"recommend|how about|typically|usually|generally|often|common(?:ly)?|normally|roughly|estimate[ds]?|"
    r"let me know|between|(?:most|many|some) people|(?:I|you|we|they|it|that|s?he)['’]d|"
    r"würden?|wären?|könnten?|\w{2,}(?:rait|raient|ría[ns]?|rebbe|rebbero)|"
    r"(?:se|custa|fica|te|pode)riam?|skulle|zou|zouden|\w*(?:łby|łaby|łoby|łyby))\b"
)
_LETTERS = expression(r"[^\W\d_]{2,}")
_A_SENTENCE = 4


@lru_cache(maxsize=1 << 10)
def _says(pattern: re.Pattern[str], clause: str) -> bool:
    """Whether a clause has the pattern; it is asked about once for each of its values and more."""
    return pattern.search(clause) is not None


@lru_cache(maxsize=1 << 10)
def _is_foreign(clause: str) -> bool:
    return len(_LETTERS.findall(clause)) >= _A_SENTENCE and not is_english(clause)


class Phrase:
    """A value and its surroundings in an answer. ``clause``: its sentence or line, which begins at
    ``at``; ``head``: what stands above it in the first line of its table. What it is called is read on
    demand: most values are told as they are."""

    def __init__(self, answer: Answer, index: int) -> None:
        self.mention = answer.mentions[index]
        self.clause, self.at = answer.clause(self.mention)
        self.head = answer.head(self.mention)
        self._answer, self._index = answer, index

    @cached_property
    def label(self) -> frozenset[str]:
        """The stems of the words that name it."""
        return self._answer.label(self._index)[0]

    @property
    def inherited(self) -> bool:
        """Whether they name another value first."""
        return self._answer.label(self._index)[1]

    @property
    def left(self) -> str:
        """The clause before the value."""
        return self.clause[: self.mention.start - self.at]

    @property
    def right(self) -> str:
        """The clause after the value."""
        return self.clause[self.mention.end - self.at :]

    @property
    def claimed(self) -> bool:
        """Whether the value is said to be so: not an example, a format, or what it is *not*."""
        return is_claimed(self.clause, self.left)

    @property
    def stated(self) -> bool:
        """Whether a value of a field is given: an amount or a time, or a number after a colon or a verb."""
        return self.mention.kind != "number" or bool(_STATED.search(self.left[-24:]))

    @property
    def hedged(self) -> bool:
        """Whether it is said to be about so much."""
        return _says(_HEDGED, self.left[-24:])

    @property
    def calculated(self) -> bool:
        """Whether the words around speak of a result of arithmetic, or may do so in a language whose words
        for it are not known."""
        return _says(_CALCULATED, self.clause) or _says(_TOTALLED, self.head) or self.foreign

    @property
    def is_unit_price(self) -> bool:
        """Whether words of arithmetic only say what one of something costs: "costs $49 per month"."""
        if self.mention.kind != "money" or _says(_TOTALLED, self.head):
            return False
        left, right = _COSTS.sub("", self.left), _EACH_UNIT.sub("", self.right)
        says_so = left != self.left or right != self.right
        return says_so and not _says(_CALCULATED, left) and not _says(_CALCULATED, right)

    @property
    def hypothetical(self) -> bool:
        """Whether it is said of what may or would be."""
        return _says(_HYPOTHETICAL, self.clause)

    @property
    def foreign(self) -> bool:
        """Whether the clause is of a language whose words for arithmetic are not known."""
        return _is_foreign(self.clause)

    @property
    def compared(self) -> bool:
        """Whether the words around speak of a difference."""
        return _says(_COMPARED, self.clause)

    @property
    def averaged(self) -> bool:
        """Whether the words around speak of a mean."""
        return _says(_AVERAGED, self.clause)

    @property
    def percents(self) -> tuple[float, ...]:
        """The percentages in the clause."""
        return tuple(
            float((found[1] or found[2]).replace(",", ".")) for found in _PERCENTS.finditer(self.clause)
        )

    @property
    def asked(self) -> bool:
        """Whether the clause is a question."""
        return self.clause.rstrip(' *_)"').endswith("?")


_COSTS = expression(r"(?i)\bcosts?\W{1,4}\Z")
_EACH_UNIT = expression(
    r"(?i)\A\W{0,3}(?:per|an?|each|every) (?:month|year|week|day|night|hour|user|seat|person)\b"
)
_AVERAGED = expression(
    r"(?i)\b(?:averag\w*|avg|mean|median|durchschnitt\w*|schnitt|mittel|moyen\w*|media|promedio|média|"
    r"mediana|"
    r"per|each|pro (?:kopf|person|monat|stück|nacht|tag|jahr)|je|chacun\w*|cada)\b|平均|每|人均"
)
_PERCENTS = expression(
    r"(?<![0-9.,])([0-9]{1,3}(?:[.,][0-9]{1,4})?)\s?"
    r"(?:%|percent|prozent|per cent|por ciento|pour cent|por cento)|%\s?([0-9]{1,3})(?![0-9])"
)
_COMPARED = expression(
    r"(?i)\b(?:differen\w+|more|less|cheaper|warmer|colder|cooler|hotter|longer|shorter|faster|"
    r"expensive|sav(?:e|es|ed|ing|ings)|additional\w*|extra|higher|lower|"
    r"increase\w*|decrease\w*|drop\w*|rise|rose|fell|remain\w*|to spare|left|over|under|than|refund\w*|"
    r"another|from \S+ to|keeps?|kept|above|below|beyond|"
    r"exceed\w*|behind|ahead|leads?|led|short|away|lost|gained|länger|kürzer|später|früher|mehr|"
    r"weniger|günstiger|billiger|teurer|wärmer|kälter|höher|unterschied|"
    r"differenz|übrig|plus|moins|écart|différence|más|menos|diferencia|mais|diferença|restam?|reste|"
    r"queda[nr]?)\b|"
    r"[差比早晚多少余剩]"
)
_STATED = expression(
    r"(?:[:=]|\b(?:is|are|was|were|be|of|at|has|have|with|only|includes?|to|ist|sind|est|es|son|"
    r"en))[\s*_`\"'$]*$"
)
_INDENT = expression(r"([ \t]*)((?:[-*•+|]|[0-9]{1,2}[.)])[ \t]+)?")


MOST_VALUES = 500
"""Of an answer: values are held against each other, and no answer for people has more of them."""


class Answer:
    """An answer of the agent and its first values; what stands around them is looked at on demand."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.mentions = tuple(islice(mentions_in(text), MOST_VALUES)) if text else ()
        self._ends: list[int] = []
        self._named: dict[int, set[str]] = {}
        self._labels: dict[int, tuple[frozenset[str], bool]] = {}
        self._identified: list[tuple[int, str]] | None = None
        self._tops: dict[int, int] = {}
        self._totals: list[float] | None = None

    def phrase(self, index: int) -> Phrase:
        """The value at ``index`` with its surroundings."""
        return Phrase(self, index)

    def clause(self, mention: Mention) -> tuple[str, int]:
        """The sentence or line of a value, and where it begins."""
        first, last = self._sentence(mention)
        return self.text[first:last], first

    def head(self, mention: Mention) -> str:
        """What stands above the cell of a table that the value is in; nothing in its first line."""
        text = self.text
        line = text.rfind("\n", 0, mention.start) + 1
        if text[line] != "|" or (top := self.top(line)) == line:
            return ""
        cells = text[top : text.find("\n", top)].split("|")
        column = text.count("|", line, mention.start)
        return cells[column].strip(" *_") if column < len(cells) else ""

    def totals(self) -> list[float]:
        """The sums of the columns of its tables, from the first row down to each."""
        if self._totals is not None:
            return self._totals
        columns: dict[tuple[int, int], list[float]] = {}
        for mention in self.mentions:
            line = self.text.rfind("\n", 0, mention.start) + 1
            if self.text[line] == "|" and mention.numbers and mention.numbers[0]:
                column = (self.top(line), self.text.count("|", line, mention.start))
                columns.setdefault(column, []).append(mention.numbers[0])
        self._totals = [total for values in columns.values() for total in list(accumulate(values))[1:]]
        return self._totals

    def top(self, line: int) -> int:
        """Where the table begins that has the row at ``line``."""
        text, top = self.text, line
        while top and top not in self._tops:
            above = text.rfind("\n", 0, top - 1) + 1
            if text[above] != "|":
                break
            top = above
        self._tops[line] = self._tops.get(top, top)
        return self._tops[line]

    def _sentence(self, mention: Mention) -> tuple[int, int]:
        if not self._ends:
            self._ends = [0, *[found.end() for found in _SENTENCE_END.finditer(self.text)], len(self.text)]
        place = bisect_right(self._ends, mention.start)
        last = self._ends[place] if place < len(self._ends) else len(self.text)
        return self._ends[place - 1], max(last, mention.end)

    def label(self, index: int) -> tuple[frozenset[str], bool]:
        """What a value is called, and whether by words for another: one that has none of its own is called
        as the one before it in its sentence."""
        passed: list[int] = []
        while (found := self._labels.get(index)) is None:
            if own := self._own_label(index):
                found = self._labels[index] = own
                break
            passed.append(index)
            index -= 1
        if passed:
            found = (found[0], True)
            self._labels.update(dict.fromkeys(passed, found))
        return found

    def _own_label(self, index: int) -> tuple[frozenset[str], bool] | None:
        """The words between the value before and this one, and those right after it; for the first of a
        sentence without any, those of the line above. ``None``: there are none, and a value is before it."""
        text, mention = self.text, self.mentions[index]
        first, last = self._sentence(mention)
        valued = index - 1
        while valued >= 0 and self.mentions[valued].kind == "identifier":
            valued -= 1  # "the weight of W-77 is": a name does not part a value from its own
        previous = max(first, self._past_unit(self.mentions[valued])) if valued >= 0 else first
        following = self.mentions[index + 1].start if index + 1 < len(self.mentions) else len(text)
        before = text[max(previous, mention.start - 60) : mention.start]
        after = text[mention.end : max(mention.end, min(following, last, mention.end + 40))]
        cut = _PART_END.search(after)
        stems = text_stems(f"{before}\n{after[: cut.start()] if cut else after}")
        if stems:
            return stems, False
        if previous > first:
            return None
        above = text[max(0, first - 120) : first].rstrip()
        return text_stems(above[above.rfind("\n") + 1 :]), True

    def _past_unit(self, mention: Mention) -> int:
        """Where the value ends with the word of its unit, which says nothing of what comes next."""
        end = mention.end
        while self.text[end : end + 1] == " ":
            end += 1
        found = self.text[end : end + len(mention.unit)].lower() == mention.unit
        return end + len(mention.unit) if mention.unit and found else mention.end

    def values_before(self, index: int) -> list[Mention]:
        """What is in its sentence before it and is no identifier."""
        mention = self.mentions[index]
        if not index or self.text.find("\n", self.mentions[index - 1].end, mention.start) >= 0:
            return []
        first, _ = self._sentence(mention)
        before = takewhile(lambda each: each.start >= first, reversed(self.mentions[:index]))
        return [each for each in before if each.kind != "identifier"]

    def latest_identifier(self, index: int) -> tuple[str, ...]:
        """The nearest identifier before the value at ``index``, in lower case, if there is one."""
        for place in range(index - 1, -1, -1):
            if self.mentions[place].kind == "identifier":
                return (self.mentions[place].text.lower(),)
        return ()

    def named_around(self, index: int, titles: Collection[str]) -> set[str]:
        """The things that the value at ``index`` is about, in lower case: the identifiers and those
        ``titles`` in its sentence, else in the nearest one before it on the line, else the identifiers in
        what the line is a point of."""
        first, last = self._sentence(self.mentions[index])
        line = self.text.rfind("\n", 0, self.mentions[index].start) + 1
        passed: list[int] = []
        while (found := self._named.get(first)) is None:
            passed.append(first)
            found = self._names_in(max(first, line), last, titles)
            if found or first <= line:
                found = found or self._heads(line)
                break
            first, last = self._ends[bisect_right(self._ends, first - 1) - 1], first
        self._named.update(dict.fromkeys(passed, found))
        return found

    def _names_in(self, first: int, last: int, titles: Collection[str]) -> set[str]:
        sentence = self.text[first:last].lower()
        found = {title for title in titles if title in sentence and stands_in(title, sentence)}
        return found | self._identifiers(first, last)

    def _identifiers(self, start: int, end: int) -> set[str]:
        if self._identified is None:
            self._identified = [
                (other.start, other.text.lower()) for other in self.mentions if other.kind == "identifier"
            ]
        first = bisect_left(self._identified, (start, ""))
        return {name for _, name in takewhile(lambda each: each[0] < end, self._identified[first:])}

    def _heads(self, line: int) -> set[str]:
        """The identifiers in the lines that the point at ``line`` belongs to: all points beside it, as long
        as those have none below them ("flight 1", "flight 2", "seats on both"), else what is further left
        above it."""
        level, deeper = _indent(self.text, line), False
        beside: set[str] = set()
        while line > 0:
            end, line = line - 1, self.text.rfind("\n", 0, line - 1) + 1
            indent = _indent(self.text, line)
            if indent < 0:  # an empty line
                break
            if indent > level:
                deeper = True
            elif indent == level and not deeper:
                beside |= self._identifiers(line, end)
            elif indent < level:
                if beside:
                    break
                if found := self._identifiers(line, end):
                    return found
                level, deeper = indent, False
        return beside


def _indent(text: str, line: int) -> int:
    """How far the line that begins at ``line`` is to the right: points of a list are further than what is
    none; -1 if it is empty."""
    found = _INDENT.match(text, line)
    if not found or found.end() >= len(text) or text[found.end()] == "\n":
        return -1
    return 2 * len(found[1]) + (found[2] is not None)
