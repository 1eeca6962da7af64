"""What is run: filters, named and compared agents, where files are found, ids, defaults."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.cut_runs import cut_after
from tests.support.kit import Project

AGENT = """
def agent(messages, ctx):
    return "agent"


def second(messages, ctx):
    return "second"


def third(messages, ctx):
    return "third"
"""
SUITE = """
defaults: {checks: none}
scenarios:
  - {id: book-morning, name: Books a slot, tags: [booking, quick], turns: [hi]}
  - {id: cancel, name: Cancels the morning, category: robustness, tags: [booking], turns: [hi]}
  - {id: order, name: Orders food, category: efficiency, turns: [hi]}
cases:
  - {id: C-01, input: hi, category: robustness, tags: [quick]}
"""


ONE = "scenarios: [{id: a, name: a, turns: [hi], checks: none}]"


def chosen(project: Project) -> set[str]:
    return {s["id"] for s in project.results()["scenarios"]}


def by_agent(project: Project) -> dict[tuple[str, str], str]:
    """The first answer of each scenario with each agent."""
    return {
        (s["id"], s["agent"]): s["samples"][0]["turns"][0]["agent"] for s in project.results()["scenarios"]
    }


@pytest.fixture
def suite(project: Project) -> Project:
    project.agent(AGENT)
    project.config()
    project.scenarios(SUITE)
    return project


@pytest.mark.parametrize(
    ("arguments", "ids"),
    [
        ((), {"book-morning", "cancel", "order", "C-01"}),
        (("-s", "morning"), {"book-morning", "cancel"}),
        (("--scenario", "Orders food", "-s", "C-01"), {"order", "C-01"}),
        (("--tag", "booking"), {"book-morning", "cancel"}),
        (("--category", "robustness", "--tag", "quick"), {"C-01"}),
        (("-s", "morning", "--category", "robustness"), {"cancel"}),
        (("-k", "MORNING and not cancel"), {"book-morning"}),
        (("-k", "not (booking or C-0)"), {"order"}),
        (("-k", "quick or food"), {"book-morning", "order", "C-01"}),
        (("-k", "not booking and not quick"), {"order"}),
        (("-k", "suite.yaml", "--tag", "quick"), {"book-morning", "C-01"}),
        (("-s", "suite.yaml::cancel"), {"cancel"}),
        (("-s", "scenarios/suite.yaml::cancel", "-s", "C-01"), {"cancel", "C-01"}),
        (("scenarios/suite.yaml::cancel",), {"cancel"}),
        (("suite.yaml::cancel", "suite.yaml::order"), {"cancel", "order"}),
        (("scenarios", "suite.yaml::order"), {"book-morning", "cancel", "order", "C-01"}),
        (("suite.yaml::cancel", "suite.yaml::order", "-k", "food"), {"order"}),
        (("--first", "2"), {"book-morning", "cancel"}),
        (("--tag", "quick", "--first", "1"), {"book-morning"}),
        (("--first", "9"), {"book-morning", "cancel", "order", "C-01"}),
    ],
)
def test_filters_choose_scenarios_and_kinds_of_filters_are_joined(
    arguments: tuple[str, ...], ids: set[str], suite: Project
) -> None:
    assert suite.run(*arguments).code == 0
    assert chosen(suite) == ids


NOTHING = {  # what selects nothing, though another filter may, and what the reason names
    "-s order -s renamed": ("renamed", "4 scenarios"),
    "--tag booking --tag renamed": ("renamed", "4 scenarios"),
    "-s order --tag renamed": ("renamed", "4 scenarios"),
    "--tag absent": ("--tag absent", "4 scenarios"),
    "-k nothing": ("-k 'nothing'", "4 scenarios"),
    "-k order+and+nothing": ("-k 'order and nothing'", "4 scenarios"),
    "scenarios/suite.yaml::cancle": ("suite.yaml", "'cancle'", "'cancel'"),
    "-s suite.yaml::cancle": ("4 scenarios", "'cancel'"),
    "-s other.yaml::cancel": ("scenarios/suite.yaml::cancel",),
    "--tag booking -s order": ("--scenario order --tag booking", "4 scenarios"),
    "scenarios moved": ("moved",),  # an empty folder
}
UNREADABLE = {
    "-k order+and": ("-k 'order and'", "column 10"),
    "-k (order": ("-k '(order'", "column 7"),
    "-k order)": ("-k 'order)'", "')'", "column 6"),
    "-k order+food": ("'food'", "column 7"),
    "-k or+order": ("'or'", "column 1"),
    "-k +": ("-k",),
    "scenarios::cancel": ("scenarios::cancel", "folder"),
    "missing.yaml::cancel": ("missing.yaml",),
}


@pytest.mark.parametrize(
    ("line", "code", "facts"),
    [
        *((line, 5, facts) for line, facts in NOTHING.items()),
        *((line, 2, facts) for line, facts in UNREADABLE.items()),
    ],
)
def test_what_selects_nothing_ends_with_5_and_what_cannot_be_read_with_2(
    suite: Project, line: str, code: int, facts: tuple[str, ...]
) -> None:
    (suite.root / "moved").mkdir()
    done = suite.run(*(word.replace("+", " ") for word in line.split(" ")))
    done.refuses("agenteval", *facts, code=code)
    assert done.out == ""
    assert not (suite.root / ".agenteval").exists()


def test_a_sample_is_drawn_by_the_seed_and_changes_little_with_the_suite(suite: Project) -> None:
    drawn: dict[str, set[str]] = {}
    for seed in map(str, range(8)):
        assert suite.run("--sample", "2", "--seed", seed).code == 0
        drawn[seed] = chosen(suite)
    assert {len(ids) for ids in drawn.values()} == {2}
    assert len(set(map(frozenset, drawn.values()))) > 1
    suite.run("--sample", "2", "--seed", "3")
    assert chosen(suite) == drawn["3"]
    assert suite.run("--sample", "2", "--first", "1", "--seed", "3").code == 0
    assert chosen(suite) < drawn["3"]
    suite.scenarios("{id: another, turns: [hi], checks: none}", name="scenarios/more.yml")
    suite.run("--sample", "2", "--seed", "3")
    assert len(chosen(suite) & drawn["3"]) >= 1
    suite.run()
    assert "another" in chosen(suite)  # both endings of YAML are found


def test_a_selection_is_resumed_as_it_was(suite: Project) -> None:
    suite.run("suite.yaml::cancel", "scenarios/suite.yaml::order", "-k", "food or morning", "--first", "1")
    assert chosen(suite) == {"cancel"}
    cut_after(suite, "sample_started")
    assert suite.run("--resume", "latest").code == 0
    assert chosen(suite) == {"cancel"}


def test_a_pattern_that_names_no_file_is_a_warning(suite: Project) -> None:
    suite.config("include: ['scenarios/*.yaml', 'moved/*.yaml']\n")
    done = suite.run()
    assert done.code == 0
    for text in (done.out, suite.call("validate").err, suite.call("plan").err):
        assert any("'moved/*.yaml'" in line and "agenteval.yaml:3" in line for line in text.splitlines())
    suite.config()
    assert "include" not in suite.run().all


def test_an_empty_folder_selects_nothing(project: Project) -> None:
    project.agent(AGENT)
    project.config()
    assert project.run().code == 5


AGENTS = "agents: {two: {target: 'agent.py:second'}, three: {target: 'agent.py:third'}}\n"
NAMED = """
scenarios:
  - {id: own, name: own, turns: [hi], checks: none, agent: two}
  - {id: default, name: default, turns: [hi], checks: none}
