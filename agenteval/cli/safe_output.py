"""The one way out. All text that agenteval prints or writes as a report leaves through this module, which
removes secrets and whatever a terminal, a CI log or an editor would interpret as a command. A new reporter or
command cannot forget it: ``tests/test_architecture.py`` allows no other module to write to a stream.

Reporters escape text for their own format first (``core/safe_text.py``); this module catches what they miss.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Any, Literal

from agenteval.conversation import exits
from agenteval.core.safe_text import (
    escape_in_json,
    for_encoding,
    neutralize_workflow_commands,
    sanitize_page,
)

Form = Literal["text", "json", "xml"]
"""The syntax that a text keeps when it is masked and cleaned."""


class UnwritableError(OSError):
    """Raised when stdout takes no more text."""


def _redaction_module() -> Any:
    """Return the module that masks secrets, or None if it is not loaded: then nothing was loaded that holds a
    secret, as in ``--help``."""
    return sys.modules.get("agenteval.files.redaction")


def strip_secrets(text: str) -> str:
    """Mask the secrets in ``text`` and leave all else as it is, for a display that moves the cursor."""
    redaction = _redaction_module()
    hidden: str = redaction.redact_text(text) if redaction else text
    return hidden


def clean_message(text: str) -> str:
    """Clean ``text`` for a person or a log: no secret, and no line that is a command to a CI system."""
    return neutralize_workflow_commands(strip_secrets(text))


def clean_output(text: str, form: Form = "text", *, colors: bool = False) -> str:
    """Clean ``text`` as output. ``colors``: keep colour codes, for a screen that supports them."""
    redaction = _redaction_module()
    if form == "json":
        return escape_in_json(redaction.redact_json(text, _schema_of_results) if redaction else text)
    if form == "xml" and redaction:
        return sanitize_page(redaction.redact_xml(text))
    return sanitize_page(strip_secrets(text), colors=colors)


def _schema_of_results() -> dict[str, Any]:
    from agenteval.reporters.results.shape import Results  # needed only if a secret was found

    return Results.model_json_schema(mode="serialization")


def print_out(text: str, form: Form = "text", *, colors: bool = False) -> None:
    """Print a result to stdout, ended by a newline. If the reader has gone (``| head``), it has read what it
    wanted: the exit code does not change. Raise ``UnwritableError`` if stdout is otherwise unwritable."""
    if not text:
        return
    text = clean_output(text, form, colors=colors)
    text = for_encoding(text, sys.stdout.encoding or "utf-8")
    try:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        exits.silence(sys.stdout)
    except (OSError, ValueError) as error:
        exits.silence(sys.stdout)
        raise UnwritableError(getattr(error, "strerror", None) or str(error)) from None


def print_err(text: str) -> None:
    """Print a line to stderr; do nothing if stderr was closed by the shell or by an agent."""
    _write_err(clean_message(text))


def print_author_error(text: str) -> None:
    """Print a message about an author's mistake to stderr, with everything masked that looks like a key."""
    from agenteval.files.redaction import redact_keys

    _write_err(neutralize_workflow_commands(redact_keys(text)))


def _write_err(text: str) -> None:
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(for_encoding(f"{text}\n", sys.stderr.encoding))
        sys.stderr.flush()


def append_to_file(path: str | os.PathLike[str], text: str) -> None:
    """Append ``text`` to a file that agenteval does not own. Raise ``OSError`` if that fails."""
    with open(path, "a", encoding="utf-8", newline="\n", errors="replace") as file:
        file.write(clean_output(text))
