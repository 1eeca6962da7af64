"""A simulated user (user simulator): a language model that plays a user with a persona (user profile),
a user goal and known facts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, WithJsonSchema

from agenteval.conversation.user_faults import REPEATABLE_ANSWERS, find_missing_fact, find_user_fault
from agenteval.conversation.user_noise import is_empty_message
from agenteval.core.call_outcomes import format_user_call, json_key
from agenteval.core.errors import MissingFactError, SimulatorError, UnreadableReplyError
from agenteval.core.folding import fold
from agenteval.core.json_text import to_json
from agenteval.core.protocols import CallUserTool, ChatModel, ModelRequest, Subject, UserMove
from agenteval.core.reasoning import blank_reasoning
from agenteval.core.scenario import Sample, Scenario, Tool
from agenteval.core.text_matching import mentions
from agenteval.core.trajectory import Step, StopReason, ToolCall, Trajectory, Turn, Usage
from agenteval.files.prompt_templates import RenderedPrompt, fence
from agenteval.files.prompts import SHIPPED_PROMPTS, USER_TOOLS, Prompt
from agenteval.messages.chat import read_arguments

ENOUGH_BYTES = 8
"""The minimum length, in bytes, of a passage that permits a user to make things up. A shorter passage would
not be meaningful."""
ATTEMPTS = 2
"""The number of attempts at a message. A message that no real user would write is requested once more; after
a second failure, the sample is inconclusive."""
MAX_CALL_ROUNDS = 5
"""The number of answers with calls to the user's tools, before each message."""
MAX_CALLS = 20
"""The number of calls in one answer that are made. The model is told of those that are not."""


def _text(value: Any) -> Any:
    """Convert null to an empty string. Some models write null if there is nothing to report."""
    return "" if value is None else value


_Text = Annotated[str, BeforeValidator(_text), WithJsonSchema({"type": "string"})]


def _arguments_text(value: Any) -> Any:
    """Convert arguments that were written as an object to the text that is asked for. Not every server
    accepts a schema that allows any object."""
    return "{}" if value is None else json.dumps(value) if isinstance(value, dict) else value


def _no_calls(value: Any) -> Any:
    return () if value is None else value


class UserToolRequest(BaseModel):
    """A call of one of the user's tools that the model asks for."""

    name: str
    args: Annotated[str, BeforeValidator(_arguments_text), WithJsonSchema({"type": "string"})] = "{}"


class _UserNotes(BaseModel):
    """The beginning of the model's answer: the reason precedes the fields that depend on it. ``unknown``
    names what the agent asked for but the user was not told. ``invented`` contains what the user made up
    because the passage ``allowed_by`` in its profile or goal permits it."""

    reason: _Text = ""
    unknown: _Text = ""
    invented: _Text = ""
    allowed_by: _Text = ""


class _UserNotesWithCalls(_UserNotes):
    calls: Annotated[tuple[UserToolRequest, ...], BeforeValidator(_no_calls)] = ()


class OngoingUserReply(_UserNotes):
    """The model's answer while the conversation cannot end."""

    message: _Text


class UserReply(OngoingUserReply):
    """The model's answer. ``done`` is a separate field, so that no word in a message can end a
    conversation."""

    done: bool


class OngoingActingReply(_UserNotesWithCalls):
    """The model's answer while the user may call tools and the conversation cannot end."""

    message: _Text


class ActingUserReply(OngoingActingReply):
    """The model's answer while the user may call tools."""

    done: bool


