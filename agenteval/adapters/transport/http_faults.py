"""Represent failed HTTP requests as values, and determine in one place who is at fault.

The HTTP library's exceptions are converted to ``HttpFault`` only here. ``classify`` converts a fault to an
error if the server is the agent under test; other functions may be used for other servers."""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias

import httpx2

from agenteval.adapters.transport.bodies import MAX_BODY
from agenteval.adapters.transport.error_patterns import is_quota_exhausted
from agenteval.core.errors import AgentError, AgentevalError, AuthorError, InfrastructureError
from agenteval.core.safe_text import clean, one_line
from agenteval.files.redaction import redactor
from agenteval.messages.error_status import ACCESS_DENIED_STATUSES, INFRASTRUCTURE_STATUSES


class FaultKind(StrEnum):
    """The kinds of faults that can occur in a request, regardless of who is at fault."""

    REFUSED = "refused"
    UNREACHABLE = "unreachable"
    DNS = "dns"
    TLS = "tls"
    CONNECT_TIMEOUT = "connect_timeout"
    PROXY = "proxy"
    DROPPED = "dropped"
    """The connection was lost after the request had been sent, so the request may have been executed."""
    DEADLINE = "deadline"
    STATUS = "status"
    TOO_LARGE = "too_large"
    GARBLED = "garbled"
    """The reply is not valid HTTP, or its compression is invalid."""
    INVALID = "invalid"
    """The request cannot be sent, because its URL or a header is malformed."""
    SIGN_IN = "sign_in"
    """No token is available for authentication."""
    PAUSED = "paused"
    """The server asked for a longer pause than a call is allowed to wait."""


class HttpFault(NamedTuple):
    """A failed request, which has no usable reply."""

    kind: FaultKind
    where: str
    """The URL without its query string or credentials."""
    detail: str = ""
    """A quotation from the server or the library, without secrets or control characters."""
    status: int | None = None
    tried: str = ""
    """The attempts and waits so far, worded for use in a message."""
    reply: Any = None
    """The part of the reply that had arrived, as a ``client.HttpReply``."""


Classify: TypeAlias = Callable[[HttpFault], AgentevalError]

_SENTENCES = {
    FaultKind.REFUSED: ("connection refused", "check that the server is running at this host and port"),
    FaultKind.UNREACHABLE: ("cannot be reached", "check host, port and network"),
    FaultKind.DNS: ("the host name is unknown", "check the spelling and the network"),
    FaultKind.TLS: (
        "the TLS connection failed",
        "check whether the URL needs https or http; for a private CA, set SSL_CERT_FILE",
    ),
    FaultKind.CONNECT_TIMEOUT: ("the connection timed out", "check host, port and firewall"),
    FaultKind.PROXY: ("the proxy failed", "check HTTP_PROXY, HTTPS_PROXY and NO_PROXY"),
    FaultKind.DROPPED: ("the connection was dropped before the reply was complete", ""),
    FaultKind.DEADLINE: ("the deadline passed before the reply was complete", "raise `timeout_s`"),
    FaultKind.TOO_LARGE: (f"the reply is larger than {MAX_BODY // 2**20} MiB", ""),
    FaultKind.GARBLED: ("the reply cannot be read", ""),
    FaultKind.INVALID: ("the request is invalid", "check the URL and the headers"),
    FaultKind.SIGN_IN: (
        "no token was obtained from Entra ID",
        "sign in with `az login`, or set AZURE_OPENAI_API_KEY",
    ),
    FaultKind.PAUSED: ("the server asks callers to wait", "raise `max_wait_s`, or send fewer requests"),
}
_HINTS = {
    401: "check the key in the headers",
    403: "check the key in the headers and its rights",
    404: "check the URL (/v1 may be missing or duplicated) and the model name",
    405: "the URL must accept POST; check that the path is complete, such as …/v1/chat/completions",
    407: "set the proxy credentials in HTTP_PROXY or HTTPS_PROXY",
    429: "lower `agent_concurrency` or `concurrency`, or check the account's quota",
}


def describe(fault: HttpFault) -> str:
    """Format a fault as a sentence: where it occurred, what happened, the server's message, and a remedy."""
    if fault.kind is FaultKind.STATUS:
        what, hint = f"HTTP status {fault.status}", _HINTS.get(fault.status or 0, "")
        if 300 <= (fault.status or 0) < 400:
            hint = "redirects are not followed; use the final URL"
        if fault.status == 429 and is_quota_exhausted(fault.detail):
            hint = "the account's quota or credit is used up; waiting does not help"
    else:
        what, hint = _SENTENCES[fault.kind]
    text = f"{fault.where}: {what}"
    text = f"{text}: {fault.detail}" if fault.detail else text
    text = f"{text} ({fault.tried})" if fault.tried else text
    return f"{text} — {hint}" if hint else text


