"""HTTP transport: connections, rate limits, retries, and the attribution of failures."""
