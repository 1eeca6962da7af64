"""The entry point of the command ``agenteval`` and of ``python -m agenteval``."""

import gc
import sys

GARBAGE_THRESHOLD = 200_000
"""The garbage collector searches for reference cycles after so many new objects instead of after 700. The
modules of a command make about 130,000 objects and no cycles worth a search, yet the searches take a tenth
of the time of a short command."""


def main() -> None:
    """Run the command line. Ctrl-C prints no traceback, even while the command line is being imported."""
    gc.set_threshold(GARBAGE_THRESHOLD)
    try:
        from agenteval.cli.main import main as command
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)
    command()


if __name__ == "__main__":
    main()
