"""``agenteval`` as it is, which notes at its end whether every slot was given back, and its memory.

::

    SOAK_PROBE=slots.json python benchmarks/soak_probe.py run …
"""

from __future__ import annotations

import atexit
import json
import os
from pathlib import Path
from typing import Any


def kept(made_by: type) -> list[Any]:
    """All objects of a class, from now on."""
    found: list[Any] = []
    make = made_by.__init__  # type: ignore[misc]

    def init(self: Any, *arguments: Any, **named: Any) -> None:
        make(self, *arguments, **named)
        found.append(self)

    made_by.__init__ = init  # type: ignore[misc]
    return found


def _peak_mib() -> float:
    """The most memory that was resident. (What the system tells a parent counts the parent's own, too.)"""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0.0
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def main() -> None:
    from agenteval.adapters.models.pool import ModelPool
    from agenteval.adapters.transport.connections import Lanes
    from agenteval.adapters.transport.limits import Limiter
    from agenteval.cli.main import main as agenteval

    limiters, pools, lanes = kept(Limiter), kept(ModelPool), kept(Lanes)

    def note() -> None:
        slots = {
            "calls that a limiter takes to be in flight": sum(each.in_flight for each in limiters),
            "calls that still wait for a limiter": sum(each.waiting for each in limiters),
            "calls that the pool takes to be in flight": sum(each.in_flight for each in pools),
            "slots of the pool not given back": sum(each._limiter.borrowed_tokens for each in pools),
            "connections not given back": sum(len(each._all) - len(each._idle) for each in lanes),
        }
        seen = {"slots": slots, "peak_mib": _peak_mib()}
        Path(os.environ["SOAK_PROBE"]).write_text(json.dumps(seen), encoding="utf-8")

    atexit.register(note)
    agenteval()


if __name__ == "__main__":
    main()
