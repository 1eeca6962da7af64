"""NaN and infinity: nothing compares with them, so each is refused at its place."""

from __future__ import annotations

import pytest

from tests.support.kit import Done, Project

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
CONFIGURATION = """
thresholds:
  helpfulness: %s
  coherence: {share_below: {2: %s}}
gates:
  pass_rate: {at_least: %s, reject_below: 0.5}
  latency_ms: {p95: %s}
  tool_accuracy: %s
budget: {max_cost: %s}
fault_tolerance: %s
deadlines: {run_s: %s}
prices: {bot: {input: 1, output: %s}}
agents: {other: {endpoint: 'http://localhost:1/x', body: {temperature: %s}}}
"""
PROFILES = """
profiles:
  pr: {gates: {cost: {max: %s}}}
  slow: {agents: {other: {endpoint: 'http://localhost:1/x', body: {temperature: %s}}}}
"""


def refused_lines(done: Done, file: str) -> list[int]:
    """The lines of the file that were refused for a number, each once."""
    assert done.code == 2, done.all
    lines = done.err.splitlines()
    assert all("number" in line for line in lines), done.err
    return sorted(int(line.partition(f"{file}:")[2].partition(":")[0]) for line in lines)


def rows(number: str) -> list[str]:
    expected = [f"turns: [x], expect: {{{each % number}}}" for each in EXPECTED]
    return [*expected, *(f"turns: [x], checks: none, {each % number}" for each in OF_SCENARIOS)]


@pytest.fixture
def echo(project: Project) -> Project:
    project.config()
    project.agent("def agent(message):\n    return message\n")
    project.scenarios("{id: s, turns: [x], expect: {output: {contains: [x]}}}\n")
    return project


@pytest.mark.parametrize("number", FORMS)
def test_no_scenario_holds_one(echo: Project, number: str) -> None:
    def write(number: str) -> None:
        listed = [f"- {{id: s{at}, {row}}}" for at, row in enumerate(rows(number))]
        echo.scenarios("\n".join(["scenarios:", *listed]) + "\n")

    write(number)
    done = echo.call("validate")
    assert refused_lines(done, "suite.yaml") == [*range(2, len(rows(number)) + 2)]
    assert all("nan" in line or "inf" in line for line in done.err.splitlines()), done.err
    write("3")
    done = echo.call("validate")
    assert "number" not in done.all


@pytest.mark.parametrize("number", FORMS)
@pytest.mark.parametrize("text", [CONFIGURATION, PROFILES], ids=["configuration", "profiles"])
def test_no_configuration_holds_one(echo: Project, number: str, text: str) -> None:
    echo.config(text.replace("%s", number))
    lines = (echo.root / "agenteval.yaml").read_text(encoding="utf-8").splitlines()
    wrong = [at for at, line in enumerate(lines, 1) if number in line]
    assert len(wrong) == text.count("%s")
    assert refused_lines(echo.run(), "agenteval.yaml") == wrong


def test_no_variable_no_option_and_no_pyproject_holds_one(echo: Project) -> None:
    echo.config("thresholds: {helpfulness: '${BOUND}'}")
    for number in ("nan", "inf", "1e999"):
        echo.run(env={"BOUND": number}).refuses("agenteval.yaml:3", "helpfulness", "number")
    echo.config()
    for number in ("nan", ".nan", "inf", ".inf", "1e999"):
        echo.run(env={"AGENTEVAL_FAULT_TOLERANCE": number}).refuses("", "fault_tolerance", "number")
    assert echo.call("diff", "a", "b", "--margin", "nan").code == 2
    echo.root.joinpath("agenteval.yaml").unlink()
    body = '{endpoint = "http://localhost:1/x", body = {temperature = nan}}'
    echo.write("pyproject.toml", f"[tool.agenteval]\nmetrics = []\nagent = {body}\n")
    echo.run().refuses("pyproject.toml:3", "number")


def test_a_text_may_be_written_so(echo: Project) -> None:
    echo.scenarios("{id: s, turns: [read setup.inf], expect: {output: {contains: ['.inf', .inf]}}}\n")
    assert echo.run().code == 0


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
