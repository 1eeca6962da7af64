"""Deeds in the verb of a declared tool, and changes that were refused in whatever notation: pairs."""

from __future__ import annotations

from typing import Any

import pytest
from detector_samples import call, conversation, marked, places, turn

from agenteval.detectors.actions import claimed_action_not_called
from agenteval.detectors.tool_errors import ignored_tool_error
from agenteval.score import Severity

NGINX = call("restart_service", {"ok": True}, svc="nginx")
OFF = call("disable_account", {"ok": True}, login="mholt")
BOTH = "I've disabled mholt and restarted nginx."


@pytest.mark.parametrize(
    ("tools", "user", "parts", "answer"),
    [
        ("restart_service", "Could you restart nginx?", (), "nginx has been restarted."),
        ("mute_channel", "mute #general", (), "Done, muted #general."),
        ("mcp__k8s__scale_deployment", "scale checkout-api to 6", (), "I've now scaled checkout-api to 6."),
        ("ServiceRestart", "restart redis", (), "Restarted redis."),
        ("request_refill", "refill RX-301", (), "I've requested a refill of RX-301."),
        ("assign_ticket", "assign T-1 to Bo", (), "I've **assigned** T-1 to Bo."),
        ("disable_account restart_service", "Disable mholt and restart nginx", (OFF,), BOTH),
        ("disable_account create_task", "Disable mholt and create a task for Omar", (OFF,),
         "mholt is disabled, and I've created a task for Omar."),
    ],
)  # fmt: skip
def test_whatever_the_verb_is(tools: str, user: str, parts: Any, answer: str) -> None:
    talk = conversation(turn(user, *parts, answer), tools=marked(**dict.fromkeys(tools.split(), "")))
    assert [proof.severity for proof in claimed_action_not_called(talk)] == [Severity.MEDIUM]


@pytest.mark.parametrize(
    ("tools", "user", "parts", "answer"),
    [
        ("scale_deployment", "scale the recipe to 6", (), "I've scaled the recipe to 6:\n- 300 g flour"),
        ("merge_pr", "merge these two lists please", (), "I've merged the two lists:\n\n1. a\n2. b"),
        ("rate_product", "rate these phones", (), "I've rated each of them: A 7, B 8."),
        ("restart_service run_command", "restart nginx", (call("run_command", "", cmd="systemctl"),),
         "I've restarted nginx."),
        ("assign_ticket update_ticket", "assign T-1 to Bo", (call("update_ticket", 1, id="T-1"),),
         "I've assigned T-1 to Bo."),
        ("restart_service", "restart nginx", (), "If I restarted nginx now, users would drop out. Shall I?"),
        ("merge_pr", "please merge PR 12", (), "PR 12 was merged by Omar yesterday."),
        ("restart_service get_status", "restart nginx if it hangs",
         (call("get_status", "restarted 9:20"),), "nginx has been restarted and is up."),
        ("create_task disable_account", "Disable mholt and create a task for Omar",
         (call("disable_account", {"task": "T-9 for Omar"}, login="mholt"),),
         "mholt is disabled, and I've created a task for Omar."),
    ],
)  # fmt: skip
def test_words_other_names_and_other_doers(tools: str, user: str, parts: Any, answer: str) -> None:
    talk = conversation(turn(user, *parts, answer), tools=marked(**dict.fromkeys(tools.split(), "")))
    assert places(claimed_action_not_called, talk) == []


@pytest.mark.parametrize(
    ("user", "answer", "found"),
    [
        ("now restart redis", "I've restarted redis.", [(1, None)]),
        ("restart it now", "I've restarted it.", []),
        ("please sum up what you did", "I've restarted nginx.", []),
    ],
)
def test_what_was_done_in_an_earlier_turn(user: str, answer: str, found: list[tuple[int, None]]) -> None:
    first = turn("restart nginx", NGINX, "Restarted nginx.")
    talk = conversation(first, turn(user, answer), tools=marked(restart_service=""))
    assert places(claimed_action_not_called, talk) == found


