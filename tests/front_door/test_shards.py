"""``run --shard i/n`` and ``merge``: one run on several machines, and one verdict."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.kit import Done, Project

TIMES = {
    *("started_at", "elapsed_s", "latency_ms", "took_s", "command", "merged"),
    *("mean", "p50", "p95"),  # also of the times
}
AGENT = """
import zlib

def agent(messages, ctx):
    last = messages[-1]["content"]
    share = float(last.split()[-1])
    lot = zlib.crc32(f"{ctx.scenario_id}/{ctx.epoch}".encode()) / 2**32
    if last.startswith("lose") and ctx.epoch % 2:
        raise ConnectionError("the database is away")
    if last.startswith("alternate"):
        lot = ctx.epoch % 2
    return "good" if lot < share else "bad"
"""
SEQUENTIAL = "epochs: {min: 2, max: 9}\ngates: {pass_rate: {at_least: AT, reject_below: REJECT}}\n"


def write_suite(project: Project, shares: Sequence[tuple[str, float]], config: str) -> None:
    """A scenario for each word and share: the agent is good in this share of its epochs."""
    project.agent(AGENT)
    project.config(config)
    listed = [
        {
            "id": f"s{n}",
            "category": "robustness",
            "turns": [f"{word} {share}"],
            "expect": {"output": {"contains": ["good"]}},
        }
        for n, (word, share) in enumerate(shares)
    ]
    project.scenarios(json.dumps({"scenarios": listed}))


def run_shards(project: Project, count: int, *flags: str, env: dict[str, str] | None = None) -> list[Done]:
    named = (("run", "--shard", f"{n}/{count}", "--report", "json") for n in range(1, count + 1))
    return [project.call(*words, *flags, env=env) for words in named]


def folders(project: Project) -> list[Path]:
    """The runs, in the order in which they were made."""
    return sorted((project.root / ".agenteval" / "runs").iterdir(), key=lambda each: each.stat().st_ctime_ns)


def merge_last(project: Project, count: int, *flags: str) -> Done:
    runs = [str(folder) for folder in folders(project)[-count:]]
    random.Random(count).shuffle(runs)
    return project.call("merge", *runs, "--report", "json=merged.json", *flags)


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_times(item) for key, item in value.items() if key not in TIMES}
    return [without_times(item) for item in value] if isinstance(value, list) else value


def results(path: Path) -> Any:
    whole = json.loads(path.read_text(encoding="utf-8"))
    del whole["run"]["id"]
    summary = whole["summary"]
    summary["gates"] = [row for row in summary["gates"] if row["name"] != "all shards"]
    summary["notices"].sort(key=str)  # conversations side by side end in any order
    return without_times(whole)


def assert_merged_equals_whole(project: Project, count: int, *flags: str) -> Done:
    whole = project.run(*flags)
    run_shards(project, count, *flags)
    merged = merge_last(project, count)
    assert merged.code == whole.code, merged.all
    assert results(project.root / "merged.json") == results(project.root / "results.json")
    return merged


# ── merged equals whole ──────────────────────────────────────────────────────────────────────────

GATES = {
    "every sample": "",
    "several epochs": "epochs: 4\nfault_tolerance: 0.3\n",
    "sequential": "epochs: {min: 2, max: 9}\ngates: {pass_rate: {at_least: 0.9, reject_below: 0.4}}\n",
    "pass^k": "epochs: 5\ngates: {pass_hat_k: {k: 2, at_least: 0.5, over: suite}}\n",
    "shares": "epochs: 2\ngates: {robustness: 0.6, tokens: {max: 1000}}\n",
}


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize(("count", "seed"), [(2, 0), (5, 1)])
def test_merged_shards_equal_the_run_as_a_whole(project: Project, gate: str, count: int, seed: int) -> None:
    draw = random.Random(f"{gate} {count} {seed}")
    quality = draw.choice([(1.0,), (0.0, 0.5, 1.0), (0.8, 0.95, 1.0)])
    words = ["say"] * 6 + ["lose"] * draw.randint(0, 1)
    shares = [(draw.choice(words), draw.choice(quality)) for _ in range(draw.randint(1, 12))]
    write_suite(project, shares, GATES[gate])
    assert_merged_equals_whole(project, count)


@pytest.mark.parametrize("flags", [(), ("--agent", "wonderbot-first")])
def test_the_shipped_suite_in_shards(tmp_path: Path, flags: Sequence[str]) -> None:
    """Its findings are grouped by a (scripted) model, which only the merged run asks."""
    root = Path(__file__).parents[2]
    for name in ("agenteval.yaml", "scenarios"):
        copy = shutil.copytree if (root / name).is_dir() else shutil.copy
        copy(root / name, tmp_path / name)
    project = Project(tmp_path)
    assert_merged_equals_whole(project, 3, *flags)
    asked = [json.loads((each / "results.json").read_text()) for each in folders(project)[1:4]]
    assert [each["summary"]["usage"]["dedup"]["calls"] for each in asked] == [0] * 3


def test_a_shard_plays_its_own_scenarios_in_the_order_that_an_earlier_run_suggests(project: Project) -> None:
    write_suite(project, [("say", share) for share in (1.0, 0.0, 1.0, 0.5)], "epochs: 2\nconcurrency: 1\n")
    assert_merged_equals_whole(project, 2)


def test_the_order_of_the_arguments_does_not_matter(project: Project) -> None:
    write_suite(project, [("say", 0.5)] * 6, "epochs: 2\n")
    run_shards(project, 2)
    first, second = folders(project)
    assert project.call("merge", str(first), str(second)).code == project.call(
        "merge", str(second), str(first)
    ).code  # fmt: skip


# ── a shard alone ────────────────────────────────────────────────────────────────────────────────


def last_line(done: Done) -> str:
    return done.out.rstrip().splitlines()[-1]


def test_a_shard_alone_decides_nothing(project: Project) -> None:
    write_suite(project, [("say", 1.0)] * 4, "")
    for done in run_shards(project, 2):
        assert done.code == 3
        assert last_line(done).startswith("NOT DECIDED: ")
        assert "agenteval merge" in last_line(done)
    assert merge_last(project, 2).code == 0


def test_a_failure_that_no_merge_can_turn_fails_its_shard(project: Project) -> None:
    write_suite(project, [("say", 1.0), ("say", 0.0), ("say", 1.0), ("say", 1.0)], "")
    done = run_shards(project, 2)
    assert sorted(each.code for each in done) == [1, 3]
    assert all("NOT DECIDED" in last_line(each) for each in done)
    assert merge_last(project, 2).code == 1


@pytest.mark.parametrize("gate", ["pass^k", "shares"])
def test_a_gate_over_the_run_fails_no_shard(project: Project, gate: str) -> None:
    """Among the two scenarios of one shard, the share of failures is above the bound; among all it is not."""
    write_suite(project, [("say", 1.0)] * 3 + [("say", 0.0)], GATES[gate])
    assert [each.code for each in run_shards(project, 4)] == [3] * 4
    assert merge_last(project, 4).code == 0


def test_a_sequential_gate_is_corrected_over_the_scenarios_of_all_shards(project: Project) -> None:
    """Each scenario alone would be stopped one epoch earlier, as one of few."""
    write_suite(project, [("say", 0.0)] * 12, SEQUENTIAL.replace("AT", "0.7").replace("REJECT", "0.3"))
    assert_merged_equals_whole(project, 6)
    assert {len(each["samples"]) for each in project.results()["scenarios"]} == {7}


def test_a_shard_rejects_no_scenario_that_the_run_would_not(project: Project) -> None:
    """One of few scenarios is rejected with four of eight; one of six is not."""
    write_suite(project, [("alternate", 0.5)] * 6, SEQUENTIAL.replace("AT", "0.9").replace("REJECT", "0.4"))
    assert [each.code for each in run_shards(project, 3)] == [3] * 3
    assert merge_last(project, 3).code == 3


def test_a_threshold_that_applies_to_no_scenario_of_a_shard(project: Project) -> None:
    write_suite(project, [("say", 1.0)] * 4, "")
    project.config(
        "models: {default: scripted/replies.yaml}\nmetrics: [helpfulness, goal_completion]\n"
        "thresholds: {goal_completion: 0.5}\n"
    )
    reply = "{evidence: good, reason: r, score: "
    project.write("replies.yaml", f"""
        replies:
          - {{when: {{role: judge, metric: helpfulness}}, reply: {reply}5}}}}
          - {{when: {{role: judge}}, reply: {reply}1}}}}
          - {{when: {{role: user}}, reply: {{message: say 1.0, done: true, reason: r}}}}
        """)  # fmt: skip
    project.scenarios(
        "{id: goal, goal: To be told something good., epochs: 1, max_turns: 1}", "scenarios/goal.yaml"
    )
    whole = project.run()
    assert [each.code for each in run_shards(project, 3)] == [3] * 3
    assert merge_last(project, 3).code == whole.code == 0, whole.all


def test_shards_against_a_baseline(project: Project) -> None:
    config = "epochs: 4\ngates: {no_regression: {margin: 0.2}}\n"
    write_suite(project, [("say", 1.0)] * 6, config)
    project.call("run")
    before = folders(project)[0].name
    write_suite(project, [("say", 1.0)] * 5, config)
    assert_merged_equals_whole(project, 2, "--baseline", before)
    project.agent("def agent(messages):\n    return 'bad'\n")
    whole = project.run("--baseline", before)
    assert [each.code for each in run_shards(project, 2, "--baseline", before)] == [3, 3]
    assert merge_last(project, 2).code == whole.code == 1


def test_a_remark_about_the_suite_stands_once_in_the_merged_run(project: Project) -> None:
    write_suite(project, [("say", 1.0)] * 4, "")
    project.scenarios("{id: later, turns: [hi], checks: none, skip: not ready}", "scenarios/later.yaml")
    assert_merged_equals_whole(project, 2)


def test_an_undecided_shard_ends_with_0_where_the_job_says_so_and_the_merged_run_does_not(
    project: Project,
) -> None:
    write_suite(project, [("lose", 1.0)] * 2 + [("say", 1.0)] * 2, "epochs: 2\n")
    done = run_shards(project, 2, env={"AGENTEVAL_ON_UNDECIDED": "neutral"})
    assert [each.code for each in done] == [0, 0]
    assert merge_last(project, 2).code == 3


def test_the_number_of_the_shard_comes_from_the_environment(project: Project) -> None:
    write_suite(project, [("say", 1.0)] * 4, "")
    for number in (1, 2):
        assert project.call("run", env={"AGENTEVAL_SHARD": f"{number}/2"}).code == 3
    assert merge_last(project, 2).code == 0


def test_more_shards_than_scenarios(project: Project) -> None:
    write_suite(project, [("say", 1.0)] * 2, "")
    assert [each.code for each in run_shards(project, 4)] == [3] * 4
    assert merge_last(project, 4).code == 0


def test_a_shard_without_samples_has_no_budget_and_needs_none(project: Project) -> None:
    write_suite(project, [("say", 1.0)] * 2, "budget: {max_calls: 100}\n")
    assert [each.code for each in run_shards(project, 4)] == [3] * 4
    assert merge_last(project, 4).code == 0


@pytest.mark.parametrize("tolerance", ["", "fault_tolerance: 0.9\n"])
def test_a_part_of_a_run_that_is_scored_again_is_not_passed(project: Project, tolerance: str) -> None:
    """Neither a shard, nor a merged run that lacks one, nor a shard that was cut off."""
    write_suite(project, [("say", 1.0)] * 6, f"epochs: 2\n{tolerance}")
    run_shards(project, 2)
    first, second = folders(project)
    assert project.call("score", str(first)).code == 3
    assert project.call("merge", str(first)).code == 3
    assert project.call("score", str(folders(project)[-1])).code == 3
    cut_off(second, 4)
    assert project.call("score", str(second)).code == 3
    assert project.call("merge", str(first), str(second)).code == 3
    assert project.call("score", str(folders(project)[-1])).code == 3


def test_a_run_that_was_killed_is_not_passed_when_it_is_scored_again(project: Project) -> None:
    write_suite(project, [("say", 1.0)] * 6, "epochs: 2\nfault_tolerance: 0.9\n")
    assert project.call("run").code == 0
    (folder,) = folders(project)
    assert project.call("score", str(folder)).code == 0
    cut_off(folder, 9)
    assert project.call("score", str(folder)).code == 3


def test_limits_are_divided(project: Project) -> None:
    write_suite(project, [("say", 1.0)] * 8, "budget: {max_calls: 6}\n")
    (first, second) = run_shards(project, 2)
    assert (first.code, second.code) == (3, 3)
    said = " ".join(first.out.split())
    assert "max_calls 3 of 6" in said
    assert "concurrency 10 of 20" in said
    merged = merge_last(project, 2)
    assert merged.code == 3
    assert "stopped by its part of the budget" in " ".join(merged.out.split())


# ── what is missing, or does not belong together ─────────────────────────────────────────────────


def test_a_missing_shard_leaves_the_run_open(project: Project) -> None:
    write_suite(project, [("say", 1.0)] * 6, "fault_tolerance: 0.9\n")
    run_shards(project, 3)
    done = project.call("merge", *map(str, folders(project)[:2]), "--keep-baseline")
    assert done.code == 3
    assert "agenteval run --report json --shard 3/3; then merge again" in " ".join(done.out.split())
    assert "not kept as a baseline" in done.err
    assert "merged from 2 of 3 shards" in project.call("runs", env={"COLUMNS": "200"}).out


def test_the_next_step_for_a_missing_shard_completes_the_run(project: Project) -> None:
    write_suite(project, [("say", 1.0)] * 6, "")
    flags = ("-s", "s1", "-s", "s2", "-s", "s3", "--epochs", "2", "--seed", "3")
    project.call("run", "--shard=2/2", *flags, env={"AGENTEVAL_ON_UNDECIDED": "neutral"})
    done = project.call("merge", str(folders(project)[0]))
    step = "agenteval run -s s1 -s s2 -s s3 --epochs 2 --seed 3 --shard 1/2"
    assert f"{step}; then merge again" in " ".join(done.out.split())
    project.call(*step.split()[1:])
    assert project.call("merge", ".agenteval/runs").code == 0


def test_a_failure_counts_although_a_shard_is_missing(project: Project) -> None:
    write_suite(project, [("say", 0.0)] * 6, "")
    run_shards(project, 3)
    assert project.call("merge", str(folders(project)[0])).code == 1


def test_neutral_is_no_excuse_for_a_missing_shard(project: Project) -> None:
    write_suite(project, [("say", 1.0)] * 6, "on_undecided: neutral\n")
    run_shards(project, 3)
    assert project.call("merge", *map(str, folders(project)[:2])).code == 3


def cut_off(folder: Path, keep: int) -> None:
    """As if the process had been killed after ``keep`` samples."""
    journal = folder / "events.jsonl"
    lines, ends = journal.read_text(encoding="utf-8").splitlines(keepends=True), 0
    for number, line in enumerate(lines):
        ends += json.loads(line)["type"] == "sample_finished"
        if ends == keep:
            journal.write_text("".join(lines[: number + 1]), encoding="utf-8")
            return


def test_a_shard_that_was_cut_off_is_resumed_and_merged(project: Project) -> None:
    write_suite(project, [("say", share) for share in (1.0, 0.5, 0.0, 1.0, 0.9, 1.0)], "epochs: 3\n")
    whole = project.run()
    run_shards(project, 2)
    second = folders(project)[-1]
    cut_off(second, 4)
    done = merge_last(project, 2)
    assert "was cut off" in " ".join(done.out.split())
    shutil.rmtree(folders(project)[-1])
    resumed = project.call("run", "--resume", second.name, env={"AGENTEVAL_SHARD": "2/2"})
    assert "NOT DECIDED" in last_line(resumed)
    assert merge_last(project, 2).code == whole.code
    assert results(project.root / "merged.json") == results(project.root / "results.json")


def test_a_budget_that_was_raised_to_resume_a_shard_is_that_of_the_merged_run(project: Project) -> None:
    write_suite(project, [("say", 1.0)] * 8, "budget: {max_calls: 6}\n")
    run_shards(project, 2)
    write_suite(project, [("say", 1.0)] * 8, "budget: {max_calls: 60}\n")
    for folder in folders(project):
        project.call("run", "--resume", folder.name)
    assert merge_last(project, 2).code == 0


def change(project: Project, what: str) -> tuple[str, ...]:
    """Flags of the second shard, after a change in between."""
    match what:
        case "scenario":
            write_suite(project, [("say", 1.0)] * 5 + [("say", 0.5)], "")
        case "agent":
            project.agent(AGENT + "\n# changed\n")
        case "configuration":
            write_suite(project, [("say", 1.0)] * 6, "fault_tolerance: 0.5\n")
        case "epochs":
            return ("--epochs", "2")
        case "selection":
            return ("-s", "s1")
        case "seed":
            return ("--seed", "7")
    return ()


@pytest.mark.parametrize("what", ["scenario", "agent", "configuration", "epochs", "selection", "seed"])
def test_shards_of_different_runs_are_refused(project: Project, what: str) -> None:
    write_suite(project, [("say", 1.0)] * 6, "")
    project.call("run", "--shard", "1/2")
    project.call("run", "--shard", "2/2", *change(project, what))
    done = merge_last(project, 2)
    assert done.code == 2, done.all
    assert "shards of different runs" in done.err


def refusals() -> Iterable[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    yield "the same shard twice", ("1/2", "1/2"), ("both runs of shard 1/2", ".agenteval")
    yield "other numbers", ("1/2", "2/3"), ("shard 2/3", "shard 1/2")
    yield "no shard", ("1/2", ""), ("is not the run of a shard", "--shard i/n")


@pytest.mark.parametrize(
    ("shards", "facts"), [(s, f) for _, s, f in refusals()], ids=[n for n, _, _ in refusals()]
)
def test_what_cannot_be_merged(project: Project, shards: Sequence[str], facts: Sequence[str]) -> None:
    write_suite(project, [("say", 1.0)] * 4, "")
    for shard in shards:
        project.call("run", *(("--shard", shard) if shard else ()))
    before = folders(project)
    done = merge_last(project, 2)
    assert done.code == 2
    assert all(fact in done.err for fact in facts), done.err
    assert folders(project) == before


@pytest.mark.parametrize("text", ["0/2", "3/2", "2", "a/b", "1/0", "-1/2", "1/2/3", "²/4"])
def test_a_number_that_is_no_shard(project: Project, text: str) -> None:
    write_suite(project, [("say", 1.0)], "")
    for done, place in (
        (project.call("run", f"--shard={text}"), "--shard"),
        (project.call("run", env={"AGENTEVAL_SHARD": text}), "AGENTEVAL_SHARD"),
    ):
        done.refuses(place, text, "i/n")
    assert not (project.root / ".agenteval").exists()


def test_what_a_shard_cannot_do(project: Project) -> None:
    write_suite(project, [("say", 1.0)] * 4, "")
    assert project.call("run", "--watch", env={"AGENTEVAL_SHARD": "1/2"}).code == 2
    done = project.call("run", "--shard", "1/2", "--keep-baseline")
    assert (done.code, "agenteval: --keep-baseline" in done.err) == (2, True)
    run_shards(project, 2)
    assert merge_last(project, 2).code == 0
    merged = folders(project)[-1].name
    assert project.call("run", "--resume", merged).code == 2
    assert project.call("run", "--baseline", folders(project)[0].name).code == 2
    assert project.call("run", "--baseline", merged).code == 0


# ── where runs are found ─────────────────────────────────────────────────────────────────────────


def test_runs_of_other_machines_are_found_below_a_folder(project: Project, tmp_path: Path) -> None:
    shares = [("say", share) for share in (1.0, 0.4, 0.0, 1.0, 0.7)]
    write_suite(project, shares, "epochs: 2\n")
    whole = project.run()
    for number in (1, 2, 3):
        machine = Project(tmp_path / f"machine{number}")
        write_suite(machine, shares, "epochs: 2\n")
        machine.call("run", "--shard", f"{number}/3")
        (run,) = folders(machine)
        shutil.copytree(run, project.root / "shards" / f"artifact-{number}" / run.name)
        shutil.rmtree(machine.root)
    done = project.call("merge", "shards", "--report", "json=merged.json")
    assert done.code == whole.code, done.all
    assert results(project.root / "merged.json") == results(project.root / "results.json")


def test_a_folder_without_runs(project: Project) -> None:
    write_suite(project, [("say", 1.0)], "")
    (project.root / "empty").mkdir()
    assert "empty contains no run" in project.call("merge", "empty").err


def test_a_folder_with_other_runs(project: Project) -> None:
    write_suite(project, [("say", 1.0)] * 4, "")
    project.call("run")
    run_shards(project, 2)
    for others in ("1 run that is", "2 runs that are"):
        done = project.call("merge", ".agenteval/runs")
        assert (done.code, f"left out {others} of no shard" in done.err) == (0, True), done.all
    assert "was merged from shards already" in project.call("merge", folders(project)[-1].name).err


def test_a_configuration_that_is_named_is_read(project: Project) -> None:
    write_suite(project, [("say", 1.0)] * 4, "")
    run_shards(project, 2)
    names = [str(each) for each in folders(project)]
    assert project.call("merge", *names, "-c", "nope.yaml").code == 2
    assert project.call("merge", *names, "-c", "agenteval.yaml").code == 0
    project.write("other.yaml", "agent: {name: bot, target: 'agent.py:agent'}\nmetrics: []\nseed: 7\n")
    assert "seed" in project.call("merge", *names, "-c", "other.yaml").err


def test_a_merged_run_is_a_run_like_any_other(project: Project) -> None:
    write_suite(project, [("say", 0.0), ("say", 1.0), ("say", 1.0)], "")
    run_shards(project, 2)
    assert merge_last(project, 2).code == 1
    merged = folders(project)[-1].name
    assert project.call("report", merged).code == 1
    listed = json.loads(project.call("runs", "--json").out)
    assert sorted(each["shard"] for each in listed) == ["", "1/2", "2/2"]
    assert "bad" in project.call("show", merged, "s0").out
    again = project.call("run", "--failed-in", merged)
    assert (again.code, "1 scenario" in again.out) == (1, True)
    history = project.call("report", "--history", "--report", "json=history.json")
    assert history.code == 0
