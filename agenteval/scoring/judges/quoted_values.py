"""Extracts the values in a quotation, in any notation: identifiers, addresses and numbers."""

from __future__ import annotations

import re
from decimal import Decimal

from agenteval.scoring.detectors.identifiers import find_identifiers

_NUMBER = re.compile(r"[0-9]+(?:[.,'’\u00a0\u202f][0-9]+)*")
_LONGEST = 24
_CENTS = Decimal("0.01")


def extract_values(text: str) -> frozenset[str | Decimal]:
    """Extract the values in a string.

    Numbers are rounded to cents and returned without a sign. Ambiguous numbers (``1.250``) are left out."""
    identifiers = list(find_identifiers(text))
    taken = {at for each in identifiers for at in range(each.start, each.end)}
    numbers = (parse_amount(found[0]) for found in _NUMBER.finditer(text) if found.start() not in taken)
    return frozenset(
        (*(each.core for each in identifiers), *(number for number in numbers if number is not None))
    )


def is_value(text: str) -> bool:
    """Check whether a string is a single value and nothing else."""
    text = text.strip().strip("$€£¥%").strip()
    return any(each.text == text for each in find_identifiers(text)) or bool(_NUMBER.fullmatch(text))


def parse_amount(text: str) -> Decimal | None:
    """Parse a written number, rounded to cents. Return ``None`` if the number is ambiguous or has more digits
    than any amount."""
    if len(text) > _LONGEST:
        return None
    text = text.translate(_GROUPING)
    last = max(text.rfind(","), text.rfind("."))
    whole, sign, fraction = text[:last], text[last : last + 1], text[last + 1 :]
    if last < 0:
        whole, fraction = text, ""
    elif {",", "."} <= set(text):
        pass
    elif text.count(sign) > 1 or (sign == "," and len(fraction) == 3 and whole != "0"):
        whole, fraction = text, ""
    elif len(fraction) == 3 and whole != "0":
        return None
    digits = whole.replace(",", "").replace(".", "")
    return Decimal(f"{digits}.{fraction or 0}").quantize(_CENTS)


_GROUPING = str.maketrans(dict.fromkeys("'’\u00a0\u202f"))
"""Removes the characters that can only group digits. A comma or a point may also precede a fraction."""
