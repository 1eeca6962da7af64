"""The objects that a configuration names, made without calling anything."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import Any

import pytest

from agenteval.core.config import AgentConfig, Config
from agenteval.core.errors import AuthorError
from agenteval.core.event import Event, Notice
from agenteval.core.scenario import SampleKey
from agenteval.planning.plan_resolution import resolve
from agenteval.planning.request import Request
from agenteval.planning.run_preparation import PreparedRun, prepare
from agenteval.planning.sample_selection import select
from agenteval.planning.suite import load_suite
from agenteval.planning.wiring import (
    Resources,
    all_secrets,
    policies_of,
    policy_file,
    policy_of,
    wire,
)
from agenteval.running.registries import REGISTRIES
from agenteval.verdict.sequential import PlannedQueue, SequentialQueue

# ── policies ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("policy", "text", "has_file"),
    [
        (None, "", False),
        ("", "", False),
        ("Be kind.", "Be kind.", False),
        ("policy.md", "Be fair.", True),
        ("policy", "Be brief.", True),
        ("policy.md\nand more", "policy.md\nand more", False),
        ("see policy.md", "see policy.md", False),
        ("gone.pdf", "gone.pdf", False),
        ("x" * 499, "x" * 499, False),
        ("x" * 500, "x" * 500, False),
    ],
)
def test_a_policy_is_a_text_or_a_file(tmp_path: Path, policy: str | None, text: str, has_file: bool) -> None:
    (tmp_path / "policy.md").write_text("Be fair.")
    (tmp_path / "policy").write_text("Be brief.")
    agent = AgentConfig(name="bot", policy=policy)
    assert policy_of(agent, str(tmp_path)) == text
    assert (policy_file(agent, str(tmp_path)) is not None) is has_file


@pytest.mark.parametrize(
    "policy", ["gone.md", "gone.txt", "gone.markdown", "gone.rst", "gone.prompt", "gone.j2", "folder"]
)
def test_a_policy_that_looks_like_a_file(tmp_path: Path, policy: str) -> None:
    (tmp_path / "folder").mkdir()
    for find in (policy_of, policy_file):
        with pytest.raises(AuthorError):
            find(AgentConfig(name="bot", policy=policy), str(tmp_path))


def test_policies_of_the_agents_that_are_used(tmp_path: Path) -> None:
    config = Config.model_validate(
        {
            "agent": {"name": "a", "policy": "A."},
            "agents": {"b": {"name": "b", "policy": "B."}},
            "compare": [{"name": "c"}],
        }
    )
    assert policies_of(config, ["a", "c", "x"]) == {"a": "A.", "c": ""}


# ── resources ────────────────────────────────────────────────────────────────────────────────────


def configured(**more: Any) -> Config:
    return Config.model_validate({"agent": {"name": "bot", "target": "a:b"}, **more})


def test_secrets_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "environment-93h-c2f8")
    assert "environment-93h-c2f8" in Resources(configured()).secrets


def test_secrets_are_listed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "model-key-40c-77ab")
    config = configured(models={"default": {"model": "openai/m", "api_key_env": "MY_KEY"}})
    assert all_secrets(config, ["one", "two", "one"]) == ("one", "two", "model-key-40c-77ab")


def test_warnings_before_and_during_a_run() -> None:
    resources = Resources(configured())
    for text in ("a", "b", "a"):
        resources.warn(text)
    assert resources.take_warnings() == ("a", "b")
    assert resources.take_warnings() == ()
    events: list[Event] = []
    resources.emit = events.append
    for text in ("a", "c", "c"):
        resources.warn(text)
    assert events == [Notice(level="warning", text="c")]
    assert resources.take_warnings() == ()
    resources.notify("d")
    assert [event.text for event in events if isinstance(event, Notice)] == ["c", "d"]


class Control:
    """Records why a run was stopped."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def stop(self, reason: str) -> None:
        self.reasons.append(reason)


@pytest.mark.parametrize(
    ("budget", "unpriced", "warnings"),
    [
        ({}, ("bot",), []),
        ({"max_cost": 5}, (), []),
        ({"max_cost": 5}, ("bot", "x"), ["bot", "x"]),
    ],
)
def test_agents_that_no_budget_bounds(budget: Any, unpriced: Any, warnings: list[str]) -> None:
    resources, events = Resources(configured(budget=budget)), list[Event]()
    resources.unpriced_agents = unpriced
    resources.attach(events.append, Control())  # type: ignore[arg-type]
    notices = [event for event in events if isinstance(event, Notice)]
    assert [notice.level for notice in notices] == ["warning"] * len(warnings)
    for notice, name in zip(notices, warnings, strict=True):
        assert "budget.max_cost" in notice.text
        assert f"'{name}'" in notice.text


