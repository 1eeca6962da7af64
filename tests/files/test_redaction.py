"""Secrets stay out of all that is written, in whatever form they come; and what is written may be read by its
owner alone."""

from __future__ import annotations

import csv
import gzip
import json
import os
import re
import stat
import sys
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator
from html import escape
from io import StringIO
from pathlib import Path
from random import Random
from string import ascii_letters
from typing import Any, SupportsIndex
from urllib.parse import quote, quote_plus
from xml.etree import ElementTree

import pytest

from agenteval.core import safe_text
from agenteval.core.config import AcceptedFailure, Config
from agenteval.core.errors import AuthorError
from agenteval.core.event import Event
from agenteval.core.providers import PROVIDERS
from agenteval.files import redaction
from agenteval.files.redaction import (
    KEY_VARIABLES,
    MASK,
    mask_value,
    redact_csv,
    redact_events,
    redact_html,
    redact_json,
    redact_keys,
    redact_xml,
    redactor,
    register_marked_secrets,
    register_secrets,
    secret_forms,
)
from tests.support.kit import Done, Project
from tests.support.known_secrets import known_secrets
from tests.support.local_servers import LocalServer, chat, respond_json
from tests.support.pages import index_of, packed_in, records_in, without_data
from tests.support.plans import begun

KEY = "sk-proj/4f1d+9e77b2=Qx"
PLAIN = "sk-canary4f1d9e77b2Qx"


def in_base64(key: str, before: int, after: int, *, padded: bool, url: bool) -> str:
    text = b"x" * before + key.encode() + b"y" * after
    packed = (urlsafe_b64encode if url else b64encode)(text).decode()
    return packed if padded else packed.rstrip("=")


# ── the forms ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("key", [KEY, PLAIN, "sixsix", "seven77", "eight888", "schlüssel-ß", 'quo"ted\\key'])
@pytest.mark.parametrize("url", [True, False])
@pytest.mark.parametrize("padded", [True, False])
@pytest.mark.parametrize("after", [0, 1, 2, 3])
@pytest.mark.parametrize("before", [0, 1, 2, 3, 4, 5])
def test_base64_at_every_offset(key: str, before: int, after: int, padded: bool, url: bool) -> None:
    """What is left of it says nothing: less than a character at either end."""
    text = in_base64(key, before, after, padded=padded, url=url)
    masked = redactor([key])(f"token={text}.")
    assert MASK in masked
    left = masked.removeprefix("token=").removesuffix(".").split(MASK)
    at_ends = len(in_base64("", before, 0, padded=False, url=url)) + 2, after * 8 // 6 + 4
    assert [len(each) <= most for each, most in zip(left, at_ends, strict=True)] == [True, True], masked


@pytest.mark.parametrize("key", [KEY, PLAIN, 'quo"ted\\key', "schlüssel/ß"])
def test_urls_and_json(key: str) -> None:
    mask = redactor([key])
    for form in (
        key,
        quote(key),
        quote(key, safe=""),
        quote_plus(key),
        re.sub("%..", lambda found: found[0].lower(), quote(key, safe="")),
    ):
        for text in (form, json.dumps(form), json.dumps(json.dumps(form)), form.replace("/", "\\/")):
            assert mask(f"<{text}>").strip('<>"\\') == MASK, text


def test_the_longest_form_goes_first() -> None:
    """Of two keys the one is the beginning of the other: nothing of the longer one is left."""
    assert redactor(["secret-key", "secret-key-and-more"])("secret-key-and-more") == MASK
    padded = in_base64("secret-key", 0, 0, padded=True, url=False)
    assert redactor(["secret-key"])(padded) == MASK  # and not MASK with the padding


def test_a_padded_text_is_masked_without_its_padding_too() -> None:
    padded = in_base64("secret-key", 0, 0, padded=True, url=False)
    assert padded.endswith("=")
    assert redactor(["secret-key"])(padded.rstrip("=")) == MASK


