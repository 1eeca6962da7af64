"""Record and replay a run's traffic with models and agents, using a cassette (VCR-style recording).

The file contains one JSON object per line (JSONL): a header, followed by a line for each question that was
answered or failed. The question is included so that a miss can report what has changed. The file contains
neither request headers nor keys, and secrets are masked."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, TypeAlias

from pydantic import BaseModel

from agenteval import __version__
from agenteval.adapters.traffic.answer_stores import hash_of
from agenteval.adapters.traffic.placeholders import Placeholders, make_masker
from agenteval.core.errors import AuthorError, Place, Problem
from agenteval.core.marked_secrets import NONE_MARKED, MarkedSecrets, replace_secrets
from agenteval.core.safe_text import one_line
from agenteval.core.scenario import SampleKey, Scenario
from agenteval.files.redaction import MASK, mask_value, replacement_forms, replacer
from agenteval.files.regular_files import private_opener, read_file, wrap_read_errors
from agenteval.verdict.resumption import scenario_content

CASSETTE_FORMAT = 1
"""The version of the file format. It is increased whenever an older reader would misread a new file."""
_HASH = 16
"""The number of characters of a hash to keep, which is enough to distinguish the questions of one run."""
_AS_IT_WAS = "as_it_was"
"""The key that marks an answer that contains the text of a placeholder by chance but no secret."""
_FENCE = re.compile(r"(</?data-)[0-9a-f]{12}>")


class CassetteHeader(BaseModel):
    """The first line of a cassette."""

    kind: Literal["header"]
    format: int | None = None
    agenteval: str = ""
    scenarios: dict[str, str] = {}
    """Hashes of the scenarios, keyed by name and used to detect changes."""
    prompts: dict[str, str] = {}
    """Hashes of the prompts, keyed by name and used to detect changes."""
    stand_ins: tuple[str, ...] = ()
    """The placeholders for secrets."""
    marked: dict[str, tuple[str, ...]] = {}
    """The placeholders for the secrets that the author marked, keyed by agent."""


class CassetteEntry(BaseModel, extra="allow"):
    """A question and its answer. The answer is stored in additional keys."""

    sample: str = ""
    role: str
    metric: str = ""
    turn: int | None = None
    hash: str
    n: int
    """The number of times that the question had previously been asked at this position."""
    request: dict[str, Any]


def header_of(scenarios: Iterable[Scenario], prompts: Mapping[str, str]) -> CassetteHeader:
    texts = {scenario.id: json.dumps(scenario_content(scenario), sort_keys=True) for scenario in scenarios}
    hashes = {name: hash_of(text)[:_HASH] for name, text in texts.items()}
    return CassetteHeader(
        kind="header", format=CASSETTE_FORMAT, agenteval=__version__, scenarios=hashes, prompts=dict(prompts)
    )


class CassettePosition(NamedTuple):
    """The position in a run at which a question is asked."""

    sample: str
    """The sample, or an empty string for deduplication."""
    role: str
    """The role: ``user``, ``judge``, ``dedup`` or ``agent``."""
    metric: str = ""
    turn: int | None = None
    """The index of the turn, starting at 0."""

    def __str__(self) -> str:
        who = f"{self.metric} judge" if self.metric and self.role == "judge" else _WHO[self.role]
        turn = "" if self.turn is None else f", turn {self.turn + 1}"
        return f"the {who} ({self.sample}{turn})" if self.sample else f"the {who}"


_WHO = {"user": "simulated user", "judge": "judge", "dedup": "issue-grouping model", "agent": "agent"}


REPLAYED_SAMPLE: dict[str, Any] = {"messages": [], "again": True}
"""Recorded instead of a request if a conversation ended with an error and was repeated.

