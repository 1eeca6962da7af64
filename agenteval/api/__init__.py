"""The Python API and the pytest plugin: the same runs as on the command line, returned as values."""
