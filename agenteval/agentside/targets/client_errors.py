"""Classify exceptions from client libraries as network failures, refused access or timeouts.

There are too many such libraries to import them all for ``isinstance`` checks. Exceptions are classified by
class name, by HTTP status and by the exceptions that they wrap. Error messages are not examined, because
their wording is arbitrary."""

from __future__ import annotations

import errno
import re
import socket
import ssl
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_STATUSES = frozenset({401, 403, 407, 429, 502, 503, 504, 529})
_GRPC_STATUSES = frozenset({"UNAVAILABLE", "UNAUTHENTICATED", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED"})
_NO_NETWORK = frozenset(
    getattr(errno, name, None)
    for name in (
        *("ENETDOWN", "ENETUNREACH", "ENETRESET", "EHOSTDOWN", "EHOSTUNREACH"),
        *("ECONNREFUSED", "ECONNRESET", "ECONNABORTED", "ETIMEDOUT"),
    )
) - {None}
_NO_CONNECTION_IN_TIME = frozenset({"ConnectTimeout", "ConnectTimeoutError", "ConnectionTimeoutError"})
_NO_CONNECTION = frozenset(
    [
        *("APIConnectionError",),  # openai, anthropic, litellm
        *("ConnectionError", "SSLError", "ChunkedEncodingError"),  # requests, urllib3, botocore, redis
        *("NewConnectionError", "ProxyError", "IncompleteRead"),  # urllib3, http.client
        *("ConnectError", "NetworkError", "RemoteProtocolError"),  # httpx
        *("ClientConnectionError", "ClientPayloadError"),  # aiohttp
        *("ConnectionClosedError", "ResponseStreamingError"),  # botocore, websockets
    ]
)
_NO_ACCESS = frozenset({401, 403})
_NO_GRPC_ACCESS = frozenset({"UNAUTHENTICATED", "PERMISSION_DENIED"})
_BROKEN_OFF = frozenset(
    [
        *("ChunkedEncodingError", "ProtocolError", "IncompleteRead"),  # requests, urllib3, http.client
        *("ReadError", "WriteError", "RemoteProtocolError"),  # httpx
        *("ClientPayloadError", "ServerDisconnectedError"),  # aiohttp
        *("ConnectionClosedError", "ResponseStreamingError"),  # botocore, websockets
    ]
)
_NO_NAME_OR_TRUST = frozenset(
    [
        *("SSLError", "NameResolutionError"),  # requests, urllib3
        *("ClientConnectorDNSError", "ClientConnectorSSLError", "ClientConnectorCertificateError"),  # aiohttp
    ]
)
_TOO_MANY = re.compile(r"too many (\d{3}) error responses")


def is_infrastructure(error: BaseException) -> bool:
    """Return whether an exception reports an infrastructure failure, which would affect any agent: a problem
    with the network, with access, or with a server that is down or busy, such as a rate limit (HTTP 429). A
    connection timeout is an infrastructure failure; a response timeout is not."""
    errors = list(_wrapped_errors(error))
    if any(map(_is_refused, errors)) or any(map(_is_no_network, errors)):
        return True
    return not any(map(_is_late, errors)) and any(map(_is_no_connection, errors))


def is_final(error: BaseException) -> bool:
    """Return whether a retry is pointless or risky.

    A retry is pointless if it would fail in the same way (no access, an unknown host, an invalid
    certificate). A retry is risky if it might repeat a request that was sent before the connection was lost.
    """
    return any(map(_is_final, _wrapped_errors(error)))


def _is_final(error: BaseException) -> bool:
    if isinstance(error, (ConnectionResetError, ConnectionAbortedError, BrokenPipeError)):
        return True
    if isinstance(error, (socket.gaierror, ssl.SSLError)) or _class_names(error) & (
        _BROKEN_OFF | _NO_NAME_OR_TRUST
    ):
        return True
    if not isinstance(error, Exception):
        return False
    if any(isinstance(status, int) and status in _NO_ACCESS for status in _statuses(error)):
        return True
    return "RpcError" in _class_names(error) and _grpc_status(error) in _NO_GRPC_ACCESS


def is_timeout(error: BaseException) -> bool:
    """Return whether an exception reports that a response did not arrive in time."""
    return any(map(_is_late, _wrapped_errors(error)))


def _wrapped_errors(error: BaseException) -> Iterator[BaseException]:
    """Yield the exception and the exceptions that it wraps. Many libraries store the original exception in
    ``reason`` or in the first arguments instead of using ``from``."""
    pending = [error]
    seen: set[int] = set()
    while pending:
        each = pending.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        args = _safe_getattr(each, "args")
        inner = (_safe_getattr(each, "reason"), *(args if isinstance(args, tuple) else ()))
        pending.extend(part for part in inner if isinstance(part, BaseException))


def _class_names(error: BaseException) -> set[str]:
    return {cls.__name__ for cls in type(error).__mro__}


def _is_late(error: BaseException) -> bool:
    return any("Timeout" in name for name in _class_names(error))


def _is_no_connection(error: BaseException) -> bool:
    is_known = isinstance(error, (ConnectionError, socket.gaierror, ssl.SSLError))
    return is_known or bool(_class_names(error) & _NO_CONNECTION)


def _is_no_network(error: BaseException) -> bool:
    """Return whether the server could not be reached, or could not be reached in time. A ``URLError`` is
    raised before the server can answer."""
    if isinstance(error, OSError) and error.errno in _NO_NETWORK:
        return True
    is_early = "URLError" in _class_names(error) and isinstance(_safe_getattr(error, "reason"), TimeoutError)
    return is_early or bool(_class_names(error) & _NO_CONNECTION_IN_TIME)


def _is_refused(error: BaseException) -> bool:
    """Return whether the server answered with a status that is unrelated to the content of the request."""
    if not isinstance(error, Exception):
        return False  # `sys.exit(401)` also has a code
    if any(isinstance(status, int) and status in _STATUSES for status in _statuses(error)):
        return True
    return "RpcError" in _class_names(error) and _grpc_status(error) in _GRPC_STATUSES


def _statuses(error: Exception) -> Iterator[Any]:
    """Yield the values of the attributes in which libraries store the status, from the exception and its
    response."""
    response = _safe_getattr(error, "response")
    yield from (_safe_getattr(error, name) for name in ("status_code", "status", "code"))
    yield from (_safe_getattr(response, name) for name in ("status_code", "status"))
    if isinstance(response, Mapping) and isinstance(of_aws := response.get("ResponseMetadata"), Mapping):
        yield of_aws.get("HTTPStatusCode")
    # After its last retry, urllib3 reports the status only in its message.
    if type(error).__name__ == "ResponseError" and (found := _TOO_MANY.fullmatch(str(error))):
        yield int(found[1])


def _grpc_status(error: Exception) -> Any:
    try:
        return error.code().name  # type: ignore[attr-defined]
    except Exception:
        return None


def _safe_getattr(owner: Any, name: str) -> Any:
    """Return an attribute, or ``None`` if the attribute is missing or raises an exception when it is read."""
    try:
        return getattr(owner, name, None)
    except Exception:
        return None