def test_six_characters_are_a_secret_and_five_are_none() -> None:
    assert redactor(["abcdef"])("(abcdef)") == f"({MASK})"
    assert secret_forms(["abcde"]) == ()
    assert redactor(["abcde"])("(abcde)") == "(abcde)"


UNSEEN = ["\u200b", "\u200d", "\u00ad", "\x1b[31m", "\x00", "\u202e", "\ufeff", "\x1b]8;;x\x07"]


@pytest.mark.parametrize("sign", UNSEEN)
def test_signs_that_nobody_sees_hide_no_key(sign: str) -> None:
    mask = redactor([PLAIN])
    for at in range(1, len(PLAIN)):
        text = f"the key: {PLAIN[:at]}{sign}{PLAIN[at:]}."
        assert mask(text) == f"the key: {MASK}."
    assert mask(f"{sign}a{sign}.".join([*PLAIN])) != MASK  # other signs between: it is not a key
    assert mask(sign.join(PLAIN) + sign) == MASK + sign
    twice = mask(f"{PLAIN[:3]}{sign}{PLAIN[3:]} and {sign}{PLAIN[:5]}{sign}{PLAIN[5:]}")
    assert twice == f"{MASK} and {sign}{MASK}"


def test_unseen_is_all_that_cleaning_takes_away() -> None:
    for code in range(sys.maxunicode + 1):
        if 0xD800 <= code <= 0xDFFF or chr(code) in "\r\u2028\u2029":
            continue
        if not safe_text.clean(chr(code)):
            assert safe_text.find_invisible(f"a{chr(code)}é") == [(1, 2)], hex(code)


@pytest.mark.parametrize("mark", ["…", "...", "\\u2026", "… [7 more characters]"])
def test_a_part_of_a_key_at_a_cut_is_masked(mark: str) -> None:
    mask = redactor([PLAIN])
    packed = in_base64(PLAIN, 0, 0, padded=False, url=False)
    for at in range(6, len(PLAIN)):
        assert mask(f"p p {PLAIN[:at]}{mark} p") == f"p p {MASK}{mark} p"
        assert mask(f"p {packed[:at]}{mark}") == f"p {MASK}{mark}"
    assert mask(f"p p {PLAIN[:5]}{mark}") == f"p p {PLAIN[:5]}{mark}"  # too common to be a part of one
    assert mask("\u200b".join(PLAIN[:12]) + mark) == MASK + mark
    for at in range(1, len(PLAIN) - 5) if not mark.endswith("]") else ():
        assert mask(f"p {mark}{PLAIN[at:]} p") == f"p {mark}{MASK} p"
        both = f"{PLAIN[:-1]}{mark}{PLAIN[at:]}"
        assert mask(both) == f"{MASK}{mark}{MASK}"
    text = f"ordinary {PLAIN[:9]} and {mark} {PLAIN[-7:]}, {PLAIN[3:12]}{mark}"
    assert mask(text) == text


def test_a_text_of_nothing_but_cuts_takes_no_time() -> None:
    text = f"{PLAIN[:4]}x…" * 50_000 + "." * 100_000
    assert redactor([PLAIN])(text) == text


# ── how often a text is searched ─────────────────────────────────────────────────────────────────


class Watched(str):
    """A text that counts how often it is searched, or a part of it is looked at."""

    looks = 0

    def __contains__(self, part: str) -> bool:
        self.looks += 1
        return super().__contains__(part)

    def __getitem__(self, at: SupportsIndex | slice) -> str:
        self.looks += 1
        return super().__getitem__(at)

    def find(self, *args: Any) -> int:
        self.looks += 1
        return super().find(*args)


def key_of(length: int, number: int = 0) -> str:
    """A key of letters, of which no two have much in common."""
    random = Random(f"{length} {number}")
    return "".join(random.choice(ascii_letters) for _ in range(length))


def looks_at(text: str, keys: list[str]) -> int:
    watched = Watched(text)
    assert redactor(keys)(watched) == text
    return watched.looks


