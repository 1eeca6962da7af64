"""Converts recorded or provider-specific messages to steps of a trajectory and back.

Pure: callers read the bytes."""
