"""``--report csv``: a row for each sample, as a spreadsheet and ``csv`` read it, whatever an agent says."""

from __future__ import annotations

import csv
import json
from io import StringIO
from pathlib import Path

import pytest

from tests.support.kit import Project
from tests.support.results import reports
from tests.support.scored_logs import conversation, log
from tests.support.scripted import judge, script

Row = dict[str, str]
GOOD = "def agent(messages, ctx): return 'Shipped on 3 May.'\n"
BAD = """
def agent(messages, ctx):
    return "Soon." if ctx.scenario_id == "order" and ctx.epoch == 1 else "Shipped on 3 May."
"""
SCENARIOS = """
scenarios:
  - {id: order, name: "Order, please", tags: [smoke, slow], turns: [Where is it?],
     expect: {output: {contains: [3 May]}}}
  - {id: hello, category: robustness, turns: [Hello], checks: none}
"""


def table(text: str) -> list[Row]:
    return list(csv.DictReader(StringIO(text, newline=""), strict=True))


def read(project: Project, name: str = "out.csv") -> list[Row]:
    text = (project.root / name).read_bytes().decode("utf-8-sig")
    assert "\r" not in text
    return table(text)


def verdicts(found: list[Row]) -> list[tuple[str, ...]]:
    return [tuple(row[name] for name in ("scenario", "epoch", "verdict")) for row in found]


@pytest.fixture
def orders(project: Project) -> Project:
    project.config("epochs: 2\n")
    project.scenarios(SCENARIOS)
    return project


@pytest.mark.parametrize(("agent", "second", "code"), [(GOOD, "passed", 0), (BAD, "failed", 1)])
def test_each_conversation_is_a_row(orders: Project, agent: str, second: str, code: int) -> None:
    orders.agent(agent)
    done = orders.run("--report", "csv=out.csv")
    assert (done.code, "csv report: out.csv" in done.err) == (code, True), done.all
    found = read(orders)
    assert verdicts(found) == [
        ("order", "1", "passed"),
        ("order", "2", second),
        ("hello", "1", "passed"),
        ("hello", "2", "passed"),
    ]
    row = found[1]
    assert (row["name"], row["tags"], row["stop"], row["turns"]) == (
        "Order, please", "smoke; slow", "script_done", "1",
    )  # fmt: skip
    assert ("3 May" in row["reason"]) is (second == "failed")
    assert row["run"] == orders.results()["run"]["id"]
    before = (orders.root / "out.csv").read_bytes()
    assert orders.call("report", "latest", "--report", "csv=again.csv").code == code
    assert (orders.root / "again.csv").read_bytes() == before


def test_where_it_is_written_without_a_path_and_to_stdout(orders: Project) -> None:
    orders.agent(GOOD)
    assert orders.call("run", "--report", "csv").code == 0
    (kept,) = orders.root.glob(".agenteval/runs/*/samples.csv")
    assert kept.read_bytes().startswith(b"\xef\xbb\xbfscenario,")
    orders.config("epochs: 2\nreporters: [csv=-]\n")
    done = orders.call("run")
    assert (done.code, done.out[:9]) == (0, "scenario,"), done.all
    assert len(table(done.out)) == 4


def test_judged_metrics_are_columns(project: Project) -> None:
    project.agent("agent = lambda messages: 'rude' if 'again' in messages[-1]['content'] else 'kind'\n")
    labels = {"metric": "agent_behavior_failure"}
    script(
        project,
        judge({"score": 2}, metric="helpfulness", turn=1),
        judge({"score": 5}, metric="helpfulness"),
        judge({"label": "repetition", "evidence": "rude"}, turn=1, **labels),
        judge({"label": "no failure"}, **labels),
    )
    project.config("models: {default: scripted/replies.yaml}\n"
                   "metrics: [helpfulness, agent_behavior_failure]\n")  # fmt: skip
    project.scenarios("{id: a, turns: [hello, again], checks: none}\n")
    done = project.run("--report", "csv=out.csv")
    assert done.code == 0, done.all
    (row,) = read(project)
    assert (row["score.helpfulness"], row["scripted"]) == ("3.5", "true")
    assert row["score.agent_behavior_failure"] == "0.5"
    assert row["label.agent_behavior_failure"] == "repetition"
    assert (row["findings"], row["severity"]) == ("1", "low")
    aggregates = project.results()["scenarios"][0]["aggregates"]
    assert {name: each["value"] for name, each in aggregates.items()} == {
        "helpfulness": 3.5, "agent_behavior_failure": 0.5,
    }  # fmt: skip


@pytest.mark.parametrize("number", [3, 130])
def test_a_log_has_the_same_rows_whatever_else_is_reported(project: Project, number: int) -> None:
    """More failures than those of which the words are kept in memory."""
    records = [conversation(f"c{n}", calls="no_such_tool" if n % 2 else "get_order") for n in range(number)]
    log(project, *records)
    project.write("agenteval.yaml", "fail_on_severity: high\n")
    done = project.call("score", "log.jsonl", "--report", "csv=alone.csv")
    assert done.code == 1, done.all
    alone = read(project, "alone.csv")
    assert len(alone) == number
    assert [row["where"] for row in alone] == [f"log.jsonl:{n + 1}" for n in range(number)]
    assert [row["verdict"] for row in alone[:2]] == ["passed", "failed"]
    assert {(row["tool_calls"], row["latency_ms"], row["cost"]) for row in alone} == {("1", "", "")}
    project.call("score", "log.jsonl", "--report", "csv=beside.csv", "--report", "json=results.json")
    beside = read(project, "beside.csv")
    assert [{**row, "run": ""} for row in alone] == [{**row, "run": ""} for row in beside]


