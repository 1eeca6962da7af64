"""Which proxy and which certificates the environment asks for, and what it cannot ask for."""

from __future__ import annotations

import ssl
import sys
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest
from yarl import URL

from agenteval.adapters.transport import environment as module
from agenteval.adapters.transport.environment import ProxyTable, certificates, check_certificates
from agenteval.core.errors import AuthorError
from tests.support.local_servers import plain_environment

HERE = ("http://localhost:8000/v1", "http://127.0.0.1/v1", "http://[::1]:8000/v1", "https://localhost/v1")


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plain_environment(monkeypatch, tmp_path)
    fresh = cache(module._certificates.__wrapped__)
    monkeypatch.setattr(module, "_certificates", fresh)  # what is loaded here is not kept for other tests


def without_certificates(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)


def proxy_for(url: str) -> str | None:
    found = ProxyTable().proxy_for(URL(url))
    return None if found is None else str(found)


# ── proxies ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("url", "environ", "proxy"),
    [
        ("http://h/v1", {}, None),
        ("http://h/v1", {"HTTP_PROXY": "http://p:1"}, "http://p:1"),
        ("http://h/v1", {"http_proxy": "http://p:1"}, "http://p:1"),
        ("http://h/v1", {"HTTP_PROXY": "p:1"}, "http://p:1"),
        ("http://h/v1", {"HTTP_PROXY": "http://me:word@p:1"}, "http://me:word@p:1"),
        ("http://h/v1", {"HTTPS_PROXY": "http://p:1"}, None),
        ("https://h/v1", {"HTTPS_PROXY": "http://p:1"}, "http://p:1"),
        ("https://h/v1", {"HTTPS_PROXY": "https://p:1"}, "https://p:1"),
        ("https://h/v1", {"ALL_PROXY": "http://p:1"}, "http://p:1"),
        ("http://h/v1", {"ALL_PROXY": "http://p:1", "HTTP_PROXY": "http://q:2"}, "http://q:2"),
        ("http://h/v1", {"HTTP_PROXY": "http://p:1", "NO_PROXY": "*"}, None),
        ("http://h/v1", {"HTTP_PROXY": "http://p:1", "NO_PROXY": "other, h"}, None),
        ("http://h:8000/v1", {"HTTP_PROXY": "http://p:1", "NO_PROXY": "h:8000"}, None),
        ("http://h:8001/v1", {"HTTP_PROXY": "http://p:1", "NO_PROXY": "h:8000"}, "http://p:1"),
        ("http://a.example/v1", {"HTTP_PROXY": "http://p:1", "NO_PROXY": ".example"}, None),
        ("http://a.example/v1", {"HTTP_PROXY": "http://p:1", "no_proxy": "example"}, None),
        ("http://an-example/v1", {"HTTP_PROXY": "http://p:1", "NO_PROXY": "example"}, "http://p:1"),
        ("http://10.0.0.1/v1", {"HTTP_PROXY": "http://p:1", "NO_PROXY": "10.0.0.1"}, None),
        ("http://h/v1", {"HTTP_PROXY": ""}, None),
    ],
)
def test_the_proxy_of_a_url(
    url: str, environ: dict[str, str], proxy: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert proxy_for(url) == proxy


@pytest.mark.parametrize("url", HERE)
def test_this_machine_needs_no_proxy(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "http://p:1")
    assert proxy_for(url) is None
    assert proxy_for("http://localhost.example/") == "http://p:1"


@pytest.mark.parametrize("name", ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"])
@pytest.mark.parametrize(
    ("value", "fact"),
    [
        ("socks5://p:1", "SOCKS"),
        ("socks5h://me:word@p:1", "SOCKS"),
        ("ftp://p:1", "not the URL of an HTTP proxy"),
        ("http://", "not the URL"),
        ("http://[::1", "not the URL"),
    ],
)
def test_a_proxy_that_is_not_supported_is_told_at_once(
    name: str, value: str, fact: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(AuthorError) as caught:
        proxy_for("http://h/" if name == "HTTP_PROXY" else "https://h/")
    assert fact in str(caught.value)
    assert name in str(caught.value)
    assert "HTTP proxy such as" in str(caught.value)
    assert "word" not in str(caught.value)


def test_only_the_proxy_of_the_url_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://p:1")
    for url in HERE:
        assert proxy_for(url) is None
    with pytest.raises(AuthorError, match="SOCKS"):
        proxy_for("https://h/v1")
    monkeypatch.setenv("HTTPS_PROXY", "http://q:1")
    assert proxy_for("https://h/v1") == "http://q:1"


def test_the_environment_is_read_once_for_each_server(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def bypass(host: str) -> bool:
        asked.append(host)
        return False

    monkeypatch.setenv("HTTP_PROXY", "http://p:1")
    monkeypatch.setattr(module, "proxy_bypass", bypass)
    table = ProxyTable()
    for path in ("a", "b", "c"):
        table.proxy_for(URL(f"http://h/{path}"))
    assert asked == ["h", "h:80"]
    table.proxy_for(URL("http://i/"))
    assert len(asked) == 4


# ── certificates ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["SSL_CERT_FILE", "SSL_CERT_DIR"])
def test_certificates_that_cannot_be_loaded_are_told_at_once(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if name == "SSL_CERT_DIR":  # a folder is only searched when a certificate is looked for
        (tmp_path / "empty").mkdir()
        monkeypatch.delenv("SSL_CERT_FILE", raising=False)
        monkeypatch.setenv(name, str(tmp_path / "empty"))
        check_certificates(URL("https://h/"))
        return
    monkeypatch.setenv(name, str(tmp_path / "no-such.pem"))
    for url in ("https://h/", "HTTPS://h/"):
        with pytest.raises(AuthorError, match=name):
            check_certificates(URL(url))
    check_certificates(URL("http://h/"))  # which needs none


def test_a_file_that_holds_no_certificate(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "x.pem").write_text("not a certificate")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "x.pem"))
    with pytest.raises(AuthorError, match="check SSL_CERT_FILE"):
        certificates()


def test_certificates_are_loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert certificates() is certificates()
    mine = certificates()
    without_certificates(monkeypatch)
    assert certificates() is not mine
    assert certificates().verify_mode is ssl.CERT_REQUIRED
    assert certificates().check_hostname


def test_where_python_finds_no_certificates_those_of_the_distribution_are_loaded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    mine = Path(ssl.get_default_verify_paths().cafile or "")
    bundle = mine if mine.is_file() else next(Path(path) for path in module._CA_FILES if Path(path).is_file())
    without_certificates(monkeypatch)
    monkeypatch.setattr(module, "_CA_FILES", (str(tmp_path / "no"), str(bundle)))
    monkeypatch.setattr(ssl, "create_default_context", lambda: ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
    monkeypatch.setattr(module, "_has_certificates", lambda _: False)
    assert certificates().cert_store_stats()["x509_ca"] > 0


@pytest.mark.parametrize("system", ["Windows", "Darwin"])
def test_windows_and_macos_ask_the_system(system: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stands_for = SimpleNamespace(SSLContext=lambda protocol: ("the system's", protocol))
    monkeypatch.setitem(sys.modules, "truststore", stands_for)
    without_certificates(monkeypatch)
    monkeypatch.setattr(module.platform, "system", lambda: system)
    assert certificates() == ("the system's", ssl.PROTOCOL_TLS_CLIENT)  # type: ignore[comparison-overlap]
