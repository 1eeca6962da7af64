"""Programs that print their answer as text, through the command line: what they get, how they fail, what is
left of them."""

from __future__ import annotations

import json
import re
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.front_door.test_commands import alive, wait_until
from tests.support.kit import Done, Project, failed_checks
from tests.support.suites import warnings_of, write_suite

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="process groups")
needs_proc = pytest.mark.skipif(not Path("/proc/self").exists(), reason="asks /proc")

ORDERS = """turns: [
    {user: Where is ORD-42?, expect: {output: {contains: [shipped]}}},
    {user: And ORD-7?, expect: {output: {contains: [cannot find ORD-7]}}}]"""
ONE = "turns: [Hello], expect: {output: {contains: [done]}}"
PYTHON = sys.executable
SAYS = {"fixed": "I cannot find ORD-7.", "bug": "ORD-7 is on its way."}


def config(project: Project, run: list[str], more: str = "") -> None:
    agent = f"agent: {{name: bot, command: {{run: {json.dumps(run)}}}, timeout_s: 30{more}}}\n"
    project.config(agent, target="")


def play(project: Project, agents: dict[str, list[str]], scenarios: dict[str, str], *options: str) -> Done:
    """Agents by the name of their scenario; a scenario without one of its own has the first agent."""
    commands = {name: f"command: {{run: {json.dumps(run)}}}, timeout_s: 30" for name, run in agents.items()}
    first = next(iter(agents))
    played = {n: text if n in agents else f"agent: {first}, {text}" for n, text in scenarios.items()}
    write_suite(project, commands, played)
    return project.run(*options)


def answers(sample: dict[str, Any]) -> list[str]:
    return [turn["agent"] for turn in sample["turns"]]


# ── what a program gets; pairs of a bug and a fix ────────────────────────────────────────────────

NODE = pytest.param(
    """
        const text = require("fs").readFileSync(0, "utf8");
        console.error("thinking");
        console.log(/ORD-42/.test(text) ? "ORD-42 is shipped." : "SAYS");
    """,
    ["node", "BOT"],
    marks=pytest.mark.skipif(not shutil.which("node"), reason="node is not installed"),
    id="node, standard input",
)
SHELL = pytest.param(
    """
        #!/bin/sh
        echo "looking up…" >&2
        case "$1" in
          *ORD-42*) echo "ORD-42 is shipped.";;
          *) echo "SAYS";;
        esac
    """,
    ["./BOT", "${message}"],
    id="shell, an argument",
)


@pytest.mark.parametrize(("code", "run"), [SHELL, NODE])
def test_a_program_is_red_with_a_bug_and_green_without(code: str, run: list[str], project: Project) -> None:
    for name, last in SAYS.items():
        project.write(name, code.replace("SAYS", last)).chmod(0o755)
    agents = {name: [part.replace("BOT", name) for part in run] for name in SAYS}
    done = play(project, agents, dict.fromkeys(SAYS, ORDERS))
    assert done.code == 1, done.all
    for name, last in SAYS.items():
        sample = project.sample(name)
        assert failed_checks(sample) == ({(1, "output.contains")} if name == "bug" else set())
        assert answers(sample) == ["ORD-42 is shipped.", last]  # neither the log nor the last line end


@pytest.mark.parametrize("is_bug", [True, False])
def test_the_bot_of_the_page(is_bug: bool, project: Project) -> None:
    page = (Path(__file__).parents[2] / "docs/commands.md").read_text("utf-8")
    text, bot = (re.search(rf"```{kind}\n(.*?)```", page, re.DOTALL) for kind in ("yaml", "sh"))
    assert text
    assert bot
    assert "touch" in bot[1]
    project.write("agenteval.yaml", text[1])
    project.write("bot.sh", bot[1].replace("touch", "true") if is_bug else bot[1])
    second = "{user: Tea, expect: {output: {contains: ['Back again? Tea it is.']}}}"
    project.scenarios(
        f"id: a\nturns: [{{user: Hello, expect: {{output: {{contains: [welcome]}}}}}}, {second}]\n"
    )
    assert project.run().code == is_bug
    assert failed_checks(project.sample()) == ({(1, "output.contains")} if is_bug else set())


