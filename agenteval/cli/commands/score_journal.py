"""The journal of a score: as that of a run, but quick to write where nothing in it was paid for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO

from pydantic import TypeAdapter

from agenteval.core.event import Asked, Event, SampleStarted
from agenteval.core.scenario import Tool
from agenteval.files.journal import to_json

_TOOLS = TypeAdapter(dict[str, Tool])


class JournalFile:
    """A sink. With ``at_once`` each line is on its way to the disk before the next comes."""

    def __init__(self, file: IO[bytes], *, at_once: bool) -> None:
        self._file = file
        self._at_once = at_once
        self._tools: tuple[Mapping[str, Tool], str] = ({}, "{}")

    def __call__(self, event: Event) -> None:
        kept = event.for_journal if isinstance(event, Asked) else event
        if kept is None:
            return
        self._file.write(f"{self._line(kept)}\n".encode())
        if self._at_once:
            self._file.flush()

    def _line(self, event: Event) -> str:
        if isinstance(event, SampleStarted) and event.scenario and event.scenario.tools:
            try:
                return self._with_tools(event, event.scenario.tools)
            except ValueError:  # half of a surrogate pair
                return to_json(event)
        return to_json(event)

    def _with_tools(self, event: SampleStarted, tools: Mapping[str, Tool]) -> str:
        """Tools are most of what a log holds, and the same in one conversation after the other: their text
        is made once. The scenario ends the event, and they end the scenario."""
        if self._tools[0] is not tools:
            self._tools = (tools, _TOOLS.dump_json(dict(tools)).decode())
        line = event.model_dump_json(exclude={"scenario": {"tools"}})
        return f'{line.removesuffix("}}")},"tools":{self._tools[1]}}}}}'
