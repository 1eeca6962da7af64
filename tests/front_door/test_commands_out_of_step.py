"""Commands that write what no request asked for, or end as they should not: red at the answer before it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.front_door.test_commands import config
from tests.support.kit import Project, failed_checks

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="process groups")

BOT = """
import json, os, sys

def say(value):
    print(value if isinstance(value, str) else json.dumps(value), flush=True)

{first}
for line in sys.stdin:
    asked = json.loads(line)
    message, turn = asked["message"], asked["turn"]
    say({{"text": message}})
    {after}
{last}
"""
TURNS = """
turns:
- {user: one, expect: {output: {contains: [one]}}}
- {user: two, expect: {output: {contains: [two]}}}
- {user: three, expect: {output: {contains: [three]}}}
"""
SURPLUS = {
    "a greeting": ({"first": "say({'text': 'Hello!'})"}, 0),
    "a banner": ({"first": "say('INFO listening')"}, 0),
    "a call before the first request": ({"first": "say({'tool_call': {'id': 1, 'name': 'get'}})"}, 0),
    "a second answer": ({"after": "turn == 0 and say({'text': 'one more thing'})"}, 0),
    "a second answer, later": ({"after": "turn == 1 and say({'text': 'one more thing'})"}, 1),
    "a log": ({"after": "say('INFO answered')"}, 0),
    "a second answer, at last": ({"after": "turn == 2 and say({'text': 'one more thing'})"}, 2),
    "a farewell": ({"last": "say('bye')"}, 2),
    "half a line": ({"last": "sys.stdout.write('{')"}, 2),
}


def bot(project: Project, *, first: str = "", after: str = "pass", last: str = "", more: str = "") -> None:
    project.write("bot.py", BOT.format(first=first, after=after, last=last))
    config(project, [sys.executable, "bot.py"], more)


@pytest.mark.parametrize("what", SURPLUS)
def test_a_line_that_no_request_asked_for_is_charged_to_the_answer_before_it(
    what: str, project: Project
) -> None:
    parts, at = SURPLUS[what]
    bot(project, **parts)
    project.scenarios(f"id: a\n{TURNS}\ntools: {{get: {{returns: 1}}}}")
    done = project.run("--fail-fast")
    assert done.code == 1, done.all
    sample = project.sample()
    assert (sample["verdict"], sample["fault"], sample["stop"]) == ("failed", "agent", "agent_error")
    assert failed_checks(sample) == {(None, "no_error")}
    assert [bool(turn.get("error")) for turn in sample["turns"]] == [*[False] * at, True]
    wrote = "before the conversation's first request" if "first" in parts else "no request asked for"
    assert wrote in sample["turns"][at]["error"]
    assert "log to standard error" in sample["turns"][at]["error"]
    assert f"turn {at + 1}" in done.out

    bot(project)
    assert project.run().code == 0


def test_what_came_before_the_line_is_judged_and_what_comes_after_it_is_not(project: Project) -> None:
    bot(project, after="turn == 1 and say({'text': 'three'})")
    project.scenarios("""
        id: a
        turns:
        - {user: one, expect: {output: {contains: [ONE, uno]}}}
        - {user: two, expect: {output: {contains: [zwei]}}}
        - {user: four, expect: {output: {contains: [three]}}}
    """)
    assert project.run().code == 1
    sample = project.sample()
    expected = {(0, "output.contains"), (1, "output.contains"), (None, "no_error")}
    assert failed_checks(sample) == expected
    assert [turn["agent"] for turn in sample["turns"]] == ["one", "two"]


PAYS = "say({'tool_call': {'id': 1, 'name': 'pay', 'arguments': {}}})"


@pytest.mark.parametrize("at", [0, 2], ids=["between two turns", "at last"])
def test_a_call_after_an_answer_is_not_carried_out_and_is_charged_to_it(at: int, project: Project) -> None:
    """No turn asked for it, so it is of none; and a mock may change the world."""
    project.write("mocks.py", "def pay(args, ctx):\n    open('paid', 'a').close()\n    return 'ok'\n")
    project.scenarios(f"id: a\n{TURNS}\ntools: {{pay: {{python: '../mocks.py:pay'}}}}")
    bot(project, after=f"turn == {at} and {PAYS}")
    done = project.run()
    assert done.code == 1, done.all
    sample = project.sample()
    assert failed_checks(sample) == {(None, "no_error")}
    assert [bool(turn.get("error")) for turn in sample["turns"]] == [*[False] * at, True]
    assert 'no request asked for, after its answer: {"tool_call"' in sample["turns"][at]["error"]
    assert f"turn {at + 1}" in done.out
    assert not (project.root / "paid").exists()

    ask = f"{PAYS}; sys.stdin.readline(); say({{'text': message}})"
    project.write(
        "bot.py", BOT.format(first="", after="pass", last="").replace('say({"text": message})', ask)
    )
    done = project.run()
    assert done.code == 0, done.all
    assert (project.root / "paid").exists()


def test_a_forbidden_call_before_the_surplus_line_is_seen(project: Project) -> None:
    bot(project, after="turn == 0 and say('INFO')")
    paying = BOT.format(first="", after="turn == 0 and say('INFO')", last="")
    ask = f"{PAYS}; sys.stdin.readline(); say({{'text': message}})"
    project.write("bot.py", paying.replace('say({"text": message})', ask))
    project.scenarios("""
        id: a
        turns: [one, two]
        tools: {pay: {returns: 1}}
        expect: {tool_calls: {forbidden: [{name: pay}]}}
    """)
    assert project.run().code == 1
    assert failed_checks(project.sample()) == {(None, "no_error"), (None, "tool_calls")}


def test_a_line_between_an_answer_with_calls_and_the_next_is_of_that_turn(project: Project) -> None:
    asks = """
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
    config(project, [sys.executable, "bot.py"])
    project.scenarios(
        "id: a\nturns: [x, y]\ntools: {get: {returns: blue}}\nexpect: {output: {contains: [blue]}}"
    )
    project.write("bot.py", asks.replace("BUG", "print('asking get', flush=True)"))
    assert project.run().code == 1
    (turn,) = project.sample()["turns"]
    assert [call["name"] for call in turn["tool_calls"]] == ["get"]
    assert "no request asked for, after its answer: asking get" in turn["error"]

    project.write("bot.py", asks.replace("BUG", ""))
    assert project.run().code == 0


