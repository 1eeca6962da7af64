"""What a refusal says: credit that waiting does not restore, a rate that it does, a role."""

from __future__ import annotations

import pytest

from agenteval.adapters.transport.error_patterns import (
    NO_SYSTEM_ROLE_PATTERN,
    RATE_LIMIT_PATTERN,
    THROTTLE_STATUSES,
    is_quota_exhausted,
)

EXHAUSTED = (
    "You exceeded your current quota, please check your plan and billing details.",
    "insufficient_quota",
    "Your credit balance is too low to access the API.",
    "Insufficient Balance",
    "InsufficientBalanceError",
    "(code: quotaExceeded)",
    "exceeded_current_quota_error",
    "APIQuota",
    "no credits left",
    "Payment required",
    "The spending limit of this project is reached",
    "spend limit reached",
    "BILLING_HARD_LIMIT_REACHED",
    "Rate limit reached: 200 requests per day",
    "Quota exceeded for metric: requests, limit: 50 per_day",
    "Rate limit reached on tokens per month",
    "daily limit",
    "Monthly usage limit: 10 requests per minute are left for others",
    "Rate limit reached for model on RPD: limit 200",
    "limit of TPD",
    "Request too large for model in organization on tokens per min (TPM): Limit 6000, Requested 7000",
)
RESTORED = (
    "Quota exceeded for quota metric 'requests' and limit 'requests per minute'",
    "quota: 5 per second",
    "quota of tokens: TPM 6000",
    "quota of requests: RPM 3",
    "quota: 3 rps",
    "Your account's concurrency quota: 2",
    "credit-based rate limit",
    "rate_limit: quota",
    "Too many requests, billing tier 1",
    "quota: 4 requests in flight",
    "The load balancer has no free server",
    "LOAD BALANCER BUSY",
    "accredited clients only",
    "Rate limit exceeded",
    "Slow down",
    "",
)


@pytest.mark.parametrize("text", EXHAUSTED)
def test_what_waiting_does_not_restore(text: str) -> None:
    assert is_quota_exhausted(text)


@pytest.mark.parametrize("text", RESTORED)
def test_what_waiting_restores(text: str) -> None:
    assert not is_quota_exhausted(text)


@pytest.mark.parametrize(
    ("text", "is_rate"),
    [
        ("60 requests per second", True),
        ("requests per_minute", True),
        ("RPM", True),
        ("tpm limit", True),
        ("rps", True),
        ("concurrent requests", True),
        ("rate limit", True),
        ("ratelimit", True),
        ("Rate-Limit", True),
        ("Too Many Requests", True),
        ("requests in flight", True),
        ("rpmfoo", False),
        ("per day", False),
        ("quota", False),
    ],
)
def test_a_rate(text: str, is_rate: bool) -> None:
    assert bool(RATE_LIMIT_PATTERN.search(text)) is is_rate


@pytest.mark.parametrize(
    "text",
    [
        "'system' role is not supported by this model",
        "System message must not be set",
        "developer instructions\nare not allowed",
        "Developer prompts are not accepted",
        "Unsupported value: 'messages[0].role' is system",
        "not supported: developer",
        "Invalid role: system",
        "unknown role 'developer'",
        "Conversation roles must alternate user/assistant/user/assistant/...",
        "Only user and assistant roles are supported!",
        "only the 'user' and 'assistant' roles",
    ],
)
def test_a_refused_system_role(text: str) -> None:
    assert NO_SYSTEM_ROLE_PATTERN.search(text)


@pytest.mark.parametrize(
    "text",
    [
        "Internal system error",
        "the model is not found",
        "user and assistant",
        "invalid subsystem",
        "system role" + " " * 45 + "not",
        "",
    ],
)
def test_no_refused_system_role(text: str) -> None:
    assert not NO_SYSTEM_ROLE_PATTERN.search(text)


def test_statuses_of_a_busy_server() -> None:
    assert sorted(THROTTLE_STATUSES) == [429, 503, 529]
