"""Pull requests: the comment on a change, where it is posted, and the steps of both templates."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.kit import Done, Project, environment
from tests.support.local_servers import Behaviour, LocalServer, Request, answer, respond, respond_json
from tests.support.patience import HANG_S

ROOT = Path(__file__).parents[2]
MARKER = "<!-- agenteval -->"
SUITE = """
scenarios:
  - {id: steady, turns: [steady], expect: {output: {contains: [fine]}}}
  - {id: broken-now, epochs: 8, turns: [broken-now], expect: {output: {contains: [fine]}}}
  - {id: perhaps, turns: [perhaps], expect: {output: {contains: [fine]}}}
  - {id: mended, turns: [mended], expect: {output: {contains: [fine]}}}
  - {id: as-bad, turns: [as-bad], expect: {output: {contains: [fine]}}}
"""
FURTHER = "  - {id: further, turns: [further], expect: {output: {contains: [fine]}}}\n"


def version(project: Project, *failing: str, lost: str = "none") -> None:
    project.agent(f"""
        FAILING, LOST = {failing!r}, {lost!r}
        def agent(messages):
            text = messages[-1]["content"]
            if text == LOST:
                raise ConnectionError("refused")
            return "wrong @everyone | <b>" if text in FAILING else "fine"
    """)


def groups(comment: str) -> dict[str, list[list[str]]]:
    """The cells of each list, by its title."""
    found: dict[str, list[list[str]]] = {}
    rows: list[list[str]] = []
    for line in comment.splitlines():
        if title := re.match(r"\*\*(?:\S+ )?(.+?)\*\* \(\d+\)$", line):
            rows = found.setdefault(title[1], [])
        elif line.startswith("| scenarios/"):
            rows.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    return found


def listed(comment: str) -> dict[str, list[str]]:
    """The scenarios of each list."""
    return {kind: [row[0].rpartition("::")[2] for row in rows] for kind, rows in groups(comment).items()}


def test_the_comment_groups_what_a_change_did_and_how_sure_that_is(project: Project) -> None:
    project.config("")
    project.scenarios(SUITE)
    version(project, "mended", "as-bad")
    assert project.run().code == 1
    project.scenarios(SUITE + FURTHER)
    version(project, "broken-now", "perhaps", "as-bad", "further")
    done = project.run("--baseline", "latest", "--report", "comment=c.md")
    assert done.code == 1, done.all
    comment = (project.root / "c.md").read_text("utf-8")
    assert comment.startswith(f"{MARKER}\n\n### ❌ ")
    assert "2 newly failing" in comment.splitlines()[2]
    assert listed(comment) == {
        "Newly failing": ["broken-now", "perhaps"],
        "Failing, and not in the baseline": ["further"],
        "Still failing": ["as-bad"],
        "Fixed": ["mended"],
    }
    first, second = groups(comment)["Newly failing"]
    assert (first[1:3], first[-1]) == (["8/8", "0/8"], "significant")
    assert (second[1:3], second[-1]) == (["1/1", "0/1"], "may be chance")
    assert '"fine"' in first[3]
    assert "steady" not in comment
    assert "@everyone" not in comment.replace("@\u200beveryone", "")
    assert "exit code 1" in comment


def test_without_a_baseline_what_fails_and_what_is_undecided_is_listed(project: Project) -> None:
    project.config("")
    project.scenarios(SUITE)
    version(project, "as-bad", lost="perhaps")
    project.run("--report", "comment=c.md")
    comment = (project.root / "c.md").read_text("utf-8")
    assert listed(comment) == {"Failing": ["as-bad"], "Undecided": ["perhaps"]}
    assert "No baseline" in comment
    version(project)
    assert project.run("--report", "comment=c.md").code == 0
    comment = (project.root / "c.md").read_text("utf-8")
    assert "### ✅ " in comment
    assert groups(comment) == {}


# ── posting it ───────────────────────────────────────────────────────────────────────────────────


BOT = "github-actions[bot]"


class Comments:
    """What GitHub and GitLab keep, as far as it matters here; pages of a hundred. ``bodies`` are of others.
    ``me``: what the server says of the token's owner (``None``: it is an app's); ``viewer``: what GraphQL
    says."""

    def __init__(self, *bodies: str, refuses: int = 0, me: str | None = "me", viewer: str = "") -> None:
        self.kept = {str(number): body for number, body in enumerate(bodies, start=1)}
        self.authors = dict.fromkeys(self.kept, "stranger")
        self.refuses = refuses
        self.me, self.viewer = me, viewer
        self.tokens: set[str] = set()

    def __call__(self, request: Request) -> Behaviour:
        self.tokens.add(request.headers.get("authorization", request.headers.get("private-token", "")))
        if request.path == "/user":
            user = {"login": self.me, "username": self.me}
            return respond_json(user) if self.me else respond_json({"message": "an integration"}, status=403)
        if request.path == "/graphql":
            return respond_json({"data": {"viewer": {"login": self.viewer}}})
        if request.method == "GET":
            page = int(re.findall(r"[?&]page=(\d+)", request.path)[0]) - 1
            listed = [
                {"id": int(n), "body": body, "user": {"login": who}, "author": {"username": who}}
                for (n, body), who in zip(self.kept.items(), self.authors.values(), strict=True)
            ]
            return respond_json(listed[page * 100 : page * 100 + 100])
        if self.refuses:
            return respond_json({"message": "no"}, status=self.refuses)
        body = request.json["body"]
        number = request.path.rpartition("/")[2] if request.method != "POST" else str(len(self.kept) + 1)
        self.kept[number] = body
        self.authors.setdefault(number, self.me or self.viewer or BOT)
        return respond_json({"id": int(number)})


def github(address: str, project: Project) -> dict[str, str]:
    return {
        "GITHUB_ACTIONS": "true", "GITHUB_API_URL": address, "GITHUB_REPOSITORY": "me/bot",
        "GITHUB_REF": "refs/pull/7/merge", "GITHUB_TOKEN": "secret-1",
    }  # fmt: skip


def gitlab(address: str, project: Project) -> dict[str, str]:
    return {
        "GITLAB_CI": "true", "CI_API_V4_URL": address, "CI_PROJECT_ID": "12", "CI_MERGE_REQUEST_IID": "7",
        "GITLAB_TOKEN": "secret-1",
    }  # fmt: skip


@pytest.mark.parametrize("where", [github, gitlab])
def test_one_comment_is_posted_and_then_replaced(where: Any, project: Project) -> None:
    others = [f"talk {number}" for number in range(130)]  # more than a page
    kept = Comments(*others)
    with LocalServer(answer(kept)) as server:
        env = where(server.address, project)
        for text in (f"{MARKER}\n\nfirst", f"{MARKER}\n\nsecond"):
            project.write("c.md", text)
            assert project.call("comment", "c.md", env=env).code == 0
            assert [body for body in kept.kept.values() if body.startswith(MARKER)] == [text]
        paths = {request.path.partition("?")[0] for request in server.requests}
    assert len(kept.kept) == 131
    assert len(kept.tokens) == 1
    expected = "/repos/me/bot/issues/7/comments" if where is github else "/projects/12/merge_requests/7/notes"
    assert expected in paths


@pytest.mark.parametrize("where", [github, gitlab])
def test_a_strangers_comment_with_our_mark_is_not_taken(where: Any, project: Project) -> None:
    forged = f"{MARKER}\n\nof a stranger, who may edit it later"
    for me, viewer in (("me", ""), (None, "own-app[bot]"), (None, "")):
        kept = Comments(forged, me=me, viewer=viewer)
        with LocalServer(answer(kept)) as server:
            env = {**where(server.address, project), "GITHUB_GRAPHQL_URL": f"{server.address}/graphql"}
            for text in ("first", "second"):
                project.write("c.md", f"{MARKER}\n\n{text}")
                assert project.call("comment", "c.md", env=env).code == 0
        assert kept.kept.pop("1") == forged
        # The second takes the place of the first, unless it is not known who posts.
        texts = ["first", "second"] if where is gitlab and me is None else ["second"]
        assert list(kept.kept.values()) == [f"{MARKER}\n\n{text}" for text in texts]


def test_a_redirect_is_not_followed(project: Project) -> None:
    project.write("c.md", f"{MARKER}\n\ntext")
    elsewhere = Comments()
    with LocalServer(answer(elsewhere)) as other:
        for status in (301, 302, 307, 308):

            def away(request: Request, status: int = status) -> Behaviour:
                return respond("", status=status, headers={"Location": f"{other.address}{request.path}"})

            with LocalServer(answer(away)) as server:
                done = project.call("comment", "c.md", env=github(server.address, project))
                assert (done.code, f"HTTP {status}" in done.err) == (3, True)
        assert other.requests == []
    assert elsewhere.kept == {}


def test_what_is_not_taken_is_reported_and_is_no_verdict(project: Project) -> None:
    project.write("c.md", f"{MARKER}\n\ntext")
    with LocalServer(answer(Comments(refuses=403))) as server:
        done = project.call("comment", "c.md", env=github(server.address, project))
        assert (done.code, "HTTP 403" in done.err, "fork" in done.err) == (3, True, True)
    nowhere = github("http://127.0.0.1:1", project)
    assert project.call("comment", "c.md", env=nowhere).code == 3
    assert project.call("comment", "c.md").code == 0  # a job without a pull request
    done = project.call("comment", "c.md", env={**nowhere, "GITHUB_TOKEN": ""})
    assert (done.code, "GITHUB_TOKEN" in done.err) == (2, True)
    project.write("other.md", "# Report\n")
    for name in ("none.md", "other.md"):
        done = project.call("comment", name)
        assert (done.code, name in done.err) == (2, True)


def test_a_very_long_comment_is_cut_at_a_line(project: Project) -> None:
    project.write("c.md", MARKER + "\n" + "one line of many\n" * 8000)
    kept = Comments()
    with LocalServer(answer(kept)) as server:
        assert project.call("comment", "c.md", env=github(server.address, project)).code == 0
    (body,) = kept.kept.values()
    assert len(body) < 65_536
    assert body.rpartition("\n\n… ")[0].endswith("\none line of many")


# ── the templates, step by step ──────────────────────────────────────────────────────────────────


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(project: Project) -> Project:
    """Main has a good agent; the branch of a pull request, checked out as CI does, breaks one scenario."""
    if not shutil.which("git") or not shutil.which("bash"):
        pytest.skip("needs git and bash")
    project.config("")
    project.scenarios(SUITE)
    version(project)
    project.write(".gitignore", ".agenteval/\n__pycache__/\nout\n")
    git(project.root, "init", "-q", "-b", "main")
    git(project.root, "add", "-A")
    git(project.root, "commit", "-q", "-m", "good")
    git(project.root, "update-ref", "refs/remotes/origin/main", "HEAD")
    return project


def branch(project: Project) -> None:
    git(project.root, "checkout", "-q", "-b", "change")
    version(project, "broken-now")
    git(project.root, "commit", "-q", "-am", "worse")


def bash(project: Project, script: str, env: dict[str, str]) -> Done:
    program = project.root.parent / "bin"
    program.mkdir(exist_ok=True)
    shim = program / "agenteval"
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m agenteval "$@"\n', encoding="utf-8")
    shim.chmod(0o755)
    full = environment({"PATH": f"{program}{os.pathsep}{os.environ['PATH']}", **env})
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=project.root, env=full, capture_output=True, text=True, timeout=HANG_S, check=False,
    )  # fmt: skip
    return Done(done.returncode, done.stdout, done.stderr)


def steps(event: str) -> Iterator[tuple[str, dict[str, str]]]:
    """The scripts of the action that this event runs, with their own variables filled in as GitHub does."""
    action = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    known = {
        "github.base_ref": "main" if event == "pull_request" else "",
        "inputs.arguments": "", "inputs.baseline": "merge-base", "inputs.token": "secret-1",
        "github.event_name == 'pull_request'": str(event == "pull_request").lower(),
        "steps.run.outputs.exit-code": "",
    }  # fmt: skip
    for step in action["runs"]["steps"]:
        is_skipped = "install" in step.get("if", "") or (
            "pull_request" in step.get("if", "") and event == "push"
        )
        if "run" in step and not is_skipped:
            own = {
                name: re.sub(r"\$\{\{ (.*?) \}\}", lambda m: known[m[1]], value)
                for name, value in step.get("env", {}).items()
            }
            yield step["run"], own


def test_the_action_keeps_mains_run_and_comments_on_a_pull_request(repository: Project) -> None:
    kept, outputs = Comments(), repository.root / "out"
    with LocalServer(answer(kept)) as server:
        for event in ("push", "pull_request"):
            if event == "pull_request":
                branch(repository)
            outputs.write_text("", "utf-8")
            env = {**github(server.address, repository), "GITHUB_OUTPUT": str(outputs)}
            env |= {"GITHUB_BASE_REF": "main"} if event == "pull_request" else {}
            *before, last = steps(event)
            for script, own in before:
                done = bash(repository, script, {**env, **own})
                assert done.code == 0, done.all  # the verdict is the last step's
            written = dict(line.split("=") for line in outputs.read_text("utf-8").splitlines())
            assert written["exit-code"] == ("1" if event == "pull_request" else "0")
            assert bash(repository, last[0], {"CODE": written["exit-code"]}).code == int(written["exit-code"])
    assert written["commit"] == git(repository.root, "rev-parse", "main")
    (body,) = kept.kept.values()
    assert groups(body)["Newly failing"][0][1:3] == ["8/8", "0/8"]
    assert "significant" in body
    assert (repository.root / ".agenteval/junit.xml").is_file()


def test_gitlabs_job_does_the_same(repository: Project) -> None:
    job = yaml.safe_load((ROOT / "integrations/gitlab-ci.yml").read_text("utf-8"))["agenteval"]
    script = "\n".join(line for line in job["script"] if not line.startswith("pip "))
    kept = Comments()
    with LocalServer(answer(kept)) as server:
        assert bash(repository, script, {"GITLAB_CI": "true"}).code == 0
        branch(repository)
        env = {**gitlab(server.address, repository), "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main"}
        done = bash(repository, script, env)
    assert done.code == 1, done.all
    (body,) = kept.kept.values()
    assert listed(body)["Newly failing"] == ["broken-now"]


def test_the_templates_are_yaml_and_name_what_is_there() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    used = set(re.findall(r"inputs\.([\w-]+)", json.dumps(action["runs"])))
    assert used == set(action["inputs"])
    uploaded = action["runs"]["steps"][-2]["with"]["path"]
    assert uploaded.count("runs") == 1
    assert "inputs.upload-journals == 'true' && format('{0}/.agenteval/runs'" in uploaded
    ids = {step["id"] for step in action["runs"]["steps"] if "id" in step}
    assert set(re.findall(r"steps\.(\w+)\.", json.dumps(action))) <= ids