# ── text of others ───────────────────────────────────────────────────────────────────────────────

HOSTILE = (
    '=HYPERLINK("http://evil.example","x")\x1b[31m\x1b]0;t\x07 \u202eevil\u202c \x00 "quo,ted"\r\n@SUM(1)'
    "\n::error::PWNED ##[error]PWNED\n+1;=2\t-3 \ud800"
)


def test_hostile_text_is_text_in_a_cell(project: Project) -> None:
    project.config("reporters: [csv=-, csv=out.csv]\n")
    project.agent(f"def agent(messages): raise ValueError({HOSTILE!r})\n")
    name = HOSTILE.replace("\ud800", "")
    scenarios = [{"id": id_, "name": name, "turns": ["hi"], "checks": "none"} for id_ in ("=1+1", "b")]
    project.scenarios(json.dumps({"scenarios": scenarios}))
    done = project.call("run")
    assert done.code == 1, done.all
    text = (project.root / "out.csv").read_text("utf-8-sig")
    assert text == done.out
    assert not set("\x00\x07\x1b\u202e\ud800") & set(text)
    assert not [line for line in text.splitlines() if line.startswith("::") or "##[" in line]
    found = table(text)
    assert [row["scenario"] for row in found] == ["'=1+1", "b"]
    for row in found:
        assert (row["verdict"], row["fault"], row["turns"]) == ("failed", "agent", "1")
        assert row["name"].startswith("'=HYPERLINK")
        assert "\ufffd" in row["reason"]
        for shown in (row["name"], row["reason"]):
            assert 'HYPERLINK("http://evil.example","x")' in shown
            assert '"quo,ted"\n\'@SUM(1)' in shown
            assert "\n'+1;'=2\t'-3" in shown


SECRETS = {
    "QUOTED_PASSWORD": 'pa"ss",w0rd-12345',
    "LINES_TOKEN": "first-line-1\nsecond-line-2",
    "HEX_KEY": "x00042000042",
}


def test_a_secret_is_masked_and_the_table_stays_one(project: Project) -> None:
    """Also one that is known only when the report is made again."""
    project.config()
    project.agent(f"def agent(messages): raise ValueError({' and '.join(SECRETS.values())!r})\n")
    project.scenarios("{id: a, turns: [hi], checks: none}\n")
    assert project.run("--report", "csv=before.csv").code == 1
    (before,) = read(project, "before.csv")
    assert all(secret in before["reason"] for secret in SECRETS.values())
    for command in (("run",), ("report", "latest")):
        done = project.call(*command, "--report", "csv=out.csv", env=SECRETS)
        assert done.code == 1, done.all
        (row,) = read(project)
        assert row["reason"].count("***") == 3
        assert not [secret for secret in SECRETS.values() if secret in row["reason"]]
        same = ("scenario", "verdict", "fault", "stop", "turns", "where")
        assert [row[name] for name in same] == [before[name] for name in same]
        assert row.keys() == before.keys()


def test_a_secret_that_is_a_word_or_a_number_of_the_table_changes_neither(project: Project) -> None:
    project.agent("def agent(message): return 'no'\n")
    project.write(
        "agenteval.yaml",
        "agent: {target: 'agent.py:agent'}\nmetrics: []\nmodels: {default: {model: openai-compatible/m,"
        " base_url: 'http://localhost:1/v1', api_key_env: WORD}}\n",
    )
    project.scenarios("{id: a, turns: [hi], expect: {output: {contains: [failed verdict scenario]}}}\n")
    for word in ("failed", "verdict", "scenario"):
        done = project.call("run", "--report", "csv=out.csv", env={"WORD": word})
        assert done.code == 1, done.all
        (row,) = read(project)
        assert (row["scenario"], row["verdict"]) == ("a", "failed")
        assert word not in row["reason"]


# ── files ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", ["scenarios", "scenarios/suite.yaml", "agent.py/out.csv"])
def test_a_path_that_cannot_be_written_is_refused_before_the_run(orders: Project, path: str) -> None:
    orders.agent(GOOD)
    orders.call("run", "--report", f"csv={path}").refuses("agenteval", "csv report", path)
    assert not (orders.root / ".agenteval").exists()


@pytest.mark.parametrize(("agent", "code"), [(GOOD, 3), (BAD, 1)])
def test_a_file_that_takes_nothing_is_reported(orders: Project, agent: str, code: int) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no device that is full")
    orders.agent(agent)
    done = orders.call("run", "--report", "csv=/dev/full")
    assert (done.code, reports(done, "/dev/full", "csv")) == (code, True), done.all


def test_nothing_is_known_of_a_record_that_cannot_be_read(project: Project) -> None:
    fine = {
        "id": "fine",
        "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}],
    }
    broken = {"id": "broken", "messages": [{"foo": 1}, {"bar": 2}]}
    project.write("log.jsonl", "".join(json.dumps(each) + "\n" for each in (fine, broken)))
    project.call("score", "log.jsonl", "--report", "csv=out.csv")
    by_stop = {row["stop"]: row for row in read(project)}
    assert [by_stop["recorded"][name] for name in ("steps", "turns", "findings")] == ["1", "1", "0"]
    unknown = by_stop["unreadable"]
    assert [unknown[name] for name in ("steps", "turns", "tool_calls", "findings", "scripted")] == [""] * 5
    assert unknown["verdict"] == "inconclusive"
