"""Numbers of answers that do not come from the other numbers of their table or their sentence as is said."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import permutations
from statistics import fmean
from typing import TypeAlias

from agenteval.detectors.arithmetic import digits_changed, formulas, near, share_of
from agenteval.detectors.mentions import Mention
from agenteval.detectors.phrases import Answer, Phrase
from agenteval.expressions import expression

Row: TypeAlias = dict[int, Mention]
"""The cells of a row that have one number, by their column."""
_TOTAL = expression(
    r"(?i)\b(?:(?:sub)?total\w*|sums?|so far|overall|altogether|gesamt\w*|summe|insgesamt|zusammen|somme|"
    r"ensemble|suma|en conjunto|soma|ao todo|totale|somma)\b|合計|合计|总计|總計"
)
_ROWS = 3
"""Others that keep to a rule by chance only rarely; with fewer, the value has to be a slip."""
_MOST = 40
"""Rows of a table that are looked at."""
_MOST_VALUES = 400
"""Of an answer whose tables are looked at: each value reads its table anew."""
_NEAR = 120
"""Characters before a value in which its formula stands."""


def off_column(answer: Answer, mention: Mention) -> str:
    """What is wrong with a number of a table, in words: the row of totals gives another one than its column
    adds up to, or it does not come from the other cells of its row as those of the other rows do. Empty:
    nothing."""
    line = answer.text.rfind("\n", 0, mention.start) + 1
    if answer.text[line] != "|" or not mention.numbers or len(answer.mentions) > _MOST_VALUES:
        return ""
    rows = _rows(answer, answer.top(line))
    column = answer.text.count("|", line, mention.start)
    here = rows.pop(line, {})
    if here.get(column) != mention or len(rows) > _MOST:
        return ""
    above = [row for start, row in rows.items() if start < line]
    end = answer.text.find("\n", line)
    if _TOTAL.search(answer.text, line, end if end > 0 else len(answer.text)):
        return _off_total(here, column, above) or _off_rule(here, column, above, is_total=True)
    return _off_rule(here, column, list(rows.values()))


def _rows(answer: Answer, top: int) -> dict[int, Row]:
    """The rows of the table that begins at ``top``, by where they begin."""
    text, rows = answer.text, dict[int, Row]()
    crowded: set[tuple[int, int]] = set()
    for mention in answer.mentions:
        line = text.rfind("\n", 0, mention.start) + 1
        if mention.start < top or not mention.numbers or text[line] != "|" or answer.top(line) != top:
            continue
        column = text.count("|", line, mention.start)
        if column in rows.setdefault(line, {}):
            crowded.add((line, column))
        rows[line][column] = mention
    for line, column in crowded:
        del rows[line][column]
    return rows


def _off_total(here: Row, column: int, above: Sequence[Row]) -> str:
    """Where another column adds up to its total, or the number is a slip of the sum."""
    mention = here[column]
    values = _column(above, column)
    if mention.kind == "percent" or len(values) < 2 or len(values) < len(above):
        return ""
    total, number = sum(values), mention.numbers[0]
    if near(number, total, mention.decimals) or number in {*values, fmean(values)}:
        return ""
    if is_digits_slip(number, total):
        return f"the column adds up to {total:.10g}"
    if min(values) <= number <= max(values):
        return ""  # rather a mean of them
    others = [other for other in here if other != column and len(_column(above, other)) > 1]
    adds_up = any(
        near(here[other].numbers[0], sum(_column(above, other)), here[other].decimals) for other in others
    )
    return f"the column adds up to {total:.10g}" if adds_up else ""


def _column(rows: Sequence[Row], column: int) -> list[float]:
    return [row[column].numbers[0] for row in rows if column in row]


Rule: TypeAlias = Callable[[float, float], float]
_RULES: dict[str, Rule] = {
    "plus": lambda a, b: a + b,
    "minus": lambda a, b: abs(a - b),
    "times": lambda a, b: a * b,
    "by": lambda a, b: a / b,
}
_SHARES: dict[str, Rule] = {
    "is a share of": lambda a, b: 100 * a / b,
    "is off": lambda a, b: 100 * abs(a - b) / b,
    "of": lambda a, b: 100 * a * b,
}


def _off_rule(here: Row, column: int, rows: Sequence[Row], *, is_total: bool = False) -> str:
    """Where all other rows keep to a rule by which their cells of this column come from two others."""
    mention = here[column]
    sound = {
        place: cell for place, cell in here.items() if place == column or not _off_total(here, place, rows)
    }
    due = dict.fromkeys(_due(sound if is_total else here, column, rows))
    number, decimals = mention.numbers[0], mention.decimals
    if not due or any(
        near(number, value, decimals) or abs(number - value) <= 0.02 * value for value, _ in due
    ):
        return ""
    least = _ROWS - (mention.kind == "percent")
    found = [
        value
        for value, count in due
        if count >= least or is_digits_slip(number, round(value, max(decimals, 0)))
    ]
    return f"by the other rows of the table it is {found[0]:.{max(decimals, 0)}f}" if found else ""


def _due(here: Row, column: int, rows: Sequence[Row]) -> Iterator[tuple[float, int]]:
    """What the rules give that all other rows keep to, and how many those are."""
    rules = _SHARES if here[column].kind == "percent" else _RULES
    for one, other in permutations((place for place in here if place != column), 2):
        keeping = [row for row in rows if one in row and other in row and column in row]
        a, b = here[one].numbers[0], here[other].numbers[0]
        if not keeping or not b:
            continue
        for rule in rules.values():
            if all(_keeps(row, column, one, other, rule) for row in keeping):
                yield rule(a, b), len(keeping)


def _keeps(row: Row, column: int, one: int, other: int, rule: Rule) -> bool:
    a, b, mention = row[one].numbers[0], row[other].numbers[0], row[column]
    return bool(b) and near(mention.numbers[0], rule(a, b), mention.decimals)


def off_sentence(phrase: Phrase) -> str:
    """What is wrong with a number, in words: it is a slip of what the formula beside it comes to, or another
    percentage than that of the part and the whole before it. Empty: nothing."""
    mention = phrase.mention
    if not mention.numbers or mention.clocks or mention.days:
        return ""
    number, decimals = mention.numbers[0], max(mention.decimals, 0)
    if mention.kind == "percent":
        share = _share_before(phrase)
        far = max(2.0, 0.2 * share) if phrase.hedged else max(1.5, 0.05 * share)
        is_off = share > 0 and min(abs(number - share), abs(100 - number - share)) > far
        return f"the two numbers beside it make {share:.{max(decimals, 1)}f} %" if is_off else ""
    if phrase.hedged:
        return ""
    found = _RESULT.search(phrase.left[-_NEAR:]) or _EXPLAINED.match(phrase.right)
    values = formulas(found[1]) if found else ()
    slips = [value for value in values if is_digits_slip(number, round(value, decimals), least=2)]
    return f"the formula beside it comes to {slips[0]:.{decimals}f}" if slips else ""


def off_share(phrase: Phrase, wholes: Collection[float], told: Collection[float]) -> str:
    """What is wrong with a percentage that an amount follows ("Tax (13.5%): $125.63", "less 20% = $130.69"),
    in words: the amount is no such share of any of the ``wholes``, and none of them less or more by it, but
    one by another percentage that was ``told``. Empty: nothing."""
    mention = phrase.mention
    found = _ITS_AMOUNT.match(phrase.right)
    if mention.kind != "percent" or not found or phrase.hedged:
        return ""
    amount = float(found[1].replace(",", ""))
    wholes = [whole for whole in wholes if whole != amount]
    if share_of(amount, wholes, mention.numbers[:1], 2):
        return ""
    meant = ((whole, percent) for whole in wholes for percent in told if percent)
    shares = (pair for pair in meant if share_of(amount, pair[:1], pair[1:], 2))
    return next((f"{amount:.2f} comes of {whole:.2f} and {percent:g} %" for whole, percent in shares), "")


_ITS_AMOUNT = expression(
    r"\s?%[*_)]{0,3}(?:\s?[:=]|, (?:i\.e\.|or|that is|that['’]s|so)) ?[*_]{0,2}(?:[A-Z]{2,3}\s?)?[$€£]?\s?"
    r"([0-9][0-9,]*\.[0-9]{2})(?![0-9])"
)


def counted(answer: Answer, mention: Mention) -> int:
    """How many things are listed behind the number that says how many there are ("There are 4:"); 0: it says
    nothing of the kind."""
    text = answer.text
    end = text.find("\n", mention.end)
    lead = text[mention.end : end].rstrip(" *_") if end > 0 else ""
    if mention.kind != "number" or not lead.endswith(":") or _NEW_SENTENCE.search(lead):
        return 0
    line = text.rfind("\n", 0, mention.start) + 1
    if not _LISTED.search(text[line : mention.start]) or _SOME.search(text[line:end]):
        return 0
    return _points(text[end + 1 :])


def _points(text: str) -> int:
    """How many points ``text`` begins with, without those below them."""
    indents: list[str] = []
    for line in text.splitlines():
        if found := _POINT.match(line):
            indents.append(found[1])
        elif line.strip() and not line[0].isspace():
            break
    return indents.count(indents[0]) if indents else 0


_POINT = expression(r"([ \t]*)(?:[-*•]|[0-9]{1,2}[.)]) ")
_NEW_SENTENCE = expression(r"[.!?]\s+[^\W\d_a-z]")
_LISTED = expression(
    r"(?i)\b(?:there are|there['’]re|you have|you['’]ve got|here are|i found|i see|these are|we have|i have|"
    r"shows?|lists?|holds?|has|found)(?: (?:the|your|all|these|just|only|currently|now|exactly))*\W{1,4}\Z"
)
_SOME = expression(r"(?i)\b(?:first|top|latest|some|best|including|such as|among|example|nearest|most)\b")
_SUM = r"[$€£]?[0-9][0-9,.]*(?:\s?[+×*·]\s?[$€£]?[0-9][0-9,]*(?:\.[0-9]+)?)+"
_RESULT = expression(rf"(?<![-–+×*·/0-9%.,(])\s?({_SUM})\s?=\s?[*_$€£]*\Z")
_EXPLAINED = expression(rf"[^0-9\n=+×/(-]{{0,24}}\(({_SUM})\)")
_OF = (
    r"([0-9][0-9,]*(?:\.[0-9]+)?)\s?([^\W\d_]*)\W{0,3}(?: (?:of|out of|von|de|sur|di)|/)\W{1,3}"
    r"([0-9][0-9,]*(?:\.[0-9]+)?)\s?([^\W\d_]*)\W{0,3}"
)
_PART = expression(rf"{_OF}\(\W{{0,3}}\Z")
_PART_THEN = expression(
    rf"{_OF}(?:[,;:=–-]|, (?:so|or|i\.e\.,?)) "
    r"(?:(?:that['’]s|that is|which is|it['’]s|that makes|das sind|ce qui fait|es decir)\W{1,3})?"
    r"(?:(?:about|around|roughly|approximately|almost|nearly|exactly|just) )?\W{0,3}\Z"
)


def _share_before(phrase: Phrase) -> float:
    """The percentage that the part is of the whole which stand before the value in its brackets: "84 GB of
    1,200 GB (7%)"; 0: there are none."""
    in_brackets = phrase.right.lstrip().startswith(("%)", "%**)"))
    found = (_PART if in_brackets else _PART_THEN).search(phrase.left[-_NEAR:])
    if not found or (found[2] and found[2] != found[4]):
        return 0.0
    part, whole = (float(digits.replace(",", "")) for digits in (found[1], found[3]))
    return 100 * part / whole if whole else 0.0


def is_digits_slip(number: float, meant: float, *, least: int = 3) -> bool:
    """Whether two digits of a number changed places, or one of ``least`` or more is another."""
    how, text, _ = digits_changed(number, meant, figures=6)
    return how == "swapped" or (how == "digit" and len(text) >= least)
