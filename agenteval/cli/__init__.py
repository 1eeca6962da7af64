"""The command line: names become objects here; screen, streams, signals and exit codes."""
