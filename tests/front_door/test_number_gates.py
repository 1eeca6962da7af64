"""``gates.latency_ms``, ``tokens``, ``steps``, ``tool_calls``, ``cost`` and the shares of the dimensions,
through the command line. Agents say themselves how long they took: nothing here depends on a clock."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.kit import Project
from tests.support.results import gate, has, last_line, reports

AGENT = """
from agenteval import AgentReply
from agenteval.core.trajectory import Usage

MS = {ms!r}

def agent(messages, ctx):
    return AgentReply(text="done", latency_ms=MS[ctx.scenario_id])
"""
CHECK = "expect: {output: {contains: [done]}}"
SEED = {"e-01": 2237, "e-02": 4112, "e-03": 5151}


def agent(project: Project, ms: dict[str, Any]) -> None:
    project.agent(AGENT.format(ms=ms))


def suite(project: Project, ids: Any, config: str, *, more: str = f"category: efficiency, {CHECK}") -> None:
    lines = "".join(f"  - {{id: {id}, turns: [hi], {more}}}\n" for id in ids)
    project.scenarios(f"scenarios:\n{lines}")
    project.config(config)


# ── against a number ─────────────────────────────────────────────────────────────────────────────


def test_one_line_decides_whether_the_agent_became_fast_enough(project: Project) -> None:
    """3,833 ms on average, down to 1,500."""
    suite(project, SEED, "gates: {latency_ms: {mean: 1500}}\n")
    agent(project, SEED)
    done = project.run("--report", "markdown=report.md", "--report", "junit=junit.xml")
    assert done.code == 1
    found = gate(project, "latency_ms.mean")
    assert (round(found["value"]), found["where"]) == (3833, "agenteval.yaml:3")
    assert "1,500 ms" in found["bound"]
    assert has(found["basis"], "3 conversations", "e-03 5,151 ms")
    assert "latency_ms.mean" in last_line(done)
    for file in ("report.md", "junit.xml"):
        text = (project.root / file).read_text(encoding="utf-8")
        assert "latency_ms.mean" in text.replace("\\", "")
        assert "1,500 ms" in text
    assert "latency_ms.mean" in project.call("report", "latest", "--report", "github").out

    agent(project, {"e-01": 900, "e-02": 1700, "e-03": 1900})
    assert project.run().code == 0
    assert gate(project, "latency_ms.mean")["verdict"] == "passed"


@pytest.mark.parametrize(("less", "verdict"), [(0, "passed"), (1, "failed")])
def test_each_statistic_has_its_bound(project: Project, less: int, verdict: str) -> None:
    bounds = {"p50": 4112 - less, "p95": 5151 - less, "max": 5151 - less}
    suite(project, SEED, f"gates: {{latency_ms: {bounds}}}\n".replace("'", ""))
    agent(project, SEED)
    assert project.run().code == (0 if verdict == "passed" else 1)
    assert {name: gate(project, f"latency_ms.{name}")["verdict"] for name in bounds} == dict.fromkeys(
        bounds, verdict
    )


REPLY = "return AgentReply(text='done', latency_ms=10)"
USED = "return AgentReply(text='done', usage=Usage(calls=1, input_tokens={}, output_tokens={}{}))"
LOSES_ONE = f"if ctx.epoch: raise ConnectionError('refused')\n    {REPLY}"
COST, COST_MAX = "gates: {cost: {mean: 0.001}}\n", "gates: {cost: {max: 0.01}}\n"
PRICED = "gates: {{cost: {{mean: 0.001}}}}\nprices: {{bot: {{input: {0}, output: {0}}}}}\n"
LATENCY = "gates: {latency_ms: {mean: 1500}}\n"
TOLERANT = f"epochs: 2\n{LATENCY}fault_tolerance: 0.5\n"
LOSES_ALL, BREAKS = "raise ConnectionError('refused')", "raise ValueError('x')"
NOT_DONE = "return AgentReply(text='shipped', latency_ms=10)"
IMPORTS = "from agenteval import AgentReply\nfrom agenteval.core.trajectory import Usage\n\n"
LOOKS = "for _ in range({}): ctx.call_tool_sync('look', {{}})\n    return 'done'"
CALLS = "gates: {tool_calls: {max: 2}, steps: {max: 3}}\n"


@pytest.mark.parametrize(
    ("body", "config", "code", "name", "verdict", "value", "facts"),
    [
        # Tokens that nobody reports are estimated.
        (REPLY, "gates: {tokens: {mean: 100}}\n", 0, "tokens.mean", "passed", None, ["estimated"]),
        (USED.format(90, 20, ""), "gates: {tokens: {mean: 100}}\n", 1, "tokens.mean", "failed", 110, []),
        # An unknown price is not a cost of nothing; a cost that the agent reports needs no price.
        (USED.format(1000, 1000, ""), COST, 3, "cost.mean", "inconclusive", None, ["prices: {bot:"]),
        (USED.format(1000, 1000, ""), PRICED.format(0.4), 0, "cost.mean", "passed", 0.0008, []),
        (USED.format(1000, 1000, ""), PRICED.format(0.6), 1, "cost.mean", "failed", 0.0012, []),
        (USED.format(5, 5, ", cost=0.009"), COST_MAX, 0, "cost.max", "passed", 0.009, []),
        (USED.format(5, 5, ", cost=0.011"), COST_MAX, 1, "cost.max", "failed", 0.011, []),
        # Calls are counted where they can be seen.
        (LOOKS.format(2), CALLS, 0, "tool_calls.max", "passed", 2, []),
        (LOOKS.format(2), CALLS, 0, "steps.max", "passed", 3, []),
        (LOOKS.format(3), CALLS, 1, "tool_calls.max", "failed", 3, []),
        (REPLY, CALLS, 3, "tool_calls.max", "inconclusive", None, ["calls"]),
        # A conversation that was lost counts in none, and one that the agent broke off counts.
        (LOSES_ONE, TOLERANT, 0, "latency_ms.mean", "passed", 10, ["1 conversation", "1 errored"]),
        (LOSES_ALL, TOLERANT, 3, "latency_ms.mean", "inconclusive", None, []),
        (BREAKS, LATENCY, 1, "latency_ms.mean", "inconclusive", None, ["agent error", "1 of 1 "]),
        # A number that is kept excuses no failed sample.
        (NOT_DONE, LATENCY, 1, "latency_ms.mean", "passed", 10, []),
        (NOT_DONE, LATENCY, 1, "every sample passes", "failed", None, []),
    ],
)
def test_what_is_not_known_is_not_counted_as_nothing(
    project: Project, body: str, config: str, code: int, name: str, verdict: str, value: Any, facts: list[str]
) -> None:
    tools = "" if body == REPLY else "tools: {look: {returns: 1}}, "
    suite(project, ["a"], config, more=f"{tools}{CHECK}")
    project.agent(f"{IMPORTS}def agent({'messages, ctx' if 'ctx' in body else 'messages'}):\n    {body}\n")
    done = project.run()
    assert done.code == code, done.all
    found = gate(project, name)
    assert found["verdict"] == verdict
    assert value is None or found["value"] == pytest.approx(value)
    assert has(found["basis"], *facts), found


def test_recorded_conversations_without_times_are_not_fast(project: Project) -> None:
    project.config("gates: {latency_ms: {mean: 1500}}\n")
    line = '{"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "done"}]}\n'
    project.write("log.jsonl", line)
    done = project.call("score", "log.jsonl", "--report", "json=results.json", "--no-judge")
    assert done.code == 3
    assert "1 of 1 conversation" in gate(project, "latency_ms.mean")["basis"]


# ── against the baseline ─────────────────────────────────────────────────────────────────────────

SIX = [f"s{number}" for number in range(6)]
BEFORE = {name: 1000 + 300 * number for number, name in enumerate(SIX)}
NO_WORSE = "gates: {latency_ms: {no_worse_than: 1.2}}\n"
BASE = ".agenteval/runs/20200101-000000-base"


def began(project: Project, config: str = NO_WORSE) -> None:
    suite(project, BEFORE, config)
    agent(project, BEFORE)
    project.run()
    (folder,) = (project.root / ".agenteval/runs").iterdir()
    folder.rename(project.root / BASE)


def test_no_worse_than_the_baseline_is_red_green_or_not_decided(project: Project) -> None:
    began(project)
    for factors, code in (
        ((0.9, 1.0, 1.05, 0.95, 1.02, 0.97), 0),
        ((1.5, 1.6, 1.45, 1.5, 1.7, 1.4), 1),
        ((2.0, 0.5, 1.1, 1.0, 1.6, 0.9), 3),
    ):
        agent(project, {name: BEFORE[name] * factor for name, factor in zip(SIX, factors, strict=True)})
        done = project.run("--baseline", BASE)
        assert done.code == code, done.all
        found = gate(project, "latency_ms.no_worse_than")
        assert "1.2" in found["bound"]
        assert "90 %" in found["basis"]
        assert ("decide" in found["basis"]) is (code == 3)


def test_without_a_baseline_nothing_is_decided(project: Project) -> None:
    suite(project, BEFORE, NO_WORSE)
    agent(project, BEFORE)
    assert project.run().code == 3
    assert "--baseline" in gate(project, "latency_ms.no_worse_than")["basis"]


def test_one_scenario_is_too_few_and_validate_warns_of_it(project: Project) -> None:
    warnings = {}
    for ids in (SIX, ["a"]):
        suite(project, ids, NO_WORSE)
        agent(project, {"a": 1000})
        lines = project.call("validate").out.splitlines()
        (warnings[len(ids)],) = (line for line in lines if "no_worse_than" in line)
    assert " 2" in warnings[1]  # scenarios
    assert ["%" in warnings[count] for count in (1, 6)] == [False, True]  # error rates
    project.run()
    agent(project, {"a": 10})
    assert project.run("--baseline", "latest").code == 3
    assert "2" in gate(project, "latency_ms.no_worse_than")["basis"]


def test_a_number_that_one_run_does_not_know_decides_nothing(project: Project) -> None:
    began(project, "gates: {cost: {no_worse_than: 1.2}}\n")
    assert project.run("--baseline", BASE).code == 3
    assert "prices" in gate(project, "cost.no_worse_than")["basis"]


# ── the shares of the dimensions ─────────────────────────────────────────────────────────────────

CASES = """
cases:
  - {id: c-01, input: "get_weather", expected_tools: [get_weather], expected_output_contains: ["25"]}
  - {id: c-02, input: "calculator", expected_tools: [calculator], expected_output_contains: ["25"]}
  - {id: c-03, input: "get_product", expected_tools: [get_product], expected_output_contains: ["25"]}
  - id: c-04
    input: get_weather calculator
    expected_tools: [get_weather, calculator]
    expected_output_contains: ["25"]
  # One that takes a shortcut.
  - {id: c-05, input: calculator, expected_tools: [get_product, calculator], expected_output_contains: ["25"]}
