"""What is packed for the page: it comes back, contains no markup, and has no secret in it."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from agenteval.core.decision import ScenarioDecision, Violation
from agenteval.core.score import Verdict
from agenteval.files.judge_request_log import StoredRequests
from agenteval.files.redaction import register_marked_secrets
from agenteval.reporters.html import packing
from agenteval.reporters.html.document import render
from agenteval.reporters.html.markup import element
from agenteval.reporters.html.packing import DisclosureMask, pack, redact
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.results.document import value_to_json
from agenteval.verdict.gates import decide
from tests.support.known_secrets import known_secrets
from tests.support.leaked_reports import LEAKED, MASKED, leak, leaking
from tests.support.pages import DIGITS, packed_in, records_in, unpack
from tests.support.report_samples import Told, hostile, mixed
from tests.support.score_samples import judged_run
from tests.support.verdict_runs import FAIL, PASS, oddly_read, report_of

# ── packing ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        '{"a":[1,2.5,true,null,"x"]}',
        "2\n[]\n{}\nthree lines",
        "<script>alert(1)</script><!-- & ' \" ]]>",
        "äöü … \U0001f600 \u2028 \x00 \x1b[2J",
    ],
)
def test_what_is_packed_comes_back(text: str) -> None:
    packed = pack(text)
    assert unpack(packed) == text
    assert set(packed) <= set(DIGITS)


def test_each_number_of_bytes_that_pad_the_data() -> None:
    """The first character is that number. The rest is whole groups of five digits."""
    pads = set()
    for length in range(40):
        text = random.Random(length).randbytes(length).hex()
        packed = pack(text)
        pads.add(packed[0])
        assert (len(packed) - 1) % 5 == 0
        assert unpack(packed) == text
    assert pads == {"0", "1", "2", "3"}


def test_a_large_block_has_no_character_of_markup() -> None:
    text = random.Random(1).randbytes(30_000).hex()
    found = pack(text)
    assert set("<\"'\\/:. \n").isdisjoint(found)
    assert "," in found  # in place of <
    assert set(found) == set(DIGITS)
    assert unpack(found) == text
    assert len(found) < len(text) * 0.75  # base64 takes more


def test_the_same_text_is_packed_alike_at_any_time(monkeypatch: pytest.MonkeyPatch) -> None:
    first = pack("x")
    monkeypatch.setattr("gzip.time.time", lambda: 2_000_000_000.0)
    assert pack("x") == first


def test_half_a_character_is_replaced() -> None:
    assert unpack(pack("a\ud83d")) == "a?"


# ── what an agent disclosed ──────────────────────────────────────────────────────────────────────

MASK = DisclosureMask(leaking(leak()).samples)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("null", "null"),
        (f'"a {LEAKED}"', f'"a {MASKED}"'),
        (f'{{"{LEAKED}":[1,"{LEAKED}"]}}', f'{{"{MASKED}":[1,"{MASKED}"]}}'),
        (f'{{"a":{{"b":["x{LEAKED}x",null]}}}}', f'{{"a":{{"b":["x{MASKED}x",null]}}}}'),
        (f'["{LEAKED[:6]}","{LEAKED[6:]}"]', f'["{LEAKED[:6]}","{LEAKED[6:]}"]'),
        ('{ "kept" : "as it is" }', '{ "kept" : "as it is" }'),
    ],
)  # fmt: skip
def test_what_leaked_is_masked_in_json(text: str, masked: str) -> None:
    assert MASK.mask_json(text) == masked


@pytest.mark.parametrize("secret", ['CANARY-"77"', "CANARY-\\7", "CANARY-é-77", 'CANARY-"é"', LEAKED])
def test_what_leaked_is_found_as_json_writes_it(secret: str) -> None:
    answer = f"{secret}, it is."
    mask = DisclosureMask(leaking(leak(span=(0, len(secret))), answer=answer).samples)
    masked = f"{MASKED}, it is."
    assert json.loads(mask.mask_json(value_to_json([answer, {answer: 1}]))) == [masked, {masked: 1}]
    assert mask.mask_markup(element("p", answer, element("b", answer))) == f"<p>{masked}<b>{masked}</b></p>"


def test_without_a_leak_nothing_is_masked() -> None:
    mask = DisclosureMask(leaking().samples)
    assert mask.mask_json(f'{{ "a": "{LEAKED}" }}') == f'{{ "a": "{LEAKED}" }}'
    assert mask.mask_markup(element("p", LEAKED)) == f"<p>{LEAKED}</p>"


# ── secrets of the environment ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("null", "null"),
        ('{ "kept" : "as it is" }', '{ "kept" : "as it is" }'),
        ('{"a":["my-secret-77",{"my-secret-77":"x my-secret-77"}]}', '{"a":["***",{"***":"x ***"}]}'),
        ('{"a":"my-secret-77","n":[123456,1.5],"é":"123456"}', '{"a":"***","n":[123456,1.5],"é":"***"}'),
    ],
)  # fmt: skip
def test_secrets_are_masked_in_json_which_stays_one_line(text: str, masked: str) -> None:
    with known_secrets("my-secret-77", "123456"):
        assert redact(text) == masked


FREE = ("args", "result", "answer", "texts", "values", "issues", "metrics")
"""The fields whose keys are data."""
ASKED = {
    "asked": {"system": "s", "prompt": ["p"]}, "key": {}, "role": "judge", "metric": "m", "turn": 0,
    "record": 4, "model": "m/1", "scripted": True, "answer": {"score": 4}, "error": "x",
}  # fmt: skip


def unpacked(*told: Told) -> list[Any]:
    """All that is packed in the pages of some runs."""
    found: list[Any] = []
    for report, decision in told:
        asked = StoredRequests({"s": "S", "p": ["s"]}, {sample.key: [ASKED] for sample in report.samples})
        options = ReportOptions(judge_requests=partial(StoredRequests, *asked))
        parts = packed_in(render(report, decision, options))
        found += [json.loads(parts["index"]), records_in(parts["block-0"]), json.loads(parts["requests-0"])]
    return found


def words(value: Any, *, is_free: bool = False) -> Iterator[str]:
    """The keys, except for those that are data."""
    if isinstance(value, list):
        for each in value:
            yield from words(each)
    elif isinstance(value, dict):
        for key, each in value.items():
            if not is_free:
                yield key
            if key not in FREE:
                yield from words(each, is_free=key == "scores")


def kept(value: Any) -> Iterator[Any]:
    """What the script of the page compares."""
    if isinstance(value, list):
        for each in value:
            yield from kept(each)
    elif isinstance(value, dict):
        yield from (value[name] for name in ("is", "severity", "verdict", "epochs") if name in value)
        yield from (item for each in value.values() for item in kept(each))


STATES = ("tolerated", "reported", "partly-read")


def tolerating() -> Told:
    """A scenario that passed although a conversation failed, and one that failed by a rule about all."""
    report = report_of({"a": [PASS, FAIL], "b": [PASS]})
    rule = Violation("pass_rate", "1 of 2", "a.yaml:9")
    scenarios = {
        ("a", "bot"): ScenarioDecision(Verdict.PASSED),
        ("b", "bot"): ScenarioDecision(Verdict.FAILED, violations=(rule,)),
    }
    return report, replace(decide(report), scenarios=scenarios)


def oddly_logged() -> Told:
    """A log without expectations, of which not every part was recognized."""
    report = oddly_read({"a": [PASS]})
    return report, replace(decide(report), is_reported=True, without_scenarios=True)


@pytest.mark.parametrize("is_marked", [True, False])
def test_what_the_script_reads_is_kept_even_if_a_secret_is_an_ordinary_word(is_marked: bool) -> None:
    """A marked secret may be short."""
    runs = (judged_run(), mixed(), hostile("agent's words"), tolerating(), oddly_logged())
    plain = unpacked(*runs)
    assert set(STATES) <= {state for index in plain[::3] for row in index["rows"] for state in row["is"]}
    keys = set(words(plain))
    assert {"columns", "values", "requests", "system", "prompt", "record", "answer", "steps", "is"} <= keys
    secrets = [*keys, "finding", "failed", "inconclusive", "critical", "accepted", "flaky", *STATES]
    with known_secrets(*secrets):
        register_marked_secrets(secrets if is_marked else [])
        try:
            masked = unpacked(*runs)
        finally:
            register_marked_secrets([])
    assert set(words(masked)) == keys
    assert list(kept(masked)) == list(kept(plain))
    assert "***" in json.dumps(masked)


def test_the_words_are_collected_once() -> None:
    """To collect them takes longer than to mask a conversation."""
    assert packing._schema() is packing._schema()
