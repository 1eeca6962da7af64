"""The command line itself: streams, reports, results and their schema, environment, usage errors."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from lxml import etree

from tests.support.kit import Done, Project, environment

AGENT = """
async def agent(messages, ctx):
    assert ctx.tools is not None
    said = messages[-1]["content"]
    if said == "boom":
        raise RuntimeError("boom")
    if said.startswith("call"):
        await ctx.call_tool("known", {"n": 1})
        await ctx.call_tool("unknown", {})
    return "answer to " + said
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


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, Done]:
    """One run with every report by its name and path."""
    project = Project(tmp_path_factory.mktemp("cli"))
    project.agent(AGENT)
    project.config()
    project.scenarios(SUITE)
    names = {
        "json": "out/results.json",
        "junit": "out/junit.xml",
        "github": "out/github.txt",
        "markdown": "out/report.md",
    }
    arguments = [part for name, path in names.items() for part in ("--report", f"{name}={path}")]
    return project, project.call("run", "-v", *arguments)


@pytest.fixture(scope="module")
def results(suite: tuple[Project, Done]) -> dict[str, Any]:
    return json.loads((suite[0].root / "out/results.json").read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def test_results_keep_to_the_schema_that_ships(results: dict[str, Any]) -> None:
    schema = json.loads(
        files("agenteval").joinpath("reporters/results/results.schema.json").read_text(encoding="utf-8")
    )
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(results, schema)


def test_results_have_every_key_that_is_promised(results: dict[str, Any]) -> None:
    assert {"schema_version", "run", "summary", "scenarios"} <= set(results)
    summary = results["summary"]
    assert {"verdict", "exit_code", "scripted", "gates", "dimensions", "statistics", "usage"} <= set(summary)
    assert (summary["verdict"], summary["exit_code"], summary["scripted"]) == ("failed", 1, False)
    for gate in summary["gates"]:
        assert {"name", "value", "bound", "basis", "where", "verdict"} <= set(gate)
    assert {s["id"] for s in results["scenarios"]} == {"good", "bad", "broken", "C-01"}
    for scenario in results["scenarios"]:
        assert {"id", "agent", "category", "verdict", "violations", "aggregates", "issues", "samples"} <= set(
            scenario
        )
        for sample in scenario["samples"]:
            check_sample(sample)


def check_sample(sample: dict[str, Any]) -> None:
    assert {
        "epoch", "variant", "verdict", "fault", "stop", "steps", "latency_ms", "usage", "checks",
        "scores", "score_failures", "findings", "turns",
    } <= set(sample)  # fmt: skip
    for finding in sample["findings"]:
        assert {"metric", "label", "severity", "turn", "call", "evidence", "explanation"} <= set(finding)
    for turn in sample["turns"]:
        assert {
            "user", "agent", "tool_calls", "steps", "latency_ms", "usage", "checks", "scores",
            "score_failures",
        } <= set(turn)  # fmt: skip
        for call in turn["tool_calls"]:
            assert {"name", "args", "result", "observed"} <= set(call)
    for owner in (sample, *sample["turns"]):
        assert {"calls", "input_tokens", "output_tokens", "cached_tokens", "estimated", "cost"} <= set(
            owner["usage"]
        )
        for check in owner["checks"]:
            assert {"name", "passed", "detail"} <= set(check)


def test_results_tell_who_did_what(results: dict[str, Any]) -> None:
    found = {s["id"]: s for s in results["scenarios"]}
    assert {id: s["category"] for id, s in found.items()} == {
        "good": "capability", "bad": "efficiency", "broken": "robustness", "C-01": "capability"
    }  # fmt: skip
    assert {id: s["verdict"] for id, s in found.items()} == {
        "good": "passed", "bad": "failed", "broken": "failed", "C-01": "failed"
    }  # fmt: skip
    assert [s["epoch"] for s in found["bad"]["samples"]] == [0, 1]
    sample = found["bad"]["samples"][1]
    assert [c["name"] for c in sample["turns"][1]["tool_calls"]] == ["known", "unknown"]
    assert sample["turns"][1]["tool_calls"][0]["result"] == {"n": 1}
    assert [f["call"] for f in sample["findings"]] == [1]
    assert "boom" in found["broken"]["samples"][0]["turns"][1]["error"]
    usage = results["summary"]["usage"]
    assert {role: use["calls"] > 0 for role, use in usage.items()} == {
        role: role == "agent" for role in usage
    }
    assert sample["steps"] == sum(turn["steps"] for turn in sample["turns"])


def test_results_go_to_stdout_and_progress_to_stderr(suite: tuple[Project, Done]) -> None:
    _, done = suite
    assert done.code == 1
    assert "FAILED" in done.out
    assert "A bad one" in done.out or "bad" in done.out
    assert "nowhere said" in done.out
    assert "scenarios/suite.yaml:" in done.out
    assert "answer to again" in done.out  # -v: transcripts of what passed as well
    assert "FAILED" not in done.err
    assert done.err.strip()


def test_a_failure_shows_the_command_that_repeats_it(suite: tuple[Project, Done]) -> None:
    project, done = suite
    line = next(line for line in done.out.splitlines() if "agenteval run" in line and "bad" in line)
    command = line[line.index("agenteval run") :].split()[1:]
    again = project.call(*command)
    assert again.code == 1
    assert "nowhere said" in again.out
    assert "C-01" not in again.out


def test_junit_counts_what_the_results_count(suite: tuple[Project, Done]) -> None:
    tree = etree.parse(str(suite[0].root / "out/junit.xml"))
    cases = tree.findall(".//testcase")
    broken = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    assert len(cases) - len(broken) == 1
    assert "nowhere said" in etree.tostring(tree, encoding="unicode")


def test_github_annotates_the_file_and_line(suite: tuple[Project, Done]) -> None:
    text = (suite[0].root / "out/github.txt").read_text(encoding="utf-8")
    assert any(
        line.startswith("::error ") and "file=scenarios/suite.yaml" in line and "line=" in line
        for line in text.splitlines()
    )


def test_markdown_names_each_failed_scenario(suite: tuple[Project, Done]) -> None:
    text = (suite[0].root / "out/report.md").read_text(encoding="utf-8")
    assert "nowhere said" in text
    assert "broken" in text


def test_the_journal_is_there_and_each_line_is_an_event(
    suite: tuple[Project, Done], results: dict[str, Any]
) -> None:
    journal = suite[0].root / ".agenteval/runs" / results["run"]["id"] / "events.jsonl"
    events = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    assert events[0]["type"] == "run_started"
    kinds = [event["type"] for event in events]
    assert kinds.count("sample_started") == 5
    assert kinds.count("sample_finished") == 5
    assert events[0]["run_id"] == results["run"]["id"]


def test_reports_have_names_of_their_own_when_no_path_is_given(project: Project) -> None:
    project.agent(AGENT)
    project.config("reporters: [terminal, json]\n")
    project.scenarios(SUITE)
    done = project.call("run", "--report", "junit", "--report", "markdown", "-s", "good")
    assert done.code == 0
    written = {path.suffix for path in project.root.rglob("*") if path.is_file()}
    assert {".json", ".xml", ".md"} <= written
    assert "PASSED" in done.out


def test_github_writes_annotations_and_its_step_summary(project: Project) -> None:
    project.agent(AGENT)
    project.config()
    project.scenarios(SUITE)
    summary = project.root / "summary.md"
    env = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(summary)}
    done = project.call("run", "--report", "github", "-s", "bad", env=env)
    assert "::error " in done.out
    assert "bad" in summary.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", "--no-such-flag"), ("no-such-flag",)),
        (("run", "--report", "jsn=x"), ("jsn", "json")),
        (("run", "--epochs", "0"), ("epochs",)),
        (("run", "--epochs", "many"), ("epochs",)),
        (("run", "--category", "capabilty"), ("capabilty", "capability")),
        (("run", "nowhere.yaml"), ("nowhere.yaml",)),
        (("run", "-c", "nowhere.yaml"), ("nowhere.yaml",)),
        (("run", "--agent", "bott"), ("bott", "bot")),
        (("rnu",), ("'rnu' is not a command", "did you mean 'run'?")),
        (("valdiate",), ("did you mean 'validate'?",)),
        (("tools", "srve"), ("'srve' is not a command", "did you mean 'serve'?")),
        (("history",), ("'history' is not a command", "known: ", "report", "validate")),
        (("scenarios/suite.yaml",), ("agenteval run scenarios/suite.yaml runs",)),
    ],
)
def test_a_usage_error_is_told_in_words_and_ends_with_2(
    arguments: tuple[str, ...], words: tuple[str, ...], tmp_path: Path
) -> None:
    project = Project(tmp_path)
    project.agent(AGENT)
    project.config()
    project.scenarios(SUITE)
    done = project.call(*arguments)
    assert done.code == 2, done.all
    assert done.out == ""
    for word in words:
        assert word in done.err
    assert not (tmp_path / ".agenteval").exists()


