"""Programs that print their answer as text, through the command line: what they get, how they fail, what is
left of them."""

from __future__ import annotations

import json
import re
import shutil
import signal
import sys
from pathlib import Path

import pytest

from tests.front_door.test_commands import alive, wait_until
from tests.support.kit import Project, failed_checks

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="process groups")

ORDERS = """
id: orders
turns:
- {user: Where is ORD-42?, expect: {output: {contains: [shipped]}}}
- {user: And ORD-7?, expect: {output: {contains: [cannot find ORD-7]}}}
"""
ONE = "id: a\nturns: [Hello]\nexpect: {output: {contains: [done]}}\n"
PYTHON = sys.executable
SH = {
    "fixed": "I cannot find ORD-7.",
    "bug": "ORD-7 is on its way.",
}


def config(project: Project, run: list[str], more: str = "") -> None:
    agent = f"agent: {{name: bot, command: {{run: {json.dumps(run)}}}, timeout_s: 30{more}}}\n"
    project.config(agent, target="")


def error_of(project: Project, turn: int = 0) -> str:
    """What is said of the turn that broke."""
    return str(project.sample()["turns"][turn]["error"])


# ── pairs ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("said", SH)
def test_a_shell_script_that_gets_the_message_as_an_argument(said: str, project: Project) -> None:
    bot = f"""
        #!/bin/sh
        echo "looking up…" >&2
        case "$1" in
          *ORD-42*) echo "ORD-42 is shipped.";;
          *) echo "{SH[said]}";;
        esac
    """
    project.write("bot.sh", bot).chmod(0o755)
    config(project, ["./bot.sh", "${message}"])
    project.scenarios(ORDERS)
    done = project.run()
    assert done.code == (said == "bug"), done.all
    assert failed_checks(project.sample()) == ({(1, "output.contains")} if said == "bug" else set())
    answers = [turn["agent"] for turn in project.sample()["turns"]]
    assert answers == ["ORD-42 is shipped.", SH[said]]  # neither the log nor the last line end is in it


