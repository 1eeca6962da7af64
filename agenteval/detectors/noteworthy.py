"""Which values without any support are worth a word: those that only a source could have given."""

from __future__ import annotations

from agenteval.detectors.clocks import relative_times
from agenteval.detectors.elapsed import has_lengths, relative_days
from agenteval.detectors.evidence import Evidence
from agenteval.detectors.mentions import Mention
from agenteval.detectors.names import is_part_of_name
from agenteval.detectors.opposition import shape_of
from agenteval.detectors.phrases import Phrase
from agenteval.detectors.verbs import word_set
from agenteval.expressions import expression

_NAMED = expression(
    r"(?i)\b(?:id|ids|iban|number|no|code|reference|ref|order|booking|reservation|confirmation|tracking|ticket|"
    r"case|flight|invoice|account|pnr|email|phone|"
    r"código|codigo|número|numero|localizador|referencia|reserva|pedido|factura|"
    r"numéro|référence|réservation|commande|facture|dossier|codice|prenotazione|ordine|referência|fatura|"
    r"\w*nummer|\w*code|buchung|bestellung|rechnung|vorgang)\b\W*"
    r"(?:(?:for|of|to) (?:\w+ ){1,3})?(?:is|are|of|was|es|est|ist|lautet|è|é)?\W*\Z"
)
_ROUND = frozenset(
    {
        10,
        12,
        15,
        20,
        24,
        25,
        30,
        36,
        40,
        45,
        48,
        50,
        60,
        70,
        72,
        75,
        80,
        90,
        99,
        100,
        120,
        150,
        180,
        200,
        250,
        300,
    }
    | {360, 365, 400, 404, 500, 1000, 2000, 5000, 10000}
    | {110, 112, 118, 119, 911, 988, 999}  # emergency lines
)
_AGES = frozenset({"year", "yrs", "yr", "jahr", "ans", "años", "anni"})
_TELEPHONE = expression(
    r"\+?[0-9]{0,3}[ .-]?\(?[0-9]{3}\)?[ .-][0-9]{3}[ .-][0-9]{4}|\+(?=(?:[^0-9]*[0-9]){8})[0-9 .()-]{9,22}"
    r"|0[0-9]{2,4}(?:[ -][0-9]{2,5}){2,3}"
)
_TWO_PARTS = expression(r"0(?!800)[1-9][0-9]{1,3}[ /-][0-9]{6,8}")
_CALLING = expression(
    r"(?i)\b(?:call|phone|tele(?:ph|f)\w*|tel|mobile|cell|fax|dial|ring|reach|whatsapp|sms|hotline|line|contact\w*|"
    r"numbers?|handy|mobil\w*|ruf\w*|anruf\w*|appel\w*|llam\w*|número|numéro|numero|ligue|chiam\w*|bel)\b"
)
_LONG = expression("[0-9]{10,}")
_FILED = expression(r"(?i)\b(?:under|as|with|via|quot(?:e|ing)|unter|mit|sous|con|bajo)\W{1,4}\Z")
_SERIAL = expression(r"[A-Z]{2,5}-[0-9]{3,}(?:-[0-9]+)*")
_ODD = expression(r"[^\w.@/+() -]")


def reportable(phrase: Phrase, evidence: Evidence) -> bool:
    """Whether the value is claimed of the world that the tools and the knowledge describe, and precise
    enough that it cannot be common knowledge, a proposal or a manner of speaking. Of three numbers, any
    percentage may be the share."""
    mention = phrase.mention
    if phrase.asked or evidence.is_opaque or _is_hidden(phrase, evidence):
        return False
    if mention.kind == "identifier":  # nobody proposes or estimates one
        return (evidence.speaks or evidence.tools_declared) and _identifies(phrase, evidence)
    if phrase.hedged or not evidence.speaks or phrase.hypothetical:
        return False
    match mention.kind:
        case "money":
            return True
        case "percent":
            return len(evidence.numbers) < 3 and mention.numbers[0] not in {0, 50, 100}
        case "date":
            # Of "9-13 August" the 13th is told.
            return len(mention.text) > 2 and not relative_days(evidence)
        case "time":
            return not relative_times(evidence) and not mention.vague and mention.clocks[0] % 60 != 0
        case _:
            number = mention.numbers[0]
            if has_lengths(mention, evidence):
                return False
            return (
                mention.unit[:4] not in _AGES
                and (number >= 10 or _is_measured(mention))
                and number not in _ROUND
                and (phrase.stated or mention.unit[:1].isalpha())
                and not is_part_of_name(phrase, evidence)
            )


def _is_measured(mention: Mention) -> bool:
    """Whether it is a small measure to the hundredth, which nobody makes up to be about right."""
    number = mention.numbers[0]
    return mention.decimals >= 2 and number > 1 and mention.unit in _MEASURES and number not in _FACTORS


_FACTORS = frozenset(
    (2.54, 1.61, 1.609, 3.79, 3.785, 2.205, 3.28, 3.281, 1.09, 4.55, 4.546, 1.76, 4.18, 4.184)
)
"""What units are of others: an inch is 2.54 cm."""
_MEASURES = word_set("kg g lb lbs t km cm m l ml mmol °c °f kwh ha v")


def _is_hidden(phrase: Phrase, evidence: Evidence) -> bool:
    """Whether it may be the value of a field that the record leaves out."""
    hidden = evidence.hidden
    return bool(hidden) and (phrase.mention.kind == "identifier" or not hidden.isdisjoint(phrase.label))


def _identifies(phrase: Phrase, evidence: Evidence) -> bool:
    """Whether it is called an identifier, or has the shape of one that a source gave."""
    text = phrase.mention.text
    if len(text) < 5 or sum(letter.isdigit() for letter in text) < 2 or _ODD.search(text):
        return False
    if _TWO_PARTS.fullmatch(text) and _CALLING.search(phrase.clause):
        return True
    if _NAMED.search(phrase.left) or _TELEPHONE.fullmatch(text) or _LONG.fullmatch(text):
        return True
    if _FILED.search(phrase.left) and _SERIAL.fullmatch(text):
        return True
    shape = shape_of(text)
    return any(
        leaf.mention.kind == "identifier" and shape_of(leaf.mention.text) == shape
        for leaf in evidence.leaves.all()
    )
