"""The documents, executed: their YAML is loaded, their agents run, their tables compared with the code."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer.main
import yaml

from agenteval.adapters.agents import AGENTS
from agenteval.adapters.models.scripted_model import SCRIPT_ROLES
from agenteval.cli.main import app
from agenteval.core import errors
from agenteval.core.config import AgentConfig, Config, ModelConfig
from agenteval.core.event import Event
from agenteval.core.providers import PROVIDERS
from agenteval.core.scenario import CaseSpec, RowsSpec, Scenario
from agenteval.core.score import RuleKind
from agenteval.core.severity import FALSE_CLAIM, POLICY_VIOLATION, SEVERITY_OF_KIND, SEVERITY_OF_LABEL
from agenteval.core.tool_effects import (
    ACTS,
    GENERAL_VERBS,
    READING_VERBS,
    VERBS_THAT_ARE_NOUNS,
    WRITING_VERBS,
)
from agenteval.core.unsupported_keys import UNSUPPORTED_KEYS as NOT_YET
from agenteval.files.config_file import load_config
from agenteval.files.environment import _PATH_BY_VARIABLE
from agenteval.files.prompt_front_matter import RubricFrontMatter
from agenteval.files.scenario_loader import load_scenario_files
from agenteval.files.validation import known_keys
from agenteval.messages.chat import jsonable
from agenteval.planning import judge_setup, preflight
from agenteval.reporters import REPORTERS
from agenteval.reporters.results import history as results_history
from agenteval.reporters.results import shape as results_shape
from agenteval.reporters.results.samples_csv import COLUMNS
from agenteval.running.registries import REGISTRIES
from agenteval.scoring.checks import RULES
from agenteval.scoring.judges.custom import ScoreInput
from agenteval.scoring.metrics import built_in_metrics
from tests.front_door.test_schema import mistakes
from tests.support.kit import Done, Project, environment, failed_checks
from tests.support.local_servers import LocalServer, chat, respond_json
from tests.support.model_agents import model_server

ROOT = Path(__file__).parent.parent
PAGES = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"]
PAGES += [f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md"))]

_FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# ([\w./-]+\.(?:yaml|yml|py))\n")
_ROW = re.compile(r"^\| *(.*?) *\|$", re.MULTILINE)


class Block(NamedTuple):
    """A fenced block. ``kind`` is what its fence says; ``file`` the name in its first line, if any."""

    kind: str
    text: str
    line: int

    @property
    def file(self) -> str:
        named = _FILE.match(self.text)
        rubric = self.kind.removeprefix("md ") if self.kind.startswith("md ") else ""
        return named[1] if named else rubric


@cache
def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


@cache
def blocks(page: str) -> tuple[Block, ...]:
    text = text_of(page)
    return tuple(Block(m[1], m[2], text.count("\n", 0, m.start()) + 1) for m in _FENCE.finditer(text))


def write_data(project: Project, page: str) -> None:
    """The tables and prompts of a page: the fence of each names its file."""
    for block in blocks(page):
        kind, _, file = block.kind.partition(" ")
        if kind in ("csv", "md") and file:
            project.write(file, block.text)


def section(page: str, heading: str) -> str:
    """The text below a heading, up to the next one of its level."""
    level = heading.partition(" ")[0]
    _, found, after = text_of(page).partition(f"\n{heading}\n")
    assert found, f"{page} has no heading '{heading}'"
    # A comment in a block of code begins like a heading.
    prose = _FENCE.sub(lambda block: re.sub("[^\n]", " ", block[0]), after)
    end = re.search(rf"^#{{1,{len(level)}}} ", prose, flags=re.MULTILINE)
    return after[: end.start()] if end else after


def rows(text: str) -> list[list[str]]:
    """The cells of every table row of ``text``, heads and rules left out."""
    cells = [[cell.strip() for cell in row.split(" | ")] for row in _ROW.findall(text)]
    rules = {i for i, row in enumerate(cells) if set("".join(row)) <= set("-| ")}
    return [row for i, row in enumerate(cells) if i not in rules and i + 1 not in rules]


def first_code(text: str) -> list[str]:
    """What stands in backticks in the first cell of each row."""
    return [name for row in rows(text) for name in re.findall(r"`([^`]+)`", row[0])]


ALL = [pytest.param(page, block, id=f"{page}:{block.line}") for page in PAGES for block in blocks(page)]
YAML = [case for case in ALL if case.values[1].kind.split()[:1] == ["yaml"]]  # type: ignore[union-attr]
PYTHON = [case for case in ALL if case.values[1].kind == "python"]  # type: ignore[union-attr]
CONFIGURATIONS = [case for case in YAML if case.values[1].file == "agenteval.yaml"]  # type: ignore[union-attr]
SCENARIOS = [case for case in YAML if case.values[1].file.startswith("scenarios/")]  # type: ignore[union-attr]
FRAGMENTS = [case for case in YAML if case.values[1].kind.startswith("yaml scenario")]  # type: ignore[union-attr]


def write_page(project: Project, page: str) -> None:
    """Every file that a page shows; of several with one name, the first."""
    for block in blocks(page):
        if block.file and not (project.root / block.file).exists():
            project.write(block.file, block.text)


def texts(page: str, beginning: str) -> str:
    """The only block of output that has ``beginning`` in its first line."""
    (found,) = (b.text for b in blocks(page) if b.kind == "text" and beginning in b.text.split("\n")[0])
    return found


def without_ids(text: str) -> str:
    """Each run has an id of its own."""
    return re.sub(r"--failed-in [0-9a-f]{6}\b", "--failed-in ID", text)


def assert_shown(excerpt: str, out: str) -> None:
    """Every line of an excerpt is in the output, in this order."""
    excerpt, out, at = without_ids(excerpt), without_ids(out), 0
    for line in filter(str.strip, excerpt.splitlines()):
        assert line in out[at:], line
        at = out.index(line, at)


# ── YAML and Python ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("page", "block"), YAML)
def test_every_yaml_block_says_what_it_is(page: str, block: Block) -> None:
    is_fragment = block.kind in ("yaml scenario", "yaml scenario fails")
    assert is_fragment or block.file, f"{page}:{block.line}: name its file in the first line"
    assert isinstance(yaml.safe_load(block.text), dict)


@pytest.mark.parametrize(("page", "block"), CONFIGURATIONS)
def test_a_configuration_loads(page: str, block: Block, project: Project) -> None:
    write_page(project, page)  # it may name one of the page's files
    path = project.write("agenteval.yaml", block.text)
    assert load_config(path, REGISTRIES, environ={}, flags={}).config.agent is not None
    assert mistakes("config", block.text) == []


@pytest.mark.parametrize(("page", "block"), SCENARIOS)
def test_a_scenario_file_loads_or_is_refused_as_shown(page: str, block: Block, project: Project) -> None:
    path = project.write(block.file, block.text)
    write_data(project, page)
    if "wrong" not in path.name:
        assert load_scenario_files([path], rules=RULES, root=project.root)
        assert mistakes("scenario", block.text) == []
        return
    with pytest.raises(errors.AuthorError) as refused:
        load_scenario_files([path], rules=RULES, root=project.root, cwd=project.root)
    shown = next(after for after in blocks(page) if after.line > block.line)
    assert str(refused.value) == shown.text.strip()


@pytest.mark.parametrize(("page", "block"), PYTHON)
def test_a_python_block_compiles(page: str, block: Block) -> None:
    compile(block.text, f"{page}:{block.line}", "exec")


def test_the_toml_block_is_the_configuration_above_it(project: Project) -> None:
    (block,) = (b for b in blocks("docs/configuration.md") if b.kind == "toml")
    config = load_config(project.write("pyproject.toml", block.text), REGISTRIES, environ={}, flags={}).config
    assert config.agent is not None
    assert (config.agent.name, config.metrics) == ("shop-bot", ())


SAID = "Booked for **20:00**, in all 1,250.50 EUR, reference BK-7."
CALLED = [("search", {"city": "Rome"}), ("book", {"time": "20:00", "seats": 2}), ("confirm", {})]


def test_the_fragments_hold_and_fail_as_the_page_says(project: Project) -> None:
    """One run of all fragments, against the agent that the page supposes and a judge who agrees."""
    supposed = section("docs/scenarios.md", "### Tool calls")
    listed = re.findall(r"`(search\(.*?confirm\(\))`", supposed)
    assert listed == ['search(city="Rome")`, `book(time="20:00", seats=2)`, `confirm()']
    assert f'"{SAID}"' in section("docs/scenarios.md", "### Output")
    project.agent(
        f"async def agent(messages, ctx):\n"
        f"    for name, args in {CALLED!r}:\n"
        f"        await ctx.call_tool(name, args)\n"
        f"    return {SAID!r}\n"
    )
    project.config("metrics: []\nunmocked_tools: empty\nmodels: {default: scripted/yes.yaml}\n")
    project.write(
        "yes.yaml", "replies: [{when: {metric: criteria}, reply: {evidence: '', reason: '', label: pass}}]\n"
    )
    fails = {}
    for case in FRAGMENTS:
        block: Any = case.values[1]
        name = f"line-{block.line}"
        fails[name] = block.kind.endswith("fails")
        turns = "" if "turns:" in block.text else "turns: [Book a table.]\n"
        project.scenarios(f"id: {name}\n{turns}{block.text}", f"scenarios/{name}.yaml")
    project.run()
    verdicts = {s["id"]: s["verdict"] for s in project.results()["scenarios"]}
    assert verdicts == {name: "failed" if fail else "passed" for name, fail in fails.items()}
    assert set(fails.values()) == {True, False}


# ── the agents and outputs that are shown ────────────────────────────────────────────────────────


def finished(done: Done, expected: int) -> str:
    assert done.code == expected, done.all
    return done.out


def test_the_agent_whose_client_is_heard(project: Project) -> None:
    write_page(project, "docs/agents.md")
    config = next(b for b in blocks("docs/agents.md") if "target: asks_a_model.py" in b.text)
    project.write("agenteval.yaml", config.text)
    calls = "{match: strict, calls: [{name: get_order, args: {id: ORD-42}}]}"
    project.scenarios(f"{{id: a, turns: [Where is ORD-42?], expect: {{tool_calls: {calls}}}}}")
    with model_server() as server:
        env = {"OPENAI_BASE_URL": f"{server.address}/v1", "OPENAI_API_KEY": "none"}
        finished(project.run(env=env), 0)


def test_every_agent_of_the_page_runs_side_by_side(project: Project) -> None:
    write_page(project, "docs/agents.md")
    comparison = next(b for b in blocks("docs/agents.md") if "compare:" in b.text)
    project.write("agenteval.yaml", comparison.text)
    project.scenarios(
        """
        id: order-status
        tools:
          get_order:
            parameters: {type: object, properties: {id: {type: string}}, required: [id]}
            returns: {id: "${args.id}", status: shipped}
        turns: [Where is my order ORD-42?, And now?]
        expect:
          tool_calls: {calls: [{name: get_order, args: {id: ORD-42}}]}
          output: {contains: [shipped]}
        """
    )
    finished(project.run(), 0)
    agents = {s["agent"]: s["verdict"] for s in project.results()["scenarios"]}
    others = ("bot.py", "shop_adapter.py", "handoff.py", "asks_a_model.py", "own_tools.py")
    shown = [b for b in blocks("docs/agents.md") if b.kind == "python" and b.file not in others]
    assert len(agents) == len(shown) == 5
    assert set(agents.values()) == {"passed"}


def test_every_target_of_the_first_table_is_played_as_it_stands(project: Project) -> None:
    write_page(project, "docs/agents.md")
    table = text_of("docs/agents.md").partition("\n## ")[0]
    targets = re.findall(r"`target: (bot\.py:\S+)`", table)
    assert len(targets) == 6
    agents = "".join(f"  a{at}: {{target: '{target}'}}\n" for at, target in enumerate(targets))
    project.config(f"agents:\n{agents}", target="bot.py:answer")
    lines = (
        f"- {{id: s{at}, agent: a{at}, turns: [{{user: one, expect: {{output: {{contains: [asked]}}}}}},"
        " {user: two, expect: {output: {contains: [asked, two]}}}]}\n"
        for at in range(len(targets))
    )
    project.scenarios("scenarios:\n" + "".join(lines))
    finished(project.run(), 0)

    project.config("agent: {name: shop-bot, target: 'bot.py:Bot.chat'}\n", target="")
    project.scenarios("id: s\nturns: [one]\nchecks: none\n")
    assert finished(project.call("validate"), 0).startswith(texts("docs/agents.md", "valid:"))


def test_the_agents_of_the_page_hand_over_as_its_scenario_says(project: Project) -> None:
    write_page(project, "docs/agents.md")
    scenario = next(b for b in blocks("docs/scenarios.md") if b.file == "scenarios/handoff.yaml")
    project.config(target="handoff.py:agent")
    project.scenarios(scenario.text)
    finished(project.run(), 0)
    project.scenarios(scenario.text.replace("agents: [triage, billing]", "agents: [billing, triage]"))
    finished(project.run(), 1)


def test_the_adapter_of_the_page_is_played_and_its_options_are_checked(project: Project) -> None:
    found = blocks("docs/agents.md")
    adapter, config = (
        next(b for b in found if b.file == f) for f in ("shop_adapter.py", "shop/agenteval.yaml")
    )
    (entry,) = (b.text for b in found if b.kind == "toml")
    project.write("shop_adapter.py", adapter.text)
    project.write("shop-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: shop\nVersion: 1\n")
    line = entry.splitlines()[1].replace('"', "")
    project.write("shop-1.dist-info/entry_points.txt", f"[agenteval.agents]\n{line}\n")
    project.write("agenteval.yaml", config.text)
    project.scenarios("id: s\nturns: [Ann]\nexpect: {output: {contains: ['Hello Hello, Ann!']}}\n")
    finished(project.run(), 0)
    project.write("agenteval.yaml", config.text.replace("times: 2", "times: 9"))
    done = project.run()
    assert (done.code, texts_in("docs/agents.md", "agenteval.yaml:") in done.err) == (2, True), done.err


def texts_in(page: str, beginning: str) -> str:
    """What stands in backticks on a page and begins so."""
    codes = re.findall(r"`([^`]+)`", _FENCE.sub("", text_of(page)))
    return next(code for code in codes if code.startswith(beginning))


def test_the_checks_of_the_page_in_python_json_and_citations_hold_and_fail(project: Project) -> None:
    for block in blocks("docs/scenarios.md"):
        if block.file in (
            "scenarios/json.yaml",
            "scenarios/cites.yaml",
            "scenarios/polite.yaml",
            "scenarios/checks.py",
        ):
            project.write(block.file, block.text)
    project.config("metrics: []")
    said = {
        "Give": '```json\n{"id": "ORD-42", "items": [{"price": 9.5}, {}]}\n```',
        "Book": "Booked for 1250.50 EUR: BK-7",
        "Hello!": "Please come in.",
        "Bye!": "Please come again.",
    }
    agent = """
        async def agent(messages, ctx):
            word = messages[-1]["content"].split()[0]
            list(ctx.tools)  # who reads the list has no other way to tools
            if word == "Book" and {calls}:
                await ctx.call_tool("book", {{}})
            return {said!r}[word]
        """
    project.agent(agent.format(calls=True, said=said))
    finished(project.run(), 0)
    worse = {
        "Give": '{"id": "ORD-42", "items": []}',
        "Hello!": "Come in.",
        "Book": said["Book"],
        "Bye!": "Bye.",
    }
    project.agent(agent.format(calls=False, said=worse))
    finished(project.run(), 1)
    failed = {
        s["id"]: {n for _, n in failed_checks(project.sample(s["id"]))}
        for s in project.results()["scenarios"]
    }
    assert failed == {
        "order-as-json": {"output.json_schema", "output.json"},
        "cites-the-reference": {"output.cites"},
        "polite": {"python"},
    }


def test_the_tables_of_the_page_hold_and_fail_by_their_rows(project: Project) -> None:
    write_data(project, "docs/scenarios.md")
    for block in blocks("docs/scenarios.md"):
        if block.file in ("scenarios/table.yaml", "scenarios/status.yaml"):
            project.write(block.file, block.text)
    project.config()
    agent = """
        import re
        async def agent(messages, ctx):
            found = re.search(r"ORD-\\d", messages[-1]["content"])
            if not found:
                return "Good morning!"
            order = await ctx.call_tool("get_order", {{"id": found[0]}})
            return f"{{order['id']}} is {{order['status']}}, {{order.get('days')}} {days}"
        """
    project.agent(agent.format(days="days"))
    finished(project.run(), 0)
    assert project.call("list").out.split() == [
        "scenarios/status.yaml::status-ORD-7",
        "scenarios/status.yaml::status-ORD-8",
        "scenarios/table.yaml::T-1",
        "scenarios/table.yaml::T-2",
    ]
    project.agent(agent.format(days="weeks"))
    finished(project.run("-s", "status-ORD-8"), 1)
    assert "2 of 2 rows" in project.run().out


def test_the_tool_world_of_the_page_answers_as_it_says(project: Project) -> None:
    write_page(project, "docs/tools.md")
    project.agent(
        """
        async def agent(messages, ctx):
            weather = await ctx.call_tool("get_weather", {"city": "Rome"})
            wrong = await ctx.call_tool("get_weather", {})
            orders = [await ctx.call_tool("create_order", {}) for _ in range(3)]
            found = [await ctx.call_tool("lookup", {"id": id}) for id in ("ORD-0", "ORD-42")]
            return repr((weather, wrong, orders, found))
        """
    )
    project.config("metrics: []")
    finished(project.run("-s", "world"), 0)
    calls = project.sample()["turns"][0]["tool_calls"]
    assert [call["result"] for call in calls] == [
        {"city": "Rome", "temp": 20},
        {"error": "wrong arguments: 'city' is a required property"},
        {"error": "Server busy, please retry"},
        {"orderId": "ORD-001"},
        {"orderId": "ORD-001"},
        {"error": "there is no such order"},
        {"id": "ORD-42", "status": "shipped", "seen": 1},
    ]


@pytest.mark.parametrize(("order", "code"), [("ORD-42", 0), ("ORD-43", 1)])
def test_the_world_in_python_of_the_page_answers_and_is_checked(
    project: Project, order: str, code: int
) -> None:
    write_page(project, "docs/tools.md")
    project.agent(
        f"""
        async def agent(messages, ctx):
            await ctx.call_tool("find_policy", {{"topic": "returns"}})
            await ctx.call_tool("get_order", {{"order_id": "ORD-42"}})
            await ctx.call_tool("cancel_order", {{"order_id": "{order}"}})
            return "Done."
        """
    )
    project.config("metrics: []\ndetectors: []")
    finished(project.run("-s", "shop-world"), code)
    assert failed_checks(project.sample()) == ({(None, "state.changed")} if code else set())


def test_the_agents_own_tools_of_the_page_work_on_the_state(project: Project) -> None:
    write_page(project, "docs/tools.md")
    (agent,) = (b.text for b in blocks("docs/tools.md") if b.kind == "text" and b.text.startswith("agent:"))
    project.write("agenteval.yaml", f"{agent.replace('python3', json.dumps(sys.executable))}metrics: []\n")
    finished(project.run("-s", "own-tools"), 0)
    code = project.root / "own_tools.py"
    code.write_text(code.read_text("utf-8").replace(" WHERE id = ?", " WHERE id <> ?"), "utf-8")
    finished(project.run("-s", "own-tools"), 1)


def test_the_project_of_the_readme_ends_as_shown(project: Project) -> None:
    write_page(project, "README.md")
    narrow = {"COLUMNS": "80"}
    out = finished(project.run(env=narrow), 1)
    whole = project.call("report", "latest", "-v", env={"COLUMNS": "110"}).out
    (shown,) = (b.text for b in blocks("README.md") if b.kind == "text" and "order-status" in b.text)
    assert without_ids(shown) in without_ids(out) or without_ids(shown) in without_ids(whole)


def test_the_http_agent_of_the_readme_is_reached(project: Project) -> None:
    write_page(project, "README.md")
    block = next(b for b in blocks("README.md") if b.file == "agenteval.yaml" and "endpoint" in b.text)
    project.write("agenteval.yaml", block.text)
    with LocalServer(chat("It has been shipped and arrives on 3 May.")) as server:
        done = project.run(env={"AGENT_URL": server.url, "AGENT_API_KEY": "key-1234567"})
    assert done.code == 3, done.all  # it does not look the order up, and may have a way of its own
    assert "no call" in done.all
    assert server.requests[0].json["model"] == "shop-model"
    assert server.requests[0].headers["authorization"] == "Bearer key-1234567"
    assert [tool["function"]["name"] for tool in server.requests[0].json["tools"]] == ["get_order"]
    assert "key-1234567" not in done.all + (project.root / "results.json").read_text("utf-8")


@pytest.mark.parametrize("state", ["completed", "failed"])
def test_the_a2a_agent_of_the_page_is_asked_in_one_context(project: Project, state: str) -> None:
    task: dict[str, Any] = {"id": "t", "status": {"state": f"TASK_STATE_{state.upper()}"}}
    if state == "completed":
        task["artifacts"] = [{"parts": [{"text": "It has "}, {"text": "shipped."}]}]
    (block,) = (b for b in blocks("docs/agents.md") if "SendMessage" in b.text)
    with LocalServer(respond_json({"jsonrpc": "2.0", "id": 0, "result": {"task": task}})) as server:
        project.write("agenteval.yaml", block.text.replace("http://localhost:9999", server.address))
        shipped = "expect: {output: {contains: [has shipped]}}"
        project.scenarios(f"scenarios: [{{id: s, turns: [Where is it?, Really?], {shipped}}}]")
        finished(project.run(), 0 if state == "completed" else 1)
    sent = [request.json["params"]["message"] for request in server.requests]
    assert len({each["contextId"] for each in sent}) == 1
    said = ["Where is it?", "Really?"] if state == "completed" else ["Where is it?"]
    assert [each["parts"] for each in sent] == [[{"text": text}] for text in said]


def test_the_example_suite_ends_as_the_readme_shows(project: Project) -> None:
    wide = {"COLUMNS": "110"}
    report = ("--report", f"json={project.root / 'results.json'}")
    green = finished(Project(ROOT).call("run", *report, env=wide), 0)
    assert_shown(texts("docs/examples.md", "PASSED: "), green)
    usage = project.results()["summary"]["usage"]
    asked = sum(usage[role]["calls"] for role in ("user", "judge", "dedup"))
    told = int(re.findall(r"about (\d+) calls", text_of("README.md"))[0])
    assert abs(asked - told) < 20

    out = finished(Project(ROOT).call("run", "--agent", "wonderbot-first", *report, env=wide), 1)
    for shown in (texts("README.md", "── calls-per-day"), texts("docs/examples.md", "FAILED: ")):
        for part in shown.split("\n\n"):
            assert_shown(part, out)
    results = project.results()
    failed = {s["id"] for s in results["scenarios"] if s["verdict"] != "passed"}
    assert failed == set(
        re.findall(r"^- `([\w-]+)`:", section("docs/examples.md", "## The example suite"), re.MULTILINE)
    )
    assert f"{len(results['scenarios'])} scenarios, no key" in text_of("README.md")
    assert results["summary"]["scripted"] is True


def test_the_run_of_the_article_is_scored_as_the_readme_shows(project: Project) -> None:
    results = project.root / "results.json"
    files = ("scenarios/article/run.jsonl", "--scenarios", "scenarios/article/cases.yaml")
    score = Project(ROOT).call("score", *files, "--report", f"json={results}", env={"COLUMNS": "110"})
    assert " ".join(files) in text_of("README.md")
    assert_shown(texts("README.md", "│ Dimension"), finished(score, 1))
    samples = {each["id"]: each["samples"][0] for each in project.results()["scenarios"]}
    assert {name for name, each in samples.items() if each["verdict"] != "passed"} == {"C-05", "R-01"}
    assert (samples["C-05"]["tool_accuracy"], samples["C-05"]["output_correct"]) == (0.5, True)
    assert not any(each["findings"] for each in samples.values())
    pages = text_of("docs/examples.md") + (ROOT / "scenarios/article/README.md").read_text(encoding="utf-8")
    whole = " ".join(
        Project(ROOT).call("report", str(Path(project.results()["run"]["id"])), "-v").out.split()
    )
    shown = (("Tool call accuracy", "90.0 %"), ("Task completion rate", "100.0 %"), ("Pass rate", "80.0 %"))
    for metric, value in (*shown, ("Avg steps per task", "2.33"), ("Avg tokens per task", "51.3")):
        assert f"{metric} {value}" in whole
        assert value in pages


def test_the_warning_of_a_question_is_the_one_shown(project: Project) -> None:
    project.config("metrics: []")
    project.agent("def agent(messages):\n    return 'Hello.'\n")
    (block,) = (b for b in blocks("docs/scenarios.md") if b.file == "scenarios/limit.yaml")
    project.write(block.file, block.text)
    done = project.call("validate")
    assert texts("docs/scenarios.md", "gives away '10000'").strip() in finished(done, 0) + done.err


def test_the_judges_of_the_page_judge_as_shown(project: Project) -> None:
    write_page(project, "docs/judges.md")
    out = finished(project.run("-v", env={"COLUMNS": "110"}), 1)
    for beginning in ("criteria:", "scenario", "Issues"):
        assert_shown(texts("docs/judges.md", beginning), out)
    sample = project.sample()
    assert {name: score["value"] for name, score in sample["scores"].items()} == {
        "goal_completion": 0,
        "clarity": 3,
        "effort": 8.3,
    }
    assert sorted(sample["turns"][1]["scores"]) == ["brand voice", "empathy", "helpfulness", "promises"]
    assert [finding["label"] for finding in sample["findings"]].count("empty") == 1


def test_the_comparison_of_the_page_ends_as_shown(project: Project) -> None:
    write_page(project, "docs/comparing.md")
    project.write("accepted.yaml", "accepted: []\n")
    wide = {"COLUMNS": "110"}
    assert project.run(env=wide).code == 1
    first, second = (b for b in blocks("docs/comparing.md") if b.file == "shop_bot.py")
    project.write("shop_bot.py", second.text)
    assert project.run(env=wide).code == 1
    out = finished(project.call("diff", "previous", "latest", env=wide), 1)
    for beginning in ("Scenarios:", "Failures"):
        assert_shown(texts("docs/comparing.md", beginning), out)
    project.write("shop_bot.py", first.text)
    for block in blocks("docs/comparing.md"):
        if "accepted:" in block.text and block.file:
            project.write(block.file, block.text)
    out = finished(project.run(env=wide), 0)
    assert_shown(texts("docs/comparing.md", "67d6e32fd2ac accepted"), out)


def test_the_users_of_the_page_are_played_by_the_replies_of_the_models_page(project: Project) -> None:
    """The second scenario of the page has no replies there: here its model answers as the assistant."""
    write_page(project, "docs/users.md")
    for name in ("walk-in", "long-talk"):  # the page shows no run of them
        (project.root / f"scenarios/{name}.yaml").unlink()
    (config,) = (b for b in blocks("docs/models.md") if b.file == "agenteval.yaml" and "salon" in b.text)
    (replies,) = (b for b in blocks("docs/models.md") if b.file == "replies.yaml")
    (agent,) = (b for b in blocks("docs/models.md") if b.file == "salon_bot.py")
    lost = "  - {when: {role: user}, reply: {message: Is there anything else I can help you with?}}\n"
    for block, more in ((config, ""), (replies, lost), (agent, "")):
        project.write(block.file, block.text + more)
    out = finished(project.run("-v", env={"COLUMNS": "110"}), 3)
    assert_shown(texts("docs/models.md", "scenario"), out)
    assert_shown(texts("docs/users.md", "second-thoughts"), out)
    booked, lost_to_it = project.results()["scenarios"]
    assert [sample["verdict"] for sample in booked["samples"]] == ["passed"] * 3
    assert {sample["fault"] for sample in lost_to_it["samples"]} == {"simulator"}


def test_what_is_told_without_a_model_is_what_the_page_shows(project: Project) -> None:
    write_page(project, "docs/users.md")
    scenarios = load_scenario_files(
        [project.root / "scenarios/haircut.yaml"], rules=RULES, root=project.root, cwd=project.root
    )
    config = Config(metrics=("helpfulness",), source="agenteval.yaml")
    chosen = judge_setup.load_metrics(config)
    told = preflight.model_problems(scenarios[:1], config, chosen, no_judge=False)
    shown = section("docs/verdicts.md", "### No model").splitlines()
    assert [line for line in shown if line.startswith("agenteval: ")] == [f"agenteval: {p}" for p in told]
    left = preflight.model_problems(scenarios[:1], config, chosen, no_judge=True)
    assert [problem.what for problem in left] == [
        "scenario 'book-morning' needs a model for its simulated user, but none is set"
    ]


def test_the_run_of_the_python_page_ends_as_it_says(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project.root)
    first, *_ = (b for b in blocks("docs/python.md") if b.kind == "python")
    exec(compile(first.text, "docs/python.md", "exec"), {})


def test_the_tests_of_the_pytest_page_are_tests(project: Project) -> None:
    made, fixture = (b.text for b in blocks("docs/pytest.md") if b.kind == "python")
    project.config()
    project.agent("def agent(messages):\n    return 'Hello'\n")
    greet = "id: greet\ntags: [smoke]\nturns: [Hi]\nexpect: {output: {contains: Made}}\n"
    project.scenarios(greet)
    project.write("test_bot.py", made)
    project.write(
        "conftest.py", f"def make_agent(database):\n    return lambda messages: 'Made'\n\n\n{fixture}"
    )
    command = [sys.executable, "-m", "pytest", "-q", "test_bot.py"]
    done = subprocess.run(command, cwd=project.root, env=environment(), capture_output=True, text=True)
    assert "2 passed" in done.stdout, done.stdout


def test_the_test_of_contributing_is_one(project: Project) -> None:
    (block,) = (b for b in blocks("CONTRIBUTING.md") if b.kind == "python")
    project.write("test_it.py", f"from tests.support.kit import failed_checks\n\n\n{block.text}")
    names: dict[str, Any] = {}
    sys.path.insert(0, str(project.root))
    try:
        exec(compile((project.root / "test_it.py").read_text("utf-8"), "test_it.py", "exec"), names)
    finally:
        sys.path.remove(str(project.root))
    names["test_an_agent_that_forgets_is_red"](project)


# ── tables beside the code ───────────────────────────────────────────────────────────────────────

KEYS = section("docs/configuration.md", "## Keys")
JUDGED = section("docs/configuration.md", "## Judges and simulated users")
AGENT = section("docs/configuration.md", "## The agent")


def test_every_configuration_key_is_documented_and_no_other() -> None:
    listed = set(first_code(KEYS)) | set(first_code(JUDGED))
    assert listed == known_keys(Config)
    options = {key for kind in AGENTS for key in known_keys(AGENTS.get(kind).options)}
    assert sorted(first_code(AGENT)) == sorted({*known_keys(AgentConfig), *options})


def model_keys() -> str:
    """The second table of the section, of the keys of a model."""
    return "| key |" + section("docs/models.md", "## Providers").partition("| key |")[2]


@pytest.mark.parametrize(
    ("model", "text"),
    [(Config, KEYS + JUDGED), (AgentConfig, AGENT), (ModelConfig, model_keys())],
)
def test_documented_defaults_are_the_real_ones(model: Any, text: str) -> None:
    models = [model, *(AGENTS.get(kind).options for kind in AGENTS if model is AgentConfig)]
    fields = {name: field for each in models for name, field in each.model_fields.items()}
    for name, _type, default, *_meaning in rows(text):
        field = fields[name.strip("`")]
        real = None if field.is_required() else field.get_default(call_default_factory=True)
        if hasattr(real, "model_dump"):
            real = real.model_dump(exclude_defaults=True)
        if name == "`reporters`":
            real = [choice.name for choice in real]
        shown = None if default == "–" else yaml.safe_load(default.strip("`"))
        assert shown == jsonable(real), name


def test_every_variable_is_documented() -> None:
    assert sorted(first_code(section("docs/configuration.md", "## Environment"))) == sorted(_PATH_BY_VARIABLE)


def test_what_is_not_built_is_listed_as_such_and_nothing_else() -> None:
    listed = first_code(section("docs/configuration.md", "## Not supported yet"))
    keys = [pattern.replace("=", ": ") for pattern in NOT_YET["config"]]
    assert sorted(listed) == sorted(keys)
    refused = (
        section("docs/scenarios.md", "## Keys of a scenario").partition("Refused as")[2].partition(":")[2]
    )
    refused = refused.partition("### ")[0]
    assert sorted(re.findall(r"`([^`]+)`", refused)) == sorted(NOT_YET["scenario"])


def test_the_command_line_of_the_page_is_that_of_the_code() -> None:
    group: Any = typer.main.get_command(app)
    listed = re.findall(
        r"^agenteval ([a-z][a-z-]*)", section("docs/configuration.md", "## Command line"), re.M
    )
    assert sorted(listed) == sorted(group.commands)


def test_every_scenario_key_is_documented_and_no_other() -> None:
    keys = first_code(section("docs/scenarios.md", "## Keys of a scenario"))
    keys = [key for key in keys if key != "none"]
    known = {*known_keys(Scenario), *known_keys(RowsSpec), *known_keys(CaseSpec), "input"}
    assert sorted(keys) == sorted(known)


def exit_codes(page: str, heading: str) -> dict[int, str]:
    found = {row[0]: row[1] for row in rows(section(page, heading)) if row[0].isdigit()}
    return {int(code): re.split(r"[:;,(]", meaning)[0].strip() for code, meaning in found.items()}


def test_the_exit_codes_are_those_of_the_code() -> None:
    documented = exit_codes("docs/verdicts.md", "## Exit codes")
    assert set(exit_codes("README.md", "## Use it in CI")) == set(documented)
    assert documented[errors.AuthorError.exit_code] == "usage or configuration"
    assert documented[errors.NothingSelectedError.exit_code] == "nothing selected"
    assert documented[errors.InfrastructureError.exit_code] == "inconclusive"
    told = re.findall(r"(\d+) ([a-z ]+)", app.info.epilog or "")
    assert documented == {**{int(code): text.strip() for code, text in told}, 0: "every gate passed"}


def test_the_severities_are_those_of_the_table() -> None:
    listed = rows(section("docs/verdicts.md", "## Findings and severities"))
    by_severity = {row[0]: [label.lower() for label in re.findall(r"\*([^*]+)\*", row[2])] for row in listed}
    of_labels = {label: str(severity) for label, severity in SEVERITY_OF_LABEL.items()}
    del of_labels[POLICY_VIOLATION]  # by its kind
    by_severity["critical"] = [
        label for label in by_severity["critical"] if label not in ("writing call", FALSE_CLAIM)
    ]
    assert {label: severity for severity, labels in by_severity.items() for label in labels} == of_labels
    kinds = rows(section("docs/judges.md", "### The policy"))
    severity_by_kind = {row[0].strip("`"): row[2].split()[0] for row in kinds}
    # A broken permission is critical where something was done by it.
    assert severity_by_kind == {**SEVERITY_OF_KIND, RuleKind.PERMISSION: "critical"}


def test_the_names_that_say_what_a_tool_does_are_those_of_the_code() -> None:
    listed = rows(section("docs/tools.md", "## What a tool does"))
    by_name = [set(row[0].split()) for row in listed if row[1].startswith(("writes", "reads"))]
    verbs = [WRITING_VERBS, VERBS_THAT_ARE_NOUNS, GENERAL_VERBS, READING_VERBS]
    assert by_name == [set(each) for each in verbs]
    (acts,) = (row[1].partition(": ")[2] for row in listed if "an act follows" in row[1])
    assert set(acts.split()) == set(ACTS)


def test_the_reporters_are_those_that_exist() -> None:
    top = text_of("docs/reports.md").partition("## Terminal")[0]
    assert sorted(first_code(top)) == sorted(REPORTERS)


def test_the_providers_are_those_that_exist() -> None:
    listed = {row[0].strip("`"): row[1:] for row in rows(section("docs/models.md", "## Providers"))}
    providers = {name: listed.pop(name) for name in PROVIDERS}
    assert set(listed) == known_keys(ModelConfig)
    for name, provider in PROVIDERS.shipped.items():
        address, keys = providers[name]
        assert provider.base_url in address
        assert tuple(re.findall(r"`([A-Z_]+)`", keys)) == provider.keys


def test_the_metrics_are_those_that_exist() -> None:
    listed = rows(section("docs/judges.md", "## The nine metrics").partition("### Labels")[0])
    kinds = {(0.0, 1.0): "an outcome", (1.0, 5.0): "1 to 5"}
    assert [row[:3] for row in listed] == [
        [f"`{spec.name}`", spec.scope, "a label" if spec.is_label else kinds[spec.scale]]
        for spec in built_in_metrics()
    ]
    labels = {
        row[0].strip("`"): re.findall(r"`([^`]+)`", row[1])
        for row in rows(section("docs/judges.md", "### Labels"))
    }
    assert labels == {spec.name: list(spec.labels) for spec in built_in_metrics() if spec.is_label}


def test_what_custom_metrics_may_say_and_see_is_documented() -> None:
    rubric = first_code(section("docs/judges.md", "### A rubric file, without code"))
    assert sorted(rubric) == sorted(RubricFrontMatter.model_fields)
    seen = first_code(section("docs/judges.md", "### A class"))
    assert seen == list(ScoreInput.__dataclass_fields__)


def test_the_conditions_and_roles_of_the_scripted_model_are_documented() -> None:
    named = first_code(section("docs/models.md", "## The scripted model"))
    assert named == ["role", "scenario", "turn", "metric", "text", "user", "judge", "dedup"]
    assert {*named[-3:], "agent"} == set(SCRIPT_ROLES)


SHAPES = {
    "top": "Results",
    "`run`": "RunShape",
    "`summary`": "SummaryShape",
    "`summary.gates[]`": "GateShape",
    "`summary.failure_rates`": "FailureRatesShape",
    "`summary.failure_rates.rows[]`": "FailureRateShape",
    "`quotations[]`": "QuotationShape",
    "`summary.variants[]`": "VariantRowShape",
    "`summary.caveats[]`": "CaveatShape",
    "`summary.accepted[]`": "AcceptedShape",
    "`scenarios[]`": "ScenarioShape",
    "`scenarios[].violations[]`": "ViolationShape",
    "`samples[]`": "SampleShape",
    "`turns[]`": "TurnShape",
    "`tool_calls[]`": "ToolCallShape",
    "`checks[]`": "CheckShape",
    "`scores.METRIC`": "ScoreShape",
    "`votes[]`": "VoteShape",
    "`score_failures[]`": "ScoreFailureShape",
    "`findings[]`": "FindingShape",
    "`issues[]`": "IssueShape",
    "`examples[]`": "IssueExampleShape",
    "`second_opinions`": "SecondOpinionsShape",
    "`simulator`": "SimulatorShape",
    "`simulator.reviews`": "UserReviewsShape",
    "`user_review`": "UserReviewShape",
    "`scenarios[].statistics`": "RepeatsShape",
    "`aggregates.METRIC`": "AggregateShape",
    "`usage`": "UsageShape",
    "`ledger[]`": "LedgerLineShape",
    "`merged`": "MergedShape",
    "`summary.faults[]`": "FaultRowShape",
}


def test_the_fields_of_the_json_report_are_those_of_its_shape() -> None:
    listed = {
        row[0]: set(re.findall(r"`(\w+)`", row[1])) for row in rows(section("docs/reports.md", "## JSON"))
    }
    assert set(listed) == set(SHAPES)
    for place, name in SHAPES.items():
        fields = set(getattr(results_shape, name).model_fields)
        assert listed[place] - {"args"} == fields - {"args"}, place


def test_the_columns_of_csv_are_those_of_the_code() -> None:
    listed = [row[0] for row in rows(section("docs/reports.md", "## CSV"))]
    names = [name for cell in listed for name in re.findall(r"`([^`]+)`", cell)]
    assert sorted(names) == sorted([*COLUMNS, "score.METRIC", "label.METRIC"])


def test_the_fields_of_a_history_are_those_of_its_shape() -> None:
    page = section("docs/comparing.md", "## agenteval report --history").partition("| place |")[2]
    listed = {row[0]: set(re.findall(r"`(\w+)`", row[1])) for row in rows(f"| place |{page}")}
    shapes: dict[str, type[results_shape.Shape]] = {
        "top": results_history.HistoryShape,
        "`points[]`": results_history.HistoryPointShape,
        "`agents[]`": results_history.AgentFiguresShape,
        "`means[]`": results_history.MetricMeanShape,
        "`left_out[]`": results_history.LeftOutRunsShape,
    }
    assert listed.pop("`agents[]`") == {*shapes.pop("`agents[]`").model_fields, "mean", "p50", "p95", "n"}
    assert listed == {place: set(shape.model_fields) for place, shape in shapes.items()}
    assert f"`schema_version` ({results_history.HISTORY_VERSION})" in page


def test_the_words_for_an_attacker_are_those_that_are_looked_for() -> None:
    listed = section("docs/judges.md", "### The goal").partition("any ending):")[2].partition(".")[0]
    assert tuple(re.findall(r"`([^`]+)`", listed)) == preflight.ATTACKS


def test_the_events_are_those_of_the_journal() -> None:
    union: Any = Event
    members = union.__origin__.__args__
    names = {member.model_fields["type"].default for member in members}
    assert set(first_code(section("docs/reports.md", "## The journal"))) == names


def test_the_rooms_are_those_that_are_checked() -> None:
    drawing = section("docs/architecture.md", "## Fifteen rooms").split("```")[1]
    drawn = [line.split()[0] for line in drawing.splitlines()[1:] if line.strip()]
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    (contract,) = (each for each in settings["contracts"] if each["type"] == "layers")
    assert drawn == contract["layers"]


ABOUT_CODE = ("CONTRIBUTING.md", "docs/architecture.md", "docs/reading-the-code.md")
_MODULE = re.compile(r"`((?:[a-z_]+/)+[a-z_0-9]+\.py)`(?:\s+`([A-Za-z_]+)(?:\.([a-z_]+))?`)?")


@pytest.mark.parametrize("page", ABOUT_CODE)
def test_what_is_said_of_the_code_is_there(page: str) -> None:
    """Each module that is named exists, and has the function or class that is named after it."""
    for path, name, method in _MODULE.findall(text_of(page)):
        file = next((base / path for base in (ROOT / "agenteval", ROOT) if (base / path).is_file()), None)
        assert file, path
        if name and file.is_relative_to(ROOT / "agenteval"):
            module = import_module(".".join(file.relative_to(ROOT).with_suffix("").parts))
            assert hasattr(module, name), f"{path} {name}"
            assert not method or hasattr(getattr(module, name), method), f"{path} {name}.{method}"


def test_the_modules_of_the_models_are_those_that_exist() -> None:
    documented = first_code(section("docs/architecture.md", "## Models of our own"))
    found = {path.stem for path in (ROOT / "agenteval/adapters/models").glob("[!_]*.py")}
    assert set(documented) == found


# ── commands, links ──────────────────────────────────────────────────────────────────────────────


_COMMAND = re.compile(r"\bagenteval ((?:run|validate|--|[a-z]+-?[a-z]* (?=[-\[]))[^\n#&]*)")


def commands() -> Iterator[tuple[str, str]]:
    """Every ``agenteval …`` of the pages that is meant to be typed."""
    for page in PAGES:
        code = [b.text for b in blocks(page) if b.kind in ("sh", "text") or b.file.startswith(".github")]
        code += re.findall(r"`(agenteval [^`]+)`", _FENCE.sub("", text_of(page)))
        for text in code:
            for found in re.finditer(
                r"\bagenteval ((?:run|validate|--|[a-z]+-?[a-z]* (?=[-\[]))[^\n#&]*)", text
            ):
                yield page, found[1]


def test_the_commands_shown_have_the_options_that_exist() -> None:
    group: Any = typer.main.get_command(app)
    options = {name: {o for p in c.params for o in p.opts} for name, c in group.commands.items()}
    options[""] = {o for p in group.params for o in p.opts} | {"--help"}
    met = 0
    for page, line in commands():
        name = line.split()[0] if not line.startswith("-") else ""
        assert name in options, f"{page}: agenteval {line}"
        used = set(re.findall(r"(?<=\s)--?[a-z][\w-]*", f" {line}"))
        assert used <= options[name] | {"--help"}, f"{page}: agenteval {line}"
        met += 1
    assert met > 10


def test_every_option_is_documented_and_no_other() -> None:
    group: Any = typer.main.get_command(app)
    options = [p for c in group.commands.values() for p in c.params if p.opts[0].startswith("-")]
    names = {max(option.opts, key=len): getattr(option, "hidden", False) for option in options}
    listed = set(first_code(section("docs/configuration.md", "## Command line")))
    assert listed <= set(names)
    assert {name for name, is_hidden in names.items() if not is_hidden} <= listed


def anchors(page: str) -> set[str]:
    """As GitHub makes them of headings."""
    headings = re.findall(r"^#+ (.+)$", _FENCE.sub("", (ROOT / page).read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES)
def test_relative_links_resolve(page: str) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", _FENCE.sub("", text_of(page))):
        if target.startswith(("http://", "https://")):
            continue
        path, _, anchor = target.partition("#")
        full = (ROOT / page).parent / path if path else ROOT / page
        assert full.exists(), f"{page}: {target}"
        if anchor:
            assert anchor in anchors(str(full.resolve().relative_to(ROOT))), f"{page}: {target}"


def test_the_schema_is_where_the_page_says() -> None:
    path = ROOT / re.findall(r"`(agenteval/reporters/results/[\w.]+)`", text_of("docs/reports.md"))[0]
    assert json.loads(path.read_text("utf-8"))["title"] == "agenteval results"


def test_no_page_names_this_machine() -> None:
    for page in PAGES:
        assert not re.search(r"/work/|/tmp/|/home/|/opt/", text_of(page)), page
