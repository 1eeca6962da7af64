"""Connect the package to external systems: agents, models, the network, and recordings."""