def test_blank_lines_are_nothing(project: Project) -> None:
    bot(project, first="say('')", after="say(' \\t')", last="sys.stdout.write('\\n \\n ')")
    project.scenarios(f"id: a\n{TURNS}")
    assert project.run().code == 0


MARKS = {
    "whole": "os.write(1, b'\\xef\\xbb\\xbf')",
    "byte by byte": "[os.write(1, bytes([each])) for each in b'\\xef\\xbb\\xbf']",
    "with blanks": "os.write(1, b'\\xef\\xbb\\xbf \\r')",
    "as a line": "os.write(1, b'\\xef\\xbb\\xbf\\n')",
}


@pytest.mark.parametrize("written", MARKS)
def test_a_byte_order_mark_before_the_first_request_is_no_line(written: str, project: Project) -> None:
    """It is read before the request is whole, and the answer that follows it after."""
    project.scenarios(f"id: a\n{TURNS}")
    bot(project, first=MARKS[written])
    assert project.run().code == 0

    bot(project, first=MARKS[written] + "; sys.stdout.write('INFO '); sys.stdout.flush()")
    assert project.run().code == 1
    assert "before the conversation's first request: INFO" in project.sample()["turns"][0]["error"]


# ── ends ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_program_that_a_signal_ends_after_its_last_answer_has_failed(project: Project) -> None:
    bot(project, last="os.kill(os.getpid(), 11)")
    project.scenarios(f"id: a\n{TURNS}")
    done = project.run()
    assert done.code == 1, done.all
    sample = project.sample()
    assert failed_checks(sample) == {(None, "no_error")}
    assert [turn.get("error") for turn in sample["turns"]] == [
        None,
        None,
        f"'{Path(sys.executable).name} bot.py' was ended by SIGSEGV",
    ]


