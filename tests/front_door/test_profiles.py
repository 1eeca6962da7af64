"""``profiles`` and ``on_undecided``: one configuration for the laptop, the pull request and the night."""

from __future__ import annotations

import pytest

from tests.support.kit import Project

SUITE = """
scenarios:
  - {id: quick, tags: [smoke], turns: [hi], expect: {output: {contains: [done]}}}
  - {id: slow, turns: [hi], category: robustness, expect: {output: {contains: [done]}}}
"""
PROFILES = """
epochs: 2
profiles:
  pr: {tags: [smoke], epochs: 3}
  strict:
    gates:
      tool_calls: {max: 0}
    on_undecided: neutral
  nightly: {}
"""


@pytest.fixture
def two(project: Project) -> Project:
    project.agent('def agent(messages, ctx):\n    return "done"\n')
    project.scenarios(SUITE)
    project.config(PROFILES)
    return project


def played(project: Project) -> dict[str, int]:
    return {each["id"]: len(each["samples"]) for each in project.results()["scenarios"]}


def test_a_profile_is_over_the_file_and_below_the_command_line(two: Project) -> None:
    assert two.run().code == 0
    assert played(two) == {"quick": 2, "slow": 2}
    done = two.run("--profile", "pr", "--report", "markdown=report.md")
    assert played(two) == {"quick": 3}
    report = (two.root / "report.md").read_text(encoding="utf-8")
    assert all("profile pr" in text.lower() for text in (done.err, done.out, report))
    assert two.results()["run"]["config"]["profile"] == "pr"
    two.run("--profile", "pr", "--epochs", "1")
    assert played(two) == {"quick": 1}
    two.run("--profile", "nightly")
    assert played(two) == {"quick": 2, "slow": 2}
    assert two.call("list", "--profile", "pr").out == "scenarios/suite.yaml::quick\n"
    assert "1 scenario" in two.call("validate", "--profile", "pr").out


NULLS = """
epochs: 2
severities: {repetition: critical}
judge: {corroborate: false}
gates: {tool_calls: {max: 0}, steps: {max: 50}}
profiles:
  usual: {epochs: null, judge: null, agent: {timeout_s: null, policy: null}}
  lenient: {severities: {repetition: null}}
  open: {gates: {tool_calls: null}}
"""
REPEATING = """
def agent(messages, ctx):
    ctx.call_tool_sync("look", {})
    return "It is done, as I have said before, and as you surely know by now."
"""


def test_null_in_a_profile_removes_what_it_overrides(project: Project) -> None:
    project.agent(REPEATING)
    project.scenarios(
        "id: a\nturns: [hi]\ntools: {look: {returns: 1}}\nexpect: {output: {contains: [done]}}\n"
    )
    agent = "agent: {target: 'agent.py:agent', timeout_s: 3, policy: Be kind.}\nmetrics: []\n"
    project.config(agent + NULLS, target="")
    assert project.run().code == 1  # the gate
    (row,) = [gate for gate in project.results()["summary"]["gates"] if gate["verdict"] == "failed"]
    assert row["name"] == "tool_calls.max"
    assert project.run("--profile", "open").code == 0
    assert "steps.max" in {gate["name"] for gate in project.results()["summary"]["gates"]}

    assert project.run("--profile", "usual").code == 1
    config = project.results()["run"]["config"]
    assert played(project) == {"a": 1}
    assert (config["agent"]["timeout_s"], config["agent"]["policy"], config["judge"]["corroborate"]) == (
        60,
        None,
        True,
    )


def test_a_severity_that_a_profile_removes_is_that_of_the_table(project: Project) -> None:
    project.agent(REPEATING.replace('    ctx.call_tool_sync("look", {})\n', ""))
    project.scenarios("id: a\nturns: [hi, and now?]\nexpect: {output: {contains: [done]}}\n")
    project.config(
        "severities: {repetition: critical}\nprofiles: {lenient: {severities: {repetition: null}}}\n"
    )
    done = project.run()
    assert done.code == 1, done.all
    assert "critical finding: repetition" in done.out
    done = project.run("--profile", "lenient")
    assert done.code == 0, done.all


def test_a_gate_of_a_profile_is_named_by_its_line(two: Project) -> None:
    two.run("--profile", "strict")
    (row,) = [gate for gate in two.results()["summary"]["gates"] if gate["name"] == "tool_calls.max"]
    assert row["where"] == "agenteval.yaml:9"


def test_a_failed_run_of_a_profile_is_repeated_with_it(two: Project) -> None:
    two.agent('def agent(messages, ctx):\n    return "no"\n')
    done = two.run("--profile", "pr")
    assert done.code == 1
    assert "--profile pr" in done.out


