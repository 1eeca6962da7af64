"""Conversion between recorded or provider-specific messages and the steps of a trajectory. Pure: callers read
the bytes."""
