"""Forecasts the calls, tokens and cost of a run (a cost estimate) for each model, using only scenarios,
metrics and prices. No model or agent is called.

The number of calls is exact if a conversation is scripted, and a range if a user is simulated. The forecast
assumes that every conversation runs to its end and that no call is retried. The number of verdicts that
require a second opinion is estimated separately. Token counts are estimates: prompts are rendered in the form
in which they will be sent, with placeholder answers of a fixed length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from typing import NamedTuple

from agenteval.core.config import Allowance
from agenteval.core.plan import Plan, ScenarioRules
from agenteval.core.protocols import Subject
from agenteval.core.scenario import EpochRange, Scenario, ScriptedTurn
from agenteval.core.tokens import count_tokens
from agenteval.core.trajectory import Step, Trajectory, Turn, Usage
from agenteval.files.prompt_templates import find_placeholders
from agenteval.files.prompts import CRITERIA, FAULT_RESPONSE, Rubric
from agenteval.planning.judge_setup import Metrics
from agenteval.scoring import metrics
from agenteval.scoring.judges.corroboration import SAMPLING_INTERVAL
from agenteval.verdict.ledger import cost_of, price_of

ANSWER_TOKENS = 100
"""The assumed length of an agent's answer in tokens."""
REPLY_TOKENS: Mapping[str, int] = {"user": 60, "judge": 120, "dedup": 600, "agent": ANSWER_TOKENS}
"""The assumed length of a reply in tokens, keyed by role."""
GATING = 20
"""The assumed interval between failures: one in this many verdicts that can cause a failure is assumed to
cause one and to require a second opinion."""
OPINION_TOKENS = 200
"""The assumed length in tokens of an earlier answer together with the instructions for reviewing that
answer."""
AGAIN = "judge again"
"""The role of a row for second opinions on verdicts."""
_ROLES = ("agent", "user", "judge", AGAIN, "dedup")
_PARTS = SAMPLING_INTERVAL * GATING
_ANSWER = Step(text="text " * ANSWER_TOKENS)
_SIMULATED = "text " * 30


@dataclass(frozen=True)
class Range:
    """A range from ``least`` to ``most``. ``most`` is None if there is no upper bound."""

    least: int
    most: int | None

    def __add__(self, other: Range) -> Range:
        most = None if self.most is None or other.most is None else self.most + other.most
        return Range(self.least + other.least, most)

    def times(self, epochs: EpochRange) -> Range:
        return Range(self.least * epochs.min, None if self.most is None else self.most * epochs.max)

    @property
    def is_exact(self) -> bool:
        return self.least == self.most


@dataclass(frozen=True)
class ForecastRow:
    """The forecast of the calls, tokens and cost for one role and model (or agent)."""

    role: str
    name: str
    calls: Range
    input_tokens: Range
    output_tokens: Range
    cost: tuple[float, float] | None = None
    """The lowest and highest cost in US dollars, or None if the price is unknown. If the tokens have no upper
    bound, the cost has no upper bound either."""
    estimated: bool = False
    """True if the number of calls is an estimate. Token counts are always estimates."""


@dataclass(frozen=True)
class Forecast:
    """A forecast of the calls, tokens and cost of a run."""

    scenarios: int
    agents: int
    samples: Range
    turns: Range
    """The total number of turns in all conversations."""
    rows: tuple[ForecastRow, ...]
    """One row for each role and model."""
    notes: tuple[str, ...] = field(default=())
    """Sentences about items that the rows do not include."""


