"""Whether two runs measured the same."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.run_summary import RunSummary, ScenarioSummary
from agenteval.verdict.comparability import (
    LostAgent,
    UnmatchedScenario,
    find_differences,
    match_agents,
    why_not_comparable,
)


def scenario(id: str = "a", agent: str = "bot", **more: Any) -> ScenarioSummary:
    return ScenarioSummary(id=id, agent=agent, **{"content": {"turns": "1", "tools": "1"}, **more})


def run(*scenarios: ScenarioSummary, **more: Any) -> RunSummary:
    return RunSummary(run_id="r", started_at="", scenarios=scenarios or (scenario(),), **more)


# ── agents ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("before", "after", "pairs", "only_in"),
    [
        (["x"], ["x"], [("x", "x")], []),
        (["x"], ["y"], [("x", "y")], []),  # each run has one
        (["x", "y"], ["y", "x"], [("x", "x"), ("y", "y")], []),
        (["x", "y"], ["x"], [("x", "x")], [("y", "first")]),
        (["x"], ["x", "y"], [("x", "x")], [("y", "second")]),
        (["x", "y"], ["z"], [], [("x", "first"), ("y", "first"), ("z", "second")]),
        (["x", "y"], ["y", "z"], [("y", "y")], [("x", "first"), ("z", "second")]),
    ],
)
def test_agents_are_paired_by_name(
    before: list[str], after: list[str], pairs: list[tuple[str, str]], only_in: list[tuple[str, str]]
) -> None:
    first = run(*(scenario(agent=name) for name in before))
    second = run(*(scenario(agent=name) for name in after))
    matched, lost = match_agents(first, second)
    assert [(each.before, each.after) for each in matched] == pairs
    assert list(lost) == [LostAgent(*each) for each in only_in]
    assert all(each.only_in in each.sentence and each.name in each.sentence for each in lost)


# ── scenarios ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("before", "after", "parts"),
    [
        ({"turns": "1"}, {"turns": "1"}, None),
        ({"turns": "1"}, {"turns": "2"}, ("turns",)),
        ({"turns": "1"}, {"turns": "1", "goal": "1"}, ("goal",)),
        ({"turns": "1", "goal": "1"}, {"turns": "1"}, ("goal",)),
        ({"turns": "1", "goal": "1"}, {"turns": "2", "goal": "2"}, ("goal", "turns")),
        ({}, {}, None),
    ],
)
def test_scenarios_that_are_the_same(before: Any, after: Any, parts: tuple[str, ...] | None) -> None:
    ((matched,), _) = match_agents(run(scenario(content=before)), run(scenario(content=after)))
    assert len(matched.pairs) == (parts is None)
    assert [each.parts for each in matched.unmatched_scenarios] == ([] if parts is None else [parts])


def test_scenarios_of_one_run_only() -> None:
    ((matched,), _) = match_agents(run(scenario("b"), scenario("a")), run(scenario("c"), scenario("b")))
    assert [(old.id, new.id) for old, new in matched.pairs] == [("b", "b")]
    assert [
        (each.scenario, each.before is None, each.after is None) for each in matched.unmatched_scenarios
    ] == [
        ("a", False, True),
        ("c", True, False),
    ]


def test_scenarios_are_matched_agent_by_agent() -> None:
    first = run(scenario("a", "x"), scenario("a", "y", content={"turns": "2"}))
    second = run(scenario("a", "x"), scenario("a", "y"))
    one, two = match_agents(first, second)[0]
    assert (len(one.pairs), len(two.pairs), len(two.unmatched_scenarios)) == (1, 0, 1)


@pytest.mark.parametrize(
    ("before", "after", "facts", "absent"),
    [
        (scenario(), None, ["'a'", "first"], ["second"]),
        (None, scenario(), ["'a'", "second"], ["first"]),
        (scenario(), scenario(), ["'a'", "goal, turns"], ["first", "second"]),
    ],
)
def test_what_is_stated_of_an_unmatched_scenario(
    before: Any, after: Any, facts: list[str], absent: list[str]
) -> None:
    text = UnmatchedScenario("a", before, after, ("goal", "turns")).sentence
    assert all(fact in text for fact in facts)
    assert not any(fact in text for fact in absent)


# ── the setups ───────────────────────────────────────────────────────────────────────────────────

SIM, CRIT = {"simulated": True}, {"criteria": True}
OWN_PROMPT = {**SIM, "content": {"goal": "1", "user_prompt": "1"}}


def problems(before: dict[str, Any], after: dict[str, Any], **fields: Any) -> list[str]:
    return [
        problem.what
        for problem in why_not_comparable(run(scenario(**fields), **before), run(scenario(**fields), **after))
    ]


@pytest.mark.parametrize(
    ("before", "after", "fields", "count"),
    [
        ({}, {}, {}, 0),
        # The prompts of what was judged in both runs.
        ({"judged": ("m",), "prompts": {"m": "1"}}, {"judged": ("m",), "prompts": {"m": "1"}}, {}, 0),
        ({"judged": ("m",), "prompts": {"m": "1"}}, {"judged": ("m",), "prompts": {"m": "2"}}, {}, 1),
        ({"judged": ("m",), "prompts": {"m": "1"}}, {"judged": ("m",)}, {}, 1),
        ({"judged": ("m",), "prompts": {"m": "1"}}, {"prompts": {"m": "2"}}, {}, 0),
        ({"prompts": {"criteria": "1"}}, {"prompts": {"criteria": "2"}}, {}, 0),
        ({"prompts": {"criteria": "1"}}, {"prompts": {"criteria": "2"}}, CRIT, 1),
        ({"prompts": {"simulated_user": "1"}}, {"prompts": {"simulated_user": "2"}}, {}, 0),
        ({"prompts": {"simulated_user": "1"}}, {"prompts": {"simulated_user": "2"}}, SIM, 1),
        ({"prompts": {"simulated_user": "1"}}, {"prompts": {"simulated_user": "2"}}, OWN_PROMPT, 0),
        ({"prompts": {"user_review": "1"}}, {"prompts": {"user_review": "2"}}, OWN_PROMPT, 1),
        ({"prompts": {"user_review": "1"}}, {"prompts": {"user_review": "2"}}, SIM, 1),
        ({"prompts": {"user_review": "1"}}, {"prompts": {"user_review": "2"}}, CRIT, 0),
        # Metrics that may decide who passes.
        ({"decisive": ("m",)}, {"decisive": ("m",)}, {}, 0),
        ({"decisive": ("m",)}, {}, {}, 1),
        ({}, {"decisive": ("m", "n")}, {}, 2),
        # The models that judged and played.
        ({"judge": {"model": "a"}}, {"judge": {"model": "b"}}, {}, 0),
        ({"judge": {"model": "a"}}, {"judge": {"model": "b"}}, CRIT, 1),
        ({"judged": ("m",), "judge": {"model": "a"}}, {"judged": ("m",), "judge": {"model": "b"}}, {}, 1),
        ({"judged": ("m",), "judge": {"model": "a"}}, {"judge": {"model": "b"}}, {}, 0),
        ({"judged_by": ("a",)}, {"judged_by": ("b",)}, CRIT, 1),
        ({"judged_by": ("a", "b")}, {"judged_by": ("b", "a")}, CRIT, 0),
        ({"judged_by": ("a",)}, {"judged_by": ()}, CRIT, 0),
        ({"judged_by": ()}, {"judged_by": ("a",)}, CRIT, 0),
        ({"judged_by": ("a",)}, {"judged_by": ("b",)}, {}, 0),
        # Fewer metrics may mean fewer judges.
        ({"judged": ("m", "n"), "judged_by": ("a", "b")}, {"judged": ("m",), "judged_by": ("a",)}, {}, 0),
        ({"judged": ("m",), "judged_by": ("a", "b")}, {"judged": ("m",), "judged_by": ("a",)}, {}, 1),
        ({"user": {"model": "a"}}, {"user": {"model": "b"}}, {}, 0),
        ({"user": {"model": "a"}}, {"user": {"model": "b"}}, SIM, 1),
        ({"played_by": ("a",)}, {"played_by": ("b",)}, SIM, 1),
        ({"played_by": ("a",)}, {"played_by": ("b",)}, {}, 0),
        # Settings.
        ({"settings": {"fail_on_severity": "high"}}, {"settings": {"fail_on_severity": "high"}}, {}, 0),
        ({"settings": {"fail_on_severity": "high"}}, {"settings": {"fail_on_severity": "low"}}, {}, 1),
        ({"settings": {"fail_on_severity": "high"}}, {}, {}, 1),
        ({"settings": {"max_turns": 3}}, {"settings": {"max_turns": 4}}, {}, 0),
        ({"settings": {"max_turns": 3}}, {"settings": {"max_turns": 4}}, SIM, 1),
        ({"settings": {"a": 1, "b": 1}}, {"settings": {"a": 2, "b": 2}}, {}, 2),
    ],
)
def test_differences_between_setups(before: Any, after: Any, fields: Any, count: int) -> None:
    assert len(problems(before, after, **fields)) == count
    assert len(problems(after, before, **fields)) == count


def test_which_run_judged_a_metric_alone() -> None:
    assert "first" in problems({"decisive": ("m",)}, {})[0]
    assert "second" in problems({}, {"decisive": ("m",)})[0]


def test_only_scenarios_of_both_runs_count_for_the_setup() -> None:
    before = run(scenario(), scenario("b", simulated=True), user={"model": "a"})
    after = run(scenario(), user={"model": "b"})
    assert why_not_comparable(before, after) == ()


@pytest.mark.parametrize("field", ["criteria", "simulated"])
def test_one_scenario_is_enough_to_need_the_same_prompts(field: str) -> None:
    def with_prompt(text: str) -> RunSummary:
        prompts = {"criteria": text, "simulated_user": text}
        return run(scenario(), scenario("b", **{field: True}), scenario("c"), prompts=prompts)

    assert len(why_not_comparable(with_prompt("1"), with_prompt("2"))) == 1


def test_which_keys_of_a_model_differ() -> None:
    before = {"judge": {"model": "m", "temperature": 0.25, "client": "sdk"}}
    after = {"judge": {"model": "m", "max_tokens": 77, "client": "http"}}
    (text,) = problems(before, after, criteria=True)
    keys = ("model m", "temperature 0.25", "max_tokens", "77", "client sdk", "http")
    assert [key in text for key in keys] == [False, True, True, True, True, True]


@pytest.mark.parametrize(("changed", "count"), [(1, 2), (8, 9), (9, 10), (20, 10)])
def test_runs_without_a_common_scenario(changed: int, count: int) -> None:
    """One problem for that, one for each of the first eight, and one for the rest."""
    before = run(*(scenario(f"s{n}") for n in range(changed)))
    after = run(*(scenario(f"s{n}", content={"turns": "2"}) for n in range(changed)))
    found = why_not_comparable(before, after)
    assert len(found) == count
    assert (f" {changed - 8} " in found[-1].what) is (changed > 8)


def test_agents_of_one_run_only_are_named_where_nothing_can_be_compared() -> None:
    before, after = run(scenario(agent="x"), scenario(agent="y")), run(scenario(agent="z"))
    texts = [problem.what for problem in why_not_comparable(before, after)]
    assert len(texts) == 4
    assert [name for name in "xyz" if any(f"'{name}'" in text for text in texts)] == ["x", "y", "z"]


# ── all differences ──────────────────────────────────────────────────────────────────────────────


def test_all_differences_are_found_also_where_nothing_can_be_compared() -> None:
    before = run(scenario("a"), scenario("b"), settings={"now": "1"})
    after = run(scenario("c"), settings={"now": "2"})
    found = find_differences(before, after)
    assert [each.scenario for each in found.unmatched_scenarios] == ["a", "b", "c"]
    assert [(each.before, each.after) for each in found.agents] == [("bot", "bot")]
    (setup,) = found.setup
    assert "'now'" in setup
    assert found.lost_agents == ()


def test_the_same_runs_have_no_differences() -> None:
    found = find_differences(run(), run())
    assert (found.unmatched_scenarios, found.lost_agents, found.setup) == ((), (), ())
