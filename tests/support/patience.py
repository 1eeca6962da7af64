"""How long a test waits for what must happen: until a machine that others keep busy has done it, too. Only
what hangs takes longer, so no test turns red for being slow."""

from __future__ import annotations

import time
from collections.abc import Callable

HANG_S = 300.0


def eventually(condition: Callable[[], bool]) -> bool:
    """Whether it holds, once it does or must be taken never to."""
    end = time.monotonic() + HANG_S
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()
