"""Frozen values, the interfaces between packages, and pure functions on text. Nothing here reads a file, a
clock or a network."""
