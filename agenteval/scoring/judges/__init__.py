"""Asks a model about a conversation, and evaluates its answers."""
