"""Keys of recorded conversations: each has one of its own, whatever its record says; and its outcome."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agenteval.core.recorded_conversation import RecordedConversation
from agenteval.core.scenario import SampleKey, Scenario, Tool
from agenteval.core.trajectory import StopReason, Trajectory
from agenteval.importers.identity import AGENT, FieldPaths, Naming
from agenteval.importers.records import ImportedConversation
from agenteval.messages.log_entry import UnreadableRecord
from tests.support.recorded import read
from tests.support.verdict_runs import PASS, events_of

TALK = read([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}])


def imported(id: str = "", agent: str = "", **more: Any) -> ImportedConversation:
    fields = {**more, "record": more.get("record", {})}
    return replace(TALK, id=id, agent=agent, **fields)


def key_of(recorded: RecordedConversation) -> tuple[str, str, int, str]:
    key = recorded.key
    return key.scenario, key.agent, key.epoch, key.variant


def keys(naming: Naming, *conversations: ImportedConversation) -> list[tuple[str, str, int, str]]:
    return [key_of(naming.name_conversation(each, f"log:{n}")) for n, each in enumerate(conversations, 1)]


@pytest.mark.parametrize(
    ("paths", "options"),
    [
        (FieldPaths(), {}),
        (FieldPaths(scenario="a"), {"--scenario-from": "a"}),
        (
            FieldPaths(scenario="a", epoch="b", outcome=""),
            {"--scenario-from": "a", "--epoch-from": "b", "--outcome-from": ""},
        ),
    ],
)
def test_the_options_that_were_given(paths: FieldPaths, options: dict[str, str]) -> None:
    assert paths.options == options


def test_a_conversation_is_named_by_its_id_or_its_place() -> None:
    assert keys(Naming(), imported("a", "bot"), imported()) == [("a", "bot", 0, ""), ("log:2", AGENT, 0, "")]


def test_an_id_that_is_used_twice_gets_a_number_and_is_told() -> None:
    naming = Naming()
    found = [naming.name_conversation(imported("a"), f"log:{n}") for n in range(3)]
    assert [each.key.scenario for each in found] == ["a", "a#2", "a#3"]
    assert [len(each.notes) for each in found] == [0, 1, 1]


def test_a_number_that_is_an_id_itself_is_passed_over() -> None:
    assert [key[0] for key in keys(Naming(), imported("a#2"), imported("a"), imported("a"))] == [
        "a#2",
        "a",
        "a#2#2",
    ]


def test_agents_have_ids_of_their_own() -> None:
    assert [key[:2] for key in keys(Naming(), imported("a", "x"), imported("a", "y"))] == [
        ("a", "x"),
        ("a", "y"),
    ]


def test_conversations_of_a_known_scenario_are_its_epochs() -> None:
    naming = Naming(scenarios=frozenset({"a"}))
    assert keys(naming, imported("a"), imported("a"), imported("b"), imported("b")) == [
        ("a", AGENT, 0, ""),
        ("a", AGENT, 1, "a#2"),
        ("b", AGENT, 0, ""),
        ("b#2", AGENT, 0, ""),
    ]


@pytest.mark.parametrize(
    ("value", "scenario"),
    [("refund", "refund"), (7, "7"), (7.0, "7"), (7.5, "7.5"), (0, "0"), (True, "true"), (False, "false")],
)
def test_the_scenario_at_a_path(value: Any, scenario: str) -> None:
    naming = Naming(FieldPaths(scenario="labels.task"))
    records = [
        imported("a", record={"labels": {"task": value}}),
        imported("b", record={"labels": {"task": value}}),
    ]
    assert keys(naming, *records) == [(scenario, AGENT, 0, "a"), (scenario, AGENT, 1, "b")]


@pytest.mark.parametrize(
    "record", [{}, {"task": None}, {"task": ""}, {"task": " \t"}, {"task": []}, {"task": {"id": 1}}]
)
def test_without_a_scenario_at_the_path_a_conversation_is_its_own(record: dict[str, Any]) -> None:
    found = Naming(FieldPaths(scenario="task")).name_conversation(imported("a", record=record), "log:1")
    assert key_of(found) == ("a", AGENT, 0, "")
    assert len(found.notes) == 1


def test_a_scenario_that_is_the_id_needs_no_variant() -> None:
    naming = Naming(FieldPaths(scenario="task"))
    assert keys(naming, imported("a", record={"task": "a"})) == [("a", AGENT, 0, "")]


@pytest.mark.parametrize(
    ("value", "epoch", "notes"),
    [
        (0, 0, 0),
        (3, 3, 0),
        (3.0, 3, 0),
        ("3", 3, 0),
        (" 3 ", 3, 0),
        ("999999999", 999999999, 0),
        ("9999999999", 0, 1),
        (-1, 0, 1),
        (1.5, 0, 1),
        (float("inf"), 0, 1),
        (float("nan"), 0, 1),
        (True, 0, 1),
        ("-1", 0, 1),
        ("1.0", 0, 1),
        ("", 0, 1),
        ([], 0, 1),
        (None, 0, 1),
    ],
)
def test_the_epoch_at_a_path(value: Any, epoch: int, notes: int) -> None:
    naming = Naming(FieldPaths(epoch="trial"))
    found = naming.name_conversation(imported("a", record={"trial": value}), "log:1")
    assert (found.key.epoch, len(found.notes)) == (epoch, notes)


def test_an_epoch_that_is_missing_follows_the_highest_and_an_odd_one_is_told_apart() -> None:
    naming = Naming(FieldPaths(scenario="task", epoch="trial"))
    trials: list[dict[str, Any]] = [{"trial": 2}, {}, {"trial": 0}, {"trial": "x"}]
    found = [
        naming.name_conversation(imported(f"{n}", record={"task": "t", **trial}), "log:1")
        for n, trial in enumerate(trials)
    ]
    assert [each.key.epoch for each in found] == [2, 3, 0, 4]
    (missing,), (odd,) = found[1].notes, found[3].notes
    assert ("whole number" in missing, "whole number" in odd) == (False, True)


# ── what it says of itself ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("path", "record", "outcome", "passed"),
    [
        (None, {}, None, ()),
        ("ok", {"ok": True}, None, (True,)),
        ("ok", {"ok": 1.0}, None, (True,)),
        ("ok", {"ok": "true"}, None, (True,)),
        ("ok", {"ok": 0.9}, None, (False,)),
        ("ok", {"ok": "yes"}, None, (False,)),
        ("r.0", {"r": [1]}, None, (True,)),
        ("ok", {}, None, (None,)),
        ("ok", {"ok": None}, None, (None,)),
        (None, {"ok": True}, False, (False,)),
        (None, {}, True, (True,)),
        ("ok", {"ok": False}, True, (False,)),
    ],
)
def test_the_outcome(path: str | None, record: dict[str, Any], outcome: Any, passed: tuple[Any, ...]) -> None:
    more = {} if outcome is None else {"outcome": outcome}
    found = Naming(FieldPaths(outcome=path)).name_conversation(imported("a", record=record, **more), "log:1")
    assert tuple(check.passed for check in found.checks) == passed
    assert all((check.name, check.where) == ("outcome", "log:1") for check in found.checks)
    assert all((path or "outcome") in check.detail for check in found.checks)
    assert len(found.notes) == (passed == (None,))


def test_an_importer_that_does_not_know_the_outcome() -> None:
    found = Naming().name_conversation(imported("a", outcome=None), "log:1")
    assert [check.passed for check in found.checks] == [None]


def test_a_long_outcome_is_shown_by_its_beginning() -> None:
    found = Naming(FieldPaths(outcome="ok")).name_conversation(imported(record={"ok": "x" * 100}), "log:1")
    assert found.checks[0].detail.count("x") == 79


@pytest.mark.parametrize(
    ("own", "given", "policy"),
    [("", "", ""), ("", "Be brief.", "Be brief."), ("Be kind.", "Be brief.", "Be kind.")],
)
def test_what_a_record_brings_for_its_scenario(own: str, given: str, policy: str) -> None:
    tools = {"find": Tool()}
    parsed = TALK.parsed._replace(orphans=("a fact",))
    talk = imported("a", policy=own, tools=tools, parsed=parsed, notes=("told",))
    found = Naming(policy=given).name_conversation(talk, "log:1")
    scenario = found.scenario
    assert (scenario.id, scenario.name, scenario.source) == ("a", "a", "log:1")
    assert (scenario.policy, scenario.tools, scenario.facts) == (policy, tools, ("a fact",))
    assert (found.where, found.notes) == ("log:1", ("told",))
    assert found.trajectory.turns == TALK.parsed.trajectory.turns


@pytest.mark.parametrize(("is_partial", "allowed"), [(True, True), (False, None)])
def test_empty_answers_are_allowed_where_the_log_is_partial(is_partial: bool, allowed: Any) -> None:
    talk = imported("a", parsed=TALK.parsed._replace(is_partial=is_partial))
    assert Naming().name_conversation(talk, "log:1").scenario.expect.allow_empty is allowed


def test_why_a_conversation_ended() -> None:
    whole, lost = (Naming().name_conversation(imported(lost=why), "log:1") for why in ("", "status 503"))
    assert whole.trajectory.stop
    assert lost.trajectory.stop
    assert (whole.trajectory.stop.reason, whole.trajectory.stop.detail) == (StopReason.RECORDED, "log:1")
    assert lost.trajectory.stop.reason is StopReason.INFRASTRUCTURE
    assert "log:1" in lost.trajectory.stop.detail
    assert "status 503" in lost.trajectory.stop.detail


# ── what has no conversation, and what is replayed ───────────────────────────────────────────────


@pytest.mark.parametrize("hides_rest", [True, False])
def test_an_unreadable_record_has_a_place_in_reports(hides_rest: bool) -> None:
    naming = Naming()
    naming.name_conversation(imported("a", "bot"), "log:1")
    found = naming.name_unreadable(UnreadableRecord("log:2", "not JSON", hides_rest))
    assert key_of(found) == ("log:2", "bot", 0, "")  # beside those of the agent before it
    assert not found.is_readable
    assert found.trajectory.stop
    assert found.trajectory.stop.hides_rest is hides_rest
    assert "log:2" in found.trajectory.stop.detail
    assert "not JSON" in found.trajectory.stop.detail
    assert (found.scenario.id, found.scenario.name, found.scenario.source, found.where) == ("log:2",) * 4
    again = naming.name_unreadable(UnreadableRecord("log:2", "nor this"))
    assert again.key.scenario == "log:2#2"
    assert naming.name_conversation(imported("a"), "log:3").key.agent == AGENT


def replayed(run_id: str | None, variant: str = "", epoch: int = 0) -> RecordedConversation:
    run = events_of({"a": [PASS]})[0].model_copy(update={"run_id": run_id}) if run_id else None
    key = SampleKey(scenario="a", agent="bot", epoch=epoch, variant=variant)
    return RecordedConversation(key, Scenario(id="a", name="a"), Trajectory(), "log:1", run=run)  # type: ignore[arg-type]


def test_a_replayed_sample_keeps_its_key_unless_another_run_has_it() -> None:
    naming = Naming()
    samples = [
        replayed("r1"),
        replayed("r1", epoch=1),
        replayed("r2"),
        replayed("r3", "de"),
        replayed("r4", "de"),
        replayed("r2"),
        replayed(None),
    ]
    assert [naming.name_replayed(each).key.variant for each in samples] == [
        "",
        "",
        "r2",
        "de",
        "de r4",
        "r2#2",
        "",
    ]
