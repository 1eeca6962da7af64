"""scenarios/airline is the airline of tau-bench: calls give the results, and leave the states, that were
published with them."""

from __future__ import annotations

import gzip
import json
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import anyio
import pytest

from agenteval.conversation.mocks import MockFunctions
from agenteval.conversation.simulation import ToolWorld
from agenteval.core.scenario import Sample, SampleKey, Scenario
from agenteval.core.trajectory import ToolCall
from agenteval.files.scenario_loader import load_scenario_files
from agenteval.scoring.checks import RULES
from agenteval.world.changes import ChangedRow, changed_rows
from agenteval.world.database import WorldDatabase
from agenteval.world.loading import load_start_state
from tests.support.kit import Project

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "scenarios" / "airline"
SHARED = ROOT.parent / "shared" / "data"
PUBLISHED = SHARED / "airline_world"
NOW = datetime(2024, 5, 15, 15, tzinfo=UTC)

Json = dict[str, Any]
Call = Mapping[str, Any]
"""A call as it was published: ``{name, arguments}``."""

needs_published = pytest.mark.skipif(
    not PUBLISHED.is_dir(), reason="needs ../shared/data/airline_world: the published calls and end states"
)


# ── the world ────────────────────────────────────────────────────────────────────────────────────


@cache
def scenario() -> Scenario:
    return load_scenario_files([Path("airline.yaml")], rules=RULES, root=EXAMPLE)[0]


def new_database() -> WorldDatabase:
    spec = scenario().state
    assert spec is not None
    return WorldDatabase(load_start_state(spec, NOW), NOW, seed=1)


async def _make(calls: Iterable[Call], database: WorldDatabase) -> list[str]:
    sample = Sample(key=SampleKey(scenario="s", agent="a"), scenario=scenario())
    world = ToolWorld(sample, MockFunctions(timeout_s=60), database=database)
    made = (ToolCall(name=call["name"], args=call["arguments"]) for call in calls)
    return [(await world.resolve(call, 0)).text for call in made]


def play(calls: Iterable[Call]) -> tuple[list[str], Json]:
    """Make the calls in a new world. Return the texts of the results, and what has changed, as published."""
    database = new_database()
    try:
        return anyio.run(_make, calls, database), changes(database)
    finally:
        database.close()


def changes(database: WorldDatabase) -> Json:
    """Return ``{table: {row id: {path: [before, after]}}}``."""
    found = changed_rows(database.changes(), database.start)
    assert found.keys() <= {"reservations", "users", "payment_methods"}
    ids = {
        "reservations": ids_of(found, "reservation_id", "reservations"),
        "users": ids_of(found, "user_id", "users", "payment_methods"),
    }
    with database.reader() as connection, connection.unrestricted() as raw:
        after = {
            "reservations": read_reservations(raw, ids["reservations"]),
            "users": read_users(raw, ids["users"]),
        }
    before = published_rows()
    every = {
        table: {each: dict(differences(before[table].get(each), after[table].get(each))) for each in rows}
        for table, rows in ids.items()
    }
    return {table: rows for table, rows in every.items() if rows}


def ids_of(found: Mapping[str, Sequence[ChangedRow]], column: str, *tables: str) -> list[str]:
    changed = (row.after or row.before or {} for table in tables for row in found.get(table, ()))
    return [row[column] for row in changed]


