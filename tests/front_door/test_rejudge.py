"""``agenteval report RUN --rejudge``: a kept run judged anew costs what changed, and is a run of its own."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from tests.support.judged_projects import KEY, content, judged_project, model_config, scenario
from tests.support.kit import Done, Project
from tests.support.local_servers import completion
from tests.support.model_servers import Json, ModelServer, Reply, schema_in

GOAL = {"goal": "To know."}
TALKS = [scenario(f"talk-{n}", "One.", "Two.", **GOAL) for n in range(2)]
METRICS = "metrics: [helpfulness, agent_behavior_failure, goal_completion]\nepochs: 2\n"
TURNS, CONVERSATIONS = 8, 4
OWN = """
---
metric: helpfulness
scope: turn
scale: [1, 5]
---
Was it of any use?
"""


def play(asked: Json) -> Reply:
    """Nothing is wrong, and nothing is perfect: each number is 4."""
    fields = schema_in(asked)["properties"]
    if "helpfulness" in fields:  # several in one call
        reply = {name: {"evidence": "Answer number", "reason": "fine", "score": 4} for name in fields}
    elif "score" in (reply := content(asked)):
        reply = {**reply, "score": 4, "evidence": "Answer number"}
    body = completion(json.dumps(reply))
    return Reply({**body, "usage": {"prompt_tokens": 100, "completion_tokens": 10}})


class Bench:
    """A project that was run once, and its model."""

    def __init__(self, project: Project, server: ModelServer) -> None:
        self.project, self.server = project, server
        self.configure("")
        done = project.run(env=KEY)
        assert done.code == 0, done.all
        self.asked_first = len(server.asked)
        self.journal = self.journals[0]
        self.before = self.journal.read_bytes()

    @property
    def journals(self) -> list[Path]:
        return sorted((self.project.root / ".agenteval/runs").glob("*/events.jsonl"))

    def configure(self, more: str, *, metrics: str = METRICS) -> None:
        judged_project(self.project, TALKS, model_config(self.server, f"{metrics}{more}"))

    def rejudge(self, *flags: str) -> tuple[Done, int]:
        """Of the first run; with the number of calls that were made."""
        before = len(self.server.asked)
        done = self.project.call("report", str(self.journal), "--rejudge", *flags, env=KEY)
        assert self.journal.read_bytes() == self.before
        return done, len(self.server.asked) - before

    def forecast(self) -> dict[str, tuple[int, int]]:
        """Of a dry run: by metric, what is kept and what would be asked."""
        runs = self.journals
        done, calls = self.rejudge("--dry-run")
        assert (done.code, calls, self.journals) == (0, 0, runs), done.all
        rows = re.findall(r"^(\w+) +(\d+) +(\d+) +≈?[\d,]+$", done.out, re.MULTILINE)
        return {name: (int(kept), int(asked)) for name, kept, asked in rows}


@pytest.fixture
def bench(project: Project):  # type: ignore[no-untyped-def]
    with ModelServer(play) as server:
        yield Bench(project, server)


def test_what_has_not_changed_is_not_asked_and_the_run_is_a_new_one(bench: Bench) -> None:
    forecast = bench.forecast()
    assert {name: asked for name, (_, asked) in forecast.items()} == dict.fromkeys(forecast, 0)
    # Those that were drawn by lot to be asked again are known, too.
    assert sum(kept for kept, _ in forecast.values()) == bench.asked_first >= 2 * TURNS + CONVERSATIONS
    done, calls = bench.rejudge("--report", "json=results.json")
    assert (done.code, calls) == (0, 0), done.all
    assert len(bench.journals) == 2
    results = bench.project.results()
    assert results["summary"]["usage"]["judge"]["calls"] == 0
    notices = [n["text"] for n in results["summary"]["notices"]]
    assert any(re.search(rf"\b{bench.asked_first}\b.*\b0\b", text) for text in notices)
    scores = [t["scores"] for s in results["scenarios"] for each in s["samples"] for t in each["turns"]]
    assert [score["helpfulness"]["value"] for score in scores] == [4] * TURNS
    # The new run can be judged anew in its turn.
    bench.journal = next(path for path in bench.journals if path != bench.journal)
    bench.before = bench.journal.read_bytes()
    assert bench.rejudge()[1] == 0


def test_gates_and_exit_code_are_decided_anew(bench: Bench) -> None:
    bench.configure("thresholds: {helpfulness: 4.5}\njudge: {corroborate: false}\n")
    done, calls = bench.rejudge()
    assert (done.code, calls) == (1, 0), done.all
    assert re.search(r"helpfulness +4\b.*\b4\.5\b", done.out)
    # What now gates is asked again, as in a run, and nothing else is.
    bench.configure("thresholds: {helpfulness: 4.5}\n")
    would = {name: asked for name, (_, asked) in bench.forecast().items()}
    assert would == {"helpfulness": TURNS, "agent_behavior_failure": 0, "goal_completion": 0}
    done, calls = bench.rejudge()
    assert (done.code, calls) == (1, TURNS), done.all
    bench.configure("thresholds: {helpfulness: 3.5}\n")
    done, calls = bench.rejudge()
    assert (done.code, calls) == (0, 0), done.all


def test_a_changed_prompt_costs_its_metric_alone_and_the_dry_run_forecasts_it(bench: Bench) -> None:
    bench.project.write("own.md", OWN)
    bench.configure("prompts: {judges/helpfulness.md: own.md}\n")
    forecast = bench.forecast()
    assert forecast["helpfulness"] == (0, TURNS)
    assert {asked for name, (_, asked) in forecast.items() if name != "helpfulness"} == {0}
    before = len(bench.server.asked)
    done, calls = bench.rejudge()
    assert (done.code, calls) == (0, TURNS), done.all
    assert Counter("of any use" in json.dumps(asked) for asked in bench.server.asked[before:]) == {
        True: TURNS
    }


def test_another_model_a_new_metric_and_an_old_journal_are_asked(bench: Bench) -> None:
    bench.configure("", metrics=METRICS.replace("helpfulness", "helpfulness, coherence"))
    assert bench.forecast()["coherence"] == (0, TURNS)
    path = bench.project.root / "agenteval.yaml"
    bench.configure("")
    path.write_text(path.read_text("utf-8").replace("openai-compatible/m,", "openai-compatible/n,"), "utf-8")
    assert {kept for kept, _ in bench.forecast().values()} == {0}
    # A journal of scripted judges, or of before: it holds the verdicts, and not what was asked.
    bench.configure("")
    lines = bench.journal.read_text("utf-8").splitlines(keepends=True)
    bench.journal.write_text("".join(line for line in lines if '"type":"asked"' not in line), "utf-8")
    bench.before = bench.journal.read_bytes()
    forecast = bench.forecast()
    assert (forecast["helpfulness"], forecast["goal_completion"]) == ((0, TURNS), (0, CONVERSATIONS))
    assert bench.project.call("report", "latest").code == 0


@pytest.mark.parametrize(
    ("flags", "facts"),
    [
        (["--dry-run"], ["--dry-run", "--rejudge"]),
        (["-m", "openai/x"], ["-m", "--rejudge"]),
        (["--rejudge", "--dry-run", "--report", "json"], ["--dry-run"]),
        (["--rejudge"], ["model"]),
    ],
)
def test_what_makes_no_sense_is_refused(project: Project, flags: list[str], facts: list[str]) -> None:
    project.agent("def agent(messages, ctx):\n    return 'Yes.'\n")
    project.config()
    project.scenarios("cases: [{id: a, input: hello, expected_output_contains: ['yes']}]\n")
    assert project.run().code == 0
    if flags == ["--rejudge"]:
        project.write("agenteval.yaml", "agent: {name: bot, target: 'agent.py:agent'}\n")
    done = project.call("report", "latest", *flags)
    assert done.code == 2, done.all
    assert [fact for fact in facts if fact not in done.err] == [], done.err


def test_a_dry_run_counts_shared_calls_as_they_are_made(project: Project) -> None:
    with ModelServer(play) as server:
        bench = Bench(project, server)
        scales = METRICS.replace("helpfulness", "helpfulness, relevance, coherence")
        bench.configure("judge: {calls: shared}\n", metrics=scales)
        would = sum(asked for _, asked in bench.forecast().values())
        done, calls = bench.rejudge()
        assert done.code == 0, done.all
        assert would == calls == TURNS
