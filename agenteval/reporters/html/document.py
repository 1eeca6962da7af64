"""Render the report as one HTML file (the page).

The file needs no server and makes no request. What decides the verdict is plain HTML, which is readable
without the script. The script adds the list of all scenarios and the conversations, which are packed in the
file. Text from agents, tools, users and models is escaped, and the script inserts it as text only. A content
security policy allows the script and the style of the page by their hashes and nothing else."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from hashlib import sha256
from importlib.resources import files
from typing import NamedTuple

from agenteval.core.decision import Decision
from agenteval.core.plurals import plural
from agenteval.core.safe_text import one_line
from agenteval.core.scenario import SampleKey
from agenteval.reporters.html.conversations import PackedConversations, pack_conversations
from agenteval.reporters.html.figures import figures
from agenteval.reporters.html.links import conversation_link
from agenteval.reporters.html.markup import Markup, element, join
from agenteval.reporters.html.overview import header, overview
from agenteval.reporters.html.packing import DisclosureMask, pack, redact
from agenteval.reporters.html.scenario_rows import ListedScenario, listed_columns, row_to_json, scenario_rows
from agenteval.reporters.html.views import comparison_view, gate_view, issue_view, measure_view, run_view
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.results.document import value_to_json
from agenteval.reporters.sections.baseline_changes import baseline_changes
from agenteval.reporters.words.facts import Facts
from agenteval.reporters.words.issue import IssueText, issues_text
from agenteval.verdict.report import Report


class View(NamedTuple):
    """A view of the page, which the script shows one at a time."""

    name: str
    """The part of the link after ``#/``."""
    title: str
    content: tuple[Markup, ...]


def render(report: Report, decision: Decision, options: ReportOptions) -> str:
    """Render the page of a run."""
    facts = Facts(report, decision)
    texts = issues_text(report, decision)
    rows = scenario_rows(facts, texts, options.root)
    changes = list(baseline_changes(facts)) if report.run.baseline else []
    stored = options.judge_requests() if options.judge_requests else None
    mask = DisclosureMask(report.samples)
    packed = pack_conversations(facts, rows, stored, mask, root=options.root)
    views = [
        View("", "Results", tuple(overview(facts, rows, texts, changes, options.root))),
        View("issues", f"Issues ({len(texts):,})", tuple(issue_view(facts, texts))),
        View("gates", f"Gates ({len(decision.gates):,})", tuple(gate_view(facts, options.root))),
        View("compare", "Against the baseline", tuple(comparison_view(facts, changes))),
        View(
            "figures",
            "Figures",
            tuple(measure_view(facts, tuple(figures(facts, _scenario_link)), options.root)),
        ),
        View("run", "Run", tuple(run_view(facts))),
    ]
    title = f"{decision.verdict_label}: {one_line(report.run.run_id, 60)}"
    index = _index(facts, rows, texts, packed)
    data = [_data("index", pack(redact(mask.mask_json(value_to_json(index)))))]
    data += [_data(f"block-{n}", block) for n, block in enumerate(packed.blocks)]
    data += [_data(f"requests-{n}", block) for n, block in enumerate(packed.requests)]
    notes = (*_left_out(packed), _CONTENTS)
    views = [view._replace(content=tuple(map(mask.mask_markup, view.content))) for view in views]
    return make_page(title, header(facts), views, data, notes)


def _scenario_link(scenario: str, agent: str) -> str:
    return conversation_link(SampleKey(scenario=scenario, agent=agent))


def _index(
    facts: Facts, rows: Sequence[ListedScenario], texts: Sequence[IssueText], packed: PackedConversations
) -> dict[str, object]:
    columns = listed_columns(rows, facts.columns)
    return {
        "run": facts.report.run.run_id,
        "log": facts.decision.is_reported,
        "agents": list(facts.report.dimensions),
        "columns": [[facts.columns[n].name, facts.columns[n].short] for n in columns],
        "metrics": {column.short.lower(): column.name for column in facts.columns},
        "issues": {text.issue.id: text.title for text in texts},
        "requests": len(packed.requests),
        "rows": [row_to_json(row, columns, packed.places) for row in rows],
    }


def _left_out(packed: PackedConversations) -> Iterator[str]:
    if packed.requests_left_out:
        about = plural(packed.requests_left_out, "conversation")
        command = "`agenteval show ID --judge` shows it"
        yield (
            f"What the judges were asked about {about} is left out, because the page would be too large:"
            f" {command}"
        )
    if packed.left_out:
        count = plural(packed.left_out, "conversation")
        command = "`agenteval show ID` shows them"
        yield f"{count} that passed left out, because the page would be too large: {command}"


def _data(name: str, content: str) -> Markup:
    return Markup(f'<script type="text/plain" id="{name}">{content}</script>\n')


# ── the file ─────────────────────────────────────────────────────────────────────────────────────


def make_page(
    title: str,
    head: Iterator[Markup],
    views: Sequence[View],
    data: Sequence[Markup] = (),
    notes: Sequence[str] = (),
) -> str:
    """Return a page. Views without content are omitted. ``data`` are the packed conversations, and ``notes``
    are shown at the foot."""
    style, script = _asset("page.css") + _asset("charts.css"), _asset("page.js")
    shown = [view for view in views if view.content]
    links = (element("a", view.title, href=f"#/{view.name}") for view in shown)
    sections = (
        element(
            "section",
            element("h2", view.title, class_="unseen" if not view.name else None),
            *view.content,
            id=f"/{view.name}",
            class_="view",
        )
        for view in shown
    )
    body = [
        element(
            "header",
            element("a", "To the content", href="#main", class_="skip"),
            *head,
            element("nav", *links, aria_label="Views", id="views"),
        ),
        element(
            "main",
            *sections,
            element("section", id="conversation", class_="view", hidden=True),
            id="main",
            tabindex="-1",
        ),
        element("p", role="status", id="status", class_="unseen"),
        element("footer", *(element("p", note) for note in notes), class_="quiet"),
    ]
    return "".join((
        "<!doctype html>\n",
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n',
        element("meta", http_equiv="Content-Security-Policy", content=_policy(style, script)),
        '\n<meta name="viewport" content="width=device-width, initial-scale=1">\n',
        '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n',
        '<meta name="robots" content="noindex">\n<link rel="icon" href="data:,">\n',
        element("title", f"agenteval · {title}"),
        f"\n<style>{style}</style>\n<script>{script}</script>\n</head>\n<body>\n",
        join(body),
        "\n",
        *data,
        _data("end", ""),
        "</body>\n</html>\n",
    ))  # fmt: skip


_CONTENTS = (
    "This file contains the conversations of the run: what users, agents, tools and judges wrote. Anyone who"
    " has the file can read them."
)


def _asset(name: str) -> str:
    """Return a file of this package. Characters that are not ASCII are escaped, because the script must match
    its hash even if the page is printed in another encoding."""
    text = files("agenteval.reporters.html").joinpath(name).read_text(encoding="utf-8")
    return text if text.isascii() else re.sub(r"[^\x00-\x7f]", lambda found: f"\\u{ord(found[0]):04x}", text)


def _policy(style: str, script: str) -> str:
    """Return the content security policy: only the script and the style with these contents, no request, no
    form, and no text that is turned into markup."""
    return (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data:;"
        " base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
    )


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
