"""The page of a run, a log and a comparison in which every text is hostile: the browser shows all of them
and obeys none."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from markdown_it import MarkdownIt

from agenteval.core.safe_text import clean
from tests.support.browser import Page, PageError
from tests.support.kit import Project
from tests.support.local_servers import LocalServer, respond_json
from tests.support.scripted import judge, script, user

READY = "document.documentElement.dataset.ready !== undefined"
MARKUP = (
    "<script>pwned()</script></script><!--<script><style>*{display:none}</style>"
    "<img src=x onerror=pwned()><svg onload=pwned()><a href='javascript:pwned()'>x</a>"
    "<meta http-equiv=refresh content='0;url=http://evil.example'><base href=http://evil.example>"
    "<form action=http://evil.example><input name=children></form>"
    "<iframe srcdoc='<script>parent.pwned()</script>'></iframe>]]></textarea></title></template>-->"
    "&lt;b&gt; \"'` $&{pwned()} {{7*7}} [a](javascript:pwned()) ![i](http://evil.example/i.png) @everyone #1"
    " www.evil.example"
)
TAG = "<script>pwned()</script><img src=x onerror=pwned()>&lt;"
FILE = "<img src=x onerror=pwned()>&#47;"
SUITE = f"{FILE}<script>x</script>.yaml"
"""A folder and a file whose names together have a closing tag."""
UNSEEN = (
    "\x1b[31mred\x1b[0m \x1b]8;;http://x\x07 \u202eevil\u202c z\u200bw \u2066\ufeff\x00\x9b1m \u2028 \ud800|"
)
EVERY = "".join(
    f"{chr(number)}." for number in (*range(0x500), *range(0x2000, 0x2100), 0xFEFF, *range(0xE0000, 0xE0080))
)
"""The characters that are removed, among others."""
FENCES = "\n```\n````\n~~~\n# PWNED\n<b>PWNED</b>\n" + "`" * 40 + "\n" + "` " * 150_000
PATTERN = "(a+)+$ [[[ (?: \\ a* a* a* {99999} ^| \\d"


def hostile(place: str) -> str:
    """A text that names the place where it was written."""
    return f"«{place}» {MARKUP} «/{place}»"


def brief(place: str) -> str:
    """As ``hostile``, for places where reports show the first words alone."""
    return f"«{place}» {TAG}"


# ── a run ────────────────────────────────────────────────────────────────────────────────────────

AGENT = """
import json
from pathlib import Path

T = json.loads(Path(__file__).with_name("texts.json").read_text("utf-8"))
FAILS = Path(__file__).with_name("fails").exists()


def asks(tool, arguments, **more):
    call = {"id": "1", "function": {"name": tool, "arguments": arguments}}
    return {"role": "assistant", "tool_calls": [call], **more}


def agent(messages, ctx):
    how = ctx.scenario_id
    if not FAILS and how != "accepted":
        return "all right"
    if messages[-1]["role"] != "tool" and ctx.turn == 0:
        if how == "raises":
            raise ValueError(T["error"])
        if how == "calls":
            nested = {T["key"]: [json.dumps({T["key"]: T["value"]}), {"__proto__": {"a": 1}}]}
            odd = {"__proto__": nested, "constructor": 1, "toString": None, "hasOwnProperty": T["value"]}
            return asks(T["tool"], json.dumps(odd), name=T["speaker"], content=T["step"])
        if how == "raw":
            return asks("returns", T["raw"])
        if how in ("returns", "refuses"):
            return asks(how, "{}")
        if how == "numbers":
            return asks("numbers", '{"id": 12345678901234567890, "large": 1%s}' % ("0" * 400))
    return T["answer"] + (T["fences"] if how == "judged" and ctx.turn == 0 else "")
"""
TOOLS = """
import json
from pathlib import Path

T = json.loads(Path(__file__).with_name("texts.json").read_text("utf-8"))


def returns(args):
    return {T["result key"]: [T["result"], json.dumps({T["result key"]: [T["result"]]})], "__proto__": 1}


def numbers(args):
    return '{"price": 1.10, "id": 12345678901234567890, "id": 2, "text": "a \\\\u00fc \\\\ud83d\\\\ude00"}'
"""
CHECKS = """
import json
from pathlib import Path

T = json.loads(Path(__file__).with_name("texts.json").read_text("utf-8"))


def check(conversation):
    return T["check"]
"""
METRICS = """
import json
from pathlib import Path

from agenteval import QualitativeMetric, QualResult, QuantitativeMetric, QuantResult

T = json.loads(Path(__file__).with_name("texts.json").read_text("utf-8"))


class Labelled(QualitativeMetric):
    name = "constructor"
    labels = {"fine": "ok", T["label"]: "high"}

    def evaluate(self, input):
        return QualResult(T["label"], T["reason"], T["pattern"])


class Scored(QuantitativeMetric):
    name = "toString"

    def score(self, input):
        return QuantResult(1.0, T["low reason"], ("y" * 100_000 + " ") * 3)
