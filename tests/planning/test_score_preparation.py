"""What ``agenteval score`` loads, and which conversations it reads."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from agenteval.core.errors import AuthorError, NothingSelectedError
from agenteval.core.score import Severity
from agenteval.core.trajectory import ToolVisibility
from agenteval.files.journal import event_to_json
from agenteval.importers.logs import FieldPaths, ImportWarnings
from agenteval.planning.request import JudgeChoice
from agenteval.planning.score_preparation import (
    RecordedSuite,
    ScoreRequest,
    find_score_sources,
    list_score_inputs,
    load_score,
    make_reader,
    read_conversations,
    resolve_score,
    wire_score,
)
from agenteval.running.registries import REGISTRIES
from agenteval.verdict.run_gates import RUN_GATES
from tests.support.verdict_runs import PASS, events_of

RECORD = {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]}
EXPECTED = "scenarios: [{id: a, turns: [hi], expect: {output: {contains: hello}}}]\n"
METRIC = JudgeChoice(metric=("helpfulness",))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "log.jsonl").write_text(f"{json.dumps(RECORD)}\n")
    (tmp_path / "s.yaml").write_text(EXPECTED)
    monkeypatch.chdir(tmp_path)
    for name in ("AGENTEVAL_MODEL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def loaded(written: str = "", **request: Any) -> RecordedSuite:
    Path("agenteval.yaml").write_text(f"agent: {{name: bot, target: 'a:b'}}\n{written}", encoding="utf-8")
    return load_score(ScoreRequest(files=("log.jsonl",), **request), REGISTRIES)


# ── whether anything is judged ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("written", "request_", "judged"),
    [
        ("", {}, False),
        ("models: {default: ollama/m}\n", {}, False),  # found automatically, so not meant
        ("models: {default: ollama/m}\n", {"config": "agenteval.yaml"}, True),
        ("", {"config": "agenteval.yaml"}, False),
        ("models: {judge: ollama/m}\n", {}, True),
        ("models: {user: ollama/m}\n", {"config": "agenteval.yaml"}, False),
        ("", {"must_judge": True}, True),
        ("", {"judging": METRIC}, True),
        ("", {"judging": JudgeChoice(model="ollama/m")}, True),
        ("models: {judge: ollama/m}\n", {"judging": JudgeChoice(no_judge=True)}, False),
        ("", {"judging": JudgeChoice(no_judge=True, metric=("helpfulness",))}, False),
    ],
)
def test_judging_is_not_started_unasked(folder: Path, written: str, request_: Any, judged: bool) -> None:
    found = loaded(written, **request_)
    assert found.settings.policy.no_judge is not judged
    no_judge = "judging" in request_ and request_["judging"].no_judge
    assert bool(found.settings.metrics.selected) is (judged or no_judge)


def test_a_model_from_the_environment_is_meant(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTEVAL_MODEL", "ollama/m")
    assert loaded().settings.policy.no_judge is False


THRESHOLDS = "thresholds: {helpfulness: 3}\n"


@pytest.mark.parametrize(
    ("written", "request_", "dropped", "kept"),
    [
        (THRESHOLDS, {}, True, False),
        (THRESHOLDS, {"judging": METRIC}, False, True),
        (THRESHOLDS, {"judging": JudgeChoice(no_judge=True)}, False, True),
        ("", {}, False, False),
    ],
)
def test_thresholds_that_nobody_can_judge(
    folder: Path, written: str, request_: Any, dropped: bool, kept: bool
) -> None:
    found = loaded(written, **request_)
    assert (found.dropped_thresholds, bool(found.settings.policy.thresholds)) == (dropped, kept)


def test_thresholds_of_expected_scenarios(folder: Path) -> None:
    (folder / "s.yaml").write_text(EXPECTED.replace("turns:", "thresholds: {helpfulness: 3}, turns:"))
    assert loaded(scenarios=("s.yaml",)).dropped_thresholds is True
    assert loaded(scenarios=("s.yaml",), judging=METRIC).dropped_thresholds is False


def test_expected_scenarios_and_rates(folder: Path) -> None:
    found = loaded(scenarios=("s.yaml",), max_rates={Severity.HIGH: 0.1})
    assert [each.id for each in found.expected_scenarios.scenarios] == ["a"]
    assert found.settings.policy.max_rates == {Severity.HIGH: 0.1}
    assert list(loaded().expected_scenarios.scenarios) == []


# ── judges ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("written", "request_", "judges"),
    [
        ("", {}, 0),
        ("models: {judge: ollama/m}\n", {"judging": METRIC}, 4),  # and two for criteria, one for faults
        ("models: {judge: ollama/m}\n", {"judging": JudgeChoice(no_judge=True)}, 0),
        ("metrics: []\nmodels: {judge: ollama/m}\n", {}, 3),
    ],
)
def test_the_judges(folder: Path, written: str, request_: Any, judges: int) -> None:
    found = wire_score(loaded(written, **request_))
    assert len(found.judges) == judges
    assert found.resources.no_judge is (judges == 0)


@pytest.mark.parametrize(
    ("written", "request_"),
    [
        ("", {"judging": METRIC}),
        ("detectors: [leaks]\n", {}),
        ("models: {judge: ollama/m}\nbudget: {max_cost: 1}\n", {"judging": METRIC}),
    ],
)
def test_mistakes_that_are_found_before_anything_is_judged(folder: Path, written: str, request_: Any) -> None:
    with pytest.raises(AuthorError):
        wire_score(loaded(written, **request_))


def test_criteria_need_a_model(folder: Path) -> None:
    (folder / "s.yaml").write_text("scenarios: [{id: a, turns: [hi], expect: {criteria: [x]}}]\n")
    with pytest.raises(AuthorError):
        wire_score(loaded("metrics: []\n", scenarios=("s.yaml",), must_judge=True))
    assert wire_score(loaded("metrics: []\n", must_judge=True)).judges == ()


# ── sources ──────────────────────────────────────────────────────────────────────────────────────


def sources(root: Path, *files: str) -> tuple[list[str], int]:
    warnings: list[str] = []
    with ExitStack() as stack:
        found = find_score_sources(
            ScoreRequest(files=files), root, stack, warn=warnings.append, warn_waiting=warnings.append
        )
        return [source.path.name for source in found], len(warnings)


def test_sources_without_duplicates(folder: Path) -> None:
    (folder / "more").mkdir()
    (folder / "more" / "b.jsonl").write_text(f"{json.dumps(RECORD)}\n")
    assert sources(folder, "log.jsonl") == (["log.jsonl"], 0)
    names, warnings = sources(folder, "log.jsonl", "log.jsonl")
    assert (names, warnings) == (["log.jsonl"], 1)
    assert sources(folder, "log.jsonl", "more")[0] == ["log.jsonl", "b.jsonl"]
    with pytest.raises(AuthorError):
        sources(folder, "gone.jsonl")


def test_runs_are_sources_by_their_ids(folder: Path) -> None:
    for name in ("r1", "r2"):
        run = folder / ".agenteval" / "runs" / name
        run.mkdir(parents=True)
        events = events_of({"a": [PASS]}, run={"request": {"paths": []}})
        (run / "events.jsonl").write_text("".join(f"{event_to_json(each)}\n" for each in events))
    for name in ("r1", "r2", "latest", "previous"):
        assert sources(folder, name) == (["events.jsonl"], 0)
    assert len(sources(folder, "r1", "r2")[0]) == 2
    (folder / "r1").write_text(f"{json.dumps(RECORD)}\n")
    with pytest.raises(AuthorError):
        sources(folder, "r3")


# ── the plan ─────────────────────────────────────────────────────────────────────────────────────

GATES = (
    "gates: {pass_rate: {at_least: 0.9, reject_below: 0.7}, no_regression: {margin: 0.1}, robustness: 0.9}\n"
)


@pytest.mark.parametrize(
    ("paths", "unapplied"),
    [
        (FieldPaths(), {"pass_rate", "no_regression"}),
        (FieldPaths(scenario="id"), {"no_regression"}),
    ],
)
def test_gates_that_records_can_never_satisfy(folder: Path, paths: FieldPaths, unapplied: set[str]) -> None:
    plan = resolve_score(loaded(GATES, paths=paths), [])
    assert set(plan.unapplied) == unapplied
    left = set(plan.suite.gates.configured_gates)
    assert left == {"pass_rate", "no_regression", "robustness"} - unapplied
    assert left <= {gate.name for gate in RUN_GATES}


@pytest.mark.parametrize(
    ("calls", "visibility"),
    [
        ("", {}),
        ("calls: all", {"": ToolVisibility.ALL}),
        ("calls: unseen", {"": ToolVisibility.DECLARED_UNSEEN}),
    ],
)
def test_the_declared_visibility_holds_for_every_agent(folder: Path, calls: str, visibility: Any) -> None:
    Path("c.yaml").write_text(
        f"agent: {{name: bot, target: 'a:b'{', ' if calls else ''}{calls}}}\n", encoding="utf-8"
    )
    suite = load_score(ScoreRequest(config="c.yaml"), REGISTRIES)
    found = resolve_score(suite, []).visibility
    assert {name: each.calls for name, each in found.items()} == visibility


# ── conversations ────────────────────────────────────────────────────────────────────────────────


def read(text: str, written: str = "", **request: Any) -> list[bool]:
    """Whether each conversation can be read."""
    Path("log.jsonl").write_text(text, encoding="utf-8")
    suite = loaded(written, **request)
    with ExitStack() as stack:
        found = find_score_sources(
            suite.request, Path.cwd(), stack, warn=lambda _: None, warn_waiting=lambda _: None
        )
        reader = make_reader(suite, found, ImportWarnings())
        return [each.is_readable for each in read_conversations(suite, reader, wire_score(suite))]


GOOD, BAD = json.dumps(RECORD), '{"messages": 5}'


@pytest.mark.parametrize(
    ("lines", "readable"),
    [
        ([GOOD], [True]),
        ([GOOD, GOOD], [True, True]),
        ([BAD, GOOD, BAD], [False, True, False]),
        ([GOOD, BAD], [True, False]),
    ],
)
def test_all_conversations_are_read_if_one_can_be(
    folder: Path, lines: list[str], readable: list[bool]
) -> None:
    assert read("".join(f"{line}\n" for line in lines)) == readable


@pytest.mark.parametrize(("number", "problems"), [(1, 1), (5, 5), (6, 6), (20, 6)])
def test_the_first_records_that_cannot_be_read(folder: Path, number: int, problems: int) -> None:
    with pytest.raises(AuthorError) as error:
        read(f"{BAD}\n" * number)
    found = error.value.problems
    assert len(found) == problems
    assert found[0].place is not None
    assert (found[0].place.path.endswith("log.jsonl"), found[0].place.line) == (True, 1)
    assert (f" {number - 5} " in found[-1].what) is (number > 5)


def test_no_conversation_is_found_or_selected(folder: Path) -> None:
    with pytest.raises(NothingSelectedError) as error:
        read("\n")
    assert "log.jsonl" in str(error.value)
    with pytest.raises(NothingSelectedError) as error:
        read(f"{GOOD}\n", texts=("none",))
    assert "-s none" in str(error.value)


def test_the_files_that_are_read(folder: Path) -> None:
    suite = loaded(scenarios=("s.yaml",))
    with ExitStack() as stack:
        found = find_score_sources(
            suite.request, folder, stack, warn=lambda _: None, warn_waiting=lambda _: None
        )
        names = [path.name for path in list_score_inputs(suite, found)]
    assert names[:3] == ["log.jsonl", "s.yaml", "agenteval.yaml"]
    standard = RecordedSuite(suite.settings, ScoreRequest(files=("-",)), suite.expected_scenarios)
    assert Path("/dev/stdin") in list_score_inputs(standard, [])
    assert Path("/dev/stdin") not in list_score_inputs(suite, [])
