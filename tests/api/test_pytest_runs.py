"""Which outcome of a run belongs to which item of pytest, and what an item says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agenteval.adapters.traffic.middleware import RecordingOptions
from agenteval.api import pytest_runs
from agenteval.api.pytest_runs import (
    FIXTURE_AGENT,
    InconclusiveScenarioError,
    ItemOutcome,
    LoadedItems,
    PytestRun,
    RunNotStartedError,
    RunOutcomes,
    check,
    exit_code_of,
    is_worker,
    item_name,
    run_id_of,
    summary_lines,
)
from agenteval.core.config import Config
from agenteval.core.decision import GateRow, ScenarioDecision, Violation
from agenteval.core.errors import AuthorError, Problem
from agenteval.core.marked_secrets import MarkedSecrets
from agenteval.core.scenario import Sample, SampleKey, Scenario
from agenteval.core.score import Verdict
from agenteval.planning.judge_setup import Metrics
from agenteval.planning.plan_resolution import suite_policy
from agenteval.planning.request import Request
from agenteval.planning.suite import Settings, Suite
from agenteval.running.stored_runs import DecidedRun
from agenteval.verdict.gates import decide
from tests.support.verdict_runs import FAIL, LOST, PASS, UNSURE, report_of

A, B = ("a", "bot"), ("b", "bot")
PASSED, FAILED, OPEN = Verdict.PASSED, Verdict.FAILED, Verdict.INCONCLUSIVE


def decided(epochs: Any, *, changed: dict[str, Any] | None = None, **more: Any) -> DecidedRun:
    """``changed``: what is changed in the decision."""
    report = report_of(epochs, **more)
    return DecidedRun(report, replace(decide(report), **(changed or {})), Path("/p/.agenteval/runs/r"))


def of_epochs(run: DecidedRun, count: int, pairing: Any = A) -> list[ItemOutcome]:
    """The outcomes of the items that pytest makes of the epochs."""
    outcomes = RunOutcomes(run)
    return [outcomes.outcome(pairing, epoch, is_last=epoch == count - 1) for epoch in range(count)]


# ── the outcome of an item ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("played", "whole", "each"),
    [
        ([PASS], PASSED, [PASSED]),
        ([FAIL], FAILED, [FAILED]),
        ([UNSURE], OPEN, [OPEN]),
        ([LOST], OPEN, [OPEN]),
        ([PASS, FAIL, PASS], FAILED, [PASSED, FAILED, PASSED]),
        ([FAIL, PASS], FAILED, [FAILED, PASSED]),
        ([PASS, UNSURE, FAIL], FAILED, [PASSED, OPEN, FAILED]),
        ([PASS, None], OPEN, [PASSED, OPEN]),
    ],
)
def test_an_item_ends_as_its_conversations(played: Any, whole: Verdict, each: list[Verdict]) -> None:
    run = decided({"a": played, "b": [PASS]})
    assert RunOutcomes(run).outcome(A).verdict is whole
    assert [found.verdict for found in of_epochs(run, len(played))] == each
    assert RunOutcomes(run).outcome(B).verdict is PASSED
    with pytest.raises(InconclusiveScenarioError, match="gone"):  # nothing is known of what was not played
        RunOutcomes(run).outcome(("gone", "bot"))


def test_of_several_agents_each_has_its_own_outcome() -> None:
    run = decided({"a": [FAIL]}, agents=("one", "two"))
    assert [RunOutcomes(run).outcome(("a", name)).verdict for name in ("one", "two")] == [FAILED, FAILED]
    with pytest.raises(InconclusiveScenarioError, match="a"):
        RunOutcomes(run).outcome(("a", "bot"))
    text = RunOutcomes(run).outcome(("a", "two")).text
    assert "two" in text
    assert "one" not in text.replace("conversation", "")


BROKEN_RULE = ScenarioDecision(FAILED, (Violation("pass_rate", "1 of 3", "agenteval.yaml:4"),))
OPEN_RULE = ScenarioDecision(OPEN, (Violation("pass_rate", "too few", "agenteval.yaml:4", OPEN),))


@pytest.mark.parametrize(
    ("rule", "played", "each"),
    [
        (BROKEN_RULE, [PASS, PASS, PASS], [PASSED, PASSED, FAILED]),
        (OPEN_RULE, [PASS, PASS, PASS], [PASSED, PASSED, OPEN]),
        (BROKEN_RULE, [FAIL, PASS, PASS], [FAILED, PASSED, FAILED]),
        (BROKEN_RULE, [PASS], [FAILED]),
        (BROKEN_RULE, [PASS, FAIL], [PASSED, FAILED]),
    ],
)
def test_a_rule_over_all_epochs_belongs_to_the_last_one(rule: Any, played: Any, each: list[Verdict]) -> None:
    run = decided({"a": played, "b": [PASS]}, changed={"verdict": FAILED, "scenarios": {A: rule}})
    found = of_epochs(run, len(played))
    assert [one.verdict for one in found] == each
    assert ["pass_rate" in one.text for one in found] == [False] * (len(played) - 1) + [True]
    whole = RunOutcomes(run).outcome(A)
    assert whole.verdict is rule.verdict
    assert "pass_rate" in whole.text


def test_a_failure_that_a_gate_tolerates_is_shown_and_fails_nothing() -> None:
    run = decided(
        {"a": [FAIL, PASS]}, changed={"verdict": PASSED, "scenarios": {A: ScenarioDecision(PASSED)}}
    )
    whole, first, second = RunOutcomes(run).outcome(A), *of_epochs(run, 2)
    assert [found.verdict for found in (whole, first, second)] == [PASSED] * 3
    assert [found.text.startswith("tolerated by a gate") for found in (whole, first, second)] == [
        True,
        True,
        False,
    ]
    assert "output.contains" in first.text
    assert second.text == ""


def test_the_scenario_decides_where_a_rate_counts_conversations() -> None:
    """One conversation failed, and the rate over all of them is open."""
    run = decided({"a": [FAIL, PASS]}, changed={"verdict": OPEN, "scenarios": {A: ScenarioDecision(OPEN)}})
    assert RunOutcomes(run).outcome(A).verdict is OPEN
    assert [found.verdict for found in of_epochs(run, 2)] == [FAILED, PASSED]


def test_the_first_line_is_the_reason_and_the_commands_name_this_run() -> None:
    run = decided({"a": [UNSURE, FAIL]})
    text = RunOutcomes(run).outcome(A).text
    assert text.splitlines()[0] == "output.contains: not there"
    assert text == text.rstrip()
    assert run.report.run.run_id in text
    assert "latest" not in text


@pytest.mark.parametrize("epoch", [None, 0, 1])
def test_an_item_lasts_as_long_as_its_agent_took(epoch: int | None) -> None:
    run = decided({"a": [PASS, FAIL], "b": [PASS]})
    took = {s.key: s.trajectory.latency_ms / 1000 for s in run.report.samples}
    expected = sum(t for key, t in took.items() if key.scenario == "a" and epoch in (None, key.epoch))
    assert RunOutcomes(run).outcome(A, epoch).duration_s == pytest.approx(expected)
    assert expected > 0


@pytest.mark.parametrize(
    ("played", "outcome", "never_ran"),
    [
        ([None], "fail_fast", True),
        ([None, None], "fail_fast", True),
        ([PASS, None], "fail_fast", True),
        ([LOST], "fail_fast", False),
        ([LOST, None], "fail_fast", False),
        ([FAIL, None], "fail_fast", False),
        ([PASS], "fail_fast", False),
        ([None], "complete", False),
        ([None], "interrupted", False),
        ([None], "", False),
    ],
)
def test_what_never_ran_because_the_run_stopped_early(played: Any, outcome: str, *, never_ran: bool) -> None:
    run = decided({"b": [FAIL], "a": played}, outcome=outcome)
    assert RunOutcomes(run).outcome(A).never_ran is never_ran


def test_what_is_done_with_an_outcome() -> None:
    for verdict in (PASSED, FAILED):
        outcome = ItemOutcome(verdict, "", 1.0)
        assert check(outcome) is outcome
    with pytest.raises(InconclusiveScenarioError, match="why it is open"):
        check(ItemOutcome(OPEN, "why it is open", 1.0))
    for why in ({"never_ran": True}, {"is_neutral": True}):
        with pytest.raises(pytest.skip.Exception):
            check(ItemOutcome(OPEN, "why it is open", 1.0, **why))


@pytest.mark.parametrize(
    ("played", "setting", "is_neutral"),
    [
        (UNSURE, "neutral", True),
        (LOST, "neutral", True),
        (UNSURE, "fail", False),
        (PASS, "neutral", False),
        (FAIL, "neutral", False),
    ],
)
def test_what_is_not_decided_may_be_neutral(played: Any, setting: str, *, is_neutral: bool) -> None:
    run = decided({"a": [played]}, on_undecided=setting)
    assert RunOutcomes(run).outcome(A).is_neutral is is_neutral


def test_the_agent_of_a_fixture_may_have_another_name() -> None:
    run = decided({"a": [FAIL], "b": [PASS]}, agents=("theirs",))
    assert RunOutcomes(run).outcome(A).verdict is FAILED
    assert RunOutcomes(run).outcome(A).duration_s > 0
    assert RunOutcomes(run).outcome(B).verdict is PASSED


# ── gates ────────────────────────────────────────────────────────────────────────────────────────


def gate(name: str, verdict: Verdict, **more: Any) -> GateRow:
    return GateRow(name, 0.5, 0.9, "2 samples", "agenteval.yaml:4", verdict, **more)


def test_gates_over_the_run_that_did_not_pass() -> None:
    rows = (
        *(gate("held", PASSED), gate("cost", FAILED), gate("steps", OPEN, resolution="play more")),
        *(gate("pass_rate", FAILED, scenario="a", agent="bot"), gate("every sample passes", FAILED)),
        *(gate("fault_tolerance", OPEN), gate("fail_on_severity", FAILED)),
    )
    outcomes = RunOutcomes(decided({"a": [PASS]}, changed={"gates": rows, "author_errors": ("x is broken",)}))
    assert [row.name for row in outcomes.gates] == ["cost", "steps"]
    cost, steps, error = outcomes.gate_lines
    assert all(fact in cost for fact in ("cost", "0.5", "0.9", "failed", "agenteval.yaml:4"))
    assert all(fact in steps for fact in ("steps", "inconclusive", "play more"))
    assert error == "x is broken"


# ── the names of items ───────────────────────────────────────────────────────────────────────────


def loaded(*keys: tuple[str, str], epochs: int = 1, skip: tuple[str, ...] = ()) -> LoadedItems:
    scenarios = {id: Scenario(id=id, skip="later" if id in skip else "") for id, _ in keys}
    config = Config.model_validate({"agent": {"name": "bot", "target": "a:b"}, "root": "/p"})
    settings = Settings(
        config,
        config,
        (),
        Metrics({}, ()),
        suite_policy(config, []),
        RecordingOptions(),
        None,
        MarkedSecrets({}, {}),
    )
    suite = Suite(settings, Request(), tuple(scenarios.values()), tuple(scenarios.values()))
    samples = tuple(
        Sample(key=SampleKey(scenario=id, agent=agent, epoch=epoch), scenario=scenarios[id])
        for id, agent in keys
        for epoch in range(epochs)
        if id not in skip
    )
    return LoadedItems(suite, samples)


@pytest.mark.parametrize(
    ("keys", "pairing", "epoch", "name"),
    [
        ([A], A, None, "a"),
        ([A], A, 0, "a@1"),
        ([A], A, 11, "a@12"),
        ([A, B], B, None, "b"),
        ([A, ("a", "other")], A, None, "a@bot"),
        ([A, ("b", "other")], ("b", "other"), 1, "b@other@2"),
        ([("r[0]", "bot")], ("r[0]", "bot"), None, "r(0)"),
        ([("r[a][b]", "bot")], ("r[a][b]", "bot"), 0, "r(a)(b)@1"),
    ],
)
def test_names_of_items(keys: Any, pairing: Any, epoch: int | None, name: str) -> None:
    assert item_name(pairing, loaded(*keys), epoch) == name


def test_the_samples_of_each_pairing() -> None:
    found = loaded(A, B, ("c", "bot"), epochs=2, skip=("b",))
    assert {pairing: [s.key.epoch for s in samples] for pairing, samples in found.pairings.items()} == {
        A: [0, 1],
        ("c", "bot"): [0, 1],
    }
    assert list(found.pairings) == [A, ("c", "bot")]
    assert [each.id for each in found.skipped] == ["b"]
    assert found.root == Path("/p")


# ── the run of a session ─────────────────────────────────────────────────────────────────────────


class FakeConfig:
    """What a run asks pytest for."""

    def __init__(self, uid: str = "", **options: Any) -> None:
        if uid:
            self.workerinput = {"testrunuid": uid}
        self.stash = pytest.Stash()
        self.options = options
        self.pluginmanager = self

    def getoption(self, name: str, default: Any = None) -> Any:
        return self.options.get(name, default)

    def get_plugin(self, name: str) -> None:
        """No terminal."""


def config(uid: str = "", **options: Any) -> Any:
    return FakeConfig(uid, **options)


def test_workers_of_one_session_share_the_id_of_a_run() -> None:
    one, two, other = config("a" * 32), config("a" * 32), config("b" * 32)
    assert run_id_of(one, "") == run_id_of(two, "") == f"pytest-{'a' * 12}"
    assert run_id_of(one, "x") == run_id_of(two, "x")
    assert len({run_id_of(one, ""), run_id_of(one, "x"), run_id_of(one, "y"), run_id_of(other, "x")}) == 4
    assert run_id_of(config(), "") != run_id_of(config(), "")
    assert (is_worker(one), is_worker(config())) == (True, False)


Play = Callable[..., Any]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Request]:
    """The requests that were played. Each run has a failure of A."""
    requests: list[Request] = []

    def play(request: Request, folder: Path, status: Any, control: Any) -> DecidedRun:
        requests.append(request)
        if request.fail_fast:
            raise AuthorError(Problem("agent.py is broken", "mend it"))
        return decided({"a": [FAIL], "b": [PASS]})

    monkeypatch.setattr(pytest_runs, "play_shared", play)
    return requests


def test_all_items_wait_for_one_run(asked: list[Request]) -> None:
    settings = config("a" * 32)
    run = PytestRun(settings, loaded(A, B))
    first, second = run.outcomes([A, B]), run.outcomes([A, B])
    assert first is second
    assert (first.outcome(A).verdict, first.outcome(B).verdict) == (FAILED, PASSED)
    (request,) = asked
    assert (request.pairings, request.fail_fast, request.agent) == (None, False, None)
    assert settings.stash[pytest_runs.FINISHED_RUNS] == ["/p/.agenteval/runs/r"]


def test_only_what_pytest_selected_is_played(asked: list[Request]) -> None:
    PytestRun(config("a" * 32), loaded(A, B)).outcomes([B])
    assert [request.pairings for request in asked] == [frozenset({B})]


def test_an_agent_of_a_fixture_takes_the_place_of_the_configured_ones(asked: list[Request]) -> None:
    PytestRun(config("a" * 32), loaded(A)).outcomes([A], "bot.py:agent")
    PytestRun(config("a" * 32), loaded(A)).outcomes([A], "support")
    assert [request.agent for request in asked] == [{"target": "bot.py:agent"}, None]
    assert [request.filters.agent for request in asked] == [None, "support"]
    PytestRun(config("a" * 32), loaded(A), has_own_agent=True).outcomes([A], "bot.py:agent")
    assert asked[-1].agent is None


def test_a_fixture_that_returns_no_agent_starts_no_run(asked: list[Request]) -> None:
    with pytest.raises(RunNotStartedError, match="agenteval_agent"):
        PytestRun(config("a" * 32), loaded(A)).outcomes([A], None)
    found = loaded(A)
    request = replace(found.suite.request, agent=FIXTURE_AGENT)
    run = PytestRun(config("a" * 32), found._replace(suite=replace(found.suite, request=request)))
    with pytest.raises(RunNotStartedError, match="agenteval_agent"):
        run.outcomes([A])
    assert asked == []
    run = PytestRun(config("a" * 32), found._replace(suite=replace(found.suite, request=request)))
    assert run.outcomes([A], "bot.py:agent").outcome(A).verdict is FAILED


@pytest.mark.parametrize(("most", "stops"), [(0, False), (1, True), (2, False)])
def test_only_the_first_failure_stops_a_run(asked: list[Request], most: int, *, stops: bool) -> None:
    run = PytestRun(config("a" * 32, maxfail=most), loaded(A))
    if not stops:
        run.outcomes([A])
    else:
        for _ in range(2):  # every item says so, and nothing is tried again
            with pytest.raises(RunNotStartedError, match=r"agent.py is broken"):
                run.outcomes([A])
    assert [request.fail_fast for request in asked] == [stops]


# ── the end of a session ─────────────────────────────────────────────────────────────────────────


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch) -> dict[str, DecidedRun]:
    runs = {
        "good": decided({"a": [PASS]}),
        "bad": decided({"a": [FAIL]}),
        "open": decided({"a": [UNSURE]}),
        "costly": decided(
            {"a": [PASS]}, changed={"verdict": FAILED, "exit_code": 1, "gates": (gate("cost", FAILED),)}
        ),
        "part": decided({"a": [PASS]}, run={"request": {"last_failed": True}}),
    }
    monkeypatch.setattr(pytest_runs, "load_decided_run", runs.__getitem__)
    return runs


@pytest.mark.parametrize(
    ("folders", "code"),
    [([], 0), (["good"], 0), (["good", "bad"], 1), (["bad", "good"], 1), (["bad", "open", "good"], 3)],
)
def test_the_worst_exit_code_counts(stored: Any, folders: list[str], code: int) -> None:
    assert exit_code_of(folders) == code


def test_a_summary_of_each_run(stored: dict[str, DecidedRun]) -> None:
    assert list(summary_lines([])) == []
    lines = list(summary_lines(["good", "costly"]))
    run_id = stored["good"].report.run.run_id
    assert [run_id in line for line in lines] == [True, True, True, False, True]
    assert lines[0].startswith("passed")
    assert "exit code 0" in lines[0]
    assert lines[2].startswith("failed")
    assert "exit code 1" in lines[2]
    assert "cost" in lines[3]


def test_scenarios_that_did_not_pass_are_named() -> None:
    for count, named in ((1, 1), (5, 5), (7, 5)):
        (line,) = RunOutcomes(
            decided({f"s{n}": [FAIL, FAIL] for n in range(count)} | {"b": [PASS]})
        ).open_lines
        assert [f"s{n}" in line for n in range(count)] == [True] * named + [False] * (count - named)
    assert list(RunOutcomes(decided({"b": [PASS]})).open_lines) == []


def test_of_a_part_of_the_scenarios_no_item_checks_the_gates(stored: dict[str, DecidedRun]) -> None:
    assert [len(list(summary_lines([name]))) for name in ("good", "part")] == [2, 3]
