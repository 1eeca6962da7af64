"""All output is masked and harmless, and a reader that has gone breaks nothing."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from agenteval.cli.safe_output import (
    Form,
    UnwritableError,
    append_to_file,
    clean_message,
    clean_output,
    print_author_error,
    print_err,
    print_out,
    strip_secrets,
)
from agenteval.conversation import exits
from agenteval.files import redaction

SECRET = "s3cr3t-v4lue-of-a-key"
RED = "\x1b[31m"
JUMP = "\x1b[2J"


class _Text(io.StringIO):
    encoding: Any = property(lambda self: self.named)


@pytest.fixture(autouse=True)
def _a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    mask = redaction.redactor([SECRET])
    monkeypatch.setattr(redaction, "redact_text", mask)
    monkeypatch.setattr(redaction, "redact_xml", mask)
    monkeypatch.setattr(redaction, "redact_csv", lambda text, schema: mask(text) if schema() else text)
    monkeypatch.setattr(redaction, "redact_json", lambda text, schema: mask(text) if schema() else text)


class Stream(_Text):
    """A stream of one encoding, which raises ``error`` when it is written to."""

    def __init__(self, encoding: str | None = "utf-8", error: Exception | None = None) -> None:
        super().__init__()
        self.named, self._error = encoding, error
        self.flushed = 0

    def write(self, text: str) -> int:
        if self._error:
            raise self._error
        return super().write(text)

    def flush(self) -> None:
        self.flushed += 1


def out(monkeypatch: pytest.MonkeyPatch, stream: Stream) -> Stream:
    monkeypatch.setattr(sys, "stdout", stream)
    return stream


def err(monkeypatch: pytest.MonkeyPatch, stream: Stream) -> Stream:
    monkeypatch.setattr(sys, "stderr", stream)
    return stream


@pytest.mark.parametrize(
    ("text", "form", "colors", "expected"),
    [
        ("plain", "text", False, "plain"),
        (f"key {SECRET}.", "text", False, "key ***."),
        (f"key {SECRET}.", "text", True, "key ***."),
        (f'{{"a": "{SECRET}"}}', "json", False, '{"a": "***"}'),
        (f"<a>{SECRET}</a>", "xml", False, "<a>***</a>"),
        (f'"{SECRET}",1\n', "csv", False, '"***",1\n'),
        (f'"{JUMP}a",1\n', "csv", False, '"a",1\n'),
        (f"<p>{SECRET}</p>", "html", False, "<p>***</p>"),
        (f"<script>{SECRET}</script>", "html", False, f"<script>{SECRET}</script>"),
        (f"<p>a{JUMP}b\u202e</p>", "html", True, "<p>ab</p>"),
        (f"{RED}red", "text", False, "red"),
        (f"{RED}red", "text", True, f"{RED}red"),
        (f"a{JUMP}b", "text", True, "ab"),
        (f"a{JUMP}b", "text", False, "ab"),
        (f"<a>{JUMP}</a>", "xml", False, "<a></a>"),
    ],
)
def test_output_is_masked_and_harmless(text: str, form: Form, colors: bool, expected: str) -> None:
    assert clean_output(text, form, colors=colors) == expected


def test_json_keeps_its_values() -> None:
    text = json.dumps({"a": "x\x1b[2J\u202ey"}, ensure_ascii=False)
    cleaned = clean_output(text, "json")
    assert "\u202e" not in cleaned
    assert json.loads(cleaned) == json.loads(text)


def test_a_display_keeps_what_moves_the_cursor() -> None:
    assert strip_secrets(f"{JUMP}{SECRET}::error::x") == f"{JUMP}***::error::x"


@pytest.mark.parametrize("text", ["::error::x", "a\n::set-output name=x::y", "##[group]x"])
def test_a_message_is_no_command_of_a_ci_service(text: str) -> None:
    cleaned = clean_message(f"{text} {SECRET}")
    assert not any(line.startswith(("::", "##[")) for line in cleaned.splitlines())
    assert SECRET not in cleaned


@pytest.mark.parametrize("form", ["text", "json", "xml", "csv", "html"])
def test_without_settings_nothing_is_masked_but_all_is_harmless(
    monkeypatch: pytest.MonkeyPatch, form: Form
) -> None:
    monkeypatch.delitem(sys.modules, "agenteval.files.redaction")
    assert clean_output(f'"{SECRET}"', form) == f'"{SECRET}"'
    assert "\u202e" not in clean_output('"\u202e"', form)
    assert strip_secrets(SECRET) == SECRET


@pytest.mark.parametrize(
    ("text", "written"),
    [("", ""), ("a", "a\n"), ("a\n", "a\n"), ("a\n\n", "a\n\n"), (f"{SECRET}", "***\n"), (f"{RED}a", "a\n")],
)
def test_a_result_ends_with_one_newline(monkeypatch: pytest.MonkeyPatch, text: str, written: str) -> None:
    stream = out(monkeypatch, Stream())
    print_out(text)
    assert stream.getvalue() == written
    assert stream.flushed == (1 if text else 0)


def test_colors_are_kept_where_they_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = out(monkeypatch, Stream())
    print_out(f"{RED}a", colors=True)
    assert stream.getvalue() == f"{RED}a\n"


def test_a_form_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = out(monkeypatch, Stream(None))
    print_out('"\u202e…"', "json")
    assert json.loads(stream.getvalue()) == "\u202e…"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_stream_without_the_letters(monkeypatch: pytest.MonkeyPatch, encoding: str) -> None:
    result, message = out(monkeypatch, Stream(encoding)), err(monkeypatch, Stream(encoding))
    print_out("a…")
    print_err("a…")
    assert (result.getvalue(), message.getvalue()) == ("a...\n", "a...\n")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (BrokenPipeError(), None),
        (OSError(28, "No space left on device"), "No space left on device"),
        (OSError("strange"), "strange"),
        (ValueError("I/O operation on closed file"), "closed"),
    ],
)
def test_stdout_that_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch, error: Exception, reason: str | None
) -> None:
    stream = out(monkeypatch, Stream(error=error))
    silenced: list[Any] = []
    monkeypatch.setattr(exits, "silence", silenced.append)
    if reason is None:
        print_out("a")
    else:
        with pytest.raises(UnwritableError) as raised:
            print_out("a")
        assert reason in str(raised.value)
    assert silenced == [stream]


@pytest.mark.parametrize("error", [BrokenPipeError(), OSError(5, "x"), ValueError("closed")])
def test_stderr_that_cannot_be_written_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    err(monkeypatch, Stream(error=error))
    print_err("a")
    print_author_error("a")
    monkeypatch.setattr(sys, "stderr", None)
    print_err("a")


def test_messages_are_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = err(monkeypatch, Stream())
    print_err(f"a {SECRET}")
    print_err("::error::b")
    first, second = stream.getvalue().splitlines()
    assert first == "a ***"
    assert not second.startswith("::")
    assert stream.flushed == 2


def test_a_mistake_shows_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = err(monkeypatch, Stream())
    key = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"
    print_author_error(f"::error::the model {key} is not known")
    assert key not in stream.getvalue()
    assert "is not known" in stream.getvalue()
    assert not stream.getvalue().startswith("::")


def test_a_file_of_somebody_else_is_added_to(tmp_path: Path) -> None:
    path = tmp_path / "summary.md"
    append_to_file(path, f"a {SECRET}\n")
    append_to_file(str(path), f"…{RED}b\n")
    assert path.read_bytes().decode() == "a ***\n…b\n"
    with pytest.raises(OSError, match=r"gone"):
        append_to_file(tmp_path / "gone" / "x", "a")
