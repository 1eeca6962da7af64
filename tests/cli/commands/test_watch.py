"""``run --watch``: what a round cost, which run is remembered, and what the next round plays."""

from __future__ import annotations

import subprocess
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from agenteval.cli.commands import watch as module
from agenteval.cli.commands.watch import RoundCost, _Watch
from agenteval.core.config import Config
from tests.support.kept_runs import keep_run
from tests.support.verdict_runs import PASS, events_of

COSTS = {
    "one": RoundCost(0.25, True),
    "three": RoundCost(0.25, True),
    "two": RoundCost(0.5, True),
    "open": RoundCost(0.125, False),
}


class Rounds:
    """A watch whose rounds are played by nobody: each leaves the runs that it is told to."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.events: SimpleQueue[object] = SimpleQueue()
        self.watch = _Watch(
            Config.model_validate({"root": str(root), "budget": {"max_cost": 1}}), ("run",), self.events
        )
        self.history = self.watch._history
        self.arguments: list[str] = []
        self._number = 0
        monkeypatch.setattr(_Watch, "_cost_of", lambda _, run_id: COSTS[run_id])
        monkeypatch.setattr(subprocess, "Popen", self._start)

    def play(self, *run_ids: str, code: int = 0, more: tuple[str, ...] = ()) -> None:
        self.runs, self.code = run_ids, code
        self.watch._play(more)

    def _start(self, command: list[str], **_: Any) -> Any:
        self.arguments = command[3:]
        for run_id in self.runs:
            self._number += 1
            keep_run(self.root, run_id, events_of({"a": [PASS]}), f"2026-11-21T10:00:{self._number:02}.000Z")
        return self

    def poll(self) -> int:
        return self.code

    @property
    def returncode(self) -> int:
        return self.code


@pytest.fixture
def rounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rounds:
    return Rounds(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("runs", "cost", "is_complete"),
    [
        ((), 0.0, True),
        (("one",), 0.25, True),
        (("one", "two"), 0.75, True),
        (("two", "one"), 0.75, True),
        (("open", "one"), 0.375, False),
        (("one", "open"), 0.375, False),
        (("one", "open", "two"), 0.875, False),
    ],
)
def test_the_cost_of_a_round_is_that_of_all_its_runs(
    rounds: Rounds,
    capsys: pytest.CaptureFixture[str],
    runs: tuple[str, ...],
    cost: float,
    *,
    is_complete: bool,
) -> None:
    rounds.play(*runs)
    assert rounds.history.cost == cost
    assert ("`prices`" not in capsys.readouterr().err) is is_complete
    assert rounds.watch._is_budget_spent() is False


def test_costs_add_up_until_the_budget_is_spent(rounds: Rounds) -> None:
    rounds.play("one")
    rounds.play("two")
    assert (rounds.history.cost, rounds.watch._is_budget_spent()) == (0.75, False)
    rounds.play("three")
    assert (rounds.history.cost, rounds.watch._is_budget_spent()) == (1.0, True)
    assert rounds.history.rounds == 3


def test_the_run_that_started_last_is_remembered(rounds: Rounds) -> None:
    rounds.play()
    assert rounds.history.last_run == ""
    rounds.play("two", "one")
    assert rounds.history.last_run == "one"
    rounds.play("open", more=("-k", "greet"))  # what did not pass elsewhere is still to be repaired
    assert rounds.history.last_run == "one"
    rounds.play()
    assert rounds.history.last_run == "one"


@pytest.mark.parametrize(
    ("code", "more", "covered"),
    [(0, (), True), (1, (), True), (3, (), True), (2, (), False), (130, (), False), (0, ("-k", "x"), False)],
)
def test_changes_are_pending_until_a_round_covers_them(
    rounds: Rounds, code: int, more: tuple[str, ...], *, covered: bool
) -> None:
    rounds.history.pending.add(str(rounds.root / "agent.py"))
    rounds.play("one", code=code, more=more)
    assert (not rounds.history.pending) is covered
    assert rounds.arguments == ["run", *more]
    assert rounds.history.exit_code == code


CHANGED_A, CHANGED_B = ("--changed-file", "/p/a.yaml"), ("--changed-file", "/p/b.py")
FAILED = ("--failed-in", "r")


@pytest.mark.parametrize(
    ("last_run", "event", "played"),
    [
        ("", "a", ()),
        ("r", "a", ()),
        ("", "f", None),
        ("r", "f", ("--failed-in", "r")),
        ("r", "x", None),
        ("r", "\n", ("-k", "before")),
        ("", frozenset(["/p/agent.py"]), ()),
        ("r", frozenset(["/p/b.py", "/p/a.yaml"]), (*CHANGED_A, *CHANGED_B, *FAILED)),
        ("r", frozenset(["/p/gone.txt"]), None),
        ("r", frozenset(["/p/gone.txt", "/p/b.py"]), (*CHANGED_B, *FAILED)),
    ],
)  # fmt: skip
def test_what_the_next_round_plays(rounds: Rounds, last_run: str, event: object, played: Any) -> None:
    rounds.history.last_run, rounds.history.arguments = last_run, ("-k", "before")
    assert rounds.watch._respond(event) == played


def test_data_that_a_round_wrote_itself_starts_none(rounds: Rounds, monkeypatch: pytest.MonkeyPatch) -> None:
    log = rounds.root / "log.txt"
    log.write_text("x")
    written = log.stat().st_mtime
    for ended, starts in ((written - 1, True), (written, False), (written + 1, False)):
        monkeypatch.setattr(rounds.history, "ended_at_s", ended)
        assert (rounds.watch._respond(frozenset([str(log)])) is not None) is starts


def test_names_by_which_scenarios_are_chosen(rounds: Rounds, monkeypatch: pytest.MonkeyPatch) -> None:
    for words, played in (("greet", ("-k", "greet")), ("", None)):
        monkeypatch.setattr(module, "_ask", lambda *_, words=words: words)
        assert rounds.watch._respond("t") == played
