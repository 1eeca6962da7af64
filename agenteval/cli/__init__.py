"""The command-line interface (CLI): commands, terminal output, signals and exit codes."""
