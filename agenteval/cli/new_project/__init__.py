"""Detection of agents in a project, and the files that ``agenteval init`` writes."""