Requests that occur again in the second attempt are assigned the next number."""


def position_of(
    key: SampleKey | None, role: str, metric: str = "", turn: int | None = None
) -> CassettePosition:
    return CassettePosition(str(key) if key else "", role, metric, turn)


class _Secrets:
    """The placeholders for the secrets that an author ``marked``, and request hashes that do not depend on
    secrets. ``mask`` hides all other secrets and their placeholders."""

    def __init__(self, mask: Callable[[str], str], marked: MarkedSecrets) -> None:
        self._mask = mask
        self._unmarked = _replacing(marked.all)
        self.hide = _replacing(marked.all, cased=True)
        self.restore = _replacing(marked.by_placeholder, cased=True)

    def hash_of(self, request: Any) -> str:
        """Return the hash of a request.

        The IDs of fences are omitted, because they are hashes of texts that may contain a secret."""
        text = json.dumps(mask_value(request, self._unmarked), ensure_ascii=False, sort_keys=True)
        return hash_of(_without_fences(self._mask(text)))[:_HASH]


def _replacing(by: Mapping[str, str], *, cased: bool = False) -> Callable[[str], str]:
    """Return a function that replaces each string in ``by``, and each of its encoded forms, with its
    counterpart.

    With ``by`` inverted, the returned function reverses the replacement."""
    forms = replacer(replacement_forms({text: other for text, other in by.items() if text != other}))
    return lambda text: forms(replace_secrets(text, by, cased=cased)) if by else text


AnswerRecorder: TypeAlias = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Records an answer and returns it in the form that the run uses. An answer without secrets is returned
unchanged."""


