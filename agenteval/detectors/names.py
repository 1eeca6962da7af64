"""Numbers that are a part of a name: HAL 9000, the Commodore 64."""

from __future__ import annotations

import re

from agenteval.detectors.dates import MONTHS
from agenteval.detectors.evidence import Evidence
from agenteval.detectors.fields import stem
from agenteval.detectors.phrases import Phrase
from agenteval.detectors.values import stands_in
from agenteval.detectors.verbs import word_set
from agenteval.expressions import expression

_BEFORE = expression(r"(?:\A|(?P<mark>[^\w\s*_`]?)[\s*_`]+)(?P<word>[^\W\d_][\w'’.-]{1,24}) \Z")
_OPENS = frozenset(':(–—•"“„«?!.|')
_NUMBERED = word_set(
    "order orders room rooms gate gates flight flights ticket tickets seat seats table tables terminal "
    "platform track bay box locker lot unit suite apartment apt floor level building stand dock pier "
    "aisle shelf slot lane line queue batch job task issue case claim invoice booking reservation "
    "customer client account member user patient student employee policy contract parcel shipment "
    "tracking zone area ward section page question step day week month year age size score rank total "
    "totals sum balance points credits stock quantity amount count number no nr code pin ref reference "
    "extension ext channel version build release car coach bus train tram stop exit door desk court hall "
    "studio cabin site pitch row block plot house bed bin rack drawer meter device sensor machine pump "
    "node server port rule article clause form item sku part lead deal quote round game match lap mile "
    "kilometer km kg hour minute percent degrees temperature humidity bestellung zimmer raum gate flug "
    "ticket platz tisch bahnsteig gleis wagen nummer rechnung auftrag buchung kunde konto vorgang etage "
    "stock halle schließfach stand punkte menge summe gesamt anzahl rund etwa pedido habitación sala "
    "puerta vuelo asiento mesa factura reserva cliente cuenta andén commande chambre salle porte vol "
    "place facture réservation client compte quai ordine camera volo posto tavolo fattura prenotazione "
    "binario quarto voo assento fatura conta tgv ter ice ic ec re rb rer ir rjx nj ave eurostar thalys "
    "ouigo intercity regio"
)
_SINGULAR = frozenset(("is", "was", "has", "does", "runs", "became", "becomes"))
_GERMAN = expression(
    r"\b(?:der|die|das|und|ist|ich|nicht|bitte|eine?|im|am|sie|wir|haben|hat|zu|zum|mit|für|auf|von|den|dem|sind|"
    r"noch|es|sich|ihr\w{0,2}|dein\w{0,2}|beim?|werden|wird)\b|[äöüß]"
)
_NO_NOUN = word_set(
    "only about around over under nearly almost exactly roughly approximately currently at by in on for "
    "from within another all some these those your our their his her its my the a an and or but with "
    "without after before between up maximum minimum another usually just plus least most per than that "
    "this there"
)


def is_part_of_name(phrase: Phrase, evidence: Evidence) -> bool:
    """Whether a whole number stands right behind a name that no field of a result has and that does not say
    what is numbered (a room, an order) or counted."""
    mention = phrase.mention
    found = (
        _BEFORE.search(phrase.left[-40:]) if not mention.numbers[0] % 1 and mention.text.isdigit() else None
    )
    if found is None:
        return False
    word = found["word"].rstrip(".")
    small = word.lower()
    if (
        word == small
        or small in _NUMBERED
        or small in _NO_NOUN
        or small in MONTHS
        or _is_counted(mention.unit)
    ):
        return False
    if len(word) < _A_WORD or (_GERMAN.search(phrase.clause) and not _stands_out(word)):
        return False  # in German, all nouns have a capital
    if _opens(phrase, found) and not _stands_out(word) and mention.unit not in _SINGULAR:
        return False
    told = (text.lower() for text in evidence.texts("told", "result"))
    return not evidence.has_field({stem(word)}) and not any(stands_in(small, text) for text in told)


_A_WORD = 3


def _opens(phrase: Phrase, found: re.Match[str]) -> bool:
    """Whether the word has its capital from standing first."""
    before = phrase.left[: len(phrase.left[:-40]) + found.start("word")].strip(" *_`#>-•\t")
    return not before or before[-1] in _OPENS


def _stands_out(word: str) -> bool:
    return sum(letter.isupper() for letter in word) > 1


def _is_counted(unit: str) -> bool:
    """Whether the word behind says what there are so many of."""
    if unit[:3] in _TIMES or unit in _MEASURES:
        return True
    return len(unit) > 2 and unit.endswith("s") and unit not in _SINGULAR


_TIMES = word_set(
    "day dni gio día dia jou tag noc nui min hou stu heu hor ore wee woc sem mon moi mes mês yea jah ans "
    "año ano ann"
)


_MEASURES = word_set(
    "° °c °f kg km g cm mm mi mph kmh kw kwh min h people guests % mb gb tb degree mal uhr mg ml l mcg iu "
    "lb oz ft"
)
