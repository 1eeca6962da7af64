"""What an agent writes makes no check of a JSON Schema endless, and breaks none."""

from __future__ import annotations

from tests.support.kit import Project

NODE = "{properties: {next: {allOf: [{$ref: '#'}, {$ref: '#'}]}}}"


def answers(project: Project, code: str, schema: str) -> int:
    project.config("metrics: []")
    project.agent(f"def agent(messages):\n    return {code}\n")
    project.scenarios(f"{{id: answer, turns: [Hi], expect: {{output: {{json_schema: {schema}}}}}}}")
    return project.run().code


def test_an_answer_that_doubles_with_each_level_is_undecided(project: Project) -> None:
    assert answers(project, """'{"next": ' * 40 + '1' + '}' * 40""", NODE) == 3
    assert "the schema or the answer is nested too deeply" in str(project.results())


def test_an_answer_of_few_levels_is_green(project: Project) -> None:
    assert answers(project, """'{"next": ' * 4 + '1' + '}' * 4""", NODE) == 0


def test_a_number_too_large_for_a_float_is_held_against_its_schema(project: Project) -> None:
    schema = "{properties: {n: {multipleOf: 2.5}}}"
    assert answers(project, """'{"n": 1' + '0' * 400 + '}'""", schema) == 0
    assert answers(project, """'{"n": 1' + '0' * 399 + '1}'""", schema) == 1
