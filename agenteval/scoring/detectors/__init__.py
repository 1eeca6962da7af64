"""Detectors (deterministic heuristics) for failures that code can prove, the detectors' input, and the user's
consent to calls to marked tools."""
