"""What earlier runs showed of the visibility of an agent's calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agenteval.core.config import Config
from agenteval.core.event import CallsSeen, Event, RunStarted
from agenteval.core.scenario import SampleKey, Scenario
from agenteval.core.tool_visibility import VisibilitySource
from agenteval.core.trajectory import CallEvidence, ToolVisibility
from agenteval.files.journal import event_to_json
from agenteval.planning import earlier_visibility as earlier
from agenteval.planning.earlier_visibility import earlier_visibility
from tests.support.plans import plan_for

REPORTED, ASKED = CallEvidence.REPORTED, CallEvidence.ASKED


def configured(target: str = "a:b", **more: Any) -> Config:
    return Config.model_validate({"agent": {"name": "bot", "target": target}, **more})


def write_run(
    root: Path, day: int, evidence: CallEvidence | None = REPORTED, *, config: Config | None = None
) -> Path:
    config = config or configured()
    key, scenario = SampleKey(scenario="a", agent="bot"), Scenario(id="a")
    begun = RunStarted(
        run_id=f"r{day}",
        started_at=f"2026-11-{day:02}T00:00:00Z",
        config=config,
        plan=plan_for(config, [scenario], [key]),
        scenarios=(scenario,),
    )
    events: list[Event] = [begun]
    if evidence:
        events.append(CallsSeen(agent="bot", evidence=evidence))
    folder = root / ".agenteval" / "runs" / f"r{day}"
    folder.mkdir(parents=True)
    path = folder / "events.jsonl"
    path.write_text("".join(f"{event_to_json(event)}\n" for event in events))
    return path


def names(root: Path, *agents: str, config: Config | None = None) -> list[str]:
    return list(earlier_visibility(root, config or configured(), agents or ("bot",)))


def test_calls_that_were_all_visible(tmp_path: Path) -> None:
    write_run(tmp_path, 1)
    (known,) = earlier_visibility(tmp_path, configured(), ["bot"]).values()
    assert (known.calls, known.source) == (ToolVisibility.ALL, VisibilitySource.EARLIER_RUN)


def test_only_for_the_agents_that_are_asked_for(tmp_path: Path) -> None:
    write_run(tmp_path, 1)
    assert names(tmp_path, "other") == []
    assert names(tmp_path, "other", "bot") == ["bot"]


def test_nothing_is_known_without_runs_or_evidence(tmp_path: Path) -> None:
    assert names(tmp_path) == []
    write_run(tmp_path, 1, None)
    assert names(tmp_path) == []


def test_calls_that_were_only_partly_visible(tmp_path: Path) -> None:
    passthrough = configured(unmocked_tools="passthrough")
    write_run(tmp_path, 1, ASKED, config=passthrough)
    assert names(tmp_path, config=passthrough) == []


def test_an_agent_that_was_changed_is_another_agent(tmp_path: Path) -> None:
    write_run(tmp_path, 1)
    assert names(tmp_path, config=configured("a:c")) == []
    write_run(tmp_path, 2, config=configured("a:c"))
    assert names(tmp_path, config=configured("a:c")) == ["bot"]
    assert names(tmp_path) == ["bot"]


@pytest.mark.parametrize(("later", "known"), [(0, True), (2, True), (3, False)])
def test_only_the_latest_three_runs_are_read(tmp_path: Path, later: int, known: bool) -> None:
    write_run(tmp_path, 1)
    for day in range(2, 2 + later):
        write_run(tmp_path, day, None)
    assert bool(names(tmp_path)) is known


@pytest.mark.parametrize("text", ["", "oops\n", "[]\n", '{"type":"notice","level":"error","text":"x"}\n'])
def test_a_run_that_cannot_be_read_shows_nothing(tmp_path: Path, text: str) -> None:
    write_run(tmp_path, 2).write_text(text)
    assert names(tmp_path) == []
    write_run(tmp_path, 1)
    assert names(tmp_path) == ["bot"]


def test_a_journal_that_is_a_folder_shows_nothing(tmp_path: Path) -> None:
    (tmp_path / ".agenteval" / "runs" / "r1" / "events.jsonl").mkdir(parents=True)
    assert names(tmp_path) == []


def test_a_journal_that_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert earlier._MAX_BYTES == 64 * 1024 * 1024
    size = write_run(tmp_path, 1).stat().st_size
    monkeypatch.setattr(earlier, "_MAX_BYTES", size)
    assert names(tmp_path) == ["bot"]
    monkeypatch.setattr(earlier, "_MAX_BYTES", size - 1)
    assert names(tmp_path) == []
