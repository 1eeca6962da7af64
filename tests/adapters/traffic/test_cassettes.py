"""Recordings: what a file holds, which recorded answer a request gets, and how a miss tells what differs."""

from __future__ import annotations

import json
import stat
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from agenteval import __version__
from agenteval.adapters.traffic.cassettes import (
    CASSETTE_FORMAT,
    REPLAYED_SAMPLE,
    Cassette,
    CassettePlayer,
    CassettePosition,
    CassetteRecorder,
    ReplayEnviron,
    header_of,
    position_of,
    read_cassette,
)
from agenteval.core.errors import AuthorError
from agenteval.core.marked_secrets import MarkedSecrets, marked_secrets
from agenteval.core.scenario import SampleKey, Scenario

KEY = SampleKey(scenario="s", agent="bot")
SPOT = position_of(KEY, "judge", "tone", 1)
AGENT = position_of(KEY, "agent", turn=0)
REQUEST = {"system": "rules", "prompt": "one\ntwo"}
ANSWER = {"value": {"score": 3}}
SECRET = "sk-proj-0123456789abcdef"
HEADER = header_of([], {})


def recorder(path: Path, **more: Any) -> CassetteRecorder:
    made = CassetteRecorder(path, **more)
    made.start(HEADER)
    made.begin()
    return made


def recorded(
    path: Path, *rows: tuple[CassettePosition, Mapping[str, Any], Mapping[str, Any]], **more: Any
) -> Cassette:
    made = recorder(path, **more)
    for spot, request, answer in rows:
        made.ask(spot, request)(answer)
    made.close()
    return read_cassette(path)


def player(
    tmp_path: Path, *rows: tuple[CassettePosition, Mapping[str, Any], Mapping[str, Any]]
) -> CassettePlayer:
    return CassettePlayer(recorded(tmp_path / "r.jsonl", *rows))


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


# ── positions and headers ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("spot", "shown"),
    [
        (position_of(KEY, "judge", "tone", 1), ("tone judge", str(KEY), "turn 2")),
        (position_of(KEY, "judge"), ("the judge", str(KEY))),
        (position_of(KEY, "user", turn=0), ("simulated user", str(KEY), "turn 1")),
        (position_of(KEY, "agent", "tone"), ("the agent", str(KEY))),
        (position_of(None, "dedup"), ("issue-grouping model",)),
    ],
)
def test_whose_request_it_is(spot: CassettePosition, shown: Sequence[str]) -> None:
    assert all(fact in str(spot) for fact in shown)
    assert ("turn" in str(spot)) is (spot.turn is not None)
    assert ("(" in str(spot)) is bool(spot.sample)


def test_a_header_has_the_hash_of_each_scenario() -> None:
    def scenario(*turns: str) -> Scenario:
        return Scenario(id="a", name="a", turns=turns)

    header = header_of([scenario("Hi")], {"judges/tone.md": "0" * 16})
    assert (header.kind, header.format, header.agenteval) == ("header", CASSETTE_FORMAT, __version__)
    assert header.prompts == {"judges/tone.md": "0" * 16}
    assert set(header.scenarios) == {"a"}
    assert len(header.scenarios["a"]) == 16
    assert header_of([scenario("Hi")], {}).scenarios == header.scenarios
    assert header_of([scenario("Ho")], {}).scenarios != header.scenarios


# ── what a file holds ────────────────────────────────────────────────────────────────────────────


def test_a_line_per_request_after_the_header(tmp_path: Path) -> None:
    path = tmp_path / "new" / "r.jsonl"
    recorded(path, (SPOT, REQUEST, ANSWER), (position_of(None, "dedup"), {"prompt": "p"}, {"error": "x"}))
    header, first, second = lines_of(path)
    assert header == {
        "kind": "header",
        "format": 1,
        "agenteval": __version__,
        "scenarios": {},
        "prompts": {},
        "stand_ins": [],
        "marked": {},
    }
    digest = first.pop("hash")
    assert len(digest) == 16
    assert first == {
        "kind": "answer",
        "sample": str(KEY),
        "role": "judge",
        "metric": "tone",
        "turn": 1,
        "n": 0,
        "request": REQUEST,
        **ANSWER,
    }
    assert second.pop("hash") != digest
    assert second == {"kind": "answer", "role": "dedup", "n": 0, "request": {"prompt": "p"}, "error": "x"}