HELPED = """
import json, os, subprocess, sys
ends, _held = os.pipe()  # which is at its end once this program is
for line in sys.stdin:
    subprocess.Popen(["sh", "-c", "cat; " + HELPER], stdin=ends, start_new_session=OWN)
    print(json.dumps({"text": "one"}), flush=True)
"""


@pytest.mark.parametrize("own", [False, True], ids=["its group", "a session of its own"])
def test_a_line_of_a_child_that_outlives_the_program_is_charged_to_the_answer(
    own: bool, project: Project
) -> None:
    project.scenarios("id: a\nturns: [{user: one, expect: {output: {contains: [one]}}}]\n")
    config(project, [sys.executable, "bot.py"])
    helped = HELPED.replace("OWN", str(own))
    project.write("bot.py", helped.replace("HELPER", "'echo log: done'"))
    done = project.run()
    assert done.code == 1, done.all
    (turn,) = project.sample()["turns"]
    assert "no request asked for, after its answer: log: done" in turn["error"]

    project.write("bot.py", helped.replace("HELPER", "'echo log: done >&2'"))
    done = project.run()
    assert done.code == 0, done.all
    assert "was ended" not in done.err


@pytest.mark.parametrize("code", [0, 3])
def test_a_code_after_the_last_answer_is_a_warning(code: int, project: Project) -> None:
    bot(project, last=f"sys.stderr.write('error: no cache'); sys.exit({code})")
    project.scenarios(f"id: a\n{TURNS}\nepochs: 2")
    done = project.run()
    assert done.code == 0, done.all
    says = "ended with exit code 3 after its last answer; its log: error: no cache"
    assert (says in done.err) == bool(code)
    assert done.err.count("exit code") == bool(code)


def test_a_program_for_one_message_plays_conversations_of_one_turn(project: Project) -> None:
    project.write("bot.sh", 'read -r line\necho \'{"text": "hi"}\'\n')
    config(project, ["sh", "bot.sh"])
    project.scenarios("id: a\nturns: [x]\nexpect: {output: {contains: [hi]}}\n")
    assert project.run().code == 0
    project.scenarios("id: a\nturns: [x, y]\nexpect: {output: {contains: [hi]}}\n")
    assert project.run().code == 1
    first, second = project.sample()["turns"]
    assert first["agent"] == "hi"
    whole = "a process plays its whole conversation; let it read requests until its input ends"
    assert second["error"] == f"'sh bot.sh' ended with exit code 0 — {whole}"


# ── wherever else a run is read ──────────────────────────────────────────────────────────────────


def test_a_replay_and_a_score_of_the_journal_say_the_same(project: Project) -> None:
    for number, last in enumerate(("say('bye')", "say({'tool_call': {'id': 1, 'name': 'pay'}})", "")):
        bot(project, last=last, more=", calls: all")
        project.scenarios(f"""
            id: a
            {TURNS.strip().replace(chr(10), chr(10) + " " * 12)}
            tools: {{pay: {{returns: 1}}}}
            expect: {{tool_calls: {{forbidden: [{{name: pay}}]}}}}
        """)
        code = project.run("--record", f"{number}.jsonl").code
        failed = failed_checks(project.sample())
        assert code == (1 if last else 0)
        assert project.run("--replay", f"{number}.jsonl").code == code
        assert failed_checks(project.sample()) == failed
        journal = project.root / f".agenteval/runs/{project.results()['run']['id']}/events.jsonl"
        done = project.call("score", str(journal), "--report", "json=results.json")
        assert done.code == code, done.all
        assert failed_checks(project.sample()) == failed
    shown = project.call("show", "latest", "a")
    assert shown.code == 0


def test_an_agent_that_broke_before_its_user_was_lost_has_failed(project: Project) -> None:
    """The fault of the model that plays the user comes later."""
    models = "models: {user: {model: openai-compatible/m, base_url: 'http://127.0.0.1:9'}}\n"
    project.scenarios("id: a\nturns: [one, {simulate: 1}]\ngoal: Count.\nchecks: none\nepochs: 1\n")
    for after, code in (("say('INFO')", 1), ("pass", 3)):
        bot(project, after=after)
        text = (project.root / "agenteval.yaml").read_text("utf-8")
        project.write("agenteval.yaml", text + models)
        assert project.run("--no-judge").code == code
        sample = project.sample()
        assert sample["fault"] == ("agent" if code == 1 else "infrastructure")
        assert bool(sample["turns"][0].get("error")) == (code == 1)


