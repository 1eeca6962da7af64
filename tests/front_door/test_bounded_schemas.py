"""What an agent writes makes no check of a JSON Schema endless, and breaks none."""

from __future__ import annotations

import pytest

from tests.support.kit import Project

NODE = "{properties: {next: {allOf: [{$ref: '#'}, {$ref: '#'}]}}}"


MULTIPLE = "{properties: {n: {multipleOf: 2.5}}}"


@pytest.mark.parametrize(
    ("answer", "schema", "code"),
    [
        pytest.param("""'{"next": ' * 40 + '1' + '}' * 40""", NODE, 3, id="doubles with each of many levels"),
        pytest.param("""'{"next": ' * 4 + '1' + '}' * 4""", NODE, 0, id="few levels"),
        # A number too large for a float is held against its schema.
        pytest.param("""'{"n": 1' + '0' * 400 + '}'""", MULTIPLE, 0, id="a large multiple"),
        pytest.param("""'{"n": 1' + '0' * 399 + '1}'""", MULTIPLE, 1, id="no multiple, and large"),
    ],
)
def test_a_schema_decides_or_is_left_undecided(project: Project, answer: str, schema: str, code: int) -> None:
    project.config("metrics: []")
    project.agent(f"def agent(messages):\n    return {answer}\n")
    project.scenarios(f"{{id: answer, turns: [Hi], expect: {{output: {{json_schema: {schema}}}}}}}")
    assert project.run().code == code
    checks = {check["passed"] for check in project.sample()["checks"] if "json_schema" in check["name"]}
    assert checks == {{0: True, 1: False, 3: None}[code]}
