"""``gates.latency_ms``, ``tokens``, ``steps``, ``tool_calls``, ``cost`` and the shares of the dimensions,
through the command line. Agents say themselves how long they took: nothing here depends on a clock."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.kit import Done, Project

AGENT = """
from agenteval import AgentReply
from agenteval.core.trajectory import Usage

MS = {ms!r}

def agent(messages, ctx):
    ms = MS[ctx.scenario_id]
    if isinstance(ms, list):
        ms = ms[ctx.epoch]
    return AgentReply(text="done", latency_ms=ms{more})
"""
CHECK = "expect: {output: {contains: [done]}}"
SEED = {"e-01": 2237, "e-02": 4112, "e-03": 5151}


def agent(project: Project, ms: dict[str, Any], more: str = "") -> None:
    project.agent(AGENT.format(ms=ms, more=more))


def suite(project: Project, ids: Any, config: str, *, category: str = "efficiency") -> None:
    lines = "".join(f"  - {{id: {id}, turns: [hi], category: {category}, {CHECK}}}\n" for id in ids)
    project.scenarios(f"scenarios:\n{lines}")
    project.config(config)


def row(project: Project, name: str) -> dict[str, Any]:
    (found,) = [gate for gate in project.results()["summary"]["gates"] if gate["name"] == name]
    return found  # type: ignore[no-any-return]


def last(done: Done) -> str:
    return done.out.splitlines()[-1]


# ── against a number ─────────────────────────────────────────────────────────────────────────────


def test_one_line_decides_whether_the_agent_became_fast_enough(project: Project) -> None:
    """3,833 ms on average, down to 1,500."""
    suite(project, SEED, "gates: {latency_ms: {mean: 1500}}\n")
    agent(project, SEED)
    done = project.run("--report", "markdown=report.md", "--report", "junit=junit.xml")
    assert done.code == 1
    found = row(project, "latency_ms.mean")
    assert round(found["value"]) == 3833
    assert found["bound"] == "at most 1,500 ms"
    assert found["where"] == "agenteval.yaml:3"
    assert "3 conversations; highest: e-03 5,151 ms" in found["basis"]
    assert "latency_ms.mean failed" in last(done)
    for file in ("report.md", "junit.xml"):
        text = (project.root / file).read_text(encoding="utf-8")
        assert "latency_ms.mean" in text.replace("\\", "")
        assert "at most 1,500 ms" in text
    assert "latency_ms.mean" in project.call("report", "latest", "--report", "github").out

    agent(project, {"e-01": 900, "e-02": 1700, "e-03": 1900})
    assert project.run().code == 0
    assert row(project, "latency_ms.mean")["verdict"] == "passed"


@pytest.mark.parametrize(
    ("bound", "code"),
    [
        ("p50: 4112", 0),
        ("p50: 4111", 1),
        ("p95: 5151", 0),
        ("p95: 5150", 1),
        ("max: 5151", 0),
        ("max: 5150", 1),
    ],
)
def test_each_statistic_has_its_bound(project: Project, bound: str, code: int) -> None:
    suite(project, SEED, f"gates: {{latency_ms: {{{bound}}}}}\n")
    agent(project, SEED)
    assert project.run().code == code


def test_a_number_that_is_kept_excuses_no_failed_sample(project: Project) -> None:
    """These gates are beside "every sample passes", not in its place."""
    suite(project, ["a"], "gates: {latency_ms: {mean: 1500}}\n")
    project.scenarios("scenarios: [{id: a, turns: [hi], expect: {output: {contains: [shipped]}}}]\n")
    agent(project, {"a": 10})
    assert project.run().code == 1
    assert row(project, "latency_ms.mean")["verdict"] == "passed"
    assert row(project, "every sample passes")["verdict"] == "failed"


def test_tokens_that_nobody_reports_are_estimated_and_said_to_be(project: Project) -> None:
    suite(project, ["a"], "gates: {tokens: {mean: 100}}\n")
    agent(project, {"a": 10})
    assert project.run().code == 0
    assert "tokens estimated" in row(project, "tokens.mean")["basis"]
    agent(project, {"a": 10}, ", usage=Usage(calls=1, input_tokens=90, output_tokens=20)")
    assert project.run().code == 1
    assert row(project, "tokens.mean")["value"] == 110


def test_an_unknown_price_is_not_a_cost_of_nothing(project: Project) -> None:
    suite(project, ["a"], "gates: {cost: {mean: 0.001}}\n")
    usage = ", usage=Usage(calls=1, input_tokens=1000, output_tokens=1000)"
    agent(project, {"a": 10}, usage)
    done = project.run()
    assert done.code == 3
    assert "add prices: {bot:" in row(project, "cost.mean")["basis"]
    for price, code in ((0.4, 0), (0.6, 1)):
        project.config(
            f"gates: {{cost: {{mean: 0.001}}}}\nprices: {{bot: {{input: {price}, output: {price}}}}}\n"
        )
        assert project.run().code == code
    assert row(project, "cost.mean")["value"] == pytest.approx(0.0012)


def test_a_cost_that_the_agent_tells_needs_no_price(project: Project) -> None:
    suite(project, ["a"], "gates: {cost: {max: 0.01}}\n")
    for cost, code in ((0.009, 0), (0.011, 1)):
        agent(project, {"a": 10}, f", usage=Usage(calls=1, input_tokens=5, output_tokens=5, cost={cost})")
        assert project.run().code == code


CALLING = """
async def agent(messages, ctx):
    for _ in range({calls}):
        await ctx.call_tool("look", {{}})
    return "done"
