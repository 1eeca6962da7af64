"""The one way out. Whatever text agenteval prints or writes as a report leaves through this module: without a
secret, and without what a terminal, a CI log or an editor would obey. A new reporter or command cannot forget
it: ``tests/test_architecture.py`` allows no other module to write to a stream.

Reporters clean for their own place first (``core/safe_text.py``); this is what holds if one does not.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Any, Literal

from agenteval.conversation import exits
from agenteval.core.safe_text import (
    escaped_in_json,
    for_encoding,
    neutralize_workflow_commands,
    sanitize_page,
)

Form = Literal["text", "json", "xml"]
"""What a text has to stay while it is masked and cleaned."""


class UnwritableError(OSError):
    """Nothing more can be written to stdout."""


def _redaction_module() -> Any:
    """The module that masks. Without it, nothing was loaded that holds a secret: ``--help`` does without."""
    return sys.modules.get("agenteval.files.redaction")


def strip_secrets(text: str) -> str:
    """``text`` without a secret, and otherwise as it is: for a display that moves the cursor."""
    redaction = _redaction_module()
    hidden: str = redaction.redact_text(text) if redaction else text
    return hidden


def clean_message(text: str) -> str:
    """``text`` as it may leave for a person or a log: no line of it is a command to a CI system."""
    return neutralize_workflow_commands(strip_secrets(text))


def clean_output(text: str, form: Form = "text", *, colors: bool = False) -> str:
    """``text`` as it may leave. ``colors``: it is for a screen that takes them, and they stay."""
    redaction = _redaction_module()
    if form == "json":
        return escaped_in_json(redaction.redact_json(text, _schema_of_results) if redaction else text)
    if form == "xml" and redaction:
        return sanitize_page(redaction.redact_xml(text))
    return sanitize_page(strip_secrets(text), colors=colors)


def _schema_of_results() -> dict[str, Any]:
    from agenteval.reporters.results.shape import Results  # only where a secret was found

    return Results.model_json_schema(mode="serialization")


def print_out(text: str, form: Form = "text", *, colors: bool = False) -> None:
    """Print a result to stdout, ended by a newline. A reader that has gone (``| head``) has read what it
    wanted: it changes no exit code. Raises ``UnwritableError`` for any other stdout that takes nothing."""
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
    """Write a line on stderr, if there is one: it may be closed, by the shell or by an agent."""
    _write_err(clean_message(text))


def print_author_error(text: str) -> None:
    """The same for what is said of an author's mistake: nothing in it looks like a key."""
    from agenteval.files.redaction import redact_keys

    _write_err(neutralize_workflow_commands(redact_keys(text)))


def _write_err(text: str) -> None:
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(for_encoding(f"{text}\n", sys.stderr.encoding))
        sys.stderr.flush()


def append_to_file(path: str | os.PathLike[str], text: str) -> None:
    """Add ``text`` to a file of somebody else's. Raises ``OSError``."""
    with open(path, "a", encoding="utf-8", newline="\n", errors="replace") as file:
        file.write(clean_output(text))
