"""What an outside tester of configurations and thresholds has met, through the front door."""

from __future__ import annotations

import pytest

from agenteval.conversation.pipeline import _stop_for_error
from agenteval.core.errors import AuthorError, Problem
from tests.support.cut_runs import cut_after
from tests.support.kit import Project

ECHO = "def agent(messages):\n    return messages[-1]['content']\n"
SIMULATED = "- {id: sim, goal: g, epochs: 1, expect: {output: {contains: [never]}}}"
PLAIN = "- {id: plain, turns: [x], expect: {output: {contains: [x]}}}"
PASSES = "replies: [{when: {role: judge}, reply: {evidence: x, reason: r, score: 1}}]"


@pytest.fixture
def project(tmp_path) -> Project:
    project = Project(tmp_path)
    project.agent(ECHO)
    return project


def suite(project: Project, *entries: str) -> None:
    project.scenarios("scenarios:\n" + "\n".join(entries))


# ── a model that cannot be made ──────────────────────────────────────────────────────────────────

BROKEN = {
    "user: scripted/nope.yaml": "the scripted model nope.yaml cannot be read",
    "user: openai/x": "the model openai/x needs a key",
    "user: {model: openai/x}": "the model openai/x needs a key",
    "judge: scripted/nope.yaml": "the scripted model nope.yaml cannot be read",
    "dedup: scripted/nope.yaml": "the scripted model nope.yaml cannot be read",
    "dedup: openai/x": "the model openai/x needs a key",
    "dedup: local/nope.gguf": "there is no such model file",
}


@pytest.mark.parametrize("entry", BROKEN)
@pytest.mark.parametrize("command", ["run", "validate", "plan"])
def test_a_model_that_cannot_be_made_is_told_before_anything_is_asked(project, command, entry):
    if command == "plan" and "scripted" not in entry:
        pytest.skip("a forecast asks no model, and needs no key and no file")
    project.agent("def agent(messages):\n    open('asked', 'w')\n    return 'x'\n")
    project.config(f"metrics: []\nfault_tolerance: 0.5\nmodels: {{{entry}, default: scripted/replies.yaml}}")
    project.write("replies.yaml", "replies: [{when: {role: user}, reply: {message: hi}}]")
    suite(project, SIMULATED, PLAIN)
    done = project.call(command)
    assert done.code == 2
    assert BROKEN[entry] in done.err
    assert done.err.count("agenteval:") == 1
    if "gguf" not in entry:
        assert done.err.startswith("agenteval: agenteval.yaml:4:10: ")
    assert not (project.root / "asked").exists()


def test_a_model_that_nobody_plays_with_may_be_missing(project):
    project.config("metrics: []\nmodels: {user: openai/x}")
    suite(project, PLAIN)
    assert project.run().code == 0


def test_without_judges_no_model_groups(project):
    project.config("metrics: []\nmodels: {judge: openai/x, dedup: scripted/nope.yaml}")
    suite(project, PLAIN)
    assert project.run("--no-judge").code == 0


def test_a_score_tells_of_the_grouping_model_before_it_asks(project):
    project.config("metrics: [helpfulness]\nmodels: {judge: scripted/replies.yaml, dedup: openai/x}")
    project.write("replies.yaml", "replies: []")
    project.write("talk.jsonl", '{"messages": [{"role": "user", "content": "x"}]}\n')
    done = project.call("score", "talk.jsonl")
    assert (done.code, "the model openai/x needs a key" in done.err) == (2, True)


def test_a_mistake_of_the_author_is_none_of_the_infrastructure():
    mistake = AuthorError(Problem("no such file", "write it"))
    for error in (mistake, ExceptionGroup("", [ValueError(), ExceptionGroup("", [mistake])])):
        stop = _stop_for_error(error)
        assert (stop.fault, stop.detail) == ("author", "no such file — write it")
    other = _stop_for_error(ExceptionGroup("", [ValueError("x")]))
    assert (other.fault, other.detail) == ("infrastructure", "agenteval's own error: ValueError('x')")


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
def test_a_scenario_that_was_half_run_has_not_passed(project, gates, event):
    """Nor is it skipped by ``--last-failed``: its samples were never run, or cut off."""
    project.config(f"epochs: 3\nagent_concurrency: 1\ngates: {{{gates}}}")
    suite(project, PLAIN, PLAIN.replace("plain", "other"))
    project.run()
    cut_after(project, event, times=5)
    project.call("report", "latest", "--report", "json=results.json")
    verdicts = {s["id"]: s["verdict"] for s in project.results()["scenarios"]}
    assert verdicts == {"plain": "passed", "other": "inconclusive"}
    project.run("--last-failed")
    assert [s["id"] for s in project.results()["scenarios"]] == ["other"]