"""


def test_calls_and_steps_are_counted_where_they_can_be_seen(project: Project) -> None:
    look = "tools: {look: {returns: 1}}, "
    project.scenarios(f"scenarios: [{{id: a, turns: [hi], {look}{CHECK}}}]\n")
    project.config("gates: {tool_calls: {max: 2}, steps: {max: 3}}\n")
    for calls, code in ((2, 0), (3, 1)):
        project.agent(CALLING.format(calls=calls))
        assert project.run().code == code
    assert row(project, "tool_calls.max")["verdict"] == "failed"


def test_calls_that_nobody_could_see_are_not_none(project: Project) -> None:
    suite(project, ["a"], "gates: {tool_calls: {max: 2}}\n")
    agent(project, {"a": 10})
    assert project.run().code == 3
    assert "not all of the agent's calls are seen" in row(project, "tool_calls.max")["basis"]


def test_a_lost_conversation_counts_in_none_and_is_told(project: Project) -> None:
    suite(project, ["a"], "epochs: 2\ngates: {latency_ms: {mean: 1500}}\nfault_tolerance: 0.5\n")
    project.agent("""
from agenteval import AgentReply

def agent(messages, ctx):
    if ctx.epoch:
        raise ConnectionError("refused")
    return AgentReply(text="done", latency_ms=10)