"""
LONG_TEXTS = (
    "error", "key", "value", "raw", "answer", "step", "result key", "result", "check", "reason", "low reason",
)  # fmt: skip
SCENARIOS = ("raises", "calls", "raw", "returns", "refuses", "numbers", "judged", "accepted")
ODD_TAGS = ("__proto__", 'q"uo te', "a:b", "İ", "-x")
WHOLE = {
    *LONG_TEXTS, "name", "note", "user", "goal", "profile", "knowledge", "fact", "policy", "description",
    "tool error", "criterion", "criterion reason", "help reason", "behaviour reason", "review reason", "skip",
    "issue explanation", "owner", "accepted reason", "what",
}  # fmt: skip
BRIEF = {"speaker", "tool", "label", "tag", "never", "agent", "issue", "run id", "simulated user"}
"""Every place from which a text comes to the page of a run: all of the text, or its beginning."""


class Ran(NamedTuple):
    """The page of a run, the pages that compare it with its baseline and show all runs, and its results."""

    page: Path
    diff: Path
    history: Path
    results: dict[str, Any]

    def sample(self, scenario: str) -> dict[str, Any]:
        """Return the first conversation of a scenario."""
        (found,) = [each for each in self.results["scenarios"] if each["id"] == scenario]
        return found["samples"][0]  # type: ignore[no-any-return]


def write_run(project: Project) -> None:
    texts = {place: hostile(place) for place in LONG_TEXTS}
    texts |= {place: brief(place) for place in ("tool", "label", "speaker")}
    texts |= {"pattern": PATTERN, "fences": FENCES}
    texts["answer"] += UNSEEN + PATTERN
    texts["step"] += EVERY
    project.write("texts.json", json.dumps(texts))
    project.agent(AGENT)
    for name, text in {"tools.py": TOOLS, "checks.py": CHECKS, "metrics.py": METRICS}.items():
        project.write(name, text)
    every: dict[str, Any] = {
        "name": hostile("name"),
        "tags": [brief("tag"), *ODD_TAGS],
        "note": hostile("note"),
        "turns": [hostile("user"), "again"],
    }
    judged = {
        "goal": hostile("goal"),
        "profile": hostile("profile"),
        "knowledge": [hostile("knowledge")],
        "facts": [hostile("fact")],
        "turns": [hostile("user"), {"simulate": 1}],
        "epochs": 2,
        "expect": {
            "output": {"contains": [brief("never")]},
            "criteria": [hostile("criterion")],
            "python": ["../../checks.py:check"],
        },
    }
    own: dict[str, dict[str, Any]] = {
        "judged": judged,
        "accepted": {"expect": {"output": {"contains": ["known"]}}},
    }
    scenarios = [{"id": name, **every, **own.get(name, {})} for name in SCENARIOS]
    scenarios.append({"id": "skipped", "turns": ["x"], "skip": hostile("skip")})
    tools = {name: {"python": f"../../tools.py:{name}"} for name in ("returns", "numbers")}
    refuses = {"description": hostile("description"), "error": hostile("tool error")}
    defaults = {
        "expect": {"output": {"any_of": [brief("never"), "all right"]}},
        "tools": {**tools, "refuses": refuses},
    }
    suite = {"defaults": defaults, "scenarios": scenarios}
    project.scenarios(json.dumps(suite, ensure_ascii=False), f"scenarios/{SUITE}")
    quote = "]]></textarea></title></template>-->"
    grouped = {"title": brief("issue"), "explanation": hostile("issue explanation"), "severity": "high"}
    script(
        project,
        user("judged", 1, f"Please help me {brief('simulated user')}", done=True),
        judge({"label": "fail", "evidence": quote, "reason": hostile("criterion reason")}, metric="criteria"),
        judge({"label": "as it should", "reason": hostile("review reason")}, metric="user_review"),
        judge({"score": 2, "evidence": quote, "reason": hostile("help reason")}, metric="helpfulness"),
        judge(
            {"label": "repetition", "evidence": quote, "reason": hostile("behaviour reason")},
            metric="agent_behavior_failure",
        ),
        dedup={"issues": [{**grouped, "findings": ["f1"]}]},
    )
    (project.root / "replies.yaml").rename(project.root / f"{FILE}.yaml")
    agent = {"name": brief("agent"), "target": "agent.py:agent", "policy": hostile("policy")}
    config = {
        "agent": agent,
        "models": {"default": f"scripted/{FILE}.yaml"},
        "metrics": ["helpfulness", "agent_behavior_failure", "constructor", "toString"],
        "custom_metrics": ["metrics.py:Labelled", "metrics.py:Scored"],
        "thresholds": {"constructor": 0.5, "toString": 3, "helpfulness": 3},
        "accepted": "accepted.yaml",
    }
    project.write("accepted.yaml", "accepted: []\n")
    project.write("agenteval.yaml", json.dumps(config, ensure_ascii=False))


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    project = Project(tmp_path_factory.mktemp("run"))
    write_run(project)
    assert project.run().code == 1
    (known,) = [each for each in project.results()["scenarios"] if each["id"] == "accepted"]
    entry = {
        "fingerprint": known["violations"][0]["fingerprints"][0],
        "owner": hostile("owner"),
        "reason": hostile("accepted reason"),
        "expires": "2999-01-01",
        "scenario": "accepted",
        "what": hostile("what"),
    }
    project.write("accepted.yaml", json.dumps({"accepted": [entry]}, ensure_ascii=False))
    project.write("fails", "")
    assert project.run("--baseline", "latest").code == 1
    results = project.results()
    forged = forge(project, results["run"]["id"])
    assert project.call("report", forged, "--report", "html=run.html").code == 1
    assert project.call("diff", "previous", forged, "--report", "html=diff.html").code == 1
    assert project.call("report", "--history", "--report", "html=history.html").code == 0
    root = project.root
    return Ran(root / "run.html", root / "diff.html", root / "history.html", results)


RUN_ID = brief("run id")


def forge(project: Project, run: str) -> str:
    """Give a copy of a run another id, and return its folder."""
    runs = project.root / ".agenteval" / "runs"
    shutil.copytree(runs / run, runs / "forged")
    journal = runs / "forged" / "events.jsonl"
    first, rest = journal.read_text("utf-8").split("\n", 1)
    journal.write_text(f"{json.dumps({**json.loads(first), 'run_id': RUN_ID})}\n{rest}", "utf-8")
    return ".agenteval/runs/forged"


# ── a log ────────────────────────────────────────────────────────────────────────────────────────

IDS = (
    "a/b?c#d%e&f=g@h: i", "a\"b'c`d", "%41", "A", "%", "%E0%A4%A", "%2F", "emoji 🎉 漢字", "turn/1",
    "x/1/turn/2",
    "__proto__", "constructor", "toString", "hasOwnProperty", ".", "..", " ", "\u200b", " x ", "a+b", "a b",
    "<script>alert(1)</script>", "a\\b", "v:failed", "-minus", "a,b", "\u202eevil", "zero\u200bwidth",
    "two\nlines", "tab\tb", "nul\x00", "half\ud800", "İ", "ß", "((((", "'; DROP", "a" * 150,
)  # fmt: skip
IN_LOG = {
    "log user",
    "log answer",
    "log tool",
    "log key",
    "log result",
    "log role",
    "log agent 0",
    "log agent 1",
}


HUGE: dict[str, tuple[str, str]] = {
    "one word": (hostile("log result"), "w" * 1_000_000),
    "many lines": ("{[(", "line\n" * 100_000),
    "sequences": ("[]", "\x1b]" * 1000 + "\x9d" * 1000),
    "deep": ("[" * 20_000 + "]" * 20_000, "."),
    "rows": (json.dumps([{"n": n} for n in range(20_000)]), "."),
    "escapes": (json.dumps("[" + '"\\' * 100_000), "."),
}
"""A result of a tool and an answer, by conversation."""


def record(number: int, name: str, result: str, answer: str) -> dict[str, Any]:
    call = {"name": brief("log tool"), "arguments": json.dumps({hostile("log key"): [number]})}
    messages = [
        {"role": "system", "content": hostile("log policy")},
        {"role": "user", "content": f"number {number}: {hostile('log user')}"},
        {"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": call}]},
        {"role": "tool", "tool_call_id": "1", "content": result},
        {"role": "assistant", "content": answer},
    ]
    if number % 3 == 0:
        messages.insert(-1, {"role": brief("log role"), "content": "?"})
    # The scenario of every second conversation is another's id, so that its own id is a variant.
    task = {"task": IDS[number % len(IDS) - 1]} if number % 2 else {}
    other = {"type": "function", "function": {"name": "other", "parameters": {"type": "object"}}}
    agent = brief(f"log agent {number % 2}")
    return {"id": name, "agent": agent, "messages": messages, "tools": [other], **task}


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a log."""
    project = Project(tmp_path_factory.mktemp("log"))
    small = {name: (hostile("log result"), hostile("log answer")) for name in IDS}
    records = [record(at, name, *texts) for at, (name, texts) in enumerate({**small, **HUGE}.items())]
    path = project.root / f"{FILE}.jsonl"
    path.write_text("\n".join([*map(json.dumps, records), hostile("unreadable")]), "utf-8")
    done = project.call("score", path.name, "--scenario-from", "task", "--report", "html=log.html")
    assert (project.root / "log.html").exists(), done.all
    return project.root / "log.html"


