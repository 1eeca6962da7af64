"""Markup: every text in it is escaped, and nothing in it runs."""

from __future__ import annotations

from html.parser import HTMLParser
from xml.etree.ElementTree import fromstring

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.core.safe_text import clean
from agenteval.reporters.html.markup import Markup, element, join

HOSTILE = "<script>alert(1)</script>&lt;\"'>\x1b[31m"
TEXTS = st.text(st.characters(exclude_characters="\ufffe\uffff"))
"""XML has no such characters, which a page may contain."""


def test_texts_are_escaped_and_markup_is_not() -> None:
    made = element("p", HOSTILE, element("b", "x & y"))
    assert made.startswith("<p>&lt;script&gt;alert(1)&lt;/script&gt;&amp;lt;")
    assert made.endswith("<b>x &amp; y</b></p>")
    assert "\x1b" not in made
    assert isinstance(made, Markup)


def test_content_may_be_nested() -> None:
    assert (
        element("ul", (element("li", n) for n in "ab"), ["<", ["c"]]) == "<ul><li>a</li><li>b</li>&lt;c</ul>"
    )
    assert join("<", element("br"), [Markup("<i>")]) == "&lt;<br><i>"


@pytest.mark.parametrize(
    ("attributes", "text"),
    [
        ({"class_": "a", "aria_label": "b"}, 'class="a" aria-label="b"'),
        ({"viewBox": "0 0 1 1"}, 'viewBox="0 0 1 1"'),
        ({"open": True, "hidden": False, "title": None}, "open"),
        ({"x": 1, "y": 2.0, "d": 1 / 3}, 'x="1" y="2" d="0.33"'),
        ({"title": '"><script>'}, 'title="&quot;&gt;&lt;script&gt;"'),
        ({"title": "it's\x07"}, 'title="it&#x27;s"'),
    ],
)
def test_attributes(attributes: dict[str, str | float | bool | None], text: str) -> None:
    assert element("p", **attributes) == f"<p {text}></p>"


@pytest.mark.parametrize("name", ["style", "style_", "onclick", "onload", "on_load"])
def test_what_the_policy_blocks_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=name[:2]):
        element("p", **{name: "x"})


def test_a_void_element_has_no_end() -> None:
    assert element("meta", charset="utf-8") == '<meta charset="utf-8">'


@given(TEXTS)
def test_any_text_is_read_back(text: str) -> None:
    assert (fromstring(element("p", text)).text or "") == clean(text)


@given(st.text())
def test_any_attribute_is_read_back(text: str) -> None:
    found: list[tuple[str, str | None]] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found.extend(attrs)

    Reader().feed(element("p", title=text))
    assert found == [("title", clean(text))]
