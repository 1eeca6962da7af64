"""The layers between a run and its agents and models: cassettes, the cache, metering."""