REMEMBERS = """
import json, pathlib, sys
folder, session, message = sys.argv[1:]
path = pathlib.Path(folder, session)
said = json.loads(path.read_text()) if path.exists() else []
said.append(message.removeprefix("--ask="))
path.parent.mkdir(exist_ok=True)
path.write_text(json.dumps(said[:1] if folder == "forgets" else said))
print(f"So far you said: {', '.join(said)}.")
"""
THREE = """epochs: 2, turns: [one,
    {user: two, expect: {output: {matches: ['said: one, two\\.$']}}},
    {user: three, expect: {output: {matches: ['said: one, two, three\\.$']}}}]"""
TWO = "turns: [a{0}, {{user: b{0}, expect: {{output: {{matches: ['said: a{0}, b{0}\\.$']}}}}}}]"


def test_a_bot_that_keeps_its_session_in_a_file(project: Project) -> None:
    """Also that of very many conversations at once."""
    project.write("bot.py", REMEMBERS)
    names = ("many", "keeps", "forgets")
    agents = {name: [PYTHON, "bot.py", name, "${session}.json", "--ask=${message}"] for name in names}
    many = {f"many-{n}": TWO.format(n) for n in range(20)}
    done = play(project, agents, {**many, "keeps": THREE, "forgets": THREE}, "--concurrency", "20")
    assert done.code == 1, done.all
    assert warnings_of(done) == []
    found = {each["id"]: [*map(failed_checks, each["samples"])] for each in project.results()["scenarios"]}
    assert found == {
        **{name: [set()] for name in many}, "keeps": [set()] * 2, "forgets": [{(2, "output.matches")}] * 2
    }  # fmt: skip
    counts = {name: len(list((project.root / name).iterdir())) for name in names}
    assert counts == {"many": 20, "keeps": 2, "forgets": 2}  # one for each conversation


FROM_FILE = """
import json, sys
path, turn, first = sys.argv[1:]
messages = json.load(open(path))
open("files", "a").write(path + "\\n")
said = [m["content"] for m in messages if m["role"] == "user"][int(first)]
print(f"turn {turn}: {len(messages)} messages, the first was {said}, stdin is {sys.stdin.read()!r}")
"""
COLOURS = """turns: [
    {user: red, expect: {output: {contains: ['turn 0: 1 messages']}}},
    {user: blue, expect: {output: {contains: ['turn 1: 3 messages', 'the first was red']}}}]"""


def test_the_messages_so_far_are_in_a_file(project: Project) -> None:
    project.write("bot.py", FROM_FILE)
    run = [PYTHON, "bot.py", "${messages_file}", "${turn}"]
    agents = {"first": [*run, "0"], "last": [*run, "-1"]}
    assert play(project, agents, dict.fromkeys(agents, COLOURS)).code == 1
    assert failed_checks(project.sample("first")) == set()
    assert failed_checks(project.sample("last")) == {(1, "output.contains")}
    assert "stdin is 'blue\\n'" in project.sample("first")["turns"][1]["agent"]
    files = (project.root / "files").read_text("utf-8").split()
    assert len(set(files)) == 4
    assert not any(map(Path.exists, map(Path, files)))


def test_without_a_session_the_run_warns_of_several_turns(project: Project) -> None:
    project.write("bot.sh", "echo done\n")
    done = play(project, {"bot": ["sh", "bot.sh", "${message}"]}, {"a": ONE.replace("Hello", "x, y")})
    assert done.code == 0
    (warning,) = warnings_of(done)
    assert "bot" in warning


ECHO = """
import sys
sys.stdout.reconfigure(encoding="utf-8")
sys.stdin.reconfigure(encoding="utf-8")
print("got", repr(sys.argv[1] if len(sys.argv) > 1 else sys.stdin.read()))
"""
WAYS = {
    "argument": (["${message}"], "{}"),
    "within": (["--ask=${message}"], "--ask={}"),
    "stdin": ([], "{}\n"),
}
MESSAGES = ["-rf /", "two\nlines", "$(touch broken) `x` ; 'y' \"z\" *", "naïve 東京"]


def test_a_message_arrives_as_it_is(project: Project) -> None:
    project.write("bot.py", ECHO)
    agents = {name: [PYTHON, "bot.py", *arguments] for name, (arguments, _) in WAYS.items()}
    turns = f"turns: {json.dumps(MESSAGES)}, checks: none"
    done = play(project, agents, dict.fromkeys(WAYS, turns))
    assert done.code == 0, done.all
    for name, (_, got) in WAYS.items():
        assert answers(project.sample(name)) == [f"got {got.format(each)!r}" for each in MESSAGES]
    assert not (project.root / "broken").exists()


