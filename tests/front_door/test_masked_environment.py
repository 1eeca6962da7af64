"""What the environment calls a secret is masked whoever uses it, and no failure's name depends on what is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.kit import Project

VALUE = "s3cr3t-of-the-shop-77"
AGENT = f"""
import os
def agent(messages, ctx):
    text = messages[-1]["content"]
    if text == "raise":
        raise ValueError("no access with {VALUE}")
    if text == "call":
        ctx.call_tool_sync("pay", {{"with": "{VALUE}"}})
    return "The password is " + os.environ.get("OWN_PASSWORD", "{VALUE}") + "; shown as {VALUE}."
"""
SUITE = """
defaults: {tools: {pay: {returns: {ok: true}, parameters: {type: object}}}}
scenarios:
  - {id: says, turns: [hi], expect: {output: {not_contains: [password], contains: [never]}}}
  - {id: raises, turns: [raise], checks: none}
  - id: calls
    turns: [call]
    expect: {tool_calls: {match: strict, calls: []}}
"""
NAMES = ("SHOP_PASSWORD", "MY_TOKEN", "app_secret", "SIGNING_KEY")


def files(project: Project) -> dict[str, str]:
    """All that was written but the author's own files."""
    found = (path for path in project.root.rglob("*") if path.is_file() and "agent" not in path.stem)
    return {str(path): path.read_bytes().decode("utf-8", "replace") for path in found}


@pytest.fixture
def shop(project: Project) -> Project:
    project.config()
    project.agent(AGENT)
    project.scenarios(SUITE)
    return project


def fingerprints(project: Project) -> dict[str, list[Any]]:
    """By scenario, whatever a report prints to be accepted."""

    def walk(value: Any) -> list[Any]:
        if isinstance(value, dict):
            here = [value[key] for key in ("fingerprint", "fingerprints") if value.get(key)]
            return here + [found for each in value.values() for found in walk(each)]
        return [found for each in value for found in walk(each)] if isinstance(value, list) else []

    return {scenario["id"]: walk(scenario) for scenario in project.results()["scenarios"]}


@pytest.mark.parametrize("name", NAMES)
def test_a_secret_reaches_nothing_that_is_written(shop: Project, name: str) -> None:
    reports = [word for kind in ("junit=j.xml", "markdown=m.md") for word in ("--report", kind)]
    done = shop.run("-v", *reports, env={name: VALUE})
    assert done.code == 1
    assert VALUE not in done.all
    assert "***" in done.out
    assert [file for file, text in files(shop).items() if VALUE in text] == []


def test_the_journal_does_not_know_a_secret(shop: Project) -> None:
    """Not even where the variable is not set."""
    shop.run(env={NAMES[0]: VALUE})
    for words in ("show says", "show raises", "show calls --json", "report latest -v", "diff latest latest"):
        assert VALUE not in shop.call(*words.split()).all
    assert VALUE in shop.run("-v").out


ORDINARY = [  # names that name no secret, and values that do not look like one
    ("SHOP_PASSWORD", "short-1"),
    ("MY_PASSWORD", "onlyletterswithoutdigits"),
    ("OTHER_PASSWORD", "123456789012345"),
    ("SHOP_PASSWORDS", VALUE),
    ("KEYBOARD", "an0ther-value-of-the-shop"),
]


def test_a_value_that_is_not_named_or_does_not_look_like_a_secret_stays(project: Project) -> None:
    project.config()
    project.agent(f"def agent(messages): return {' '.join(value for _, value in ORDINARY)!r}")
    project.scenarios("{id: a, turns: [hi], expect: {output: {contains: [never]}}}")
    out = project.run("-v", env=dict(ORDINARY)).out
    assert [name for name, value in ORDINARY if value not in out] == []


def test_what_stands_in_a_scenario_or_a_configuration_is_no_secret(project: Project) -> None:
    project.config("agents: {other: {target: 'agent.py:agent', policy: 'Always say known-in-config-1.'}}\n")
    project.agent("def agent(messages): return 'known-in-config-1, known-in-file-22'")
    project.scenarios(
        "{id: a, agent: bot, turns: ['known-in-file-22?'], expect: {output: {contains: [never]}}}"
    )
    env = {"A_TOKEN": "known-in-config-1", "B_TOKEN": "known-in-file-22", "CACHE_KEY": f"{project.root}"}
    for words in ("run -v", "show a", "report latest -v"):
        done = project.call(*words.split(), env=env)
        assert "known-in-config-1, known-in-file-22" in done.out
    assert "***" not in project.call("list", env=env).all


