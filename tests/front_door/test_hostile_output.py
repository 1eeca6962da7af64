"""What an agent, a tool or a server says reaches every report as text and as nothing else: no escape
sequence, markup, workflow command, XML, or secret. And what a run writes when its outputs are odd."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import pytest
from lxml import etree

from tests.support.kit import Done, Project, environment
from tests.support.local_servers import (
    Behaviour,
    LocalServer,
    Request,
    answer,
    chat,
    completion,
    delta,
    respond,
    respond_json,
    sse,
)
from tests.support.patience import HANG_S

HOSTILE = (
    "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x1b]52;c;cGF3bmVk\x07 \x9b2J bell\x07 back\x08 nul\x00 cr\rover"
    " \u202eevil\u202c \u2066iso\u2069 \ufeff\u200b \ufffe"
    " [bold red]markup[/] [/nope] [link=file:///etc/passwd]x[/link]"
    "\n::error file=evil.py,line=1::PWNED\n  ::stop-commands::token\n::add-mask::x\n##[error]PWNED"
    "\n%0A::error::PWNED"
    '\n]]></failure><testcase name="PWNED"/><!-- &amp; &#0; <script>alert(1)</script>'
    "\n# PWNED\n| a | b |\n```\n</details>\n![x](http://evil.example/x.png)"
    " [y](javascript:alert(1)) @everyone "
)
AGENT = f"""
HOSTILE = {HOSTILE!r}
def call(name, arguments): return {{'tool_calls': [{{'function': {{'name': name, 'arguments': arguments}}}}]}}
def agent(m, ctx):
    how = ctx.scenario_id
    asked = m[-1]['role'] == 'tool'
    if how == 'raises': raise ValueError(HOSTILE)
    if how == 'tool-name' and not asked: return call('t' + HOSTILE, '{{}}')
    if how == 'arguments' and not asked: return call('t', {{'k' + HOSTILE: HOSTILE}})
    if how == 'raw-arguments' and not asked: return call('t', HOSTILE)
    if how == 'result' and not asked: return call('mock', '{{}}')
    if how == 'result-error' and not asked: return call('refuses', '{{}}')
    return HOSTILE
