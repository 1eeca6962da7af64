"""``--resume``: only what is missing is run, and nothing at all where the run would not be the same."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from agenteval.core.config import BudgetConfig
from agenteval.core.event import Event, RunFinished, RunResumed, RunStarted, SampleFinished, SampleStarted
from agenteval.core.scenario import Sample, SampleKey, Scenario
from agenteval.core.trajectory import Stop, StopReason
from agenteval.verdict.report import build_report
from agenteval.verdict.resumption import is_complete, list_changes
from agenteval.verdict.sequential import PlannedQueue
from tests.support import plans
from tests.support.cut_runs import (
    SAMPLES,
    asked,
    copy_to,
    cut_after,
    events,
    finished,
    folder,
    journal,
    results_of,
    set_up,
)
from tests.support.kit import Done, Project
from tests.support.patience import eventually


def resumed(project: Project, *arguments: str) -> Done:
    return project.call("run", "--resume", "latest", *arguments)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A run that nobody cut off."""
    project = Project(tmp_path_factory.mktemp("whole"))
    set_up(project)
    assert project.call("run").code == 1
    return project


@pytest.fixture
def cut(project: Project, whole: Project) -> Project:
    """A run that was cut off when three of its samples were over."""
    copy_to(project, whole)
    cut_after(project, "sample_finished", 3)
    (project.root / "asked").unlink()
    return project


# ── going on ─────────────────────────────────────────────────────────────────────────────────────


def test_only_what_is_missing_is_run(cut: Project, whole: Project) -> None:
    over = finished(cut)
    done = resumed(cut)
    assert done.code == 1
    assert f"3 of {SAMPLES} " in done.err
    assert f"[{SAMPLES}/{SAMPLES}]" in done.err
    assert not set(asked(cut)) & set(over)
    assert sorted(Counter(asked(cut)).values()) == [1] * (SAMPLES - 3)
    assert results_of(cut) == results_of(whole)
    assert [event["type"] for event in events(cut)].count("run_resumed") == 1


def test_it_goes_on_in_its_own_working_directory(cut: Project, whole: Project) -> None:
    elsewhere = cut.root / "scenarios"
    run = folder(cut)
    done = Project(elsewhere).call("run", "--resume", str(run), "--report", "json=here.json")
    assert done.code == 1, done.err
    assert (elsewhere / "here.json").exists()
    assert not (elsewhere / "asked").exists()
    assert results_of(cut) == results_of(whole)


def test_a_complete_run_is_only_reported_again(whole: Project) -> None:
    before = journal(whole).read_bytes()
    times = len(asked(whole))
    done = resumed(whole, "--report", "markdown=again.md")
    assert done.code == 1
    assert "FAILED" in done.out
    assert (whole.root / "again.md").exists()
    assert journal(whole).read_bytes() == before
    assert len(asked(whole)) == times


def test_a_run_cut_off_before_its_issues_asks_no_agent(project: Project, whole: Project) -> None:
    copy_to(project, whole)
    cut_after(project, "sample_finished", SAMPLES)
    (project.root / "asked").unlink()
    assert resumed(project).code == 1
    assert asked(project) == []
    assert results_of(project) == results_of(whole)


def test_what_was_interrupted_is_done_anew(project: Project) -> None:
    project.agent(
        """
        import pathlib, time
        def agent(m, ctx):
            with pathlib.Path("asked").open("a") as file:
                file.write(f"{ctx.scenario_id} {ctx.epoch} {ctx.turn}\\n")
            if ctx.scenario_id == "slow" and ctx.turn == 1 and not pathlib.Path("second time").exists():
                time.sleep(600)
            return f"turn {ctx.turn}"
        """
    )
    project.config("agent_concurrency: 1\ndeadlines: {run_s: 3.0}")
    project.scenarios(
        "defaults: {checks: none, turns: [one, two]}\nscenarios: [{id: quick}, {id: slow}, {id: later}]"
    )
    assert project.call("run").code == 3
    cut_off = next(
        e for e in events(project) if e["type"] == "sample_finished" and e["key"]["scenario"] == "slow"
    )
    assert cut_off["stop"]["reason"] == "interrupted"
    project.write("second time", "")
    done = resumed(project, "--report", "json=results.json")
    assert done.code == 0, done.all
    assert Counter(asked(project)) == {"quick 0": 1, "slow 0": 2, "later 0": 1}
    (slow,) = (s for s in project.results()["scenarios"] if s["id"] == "slow")
    assert [turn["agent"] for turn in slow["samples"][0]["turns"]] == ["turn 0", "turn 1"]
    assert project.results()["run"]["complete"] is True
    # A journal is read to its end before the conversations in it are scored again.
    scored = project.call("score", "latest", "--report", "json=scored.json", "--no-judge")
    assert scored.code == 0, scored.all
    again = json.loads((project.root / "scored.json").read_text("utf-8"))
    assert [len(s["samples"]) for s in again["scenarios"]] == [1, 1, 1]


