"""Places in files: path and line, relative to a folder, and as they are shown."""

from __future__ import annotations

import pytest

from agenteval.reporters.words.places import relative_place, shown_place, shown_places, split_place


@pytest.mark.parametrize(
    ("where", "path", "line"),
    [
        ("a.yaml:12", "a.yaml", 12),
        ("a.yaml", "a.yaml", 0),
        ("a.yaml:12:5", "a.yaml", 12),
        ("s/a b.yaml:1", "s/a b.yaml", 1),
        ("s/a  b.yaml:1", "s/a  b.yaml", 1),
        ("C:/a.yaml:3", "C:/a.yaml", 3),
        ("a:b:7", "a:b", 7),
        ("a\x1b[31m.yaml:2", "a.yaml", 2),
        ("default", "", 0),
        ("default:3", "", 0),
        ("--max-rate", "", 0),
        ("", "", 0),
        (" ", "", 0),
    ],
)
def test_a_place_is_a_path_and_a_line(where: str, path: str, line: int) -> None:
    assert split_place(where) == (path, line)


@pytest.mark.parametrize(
    ("where", "root", "place", "shown"),
    [
        ("/r/s/a.yaml:3", "/r", ("s/a.yaml", 3), "s/a.yaml:3"),
        ("/r/a.yaml", "/r", ("a.yaml", 0), "a.yaml"),
        ("/other/a.yaml:3", "/r", ("/other/a.yaml", 3), "/other/a.yaml:3"),
        ("/rest/a.yaml:3", "/r", ("/rest/a.yaml", 3), "/rest/a.yaml:3"),
        ("/r/..data/a.yaml:3", "/r", ("..data/a.yaml", 3), "..data/a.yaml:3"),
        ("/a.yaml:3", "/r", ("/a.yaml", 3), "/a.yaml:3"),
        ("s/a.yaml:3", ".", ("s/a.yaml", 3), "s/a.yaml:3"),
        ("default", "/r", ("", 0), "default"),
        ("--max-rate", "/r", ("", 0), "--max-rate"),
        ("", "/r", ("", 0), ""),
    ],
)
def test_a_path_below_the_root_is_relative_to_it(
    where: str, root: str, place: tuple[str, int], shown: str
) -> None:
    assert relative_place(where, root) == place
    assert shown_place(where, root) == shown


@pytest.mark.parametrize(
    ("wheres", "shown"),
    [
        ([], ""),
        (["", ""], ""),
        (["/r/a.yaml:3"], "a.yaml:3"),
        (["/r/a.yaml:3", "/r/rows.csv:7"], "a.yaml:3 · rows.csv:7"),
        (["/r/a.yaml:3", "", "/r/a.yaml:3"], "a.yaml:3"),
        (["/r/b.yaml:1", "/r/a.yaml:3"], "b.yaml:1 · a.yaml:3"),
    ],
)
def test_places_are_told_once_in_their_order(wheres: list[str], shown: str) -> None:
    assert shown_places(wheres, "/r") == shown
