"""Reads the accept list: a YAML file of known failures, each with an owner, a reason and an expiry date."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agenteval.core.config import AcceptedFailure
from agenteval.core.errors import AuthorError, Place, Problem
from agenteval.files.regular_files import read_file, wrap_read_errors
from agenteval.files.scenario_files import display_path
from agenteval.files.validation import keep_scalar_text, known_keys, unknown_key, validate
from agenteval.files.yaml_scalars import display_value
from agenteval.files.yaml_source import MAX_BYTES, Mark, parse_yaml

_LIST_KEY = "accepted"
_TEXT_KEYS = frozenset(known_keys(AcceptedFailure))
_EXAMPLE = "use, for example, accepted: [{fingerprint: …, owner: …, reason: …, expires: 2026-12-31}]"


def load_accepted(path: Path, cwd: Path, *, named_at: Place | None = None) -> tuple[AcceptedFailure, ...]:
    """Return the entries of the accept list (known failures), in order. ``named_at`` is the location in the
    configuration where the file is specified. Raise ``AuthorError`` with every mistake and its location."""
    name = display_path(path, cwd)
    with wrap_read_errors(
        f"the accept list {name}", named_at, "paths are relative to the configuration file"
    ):
        data = read_file(path, MAX_BYTES + 1)
    if _is_empty(data):
        return ()
    document = parse_yaml(data, name)
    mark = document.mark
    value = keep_scalar_text(document, texts=_TEXT_KEYS)
    problems: list[Problem] = []
    if isinstance(value, dict):
        problems += [unknown_key(key, [_LIST_KEY], mark.find((key,))) for key in value if key != _LIST_KEY]
        if problems and document.value.get(_LIST_KEY) is None:  # the list may have the unknown key
            raise AuthorError(*problems)
        value, mark = value.get(_LIST_KEY), mark.find((_LIST_KEY,))
    if value is None and document.value == {_LIST_KEY: None}:
        return ()
    if not isinstance(value, list):
        raise AuthorError(
            *problems,
            Problem(f"expected a list of failures, got {display_value(value)}", _EXAMPLE, mark.place),
        )
    entries = list(_parse_entries(value, mark, problems))
    problems += _find_duplicates(entries)
    if problems:
        raise AuthorError(*problems)
    return tuple(entries)


def _is_empty(data: bytes) -> bool:
    """Check whether a file has no entries. A file whose last entry was removed is still valid."""
    return all(not line.strip() or line.lstrip().startswith(b"#") for line in data.splitlines())


def _parse_entries(value: list[Any], mark: Mark, problems: list[Problem]) -> Iterator[AcceptedFailure]:
    """Yield the valid entries, and append mistakes to ``problems``."""
    for index, item in enumerate(value):
        where = mark.find((index,))
        entry, wrong = validate(AcceptedFailure, item, where, kind=_LIST_KEY)
        problems += wrong
        if entry:
            place = Place(where.place.path, where.place.line)
            yield entry.model_copy(update={"where": str(place)})


def _find_duplicates(entries: list[AcceptedFailure]) -> Iterator[Problem]:
    """Find fingerprints that already occur in an earlier entry."""
    first: dict[str, AcceptedFailure] = {}
    for entry in entries:
        if entry.fingerprint in first:
            what = f"the failure {entry.fingerprint} is already listed at {first[entry.fingerprint].where}"
            path, _, line = entry.where.rpartition(":")
            yield Problem(what, "remove one of them", Place(path, int(line)))
        first.setdefault(entry.fingerprint, entry)
