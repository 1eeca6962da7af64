"""``agenteval comment FILE``: one comment on the pull request that CI runs for, replaced each time.

Address and rights come from the CI's own variables (GitHub Actions and GitLab CI). Nothing else is sent, and
nothing at all unless this command is called."""

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
"""The longest comment in characters; GitHub accepts 65,536."""


class CommentTarget(NamedTuple):
    """The API of the pull request that a comment is posted to."""

    comments: str
    """The URL where comments are listed and created."""
    one: str
    """The URL where the comment with an ``id`` is replaced."""
    headers: Mapping[str, str]
    replace: str
    me: str
    """The URL that names the owner of the token."""
    graphql: str = ""
    """The URL that names the owner if the token is an app's."""
    app: str = ""
    """The author if neither URL names one."""


def comment(file: str) -> int:
    """Post the comment. Return 0 if it is posted, or if there is no pull request; 3 if the server did not
    accept it. Raise ``AuthorError`` if the file or a token is missing."""
    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        what = f"cannot read {file}: {getattr(error, 'strerror', None) or error}"
        raise AuthorError(Problem(what, f"create it with agenteval run --report comment={file}")) from error
    if not text.startswith(MARKER):
        what = f"{file} is not a comment file of agenteval"
        raise AuthorError(Problem(what, f"create it with agenteval run --report comment={file}"))
    target = place_in(os.environ)
    if target is None:
        print_err("this job has no pull request: nothing is posted")
        return 0
    try:
        outcome = post(target, shortened(text))
    except (urllib.error.URLError, OSError, ValueError) as error:
        print_err(f"the comment was not posted: {_describe_failure(error)}")
        return 3
    print_err(f"the comment was {outcome}")
    return 0


def shortened(text: str) -> str:
    """Cut the text at a line to the length that a server accepts."""
    if len(text) <= LONGEST:
        return text
    kept = text[:LONGEST].rpartition("\n")[0]
    return f"{kept}\n\n… truncated: the job has the whole report.\n"


def place_in(environ: Mapping[str, str]) -> CommentTarget | None:
    """Return the target for the pull request that this job runs for, or None if there is none. Raise
    ``AuthorError`` if there is no token for it."""
    if environ.get("GITHUB_ACTIONS"):
        number = _github_number(environ)
        return _github(environ, number) if number else None
    if environ.get("GITLAB_CI") and (number := environ.get("CI_MERGE_REQUEST_IID", "")):
        base = (
            f"{environ.get('CI_API_V4_URL', '')}/projects/{environ.get('CI_PROJECT_ID', '')}/merge_requests"
        )
        notes = f"{base}/{number}/notes"
        token = _token(environ, "GITLAB_TOKEN", "a project access token with the scope api")
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
        raise AuthorError(Problem(f"{name} is not set: the comment cannot be posted", f"set it: {how}"))
    return token


def _github_number(environ: Mapping[str, str]) -> str:
    """Return the pull request's number from the ref, or else from the event that started the workflow."""
    if found := re.match(r"refs/pull/(\d+)/", environ.get("GITHUB_REF", "")):
        return found[1]
    try:
        event = json.loads(Path(environ.get("GITHUB_EVENT_PATH", "")).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    pull = event.get("pull_request") if isinstance(event, dict) else None
    return str(pull.get("number") or "") if isinstance(pull, dict) else ""


def post(target: CommentTarget, text: str) -> str:
    """Post the comment or replace the previous one, and return which was done. A comment by another author is
    not replaced even if it has the marker and the token may edit it: its author could still change it
    afterwards. Raise ``URLError``, ``OSError`` or ``ValueError`` on failure."""
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
    """Return the id of the comment that this token has posted before; empty if there is none."""
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
    """Return the name under which this token posts; empty if it cannot be determined, and then nothing is
    replaced."""
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
    """Return a user's name. On GitHub only an app's name has brackets, so that no user can have the same."""
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
    """Refuses redirects: token and comment go only where the CI's variables point."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _describe_failure(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        if error.code in _REDIRECTS:
            return f"HTTP {error.code}: the server redirects, which is not followed; correct its address"
        more = (
            "; may the token write to pull requests? In a fork it may not" if error.code in (401, 403) else ""
        )
        return f"HTTP {error.code}{more}"
    return str(getattr(error, "reason", error))
