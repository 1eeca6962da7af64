"""Answers that nobody would write: hundreds of values in a sentence. How much of them is looked at."""

from __future__ import annotations

from typing import Any

import pytest
from detector_samples import conversation, turn

from agenteval.detectors import grounding, mentioned
from agenteval.detectors.grounding import contradicts_evidence, ungrounded_value
from agenteval.detectors.phrases import MOST_VALUES


def counted(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> list[Any]:
    """What the function of the module is called with from now on."""
    calls, whole = [], getattr(module, name)

    def count(*arguments: Any) -> Any:
        calls.append(arguments)
        return whole(*arguments)

    monkeypatch.setattr(module, name, count)
    return calls


def test_a_sentence_is_read_once_for_all_its_values(monkeypatch: pytest.MonkeyPatch) -> None:
    mentioned.mentions_of.cache_clear()
    read = counted(monkeypatch, mentioned, "mentions_in")
    list(ungrounded_value(conversation(turn("hello", "word 12,3456 " * 200 + "end"))))
    assert 0 < len(read) < 10


def test_only_so_many_pairs_of_values_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    judged = counted(monkeypatch, grounding, "_unsupported")
    list(contradicts_evidence(conversation(turn("hello", "word 12,3456 " * 1_500 + "end"))))
    assert 0 < len(judged) <= grounding._MOST_COMPARED / MOST_VALUES + 2
