"""Which replies are too large: by their texts, wherever these stand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest

from agenteval.agentside.targets import reply_limit
from agenteval.agentside.targets.reply_limit import MAX_REPLY_BYTES, TOO_LARGE_TEXT, is_too_large


@dataclass
class Fields:
    kept: Any


class Model:
    def __init__(self, kept: Any) -> None:
        self.kept = kept

    def model_dump(self) -> Any:
        raise AssertionError("a reply is measured before it is read")


def test_the_limit_is_ten_mebibytes() -> None:
    assert MAX_REPLY_BYTES == 10 * 1024 * 1024
    assert "10 MiB" in TOO_LARGE_TEXT
    assert not is_too_large("x" * MAX_REPLY_BYTES)
    assert is_too_large("x" * (MAX_REPLY_BYTES + 1))


@pytest.fixture
def hundred(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reply_limit, "MAX_REPLY_BYTES", 100)


HOLDERS: dict[str, Callable[[Any], Any]] = {
    "alone": lambda text: text,
    "in a list": lambda text: [text],
    "in a tuple": lambda text: (text,),
    "in a set": lambda text: {text},
    "in a frozen set": lambda text: frozenset({text}),
    "as a value": lambda text: {"": text},
    "as a key": lambda text: {text: None},
    "in another mapping": lambda text: MappingProxyType({"": text}),
    "in a field": Fields,
    "in a model": Model,
    "deep": lambda text: [{"": Fields((text,))}],
    "in two parts": lambda text: [text[:40], {"": text[40:]}],
}


@pytest.mark.usefixtures("hundred")
@pytest.mark.parametrize("hold", HOLDERS.values(), ids=HOLDERS)
def test_the_limit_itself_is_allowed(hold: Callable[[Any], Any]) -> None:
    assert not is_too_large(hold("x" * 100))
    assert is_too_large(hold("x" * 101))


SIZES: dict[str, tuple[Any, Any]] = {
    "two bytes a letter": ("é" * 50, "é" * 51),
    "four bytes a letter": ("😀" * 25, "😀" * 26),
    "half of a pair": ("\ud800" * 33, "\ud800" * 34),
    "bytes": (b"x" * 100, b"x" * 101),
    "a byte array": (bytearray(100), bytearray(101)),
    "a number": (2**403 - 1, 2**403),
    "a negative number": (-(2**403) + 1, -(2**403)),
}


@pytest.mark.usefixtures("hundred")
@pytest.mark.parametrize(("allowed", "refused"), SIZES.values(), ids=SIZES)
def test_how_much_counts(allowed: Any, refused: Any) -> None:
    assert not is_too_large(allowed)
    assert is_too_large(refused)


FREE: dict[str, Any] = {
    "nothing": None,
    "no text": "",
    "truths": [True] * 1000,
    "fractions": [1.5] * 1000,
    "an object": SimpleNamespace(kept="x" * 101),
    "a class of fields": type("Large", (Fields,), {"__doc__": "x" * 101}),
}


@pytest.mark.usefixtures("hundred")
@pytest.mark.parametrize("value", FREE.values(), ids=FREE)
def test_what_does_not_count(value: Any) -> None:
    assert not is_too_large(value)


@pytest.mark.usefixtures("hundred")
def test_a_container_counts_once_and_may_hold_itself() -> None:
    endless: list[Any] = ["x" * 60]
    endless.append(endless)
    assert not is_too_large(endless)
    table: dict[str, Any] = {"": "x" * 60}
    table["a"] = table
    assert not is_too_large([table, table])
    fields = Fields("x" * 60)
    fields.kept = [fields, "x" * 60]
    assert not is_too_large([fields, fields])
    assert is_too_large([Fields("x" * 60), Fields("x" * 60)])


@pytest.mark.usefixtures("hundred")
def test_a_text_counts_as_often_as_it_stands_there() -> None:
    text = "x" * 60
    assert is_too_large([text, text])


@pytest.mark.usefixtures("hundred")
def test_everything_is_looked_at_in_any_order() -> None:
    large, again = "x" * 101, ["x"]
    for value in ([large, again, again], [again, again, large], ["y", "x" * 100], ["x" * 100, "y"]):
        assert is_too_large(value)
