"""Reads and writes the files of authors and of runs. Every mistake in a file is reported with its line."""