# ── what the reader does ─────────────────────────────────────────────────────────────────────────

OWN_ELEMENTS = re.compile(
    r"html|head|meta|link|title|style|script|body|a|article|aside|b|button|code|d[dlt]|details|div|footer|h[1-4]"
    r"|header|input|label|li|main|mark|nav|ol|option|p|pre|q|section|select|span|strong|summary|table|tbody|t[dhr]|thead|ul"
    r"|caption|figcaption|figure|svg:(?:a|circle|desc|g|line|path|polygon|polyline|rect|svg|text|title|tspan)"
)
OWN_ATTRIBUTES = re.compile(
    r"aria-[a-z]+|autocomplete|charset|class|content|data-filtered|data-ready|for|hidden|href|http-equiv|id|lang|name|open"
    r"|placeholder|rel|role|scope|selected|spellcheck|tabindex|title|type|value"
    # of charts
    r"|cx|cy|d|dx|dy|fill|focusable|height|pathLength|points|r|rx|ry|stroke|stroke-[a-z]+|text-anchor|transform|viewBox"
    r"|width|x|x1|x2|y|y1|y2"
)
ELEMENTS = """
(() => {
  const found = {};
  for (const each of document.querySelectorAll('*')) {
    const links = [...each.attributes].filter(one => one.name === 'href').map(one => one.value.slice(0, 2));
    const kind = each.namespaceURI === 'http://www.w3.org/2000/svg' ? 'svg:' : '';
    const key = JSON.stringify([kind + each.localName, [...each.attributes].map(one => one.name), links]);
    found[key] = (found[key] || 0) + 1;
  }
  return Object.entries(found).map(([key, count]) => [...JSON.parse(key), count]);
})()
"""
ONCE = {"meta": 6, "link": 1, "title": 1, "style": 1, "body": 1, "h1": 1, "main": 1, "input": 1, "select": 1}


