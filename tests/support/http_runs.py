"""One run with an agent behind HTTP for each of many rows: what each was asked, and how its sample ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from tests.support.kit import Done, Project
from tests.support.local_servers import Behaviour, LocalServer, Request, answer

SAYS_HELLO = "turns: [hi], expect: {output: {contains: [hello]}}"


@dataclass(frozen=True)
class HttpAgent:
    """``options``: of the agent, beside its endpoint; ``AT`` in them is its path on the server. Each request
    takes the next of ``behaviours``; the last serves all that follow. ``endpoint``: where it is instead;
    ``PORT`` in it is the server's."""

    options: str
    behaviours: tuple[Behaviour, ...] = ()
    path: str = "/x"
    scenario: str = SAYS_HELLO
    endpoint: str = ""


class HttpRun(NamedTuple):
    done: Done
    samples: dict[str, Any]
    asked: dict[str, list[Request]]
    project: Project


def run_http_agents(project: Project, rows: Mapping[str, HttpAgent], more: str = "") -> HttpRun:
    names = list(rows)
    asked: dict[str, list[Request]] = {name: [] for name in names}

    def serve(request: Request) -> Behaviour:
        name = names[int(request.path.split("/")[1])]
        asked[name].append(request)
        behaviours = rows[name].behaviours
        return behaviours[min(len(asked[name]), len(behaviours)) - 1]

    with LocalServer(answer(serve)) as server:
        agents, scenarios = [], []
        for number, (name, row) in enumerate(rows.items()):
            url = row.endpoint.replace("PORT", str(server.port)) or f"{server.address}/{number}{row.path}"
            options = row.options.replace("AT", f"/{number}")
            agents.append(f"  a{number}: {{endpoint: '{url}'{options and ', '}{options}}}\n")
            scenarios.append(f"- {{id: '{name}', agent: a{number}, {row.scenario}}}\n")
        project.write("agenteval.yaml", f"metrics: []\n{more}agents:\n{''.join(agents)}")
        project.scenarios("scenarios:\n" + "".join(scenarios))
        done = project.run()
    assert not server.errors, server.errors
    assert (project.root / "results.json").exists(), done.all
    samples = {each["id"]: each["samples"][0] for each in project.results()["scenarios"]}
    return HttpRun(done, samples, asked, project)


def error_of(sample: Mapping[str, Any]) -> str:
    """The error of its last turn."""
    return str(sample["turns"][-1].get("error", ""))
