"""Commands that write what no request asked for, or end as they should not: red at the answer before it.

Each program is an agent of its own, so that one run plays many of them."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.kit import Done, Project, failed_checks

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="process groups")

BOT = """
import json, os, sys

def say(value):
    print(value if isinstance(value, str) else json.dumps(value), flush=True)

{first}
for line in sys.stdin:
    asked = json.loads(line)
    message, turn = asked["message"], asked["turn"]
    {answer}
    {after}
{last}
"""
TURNS = [{"user": word, "expect": {"output": {"contains": [word]}}} for word in ("one", "two", "three")]
MOCK = "def pay(args, ctx):\n    open('paid-' + args['by'], 'a').close()\n    return 'ok'\n"
TOOLS = {"get": {"returns": 1}, "pay": {"python": "../mocks.py:pay"}}


def program(
    *, first: str = "", answer: str = "say({'text': message})", after: str = "pass", last: str = ""
) -> str:
    return BOT.format(first=first, answer=answer, after=after, last=last)


def pays(by: str) -> str:
    return f"say({{'tool_call': {{'id': 1, 'name': 'pay', 'arguments': {{'by': '{by}'}}}}}})"


def write(
    project: Project, programs: Mapping[str, str], scenarios: list[dict[str, Any]], **keys: Any
) -> None:
    """A configuration with an agent for each program, in a process with these keys."""
    agents = {}
    for name, text in programs.items():
        project.write(f"{name}.py", text)
        agents[name] = {"command": [sys.executable, f"{name}.py"], "timeout_s": 30, **keys}
    project.write("agenteval.yaml", json.dumps({"agents": agents, "metrics": []}))
    project.write("mocks.py", MOCK)
    project.write("scenarios/suite.yaml", json.dumps({"scenarios": scenarios}))


def scenario(agent: str, **more: Any) -> dict[str, Any]:
    return {"id": agent, "agent": agent, "turns": TURNS, "tools": TOOLS, **more}


def samples_of(project: Project) -> dict[str, dict[str, Any]]:
    """The only sample of each scenario."""
    samples = {each["id"]: each["samples"] for each in project.results()["scenarios"]}
    assert all(len(each) == 1 for each in samples.values())
    return {name: sample for name, (sample,) in samples.items()}


# ── conversations in processes of their own ──────────────────────────────────────────────────────


MARK = "\\xef\\xbb\\xbf"
MARKS = {  # a byte order mark: read before the first request is whole, and the answer that follows it after
    "mark": f"os.write(1, b'{MARK}')",
    "mark-byte-by-byte": f"[os.write(1, bytes([each])) for each in b'{MARK}']",
    "mark-and-blanks": f"os.write(1, b'{MARK} \\r')",
    "mark-as-a-line": f"os.write(1, b'{MARK}\\n')",
}
SURPLUS = {  # what a program does too much, the turn that is charged with it, what the error there names
    "greeting": ({"first": "say({'text': 'Hello!'})"}, 0, "Hello!"),
    "banner": ({"first": "say('INFO listening')"}, 0, "INFO listening"),
    "call-before": ({"first": "say({'tool_call': {'id': 1, 'name': 'get'}})"}, 0, '{"tool_call"'),
    "second-answer": ({"after": "turn == 0 and say({'text': 'one more'})"}, 0, "one more"),
    "second-answer-later": ({"after": "turn == 1 and say({'text': 'one more'})"}, 1, "one more"),
    "second-answer-at-last": ({"after": "turn == 2 and say({'text': 'one more'})"}, 2, "one more"),
    "log": ({"after": "say('INFO answered')"}, 0, "INFO answered"),
    "farewell": ({"last": "say('bye')"}, 2, "bye"),
    "half-a-line": ({"last": "sys.stdout.write('{')"}, 2, "{"),
    # No turn asked for the call, so it is of none; and a mock may change the world.
    "call-between": ({"after": f"turn == 0 and {pays('call-between')}"}, 0, '{"tool_call"'),
    "call-at-last": ({"after": f"turn == 2 and {pays('call-at-last')}"}, 2, '{"tool_call"'),
    **{f"{name}-and-text": ({"first": f"{mark}; say('INFO')"}, 0, "INFO") for name, mark in MARKS.items()},
}
IN_STEP = {
    "plain": program(),
    "pays-when-asked": program(
        answer=f"{pays('pays-when-asked')}; sys.stdin.readline(); say({{'text': message}})"
    ),
    "blank-lines": program(first="say('')", after="say(' \\t')", last="sys.stdout.write('\\n \\n ')"),
    **{name: program(first=mark) for name, mark in MARKS.items()},
}
ASKS = """
import json, sys
for line in sys.stdin:
    last = json.loads(line)["messages"][-1]
    if last["role"] == "user":
        call = {"id": "1", "function": {"name": "get", "arguments": {}}}
        print(json.dumps({"tool_calls": [call]}), flush=True)
        BUG
    else:
        print(json.dumps({"text": last["content"]}), flush=True)
