"""Messages in other languages than English that only ask for something, and so agree to nothing."""

from __future__ import annotations

import re

from agenteval.core.expressions import expression

# One question for something, in the larger languages of Western Europe: whoever asks has not agreed yet.
_ASKS_ABROAD = expression(
    r"\W*(?:(?:und|aber|et|mais|y|pero|e|ma|mas|en|maar|och|men|og)\s+)?(?:was|wann|wie|wieso|weshalb|"
    r"welche[mnrs]?|wo|wer|wem|wen|warum|combien|quand|comment|pourquoi|quel(?:le)?s?|où|qui|qu'est-ce|"
    r"cuánt[oa]s?|cuándo|cómo|por qué|qué|dónde|cuál(?:es)?|quién|quant[oaie]|quando|come|perché|che cosa|"
    r"cosa|quale|dove|chi|como|onde|qual|quais|quem|hoeveel|wanneer|waarom|wat|hoe|waar|welke?|vad|när|hur|"
    r"varför|vilken|hvad|hvornår|hvordan|hvorfor|hva|når)\s[^.!?\n]*\?\s*",
    re.IGNORECASE,
)
# "Warum nicht?" is a yes.
_WHY_NOT = expression(r"\b(?:nicht|pas|no|non|não|niet|inte|ikke)\b", re.IGNORECASE)


def asks_one_thing(text: str) -> bool:
    """Whether all of a message is one question that begins with a question word."""
    return _ASKS_ABROAD.fullmatch(text) is not None


def only_asks(text: str) -> bool:
    """Whether it is one that agrees to nothing."""
    return asks_one_thing(text) and _WHY_NOT.search(text) is None


# Parts of a message that only wants to know: a question, or the case that it is asked for.
_OF_QUESTIONS = (
    r"was|wann|wie ?viel\w*|welche[mnrs]?|wat|wanneer|hoeveel|combien|quand|quel(?:le)?s?|cuánt[oa]s?|cuándo|"
    r"quant[oaie]|quando"
)
_ASKED_PART = expression(
    rf"\W*(?:(?:und|aber|en|maar|et|mais|y|pero|e|ma|mas)\s+)?(?:(?:ab|bis|für|zu|vanaf|tot|voor|à|dès|pour|"
    rf"a|de|desde|da|per|até)\s+)?(?:{_OF_QUESTIONS})\s[^.!?\n]*",
    re.IGNORECASE,
)
_WHAT_IF = expression(
    r"\W*(?:(?:und|aber|en|maar|et|mais|y|pero|e|ma|mas)\s+)?(?:wenn|falls|als|indien|si|se)\s"
    rf"(?P<case>[^.!?\n,]*)(?P<then>,[^.!?\n]*\b(?:{_OF_QUESTIONS})\s[^.!?\n]*)?",
    re.IGNORECASE,
)
_WISHES_ABROAD = expression(
    r"\b(?:bitte|kannst|könnt\w*|können|mach\w*|kunt|kun|graag|alstublieft|doe|puede\w*|podría\w*|por favor|"
    r"quiero|pouvez|peux|pourri\w+|s'il|svp|veux|puoi|può|potre\w+|per favore|voglio|pode\w*|poderia|quero|"
    r"will|möchte|wil)\b",
    re.IGNORECASE,
)
_ASKS_IN_JAPANESE = expression(
    r"\A[^。??!！\n]*(?:いくら|何日|何円|いつ|どのくらい)[^。??!！\n]*か[。??]?\s*\Z"
)
_WISHES_IN_JAPANESE = expression("ください|下さい|お願い|もらえ|いただけ|くれ|ほしい|欲しい")


_IF = expression(r"\A\W*(?:\w+\s+)?(?:si|se)\s", re.IGNORECASE)


def without_if(text: str) -> str:
    """The text without a word for "if" at its begin that is one for "yes" elsewhere."""
    return _IF.sub("", text)


def asks_what_if(text: str) -> bool:
    """Whether all of a message asks what would be ("wenn ich kündige? ab wann wär ich raus"), and it wishes
    for nothing. German, Dutch, French, Spanish, Portuguese, Italian; in Japanese one such question."""
    if _ASKS_IN_JAPANESE.match(text) and not _WISHES_IN_JAPANESE.search(text):
        return True
    if "?" not in text or _WISHES_ABROAD.search(text):
        return False
    parts = [part for part in _ENDS.split(text) if part.strip()]
    cases = [_WHAT_IF.fullmatch(part) for part in parts]
    asked = [bool(_ASKED_PART.fullmatch(part)) for part in parts]
    all_ask = all(case or is_asked for case, is_asked in zip(cases, asked, strict=True))
    return all_ask and (any(asked) or any(case and case["then"] for case in cases))


_ENDS = expression(r"[.!?\n]+")