def test_the_first_turn_is_noted(tmp_path: Path) -> None:
    recorded(tmp_path / "r", (AGENT, REQUEST, ANSWER))
    assert lines_of(tmp_path / "r")[1]["turn"] == 0


def test_the_same_request_is_numbered_when_it_is_made(tmp_path: Path) -> None:
    made = recorder(tmp_path / "r")
    rows = [(SPOT, REQUEST), (SPOT, REQUEST), (SPOT, {"prompt": "other"}), (AGENT, REQUEST), (SPOT, REQUEST)]
    notes = [made.ask(*row) for row in rows]
    for note in reversed(notes):
        note(ANSWER)
    made.close()
    assert [line["n"] for line in reversed(lines_of(tmp_path / "r")[1:])] == [0, 1, 0, 0, 2]


@pytest.mark.skipif(sys.platform == "win32", reason="mode 0600 does not exist")
def test_only_its_owner_can_read_it(tmp_path: Path) -> None:
    recorded(tmp_path / "r")
    assert stat.S_IMODE((tmp_path / "r").stat().st_mode) == 0o600


def test_a_recording_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "r"
    made = CassetteRecorder(path)
    made.start(HEADER)
    path.write_text("mine", encoding="utf-8")
    for attempt in (made.begin, lambda: CassetteRecorder(path).start(HEADER)):
        with pytest.raises(AuthorError) as error:
            attempt()
        assert str(path) in str(error.value)
        assert "--record" in str(error.value)
    assert path.read_text(encoding="utf-8") == "mine"


def test_a_file_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    made = CassetteRecorder(tmp_path / "file" / "r")
    made.start(HEADER)
    with pytest.raises(AuthorError) as error:
        made.begin()
    assert "--record" in str(error.value)


def test_a_file_that_can_no_longer_be_written_is_told_once(tmp_path: Path) -> None:
    notices: list[str] = []
    made = recorder(tmp_path / "r", notify=notices.append)

    class Full:
        closed = 0

        def write(self, text: str) -> None:
            raise OSError("no space")

        def close(self) -> None:
            self.closed += 1

    file: Any = Full()
    assert made._file is not None
    made._file.close()
    made._file = file
    assert made.ask(SPOT, REQUEST)(ANSWER) == ANSWER
    assert made.ask(SPOT, REQUEST)(ANSWER) == ANSWER
    assert len(notices) == 1
    assert "no space" in notices[0]
    assert file.closed == 1
    made.close()


def test_half_a_character_is_written_as_its_escape(tmp_path: Path) -> None:
    cassette = recorded(tmp_path / "r", (SPOT, {"prompt": "\ud800 é"}, ANSWER))
    assert cassette.entries[0].request == {"prompt": "\ud800 é"}


# ── replaying ────────────────────────────────────────────────────────────────────────────────────


def test_each_request_gets_its_answers_in_order(tmp_path: Path) -> None:
    rows = [(SPOT, REQUEST, {"text": "1"}), (AGENT, REQUEST, {"text": "2"}), (SPOT, REQUEST, {"text": "3"})]
    played = player(tmp_path, *rows)
    assert played.answer(SPOT, REQUEST)["text"] == "1"
    assert played.has_next(SPOT, REQUEST)
    assert played.has_next(SPOT, REQUEST)
    assert played.answer(SPOT, REQUEST)["text"] == "3"
    assert not played.has_next(SPOT, REQUEST)
    assert played.find(SPOT, REQUEST) is None
    assert played.answer(AGENT, dict(reversed(REQUEST.items())))["text"] == "2"
    assert not played.has_next(SPOT, {"prompt": "other"})


