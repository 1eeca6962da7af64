"""The pages of a run with a baseline, of two runs, of a history and of a log, in a real browser."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.browser import Page
from tests.support.kit import Project

AGENT = """
def agent(messages, ctx):
    return "no" if ctx.scenario_id in {bad!r} else "yes"
"""
EXPECTED = 'turns: [hello], expect: {output: {contains: ["yes"]}}'


def call(number: int, name: str, **args: object) -> list[dict[str, object]]:
    made = {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": json.dumps(args)}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [made]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": json.dumps({"status": "<b>shipped</b>"})},
    ]


def record(name: str, *, repeated: bool) -> dict[str, object]:
    calls = [message for n in range(2 if repeated else 1) for message in call(n, "get_order", id="ORD-42")]
    question = {"role": "user", "content": "Where is my order?"}
    return {"id": name, "messages": [question, *calls, {"role": "assistant", "content": "It is shipped."}]}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    project = Project(tmp_path_factory.mktemp("pages"))
    suite = "\n".join(f"  - {{id: {name}, {EXPECTED}}}" for name in ("same", "worse", "better"))
    project.scenarios(f"scenarios:\n{suite}\n")
    project.config("epochs: 2\n")
    project.agent(AGENT.format(bad=("better",)))
    assert project.call("run").code == 1
    project.agent(AGENT.format(bad=("worse",)))
    done = project.call("run", "--baseline", "latest", "--report", "html=baseline.html")
    assert done.code == 1, done.all
    assert project.call("diff", "previous", "latest", "--report", "html=diff.html").code in (1, 3)
    assert project.call("report", "--history", "--report", "html=history.html").code == 0
    records = [record("fine", repeated=False), record("twice", repeated=True)]
    project.write("log.jsonl", "".join(json.dumps(each) + "\n" for each in records))
    done = project.call("score", "log.jsonl", "--report", "html=log.html")
    assert done.code == 0, done.all
    tasks = [{**each, "task": "one"} for each in records]
    project.write("grouped.jsonl", "".join(json.dumps(each) + "\n" for each in tasks))
    done = project.call("score", "grouped.jsonl", "--scenario-from", "task", "--report", "html=grouped.html")
    assert done.code == 0, done.all
    names = ("baseline", "diff", "history", "log", "grouped")
    return {name: project.root / f"{name}.html" for name in names}


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize(
    ("name", "hash", "texts"),
    [
        ("baseline", "#/", ["1 newly failing", "1 fixed"]),
        ("baseline", "#/compare", ["Newly failing (1)", "worse", "2/2", "0/2", "Fixed (1)", "better"]),
        ("diff", "", ["worse", "better", "same", "not decided"]),
        ("history", "", ["History: 2 runs", "Pass rate", "66.7 %"]),
        ("log", "#/", ["REPORTED", "repeated tool call", "1 of 2", "50.0 %"]),
        ("log", "#/c/twice/1?agent=recorded", ["ORD-42", "<b>shipped</b>", "repeated tool call"]),
        ("log", "#/figures", ["repeated tool call"]),
    ],
)
def test_each_page_shows_its_subject(
    page: Page, pages: Mapping[str, Path], name: str, hash: str, texts: list[str], dark: bool
) -> None:
    page.open(pages[name], hash=hash, dark=dark)
    page.wait_for("document.documentElement.dataset.ready !== undefined")
    shown = page.text("body")
    assert [text for text in texts if text not in shown] == []
    assert page.console_errors == []
    assert page.requests == [pages[name].resolve().as_uri()]
    assert [each for each in page.axe() if each.impact in ("serious", "critical")] == []


def test_a_quotation_of_a_log_leads_to_its_turn(page: Page, pages: Mapping[str, Path]) -> None:
    page.open(pages["log"])
    page.wait_for("document.documentElement.dataset.ready !== undefined")
    page.click('a[href^="#/c/twice/1/turn/1"]')
    page.wait_for("document.activeElement.id === 'turn-1'")
    assert page.texts("#turn-1 .message.call pre")[0] == '{ "id": "ORD-42" }'
    page.press("u")
    page.wait_for("!document.getElementById('/').hidden")
    assert page.texts("#list tbody tr td:nth-child(2) > a") == ["twice", "fine"]
    assert page.texts("#list tbody tr td:first-child") == ["medium", ""]


def test_records_of_one_scenario_are_told_apart(page: Page, pages: Mapping[str, Path]) -> None:
    page.open(pages["grouped"])
    page.wait_for("document.documentElement.dataset.ready !== undefined")
    page.click("#list tbody td:nth-child(2) > a")
    page.wait_for("document.querySelector('#conversation .epochs')")
    titles = page.evaluate("[...document.querySelectorAll('.epochs .dot')].map(each => each.title)")
    names = [*titles, *page.texts("#beside option")]
    assert names == ["twice, epoch 2", "no other", "twice, epoch 2"]


def test_a_link_to_a_scenario_leads_to_its_first_record(page: Page, tmp_path: Path) -> None:
    """A gate knows the scenario, not the records of a log that are its epochs."""
    project = Project(tmp_path)
    records = [{**record(name, repeated=False), "task": "one"} for name in ("first", "second")]
    project.write("log.jsonl", "".join(json.dumps(each) + "\n" for each in records))
    project.scenarios(
        "scenarios:\n  - {id: one, turns: [x], expect: {output: {contains: [nowhere]}}}\n", "one.yaml"
    )
    done = project.call(
        "score",
        "log.jsonl",
        "--scenarios",
        "one.yaml",
        "--scenario-from",
        "task",
        "--report",
        "html=page.html",
    )
    assert done.code == 1, done.all
    page.open(tmp_path / "page.html", hash="#/c/one/1?agent=recorded")
    page.wait_for("document.documentElement.dataset.ready !== undefined")
    assert "one" in page.text("#conversation h2")
    page.open(tmp_path / "page.html", hash="#/c/one/7?agent=recorded")
    page.wait_for("document.documentElement.dataset.ready !== undefined")
    assert page.text("#conversation h2") == "There is no such conversation in this page"