def test_an_epoch_that_was_lost_leaves_the_scenario_to_the_gate(project):
    project.agent(
        "def agent(m, ctx):\n    if not ctx.epoch:\n        raise ConnectionRefusedError()\n    return 'x'\n"
    )
    project.config("epochs: 3\nfault_tolerance: 0.5\ngates: {pass_hat_k: {k: 1, at_least: 0.1, over: suite}}")
    suite(project, PLAIN)
    assert project.run().code == 0
    assert project.results()["scenarios"][0]["verdict"] == "passed"


# ── thresholds of what is not judged ─────────────────────────────────────────────────────────────

BOUNDED = "- {id: bounded, turns: [x], thresholds: {helpfulness: 3}, expect: {output: {contains: [x]}}}"


@pytest.mark.parametrize("chosen", ["[]", "[coherence]"])
@pytest.mark.parametrize("flags", [[], ["--no-judge"]])
def test_a_scenarios_threshold_of_a_metric_that_is_not_chosen(project, chosen, flags):
    project.config(f"metrics: {chosen}\nmodels: {{default: scripted/replies.yaml}}")
    project.write("replies.yaml", PASSES)
    suite(project, PLAIN, BOUNDED)
    done = project.run(*flags)
    assert done.code == 2
    assert "scenarios/suite.yaml:3:" in done.err
    assert "has a threshold of 'helpfulness', which is not among the metrics" in done.err


def test_a_threshold_that_a_scenario_removes_needs_no_metric(project):
    project.config("metrics: []")
    suite(project, BOUNDED.replace("helpfulness: 3", "helpfulness: null"))
    assert project.run().code == 0


@pytest.mark.parametrize("own", [True, False])
def test_a_metric_that_the_command_line_leaves_out_decides_nothing(project, own):
    """It is not a mistake of the file, and no fault of the agent."""
    bounds = "" if own else "thresholds: {helpfulness: 0}\n"
    project.config(f"{bounds.replace('0', '3')}models: {{default: scripted/replies.yaml}}")
    project.write("replies.yaml", PASSES.replace("score: 1", "score: 5"))
    suite(project, BOUNDED if own else PLAIN)
    assert project.run("--metric", "coherence").code == 3
    (row,) = [g for g in project.results()["summary"]["gates"] if g["name"].startswith("thresholds")]
    assert (row["verdict"], row["basis"]) == ("inconclusive", "not judged (--metric)")
    assert project.run("--metric", "coherence", "--metric", "helpfulness").code == 0


GOAL = PLAIN.replace("{id: plain", "{id: goal, goal: g")


@pytest.fixture
def bounded(project) -> Project:
    """A suite with a threshold that applies to one of its two scenarios."""
    project.config(
        "metrics: [goal_completion]\nthresholds: {goal_completion: 0.5}\n"
        "models: {default: scripted/replies.yaml}"
    )
    project.write("replies.yaml", PASSES)
    suite(project, PLAIN.replace("turns", "tags: [t], category: robustness, turns"))
    project.scenarios("scenarios:\n" + GOAL, "scenarios/more.yaml")
    return project


@pytest.mark.parametrize(
    "selection",
    [["-s", "plain"], ["--tag", "t"], ["--category", "robustness"], ["scenarios/suite.yaml"]],
)
def test_a_threshold_of_the_suite_is_not_violated_by_a_selection(bounded, selection):
    assert bounded.run(*selection).code == 0
    summary = bounded.results()["summary"]
    assert not [gate for gate in summary["gates"] if gate["name"].startswith("thresholds")]
    assert "thresholds.goal_completion (applies to no selected scenario)" in summary["ungated"]


def test_a_threshold_of_the_suite_is_not_violated_by_what_failed_the_last_time(bounded):
    bounded.agent("def agent(messages, ctx): return 'x' if ctx.scenario_id == 'goal' else 'y'\n")
    assert bounded.run().code == 1
    bounded.agent(ECHO)
    assert bounded.run("--last-failed").code == 0


def test_a_path_beside_a_broken_file(bounded):
    """Whether the threshold applies there is not known, and nothing that is known to be violated."""
    bounded.write("scenarios/more.yaml", "scenarios: [")
    assert bounded.run("scenarios/suite.yaml").code == 0


@pytest.mark.parametrize("selection", [[], ["-s", "plain"], ["scenarios/suite.yaml"]])
def test_a_threshold_that_applies_nowhere_in_the_suite_is_violated(bounded, selection):
    other = PLAIN.replace("plain", "goal")
    removed = GOAL.replace("id: goal", "id: removed, thresholds: {goal_completion: null}")
    bounded.scenarios(f"scenarios:\n{other}\n{removed}", "scenarios/more.yaml")
    assert bounded.run(*selection).code == 1
    (row,) = [g for g in bounded.results()["summary"]["gates"] if g["name"].startswith("thresholds")]
    assert row["basis"] == "it applies to no scenario"