def untouched(page: Page, path: Path) -> None:
    """Assert that nothing ran, nothing was asked for, and that no text became an element."""
    assert page.console_errors == []
    assert page.requests == [path.resolve().as_uri()]
    assert page.evaluate("typeof pwned") == "undefined"
    scripts = len(re.findall("<script", path.read_text("utf-8").replace("&lt;", "")))
    counts = {**ONCE, "script": scripts}
    for name, attributes, links, count in page.evaluate(ELEMENTS):
        assert OWN_ELEMENTS.fullmatch(name), name
        assert [each for each in attributes if not OWN_ATTRIBUTES.fullmatch(each)] == [], name
        assert all(link.startswith("#") for link in links) or name == "link", links
        counts[name] = counts.get(name, count) - count
    assert [name for name in ONCE if counts[name] < 0] == []
    assert counts["script"] == 0


LISTED = "#list tbody a[href^='#/c/']"


def opened(page: Page, path: Path, hash: str = "", **more: Any) -> Page:
    page.open(path, hash=hash, **more)
    page.wait_for(READY)
    return page


def go(page: Page, hash: str) -> None:
    """Follow a link within the page to its end: to the view and, of a conversation, to its turns."""
    page.evaluate(
        "(() => { document.getElementById('conversation').replaceChildren();"
        f" location.hash = {json.dumps(hash)}; }})()"
    )
    if hash.startswith("#/c/"):
        page.wait_for("document.querySelector('#conversation h2')")
    else:
        page.frame()


def whole_text(page: Page) -> str:
    """Return every text of the page, unfolded."""
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    page.wait_for("[...document.querySelectorAll('.asked > div')].every(each => each.childNodes.length)")
    page.evaluate("document.querySelectorAll('#conversation .message button').forEach(each => each.click())")
    place = "(document.querySelector('#conversation:not([hidden])') || document.body)"
    return str(page.evaluate(f"document.title + '\\n' + {place}.textContent"))


def links(page: Page, selector: str) -> list[str]:
    found = f"[...document.querySelectorAll({json.dumps(selector)})].map(each => each.getAttribute('href'))"
    return list(dict.fromkeys(page.evaluate(found)))


def every_text(page: Page, path: Path) -> Iterator[str]:
    """Go through all views and conversations, and yield the text of each."""
    opened(page, path)
    yield whole_text(page)
    for hash in [*links(page, "#views a"), *links(page, LISTED)]:
        go(page, hash)
        yield whole_text(page)
    untouched(page, path)


def shown_in(page: Page, path: Path) -> str:
    """Return every text of a page, which was read without its script and then with it."""
    page.open(path, script=False)
    untouched(page, path)
    text = "\n".join(every_text(page, path))
    assert text == clean(text)
    return text


def is_whole(place: str, text: str) -> bool:
    """Check whether all of a text is there, as it is or as a string in JSON."""
    return hostile(place) in text or json.dumps(hostile(place), ensure_ascii=False)[1:-1] in text


def places_in(text: str) -> set[str]:
    return set(re.findall("«([^»/]+)»", text))


def test_the_page_of_a_run_shows_every_text_and_obeys_none(page: Page, ran: Ran) -> None:
    text = shown_in(page, ran.page)
    assert (WHOLE | BRIEF) - places_in(text) == set()
    assert [place for place in sorted(WHOLE) if not is_whole(place, text)] == []


