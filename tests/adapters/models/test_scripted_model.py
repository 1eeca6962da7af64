"""The scripted model: which reply is given, and what is wrong with its file."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest
from pydantic import BaseModel

from agenteval.adapters.models import ModelResources, make_model
from agenteval.adapters.models.capabilities import Capabilities
from agenteval.adapters.models.pool import ModelPool
from agenteval.adapters.models.scripted_model import ScriptedModel
from agenteval.core.config import ModelConfig
from agenteval.core.errors import AuthorError, UnreadableReplyError
from agenteval.core.protocols import ModelReply, ModelRequest, Subject
from agenteval.core.trajectory import Usage


class Score(BaseModel):
    evidence: str
    reason: str
    score: float | None


class Label(BaseModel):
    evidence: str
    reason: str
    label: Literal["no failure", "repetition"]


class User(BaseModel):
    message: str
    done: bool
    reason: str


class Groups(BaseModel):
    issues: list[dict[str, Any]]


SCRIPT = """
    replies:
      - when: {role: judge, metric: helpfulness, text: "(?i)error|sorry"}
        reply: {evidence: "sorry", reason: "r", score: 2, mood: bad}
      - when: {role: judge, metric: helpfulness}
        reply: {evidence: "", reason: "r", score: 4}
      - when: {role: judge, metric: agent_behavior_failure}
        reply: {evidence: "", reason: "r", label: no failure}
      - when: {role: user, scenario: book, turn: 0}
        reply: {message: Hello., done: false, reason: "r"}
      - when: {role: user, turn: 1}
        reply: {message: Thanks., done: true}
      - when: {role: dedup}
        reply: {issues: []}
    """


def script(folder: Path, text: str = SCRIPT) -> ScriptedModel:
    (folder / "judge.yaml").write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
    return ScriptedModel("judge.yaml", root=folder)


def ask(model: ScriptedModel, role: str, reply: type[BaseModel], **subject: Any) -> ModelReply:
    return anyio.run(model.complete, ModelRequest(role, "s", "p", reply, Subject(**subject)))


def test_the_first_rule_that_fits_answers(tmp_path: Path) -> None:
    model = script(tmp_path)
    low = ask(model, "judge", Score, metric="helpfulness", text="Sorry, no.")
    high = ask(model, "judge", Score, metric="helpfulness", text="Here you are.")
    assert (low.value, high.value) == (
        Score(evidence="sorry", reason="r", score=2),
        Score(evidence="", reason="r", score=4),
    )
    label: Any = ask(model, "judge", Label, metric="agent_behavior_failure").value
    assert label.label == "no failure"
    assert ask(model, "user", User, scenario="book", turn=0).value == User(
        message="Hello.", done=False, reason="r"
    )
    assert ask(model, "user", User, scenario="other", turn=1).value == User(
        message="Thanks.", done=True, reason=""
    )
    assert ask(model, "dedup", Groups, text="f1").value == Groups(issues=[])


def test_a_reply_says_that_no_model_was_called(tmp_path: Path) -> None:
    reply = ask(script(tmp_path), "dedup", Groups)
    assert (reply.scripted, reply.model, reply.usage) == (True, "scripted/judge.yaml", Usage(calls=1))


def test_no_rule_fits(tmp_path: Path) -> None:
    with pytest.raises(AuthorError) as caught:
        ask(script(tmp_path), "judge", Score, scenario="book", turn=3, metric="coherence", text="It\nis so.")
    told = str(caught.value)
    assert "role: judge, scenario: book, turn: 3, metric: coherence" in told
    assert '"It is so."' in told
    assert "- when: {role: judge, metric: coherence}" in told
    assert "reply: {evidence:" in told
    assert told.startswith("judge.yaml: ")
    # What it says to add is YAML that answers the request.
    added = told.partition("\n")[2].replace("…", "x")
    extended = script(tmp_path, "replies:\n" + added)
    assert ask(extended, "judge", Score, metric="coherence").value == Score(evidence="", reason="x", score=4)


@pytest.mark.parametrize(
    "reply",
    [
        "{evidence: a, reason: r, label: splendid}",
        "I am sorry, I cannot.",
        '\'{"evidence": "a", "rea\'',
        "{evidence: a, reason: r, label: null}",
    ],
)
def test_a_bad_answer_can_be_scripted(reply: str, tmp_path: Path) -> None:
    model = script(tmp_path, f"replies:\n  - reply: {reply}\n")
    with pytest.raises(UnreadableReplyError) as caught:
        ask(model, "judge", Label)
    assert "judge.yaml:2" in str(caught.value)
    assert caught.value.raw
    assert caught.value.usage == Usage(calls=1)


def test_a_text_is_read_as_a_models_would_be(tmp_path: Path) -> None:
    model = script(
        tmp_path,
        """
        replies:
          - reply: |
              Sure! ```json
              {"evidence": "", "reason": "r", "score": 3}
              ```
        """,
    )
    value: Any = ask(model, "judge", Score).value
    assert value.score == 3


def test_a_reply_without_a_needed_key_is_the_authors_mistake(tmp_path: Path) -> None:
    with pytest.raises(AuthorError, match=r"judge\.yaml:\d+:\d+: the reply has no `label`"):
        ask(script(tmp_path), "judge", Label, metric="helpfulness")


WRONG = {
    "no list": ("reply: {}", "judge.yaml:1:1: a scripted model must be a list of replies"),
    "empty": ("", "judge.yaml: the file is empty"),
    "unknown key": ("replies: []\nrepleis: []", "2:1: unknown key 'repleis' — did you mean 'replies'?"),
    "unknown condition": (
        "replies:\n  - when: {role: judge, metrc: x}\n    reply: {evidence: a, reason: r}",
        "2:25: unknown key 'metrc' — did you mean 'metric'?",
    ),
    "unknown key of a rule": ("replies:\n  - wen: {role: user}\n    reply: {}", "did you mean 'when'?"),
    "unknown role": (
        "replies:\n  - {when: {role: jugde}, reply: {}}",
        "unknown role 'jugde' — did you mean 'judge'?",
    ),
    "turn": ("replies:\n  - {when: {turn: first}, reply: {}}", "`turn` must be a whole number, at least 0"),
    "metric": ("replies:\n  - {when: {metric: 1}, reply: {}}", "`metric` must be a string"),
    "text": ("replies:\n  - {when: {text: '('}, reply: {}}", "`text` is not a valid regular expression"),
    "when": ("replies:\n  - {when: judge, reply: {}}", "`when` must be a mapping"),
    "an entry": ("replies:\n  - hello", "a reply must be a mapping"),
    "no reply": ("replies:\n  - when: {role: user}", "`reply` is missing"),
    "no evidence": (
        "replies:\n  - {when: {role: judge}, reply: {reason: r, score: 1}}",
        "`evidence` is missing in a judge reply",
    ),
    "reason is no text": (
        "replies:\n  - {when: {role: judge}, reply: {evidence: a, reason: 1}}",
        "`reason` must be a string — put it in quotes",
    ),
    "no YAML": ("replies: [", "judge.yaml:"),
}


@pytest.mark.parametrize(("text", "words"), WRONG.values(), ids=WRONG)
def test_mistakes_in_the_file_are_told_with_their_place(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(AuthorError) as caught:
        script(tmp_path, text)
    assert words in str(caught.value)


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(AuthorError) as caught:
        script(tmp_path, "replies:\n  - {when: {role: x}, reply: {}}\n  - {when: {text: '['}, reply: {}}")
    assert len(caught.value.problems) == 2


def test_the_file_starts_at_the_configurations_folder(tmp_path: Path) -> None:
    script(tmp_path)
    shared = ModelResources(ModelPool(1), Capabilities(), print)
    config = ModelConfig(model="scripted/judge.yaml")
    assert make_model(config, role="judge", shared=shared, environ={}, root=tmp_path)
    with pytest.raises(AuthorError, match="cannot be read"):
        make_model(config, role="judge", shared=shared, environ={}, root=tmp_path / "elsewhere")