@pytest.mark.parametrize(
    ("message", "fact"), [("a\0b", "NUL"), ("x" * 200_000, "200,000 bytes")], ids=["NUL", "long"]
)
def test_what_cannot_be_an_argument_is_the_authors_mistake(message: str, fact: str, project: Project) -> None:
    project.write("bot.py", "import sys\nprint(len(sys.stdin.read()), 'done')\n")
    project.scenarios(
        json.dumps({"id": "a", "turns": [message], "expect": {"output": {"contains": ["done"]}}})
    )
    config(project, [PYTHON, "bot.py", "${message}"])
    done = project.run()
    assert done.code == 2, done.all
    flat = " ".join(done.all.split())
    assert re.search(rf"agenteval.yaml:\d+:\d+: 'python.*{fact}.*\$\{{message\}} .*run", flat), flat

    config(project, [PYTHON, "bot.py"])
    assert project.run().code == 0
    assert project.sample()["turns"][0]["agent"] == f"{len(message) + 1} done"


def test_one_that_never_reads_a_large_message_answers_all_the_same(project: Project) -> None:
    project.write("bot.sh", "echo done\n")
    large = f"turns: [{'x' * 2_000_000}], expect: {{output: {{contains: [done]}}}}"
    assert play(project, {"bot": ["sh", "bot.sh"]}, {"large": large}).code == 0


def test_colours_are_no_part_of_the_answer(project: Project) -> None:
    printed = {"colours": "\\033[32mshipped\\033[0m", "pin": "PIN \\033[1m47\\033[0m11"}
    agents = {name: ["printf", f"{text}\\r\\n"] for name, text in printed.items()}
    colours = "turns: [x], expect: {output: {contains: [shipped]}}"
    pin = "turns: [x], expect: {output: {not_contains: [PIN 4711]}}"
    assert play(project, agents, {"colours": colours, "pin": pin}).code == 1
    assert failed_checks(project.sample("colours")) == set()
    assert failed_checks(project.sample("pin")) == {(None, "output.not_contains")}
    assert [answers(project.sample(name)) for name in agents] == [["shipped"], ["PIN 4711"]]


# ── failures of the agent, and processes that are left ───────────────────────────────────────────

BROKEN = {
    # the code, and what the error names beside the command
    "code-and-log": ("echo 'fatal: no key' >&2; echo done; exit 3", "3", "log: fatal: no key"),
    "code-and-output": ("echo 'no key for done'; exit 3", "3", ": no key for done"),
    "log-alone": ("echo working >&2", "exited", "log: working"),
    "blank": ("printf ' \\n\\033[0m\\n'", "exited"),
    "signal": ("echo done; kill -SEGV $$", "SIGSEGV", ": done"),
    "no-utf-8": ("printf 'done \\377\\n'", "UTF-8", "5: done \ufffd"),
    "closes-output": ("echo done; exec >&-; sleep 1.5; exit 3", "3", ": done"),
    "endless": ("yes done", "10 MiB"),
    "large": ("head -c 11000000 /dev/zero", "10 MiB"),
}


def test_what_is_the_agents_failure(project: Project) -> None:
    for name, (code, *_) in BROKEN.items():
        project.write(f"{name}.sh", code + "\n")
    agents = {name: ["sh", f"{name}.sh", "${message}"] for name in BROKEN}
    done = play(project, agents, dict.fromkeys(BROKEN, ONE))
    assert done.code == 1, done.all
    for name, (_, *facts) in BROKEN.items():
        sample = project.sample(name)
        assert (sample["verdict"], sample["fault"], sample["stop"]) == ("failed", "agent", "agent_error")
        error = sample["turns"][0]["error"]
        assert error.startswith(f"'sh {name}.sh ${{message}}' "), error
        assert all(fact in error for fact in facts), error


def test_a_program_that_fails_at_its_second_turn_is_red_there(project: Project) -> None:
    project.write("bot.sh", 'test "$1" = 1 && exit 4\necho done\n')
    three = ONE.replace("Hello", "x, y, z")
    assert play(project, {"bot": ["sh", "bot.sh", "${turn}"]}, {"a": three}).code == 1
    first, second = (turn.get("error") for turn in project.sample()["turns"])
    assert first is None
    assert second.startswith("'sh bot.sh ${turn}' ")
    assert second.endswith(" 4")


