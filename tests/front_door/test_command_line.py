"""The command line itself: streams, reports, results and their schema, environment, usage errors."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import jsonschema
import pytest
from lxml import etree

from agenteval import __version__
from tests.support.kit import Done, Project

AGENT = """
async def agent(messages, ctx):
    assert ctx.tools is not None
    text = messages[-1]["content"]
    if text == "boom":
        raise RuntimeError("boom")
    if text.startswith("call"):
        await ctx.call_tool("known", {"n": 1})
        await ctx.call_tool("unknown", {})
    return "answer to " + text
"""
SUITE = """
defaults: {tools: {known: {returns: {n: "${args.n}"}}}}
scenarios:
  - id: good
    name: A good one
    turns: [hi, again]
    expect: {output: {contains: [answer]}, limits: {steps: 9}}
  - id: bad
    name: A bad one
    category: efficiency
    epochs: 2
    turns:
      - hi
      - user: call
        expect: {output: {contains: [nowhere said]}}
  - {id: broken, name: A broken one, category: robustness, turns: [hi, boom], checks: none}
cases:
  - {id: C-01, input: hi there, expected_tools: [known], expected_output_contains: [hi]}
"""
ONE = "scenarios: [{id: a, name: a, turns: [hi], checks: none}]"


def write_suite(project: Project, config: str = "", scenarios: str = SUITE) -> Project:
    project.agent(AGENT)
    project.config(config)
    project.scenarios(scenarios)
    return project


@pytest.fixture
def suite(project: Project) -> Project:
    return write_suite(project)


# ── one run with every report ────────────────────────────────────────────────────────────────────

REPORTS = {"json": "results.json", "junit": "junit.xml", "github": "github.txt", "markdown": "report.md"}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, Done]:
    project = write_suite(Project(tmp_path_factory.mktemp("cli")))
    reports = [part for name, path in REPORTS.items() for part in ("--report", f"{name}={path}")]
    return project, project.call("run", "-v", *reports)


@pytest.fixture(scope="module")
def results(ran: tuple[Project, Done]) -> dict[str, Any]:
    return ran[0].results()


def report(ran: tuple[Project, Done], name: str) -> str:
    return (ran[0].root / REPORTS[name]).read_text(encoding="utf-8")


def test_results_keep_to_the_schema_that_ships(results: dict[str, Any]) -> None:
    path = files("agenteval").joinpath("reporters/results/results.schema.json")
    schema = json.loads(path.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(results, schema)


KEYS = {
    "results": "schema_version run summary scenarios",
    "summary": "verdict exit_code scripted gates dimensions statistics usage",
    "gate": "name value bound basis where verdict",
    "scenario": "id agent category verdict violations aggregates issues samples",
    "sample": "epoch variant verdict fault stop steps latency_ms usage checks scores score_failures findings"
    " turns",
    "finding": "metric label severity turn call evidence explanation",
    "turn": "user agent tool_calls steps latency_ms usage checks scores score_failures",
    "call": "name args result observed",
    "usage": "calls input_tokens output_tokens cached_tokens estimated cost",
    "check": "name passed detail",
}  # fmt: skip


def test_results_have_every_key_that_is_promised(results: dict[str, Any]) -> None:
    scenarios = results["scenarios"]
    samples = [sample for scenario in scenarios for sample in scenario["samples"]]
    turns = [turn for sample in samples for turn in sample["turns"]]
    found = {
        "results": [results],
        "summary": [results["summary"]],
        "gate": results["summary"]["gates"],
        "scenario": scenarios,
        "sample": samples,
        "finding": [finding for sample in samples for finding in sample["findings"]],
        "turn": turns,
        "call": [call for turn in turns for call in turn["tool_calls"]],
        "usage": [each["usage"] for each in (*samples, *turns)],
        "check": [check for each in (*samples, *turns) for check in each["checks"]],
    }
    for name, objects in found.items():
        assert all(set(KEYS[name].split()) <= set(each) for each in objects), name
        assert objects or name == "gate"


def test_results_hold_who_did_what(results: dict[str, Any]) -> None:
    found = {s["id"]: s for s in results["scenarios"]}
    assert {id: (s["category"], s["verdict"]) for id, s in found.items()} == {
        "good": ("capability", "passed"),
        "bad": ("efficiency", "failed"),
        "broken": ("robustness", "failed"),
        "C-01": ("capability", "failed"),
    }
    summary = results["summary"]
    assert (summary["verdict"], summary["exit_code"], summary["scripted"]) == ("failed", 1, False)
    assert {role: use["calls"] > 0 for role, use in summary["usage"].items()} == {
        role: role == "agent" for role in summary["usage"]
    }
    assert [s["epoch"] for s in found["bad"]["samples"]] == [0, 1]
    sample = found["bad"]["samples"][1]
    assert [c["name"] for c in sample["turns"][1]["tool_calls"]] == ["known", "unknown"]
    assert sample["turns"][1]["tool_calls"][0]["result"] == {"n": 1}
    assert [f["call"] for f in sample["findings"]] == [1]
    assert sample["steps"] == sum(turn["steps"] for turn in sample["turns"])
    assert "boom" in found["broken"]["samples"][0]["turns"][1]["error"]


def test_results_go_to_stdout_and_progress_to_stderr(ran: tuple[Project, Done]) -> None:
    _, done = ran
    assert done.code == 1
    # -v: transcripts of what passed as well
    for text in ("FAILED", "bad", "nowhere said", "scenarios/suite.yaml:", "answer to again"):
        assert text in done.out
    assert "FAILED" not in done.err
    assert done.err.strip()


def test_a_failure_shows_the_command_that_repeats_it(ran: tuple[Project, Done]) -> None:
    project, done = ran
    line = next(line for line in done.out.splitlines() if "agenteval run" in line and "bad" in line)
    again = project.call(*line[line.index("agenteval run") :].split()[1:])
    assert again.code == 1
    assert "nowhere said" in again.out
    assert "C-01" not in again.out


def test_each_report_names_the_failures_in_its_form(ran: tuple[Project, Done]) -> None:
    cases = etree.parse(str(ran[0].root / REPORTS["junit"])).findall(".//testcase")
    broken = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    assert len(cases) - len(broken) == 1
    assert "nowhere said" in report(ran, "junit")
    annotations = [line for line in report(ran, "github").splitlines() if line.startswith("::error ")]
    assert any("file=scenarios/suite.yaml" in line and "line=" in line for line in annotations)
    assert all(text in report(ran, "markdown") for text in ("nowhere said", "broken"))


def test_the_journal_has_an_event_in_each_line(ran: tuple[Project, Done], results: dict[str, Any]) -> None:
    run = results["run"]["id"]
    journal = ran[0].root / ".agenteval/runs" / run / "events.jsonl"
    events = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    assert (events[0]["type"], events[0]["run_id"]) == ("run_started", run)
    kinds = [event["type"] for event in events]
    assert (kinds.count("sample_started"), kinds.count("sample_finished")) == (5, 5)


def test_reports_have_names_of_their_own_when_no_path_is_given(project: Project) -> None:
    write_suite(project, "reporters: [terminal, json]\n")
    done = project.call("run", "--report", "junit", "--report", "markdown", "-s", "good")
    assert done.code == 0
    assert {".json", ".xml", ".md"} <= {path.suffix for path in project.root.rglob("*") if path.is_file()}
    assert "PASSED" in done.out


def test_github_writes_annotations_and_its_step_summary(suite: Project) -> None:
    summary = suite.root / "summary.md"
    env = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(summary)}
    done = suite.call("run", "--report", "github", "-s", "bad", env=env)
    assert "::error " in done.out
    assert "bad" in summary.read_text(encoding="utf-8")


# ── usage ────────────────────────────────────────────────────────────────────────────────────────

WRONG_USE = {
    "run --no-such-flag": ("no-such-flag",),
    "run --report jsn=x": ("'jsn'", "'json'"),
    "run --epochs 0": ("epochs",),
    "run --epochs many": ("epochs",),
    "run --category capabilty": ("capabilty", "capability"),
    "run nowhere.yaml": ("nowhere.yaml",),
    "run -c nowhere.yaml": ("nowhere.yaml",),
    "run --agent bott": ("'bott'", "'bot'"),
    "run --frist 1": ("--frist",),
    "score -k x": ("-k",),
    "rnu": ("'rnu'", "'run'"),
    "shwo": ("'shwo'", "'show'"),
    "valdiate": ("'validate'",),
    "tools srve": ("'srve'", "'serve'"),
    "history": ("'history'", "report", "validate"),
    "import x": ("'import'",),
    "run --backend dask": ("--backend",),
    "scenarios/suite.yaml": ("agenteval run scenarios/suite.yaml",),
}


@pytest.mark.parametrize("line", WRONG_USE)
def test_wrong_use_is_refused_with_what_is_known(suite: Project, line: str) -> None:
    done = suite.call(*line.split())
    done.refuses("", *WRONG_USE[line])
    assert done.out == ""
    assert not (suite.root / ".agenteval").exists()


COMMANDS = (
    "", "comment", "diff", "doctor", "list", "plan", "report", "run", "runs", "score", "show", "show-prompts",
    "tools", "tools schemas", "tools serve", "validate",
)  # fmt: skip


def test_the_short_option_for_help_is_the_long_one(project: Project) -> None:
    for name in COMMANDS:
        short, long = project.call(*name.split(), "-h"), project.call(*name.split(), "--help")
        assert (short.code, short.err) == (0, "")
        assert short.out == long.out
        assert f"Usage: agenteval {name}".rstrip() in short.out
    version = project.call("--version")
    assert (version.code, version.out.strip()) == (0, f"agenteval {__version__}")


@pytest.mark.parametrize("width", [60, 80, 120])
def test_help_is_as_wide_as_the_terminal_and_cuts_nothing(width: int, project: Project) -> None:
    for name in ("", "run", "plan", "show", "diff", "score"):
        lines = project.call(*name.split(), "--help", env={"COLUMNS": str(width)}).out.splitlines()
        assert max(map(len, lines)) in range(min(width, 110) - 25, min(width, 110) + 1), name
        assert not any(line.endswith("...") for line in lines[1:]), name


def test_the_short_names_of_options_do_what_the_long_ones_do(project: Project) -> None:
    write_suite(project, scenarios="""
        scenarios:
          - {id: a, turns: [hi], expect: {output: {contains: [nothing of this]}}}
          - {id: b, turns: [hi], checks: none}
    """)  # fmt: skip
    assert project.run("-n", "1", "-x").code == 1
    assert project.results()["run"]["outcome"] == "fail_fast"
    assert project.run("--epochs", "1").code == 1
    assert project.run("--lf").code == 1
    assert [each["id"] for each in project.results()["scenarios"]] == ["a"]


# ── validate ─────────────────────────────────────────────────────────────────────────────────────


def test_validate_loads_everything_and_calls_nothing(suite: Project) -> None:
    suite.agent("def agent(messages):\n    open('called', 'w')\n    return 'x'\n")
    done = suite.call("validate")
    assert (done.code, done.err) == (0, "")
    assert "4 scenarios" in done.out
    assert not (suite.root / "called").exists()
    assert not (suite.root / ".agenteval").exists()


# ── environment ──────────────────────────────────────────────────────────────────────────────────


def test_the_environment_is_expanded_once_and_an_unset_variable_is_an_error(project: Project) -> None:
    project.agent("def agent(messages):\n    return 'x'\n\n\ndef other(messages):\n    return 'other'\n")
    project.config("agent: {name: '${NAME:-bot}$${X}', target: 'agent.py:${WHICH}'}\n", target="")
    project.scenarios(ONE)
    project.run().refuses("agenteval", "agenteval.yaml:", "WHICH")
    assert project.run(env={"WHICH": "other", "NAME": "${WHICH}"}).code == 0
    assert project.sample()["turns"][0]["agent"] == "other"
    assert project.results()["scenarios"][0]["agent"] == "${WHICH}${X}"


def test_environment_outweighs_file_and_flags_outweigh_environment(project: Project) -> None:
    write_suite(project, "epochs: 2\n", ONE)
    variable = {"AGENTEVAL_EPOCHS": "3"}
    for env, arguments, count in (({}, (), 2), (variable, (), 3), (variable, ("--epochs", "1"), 1)):
        assert project.run(*arguments, env=env).code == 0
        assert len(project.results()["scenarios"][0]["samples"]) == count


def test_the_environments_model_outweighs_the_files(project: Project) -> None:
    write_suite(project, "metrics: []\nmodels: {default: openai/of-the-file, judge: openai/of-the-judge}\n")
    env = {"AGENTEVAL_MODEL": "openai/of-the-environment", "OPENAI_API_KEY": "sk-secret-of-the-test"}
    assert project.run("-s", "good", env=env).code == 0
    models = project.results()["run"]["config"]["models"]
    assert "of-the-environment" in json.dumps(models["default"])
    assert "of-the-judge" in json.dumps(models["judge"])


def test_no_secret_is_written_anywhere(project: Project) -> None:
    header = "headers: {Authorization: 'Bearer ${KEY}'}"
    write_suite(project, f"agents: {{far: {{endpoint: 'http://127.0.0.1:9/', {header}}}}}\n")
    done = project.run("-v", "--report", "junit", "--report", "markdown", env={"KEY": "s3cr3t-of-the-test"})
    assert done.code == 1
    paths = (path for path in project.root.rglob("*.*") if path.is_file() and path.suffix != ".pyc")
    written = [path.read_text(encoding="utf-8") for path in paths]
    assert len(written) > 5
    assert not [text for text in [done.all, *written] if "s3cr3t-of-the-test" in text]


def test_the_journal_outlives_half_a_character(project: Project) -> None:
    write_suite(project, "agent_concurrency: 1\n", "{id: a, name: a, turns: [one, two], checks: none}")
    project.agent("def agent(messages):\n    return 'cut \\ud83d'\n")
    assert project.run().code == 0
    (journal,) = project.root.glob(".agenteval/runs/*/events.jsonl")
    kinds = [json.loads(line)["type"] for line in journal.read_text(encoding="utf-8").splitlines()]
    assert kinds.count("turn_finished") == 2
    assert kinds[-1] == "run_finished"
