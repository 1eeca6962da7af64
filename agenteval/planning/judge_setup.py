"""Sets up LLM judges (LLM-as-a-judge): resolves the metric names in a configuration to scorers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from agenteval.core.config import Config
from agenteval.core.errors import AuthorError, Problem, did_you_mean, parse_place
from agenteval.core.plan import ScenarioRules, SuitePolicy
from agenteval.core.protocols import ChatModel, Scorer
from agenteval.core.scenario import Scenario
from agenteval.core.score import Finding, MetricSpec
from agenteval.core.severity import labels_with_severity
from agenteval.files.prompts import (
    CRITERIA,
    FAULT_RESPONSE,
    SHIPPED_PROMPTS,
    USER_TOOLS,
    Prompts,
    Rubric,
    load_prompts,
    user_prompt_name,
)
from agenteval.planning.plan_resolution import has_policy
from agenteval.scoring import metrics
from agenteval.scoring.detectors.table import DETECTORS
from agenteval.scoring.metrics import BEHAVIOR, REVIEWED

if TYPE_CHECKING:
    from agenteval.core.trajectory import Trajectory
    from agenteval.scoring.judges.custom import AnyCustomMetric
    from agenteval.scoring.judges.judge_inputs import JudgeInputs, PolicyOf

# The scorers are imported inside functions: a run of checks in code needs none of them, and importing
# them costs as much CPU as all other modules of such a run.


@dataclass(frozen=True)
class Metrics:
    """The metrics that a configuration defines or selects."""

    available: Mapping[str, MetricSpec]
    """All metrics, built-in and custom, keyed by name."""
    selected: tuple[MetricSpec, ...]
    """The metrics to judge."""
    custom: Mapping[str, AnyCustomMetric] = field(default_factory=dict)
    """The custom metrics, keyed by name."""
    prompts: Prompts = SHIPPED_PROMPTS
    """The prompts, including the project's overrides."""

    def rubric(self, name: str) -> Rubric:
        """Return the rubric of a metric that is judged by a rubric."""
        custom = self.custom.get(name)
        return custom if isinstance(custom, Rubric) else self.prompts.rubric(name)

    def is_rubric(self, name: str) -> bool:
        """Check whether judging the metric always requires a model call. A custom metric that is a Python
        class might not call a model."""
        return isinstance(self.custom.get(name), Rubric) or name not in self.custom


def load_metrics(config: Config) -> Metrics:
    """Load prompts and custom metrics, and select the metrics to judge. Raise ``AuthorError`` for invalid
    prompts or metrics, unknown names, and invalid bounds."""
    place = config.place("custom_metrics")
    prompts = load_project_prompts(config)
    customs = _load_customs(config, prompts)
    by_name = {spec.name: custom for spec, custom in customs}
    available = metrics.build_metric_table((spec for spec, _ in customs), place_of=lambda _: place)
    selected = metrics.select_metrics(
        config.metrics, available, place_of=lambda at: config.place(f"metrics.{at}")
    )
    problems = metrics.threshold_problems(
        config.thresholds, available, lambda name: config.place(f"thresholds.{name}")
    )
    problems += _unknown_labels(config, available)
    if problems:
        raise AuthorError(*problems)
    return Metrics(available, selected, by_name, prompts)


def load_project_prompts(config: Config) -> Prompts:
    """Load the built-in prompts and the project's overrides. Raise ``AuthorError`` if a prompt is invalid."""
    return load_prompts(config.prompts, config.root, place_of=lambda path: config.place(f"prompts.{path}"))


def _load_customs(config: Config, prompts: Prompts) -> list[tuple[MetricSpec, AnyCustomMetric]]:
    if not config.custom_metrics:
        return []
    from agenteval.scoring.judges.custom import build_custom_metric_spec, load_custom_metrics

    loaded = load_custom_metrics(
        config.custom_metrics,
        config.root,
        prompts=prompts,
        place_of=lambda at: config.place(f"custom_metrics.{at}"),
    )
    return [(build_custom_metric_spec(custom), custom) for custom in loaded]