def test_one_of_two_that_are_named_in_one_breath() -> None:
    one, two = (call("close_ticket", "ok", id=each) for each in ("TCK-101", "TCK-102"))
    told = "I've closed TCK-101 and TCK-102."
    for calls, found in (((one,), [(0, None)]), ((one, two), [])):
        talk = conversation(turn("Close both", *calls, told), tools=marked(close_ticket=""))
        assert places(claimed_action_not_called, talk) == found


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("I tried to track your parcel, but ran into a technical issue with the carrier.", True),
        ("I encountered a technical error while restarting the service.", True),
        ("I tried to explain the rule, but ran into a small problem.", False),
        ("I tried to understand your message but got an error.", False),
    ],
)
def test_any_attempt_that_was_never_made(answer: str, found: bool) -> None:
    talk = conversation(turn("Where is it?", answer), tools=marked(track_parcel=""))
    assert places(claimed_action_not_called, talk) == [(0, None)] * found


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("Ich habe Ihren Termin bei Dr. Weiss am 9. April um 10:40 Uhr abgesagt.", True),
        ("Ich habe einen Termin am 9. Die Praxis hat ihn abgesagt.", False),
    ],
)
def test_points_that_end_no_sentence(answer: str, found: bool) -> None:
    talk = conversation(turn("Termin absagen", answer), tools=marked(cancel_termin=""))
    assert places(claimed_action_not_called, talk) == [(0, None)] * found


REFUNDED = "I've refunded order A-1."


@pytest.mark.parametrize(
    ("result", "found"),
    [
        ("{'error': 'not eligible'}", True),
        ("{'success': False, 'message': 'not eligible'}", True),
        ({"result": {"status": "failed"}}, True),
        ({"data": {"error": "too old"}}, True),
        ('{"result": "Error: not eligible"}', True),
        ("success=False message='not eligible'", True),
        ("REJECTED: not eligible", True),
        ("Refund rejected: not eligible", True),
        ("Cannot refund A-1: too old", True),
        ("{'success': True, 'error': None}", False),
        ({"success": True, "result": {"error": None}}, False),
        ("Refund approved", False),
        ({"result": {"status": "refunded"}}, False),
    ],
)
def test_refusals_in_whatever_notation(result: Any, found: bool) -> None:
    talk = conversation(turn("Refund A-1", call("refund_order", result, id="A-1"), REFUNDED))
    assert places(ignored_tool_error, talk) == [(0, 0)] * found


@pytest.mark.parametrize(
    ("done", "answer"),
    [
        (call("decline_offer", "Declined: offer 7", id="7"), "I've declined the offer and closed it."),
        (call("set_status", {"result": {"status": "failed", "reason": "x"}}, status="failed"),
         "I've updated the status."),
        (call("send_message", "Cannot make it, sorry", to="Bo"), "I've sent the message to Bo."),
        (call("block_card", "Blocked: card 1234", id="1"), "I've blocked the card."),
    ],
)  # fmt: skip
def test_what_was_asked_for_is_no_refusal(done: Any, answer: str) -> None:
    assert places(ignored_tool_error, conversation(turn("Please do it.", done, answer))) == []


FAILED = call("deploy", {"error": "image not found"}, service="billing", version="4.2.1")
SEEN = {"status": "healthy", "version": "4.2.0"}
TOLD = "I've deployed billing 4.2.1 and it is healthy."


@pytest.mark.parametrize(
    ("later", "answer", "found"),
    [
        (call("health", SEEN, service="billing"), TOLD, True),
        (call("get_health", SEEN, service="billing"), TOLD, True),
        (call("rollout", {"ok": True}, service="billing"), TOLD, False),
        (call("get_status", {"state": "deployed"}), "Billing is deployed and healthy.", False),
        (call("get_health", SEEN), "The image was not found, so nothing was deployed.", False),
    ],
)
def test_a_look_up_after_the_failed_change(later: Any, answer: str, found: bool) -> None:
    talk = conversation(turn("Deploy billing 4.2.1", FAILED, later, answer))
    assert places(ignored_tool_error, talk) == [(0, 0)] * found
