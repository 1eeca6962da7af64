"""Failures that code can prove: facts, detectors over them, consent for marked tools."""
