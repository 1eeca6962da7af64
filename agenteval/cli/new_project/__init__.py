"""What ``agenteval init`` finds in a project, and the files that it writes there."""