def test_the_page_of_a_log_shows_every_text_and_obeys_none(page: Page, scored: Path) -> None:
    text = shown_in(page, scored)
    assert IN_LOG - places_in(text) == set()


def test_the_pages_of_a_comparison_and_a_history_obey_no_text(page: Page, ran: Ran) -> None:
    for path in (ran.diff, ran.history):
        assert "run id" in places_in(shown_in(page, path))


# ── links and the filter ─────────────────────────────────────────────────────────────────────────

FIRST_MESSAGE = "document.querySelector('#turn-1 .message.user .text')?.textContent ?? ''"


def heads(page: Page, hashes: list[str]) -> list[tuple[str, str]]:
    """Return the headline and the first message of each conversation that a link leads to."""
    found = []
    for hash in hashes:
        go(page, hash)
        found.append((page.evaluate("document.querySelector('#conversation h2').textContent"),
                      page.evaluate(FIRST_MESSAGE)))  # fmt: skip
    return found


def test_the_links_of_every_id_lead_to_its_conversation(page: Page, scored: Path) -> None:
    page.open(scored, script=False)
    assert "" not in map(str.strip, page.evaluate(ROWS))
    written = [link for link in links(page, "a") if link.startswith("#/c/")]
    opened(page, scored)
    assert "" not in map(str.strip, page.evaluate(ROWS))
    drawn = links(page, LISTED)
    assert len(drawn) == len(IDS) + len(HUGE) + 1
    numbers = []
    for head, message in heads(page, drawn):
        if number := re.match(r"number (\d+): ", message):
            numbers.append(int(number[1]))
            assert " ".join(clean([*IDS, *HUGE][numbers[-1]]).split()) in " ".join(head.split())
    assert sorted(numbers) == list(range(len(drawn) - 1))
    assert written
    assert [head for head, _ in heads(page, written) if "There is no such" in head] == []


ROWS = "[...document.querySelectorAll('#list tbody td:nth-child(2) > a')].map(each => each.textContent)"


def typed(page: Page, text: str) -> list[str]:
    """Put a text into the filter as a paste would, and return the names of the rows."""
    page.evaluate(
        "(() => { const box = document.getElementById('filter');"
        f" box.value = {json.dumps(text)}; box.dispatchEvent(new Event('input')); }})()"
    )
    return list(page.evaluate(ROWS))


FILTERS = (
    "(((((", "v:", "v:constructor", "__proto__:x", "score.<3", "score.x<", "constructor<3", "__proto__<3",
    "toString>0", '"unclosed', '"', "-", "--", "-v:", "<>", "a<1e999", "%", "%E0%A4%A", "\ud800", "\u202e",
    "\\",
    "[^", "*", "<script>pwned()</script>", "&all=1#/", "a" * 100_000, '"' * 99_999, "<" * 100_000,
    "x:" * 50_000, "1" * 100_000,
)  # fmt: skip


def test_no_filter_breaks_the_list(page: Page, ran: Ran) -> None:
    opened(page, ran.page)
    for text in FILTERS:
        typed(page, text)
        assert page.text("#list-tools").endswith(f" of {len(SCENARIOS)}"), text[:100]
        kept = page.evaluate("decodeURIComponent(location.hash)")
        assert kept == f"#/?q={text}".replace("\ud800", "\ufffd")
        assert typed(page, "id:calls") == ["calls"]
    untouched(page, ran.page)


def test_a_tag_leads_to_the_rows_that_have_it(page: Page, ran: Ran) -> None:
    opened(page, ran.page)
    tags = dict(page.evaluate(
        "[...document.querySelectorAll('#list tr:first-child .tags a')]"
        ".map(each => [each.textContent, each.getAttribute('href')])"
    ))  # fmt: skip
    assert list(tags) == [brief("tag"), *ODD_TAGS]
    for hash in tags.values():
        go(page, hash)
        assert sorted(page.evaluate(ROWS)) == sorted(SCENARIOS)
    go(page, "#/?q=tag:nobody")
    assert page.evaluate(ROWS) == []


NOBODY = "There is no such conversation"
TYPED_LINKS = {
    "#/c/%E0%A4%A": NOBODY,
    "#/c/x/NaN": NOBODY,
    "#/c": NOBODY,
    "#/c/__proto__/0": NOBODY,
    "#/c/calls/1/turn/__proto__?agent=": "calls, epoch 1",
    "#/c/calls/1?variant": "calls, epoch 1",
    "#/c/calls/1?beside=9,x&__proto__=1&constructor=2": "calls, epoch 1",
    "#/c/calls/1.0": "calls, epoch 1",
    "#/c/judged/1?beside=2,": "judged, epoch 1",
    "#/__proto__": "",
    "#/constructor": "",
    "#/conversation": "",
    "#conversation": "",
    "#list": "",
    "#list-title": "",
    "#/?q=%E0%A4%A&all=1": "",
    "#/?all=1": "",
    "#/?__proto__=x&q=": "",
    "#" + "/" * 10_000: "",
}
"""The headline of the conversation that is shown; empty for the list."""


