"""Turns a trajectory into checks, scores, findings and issues."""
