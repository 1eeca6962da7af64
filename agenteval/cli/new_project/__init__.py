"""Detects agents in a project, and provides the files that ``agenteval init`` writes."""
