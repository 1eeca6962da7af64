"""Objects that an author names: built in, or of another package."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import metadata
from typing import Any

import pytest

from agenteval.core.errors import AuthorError, Place
from agenteval.core.registry import Registry, load_target


class Entry:
    def __init__(self, name: str, found: Any) -> None:
        self.name, self.value, self.found = name, f"pkg:{name}", found

    def load(self) -> Any:
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


def read(found: Any) -> Any:
    if found == "wrong":
        raise TypeError("it is wrong")
    return (found,)


REPORTERS = Registry[Any]("reporter", "toy.reporters", {"text": 1, "path": "os.path:join"}, read)


@pytest.fixture(autouse=True)
def entries(monkeypatch: pytest.MonkeyPatch) -> None:
    installed = {
        "toy.reporters": [
            Entry("plugin", "found"),
            Entry("text", "shadowed"),
            Entry("bad", "wrong"),
            Entry("broken", ImportError("no module")),
        ],
        "toy.others": [Entry("other", 1)],
    }

    def entry_points(*, group: str) -> Sequence[Entry]:
        return installed.get(group, [])

    monkeypatch.setattr(metadata, "entry_points", entry_points)


@pytest.mark.parametrize(
    ("name", "is_known"),
    [
        *((name, True) for name in ("text", "path", "plugin", "broken")),
        *((name, False) for name in ("other", "txt", "")),
    ],
)
def test_what_is_known(name: str, is_known: bool) -> None:
    assert (name in REPORTERS) is is_known


def test_what_a_name_stands_for() -> None:
    from os.path import join

    assert REPORTERS.get("text") == 1  # the built-in one
    assert REPORTERS.get("path") is join
    assert REPORTERS.get("plugin") == ("found",)
    assert REPORTERS.shipped == {"text": 1, "path": join}
    assert list(REPORTERS) == ["text", "path"]
    assert REPORTERS.names() == ["text", "path", "plugin", "text", "bad", "broken"]
    assert load_target("os.path:join") is join
    assert Registry[Any]("x", "toy.others", {}).get("other") == 1


@pytest.mark.parametrize(
    ("name", "words"),
    [("bad", ("'bad'", "pkg:bad", "TypeError", "it is wrong")), ("broken", ("pkg:broken", "ImportError"))],
)
def test_a_plugin_that_cannot_be_loaded(name: str, words: tuple[str, ...]) -> None:
    with pytest.raises(AuthorError) as error:
        REPORTERS.get(name)
    assert all(word in str(error.value) for word in ("reporter", *words))
    assert error.value.__cause__ is not None


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("plugn", ("no reporter", "'plugn'", "'plugin'")),
        ("csv", ("not supported yet", "json")),
    ],
)
def test_an_unknown_name(name: str, words: tuple[str, ...]) -> None:
    place = Place("agenteval.yaml", 3)
    problem = REPORTERS.unknown(name, place)
    assert all(word in f"{problem.what} {problem.remedy}" for word in words)
    assert problem.place == place
    with pytest.raises(AuthorError):
        REPORTERS.get(name)
    assert "not supported" not in Registry[Any]("other", "toy.others", {}).unknown(name).what
