"""The entry point of the command ``agenteval`` and of ``python -m agenteval``."""

import sys


def main() -> None:
    """Run the command line. Ctrl-C prints no traceback, even while the command line is being imported."""
    try:
        from agenteval.cli.main import main as command
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)
    command()


if __name__ == "__main__":
    main()
