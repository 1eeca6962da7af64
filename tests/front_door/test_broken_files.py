"""Files that are broken, hostile or not where they should be: refused at their place, exit 2 or 5."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.kit import Done, Project

CASE = "cases: [{{id: {0}, input: hello}}]\n"
BOMB = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{new}: &{new} [{','.join([f'*{old}'] * 10)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)
MATCHER = (
    "cases:\n- id: mt\n  input: x\n  expect: {tool_calls: {calls: [{name: t, args: {a: {$regx: x}}}]}}\n"
)

# Each file: its text, where its only message points to, and what that names.
BROKEN: dict[str, tuple[str | bytes, str, tuple[str, ...]]] = {
    "empty": ("", "", ("empty",)),
    "comment": ("# later\n", "", ("empty",)),
    "null": ("null\n", "", ("empty",)),
    "sequence": ("- a\n", ":1:1", ("cases", "list")),
    "text": ("hello\n", ":1:1", ("cases", "'hello'")),
    "tabs": ("cases:\n\t- input: x\n", ":2:1", ("tab",)),
    "unclosed": ("cases: [", ":1:9", ("'['",)),
    "two-documents": ("cases: [{id: q, input: x}]\n---\ncases: []\n", ":2:1", ("YAML",)),
    "python-call": (
        "cases: [{id: p, input: !!python/object/apply:os.system ['touch PWNED']}]\n",
        ":1:24",
        ("'!!python/object/apply:os.system'",),
    ),
    "python-name": ("!!python/name:os.system ''\n", ":1:1", ("'!!python/name:os.system'",)),
    "own-tag": ("cases: [{id: t, input: !env KEY}]\n", ":1:24", ("'!env'",)),
    "latin-1": ("cases: [{id: caf\xe9, input: x}]\n".encode("latin-1"), ":1:17", ("0xE9", "UTF-8")),
    "binary": (bytes(range(256)), ":2:118", ("0x80", "UTF-8")),
    "utf-32": ("cases: []".encode("utf-32"), "", ("UTF-32", "UTF-8")),
    "cut-utf-16": ("cases".encode("utf-16") + b"x", "", ("UTF-16", "UTF-8")),
    "nul": ("cases: [{id: n\0, input: x}]", ":1:15", ("U+0000",)),
    "alias-bomb": (BOMB, ":6:29", ("1,000,000",)),
    "alias-of-itself": ("cases: &a [*a]\n", ":1:12", ("'*a'",)),
    "alias-of-nothing": ("cases: *nope\n", ":1:8", ("'*nope'", "&nope")),
    "deep": ("cases: " + "[" * 100_000, ":1:107", ("100",)),
    "same-key": ("cases:\n- id: k\n  input: x\n  input: y\n", ":4:3", ("'input'", "line 3")),
    "list-as-key": ("? [a]\n: b\n", ":1:3", ("key",)),
    "same-id-2": (CASE.format("same"), ":1:10", ("'same'", "scenarios/same-id-1.yaml:1:10")),
    "case-is-text": ("cases: [x]\n", ":1:9", ("'x'", "name", "id")),
    "cases-are-a-number": ("cases: 5\n", ":1:1", ("cases", "got 5", "'- '")),
    "no-request": ("cases: [{id: ni}]\n", ":1:9", ("input",)),
    "anonymous": ("scenarios: [{turns: [x], checks: none}]\n", ":1:13", ("name", "id")),
    "silent-user": ("scenarios: [{id: nt, turns: [], checks: none}]\n", ":1:22", ("turns", "goal")),
    "no-defaults": ("defaults: 5\ncases: [{id: nd, input: x}]\n", ":1:1", ("defaults", "got 5")),
    "misplaced": ("tags: [x]\ncases: [{id: mp, input: x}]\n", ":1:1", ("tags", "defaults")),
    "regex": (
        "cases: [{id: rx, input: x, expect: {output: {matches: '('}}}]\n",
        ":1:46",
        ("expect.output.matches", "regular expression"),
    ),
    "matcher": (MATCHER, ":4:54", ("'$regx'", "'$regex'")),
    "reference": (
        "cases: [{id: rf, input: x, tools: {t: {returns: '${arg.x}'}}}]\n",
        ":1:40",
        ("'${arg.x}'", "'${args.x}'"),
    ),
    "empty-state": ("cases: [{id: es, input: x, state: {}}]\n", ":1:28", ("`state`", "`tables`")),
    "escape-in-id": ('cases: [{id: "a\\e[31m", input: x}]\n', ":1:10", ("id",)),
    "long-number": (f"cases: [{{id: ln, input: x, epochs: {'9' * 5000}}}]\n", ":1:36", ("5,000",)),
}
VALID = {"same-id-1": CASE.format("same"), "no-agent": "cases: [{id: na, agent: nobody, input: x}]\n"}
TYPOS = """
scenarios:
  - {name: one, turnz: [x], expct: {}, goals: y}
  - {name: two, turns: [x], expect: {tool_cals: {}}}
  - {id: three, category: odd, turns: 5, epochs: many, max_turns: -1, thresholds: [], tools: [], checks: 7}
