"""Failures that code can prove: pure functions over a conversation, a module for each kind."""