@needs_proc
def test_one_that_hangs_is_ended_with_all_that_it_started(project: Project) -> None:
    bot = "sleep 600 & echo $! >> pids; echo $$ >> pids; echo 'error: waiting' >&2; echo do; wait\n"
    project.write("bot.sh", bot)
    project.config("agent: {command: {run: [sh, bot.sh]}, timeout_s: 1}\n", target="")
    project.scenarios(f"{{id: a, {ONE}}}")
    assert project.run().code == 1
    assert project.sample()["stop"] == "agent_timeout"
    error = project.sample()["turns"][0]["error"]
    assert all(fact in error for fact in ("1 s", "log: error: waiting")), error
    pids = [int(pid) for pid in (project.root / "pids").read_text("utf-8").split()]
    assert len(pids) == 2
    wait_until(lambda: not alive(pids))


@needs_proc
def test_a_child_that_outlives_its_program_is_ended(project: Project) -> None:
    """One that holds the output is waited for, and the run warns; what it prints is a part of the answer."""
    agents = {
        "holds": "(sleep 600) & echo $! >> pids; echo done",
        "quiet": "(sleep 600 > /dev/null 2>&1) & echo $! >> pids; echo done",
        "later": "(sleep 0.5; echo PIN 4711) & echo done",
    }
    later = "turns: [{user: Hello, expect: {output: {not_contains: ['4711']}}}]"
    done = play(
        project,
        {name: ["sh", "-c", f"{code}; :", "${message}"] for name, code in agents.items()},
        {"holds": ONE, "quiet": ONE, "later": later},
    )
    assert done.code == 1, done.all
    assert answers(project.sample("holds")) == answers(project.sample("quiet")) == ["done"]
    assert failed_checks(project.sample("later")) == {(0, "output.not_contains")}
    (warning,) = warnings_of(done)
    assert "(sleep 600) &" in warning
    pids = [int(pid) for pid in (project.root / "pids").read_text("utf-8").split()]
    wait_until(lambda: not alive(pids))


# ── the configuration ────────────────────────────────────────────────────────────────────────────

MISTAKES = [
    ("command: {run: [./no-such, x]}", "30", "'bot'", "'./no-such'"),
    ("command: {run: [./agenteval.yaml]}", "30", "'./agenteval.yaml'", "chmod +x", "[sh, ./agenteval.yaml]"),
    ("command: {run: './bot \"a b\" ${message}'}", "30", 'run: ["./bot", "a b", "${message}"]'),
    ("command: {run: []}", "30", '{run: [./bot, "${message}"]}'),
    ("command: {rum: [sh]}", "30", "'rum'", "'run'"),
    ("command: {run: [sh, '${mesage}']}", "40", "mesage", "'message'"),
    ("command: {run: ['${message}']}", "36", "program", "first"),
    ("command: {run: [sh]}, keep: true", "42", "keep"),
    ("type: http, command: {run: [sh]}", "32", "'command'", "type"),
]


@pytest.mark.parametrize(("line", "column", "facts"), [(line, at, facts) for line, at, *facts in MISTAKES])
def test_mistakes_are_found_before_a_run(line: str, column: str, facts: list[str], project: Project) -> None:
    project.config(f"agent: {{name: bot, {line}}}\n", target="")
    project.scenarios(f"{{id: a, {ONE}}}")
    for command in ("validate", "run"):
        project.call(command).refuses(f"agenteval.yaml:2:{column}", *facts)


def test_a_program_that_the_system_cannot_start_is_the_authors_mistake(project: Project) -> None:
    project.write("bot", "#!/no/such/interpreter\n").chmod(0o755)
    done = play(project, {"bot": ["./bot", "${message}"]}, {"a": ONE})
    assert done.code == 2, done.all
    assert "#!" in done.all


def test_variables_and_literal_names_in_run(project: Project) -> None:
    project.write("bot.py", "import sys\nprint(sys.argv[1:])\n")
    config(project, [PYTHON, "bot.py", "${SHOP}/${message}", "$${message}", "${NONE:-x}"])
    project.scenarios("id: a\nturns: [Hi]\nchecks: none\n")
    assert project.run(env={"SHOP": "a ${message}"}).code == 0
    assert project.sample()["turns"][0]["agent"] == "['a ${message}/Hi', '${message}', 'x']"


# ── which calls are seen ─────────────────────────────────────────────────────────────────────────

FORBIDDEN = """
id: a
turns: [Hello]
expect: {output: {contains: [done]}, tool_calls: {forbidden: [{name: pay}]}}
tools: {pay: {parameters: {type: object}, returns: paid}}
"""


