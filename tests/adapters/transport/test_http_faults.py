"""Whose fault a failed request is, what is said of it, and which URLs a request can be sent to."""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Sequence

import aiohttp
import pytest
from aiohttp.client_reqrep import ConnectionKey
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from agenteval.adapters.transport.bodies import TooLargeError, UnreadableBodyError
from agenteval.adapters.transport.http_faults import (
    FAULT_KINDS,
    SEND_ERRORS,
    FaultKind,
    HttpFault,
    classify,
    describe,
    fault_detail,
    fault_kind,
    is_final,
    is_web_address,
    quote,
)
from agenteval.adapters.transport.http_session import UnsendableRequestError
from agenteval.core.errors import AgentError, AgentevalError, AuthorError, InfrastructureError

K = FaultKind
WHERE = "http://h/x"
SAID: dict[FaultKind, Sequence[str]] = {
    K.REFUSED: ("connection refused", "port"),
    K.UNREACHABLE: ("cannot be reached", "network"),
    K.DNS: ("host name", "spelling"),
    K.TLS: ("TLS", "SSL_CERT_FILE"),
    K.CONNECT_TIMEOUT: ("timed out", "firewall"),
    K.PROXY: ("proxy", "HTTPS_PROXY", "NO_PROXY"),
    K.DROPPED: ("dropped",),
    K.DEADLINE: ("deadline", "`timeout_s`"),
    K.TOO_LARGE: ("10 MiB",),
    K.GARBLED: ("cannot be read",),
    K.INVALID: ("invalid", "headers"),
    K.SIGN_IN: ("Entra ID", "az login", "AZURE_OPENAI_API_KEY"),
    K.PAUSED: ("wait", "`max_wait_s`"),
}
NO_REMEDY = {K.DROPPED, K.TOO_LARGE, K.GARBLED}


def status(code: int | None, detail: str = "") -> HttpFault:
    return HttpFault(K.STATUS, WHERE, detail, code)


@pytest.mark.parametrize("kind", [kind for kind in K if kind is not K.STATUS])
def test_a_fault_is_told_with_its_remedy(kind: FaultKind) -> None:
    text = describe(HttpFault(kind, WHERE))
    assert text.startswith(f"{WHERE}: ")
    assert all(fact in text for fact in SAID[kind])
    assert (" — " in text) is (kind not in NO_REMEDY)
    assert "(" not in text
    assert text.count(": ") == 1


def test_the_servers_words_and_the_attempts_stand_before_the_remedy() -> None:
    fault = HttpFault(K.REFUSED, WHERE, "its words", tried="3 attempts")
    where, what, rest = describe(fault).split(": ")
    words, remedy = rest.split(" — ")
    assert (where, words) == (WHERE, "its words (3 attempts)")
    assert what
    assert remedy
    assert "(3 attempts)" in describe(HttpFault(K.DROPPED, WHERE, tried="3 attempts"))


@pytest.mark.parametrize(
    ("code", "detail", "fact"),
    [
        (401, "", "key"),
        (403, "", "rights"),
        (404, "", "/v1"),
        (405, "", "POST"),
        (407, "", "HTTP_PROXY"),
        (429, "", "concurrency"),
        (429, "too many requests", "concurrency"),
        (429, "insufficient_quota", "waiting does not help"),
        (300, "", "redirects"),
        (301, "", "redirects"),
        (399, "", "redirects"),
        (500, "insufficient_quota", ""),
        (400, "", ""),
        (299, "", ""),
        (None, "", ""),
    ],
)
def test_the_remedy_of_a_status(code: int | None, detail: str, fact: str) -> None:
    text = describe(status(code, detail))
    assert f"HTTP status {code}" in text
    assert detail in text
    _, dash, remedy = text.partition(" — ")
    assert bool(dash) is bool(fact)
    assert fact in remedy
    assert ("redirects" in text) is (fact == "redirects")


BLAME: dict[FaultKind, tuple[type[AgentevalError], str | bool]] = {
    K.DEADLINE: (AgentError, "timeout"),
    K.TOO_LARGE: (AgentError, "protocol"),
    K.GARBLED: (AgentError, "protocol"),
    K.INVALID: (AuthorError, ""),
    K.REFUSED: (InfrastructureError, False),
    K.UNREACHABLE: (InfrastructureError, False),
    K.CONNECT_TIMEOUT: (InfrastructureError, False),
    K.PROXY: (InfrastructureError, False),
    K.PAUSED: (InfrastructureError, False),
    K.DROPPED: (InfrastructureError, True),
    K.DNS: (InfrastructureError, True),
    K.TLS: (InfrastructureError, True),
    K.SIGN_IN: (InfrastructureError, True),
}


