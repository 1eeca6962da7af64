"""A conversation that is lost to a fault of nobody's is played once more, as the same sample."""

from __future__ import annotations

import json
import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from tests.front_door.test_resume import cut_after
from tests.support.judged_projects import content, scenario
from tests.support.kit import Done, Project, failed_checks
from tests.support.local_servers import Behaviour, LocalServer, Wire, completion, respond_json
from tests.support.model_servers import Json, ModelServer, Reply
from tests.support.results import gate, last_line

AGENT = """
import pathlib

def agent(messages, ctx):
    with pathlib.Path("asked").open("a") as file:
        file.write(f"{ctx.scenario_id} {ctx.epoch} {ctx.turn} {ctx.seed}\\n")
    times = pathlib.Path("asked").read_text().count(f"{ctx.scenario_id} {ctx.epoch} {ctx.turn} ")
    if ctx.scenario_id.startswith("flaky") and ctx.turn == TURN and times <= LOST:
        raise FAULT
    return ANSWER
"""
ONE = "{id: flaky, turns: [hi, and then?], expect: {output: {contains: [done]}}}\n"
REFUSED = "ConnectionRefusedError('nobody there')"


def flaky(
    project: Project, lost: int = 1, *, turn: int = 1, fault: str = REFUSED, answer: str = "'done'"
) -> None:
    (project.root / "asked").unlink(missing_ok=True)
    code = AGENT.replace("TURN", str(turn)).replace("LOST", str(lost))
    project.agent(code.replace("FAULT", fault).replace("ANSWER", answer))


def asked(project: Project) -> list[str]:
    return (project.root / "asked").read_text(encoding="utf-8").splitlines()


def repeated(done: Done) -> str:
    """The scenario in brackets of which the last line says that a conversation was repeated."""
    found = re.search(r"\brepeated\b[^(]*\((.*?)\)", last_line(done))
    return found[1] if found else ""


@pytest.fixture
def one(project: Project) -> Project:
    project.config()
    project.scenarios(ONE)
    return project


def test_the_second_counts_in_place_of_the_first_and_the_last_line_names_it(one: Project) -> None:
    flaky(one)
    done = one.run("--report", "junit=j.xml", "--seed", "5")
    assert done.code == 0, done.all
    assert repeated(done) == "flaky"
    (caveat,) = one.results()["summary"]["caveats"]
    assert (caveat["kind"], caveat["count"]) == ("played_again", 1)
    first, second = asked(one)[:2], asked(one)[2:]
    assert first == second  # of the same epoch, with the same seed
    sample = one.sample()
    assert (sample["epoch"], len(sample["turns"]), sample["verdict"]) == (0, 2, "passed")
    assert one.results()["summary"]["usage"]["agent"]["calls"] == 3, "the calls of both count"
    cases = list(ElementTree.parse(one.root / "j.xml").iter("testcase"))
    assert [[child.tag for child in case if child.tag in ("failure", "error")] for case in cases] == [[]]
    assert gate(one, "fault_tolerance")["value"] == 0
    assert "0 inconclusive of 1" in gate(one, "fault_tolerance")["basis"]
    # The reports of the journal are the same.
    again = one.call("report", "latest")
    assert last_line(again) == last_line(done)


def test_an_agent_that_is_wrong_in_the_second_is_red(one: Project) -> None:
    flaky(one, answer="'done' if times < 2 else 'no'")
    assert one.run().code == 1
    assert failed_checks(one.sample()) == {(None, "output.contains")}


def test_what_is_lost_twice_is_lost_and_counts_once(one: Project) -> None:
    flaky(one, lost=2)
    done = one.run()
    assert done.code == 3, done.all
    assert len(asked(one)) == 4
    assert repeated(done) == ""
    assert one.sample()["fault"] == "infrastructure"
    assert "1 inconclusive of 1" in gate(one, "fault_tolerance")["basis"]


def test_what_finished_turns_prove_is_no_loss(one: Project) -> None:
    """Such a sample is failed, and is not played again."""
    one.scenarios("{id: flaky, turns: [{user: hi, expect: {output: {contains: [never]}}}, and then?]}\n")
    flaky(one)
    assert one.run().code == 1
    assert len(asked(one)) == 2
    assert failed_checks(one.sample()) == {(0, "output.contains")}


STATUS = "type('StatusError', (Exception,), {{'status_code': {0}}})('status {0}')"


FAULTS = {
    # Whether the conversation is played again; what would be met again, or may have been carried out, is not.
    REFUSED: True,
    "ConnectionError('refused')": True,
    STATUS.format(429): True,
    STATUS.format(503): True,
    STATUS.format(401): False,
    STATUS.format(403): False,
    "ConnectionResetError('by peer')": False,
    "__import__('socket').gaierror('no such host')": False,
    "__import__('ssl').SSLError('no trust')": False,
    "type('RemoteProtocolError', (Exception,), {})('disconnected')": False,
}


@pytest.mark.parametrize("place", ["here", "in another interpreter"])
def test_what_would_be_met_again_or_may_have_been_carried_out_is_not_tried_again(
    project: Project, place: str
) -> None:
    names = {f"flaky-{n}": is_again for n, is_again in enumerate(FAULTS.values())}
    rows = "".join(f"  - {ONE.strip().replace('id: flaky', f'id: {name}')}\n" for name in names)
    project.scenarios(f"scenarios:\n{rows}")
    flaky(project, fault=f"eval({[*FAULTS]!r}[int(ctx.scenario_id[6:])])")
    if place == "here":
        project.config()
    else:
        agent = f"agent: {{name: bot, target: 'agent.py:agent', interpreter: '{sys.executable}'}}\n"
        project.config(agent, target="")
    assert project.run().code == 3
    verdicts = {s["id"]: s["verdict"] for s in project.results()["scenarios"]}
    assert verdicts == {name: "passed" if again else "inconclusive" for name, again in names.items()}
    times = {name: sum(line.startswith(f"{name} ") for line in asked(project)) for name in names}
    assert times == {name: 4 if again else 2 for name, again in names.items()}


