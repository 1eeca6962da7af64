"""NaN and infinity: nothing compares with them, so each is refused at its place."""

from __future__ import annotations

import pytest

from tests.support.kit import Project

FORMS = (".nan", ".inf", "-.INF", "1e999")
EXPECTED = [
    "tool_calls: {forbidden: [{name: f, args: {x: {$approx: %s}}}]}",
    "tool_calls: {forbidden: [{name: f, args: {x: {$approx: {value: %s, abs: 1}}}}]}",
    "tool_calls: {calls: [{name: f, args: {x: {$approx: {value: 1, abs: %s}}}}]}",
    "tool_calls: {forbidden: [{name: f, args: {x: {$in: [1, %s]}}}]}",
    "tool_calls: {forbidden: [{name: f, args: {x: [{y: %s}]}}]}",
    "output: {json: {a: {$approx: %s}}}",
    "output: {json: {'a[0]': %s}}",
    "output: {json_schema: {type: object, properties: {a: {minimum: %s}}}}",
    "limits: {tokens: %s}",
    "limits: {latency_ms: %s}",
]
OF_SCENARIOS = [
    *("tools: {f: {returns: {a: %s}}}", "tools: {f: {sequence: [{returns: 1}, {returns: %s}]}}"),
    "tools: {f: {returns: 1, parameters: {type: object, properties: {a: {maximum: %s}}}}}",
    *("thresholds: {helpfulness: %s}", "epochs: %s", "max_turns: %s"),
]
OF_CONFIGURATIONS = [
    "thresholds: {helpfulness: %s}",
    "thresholds: {helpfulness: {share_below: {2: %s}}}",
    "gates: {pass_rate: {at_least: %s, reject_below: 0.5}}",
    "gates: {latency_ms: {p95: %s}}",
    "gates: {tool_accuracy: %s}",
    "budget: {max_cost: %s}",
    "fault_tolerance: %s",
    "deadlines: {run_s: %s}",
    "prices: {bot: {input: 1, output: %s}}",
    "agents: {other: {endpoint: 'http://localhost:1/x', body: {temperature: %s}}}",
    "profiles: {pr: {gates: {cost: {max: %s}}}}",
    "profiles: {pr: {agents: {other: {endpoint: 'http://localhost:1/x', body: {temperature: %s}}}}}",
]


def rows(number: str) -> list[str]:
    expected = [f"turns: [x], expect: {{{each % number}}}" for each in EXPECTED]
    return [*expected, *(f"turns: [x], checks: none, {each % number}" for each in OF_SCENARIOS)]


@pytest.mark.parametrize("number", FORMS)
def test_no_scenario_holds_one(project: Project, number: str) -> None:
    project.config()
    project.agent("def agent(message):\n    return message\n")
    listed = [f"- {{id: s{at}, {row}}}" for at, row in enumerate(rows(number))]
    project.scenarios("\n".join(["scenarios:", *listed]) + "\n")
    done = project.call("validate")
    assert done.code == 2
    for line, row in enumerate(rows(number), 2):
        said = [each for each in done.err.splitlines() if f"suite.yaml:{line}:" in each]
        assert len(said) == 1, (row, said)
        assert "number" in said[0], (row, said)
        assert any(shown in said[0] for shown in ("nan", "inf")), (row, said)
    listed = [f"- {{id: s{at}, {row}}}" for at, row in enumerate(rows("3"))]
    project.scenarios("\n".join(["scenarios:", *listed]) + "\n")
    done = project.call("validate")
    assert "finite" not in done.all
    assert "expected a" not in done.all


@pytest.mark.parametrize("written", OF_CONFIGURATIONS)
def test_no_configuration_holds_one(project: Project, written: str) -> None:
    project.agent("def agent(message):\n    return message\n")
    project.scenarios("{id: s, turns: [x], expect: {output: {contains: [x]}}}\n")
    for number in FORMS:
        project.config(written % number)
        done = project.run()
        assert done.code == 2, done.all
        lines = project.root.joinpath("agenteval.yaml").read_text(encoding="utf-8").splitlines()
        line = next(at for at, text in enumerate(lines, 1) if number in text)
        assert f"agenteval.yaml:{line}:" in done.err
        assert "number" in done.err
        assert done.err.count("\n") == 1, done.err


def test_no_variable_no_option_and_no_pyproject_holds_one(project: Project) -> None:
    project.agent("def agent(message):\n    return message\n")
    project.scenarios("{id: s, turns: [x], expect: {output: {contains: [x]}}}\n")
    project.config("thresholds: {helpfulness: '${BOUND}'}")
    for number in ("nan", "inf", "1e999"):
        done = project.run(env={"BOUND": number})
        assert (done.code, "helpfulness: expected a number" in done.err) == (2, True), done.all
    project.config()
    for number in ("nan", ".nan", "inf", ".inf", "1e999"):
        done = project.run(env={"AGENTEVAL_FAULT_TOLERANCE": number})
        assert (done.code, "fault_tolerance: expected a number" in done.err) == (2, True), done.all
    assert project.call("diff", "a", "b", "--margin", "nan").code == 2
    project.root.joinpath("agenteval.yaml").unlink()
    body = '{endpoint = "http://localhost:1/x", body = {temperature = nan}}'
    project.write("pyproject.toml", f"[tool.agenteval]\nmetrics = []\nagent = {body}\n")
    done = project.run()
    assert (done.code, "pyproject.toml:3:" in done.err, "finite number" in done.err) == (2, True, True)


def test_a_text_may_be_written_so(project: Project) -> None:
    project.config()
    project.agent("def agent(message):\n    return message\n")
    project.scenarios("{id: s, turns: [read setup.inf], expect: {output: {contains: ['.inf', .inf]}}}\n")
    assert project.run().code == 0


GUARDED = """
id: s
turns: [x]
tools: {f: {returns: 1}}
expect: {tool_calls: {forbidden: [{name: f, args: {x: {$approx: 3.5}}}]}}
"""


@pytest.mark.parametrize("argument", ["3.5", "4"])
def test_a_bound_that_is_a_number_forbids(project: Project, argument: str) -> None:
    project.config()
    project.agent(
        "async def agent(messages, ctx):\n"
        f"    await ctx.call_tool('f', {{'x': {argument}}})\n    return 'x'\n"
    )
    project.scenarios(GUARDED)
    assert project.run().code == (1 if argument == "3.5" else 0)