"""
HELPED = """
import json, os, subprocess, sys
ends, _held = os.pipe()  # which is at its end once this program is
for line in sys.stdin:
    subprocess.Popen(["sh", "-c", "cat; " + HELPER], stdin=ends, start_new_session=OWN)
    print(json.dumps({"text": "one"}), flush=True)
"""
FORBIDDEN = {"tool_calls": {"forbidden": [{"name": "pay"}]}}
OTHERS = {
    "judged-before": program(after="turn == 1 and say({'text': 'three'})"),
    "pays-first": program(
        answer=f"{pays('pays-first')}; sys.stdin.readline(); say({{'text': message}})",
        after="turn == 0 and say('INFO')",
    ),
    "asks-and-logs": ASKS.replace("BUG", "print('asking get', flush=True)"),
    "asks": ASKS.replace("BUG", ""),
    "killed": program(last="os.kill(os.getpid(), 11)"),
    **{
        f"helper-{owner}-{stream}": HELPED.replace("OWN", str(owner == "session")).replace(
            "HELPER", f"'echo log: done{' >&2' if stream == 'err' else ''}'"
        )
        for owner in ("group", "session")
        for stream in ("out", "err")
    },
}
OF_OTHERS = [
    scenario("judged-before", turns=[
        {"user": "one", "expect": {"output": {"contains": ["ONE", "uno"]}}},
        {"user": "two", "expect": {"output": {"contains": ["zwei"]}}},
        {"user": "four", "expect": {"output": {"contains": ["three"]}}},
    ]),
    scenario("pays-first", turns=["one", "two"], expect=FORBIDDEN),
    *(
        scenario(name, turns=["x", "y"], tools={"get": {"returns": "blue"}},
                 expect={"output": {"contains": ["blue"]}})
        for name in ("asks-and-logs", "asks")
    ),
    scenario("killed"),
    *(scenario(name, turns=TURNS[:1]) for name in OTHERS if name.startswith("helper")),
]  # fmt: skip


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Done, Project]:
    """One run of all programs above."""
    project = Project(tmp_path_factory.mktemp("own"))
    programs = {name: program(**parts) for name, (parts, _, _) in SURPLUS.items()} | IN_STEP
    write(project, {**programs, **OTHERS}, [*map(scenario, programs), *OF_OTHERS])
    done = project.run()
    assert done.code == 1, done.all
    return done, project


@pytest.mark.parametrize("name", SURPLUS)
def test_a_line_that_no_request_asked_for_is_charged_to_the_answer_before_it(
    played: tuple[Done, Project], name: str
) -> None:
    done, project = played
    sample, (_, at, line) = samples_of(project)[name], SURPLUS[name]
    assert (sample["verdict"], sample["fault"], sample["stop"]) == ("failed", "agent", "agent_error")
    assert failed_checks(sample) == {(None, "no_error")}
    assert [bool(turn.get("error")) for turn in sample["turns"]] == [*[False] * at, True]
    assert line in sample["turns"][at]["error"].replace('\\"', '"')
    assert "standard error" in sample["turns"][at]["error"]  # where a log belongs
    (row,) = [each for each in done.out.splitlines() if each.startswith(f"FAILED suite.yaml::{name} ")]
    assert f"turn {at + 1}" in row
    assert not (project.root / f"paid-{name}").exists()


def test_what_is_no_line_and_what_was_asked_for_passes(played: tuple[Done, Project]) -> None:
    _, project = played
    green = [*IN_STEP, "asks", "helper-group-err", "helper-session-err"]
    samples = samples_of(project)
    assert {name: samples[name]["verdict"] for name in green} == dict.fromkeys(green, "passed")
    assert (project.root / "paid-pays-when-asked").exists()


def test_what_came_before_the_line_is_judged_and_what_comes_after_it_is_not(
    played: tuple[Done, Project],
) -> None:
    sample = samples_of(played[1])["judged-before"]
    expected = {(0, "output.contains"), (1, "output.contains"), (None, "no_error")}
    assert failed_checks(sample) == expected
    assert [turn["agent"] for turn in sample["turns"]] == ["one", "two"]


def test_a_forbidden_call_before_the_surplus_line_is_seen(played: tuple[Done, Project]) -> None:
    sample = samples_of(played[1])["pays-first"]
    assert failed_checks(sample) == {(None, "no_error"), (None, "tool_calls")}


def test_a_line_between_an_answer_with_calls_and_the_next_is_of_that_turn(
    played: tuple[Done, Project],
) -> None:
    sample = samples_of(played[1])["asks-and-logs"]
    assert sample["verdict"] == "failed"
    (turn,) = sample["turns"]
    assert [call["name"] for call in turn["tool_calls"]] == ["get"]
    assert "asking get" in turn["error"]


def test_a_program_that_a_signal_ends_after_its_last_answer_has_failed(played: tuple[Done, Project]) -> None:
    sample = samples_of(played[1])["killed"]
    assert failed_checks(sample) == {(None, "no_error")}
    *before, last = [turn.get("error") for turn in sample["turns"]]
    assert before == [None, None]
    assert all(fact in last for fact in (f"'{Path(sys.executable).name} killed.py'", "SIGSEGV"))


@pytest.mark.parametrize("owner", ["group", "session"])
def test_a_line_of_a_child_that_outlives_the_program_is_charged_to_the_answer(
    played: tuple[Done, Project], owner: str
) -> None:
    sample = samples_of(played[1])[f"helper-{owner}-out"]
    assert sample["verdict"] == "failed"
    (turn,) = sample["turns"]
    assert "log: done" in turn["error"]


def test_fail_fast_waits_for_a_line_after_the_last_answer(project: Project) -> None:
    write(project, {"farewell": program(last="say('bye')")}, [scenario("farewell")])
    assert project.run("--fail-fast").code == 1
    assert failed_checks(project.sample()) == {(None, "no_error")}


def test_an_exit_code_after_the_last_answer_is_a_warning(project: Project) -> None:
    ends = {
        f"ends-{code}": program(last=f"sys.stderr.write('no cache'); sys.exit({code})") for code in (0, 3)
    }
    write(project, ends, [scenario(name, epochs=2) for name in ends])
    done = project.run()
    assert done.code == 0, done.all
    (warning,) = [line for line in done.err.splitlines() if "no cache" in line]
    assert all(fact in warning for fact in ("ends-3.py", "code 3"))


def test_a_program_for_one_message_plays_conversations_of_one_turn(project: Project) -> None:
    write(project, {"one": "print('{\"text\": \"hi\"}') if input() else None\n"}, [
        scenario("one", id=name, turns=turns, checks="none")
        for name, turns in (("one", ["x"]), ("two", ["x", "y"]))
    ])  # fmt: skip
    assert project.run().code == 1
    samples = samples_of(project)
    assert samples["one"]["verdict"] == "passed"
    first, second = samples["two"]["turns"]
    assert first["agent"] == "hi"
    assert all(fact in second["error"] for fact in ("one.py'", "code 0"))


# ── wherever else a run is read ──────────────────────────────────────────────────────────────────


def test_a_replay_and_a_score_of_the_journal_give_the_same(project: Project) -> None:
    programs = {
        "bye": program(last="say('bye')"),
        "call": program(last="say({'tool_call': {'id': 1, 'name': 'pay'}})"),
        "good": program(),
    }
    scenarios = [scenario(name, tools={"pay": {"returns": 1}}, expect=FORBIDDEN) for name in programs]
    write(project, programs, scenarios, calls="all")
    failed = {"bye": {(None, "no_error")}, "call": {(None, "no_error")}, "good": set()}

    def failures() -> dict[str, Any]:
        return {name: failed_checks(sample) for name, sample in samples_of(project).items()}

    assert (project.run("--record", "tape.jsonl").code, failures()) == (1, failed)
    run = project.results()["run"]["id"]
    assert (project.run("--replay", "tape.jsonl").code, failures()) == (1, failed)
    journal = f".agenteval/runs/{run}/events.jsonl"
    assert project.call("score", journal, "--report", "json=results.json").code == 1
    assert failures() == failed
    assert project.call("show", "latest", "bye").code == 0


def test_an_agent_that_broke_before_its_user_was_lost_has_failed(project: Project) -> None:
    """The fault of the model that plays the user comes later."""
    programs = {"breaks": program(after="say('INFO')"), "works": program()}
    turns: list[Any] = ["one", {"simulate": 1}]
    write(project, programs, [
        scenario(name, turns=turns, goal="Count.", checks="none", epochs=1) for name in programs
    ])  # fmt: skip
    config = json.loads((project.root / "agenteval.yaml").read_text("utf-8"))
    config["models"] = {"user": {"model": "openai-compatible/m", "base_url": "http://127.0.0.1:9"}}
    project.write("agenteval.yaml", json.dumps(config))
    assert project.run("--no-judge").code == 1
    samples = samples_of(project)
    assert {name: sample["fault"] for name, sample in samples.items()} == {
        "breaks": "agent", "works": "infrastructure"
    }  # fmt: skip
    assert [bool(samples[name]["turns"][0].get("error")) for name in programs] == [True, False]
    assert project.run("--no-judge", "-s", "works").code == 3


# ── processes that are kept ──────────────────────────────────────────────────────────────────────

BREAKS = {  # what a kept program does after an answer, and what the error of that answer names
    "signal": ("os.kill(os.getpid(), 9)", "SIGKILL"),
    "line": ("say('INFO done')", "INFO done"),
    "answer": ("say({'text': 'once more'})", "once more"),
    "call": (pays("nobody"), "tool_call"),
    "line-and-end": ("say('bye'); sys.exit()", "bye"),
}


def three(agent: str) -> list[dict[str, Any]]:
    """Three conversations with an agent, one after the other."""
    return [
        scenario(agent, id=f"{agent}-{id}", turns=[{"user": id, "expect": {"output": {"contains": [id]}}}])
        for id in "abc"
    ]


def verdicts(project: Project) -> dict[str, str]:
    return {each["id"]: each["verdict"] for each in project.results()["scenarios"]}


def test_a_kept_program_that_breaks_after_an_answer_fails_that_conversation_alone(project: Project) -> None:
    """Whichever comes next, or none: the others are innocent."""
    cases = {f"{how}-at-{at}": (how, at) for how in BREAKS for at in "abc"}
    programs = {
        name: program(after=f"if message == {at!r}: {BREAKS[how][0]}") for name, (how, at) in cases.items()
    }
    write(project, programs, [each for name in programs for each in three(name)], keep=True)
    expected = {
        f"{name}-{id}": "failed" if id == at else "passed" for name, (_, at) in cases.items() for id in "abc"
    }
    one = ("--concurrency", "1")
    for options in (one, (*one, "--record", "tape.jsonl"), (), ("--replay", "tape.jsonl")):
        assert project.run(*options).code == 1
        assert verdicts(project) == expected
        samples = samples_of(project)
        for name, (how, at) in cases.items():
            broken = samples[f"{name}-{at}"]
            assert BREAKS[how][1] in broken["turns"][0]["error"], (name, options)
            assert failed_checks(broken) == {(None, "no_error")}


def test_what_a_kept_program_does_when_its_input_ends_is_of_its_last_conversation(project: Project) -> None:
    lasts = {"killed": "os.kill(os.getpid(), 11)", "bye": "say('bye')", "good": ""}
    programs = {name: program(last=last) for name, last in lasts.items()}
    write(project, programs, [each for name in programs for each in three(name)], keep=True)
    assert project.run("--concurrency", "1").code == 1
    failed = {name for name, verdict in verdicts(project).items() if verdict == "failed"}
    assert failed == {"killed-c", "bye-c"}
    for name in ("killed", "bye"):
        assert project.run("--concurrency", "1", "--fail-fast", "-s", f"{name}-").code == 1
        found = list(verdicts(project).values())
        assert found.count("failed") == 1
        assert "passed" not in found
    assert project.run("--fail-fast", "-s", "good-").code == 0


def test_a_kept_program_that_ends_between_conversations_is_replaced(project: Project) -> None:
    pid = "say({'text': f'process {os.getpid()}'})"
    lasts = {"ends-0": "sys.exit(0)", "ends-3": "sys.exit(3)", "stays": "pass"}
    programs = {name: program(answer=pid, after=after) for name, after in lasts.items()}
    expect = {"output": {"contains": ["process"]}}
    write(project, programs, [
        scenario(name, turns=["a"], expect=expect, epochs=8) for name in programs
    ], keep=True)  # fmt: skip
    for concurrency in ("1", "4"):
        done = project.run("--concurrency", concurrency)
        assert done.code == 0, done.all
        processes = {
            each["id"]: len({sample["turns"][0]["agent"] for sample in each["samples"]})
            for each in project.results()["scenarios"]
        }
        assert (processes["ends-0"], processes["ends-3"]) == (8, 8)
        assert concurrency != "1" or processes["stays"] == 1
        (warning,) = [line for line in done.err.splitlines() if "ends-3.py" in line]
        assert "code 3" in warning
        assert "ends-0.py" not in done.err