""")
    assert project.run().code == 0
    assert row(project, "latency_ms.mean")["basis"] == "1 conversation; 1 errored"
    project.agent('def agent(messages, ctx):\n    raise ConnectionError("refused")\n')
    assert project.run().code == 3
    assert "no conversation was completed" in row(project, "latency_ms.mean")["basis"]


def test_what_the_agent_broke_off_counts_and_is_told(project: Project) -> None:
    suite(project, ["a"], "gates: {latency_ms: {max: 100000}}\n")
    project.agent('def agent(messages, ctx):\n    raise ValueError("x")\n')
    assert project.run().code == 1
    assert "1 broken off by the agent" in row(project, "latency_ms.max")["basis"]


def test_recorded_conversations_without_times_are_not_fast(project: Project) -> None:
    project.config("gates: {latency_ms: {mean: 1500}}\n")
    line = '{"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "done"}]}\n'
    project.write("log.jsonl", line)
    done = project.call("score", "log.jsonl", "--report", "json=results.json", "--no-judge")
    assert done.code == 3
    assert "1 of 1 conversation: no times were recorded" in row(project, "latency_ms.mean")["basis"]


# ── against the baseline ─────────────────────────────────────────────────────────────────────────


SIX = [f"s{number}" for number in range(6)]
BEFORE = {name: 1000 + 300 * number for number, name in enumerate(SIX)}


def began(project: Project, config: str = "gates: {latency_ms: {no_worse_than: 1.2}}\n") -> None:
    suite(project, BEFORE, config)
    agent(project, BEFORE)
    project.run()
    (folder,) = (project.root / ".agenteval/runs").iterdir()
    folder.rename(folder.with_name("20200101-000000-base"))


def again(project: Project, ms: dict[str, Any]) -> Done:
    agent(project, ms)
    return project.run("--baseline", ".agenteval/runs/20200101-000000-base")


def times(*factors: float) -> dict[str, float]:
    return {name: BEFORE[name] * factor for name, factor in zip(SIX, factors, strict=True)}


def test_no_worse_than_the_baseline_is_red_green_or_not_decided(project: Project) -> None:
    began(project)
    done = again(project, times(0.9, 1.0, 1.05, 0.95, 1.02, 0.97))
    assert done.code == 0, done.all
    found = row(project, "latency_ms.no_worse_than")
    assert "90 % interval" in found["basis"]
    assert "gates nothing" not in done.out
    assert again(project, times(1.5, 1.6, 1.45, 1.5, 1.7, 1.4)).code == 1
    assert row(project, "latency_ms.no_worse_than")["bound"] == "at most × 1.2"
    assert again(project, times(2.0, 0.5, 1.1, 1.0, 1.6, 0.9)).code == 3
    assert "would decide" in row(project, "latency_ms.no_worse_than")["basis"]


def test_without_a_baseline_nothing_is_decided(project: Project) -> None:
    suite(project, BEFORE, "gates: {latency_ms: {no_worse_than: 1.2}}\n")
    agent(project, BEFORE)
    assert project.run().code == 3
    assert "run with --baseline" in row(project, "latency_ms.no_worse_than")["basis"]


def test_one_scenario_is_too_little_and_validate_says_so_before(project: Project) -> None:
    suite(project, ["a"], "gates: {latency_ms: {no_worse_than: 1.2}}\n")
    agent(project, {"a": 1000})
    assert "never decided with one scenario" in project.call("validate").out
    project.run()
    agent(project, {"a": 10})
    assert project.run("--baseline", "latest").code == 3
    assert "at least 2 are needed" in row(project, "latency_ms.no_worse_than")["basis"]
    suite(project, SIX, "gates: {latency_ms: {no_worse_than: 1.2}}\n")
    assert "mostly not decided if they scatter more" in project.call("validate").out


def test_a_number_that_one_run_does_not_know_decides_nothing(project: Project) -> None:
    began(project, "gates: {cost: {no_worse_than: 1.2}}\n")
    assert again(project, BEFORE).code == 3
    assert "add prices" in row(project, "cost.no_worse_than")["basis"]


# ── the shares of the dimensions ─────────────────────────────────────────────────────────────────


CASES = """
cases:
  - {id: c-01, input: "Beijing?", expected_tools: [get_weather], expected_output_contains: ["25"]}
  - {id: c-02, input: "2 + 2?", expected_tools: [calculator], expected_output_contains: ["25"]}
  - {id: c-03, input: "Pro?", expected_tools: [get_product], expected_output_contains: ["25"]}
  - {id: c-04, input: "Both?", expected_tools: [get_weather, calculator], expected_output_contains: ["25"]}
  - {id: c-05, input: "Basic?", expected_tools: [get_product, calculator], expected_output_contains: ["25"]}
defaults:
  tools: {get_weather: {returns: 1}, calculator: {returns: 1}, get_product: {returns: 1}, drop: {returns: 1}}
"""
SHORTCUT = """
WRONG = {wrong!r}

async def agent(messages, ctx):
    text = messages[-1]["content"]
    tools = {{"B": ["get_weather"], "2": ["calculator"], "P": ["get_product"]}}[text[0]]
    if text.startswith("Both"):
        tools = ["get_weather", "calculator"]
    if text.startswith("Basic"):
        tools = ["calculator"]
    for tool in tools:
        await ctx.call_tool(tool, {{}})
    if ctx.scenario_id in WRONG.get("drop", ()):
        await ctx.call_tool("drop", {{}})
    return "?" if ctx.scenario_id in WRONG.get("says", ()) else "25"
