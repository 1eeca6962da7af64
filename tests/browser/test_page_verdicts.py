"""A reader of the page never takes what is red, undecided or tolerated for what passed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.browser import Page
from tests.support.kit import Project

READY = "document.documentElement.dataset.ready !== undefined"
ROWS = "#list tbody tr"
AGENT = """
def agent(messages, ctx):
    if ctx.scenario_id == "never":
        return "no"
    return "poor" if ctx.scenario_id == "threshold" else "yes"
"""
SCENARIOS = """
scenarios:
  - {id: never, turns: [hello], expect: {output: {contains: ["yes"]}}}
  - {id: threshold, turns: [hello, again], checks: none}
  - {id: fine, turns: [hello], expect: {output: {contains: ["yes"]}}}
"""
REPLIES = """
replies:
  - {when: {role: judge, text: poor}, reply: {evidence: poor, reason: It says little., score: 2}}
  - {when: {role: judge}, reply: {evidence: "", reason: Good., score: 5}}
  - {when: {role: dedup}, reply: {issues: []}}
"""
SETTINGS = "models: {default: scripted/replies.yaml}\nmetrics: [helpfulness]\nepochs: 2\n"


def page_of(folder: Path, settings: str, *arguments: str, code: int) -> Path:
    project = Project(folder)
    project.agent(AGENT)
    project.scenarios(SCENARIOS)
    project.write("replies.yaml", REPLIES)
    project.config(SETTINGS + settings)
    done = project.call("run", *arguments, "--report", "html=page.html")
    assert done.code == code, done.all
    return folder / "page.html"


@pytest.fixture(scope="module")
def red(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``threshold`` fails by its mean alone: each of its conversations passed."""
    folder = tmp_path_factory.mktemp("red")
    return page_of(folder, "thresholds: {helpfulness: 4}\n", "-s", "threshold", "-s", "fine", code=1)


@pytest.fixture(scope="module")
def tolerated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``never`` passes no conversation, and a gate over repeated runs tolerates that."""
    folder = tmp_path_factory.mktemp("tolerated")
    return page_of(folder, "gates: {pass_hat_k: {k: 1, at_least: 0.5, over: suite}}\n", code=0)


def opened(page: Page, path: Path, hash: str = "") -> Page:
    page.open(path, hash=hash)
    page.wait_for(READY)
    return page


def test_a_conversation_of_a_red_scenario_is_headed_red(page: Page, red: Path) -> None:
    opened(page, red, "#/c/threshold/1?agent=bot")
    assert page.text("#conversation h2") == "✗ failed threshold, epoch 1"
    shown = page.text("#conversation")
    assert "The scenario: ✗ failed. This conversation: ✓ passed" in shown
    assert "thresholds.helpfulness" in page.text("#conversation .rules")
    opened(page, red, "#/c/fine/1?agent=bot")
    assert page.text("#conversation h2") == "✓ passed fine, epoch 1"
    assert "The scenario" not in page.text("#conversation")


def test_the_next_failure_is_also_one_that_only_a_rule_found(page: Page, red: Path) -> None:
    opened(page, red)
    page.press("n")
    page.wait_for("location.hash.startsWith('#/c/threshold/1')")


def test_what_is_copied_says_that_the_scenario_failed(page: Page, red: Path) -> None:
    opened(page, red, "#/c/threshold/1/turn/2?agent=bot")
    page.click("#copy-markdown")
    page.wait_for("document.getElementById('status').textContent === 'copied'")
    text = page.clipboard()
    assert "The scenario: failed." in text
    assert "thresholds.helpfulness" in text
    assert "It says little." in text
    page.evaluate("document.getElementById('status').textContent = ''")
    page.click("#copy-link")
    page.wait_for("document.getElementById('status').textContent === 'copied'")
    assert page.clipboard().endswith("#/c/threshold/1/turn/2?agent=bot")


def test_a_gate_leads_to_its_scenario(page: Page, red: Path) -> None:
    opened(page, red)
    page.click('a[href^="#/c/threshold/1"]')
    page.wait_for("document.querySelector('#conversation h2')?.textContent.includes('threshold')")


def test_a_scenario_that_is_tolerated_does_not_count_as_passed(page: Page, tolerated: Path) -> None:
    opened(page, tolerated)
    assert page.texts(".counts a") == ["○ 1 tolerated", "✓ 2 passed", "3 in total"]
    page.click(".counts a:first-child")
    page.wait_for(f"document.querySelectorAll('{ROWS}').length === 1")
    assert page.texts(f"{ROWS} .dot") == ["✗", "✗"]
    assert "tolerated" in page.text(f"{ROWS} td:first-child")
    opened(page, tolerated, "#/?q=v%3Apassed")
    assert page.texts(f"{ROWS} td:nth-child(2) > a") == ["threshold", "fine"]


def test_short_names_of_metrics_and_terms_work_in_the_search(page: Page, red: Path) -> None:
    opened(page, red, "#/?q=score.help%3C3")
    assert page.texts(f"{ROWS} td:nth-child(2) > a") == ["threshold"]
    opened(page, red, "#/?q=v%3Apassed%20yes&all=1")
    page.wait_for(f"document.querySelectorAll('{ROWS}').length === 1")
    assert page.texts(f"{ROWS} td:nth-child(2) > a") == ["fine"]
    opened(page, red, "#/?q=v%3Afailed%20yes&all=1")
    page.wait_for("document.getElementById('status').textContent.startsWith('0 of')")


def test_the_list_keeps_its_place(page: Page, red: Path) -> None:
    opened(page, red)
    page.press("j")
    page.press("j")
    page.press("o")
    page.wait_for(
        "!document.getElementById('conversation').hidden && document.querySelector('#conversation h2')"
    )
    page.press("u")
    page.wait_for("document.getElementById('conversation').hidden")
    assert page.evaluate("document.activeElement.textContent") == "fine"


def test_choosing_an_epoch_to_compare_keeps_the_focus(page: Page, red: Path) -> None:
    opened(page, red, "#/c/threshold/1?agent=bot")
    page.evaluate("document.getElementById('beside').focus()")
    page.press("ArrowDown")
    page.wait_for("document.querySelectorAll('#conversation article').length === 2")
    assert page.evaluate("document.activeElement.id") == "beside"