@pytest.mark.skipif(not shutil.which("node"), reason="node is not installed")
@pytest.mark.parametrize("said", SH)
def test_a_node_program_that_reads_standard_input(said: str, project: Project) -> None:
    bot = f"""
        const text = require("fs").readFileSync(0, "utf8");
        console.error("thinking");
        console.log(/ORD-42/.test(text) ? "ORD-42 is shipped." : "{SH[said]}");
    """
    project.write("bot.js", bot)
    config(project, ["node", "bot.js"])
    project.scenarios(ORDERS)
    assert project.run().code == (said == "bug")
    assert failed_checks(project.sample()) == ({(1, "output.contains")} if said == "bug" else set())


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
path = pathlib.Path("sessions", sys.argv[1])
said = json.loads(path.read_text()) if path.exists() else []
said.append(sys.argv[2].removeprefix("--ask="))
path.parent.mkdir(exist_ok=True)
path.write_text(json.dumps(KEPT))
print(f"So far you said: {', '.join(said)}.")
"""


@pytest.mark.parametrize("kept", ["said", "said[:1]"])
def test_a_bot_that_keeps_its_session_in_a_file(kept: str, project: Project) -> None:
    project.write("bot.py", REMEMBERS.replace("KEPT", kept))
    config(project, [PYTHON, "bot.py", "${session}.json", "--ask=${message}"])
    project.scenarios("""
        id: a
        epochs: 2
        turns:
        - one
        - {user: two, expect: {output: {matches: ['said: one, two\\.$']}}}
        - {user: three, expect: {output: {matches: ['said: one, two, three\\.$']}}}
    """)
    done = project.run()
    assert "without what came before" not in done.all
    samples = project.results()["scenarios"][0]["samples"]
    is_fixed = kept == "said"
    assert done.code == (not is_fixed)
    assert [failed_checks(each) for each in samples] == [set() if is_fixed else {(2, "output.matches")}] * 2
    assert len(list((project.root / "sessions").iterdir())) == 2  # one for each conversation


FROM_FILE = """
import json, sys
path, turn = sys.argv[1:]
messages = json.load(open(path))
open("files", "a").write(path + "\\n")
users = [m["content"] for m in messages if m["role"] == "user"]
print(f"turn {turn}: {len(messages)} messages, the first was {users[FIRST]}, stdin is {sys.stdin.read()!r}")
"""


@pytest.mark.parametrize("first", ["0", "-1"])
def test_the_messages_so_far_are_in_a_file(first: str, project: Project) -> None:
    project.write("bot.py", FROM_FILE.replace("FIRST", first))
    config(project, [PYTHON, "bot.py", "${messages_file}", "${turn}"])
    project.scenarios("""
        id: a
        turns:
        - {user: red, expect: {output: {contains: ['turn 0: 1 messages']}}}
        - {user: blue, expect: {output: {contains: ['turn 1: 3 messages', 'the first was red']}}}
    """)
    assert project.run().code == (first == "-1")
    assert failed_checks(project.sample()) == ({(1, "output.contains")} if first == "-1" else set())
    assert "stdin is 'blue\\n'" in project.sample()["turns"][1]["agent"]
    files = (project.root / "files").read_text("utf-8").split()
    assert len(set(files)) == 2
    assert not any(map(Path.exists, map(Path, files)))


def test_without_a_session_the_run_warns_of_several_turns(project: Project) -> None:
    project.write("bot.sh", "echo done\n")
    config(project, ["sh", "bot.sh", "${message}"])
    project.scenarios("id: a\nturns: [x, y]\nexpect: {output: {contains: [done]}}\n")
    done = project.run()
    assert done.code == 0
    assert done.err.count("gets each message without the conversation before it") == 1


# ── failures of the agent ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("bot", "says"),
    [
        ("echo 'fatal: no key' >&2; echo done; exit 3",
         "'sh bot.sh ${message}' ended with exit code 3; its log: fatal: no key"),
        ("echo 'no key for done'; exit 3",
         "'sh bot.sh ${message}' ended with exit code 3; it printed: no key for done"),
        ("echo working >&2", "'sh bot.sh ${message}' ended and printed nothing; its log: working"),
        ("printf ' \\n\\033[0m\\n'", "'sh bot.sh ${message}' ended and printed nothing"),
        ("echo done; kill -SEGV $$", "'sh bot.sh ${message}' was ended by SIGSEGV; it printed: done"),
        ("printf 'done \\377\\n'",
         "'sh bot.sh ${message}' printed output that is not UTF-8, at byte 5: done \ufffd"),
        ("echo done; exec >&-; sleep 1.5; exit 3",
         "'sh bot.sh ${message}' ended with exit code 3; it printed: done"),
        ("yes done", "'sh bot.sh ${message}' printed more than 10 MiB"),
        ("head -c 11000000 /dev/zero", "'sh bot.sh ${message}' printed more than 10 MiB"),
    ],
)  # fmt: skip
def test_what_is_the_agents_failure(bot: str, says: str, project: Project) -> None:
    project.write("bot.sh", bot + "\n")
    config(project, ["sh", "bot.sh", "${message}"])
    project.scenarios(ONE)
    done = project.run()
    assert done.code == 1, done.all
    sample = project.sample()
    assert (sample["verdict"], sample["fault"], sample["stop"]) == ("failed", "agent", "agent_error")
    assert error_of(project) == says
    assert says.split("; ")[0] in done.all.replace("\n", " ") or len(says) > 60


def test_a_program_that_fails_at_its_second_turn_is_red_there(project: Project) -> None:
    project.write("bot.sh", 'test "$1" = 1 && exit 4\necho done\n')
    config(project, ["sh", "bot.sh", "${turn}"])
    project.scenarios("id: a\nturns: [x, y, z]\nexpect: {output: {contains: [done]}}\n")
    assert project.run().code == 1
    turns = project.sample()["turns"]
    assert [turn.get("error") for turn in turns] == [None, "'sh bot.sh ${turn}' ended with exit code 4"]


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="asks /proc")
def test_one_that_hangs_is_ended_with_all_that_it_started(project: Project) -> None:
    bot = "sleep 600 & echo $! >> pids; echo $$ >> pids; echo 'error: waiting' >&2; echo do; wait\n"
    project.write("bot.sh", bot)
    config(project, ["sh", "bot.sh"])
    config_text = (project.root / "agenteval.yaml").read_text("utf-8")
    project.write("agenteval.yaml", config_text.replace("timeout_s: 30", "timeout_s: 1"))
    project.scenarios(ONE)
    assert project.run().code == 1
    assert project.sample()["stop"] == "agent_timeout"
    assert error_of(project) == "no answer within 1 s; its log: error: waiting"
    pids = [int(pid) for pid in (project.root / "pids").read_text("utf-8").split()]
    assert len(pids) == 2
    wait_until(lambda: not alive(pids))


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="asks /proc")
@pytest.mark.parametrize("out", ["", " > /dev/null 2>&1"])
def test_a_child_that_outlives_its_program_is_ended(out: str, project: Project) -> None:
    """One that holds the output is waited for, and the run says so."""
    project.write("bot.sh", f"(sleep 600{out}) & echo $! > pids; echo done\n")
    config(project, ["sh", "bot.sh", "${message}"])
    project.scenarios(ONE)
    done = project.run()
    assert done.code == 0, done.all
    assert project.sample()["turns"][0]["agent"] == "done"
    assert ("a process that it started kept its output open" in done.err) == (not out)
    pids = [int((project.root / "pids").read_text("utf-8"))]
    wait_until(lambda: not alive(pids))


def test_what_a_child_prints_after_its_program_is_a_part_of_the_answer(project: Project) -> None:
    project.write("bot.sh", "(sleep 0.5; echo PIN 4711) & echo done\n")
    config(project, ["sh", "bot.sh", "${message}"])
    project.scenarios("id: a\nturns: [{user: Hello, expect: {output: {not_contains: ['4711']}}}]\n")
    assert project.run().code == 1
    assert failed_checks(project.sample()) == {(0, "output.not_contains")}


# ── messages ─────────────────────────────────────────────────────────────────────────────────────

ECHO = "import sys\nprint('got', repr(sys.argv[1] if len(sys.argv) > 1 else sys.stdin.read()))\n"


@pytest.mark.parametrize("name", ["argument", "within", "stdin"])
@pytest.mark.parametrize(
    "message", ["-rf /", "two\nlines", "$(touch broken) `x` ; 'y' \"z\" *", "naïve 東京"]
)
def test_a_message_arrives_as_it_is(name: str, message: str, project: Project) -> None:
    arguments = {"argument": ["${message}"], "within": ["--ask=${message}"], "stdin": []}[name]
    project.write("bot.py", ECHO)
    config(project, [PYTHON, "bot.py", *arguments])
    project.scenarios(json.dumps({"id": "a", "turns": [message], "checks": "none"}))
    assert project.run(env={"PYTHONIOENCODING": "utf-8"}).code == 0
    got = {"argument": message, "within": f"--ask={message}", "stdin": f"{message}\n"}[name]
    assert project.sample()["turns"][0]["agent"] == f"got {got!r}"
    assert not (project.root / "broken").exists()


@pytest.mark.parametrize(
    ("message", "says"),
    [
        ("a\0b", "the message contains the character NUL, which no argument can"),
        ("x" * 200_000, "the message has 200,000 bytes, too many for an argument"),
    ],
)
def test_what_cannot_be_an_argument_is_the_authors_mistake(message: str, says: str, project: Project) -> None:
    project.write("bot.py", "import sys\nprint(len(sys.stdin.read()), 'done')\n")
    project.scenarios(
        json.dumps({"id": "a", "turns": [message], "expect": {"output": {"contains": ["done"]}}})
    )
    config(project, [PYTHON, "bot.py", "${message}"])
    done = project.run()
    assert done.code == 2, done.all
    told = " ".join(done.all.split())
    assert f"{says} — leave ${{message}} out of run: then the program gets it on standard input" in told
    assert re.search(r"agenteval.yaml:\d+:\d+: 'python", told)

    config(project, [PYTHON, "bot.py"])
    assert project.run().code == 0
    assert project.sample()["turns"][0]["agent"] == f"{len(message) + 1} done"


def test_one_that_never_reads_a_large_message_answers_all_the_same(project: Project) -> None:
    project.write("bot.sh", "echo done\n")
    config(project, ["sh", "bot.sh"])
    project.scenarios(
        json.dumps({"id": "a", "turns": ["x" * 2_000_000], "expect": {"output": {"contains": ["done"]}}})
    )
    assert project.run().code == 0


@pytest.mark.parametrize(
    ("printed", "needle", "code"),
    [
        ("\\033[32mshipped\\033[0m", "contains: [shipped]", 0),
        ("PIN \\033[1m47\\033[0m11", "not_contains: [PIN 4711]", 1),
    ],
)
def test_colours_are_no_part_of_the_answer(printed: str, needle: str, code: int, project: Project) -> None:
    project.write("bot.sh", f"printf '{printed}\\r\\n'\n")
    config(project, ["sh", "bot.sh"])
    project.scenarios(f"id: a\nturns: [x]\nexpect: {{output: {{{needle}}}}}\n")
    assert project.run().code == code
    assert project.sample()["turns"][0]["agent"] in ("shipped", "PIN 4711")


# ── the configuration ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("line", "place", "says"),
    [
        ("command: {run: [./no-such, x]}", "2:30", "agent 'bot': no such program: './no-such'"),
        ("command: {run: [./agenteval.yaml]}", "2:30", "'./agenteval.yaml' cannot be executed — chmod +x it"),
        ("command: {run: './bot \"a b\" ${message}'}", "2:30",
         'write a list, such as run: ["./bot", "a b", "${message}"]'),
        ("command: {run: []}", "2:30", "run is empty — write {run: [./bot, \"${message}\"]}"),
        ("command: {rum: [sh]}", "2:30", "unknown key 'rum' — did you mean 'run'?"),
        ("command: {run: [sh, '${mesage}']}", "2:40", "did you mean 'message', which agenteval fills in?"),
        ("command: {run: ['${message}']}", "2:36", "the program itself is the same in each turn"),
        ("command: {run: [sh]}, keep: true", "", "a text program runs once per turn — remove it"),
        ("type: http, command: {run: [sh]}", "", "an agent of type http has no 'command'"),
    ],
)  # fmt: skip
def test_mistakes_are_found_before_a_run(line: str, place: str, says: str, project: Project) -> None:
    project.config(f"agent: {{name: bot, {line}}}\n", target="")
    project.scenarios(ONE)
    for command in ("validate", "run"):
        done = project.call(command)
        assert done.code == 2
        assert says in done.err
        assert re.search(rf"agenteval.yaml:{place or '[0-9:]+'}: ", done.err), done.err


def test_a_program_that_the_system_cannot_start_is_the_authors_mistake(project: Project) -> None:
    project.write("bot", "#!/no/such/interpreter\n").chmod(0o755)
    config(project, ["./bot", "${message}"])
    project.scenarios(ONE)
    done = project.run()
    assert done.code == 2
    assert "does its first line (#!…) name the program that runs it?" in " ".join(done.all.split())


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
    checked = project.call("validate")
    assert ("a text program show no calls" in checked.out) == (not more)
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


@pytest.mark.parametrize("is_bug", [True, False])
def test_with_mcp_it_asks_the_tool_world(is_bug: bool, project: Project) -> None:
    pytest.importorskip("mcp")
    call = 'ask("tools/call", name="pay", arguments={"sum": 5})'
    project.write("bot.py", CALLS.replace("NAMES", call if is_bug else ""))
    config(project, [PYTHON, "bot.py", "${message}"], ", mcp: true")
    project.scenarios(FORBIDDEN)
    done = project.run()
    assert done.code == is_bug, done.all
    called = [(call["name"], call["args"]) for call in project.sample()["turns"][0]["tool_calls"]]
    assert called == ([("pay", {"sum": 5})] if is_bug else [])


SPANS = """
import json, os, sys, urllib.request
_, trace, parent, _ = os.environ["TRACEPARENT"].split("-")
def span(number, name, above, **attributes):
    told = [{"key": k.replace("__", "."), "value": {"stringValue": v}} for k, v in attributes.items()]
    return {"traceId": trace, "spanId": number * 16, "parentSpanId": above, "name": name, "kind": 2 if number == "1" else 1,
            "startTimeUnixNano": "1", "endTimeUnixNano": "2", "attributes": told}