def test_what_a_fault_lost_is_over(project: Project) -> None:
    project.agent(
        """
        import pathlib
        def agent(m, ctx):
            with pathlib.Path("asked").open("a") as file:
                file.write(f"{ctx.scenario_id} {ctx.epoch} {ctx.turn}\\n")
            if ctx.scenario_id == "lost":
                raise ConnectionRefusedError("nobody there")
            return "hi"
        """
    )
    project.config("agent_concurrency: 1")
    project.scenarios(
        "{scenarios: [{id: lost, turns: [x], checks: none}, {id: next, turns: [x], checks: none}]}"
    )
    assert project.call("run").code == 3
    cut_after(project, "sample_finished")
    assert resumed(project).code == 3
    # Cut off after the first of its two conversations, it has one left.
    assert Counter(asked(project)) == {"lost 0": 3, "next 0": 2}
    assert resumed(project).code == 3
    assert Counter(asked(project)) == {"lost 0": 3, "next 0": 2}
    # That is what --last-failed is for.
    assert project.call("run", "--last-failed").code == 3
    assert Counter(asked(project)) == {"lost 0": 5, "next 0": 2}


def test_where_a_gate_decides_how_many_epochs_there_are(project: Project) -> None:
    project.agent(
        """
        import pathlib
        def agent(m, ctx):
            with pathlib.Path("asked").open("a") as file:
                file.write(f"{ctx.scenario_id} {ctx.epoch} {ctx.turn}\\n")
            return "no" if ctx.epoch == 2 else "yes"
        """
    )
    project.config(
        "epochs: {min: 3, max: 40}\nagent_concurrency: 2\nreporters: [terminal, json]\n"
        "gates: {pass_rate: {at_least: 0.9, reject_below: 0.5}}"
    )
    project.scenarios("{id: x, turns: [hello], expect: {output: {contains: ['yes']}}}")
    first = project.call("run")
    undisturbed, epochs = results_of(project), len(finished(project))
    assert first.code == 0, first.out
    assert epochs > 4
    for times in (2, 4, epochs):
        shutil.copy(journal(project), project.root / "kept.jsonl")
        cut_after(project, "sample_finished", times)
        over = finished(project)
        (project.root / "asked").unlink()
        assert resumed(project).code == 0
        assert results_of(project) == undisturbed
        assert not set(over) & set(asked(project))
        shutil.copy(project.root / "kept.jsonl", journal(project))


def test_after_the_first_failure_nothing_more_is_begun(project: Project) -> None:
    set_up(project)
    assert project.call("run", "--fail-fast").code == 1
    cut_after(project, "sample_finished", len(finished(project)))
    (project.root / "asked").unlink()
    done = resumed(project)
    assert done.code == 1
    assert asked(project) == []
    assert events(project)[-1]["outcome"] == "fail_fast"


def test_what_the_first_failure_stopped_is_decided_by_a_run_without_it(project: Project) -> None:
    project.agent("def agent(messages): return messages[-1]['content']")
    project.config("agent_concurrency: 1")
    rows = ", ".join(f"{{n: {number}}}" for number in range(1, 8))
    project.scenarios(
        f"scenarios: [{{id: 'a-${{row.n}}', rows: [{rows}], turns: ['say ${{row.n}}'],"
        " expect: {output: {contains: ['1']}}}]\n"
    )
    done = project.call("run", "--fail-fast")
    assert done.code == 1
    assert "--fail-fast" in done.out.partition("to decide:")[2]
    assert "--resume" not in done.out, "it would start nothing more"


