"""Assigns each recorded conversation its key: scenario, agent, epoch and variant. Also reads its outcome."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from agenteval.core.recorded_conversation import RecordedConversation
from agenteval.core.scenario import Expectation, SampleKey, Scenario
from agenteval.core.score import OUTCOME, Check
from agenteval.core.trajectory import Stop, StopReason, Trajectory
from agenteval.core.value import copy_with
from agenteval.importers.records import ImportedConversation
from agenteval.messages.log_entry import UnreadableRecord
from agenteval.messages.record_paths import MISSING, find_value, is_success

AGENT = "recorded"
"""The agent's name if the record contains none."""


_SCENARIO = Scenario(id="", name="", tools={}, facts=(), policy="", source="")
_PARTIAL = _SCENARIO.model_copy(update={"expect": Expectation(allow_empty=True)})


@dataclass(frozen=True, slots=True)
class FieldPaths:
    """The dotted paths of fields in a record, or ``None`` for a field that is not read."""

    scenario: str | None = None
    epoch: str | None = None
    outcome: str | None = None

    @property
    def options(self) -> Mapping[str, str]:
        """The paths that were specified, keyed by command-line option."""
        paths = {
            "--scenario-from": self.scenario,
            "--epoch-from": self.epoch,
            "--outcome-from": self.outcome,
        }
        return {option: path for option, path in paths.items() if path is not None}


@dataclass
class Naming:
    """Assigns each conversation a unique key. Only the names are kept in memory."""

    paths: FieldPaths = field(default_factory=FieldPaths)
    policy: str = ""
    """The agent's instructions, used for records that do not contain any."""
    scenarios: frozenset[str] = frozenset()
    """Ids that several conversations may share, as epochs of the same scenario."""
    _ids: dict[tuple[str, str], int] = field(default_factory=dict)
    _epochs: dict[tuple[str, str], int] = field(default_factory=dict)
    _keys: set[tuple[str, str, int, str]] = field(default_factory=set)
    _agent: str = AGENT

    def name_conversation(self, imported: ImportedConversation, where: str) -> RecordedConversation:
        """Return the conversation together with its key, its outcome and any warnings."""
        notes = list(imported.notes)
        self._agent = imported.agent or AGENT
        name = self._unique_name(imported.id or where, notes)
        scenario_id = self._scenario_id(imported.record, notes)
        if not scenario_id:
            scenario_id = imported.id if imported.id in self.scenarios else name
        variant = name if scenario_id != name else ""
        epoch = self._epoch(imported.record, (scenario_id, self._agent), notes)
        trajectory = imported.parsed.trajectory
        stop = Stop(reason=StopReason.RECORDED, detail=where)
        if imported.lost:
            stop = Stop(reason=StopReason.INFRASTRUCTURE, detail=f"{where}: {imported.lost}")
        return RecordedConversation(
            key=SampleKey(scenario=scenario_id, agent=self._agent, epoch=epoch, variant=variant),
            scenario=self._scenario(imported, scenario_id, where),
            trajectory=Trajectory(turns=trajectory.turns, stop=stop, unfinished=trajectory.unfinished),
            where=where,
            checks=self._outcome(imported, where, notes),
            notes=tuple(notes),
        )

    def name_unreadable(self, entry: UnreadableRecord) -> RecordedConversation:
        """Return a placeholder conversation for an unreadable record, so that reports list it."""
        key = SampleKey(scenario=self._unique_name(entry.where, []), agent=self._agent)
        stop = Stop(
            reason=StopReason.UNREADABLE,
            detail=f"{entry.where}: {entry.reason}",
            hides_rest=entry.hides_rest,
        )
        scenario = Scenario(id=key.scenario, name=key.scenario, source=entry.where)
        return RecordedConversation(key, scenario, Trajectory(stop=stop), entry.where)

    def name_replayed(self, recorded: RecordedConversation) -> RecordedConversation:
        """Keep the key of a replayed sample. If a sample from a different run already has this key, append
        the id of the replayed run."""
        key = recorded.key
        if _identity(key) in self._keys and recorded.run:
            variant = " ".join(filter(None, (key.variant, recorded.run.run_id)))
            key = key.model_copy(update={"variant": self._unique_name(variant, [])})
        self._keys.add(_identity(key))
        return replace(recorded, key=key)

    def _scenario(self, imported: ImportedConversation, scenario_id: str, where: str) -> Scenario:
        fields = {
            "id": scenario_id,
            "name": scenario_id,
            "tools": imported.tools,
            "facts": imported.parsed.orphans,
            "policy": imported.policy or self.policy,
            "source": where,
        }
        return copy_with(_PARTIAL if imported.parsed.is_partial else _SCENARIO, fields)

    def _unique_name(self, name: str, notes: list[str]) -> str:
        key = (self._agent, name)
        times = self._ids[key] = self._ids.get(key, 0) + 1
        if times == 1:
            return name
        notes.append("an ID is used twice, so a number was added to distinguish the conversations")
        return self._unique_name(f"{name}#{times}", [])

    def _scenario_id(self, record: Any, notes: list[str]) -> str:
        if self.paths.scenario is None:
            return ""
        value = find_value(record, self.paths.scenario)
        is_blank = isinstance(value, str) and not value.strip()
        if value is MISSING or value is None or isinstance(value, dict | list) or is_blank:
            notes.append(
                f"no scenario at {self.paths.scenario}, so the conversation counts as its own scenario"
            )
            return ""
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        return value if isinstance(value, str) else json.dumps(value)

    def _epoch(self, record: Any, scenario: tuple[str, str], notes: list[str]) -> int:
        following = self._epochs.get(scenario, 0)
        epoch = following
        if self.paths.epoch is not None:
            value = find_value(record, self.paths.epoch)
            found = _parse_count(value)
            if found is None:
                path = self.paths.epoch
                is_there = value is not MISSING and value is not None
                what = f"{path} is not a whole number of at least 0" if is_there else f"no epoch at {path}"
                notes.append(f"{what}, so epochs were numbered in file order")
            else:
                epoch = found
        self._epochs[scenario] = max(following, epoch + 1)
        return epoch

    def _outcome(self, imported: ImportedConversation, where: str, notes: list[str]) -> tuple[Check, ...]:
        """Return the check for the outcome, which is read from the configured path or, by default, from the
        importer."""
        path, value = self.paths.outcome, imported.outcome
        if path is not None:
            value = find_value(imported.record, path)
        elif value is MISSING:
            return ()
        path = path or "outcome"
        if value is MISSING or value is None:
            notes.append(f"no outcome at {path}, so it is unknown whether the conversation succeeded")
            return (Check(name=OUTCOME, passed=None, detail=f"no outcome at {path}", where=where),)
        shown = json.dumps(value, ensure_ascii=False)[:80]
        return (Check(name=OUTCOME, passed=is_success(value), detail=f"{path} is {shown}", where=where),)


def _identity(key: SampleKey) -> tuple[str, str, int, str]:
    return key.scenario, key.agent, key.epoch, key.variant


def _parse_count(value: Any) -> int | None:
    """Parse a non-negative integer, which may be written as a string. Return ``None`` for any other value."""
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 10:
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0 or value != value // 1:
        return None
    return int(value)
