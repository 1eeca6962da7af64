"""Are the judges' prompts clear? Requests for careful readers, and a table of what their answers come to.

    python benchmarks/clarity.py ask CONVERSATIONS.jsonl FOLDER --readers 4 [--seed 1] [--half dev|test]
    python benchmarks/clarity.py table CONVERSATIONS.jsonl FOLDER

``ask`` writes for each reader a text with every rule and criterion once and then, conversation by
conversation, the record and the questions on it; the names of the conversations are numbers, and twins go to
different readers. A reader answers each question strictly from the text, in the form that it asks for, one
JSON object a line in ``answers-N.jsonl``: ``{"id": "17.2", "answer": {…}}``. ``table`` checks the references
with the code that a run checks them with and holds the verdicts against what the author of the conversations
planted: sensitivity and false alarms apart, with 95 % Wilson intervals, and every miss by name.

**What it measures is the clarity of the prompts**, with readers who take them to the letter: never the
accuracy of a judge. Beside each figure stands what a reader who always passes, and one who always fails,
would get.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import sqrt
from pathlib import Path
from typing import Any, NamedTuple

import anyio
from pydantic import ValidationError

from agenteval.core.config import AgentConfig, Config
from agenteval.core.errors import UnreadableReplyError
from agenteval.core.protocols import ModelReply, ModelRequest
from agenteval.core.scenario import Scenario
from agenteval.core.trajectory import Stop, StopReason, ToolVisibility, Trajectory
from agenteval.importers.records import ToolSets, read_conversation
from agenteval.planning import judge_setup
from agenteval.planning.plan_resolution import rules_for, suite_policy

LABELS = ("agent_behavior_failure", "tool_call_behavior_failure")
WHOLE = ("goal_completion", "policy_adherence", "criteria")
HIGH = frozenset((
    "false information", "disobey user request", "wrong tool", "ignored tool result", "missing tool call",
    "unsafe action", "unsafe state", "policy violation",
))  # fmt: skip


class Question(NamedTuple):
    """``id``: the number of the conversation and of the question in it."""

    id: str
    conversation: str
    metric: str
    turn: int | None
    criterion: int | None
    request: ModelRequest


class Listener:
    """A model that answers nothing and keeps what it is asked."""

    def __init__(self) -> None:
        self.requests: list[ModelRequest] = []

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.requests.append(request)
        raise UnreadableReplyError("nobody answers")

    async def aclose(self) -> None:
        pass


def loaded(path: Path) -> dict[str, Any]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return {entry["id"]: entry for entry in map(json.loads, lines)}


def questions_of(entry: Mapping[str, Any], number: int) -> list[Question]:
    """What judges are asked of one conversation: labels of the turn with the fault (else the last), scores
    where the author says something of them, and all that is asked of the whole."""
    read = read_conversation({"messages": entry["messages"], "tools": entry["tools"]}, ToolSets())
    tools = {
        name: tool.model_copy(
            update={"writes": name in entry["writes"], "reads": name not in entry["writes"]}
        )
        for name, tool in read.tools.items()
    }
    criteria = [each["text"] for each in entry["truth"]["criteria"]]
    scenario = Scenario.model_validate({
        "id": f"talk-{number}", "goal": entry["goal"], "facts": entry["facts"], "knowledge":
        entry["knowledge"], "expect": {"criteria": criteria} if criteria else {},
    }).model_copy(update={"tools": tools})  # fmt: skip
    stop = Stop(reason=StopReason.SCRIPT_DONE)
    whole = Trajectory(turns=read.parsed.trajectory.turns, stop=stop, visibility=ToolVisibility.ALL)
    config = Config(agent=AgentConfig(name="agent", target="none:none"), metrics="all")
    wanted = _wanted(entry)
    listener = Listener()
    chosen = judge_setup.load_metrics(config)
    suite = suite_policy(config, chosen.available.values(), chosen.selected)
    scorers = judge_setup.make_judges(
        chosen,
        listener,
        suite,
        rules_for=partial(rules_for, suite=suite),
        policy_of=lambda _: entry["policy"],
        criteria=bool(criteria),
    )
    asked: list[Question] = []
    for scorer in scorers:
        metric = str(getattr(scorer, "metric", ""))
        if scorer.scope == "turn":
            if metric not in wanted:
                continue
            turn = wanted[metric]
            trajectory = whole.model_copy(update={"turns": whole.turns[: turn + 1], "stop": None})
        else:
            turn, trajectory = None, whole
        listener.requests.clear()
        anyio.run(scorer, scenario, trajectory)
        for place, request in enumerate(listener.requests):
            at = place if metric == "criteria" else None
            name = f"{number}.{len(asked) + 1}"
            asked.append(Question(name, entry["id"], metric, turn, at, request))
    return asked


def _wanted(entry: Mapping[str, Any]) -> dict[str, int]:
    """The turn that each metric of a turn is asked about."""
    last = sum(message["role"] == "user" for message in entry["messages"]) - 1
    found = [each for each in entry["truth"]["must_find"] if each.get("turn") is not None]
    turn = found[0]["turn"] if found else last
    wanted = dict.fromkeys(LABELS, turn)
    family = str(entry["family"])
    if (
        "coheren" in family
        or "contradict" in family
        or any(each.get("metric") == "coherence" for each in found)
    ):
        wanted["coherence"] = turn
    if family.startswith(("b", "c")):
        wanted["faithfulness"] = turn
    if family.startswith("f"):
        wanted |= dict.fromkeys(("helpfulness", "coherence", "relevance", "faithfulness", "verbosity"), turn)
    return wanted


# ── asking ───────────────────────────────────────────────────────────────────────────────────────


def numbered(entries: Mapping[str, Any], seed: int) -> dict[str, int]:
    """A number for each conversation that says nothing of it."""
    names = sorted(entries)
    random.Random(seed).shuffle(names)
    return {name: place for place, name in enumerate(names, 1)}


def halves(entries: Mapping[str, Any], seed: int) -> dict[str, str]:
    """``dev`` or ``test`` by family of twins, so that no twin is in the other half."""
    groups = sorted({_group(entry) for entry in entries.values()})
    random.Random(seed).shuffle(groups)
    by_group = {name: ("dev", "test")[place % 2] for place, name in enumerate(groups)}
    return {name: by_group[_group(entry)] for name, entry in entries.items()}


def _group(entry: Mapping[str, Any]) -> str:
    """The name that twins share."""
    return f"{entry['family']} {str(entry['id']).rpartition('-')[0] or entry['id']}"


def ask(entries: Mapping[str, Any], folder: Path, readers: int, seed: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    numbers = numbered(entries, seed)
    shares: list[list[str]] = [[] for _ in range(readers)]
    by_group: dict[str, list[str]] = {}
    for name in sorted(entries, key=numbers.__getitem__):
        by_group.setdefault(_group(entries[name]), []).append(name)
    for place, twins in enumerate(by_group.values()):
        for offset, name in enumerate(twins):
            shares[(place + offset) % readers].append(name)
    for reader, names in enumerate(shares, 1):
        text = "\n".join(
            _sheet([(entries[name], numbers[name]) for name in sorted(names, key=numbers.__getitem__)])
        )
        (folder / f"reader-{reader}.md").write_text(text, encoding="utf-8")
    print(f"{len(entries)} conversations for {readers} readers in {folder}")


def _sheet(share: Sequence[tuple[Mapping[str, Any], int]]) -> Iterator[str]:
    """All that one reader gets: what requests have in common stands once."""
    asked = [(entry, number, questions_of(entry, number)) for entry, number in share]
    first = asked[0][2][0].request
    yield "# RULES (the system message of every request)\n"
    yield first.system
    forms: dict[str, str] = {}
    for _, _, questions in asked:
        for question in questions:
            tail = _criterion(question.request)
            forms.setdefault(tail, f"K{len(forms) + 1}" if question.criterion is None else "")
    yield "\n# CRITERIA (each is the end of a request, after the record)\n"
    for tail, name in forms.items():
        if name:
            yield f"\n=== CRITERION {name} ===\n{tail}"
    for _, number, questions in asked:
        whole = max((question.request.prompt for question in questions), key=_record_length)
        yield f"\n\n################ CONVERSATION {number} ################\n"
        yield _record(whole)
        yield "\n---------------- QUESTIONS ----------------"
        for question in questions:
            tail = _criterion(question.request)
            span = "the conversation as a whole" if question.turn is None else f"turn {question.turn + 1}"
            what = forms[tail]
            yield f"\n[{question.id}] to judge: {span}; " + (
                f"criterion {what}" if what else f"this:\n{tail}"
            )


_MARK = "\n# Criterion"


def _criterion(request: ModelRequest) -> str:
    return request.prompt[request.prompt.rindex(_MARK) + 1 :]


def _record(prompt: str) -> str:
    """Without the closing section, which each question says by itself."""
    record = prompt[: prompt.rindex(_MARK)]
    return record[: record.rindex("# What to judge")].rstrip()


def _record_length(prompt: str) -> int:
    return prompt.rindex(_MARK)


# ── what the answers come to ─────────────────────────────────────────────────────────────────────


class Count:
    """Hits among all, and the names of the misses."""

    def __init__(self) -> None:
        self.hits = 0
        self.n = 0
        self.missed: list[str] = []

    def add(self, hit: bool, name: str) -> None:
        self.hits += hit
        self.n += 1
        if not hit:
            self.missed.append(name)

    def __str__(self) -> str:
        if not self.n:
            return "–"
        low, high = interval(self.hits, self.n)
        return f"{self.hits}/{self.n} = {self.hits / self.n:.2f} [{low:.2f}, {high:.2f}]"


def interval(hits: int, n: int) -> tuple[float, float]:
    z, share = 1.96, hits / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return max(0.0, middle - half), min(1.0, middle + half)


def table(entries: Mapping[str, Any], folder: Path, seed: int, verbose: bool) -> None:
    numbers = numbered(entries, seed)
    given = dict(_answers(folder))
    seen, clean, other = {}, {}, {}
    unfit = Count()
    for name, entry in sorted(entries.items(), key=lambda item: numbers[item[0]]):
        questions = questions_of(entry, numbers[name])
        verdicts: dict[str, Any] = {}
        for question in questions:
            if question.id not in given:
                continue
            said, flaw = _read(question, given[question.id])
            unfit.add(not flaw, f"{question.id} {name} {question.metric}: {flaw}")
            verdicts[question.id] = None if flaw else said
        _hold(entry, questions, verdicts, seen, clean, other)
    print(
        "| metric | faults found (sensitivity) | clean left alone (specificity) | always passes"
        " | always fails |"
    )
    print("|---|---|---|---|---|")
    for metric in dict.fromkeys((*seen, *clean)):
        print(f"| {metric} | {seen.get(metric, Count())} | {clean.get(metric, Count())} | 0 / 1 | 1 / 0 |")
    for metric, count in other.items():
        print(f"| {metric} | {count} | | | |")
    print(f"| references found by code | {unfit} | | | |")
    if verbose:
        for title, counts in (
            ("missed", seen),
            ("false alarm", clean),
            ("other", other),
            ("unfit", {"": unfit}),
        ):
            for metric, count in counts.items():
                for each in count.missed:
                    print(f"{title}: {metric}: {each}")


def _answers(folder: Path) -> Iterator[tuple[str, Any]]:
    for path in sorted(folder.glob("answers-*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.strip():
                entry = json.loads(line)
                yield str(entry["id"]), entry["answer"]


def _read(question: Question, answer: Any) -> tuple[Any, str]:
    try:
        said = question.request.reply.model_validate(answer)
    except ValidationError as error:
        return None, f"unfit: {error.errors()[0]['msg']}"
    return said, question.request.flaw_in(said, False)


def _hold(
    entry: Mapping[str, Any],
    questions: Iterable[Question],
    verdicts: Mapping[str, Any],
    seen: dict[str, Count],
    clean: dict[str, Count],
    other: dict[str, Count],
) -> None:
    truth, name = entry["truth"], entry["id"]
    unsure = " | ".join(truth["not_certain"])
    labels: dict[str, str] = {}
    faults = [each for each in truth["must_find"] if each["labels"]]
    for question in questions:
        said = verdicts.get(question.id)
        if question.id not in verdicts:
            continue
        verdict = next(
            (getattr(said, key) for key in ("label", "outcome", "score") if hasattr(said, key)), "unfit"
        )
        told = f"{question.id} {name}: {verdict} — {getattr(said, 'reason', '')[:160]}"
        if question.metric in LABELS:
            labels[question.metric] = str(verdict)
            if not entry["known"] and question.metric not in unsure:
                clean.setdefault(question.metric, Count()).add(verdict not in HIGH, told)
        elif question.metric == "goal_completion" and "goal" not in unsure:
            right = verdict == truth["goal"]
            other.setdefault("goal_completion: the very outcome", Count()).add(
                right, f"{told} (truth: {truth['goal']})"
            )
            against = truth["goal"] in ("missed", "policy broken")
            if truth["goal"] != "ruled out":
                side = seen if against else clean
                hit = verdict in ("missed", "policy broken") if against else verdict == "reached"
                side.setdefault(question.metric, Count()).add(hit, told)
            else:
                other.setdefault("goal_completion: ruled out, not missed", Count()).add(
                    verdict == "ruled out", told
                )
        elif (
            question.metric == "policy_adherence"
            and truth["policy"] in ("pass", "fail")
            and "policy" not in unsure
        ):
            side, wanted = (seen, "fail") if truth["policy"] == "fail" else (clean, "pass")
            side.setdefault(question.metric, Count()).add(verdict == wanted, told)
        elif question.metric == "criteria" and question.criterion is not None:
            wanted = truth["criteria"][question.criterion]["truth"]
            if f"criterion {question.criterion}" in unsure:
                continue
            if wanted in ("pass", "fail"):
                side = seen if wanted == "fail" else clean
                side.setdefault("criteria", Count()).add(verdict == wanted, told)
            else:
                other.setdefault(f"criteria: {wanted}", Count()).add(verdict == wanted, told)
        elif isinstance(verdict, float | int):
            low = [each for each in truth["must_find"] if each.get("metric") == question.metric]
            if low:
                seen.setdefault(question.metric, Count()).add(verdict <= low[0]["at_most"], told)
            elif not entry["known"]:
                clean.setdefault(question.metric, Count()).add(verdict >= 4, told)
            elif question.metric == "faithfulness" and any(
                "false information" in f["labels"] for f in faults
            ):
                seen.setdefault(question.metric, Count()).add(verdict <= 3, told)
    if faults and labels:
        right = {f"{each} call" if each == "unnecessary tool" else each for each in faults[0]["labels"]}
        found = bool(right & set(labels.values()))
        seen.setdefault("a right label, of either label metric", Count()).add(
            found, f"{name}: {labels} of {right}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("ask", "table"))
    parser.add_argument("conversations", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--readers", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--half", choices=("dev", "test"))
    parser.add_argument("-v", "--verbose", action="store_true")
    given = parser.parse_args()
    entries = loaded(given.conversations)
    if given.half:
        half = halves(entries, given.seed)
        entries = {name: entry for name, entry in entries.items() if half[name] == given.half}
    if given.what == "ask":
        ask(entries, given.folder, given.readers, given.seed)
    else:
        table(entries, given.folder, given.seed, given.verbose)


if __name__ == "__main__":
    main()