def test_a_link_that_was_typed_leads_somewhere(page: Page, ran: Ran) -> None:
    for hash, shown in TYPED_LINKS.items():
        opened(page, ran.page, hash)
        assert page.evaluate("document.getElementById('conversation').hidden") is not bool(shown), hash
        if shown:
            assert shown in page.text("#conversation h2")
        else:
            assert page.text("#list-tools").endswith(f" of {len(SCENARIOS)}"), hash
        for key in ("c", "e", "Escape", "u") if shown == NOBODY else ():
            page.press(key)
        page.wait_for(f"document.getElementById('conversation').hidden || {json.dumps(shown != NOBODY)}")
        assert page.console_errors == [], hash
    untouched(page, ran.page)


# ── what is shown and what is copied ─────────────────────────────────────────────────────────────


def copied(page: Page, name: str) -> str:
    page.evaluate("document.getElementById('status').textContent = ''")
    page.click(f"#copy-{name}")
    page.wait_for("document.getElementById('status').textContent === 'copied'")
    return page.clipboard()


def test_texts_are_shown_as_every_report_shows_them(page: Page, ran: Ran) -> None:
    opened(page, ran.page, "#/c/calls/1")
    answer = ran.sample("calls")["turns"][0]["agent"]
    assert UNSEEN.replace("\ud800", "\ufffd") in answer
    shown = "[...document.querySelectorAll('#turn-1 .agent .text')].map(each => each.textContent)"
    assert page.evaluate(shown) == [clean(hostile("step") + EVERY), clean(answer)]
    marks = page.evaluate(
        "[...document.querySelectorAll('#turn-1 .agent mark')].map(each => each.textContent)"
    )
    assert marks[-1] == PATTERN


def test_values_are_shown_as_they_were_written(page: Page, ran: Ran) -> None:
    opened(page, ran.page, "#/c/numbers/1")
    arguments, result = page.evaluate(
        "[...document.querySelectorAll('#turn-1 .call pre')].map(each => each.textContent)"
    )
    assert arguments == f'{{\n  "id": 12345678901234567890,\n  "large": 1{"0" * 400}\n}}'
    assert (
        " ".join(result.split()) == '{ "price": 1.10, "id": 12345678901234567890, "id": 2, "text": "a ü 😀" }'
    )
    of = {"run": RUN_ID, "scenario": "numbers", "agent": brief("agent")}
    assert json.loads(copied(page, "json")) == {**ran.sample("numbers"), **of}
    go(page, "#/c/calls/1")
    sample = json.loads(copied(page, "json"))
    assert sample == {**ran.sample("calls"), **of, "scenario": "calls"}
    (call,) = sample["turns"][0]["tool_calls"]
    assert list(call["args"]) == ["__proto__", "constructor", "toString", "hasOwnProperty"]
    page.click("#turn-1 .call button")
    written = page.evaluate("document.querySelector('#turn-1 .call pre').textContent")
    assert json.loads(written) == call["args"]


MARKDOWN = {
    "heading", "paragraph", "fence", "inline", "text", "code_inline", "strong", "bullet_list", "list_item",
}  # fmt: skip


def test_markdown_is_text_alone(page: Page, ran: Ran) -> None:
    opened(page, ran.page)
    for scenario in ("calls", "judged", "raises"):
        go(page, f"#/c/{scenario}/1")
        sample = ran.sample(scenario)
        tokens = MarkdownIt().parse(copied(page, "markdown"))
        inline = [each for token in tokens for each in token.children or ()]
        kinds = {each.type.removesuffix("_open").removesuffix("_close") for each in (*tokens, *inline)}
        assert kinds <= MARKDOWN
        assert MARKUP not in "".join(each.content for each in inline if each.type == "text")
        fences = [token.content for token in tokens if token.type == "fence"]
        for turn in sample["turns"]:
            assert turn["user"] + "\n" in fences
            assert (turn.get("error") or turn["agent"]).replace("\x00", "\ufffd") + "\n" in fences
        words = shlex.split(fences[-1])
        assert words[:5] == ["agenteval", "run", f"scenarios/{SUITE}", "-s", scenario]