def test_an_answer_is_what_was_recorded(tmp_path: Path) -> None:
    answer = {"value": {"ü": [1, None, "x"]}, "usage": {"calls": 1}}
    found = player(tmp_path, (SPOT, REQUEST, answer)).answer(SPOT, REQUEST)
    assert {key: value for key, value in found.items() if key != "kind"} == answer


def test_fences_do_not_tell_requests_apart(tmp_path: Path) -> None:
    def fenced(digest: str, text: str = "x") -> dict[str, str]:
        return {"prompt": f"<data-{digest}>{text}</data-{digest}>"}

    played = player(tmp_path, (SPOT, fenced("0123456789ab"), ANSWER))
    assert played.has_next(SPOT, fenced("ba9876543210"))
    assert not played.has_next(SPOT, fenced("ba9876543210", "y"))
    assert not played.has_next(SPOT, fenced("0123456789abc"))


def missed(played: CassettePlayer, spot: CassettePosition, request: Any) -> str:
    with pytest.raises(AuthorError) as error:
        played.answer(spot, request)
    (problem,) = error.value.problems
    assert str(spot) in problem.what
    assert "r.jsonl" in problem.what
    assert "--record" in problem.remedy
    return problem.what


DIFFERENCES: dict[str, tuple[Mapping[str, Any], Sequence[str]]] = {
    "another line": ({"system": "rules", "prompt": "one\n2"}, ["prompt", "'2' replaces 'two'"]),
    "the first line that differs": ({"system": "new", "prompt": "1"}, ["system", "'new' replaces 'rules'"]),
    "one more line": ({**REQUEST, "prompt": "one\ntwo\nthree"}, ["prompt has more", "'three'"]),
    "one line less": ({**REQUEST, "prompt": "one"}, ["longer"]),
    "one more key": ({**REQUEST, "tools": [{"b": 1, "a": 2}]}, ["tools 1 has more", '\'{"a": 2, "b": 1}\'']),
}


@pytest.mark.parametrize(("request_now", "facts"), DIFFERENCES.values(), ids=DIFFERENCES)
def test_a_miss_tells_where_the_request_differs(
    tmp_path: Path, request_now: Mapping[str, Any], facts: Sequence[str]
) -> None:
    what = missed(player(tmp_path, (SPOT, REQUEST, ANSWER)), SPOT, request_now)
    assert all(fact in what for fact in facts)


def test_items_of_lists_are_counted_from_one(tmp_path: Path) -> None:
    def sent(*items: Any) -> dict[str, Any]:
        return {"messages": list(items), "turn": 1}

    what = missed(player(tmp_path, (SPOT, sent("a", "b"), ANSWER)), SPOT, sent("a", "c"))
    assert "messages 2" in what
    assert "'\"c\"' replaces '\"b\"'" in what


def test_the_nearest_request_is_compared(tmp_path: Path) -> None:
    rows = [(SPOT, {"prompt": text}, ANSWER) for text in ("x", "a\nb\nx", "a\nx", "a\nb\ny")]
    assert "'c' replaces 'x'" in missed(player(tmp_path, *rows), SPOT, {"prompt": "a\nb\nc"})


def test_a_fence_is_no_difference(tmp_path: Path) -> None:
    played = player(tmp_path, (SPOT, {"prompt": "<data-0123456789ab>\na"}, ANSWER))
    assert "'b' replaces 'a'" in missed(played, SPOT, {"prompt": "<data-ba9876543210>\nb"})


def test_a_request_that_was_made_less_often(tmp_path: Path) -> None:
    played = player(tmp_path, (SPOT, REQUEST, ANSWER))
    played.answer(SPOT, REQUEST)
    assert "fewer times" in missed(played, SPOT, REQUEST)