def labels_of(known: Iterable[MetricSpec]) -> set[str]:
    """Return the labels that metrics and detectors can produce."""
    labels = {*labels_with_severity(), *(detector.label for detector in DETECTORS.values())}
    return labels | {label for spec in known for label in spec.labels}


def _unknown_labels(config: Config, known: Mapping[str, MetricSpec]) -> list[Problem]:
    """Return a problem for each configured severity whose label cannot be produced. Such a severity has no
    effect."""
    labels = labels_of(known.values())
    open_ended = any(spec.is_label and not spec.labels for spec in known.values())
    return [
        Problem(
            f"`severities`: unknown label '{label}'",
            did_you_mean(label, labels),
            config.place(f"severities.{label}"),
        )
        for label in config.severities
        if label not in labels and not open_ended
    ]


def scenario_threshold_problems(scenario: Scenario, suite: SuitePolicy) -> list[Problem]:
    """Return the problems with a scenario's own thresholds. A threshold must have a valid name and bound, and
    the configuration must select its metric, which must be judgeable in the scenario."""
    known = suite.specs
    problems = metrics.threshold_problems(
        scenario.thresholds, known, lambda name: parse_place(scenario.where(f"thresholds.{name}"))
    )
    for name, entry in scenario.thresholds.items():
        spec = known.get(name)
        if entry is not None and spec and (found := _explain_unusable_threshold(spec, scenario, suite)):
            problems.append(Problem(*found, parse_place(scenario.where(f"thresholds.{name}"))))
    return problems


def _explain_unusable_threshold(
    spec: MetricSpec, scenario: Scenario, suite: SuitePolicy
) -> tuple[str, str] | None:
    """Return the reason why a scenario's threshold has no effect, together with a remedy, or None if the
    threshold has an effect. If a metric was deselected on the command line, its threshold is not reported as
    a mistake in the file."""
    if not metrics.may_apply_to_scenario(spec, scenario, policy=has_policy(scenario, suite)):
        what = f"the '{spec.name}' threshold does not apply to scenario '{scenario.id}'"
        missing = "a `goal` to the scenario" if spec.needs == "goal" else "a `policy` to an agent"
        return what, f"add {missing}, or remove the threshold"
    if spec.name not in suite.judged and not suite.by_flag:
        what = f"scenario '{scenario.id}' has a threshold for '{spec.name}', which is not a selected metric"
        return what, f"add '{spec.name}' to `metrics` in the configuration, or remove the threshold"
    return None


def make_judges(
    chosen: Metrics,
    model: ChatModel | None,
    suite: SuitePolicy,
    *,
    rules_for: Callable[[Scenario], ScenarioRules],
    policy_of: PolicyOf,
    secrets: Mapping[str, str] = MappingProxyType({}),
    criteria: bool,
    faults: bool = False,
    timeout_s: float = 60.0,
) -> tuple[Scorer, ...]:
    """Create the LLM judges of a run. ``rules_for`` returns the rules for a scenario. ``secrets`` maps each
    text that the agent must never reveal to a placeholder. ``model`` may be None only if all judged metrics
    are Python classes written by the author. ``faults`` is true if scenarios are variants with a fault, and
    ``timeout_s`` limits the author's code."""
    if not chosen.selected and not criteria and not faults:
        return ()
    from agenteval.scoring.detectors.scorer import DetectorScorer
    from agenteval.scoring.judges.criteria import CriteriaScorer
    from agenteval.scoring.judges.custom_scorer import CustomScorer
    from agenteval.scoring.judges.goal import GoalJudge
    from agenteval.scoring.judges.judge import Judge
    from agenteval.scoring.judges.policy import PolicyJudge
    from agenteval.scoring.judges.shared_scores import SharedScores
    from agenteval.scoring.judges.turn_review import TurnReview
    from agenteval.scoring.questions import question_detectors

    judges = {"answer_outcome": GoalJudge, "answer_policy": PolicyJudge}  # by the form of the answer
    asking = suite.model_copy(update={"detectors": question_detectors(suite)})
    inputs = _judge_inputs(model, suite, rules_for, policy_of, secrets) if model is not None else None

    def raised(scenario: Scenario, trajectory: Trajectory) -> Iterator[Finding]:
        return _findings(DetectorScorer(asking, policy_of(scenario)).run_detectors(scenario, trajectory))

    together: dict[type[SharedScores | TurnReview], list[Judge]] = {}
    scorers: list[Scorer] = []
    for spec in chosen.selected:
        custom = chosen.custom.get(spec.name)
        if custom is not None and not isinstance(custom, Rubric):
            scorers.append(CustomScorer(custom, model, severities=suite.severities))
            continue
        assert inputs is not None
        rubric = chosen.rubric(spec.name)
        rubric_inputs = replace(inputs, find_raised_questions=raised) if spec.name == BEHAVIOR else inputs
        judge = judges.get(rubric.form, Judge)(rubric, rubric_inputs)
        if suite.reviews_turns and spec.name in REVIEWED:
            together.setdefault(TurnReview, []).append(judge)
        elif suite.shares_calls and rubric.shared:
            together.setdefault(SharedScores, []).append(judge)
        else:
            scorers.append(judge)
    scorers += (scorer(judges_of, inputs) for scorer, judges_of in together.items() if inputs)
    if criteria:
        assert inputs is not None
        rubric = chosen.rubric(CRITERIA)
        scorers += [
            CriteriaScorer(rubric, inputs, scope=scope, is_shared=suite.shares_calls)
            for scope in ("turn", "conversation")
        ]
    if faults and inputs is not None:
        from agenteval.scoring.fault_scorer import FaultScorer
        from agenteval.scoring.judges.fault_response import FaultResponseJudge

        scorers.append(FaultScorer(timeout_s, FaultResponseJudge(chosen.rubric(FAULT_RESPONSE), inputs)))
    return tuple(scorers)


