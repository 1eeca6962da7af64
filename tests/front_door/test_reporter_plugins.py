"""Reporters of other packages come before the list of those that agenteval does not have yet."""

from __future__ import annotations

import pytest

from tests.support.kit import Project

PACKAGE = """
from html import escape

from agenteval.reporters import Reporter


def page(report, decision, options):
    rows = [f"<li>{escape(key.scenario)}: {each.verdict}</li>" for key, each in decision.samples.items()]
    return f"<h1>{escape(decision.verdict_label)}</h1><ul>{''.join(rows)}</ul>"


PAGE = Reporter(page, file="page.html")
"""
ENTRIES = "[agenteval.reporters]\nhtml = pages:PAGE\nlist = pages:page\n"
AGENT = "def agent(messages):\n    return 'Shipped: ' + {}\n"
SCENARIO = "id: s\nturns: [{user: Where is it?, expect: {output: {contains: [3 May]}}}]\n"


@pytest.fixture
def installed(project: Project) -> Project:
    project.write("pages.py", PACKAGE)
    project.write("pages-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: pages\nVersion: 1.0\n")
    project.write("pages-1.0.dist-info/entry_points.txt", ENTRIES)
    project.scenarios(SCENARIO)
    return project


@pytest.mark.parametrize(
    ("answer", "code", "page"),
    [
        ("'3 May'", 0, "<h1>passed</h1><ul><li>s: passed</li></ul>"),
        ("'soon'", 1, "<h1>failed</h1><ul><li>s: failed</li></ul>"),
    ],
)
def test_a_reporter_may_have_the_name_of_one_that_agenteval_lacks(
    installed: Project, answer: str, code: int, page: str
) -> None:
    installed.agent(AGENT.format(answer))
    installed.config("reporters: [terminal, html=site.html]")
    done = installed.call("run", "--report", "list=out.html")
    assert done.code == code, done.all
    for file in ("site.html", "out.html"):
        assert (installed.root / file).read_text(encoding="utf-8") == page
    again = installed.call("report", "latest", "--report", "html=again.html")
    assert again.code == code, again.all
    assert (installed.root / "again.html").read_text(encoding="utf-8") == page


@pytest.mark.parametrize(("answer", "code"), [("'3 May'", 3), ("'soon'", 1)])
@pytest.mark.parametrize(
    "body", ["raise ValueError('no template')", "raise OSError('no template')", "return None", "quit()"]
)
def test_one_that_fails_is_a_message_and_changes_no_verdict(
    installed: Project, body: str, answer: str, code: int
) -> None:
    installed.write("pages.py", f"def page(report, decision, options):\n    {body}\n\n\nPAGE = page\n")
    installed.agent(AGENT.format(answer))
    installed.config("reporters: [terminal, html=site.html, json=out.json]")
    done = installed.call("run")
    assert done.code == code, done.all
    assert done.err.count("'html'") == 1
    assert "Traceback" not in done.err
    assert done.out.rstrip().splitlines()[-1].startswith("PASSED" if code == 3 else "FAILED")
    assert (installed.root / "out.json").is_file()
    assert not (installed.root / "site.html").exists()
    assert installed.call("report", "latest", "--report", "html=again.html").code == code


def test_without_the_package_it_is_refused(project: Project) -> None:
    project.agent(AGENT.format("'3 May'"))
    project.scenarios(SCENARIO)
    project.config()
    done = project.call("run", "--report", "html=site.html")
    assert (done.code, "'html'" in done.err) == (2, True), done.all
