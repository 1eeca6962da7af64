"""The order in which samples start, by what the latest run showed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agenteval.adapters.traffic.middleware import RecordingOptions
from agenteval.core.event import Event, SampleFinished
from agenteval.core.scenario import Sample, SampleKey, Scenario
from agenteval.planning import sample_order
from agenteval.planning.request import Request
from agenteval.planning.run_preparation import PreparedRun, prepare
from agenteval.planning.sample_order import EarlierResults, order_samples, sort_samples
from agenteval.running.registries import REGISTRIES
from tests.support.kept_runs import keep_run
from tests.support.verdict_runs import CUT, FAIL, LOST, PASS, Played, events_of

REQUEST = {"request": {"cwd": "."}}


def samples_of(*ids: str, agents: Sequence[str] = ("bot",), epochs: int = 1) -> list[Sample]:
    keys = [
        SampleKey(scenario=id, agent=agent, epoch=n) for id in ids for n in range(epochs) for agent in agents
    ]
    return [Sample(key=key, scenario=Scenario(id=key.scenario)) for key in keys]


def sorted_ids(ids: str, known: str, failed: str = "", took_s: Mapping[str, float] | None = None) -> str:
    pairings = {(id, "bot") for id in failed}
    found = sort_samples(samples_of(*ids), EarlierResults(set(known), pairings, took_s or {}))
    return "".join(sample.key.scenario for sample in found)


@pytest.mark.parametrize(
    ("ids", "earlier", "expected"),
    [
        ("abc", {"known": "abc"}, "abc"),
        ("abc", {"known": "abc", "failed": "c"}, "cab"),
        ("abc", {"known": "ac"}, "bac"),
        ("abcd", {"known": "abd", "failed": "d"}, "dcab"),
        ("abc", {"known": "abc", "took_s": {"a": 1, "b": 2, "c": 3}}, "cba"),
        ("abcd", {"known": "abcd", "failed": "bd", "took_s": {"a": 9, "b": 1, "c": 0.5, "d": 2}}, "dbac"),
        ("abc", {"known": "abcx", "failed": "x"}, "abc"),
        ("abc", {"known": ""}, "abc"),
    ],
)
def test_what_failed_then_what_is_new_then_what_took_long(ids: str, earlier: Any, expected: str) -> None:
    assert sorted_ids(ids, **earlier) == expected


def test_the_samples_of_a_scenario_keep_their_order() -> None:
    samples = samples_of("a", "b", agents=("x", "y"), epochs=2)
    earlier = EarlierResults({"a", "b"}, {("b", "y"), ("a", "gone")}, {})
    assert sort_samples(samples, earlier) == [*samples[4:], *samples[:4]]


# ── the latest run ───────────────────────────────────────────────────────────────────────────────

CONFIG = "agent: {name: bot, target: 'agent.py:agent'}\nmetrics: []\nagent_concurrency: 1\n"
SCENARIOS = "".join(
    f"- {{id: {id}, turns: [{id}], expect: {{output: {{contains: [ok]}}}}}}\n" for id in "abcd"
)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "scenarios").mkdir()
    (tmp_path / "scenarios" / "s.yaml").write_text(f"scenarios:\n{SCENARIOS}")
    (tmp_path / "agent.py").write_text("def agent(message):\n    return 'ok'\n")
    (tmp_path / "agenteval.yaml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def timed(events: Sequence[Event], took_s: Mapping[str, Sequence[float]]) -> list[Event]:
    left = {id: list(each) for id, each in took_s.items()}
    return [
        event.model_copy(update={"took_s": left[event.key.scenario].pop(0)})
        if isinstance(event, SampleFinished) and left.get(event.key.scenario)
        else event
        for event in events
    ]


def started_order(*, config: str = "", **request: Any) -> str:
    if config:
        Path("agenteval.yaml").write_text(config, encoding="utf-8")
    prepared = prepare(Request(**request), REGISTRIES)
    order_samples(prepared)
    return "".join(handed_out(prepared))


def handed_out(prepared: PreparedRun) -> list[str]:
    queue, found = prepared.wired.runtime.queue, []
    while sample := queue.next():
        found.append(sample.key.scenario)
    return found


def test_without_an_earlier_run(root: Path) -> None:
    assert started_order() == "abcd"


def test_the_latest_run_decides(root: Path) -> None:
    keep_run(
        root, "r1", events_of({id: [FAIL if id == "b" else PASS] for id in "abcd"}, run=REQUEST), "2026-01-01"
    )
    assert started_order() == "bacd"
    keep_run(root, "r2", events_of({"a": [PASS], "b": [PASS], "c": [LOST]}, run=REQUEST), "2026-01-02")
    assert started_order() == "cdab"
    keep_run(root, "r3", events_of({id: [FAIL] for id in "d"}), "2026-01-03")  # recorded conversations
    assert started_order() == "cdab"


def test_the_mean_duration_of_the_epochs_that_are_over(root: Path) -> None:
    epochs: dict[str, list[Played | None]] = {"a": [PASS, PASS], "b": [PASS, PASS], "c": [PASS], "d": [PASS]}
    took_s = {"a": [1, 3], "b": [0, 9], "c": [3], "d": [2.5]}
    keep_run(root, "r1", timed(events_of(epochs, run=REQUEST), took_s))
    assert started_order() == "bcda"


def test_what_was_cut_short_did_not_pass_and_has_no_duration(root: Path) -> None:
    epochs: dict[str, list[Played | None]] = {"a": [PASS], "b": [CUT], "c": [FAIL], "d": [None]}
    keep_run(root, "r1", timed(events_of(epochs, run=REQUEST), {"b": [99], "c": [1]}))
    assert started_order() == "cbda"


@pytest.mark.parametrize(
    ("config", "request_", "is_ordered"),
    [
        (CONFIG, {}, True),
        (CONFIG.replace("1\n", "3\n"), {}, True),
        (CONFIG.replace("1\n", "4\n"), {}, False),
        (CONFIG.replace("1\n", "4\n"), {"fail_fast": True}, True),
    ],
)
def test_the_journal_is_read_only_if_the_order_matters(
    root: Path, monkeypatch: pytest.MonkeyPatch, config: str, request_: Any, is_ordered: bool
) -> None:
    keep_run(root, "r1", events_of({"d": [FAIL]}, run=REQUEST))
    read: list[Path] = []
    find = sample_order.find_latest_run
    monkeypatch.setattr(sample_order, "find_latest_run", lambda root: read.append(root) or find(root))
    assert started_order(config=config, **request_) == ("dabc" if is_ordered else "abcd")
    assert bool(read) is is_ordered


BREAKS = ["oops\n", '{"type":"sample_finished"}\n', '{"type":"notice","level":"loud","text":""}\n']


@pytest.mark.parametrize("text", BREAKS)
def test_a_journal_that_cannot_be_read_is_ignored(root: Path, text: str) -> None:
    folder = keep_run(root, "r1", events_of({"d": [FAIL]}, run=REQUEST))
    assert started_order() == "dabc"
    with (folder / "events.jsonl").open("a") as file:
        file.write(text)
    assert started_order() == "abcd"


def test_a_journal_that_is_too_large_is_ignored(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sample_order._MAX_BYTES == 64 * 1024 * 1024
    folder = keep_run(root, "r1", events_of({"d": [FAIL]}, run=REQUEST))
    size = (folder / "events.jsonl").stat().st_size
    monkeypatch.setattr(sample_order, "_MAX_BYTES", size)
    assert started_order() == "dabc"
    monkeypatch.setattr(sample_order, "_MAX_BYTES", size - 1)
    assert started_order() == "abcd"


def test_a_replay_keeps_the_order_of_the_files(root: Path) -> None:
    keep_run(root, "r1", events_of({"d": [FAIL]}, run=REQUEST))
    prepared = prepare(Request(), REGISTRIES)
    replayed = replace(prepared.suite.request, recording=RecordingOptions(replay=root / "tape"))
    order_samples(replace(prepared, suite=replace(prepared.suite, request=replayed)))
    assert handed_out(prepared) == list("abcd")
