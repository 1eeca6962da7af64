"""Implements ``agenteval run --record-tools FILE``: writes what the agent's own tools answered as mocks."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from agenteval.cli.commands.output import ReportTarget, write_file
from agenteval.cli.safe_output import print_err
from agenteval.core.config import Config
from agenteval.core.errors import AuthorError, Problem
from agenteval.core.plurals import plural
from agenteval.core.protocols import AgentTool
from agenteval.files.tool_recording import ToolRecording, format_recording, is_unedited_recording
from agenteval.running.tool_recorder import ToolRecorder, find_known_tools

_OPTION = "--record-tools"


class ToolRecordingFile:
    """The file that a run writes its recorded tools to."""

    def __init__(
        self,
        path: Path,
        config: Config,
        agents: Collection[str],
        agent_tools: Mapping[str, Sequence[AgentTool]],
    ) -> None:
        """Prepare the file before the run of ``agents``. ``agent_tools`` are the tools of those whose tools
        are known. Raise ``AuthorError`` if the agents do not run their own tools, or if the file cannot be
        written."""
        if config.unmocked_tools != "passthrough":
            what = f"{_OPTION} records the agent's own tools, which do not run in this suite"
            where = config.where("unmocked_tools")
            what += f" (`unmocked_tools: {config.unmocked_tools}`, {where})"
            remedy = "set `unmocked_tools: passthrough`, and leave the tools to be recorded out of `tools`"
            raise AuthorError(Problem(what, remedy))
        _require_writable(path)
        self.recorder = ToolRecorder()
        self.has_failed = False
        """True if the file could not be written at the end."""
        self._path = path
        self._shown = _display_path(path)
        self._known = find_known_tools(config, agents, agent_tools)

    def refuse_reports(self, targets: Sequence[ReportTarget]) -> None:
        """Raise ``AuthorError`` if a report would be written to the same file."""
        for choice, path, _ in targets:
            if path and os.path.realpath(path) == os.path.realpath(self._path):
                what = f"{_OPTION} and the {choice.name} report would both be written to {choice.path}"
                raise AuthorError(Problem(what, "use a different file for each"))

    @contextmanager
    def written_at_end(self) -> Iterator[None]:
        """Write the file after the ``with`` block, even if the run fails or is interrupted."""
        try:
            yield
        finally:
            self._write()

    def _write(self) -> None:
        recording = self.recorder.recording(self._known)
        if not recording.tools:
            what = "no answer of a tool that the agent ran itself was seen"
            print_err(f"warning: {_OPTION}: {what}; {self._shown} was not written{_left_out(recording)}")
            return
        try:
            _require_writable(self._path)  # it may have been edited during the run
            write_file(self._path, [format_recording(recording)])
        except (AuthorError, OSError) as error:
            self.has_failed = True
            reason = getattr(error, "strerror", None) or error
            print_err(f"agenteval: {_OPTION}: {self._shown} was not written: {reason}")
            return
        recorded = f"{plural(len(recording.tools), 'tool')}, {plural(recording.calls, 'call')}"
        print_err(f"recorded tools: {self._shown} ({recorded}{_left_out(recording)})")
        if recording.differing:
            rules = plural(recording.differing, "rule")
            print_err(f"warning: {rules}: other conversations got other answers; the first one was recorded")


def _display_path(path: Path) -> str:
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def _left_out(recording: ToolRecording) -> str:
    count = recording.left_out.total()
    return f"; {plural(count, 'call')} left out" if count else ""


def _require_writable(path: Path) -> None:
    """Raise ``AuthorError`` if the file cannot be written, or contains what a recording would destroy."""
    shown, remedy = f"{_OPTION} {_display_path(path)}", "use another file"
    if path.is_dir():
        raise AuthorError(Problem(f"{shown}: it is a folder", "name a file in it"))
    if not path.parent.is_dir():
        raise AuthorError(Problem(f"{shown}: there is no folder {path.parent}", "create it"))
    if not os.access(path.parent, os.W_OK) or len(os.fsencode(path.name)) > 200:
        raise AuthorError(Problem(f"{shown}: the file cannot be written", remedy))
    if not os.path.lexists(path):
        return
    if not path.is_file():
        raise AuthorError(Problem(f"{shown}: it is not a regular file", remedy))
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        text = ""
    if not is_unedited_recording(text):
        what = f"{shown}: the file exists, and is not a recording that nobody has edited"
        raise AuthorError(Problem(what, "use another file, or move this one away"))
