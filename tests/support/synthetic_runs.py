"""Runs of any size, on whose report a page, a search or a compression may be measured: their texts hold as
much as real ones do, and compress alike (``benchmarks/README.md``, page).

Sentences are runs of words from ``benchmarks/judging``; what tools return are records with the keys that such
tools have, whose ids, dates and numbers are drawn. The seed decides everything."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from agenteval.core.decision import GateRow
from agenteval.core.event import Event, IssuesFound, Notice, RunFinished
from agenteval.core.scenario import SampleKey, Scenario
from agenteval.core.score import (
    Check,
    Finding,
    Issue,
    IssueExample,
    Occurrence,
    Score,
    ScoreItem,
    Severity,
    Verdict,
)
from agenteval.core.trajectory import Step, Stop, StopReason, ToolCall, ToolResult, Turn, Usage
from agenteval.scoring.metrics import built_in_metrics
from agenteval.verdict.report import build_report
from tests.support.report_samples import DONE, Told, conversation, decide, started

_Item = TypeVar("_Item")

TURNS = (1, 4)
"""The least and the most turns of a conversation, which is then about 8 kB of a page's JSON."""
REAL_TURNS = (4, 9)
"""As many as real conversations with an airline or a shop have: 19 kB."""
EPOCHS = 2

FAILED, UNDECIDED, FOUND = 0.06, 0.02, 0.1
"""Of the conversations: how many fail a check, reach no agent, and have a finding, critical now and then."""

_AGENT = "wonderbot"
_JUDGE = "openai/gpt-5-mini"
_METRICS = ("helpfulness", "faithfulness", "goal_completion")
"""The last one is of the conversation, the others of each turn."""
_SOURCE = Path(__file__).parents[2] / "benchmarks" / "judging" / "conversations.jsonl"
_IN_A_ROW = (2, 5)
"""How many words are taken from one place of the source. Longer runs compress better."""
_TAGS = ("booking", "refund", "smoke", "orders", "robustness", "spanish", "slow")
_LABELS = {
    "false information": Severity.CRITICAL,
    "wrong arguments": Severity.HIGH,
    "repeated tool call": Severity.MEDIUM,
    "lack of specific information": Severity.MEDIUM,
    "repetition": Severity.LOW,
}
_TOOLS: Mapping[str, tuple[str, ...]] = {
    "get_reservation_details": (
        "reservation_id", "origin_city", "destination_city", "cabin_kind", "scheduled_departure_date",
        "insurance_kind", "nonfree_baggage_count", "total_baggage_count", "economy_price",
    ),
    "search_direct_flight": (
        "flight_id", "scheduled_departure_date", "availability_kind", "basic_economy_seat_count",
        "economy_seat_count", "business_seat_count", "economy_price",
    ),
    "get_order_details": (
        "order_id", "product_name", "fulfillment_kind", "item_option_count", "payment_method_kind",
        "estimated_delivery_date", "item_price",
    ),
    "find_user": (
        "user_id", "family_name", "home_city", "membership_kind", "payment_method_kind", "passenger_count",
    ),
    "create_refund": ("refund_id", "payment_method_kind", "fulfillment_kind", "item_price", "created_date"),
    "cancel_pending_order": ("order_id", "fulfillment_kind", "payment_method_kind", "item_price"),
}  # fmt: skip
"""The keys of what each returns. The last word decides how much a value holds."""
_NAMES = tuple(_TOOLS)
_KINDS = (
    "available",
    "pending",
    "delivered",
    "basic_economy",
    "business",
    "gift_card",
    "credit_card",
    "regular",
)
_CITIES = ("Atlanta", "Seattle", "Houston", "Las Vegas", "Philadelphia", "San Francisco", "Denver", "Chicago")
_RECORDS = (1, 1, 2, 5, 14)
"""How many records a call may return."""


def synthetic_run(conversations: int, *, seed: int = 1, turns: tuple[int, int] = TURNS) -> Told:
    """A finished run of so many conversations, two of each scenario, and what was decided of it."""
    report = build_report(synthetic_events(conversations, seed=seed, turns=turns))
    basis = f"{conversations} conversations"
    missed = GateRow("helpfulness", 3.4, 3.5, basis, "agenteval.yaml:8", Verdict.FAILED, metric="helpfulness")
    held = GateRow("pass_rate", 0.91, 0.9, basis, "agenteval.yaml:9", Verdict.PASSED)
    return report, decide(report, missed, held)