def forecast(
    plan: Plan,
    scenarios: Iterable[Scenario],
    chosen: Metrics,
    *,
    policies: Mapping[str, str],
    uses_cache: bool = False,
) -> Forecast:
    """Forecast the calls, tokens and cost of a run (cost estimate). ``policies`` maps each agent to the text
    of its policy."""
    by_id = {scenario.id: scenario for scenario in scenarios}
    run = [by_id[name] for name in plan.scenarios]
    estimator = ConversationEstimator(plan, chosen)
    total = EstimateTotals()
    least = most = 0
    for name, agents in plan.scenarios.items():
        for agent in agents:
            rules = plan.rules_for_pairing(name, agent)
            epochs = EpochRange(min=rules.least, max=rules.most)
            total.add(estimator.conversation(by_id[name], agent, policies.get(agent, "")), epochs)
            least, most = least + epochs.min, most + epochs.max
    agents_run = tuple(dict.fromkeys(agent for agents in plan.scenarios.values() for agent in agents))
    if estimator.may_group:
        total.put("dedup", plan.suite.model("dedup"), _dedup_estimate(len(agents_run)))
    rows = tuple(_rows(total, plan))
    return Forecast(
        scenarios=len(run),
        agents=len(agents_run),
        samples=Range(least, most),
        turns=total.turns,
        rows=rows,
        notes=tuple(_notes(rows, run, plan, chosen, uses_cache=uses_cache)),
    )


# ── one conversation ─────────────────────────────────────────────────────────────────────────────


@dataclass
class RoleEstimate:
    """The estimated calls and tokens for one role, from the shortest to the longest conversation."""

    calls: Range = Range(0, 0)
    input_tokens: Range = Range(0, 0)
    output_tokens: Range = Range(0, 0)

    def add(self, other: RoleEstimate, epochs: EpochRange) -> None:
        self.calls += other.calls.times(epochs)
        self.input_tokens += other.input_tokens.times(epochs)
        self.output_tokens += other.output_tokens.times(epochs)


class ConversationEstimate(NamedTuple):
    """The estimated turns, calls and tokens for one conversation."""

    turns: Range
    spent: Mapping[tuple[str, str], RoleEstimate]
    """The calls and tokens, keyed by role and model. For the role ``AGAIN``, the unit is a fraction of a
    call: ``_PARTS`` units are one call."""


class EstimateTotals:
    def __init__(self) -> None:
        self.turns = Range(0, 0)
        self._spent: dict[tuple[str, str], RoleEstimate] = {}

    def add(self, conversation: ConversationEstimate, epochs: EpochRange) -> None:
        self.turns += conversation.turns.times(epochs)
        for key, spent in conversation.spent.items():
            self._spent.setdefault(key, RoleEstimate()).add(spent, epochs)

    def put(self, role: str, name: str, spent: RoleEstimate) -> None:
        self._spent[role, name] = spent

    def by_model(self) -> list[tuple[tuple[str, str], RoleEstimate]]:
        return sorted(self._spent.items(), key=lambda item: (_ROLES.index(item[0][0]), item[0][1]))


@dataclass(frozen=True)
class CallEstimate:
    """The number of calls of one kind in a conversation, and the total number of their input tokens."""

    count: int = 0
    tokens: int = 0

    def __add__(self, other: CallEstimate) -> CallEstimate:
        return CallEstimate(self.count + other.count, self.tokens + other.tokens)


class JudgeEstimate(NamedTuple):
    """The estimated judge calls in a conversation."""

    calls: CallEstimate
    again: CallEstimate
    """The calls for second opinions, in the unit that ``ConversationEstimate.spent`` uses."""