spans = [span("1", "turn", parent)]
if CALLS:
    spans.append(span("2", "execute_tool pay", "1" * 16, gen_ai__operation__name="execute_tool", gen_ai__tool__name="pay",
        gen_ai__tool__call__id="c1", gen_ai__tool__call__arguments='{"sum": 5}', gen_ai__tool__call__result="paid"))
body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()
url = os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] + "/v1/traces"
urllib.request.urlopen(urllib.request.Request(url, body, {"Content-Type": "application/json"})).read()
print("done")
"""  # noqa: E501


def test_with_spans_its_calls_are_observed(project: Project) -> None:
    project.write("bot.py", SPANS.replace("CALLS", "True"))
    config(project, [PYTHON, "bot.py", "${message}"], ", observe: otlp")
    project.scenarios("id: a\nturns: [Hello]\nexpect: {tool_calls: {forbidden: [{name: pay}]}}\n")
    done = project.run()
    assert done.code == 1, done.all
    (call,) = project.sample()["turns"][0]["tool_calls"]
    assert (call["name"], call["args"], call["observed"]) == ("pay", {"sum": 5}, True)


# ── many, and again ──────────────────────────────────────────────────────────────────────────────


def test_twenty_conversations_at_once_are_kept_apart(project: Project) -> None:
    project.write("bot.py", REMEMBERS.replace("KEPT", "said"))
    config(project, [PYTHON, "bot.py", "${session}", "${message}"])
    second = "{{user: b{0}, expect: {{output: {{matches: ['said: a{0}, b{0}\\.$']}}}}}}"
    each = f"- {{{{id: s{{0}}, turns: [a{{0}}, {second}]}}}}\n"
    project.scenarios("scenarios:\n" + "".join(each.format(n) for n in range(20)))
    assert project.run("--concurrency", "20").code == 0
    assert len(list((project.root / "sessions").iterdir())) == 20


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
