"""What judges were asked is kept once, comes back as it was, and outlives a killed process."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from agenteval.core.event import ModelAsked, SampleFinished, SampleStarted
from agenteval.core.scenario import SampleKey
from agenteval.core.trajectory import Stop, StopReason
from agenteval.files.judge_request_log import (
    JUDGE_REQUESTS_FILE,
    JudgeRequestLog,
    StoredRequests,
    load_judge_requests,
    read_stored_requests,
)

RULES = "\n\n".join(f"Rule {n}: the answer keeps to what is known, and says so plainly." for n in range(20))
END = Stop(reason=StopReason.SCRIPT_DONE)


def key(name: str) -> SampleKey:
    return SampleKey(scenario=name, agent="bot")


def asked(name: str, turn: int, metric: str = "helpfulness") -> ModelAsked:
    turns = [f"Turn {n} of {name}: the user asks, and the agent gives an answer." for n in range(turn + 1)]
    policy = "The policy, which is long enough to be a piece of its own, whatever it says."
    record = "\n\n".join((policy, *turns))
    return ModelAsked(
        key=key(name), role="judge", metric=metric, turn=turn, system="You judge.",
        prompt=f"{record}\n\n{metric}\n\n{RULES}", record=len(record), model="m/1", answer={"score": 4},
    )  # fmt: skip


def write(folder: Path, *samples: tuple[str, list[ModelAsked]], begin: bool = False) -> None:
    with JudgeRequestLog(folder / JUDGE_REQUESTS_FILE) as file:
        for name, events in samples:
            if begin:
                file(SampleStarted(key=key(name)))
            for event in events:
                file(event)
            file(SampleFinished(key=key(name), stop=END))


def test_what_was_asked_comes_back_as_it_was(tmp_path: Path) -> None:
    told = [asked("a", turn, metric) for turn in range(3) for metric in ("helpfulness", "faithfulness")]
    broken = asked("d", 1).model_copy(update={"answer": None, "error": "half a \ud83d pair", "prompt": ""})
    write(tmp_path, ("a", told), ("b", [asked("b", 0)]))
    assert load_judge_requests(tmp_path, [key("a")]) == tuple(told)
    assert load_judge_requests(tmp_path, [key("c")]) == ()
    write(tmp_path, ("d", [broken]))
    (back,) = load_judge_requests(tmp_path, [key("d")]) or ()
    assert (back.prompt, back.answer) == ("", None)


def test_nothing_asked_is_no_file(tmp_path: Path) -> None:
    write(tmp_path, ("a", []))
    assert not (tmp_path / JUDGE_REQUESTS_FILE).exists()
    assert load_judge_requests(tmp_path, [key("a")]) is None


def test_what_requests_share_is_kept_once(tmp_path: Path) -> None:
    events = [(f"s{n}", [asked(f"s{n}", turn) for turn in range(4)]) for n in range(50)]
    write(tmp_path, *events)
    whole = sum(len(event.prompt) + len(event.system) for _, told in events for event in told)
    lines = gzip.decompress((tmp_path / JUDGE_REQUESTS_FILE).read_bytes()).decode()
    assert lines.count("Rule 7:") == lines.count("The policy") == 1
    assert lines.count("Turn 0 of s7:") == 1
    assert len(lines) < whole / 3
    assert (tmp_path / JUDGE_REQUESTS_FILE).stat().st_size < whole / 12


def test_a_torn_piece_is_left_out_and_hides_nothing(tmp_path: Path) -> None:
    write(tmp_path, ("a", [asked("a", 0)]))
    whole = (tmp_path / JUDGE_REQUESTS_FILE).read_bytes()
    write(tmp_path, ("b", [asked("b", 0)]))
    for cut in (1, 5, 40):
        torn = (tmp_path / JUDGE_REQUESTS_FILE).read_bytes()[: len(whole) + cut]
        (tmp_path / JUDGE_REQUESTS_FILE).write_bytes(torn)
        assert len(load_judge_requests(tmp_path, [key("a"), key("b")]) or ()) == 1
        write(tmp_path, ("c", [asked("c", 0)]))
        assert load_judge_requests(tmp_path, [key("c")]) == (asked("c", 0),)
    (tmp_path / JUDGE_REQUESTS_FILE).write_bytes(b"no gzip at all \x1f\x8b\x08 nor here")
    assert load_judge_requests(tmp_path, [key("a")]) == ()


def test_a_sample_that_is_played_again_is_asked_about_anew(tmp_path: Path) -> None:
    write(tmp_path, ("a", [asked("a", 0), asked("a", 1)]), ("b", [asked("b", 0)]), begin=True)
    write(tmp_path, ("a", [asked("a", 0)]), begin=True)
    assert load_judge_requests(tmp_path, [key("a")]) == (asked("a", 0),)
    assert load_judge_requests(tmp_path, [key("b")]) == (asked("b", 0),)


# ── as they are stored ───────────────────────────────────────────────────────────────────────────


def stored(folder: Path) -> StoredRequests:
    found = read_stored_requests(folder)
    assert found
    return found


def lines(folder: Path, *written: Any) -> None:
    """Write lines as they are; anything but a text as JSON."""
    text = "".join(f"{each if isinstance(each, str) else json.dumps(each)}\n" for each in written)
    (folder / JUDGE_REQUESTS_FILE).write_bytes(gzip.compress(text.encode()))


def test_without_the_file_there_is_nothing(tmp_path: Path) -> None:
    assert read_stored_requests(tmp_path) is None
    (tmp_path / JUDGE_REQUESTS_FILE).mkdir()
    assert read_stored_requests(tmp_path) is None


def test_a_file_without_requests_is_no_missing_file(tmp_path: Path) -> None:
    (tmp_path / JUDGE_REQUESTS_FILE).write_bytes(b"")
    assert read_stored_requests(tmp_path) == ({}, {})


def test_requests_are_read_by_sample_with_each_string_once(tmp_path: Path) -> None:
    write(tmp_path, ("a", [asked("a", 0), asked("a", 1)]), ("b", [asked("b", 0)]))
    found = stored(tmp_path)
    assert {each.scenario: len(requests) for each, requests in found.by_sample.items()} == {"a": 2, "b": 1}
    first, second = found.by_sample[key("a")]
    assert (first["metric"], first["model"], first["answer"]) == ("helpfulness", "m/1", {"score": 4})
    assert (first["turn"], second["turn"]) == (0, 1)
    assert found.texts[first["asked"]["system"]] == "You judge."

    def whole(name: str) -> str:
        text = found.texts[name]
        return text if isinstance(text, str) else "".join(map(whole, text))

    assert "".join(map(whole, second["asked"]["prompt"])) == asked("a", 1).prompt
    assert whole(second["asked"]["prompt"][0]) == asked("a", 1).prompt[: asked("a", 1).record]
    plain = [text for text in found.texts.values() if isinstance(text, str)]
    assert len(plain) == len(set(plain))


KEY = {"scenario": "a", "agent": "bot"}
REQUEST = {
    "asked": {"system": "s", "prompt": ["p", "q"]}, "key": KEY, "role": "judge", "metric": "help"
}  # fmt: skip


def test_fields_are_kept_as_they_are_written(tmp_path: Path) -> None:
    composed = {"text": "p", "of": ["x", "y"]}
    lines(tmp_path, {"text": "s", "is": "S"}, composed, REQUEST, {**REQUEST, "metric": "other"})
    assert stored(tmp_path) == (
        {"s": "S", "p": ["x", "y"]},
        {key("a"): [REQUEST, {**REQUEST, "metric": "other"}]},
    )


def test_the_last_string_of_a_name_counts(tmp_path: Path) -> None:
    lines(
        tmp_path, {"text": "s", "of": ["x"]}, {"text": "s", "is": "S"}, {"text": "t"}, {"text": "e", "is": ""}
    )
    assert stored(tmp_path).texts == {"s": "S", "t": [], "e": ""}


def test_what_was_asked_before_a_sample_was_repeated_is_left_out(tmp_path: Path) -> None:
    other = {**REQUEST, "key": {"scenario": "b", "agent": "bot"}}
    again = {**REQUEST, "metric": "again"}
    lines(tmp_path, REQUEST, other, {"anew": KEY}, {"anew": {"scenario": "z", "agent": "bot"}}, again)
    assert stored(tmp_path).by_sample == {key("b"): [other], key("a"): [again]}


@pytest.mark.parametrize(
    "line",
    [
        "not JSON",
        "",
        "[1, 2]",
        '"asked"',
        {},
        {"asked": {"system": "s", "prompt": []}},
        {"asked": {"system": "s", "prompt": []}, "key": None},
        {"asked": {"system": "s", "prompt": []}, "key": {"scenario": 1}},
        {"asked": {"system": "s", "prompt": []}, "key": {**KEY, "other": 1}},
        {"anew": "a"},
        {"anew": None},
        {"asked": "x", "key": KEY},
        {"asked": None, "key": KEY},
        {"asked": ["s", ["p", "q"]], "key": KEY},
        {"asked": {"system": "s"}, "key": KEY},
        {"asked": {"prompt": ["p", "q"]}, "key": KEY},
        {"asked": {"system": None, "prompt": ["p", "q"]}, "key": KEY},
        {"asked": {"system": "s", "prompt": "pq"}, "key": KEY},
        {"asked": {"system": "s", "prompt": ["p"]}, "key": KEY},
        {"asked": {"system": "s", "prompt": ["p", 2]}, "key": KEY},
        {"asked": {"system": "s", "prompt": ["p", "q", "r"]}, "key": KEY},
    ],
)
def test_a_line_that_is_none_hides_no_other(tmp_path: Path, line: Any) -> None:
    lines(tmp_path, {"text": "s", "is": "S"}, line, REQUEST)
    assert stored(tmp_path) == ({"s": "S"}, {key("a"): [REQUEST]})
    assert load_judge_requests(tmp_path, [key("a")]) == (
        ModelAsked(key=key("a"), role="judge", metric="help", system="S"),
    )


@pytest.mark.parametrize(
    "fields", [{}, {"role": None}, {"role": "judge", "turn": "x"}, {"role": "judge", "x": 1}]
)
def test_a_request_with_damaged_fields_is_left_out(tmp_path: Path, fields: dict[str, Any]) -> None:
    damaged = {name: value for name, value in REQUEST.items() if name != "role"} | fields
    lines(tmp_path, {"text": "s", "is": "S"}, damaged, REQUEST)
    assert [each.system for each in load_judge_requests(tmp_path, [key("a")]) or ()] == ["S"]


@pytest.mark.parametrize(
    ("line", "text", "prompt"),
    [
        ({"is": None}, [], ""),
        ({"is": 3}, [], ""),
        ({"is": ["x"]}, ["x"], "X"),
        ({"of": "x"}, "x", "x"),
        ({"of": None}, [], ""),
        ({"of": ["x", 3, None, "y"]}, ["x", "y"], "X"),
    ],
)
def test_a_string_that_is_none_is_empty(
    tmp_path: Path, line: dict[str, Any], text: str | list[str], prompt: str
) -> None:
    lines(tmp_path, {"text": "p", **line}, {"text": "x", "is": "X"}, REQUEST)
    assert stored(tmp_path).texts["p"] == text
    assert [each.prompt for each in load_judge_requests(tmp_path, [key("a")]) or ()] == [prompt]
