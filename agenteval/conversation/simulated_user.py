"""A simulated user (user simulator): a language model that plays a user with a persona (user profile),
a user goal and known facts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, WithJsonSchema

from agenteval.conversation.user_faults import REPEATABLE_ANSWERS, find_missing_fact, find_user_fault
from agenteval.conversation.user_noise import is_empty_message
from agenteval.core.errors import MissingFactError, SimulatorError, UnreadableReplyError
from agenteval.core.folding import fold
from agenteval.core.protocols import ChatModel, ModelRequest, Subject, UserMove
from agenteval.core.reasoning import blank_reasoning
from agenteval.core.scenario import Sample, Scenario
from agenteval.core.text_matching import mentions
from agenteval.core.trajectory import Step, StopReason, Trajectory, Usage
from agenteval.files.prompt_templates import RenderedPrompt, fence
from agenteval.files.prompts import SHIPPED_PROMPTS, Prompt

ENOUGH_BYTES = 8
"""The minimum length, in bytes, of a passage that permits a user to make things up. A shorter passage would
not be meaningful."""
ATTEMPTS = 2
"""The number of attempts at a message. A message that no real user would write is requested once more; after
a second failure, the sample is inconclusive."""


def _text(value: Any) -> Any:
    """Convert null to an empty string. Some models write null if there is nothing to report."""
    return "" if value is None else value


_Text = Annotated[str, BeforeValidator(_text), WithJsonSchema({"type": "string"})]


class OngoingUserReply(BaseModel):
    """The model's answer while the conversation cannot end, in which the reason precedes the fields that
    depend on it. ``unknown`` names what the agent asked for but the user was not told. ``invented`` contains
    what the user made up because the passage ``allowed_by`` in its profile or goal permits it."""

    reason: _Text = ""
    unknown: _Text = ""
    invented: _Text = ""
    allowed_by: _Text = ""
    message: _Text


class UserReply(OngoingUserReply):
    """The model's answer. ``done`` is a separate field, so that no word in a message can end a
    conversation."""

    done: bool


_GOES_ON = (
    "\n\nThe conversation cannot end yet, whatever stands above about its end: you still have something to"
    ' say or to ask. This time your answer has no "done", and "message" is not empty.'
)
"""The end of the prompt while the conversation has had fewer turns than ``min_turns``."""


class SimulatedUser:
    """Plays the user of one sample with a language model. The model receives a flat transcript rather than
    chat roles, because a model in the role "assistant" speaks like an assistant, not like a user. The model
    also decides when the conversation is over (the stop condition), because its goal is reached or it gives
    up (``StopReason.USER_DONE``).

    The user's message is checked in code before the agent sees it. Raises ``SimulatorError`` if two attempts
    at a message are not what a user would write or if the model's answer contains no message. Raises
    ``MissingFactError`` if the agent asks for a fact that the checks need but no one can know. Any other
    model error is propagated. ``policy`` is the agent's policy. If ``agent_has_tools`` is true, the agent may
    have tools that the scenario does not declare."""

    def __init__(
        self,
        sample: Sample,
        model: ChatModel,
        *,
        now: str | None = None,
        prompt: Prompt | None = None,
        policy: str = "",
        agent_has_tools: bool = False,
    ) -> None:
        self._policy = policy
        self._agent_has_tools = agent_has_tools
        self._sample = sample
        self._model = model
        self._now = now
        self._prompt = prompt or SHIPPED_PROMPTS.prompt("simulated_user")

    async def next(self, trajectory: Trajectory) -> UserMove:
        usage, fault, message = Usage(), "", ""
        so_far = self._with_history(trajectory)
        last = so_far.turns[-1].answer if so_far.turns else ""
        for _ in range(ATTEMPTS):
            try:
                reply = await self._model.complete(self._request(trajectory, fault))
            except UnreadableReplyError as error:
                spent = usage + (error.usage or Usage())
                raise SimulatorError(
                    f"the simulated user: {error}", rejected_text=error.raw, usage=spent
                ) from error
            usage = usage + reply.usage
            move = UserReply.model_validate({"done": False, **reply.value.model_dump()})
            if self._is_bound_to_go_on(trajectory):  # a model of a plugin may know only the usual form
                move = move.model_copy(update={"done": False})
            message = move.message.strip()
            if is_empty_message(message, answer=last, done=move.done, short_answers=REPEATABLE_ANSWERS):
                message = ""
            before = fault
            fault = find_user_fault(
                message,
                self._sample.scenario,
                so_far,
                done=move.done,
                now=self._now or "",
                reason=move.reason,
                invented=invented_by(move, self._sample.scenario),
            )
            if not fault:
                self._require_known_fact(move.unknown, so_far, usage)
                if move.done and trajectory.turns and is_farewell(message, last):
                    message = ""
                stop = StopReason.USER_DONE if move.done else None
                return UserMove(message or None, stop=stop, usage=usage, model=reply.model, fault=before)
        raise SimulatorError(
            f"the simulated user {fault} ({ATTEMPTS} attempts)", rejected_text=message, usage=usage
        )

    def _with_history(self, trajectory: Trajectory) -> Trajectory:
        """Return the conversation as the user knows it, with what was said before it."""
        history = self._sample.scenario.history_turns
        return (
            trajectory.model_copy(update={"turns": (*history, *trajectory.turns)}) if history else trajectory
        )

    def _is_bound_to_go_on(self, trajectory: Trajectory) -> bool:
        return len(trajectory.turns) < self._sample.scenario.min_turns

    def _require_known_fact(self, unknown: str, trajectory: Trajectory, usage: Usage) -> None:
        """Raise ``MissingFactError`` if a check needs a fact that was not given to the user, because that is
        the author's mistake. If no check needs the fact, the user says that it does not know and continues.
        """
        if not unknown.strip() or self._agent_has_tools:
            return
        if needed := find_missing_fact(unknown, self._sample.scenario, trajectory, policy=self._policy):
            raise MissingFactError(needed, usage=usage)

    def _request(self, trajectory: Trajectory, fault: str) -> ModelRequest:
        scenario = self._sample.scenario
        goes_on = self._is_bound_to_go_on(trajectory)
        form = OngoingUserReply if goes_on else UserReply
        so_far = self._with_history(trajectory)
        rendered = render_user_prompt(scenario, so_far, self._prompt, now=self._now, fault=fault)
        prompt = rendered.prompt + (_GOES_ON if goes_on else "")
        last = so_far.turns[-1].answer if so_far.turns else ""
        subject = Subject(
            scenario=scenario.id, turn=len(trajectory.turns), text=last, epoch=self._sample.key.epoch
        )
        return ModelRequest("user", rendered.system, prompt, form, subject, states_form=True)


def invented_by(move: UserReply, scenario: Scenario) -> str:
    """Return the made-up detail if the user's profile, goal or knowledge contains the words that are said to
    allow it. Otherwise, return an empty string."""
    words = fold(move.allowed_by)
    sources = (scenario.profile, scenario.goal, *scenario.knowledge)
    is_allowed = len(words.encode()) >= ENOUGH_BYTES and any(
        mentions(text, move.allowed_by) for text in sources
    )
    return move.invented if is_allowed else ""


def render_user_prompt(
    scenario: Scenario, trajectory: Trajectory, prompt: Prompt, *, now: str | None = None, fault: str = ""
) -> RenderedPrompt:
    """Render the user prompt, which asks the model for the simulated user's next message. ``fault`` is the
    problem with the previous attempt."""
    transcript = format_transcript(trajectory)
    if fault:
        transcript += f"\n\nYour last attempt was refused: as the user you {fault}. Try again, as the user."
    return prompt.render(
        profile=scenario.profile or "Nothing particular.",
        goal=scenario.goal,
        knowledge=format_list(scenario.knowledge),
        beliefs=format_list(format_beliefs(scenario)),
        now=now or "Not given.",
        transcript=transcript,
    )


_HELD = {
    "loosely": "you are not sure of it, and give it up as soon as the agent says otherwise",
    "normally": "you give it up when the agent gives you a reason or shows you where it stands",
    "firmly": "you are sure of it, and hold on to it whatever the agent says",
}


def format_beliefs(scenario: Scenario) -> Iterable[str]:
    """Yield each belief with the condition under which the user gives it up."""
    return (f"{each.belief} ({_HELD[each.held]})" for each in scenario.beliefs)


def format_list(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items) or "Nothing beyond this."


def format_transcript(trajectory: Trajectory) -> str:
    """Format the messages from both sides as text. The user sees only the agent's messages, not its tool
    calls."""
    if not trajectory.turns:
        return "(Nothing has been said yet: you begin.)"
    return "\n\n".join(
        f"You said:\n{fence(turn.user)}\n\nThe agent said:\n{fence(_agent_text(turn.steps))}"
        for turn in trajectory.turns
    )


_THANKS = frozenset((
    *("thanks", "thank", "thx", "cheers", "bye", "goodbye"),
    *("danke", "dank", "tschüss", "merci", "gracias", "grazie", "ciao"),
))  # fmt: skip
_COURTESY_FILLERS = frozenset((
    *("you", "so", "very", "much", "many", "a", "lot", "again", "for", "your", "the", "help", "and", "now"),
    "then",
    *("that", "thats", "is", "s", "all", "everything", "vielen", "beaucoup", "muchas", "mille"),
))  # fmt: skip
_PLEASED = frozenset((
    *("ok", "okay", "alright", "good", "great", "perfect", "wonderful", "excellent", "lovely", "nice"),
    *("have", "day", "evening", "weekend", "too"),
))  # fmt: skip


def is_farewell(text: str, answer: str) -> bool:
    """Check whether a final message merely expresses thanks or says goodbye and needs no answer, that is,
    whether every word is a courtesy. If the agent's ``answer`` contains a question, a word that may mean yes
    does not count as a courtesy."""
    words = re.findall(r"\w+", text.casefold())
    if "?" in text or not _THANKS.intersection(words):
        return False
    return _THANKS.union(_COURTESY_FILLERS, () if "?" in answer else _PLEASED).issuperset(words)


def _agent_text(steps: Iterable[Step]) -> str:
    texts = (blank_reasoning(step.text or "").strip() for step in steps)
    return "\n".join(filter(None, texts)) or "(nothing)"
