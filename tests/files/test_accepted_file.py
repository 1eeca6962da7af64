"""The file of accepted failures: its forms, its entries with their lines, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval.core.config import AcceptedFailure
from agenteval.core.errors import AuthorError, Place
from agenteval.files.accepted_file import load_accepted

A, B = "a" * 12, "b" * 12


def entry(fingerprint: str = A, **more: str) -> str:
    keys = {"fingerprint": fingerprint, "owner": "me", "reason": "known", "expires": "2026-12-31", **more}
    return "{" + ", ".join(f"{key}: {value}" for key, value in keys.items()) + "}"


def load(folder: Path, text: str | bytes) -> tuple[AcceptedFailure, ...]:
    (folder / "known.yaml").write_bytes(text.encode() if isinstance(text, str) else text)
    return load_accepted(folder / "known.yaml", folder)


def refused(folder: Path, text: str | bytes) -> list[tuple[int, str]]:
    with pytest.raises(AuthorError) as error:
        load(folder, text)
    assert all(each.place and each.place.path == "known.yaml" for each in error.value.problems)
    return [(each.place.line, each.what) for each in error.value.problems if each.place]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("\n  \n", []),
        ("# nothing is accepted\n   # any more\n", []),
        ("accepted:\n", []),
        ("accepted: []\n", []),
        ("[]\n", []),
        (f"- {entry()}\n", [(A, "known.yaml:1")]),
        (f"accepted:\n- {entry(B)}\n\n- {entry(A)}\n", [(B, "known.yaml:2"), (A, "known.yaml:4")]),
        (f"# known\naccepted: [{entry()}]\n", [(A, "known.yaml:2")]),
    ],
)
def test_the_entries_of_a_file(tmp_path: Path, text: str, found: list[tuple[str, str]]) -> None:
    assert [(each.fingerprint, each.where) for each in load(tmp_path, text)] == found


def test_values_are_read_as_text(tmp_path: Path) -> None:
    (found,) = load(
        tmp_path, f"- {entry('012345678901', owner='007', reason='1.50', scenario='no', what='1e3')}\n"
    )
    assert (found.fingerprint, found.owner, found.reason) == ("012345678901", "007", "1.50")
    assert (found.scenario, found.what, found.expires) == ("no", "1e3", "2026-12-31")
    (usual,) = load(tmp_path, f"- {entry()}\n")
    assert (usual.scenario, usual.what) == ("", "")


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        pytest.param("text\n", [(1, "'text'")], id="text"),
        pytest.param("3\n", [(1, "3")], id="a number"),
        pytest.param("{}\n", [(1, "")], id="empty mapping"),
        pytest.param("accepted: text\n", [(1, "'text'")], id="text below the key"),
        pytest.param(f"accepted:\n- {entry()}\nodd: 1\n", [(3, "'odd'")], id="another key"),
        pytest.param("- {fingerprint: xyz}\n", [(1, "xyz"), (1, ""), (1, ""), (1, "")], id="all of an entry"),
        pytest.param(f"- {entry('A' * 12)}\n", [(1, "'AAA")], id="capitals"),
        pytest.param(f"- {entry('a' * 11)}\n", [(1, "'aaa")], id="too short"),
        pytest.param(f"- {entry(expires='2026-13-01')}\n", [(1, "2026-13-01")], id="no date"),
        pytest.param(f"- {entry(owner='')}\n", [(1, "owner")], id="no owner"),
        pytest.param(f"- {entry(onwer='x')}\n", [(1, "'onwer'")], id="misspelt key of an entry"),
        pytest.param(f"- {entry(where='x')}\n", [(1, "'where'")], id="a key of ours"),
        pytest.param("- text\n", [(1, "'text'")], id="an entry that is text"),
        pytest.param(
            f"- {entry()}\n- {entry(B)}\n- {entry()}\n- {entry()}\n",
            [(3, "known.yaml:1"), (4, "known.yaml:1")],
            id="twice",
        ),
        pytest.param(f"- {entry()}\n- text\n- {entry()}\n", [(2, "'text'"), (3, A)], id="all mistakes"),
        pytest.param("- {\n", [(1, "")], id="no YAML"),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str, problems: list[tuple[int, str]]) -> None:
    found = refused(tmp_path, text)
    assert [line for line, _ in found] == [line for line, _ in problems], found
    assert all(part in what for (_, what), (_, part) in zip(found, problems, strict=True)), found


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("acepted: []\n", [(1, "'acepted'")]),
        (f"acepted:\n- {entry()}\n", [(1, "'acepted'")]),
        ("acepted: []\nodd: 1\n", [(1, "'acepted'"), (2, "'odd'")]),
        ("accepted:\nodd: 1\n", [(2, "'odd'")]),
        ("odd: 1\naccepted: []\n", [(1, "'odd'")]),
        ("odd: 1\naccepted: text\n", [(1, "'odd'"), (2, "'text'")]),
        ("odd: 1\naccepted: [text]\n", [(1, "'odd'"), (2, "'text'")]),
    ],
)
def test_a_misspelt_key_is_one_mistake(tmp_path: Path, text: str, problems: list[tuple[int, str]]) -> None:
    found = refused(tmp_path, text)
    assert [line for line, _ in found] == [line for line, _ in problems], found
    assert all(part in what for (_, what), (_, part) in zip(found, problems, strict=True)), found


def test_a_file_that_is_not_there_is_reported_where_it_is_named(tmp_path: Path) -> None:
    at = Place("agenteval.yaml", 4)
    with pytest.raises(AuthorError) as error:
        load_accepted(tmp_path / "none.yaml", tmp_path, named_at=at)
    (problem,) = error.value.problems
    assert problem.place == at
    assert "none.yaml" in problem.what


def test_a_file_in_a_folder_is_named_by_its_path(tmp_path: Path) -> None:
    folder = tmp_path / "lists"
    folder.mkdir()
    (folder / "known.yaml").write_text(f"- {entry()}\n")
    (found,) = load_accepted(folder / "known.yaml", tmp_path)
    assert found.where == "lists/known.yaml:1"
