"""The report at a terminal."""
