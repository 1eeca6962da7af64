"""Frozen values, the seams, and pure functions of text. Nothing here reads a file, a clock or a network."""
