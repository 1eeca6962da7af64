"""Detectors (deterministic heuristics) for failures that code can prove, the input of the detectors, and the
user's consent to calls of marked tools."""
