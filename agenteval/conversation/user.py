"""The user of a scenario: a script (scripted turns), a simulated user, or an alternation of both."""

from __future__ import annotations

from agenteval.core.protocols import CallUserTool, User, UserMove
from agenteval.core.scenario import Sample, ScriptedTurn, SimulatedTurns
from agenteval.core.trajectory import StopReason, Trajectory, Usage


class ScenarioUser:
    """A user that follows the scenario's turns. It sends the scripted messages and leaves simulated stretches
    to the simulated user. A scenario without turns is a single simulated stretch of ``max_turns``,
    which limits the number of simulated turns (turn limit, max turns)."""

    def __init__(
        self,
        sample: Sample,
        simulated: User | None = None,
        *,
        max_turns: int,
        call_tool: CallUserTool | None = None,
    ) -> None:
        """Create the user of ``sample``. ``call_tool`` is required if scripted turns call tools."""
        self._call_tool = call_tool
        self._entries = sample.scenario.turns or (SimulatedTurns(simulate=max_turns),)
        self._simulated = simulated
        self._remaining = max_turns  # simulated turns
        self._entry = 0
        self._stretch_turns = 0  # turns of the current stretch
        self._unspoken = Usage()  # usage of calls that ended a stretch without a message

    async def next(self, trajectory: Trajectory) -> UserMove:
        while self._entry < len(self._entries):
            entry = self._entries[self._entry]
            if isinstance(entry, ScriptedTurn):
                for call in entry.tool_calls:
                    assert self._call_tool is not None
                    await self._call_tool(call.name, call.args, len(trajectory.turns))
                position = self._advance()
                stop = StopReason.SCRIPT_DONE if self._is_over else None
                return self._with_open_usage(UserMove(entry.user, stop=stop, script=position))
            move = await self._improvise(entry, trajectory)
            if move.text is not None:
                return self._with_open_usage(move)
            self._unspoken = self._unspoken + move.usage
        return self._with_open_usage(UserMove(None, stop=StopReason.USER_DONE))

    def _with_open_usage(self, move: UserMove) -> UserMove:
        usage, self._unspoken = move.usage + self._unspoken, Usage()
        return move._replace(usage=usage)

    @property
    def _is_over(self) -> bool:
        return self._entry == len(self._entries)

    def _advance(self) -> int:
        self._entry, self._stretch_turns = self._entry + 1, 0
        return self._entry - 1

    async def _improvise(self, stretch: SimulatedTurns, trajectory: Trajectory) -> UserMove:
        """Return the next message of a simulated stretch. The message contains no text if the user is done
        and sends nothing."""
        assert self._simulated is not None
        move = await self._simulated.next(trajectory)
        self._stretch_turns += 1
        self._remaining -= 1
        full = self._stretch_turns >= stretch.simulate or self._remaining <= 0
        if move.stop or full:
            self._advance()
        if self._is_over and move.text is not None:
            return move._replace(stop=move.stop or StopReason.MAX_TURNS)
        return move._replace(stop=None)
