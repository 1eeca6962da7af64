"""Configurations and thresholds that a tester got wrong: what is refused, and what decides nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval.conversation.local_runner import _stop_for_error
from agenteval.core.errors import AuthorError, Problem
from tests.support.cut_runs import cut_after
from tests.support.kit import Project

ECHO = "def agent(messages):\n    return messages[-1]['content']\n"
SIMULATED = "- {id: sim, goal: g, epochs: 1, expect: {output: {contains: [never]}}}"
PLAIN = "- {id: plain, turns: [x], expect: {output: {contains: [x]}}}"
PASSES = "replies: [{when: {role: judge}, reply: {evidence: x, reason: r, score: 1}}]"
SCRIPTED = "models: {default: scripted/replies.yaml}"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    project.agent(ECHO)
    project.write("replies.yaml", PASSES)
    return project


def suite(project: Project, *entries: str, config: str | None = None) -> None:
    project.scenarios("scenarios:\n" + "\n".join(entries))
    if config is not None:
        project.config(config)


def threshold_rows(project: Project) -> list[dict[str, str]]:
    return [g for g in project.results()["summary"]["gates"] if g["name"].startswith("thresholds")]


# ── a model that cannot be made ──────────────────────────────────────────────────────────────────

BROKEN = {  # a model, and what is named of it
    "user: scripted/nope.yaml": "nope.yaml",
    "user: openai/x": "OPENAI_API_KEY",
    "user: {model: openai/x}": "OPENAI_API_KEY",
    "judge: scripted/nope.yaml": "nope.yaml",
    "dedup: scripted/nope.yaml": "nope.yaml",
    "dedup: openai/x": "OPENAI_API_KEY",
    "dedup: local/nope.gguf": "nope.gguf",
}


@pytest.mark.parametrize("entry", BROKEN)
def test_a_model_that_cannot_be_made_is_refused_before_anything_is_asked(
    project: Project, entry: str
) -> None:
    project.agent("def agent(messages):\n    open('asked', 'w')\n    return 'x'\n")
    project.write("replies.yaml", "replies: [{when: {role: user}, reply: {message: hi}}]")
    config = f"metrics: []\nfault_tolerance: 0.5\nmodels: {{{entry}, default: scripted/replies.yaml}}"
    suite(project, SIMULATED, PLAIN, config=config)
    # A forecast asks no model, and needs no key.
    for command in ("run", "validate", "plan") if "scripted" in entry else ("run", "validate"):
        done = project.call(command)
        done.refuses("agenteval" if "gguf" in entry else "agenteval.yaml:4:10", BROKEN[entry])
        assert done.err.count("agenteval:") == 1
    assert not (project.root / "asked").exists()


@pytest.mark.parametrize(
    ("models", "flags"),
    [("user: openai/x", []), ("judge: openai/x, dedup: scripted/nope.yaml", ["--no-judge"])],
)
def test_a_model_that_nobody_asks_may_be_missing(project: Project, models: str, flags: list[str]) -> None:
    suite(project, PLAIN, config=f"metrics: []\nmodels: {{{models}}}")
    assert project.run(*flags).code == 0


def test_a_score_refuses_a_missing_model_for_grouping_before_it_asks(project: Project) -> None:
    project.config("metrics: [helpfulness]\nmodels: {judge: scripted/replies.yaml, dedup: openai/x}")
    project.write("talk.jsonl", '{"messages": [{"role": "user", "content": "x"}]}\n')
    project.call("score", "talk.jsonl").refuses("agenteval", "openai/x", "OPENAI_API_KEY")


def test_a_mistake_of_the_author_is_none_of_the_infrastructure() -> None:
    mistake = AuthorError(Problem("no such file", "write it"))
    for error in (mistake, ExceptionGroup("", [ValueError(), ExceptionGroup("", [mistake])])):
        stop = _stop_for_error(error)
        assert (stop.fault, stop.detail) == ("author", "no such file — write it")
    other = _stop_for_error(ExceptionGroup("", [ValueError("x")]))
    assert other.fault == "infrastructure"
    assert "ValueError('x')" in other.detail


# ── runs that ended half-way ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "gates",
    [
        "no_regression: {margin: 0.1}",
        "pass_hat_k: {k: 1, at_least: 0.1, over: suite}",
        "pass_hat_k: {k: 1, at_least: 0.1}",
    ],
)
@pytest.mark.parametrize("event", ["sample_finished", "sample_started"])
def test_a_scenario_that_was_half_run_has_not_passed(project: Project, gates: str, event: str) -> None:
    """Nor is it skipped by ``--last-failed``: its samples were never run, or cut off."""
    config = f"epochs: 3\nagent_concurrency: 1\ngates: {{{gates}}}"
    suite(project, PLAIN, PLAIN.replace("plain", "other"), config=config)
    project.run()
    cut_after(project, event, times=5)
    project.call("report", "latest", "--report", "json=results.json")
    verdicts = {s["id"]: s["verdict"] for s in project.results()["scenarios"]}
    assert verdicts == {"plain": "passed", "other": "inconclusive"}
    project.run("--last-failed")
    assert [s["id"] for s in project.results()["scenarios"]] == ["other"]


def test_an_epoch_that_was_lost_leaves_the_scenario_to_the_gate(project: Project) -> None:
    project.agent(
        "def agent(m, ctx):\n    if not ctx.epoch:\n        raise ConnectionRefusedError()\n    return 'x'\n"
    )
    gates = "gates: {pass_hat_k: {k: 1, at_least: 0.1, over: suite}}"
    suite(project, PLAIN, config=f"epochs: 3\nfault_tolerance: 0.5\n{gates}")
    assert project.run().code == 0
    assert project.results()["scenarios"][0]["verdict"] == "passed"


# ── thresholds of what is not judged ─────────────────────────────────────────────────────────────

BOUNDED = "- {id: bounded, turns: [x], thresholds: {helpfulness: 3}, expect: {output: {contains: [x]}}}"


@pytest.mark.parametrize("chosen", ["[]", "[coherence]"])
@pytest.mark.parametrize("flags", [[], ["--no-judge"]])
def test_a_scenarios_threshold_of_a_metric_that_is_not_chosen_is_refused(
    project: Project, chosen: str, flags: list[str]
) -> None:
    suite(project, PLAIN, BOUNDED, config=f"metrics: {chosen}\n{SCRIPTED}")
    project.run(*flags).refuses("agenteval", "scenarios/suite.yaml:3:", "'bounded'", "'helpfulness'")


def test_a_threshold_that_a_scenario_removes_needs_no_metric(project: Project) -> None:
    suite(project, BOUNDED.replace("helpfulness: 3", "helpfulness: null"), config="metrics: []")
    assert project.run().code == 0


@pytest.mark.parametrize("own", [True, False])
def test_a_metric_that_the_command_line_leaves_out_decides_nothing(project: Project, own: bool) -> None:
    """It is not a mistake of the file, and no fault of the agent."""
    bounds = "" if own else "thresholds: {helpfulness: 3}\n"
    suite(project, BOUNDED if own else PLAIN, config=f"{bounds}{SCRIPTED}")
    project.write("replies.yaml", PASSES.replace("score: 1", "score: 5"))
    assert project.run("--metric", "coherence").code == 3
    (row,) = threshold_rows(project)
    assert (row["verdict"], "--metric" in row["basis"]) == ("inconclusive", True)
    assert project.run("--metric", "coherence", "--metric", "helpfulness").code == 0


GOAL = PLAIN.replace("{id: plain", "{id: goal, goal: g")


@pytest.fixture
def bounded(project: Project) -> Project:
    """A suite with a threshold that applies to one of its two scenarios."""
    config = f"metrics: [goal_completion]\nthresholds: {{goal_completion: 0.5}}\n{SCRIPTED}"
    suite(project, PLAIN.replace("turns", "tags: [t], category: robustness, turns"), config=config)
    project.scenarios("scenarios:\n" + GOAL, "scenarios/more.yaml")
    return project


def test_a_threshold_of_the_suite_is_not_violated_by_a_selection(bounded: Project) -> None:
    for selection in (
        ["-s", "plain"],
        ["--tag", "t"],
        ["--category", "robustness"],
        ["scenarios/suite.yaml"],
    ):
        assert bounded.run(*selection).code == 0
        assert not threshold_rows(bounded)
        assert any("thresholds.goal_completion" in each for each in bounded.results()["summary"]["ungated"])
    assert bounded.run("-s", "goal").code == 0  # where it applies, it is held
    assert not any("thresholds.goal_completion" in each for each in bounded.results()["summary"]["ungated"])


def test_a_threshold_of_the_suite_is_not_violated_by_what_failed_the_last_time(bounded: Project) -> None:
    bounded.agent("def agent(messages, ctx): return 'x' if ctx.scenario_id == 'goal' else 'y'\n")
    assert bounded.run().code == 1
    bounded.agent(ECHO)
    assert bounded.run("--last-failed").code == 0


def test_a_threshold_that_may_apply_in_a_broken_file_is_not_violated(bounded: Project) -> None:
    bounded.write("scenarios/more.yaml", "scenarios: [")
    assert bounded.run("scenarios/suite.yaml").code == 0


@pytest.mark.parametrize("selection", [[], ["-s", "plain"], ["scenarios/suite.yaml"]])
def test_a_threshold_that_applies_nowhere_in_the_suite_is_violated(
    bounded: Project, selection: list[str]
) -> None:
    other = PLAIN.replace("plain", "goal")
    removed = GOAL.replace("id: goal", "id: removed, thresholds: {goal_completion: null}")
    bounded.scenarios(f"scenarios:\n{other}\n{removed}", "scenarios/more.yaml")
    assert bounded.run(*selection).code == 1
    (row,) = threshold_rows(bounded)
    assert (row["name"], row["verdict"]) == ("thresholds.goal_completion", "failed")


# ── a simulated user that has nothing to say ─────────────────────────────────────────────────────

SILENT = 'replies: [{when: {role: user}, reply: {message: "", done: true, reason: r}}]'


@pytest.mark.parametrize(
    ("turns", "code"),
    [
        ("turns: [{simulate: 2}, last], ", 0),
        ("turns: [{simulate: 1}, {simulate: 1}, last], ", 0),
        ("", 3),
        ("turns: [{simulate: 2}], ", 3),
    ],
)
def test_a_user_that_is_done_at_once_leaves_the_rest_to_the_script_and_decides_nothing_alone(
    project: Project, turns: str, code: int
) -> None:
    project.write("replies.yaml", SILENT)
    suite(
        project, f"- {{id: it, goal: g, epochs: 1, {turns}checks: none}}", config=f"metrics: []\n{SCRIPTED}"
    )
    assert project.run().code == code
    sample = project.sample()
    assert [turn["user"] for turn in sample["turns"]] == (["last"] if code == 0 else [""])
    assert sample["fault"] == (None if code == 0 else "simulator")


# ── places, and values that are read ─────────────────────────────────────────────────────────────

WEB = "agent: {name: b, endpoint: 'http://x', %s}\nmetrics: []\n"
BOT = "agent: {name: bot, target: 'agent.py:agent'}\n"
TWICE = f"{BOT}metrics: [helpfulness]\nthresholds: {{helpfulness: {{share_below: {{%s}}}}}}"
PLACES = {  # a configuration, and what is named at its column
    f"{BOT}metrics: []\nepochs: {{min: 1, max: 2}}": ("agenteval.yaml:3:1", "`epochs`"),
    f"{BOT}custom_metrics: [nope.py:Metric]": ("agenteval.yaml:2:18", "nope.py"),
    f"{BOT}metrics: []\ncompare: [{{name: b, target: 'nope.py:b'}}]": ("agenteval.yaml:3:21", "'b'"),
    "metrics: []\n\nagents: {b: {target: 'nope.py:b'}}\n": ("agenteval.yaml:3:14", "'b'"),
    TWICE % "5: 0.1, 5.0: 0.2": ("agenteval.yaml:3:28", "thresholds.helpfulness.share_below", "'5'"),
    TWICE % "'5': 0.1, 5e0: 0.1": ("agenteval.yaml:3:28", "thresholds.helpfulness.share_below", "'5'"),
    WEB % "headers: {A: 'é'}": ("agenteval.yaml:1:50", "'b'", "'A'"),
    WEB % "body: {messages: x}": ("agenteval.yaml:1:47", "'b'", "`body.messages`"),
    WEB % "body: {stream_options: x}": ("agenteval.yaml:1:47", "'b'", "`body.stream_options`"),
}


@pytest.mark.parametrize("text", PLACES)
def test_a_mistake_is_refused_at_its_column(project: Project, text: str) -> None:
    suite(project, PLAIN)
    project.write("agenteval.yaml", text)
    place, *facts = PLACES[text]
    project.run(*(["--agent", "b"] if "agents:" in text else [])).refuses(place, *facts)


@pytest.mark.parametrize(
    ("value", "facts"),
    [("{min: 2, max: 1}", ("min", "2", "max", "1")), ("{min: 2", ()), ("{mn: 2, max: 3}", ("'mn'", "'min'"))],
)
def test_a_mapping_in_a_variable_that_is_wrong_is_refused(
    project: Project, value: str, facts: tuple[str, ...]
) -> None:
    suite(project, PLAIN, config="")
    project.run(env={"AGENTEVAL_EPOCHS": value}).refuses("AGENTEVAL_EPOCHS", *facts)


@pytest.mark.parametrize("file", ["", "epochs: 7\n", "epochs: {min: 3, max: 4}\n"])
def test_a_mapping_in_a_variable_is_read(project: Project, file: str) -> None:
    suite(project, PLAIN, config=f"{file}gates: {{pass_rate: {{at_least: 0.9, reject_below: 0.5}}}}")
    project.run(env={"AGENTEVAL_EPOCHS": "{min: 5, max: 8}"})
    assert len(project.results()["scenarios"][0]["samples"]) == 6
