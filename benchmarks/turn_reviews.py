"""Does one review of a conversation find what a call for each turn finds? The same planted faults, put to
careful readers in both forms.

    python benchmarks/turn_reviews.py ask FOLDER [--readers 2]
    python benchmarks/turn_reviews.py table FOLDER [-v]

``judging/planted_turns.jsonl`` holds 40 conversations whose author had read neither the prompts nor the code:
115 faults in 34 of them, each with its turn, labels and severity, and six conversations that tempt a judge
without a fault. ``ask`` writes a sheet for each reader and form. In a sheet of separate calls the record
grows turn by turn, and a reader answers before he reads on; nobody reads a conversation in both forms. A
reader answers in ``answers-FORM-N.jsonl``, one line for each question: ``{"id": "17.2.B", "answer": {…}}``.
``table`` checks the answers with the code that a run checks them with, and holds them against the author's.

**What it measures is the prompts**, with readers who take them to the letter: never the accuracy of a judge.
A judge who says nothing finds 0 of 115 and leaves all 62 clean turns alone; one who always speaks names the
turn of all 115 and leaves none alone.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import anyio
from clarity import LABELS, Count, Listener
from pydantic import ValidationError

from agenteval.core.config import AgentConfig, Config, JudgeConfig
from agenteval.core.protocols import ModelRequest
from agenteval.core.scenario import Scenario
from agenteval.core.trajectory import Stop, StopReason, ToolVisibility, Trajectory
from agenteval.importers.records import ToolSets, read_conversation
from agenteval.planning import judge_setup
from agenteval.planning.plan_resolution import rules_for, suite_policy

DATA = Path(__file__).parent / "judging" / "planted_turns.jsonl"
FORMS = ("separate", "review")
CLEAN = "no failure"
LETTERS = {LABELS[0]: "B", LABELS[1]: "T"}


class Question(NamedTuple):
    """``metric`` and ``turn`` (from 0) are ``None`` for a question about all turns and both metrics."""

    id: str
    metric: str | None
    turn: int | None
    request: ModelRequest


class Named(NamedTuple):
    """What an answer names in a turn (from 0)."""

    turn: int
    metric: str
    label: str


def loaded() -> dict[int, dict[str, Any]]:
    """The conversations by numbers that say nothing of them."""
    entries = [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]
    random.Random(7).shuffle(entries)
    return dict(enumerate(entries, 1))


def questions_of(entry: Mapping[str, Any], number: int, form: str) -> list[Question]:
    read = read_conversation({"messages": entry["messages"], "tools": entry["tools"]}, ToolSets())
    scenario = Scenario.model_validate({"id": f"talk-{number}", "goal": ""})
    scenario = scenario.model_copy(update={"tools": dict(read.tools)})
    whole = Trajectory(
        turns=read.parsed.trajectory.turns,
        stop=Stop(reason=StopReason.SCRIPT_DONE),
        visibility=ToolVisibility.ALL,
    )
    config = Config(
        agent=AgentConfig(name="agent", target="none:none"),
        metrics=list(LABELS),
        judge=JudgeConfig.model_validate({"calls": form}),
    )
    model, chosen = Listener(), judge_setup.load_metrics(config)
    suite = suite_policy(config, chosen.available.values(), chosen.selected)
    scorers = judge_setup.make_judges(
        chosen,
        model,
        suite,
        rules_for=partial(rules_for, suite=suite),
        policy_of=lambda _: entry["policy"],
        criteria=False,
    )
    if form == "review":
        (reviewer,) = (scorer for scorer in scorers if scorer.scope == "conversation")
        anyio.run(reviewer, scenario, whole)
        return [Question(f"{number}.R", None, None, model.requests[0])]
    found = []
    for turn in range(len(whole.turns)):
        for scorer in scorers:
            metric = str(getattr(scorer, "metric", ""))
            if metric in LABELS:
                model.requests.clear()
                seen = whole.model_copy(update={"turns": whole.turns[: turn + 1], "stop": None})
                anyio.run(scorer, scenario, seen)
                name = f"{number}.{turn + 1}.{LETTERS[metric]}"
                found.append(Question(name, metric, turn, model.requests[0]))
    return found


# ── asking ───────────────────────────────────────────────────────────────────────────────────────


def ask(folder: Path, readers: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    entries = loaded()
    for form in FORMS:
        asked = {number: questions_of(entry, number, form) for number, entry in entries.items()}
        requests = [each.request for questions in asked.values() for each in questions]
        size = sum(len(request.system) + len(request.prompt) for request in requests)
        print(f"{form}: {len(requests)} calls, {size // 4 // len(asked):,} tokens a conversation")
        for reader in range(readers):
            numbers = [number for number in asked if number % readers == reader]
            sheet = "\n".join(_sheet({number: asked[number] for number in numbers}))
            (folder / f"{form}-{reader + 1}.md").write_text(sheet, encoding="utf-8")


def _sheet(asked: Mapping[int, Sequence[Question]]) -> Iterator[str]:
    """What requests have in common stands once."""
    yield "# RULES (the system message of every request)\n"
    yield next(iter(asked.values()))[0].request.system
    criteria: dict[str, str] = {}
    body: list[str] = []
    for number, questions in asked.items():
        body.append(f"\n\n################ CONVERSATION {number} ################")
        shown = ""
        for question in questions:
            record, what, criterion = _parts(question.request.prompt)
            if len(record) > len(shown):
                body.append(record[_shared(shown, record) :])
                shown = record
            name = criteria.setdefault(criterion, f"K{len(criteria) + 1}")
            body.append(
                f"\n>>> QUESTION {question.id} (answer before you read on): {what}\nCriterion: {name}"
            )
    yield "\n# CRITERIA (each is the end of a request, after the record)"
    for criterion, name in criteria.items():
        yield f"\n=== CRITERION {name} ===\n{criterion}"
    yield from body


def _shared(one: str, other: str) -> int:
    """The length of the beginning that two records share."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (left, right) in pairs if left != right), min(len(one), len(other)))


