"""The elements of a section: which spans have text, and the defaults."""

from __future__ import annotations

import pytest

from agenteval.reporters.sections.section import Section, StyledText, Tone, has_text


@pytest.mark.parametrize(
    ("span", "expected"),
    [
        ("a", True),
        (" ", True),
        ("", False),
        (StyledText("a"), True),
        (StyledText(""), False),
        (StyledText("", Tone.BAD), False),
    ],
)
def test_a_span_without_characters_has_no_text(span: str | StyledText, expected: bool) -> None:
    assert has_text(span) is expected


def test_a_section_needs_no_more_than_its_title() -> None:
    section = Section("t")
    assert (section.columns, section.rows, section.notes, section.numbers) == ((), (), (), ())
    assert (section.noun, section.named_by, section.level, section.can_be_short) == ("row", 1, 2, False)