def test_a_threshold_that_is_held_where_it_applies_is_not_told_of(bounded):
    assert bounded.run("-s", "goal").code == 0
    assert not any("selected" in told for told in bounded.results()["summary"]["ungated"])


# ── a simulated user that has nothing to say ─────────────────────────────────────────────────────

SILENT = 'replies: [{when: {role: user}, reply: {message: "", done: true, reason: r}}]'


@pytest.mark.parametrize("turns", ["{simulate: 2}, last", "{simulate: 1}, {simulate: 1}, last"])
def test_a_user_that_is_done_at_once_leaves_the_rest_to_the_script(project, turns):
    project.config("metrics: []\nmodels: {default: scripted/replies.yaml}")
    project.write("replies.yaml", SILENT)
    suite(project, f"- {{id: it, goal: g, epochs: 1, turns: [{turns}], checks: none}}")
    assert project.run().code == 0
    assert [turn["user"] for turn in project.sample()["turns"]] == ["last"]


@pytest.mark.parametrize("turns", ["", "turns: [{simulate: 2}], "])
def test_a_conversation_of_nothing_is_not_decided(project, turns):
    project.config("metrics: []\nmodels: {default: scripted/replies.yaml}")
    project.write("replies.yaml", SILENT)
    suite(project, f"- {{id: it, goal: g, epochs: 1, {turns}checks: none}}")
    assert project.run().code == 3
    assert project.sample()["fault"] == "simulator"


# ── places, and values that are read ─────────────────────────────────────────────────────────────


@pytest.mark.parametrize("keys", ["5: 0.1, 5.0: 0.2", "'5': 0.1, 5e0: 0.1"])
def test_one_score_is_bounded_once(project, keys):
    project.config(f"metrics: [helpfulness]\nthresholds: {{helpfulness: {{share_below: {{{keys}}}}}}}")
    suite(project, PLAIN)
    done = project.run()
    assert done.code == 2
    assert "agenteval.yaml:3:28: thresholds.helpfulness.share_below: '5' and '5" in done.err
    assert "are the same number — keep one" in done.err


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ("epochs: {min: 1, max: 2}", "agenteval.yaml:3:1: `epochs` as {min, max} needs"),
        ("custom_metrics: [nope.py:Metric]", "agenteval.yaml:2:18: custom metric: "),
        ("compare: [{name: b, target: 'nope.py:b'}]", "agenteval.yaml:3:21: agent 'b': "),
        ("agents: {b: {target: 'nope.py:b'}}\nagent: {name: x}", "agenteval.yaml:3:14: agent 'b': "),
    ],
)
def test_a_mistake_is_told_at_its_column(project, config, told):
    if "agent:" in config:
        project.write("agenteval.yaml", "metrics: []\n\nagents: {b: {target: 'nope.py:b'}}\n")
    else:
        project.config(config)
    suite(project, PLAIN)
    done = project.run(*(["--agent", "b"] if "agents:" in config else []))
    assert done.code == 2
    assert told in done.err


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("headers: {A: 'é'}", "agenteval.yaml:1:50: agent 'b': header 'A' contains a line break"),
        ("body: {messages: x}", "agenteval.yaml:1:47: agent 'b': `body.messages` is not a list"),
        (
            "body: {stream_options: x}",
            "agenteval.yaml:1:47: agent 'b': `body.stream_options` is not a mapping",
        ),
    ],
)
def test_a_mistake_in_an_http_agent_is_told_at_its_place(project, key, told):
    project.write("agenteval.yaml", f"agent: {{name: b, endpoint: 'http://x', {key}}}\nmetrics: []\n")
    suite(project, PLAIN)
    done = project.run()
    assert done.code == 2
    assert told in done.err


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("{min: 2, max: 1}", "AGENTEVAL_EPOCHS: epochs: min (2) is above max (1)"),
        ("{min: 2", "AGENTEVAL_EPOCHS:1"),
        ("{mn: 2, max: 3}", "AGENTEVAL_EPOCHS: unknown key 'mn'"),
    ],
)
def test_a_mapping_in_a_variable_that_is_wrong(project, value, told):
    project.config()
    suite(project, PLAIN)
    done = project.run(env={"AGENTEVAL_EPOCHS": value})
    assert done.code == 2
    assert told in done.err


@pytest.mark.parametrize("file", ["", "epochs: 7\n", "epochs: {min: 3, max: 4}\n"])
def test_a_mapping_in_a_variable_is_read(project, file):
    project.config(f"{file}gates: {{pass_rate: {{at_least: 0.9, reject_below: 0.5}}}}")
    suite(project, PLAIN)
    project.run(env={"AGENTEVAL_EPOCHS": "{min: 5, max: 8}"})
    assert len(project.results()["scenarios"][0]["samples"]) == 6
