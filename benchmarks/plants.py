"""Real conversations with one planted fault each: ``python benchmarks/plants.py --to FILE`` writes them.

``plants.jsonl.gz`` says of each which conversation of ``../shared/data`` it is put into (``base``), of what
``kind`` it is, in which ``turn`` or ``call`` (from 0; what an agent says before anybody is turn -1), what it
comes to (``after``), how it was made (``note``), whether it is one of the 46 that make up a tenth of all
conversations (``in_mix``), and the ``edits``: a part of a text exchanged (``in`` names the text within the
message ``at``), or messages left out and put in. They were drawn with a fixed seed by a writer who had seen
neither detectors nor tests; what may pass (``consent_ok``: the user agrees in other words) is there as well.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

from recorded import Conversation, Message, MissingDataError, load, load_sets

PLANTS = Path(__file__).with_name("plants.jsonl.gz")


class Plant(NamedTuple):
    """A planted fault, and the conversation with it."""

    kind: str
    base: str
    turn: int
    call: int | None
    after: str
    note: str
    in_mix: bool
    conversation: Conversation


def plants(originals: Mapping[str, Conversation]) -> list[Plant]:
    """All of them, in the ``originals`` by id."""
    return list(_planted(load(PLANTS), originals))


def _planted(rows: Iterable[dict[str, Any]], originals: Mapping[str, Conversation]) -> Iterator[Plant]:
    for number, row in enumerate(rows):
        base = originals[row["base"]]
        messages = edited(base["messages"], row.pop("edits"))
        conversation = {**base, "id": f"{base['id']}-x{number:04d}", "messages": messages}
        yield Plant(**row, conversation=conversation)


def edited(messages: Iterable[Message], edits: Iterable[Mapping[str, Any]]) -> list[Message]:
    """The messages with the edits made, the last first: each counts in the messages as they were."""
    made = deepcopy(list(messages))
    for edit in reversed(list(edits)):
        at = edit["at"]
        if "messages" in edit:
            made[at : at + edit["drop"]] = edit["messages"]
        else:
            _exchange(made[at], edit)
    return made


def _exchange(message: Any, edit: Mapping[str, Any]) -> None:
    *above, last = edit["in"]
    for step in above:
        message = message[step]
    text, start = message[last], edit["from"]
    message[last] = text[:start] + edit["put"] + text[start + edit["cut"] :]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--to", type=Path, required=True)
    to = parser.parse_args().to
    try:
        originals = {row["id"]: row for rows in load_sets().values() for row in rows}
    except MissingDataError as error:
        sys.exit(str(error))
    with open(to, "w", encoding="utf-8") as lines:
        for plant in plants(originals):
            lines.write(json.dumps(plant._asdict(), ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
