"""Show issues in a terminal, one issue per line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from agenteval.core.decision import Decision
from agenteval.core.safe_text import one_line
from agenteval.core.score import Severity, Verdict
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.sections.issues import TONES
from agenteval.reporters.terminal.cells import clean_text, labelled, right_aligned
from agenteval.reporters.terminal.sections import STYLES
from agenteval.reporters.words.facts import Facts
from agenteval.reporters.words.issue import IssueText, issues_text

FEW_ISSUES = 5
"""The maximum number of issues shown. Each issue is shown on one line."""


def issue_lines(facts: Facts, options: ReportOptions) -> Iterator[RenderableType]:
    """Yield a line for each issue (root cause), worst first: its severity, title, first occurrence and
    frequency."""
    decision, texts = facts.decision, issues_text(facts.report, facts.decision)
    if decision.is_reported and not any(text.issue.by for text in texts):
        return  # the table of failure rates shows what code grouped
    few = _most_shown(texts, decision)
    yield from (_line(text, options.width) for text in texts[:few])
    if rest := Counter(text.severity for text in texts[few:]):
        counts = ", ".join(f"{count:,} {severity}" for severity, count in rest.items())
        if few:
            yield Text(f"… and {counts}; -v lists them", style="dim")
        else:
            yield labelled("issues", Text(f"{counts}; -v lists them"))
    if texts and decision.verdict is not Verdict.PASSED:
        yield Text()


def _most_shown(texts: Sequence[IssueText], decision: Decision) -> int:
    """Return the maximum number of issues to show. If the run passed, only severe issues are shown."""
    if decision.verdict is not Verdict.PASSED:
        return FEW_ISSUES
    return min(2, sum(text.severity.rank >= Severity.HIGH.rank for text in texts))


def _line(text: IssueText, width: int) -> Text:
    severity = Text(f"{text.severity:<8}  ", style=STYLES[TONES[text.severity]])
    times = f" ({text.issue.samples:,}×)" if text.issue.samples > 1 else ""
    places = (one_line(example.scenario, 60) for example in text.issue.examples)
    right = Text(f"{next(places, '')}{times}", style="dim")
    right.truncate(max(12, width * 2 // 5), overflow="ellipsis")
    return right_aligned(
        severity.append_text(clean_text(text.title, "not dim not bold default")), right, width
    )
