"""Connect the package to the outside: agents, models, the network, recordings."""