@pytest.mark.parametrize("text", ["plain words. " * 999, "words — and more… " * 999, "\u200b\0a" * 999])
def test_a_text_is_searched_once_whatever_the_number_of_keys(text: str) -> None:
    keys = [key_of(length, number) for length in (24, 51, 164) for number in range(5)]
    assert 0 < looks_at(text, keys[-1:]) == looks_at(text, keys[-5:]) == looks_at(text, keys)


def test_without_keys_a_text_is_not_looked_at() -> None:
    assert looks_at("a… \u200b" * 99, []) == 0
    assert looks_at("a… \u200b" * 99, ["short"]) == 0


@pytest.mark.parametrize("length", range(6, 45))
def test_a_key_is_found_wherever_it_begins(length: int) -> None:
    key, longer = key_of(length), key_of(60)
    for before in range(2 * length):
        for after in ("", ".", "." * 70):
            text = f"{'-' * before}{key}{after}"
            assert redactor([key])(text) == redactor([key, longer])(text) == f"{'-' * before}{MASK}{after}"


@pytest.mark.parametrize("gap", ["\u200b", "\0", "\x1b"])
def test_gaps_are_found_once_a_text_unless_a_key_is_between_them(
    monkeypatch: pytest.MonkeyPatch, gap: str
) -> None:
    gaps_found: list[str] = []
    seen: list[Watched] = []

    def find(text: str, **more: bool) -> list[tuple[int, int]]:
        gaps_found.append(text)
        return safe_text.find_invisible(text, **more)

    def remove(text: str, **more: bool) -> str:
        seen.append(Watched(safe_text.remove_invisible(text, **more)))
        return seen[-1]

    monkeypatch.setattr(redaction, "find_invisible", find)
    monkeypatch.setattr(redaction, "remove_invisible", remove)
    keys = [key_of(50, number) for number in range(10)]
    text = f"{gap}a" * 99 + gap * 999
    for known in (keys[:1], keys):
        seen.clear()
        assert redactor(known)(text) == text
        # What a terminal shows is searched once; what a file shows is the same, and needs no search.
        assert [each.looks for each in seen] == [looks_at("a" * 99, keys[:1]), 0]
        assert gaps_found == []
    seen.clear()
    assert redactor(keys)(gap.join(keys[3]) + text) == MASK + text
    assert len(gaps_found) == 1
    assert len(seen) <= 4


INVISIBLE = (
    *(0xAD, 0x34F, 0x61C, 0x70F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180E, 0x180F, 0x200B, 0x200E),
    *(0x202A, 0x202E, 0x2060, 0x2061, 0x2065, 0x206F, 0x3164, 0xFE00, 0xFE0F, 0xFEFF, 0xFFA0, 0xFFF0),
    *(0xFFF9, 0xFFFB, 0x1BCA0, 0x1D173, 0xE0001, 0xE0100, 0xE0FFF, 0x00, 0x07, 0x7F, *range(0x80, 0xA0)),
)


@pytest.mark.parametrize("code", INVISIBLE, ids=hex)
def test_no_invisible_sign_hides_a_key(code: int) -> None:
    key = "sk-live-Zq7xW2mP9vKt4RbY8cNd"
    text = chr(code).join([key[:9], key[9:18], key[18:]])
    assert redactor([key])(f"a {text} | {text} b") == f"a {MASK} | {MASK} b"


def test_json_stays_json() -> None:
    register_secrets(["123456", "12.5e3a", '"},{"a'])
    text = json.dumps(
        {"pin": 123456, "text": "pin 123456", "rate": 0.123456789, "12.5e3a": 'x"},{"a'}, indent=2
    )
    hidden = json.loads(redact_json(text))
    assert hidden == {"pin": 123456, "text": "pin ***", "rate": 0.123456789, "***": "x***"}
    assert mask_value(["123456", {"123456": 1}], redactor(["123456"])) == ["***", {"***": 1}]
    register_secrets([])


SIGNS = "pass&word<of>the-shop's-77"