"""
KINDS = ("answer", "raises", "tool-name", "arguments", "raw-arguments", "result", "result-error")


class Outputs(NamedTuple):
    """All that a run wrote."""

    done: Done
    root: Path

    def text(self, name: str) -> str:
        return (self.root / name).read_text("utf-8")

    @property
    def files(self) -> dict[str, str]:
        found = [p for p in self.root.rglob("*") if p.is_file() and p.suffix != ".py"]
        return {str(p.relative_to(self.root)): p.read_text("utf-8") for p in found}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Outputs:
    project = Project(tmp_path_factory.mktemp("hostile"))
    project.config("reporters: [terminal, github]")
    project.agent(AGENT)
    project.write("scenarios/mocks.py", f"def mock(args): return {HOSTILE!r}")
    lines = [
        "defaults:",
        "  turns: [hello]",
        "  expect: {output: {contains: [never]}, tool_calls: {match: strict, calls: []}}",
        "  tools:",
        "    t: {returns: 1}",
        "    mock: {python: 'mocks.py:mock'}",
        f"    refuses: {{error: {json.dumps(HOSTILE.replace('${', ''))}}}",
        "scenarios:",
        *(f"- {{id: {kind}}}" for kind in KINDS),
    ]
    project.scenarios("\n".join(lines))
    files = [arg for name in ("junit=j.xml", "markdown=m.md") for arg in ("--report", name)]
    done = project.run("-v", *files, env={"GITHUB_STEP_SUMMARY": str(project.root / "summary.md")})
    assert done.code == 1
    return Outputs(done, project.root)


CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff\u200b]")


def test_no_control_character_reaches_the_terminal(hostile: Outputs) -> None:
    found = {hex(ord(match[0])) for match in CONTROLS.finditer(hostile.done.all)}
    # What stops links in the Markdown of the GitHub reporter is a zero-width space of our own.
    assert found <= {"0x200b"}


def test_markup_is_shown_and_not_obeyed(hostile: Outputs) -> None:
    assert "[bold red]markup[/]" in hostile.done.out
    assert "[/nope]" in hostile.done.out


def test_no_line_is_a_workflow_command_of_the_agents(hostile: Outputs) -> None:
    for text in (hostile.done.out, hostile.done.err, hostile.text("m.md"), hostile.text("summary.md")):
        commands = [line for line in text.splitlines() if line.lstrip().startswith("::")]
        assert all(re.match(r"::(error|warning|notice) (file|title)=", line) for line in commands)
        assert not [line for line in commands if re.match(r"\s*::\w+ file=evil", line)]
        assert not [line for line in text.splitlines() if "##[" in line]
    annotations = [line for line in hostile.done.out.splitlines() if line.startswith("::error")]
    assert annotations
    assert not [line for line in annotations if "evil.py" in line.split("::")[1]]


def test_junit_is_xml_with_no_case_of_the_agents(hostile: Outputs) -> None:
    tree = etree.fromstring(hostile.text("j.xml").encode())
    names = [case.get("name") for case in tree.iter("testcase")]
    assert len(names) == len(KINDS)
    assert not [name for name in names if name == "PWNED"]
    assert not list(tree.iter("script"))


def test_markdown_holds_no_markup_of_the_agents(hostile: Outputs) -> None:
    for name in ("m.md", "summary.md"):
        text = re.sub(r"(?ms)^(`{3,})[^\n`]*\n.*?^\1$", "", hostile.text(name))  # without code blocks
        assert not re.search(r"<script|</details>.*PWNED|(?<!\\)!\[|(?<!\\)\]\(|@everyone|^# PWNED", text)
        assert "http://evil" not in text


def test_json_and_journal_keep_the_text_as_it_was(hostile: Outputs) -> None:
    samples = {s["id"]: s["samples"][0] for s in json.loads(hostile.text("results.json"))["scenarios"]}
    assert samples["answer"]["turns"][0]["agent"] == HOSTILE
    assert samples["arguments"]["turns"][0]["tool_calls"][0]["args"] == {"k" + HOSTILE: HOSTILE}
    assert samples["raw-arguments"]["turns"][0]["tool_calls"][0]["raw_args"] == HOSTILE
    assert samples["result"]["turns"][0]["tool_calls"][0]["result"] == HOSTILE
    assert "switched off" not in hostile.done.err


# ── secrets ──────────────────────────────────────────────────────────────────────────────────────

KEYS = {
    "AGENT_KEY": "sk-canary-4f1d9e77b2",
    "ODD_KEY": "canary/odd+signs=7c1b",
    "QUOTED_KEY": 'canary"quoted\\a4',
    "URL_KEY": "canary-three-81c0aa",
    "BODY_KEY": "canary-four-55d2bb",
}
LITERAL = "canary-literal-90ff31"


def echo(request: Request) -> Behaviour:
    """Everything that was sent, back in every place of a reply that a report may show."""
    told = json.dumps(dict(request.headers)) + request.path + request.body.decode()
    told += " ".join(form for key in (*KEYS.values(), LITERAL) for form in forms(key))
    kind = request.path.split("/")[1].split("?")[0]
    call = {"id": told, "function": {"name": "t", "arguments": json.dumps({"k": told})}}
    broken = {"id": "1", "function": {"name": told[:200], "arguments": told}}
    has_result = '"role": "tool"' in request.body.decode()
    replies: dict[str, Behaviour] = {
        "answer": chat(told),
        "error": respond(told, status=500),
        "refused": respond(told, status=401),
        "page": respond("<html>" + told),
        "redirect": respond("", status=302, headers={"Location": f"http://x/{quote(told[:500])}"}),
        "in_error": respond_json({"error": {"message": told}}),
        "calls": chat(told) if has_result else respond_json(completion(None, tool_calls=[call, broken])),
        "stream": sse(delta(told), delta(finish_reason="stop")),
        "cut": sse(delta(told), done=False),
    }
    return replies[kind]


def forms(key: str) -> list[str]:
    """The key as it is, percent-encoded, in base64, and as it stands in a text that is JSON."""
    return [
        key,
        quote(key, safe=""),
        quote(key),
        base64.b64encode(key.encode()).decode(),
        json.dumps(key)[1:-1],
    ]


@pytest.fixture(scope="module")
def canary(tmp_path_factory: pytest.TempPathFactory) -> Outputs:
    project = Project(tmp_path_factory.mktemp("canary"))
    kinds = ("answer", "error", "refused", "page", "redirect", "in_error", "calls", "stream", "cut")
    with LocalServer(answer(echo)) as server:
        lines = ["metrics: []", "reporters: [terminal, github]", "agents:"]
        for kind in kinds:
            lines.append(f"  {kind}:")
            lines.append(f"    endpoint: '{server.address}/{kind}?api_key=${{URL_KEY}}'")
            lines.append(f"    streaming: {str(kind in ('stream', 'cut')).lower()}")
            lines.append("    headers:")
            lines.append("      Authorization: 'Bearer ${AGENT_KEY}'")
            lines.append("      X-Odd: '${ODD_KEY}'")
            lines.append("      X-Quoted: '${QUOTED_KEY}'")
            lines.append(f"      X-Api-Key: {LITERAL}")
            lines.append("    body: {user: '${BODY_KEY}'}")
        project.write("agenteval.yaml", "\n".join(lines))
        scenarios = [f"- {{id: {k}, agent: {k}, expect: {{output: {{contains: [never]}}}}}}" for k in kinds]
        head = ["defaults: {turns: [hello], tools: {t: {returns: {echo: '${args.k}'}}}}", "scenarios:"]
        project.scenarios("\n".join([*head, *scenarios]))
        files = [arg for name in ("junit=j.xml", "markdown=m.md") for arg in ("--report", name)]
        env = {**KEYS, "GITHUB_STEP_SUMMARY": str(project.root / "summary.md")}
        done = project.run("-v", *files, env=env)
        assert not server.errors
        sent = server.requests[0]
        assert sent.headers["authorization"] == f"Bearer {KEYS['AGENT_KEY']}"
        assert sent.headers["x-odd"] == KEYS["ODD_KEY"]
        assert sent.json["user"] == KEYS["BODY_KEY"]
    (project.root / "agenteval.yaml").unlink()  # the one place where the literal key is meant to stand
    return Outputs(done, project.root)


@pytest.mark.parametrize("name", [*KEYS, "literal"])
def test_no_secret_reaches_any_output(canary: Outputs, name: str) -> None:
    files = canary.files
    assert {"results.json", "j.xml", "m.md", "summary.md"} < set(files)
    assert any(file.endswith("events.jsonl") for file in files)
    written = {**files, "stdout": canary.done.out, "stderr": canary.done.err}
    for form in forms(KEYS.get(name, LITERAL)):
        assert [file for file, text in written.items() if form in text] == []


def test_masked_text_is_still_evidence(canary: Outputs) -> None:
    assert canary.done.code == 1
    samples = {s["id"]: s["samples"][0] for s in json.loads(canary.files["results.json"])["scenarios"]}
    assert "***" in samples["answer"]["turns"][0]["agent"]
    assert "500" in samples["error"]["turns"][0]["error"]
    assert samples["calls"]["turns"][0]["tool_calls"]


# ── odd outputs ──────────────────────────────────────────────────────────────────────────────────


def write_cases(project: Project, number: int) -> None:
    """Cases that pass, with names and answers beyond ASCII."""
    project.config()
    project.agent("agent = lambda m: 'Größe ✓ 漢字 🎉'")
    cases = (f"  - {{id: 'größe-{i}', input: hi, expected_output_contains: ['✓']}}\n" for i in range(number))
    project.scenarios(f"cases:\n{''.join(cases)}")


@pytest.fixture
def few(project: Project) -> Project:
    write_cases(project, 3)
    return project


def shell(project: Project, redirection: str) -> Done:
    """``agenteval run`` in a shell; a pipe fails if any part does."""
    run = f"'{sys.executable}' -m agenteval run --report json=results.json"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f"{run} {redirection}"],
        cwd=project.root,
        env=environment(),
        capture_output=True,
        encoding="utf-8",
        timeout=HANG_S,
    )
    assert "Traceback" not in done.stdout + done.stderr, done.stderr
    return Done(done.returncode, done.stdout, done.stderr)


def test_a_reader_that_leaves_early_loses_nothing_else(project: Project) -> None:
    write_cases(project, 100)
    done = shell(project, "-v | head -1")
    assert done.out.count("\n") == 1
    assert project.results()["summary"]["verdict"] == "passed"
    assert "Exception ignored" not in done.err


def test_stdout_is_closed(few: Project) -> None:
    done = shell(few, ">&-")
    assert "defect" not in done.err
    assert few.results()["summary"]["verdict"] == "passed"


def test_stderr_is_closed(few: Project) -> None:
    assert shell(few, "2>&-").code == 0


def test_every_command_speaks_ascii(few: Project) -> None:
    env = {"PYTHONIOENCODING": "ascii"}
    done = few.run("-v", env=env)
    assert done.code == 0, done.all
    assert done.all.isascii()
    assert few.results()["scenarios"][0]["samples"][0]["turns"][0]["agent"] == "Größe ✓ 漢字 🎉"
    for command in ("validate", "plan", "report latest", "diff latest latest", "show-prompts"):
        done = few.call(*command.split(), env=env)
        assert done.code in (0, 3), done.all
        assert done.all.isascii()
        assert done.out


def test_narrow_and_without_color(few: Project) -> None:
    done = few.run(env={"COLUMNS": "40", "NO_COLOR": "1", "FORCE_COLOR": "1"})
    assert done.code == 0
    assert "\x1b" not in done.all
    assert "PASSED" in done.out


def test_two_runs_at_once_in_one_folder(project: Project) -> None:
    write_cases(project, 40)
    both = [project.start("run", "--report", "json=results.json") for _ in range(2)]
    assert [run.wait().code for run in both] == [0, 0]
    journals = list((project.root / ".agenteval/runs").glob("*/events.jsonl"))
    assert len(journals) == 2
    for journal in journals:
        lines = journal.read_text("utf-8").splitlines()
        assert sum(json.loads(line)["type"] == "sample_finished" for line in lines) == 40
    assert len(project.results()["scenarios"]) == 40


NO_NETWORK = """
import pathlib, socket
def refuse(self, address, *args):
    with pathlib.Path(__file__).with_name('connections.txt').open('a') as file:
        file.write(repr(address) + '\\n')
    raise OSError('no network in this test')
socket.socket.connect = socket.socket.connect_ex = refuse
socket.getaddrinfo = lambda *args, **kwargs: refuse(None, args)
pathlib.Path(__file__).with_name('loaded.txt').touch()
"""


def test_the_shipped_suite_makes_no_connection(project: Project) -> None:
    root = Path(__file__).parents[2]
    shutil.copytree(root / "scenarios", project.root / "scenarios")
    shutil.copy(root / "agenteval.yaml", project.root)
    project.write("site/sitecustomize.py", NO_NETWORK)
    path = os.pathsep.join([str(project.root / "site"), os.environ.get("PYTHONPATH", "")])
    done = project.run(env={"PYTHONPATH": path.rstrip(os.pathsep)})
    assert (project.root / "site/loaded.txt").exists()
    assert not (project.root / "site/connections.txt").exists()
    assert done.code in (0, 1), done.err
    assert project.results()["summary"]["verdict"] in ("passed", "failed")
