"""From a trajectory to checks, scores, findings and issues."""
