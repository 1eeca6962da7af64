"""Providers of other packages: what stands under `extra` is checked by their own model, if they have one."""

from __future__ import annotations

import pytest

from tests.support.kit import Project

PACKAGE = """
from typing import Annotated

from pydantic import BaseModel, Field

from agenteval.core.protocols import ModelReply
from agenteval.core.providers import Provider
from agenteval.core.trajectory import Usage


class Options(BaseModel):
    depth: Annotated[int, Field(ge=1)] = 1
    score: float


class Oracle:
    def __init__(self, options):
        self.options = options

    async def complete(self, request):
        made = {"evidence": "", "reason": "the oracle", "score": self.options.score}
        return ModelReply(request.reply.model_validate(made), Usage(), "oracle")

    async def aclose(self):
        pass


def make(config, *, options, **_more):
    return Oracle(options)


PROVIDER = Provider(make=make, options=Options)
"""
SCENARIO = "id: s\nturns: [hello]\nthresholds: {verbosity: 3}\n"


@pytest.fixture
def installed(project: Project) -> Project:
    project.write("oracle.py", PACKAGE)
    project.write("oracle-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: oracle\nVersion: 1.0\n")
    entry = "[agenteval.models]\noracle = oracle:PROVIDER\nbroken = oracle:nothing\n"
    project.write("oracle-1.0.dist-info/entry_points.txt", entry)
    project.agent("def agent(messages):\n    return 'Hello.'\n")
    project.scenarios(SCENARIO)
    return project


@pytest.mark.parametrize(("score", "code"), [(4, 0), (2, 1)])
def test_a_provider_with_options_judges(installed: Project, score: int, code: int) -> None:
    installed.config(
        f"models: {{default: {{model: oracle/x, extra: {{score: {score}}}}}}}\nmetrics: [verbosity]\n"
    )
    done = installed.run()
    assert done.code == code, done.all


@pytest.mark.parametrize(
    ("entry", "place", "facts"),
    [
        ("{model: oracle/x, extra: {scor: 4, score: 4}}", "2:45", ["'scor'", "'score'"]),
        ("{model: oracle/x, extra: {score: 4, depth: 0}}", "2:55", ["models.default.extra.depth", "0"]),
        ("{model: oracle/x, extra: {depth: 2}}", "2:", ["models.default.extra", "score"]),
        ("broken/x", "2:10", ["'broken'", "oracle:nothing"]),  # it cannot be loaded
    ],
)
def test_a_wrong_option_or_provider_is_refused_at_its_place(
    installed: Project, entry: str, place: str, facts: list[str]
) -> None:
    installed.config(f"models: {{default: {entry}}}\nmetrics: [verbosity]\n")
    installed.run().refuses(f"agenteval.yaml:{place}".rstrip(":"), *facts)