def test_a_place_without_requests(tmp_path: Path) -> None:
    played = player(tmp_path, (SPOT, REQUEST, ANSWER))
    other = SampleKey(scenario="other", agent="bot")
    assert "this conversation was not recorded" in missed(played, position_of(other, "user"), REQUEST)
    assert "no call was recorded there" in missed(played, position_of(KEY, "user"), REQUEST)
    assert "no call was recorded there" in missed(played, position_of(None, "dedup"), REQUEST)


def test_a_miss_names_what_has_changed_since(tmp_path: Path) -> None:
    played = player(tmp_path)
    then = played._header
    assert "changed" not in missed(played, SPOT, REQUEST)
    for header in (played._header,):
        header.scenarios.update({"a": "1", "b": "1", "gone": "1"})
        header.prompts.update({"p": "1", "q": "1"})
        header.agenteval = "0.1"
    now = header_of([], {"p": "2", "q": "1", "new": "1"})
    now.scenarios.update({"a": "2", "b": "1", "new": "1"})
    played.start(now)
    what = missed(played, SPOT, REQUEST)
    assert all(fact in what for fact in ("scenario a", "prompt p", "0.1", __version__))
    assert not [name for name in ("scenario b", "prompt q", "new", "gone") if name in what.partition(";")[2]]
    played.start(then)
    assert "changed" not in missed(played, SPOT, REQUEST)


def test_a_repeated_conversation_is_a_line_without_messages(tmp_path: Path) -> None:
    played = player(tmp_path, (position_of(KEY, "agent"), REPLAYED_SAMPLE, {}))
    assert played.find(position_of(KEY, "agent"), REPLAYED_SAMPLE) is not None
    assert played.find(position_of(KEY, "agent"), REPLAYED_SAMPLE) is None


# ── secrets ──────────────────────────────────────────────────────────────────────────────────────


def test_a_secret_has_a_placeholder_in_the_file_and_in_the_run(tmp_path: Path) -> None:
    made = recorder(tmp_path / "r.jsonl", secrets=[SECRET])
    seen = made.ask(SPOT, {"prompt": f"use {SECRET}"})({"text": f"it is {SECRET}"})
    made.close()
    stand_ins = lines_of(tmp_path / "r.jsonl")[0]["stand_ins"]  # of the secret in each notation
    (stand_in,) = [each for each in stand_ins if len(each) == len(SECRET)]
    assert SECRET not in (tmp_path / "r.jsonl").read_text(encoding="utf-8")
    assert seen == {"text": f"it is {stand_in}"}
    assert stand_in.startswith("sk-proj-")
    for secrets, prompt in (([SECRET], SECRET), (["sk-proj-another-key-0123"], "sk-proj-another-key-0123")):
        played = CassettePlayer(read_cassette(tmp_path / "r.jsonl"), secrets=secrets)
        assert played.answer(SPOT, {"prompt": f"use {prompt}"})["text"] == f"it is {stand_in}"
    played = CassettePlayer(read_cassette(tmp_path / "r.jsonl"), secrets=["***"])
    assert played.has_next(SPOT, {"prompt": f"use {stand_in}"})


def test_an_answer_without_secrets_reaches_the_run_as_it_is(tmp_path: Path) -> None:
    answer = {"text": ("a", 1)}
    assert recorder(tmp_path / "a", secrets=[SECRET]).ask(SPOT, REQUEST)(ANSWER) is ANSWER
    seen = recorder(tmp_path / "b").ask(SPOT, REQUEST)(answer)
    assert list(seen["text"]) == ["a", 1]


def marked(value: str) -> MarkedSecrets:
    return marked_secrets({"bot": [value]})


def test_a_marked_secret_reaches_the_run_and_not_the_file(tmp_path: Path) -> None:
    known = marked("hunter42")
    made = recorder(tmp_path / "r.jsonl", marked=known, secrets=["hunter42"])
    request, answer = {"prompt": "is it hunter42?"}, {"text": "hunter42, yes"}
    assert made.ask(SPOT, request)(answer) == answer
    made.close()
    assert "hunter42" not in (tmp_path / "r.jsonl").read_text(encoding="utf-8")
    header = lines_of(tmp_path / "r.jsonl")[0]
    assert header["marked"] == {"bot": list(known.placeholders["bot"])}
    assert header["stand_ins"] == []
    again = marked_secrets({"bot": ["hunter42"]}, read_cassette(tmp_path / "r.jsonl").header.marked)
    played = CassettePlayer(read_cassette(tmp_path / "r.jsonl"), marked=again)
    assert played.answer(SPOT, request)["text"] == "hunter42, yes"