def test_the_baseline_is_that_of_the_beginning(project: Project) -> None:
    set_up(project)
    project.scenarios("{id: x, turns: [one], expect: {output: {contains: [hello]}}, epochs: 3}")
    edit("agenteval.yaml", "reporters:", "gates: {no_regression: {margin: 0.9}}\nreporters:")(project)
    project.call("run")
    first = folder(project)
    assert project.call("run", "--baseline", "latest").code == 0
    shutil.rmtree(first)
    cut_after(project, "sample_finished", 2)
    done = resumed(project, "--report", "json=results.json")
    assert done.code == 0, done.all
    (gate,) = (g for g in project.results()["summary"]["gates"] if g["name"] == "no_regression")
    assert first.name in gate["basis"]


def test_a_budget_counts_what_was_spent_before_and_may_be_raised(project: Project) -> None:
    set_up(project)
    edit("agenteval.yaml", "\nmetrics: [helpfulness, politeness, agent_behavior_failure]", "\nmetrics: []")(
        project
    )
    edit("agenteval.yaml", "reporters:", "budget: {max_calls: 8}\nreporters:")(project)
    assert project.call("run").code == 3
    assert events(project)[-1]["outcome"] == "budget"
    over = finished_well(project)
    times = len(asked(project))
    assert resumed(project).code == 3  # nothing is left of it
    assert len(asked(project)) == times
    edit("agenteval.yaml", "max_calls: 8", "max_calls: 80")(project)
    done = resumed(project, "--report", "json=results.json")
    assert done.code == 1, done.all
    (gate,) = (g for g in project.results()["summary"]["gates"] if g["name"] == "budget.max_calls")
    assert (gate["bound"], gate["verdict"]) == (80, "passed")
    assert all(Counter(asked(project))[name] == 1 for name in over)


def finished_well(project: Project) -> list[str]:
    ends = (e for e in events(project) if e["type"] == "sample_finished" and e["stop"]["reason"] != "budget")
    return [f"{end['key']['scenario']} {end['key']['epoch']}" for end in ends]


def test_a_run_that_was_cut_off_is_never_green(project: Project) -> None:
    """Not by tolerance, and not when the cut came after its last sample."""
    project.agent("def agent(messages):\n    return 'all ok'\n")
    project.scenarios("{id: first, turns: [hi], expect: {output: {contains: [ok]}}}")
    project.config("epochs: 4\nfault_tolerance: 0.9")
    assert project.run().code == 0
    lines = journal(project).read_bytes().splitlines(keepends=True)
    ends = [at for at, line in enumerate(lines, 1) if b'"type":"sample_finished"' in line]
    for upto in (ends[0], ends[-1], len(lines) - 1):
        journal(project).write_bytes(b"".join(lines[:upto]) + lines[upto][:30])
        done = project.call("report", "latest", "--report", "json=cut.json", "--report", "terminal")
        assert (done.code, "INCOMPLETE" in done.out) == (3, True), upto
        assert "complete run" in done.out  # the gate
    assert project.run("--resume", "latest").code == 0


# ── what it refuses ──────────────────────────────────────────────────────────────────────────────


def edit(name: str, old: str, new: str) -> Callable[[Project], None]:
    def change(project: Project) -> None:
        path = project.root / name
        text = path.read_text("utf-8")
        assert old in text
        path.write_text(text.replace(old, new), "utf-8")

    return change