@pytest.fixture
def known() -> Iterator[None]:
    """Secrets of this process; one is a word of the markup, and one has characters that markup escapes."""
    with known_secrets(PLAIN, "section", SIGNS):
        yield


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (f"<p>{PLAIN}</p>", "<p>***</p>"),
        (f"<p>a {PLAIN}<b>{PLAIN}</b> c</p>\n{PLAIN}", "<p>a ***<b>***</b> c</p>\n***"),
        (f"<p>\n{PLAIN[:9]}\u200b{PLAIN[9:]}\n</p>", "<p>\n***\n</p>"),
        (f"<title>{PLAIN}</title><pre>{PLAIN}</pre>", "<title>***</title><pre>***</pre>"),
        ('<section class="section">section</section>', '<section class="section">***</section>'),
        (f"<script>'{PLAIN}' > 1</script>", f"<script>'{PLAIN}' > 1</script>"),
        (f"<style>.a > {PLAIN} {{}}</style>", f"<style>.a > {PLAIN} {{}}</style>"),
        (
            f'<script type="text/plain" id="a">{PLAIN}</script>{PLAIN}<script>\n{PLAIN}\n</script>{PLAIN}',
            f'<script type="text/plain" id="a">{PLAIN}</script>***<script>\n{PLAIN}\n</script>***',
        ),
        (f"<scripts>{PLAIN}</scripts>", "<scripts>***</scripts>"),
        ("<p>nothing</p>", "<p>nothing</p>"),
        (f"<p>{PLAIN[:9]}…</p>", "<p>***…</p>"),
        (f'<p>a &amp; {escape(SIGNS)} &lt;b&gt; "</p>', "<p>a &amp; *** &lt;b&gt; &quot;</p>"),
        (f"<p>a {escape(SIGNS, quote=False)}</p>", "<p>a ***</p>"),
        ("<p>a &amp; b &#x27; &quot; '</p>", "<p>a &amp; b &#x27; &quot; '</p>"),
        (f'<a href="#/c/{PLAIN}/1" class="{PLAIN}">x</a>', f'<a href="#/c/***/1" class="{PLAIN}">x</a>'),
        (f'<a href="#/c/{quote(SIGNS, safe="")}/1">x</a>', '<a href="#/c/***/1">x</a>'),
        (f'<b title="{escape(SIGNS)} &amp; b"></b>', '<b title="*** &amp; b"></b>'),
        (f'<svg aria-label="of {PLAIN} &lt;"></svg>', '<svg aria-label="of *** &lt;"></svg>'),
        ('<a href="#section" id="section">a</a>', '<a href="#***" id="section">a</a>'),
    ],
)
def test_html_keeps_its_markup_and_its_scripts(text: str, masked: str) -> None:
    assert redact_html(text) == masked


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("<section>section</section>", "<section>***</section>"),
        (f'<a b="{PLAIN}" section="x {PLAIN} &gt;">{PLAIN}</a>', '<a b="***" section="x *** &gt;">***</a>'),
        (f'<a b="{escape(SIGNS)}">1 &lt; {escape(SIGNS, quote=False)}</a>', '<a b="***">1 &lt; ***</a>'),
        ("<a b='&#10;'>&amp;\n&quot;</a>", "<a b='&#10;'>&amp;\n&quot;</a>"),
    ],
)
def test_xml_keeps_its_markup(text: str, masked: str) -> None:
    assert redact_xml(text) == masked


WORDS_OF_A_TABLE = {"properties": {"verdict": {"enum": ["passed"]}, "latency": {}}}


def masked_csv(text: str, *secrets: str) -> list[list[str]]:
    register_secrets(secrets)
    try:
        hidden = redact_csv(text, lambda: WORDS_OF_A_TABLE)
    finally:
        register_secrets([])
    return list(csv.reader(StringIO(hidden, newline=""), strict=True))


