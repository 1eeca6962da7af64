"""Apply the environment's settings for HTTP: certificates and proxies."""

from __future__ import annotations

import os
import platform
import ssl
from functools import cache
from importlib import import_module
from pathlib import Path
from urllib.request import getproxies, proxy_bypass

from yarl import URL

from agenteval.core.errors import AuthorError, Problem

_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")
_CA_FILES = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Ubuntu, Arch, Alpine
    "/etc/pki/tls/certs/ca-bundle.crt",  # Fedora, RHEL
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",  # openSUSE
    "/etc/ssl/cert.pem",  # BSD
)
"""The files of certificates that Linux distributions and BSD provide."""


# ── certificates ─────────────────────────────────────────────────────────────────────────────────


def check_certificates(url: URL) -> None:
    """Raise ``AuthorError`` if the environment names certificates that cannot be loaded and ``url`` needs
    certificates."""
    if url.scheme == "https" and (os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR")):
        certificates()


def certificates() -> ssl.SSLContext:
    """Return the TLS context that all clients share. ``SSL_CERT_FILE`` and ``SSL_CERT_DIR`` are honored.

    Raise ``AuthorError`` if the certificates cannot be loaded."""
    try:
        return _certificates(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
    except (OSError, ValueError) as exc:
        raise _setup_error(str(exc), "check SSL_CERT_FILE and SSL_CERT_DIR") from exc


@cache
def _certificates(file: str | None, folder: str | None) -> ssl.SSLContext:
    """Load the certificates once for each combination of values of ``SSL_CERT_FILE`` and ``SSL_CERT_DIR``."""
    if file or folder:
        return ssl.create_default_context(cafile=file or None, capath=None if file else folder)
    if platform.system() in ("Windows", "Darwin"):
        # The system's own store, which OpenSSL does not read there.
        system: ssl.SSLContext = import_module("truststore").SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        return system
    context = ssl.create_default_context()
    if not _has_certificates(context):
        found = next(filter(os.path.isfile, _CA_FILES), None)
        if found:
            context.load_verify_locations(found)
    return context


def _has_certificates(context: ssl.SSLContext) -> bool:
    """Check whether Python's own OpenSSL found the system's certificates, in a file or in a folder that is
    searched on demand."""
    folder = ssl.get_default_verify_paths().capath
    return bool(context.cert_store_stats()["x509_ca"]) or bool(folder and any(Path(folder).glob("*.0")))


# ── proxies ──────────────────────────────────────────────────────────────────────────────────────


class ProxyTable:
    """The proxies that the environment sets, as they were when the table was made.

    ``HTTP_PROXY``, ``HTTPS_PROXY``, ``ALL_PROXY`` and ``NO_PROXY``, in upper or lower case, and the system's
    settings on Windows and macOS. This machine itself is always reached directly."""

    def __init__(self) -> None:
        found = getproxies()
        self._proxies = {scheme: found[scheme] for scheme in ("http", "https", "all") if found.get(scheme)}
        self._by_origin: dict[tuple[str, str | None, int | None], URL | None] = {}

    def proxy_for(self, url: URL) -> URL | None:
        """Return the proxy through which ``url`` is reached, or ``None`` if it is reached directly. Raise
        ``AuthorError`` if the proxy is not supported."""
        if not self._proxies:
            return None
        origin = (url.scheme, url.host, url.port)
        if origin not in self._by_origin:
            self._by_origin[origin] = self._find(url)
        return self._by_origin[origin]

    def _find(self, url: URL) -> URL | None:
        host = url.host or ""
        if host in _THIS_MACHINE or proxy_bypass(host) or proxy_bypass(f"{host}:{url.port}"):
            return None
        scheme = url.scheme if url.scheme in self._proxies else "all"
        return self._proxy(scheme) if scheme in self._proxies else None

    def _proxy(self, scheme: str) -> URL:
        value, name = self._proxies[scheme], f"{scheme.upper()}_PROXY"
        try:
            proxy = URL(value if "://" in value else f"http://{value}")
            is_usable = proxy.scheme in ("http", "https") and bool(proxy.host)
        except ValueError:
            is_usable = False
        if is_usable:
            return proxy
        kind = value.partition("://")[0]
        if kind.startswith("socks"):
            raise _setup_error(f"{name} is a SOCKS proxy ({kind}), which is not supported", _HTTP_PROXY)
        raise _setup_error(f"{name} is not the URL of an HTTP proxy", _HTTP_PROXY)


_HTTP_PROXY = "set HTTP_PROXY and HTTPS_PROXY to an HTTP proxy such as http://proxy:3128, or unset it"


def _setup_error(what: str, remedy: str) -> AuthorError:
    return AuthorError(Problem(f"the HTTP client cannot be set up: {what}", remedy))
