"""Pack the conversations of a run, and what judges were asked about them, for the page.

Conversations are JSON, one per line, in blocks of about one megabyte. A block is compressed (gzip) and
encoded (base85); a browser unpacks it when one of its conversations is opened. The results of tools, which
are often repeated, precede the conversations of a block: each is there once, and similar ones are neighbors,
because gzip finds repetitions within 32 kB only. The requests to judges about the conversations of a block
are a block of their own, in which each shared string is stored once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from agenteval.core.sample_report import SampleReport, ScenarioReport
from agenteval.core.scenario import SampleKey
from agenteval.core.score import Score
from agenteval.core.trajectory import Step
from agenteval.files.judge_request_log import StoredRequests
from agenteval.reporters.html.packing import DisclosureMask, pack, redact
from agenteval.reporters.html.scenario_rows import ListedEpoch, ListedScenario
from agenteval.reporters.results.document import Groups, finding_groups, sample_shape, to_json, value_to_json
from agenteval.reporters.words.facts import Facts
from agenteval.reporters.words.failure import sample_violations
from agenteval.reporters.words.places import shown_place, shown_places
from agenteval.reporters.words.rerun_commands import (
    repro,
    rescore_sample_command,
    sample_name,
    score_options,
    show_command_of,
)
from agenteval.reporters.words.score_cells import is_low, threshold_of
from agenteval.reporters.words.transcript_lines import how_it_ended

BLOCK = 1_000_000
"""The number of characters after which a block ends."""
MOST_BYTES = 28_000_000
"""The size of the packed conversations above which conversations that passed are left out."""
_SMALL, _SMALL_BYTES, _BYTES_EACH = 1_000, 3_700_000, 2_700
"""The budget of a small run, which grows with each further conversation."""


@dataclass
class PackedConversations:
    """The conversations of a page."""

    blocks: list[str] = field(default_factory=list)
    """The blocks of conversations."""
    requests: list[str] = field(default_factory=list)
    """The requests to judges, with one block for each of the first blocks of conversations; empty if there
    are none."""
    places: dict[SampleKey, tuple[int, int]] = field(default_factory=dict)
    """The block of each conversation, and its line in that block."""
    left_out: int = 0
    """The number of conversations that were left out because of the size of the page."""
    requests_left_out: int = 0
    """The number of conversations whose requests to judges were left out because of the size of the page."""

    @property
    def size(self) -> int:
        """The size of the conversations in bytes."""
        return sum(map(len, self.blocks))

    def add(self, block: Mapping[SampleKey, _Record]) -> None:
        """Add a block: a line with the number of results, the results, and the conversations."""
        self.places |= {key: (len(self.blocks), line) for line, key in enumerate(block)}
        results = sorted({result for record in block.values() for result in record.results})
        lines = {result: line for line, result in enumerate(results)}
        records = (record.with_results(lines) for record in block.values())
        self.blocks.append(pack("\n".join((str(len(results)), *results, *records))))

    def add_requests(self, stored: StoredRequests, mask: DisclosureMask) -> None:
        """Add the requests about the first conversations, as many as there is room for. Conversations that
        failed come first, so that their requests are the last to be left out."""
        room = most_bytes(len(self.places)) - self.size
        by_block: dict[int, list[SampleKey]] = {}
        for key, (number, _) in self.places.items():
            by_block.setdefault(number, []).append(key)
        for keys in by_block.values():
            packed = pack(redact(mask.mask_json(_requests_of(keys, stored)))) if room > 0 else ""
            room -= len(packed)
            if room <= 0:
                self.requests_left_out += sum(key in stored.by_sample for key in keys)
            else:
                self.requests.append(packed)


def most_bytes(conversations: int) -> int:
    """Return the size above which requests to judges are left out: 4 MB for a page with 1,000 conversations
    and 30 MB for one with 10,000, less what the rest of the page takes."""
    return min(_SMALL_BYTES + max(0, conversations - _SMALL) * _BYTES_EACH, MOST_BYTES)


def pack_conversations(
    facts: Facts,
    rows: Iterable[ListedScenario],
    requests: StoredRequests | None,
    mask: DisclosureMask,
    *,
    root: str,
) -> PackedConversations:
    """Pack the conversations in the order of the list."""
    packed, writer = PackedConversations(), _RecordWriter(facts, mask, root, facts.report.run.run_id)
    block: dict[SampleKey, _Record] = {}
    size = 0
    for scenario, epoch in ((row.report, epoch) for row in rows for epoch in row.epochs):
        if epoch.sample is None:
            continue
        if epoch.is_fine and packed.size >= MOST_BYTES:
            packed.left_out += 1
            continue
        block[epoch.key] = writer.write(scenario, epoch, epoch.sample)
        size += block[epoch.key].size
        if size >= BLOCK:
            packed.add(block)
            block, size = {}, 0
    if block:
        packed.add(block)
    if requests and requests.by_sample:
        packed.add_requests(requests, mask)
    return packed


class _Record(NamedTuple):
    """A conversation as JSON, and the results of its tool calls as JSON, in the order of the calls."""

    text: str
    results: tuple[str, ...]

    @property
    def size(self) -> int:
        return len(self.text) + sum(map(len, self.results))

    def with_results(self, lines: Mapping[str, int]) -> str:
        """Return the JSON with the lines of the results."""
        numbers = ",".join(str(lines[result]) for result in self.results)
        return f'{self.text[:-1]},"results":[{numbers}]}}'


_RESULTS = {"turns": {"__all__": {"tool_calls": {"__all__": {"result"}}}}}


class _RecordWriter:
    """Writes conversations as JSON. ``sample`` in a record is the entry of the JSON report; the other fields
    are what a reader of the page needs besides."""

    def __init__(self, facts: Facts, mask: DisclosureMask, root: str, run: str) -> None:
        self._mask = mask
        self._report, self._decision = facts.report, facts.decision
        self._columns = {column.name: column for column in facts.columns}
        self._groups: Groups = finding_groups(facts.report)
        self._options = score_options(facts.report.run.command)
        self._root, self._run = root, run

    def write(self, scenario: ScenarioReport, epoch: ListedEpoch, sample: SampleReport) -> _Record:
        sample = sample.in_full
        shape = sample_shape(scenario, epoch.key, sample, self._decision, self._groups.get(epoch.key, {}))
        more = self._more(scenario, epoch, sample)
        text = f'{{"sample":{to_json(shape, exclude=_RESULTS)},{value_to_json(more)[1:]}'
        results = [value_to_json(call.result) for turn in shape.turns for call in turn.tool_calls]
        return _Record(self._masked(text), tuple(map(self._masked, results)))

    def _masked(self, text: str) -> str:
        return redact(self._mask.mask_json(text))

    def _more(self, scenario: ScenarioReport, epoch: ListedEpoch, sample: SampleReport) -> dict[str, Any]:
        spec, key = scenario.scenario, epoch.key
        several = self._report.has_several_agents
        violations = sample_violations(sample, epoch.decided, spec.where())
        return {
            "scenario": spec.id,
            "agent": scenario.agent,
            "where": shown_places((sample.record or spec.where(), spec.row), self._root),
            "repeat": rescore_sample_command(key, sample, self._options)
            or repro(scenario, self._report.run, several_agents=several),
            "show": show_command_of(
                [self._run] if self._run else [], sample_name(key), scenario.agent if several else ""
            ),
            "end": "" if sample.record else how_it_ended(sample),
            "note": (spec.note or "").strip(),
            "rules": [
                {
                    "name": each.name,
                    "detail": each.detail,
                    "where": shown_place(each.where, self._root) if each.where else "",
                    "verdict": each.verdict.value,
                    "turn": each.turn,
                    "fingerprints": list(each.fingerprints),
                }
                for each in violations
            ],
            "steps": _steps(sample),
            "low": [[turn, score.metric] for turn, score in _scores(sample) if self._is_low(scenario, score)],
        }

    def _is_low(self, scenario: ScenarioReport, score: Score) -> bool:
        return is_low(score, self._columns.get(score.metric), threshold_of(scenario, score.metric))


def _scores(sample: SampleReport) -> Iterator[tuple[int | None, Score]]:
    for index, turn in enumerate(sample.turns):
        yield from ((index, score) for score in turn.scores)
    yield from ((None, score) for score in sample.scores)


def _steps(sample: SampleReport) -> list[list[dict[str, Any]] | None]:
    """Return the steps of each turn with the number of their tool calls, or ``None`` for a turn of a single
    step, which the sample describes completely."""
    return [
        [_step(step, turn.turn.answer) for step in turn.turn.steps] if len(turn.turn.steps) > 1 else None
        for turn in sample.turns
    ]


def _step(step: Step, answer: str) -> dict[str, Any]:
    """Return a step. Its text is ``None`` if it is the answer, which the sample contains."""
    text = None if step.text == answer else step.text or ""
    return {"text": text, "agent": step.agent, "calls": len(step.tool_calls), "ms": step.latency_ms}


def _requests_of(keys: Sequence[SampleKey], requests: StoredRequests) -> str:
    """Return the requests about some conversations as JSON: ``texts`` are the strings that they consist of,
    and ``asked`` are the requests of each conversation."""
    asked = [[_without_key(line) for line in requests.by_sample.get(key, ())] for key in keys]
    wanted: dict[str, str | list[str]] = {}
    for line in (line for lines in asked for line in lines):
        _collect(line["asked"]["system"], requests.texts, wanted)
        for part in line["asked"]["prompt"]:
            _collect(part, requests.texts, wanted)
    return value_to_json({"texts": wanted, "asked": asked})


def _without_key(line: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in line.items() if name != "key"}


def _collect(name: str, texts: Mapping[str, str | list[str]], wanted: dict[str, str | list[str]]) -> None:
    if name in wanted:
        return
    text = wanted[name] = texts.get(name, "")
    if not isinstance(text, str):
        for piece in text:
            _collect(piece, texts, wanted)
