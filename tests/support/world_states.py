"""Start states of scenarios, as the tests of the tool world build them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agenteval.core.errors import Place
from agenteval.world.database import WorldDatabase
from agenteval.world.start_builder import build_start_state
from agenteval.world.start_state import StartState
from agenteval.world.table_rows import StateFiles

NOW = datetime(2026, 3, 4, 5, 6, 7, 89000, tzinfo=UTC)

ORDERS = (
    {"id": "ORD-1", "status": "pending", "total": 25.5, "is_paid": False, "tags": ["new", "eu"]},
    {"id": "ORD-2", "status": "shipped", "total": 3.25, "is_paid": True, "tags": None},
)


def state(
    tables: Mapping[str, Any] | None = None,
    *,
    schema: str | None = None,
    database: str | None = None,
    base: Path = Path(),
) -> StartState:
    """Build a start state. The place of a part of it is its path, such as ``tables.orders.0.id``."""
    return build_start_state(
        tables=tables or {},
        schema=schema,
        database=database,
        files=StateFiles(base, base),
        place_of=lambda loc: Place(".".join(map(str, loc))),
        now=NOW,
    )


def schema_state(folder: Path, sql: str, tables: Mapping[str, Any] | None = None) -> StartState:
    (folder / "schema.sql").write_text(sql, "utf-8")
    return state(tables, schema="schema.sql", base=folder)


def database(start: StartState, seed: int = 1) -> WorldDatabase:
    return WorldDatabase(start, NOW, seed)