def test_two_environments_give_the_same_fingerprints(shop: Project) -> None:
    shop.run()
    plain = fingerprints(shop)
    assert all(plain.values())
    journals = Path(shop.root, ".agenteval/runs")
    for env in ({"SHOP_PASSWORD": VALUE}, {"OPENAI_API_KEY": VALUE}, {"OTHER_TOKEN": "something-else-99"}):
        done = shop.run(env=env)
        assert (VALUE in done.out) is ("OTHER_TOKEN" in env)
        assert fingerprints(shop) == plain
        # And as they are read from the journal.
        latest = max(journals.iterdir(), key=lambda folder: folder.stat().st_mtime_ns).name
        shop.call("report", latest, "--report", "json=results.json")
        assert fingerprints(shop) == plain


def test_what_a_laptop_accepted_is_accepted_in_ci(shop: Project) -> None:
    shop.run(env={"SHOP_PASSWORD": VALUE})
    names = {name for found in fingerprints(shop).values() for each in found for name in _listed(each)}
    entries = [
        f"- {{fingerprint: '{name}', owner: me, reason: known, expires: 2099-01-01}}"
        for name in sorted(names)
    ]
    shop.write("accepted.yaml", "\n".join(entries))
    shop.config("accepted: accepted.yaml\n")
    assert shop.run(env={"SHOP_PASSWORD": VALUE}).code == 0
    assert shop.run().code == 0
    assert shop.run("-x", env={"CI_TOKEN": VALUE}).code == 0
    # A failure of another value is another one.
    shop.agent(AGENT.replace(VALUE, "an0ther-of-the-shop-78"))
    assert shop.run(env={"SHOP_PASSWORD": VALUE}).code == 1
    assert shop.run(env={"SHOP_PASSWORD": "an0ther-of-the-shop-78"}).code == 1


def _listed(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]


@pytest.mark.parametrize("is_named", [True, False])
def test_a_secret_that_has_another_value_everywhere_is_no_part_of_a_name(
    project: Project, is_named: bool
) -> None:
    """The agent hands on what it has from the environment, by whatever name."""
    header = "headers: {X-Key: '${AGENT_KEY}'}" if is_named else "streaming: false"
    project.config(f"agents: {{web: {{endpoint: 'http://127.0.0.1:1/v1', {header}}}}}\n")
    project.agent(
        "import os\ndef agent(messages, ctx):\n"
        "    ctx.call_tool_sync('pay', {'key': os.environ['AGENT_KEY']})\n    return 'done'\n"
    )
    tools = "tools: {pay: {returns: 1, parameters: {type: object}}}"
    project.scenarios(f"{{id: x, {tools}, turns: [hi], expect: {{tool_calls: none}}}}")
    found = []
    for value in ("value-of-laptop-1", "ci-has-another-22"):
        assert project.run("--agent", "bot", env={"AGENT_KEY": value}).code == 1
        assert value not in json.dumps(project.results())
        found.append(fingerprints(project))
    assert found[0] == found[1]
    assert all(found[0].values())


def test_recorded_conversations_are_named_so_too(project: Project) -> None:
    messages = [
        {"role": "system", "content": "You are a clerk. Marker: CANARY-4f1d9e77"},
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": f"Your code is {VALUE}, and my marker CANARY-4f1d9e77.",
        },
    ]
    project.write("log.jsonl", json.dumps({"id": "a", "messages": messages}))
    found = []
    for env in ({}, {"SHOP_PASSWORD": VALUE}):
        done = project.call("score", "log.jsonl", "--report", "json=results.json", "-v", env=env)
        assert (VALUE in done.out + json.dumps(project.results())) is (not env)
        found.append(fingerprints(project))
    assert found[0] == found[1]
    assert all(found[0].values())


SIGNS = ["\u200b", "\u00ad", "\ufeff", "\u202e", "\x1b[31m", "\x07", "\ufe0f"]


def test_a_sign_that_nobody_sees_does_not_uncover_a_secret(project: Project) -> None:
    answers = [f"The key is {VALUE[:6]}{sign}{VALUE[6:]} here." for sign in SIGNS]
    project.agent(f"def agent(message: str): return {answers!a}[int(message)]\n")
    project.config("metrics: []")
    expect = "expect: {output: {contains: [never], not_contains: [key]}}"
    entries = [f"- {{id: s{number}, turns: ['{number}'], {expect}}}" for number in range(len(SIGNS))]
    project.scenarios("scenarios:\n" + "\n".join(entries))
    reports = ("--report", "markdown=r.md", "--report", "junit=r.xml")
    done = project.run("-v", *reports, env={"SHOP_PASSWORD": VALUE})
    assert (done.code, "The key is" in done.out) == (1, True), done.all
    for text in (done.all, *files(project).values()):
        shown = text.replace("\\u200b", "").replace("\ufffd", "")
        plain = "".join(each for each in shown if each.isprintable())
        assert VALUE not in plain
        for sign in SIGNS:
            assert VALUE not in plain.replace(sign, "")