"""


def test_a_scenario_or_the_command_line_picks_an_agent_by_name(suite: Project) -> None:
    suite.config(AGENTS)
    suite.scenarios(NAMED)
    assert suite.run().code == 0
    assert by_agent(suite) == {("own", "two"): "second", ("default", "bot"): "agent"}
    suite.scenarios(NAMED.replace(", agent: two", ""))
    assert suite.run("--agent", "three").code == 0
    assert by_agent(suite) == {("own", "three"): "third", ("default", "three"): "third"}


def test_an_agent_that_is_not_configured_is_refused_with_its_place(project: Project) -> None:
    project.agent(AGENT)
    project.config(AGENTS)
    project.scenarios(NAMED.replace("agent: two", "agent: tow"))
    project.call("validate").refuses("agenteval", "suite.yaml:2:", "'tow'", "'two'")


COMPARE = "compare: [{name: two, target: 'agent.py:second'}, {name: three, target: 'agent.py:third'}]\n"


def test_compared_agents_run_side_by_side(project: Project) -> None:
    project.agent(AGENT)
    project.config("epochs: 2\n" + COMPARE)
    project.scenarios(NAMED.replace(", agent: two", ""))
    assert project.run().code == 0
    found = by_agent(project)
    for id in ("own", "default"):
        assert (found[id, "two"], found[id, "three"]) == ("second", "third")
    assert all(len(s["samples"]) == 2 for s in project.results()["scenarios"])


def test_with_compare_no_scenario_may_name_its_own_agent(project: Project) -> None:
    project.agent(AGENT)
    project.config(AGENTS + COMPARE.replace("two", "four").replace("three", "five"))
    project.scenarios(NAMED)
    project.call("validate").refuses("agenteval", "suite.yaml:2:", "compare")


def test_a_comparison_takes_the_worst_of_its_parts(project: Project) -> None:
    project.agent(AGENT)
    project.config(COMPARE)
    project.scenarios("scenarios: [{id: a, name: a, turns: [hi], expect: {output: {contains: [third]}}}]")
    assert project.run().code == 1
    verdicts = {s["agent"]: s["verdict"] for s in project.results()["scenarios"]}
    assert (verdicts["two"], verdicts["three"]) == ("failed", "passed")


ECHO = """
from where import WORD