def classify(fault: HttpFault) -> AgentevalError:
    """Convert a fault of the agent under test to an error whose class shows who is at fault."""
    text = describe(fault)
    match fault.kind:
        case FaultKind.DEADLINE:
            return AgentError(text, kind="timeout")
        case FaultKind.TOO_LARGE | FaultKind.GARBLED:
            return AgentError(text, kind="protocol")
        case FaultKind.STATUS if fault.status not in INFRASTRUCTURE_STATUSES:
            return AgentError(text, kind="http_status")
        case FaultKind.INVALID:
            return AuthorError(text)
        case _:
            return InfrastructureError(text, is_final=is_final(fault.kind, fault.status))


_FINAL = frozenset((FaultKind.DROPPED, FaultKind.DNS, FaultKind.TLS, FaultKind.SIGN_IN))


def is_final(kind: FaultKind, status: int | None) -> bool:
    """Check whether a conversation that ended with this fault must not be repeated, because the fault would
    occur again or because a request may have been executed."""
    return kind in _FINAL or status in ACCESS_DENIED_STATUSES


# For most of these the class determines the kind; `fault_kind` inspects two of them further.
FAULT_KINDS: dict[type[Exception], FaultKind] = {
    httpx2.ConnectTimeout: FaultKind.CONNECT_TIMEOUT,
    httpx2.PoolTimeout: FaultKind.CONNECT_TIMEOUT,
    httpx2.ReadTimeout: FaultKind.DEADLINE,
    httpx2.WriteTimeout: FaultKind.DEADLINE,
    httpx2.TimeoutException: FaultKind.DEADLINE,
    httpx2.ConnectError: FaultKind.UNREACHABLE,
    httpx2.ReadError: FaultKind.DROPPED,
    httpx2.WriteError: FaultKind.DROPPED,
    httpx2.CloseError: FaultKind.DROPPED,
    httpx2.NetworkError: FaultKind.DROPPED,
    httpx2.ProxyError: FaultKind.PROXY,
    httpx2.RemoteProtocolError: FaultKind.GARBLED,
    httpx2.ProtocolError: FaultKind.GARBLED,
    httpx2.DecodingError: FaultKind.GARBLED,
    httpx2.TransportError: FaultKind.GARBLED,
    httpx2.RequestError: FaultKind.GARBLED,
    httpx2.HTTPError: FaultKind.GARBLED,
    httpx2.LocalProtocolError: FaultKind.INVALID,
    httpx2.UnsupportedProtocol: FaultKind.INVALID,
    httpx2.InvalidURL: FaultKind.INVALID,
}


def fault_kind(exc: Exception) -> FaultKind:
    """Return the kind of fault for an exception of the HTTP library, determined by its closest known base
    class."""
    if isinstance(exc, httpx2.ConnectError):
        return _connect_kind(exc)
    # The library uses the same class for a lost connection and for a reply that is not HTTP.
    if isinstance(exc, httpx2.RemoteProtocolError) and re.search(r"disconnected|closed connection", str(exc)):
        return FaultKind.DROPPED
    return next(FAULT_KINDS[cls] for cls in type(exc).__mro__ if cls in FAULT_KINDS)


def _connect_kind(exc: Exception) -> FaultKind:
    causes = list(_causes(exc))
    for cls, kind in (
        (ConnectionRefusedError, FaultKind.REFUSED),
        (socket.gaierror, FaultKind.DNS),
        (ssl.SSLError, FaultKind.TLS),
    ):
        if any(isinstance(cause, cls) for cause in causes):
            return kind
    return FaultKind.UNREACHABLE


def _causes(exc: BaseException | None) -> Iterator[BaseException]:
    """Yield the exception, its causes, and the members of any exception groups among them."""
    while exc is not None:
        yield exc
        if isinstance(exc, BaseExceptionGroup):
            for member in exc.exceptions:
                yield from _causes(member)
        exc = exc.__cause__ or exc.__context__


def quote(text: str, secrets: tuple[str, ...], limit: int = 500) -> str:
    """Format ``text`` for an error message: on one line, without secrets or control characters, and truncated
    to ``limit``."""
    redact = redactor(secrets)
    # Twice: a control character may split a secret, and a secret may contain one.
    return one_line(redact(clean(redact(text))), limit)


def is_web_address(url: str) -> bool:
    """Check whether ``url`` is a complete http or https URL to which a request can be sent."""
    try:
        sent = httpx2.URL(url)
        host, port = sent.raw_host.decode("ascii"), sent.port
    except (httpx2.InvalidURL, ValueError):
        return False
    if "%" in host and ":" not in host:  # only an IPv6 address may contain an escape
        return False
    # The resolver raises for a label of more than 63 characters.
    labels = host.removesuffix(".").split(".")
    return (
        sent.scheme in ("http", "https")
        and (port is None or 0 < port < 2**16)
        and all(0 < len(label) < 64 for label in labels)
    )