# ── processes that are kept ──────────────────────────────────────────────────────────────────────

KEPT = """
scenarios:
- {id: a, turns: [{user: a, expect: {output: {contains: [a]}}}]}
- {id: b, turns: [{user: b, expect: {output: {contains: [b]}}}]}
- {id: c, turns: [{user: c, expect: {output: {contains: [c]}}}]}
"""
BREAKS = {
    "a signal": ("os.kill(os.getpid(), 9)", "was ended by SIGKILL"),
    "a line": ("say('INFO done')", "no request asked for, after its answer: INFO done"),
    "an answer": ("say({'text': 'once more'})", "no request asked for, after its answer"),
    "a call": (PAYS, 'no request asked for, after its answer: {"tool_call"'),
    "a line, and an end": ("say('bye'); sys.exit()", "no request asked for, after its answer: bye"),
}


@pytest.mark.parametrize("at", ["a", "b", "c"])
@pytest.mark.parametrize("how", BREAKS)
def test_a_kept_program_that_breaks_after_an_answer_fails_that_conversation(
    how: str, at: str, project: Project
) -> None:
    """Whichever comes next, or none: the others are innocent."""
    project.scenarios(KEPT)
    after, says = BREAKS[how]
    bot(project, after=f"if message == {at!r}: {after}", more=", keep: true")
    for options in (["--concurrency", "1"], ["--concurrency", "1", "--record", "tape.jsonl"], []):
        done = project.run(*options)
        assert done.code == 1, done.all
        verdicts = {each["id"]: each["verdict"] for each in project.results()["scenarios"]}
        assert verdicts == {each: "failed" if each == at else "passed" for each in "abc"}
        assert says in project.sample(at)["turns"][0]["error"]
        assert failed_checks(project.sample(at)) == {(None, "no_error")}
    assert project.run("--replay", "tape.jsonl").code == 1
    assert says in project.sample(at)["turns"][0]["error"]


@pytest.mark.parametrize("last", ["os.kill(os.getpid(), 11)", "say('bye')"])
def test_what_a_kept_program_does_when_its_input_ends_is_of_its_last_conversation(
    last: str, project: Project
) -> None:
    project.scenarios(KEPT)
    bot(project, last=last, more=", keep: true")
    assert project.run("--concurrency", "1").code == 1
    verdicts = {each["id"]: each["verdict"] for each in project.results()["scenarios"]}
    assert verdicts == {"a": "passed", "b": "passed", "c": "failed"}

    done = project.run("--concurrency", "1", "--fail-fast")
    assert done.code == 1, done.all
    assert project.sample("a")["verdict"] == "failed"
    assert "never ran" in done.out

    bot(project, more=", keep: true")
    assert project.run("--concurrency", "1").code == 0
    assert project.run("--fail-fast").code == 0


@pytest.mark.parametrize("code", [0, 3])
def test_a_kept_program_that_ends_between_conversations_is_replaced(code: int, project: Project) -> None:
    project.scenarios("id: a\nturns: [{user: a, expect: {output: {contains: [process]}}}]\nepochs: 8\n")
    bot(project, after=f"sys.exit({code})", more=", keep: true")
    program = (project.root / "bot.py").read_text("utf-8")
    program = program.replace('{"text": message}', '{"text": f"process {os.getpid()}"}')
    project.write("bot.py", program)
    for options in (["--concurrency", "1"], ["--concurrency", "4"]):
        done = project.run(*options)
        assert done.code == 0, done.all
        (scenario,) = project.results()["scenarios"]
        assert len({each["turns"][0]["agent"] for each in scenario["samples"]}) == 8
        assert done.err.count("ended with exit code 3 after its last answer") == (1 if code else 0)

    project.write("bot.py", program.replace(f"sys.exit({code})", "pass"))
    assert project.run("--concurrency", "1").code == 0
    (scenario,) = project.results()["scenarios"]
    assert len({each["turns"][0]["agent"] for each in scenario["samples"]}) == 1
