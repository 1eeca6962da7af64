"""Files that are broken, hostile or not where they should be: told at their place, exit 2 or 5."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.kit import Done, Project

CASE = "cases: [{{id: {0}, input: hello}}]\n"
BOMB = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{new}: &{new} [{','.join([f'*{old}'] * 10)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)

# Each file, and what is told of it (after its name).
BROKEN: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", ": the file is empty"),
    "comment": ("# later\n", ": the file is empty"),
    "null": ("null\n", ": the file is empty"),
    "list": ("- a\n", ":1:1: expected a mapping with scenarios: or cases:, got a list"),
    "text": ("hello\n", ":1:1: expected a mapping"),
    "tabs": ("cases:\n\t- input: x\n", ":2:1: the indentation contains a tab"),
    "unclosed": ("cases: [", ":1:9:"),
    "two-documents": ("cases: [{id: q, input: x}]\n---\ncases: []\n", ":2:1: a second YAML document"),
    "python-call": (
        "cases: [{id: p, input: !!python/object/apply:os.system ['touch PWNED']}]\n",
        ":1:24: the tag '!!python/object/apply:os.system' is not allowed",
    ),
    "python-name": ("!!python/name:os.system ''\n", ":1:1: the tag '!!python/name:os.system' is not allowed"),
    "own-tag": ("cases: [{id: t, input: !env KEY}]\n", "the tag '!env' is not allowed"),
    "latin-1": ("cases: [{id: caf\xe9, input: x}]\n".encode("latin-1"), ":1:17: byte 0xE9 is not UTF-8"),
    "binary": (bytes(range(256)), "is not UTF-8"),
    "utf-32": ("cases: []".encode("utf-32"), ": the file is UTF-32"),
    "cut-utf-16": ("cases".encode("utf-16") + b"x", ": the file is not valid UTF-16"),
    "nul": ("cases: [{id: n\0, input: x}]", ":1:15: the control character U+0000"),
    "alias-bomb": (BOMB, "the aliases expand to more than 1,000,000 values"),
    "alias-of-itself": ("cases: &a [*a]\n", ":1:12: '*a' is inside the value it refers to"),
    "alias-of-nothing": ("cases: *nope\n", ":1:8: '*nope' refers to nothing"),
    "deep": ("cases: " + "[" * 100_000, "nested deeper than 100 levels"),
    "same-key": ("cases:\n- id: k\n  input: x\n  input: y\n", ":4:3: the key 'input' is written twice"),
    "list-as-key": ("? [a]\n: b\n", ":1:3: a key must be a text"),
    "same-id-1": (CASE.format("same"), ""),
    "same-id-2": (
        CASE.format("same"),
        ":1:10: the id 'same' is already used at scenarios/same-id-1.yaml:1:10",
    ),
    "case-is-text": ("cases: [x]\n", ":1:9: expected a mapping, got 'x'"),
    "cases-are-a-number": ("cases: 5\n", ":1:1: cases: expected a list, got 5"),
    "no-input": ("cases: [{id: ni}]\n", ":1:9: 'input' is missing"),
    "no-name": ("scenarios: [{turns: [x], checks: none}]\n", ":1:13: a scenario needs a name or an id"),
    "no-turns": ("scenarios: [{id: nt, turns: [], checks: none}]\n", "turns is empty"),
    "no-defaults": (
        "defaults: 5\ncases: [{id: nd, input: x}]\n",
        ":1:1: defaults: expected a mapping, got 5",
    ),
    "misplaced": ("tags: [x]\ncases: [{id: mp, input: x}]\n", ":1:1: unknown key 'tags'"),
    "regex": ("cases: [{id: rx, input: x, expect: {output: {matches: '('}}}]\n", "not a regular expression"),
    "matcher": (
        "cases:\n- id: mt\n  input: x\n  expect: {tool_calls: {calls: [{name: t, args: {a: {$regx: x}}}]}}\n",
        ":4:54: unknown matcher '$regx' — did you mean '$regex'?",
    ),
    "reference": (
        "cases: [{id: rf, input: x, tools: {t: {returns: '${arg.x}'}}}]\n",
        "'${arg.x}' refers to nothing",
    ),
    "later": ("cases: [{id: la, input: x, state: {}}]\n", ":1:28: 'state' is not supported yet"),
    "no-agent": ("cases: [{id: na, agent: nobody, input: x}]\n", ""),
    "escape-in-id": (
        'cases: [{id: "a\\e[31m", input: x}]\n',
        ":1:10: an id must be one line of printable characters",
    ),
    "long-number": (f"cases: [{{id: ln, input: x, epochs: {'9' * 5000}}}]\n", "5,000 digits is too long"),
}
TYPOS = """
scenarios:
  - {name: one, turnz: [x], expct: {}, goals: y}
  - {name: two, turns: [x], expect: {tool_cals: {}}}
  - {id: three, category: odd, turns: 5, epochs: many, max_turns: -1, thresholds: [], tools: [], checks: 7}