def _judge_inputs(
    model: ChatModel,
    suite: SuitePolicy,
    rules_for: Callable[[Scenario], ScenarioRules],
    policy_of: PolicyOf,
    secrets: Mapping[str, str],
) -> JudgeInputs:
    from agenteval.scoring.detectors.scorer import DetectorScorer
    from agenteval.scoring.judges.gating_policy import GatingPolicy
    from agenteval.scoring.judges.judge_inputs import JudgeInputs
    from agenteval.scoring.transcript import BYTES_PER_TOKEN, MAX_TRANSCRIPT_BYTES

    def proofs(scenario: Scenario, trajectory: Trajectory) -> Iterator[Finding]:
        return _findings(
            DetectorScorer(suite, policy_of(scenario), secrets).run_detectors(scenario, trajectory)
        )

    judging_model = suite.models.get("judge")
    return JudgeInputs(
        model,
        policy_of=policy_of,
        now=suite.now,
        gating=GatingPolicy.from_suite(suite, rules_for),
        proofs=proofs,
        limit=BYTES_PER_TOKEN * judging_model.record_tokens if judging_model else MAX_TRANSCRIPT_BYTES,
    )


def _findings(items: Iterable[object]) -> Iterator[Finding]:
    return (item for item in items if isinstance(item, Finding))


def hash_prompts(chosen: Metrics, suite: SuitePolicy, scenarios: Iterable[Scenario] = ()) -> dict[str, str]:
    """Return the hashes of all prompts that the run may send, including the scenarios' own user prompts."""
    known_scenarios = tuple(scenarios)
    customs = [custom for custom in chosen.custom.values() if isinstance(custom, Rubric)]
    built_in = [chosen.rubric(spec.name) for spec in chosen.selected if spec.built_in]
    forms = {"answer_shared": suite.shares_calls, "answer_review": suite.reviews_turns}
    more = {name: chosen.prompts.prompt(name).hash for name, is_used in forms.items() if is_used}
    if any(each.user_tools and not each.is_scripted for each in known_scenarios):
        more[USER_TOOLS] = chosen.prompts.prompt(USER_TOOLS).hash
    more |= {
        user_prompt_name(each.id): each.user_prompt_hash for each in known_scenarios if each.user_prompt_hash
    }
    if any(each.variant and each.variant.fault for each in known_scenarios):
        more |= {FAULT_RESPONSE: chosen.rubric(FAULT_RESPONSE).hash}
    return chosen.prompts.hashes([*built_in, chosen.rubric(CRITERIA), *customs]) | more