defaults:
  tools: {get_weather: {returns: 1}, calculator: {returns: 1}, get_product: {returns: 1}, drop: {returns: 1}}
"""
SHORTCUT = """
async def agent(messages, ctx):
    for tool in messages[-1]["content"].split():
        await ctx.call_tool(tool, {{}})
    return "?" if ctx.scenario_id in {wrong!r} else "25"
"""


@pytest.mark.parametrize(
    ("wrong", "rules", "code", "rows"),
    [
        ([], "", 1, {}),
        ([], "gates: {tool_accuracy: 0.9}\n", 0, {"tool_accuracy": 0.9}),
        ([], "gates: {tool_accuracy: {at_least: 0.95}}\n", 1, {"tool_accuracy": 0.9}),
        # A share excuses only what it counts.
        (["c-05"], "gates: {tool_accuracy: 0.9}\n", 1, {"tool_accuracy": 0.9}),
        (["c-05"], "gates: {tool_accuracy: 0.9, output_accuracy: 0.8}\n", 0, {"output_accuracy": 0.8}),
        (["c-05"], "gates: {tool_accuracy: 0.9, output_accuracy: 0.81}\n", 1, {"output_accuracy": 0.8}),
    ],
)
def test_a_share_decides_what_it_counts(
    project: Project, wrong: list[str], rules: str, code: int, rows: dict[str, float]
) -> None:
    project.scenarios(CASES)
    project.agent(SHORTCUT.format(wrong=wrong))
    project.config(rules)
    done = project.run()
    assert done.code == code, done.all
    assert {name: gate(project, name)["value"] for name in rows} == rows
    if code == 0 and not wrong:
        basis = gate(project, "tool_accuracy")["basis"]
        assert has(basis, "5 conversations", "expected_tools", "c-05 0.5")
        assert "share gates" in gate(project, "every sample passes")["basis"]
        assert has(last_line(done), "PASSED", "1 of 5")
    if "tool_accuracy: 0.9}" in rules and wrong:
        assert gate(project, "every sample passes")["verdict"] == "failed"


def test_a_forbidden_call_is_no_matter_of_a_share(project: Project) -> None:
    tools = "tools: {calculator: {returns: 1}, get_product: {returns: 1}, drop: {returns: 1}}"
    rules = "expected_tools: [get_product], expect: {tool_calls: {forbidden: [{name: drop}]}}"
    project.scenarios(f"cases: [{{id: c-05, input: calculator drop, {tools}, {rules}}}]\n")
    project.config("gates: {tool_accuracy: 0.01}\n")
    project.agent(SHORTCUT.format(wrong=[]))
    assert project.run().code == 1


ROBUST = """
def agent(messages, ctx):
    if ctx.scenario_id in {ids!r} and ctx.epoch >= {from_epoch}:
        raise {error}
    return "I cannot"
