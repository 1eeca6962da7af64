"""Matches recorded conversations by id with the scenarios in a file, which contain the author's
expectations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from agenteval.core.plurals import join_first
from agenteval.core.recorded_conversation import RecordedConversation
from agenteval.core.scenario import Scenario, ScriptedTurn, Tool
from agenteval.core.score import MISSING_TURNS, Check
from agenteval.core.trajectory import Trajectory, Turn
from agenteval.core.world_state import StateSpec

_MOST_NAMED = 5


class ExpectedScenarios:
    """Scenarios, keyed by id, with a record of which of them have matched a conversation."""

    def __init__(self, scenarios: Iterable[Scenario] = ()) -> None:
        self._scenarios = {scenario.id: scenario for scenario in scenarios}
        self._met: set[str] = set()
        self._strangers: dict[str, None] = {}
        self._tools: tuple[Mapping[str, Tool], str, dict[str, Tool]] | None = None

    @property
    def scenarios(self) -> tuple[Scenario, ...]:
        return tuple(self._scenarios.values())

    def __len__(self) -> int:
        return len(self._scenarios)

    def join_scenario(self, recorded: RecordedConversation) -> RecordedConversation:
        """Add the expectations, facts and tool marks of the matching scenario to the conversation."""
        if not self._scenarios or not recorded.is_readable:
            return recorded
        expected = self._scenarios.get(recorded.key.scenario)
        if expected is None:
            if len(self._strangers) < 10_000:
                self._strangers[recorded.key.scenario] = None
            return recorded
        self._met.add(expected.id)
        recorded_scenario = recorded.scenario
        expect = expected.expect
        if recorded_scenario.expect.allow_empty and expect.allow_empty is None:
            expect = expect.model_copy(update={"allow_empty": True})
        scenario = expected.model_copy(
            update={
                "tools": self._joined_tools(recorded_scenario.tools, expected),
                "state": _joined_state(recorded_scenario, expected),
                "facts": expected.facts + recorded_scenario.facts,
                "policy": recorded_scenario.policy,
                "expect": expect,
            }
        )
        trajectory, unsaid = _with_script(recorded.trajectory, expected)
        checks = recorded.checks + tuple(_missing_turn_check(expected, index) for index in unsaid)
        return replace(recorded, scenario=scenario, trajectory=trajectory, checks=checks)

    @property
    def is_unmatched(self) -> bool:
        """True if there are scenarios and none of them has matched a conversation."""
        return bool(self._scenarios) and not self._met

    @property
    def unmatched(self) -> dict[str, str]:
        """The locations of the scenarios that matched no conversation, keyed by id."""
        return {name: each.source for name, each in self._scenarios.items() if name not in self._met}

    @property
    def source(self) -> str:
        """The location of the first scenario, or an empty string if there is none."""
        return next((scenario.source for scenario in self._scenarios.values()), "")

    @property
    def ids(self) -> frozenset[str]:
        return frozenset(self._scenarios)

    def unmatched_warnings(self) -> Iterable[str]:
        """Yield warnings about scenarios that matched no conversation, and about conversations that matched
        no scenario."""
        if self.unmatched:
            unmatched = _count_with_names(list(self.unmatched), "scenario")
            yield f"{unmatched} in --scenarios did not match any conversation"
        if self._strangers:
            strangers = _count_with_names(list(self._strangers), "scenario")
            yield f"{strangers} of the conversations not found in --scenarios: nothing was expected there"

    def _joined_tools(self, recorded: Mapping[str, Tool], expected: Scenario) -> dict[str, Tool]:
        known = self._tools
        if known is None or known[0] is not recorded or known[1] != expected.id:
            self._tools = known = (recorded, expected.id, _join_tools(recorded, expected.tools))
        return known[2]


def _joined_state(recorded: Scenario, expected: Scenario) -> StateSpec | None:
    """Return the author's state with the tables that the world had in the conversation, because no code of
    the author is called for scoring."""
    found = recorded.state.snapshot if recorded.state and expected.world == recorded.world else {}
    if not found:
        return expected.state
    if expected.state is None:
        return StateSpec(snapshot=found, base=expected.base)
    return expected.state.model_copy(update={"snapshot": found})


def _join_tools(recorded: Mapping[str, Tool], expected: Mapping[str, Tool]) -> dict[str, Tool]:
    """Combine the recorded tools with the author's tools. Recorded descriptions and schemas take precedence
    over the author's; the author's marks take precedence over recorded hints. A tool that a mock answered in
    the conversation keeps its mock, as the author writes it now; other mocks answered nothing, and are
    dropped."""
    joined = {}
    for name in dict.fromkeys((*recorded, *expected)):
        recorded_tool, expected_tool = recorded.get(name, Tool()), expected.get(name, Tool())
        marked = expected_tool if expected_tool.is_marked else recorded_tool
        words = {
            "description": recorded_tool.description or expected_tool.description,
            "parameters": recorded_tool.parameters or expected_tool.parameters,
        }
        marks = {"reads": marked.reads, "writes": marked.writes, "destructive": marked.destructive}
        mock = expected_tool if expected_tool.is_mocked else recorded_tool
        answered = mock if recorded_tool.is_mocked else Tool()
        joined[name] = answered.model_copy(update={**words, **marks})
    return joined


def _with_script(trajectory: Trajectory, expected: Scenario) -> tuple[Trajectory, list[int]]:
    """Link each turn to the entry in ``turns`` that contains its message, preserving the order. Also return
    the indexes of the entries that have expectations but do not occur in the conversation."""
    entries = [
        (index, entry) for index, entry in enumerate(expected.turns or ()) if isinstance(entry, ScriptedTurn)
    ]
    if not entries or any(turn.script is not None for turn in trajectory.all_turns):
        return trajectory, []
    turns: list[Turn] = []
    unsaid: list[tuple[int, ScriptedTurn]] = []
    for turn in trajectory.turns:
        at = next(
            (
                n
                for n, (_, e) in enumerate(entries)
                if _normalized_words(e.user) == _normalized_words(turn.user)
            ),
            None,
        )
        if at is not None:
            unsaid += entries[:at]
            turn = turn.model_copy(update={"script": entries[at][0]})
            entries = entries[at + 1 :]
        turns.append(turn)
    unsaid += entries
    missed = [index for index, entry in unsaid if not entry.expect.is_vacuous]
    return trajectory.model_copy(update={"turns": tuple(turns)}), missed


def _normalized_words(message: str) -> list[str]:
    return message.casefold().split()


def _missing_turn_check(expected: Scenario, index: int) -> Check:
    problem = f"turn {index + 1} of the scenario was not sent, or not answered"
    return Check(
        name=MISSING_TURNS,
        passed=None,
        detail=f"{problem}, so its expectations were not checked",
        where=expected.where(f"turns.{index}"),
    )


def _count_with_names(names: list[str], noun: str) -> str:
    return f"{noun}{'s' if len(names) > 1 else ''} {join_first(names, _MOST_NAMED)}"
