"""The state of a scenario's tool world: what its author writes, and what is recorded of it."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    SerializerFunctionWrapHandler,
    Tag,
    model_serializer,
    model_validator,
)

from agenteval.core.value import AlternativeSchema, Value


class TableFile(Value):
    """A table whose rows are in a file."""

    file: str
    """CSV, TSV, JSON, JSONL or YAML file with the rows, relative to the folder of this file."""
    types: dict[str, str] = {}
    """Types of the columns of a CSV file: text, integer, real, boolean or json; default: text."""

    SHORT_FORM: ClassVar[str] = "a file name"


def _table_kind(value: Any) -> str:
    if isinstance(value, str):
        return "path"
    return "file" if isinstance(value, Mapping | TableFile) else "rows"


WorldTables: TypeAlias = Mapping[str, tuple[Mapping[str, Any], ...]]
"""Rows by table, as JSON, that a world in Python returns."""

TableEntry: TypeAlias = Annotated[
    Annotated[str, Tag("path")]
    | Annotated[TableFile, Tag("file")]
    | Annotated[tuple[dict[str, Any], ...], Tag("rows")],
    Discriminator(_table_kind),
]

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED_PREFIXES = ("AGENTEVAL_", "PYTHON", "LD_", "DYLD_", "LC_", "OTEL_")
_RESERVED_VARIABLES = frozenset(
    (
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "PWD",
        "OLDPWD",
        "TMPDIR",
        "TMP",
        "TEMP",
        "LANG",
        "TZ",
        "TERM",
    )
)


def _check_variable(name: str | None) -> str | None:
    """Return the name of an environment variable. Raise ``ValueError`` for one that is not a name, or that
    programs need for something else."""
    if name is None:
        return None
    if not _VARIABLE.fullmatch(name):
        raise ValueError(f"'{name}' is not a name of an environment variable; use, for example, SHOP_DB")
    if name.upper() in _RESERVED_VARIABLES or name.upper().startswith(_RESERVED_PREFIXES):
        raise ValueError(f"the variable '{name}' has another meaning; use, for example, SHOP_DB")
    return name


with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # pydantic's models once had a method `schema`

    class StateSpec(Value):
        """The state with which every conversation of a scenario begins: a SQLite database."""

        tables: dict[str, TableEntry] = {}
        """Tables by name: a list of rows, or a CSV, TSV, JSON, JSONL or YAML file."""
        schema: str | None = None  # type: ignore[assignment]
        """File with SQL that creates tables and may insert rows, relative to the folder of this file."""
        database: str | None = None
        """SQLite file to begin with, relative to the folder of this file; it is never changed."""
        expose: Annotated[
            str | None, AfterValidator(_check_variable), Field(exclude_if=lambda name: name is None)
        ] = None
        """Environment variable with the path of the conversation's own copy, for the agent's own tools."""
        base: str = ""  # set by the loader: the folder of the scenario's file
        snapshot: Annotated[WorldTables, Field(exclude_if=lambda tables: not tables)] = {}
        # set by the loader: the tables of the scenario's `world`, as an instance begins with them

        INTERNAL: ClassVar[frozenset[str]] = frozenset({"base", "snapshot"})

        @property
        def files(self) -> tuple[Path, ...]:
            """The files of which the state is made."""
            tables = (entry for entry in self.tables.values() if isinstance(entry, str | TableFile))
            names = (entry if isinstance(entry, str) else entry.file for entry in tables)
            return tuple(Path(self.base, name) for name in (self.schema, self.database, *names) if name)

        @model_validator(mode="after")
        def _has_content(self) -> StateSpec:
            is_empty = not self.tables and not self.snapshot
            if is_empty and self.schema is None and self.database is None:
                raise ValueError("the state is empty; set `tables`, `schema` or `database`")
            return self


# ── expectations ─────────────────────────────────────────────────────────────────────────────────


class StateCall(Value):
    """A call to a tool that changes the state."""

    name: str
    """Name of the tool."""
    args: dict[str, Any] = {}
    """Arguments of the call."""


DELETED = "$deleted"
"""The key, with the value true, that marks an expected row as deleted."""
_KINDS = ("sql", "changed", "same_as")


class StateExpectation(Value):
    """An expectation about the state, defined by one of ``sql``, ``changed`` and ``same_as``."""

    sql: str | None = None
    """Query whose result is compared with equals, or must be empty."""
    equals: Any = None
    """Expected result of the query: a value, a row (only the columns that it names), or a list of these."""
    empty: Literal[True] | None = None
    """True if the query must find no row."""
    changed: dict[str, tuple[dict[str, Any], ...]] | None = None
    """Rows by table that must differ from the start, as they must read now; {} means that nothing may
    change."""
    same_as: Annotated[tuple[StateCall, ...], Field(min_length=1)] | None = None
    """Calls that would have left the same state."""

    EXAMPLE: ClassVar[str] = "{sql: SELECT status FROM orders WHERE id = 7, equals: cancelled}"

    @model_validator(mode="after")
    def _one_of(self) -> StateExpectation:
        kinds = [name for name in _KINDS if getattr(self, name) is not None]
        if len(kinds) != 1:
            raise ValueError("exactly one of `sql`, `changed` and `same_as` must be set")
        results = [name for name in ("equals", "empty") if name in self.model_fields_set]
        if self.sql is None and results:
            raise ValueError(f"`{results[0]}` needs `sql`")
        if self.sql is not None and len(results) != 1:
            raise ValueError("`sql` needs exactly one of `equals` and `empty: true`")
        return self

    @property
    def kind(self) -> str:
        return next(name for name in _KINDS if getattr(self, name) is not None)

    @model_serializer(mode="wrap")
    def _dump(self, dump: SerializerFunctionWrapHandler) -> Any:
        return {name: value for name, value in dump(self).items() if name in self.model_fields_set}


def _one_or_several(value: Any) -> Any:
    """Expand a single expectation to a list."""
    return (value,) if isinstance(value, Mapping | StateExpectation) else value


StateExpectations: TypeAlias = Annotated[
    tuple[StateExpectation, ...], BeforeValidator(_one_or_several), AlternativeSchema(type="object")
]


# ── what is recorded ─────────────────────────────────────────────────────────────────────────────

StoredRow: TypeAlias = Mapping[str, Any]
"""A row by its columns, as SQLite stores it. What JSON cannot represent is ``{"$blob": base64}`` or
``{"$real": "inf"}``."""


class RowChange(Value):
    """A row that differs from the start state."""

    identity: tuple[Any, ...]
    """The rowid of the row, or the primary key in a table WITHOUT ROWID."""
    before: StoredRow | None
    """The row in the start state. ``None`` if the row was inserted."""
    after: StoredRow | None
    """The row now. ``None`` if the row was deleted."""


class StateChanges(Value):
    """All differences between a database and the start state: together with the start state, they are the
    database."""

    tables: Mapping[str, tuple[RowChange, ...]] = {}
    """The changed rows of each table that has any."""
    is_complete: bool = True
    """False if there are too many changes to keep, one that cannot be recorded, or if the database could not
    be read. ``tables`` then holds only some of them."""
    start: str = ""
    """A hash of the start state."""
    now: str = ""
    """The time in the tool world, in ISO 8601 format."""
    seed: int = 0
    """The seed of the random numbers in the tool world."""
    unknown_because: Annotated[str, Field(exclude_if=lambda why: not why)] = ""
    """The reason why the state is not known, if it is not that there are too many changes."""


class ReferenceState(Value):
    """The state that calls leave if they are made one after the other at the start."""

    calls: tuple[StateCall, ...]
    changes: StateChanges | None = None
    """What then differs from the start. ``None`` if a call failed."""
    error: str = ""
    """The call that failed on the state, and its result. Empty if none did."""