"""
VALUE_ERROR, LOST = "ValueError('no prompt')", "ConnectionError('refused')"
TWO_EPOCHS = "epochs: 2\nfault_tolerance: 0.2\n"


@pytest.mark.parametrize(
    ("agent", "config", "code", "value", "basis"),
    [
        ((["r-01"], 0, VALUE_ERROR), "gates: {robustness: 0.8}\n", 0, 0.8, ""),
        ((["r-01"], 0, VALUE_ERROR), "gates: {robustness: 0.9}\n", 1, 0.8, ""),
        # What is not known decides a share only where it would.
        ((["r-01", "r-02"], 1, LOST), f"{TWO_EPOCHS}gates: {{robustness: 0.8}}\n", 0, None, "0.8 to 1"),
        ((["r-01", "r-02"], 1, LOST), f"{TWO_EPOCHS}gates: {{robustness: 0.9}}\n", 3, None, "0.8 to 1"),
    ],
)
def test_the_share_of_edge_cases(
    project: Project, agent: tuple[Any, ...], config: str, code: int, value: float | None, basis: str
) -> None:
    more = "category: robustness, expect: {output: {contains: [cannot]}}"
    suite(project, [f"r-0{n}" for n in range(1, 6)], config, more=more)
    ids, from_epoch, error = agent
    project.agent(ROBUST.format(ids=ids, from_epoch=from_epoch, error=error))
    assert project.run().code == code
    found = gate(project, "robustness")
    assert value is None or found["value"] == value
    assert basis in found["basis"]


def test_a_selection_without_what_a_share_counts_is_not_asked_for_it(project: Project) -> None:
    plain = f"scenarios: [{{id: plain, turns: [hi], {CHECK}}}]\n"
    project.scenarios(CASES + plain)
    project.agent('def agent(messages, ctx):\n    return "done"\n')
    project.config("gates: {tool_accuracy: 0.9}\n")
    done = project.run("-s", "plain")
    assert done.code == 0, done.all
    assert "tool_accuracy (" in done.out
    project.scenarios(plain)
    assert project.run().code == 3
    assert "expected_tools" in gate(project, "tool_accuracy")["basis"]


# ── mistakes ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("written", "facts"),
    [
        ("latency_ms: {}", ("latency_ms", "mean", "p50", "p95", "max", "no_worse_than")),
        ("latency_ms: 1500", ("latency_ms", "{mean: 1500}")),
        ("latency_ms: {meen: 1500}", ("'meen'", "'mean'")),
        ("latency_ms: {mean: fast}", ("mean", "'fast'")),
        ("latency_ms: {no_worse_than: 0}", ("no_worse_than", "0")),
        ("tool_accuracy: 90", ("tool_accuracy", "1", "90")),
        ("tool_accuracy: {atleast: 0.9}", ("'atleast'", "'at_least'")),
        ("latency: {mean: 1500}", ("'latency'", "'latency_ms'")),
    ],
)
def test_a_gate_that_is_written_wrong_is_refused_at_its_place(
    project: Project, written: str, facts: tuple[str, ...]
) -> None:
    suite(project, ["a"], f"gates: {{{written}}}\n")
    agent(project, {"a": 1})
    done = project.call("validate")
    assert (done.code, reports(done, "agenteval.yaml:3:", *facts)) == (2, True), done.err
