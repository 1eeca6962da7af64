"""The addresses that the agent had been told by a moment of the conversation, ready to be looked up."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from agenteval.detectors.addresses import Address, mailboxes_in, pages_in, readable
from agenteval.detectors.conversation import Conversation
from agenteval.detectors.json_text import text_of
from agenteval.detectors.values import stands_in
from agenteval.expressions import expression
from agenteval.trajectory import ToolCall

_MAX_TEXT = 400_000
_SPACE = expression(r"(?:\s|\\[nrt])+")
_GROUPING = expression(r"[\s().,+-]")
_DIGITS = expression(r"[0-9]{4,}")
_RUN = expression(r"[a-z0-9]{8,}")
_NOT_SHOWN = ("encrypted", "redacted", "truncated", "omitted", "base64", "too long")
_OPAQUE = expression(r"[A-Za-z0-9+/]{400}")


class Told(NamedTuple):
    """An address and who gave it; ``role`` as in ``Source``."""

    address: Address
    role: str
    name: str

    @property
    def is_evidence(self) -> bool:
        """Whether an answer has to agree with it."""
        return self.role in {"result", "told"}


class ToldAddresses:
    """Sources up to a moment.

    ``texts``: all of them, as ``readable`` gives them; ``results``: with the names of their calls;
    ``by_host``, ``by_rest`` and ``by_run``: addresses by their host, by what comes after it, and by the long
    runs of letters and digits in that; ``mailboxes``: with who gave them; ``speaks``: there is something to
    tell from; ``is_opaque``: some result is not in the log as the agent had it.
    """

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.results: list[tuple[str, str]] = []
        self.by_host: dict[str, list[Told]] = defaultdict(list)
        self.by_rest: dict[str, list[Told]] = defaultdict(list)
        self.by_run: dict[str, Told] = {}
        self.mailboxes: dict[str, Told] = {}
        self.is_opaque = self.speaks = False
        self._prefixes: set[str] = set()
        self._wholes: set[str] = set()
        self._squeezed: list[str] = []
        self._digits: list[str] = []

    def add_text(self, role: str, name: str, text: str) -> None:
        if not text:
            return
        self.texts.append(readable(text))
        if role == "result":
            self.results.append((name, self.texts[-1]))
        self.speaks = self.speaks or role in {"result", "told"}
        for address in pages_in(text[:_MAX_TEXT]):
            self._add(Told(address, role, name))
        for box in mailboxes_in(text[:_MAX_TEXT]) if role != "args" else ():
            address = Address(box.start, box.end, box.text, box.name, "", "")
            self.mailboxes.setdefault(box.name, Told(address, role, name))

    def add_call(self, call: ToolCall, index: int) -> None:
        """The arguments of a call, and its result."""
        name = f"{call.name} (call {index + 1})"
        self.add_text("args", name, call.raw_args or (text_of(call.args) if call.args else ""))
        value = call.result.value if call.result else None
        text = value if isinstance(value, str) else text_of(value) if value is not None else ""
        self.is_opaque = self.is_opaque or _is_opaque(text)
        self.add_text("result", name, text)

    def _add(self, told: Told) -> None:
        address = told.address
        if address.whole in self._wholes and not told.is_evidence:
            return
        self._wholes.add(address.whole)
        self._prefixes.update(_prefixes(address.base))
        if told.is_evidence:
            self.by_host[address.host].append(told)
            self.by_rest[address.rest].append(told)
            for run in _RUN.findall(address.rest):
                self.by_run.setdefault(run, told)

    def has_host(self, host: str) -> bool:
        """Whether something speaks of the host, or of one of the same owner."""
        owner = owner_of(host)
        return any(owner in text for text in self.texts)

    def has_page(self, base: str) -> bool:
        """Whether host and path were told, also without a scheme, as the beginning of a longer address, or
        with a line break in it."""
        if base in self._prefixes or any(_has_address(base, text) for text in self.texts):
            return True
        for text in self.texts[len(self._squeezed) :]:
            self._squeezed.append(_SPACE.sub("", text))
        return any(_has_address(_SPACE.sub("", base), text) for text in self._squeezed)

    def has_whole(self, whole: str) -> bool:
        return whole in self._wholes

    def goes_on(self, beginning: str) -> bool:
        """Whether a told address begins so."""
        return any(beginning in text for text in self.texts)

    def has_token(self, token: str) -> bool:
        """Whether an identifier was told, as it is or with other marks between its digits."""
        if any(stands_in(token, text) for text in self.texts):
            return True
        digits = _DIGITS.findall(token)
        if not digits:
            return False
        for text in self.texts[len(self._digits) :]:
            self._digits.append(_GROUPING.sub("", text))
        return all(
            any(stands_in(part, text) for text in self.texts)
            or (len(part) >= 7 and any(part in text for text in self._digits))
            for part in digits
        )


def owner_of(host: str) -> str:
    """The part of a host that somebody owns: ``shop.example.com`` and ``example.com`` are of the same."""
    labels = host.split(".")
    count = 3 if len(labels) > 2 and len(labels[-1]) == 2 and len(labels[-2]) <= 3 else 2
    return ".".join(labels[-count:])


def _prefixes(base: str) -> Iterator[str]:
    at = base.find("/")
    while at > 0:
        yield base[:at]
        at = base.find("/", at + 1)
    yield base


def _has_address(base: str, text: str) -> bool:
    """Whether ``base`` stands in ``text``, not as a part of a longer word or host."""
    at = text.find(base)
    while at >= 0:
        end = at + len(base)
        before = text[at - 1 : at]
        if not (before.isalnum() or before in {"-", "."} or text[end : end + 1].isalnum()) or (
            text.endswith("www.", 0, at) and not text[end : end + 1].isalnum()
        ):
            return True
        at = text.find(base, at + 1)
    return False


def _is_opaque(text: str) -> bool:
    """Whether a result is empty, or what the agent saw of it is not (all) in the log."""
    if not text.strip():
        return True
    small = text.lower()
    return any(map(small.__contains__, _NOT_SHOWN)) or _OPAQUE.search(text, 0, _MAX_TEXT) is not None


def told_at_first(conversation: Conversation) -> ToldAddresses:
    """What held before the first message."""
    told = ToldAddresses()
    told.add_text("told", "the policy", conversation.policy)
    for name, texts in (("the knowledge", conversation.truths), ("the user", conversation.beliefs)):
        for text in texts:
            told.add_text("told" if name == "the knowledge" else "user", name, text)
    for tool in conversation.tools.values():
        told.add_text("args", "the tool", f"{tool.description} {text_of(tool.parameters or {})}")
    return told


def read_turns(told: ToldAddresses, conversation: Conversation, first: int, last: int) -> None:
    """What users said and tools gave in the turns from ``first`` up to ``last``."""
    calls = [call for call in conversation.calls if first <= call.turn < last]
    for number in range(first, last):
        told.add_text("user", "the user", conversation.turns[number].user)
        for call in calls:
            if call.turn == number:
                told.add_call(call.call, call.index)
