"""The outside: agents, models, the network, recordings."""
