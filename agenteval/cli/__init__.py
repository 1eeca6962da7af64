"""Names become objects here: the command line, the screen, streams, signals, exit codes."""