"""
TOLD_OF_TYPOS = (
    "2:17: unknown key 'turnz' — did you mean 'turns'?",
    "2:29: unknown key 'expct' — did you mean 'expect'?",
    "2:40: unknown key 'goals' — did you mean 'goal'?",
    "3:38: unknown key 'tool_cals' — did you mean 'tool_calls'?",
    "4:17: category: expected one of capability, efficiency, robustness, got 'odd'",
    "4:32: turns: expected a list, got 5",
    "4:42: epochs: expected a whole number or a mapping, got 'many'",
    "4:56: max_turns: must be at least 1, got -1",
    "4:71: thresholds: expected a mapping, got a list",
    "4:87: tools: expected a mapping, got a list",
    "4:98: checks: expected 'none', got 7",
)


@pytest.fixture
def ready(project: Project) -> Project:
    """A configuration and an agent; no scenarios yet."""
    project.config()
    project.agent("agent = lambda m: 'hi'")
    (project.root / "scenarios").mkdir()
    return project


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> tuple[Done, Path]:
    """One run over all the broken files."""
    project = Project(tmp_path_factory.mktemp("broken"))
    project.config()
    project.agent("agent = lambda m: 'hi'")
    project.scenarios(TYPOS.lstrip(), "scenarios/typos.yaml")
    for name, (data, _) in BROKEN.items():
        raw = data if isinstance(data, bytes) else data.encode()
        (project.root / f"scenarios/{name}.yaml").write_bytes(raw)
    return project.call("run"), project.root


@pytest.mark.parametrize("name", [name for name, (_, told) in BROKEN.items() if told])
def test_every_broken_file_is_told_in_one_run(broken: tuple[Done, Path], name: str) -> None:
    done, root = broken
    told = [line for line in done.err.splitlines() if f"scenarios/{name}.yaml:" in line.split(" ")[1]]
    assert len(told) == 1, told
    assert BROKEN[name][1] in told[0]
    assert not (root / "PWNED").exists()


def test_all_errors_of_a_file_are_told_at_once(broken: tuple[Done, Path]) -> None:
    for told in TOLD_OF_TYPOS:
        assert f"agenteval: scenarios/typos.yaml:{told}" in broken[0].err


def test_nothing_has_run(broken: tuple[Done, Path]) -> None:
    done, root = broken
    assert (done.code, done.out) == (2, "")
    assert not (root / ".agenteval").exists()


def test_encodings_and_line_ends_that_are_read(ready: Project) -> None:
    files = {
        "utf-16": CASE.format("größe").encode("utf-16"),
        "bom": b"\xef\xbb\xbf" + CASE.format("bom").encode(),
        "crlf": b"cases:\r\n  - id: crlf\r\n    input: hello\r\n",
        "long-line": f"cases: [{{id: long, input: '{'x' * 1_000_000}'}}]\n".encode(),
        "100,000 lines": b"id: lines\ninput: x\nknowledge:\n" + b"- a fact\n" * 100_000,
    }
    for name, data in files.items():
        (ready.root / f"scenarios/{name}.yaml").write_bytes(data)
    done = ready.call("validate")
    assert (done.code, done.out.splitlines()[0]) == (0, "valid: 5 scenarios in 5 files, 5 samples to run")


def test_a_number_of_epochs_that_cannot_be_meant(ready: Project) -> None:
    ready.scenarios("cases: [{id: x, input: hello, epochs: 1000000000}]")
    assert ready.call("validate").code == 2


# ── files in odd places ──────────────────────────────────────────────────────────────────────────


def test_folders_and_links_beside_the_files(ready: Project) -> None:
    ready.scenarios(CASE.format("x"))
    (ready.root / "scenarios/folder.yaml").mkdir()
    (ready.root / "scenarios/again.yaml").symlink_to("suite.yaml")
    (ready.root / "scenarios/loop").symlink_to(".")
    done = ready.run()
    assert done.code == 0
    assert len(ready.results()["scenarios"]) == 1


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs a file that even root cannot read")
def test_a_file_that_cannot_be_read(ready: Project) -> None:
    ready.scenarios(CASE.format("x"))
    (ready.root / "scenarios/unreadable.yaml").symlink_to("/proc/self/mem")
    done = ready.call("run")
    assert (done.code, done.out) == (2, "")
    assert "scenarios/unreadable.yaml: cannot be read: " in done.err


def test_a_link_to_nothing_is_told(ready: Project) -> None:
    ready.scenarios(CASE.format("x"))
    (ready.root / "scenarios/lost.yaml").symlink_to("moved-away.yaml")
    done = ready.call("validate")
    assert done.code == 2
    assert "lost.yaml" in done.err


def test_a_file_name_that_is_not_utf_8(ready: Project) -> None:
    with open(os.fsencode(ready.root / "scenarios") + b"/caf\xe9.yaml", "w", encoding="utf-8") as file:
        file.write(CASE.format("x"))
    done = ready.run("--report", "junit=j.xml")
    assert done.code == 0
    assert "switched off" not in done.err


def test_nothing_to_run(ready: Project) -> None:
    assert ready.call("run").code == 5
    assert ready.call("run", "scenarios").code == 5
    ready.config("include: [nothing/*.yaml]")
    done = ready.call("run")
    assert done.code == 5
    assert "no scenario was found" in done.err


def test_paths_that_do_not_exist(ready: Project) -> None:
    ready.scenarios(CASE.format("x"))
    done = ready.call("run", "scenaros", "scenarios/suite.yml", "agenteval.yaml/x")
    assert (done.code, done.out) == (2, "")
    assert "scenaros: there is no such file or folder — did you mean 'scenarios'?" in done.err
    assert "scenarios/suite.yml: there is no such file" in done.err
    assert "agenteval.yaml/x: there is no such file" in done.err


def test_a_file_in_the_place_of_the_journals_folder(ready: Project) -> None:
    ready.scenarios(CASE.format("x"))
    ready.write(".agenteval", "not a folder")
    done = ready.run()
    assert done.code == 2
    assert "cannot create the folder of the run" in done.err
    assert ready.call("validate").code == 0


def test_reports_in_folders_that_do_not_exist_yet(ready: Project) -> None:
    ready.scenarios(CASE.format("x"))
    assert ready.call("run", "--report", "json=new/folder/results.json").code == 0
    assert (ready.root / "new/folder/results.json").is_file()


def test_reports_that_cannot_be_written_are_told_before_anything_runs(ready: Project) -> None:
    ready.scenarios(CASE.format("x"))
    for path, told in {"scenarios": "is a folder", "agent.py/results.json": "agent.py"}.items():
        done = ready.call("run", "--report", f"json={path}")
        assert (done.code, done.out) == (2, "")
        assert "the json report cannot be written" in done.err
        assert told in done.err
    assert not (ready.root / ".agenteval").exists()


def test_a_report_with_a_name_that_is_too_long(ready: Project) -> None:
    ready.scenarios(CASE.format("x"))
    done = ready.call("run", "--report", f"json={'x' * 300}")
    assert done.code == 2
    assert "the json report cannot be written" in done.err


def test_a_report_to_a_pipe_is_written_to_it(ready: Project) -> None:
    ready.scenarios(CASE.format("x"))
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

CONFIGS: dict[str, tuple[str, tuple[str, ...]]] = {
    "two documents": ("metrics: []\n---\nagent: {}\n", ("agenteval.yaml:2:1: a second YAML document",)),
    "list": ("- agent\n", ("agenteval.yaml:1:1: expected a mapping, got a list",)),
    "empty": ("", ("agenteval.yaml: the file is empty",)),
    "no agent": ("metrics: []\n", ("no agent is configured", "target: my_agent.py:agent")),
    "unset variables": (
        "agent:\n  endpoint: http://x/\n  policy: ${NOT_SET_1}\n  headers: {A: '${NOT_SET_2}'}\n",
        ("agenteval.yaml:3:3: the variable NOT_SET_1 is not set", "the variable NOT_SET_2 is not set"),
    ),
    "unknown keys": (
        "agnet: {}\nconcurency: 5\nagent: {tarket: x}\n",
        (
            "agenteval.yaml:1:1: unknown key 'agnet' — did you mean 'agent'?",
            "agenteval.yaml:2:1: unknown key 'concurency' — did you mean 'concurrency'?",
            "agenteval.yaml:3:9: unknown key 'tarket' — did you mean 'target'?",
        ),
    ),
    "headers": (
        "agent: {endpoint: 'http://x/', headers: {Bad Name: x, Ok: \"secret\\nvalue\"}}\n",
        ("'Bad Name' is not a valid header name", "the header 'Ok' contains a line break"),
    ),
    "wrong types": (
        "".join(
            f"{key}: {value}\n"
            for key, value in {
                "agent": 5, "agents": 7, "compare": "{}", "models": "[]", "epochs": "[1]", "max_turns": "x",
                "concurrency": 0, "agent_concurrency": -1, "metrics": 5, "thresholds": 7,
                "fail_on_severity": "deadly", "fault_tolerance": 9, "include": "{}", "exclude": "{}",
                "reporters": 6, "now": "[]", "unmocked_tools": "maybe",
            }.items()
        ),
        tuple(f"agenteval.yaml:{line}:1: " for line in range(1, 18)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CONFIGS)
def test_a_broken_configuration(ready: Project, name: str) -> None:
    ready.scenarios(CASE.format("x"))
    text, told = CONFIGS[name]
    ready.write("agenteval.yaml", text)
    done = ready.call("run")
    assert (done.code, done.out) == (2, "")
    for words in told:
        assert words in done.err
    assert "secret" not in done.err


def test_wrong_options(ready: Project) -> None:
    ready.scenarios(CASE.format("x"))
    wrong: dict[tuple[str, ...], str] = {
        ("--report", "jsn=x"): "no reporter is named 'jsn' — did you mean 'json'?",
        ("--agent", "nobody"): "no agent is named 'nobody'",
        ("-c", "missing.yaml"): "missing.yaml: the configuration cannot be read",
        ("-c", "scenarios"): "Is a directory",
    }
    for options, told in wrong.items():
        done: Any = ready.call("run", *options)
        assert (done.code, done.out) == (2, "")
        assert told in done.err
