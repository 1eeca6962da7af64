"""What a server was found to accept, by endpoint and model."""

from __future__ import annotations

import anyio
import pytest

from agenteval.adapters.models.capabilities import Capabilities, CapabilityEntry, ServerCapabilities
from agenteval.adapters.models.response_formats import FormatLevel
from tests.support.virtual_time import VirtualTime, run_virtually


def test_everything_is_accepted_until_a_server_refuses() -> None:
    assert ServerCapabilities() == ServerCapabilities(
        refused=frozenset(),
        format_level=FormatLevel.STRICT,
        folds_system=False,
        needs_budget=False,
        streams=False,
    )
    entry = CapabilityEntry()
    assert (entry.capabilities, entry.noticed) == (ServerCapabilities(), set())


def test_each_model_at_each_endpoint_has_its_own_findings() -> None:
    known = Capabilities()
    entry = known.entry_for("http://h", "m")
    assert known.entry_for("http://h", "m") is entry
    for place in (("http://h", "n"), ("http://i", "m")):
        assert known.entry_for(*place) is not entry
        assert known.entry_for(*place).noticed is not entry.noticed


@pytest.mark.parametrize(
    "found",
    [
        ServerCapabilities(refused=frozenset(["temperature"])),
        ServerCapabilities(format_level=FormatLevel.BARE),
        ServerCapabilities(folds_system=True),
        ServerCapabilities(needs_budget=True),
        ServerCapabilities(streams=True),
    ],
)
def test_what_was_discovered(found: ServerCapabilities) -> None:
    known = Capabilities()
    assert known.discovered == {}
    known.entry_for("http://h", "accepts everything")
    known.entry_for("http://h", "m").capabilities = found
    assert known.discovered == {("http://h", "m"): found}


def test_calls_wait_for_what_another_call_finds_out() -> None:
    async def main(time: VirtualTime) -> None:
        entry = CapabilityEntry()
        await entry.wait_settled()
        assert time() == 0
        ends: list[float] = []

        async def find_out() -> None:
            async with entry.lock:
                await anyio.sleep(5)

        async def wait() -> None:
            await anyio.sleep(1)
            await entry.wait_settled()
            ends.append(time())

        async with anyio.create_task_group() as group:
            group.start_soon(find_out)
            group.start_soon(wait)
            group.start_soon(wait)
        assert ends == [5, 5]
        assert not entry.lock.locked()

    run_virtually(main)