def agent(messages):
    return WORD
"""


def test_each_path_starts_where_it_is_written(project: Project) -> None:
    """At the configuration's folder, at the scenario file, at the working directory of the command line."""
    project.write(
        "app/bots/agent.py",
        ECHO + "\n\nasync def caller(messages, ctx):\n    return str(await ctx.call_tool('t', {}))\n",
    )
    project.write("app/where.py", "WORD = 'found beside the configuration'\n")
    project.write("app/agenteval.yaml", "agent: {name: bot, target: 'bots/agent.py:caller'}\nmetrics: []\n")
    project.write(
        "app/scenarios/deep/a.yaml",
        """
        scenarios:
          - {id: a, name: a, turns: [hi], checks: none, tools: {t: {python: "mocks.py:tool"}}}
    """,
    )
    project.write(
        "app/scenarios/deep/mocks.py",
        "from beside import VALUE\n\n\ndef tool(args, ctx):\n    return VALUE\n",
    )
    project.write("app/scenarios/deep/beside.py", "VALUE = 'beside the scenario'\n")
    project.write("app/work/here/keep.txt", "")
    inner = Project(project.root / "app/work/here")
    assert inner.run().code == 0
    assert inner.sample()["turns"][0]["agent"] == "beside the scenario"
    assert inner.run("../../scenarios/deep/a.yaml").code == 0
    assert inner.run("../../scenarios").code == 0
    outside = Project(project.root)
    assert outside.run("-c", "app/agenteval.yaml").code == 0
    assert outside.sample()["turns"][0]["agent"] == "beside the scenario"


BOT = "class Bot:\n    def __call__(self, messages):\n        return 'from a package'\n"
PYPROJECT = """
[project]
name = "mine"
[tool.agenteval]
epochs = 2
metrics = []
agent = {name = "bot", target = "agent.py:second"}
"""
CONFIGURED = {  # the configuration's file, its text, and the answers of the agent that it names
    "a package module": (
        "agenteval.yaml",
        "agent: {target: 'pkg.bot:Bot'}\nmetrics: []\n",
        ["from a package"],
    ),
    "pyproject": ("pyproject.toml", PYPROJECT, ["second", "second"]),
    "yml": ("agenteval.yml", "agent: {target: 'agent.py:third'}\nmetrics: []\n", ["third"]),
}


