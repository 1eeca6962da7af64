"""``agenteval comment``: one comment on the pull request of a job, replaced by its own author alone."""

from __future__ import annotations

import io
import json
import urllib.error
import urllib.request
from collections.abc import Callable
from email.message import Message
from pathlib import Path
from typing import Any

import pytest

from agenteval.cli.commands import comment as module
from agenteval.cli.commands.comment import LONGEST, CommentTarget, comment, place_in, post, shortened
from agenteval.core.errors import AuthorError
from agenteval.reporters.markdown.pull_request import MARKER

GITHUB = {"GITHUB_ACTIONS": "true", "GITHUB_TOKEN": "t0ken", "GITHUB_REPOSITORY": "us/it"}
GITLAB = {
    "GITLAB_CI": "true",
    "CI_API_V4_URL": "https://lab.example/api/v4",
    "CI_PROJECT_ID": "7",
    "CI_MERGE_REQUEST_IID": "3",
    "GITLAB_TOKEN": "t0ken",
}
PULL = {"GITHUB_REF": "refs/pull/12/merge"}


# ── where to ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("length", "is_cut"), [(0, False), (LONGEST - 1, False), (LONGEST, False), (LONGEST + 1, True)]
)
def test_a_long_comment_is_cut_at_a_line(length: int, is_cut: bool) -> None:
    line = "x" * 99 + "\n"
    text = (line * (length // 100 + 1))[:length]
    cut = shortened(text)
    assert (cut != text) is is_cut
    assert len(cut) <= 65_536
    if is_cut:
        kept, _, end = cut.rpartition("\n\n… ")
        assert end
        assert set(kept.split("\n")) == {"x" * 99}
        assert LONGEST - 100 <= len(kept) <= LONGEST


@pytest.mark.parametrize(
    ("before", "kept"),
    [
        (0, LONGEST),
        (100, LONGEST),  # little would be left of the comment
        (LONGEST // 2 - 1, LONGEST),
        (LONGEST // 2, LONGEST // 2),
        (LONGEST - 1, LONGEST - 1),
        (LONGEST, LONGEST),
    ],
)
def test_a_line_that_is_longer_than_a_comment_is_cut_itself(before: int, kept: int) -> None:
    text = f"{MARKER}{'x' * before}"[:before] + "\n" + "y" * 2 * LONGEST
    cut, _, end = shortened(text).rpartition("\n\n… ")
    assert end
    assert cut == text[:kept]


@pytest.mark.parametrize(
    ("environ", "event", "number"),
    [
        (PULL, None, "12"),
        ({"GITHUB_REF": "refs/heads/main"}, {"pull_request": {"number": 5}}, "5"),
        (PULL, {"pull_request": {"number": 5}}, "12"),
        ({}, {"pull_request": {"number": 5}}, "5"),
        ({}, {"pull_request": {"number": None}}, ""),
        ({}, {"pull_request": {}}, ""),
        ({}, {"pull_request": None}, ""),
        ({}, {"push": 1}, ""),
        ({}, [], ""),
        ({}, "{", ""),
        ({}, None, ""),
        ({"GITHUB_REF": "refs/pull/x/merge"}, None, ""),
    ],
)
def test_the_pull_request_of_a_job_on_github(
    tmp_path: Path, environ: dict[str, str], event: Any, number: str
) -> None:
    if event is not None:
        path = tmp_path / "event.json"
        path.write_text(event if isinstance(event, str) else json.dumps(event))
        environ = {**environ, "GITHUB_EVENT_PATH": str(path)}
    target = place_in({**GITHUB, **environ})
    found = target.comments if target else ""
    assert found == (f"https://api.github.com/repos/us/it/issues/{number}/comments" if number else "")


def test_addresses_on_github() -> None:
    own = {"GITHUB_API_URL": "https://own.example/api", "GITHUB_GRAPHQL_URL": "https://own.example/graphql"}
    target = place_in({**GITHUB, **PULL, **own, **GITLAB})
    assert target == CommentTarget(
        comments="https://own.example/api/repos/us/it/issues/12/comments",
        one="https://own.example/api/repos/us/it/issues/comments/{id}",
        headers={"Authorization": "Bearer t0ken", "Accept": "application/vnd.github+json"},
        replace="PATCH",
        me="https://own.example/api/user",
        graphql="https://own.example/graphql",
        app="github-actions[bot]",
    )


def test_addresses_on_gitlab() -> None:
    notes = "https://lab.example/api/v4/projects/7/merge_requests/3/notes"
    assert place_in(GITLAB) == CommentTarget(
        comments=notes,
        one=f"{notes}/{{id}}",
        headers={"PRIVATE-TOKEN": "t0ken"},
        replace="PUT",
        me="https://lab.example/api/v4/user",
    )


@pytest.mark.parametrize(
    "environ",
    [
        {},
        GITHUB,
        {"GITHUB_ACTIONS": "true"},
        {**GITLAB, "CI_MERGE_REQUEST_IID": ""},
        {key: value for key, value in GITLAB.items() if key != "GITLAB_CI"},
        {key: value for key, value in {**GITHUB, **PULL}.items() if key != "GITHUB_ACTIONS"},
    ],
)
def test_a_job_without_a_pull_request(environ: dict[str, str]) -> None:
    assert place_in(environ) is None


@pytest.mark.parametrize(
    ("environ", "name"), [({**GITHUB, **PULL}, "GITHUB_TOKEN"), (GITLAB, "GITLAB_TOKEN")]
)
def test_a_missing_token_is_named(environ: dict[str, str], name: str) -> None:
    for value in ({}, {name: ""}):
        rest = {key: each for key, each in environ.items() if key != name}
        with pytest.raises(AuthorError) as error:
            place_in({**rest, **value})
        assert name in str(error.value)


# ── posting ──────────────────────────────────────────────────────────────────────────────────────


class Reply(io.BytesIO):
    """A reply with a body of JSON."""


def http_error(code: int) -> urllib.error.HTTPError:
    return urllib.error.HTTPError("url", code, "no", Message(), None)


class Server:
    """Answers by method and URL; anything else is not found."""

    def __init__(self) -> None:
        self.replies: dict[str, Any] = {}
        self.requests: list[urllib.request.Request] = []

    def open(self, request: urllib.request.Request, *, timeout: float) -> Reply:
        assert 0 < timeout <= 60
        self.requests.append(request)
        reply = self.replies.get(f"{request.get_method()} {request.full_url}", http_error(404))
        if isinstance(reply, Exception):
            raise reply
        return Reply(b"" if reply is None else json.dumps(reply).encode())

    @property
    def sent(self) -> list[str]:
        """What was asked that is not only read."""
        asked = [f"{each.get_method()} {each.full_url}" for each in self.requests]
        return [each for each in asked if not each.startswith("GET") and "graphql" not in each]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    made = Server()

    def build_opener(*handlers: Any) -> Server:
        assert handlers == (module._NoRedirects,)
        return made

    monkeypatch.setattr(urllib.request, "build_opener", build_opener)
    made.replies[f"POST {ALL}"] = {}
    return made


ALL, ONE, ME, GRAPHQL = "https://x/all", "https://x/one/9", "https://x/user", "https://x/graphql"
TARGET = CommentTarget(ALL, "https://x/one/{id}", {"K": "v"}, "PATCH", ME, GRAPHQL, "app[bot]")
PAGE_1, PAGE_2 = (f"GET {ALL}?per_page=100&page={number}" for number in (1, 2))
POSTED, REPLACED = f"POST {ALL}", f"PATCH {ONE}"


def note(by: str, body: str = MARKER, id: int = 9, key: str = "user", name: str = "login") -> dict[str, Any]:
    return {"id": id, "body": body, key: {name: by}}


@pytest.mark.parametrize(
    ("comments", "outcome"),
    [
        ([note("me")], REPLACED),
        ([note("me", f"{MARKER}\nmore")], REPLACED),
        ([note("me", key="author", name="username")], REPLACED),
        ([note("other", id=1), note("me")], REPLACED),
        ([note("me", "hello", id=1), note("me")], REPLACED),
        ([note("me"), note("me", id=1)], REPLACED),
        ([], POSTED),
        ([note("other")], POSTED),
        ([note("me", "hello")], POSTED),
        ([note("me", f"> {MARKER}")], POSTED),
        ([{"id": 9, "body": MARKER}], POSTED),
        ([{"id": 9, "body": MARKER, "user": None}], POSTED),
        ([{"id": 9, "body": None, "user": {"login": "me"}}], POSTED),
        (["text", None], POSTED),
        ({"message": "strange"}, POSTED),
        (None, POSTED),
    ],
)
def test_only_the_own_comment_is_replaced(server: Server, comments: Any, outcome: str) -> None:
    server.replies |= {f"GET {ME}": {"login": "me"}, PAGE_1: comments, REPLACED: {}}
    assert post(TARGET, "text") == ("replaced" if outcome == REPLACED else "posted")
    assert server.sent == [outcome]
    last = server.requests[-1]
    assert isinstance(last.data, bytes)
    assert json.loads(last.data) == {"body": "text"}
    assert (last.get_header("K"), last.get_header("Content-type")) == ("v", "application/json")
    assert last.get_header("User-agent") == "agenteval"


@pytest.mark.parametrize(("first", "pages"), [(99, 1), (100, 2), (101, 2)])
def test_more_pages_are_read_while_one_is_full(server: Server, first: int, pages: int) -> None:
    others = [note("other")] * first
    server.replies |= {f"GET {ME}": {"login": "me"}, PAGE_1: others, PAGE_2: [note("me")], REPLACED: {}}
    assert post(TARGET, "text") == ("replaced" if pages == 2 else "posted")


def test_pages_come_to_an_end(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_PAGES", 2)
    full = [note("other")] * 100
    server.replies |= {f"GET {ME}": {"login": "me"}, PAGE_1: full, PAGE_2: full}
    assert post(TARGET, "text") == "posted"


@pytest.mark.parametrize(
    ("user", "viewer", "owner"),
    [
        ({"login": "me"}, {"data": {"viewer": {"login": "bot"}}}, "me"),
        ({"username": "me"}, http_error(404), "me"),
        (http_error(403), {"data": {"viewer": {"login": "me"}}}, "me"),
        ({}, {"data": {"viewer": {"login": "me"}}}, "me"),
        ([], {"data": {"viewer": {"login": "me"}}}, "me"),
        (http_error(403), http_error(404), "app[bot]"),
        (http_error(403), {"data": {"viewer": None}}, "app[bot]"),
        (http_error(403), {"data": None}, "app[bot]"),
        (http_error(403), {"errors": []}, "app[bot]"),
        (http_error(403), [], "app[bot]"),
    ],
)
def test_the_owner_of_the_token(server: Server, user: Any, viewer: Any, owner: str) -> None:
    server.replies |= {f"GET {ME}": user, f"POST {GRAPHQL}": viewer, PAGE_1: [note(owner)], REPLACED: {}}
    assert post(TARGET, "text") == "replaced"
    server.replies[PAGE_1] = [note("somebody")]
    assert post(TARGET, "text") == "posted"


def test_without_an_owner_nothing_is_replaced(server: Server) -> None:
    server.replies |= {f"GET {ME}": http_error(404), PAGE_1: [note("")], REPLACED: {}}
    assert post(TARGET._replace(graphql="", app=""), "text") == "posted"


@pytest.mark.parametrize("code", [403, 404, 401, 500])
def test_a_comment_that_cannot_be_replaced(server: Server, code: int) -> None:
    server.replies |= {f"GET {ME}": {"login": "me"}, PAGE_1: [note("me")], REPLACED: http_error(code)}
    if code in (403, 404):
        assert post(TARGET, "text") == "posted"
        assert server.sent == [REPLACED, POSTED]
    else:
        with pytest.raises(urllib.error.HTTPError):
            post(TARGET, "text")
        assert server.sent == [REPLACED]


@pytest.mark.parametrize("url", ["", "file:///etc/passwd", "/projects/7"])
def test_only_a_url_is_asked(server: Server, url: str) -> None:
    with pytest.raises(ValueError, match="URL"):
        post(TARGET._replace(comments=url, me="", graphql=""), "text")
    assert server.requests == []


def test_redirects_are_not_followed() -> None:
    handler: Any = module._NoRedirects()
    assert handler.redirect_request() is None


# ── the command ──────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Path]:
    for name in ("GITHUB_ACTIONS", "GITLAB_CI"):
        monkeypatch.delenv(name, raising=False)

    def prepare(**environ: str) -> Path:
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        path = tmp_path / "comment.md"
        path.write_text(f"{MARKER}\nhello", encoding="utf-8")
        return path

    return prepare


@pytest.mark.parametrize(
    ("data", "facts"),
    [
        (None, ["comment.md", "--report comment="]),
        (b"\xff", ["comment.md", "--report comment="]),
        (b"hello", ["comment.md", "--report comment="]),
        (f"x{MARKER}".encode(), ["--report comment="]),
    ],
)
def test_a_file_that_is_no_comment(tmp_path: Path, data: bytes | None, facts: list[str]) -> None:
    path = tmp_path / "comment.md"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(AuthorError) as error:
        comment(str(path))
    for fact in facts:
        assert fact in str(error.value)


def test_without_a_pull_request_nothing_is_posted(job: Callable[..., Path], server: Server) -> None:
    assert comment(str(job())) == 0
    assert server.requests == []


@pytest.mark.parametrize(
    ("reply", "code", "facts"),
    [
        ({}, 0, ["posted"]),
        (http_error(403), 3, ["HTTP 403", "token"]),
        (http_error(401), 3, ["HTTP 401", "token"]),
        (http_error(500), 3, ["HTTP 500"]),
        *((http_error(code), 3, [f"HTTP {code}", "redirect"]) for code in (301, 302, 303, 307, 308)),
        (urllib.error.URLError("no route"), 3, ["no route"]),
        (OSError("gone"), 3, ["gone"]),
        (ValueError("strange"), 3, ["strange"]),
    ],
)
def test_what_became_of_the_comment(
    job: Callable[..., Path],
    server: Server,
    capsys: pytest.CaptureFixture[str],
    reply: Any,
    code: int,
    facts: list[str],
) -> None:
    environ = {**GITHUB, **PULL, "GITHUB_API_URL": "https://x"}
    comments = "https://x/repos/us/it/issues/12/comments"
    server.replies |= {f"GET {comments}?per_page=100&page=1": [], f"POST {comments}": reply}
    assert comment(str(job(**environ))) == code
    said = capsys.readouterr()
    assert said.out == ""
    for fact in facts:
        assert fact in said.err
    assert ("token" in said.err) is ("token" in facts)
    assert ("redirect" in said.err) is ("redirect" in facts)
    data = server.requests[-1].data
    assert isinstance(data, bytes)
    assert json.loads(data) == {"body": f"{MARKER}\nhello"}