"""


def shortcut(project: Project, **wrong: list[str]) -> None:
    project.agent(SHORTCUT.format(wrong=wrong))


def test_nine_tenths_of_the_tools_is_enough_where_that_is_asked_for(project: Project) -> None:
    """The benchmark of five cases, one of which takes a shortcut: 90 %."""
    project.scenarios(CASES)
    shortcut(project)
    project.config("")
    assert project.run().code == 1
    project.config("gates: {tool_accuracy: 0.9}\n")
    done = project.run()
    assert done.code == 0, done.all
    found = row(project, "tool_accuracy")
    assert found["value"] == 0.9
    assert "5 conversations of test cases with expected_tools; below 1: c-05 0.5" in found["basis"]
    assert "left to the share gates" in row(project, "every sample passes")["basis"]
    assert "passed no conversation" in last(done)
    project.config("gates: {tool_accuracy: {at_least: 0.95}}\n")
    assert project.run().code == 1
    assert row(project, "tool_accuracy")["verdict"] == "failed"


def test_a_share_excuses_only_what_it_counts(project: Project) -> None:
    project.scenarios(CASES)
    shortcut(project, says=["c-05"])
    project.config("gates: {tool_accuracy: 0.9}\n")
    assert project.run().code == 1
    assert row(project, "every sample passes")["verdict"] == "failed"
    project.config("gates: {tool_accuracy: 0.9, output_accuracy: 0.8}\n")
    assert project.run().code == 0
    assert row(project, "output_accuracy")["value"] == 0.8
    project.config("gates: {tool_accuracy: 0.9, output_accuracy: 0.81}\n")
    assert project.run().code == 1


def test_a_forbidden_call_is_no_matter_of_a_share(project: Project) -> None:
    case = "cases: [{id: c-05, input: Basic?, expected_tools: [get_product], tools: {calculator: {returns: 1}"
    case += ", get_product: {returns: 1}, drop: {returns: 1}},"
    case += " expect: {tool_calls: {forbidden: [{name: drop}]}}}]\n"
    project.scenarios(case)
    project.config("gates: {tool_accuracy: 0.01}\n")
    shortcut(project, drop=["c-05"])
    assert project.run().code == 1


ROBUST = """
def agent(messages, ctx):
    if ctx.scenario_id == "r-01":
        raise ValueError("prompt parameter not received")
    return "I cannot"
"""


def test_four_fifths_of_the_edge_cases(project: Project) -> None:
    suite(project, [f"r-0{n}" for n in range(1, 6)], "gates: {robustness: 0.8}\n", category="robustness")
    text = (project.root / "scenarios/suite.yaml").read_text(encoding="utf-8")
    project.scenarios(text.replace("[done]", "[cannot]"))
    project.agent(ROBUST)
    assert project.run().code == 0
    assert row(project, "robustness")["value"] == 0.8
    project.config("gates: {robustness: 0.9}\n")
    assert project.run().code == 1


def test_what_is_not_known_decides_a_share_only_where_it_would(project: Project) -> None:
    suite(
        project,
        [f"r-0{n}" for n in range(1, 6)],
        "epochs: 2\ngates: {robustness: 0.8}\nfault_tolerance: 0.2\n",
        category="robustness",
    )
    lost = 'raise ConnectionError("refused")'
    robust = ROBUST.replace('raise ValueError("prompt parameter not received")', lost)
    project.agent(robust.replace(' == "r-01"', ' in ("r-01", "r-02") and ctx.epoch'))
    text = (project.root / "scenarios/suite.yaml").read_text(encoding="utf-8")
    project.scenarios(text.replace("[done]", "[cannot]"))
    assert project.run().code == 0
    assert "2 not known: 0.8 to 1" in row(project, "robustness")["basis"]
    project.config("epochs: 2\ngates: {robustness: 0.9}\nfault_tolerance: 0.2\n")
    assert project.run().code == 3


def test_a_selection_without_what_a_share_counts_is_not_asked_for_it(project: Project) -> None:
    project.scenarios(CASES + f"scenarios: [{{id: plain, turns: [hi], {CHECK}}}]\n")
    project.agent('def agent(messages, ctx):\n    return "done"\n')
    project.config("gates: {tool_accuracy: 0.9}\n")
    done = project.run("-s", "plain")
    assert done.code == 0, done.all
    assert "tool_accuracy (applies to no selected scenario)" in done.out
    project.scenarios(f"scenarios: [{{id: plain, turns: [hi], {CHECK}}}]\n")
    assert project.run().code == 3
    assert (
        "no conversation of test cases with expected_tools was run" in row(project, "tool_accuracy")["basis"]
    )


# ── mistakes ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("latency_ms: {}", "no bound is set — write mean, p50, p95, max or no_worse_than with a number"),
        ("latency_ms: 1500", "{mean: 1500}"),
        ("latency_ms: {meen: 1500}", "did you mean 'mean'"),
        ("latency_ms: {mean: fast}", "number"),
        ("latency_ms: {no_worse_than: 0}", "must be more than 0"),
        ("tool_accuracy: 90", "1"),
        ("tool_accuracy: {atleast: 0.9}", "did you mean 'at_least'"),
        ("latency: {mean: 1500}", "did you mean 'latency_ms'"),
    ],
)
def test_a_gate_that_is_written_wrong_is_refused_at_its_place(
    project: Project, written: str, said: str
) -> None:
    suite(project, ["a"], f"gates: {{{written}}}\n")
    done = project.call("validate")
    assert done.code == 2
    assert "agenteval.yaml:3:" in done.err
    assert said in done.err
