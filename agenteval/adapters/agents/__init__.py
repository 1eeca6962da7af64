"""Adapters to agents under test, blind to each other."""