def test_a_budget_that_is_used_up_stops_the_run() -> None:
    resources, events, control = Resources(configured(budget={"max_calls": 1})), list[Event](), Control()
    resources.attach(events.append, control)  # type: ignore[arg-type]
    assert resources.traffic.ledger is not None
    resources.traffic.ledger.on_stop("why")
    assert control.reasons == ["budget"]
    assert events == [Notice(level="warning", text="why")]


def test_notices_may_concern_a_conversation() -> None:
    resources, events = Resources(configured()), list[Event]()
    resources.notify("nobody hears it")
    resources.emit = events.append
    key = SampleKey(scenario="a", agent="bot")
    resources.notify("x", key)
    resources.forward_event(Notice(level="warning", text="y"))
    assert events == [Notice(text="x", key=key), Notice(level="warning", text="y")]


def test_what_is_shared_is_made_once() -> None:
    resources = Resources(configured(seed=3))
    assert resources.limits() is resources.limits()
    assert resources.transport() is resources.transport()
    assert resources.mcp() is resources.mcp()
    first, second = resources.jitter(), resources.jitter()
    assert [first(), first()] == [second(), second()]
    assert Resources(configured(seed=4)).jitter()() != Resources(configured(seed=3)).jitter()()


def test_secrets_that_the_author_marked_are_masked() -> None:
    resources = Resources(
        configured(agent={"name": "bot", "secrets": ["marked-71f-9d3a"]}), ["configured-82g-55e1"]
    )
    assert {"marked-71f-9d3a", "configured-82g-55e1"} <= set(resources.secrets)
    assert resources.config_secrets == ("configured-82g-55e1",)


@pytest.mark.parametrize(
    ("agents", "name", "key"),
    [
        ({}, "bot", "agent"),
        ({"agents": {"x": {"name": "x"}}}, "x", "agents.x"),
        ({"compare": [{"name": "p"}, {"name": "q"}]}, "q", "compare.1"),
        ({"compare": [{"name": "bot"}, {"name": "q"}]}, "bot", "agent"),
        ({"agent": None, "agents": {"x": {"name": "x"}}}, "x", "agents.x"),
    ],
)
def test_where_an_agent_is_defined(agents: Any, name: str, key: str) -> None:
    lines = {f"{key}.type": 7}
    config = configured(**agents).model_copy(update={"source": "c.yaml", "lines": lines})
    place = Resources(config).place_of(AgentConfig(name=name), "type")
    assert (place.path, place.line) == ("c.yaml", 7)


@pytest.mark.parametrize(
    ("models", "no_judge", "made"),
    [
        ({}, False, ()),
        ({"default": "scripted/r.yaml"}, False, ("user", "judge")),
        ({"default": "scripted/r.yaml"}, True, ("user",)),
        ({"judge": "scripted/r.yaml"}, False, ("judge",)),
        ({"default": "scripted/g.yaml"}, False, ("user", "judge", "dedup")),
        ({"default": "scripted/g.yaml"}, True, ("user",)),
    ],
)
def test_models_by_role(tmp_path: Path, models: Any, no_judge: bool, made: Sequence[str]) -> None:
    (tmp_path / "r.yaml").write_text("replies:\n  - {when: {role: user}, reply: x}\n")
    (tmp_path / "g.yaml").write_text("replies:\n  - {when: {role: dedup}, reply: x}\n")
    config = configured(models=models).model_copy(update={"root": str(tmp_path)})
    resources = Resources(config, no_judge=no_judge)
    roles: tuple[Any, ...] = ("user", "judge", "dedup")
    assert tuple(role for role in roles if resources.model(role) is not None) == tuple(made)
    assert all(resources.model(role) is resources.model(role) for role in roles)


# ── a run ────────────────────────────────────────────────────────────────────────────────────────

AGENT = "def agent(message):\n    return 'hello'\n"
CONFIG = "agent: {name: bot, target: 'agent.py:agent'}\nmetrics: []\n"
SCENARIOS = """
scenarios:
  - id: a
    turns: [hi]
    expect: {output: {contains: hello}}
"""
RANGE = "epochs: {min: 2, max: 5}\ngates: {pass_rate: {at_least: 0.9, reject_below: 0.2}}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "scenarios").mkdir()
    (tmp_path / "scenarios" / "a.yaml").write_text(SCENARIOS)
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "agenteval.yaml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AGENTEVAL_MODEL", raising=False)
    return tmp_path


def prepared(config: str = "", **request: Any) -> PreparedRun:
    Path("agenteval.yaml").write_text(CONFIG + config, encoding="utf-8")
    return prepare(Request(**request), REGISTRIES)


