"""What judges were asked is kept once, comes back as it was, and outlives a killed process."""

from __future__ import annotations

import gzip
from pathlib import Path

from agenteval.core.event import ModelAsked, SampleFinished, SampleStarted
from agenteval.core.scenario import SampleKey
from agenteval.core.trajectory import Stop, StopReason
from agenteval.files.judge_request_log import JUDGE_REQUESTS_FILE, JudgeRequestLog, load_judge_requests

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