def test_version_and_help(tmp_path: Path) -> None:
    from agenteval import __version__

    project = Project(tmp_path)
    version, usage = project.call("--version"), project.call("run", "--help")
    assert (version.code, version.out.strip()) == (0, f"agenteval {__version__}")
    assert usage.code == 0
    for flag in (
        "--scenario",
        "--tag",
        "--category",
        "--agent",
        "--epochs",
        "--concurrency",
        "--report",
        "--fail-fast",
        "--seed",
    ):
        assert flag in usage.out


COMMANDS = (
    "", "comment", "diff", "doctor", "list", "plan", "report", "run", "runs", "score", "show", "show-prompts",
    "tools", "tools schemas", "tools serve", "validate",
)  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_the_short_option_for_help_is_the_long_one(name: str, project: Project) -> None:
    short, long = project.call(*name.split(), "-h"), project.call(*name.split(), "--help")
    assert (short.code, short.err) == (0, "")
    assert short.out == long.out
    assert f"Usage: agenteval {name}".rstrip() in short.out


@pytest.mark.parametrize("width", [60, 80, 120])
def test_help_is_as_wide_as_the_terminal_and_cuts_nothing(width: int, project: Project) -> None:
    for name in ("", "run", "plan", "show", "diff", "score"):
        lines = project.call(*name.split(), "--help", env={"COLUMNS": str(width)}).out.splitlines()
        assert max(map(len, lines)) in range(min(width, 110) - 25, min(width, 110) + 1), name
        assert not any(line.endswith("...") for line in lines[1:]), name


