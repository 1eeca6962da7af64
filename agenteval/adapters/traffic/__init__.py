"""The layers (middleware) between a run and its agents and models: cassettes, the cache, and metering."""