@pytest.mark.parametrize(
    ("text", "secret", "cells"),
    [
        ('"a","b"\n', "nothing", [["a", "b"]]),
        ('"key: 123456",123456,-123456.5,1.123456e-05\n', "123456",
         [["key: ***", "123456", "-123456.5", "1.123456e-05"]]),
        ('"123456"\n', "123456", [["***"]]),
        ('"a quo""ted key",1\n', 'quo"ted', [["a *** key", "1"]]),
        ('"""begins","ends"""\n', '"begins', [["***", 'ends"']]),
        ('"one","two"\n', 'one","two', [["one", "two"]]),
        ('"two\nlines","x"\n', "two\nlines", [["***", "x"]]),
        ('verdict,latency\npassed,"passed"\n', "passed", [["verdict", "latency"], ["passed", "***"]]),
        ("verdict,latency\n", "verdict", [["verdict", "latency"]]),
        ("unquoted words,12\n", "unquoted", [["*** words", "12"]]),
        ('"a ""b"" secret",,""\n', "secret", [['a "b" ***', "", ""]]),
    ],
)  # fmt: skip
def test_csv_stays_csv(text: str, secret: str, cells: list[list[str]]) -> None:
    assert masked_csv(text, secret) == cells


def test_a_marked_secret_is_masked_in_each_cell_alone() -> None:
    """Next to the number of another cell it is not a part of a longer one."""
    register_marked_secrets(["4711"])
    try:
        assert redact_csv('"4711",5,"PIN 4711","14711"\n4711\n') == '"***",5,"PIN ***","14711"\n4711\n'
    finally:
        register_marked_secrets([])


def test_the_variables_of_all_providers_are_known() -> None:
    assert {name for provider in PROVIDERS.shipped.values() for name in provider.keys} == set(KEY_VARIABLES)


# ── through the command line ─────────────────────────────────────────────────────────────────────

MODEL_KEY = "mk-canary-81c0aa5d/x9"
PROVIDERS_KEY = "sk-provider-55d2bbe0c1"
ENV = {"JUDGES_KEY": MODEL_KEY, "ANTHROPIC_API_KEY": PROVIDERS_KEY}
AGENT = f"""
import base64
KEYS = ({MODEL_KEY!r}, {PROVIDERS_KEY!r})
def agent(message):
    forms = []
    for key in KEYS:
        forms += [key, key[:5] + "\\u200b" + key[5:], key[:7] + "\\x1b[31m" + key[7:]]
        forms += [base64.b64encode(b"x" * n + key.encode() + b"yz").decode() for n in range(3)]
    print(" ".join(forms[:1]))
    return " ".join(forms)
"""
FILES = ("results.json", "samples.csv", "junit.xml", "report.md", "report.html")
REPORTS = (
    "json=results.json",
    "csv=samples.csv",
    "junit=junit.xml",
    "markdown=report.md",
    "html=report.html",
    "github",
    "terminal",
)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, Done]:
    project = Project(tmp_path_factory.mktemp("redacted"))
    project.agent(AGENT)
    project.scenarios(
        """
        scenarios:
          - {id: a, turns: [hi], expect: {output: {contains: [nothing of this]}, criteria: [Answers.]}}
        """
    )
    reports = [part for report in REPORTS for part in ("--report", report)]
    refused = respond_json(
        {"error": {"message": f"bad key {MODEL_KEY[:4]}\u200b{MODEL_KEY[4:]}"}}, status=401
    )
    with LocalServer(refused) as server:
        model = f"{{model: openai-compatible/m, base_url: '{server.address}/v1', api_key_env: JUDGES_KEY}}"
        project.config(f"models: {{default: {model}}}\nmetrics: []\n")
        env = {**ENV, "GITHUB_STEP_SUMMARY": str(project.root / "summary.md")}
        done = project.call("run", "-v", "--record", "tape.jsonl", *reports, env=env)
    assert done.code == 1, done.all
    return project, done


def written(project: Project) -> dict[str, str]:
    paths = [path for path in project.root.rglob("*") if path.is_file()]
    own = {"agent.py", "agenteval.yaml", "suite.yaml"}
    texts = {path.name: _text(path) for path in paths if path.name not in own and path.suffix != ".pyc"}
    return texts | packed_in(texts.get("report.html", ""))