def test_a_placeholder_that_an_agent_says_by_chance_stays(tmp_path: Path) -> None:
    known = marked("hunter42")
    (stand_in,) = known.placeholders["bot"]
    rows = [(SPOT, REQUEST, {"text": stand_in}), (AGENT, REQUEST, {"text": "neither"})]
    cassette = recorded(tmp_path / "r", *rows, marked=known)
    first, second = lines_of(tmp_path / "r")[1:]
    assert first["as_it_was"] is True
    assert "as_it_was" not in second
    again = marked_secrets({"bot": ["hunter42"]}, cassette.header.marked)
    assert CassettePlayer(cassette, marked=again).answer(SPOT, REQUEST)["text"] == stand_in


# ── reading ──────────────────────────────────────────────────────────────────────────────────────

FIRST = json.dumps({"kind": "header", "format": CASSETTE_FORMAT})
ENTRY = json.dumps({"kind": "answer", "role": "user", "hash": "h", "n": 0, "request": {}})


def refused(path: Path, text: str) -> AuthorError:
    path.write_text(text, encoding="utf-8")
    with pytest.raises(AuthorError) as error:
        read_cassette(path)
    return error.value


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (FIRST, 0),
        (f"{FIRST}\n", 0),
        (f"{FIRST}\n{ENTRY}\n", 1),
        (f"{FIRST}\n{ENTRY}", 1),
        (f"{FIRST}\n\n{ENTRY}\n\n", 1),
        (f"{FIRST}\n{ENTRY}\n{ENTRY[:20]}", 1),
        (f'{FIRST}\n{ENTRY}\n{{"kind": "answer"}}', 1),
    ],
)
def test_a_torn_last_line_is_left_out(tmp_path: Path, text: str, count: int) -> None:
    (tmp_path / "r").write_text(text, encoding="utf-8")
    cassette = read_cassette(tmp_path / "r")
    assert len(cassette.entries) == count
    assert cassette.path == tmp_path / "r"
    assert cassette.header.stand_ins == ()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", 1),
        ("hello", 1),
        ("[]", 1),
        ("{}", 1),
        ('{"kind": "answer"}', 1),
        (f"\n{FIRST}\n", 1),
        (f"{FIRST}\n{ENTRY[:20]}\n{ENTRY}\n", 2),
        (f"{FIRST}\n{ENTRY}\n{ENTRY[:20]}\n", 3),
        (f"{FIRST}\n[]\n", 2),
        ("[" * 100_000, 1),
    ],
)
def test_what_is_no_recording_is_refused_at_its_line(tmp_path: Path, text: str, line: int) -> None:
    (problem,) = refused(tmp_path / "r", text).problems
    assert problem.place is not None
    assert (problem.place.path, problem.place.line) == (str(tmp_path / "r"), line)
    assert "--record" in problem.remedy


@pytest.mark.parametrize("header", [{"format": 2}, {"format": 0}, {}])
def test_another_format_is_refused(tmp_path: Path, header: dict[str, Any]) -> None:
    error = refused(tmp_path / "r", json.dumps({"kind": "header", **header}) + "\n")
    assert str(CASSETTE_FORMAT) in str(error)
    assert "--record" in str(error)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(AuthorError) as error:
        read_cassette(tmp_path / "r")
    assert "--replay" in str(error.value)


def test_a_replay_needs_no_variable() -> None:
    environ = ReplayEnviron({"A": "a"})
    assert (environ["A"], environ["B"]) == ("a", "***")
    assert "B" in environ
    assert environ.get("B") is None