def _parts(prompt: str) -> tuple[str, str, str]:
    record, _, rest = prompt.partition("# What to judge")
    what, mark, criterion = rest.partition("# Criteri")
    return record.rstrip(), what.strip(), mark + criterion


# ── what the answers come to ─────────────────────────────────────────────────────────────────────


def named_in(questions: Sequence[Question], answers: Mapping[str, Any], flaws: list[str]) -> Iterator[Named]:
    for question in questions:
        answer = answers.get(question.id)
        if answer is None:
            flaws.append(f"{question.id}: no answer")
            continue
        try:
            flaw = question.request.flaw_in(question.request.reply.model_validate(answer), False)
        except ValidationError as error:
            flaw = str(error.errors()[0]["msg"])
        if flaw:
            flaws.append(f"{question.id}: {flaw}")
        if question.metric is not None and question.turn is not None:
            yield Named(question.turn, question.metric, answer["label"])
        else:
            for metric in LABELS:
                yield from (Named(each["turn"] - 1, metric, each["label"]) for each in answer[metric])


class Table:
    """What the answers in one form come to."""

    def __init__(self, form: str, answers: Mapping[str, Any]) -> None:
        self.flaws: list[str] = []
        self.counts: dict[str, Count] = {}
        self.others = 0
        for number, entry in loaded().items():
            named = named_in(questions_of(entry, number, form), answers, self.flaws)
            self._hold(entry, {each for each in named if each.label != CLEAN})

    def _hold(self, entry: Mapping[str, Any], named: set[Named]) -> None:
        turns = sum(message["role"] == "user" for message in entry["messages"])
        at = {turn: {each.label for each in named if each.turn == turn} for turn in range(turns)}
        wanted: dict[int, set[str]] = {}
        for fault in entry["faults"]:
            turn, right = fault["turn"] - 1, {fault["label"], *fault["also_acceptable"]}
            wanted.setdefault(turn, set()).update(right)
            told = (
                f"{entry['id']} turn {turn + 1}: {fault['label']} ({fault['severity']}): {sorted(at[turn])}"
            )
            self._add("turn named", bool(at[turn]), told)
            self._add("a label that fits, at its turn", bool(at[turn] & right), told)
            self._add("the author's own label", fault["label"] in at[turn], told)
            self._add(f"a label that fits: {fault['severity']}", bool(at[turn] & right), told)
            if fault["turn"] == turns:
                self._add("a label that fits: last turn", bool(at[turn] & right), told)
        for turn in range(turns):
            if turn not in wanted:
                told = f"{entry['id']} turn {turn + 1}: {sorted(at[turn])}"
                self._add("clean turn left alone", not at[turn], told)
            else:
                self.others += len(at[turn] - wanted[turn])

    def _add(self, name: str, hit: bool, told: str) -> None:
        self.counts.setdefault(name, Count()).add(hit, told)


def table(folder: Path, verbose: bool) -> None:
    found = {}
    for form in FORMS:
        lines = [
            line
            for path in sorted(folder.glob(f"answers-{form}-*.jsonl"))
            for line in path.read_text(encoding="utf-8").splitlines()
            if line.strip()
        ]
        found[form] = Table(form, {each["id"]: each["answer"] for each in map(json.loads, lines)})
    print("| | separate | review |\n|---|---|---|")
    for name in found["separate"].counts:
        print(f"| {name} | {found['separate'].counts[name]} | {found['review'].counts[name]} |")
    print(f"| other labels in faulty turns | {found['separate'].others} | {found['review'].others} |")
    print(f"| answers that are not usable | {len(found['separate'].flaws)} | {len(found['review'].flaws)} |")
    if verbose:
        for form, one in found.items():
            for name in ("a label that fits, at its turn", "clean turn left alone"):
                for each in one.counts[name].missed:
                    print(f"{form}: not {name}: {each}")
            for each in one.flaws:
                print(f"{form}: not usable: {each}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("what", choices=("ask", "table"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--readers", type=int, default=2)
    parser.add_argument("-v", "--verbose", action="store_true")
    given = parser.parse_args()
    if given.what == "ask":
        ask(given.folder, given.readers)
    else:
        table(given.folder, given.verbose)


if __name__ == "__main__":
    main()
