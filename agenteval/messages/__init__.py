"""Converts recorded or provider-specific messages to the steps of a trajectory, and steps back to messages.

Pure: reading the bytes is left to the callers."""