class CassetteRecorder:
    """Writes a cassette. The file must not exist yet: ``start`` checks this, and ``begin`` creates the file.

    ``secrets`` are not written; see ``placeholders``. Secrets that an author ``marked`` are returned to the
    run unchanged, because the run searches for them; the file contains their placeholders. If the file can no
    longer be written, ``notify`` is called once, and the run continues with an incomplete recording."""

    def __init__(
        self,
        path: Path,
        *,
        secrets: Sequence[str] = (),
        marked: MarkedSecrets = NONE_MARKED,
        notify: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.path = path
        self._placeholders = Placeholders(each for each in secrets if each not in marked.all)
        self._secrets = _Secrets(make_masker(secrets, self._placeholders.values), marked)
        self._marked = marked.placeholders
        self._notify = notify
        self._file: IO[str] | None = None
        self._header: CassetteHeader | None = None
        self._asked: Counter[tuple[CassettePosition, str]] = Counter()

    def start(self, header: CassetteHeader) -> None:
        """Store the header. Raise ``AuthorError`` if the file already exists."""
        if os.path.exists(self.path):
            raise self._exists()
        self._header = header

    def begin(self) -> None:
        """Create the file and write the header. Raise ``AuthorError`` if the file cannot be written."""
        assert self._header is not None
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # A lone surrogate becomes its escape, which is valid JSON.
            self._file = open(  # noqa: SIM115
                self.path,
                "x",
                encoding="utf-8",
                newline="\n",
                errors="backslashreplace",
                opener=private_opener,
            )
        except FileExistsError:
            raise self._exists() from None
        except OSError as error:
            what = f"--record: {self.path} cannot be written: {error.strerror}"
            raise AuthorError(Problem(what)) from None
        head = self._header.model_dump(exclude={"stand_ins", "marked"})
        self._line({**head, "stand_ins": self._placeholders.values, "marked": self._marked})

    def _exists(self) -> AuthorError:
        remedy = "remove it, or use another file; a recording is never overwritten"
        return AuthorError(Problem(f"--record: {self.path} already exists", remedy))

    def ask(self, spot: CassettePosition, request: Any) -> AnswerRecorder:
        """Assign a number to a request, and return the recorder for its answer.

        The number is assigned at once, because answers may arrive in any order."""
        digest = self._secrets.hash_of(request)
        number = self._asked[spot, digest]
        self._asked[spot, digest] += 1

        def note(answer: Mapping[str, Any]) -> Mapping[str, Any]:
            place = {name: value for name, value in spot._asdict().items() if value not in ("", None)}
            entry = {"kind": "answer", **place, "hash": digest, "n": number, "request": request, **answer}
            hidden, restored = (
                mask_value(answer, each) for each in (self._secrets.hide, self._secrets.restore)
            )
            self._line({**entry, _AS_IT_WAS: True} if hidden == answer != restored else entry)
            value = json.loads(json.dumps(answer, ensure_ascii=False))
            seen: Mapping[str, Any] = self._placeholders.substitute(value)
            return answer if seen == value else seen

        return note

    def _line(self, entry: Mapping[str, Any]) -> None:
        if self._file is None:
            return
        try:
            hidden = self._placeholders.substitute(mask_value(entry, self._secrets.hide))
            self._file.write(json.dumps(hidden, ensure_ascii=False) + "\n")
            self._file.flush()
        except OSError as error:
            self.close()
            self._notify(f"{self.path}: the recording can no longer be written: {error}; it is incomplete")

    def close(self) -> None:
        file, self._file = self._file, None
        if file:
            file.close()


class CassettePlayer:
    """Replays answers from a cassette.

    ``secrets`` and ``marked`` contain the current secrets; those in ``marked`` are mapped to the placeholders
    in the recording."""

    def __init__(
        self, cassette: Cassette, *, secrets: Sequence[str] = (), marked: MarkedSecrets = NONE_MARKED
    ) -> None:
        self.path = cassette.path
        self._header = cassette.header
        # The masks of `ReplayEnviron` are not secrets.
        known = [each for each in secrets if MASK not in each]
        self._secrets = _Secrets(make_masker(known, cassette.header.stand_ins), marked)
        self._changed: tuple[str, ...] = ()
        self._answers: dict[tuple[CassettePosition, str, int], Mapping[str, Any]] = {}
        self._requests: dict[CassettePosition, list[Any]] = {}
        self._asked: Counter[tuple[CassettePosition, str]] = Counter()
        for entry in cassette.entries:
            spot = CassettePosition(entry.sample, entry.role, entry.metric, entry.turn)
            self._answers.setdefault((spot, entry.hash, entry.n), entry.model_extra or {})
            self._requests.setdefault(spot, []).append(entry.request)

    def start(self, header: CassetteHeader) -> None:
        """Compare the scenarios and prompts of this run with those of the recording, so that a miss can
        report the changes."""
        self._changed = tuple(_describe_changes(self._header, header))

    def has_next(self, spot: CassettePosition, request: Any) -> bool:
        """Check whether the recording contains another answer to this request."""
        return self._next_key(spot, request) in self._answers

    def _next_key(self, spot: CassettePosition, request: Any) -> tuple[CassettePosition, str, int]:
        """Return the key of the next recorded answer to the request."""
        spot = spot._replace(sample=self._secrets.hide(spot.sample))
        digest = self._secrets.hash_of(request)
        return spot, digest, self._asked[spot, digest]

    def find(self, spot: CassettePosition, request: Any) -> Mapping[str, Any] | None:
        """Return the recorded answer, with placeholders replaced by the known secrets.

        Return ``None`` if the request was not recorded, or if all of its recorded answers have been used."""
        key = self._next_key(spot, request)
        self._asked[key[:2]] += 1
        answer = self._answers.get(key)
        as_it_is = answer is None or answer.get(_AS_IT_WAS)
        found: Mapping[str, Any] | None = answer if as_it_is else mask_value(answer, self._secrets.restore)
        return found

    def answer(self, spot: CassettePosition, request: Any) -> Mapping[str, Any]:
        """Return the recorded answer as ``find`` does. Raise ``AuthorError`` if the recording contains no
        answer."""
        if (found := self.find(spot, request)) is None:
            raise self._miss(spot, request)
        return found

    def _miss(self, spot: CassettePosition, request: Any) -> AuthorError:
        spot, digest, _ = self._next_key(spot, request)
        recorded = self._requests.get(spot, [])
        if (spot, digest, 0) in self._answers:
            why = "it was called fewer times"
        elif recorded:
            now = mask_value(request, self._secrets.hide)
            why = max((_difference(then, now) for then in recorded), key=lambda each: each.after).text
        elif spot.sample and all(spot.sample != each.sample for each in self._requests):
            why = "this conversation was not recorded"
        else:
            why = "no call was recorded there"
        changed = f"; changed since the recording: {', '.join(self._changed)}" if self._changed else ""
        what = f"the recording {self.path.name} has no answer from {spot}: {why}{changed}"
        return AuthorError(Problem(what, "record it again with --record, or run without --replay"))


def _describe_changes(then: CassetteHeader, now: CassetteHeader) -> Iterator[str]:
    for kind, before, after in (
        ("scenario", then.scenarios, now.scenarios),
        ("prompt", then.prompts, now.prompts),
    ):
        for name, digest in after.items():
            if name in before and before[name] != digest:
                yield f"{kind} {name}"
    if then.agenteval != now.agenteval:
        yield f"agenteval ({then.agenteval}, now {now.agenteval})"


class _Difference(NamedTuple):
    """A difference between a request and a recorded request."""

    text: str
    after: int
    """The number of equal parts before the first difference. A higher number means that the two requests are
    more similar."""


def _difference(recorded: Any, now: Any) -> _Difference:
    """Find the first line of a string, or the first list item, that differs."""
    before, after = list(_lines(recorded)), list(_lines(now))
    for number, (name, text) in enumerate(after):
        if number >= len(before):
            return _Difference(f"{name} has more: {_quoted(text)}", number)
        then = before[number][1]
        if _without_fences(then) != _without_fences(text):
            return _Difference(f"in {name}, {_quoted(text)} replaces {_quoted(then)}", number)
    return _Difference("the recorded request was longer", len(after))


def _lines(request: Any) -> Iterator[tuple[str, str]]:
    for name, value in request.items():
        if isinstance(value, str):
            yield from ((f"the {name}", line) for line in value.split("\n"))
        else:
            items = value if isinstance(value, list) else [value]
            yield from ((f"{name} {n + 1}", json.dumps(item, sort_keys=True)) for n, item in enumerate(items))


def _without_fences(text: str) -> str:
    return _FENCE.sub(r"\1>", text)


def _quoted(text: str) -> str:
    return f"'{one_line(text, 120)}'"


class Cassette(NamedTuple):
    """A cassette that has been read."""

    path: Path
    header: CassetteHeader
    entries: Sequence[CassetteEntry]


def read_cassette(path: Path) -> Cassette:
    """Read a cassette file. Raise ``AuthorError`` if this version of agenteval cannot read the file as a
    cassette."""
    with wrap_read_errors(f"--replay: {path}", None):
        lines = read_file(path).split(b"\n")
    header: CassetteHeader | None = None
    entries: list[CassetteEntry] = []
    for number, line in enumerate(lines, 1):
        try:
            if header is None:
                header = _header(path, json.loads(line))
            elif line:
                entries.append(CassetteEntry.model_validate(json.loads(line)))
        except (ValueError, RecursionError):
            # The last line of a killed run may be torn; its answer is then a miss.
            if header and number == len(lines):
                break
            remedy = "create one with `agenteval run --record FILE`"
            what = "this is not a run recording"
            raise AuthorError(Problem(what, remedy, Place(str(path), number))) from None
    assert header is not None
    return Cassette(path, header, entries)


def _header(path: Path, line: Any) -> CassetteHeader:
    header = CassetteHeader.model_validate(line)
    if header.format != CASSETTE_FORMAT:
        what = f"--replay: {path} has format {header.format}, but this version supports {CASSETTE_FORMAT}"
        raise AuthorError(Problem(what, "record it again with --record"))
    return header


class ReplayEnviron(dict[str, str]):
    """The environment for a replay, which requires no API keys.

    Unset variables have a mask as their value, unless the configuration specifies a default."""

    def __missing__(self, name: str) -> str:
        return MASK

    def __contains__(self, name: object) -> bool:
        return True