"""
PLACES_OF_TYPOS = {
    "2:17": ("'turnz'", "'turns'"),
    "2:29": ("'expct'", "'expect'"),
    "2:40": ("'goals'", "'goal'"),
    "3:38": ("'tool_cals'", "'tool_calls'"),
    "4:17": ("category", "capability, efficiency, robustness", "'odd'"),
    "4:32": ("turns", "got 5"),
    "4:42": ("epochs", "'many'"),
    "4:56": ("max_turns", "1", "got -1"),
    "4:71": ("thresholds", "list"),
    "4:87": ("tools", "list"),
    "4:98": ("checks", "'none'", "got 7"),
}


@pytest.fixture
def ready(project: Project) -> Project:
    """A configuration, an agent and one scenario."""
    project.config()
    project.agent("agent = lambda m: 'hi'")
    project.scenarios(CASE.format("x"))
    return project


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> tuple[Done, Path]:
    """One run over all the broken files."""
    project = Project(tmp_path_factory.mktemp("broken"))
    project.config()
    project.agent("agent = lambda m: 'hi'")
    project.scenarios(TYPOS.lstrip(), "scenarios/typos.yaml")
    texts = {name: text for name, (text, _, _) in BROKEN.items()} | VALID
    for name, text in texts.items():
        raw = text if isinstance(text, bytes) else text.encode()
        (project.root / f"scenarios/{name}.yaml").write_bytes(raw)
    return project.call("run"), project.root


@pytest.mark.parametrize("name", BROKEN)
def test_every_broken_file_is_refused_in_one_run(broken: tuple[Done, Path], name: str) -> None:
    done, root = broken
    _, place, facts = BROKEN[name]
    found = [line for line in done.err.splitlines() if f"scenarios/{name}.yaml:" in line.split(" ")[1]]
    assert len(found) == 1
    done.refuses(f"scenarios/{name}.yaml{place}", *facts)
    assert not (root / "PWNED").exists()


def test_all_errors_of_a_file_are_reported_at_once_and_nothing_has_run(broken: tuple[Done, Path]) -> None:
    """By ``run`` and by ``validate``."""
    done, root = broken
    assert Project(root).call("validate") == done
    for place, facts in PLACES_OF_TYPOS.items():
        done.refuses(f"scenarios/typos.yaml:{place}", *facts)
    assert done.out == ""
    assert not (root / ".agenteval").exists()


def test_encodings_and_line_ends_that_are_read(ready: Project) -> None:
    files = {
        "suite": b"\xef\xbb\xbf" + CASE.format("bom").encode(),
        "utf-16": CASE.format("größe").encode("utf-16"),
        "crlf": b"cases:\r\n  - id: crlf\r\n    input: hello\r\n",
        "long-line": f"cases: [{{id: long, input: '{'x' * 1_000_000}'}}]\n".encode(),
        "100,000 lines": b"id: lines\ninput: x\nknowledge:\n" + b"- a fact\n" * 100_000,
    }
    for name, data in files.items():
        (ready.root / f"scenarios/{name}.yaml").write_bytes(data)
    assert set(ready.call("list").out.splitlines()) == {
        f"scenarios/{file}.yaml::{id}"
        for file, id in zip(files, ("bom", "größe", "crlf", "long", "lines"), strict=True)
    }
    assert ready.call("validate").code == 0


def test_a_number_of_epochs_that_cannot_be_meant_is_refused(ready: Project) -> None:
    ready.scenarios("cases: [{id: x, input: hello, epochs: 1000000000}]")
    ready.call("validate").refuses("scenarios/suite.yaml:1:31", "epochs")


# ── files in odd places ──────────────────────────────────────────────────────────────────────────


def test_folders_links_and_names_in_other_encodings_are_no_obstacle(ready: Project) -> None:
    (ready.root / "scenarios/folder.yaml").mkdir()
    (ready.root / "scenarios/again.yaml").symlink_to("suite.yaml")
    (ready.root / "scenarios/loop").symlink_to(".")
    with open(os.fsencode(ready.root / "scenarios") + b"/caf\xe9.yaml", "w", encoding="utf-8") as file:
        file.write(CASE.format("y"))
    done = ready.run("--report", "junit=j.xml")
    assert (done.code, len(ready.results()["scenarios"])) == (0, 2)
    assert "switched off" not in done.err


@pytest.mark.parametrize("target", ["/proc/self/mem", "moved-away.yaml"])
def test_a_link_that_cannot_be_read_is_refused(ready: Project, target: str) -> None:
    if target.startswith("/proc") and not Path(target).exists():
        pytest.skip("needs a file that even root cannot read")
    (ready.root / "scenarios/link.yaml").symlink_to(target)
    done = ready.call("run")
    done.refuses("scenarios/link.yaml")
    assert done.out == ""


def test_nothing_to_run_ends_with_5(ready: Project) -> None:
    (ready.root / "scenarios/suite.yaml").unlink()
    assert ready.call("run").code == 5
    assert ready.call("run", "scenarios").code == 5
    ready.config("include: [nothing/*.yaml]")
    ready.call("run").refuses("agenteval.yaml:3:1", "'nothing/*.yaml'", code=5)


REFUSED = {
    "run scenaros": ("'scenarios'", "scenaros"),
    "run scenarios/suite.yml": ("scenarios/suite.yml",),
    "run agenteval.yaml/x": ("agenteval.yaml/x",),
    "run --report json=scenarios": ("json", "scenarios"),
    "run --report json=agent.py/results.json": ("json", "agent.py"),
    f"run --report json={'x' * 300}": ("json", "name too long"),
    "run -c scenarios": ("scenarios",),
}


@pytest.mark.parametrize("command", REFUSED, ids=lambda command: command[:40])
def test_a_path_or_name_that_is_none_is_refused_before_anything_runs(ready: Project, command: str) -> None:
    done = ready.call(*command.split())
    done.refuses("agenteval", *REFUSED[command])
    assert done.out == ""
    assert not (ready.root / ".agenteval").exists()


def test_a_file_in_the_place_of_the_folder_of_runs_is_refused(ready: Project) -> None:
    ready.write(".agenteval", "not a folder")
    ready.run().refuses("agenteval", ".agenteval")
    assert ready.call("validate").code == 0


def test_a_report_in_a_folder_that_does_not_exist_yet_is_written(ready: Project) -> None:
    assert ready.call("run", "--report", "json=new/folder/results.json").code == 0
    assert (ready.root / "new/folder/results.json").is_file()


def test_a_report_to_a_pipe_is_written_to_it(ready: Project) -> None:
    pipe = ready.root / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert ready.call("run", "--report", "json=pipe").code == 0
        assert pipe.is_fifo()
        assert b"schema_version" in os.read(reader, 100_000)
    finally:
        os.close(reader)


# ── configurations ───────────────────────────────────────────────────────────────────────────────

WRONG_TYPES = {
    "agent": 5, "agents": 7, "compare": "{}", "models": "[]", "epochs": "[1]", "max_turns": "x",
    "concurrency": 0, "agent_concurrency": -1, "metrics": 5, "thresholds": 7, "fail_on_severity": "deadly",
    "fault_tolerance": 9, "include": "{}", "exclude": "{}", "reporters": 6, "now": "[]",
    "unmocked_tools": "maybe",
}  # fmt: skip
# Each configuration: its text, and by place (after the file's name) what is named there.
CONFIGS: dict[str, tuple[str, dict[str, tuple[str, ...]]]] = {
    "two documents": ("metrics: []\n---\nagent: {}\n", {":2:1": ("YAML",)}),
    "list": ("- agent\n", {":1:1": ("list",)}),
    "empty": ("", {"": ("empty",)}),
    "no agent": ("metrics: []\n", {"": ("target: my_agent.py:agent",)}),
    "unset variables": (
        "agent:\n  endpoint: http://x/\n  policy: ${NOT_SET_1}\n  headers: {A: '${NOT_SET_2}'}\n",
        {":3:3": ("NOT_SET_1",), ":4": ("NOT_SET_2",)},
    ),
    "unknown keys": (
        "agnet: {}\nconcurency: 5\nagent: {tarket: x}\n",
        {
            ":1:1": ("'agnet'", "'agent'"),
            ":2:1": ("'concurency'", "'concurrency'"),
            ":3:9": ("'tarket'", "'target'"),
        },
    ),
    "headers": (
        "agent: {endpoint: 'http://x/', headers: {Bad Name: x, Ok: \"secret\\nvalue\"}}\n",
        {":1:42": ("'Bad Name'",), ":1:55": ("'Ok'",)},
    ),
    "wrong types": (
        "".join(f"{key}: {value}\n" for key, value in WRONG_TYPES.items()),
        {f":{line}:1": (key,) for line, key in enumerate(WRONG_TYPES, 1)},
    ),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_broken_configuration_is_refused_at_each_of_its_places(ready: Project, name: str) -> None:
    text, places = CONFIGS[name]
    ready.write("agenteval.yaml", text)
    done = ready.call("run")
    for place, facts in places.items():
        done.refuses(f"agenteval.yaml{place}" if place or name == "empty" else "agenteval", *facts)
    assert done.out == ""
    assert "secret" not in done.err


# ── names that no file can have ──────────────────────────────────────────────────────────────────

TOO_LONG = "x" * 300
AGENT = "agent: {target: 'agent.py:agent'}\n"


@pytest.mark.parametrize(
    "config",
    [
        f"agent: {{target: '{TOO_LONG}.py:agent'}}\n",
        f"agent: {{target: 'agent.py:agent', interpreter: {TOO_LONG}}}\n",
        f"agent: {{target: 'agent.py:agent', intercept: {{a: '{TOO_LONG}.py:f'}}}}\n",
        f"agent: {{target: {{object: '{TOO_LONG}.py:a'}}}}\n",
        f"agent: {{command: ['./{TOO_LONG}']}}\n",
        f"{AGENT}custom_metrics: ['{TOO_LONG}.py:A']\n",
        f"{AGENT}custom_metrics: ['{TOO_LONG}.md']\n",
        f"{AGENT}reporters: ['{TOO_LONG}.py:A']\n",
        f"{AGENT}include: ['{TOO_LONG}']\n",
        f"{AGENT}accepted: {TOO_LONG}.yaml\n",
        f"{AGENT}models: {{default: local/{TOO_LONG}.gguf}}\n",
        f"{AGENT}models: {{default: scripted/{TOO_LONG}.yaml}}\n",
    ],
)
def test_a_configuration_may_name_a_file_that_cannot_be(project: Project, config: str) -> None:
    project.config(config, target="")
    project.agent("def agent(message: str) -> str:\n    return message\n")
    project.scenarios("scenarios:\n- {id: a, turns: [Hello], checks: none}\n")
    done = project.call("validate")
    assert done.code in (2, 5), done.all
    assert "xxx" in done.err


@pytest.mark.parametrize(
    "scenarios",
    [
        f"scenarios:\n- {{id: 'a-${{row.n}}', rows: {TOO_LONG}.csv, turns: [Hello], checks: none}}\n",
        f"cases: {TOO_LONG}.csv\n",
        f"scenarios:\n- {{id: a, turns: [Hello], expect: {{python: ['{TOO_LONG}.py:f']}}}}\n",
        f"scenarios:\n- {{id: a, turns: [Hello], setup: '{TOO_LONG}.py:f', checks: none}}\n",
        f"scenarios:\n- {{id: a, turns: [x], checks: none, tools: {{t: {{python: '{TOO_LONG}.py:f'}}}}}}\n",
    ],
)
def test_a_scenario_may_name_a_file_that_cannot_be(project: Project, scenarios: str) -> None:
    project.config("metrics: []\n")
    project.agent("def agent(message: str) -> str:\n    return message\n")
    project.scenarios(scenarios)
    done = project.call("validate")
    assert done.code == 2, done.all
    assert "xxx" in done.err


@pytest.mark.parametrize(
    "option", ["--record={}", "--replay={}", "--report=json={}", "--report={}.py:A", "-c{}", "--resume={}"]
)
def test_an_option_may_name_a_file_that_cannot_be(project: Project, option: str) -> None:
    project.config("metrics: []\n")
    project.agent("def agent(message: str) -> str:\n    return message\n")
    project.scenarios("scenarios:\n- {id: a, turns: [Hello], checks: none}\n")
    done = project.run(option.format(TOO_LONG))
    assert done.code == 2, done.all