def synthetic_events(conversations: int, *, seed: int = 1, turns: tuple[int, int] = TURNS) -> Iterator[Event]:
    """The events of its journal, in their order."""
    writer = _Writer(seed, turns)
    scenarios = tuple(writer.scenario(number) for number in range(-(-conversations // EPOCHS)))
    keys = tuple(
        SampleKey(scenario=scenario.id, agent=_AGENT, epoch=epoch)
        for scenario in scenarios
        for epoch in range(EPOCHS)
    )[:conversations]
    metrics = tuple(metric for metric in built_in_metrics() if metric.name in _METRICS)
    yield started(scenarios, keys, metrics=metrics, judged=_METRICS)
    for key in keys:
        yield from writer.conversation(key)
    yield Notice(level="warning", text="temperature is not supported and was dropped")
    yield IssuesFound(issues=tuple(writer.issues()))
    yield RunFinished(finished_at="2026-11-21T10:16:00Z", elapsed_s=conversations * 0.7)


@cache
def _words() -> list[str]:
    """What users and agents wrote, word by word."""
    found = []
    for line in _SOURCE.read_text(encoding="utf-8").splitlines():
        messages = json.loads(line)["messages"]
        texts = (each["content"] for each in messages if each["role"] in ("user", "assistant"))
        found += [word for text in texts if text for word in text.split()]
    return found


@cache
def _runs() -> list[str]:
    """From each word on, some words in a row."""
    words, draw = _words(), random.Random(0)
    return [" ".join(words[start : start + draw.randint(*_IN_A_ROW)]) for start in range(len(words))]


class _Writer:
    def __init__(self, seed: int, turns: tuple[int, int]) -> None:
        self._random = random.Random(seed)
        self._turns = turns
        self._found: dict[tuple[str, str], list[tuple[SampleKey, Finding]]] = defaultdict(list)

    def scenario(self, number: int) -> Scenario:
        name = "-".join(filter(str.isalpha, self._prose(6).lower().split())) or "hello"
        tags = self._random.sample(_TAGS, self._between(0, 2))
        source = f"scenarios/{self._one_of(_TAGS)}.yaml:{number * 7 + 2}"
        ident = f"{name[:40]}-{number}"
        return Scenario(id=ident, name=self._prose(5), tags=tuple(tags), goal=self._prose(12), source=source)

    def conversation(self, key: SampleKey) -> Iterator[Event]:
        fate = self._random.random()
        turns = [self._turn() for _ in range(self._between(*self._turns))]
        if fate < UNDECIDED:
            down = Stop(reason=StopReason.INFRASTRUCTURE, detail="http://localhost:9 refused the connection")
            broken = Turn(user=self._prose(20), error="connection refused")
            return conversation(key, tuple(turns[:-1]), stop=down, unfinished=broken)
        items: dict[int | None, tuple[ScoreItem, ...]] = {
            index: tuple(self._judged(turn)) for index, turn in enumerate(turns)
        }
        goal = self._score(_METRICS[-1], turns[-1], 1.0)
        items[None] = (Check(name="no_error", passed=True), goal, *self._failed(fate))
        if self._random.random() < FOUND:
            place = self._between(0, len(turns) - 1)
            finding = self._finding(turns[place], place)
            items[place] += (finding,)
            self._found[finding.label, finding.metric].append((key, finding))
        return conversation(key, tuple(turns), items, stop=DONE)

    def issues(self) -> Iterator[Issue]:
        for number, ((label, metric), found) in enumerate(self._found.items(), 1):
            places = [{"scenario": key.scenario, "agent": key.agent, "epoch": key.epoch} for key, _ in found]
            first = found[0][1]
            yield Issue(
                id=f"I{number}",
                agent=_AGENT,
                title=self._prose(9),
                explanation=self._prose(25),
                severity=first.severity,
                labels=(label,),
                metrics=(metric,),
                occurrences=tuple(Occurrence(**place, findings=(0,)) for place in places),
                examples=(IssueExample(**places[0], turn=first.turn, evidence=first.evidence),),
                by=_JUDGE,
            )

    def _turn(self) -> Turn:
        calls = [self._call() for _ in range(self._one_of((0, 1, 1, 2)))]
        steps = [Step(tool_calls=(call,), latency_ms=self._ms(), usage=self._usage()) for call in calls]
        answer = Step(text=self._prose(self._between(20, 170)), latency_ms=self._ms(), usage=self._usage())
        user = self._prose(self._between(8, 64))
        spent = sum(step.latency_ms for step in (*steps, answer))
        return Turn(user=user, steps=(*steps, answer), latency_ms=round(spent, 1), script=0)

    def _call(self) -> ToolCall:
        name = self._one_of(_NAMES)
        keys = _TOOLS[name]
        records = [{key: self._value(key) for key in keys} for _ in range(self._one_of(_RECORDS))]
        args = {key: records[0][key] for key in keys[:2]}
        ident = f"call_{self._random.getrandbits(48):012x}"
        return ToolCall(name=name, args=args, id=ident, observed=True, result=ToolResult(value=records))

    def _value(self, key: str) -> Any:
        draw = self._between
        match key.rpartition("_")[2]:
            case "id":
                return f"{key[0].upper()}{draw(10_000, 99_999)}"
            case "date":
                return f"2026-{draw(5, 6):02}-{draw(1, 28):02}"
            case "price":
                return draw(50, 450)
            case "count":
                return draw(0, 9)
            case "kind":
                return self._one_of(_KINDS)
            case "city":
                return self._one_of(_CITIES)
        return self._one_of(_words())

    def _judged(self, turn: Turn) -> Iterator[ScoreItem]:
        yield Check(name="answer", passed=True, detail=f'answered "{(turn.answer or "")[:60]}…"')
        for metric in _METRICS[:-1]:
            yield self._score(metric, turn, float(self._random.choices((2, 3, 4, 5), (1, 2, 5, 8))[0]))

    def _score(self, metric: str, turn: Turn, value: float) -> Score:
        reason = self._prose(self._between(8, 25))
        return Score(metric=metric, value=value, reason=reason, evidence=self._quote(turn), by=_JUDGE)

    def _failed(self, fate: float) -> Iterator[ScoreItem]:
        if UNDECIDED <= fate < UNDECIDED + FAILED:
            wanted = self._call()
            detail = f"missing: {wanted.name}({json.dumps(wanted.args)})"
            where = f"scenarios/orders.yaml:{self._between(3, 900)}"
            yield Check(name="tool_calls", passed=False, detail=detail, where=where)

    def _finding(self, turn: Turn, place: int) -> Finding:
        label = self._random.choices(list(_LABELS), (1, 2, 4, 4, 6))[0]
        return Finding(
            detector="judge",
            metric="agent_behavior_failure",
            label=label,
            severity=_LABELS[label],
            turn=place,
            evidence=self._quote(turn),
            explanation=self._prose(18),
        )

    def _quote(self, turn: Turn) -> str:
        answer = turn.answer or ""
        start = self._between(0, max(0, len(answer) - 60))
        return answer[start : start + 60].strip()

    def _prose(self, words: int) -> str:
        """About so many words."""
        runs = self._random.choices(_runs(), k=max(1, round(words / (sum(_IN_A_ROW) / 2))))
        return " ".join(runs)

    def _between(self, least: int, most: int) -> int:
        """As ``randint`` draws, which takes four times as long: a run of 10,000 draws three million times."""
        return least + int(self._random.random() * (most - least + 1))

    def _one_of(self, values: Sequence[_Item]) -> _Item:
        return values[int(self._random.random() * len(values))]

    def _ms(self) -> float:
        return round(self._random.lognormvariate(6.8, 0.6), 1)

    def _usage(self) -> Usage:
        read, written = self._between(300, 9_000), self._between(20, 600)
        cost = round(read * 0.25e-6 + written * 2e-6, 7)
        return Usage(calls=1, input_tokens=read, output_tokens=written, cost=cost)
