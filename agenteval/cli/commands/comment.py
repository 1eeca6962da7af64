"""``agenteval comment FILE``: one comment on the pull request that CI runs for, replaced each time.

Where it goes, and with whose rights, the CI's own variables say: GitHub Actions and GitLab CI. Nothing else
is sent, and nothing unless this command is called.
"""

from __future__ import annotations

import json
import os
import re
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from agenteval.cli.way_out import say
from agenteval.core.errors import AuthorError, Problem
from agenteval.reporters.markdown.pull_request import MARKER

_TIMEOUT_S = 30
_PAGE = 100
_MOST_PAGES = 50
LONGEST = 65_000
"""Characters; GitHub takes 65,536."""


class Place(NamedTuple):
    """``comments``: where they are listed and made; ``one``: where that with an ``id`` is replaced."""

    comments: str
    one: str
    headers: Mapping[str, str]
    replace: str


def comment(file: str) -> int:
    """Returns 0 where it is posted, or where there is no pull request; 3 where the server did not take it.
    Raises ``AuthorError``."""
    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        what = f"cannot read {file}: {getattr(error, 'strerror', None) or error}"
        raise AuthorError(Problem(what, f"make it with agenteval run --report comment={file}")) from error
    if not text.startswith(MARKER):
        what = f"{file} is not a comment of agenteval"
        raise AuthorError(Problem(what, f"make it with agenteval run --report comment={file}"))
    place = place_in(os.environ)
    if place is None:
        say("no pull request: nothing is posted")
        return 0
    try:
        told = post(place, shortened(text))
    except (urllib.error.URLError, OSError, ValueError) as error:
        say(f"the comment was not posted: {_why(error)}")
        return 3
    say(f"the comment was {told}")
    return 0


def shortened(text: str) -> str:
    """What a server takes, cut at a line."""
    if len(text) <= LONGEST:
        return text
    kept = text[:LONGEST].rpartition("\n")[0]
    return f"{kept}\n\n… cut: the whole report is with the job.\n"


def place_in(environ: Mapping[str, str]) -> Place | None:
    """Of the pull request that this job runs for; ``None`` where there is none. Raises ``AuthorError`` where
    there is no token for it."""
    if environ.get("GITHUB_ACTIONS"):
        number = _github_number(environ)
        return _github(environ, number) if number else None
    if environ.get("GITLAB_CI") and (number := environ.get("CI_MERGE_REQUEST_IID", "")):
        base = (
            f"{environ.get('CI_API_V4_URL', '')}/projects/{environ.get('CI_PROJECT_ID', '')}/merge_requests"
        )
        notes = f"{base}/{number}/notes"
        token = _token(environ, "GITLAB_TOKEN", "a project access token with the scope api")
        return Place(notes, f"{notes}/{{id}}", {"PRIVATE-TOKEN": token}, "PUT")
    return None


def _github(environ: Mapping[str, str], number: str) -> Place:
    server = environ.get("GITHUB_API_URL", "https://api.github.com")
    base = f"{server}/repos/{environ.get('GITHUB_REPOSITORY', '')}"
    token = _token(
        environ, "GITHUB_TOKEN", "env: {GITHUB_TOKEN: ${{ github.token }}}, with pull-requests: write"
    )
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"}
    return Place(f"{base}/issues/{number}/comments", f"{base}/issues/comments/{{id}}", headers, "PATCH")


def _token(environ: Mapping[str, str], name: str, how: str) -> str:
    if not (token := environ.get(name, "")):
        raise AuthorError(Problem(f"{name} is not set: the comment cannot be posted", f"set it: {how}"))
    return token


def _github_number(environ: Mapping[str, str]) -> str:
    """From the ref; where a workflow was started otherwise, from its event."""
    if found := re.match(r"refs/pull/(\d+)/", environ.get("GITHUB_REF", "")):
        return found[1]
    try:
        event = json.loads(Path(environ.get("GITHUB_EVENT_PATH", "")).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    pull = event.get("pull_request") if isinstance(event, dict) else None
    return str(pull.get("number") or "") if isinstance(pull, dict) else ""


def post(place: Place, text: str) -> str:
    """What was done. One of somebody else's with our mark cannot be replaced; then there is a new one. Raises
    ``URLError``, ``OSError`` and ``ValueError``."""
    known = _ours(place)
    if known:
        try:
            _ask(place.one.format(id=known), place, place.replace, text)
            return "replaced"
        except urllib.error.HTTPError as error:
            if error.code not in (403, 404):
                raise
    _ask(place.comments, place, "POST", text)
    return "posted"


def _ours(place: Place) -> str:
    for page in range(1, _MOST_PAGES + 1):
        listed = _ask(f"{place.comments}?per_page={_PAGE}&page={page}", place, "GET")
        comments = listed if isinstance(listed, list) else []
        for each in comments:
            if isinstance(each, dict) and str(each.get("body") or "").startswith(MARKER):
                return str(each.get("id"))
        if len(comments) < _PAGE:
            break
    return ""


def _ask(url: str, place: Place, method: str, text: str | None = None) -> Any:
    if not url.startswith(("https://", "http://")):
        raise ValueError(f"not an address: {url}")
    body = None if text is None else json.dumps({"body": text}).encode()
    headers = {**place.headers, "Content-Type": "application/json", "User-Agent": "agenteval"}
    request = urllib.request.Request(url, data=body, headers=headers, method=method)
    with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as reply:
        return json.loads(reply.read() or b"null")


def _why(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        more = (
            "; may the token write to pull requests? Of a fork it may not" if error.code in (401, 403) else ""
        )
        return f"HTTP {error.code}{more}"
    return str(getattr(error, "reason", error))
