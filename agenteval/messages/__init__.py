"""Converts recorded or provider-specific messages to the steps of a trajectory and back.

Pure: callers read the bytes."""