@pytest.mark.parametrize(
    ("config", "request_", "expected"),
    [
        ("", {}, (20, False, inf, inf, PlannedQueue)),
        ("concurrency: 3\n", {}, (3, False, inf, inf, PlannedQueue)),
        ("concurrency: 3\nagent_concurrency: 7\n", {}, (7, False, inf, inf, PlannedQueue)),
        ("", {"fail_fast": True}, (20, True, inf, inf, PlannedQueue)),
        ("deadlines: {turn_s: 2, sample_s: 9}\n", {}, (20, False, 2, 9, PlannedQueue)),
        (RANGE, {}, (20, False, inf, inf, SequentialQueue)),
    ],
)
def test_the_settings_of_a_run(folder: Path, config: str, request_: Any, expected: Any) -> None:
    runtime = prepared(config, **request_).wired.runtime
    assert (
        runtime.agent_concurrency,
        runtime.fail_fast,
        runtime.deadlines._turn_s,
        runtime.deadlines._sample_s,
        type(runtime.queue),
    ) == expected
    assert list(runtime.agents) == list(runtime.checks) == list(runtime.judges) == ["bot"]
    assert runtime.reviewer is None


SIMULATED = "scenarios: [{id: a, goal: Get it., checks: none}]\n"


@pytest.mark.parametrize(
    ("scenarios", "models", "reviews"),
    [
        (SIMULATED, "{default: scripted/r.yaml}", True),
        (SIMULATED, "{user: scripted/r.yaml}", False),
        (SCENARIOS, "{default: scripted/r.yaml}", False),
    ],
)
def test_a_simulated_user_is_reviewed_if_there_is_a_judge(
    folder: Path, scenarios: str, models: str, reviews: bool
) -> None:
    (folder / "scenarios" / "a.yaml").write_text(scenarios)
    (folder / "r.yaml").write_text("replies:\n  - {when: {role: user}, reply: x}\n")
    assert (prepared(f"models: {models}\n").wired.runtime.reviewer is not None) is reviews


@pytest.mark.parametrize(
    ("scenarios", "role", "is_made"),
    [
        (SIMULATED, "user", True),
        (SIMULATED, "judge", True),
        (SIMULATED, "dedup", True),
        (SCENARIOS, "user", False),
        (SCENARIOS, "judge", True),
        (SCENARIOS, "dedup", True),
    ],
)
def test_models_that_may_be_called_are_made_before_the_run(
    folder: Path, scenarios: str, role: str, is_made: bool
) -> None:
    (folder / "scenarios" / "a.yaml").write_text(scenarios)
    (folder / "r.yaml").write_text("replies:\n  - {when: {role: user}, reply: x}\n")
    config = f"models: {{default: scripted/r.yaml, {role}: scripted/gone.yaml}}\n"
    if is_made:
        with pytest.raises(AuthorError):
            prepared(config)
    else:
        assert prepared(config).wired.runtime.reviewer is None


def test_what_is_prepared(folder: Path) -> None:
    found = prepared()
    assert [sample.key.scenario for sample in found.wired.samples] == ["a"]
    assert [each.id for each in found.wired.scenarios] == ["a"]
    assert list(found.plan.scenarios) == ["a"]
    assert found.remarks == ()
    assert len(found.wired.runtime.checks["bot"]) == 3
    assert found.wired.runtime.judges["bot"] == ()


def test_without_judges_unjudged_checks_are_reported(folder: Path) -> None:
    suite = load_suite(Request(), REGISTRIES)
    selected = select(suite)
    assert len(wire(resolve(suite, selected), suite, selected).runtime.checks["bot"]) == 3
    Path("agenteval.yaml").write_text(f"{CONFIG}code_only: true\n", encoding="utf-8")
    suite = load_suite(Request(), REGISTRIES)
    selected = select(suite)
    assert len(wire(resolve(suite, selected), suite, selected).runtime.checks["bot"]) == 4


def test_remarks_of_the_selection_and_of_the_objects(folder: Path) -> None:
    Path("scenarios/a.yaml").write_text(
        f"{SCENARIOS}  - id: b\n    goal: Get it.\n    checks: none\n", encoding="utf-8"
    )
    found = prepared("code_only: true\nmodels: {default: openai/m}\n")
    assert len(found.selected.remarks) == 1
    assert found.remarks == (*found.selected.remarks, *found.wired.remarks)


@pytest.mark.parametrize(
    ("config", "problems"),
    [
        ("detectors: [leaks]\n", 1),
        ("budget: {max_cost: 1}\nmodels: {default: 'ollama/m'}\n", 1),
        ("budget: {max_calls: 1}\nmodels: {default: 'ollama/m'}\n", 0),
        ("agents: {x: {name: x, target: 'gone.py:x'}}\n", 0),  # nobody plays it
    ],
)
def test_mistakes_that_are_found_before_a_run(folder: Path, config: str, problems: int) -> None:
    if not problems:
        assert prepared(config).remarks == ()
        return
    with pytest.raises(AuthorError) as error:
        prepared(config)
    assert len(error.value.problems) == problems


def test_mistakes_of_agents_and_others_are_reported_together(folder: Path) -> None:
    Path("agent.py").write_text("x = 1\n", encoding="utf-8")
    with pytest.raises(AuthorError) as error:
        prepared("detectors: [leaks]\n")
    assert len(error.value.problems) == 2
