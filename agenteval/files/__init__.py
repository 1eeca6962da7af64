"""Reads and writes the files of authors and the files of runs. Every mistake in a file is reported with its
location."""
