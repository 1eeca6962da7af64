"""The page of a run in a real browser: what it shows, and how its reader moves through it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.browser import Page
from tests.support.kit import Project

READY = "document.documentElement.dataset.ready !== undefined"
ROWS = "#list tbody tr"
LONG = {"lines": list(range(40))}
AGENT = """
def agent(messages, ctx):
    if ctx.scenario_id == "lost":
        raise ConnectionRefusedError("down")
    if ctx.scenario_id == "refund" and ctx.turn == 0:
        ctx.call_tool_sync("get_order", {"id": "ORD-42"})
        return "The order ORD-42 was **shipped** yesterday."
    if ctx.scenario_id == "refund":
        return "Your money is on its way, although nothing was paid." if ctx.epoch else "I cannot do that."
    if ctx.scenario_id == "old":
        return "no"
    return "yes"
"""
SCENARIOS = f"""
defaults:
  checks: none
  tools:
    get_order:
      description: An order.
      parameters: {{type: object, properties: {{id: {{type: string}}}}, required: [id]}}
      returns: {json.dumps(LONG)}
scenarios:
  - id: refund
    name: A refund in two turns
    note: The money must not be promised.
    tags: [money, two turns]
    turns:
      - user: Where is my order ORD-42?
      - {{user: Refund it., expect: {{output: {{not_contains: [on its way]}}}}}}
  - {{id: lost, turns: [hello]}}
  - {{id: old, turns: [hello], expect: {{output: {{contains: ["yes"]}}}}}}
  - {{id: "odd /?#%&=@ id", tags: [smoke], turns: [hello]}}
  - {{id: fine, tags: [smoke], turns: [hello]}}
"""
REPLIES = """
replies:
  - when: {role: judge, text: "on its way"}
    reply: {evidence: "Your money is on\\n its way", reason: It promises money., score: 1}
  - when: {role: judge}
    reply: {evidence: "", reason: Good., score: 5}
  - when: {role: dedup}
    reply: {issues: []}
