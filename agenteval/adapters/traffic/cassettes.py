"""A run's traffic with models and agents in a file, and that file in place of models and agents.

One JSON object a line: a header, then a line for each question that was answered (or failed), with the
question, so that a miss can say what has changed. No header of a request and no key is in it, and the texts
that must not be shown are masked.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, NamedTuple

from agenteval import __version__
from agenteval.adapters.traffic.placeholders import Placeholders, masking
from agenteval.core.errors import AuthorError, Place, Problem
from agenteval.core.marked_secrets import NONE_MARKED, MarkedSecrets, replaced
from agenteval.core.safe_text import one_line
from agenteval.core.scenario import SampleKey, Scenario
from agenteval.files.plain_files import for_me_alone, read_file
from agenteval.files.redact import MASK, forms_in_place, replacer, within

FORMAT = 1
"""Raised when an old reader would misread a new file."""
_AS_IT_WAS = "as_it_was"
"""Marks an answer that holds by chance what stands for a secret, and no secret."""
_FENCE = re.compile(r"(</?data-)[0-9a-f]{12}>")


class Header(NamedTuple):
    """What a recording was made of: hashes of scenarios and prompts by name, to tell what has changed; and
    what stands in it for secrets."""

    scenarios: Mapping[str, str]
    prompts: Mapping[str, str]
    agenteval: str = __version__
    placeholders: tuple[str, ...] = ()
    marked: Mapping[str, tuple[str, ...]] = {}
    """By agent, what stands for the secrets that its author marked."""


def header_of(scenarios: Iterable[Scenario], prompts: Mapping[str, str]) -> Header:
    return Header({scenario.id: _scenario_hash(scenario) for scenario in scenarios}, dict(prompts))


def _scenario_hash(scenario: Scenario) -> str:
    """Of what a scenario says, wherever it is written."""
    said = scenario.model_dump(mode="json", exclude=set(Scenario.PLACES))
    for tool in said["tools"].values():
        tool.pop("base", None)
    return _hash(json.dumps(said, sort_keys=True))


def _hash(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


class Spot(NamedTuple):
    """Where in a run a question is asked. ``role``: user, judge, dedup or agent; ``sample`` is empty for
    dedup; ``turn`` counts from 0."""

    sample: str
    role: str
    metric: str = ""
    turn: int | None = None

    def __str__(self) -> str:
        who = f"judge of {self.metric}" if self.metric and self.role == "judge" else _WHO[self.role]
        turn = "" if self.turn is None else f", turn {self.turn + 1}"
        return f"the {who} ({self.sample}{turn})" if self.sample else f"the {who}"


_WHO = {"user": "simulated user", "judge": "judge", "dedup": "model that groups issues", "agent": "agent"}


def spot_of(key: SampleKey | None, role: str, metric: str = "", turn: int | None = None) -> Spot:
    return Spot(str(key) if key else "", role, metric, turn)


class Recorder:
    """Writes a recording. The file must not exist: ``start`` makes sure, ``begin`` makes it.

    ``secrets`` do not get into it: see ``placeholders``. Those that an author ``marked`` reach the run as
    they are, which is to find them; what is written has their placeholders. If the file cannot be written any
    more, ``notice`` hears of it once: the run goes on, and its recording is not whole.
    """

    def __init__(
        self, path: Path, *, secrets: Sequence[str] = (), marked: MarkedSecrets = NONE_MARKED
    ) -> None:
        self.path = path
        self._marked = marked
        self.placeholders = Placeholders(each for each in secrets if each not in marked.all)
        self._mask = masking(secrets, self.placeholders.values)
        self._unmarked, self._hidden = _exchanging(marked.all), _exchanging(marked.all, cased=True)
        self._restored = _exchanging(marked.by_placeholder, cased=True)
        self.notice: Callable[[str], None] = lambda _: None
        self._file: IO[str] | None = None
        self._header: Header | None = None
        self._seen: dict[tuple[Spot, str], int] = {}

    def start(self, header: Header) -> None:
        """Raises ``AuthorError`` if the file is there already."""
        if self.path.exists():
            raise self._exists()
        self._header = header

    def begin(self) -> None:
        """Raises ``AuthorError`` if the file cannot be made."""
        assert self._header is not None
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # A half of a surrogate pair becomes its escape, which is JSON.
            self._file = open(  # noqa: SIM115
                self.path, "x", encoding="utf-8", newline="\n", errors="backslashreplace", opener=for_me_alone
            )
        except FileExistsError:
            raise self._exists() from None
        except OSError as error:
            what = f"--record: {self.path} cannot be written: {error.strerror}"
            raise AuthorError(Problem(what)) from None
        head = {"kind": "header", "format": FORMAT, **self._header._asdict()}
        self._line({**head, "stand_ins": self.placeholders.values, "marked": self._marked.placeholders})

    def _exists(self) -> AuthorError:
        remedy = "a recording is never overwritten: remove it, or name another file"
        return AuthorError(Problem(f"--record: {self.path} exists", remedy))

    def digest(self, request: Any) -> str:
        """The identity of a request."""
        return _digest_of(within(request, self._unmarked), self._mask)

    def number(self, spot: Spot, request: str) -> int:
        """How often this was asked here before; said when it is asked, since answers come in any order."""
        seen = self._seen.get((spot, request), 0)
        self._seen[spot, request] = seen + 1
        return seen

    def without_secrets(self, answer: Mapping[str, Any]) -> Mapping[str, Any]:
        """``answer`` itself, if no secret is in it: what is recorded is what the run is told."""
        value = json.loads(json.dumps(answer, ensure_ascii=False))
        hidden: Mapping[str, Any] = self.placeholders.put_in(value)
        return answer if hidden == value else hidden

    def write(self, spot: Spot, request: Any, *, digest: str, number: int, answer: Mapping[str, Any]) -> None:
        place = {name: value for name, value in spot._asdict().items() if value not in ("", None)}
        entry = {"kind": "answer", **place, "hash": digest, "n": number, "request": request, **answer}
        same = within(answer, self._hidden) == answer != within(answer, self._restored)
        self._line({**entry, _AS_IT_WAS: True} if same else entry)

    def _line(self, entry: Mapping[str, Any]) -> None:
        if self._file is None:
            return
        try:
            hidden = self.placeholders.put_in(within(entry, self._hidden))
            self._file.write(json.dumps(hidden, ensure_ascii=False) + "\n")
            self._file.flush()
        except OSError as error:
            self.close()
            self.notice(f"{self.path}: the recording can no longer be written: {error}; it is incomplete")

    def close(self) -> None:
        file, self._file = self._file, None
        if file:
            file.close()


def _exchanging(by: Mapping[str, str], *, cased: bool = False) -> Callable[[str], str]:
    """Puts something else in the place of each text, and in that of its other forms their like. The same with
    ``by`` turned round undoes it."""
    forms = replacer(forms_in_place({text: other for text, other in by.items() if text != other}))
    return lambda text: forms(replaced(text, by, cased=cased)) if by else text


def _digest_of(request: Any, mask: Callable[[str], str]) -> str:
    """The identity of a request. Secrets are masked in it, and so are the marks of fences, which are hashes
    of texts that may hold one."""
    return _hash(_FENCE.sub(r"\1>", mask(json.dumps(request, ensure_ascii=False, sort_keys=True))))


class Player:
    """Answers from a recording. Raises ``AuthorError`` when made if the file is not a recording that this
    version can read. ``secrets``: those of today."""

    def __init__(self, path: Path, *, secrets: Sequence[str] = ()) -> None:
        self.path = path
        self._header, entries = _read(path)
        # What `ReplayEnviron` put in is none.
        self._mask = masking([s for s in secrets if MASK not in s], self._header.placeholders)
        self._unmarked = self._hidden = self._restored = _exchanging({})
        self._changed: tuple[str, ...] = ()
        self._at: dict[Spot, list[dict[str, Any]]] = {}
        self._samples: set[str] = set()
        self._asked: dict[tuple[Spot, str], int] = {}
        for entry in entries:
            spot = Spot(entry.get("sample", ""), entry["role"], entry.get("metric", ""), entry.get("turn"))
            self._at.setdefault(spot, []).append(entry)
            self._samples.add(spot.sample)

    @property
    def marked(self) -> Mapping[str, tuple[str, ...]]:
        """By agent, what stands for the secrets that its author had marked."""
        return self._header.marked

    def know_marked(self, marked: MarkedSecrets) -> None:
        """Those of today, with the placeholders of the recording."""
        self._unmarked, self._hidden = _exchanging(marked.all), _exchanging(marked.all, cased=True)
        self._restored = _exchanging(marked.by_placeholder, cased=True)

    def _place(self, spot: Spot) -> Spot:
        """As it is called in the recording."""
        return spot._replace(sample=self._hidden(spot.sample))

    def _digest(self, request: Any) -> str:
        return _digest_of(within(request, self._unmarked), self._mask)

    def start(self, header: Header) -> None:
        """Compares what is to be run with what was recorded, to be told with a miss."""
        self._changed = tuple(_changes(self._header, header))

    def has(self, spot: Spot, request: Any) -> bool:
        """Whether that was asked there."""
        spot, digest = self._place(spot), self._digest(request)
        return any(entry["hash"] == digest for entry in self._at.get(spot, ()))

    def has_next(self, spot: Spot, request: Any) -> bool:
        """Whether that was asked there once more than it has been answered by now."""
        spot, digest = self._place(spot), self._digest(request)
        number = self._asked.get((spot, digest), 0)
        return any(entry["hash"] == digest and entry["n"] == number for entry in self._at.get(spot, ()))

    def answer(self, spot: Spot, request: Any) -> Mapping[str, Any]:
        """What was answered there, with the secrets that are known in place of what stands for them. Raises
        ``AuthorError`` if that was not asked, or less often."""
        spot, digest = self._place(spot), self._digest(request)
        number = self._asked.get((spot, digest), 0)
        self._asked[spot, digest] = number + 1
        for entry in self._at.get(spot, ()):
            if entry["hash"] == digest and entry["n"] == number:
                answer: Mapping[str, Any] = entry if entry.get(_AS_IT_WAS) else within(entry, self._restored)
                return answer
        raise self._miss(spot, request, is_repeated=number > 0)

    def _miss(self, spot: Spot, request: Any, *, is_repeated: bool) -> AuthorError:
        recorded = self._at.get(spot, [])
        if is_repeated:
            why = "it was asked fewer times"
        elif recorded:
            why = min(
                (_difference(entry["request"], within(request, self._hidden)) for entry in recorded),
                key=_Difference.rank,
            ).text
        elif spot.sample and spot.sample not in self._samples:
            why = "nothing of this conversation was recorded"
        else:
            why = "nothing was asked there"
        changed = f"; changed since the recording: {', '.join(self._changed)}" if self._changed else ""
        what = f"the recording {self.path.name} has no answer of {spot}: {why}{changed}"
        return AuthorError(Problem(what, "record it again with --record, or run without --replay"))

    def close(self) -> None:
        """Nothing is open."""


def _changes(then: Header, now: Header) -> Iterator[str]:
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
    """How a request differs from a recorded one, and how late: the later, the nearer."""

    text: str
    after: int

    def rank(self) -> int:
        return -self.after


def _difference(recorded: Any, now: Any) -> _Difference:
    """The first line, of texts, or the first item that is not as it was."""
    before, after = list(_lines(recorded)), list(_lines(now))
    for number, (name, text) in enumerate(after):
        if number >= len(before):
            return _Difference(f"there is more in {name}: {_quoted(text)}", number)
        if _without_fence(before[number][1]) != _without_fence(text):
            then = _quoted(before[number][1])
            return _Difference(f"in {name}, {_quoted(text)} replaces {then}", number)
    return _Difference("it was longer then", len(after))


def _lines(request: Any) -> Iterator[tuple[str, str]]:
    for name, value in request.items():
        if isinstance(value, str):
            yield from ((f"the {name}", line) for line in value.split("\n"))
        else:
            items = value if isinstance(value, list) else [value]
            yield from ((f"{name} {n + 1}", json.dumps(item, sort_keys=True)) for n, item in enumerate(items))


def _without_fence(text: str) -> str:
    return _FENCE.sub(r"\1>", text)


def _quoted(text: str) -> str:
    return f"'{one_line(text, 120)}'"


def _read(path: Path) -> tuple[Header, list[dict[str, Any]]]:
    try:
        text = read_file(path).decode("utf-8")
    except OSError as error:
        raise AuthorError(Problem(f"--replay: {path} cannot be read: {error.strerror}")) from None
    except UnicodeDecodeError:
        raise _no_recording(path, 1) from None
    entries = []
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        try:
            entry = json.loads(line) if line else None
        except ValueError:
            # The last line of a run that was killed may be torn; what it said is a miss.
            if number == len(lines):
                break
            raise _no_recording(path, number) from None
        if entry is not None:
            entries.append(entry)
    return _checked(path, entries)


def _checked(path: Path, entries: list[Any]) -> tuple[Header, list[dict[str, Any]]]:
    if not entries or not isinstance(entries[0], dict) or entries[0].get("kind") != "header":
        raise _no_recording(path, 1)
    head, *answers = entries
    if head.get("format") != FORMAT:
        what = f"--replay: {path} has format {head.get('format')}, and this version reads {FORMAT}"
        raise AuthorError(Problem(what, "record it again with --record"))
    for number, answer in enumerate(answers, 2):
        if not isinstance(answer, dict) or not {"role", "hash", "n", "request"} <= answer.keys():
            raise _no_recording(path, number)
    names = (head.get("scenarios") or {}, head.get("prompts") or {}, str(head.get("agenteval", "")))
    marked = {str(name): tuple(each) for name, each in (head.get("marked") or {}).items()}
    return Header(*names, tuple(head.get("stand_ins") or ()), marked), answers


def _no_recording(path: Path, line: int) -> AuthorError:
    remedy = "make one with: agenteval run --record FILE"
    return AuthorError(Problem("this is not a recording of a run", remedy, Place(str(path), line)))


class ReplayEnviron(Mapping[str, str]):
    """The environment of a replay, which needs no keys: a variable that is not set stands as a mask where
    the configuration gives no default."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._environ = environ

    def __getitem__(self, name: str) -> str:
        return self._environ.get(name, MASK)

    def get(self, name: str, default: Any = None) -> Any:
        return self._environ.get(name, default)

    def __contains__(self, name: object) -> bool:
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(self._environ)

    def __len__(self) -> int:
        return len(self._environ)
