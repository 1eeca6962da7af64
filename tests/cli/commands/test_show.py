"""``agenteval show``: which run and which conversation the words mean, and which one follows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from agenteval.cli.commands.show import ShownConversation, ShowRequest, _failing, _find_conversations, show
from agenteval.core.errors import AuthorError
from agenteval.core.event import Event
from agenteval.core.scenario import SampleKey
from agenteval.files.judge_request_log import JUDGE_REQUESTS_FILE
from agenteval.running.stored_runs import DecidedRun
from agenteval.verdict.gates import decide
from tests.support.kept_runs import keep_run
from tests.support.verdict_runs import FAIL, LOST, PASS, Played, events_of, report_of

EPOCHS: dict[str, list[Played | None]] = {
    "good": [PASS, PASS],
    "bad": [PASS, LOST, FAIL, FAIL],
    "fine": [PASS],
    "lost": [LOST],
    "never": [None, PASS],
}


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "110")
    return tmp_path


class Shown:
    """What was printed, as JSON: the scenario, its agent and the epochs (which begin with 1)."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.run = ""

    def __call__(self, *words: str, **more: Any) -> tuple[str, list[int]]:
        assert show(ShowRequest(words, as_json=True, **more)) == 0
        read = json.loads(self._capsys.readouterr().out)
        assert set(read) == {"run", "scenario"}
        self.run, self.agent = read["run"], read["scenario"]["agent"]
        return read["scenario"]["id"], [each["epoch"] + 1 for each in read["scenario"]["samples"]]

    def text(self, *words: str, **more: Any) -> str:
        assert show(ShowRequest(words, **more)) == 0
        return self._capsys.readouterr().out

    def next_command(self, *words: str, **more: Any) -> str:
        lines = [line for line in self.text(*words, **more).splitlines() if line.startswith("next:")]
        return "".join(line.partition("agenteval show ")[2] for line in lines)


@pytest.fixture
def shown(capsys: pytest.CaptureFixture[str]) -> Shown:
    return Shown(capsys)


def refused(*words: str, **more: Any) -> str:
    with pytest.raises(AuthorError) as error:
        show(ShowRequest(words, **more))
    return str(error.value)


def keep(
    root: Path, name: str = "r1", day: int = 1, epochs: Mapping[str, Sequence[Any]] = EPOCHS, **more: Any
) -> None:
    keep_run(root, name, events_of(epochs, **more), f"2026-11-{day:02}T00:00:00.000Z")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), ("bad", [3])),  # the first that did not pass; failed before undecided
        (("good",), ("good", [1])),
        (("good@2",), ("good", [2])),
        (("bad",), ("bad", [3])),
        (("bad@1",), ("bad", [1])),
        (("bad@2",), ("bad", [2])),
        (("never@2",), ("never", [2])),
        (("lost",), ("lost", [1])),
        (("good.yaml::good",), ("good", [1])),
        (("s/good.yaml::good@2",), ("good", [2])),
        (("r1", "good"), ("good", [1])),
        (("latest", "bad@4"), ("bad", [4])),
        (("r1",), ("bad", [3])),
        (("latest",), ("bad", [3])),
        ((".agenteval/runs/r1", "fine"), ("fine", [1])),
        ((".agenteval/runs/r1/events.jsonl", "fine"), ("fine", [1])),
    ],
)
def test_the_conversation_that_is_meant(
    root: Path, shown: Shown, words: tuple[str, ...], expected: tuple[str, list[int]]
) -> None:
    keep(root)
    assert shown(*words) == expected
    assert shown.run == "r1"


def test_all_epochs(root: Path, shown: Shown) -> None:
    keep(root)
    assert shown("bad", every=True) == ("bad", [1, 2, 3, 4])
    assert shown("bad@4", every=True) == ("bad", [1, 2, 3, 4])
    assert shown(every=True) == ("bad", [1, 2, 3, 4])
    assert shown("never", every=True) == ("never", [1, 2])


def test_if_all_passed_the_first(root: Path, shown: Shown) -> None:
    keep(root, epochs={"a": [PASS, PASS], "b": [PASS]})
    assert shown() == ("a", [1])
    assert shown.next_command() == ""


def test_a_conversation_that_never_began(root: Path, shown: Shown) -> None:
    keep(root)
    assert "never@1" in shown.text("never@1")
    assert shown("never@1") == ("never", [1])


def test_one_word_is_a_conversation_before_it_is_a_run(root: Path, shown: Shown) -> None:
    keep(root, "r1", 1, {"a": [PASS]})
    keep(root, "r2", 2, {"r1": [PASS], "b": [FAIL]})
    assert shown("r1") == ("r1", [1])
    assert shown.run == "r2"
    assert shown("previous") == ("a", [1])
    assert shown.run == "r1"
    assert shown("r1", "a") == ("a", [1])
    assert shown.run == "r1"