@pytest.mark.parametrize("name", CONFIGURED)
def test_where_a_configuration_and_its_agent_may_stand(project: Project, name: str) -> None:
    file, text, answers = CONFIGURED[name]
    project.agent(AGENT)
    project.write("pkg/__init__.py", "")
    project.write("pkg/bot.py", BOT)
    project.write(file, text)
    project.scenarios(ONE)
    assert project.run().code == 0
    (scenario,) = project.results()["scenarios"]
    assert [sample["turns"][0]["agent"] for sample in scenario["samples"]] == answers


def test_a_misspelt_key_in_pyproject_is_refused(project: Project) -> None:
    project.agent(AGENT)
    project.write("pyproject.toml", PYPROJECT.replace("epochs", "epoch"))
    project.scenarios(ONE)
    project.run().refuses("agenteval", "pyproject.toml", "'epoch'", "'epochs'")


def test_include_and_exclude(project: Project) -> None:
    project.agent(AGENT)
    project.config("include: ['tests/*.yaml', 'more/**/*.yaml']\nexclude: ['**/draft-*.yaml']\n")
    for name in ("tests/a", "tests/draft-b", "more/deep/c", "more/draft-d", "scenarios/e"):
        project.write(
            f"{name}.yaml",
            f"scenarios: [{{id: {name.replace('/', '-')}, name: x, turns: [hi], checks: none}}]",
        )
    assert project.run().code == 0
    assert chosen(project) == {"tests-a", "more-deep-c"}


def test_ids_are_one_namespace_and_the_error_names_both_places(project: Project) -> None:
    project.agent(AGENT)
    project.config()
    project.scenarios("scenarios:\n  - {id: same, name: a, turns: [hi], checks: none}\n", "scenarios/a.yaml")
    project.scenarios("cases:\n  - {id: other, input: a}\n  - {id: same, input: b}\n", "scenarios/b.yaml")
    project.call("validate").refuses("agenteval", "scenarios/a.yaml:2:", "scenarios/b.yaml:3:", "'same'")


FORMS = {
    "single.yaml": "id: single\nname: One at top level\nturns: [hi]\nexpect: {output: {contains: [agent]}}\n",
    "slug.yaml": "scenarios: [{name: 'User books: a Morning slot!', turns: [hi], checks: none}]\n",
    "defaults.yaml": """
defaults:
  tags: [a, b]
  tools: {look: {returns: 1}}
  expect: {output: {contains: [agent], not_contains: [x]}, limits: {steps: 5}}
scenarios:
  - id: merged
    name: merged
    turns: [hi]
    tags: [c]
    expect: {output: {contains: [age*]}, limits: {tool_calls: 0}}
cases:
  - {id: case, input: hi}
""",
}


def test_forms_of_files_and_deep_defaults(project: Project) -> None:
    project.agent(AGENT)
    project.config("agent: {name: bot, target: 'agent.py:agent', calls: all}\n", target="")
    for name, text in FORMS.items():
        project.scenarios(text, f"scenarios/{name}")
    done = project.run()
    assert done.code == 0, done.all
    assert chosen(project) == {"single", "user-books-a-morning-slot", "merged", "case"}
    found: dict[str, Any] = {s["id"]: s for s in project.results()["scenarios"]}
    assert (found["merged"]["tags"], found["case"]["tags"]) == (["c"], ["a", "b"])
    names = {id: {c["name"] for c in s["samples"][0]["checks"]} for id, s in found.items()}
    inherited = {"no_error", "answer", "output.contains", "output.not_contains", "limits.steps"}
    assert names["merged"] == inherited | {"limits.tool_calls"}
    assert names["case"] == inherited
    details = [c["detail"] for c in found["merged"]["samples"][0]["checks"] if c["name"] == "output.contains"]
    assert len(details) == 1
    assert '"age*"' in details[0]


def test_paths_of_the_command_line_replace_the_include(project: Project) -> None:
    project.agent(AGENT)
    project.config()
    project.scenarios("scenarios: [{id: in, name: x, turns: [hi], checks: none}]")
    project.write("other/out.yaml", "scenarios: [{id: out, name: x, turns: [hi], checks: none}]")
    assert project.run("other").code == 0
    assert chosen(project) == {"out"}
    assert project.run("other/out.yaml", "scenarios").code == 0
    assert chosen(project) == {"in", "out"}
