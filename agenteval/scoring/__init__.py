"""Scores trajectories: runs code checks, detectors and LLM judges (LLM-as-a-judge), and groups findings into
issues."""