@pytest.mark.parametrize(("more", "code"), [("", 3), (", calls: all", 0)])
def test_its_calls_are_unseen(more: str, code: int, project: Project) -> None:
    project.write("bot.sh", "echo done\n")
    config(project, ["sh", "bot.sh", "${message}"], more)
    project.scenarios(FORBIDDEN)
    assert ("mcp: true" in project.call("validate").out) == (not more)
    done = project.run()
    assert done.code == code
    assert ("mcp: true" in " ".join(done.all.split())) == (not more)


CALLS = """
import json, os, sys, urllib.request
def ask(method, **params):
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    with urllib.request.urlopen(urllib.request.Request(os.environ["AGENTEVAL_MCP_URL"], body, headers)) as reply:
        return reply.read().decode()
ask("tools/list")
NAMES
print("done")
"""  # noqa: E501


def test_with_mcp_it_asks_the_tool_world(project: Project) -> None:
    pytest.importorskip("mcp")
    call = 'if sys.argv[1] == "pay": ask("tools/call", name="pay", arguments={"sum": 5})'
    project.write("bot.py", CALLS.replace("NAMES", call))
    config(project, [PYTHON, "bot.py", "${message}"], ", mcp: true")
    look, pay = (FORBIDDEN.replace("id: a", f"id: {id}").replace("Hello", id) for id in ("look", "pay"))
    project.scenarios(look, "scenarios/look.yaml")
    project.scenarios(pay, "scenarios/pay.yaml")
    done = project.run()
    assert done.code == 1, done.all
    verdicts = {each["id"]: each["verdict"] for each in project.results()["scenarios"]}
    assert verdicts == {"look": "passed", "pay": "failed"}
    (called,) = project.sample("pay")["turns"][0]["tool_calls"]
    assert (called["name"], called["args"]) == ("pay", {"sum": 5})
    assert project.sample("look")["turns"][0]["tool_calls"] == []


SPANS = """
import json, os, sys, urllib.request
_, trace, parent, _ = os.environ["TRACEPARENT"].split("-")
def span(number, name, above, **attributes):
    told = [{"key": k.replace("__", "."), "value": {"stringValue": v}} for k, v in attributes.items()]
    return {"traceId": trace, "spanId": number * 16, "parentSpanId": above, "name": name, "kind": 2 if number == "1" else 1,
            "startTimeUnixNano": "1", "endTimeUnixNano": "2", "attributes": told}
spans = [span("1", "turn", parent)]
spans.append(span("2", "execute_tool pay", "1" * 16, gen_ai__operation__name="execute_tool", gen_ai__tool__name="pay",
        gen_ai__tool__call__id="c1", gen_ai__tool__call__arguments='{"sum": 5}', gen_ai__tool__call__result="paid"))
body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()
url = os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] + "/v1/traces"
urllib.request.urlopen(urllib.request.Request(url, body, {"Content-Type": "application/json"})).read()
print("done")
"""  # noqa: E501


def test_with_spans_its_calls_are_observed(project: Project) -> None:
    project.write("bot.py", SPANS)
    config(project, [PYTHON, "bot.py", "${message}"], ", observe: otlp")
    project.scenarios("id: a\nturns: [Hello]\nexpect: {tool_calls: {forbidden: [{name: pay}]}}\n")
    done = project.run()
    assert done.code == 1, done.all
    (call,) = project.sample()["turns"][0]["tool_calls"]
    assert (call["name"], call["args"], call["observed"]) == ("pay", {"sum": 5}, True)


# ── again ────────────────────────────────────────────────────────────────────────────────────────


def test_a_run_is_resumed_with_the_turns_that_it_has(project: Project) -> None:
    project.write(
        "bot.sh",
        'echo $$ >> pids\necho "$1" >> asked\ntest "$1" = b && test ! -e ready && sleep 600\necho done\n',
    )
    config(project, ["sh", "bot.sh", "${message}"])
    each = "- {id: %s, turns: [%s], expect: {output: {contains: [done]}}}\n"
    project.scenarios("scenarios:\n" + "".join(each % (name, name) for name in "abc"))
    started = project.start("run", "--concurrency", "1")
    asked = project.root / "asked"
    wait_until(lambda: asked.exists() and "b" in asked.read_text("utf-8"))
    started.send(signal.SIGINT)
    assert started.wait().code == 130
    pids = [int(pid) for pid in (project.root / "pids").read_text("utf-8").split()]
    wait_until(lambda: not alive(pids))
    project.write("ready", "")
    assert project.run("--resume", "latest").code == 0
    assert asked.read_text("utf-8").split() == ["a", "b", "b", "c"]