"""


SETTINGS = """
models: {default: scripted/replies.yaml}
metrics: [helpfulness]
epochs: 2
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a run with a failure in one of two epochs, one that was lost, and one that is accepted."""
    project = Project(tmp_path_factory.mktemp("page"))
    project.agent(AGENT)
    project.scenarios(SCENARIOS)
    project.write("replies.yaml", REPLIES)
    project.config(SETTINGS)
    assert project.run("-s", "old").code == 1
    (failed,) = project.results()["scenarios"]
    fingerprint = failed["violations"][0]["fingerprints"][0]
    entry = f"{{fingerprint: {fingerprint}, scenario: old, reason: known, owner: me, expires: 2099-01-01}}"
    project.write("accepted.yaml", f"accepted:\n  - {entry}\n")
    project.config(f"{SETTINGS}accepted: accepted.yaml\n")
    done = project.run("--report", "html=page.html")
    assert done.code == 1, done.all
    return project.root / "page.html"


def opened(page: Page, path: Path, hash: str = "", **more: object) -> Page:
    page.open(path, hash=hash, **more)  # type: ignore[arg-type]
    page.wait_for(READY)
    return page


def ids(page: Page) -> list[str]:
    return page.texts(f"{ROWS} td:nth-child(2) > a")


def test_what_failed_comes_first_and_no_request_is_made(page: Page, ran: Path) -> None:
    opened(page, ran)
    assert ids(page) == ["refund", "lost", "old", "odd /?#%&=@ id", "fine"]
    head = page.text("h1")
    assert "FAILED" in head
    assert "exit 1" in head
    assert page.texts(".counts a") == [
        "✗ 1 failed", "? 1 inconclusive", "≈ 1 flaky", "○ 1 accepted", "✓ 3 passed", "5 in total",
    ]  # fmt: skip
    assert page.texts(f"{ROWS}:first-child .dot") == ["✓", "✗"]
    assert "on its way" in page.text(f"{ROWS}:first-child .reason")
    assert page.console_errors == []
    assert page.requests == [ran.resolve().as_uri()]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", ["refund", "lost", "old", "odd /?#%&=@ id", "fine"]),
        ("v:failed", ["refund"]),
        ("v:passed", ["old", "odd /?#%&=@ id", "fine"]),
        ("-v:passed", ["refund", "lost"]),
        ("is:flaky", ["refund"]),
        ("v:accepted", ["old"]),
        ("tag:smoke", ["odd /?#%&=@ id", "fine"]),
        ('tag:"two turns"', ["refund"]),
        ("tag:two", []),
        ("tool:get_order", ["refund"]),
        ("score.help<5", ["refund"]),
        ("helpfulness>=5", ["old", "odd /?#%&=@ id", "fine"]),
        ("-tag:smoke -tag:money score.help>4", ["old"]),
        ("REFUND in two", ["refund"]),
        ("id:odd", ["odd /?#%&=@ id"]),
        ("category:nothing", []),
        ("(((", []),
    ],
)
def test_a_filter_in_the_link_and_typed_finds_the_same(
    page: Page, ran: Path, text: str, found: list[str]
) -> None:
    opened(page, ran, f"#/?q={json.dumps(text)[1:-1]}".replace(" ", "%20").replace('\\"', "%22"))
    assert ids(page) == found
    opened(page, ran)
    page.click("#filter")
    page.type(text)
    assert ids(page) == found
    assert page.text("#list-tools").endswith(f"{len(found)} of 5")
    kept = page.evaluate("location.hash")
    opened(page, ran, kept)
    assert ids(page) == found


def test_a_count_filters_the_list(page: Page, ran: Path) -> None:
    opened(page, ran)
    page.click(".counts a:nth-child(2)")
    page.wait_for(f"document.querySelectorAll('{ROWS}').length === 1")
    assert ids(page) == ["lost"]
    assert page.evaluate("document.getElementById('filter').value") == "v:inconclusive"


def test_the_search_in_all_conversations_finds_what_the_list_does_not_hold(page: Page, ran: Path) -> None:
    opened(page, ran)
    page.click("#filter")
    page.type("Shipped** yesterday")
    assert ids(page) == []
    page.click("#search-all")
    page.wait_for(f"document.querySelectorAll('{ROWS}').length === 1")
    assert ids(page) == ["refund"]
    opened(page, ran, page.evaluate("location.hash"))
    assert ids(page) == ["refund"]
    page.click("#filter")
    page.press("End")
    page.type("x")
    page.press("Backspace")
    assert ids(page) == []


def test_a_conversation_shows_turns_calls_scores_and_the_quoted_evidence(page: Page, ran: Path) -> None:
    opened(page, ran, "#/c/refund/2?agent=bot")
    assert page.text("#conversation h2").endswith("refund, epoch 2")
    assert page.texts(".turn > .message.user .text") == ["Where is my order ORD-42?", "Refund it."]
    answers = page.texts(".turn > .message.agent .text")
    assert answers[0] == "The order ORD-42 was **shipped** yesterday."
    assert page.texts("#turn-2 .message.agent mark") == ["Your money is on its way"]
    assert "The money must not be promised." in page.text("#conversation")
    call = page.texts("#turn-1 .message.call pre")
    assert json.loads(call[0]) == {"id": "ORD-42"}
    assert call[1].count("\n") == 11
    page.click("#turn-1 .message.call button")
    assert json.loads(page.texts("#turn-1 .message.call pre")[1]) == LONG
    assert "It promises money." in page.text("#turn-2 aside")
    assert page.text("#conversation .rules a") == "turn 2"
    page.click("#turn-2 .asked summary")
    page.wait_for("document.querySelectorAll('#turn-2 .asked details').length === 1")
    page.click("#turn-2 .asked details summary")
    asked = page.text("#turn-2 .asked")
    assert "Refund it." in asked
    assert "helpfulness" in asked
    assert page.console_errors == []


def test_a_scenario_that_failed_is_told_from_its_conversation_that_passed(page: Page, ran: Path) -> None:
    told = "document.getElementById('conversation').textContent.includes('The scenario: ')"
    opened(page, ran, "#/c/refund/1?agent=bot")
    assert page.text("#conversation h2") == "✗ failed refund, epoch 1"
    assert "The scenario: ✗ failed. This conversation: ✓ passed" in page.text("#conversation")
    opened(page, ran, "#/c/refund/2?agent=bot")
    assert not page.evaluate(told)
    opened(page, ran, "#/c/fine/1?agent=bot")
    assert not page.evaluate(told)


def test_a_link_leads_to_a_turn(page: Page, ran: Path) -> None:
    opened(page, ran, "#/c/refund/2/turn/2?agent=bot")
    assert page.evaluate("document.activeElement.id") == "turn-2"
    opened(page, ran, "#/c/nobody/1")
    assert page.text("#conversation h2") == "There is no such conversation in this page"


def test_every_row_leads_to_its_conversation(page: Page, ran: Path) -> None:
    opened(page, ran)
    for number, name in enumerate(ids(page), 1):
        page.click(f"{ROWS}:nth-child({number}) td:nth-child(2) > a")
        page.wait_for(
            "document.querySelector('#conversation h2') && !document.getElementById('conversation').hidden"
        )
        page.wait_for(f"document.querySelector('#conversation h2').textContent.includes({json.dumps(name)})")
        page.press("u")
        page.wait_for("document.getElementById('conversation').hidden")


def test_epochs_stand_side_by_side(page: Page, ran: Path) -> None:
    opened(page, ran, "#/c/refund/2?agent=bot")
    page.evaluate("(() => { const box = document.getElementById('beside'); box.value = '0';"
                  " box.dispatchEvent(new Event('change')); })()")  # fmt: skip
    page.wait_for("document.querySelectorAll('#conversation article').length === 2")
    answers = page.texts("article .turn:nth-of-type(2) .message.agent .text")
    assert answers == ["Your money is on its way, although nothing was paid.", "I cannot do that."]
    opened(page, ran, page.evaluate("location.hash"))
    assert page.evaluate("document.querySelectorAll('#conversation article').length") == 2


def test_keys(page: Page, ran: Path) -> None:
    opened(page, ran)
    page.press("j")
    assert page.evaluate("document.activeElement.textContent") == "refund"
    page.press("j")
    page.press("j")
    page.press("k")
    assert page.evaluate("document.activeElement.textContent") == "lost"
    page.press("o")
    page.wait_for("location.hash.startsWith('#/c/lost/1')")
    page.wait_for("!document.getElementById('conversation').hidden")
    page.press("p")
    page.wait_for("location.hash.startsWith('#/c/refund/2')")
    page.wait_for("document.querySelector('#conversation h2').textContent.includes('refund, epoch 2')")
    page.press("e")
    page.wait_for("document.querySelector('#conversation h2').textContent.includes('refund, epoch 1')")
    page.press("c")
    page.wait_for("document.getElementById('status').textContent === 'copied'")
    assert page.clipboard() == "agenteval run scenarios/suite.yaml -s refund"
    page.press("Escape")
    page.wait_for("document.getElementById('conversation').hidden")
    page.evaluate("location.hash = '#/issues'")
    page.wait_for("document.getElementById('/').hidden")
    page.press("/")
    page.wait_for("document.activeElement.id === 'filter'")
    page.press("Escape")
    page.press("/")
    page.wait_for("document.activeElement.id === 'filter'")
    page.type("jn?")
    assert page.evaluate("document.getElementById('filter').value") == "jn?"
    page.press("Escape")
    page.press("?")
    page.wait_for("document.querySelector('dialog[open]')")
    page.press("Escape")
    page.wait_for("!document.querySelector('dialog')")


def test_copying_gives_the_link_markdown_and_json(page: Page, ran: Path) -> None:
    opened(page, ran, "#/c/refund/2?agent=bot")

    def copied(name: str) -> str:
        page.evaluate("document.getElementById('status').textContent = ''")
        page.click(f"#copy-{name}")
        page.wait_for("document.getElementById('status').textContent === 'copied'")
        return page.clipboard()

    assert copied("link") == ran.resolve().as_uri() + "#/c/refund/2?agent=bot"
    sample = json.loads(copied("json"))
    assert (sample["verdict"], sample["turns"][1]["user"]) == ("failed", "Refund it.")
    assert (sample["scenario"], sample["agent"]) == ("refund", "bot")
    markdown = copied("markdown")
    assert "### Turn 2" in markdown
    assert "```\nYour money is on its way, although nothing was paid.\n```" in markdown
    assert "**call** `get_order`" in markdown


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize(
    "hash", ["#/", "#/issues", "#/gates", "#/figures", "#/run", "#/c/refund/2?agent=bot"]
)
def test_axe_finds_nothing_serious(page: Page, ran: Path, hash: str, dark: bool) -> None:
    opened(page, ran, hash, dark=dark)
    serious = [each for each in page.axe() if each.impact in ("serious", "critical")]
    assert serious == []


def test_a_theme_can_be_chosen(page: Page, ran: Path) -> None:
    opened(page, ran)
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.click("#theme")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert light == "rgb(255, 255, 255)"
    assert dark != light
    opened(page, ran)
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == dark


@pytest.mark.parametrize(
    "hash", ["#/", "#/gates", "#/c/refund/2?agent=bot", "#/c/refund/2?agent=bot&beside=1,"]
)
def test_a_phone_needs_no_sideways_scrolling(page: Page, ran: Path, hash: str) -> None:
    opened(page, ran, hash, width=390)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_print_shows_the_verdict_and_what_did_not_pass(page: Page, ran: Path) -> None:
    opened(page, ran)
    page.media(print=True)
    shown = page.text("body")
    assert "FAILED" in shown
    assert "refund" in shown
    assert "fine" not in shown.split("SCENARIOS")[-1].split("Scenarios")[-1].split()
    assert not page.evaluate("document.getElementById('list-tools').checkVisibility()")


def test_print_shows_what_the_filter_found(page: Page, ran: Path) -> None:
    opened(page, ran, "#/?q=id:fine")
    page.media(print=True)
    assert "fine" in page.text("#list").split()


def test_without_script_verdict_gates_issues_and_failures_are_readable(page: Page, ran: Path) -> None:
    page.open(ran, script=False)
    shown = page.text("body")
    for part in ("FAILED", "exit 1", "every sample passes", "refund", "lost", "on its way"):
        assert part in shown
    assert "Issues" in shown
    assert not page.evaluate("document.getElementById('list-tools').checkVisibility()")


def test_a_damaged_file_still_shows_the_verdict(page: Page, ran: Path, tmp_path: Path) -> None:
    text = ran.read_text(encoding="utf-8")
    at = text.index('id="index">') + 30
    damaged = tmp_path / "damaged.html"
    damaged.write_text(text[:at] + "zzzzz" + text[at + 5 :], encoding="utf-8")
    opened(page, damaged)
    assert "FAILED" in page.text("h1")
    assert "cannot be read" in page.text("#list-more")
    assert ids(page) == ["refund", "lost"]