def blamed(error: AgentevalError) -> tuple[type[AgentevalError], str | bool]:
    if isinstance(error, AgentError):
        return AgentError, error.kind
    return type(error), error.is_final if isinstance(error, InfrastructureError) else ""


@pytest.mark.parametrize("kind", [kind for kind in K if kind is not K.STATUS])
def test_whose_fault_it_is(kind: FaultKind) -> None:
    fault = HttpFault(kind, WHERE)
    error = classify(fault)
    assert blamed(error) == BLAME[kind]
    assert describe(fault) in str(error)


@pytest.mark.parametrize("code", [401, 403, 407, 429, 502, 503, 504, 529])
def test_statuses_that_are_not_the_agents_fault(code: int) -> None:
    assert blamed(classify(status(code))) == (InfrastructureError, code in (401, 403))


@pytest.mark.parametrize("code", [300, 400, 402, 404, 405, 422, 500, 501, 505])
def test_statuses_that_are_the_agents_fault(code: int) -> None:
    assert blamed(classify(status(code))) == (AgentError, "http_status")


def test_what_must_not_be_repeated() -> None:
    assert {kind for kind in K if is_final(kind, None)} == {K.DROPPED, K.DNS, K.TLS, K.SIGN_IN}
    assert {code for code in range(100, 600) if is_final(K.STATUS, code)} == {401, 403}
    assert is_final(K.DROPPED, 200)


# ── the library's exceptions ─────────────────────────────────────────────────────────────────────


def connect(cause: OSError) -> Exception:
    """The library's exception for a connection that failed, raised from its cause."""
    error = aiohttp.ClientConnectorError(CONNECTION, cause)
    error.__cause__ = cause
    return error


def with_context(error: OSError, context: Exception) -> OSError:
    error.__context__ = context
    return error


CONNECTION = ConnectionKey("h", 80, False, True, None, None, None)
REQUEST = aiohttp.RequestInfo(URL(WHERE), "POST", CIMultiDictProxy(CIMultiDict()), URL(WHERE))
CERTIFICATE = ssl.SSLCertVerificationError("self-signed")
EXCEPTIONS: dict[str, tuple[Exception, FaultKind, str]] = {
    "connect timeout": (aiohttp.ConnectionTimeoutError("x"), K.CONNECT_TIMEOUT, "x"),
    "read timeout": (aiohttp.SocketTimeoutError("x"), K.DEADLINE, "x"),
    "another timeout": (aiohttp.ServerTimeoutError("x"), K.DEADLINE, "x"),
    "proxy refused": (
        aiohttp.ClientProxyConnectionError(CONNECTION, ConnectionRefusedError(111, "refused")),
        K.PROXY,
        "[Errno 111] refused",
    ),
    "proxy said no": (
        aiohttp.ClientHttpProxyError(REQUEST, (), status=407, message="Proxy Authentication Required"),
        K.PROXY,
        "status 407: Proxy Authentication Required",
    ),
    "host name": (
        aiohttp.ClientConnectorDNSError(CONNECTION, socket.gaierror(-2, "unknown")), K.DNS, "unknown"
    ),
    "certificate": (
        aiohttp.ClientConnectorCertificateError(CONNECTION, CERTIFICATE), K.TLS, str(CERTIFICATE)
    ),
    "TLS": (aiohttp.ClientConnectorSSLError(CONNECTION, ssl.SSLError(1, "wrong")), K.TLS, "wrong"),
    "disconnected": (aiohttp.ServerDisconnectedError(), K.DROPPED, "Server disconnected"),
    "reset": (aiohttp.ClientOSError(104, "reset by peer"), K.DROPPED, "reset by peer"),
    "reset while writing": (aiohttp.ClientConnectionResetError("closing transport"), K.DROPPED, "closing"),
    "cut short": (aiohttp.ClientPayloadError("not completed"), K.DROPPED, "not completed"),
    "not HTTP": (
        aiohttp.ClientResponseError(REQUEST, (), status=400, message="Bad status line"), K.GARBLED, "Bad"
    ),
    "decoding": (UnreadableBodyError("no gzip"), K.GARBLED, "no gzip"),
    "too large": (TooLargeError(), K.TOO_LARGE, ""),
    "url": (aiohttp.InvalidURL("odd"), K.INVALID, "odd"),
    "scheme": (aiohttp.NonHttpUrlClientError("ftp://h"), K.INVALID, "ftp://h"),
    "header": (UnsendableRequestError("Forbidden control character"), K.INVALID, "Forbidden"),
    "connect": (connect(OSError("no route")), K.UNREACHABLE, "no route"),
    "refused": (connect(ConnectionRefusedError(111, "call failed")), K.REFUSED, ""),
    "refused, as older releases say it": (connect(OSError(errno.ECONNREFUSED, "failed")), K.REFUSED, ""),
    "host name below": (connect(with_context(OSError("x"), socket.gaierror())), K.DNS, "x"),
    "TLS below": (connect(with_context(OSError("x"), ssl.SSLError())), K.TLS, "x"),
    "in a group": (
        connect(with_context(OSError("x"), ExceptionGroup("g", [OSError(), ConnectionRefusedError()]))),
        K.REFUSED,
        "",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("error", "kind", "detail"), EXCEPTIONS.values(), ids=EXCEPTIONS)
def test_the_kind_of_an_exception(error: Exception, kind: FaultKind, detail: str) -> None:
    assert isinstance(error, SEND_ERRORS)
    assert fault_kind(error) is kind
    assert detail in fault_detail(error)


def test_causes_that_lead_in_a_circle() -> None:
    """As in releases of aiohttp before 3.14."""
    one, other = OSError("x"), OSError("y")
    one.__context__, other.__context__ = other, one
    assert fault_kind(connect(one)) is K.UNREACHABLE
    other.__cause__ = ExceptionGroup("g", [one, ConnectionRefusedError()])
    assert fault_kind(connect(one)) is K.REFUSED


def _exceptions_of_aiohttp() -> set[type[Exception]]:
    named = (getattr(aiohttp, name) for name in aiohttp.__all__)
    return {each for each in named if isinstance(each, type) and issubclass(each, aiohttp.ClientError)}


def test_no_row_hides_a_later_one() -> None:
    for at, (later, _) in enumerate(FAULT_KINDS):
        assert not any(issubclass(later, earlier) for earlier, _ in FAULT_KINDS[:at]), later


def test_each_exception_of_the_library_has_a_kind_of_its_own() -> None:
    """All but the last resort: what a new release brings is seen here. Left out: web sockets, redirects, and
    what takes `raise_for_status` or a body that is a coroutine."""
    never = {
        aiohttp.ClientError,
        *(cls for cls in _exceptions_of_aiohttp() if cls.__name__.startswith(("WS", "Redirect", "TooMany"))),
        *(cls for cls in _exceptions_of_aiohttp() if cls.__name__ == "UploadAbortedError"),
    }
    found = _exceptions_of_aiohttp() - never
    assert aiohttp.ClientPayloadError in found
    for cls in found:
        first = next(known for known, _ in FAULT_KINDS if issubclass(cls, known))
        assert first is not aiohttp.ClientError, cls


def test_what_is_told_is_the_same_in_each_run() -> None:
    for error, _, _ in EXCEPTIONS.values():
        assert " object at 0x" not in fault_detail(error)
    assert "400" not in fault_detail(EXCEPTIONS["not HTTP"][0])


# ── quoting, and URLs ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("", ""),
        ("two\n lines", "two lines"),
        ("bell\x07", "bell"),
        ("the token s3cr3t-key!", "the token ***!"),
        ("s3cr3t\x00-key", "***"),
        ("0123456789", "0123456789"),
        ("0123456789a", "012345678…"),
    ],
)
def test_a_quotation_is_one_short_line_without_secrets(text: str, quoted: str) -> None:
    assert quote(text, ("s3cr3t-key",), 20 if "s3cr3t" in text else 10) == quoted