def test_an_earlier_run_where_the_latest_cannot_be_read(root: Path, shown: Shown) -> None:
    keep(root)
    broken = root / ".agenteval" / "runs" / "r2"
    broken.mkdir()
    (broken / "events.jsonl").write_text('{"started_at":"2026-11-30T00:00:00Z", oops\n')
    assert shown("r1") == ("bad", [3])
    refused()
    refused("bad")


@pytest.mark.parametrize(
    ("id", "words", "expected"),
    [
        ("a@2", ("a@2",), ("a@2", [1])),
        ("a@2", ("a@2@2",), ("a@2", [2])),
        ("a::b", ("a::b",), ("a::b", [1])),
        ("a@b", ("a@b@2",), ("a@b", [2])),
        ("a[b]", ("a[b]",), ("a[b]", [1])),
    ],
)
def test_an_exact_id_is_preferred(
    root: Path, shown: Shown, id: str, words: tuple[str, ...], expected: tuple[str, list[int]]
) -> None:
    keep(root, epochs={"a": [PASS, PASS, PASS], id: [PASS, PASS]})
    assert shown(*words) == expected


# ── what follows ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("bad@3", ("bad", [4])),
        ("bad", ("bad", [4])),
        ("bad@4", ("bad", [2])),  # the undecided epochs come last
        ("bad@2", ("lost", [1])),
        ("bad@1", ("bad", [3])),  # after one that passed, the order of the run
        ("good@1", ("bad", [3])),
        ("fine", ("lost", [1])),
        ("lost", ("never", [1])),
    ],
)
def test_the_next_that_did_not_pass(
    root: Path, shown: Shown, name: str, expected: tuple[str, list[int]]
) -> None:
    keep(root)
    assert shown(name, following=True) == expected


def test_without_a_name_the_first_is_next(root: Path, shown: Shown) -> None:
    keep(root)
    assert shown(following=True) == ("bad", [3])
    assert shown("r1", following=True) == ("bad", [3])


def test_nothing_follows(root: Path) -> None:
    keep(root)
    text = refused("never@2", following=True)
    assert "never@2" in text
    assert "agenteval show bad@3" in text
    keep(root, "r2", 2, {"a": [PASS]})
    text = refused("a", following=True)
    assert "a@1" in text
    assert "agenteval show" not in text


@pytest.mark.parametrize(
    ("words", "more", "command"),
    [
        ((), {}, "bad@4"),
        (("good",), {}, "bad@3"),
        (("r1",), {}, "r1 bad@4"),
        (("r1", "bad@2"), {}, "r1 lost@1"),
        (("good",), {"agent": "bot"}, "bad@3 --agent bot"),
        (("bad",), {"every": True}, ""),
        (("never@2",), {}, ""),
    ],
)
def test_the_command_of_the_next(
    root: Path, shown: Shown, words: tuple[str, ...], more: dict[str, Any], command: str
) -> None:
    keep(root)
    assert shown.next_command(*words, **more) == command


def test_a_scenario_that_fails_as_a_whole_is_shown_once(root: Path, shown: Shown) -> None:
    gates = {"pass_hat_k": {"k": 2, "at_least": 1.0}}
    keep(root, epochs={"a": [PASS, PASS], "b": [FAIL, PASS], "c": [PASS, PASS]}, gates=gates)
    assert shown() == ("b", [1])
    assert shown.next_command() == ""


# ── agents ───────────────────────────────────────────────────────────────────────────────────────


def test_several_agents(root: Path, shown: Shown) -> None:
    keep(root, epochs={"a": [FAIL, PASS], "b": [FAIL]}, agents=("x", "y"))
    assert (shown("a"), shown.agent) == (("a", [1]), "x")
    assert (shown("a", agent="y"), shown.agent) == (("a", [1]), "y")
    assert (shown("a@2", agent="y"), shown.agent) == (("a", [2]), "y")
    assert (shown("b", agent="y"), shown.agent) == (("b", [1]), "y")
    assert "--agent" in shown.next_command("a")
    assert shown("a", agent="y", every=True) == ("a", [1, 2])
    assert shown.next_command("a", agent="y").endswith("b@1 --agent y")


def test_an_agent_that_is_not_there(root: Path) -> None:
    keep(root)
    text = refused("good", agent="bto")
    assert "'bto'" in text
    assert "bot" in text
    assert "r1" in text


def test_a_run_without_conversations(root: Path) -> None:
    keep(root, epochs={})
    assert "r1" in refused()


