"""``agenteval``, and ``python -m agenteval``."""

import sys


def main() -> None:
    """The console script. Ctrl-C while the command line is loaded is no traceback, either."""
    try:
        from agenteval.cli.main import main as command
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)
    command()


if __name__ == "__main__":
    main()
