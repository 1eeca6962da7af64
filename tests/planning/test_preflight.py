"""Mistakes that are found before anything is called: where, and where not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from agenteval.conversation.mocks import MockFunctions
from agenteval.core.config import Config
from agenteval.core.errors import Place, Problem
from agenteval.core.plan import SuitePolicy
from agenteval.core.protocols import AgentTool
from agenteval.core.scenario import Sample, SampleKey, Scenario
from agenteval.core.tool_visibility import KnownVisibility
from agenteval.core.trajectory import ToolVisibility
from agenteval.files.yaml_source import Mark
from agenteval.planning import preflight
from agenteval.planning.judge_setup import Metrics
from agenteval.planning.plan_resolution import suite_policy
from tests.support.verdict_runs import BEHAVIOR, GOAL, GOALS, LABELS, RULES, STARS

SPECS = (LABELS, GOALS, STARS, RULES)
CALL = {"tool_calls": {"calls": [{"name": "pay"}]}}

MARK = Mark("s.yaml", 1)


def configured(**more: Any) -> Config:
    return Config.model_validate({"agent": {"name": "bot", "target": "a:b"}, **more})


def policy(*judged: str, **config: Any) -> SuitePolicy:
    return suite_policy(configured(**config), SPECS, [spec for spec in SPECS if spec.name in judged])


def scenario(id: str = "a", **fields: Any) -> Scenario:
    return Scenario.model_validate({"id": id, "source": f"s/{id}.yaml:2", **fields})


def played(*scenarios: Scenario, agents: Sequence[str] = ("bot",)) -> list[Sample]:
    return [
        Sample(key=SampleKey(scenario=each.id, agent=agent), scenario=each)
        for each in scenarios
        for agent in agents
    ]


def count(found: Iterable[Any]) -> int:
    return len(list(found))


def places(found: Iterable[Problem]) -> list[str]:
    return [str(problem.place) for problem in found]


# ── scenarios ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("fields", "judged", "config", "is_vacuous"),
    [
        ({}, (), {}, True),
        ({"expect": {"output": {"contains": "x"}}}, (), {}, False),
        ({"checks": "none"}, (), {}, False),
        ({}, (BEHAVIOR,), {}, False),
        ({}, (BEHAVIOR,), {"fail_on_severity": "none"}, True),
        ({}, ("stars",), {}, True),  # a number without a threshold fails nothing
        ({}, ("stars",), {"thresholds": {"stars": 3}}, False),
        ({}, ("policy_adherence",), {}, True),  # nobody has a policy
        ({"policy": "Be kind."}, ("policy_adherence",), {}, False),
        ({"goal": "Get it."}, (GOAL,), {}, False),
        ({"goal": "Get it."}, (GOAL,), {"fail_on_severity": "none"}, True),
        ({"goal": "Get it."}, (GOAL,), {"severities": {"goal never completed": "high"}}, True),
        ({"goal": "Get it."}, (GOAL,), {"fail_on_severity": "low"}, False),
        (
            {"goal": "Get it."},
            (GOAL,),
            {"severities": {"goal never completed": "high"}, "fail_on_severity": "high"},
            False,
        ),
        ({"goal": " "}, (GOAL,), {}, True),
        ({"goal": "Get it."}, (), {}, True),
    ],
)
def test_a_scenario_that_only_a_broken_agent_could_fail(
    fields: Any, judged: Sequence[str], config: Any, is_vacuous: bool
) -> None:
    found = list(preflight.scenario_problems(scenario(**fields), MARK, policy(*judged, **config)))
    assert len(found) == is_vacuous
    assert places(found) == ["s/a.yaml:2"] * is_vacuous


@pytest.mark.parametrize(
    ("tool", "unmocked", "problems"),
    [
        ({}, "error", 1),
        ({}, "empty", 0),
        ({}, "passthrough", 0),
        ({"returns": None}, "error", 0),
        ({"error": "no"}, "error", 0),
    ],
)
def test_a_tool_without_an_answer(tool: Any, unmocked: str, problems: int) -> None:
    checked = scenario(checks="none", tools={"pay": tool, "b": {"returns": 1}}, lines={"tools.pay": 7})
    found = list(preflight.scenario_problems(checked, MARK, policy(unmocked_tools=unmocked)))
    assert places(found) == ["s/a.yaml:7"] * problems


def test_thresholds_of_the_scenario_are_checked_too() -> None:
    found = preflight.scenario_problems(scenario(thresholds={"stars": 9}), MARK, policy("stars"))
    assert count(found) == 1


SCRIPT = ["hi"]


@pytest.mark.parametrize(
    ("fields", "by_code"),
    [
        ({"turns": SCRIPT, "expect": {"output": {"contains": "x"}}}, True),
        ({"turns": SCRIPT, "expect": {"criteria": ["x"]}}, False),
        ({"turns": SCRIPT, "expect": {"criteria": ["x"], "output": {"contains": "x"}}}, True),
        ({"turns": SCRIPT}, False),
        ({"turns": SCRIPT, "checks": "none"}, True),
        ({"turns": SCRIPT, "case": {}}, True),
        ({"turns": [{"user": "hi", "expect": CALL}]}, True),
        ({"turns": [{"user": "hi", "expect": {"criteria": ["x"]}}]}, False),
        ({"turns": ["hi", {"simulate": 2}], "expect": CALL}, False),
        ({"goal": "Get it.", "expect": CALL}, False),
        ({"turns": SCRIPT, "expect": {"allow_empty": True}}, False),
    ],
)
def test_whether_code_alone_can_play_and_decide_a_scenario(fields: Any, by_code: bool) -> None:
    assert preflight.is_decided_by_code(scenario(**fields)) is by_code


def test_mocks_and_checks_that_cannot_be_loaded(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("def good(args): return 1\ndef check(trajectory): return True\nx = 1\n")
    base = {"base": str(tmp_path)}
    mocks = MockFunctions(timeout_s=1)

    def mocked(target: str) -> Scenario:
        return scenario(id=target, tools={"t": {"python": target, **base}})

    found = preflight.mock_problems([mocked("m.py:good"), mocked("m.py:x"), mocked("m.py:gone")], mocks)
    assert count(found) == 2
    checked = [scenario(expect={"python": [name]}, **base) for name in ("m.py:check", "m.py:gone", "m.py:x")]
    assert count(preflight.check_problems(checked)) == 2
    assert count(preflight.check_problems([])) == 0


def test_forbidden_calls_of_a_tool_with_nearly_the_same_name() -> None:
    tools = {"send_email": {"returns": 1}, "pay": {"returns": 1}}

    def warnings(*names: str, at_turn: bool = False) -> int:
        expect = {"tool_calls": {"forbidden": [{"name": name} for name in names]}}
        fields = {"turns": [{"user": "hi", "expect": expect}]} if at_turn else {"expect": expect}
        return count(preflight.misspelt_tools(scenario(tools=tools, **fields)))

    assert [warnings("send_emial"), warnings("send_email"), warnings("delete_all")] == [1, 0, 0]
    assert warnings("send_emial", "send_emails") == 2
    assert warnings("send_emial", at_turn=True) == 1
    assert count(preflight.misspelt_tools(scenario(tools=tools))) == 0


# ── agents and their tools ───────────────────────────────────────────────────────────────────────

UNSEEN = KnownVisibility(calls=ToolVisibility.DECLARED_UNSEEN)
ALL = KnownVisibility(calls=ToolVisibility.ALL)


@pytest.mark.parametrize(
    ("fields", "known", "problems"),
    [
        ({"expect": CALL}, UNSEEN, 1),
        ({"expect": CALL}, ALL, 0),
        ({"expect": CALL}, KnownVisibility(calls=ToolVisibility.UNSEEN), 0),
        ({"expect": CALL}, KnownVisibility(calls=ToolVisibility.PARTLY), 0),
        ({"expect": {"output": {"contains": "x"}}}, UNSEEN, 0),
        ({"expect": {"limits": {"steps": 0, "tool_calls": 0}}}, UNSEEN, 2),
        ({"expect": {"limits": {"steps": 3}}}, UNSEEN, 1),
        ({"expect": {"limits": {"tool_calls": 3}}}, UNSEEN, 1),
        ({"expect": {"limits": {"tokens": 3, "latency_ms": 5}}}, UNSEEN, 0),
        ({"turns": [{"user": "hi", "expect": CALL}], "expect": CALL}, UNSEEN, 2),
        ({"case": {"expected_tools": ["pay"]}}, UNSEEN, 1),
        ({"case": {"expected_tools": "none"}}, UNSEEN, 1),
        ({"case": {"expected_tools": []}}, UNSEEN, 0),
        ({"case": {"expected_output_contains": ["x"]}}, UNSEEN, 0),
    ],
)
def test_checks_of_calls_that_nobody_sees(fields: Any, known: KnownVisibility, problems: int) -> None:
    samples = played(scenario(**fields))
    assert count(preflight.checks_of_unseen_calls(samples, {"bot": known})) == problems
    assert count(preflight.checks_of_unseen_calls(samples, {"other": known})) == 0


T, U = AgentTool("t"), AgentTool("u")
HOSTED = AgentTool("t", hosted=True)
LATER = AgentTool("")
MORE = {"t": {"returns": 1}}


@pytest.mark.parametrize(
    ("tools", "problems"),
    [
        ({"x": [T]}, 0),
        ({"x": [U]}, 1),
        ({"x": []}, 1),
        ({}, 0),  # an agent whose tools are unknown may have any tool
        ({"x": [U, LATER]}, 0),
        ({"x": [HOSTED]}, 1),
        ({"x": [HOSTED, LATER]}, 1),
        ({"x": [HOSTED, T]}, 0),
    ],
)
def test_mocks_of_tools_that_no_agent_has(tools: Mapping[str, Any], problems: int) -> None:
    found = preflight.foreign_tools(played(scenario(tools=MORE), agents=("x",)), tools)
    assert count(found) == problems


@pytest.mark.parametrize(
    ("tools", "problems"),
    [
        ({"x": [U], "y": [T]}, 0),
        ({"x": [U], "y": [U]}, 1),
        ({"x": [U]}, 0),
        ({"x": [HOSTED]}, 1),
        ({"x": [HOSTED], "y": [T]}, 0),
    ],
)
def test_mocks_of_tools_with_two_agents(tools: Mapping[str, Any], problems: int) -> None:
    found = preflight.foreign_tools(played(scenario(tools=MORE), agents=("x", "y")), tools)
    assert count(found) == problems


@pytest.mark.parametrize(
    ("mock", "tools", "warnings"),
    [
        ("send_emial", [AgentTool("send_email"), LATER], 1),
        ("send_emial", [AgentTool("send_email")], 0),  # an error, as all its tools are known
        ("send_email", [AgentTool("send_email"), LATER], 0),
        ("send_email", [AgentTool("send_email"), AgentTool("send_emails"), LATER], 0),
        ("refund", [AgentTool("send_email"), LATER], 0),
        ("send_emial", [LATER], 0),
    ],
)
def test_mocks_with_nearly_the_name_of_a_tool(mock: str, tools: list[AgentTool], warnings: int) -> None:
    samples = played(scenario(tools={mock: {"returns": 1}}))
    assert count(preflight.misspelt_mocks(samples, {"bot": tools})) == warnings


def test_a_tool_that_is_mocked_itself_is_not_a_misspelling() -> None:
    tools = {"send_email": {"returns": 1}, "send_emails": {"returns": 1}}
    have = {"bot": [AgentTool("send_email"), LATER]}
    assert count(preflight.misspelt_mocks(played(scenario(tools=tools)), have)) == 0


@pytest.mark.parametrize(
    ("tools", "named"),
    [
        ([T], set()),
        ([T, U], {"u"}),
        ([U, AgentTool("v")], {"u", "v"}),
        ([AgentTool("h", hosted=True)], set()),
        ([AgentTool("g", is_agent=True)], set()),
        ([LATER], set()),
    ],
)
def test_tools_without_a_mock(tools: list[AgentTool], named: set[str]) -> None:
    samples = played(scenario(tools=MORE))
    for unmocked in ("error", "empty", "passthrough"):
        found = dict(preflight.unmocked_tools(samples, {"bot": tools}, unmocked))
        assert list(found) == (["bot"] if named else [])
        assert all(f"{name} (in 1 " in found["bot"] for name in named)
    assert list(preflight.unmocked_tools(samples, {}, "error")) == []


def test_in_how_many_scenarios_a_tool_is_not_mocked() -> None:
    samples = played(scenario("a", tools=MORE), scenario("b"), scenario("c"))
    ((agent, text),) = preflight.unmocked_tools(samples, {"bot": [T, U]}, "error")
    assert agent == "bot"
    assert "t (in 2 " in text
    assert "u (in 3 " in text


def test_scenarios_and_agents_of_samples_without_duplicates() -> None:
    first, second = scenario("a"), scenario("b")
    samples = [*played(first, agents=("y", "x")), *played(second), *played(first, agents=("x",))]
    assert preflight.agents_by_scenario(samples) == [(first, ("y", "x")), (second, ("bot",))]
    assert preflight.scenarios_of(samples) == (first, second)
    assert preflight.scenarios_of([]) == ()


@pytest.mark.parametrize(
    ("tools", "unmocked", "warnings"),
    [
        ({"bot": [AgentTool("pay")]}, "error", 0),
        ({"bot": [T]}, "error", 1),
        ({"bot": [T, LATER]}, "error", 0),
        ({}, "passthrough", 0),
        ({}, "error", 1),
        ({"bot": [T]}, "passthrough", 1),
    ],
)
def test_expected_calls_that_can_never_be_made(tools: Any, unmocked: str, warnings: int) -> None:
    samples = played(scenario(expect=CALL, tools=MORE))
    assert count(preflight.impossible_expectations(samples, tools, unmocked)) == warnings


# ── warnings about the suite ─────────────────────────────────────────────────────────────────────


def test_empty_lists_of_test_cases() -> None:
    both = scenario(case={"expected_tools": [], "expected_output_contains": []})
    one = scenario(case={"expected_tools": ["t"], "expected_output_contains": []})
    assert count(preflight.empty_lists([both, one, scenario(), scenario(case={})])) == 3
    tools, output = preflight.empty_lists([both])
    assert ["expected_tools: none" in text for text in (tools, output)] == [True, False]


REFUSED = {"goal": "Get it.", "goal_outcome": "refused"}


@pytest.mark.parametrize(
    ("scenarios", "warnings"),
    [
        ([REFUSED], 1),
        ([REFUSED, REFUSED], 1),
        ([REFUSED, {"goal": "Get it."}], 0),
        ([REFUSED, {}], 1),
        ([{"goal": "Get it."}], 0),
        ([{"goal": " ", "goal_outcome": "refused"}], 0),
        ([], 0),
    ],
)
def test_a_suite_that_an_agent_passes_by_refusing(scenarios: list[Any], warnings: int) -> None:
    made = [scenario(f"s{n}", **fields) for n, fields in enumerate(scenarios)]
    assert count(preflight.missing_twins(made)) == warnings


@pytest.mark.parametrize(("number", "named", "more"), [(3, 3, ""), (4, 3, " 1 more"), (9, 3, " 6 more")])
def test_how_many_refused_goals_are_named(number: int, named: int, more: str) -> None:
    (text,) = preflight.missing_twins([scenario(f"s{n}", **REFUSED) for n in range(number)])
    assert [f"'s{n}'" in text for n in range(number)] == [n < named for n in range(number)]
    assert more in text
    assert ("more" in text) is bool(more)


@pytest.mark.parametrize(
    ("fields", "warns"),
    [
        ({"goal": "x", "profile": "An attacker from afar."}, True),
        ({"goal": "x", "profile": "A patient customer."}, False),
        ({"goal": "x", "profile": "A hacker."}, True),
        ({"goal": "x", "profile": "Pretends to be the boss."}, True),
        ({"goal": "x", "tags": ["prompt-injection"]}, True),
        ({"goal": "x", "tags": ["red_team"]}, True),
        ({"goal": "x", "tags": ["booking"]}, False),
        ({"goal": " ", "profile": "An attacker."}, False),
        ({"goal": "x", "profile": "An attacker.", "goal_outcome": "refused"}, False),
        ({"goal": "x", "profile": "An attacker.", "goal_outcome": "reached"}, False),
    ],
)
def test_attackers_without_an_outcome(fields: Any, warns: bool) -> None:
    assert count(preflight.attackers_without_outcome([scenario(**fields)])) == warns


WORDS = (
    *("attacker", "adversarial", "malicious", "hackers", "hacking", "scam", "scammer", "fraudster"),
    *("swindler", "phishing", "con man", "con artist", "impersonator", "pretends to be", "jailbreak"),
    *("social engineering", "prompt injection", "red teamer", "thief", "blackmailer"),
)


@pytest.mark.parametrize("word", WORDS)
def test_words_that_identify_an_attacker(word: str) -> None:
    assert count(preflight.attackers_without_outcome([scenario(goal="x", profile=f"A {word}.")])) == 1
    tagged = scenario(goal="x", tags=[word.replace(" ", "-")])
    assert count(preflight.attackers_without_outcome([tagged])) == 1


@pytest.mark.parametrize(
    ("detectors", "problems"),
    [
        (None, 0),
        ([], 0),
        (["leak", "repetition"], 0),
        (["leak", "leaks"], 1),
        (["contradicts_evidence"], 1),
        (["contradicts_evidence", "leaks", "x"], 3),
    ],
)
def test_names_of_detectors(detectors: Any, problems: int) -> None:
    assert count(preflight.detector_problems(configured(detectors=detectors))) == problems


# ── models and prices ────────────────────────────────────────────────────────────────────────────


def chosen(*names: str) -> Metrics:
    by_name = {spec.name: spec for spec in SPECS}
    return Metrics(by_name, tuple(by_name[name] for name in names))


CRITERION = {"turns": SCRIPT, "expect": {"criteria": ["x"]}}
M = "openai/m"


@pytest.mark.parametrize(
    ("scenarios", "models", "judged", "no_judge", "problems"),
    [
        ([{"turns": SCRIPT}], {}, (), False, 0),
        ([{}], {}, (), False, 1),
        ([{}, {}], {}, (), False, 2),
        ([{}], {"user": M}, (), False, 0),
        ([{}], {"default": M}, ("stars",), False, 0),
        ([{}], {"judge": M}, ("stars",), False, 1),
        ([{"turns": SCRIPT}], {}, ("stars",), False, 1),
        ([{"turns": SCRIPT}] * 3, {}, ("stars", BEHAVIOR), False, 1),
        ([{"turns": SCRIPT}], {}, ("stars",), True, 0),
        ([{"turns": SCRIPT}], {"judge": M}, ("stars",), False, 0),
        ([{"turns": SCRIPT}], {"user": M}, ("stars",), False, 1),
        ([CRITERION], {}, (), False, 1),
        ([CRITERION, CRITERION], {}, (), False, 2),
        ([CRITERION], {}, ("stars",), False, 1),
        ([CRITERION], {}, (), True, 0),
        ([CRITERION], {"judge": M}, (), False, 0),
        ([{}], {}, ("stars",), False, 2),
    ],
)
def test_scenarios_that_need_a_model(
    scenarios: list[Any], models: Any, judged: Sequence[str], no_judge: bool, problems: int
) -> None:
    made = [scenario(f"s{n}", **fields) for n, fields in enumerate(scenarios)]
    found = preflight.model_problems(made, configured(models=models), chosen(*judged), no_judge=no_judge)
    assert count(found) == problems


@pytest.mark.parametrize(
    ("judged", "named", "more"),
    [(("stars", GOAL, BEHAVIOR), 3, False), (("stars", GOAL, BEHAVIOR, "policy_adherence"), 3, True)],
)
def test_how_many_metrics_are_named(judged: Sequence[str], named: int, more: bool) -> None:
    made = [scenario(turns=SCRIPT)]
    (problem,) = preflight.model_problems(made, configured(), chosen(*judged), no_judge=False)
    assert sum(name in problem.what for name in judged) == named
    assert ("1 more" in problem.what) is more
    assert ("more" in problem.what) is more


@pytest.mark.parametrize(("number", "needs"), [(0, "the"), (1, "1"), (2, "2"), (1500, "1,500")])
def test_how_many_scenarios_need_a_judge(number: int, needs: str) -> None:
    """Of none it is not known, because no file could be read."""
    made = [scenario(turns=SCRIPT)] * number
    (problem,) = preflight.model_problems(made, configured(), chosen("stars"), no_judge=False)
    assert problem.what.split()[0] == needs


USER, JUDGE, DEDUP = "openai/u", "openai/j", "openai/d"
ROLES = {"user": USER, "judge": JUDGE, "dedup": DEDUP}
PRICE = {"input": 1, "output": 1}


@pytest.mark.parametrize(
    ("fields", "judged", "no_judge", "budget", "prices", "unpriced"),
    [
        ({}, ("stars",), False, {}, (), set()),
        ({}, ("stars",), False, {"max_calls": 5}, (), set()),
        ({}, ("stars",), False, {"max_cost": 5}, (), {USER, JUDGE, DEDUP}),
        ({}, ("stars",), False, {"max_cost": 5}, (USER, DEDUP), {JUDGE}),
        ({}, ("stars",), True, {"max_cost": 5}, (), {USER}),
        ({}, (), False, {"max_cost": 5}, (), {USER, JUDGE, DEDUP}),  # a judge reviews the simulated user
        ({"turns": SCRIPT}, ("stars",), False, {"max_cost": 5}, (), {JUDGE, DEDUP}),
        ({"turns": SCRIPT}, (), False, {"max_cost": 5}, (), {DEDUP}),
        (CRITERION, (), False, {"max_cost": 5}, (), {JUDGE, DEDUP}),
        ({"turns": SCRIPT}, (), True, {"max_cost": 5}, (), set()),
        ({}, ("stars",), False, {"by_role": {"judge": {"max_cost": 1}}}, (), {JUDGE}),
        ({}, ("stars",), False, {"by_role": {"judge": {"max_calls": 1}}}, (), set()),
    ],
)
def test_models_whose_price_is_needed(
    fields: Any, judged: Sequence[str], no_judge: bool, budget: Any, prices: Sequence[str], unpriced: set[str]
) -> None:
    config = configured(models=ROLES, budget=budget, prices=dict.fromkeys(prices, PRICE))
    found = list(preflight.price_problems([scenario(**fields)], config, chosen(*judged), no_judge=no_judge))
    assert {name for name in ROLES.values() for problem in found if name in problem.what} == unpriced
    assert len(found) == len(unpriced)


def test_one_scenario_with_criteria_needs_a_judge() -> None:
    both = [scenario("a", turns=SCRIPT), scenario("b", **CRITERION)]
    config = configured(models=ROLES, budget={"max_cost": 5})
    assert count(preflight.price_problems(both, config, chosen(), no_judge=False)) == 2
    assert count(preflight.price_problems(both[:1], config, chosen(), no_judge=False)) == 1
    mixed = [scenario("a", turns=SCRIPT), scenario("b")]
    assert count(preflight.price_problems(mixed, config, chosen(), no_judge=False)) == 3


def test_a_model_of_two_roles_is_reported_once() -> None:
    config = configured(models={"default": "openai/m"}, budget={"max_cost": 5})
    assert count(preflight.price_problems([scenario()], config, chosen("stars"), no_judge=False)) == 1
    free = configured(models={"default": "scripted/m.yaml"}, budget={"max_cost": 5})
    assert count(preflight.price_problems([scenario()], free, chosen("stars"), no_judge=False)) == 0


@pytest.mark.parametrize(
    ("budget", "role", "key"),
    [
        ({}, "agent", ""),
        ({"max_cost": 5}, "agent", "budget.max_cost"),
        ({"by_role": {"agent": {"max_cost": 5}}}, "agent", "budget.by_role.agent.max_cost"),
        ({"by_role": {"agent": {"max_cost": 5}}}, "judge", ""),
        ({"by_role": {"agent": {"max_calls": 5}}}, "agent", ""),
        ({"max_cost": 1, "by_role": {"agent": {"max_cost": 5}}}, "agent", "budget.max_cost"),
    ],
)
def test_the_key_of_the_cost_limit(budget: Any, role: str, key: str) -> None:
    config = configured(budget=budget, prices={"priced": PRICE})
    assert preflight.cost_limit_key(config, role) == key
    if role == "agent":
        assert preflight.unpriced_agents(["bot", "priced"], config) == (("bot",) if key else ())


def test_where_a_missing_price_is_reported() -> None:
    config = configured(models=ROLES, budget={"max_cost": 5}, prices=dict.fromkeys((USER, JUDGE), PRICE))
    located = config.model_copy(update={"source": "c.yaml", "lines": {"budget.max_cost": 4}})
    (problem,) = preflight.price_problems([scenario()], located, chosen("stars"), no_judge=False)
    assert problem.place is not None
    assert (problem.place.path, problem.place.line) == (Place("c.yaml").path, 4)
