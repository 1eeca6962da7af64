"""What an author may write in the configuration, and what it means."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from agenteval.core.config import (
    AcceptedFailure,
    AgentConfig,
    Allowance,
    BudgetConfig,
    Config,
    GatesConfig,
    ModelConfig,
    ModelsConfig,
    ReporterChoice,
    deep_merge,
    parse_reporter,
)
from agenteval.core.errors import Place
from agenteval.core.score import Severity
from agenteval.core.value import Value


def refused(model: type[Value], value: Any) -> str:
    with pytest.raises(ValidationError) as error:
        model.model_validate(value)
    return str(error.value)


def written(**fields: Any) -> Config:
    return Config.model_validate(fields)


# ── agents ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("fields", "kind", "options"),
    [
        ({}, "", {}),
        ({"target": "bot.py:agent"}, "python", {"target": "bot.py:agent"}),
        ({"endpoint": "http://x"}, "http", {"endpoint": "http://x"}),
        ({"command": ["x"]}, "command", {"command": ["x"]}),
        ({"target": "a:b", "endpoint": "http://x"}, "http", {"target": "a:b", "endpoint": "http://x"}),
        ({"target": "", "command": ["x"]}, "command", {"target": "", "command": ["x"]}),
        ({"type": "own", "target": "a:b"}, "own", {"target": "a:b"}),
        ({"options": {"target": "a:b"}}, "python", {"target": "a:b"}),
        ({"target": "a:b", "options": {"target": "c:d", "x": 1}}, "python", {"target": "c:d", "x": 1}),
    ],
)
def test_the_kind_of_an_agent(fields: dict[str, Any], kind: str, options: dict[str, Any]) -> None:
    agent = AgentConfig.model_validate(fields)
    assert (agent.kind, agent.adapter_options) == (kind, options)


@pytest.mark.parametrize(
    "fields", [{"name": ""}, {"timeout_s": 0}, {"requests_per_minute": 0}, {"calls": "some"}]
)
def test_agents_that_are_refused(fields: dict[str, Any]) -> None:
    assert next(iter(fields)) in refused(AgentConfig, fields)


def test_secrets_of_an_agent() -> None:
    found = AgentConfig.model_validate({"secrets": ["swordfish", 123456]})
    assert found.secrets == ("swordfish", "123456")
    assert "secrets" not in AgentConfig().model_dump()
    for wrong in ("swordfish", ["abc"], [True], [None]):
        assert "secrets" in refused(AgentConfig, {"secrets": wrong})


def test_all_agents_in_order() -> None:
    fields: dict[str, Any] = {"compare": [{"name": "c"}], "agents": {"b": {"name": "b"}}}
    assert [agent.name for agent in written(agent={"name": "a"}, **fields).all_agents] == ["a", "b", "c"]
    assert [agent.name for agent in written(**fields).all_agents] == ["b", "c"]
    assert written().all_agents == ()


# ── models ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("model", "provider", "name"),
    [
        ("openai/gpt-5-mini", "openai", "gpt-5-mini"),
        ("own/a/b", "own", "a/b"),
        ("scripted/x.yaml", "scripted", "x.yaml"),
    ],
)
def test_a_model_of_a_provider(model: str, provider: str, name: str) -> None:
    found = ModelConfig(model=model)
    assert (found.provider, found.name) == (provider, name)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"model": "gpt-5"}, ("PROVIDER/MODEL",)),
        ({"model": "openai/"}, ("PROVIDER/MODEL",)),
        ({"model": "/gpt-5"}, ("PROVIDER/MODEL",)),
        ({"model": " / "}, ("PROVIDER/MODEL",)),
        ({"model": "openai-compatible/x"}, ("base_url",)),
        ({"model": "openai-compatible/x", "base_url": ""}, ("base_url",)),
        ({"model": "azure/x", "client": "http"}, ("client",)),
        ({"model": "local/x.gguf", "client": "http"}, ("client",)),
        ({"model": "scripted/x.yaml", "client": "sdk"}, ("client",)),
        ({"model": "a/b", "timeout_s": 0}, ("timeout_s",)),
        ({"model": "a/b", "max_wait_s": -1}, ("max_wait_s",)),
        ({"model": "a/b", "context": 1999}, ("context",)),
        ({"model": "a/b", "temperature": True}, ("temperature",)),
    ],
)
def test_models_that_are_refused(fields: dict[str, Any], words: tuple[str, ...]) -> None:
    assert all(word in refused(ModelConfig, fields) for word in words)


@pytest.mark.parametrize(
    ("fields", "by_sdk"),
    [
        ({"model": "openai/x"}, True),
        ({"model": "openai/x", "client": "http"}, False),
        ({"model": "openai/x", "client": "sdk"}, True),
        ({"model": "azure/x"}, True),
        ({"model": "azure/x", "client": "sdk"}, True),
        ({"model": "of-a-plugin/x"}, False),
        ({"model": "openai-compatible/x", "base_url": "http://x"}, False),
    ],
)
def test_who_sends_the_requests(fields: dict[str, Any], by_sdk: bool) -> None:
    assert ModelConfig.model_validate(fields).is_by_sdk is by_sdk


@pytest.mark.parametrize(
    ("fields", "tokens"),
    [
        ({"model": "openai/x"}, 75_000),
        ({"model": "openai/x", "context": 20_000}, 15_000),
        ({"model": "openai/x", "context": 10_000}, 5_000),
        ({"model": "openai/x", "context": 8_000}, 4_000),  # at least half of it
        ({"model": "openai/x", "extra": {"n_ctx": 30_000}}, 75_000),
        ({"model": "local/x"}, 4_096),
        ({"model": "local/x", "extra": {"n_ctx": 30_000}}, 25_000),
        ({"model": "local/x", "extra": {"n_ctx": 30_000}, "context": 20_000}, 15_000),
        ({"model": "local/x", "extra": {"n_ctx": "all"}}, 4_096),
    ],
)
def test_how_long_a_record_may_be(fields: dict[str, Any], tokens: int) -> None:
    assert ModelConfig.model_validate(fields).record_tokens == tokens


def test_the_model_of_a_role() -> None:
    models = ModelsConfig.model_validate({"default": "a/b", "judge": {"model": "c/d"}})
    assert models.model_for("user") == models.model_for("dedup") == ModelConfig(model="a/b")
    assert models.model_for("judge") == ModelConfig(model="c/d")
    assert [models.key_of(role) for role in ("user", "judge")] == ["models.default", "models.judge"]
    assert [model.model for model in models.all] == ["a/b", "c/d"]
    assert ModelsConfig().model_for("judge") is None
    assert ModelsConfig().all == ()


# ── limits ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("budget", "limits", "roles"),
    [
        ({}, {}, set()),
        ({"max_calls": 1}, {"max_calls": 1}, set()),
        ({"max_cost": 0.5, "max_tokens": 9}, {"max_cost": 0.5, "max_tokens": 9}, set()),
        ({"by_role": {"judge": {"max_calls": 1}, "user": {}}}, {}, {"judge"}),
        ({"max_calls": 1, "by_role": {"agent": {"max_calls": 2}}}, {"max_calls": 1}, {"agent"}),
    ],
)
def test_budgets(budget: Any, limits: dict[str, Any], roles: set[str]) -> None:
    found = BudgetConfig.model_validate(budget)
    assert (found.limits, set(found.roles)) == (limits, roles)
    assert bool(found) is bool(limits or roles)
    for role in roles:
        assert found.roles[role] == found.allowance_for(role) != Allowance()
    assert found.allowance_for("nobody") == Allowance()


@pytest.mark.parametrize("limit", [{"max_calls": 0}, {"max_tokens": 0}, {"max_cost": 0}, {"max_calls": True}])
def test_budgets_of_nothing(limit: Any) -> None:
    assert refused(Allowance, limit)
    assert not Allowance()


def test_gates_that_are_set() -> None:
    gates = GatesConfig.model_validate({"pass_rate": {"at_least": 0.9}, "pass_hat_k": None, "x": 0})
    assert gates.configured_gates == {"pass_rate": {"at_least": 0.9}, "x": 0}
    assert gates.without(["pass_rate", "other"]).configured_gates == {"x": 0}
    assert bool(gates)
    assert not GatesConfig.model_validate({"pass_rate": None})
    assert not GatesConfig()


# ── accepted failures ────────────────────────────────────────────────────────────────────────────

ENTRY = {"fingerprint": "0123456789ab", "owner": "me", "reason": "known", "expires": "2026-12-31"}


@pytest.mark.parametrize(
    ("day", "holds"),
    [("2026-12-30", True), ("2026-12-31", True), ("2027-01-01", False), ("2025-12-31", True)],
)
def test_the_last_day_counts(day: str, holds: bool) -> None:
    assert AcceptedFailure.model_validate(ENTRY).holds_on(day) is holds


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("fingerprint", "0123456789a"),
        ("fingerprint", "0123456789abc"),
        ("fingerprint", "0123456789AB"),
        ("fingerprint", "0123456789ag"),
        ("expires", "2026-02-30"),
        ("expires", "tomorrow"),
        ("expires", ""),
        ("owner", ""),
        ("reason", ""),
    ],
)
def test_entries_that_are_refused(field: str, value: str) -> None:
    assert field in refused(AcceptedFailure, {**ENTRY, field: value})


# ── other keys ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("key", "value", "read"),
    [
        ("metrics", "all", "all"),
        ("metrics", "stars", ("stars",)),
        ("metrics", ["a", "b"], ("a", "b")),
        ("metrics", [], ()),
        ("detectors", "all", None),
        ("detectors", "loop", ("loop",)),
        ("detectors", [], ()),
        ("cache", True, True),
        ("cache", "./cache", "./cache"),
        ("fail_on_severity", "none", "none"),
        ("fail_on_severity", "low", Severity.LOW),
        ("fault_tolerance", 1, 1.0),
        ("fault_tolerance", 0, 0.0),
        ("reporters", "json", (ReporterChoice(name="json"),)),
        ("reporters", ["json=a.json"], (ReporterChoice(name="json", path="a.json"),)),
        ("reporters", [{"name": "x"}, "json"], (ReporterChoice(name="x"), ReporterChoice(name="json"))),
        ("reporters", [], ()),
    ],
)  # fmt: skip
def test_values_in_short(key: str, value: Any, read: Any) -> None:
    assert getattr(written(**{key: value}), key) == read


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("cache", word) for word in ("yes", "No", " on ", "off", "y", "n", "none", "", "1")),
        ("fault_tolerance", 1.1),
        ("fault_tolerance", -0.1),
        ("max_turns", 0),
        ("concurrency", 0),
        ("agent_concurrency", 0),
        ("seed", -1),
        ("reporters", {"json": "a.json"}),
        ("unmocked_tools", "ignore"),
        ("nobody_knows", 1),
    ],
)
def test_values_that_are_refused(key: str, value: Any) -> None:
    assert key in refused(Config, {key: value})


@pytest.mark.parametrize(
    ("text", "name", "path"),
    [
        ("json", "json", None),
        ("json=out.json", "json", "out.json"),
        (" json = a=b ", "json", "a=b"),
        ("json=", "json", None),
        ("", "", None),
    ],
)
def test_a_reporter_and_its_file(text: str, name: str, path: str | None) -> None:
    assert parse_reporter(text) == ReporterChoice(name=name, path=path)


@pytest.mark.parametrize(
    ("low", "high", "merged"),
    [
        ({}, {}, {}),
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({"a": 1}, {"a": None}, {"a": None}),
        ({"a": {"b": 1, "c": {"d": 2}}}, {"a": {"c": {"e": 3}}}, {"a": {"b": 1, "c": {"d": 2, "e": 3}}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": {"b": 1}}, {"a": 5}, {"a": 5}),
        ({"a": 5}, {"a": {"b": 1}}, {"a": {"b": 1}}),
    ],
)
def test_the_higher_value_wins(low: Any, high: Any, merged: Any) -> None:
    before = str(low)
    assert deep_merge(low, high) == merged
    assert str(low) == before


PLACED = Config(
    source="agenteval.yaml",
    lines={"gates": 4, "gates.pass_rate": 6, "epochs": 9},
    columns={"gates": 3},
    origins={"epochs": "--epochs", "budget.max_calls": "AGENTEVAL_MAX_CALLS"},
)


@pytest.mark.parametrize(
    ("path", "where", "place"),
    [
        ("gates", "agenteval.yaml:4", ("agenteval.yaml", 4, 3)),
        ("gates.pass_rate.at_least", "agenteval.yaml:6", ("agenteval.yaml", 6, 0)),
        ("gates.other", "agenteval.yaml:4", ("agenteval.yaml", 4, 3)),
        ("epochs", "--epochs", ("--epochs",)),
        ("epochs.max", "--epochs", ("--epochs",)),
        ("budget.max_calls", "AGENTEVAL_MAX_CALLS", ("AGENTEVAL_MAX_CALLS",)),
        ("budget", "default", ("default",)),
        ("", "default", ("default",)),
    ],
)
def test_where_a_key_was_set(path: str, where: str, place: tuple[Any, ...]) -> None:
    assert PLACED.where(path) == where
    assert PLACED.place(path) == Place(*place)
    assert PLACED.is_by_flag(path) is (path == "epochs")


def test_what_holds_if_nothing_is_written() -> None:
    config = written()
    assert (config.max_turns, config.concurrency, config.seed) == (8, 20, 0)
    assert (config.judge.corroborate, config.judge.on_failure, config.judge.calls) == (
        True,
        "undecided",
        "separate",
    )
    assert (config.metrics, config.detectors, config.severity_from) == ("all", None, "table")
    assert (config.fail_on_severity, config.on_undecided) == (Severity.CRITICAL, "fail")
    assert (config.cache, config.code_only, config.unmocked_tools) == (False, False, "error")
    assert config.include == ("scenarios/**/*.yaml", "scenarios/**/*.yml")
    assert config.reporters == (ReporterChoice(name="terminal"),)
    assert (config.epochs, config.fault_tolerance, config.accepted, config.now) == (None,) * 4
    agent, model = AgentConfig(), ModelConfig(model="a/b")
    assert (agent.name, agent.timeout_s, agent.mcp, agent.calls) == ("agent", 60.0, False, None)
    assert (model.timeout_s, model.max_wait_s) == (120.0, 180.0)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("severity_from", "model"),
        ("on_undecided", "neutral"),
        ("unmocked_tools", "passthrough"),
        ("unmocked_tools", "empty"),
    ],
)
def test_words_that_may_be_chosen(key: str, value: str) -> None:
    assert getattr(written(**{key: value}), key) == value


@pytest.mark.parametrize(
    "judge", [{"calls": "shared"}, {"calls": "separate"}, {"on_failure": "skip"}, {"corroborate": False}]
)
def test_settings_of_judges(judge: dict[str, Any]) -> None:
    assert written(judge=judge).judge.model_dump(include=set(judge)) == judge