def test_the_command_that_is_copied_is_one_command(page: Page, scored: Path) -> None:
    opened(page, scored)
    names = []
    for hash in links(page, LISTED)[:: len(IDS) // 6]:
        go(page, hash)
        words = shlex.split(copied(page, "command"))
        assert words[:5] == ["agenteval", "score", f"{FILE}.jsonl", "--scenario-from", "task"]
        assert words[5] == "-s"
        names += words[6:]
    assert len(names) > 6
    assert set(names) <= {" ".join(clean(name).split()) for name in (*IDS, *HUGE)}


def test_the_search_finds_what_was_written_and_not_the_keys_of_the_record(page: Page, ran: Ran) -> None:
    opened(page, ran.page)
    for text, found in {
        "12345678901234567890": ["numbers"],
        '"price": 1.10': ["numbers"],
        "hasOwnProperty": ["calls"],
        "score_failures": [],
        "latency_ms": [],
        "</textarea></title></template>-->": list(SCENARIOS),
        "(((((": [],
    }.items():
        typed(page, text)
        page.click("#search-all")
        page.wait_for("document.getElementById('search-all').textContent === 'Search in all conversations'")
        assert sorted(page.evaluate(ROWS)) == sorted(found), text
        go(page, "#/")
    untouched(page, ran.page)


# ── the policy ───────────────────────────────────────────────────────────────────────────────────

LISTEN = """
document.addEventListener('securitypolicyviolation', event => { window.refused = event.effectiveDirective; })
"""
RED = "color: rgb(1, 2, 3)"


def adding(tag: str, **properties: str) -> str:
    return f"document.body.append(Object.assign(document.createElement('{tag}'), {json.dumps(properties)}))"


ATTACKS = (
    (f"document.body.setAttribute('style', '{RED}')", "style-src-attr"),
    (adding("style", textContent=f"* {{ {RED} }}"), "style-src-elem"),
    (adding("link", rel="stylesheet", href="SERVER/x.css"), "style-src-elem"),
    (adding("base", href="SERVER/"), "base-uri"),
    (adding("img", src="SERVER/x.png"), "img-src"),
    (adding("iframe", src="SERVER/"), "frame-src"),
    (adding("video", src="SERVER/"), "media-src"),
    (f"{adding('form', id='f', action='SERVER/')}; document.getElementById('f').submit()", "form-action"),
    ("fetch('SERVER/').catch(() => 0)", "connect-src"),
    ("navigator.sendBeacon('SERVER/', 'x')", "connect-src"),
    ("document.body.setAttribute('onclick', 'pwned = 1')", "require-trusted-types-for"),
    (adding("script", text="pwned = 1"), "require-trusted-types-for"),
    (adding("script", src="SERVER/x.js"), "require-trusted-types-for"),
    (adding("object", data="SERVER/"), "require-trusted-types-for"),
    (adding("iframe", srcdoc="<script>parent.pwned = 1</script>"), "require-trusted-types-for"),
    ("document.getElementById('/').innerHTML = '<img src=x onerror=pwned()>'", "require-trusted-types-for"),
    (
        "const made = document.createElement('script'); made.append('pwned = 1'); document.body.append(made)",
        "require-trusted-types-for",
    ),
)
"""What an injection would do, and the directive of the policy that refuses it."""


def test_the_policy_refuses_what_an_injection_would_do(page: Page, ran: Ran) -> None:
    opened(page, ran.page)
    page.evaluate(LISTEN)
    with LocalServer(respond_json({})) as server:
        for attack, directive in ATTACKS:
            page.evaluate("void (window.refused = null)")
            with contextlib.suppress(PageError):
                page.evaluate(f"(() => {{ {attack.replace('SERVER', server.address)} }})()")
            page.wait_for("window.refused")
            assert page.evaluate("refused") == directive, attack
        page.evaluate("document.body.click()")
        page.frame()
        assert server.requests == []
    assert page.evaluate("typeof pwned") == "undefined"
    assert page.evaluate("getComputedStyle(document.querySelector('h1')).color") != "rgb(1, 2, 3)"
    assert page.evaluate("document.baseURI.startsWith('file:')")
    assert page.text("h1")


def test_markup_that_were_not_escaped_would_not_run(page: Page, ran: Ran, tmp_path: Path) -> None:
    injected = (
        "<script>pwned = 1</script><p onclick='pwned = 1' id=injected style='color: rgb(1, 2, 3)'>x</p>"
        "<img src=x onerror='pwned = 1'><svg onload='pwned = 1'></svg>"
        "<a href='javascript:pwned = 1' id=link>x</a>"
    )
    text = ran.page.read_text("utf-8")
    assert "<header>" in text
    path = written(tmp_path, text.replace("<header>", f"<header>{injected}"))
    opened(page, path)
    page.click("#injected")
    page.click("#link")
    page.frame()
    assert page.evaluate("typeof pwned") == "undefined"
    assert page.evaluate("getComputedStyle(document.getElementById('injected')).color") != "rgb(1, 2, 3)"
    assert len([each for each in page.console_errors if "Content Security Policy" in each]) >= 6


# ── files that are damaged, and browsers that are old ────────────────────────────────────────────


CUT = "This file was cut off when it was written or copied."


def written(folder: Path, text: str) -> Path:
    path = folder / "damaged.html"
    path.write_text(text, "utf-8")
    return path


def test_a_file_that_was_cut_off_shows_its_verdict_and_what_happened(
    page: Page, ran: Ran, tmp_path: Path
) -> None:
    text = ran.page.read_text("utf-8")
    index, block = text.index('id="index">'), text.index('id="block-0">')
    views = [text.index('id="list"') + 200, text.index('id="/gates"') + 200]
    for end in (len(text) // 2, *views, index + 500, block + 5, block + 5000, len(text) - 30):
        opened(page, written(tmp_path, text[:end]))
        assert "FAILED" in page.text("h1")
        assert CUT in page.text("header")
        if end > block:
            assert sorted(page.evaluate(ROWS)) == sorted(SCENARIOS)
            go(page, links(page, LISTED)[0])
            is_whole = end > block + 5000
            assert ("This conversation cannot be shown" in page.text("#conversation h2")) is not is_whole
            page.press("c")
            page.press("u")
            page.wait_for("document.getElementById('conversation').hidden")
        elif end > index:
            assert "cannot be read" in page.text("#list-more")
        assert page.console_errors == []
    opened(page, ran.page)
    assert CUT not in page.text("header")


def test_a_broken_block_breaks_its_own_conversations_alone(page: Page, ran: Ran, tmp_path: Path) -> None:
    text = ran.page.read_text("utf-8")
    at = text.index('id="block-0">') + 200
    path = written(tmp_path, text[:at] + "zzzzz" + text[at + 5 :])
    opened(page, path)
    heads = {}
    for hash in links(page, LISTED):
        go(page, hash)
        heads[hash] = page.text("#conversation h2")
    broken = [hash for hash, head in heads.items() if "This conversation cannot be shown" in head]
    assert 0 < len(broken) < len(heads)
    opened(page, path, broken[0])
    assert "FAILED" in page.text("h1")
    assert "is the file complete?" in page.text("#conversation h2")
    go(page, "#/")
    typed(page, "again")
    page.click("#search-all")
    page.wait_for(
        "document.getElementById('list-tools').innerText.includes('some conversations cannot be read')"
    )
    assert 0 < len(page.evaluate(ROWS)) < len(SCENARIOS)
    assert page.console_errors == []


def test_broken_requests_leave_the_conversation(page: Page, ran: Ran, tmp_path: Path) -> None:
    text = ran.page.read_text("utf-8")
    path = written(tmp_path, re.sub(r'(id="requests-\d+">.{200}).{5}', r"\1zzzzz", text))
    opened(page, path, "#/c/judged/1")
    page.click("#turn-1 .asked summary")
    page.wait_for("document.querySelector('#turn-1 .asked div').textContent.includes('cannot be read')")
    assert page.console_errors == []


def test_an_old_browser_shows_the_verdict_and_why_it_shows_no_more(page: Page, ran: Ran) -> None:
    call = page.call("Page.addScriptToEvaluateOnNewDocument", source="delete window.DecompressionStream")
    opened(page, ran.page, "#/c/calls/1")
    assert "FAILED" in page.text("h1")
    assert "no DecompressionStream" in page.text("#list-more")
    assert page.text("#list tbody a")
    untouched(page, ran.page)
    page.call("Page.removeScriptToEvaluateOnNewDocument", identifier=call["identifier"])


def test_a_browser_that_refuses_to_change_its_address_filters_all_the_same(page: Page, ran: Ran) -> None:
    opened(page, ran.page)
    page.evaluate("history.replaceState = () => { throw new DOMException('too often', 'SecurityError'); }")
    assert typed(page, "id:calls") == ["calls"]
    assert page.console_errors == []


HELD_BACK = """
(() => {
  const read = Response.prototype.text;
  window.release = null;
  Response.prototype.text = async function() {
    Response.prototype.text = read;
    const text = await this.text();
    await new Promise(done => { window.release = done; });
    return text;
  };
})()
"""
"""The first block that is read waits until it is released."""


def test_the_conversation_that_was_asked_for_last_is_shown(page: Page, ran: Ran) -> None:
    opened(page, ran.page)
    page.evaluate(HELD_BACK)
    page.evaluate("void (location.hash = '#/c/calls/1')")
    page.wait_for("window.release !== null")
    page.evaluate("void (location.hash = '#/c/raises/1')")
    page.wait_for("document.querySelector('#conversation h2').textContent.includes('raises')")
    page.evaluate("release()")
    page.frame()
    assert "raises" in page.text("#conversation h2")


def test_without_a_script_everything_that_decides_is_text(page: Page, ran: Ran) -> None:
    page.open(ran.page, script=False)
    shown = page.text("body")
    texts = (
        brief("run id"),
        brief("issue"),
        brief("label"),
        "ValueError: «error» <script>",
        "«owner» <script>",
    )
    for part in ("FAILED", "exit 1", "every sample passes", "Against", "toString", *texts, *SCENARIOS[:-1]):
        assert part in shown
    assert page.evaluate("document.title").startswith("agenteval · failed: «run id» <script>")
    untouched(page, ran.page)