def _text(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8")


def shown(text: str) -> str:
    """As a reader sees it: without what is cleaned away, and with the escapes of JSON read."""
    text = re.sub(r"\\\\u00([01][0-9a-f])", lambda found: chr(int(found[1], 16)), text)
    return safe_text.clean(text)


@pytest.mark.parametrize("key", [MODEL_KEY, PROVIDERS_KEY])
def test_no_key_of_a_model_is_in_anything_that_is_written(told: tuple[Project, Done], key: str) -> None:
    project, done = told
    texts = {**written(project), "stdout": done.out}
    assert {
        "events.jsonl",
        "asked.jsonl.gz",
        "tape.jsonl",
        "results.json",
        "samples.csv",
        "junit.xml",
        "report.md",
        "report.html",
        "index",
        "block-0",
        "requests-0",
        "summary.md",
    } <= texts.keys()
    # What the author's own code prints is not agenteval's.
    texts["stderr"] = done.err.replace(f"{MODEL_KEY}\n", "\n")
    forms = [key, *(in_base64(key, n, 2, padded=False, url=False)[4:-4] for n in range(3))]
    for name, text in texts.items():
        assert not [form for form in forms if form in text or form in shown(text)], name
    assert MASK in texts["events.jsonl"]
    assert MASK in texts["results.json"]
    assert MASK in texts["stdout"]
    assert MASK in without_data(texts["report.html"])
    assert MASK in texts["index"]
    assert MASK in texts["block-0"]


@pytest.mark.skipif(sys.platform == "win32", reason="modes of files")
def test_what_may_hold_conversations_is_for_its_owner(told: tuple[Project, Done]) -> None:
    project, _ = told
    (journal,) = project.root.glob(".agenteval/runs/*/events.jsonl")
    paths = [
        journal,
        *(
            project.root / name
            for name in ("tape.jsonl", "results.json", "samples.csv", "junit.xml", "report.md", "report.html")
        ),
    ]
    assert {path.name: mode(path) for path in paths} == {path.name: 0o600 for path in paths}
    assert mode(journal.parent) == 0o700


@pytest.mark.skipif(sys.platform == "win32", reason="modes of files")
def test_a_report_keeps_the_mode_of_the_file_that_it_replaces(told: tuple[Project, Done]) -> None:
    project, _ = told
    report = project.root / "shared.xml"
    report.write_text("")
    os.chmod(report, 0o644)
    project.call("report", "latest", "--report", "junit=shared.xml", "--report", "json=own.json")
    assert (mode(report), mode(project.root / "own.json")) == (0o644, 0o600)
    assert "<testsuite" in report.read_text()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_secret_of_digits_breaks_no_number(project: Project) -> None:
    project.agent("def agent(message):\n    return 'Your code is 100000.'\n")
    project.config("budget: {max_tokens: 100000}\n")
    project.write(
        "agenteval.yaml",
        "agent: {target: 'agent.py:agent'}\nmetrics: []\nmodels: {default: {model: openai-compatible/m,"
        " base_url: 'http://localhost:1/v1', api_key_env: PIN}}\n",
    )
    project.scenarios("scenarios: [{id: a, turns: [hi], expect: {limits: {tokens: 100000}}}]")
    done = project.run(env={"PIN": "100000"})
    assert done.code == 0, done.all
    sample: dict[str, Any] = project.sample()
    assert sample["turns"][0]["agent"] == f"Your code is {MASK}."


WORDS = (
    *(
        "default",
        "scenario",
        "passed",
        "message",
        "failed",
        "system",
        "detail",
        "content",
        "expect",
        "metric",
    ),
    *("sample", "complete", "started", "finished", "failure", "run_started", "schema_version", "shipped"),
)


def test_secrets_that_are_ordinary_words_cost_no_run(project: Project) -> None:
    """All at once: words of the results, of the journal and of the scenarios themselves."""
    project.scenarios(
        """
        scenarios:
          - {id: a, turns: [hi], expect: {output: {contains: [on its way]}}}
          - {id: b, turns: [hi], expect: {output: {contains: [nowhere]}}}
        """
    )
    env = {f"TENANT_{number}": word for number, word in enumerate(WORDS)}
    with LocalServer(chat(f"It is on its way, {' '.join(WORDS)}.")) as server:
        headers = {f"X-{name.replace('_', '-')}": f"${{{name}}}" for name in env}
        agent = {"endpoint": f"{server.address}/v1/chat/completions", "headers": headers}
        project.write("agenteval.yaml", json.dumps({"agent": agent, "metrics": []}))
        reports = [part for name in ("junit=ju.xml", "html=page.html") for part in ("--report", name)]
        done = project.run("--report", "terminal", *reports, env=env)
    assert done.code == 1, done.all
    assert ElementTree.parse(project.root / "ju.xml").getroot().find(".//failure") is not None
    page = (project.root / "page.html").read_text("utf-8")
    assert [(row["id"], row["is"]) for row in index_of(page)["rows"]] == [
        ("b", ["failed"]),
        ("a", ["passed"]),
    ]
    records = records_in(packed_in(page)["block-0"])
    assert [record["sample"]["verdict"] for record in records] == ["failed", "passed"]
    results = project.results()
    assert results["summary"]["verdict"] == "failed"
    verdicts = {each["id"]: each["verdict"] for each in results["scenarios"]}
    assert verdicts == {"a": "passed", "b": "failed"}
    masked = " ".join([MASK] * len(WORDS))
    assert results["scenarios"][0]["samples"][0]["turns"][0]["agent"] == f"It is on its way, {masked}."
    assert project.call("report", "latest", env=env).code == done.code


# ── where validation takes no mere stars ─────────────────────────────────────────────────────────

CANARY = "tok_9f31c07ab2e4"
FUSSY = f"""
scenarios:
  - id: a
    turns: [hi]
    expect:
      output:
        not_contains: [{CANARY}, "{CANARY} or 0.123456"]
        matches: "it(?!{CANARY}+)"
        any_of: ["{CANARY}", way]
      tool_calls: {{forbidden: [{{name: x, args: {{key: {{$regex: "{CANARY}(?P<{CANARY}>z)"}}}}}}]}}
    tools: {{x: {{returns: {{"{CANARY}": 1}}}}}}
    thresholds: {{helpfulness: {{at_least: 3, share_below: {{2: 0.123456}}}}}}
"""


@pytest.mark.parametrize(
    ("secret", "why"),
    [
        (CANARY, "a needle or a pattern of mere stars would check nothing"),
        ("contains", "a word that validation knows"),
        ("capability", "another"),
        ("output", "a key that validation needs"),
        ("0.123456", "a number"),
    ],
)
def test_what_validation_would_refuse_is_masked_as_well(project: Project, secret: str, why: str) -> None:
    """A leak test looks for the very key that is kept from the agent: the event was written with it."""
    project.agent("def agent(message):\n    return 'It is on its way.'\n")
    project.scenarios(FUSSY)
    model = "{model: openai-compatible/m, base_url: 'http://localhost:1/v1', api_key_env: CANARY}"
    project.config(f"metrics: [helpfulness]\nmodels: {{default: {model}}}\n")
    done = project.run("--no-judge", env={"CANARY": secret})
    assert done.code in (0, 3), done.all  # 3: the threshold, which nobody judges
    (journal,) = project.root.glob(".agenteval/runs/*/events.jsonl")
    lines = [json.loads(line) for line in journal.read_text("utf-8").splitlines()]
    assert lines[0]["type"] == "run_started"
    expect = lines[0]["scenarios"][0]["expect"]
    if secret == CANARY:
        assert secret not in journal.read_text("utf-8") + json.dumps(project.results()), why
        assert expect["output"]["not_contains"] == [r"\*\*\*", r"\*\*\* or 0.123456"]
        assert expect["output"]["matches"] == [r"it(?!\*\*\*+)"]
    else:  # what it looks for is what it was, and where a text is free it is masked
        assert expect["output"]["any_of"] == [CANARY, "way"]
        assert secret not in json.dumps([each["args"] for each in expect["tool_calls"]["forbidden"]])
    assert project.call("report", "latest", env={"CANARY": secret}).code == done.code


def test_what_cannot_be_masked_is_not_written() -> None:
    """No form of a day that is none is a day: the event is refused, with its place and without the secret."""
    accepted = AcceptedFailure(fingerprint="ab12cd34ef56", owner="o", reason="r", expires="2026-09-10")
    config = Config(accepted_failures=(accepted,))
    started = begun(config)
    told: list[Event] = []
    with pytest.raises(AuthorError, match="expires") as refused:
        redact_events(told.append, ["2026-09-10"])(started)
    assert told == []
    assert "2026" not in str(refused.value)
    redact_events(told.append, ["2026-09-11"])(started)
    assert told == [started]


# ── keys where names belong ──────────────────────────────────────────────────────────────────────

PASTED = "sk-proj-9fJ3kLm2Qx7RtV5bNw8Zc1"


@pytest.mark.parametrize("key", [PASTED, "tok-of-the-environment-55"])
@pytest.mark.parametrize(
    "config",
    [
        "models: {KEY: openai/gpt-5-mini}",
        "models: {default: KEY}",
        "models: {default: {model: openai/m, KEY: 1}}",
        "models: {default: KEY/m}",
        "models: {default: 'openai/KEY'}",
        "models: {default: {model: openai/m, base_url: KEY}}",
        "metrics: [KEY]",
        "thresholds: {KEY: 3}",
        "custom_metrics: [KEY]",
        "reporters: [KEY]",
        "fail_on_severity: KEY",
        "epochs: KEY",
        "KEY: 1",
        "gates: {KEY: 1}",
        "profiles: {KEY: {}}",
        "agent: {target: 'agent.py:agent', headers: {'Bearer KEY': x}}",
        "agent: {endpoint: 'http://h', headers: {'Bearer KEY': x}}",
        "agent: {endpoint: KEY}",
        "agent: {type: KEY}",
        "agents: {KEY: {name: other, target: 'agent.py:agent'}}",
        "agent: {target: KEY}",
        "agent: {target: '${KEY}'}",
        "models: {default: {model: openai/m, api_key_env: KEY}}",
        "detectors: [KEY]",
        "severities: {label: KEY}",
        "a: [KEY: KEY",
    ],
)
def test_a_key_as_a_name_is_not_said_back(project: Project, config: str, key: str) -> None:
    project.agent("def agent(message):\n    return 'ok'\n")
    project.scenarios("id: a\nturns: [hi]\nexpect: {output: {contains: [ok]}}\n")
    more = "" if "agent" in config else "agent: {target: 'agent.py:agent'}\n"
    project.write("agenteval.yaml", f"{config.replace('KEY', key)}\n{more}")
    is_shaped = key.startswith("sk-")
    done = project.call("validate", env={} if is_shaped else {"OPENAI_API_KEY": key})
    assert key not in done.all, done.all
    is_name_of_a_model = "openai/KEY" in config  # a name that a model may have, and that no message tells
    assert done.code == 2 or (is_name_of_a_model and key != PASTED), done.all
    assert done.err.count("\n") <= 4


OPTIONS = ("-m", "--metric", "--agent", "-s", "--tag", "--category", "-c", "--report")


def test_what_may_be_a_key_is_none_of_our_words() -> None:
    for key in ("sk-ab12cd34ef", "sk_live_4242424242424242", "Bearer ab12cd34ef", "AKIAIOSFODNN7EXAMPLE"):
        assert redact_keys(f"models.{key}: '{key}' is not one") == f"models.{MASK}: '{MASK}' is not one"
    for words in ("task-runner-2 and risk-scorer-1", "a bearer token", "Bearer ${KEY_2}", "sk-learn-agent"):
        assert redact_keys(words) == words


@pytest.mark.parametrize("option", OPTIONS)
def test_a_key_in_the_place_of_an_option_is_not_said_back(project: Project, option: str) -> None:
    project.agent("def agent(message):\n    return 'ok'\n")
    project.config()
    project.scenarios("id: a\nturns: [hi]\nexpect: {output: {contains: [ok]}}\n")
    done = project.call("run", option, PASTED)
    assert done.code in (2, 5), done.all
    assert PASTED not in done.all
    assert MASK in done.all or option == "-m"  # which says it without any