def test_a_quotation_has_500_characters() -> None:
    assert len(quote("a" * 500, ())) == 500
    assert quote("a" * 501, ()) == "a" * 499 + "…"


def test_a_secret_may_contain_a_control_character() -> None:
    assert quote("my s3cr3t\x01-key", ("s3cr3t\x01-key",)) == "my ***"


LONGEST = "a" * 63


@pytest.mark.parametrize(
    "url",
    [
        *("http://h", "https://h/x?y#z", "http://localhost:8000/v1", "http://[::1]:8000/", "http://h."),
        *("http://u:p@h", f"http://{LONGEST}.{LONGEST}", "http://h:65535", "http://h:1", "HTTP://h"),
        *("http://a_b", "http://ä.de/", "http://h/a b", "http://[fe80::1%25eth0]/", "http://127.0.0.1:8000"),
    ],
)
def test_a_web_address(url: str) -> None:
    assert is_web_address(url)


@pytest.mark.parametrize(
    "url",
    [
        *("", "h", "h/x", "//h", "ftp://h", "file:///x", "http://", "http:///x", "http://:80", "http://."),
        *("http://a..b", "http://.a", f"http://{LONGEST}a", f"http://x.{LONGEST}a.y", "http://h:0"),
        *("http://h:65536", "http://h:x", "http://[::1", "localhost:8000"),
        *("http://a b/", "http:// a/", "http://a%20b/", "http://a<b>/", "http://u:p@a b/", " http://h/"),
        *("http://a\tb/", "http://h/a\nb", "http://a\xa0b/", "http://999.1.1.1/", "http://" + "ä" * 63),
    ],
)
def test_no_web_address(url: str) -> None:
    assert not is_web_address(url)