_GOES_ON = (
    "\n\nThe conversation cannot end yet, whatever stands above about its end: you still have something to"
    ' say or to ask. This time your answer has no "done", and "message" is not empty.'
)
"""The end of the prompt while the conversation has had fewer turns than ``min_turns``."""
_ACTED_ENOUGH = (
    "\n\nYou have used your tools often enough for now. This time your answer has no"
    ' "calls": write your message.'
)
"""The end of the prompt after ``MAX_CALL_ROUNDS``."""


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
        tools_prompt: Prompt | None = None,
        call_tool: CallUserTool | None = None,
        policy: str = "",
        agent_has_tools: bool = False,
    ) -> None:
        self._policy = policy
        self._agent_has_tools = agent_has_tools
        self._sample = sample
        self._model = model
        self._now = now
        self._prompt = prompt or SHIPPED_PROMPTS.prompt("simulated_user")
        self._tools_prompt = tools_prompt or SHIPPED_PROMPTS.prompt(USER_TOOLS)
        self._call_tool = call_tool

    async def next(self, trajectory: Trajectory) -> UserMove:
        usage, fault, message = Usage(), "", ""
        attempts, calls = 0, _CallsOfMove()
        so_far = self._with_history(trajectory)
        last = so_far.turns[-1].answer if so_far.turns else ""
        while attempts < ATTEMPTS:
            try:
                reply = await self._model.complete(self._request(trajectory, fault, calls))
            except UnreadableReplyError as error:
                spent = usage + (error.usage or Usage())
                raise SimulatorError(
                    f"the simulated user: {error}", rejected_text=error.raw, usage=spent
                ) from error
            usage = usage + reply.usage
            if new := calls.new_requests(getattr(reply.value, "calls", ())) if self._may_call(calls) else ():
                await self._make_calls(new, calls, len(trajectory.turns))
                continue
            attempts += 1
            move = UserReply.model_validate({"done": False, **reply.value.model_dump()})
            if self._is_bound_to_go_on(trajectory):  # a model of a plugin may know only the usual form
                move = move.model_copy(update={"done": False})
            message = move.message.strip()
            if is_empty_message(message, answer=last, done=move.done, short_answers=REPEATABLE_ANSWERS):
                message = ""
            before = fault
            known = _with_open_calls(so_far, calls.made)
            fault = find_user_fault(
                message,
                self._sample.scenario,
                known,
                # The calls belong to the turn of the message, so they cannot end a conversation.
                done=move.done and not calls.made,
                now=self._now or "",
                reason=move.reason,
                invented=invented_by(move, self._sample.scenario),
            )
            if not fault:
                self._require_known_fact(move.unknown, known, usage)
                if move.done and trajectory.turns and not calls.made and is_farewell(message, last):
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

    def _may_call(self, calls: _CallsOfMove) -> bool:
        return bool(self._sample.scenario.user_tools) and calls.rounds < MAX_CALL_ROUNDS

    async def _make_calls(self, requests: Sequence[UserToolRequest], calls: _CallsOfMove, turn: int) -> None:
        assert self._call_tool is not None
        calls.rounds += 1
        for each in requests[:MAX_CALLS]:
            calls.made.append(await self._call_tool(each.name, each.args, turn))
        calls.left_out = len(requests[MAX_CALLS:])

    def _require_known_fact(self, unknown: str, trajectory: Trajectory, usage: Usage) -> None:
        """Raise ``MissingFactError`` if a check needs a fact that was not given to the user, because that is
        the author's mistake. If no check needs the fact, the user says that it does not know and continues.
        """
        if not unknown.strip() or self._agent_has_tools:
            return
        if needed := find_missing_fact(unknown, self._sample.scenario, trajectory, policy=self._policy):
            raise MissingFactError(needed, usage=usage)

    def _request(self, trajectory: Trajectory, fault: str, calls: _CallsOfMove) -> ModelRequest:
        scenario = self._sample.scenario
        goes_on, may_call = self._is_bound_to_go_on(trajectory), self._may_call(calls)
        so_far = self._with_history(trajectory)
        rendered = render_user_prompt(scenario, so_far, self._prompt, now=self._now, fault=fault)
        prompt = rendered.prompt
        if scenario.user_tools:
            prompt += f"\n\n{_render_tools(scenario, calls, self._tools_prompt)}"
            prompt += "" if may_call else _ACTED_ENOUGH
        prompt += _GOES_ON if goes_on else ""
        last = so_far.turns[-1].answer if so_far.turns else ""
        subject = Subject(
            scenario=scenario.id, turn=len(trajectory.turns), text=last, epoch=self._sample.key.epoch
        )
        form = _REPLY_FORMS[goes_on, may_call]
        return ModelRequest("user", rendered.system, prompt, form, subject, states_form=True)


_REPLY_FORMS: dict[tuple[bool, bool], type[BaseModel]] = {
    (False, False): UserReply,
    (False, True): ActingUserReply,
    (True, False): OngoingUserReply,
    (True, True): OngoingActingReply,
}
"""The form of the answer. Keys: the conversation cannot end; the user may call tools."""


class _CallsOfMove:
    """The calls that precede a message."""

    def __init__(self) -> None:
        self.made: list[ToolCall] = []
        self.rounds = 0
        self.left_out = 0

    def new_requests(self, requests: Sequence[UserToolRequest]) -> list[UserToolRequest]:
        """Return the requests for calls that no earlier answer before this message asked for. A model that
        writes its message repeats the calls that led to it."""
        known = {(call.name, json_key(call.args)) for call in self.made}
        return [each for each in requests if (each.name, json_key(read_arguments(each.args)[0])) not in known]


def _with_open_calls(trajectory: Trajectory, calls: Sequence[ToolCall]) -> Trajectory:
    """Return the conversation with the turn that the calls have begun."""
    if not calls:
        return trajectory
    return trajectory.model_copy(
        update={"turns": (*trajectory.turns, Turn(user="", user_tool_calls=tuple(calls)))}
    )


def _render_tools(scenario: Scenario, calls: _CallsOfMove, prompt: Prompt) -> str:
    """Render the part of the prompt about the user's own tools."""
    results = "\n".join(map(format_user_call, calls.made)) or "(nothing)"
    if calls.left_out:
        results += f"\n({calls.left_out} more calls were not carried out: too many at once)"
    tools = "\n".join(_describe_tool(name, tool) for name, tool in scenario.user_tools.items())
    return prompt.render(tools=tools, results=fence(results)).prompt


def _describe_tool(name: str, tool: Tool) -> str:
    described = f"- {name}" + (f": {' '.join(tool.description.split())}" if tool.description else "")
    return described + (f"\n  its arguments: {to_json(tool.parameters)}" if tool.parameters else "")


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
        f"{_format_actions(turn)}You said:\n{fence(turn.original_user)}"
        f"\n\nThe agent said:\n{fence(_agent_text(turn.steps))}"
        for turn in trajectory.turns
    )


def _format_actions(turn: Turn) -> str:
    calls = "\n".join(map(format_user_call, turn.user_tool_calls))
    return f"You did, with your own tools:\n{fence(calls)}\n\n" if calls else ""


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