def test_ids_are_proposed_at_tab(project: Project) -> None:
    project.agent("def agent(m): return 'x'\n")
    project.config()
    project.scenarios("""
        defaults: {checks: none}
        scenarios: [{id: other, turns: [a]}, {id: odd, turns: [a]}]
    """)
    assert project.call("run").code == 0

    def proposed(line: str) -> list[str]:
        words = {"COMP_WORDS": f"agenteval {line}", "COMP_CWORD": str(len(line.split()))}
        # As the console script: shells know the program by its name.
        program = "import sys; sys.argv[0] = 'agenteval'; from agenteval.cli.main import main; main()"
        env = environment({**words, "_AGENTEVAL_COMPLETE": "complete_bash"})
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=project.root, env=env, capture_output=True, text=True
        )
        assert done.stderr == ""
        return done.stdout.split()

    file = "scenarios/suite.yaml::o"
    assert proposed("run -s o") == ["other", "odd"]
    assert proposed(f"list -s {file}") == [f"{file}ther", f"{file}dd"]
    assert proposed("show od") == ["odd"]
    assert proposed("show la") == proposed("run --resume la") == ["latest"]
    assert proposed("diff latest pre") == ["previous"]
    project.write("agenteval.yaml", "no: [")
    assert proposed("run -s o") == []


def test_validate_loads_everything_and_calls_nothing(project: Project) -> None:
    project.agent("def agent(messages):\n    open('called', 'w')\n    return 'x'\n")
    project.config()
    project.scenarios(SUITE)
    done = project.call("validate")
    assert (done.code, done.err) == (0, "")
    assert "4 scenarios" in done.out
    assert not (project.root / "called").exists()
    assert not (project.root / ".agenteval").exists()


def test_validate_tells_all_errors_of_a_file_at_once_with_places_and_remedies(project: Project) -> None:
    project.agent(AGENT)
    project.config()
    project.scenarios("""
        scenarios:
          - {id: a, name: a, turns: [hi], expcet: {output: {contains: [x]}}}
          - id: b
            name: b
            turns: [hi]
            expect: {tool_calls: {match: stricter, calls: [{name: t}]}}
          - {id: c, name: c, turns: [hi], checks: none, tools: {t: {returns: "${arg.x}"}}}
          - {id: d, name: d, turns: hi, checks: none}
          - {id: e, name: e, turns: [hi], checks: none, epochs: three}
          - {id: f, name: f, turns: [hi], expect: {tool_calls: {calls: [{name: t, args: {x: {$inn: [1]}}}]}}}
    """)
    done = project.call("validate")
    assert done.code == 2
    for line, words in {2: "expect", 6: "strict", 7: "arg.x", 8: "turns", 9: "epochs", 10: "$in"}.items():
        assert any(f"suite.yaml:{line}:" in told and words in told for told in done.err.splitlines()), (
            line,
            done.err,
        )
    assert done.out == ""


@pytest.mark.parametrize(
    ("entry", "word"),
    [
        ("state: {tables: {}}", "state"),
        ("tools: {t: {rules: [{returns: 1}]}}", "rules"),
        ("tools: {t: {returns: 1, faults: [{kind: timeout}]}}", "faults"),
    ],
)
def test_what_is_documented_but_not_built_is_refused_as_such(entry: str, word: str, project: Project) -> None:
    project.agent(AGENT)
    project.config()
    project.scenarios(f"scenarios:\n  - {{id: a, name: a, turns: [hi], checks: none, {entry}}}\n")
    done = project.call("validate")
    assert done.code == 2
    assert "not supported yet" in done.err
    assert word in done.err


