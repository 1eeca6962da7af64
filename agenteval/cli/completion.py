"""What a shell proposes at TAB: ids of scenarios and of runs. A mistake in a file proposes nothing; the
command itself tells of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def scenarios(incomplete: str) -> list[str]:
    """Ids, and ``FILE::ID`` once a file is written."""
    return _beginning(incomplete, lambda: _scenarios(by_file="::" in incomplete))


def runs(incomplete: str) -> list[str]:
    """``latest`` and ``previous``, then ids, newest first."""
    return _beginning(incomplete, _runs)


def conversations(incomplete: str) -> list[str]:
    """What ``show`` takes first: a scenario of the latest run, or a run."""
    return _beginning(incomplete, lambda: [*_conversations(), *_runs()])


def _beginning(incomplete: str, found: Callable[[], Iterable[str]]) -> list[str]:
    try:
        return [text for text in found() if text.startswith(incomplete)]
    except (Exception, SystemExit):  # a line that is being written is no place for errors
        return []


def _scenarios(*, by_file: bool) -> list[str]:
    from agenteval.cli.commands.prepare import Request, load_config, load_scenarios
    from agenteval.core.selection import full_id

    request = Request()
    found = load_scenarios(request, load_config(request).config).selected
    return [full_id(each) if by_file else each.id for each in found]


def _runs() -> list[str]:
    from agenteval.cli.commands.report import runs_root
    from agenteval.files.runs import runs_under

    return ["latest", "previous", *(folder.name for folder in runs_under(runs_root())[::-1])]


def _conversations() -> list[str]:
    """From the first line of the journal, which is quickly read: conversations of ``score`` are not in it."""
    import json

    from agenteval.cli.commands.report import runs_root
    from agenteval.files.runs import JOURNAL, find_run

    with (find_run("latest", runs_root()) / JOURNAL).open(encoding="utf-8") as file:
        return list(json.loads(file.readline())["plan"]["scenarios"])