# What changes, and what the message names.
CHANGES = {
    "agent": (edit("agent.py", "return f", "return f'well, ' + f"), ["'agent.py'"]),
    "what the agent imports": (edit("words.py", "hello", "hello hello"), ["'words.py'"]),
    "policy": (edit("policy.md", "kind", "terse"), ["'policy.md'"]),
    "mock": (edit("mocks.py", "args['epoch']", "0"), ["'mocks.py'"]),
    "scripted model": (edit("model.yaml", "score: 4", "score: 5"), ["'model.yaml'"]),
    "rubric": (edit("politeness.md", "polite?", "kind?"), ["'politeness'"]),
    "scenario": (
        edit("scenarios/suite.yaml", "turns: [one, two], epochs", "turns: [one, three], epochs"),
        ["'scripted'", "turns"],
    ),
    "expectation": (edit("scenarios/suite.yaml", "never said", "hello"), ["'fails'", "expect"]),
    "further scenario": (
        edit("scenarios/suite.yaml", "- {id: fails", "- {id: new, turns: [x], checks: none}\n- {id: fails"),
        ["'new'"],
    ),
    "configuration": (
        edit("agenteval.yaml", "reporters:", "max_turns: 3\nreporters:"),
        ["'max_turns'"],
    ),
    "model": (
        edit("agenteval.yaml", "default: scripted/model.yaml", "default: scripted/./model.yaml"),
        ["'models.default.model'"],
    ),
    "timeout": (
        edit("agenteval.yaml", "policy: policy.md", "policy: policy.md, timeout_s: 5"),
        ["'agent.timeout_s'"],
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_it_refuses_to_go_on_with_something_else(cut: Project, name: str) -> None:
    change, facts = CHANGES[name]
    change(cut)
    before = journal(cut).read_bytes()
    done = resumed(cut)
    assert done.code == 2
    assert all(fact in done.err for fact in facts), done.err
    assert asked(cut) == []
    assert journal(cut).read_bytes() == before


def test_it_names_everything_that_has_changed(cut: Project) -> None:
    names = ("agent", "scenario", "configuration")
    for name in names:
        CHANGES[name][0](cut)
    done = resumed(cut)
    assert done.code == 2
    assert all(fact in done.err for name in names for fact in CHANGES[name][1]), done.err


def harmless(project: Project) -> None:
    edit("agenteval.yaml", "agent_concurrency: 2", "agent_concurrency: 1\nconcurrency: 3")(project)
    edit("agenteval.yaml", "reporters: [terminal, json]", "reporters: [json]")(project)
    edit("scenarios/suite.yaml", "scenarios:", "\n# a remark\n\nscenarios:")(project)
    edit("scenarios/suite.yaml", "{id: fails", "{note: what it tests, id: fails")(project)
    project.write("not_imported.py", "x = 1")


def test_what_matters_to_no_result_may_change(cut: Project) -> None:
    harmless(cut)
    assert resumed(cut, "--concurrency", "5").code == 1


def test_a_variable_that_changes_what_is_run_is_seen_and_a_key_is_not(project: Project) -> None:
    set_up(project)
    edit("agenteval.yaml", "policy: policy.md", "policy: '${POLICY}'")(project)
    with_a_key = "{default: {model: scripted/model.yaml, extra: {key: '${KEY}'}}}"
    edit("agenteval.yaml", "{default: scripted/model.yaml}", with_a_key)(project)
    env = {"POLICY": "policy.md", "KEY": "secret-one"}
    project.call("run", env=env)
    cut_after(project, "sample_finished", 3)
    done = project.call("run", "--resume", "latest", env={**env, "POLICY": "Be rude."})
    assert done.code == 2
    assert "'agent'" in done.err
    assert project.call("run", "--resume", "latest", env={**env, "KEY": "secret-two"}).code == 1
    assert b"secret" not in journal(project).read_bytes()


GIVEN = {
    "PATHS": ["scenarios"],
    "--config": ["-c", "agenteval.yaml"],
    "--scenario": ["-s", "fails"],
    "--tag": ["--tag", "x"],
    "--category": ["--category", "capability"],
    "--agent": ["--agent", "bot"],
    "--model": ["-m", "scripted/model.yaml"],
    "--metric": ["--metric", "helpfulness"],
    "--epochs": ["--epochs", "2"],
    "--seed": ["--seed", "2"],
    "--fail-fast": ["--fail-fast"],
    "--no-judge": ["--no-judge"],
    "--baseline": ["--baseline", "latest"],
    "--record": ["--record", "x.jsonl"],
    "--last-failed": ["--last-failed"],
    "--cache": ["--cache"],
}


@pytest.mark.parametrize("name", GIVEN)
def test_what_is_run_is_taken_from_the_run(whole: Project, name: str) -> None:
    done = resumed(whole, *GIVEN[name])
    done.refuses("agenteval", "--resume", name)


def test_a_run_that_still_goes_on_is_left_alone(project: Project) -> None:
    project.agent(
        """
        import pathlib, time
        def agent(m):
            pathlib.Path("asked").touch()
            while not pathlib.Path("go on").exists():
                time.sleep(0.01)
            return "hi"
        """
    )
    project.config()
    project.scenarios("{id: x, turns: [hello], checks: none}")
    process = project.start("run")
    try:
        assert eventually((project.root / "asked").exists)
        done = resumed(project)
        assert done.code == 2
        assert str(process.pid) in done.err
        project.write("go on", "")
        assert process.wait().code == 0
    finally:
        process.kill()
    assert events(project)[-1]["type"] == "run_finished"
    assert resumed(project).code == 0


@pytest.mark.parametrize(
    ("name", "fact"),
    [("nowhere", "'nowhere'"), ("agent.py", "events.jsonl"), ("scenarios", "'scenarios'")],
)
def test_what_is_no_run(whole: Project, name: str, fact: str) -> None:
    done = whole.call("run", "--resume", name)
    done.refuses("agenteval", name, fact)
    assert (folder(whole).name in done.err) is (name != "agent.py")  # the runs that there are


def test_what_was_scored_was_no_run(project: Project) -> None:
    messages = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]
    project.write("talk.jsonl", json.dumps({"id": "a", "messages": messages}) + "\n")
    scored = project.call("score", "talk.jsonl")
    assert scored.code == 0, scored.err
    resumed(project).refuses("agenteval", folder(project).name, "agenteval run")


def test_a_run_of_another_version(cut: Project) -> None:
    lines = journal(cut).read_bytes().splitlines(keepends=True)
    started = json.loads(lines[0])
    started["versions"]["agenteval"] = "0.0.1"
    del started["request"]["filters"]  # which that version did not know
    journal(cut).write_bytes(json.dumps(started).encode() + b"\n" + b"".join(lines[1:]))
    done = resumed(cut)
    assert done.code == 2
    assert "0.0.1" in done.err


# ── the pure parts ───────────────────────────────────────────────────────────────────────────────


def key(name: str) -> SampleKey:
    return SampleKey(scenario=name, agent="bot")


def end(name: str, reason: StopReason = StopReason.SCRIPT_DONE) -> Event:
    return SampleFinished(key=key(name), stop=Stop(reason=reason))


def begun(*names: str, **more: object) -> RunStarted:
    scenarios = tuple(Scenario(id=name) for name in names)
    run = plans.begun(None, scenarios, tuple(key(name) for name in names))
    return run.model_copy(update=more)


def test_a_queue_gives_what_is_not_over() -> None:
    queue = PlannedQueue(Sample(key=key(name), scenario=Scenario(id=name)) for name in "abcd")
    for event in (end("b"), end("a", StopReason.INTERRUPTED), end("d", StopReason.BUDGET)):
        queue(event)
    left = [sample.key.scenario for sample in iter(queue.next, None)]
    assert left == ["a", "c", "d"]


def test_the_end_before_a_resumption_is_no_end() -> None:
    finished_once = RunFinished(finished_at="t", outcome="interrupted")
    told: list[Event] = [
        begun("a"),
        SampleStarted(key=key("a")),
        end("a", StopReason.INTERRUPTED),
        finished_once,
    ]
    assert not is_complete(told)
    report = build_report(told)
    assert report.finished == finished_once
    told.append(RunResumed(at="t", budget=BudgetConfig(max_calls=7)))
    report = build_report(told)
    assert report.finished is None
    assert report.run.config.budget.max_calls == 7
    assert report.samples[0].stop is not None  # until it is started anew
    told.append(SampleStarted(key=key("a")))
    assert build_report(told).samples[0].stop is None
    assert is_complete([*told, end("a"), RunFinished(finished_at="t")])


def test_nothing_has_changed_or_it_is_named() -> None:
    then = begun("a", "b", sources={"agent.py": "1", "models: ${…}": "2"}, prompts={"p": "1"})
    assert list_changes(then, then) == ()
    now = begun("a", sources={"agent.py": "2", "models: ${…}": "3"}, prompts={"q": "1"})
    named = [re.findall("'(.+?)'", change) for change in list_changes(then, now)]
    assert named == [["b"], ["p"], ["q"], ["agent.py"], ["models"]]
    assert list_changes(then, then.model_copy(update={"plan": then.plan.with_suite(judged=("helpfulness",))}))


def test_where_a_scenario_is_written_does_not_matter(tmp_path: Path) -> None:
    moved = Scenario(id="a", note="what it tests", source="elsewhere.yaml:9", lines={"expect": 12})
    assert list_changes(begun("a"), begun("a").model_copy(update={"scenarios": (moved,)})) == ()