MISTAKES = {  # a configuration, and what is named of it
    "profiles: {pr: {epoch: 3}}": ("agenteval.yaml:3:17", "'epoch'", "'epochs'"),
    "profiles: {pr: {tags: {a: 1}}}": ("agenteval.yaml:3", "tags"),
    "profiles: {pr: 3}": ("agenteval.yaml:3:12", "got 3"),
    "profiles: [pr]": ("agenteval.yaml:3:1", "list", "pr:"),
    "profiles: {pr: {profiles: {}}}": ("agenteval.yaml:3", "profiles"),
    "profiles: {pr: {gates: {latency_ms: {}}}}": ("agenteval.yaml:3", "latency_ms"),
    "profiles: {pr: {selection: {}}}": ("agenteval.yaml:3", "'selection'"),
    "profiles: {pr: {no_judge: maybe}}": ("agenteval.yaml:3", "no_judge"),
    "profiles: {pr: {gate: null}}": ("agenteval.yaml:3", "'gate'", "'gates'"),
    "profiles: {pr: {concurrency: null}}": ("agenteval.yaml:3", "concurrency", "null"),
    "profiles: {pr: {agent: {target: null}}}": ("agenteval.yaml:3", "target"),
}


@pytest.mark.parametrize("config", MISTAKES)
def test_a_mistake_in_any_profile_is_refused_at_its_place(two: Project, config: str) -> None:
    two.config(config + "\n")
    place, *facts = MISTAKES[config]
    two.call("validate").refuses("agenteval", place, *facts)


def test_a_profile_that_is_none_is_refused_with_those_there_are(two: Project) -> None:
    two.config("profiles: {pr: {}}\n")
    two.call("validate", "--profile", "rp").refuses("agenteval", "'rp'", "pr")
    two.config("epochs: 1\n")
    two.call("validate", "--profile", "pr").refuses("agenteval", "'pr'", "profiles:")


def test_a_variable_of_a_profile_is_needed_when_it_is_taken(two: Project) -> None:
    two.config("profiles: {night: {now: '${DAY_OF_THE_NIGHT}'}}\n")
    assert two.run().code == 0
    two.run("--profile", "night").refuses("agenteval.yaml:3", "DAY_OF_THE_NIGHT")


def test_a_resumed_run_keeps_its_profile(two: Project) -> None:
    assert two.run("--profile", "pr").code == 0
    two.call("run", "--resume", "latest", "--profile", "pr").refuses("agenteval", "--profile")
    assert two.call("run", "--resume", "latest").code == 0


# ── on_undecided ─────────────────────────────────────────────────────────────────────────────────


LOSING = """
def agent(messages, ctx):
    if ctx.scenario_id == "slow":
        raise ConnectionError("refused")
    return "done"
"""


def test_an_undecided_run_ends_with_three_or_neutrally(two: Project) -> None:
    two.agent(LOSING)
    assert two.run().code == 3
    two.config("on_undecided: neutral\n")
    done = two.run()
    assert done.code == 0
    last = done.out.splitlines()[-1]
    assert last.startswith("INCONCLUSIVE: ")
    assert all(fact in last for fact in ("exit 0", "on_undecided"))
    assert two.results()["summary"]["verdict"] == "inconclusive"
    assert two.call("report", "latest").code == 0


def test_neutral_is_no_excuse_for_a_failure(two: Project) -> None:
    two.agent(LOSING.replace('return "done"', 'return "no"'))
    two.config("on_undecided: neutral\n")
    assert two.run().code == 1


@pytest.mark.parametrize(
    ("gates", "epochs", "line"),
    [
        ("pass_rate: {at_least: 0.9, reject_below: 0.7}", 3, "epochs: 9"),
        ("pass_hat_k: {k: 3, at_least: 0.5}", 1, "epochs: 3"),
        ("no_regression: {margin: 0.05}", 1, "agenteval run --baseline RUN"),
        ("cost: {mean: 1}", 1, "prices: {bot:"),
    ],
)
def test_an_undecided_end_names_the_line_that_would_end_it(
    two: Project, gates: str, epochs: int, line: str
) -> None:
    usage = "usage=Usage(calls=1, input_tokens=9, output_tokens=9)"
    two.agent(
        "from agenteval import AgentReply\nfrom agenteval.core.trajectory import Usage\n\n"
        f'def agent(messages, ctx):\n    return AgentReply(text="done", {usage})\n'
    )
    two.config(f"epochs: {epochs}\ngates: {{{gates}}}\n")
    done = two.run("--report", "markdown=report.md")
    assert done.code == 3
    for text in (done.out, (two.root / "report.md").read_text(encoding="utf-8")):
        assert any(line in each and gates.partition(":")[0] in each for each in text.splitlines()), text


def test_lost_samples_are_played_again_by_the_line_that_is_named(two: Project) -> None:
    two.agent(LOSING)
    done = two.run()
    assert "agenteval run --last-failed" in done.out