def test_what_is_no_option_of_ours_is_unknown(project: Project) -> None:
    for line in ("run --frist 1", "score -k x", "shwo"):
        done = project.call(*line.split())
        assert (done.code, "not supported yet" in done.err) == (2, False)
        assert line.split()[1 if " " in line else 0] in done.err


def test_the_short_names_of_options_do_what_the_long_ones_do(project: Project) -> None:
    project.agent(AGENT)
    project.config()
    project.scenarios(
        """
        scenarios:
          - {id: a, turns: [hi], expect: {output: {contains: [nothing of this]}}}
          - {id: b, turns: [hi], checks: none}
        """
    )
    assert project.run("-n", "1", "-x").code == 1
    assert "stopped at the first failure" in project.call("report", "latest").out
    assert project.run("--epochs", "1").code == 1
    assert project.run("--lf").code == 1
    assert [each["id"] for each in project.results()["scenarios"]] == ["a"]


def test_the_environment_is_expanded_once_and_an_unset_variable_is_an_error(project: Project) -> None:
    project.agent("def agent(messages):\n    return 'x'\n\n\ndef other(messages):\n    return 'other'\n")
    project.config("agent: {name: '${NAME:-bot}$${X}', target: 'agent.py:${WHICH}'}\n", target="")
    project.scenarios("scenarios: [{id: a, name: a, turns: [hi], checks: none}]")
    done = project.run()
    assert done.code == 2
    assert "WHICH" in done.err
    assert "agenteval.yaml:" in done.err
    assert project.run(env={"WHICH": "other", "NAME": "${WHICH}"}).code == 0
    assert project.sample()["turns"][0]["agent"] == "other"
    assert project.results()["scenarios"][0]["agent"] == "${WHICH}${X}"


def test_environment_outweighs_file_and_flags_outweigh_environment(project: Project) -> None:
    project.agent(AGENT)
    project.config("epochs: 2\n")
    project.scenarios("scenarios: [{id: a, name: a, turns: [hi], checks: none}]")
    counts = []
    for env, arguments in (
        ({}, ()),
        ({"AGENTEVAL_EPOCHS": "3"}, ()),
        ({"AGENTEVAL_EPOCHS": "3"}, ("--epochs", "1")),
    ):
        assert project.run(*arguments, env=env).code == 0
        counts.append(len(project.results()["scenarios"][0]["samples"]))
    assert counts == [2, 3, 1]


def test_the_environments_model_outweighs_the_files(project: Project) -> None:
    project.agent(AGENT)
    project.config("metrics: []\nmodels: {default: openai/of-the-file, judge: openai/of-the-judge}\n")
    project.scenarios(SUITE)
    env = {"AGENTEVAL_MODEL": "openai/of-the-environment", "OPENAI_API_KEY": "sk-secret-of-the-test"}
    assert project.run("-s", "good", env=env).code == 0
    models = project.results()["run"]["config"]["models"]
    assert "of-the-environment" in json.dumps(models["default"])
    assert "of-the-judge" in json.dumps(models["judge"])


def test_no_secret_is_written_anywhere(project: Project) -> None:
    project.agent(AGENT)
    project.config(
        "agents: {far: {endpoint: 'http://127.0.0.1:9/', headers: {Authorization: 'Bearer ${KEY}'}}}\n"
    )
    project.scenarios(SUITE)
    done = project.run("-v", "--report", "junit", "--report", "markdown", env={"KEY": "s3cr3t-of-the-test"})
    assert done.code == 1
    written = [
        path.read_text(encoding="utf-8")
        for path in project.root.rglob("*.*")
        if path.is_file() and path.suffix != ".pyc"
    ]
    assert len(written) > 5
    assert not [text for text in [done.all, *written] if "s3cr3t-of-the-test" in text]


def test_the_journal_outlives_half_a_character(project: Project) -> None:
    project.agent("def agent(messages):\n    return 'cut \\ud83d'\n")
    project.config("agent_concurrency: 1\n")
    project.scenarios("{id: a, name: a, turns: [one, two], checks: none}")
    assert project.run().code == 0
    (journal,) = project.root.glob(".agenteval/runs/*/events.jsonl")
    kinds = [json.loads(line)["type"] for line in journal.read_text(encoding="utf-8").splitlines()]
    assert kinds.count("turn_finished") == 2
    assert kinds[-1] == "run_finished"


def test_a_report_that_cannot_be_written_is_refused_before_anything_runs(project: Project) -> None:
    project.agent(AGENT)
    project.config()
    project.scenarios(SUITE)
    done = project.call("run", "-s", "good", "--report", "json=scenarios")
    assert done.code == 2
    assert "scenarios" in done.err
    assert "exit 0" not in done.out
