"""Oddities of OpenAI-compatible servers: what a server does, what agenteval does, what was seen.

::

    python benchmarks/quirks.py [NUMBER…]

Each row runs against a real local server that has the oddity. The rows are those of
``tests/support/quirk_rows.py``, which ``tests/adapters/test_quirks.py`` checks.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.support.quirk_rows import ROWS  # the tests are no package that is installed

_SEEN = 150


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("number", type=int, nargs="*", help="of the rows to run; all by default")
    wanted = set(parser.parse_args().number) or {row.number for row in ROWS}
    print(f"{'':4}{'who':6} {'oddity':38} {'server':42} {'agenteval':44} seen")
    bad = 0
    for row in ROWS:
        if row.number not in wanted:
            continue
        seen = row.run()
        is_right = bool(seen.failure) is row.fails and row.then(seen)
        bad += not is_right
        told = seen.told if len(seen.told) <= _SEEN else f"{seen.told[:_SEEN]}…"
        mark = " " if is_right else "✗"
        print(f"{row.number:2}{mark} {row.who:6} {row.quirk:38} {row.server:42} {row.does:44} {told}")
    print(f"\n{len(wanted)} oddities; {bad} rows are not as they should be")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