def differences(before: Any, after: Any, path: str = "") -> Iterator[tuple[str, list[Any]]]:
    """Yield the paths in which two rows differ, with both values. 5 is not 5.0, and ``None`` is absent."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in dict.fromkeys((*before, *after)):
            below = f"{path}.{name}" if path else name
            yield from differences(before.get(name), after.get(name), below)
    elif json.dumps(before, sort_keys=True) != json.dumps(after, sort_keys=True):
        yield path, [before, after]


# ── the tables as they were published ────────────────────────────────────────────────────────────


def rows_of(
    raw: sqlite3.Connection, table: str, key: str = "", ids: Sequence[str] | None = None
) -> list[Json]:
    """Return rows of a table without NULL, and without columns that are computed."""
    names = [each[1] for each in raw.execute(f"PRAGMA table_info({table})")]
    where = "" if ids is None else f"WHERE {key} IN ({', '.join('?' * len(ids))})"
    rows = raw.execute(f"SELECT {', '.join(names)} FROM {table} {where} ORDER BY rowid", ids or ())
    return [
        {name: value for name, value in zip(names, row, strict=True) if value is not None} for row in rows
    ]


def with_parsed(row: Json, *names: str) -> Json:
    return {**row, **{name: json.loads(row[name]) for name in names}}


def read_reservations(raw: sqlite3.Connection, ids: Sequence[str] | None = None) -> Json:
    return {
        row["reservation_id"]: with_parsed(row, "flights", "passengers", "payment_history")
        for row in rows_of(raw, "reservations", "reservation_id", ids)
    }


def read_users(raw: sqlite3.Connection, ids: Sequence[str] | None = None) -> Json:
    methods: dict[str, Json] = {}
    for row in rows_of(raw, "payment_methods", "user_id", ids):
        methods.setdefault(row.pop("user_id"), {})[row["id"]] = row
    users = {
        row.pop("user_id"): with_parsed(row, "name", "address", "saved_passengers", "reservations")
        for row in rows_of(raw, "users", "user_id", ids)
    }
    return {user: {**row, "payment_methods": methods.get(user, {})} for user, row in users.items()}


CABINS = ("basic_economy", "economy", "business")


def read_flights(raw: sqlite3.Connection) -> Json:
    flights = {row["flight_number"]: {**row, "dates": {}} for row in rows_of(raw, "flights")}
    for row in rows_of(raw, "flight_dates"):
        dates = flights[row.pop("flight_number")]["dates"]
        seats, prices = (
            {each: row.pop(f"{each}_{what}", None) for each in CABINS} for what in ("seats", "price")
        )
        known = {"available_seats": seats, "prices": prices} if seats["economy"] is not None else {}
        date = row.pop("date")
        dates[date] = {**row, **known}
    return flights


@cache
def published_rows() -> Json:
    names = ("flights", "reservations", "users")
    return {name: json.loads(gzip.decompress((PUBLISHED / f"{name}.json.gz").read_bytes())) for name in names}


def published(name: str) -> list[Json]:
    path = PUBLISHED / name
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


def by_id(name: str) -> dict[int, Json]:
    return {each["id"]: each for each in published(name)}


ALL = range(50)
ALTERED = (0, 1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 14, 22, 28, 33, 34, 43, 45, 46)
"""The tasks with a wrong sequence of calls."""
TASKS, ENDS, WRONG = by_id("tasks.jsonl"), by_id("end_states.jsonl"), by_id("wrong_sequences.jsonl")


@needs_published
def test_the_start_is_the_published_data() -> None:
    database = new_database()
    with database.reader() as connection, connection.unrestricted() as raw:
        found = {
            "flights": read_flights(raw),
            "reservations": read_reservations(raw),
            "users": read_users(raw),
        }
    for name, rows in published_rows().items():
        assert json.dumps(found[name], sort_keys=True) == json.dumps(rows, sort_keys=True), name
    assert tuple(TASKS) == tuple(ENDS) == tuple(ALL)
    assert tuple(WRONG) == ALTERED


@needs_published
@pytest.mark.parametrize("task", ALL)
def test_the_expected_calls_leave_the_published_state(task: int) -> None:
    results, changed = play(TASKS[task]["actions"])
    assert results == ENDS[task]["tool_results"]
    assert changed == ENDS[task]["changed"]


@needs_published
def test_no_call_and_calls_that_read_change_nothing() -> None:
    assert play([]) == ([], {})
    assert play(READS)[1] == {}


ROUTE = {"origin": "JFK", "destination": "SEA", "date": "2024-05-20"}
READS = [
    {"name": "get_user_details", "arguments": {"user_id": "mia_li_3668"}},
    {"name": "get_reservation_details", "arguments": {"reservation_id": "NO6JO3"}},
    {
        "name": "search_direct_flight",
        "arguments": {"origin": "JFK", "destination": "SEA", "date": "2024-05-20"},
    },
    {
        "name": "search_onestop_flight",
        "arguments": {"origin": "JFK", "destination": "SEA", "date": "2024-05-20"},
    },
    {"name": "list_all_airports", "arguments": {}},
    {"name": "calculate", "arguments": {"expression": "2 + 2"}},
    {"name": "think", "arguments": {"thought": "so"}},
    {"name": "get_reservation_details", "arguments": {"reservation_id": "NONE"}},
]


@needs_published
@pytest.mark.parametrize("task", ALL)
def test_another_path_that_only_reads_more_leaves_the_same_state(task: int) -> None:
    actions = [each for action in TASKS[task]["actions"] for each in (*READS, action)]
    results, changed = play([*actions, *READS])
    assert results[len(READS) :: len(READS) + 1] == ENDS[task]["tool_results"]
    assert changed == ENDS[task]["changed"]


@needs_published
@pytest.mark.parametrize("task", ALTERED)
def test_a_wrong_path_leaves_another_state(task: int) -> None:
    wrong, right = WRONG[task], play(TASKS[task]["actions"])[1]
    results, changed = play(wrong["actions"])
    assert results == wrong["tool_results"]
    assert changed == wrong["changed"]
    assert sorted(differing_rows(changed, right)) == sorted(wrong["differs_in"])


def differing_rows(one: Json, other: Json) -> Iterator[str]:
    for table in one.keys() | other.keys():
        rows, others = one.get(table, {}), other.get(table, {})
        yield from (
            f"{table}/{row}" for row in rows.keys() | others.keys() if rows.get(row) != others.get(row)
        )


# ── calls that nobody published ──────────────────────────────────────────────────────────────────


def call(name: str, **arguments: Any) -> Json:
    return {"name": name, "arguments": arguments}


def booking(*payments: tuple[str, int]) -> Json:
    return call(
        "book_reservation",
        user_id="mia_li_3668",
        origin="JFK",
        destination="SEA",
        flight_type="one_way",
        cabin="economy",
        flights=[{"flight_number": "HAT136", "date": "2024-05-20"}],
        passengers=[{"first_name": "Mia", "last_name": "Li", "dob": "1990-04-05"}],
        payment_methods=[{"payment_id": name, "amount": amount} for name, amount in payments],
        total_baggages=0,
        nonfree_baggages=0,
        insurance="no",
    )


@needs_published
def test_a_certificate_that_pays_twice_is_gone_and_nothing_is_booked() -> None:
    certificate = "certificate_7504069"
    results, changed = play([booking((certificate, 100), (certificate, 52))])
    assert results == [f"Error: '{certificate}'"]
    (gone,) = changed["users"]["mia_li_3668"].items()
    assert changed.keys() == {"users"}
    assert (gone[0], gone[1][1]) == (f"payment_methods.{certificate}", None)


@needs_published
def test_a_fourth_booking_takes_the_place_of_the_third() -> None:
    results, changed = play([booking(("credit_card_4421486", 152))] * 4)
    ids = [json.loads(each)["reservation_id"] for each in results]
    assert ids == ["HATHAT", "HATHAU", "HATHAV", "HATHAV"]
    assert sorted(changed["reservations"]) == ["HATHAT", "HATHAU", "HATHAV"]
    assert changed["users"]["mia_li_3668"]["reservations"][1][-4:] == ids


@needs_published
def test_fewer_paid_bags_cost_nothing_and_refund_nothing() -> None:
    card = {"reservation_id": "HATHAT", "payment_id": "credit_card_4421486", "total_baggages": 2}
    bags = [call("update_reservation_baggages", **card, nonfree_baggages=count) for count in (2, 0)]
    results, _ = play([booking((card["payment_id"], 152)), *bags])
    left = json.loads(results[-1])
    assert [each["amount"] for each in left["payment_history"]] == [152, 100]
    assert left["nonfree_baggages"] == 0


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (call("calculate", expression="1 / 0"), "Error: division by zero"),
        (call("calculate", expression="9**9**9"), "Error: powers are not supported"),
        (call("calculate", expression="abs(1)"), "Error: invalid characters in expression"),
        (call("search_onestop_flight", origin="JFK", destination="SEA", date="soon"), "[]"),
        (
            call("search_onestop_flight", origin="ATL", destination="BOS", date="soon"),
            "Error: invalid literal for int() with base 10: 'on'",
        ),
        (call("cancel_reservation", reservation_id="NONE"), "Error: reservation not found"),
        (call("send_certificate", user_id="nobody", amount=5), "Error: user not found"),
    ],
)
def test_what_cannot_be_done_is_said(made: Json, text: str) -> None:
    database = new_database()
    assert anyio.run(_make, [made], database) == [text]
    assert not database.changes().tables
    database.close()


# ── calls that agents made ───────────────────────────────────────────────────────────────────────

RECORDED = SHARED / "tau_airline.jsonl.gz"


@pytest.mark.skipif(not RECORDED.exists(), reason="needs ../shared/data/tau_airline.jsonl.gz: recorded calls")
def test_recorded_calls_get_the_recorded_results() -> None:
    seen: Counter[str] = Counter()
    for line in gzip.decompress(RECORDED.read_bytes()).splitlines():
        calls, results = recorded_calls(json.loads(line)["messages"])
        found, _ = play(calls)
        # The key was renamed after these calls had been recorded.
        texts = [text.replace('"state": ', '"province": ', 1) for text in found]
        for call, expected, text in zip(calls, results, texts, strict=True):
            assert text == expected, call
            seen["error" if text.startswith("Error") else call["name"]] += 1
    assert (seen.total(), seen["error"], len(seen)) == (1164, 73, 15)


def recorded_calls(messages: Iterable[Json]) -> tuple[list[Json], list[str]]:
    """Return the calls of a conversation and their results, which are paired by their positions."""
    calls, results = [], []
    for message in messages:
        for call in message.get("tool_calls") or ():
            function = call["function"]
            calls.append({"name": function["name"], "arguments": json.loads(function["arguments"])})
        if message["role"] == "tool":
            results.append(message["content"])
    return calls, results


# ── the example suite ────────────────────────────────────────────────────────────────────────────

FAILING = {
    "task-3": {"state.changed": {"reservations.total_baggages"}},
    "task-31": {"state.same_as": {"reservations.payment_history"}},
    "task-45": {"state.same_as": {"payment_methods.amount"}},
}


def test_the_suite_passes_seven_tasks_and_fails_three_by_their_states(tmp_path: Path) -> None:
    project = Project(shutil.copytree(EXAMPLE, tmp_path / "airline", ignore=IGNORED))
    done = project.run()
    assert done.code == 1, done.all
    scenarios = project.results()["scenarios"]
    assert len(scenarios) == 10
    assert {each["id"] for each in scenarios if each["verdict"] != "passed"} == FAILING.keys()
    for each in scenarios:
        checks = [check for check in each["samples"][0]["checks"] if check["passed"] is False]
        assert {check["name"] for check in checks} == FAILING.get(each["id"], {}).keys(), each["id"]
        for check in checks:
            assert any(part in str(check) for part in FAILING[each["id"]][check["name"]])


IGNORED = shutil.ignore_patterns("__pycache__", ".agenteval")