# ── what is not there ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        (("goood",), ["r1", "'goood'", "good"]),
        (("goood@2",), ["r1", "good"]),
        (("x.yaml::goood",), ["r1", "good"]),
        (("r1", "goood"), ["r1", "good"]),
        (("good@3",), ["'good'", "3", "r1", "1, 2"]),
        (("good@0",), ["'good'", "0", "1, 2"]),
        (("r1", "fine@2"), ["'fine'", "2", "1"]),
        (("other.yaml::good",), ["r1"]),
        (("r9", "good"), ["r9"]),
        (("a", "b", "c"), ["3", "agenteval show"]),
    ],
)
def test_what_is_not_there(root: Path, words: tuple[str, ...], facts: list[str]) -> None:
    keep(root)
    text = refused(*words)
    for fact in facts:
        assert fact in text


@pytest.mark.parametrize(("count", "last", "has_more"), [(12, 12, False), (13, 12, True)])
def test_many_epochs_are_not_all_named(root: Path, count: int, last: int, has_more: bool) -> None:
    keep(root, epochs={"a": [PASS] * count})
    text = refused("a@99")
    assert f"{last - 1}, {last}" in text
    assert (", …" in text) is has_more
    assert f", {last + 1}" not in text


def test_without_a_run(root: Path) -> None:
    assert "agenteval run" in refused()
    assert "agenteval run" in refused("good")


# ── judges ───────────────────────────────────────────────────────────────────────────────────────


def test_what_judges_were_asked_is_part_of_it_where_it_is_wanted(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(root)
    wanted: list[dict[str, Any]] = [{"metric": "stars"}, {"judge": True}, {}]
    for more in wanted:
        assert show(ShowRequest(("good",), as_json=True, **more)) == 0  # the run has not kept them
        assert "asked" not in json.loads(capsys.readouterr().out)
    (root / ".agenteval" / "runs" / "r1" / JUDGE_REQUESTS_FILE).write_bytes(b"")
    assert show(ShowRequest(("good",), as_json=True, judge=True)) == 0
    assert json.loads(capsys.readouterr().out)["asked"] == []
    assert "'stars'" in refused("good", metric="stars")


def test_the_journal_of_a_run_that_goes_on(root: Path, shown: Shown) -> None:
    events: list[Event] = events_of({"a": [PASS], "b": [FAIL]}, outcome=None)
    keep_run(root, "r1", events)
    assert shown() == ("b", [1])


# ── names and orders, in plain values ────────────────────────────────────────────────────────────


def conversations(*variants: str, scenario: str = "a", epochs: int = 1) -> list[ShownConversation]:
    (report,) = report_of({scenario: [PASS]}).scenarios
    keys = [
        SampleKey(scenario=scenario, agent="bot", epoch=epoch, variant=variant)
        for variant in variants
        for epoch in range(epochs)
    ]
    return [ShownConversation(report, key, None) for key in keys]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a", [("v", 0), ("v", 1), ("w", 0), ("w", 1), ("a[x]", 0), ("a[x]", 1)]),
        ("a@2", [("v", 1), ("w", 1), ("a[x]", 1)]),
        ("v", [("v", 0), ("v", 1)]),
        ("v@2", [("v", 1)]),
        ("a[v]", [("v", 0), ("v", 1)]),
        ("a[w]@1", [("w", 0)]),
        ("a[x]", [("a[x]", 0), ("a[x]", 1)]),
        ("a[a[x]]", [("a[x]", 0), ("a[x]", 1)]),
        ("a[a[x]]@2", [("a[x]", 1)]),
        ("a[]", []),
        ("b[v]", []),
        ("a[u]", []),
        ("a[v]@3", []),
        ("s/a.yaml::a@1", [("v", 0), ("w", 0), ("a[x]", 0)]),
        ("t/a.yaml::a", []),
        ("a@x", []),
        ("@1", []),
        ("", []),
    ],
)
def test_names_of_conversations(name: str, expected: list[tuple[str, int]]) -> None:
    found = _find_conversations(name, conversations("v", "w", "a[x]", epochs=2))
    assert [(each.key.variant, each.key.epoch) for each in found] == expected


def test_a_scenario_that_failed_as_a_whole_has_its_first_conversation() -> None:
    report = report_of({"a": [PASS, PASS], "b": [FAIL, PASS], "c": [LOST, FAIL]})
    run = DecidedRun(report, decide(report), Path())
    known = [
        ShownConversation(scenario, sample.key, sample)
        for scenario in report.scenarios
        for sample in scenario.samples
    ]
    keys = [each.key for each in known]
    assert [each.key for each in _failing(run, known, ())] == [keys[2], keys[4]]
    assert [each.key for each in _failing(run, known, {keys[3]})] == [keys[3], keys[4]]
    assert [each.key for each in _failing(run, known, set(keys[4:]))] == [keys[2], keys[5], keys[4]]
