"""Sentences that several reporters use."""
