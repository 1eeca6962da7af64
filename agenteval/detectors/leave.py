"""What a tool's description says of the leave that its call needs: that the user must have agreed, or that
what it does is done for good. In English, the plainest words also in German, Spanish, French, Italian,
Portuguese and Dutch."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from agenteval.detectors.verbs import words_of
from agenteval.expressions import expression


class Leave(NamedTuple):
    """``words``: what the description says. ``asked``: it wants the user to have agreed; else it only calls
    the deed one that cannot be undone."""

    words: str
    asked: bool


_WHO = (
    r"(?:users?|customers?|clients?|callers?|members?|patients?|guests?|students?|employees?|tenants?|"
    r"residents?|passengers?|travell?ers?|patrons?|subscribers?|owners?|buyers?|sellers?|borrowers?|"
    r"applicants?|operators?|shippers?|senders?|shoppers?|policyholders?|cardholders?|holders?|requesters?|they)"
)
_YES = (
    r"(?:yes|ok|okay|go(?:-| )?ahead|confirmation|consent|agreement|permission|approval)\b"
    r"(?! (?:codes?|numbers?|ids?|e-?mails?|tokens?|links?|pages?|letters?|sms|pins?|flags?|param\w*|"
    r"dialogs?|prompts?|forms?|status|of (?:identity|address|payment|receipt)))"
)
# What may stand before it: "the account holder's explicit", "a clear".
_WHOSE = rf"(?:(?:an?|the|their|account|card|policy|ticket|this|prior|{_WHO}|\w+['’]s?) )*"
_FIRM = r"(?:explicit|express|clear|plain|unambiguous|firm|verbal|affirmative)"
_A_YES = (
    rf"(?:{_WHOSE}{_FIRM}(?: and \w+)? {_WHOSE}{_YES}|{_WHOSE}(?:{_WHO}|\w+['’]s?) (?:prior |final )?{_YES}|"
    rf"{_WHOSE}(?:{_FIRM} )?{_YES} (?:from|by|of) (?:the |your )?{_WHO}|{_WHOSE}{_FIRM} go\b|"
    r"a (?:\w+ )?yes\b)"
)
_THE_TERMS = (
    r"(?:amounts?|prices?|quotes?|costs?|fees?|total|charges?|changes?|details|terms of the \w+|order|"
    r"booking|action|cancellation|deletion|transfer|payment|offer|premium)"
)
# Not "has confirmed their address".
_TO_IT = (
    r"(?=\W*$|\W*[.,;:!)]| (?:first|before\w*|explicitly|clearly|in advance|it|this|to (?:it|this|the \w+)|"
    rf"the (?:\w+ )?{_THE_TERMS})\b)"
)
_AGREED = (
    r"(?:confirmed|confirms?|agreed|agrees?|accepted|accepts?|approved|approves?|consented|consents?|"
    r"(?:said|says?|given|gives?) (?:\w+ )?(?:yes|ok|okay|consent|permission)|authori[sz]ed)"
)
_FIRST = expression(
    r"\b(?:first|before(?:hand)?|prior to|always|to proceed|yes/no|must|needs? to|has to|have to)\b",
    re.IGNORECASE,
)
_DEMANDS = expression(
    r"\b(?<!that )(?<!which )(?<!who )(?:requires?|requiring|needs?|without|obtain|get|after|"
    rf"only (?:with|after|upon|on|once you have)|wait for|once you have) {_A_YES}"
    rf"|\b{_WHO} (?:must|has to|have to|needs? to) (?:(?:first|explicitly|clearly|have) )*{_AGREED}{_TO_IT}"
    rf"|\bonly (?:\w+ )?(?:after|once|when|if) (?:[\w'’]+ ){{0,3}}?{_WHO} "
    rf"(?:(?:has|have|explicitly|clearly) )*{_AGREED}{_TO_IT}"
    rf"|(?:{_FIRM}|{_WHO}|['’]s) (?:{_WHO} )?(?:yes|confirmation|consent) (?:is |must be )?"
    r"(?:required|needed|obtained|mandatory)"
    r"|\bask before (?:you (?:\w+)|\w+ing)(?: (?:this|it|the tool|any \w+))?(?=\W*$|\W*[.,;:!)]| again\b)"
    rf"|\bask first\b|\bask (?:the |your )?{_WHO} (?:first|before (?:\w+ing|you))\b",
    re.IGNORECASE,
)
# These may also be all that a tool does, where they stand at the begin.
_ASKS = expression(
    rf"\bask(?:s|ing)? (?:(?:the |your )?{_WHO} )?for (?:{_A_YES}|{_YES})"
    rf"|\bask (?:the |your )?{_WHO} to (?:confirm|approve|agree)\b"
    rf"|\b(?:confirm|check) (?:[^.;\n]{{0,50}} )?with (?:the |your )?{_WHO}\b",
    re.IGNORECASE,
)
_ABROAD = expression(
    r"\b(?:nur|erst) (?:nach|mit) (?:\w+ ){0,2}(?:zustimmung|bestätigung|einwilligung|einverständnis)"
    r"|\b(?:erfordert|benötigt|braucht|verlangt) (?:\w+ ){0,3}(?:zustimmung|bestätigung|einwilligung) "
    r"(?:de[rs]|durch|vo[nm])\b"
    r"|\b(?:requiere|exige|necesita) (?:la |el )?(?:confirmación|consentimiento|aceptación) (?:\w+ )?"
    r"(?:de la|del?|expresa|explícita|previa|clara)\b"
    r"|\b(?:solo|sólo|únicamente) (?:tras|después de|con) (?:la |el )?(?:confirmación|consentimiento|"
    r"aceptación)|\b(?:nécessite|requiert|exige) (?:la |l['’]|une )?(?:confirmation|accord|consentement) "
    r"(?:\w+ )?(?:d[ue]|explicite|exprès|expresse)\b"
    r"|\b(?:uniquement|seulement) (?:après|avec) (?:la |l['’])?(?:confirmation|accord|consentement)"
    r"|\brichiede (?:la |il )?(?:conferma|consenso) (?:\w+ )?(?:del|della|dell['’]|esplicit\w|espress\w)"
    r"|\bsolo (?:dopo|con) (?:la |il )?(?:conferma|consenso)"
    r"|\b(?:requer|exige) (?:a |o )?(?:confirmação|consentimento) (?:\w+ )?(?:d[oae]|explícit\w|express\w)\b"
    r"|\b(?:só|somente|apenas) (?:após|com|depois d[aeo]) (?:a |o )?(?:confirmação|consentimento)"
    r"|\b(?:vereist|alleen (?:na|met)) (?:\w+ ){0,3}(?:bevestiging|toestemming|akkoord)",
    re.IGNORECASE,
)
_FOR_GOOD = expression(
    r"(?<!not )\birreversibl[ey]\b|\birrevocabl[ey]\b"
    r"|\b(?:cannot|can['’]?t|can not) (?:ever )?be (?:undone|reversed|revoked|taken back|rolled back)\b"
    r"(?=\W*$|\W*[.,;:!(–-]| (?:and|so|or)\b)|\b(?:there is |there['’]s )no undo\b"
    r"|\bpermanently (?:delet|remov|eras|destroy|clos|cancel|wip|purg|void)\w*"
    r"|\bunwiderruflich\b|\bnicht (?:mehr )?rückgängig\b|\bno se puede (?:deshacer|revertir)\b|"
    r"\birr[ée]versib(?:le|ile)\b|\bne peut (?:pas|plus) être annulée?\b|\bnon può essere annullat\w\b"
    r"|\birreversível\b"
    r"|\bnão pode ser (?:desfeit|revertid)\w\b|\bonomkeerbaar\b|\bkan niet ongedaan\b|\bonherroepelijk\b",
    re.IGNORECASE,
)
# Whatever else is said: it needs none, it can be undone, somebody else agrees or the program itself asks.
_NONE_NEEDED = expression(
    r"\b(?:no|without(?: any)?|not (?:\w+ )?(?:require|need)s?(?: any)?|n['’]t (?:require|need)(?: any)?) "
    r"(?:\w+ ){0,2}(?:confirmation|consent|approval|permission|yes)\b(?! or\b)"
    r"|\b(?:confirmation|consent|approval) (?:is |are )?(?:not|never|optional)\b|\bneed not (?:ask|confirm)\b"
    r"|\b(?:no need|do not|don['’]t|never) (?:to )?(?:ask|confirm|wait)\b"
    r"|\bcan (?:\w+ )?be (?:\w+ )?(?:undone|reversed|restored|recovered|taken back|rolled back|reverted)\b"
    r"|\b(?:is|fully|easily) reversible\b|\brecoverable\b|\brestorable\b|\btrash\b|\brecycle bin\b"
    r"|\bsoft.delet"
    r"|\bdry.?run\b|\bpreview|\bsimulat|\bdraft of\b|\bnot (?:binding|irreversible)\b",
    re.IGNORECASE,
)
_OTHERWISE = expression(
    r"(?<!\bonly )\b(?:if|unless|except|when|whenever|in case|where)\b|\b(?:may|might|optional\w*|usually)\b"
    r"|\b(?:above|over|exceeding|more than|larger than) [$€£]?\d|\bmanagers?\b|\bsupervisors?\b|\badmin\w*\b"
    r"|\breviewers?\b|\bstaff\b|\bfinance\b|\bdialog\b|\bpop-?up\b|\bbutton\b|\binterface\b|\bscreen\b"
    r"|\bwill be (?:asked|prompted)\b|\bprompts\b|\bbefore (?:using )?any\b|\bwhether\b",
    re.IGNORECASE,
)
_CLAUSE = expression(r"[^.;!\n]+")
_WORDS = (
    "confirm", "consent", "yes", "ask ", "ok", "agree", "accept", "approv", "go-ahead", "go ahead", "said",
    "permission", "explicit", "rever", "undo", "undone", "revoc", "revok", "permanent", "taken back",
    "rolled back", "zustimm", "bestätig", "einw", "einver", "widerruf", "rückg", "conferma", "accord",
    "deshacer", "annul", "desfeit", "bevestig", "toestem", "akkoord", "omkeer", "ongedaan", "herroep",
    "aceptaci", "révers",
)  # fmt: skip
_ASKERS = frozenset(("ask", "confirmation", "consent", "approval", "permission"))


# "Only call this once …", "do not call this until …": only after.
_ONLY = expression(
    r"\bonly (?:[\w'’]+ ){1,4}?(?=(?:after|once|when|if|with|upon)\b)"
    r"|\b(?:never|not|don['’]t) (?:[\w'’]+ ){0,4}?(?:before|until|till|unless) (?=\w)",
    re.IGNORECASE,
)


def _plainly(clause: str) -> str:
    """The clause with the condition of the call right behind "only"."""
    return _ONLY.sub(lambda found: "only " if found[0][:4].lower() == "only" else "only after ", clause)


@lru_cache(maxsize=2048)
def leave_for(name: str, description: str) -> Leave | None:
    """What a description says so surely; ``None`` if it does not, or of a tool that asks the user itself."""
    small = description.lower()
    if not any(map(small.__contains__, _WORDS)) or _NONE_NEEDED.search(description):
        return None
    if not _ASKERS.isdisjoint(words_of(name)):
        return None
    clauses = _CLAUSE.findall(description)
    for clause in clauses:
        plain = _plainly(clause)
        if _OTHERWISE.search(plain):
            continue
        if _DEMANDS.search(plain) or _ABROAD.search(clause) or _is_told_to_ask(clause, description):
            return Leave(" ".join(clause.split()), asked=True)
    for clause in clauses:
        if _FOR_GOOD.search(clause) and not _OTHERWISE.search(clause):
            return Leave(" ".join(clause.split()), asked=False)
    return None


def _is_told_to_ask(clause: str, description: str) -> bool:
    """Whether a clause tells whoever calls the tool to ask before; at the begin of a description, it tells
    what the tool does."""
    found = _ASKS.search(clause)
    if found is None or (found.start() < _AT_THE_BEGIN and description.lstrip().startswith(clause.strip())):
        return False
    return _FIRST.search(clause) is not None


_AT_THE_BEGIN = 4
