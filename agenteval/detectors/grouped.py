"""Identifiers that are written in groups: what belongs to one."""

from __future__ import annotations

from agenteval.expressions import expression

_LONGEST = 400
_HEX = frozenset("0123456789abcdefABCDEF:")
_OCTETS = expression(r"[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){3,31}(?![0-9A-Za-z:])")
_IBAN = expression(r"[A-Z]{2}[0-9]{2}(?: [A-Z0-9]{4}){2,7}(?: [A-Z0-9]{1,3})?(?![A-Za-z0-9])")
_SHORTEST = 15


def octets_around(text: str, start: int, floor: int) -> tuple[int, int] | None:
    """The span of the address or serial number in pairs of hexadecimal digits (5F:09:BB:E2) that ``start``
    lies in."""
    left = start
    while left > floor and start - left < _LONGEST and text[left - 1] in _HEX:
        left -= 1
    found = _OCTETS.match(text, left)
    if not found or found.end() <= start or found[0].replace(":", "").isdecimal():
        return None
    return found.span()


def end_of_account(text: str, start: int) -> int:
    """Where the number of a bank account (IBAN) in groups of four ends that begins at ``start``; 0: none."""
    found = _IBAN.match(text, start)
    return found.end() if found and len(found[0].replace(" ", "")) >= _SHORTEST else 0
