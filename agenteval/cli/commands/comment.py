"""Implements ``agenteval comment FILE``: posts a single comment on the pull request of a CI job and replaces
the previous comment.

The URL and the token are taken from environment variables of the CI service (GitHub Actions and GitLab CI).
Only the comment is sent, and only by this command."""

from __future__ import annotations

import json
import os
import re
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from agenteval.cli.safe_output import print_err
from agenteval.core.errors import AuthorError, Problem
from agenteval.reporters.markdown.pull_request import MARKER

_TIMEOUT_S = 30
_PAGE = 100
_MOST_PAGES = 50
_REDIRECTS = (301, 302, 303, 307, 308)
LONGEST = 65_000
"""The maximum length of a comment in characters. GitHub accepts 65,536."""


class CommentTarget(NamedTuple):
    """The API endpoints for posting a comment on a pull request."""

    comments: str
    """The URL for listing and creating comments."""
    one: str
    """The URL for replacing the comment with the given ``id``."""
    headers: Mapping[str, str]
    replace: str
    me: str
    """The URL that returns the owner of the token."""
    graphql: str = ""
    """The URL that returns the owner of the token if the token belongs to an app."""
    app: str = ""
    """The assumed author if neither URL returns the token's owner."""


def comment(file: str) -> int:
    """Post the comment on the pull request. Return 0 if the comment was posted or if there is no pull
    request, and 3 if posting failed. Raise ``AuthorError`` if the file is not a readable comment file or a
    token is missing."""
    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        what = f"cannot read {file}: {getattr(error, 'strerror', None) or error}"
        raise AuthorError(Problem(what, f"create it with `agenteval run --report comment={file}`")) from error
    if not text.startswith(MARKER):
        what = f"{file} is not a comment file written by agenteval"
        raise AuthorError(Problem(what, f"create it with `agenteval run --report comment={file}`"))
    target = place_in(os.environ)
    if target is None:
        print_err("this job has no pull request, so nothing was posted")
        return 0
    try:
        outcome = post(target, shortened(text))
    except (urllib.error.URLError, OSError, ValueError) as error:
        print_err(f"the comment was not posted: {_describe_failure(error)}")
        return 3
    print_err(f"the comment was {outcome}")
    return 0


