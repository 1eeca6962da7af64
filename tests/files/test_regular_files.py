"""Regular files alone are opened, and what cannot be read is the author's mistake, at its place."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from agenteval.core.errors import AuthorError, Place
from agenteval.files.regular_files import (
    is_device,
    open_file,
    private_opener,
    read_file,
    read_text,
    wrap_read_errors,
)


@pytest.mark.parametrize(("most", "content"), [(-1, b"abc"), (0, b""), (2, b"ab"), (3, b"abc"), (9, b"abc")])
def test_the_content_of_a_file(tmp_path: Path, most: int, content: bytes) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    assert read_file(tmp_path / "a", most) == content
    assert read_file(tmp_path / "a") == b"abc"
    with open_file(tmp_path / "a") as file:
        assert file.read() == b"abc"


def test_a_pipe_or_a_device_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, kind in ((tmp_path / "pipe", "pipe"), (Path("/dev/null"), "device")):
        for read in (open_file, read_file):
            with pytest.raises(OSError, match=kind) as error:
                read(path)
            assert error.value.filename == str(path)


@pytest.mark.parametrize("name", ["none", "folder"])
def test_what_open_refuses(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match=name):
        read_file(tmp_path / name)


def test_what_cannot_be_read_is_a_mistake_with_its_place(tmp_path: Path) -> None:
    at = Place("c.yaml", 3)
    with pytest.raises(AuthorError) as error, wrap_read_errors("the list x", at, "look again"):
        read_file(tmp_path / "none")
    (problem,) = error.value.problems
    assert (problem.remedy, problem.place) == ("look again", at)
    assert "the list x" in problem.what
    assert os.strerror(2) in problem.what
    with pytest.raises(AuthorError) as error, wrap_read_errors("", None):
        raise OSError
    (problem,) = error.value.problems
    assert problem.what.split()[-1] == "OSError"
    assert (problem.what, problem.place) == (problem.what.strip(), None)


def test_other_errors_are_not_its_business() -> None:
    with wrap_read_errors("x", None):
        pass
    with pytest.raises(ValueError), wrap_read_errors("x", None):
        raise ValueError


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", ""),
        (b"a\nb", "a\nb"),
        (b"a\r\nb\r\n", "a\nb\n"),
        (b"\xef\xbb\xbfa", "a"),
        ("é".encode(), "é"),
    ],
)
def test_the_text_of_a_file(tmp_path: Path, data: bytes, text: str) -> None:
    (tmp_path / "a").write_bytes(data)
    assert read_text(tmp_path / "a", "policy") == text


def test_text_that_is_not_utf_8(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\xff")
    with pytest.raises(AuthorError) as error:
        read_text(tmp_path / "a", "policy")
    (problem,) = error.value.problems
    assert problem.place == Place(str(tmp_path / "a"))
    assert "policy" in problem.what
    with pytest.raises(OSError, match="none"):
        read_text(tmp_path / "none", "policy")


def test_devices(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    assert not is_device(tmp_path / "a")
    assert not is_device(tmp_path)
    assert is_device(Path("/dev/null"))
    assert not is_device(Path("/dev/stdin"))
    assert not is_device(Path("/dev/fd/0"))


def test_a_private_file(tmp_path: Path) -> None:
    with open(tmp_path / "a", "w", encoding="utf-8", opener=private_opener) as file:
        file.write("x")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600