class ConversationEstimator:
    """Estimates the calls and tokens for a conversation under the rules of the run."""

    def __init__(self, plan: Plan, chosen: Metrics) -> None:
        self._plan = plan
        self._chosen = chosen
        self._judged = not plan.suite.no_judge
        judge = plan.suite.model("judge")
        self._is_doubted = plan.suite.corroborate and not judge.startswith("scripted/")
        self.may_group = self._judged and "dedup" in plan.suite.models

    def conversation(self, scenario: Scenario, agent: str, policy: str) -> ConversationEstimate:
        rules = self._plan.rules_for_pairing(scenario.id, agent)
        short, long = (_skeleton(scenario, rules, is_long=is_long) for is_long in (False, True))
        spent = {("agent", agent): self._agent(scenario, short, long)}
        user, judge = self._plan.suite.model("user"), self._plan.suite.model("judge")
        if not scenario.is_scripted:
            spent["user", user] = _estimate_between(
                self._user(scenario, short), self._user(scenario, long), "user"
            )
        least = self._judge(scenario, short, policy, rules)
        if self._judged and (judge or least.calls.count):
            most = least if short == long else self._judge(scenario, long, policy, rules)
            review = not scenario.is_scripted  # of the simulated user
            optional_calls = CallEstimate(self._undeclared_tool_calls(scenario, long) + review)
            spent["judge", judge] = _estimate_between(least.calls, most.calls + optional_calls, "judge")
            spent[AGAIN, judge] = _estimate_between(least.again, most.again, "judge")
        return ConversationEstimate(Range(len(short.turns), len(long.turns)), spent)

    def _agent(self, scenario: Scenario, short: Trajectory, long: Trajectory) -> RoleEstimate:
        spent = _estimate_between(_agent_calls(short), _agent_calls(long), "agent")
        if scenario.tools or self._plan.suite.unmocked_tools != "error":
            # After each round of calls that the agent leaves to agenteval, it is asked once more.
            spent.calls = Range(spent.calls.least, None)
        return spent

    def _user(self, scenario: Scenario, trajectory: Trajectory) -> CallEstimate:
        from agenteval.conversation.simulated_user import render_user_prompt

        tokens = count = 0
        prompt = self._chosen.prompts.user_prompt(scenario)
        for index, turn in enumerate(trajectory.turns):
            if turn.script is None:
                before = Trajectory(turns=trajectory.turns[:index])
                rendered = render_user_prompt(scenario, before, prompt, now=self._plan.suite.now)
                tokens += count_tokens(rendered.system) + count_tokens(rendered.prompt)
                count += 1
        return CallEstimate(count, tokens)

    def _judge(
        self, scenario: Scenario, trajectory: Trajectory, policy: str, rules: ScenarioRules
    ) -> JudgeEstimate:
        asked: list[tuple[Rubric, int]] = []
        reviewed: list[tuple[Rubric, int]] = []
        calls = CallEstimate()
        if self._judged:
            for index in range(len(trajectory.turns)):
                prefix = Trajectory(turns=trajectory.turns[: index + 1])
                expect = scenario.turn_expectation(prefix.turns[-1])
                criteria = len(expect.criteria) if expect else 0
                rubrics = self._rubrics_for("turn", scenario, prefix, policy, criteria)
                of_turn = list(self._with_tokens(rubrics, scenario, prefix, policy, turn=index))
                calls += self._first_calls([each for each in of_turn if not self._is_reviewed(each[0])])
                asked += of_turn
            reviewed = [each for each in asked if self._is_reviewed(each[0])]
            calls += self._review_call([rubric for rubric, _ in reviewed], scenario, trajectory, policy)
            rubrics = self._rubrics_for(
                "conversation", scenario, trajectory, policy, len(scenario.expect.criteria)
            )
            of_conversation = list(self._with_tokens(rubrics, scenario, trajectory, policy, turn=None))
            calls += self._first_calls(of_conversation)
            asked += of_conversation
        again = CallEstimate()
        for rubric, tokens in asked if self._is_doubted else ():
            parts = _second_opinion_parts(rubric, rules)
            if self._is_reviewed(rubric):  # one verdict of a review is drawn, and not one of each turn
                parts -= GATING
                again += CallEstimate(0, GATING * tokens // len(reviewed))
            again += CallEstimate(parts, parts * tokens)
        return JudgeEstimate(calls, again + CallEstimate(GATING if self._is_doubted and reviewed else 0))

    def _is_reviewed(self, rubric: Rubric) -> bool:
        """Check whether the rubric is applied to all turns in one call."""
        return self._plan.suite.reviews_turns and rubric.metric in metrics.REVIEWED

    def _review_call(
        self, asked: Sequence[Rubric], scenario: Scenario, trajectory: Trajectory, policy: str
    ) -> CallEstimate:
        """Return the call that applies rubrics to all turns, or no call if there are no rubrics."""
        from agenteval.scoring.judges.requests import build_review_request
        from agenteval.scoring.transcript import JudgeTranscript, TranscriptOptions, build_transcript

        rubrics = {rubric.metric: rubric for rubric in asked}.values()
        if not rubrics:
            return CallEstimate()
        options = TranscriptOptions(
            policy=policy,
            now=self._plan.suite.now,
            upto=len(trajectory.turns) - 1,
            parameters=any(rubric.needs == "tools" for rubric in rubrics),
            every_turn=True,
        )
        rest = build_review_request([*rubrics], JudgeTranscript(""), subject=Subject(), turns="turns 1 to 9")
        texts = (build_transcript(scenario, trajectory, options).text, rest.system, rest.prompt)
        return CallEstimate(1, sum(map(count_tokens, texts)))

    def _first_calls(self, asked: Sequence[tuple[Rubric, int]]) -> CallEstimate:
        """Return the calls that send the questions about one record. A shared call contains the record only
        once."""
        together: dict[str, list[tuple[Rubric, int]]] = {}
        for number, (rubric, tokens) in enumerate(asked):
            shared = "scores" if rubric.shared else CRITERIA if rubric.metric == CRITERIA else None
            name = shared if shared and self._plan.suite.shares_calls else str(number)
            together.setdefault(name, []).append((rubric, tokens))
        sums = (
            each[0][1] + sum(_count_prompt_tokens(rubric) for rubric, _ in each[1:])
            for each in together.values()
        )
        return CallEstimate(len(together), sum(sums))

    def _rubrics_for(
        self, scope: str, scenario: Scenario, trajectory: Trajectory, policy: str, criteria: int
    ) -> list[Rubric]:
        """Return the rubrics that are applied to a prefix of the conversation. Each rubric needs one call
        unless calls are shared."""
        specs = (
            spec
            for spec in self._chosen.selected
            if spec.scope == scope and self._chosen.is_rubric(spec.name)
        )
        known = bool(policy.strip())
        asked = [
            self._chosen.rubric(spec.name)
            for spec in specs
            if metrics.applies_to_trajectory(spec, scenario, trajectory, policy=known)
        ]
        if scope == "conversation" and scenario.variant and scenario.variant.fault:
            asked.append(self._chosen.rubric(FAULT_RESPONSE))  # unless code decides
        return asked + [self._chosen.rubric(CRITERIA)] * criteria

    def _with_tokens(
        self,
        asked: Sequence[Rubric],
        scenario: Scenario,
        prefix: Trajectory,
        policy: str,
        *,
        turn: int | None,
    ) -> Iterator[tuple[Rubric, int]]:
        """Yield each rubric with the number of tokens in its request."""
        from agenteval.scoring.transcript import render_transcript

        records: dict[bool, int] = {}
        for rubric in asked:
            parameters = rubric.needs == "tools"
            if parameters not in records:
                now = self._plan.suite.now
                text = render_transcript(
                    scenario, prefix, policy=policy, now=now, upto=turn, parameters=parameters
                )
                records[parameters] = count_tokens(text)
            yield rubric, records[parameters] + _count_prompt_tokens(rubric)

    def _undeclared_tool_calls(self, scenario: Scenario, long: Trajectory) -> int:
        """Count the judge calls that are made only if the agent reports tools that no scenario declares."""
        if scenario.tools:
            return 0
        if self._plan.suite.reviews_turns:
            return int(_is_reviewed_alone(self._chosen))
        return sum(spec.needs == "tools" for spec in self._chosen.selected) * len(long.turns)


def _is_reviewed_alone(chosen: Metrics) -> bool:
    """Check whether a review is only about tool calls, so that it is not asked for if there are none."""
    return [spec.needs for spec in chosen.selected if spec.name in metrics.REVIEWED] == ["tools"]


def _estimate_between(least: CallEstimate, most: CallEstimate, role: str) -> RoleEstimate:
    reply = REPLY_TOKENS[role]
    return RoleEstimate(
        calls=Range(least.count, most.count),
        input_tokens=Range(least.tokens, most.tokens),
        output_tokens=Range(least.count * reply, most.count * reply),
    )


def _agent_calls(trajectory: Trajectory) -> CallEstimate:
    """Count the calls to the agent and their input tokens. Each turn sends the whole conversation again.
    Tokens that the agent itself adds are unknown and are not counted."""
    tokens = so_far = 0
    for turn in trajectory.turns:
        so_far += count_tokens(turn.user)
        tokens += so_far
        so_far += ANSWER_TOKENS
    return CallEstimate(len(trajectory.turns), tokens)


def _count_prompt_tokens(rubric: Rubric) -> int:
    """Count the tokens in a judge's request, excluding the record."""
    key = (rubric.metric, rubric.hash)
    if key not in _prompt_tokens:
        _prompt_tokens[key] = _measure_prompt_tokens(rubric)
    return _prompt_tokens[key]


_prompt_tokens: dict[tuple[str, str], int] = {}  # by metric and hash of the rubric


def _measure_prompt_tokens(rubric: Rubric) -> int:
    from agenteval.scoring.judges.criteria import build_criterion_request
    from agenteval.scoring.judges.requests import build_judge_request
    from agenteval.scoring.transcript import JudgeTranscript

    if rubric.metric == CRITERIA:
        request = build_criterion_request(
            "text " * 15, "conversation", JudgeTranscript(""), rubric=rubric, subject=Subject()
        )
    else:
        empty = dict.fromkeys(find_placeholders(rubric.text), "")
        request = build_judge_request(rubric, JudgeTranscript(""), subject=Subject(), criterion=empty)
    return count_tokens(request.system) + count_tokens(request.prompt)


def _skeleton(scenario: Scenario, rules: ScenarioRules, *, is_long: bool) -> Trajectory:
    """Build a conversation with the maximum number of turns if ``is_long`` is True. Otherwise, build a
    conversation with as few turns as possible, in which a simulated user stops after the first message."""
    turns: list[Turn] = []
    for at, entry, count in scenario.entry_turns(rules.max_turns, is_long=is_long):
        if isinstance(entry, ScriptedTurn):
            turns.append(Turn(user=entry.user, steps=(_ANSWER,), script=at))
        else:
            turns += [Turn(user=_SIMULATED, steps=(_ANSWER,))] * count
    return Trajectory(turns=tuple(turns))


# ── the whole run ────────────────────────────────────────────────────────────────────────────────


def _dedup_estimate(calls: int) -> RoleEstimate:
    """Estimate the calls that group the findings. No calls are needed if nothing is found; otherwise, up to
    one call is needed for each agent."""
    from agenteval.scoring.issues import MAX_CHARACTERS

    tokens = calls * (MAX_CHARACTERS // 4 + 500)
    return RoleEstimate(Range(0, calls), Range(0, tokens), Range(0, calls * REPLY_TOKENS["dedup"]))


def _rows(total: EstimateTotals, plan: Plan) -> Iterator[ForecastRow]:
    for (role, name), spent in total.by_model():
        if role != AGAIN:
            yield _row(role, name, spent, plan)
        elif (again := _estimate_second_opinions(spent)).calls.most:
            yield replace(_row(role, name, again, plan), estimated=True)


def _estimate_second_opinions(parts: RoleEstimate) -> RoleEstimate:
    """Estimate the calls for second opinions. Each verdict that requires a second opinion adds one call."""

    def to_calls(each: Range) -> Range:
        return Range(ceil(each.least / _PARTS), ceil((each.most or 0) / _PARTS))

    calls = to_calls(parts.calls)
    opinions = Range(calls.least * OPINION_TOKENS, (calls.most or 0) * OPINION_TOKENS)
    return RoleEstimate(calls, to_calls(parts.input_tokens) + opinions, to_calls(parts.output_tokens))


def _second_opinion_parts(rubric: Rubric, rules: ScenarioRules) -> int:
    """Return the fraction of a verdict, in units of ``_PARTS``, that is assumed to require a second opinion.
    Clean verdicts on labels and goals are sampled at random. Any verdict can cause a failure, except for a
    number without a threshold."""
    threshold = rules.thresholds.get(rubric.metric)
    is_drawn = not rubric.scale and rubric.metric != CRITERIA
    may_fail = not rubric.scale or (threshold is not None and threshold.bar is not None)
    return is_drawn * GATING + may_fail * SAMPLING_INTERVAL


def _row(role: str, name: str, spent: RoleEstimate, plan: Plan) -> ForecastRow:
    price = price_of(name, plan.suite.prices)
    cost = None
    if price:
        ends = [
            Usage(input_tokens=tokens_in, output_tokens=tokens_out)
            for tokens_in, tokens_out in _ends(spent)
            if tokens_in is not None and tokens_out is not None
        ]
        cost = (cost_of(ends[0], price), cost_of(ends[-1], price))
    return ForecastRow(role, name, spent.calls, spent.input_tokens, spent.output_tokens, cost)


def _ends(spent: RoleEstimate) -> tuple[tuple[int | None, int | None], ...]:
    tokens_in, tokens_out = spent.input_tokens, spent.output_tokens
    return (tokens_in.least, tokens_out.least), (tokens_in.most, tokens_out.most)


def _notes(
    rows: Sequence[ForecastRow],
    scenarios: Sequence[Scenario],
    plan: Plan,
    chosen: Metrics,
    *,
    uses_cache: bool,
) -> Iterator[str]:
    if any(row.role == "agent" and row.calls.most is None for row in rows):
        yield "an agent that leaves its tool calls to agenteval is called again after each round of calls"
    if not plan.suite.no_judge:
        yield from _judge_notes(scenarios, plan, chosen)
    if any(row.role == "user" for row in rows):
        yield "a rejected message of the simulated user is requested again"
        if any(each.user_tools and not each.is_scripted for each in scenarios):
            yield "a simulated user with `user_tools` is asked again after its calls, which are not included"
    if any(row.role == AGAIN for row in rows):
        yield (
            f"{AGAIN} is an estimate: one in {SAMPLING_INTERVAL} label and goal verdicts, chosen at random"
            f"{' (of reviews, one verdict each)' if plan.suite.reviews_turns else ''},"
            f" and one in {GATING} of those that can cause a failure, assuming that they do"
        )
    if uses_cache:
        yield "cached answers are not requested again"
    yield from _budget_notes(rows, plan)


def _judge_notes(scenarios: Sequence[Scenario], plan: Plan, chosen: Metrics) -> Iterator[str]:
    names = [spec.name for spec in chosen.selected if not chosen.is_rubric(spec.name)]
    if names:
        yield f"model calls by {', '.join(names)} are not counted"
    is_reviewed = plan.suite.reviews_turns and not _is_reviewed_alone(chosen)
    if is_reviewed or all(scenario.tools for scenario in scenarios):
        return
    for spec in chosen.selected:
        if spec.needs == "tools":
            yield (
                f"the judge's upper bound includes {spec.name}, which is judged only if agents call tools"
                " that no scenario declares"
            )


def _budget_notes(rows: Sequence[ForecastRow], plan: Plan) -> Iterator[str]:
    yield from _over_budget(rows, plan.suite.budget, "budget", "this run needs", "it would be stopped")
    for role, allowance in plan.suite.budget.roles.items():
        asked = [row for row in rows if row.role == role]
        yield from _over_budget(
            asked, allowance, f"budget.by_role.{role}", "this role needs", "its calls would stop"
        )


def _over_budget(
    rows: Sequence[ForecastRow], allowed: Allowance, key: str, who: str, then: str
) -> Iterator[str]:
    rows = [row for row in rows if not row.estimated]
    least = {
        "max_calls": sum(row.calls.least for row in rows),
        "max_tokens": sum(row.input_tokens.least + row.output_tokens.least for row in rows),
        "max_cost": sum(row.cost[0] for row in rows if row.cost),
    }
    for name, limit in allowed.limits.items():
        if (needed := least[name]) > limit:
            about = f"{needed:,.4f}" if name == "max_cost" else f"{needed:,}"
            yield f"`{key}.{name}` is {limit:,}, but {who} at least {about}, so {then}"