def shortened(text: str) -> str:
    """Truncate the text if it exceeds the maximum length that a server accepts: at a line break, or within a
    line that alone is longer than half of it."""
    if len(text) <= LONGEST:
        return text
    at_line = text.rfind("\n", LONGEST // 2, LONGEST)
    kept = text[: at_line if at_line >= 0 else LONGEST]
    return f"{kept}\n\n… truncated; the job has the full report.\n"


def place_in(environ: Mapping[str, str]) -> CommentTarget | None:
    """Return the target for the pull request of this CI job, or None if there is no pull request. Raise
    ``AuthorError`` if the required token is not set."""
    if environ.get("GITHUB_ACTIONS"):
        number = _github_number(environ)
        return _github(environ, number) if number else None
    if environ.get("GITLAB_CI") and (number := environ.get("CI_MERGE_REQUEST_IID", "")):
        base = (
            f"{environ.get('CI_API_V4_URL', '')}/projects/{environ.get('CI_PROJECT_ID', '')}/merge_requests"
        )
        notes = f"{base}/{number}/notes"
        token = _token(environ, "GITLAB_TOKEN", "a project access token with the `api` scope")
        me = f"{environ.get('CI_API_V4_URL', '')}/user"
        return CommentTarget(notes, f"{notes}/{{id}}", {"PRIVATE-TOKEN": token}, "PUT", me)
    return None


def _github(environ: Mapping[str, str], number: str) -> CommentTarget:
    server = environ.get("GITHUB_API_URL", "https://api.github.com")
    base = f"{server}/repos/{environ.get('GITHUB_REPOSITORY', '')}"
    token = _token(
        environ, "GITHUB_TOKEN", "env: {GITHUB_TOKEN: ${{ github.token }}}, with pull-requests: write"
    )
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"}
    return CommentTarget(
        f"{base}/issues/{number}/comments",
        f"{base}/issues/comments/{{id}}",
        headers,
        "PATCH",
        me=f"{server}/user",
        graphql=environ.get("GITHUB_GRAPHQL_URL", ""),
        app="github-actions[bot]",
    )


def _token(environ: Mapping[str, str], name: str, how: str) -> str:
    if not (token := environ.get(name, "")):
        raise AuthorError(Problem(f"{name} is not set, so the comment cannot be posted", f"set it: {how}"))
    return token


def _github_number(environ: Mapping[str, str]) -> str:
    """Return the pull request number from the ref or, failing that, from the event that triggered the
    workflow run."""
    if found := re.match(r"refs/pull/(\d+)/", environ.get("GITHUB_REF", "")):
        return found[1]
    try:
        event = json.loads(Path(environ.get("GITHUB_EVENT_PATH", "")).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    pull = event.get("pull_request") if isinstance(event, dict) else None
    return str(pull.get("number") or "") if isinstance(pull, dict) else ""


def post(target: CommentTarget, text: str) -> str:
    """Post the comment or replace the previous comment, and return ``posted`` or ``replaced``. A comment by
    another author is never replaced, even if the comment contains the marker and the token has permission to
    edit it: the other author could change the comment later. Raise ``URLError``, ``OSError`` or
    ``ValueError`` on failure."""
    comment_id = _find_previous_comment(target)
    if comment_id:
        try:
            _call_api(target.one.format(id=comment_id), target, target.replace, text)
            return "replaced"
        except urllib.error.HTTPError as error:
            if error.code not in (403, 404):
                raise
    _call_api(target.comments, target, "POST", text)
    return "posted"


def _find_previous_comment(target: CommentTarget) -> str:
    """Return the id of the comment that was previously posted with this token, or an empty string if there is
    none."""
    me = _token_owner(target)
    for page in range(1, _MOST_PAGES + 1):
        listed = _call_api(f"{target.comments}?per_page={_PAGE}&page={page}", target, "GET")
        comments = listed if isinstance(listed, list) else []
        for each in comments:
            if not isinstance(each, dict) or not str(each.get("body") or "").startswith(MARKER):
                continue
            if me and _user_name(each.get("user") or each.get("author")) == me:
                return str(each.get("id"))
        if len(comments) < _PAGE:
            break
    return ""


def _token_owner(target: CommentTarget) -> str:
    """Return the user name that belongs to this token. Return an empty string if the name cannot be
    determined, in which case no comment is replaced."""
    query = json.dumps({"query": "{viewer {login}}"}).encode()
    for url, method, body in ((target.me, "GET", None), (target.graphql, "POST", query)):
        try:
            reply = _send(url, target, method, body) if url else None
        except urllib.error.HTTPError:  # an app's token has no user; only GraphQL names its owner
            continue
        data = reply.get("data") if isinstance(reply, dict) else None
        viewer = data.get("viewer") if isinstance(data, dict) else None
        if name := _user_name(reply) or _user_name(viewer):
            return name
    return target.app


def _user_name(user: Any) -> str:
    """Return a user's name. On GitHub, only app names contain brackets, so no user can have the name of an
    app."""
    return str(user.get("login") or user.get("username") or "") if isinstance(user, dict) else ""


def _call_api(url: str, target: CommentTarget, method: str, text: str | None = None) -> Any:
    return _send(url, target, method, None if text is None else json.dumps({"body": text}).encode())


def _send(url: str, target: CommentTarget, method: str, body: bytes | None) -> Any:
    if not url.startswith(("https://", "http://")):
        raise ValueError(f"not a URL: {url}")
    headers = {**target.headers, "Content-Type": "application/json", "User-Agent": "agenteval"}
    request = urllib.request.Request(url, data=body, headers=headers, method=method)
    with urllib.request.build_opener(_NoRedirects).open(request, timeout=_TIMEOUT_S) as reply:
        return json.loads(reply.read() or b"null")


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Rejects HTTP redirects, so that the token and the comment are sent only to the server named by the CI
    variables."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _describe_failure(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        if error.code in _REDIRECTS:
            return f"HTTP {error.code}: the server redirects, but redirects are not followed; fix its address"
        more = (
            "; check that the token can write to pull requests (in a fork, it cannot)"
            if error.code in (401, 403)
            else ""
        )
        return f"HTTP {error.code}{more}"
    return str(getattr(error, "reason", error))