def drops(wire: Wire) -> None:
    wire.drop()


@pytest.mark.parametrize(
    ("first", "is_again"),
    [
        (respond_json({"error": "busy"}, status=503), True),
        (respond_json({"error": "who are you?"}, status=401), False),
        (respond_json({"error": "not you"}, status=403), False),
        (drops, False),
    ],
)
def test_the_same_holds_for_an_agent_behind_an_endpoint(
    project: Project, first: Behaviour, is_again: bool
) -> None:
    fine = respond_json(completion("done"))
    project.scenarios("{id: a, turns: [hi], expect: {output: {contains: [done]}}}\n")
    with LocalServer(first, fine) as server:
        project.config(f"agent: {{name: bot, endpoint: '{server.url}'}}\n", target="")
        done = project.run()
    assert done.code == (0 if is_again else 3), done.all
    assert repeated(done) == ("a" if is_again else "")


def test_a_further_epoch_takes_the_place_where_a_gate_decides_how_many_there_are(project: Project) -> None:
    """Only those that it does not decide of are played once more."""
    project.config(
        "epochs: {min: 2, max: 4}\ngates: {pass_rate: {at_least: 0.9, reject_below: 0.2, confidence: 0.6}}\n"
        "agent_concurrency: 1\n"
    )
    project.scenarios("scenarios:\n- {id: flaky, turns: [hi], expect: {output: {contains: [done]}}}\n")
    flaky(project, turn=0)
    done = project.run()
    epochs = [line.split()[1] for line in asked(project)]
    assert len(set(epochs)) == len(epochs), done.all
    assert repeated(done) == ""


def test_a_run_that_was_cut_off_between_the_two_goes_on_with_the_second(one: Project) -> None:
    flaky(one)
    assert one.run().code == 0
    cut_after(one, "sample_finished")
    done = one.call("run", "--resume", "latest", "--report", "json=results.json")
    assert done.code == 0, done.all
    assert repeated(done) == "flaky"
    assert len(asked(one)) == 6


def test_a_recording_has_both_and_a_replay_plays_what_was_recorded(one: Project) -> None:
    flaky(one)
    assert one.run("--record", "tape.jsonl").code == 0
    played = one.run("--replay", "tape.jsonl")
    assert played.code == 0, played.all
    assert repeated(played) == "flaky"
    assert len(asked(one)) == 4, "nobody was asked again"
    # A recording that has the conversation once, and lost, is played as it is.
    lines = (one.root / "tape.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    once = [line for line in lines if '"again": true' not in line and '"n": 1' not in line]
    assert len(once) < len(lines)
    one.write("old.jsonl", "".join(once))
    old = one.run("--replay", "old.jsonl")
    assert old.code == 3, old.all
    assert one.sample()["fault"] == "infrastructure"


class Unsteady:
    """A model that plays the user: its first ``lost`` requests meet a server that is down."""

    def __init__(self, lost: int) -> None:
        self._lost = lost
        self.asked = 0

    def __call__(self, asked: Json) -> Reply:
        self.asked += 1
        if self.asked <= self._lost:
            return Reply({"error": {"message": "down", "code": "insufficient_quota"}}, 429)
        return Reply(completion(json.dumps(content(asked))))


@pytest.mark.parametrize(("lost", "code"), [(1, 0), (2, 3)])
def test_the_model_of_the_simulated_user_may_be_what_it_is_lost_to(
    project: Project, lost: int, code: int
) -> None:
    project.agent("def agent(messages):\n    return 'done'\n")
    one = {**scenario("a"), "goal": "Have it done.", "expect": {"output": {"contains": ["done"]}}}
    one.pop("turns", None)
    project.scenarios(json.dumps({"scenarios": [one]}))
    with ModelServer(Unsteady(lost)) as server:
        project.config(
            f"models: {{default: {{model: openai-compatible/m, base_url: '{server.base_url}'}}}}\n"
            "metrics: []\nepochs: 1\n"
        )
        done = project.run()
    assert done.code == code, done.all
    assert repeated(done) == ("a" if code == 0 else "")


def test_what_both_took_is_in_the_budget(one: Project) -> None:
    one.config("budget: {max_calls: 3}\n")
    flaky(one, lost=0)
    assert one.run().code == 0
    flaky(one)
    done = one.run()
    assert done.code == 3, done.all
    assert one.sample()["stop"] == "budget"


def journal(project: Project) -> list[dict[str, Any]]:
    (run,) = (project.root / ".agenteval/runs").iterdir()
    return [json.loads(line) for line in Path(run, "events.jsonl").read_text(encoding="utf-8").splitlines()]


def test_the_journal_marks_the_first_as_played_again_and_is_scored_without_it(one: Project) -> None:
    flaky(one)
    assert one.run().code == 0
    ends = [event for event in journal(one) if event["type"] == "sample_finished"]
    assert [(end.get("again", False), end["stop"]["reason"]) for end in ends] == [
        (True, "infrastructure"),
        (False, "script_done"),
    ]
    (run,) = (one.root / ".agenteval/runs").iterdir()
    done = one.call("score", str(run), "--report", "json=results.json")
    assert done.code == 0, done.all
    assert len(one.results()["scenarios"][0]["samples"]) == 1
