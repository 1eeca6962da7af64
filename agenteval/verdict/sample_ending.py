"""Decide one conversation on its own, before its run has ended."""

from __future__ import annotations

from collections.abc import Sequence

from agenteval.core.event import Event, RunStarted
from agenteval.core.scenario import Sample
from agenteval.core.score import Verdict
from agenteval.scoring.judges.user_review import EndedConversation
from agenteval.verdict.epochs import sample_success
from agenteval.verdict.report import build_report
from agenteval.verdict.sample_decisions import decide_sample


def build_ended_conversation(run: RunStarted, sample: Sample, events: Sequence[Event]) -> EndedConversation:
    """Return the outcome of ``sample``, based on all of its events. ``run`` contains the rules that decide
    samples."""
    plan = run.plan.restrict_to_pairing(sample.key.scenario, sample.key.agent)
    alone = {"scenarios": (sample.scenario,), "plan": plan}
    report = build_report([run.model_copy(update=alone), *events], of_one_sample=True)
    (found,) = report.samples
    decided = decide_sample(found, report.scenarios[0], report)
    failed = decided.verdict is Verdict.FAILED or sample_success(found, decided.verdict) is False
    return EndedConversation(found, decided, failed)
