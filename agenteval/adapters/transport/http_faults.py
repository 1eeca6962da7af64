"""Represent failed HTTP requests as values, and determine in one place who is at fault.

The HTTP library's exceptions are converted to ``HttpFault`` only here. ``classify`` converts a fault to an
error if the server is the agent under test; other functions may be used for other servers."""

from __future__ import annotations

import errno
import re
import socket
import ssl
from collections.abc import Callable, Iterator
from enum import StrEnum
from ipaddress import IPv4Address, IPv6Address
from typing import Any, NamedTuple, TypeAlias

import aiohttp
from yarl import URL

from agenteval.adapters.transport.bodies import MAX_BODY, TooLargeError, UnreadableBodyError
from agenteval.adapters.transport.error_patterns import is_quota_exhausted
from agenteval.adapters.transport.http_session import UnsendableRequestError
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


FAULT_KINDS: tuple[tuple[type[Exception], FaultKind], ...] = (
    (aiohttp.ClientHttpProxyError, FaultKind.PROXY),
    (aiohttp.ClientProxyConnectionError, FaultKind.PROXY),
    (aiohttp.ConnectionTimeoutError, FaultKind.CONNECT_TIMEOUT),
    (aiohttp.ServerTimeoutError, FaultKind.DEADLINE),
    (aiohttp.ClientConnectorDNSError, FaultKind.DNS),
    (aiohttp.ClientSSLError, FaultKind.TLS),
    (aiohttp.ClientConnectorError, FaultKind.UNREACHABLE),
    (aiohttp.ServerFingerprintMismatch, FaultKind.TLS),
    (aiohttp.ClientConnectionError, FaultKind.DROPPED),
    (aiohttp.ClientPayloadError, FaultKind.DROPPED),
    # Its status is not the server's: the library sets 400 for a reply that is not HTTP.
    (aiohttp.ClientResponseError, FaultKind.GARBLED),
    (UnreadableBodyError, FaultKind.GARBLED),
    (aiohttp.InvalidURL, FaultKind.INVALID),
    (aiohttp.NonHttpUrlClientError, FaultKind.INVALID),
    (UnsendableRequestError, FaultKind.INVALID),
    (TooLargeError, FaultKind.TOO_LARGE),
    (aiohttp.ClientError, FaultKind.GARBLED),
)
"""The kind of fault for each class of exception. The first class that matches applies."""
SEND_ERRORS = (aiohttp.ClientError, UnreadableBodyError, UnsendableRequestError, TooLargeError)
"""The exceptions that a request may raise, apart from ``TimeoutError`` for its deadline."""


def fault_kind(exc: Exception) -> FaultKind:
    """Return the kind of fault for one of ``SEND_ERRORS``."""
    kind = next(kind for cls, kind in FAULT_KINDS if isinstance(exc, cls))
    if kind is FaultKind.UNREACHABLE:
        return _connect_kind(exc)
    return kind


def _connect_kind(exc: Exception) -> FaultKind:
    causes = list(_causes(exc))
    # Before 3.14, the library raises a plain ``OSError``.
    if any(isinstance(cause, OSError) and cause.errno == errno.ECONNREFUSED for cause in causes):
        return FaultKind.REFUSED
    for cls, kind in (
        (ConnectionRefusedError, FaultKind.REFUSED),
        (socket.gaierror, FaultKind.DNS),
        (ssl.SSLError, FaultKind.TLS),
    ):
        if any(isinstance(cause, cls) for cause in causes):
            return kind
    return FaultKind.UNREACHABLE


def fault_detail(exc: Exception) -> str:
    """Return the library's message without its own prefixes, which name internal objects and a status that no
    server sent."""
    match exc:
        case aiohttp.ClientConnectorCertificateError():
            return str(exc.certificate_error)
        case aiohttp.ClientConnectorError():
            return "" if fault_kind(exc) is FaultKind.REFUSED else str(exc.os_error)
        case aiohttp.ClientHttpProxyError():
            return f"status {exc.status}: {exc.message}"
        case aiohttp.ClientResponseError():
            return exc.message
        case _:
            return str(exc)


def _causes(exc: BaseException) -> Iterator[BaseException]:
    """Yield the exception, its causes, and the members of any exception groups among them, each once. A chain
    of causes may lead back to its beginning."""
    waiting, seen = [exc], set[int]()
    while waiting:
        found = waiting.pop()
        if id(found) in seen:
            continue
        seen.add(id(found))
        yield found
        if isinstance(found, BaseExceptionGroup):
            waiting += found.exceptions
        cause = found.__cause__ or found.__context__
        waiting += [cause] if cause else []


def quote(text: str, secrets: tuple[str, ...], limit: int = 500) -> str:
    """Format ``text`` for an error message: on one line, without secrets or control characters, and truncated
    to ``limit``."""
    redact = redactor(secrets)
    # Twice: a control character may split a secret, and a secret may contain one.
    return one_line(redact(clean(redact(text))), limit)


def is_web_address(url: str) -> bool:
    """Check whether ``url`` is a complete http or https URL to which a request can be sent."""
    try:
        sent = URL(url)
        host, port = sent.raw_host or "", sent.port
        is_sendable = url.isprintable() and url == url.strip() and _is_host(host)
    except ValueError:
        return False
    return is_sendable and sent.scheme in ("http", "https") and port is not None and 0 < port < 2**16


def _is_host(host: str) -> bool:
    """Check whether ``host``, in ASCII, is an IP address or a name that a resolver accepts."""
    if ":" in host:
        return IPv6Address(host.partition("%")[0]).version == 6
    labels = host.removesuffix(".").split(".")
    if labels[-1].isdigit():
        return IPv4Address(host).version == 4
    return all(_LABEL.fullmatch(label) for label in labels)


_LABEL = re.compile(r"[A-Za-z0-9_-]{1,63}")  # the resolver raises for a longer one
