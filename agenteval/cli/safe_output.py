"""Sanitizes and redacts all output. Everything that agenteval prints or writes as a report passes through
this module, which masks secrets and removes sequences that a terminal, a CI log or an editor would interpret
as a command. A new reporter or command cannot bypass this module, because ``tests/test_architecture.py``
allows no other module to write to a stream.

Reporters first escape text for their own format (``core/safe_text.py``); this module catches anything that
they miss."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Any, Literal

from agenteval.conversation import exits
from agenteval.core.finished_text import escape_in_json, for_encoding, sanitize_page

Form = Literal["text", "json", "xml", "csv", "html"]
"""The syntax that must stay intact when text is masked and sanitized."""


class UnwritableError(OSError):
    """Raised when stdout can no longer be written to."""


def _redaction_module() -> Any:
    """Return the module that masks secrets, or None if that module is not loaded. If it is not loaded (for
    example, with ``--help``), nothing that contains a secret has been loaded either."""
    return sys.modules.get("agenteval.files.redaction")


def strip_secrets(text: str) -> str:
    """Mask the secrets in ``text`` and keep all other text unchanged. This function is for displays that move
    the cursor."""
    redaction = _redaction_module()
    hidden: str = redaction.redact_text(text) if redaction else text
    return hidden


def clean_message(text: str) -> str:
    """Clean ``text`` for a human reader or a log: mask secrets and neutralize lines that a CI system would
    execute as commands."""
    from agenteval.core.safe_text import neutralize_workflow_commands  # not needed for --help

    return neutralize_workflow_commands(strip_secrets(text))


def clean_output(text: str, form: Form = "text", *, colors: bool = False) -> str:
    """Clean ``text`` for output. If ``colors`` is True, keep color codes for a screen that supports them."""
    redaction = _redaction_module()
    if form == "json":
        return escape_in_json(redaction.redact_json(text, _schema_of_results) if redaction else text)
    if form == "xml" and redaction:
        return sanitize_page(redaction.redact_xml(text))
    if form == "html" and redaction:
        return sanitize_page(redaction.redact_html(text))
    if form == "csv" and redaction:
        return sanitize_page(redaction.redact_csv(text, _schema_of_results))
    return sanitize_page(strip_secrets(text), colors=colors)


def _schema_of_results() -> dict[str, Any]:
    from agenteval.reporters.results.shape import Results  # needed only if a secret was found

    return Results.model_json_schema(mode="serialization")


def print_out(text: str, form: Form = "text", *, colors: bool = False) -> None:
    """Print a result to stdout, followed by a newline. If the reader has closed the pipe (``| head``), the
    exit code does not change, because the reader has received all the output it needs. Raise
    ``UnwritableError`` if stdout cannot be written to for any other reason."""
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
    """Print a line to stderr. Do nothing if the shell or an agent has closed stderr."""
    _write_err(clean_message(text))


def print_author_error(text: str) -> None:
    """Print a message about an author's mistake to stderr, masking everything that looks like an API key."""
    from agenteval.core.safe_text import neutralize_workflow_commands
    from agenteval.files.redaction import redact_keys

    _write_err(neutralize_workflow_commands(redact_keys(text)))


def _write_err(text: str) -> None:
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(for_encoding(f"{text}\n", sys.stderr.encoding))
        sys.stderr.flush()


def append_to_file(path: str | os.PathLike[str], text: str) -> None:
    """Append ``text`` to a file that agenteval does not own. Raise ``OSError`` on failure."""
    with open(path, "a", encoding="utf-8", newline="\n", errors="replace") as file:
        file.write(clean_output(text))
